/* Type inference of views: slices, partial indexing, transposed and reshaped arrays, and
 * conversions to array types that are less specific about the layout.
 *
 * A view has the layout C (or F) only if it has this layout for all possible extents. The
 * expressions in a view must have no effects, and they must have the same value wherever they are
 * evaluated. Expressions that do not satisfy this are stored in temporaries first. */
#include <string.h>

#include "typing/rules.h"

/* ---- arithmetic on indices ---- */

static kt_expr *integer(kt_scope *s, __int128 value, kj_location location)
{
  return kt_new_integer(s, KJIT_INDEX, value, location);
}

static bool is_value(const kt_expr *expr, __int128 value)
{
  return expr->kind == KJ_T_CONST && expr->integer == value;
}

static kt_expr *subtract(kt_scope *s, const kt_expr *x, const kt_expr *y, kj_location location)
{
  if (is_value(y, 0)) return kt_copy_texpr(s, x);
  return kt_make_binary(s, KJIT_OP_SUB, kt_copy_texpr(s, x), kt_copy_texpr(s, y), location);
}

static kt_expr *add(kt_scope *s, kt_expr *x, __int128 more, kj_location location)
{
  return more ? kt_make_binary(s, KJIT_OP_ADD, x, integer(s, more, location), location) : x;
}

static kt_expr *at_least_zero(kt_scope *s, kt_expr *x, kj_location location)
{
  if (kt_is_constant(x)) return x->integer < 0 ? integer(s, 0, location) : x;
  /* the program gives the extent of a pointer's memory, so this extent can be negative */
  if (x->kind == KJ_T_EXTENT && ki_type(s->c->types, x->x->type)->space != KJ_SPACE_GENERIC)
    return x;
  kt_operands operands = { .builtin = &ki_builtin_table[KJ_BUILTIN_MAX], .location = location };
  KJ_PUSH(s->arena, &operands.values, x);
  KJ_PUSH(s->arena, &operands.values, integer(s, 0, location));
  return kt_new_builtin(s, &operands, KJIT_INDEX);
}

/* ---- slices ---- */

static kt_expr *infer_part(kt_scope *s, const ki_expr *expr, const char *what)
{
  kt_expr *value = kt_infer_expr(s, expr);
  if (!kt_is_integer(s->c, value->type)) {
    const char *hint = kt_is_float(s->c, value->type) ? ": write i32(...)" : "";
    kt_fail_number(s->c, expr->location, value->type, "%s of a slice must be an integer, got %s%s",
                   what, kt_type_text(s->c, value->type), hint);
  }
  return kt_keep_value(s, kt_convert_to_index(s, value, expr->location));
}

static kt_expr *choose(kt_scope *s, const kt_expr *step, const kt_expr *up, const kt_expr *down,
                       kj_location location)
{
  if (kt_is_constant(step)) return kt_copy_texpr(s, step->integer > 0 ? up : down);
  kt_expr *goes_up =
    kt_make_binary(s, KJIT_OP_GT, kt_copy_texpr(s, step), integer(s, 0, location), location);
  return kt_make_cond(s, goes_up, kt_copy_texpr(s, up), kt_copy_texpr(s, down), location);
}

/* Returns min(x, to) or max(x, to) for two indices. */
static kt_expr *limit(kt_scope *s, ki_builtin_id id, kt_expr *x, kt_expr *to, kj_location location)
{
  bool takes_larger = id == KJ_BUILTIN_MAX;
  if (kt_is_constant(x) && kt_is_constant(to))
    return (x->integer > to->integer) == takes_larger ? x : to;
  kt_operands operands = { .builtin = &ki_builtin_table[id], .location = location };
  KJ_PUSH(s->arena, &operands.values, x);
  KJ_PUSH(s->arena, &operands.values, to);
  return kt_new_builtin(s, &operands, KJIT_INDEX);
}

/* Clamps a bound of a slice like Python: to the range 0..extent for a positive step, and to
 * -1..extent - 1 for a negative step. A negative bound counts from the end. */
