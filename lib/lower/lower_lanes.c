/* Operators and conversions on vectors and complex numbers.
 *
 * Vectors: what LLVM's instructions do on whole vectors as they do it on scalars is done so; all
 * else lane by lane. Complex numbers: sums part by part; products and quotients as C's Annex G has
 * them (infinities stay infinite, quotients do not overflow on the way) unless @fastmath. */
#include <math.h>

#include "lower/lower.h"

static const ki_type_info *info_of(kl_lowering *l, kjit_type type)
{
  return ki_type(l->c->types, type);
}

bool kl_is_vector_type(kl_lowering *l, kjit_type type)
{
  return !ki_is_weak(type) && info_of(l, type)->class_ == KJ_CLASS_VECTOR;
}
bool kl_is_complex_type(kl_lowering *l, kjit_type type)
{
  return !ki_is_weak(type) && info_of(l, type)->class_ == KJ_CLASS_COMPLEX;
}

kjit_type kl_part_of(kl_lowering *l, kjit_type type)
{
  return kl_is_vector_type(l, type) || kl_is_complex_type(l, type)
           ? ki_get_component(l->c->types, type, 0).type
           : type;
}

/* ---- vectors ---- */

/* f16 and bf16 go through f32, whose instructions take vectors; only the forms are changed lane by
 * lane. */
static bool is_plain_float(kjit_type lane) { return lane == KJIT_F32 || lane == KJIT_F64; }

static bool is_plain_operation(kl_lowering *l, kjit_op op, kjit_type lane)
{
  bool is_arithmetic = op == KJIT_ADD || op == KJIT_SUB || op == KJIT_MUL;
  if (kl_is_float_type(l, lane)) return is_plain_float(lane) && (is_arithmetic || op == KJIT_DIV);
  return is_arithmetic || op == KJIT_BIT_AND || op == KJIT_BIT_OR || op == KJIT_BIT_XOR ||
         op == KJIT_SHL || op == KJIT_SHR;
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
  LLVMBuilderRef b = l->builder;
  bool is_float = kl_is_float_type(l, lane);
  switch (KJ_AMONG(op)) {
  case KJIT_ADD:
    return is_float ? kl_fast(l, LLVMBuildFAdd(b, x, y, "")) : LLVMBuildAdd(b, x, y, "");
  case KJIT_SUB:
    return is_float ? kl_fast(l, LLVMBuildFSub(b, x, y, "")) : LLVMBuildSub(b, x, y, "");
  case KJIT_MUL:
    return is_float ? kl_fast(l, LLVMBuildFMul(b, x, y, "")) : LLVMBuildMul(b, x, y, "");
  case KJIT_DIV: return kl_fast(l, LLVMBuildFDiv(b, x, y, ""));
  case KJIT_BIT_AND: return LLVMBuildAnd(b, x, y, "");
  case KJIT_BIT_OR: return LLVMBuildOr(b, x, y, "");
  case KJIT_BIT_XOR: return LLVMBuildXor(b, x, y, "");
  default: break;
  }
  uint32_t count = LLVMGetVectorSize(LLVMTypeOf(y));
  LLVMTypeRef type = LLVMGetElementType(LLVMTypeOf(y));
  /* the count is taken modulo the width */
  y = LLVMBuildAnd(b, y, splat(l, LLVMConstInt(type, LLVMGetIntTypeWidth(type) - 1, false), count),
                   "");
  if (op == KJIT_SHL) return LLVMBuildShl(b, x, y, "");
  return kl_is_signed_type(l, lane) ? LLVMBuildAShr(b, x, y, "") : LLVMBuildLShr(b, x, y, "");
}

static LLVMValueRef lane_at(kl_lowering *l, LLVMValueRef vector, uint32_t lane)
{
  return LLVMBuildExtractElement(l->builder, vector, kl_const32(l, lane), "");
}

static LLVMValueRef put_lane(kl_lowering *l, LLVMValueRef vector, LLVMValueRef value, uint32_t lane)
{
  return LLVMBuildInsertElement(l->builder, vector, value, kl_const32(l, lane), "");
}

