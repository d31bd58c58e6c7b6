/* Loads, stores and variables.
 *
 * Alias scopes: one for each array argument. An access carries its own argument's scope and, as
 * noalias, those of the arguments that were checked to be disjoint from it. Views and inlined
 * functions keep the argument; where it is not known, an access carries nothing and may alias
 * anything. */
#include <string.h>

#include "lower/debug.h"
#include "lower/lower.h"

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

static void annotate_memory(kj_lowering *l, LLVMValueRef instruction, uint32_t number)
{
  LLVMMetadataRef *others = KJ_NEW_ARRAY(l->c->arena, LLVMMetadataRef, l->memory_scopes.count);
  uint32_t count = 0;
  for (uint32_t i = 0; i < l->memory_scopes.count; i++)
    if (i != number) others[count++] = l->memory_scopes.items[i];
  set_list(l, instruction, "alias.scope", &l->memory_scopes.items[number], 1);
  set_list(l, instruction, "noalias", others, count);
}

void kj_annotate_access(kj_lowering *l, LLVMValueRef instruction, uint32_t object)
{
  if (l->parallel_loop && object != KJ_OBJECT_UNKNOWN)
    kj_set_metadata(l, instruction, "llvm.mem.parallel_loop_access", l->parallel_loop);
  if (object > KJ_OBJECT_APART) annotate_memory(l, instruction, object - KJ_OBJECT_APART - 1);
  if (!kj_is_argument(object)) return;
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
  return kj_is_argument(object) && l->uses[object - 1].is_constant;
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
  kj_annotate_access(l, load, l->target->object_of(l, var));
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
  if (var->kind == KJ_V_LOOP) kj_assert_range(l, var->range, var->type, value);
  if (var->is_narrow) value = kj_as_i32(l, value);
  if (var->is_slot) {
    if (is_plain_slot(l, var)) value = kj_to_memory(l, var->type, value);
    kj_annotate_access(l, LLVMBuildStore(l->builder, value, l->target->slot_pointer(l, var)),
                       l->target->object_of(l, var));
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
  if (!info->is_static) return kj_dynamic_array(l, var, pointer);
  kj_array_value array = kj_static_array(l, var->type, pointer);
  if (l->target->object_of) array.object = l->target->object_of(l, var);
  return array;
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

/* What lies where in dynamic shared memory: static arrays that static shared memory has no room
 * for, arrays whose extents the dispatcher evaluates, the array of the launch's own size. The
 * dispatcher lays them out in that order (kj_shared_array) and hands extents and offsets over as
 * parameters, so that both sides mean the same. */

enum { LEAST_ALIGNMENT = 16 };

typedef struct planner {
  kj_lowering *l;
  uint64_t static_bytes, static_limit;
} planner;

static uint64_t round_up(uint64_t value, uint64_t alignment)
{
  return (value + alignment - 1) / alignment * alignment;
}

static struct kj_shared_place *find_place(kj_lowering *l, const kj_tvar *var)
{
  for (size_t i = 0; i < l->shared_places.count; i++)
    if (l->shared_places.items[i].var == var) return &l->shared_places.items[i];
  return NULL;
}

/* ---- the plan ---- */

static uint32_t alignment_of(kj_lowering *l, const kj_tvar *var)
{
  uint32_t alignment = var->alignment > LEAST_ALIGNMENT ? var->alignment : LEAST_ALIGNMENT;
  if (alignment > l->dynamic_alignment) l->dynamic_alignment = alignment;
  return alignment;
}

static uint64_t bytes_of(kj_lowering *l, const kj_type_info *info)
{
  return kj_element_count(info) * kj_scalar_bytes(l, info->element);
}

static void place_static(planner *p, const kj_type_info *info, struct kj_shared_place *place)
{
  kj_lowering *l = p->l;
  uint64_t bytes = bytes_of(l, info), end = round_up(p->static_bytes, LEAST_ALIGNMENT) + bytes;
  if (end <= p->static_limit) {
    p->static_bytes = end;
    return;
  }
  place->kind = KJ_PLACED_FIXED;
  place->offset = round_up(l->c->code->fixed_shared_bytes, alignment_of(l, place->var));
  l->c->code->fixed_shared_bytes = (uint32_t)(place->offset + bytes);
  uint64_t all = p->static_bytes + l->c->code->fixed_shared_bytes,
           most = kj_most_shared_bytes(&l->c->request->target);
  if (all > most)
    kj_fail(l->c, place->var->location, KJIT_ERROR_UNSUPPORTED,
            "the shared arrays up to `%s` take %llu bytes; a block has at most %llu on %s",
            place->var->name, (unsigned long long)all, (unsigned long long)most,
            kj_target_text(l->c));
}

static size_t find_parameter(const kj_lowering *l, int kind, uint32_t row, uint32_t dimension)
{
  size_t i = 0;
  for (; i < l->parameters.count; i++) {
    const kj_parameter *parameter = &l->parameters.items[i].parameter;
    if ((int)parameter->kind == kind && parameter->argument == row &&
        parameter->dimension == dimension)
      break;
  }
  return i;
}

static size_t add_parameter(kj_lowering *l, int kind, uint32_t row, uint32_t dimension)
{
  if (l->like) return find_parameter(l, kind, row, dimension);
  kj_parameter parameter = { .argument = (uint16_t)row,
                             .dimension = (uint8_t)dimension,
                             .size_bytes = 4 };
  parameter.kind = kind;
  kj_add_parameter(l, parameter, KJIT_VOID, 4);
  return l->parameters.count - 1;
}

/* A new row where there is none for the declaration. */
static uint32_t find_row(const kj_lowering *l, uint32_t declaration)
{
  uint32_t row = 0;
  while (row < l->c->code->shared_array_count &&
         l->c->code->shared_arrays[row].declaration != declaration)
    row++;
  return row;
}

static void place_sized(kj_lowering *l, const kj_type_info *info, struct kj_shared_place *place)
{
  place->kind = KJ_PLACED_SIZED;
  place->row = find_row(l, place->var->sized_by->index);
  if (place->row == l->c->code->shared_array_count) l->c->code->shared_array_count++;
  l->c->code->shared_arrays[place->row] =
    (kj_shared_array){ .declaration = place->var->sized_by->index,
                       .element_bytes = kj_scalar_bytes(l, info->element),
                       .alignment = alignment_of(l, place->var) };
  place->offset_parameter = add_parameter(l, KJ_PARAMETER_SHARED_OFFSET, place->row, 0);
  for (uint32_t d = 0; d < info->rank; d++) {
    size_t parameter = add_parameter(l, KJ_PARAMETER_SHARED_EXTENT, place->row, d);
    if (d == 0) place->extent_parameters = parameter;
  }
}

/* All of them are the same memory. */
static void place_own(kj_lowering *l, const kj_type_info *info, struct kj_shared_place *place)
{
  uint32_t bytes = kj_scalar_bytes(l, info->element), alignment = alignment_of(l, place->var);
  bool is_first = !l->c->code->uses_dynamic_shared;
  place->kind = KJ_PLACED_OWN;
  l->c->code->uses_dynamic_shared = true;
  if (is_first || bytes < l->c->code->dynamic_shared_element_bytes)
    l->c->code->dynamic_shared_element_bytes = bytes;
  if (is_first || alignment > l->c->code->dynamic_shared_alignment)
    l->c->code->dynamic_shared_alignment = alignment;
}

static void find_shared(void *data, kj_texpr **at)
{
  planner *p = data;
  const kj_tvar *var =
    (*at)->kind == KJ_T_VAR && (*at)->var->kind == KJ_V_SHARED ? (*at)->var : NULL;
  if (!var || find_place(p->l, var)) return;
  struct kj_shared_place place = { .var = var };
  const kj_type_info *info = kj_type(p->l->c->types, var->type);
  if (info->is_static) place_static(p, info, &place);
  else if (var->sized_by) place_sized(p->l, info, &place);
  else place_own(p->l, info, &place);
  KJ_PUSH(p->l->c->arena, &p->l->shared_places, place);
}

static uint64_t place_all(kj_lowering *l, uint64_t static_limit)
{
  planner p = { .l = l, .static_limit = static_limit };
  l->dynamic_alignment = LEAST_ALIGNMENT;
  l->shared_places.count = 0;
  l->c->code->uses_dynamic_shared = false;
  l->c->code->fixed_shared_bytes = l->c->code->shared_array_count = 0;
  if (l->like) {
    l->c->code->shared_array_count = l->like->c->code->shared_array_count;
    memcpy(l->c->code->shared_arrays, l->like->c->code->shared_arrays,
           sizeof l->c->code->shared_arrays);
  }
  for (size_t i = 0; i < l->c->instances.count; i++)
    kj_walk_tstmts(&l->c->instances.items[i]->body, NULL, find_shared, &p);
  return p.static_bytes;
}

/* The driver's linker puts dynamic shared memory right behind static one and aligns it to 16 bytes
 * only (seen with driver 580: machine code that it linked; code that it compiled from PTX was
 * aligned as asked). At the start of the block's memory it is aligned to 1024: where more than 16
 * is wanted, all arrays go there. */
void kj_plan_shared(kj_lowering *l, uint64_t static_limit)
{
  size_t parameters = l->parameters.count;
  uint32_t parameter_bytes = l->c->code->parameter_bytes;
  if (place_all(l, static_limit) && l->dynamic_alignment > LEAST_ALIGNMENT) {
    l->parameters.count = parameters;
    l->c->code->parameter_bytes = parameter_bytes;
    place_all(l, 0);
  }
  if (!l->c->code->uses_dynamic_shared || !l->c->code->shared_array_count) return;
  size_t offset = add_parameter(l, KJ_PARAMETER_SHARED_OFFSET, l->c->code->shared_array_count, 0);
  for (size_t i = 0; i < l->shared_places.count; i++)
    if (l->shared_places.items[i].kind == KJ_PLACED_OWN)
      l->shared_places.items[i].offset_parameter = offset;
}

bool kj_is_dynamic_shared(kj_lowering *l, const kj_tvar *var)
{
  return find_place(l, var)->kind != KJ_PLACED_STATIC;
}

/* ---- its values ---- */

static LLVMValueRef own_offset(kj_lowering *l, const struct kj_shared_place *place)
{
  if (l->c->code->shared_array_count)
    return kj_extend_position(l, l->parameters.items[place->offset_parameter].value);
  return kj_const64(l, (int64_t)round_up(l->c->code->fixed_shared_bytes,
                                         l->c->code->dynamic_shared_alignment));
}

LLVMValueRef kj_dynamic_offset(kj_lowering *l, const kj_tvar *var)
{
  const struct kj_shared_place *place = find_place(l, var);
  switch (KJ_AMONG(place->kind)) {
  case KJ_PLACED_FIXED: return kj_const64(l, (int64_t)place->offset);
  case KJ_PLACED_SIZED:
    return kj_extend_position(l, l->parameters.items[place->offset_parameter].value);
  default: return own_offset(l, place);
  }
}

LLVMValueRef kj_own_extent(kj_lowering *l, uint32_t element_bytes)
{
  LLVMValueRef bytes = l->target->dynamic_shared_bytes(l);
  for (size_t i = 0; i < l->shared_places.count; i++) {
    const struct kj_shared_place *place = &l->shared_places.items[i];
    if (place->kind != KJ_PLACED_OWN) continue;
    LLVMValueRef before = own_offset(l, place);
    if (!LLVMIsNull(before)) bytes = LLVMBuildSub(l->builder, bytes, before, "");
    break; /* they begin at the same place */
  }
  return LLVMBuildUDiv(l->builder, bytes, kj_const64(l, element_bytes), "");
}

static LLVMValueRef multiply(kj_lowering *l, LLVMValueRef x, LLVMValueRef y)
{
  LLVMValueRef product = LLVMBuildNSWMul(l->builder, x, y, "");
  if (LLVMIsAInstruction(product)) LLVMSetNUW(product, true);
  return product;
}

/* A block has less than 2 GiB of it: strides fit i32 too. */
kj_array_value kj_dynamic_array(kj_lowering *l, const kj_tvar *var, LLVMValueRef pointer)
{
  const struct kj_shared_place *place = find_place(l, var);
  kj_array_value array = { .type = var->type,
                           .pointer = pointer,
                           .strides = { kj_const64(l, 1) },
                           .object = kj_object_of_type(l, var->type) };
  if (place->kind != KJ_PLACED_SIZED) return array;
  LLVMValueRef stride = kj_const32(l, 1);
  for (uint32_t d = kj_type(l->c->types, var->type)->rank; d-- > 0;) {
    array.extents[d] = l->parameters.items[place->extent_parameters + d].value;
    array.strides[d] = stride;
    stride = multiply(l, stride, array.extents[d]);
  }
  return array;
}
