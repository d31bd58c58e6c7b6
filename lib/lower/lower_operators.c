/* Lowers operators on scalars, and converts values to and from bits. No operation is undefined:
 * division by zero gives 0, shift counts are taken modulo the width, and integers wrap. */
#include "lower/instruction.h"

/* ---- values as bits ----
 *
 * The lanes in a warp exchange and compare values as bits, and bitcast converts between values as
 * bits. A value of n bytes is an integer of 8 * n bits, laid out as in memory. The padding of a
 * struct is 0. */

static bool has_parts(kl_lowering *l, kjit_type type)
{
  return kl_is_composed_type(l, type) && !kl_is_vector_type(l, type) &&
         kl_type_info(l, type)->class_ != KJ_CLASS_POINTER;
}

static bool is_pointer(kl_lowering *l, kjit_type type)
{
  return kl_is_composed_type(l, type) && kl_type_info(l, type)->class_ == KJ_CLASS_POINTER;
}

/* Converts a vector to memory form, in which bool lanes are bytes. */
static LLVMValueRef lanes_to_memory(kl_lowering *l, kjit_type type, LLVMValueRef value)
{
  if (!kl_is_vector_type(l, type)) return kl_to_memory(l, type, value);
  if (kl_part_of(l, type) != KJIT_BOOL) return value;
  return kl_zext(l, value, LLVMVectorType(l->i8, LLVMGetVectorSize(LLVMTypeOf(value))));
}

LLVMValueRef kl_value_bits(kl_lowering *l, kjit_type type, LLVMValueRef value)
{
  LLVMTypeRef wide = kl_bits_type(l, type);
  if (is_pointer(l, type)) return kl_ptrtoint(l, value, wide);
  if (!has_parts(l, type)) return kl_bitcast(l, lanes_to_memory(l, type, value), wide);
  LLVMValueRef bits = LLVMConstNull(wide);
  uint32_t count = kl_part_count(l, type);
  for (uint32_t i = 0; i < count; i++) {
    ki_component part = kl_get_part_info(l, type, i);
    LLVMValueRef own =
      kl_zext(l, kl_value_bits(l, part.type, kl_get_part(l, type, value, i)), wide);
    bits = kl_or(l, bits, kl_shl(l, own, LLVMConstInt(wide, 8 * part.offset_bytes, false)));
  }
  return bits;
}

LLVMValueRef kl_value_of_bits(kl_lowering *l, kjit_type type, LLVMValueRef bits)
{
  if (is_pointer(l, type)) return kl_inttoptr(l, bits, kl_register_type(l, type));
  if (kl_is_vector_type(l, type) && kl_part_of(l, type) == KJIT_BOOL) {
    LLVMTypeRef bytes = LLVMVectorType(l->i8, kl_type_info(l, type)->count);
    return kl_icmp(l, LLVMIntNE, kl_bitcast(l, bits, bytes), LLVMConstNull(bytes));
  }
  if (kl_is_vector_type(l, type)) return kl_bitcast(l, bits, kl_register_type(l, type));
  if (!has_parts(l, type))
    return kl_from_memory(l, type, kl_bitcast(l, bits, kl_memory_type(l, type)));
  LLVMValueRef value = LLVMGetPoison(kl_register_type(l, type));
  uint32_t count = kl_part_count(l, type);
  for (uint32_t i = 0; i < count; i++) {
    ki_component part = kl_get_part_info(l, type, i);
    LLVMValueRef shifted =
      kl_lshr(l, bits, LLVMConstInt(LLVMTypeOf(bits), 8 * part.offset_bytes, false));
    LLVMTypeRef own = kl_bits_type(l, part.type);
    LLVMValueRef cut = own == LLVMTypeOf(bits) ? shifted : kl_trunc(l, shifted, own);
    value = kl_set_part(l, type, value, kl_value_of_bits(l, part.type, cut), i);
  }
  return value;
}

/* ---- words ---- */

LLVMValueRef kl_get_word(kl_lowering *l, LLVMValueRef bits, uint32_t index)
{
  unsigned width = LLVMGetIntTypeWidth(LLVMTypeOf(bits));
  if (width == 32) return bits;
  if (width < 32) return kl_zext(l, bits, l->i32);
  return kl_trunc(l, kl_lshr(l, bits, LLVMConstInt(LLVMTypeOf(bits), 32 * index, false)), l->i32);
}

