/* Lowers functions of <math.h>. f32 and f64 use the target's math library; f16 and bf16 are
 * computed in f32. */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "lower/instruction.h"

static LLVMValueRef compute_arg(kl_lowering *l, const kt_expr *expr, size_t i)
{
  KJ_ASSERT(i < expr->args.count);
  const kt_expr *x = expr->args.items[i];
  return kl_to_compute(l, x->type, kl_lower_expr(l, x));
}

LLVMValueRef kl_lower_math(kl_lowering *l, const kt_expr *expr)
{
  KJ_ASSERT(expr->args.count >= 1 && expr->args.count <= 3);
  LLVMValueRef args[3];
  for (size_t i = 0; i < expr->args.count; i++) args[i] = compute_arg(l, expr, i);
  return kl_from_compute(l, expr->type,
                         l->target->math(l, expr->builtin->id, args, (unsigned)expr->args.count,
                                         LLVMTypeOf(args[0])));
}

LLVMValueRef kl_lower_rsqrt(kl_lowering *l, const kt_expr *expr)
{
  return kl_from_compute(l, expr->type, l->target->rsqrt(l, compute_arg(l, expr, 0)));
}

/* Calls the function of the math library, which is fast for the orders 0 to KL_LOW_ORDERS. Replaces
 * a negative order by 0, because the library would need as many steps as for the absolute value of
 * the order. */
static LLVMValueRef low_bessel(kl_lowering *l, ki_builtin_id id, LLVMValueRef n, LLVMValueRef x)
{
  LLVMValueRef args[] = { kl_intrinsic2(l, "llvm.smax", n, kl_const32(l, 0)), x };
  return l->target->math(l, id, args, 2, LLVMTypeOf(x));
}

static LLVMValueRef bessel(kl_lowering *l, ki_builtin_id id, LLVMValueRef n, LLVMValueRef x)
{
  LLVMValueRef limit = kl_const32(l, KL_LOW_ORDERS), values[2];
  if (LLVMIsAConstantInt(n) && LLVMConstIntGetSExtValue(n) <= KL_LOW_ORDERS)
    return low_bessel(l, id, n, x);
  LLVMBasicBlockRef high = kl_new_block(l, "high"), low = kl_new_block(l, "low"),
                    end = kl_new_block(l, "bessel"), from[2];
  kl_go_on_if(l, kl_icmp(l, LLVMIntSGT, n, limit), high, low);
  values[0] = kl_build_high_bessel(l, id == KJ_BUILTIN_YN, n, x);
  from[0] = kl_here(l);
  kl_br(l, end);
  kl_move_to(l, low);
  values[1] = low_bessel(l, id, n, x);
  from[1] = kl_here(l);
  kl_go_on_in(l, end);
  return kl_join(l, values[0], from[0], values[1], from[1]);
}

/* Lowers jn or yn, with operands n and x. The results of the C library and of CUDA differ
 * for n < 0, so kjit returns NaN for n < 0 on both targets. */
LLVMValueRef kl_lower_bessel(kl_lowering *l, const kt_expr *expr)
{
  KJ_ASSERT(expr->args.count == 2);
  LLVMValueRef n = kl_lower_expr(l, expr->args.items[0]), x = compute_arg(l, expr, 1);
  LLVMTypeRef type = LLVMTypeOf(x);
  LLVMValueRef value = bessel(l, expr->builtin->id, n, x);
  LLVMValueRef is_defined = kl_icmp(l, LLVMIntSGE, n, kl_const32(l, 0));
  return kl_from_compute(l, expr->type, kl_select(l, is_defined, value, LLVMConstReal(type, NAN)));
}

