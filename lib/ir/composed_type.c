/* Aggregate types: their layout in memory, and the public functions that create and inspect
 * structs. */
#include <stdlib.h>
#include <string.h>

#include "ir/lexer.h"
#include "ir/module.h"
#include "ir/type.h"
#include "ir/context.h"

/* ---- sizes, alignments and components of aggregates ----
 *
 * These functions are for types whose values can be loaded and stored as a whole: vectors,
 * pointers, structs, and arrays inside of structs. */

static uint32_t alignment_of(const ki_type_info *info)
{
  return info->alignment_bytes ? info->alignment_bytes : info->size_bytes;
}

uint32_t ki_alignment(const ki_types *types, kjit_type type)
{
  return alignment_of(ki_type(types, type));
}

bool ki_is_element(ki_types *types, kjit_type type)
{
  if (!ki_has_type(types, type)) return false;
  const ki_type_info *info = ki_type(types, type);
  return info->size_bytes && info->class_ != KJ_CLASS_ARRAY;
}

bool ki_holds_pointer(const ki_types *types, kjit_type type)
{
  return ki_type(types, type)->holds_pointer;
}

bool ki_is_too_deep(const ki_types *types, kjit_type part)
{
  return ki_type(types, part)->levels >= KJ_MAX_TYPE_LEVELS;
}

uint32_t ki_alignment_at(uint32_t alignment_bytes, uint32_t offset_bytes)
{
  KJ_ASSERT(alignment_bytes && (alignment_bytes & (alignment_bytes - 1)) == 0);
  uint32_t lowest = offset_bytes & -offset_bytes;
  return offset_bytes && lowest < alignment_bytes ? lowest : alignment_bytes;
}

static uint32_t round_up(uint32_t value, uint32_t alignment)
{
  KJ_ASSERT(alignment);
  return (value + alignment - 1) / alignment * alignment;
}

/* Lays out vectors like CUDA's float2, float3 and float4. The alignment is equal to the size, but
 * at most 16 bytes, which is the largest access. Vectors of 3 lanes have the alignment of a single
 * lane. */
kjit_type ki_intern_vector(ki_types *types, kjit_type element, uint32_t lanes)
{
  KJ_ASSERT(lanes >= 2 && lanes <= 16);
  KJ_ASSERT(ki_is_scalar(element) && ki_type(types, element)->class_ != KJ_CLASS_COMPLEX);
  const ki_type_info *lane = ki_type(types, element);
  ki_type_info wanted = { .class_ = KJ_CLASS_VECTOR,
                          .element = element,
                          .count = lanes,
                          .size_bytes = lane->size_bytes * lanes };
  wanted.alignment_bytes = lanes == 3               ? lane->size_bytes
                           : wanted.size_bytes < 16 ? wanted.size_bytes
                                                    : 16;
  return ki_intern(types, &wanted);
}

const char ki_no_vector[] = "a vector must have 2, 3, 4, 8 or 16 lanes, known at compile time, and "
                            "a scalar element type that is not complex";

bool ki_has_vectors(const ki_types *types, kjit_type element, uint64_t lanes)
{
  bool is_count = lanes == 2 || lanes == 3 || lanes == 4 || lanes == 8 || lanes == 16;
  return is_count && ki_is_scalar(element) && ki_type(types, element)->class_ != KJ_CLASS_COMPLEX;
}

/* The number of lanes is compared as text, so that "f32x04" and "f32x5" are not accepted as
 * types. */
bool ki_split_vector(const char *name, size_t length, kjit_type *element, uint32_t *lanes)
{
  static const struct {
    const char *text;
    uint32_t lanes;
  } counts[] = { { "x2", 2 }, { "x3", 3 }, { "x4", 4 }, { "x8", 8 }, { "x16", 16 } };
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    size_t suffix = strlen(counts[i].text);
    if (length <= suffix || memcmp(name + length - suffix, counts[i].text, suffix) != 0) continue;
    /* `index` is an alias of i64, but the names of vectors use only i64 */
    bool is_index = length - suffix == 5 && memcmp(name, "index", 5) == 0;
    *element = is_index ? KJIT_ANY : ki_find_scalar(name, length - suffix);
    *lanes = counts[i].lanes;
    return *element != KJIT_ANY && ki_type(NULL, *element)->class_ != KJ_CLASS_COMPLEX;
  }
  return false;
}