LLVMValueRef kl_join_words(kl_lowering *l, LLVMTypeRef type, LLVMValueRef const *words,
                           uint32_t count)
{
  unsigned width = LLVMGetIntTypeWidth(type);
  if (width == 32) return words[0];
  if (width < 32) return kl_trunc(l, words[0], type);
  LLVMValueRef bits = kl_zext(l, words[0], type);
  for (uint32_t i = 1; i < count; i++) {
    unsigned rest = width - 32 * i;
    LLVMValueRef word =
      rest < 32 ? kl_trunc(l, words[i], LLVMIntTypeInContext(l->context, rest)) : words[i];
    LLVMValueRef own = kl_zext(l, word, type);
    bits = kl_or(l, bits, kl_shl(l, own, LLVMConstInt(type, 32 * i, false)));
  }
  return bits;
}

uint32_t kl_count_words(LLVMTypeRef type) { return (LLVMGetIntTypeWidth(type) + 31) / 32; }

/* ---- operators on scalars ---- */

static LLVMValueRef constant_of(LLVMValueRef like, int64_t value)
{
  return LLVMConstInt(LLVMTypeOf(like), (uint64_t)value, true);
}
static LLVMValueRef is_equal(kl_lowering *l, LLVMValueRef x, int64_t value)
{
  return kl_icmp(l, LLVMIntEQ, x, constant_of(x, value));
}
static LLVMValueRef is_negative(kl_lowering *l, LLVMValueRef x)
{
  return kl_icmp(l, LLVMIntSLT, x, constant_of(x, 0));
}

/* ---- integer division ---- */

typedef struct division {
  LLVMValueRef divisor; /* a divisor for which the division does not trap */
  LLVMValueRef quotient, remainder;
  /* the exact quotient is greater, or less, than the truncated quotient */
  LLVMValueRef is_inexact_up, is_inexact_down;
} division;

/* Replaces the divisor by 1 if it is 0 or, for signed numbers, -1. The caller corrects the
 * quotient. The remainder is 0, which is correct in both cases. */
static LLVMValueRef safe_divisor(kl_lowering *l, bool is_signed, LLVMValueRef y)
{
  if (LLVMIsAConstantInt(y)) {
    bool is_unsafe =
      LLVMIsNull(y) || (is_signed && LLVMIsAConstantInt(y) && LLVMConstIntGetSExtValue(y) == -1);
    return is_unsafe ? constant_of(y, 1) : y;
  }
  LLVMValueRef shifted = is_signed ? kl_add(l, y, constant_of(y, 1)) : y;
  LLVMValueRef is_unsafe = kl_icmp(l, LLVMIntULE, shifted, constant_of(y, is_signed ? 1 : 0));
  return kl_select(l, is_unsafe, constant_of(y, 1), y);
}

static division truncating_division(kl_lowering *l, bool is_signed, LLVMValueRef x, LLVMValueRef y)
{
  division d = { .divisor = safe_divisor(l, is_signed, y) };
  d.quotient = is_signed ? kl_sdiv(l, x, d.divisor) : kl_udiv(l, x, d.divisor);
  d.remainder = kl_sub(l, x, kl_mul(l, d.quotient, d.divisor));
  LLVMValueRef is_inexact = kl_icmp(l, LLVMIntNE, d.remainder, constant_of(x, 0));
  LLVMValueRef differ =
    is_signed ? is_negative(l, kl_xor(l, d.remainder, d.divisor)) : LLVMConstInt(l->i1, 0, false);
  d.is_inexact_down = kl_and(l, is_inexact, differ);
  d.is_inexact_up = kl_and(l, is_inexact, kl_not(l, differ));
  return d;
}

bool kl_has_numba_rules(const kl_lowering *l)
{
  return ki_get_attribute(&l->frame->instance->function->attributes, KJ_ATTRIBUTE_NUMBA);
}

/* Returns x // -1. The negative of the minimum integer is out of range. The result for the minimum
 * is the minimum itself, or 0 with Numba's rules. */
static LLVMValueRef negative_quotient(kl_lowering *l, LLVMValueRef x)
{
  LLVMValueRef negative = kl_neg(l, x);
  if (!kl_has_numba_rules(l)) return negative;
  return kl_select(l, is_negative(l, kl_and(l, x, negative)), constant_of(x, 0), negative);
}

