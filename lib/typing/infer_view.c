/* Views: slices, partial indexing, transposed and reshaped arrays, and an array under a type that
 * says less of its layout.
 *
 * The layout of a view is C (or F) only where that is certain for all extents. What a view needs
 * besides its start, extents and steps, is without effect and reads the same wherever it is
 * evaluated: parts that are not are kept in temporaries first. */
#include <string.h>

#include "typing/rules.h"

/* ---- arithmetic on positions ---- */

static kj_texpr *integer(kj_scope *s, __int128 value, kj_location location)
{
  return kj_new_integer(s, KJIT_INDEX, value, location);
}

static bool is_value(const kj_texpr *expr, __int128 value)
{
  return expr->kind == KJ_T_CONST && expr->integer == value;
}

static kj_texpr *subtract(kj_scope *s, const kj_texpr *x, const kj_texpr *y, kj_location location)
{
  if (is_value(y, 0)) return kj_copy_texpr(s, x);
  return kj_make_binary(s, KJIT_SUB, kj_copy_texpr(s, x), kj_copy_texpr(s, y), location);
}

static kj_texpr *add(kj_scope *s, kj_texpr *x, __int128 more, kj_location location)
{
  return more ? kj_make_binary(s, KJIT_ADD, x, integer(s, more, location), location) : x;
}

static kj_texpr *at_least_zero(kj_scope *s, kj_texpr *x, kj_location location)
{
  if (kj_is_constant(x)) return x->integer < 0 ? integer(s, 0, location) : x;
  /* behind a pointer it is what the program says */
  if (x->kind == KJ_T_EXTENT && kj_type(s->c->types, x->x->type)->space != KJ_SPACE_GENERIC)
    return x;
  kj_operands operands = { .builtin = &kj_builtin_table[KJ_BUILTIN_MAX], .location = location };
  KJ_PUSH(s->arena, &operands.values, x);
  KJ_PUSH(s->arena, &operands.values, integer(s, 0, location));
  return kj_new_builtin(s, &operands, KJIT_INDEX);
}

/* ---- slices ---- */

static kj_texpr *infer_part(kj_scope *s, const kj_expr *expr, const char *what)
{
  kj_texpr *value = kj_infer_expr(s, expr);
  if (!kj_is_integer(s->c, value->type)) {
    const char *hint = kj_is_float(s->c, value->type) ? ": write i32(...)" : "";
    kj_fail(s->c, expr->location, KJIT_ERROR_TYPE, "%s of a slice is an integer, got %s%s", what,
            kj_type_text(s->c, value->type), hint);
  }
  return kj_keep_value(s, kj_convert(s, value, KJIT_INDEX, expr->location));
}

static kj_texpr *infer_bound(kj_scope *s, const kj_expr *expr, const kj_texpr *extent,
                             const char *what)
{
  __int128 distance;
  if (!kj_is_from_end(expr, &distance)) return infer_part(s, expr, what);
  return kj_keep_value(s,
                       subtract(s, extent, integer(s, distance, expr->location), expr->location));
}

/* What is known at compile time to be outside. Slices do not clamp. */
static void check_bound(kj_scope *s, const kj_expr *expr, const kj_texpr *bound,
                        const kj_texpr *extent, bool goes_down)
{
  if (!expr || !kj_is_constant(bound)) return;
  __int128 least = goes_down ? -1 : 0;
  bool is_above = kj_is_constant(extent) && bound->integer > extent->integer - goes_down;
  if (bound->integer >= least && !is_above) return;
  const char *of = kj_is_constant(extent)
                     ? kj_format(s->arena, "%s", kj_integer_text(s->arena, extent->integer))
                     : "any extent";
  kj_fail(s->c, expr->location, KJIT_ERROR_TYPE,
          "position %s is outside of %s: slices do not clamp",
          kj_integer_text(s->arena, bound->integer), of);
}

static kj_texpr *choose(kj_scope *s, const kj_texpr *step, const kj_texpr *up, const kj_texpr *down,
                        kj_location location)
{
  if (kj_is_constant(step)) return kj_copy_texpr(s, step->integer > 0 ? up : down);
  kj_texpr *goes_up =
    kj_make_binary(s, KJIT_GT, kj_copy_texpr(s, step), integer(s, 0, location), location);
  return kj_make_cond(s, goes_up, kj_copy_texpr(s, up), kj_copy_texpr(s, down), location);
}

/* (span + |step| - 1) // |step|; a step of 0 gives no elements. all: the extent, where no bound is
 * given. */
