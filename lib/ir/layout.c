/* Types made of others that lie in memory as a whole: vectors, pointers, structs, arrays inside
 * structs; their sizes, alignments and components. */
#include <stdlib.h>
#include <string.h>

#include "ir/type.h"

static uint32_t alignment_of(const kj_type_info *info)
{
  return info->alignment_bytes ? info->alignment_bytes : info->size_bytes;
}

uint32_t kj_alignment(const kj_types *types, kjit_type type)
{
  return alignment_of(kj_type(types, type));
}

bool kj_is_element(kj_types *types, kjit_type type)
{
  if (!kj_has_type(types, type)) return false;
  const kj_type_info *info = kj_type(types, type);
  return info->size_bytes && info->class_ != KJ_CLASS_ARRAY;
}

bool kj_is_too_deep(const kj_types *types, kjit_type part)
{
  return kj_type(types, part)->levels >= KJ_MAX_TYPE_LEVELS;
}

uint32_t kj_alignment_at(uint32_t alignment_bytes, uint32_t offset_bytes)
{
  uint32_t lowest = offset_bytes & -offset_bytes;
  return offset_bytes && lowest < alignment_bytes ? lowest : alignment_bytes;
}

static uint32_t round_up(uint32_t value, uint32_t alignment)
{
  return (value + alignment - 1) / alignment * alignment;
}

/* As CUDA lays out float2, float3, float4: 2 and 4 lanes are aligned to their size, up to 16 bytes,
 * what an access takes at most; 3 lanes to one. */
kjit_type kj_intern_vector(kj_types *types, kjit_type element, uint32_t lanes)
{
  const kj_type_info *lane = kj_type(types, element);
  kj_type_info wanted = { .class_ = KJ_CLASS_VECTOR,
                          .element = element,
                          .count = lanes,
                          .size_bytes = lane->size_bytes * lanes };
  wanted.alignment_bytes = lanes == 3               ? lane->size_bytes
                           : wanted.size_bytes < 16 ? wanted.size_bytes
                                                    : 16;
  return kj_intern(types, &wanted);
}

/* Text of the numbers of lanes, which are few: "f32x04" and "f32x5" are no types. */
bool kj_split_vector(const char *name, size_t length, kjit_type *element, uint32_t *lanes)
{
  static const struct {
    const char *text;
    uint32_t lanes;
  } counts[] = { { "x2", 2 }, { "x3", 3 }, { "x4", 4 }, { "x8", 8 }, { "x16", 16 } };
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    size_t suffix = strlen(counts[i].text);
    if (length <= suffix || memcmp(name + length - suffix, counts[i].text, suffix) != 0) continue;
    /* a name for i64, not a type that vectors are named after */
    bool is_index = length - suffix == 5 && memcmp(name, "index", 5) == 0;
    *element = is_index ? KJIT_ANY : kj_find_scalar(name, length - suffix);
    *lanes = counts[i].lanes;
    return *element != KJIT_ANY && kj_type(NULL, *element)->class_ != KJ_CLASS_COMPLEX;
  }
  return false;
}

bool kj_is_type_name(const char *name, size_t length)
{
  kjit_type element;
  uint32_t lanes;
  return kj_find_scalar(name, length) != KJIT_ANY ||
         kj_split_vector(name, length, &element, &lanes);
}

bool kj_find_type(kj_types *types, const char *name, size_t length, kjit_type *type)
{
  kjit_type element;
  uint32_t lanes;
  bool is_vector = kj_split_vector(name, length, &element, &lanes);
  *type = is_vector ? kj_intern_vector(types, element, lanes) : kj_find_scalar(name, length);
  return !is_vector || *type != KJIT_ANY;
}

kjit_type kj_intern_pointer(kj_types *types, kjit_type element, bool read_only)
{
  return kj_intern(types, &(kj_type_info){ .class_ = KJ_CLASS_POINTER,
                                           .element = element,
                                           .read_only = read_only,
                                           .size_bytes = sizeof(void *),
                                           .alignment_bytes = sizeof(void *) });
}

void kj_lay_out_array(const kj_types *types, kj_type_info *array)
{
  const kj_type_info *element = kj_type(types, array->element);
  uint64_t bytes = element->size_bytes;
  for (uint32_t i = 0; i < array->rank; i++)
    if (__builtin_mul_overflow(bytes, (uint64_t)array->extents[i], &bytes)) bytes = UINT32_MAX;
  array->size_bytes = bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)bytes;
  array->alignment_bytes = alignment_of(element);
}

kjit_type kj_intern_struct(kj_types *types, const char *name, const char *const *field_names,
                           const kjit_type *items, uint32_t count, kj_struct_layout layout)
{
  bool is_packed = layout.is_packed;
  uint32_t *offsets = calloc(count + 1, sizeof *offsets);
  if (!offsets) return KJIT_ANY;
  kj_type_info wanted = { .class_ = KJ_CLASS_STRUCT,
                          .name = name,
                          .field_names = field_names,
                          .items = items,
                          .count = count,
                          .is_packed = is_packed };
  wanted.offsets_bytes = offsets;
  wanted.alignment_bytes = layout.alignment_bytes ? layout.alignment_bytes : 1;
  for (uint32_t i = 0; i < count; i++) {
    const kj_type_info *field = kj_type(types, items[i]);
    uint32_t alignment = is_packed ? 1 : alignment_of(field);
    offsets[i] = round_up(wanted.size_bytes, alignment);
    wanted.size_bytes = offsets[i] + field->size_bytes;
    if (alignment > wanted.alignment_bytes) wanted.alignment_bytes = alignment;
  }
  wanted.size_bytes = round_up(wanted.size_bytes, wanted.alignment_bytes);
  kjit_type type = kj_intern(types, &wanted);
  free(offsets);
  return type;
}

uint64_t kj_element_count(const kj_type_info *array)
{
  uint64_t count = 1;
  for (uint32_t d = 0; d < array->rank; d++) count *= (uint64_t)array->extents[d];
  return count;
}

uint32_t kj_component_count(const kj_types *types, kjit_type type)
{
  const kj_type_info *info = kj_type(types, type);
  if (info->class_ == KJ_CLASS_COMPLEX) return 2;
  return info->class_ == KJ_CLASS_VECTOR || info->class_ == KJ_CLASS_STRUCT ? info->count : 0;
}

kj_component kj_get_component(const kj_types *types, kjit_type type, uint32_t index)
{
  const kj_type_info *info = kj_type(types, type);
  if (info->class_ == KJ_CLASS_STRUCT)
    return (kj_component){ .index = index,
                           .type = info->items[index],
                           .offset_bytes = info->offsets_bytes[index] };
  kjit_type part = info->class_ == KJ_CLASS_VECTOR ? info->element
                   : type == KJIT_C64              ? KJIT_F32
                                                   : KJIT_F64;
  return (kj_component){ .index = index,
                         .type = part,
                         .offset_bytes = index * kj_type(types, part)->size_bytes };
}