/* Through f32, rounding once; LLVM makes one instruction of it where the target has it. */
static LLVMValueRef half_vectors(kl_lowering *l, kjit_op op, kjit_type type, LLVMValueRef x,
                                 LLVMValueRef y)
{
  LLVMTypeRef wide = LLVMVectorType(l->f32, info_of(l, type)->count);
  LLVMValueRef result = binary_vectors(l, op, KJIT_F32, LLVMBuildFPExt(l->builder, x, wide, ""),
                                       LLVMBuildFPExt(l->builder, y, wide, ""));
  return LLVMBuildFPTrunc(l->builder, result, LLVMTypeOf(x), "");
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
  for (uint32_t i = 0; i < info_of(l, type)->count; i++)
    result =
      put_lane(l, result,
               kl_build_binary(l, op, lane, lane_at(l, x, i), lane_at(l, y, i), location), i);
  return result;
}

/* ---- complex arithmetic ---- */

kl_complex_value kl_split_complex(kl_lowering *l, LLVMValueRef value)
{
  return (kl_complex_value){ LLVMBuildExtractValue(l->builder, value, 0, ""),
                             LLVMBuildExtractValue(l->builder, value, 1, "") };
}

LLVMValueRef kl_join_complex(kl_lowering *l, kjit_type type, kl_complex_value z)
{
  LLVMValueRef value =
    LLVMBuildInsertValue(l->builder, LLVMGetPoison(kl_register_type(l, type)), z.real, 0, "");
  return LLVMBuildInsertValue(l->builder, value, z.imaginary, 1, "");
}

static LLVMValueRef add(kl_lowering *l, LLVMValueRef x, LLVMValueRef y)
{
  return kl_fast(l, LLVMBuildFAdd(l->builder, x, y, ""));
}
static LLVMValueRef sub(kl_lowering *l, LLVMValueRef x, LLVMValueRef y)
{
  return kl_fast(l, LLVMBuildFSub(l->builder, x, y, ""));
}
static LLVMValueRef mul(kl_lowering *l, LLVMValueRef x, LLVMValueRef y)
{
  return kl_fast(l, LLVMBuildFMul(l->builder, x, y, ""));
}
static LLVMValueRef divide(kl_lowering *l, LLVMValueRef x, LLVMValueRef y)
{
  return kl_fast(l, LLVMBuildFDiv(l->builder, x, y, ""));
}
static LLVMValueRef choose(kl_lowering *l, LLVMValueRef c, LLVMValueRef x, LLVMValueRef y)
{
  return LLVMBuildSelect(l->builder, c, x, y, "");
}
static LLVMValueRef both(kl_lowering *l, LLVMValueRef x, LLVMValueRef y)
{
  return LLVMBuildAnd(l->builder, x, y, "");
}
static LLVMValueRef either(kl_lowering *l, LLVMValueRef x, LLVMValueRef y)
{
  return LLVMBuildOr(l->builder, x, y, "");
}
static LLVMValueRef is_nan(kl_lowering *l, LLVMValueRef x)
{
  return LLVMBuildFCmp(l->builder, LLVMRealUNO, x, x, "");
}
static LLVMValueRef size_of(kl_lowering *l, LLVMValueRef x)
{
  return kl_intrinsic1(l, "llvm.fabs", x);
}
static LLVMValueRef number(LLVMValueRef like, double value)
{
  return LLVMConstReal(LLVMTypeOf(like), value);
}

static LLVMValueRef is_infinite(kl_lowering *l, LLVMValueRef x)
{
  return LLVMBuildFCmp(l->builder, LLVMRealOEQ, size_of(l, x), number(x, INFINITY), "");
}

static LLVMValueRef is_finite(kl_lowering *l, LLVMValueRef x)
{
  return LLVMBuildFCmp(l->builder, LLVMRealOLT, size_of(l, x), number(x, INFINITY), "");
}

/* x, or the size given with the sign of x. */
static LLVMValueRef with_size(kl_lowering *l, LLVMValueRef x, LLVMValueRef size)
{
  return kl_intrinsic2(l, "llvm.copysign", size, x);
}
static LLVMValueRef zero_if_nan(kl_lowering *l, LLVMValueRef x)
{
  return choose(l, is_nan(l, x), with_size(l, x, number(x, 0)), x);
}

/* An infinite number as a point of the unit square's corners and sides: 1 where a part is infinite,
 * 0 where not. */
