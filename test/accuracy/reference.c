/* Reference results of the built-ins, computed with MPFR: one row for each function, or for each
 * part of its result. The rounding to PRECISION bits is negligible compared with half an ULP of an
 * f64. */
#include <limits.h>
#include <math.h>

#include "accuracy.h"

#include "ir/builtin.h"

/* ---- functions that MPFR has ---- */

#define UNARY(name, function) \
  static void exact_##name(mpfr_t r, mpfr_t *x, const format *f) \
  { \
    (void)f; \
    function(r, x[0], MPFR_RNDN); \
  }
#define BINARY(name, function) \
  static void exact_##name(mpfr_t r, mpfr_t *x, const format *f) \
  { \
    (void)f; \
    function(r, x[0], x[1], MPFR_RNDN); \
  }
UNARY(sqrt, mpfr_sqrt)
UNARY(cbrt, mpfr_cbrt)
UNARY(exp, mpfr_exp)
UNARY(exp2, mpfr_exp2)
UNARY(exp10, mpfr_exp10)
UNARY(expm1, mpfr_expm1)
UNARY(log, mpfr_log)
UNARY(log2, mpfr_log2)
UNARY(log10, mpfr_log10)
UNARY(log1p, mpfr_log1p)
UNARY(sin, mpfr_sin)
UNARY(cos, mpfr_cos)
UNARY(tan, mpfr_tan)
UNARY(asin, mpfr_asin)
UNARY(acos, mpfr_acos)
UNARY(atan, mpfr_atan)
UNARY(sinh, mpfr_sinh)
UNARY(cosh, mpfr_cosh)
UNARY(tanh, mpfr_tanh)
UNARY(asinh, mpfr_asinh)
UNARY(acosh, mpfr_acosh)
UNARY(atanh, mpfr_atanh)
UNARY(erf, mpfr_erf)
UNARY(erfc, mpfr_erfc)
UNARY(tgamma, mpfr_gamma)
UNARY(floor, mpfr_rint_floor)
UNARY(ceil, mpfr_rint_ceil)
UNARY(trunc, mpfr_rint_trunc)
UNARY(round, mpfr_rint_round)
UNARY(rint, mpfr_rint_roundeven)
UNARY(sinpi, mpfr_sinpi)
UNARY(cospi, mpfr_cospi)
UNARY(j0, mpfr_j0)
UNARY(j1, mpfr_j1)
UNARY(y0, mpfr_y0)
UNARY(y1, mpfr_y1)
UNARY(abs, mpfr_abs)
UNARY(fraction, mpfr_frac)
BINARY(pow, mpfr_pow)
BINARY(atan2, mpfr_atan2)
BINARY(hypot, mpfr_hypot)
BINARY(fmod, mpfr_fmod)
BINARY(remainder, mpfr_remainder)
BINARY(fdim, mpfr_dim)
BINARY(min, mpfr_min)
BINARY(max, mpfr_max)
BINARY(divide, mpfr_div)

static void exact_fma(mpfr_t r, mpfr_t *x, const format *f)
{
  (void)f;
  mpfr_fma(r, x[0], x[1], x[2], MPFR_RNDN);
}

/* Rounds to the format, including its subnormal numbers. */
static void directed_fma(mpfr_t r, mpfr_t *x, const format *f, mpfr_rnd_t mode)
{
  mpfr_exp_t least = mpfr_get_emin(), most = mpfr_get_emax();
  mpfr_t rounded;
  mpfr_init2(rounded, f->precision);
  mpfr_set_emin(f->least_exponent - f->precision + 2); /* MPFR's mantissas are below 1 */
  mpfr_set_emax(f->most_exponent + 1);
  int ternary = mpfr_fma(rounded, x[0], x[1], x[2], mode);
  mpfr_subnormalize(rounded, ternary, mode);
  mpfr_set_emin(least);
  mpfr_set_emax(most);
  mpfr_set(r, rounded, MPFR_RNDN);
  mpfr_clear(rounded);
}

