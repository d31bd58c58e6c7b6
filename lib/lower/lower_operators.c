/* Operators on scalars, and values as bits. Nothing is undefined here: division by zero gives 0,
 * shift counts are taken modulo the width, integers wrap. */
#include "lower/lower.h"

/* Values as bits: what lanes of a warp exchange and compare, and what bitcast reads anew. A value
 * of n bytes is an integer of 8 * n bits, laid out as in memory; what pads a struct is 0. */

static bool has_parts(kl_lowering *l, kjit_type type)
{
  return kl_is_composed_type(l, type) && !kl_is_vector_type(l, type) &&
         ki_type(l->c->types, type)->class_ != KJ_CLASS_POINTER;
}

static bool is_pointer(kl_lowering *l, kjit_type type)
{
  return kl_is_composed_type(l, type) && ki_type(l->c->types, type)->class_ == KJ_CLASS_POINTER;
}

static LLVMTypeRef bits_type(kl_lowering *l, kjit_type type)
{
  return LLVMIntTypeInContext(l->context, 8 * kl_scalar_bytes(l, type));
}

/* Lanes of bool are bytes in memory. */
static LLVMValueRef lanes_to_memory(kl_lowering *l, kjit_type type, LLVMValueRef value)
{
  if (!kl_is_vector_type(l, type)) return kl_to_memory(l, type, value);
  if (kl_part_of(l, type) != KJIT_BOOL) return value;
  return LLVMBuildZExt(l->builder, value,
                       LLVMVectorType(l->i8, LLVMGetVectorSize(LLVMTypeOf(value))), "");
}

LLVMValueRef kl_value_bits(kl_lowering *l, kjit_type type, LLVMValueRef value)
{
  LLVMTypeRef wide = bits_type(l, type);
  if (is_pointer(l, type)) return LLVMBuildPtrToInt(l->builder, value, wide, "");
  if (!has_parts(l, type))
    return LLVMBuildBitCast(l->builder, lanes_to_memory(l, type, value), wide, "");
  LLVMValueRef bits = LLVMConstNull(wide);
  uint32_t count = kl_part_count(l, type);
  for (uint32_t i = 0; i < count; i++) {
    ki_component part = kl_get_part_info(l, type, i);
    LLVMValueRef own =
      LLVMBuildZExt(l->builder, kl_value_bits(l, part.type, kl_get_part(l, type, value, i)), wide,
                    "");
    bits = LLVMBuildOr(l->builder, bits,
                       LLVMBuildShl(l->builder, own,
                                    LLVMConstInt(wide, 8 * part.offset_bytes, false), ""),
                       "");
  }
  return bits;
}

LLVMValueRef kl_value_of_bits(kl_lowering *l, kjit_type type, LLVMValueRef bits)
{
  LLVMBuilderRef b = l->builder;
  if (is_pointer(l, type)) return LLVMBuildIntToPtr(b, bits, kl_register_type(l, type), "");
  if (kl_is_vector_type(l, type) && kl_part_of(l, type) == KJIT_BOOL) {
    LLVMTypeRef bytes = LLVMVectorType(l->i8, ki_type(l->c->types, type)->count);
    return LLVMBuildICmp(b, LLVMIntNE, LLVMBuildBitCast(b, bits, bytes, ""), LLVMConstNull(bytes),
                         "");
  }
  if (kl_is_vector_type(l, type)) return LLVMBuildBitCast(b, bits, kl_register_type(l, type), "");
  if (!has_parts(l, type))
    return kl_from_memory(l, type, LLVMBuildBitCast(b, bits, kl_memory_type(l, type), ""));
  LLVMValueRef value = LLVMGetPoison(kl_register_type(l, type));
  uint32_t count = kl_part_count(l, type);
  for (uint32_t i = 0; i < count; i++) {
    ki_component part = kl_get_part_info(l, type, i);
    LLVMValueRef shifted =
      LLVMBuildLShr(b, bits, LLVMConstInt(LLVMTypeOf(bits), 8 * part.offset_bytes, false), "");
    LLVMTypeRef own = bits_type(l, part.type);
    LLVMValueRef cut = own == LLVMTypeOf(bits) ? shifted : LLVMBuildTrunc(b, shifted, own, "");
    value = kl_set_part(l, type, value, kl_value_of_bits(l, part.type, cut), i);
  }
  return value;
}

