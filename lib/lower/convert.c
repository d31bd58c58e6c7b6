/* Conversions between scalars (kernel-ir.md: float to int truncates and saturates, NaN gives 0; all
 * others round to nearest even, once). */
#include "lower/lower.h"

static bool is_wide_float(kjit_type type) { return type == KJIT_F64 || type == KJ_WEAK_FLOAT; }
static bool is_small_float(kjit_type type) { return type == KJIT_F16 || type == KJIT_BF16; }

static LLVMValueRef to_bool(kj_lowering *l, kjit_type from, LLVMValueRef value)
{
  if (!kj_is_float_type(l, from))
    return LLVMBuildICmp(l->builder, LLVMIntNE, value, LLVMConstNull(LLVMTypeOf(value)), "");
  LLVMValueRef x = kj_to_compute(l, from, value);
  return LLVMBuildFCmp(l->builder, LLVMRealUNE, x, LLVMConstNull(LLVMTypeOf(x)), "");
}

static LLVMValueRef int_to_int(kj_lowering *l, kjit_type from, kjit_type to, LLVMValueRef value)
{
  uint32_t from_bytes = kj_scalar_bytes(l, from), to_bytes = kj_scalar_bytes(l, to);
  LLVMTypeRef type = kj_register_type(l, to);
  if (from_bytes == to_bytes) return value;
  if (from_bytes > to_bytes) return LLVMBuildTrunc(l->builder, value, type, "");
  return kj_is_signed_type(l, from) ? LLVMBuildSExt(l->builder, value, type, "")
                                    : LLVMBuildZExt(l->builder, value, type, "");
}

static LLVMValueRef saturate(kj_lowering *l, bool is_signed, LLVMTypeRef type, LLVMValueRef x)
{
  return kj_intrinsic(l, is_signed ? "llvm.fptosi.sat" : "llvm.fptoui.sat",
                      (LLVMTypeRef[]){ type, LLVMTypeOf(x) }, 2, &x, 1);
}

static LLVMValueRef float_to_int(kj_lowering *l, kjit_type from, kjit_type to, LLVMValueRef value)
{
  LLVMValueRef x = kj_to_compute(l, from, value);
  bool is_signed = kj_is_signed_type(l, to);
  if (l->target->float_to_i32 && kj_scalar_bytes(l, to) == 4 && LLVMTypeOf(x) == l->f32)
    return l->target->float_to_i32(l, x, !is_signed);
  return saturate(l, is_signed, kj_register_type(l, to), x);
}

/* f64 to f32 rounding to odd, so that rounding once more to a shorter format is as if it were done
 * at once (Boldo and Melquiond). */
LLVMValueRef kj_round_to_odd(kj_lowering *l, LLVMValueRef x)
{
  LLVMBuilderRef b = l->builder;
  LLVMValueRef near = LLVMBuildFPTrunc(b, x, l->f32, ""),
               back = LLVMBuildFPExt(b, near, l->f64, "");
  LLVMValueRef is_exact = LLVMBuildFCmp(b, LLVMRealUEQ, back, x, "");
  LLVMValueRef is_over = LLVMBuildFCmp(b, LLVMRealOGT, kj_intrinsic1(l, "llvm.fabs", back),
                                       kj_intrinsic1(l, "llvm.fabs", x), "");
  LLVMValueRef bits = LLVMBuildBitCast(b, near, l->i32, "");
  LLVMValueRef truncated = LLVMBuildSub(b, bits, LLVMBuildZExt(b, is_over, l->i32, ""), "");
  LLVMValueRef odd = LLVMBuildOr(b, truncated, kj_const32(l, 1), "");
  return LLVMBuildBitCast(b, LLVMBuildSelect(b, is_exact, bits, odd, ""), l->f32, "");
}

/* A 64-bit integer as a double in which the bits that do not fit are folded into the last one:
 * exact enough to be rounded to odd. */