static kj_texpr *count_elements(kj_scope *s, const kj_texpr *first, const kj_texpr *stop,
                                const kj_texpr *step, const kj_texpr *all, kj_location location)
{
  if (kj_is_constant(step)) {
    __int128 size = step->integer < 0 ? -step->integer : step->integer;
    kj_texpr *span = all                 ? kj_copy_texpr(s, all)
                     : step->integer > 0 ? subtract(s, stop, first, location)
                                         : subtract(s, first, stop, location);
    span = at_least_zero(s, span, location);
    return size == 1 ? span
                     : kj_make_binary(s, KJIT_FLOORDIV, add(s, span, size - 1, location),
                                      integer(s, size, location), location);
  }
  kj_texpr *zero = integer(s, 0, location);
  kj_texpr *span = at_least_zero(s,
                                 choose(s, step, subtract(s, stop, first, location),
                                        subtract(s, first, stop, location), location),
                                 location);
  kj_texpr *size =
    kj_keep_value(s, choose(s, step, step, subtract(s, zero, step, location), location));
  kj_texpr *most =
    add(s, kj_make_binary(s, KJIT_ADD, span, kj_copy_texpr(s, size), location), -1, location);
  return kj_make_binary(s, KJIT_FLOORDIV, most, size, location);
}

static kj_texpr *infer_step(kj_scope *s, const kj_expr *slice)
{
  if (!slice->z) return integer(s, 1, slice->location);
  kj_texpr *step = infer_part(s, slice->z, "the step");
  if (is_value(step, 0))
    kj_fail(s->c, slice->z->location, KJIT_ERROR_TYPE, "the step of a slice must not be 0");
  return step;
}

/* The bounds are evaluated in the order in which they are written, whatever the step says of what
 * is left out. */
kj_slice kj_infer_slice(kj_scope *s, const kj_expr *slice, const kj_texpr *array,
                        uint32_t dimension)
{
  kj_location location = slice->location;
  kj_texpr *extent = kj_make_extent(s, kj_copy_texpr(s, array), dimension, location);
  kj_texpr *first = slice->x ? infer_bound(s, slice->x, extent, "the start") : NULL;
  kj_texpr *stop = slice->y ? infer_bound(s, slice->y, extent, "the end") : NULL;
  kj_texpr *step = infer_step(s, slice), *zero = integer(s, 0, location);
  bool is_plain = is_value(step, 1), goes_down = kj_is_constant(step) && step->integer < 0;
  if (!first && !stop && is_plain) return (kj_slice){ .is_whole = true, .start = zero };
  const kj_texpr *all = first || stop ? NULL : extent;
  check_bound(s, slice->x, first, extent, goes_down);
  check_bound(s, slice->y, stop, extent, goes_down);
  kj_texpr *last = add(s, kj_copy_texpr(s, extent), -1, location);
  if (!first) first = kj_keep_value(s, choose(s, step, zero, last, location));
  if (!stop) stop = kj_keep_value(s, choose(s, step, extent, integer(s, -1, location), location));
  kj_slice result = { .start = first,
                      .extent =
                        kj_keep_value(s, count_elements(s, first, stop, step, all, location)) };
  if (!is_plain) result.step = step;
  return result;
}

/* ---- types ---- */

static kjit_type intern(kj_scope *s, const kj_type_info *info)
{
  kjit_type type = kj_intern_array(s->c->types, info);
  if (type == KJIT_ANY) longjmp(*s->c->on_failure, KJ_JUMP_MEMORY);
  return type;
}

static kj_type_info without_extents(const kj_type_info *info, uint32_t rank)
{
  kj_type_info plain = *info;
  plain.rank = rank;
  plain.is_static = false;
  memset(plain.extents, 0, sizeof plain.extents);
  return plain;
}

/* From the contiguous dimension outwards: whole dimensions, then at most one that is a part without
 * steps, then none but indices. */
static bool is_contiguous(const kj_slice *slices, uint32_t rank, kjit_layout layout)
{
  bool is_closed = false;
  for (uint32_t i = 0; i < rank; i++) {
    const kj_slice *slice = &slices[layout == KJIT_LAYOUT_C ? rank - 1 - i : i];
    if (!slice->is_index && (is_closed || slice->step)) return false;
    is_closed = is_closed || !slice->is_whole;
  }
  return true;
}

static bool set_static_extents(const kj_slice *slices, const kj_type_info *array,
                               kj_type_info *view)
{
  uint32_t at = 0;
  for (uint32_t d = 0; d < array->rank; d++) {
    if (slices[d].is_index) continue;
    if (!slices[d].is_whole &&
        (!kj_is_constant(slices[d].extent) || slices[d].extent->integer == 0))
      return false;
    view->extents[at++] =
      slices[d].is_whole ? array->extents[d] : (int64_t)slices[d].extent->integer;
  }
  return true;
}

