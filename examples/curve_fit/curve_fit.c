/* curve_fit.c: fits a damped wave, a exp(-k t) cos(w t), to measured values by least squares.
 *
 * kjit derives both parts of the fit from one func. kjit_derive returns the func that computes an
 * error and its derivatives by a, k and w. kjit_map applies it to all times, and a product of the
 * results gives the matrix of the normal equations. kjit_get_adjoint returns the adjoint of the
 * kernel that sums the squared errors; its launch computes the gradient. Each step of the
 * Levenberg-Marquardt method uses this matrix and this gradient.
 *
 *   curve_fit cpu|cuda TIMES VALUES A K W
 *
 * TIMES and VALUES are files of f64, one number for each measurement. A, K and W are the first
 * guess. The program prints the parameters of the fit, and the largest relative difference between
 * the gradients by the adjoint, by the derived func, and by central differences. */
#include <kjit/kjit.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARAMETERS = 3, ROWS = PARAMETERS + 1, MOST_STEPS = 200 };

static const char source[] =
  "func error(t, y, a, k, w) { return a * exp(-k * t) * cos(w * t) - y }\n"
  "kernel misfit(t, y, p, sum) {\n"
  "  for i in grid_range(t.size) {\n"
  "    let e = error(t[i], y[i], p[0], p[1], p[2])\n"
  "    atomic_add(sum[0], 0.5 * e * e)\n"
  "  }\n"
  "}\n";

static kjit_context *context;

#define TRY(call) try((call), #call)
static void try(kjit_status status, const char *call)
{
  if (status == KJIT_OK) return;
  fprintf(stderr, "%s\n%s\n", call, kjit_copy_diagnostics_text(context));
  exit(EXIT_FAILURE);
}

static void fail(const char *what, const char *name)
{
  fprintf(stderr, "curve_fit: %s: %s\n", name, what);
  exit(EXIT_FAILURE);
}

/* Returns the larger number, or NaN if one of them is NaN, which fmax ignores. */
static double larger(double x, double y) { return x >= y || isnan(x) ? x : y; }

/* ---- the fit's arrays and functions ---- */

typedef struct fit {
  kjit_device *device;
  int64_t count;                     /* number of measurements */
  kjit_array *times, *values;        /* [count] */
  kjit_array *rows;                  /* [ROWS][count]: errors, derivatives by a, k, w */
  kjit_array *products;              /* [ROWS][ROWS]: scalar products of the rows */
  kjit_array *parameters, *gradient; /* [PARAMETERS] */
  /* Arrays of one element: the sum of squared errors, and the number 1, with which the reverse
   * derivative starts. */
  kjit_array *sum, *one;
  kjit_module *module, *derived, *reversed;
  kjit_function *slopes; /* error and its derivatives by a, k and w */
  kjit_kernel *misfit, *adjoint;
} fit;

static kjit_array *create(const fit *f, int64_t rows, int64_t columns)
{
  const int64_t shape[] = { rows, columns };
  kjit_array *array = NULL;
  TRY(kjit_create_array(f->device, KJIT_F64, rows == 1 ? &shape[1] : shape, rows == 1 ? 1 : 2,
                        &array));
  return array;
}

static void build(fit *f)
{
  static const uint32_t of_error[] = { 2, 3, 4 }, of_misfit[] = { 2, 3 };
  const double one = 1;
  TRY(kjit_parse_module(context, "curve_fit", source, strlen(source), &f->module));
  TRY(kjit_derive(f->module, "error", KJIT_VJP, of_error, 3, &f->derived, &f->slopes));
  TRY(kjit_get_kernel(f->module, "misfit", &f->misfit));
  TRY(kjit_get_adjoint(f->misfit, of_misfit, 2, &f->reversed, &f->adjoint));
  f->rows = create(f, ROWS, f->count);
  f->products = create(f, ROWS, ROWS);
  f->parameters = create(f, 1, PARAMETERS);
  f->gradient = create(f, 1, PARAMETERS);
  f->sum = create(f, 1, 1);
  f->one = create(f, 1, 1);
  TRY(kjit_copy_from_host(f->one, &one, sizeof one, NULL));
}

static void release(fit *f)
{
  kjit_array *const arrays[] = { f->times,      f->values,   f->rows, f->products,
                                 f->parameters, f->gradient, f->sum,  f->one };
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) kjit_release_array(arrays[i]);
  kjit_release_module(f->reversed);
  kjit_release_module(f->derived);
  kjit_release_module(f->module);
}

/* ---- the misfit and its derivatives ---- */

