/* Elementary functions of complex numbers, composed of real functions. Branch cuts, signed zeros
 * and values at infinity follow C's Annex G. The inverse functions follow Kahan, "Branch cuts for
 * complex elementary functions". Special cases use selects and not branches, because they cost
 * little compared with the real functions. Sums and products are not fused unless @fastmath: fusing
 * would lose the signs of zeros that the formulas rely on. */
#include <math.h>

#include "lower/instruction.h"

typedef kl_complex_value complex_value;

static LLVMValueRef relax(kl_lowering *l, LLVMValueRef value)
{
  return l->frame->instance->modes.is_fastmath ? kl_fast(l, value) : value;
}

static LLVMValueRef add(kl_lowering *l, LLVMValueRef x, LLVMValueRef y)
{
  return relax(l, kl_fadd(l, x, y));
}
static LLVMValueRef sub(kl_lowering *l, LLVMValueRef x, LLVMValueRef y)
{
  return relax(l, kl_fsub(l, x, y));
}
static LLVMValueRef mul(kl_lowering *l, LLVMValueRef x, LLVMValueRef y)
{
  return relax(l, kl_fmul(l, x, y));
}
static LLVMValueRef divide(kl_lowering *l, LLVMValueRef x, LLVMValueRef y)
{
  return relax(l, kl_fdiv(l, x, y));
}
static LLVMValueRef root(kl_lowering *l, LLVMValueRef x)
{
  return kl_intrinsic1(l, "llvm.sqrt", x);
}
static LLVMValueRef is_above(kl_lowering *l, LLVMValueRef x, LLVMValueRef y)
{
  return kl_fcmp(l, LLVMRealOGT, x, y);
}
static LLVMValueRef is_equal(kl_lowering *l, LLVMValueRef x, LLVMValueRef y)
{
  return kl_fcmp(l, LLVMRealOEQ, x, y);
}
static LLVMValueRef larger(kl_lowering *l, LLVMValueRef x, LLVMValueRef y)
{
  return kl_intrinsic2(l, "llvm.maxnum", x, y);
}

static bool is_double(kl_lowering *l, LLVMValueRef x) { return LLVMTypeOf(x) == l->f64; }
/* Returns a constant that depends on the width of the type. */
static LLVMValueRef limit(kl_lowering *l, LLVMValueRef like, double of_float, double of_double)
{
  return kl_real_like(like, is_double(l, like) ? of_double : of_float);
}

static LLVMValueRef call(kl_lowering *l, ki_builtin_id id, LLVMValueRef x)
{
  return l->target->math(l, id, &x, 1, LLVMTypeOf(x));
}

static LLVMValueRef is_not_finite(kl_lowering *l, LLVMValueRef x)
{
  return kl_not(l, kl_is_finite(l, x));
}
static LLVMValueRef is_zero(kl_lowering *l, LLVMValueRef x)
{
  return is_equal(l, x, kl_real_like(x, 0));
}

/* turn returns i * z, turn_back returns -i * z. */
static complex_value turn(kl_lowering *l, complex_value z)
{
  return (complex_value){ kl_fneg(l, z.imaginary), z.real };
}
static complex_value turn_back(kl_lowering *l, complex_value z)
{
  return (complex_value){ z.imaginary, kl_fneg(l, z.real) };
}

/* ---- exp and the hyperbolic functions ---- */

/* Returns the logarithm of a quarter of the largest number. Up to it cosh and exp do not
 * overflow. */
static LLVMValueRef exponent_limit(kl_lowering *l, LLVMValueRef like)
{
  return limit(l, like, 87.33654475055310, 708.3964185322641);
}

/* Moves x towards 0 by 1 if it is so large that exp(x) might overflow although the product with a
 * sine does not. *factor receives the factor that compensates. */
static LLVMValueRef reduce_exponent(kl_lowering *l, LLVMValueRef x, LLVMValueRef *factor)
{
  LLVMValueRef is_large = is_above(l, kl_fabs(l, x), exponent_limit(l, x));
  *factor = kl_select(l, is_large, kl_real_like(x, 2.71828182845904523536), kl_real_like(x, 1));
  return kl_select(l, is_large, sub(l, x, kl_copysign(l, kl_real_like(x, 1), x)), x);
}

