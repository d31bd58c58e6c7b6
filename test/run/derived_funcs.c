/* kjit_derive: derivatives as funcs in calls, maps and linked kernels, and second derivatives,
 * compared at random arguments with derivatives that were computed by hand.
 * RUN: %programs/derived_funcs
 */
#include <kjit/kjit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../seed.h"

#define REQUIRE(condition) require((condition), #condition, __LINE__)
static void require(int holds, const char *what, int line)
{
  if (holds) return;
  fprintf(stderr, "line %d: %s\n", line, what);
  exit(EXIT_FAILURE);
}

static kjit_context *context;
static unsigned seed;

static const char text[] = "func wave(x, y) { return sin(x) * y * y }\n"
                           "func power(x: f64, n: i32, const most) {\n"
                           "  var r = 1.0\n"
                           "  for i in range(most) { if i < n { r = r * x } }\n"
                           "  return r\n"
                           "}\n"
                           "func pick(x, n) { return x * x * n }\n"
                           "func dot(x: f64[:], y: f64[:]) {\n"
                           "  var s = 0.0\n"
                           "  for i in range(3) { s = s + x[i] * y[i] * y[i] }\n"
                           "  return s\n"
                           "}\n"
                           "func scale(r, x) { r[0] = x * x * x }\n"
                           "func twice(op: func, x) { return op(x) * op(x) }\n"
                           "func grad_wave(x) { return x }\n"
                           "kernel own(r) { r[0] = 1 }\n";

static double draw(void) { return rand_r(&seed) / (double)RAND_MAX + 0.25; }

static int is_near(double a, double b) { return fabs(a - b) <= 1e-13 * (1 + fabs(b)); }

typedef struct derived {
  kjit_module *module;
  kjit_function *function;
} derived;

static derived derive(kjit_module *module, const char *name, kjit_derivative kind,
                      const uint32_t *parameters, size_t count)
{
  derived made = { 0 };
  kjit_status status =
    kjit_derive(module, name, kind, parameters, count, &made.module, &made.function);
  if (status != KJIT_OK)
    fprintf(stderr, "%s: %s\n", name, kjit_get_diagnostic(context, 0)->message);
  REQUIRE(status == KJIT_OK);
  return made;
}

/* Calls a func that returns one f64, or a tuple of up to four. */
static void call(derived of, const kjit_arg *arguments, size_t count, double *results)
{
  kjit_arg result = kjit_make_arg(KJIT_ARG_BY_ADDRESS, KJIT_ANY);
  result.value.address = results;
  kjit_status status = kjit_call_function(of.function, arguments, count, &result);
  if (status != KJIT_OK) fprintf(stderr, "%s\n", kjit_get_diagnostic(context, 0)->message);
  REQUIRE(status == KJIT_OK);
  if (result.kind == KJIT_ARG_VALUE) results[0] = result.value.f64;
}

static void test_calls(kjit_module *module)
{
  static const uint32_t first = 0, second = 1;
  const double x = draw(), y = draw(), u = draw(), v = draw();
  const double value = sin(x) * y * y, dx = cos(x) * y * y, dy = 2 * sin(x) * y;
  const kjit_arg a[] = { kjit_arg_f64(x), kjit_arg_f64(y), kjit_arg_f64(u), kjit_arg_f64(v) };
  double r[4] = { 0 };
  derived forward = derive(module, "wave", KJIT_JVP, NULL, 0);
  call(forward, a, 4, r);
  REQUIRE(is_near(r[0], value) && is_near(r[1], dx * u + dy * v));
  derived partial = derive(module, "wave", KJIT_JVP, &second, 1);
  call(partial, a, 3, r);
  REQUIRE(is_near(r[0], value) && is_near(r[1], dy * u));
  derived reverse = derive(module, "wave", KJIT_VJP, NULL, 0);
  call(reverse, a, 3, r);
  REQUIRE(is_near(r[0], value) && is_near(r[1], dx * u) && is_near(r[2], dy * u));
  derived gradient = derive(module, "wave", KJIT_GRAD, &first, 1);
  call(gradient, a, 2, r);
  REQUIRE(is_near(r[0], dx));
  derived curved = derive(gradient.module, "grad_wave_2", KJIT_GRAD, NULL, 0);
  call(curved, a, 2, r);
  REQUIRE(is_near(r[0], -value) && is_near(r[1], 2 * cos(x) * y));
  kjit_release_module(forward.module);
  kjit_release_module(partial.module);
  kjit_release_module(reverse.module);
  kjit_release_module(curved.module);
  kjit_release_module(gradient.module);
}

