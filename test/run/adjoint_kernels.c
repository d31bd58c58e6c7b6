/* kjit_get_adjoint: the adjoint of a kernel as a kernel, for scalars and arrays, compared at random
 * arguments with derivatives that were computed by hand; and calls that it rejects.
 * RUN: %programs/adjoint_kernels
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

static const char text[] =
  "kernel curve(x, k: f64, y) { for i in grid_range(x.size) { y[i] = k * x[i] * x[i] } }\n"
  "kernel pick(x: f64[:], p: i32[:], y: f64[:]) { for i in grid_range(p.size) { y[i] = x[p[i]] } "
  "}\n"
  "kernel each(op: func, const n, y) { for i in grid_range(n) { y[i] = op(y[i]) } }\n"
  "kernel square(y) { for i in grid_range(y.size) { y[i] = y[i] * y[i] } }\n"
  "kernel adjoint_pick(y) { y[0] = 1 }\n";

enum { COUNT = 300 };

static double draw(void) { return rand_r(&seed) / (double)RAND_MAX + 0.25; }

static int is_near(double a, double b) { return fabs(a - b) <= 1e-12 * (1 + fabs(b)); }

typedef struct adjoint {
  kjit_module *module;
  kjit_kernel *kernel;
} adjoint;

static adjoint derive(kjit_module *module, const char *name, const uint32_t *parameters,
                      size_t count)
{
  adjoint made = { 0 };
  kjit_kernel *kernel;
  REQUIRE(kjit_get_kernel(module, name, &kernel) == KJIT_OK);
  kjit_status status = kjit_get_adjoint(kernel, parameters, count, &made.module, &made.kernel);
  if (status != KJIT_OK) fprintf(stderr, "%s\n", kjit_get_diagnostic(context, 0)->message);
  REQUIRE(status == KJIT_OK);
  return made;
}

static void launch(adjoint of, const kjit_arg *arguments, size_t count)
{
  kjit_status status = kjit_launch(of.kernel, NULL, arguments, count);
  if (status != KJIT_OK) fprintf(stderr, "%s\n", kjit_get_diagnostic(context, 0)->message);
  REQUIRE(status == KJIT_OK);
}

static void test_scalar(kjit_module *module)
{
  static const uint32_t all[] = { 0, 1, 2 };
  static double x[COUNT], y[COUNT], dx[COUNT], dy[COUNT];
  const double k = draw();
  double dk = 1, sum = 1;
  const int64_t n = COUNT, one = 1;
  for (int i = 0; i < COUNT; i++) x[i] = draw(), dx[i] = i, dy[i] = draw();
  kjit_tensor tensors[] = { kjit_make_tensor(x, KJIT_F64, 1, &n),
                            kjit_make_tensor(y, KJIT_F64, 1, &n),
                            kjit_make_tensor(dx, KJIT_F64, 1, &n),
                            kjit_make_tensor(&dk, KJIT_F64, 1, &one),
                            kjit_make_tensor(dy, KJIT_F64, 1, &n) };
  const kjit_arg a[] = { kjit_arg_tensor(&tensors[0]), kjit_arg_f64(k),
                         kjit_arg_tensor(&tensors[1]), kjit_arg_tensor(&tensors[2]),
                         kjit_arg_tensor(&tensors[3]), kjit_arg_tensor(&tensors[4]) };
  adjoint made = derive(module, "curve", all, 3);
  launch(made, a, 6);
  for (int i = 0; i < COUNT; i++) {
    sum += dy[i] * x[i] * x[i];
    REQUIRE(is_near(dx[i], i + 2 * k * x[i] * dy[i]) && y[i] == 0);
  }
  REQUIRE(is_near(dk, sum));
  kjit_release_module(made.module);
}

/* If no parameter numbers are given, the arrays of floats have derivatives. The name of the new
 * kernel is not used in the module. */
