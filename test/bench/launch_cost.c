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
  "kernel range(r, a: f32, x) { for i in grid_range(len(r)) { r[i] = a * x[i] } }\n";

/* arguments: a an array of kjit, t a tensor of the host, s a scalar */
typedef struct row {
  const char *kernel, *arguments;
  unsigned grid, block;
  bool is_prepared;
} row;

static const row rows[] = {
  { "none", "", 1, 1, false },
  { "one", "a", 1, 1, false },
  { "four", "asaa", 1, 1, false },
  { "arrays", "aaaaaaaaaaaaaaaa", 1, 1, false },
  { "arrays", "tttttttttttttttt", 1, 1, false },
  { "range", "asa", 0, 0, false },
  { "none", "", 1, 1, true },
  { "arrays", "aaaaaaaaaaaaaaaa", 1, 1, true },
};

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
  kjit_device *device;
  kjit_module *module;
  kjit_array *arrays[MOST];
  int64_t length = 1024;
  cuda = (fake_driver){ .devices = 1 };
  fake.has_tight_plans = true;
  require(kj_use_driver(context, find_fake, NULL, &diagnostics), "the driver");
  require(kjit_get_device(context, KJIT_DEVICE_CUDA, 0, &device), "the device");
  require(kjit_parse_module(context, "cost.kir", source, sizeof source - 1, &module), "the module");
  for (int i = 0; i < MOST; i++)
    require(kjit_create_array(device, KJIT_F32, &length, 1, &arrays[i]), "an array");
  for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
    kjit_kernel *kernel;
    kjit_arg arguments[MOST];
    size_t count = strlen(rows[r].arguments);
    kjit_launch_config config = { .grid = { rows[r].grid },
                                  .block = { rows[r].block },
                                  .device = device };
    require(kjit_get_kernel(module, rows[r].kernel, &kernel), rows[r].kernel);
    for (size_t i = 0; i < count; i++) {
      char kind = rows[r].arguments[i];
      arguments[i] = kind == 'a'   ? kjit_arg_array(arrays[i])
                     : kind == 't' ? kjit_arg_tensor(kjit_get_tensor(arrays[i]))
                                   : kjit_arg_f32(1);
    }
    kjit_prepared *prepared = NULL;
    if (rows[r].is_prepared)
      require(kjit_prepare_launch(kernel, &config, arguments, count, &prepared), rows[r].kernel);
    printf("%s %s %s %p\n", prepared ? "prepared" : "kjit_launch", rows[r].kernel,
           count ? rows[r].arguments : "-", (void *)&marker);
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
  for (int i = 0; i < MOST; i++) kjit_release_array(arrays[i]);
  kjit_destroy_context(context);
  return 0;
}