LLVMValueRef kl_hide_float_bits(kl_lowering *l, LLVMValueRef bits)
{
  if (!l->target->float_bits || LLVMIsConstant(bits)) return bits;
  LLVMTypeRef type = LLVMTypeOf(bits);
  if (LLVMGetIntTypeWidth(type) >= 32) return l->target->float_bits(l, bits);
  return LLVMBuildTrunc(l->builder,
                        l->target->float_bits(l, LLVMBuildZExt(l->builder, bits, l->i32, "")), type,
                        "");
}

/* ---- words ---- */

LLVMValueRef kl_get_word(kl_lowering *l, LLVMValueRef bits, uint32_t index)
{
  unsigned width = LLVMGetIntTypeWidth(LLVMTypeOf(bits));
  if (width == 32) return bits;
  if (width < 32) return LLVMBuildZExt(l->builder, bits, l->i32, "");
  return LLVMBuildTrunc(l->builder,
                        LLVMBuildLShr(l->builder, bits,
                                      LLVMConstInt(LLVMTypeOf(bits), 32 * index, false), ""),
                        l->i32, "");
}

LLVMValueRef kl_join_words(kl_lowering *l, LLVMTypeRef type, LLVMValueRef const *words,
                           uint32_t count)
{
  unsigned width = LLVMGetIntTypeWidth(type);
  if (width == 32) return words[0];
  if (width < 32) return LLVMBuildTrunc(l->builder, words[0], type, "");
  LLVMValueRef bits = LLVMBuildZExt(l->builder, words[0], type, "");
  for (uint32_t i = 1; i < count; i++) {
    unsigned rest = width - 32 * i;
    LLVMValueRef word =
      rest < 32 ? LLVMBuildTrunc(l->builder, words[i], LLVMIntTypeInContext(l->context, rest), "")
                : words[i];
    LLVMValueRef own = LLVMBuildZExt(l->builder, word, type, "");
    bits = LLVMBuildOr(l->builder, bits,
                       LLVMBuildShl(l->builder, own, LLVMConstInt(type, 32 * i, false), ""), "");
  }
  return bits;
}

uint32_t kl_count_words(LLVMTypeRef type) { return (LLVMGetIntTypeWidth(type) + 31) / 32; }

/* Operators on scalars. Nothing is undefined here: division by zero gives 0, shift counts are taken
 * modulo the width, integers wrap. */

static LLVMValueRef constant_of(LLVMValueRef like, int64_t value)
{
  return LLVMConstInt(LLVMTypeOf(like), (uint64_t)value, true);
}
static LLVMValueRef is_equal(kl_lowering *l, LLVMValueRef x, int64_t value)
{
  return LLVMBuildICmp(l->builder, LLVMIntEQ, x, constant_of(x, value), "");
}
static LLVMValueRef is_negative(kl_lowering *l, LLVMValueRef x)
{
  return LLVMBuildICmp(l->builder, LLVMIntSLT, x, constant_of(x, 0), "");
}
static LLVMValueRef choose(kl_lowering *l, LLVMValueRef c, LLVMValueRef x, LLVMValueRef y)
{
  return LLVMBuildSelect(l->builder, c, x, y, "");
}

/* ---- integer division ---- */

typedef struct division {
  LLVMValueRef divisor; /* never one that traps */
  LLVMValueRef quotient, remainder;
  /* the true quotient lies above, below the truncated one */
  LLVMValueRef is_inexact_up, is_inexact_down;
} division;

/* 1 in place of 0, and of -1 for signed numbers: the quotient is put right afterwards, and the
 * remainder 0 is right for both. */
static LLVMValueRef safe_divisor(kl_lowering *l, bool is_signed, LLVMValueRef y)
{
  if (LLVMIsAConstantInt(y)) {
    bool is_unsafe =
      LLVMIsNull(y) || (is_signed && LLVMIsAConstantInt(y) && LLVMConstIntGetSExtValue(y) == -1);
    return is_unsafe ? constant_of(y, 1) : y;
  }
  LLVMValueRef shifted = is_signed ? LLVMBuildAdd(l->builder, y, constant_of(y, 1), "") : y;
  LLVMValueRef is_unsafe =
    LLVMBuildICmp(l->builder, LLVMIntULE, shifted, constant_of(y, is_signed ? 1 : 0), "");
  return choose(l, is_unsafe, constant_of(y, 1), y);
}

