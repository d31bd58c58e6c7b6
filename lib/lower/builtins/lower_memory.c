/* Lowers accesses with cache hints, prefetches, clocks, traps, assumptions, positions, bitcast and
 * select. */
#include <string.h>

#include "lower/instruction.h"
#include "native/watch.h"

/* ---- accesses with cache hints, prefetches, clocks, traps, assumptions ---- */

typedef struct element {
  kl_array_value array;
  LLVMValueRef pointer;
  kjit_type type;
  bool is_shared;
} element;

static element lower_element(kl_lowering *l, const kt_expr *expr, uint32_t how)
{
  element e = { .array = kl_lower_array(l, expr->x) };
  const ki_type_info *info = kl_type_info(l, e.array.type);
  e.type = info->element;
  e.is_shared = info->space == KJ_SPACE_SHARED;
  e.pointer = kl_checked_pointer(l, &e.array, &expr->indices, kl_check_of_expr(l, expr));
  if (expr->is_watched) kl_watch_access_at(l, expr->location, &e.array, e.pointer, how);
  return e;
}

/* Returns whether the type is a single scalar, which instructions with cache hints require.
 * Structs, vectors and complex numbers are accessed without hints. */
static bool is_one_number(kl_lowering *l, kjit_type type)
{
  ki_type_class class_ = kl_type_info(l, type)->class_;
  return class_ == KJ_CLASS_BOOL || class_ == KJ_CLASS_SIGNED || class_ == KJ_CLASS_UNSIGNED ||
         class_ == KJ_CLASS_FLOAT || class_ == KJ_CLASS_POINTER;
}

LLVMValueRef kl_lower_hinted_load(kl_lowering *l, const kt_expr *expr)
{
  element e = lower_element(l, expr, KJ_WATCH_READ);
  bool is_plain = e.is_shared || kl_type_info(l, e.array.type)->space == KJ_SPACE_CONST ||
                  !l->target->hinted_load || !is_one_number(l, e.type);
  if (is_plain) return kl_load_element(l, &e.array, e.pointer, 0);
  ki_cache_hint hint = (ki_cache_hint)expr->builtin->operation;
  if (hint != KJ_CACHE_NC)
    return kl_from_memory(l, e.type,
                          l->target->hinted_load(l, hint, kl_memory_type(l, e.type), e.pointer));
  LLVMValueRef load = kl_load(l, kl_memory_type(l, e.type), e.pointer);
  LLVMSetAlignment(load, kl_scalar_bytes(l, e.type));
  kl_annotate_access(l, load, e.array.object);
  kl_set_metadata(l, load, "invariant.load", LLVMMDNodeInContext2(l->context, NULL, 0));
  return kl_from_memory(l, e.type,
                        l->c->module->has_guest ? LLVMBuildFreeze(l->builder, load, "") : load);
}

LLVMValueRef kl_lower_hinted_store(kl_lowering *l, const kt_expr *expr)
{
  element e = lower_element(l, expr, KJ_WATCH_WRITE);
  LLVMValueRef value = kl_lower_expr(l, expr->args.items[0]);
  if (e.is_shared || !l->target->hinted_store || !is_one_number(l, e.type))
    kl_store_element(l, &e.array, e.pointer, value, 0);
  else
    l->target->hinted_store(l, (ki_cache_hint)expr->builtin->operation, e.pointer,
                            kl_to_memory(l, e.type, value));
  return NULL;
}

LLVMValueRef kl_lower_prefetch(kl_lowering *l, const kt_expr *expr)
{
  element e = lower_element(l, expr, 0);
  if (!e.is_shared) l->target->prefetch(l, (ki_cache_level)expr->builtin->operation, e.pointer);
  return NULL;
}

LLVMValueRef kl_lower_clock(kl_lowering *l, const kt_expr *expr)
{
  return l->target->clock(l, expr->builtin->id);
}

LLVMValueRef kl_lower_nanosleep(kl_lowering *l, const kt_expr *expr)
{
  LLVMValueRef duration = kl_lower_expr(l, expr->args.items[0]);
  if (l->target->nanosleep) l->target->nanosleep(l, duration);
  return NULL;
}

/* Rejects traps on the CPU, because they would end the application's process. */
LLVMValueRef kl_lower_trap(kl_lowering *l, const kt_expr *expr)
{
  if (l->c->request->target.kind == KJ_TARGET_CPU)
    kt_fail(
      l->c, expr->location, KJIT_ERROR_UNSUPPORTED,
      "`%s` is not supported on the CPU, where it would end the process; write `raise`" KJ_PHRASE(
        TARGET_CONDITION, ", or put it under `if target == gpu`"),
      expr->builtin->name);
  kl_intrinsic(l, expr->builtin->id == KJ_BUILTIN_TRAP ? "llvm.trap" : "llvm.debugtrap", NULL, 0,
               NULL, 0);
  return NULL;
}

