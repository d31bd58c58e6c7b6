/* Type inference of fields of values and of components in memory. A component in memory is
 * represented by an array of rank 0: a field of a[i] is the only element of MEMBER(VIEW(a, i)).
 * Code that handles memory accesses therefore only has to handle array elements. */
#include <string.h>

#include "ir/near_name.h"
#include "typing/infer.h"

/* ---- components in memory ---- */

static uint32_t element_alignment(kt_scope *s, const ki_type_info *array)
{
  return array->alignment_bytes ? array->alignment_bytes
                                : ki_alignment(s->c->types, array->element);
}

kt_expr *kt_make_only(kt_scope *s, kt_expr *array, const kt_exprs *indices, kj_location location)
{
  kt_slice slices[KJ_MAX_RANK] = { 0 };
  for (size_t i = 0; i < indices->count; i++)
    slices[i] = (kt_slice){ .is_index = true, .start = indices->items[i] };
  return indices->count ? kt_make_view(s, array, slices, location) : array;
}

kt_expr *kt_make_member(kt_scope *s, kt_expr *only, ki_component component, kj_location location)
{
  const ki_type_info *from = ki_type(s->c->types, only->type),
                     *part = ki_type(s->c->types, component.type);
  ki_type_info info = { .element = component.type,
                        .layout = KJIT_LAYOUT_C,
                        .space = from->space,
                        .read_only = from->read_only,
                        .is_static = true };
  info.alignment_bytes = ki_alignment_at(element_alignment(s, from), component.offset_bytes);
  if (part->class_ == KJ_CLASS_ARRAY) {
    info.element = part->element;
    info.rank = part->rank;
    memcpy(info.extents, part->extents, sizeof info.extents);
    info.alignment_bytes =
      ki_alignment_at(info.alignment_bytes, ki_type(s->c->types, part->element)->size_bytes);
  }
  kt_expr *member = kt_new_texpr(s->c, KJ_T_MEMBER, kt_intern_array(s, &info), location);
  member->x = only;
  member->dimension = component.index;
  return member;
}

/* Returns a one-dimensional array of all lanes in a vector. The vector is the only element in the
 * array `only`. */
kt_expr *kt_make_lanes(kt_scope *s, kt_expr *only, kj_location location)
{
  const ki_type_info *from = ki_type(s->c->types, only->type),
                     *vector = ki_type(s->c->types, from->element);
  KJ_ASSERT(vector->class_ == KJ_CLASS_VECTOR);
  ki_type_info info = { .element = vector->element,
                        .rank = 1,
                        .extents = { vector->count },
                        .layout = KJIT_LAYOUT_C,
                        .space = from->space,
                        .read_only = from->read_only,
                        .is_static = true };
  info.alignment_bytes =
    ki_alignment_at(element_alignment(s, from), ki_type(s->c->types, vector->element)->size_bytes);
  kt_expr *lanes = kt_new_texpr(s->c, KJ_T_MEMBER, kt_intern_array(s, &info), location);
  lanes->x = only;
  lanes->dimension = KJ_ALL_LANES;
  return lanes;
}

kt_expr *kt_new_load(kt_scope *s, kt_expr *array, const kt_exprs *indices, kj_location location)
{
  kt_expr *load =
    kt_new_texpr(s->c, KJ_T_LOAD, ki_type(s->c->types, array->type)->element, location);
  load->x = array;
  load->args = *indices;
  return load;
}

/* Returns a component of an element as a value. If the component is an array inside a struct,
 * returns that array without reading it. */
static kt_expr *read_member(kt_scope *s, kt_expr *array, const kt_exprs *indices,
                            ki_component component, kj_location location)
{
  kt_expr *member =
    kt_make_member(s, kt_make_only(s, array, indices, location), component, location);
  if (kt_is_value_array(s->c, component.type)) return member;
  return kt_new_load(s, member, &(kt_exprs){ 0 }, location);
}

/* ---- pointers ---- */

