/* Values of several parts: structs, arrays in structs, pointers, vectors, complex numbers. */
#include <string.h>

#include "typing/infer.h"

/* Values made of others: structs, arrays inside structs, vectors, complex numbers, pointers. Which
 * parts they have, and the nodes for them. */

bool kj_is_struct(const kj_compilation *c, kjit_type type)
{
  return kj_class_of(c, type) == KJ_CLASS_STRUCT;
}
bool kj_is_vector(const kj_compilation *c, kjit_type type)
{
  return kj_class_of(c, type) == KJ_CLASS_VECTOR;
}
bool kj_is_complex(const kj_compilation *c, kjit_type type)
{
  return kj_class_of(c, type) == KJ_CLASS_COMPLEX;
}
bool kj_is_pointer(const kj_compilation *c, kjit_type type)
{
  return kj_class_of(c, type) == KJ_CLASS_POINTER;
}

bool kj_is_value_array(const kj_compilation *c, kjit_type type)
{
  const kj_type_info *info = kj_type(c->types, type);
  return info->class_ == KJ_CLASS_ARRAY && info->space == KJ_SPACE_VALUE;
}

bool kj_is_composed(const kj_compilation *c, kjit_type type)
{
  return kj_is_struct(c, type) || kj_is_vector(c, type) || kj_is_complex(c, type) ||
         kj_is_pointer(c, type) || kj_is_value_array(c, type);
}

/* ---- components by name ---- */

static bool find_named(const char *const *names, uint32_t count, const char *name, uint32_t *index)
{
  for (*index = 0; *index < count; ++*index)
    if (strcmp(names[*index], name) == 0) return true;
  return false;
}

bool kj_find_component(const kj_compilation *c, kjit_type type, const char *name,
                       kj_component *component)
{
  static const char *const lanes[] = { "x", "y", "z", "w" }, *const parts[] = { "real", "imag" };
  const kj_type_info *info = kj_type(c->types, type);
  uint32_t index;
  bool is_found = false;
  if (info->class_ == KJ_CLASS_STRUCT)
    is_found = find_named(info->field_names, info->count, name, &index);
  if (info->class_ == KJ_CLASS_VECTOR)
    is_found = find_named(lanes, info->count < 4 ? info->count : 4, name, &index);
  if (info->class_ == KJ_CLASS_COMPLEX) is_found = find_named(parts, 2, name, &index);
  if (is_found) *component = kj_get_component(c->types, type, index);
  return is_found;
}

/* ---- values ---- */

kj_texpr *kj_make_composed(kj_scope *s, kjit_type type, const kj_texprs *parts,
                           kj_location location)
{
  kj_texpr *value = kj_new_texpr(s->c, KJ_T_TUPLE, type, location);
  value->args = *parts;
  return value;
}

/* Parts of parts count one by one; saturates. */
uint64_t kj_count_parts(const kj_compilation *c, kjit_type type)
{
  const kj_type_info *info = kj_type(c->types, type);
  uint64_t count = 0;
  if (info->class_ == KJ_CLASS_ARRAY) {
    count = kj_count_parts(c, info->element);
    for (uint32_t d = 0; d < info->rank; d++)
      if (__builtin_mul_overflow(count, (uint64_t)info->extents[d], &count)) return UINT32_MAX;
    return count < UINT32_MAX ? count : UINT32_MAX;
  }
  uint32_t components = kj_component_count(c->types, type);
  for (uint32_t i = 0; i < components; i++)
    count += kj_count_parts(c, kj_get_component(c->types, type, i).type);
  return components ? (count < UINT32_MAX ? count : UINT32_MAX) : 1;
}

/* ---- values where one of a type is kept ---- */

enum { MOST_PARTS = 1024 };

