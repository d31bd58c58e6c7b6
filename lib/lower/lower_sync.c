/* Barriers, fences and warp functions: what is common to the targets that execute them as instructions. */
#include <string.h>

#include "lower/lower.h"

static LLVMValueRef arg(kj_lowering *l, const kj_texpr *expr, size_t i) { return kj_lower_expr(l, expr->args.items[i]); }

static LLVMValueRef arg32(kj_lowering *l, const kj_texpr *expr, size_t i) { return kj_lower_index32(l, expr->args.items[i]); }

LLVMValueRef kj_lower_barrier(kj_lowering *l, const kj_texpr *expr)
{
  (void)expr;
  l->target->barrier(l);
  return NULL;
}

LLVMValueRef kj_lower_barrier_reduce(kj_lowering *l, const kj_texpr *expr)
{
  kj_barrier_reduction how = expr->builtin->id == KJ_BUILTIN_SYNCTHREADS_COUNT ? KJ_REDUCE_COUNT
                             : expr->builtin->id == KJ_BUILTIN_SYNCTHREADS_AND ? KJ_REDUCE_AND
                                                                               : KJ_REDUCE_OR;
  return l->target->barrier_reduce(l, how, kj_lower_condition(l, expr->args.items[0]));
}

LLVMValueRef kj_lower_syncwarp(kj_lowering *l, const kj_texpr *expr)
{
  l->target->syncwarp(l, expr->args.count ? arg32(l, expr, 0) : kj_const32(l, -1));
  return NULL;
}

LLVMValueRef kj_lower_fence(kj_lowering *l, const kj_texpr *expr)
{
  l->target->fence(l, expr->builtin->symbol);
  return NULL;
}

/* ---- shuffles: any scalar as one or two 32-bit pieces ---- */

static LLVMValueRef piece(kj_lowering *l, const kj_shuffle *s, LLVMValueRef bits) { return l->target->shuffle(l, s->mode, s->mask, bits, s->lane, s->width); }

static LLVMValueRef shuffle_bits(kj_lowering *l, const kj_shuffle *s, LLVMValueRef bits)
{
  LLVMTypeRef type = LLVMTypeOf(bits);
  if (type != l->i64) {
    LLVMValueRef moved = piece(l, s, type == l->i32 ? bits : LLVMBuildZExt(l->builder, bits, l->i32, ""));
    return type == l->i32 ? moved : LLVMBuildTrunc(l->builder, moved, type, "");
  }
  LLVMValueRef thirty_two = kj_const64(l, 32);
  LLVMValueRef low = piece(l, s, LLVMBuildTrunc(l->builder, bits, l->i32, ""));
  LLVMValueRef high = piece(l, s, LLVMBuildTrunc(l->builder, LLVMBuildLShr(l->builder, bits, thirty_two, ""), l->i32, ""));
  LLVMValueRef upper = LLVMBuildShl(l->builder, LLVMBuildZExt(l->builder, high, l->i64, ""), thirty_two, "");
  return LLVMBuildOr(l->builder, upper, LLVMBuildZExt(l->builder, low, l->i64, ""), "");
}

LLVMValueRef kj_build_shuffle(kj_lowering *l, kjit_type type, const kj_shuffle *s, LLVMValueRef value)
{
  value = kj_to_memory(l, type, value);
  LLVMTypeRef memory = LLVMTypeOf(value), bits = LLVMIntTypeInContext(l->context, 8 * kj_scalar_bytes(l, type));
  LLVMValueRef moved = shuffle_bits(l, s, LLVMBuildBitCast(l->builder, value, bits, ""));
  return kj_from_memory(l, type, LLVMBuildBitCast(l->builder, moved, memory, ""));
}

LLVMValueRef kj_lower_shuffle(kj_lowering *l, const kj_texpr *expr)
{
  kj_shuffle s = { .mode = expr->builtin->symbol, .mask = arg32(l, expr, 0) };
  LLVMValueRef value = arg(l, expr, 1);
  s.lane = arg32(l, expr, 2);
  if (expr->args.count == 4) s.width = arg32(l, expr, 3);
  return kj_build_shuffle(l, expr->type, &s, value);
}

LLVMValueRef kj_lower_vote(kj_lowering *l, const kj_texpr *expr)
{
  LLVMValueRef mask = arg32(l, expr, 0);
  return l->target->vote(l, expr->builtin->symbol, mask, kj_lower_condition(l, expr->args.items[1]));
}

LLVMValueRef kj_lower_activemask(kj_lowering *l, const kj_texpr *expr)
{
  (void)expr;
  return l->target->activemask(l);
}

/* Lanes by their relation to this one: lt, le, eq, ge, gt. */
static LLVMValueRef lanemask(kj_lowering *l, const char *relation)
{
  LLVMBuilderRef b = l->builder;
  LLVMValueRef native = kj_try_native(l, kj_format(l->c->arena, "read.ptx.sreg.lanemask.%s", relation), 0, NULL, 0);
  if (native) return native;
  LLVMValueRef bit = LLVMBuildShl(b, kj_const32(l, 1), kj_as_i32(l, l->target->position(l, KJ_BUILTIN_LANEID, 0)), "");
  LLVMValueRef below = LLVMBuildSub(b, bit, kj_const32(l, 1), "");
  if (strcmp(relation, "eq") == 0) return bit;
  if (strcmp(relation, "lt") == 0) return below;
  if (strcmp(relation, "ge") == 0) return LLVMBuildNot(b, below, "");
  LLVMValueRef at_most = LLVMBuildOr(b, below, bit, "");
  return strcmp(relation, "le") == 0 ? at_most : LLVMBuildNot(b, at_most, "");
}

LLVMValueRef kj_lower_lanemask(kj_lowering *l, const kj_texpr *expr) { return lanemask(l, expr->builtin->symbol); }

/* The lowest lane of the mask, the same on all targets. */
LLVMValueRef kj_lower_elect(kj_lowering *l, const kj_texpr *expr)
{
  LLVMValueRef mask = arg32(l, expr, 0), lanes = LLVMBuildAnd(l->builder, mask, lanemask(l, "le"), "");
  return LLVMBuildICmp(l->builder, LLVMIntEQ, lanes, lanemask(l, "eq"), "");
}