static LLVMValueRef box(kl_lowering *l, LLVMValueRef x)
{
  return with_size(l, x, choose(l, is_infinite(l, x), number(x, 1), number(x, 0)));
}

static kl_complex_value choose_complex(kl_lowering *l, LLVMValueRef c, kl_complex_value x,
                                       kl_complex_value y)
{
  return (kl_complex_value){ choose(l, c, x.real, y.real), choose(l, c, x.imaginary, y.imaginary) };
}

static kl_complex_value multiply_plain(kl_lowering *l, kl_complex_value x, kl_complex_value y)
{
  return (kl_complex_value){ sub(l, mul(l, x.real, y.real), mul(l, x.imaginary, y.imaginary)),
                             add(l, mul(l, x.real, y.imaginary), mul(l, x.imaginary, y.real)) };
}

static LLVMValueRef has_infinite(kl_lowering *l, kl_complex_value z)
{
  return either(l, is_infinite(l, z.real), is_infinite(l, z.imaginary));
}

/* C, Annex G.5.1, example 1: what a product that came out as NaN + i NaN should be. */
static kl_complex_value recover_product(kl_lowering *l, kl_complex_value x, kl_complex_value y,
                                        kl_complex_value product)
{
  LLVMValueRef x_infinite = has_infinite(l, x), y_infinite = has_infinite(l, y);
  kl_complex_value boxed_x = { box(l, x.real), box(l, x.imaginary) },
                   boxed_y = { box(l, y.real), box(l, y.imaginary) };
  kl_complex_value plain_x = { zero_if_nan(l, x.real), zero_if_nan(l, x.imaginary) },
                   plain_y = { zero_if_nan(l, y.real), zero_if_nan(l, y.imaginary) };
  LLVMValueRef overflow = is_infinite(l, mul(l, x.real, y.real));
  overflow = either(l, overflow, is_infinite(l, mul(l, x.imaginary, y.imaginary)));
  overflow = either(l, overflow, is_infinite(l, mul(l, x.real, y.imaginary)));
  overflow = either(l, overflow, is_infinite(l, mul(l, x.imaginary, y.real)));
  kl_complex_value a = choose_complex(l, x_infinite, boxed_x, plain_x),
                   b = choose_complex(l, y_infinite, boxed_y, plain_y);
  kl_complex_value p = multiply_plain(l, a, b);
  LLVMValueRef infinity = number(x.real, INFINITY),
               recalculate = either(l, either(l, x_infinite, y_infinite), overflow);
  return choose_complex(l, recalculate,
                        (kl_complex_value){ mul(l, infinity, p.real),
                                            mul(l, infinity, p.imaginary) },
                        product);
}

typedef kl_complex_value (*recovery)(kl_lowering *l, kl_complex_value x, kl_complex_value y,
                                     kl_complex_value result);

/* Where both parts are NaN, which is rare: a branch. */
static kl_complex_value recover(kl_lowering *l, recovery how, kl_complex_value x,
                                kl_complex_value y, kl_complex_value result)
{
  if (l->frame->instance->is_fastmath) return result;
  LLVMBasicBlockRef before = LLVMGetInsertBlock(l->builder), rare = kl_new_block(l, "complex.nan"),
                    end = kl_new_block(l, "complex");
  LLVMBuildCondBr(l->builder, both(l, is_nan(l, result.real), is_nan(l, result.imaginary)), rare,
                  end);
  kl_move_to(l, rare);
  kl_complex_value other = how(l, x, y, result);
  LLVMBasicBlockRef from[2] = { before, LLVMGetInsertBlock(l->builder) };
  LLVMBuildBr(l->builder, end);
  kl_move_to(l, end);
  LLVMTypeRef type = LLVMTypeOf(result.real);
  kl_complex_value joined = { LLVMBuildPhi(l->builder, type, ""),
                              LLVMBuildPhi(l->builder, type, "") };
  LLVMAddIncoming(joined.real, (LLVMValueRef[]){ result.real, other.real }, from, 2);
  LLVMAddIncoming(joined.imaginary, (LLVMValueRef[]){ result.imaginary, other.imaginary }, from, 2);
  return joined;
}