static void exact_fma_rz(mpfr_t r, mpfr_t *x, const format *f) { directed_fma(r, x, f, MPFR_RNDZ); }
static void exact_fma_ru(mpfr_t r, mpfr_t *x, const format *f) { directed_fma(r, x, f, MPFR_RNDU); }
static void exact_fma_rd(mpfr_t r, mpfr_t *x, const format *f) { directed_fma(r, x, f, MPFR_RNDD); }

/* ---- functions composed of these functions ---- */

static void exact_rsqrt(mpfr_t r, mpfr_t *x, const format *f)
{
  (void)f;
  mpfr_rec_sqrt(r, x[0], MPFR_RNDN);
  if (mpfr_zero_p(x[0])) mpfr_set_inf(r, mpfr_signbit(x[0]) ? -1 : 1);
}

static void exact_rcbrt(mpfr_t r, mpfr_t *x, const format *f)
{
  (void)f;
  mpfr_cbrt(r, x[0], MPFR_RNDN);
  mpfr_ui_div(r, 1, r, MPFR_RNDN);
}

static void exact_lgamma(mpfr_t r, mpfr_t *x, const format *f)
{
  (void)f;
  int sign;
  mpfr_lgamma(r, &sign, x[0], MPFR_RNDN);
}

/* MPFR does not define the sign of a NaN; the NaNs among the arguments are positive. */
static bool is_negative(mpfr_t x) { return !mpfr_nan_p(x) && mpfr_signbit(x); }

static void exact_copysign(mpfr_t r, mpfr_t *x, const format *f)
{
  (void)f;
  mpfr_setsign(r, x[0], is_negative(x[1]), MPFR_RNDN);
}

static bool is_ordinary(mpfr_t x) { return mpfr_number_p(x) && !mpfr_zero_p(x); }

/* Returns the exponent of x, which is a number and not 0. */
static long exponent_of(mpfr_t x) { return (long)mpfr_get_exp(x) - 1; }

static void exact_logb(mpfr_t r, mpfr_t *x, const format *f)
{
  (void)f;
  if (is_ordinary(x[0])) mpfr_set_si(r, exponent_of(x[0]), MPFR_RNDN);
  else if (mpfr_zero_p(x[0])) mpfr_set_inf(r, -1);
  else mpfr_abs(r, x[0], MPFR_RNDN);
}

static void exact_ilogb(mpfr_t r, mpfr_t *x, const format *f)
{
  (void)f;
  long special = mpfr_inf_p(x[0]) ? INT_MAX : INT_MIN;
  mpfr_set_si(r, is_ordinary(x[0]) ? exponent_of(x[0]) : special, MPFR_RNDN);
}

static void exact_mantissa(mpfr_t r, mpfr_t *x, const format *f)
{
  (void)f;
  mpfr_set(r, x[0], MPFR_RNDN);
  if (is_ordinary(r)) mpfr_set_exp(r, 0);
}

static void exact_exponent(mpfr_t r, mpfr_t *x, const format *f)
{
  (void)f;
  mpfr_set_si(r, is_ordinary(x[0]) ? exponent_of(x[0]) + 1 : 0, MPFR_RNDN);
}

static void exact_ldexp(mpfr_t r, mpfr_t *x, const format *f)
{
  (void)f;
  mpfr_set(r, x[0], MPFR_RNDN);
  if (is_ordinary(r)) mpfr_mul_2si(r, r, mpfr_get_si(x[1], MPFR_RNDN), MPFR_RNDN);
}

static void exact_nextafter(mpfr_t r, mpfr_t *x, const format *f)
{
  double from = mpfr_get_d(x[0], MPFR_RNDN), to = mpfr_get_d(x[1], MPFR_RNDN), next = from + to;
  uint64_t bits = encode(f, from);
  if (from == to) next = to;
  else if (from == 0) next = decode(f, encode(f, copysign(0, to)) | 1);
  else if (!isnan(next) || isinf(from))
    next = isnan(to) ? to
                     : decode(f, (fabs(from) < fabs(to) || signbit(from) != signbit(to)) &&
                                     (from < to) == (from > 0)
                                   ? bits + 1
                                   : bits - 1);
  if (isnan(from) || isnan(to)) next = NAN;
  mpfr_set_d(r, next, MPFR_RNDN);
}