static void fill(kjit_array *array)
{
  const kjit_arg destination = kjit_arg_array(array), zero = kjit_arg_number(0);
  TRY(kjit_fill(context, &destination, &zero, NULL));
}

static double compute_misfit(const fit *f, const double *parameters)
{
  double sum;
  TRY(kjit_copy_from_host(f->parameters, parameters, PARAMETERS * sizeof *parameters, NULL));
  fill(f->sum);
  const kjit_arg arguments[] = { kjit_arg_array(f->times), kjit_arg_array(f->values),
                                 kjit_arg_array(f->parameters), kjit_arg_array(f->sum) };
  TRY(kjit_launch(f->misfit, NULL, arguments, 4));
  TRY(kjit_copy_to_host(f->sum, &sum, sizeof sum, NULL));
  return sum;
}

/* The adjoint adds to the gradient. It does not change the derivative of the sum, which is 1. */
static void compute_gradient(const fit *f, const double *parameters, double *gradient)
{
  TRY(kjit_copy_from_host(f->parameters, parameters, PARAMETERS * sizeof *parameters, NULL));
  fill(f->gradient);
  const kjit_arg arguments[] = { kjit_arg_array(f->times),      kjit_arg_array(f->values),
                                 kjit_arg_array(f->parameters), kjit_arg_array(f->sum),
                                 kjit_arg_array(f->gradient),   kjit_arg_array(f->one) };
  TRY(kjit_launch(f->adjoint, NULL, arguments, 6));
  TRY(kjit_copy_to_host(f->gradient, gradient, PARAMETERS * sizeof *gradient, NULL));
}

/* Computes the scalar products of the errors and their derivatives. Row 0 of the result contains
 * the gradient, and the other rows contain the matrix of the normal equations. */
static void compute_products(const fit *f, const double *parameters, double products[ROWS][ROWS])
{
  const kjit_tensor *all = kjit_get_tensor(f->rows);
  kjit_tensor tensors[ROWS];
  kjit_operand results[ROWS], operands[] = { kjit_operand_array(f->times),
                                             kjit_operand_array(f->values),
                                             kjit_operand_of(kjit_arg_f64(parameters[0])),
                                             kjit_operand_of(kjit_arg_f64(parameters[1])),
                                             kjit_operand_of(kjit_arg_f64(parameters[2])),
                                             kjit_operand_of(kjit_arg_f64(1)) };
  for (int i = 0; i < ROWS; i++) {
    tensors[i] = *all;
    tensors[i].rank = 1;
    tensors[i].shape = &all->shape[1];
    tensors[i].strides = NULL;
    tensors[i].byte_offset = all->byte_offset + (uint64_t)(i * f->count) * sizeof(double);
    results[i] = kjit_operand_tensor(&tensors[i]);
  }
  TRY(kjit_map(context, results, ROWS, f->slopes, operands, 6, NULL));
  const kjit_operand rows = kjit_operand_array(f->rows), both[] = { rows, rows },
                     product = kjit_operand_array(f->products);
  TRY(kjit_einsum(context, &product, "in,jn->ij", both, 2, NULL));
  TRY(kjit_copy_to_host(f->products, products, sizeof(double[ROWS][ROWS]), NULL));
}

/* ---- the Levenberg-Marquardt method ---- */

/* Solves a x = b for a symmetric positive definite matrix by Gaussian elimination. */
static void solve(double a[PARAMETERS][PARAMETERS], double b[PARAMETERS])
{
  for (int k = 0; k < PARAMETERS; k++)
    for (int i = k + 1; i < PARAMETERS; i++) {
      double factor = a[i][k] / a[k][k];
      for (int j = k; j < PARAMETERS; j++) a[i][j] -= factor * a[k][j];
      b[i] -= factor * b[k];
    }
  for (int k = PARAMETERS; k-- > 0;) {
    for (int j = k + 1; j < PARAMETERS; j++) b[k] -= a[k][j] * b[j];
    b[k] /= a[k][k];
  }
}

/* Computes the parameters after a step with this damping factor. Returns the length of the step
 * relative to the parameters, or NaN if the step cannot be computed. */
static double make_step(const fit *f, const double *parameters, double damping, double *next)
{
  double products[ROWS][ROWS], a[PARAMETERS][PARAMETERS], step[PARAMETERS], length = 0;
  compute_products(f, parameters, products);
  compute_gradient(f, parameters, step);
  for (int i = 0; i < PARAMETERS; i++) {
    for (int j = 0; j < PARAMETERS; j++)
      a[i][j] = products[i + 1][j + 1] * (i == j ? 1 + damping : 1);
    step[i] = -step[i];
  }
  solve(a, step);
  for (int i = 0; i < PARAMETERS; i++) {
    next[i] = parameters[i] + step[i];
    length = larger(length, fabs(step[i]) / (fabs(next[i]) + 1e-300));
  }
  return length;
}