static complex_value complex_exp(kl_lowering *l, complex_value z)
{
  LLVMValueRef factor, x = reduce_exponent(l, z.real, &factor), zero = kl_real_like(x, 0),
                       y = z.imaginary;
  LLVMValueRef e = call(l, KJ_BUILTIN_EXP, kl_select(l, is_above(l, x, zero), x, z.real));
  factor = kl_select(l, is_above(l, x, zero), factor, kl_real_like(x, 1));
  LLVMValueRef real = mul(l, mul(l, e, call(l, KJ_BUILTIN_COS, y)), factor),
               imaginary = mul(l, mul(l, e, call(l, KJ_BUILTIN_SIN, y)), factor);
  LLVMValueRef is_lost = kl_and(l, kl_is_infinite(l, z.real), is_not_finite(l, y)),
               is_negative = kl_fcmp(l, LLVMRealOLT, z.real, zero);
  real = kl_select(l, is_lost, kl_select(l, is_negative, zero, z.real), real);
  imaginary = kl_select(l, kl_and(l, is_lost, is_negative), kl_copysign(l, zero, y), imaginary);
  return (complex_value){ real, kl_select(l, is_zero(l, y), y, imaginary) };
}

static complex_value complex_sinh(kl_lowering *l, complex_value z)
{
  LLVMValueRef factor, x = reduce_exponent(l, z.real, &factor), y = z.imaginary;
  LLVMValueRef real =
    mul(l, mul(l, call(l, KJ_BUILTIN_COS, y), call(l, KJ_BUILTIN_SINH, x)), factor);
  LLVMValueRef imaginary =
    mul(l, mul(l, call(l, KJ_BUILTIN_SIN, y), call(l, KJ_BUILTIN_COSH, x)), factor);
  LLVMValueRef is_lost =
    kl_and(l, is_not_finite(l, y), kl_or(l, is_zero(l, z.real), kl_is_infinite(l, z.real)));
  return (complex_value){ kl_select(l, is_lost, z.real, real),
                          kl_select(l, is_zero(l, y), y, imaginary) };
}

static complex_value complex_cosh(kl_lowering *l, complex_value z)
{
  LLVMValueRef factor, x = reduce_exponent(l, z.real, &factor), y = z.imaginary;
  LLVMValueRef real =
    mul(l, mul(l, call(l, KJ_BUILTIN_COS, y), call(l, KJ_BUILTIN_COSH, x)), factor);
  LLVMValueRef sine = call(l, KJ_BUILTIN_SIN, y), one = kl_real_like(y, 1);
  LLVMValueRef imaginary = mul(l, mul(l, sine, call(l, KJ_BUILTIN_SINH, x)), factor);
  LLVMValueRef is_lost = kl_and(l, is_not_finite(l, y), kl_is_infinite(l, z.real)),
               sign = mul(l, kl_copysign(l, one, sine), kl_copysign(l, one, z.real)),
               zero = kl_copysign(l, kl_real_like(y, 0), sign);
  return (
    complex_value){ kl_select(l, is_lost, kl_fabs(l, z.real), real),
                    kl_select(l, kl_or(l, is_zero(l, y), is_zero(l, z.real)), zero, imaginary) };
}

