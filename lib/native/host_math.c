/* CPU versions of the math functions that the C library does not have, or that it defines
 * differently from the kernel language. f32 functions compute in f64. f64 functions compute in long
 * double if a correct last bit requires it. */
#include "native/functions.h"

#include <fenv.h>
#include <math.h>
#include <stdint.h>
#include <time.h>

static const long double ROOT_HALF = 0.707106781186547524400844362104849039L,
                         ROOT_HALF_LOW = 1.895032558893252368534e-20L;
static const long double TWO_BY_ROOT_PI = 1.128379167095512573896158903121545172L;
static const double PI_HIGH = 3.141592653589793116, PI_LOW = 1.2246467991473532e-16;

/* ---- sine and cosine of multiples of pi ---- */

/* Returns sin(pi * r) for abs(r) <= 1/4. The product of r and pi is computed as a sum of a high and
 * a low part. The low part, multiplied by the derivative, corrects the sine of the high part. */
static double sine_part(double r)
{
  double high = PI_HIGH * r, low = fma(PI_HIGH, r, -high) + PI_LOW * r;
  return sin(high) + low * (1 - 0.5 * high * high);
}

static double cosine_part(double r)
{
  double high = PI_HIGH * r, low = fma(PI_HIGH, r, -high) + PI_LOW * r;
  return cos(high) - low * high;
}

/* Returns sin(pi * x). All reductions of the argument are exact. */
static double sin_of_pi(double x)
{
  if (!isfinite(x)) return NAN;
  double r = fabs(remainder(x, 2)), sign = remainder(x, 2) < 0 ? -1 : 1;
  if (r > 0.5) r = 1 - r;
  if (r == 0) return copysign(0, x);
  return sign * (r <= 0.25 ? sine_part(r) : cosine_part(0.5 - r));
}

static double cos_of_pi(double x)
{
  if (!isfinite(x)) return NAN;
  double r = fabs(remainder(x, 2)), sign = r > 0.5 ? -1 : 1;
  if (r > 0.5) r = 1 - r;
  if (r == 0.5) return 0;
  return sign * (r <= 0.25 ? cosine_part(r) : sine_part(0.5 - r));
}

/* Returns remainder(x, y); if it is zero, it has the sign of x. glibc 2.36 returns a zero with the
 * sign of y if the quotient is very large. */
static double remainder_of(double x, double y)
{
  double rest = remainder(x, y);
  return rest == 0 ? copysign(0, x) : rest;
}

static double reciprocal_cube_root(double x) { return (double)(1 / cbrtl(x)); }

/* ---- inverse error functions and related functions ---- */

/* Solves erf(y) = x for 0 <= x <= 1/2 by Halley's iteration. The initial value comes from the first
 * terms of the series. */
static long double inverse_near_zero(long double x)
{
  long double y = x / TWO_BY_ROOT_PI * (1 + 0.2617993877991494L * x * x);
  for (int i = 0; i < 3; i++) {
    long double step = (erfl(y) - x) / (TWO_BY_ROOT_PI * expl(-y * y));
    y -= step / (1 + y * step);
  }
  return y;
}

/* Solves erfc(y) = q for 0 < q <= 1/2 by Newton's iteration on the logarithm, which is nearly a
 * parabola. */
static long double inverse_tail(long double q)
{
  const long double shape = 0.147L, wanted = logl(q);
  long double size = logl(q * (2 - q)), part = 2 / (3.14159265358979323846L * shape) + size / 2;
  long double y = sqrtl(sqrtl(part * part - size / shape) - part);
  for (int i = 0; i < 4; i++) {
    long double tail = erfcl(y);
    y += (logl(tail) - wanted) * tail / (TWO_BY_ROOT_PI * expl(-y * y));
  }
  return y;
}

static long double inverse_erfc(long double q)
{
  if (!(q >= 0 && q <= 2)) return NAN;
  if (q == 0) return INFINITY;
  if (q > 1) return -inverse_erfc(2 - q);
  return q > 0.5L ? inverse_near_zero(1 - q) : inverse_tail(q);
}

