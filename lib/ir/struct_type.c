/* Struct types that a host makes and looks at. */
#include <stdlib.h>
#include <string.h>

#include "ir/lexer.h"
#include "ir/module.h"
#include "support/context.h"

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
  if (!field->name || !kj_is_name(field->name))
    return kj_fail_call(context, KJIT_ERROR_NAME,
                        "field %zu of a struct has no name of the language", index);
  if (is_declared_twice(fields, index))
    return kj_fail_call(context, KJIT_ERROR_NAME, "two fields of a struct are called `%s`",
                        field->name);
  if (!kj_is_element(context->types, field->type))
    return kj_fail_call(context, KJIT_ERROR_MISUSE,
                        "field `%s`: a field is a scalar, vector, struct or pointer, or an array "
                        "of these by its shape",
                        field->name);
  if (kj_is_too_deep(context->types, field->type))
    return kj_fail_call(context, KJIT_ERROR_UNSUPPORTED,
                        "field `%s`: structs and pointers nest at most %d levels deep", field->name,
                        KJ_MAX_TYPE_LEVELS);
  if (field->rank > KJ_MAX_RANK)
    return kj_fail_call(context, KJIT_ERROR_MISUSE,
                        "field `%s`: an array has at most %d dimensions", field->name, KJ_MAX_RANK);
  uint64_t size = kj_type(context->types, field->type)->size_bytes;
  for (uint32_t i = 0; i < field->rank; i++) {
    if (field->shape[i] < 1)
      return kj_fail_call(context, KJIT_ERROR_MISUSE, "field `%s`: an extent is at least 1",
                          field->name);
    if (__builtin_mul_overflow(size, (uint64_t)field->shape[i], &size) || size > MAX_STRUCT_BYTES)
      size = MAX_STRUCT_BYTES + 1;
  }
  *bytes += size;
  if (*bytes > MAX_STRUCT_BYTES)
    return kj_fail_call(context, KJIT_ERROR_UNSUPPORTED, "a struct has at most %d bytes",
                        MAX_STRUCT_BYTES);
  return KJIT_OK;
}

static kjit_status check_struct(kjit_context *context, const char *name, const kjit_field *fields,
                                size_t count, unsigned flags)
{
  if (!name || !kj_is_name(name) || kj_is_type_name(name, strlen(name)))
    return kj_fail_call(context, KJIT_ERROR_NAME,
                        "`%s` cannot be the name of a struct: letters, digits and `_`, no digit "
                        "first, no word or type of the language",
                        name ? name : "");
  if (!fields || count < 1 || count > MAX_FIELDS)
    return kj_fail_call(context, KJIT_ERROR_MISUSE, "a struct has from 1 to %d fields", MAX_FIELDS);
  if (flags & ~(unsigned)KJIT_STRUCT_PACKED)
    return kj_fail_call(context, KJIT_ERROR_MISUSE, "flags %#x of a struct are not known", flags);
  uint64_t bytes = 0;
  for (size_t i = 0; i < count; i++) {
    kjit_status status = check_field(context, fields, i, &bytes);
    if (status != KJIT_OK) return status;
  }
  return KJIT_OK;
}

static kjit_type item_type(kj_types *types, const kjit_field *field)
{
  if (!field->rank) return field->type;
  kj_type_info info = { .element = field->type,
                        .rank = field->rank,
                        .layout = KJIT_LAYOUT_C,
                        .space = KJ_SPACE_VALUE,
                        .is_static = true };
  memcpy(info.extents, field->shape, field->rank * sizeof *field->shape);
  return kj_intern_array(types, &info);
}

static kjit_type make_struct(kj_types *types, const char *name, const kjit_field *fields,
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
    type = kj_intern_struct(types, name, names, items, (uint32_t)count,
                            (kj_struct_layout){ .is_packed = flags & KJIT_STRUCT_PACKED });
  free(names);
  free(items);
  return type;
}

kjit_type kjit_get_struct_type(kjit_context *context, const char *name, const kjit_field *fields,
                               size_t count, unsigned flags)
{
  if (!context || check_struct(context, name, fields, count, flags) != KJIT_OK) return KJIT_VOID;
  kjit_type type = make_struct(context->types, name, fields, count, flags);
  if (type != KJIT_ANY) return type;
  (void)!kj_fail_call(context, KJIT_ERROR_MEMORY, "out of memory");
  return KJIT_VOID;
}

/* ---- layout ---- */

kjit_status kjit_get_type_layout(kjit_context *context, kjit_type type, kjit_type_layout *layout)
{
  if (!context) return KJIT_ERROR_MISUSE;
  if (!layout)
    return kj_fail_call(context, KJIT_ERROR_MISUSE,
                        "kjit_get_type_layout needs a place for the layout");
  if (!kj_is_element(context->types, type))
    return kj_fail_call(context, KJIT_ERROR_ARGUMENT,
                        "only scalars, vectors, structs and pointers have a layout");
  const kj_type_info *info = kj_type(context->types, type);
  *layout = (kjit_type_layout){ info->size_bytes, kj_alignment(context->types, type),
                                info->class_ == KJ_CLASS_STRUCT ? info->count : 0 };
  return KJIT_OK;
}

kjit_status kjit_get_type_field(kjit_context *context, kjit_type type, uint32_t index,
                                kjit_field *field, uint32_t *offset_bytes)
{
  if (!context) return KJIT_ERROR_MISUSE;
  const kj_type_info *info =
    kj_has_type(context->types, type) ? kj_type(context->types, type) : NULL;
  if (!info || info->class_ != KJ_CLASS_STRUCT)
    return kj_fail_call(context, KJIT_ERROR_ARGUMENT, "only structs have fields");
  if (index >= info->count)
    return kj_fail_call(context, KJIT_ERROR_ARGUMENT, "struct `%s` has %u fields, not %u",
                        info->name, info->count, index + 1);
  const kj_type_info *item = kj_type(context->types, info->items[index]);
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
