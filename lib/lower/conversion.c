/* Conversions between scalars (docs/ir.md). Conversions from float to integer truncate and
 * saturate, and NaN gives 0. All other conversions round once, to nearest even. */
#include <math.h>
#include <string.h>

#include "lower/instruction.h"

static bool is_wide_float(kjit_type type) { return type == KJIT_F64 || type == KJ_WEAK_FLOAT; }
static bool is_small_float(kjit_type type) { return type == KJIT_F16 || type == KJIT_BF16; }

static LLVMValueRef to_bool(kl_lowering *l, kjit_type from, LLVMValueRef value)
{
  if (!kl_is_float_type(l, from))
    return kl_icmp(l, LLVMIntNE, value, LLVMConstNull(LLVMTypeOf(value)));
  LLVMValueRef x = kl_to_compute(l, from, value);
  return kl_fcmp(l, LLVMRealUNE, x, LLVMConstNull(LLVMTypeOf(x)));
}

static LLVMValueRef int_to_int(kl_lowering *l, kjit_type from, kjit_type to, LLVMValueRef value)
{
  uint32_t from_bytes = kl_scalar_bytes(l, from), to_bytes = kl_scalar_bytes(l, to);
  LLVMTypeRef type = kl_register_type(l, to);
  if (from_bytes == to_bytes) return value;
  if (from_bytes > to_bytes) return kl_trunc(l, value, type);
  return kl_is_signed_type(l, from) ? kl_sext(l, value, type) : kl_zext(l, value, type);
}

static LLVMValueRef saturate(kl_lowering *l, bool is_signed, LLVMTypeRef type, LLVMValueRef x)
{
  return kl_intrinsic(l, is_signed ? "llvm.fptosi.sat" : "llvm.fptoui.sat",
                      (LLVMTypeRef[]){ type, LLVMTypeOf(x) }, 2, &x, 1);
}

/* ---- @indefinite: conversions with the results of x86 instructions ---- */

/* Returns the result of cvttsd2si, which is the minimum for NaN and for values out of range. */
static LLVMValueRef to_signed(kl_lowering *l, LLVMTypeRef type, LLVMValueRef x)
{
  unsigned bits = LLVMGetIntTypeWidth(type);
  LLVMValueRef limit = LLVMConstReal(LLVMTypeOf(x), ldexp(1, (int)bits - 1));
  LLVMValueRef is_inside = kl_fcmp(l, LLVMRealOLT, kl_intrinsic1(l, "llvm.fabs", x), limit);
  LLVMValueRef minimum = LLVMConstInt(type, (uint64_t)1 << (bits - 1), false);
  return kl_select(l, is_inside, LLVMBuildFPToSI(kl_next(l), x, type, ""), minimum);
}

/* Returns the result of vcvttsd2usi, which is all ones for NaN and for values out of range. */
static LLVMValueRef to_unsigned(kl_lowering *l, LLVMTypeRef type, LLVMValueRef x)
{
  LLVMTypeRef from = LLVMTypeOf(x);
  double limit = ldexp(1, (int)LLVMGetIntTypeWidth(type));
  LLVMValueRef is_inside = kl_and(l, kl_fcmp(l, LLVMRealOGT, x, LLVMConstReal(from, -1)),
                                  kl_fcmp(l, LLVMRealOLT, x, LLVMConstReal(from, limit)));
  LLVMValueRef result = LLVMBuildFPToUI(kl_next(l), x, type, "");
  return kl_select(l, is_inside, result, LLVMConstAllOnes(type));
}

/* Converts to u64 with two cvttsd2si instructions. Negative numbers wrap, and NaN and values out of
 * range give 2^63. */