static void exact_jn(mpfr_t r, mpfr_t *x, const format *f)
{
  (void)f;
  long n = mpfr_get_si(x[0], MPFR_RNDN);
  if (n < 0) mpfr_set_nan(r);
  else mpfr_jn(r, n, x[1], MPFR_RNDN);
}

static void exact_yn(mpfr_t r, mpfr_t *x, const format *f)
{
  (void)f;
  long n = mpfr_get_si(x[0], MPFR_RNDN);
  if (n < 0) mpfr_set_nan(r);
  else mpfr_yn(r, n, x[1], MPFR_RNDN);
}

/* Computes the low three bits of the quotient, with the quotient's sign. */
static void exact_quotient(mpfr_t r, mpfr_t *x, const format *f)
{
  (void)f;
  long quotient = 0;
  mpfr_t rest;
  mpfr_init2(rest, PRECISION);
  bool is_number = mpfr_number_p(x[0]) && !mpfr_nan_p(x[1]) && !mpfr_zero_p(x[1]);
  if (is_number) mpfr_remquo(rest, &quotient, x[0], x[1], MPFR_RNDN);
  mpfr_set_si(r, quotient < 0 ? -(-quotient & 7) : quotient & 7, MPFR_RNDN);
  mpfr_clear(rest);
}

static void exact_saturate(mpfr_t r, mpfr_t *x, const format *f)
{
  (void)f;
  mpfr_set(r, x[0], MPFR_RNDN);
  if (mpfr_nan_p(r) || mpfr_cmp_ui(r, 0) <= 0) mpfr_set_zero(r, 1);
  else if (mpfr_cmp_ui(r, 1) > 0) mpfr_set_ui(r, 1, MPFR_RNDN);
}

static void clamp_to_i64(mpfr_t r)
{
  if (mpfr_nan_p(r)) mpfr_set_zero(r, 1);
  else if (mpfr_cmp_si(r, LONG_MAX) > 0) mpfr_set_si(r, LONG_MAX, MPFR_RNDN);
  else if (mpfr_cmp_si(r, LONG_MIN) < 0) mpfr_set_si(r, LONG_MIN, MPFR_RNDN);
  if (mpfr_zero_p(r)) mpfr_set_zero(r, 1); /* an integer has only one zero */
}

static void exact_lround(mpfr_t r, mpfr_t *x, const format *f)
{
  exact_round(r, x, f);
  clamp_to_i64(r);
}

static void exact_lrint(mpfr_t r, mpfr_t *x, const format *f)
{
  exact_rint(r, x, f);
  clamp_to_i64(r);
}

#define TEST(name, holds) \
  static void exact_##name(mpfr_t r, mpfr_t *x, const format *f) \
  { \
    (void)f; \
    mpfr_set_ui(r, (holds) != 0, MPFR_RNDN); \
  }
TEST(isnan, mpfr_nan_p(x[0]))
TEST(isinf, mpfr_inf_p(x[0]))
TEST(isfinite, mpfr_number_p(x[0]))
TEST(signbit, is_negative(x[0]))
TEST(isnormal, is_ordinary(x[0]) && exponent_of(x[0]) >= f->least_exponent)

/* ---- inverse functions: Newton's iteration from 0, which converges monotonically for both ---- */

/* r = 2 / sqrt(pi) * exp(-y * y) */
static void derivative_of_erf(mpfr_t r, mpfr_t y)
{
  mpfr_t root;
  mpfr_init2(root, mpfr_get_prec(r));
  mpfr_const_pi(root, MPFR_RNDN);
  mpfr_rec_sqrt(root, root, MPFR_RNDN);
  mpfr_mul_2ui(root, root, 1, MPFR_RNDN);
  mpfr_sqr(r, y, MPFR_RNDN);
  mpfr_neg(r, r, MPFR_RNDN);
  mpfr_exp(r, r, MPFR_RNDN);
  mpfr_mul(r, r, root, MPFR_RNDN);
  mpfr_clear(root);
}

/* Computes y with erf(y) = x for abs(x) <= 1/2. If is_tail is true, computes y with erfc(y) = x for
 * 0 < x < 1. */
