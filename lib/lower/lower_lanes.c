/* Operators and conversions on vectors and complex numbers.
 *
 * Vectors: an operation for which LLVM has an instruction on whole vectors becomes this
 * instruction; all other operations are built lane by lane. Complex numbers: sums and differences
 * are computed part by part. Products and quotients follow C's Annex G unless @fastmath is set:
 * infinities stay infinite, and intermediate results of quotients do not overflow. */
#include <math.h>

#include "lower/instruction.h"

bool kl_is_vector_type(kl_lowering *l, kjit_type type)
{
  return !ki_is_weak(type) && kl_type_info(l, type)->class_ == KJ_CLASS_VECTOR;
}
bool kl_is_complex_type(kl_lowering *l, kjit_type type)
{
  return !ki_is_weak(type) && kl_type_info(l, type)->class_ == KJ_CLASS_COMPLEX;
}

kjit_type kl_part_of(kl_lowering *l, kjit_type type)
{
  return kl_is_vector_type(l, type) || kl_is_complex_type(l, type)
           ? ki_get_component(l->c->types, type, 0).type
           : type;
}

/* ---- vectors ---- */

/* Returns whether vectors with lanes of this float type are computed without a conversion. Lanes of
 * f16 and bf16 are first converted to f32, one by one, and computed as a vector of f32. */
static bool is_plain_float(kjit_type lane) { return lane == KJIT_F32 || lane == KJIT_F64; }

static bool is_plain_operation(kl_lowering *l, kjit_op op, kjit_type lane)
{
  bool is_arithmetic = op == KJIT_OP_ADD || op == KJIT_OP_SUB || op == KJIT_OP_MUL;
  if (kl_is_float_type(l, lane))
    return is_plain_float(lane) && (is_arithmetic || op == KJIT_OP_DIV);
  return is_arithmetic || op == KJIT_OP_BIT_AND || op == KJIT_OP_BIT_OR || op == KJIT_OP_BIT_XOR ||
         op == KJIT_OP_SHL || op == KJIT_OP_SHR;
}

static LLVMValueRef splat(kl_lowering *l, LLVMValueRef constant, uint32_t count)
{
  LLVMValueRef *lanes = KJ_NEW_ARRAY(l->c->arena, LLVMValueRef, count);
  for (uint32_t i = 0; i < count; i++) lanes[i] = constant;
  return LLVMConstVector(lanes, count);
}

static LLVMValueRef binary_vectors(kl_lowering *l, kjit_op op, kjit_type lane, LLVMValueRef x,
                                   LLVMValueRef y)
{
  bool is_float = kl_is_float_type(l, lane);
  switch (KJ_AMONG(op)) {
  case KJIT_OP_ADD: return is_float ? kl_fast(l, kl_fadd(l, x, y)) : kl_add(l, x, y);
  case KJIT_OP_SUB: return is_float ? kl_fast(l, kl_fsub(l, x, y)) : kl_sub(l, x, y);
  case KJIT_OP_MUL: return is_float ? kl_fast(l, kl_fmul(l, x, y)) : kl_mul(l, x, y);
  case KJIT_OP_DIV: return kl_fast(l, kl_fdiv(l, x, y));
  case KJIT_OP_BIT_AND: return kl_and(l, x, y);
  case KJIT_OP_BIT_OR: return kl_or(l, x, y);
  case KJIT_OP_BIT_XOR: return kl_xor(l, x, y);
  default: break;
  }
  uint32_t count = LLVMGetVectorSize(LLVMTypeOf(y));
  LLVMTypeRef type = LLVMGetElementType(LLVMTypeOf(y));
  /* the shift count is taken modulo the width */
  y = kl_and(l, y, splat(l, LLVMConstInt(type, LLVMGetIntTypeWidth(type) - 1, false), count));
  if (op == KJIT_OP_SHL) return kl_shl(l, x, y);
  return kl_is_signed_type(l, lane) ? kl_ashr(l, x, y) : kl_lshr(l, x, y);
}