static LLVMValueRef to_unsigned_by_parts(kl_lowering *l, LLVMValueRef x)
{
  LLVMValueRef half = LLVMConstReal(LLVMTypeOf(x), ldexp(1, 63));
  LLVMValueRef low = to_signed(l, l->i64, x), high = to_signed(l, l->i64, kl_fsub(l, x, half));
  LLVMValueRef minimum = LLVMConstInt(l->i64, (uint64_t)1 << 63, false);
  LLVMValueRef is_high = kl_fcmp(l, LLVMRealOGE, x, half);
  return kl_select(l, is_high, LLVMBuildXor(kl_next(l), high, minimum, ""), low);
}

/* Converts a float to an integer with the results of x86 instructions. Integers of 8 and 16 bits
 * are the low bits of an i32. A u32 is the low half of an i64 if the processor has no instruction
 * for u32. */
static LLVMValueRef to_indefinite(kl_lowering *l, kjit_type to, LLVMValueRef x)
{
  uint32_t bytes = kl_scalar_bytes(l, to);
  LLVMTypeRef type = kl_register_type(l, to);
  if (bytes < 4) return kl_trunc(l, to_signed(l, l->i32, x), type);
  if (kl_is_signed_type(l, to)) return to_signed(l, type, x);
  bool is_native = l->target->has_unsigned_conversion && l->target->has_unsigned_conversion(l);
  if (is_native) return to_unsigned(l, type, x);
  return bytes == 4 ? kl_trunc(l, to_signed(l, l->i64, x), type) : to_unsigned_by_parts(l, x);
}

static LLVMValueRef float_to_int(kl_lowering *l, kjit_type from, kjit_type to, LLVMValueRef value)
{
  LLVMValueRef x = kl_to_compute(l, from, value);
  bool is_signed = kl_is_signed_type(l, to);
  if (l->frame && l->frame->instance->modes.is_indefinite) return to_indefinite(l, to, x);
  if (l->target->float_to_i32 && kl_scalar_bytes(l, to) == 4 && LLVMTypeOf(x) == l->f32)
    return l->target->float_to_i32(l, x, !is_signed);
  return saturate(l, is_signed, kl_register_type(l, to), x);
}

/* Converts f64 to f32 and rounds to odd. A second rounding to a shorter format then gives the same
 * result as a single rounding (Boldo and Melquiond). */
LLVMValueRef kl_round_to_odd(kl_lowering *l, LLVMValueRef x)
{
  LLVMValueRef near = kl_fptrunc(l, x, l->f32), back = kl_fpext(l, near, l->f64);
  LLVMValueRef is_exact = kl_fcmp(l, LLVMRealUEQ, back, x);
  LLVMValueRef is_over =
    kl_fcmp(l, LLVMRealOGT, kl_intrinsic1(l, "llvm.fabs", back), kl_intrinsic1(l, "llvm.fabs", x));
  LLVMValueRef bits = kl_bitcast(l, near, l->i32);
  LLVMValueRef truncated = kl_sub(l, bits, kl_zext(l, is_over, l->i32));
  LLVMValueRef odd = kl_or(l, truncated, kl_const32(l, 1));
  return kl_bitcast(l, kl_select(l, is_exact, bits, odd), l->f32);
}

/* Converts a 64-bit integer to a double. If the integer has more significant bits than the
 * mantissa, sets the last bit of the mantissa. A later rounding of this result to odd gives the
 * same number as a rounding of the exact integer to odd. */
static LLVMValueRef sticky_double(kl_lowering *l, bool is_signed, LLVMValueRef value)
{
  LLVMValueRef zero = kl_const64(l, 0), is_negative = kl_icmp(l, LLVMIntSLT, value, zero);
  LLVMValueRef size = is_signed ? kl_select(l, is_negative, kl_sub(l, zero, value), value) : value;
  LLVMValueRef lost = kl_and(l, size, kl_const64(l, 0xffff));
  LLVMValueRef sticky = kl_zext(l, kl_icmp(l, LLVMIntNE, lost, zero), l->i64);
  LLVMValueRef upper = kl_or(l, kl_lshr(l, size, kl_const64(l, 16)), sticky);
  LLVMValueRef large = kl_fmul(l, kl_uitofp(l, upper, l->f64), LLVMConstReal(l->f64, 65536.));
  LLVMValueRef is_large = kl_icmp(l, LLVMIntUGE, size, kl_const64(l, (int64_t)1 << 48));
  LLVMValueRef result = kl_select(l, is_large, large, kl_uitofp(l, size, l->f64));
  return is_signed ? kl_select(l, is_negative, kl_fneg(l, result), result) : result;
}

