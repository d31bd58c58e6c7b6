/* Aggregates: structs, arrays inside structs, pointers, vectors and complex numbers. */
#include <string.h>

#include "typing/infer.h"

/* ---- components of aggregates, and the nodes that access them ---- */

bool kt_is_struct(const kt_compilation *c, kjit_type type)
{
  return kt_class_of(c, type) == KJ_CLASS_STRUCT;
}
bool kt_is_vector(const kt_compilation *c, kjit_type type)
{
  return kt_class_of(c, type) == KJ_CLASS_VECTOR;
}
bool kt_is_complex(const kt_compilation *c, kjit_type type)
{
  return kt_class_of(c, type) == KJ_CLASS_COMPLEX;
}
bool kt_is_pointer(const kt_compilation *c, kjit_type type)
{
  return kt_class_of(c, type) == KJ_CLASS_POINTER;
}

bool kt_is_value_array(const kt_compilation *c, kjit_type type)
{
  const ki_type_info *info = ki_type(c->types, type);
  return info->class_ == KJ_CLASS_ARRAY && info->space == KJ_SPACE_VALUE;
}

bool kt_is_composed(const kt_compilation *c, kjit_type type)
{
  return kt_is_struct(c, type) || kt_is_vector(c, type) || kt_is_complex(c, type) ||
         kt_is_pointer(c, type) || kt_is_value_array(c, type);
}

/* ---- components by name ---- */

static bool find_named(const char *const *names, uint32_t count, const char *name, uint32_t *index)
{
  for (*index = 0; *index < count; ++*index)
    if (strcmp(names[*index], name) == 0) return true;
  return false;
}

bool kt_find_component(const kt_compilation *c, kjit_type type, const char *name,
                       ki_component *component)
{
  static const char *const lanes[] = { "x", "y", "z", "w" }, *const parts[] = { "real", "imag" };
  const ki_type_info *info = ki_type(c->types, type);
  uint32_t index;
  bool is_found = false;
  if (info->class_ == KJ_CLASS_STRUCT)
    is_found = find_named(info->field_names, info->count, name, &index);
  if (info->class_ == KJ_CLASS_VECTOR)
    is_found = find_named(lanes, info->count < 4 ? info->count : 4, name, &index);
  if (info->class_ == KJ_CLASS_COMPLEX) is_found = find_named(parts, 2, name, &index);
  if (is_found) *component = ki_get_component(c->types, type, index);
  return is_found;
}

/* ---- values ---- */

kt_expr *kt_make_composed(kt_scope *s, kjit_type type, const kt_exprs *parts, kj_location location)
{
  kt_expr *value = kt_new_texpr(s->c, KJ_T_TUPLE, type, location);
  value->args = *parts;
  return value;
}

/* Counts all scalars, including those in nested components. The count saturates instead of
 * overflowing. */
uint64_t kt_count_parts(const kt_compilation *c, kjit_type type)
{
  const ki_type_info *info = ki_type(c->types, type);
  uint64_t count = 0;
  if (info->class_ == KJ_CLASS_ARRAY) {
    count = kt_count_parts(c, info->element);
    for (uint32_t d = 0; d < info->rank; d++)
      if (__builtin_mul_overflow(count, (uint64_t)info->extents[d], &count)) return UINT32_MAX;
    return count < UINT32_MAX ? count : UINT32_MAX;
  }
  uint32_t components = ki_component_count(c->types, type);
  for (uint32_t i = 0; i < components; i++)
    count += kt_count_parts(c, ki_get_component(c->types, type, i).type);
  return components ? (count < UINT32_MAX ? count : UINT32_MAX) : 1;
}

/* ---- conversion of a value to the type in which it is stored ---- */

enum { MOST_PARTS = 1024 };

/* Rejects types with too many components, because each element in an array inside a struct becomes
 * a separate expression. */
static void check_parts(kt_scope *s, kjit_type type, kj_location location)
{
  if (kt_count_parts(s->c, type) > MOST_PARTS)
    kt_fail(
      s->c, location, KJIT_ERROR_UNSUPPORTED,
      "a value of type %s has more than %d components; assign its fields and elements separately",
      kt_type_text(s->c, type), MOST_PARTS);
}