/* Only parameters that can hold floats get a derivative. Const parameters stay const. */
static void test_parameters(kjit_module *module)
{
  const double x = draw();
  const kjit_arg a[] = { kjit_arg_f64(x), kjit_arg_i32(3), kjit_arg_i32(5), kjit_arg_f64(2) };
  static const uint32_t zero = 0;
  double r[2];
  derived power = derive(module, "power", KJIT_JVP, NULL, 0);
  call(power, a, 4, r);
  REQUIRE(is_near(r[0], x * x * x) && is_near(r[1], 6 * x * x));
  derived unknown = derive(module, "pick", KJIT_JVP, NULL, 0);
  const kjit_arg all[] = { a[0], a[1], kjit_arg_f64(1), kjit_arg_f64(1) };
  REQUIRE(kjit_call_function(unknown.function, all, 4, NULL) == KJIT_ERROR_TYPE);
  REQUIRE(strstr(kjit_get_diagnostic(context, 0)->message, "parameter 1") != NULL);
  derived known = derive(module, "pick", KJIT_JVP, &zero, 1);
  call(known, all, 3, r);
  REQUIRE(is_near(r[1], 6 * x));
  derived gradient = derive(module, "pick", KJIT_GRAD, NULL, 0);
  call(gradient, all, 2, r);
  REQUIRE(is_near(r[0], 6 * x));
  kjit_release_module(power.module);
  kjit_release_module(unknown.module);
  kjit_release_module(known.module);
  kjit_release_module(gradient.module);
}

/* Derivatives with respect to arrays are added to arrays of the caller. */
static void test_arrays(kjit_module *module)
{
  double x[3], y[3], dx[3] = { 1, 2, 3 }, dy[3] = { 0 }, r[2];
  const int64_t n = 3;
  kjit_tensor tensors[] = { kjit_make_tensor(x, KJIT_F64, 1, &n),
                            kjit_make_tensor(y, KJIT_F64, 1, &n),
                            kjit_make_tensor(dx, KJIT_F64, 1, &n),
                            kjit_make_tensor(dy, KJIT_F64, 1, &n) };
  kjit_arg a[5];
  for (int i = 0; i < 3; i++) x[i] = draw(), y[i] = draw();
  for (int i = 0; i < 4; i++) a[i] = kjit_arg_tensor(&tensors[i]);
  derived gradient = derive(module, "dot", KJIT_GRAD, NULL, 0);
  REQUIRE(kjit_call_function(gradient.function, a, 4, NULL) == KJIT_OK);
  for (int i = 0; i < 3; i++)
    REQUIRE(is_near(dx[i], i + 1 + y[i] * y[i]) && is_near(dy[i], 2 * x[i] * y[i]));
  derived store = derive(module, "scale", KJIT_VJP, NULL, 0);
  const kjit_arg stored[] = { a[0], kjit_arg_f64(y[0]), a[2] };
  const double before = dx[0];
  call(store, stored, 3, r);
  REQUIRE(is_near(x[0], y[0] * y[0] * y[0]) && is_near(r[0], 3 * y[0] * y[0] * before));
  REQUIRE(dx[0] == 0);
  kjit_release_module(gradient.module);
  kjit_release_module(store.module);
}

/* Tests kjit_map with one result array for the value and one for each derivative. */
static void test_map(kjit_module *module)
{
  enum { COUNT = 100 };
  double x[COUNT], y[COUNT], results[3][COUNT];
  const int64_t n = COUNT;
  for (int i = 0; i < COUNT; i++) x[i] = draw(), y[i] = draw();
  kjit_tensor in[] = { kjit_make_tensor(x, KJIT_F64, 1, &n), kjit_make_tensor(y, KJIT_F64, 1, &n) };
  kjit_tensor out[3];
  kjit_operand operands[3], made[3];
  for (int i = 0; i < 3; i++) {
    out[i] = kjit_make_tensor(results[i], KJIT_F64, 1, &n);
    made[i] = kjit_operand_of(kjit_arg_tensor(&out[i]));
    operands[i] = kjit_operand_of(i < 2 ? kjit_arg_tensor(&in[i]) : kjit_arg_f64(2));
  }
  derived reverse = derive(module, "wave", KJIT_VJP, NULL, 0);
  REQUIRE(kjit_map(context, made, 3, reverse.function, operands, 3, NULL) == KJIT_OK);
  for (int i = 0; i < COUNT; i++)
    REQUIRE(is_near(results[0][i], sin(x[i]) * y[i] * y[i]) &&
            is_near(results[1][i], 2 * cos(x[i]) * y[i] * y[i]) &&
            is_near(results[2][i], 4 * sin(x[i]) * y[i]));
  kjit_release_module(reverse.module);
}