/* Clamps a float, which was converted from an integer, before its conversion to f16. LLVM 22
 * assumes that an integer with few significant bits is exact in f16, whatever its size. If the f16
 * is extended again, LLVM drops both conversions: 2^31 would remain 2^31 instead of becoming
 * infinity. The clamping prevents LLVM from dropping the conversions. It does not change the
 * result, because the limits also become infinite in f16. */
static LLVMValueRef bound_for_half(kl_lowering *l, LLVMValueRef x)
{
  const double bound = 131072;
  x = kl_intrinsic2(l, "llvm.minnum", x, LLVMConstReal(l->f32, bound));
  LLVMSetFastMathFlags(x, LLVMFastMathNoNaNs | LLVMFastMathNoSignedZeros);
  x = kl_intrinsic2(l, "llvm.maxnum", x, LLVMConstReal(l->f32, -bound));
  LLVMSetFastMathFlags(x, LLVMFastMathNoNaNs | LLVMFastMathNoSignedZeros);
  return x;
}

static LLVMValueRef int_to_float(kl_lowering *l, kjit_type from, kjit_type to, LLVMValueRef value)
{
  bool is_signed = kl_is_signed_type(l, from);
  uint32_t bytes = kl_scalar_bytes(l, from);
  /* An integer that is finite in f16 is exact in f32. For bf16 this is true only of integers of up
   * to 16 bits. */
  if (to == KJIT_BF16 && bytes == 8)
    return kl_from_compute(l, to, kl_round_to_odd(l, sticky_double(l, is_signed, value)));
  LLVMTypeRef type = is_small_float(to) ? (to == KJIT_BF16 && bytes == 4 ? l->f64 : l->f32)
                                        : kl_register_type(l, to);
  LLVMValueRef x = is_signed ? kl_sitofp(l, value, type) : kl_uitofp(l, value, type);
  if (!is_small_float(to)) return x;
  if (to == KJIT_F16 && bytes >= 4) x = bound_for_half(l, x);
  return kl_from_compute(l, to, type == l->f64 ? kl_round_to_odd(l, x) : x);
}

static LLVMValueRef float_to_float(kl_lowering *l, kjit_type from, kjit_type to, LLVMValueRef value)
{
  LLVMValueRef x = kl_to_compute(l, from, value);
  if (is_wide_float(to)) return is_wide_float(from) ? x : kl_fpext(l, x, l->f64);
  if (!is_wide_float(from)) return kl_from_compute(l, to, x);
  return to == KJIT_F32 ? kl_fptrunc(l, x, l->f32) : kl_from_compute(l, to, kl_round_to_odd(l, x));
}

static bool is_pointer(kl_lowering *l, kjit_type type)
{
  return !ki_is_weak(type) && kl_type_info(l, type)->class_ == KJ_CLASS_POINTER;
}