static complex_value complex_tanh(kl_lowering *l, complex_value z)
{
  LLVMValueRef x = z.real, y = z.imaginary, one = kl_real_like(x, 1);
  LLVMValueRef is_large = is_above(l, kl_fabs(l, x), exponent_limit(l, x));
  LLVMValueRef t = call(l, KJ_BUILTIN_TANH, x), u = call(l, KJ_BUILTIN_TAN, y),
               c = divide(l, one, call(l, KJ_BUILTIN_COSH, x)), product = mul(l, t, u);
  LLVMValueRef denominator = add(l, one, mul(l, product, product));
  LLVMValueRef real = divide(l, mul(l, t, add(l, one, mul(l, u, u))), denominator),
               imaginary = mul(l, mul(l, divide(l, u, denominator), c), c);
  LLVMValueRef small = call(l, KJ_BUILTIN_EXP, mul(l, kl_real_like(x, -2), kl_fabs(l, x)));
  LLVMValueRef sine = mul(l, call(l, KJ_BUILTIN_SIN, y), call(l, KJ_BUILTIN_COS, y)),
               far = mul(l, mul(l, kl_real_like(x, 4), sine), small);
  far =
    kl_select(l, kl_is_infinite(l, x),
              kl_copysign(l, kl_real_like(x, 0), kl_select(l, kl_is_finite(l, y), sine, y)), far);
  real = kl_select(l, is_large, kl_copysign(l, one, x), kl_select(l, is_zero(l, x), x, real));
  return (complex_value){ real,
                          kl_select(l, is_zero(l, y), y, kl_select(l, is_large, far, imaginary)) };
}

/* ---- logarithms and roots ---- */

/* Returns the absolute value of z times a power of two, whose exponent *exponent receives. Very
 * large and very small numbers are scaled to the middle of the range, where hypot and log of no
 * library have special cases. */
static LLVMValueRef scaled_size(kl_lowering *l, complex_value z, LLVMValueRef *exponent)
{
  LLVMValueRef most = larger(l, kl_fabs(l, z.real), kl_fabs(l, z.imaginary));
  LLVMValueRef is_large = is_above(l, most, limit(l, most, 0x1p63, 0x1p511)),
               is_small = is_above(l, limit(l, most, 0x1p-100, 0x1p-960), most);
  bool is_wide = is_double(l, most);
  LLVMValueRef up = kl_const32(l, is_wide ? 54 : 26), down = kl_const32(l, is_wide ? -512 : -64);
  *exponent = kl_select(l, is_large, down, kl_select(l, is_small, up, kl_const32(l, 0)));
  return kl_call_math(l, KJ_BUILTIN_HYPOT, kl_ldexp(l, z.real, *exponent),
                      kl_ldexp(l, z.imaginary, *exponent));
}

/* Returns log(size * 2^twos). */
static LLVMValueRef log_of_product(kl_lowering *l, LLVMValueRef size, LLVMValueRef twos)
{
  LLVMValueRef added = kl_sitofp(l, twos, LLVMTypeOf(size));
  return add(l, call(l, KJ_BUILTIN_LOG, size),
             mul(l, added, kl_real_like(size, 0.69314718055994530942)));
}

/* Returns the logarithm of the absolute value. Near 1 it uses log1p, because the rounding of hypot
 * loses the significant digits there. */
static LLVMValueRef log_size(kl_lowering *l, complex_value z)
{
  LLVMValueRef exponent, size = scaled_size(l, z, &exponent), one = kl_real_like(z.real, 1);
  LLVMValueRef plain = log_of_product(l, size, kl_neg(l, exponent));
  LLVMValueRef most = larger(l, kl_fabs(l, z.real), kl_fabs(l, z.imaginary)),
               least = kl_intrinsic2(l, "llvm.minnum", kl_fabs(l, z.real), kl_fabs(l, z.imaginary));
  LLVMValueRef above_one =
    add(l, mul(l, sub(l, most, one), add(l, most, one)), mul(l, least, least));
  LLVMValueRef near = mul(l, call(l, KJ_BUILTIN_LOG1P, above_one), kl_real_like(size, .5));
  LLVMValueRef is_near = kl_and(l, is_above(l, size, kl_real_like(size, .71)),
                                is_above(l, kl_real_like(size, 1.73), size));
  is_near = kl_and(l, is_near, kl_icmp(l, LLVMIntEQ, exponent, kl_const32(l, 0)));
  return kl_select(l, is_near, near, plain);
}

static complex_value complex_log(kl_lowering *l, complex_value z)
{
  return (complex_value){ log_size(l, z), kl_call_math(l, KJ_BUILTIN_ATAN2, z.imaginary, z.real) };
}

static complex_value complex_log10(kl_lowering *l, complex_value z)
{
  complex_value w = complex_log(l, z);
  LLVMValueRef ln10 = kl_real_like(z.real, 2.30258509299404568402);
  return (complex_value){ divide(l, w.real, ln10), divide(l, w.imaginary, ln10) };
}

