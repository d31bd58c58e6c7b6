/* Shared memory whose size is computed for each launch: prepared launches whose scalars change the
 * size, and a size that is rejected, after which the prepared launch still works.
 * RUN: %programs/shared_sizes cpu
 * RUN: %if cuda %{ %programs/shared_sizes cuda %}
 */
#include <kjit/kjit.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 32, MOST = 4000 };

static const char text[] = "kernel reversed(r, n) {\n"
                           "  shared s: i32[n, 2]\n"
                           "  for i in block_range(n) {\n"
                           "    s[i, 0] = i32(i)\n"
                           "    s[i, 1] = 1\n"
                           "  }\n"
                           "  syncthreads()\n"
                           "  for i in block_range(n) { r[i] = s[n - 1 - i, 0] + s[i, 1] }\n"
                           "}\n";

static kjit_context *context;

static void expect(kjit_status got, kjit_status wanted, const char *what)
{
  if (got == wanted) return;
  char *messages = kjit_copy_diagnostics_text(context);
  fprintf(stderr, "%s: %s instead of %s\n%s", what, kjit_get_status_name(got),
          kjit_get_status_name(wanted), messages ? messages : "");
  exit(1);
}

static void run(kjit_prepared *prepared, kjit_device *device, int32_t *result, int32_t n)
{
  kjit_arg size = kjit_arg_i32(n);
  memset(result, 0, MOST * sizeof *result);
  expect(kjit_set_prepared_argument(prepared, 1, &size), KJIT_OK, "set");
  expect(kjit_run_prepared(prepared, NULL), KJIT_OK, "run");
  expect(kjit_synchronize_device(device), KJIT_OK, "synchronize");
}

static void check(const int32_t *result, int32_t n)
{
  for (int32_t i = 0; i < MOST; i++) {
    int32_t wanted = i < n ? n - i : 0;
    if (result[i] == wanted) continue;
    fprintf(stderr, "n = %d: r[%d] is %d instead of %d\n", n, i, result[i], wanted);
    exit(1);
  }
}

int main(int argc, char **argv)
{
  bool is_cuda = argc > 1 && !strcmp(argv[1], "cuda");
  kjit_config config = { .size_bytes = sizeof config };
  config.cache_directory = "";
  expect(kjit_create_context(&config, &context), KJIT_OK, "context");
  kjit_device *device;
  kjit_module *module;
  kjit_kernel *kernel;
  kjit_prepared *prepared;
  expect(kjit_get_device(context, is_cuda ? KJIT_DEVICE_CUDA : KJIT_DEVICE_CPU, 0, &device),
         KJIT_OK, "device");
  expect(kjit_parse_module(context, "shared.kir", text, strlen(text), &module), KJIT_OK, "parse");
  expect(kjit_get_kernel(module, "reversed", &kernel), KJIT_OK, "kernel");
  static int32_t result[MOST];
  int64_t shape[] = { MOST };
  kjit_tensor tensor = {
    .data = result, .device_type = 1, .rank = 1, .code = 0, .bits = 32, .lanes = 1, .shape = shape
  };
  kjit_arg arguments[] = { kjit_arg_tensor(&tensor), kjit_arg_i32(5) };
  kjit_launch_config launch = {
    .size_bytes = sizeof launch, .grid = { 1 }, .block = { BLOCK }, .device = device
  };
  expect(kjit_prepare_launch(kernel, &launch, arguments, 2, &prepared), KJIT_OK, "prepare");
  static const int32_t sizes[] = { 1, 100, 3, MOST, 2, 0, 33 };
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    run(prepared, device, result, sizes[i]);
    check(result, sizes[i]);
  }
  kjit_arg large = kjit_arg_i32(2000000000), small = kjit_arg_i32(-1);
  expect(kjit_set_prepared_argument(prepared, 1, &large), KJIT_OK, "set");
  expect(kjit_run_prepared(prepared, NULL), KJIT_ERROR_LAUNCH, "run with more than there is");
  expect(kjit_set_prepared_argument(prepared, 1, &small), KJIT_OK, "set");
  expect(kjit_run_prepared(prepared, NULL), KJIT_ERROR_LAUNCH, "run with a negative extent");
  run(prepared, device, result, 7);
  check(result, 7);
  kjit_destroy_prepared(prepared);
  kjit_release_module(module);
  kjit_destroy_context(context);
  return 0;
}
