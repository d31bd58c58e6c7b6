/* Values as bytes: determines which types consist only of the bytes of numbers and addresses, and
 * has the typing rule of bitcast. */
#include "typing/rules.h"

/* ---- gaps ---- */

/* If a type has bytes that are not part of a number or an address, returns a description of these
 * bytes, otherwise NULL. A type with such bytes cannot be used as bytes, because the padding of a
 * struct is uninitialized, and because a byte other than 0 or 1 is not a valid bool. `name` is the
 * name of the value, or "" for the whole value. */
static const char *find_gap(kt_scope *s, kjit_type type, const char *name);

static const char *padding_text(kt_scope *s, uint32_t bytes, const char *where, const char *field)
{
  KJ_ASSERT(bytes);
  return kj_format(s->arena, "%u byte%s of padding %s `%s`: declare a field for the padding", bytes,
                   bytes == 1 ? "" : "s", where, field);
}

static const char *find_gap_in_struct(kt_scope *s, const ki_type_info *info, const char *name)
{
  KJ_ASSERT(info->class_ == KJ_CLASS_STRUCT && info->count);
  const char *field = name;
  uint32_t end = 0;
  for (uint32_t i = 0; i < info->count; i++) {
    field = kj_format(s->arena, "%s%s%s", name, name[0] ? "." : "", info->field_names[i]);
    if (info->offsets_bytes[i] > end)
      return padding_text(s, info->offsets_bytes[i] - end, "before", field);
    const char *gap = find_gap(s, info->items[i], field);
    if (gap) return gap;
    end = info->offsets_bytes[i] + ki_type(s->c->types, info->items[i])->size_bytes;
  }
  return end < info->size_bytes ? padding_text(s, info->size_bytes - end, "after", field) : NULL;
}

static const char *find_gap(kt_scope *s, kjit_type type, const char *name)
{
  const ki_type_info *info = ki_type(s->c->types, type);
  if (type == KJIT_BOOL && !name[0]) return "bits that a bool does not use";
  if (type == KJIT_BOOL)
    return kj_format(s->arena, "a bool, `%s`, whose byte must be 0 or 1: declare it as u8", name);
  if (info->class_ == KJ_CLASS_STRUCT) return find_gap_in_struct(s, info, name);
  bool has_elements = info->class_ == KJ_CLASS_VECTOR || info->class_ == KJ_CLASS_ARRAY;
  return has_elements ? find_gap(s, info->element, name) : NULL;
}

const char *kt_find_gap(kt_scope *s, kjit_type type) { return find_gap(s, type, ""); }

/* ---- bitcast ---- */

/* A bitcast of a struct uses an integer of the same size, so the size is limited. */
enum { MOST_STRUCT_BYTES = 128 };

static bool is_castable(kt_scope *s, kjit_type type)
{
  return kt_is_number(s->c, type) || kt_has_parts(s->c, type) || kt_is_struct(s->c, type);
}

static void check_struct(kt_scope *s, const kt_operands *o, kjit_type type)
{
  const char *gap = kt_is_struct(s->c, type) ? kt_find_gap(s, type) : NULL;
  uint32_t bytes = ki_type(s->c->types, type)->size_bytes;
  if (gap)
    kt_fail(s->c, o->location, KJIT_ERROR_TYPE,
            "`bitcast` copies all bytes of a value, but %s has %s", kt_type_text(s->c, type), gap);
  if (kt_is_struct(s->c, type) && bytes > MOST_STRUCT_BYTES)
    kt_fail(s->c, o->location, KJIT_ERROR_TYPE,
            "`bitcast` supports structs with up to %u bytes, but %s has %u; a pointer to the "
            "struct can be `bitcast`",
            MOST_STRUCT_BYTES, kt_type_text(s->c, type), bytes);
}

/* Converts a literal to the scalar type that has this size. */
static kt_expr *literal_of_size(kt_scope *s, kt_expr *value, uint32_t size)
{
  if (value->type == KJ_WEAK_FLOAT)
    return kt_convert(s, value,
                      size == 2   ? KJIT_F16
                      : size == 4 ? KJIT_F32
                                  : KJIT_F64,
                      value->location);
  static const kjit_type types[][2] = {
    { KJIT_I8, KJIT_U8 }, { KJIT_I16, KJIT_U16 }, { KJIT_I32, KJIT_U32 }, { KJIT_I64, KJIT_U64 }
  };
  int row = size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3;
  bool fits = !kt_is_constant(value) || ki_integer_fits(types[row][0], value->integer);
  return kt_convert(s, value, types[row][!fits], value->location);
}

kt_expr *kt_rule_bitcast(kt_scope *s, const kt_operands *o)
{
  kt_expr *pointer = kt_bitcast_pointer(s, o);
  if (pointer) return pointer;
  kjit_type type = o->type_argument;
  kt_expr *value = o->values.items[0];
  if (!is_castable(s, type))
    kt_fail_number(s->c, o->location, type,
                   "`%s` needs the type of a number, vector or struct, got %s", o->builtin->name,
                   kt_type_text(s->c, type));
  if (!is_castable(s, value->type))
    kt_fail_number(s->c, value->location, value->type,
                   "`%s` needs a number, vector or struct, got %s", o->builtin->name,
                   kt_type_text(s->c, value->type));
  uint32_t size = ki_type(s->c->types, type)->size_bytes;
  if (ki_is_weak(value->type) && size <= 8) value = literal_of_size(s, value, size);
  else value = kt_make_concrete(s, value);
  bool has_bool =
    kt_part_type(s->c, type) == KJIT_BOOL || kt_part_type(s->c, value->type) == KJIT_BOOL;
  if (ki_type(s->c->types, value->type)->size_bytes != size || has_bool)
    kt_fail(s->c, o->location, KJIT_ERROR_TYPE,
            "`bitcast` needs two types with the same size, got %s and %s",
            kt_type_text(s->c, value->type), kt_type_text(s->c, type));
  check_struct(s, o, type);
  check_struct(s, o, value->type);
  uint64_t bits = 0;
  ki_value cast;
  if (kt_is_constant(value)) {
    ki_encode_value(kt_value_of(value), &bits);
    if (ki_decode_value(type, &bits, &cast)) return kt_new_value(s, cast, o->location);
  }
  kt_exprs values = { 0 };
  KJ_PUSH(s->arena, &values, value);
  return value->type == type ? value : kt_new_builtin_of(s, o, values, type);
}