LLVMValueRef kl_build_convert(kl_lowering *l, kjit_type from, kjit_type to, LLVMValueRef value)
{
  if (from == to) return value;
  if (is_pointer(l, from) && is_pointer(l, to)) return value;
  if (is_pointer(l, from)) return kl_ptrtoint(l, value, l->i64);
  if (is_pointer(l, to)) return kl_inttoptr(l, value, l->pointer);
  if (kl_part_of(l, to) != to) return kl_build_convert_parts(l, from, to, value);
  if (to == KJIT_BOOL) return to_bool(l, from, value);
  bool is_from_float = kl_is_float_type(l, from), is_to_float = kl_is_float_type(l, to);
  if (from == KJIT_BOOL && !is_to_float) return kl_zext(l, value, kl_register_type(l, to));
  /* Selects the bits of 1 and 0 as bf16, because driver 580 crashes on the difference of two bf16
   * values that come from `selp.f32 1, 0`. */
  if (from == KJIT_BOOL && to == KJIT_BF16)
    return kl_select(l, value, LLVMConstInt(l->i16, 0x3f80, false), LLVMConstNull(l->i16));
  if (from == KJIT_BOOL)
    return kl_from_compute(l, to,
                           kl_uitofp(l, value,
                                     is_small_float(to) ? l->f32 : kl_register_type(l, to)));
  if (is_from_float)
    return is_to_float ? float_to_float(l, from, to, value) : float_to_int(l, from, to, value);
  return is_to_float ? int_to_float(l, from, to, value) : int_to_int(l, from, to, value);
}

/* Operations on floats of 16 and 8 bits: arithmetic with the target's own instructions, fma with
 * one rounding, conversions from and to e4m3 and e5m2.
 *
 * A sum or product that is computed in f32 and then rounded to f16 or bf16 equals the result of a
 * single instruction. The reason is that f32 has at least twice as many significant bits as the
 * smaller format, plus two (Figueroa, "When is double rounding innocuous?"). Either implementation
 * can therefore be used. This is not true of fma. */

/* ---- bf16, represented by its bits ---- */

static LLVMTypeRef brain_type(kl_lowering *l, LLVMValueRef bits)
{
  LLVMTypeRef type = LLVMBFloatTypeInContext(l->context), given = LLVMTypeOf(bits);
  return LLVMGetTypeKind(given) == LLVMVectorTypeKind
           ? LLVMVectorType(type, LLVMGetVectorSize(given))
           : type;
}

static LLVMValueRef as_brain(kl_lowering *l, LLVMValueRef bits)
{
  return kl_bitcast(l, bits, brain_type(l, bits));
}

LLVMValueRef kl_try_brain_operation(kl_lowering *l, kjit_op op, LLVMValueRef x, LLVMValueRef y)
{
  bool is_native = l->target->has_brain_arithmetic && l->target->has_brain_arithmetic(l);
  if (!is_native || (op != KJIT_OP_ADD && op != KJIT_OP_SUB && op != KJIT_OP_MUL)) return NULL;
  LLVMValueRef left = as_brain(l, x), right = as_brain(l, y);
  LLVMValueRef result = op == KJIT_OP_ADD   ? kl_fadd(l, left, right)
                        : op == KJIT_OP_SUB ? kl_fsub(l, left, right)
                                            : kl_fmul(l, left, right);
  return kl_bitcast(l, kl_fast(l, result), LLVMTypeOf(x));
}

/* ---- fma ---- */

/* Returns x + y in f64, rounded to odd: if the sum is inexact, its last bit is set. A second
 * rounding of this sum then gives the same result as a single rounding. */
static LLVMValueRef add_to_odd(kl_lowering *l, LLVMValueRef x, LLVMValueRef y)
{
  LLVMValueRef sum = kl_fadd(l, x, y), of_y = kl_fsub(l, sum, x), of_x = kl_fsub(l, sum, of_y);
  /* the exact error, computed by Knuth's two-sum algorithm */
  LLVMValueRef lost = kl_fadd(l, kl_fsub(l, x, of_x), kl_fsub(l, y, of_y));
  LLVMValueRef zero = LLVMConstReal(l->f64, 0), bits = kl_bitcast(l, sum, l->i64);
  LLVMValueRef is_even = kl_icmp(l, LLVMIntEQ, kl_and(l, bits, kl_const64(l, 1)), kl_const64(l, 0));
  LLVMValueRef is_away =
    kl_icmp(l, LLVMIntEQ, kl_fcmp(l, LLVMRealOGT, lost, zero), kl_fcmp(l, LLVMRealOGT, sum, zero));
  LLVMValueRef odd = kl_add(l, bits, kl_select(l, is_away, kl_const64(l, 1), kl_const64(l, -1)));
  /* false for infinities and NaNs, because `lost` is then NaN */
  LLVMValueRef is_inexact = kl_fcmp(l, LLVMRealONE, lost, zero);
  return kl_bitcast(l, kl_select(l, kl_and(l, is_even, is_inexact), odd, bits), l->f64);
}