static bool have_equal_extents(const ki_type_info *a, const ki_type_info *b)
{
  return a->is_static && a->rank == b->rank &&
         memcmp(a->extents, b->extents, a->rank * sizeof *a->extents) == 0;
}

/* Returns the indices of the element with this number in row-major order. */
kt_exprs kt_indices_of(kt_scope *s, const ki_type_info *array, int64_t place, kj_location location)
{
  KJ_ASSERT(place >= 0 && (uint64_t)place < ki_element_count(array));
  kt_exprs indices = { 0 };
  for (uint32_t d = 0; d < array->rank; d++) {
    int64_t below = 1;
    for (uint32_t i = d + 1; i < array->rank; i++) below *= array->extents[i];
    KJ_PUSH(s->arena, &indices,
            kt_new_integer(s, KJIT_INDEX, place / below % array->extents[d], location));
  }
  return indices;
}

static kt_expr *load_elements(kt_scope *s, kt_expr *array, kjit_type type, kj_location location)
{
  KJ_ASSERT(kt_is_value_array(s->c, type));
  const ki_type_info *info = ki_type(s->c->types, type);
  int64_t count = (int64_t)ki_element_count(info);
  kt_exprs parts = { 0 };
  array = kt_keep_value(s, array);
  for (int64_t i = 0; i < count; i++) {
    kt_expr *load = kt_new_texpr(s->c, KJ_T_LOAD, info->element, location);
    load->x = kt_copy_texpr(s, array);
    load->args = kt_indices_of(s, info, i, location);
    KJ_PUSH(s->arena, &parts, load);
  }
  return kt_make_composed(s, type, &parts, location);
}

/* Appends the items in a tuple as the elements in an array. If the array has several dimensions,
 * the tuple is nested. */
static void add_items(kt_scope *s, kt_exprs *parts, kt_expr *value, const ki_type_info *array,
                      uint32_t dimension, const char *what, kj_location location)
{
  KJ_ASSERT(dimension <= array->rank);
  if (dimension == array->rank) {
    KJ_PUSH(s->arena, parts, kt_fit_value(s, value, array->element, what, location));
    return;
  }
  const ki_type_info *info = ki_type(s->c->types, value->type);
  if (info->class_ != KJ_CLASS_TUPLE || (int64_t)info->count != array->extents[dimension])
    kt_fail(s->c, location, KJIT_ERROR_TYPE, "%s needs %lld values here, got %s", what,
            (long long)array->extents[dimension], kt_type_text(s->c, value->type));
  for (uint32_t i = 0; i < info->count; i++)
    add_items(s, parts, kt_make_item(s, kt_copy_texpr(s, value), i, location), array, dimension + 1,
              what, location);
}

static kt_expr *fit_elements(kt_scope *s, kt_expr *value, kjit_type type, const char *what,
                             kj_location location)
{
  const ki_type_info *want = ki_type(s->c->types, type), *have = ki_type(s->c->types, value->type);
  check_parts(s, type, location);
  if (have->class_ == KJ_CLASS_TUPLE) {
    kt_exprs parts = { 0 };
    add_items(s, &parts, kt_keep_value(s, value), want, 0, what, location);
    return kt_make_composed(s, type, &parts, location);
  }
  value = kt_make_concrete(s, value);
  have = ki_type(s->c->types, value->type);
  bool fits = kt_is_array(s->c, value->type) && have->element == want->element &&
              have_equal_extents(have, want);
  if (!fits)
    kt_fail(s->c, location, KJIT_ERROR_TYPE, "%s has type %s; the value is %s", what,
            kt_type_text(s->c, type), kt_type_text(s->c, value->type));
  return load_elements(s, value, type, location);
}

static bool adds_const(const kt_compilation *c, kjit_type from, kjit_type to)
{
  const ki_type_info *have = ki_type(c->types, from), *want = ki_type(c->types, to);
  return have->class_ == KJ_CLASS_POINTER && want->class_ == KJ_CLASS_POINTER &&
         have->element == want->element && want->read_only;
}

