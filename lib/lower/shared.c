/* What lies where in dynamic shared memory: static arrays that static shared memory has no room
 * for, arrays whose extents the dispatcher evaluates, the array of the launch's own size. The
 * dispatcher lays them out in that order (kj_shared_array) and hands extents and offsets over as
 * parameters, so that both sides mean the same. */
#include <string.h>

#include "lower/lower.h"

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
  place->offset = round_up(l->fixed_shared_bytes, alignment_of(l, place->var));
  l->fixed_shared_bytes = (uint32_t)(place->offset + bytes);
  uint64_t all = p->static_bytes + l->fixed_shared_bytes,
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
  while (row < l->shared_array_count && l->shared_arrays[row].declaration != declaration) row++;
  return row;
}

static void place_sized(kj_lowering *l, const kj_type_info *info, struct kj_shared_place *place)
{
  place->kind = KJ_PLACED_SIZED;
  place->row = find_row(l, place->var->sized_by->index);
  if (place->row == l->shared_array_count) l->shared_array_count++;
  l->shared_arrays[place->row] =
    (kj_shared_array){ .declaration = place->var->sized_by->index,
                       .element_bytes = kj_scalar_bytes(l, info->element),
                       .alignment = alignment_of(l, place->var) };
  place->offset_parameter = add_parameter(l, KJ_PARAMETER_SHARED_OFFSET, place->row, 0);
  for (uint32_t d = 0; d < info->rank; d++) {
    size_t parameter = add_parameter(l, KJ_PARAMETER_SHARED_EXTENT, place->row, d);
    if (d == 0) place->extent_parameters = parameter;
  }
}

static void place_own(kj_lowering *l, const kj_type_info *info, struct kj_shared_place *place)
{
  place->kind = KJ_PLACED_OWN;
  l->uses_dynamic_shared = true;
  l->dynamic_shared_element_bytes = kj_scalar_bytes(l, info->element);
  l->dynamic_shared_alignment = alignment_of(l, place->var);
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
  l->fixed_shared_bytes = l->shared_array_count = 0;
  if (l->like) {
    l->shared_array_count = l->like->shared_array_count;
    memcpy(l->shared_arrays, l->like->shared_arrays, sizeof l->shared_arrays);
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
  uint32_t parameter_bytes = l->parameter_bytes;
  if (place_all(l, static_limit) && l->dynamic_alignment > LEAST_ALIGNMENT) {
    l->parameters.count = parameters;
    l->parameter_bytes = parameter_bytes;
    place_all(l, 0);
  }
  for (size_t i = 0; i < l->shared_places.count && l->shared_array_count; i++) {
    struct kj_shared_place *place = &l->shared_places.items[i];
    if (place->kind == KJ_PLACED_OWN)
      place->offset_parameter =
        add_parameter(l, KJ_PARAMETER_SHARED_OFFSET, l->shared_array_count, 0);
  }
}

bool kj_is_dynamic_shared(kj_lowering *l, const kj_tvar *var)
{
  return find_place(l, var)->kind != KJ_PLACED_STATIC;
}

/* ---- its values ---- */

static LLVMValueRef own_offset(kj_lowering *l, const struct kj_shared_place *place)
{
  if (l->shared_array_count)
    return kj_extend_position(l, l->parameters.items[place->offset_parameter].value);
  return kj_const64(l, (int64_t)round_up(l->fixed_shared_bytes, l->dynamic_shared_alignment));
}

LLVMValueRef kj_dynamic_offset(kj_lowering *l, const kj_tvar *var)
{
  const struct kj_shared_place *place = find_place(l, var);
  switch (place->kind) {
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
  kj_array_value array = { .type = var->type, .pointer = pointer, .strides = { kj_const64(l, 1) } };
  if (place->kind != KJ_PLACED_SIZED) return array;
  LLVMValueRef stride = kj_const32(l, 1);
  for (uint32_t d = kj_type(l->c->types, var->type)->rank; d-- > 0;) {
    array.extents[d] = l->parameters.items[place->extent_parameters + d].value;
    array.strides[d] = stride;
    stride = multiply(l, stride, array.extents[d]);
  }
  return array;
}