/* Computes sqrt((abs(x) + abs(z)) / 2) and the number whose product with it is y / 2. x and y are
 * scaled by an even power of two, so that nothing overflows and subnormals keep their bits. */
static complex_value complex_sqrt(kl_lowering *l, complex_value z)
{
  LLVMValueRef x = kl_fabs(l, z.real), y = kl_fabs(l, z.imaginary), most = larger(l, x, y);
  LLVMValueRef is_small = is_above(l, limit(l, most, 0x1p-100, 0x1p-960), most);
  LLVMValueRef up = kl_const32(l, is_double(l, most) ? 54 : 26),
               exponent = kl_select(l, is_small, up, kl_const32(l, -4));
  LLVMValueRef half =
    kl_select(l, is_small, kl_const32(l, is_double(l, most) ? -27 : -13), kl_const32(l, 2));
  LLVMValueRef a = kl_ldexp(l, x, exponent), b = kl_ldexp(l, y, exponent);
  LLVMValueRef s = kl_ldexp(l,
                            root(l, mul(l, kl_real_like(x, .5),
                                        add(l, a, kl_call_math(l, KJ_BUILTIN_HYPOT, a, b)))),
                            half);
  LLVMValueRef d = divide(l, y, mul(l, kl_real_like(x, 2), s));
  LLVMValueRef is_left = kl_fcmp(l, LLVMRealOLT, z.real, kl_real_like(x, 0));
  complex_value w = { kl_select(l, is_left, d, s),
                      kl_copysign(l, kl_select(l, is_left, s, d), z.imaginary) };
  LLVMValueRef is_nothing = kl_and(l, is_zero(l, x), is_zero(l, y)), is_far = kl_is_infinite(l, y);
  w.real = kl_select(l, is_far, kl_real_like(x, INFINITY),
                     kl_select(l, is_nothing, kl_real_like(x, 0), w.real));
  w.imaginary = kl_select(l, kl_or(l, is_far, is_nothing), z.imaginary, w.imaginary);
  return w;
}

/* ---- inverse functions ----
 *
 * The formulas give NaN if one part is NaN. The values of Annex G on the axes, which do not depend
 * on the other part, are selected afterwards. */

static const double HALF_PI = 1.57079632679489661923;

/* Returns whether the squares in the formulas would overflow. */
static LLVMValueRef is_huge(kl_lowering *l, complex_value z)
{
  LLVMValueRef bound = limit(l, z.real, 0x1p126, 0x1p1022);
  return kl_or(l, is_above(l, kl_fabs(l, z.real), bound),
               is_above(l, kl_fabs(l, z.imaginary), bound));
}

/* Returns the logarithm of twice the absolute value. */
static LLVMValueRef log_twice(kl_lowering *l, complex_value z)
{
  LLVMValueRef exponent, size = scaled_size(l, z, &exponent);
  return log_of_product(l, size, kl_sub(l, kl_const32(l, 1), exponent));
}

static complex_value root_of_sum(kl_lowering *l, double x, complex_value z) /* sqrt(x + z) */
{
  return complex_sqrt(l, (complex_value){ add(l, kl_real_like(z.real, x), z.real), z.imaginary });
}

static complex_value root_of_difference(kl_lowering *l, complex_value z) /* sqrt(1 - z) */
{
  return complex_sqrt(l, (complex_value){ sub(l, kl_real_like(z.real, 1), z.real),
                                          kl_fneg(l, z.imaginary) });
}

static complex_value complex_asinh(kl_lowering *l, complex_value z)
{
  complex_value turned = turn_back(l, z), a = root_of_sum(l, 1, turned),
                b = root_of_difference(l, turned);
  LLVMValueRef real =
    call(l, KJ_BUILTIN_ASINH, sub(l, mul(l, a.real, b.imaginary), mul(l, b.real, a.imaginary)));
  LLVMValueRef imaginary =
    kl_call_math(l, KJ_BUILTIN_ATAN2, z.imaginary,
                 sub(l, mul(l, a.real, b.real), mul(l, a.imaginary, b.imaginary)));
  LLVMValueRef huge = is_huge(l, z);
  imaginary = kl_select(l, huge, kl_call_math(l, KJ_BUILTIN_ATAN2, z.imaginary, kl_fabs(l, z.real)),
                        imaginary);
  return (complex_value){ kl_select(l, huge, kl_copysign(l, log_twice(l, z), z.real), real),
                          kl_select(l, is_zero(l, z.imaginary), z.imaginary, imaginary) };
}