kt_expr *kt_fit_value(kt_scope *s, kt_expr *value, kjit_type type, const char *what,
                      kj_location location)
{
  if (value->type == type) {
    if (kt_is_struct(s->c, type)) check_parts(s, type, location);
    return value;
  }
  if (kt_is_value_array(s->c, type)) return fit_elements(s, value, type, what, location);
  if (adds_const(s->c, value->type, type)) {
    kt_expr *convert = kt_new_texpr(s->c, KJ_T_CONVERT, type, location);
    convert->x = value;
    return convert;
  }
  return kt_convert_stored(s, value, type, what, location);
}

/* ---- structs from their fields ---- */

kt_expr *kt_construct_struct(kt_scope *s, const kt_exprs *values, kjit_type type,
                             kj_location location)
{
  KJ_ASSERT(kt_is_struct(s->c, type));
  const ki_type_info *info = ki_type(s->c->types, type);
  kt_exprs parts = { 0 };
  if (values->count == 1 && values->items[0]->type == type) return values->items[0];
  kt_expr *date = values->count == 1 ? kt_convert_date(s, values->items[0], type, location) : NULL;
  if (date) return date;
  if (values->count != info->count)
    kt_fail(s->c, location, KJIT_ERROR_TYPE,
            "`%s` takes one value for each of its %u field%s, got %zu", info->name, info->count,
            info->count == 1 ? "" : "s", values->count);
  for (uint32_t i = 0; i < info->count; i++) {
    const char *what = kj_format(s->arena, "field `%s` of `%s`", info->field_names[i], info->name);
    KJ_PUSH(s->arena, &parts,
            kt_fit_value(s, values->items[i], info->items[i], what, values->items[i]->location));
  }
  return kt_make_composed(s, type, &parts, location);
}

kt_expr *kt_make_zero(kt_scope *s, kjit_type type, kj_location location)
{
  const ki_type_info *info = ki_type(s->c->types, type);
  kt_exprs parts = { 0 };
  if (kt_is_pointer(s->c, type)) {
    kt_expr *convert = kt_new_texpr(s->c, KJ_T_CONVERT, type, location);
    convert->x = kt_new_integer(s, KJIT_U64, 0, location);
    return convert;
  }
  if (!kt_is_composed(s->c, type))
    return kt_convert(s, kt_new_integer(s, KJ_WEAK_INT, 0, location), type, location);
  check_parts(s, type, location);
  if (kt_is_value_array(s->c, type)) {
    uint64_t count = kt_count_parts(s->c, type) / kt_count_parts(s->c, info->element);
    for (uint64_t i = 0; i < count; i++)
      KJ_PUSH(s->arena, &parts, kt_make_zero(s, info->element, location));
  }
  uint32_t components = ki_component_count(s->c->types, type);
  for (uint32_t i = 0; i < components; i++)
    KJ_PUSH(s->arena, &parts,
            kt_make_zero(s, ki_get_component(s->c->types, type, i).type, location));
  return kt_make_composed(s, type, &parts, location);
}

/* ---- vectors and complex numbers ----
 *
 * Operators and element-wise built-ins apply to each lane in a vector. This section has types,
 * conversions, construction and lanes; operators_lanes.c has the operators. */

bool kt_has_parts(const kt_compilation *c, kjit_type type)
{
  return kt_is_vector(c, type) || kt_is_complex(c, type);
}

kjit_type kt_part_type(const kt_compilation *c, kjit_type type)
{
  return kt_has_parts(c, type) ? ki_get_component(c->types, type, 0).type : type;
}

kjit_type kt_vector_of(kt_scope *s, kjit_type element, uint32_t lanes)
{
  KJ_ASSERT(ki_is_scalar(element));
  kjit_type type = ki_intern_vector(s->c->types, element, lanes);
  if (type == KJIT_ANY) longjmp(*s->c->on_failure, KJ_JUMP_MEMORY);
  return type;
}

kjit_type kt_with_part(kt_scope *s, kjit_type like, kjit_type part)
{
  if (kt_is_vector(s->c, like)) return kt_vector_of(s, part, ki_type(s->c->types, like)->count);
  return part == KJIT_F64 ? KJIT_C128 : KJIT_C64;
}

