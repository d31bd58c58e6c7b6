/* For launch_cost.py: launches a kernel of each row on the driver of the unit tests, the last time
 * as a hit. A trace of the program's memory accesses shows where a launch begins and ends: it lies
 * between two stores to `marker`. */
#include <kjit/kjit.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_compiler.h"
#include "fake_cuda.h"

enum { MOST = 16, LAUNCHES = 5 /* of a row; launch_cost.py looks at the last */ };

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

/* arguments: a an array of kjit, t a tensor, s a scalar, i an integer, n a plain number */
typedef struct row {
  const char *kernel, *arguments;
  unsigned grid, block;
  bool is_prepared, is_on_cpu;
} row;

static const row rows[] = {
  { "none", "", 1, 1, false, false },
  { "one", "a", 1, 1, false, false },
  { "four", "asaa", 1, 1, false, false },
  { "arrays", "aaaaaaaaaaaaaaaa", 1, 1, false, false },
  { "arrays", "tttttttttttttttt", 1, 1, false, false },
  { "range", "asa", 0, 0, false, false },
  { "plane", "aia", 0, 0, false, false },
  { "four", "anaa", 1, 1, false, false },
  { "none", "", 1, 1, true, false },
  { "arrays", "aaaaaaaaaaaaaaaa", 1, 1, true, false },
  { "four", "asaa", 1, 1, false, true },
  { "range", "asa", 0, 0, false, true },
  { "range", "tst", 0, 0, false, true },
};

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
  kjit_array *all[2][MOST];
  int64_t length = 1024;
  cuda = (fake_driver){ .devices = 1 };
  fake.has_tight_plans = true;
  require(kj_use_driver(context, find_fake, NULL, &diagnostics), "the driver");
  fake.kernel = run_nothing;
  require(kjit_get_device(context, KJIT_DEVICE_CUDA, 0, &devices[0]), "the device");
  require(kjit_get_device(context, KJIT_DEVICE_CPU, 0, &devices[1]), "the CPU");
  require(kjit_parse_module(context, "cost.kir", source, sizeof source - 1, &module), "the module");
  for (int i = 0; i < 2 * MOST; i++)
    require(kjit_create_array(devices[i / MOST], KJIT_F32, &length, 1, &all[i / MOST][i % MOST]),
            "an array");
  for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
    kjit_kernel *kernel;
    kjit_arg arguments[MOST];
    size_t count = strlen(rows[r].arguments);
    kjit_array **arrays = all[rows[r].is_on_cpu];
    kjit_launch_config config = { .grid = { rows[r].grid },
                                  .block = { rows[r].block },
                                  .device = devices[rows[r].is_on_cpu] };
    require(kjit_get_kernel(module, rows[r].kernel, &kernel), rows[r].kernel);
    for (size_t i = 0; i < count; i++) {
      char kind = rows[r].arguments[i];
      arguments[i] = kind == 'a'   ? kjit_arg_array(arrays[i])
                     : kind == 't' ? kjit_arg_tensor(kjit_get_tensor(arrays[i]))
                     : kind == 'i' ? kjit_arg_i32(1024)
                     : kind == 'n' ? kjit_arg_number(1)
                                   : kjit_arg_f32(1);
    }
    kjit_prepared *prepared = NULL;
    if (rows[r].is_prepared)
      require(kjit_prepare_launch(kernel, &config, arguments, count, &prepared), rows[r].kernel);
    printf("%s %s %s %p\n",
           prepared            ? "prepared"
           : rows[r].is_on_cpu ? "cpu"
                               : "kjit_launch",
           rows[r].kernel, count ? rows[r].arguments : "-", (void *)&marker);
    fflush(stdout);
    for (int i = 0; i < LAUNCHES; i++) {
      marker = 1;
      kjit_status status = prepared ? kjit_run_prepared(prepared, NULL)
                                    : kjit_launch(kernel, &config, arguments, count);
      marker = 0;
      require(status, rows[r].kernel);
    }
    kjit_destroy_prepared(prepared);
  }
  kjit_release_module(module);
  for (int i = 0; i < 2 * MOST; i++) kjit_release_array(all[i / MOST][i % MOST]);
  kjit_destroy_context(context);
  return 0;
}