static LLVMValueRef sticky_double(kj_lowering *l, bool is_signed, LLVMValueRef value)
{
  LLVMBuilderRef b = l->builder;
  LLVMValueRef zero = kj_const64(l, 0), is_negative = LLVMBuildICmp(b, LLVMIntSLT, value, zero, "");
  LLVMValueRef size =
    is_signed ? LLVMBuildSelect(b, is_negative, LLVMBuildSub(b, zero, value, ""), value, "")
              : value;
  LLVMValueRef lost = LLVMBuildAnd(b, size, kj_const64(l, 0xffff), "");
  LLVMValueRef sticky = LLVMBuildZExt(b, LLVMBuildICmp(b, LLVMIntNE, lost, zero, ""), l->i64, "");
  LLVMValueRef upper = LLVMBuildOr(b, LLVMBuildLShr(b, size, kj_const64(l, 16), ""), sticky, "");
  LLVMValueRef large =
    LLVMBuildFMul(b, LLVMBuildUIToFP(b, upper, l->f64, ""), LLVMConstReal(l->f64, 65536.), "");
  LLVMValueRef is_large = LLVMBuildICmp(b, LLVMIntUGE, size, kj_const64(l, (int64_t)1 << 48), "");
  LLVMValueRef result =
    LLVMBuildSelect(b, is_large, large, LLVMBuildUIToFP(b, size, l->f64, ""), "");
  return is_signed ? LLVMBuildSelect(b, is_negative, LLVMBuildFNeg(b, result, ""), result, "")
                   : result;
}

static LLVMValueRef int_to_float(kj_lowering *l, kjit_type from, kjit_type to, LLVMValueRef value)
{
  bool is_signed = kj_is_signed_type(l, from);
  uint32_t bytes = kj_scalar_bytes(l, from);
  /* Every integer that f16 can tell from infinity is exact in f32; for bf16 only 16 bits are. */
  if (to == KJIT_BF16 && bytes == 8)
    return kj_from_compute(l, to, kj_round_to_odd(l, sticky_double(l, is_signed, value)));
  LLVMTypeRef type = is_small_float(to) ? (to == KJIT_BF16 && bytes == 4 ? l->f64 : l->f32)
                                        : kj_register_type(l, to);
  LLVMValueRef x = is_signed ? LLVMBuildSIToFP(l->builder, value, type, "")
                             : LLVMBuildUIToFP(l->builder, value, type, "");
  if (!is_small_float(to)) return x;
  return kj_from_compute(l, to, type == l->f64 ? kj_round_to_odd(l, x) : x);
}

static LLVMValueRef float_to_float(kj_lowering *l, kjit_type from, kjit_type to, LLVMValueRef value)
{
  LLVMValueRef x = kj_to_compute(l, from, value);
  if (is_wide_float(to)) return is_wide_float(from) ? x : LLVMBuildFPExt(l->builder, x, l->f64, "");
  if (!is_wide_float(from)) return kj_from_compute(l, to, x);
  return to == KJIT_F32 ? LLVMBuildFPTrunc(l->builder, x, l->f32, "")
                        : kj_from_compute(l, to, kj_round_to_odd(l, x));
}

static bool is_pointer(kj_lowering *l, kjit_type type)
{
  return !kj_is_weak(type) && kj_type(l->c->types, type)->class_ == KJ_CLASS_POINTER;
}

LLVMValueRef kj_build_convert(kj_lowering *l, kjit_type from, kjit_type to, LLVMValueRef value)
{
  if (from == to) return value;
  if (is_pointer(l, from) && is_pointer(l, to)) return value;
  if (is_pointer(l, from)) return LLVMBuildPtrToInt(l->builder, value, l->i64, "");
  if (is_pointer(l, to)) return LLVMBuildIntToPtr(l->builder, value, l->pointer, "");
  if (kj_part_of(l, to) != to) return kj_build_convert_parts(l, from, to, value);
  if (to == KJIT_BOOL) return to_bool(l, from, value);
  bool is_from_float = kj_is_float_type(l, from), is_to_float = kj_is_float_type(l, to);
  if (from == KJIT_BOOL && !is_to_float)
    return LLVMBuildZExt(l->builder, value, kj_register_type(l, to), "");
  if (from == KJIT_BOOL)
    return kj_from_compute(l, to,
                           LLVMBuildUIToFP(l->builder, value,
                                           is_small_float(to) ? l->f32 : kj_register_type(l, to),
                                           ""));
  if (is_from_float)
    return is_to_float ? float_to_float(l, from, to, value) : float_to_int(l, from, to, value);
  return is_to_float ? int_to_float(l, from, to, value) : int_to_int(l, from, to, value);
}
