/* Loads, stores, variables, and the layout of dynamic shared memory.
 *
 * Each array argument has an alias scope. An access carries the alias scope of its own argument
 * and, as noalias, the scopes of the arguments that are known to be disjoint from it. Accesses to
 * views of the argument, and accesses in inlined functions, carry the same scope. If the argument
 * of an access is not known, the access carries no scope and may alias any other access. */
#include <string.h>

#include "lower/debug.h"
#include "lower/instruction.h"

/* Returns an alias scope domain. Like a loop id, a domain is a distinct node whose first operand is
 * the node itself. */
LLVMMetadataRef kl_make_domain(kl_lowering *l, const char *name)
{
  LLVMMetadataRef text = kl_metadata_string(l, name);
  return kl_loop_id(l, &text, 1);
}

LLVMMetadataRef kl_make_scope(kl_lowering *l, LLVMMetadataRef domain, const char *name)
{
  return kl_loop_id(l, (LLVMMetadataRef[]){ domain, kl_metadata_string(l, name) }, 2);
}

static LLVMMetadataRef scope_of(kl_lowering *l, uint32_t argument)
{
  KJ_ASSERT(argument < l->c->request->signature->count);
  if (!l->domain) l->domain = kl_make_domain(l, "arguments");
  if (!l->scopes)
    l->scopes = KJ_NEW_ARRAY(l->c->arena, LLVMMetadataRef, l->c->request->signature->count + 1);
  if (!l->scopes[argument])
    l->scopes[argument] =
      kl_make_scope(l, l->domain, l->kernel->function->params.items[argument]->name);
  return l->scopes[argument];
}

static void set_list(kl_lowering *l, LLVMValueRef instruction, const char *kind,
                     LLVMMetadataRef *items, uint32_t count)
{
  if (count) kl_set_metadata(l, instruction, kind, LLVMMDNodeInContext2(l->context, items, count));
}

/* Collects the alias scopes of the arguments that are disjoint from the given argument, except for
 * arguments that the kernel does not access. */
static uint32_t find_disjoint(kl_lowering *l, uint32_t argument, LLVMMetadataRef *items)
{
  KJ_ASSERT(argument < l->c->request->signature->count);
  const kj_signature *signature = l->c->request->signature;
  uint32_t count = 0;
  for (uint32_t a = 0; a < signature->count; a++) {
    bool is_accessed = l->uses[a].is_read || l->uses[a].is_written,
         matters = l->uses[a].is_written || l->uses[argument].is_written;
    if (a != argument && is_accessed && matters &&
        kl_relation(signature, argument, a) == KJ_RELATION_DISJOINT)
      items[count++] = scope_of(l, a);
  }
  return count;
}

static void annotate_memory(kl_lowering *l, LLVMValueRef instruction, uint32_t number)
{
  KJ_ASSERT(number < l->memory_scopes.count);
  LLVMMetadataRef *others = KJ_NEW_ARRAY(l->c->arena, LLVMMetadataRef, l->memory_scopes.count);
  uint32_t count = 0;
  for (uint32_t i = 0; i < l->memory_scopes.count; i++)
    if (i != number) others[count++] = l->memory_scopes.items[i];
  set_list(l, instruction, "alias.scope", &l->memory_scopes.items[number], 1);
  set_list(l, instruction, "noalias", others, count);
}