static kjit_type type_of_view(kj_scope *s, kjit_type array, const kj_slice *slices, uint32_t rank)
{
  const kj_type_info *info = kj_type(s->c->types, array);
  kj_type_info view = without_extents(info, rank), fixed = view;
  kjit_layout layout = info->is_static ? KJIT_LAYOUT_C : info->layout;
  if (layout == KJIT_LAYOUT_STRIDED || !is_contiguous(slices, info->rank, layout))
    view.layout = KJIT_LAYOUT_STRIDED;
  fixed.is_static = true;
  return info->is_static && view.layout == KJIT_LAYOUT_C && set_static_extents(slices, info, &fixed)
           ? intern(s, &fixed)
           : intern(s, &view);
}

/* ---- views ---- */

static int add_part(kj_scope *s, kj_texpr *view, kj_texpr *part)
{
  if (!part) return KJ_VIEW_SAME;
  KJ_PUSH(s->arena, &view->indices, part);
  return (int)view->indices.count - 1;
}

/* slices: one for each dimension of the array. */
kj_texpr *kj_make_view(kj_scope *s, kj_texpr *array, const kj_slice *slices, kj_location location)
{
  uint32_t from = kj_type(s->c->types, array->type)->rank, rank = 0, taken = 0;
  bool is_partial = false;
  for (uint32_t d = 0; d < from; d++) {
    rank += !slices[d].is_index;
    if (!slices[d].is_whole) taken = d + 1;
    if (!slices[d].is_index && !slices[d].is_whole) is_partial = true;
  }
  if (taken == 0) return array;
  kj_texpr *view =
    kj_new_texpr(s->c, KJ_T_VIEW, type_of_view(s, array->type, slices, rank), location);
  view->x = array;
  for (uint32_t d = 0; d < taken; d++) KJ_PUSH(s->arena, &view->args, slices[d].start);
  if (!is_partial && from - rank == taken) return view;
  kj_view_dimension *dimensions = KJ_NEW_ARRAY(s->arena, kj_view_dimension, rank + 1);
  uint32_t at = 0;
  for (uint32_t d = 0; d < from; d++)
    if (!slices[d].is_index)
      dimensions[at++] = (kj_view_dimension){ (int)d, add_part(s, view, slices[d].extent),
                                              add_part(s, view, slices[d].step) };
  view->dimensions = dimensions;
  return view;
}

/* The view's dimension d is the array's dimension map[d]. */
static kj_texpr *make_permuted(kj_scope *s, kj_texpr *array, const uint32_t *map, kjit_type type,
                               kj_location location)
{
  uint32_t rank = kj_type(s->c->types, array->type)->rank;
  kj_view_dimension *dimensions = KJ_NEW_ARRAY(s->arena, kj_view_dimension, rank + 1);
  for (uint32_t d = 0; d < rank; d++)
    dimensions[d] = (kj_view_dimension){ (int)map[d], KJ_VIEW_SAME, KJ_VIEW_SAME };
  kj_texpr *view = kj_new_texpr(s->c, KJ_T_VIEW, type, location);
  view->x = array;
  view->dimensions = dimensions;
  return view;
}

kj_texpr *kj_make_transpose(kj_scope *s, kj_texpr *array, kj_location location)
{
  array = kj_make_concrete(s, array);
  const kj_type_info *info = kj_type(s->c->types, array->type);
  kj_type_info type = without_extents(info, info->rank);
  uint32_t map[KJ_MAX_RANK];
  if (info->rank < 2) return array;
  if (info->is_static || info->layout == KJIT_LAYOUT_C) type.layout = KJIT_LAYOUT_F;
  else if (info->layout == KJIT_LAYOUT_F) type.layout = KJIT_LAYOUT_C;
  for (uint32_t d = 0; d < info->rank; d++) map[d] = info->rank - 1 - d;
  return make_permuted(s, array, map, intern(s, &type), location);
}

kjit_type kj_join_arrays(kj_scope *s, kjit_type a, kjit_type b)
{
  const kj_type_info *x = kj_type(s->c->types, a), *y = kj_type(s->c->types, b);
  if (x->element != y->element || x->rank != y->rank || x->space != y->space) return KJIT_ANY;
  kj_type_info joined = without_extents(x, x->rank);
  if (x->layout != y->layout) joined.layout = KJIT_LAYOUT_STRIDED;
  joined.read_only = x->read_only || y->read_only;
  return intern(s, &joined);
}

kj_texpr *kj_give_array_type(kj_scope *s, kj_texpr *array, kjit_type type)
{
  uint32_t map[KJ_MAX_RANK];
  for (uint32_t d = 0; d < KJ_MAX_RANK; d++) map[d] = d;
  return make_permuted(s, array, map, type, array->location);
}