/* Arrays inside structs are made of their elements one by one. */
static void check_parts(kj_scope *s, kjit_type type, kj_location location)
{
  if (kj_count_parts(s->c, type) > MOST_PARTS)
    kj_fail(s->c, location, KJIT_ERROR_UNSUPPORTED,
            "a value of type %s has more than %d parts: assign its fields and their elements",
            kj_type_text(s->c, type), MOST_PARTS);
}

static bool have_equal_extents(const kj_type_info *a, const kj_type_info *b)
{
  return a->is_static && a->rank == b->rank &&
         memcmp(a->extents, b->extents, a->rank * sizeof *a->extents) == 0;
}

/* The indices of element `place` in row-major order. */
kj_texprs kj_indices_of(kj_scope *s, const kj_type_info *array, int64_t place, kj_location location)
{
  kj_texprs indices = { 0 };
  for (uint32_t d = 0; d < array->rank; d++) {
    int64_t below = 1;
    for (uint32_t i = d + 1; i < array->rank; i++) below *= array->extents[i];
    KJ_PUSH(s->arena, &indices,
            kj_new_integer(s, KJIT_INDEX, place / below % array->extents[d], location));
  }
  return indices;
}

static kj_texpr *load_elements(kj_scope *s, kj_texpr *array, kjit_type type, kj_location location)
{
  const kj_type_info *info = kj_type(s->c->types, type);
  int64_t count = (int64_t)kj_element_count(info);
  kj_texprs parts = { 0 };
  array = kj_keep_value(s, array);
  for (int64_t i = 0; i < count; i++) {
    kj_texpr *load = kj_new_texpr(s->c, KJ_T_LOAD, info->element, location);
    load->x = kj_copy_texpr(s, array);
    load->args = kj_indices_of(s, info, i, location);
    KJ_PUSH(s->arena, &parts, load);
  }
  return kj_make_composed(s, type, &parts, location);
}

/* A tuple of as many items, nested where there are more dimensions. */
static void add_items(kj_scope *s, kj_texprs *parts, kj_texpr *value, const kj_type_info *array,
                      uint32_t dimension, const char *what, kj_location location)
{
  if (dimension == array->rank) {
    KJ_PUSH(s->arena, parts, kj_fit_value(s, value, array->element, what, location));
    return;
  }
  const kj_type_info *info = kj_type(s->c->types, value->type);
  if (info->class_ != KJ_CLASS_TUPLE || (int64_t)info->count != array->extents[dimension])
    kj_fail(s->c, location, KJIT_ERROR_TYPE, "%s takes %lld values here, got %s", what,
            (long long)array->extents[dimension], kj_type_text(s->c, value->type));
  for (uint32_t i = 0; i < info->count; i++)
    add_items(s, parts, kj_make_item(s, kj_copy_texpr(s, value), i, location), array, dimension + 1,
              what, location);
}

static kj_texpr *fit_elements(kj_scope *s, kj_texpr *value, kjit_type type, const char *what,
                              kj_location location)
{
  const kj_type_info *want = kj_type(s->c->types, type), *have = kj_type(s->c->types, value->type);
  check_parts(s, type, location);
  if (have->class_ == KJ_CLASS_TUPLE) {
    kj_texprs parts = { 0 };
    add_items(s, &parts, kj_keep_value(s, value), want, 0, what, location);
    return kj_make_composed(s, type, &parts, location);
  }
  value = kj_make_concrete(s, value);
  have = kj_type(s->c->types, value->type);
  bool fits = kj_is_array(s->c, value->type) && have->element == want->element &&
              have_equal_extents(have, want);
  if (!fits)
    kj_fail(s->c, location, KJIT_ERROR_TYPE, "%s has type %s; the value is %s", what,
            kj_type_text(s->c, type), kj_type_text(s->c, value->type));
  return load_elements(s, value, type, location);
}

static bool adds_const(const kj_compilation *c, kjit_type from, kjit_type to)
{
  const kj_type_info *have = kj_type(c->types, from), *want = kj_type(c->types, to);
  return have->class_ == KJ_CLASS_POINTER && want->class_ == KJ_CLASS_POINTER &&
         have->element == want->element && want->read_only;
}