static double inverse_erf(double x)
{
  long double size = fabsl((long double)x);
  if (!(size <= 1)) return NAN;
  return (double)copysignl(size <= 0.5L ? inverse_near_zero(size) : inverse_erfc(1 - size), x);
}

static double erfc_inverse(double x) { return (double)inverse_erfc(x); }

/* Returns the cumulative distribution function of the normal distribution. The result amplifies a
 * relative error of the argument, so the rounding error of -x * sqrt(1/2) is corrected by means of
 * the derivative. */
static double normal_distribution(double x)
{
  if (!(fabs(x) < 40)) return isnan(x) ? NAN : x > 0;
  long double at = -x * ROOT_HALF, lost = fmal(-x, ROOT_HALF, -at) - x * ROOT_HALF_LOW;
  return (double)(0.5L * (erfcl(at) - lost * TWO_BY_ROOT_PI * expl(-at * at)));
}

static double normal_quantile(double p)
{
  return (double)(0 - 2 * ROOT_HALF * inverse_erfc(2 * (long double)p));
}

/* Returns exp(x*x) * erfc(x). If erfc is small, uses an asymptotic series. */
static double scaled_erfc(double x)
{
  if (x > 50) {
    long double r = 1 / ((long double)x * x);
    return (
      double)(TWO_BY_ROOT_PI / 2 / x *
              (1 - r / 2 * (1 - r * 3 / 2 * (1 - r * 5 / 2 * (1 - r * 7 / 2 * (1 - r * 9 / 2))))));
  }
  if (x < -50) return INFINITY;
  long double square = (long double)x * x, rest = fmal(x, x, -square);
  return (double)(expl(square) * (1 + rest) * erfcl(x));
}

static float remainder_of_float(float x, float y)
{
  float rest = remainderf(x, y);
  return rest == 0 ? copysignf(0, x) : rest;
}

/* ---- directed rounding ---- */

/* volatile keeps the computation between the two calls that change the rounding mode */
#define DIRECTED_FMA(name, type, mode, function) \
  static type name(type x, type y, type z) \
  { \
    int before = fegetround(); \
    volatile type factor = x, result; \
    fesetround(mode); \
    result = function(factor, y, z); \
    fesetround(before); \
    return result; \
  }
DIRECTED_FMA(fma_to_zero, double, FE_TOWARDZERO, fma)
DIRECTED_FMA(fma_to_zero_float, float, FE_TOWARDZERO, fmaf)
DIRECTED_FMA(fma_up, double, FE_UPWARD, fma)
DIRECTED_FMA(fma_up_float, float, FE_UPWARD, fmaf)
DIRECTED_FMA(fma_down, double, FE_DOWNWARD, fma)
DIRECTED_FMA(fma_down_float, float, FE_DOWNWARD, fmaf)

/* ---- time ---- */

static uint64_t nanoseconds(void)
{
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- the table ---- */

/* clang-format off */
#define FUNCTIONS(X) \
  X(sinpi, sin_of_pi) \
  X(cospi, cos_of_pi) \
  X(rcbrt, reciprocal_cube_root) X(erfinv, inverse_erf) X(erfcinv, erfc_inverse) X(erfcx, scaled_erfc) X(normcdf, normal_distribution) \
    X(normcdfinv, normal_quantile)
/* clang-format on */

#define X(name, function) \
  static float name##_float(float x) { return (float)function(x); }
FUNCTIONS(X)
#undef X

const kn_host_function kn_host_functions[] = {
#define X(name, function) { #name, (void *)function }, { #name "f", (void *)name##_float },
  FUNCTIONS(X)
#undef X
    { "remainder", (void *)remainder_of },
  { "remainderf", (void *)remainder_of_float },
  { "fma_rz", (void *)fma_to_zero },
  { "fma_rzf", (void *)fma_to_zero_float },
  { "fma_rp", (void *)fma_up },
  { "fma_rpf", (void *)fma_up_float },
  { "fma_rm", (void *)fma_down },
  { "fma_rmf", (void *)fma_down_float },
  { "kj_nanoseconds", (void *)nanoseconds },
  { NULL, NULL }
};