static LLVMValueRef lane_at(kl_lowering *l, LLVMValueRef vector, uint32_t lane)
{
  return kl_extract_element(l, vector, kl_const32(l, lane));
}

static LLVMValueRef put_lane(kl_lowering *l, LLVMValueRef vector, LLVMValueRef value, uint32_t lane)
{
  return kl_insert_element(l, vector, value, kl_const32(l, lane));
}

/* Computes in f32 and rounds once. If the target has an instruction for this, LLVM uses it. */
static LLVMValueRef half_vectors(kl_lowering *l, kjit_op op, kjit_type type, LLVMValueRef x,
                                 LLVMValueRef y)
{
  LLVMTypeRef wide = LLVMVectorType(l->f32, kl_type_info(l, type)->count);
  LLVMValueRef result = binary_vectors(l, op, KJIT_F32, kl_fpext(l, x, wide), kl_fpext(l, y, wide));
  return kl_fptrunc(l, result, LLVMTypeOf(x));
}

static LLVMValueRef vector_binary(kl_lowering *l, kjit_op op, kjit_type type, LLVMValueRef x,
                                  LLVMValueRef y, kj_location location)
{
  kjit_type lane = kl_part_of(l, type);
  if (is_plain_operation(l, op, lane)) return binary_vectors(l, op, lane, x, y);
  LLVMValueRef native = lane == KJIT_BF16 ? kl_try_brain_operation(l, op, x, y) : NULL;
  if (native) return native;
  if (lane == KJIT_F16 && is_plain_operation(l, op, KJIT_F32))
    return half_vectors(l, op, type, x, y);
  LLVMValueRef result = LLVMGetPoison(kl_register_type(l, type));
  for (uint32_t i = 0; i < kl_type_info(l, type)->count; i++)
    result =
      put_lane(l, result,
               kl_build_binary(l, op, lane, lane_at(l, x, i), lane_at(l, y, i), location), i);
  return result;
}

/* ---- complex arithmetic ---- */

kl_complex_value kl_split_complex(kl_lowering *l, LLVMValueRef value)
{
  return (kl_complex_value){ kl_extract_value(l, value, 0), kl_extract_value(l, value, 1) };
}

LLVMValueRef kl_join_complex(kl_lowering *l, kjit_type type, kl_complex_value z)
{
  LLVMValueRef value = kl_insert_value(l, LLVMGetPoison(kl_register_type(l, type)), z.real, 0);
  return kl_insert_value(l, value, z.imaginary, 1);
}

static LLVMValueRef add(kl_lowering *l, LLVMValueRef x, LLVMValueRef y)
{
  return kl_fast(l, kl_fadd(l, x, y));
}
static LLVMValueRef sub(kl_lowering *l, LLVMValueRef x, LLVMValueRef y)
{
  return kl_fast(l, kl_fsub(l, x, y));
}
static LLVMValueRef mul(kl_lowering *l, LLVMValueRef x, LLVMValueRef y)
{
  return kl_fast(l, kl_fmul(l, x, y));
}
static LLVMValueRef divide(kl_lowering *l, LLVMValueRef x, LLVMValueRef y)
{
  return kl_fast(l, kl_fdiv(l, x, y));
}
static LLVMValueRef is_nan(kl_lowering *l, LLVMValueRef x) { return kl_fcmp(l, LLVMRealUNO, x, x); }

/* Returns a number that has the sign of x and the given absolute value. */
static LLVMValueRef with_size(kl_lowering *l, LLVMValueRef x, LLVMValueRef size)
{
  return kl_intrinsic2(l, "llvm.copysign", size, x);
}
static LLVMValueRef zero_if_nan(kl_lowering *l, LLVMValueRef x)
{
  return kl_select(l, is_nan(l, x), with_size(l, x, kl_real_like(x, 0)), x);
}

/* Returns 1 for an infinite part of a complex number and 0 for a finite part, with the sign of the
 * part. */