/* If y is a constant power of two, returns its exponent, otherwise -1. */
static int power_of_two(LLVMValueRef y)
{
  if (!LLVMIsAConstantInt(y)) return -1;
  uint64_t value = LLVMConstIntGetZExtValue(y);
  /* as a signed number, y is negative */
  bool is_top = value >> (LLVMGetIntTypeWidth(LLVMTypeOf(y)) - 1);
  return value && !(value & (value - 1)) && !is_top ? __builtin_ctzll(value) : -1;
}

LLVMValueRef kl_build_divide(kl_lowering *l, bool is_signed, kl_rounding rounding, LLVMValueRef x,
                             LLVMValueRef y)
{
  int shift = power_of_two(y);
  if (shift >= 0 && rounding == KJ_ROUND_FLOOR)
    return is_signed ? kl_ashr(l, x, constant_of(x, shift)) : kl_lshr(l, x, constant_of(x, shift));
  division d = truncating_division(l, is_signed, x, y);
  LLVMValueRef q = d.quotient;
  if (rounding == KJ_ROUND_FLOOR && is_signed)
    q = kl_add(l, q, kl_sext(l, d.is_inexact_down, LLVMTypeOf(q)));
  if (rounding == KJ_ROUND_CEIL) q = kl_add(l, q, kl_zext(l, d.is_inexact_up, LLVMTypeOf(q)));
  if (is_signed) q = kl_select(l, is_equal(l, y, -1), negative_quotient(l, x), q);
  return kl_select(l, is_equal(l, y, 0), constant_of(y, 0), q);
}

LLVMValueRef kl_build_remainder(kl_lowering *l, bool is_signed, kl_rounding rounding,
                                LLVMValueRef x, LLVMValueRef y)
{
  int shift = power_of_two(y);
  if (shift >= 0 && (rounding == KJ_ROUND_FLOOR || !is_signed))
    return kl_and(l, x, constant_of(x, (int64_t)(((uint64_t)1 << shift) - 1)));
  division d = truncating_division(l, is_signed, x, y);
  if (rounding != KJ_ROUND_FLOOR || !is_signed) return d.remainder;
  return kl_select(l, d.is_inexact_down, kl_add(l, d.remainder, d.divisor), d.remainder);
}

/* ---- powers and remainders ---- */

/* Returns base ** exponent by squaring. For a negative exponent the result is 1 / base**-exponent
 * rounded toward zero, which is 0 unless the base is 1 or -1. For base 0 the result is 0. */
static LLVMValueRef integer_power(kl_lowering *l, bool is_signed, LLVMValueRef base,
                                  LLVMValueRef exponent)
{
  LLVMTypeRef type = LLVMTypeOf(base);
  LLVMBasicBlockRef before = kl_here(l), head = kl_new_block(l, "pow"),
                    body = kl_new_block(l, "pow.body"), after = kl_new_block(l, "pow.end");
  kl_go_on_in(l, head);
  LLVMValueRef result = kl_phi(l, type), square = kl_phi(l, type), rest = kl_phi(l, type);
  LLVMValueRef one = LLVMConstInt(type, 1, false), zero = LLVMConstNull(type);
  kl_go_on_if(l, kl_icmp(l, LLVMIntNE, rest, zero), body, after);
  LLVMValueRef is_odd = kl_trunc(l, rest, l->i1);
  LLVMValueRef next_result = kl_select(l, is_odd, kl_mul(l, result, square), result);
  LLVMValueRef next_square = kl_mul(l, square, square), next_rest = kl_lshr(l, rest, one);
  kl_br(l, head);
  LLVMBasicBlockRef from[2] = { before, body };
  LLVMAddIncoming(result, (LLVMValueRef[]){ one, next_result }, from, 2);
  LLVMAddIncoming(square, (LLVMValueRef[]){ base, next_square }, from, 2);
  LLVMAddIncoming(rest, (LLVMValueRef[]){ exponent, next_rest }, from, 2);
  kl_move_to(l, after);
  if (!is_signed) return result;
  LLVMValueRef alternating = kl_select(l, kl_trunc(l, exponent, l->i1), base, one);
  LLVMValueRef small =
    kl_select(l, is_equal(l, base, 1), one, kl_select(l, is_equal(l, base, -1), alternating, zero));
  return kl_select(l, is_negative(l, exponent), small, result);
}

/* Computes a power with a float base and an integer exponent. The lowest bit of the exponent
 * determines the sign of the result, so it is read before the exponent is rounded to the
 * computation type. */
