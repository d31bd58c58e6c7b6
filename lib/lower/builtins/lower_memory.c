/* Hinted accesses, prefetching, clocks, traps, assumptions; positions, bitcast, select. */
#include <string.h>

#include "lower/lower.h"
#include "native/support_routines.h"

/* Accesses with a hint for the caches, prefetching; clocks, traps, assumptions. */

typedef struct element {
  kj_array_value array;
  LLVMValueRef pointer;
  kjit_type type;
  bool is_shared;
} element;

static element lower_element(kj_lowering *l, const kj_texpr *expr, uint32_t how)
{
  element e = { .array = kj_lower_array(l, expr->x) };
  const kj_type_info *info = kj_type(l->c->types, e.array.type);
  e.type = info->element;
  e.is_shared = info->space == KJ_SPACE_SHARED;
  e.pointer = kj_element_pointer(l, &e.array, &expr->indices);
  if (expr->is_watched) kj_watch_access_at(l, expr->location, &e.array, e.pointer, how);
  return e;
}

LLVMValueRef kj_lower_hinted_load(kj_lowering *l, const kj_texpr *expr)
{
  element e = lower_element(l, expr, KJ_WATCH_READ);
  bool is_plain = e.is_shared || kj_type(l->c->types, e.array.type)->space == KJ_SPACE_CONST ||
                  !l->target->hinted_load;
  if (is_plain) return kj_load_element(l, &e.array, e.pointer, 0);
  kj_cache_hint hint = (kj_cache_hint)expr->builtin->operation;
  if (hint != KJ_CACHE_NC)
    return kj_from_memory(l, e.type,
                          l->target->hinted_load(l, hint, kj_memory_type(l, e.type), e.pointer));
  LLVMValueRef load = LLVMBuildLoad2(l->builder, kj_memory_type(l, e.type), e.pointer, "");
  LLVMSetAlignment(load, kj_scalar_bytes(l, e.type));
  kj_annotate_access(l, load, e.array.object);
  kj_set_metadata(l, load, "invariant.load", LLVMMDNodeInContext2(l->context, NULL, 0));
  return kj_from_memory(l, e.type, load);
}

LLVMValueRef kj_lower_hinted_store(kj_lowering *l, const kj_texpr *expr)
{
  element e = lower_element(l, expr, KJ_WATCH_WRITE);
  LLVMValueRef value = kj_lower_expr(l, expr->args.items[0]);
  if (e.is_shared || !l->target->hinted_store) kj_store_element(l, &e.array, e.pointer, value, 0);
  else
    l->target->hinted_store(l, (kj_cache_hint)expr->builtin->operation, e.pointer,
                            kj_to_memory(l, e.type, value));
  return NULL;
}

LLVMValueRef kj_lower_prefetch(kj_lowering *l, const kj_texpr *expr)
{
  element e = lower_element(l, expr, 0);
  if (!e.is_shared) l->target->prefetch(l, (kj_cache_level)expr->builtin->operation, e.pointer);
  return NULL;
}

LLVMValueRef kj_lower_clock(kj_lowering *l, const kj_texpr *expr)
{
  return l->target->clock(l, expr->builtin->id);
}

LLVMValueRef kj_lower_nanosleep(kj_lowering *l, const kj_texpr *expr)
{
  LLVMValueRef duration = kj_lower_expr(l, expr->args.items[0]);
  if (l->target->nanosleep) l->target->nanosleep(l, duration);
  return NULL;
}

/* On the CPU it would end the host's process. */
LLVMValueRef kj_lower_trap(kj_lowering *l, const kj_texpr *expr)
{
  if (l->c->request->target.kind == KJ_TARGET_CPU)
    kj_fail(l->c, expr->location, KJIT_ERROR_UNSUPPORTED,
            "`%s` is not supported on the CPU, where it would end the process: write `raise`, or "
            "`if target == gpu`",
            expr->builtin->name);
  kj_intrinsic(l, expr->builtin->id == KJ_BUILTIN_TRAP ? "llvm.trap" : "llvm.debugtrap", NULL, 0,
               NULL, 0);
  return NULL;
}

LLVMValueRef kj_lower_assume(kj_lowering *l, const kj_texpr *expr)
{
  LLVMValueRef condition = kj_lower_condition(l, expr->args.items[0]);
  kj_intrinsic(l, "llvm.assume", NULL, 0, &condition, 1);
  return NULL;
}

/* Positions, and what works on any scalar: bitcast, select. */

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