static LLVMValueRef box(kl_lowering *l, LLVMValueRef x)
{
  return with_size(l, x,
                   kl_select(l, kl_is_infinite(l, x), kl_real_like(x, 1), kl_real_like(x, 0)));
}

static kl_complex_value choose_complex(kl_lowering *l, LLVMValueRef c, kl_complex_value x,
                                       kl_complex_value y)
{
  return (kl_complex_value){ kl_select(l, c, x.real, y.real),
                             kl_select(l, c, x.imaginary, y.imaginary) };
}

static kl_complex_value multiply_plain(kl_lowering *l, kl_complex_value x, kl_complex_value y)
{
  return (kl_complex_value){ sub(l, mul(l, x.real, y.real), mul(l, x.imaginary, y.imaginary)),
                             add(l, mul(l, x.real, y.imaginary), mul(l, x.imaginary, y.real)) };
}

static LLVMValueRef has_infinite(kl_lowering *l, kl_complex_value z)
{
  return kl_or(l, kl_is_infinite(l, z.real), kl_is_infinite(l, z.imaginary));
}

/* Corrects a product whose parts are both NaN (C, Annex G.5.1, example 1). */
static kl_complex_value recover_product(kl_lowering *l, kl_complex_value x, kl_complex_value y,
                                        kl_complex_value product)
{
  LLVMValueRef x_infinite = has_infinite(l, x), y_infinite = has_infinite(l, y);
  kl_complex_value boxed_x = { box(l, x.real), box(l, x.imaginary) },
                   boxed_y = { box(l, y.real), box(l, y.imaginary) };
  kl_complex_value plain_x = { zero_if_nan(l, x.real), zero_if_nan(l, x.imaginary) },
                   plain_y = { zero_if_nan(l, y.real), zero_if_nan(l, y.imaginary) };
  LLVMValueRef overflow = kl_is_infinite(l, mul(l, x.real, y.real));
  overflow = kl_or(l, overflow, kl_is_infinite(l, mul(l, x.imaginary, y.imaginary)));
  overflow = kl_or(l, overflow, kl_is_infinite(l, mul(l, x.real, y.imaginary)));
  overflow = kl_or(l, overflow, kl_is_infinite(l, mul(l, x.imaginary, y.real)));
  kl_complex_value a = choose_complex(l, x_infinite, boxed_x, plain_x),
                   b = choose_complex(l, y_infinite, boxed_y, plain_y);
  kl_complex_value p = multiply_plain(l, a, b);
  LLVMValueRef infinity = kl_real_like(x.real, INFINITY),
               recalculate = kl_or(l, kl_or(l, x_infinite, y_infinite), overflow);
  return choose_complex(l, recalculate,
                        (kl_complex_value){ mul(l, infinity, p.real),
                                            mul(l, infinity, p.imaginary) },
                        product);
}

typedef kl_complex_value (*recovery)(kl_lowering *l, kl_complex_value x, kl_complex_value y,
                                     kl_complex_value result);

/* Corrects a result whose parts are both NaN. Such results are rare, so the correction is under a
 * branch. */
static kl_complex_value recover(kl_lowering *l, recovery how, kl_complex_value x,
                                kl_complex_value y, kl_complex_value result)
{
  if (l->frame->instance->modes.is_fastmath) return result;
  LLVMBasicBlockRef before = kl_here(l), rare = kl_new_block(l, "complex.nan"),
                    end = kl_new_block(l, "complex");
  kl_go_on_if(l, kl_and(l, is_nan(l, result.real), is_nan(l, result.imaginary)), rare, end);
  kl_complex_value other = how(l, x, y, result);
  LLVMBasicBlockRef from[2] = { before, kl_here(l) };
  kl_go_on_in(l, end);
  LLVMValueRef real = kl_join(l, result.real, from[0], other.real, from[1]);
  return (kl_complex_value){ real,
                             kl_join(l, result.imaginary, from[0], other.imaginary, from[1]) };
}

/* Returns the exponent k for which 2^k times the larger part of z is in [2^(to - 1), 2^to). Returns
 * 0 if the larger part is infinite or NaN. */