kt_expr *kt_map_parts(kt_scope *s, kjit_type type, kt_expr *value, kt_make_part make,
                      const void *data, kj_location location)
{
  KJ_ASSERT(kt_has_parts(s->c, value->type));
  kt_exprs parts = { 0 };
  uint32_t count = ki_component_count(s->c->types, value->type);
  if (value->kind != KJ_T_TUPLE || kt_has_effect(value)) value = kt_keep_value(s, value);
  for (uint32_t i = 0; i < count; i++)
    KJ_PUSH(s->arena, &parts,
            make(s, kt_make_item(s, kt_copy_texpr(s, value), i, location), i, data));
  return kt_make_composed(s, type, &parts, location);
}

/* ---- conversion ---- */

static _Noreturn void fail_lanes(kt_scope *s, const kt_expr *value, kjit_type type)
{
  const char *to = kt_type_text(s->c, type);
  kt_fail(s->c, value->location, KJIT_ERROR_TYPE,
          "%s cannot be converted to %s, which has a different number of lanes; select lanes, as "
          "in `%s(v.x, ...)`",
          kt_type_text(s->c, value->type), to, to);
}

static _Noreturn void fail_whole(kt_scope *s, const kt_expr *value, kjit_type type)
{
  const char *from = kt_type_text(s->c, value->type);
  if (kt_is_vector(s->c, value->type))
    kt_fail(s->c, value->location, KJIT_ERROR_TYPE,
            "expected a number, got %s; select a lane: `v.x` or `v[i]`", from);
  if (kt_is_complex(s->c, value->type))
    kt_fail(s->c, value->location, KJIT_ERROR_TYPE,
            "%s cannot be converted to %s implicitly: write `real(z)`, `imag(z)` or `abs(z)`", from,
            kt_type_text(s->c, type));
  kt_fail_number(s->c, value->location, value->type, "expected a number or %s, got %s",
                 kt_type_text(s->c, type), from);
}

static kt_expr *convert_part(kt_scope *s, kt_expr *part, uint32_t index, const void *data)
{
  (void)index;
  return kt_convert(s, part, *(const kjit_type *)data, part->location);
}

/* Converts a number to a vector whose lanes are all equal, or to a complex number whose imaginary
 * part is 0. */
static kt_expr *spread(kt_scope *s, kt_expr *value, kjit_type type, kj_location location)
{
  KJ_ASSERT(kt_has_parts(s->c, type));
  kt_exprs parts = { 0 };
  kjit_type part = kt_part_type(s->c, type);
  uint32_t count = ki_component_count(s->c->types, type);
  value = kt_convert(s, value, part, location);
  if (kt_is_vector(s->c, type)) value = kt_keep_value(s, value);
  KJ_PUSH(s->arena, &parts, value);
  for (uint32_t i = 1; i < count; i++)
    KJ_PUSH(s->arena, &parts,
            kt_is_vector(s->c, type) ? kt_copy_texpr(s, value)
                                     : kt_new_number(s, part, 0, location));
  return kt_make_composed(s, type, &parts, location);
}

kt_expr *kt_convert_parts(kt_scope *s, kt_expr *value, kjit_type type, kj_location location)
{
  const kt_compilation *c = s->c;
  if (value->type == type) return value;
  if (!kt_has_parts(c, type)) fail_whole(s, value, type);
  if (kt_is_number(c, value->type)) return spread(s, value, type, location);
  if (kt_class_of(c, value->type) != kt_class_of(c, type)) fail_whole(s, value, type);
  if (ki_component_count(c->types, value->type) != ki_component_count(c->types, type))
    fail_lanes(s, value, type);
  kjit_type part = kt_part_type(c, type);
  if (value->kind == KJ_T_TUPLE) return kt_map_parts(s, type, value, convert_part, &part, location);
  kt_expr *convert = kt_new_texpr(s->c, KJ_T_CONVERT, type, location);
  convert->x = value;
  return convert;
}

bool kt_keeps_parts(const kt_compilation *c, kjit_type from, kjit_type to)
{
  if (!kt_has_parts(c, from)) return true;
  return kt_class_of(c, from) == kt_class_of(c, to) &&
         ki_component_count(c->types, from) == ki_component_count(c->types, to);
}