static division truncating_division(kl_lowering *l, bool is_signed, LLVMValueRef x, LLVMValueRef y)
{
  LLVMBuilderRef b = l->builder;
  division d = { .divisor = safe_divisor(l, is_signed, y) };
  d.quotient = is_signed ? LLVMBuildSDiv(b, x, d.divisor, "") : LLVMBuildUDiv(b, x, d.divisor, "");
  d.remainder = LLVMBuildSub(b, x, LLVMBuildMul(b, d.quotient, d.divisor, ""), "");
  LLVMValueRef is_inexact = LLVMBuildICmp(b, LLVMIntNE, d.remainder, constant_of(x, 0), "");
  LLVMValueRef differ = is_signed ? is_negative(l, LLVMBuildXor(b, d.remainder, d.divisor, ""))
                                  : LLVMConstInt(l->i1, 0, false);
  d.is_inexact_down = LLVMBuildAnd(b, is_inexact, differ, "");
  d.is_inexact_up = LLVMBuildAnd(b, is_inexact, LLVMBuildNot(b, differ, ""), "");
  return d;
}

/* log2 of a positive constant power of two, else -1 */
static int power_of_two(LLVMValueRef y)
{
  if (!LLVMIsAConstantInt(y)) return -1;
  uint64_t value = LLVMConstIntGetZExtValue(y);
  bool is_top = value >> (LLVMGetIntTypeWidth(LLVMTypeOf(y)) - 1); /* negative if signed */
  return value && !(value & (value - 1)) && !is_top ? __builtin_ctzll(value) : -1;
}

LLVMValueRef kl_build_divide(kl_lowering *l, bool is_signed, kl_rounding rounding, LLVMValueRef x,
                             LLVMValueRef y)
{
  LLVMBuilderRef b = l->builder;
  int shift = power_of_two(y);
  if (shift >= 0 && rounding == KJ_ROUND_FLOOR)
    return is_signed ? LLVMBuildAShr(b, x, constant_of(x, shift), "")
                     : LLVMBuildLShr(b, x, constant_of(x, shift), "");
  division d = truncating_division(l, is_signed, x, y);
  LLVMValueRef q = d.quotient;
  if (rounding == KJ_ROUND_FLOOR && is_signed)
    q = LLVMBuildAdd(b, q, LLVMBuildSExt(b, d.is_inexact_down, LLVMTypeOf(q), ""), "");
  if (rounding == KJ_ROUND_CEIL)
    q = LLVMBuildAdd(b, q, LLVMBuildZExt(b, d.is_inexact_up, LLVMTypeOf(q), ""), "");
  if (is_signed) q = choose(l, is_equal(l, y, -1), LLVMBuildNeg(b, x, ""), q);
  return choose(l, is_equal(l, y, 0), constant_of(y, 0), q);
}

LLVMValueRef kl_build_remainder(kl_lowering *l, bool is_signed, kl_rounding rounding,
                                LLVMValueRef x, LLVMValueRef y)
{
  int shift = power_of_two(y);
  if (shift >= 0 && (rounding == KJ_ROUND_FLOOR || !is_signed))
    return LLVMBuildAnd(l->builder, x, constant_of(x, (int64_t)(((uint64_t)1 << shift) - 1)), "");
  division d = truncating_division(l, is_signed, x, y);
  if (rounding != KJ_ROUND_FLOOR || !is_signed) return d.remainder;
  return choose(l, d.is_inexact_down, LLVMBuildAdd(l->builder, d.remainder, d.divisor, ""),
                d.remainder);
}

/* ---- powers and remainders ---- */

/* base ** exponent by squaring. Negative exponents: 1 / base**-exponent rounded to zero, which is 0
 * but for bases 1 and -1; 0 for base 0. */
