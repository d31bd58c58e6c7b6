/* CPU: where memory of variables is. Scratch memory is one piece a worker: slots (one element a
 * thread of the block), local arrays that live across thread loops and static shared arrays, each
 * on cache lines of its own; then dynamic shared memory. */
#include "lower/cpu.h"

/* ---- the layout ---- */

/* alignment: of the distance from the start, which is what addresses in shared memory are. */
static uint64_t take_scratch(kj_lowering *l, uint64_t size, uint32_t alignment)
{
  kj_cpu_state *s = kj_cpu(l);
  if (alignment > KJ_SCRATCH_ALIGNMENT)
    s->scratch_bytes = (s->scratch_bytes + alignment - 1) / alignment * alignment;
  uint64_t offset = s->scratch_bytes;
  s->scratch_bytes =
    (offset + size + KJ_SCRATCH_ALIGNMENT - 1) / KJ_SCRATCH_ALIGNMENT * KJ_SCRATCH_ALIGNMENT;
  return offset;
}

static uint64_t array_bytes(kj_lowering *l, const kj_tvar *var)
{
  const kj_type_info *info = kj_type(l->c->types, var->type);
  return kj_element_count(info) * kj_scalar_bytes(l, info->element);
}

static LLVMTypeRef slot_type(kj_lowering *l, const kj_tvar *var)
{
  if (var->is_narrow) return l->i32;
  return kj_is_scalar(var->type) && !kj_is_composed_type(l, var->type)
           ? kj_memory_type(l, var->type)
           : kj_register_type(l, var->type);
}

static uint64_t slot_bytes(kj_lowering *l, const kj_tvar *var)
{
  if (var->kind != KJ_V_LOCAL) return LLVMABISizeOfType(l->layout, slot_type(l, var));
  uint64_t align = var->alignment > 16 ? var->alignment : 16;
  return (array_bytes(l, var) + align - 1) / align * align;
}

static bool is_static(kj_lowering *l, const kj_tvar *var)
{
  return kj_type(l->c->types, var->type)->is_static;
}

static void place(kj_tvar *var, uint64_t offset) { var->lowered = (void *)(uintptr_t)(offset + 1); }
static uint64_t offset_of(const kj_tvar *var) { return (uint64_t)(uintptr_t)var->lowered - 1; }

/* Local arrays are found by whoever watches them where threads that run one after the other share
 * them; not so those of functions that may be active twice. */
static bool is_kept_in_scratch(kj_lowering *l, const kj_instance *instance)
{
  return kj_is_watched(l) && !kj_is_recursive(l, instance);
}

void kj_lay_out_scratch(kj_lowering *l)
{
  kj_cpu_state *s = kj_cpu(l);
  for (size_t i = 0; i < l->c->instances.count; i++) {
    const kj_tvars *locals = &l->c->instances.items[i]->locals;
    for (size_t k = 0; k < locals->count; k++) {
      kj_tvar *var = locals->items[k];
      if (var->is_slot) place(var, take_scratch(l, slot_bytes(l, var) * s->thread_count, 0));
      else if (var->kind == KJ_V_LOCAL && is_kept_in_scratch(l, l->c->instances.items[i]))
        place(var, take_scratch(l, slot_bytes(l, var), 0));
      if (var->kind == KJ_V_SHARED && is_static(l, var)) {
        uint64_t bytes = array_bytes(l, var);
        place(var, take_scratch(l, bytes, var->alignment));
        l->shared_bytes += (uint32_t)bytes;
      }
    }
  }
}

/* ---- pointers into it ---- */

static LLVMValueRef scratch_at(kj_lowering *l, uint64_t offset)
{
  LLVMValueRef at = kj_const64(l, (int64_t)offset);
  return offset ? LLVMBuildInBoundsGEP2(l->builder, l->i8, kj_cpu(l)->scratch, &at, 1, "")
                : kj_cpu(l)->scratch;
}

static LLVMValueRef rank64(kj_lowering *l) { return kj_extend_position(l, kj_cpu(l)->rank); }

LLVMValueRef kj_cpu_slot_pointer(kj_lowering *l, const kj_tvar *var)
{
  LLVMValueRef rank = rank64(l);
  return LLVMBuildInBoundsGEP2(l->builder, slot_type(l, var), scratch_at(l, offset_of(var)), &rank,
                               1, "");
}

LLVMValueRef kj_cpu_shared_pointer(kj_lowering *l, const kj_tvar *var)
{
  if (is_static(l, var)) return scratch_at(l, offset_of(var));
  LLVMValueRef offset = kj_dynamic_offset(l, var), base = scratch_at(l, kj_cpu(l)->scratch_bytes);
  return LLVMIsNull(offset) ? base : LLVMBuildInBoundsGEP2(l->builder, l->i8, base, &offset, 1, "");
}

LLVMValueRef kj_cpu_local_pointer(kj_lowering *l, const kj_tvar *var)
{
  if (var->is_slot) {
    LLVMValueRef offset =
      LLVMBuildNUWMul(l->builder, rank64(l), kj_const64(l, (int64_t)slot_bytes(l, var)), "");
    return LLVMBuildInBoundsGEP2(l->builder, l->i8, scratch_at(l, offset_of(var)), &offset, 1, "");
  }
  kj_cpu(l)->has_dependence = true;
  if (var->lowered) return scratch_at(l, offset_of(var));
  kj_variable_state *state = &l->frame->states[var->index];
  if (!state->slot) {
    state->slot = kj_alloca(l, LLVMArrayType2(l->i8, array_bytes(l, var)), var->name);
    LLVMSetAlignment(state->slot, var->alignment > 16 ? var->alignment : 16);
  }
  return state->slot;
}

LLVMValueRef kj_cpu_dynamic_shared_bytes(kj_lowering *l)
{
  return kj_load_grid(l, l->i64, offsetof(kj_cpu_grid, dynamic_shared_bytes));
}