static kt_expr *clamp_bound(kt_scope *s, kt_expr *bound, const kt_expr *extent, const kt_expr *step)
{
  kj_location location = bound->location;
  kt_expr *zero = integer(s, 0, location);
  kt_expr *least = kt_keep_value(s, choose(s, step, zero, integer(s, -1, location), location)),
          *last = add(s, kt_copy_texpr(s, extent), -1, location),
          *most = kt_keep_value(s, choose(s, step, extent, last, location));
  if (kt_is_constant(bound) && bound->integer >= 0)
    return kt_keep_value(s, limit(s, KJ_BUILTIN_MIN, bound, most, location));
  kt_expr *from_end = limit(s, KJ_BUILTIN_MAX,
                            kt_make_binary(s, KJIT_OP_ADD, kt_copy_texpr(s, bound),
                                           kt_copy_texpr(s, extent), location),
                            least, location);
  if (kt_is_constant(bound)) return kt_keep_value(s, from_end);
  kt_expr *is_negative =
    kt_make_binary(s, KJIT_OP_LT, kt_copy_texpr(s, bound), kt_copy_texpr(s, zero), location);
  kt_expr *from_start = limit(s, KJ_BUILTIN_MIN, kt_copy_texpr(s, bound), most, location);
  return kt_keep_value(s, kt_make_cond(s, is_negative, from_end, from_start, location));
}

static kt_expr *infer_bound(kt_scope *s, const ki_expr *expr, const kt_expr *extent,
                            const char *what)
{
  __int128 distance;
  if (s->wraps || !kt_is_from_end(expr, &distance)) return infer_part(s, expr, what);
  return kt_keep_value(s,
                       subtract(s, extent, integer(s, distance, expr->location), expr->location));
}

/* Reports a bound of a slice if it is known at compile time to be out of range. Bounds are clamped
 * only in functions with `@wrap`. */
static void check_bound(kt_scope *s, const ki_expr *expr, const kt_expr *bound,
                        const kt_expr *extent, bool goes_down)
{
  if (!expr || !kt_is_constant(bound)) return;
  __int128 least = goes_down ? -1 : 0;
  bool is_above = kt_is_constant(extent) && bound->integer > extent->integer - goes_down;
  if (bound->integer >= least && !is_above) return;
  const char *of = kt_is_constant(extent)
                     ? kj_format(s->arena, "%s", kt_integer_text(s->arena, extent->integer))
                     : "any extent";
  kt_fail(s->c, expr->location, KJIT_ERROR_TYPE,
          "position %s is out of bounds for %s; slices are not clamped",
          kt_integer_text(s->arena, bound->integer), of);
}

/* Returns the absolute value of step without overflow. The minimum i64 has no absolute value; it is
 * treated as the minimum plus 1, which selects the same number of elements. */
static kt_expr *size_of_step(kt_scope *s, const kt_expr *step, kj_location location)
{
  kt_operands least = { .builtin = &ki_builtin_table[KJ_BUILTIN_MAX], .location = location };
  KJ_PUSH(s->arena, &least.values, kt_copy_texpr(s, step));
  KJ_PUSH(s->arena, &least.values, integer(s, -INT64_MAX, location));
  kt_expr *zero = integer(s, 0, location),
          *down = subtract(s, zero, kt_new_builtin(s, &least, KJIT_INDEX), location);
  return kt_keep_value(s, choose(s, step, step, down, location));
}

/* Returns the number of elements of a slice: (span - 1) // |step| + 1, computed without overflow.
 * It is 0 for an empty span and for a step of 0. It is never negative, because with a negative
 * extent no index would fail the bounds check. If the slice has no bounds, `all` is the dimension
 * extent, otherwise NULL. */
static kt_expr *count_elements(kt_scope *s, const kt_expr *first, const kt_expr *stop,
                               const kt_expr *step, const kt_expr *all, kj_location location)
{
  if (kt_is_constant(step)) {
    __int128 size = step->integer < 0 ? -step->integer : step->integer;
    kt_expr *span = all                 ? kt_copy_texpr(s, all)
                    : step->integer > 0 ? subtract(s, stop, first, location)
                                        : subtract(s, first, stop, location);
    span = at_least_zero(s, span, location);
    if (size == 1) return span;
    if (size > INT64_MAX) size = INT64_MAX;
    return add(s,
               kt_make_binary(s, KJIT_OP_FLOORDIV, add(s, span, -1, location),
                              integer(s, size, location), location),
               1, location);
  }
  kt_expr *zero = integer(s, 0, location), *one = integer(s, 1, location);
  kt_expr *span = at_least_zero(s,
                                choose(s, step, subtract(s, stop, first, location),
                                       subtract(s, first, stop, location), location),
                                location);
  kt_expr *rounds = kt_make_binary(s, KJIT_OP_FLOORDIV, add(s, span, -1, location),
                                   size_of_step(s, step, location), location);
  if (rounds->kind == KJ_T_BINARY) rounds->step_of = KT_STEP_OF_SLICE;
  kt_expr *is_step = kt_make_binary(s, KJIT_OP_NE, kt_copy_texpr(s, step), zero, location);
  return kt_make_binary(s, KJIT_OP_ADD, rounds,
                        kt_make_cond(s, is_step, one, integer(s, 0, location), location), location);
}