static kl_complex_value multiply_complex(kl_lowering *l, kl_complex_value x, kl_complex_value y)
{
  return recover(l, recover_product, x, y, multiply_plain(l, x, y));
}

/* C, Annex G.5.1, example 2. */
static kl_complex_value recover_quotient(kl_lowering *l, kl_complex_value x, kl_complex_value y,
                                         kl_complex_value quotient)
{
  LLVMValueRef zero = number(x.real, 0), infinity = number(x.real, INFINITY);
  LLVMValueRef by_zero = both(l, LLVMBuildFCmp(l->builder, LLVMRealOEQ, y.real, zero, ""),
                              LLVMBuildFCmp(l->builder, LLVMRealOEQ, y.imaginary, zero, ""));
  by_zero = both(l, by_zero,
                 LLVMBuildNot(l->builder, both(l, is_nan(l, x.real), is_nan(l, x.imaginary)), ""));
  LLVMValueRef x_infinite = has_infinite(l, x), y_infinite = has_infinite(l, y);
  LLVMValueRef x_finite = both(l, is_finite(l, x.real), is_finite(l, x.imaginary)),
               y_finite = both(l, is_finite(l, y.real), is_finite(l, y.imaginary));
  LLVMValueRef signed_infinity = with_size(l, y.real, infinity);
  kl_complex_value pole = { mul(l, signed_infinity, x.real), mul(l, signed_infinity, x.imaginary) };
  kl_complex_value a = { box(l, x.real), box(l, x.imaginary) },
                   b = { box(l, y.real), box(l, y.imaginary) };
  kl_complex_value conjugate_y = { y.real, LLVMBuildFNeg(l->builder, y.imaginary, "") },
                   conjugate_b = { b.real, LLVMBuildFNeg(l->builder, b.imaginary, "") };
  kl_complex_value grown = multiply_plain(l, a, conjugate_y),
                   shrunk = multiply_plain(l, x, conjugate_b);
  grown = (kl_complex_value){ mul(l, infinity, grown.real), mul(l, infinity, grown.imaginary) };
  shrunk = (kl_complex_value){ mul(l, zero, shrunk.real), mul(l, zero, shrunk.imaginary) };
  kl_complex_value result = choose_complex(l, both(l, y_infinite, x_finite), shrunk, quotient);
  result = choose_complex(l, both(l, x_infinite, y_finite), grown, result);
  return choose_complex(l, by_zero, pole, result);
}

/* The divisor's larger part to about 1, by a power of two. */
static LLVMValueRef scale_exponent(kl_lowering *l, kl_complex_value y)
{
  LLVMValueRef largest =
    kl_intrinsic2(l, "llvm.maxnum", size_of(l, y.real), size_of(l, y.imaginary));
  LLVMTypeRef overloads[2] = { LLVMTypeOf(largest), l->i32 };
  LLVMValueRef parts = kl_intrinsic(l, "llvm.frexp", overloads, 2, &largest, 1);
  LLVMValueRef exponent =
    LLVMBuildNeg(l->builder, LLVMBuildExtractValue(l->builder, parts, 1, ""), "");
  return choose(l, is_finite(l, largest), exponent, kl_const32(l, 0));
}

static LLVMValueRef scale(kl_lowering *l, LLVMValueRef x, LLVMValueRef exponent)
{
  LLVMTypeRef overloads[2] = { LLVMTypeOf(x), l->i32 };
  return kl_intrinsic(l, "llvm.ldexp", overloads, 2, (LLVMValueRef[]){ x, exponent }, 2);
}

static kl_complex_value divide_scaled(kl_lowering *l, kl_complex_value x, kl_complex_value y)
{
  LLVMValueRef exponent = scale_exponent(l, y);
  kl_complex_value scaled = { scale(l, y.real, exponent), scale(l, y.imaginary, exponent) };
  kl_complex_value conjugate = { scaled.real, LLVMBuildFNeg(l->builder, scaled.imaginary, "") };
  LLVMValueRef size =
    add(l, mul(l, scaled.real, scaled.real), mul(l, scaled.imaginary, scaled.imaginary));
  kl_complex_value product = multiply_plain(l, x, conjugate);
  return (kl_complex_value){ scale(l, divide(l, product.real, size), exponent),
                             scale(l, divide(l, product.imaginary, size), exponent) };
}