LLVMValueRef kl_lower_assume(kl_lowering *l, const kt_expr *expr)
{
  LLVMValueRef condition = kl_lower_condition(l, expr->args.items[0]);
  kl_intrinsic(l, "llvm.assume", NULL, 0, &condition, 1);
  return NULL;
}

/* ---- positions, and operations on any scalar: bitcast, select ---- */

LLVMValueRef kl_lower_position(kl_lowering *l, const kt_expr *expr)
{
  LLVMValueRef value = l->target->position(l, expr->builtin->id, expr->dimension);
  return expr->is_narrow ? kl_as_i32(l, value) : kl_extend_position(l, value);
}

/* Lowers grid and gridsize in 32 bits if pass/range.c allows it (grid32). Otherwise it lowers them
 * in 64 bits, because blockIdx * blockDim can exceed 32 bits. */
LLVMValueRef kl_lower_grid(kl_lowering *l, const kt_expr *expr)
{
  bool is_size = expr->builtin->id == KJ_BUILTIN_GRIDSIZE;
  LLVMValueRef block_dim = l->target->position(l, KJ_BUILTIN_BLOCK_DIM, expr->dimension);
  LLVMValueRef blocks =
    l->target->position(l, is_size ? KJ_BUILTIN_GRID_DIM : KJ_BUILTIN_BLOCK_IDX, expr->dimension);
  LLVMValueRef thread =
    is_size ? NULL : l->target->position(l, KJ_BUILTIN_THREAD_IDX, expr->dimension);
  if (!expr->is_narrow) {
    block_dim = kl_extend_position(l, block_dim);
    blocks = kl_extend_position(l, blocks);
    if (thread) thread = kl_extend_position(l, thread);
  } else {
    block_dim = kl_as_i32(l, block_dim);
    blocks = kl_as_i32(l, blocks);
    if (thread) thread = kl_as_i32(l, thread);
  }
  LLVMValueRef product = kl_nsw_mul(l, blocks, block_dim);
  return thread ? kl_nsw_add(l, product, thread) : product;
}

/* Lowers bitcast(T, v). The types have the same size. */
LLVMValueRef kl_lower_bitcast(kl_lowering *l, const kt_expr *expr)
{
  const kt_expr *x = expr->args.items[expr->args.count - 1];
  if (kl_is_composed_type(l, x->type) || kl_is_composed_type(l, expr->type))
    return kl_value_of_bits(l, expr->type, kl_value_bits(l, x->type, kl_lower_expr(l, x)));
  LLVMValueRef value = kl_to_memory(l, x->type, kl_lower_expr(l, x));
  return kl_from_memory(l, expr->type, kl_bitcast(l, value, kl_memory_type(l, expr->type)));
}

/* Tests the alignment of an address. If the pointer was cast from the global address space, the
 * test uses the pointer before the cast, whose address is the same. LLVM can then compute the
 * result from the alignment of the kernel's parameter. */
LLVMValueRef kl_lower_is_aligned(kl_lowering *l, const kt_expr *expr)
{
  unsigned global = kl_address_space(l, KJ_SPACE_GLOBAL);
  LLVMValueRef pointer = kl_lower_expr(l, expr->args.items[0]);
  LLVMValueRef from = LLVMIsAAddrSpaceCastInst(pointer) ? LLVMGetOperand(pointer, 0) : pointer;
  if (LLVMGetPointerAddressSpace(LLVMTypeOf(from)) == global) pointer = from;
  LLVMValueRef address = kl_ptrtoint(l, pointer, l->i64);
  LLVMValueRef mask = kl_const64(l, (int64_t)expr->args.items[1]->integer - 1);
  return kl_icmp(l, LLVMIntEQ, kl_and(l, address, mask), kl_const64(l, 0));
}

LLVMValueRef kl_lower_no_diff(kl_lowering *l, const kt_expr *expr)
{
  return kl_lower_expr(l, expr->args.items[0]);
}

LLVMValueRef kl_lower_select(kl_lowering *l, const kt_expr *expr)
{
  LLVMValueRef condition = kl_lower_condition(l, expr->args.items[0]);
  LLVMValueRef x = kl_lower_expr(l, expr->args.items[1]), y = kl_lower_expr(l, expr->args.items[2]);
  LLVMValueRef chosen = kl_select(l, condition, x, y);
  /* a program that uses `select` instead of `?:` should get no branch */
  if (LLVMIsASelectInst(chosen))
    kl_set_metadata(l, chosen, "unpredictable", LLVMMDNodeInContext2(l->context, NULL, 0));
  return chosen;
}
