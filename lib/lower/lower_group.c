/* What threads of several warps or blocks do together, asynchronous copies and matrix instructions:
 * the targets have little in common here, each has a file of its own. */
#include "lower/group.h"

static LLVMValueRef special(kj_lowering *l, const kj_texpr *expr)
{
  return l->target->special(l, expr);
}

LLVMValueRef kj_lower_group_barrier(kj_lowering *l, const kj_texpr *expr)
{
  return special(l, expr);
}
LLVMValueRef kj_lower_group_fence(kj_lowering *l, const kj_texpr *expr) { return special(l, expr); }
LLVMValueRef kj_lower_mbarrier(kj_lowering *l, const kj_texpr *expr) { return special(l, expr); }
LLVMValueRef kj_lower_mbarrier_wait(kj_lowering *l, const kj_texpr *expr)
{
  return special(l, expr);
}
LLVMValueRef kj_lower_pending_count(kj_lowering *l, const kj_texpr *expr)
{
  return special(l, expr);
}
LLVMValueRef kj_lower_shared_address(kj_lowering *l, const kj_texpr *expr)
{
  return special(l, expr);
}
LLVMValueRef kj_lower_map_shared_rank(kj_lowering *l, const kj_texpr *expr)
{
  return special(l, expr);
}
LLVMValueRef kj_lower_cp_async(kj_lowering *l, const kj_texpr *expr) { return special(l, expr); }
LLVMValueRef kj_lower_cp_async_bulk(kj_lowering *l, const kj_texpr *expr)
{
  return special(l, expr);
}
LLVMValueRef kj_lower_copy_group(kj_lowering *l, const kj_texpr *expr) { return special(l, expr); }

LLVMValueRef kj_lower_mma(kj_lowering *l, const kj_texpr *expr) { return special(l, expr); }
LLVMValueRef kj_lower_ldmatrix(kj_lowering *l, const kj_texpr *expr) { return special(l, expr); }
LLVMValueRef kj_lower_stmatrix(kj_lowering *l, const kj_texpr *expr) { return special(l, expr); }

LLVMValueRef kj_lower_wgmma(kj_lowering *l, const kj_texpr *expr) { return special(l, expr); }
LLVMValueRef kj_lower_wgmma_group(kj_lowering *l, const kj_texpr *expr) { return special(l, expr); }
LLVMValueRef kj_lower_wgmma_commit(kj_lowering *l, const kj_texpr *expr)
{
  return special(l, expr);
}

static LLVMValueRef field(kj_lowering *l, LLVMValueRef bytes, int64_t mask, int64_t shift)
{
  LLVMValueRef sixteenths =
    LLVMBuildLShr(l->builder, LLVMBuildAnd(l->builder, bytes, kj_const64(l, mask), ""),
                  kj_const64(l, 4), "");
  return LLVMBuildShl(l->builder, sixteenths, kj_const64(l, shift), "");
}

/* As the PTX manual describes it: address, leading and stride distance in units of 16 bytes, 14
 * bits each, and the kind of swizzle in the top two bits. */
LLVMValueRef kj_lower_matrix_descriptor(kj_lowering *l, const kj_texpr *expr)
{
  enum { MASK = 0x3ffff, LEADING = 16, STRIDE = 32, SWIZZLE = 62 };
  static const uint64_t kinds[] = { [0] = 0, [1] = 3, [2] = 2, [4] = 1 };
  LLVMValueRef word = field(l, kj_lower_expr(l, expr->args.items[0]), MASK, 0);
  word = LLVMBuildOr(l->builder, word,
                     field(l, kj_lower_expr(l, expr->args.items[1]), MASK, LEADING), "");
  word = LLVMBuildOr(l->builder, word,
                     field(l, kj_lower_expr(l, expr->args.items[2]), MASK, STRIDE), "");
  uint64_t kind = kinds[(size_t)expr->args.items[3]->integer / 32];
  return LLVMBuildOr(l->builder, word, LLVMConstInt(l->i64, kind << SWIZZLE, false), "");
}

LLVMValueRef kj_lower_cp_async_tensor(kj_lowering *l, const kj_texpr *expr)
{
  return special(l, expr);
}

LLVMValueRef kj_lower_ptx(kj_lowering *l, const kj_texpr *expr) { return special(l, expr); }

/* ---- for the targets ---- */

LLVMValueRef kj_lower_source(kj_lowering *l, const kj_texpr *copy, kj_array_value *array)
{
  *array = kj_lower_array(l, copy->y->x);
  return kj_checked_pointer(l, array, &copy->y->args, copy->y->is_checked);
}

LLVMValueRef kj_lower_destination(kj_lowering *l, const kj_texpr *copy, kj_array_value *array)
{
  *array = kj_lower_array(l, copy->x);
  return kj_checked_pointer(l, array, &copy->indices, copy->is_checked);
}

uint32_t kj_copied_bytes(kj_lowering *l, const kj_texpr *copy)
{
  return kj_scalar_bytes(l, copy->y->type);
}

/* ---- tensor copies ---- */

bool kj_is_tensor_copy(const kj_texpr *expr)
{
  return expr->kind == KJ_T_BUILTIN && (expr->builtin->id == KJ_BUILTIN_CP_ASYNC_TENSOR ||
                                        expr->builtin->id == KJ_BUILTIN_CP_ASYNC_TENSOR_STORE);
}

kj_tensor_map kj_describe_map(kj_lowering *l, const kj_texpr *copy)
{
  bool is_store = copy->builtin->id == KJ_BUILTIN_CP_ASYNC_TENSOR_STORE;
  const kj_type_info *tile = kj_type(l->c->types, is_store ? copy->y->type : copy->x->type);
  kj_tensor_map map = { .rank = (uint8_t)tile->rank,
                        .swizzle_bytes = (uint8_t)copy->args.items[0]->integer };
  for (uint32_t d = 0; d < tile->rank; d++) map.box[d] = (uint32_t)tile->extents[d];
  return map;
}

kj_tensor_copy kj_lower_tensor_copy(kj_lowering *l, const kj_texpr *copy)
{
  bool is_store = copy->builtin->id == KJ_BUILTIN_CP_ASYNC_TENSOR_STORE;
  kj_tensor_copy lowered = { .array = kj_lower_array(l, is_store ? copy->x : copy->y->x),
                             .tile = kj_lower_array(l, is_store ? copy->y : copy->x),
                             .start = is_store ? &copy->indices : &copy->y->args,
                             .map = kj_describe_map(l, copy),
                             .is_store = is_store };
  if (!lowered.array.is_whole)
    kj_fail(l->c, copy->location, KJIT_ERROR_UNSUPPORTED,
            "`%s` takes an array argument of the kernel itself, no view of one: its box may start "
            "anywhere in it",
            copy->builtin->name);
  lowered.map.argument = (uint16_t)(lowered.array.object - 1);
  return lowered;
}