bool ki_is_type_name(const char *name, size_t length)
{
  kjit_type element;
  uint32_t lanes;
  return ki_find_scalar(name, length) != KJIT_ANY ||
         ki_split_vector(name, length, &element, &lanes);
}

bool ki_find_type(ki_types *types, const char *name, size_t length, kjit_type *type)
{
  kjit_type element;
  uint32_t lanes;
  bool is_vector = ki_split_vector(name, length, &element, &lanes);
  *type = is_vector ? ki_intern_vector(types, element, lanes) : ki_find_scalar(name, length);
  return !is_vector || *type != KJIT_ANY;
}

kjit_type ki_intern_pointer(ki_types *types, kjit_type element, bool read_only)
{
  KJ_ASSERT(ki_type(types, element)->size_bytes);
  return ki_intern(types, &(ki_type_info){ .class_ = KJ_CLASS_POINTER,
                                           .element = element,
                                           .read_only = read_only,
                                           .size_bytes = sizeof(void *),
                                           .alignment_bytes = sizeof(void *) });
}

void ki_lay_out_array(const ki_types *types, ki_type_info *array)
{
  KJ_ASSERT(array->class_ == KJ_CLASS_ARRAY && array->rank <= KJ_MAX_RANK);
  KJ_ASSERT(ki_type(types, array->element)->size_bytes);
  const ki_type_info *element = ki_type(types, array->element);
  uint64_t bytes = element->size_bytes;
  for (uint32_t i = 0; i < array->rank; i++)
    if (__builtin_mul_overflow(bytes, (uint64_t)array->extents[i], &bytes)) bytes = UINT32_MAX;
  array->size_bytes = bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)bytes;
  array->alignment_bytes = alignment_of(element);
}

kjit_type ki_intern_struct(ki_types *types, const char *name, const char *const *field_names,
                           const kjit_type *items, uint32_t count, ki_struct_layout layout)
{
  KJ_ASSERT(count && name);
  bool is_packed = layout.is_packed;
  uint32_t *offsets = calloc(count + 1, sizeof *offsets);
  if (!offsets) return KJIT_ANY;
  ki_type_info wanted = { .class_ = KJ_CLASS_STRUCT,
                          .name = name,
                          .field_names = field_names,
                          .items = items,
                          .count = count,
                          .is_packed = is_packed,
                          .is_own = layout.is_own };
  wanted.offsets_bytes = offsets;
  wanted.alignment_bytes = layout.alignment_bytes ? layout.alignment_bytes : 1;
  for (uint32_t i = 0; i < count; i++) {
    const ki_type_info *field = ki_type(types, items[i]);
    uint32_t alignment = is_packed ? 1 : alignment_of(field);
    offsets[i] = round_up(wanted.size_bytes, alignment);
    wanted.size_bytes = offsets[i] + field->size_bytes;
    if (alignment > wanted.alignment_bytes) wanted.alignment_bytes = alignment;
  }
  wanted.size_bytes = round_up(wanted.size_bytes, wanted.alignment_bytes);
  kjit_type type = ki_intern(types, &wanted);
  free(offsets);
  return type;
}

uint64_t ki_element_count(const ki_type_info *array)
{
  KJ_ASSERT(array->class_ == KJ_CLASS_ARRAY && (array->is_static || !array->rank));
  uint64_t count = 1;
  for (uint32_t d = 0; d < array->rank; d++) count *= (uint64_t)array->extents[d];
  return count;
}

uint32_t ki_component_count(const ki_types *types, kjit_type type)
{
  const ki_type_info *info = ki_type(types, type);
  if (info->class_ == KJ_CLASS_COMPLEX) return 2;
  return info->class_ == KJ_CLASS_VECTOR || info->class_ == KJ_CLASS_STRUCT ? info->count : 0;
}