static complex_value complex_acosh(kl_lowering *l, complex_value z)
{
  complex_value a = root_of_sum(l, -1, z), b = root_of_sum(l, 1, z);
  LLVMValueRef real =
    call(l, KJ_BUILTIN_ASINH, add(l, mul(l, a.real, b.real), mul(l, a.imaginary, b.imaginary)));
  LLVMValueRef imaginary = mul(l, kl_real_like(z.real, 2),
                               kl_call_math(l, KJ_BUILTIN_ATAN2, a.imaginary, b.real)),
               huge = is_huge(l, z),
               right_angle = kl_copysign(l, kl_real_like(z.real, HALF_PI), z.imaginary);
  imaginary = kl_select(l, huge, kl_call_math(l, KJ_BUILTIN_ATAN2, z.imaginary, z.real), imaginary);
  return (complex_value){ kl_select(l, huge, log_twice(l, z), real),
                          kl_select(l, is_zero(l, z.real), right_angle, imaginary) };
}

static complex_value complex_acos(kl_lowering *l, complex_value z)
{
  complex_value a = root_of_difference(l, z), b = root_of_sum(l, 1, z);
  LLVMValueRef real =
                 mul(l, kl_real_like(z.real, 2), kl_call_math(l, KJ_BUILTIN_ATAN2, a.real, b.real)),
               huge = is_huge(l, z);
  LLVMValueRef imaginary =
    call(l, KJ_BUILTIN_ASINH, sub(l, mul(l, b.real, a.imaginary), mul(l, b.imaginary, a.real)));
  real =
    kl_select(l, huge, kl_call_math(l, KJ_BUILTIN_ATAN2, kl_fabs(l, z.imaginary), z.real), real);
  return (complex_value){
    kl_select(l, is_zero(l, z.real), kl_real_like(z.real, HALF_PI), real),
    kl_select(l, huge, kl_copysign(l, log_twice(l, z), kl_fneg(l, z.imaginary)), imaginary)
  };
}

/* Returns atanh of a z with a nonnegative real part. The function is odd. */
static complex_value atanh_right(kl_lowering *l, complex_value z)
{
  LLVMValueRef x = z.real, y = z.imaginary, height = kl_fabs(l, y), one = kl_real_like(x, 1),
               from_one = sub(l, one, x);
  LLVMValueRef bound = limit(l, x, 0x1p62, 0x1p510), half = kl_real_like(x, .5),
               quarter = kl_real_like(x, .25);
  LLVMValueRef square = mul(l, height, height);
  LLVMValueRef real =
    mul(l, quarter,
        call(l, KJ_BUILTIN_LOG1P,
             divide(l, mul(l, kl_real_like(x, 4), x), add(l, mul(l, from_one, from_one), square))));
  LLVMValueRef angle = kl_call_math(l, KJ_BUILTIN_ATAN2, mul(l, kl_real_like(x, -2), y),
                                    sub(l, mul(l, from_one, add(l, one, x)), square));
  LLVMValueRef imaginary = mul(l, kl_real_like(x, -.5), angle);
  LLVMValueRef is_pole =
    kl_and(l, is_equal(l, x, one), is_above(l, limit(l, x, 0x1p-63, 0x1p-511), height));
  LLVMValueRef near =
    call(l, KJ_BUILTIN_LOG,
         divide(l, root(l, height),
                root(l, kl_call_math(l, KJ_BUILTIN_HYPOT, height, kl_real_like(x, 2)))));
  LLVMValueRef near_angle = kl_copysign(
    l, mul(l, half, kl_call_math(l, KJ_BUILTIN_ATAN2, kl_real_like(x, 2), kl_fneg(l, height))), y);
  real = kl_select(l, is_pole, kl_fneg(l, near), real);
  imaginary = kl_select(l, is_pole, kl_select(l, is_zero(l, y), y, near_angle), imaginary);
  LLVMValueRef is_far = kl_or(l, is_above(l, x, bound), is_above(l, height, bound)),
               size = kl_call_math(l, KJ_BUILTIN_HYPOT, mul(l, half, x), mul(l, half, y));
  LLVMValueRef far = divide(l, divide(l, mul(l, quarter, x), size), size);
  far = kl_select(l, kl_is_infinite(l, size), kl_real_like(x, 0), far);
  real = kl_select(l, is_far, far, real);
  imaginary = kl_select(l, is_far, kl_copysign(l, kl_real_like(x, HALF_PI), y), imaginary);
  LLVMValueRef is_lost =
    kl_and(l, kl_fcmp(l, LLVMRealUNO, z.real, z.imaginary), kl_not(l, kl_is_infinite(l, y)));
  return (complex_value){ kl_select(l, is_zero(l, x), x, real),
                          kl_select(l, is_lost, kl_real_like(x, NAN), imaginary) };
}