static void invert(mpfr_t y, mpfr_t x, bool is_tail)
{
  mpfr_t value, slope, goal;
  mpfr_inits2(PRECISION, value, slope, goal, (mpfr_ptr)0);
  if (is_tail) mpfr_log(goal, x, MPFR_RNDN);
  else mpfr_set(goal, x, MPFR_RNDN);
  mpfr_set_zero(y, 1);
  for (int i = 0; i < 60; i++) {
    derivative_of_erf(slope, y);
    if (is_tail) { /* of log(erfc(y)) */
      mpfr_erfc(value, y, MPFR_RNDN);
      mpfr_div(slope, slope, value, MPFR_RNDN);
      mpfr_neg(slope, slope, MPFR_RNDN);
      mpfr_log(value, value, MPFR_RNDN);
    } else {
      mpfr_erf(value, y, MPFR_RNDN);
    }
    mpfr_sub(value, goal, value, MPFR_RNDN);
    mpfr_div(value, value, slope, MPFR_RNDN);
    mpfr_add(y, y, value, MPFR_RNDN);
    /* quadratic: the next step is below 2**-150 */
    if (mpfr_zero_p(value) || mpfr_zero_p(y) || mpfr_get_exp(value) < mpfr_get_exp(y) - 75) break;
  }
  mpfr_clears(value, slope, goal, (mpfr_ptr)0);
}

static void inverse_of_erfc(mpfr_t r, mpfr_t q)
{
  if (mpfr_nan_p(q) || mpfr_cmp_ui(q, 2) > 0 || mpfr_cmp_ui(q, 0) < 0) {
    mpfr_set_nan(r);
    return;
  }
  if (mpfr_zero_p(q) || mpfr_cmp_ui(q, 2) == 0) {
    mpfr_set_inf(r, mpfr_zero_p(q) ? 1 : -1);
    return;
  }
  mpfr_t x;
  mpfr_init2(x, 1300); /* 1 - q and 2 - q are exact */
  mpfr_ui_sub(x, 1, q, MPFR_RNDN);
  bool is_upper = mpfr_cmp_d(q, 1.5) > 0,
       is_middle = mpfr_cmpabs_ui(x, 1) <= 0 && mpfr_cmp_d(x, 0.5) <= 0 && mpfr_cmp_d(x, -0.5) >= 0;
  if (is_middle) {
    invert(r, x, false);
  } else {
    if (is_upper) mpfr_ui_sub(x, 2, q, MPFR_RNDN);
    else mpfr_set(x, q, MPFR_RNDN);
    invert(r, x, true);
    if (is_upper) mpfr_neg(r, r, MPFR_RNDN);
  }
  mpfr_clear(x);
}

static void exact_erfcinv(mpfr_t r, mpfr_t *x, const format *f)
{
  (void)f;
  inverse_of_erfc(r, x[0]);
}

static void exact_erfinv(mpfr_t r, mpfr_t *x, const format *f)
{
  (void)f;
  if (!mpfr_nan_p(x[0]) && mpfr_cmp_d(x[0], 0.5) <= 0 && mpfr_cmp_d(x[0], -0.5) >= 0) {
    invert(r, x[0], false);
    if (mpfr_zero_p(r)) mpfr_set(r, x[0], MPFR_RNDN);
    return;
  }
  mpfr_t q;
  mpfr_init2(q, 1300);
  mpfr_ui_sub(q, 1, x[0], MPFR_RNDN);
  inverse_of_erfc(r, q);
  mpfr_clear(q);
}

static void exact_normcdfinv(mpfr_t r, mpfr_t *x, const format *f)
{
  (void)f;
  mpfr_t q, root;
  mpfr_inits2(PRECISION, q, root, (mpfr_ptr)0);
  mpfr_mul_2ui(q, x[0], 1, MPFR_RNDN);
  inverse_of_erfc(r, q);
  mpfr_sqrt_ui(root, 2, MPFR_RNDN);
  mpfr_neg(root, root, MPFR_RNDN);
  mpfr_mul(r, r, root, MPFR_RNDN);
  if (mpfr_zero_p(r)) mpfr_set_zero(r, 1);
  mpfr_clears(q, root, (mpfr_ptr)0);
}