LLVMValueRef kl_lower_small_fma(kl_lowering *l, const kt_expr *expr)
{
  kjit_type type = expr->type;
  LLVMValueRef args[3];
  for (size_t i = 0; i < 3; i++) args[i] = kl_lower_expr(l, expr->args.items[i]);
  bool is_native = l->target->has_half_fma && l->target->has_half_fma(l, type);
  if (is_native && type == KJIT_F16) return kl_intrinsic3(l, "llvm.fma", args[0], args[1], args[2]);
  if (is_native)
    return kl_bitcast(l,
                      kl_intrinsic3(l, "llvm.fma", as_brain(l, args[0]), as_brain(l, args[1]),
                                    as_brain(l, args[2])),
                      l->i16);
  for (size_t i = 0; i < 3; i++) args[i] = kl_build_convert(l, type, KJIT_F64, args[i]);
  LLVMValueRef product = kl_fmul(l, args[0], args[1]); /* exact */
  return kl_build_convert(l, KJIT_F64, type, add_to_odd(l, product, args[2]));
}

/* ---- e4m3 and e5m2 ---- */

typedef struct format {
  const char *name;
  unsigned mantissa_bits, bias;
  double largest;
  unsigned nan;
} format;

static const format *format_of(const kt_expr *expr)
{
  static const format formats[] = { { "e4m3", 3, 7, 448, 0x7f }, { "e5m2", 2, 15, 57344, 0x7f } };
  return expr->builtin->operation == KJ_MMA_E4M3 ? &formats[0] : &formats[1];
}

static LLVMValueRef and32(kl_lowering *l, LLVMValueRef x, int64_t mask)
{
  return kl_and(l, x, kl_const32(l, mask));
}
static LLVMValueRef shift_right(kl_lowering *l, LLVMValueRef x, unsigned by)
{
  return kl_lshr(l, x, kl_const32(l, by));
}
static LLVMValueRef shift_left(kl_lowering *l, LLVMValueRef x, unsigned by)
{
  return kl_shl(l, x, kl_const32(l, by));
}

/* Converts a float to the format and rounds to nearest even. Numbers that are too large become the
 * largest number of the format. Integer arithmetic on the bits of the float rounds the mantissa. A
 * number below the smallest normal number is rounded by the addition of a power of two whose last
 * mantissa bit has the weight of the format's last bit. */
