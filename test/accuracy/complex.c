/* Reference results of the built-ins for complex numbers, computed with MPFR's real functions in
 * PARTS bits, so that cancellation does not matter. */
#include "accuracy.h"
#include "ir/builtin.h"

enum { PARTS = 600 };
typedef mpfr_t complex_number[2];

static void start(complex_number z)
{
  mpfr_init2(z[0], PARTS);
  mpfr_init2(z[1], PARTS);
}

static void stop(complex_number z)
{
  mpfr_clear(z[0]);
  mpfr_clear(z[1]);
}

static void assign(mpfr_t *r, mpfr_t *z)
{
  mpfr_set(r[0], z[0], MPFR_RNDN);
  mpfr_set(r[1], z[1], MPFR_RNDN);
}

/* The functions below accept the same number for two arguments. */
static void multiply(mpfr_t *r, mpfr_t *x, mpfr_t *y)
{
  complex_number product;
  start(product);
  mpfr_fmms(product[0], x[0], y[0], x[1], y[1], MPFR_RNDN);
  mpfr_fmma(product[1], x[0], y[1], x[1], y[0], MPFR_RNDN);
  assign(r, product);
  stop(product);
}

static void divide(mpfr_t *r, mpfr_t *x, mpfr_t *y)
{
  complex_number quotient;
  mpfr_t size;
  start(quotient);
  mpfr_init2(size, PARTS);
  mpfr_fmma(size, y[0], y[0], y[1], y[1], MPFR_RNDN);
  mpfr_fmma(quotient[0], x[0], y[0], x[1], y[1], MPFR_RNDN);
  mpfr_fmms(quotient[1], x[1], y[0], x[0], y[1], MPFR_RNDN);
  mpfr_div(r[0], quotient[0], size, MPFR_RNDN);
  mpfr_div(r[1], quotient[1], size, MPFR_RNDN);
  mpfr_clear(size);
  stop(quotient);
}

static void exact_abs(mpfr_t *r, mpfr_t *z) { mpfr_hypot(r[0], z[0], z[1], MPFR_RNDN); }
static void exact_arg(mpfr_t *r, mpfr_t *z) { mpfr_atan2(r[0], z[1], z[0], MPFR_RNDN); }

static void exact_exp(mpfr_t *r, mpfr_t *z)
{
  complex_number turn;
  mpfr_t size;
  start(turn);
  mpfr_init2(size, PARTS);
  mpfr_exp(size, z[0], MPFR_RNDN);
  mpfr_sin_cos(turn[1], turn[0], z[1], MPFR_RNDN);
  mpfr_mul(r[0], size, turn[0], MPFR_RNDN);
  mpfr_mul(r[1], size, turn[1], MPFR_RNDN);
  mpfr_clear(size);
  stop(turn);
}

static void exact_log(mpfr_t *r, mpfr_t *z)
{
  complex_number result;
  start(result);
  mpfr_hypot(result[0], z[0], z[1], MPFR_RNDN);
  mpfr_log(result[0], result[0], MPFR_RNDN);
  mpfr_atan2(result[1], z[1], z[0], MPFR_RNDN);
  assign(r, result);
  stop(result);
}

static void exact_log10(mpfr_t *r, mpfr_t *z)
{
  mpfr_t ten;
  mpfr_init2(ten, PARTS);
  mpfr_log_ui(ten, 10, MPFR_RNDN);
  exact_log(r, z);
  mpfr_div(r[0], r[0], ten, MPFR_RNDN);
  mpfr_div(r[1], r[1], ten, MPFR_RNDN);
  mpfr_clear(ten);
}

static void exact_sqrt(mpfr_t *r, mpfr_t *z)
{
  complex_number result;
  start(result);
  mpfr_hypot(result[0], z[0], z[1], MPFR_RNDN);
  mpfr_sub(result[1], result[0], z[0], MPFR_RNDN);
  mpfr_add(result[0], result[0], z[0], MPFR_RNDN);
  for (int i = 0; i < 2; i++) {
    mpfr_div_2ui(result[i], result[i], 1, MPFR_RNDN);
    mpfr_sqrt(result[i], result[i], MPFR_RNDN);
  }
  mpfr_setsign(result[1], result[1], mpfr_signbit(z[1]), MPFR_RNDN);
  assign(r, result);
  stop(result);
}

static void hyperbolic(mpfr_t *r, mpfr_t *z, bool is_sine)
{
  complex_number sides, turn;
  start(sides);
  start(turn);
  mpfr_sinh_cosh(sides[1], sides[0], z[0], MPFR_RNDN);
  mpfr_sin_cos(turn[1], turn[0], z[1], MPFR_RNDN);
  mpfr_mul(r[0], sides[is_sine ? 1 : 0], turn[0], MPFR_RNDN);
  mpfr_mul(r[1], sides[is_sine ? 0 : 1], turn[1], MPFR_RNDN);
  stop(turn);
  stop(sides);
}

static void exact_sinh(mpfr_t *r, mpfr_t *z) { hyperbolic(r, z, true); }
static void exact_cosh(mpfr_t *r, mpfr_t *z) { hyperbolic(r, z, false); }

