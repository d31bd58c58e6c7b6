/* Positions, and what works on any scalar: bitcast, select. */
#include "lower/lower.h"

LLVMValueRef kj_lower_position(kj_lowering *l, const kj_texpr *expr)
{
  LLVMValueRef value = l->target->position(l, expr->builtin->id, expr->dimension);
  return expr->is_narrow ? kj_as_i32(l, value) : kj_extend_position(l, value);
}

/* In 32 bits under grid32, when the range pass says so; blockIdx * blockDim can be larger
 * otherwise. */
LLVMValueRef kj_lower_grid(kj_lowering *l, const kj_texpr *expr)
{
  bool is_size = expr->builtin->id == KJ_BUILTIN_GRIDSIZE;
  LLVMValueRef block_dim = l->target->position(l, KJ_BUILTIN_BLOCK_DIM, expr->dimension);
  LLVMValueRef blocks =
    l->target->position(l, is_size ? KJ_BUILTIN_GRID_DIM : KJ_BUILTIN_BLOCK_IDX, expr->dimension);
  LLVMValueRef thread =
    is_size ? NULL : l->target->position(l, KJ_BUILTIN_THREAD_IDX, expr->dimension);
  if (!expr->is_narrow) {
    block_dim = kj_extend_position(l, block_dim);
    blocks = kj_extend_position(l, blocks);
    if (thread) thread = kj_extend_position(l, thread);
  } else {
    block_dim = kj_as_i32(l, block_dim);
    blocks = kj_as_i32(l, blocks);
    if (thread) thread = kj_as_i32(l, thread);
  }
  LLVMValueRef product = LLVMBuildNSWMul(l->builder, blocks, block_dim, "");
  return thread ? LLVMBuildNSWAdd(l->builder, product, thread, "") : product;
}

/* T, v: the types have the same size. */
LLVMValueRef kj_lower_bitcast(kj_lowering *l, const kj_texpr *expr)
{
  const kj_texpr *x = expr->args.items[expr->args.count - 1];
  if (kj_is_composed_type(l, x->type) || kj_is_composed_type(l, expr->type))
    return kj_value_of_bits(l, expr->type, kj_value_bits(l, x->type, kj_lower_expr(l, x)));
  LLVMValueRef value = kj_to_memory(l, x->type, kj_lower_expr(l, x));
  LLVMValueRef bits = LLVMBuildBitCast(l->builder, value, kj_memory_type(l, expr->type), "");
  bool holds_float = kj_is_float_type(l, x->type) && !kj_is_float_type(l, expr->type);
  if (holds_float) bits = kj_hide_float_bits(l, bits);
  return kj_from_memory(l, expr->type, bits);
}

LLVMValueRef kj_lower_select(kj_lowering *l, const kj_texpr *expr)
{
  LLVMValueRef condition = kj_lower_condition(l, expr->args.items[0]);
  LLVMValueRef x = kj_lower_expr(l, expr->args.items[1]), y = kj_lower_expr(l, expr->args.items[2]);
  return LLVMBuildSelect(l->builder, condition, x, y, "");
}