LLVMValueRef kl_build_whole_power(kl_lowering *l, kjit_type type, LLVMValueRef x,
                                  kjit_type exponent_type, LLVMValueRef exponent)
{
  LLVMValueRef base = kl_to_compute(l, type, x);
  kjit_type computed = LLVMTypeOf(base) == l->f64 ? KJIT_F64 : KJIT_F32;
  LLVMValueRef size = kl_call_math(l, KJ_BUILTIN_POW, kl_intrinsic1(l, "llvm.fabs", base),
                                   kl_build_convert(l, exponent_type, computed, exponent));
  LLVMValueRef is_odd = kl_trunc(l, exponent, l->i1);
  LLVMValueRef sign = kl_select(l, is_odd, base, LLVMConstReal(LLVMTypeOf(base), 1));
  return kl_from_compute(l, type, kl_intrinsic2(l, "llvm.copysign", size, sign));
}

typedef struct float_division {
  LLVMValueRef quotient, remainder;
} float_division;

/* Divides like CPython's float_divmod: computes fmod, corrects it to the sign of the divisor, and
 * computes the corresponding floor. CPython rejects a divisor of 0; this function returns the
 * quotient x / y, as NumPy and Numba do. */
static float_division divide_floats(kl_lowering *l, LLVMValueRef x, LLVMValueRef y)
{
  LLVMTypeRef type = LLVMTypeOf(x);
  LLVMValueRef zero = LLVMConstReal(type, 0), one = LLVMConstReal(type, 1);
  LLVMValueRef r = kl_call_math(l, KJ_BUILTIN_FMOD, x, y);
  LLVMValueRef is_zero = kl_fcmp(l, LLVMRealOEQ, r, zero);
  LLVMValueRef differ =
    kl_xor(l, kl_fcmp(l, LLVMRealOLT, r, zero), kl_fcmp(l, LLVMRealOLT, y, zero));
  differ = kl_and(l, differ, kl_fcmp(l, LLVMRealUNE, r, zero));
  LLVMValueRef q = kl_fdiv(l, kl_fsub(l, x, r), y);
  q = kl_select(l, differ, kl_fsub(l, q, one), q);
  LLVMValueRef floor = kl_intrinsic1(l, "llvm.floor", q);
  LLVMValueRef is_low = kl_fcmp(l, LLVMRealOGT, kl_fsub(l, q, floor), LLVMConstReal(type, .5));
  LLVMValueRef whole = kl_select(l, is_low, kl_fadd(l, floor, one), floor);
  LLVMValueRef exact = kl_fdiv(l, x, y),
               signed_zero = kl_intrinsic2(l, "llvm.copysign", zero, exact);
  LLVMValueRef quotient = kl_select(l, kl_fcmp(l, LLVMRealOEQ, q, zero), signed_zero, whole);
  return (float_division){
    .quotient = kl_select(l, kl_fcmp(l, LLVMRealOEQ, y, zero), exact, quotient),
    .remainder = kl_select(l, is_zero, kl_intrinsic2(l, "llvm.copysign", zero, y),
                           kl_select(l, differ, kl_fadd(l, r, y), r)),
  };
}

/* ---- operators ---- */

static LLVMValueRef build_float(kl_lowering *l, kjit_op op, LLVMValueRef x, LLVMValueRef y)
{
  switch (KJ_AMONG(op)) {
  case KJIT_OP_ADD: return kl_fast(l, kl_fadd(l, x, y));
  case KJIT_OP_SUB: return kl_fast(l, kl_fsub(l, x, y));
  case KJIT_OP_MUL: return kl_fast(l, kl_fmul(l, x, y));
  case KJIT_OP_DIV: return kl_fast(l, kl_fdiv(l, x, y));
  case KJIT_OP_FLOORDIV: return divide_floats(l, x, y).quotient;
  case KJIT_OP_MOD: return divide_floats(l, x, y).remainder;
  case KJIT_OP_POW: return kl_call_math(l, KJ_BUILTIN_POW, x, y);
  default: return NULL;
  }
}

static LLVMValueRef shift_count(kl_lowering *l, LLVMValueRef y)
{
  return kl_and(l, y, constant_of(y, (int64_t)LLVMGetIntTypeWidth(LLVMTypeOf(y)) - 1));
}