static kt_expr *infer_step(kt_scope *s, const ki_expr *slice)
{
  if (!slice->z) return integer(s, 1, slice->location);
  kt_expr *step = infer_part(s, slice->z, "the step");
  if (is_value(step, 0))
    kt_fail(s->c, slice->z->location, KJIT_ERROR_TYPE, "the step of a slice must not be 0");
  return step;
}

/* Infers a slice. Its bounds are evaluated in source order, even if the default of one bound
 * depends on the sign of the step. */
kt_slice kt_infer_slice(kt_scope *s, const ki_expr *slice, const kt_expr *array, uint32_t dimension)
{
  kj_location location = slice->location;
  kt_expr *extent = kt_make_extent(s, kt_copy_texpr(s, array), dimension, location);
  kt_expr *first = slice->x ? infer_bound(s, slice->x, extent, "the start") : NULL;
  kt_expr *stop = slice->y ? infer_bound(s, slice->y, extent, "the end") : NULL;
  kt_expr *step = infer_step(s, slice), *zero = integer(s, 0, location);
  bool is_plain = is_value(step, 1), goes_down = kt_is_constant(step) && step->integer < 0;
  if (!first && !stop && is_plain) return (kt_slice){ .is_whole = true, .start = zero };
  const kt_expr *all = first || stop ? NULL : extent;
  if (s->wraps && first) first = clamp_bound(s, first, extent, step);
  if (s->wraps && stop) stop = clamp_bound(s, stop, extent, step);
  check_bound(s, slice->x, first, extent, goes_down);
  check_bound(s, slice->y, stop, extent, goes_down);
  kt_expr *last = add(s, kt_copy_texpr(s, extent), -1, location);
  if (!first) first = kt_keep_value(s, choose(s, step, zero, last, location));
  if (!stop) stop = kt_keep_value(s, choose(s, step, extent, integer(s, -1, location), location));
  kt_slice result = { .start = first,
                      .extent =
                        kt_keep_value(s, count_elements(s, first, stop, step, all, location)) };
  if (!is_plain) result.step = step;
  return result;
}

/* ---- types ---- */

static ki_type_info without_extents(const ki_type_info *info, uint32_t rank)
{
  ki_type_info plain = *info;
  plain.rank = rank;
  plain.is_static = false;
  memset(plain.extents, 0, sizeof plain.extents);
  return plain;
}

/* Returns whether a view is contiguous. A view is contiguous if its slices, starting from the
 * contiguous dimension, are first whole dimensions, then at most one slice with step 1, and then
 * only single indices. */
static bool is_contiguous(const kt_slice *slices, uint32_t rank, kjit_layout layout)
{
  bool is_closed = false;
  for (uint32_t i = 0; i < rank; i++) {
    const kt_slice *slice = &slices[layout == KJIT_LAYOUT_C ? rank - 1 - i : i];
    if (!slice->is_index && (is_closed || slice->step)) return false;
    is_closed = is_closed || !slice->is_whole;
  }
  return true;
}

static bool set_static_extents(const kt_slice *slices, const ki_type_info *array,
                               ki_type_info *view)
{
  uint32_t at = 0;
  for (uint32_t d = 0; d < array->rank; d++) {
    if (slices[d].is_index) continue;
    if (!slices[d].is_whole &&
        (!kt_is_constant(slices[d].extent) || slices[d].extent->integer == 0))
      return false;
    view->extents[at++] =
      slices[d].is_whole ? array->extents[d] : (int64_t)slices[d].extent->integer;
  }
  return true;
}

static kjit_type type_of_view(kt_scope *s, kjit_type array, const kt_slice *slices, uint32_t rank)
{
  const ki_type_info *info = ki_type(s->c->types, array);
  ki_type_info view = without_extents(info, rank), fixed = view;
  kjit_layout layout = info->is_static ? KJIT_LAYOUT_C : info->layout;
  if (layout == KJIT_LAYOUT_STRIDED || !is_contiguous(slices, info->rank, layout))
    view.layout = KJIT_LAYOUT_STRIDED;
  fixed.is_static = true;
  return info->is_static && view.layout == KJIT_LAYOUT_C && set_static_extents(slices, info, &fixed)
           ? kt_intern_array(s, &fixed)
           : kt_intern_array(s, &view);
}

