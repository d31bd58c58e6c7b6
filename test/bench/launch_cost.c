/* For launch_cost.py: launches a kernel of each row on the driver of the unit tests, the last time
 * as a hit. In a trace of the program's memory accesses, a launch is between two stores to
 * `marker`. */
#include <kjit/kjit.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_compiler.h"
#include "fake_cuda.h"

enum { MOST = 16, LAUNCHES = 6 /* launches of a row; launch_cost.py evaluates the last one */ };

volatile int marker;

static const char source[] =
  "kernel none() { }\n"
  "kernel one(a: f32[:] C) { a[0] = 1 }\n"
  "kernel four(r: f32[:] C, a: f32, x: f32[:] C, y: f32[:] C) { r[0] = a * x[0] + y[0] }\n"
  "kernel arrays(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p) {\n"
  "  a[0] = b[0] + c[0] + d[0] + e[0] + f[0] + g[0] + h[0] + i[0] + j[0] + k[0] + l[0] + m[0] + "
  "n[0] + o[0] + p[0]\n}\n"
  "kernel range(r, a: f32, x) { for i in grid_range(len(r)) { r[i] = a * x[i] } }\n"
  "kernel plane(r, n: i32, x) @block(16, 16) @grid(ceil_div(r.shape[0], 16), ceil_div(n, 16)) {\n"
  "  r[0] = x[0]\n}\n";

/* arguments: a means a kjit array, t a tensor, s a scalar, i an integer, n an untyped number */
typedef struct row {
  const char *kernel, *arguments;
  unsigned grid, block;
  bool is_prepared, is_on_cpu;
  /* launches alternate between arrays of two lengths; before each prepared launch, the first
   * argument is replaced by another array of the same length */
  bool takes_turns;
} row;

static const row rows[] = {
  { "none", "", 1, 1, false, false, false },
  { "one", "a", 1, 1, false, false, false },
  { "four", "asaa", 1, 1, false, false, false },
  { "arrays", "aaaaaaaaaaaaaaaa", 1, 1, false, false, false },
  { "arrays", "tttttttttttttttt", 1, 1, false, false, false },
  { "range", "asa", 0, 0, false, false, false },
  { "range", "asa", 0, 0, false, false, true },
  { "plane", "aia", 0, 0, false, false, false },
  { "plane", "aia", 0, 0, false, false, true },
  { "four", "anaa", 1, 1, false, false, false },
  { "none", "", 1, 1, true, false, false },
  { "arrays", "aaaaaaaaaaaaaaaa", 1, 1, true, false, false },
  { "four", "asaa", 1, 1, true, false, true },
  { "range", "asa", 0, 0, true, false, true },
  { "arrays", "aaaaaaaaaaaaaaaa", 1, 1, true, false, true },
  { "four", "asaa", 1, 1, false, true, false },
  { "range", "asa", 0, 0, false, true, false },
  { "range", "tst", 0, 0, false, true, false },
};

/* The arrays of a row: MOST arrays of one length, MOST of the other length, and one more. */
enum { LENGTH = 1024, OTHER_LENGTH = 2048, ARRAYS = 2 * MOST + 1, SPARE = 2 * MOST };

static void fill_arguments(const row *row, kjit_array *const *arrays, kjit_arg *arguments)
{
  for (size_t i = 0; row->arguments[i]; i++) {
    char kind = row->arguments[i];
    arguments[i] = kind == 'a'   ? kjit_arg_array(arrays[i])
                   : kind == 't' ? kjit_arg_tensor(kjit_get_tensor(arrays[i]))
                   : kind == 'i' ? kjit_arg_i32(LENGTH)
                   : kind == 'n' ? kjit_arg_number(1)
                                 : kjit_arg_f32(1);
  }
}

static void run_nothing(const void *parameters, const kj_cpu_grid *grid, uint64_t first,
                        uint64_t last, void *scratch)
{
  (void)parameters, (void)grid, (void)first, (void)last, (void)scratch;
}

static void require(kjit_status status, const char *what)
{
  if (status == KJIT_OK) return;
  fprintf(stderr, "launch_cost: %s: %s\n", what, kjit_get_status_name(status));
  exit(1);
}

int main(void)
{
  kj_diagnostics diagnostics = { 0 };
  kjit_context *context = make_fake_context();
  kjit_device *devices[2];
  kjit_module *module;
  kjit_array *all[2][ARRAYS];
  cuda = (fake_driver){ .devices = 1 };
  fake.has_tight_plans = true;
  require(kj_use_driver(context, find_fake, NULL, &diagnostics), "the driver");
  fake.kernel = run_nothing;
  require(kjit_get_device(context, KJIT_DEVICE_CUDA, 0, &devices[0]), "the device");
  require(kjit_get_device(context, KJIT_DEVICE_CPU, 0, &devices[1]), "the CPU");
  require(kjit_parse_module(context, "cost.kir", source, sizeof source - 1, &module), "the module");
  for (int i = 0; i < 2 * ARRAYS; i++) {
    int64_t length = i % ARRAYS / MOST == 1 ? OTHER_LENGTH : LENGTH;
    require(kjit_create_array(devices[i / ARRAYS], KJIT_F32, &length, 1,
                              &all[i / ARRAYS][i % ARRAYS]),
            "an array");
  }
  for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
    kjit_kernel *kernel;
    kjit_arg arguments[2][MOST];
    size_t count = strlen(rows[r].arguments);
    kjit_array **arrays = all[rows[r].is_on_cpu];
    kjit_launch_config config = { .size_bytes = sizeof config,
                                  .grid = { rows[r].grid },
                                  .block = { rows[r].block },
                                  .device = devices[rows[r].is_on_cpu] };
    require(kjit_get_kernel(module, rows[r].kernel, &kernel), rows[r].kernel);
    fill_arguments(&rows[r], arrays, arguments[0]);
    fill_arguments(&rows[r], arrays + (rows[r].takes_turns ? MOST : 0), arguments[1]);
    if (rows[r].is_prepared) arguments[1][0] = kjit_arg_array(arrays[SPARE]);
    kjit_prepared *prepared = NULL;
    if (rows[r].is_prepared)
      require(kjit_prepare_launch(kernel, &config, arguments[0], count, &prepared), rows[r].kernel);
    printf("%s %s %s %p\n",
           prepared              ? (rows[r].takes_turns ? "prepared,replaced" : "prepared")
           : rows[r].is_on_cpu   ? "cpu"
           : rows[r].takes_turns ? "kjit_launch,turns"
                                 : "kjit_launch",
           rows[r].kernel, count ? rows[r].arguments : "-", (void *)&marker);
    fflush(stdout);
    for (int i = 0; i < LAUNCHES; i++) {
      kjit_status status = KJIT_OK;
      marker = 1;
      if (prepared && rows[r].takes_turns)
        status = kjit_set_prepared_argument(prepared, 0, &arguments[i % 2][0]);
      if (status == KJIT_OK)
        status = prepared ? kjit_run_prepared(prepared, NULL)
                          : kjit_launch(kernel, &config, arguments[i % 2], count);
      marker = 0;
      require(status, rows[r].kernel);
    }
    kjit_destroy_prepared(prepared);
  }
  kjit_release_module(module);
  for (int i = 0; i < 2 * ARRAYS; i++) kjit_release_array(all[i / ARRAYS][i % ARRAYS]);
  kjit_destroy_context(context);
  return 0;
}