kj_texpr *kj_fit_value(kj_scope *s, kj_texpr *value, kjit_type type, const char *what,
                       kj_location location)
{
  if (value->type == type) {
    if (kj_is_struct(s->c, type)) check_parts(s, type, location);
    return value;
  }
  if (kj_is_value_array(s->c, type)) return fit_elements(s, value, type, what, location);
  if (adds_const(s->c, value->type, type)) {
    kj_texpr *convert = kj_new_texpr(s->c, KJ_T_CONVERT, type, location);
    convert->x = value;
    return convert;
  }
  return kj_convert_stored(s, value, type, what, location);
}

/* ---- structs from their fields ---- */

kj_texpr *kj_construct_struct(kj_scope *s, const kj_texprs *values, kjit_type type,
                              kj_location location)
{
  const kj_type_info *info = kj_type(s->c->types, type);
  kj_texprs parts = { 0 };
  if (values->count == 1 && values->items[0]->type == type) return values->items[0];
  if (values->count != info->count)
    kj_fail(s->c, location, KJIT_ERROR_TYPE,
            "`%s` takes a value for each of its %u field%s, got %zu", info->name, info->count,
            info->count == 1 ? "" : "s", values->count);
  for (uint32_t i = 0; i < info->count; i++) {
    const char *what = kj_format(s->arena, "field `%s` of `%s`", info->field_names[i], info->name);
    KJ_PUSH(s->arena, &parts,
            kj_fit_value(s, values->items[i], info->items[i], what, values->items[i]->location));
  }
  return kj_make_composed(s, type, &parts, location);
}

kj_texpr *kj_make_zero(kj_scope *s, kjit_type type, kj_location location)
{
  const kj_type_info *info = kj_type(s->c->types, type);
  kj_texprs parts = { 0 };
  if (kj_is_pointer(s->c, type)) {
    kj_texpr *convert = kj_new_texpr(s->c, KJ_T_CONVERT, type, location);
    convert->x = kj_new_integer(s, KJIT_U64, 0, location);
    return convert;
  }
  if (!kj_is_composed(s->c, type))
    return kj_convert(s, kj_new_integer(s, KJ_WEAK_INT, 0, location), type, location);
  check_parts(s, type, location);
  if (kj_is_value_array(s->c, type)) {
    uint64_t count = kj_count_parts(s->c, type) / kj_count_parts(s->c, info->element);
    for (uint64_t i = 0; i < count; i++)
      KJ_PUSH(s->arena, &parts, kj_make_zero(s, info->element, location));
  }
  uint32_t components = kj_component_count(s->c->types, type);
  for (uint32_t i = 0; i < components; i++)
    KJ_PUSH(s->arena, &parts,
            kj_make_zero(s, kj_get_component(s->c->types, type, i).type, location));
  return kj_make_composed(s, type, &parts, location);
}

/* Numbers of several parts: vectors, which every operator and element-wise built-in takes lane by
 * lane, and complex numbers. Their types, conversion, construction and lanes; operators on them are
 * in operators_lanes.c. */

bool kj_has_parts(const kj_compilation *c, kjit_type type)
{
  return kj_is_vector(c, type) || kj_is_complex(c, type);
}

kjit_type kj_part_type(const kj_compilation *c, kjit_type type)
{
  return kj_has_parts(c, type) ? kj_get_component(c->types, type, 0).type : type;
}

kjit_type kj_vector_of(kj_scope *s, kjit_type element, uint32_t lanes)
{
  kjit_type type = kj_intern_vector(s->c->types, element, lanes);
  if (type == KJIT_ANY) longjmp(*s->c->on_failure, KJ_JUMP_MEMORY);
  return type;
}