static LLVMValueRef scale_exponent(kl_lowering *l, kl_complex_value z, int to)
{
  LLVMValueRef largest =
    kl_intrinsic2(l, "llvm.maxnum", kl_fabs(l, z.real), kl_fabs(l, z.imaginary));
  LLVMValueRef exponent;
  (void)kl_split_exponent(l, largest, &exponent);
  exponent = kl_sub(l, kl_const32(l, to), exponent);
  return kl_select(l, kl_is_finite(l, largest), exponent, kl_const32(l, 0));
}

static kl_complex_value scale(kl_lowering *l, kl_complex_value x, LLVMValueRef exponent)
{
  return (kl_complex_value){ kl_ldexp(l, x.real, exponent), kl_ldexp(l, x.imaginary, exponent) };
}

/* Returns the exponent that makes the dividend as large as possible, so that its products with
 * numbers of up to 2 do not overflow. */
static LLVMValueRef dividend_exponent(kl_lowering *l, kl_complex_value x)
{
  return scale_exponent(l, x, LLVMTypeOf(x.real) == l->f64 ? 1018 : 120);
}

/* Corrects a quotient whose parts are both NaN (C, Annex G.5.1, example 2). The example multiplies
 * 0 by a sum that can overflow, so it can give NaN for a finite number divided by an infinite
 * number. This function scales the dividend, so that the sum is finite. */
static kl_complex_value recover_quotient(kl_lowering *l, kl_complex_value x, kl_complex_value y,
                                         kl_complex_value quotient)
{
  LLVMValueRef zero = kl_real_like(x.real, 0), infinity = kl_real_like(x.real, INFINITY);
  LLVMValueRef by_zero =
    kl_and(l, kl_fcmp(l, LLVMRealOEQ, y.real, zero), kl_fcmp(l, LLVMRealOEQ, y.imaginary, zero));
  by_zero = kl_and(l, by_zero, kl_not(l, kl_and(l, is_nan(l, x.real), is_nan(l, x.imaginary))));
  LLVMValueRef x_infinite = has_infinite(l, x), y_infinite = has_infinite(l, y);
  LLVMValueRef x_finite = kl_and(l, kl_is_finite(l, x.real), kl_is_finite(l, x.imaginary)),
               y_finite = kl_and(l, kl_is_finite(l, y.real), kl_is_finite(l, y.imaginary));
  LLVMValueRef signed_infinity = with_size(l, y.real, infinity);
  kl_complex_value pole = { mul(l, signed_infinity, x.real), mul(l, signed_infinity, x.imaginary) };
  kl_complex_value a = { box(l, x.real), box(l, x.imaginary) },
                   b = { box(l, y.real), box(l, y.imaginary) };
  kl_complex_value conjugate_y = { y.real, kl_fneg(l, y.imaginary) },
                   conjugate_b = { b.real, kl_fneg(l, b.imaginary) };
  kl_complex_value grown = multiply_plain(l, a, conjugate_y),
                   shrunk = multiply_plain(l, scale(l, x, dividend_exponent(l, x)), conjugate_b);
  grown = (kl_complex_value){ mul(l, infinity, grown.real), mul(l, infinity, grown.imaginary) };
  shrunk = (kl_complex_value){ mul(l, zero, shrunk.real), mul(l, zero, shrunk.imaginary) };
  kl_complex_value result = choose_complex(l, kl_and(l, y_infinite, x_finite), shrunk, quotient);
  result = choose_complex(l, kl_and(l, x_infinite, y_finite), grown, result);
  return choose_complex(l, by_zero, pole, result);
}

/* Divides after scaling. The divisor is scaled to an absolute value between a quarter and 2. The
 * dividend is scaled up as far as possible without an overflow of its products, so that its smaller
 * part does not lose bits. Then only the last step can overflow or round to a subnormal number, and
 * it does so only if the quotient does. */
