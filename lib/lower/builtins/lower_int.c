/* Lowers functions of integers and of 32-bit words, and abs, min and max of all number types. */
#include <string.h>

#include "lower/instruction.h"

/* ---- bit functions and divisions of integers; abs, min and max of all number types ---- */

/* Converts a bit count to the result type i32. The count has the operand type. */
static LLVMValueRef as_result(kl_lowering *l, const kt_expr *expr, LLVMValueRef value)
{
  LLVMTypeRef type = kl_register_type(l, expr->type);
  if (LLVMTypeOf(value) == type) return value;
  unsigned from = LLVMGetIntTypeWidth(LLVMTypeOf(value)), to = LLVMGetIntTypeWidth(type);
  return from > to ? kl_trunc(l, value, type) : kl_zext(l, value, type);
}

/* Lowers built-ins to LLVM intrinsics that are overloaded on the operand type: bit counts, sqrt,
 * floor, fma. */
LLVMValueRef kl_lower_intrinsic(kl_lowering *l, const kt_expr *expr)
{
  static const char *const names[] = {
    [KJ_BUILTIN_POPC] = "llvm.ctpop",     [KJ_BUILTIN_BREV] = "llvm.bitreverse",
    [KJ_BUILTIN_BSWAP] = "llvm.bswap",    [KJ_BUILTIN_SQRT] = "llvm.sqrt",
    [KJ_BUILTIN_FLOOR] = "llvm.floor",    [KJ_BUILTIN_CEIL] = "llvm.ceil",
    [KJ_BUILTIN_TRUNC] = "llvm.trunc",    [KJ_BUILTIN_ROUND] = "llvm.round",
    [KJ_BUILTIN_RINT] = "llvm.roundeven", [KJ_BUILTIN_COPYSIGN] = "llvm.copysign",
    [KJ_BUILTIN_FMA] = "llvm.fma"
  };
  const char *name = names[expr->builtin->id];
  LLVMValueRef args[3];
  kjit_type type = expr->args.items[0]->type;
  if (expr->builtin->id == KJ_BUILTIN_FMA && (type == KJIT_F16 || type == KJIT_BF16))
    return kl_lower_small_fma(l, expr);
  for (size_t i = 0; i < expr->args.count; i++)
    args[i] = kl_to_compute(l, type, kl_lower_arg(l, expr, i));
  LLVMTypeRef overload = LLVMTypeOf(args[0]);
  LLVMValueRef call = kl_intrinsic(l, name, &overload, 1, args, (unsigned)expr->args.count);
  if (!kl_is_float_type(l, type)) return as_result(l, expr, call);
  return kl_from_compute(l, type, kl_fast(l, call));
}

static LLVMValueRef count_leading(kl_lowering *l, LLVMValueRef x)
{
  LLVMTypeRef type = LLVMTypeOf(x);
  return kl_intrinsic(l, "llvm.ctlz", &type, 1,
                      (LLVMValueRef[]){ x, LLVMConstInt(l->i1, 0, false) }, 2);
}

LLVMValueRef kl_lower_clz(kl_lowering *l, const kt_expr *expr)
{
  return as_result(l, expr, count_leading(l, kl_lower_arg(l, expr, 0)));
}

/* Counts trailing zeros without llvm.cttz, which becomes a branch on nvptx. For 0 the result is the
 * number of bits. */
static LLVMValueRef count_trailing(kl_lowering *l, LLVMValueRef x)
{
  return count_leading(l, kl_intrinsic1(l, "llvm.bitreverse", x));
}

LLVMValueRef kl_lower_ctz(kl_lowering *l, const kt_expr *expr)
{
  return as_result(l, expr, count_trailing(l, kl_lower_arg(l, expr, 0)));
}