ki_component ki_get_component(const ki_types *types, kjit_type type, uint32_t index)
{
  KJ_ASSERT(index < ki_component_count(types, type));
  const ki_type_info *info = ki_type(types, type);
  if (info->class_ == KJ_CLASS_STRUCT)
    return (ki_component){ .index = index,
                           .type = info->items[index],
                           .offset_bytes = info->offsets_bytes[index] };
  kjit_type part = info->class_ == KJ_CLASS_VECTOR ? info->element
                   : type == KJIT_C64              ? KJIT_F32
                                                   : KJIT_F64;
  return (ki_component){ .index = index,
                         .type = part,
                         .offset_bytes = index * ki_type(types, part)->size_bytes };
}

/* ---- struct types that the application creates and inspects ---- */

enum { MAX_FIELDS = 1024, MAX_STRUCT_BYTES = 64 * 1024 };

static bool is_declared_twice(const kjit_field *fields, size_t index)
{
  for (size_t i = 0; i < index; i++)
    if (strcmp(fields[i].name, fields[index].name) == 0) return true;
  return false;
}

static kjit_status check_field(kjit_context *context, const kjit_field *fields, size_t index,
                               uint64_t *bytes)
{
  const kjit_field *field = &fields[index];
  if (!field->name || !ki_is_name(field->name))
    return ki_fail_call(context, KJIT_ERROR_NAME,
                        "the name of struct field %zu is not a valid identifier", index);
  if (is_declared_twice(fields, index))
    return ki_fail_call(context, KJIT_ERROR_NAME, "two fields of the struct have the name `%s`",
                        field->name);
  if (!ki_is_element(context->types, field->type))
    return ki_fail_call(context, KJIT_ERROR_MISUSE,
                        "field `%s` must be a scalar, vector, struct or pointer; for an array, "
                        "set the field's type to the element type, and rank and shape",
                        field->name);
  if (ki_is_too_deep(context->types, field->type))
    return ki_fail_call(context, KJIT_ERROR_UNSUPPORTED,
                        "field `%s`: structs and pointers nest at most %d levels deep", field->name,
                        KJ_MAX_TYPE_LEVELS);
  if (field->rank > KJ_MAX_RANK)
    return ki_fail_call(context, KJIT_ERROR_MISUSE,
                        "field `%s`: an array has at most %d dimensions", field->name, KJ_MAX_RANK);
  uint64_t size = ki_type(context->types, field->type)->size_bytes;
  for (uint32_t i = 0; i < field->rank; i++) {
    if (field->shape[i] < 1)
      return ki_fail_call(context, KJIT_ERROR_MISUSE, "field `%s`: an extent must be at least 1",
                          field->name);
    if (__builtin_mul_overflow(size, (uint64_t)field->shape[i], &size) || size > MAX_STRUCT_BYTES)
      size = MAX_STRUCT_BYTES + 1;
  }
  *bytes += size;
  if (*bytes > MAX_STRUCT_BYTES)
    return ki_fail_call(context, KJIT_ERROR_UNSUPPORTED, "a struct has at most %d bytes",
                        MAX_STRUCT_BYTES);
  return KJIT_OK;
}

static kjit_status check_struct(kjit_context *context, const char *name, const kjit_field *fields,
                                size_t count, unsigned flags)
{
  if (!name || !ki_is_name(name) || ki_is_type_name(name, strlen(name)) ||
      strcmp(name, KJ_TYPE_WORD) == 0)
    return ki_fail_call(context, KJIT_ERROR_NAME,
                        "`%s` is not a valid struct name: use letters, digits and `_`, do not "
                        "start with a digit, and do not use a keyword or type name",
                        name ? name : "");
  if (!fields || count < 1 || count > MAX_FIELDS)
    return ki_fail_call(context, KJIT_ERROR_MISUSE, "a struct must have 1 to %d fields",
                        MAX_FIELDS);
  if (flags & ~(unsigned)KJIT_STRUCT_PACKED)
    return ki_fail_call(context, KJIT_ERROR_MISUSE, "the struct flags %#x contain unknown bits",
                        flags);
  uint64_t bytes = 0;
  for (size_t i = 0; i < count; i++) {
    kjit_status status = check_field(context, fields, i, &bytes);
    if (status != KJIT_OK) return status;
  }
  return KJIT_OK;
}

static kjit_type item_type(ki_types *types, const kjit_field *field)
{
  KJ_ASSERT(field->rank <= KJ_MAX_RANK);
  if (!field->rank) return field->type;
  ki_type_info info = { .element = field->type,
                        .rank = field->rank,
                        .layout = KJIT_LAYOUT_C,
                        .space = KJ_SPACE_VALUE,
                        .is_static = true };
  memcpy(info.extents, field->shape, field->rank * sizeof *field->shape);
  return ki_intern_array(types, &info);
}