/* ---- views ---- */

static int add_part(kt_scope *s, kt_expr *view, kt_expr *part)
{
  if (!part) return KJ_VIEW_SAME;
  KJ_PUSH(s->arena, &view->indices, part);
  return (int)view->indices.count - 1;
}

/* slices has an entry for each dimension of the array. */
kt_expr *kt_make_view(kt_scope *s, kt_expr *array, const kt_slice *slices, kj_location location)
{
  uint32_t from = ki_type(s->c->types, array->type)->rank, rank = 0, taken = 0;
  bool is_partial = false;
  for (uint32_t d = 0; d < from; d++) {
    rank += !slices[d].is_index;
    if (!slices[d].is_whole) taken = d + 1;
    if (!slices[d].is_index && !slices[d].is_whole) is_partial = true;
  }
  if (taken == 0) return array;
  kt_expr *view =
    kt_new_texpr(s->c, KJ_T_VIEW, type_of_view(s, array->type, slices, rank), location);
  view->x = array;
  for (uint32_t d = 0; d < taken; d++) KJ_PUSH(s->arena, &view->args, slices[d].start);
  if (!is_partial && from - rank == taken) return view;
  kt_view_dimension *dimensions = KJ_NEW_ARRAY(s->arena, kt_view_dimension, rank + 1);
  uint32_t at = 0;
  for (uint32_t d = 0; d < from; d++)
    if (!slices[d].is_index)
      dimensions[at++] = (kt_view_dimension){ (int)d, add_part(s, view, slices[d].extent),
                                              add_part(s, view, slices[d].step) };
  view->dimensions = dimensions;
  return view;
}

/* Makes a view that permutes dimensions: its dimension d is dimension map[d] of the array. */
static kt_expr *make_permuted(kt_scope *s, kt_expr *array, const uint32_t *map, kjit_type type,
                              kj_location location)
{
  uint32_t rank = ki_type(s->c->types, array->type)->rank;
  kt_view_dimension *dimensions = KJ_NEW_ARRAY(s->arena, kt_view_dimension, rank + 1);
  for (uint32_t d = 0; d < rank; d++)
    dimensions[d] = (kt_view_dimension){ (int)map[d], KJ_VIEW_SAME, KJ_VIEW_SAME };
  kt_expr *view = kt_new_texpr(s->c, KJ_T_VIEW, type, location);
  view->x = array;
  view->dimensions = dimensions;
  return view;
}

kt_expr *kt_make_transpose(kt_scope *s, kt_expr *array, kj_location location)
{
  array = kt_make_concrete(s, array);
  const ki_type_info *info = ki_type(s->c->types, array->type);
  ki_type_info type = without_extents(info, info->rank);
  uint32_t map[KJ_MAX_RANK];
  if (info->rank < 2) return array;
  if (info->is_static || info->layout == KJIT_LAYOUT_C) type.layout = KJIT_LAYOUT_F;
  else if (info->layout == KJIT_LAYOUT_F) type.layout = KJIT_LAYOUT_C;
  for (uint32_t d = 0; d < info->rank; d++) map[d] = info->rank - 1 - d;
  return make_permuted(s, array, map, kt_intern_array(s, &type), location);
}

kjit_type kt_forget_extents(kt_scope *s, kjit_type array)
{
  const ki_type_info *info = ki_type(s->c->types, array);
  ki_type_info plain = without_extents(info, info->rank);
  return info->is_static ? kt_intern_array(s, &plain) : array;
}

/* Returns the lower of two alignments. 0 means the alignment of the element type, which is the
 * highest possible value. */
static uint32_t lower_alignment(uint32_t a, uint32_t b) { return !a ? b : !b ? a : a < b ? a : b; }

kjit_type kt_join_arrays(kt_scope *s, kjit_type a, kjit_type b)
{
  const ki_type_info *x = ki_type(s->c->types, a), *y = ki_type(s->c->types, b);
  if (x->element != y->element || x->rank != y->rank || x->space != y->space) return KJIT_ANY;
  ki_type_info joined = without_extents(x, x->rank);
  if (x->layout != y->layout) joined.layout = KJIT_LAYOUT_STRIDED;
  joined.alignment_bytes = lower_alignment(x->alignment_bytes, y->alignment_bytes);
  joined.read_only = x->read_only || y->read_only;
  return kt_intern_array(s, &joined);
}