LLVMValueRef kl_lower_ffs(kl_lowering *l, const kt_expr *expr)
{
  KJ_ASSERT(expr->args.count == 1);
  LLVMValueRef x = kl_lower_arg(l, expr, 0), zero = LLVMConstNull(LLVMTypeOf(x));
  LLVMValueRef position = kl_add(l, count_trailing(l, x), LLVMConstInt(LLVMTypeOf(x), 1, false));
  LLVMValueRef is_zero = kl_icmp(l, LLVMIntEQ, x, zero);
  return as_result(l, expr, kl_select(l, is_zero, zero, position));
}

/* Returns the upper half of a 64-bit product, computed from 32-bit products (Hacker's Delight,
 * 8-2). An i128 product is not used: on x86, LLVM 22 vectorizes such a product and then splits the
 * vectors again. LLVM also loses bits of operands that were extended from narrower types. */
static LLVMValueRef multiply_high(kl_lowering *l, bool is_signed, LLVMValueRef x, LLVMValueRef y)
{
  KJ_ASSERT(LLVMTypeOf(x) == l->i64 && LLVMTypeOf(y) == l->i64);
  LLVMValueRef half = kl_const64(l, 32), mask = LLVMConstInt(l->i64, UINT32_MAX, false),
               sign = kl_const64(l, 63);
  LLVMValueRef x0 = kl_and(l, x, mask), x1 = kl_lshr(l, x, half), y0 = kl_and(l, y, mask),
               y1 = kl_lshr(l, y, half);
  LLVMValueRef low = kl_lshr(l, kl_mul(l, x0, y0), half);
  LLVMValueRef middle = kl_add(l, kl_mul(l, x1, y0), low);
  LLVMValueRef other = kl_add(l, kl_mul(l, x0, y1), kl_and(l, middle, mask));
  LLVMValueRef carries = kl_add(l, kl_lshr(l, middle, half), kl_lshr(l, other, half));
  LLVMValueRef high = kl_add(l, kl_mul(l, x1, y1), carries);
  if (!is_signed) return high;
  LLVMValueRef of_x = kl_and(l, kl_ashr(l, x, sign), y), of_y = kl_and(l, kl_ashr(l, y, sign), x);
  return kl_sub(l, kl_sub(l, high, of_x), of_y);
}

LLVMValueRef kl_lower_mulhi(kl_lowering *l, const kt_expr *expr)
{
  KJ_ASSERT(expr->args.count == 2);
  LLVMValueRef x = kl_lower_arg(l, expr, 0), y = kl_lower_arg(l, expr, 1);
  unsigned width = LLVMGetIntTypeWidth(LLVMTypeOf(x));
  bool is_signed = kl_is_signed_type(l, expr->type);
  if (width == 64) {
    LLVMValueRef args[] = { x, y },
                 native = kl_try_native(l, is_signed ? "mulhi.ll" : "mulhi.ull", 0, args, 2);
    return native ? native : multiply_high(l, is_signed, x, y);
  }
  LLVMTypeRef wide = LLVMIntTypeInContext(l->context, 2 * width);
  LLVMValueRef a = is_signed ? kl_sext(l, x, wide) : kl_zext(l, x, wide);
  LLVMValueRef b = is_signed ? kl_sext(l, y, wide) : kl_zext(l, y, wide);
  LLVMValueRef upper = kl_lshr(l, kl_mul(l, a, b), LLVMConstInt(wide, width, false));
  return kl_trunc(l, upper, LLVMTypeOf(x));
}

/* Lowers both operands. If pass/range.c has found that they fit into 32 bits, lowers them as 32-bit
 * values and returns true. */
static bool lower_pair(kl_lowering *l, const kt_expr *expr, LLVMValueRef *x, LLVMValueRef *y)
{
  KJ_ASSERT(expr->args.count == 2);
  const kt_expr *a = expr->args.items[0], *b = expr->args.items[1];
  bool is_narrow = expr->is_narrow && a->is_narrow && b->is_narrow;
  *x = is_narrow ? kl_lower_index32(l, a) : kl_lower_expr(l, a);
  *y = is_narrow ? kl_lower_index32(l, b) : kl_lower_expr(l, b);
  return is_narrow;
}