/* Computes the next f16 or bf16 from its bits. The next f32 would be rounded back to x. */
static LLVMValueRef next_small(kl_lowering *l, const kt_expr *expr)
{
  const kt_expr *from = expr->args.items[0], *to = expr->args.items[1];
  LLVMValueRef raw = kl_lower_expr(l, from), target = kl_lower_expr(l, to),
               zero = LLVMConstNull(l->f32), one = LLVMConstInt(l->i16, 1, false);
  LLVMValueRef x = kl_to_compute(l, from->type, raw), y = kl_to_compute(l, to->type, target);
  LLVMValueRef bits = kl_bitcast(l, raw, l->i16), goal = kl_bitcast(l, target, l->i16);
  LLVMValueRef is_up = kl_fcmp(l, LLVMRealOLT, x, y),
               is_positive = kl_fcmp(l, LLVMRealOGT, x, zero);
  LLVMValueRef is_away = kl_icmp(l, LLVMIntEQ, is_up, is_positive);
  LLVMValueRef next = kl_select(l, is_away, kl_add(l, bits, one), kl_sub(l, bits, one));
  LLVMValueRef least = kl_or(l, kl_and(l, goal, LLVMConstInt(l->i16, 0x8000, false)), one);
  next = kl_select(l, kl_fcmp(l, LLVMRealOEQ, x, zero), least, next);
  next = kl_select(l, kl_fcmp(l, LLVMRealOEQ, x, y), goal, next);
  LLVMValueRef nan = LLVMConstInt(l->i16, expr->type == KJIT_F16 ? 0x7e00 : 0x7fc0, false);
  next = kl_select(l, kl_fcmp(l, LLVMRealUNO, x, y), nan, next);
  return kl_bitcast(l, next, kl_register_type(l, expr->type));
}

LLVMValueRef kl_lower_nextafter(kl_lowering *l, const kt_expr *expr)
{
  return expr->type == KJIT_F16 || expr->type == KJIT_BF16 ? next_small(l, expr)
                                                           : kl_lower_math(l, expr);
}

/* Lowers fma with directed rounding. The CPU calls functions of lib/native. */
LLVMValueRef kl_lower_fma_directed(kl_lowering *l, const kt_expr *expr)
{
  KJ_ASSERT(expr->args.count == 3);
  LLVMValueRef args[3];
  for (size_t i = 0; i < 3; i++) args[i] = compute_arg(l, expr, i);
  ki_builtin_id id = expr->builtin->id;
  const char *rounding = id == KJ_BUILTIN_FMA_RZ ? "rz" : id == KJ_BUILTIN_FMA_RU ? "rp" : "rm";
  const char *name =
    kj_format(l->c->arena, "fma.%s.%s", rounding, LLVMTypeOf(args[0]) == l->f32 ? "f" : "d");
  LLVMValueRef native = kl_try_native(l, name, 0, args, 3);
  return native ? native : l->target->math(l, id, args, 3, LLVMTypeOf(args[0]));
}

/* Lowers x / y without a run-time check of the divisor. */
LLVMValueRef kl_lower_quotient(kl_lowering *l, const kt_expr *expr)
{
  KJ_ASSERT(expr->args.count == 2);
  LLVMValueRef x = compute_arg(l, expr, 0), y = compute_arg(l, expr, 1);
  return kl_from_compute(l, expr->type, kl_fast(l, kl_fdiv(l, x, y)));
}

/* Lowers x / y with an approximate reciprocal if x and y are f32 and the target has the
 * instruction. */
LLVMValueRef kl_lower_fast_divide(kl_lowering *l, const kt_expr *expr)
{
  KJ_ASSERT(expr->args.count == 2);
  LLVMValueRef args[2] = { compute_arg(l, expr, 0), compute_arg(l, expr, 1) };
  LLVMValueRef quotient =
    LLVMTypeOf(args[0]) == l->f32 ? kl_try_native(l, "div.approx.f", 0, args, 2) : NULL;
  return kl_from_compute(l, expr->type,
                         quotient ? quotient : kl_fast(l, kl_fdiv(l, args[0], args[1])));
}

/* Clamps to [0, 1]. Comparisons with NaN are false, so NaN becomes 0; -0 also becomes 0. */
LLVMValueRef kl_lower_saturate(kl_lowering *l, const kt_expr *expr)
{
  LLVMValueRef x = compute_arg(l, expr, 0),
               native = LLVMTypeOf(x) == l->f32 ? kl_try_native(l, "saturate.f", 0, &x, 1) : NULL;
  if (native) return kl_from_compute(l, expr->type, native);
  LLVMTypeRef type = LLVMTypeOf(x);
  LLVMValueRef zero = LLVMConstNull(type), one = LLVMConstReal(type, 1);
  LLVMValueRef positive = kl_select(l, kl_fcmp(l, LLVMRealOGT, x, zero), x, zero);
  return kl_from_compute(l, expr->type,
                         kl_select(l, kl_fcmp(l, LLVMRealOLT, positive, one), positive, one));
}

