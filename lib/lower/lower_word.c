/* Functions of 32-bit words that CUDA's processors have as instructions. On other targets the same
 * is spelled out. */
#include <string.h>

#include "lower/lower.h"

static void lower_args(kj_lowering *l, const kj_texpr *expr, LLVMValueRef *args)
{
  for (size_t i = 0; i < expr->args.count; i++) args[i] = kj_lower_expr(l, expr->args.items[i]);
}

static LLVMValueRef join(kj_lowering *l, LLVMValueRef low, LLVMValueRef high)
{
  LLVMValueRef upper =
    LLVMBuildShl(l->builder, LLVMBuildZExt(l->builder, high, l->i64, ""), kj_const64(l, 32), "");
  return LLVMBuildOr(l->builder, upper, LLVMBuildZExt(l->builder, low, l->i64, ""), "");
}

/* Byte i of the result: bits 4*i to 4*i + 2 of the selector number a byte of y:x. */
static LLVMValueRef pick_byte(kj_lowering *l, LLVMValueRef both, LLVMValueRef selector, int i)
{
  LLVMBuilderRef b = l->builder;
  LLVMValueRef number =
    LLVMBuildAnd(b, LLVMBuildLShr(b, selector, kj_const32(l, 4 * i), ""), kj_const32(l, 7), "");
  LLVMValueRef shift = LLVMBuildShl(b, LLVMBuildZExt(b, number, l->i64, ""), kj_const64(l, 3), "");
  LLVMValueRef byte =
    LLVMBuildAnd(b, LLVMBuildTrunc(b, LLVMBuildLShr(b, both, shift, ""), l->i32, ""),
                 kj_const32(l, 0xff), "");
  return LLVMBuildShl(b, byte, kj_const32(l, 8 * i), "");
}

/* The instruction would spread the sign of a byte where bit 3 of its number is set. */
LLVMValueRef kj_lower_byte_perm(kj_lowering *l, const kj_texpr *expr)
{
  LLVMValueRef args[3];
  lower_args(l, expr, args);
  args[2] = LLVMBuildAnd(l->builder, args[2], kj_const32(l, 0x7777), "");
  LLVMValueRef native = kj_try_native(l, "prmt", 0, args, 3);
  if (native) return native;
  LLVMValueRef both = join(l, args[0], args[1]), result = pick_byte(l, both, args[2], 0);
  for (int i = 1; i < 4; i++)
    result = LLVMBuildOr(l->builder, result, pick_byte(l, both, args[2], i), "");
  return result;
}

static LLVMValueRef shift_clamped(kj_lowering *l, bool is_left, LLVMValueRef *args)
{
  LLVMBuilderRef b = l->builder;
  LLVMValueRef native = kj_try_native(l, is_left ? "fshl.clamp" : "fshr.clamp", 0,
                                      (LLVMValueRef[]){ args[1], args[0], args[2] }, 3);
  if (native) return native;
  LLVMValueRef both = join(l, args[0], args[1]),
               count = LLVMBuildZExt(b, kj_intrinsic2(l, "llvm.umin", args[2], kj_const32(l, 32)),
                                     l->i64, "");
  if (!is_left) return LLVMBuildTrunc(b, LLVMBuildLShr(b, both, count, ""), l->i32, "");
  return LLVMBuildTrunc(b,
                        LLVMBuildLShr(b, LLVMBuildShl(b, both, count, ""), kj_const64(l, 32), ""),
                        l->i32, "");
}

/* LLVM names the upper word first. */
LLVMValueRef kj_lower_funnel(kj_lowering *l, const kj_texpr *expr)
{
  LLVMValueRef args[3];
  const char *symbol = expr->builtin->symbol;
  lower_args(l, expr, args);
  if (strncmp(symbol, "llvm.", 5) == 0) return kj_intrinsic3(l, symbol, args[1], args[0], args[2]);
  return shift_clamped(l, strcmp(symbol, "left") == 0, args);
}

static LLVMValueRef byte_of(kj_lowering *l, LLVMValueRef word, bool is_signed, int i)
{
  LLVMValueRef byte =
    LLVMBuildTrunc(l->builder, LLVMBuildLShr(l->builder, word, kj_const32(l, 8 * i), ""), l->i8,
                   "");
  return is_signed ? LLVMBuildSExt(l->builder, byte, l->i32, "")
                   : LLVMBuildZExt(l->builder, byte, l->i32, "");
}

LLVMValueRef kj_lower_dp4a(kj_lowering *l, const kj_texpr *expr)
{
  LLVMValueRef args[3];
  bool x_signed = expr->args.items[0]->type == KJIT_I32,
       y_signed = expr->args.items[1]->type == KJIT_I32;
  lower_args(l, expr, args);
  LLVMValueRef native =
    kj_try_native(l,
                  kj_format(l->c->arena, "idp4a.%c.%c", x_signed ? 's' : 'u', y_signed ? 's' : 'u'),
                  0, args, 3);
  if (native) return native;
  LLVMValueRef sum = args[2];
  for (int i = 0; i < 4; i++)
    sum = LLVMBuildAdd(l->builder, sum,
                       LLVMBuildMul(l->builder, byte_of(l, args[0], x_signed, i),
                                    byte_of(l, args[1], y_signed, i), ""),
                       "");
  return sum;
}

LLVMValueRef kj_lower_sad(kj_lowering *l, const kj_texpr *expr)
{
  LLVMValueRef args[3];
  bool is_signed = expr->args.items[0]->type == KJIT_I32;
  lower_args(l, expr, args);
  LLVMValueRef native = kj_try_native(l, is_signed ? "sad.i" : "sad.ui", 0, args, 3);
  if (native) return native;
  LLVMValueRef most = kj_intrinsic2(l, is_signed ? "llvm.smax" : "llvm.umax", args[0], args[1]);
  LLVMValueRef least = kj_intrinsic2(l, is_signed ? "llvm.smin" : "llvm.umin", args[0], args[1]);
  return LLVMBuildAdd(l->builder, LLVMBuildSub(l->builder, most, least, ""), args[2], "");
}