kjit_type kj_with_part(kj_scope *s, kjit_type like, kjit_type part)
{
  if (kj_is_vector(s->c, like)) return kj_vector_of(s, part, kj_type(s->c->types, like)->count);
  return part == KJIT_F64 ? KJIT_C128 : KJIT_C64;
}

kj_texpr *kj_map_parts(kj_scope *s, kjit_type type, kj_texpr *value, kj_make_part make,
                       const void *data, kj_location location)
{
  kj_texprs parts = { 0 };
  uint32_t count = kj_component_count(s->c->types, value->type);
  if (value->kind != KJ_T_TUPLE || kj_has_effect(value)) value = kj_keep_value(s, value);
  for (uint32_t i = 0; i < count; i++)
    KJ_PUSH(s->arena, &parts,
            make(s, kj_make_item(s, kj_copy_texpr(s, value), i, location), i, data));
  return kj_make_composed(s, type, &parts, location);
}

/* ---- conversion ---- */

static _Noreturn void fail_lanes(kj_scope *s, const kj_texpr *value, kjit_type type)
{
  const char *to = kj_type_text(s->c, type);
  kj_fail(s->c, value->location, KJIT_ERROR_TYPE,
          "%s does not become %s, which has another number of lanes: write which, `%s(v.x, ...)`",
          kj_type_text(s->c, value->type), to, to);
}

static _Noreturn void fail_whole(kj_scope *s, const kj_texpr *value, kjit_type type)
{
  const char *from = kj_type_text(s->c, value->type);
  if (kj_is_vector(s->c, value->type))
    kj_fail(s->c, value->location, KJIT_ERROR_TYPE,
            "expected a number, got %s; write which lane: `v.x`, `v[i]`", from);
  if (kj_is_complex(s->c, value->type))
    kj_fail(s->c, value->location, KJIT_ERROR_TYPE,
            "%s does not become %s: write `real(z)`, `imag(z)` or `abs(z)`", from,
            kj_type_text(s->c, type));
  kj_fail(s->c, value->location, KJIT_ERROR_TYPE, "expected a number or %s, got %s",
          kj_type_text(s->c, type), from);
}

static kj_texpr *convert_part(kj_scope *s, kj_texpr *part, uint32_t index, const void *data)
{
  (void)index;
  return kj_convert(s, part, *(const kjit_type *)data, part->location);
}

/* All lanes alike; the imaginary part of a real number is 0. */
static kj_texpr *spread(kj_scope *s, kj_texpr *value, kjit_type type, kj_location location)
{
  kj_texprs parts = { 0 };
  kjit_type part = kj_part_type(s->c, type);
  uint32_t count = kj_component_count(s->c->types, type);
  value = kj_convert(s, value, part, location);
  if (kj_is_vector(s->c, type)) value = kj_keep_value(s, value);
  KJ_PUSH(s->arena, &parts, value);
  for (uint32_t i = 1; i < count; i++)
    KJ_PUSH(s->arena, &parts,
            kj_is_vector(s->c, type) ? kj_copy_texpr(s, value)
                                     : kj_new_number(s, part, 0, location));
  return kj_make_composed(s, type, &parts, location);
}

kj_texpr *kj_convert_parts(kj_scope *s, kj_texpr *value, kjit_type type, kj_location location)
{
  const kj_compilation *c = s->c;
  if (value->type == type) return value;
  if (!kj_has_parts(c, type)) fail_whole(s, value, type);
  if (kj_is_number(c, value->type)) return spread(s, value, type, location);
  if (kj_class_of(c, value->type) != kj_class_of(c, type)) fail_whole(s, value, type);
  if (kj_component_count(c->types, value->type) != kj_component_count(c->types, type))
    fail_lanes(s, value, type);
  kjit_type part = kj_part_type(c, type);
  if (value->kind == KJ_T_TUPLE) return kj_map_parts(s, type, value, convert_part, &part, location);
  kj_texpr *convert = kj_new_texpr(s->c, KJ_T_CONVERT, type, location);
  convert->x = value;
  return convert;
}