static void exact_normcdf(mpfr_t r, mpfr_t *x, const format *f)
{
  (void)f;
  mpfr_sqrt_ui(r, 2, MPFR_RNDN);
  mpfr_div(r, x[0], r, MPFR_RNDN);
  mpfr_neg(r, r, MPFR_RNDN);
  mpfr_erfc(r, r, MPFR_RNDN);
  mpfr_div_2ui(r, r, 1, MPFR_RNDN);
}

/* For x above 2**20, uses the first terms of the asymptotic series: x sqrt(pi) erfcx(x) = 1 - 1 /
 * (2 x**2) + 3 / (4 x**4) - 15 / (8 x**6) + ... */
static void exact_erfcx(mpfr_t r, mpfr_t *x, const format *f)
{
  (void)f;
  mpfr_t square, other;
  mpfr_inits2(4 * PRECISION, square, other, (mpfr_ptr)0);
  mpfr_sqr(square, x[0], MPFR_RNDN);
  if (mpfr_number_p(x[0]) && mpfr_cmp_ui(x[0], 1 << 20) > 0) {
    mpfr_ui_div(square, 1, square, MPFR_RNDN);
    mpfr_mul_d(other, square, -1.875, MPFR_RNDN);
    mpfr_add_d(other, other, 0.75, MPFR_RNDN);
    mpfr_mul(other, other, square, MPFR_RNDN);
    mpfr_sub_d(other, other, 0.5, MPFR_RNDN);
    mpfr_mul(other, other, square, MPFR_RNDN);
    mpfr_add_ui(other, other, 1, MPFR_RNDN);
    mpfr_const_pi(square, MPFR_RNDN);
    mpfr_sqrt(square, square, MPFR_RNDN);
    mpfr_mul(square, square, x[0], MPFR_RNDN);
    mpfr_div(r, other, square, MPFR_RNDN);
  } else if (mpfr_inf_p(x[0])) {
    if (mpfr_signbit(x[0])) mpfr_set_inf(r, 1);
    else mpfr_set_zero(r, 1);
  } else {
    mpfr_exp(square, square, MPFR_RNDN);
    mpfr_erfc(other, x[0], MPFR_RNDN);
    mpfr_mul(r, square, other, MPFR_RNDN);
  }
  mpfr_clears(square, other, (mpfr_ptr)0);
}

/* ---- the table ---- */

#define FIRST(call) "let a, b = " call "\n    r[i] = a"
#define SECOND(call) "let a, b = " call "\n    r[i] = b"
#define NUMBER(call) "r[i] = dtype(r)(" call ")"
#define CHOICE(call) "r[i] = " call " ? 1 : 0"
/* clang-format off */
#define CALL1(id, name, low, high) { KJ_BUILTIN_##id, "r[i] = " #name "(x[i])", 1, 0, exact_##name, low, high, 0 }
#define CALL2(id, name, low, high) { KJ_BUILTIN_##id, "r[i] = " #name "(x[i], y[i])", 2, 0, exact_##name, low, high, 0 }
#define FAST1(id, name, low, high) { KJ_BUILTIN_##id, "r[i] = fast_" #name "(x[i])", 1, ONLY_DOMAIN, exact_##name, low, high, 0 }