kt_expr *kt_give_array_type(kt_scope *s, kt_expr *array, kjit_type type)
{
  uint32_t map[KJ_MAX_RANK];
  for (uint32_t d = 0; d < KJ_MAX_RANK; d++) map[d] = d;
  return make_permuted(s, array, map, type, array->location);
}

/* ---- alignment of the start of an array ---- */

/* Computes the view's offset from its array's start, in bytes. Returns false if the offset is not
 * known at compile time. */
static bool find_offset(kt_scope *s, const kt_expr *view, uint32_t *bytes)
{
  const ki_type_info *info = ki_type(s->c->types, view->x->type);
  __int128 elements = 0;
  for (size_t d = 0; d < view->args.count; d++) {
    const kt_expr *index = view->args.items[d];
    bool is_zero = is_value(index, 0);
    if (!kt_is_constant(index) || (!is_zero && !info->is_static && info->rank > 1)) return false;
    elements = elements * (info->is_static ? info->extents[d] : 1) + index->integer;
  }
  for (size_t d = view->args.count; info->is_static && d < info->rank; d++)
    elements *= info->extents[d];
  __int128 all = elements * ki_type(s->c->types, info->element)->size_bytes;
  *bytes = (uint32_t)all;
  return all >= 0 && all <= UINT32_MAX;
}

uint32_t kt_find_start(kt_scope *s, const kt_expr *array)
{
  uint32_t bytes;
  if (array->kind == KJ_T_VIEW) {
    uint32_t start = kt_find_start(s, array->x);
    return start && find_offset(s, array, &bytes) ? ki_alignment_at(start, bytes) : 0;
  }
  if (array->kind != KJ_T_VAR) return 0;
  bool is_storage = array->var->kind == KJ_V_SHARED || array->var->kind == KJ_V_LOCAL;
  return is_storage ? kt_storage_alignment(s->c->types, array->var) : array->var->start_alignment;
}

kt_bound kt_value_bound(kt_scope *s, const kt_expr *value)
{
  kt_bound bound = { .kind = KJ_BOUND_VALUE, .type = value->type };
  const ki_type_info *info = ki_type(s->c->types, value->type);
  bool is_own = info->class_ == KJ_CLASS_ARRAY &&
                (info->space == KJ_SPACE_SHARED || info->space == KJ_SPACE_LOCAL);
  if (is_own && ki_type(s->c->types, info->element)->size_bytes == 1)
    bound.start = kt_find_start(s, value);
  return bound;
}

/* ---- reshape ---- */

static void add_extent(kt_scope *s, kt_exprs *extents, kt_expr *value)
{
  if (!kt_is_integer(s->c, value->type))
    kt_fail_number(s->c, value->location, value->type,
                   "an extent of `reshape` must be an integer, got %s",
                   kt_type_text(s->c, value->type));
  if (kt_is_constant(value) && value->integer < 0)
    kt_fail(s->c, value->location, KJIT_ERROR_TYPE,
            "an extent of `reshape` must be at least 0, got %s; kjit does not infer one extent "
            "from the others",
            kt_integer_text(s->arena, value->integer));
  KJ_PUSH(s->arena, extents, kt_keep_value(s, kt_convert_to_index(s, value, value->location)));
}

static kt_exprs read_extents(kt_scope *s, const kt_operands *o)
{
  kt_exprs extents = { 0 };
  for (size_t i = 1; i < o->values.count; i++) {
    kt_expr *value = o->values.items[i];
    if (!kt_is_tuple(s->c, value->type)) {
      add_extent(s, &extents, value);
      continue;
    }
    value = kt_keep_value(s, value);
    uint32_t count = ki_type(s->c->types, value->type)->count;
    for (uint32_t k = 0; k < count; k++)
      add_extent(s, &extents, kt_make_item(s, kt_copy_texpr(s, value), k, value->location));
  }
  if (extents.count > KJ_MAX_RANK)
    kt_fail(s->c, o->location, KJIT_ERROR_TYPE, "an array has at most %d dimensions, got %zu",
            KJ_MAX_RANK, extents.count);
  return extents;
}

/* Computes the product of extents and saturates it. Returns false if an extent is not constant. */
static bool product_of(const kt_exprs *extents, __int128 *product)
{
  *product = 1;
  for (size_t i = 0; i < extents->count; i++) {
    if (!kt_is_constant(extents->items[i])) return false;
    if (*product < (__int128)1 << 63) *product *= extents->items[i]->integer;
  }
  return true;
}