bool kj_keeps_parts(const kj_compilation *c, kjit_type from, kjit_type to)
{
  if (!kj_has_parts(c, from)) return true;
  return kj_class_of(c, from) == kj_class_of(c, to) &&
         kj_component_count(c->types, from) == kj_component_count(c->types, to);
}

kjit_type kj_promote_parts(kj_scope *s, kjit_type a, kjit_type b, kj_location location)
{
  const kj_compilation *c = s->c;
  bool a_vector = kj_is_vector(c, a), b_vector = kj_is_vector(c, b);
  bool is_mixed = (a_vector && kj_is_complex(c, b)) || (b_vector && kj_is_complex(c, a));
  bool differ = a_vector && b_vector && kj_type(c->types, a)->count != kj_type(c->types, b)->count;
  bool are_numbers =
    (kj_has_parts(c, a) || kj_is_number(c, a)) && (kj_has_parts(c, b) || kj_is_number(c, b));
  if (is_mixed || differ || !are_numbers) return KJIT_ANY;
  kjit_type part = kj_promote(s, kj_part_type(c, a), kj_part_type(c, b), location);
  return part == KJIT_ANY ? KJIT_ANY : kj_with_part(s, kj_has_parts(c, a) ? a : b, part);
}

/* ---- construction: f32x4(v.xy, 0, 1), f32x4(1), c64(re, im) ---- */

static void add_lanes(kj_scope *s, kj_texprs *parts, kj_texpr *value, kjit_type lane)
{
  if (kj_is_number(s->c, value->type)) {
    KJ_PUSH(s->arena, parts, kj_convert(s, value, lane, value->location));
    return;
  }
  if (!kj_is_vector(s->c, value->type))
    kj_fail(s->c, value->location, KJIT_ERROR_TYPE,
            "a vector is made of numbers and vectors, got %s", kj_type_text(s->c, value->type));
  uint32_t count = kj_type(s->c->types, value->type)->count;
  value = kj_keep_value(s, value);
  for (uint32_t i = 0; i < count; i++)
    KJ_PUSH(s->arena, parts,
            kj_convert(s, kj_make_item(s, kj_copy_texpr(s, value), i, value->location), lane,
                       value->location));
}

static kj_texpr *make_vector(kj_scope *s, const kj_texprs *values, kjit_type type,
                             kj_location location)
{
  kj_texprs parts = { 0 };
  uint32_t lanes = kj_type(s->c->types, type)->count;
  for (size_t i = 0; i < values->count; i++)
    add_lanes(s, &parts, values->items[i], kj_part_type(s->c, type));
  if (parts.count != lanes)
    kj_fail(s->c, location, KJIT_ERROR_TYPE, "%s has %u lanes, here are %zu",
            kj_type_text(s->c, type), lanes, parts.count);
  return kj_make_composed(s, type, &parts, location);
}

static kj_texpr *make_complex(kj_scope *s, const kj_texprs *values, kjit_type type,
                              kj_location location)
{
  kj_texprs parts = { 0 };
  if (values->count != 2)
    kj_fail(s->c, location, KJIT_ERROR_TYPE,
            "`%s` takes a real and an imaginary part, got %zu values", kj_type_text(s->c, type),
            values->count);
  for (size_t i = 0; i < 2; i++)
    KJ_PUSH(s->arena, &parts,
            kj_convert(s, values->items[i], kj_part_type(s->c, type), values->items[i]->location));
  return kj_make_composed(s, type, &parts, location);
}