/* Fits the parameters. Returns false if the method does not converge. */
static bool minimize(const fit *f, double *parameters)
{
  double next[PARAMETERS], damping = 1e-3, misfit = compute_misfit(f, parameters);
  for (int i = 0; i < MOST_STEPS; i++) {
    double length = make_step(f, parameters, damping, next), lower = compute_misfit(f, next);
    bool is_better = lower <= misfit;
    if (is_better) memcpy(parameters, next, sizeof next);
    if (is_better) misfit = lower;
    damping = is_better ? damping / 10 : damping * 10;
    if (length < 1e-9) return true;
  }
  return false;
}

/* ---- the check ---- */

/* Prints the largest differences between three gradients: by the adjoint, by the derived func, and
 * by central differences. */
static void compare_gradients(const fit *f, const double *parameters)
{
  double gradient[PARAMETERS], products[ROWS][ROWS], of_func = 0, of_differences = 0, scale = 0;
  compute_gradient(f, parameters, gradient);
  compute_products(f, parameters, products);
  for (int i = 0; i < PARAMETERS; i++) scale = larger(scale, fabs(gradient[i]));
  for (int i = 0; i < PARAMETERS; i++) {
    double near[PARAMETERS], h = 1e-5 * fabs(parameters[i]), difference;
    memcpy(near, parameters, sizeof near);
    near[i] = parameters[i] + h;
    difference = compute_misfit(f, near);
    near[i] = parameters[i] - h;
    difference = (difference - compute_misfit(f, near)) / (2 * h);
    of_func = larger(of_func, fabs(products[0][i + 1] - gradient[i]) / scale);
    of_differences = larger(of_differences, fabs(difference - gradient[i]) / scale);
  }
  printf("gradient: func %.1e differences %.1e\n", of_func, of_differences);
}

/* ---- arguments ---- */

static kjit_array *read_numbers(fit *f, const char *path)
{
  FILE *file = fopen(path, "rb");
  if (!file || fseek(file, 0, SEEK_END)) fail("cannot be read", path);
  long bytes = ftell(file);
  if (bytes <= 0 || bytes % (long)sizeof(double)) fail("does not consist of f64 numbers", path);
  int64_t count = bytes / (long)sizeof(double);
  if (f->count && count != f->count) fail("does not have one value for each time", path);
  f->count = count;
  double *numbers = malloc((size_t)bytes);
  rewind(file);
  if (!numbers || fread(numbers, 1, (size_t)bytes, file) != (size_t)bytes)
    fail("cannot be read", path);
  fclose(file);
  kjit_array *array = create(f, 1, count);
  TRY(kjit_copy_from_host(array, numbers, (size_t)bytes, NULL));
  free(numbers);
  return array;
}

static double read_number(const char *name, const char *text)
{
  char *end;
  double number = strtod(text, &end);
  if (end == text || *end || !isfinite(number)) fail("is not a number", name);
  return number;
}

int main(int argc, char **argv)
{
  fit f = { 0 };
  double parameters[PARAMETERS];
  if (argc != 7) {
    fprintf(stderr, "usage: curve_fit cpu|cuda TIMES VALUES A K W\n");
    return 2;
  }
  bool is_cuda = strcmp(argv[1], "cuda") == 0;
  if (!is_cuda && strcmp(argv[1], "cpu") != 0) fail("expected cpu or cuda", argv[1]);
  for (int i = 0; i < PARAMETERS; i++) parameters[i] = read_number(argv[4 + i], argv[4 + i]);
  if (kjit_create_context(NULL, &context) != KJIT_OK) return EXIT_FAILURE;
  TRY(kjit_get_device(context, is_cuda ? KJIT_DEVICE_CUDA : KJIT_DEVICE_CPU, 0, &f.device));
  if (!f.device) fail("there is no such device", argv[1]);
  f.times = read_numbers(&f, argv[2]);
  f.values = read_numbers(&f, argv[3]);
  build(&f);
  compare_gradients(&f, parameters);
  bool has_converged = minimize(&f, parameters);
  if (has_converged)
    printf("fit: %.17g %.17g %.17g\n", parameters[0], parameters[1], parameters[2]);
  release(&f);
  kjit_destroy_context(context);
  if (!has_converged) fail("the fit does not converge from this guess", "A K W");
  return EXIT_SUCCESS;
}