LLVMValueRef kl_lower_divide(kl_lowering *l, const kt_expr *expr)
{
  LLVMValueRef x, y;
  lower_pair(l, expr, &x, &y);
  kl_check_divisor(l, expr,
                   LLVMTypeOf(x) == l->i32 && expr->type == KJIT_I64 ? KJIT_I32 : expr->type, x, y);
  bool is_signed = kl_is_signed_type(l, expr->type);
  if (expr->builtin->id == KJ_BUILTIN_REM_TRUNC)
    return kl_build_remainder(l, is_signed, KJ_ROUND_TRUNC, x, y);
  bool is_up = expr->builtin->id == KJ_BUILTIN_CEIL_DIV;
  return kl_build_divide(l, is_signed, is_up ? KJ_ROUND_CEIL : KJ_ROUND_TRUNC, x, y);
}

LLVMValueRef kl_lower_minmax(kl_lowering *l, const kt_expr *expr)
{
  LLVMValueRef x, y;
  bool is_narrow = lower_pair(l, expr, &x, &y);
  return kl_build_minmax(l, expr->builtin->operation == KJ_COMBINE_MAX,
                         is_narrow ? KJIT_I32 : expr->type, x, y);
}

LLVMValueRef kl_lower_abs(kl_lowering *l, const kt_expr *expr)
{
  LLVMValueRef x = kl_lower_arg(l, expr, 0);
  if (kl_is_float_type(l, expr->type))
    return kl_from_compute(l, expr->type,
                           kl_intrinsic1(l, "llvm.fabs", kl_to_compute(l, expr->type, x)));
  if (!kl_is_signed_type(l, expr->type)) return x;
  LLVMTypeRef type = LLVMTypeOf(x);
  if (l->target->integer_abs && !LLVMIsConstant(x)) return l->target->integer_abs(l, x);
  return kl_intrinsic(l, "llvm.abs", &type, 1, (LLVMValueRef[]){ x, LLVMConstInt(l->i1, 0, false) },
                      2);
}

/* Functions of 32-bit words that are single instructions on NVIDIA GPUs. Other targets use ordinary
 * operations. */

static void lower_args(kl_lowering *l, const kt_expr *expr, LLVMValueRef *args)
{
  for (size_t i = 0; i < expr->args.count; i++) args[i] = kl_lower_expr(l, expr->args.items[i]);
}

static LLVMValueRef join(kl_lowering *l, LLVMValueRef low, LLVMValueRef high)
{
  LLVMValueRef upper = kl_shl(l, kl_zext(l, high, l->i64), kl_const64(l, 32));
  return kl_or(l, upper, kl_zext(l, low, l->i64));
}

/* Returns byte i of the result, in its position. Bits 4*i to 4*i + 2 of the selector are the number
 * of a byte in the 64-bit value whose upper half is y and whose lower half is x. */
static LLVMValueRef pick_byte(kl_lowering *l, LLVMValueRef both, LLVMValueRef selector, int i)
{
  KJ_ASSERT(i >= 0 && i < 4);
  LLVMValueRef number = kl_and(l, kl_lshr(l, selector, kl_const32(l, 4 * i)), kl_const32(l, 7));
  LLVMValueRef shift = kl_shl(l, kl_zext(l, number, l->i64), kl_const64(l, 3));
  LLVMValueRef byte = kl_and(l, kl_trunc(l, kl_lshr(l, both, shift), l->i32), kl_const32(l, 0xff));
  return kl_shl(l, byte, kl_const32(l, 8 * i));
}

/* Clears bit 3 of each byte number in the selector: if this bit is set, the instruction fills the
 * byte with the sign of the selected byte. */
LLVMValueRef kl_lower_byte_perm(kl_lowering *l, const kt_expr *expr)
{
  KJ_ASSERT(expr->args.count == 3);
  LLVMValueRef args[3];
  lower_args(l, expr, args);
  args[2] = kl_and(l, args[2], kl_const32(l, 0x7777));
  LLVMValueRef native = kl_try_native(l, "prmt", 0, args, 3);
  if (native) return native;
  LLVMValueRef both = join(l, args[0], args[1]), result = pick_byte(l, both, args[2], 0);
  for (int i = 1; i < 4; i++) result = kl_or(l, result, pick_byte(l, both, args[2], i));
  return result;
}