static LLVMValueRef to_format(kl_lowering *l, const format *f, LLVMValueRef x)
{
  unsigned dropped = 23 - f->mantissa_bits;
  LLVMValueRef bits = kl_bitcast(l, x, l->i32), size = kl_intrinsic1(l, "llvm.fabs", x);
  size = kl_intrinsic2(l, "llvm.minnum", size, LLVMConstReal(l->f32, f->largest));
  LLVMValueRef size_bits = kl_bitcast(l, size, l->i32);
  LLVMValueRef half = kl_add(l, and32(l, shift_right(l, size_bits, dropped), 1),
                             kl_const32(l, (1 << (dropped - 1)) - 1));
  LLVMValueRef normal = kl_sub(l, shift_right(l, kl_add(l, size_bits, half), dropped),
                               kl_const32(l, (int64_t)(127 - f->bias) << f->mantissa_bits));
  double step = ldexp(1, 1 - (int)f->bias - (int)f->mantissa_bits), magic = step * 8388608.;
  LLVMValueRef shifted = kl_bitcast(l, kl_fadd(l, size, LLVMConstReal(l->f32, magic)), l->i32);
  LLVMValueRef small = kl_sub(l, shifted, LLVMConstBitCast(LLVMConstReal(l->f32, magic), l->i32));
  LLVMValueRef is_normal =
    kl_fcmp(l, LLVMRealOGE, size, LLVMConstReal(l->f32, ldexp(1, 1 - (int)f->bias)));
  LLVMValueRef number = kl_select(l, is_normal, normal, small);
  number = kl_select(l, kl_fcmp(l, LLVMRealUNO, x, x), kl_const32(l, f->nan),
                     kl_or(l, number, and32(l, shift_right(l, bits, 24), 0x80)));
  return kl_trunc(l, number, l->i8);
}

LLVMValueRef kl_lower_to_fp8(kl_lowering *l, const kt_expr *expr)
{
  const kt_expr *value = expr->args.items[0];
  const format *f = format_of(expr);
  LLVMValueRef x = kl_lower_expr(l, value);
  x =
    value->type == KJIT_F64 ? kl_round_to_odd(l, x) : kl_build_convert(l, value->type, KJIT_F32, x);
  if (!expr->dimension) return to_format(l, f, x);
  LLVMValueRef args[2] = { LLVMConstNull(l->f32), x };
  LLVMValueRef pair =
    kl_try_native(l, kj_format(l->c->arena, "ff.to.%sx2.rn", f->name), 0, args, 2);
  return kl_trunc(l, pair, l->i8);
}

/* Converts a number of the format to a float. Its bits are placed into a float whose exponent is
 * then too small; a multiplication by a power of two corrects the exponent. This is correct for
 * subnormal numbers as well. */
static LLVMValueRef from_format(kl_lowering *l, const format *f, LLVMValueRef bits)
{
  LLVMValueRef wide = kl_zext(l, bits, l->i32), size_bits = and32(l, wide, 0x7f);
  LLVMValueRef size = kl_bitcast(l, shift_left(l, size_bits, 23 - f->mantissa_bits), l->f32);
  size = kl_fmul(l, size, LLVMConstReal(l->f32, ldexp(1, 127 - (int)f->bias)));
  if (f->mantissa_bits == 2) { /* infinity and NaNs as in IEEE 754 */
    LLVMValueRef special =
      kl_bitcast(l, kl_or(l, shift_left(l, and32(l, size_bits, 3), 21), kl_const32(l, 0x7f800000)),
                 l->f32);
    size = kl_select(l, kl_icmp(l, LLVMIntUGE, size_bits, kl_const32(l, 0x7c)), special, size);
  } else {
    size = kl_select(l, kl_icmp(l, LLVMIntEQ, size_bits, kl_const32(l, f->nan)),
                     LLVMConstReal(l->f32, NAN), size);
  }
  LLVMValueRef sign = kl_bitcast(l, shift_left(l, and32(l, wide, 0x80), 24), l->f32);
  return kl_intrinsic2(l, "llvm.copysign", size, sign);
}

LLVMValueRef kl_lower_from_fp8(kl_lowering *l, const kt_expr *expr)
{
  const format *f = format_of(expr);
  LLVMValueRef bits = kl_lower_expr(l, expr->args.items[0]);
  if (!expr->dimension) return from_format(l, f, bits);
  LLVMValueRef pair = kl_zext(l, bits, l->i16);
  LLVMValueRef halves =
    kl_try_native(l, kj_format(l->c->arena, "%sx2.to.f16x2.rn", f->name), 0, &pair, 1);
  return kl_fpext(l, kl_extract_element(l, halves, kl_const32(l, 0)), l->f32);
}