kt_expr *kt_make_pointed(kt_scope *s, kt_expr *pointer, kj_location location)
{
  const ki_type_info *info = ki_type(s->c->types, pointer->type);
  ki_type_info array = { .element = info->element,
                         .rank = 1,
                         .layout = KJIT_LAYOUT_C,
                         .space = KJ_SPACE_GENERIC,
                         .read_only = info->read_only };
  kt_expr *pointed = kt_new_texpr(s->c, KJ_T_POINTED, kt_intern_array(s, &array), location);
  pointed->x = pointer;
  return pointed;
}

kt_exprs kt_first_index(kt_scope *s, kj_location location)
{
  kt_exprs indices = { 0 };
  KJ_PUSH(s->arena, &indices, kt_new_integer(s, KJIT_INDEX, 0, location));
  return indices;
}

/* ---- fields as values ---- */

static const char *list_fields(kt_scope *s, kjit_type type)
{
  enum { MOST_LISTED = 12 };
  const ki_type_info *info = ki_type(s->c->types, type);
  const char *text = "";
  for (uint32_t i = 0; i < info->count && i < MOST_LISTED; i++)
    text = kj_format(s->arena, "%s%s`.%s`", text, i ? ", " : "", info->field_names[i]);
  return info->count > MOST_LISTED ? kj_format(s->arena, "%s ...", text) : text;
}

_Noreturn void kt_fail_array_field(kt_scope *s, const ki_expr *expr, kjit_type array)
{
  ki_component component;
  kjit_type element = ki_type(s->c->types, array)->element;
  if (kt_is_struct(s->c, element) && kt_find_component(s->c, element, expr->name, &component))
    kt_fail_code(s->c, expr->location, KJIT_ERROR_NAME, KJIT_CODE_ARRAY_OF_FIELDS,
                 "`.%s` of this array of structs cannot be an array, because the struct's size is "
                 "not a multiple of the field's size: write `a.%s[i]`, or take the field of an "
                 "element, `a[i].%s`",
                 expr->name, expr->name, expr->name);
  static const char *const properties[] = { "shape", "strides", "size", "ndim" };
  ki_near near = { .name = expr->name };
  for (size_t i = 0; i < sizeof properties / sizeof *properties; i++)
    ki_consider(&near, properties[i]);
  if (strcmp(expr->name, "dtype") == 0)
    kt_fail(s->c, expr->location, KJIT_ERROR_NAME,
            "for the element type of an array write `dtype(a)`");
  if (near.best)
    kt_fail(s->c, expr->location, KJIT_ERROR_NAME, "there is no `.%s`; did you mean `.%s`?",
            expr->name, near.best);
  bool is_part = strcmp(expr->name, "real") == 0 || strcmp(expr->name, "imag") == 0;
  kt_fail_code(s->c, expr->location, KJIT_ERROR_NAME,
               is_part ? KJIT_CODE_ARRAY_AS_NUMBER : KJIT_CODE_NONE,
               "an array has no `.%s`: it has `.shape`, `.strides`, `.size`, `.ndim` and `.T`",
               expr->name);
}

_Noreturn void kt_fail_field(kt_scope *s, const ki_expr *expr, kjit_type type)
{
  if (kt_is_array(s->c, type)) kt_fail_array_field(s, expr, type);
  if (kt_is_pointer(s->c, type)) type = ki_type(s->c->types, type)->element;
  const char *text = kt_type_text(s->c, type);
  if (kt_is_struct(s->c, type)) {
    const ki_type_info *info = ki_type(s->c->types, type);
    ki_near near = { .name = expr->name };
    for (uint32_t i = 0; i < info->count; i++) ki_consider(&near, info->field_names[i]);
    if (near.best)
      kt_fail(s->c, expr->location, KJIT_ERROR_NAME,
              "struct `%s` has no field `%s`; did you mean `%s`?", text, expr->name, near.best);
  }
  if (kt_is_struct(s->c, type))
    kt_fail(s->c, expr->location, KJIT_ERROR_NAME, "struct `%s` has no field `%s`: it has %s", text,
            expr->name, list_fields(s, type));
  if (kt_is_complex(s->c, type))
    kt_fail(s->c, expr->location, KJIT_ERROR_NAME, "%s has no `.%s`: it has `.real` and `.imag`",
            text, expr->name);
  if (kt_is_vector(s->c, type)) {
    static const char *const lanes[] = { "`.x` and `.y`", "`.x`, `.y` and `.z`",
                                         "`.x`, `.y`, `.z` and `.w`" };
    uint32_t count = ki_type(s->c->types, type)->count;
    kt_fail(s->c, expr->location, KJIT_ERROR_NAME, "%s has no `.%s`: it has %s", text, expr->name,
            lanes[count < 4 ? count - 2 : 2]);
  }
  kt_fail(s->c, expr->location, KJIT_ERROR_NAME, "%s has no `.%s`", text, expr->name);
}