const measured measured_functions[] = {
  CALL1(ABS, abs, -10, 10), { KJ_BUILTIN_MIN, "r[i] = min(x[i], y[i])", 2, SIGN_OPEN, exact_min, -10, 10, 0 },
  { KJ_BUILTIN_MAX, "r[i] = max(x[i], y[i])", 2, SIGN_OPEN, exact_max, -10, 10, 0 },
  CALL1(SQRT, sqrt, 0, 100), CALL1(RSQRT, rsqrt, 0, 100), CALL1(CBRT, cbrt, -100, 100), CALL1(RCBRT, rcbrt, -100, 100),
  CALL1(EXP, exp, -110, 95), CALL1(EXP2, exp2, -150, 130), CALL1(EXP10, exp10, -46, 39), CALL1(EXPM1, expm1, -40, 90),
  CALL1(LOG, log, 0, 4), CALL1(LOG2, log2, 0, 4), CALL1(LOG10, log10, 0, 4), CALL1(LOG1P, log1p, -1, 4), CALL1(LOGB, logb, -10, 10),
  CALL1(SIN, sin, -100, 100), CALL1(COS, cos, -100, 100), CALL1(TAN, tan, -100, 100),
  CALL1(ASIN, asin, -1, 1), CALL1(ACOS, acos, -1, 1), CALL1(ATAN, atan, -8, 8),
  CALL1(SINH, sinh, -90, 90), CALL1(COSH, cosh, -90, 90), CALL1(TANH, tanh, -10, 10),
  CALL1(ASINH, asinh, -10, 10), CALL1(ACOSH, acosh, 1, 10), CALL1(ATANH, atanh, -1, 1),
  CALL1(ERF, erf, -4, 4), CALL1(ERFC, erfc, -4, 28),
  { KJ_BUILTIN_TGAMMA, "r[i] = tgamma(x[i])", 1, IS_SLOW, exact_tgamma, -50, 172, 1000 },
  { KJ_BUILTIN_LGAMMA, "r[i] = lgamma(x[i])", 1, IS_SLOW, exact_lgamma, -30, 100, 1e12 },
  CALL1(FLOOR, floor, -100, 100), CALL1(CEIL, ceil, -100, 100), CALL1(TRUNC, trunc, -100, 100), CALL1(ROUND, round, -100, 100), CALL1(RINT, rint, -100, 100),
  CALL2(POW, pow, 0, 20), CALL2(ATAN2, atan2, -10, 10), CALL2(HYPOT, hypot, -100, 100), CALL2(FMOD, fmod, -100, 100), CALL2(REMAINDER, remainder, -100, 100),
  CALL2(COPYSIGN, copysign, -100, 100), CALL2(NEXTAFTER, nextafter, -100, 100), CALL2(FDIM, fdim, -100, 100),
  { KJ_BUILTIN_QUOTIENT, "r[i] = quotient(x[i], y[i])", 2, 0, exact_divide, -100, 100, 0 },
  { KJ_BUILTIN_FMA, "r[i] = fma(x[i], y[i], z[i])", 3, 0, exact_fma, -10, 10, 0 },
  { KJ_BUILTIN_FMA_RZ, "r[i] = fma_rz(x[i], y[i], z[i])", 3, NO_SMALL, exact_fma_rz, -10, 10, 0 },
  { KJ_BUILTIN_FMA_RU, "r[i] = fma_ru(x[i], y[i], z[i])", 3, NO_SMALL, exact_fma_ru, -10, 10, 0 },
  { KJ_BUILTIN_FMA_RD, "r[i] = fma_rd(x[i], y[i], z[i])", 3, NO_SMALL, exact_fma_rd, -10, 10, 0 },
  { KJ_BUILTIN_REMQUO, FIRST("remquo(x[i], y[i])"), 2, 0, exact_remainder, -100, 100, 0 },
  { KJ_BUILTIN_REMQUO, "let a, b = remquo(x[i], y[i])\n    r[i] = dtype(r)(b)", 2, 0, exact_quotient, -100, 100, 0 },
  { KJ_BUILTIN_LDEXP, "r[i] = ldexp(x[i], i32(y[i]))", 2, SECOND_INTEGER, exact_ldexp, -200, 200, 0 },
  { KJ_BUILTIN_FREXP, FIRST("frexp(x[i])"), 1, 0, exact_mantissa, -100, 100, 0 },
  { KJ_BUILTIN_FREXP, "let a, b = frexp(x[i])\n    r[i] = dtype(r)(b)", 1, 0, exact_exponent, -100, 100, 0 },
  { KJ_BUILTIN_MODF, FIRST("modf(x[i])"), 1, 0, exact_fraction, -100, 100, 0 }, { KJ_BUILTIN_MODF, SECOND("modf(x[i])"), 1, 0, exact_trunc, -100, 100, 0 },
  { KJ_BUILTIN_SINCOS, FIRST("sincos(x[i])"), 1, 0, exact_sin, -100, 100, 0 }, { KJ_BUILTIN_SINCOS, SECOND("sincos(x[i])"), 1, 0, exact_cos, -100, 100, 0 },
  { KJ_BUILTIN_ILOGB, NUMBER("ilogb(x[i])"), 1, 0, exact_ilogb, -100, 100, 0 },
  { KJ_BUILTIN_ISNAN, CHOICE("isnan(x[i])"), 1, 0, exact_isnan, -100, 100, 0 }, { KJ_BUILTIN_ISINF, CHOICE("isinf(x[i])"), 1, 0, exact_isinf, -100, 100, 0 },
  { KJ_BUILTIN_ISFINITE, CHOICE("isfinite(x[i])"), 1, 0, exact_isfinite, -100, 100, 0 },
  { KJ_BUILTIN_ISNORMAL, CHOICE("isnormal(x[i])"), 1, 0, exact_isnormal, -100, 100, 0 },
  { KJ_BUILTIN_SIGNBIT, CHOICE("signbit(x[i])"), 1, 0, exact_signbit, -100, 100, 0 },
  CALL1(SINPI, sinpi, -4, 4), CALL1(COSPI, cospi, -4, 4),
  { KJ_BUILTIN_SINCOSPI, FIRST("sincospi(x[i])"), 1, 0, exact_sinpi, -4, 4, 0 }, { KJ_BUILTIN_SINCOSPI, SECOND("sincospi(x[i])"), 1, 0, exact_cospi, -4, 4, 0 },
  { KJ_BUILTIN_ERFINV, "r[i] = erfinv(x[i])", 1, IS_SLOW, exact_erfinv, -1, 1, 0 }, { KJ_BUILTIN_ERFCINV, "r[i] = erfcinv(x[i])", 1, IS_SLOW, exact_erfcinv, 0, 2, 0 },
  CALL1(ERFCX, erfcx, -5, 60), CALL1(NORMCDF, normcdf, -38, 8),
  { KJ_BUILTIN_NORMCDFINV, "r[i] = normcdfinv(x[i])", 1, IS_SLOW, exact_normcdfinv, 0, 1, 0 },
  { KJ_BUILTIN_J0, "r[i] = j0(x[i])", 1, IS_SLOW, exact_j0, -30, 30, 1000 }, { KJ_BUILTIN_J1, "r[i] = j1(x[i])", 1, IS_SLOW | SIGN_OPEN, exact_j1, -30, 30, 1000 },
  { KJ_BUILTIN_JN, "r[i] = jn(i32(x[i]), y[i])", 2, IS_SLOW | FIRST_INTEGER | SIGN_OPEN, exact_jn, -3, 30, 30 },
  { KJ_BUILTIN_Y0, "r[i] = y0(x[i])", 1, IS_SLOW, exact_y0, 0, 30, 1000 }, { KJ_BUILTIN_Y1, "r[i] = y1(x[i])", 1, IS_SLOW, exact_y1, 0, 30, 1000 },
  { KJ_BUILTIN_YN, "r[i] = yn(i32(x[i]), y[i])", 2, IS_SLOW | FIRST_INTEGER, exact_yn, -3, 30, 30 },
  CALL1(SATURATE, saturate, -1, 2),
  { KJ_BUILTIN_LROUND, NUMBER("lround(x[i])"), 1, 0, exact_lround, -100, 100, 0 }, { KJ_BUILTIN_LRINT, NUMBER("lrint(x[i])"), 1, 0, exact_lrint, -100, 100, 0 },
  FAST1(FAST_SIN, sin, -3.14, 3.14), FAST1(FAST_COS, cos, -3.14, 3.14), FAST1(FAST_TAN, tan, -1.4, 1.4),
  FAST1(FAST_EXP, exp, -80, 80), FAST1(FAST_EXP10, exp10, -35, 35), FAST1(FAST_LOG, log, 0.001, 1000), FAST1(FAST_LOG2, log2, 0.001, 1000),
  FAST1(FAST_LOG10, log10, 0.001, 1000),
  { KJ_BUILTIN_FAST_POW, "r[i] = fast_pow(x[i], y[i])", 2, ONLY_DOMAIN, exact_pow, 0.1, 8, 0 },
  { KJ_BUILTIN_FAST_DIVIDE, "r[i] = fast_divide(x[i], y[i])", 2, ONLY_DOMAIN, exact_divide, 0.001, 100, 0 },
};
/* clang-format on */
const size_t measured_count = sizeof measured_functions / sizeof *measured_functions;