static void test_link(kjit_module *module)
{
  static const char kernels[] = "extern func jvp_wave(x, y, dx, dy)\n"
                                "kernel k(r, x, y) { r[0] = jvp_wave(x, y, 1.0, 0.0)[1] }\n";
  const double x = draw(), y = draw();
  double r = 0;
  const int64_t n = 1;
  kjit_tensor tensor = kjit_make_tensor(&r, KJIT_F64, 1, &n);
  const kjit_arg arguments[] = { kjit_arg_tensor(&tensor), kjit_arg_f64(x), kjit_arg_f64(y) };
  kjit_module *open, *linked;
  kjit_kernel *kernel;
  derived forward = derive(module, "wave", KJIT_JVP, NULL, 0);
  REQUIRE(kjit_parse_module(context, "kernels", kernels, strlen(kernels), &open) == KJIT_OK);
  REQUIRE(kjit_link_module(open, forward.module, &linked) == KJIT_OK);
  REQUIRE(kjit_get_kernel(linked, "k", &kernel) == KJIT_OK);
  const kjit_launch_config config = { .size_bytes = sizeof config, .grid = { 1 }, .block = { 1 } };
  REQUIRE(kjit_launch(kernel, &config, arguments, 3) == KJIT_OK);
  REQUIRE(is_near(r, cos(x) * y * y));
  kjit_release_module(open);
  kjit_release_module(forward.module);
  kjit_release_module(linked);
}

static void test_misuse(kjit_module *module)
{
  static const struct {
    const char *name;
    kjit_derivative kind;
    uint32_t parameters[2];
    size_t count;
    kjit_status status;
    const char *message;
  } rows[] = {
    { "none", KJIT_JVP, { 0 }, 0, KJIT_ERROR_NAME, "no function `none`" },
    { "own", KJIT_JVP, { 0 }, 0, KJIT_ERROR_NAME, "`own`" },
    { "sin", KJIT_GRAD, { 0 }, 0, KJIT_ERROR_UNSUPPORTED, "`sin` is a built-in" },
    { "wave", (kjit_derivative)3, { 0 }, 0, KJIT_ERROR_MISUSE, "3 is not a kjit_derivative" },
    { "wave", KJIT_JVP, { 2 }, 1, KJIT_ERROR_MISUSE, "parameter 2" },
    { "wave", KJIT_JVP, { 1, 1 }, 2, KJIT_ERROR_MISUSE, "is given twice" },
    { "power", KJIT_GRAD, { 2 }, 1, KJIT_ERROR_MISUSE, "not a value at run time" },
    { "twice", KJIT_GRAD, { 0 }, 1, KJIT_ERROR_MISUSE, "not a value at run time" },
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    derived made = { 0 };
    REQUIRE(kjit_derive(module, rows[i].name, rows[i].kind, rows[i].parameters, rows[i].count,
                        &made.module, &made.function) == rows[i].status);
    REQUIRE(strstr(kjit_get_diagnostic(context, 0)->message, rows[i].message) != NULL);
    REQUIRE(!made.module && !made.function);
  }
  derived made;
  REQUIRE(kjit_derive(module, "wave", KJIT_JVP, NULL, 1, &made.module, &made.function) ==
          KJIT_ERROR_MISUSE);
  REQUIRE(kjit_derive(module, "wave", KJIT_JVP, NULL, 0, NULL, &made.function) ==
          KJIT_ERROR_MISUSE);
}

int main(void)
{
  kjit_config config = { .size_bytes = sizeof config, .cache_directory = "" };
  kjit_module *module;
  seed = kj_draw_seed();
  REQUIRE(kjit_create_context(&config, &context) == KJIT_OK);
  REQUIRE(kjit_parse_module(context, "funcs", text, strlen(text), &module) == KJIT_OK);
  test_calls(module);
  test_parameters(module);
  test_arrays(module);
  test_map(module);
  test_link(module);
  test_misuse(module);
  kjit_release_module(module);
  kjit_destroy_context(context);
  return 0;
}