static LLVMValueRef integer_power(kl_lowering *l, bool is_signed, LLVMValueRef base,
                                  LLVMValueRef exponent)
{
  LLVMBuilderRef b = l->builder;
  LLVMTypeRef type = LLVMTypeOf(base);
  LLVMBasicBlockRef before = LLVMGetInsertBlock(b), head = kl_new_block(l, "pow"),
                    body = kl_new_block(l, "pow.body"), after = kl_new_block(l, "pow.end");
  LLVMBuildBr(b, head);
  kl_move_to(l, head);
  LLVMValueRef result = LLVMBuildPhi(b, type, ""), square = LLVMBuildPhi(b, type, ""),
               rest = LLVMBuildPhi(b, type, "");
  LLVMValueRef one = LLVMConstInt(type, 1, false), zero = LLVMConstNull(type);
  LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntNE, rest, zero, ""), body, after);
  kl_move_to(l, body);
  LLVMValueRef is_odd = LLVMBuildTrunc(b, rest, l->i1, "");
  LLVMValueRef next_result = choose(l, is_odd, LLVMBuildMul(b, result, square, ""), result);
  LLVMValueRef next_square = LLVMBuildMul(b, square, square, ""),
               next_rest = LLVMBuildLShr(b, rest, one, "");
  LLVMBuildBr(b, head);
  LLVMBasicBlockRef from[2] = { before, body };
  LLVMAddIncoming(result, (LLVMValueRef[]){ one, next_result }, from, 2);
  LLVMAddIncoming(square, (LLVMValueRef[]){ base, next_square }, from, 2);
  LLVMAddIncoming(rest, (LLVMValueRef[]){ exponent, next_rest }, from, 2);
  kl_move_to(l, after);
  if (!is_signed) return result;
  LLVMValueRef alternating = choose(l, LLVMBuildTrunc(b, exponent, l->i1, ""), base, one);
  LLVMValueRef small =
    choose(l, is_equal(l, base, 1), one, choose(l, is_equal(l, base, -1), alternating, zero));
  return choose(l, is_negative(l, exponent), small, result);
}

static LLVMValueRef call_math(kl_lowering *l, ki_builtin_id id, LLVMValueRef x, LLVMValueRef y)
{
  return l->target->math(l, id, (LLVMValueRef[]){ x, y }, 2, LLVMTypeOf(x));
}

/* The exponent is rounded to the type that is computed in: its lowest bit, which decides on the
 * sign of the result, is looked at before. */
LLVMValueRef kl_build_whole_power(kl_lowering *l, kjit_type type, LLVMValueRef x,
                                  kjit_type exponent_type, LLVMValueRef exponent)
{
  LLVMBuilderRef b = l->builder;
  LLVMValueRef base = kl_to_compute(l, type, x);
  kjit_type computed = LLVMTypeOf(base) == l->f64 ? KJIT_F64 : KJIT_F32;
  LLVMValueRef size = call_math(l, KJ_BUILTIN_POW, kl_intrinsic1(l, "llvm.fabs", base),
                                kl_build_convert(l, exponent_type, computed, exponent));
  LLVMValueRef is_odd = LLVMBuildTrunc(b, exponent, l->i1, "");
  LLVMValueRef sign = choose(l, is_odd, base, LLVMConstReal(LLVMTypeOf(base), 1));
  return kl_from_compute(l, type, kl_intrinsic2(l, "llvm.copysign", size, sign));
}

typedef struct float_division {
  LLVMValueRef quotient, remainder;
} float_division;

/* As CPython's float_divmod: fmod, corrected to the divisor's sign, and the floor that goes with
 * it. */
static float_division divide_floats(kl_lowering *l, LLVMValueRef x, LLVMValueRef y)
{
  LLVMBuilderRef b = l->builder;
  LLVMTypeRef type = LLVMTypeOf(x);
  LLVMValueRef zero = LLVMConstReal(type, 0), one = LLVMConstReal(type, 1);
  LLVMValueRef r = call_math(l, KJ_BUILTIN_FMOD, x, y);
  LLVMValueRef is_zero = LLVMBuildFCmp(b, LLVMRealOEQ, r, zero, "");
  LLVMValueRef differ = LLVMBuildXor(b, LLVMBuildFCmp(b, LLVMRealOLT, r, zero, ""),
                                     LLVMBuildFCmp(b, LLVMRealOLT, y, zero, ""), "");
  differ = LLVMBuildAnd(b, differ, LLVMBuildFCmp(b, LLVMRealUNE, r, zero, ""), "");
  LLVMValueRef q = LLVMBuildFDiv(b, LLVMBuildFSub(b, x, r, ""), y, "");
  q = choose(l, differ, LLVMBuildFSub(b, q, one, ""), q);
  LLVMValueRef floor = kl_intrinsic1(l, "llvm.floor", q);
  LLVMValueRef is_low =
    LLVMBuildFCmp(b, LLVMRealOGT, LLVMBuildFSub(b, q, floor, ""), LLVMConstReal(type, .5), "");
  LLVMValueRef whole = choose(l, is_low, LLVMBuildFAdd(b, floor, one, ""), floor);
  LLVMValueRef signed_zero = kl_intrinsic2(l, "llvm.copysign", zero, LLVMBuildFDiv(b, x, y, ""));
  return (float_division){
    .quotient = choose(l, LLVMBuildFCmp(b, LLVMRealOEQ, q, zero, ""), signed_zero, whole),
    .remainder = choose(l, is_zero, kl_intrinsic2(l, "llvm.copysign", zero, y),
                        choose(l, differ, LLVMBuildFAdd(b, r, y, ""), r)),
  };
}