/* ---- reshape ---- */

static void add_extent(kj_scope *s, kj_texprs *extents, kj_texpr *value)
{
  if (!kj_is_integer(s->c, value->type))
    kj_fail(s->c, value->location, KJIT_ERROR_TYPE, "an extent of `reshape` is an integer, got %s",
            kj_type_text(s->c, value->type));
  if (kj_is_constant(value) && value->integer < 0)
    kj_fail(s->c, value->location, KJIT_ERROR_TYPE,
            "an extent of `reshape` is at least 0, got %s: none is found from the others",
            kj_integer_text(s->arena, value->integer));
  KJ_PUSH(s->arena, extents, kj_keep_value(s, kj_convert(s, value, KJIT_INDEX, value->location)));
}

static kj_texprs read_extents(kj_scope *s, const kj_operands *o)
{
  kj_texprs extents = { 0 };
  for (size_t i = 1; i < o->values.count; i++) {
    kj_texpr *value = o->values.items[i];
    if (!kj_is_tuple(s->c, value->type)) {
      add_extent(s, &extents, value);
      continue;
    }
    value = kj_keep_value(s, value);
    uint32_t count = kj_type(s->c->types, value->type)->count;
    for (uint32_t k = 0; k < count; k++)
      add_extent(s, &extents, kj_make_item(s, kj_copy_texpr(s, value), k, value->location));
  }
  if (extents.count > KJ_MAX_RANK)
    kj_fail(s->c, o->location, KJIT_ERROR_TYPE, "an array has at most %d dimensions, here are %zu",
            KJ_MAX_RANK, extents.count);
  return extents;
}

/* The product of constant extents; false: one is not known. Saturates. */
static bool product_of(const kj_texprs *extents, __int128 *product)
{
  *product = 1;
  for (size_t i = 0; i < extents->count; i++) {
    if (!kj_is_constant(extents->items[i])) return false;
    if (*product < (__int128)1 << 63) *product *= extents->items[i]->integer;
  }
  return true;
}

static kjit_type type_of_shape(kj_scope *s, kjit_type array, const kj_texprs *extents,
                               kj_location location)
{
  const kj_type_info *info = kj_type(s->c->types, array);
  kj_type_info type = without_extents(info, (uint32_t)extents->count);
  __int128 want, have;
  type.layout = KJIT_LAYOUT_C;
  if (!info->is_static || !product_of(extents, &want)) return intern(s, &type);
  have = (__int128)kj_element_count(info);
  if (want != have) {
    const char *text = kj_integer_text(s->arena, have);
    kj_fail(s->c, location, KJIT_ERROR_TYPE, "`reshape` of %s elements to %s", text,
            kj_integer_text(s->arena, want));
  }
  type.is_static = true;
  for (size_t d = 0; d < extents->count; d++) type.extents[d] = (int64_t)extents->items[d]->integer;
  return intern(s, &type);
}

static kj_texpr *array_operand(kj_scope *s, const kj_operands *o)
{
  kj_texpr *array = o->values.items[0];
  if (!kj_is_array(s->c, array->type))
    kj_fail(s->c, array->location, KJIT_ERROR_TYPE, "`%s` needs an array, got %s", o->builtin->name,
            kj_type_text(s->c, array->type));
  return array;
}

kj_texpr *kj_rule_transpose(kj_scope *s, const kj_operands *o)
{
  return kj_make_transpose(s, array_operand(s, o), o->location);
}

kj_texpr *kj_rule_reshape(kj_scope *s, const kj_operands *o)
{
  kj_texpr *array = kj_make_concrete(s, array_operand(s, o));
  const kj_type_info *info = kj_type(s->c->types, array->type);
  if (!info->is_static && info->layout != KJIT_LAYOUT_C)
    kj_fail(s->c, o->location, KJIT_ERROR_TYPE,
            "`reshape` needs an array whose elements lie one after the other, row-major (layout "
            "C), got %s",
            kj_type_text(s->c, array->type));
  array = kj_keep_value(s, array);
  kj_texprs extents = read_extents(s, o);
  kj_texpr *view = kj_new_texpr(s->c, KJ_T_VIEW,
                                type_of_shape(s, array->type, &extents, o->location), o->location);
  kj_view_dimension *dimensions = KJ_NEW_ARRAY(s->arena, kj_view_dimension, extents.count + 1);
  view->x = array;
  for (size_t d = 0; d < extents.count; d++)
    dimensions[d] =
      (kj_view_dimension){ KJ_VIEW_SAME, add_part(s, view, extents.items[d]), KJ_VIEW_SAME };
  view->dimensions = dimensions;
  return view;
}