LLVMValueRef kl_lower_round_to_int(kl_lowering *l, const kt_expr *expr)
{
  LLVMValueRef x = compute_arg(l, expr, 0);
  kjit_type type = LLVMTypeOf(x) == l->f64 ? KJIT_F64 : KJIT_F32;
  bool is_to_even = expr->builtin->id == KJ_BUILTIN_LRINT;
  return kl_build_convert(l, type, expr->type,
                          kl_intrinsic1(l, is_to_even ? "llvm.roundeven" : "llvm.round", x));
}

/* Lowers ldexp. The n of LLVM's intrinsic is an i32. A larger n is saturated, which gives the same
 * infinity or zero. */
LLVMValueRef kl_lower_ldexp(kl_lowering *l, const kt_expr *expr)
{
  KJ_ASSERT(expr->args.count == 2);
  LLVMValueRef x = compute_arg(l, expr, 0), n = kl_lower_expr(l, expr->args.items[1]);
  kjit_type n_type = expr->args.items[1]->type;
  if (kl_scalar_bytes(l, n_type) < 4 || n_type == KJIT_I32) {
    n = kl_build_convert(l, n_type, KJIT_I32, n);
  } else {
    bool is_signed = kl_is_signed_type(l, n_type);
    LLVMTypeRef type = LLVMTypeOf(n);
    if (is_signed)
      n = kl_intrinsic2(l, "llvm.smax", n, LLVMConstInt(type, (uint64_t)(int64_t)-10000, true));
    n =
      kl_intrinsic2(l, is_signed ? "llvm.smin" : "llvm.umin", n, LLVMConstInt(type, 10000, false));
    n = kl_build_convert(l, n_type, KJIT_I32, n);
  }
  LLVMTypeRef overloads[2] = { LLVMTypeOf(x), l->i32 };
  return kl_from_compute(l, expr->type,
                         kl_intrinsic(l, "llvm.ldexp", overloads, 2, (LLVMValueRef[]){ x, n }, 2));
}

static LLVMValueRef make_pair(kl_lowering *l, const kt_expr *expr, LLVMValueRef first,
                              LLVMValueRef second)
{
  KJ_ASSERT(kl_is_tuple_type(l, expr->type));
  LLVMValueRef tuple = LLVMGetPoison(kl_register_type(l, expr->type));
  tuple = kl_insert_value(l, tuple, first, 0);
  return kl_insert_value(l, tuple, second, 1);
}

static LLVMValueRef is_class(kl_lowering *l, LLVMRealPredicate predicate, LLVMValueRef size,
                             double bound)
{
  return kl_fcmp(l, predicate, size, LLVMConstReal(LLVMTypeOf(size), bound));
}

/* Computes mantissa and exponent from the bits of x. llvm.frexp is not used, because on x86-64-v2
 * LLVM 22 generates wrong exponents for vectors of two doubles, and the vectorizer creates such
 * vectors. */