static kl_complex_value divide_scaled(kl_lowering *l, kl_complex_value x, kl_complex_value y)
{
  LLVMValueRef of_y = scale_exponent(l, y, 0), of_x = dividend_exponent(l, x);
  y = scale(l, y, of_y);
  x = scale(l, x, of_x);
  LLVMValueRef size = add(l, mul(l, y.real, y.real), mul(l, y.imaginary, y.imaginary));
  kl_complex_value product =
    multiply_plain(l, x, (kl_complex_value){ y.real, kl_fneg(l, y.imaginary) });
  kl_complex_value quotient = { divide(l, product.real, size), divide(l, product.imaginary, size) };
  return scale(l, quotient, kl_sub(l, of_y, of_x));
}

static kl_complex_value divide_plain(kl_lowering *l, kl_complex_value x, kl_complex_value y)
{
  LLVMValueRef size = add(l, mul(l, y.real, y.real), mul(l, y.imaginary, y.imaginary));
  kl_complex_value product =
    multiply_plain(l, x, (kl_complex_value){ y.real, kl_fneg(l, y.imaginary) });
  return (kl_complex_value){ divide(l, product.real, size), divide(l, product.imaginary, size) };
}

/* Divides two complex numbers of f32 in f64, where products are exact and cannot overflow. Only the
 * CPU uses this function, because GPUs have few f64 units. */
static kl_complex_value divide_as_doubles(kl_lowering *l, kl_complex_value x, kl_complex_value y)
{
  kl_complex_value q = divide_plain(
    l, (kl_complex_value){ kl_fpext(l, x.real, l->f64), kl_fpext(l, x.imaginary, l->f64) },
    (kl_complex_value){ kl_fpext(l, y.real, l->f64), kl_fpext(l, y.imaginary, l->f64) });
  return (kl_complex_value){ kl_fptrunc(l, q.real, l->f32), kl_fptrunc(l, q.imaginary, l->f32) };
}

/* Divides like Python and Numba, by Smith's method: both parts of the divisor are divided by the
 * larger part. The signs of zeros and the results for infinities follow from this method. */
static kl_complex_value divide_as_python(kl_lowering *l, kl_complex_value x, kl_complex_value y)
{
  LLVMValueRef is_real_larger =
    kl_fcmp(l, LLVMRealOGE, kl_fabs(l, y.real), kl_fabs(l, y.imaginary));
  LLVMValueRef largest = kl_select(l, is_real_larger, y.real, y.imaginary),
               other = kl_select(l, is_real_larger, y.imaginary, y.real),
               first = kl_select(l, is_real_larger, x.real, x.imaginary),
               second = kl_select(l, is_real_larger, x.imaginary, x.real);
  LLVMValueRef ratio = divide(l, other, largest);
  LLVMValueRef size = add(l, largest, mul(l, other, ratio));
  LLVMValueRef real = add(l, first, mul(l, second, ratio));
  LLVMValueRef imaginary = kl_select(l, is_real_larger, sub(l, second, mul(l, first, ratio)),
                                     sub(l, mul(l, first, ratio), second));
  return (kl_complex_value){ divide(l, real, size), divide(l, imaginary, size) };
}

static kl_complex_value divide_complex(kl_lowering *l, kl_complex_value x, kl_complex_value y)
{
  if (kl_has_numba_rules(l)) return divide_as_python(l, x, y);
  if (l->frame->instance->modes.is_fastmath) return divide_plain(l, x, y);
  bool is_wide = LLVMTypeOf(x.real) == l->f32 && l->c->request->target.kind == KJ_TARGET_CPU;
  return recover(l, recover_quotient, x, y,
                 is_wide ? divide_as_doubles(l, x, y) : divide_scaled(l, x, y));
}