static complex_value complex_atanh(kl_lowering *l, complex_value z)
{
  LLVMValueRef sign = kl_copysign(l, kl_real_like(z.real, 1), z.real);
  complex_value w =
    atanh_right(l, (complex_value){ kl_fabs(l, z.real), mul(l, z.imaginary, sign) });
  return (complex_value){ kl_copysign(l, w.real, z.real), mul(l, w.imaginary, sign) };
}

/* ---- circular functions, by the hyperbolic functions of i z ---- */

static complex_value complex_sin(kl_lowering *l, complex_value z)
{
  return turn_back(l, complex_sinh(l, turn(l, z)));
}
static complex_value complex_cos(kl_lowering *l, complex_value z)
{
  return complex_cosh(l, turn(l, z));
}
static complex_value complex_tan(kl_lowering *l, complex_value z)
{
  return turn_back(l, complex_tanh(l, turn(l, z)));
}
static complex_value complex_asin(kl_lowering *l, complex_value z)
{
  return turn_back(l, complex_asinh(l, turn(l, z)));
}
static complex_value complex_atan(kl_lowering *l, complex_value z)
{
  return turn_back(l, complex_atanh(l, turn(l, z)));
}

/* ---- pow ---- */

/* Returns the exponent of the power of two that x is scaled by, because its absolute value could
 * overflow, or lose bits as a subnormal, although its power does not. The caller multiplies by the
 * power of the scale. */
static LLVMValueRef power_exponent(kl_lowering *l, complex_value x)
{
  LLVMValueRef most = larger(l, kl_fabs(l, x.real), kl_fabs(l, x.imaginary));
  LLVMValueRef is_large = is_above(l, most, limit(l, most, 0x1p126, 0x1p1022)),
               is_small = is_above(l, limit(l, most, 0x1p-100, 0x1p-960), most);
  LLVMValueRef up = kl_const32(l, is_double(l, most) ? 54 : 26);
  return kl_select(l, is_large, kl_const32(l, -2), kl_select(l, is_small, up, kl_const32(l, 0)));
}