kjit_type kt_promote_parts(kt_scope *s, kjit_type a, kjit_type b, kj_location location)
{
  const kt_compilation *c = s->c;
  bool a_vector = kt_is_vector(c, a), b_vector = kt_is_vector(c, b);
  bool is_mixed = (a_vector && kt_is_complex(c, b)) || (b_vector && kt_is_complex(c, a));
  bool differ = a_vector && b_vector && ki_type(c->types, a)->count != ki_type(c->types, b)->count;
  bool are_numbers =
    (kt_has_parts(c, a) || kt_is_number(c, a)) && (kt_has_parts(c, b) || kt_is_number(c, b));
  if (is_mixed || differ || !are_numbers) return KJIT_ANY;
  kjit_type part = kt_promote(s, kt_part_type(c, a), kt_part_type(c, b), location);
  return part == KJIT_ANY ? KJIT_ANY : kt_with_part(s, kt_has_parts(c, a) ? a : b, part);
}

/* ---- construction: f32x4(v.xy, 0, 1), f32x4(1), c64(re, im) ---- */

static void add_lanes(kt_scope *s, kt_exprs *parts, kt_expr *value, kjit_type lane)
{
  if (kt_is_number(s->c, value->type)) {
    KJ_PUSH(s->arena, parts, kt_convert(s, value, lane, value->location));
    return;
  }
  if (!kt_is_vector(s->c, value->type))
    kt_fail_number(s->c, value->location, value->type,
                   "the components of a vector must be numbers or vectors, got %s",
                   kt_type_text(s->c, value->type));
  uint32_t count = ki_type(s->c->types, value->type)->count;
  value = kt_keep_value(s, value);
  for (uint32_t i = 0; i < count; i++)
    KJ_PUSH(s->arena, parts,
            kt_convert(s, kt_make_item(s, kt_copy_texpr(s, value), i, value->location), lane,
                       value->location));
}

static kt_expr *make_vector(kt_scope *s, const kt_exprs *values, kjit_type type,
                            kj_location location)
{
  KJ_ASSERT(kt_is_vector(s->c, type));
  kt_exprs parts = { 0 };
  uint32_t lanes = ki_type(s->c->types, type)->count;
  for (size_t i = 0; i < values->count; i++)
    add_lanes(s, &parts, values->items[i], kt_part_type(s->c, type));
  if (parts.count != lanes)
    kt_fail(s->c, location, KJIT_ERROR_TYPE, "%s has %u lanes, but %zu are given",
            kt_type_text(s->c, type), lanes, parts.count);
  return kt_make_composed(s, type, &parts, location);
}

static kt_expr *make_complex(kt_scope *s, const kt_exprs *values, kjit_type type,
                             kj_location location)
{
  KJ_ASSERT(kt_is_complex(s->c, type));
  kt_exprs parts = { 0 };
  if (values->count == 1)
    kt_fail_number(s->c, location, values->items[0]->type, "`%s` of %s is not defined",
                   kt_type_text(s->c, type), kt_type_text(s->c, values->items[0]->type));
  if (values->count != 2)
    kt_fail(s->c, location, KJIT_ERROR_TYPE,
            "`%s` takes a real and an imaginary part, got %zu values", kt_type_text(s->c, type),
            values->count);
  for (size_t i = 0; i < 2; i++)
    KJ_PUSH(s->arena, &parts,
            kt_convert(s, values->items[i], kt_part_type(s->c, type), values->items[i]->location));
  return kt_make_composed(s, type, &parts, location);
}

kt_expr *kt_construct_parts(kt_scope *s, const kt_exprs *values, kjit_type type,
                            kj_location location)
{
  bool is_conversion =
    values->count == 1 && (kt_is_number(s->c, values->items[0]->type) ||
                           kt_class_of(s->c, values->items[0]->type) == kt_class_of(s->c, type));
  if (is_conversion) return kt_convert_parts(s, values->items[0], type, location);
  return kt_is_vector(s->c, type) ? make_vector(s, values, type, location)
                                  : make_complex(s, values, type, location);
}

/* ---- lanes ---- */