static kjit_type type_of_shape(kt_scope *s, kjit_type array, const kt_exprs *extents,
                               kj_location location)
{
  const ki_type_info *info = ki_type(s->c->types, array);
  ki_type_info type = without_extents(info, (uint32_t)extents->count);
  __int128 want, have;
  type.layout = KJIT_LAYOUT_C;
  if (!info->is_static || !product_of(extents, &want)) return kt_intern_array(s, &type);
  have = (__int128)ki_element_count(info);
  if (want != have) {
    const char *text = kt_integer_text(s->arena, have);
    kt_fail(s->c, location, KJIT_ERROR_TYPE,
            "`reshape` must keep the number of elements, but the array has %s elements and the new "
            "shape has %s",
            text, kt_integer_text(s->arena, want));
  }
  type.is_static = true;
  for (size_t d = 0; d < extents->count; d++) type.extents[d] = (int64_t)extents->items[d]->integer;
  return kt_intern_array(s, &type);
}

static kt_expr *array_operand(kt_scope *s, const kt_operands *o)
{
  kt_expr *array = o->values.items[0];
  if (!kt_is_array(s->c, array->type))
    kt_fail(s->c, array->location, KJIT_ERROR_TYPE, "`%s` needs an array, got %s", o->builtin->name,
            kt_type_text(s->c, array->type));
  return array;
}

kt_expr *kt_refer(kt_scope *s, kt_expr *value, kj_location location)
{
  bool is_element =
    value->kind == KJ_T_LOAD && kt_is_struct(s->c, value->type) && !kt_is_date(s, value->type);
  return is_element ? kt_make_only(s, value->x, &value->args, location) : value;
}

/* Returns whether the type is that of a reference made by kt_refer, or a tuple with such an
 * item. */
static bool has_reference(const kt_scope *s, kjit_type type)
{
  const ki_type_info *info = ki_type(s->c->types, type);
  if (kt_is_array(s->c, type))
    return !info->rank && kt_is_struct(s->c, info->element) && !kt_is_date(s, info->element);
  if (!kt_is_tuple(s->c, type)) return false;
  for (uint32_t i = 0; i < info->count; i++)
    if (has_reference(s, info->items[i])) return true;
  return false;
}

kt_expr *kt_copy_referred(kt_scope *s, kt_expr *value, kj_location location)
{
  if (!has_reference(s, value->type)) return value;
  const ki_type_info *info = ki_type(s->c->types, value->type);
  value = kt_keep_value(s, value);
  if (!kt_is_tuple(s->c, value->type)) {
    const kt_place only = { .array = value, .type = info->element, .location = location };
    return kt_load_place(s, &only);
  }
  kt_exprs items = { 0 };
  for (uint32_t i = 0; i < info->count; i++) {
    kt_expr *item = kt_make_item(s, kt_copy_texpr(s, value), i, location);
    KJ_PUSH(s->arena, &items, kt_copy_referred(s, item, location));
  }
  return kt_make_tuple(s, &items, location);
}

kt_expr *kt_rule_refer(kt_scope *s, const kt_operands *o)
{
  return kt_refer(s, o->values.items[0], o->location);
}

kt_expr *kt_rule_transpose(kt_scope *s, const kt_operands *o)
{
  return kt_make_transpose(s, array_operand(s, o), o->location);
}

kt_expr *kt_rule_reshape(kt_scope *s, const kt_operands *o)
{
  kt_expr *array = kt_make_concrete(s, array_operand(s, o));
  const ki_type_info *info = ki_type(s->c->types, array->type);
  if (!info->is_static && info->layout != KJIT_LAYOUT_C)
    kt_fail(
      s->c, o->location, KJIT_ERROR_TYPE,
      "`reshape` needs an array with contiguous elements in row-major order (layout C), got %s",
      kt_type_text(s->c, array->type));
  array = kt_keep_value(s, array);
  kt_exprs extents = read_extents(s, o);
  kt_expr *view = kt_new_texpr(s->c, KJ_T_VIEW,
                               type_of_shape(s, array->type, &extents, o->location), o->location);
  kt_view_dimension *dimensions = KJ_NEW_ARRAY(s->arena, kt_view_dimension, extents.count + 1);
  view->x = array;
  for (size_t d = 0; d < extents.count; d++)
    dimensions[d] =
      (kt_view_dimension){ KJ_VIEW_SAME, add_part(s, view, extents.items[d]), KJ_VIEW_SAME };
  view->dimensions = dimensions;
  return view;
}