static LLVMValueRef shift_clamped(kl_lowering *l, bool is_left, LLVMValueRef *args)
{
  LLVMValueRef native = kl_try_native(l, is_left ? "fshl.clamp" : "fshr.clamp", 0,
                                      (LLVMValueRef[]){ args[1], args[0], args[2] }, 3);
  if (native) return native;
  LLVMValueRef both = join(l, args[0], args[1]),
               count =
                 kl_zext(l, kl_intrinsic2(l, "llvm.umin", args[2], kl_const32(l, 32)), l->i64);
  if (!is_left) return kl_trunc(l, kl_lshr(l, both, count), l->i32);
  return kl_trunc(l, kl_lshr(l, kl_shl(l, both, count), kl_const64(l, 32)), l->i32);
}

/* Lowers a funnel shift. LLVM's intrinsic has the upper word as its first operand. */
LLVMValueRef kl_lower_funnel(kl_lowering *l, const kt_expr *expr)
{
  KJ_ASSERT(expr->args.count == 3);
  LLVMValueRef args[3];
  ki_builtin_id id = expr->builtin->id;
  bool is_left = id == KJ_BUILTIN_FUNNELSHIFT_L || id == KJ_BUILTIN_FUNNELSHIFT_LC,
       is_clamped = id == KJ_BUILTIN_FUNNELSHIFT_LC || id == KJ_BUILTIN_FUNNELSHIFT_RC;
  lower_args(l, expr, args);
  if (is_clamped) return shift_clamped(l, is_left, args);
  return kl_intrinsic3(l, is_left ? "llvm.fshl" : "llvm.fshr", args[1], args[0], args[2]);
}

static LLVMValueRef byte_of(kl_lowering *l, LLVMValueRef word, bool is_signed, int i)
{
  KJ_ASSERT(i >= 0 && i < 4);
  LLVMValueRef byte = kl_trunc(l, kl_lshr(l, word, kl_const32(l, 8 * i)), l->i8);
  return is_signed ? kl_sext(l, byte, l->i32) : kl_zext(l, byte, l->i32);
}

LLVMValueRef kl_lower_dp4a(kl_lowering *l, const kt_expr *expr)
{
  KJ_ASSERT(expr->args.count == 3);
  LLVMValueRef args[3];
  bool x_signed = expr->args.items[0]->type == KJIT_I32,
       y_signed = expr->args.items[1]->type == KJIT_I32;
  lower_args(l, expr, args);
  LLVMValueRef native =
    kl_try_native(l,
                  kj_format(l->c->arena, "idp4a.%c.%c", x_signed ? 's' : 'u', y_signed ? 's' : 'u'),
                  0, args, 3);
  if (native) return native;
  LLVMValueRef sum = args[2];
  for (int i = 0; i < 4; i++)
    sum =
      kl_add(l, sum, kl_mul(l, byte_of(l, args[0], x_signed, i), byte_of(l, args[1], y_signed, i)));
  return sum;
}

LLVMValueRef kl_lower_sad(kl_lowering *l, const kt_expr *expr)
{
  KJ_ASSERT(expr->args.count == 3);
  LLVMValueRef args[3];
  bool is_signed = expr->args.items[0]->type == KJIT_I32;
  lower_args(l, expr, args);
  LLVMValueRef native = kl_try_native(l, is_signed ? "sad.i" : "sad.ui", 0, args, 3);
  if (native) return native;
  LLVMValueRef most = kl_intrinsic2(l, is_signed ? "llvm.smax" : "llvm.umax", args[0], args[1]);
  LLVMValueRef least = kl_intrinsic2(l, is_signed ? "llvm.smin" : "llvm.umin", args[0], args[1]);
  return kl_add(l, kl_sub(l, most, least), args[2]);
}