/* Infers `v.xyz`, which selects one to four of the lanes x, y, z and w. */
kt_expr *kt_infer_swizzle(kt_scope *s, const ki_expr *expr, kt_expr *value)
{
  const char *name = expr->name;
  kj_location location = expr->location;
  size_t count = strlen(name);
  kt_exprs parts = { 0 };
  if (!kt_is_vector(s->c, value->type) || count > 4) return NULL;
  if (count > 1) value = kt_keep_value(s, value);
  for (size_t i = 0; i < count; i++) {
    ki_component lane;
    if (!kt_find_component(s->c, value->type, (char[]){ name[i], 0 }, &lane)) return NULL;
    KJ_PUSH(s->arena, &parts, kt_make_item(s, kt_copy_texpr(s, value), lane.index, location));
  }
  return count == 1
           ? parts.items[0]
           : kt_make_composed(s, kt_vector_of(s, kt_part_type(s->c, value->type), (uint32_t)count),
                              &parts, location);
}

/* ---- variables and tuples ---- */

kt_expr *kt_make_var(kt_scope *s, kt_var *var, kj_location location)
{
  KJ_ASSERT(var);
  kt_expr *expr = kt_new_texpr(s->c, KJ_T_VAR, var->type, location);
  expr->var = var;
  return expr;
}

/* Returns the number of values in a tuple. An array counts as one value, because it is a
 * reference. */
static uint64_t count_values(const kt_compilation *c, kjit_type type)
{
  const ki_type_info *info = ki_type(c->types, type);
  if (info->class_ == KJ_CLASS_ARRAY) return 1;
  if (info->class_ != KJ_CLASS_TUPLE) return kt_count_parts(c, type);
  uint64_t count = 0;
  for (uint32_t i = 0; i < info->count; i++) count += count_values(c, info->items[i]);
  return count;
}

kjit_type kt_tuple_type(kt_scope *s, const kjit_type *items, uint32_t count, kj_location location)
{
  KJ_ASSERT(count == 0 || items);
  enum { MOST_VALUES = 1024 };
  kjit_type type = ki_intern_tuple(s->c->types, items, count);
  if (type == KJIT_ANY) longjmp(*s->c->on_failure, KJ_JUMP_MEMORY);
  if (count_values(s->c, type) > MOST_VALUES)
    kt_fail(s->c, location, KJIT_ERROR_UNSUPPORTED,
            "a tuple can have at most %d numbers, including those of nested tuples; use " KJ_PHRASE(
              LOCAL_ARRAY, "a `local` array"),
            MOST_VALUES);
  return type;
}

kt_expr *kt_make_tuple(kt_scope *s, const kt_exprs *items, kj_location location)
{
  kjit_type *types = KJ_NEW_ARRAY(s->arena, kjit_type, items->count + 1);
  for (size_t i = 0; i < items->count; i++) types[i] = items->items[i]->type;
  kjit_type type = kt_tuple_type(s, types, (uint32_t)items->count, location);
  kt_expr *tuple = kt_new_texpr(s->c, KJ_T_TUPLE, type, location);
  tuple->args = *items;
  return tuple;
}

/* Returns whether one item of a TUPLE node can be used without evaluating its other items. */
bool kt_can_take_item(const kt_scope *s, const kt_expr *tuple, uint32_t index)
{
  KJ_ASSERT(index < tuple->args.count || tuple->kind != KJ_T_TUPLE);
  if (tuple->kind != KJ_T_TUPLE) return false;
  for (uint32_t i = 0; i < tuple->args.count; i++)
    if (i != index && !kt_can_drop(s->c, tuple->args.items[i])) return false;
  return true;
}

kt_expr *kt_make_item(kt_scope *s, kt_expr *tuple, uint32_t index, kj_location location)
{
  bool is_list = tuple->kind == KJ_T_TUPLE && kt_is_tuple(s->c, tuple->type);
  if (kt_can_take_item(s, tuple, index)) return tuple->args.items[index];
  if (is_list) return kt_keep_value(s, tuple)->args.items[index];
  kjit_type type = kt_is_tuple(s->c, tuple->type)
                     ? ki_type(s->c->types, tuple->type)->items[index]
                     : ki_get_component(s->c->types, tuple->type, index).type;
  kt_expr *item = kt_new_texpr(s->c, KJ_T_ITEM, type, location);
  item->x = tuple;
  item->dimension = index;
  return item;
}