static void exact_tanh(mpfr_t *r, mpfr_t *z)
{
  complex_number sine, cosine;
  start(sine);
  start(cosine);
  exact_sinh(sine, z);
  exact_cosh(cosine, z);
  divide(r, sine, cosine);
  stop(sine);
  stop(cosine);
}

/* r = i * z, or z / i. */
static void turn(mpfr_t *r, mpfr_t *z, bool is_back)
{
  complex_number turned;
  start(turned);
  mpfr_set(turned[0], z[1], MPFR_RNDN);
  mpfr_set(turned[1], z[0], MPFR_RNDN);
  mpfr_neg(turned[is_back], turned[is_back], MPFR_RNDN);
  assign(r, turned);
  stop(turned);
}

/* f(z) = g(i z) / i */
static void turned(mpfr_t *r, mpfr_t *z, complex_reference function)
{
  complex_number at;
  start(at);
  turn(at, z, false);
  function(r, at);
  turn(r, r, true);
  stop(at);
}

static void exact_sin(mpfr_t *r, mpfr_t *z) { turned(r, z, exact_sinh); }
static void exact_tan(mpfr_t *r, mpfr_t *z) { turned(r, z, exact_tanh); }

static void exact_cos(mpfr_t *r, mpfr_t *z)
{
  complex_number at;
  start(at);
  turn(at, z, false);
  exact_cosh(r, at);
  stop(at);
}

/* log(z + sqrt(z * z + 1)) */
static void exact_asinh(mpfr_t *r, mpfr_t *z)
{
  complex_number root;
  start(root);
  multiply(root, z, z);
  mpfr_add_ui(root[0], root[0], 1, MPFR_RNDN);
  exact_sqrt(root, root);
  mpfr_add(root[0], root[0], z[0], MPFR_RNDN);
  mpfr_add(root[1], root[1], z[1], MPFR_RNDN);
  exact_log(r, root);
  stop(root);
}

/* log((1 + z) / (1 - z)) / 2, computed as a difference, which has the correct branch cuts. */
static void exact_atanh(mpfr_t *r, mpfr_t *z)
{
  complex_number above, below;
  start(above);
  start(below);
  mpfr_add_ui(above[0], z[0], 1, MPFR_RNDN);
  mpfr_set(above[1], z[1], MPFR_RNDN);
  mpfr_ui_sub(below[0], 1, z[0], MPFR_RNDN);
  mpfr_neg(below[1], z[1], MPFR_RNDN);
  exact_log(above, above);
  exact_log(below, below);
  for (int i = 0; i < 2; i++) {
    mpfr_sub(r[i], above[i], below[i], MPFR_RNDN);
    mpfr_div_2ui(r[i], r[i], 1, MPFR_RNDN);
  }
  stop(above);
  stop(below);
}

static void exact_asin(mpfr_t *r, mpfr_t *z) { turned(r, z, exact_asinh); }
static void exact_atan(mpfr_t *r, mpfr_t *z) { turned(r, z, exact_atanh); }

/* pi / 2 - asin(z) */
static void exact_acos(mpfr_t *r, mpfr_t *z)
{
  mpfr_t half;
  mpfr_init2(half, PARTS);
  mpfr_const_pi(half, MPFR_RNDN);
  mpfr_div_2ui(half, half, 1, MPFR_RNDN);
  exact_asin(r, z);
  mpfr_sub(r[0], half, r[0], MPFR_RNDN);
  mpfr_neg(r[1], r[1], MPFR_RNDN);
  mpfr_clear(half);
}

/* i acos(z) or its negative: the one whose real part is not negative. */
static void exact_acosh(mpfr_t *r, mpfr_t *z)
{
  exact_acos(r, z);
  turn(r, r, mpfr_signbit(r[1]) == 0);
}

static void exact_pow(mpfr_t *r, mpfr_t *z)
{
  complex_number power;
  start(power);
  exact_log(power, z);
  multiply(power, power, z + 2);
  exact_exp(r, power);
  stop(power);
}

/* clang-format off */
#define CALL(id, name, most) { KJ_BUILTIN_##id, #name "(x[i])", 1, false, exact_##name, most }
const measured_complex complex_functions[] = {
  { KJ_BUILTIN_ABS, "abs(x[i])", 1, true, exact_abs, 1e6 }, { KJ_BUILTIN_ARG, "arg(x[i])", 1, true, exact_arg, 1e6 },
  CALL(EXP, exp, 20), CALL(LOG, log, 1e6), CALL(LOG10, log10, 1e6), CALL(SQRT, sqrt, 1e6), CALL(SIN, sin, 20), CALL(COS, cos, 20), CALL(TAN, tan, 5),
  CALL(ASIN, asin, 100), CALL(ACOS, acos, 100), CALL(ATAN, atan, 100), CALL(SINH, sinh, 20), CALL(COSH, cosh, 20), CALL(TANH, tanh, 5),
  CALL(ASINH, asinh, 100), CALL(ACOSH, acosh, 100), CALL(ATANH, atanh, 100),
  { KJ_BUILTIN_POW, "pow(x[i], y[i])", 2, false, exact_pow, 4 },
};
/* clang-format on */
const size_t complex_count = sizeof complex_functions / sizeof *complex_functions;