static LLVMValueRef complex_binary(kl_lowering *l, kjit_op op, kjit_type type, LLVMValueRef left,
                                   LLVMValueRef right)
{
  kl_complex_value x = kl_split_complex(l, left), y = kl_split_complex(l, right), z;
  switch (KJ_AMONG(op)) {
  case KJIT_OP_ADD:
    z = (kl_complex_value){ add(l, x.real, y.real), add(l, x.imaginary, y.imaginary) };
    break;
  case KJIT_OP_SUB:
    z = (kl_complex_value){ sub(l, x.real, y.real), sub(l, x.imaginary, y.imaginary) };
    break;
  case KJIT_OP_MUL:
    z = multiply_plain(l, x, y);
    if (!kl_has_numba_rules(l)) z = recover(l, recover_product, x, y, z);
    break;
  default: KJ_ASSERT(op == KJIT_OP_DIV); z = divide_complex(l, x, y);
  }
  return kl_join_complex(l, type, z);
}

/* ---- operators on vectors and complex numbers ---- */

LLVMValueRef kl_build_binary_parts(kl_lowering *l, kjit_op op, kjit_type type, LLVMValueRef x,
                                   LLVMValueRef y, kj_location location)
{
  return kl_is_vector_type(l, type) ? vector_binary(l, op, type, x, y, location)
                                    : complex_binary(l, op, type, x, y);
}

LLVMValueRef kl_build_unary_parts(kl_lowering *l, kjit_op op, kjit_type type, LLVMValueRef x)
{
  kjit_type part = kl_part_of(l, type);
  if (kl_is_complex_type(l, type)) {
    kl_complex_value z = kl_split_complex(l, x);
    return kl_join_complex(l, type,
                           (kl_complex_value){ kl_fneg(l, z.real), kl_fneg(l, z.imaginary) });
  }
  if (op != KJIT_OP_NEG) return kl_not(l, x);
  if (!kl_is_float_type(l, part)) return kl_neg(l, x);
  if (part != KJIT_BF16) return kl_fneg(l, x);
  return kl_xor(l, x, splat(l, LLVMConstInt(l->i16, 0x8000, false), kl_type_info(l, type)->count));
}

static LLVMValueRef compare_complex(kl_lowering *l, kjit_op op, LLVMValueRef left,
                                    LLVMValueRef right)
{
  kl_complex_value x = kl_split_complex(l, left), y = kl_split_complex(l, right);
  LLVMRealPredicate predicate = op == KJIT_OP_EQ ? LLVMRealOEQ : LLVMRealUNE;
  LLVMValueRef real = kl_fcmp(l, predicate, x.real, y.real),
               imaginary = kl_fcmp(l, predicate, x.imaginary, y.imaginary);
  return op == KJIT_OP_EQ ? kl_and(l, real, imaginary) : kl_or(l, real, imaginary);
}

/* Compares vectors or complex numbers. kl_build_compare accepts whole vectors, unless it has to
 * convert the lanes before it compares them. */
LLVMValueRef kl_build_compare_parts(kl_lowering *l, kjit_op op, kjit_type type, LLVMValueRef x,
                                    LLVMValueRef y)
{
  if (kl_is_complex_type(l, type)) return compare_complex(l, op, x, y);
  kjit_type lane = kl_part_of(l, type);
  if (!kl_is_float_type(l, lane) || is_plain_float(lane))
    return kl_build_compare(l, op, lane, lane, x, y);
  uint32_t count = kl_type_info(l, type)->count;
  LLVMValueRef result = LLVMGetPoison(LLVMVectorType(l->i1, count));
  for (uint32_t i = 0; i < count; i++)
    result = put_lane(l, result,
                      kl_build_compare(l, op, lane, lane, lane_at(l, x, i), lane_at(l, y, i)), i);
  return result;
}

LLVMValueRef kl_build_convert_parts(kl_lowering *l, kjit_type from, kjit_type to,
                                    LLVMValueRef value)
{
  LLVMValueRef result = LLVMGetPoison(kl_register_type(l, to));
  uint32_t count = kl_part_count(l, to);
  kjit_type have = kl_part_of(l, from), want = kl_part_of(l, to);
  for (uint32_t i = 0; i < count; i++)
    result = kl_set_part(l, to, result,
                         kl_build_convert(l, have, want, kl_get_part(l, from, value, i)), i);
  return result;
}