kj_texpr *kj_construct_parts(kj_scope *s, const kj_texprs *values, kjit_type type,
                             kj_location location)
{
  bool is_conversion =
    values->count == 1 && (kj_is_number(s->c, values->items[0]->type) ||
                           kj_class_of(s->c, values->items[0]->type) == kj_class_of(s->c, type));
  if (is_conversion) return kj_convert_parts(s, values->items[0], type, location);
  return kj_is_vector(s->c, type) ? make_vector(s, values, type, location)
                                  : make_complex(s, values, type, location);
}

/* ---- lanes ---- */

/* `v.xyz`: one to four of the first four lanes. */
kj_texpr *kj_infer_swizzle(kj_scope *s, const kj_expr *expr, kj_texpr *value)
{
  const char *name = expr->name;
  kj_location location = expr->location;
  size_t count = strlen(name);
  kj_texprs parts = { 0 };
  if (!kj_is_vector(s->c, value->type) || count > 4) return NULL;
  if (count > 1) value = kj_keep_value(s, value);
  for (size_t i = 0; i < count; i++) {
    kj_component lane;
    if (!kj_find_component(s->c, value->type, (char[]){ name[i], 0 }, &lane)) return NULL;
    KJ_PUSH(s->arena, &parts, kj_make_item(s, kj_copy_texpr(s, value), lane.index, location));
  }
  return count == 1
           ? parts.items[0]
           : kj_make_composed(s, kj_vector_of(s, kj_part_type(s->c, value->type), (uint32_t)count),
                              &parts, location);
}

/* ---- variables and tuples ---- */

kj_texpr *kj_make_var(kj_scope *s, kj_tvar *var, kj_location location)
{
  kj_texpr *expr = kj_new_texpr(s->c, KJ_T_VAR, var->type, location);
  expr->var = var;
  return expr;
}

/* An array in a tuple is a reference to it. */
static uint64_t count_values(const kj_compilation *c, kjit_type type)
{
  const kj_type_info *info = kj_type(c->types, type);
  if (info->class_ == KJ_CLASS_ARRAY) return 1;
  if (info->class_ != KJ_CLASS_TUPLE) return kj_count_parts(c, type);
  uint64_t count = 0;
  for (uint32_t i = 0; i < info->count; i++) count += count_values(c, info->items[i]);
  return count;
}

kjit_type kj_tuple_type(kj_scope *s, const kjit_type *items, uint32_t count, kj_location location)
{
  enum { MOST_VALUES = 1024 };
  kjit_type type = kj_intern_tuple(s->c->types, items, count);
  if (type == KJIT_ANY) longjmp(*s->c->on_failure, KJ_JUMP_MEMORY);
  if (count_values(s->c, type) > MOST_VALUES)
    kj_fail(s->c, location, KJIT_ERROR_UNSUPPORTED,
            "a tuple of more than %d numbers, those of tuples in it counted: keep them in a "
            "`local` array",
            MOST_VALUES);
  return type;
}

kj_texpr *kj_make_tuple(kj_scope *s, const kj_texprs *items, kj_location location)
{
  kjit_type *types = KJ_NEW_ARRAY(s->arena, kjit_type, items->count + 1);
  for (size_t i = 0; i < items->count; i++) types[i] = items->items[i]->type;
  kjit_type type = kj_tuple_type(s, types, (uint32_t)items->count, location);
  kj_texpr *tuple = kj_new_texpr(s->c, KJ_T_TUPLE, type, location);
  tuple->args = *items;
  return tuple;
}

kj_texpr *kj_make_item(kj_scope *s, kj_texpr *tuple, uint32_t index, kj_location location)
{
  if (tuple->kind == KJ_T_TUPLE && !kj_has_effect(tuple)) return tuple->args.items[index];
  kjit_type type = kj_is_tuple(s->c, tuple->type)
                     ? kj_type(s->c->types, tuple->type)->items[index]
                     : kj_get_component(s->c->types, tuple->type, index).type;
  kj_texpr *item = kj_new_texpr(s->c, KJ_T_ITEM, type, location);
  item->x = tuple;
  item->dimension = index;
  return item;
}