static LLVMValueRef build_integer(kl_lowering *l, kjit_op op, bool is_signed, LLVMValueRef x,
                                  LLVMValueRef y)
{
  switch (KJ_AMONG(op)) {
  case KJIT_OP_ADD: return kl_add(l, x, y);
  case KJIT_OP_SUB: return kl_sub(l, x, y);
  case KJIT_OP_MUL: return kl_mul(l, x, y);
  case KJIT_OP_FLOORDIV: return kl_build_divide(l, is_signed, KJ_ROUND_FLOOR, x, y);
  case KJIT_OP_MOD: return kl_build_remainder(l, is_signed, KJ_ROUND_FLOOR, x, y);
  case KJIT_OP_BIT_AND: return kl_and(l, x, y);
  case KJIT_OP_BIT_OR: return kl_or(l, x, y);
  case KJIT_OP_BIT_XOR: return kl_xor(l, x, y);
  case KJIT_OP_SHL: return kl_shl(l, x, shift_count(l, y));
  case KJIT_OP_SHR:
    return is_signed ? kl_ashr(l, x, shift_count(l, y)) : kl_lshr(l, x, shift_count(l, y));
  case KJIT_OP_POW: return integer_power(l, is_signed, x, y);
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
  bool if_less; /* the result if x is less than y */
} comparison;

static comparison comparison_of(kjit_op op)
{
  switch (KJ_AMONG(op)) {
  case KJIT_OP_EQ: return (comparison){ LLVMIntEQ, LLVMIntEQ, LLVMRealOEQ, false };
  case KJIT_OP_NE: return (comparison){ LLVMIntNE, LLVMIntNE, LLVMRealUNE, true };
  case KJIT_OP_LT: return (comparison){ LLVMIntSLT, LLVMIntULT, LLVMRealOLT, true };
  case KJIT_OP_GT: return (comparison){ LLVMIntSGT, LLVMIntUGT, LLVMRealOGT, false };
  case KJIT_OP_LE: return (comparison){ LLVMIntSLE, LLVMIntULE, LLVMRealOLE, true };
  default:
    KJ_ASSERT(op == KJIT_OP_GE);
    return (comparison){ LLVMIntSGE, LLVMIntUGE, LLVMRealOGE, false };
  }
}

/* Compares a signed number with an unsigned number, as unsigned 64-bit numbers. A negative number
 * is less than every unsigned number. */
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
  LLVMValueRef plain = kl_icmp(l, how.unsigned_, x, y);
  return kl_select(l, is_negative(l, is_x_signed ? x : y), LLVMConstInt(l->i1, if_negative, false),
                   plain);
}

LLVMValueRef kl_build_compare(kl_lowering *l, kjit_op op, kjit_type x_type, kjit_type y_type,
                              LLVMValueRef x, LLVMValueRef y)
{
  comparison how = comparison_of(op);
  if (kl_part_of(l, x_type) != x_type) return kl_build_compare_parts(l, op, x_type, x, y);
  if (kl_is_float_type(l, x_type))
    return kl_fcmp(l, how.real, kl_to_compute(l, x_type, x), kl_to_compute(l, y_type, y));
  bool is_x_signed = kl_is_signed_type(l, x_type), is_y_signed = kl_is_signed_type(l, y_type);
  if (is_x_signed != is_y_signed) return compare_mixed(l, how, x_type, y_type, x, y);
  if (x_type != y_type) {
    kjit_type wide = is_x_signed ? KJIT_I64 : KJIT_U64;
    x = kl_build_convert(l, x_type, wide, x);
    y = kl_build_convert(l, y_type, wide, y);
  }
  return kl_icmp(l, is_x_signed ? how.signed_ : how.unsigned_, x, y);
}

LLVMValueRef kl_build_minmax(kl_lowering *l, bool is_max, kjit_type type, LLVMValueRef x,
                             LLVMValueRef y)
{
  if (kl_is_float_type(l, type)) {
    LLVMValueRef a = kl_to_compute(l, type, x), b = kl_to_compute(l, type, y);
    return kl_from_compute(l, type, kl_intrinsic2(l, is_max ? "llvm.maxnum" : "llvm.minnum", a, b));
  }
  if (type == KJIT_BOOL) return is_max ? kl_or(l, x, y) : kl_and(l, x, y);
  bool is_signed = kl_is_signed_type(l, type);
  return kl_intrinsic2(l,
                       is_signed ? (is_max ? "llvm.smax" : "llvm.smin")
                                 : (is_max ? "llvm.umax" : "llvm.umin"),
                       x, y);
}