LLVMValueRef kl_split_exponent(kl_lowering *l, LLVMValueRef x, LLVMValueRef *exponent)
{
  bool is_f64 = LLVMTypeOf(x) == l->f64;
  KJ_ASSERT(is_f64 || LLVMTypeOf(x) == l->f32);
  const int mantissa_bits = is_f64 ? 52 : 23, bias = is_f64 ? 1022 : 126;
  LLVMTypeRef type = is_f64 ? l->i64 : l->i32;
  uint64_t mask = (uint64_t)(is_f64 ? 0x7ff : 0xff);
  LLVMValueRef shift = LLVMConstInt(type, (uint64_t)mantissa_bits, false);
  LLVMValueRef is_subnormal =
    is_class(l, LLVMRealOLT, kl_fabs(l, x), is_f64 ? 0x1p-1022 : 0x1p-126);
  /* a subnormal number times this power of two is normal */
  LLVMValueRef scaled = kl_fmul(l, x, kl_real_like(x, ldexp(1, mantissa_bits + 1)));
  LLVMValueRef bits = kl_bitcast(l, kl_select(l, is_subnormal, scaled, x), type);
  LLVMValueRef field = kl_and(l, kl_lshr(l, bits, shift), LLVMConstInt(type, mask, false));
  if (is_f64) field = kl_trunc(l, field, l->i32);
  LLVMValueRef offset =
    kl_select(l, is_subnormal, kl_const32(l, bias + mantissa_bits + 1), kl_const32(l, bias));
  LLVMValueRef others =
    LLVMConstInt(type, ~(mask << mantissa_bits) & (is_f64 ? UINT64_MAX : UINT32_MAX), false);
  LLVMValueRef half = LLVMConstInt(type, (uint64_t)bias << mantissa_bits, false);
  LLVMValueRef mantissa = kl_bitcast(l, kl_or(l, kl_and(l, bits, others), half), LLVMTypeOf(x));
  LLVMValueRef is_zero = is_class(l, LLVMRealOEQ, x, 0);
  *exponent = kl_select(l, is_zero, kl_const32(l, 0), kl_sub(l, field, offset));
  return kl_select(l, is_zero, x, mantissa);
}

/* Lowers frexp. C does not define the exponent of infinities and NaNs; on both targets it is 0. */
LLVMValueRef kl_lower_frexp(kl_lowering *l, const kt_expr *expr)
{
  LLVMValueRef x = compute_arg(l, expr, 0), exponent;
  LLVMValueRef mantissa = kl_split_exponent(l, x, &exponent);
  LLVMValueRef is_finite = is_class(l, LLVMRealOLT, kl_intrinsic1(l, "llvm.fabs", x), INFINITY);
  mantissa = kl_select(l, is_finite, mantissa, x);
  exponent = kl_select(l, is_finite, exponent, kl_const32(l, 0));
  return make_pair(l, expr, kl_from_compute(l, expr->args.items[0]->type, mantissa), exponent);
}

/* Lowers ilogb like glibc: INT_MIN for 0 and NaN, INT_MAX for infinities. */
LLVMValueRef kl_lower_ilogb(kl_lowering *l, const kt_expr *expr)
{
  LLVMValueRef x = compute_arg(l, expr, 0), size = kl_fabs(l, x), exponent;
  (void)kl_split_exponent(l, x, &exponent);
  exponent = kl_sub(l, exponent, kl_const32(l, 1));
  LLVMValueRef is_number =
    kl_and(l, is_class(l, LLVMRealOGT, size, 0), is_class(l, LLVMRealOLT, size, INFINITY));
  LLVMValueRef special = kl_select(l, is_class(l, LLVMRealOEQ, size, INFINITY),
                                   kl_const32(l, INT_MAX), kl_const32(l, INT_MIN));
  return kl_select(l, is_number, exponent, special);
}

/* Lowers modf. The fraction of an infinity is zero; both parts have the sign of x. */
LLVMValueRef kl_lower_modf(kl_lowering *l, const kt_expr *expr)
{
  kjit_type type = expr->args.items[0]->type;
  LLVMValueRef x = compute_arg(l, expr, 0), whole = kl_intrinsic1(l, "llvm.trunc", x);
  LLVMValueRef is_infinite = is_class(l, LLVMRealOEQ, kl_intrinsic1(l, "llvm.fabs", x), INFINITY);
  LLVMValueRef rest = kl_select(l, is_infinite, LLVMConstNull(LLVMTypeOf(x)), kl_fsub(l, x, whole));
  LLVMValueRef fraction = kl_intrinsic2(l, "llvm.copysign", rest, x);
  return make_pair(l, expr, kl_from_compute(l, type, fraction), kl_from_compute(l, type, whole));
}

LLVMValueRef kl_lower_sincos(kl_lowering *l, const kt_expr *expr)
{
  kjit_type type = expr->args.items[0]->type;
  LLVMValueRef x = compute_arg(l, expr, 0);
  LLVMTypeRef items[2] = { LLVMTypeOf(x), LLVMTypeOf(x) };
  LLVMValueRef both = l->target->math(l, KJ_BUILTIN_SINCOS, &x, 1,
                                      LLVMStructTypeInContext(l->context, items, 2, false));
  LLVMValueRef sine = kl_extract_value(l, both, 0), cosine = kl_extract_value(l, both, 1);
  return make_pair(l, expr, kl_from_compute(l, type, sine), kl_from_compute(l, type, cosine));
}