/* ---- operators ---- */

static LLVMValueRef build_float(kl_lowering *l, kjit_op op, LLVMValueRef x, LLVMValueRef y)
{
  switch (KJ_AMONG(op)) {
  case KJIT_ADD: return kl_fast(l, LLVMBuildFAdd(l->builder, x, y, ""));
  case KJIT_SUB: return kl_fast(l, LLVMBuildFSub(l->builder, x, y, ""));
  case KJIT_MUL: return kl_fast(l, LLVMBuildFMul(l->builder, x, y, ""));
  case KJIT_DIV: return kl_fast(l, LLVMBuildFDiv(l->builder, x, y, ""));
  case KJIT_FLOORDIV: return divide_floats(l, x, y).quotient;
  case KJIT_MOD: return divide_floats(l, x, y).remainder;
  case KJIT_POW: return call_math(l, KJ_BUILTIN_POW, x, y);
  default: return NULL;
  }
}

static LLVMValueRef shift_count(kl_lowering *l, LLVMValueRef y)
{
  return LLVMBuildAnd(l->builder, y,
                      constant_of(y, (int64_t)LLVMGetIntTypeWidth(LLVMTypeOf(y)) - 1), "");
}

static LLVMValueRef build_integer(kl_lowering *l, kjit_op op, bool is_signed, LLVMValueRef x,
                                  LLVMValueRef y)
{
  LLVMBuilderRef b = l->builder;
  switch (KJ_AMONG(op)) {
  case KJIT_ADD: return LLVMBuildAdd(b, x, y, "");
  case KJIT_SUB: return LLVMBuildSub(b, x, y, "");
  case KJIT_MUL: return LLVMBuildMul(b, x, y, "");
  case KJIT_FLOORDIV: return kl_build_divide(l, is_signed, KJ_ROUND_FLOOR, x, y);
  case KJIT_MOD: return kl_build_remainder(l, is_signed, KJ_ROUND_FLOOR, x, y);
  case KJIT_BIT_AND: return LLVMBuildAnd(b, x, y, "");
  case KJIT_BIT_OR: return LLVMBuildOr(b, x, y, "");
  case KJIT_BIT_XOR: return LLVMBuildXor(b, x, y, "");
  case KJIT_SHL: return LLVMBuildShl(b, x, shift_count(l, y), "");
  case KJIT_SHR:
    return is_signed ? LLVMBuildAShr(b, x, shift_count(l, y), "")
                     : LLVMBuildLShr(b, x, shift_count(l, y), "");
  case KJIT_POW: return integer_power(l, is_signed, x, y);
  default: return NULL;
  }
}

LLVMValueRef kl_build_binary(kl_lowering *l, kjit_op op, kjit_type type, LLVMValueRef x,
                             LLVMValueRef y, kj_location location)
{
  LLVMValueRef result;
  if (kl_part_of(l, type) != type) return kl_build_binary_parts(l, op, type, x, y, location);
  LLVMValueRef native = type == KJIT_BF16 ? kl_try_brain_operation(l, op, x, y) : NULL;
  if (native) return native;
  if (kl_is_float_type(l, type)) {
    result = build_float(l, op, kl_to_compute(l, type, x), kl_to_compute(l, type, y));
    if (result) result = kl_from_compute(l, type, result);
  } else {
    result = build_integer(l, op, kl_is_signed_type(l, type), x, y);
  }
  if (!result)
    kt_fail(l->c, location, KJIT_ERROR_COMPILE, "internal error: operator %s on %s",
            ki_op_table[op].text, kt_type_text(l->c, type));
  return result;
}

