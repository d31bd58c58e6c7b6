/* Loads, stores and variables.
 *
 * Alias scopes: one for each array argument. An access carries its own argument's scope and, as
 * noalias, those of the arguments that were checked to be disjoint from it. Views and inlined
 * functions keep the argument; where it is not known, an access carries nothing and may alias
 * anything. */
#include "lower/debug.h"

static kj_relation relation(const kj_signature *signature, uint32_t a, uint32_t b)
{
  return signature->relations ? (kj_relation)signature->relations[a * signature->count + b]
                              : KJ_RELATION_ANY;
}

/* The same shape as a loop id: distinct, itself first. */
LLVMMetadataRef kj_make_domain(kj_lowering *l, const char *name)
{
  LLVMMetadataRef text = kj_metadata_string(l, name);
  return kj_loop_id(l, &text, 1);
}

LLVMMetadataRef kj_make_scope(kj_lowering *l, LLVMMetadataRef domain, const char *name)
{
  return kj_loop_id(l, (LLVMMetadataRef[]){ domain, kj_metadata_string(l, name) }, 2);
}

static LLVMMetadataRef scope_of(kj_lowering *l, uint32_t argument)
{
  if (!l->domain) l->domain = kj_make_domain(l, "arguments");
  if (!l->scopes)
    l->scopes = KJ_NEW_ARRAY(l->c->arena, LLVMMetadataRef, l->c->request->signature->count + 1);
  if (!l->scopes[argument])
    l->scopes[argument] =
      kj_make_scope(l, l->domain, l->kernel->function->params.items[argument]->name);
  return l->scopes[argument];
}

static void set_list(kj_lowering *l, LLVMValueRef instruction, const char *kind,
                     LLVMMetadataRef *items, uint32_t count)
{
  if (count) kj_set_metadata(l, instruction, kind, LLVMMDNodeInContext2(l->context, items, count));
}

/* Only arguments that the kernel accesses take part: a relation to any other says nothing. */
static uint32_t find_disjoint(kj_lowering *l, uint32_t argument, LLVMMetadataRef *items)
{
  const kj_signature *signature = l->c->request->signature;
  uint32_t count = 0;
  for (uint32_t a = 0; a < signature->count; a++) {
    bool is_accessed = l->uses[a].is_read || l->uses[a].is_written,
         matters = l->uses[a].is_written || l->uses[argument].is_written;
    if (a != argument && is_accessed && matters &&
        relation(signature, argument, a) == KJ_RELATION_DISJOINT)
      items[count++] = scope_of(l, a);
  }
  return count;
}

void kj_annotate_access(kj_lowering *l, LLVMValueRef instruction, uint32_t object)
{
  if (l->parallel_loop)
    kj_set_metadata(l, instruction, "llvm.mem.parallel_loop_access", l->parallel_loop);
  if (object == KJ_OBJECT_UNKNOWN) return;
  uint32_t argument_count = l->c->request->signature->count;
  LLVMMetadataRef *disjoint =
    KJ_NEW_ARRAY(l->c->arena, LLVMMetadataRef, argument_count + l->vector_count + 1);
  uint32_t disjoint_count = find_disjoint(l, object - 1, disjoint);
  LLVMMetadataRef own[2];
  uint32_t own_count = 0;
  if (disjoint_count || l->iteration_scope) own[own_count++] = scope_of(l, object - 1);
  if (disjoint_count) l->c->used_disjoint = true;
  if (l->iteration_scope) {
    own[own_count++] = l->iteration_scope;
    for (uint32_t i = 0; i < l->vector_count; i++)
      if (i != l->vector_step) disjoint[disjoint_count++] = l->iteration_scopes[i];
  }
  set_list(l, instruction, "alias.scope", own, own_count);
  set_list(l, instruction, "noalias", disjoint, disjoint_count);
}

static bool is_argument_constant(kj_lowering *l, uint32_t object)
{
  return object != KJ_OBJECT_UNKNOWN && l->uses[object - 1].is_constant;
}

static kjit_type element_type(kj_lowering *l, const kj_array_value *array)
{
  return kj_type(l->c->types, array->type)->element;
}

void kj_annotate_load(kj_lowering *l, LLVMValueRef load, uint32_t object)
{
  kj_annotate_access(l, load, object);
  if (is_argument_constant(l, object))
    kj_set_metadata(l, load, "invariant.load", LLVMMDNodeInContext2(l->context, NULL, 0));
}

LLVMValueRef kj_load_element(kj_lowering *l, const kj_array_value *array, LLVMValueRef pointer,
                             uint32_t alignment)
{
  return kj_load_value(l, element_type(l, array), pointer,
                       alignment ? alignment : kj_array_alignment(l, array->type), array->object);
}