static kjit_type make_struct(ki_types *types, const char *name, const kjit_field *fields,
                             size_t count, unsigned flags)
{
  const char **names = calloc(count, sizeof *names);
  kjit_type *items = calloc(count, sizeof *items), type = KJIT_ANY;
  bool is_whole = names && items;
  for (size_t i = 0; i < count && is_whole; i++) {
    names[i] = fields[i].name;
    items[i] = item_type(types, &fields[i]);
    is_whole = items[i] != KJIT_ANY;
  }
  if (is_whole)
    type = ki_intern_struct(types, name, names, items, (uint32_t)count,
                            (ki_struct_layout){ .is_packed = flags & KJIT_STRUCT_PACKED });
  free(names);
  free(items);
  return type;
}

kjit_type kjit_get_struct_type(kjit_context *context, const char *name, const kjit_field *fields,
                               size_t count, unsigned flags)
{
  if (!context || ki_is_forked(context) ||
      check_struct(context, name, fields, count, flags) != KJIT_OK)
    return KJIT_VOID;
  kjit_type type = make_struct(context->types, name, fields, count, flags);
  if (type != KJIT_ANY) return type;
  (void)!ki_fail_call(context, KJIT_ERROR_MEMORY, "out of memory");
  return KJIT_VOID;
}

/* ---- layout ---- */

kjit_status kjit_get_type_layout(kjit_context *context, kjit_type type, kjit_type_layout *layout)
{
  if (!context) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(context)) return KJIT_ERROR_FORKED;
  if (!ki_is_element(context->types, type))
    return ki_fail_call(context, KJIT_ERROR_ARGUMENT,
                        "only scalars, vectors, structs and pointers have a layout");
  const ki_type_info *info = ki_type(context->types, type);
  kjit_type_layout own = { .type_bytes = info->size_bytes,
                           .alignment_bytes = ki_alignment(context->types, type),
                           .field_count = info->class_ == KJ_CLASS_STRUCT ? info->count : 0 };
  return ki_write_sized(context, "kjit_get_type_layout", KI_TYPE_LAYOUT, &own, layout);
}

kjit_status kjit_get_type_field(kjit_context *context, kjit_type type, uint32_t index,
                                kjit_field *field, uint32_t *offset_bytes)
{
  if (!context) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(context)) return KJIT_ERROR_FORKED;
  const ki_type_info *info =
    ki_has_type(context->types, type) ? ki_type(context->types, type) : NULL;
  if (!info || info->class_ != KJ_CLASS_STRUCT)
    return ki_fail_call(context, KJIT_ERROR_ARGUMENT, "only structs have fields");
  if (index >= info->count)
    return ki_fail_call(context, KJIT_ERROR_ARGUMENT, "struct `%s` has %u fields, not %u",
                        info->name, info->count, index + 1);
  const ki_type_info *item = ki_type(context->types, info->items[index]);
  bool is_array = item->class_ == KJ_CLASS_ARRAY;
  if (field) {
    *field = (kjit_field){ .name = info->field_names[index],
                           .type = is_array ? item->element : info->items[index],
                           .rank = is_array ? item->rank : 0 };
    memcpy(field->shape, item->extents, field->rank * sizeof *field->shape);
  }
  if (offset_bytes) *offset_bytes = info->offsets_bytes[index];
  return KJIT_OK;
}

uint32_t ki_value_part_count(const ki_types *types, kjit_type type)
{
  const ki_type_info *info = ki_type(types, type);
  return info->class_ == KJ_CLASS_ARRAY ? (uint32_t)ki_element_count(info)
                                        : ki_component_count(types, type);
}

ki_component ki_get_value_part(const ki_types *types, kjit_type type, uint32_t index)
{
  KJ_ASSERT(index < ki_value_part_count(types, type));
  const ki_type_info *info = ki_type(types, type);
  if (info->class_ != KJ_CLASS_ARRAY) return ki_get_component(types, type, index);
  return (ki_component){ index, info->element, index * ki_type(types, info->element)->size_bytes };
}