/* ---- comparisons ---- */

typedef struct comparison {
  LLVMIntPredicate signed_, unsigned_;
  LLVMRealPredicate real;
  bool if_less; /* the result where x is less than y */
} comparison;

static comparison comparison_of(kjit_op op)
{
  switch (KJ_AMONG(op)) {
  case KJIT_EQ: return (comparison){ LLVMIntEQ, LLVMIntEQ, LLVMRealOEQ, false };
  case KJIT_NE: return (comparison){ LLVMIntNE, LLVMIntNE, LLVMRealUNE, true };
  case KJIT_LT: return (comparison){ LLVMIntSLT, LLVMIntULT, LLVMRealOLT, true };
  case KJIT_GT: return (comparison){ LLVMIntSGT, LLVMIntUGT, LLVMRealOGT, false };
  case KJIT_LE: return (comparison){ LLVMIntSLE, LLVMIntULE, LLVMRealOLE, true };
  default:
    KJ_ASSERT(op == KJIT_GE);
    return (comparison){ LLVMIntSGE, LLVMIntUGE, LLVMRealOGE, false };
  }
}

/* A signed number with an unsigned one: as 64-bit numbers they compare unsigned, except that a
 * negative one is less than all unsigned ones. */
static LLVMValueRef compare_mixed(kl_lowering *l, comparison how, kjit_type x_type,
                                  kjit_type y_type, LLVMValueRef x, LLVMValueRef y)
{
  bool is_x_signed = kl_is_signed_type(l, x_type);
  x = is_x_signed ? kl_build_convert(l, x_type, KJIT_I64, x)
                  : kl_build_convert(l, x_type, KJIT_U64, x);
  y = is_x_signed ? kl_build_convert(l, y_type, KJIT_U64, y)
                  : kl_build_convert(l, y_type, KJIT_I64, y);
  bool if_negative = is_x_signed ? how.if_less
                                 : how.signed_ == LLVMIntNE || how.signed_ == LLVMIntSGT ||
                                     how.signed_ == LLVMIntSGE;
  LLVMValueRef plain = LLVMBuildICmp(l->builder, how.unsigned_, x, y, "");
  return choose(l, is_negative(l, is_x_signed ? x : y), LLVMConstInt(l->i1, if_negative, false),
                plain);
}

LLVMValueRef kl_build_compare(kl_lowering *l, kjit_op op, kjit_type x_type, kjit_type y_type,
                              LLVMValueRef x, LLVMValueRef y)
{
  comparison how = comparison_of(op);
  if (kl_part_of(l, x_type) != x_type) return kl_build_compare_parts(l, op, x_type, x, y);
  if (kl_is_float_type(l, x_type))
    return LLVMBuildFCmp(l->builder, how.real, kl_to_compute(l, x_type, x),
                         kl_to_compute(l, y_type, y), "");
  bool is_x_signed = kl_is_signed_type(l, x_type), is_y_signed = kl_is_signed_type(l, y_type);
  if (is_x_signed != is_y_signed) return compare_mixed(l, how, x_type, y_type, x, y);
  if (x_type != y_type) {
    kjit_type wide = is_x_signed ? KJIT_I64 : KJIT_U64;
    x = kl_build_convert(l, x_type, wide, x);
    y = kl_build_convert(l, y_type, wide, y);
  }
  return LLVMBuildICmp(l->builder, is_x_signed ? how.signed_ : how.unsigned_, x, y, "");
}

LLVMValueRef kl_build_minmax(kl_lowering *l, bool is_max, kjit_type type, LLVMValueRef x,
                             LLVMValueRef y)
{
  if (kl_is_float_type(l, type)) {
    LLVMValueRef a = kl_to_compute(l, type, x), b = kl_to_compute(l, type, y);
    return kl_from_compute(l, type, kl_intrinsic2(l, is_max ? "llvm.maxnum" : "llvm.minnum", a, b));
  }
  if (type == KJIT_BOOL)
    return is_max ? LLVMBuildOr(l->builder, x, y, "") : LLVMBuildAnd(l->builder, x, y, "");
  bool is_signed = kl_is_signed_type(l, type);
  return kl_intrinsic2(l,
                       is_signed ? (is_max ? "llvm.smax" : "llvm.smin")
                                 : (is_max ? "llvm.umax" : "llvm.umin"),
                       x, y);
}