/* Returns whether a lane must be loaded separately from the rest of its vector. The checks for
 * uninitialized memory and for races must see which lane is accessed, because other threads can
 * access the other lanes. */
static bool watches_lanes(const kt_scope *s)
{
  return s->c->request->checks & (KJIT_CHECK_UNINITIALIZED | KJIT_CHECK_RACES);
}

kt_expr *kt_read_lane(kt_scope *s, kt_expr *vector, kt_expr *index, kj_location location)
{
  KJ_ASSERT(kt_is_vector(s->c, vector->type));
  kt_exprs indices = { 0 };
  KJ_PUSH(s->arena, &indices, index);
  if (vector->kind == KJ_T_LOAD && watches_lanes(s)) {
    kt_expr *only = kt_make_only(s, vector->x, &vector->args, location);
    return kt_new_load(s, kt_make_lanes(s, only, location), &indices, location);
  }
  kt_expr *element =
    kt_new_texpr(s->c, KJ_T_ELEMENT, ki_type(s->c->types, vector->type)->element, location);
  element->x = vector;
  element->args = indices;
  return element;
}

kt_expr *kt_read_component(kt_scope *s, kt_expr *value, ki_component component,
                           kj_location location)
{
  /* if checks need not watch single lanes, one access loads all lanes in a vector */
  bool is_part_of_memory =
    value->kind == KJ_T_LOAD && (!kt_is_vector(s->c, value->type) || watches_lanes(s));
  return is_part_of_memory ? read_member(s, value->x, &value->args, component, location)
                           : kt_make_item(s, value, component.index, location);
}

/* Returns whether the name is a field of the only element of an array of rank 0. Such an array can
 * be used like its element. */
bool kt_is_field_of_only(const kt_scope *s, kjit_type array, const char *name,
                         ki_component *component)
{
  const ki_type_info *info = ki_type(s->c->types, array);
  return kt_is_array(s->c, array) && info->rank == 0 && kt_is_struct(s->c, info->element) &&
         kt_find_component(s->c, info->element, name, component);
}

kt_expr *kt_infer_field(kt_scope *s, const ki_expr *expr)
{
  ki_component component;
  if (expr->x->kind == KJ_EXPR_BUILTIN)
    return kt_infer_builtin_name(s, expr, expr->x->builtin, expr->name);
  const ki_expr *moved = kt_move_property(s, expr);
  if (moved) return kt_infer_field(s, moved);
  kt_expr *x = kt_infer_expr(s, expr->x);
  if (kt_is_array(s->c, x->type) || kt_is_value_array(s->c, x->type)) {
    kt_expr *property = kt_infer_property(s, expr, x);
    if (property) return property;
    if (!kt_is_field_of_only(s, x->type, expr->name, &component)) {
      kjit_type array = x->type;
      kt_expr *view = kt_view_of_field(s, x, expr->name, expr->location);
      if (!view) kt_fail_array_field(s, expr, array);
      return view;
    }
    return read_member(s, x, &(kt_exprs){ 0 }, component, expr->location);
  }
  if (kt_find_component(s->c, x->type, expr->name, &component))
    return kt_read_component(s, x, component, expr->location);
  if (kt_is_vector(s->c, x->type)) {
    kt_expr *lanes = kt_infer_swizzle(s, expr, x);
    if (lanes) return lanes;
  }
  bool is_pointed =
    kt_is_pointer(s->c, x->type) &&
    kt_find_component(s->c, ki_type(s->c->types, x->type)->element, expr->name, &component);
  if (!is_pointed) kt_fail_field(s, expr, x->type);
  kt_exprs first = kt_first_index(s, expr->location);
  return read_member(s, kt_make_pointed(s, x, expr->location), &first, component, expr->location);
}
