/* A program outside of kjit's source tree. It parses a module, prints it, and runs a kernel, which
 * needs the compiler that is installed next to the library. */
#include <kjit/kjit.h>
#include <stdio.h>
#include <string.h>

static const char text[] =
  "kernel axpy(r, a, x, y) { for i in grid_range(len(r)) { r[i] = a * x[i] + y[i] } }\n";

static int fail(kjit_context *context, const char *what)
{
  char *messages = kjit_copy_diagnostics_text(context);
  fprintf(stderr, "%s: %s\n", what, messages ? messages : "");
  kjit_free(context, messages);
  return 1;
}

static int run(kjit_context *context, kjit_module *module)
{
  float r[5] = { 0 }, x[5] = { 1, 2, 3, 4, 5 }, y[5] = { 10, 20, 30, 40, 50 };
  const int64_t extent = 5;
  kjit_tensor tensor = kjit_make_tensor(r, KJIT_F32, 1, &extent),
              in_x = kjit_make_tensor(x, KJIT_F32, 1, &extent),
              in_y = kjit_make_tensor(y, KJIT_F32, 1, &extent);
  kjit_arg arguments[4] = { kjit_arg_tensor(&tensor), kjit_arg_f32(2), kjit_arg_tensor(&in_x),
                            kjit_arg_tensor(&in_y) };
  kjit_launch_config config = { .size_bytes = sizeof config };
  kjit_kernel *kernel;
  if (kjit_get_device(context, KJIT_DEVICE_CPU, 0, &config.device) != KJIT_OK)
    return fail(context, "device");
  if (kjit_get_kernel(module, "axpy", &kernel) != KJIT_OK) return fail(context, "kernel");
  if (kjit_launch(kernel, &config, arguments, 4) != KJIT_OK) return fail(context, "launch");
  if (kjit_synchronize_device(config.device) != KJIT_OK) return fail(context, "synchronize");
  printf("r = %g %g %g %g %g\n", r[0], r[1], r[2], r[3], r[4]);
  return 0;
}

int main(void)
{
  kjit_context *context;
  kjit_module *module;
  char *printed;
  int result;
  if (kjit_create_context(NULL, &context) != KJIT_OK) return 1;
  if (kjit_parse_module(context, "axpy.kir", text, strlen(text), &module) != KJIT_OK)
    return fail(context, "parse");
  if (kjit_copy_module_text(module, &printed) != KJIT_OK) return fail(context, "print");
  fputs(printed, stdout);
  kjit_free(context, printed);
  result = run(context, module);
  kjit_release_module(module);
  kjit_destroy_context(context);
  return result;
}