void kl_annotate_atomic(kl_lowering *l, LLVMValueRef instruction, uint32_t object)
{
  if (object > KJ_OBJECT_APART) annotate_memory(l, instruction, object - KJ_OBJECT_APART - 1);
  if (!kl_is_argument(object)) return;
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

void kl_annotate_access(kl_lowering *l, LLVMValueRef instruction, uint32_t object)
{
  if (l->parallel_loop && object != KJ_OBJECT_UNKNOWN) {
    kl_set_metadata(l, instruction, "llvm.mem.parallel_loop_access", l->parallel_loop);
    kl_note_place(l, instruction);
  }
  kl_annotate_atomic(l, instruction, object);
}

static kjit_type element_type(kl_lowering *l, const kl_array_value *array)
{
  return kl_type_info(l, array->type)->element;
}

void kl_annotate_load(kl_lowering *l, LLVMValueRef load, uint32_t object)
{
  kl_annotate_access(l, load, object);
  if (kl_is_argument(object) && l->uses[object - 1].is_constant)
    kl_set_metadata(l, load, "invariant.load", LLVMMDNodeInContext2(l->context, NULL, 0));
}

LLVMValueRef kl_load_element(kl_lowering *l, const kl_array_value *array, LLVMValueRef pointer,
                             uint32_t alignment)
{
  return kl_load_value(l, element_type(l, array), pointer,
                       alignment ? alignment : kl_array_alignment(l, array->type), array->object);
}

void kl_store_element(kl_lowering *l, const kl_array_value *array, LLVMValueRef pointer,
                      LLVMValueRef value, uint32_t alignment)
{
  kl_store_value(l, element_type(l, array), pointer, value,
                 alignment ? alignment : kl_array_alignment(l, array->type), array->object);
}

/* ---- variables ---- */

static kl_variable_state *state_of(kl_lowering *l, const kt_var *var)
{
  const kt_instance *instance = l->frame->instance;
  KJ_ASSERT(var->index < instance->params.count + instance->locals.count);
  (void)instance;
  return &l->frame->states[var->index];
}

static LLVMTypeRef variable_type(kl_lowering *l, const kt_var *var)
{
  return var->is_narrow ? l->i32 : kl_register_type(l, var->type);
}

/* Returns whether the variable is held in a register. This is possible if the variable is assigned
 * only once, because each use then follows the assignment in the tree. */
static bool is_register(const kt_var *var) { return var->kind != KJ_V_VAR && !var->is_slot; }

/* Returns whether the slot has the memory type of a scalar, in which a bool has one byte. The slots
 * of narrow variables are i32. */
static bool is_plain_slot(kl_lowering *l, const kt_var *var)
{
  return !var->is_narrow && ki_is_scalar(var->type) && !kl_is_composed_type(l, var->type);
}

static LLVMValueRef load_slot(kl_lowering *l, const kt_var *var)
{
  KJ_ASSERT(var->is_slot);
  bool is_plain = is_plain_slot(l, var);
  LLVMTypeRef type = is_plain ? kl_memory_type(l, var->type) : variable_type(l, var);
  LLVMValueRef load = kl_load(l, type, l->target->slot_pointer(l, var));
  kl_annotate_access(l, load, l->target->object_of(l, var));
  return is_plain ? kl_from_memory(l, var->type, load) : load;
}

static LLVMValueRef get_slot(kl_lowering *l, const kt_var *var)
{
  KJ_ASSERT(!is_register(var) && !var->is_slot);
  kl_variable_state *state = state_of(l, var);
  if (state->memory) return state->memory;
  state->memory = kl_alloca(l, variable_type(l, var), var->name);
  kl_debug_alloca(l, var, state->memory, variable_type(l, var));
  return state->memory;
}

static LLVMValueRef get_stored(kl_lowering *l, const kt_var *var)
{
  if (var->is_slot) return load_slot(l, var);
  kl_variable_state *state = state_of(l, var);
  if (is_register(var)) return state->value ? state->value : LLVMGetPoison(variable_type(l, var));
  return kl_load(l, variable_type(l, var), get_slot(l, var));
}

LLVMValueRef kl_get_variable(kl_lowering *l, const kt_var *var)
{
  LLVMValueRef value = get_stored(l, var);
  return var->is_narrow ? kl_as_i64(l, value) : value;
}

LLVMValueRef kl_get_variable32(kl_lowering *l, const kt_var *var)
{
  return kl_as_i32(l, get_stored(l, var));
}

void kl_set_variable(kl_lowering *l, const kt_var *var, LLVMValueRef value)
{
  KJ_ASSERT(value);
  if (var->kind == KJ_V_LOOP) kl_assert_range(l, var->range, var->type, value);
  if (var->is_narrow) value = kl_as_i32(l, value);
  if (var->is_slot) {
    if (is_plain_slot(l, var)) value = kl_to_memory(l, var->type, value);
    kl_annotate_access(l, kl_store(l, value, l->target->slot_pointer(l, var)),
                       l->target->object_of(l, var));
    return;
  }
  if (is_register(var)) {
    state_of(l, var)->value = value;
    kl_debug_value(l, var, value);
    return;
  }
  kl_store(l, value, get_slot(l, var));
}

static kl_array_value storage_array(kl_lowering *l, const kt_var *var)
{
  const ki_type_info *info = kl_type_info(l, var->type);
  LLVMValueRef pointer = var->kind == KJ_V_SHARED  ? l->target->shared_pointer(l, var)
                         : var->kind == KJ_V_LOCAL ? l->target->local_pointer(l, var)
                                                   : kl_constant_pointer(l, var);
  kl_debug_storage(l, var, pointer);
  if (!info->is_static) return kl_dynamic_array(l, var, pointer);
  kl_array_value array = kl_static_array(l, var->type, pointer);
  if (l->target->object_of) array.object = l->target->object_of(l, var);
  return array;
}

kl_array_value kl_get_array(kl_lowering *l, const kt_var *var)
{
  KJ_ASSERT(kl_is_array_type(l, var->type));
  if (var->kind == KJ_V_SHARED || var->kind == KJ_V_LOCAL || var->kind == KJ_V_CONST)
    return storage_array(l, var);
  kl_variable_state *state = state_of(l, var);
  if (state->array) return *state->array;
  return kl_unpack_array(l, var->type, kl_get_variable(l, var));
}

void kl_set_array(kl_lowering *l, const kt_var *var, const kl_array_value *array)
{
  if (!is_register(var)) {
    kl_set_variable(l, var, kl_pack_array(l, array));
    return;
  }
  kl_variable_state *state = state_of(l, var);
  state->array = KJ_NEW(l->c->arena, kl_array_value);
  *state->array = *array;
  kl_debug_array(l, var, array);
}

/* Dynamic shared memory contains three groups of arrays, in this order: the static arrays that do
 * not fit into static shared memory; the arrays whose extents the runtime evaluates at launch; and
 * the array whose size the launch specifies. The runtime computes the layout in the same order
 * (kj_shared_array) and passes extents and offsets as parameters. */

enum { LEAST_ALIGNMENT = 16 };

typedef struct planner {
  kl_lowering *l;
  uint64_t static_bytes, static_limit;
} planner;

static uint64_t round_up(uint64_t value, uint64_t alignment)
{
  KJ_ASSERT(alignment);
  return (value + alignment - 1) / alignment * alignment;
}

static struct kl_shared_place *find_place(kl_lowering *l, const kt_var *var)
{
  for (size_t i = 0; i < l->shared_places.count; i++)
    if (l->shared_places.items[i].var == var) return &l->shared_places.items[i];
  return NULL;
}

/* ---- the plan ---- */

static uint32_t alignment_of(kl_lowering *l, const kt_var *var)
{
  uint32_t alignment = var->alignment > LEAST_ALIGNMENT ? var->alignment : LEAST_ALIGNMENT;
  if (alignment > l->dynamic_alignment) l->dynamic_alignment = alignment;
  return alignment;
}

static void place_static(planner *p, const ki_type_info *info, struct kl_shared_place *place)
{
  KJ_ASSERT(info->is_static);
  kl_lowering *l = p->l;
  uint64_t bytes = ki_element_count(info) * kl_scalar_bytes(l, info->element),
           end = round_up(p->static_bytes, LEAST_ALIGNMENT) + bytes;
  if (end <= p->static_limit) {
    p->static_bytes = end;
    return;
  }
  place->kind = KJ_PLACED_FIXED;
  place->offset = round_up(l->c->code->fixed_shared_bytes, alignment_of(l, place->var));
  l->c->code->fixed_shared_bytes = (uint32_t)(place->offset + bytes);
  uint64_t all = p->static_bytes + l->c->code->fixed_shared_bytes,
           most = kt_most_shared_bytes(&l->c->request->target);
  if (all > most)
    kt_fail(l->c, place->var->location, KJIT_ERROR_UNSUPPORTED,
            "the shared arrays up to and including `%s` need %llu bytes; a block has at most %llu "
            "bytes on %s",
            place->var->name, (unsigned long long)all, (unsigned long long)most,
            kt_target_text(l->c));
}

static size_t find_parameter(const kl_lowering *l, int kind, uint32_t row, uint32_t dimension)
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

static size_t add_parameter(kl_lowering *l, int kind, uint32_t row, uint32_t dimension)
{
  size_t known = l->checked ? find_parameter(l, kind, row, dimension) : 0;
  /* the checked and the unchecked version have the same parameters */
  KJ_ASSERT(!l->checked || known < l->parameters.count);
  if (l->checked) return known;
  kj_parameter parameter = { .argument = (uint16_t)row,
                             .dimension = (uint8_t)dimension,
                             .size_bytes = 4 };
  parameter.kind = kind;
  kl_add_parameter(l, parameter, KJIT_VOID, 4);
  return l->parameters.count - 1;
}

/* Returns the index of the declaration's row in shared_arrays, or the index of a new row if the
 * declaration has no row yet. */
static uint32_t find_row(const kl_lowering *l, uint32_t declaration)
{
  uint32_t row = 0;
  while (row < l->c->code->shared_array_count &&
         l->c->code->shared_arrays[row].declaration != declaration)
    row++;
  return row;
}

static void place_sized(kl_lowering *l, const ki_type_info *info, struct kl_shared_place *place)
{
  KJ_ASSERT(place->var->sized_by);
  place->kind = KJ_PLACED_SIZED;
  place->row = find_row(l, place->var->sized_by->index);
  if (place->row == l->c->code->shared_array_count) l->c->code->shared_array_count++;
  l->c->code->shared_arrays[place->row] =
    (kj_shared_array){ .declaration = place->var->sized_by->index,
                       .element_bytes = kl_scalar_bytes(l, info->element),
                       .alignment = alignment_of(l, place->var) };
  place->offset_parameter = add_parameter(l, KJ_PARAMETER_SHARED_OFFSET, place->row, 0);
  for (uint32_t d = 0; d < info->rank; d++) {
    size_t parameter = add_parameter(l, KJ_PARAMETER_SHARED_EXTENT, place->row, d);
    if (d == 0) place->extent_parameters = parameter;
  }
}

/* Places the array whose size the launch specifies. All such arrays have the same address. */
static void place_own(kl_lowering *l, const ki_type_info *info, struct kl_shared_place *place)
{
  KJ_ASSERT(!info->is_static);
  uint32_t bytes = kl_scalar_bytes(l, info->element), alignment = alignment_of(l, place->var);
  bool is_first = !l->c->code->uses_dynamic_shared;
  place->kind = KJ_PLACED_OWN;
  l->c->code->uses_dynamic_shared = true;
  if (is_first || bytes < l->c->code->dynamic_shared_element_bytes)
    l->c->code->dynamic_shared_element_bytes = bytes;
  if (is_first || alignment > l->c->code->dynamic_shared_alignment)
    l->c->code->dynamic_shared_alignment = alignment;
}

static void find_shared(void *data, kt_expr **at)
{
  planner *p = data;
  const kt_var *var =
    (*at)->kind == KJ_T_VAR && (*at)->var->kind == KJ_V_SHARED ? (*at)->var : NULL;
  if (!var || find_place(p->l, var)) return;
  struct kl_shared_place place = { .var = var };
  const ki_type_info *info = kl_type_info(p->l, var->type);
  if (info->is_static) place_static(p, info, &place);
  else if (var->sized_by) place_sized(p->l, info, &place);
  else place_own(p->l, info, &place);
  KJ_PUSH(p->l->c->arena, &p->l->shared_places, place);
}

static uint64_t place_all(kl_lowering *l, uint64_t static_limit)
{
  planner p = { .l = l, .static_limit = static_limit };
  l->dynamic_alignment = LEAST_ALIGNMENT;
  l->shared_places.count = 0;
  l->c->code->uses_dynamic_shared = false;
  l->c->code->fixed_shared_bytes = l->c->code->shared_array_count = 0;
  if (l->checked) {
    l->c->code->shared_array_count = l->checked->c->code->shared_array_count;
    memcpy(l->c->code->shared_arrays, l->checked->c->code->shared_arrays,
           sizeof l->c->code->shared_arrays);
  }
  for (size_t i = 0; i < l->c->instances.count; i++)
    kt_walk_tstmts(&l->c->instances.items[i]->body, NULL, find_shared, &p);
  return p.static_bytes;
}

/* Plans dynamic shared memory. If an array needs an alignment of more than 16 bytes, all arrays are
 * placed in dynamic shared memory, because the start of the block's shared memory is aligned to
 * 1024 bytes. After static shared memory, the driver's linker aligns dynamic shared memory to only
 * 16 bytes. (This was observed with driver 580 for machine code that the driver links; in code that
 * the driver compiles from PTX, the alignment was correct.) */
void kl_plan_shared(kl_lowering *l, uint64_t static_limit)
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

bool kl_is_dynamic_shared(kl_lowering *l, const kt_var *var)
{
  KJ_ASSERT(find_place(l, var));
  return find_place(l, var)->kind != KJ_PLACED_STATIC;
}

size_t kl_dynamic_number(kl_lowering *l, const kt_var *var)
{
  const struct kl_shared_place *items = l->shared_places.items;
  size_t number = 0;
  for (size_t i = 0; items[i].var != var; i++) {
    bool is_same = items[i].kind == KJ_PLACED_OWN && find_place(l, var)->kind == KJ_PLACED_OWN;
    if (is_same) break;
    number += items[i].kind != KJ_PLACED_STATIC;
  }
  return number;
}

/* ---- offsets and extents ---- */

static LLVMValueRef own_offset(kl_lowering *l, const struct kl_shared_place *place)
{
  if (l->c->code->shared_array_count)
    return kl_extend_position(l, l->parameters.items[place->offset_parameter].value);
  return kl_const64(l, (int64_t)round_up(l->c->code->fixed_shared_bytes,
                                         l->c->code->dynamic_shared_alignment));
}

LLVMValueRef kl_dynamic_offset(kl_lowering *l, const kt_var *var)
{
  const struct kl_shared_place *place = find_place(l, var);
  KJ_ASSERT(place); /* kl_plan_shared has planned every shared variable that is used */
  switch (KJ_AMONG(place->kind)) {
  case KJ_PLACED_FIXED: return kl_const64(l, (int64_t)place->offset);
  case KJ_PLACED_SIZED:
    return kl_extend_position(l, l->parameters.items[place->offset_parameter].value);
  default: KJ_ASSERT(place->kind == KJ_PLACED_OWN); return own_offset(l, place);
  }
}

LLVMValueRef kl_own_extent(kl_lowering *l, uint32_t element_bytes)
{
  KJ_ASSERT(element_bytes);
  LLVMValueRef bytes = l->target->dynamic_shared_bytes(l);
  for (size_t i = 0; i < l->shared_places.count; i++) {
    const struct kl_shared_place *place = &l->shared_places.items[i];
    if (place->kind != KJ_PLACED_OWN) continue;
    LLVMValueRef before = own_offset(l, place);
    if (!LLVMIsNull(before)) bytes = kl_sub(l, bytes, before);
    break; /* all of these arrays start at the same address, so the first one is sufficient */
  }
  return kl_udiv(l, bytes, kl_const64(l, element_bytes));
}

static LLVMValueRef multiply(kl_lowering *l, LLVMValueRef x, LLVMValueRef y)
{
  LLVMValueRef product = kl_nsw_mul(l, x, y);
  if (LLVMIsAInstruction(product)) LLVMSetNUW(product, true);
  return product;
}

/* Returns the array. The strides fit into an i32, because a block has less than 2 GiB of dynamic
 * shared memory. */
kl_array_value kl_dynamic_array(kl_lowering *l, const kt_var *var, LLVMValueRef pointer)
{
  const struct kl_shared_place *place = find_place(l, var);
  KJ_ASSERT(place); /* kl_plan_shared has planned every shared variable that is used */
  kl_array_value array = { .type = var->type,
                           .pointer = pointer,
                           .strides = { kl_const64(l, 1) },
                           .object = kl_object_of_type(l, var->type) };
  if (place->kind != KJ_PLACED_SIZED) return array;
  LLVMValueRef stride = kl_const32(l, 1);
  for (uint32_t d = kl_type_info(l, var->type)->rank; d-- > 0;) {
    array.extents[d] = l->parameters.items[place->extent_parameters + d].value;
    array.strides[d] = stride;
    stride = multiply(l, stride, array.extents[d]);
  }
  return array;
}