static void test_arrays(kjit_module *module)
{
  double x[4] = { 0 }, y[COUNT] = { 0 }, dx[4] = { 0 }, dy[COUNT], sums[4] = { 0 };
  int32_t p[COUNT];
  const int64_t n = COUNT, four = 4;
  for (int i = 0; i < COUNT; i++) {
    p[i] = rand_r(&seed) % 4;
    dy[i] = draw();
    sums[p[i]] += dy[i];
  }
  kjit_tensor tensors[] = { kjit_make_tensor(x, KJIT_F64, 1, &four),
                            kjit_make_tensor(p, KJIT_I32, 1, &n),
                            kjit_make_tensor(y, KJIT_F64, 1, &n),
                            kjit_make_tensor(dx, KJIT_F64, 1, &four),
                            kjit_make_tensor(dy, KJIT_F64, 1, &n) };
  kjit_arg a[5];
  for (int i = 0; i < 5; i++) a[i] = kjit_arg_tensor(&tensors[i]);
  adjoint made = derive(module, "pick", NULL, 0);
  kjit_kernel *named;
  REQUIRE(kjit_get_kernel(made.module, "adjoint_pick_2", &named) == KJIT_OK);
  REQUIRE(named == made.kernel);
  launch(made, a, 5);
  for (int i = 0; i < 4; i++) REQUIRE(is_near(dx[i], sums[i]));
  kjit_release_module(made.module);
}

static void test_misuse(kjit_module *module)
{
  static const struct {
    const char *name;
    uint32_t parameters[2];
    size_t count;
    const char *message;
  } rows[] = { { "curve", { 3 }, 1, "parameter 3" },
               { "curve", { 0, 0 }, 2, "is given twice" },
               { "each", { 0 }, 1, "not a value at run time" },
               { "each", { 1 }, 1, "not a value at run time" } };
  kjit_module *made = NULL;
  kjit_kernel *kernel, *adjoint = NULL;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    REQUIRE(kjit_get_kernel(module, rows[i].name, &kernel) == KJIT_OK);
    REQUIRE(kjit_get_adjoint(kernel, rows[i].parameters, rows[i].count, &made, &adjoint) ==
            KJIT_ERROR_MISUSE);
    REQUIRE(strstr(kjit_get_diagnostic(context, 0)->message, rows[i].message) != NULL);
    REQUIRE(!made && !adjoint);
  }
  REQUIRE(kjit_get_adjoint(NULL, NULL, 0, &made, &adjoint) == KJIT_ERROR_MISUSE);
  REQUIRE(kjit_get_adjoint(kernel, NULL, 1, &made, &adjoint) == KJIT_ERROR_MISUSE);
  REQUIRE(kjit_get_adjoint(kernel, NULL, 0, NULL, &adjoint) == KJIT_ERROR_MISUSE);
  REQUIRE(kjit_get_adjoint(kernel, NULL, 0, &made, NULL) == KJIT_ERROR_MISUSE);
}

/* The kernel is compiled, and rejected, at its first launch. */
static void test_refused(kjit_module *module)
{
  double y = 1, dy = 1;
  const int64_t n = 1;
  kjit_tensor tensors[] = { kjit_make_tensor(&y, KJIT_F64, 1, &n),
                            kjit_make_tensor(&dy, KJIT_F64, 1, &n) };
  const kjit_arg a[] = { kjit_arg_tensor(&tensors[0]), kjit_arg_tensor(&tensors[1]) };
  adjoint made = derive(module, "square", NULL, 0);
  REQUIRE(kjit_launch(made.kernel, NULL, a, 2) == KJIT_ERROR_TYPE);
  REQUIRE(strstr(kjit_get_diagnostic(context, 0)->message, "the kernel overwrites this value") !=
          NULL);
  REQUIRE(kjit_get_diagnostic(context, 0)->line == 4);
  kjit_release_module(made.module);
}

int main(void)
{
  kjit_config config = { .size_bytes = sizeof config, .cache_directory = "" };
  kjit_module *module;
  seed = kj_draw_seed();
  REQUIRE(kjit_create_context(&config, &context) == KJIT_OK);
  REQUIRE(kjit_parse_module(context, "kernels", text, strlen(text), &module) == KJIT_OK);
  test_scalar(module);
  test_arrays(module);
  test_misuse(module);
  test_refused(module);
  kjit_release_module(module);
  kjit_destroy_context(context);
  return 0;
}
