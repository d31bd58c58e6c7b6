/* functions.c: a simulation program lets its users write material laws in the kernel IR. The laws
 * call tables and functions of the program. The program calls the laws for single points and as C
 * function pointers, and applies them to arrays.
 *
 * functions        prints its results; the exit status is 0 if all results are right */
#include <kjit/kjit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char law[] = "extern func conductivity(t: f64) -> f64 # of the host\n"
                          "extern const STEPS: f64[4]             # captured from the host\n"
                          "const FACTOR = 1.0\n"
                          "func stress(strain, t: f64) {\n"
                          "  if t < 0 { raise \"temperature below 0 K\" }\n"
                          "  var s = zero(dtype(strain))\n"
                          "  for i in range(len(STEPS)) { s += STEPS[i] * strain ** (i + 1) }\n"
                          "  return FACTOR * s * conductivity(t)\n"
                          "}\n"
                          "func polynomial(x) { return x * x - x + 1 }\n"
                          "kernel stresses(out, strain, t: f64) {\n"
                          "  for i in grid_range(len(out)) { out[i] = stress(strain[i], t) }\n"
                          "}\n";

static double conductivity(double t) { return 1 + 0.5 * sqrt(t); }

static double expected(const double *steps, double factor, double strain, double t)
{
  double s = 0;
  for (int i = 0; i < 4; i++) s += steps[i] * pow(strain, i + 1);
  return factor * s * conductivity(t);
}

static int report(kjit_context *context, kjit_status status, const char *what)
{
  char *text = kjit_copy_diagnostics_text(context);
  fprintf(stderr, "%s: %s\n%s", what, kjit_get_status_name(status), text ? text : "");
  kjit_free(context, text);
  return EXIT_FAILURE;
}

/* Modules are immutable: each of these calls returns a new module, and the previous module can be
 * released.
 */
static kjit_status prepare(kjit_context *context, double *steps, kjit_module **module)
{
  int64_t four = 4;
  kjit_tensor tensor = {
    .data = steps, .device_type = 1, .rank = 1, .code = 2, .bits = 64, .lanes = 1, .shape = &four
  };
  kjit_arg captured = kjit_arg_tensor(&tensor), factor = kjit_arg_number(2);
  kjit_module *parsed = NULL, *bound = NULL, *stepped = NULL;
  kjit_status status = kjit_parse_module(context, "law.kir", law, strlen(law), &parsed);
  if (status == KJIT_OK)
    status =
      kjit_bind_extern(parsed, "conductivity", (void (*)(void))conductivity, NULL, 0, &bound);
  if (status == KJIT_OK) status = kjit_set_constant(bound, "STEPS", &captured, &stepped);
  if (status == KJIT_OK) status = kjit_set_constant(stepped, "FACTOR", &factor, module);
  kjit_release_module(parsed);
  kjit_release_module(bound);
  kjit_release_module(stepped);
  return status;
}

static int call(kjit_context *context, kjit_module *module, const double *steps)
{
  kjit_function *stress;
  kjit_arg arguments[2] = { kjit_arg_f64(0.25), kjit_arg_f64(4) }, result;
  kjit_status status = kjit_get_function(module, "stress", &stress);
  if (status == KJIT_OK) status = kjit_call_function(stress, arguments, 2, &result);
  if (status != KJIT_OK) return report(context, status, "stress");
  double value = result.value.f64, wanted = expected(steps, 2, 0.25, 4);
  printf("one point: %.6f, expected %.6f\n", value, wanted);
  arguments[1] = kjit_arg_f64(-1);
  status = kjit_call_function(stress, arguments, 2, &result);
  printf("a mistake of the user: %s\n", kjit_get_status_name(status));
  return fabs(value - wanted) < 1e-12 && status == KJIT_ERROR_KERNEL ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int point(kjit_context *context, kjit_module *module)
{
  kjit_function *function;
  void (*pointer)(void);
  kjit_status status = kjit_get_function(module, "polynomial", &function);
  if (status == KJIT_OK) status = kjit_get_function_pointer(function, "f64(f64)", &pointer);
  if (status != KJIT_OK) return report(context, status, "polynomial");
  double (*polynomial)(double) = (double (*)(double))pointer;
  printf("as a C function: %g %g\n", polynomial(0), polynomial(3));
  return polynomial(3) == 7 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int launch(kjit_context *context, kjit_module *module, const double *steps)
{
  enum { POINTS = 1000 };
  static double strain[POINTS], out[POINTS];
  int64_t points = POINTS;
  kjit_tensor to = { .data = out,
                     .device_type = 1,
                     .rank = 1,
                     .code = 2,
                     .bits = 64,
                     .lanes = 1,
                     .shape = &points },
              from = to;
  from.data = strain;
  for (int i = 0; i < POINTS; i++) strain[i] = i * 0.001;
  kjit_kernel *kernel;
  kjit_device *cpu;
  kjit_arg arguments[3] = { kjit_arg_tensor(&to), kjit_arg_tensor(&from), kjit_arg_f64(9) };
  /* address of the program's function */
  kjit_status status = kjit_get_device(context, KJIT_DEVICE_CPU, 0, &cpu);
  kjit_launch_config config = { .size_bytes = sizeof config, .device = cpu };
  if (status == KJIT_OK) status = kjit_get_kernel(module, "stresses", &kernel);
  if (status == KJIT_OK) status = kjit_launch(kernel, &config, arguments, 3);
  if (status != KJIT_OK) return report(context, status, "stresses");
  int wrong = 0;
  for (int i = 0; i < POINTS; i++)
    wrong += !(fabs(out[i] - expected(steps, 2, strain[i], 9)) <= 1e-12 * (1 + fabs(out[i])));
  printf("over an array: %d of %d wrong\n", wrong, POINTS);
  return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(void)
{
  double steps[4] = { 1, -0.5, 0.25, 3 };
  kjit_context *context;
  kjit_module *module;
  if (kjit_create_context(NULL, &context) != KJIT_OK) return EXIT_FAILURE;
  kjit_status status = prepare(context, steps, &module);
  int result = status == KJIT_OK ? EXIT_SUCCESS : report(context, status, "preparing the law");
  if (result == EXIT_SUCCESS) result = call(context, module, steps);
  if (result == EXIT_SUCCESS) result = point(context, module);
  if (result == EXIT_SUCCESS) result = launch(context, module, steps);
  kjit_destroy_context(context);
  return result;
}
