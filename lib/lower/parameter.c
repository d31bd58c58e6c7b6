/* The kernel's parameters: what it needs of its arguments (argument_use.c), one after the other. */
#include "lower/debug.h"

uint32_t kj_add_parameter(kj_lowering *l, kj_parameter parameter, kjit_type type,
                          uint32_t alignment)
{
  parameter.offset = (l->parameter_bytes + alignment - 1) / alignment * alignment;
  l->parameter_bytes = parameter.offset + parameter.size_bytes;
  kj_planned_parameter planned = { .parameter = parameter, .type = type };
  KJ_PUSH(l->c->arena, &l->parameters, planned);
  return parameter.offset;
}

static void add_part(kj_lowering *l, int kind, uint32_t argument, uint32_t dimension, uint32_t size)
{
  kj_parameter parameter = { .argument = (uint16_t)argument,
                             .dimension = (uint8_t)dimension,
                             .size_bytes = (uint8_t)size };
  parameter.kind = kind;
  kj_add_parameter(l, parameter, KJIT_VOID, size);
}

/* part: see kj_parameter. */
static void add_scalar(kj_lowering *l, uint32_t argument, kjit_type type, uint32_t part)
{
  uint32_t size = kj_scalar_bytes(l, type);
  kj_parameter parameter = { .kind = KJ_PARAMETER_SCALAR,
                             .argument = (uint16_t)argument,
                             .size_bytes = (uint8_t)size,
                             .part = part };
  kj_add_parameter(l, parameter, type, size);
}

/* The parts of a value one by one, each at its natural alignment, whatever the alignment of the
 * whole. */
static void plan_value(kj_lowering *l, uint32_t argument, kjit_type type, uint32_t from)
{
  bool is_whole =
    kj_type(l->c->types, type)->class_ == KJ_CLASS_POINTER || !kj_is_composed_type(l, type);
  if (is_whole) {
    add_scalar(l, argument, type, 1 + from);
    return;
  }
  uint32_t count = kj_part_count(l, type);
  for (uint32_t i = 0; i < count; i++) {
    kj_component part = kj_get_part_info(l, type, i);
    plan_value(l, argument, part.type, from + part.offset_bytes);
  }
}

static void plan_scalar(kj_lowering *l, uint32_t argument, kjit_type type)
{
  if (kj_is_composed_type(l, type) && kj_type(l->c->types, type)->class_ != KJ_CLASS_POINTER)
    plan_value(l, argument, type, 0);
  else add_scalar(l, argument, type, 0);
}

/* What every GPU and driver takes. */
enum { MOST_PARAMETER_BYTES = 4000 };

static void check_size(kj_lowering *l, uint32_t argument)
{
  const kj_decl *param = l->kernel->function->params.items[argument];
  if (l->parameter_bytes > MOST_PARAMETER_BYTES)
    kj_fail(l->c, param->location, KJIT_ERROR_UNSUPPORTED,
            "the parameters up to `%s` take %u bytes; a kernel has at most %d: hand large values "
            "over in an array",
            param->name, l->parameter_bytes, MOST_PARAMETER_BYTES);
}

static void plan_array(kj_lowering *l, uint32_t argument, const kj_type_info *info,
                       uint32_t index_bytes)
{
  const kj_argument_use *use = &l->uses[argument];
  bool is_shown = kj_shows_variables(l);
  if (use->is_read || use->is_written || is_shown)
    add_part(l, KJ_PARAMETER_POINTER, argument, 0, 8);
  for (uint32_t d = 0; d < info->rank; d++)
    if (use->extents[d] || is_shown) add_part(l, KJ_PARAMETER_EXTENT, argument, d, index_bytes);
  for (uint32_t d = 0; d < info->rank; d++)
    if (use->strides[d] || (is_shown && !kj_is_unit_stride(info, d)))
      add_part(l, KJ_PARAMETER_STRIDE, argument, d, index_bytes);
}

static void plan_maps(kj_lowering *l)
{
  for (size_t i = 0; i < l->tensor_maps.count; i++) {
    kj_parameter parameter = { .kind = KJ_PARAMETER_TENSOR_MAP,
                               .argument = l->tensor_maps.items[i].argument,
                               .dimension = (uint8_t)i,
                               .size_bytes = KJ_MAP_BYTES };
    kj_add_parameter(l, parameter, KJIT_VOID, KJ_MAP_ALIGNMENT);
  }
}

static bool has_index_parameter(kj_lowering *l)
{
  for (size_t i = 0; i < l->parameters.count; i++)
    if (l->parameters.items[i].parameter.kind == KJ_PARAMETER_EXTENT ||
        l->parameters.items[i].parameter.kind == KJ_PARAMETER_STRIDE)
      return true;
  return false;
}

void kj_plan_parameters(kj_lowering *l)
{
  const kj_signature *signature = l->c->request->signature;
  kj_find_uses(l);
  if (l->c->request->symbol) return; /* C's own parameters, see abi.c */
  for (uint32_t a = 0; a < signature->count; a++) {
    const kj_argument *argument = &signature->arguments[a];
    if (argument->kind == KJ_ARGUMENT_ARRAY)
      plan_array(l, a, kj_type(l->c->types, argument->type), signature->offsets32 ? 4 : 8);
    bool is_scalar = argument->kind == KJ_ARGUMENT_VALUE || argument->kind == KJ_ARGUMENT_NUMBER;
    if (is_scalar && (l->uses[a].is_needed || kj_shows_variables(l)))
      plan_scalar(l, a, argument->type);
    check_size(l, a);
  }
  plan_maps(l);
  if (signature->offsets32 && has_index_parameter(l)) l->c->used_offsets32 = true;
}