static complex_value complex_pow(kl_lowering *l, complex_value x, complex_value y)
{
  LLVMValueRef exponent = power_exponent(l, x),
               twos = kl_sitofp(l, kl_neg(l, exponent), LLVMTypeOf(x.real));
  LLVMValueRef size = kl_call_math(l, KJ_BUILTIN_HYPOT, kl_ldexp(l, x.real, exponent),
                                   kl_ldexp(l, x.imaginary, exponent)),
               angle = kl_call_math(l, KJ_BUILTIN_ATAN2, x.imaginary, x.real),
               zero = kl_real_like(size, 0);
  LLVMValueRef is_real = is_zero(l, y.imaginary), is_plain = is_zero(l, twos);
  LLVMValueRef length = kl_call_math(l, KJ_BUILTIN_POW, size, y.real),
               scale = call(l, KJ_BUILTIN_EXP2, mul(l, twos, y.real)),
               shrink = call(l, KJ_BUILTIN_EXP, kl_fneg(l, mul(l, angle, y.imaginary)));
  length = kl_select(l, is_plain, length, mul(l, length, scale));
  length = kl_select(l, is_real, length, mul(l, length, shrink));
  LLVMValueRef phase = mul(l, angle, y.real),
               log_size = log_of_product(l, size, kl_neg(l, exponent));
  phase = kl_select(l, is_real, phase, add(l, phase, mul(l, y.imaginary, log_size)));
  complex_value w = { mul(l, length, call(l, KJ_BUILTIN_COS, phase)),
                      mul(l, length, call(l, KJ_BUILTIN_SIN, phase)) };
  LLVMValueRef from_zero = kl_and(l, is_zero(l, size), is_above(l, y.real, zero)),
               to_zero = kl_and(l, is_zero(l, y.real), is_real);
  w.real = kl_select(l, to_zero, kl_real_like(size, 1), kl_select(l, from_zero, zero, w.real));
  w.imaginary = kl_select(l, kl_or(l, to_zero, from_zero), zero, w.imaginary);
  return w;
}

/* Returns x ** y by Numba's rules: a power of 0 whose exponent is not real is NaN, and 0 by the
 * formula. */
static complex_value power_of_numba(kl_lowering *l, complex_value x, complex_value y)
{
  LLVMValueRef is_base_zero = kl_and(l, is_zero(l, x.real), is_zero(l, x.imaginary)),
               is_undefined = kl_and(l, is_base_zero, kl_not(l, is_zero(l, y.imaginary))),
               undefined = kl_real_like(x.real, NAN);
  complex_value w = complex_pow(l, x, y);
  w.real = kl_select(l, is_undefined, undefined, w.real);
  w.imaginary = kl_select(l, is_undefined, undefined, w.imaginary);
  return w;
}

/* ---- the table ---- */

typedef complex_value (*complex_function)(kl_lowering *l, complex_value z);

static complex_function function_of(ki_builtin_id id)
{
  static const complex_function functions[KJ_BUILTIN_COUNT] = {
    [KJ_BUILTIN_EXP] = complex_exp,     [KJ_BUILTIN_LOG] = complex_log,
    [KJ_BUILTIN_LOG10] = complex_log10, [KJ_BUILTIN_SQRT] = complex_sqrt,
    [KJ_BUILTIN_SIN] = complex_sin,     [KJ_BUILTIN_COS] = complex_cos,
    [KJ_BUILTIN_TAN] = complex_tan,     [KJ_BUILTIN_ASIN] = complex_asin,
    [KJ_BUILTIN_ACOS] = complex_acos,   [KJ_BUILTIN_ATAN] = complex_atan,
    [KJ_BUILTIN_SINH] = complex_sinh,   [KJ_BUILTIN_COSH] = complex_cosh,
    [KJ_BUILTIN_TANH] = complex_tanh,   [KJ_BUILTIN_ASINH] = complex_asinh,
    [KJ_BUILTIN_ACOSH] = complex_acosh, [KJ_BUILTIN_ATANH] = complex_atanh,
  };
  return functions[id];
}

LLVMValueRef kl_lower_complex_builtin(kl_lowering *l, const kt_expr *expr)
{
  KJ_ASSERT(expr->args.count >= 1 && expr->args.count <= 2);
  complex_value args[2];
  for (size_t i = 0; i < expr->args.count && i < 2; i++)
    args[i] = kl_split_complex(l, kl_lower_expr(l, expr->args.items[i]));
  if (expr->builtin->id == KJ_BUILTIN_POW)
    return kl_join_complex(l, expr->type,
                           kl_has_numba_rules(l) ? power_of_numba(l, args[0], args[1])
                                                 : complex_pow(l, args[0], args[1]));
  complex_function function = function_of(expr->builtin->id);
  if (!function) kl_lower_unsupported(l, expr->location, "this built-in on complex numbers");
  return kl_join_complex(l, expr->type, function(l, args[0]));
}