void kj_store_element(kj_lowering *l, const kj_array_value *array, LLVMValueRef pointer,
                      LLVMValueRef value, uint32_t alignment)
{
  kj_store_value(l, element_type(l, array), pointer, value,
                 alignment ? alignment : kj_array_alignment(l, array->type), array->object);
}

/* ---- variables ---- */

static kj_variable_state *state_of(kj_lowering *l, const kj_tvar *var)
{
  return &l->frame->states[var->index];
}

static LLVMTypeRef variable_type(kj_lowering *l, const kj_tvar *var)
{
  return var->is_narrow ? l->i32 : kj_register_type(l, var->type);
}

/* Registers do for what is assigned once: a use is always below the assignment in the tree. */
static bool is_register(const kj_tvar *var) { return var->kind != KJ_V_VAR && !var->is_slot; }

/* Slots of scalars are of the memory type, so that a bool takes a byte; narrow ones are i32. */
static bool is_plain_slot(kj_lowering *l, const kj_tvar *var)
{
  return !var->is_narrow && kj_is_scalar(var->type) && !kj_is_composed_type(l, var->type);
}

static LLVMValueRef load_slot(kj_lowering *l, const kj_tvar *var)
{
  bool is_plain = is_plain_slot(l, var);
  LLVMTypeRef type = is_plain ? kj_memory_type(l, var->type) : variable_type(l, var);
  LLVMValueRef load = LLVMBuildLoad2(l->builder, type, l->target->slot_pointer(l, var), "");
  kj_annotate_access(l, load, KJ_OBJECT_UNKNOWN);
  return is_plain ? kj_from_memory(l, var->type, load) : load;
}

static LLVMValueRef get_slot(kj_lowering *l, const kj_tvar *var)
{
  kj_variable_state *state = state_of(l, var);
  if (state->slot) return state->slot;
  state->slot = kj_alloca(l, variable_type(l, var), var->name);
  kj_debug_slot(l, var, state->slot, variable_type(l, var));
  return state->slot;
}

static LLVMValueRef get_stored(kj_lowering *l, const kj_tvar *var)
{
  if (var->is_slot) return load_slot(l, var);
  kj_variable_state *state = state_of(l, var);
  if (is_register(var)) return state->value ? state->value : LLVMGetPoison(variable_type(l, var));
  return LLVMBuildLoad2(l->builder, variable_type(l, var), get_slot(l, var), "");
}

LLVMValueRef kj_get_variable(kj_lowering *l, const kj_tvar *var)
{
  LLVMValueRef value = get_stored(l, var);
  return var->is_narrow ? kj_as_i64(l, value) : value;
}

LLVMValueRef kj_get_variable32(kj_lowering *l, const kj_tvar *var)
{
  return kj_as_i32(l, get_stored(l, var));
}

void kj_set_variable(kj_lowering *l, const kj_tvar *var, LLVMValueRef value)
{
  if (var->is_narrow) value = kj_as_i32(l, value);
  if (var->is_slot) {
    if (is_plain_slot(l, var)) value = kj_to_memory(l, var->type, value);
    kj_annotate_access(l, LLVMBuildStore(l->builder, value, l->target->slot_pointer(l, var)),
                       KJ_OBJECT_UNKNOWN);
    return;
  }
  if (is_register(var)) {
    state_of(l, var)->value = value;
    kj_debug_value(l, var, value);
    return;
  }
  LLVMBuildStore(l->builder, value, get_slot(l, var));
}

static kj_array_value storage_array(kj_lowering *l, const kj_tvar *var)
{
  const kj_type_info *info = kj_type(l->c->types, var->type);
  LLVMValueRef pointer = var->kind == KJ_V_SHARED  ? l->target->shared_pointer(l, var)
                         : var->kind == KJ_V_LOCAL ? l->target->local_pointer(l, var)
                                                   : kj_constant_pointer(l, var);
  kj_debug_storage(l, var, pointer);
  if (info->is_static) return kj_static_array(l, var->type, pointer);
  return kj_dynamic_array(l, var, pointer);
}

kj_array_value kj_get_array(kj_lowering *l, const kj_tvar *var)
{
  if (var->kind == KJ_V_SHARED || var->kind == KJ_V_LOCAL || var->kind == KJ_V_CONST)
    return storage_array(l, var);
  kj_variable_state *state = state_of(l, var);
  if (state->array) return *state->array;
  return kj_unpack_array(l, var->type, kj_get_variable(l, var));
}

void kj_set_array(kj_lowering *l, const kj_tvar *var, const kj_array_value *array)
{
  if (!is_register(var)) {
    kj_set_variable(l, var, kj_pack_array(l, array));
    return;
  }
  kj_variable_state *state = state_of(l, var);
  state->array = KJ_NEW(l->c->arena, kj_array_value);
  *state->array = *array;
  kj_debug_array(l, var, array);
}