LLVMValueRef kl_lower_sincospi(kl_lowering *l, const kt_expr *expr)
{
  kjit_type type = expr->args.items[0]->type;
  LLVMValueRef x = compute_arg(l, expr, 0);
  LLVMValueRef sine = l->target->math(l, KJ_BUILTIN_SINPI, &x, 1, LLVMTypeOf(x)),
               cosine = l->target->math(l, KJ_BUILTIN_COSPI, &x, 1, LLVMTypeOf(x));
  return make_pair(l, expr, kl_from_compute(l, type, sine), kl_from_compute(l, type, cosine));
}

/* Lowers remquo. The quotient is computed from fmod(x, 8 * y), which is exact. fmod reduces a
 * quotient 8 * k + n to n, and n has the low bits that remquo returns. If 8 * y overflows, fmod
 * returns x, whose quotient is small. */
LLVMValueRef kl_lower_remquo(kl_lowering *l, const kt_expr *expr)
{
  KJ_ASSERT(expr->args.count == 2);
  kjit_type type = expr->args.items[0]->type;
  LLVMValueRef x = compute_arg(l, expr, 0), y = compute_arg(l, expr, 1);
  LLVMTypeRef float_type = LLVMTypeOf(x);
  LLVMValueRef remainder =
    l->target->math(l, KJ_BUILTIN_REMAINDER, (LLVMValueRef[]){ x, y }, 2, float_type);
  LLVMValueRef eight = kl_fmul(l, y, LLVMConstReal(float_type, 8));
  LLVMValueRef rest =
    l->target->math(l, KJ_BUILTIN_FMOD, (LLVMValueRef[]){ x, eight }, 2, float_type);
  LLVMValueRef quotient = kl_fsub(l, kl_fdiv(l, rest, y), kl_fdiv(l, remainder, y));
  quotient = kl_build_convert(l, float_type == l->f64 ? KJIT_F64 : KJIT_F32, KJIT_I32,
                              kl_intrinsic1(l, "llvm.roundeven", quotient));
  LLVMValueRef is_negative = kl_icmp(l, LLVMIntSLT, quotient, kl_const32(l, 0));
  LLVMValueRef size = kl_select(l, is_negative, kl_neg(l, quotient), quotient);
  size = kl_and(l, size, kl_const32(l, 7));
  quotient = kl_select(l, is_negative, kl_neg(l, size), size);
  return make_pair(l, expr, kl_from_compute(l, type, remainder), quotient);
}

static double least_normal(kjit_type type)
{
  switch (type) {
  case KJIT_F16: return 0x1p-14;
  case KJIT_F64: return 0x1p-1022;
  default: return 0x1p-126;
  }
}

static LLVMValueRef sign_bit(kl_lowering *l, LLVMValueRef x)
{
  LLVMTypeRef type = LLVMTypeOf(x) == l->f64 ? l->i64 : l->i32;
  return kl_icmp(l, LLVMIntSLT, kl_bitcast(l, x, type), LLVMConstNull(type));
}

LLVMValueRef kl_lower_float_test(kl_lowering *l, const kt_expr *expr)
{
  LLVMValueRef x = compute_arg(l, expr, 0);
  ki_builtin_id test = expr->builtin->id;
  if (test == KJ_BUILTIN_ISNAN) return kl_fcmp(l, LLVMRealUNO, x, x);
  if (test == KJ_BUILTIN_SIGNBIT) return sign_bit(l, x);
  if (test == KJ_BUILTIN_ISNORMAL) {
    LLVMValueRef size = kl_intrinsic1(l, "llvm.fabs", x);
    LLVMValueRef is_large = is_class(l, LLVMRealOGE, size, least_normal(expr->args.items[0]->type));
    return kl_and(l, is_large, is_class(l, LLVMRealOLT, size, INFINITY));
  }
  return is_class(l, test == KJ_BUILTIN_ISINF ? LLVMRealOEQ : LLVMRealOLT,
                  kl_intrinsic1(l, "llvm.fabs", x), INFINITY);
}