static kl_complex_value divide_plain(kl_lowering *l, kl_complex_value x, kl_complex_value y)
{
  LLVMValueRef size = add(l, mul(l, y.real, y.real), mul(l, y.imaginary, y.imaginary));
  kl_complex_value product =
    multiply_plain(l, x, (kl_complex_value){ y.real, LLVMBuildFNeg(l->builder, y.imaginary, "") });
  return (kl_complex_value){ divide(l, product.real, size), divide(l, product.imaginary, size) };
}

static kl_complex_value divide_complex(kl_lowering *l, kl_complex_value x, kl_complex_value y)
{
  if (l->frame->instance->is_fastmath) return divide_plain(l, x, y);
  return recover(l, recover_quotient, x, y, divide_scaled(l, x, y));
}

static LLVMValueRef complex_binary(kl_lowering *l, kjit_op op, kjit_type type, LLVMValueRef left,
                                   LLVMValueRef right)
{
  kl_complex_value x = kl_split_complex(l, left), y = kl_split_complex(l, right), z;
  switch (KJ_AMONG(op)) {
  case KJIT_ADD:
    z = (kl_complex_value){ add(l, x.real, y.real), add(l, x.imaginary, y.imaginary) };
    break;
  case KJIT_SUB:
    z = (kl_complex_value){ sub(l, x.real, y.real), sub(l, x.imaginary, y.imaginary) };
    break;
  case KJIT_MUL: z = multiply_complex(l, x, y); break;
  default: KJ_ASSERT(op == KJIT_DIV); z = divide_complex(l, x, y);
  }
  return kl_join_complex(l, type, z);
}

/* ---- all of them ---- */

LLVMValueRef kl_build_binary_parts(kl_lowering *l, kjit_op op, kjit_type type, LLVMValueRef x,
                                   LLVMValueRef y, kj_location location)
{
  return kl_is_vector_type(l, type) ? vector_binary(l, op, type, x, y, location)
                                    : complex_binary(l, op, type, x, y);
}

LLVMValueRef kl_build_unary_parts(kl_lowering *l, kjit_op op, kjit_type type, LLVMValueRef x)
{
  kjit_type part = kl_part_of(l, type);
  LLVMBuilderRef b = l->builder;
  if (kl_is_complex_type(l, type)) {
    kl_complex_value z = kl_split_complex(l, x);
    return kl_join_complex(l, type,
                           (kl_complex_value){ LLVMBuildFNeg(b, z.real, ""),
                                               LLVMBuildFNeg(b, z.imaginary, "") });
  }
  if (op != KJIT_NEG) return LLVMBuildNot(b, x, "");
  if (!kl_is_float_type(l, part)) return LLVMBuildNeg(b, x, "");
  if (part != KJIT_BF16) return LLVMBuildFNeg(b, x, "");
  return LLVMBuildXor(b, x, splat(l, LLVMConstInt(l->i16, 0x8000, false), info_of(l, type)->count),
                      "");
}

static LLVMValueRef compare_complex(kl_lowering *l, kjit_op op, LLVMValueRef left,
                                    LLVMValueRef right)
{
  kl_complex_value x = kl_split_complex(l, left), y = kl_split_complex(l, right);
  LLVMRealPredicate predicate = op == KJIT_EQ ? LLVMRealOEQ : LLVMRealUNE;
  LLVMValueRef real = LLVMBuildFCmp(l->builder, predicate, x.real, y.real, ""),
               imaginary = LLVMBuildFCmp(l->builder, predicate, x.imaginary, y.imaginary, "");
  return op == KJIT_EQ ? both(l, real, imaginary) : either(l, real, imaginary);
}

/* kl_build_compare's instructions take vectors of all but the types that are converted first. */
LLVMValueRef kl_build_compare_parts(kl_lowering *l, kjit_op op, kjit_type type, LLVMValueRef x,
                                    LLVMValueRef y)
{
  if (kl_is_complex_type(l, type)) return compare_complex(l, op, x, y);
  kjit_type lane = kl_part_of(l, type);
  if (!kl_is_float_type(l, lane) || is_plain_float(lane))
    return kl_build_compare(l, op, lane, lane, x, y);
  uint32_t count = info_of(l, type)->count;
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
