/* Type inference of indexing: elements, views and properties of arrays, items of tuples, and
 * components of values. */
#include <string.h>

#include "typing/rules.h"

static const char *name_of(const ki_expr *expr)
{
  return expr->kind == KJ_EXPR_DECL ? expr->decl->name : "the array";
}

/* ---- properties ---- */

/* Returns an extent of a view without creating the view itself. */
static kt_expr *extent_of_view(kt_scope *s, const kt_expr *view, uint32_t dimension,
                               kj_location location)
{
  const kt_view_dimension same = { (int)(dimension + view->args.count), KJ_VIEW_SAME,
                                   KJ_VIEW_SAME };
  const kt_view_dimension *from = view->dimensions ? &view->dimensions[dimension] : &same;
  if (from->extent != KJ_VIEW_SAME) return kt_copy_texpr(s, view->indices.items[from->extent]);
  return kt_make_extent(s, kt_copy_texpr(s, view->x), (uint32_t)from->source, location);
}

kt_expr *kt_make_extent(kt_scope *s, kt_expr *array, uint32_t dimension, kj_location location)
{
  const ki_type_info *info = ki_type(s->c->types, array->type);
  bool is_plain_view = array->kind == KJ_T_VIEW && !kt_has_effect(array);
  if (info->is_static || is_plain_view) kt_drop_value(s, kt_copy_texpr(s, array));
  if (info->is_static) return kt_new_integer(s, KJIT_INDEX, info->extents[dimension], location);
  if (is_plain_view) return extent_of_view(s, array, dimension, location);
  kt_expr *extent = kt_new_texpr(s->c, KJ_T_EXTENT, KJIT_INDEX, location);
  extent->x = array;
  extent->dimension = dimension;
  return extent;
}

kt_expr *kt_make_stride(kt_scope *s, kt_expr *array, uint32_t dimension, kj_location location)
{
  const ki_type_info *info = ki_type(s->c->types, array->type);
  if (info->is_static) {
    int64_t stride = 1;
    for (uint32_t i = dimension + 1; i < info->rank; i++) stride *= info->extents[i];
    return kt_new_integer(s, KJIT_INDEX, stride, location);
  }
  kt_expr *expr = kt_new_texpr(s->c, KJ_T_STRIDE, KJIT_INDEX, location);
  expr->x = array;
  expr->dimension = dimension;
  return expr;
}

typedef kt_expr *(*make_dimension)(kt_scope *s, kt_expr *array, uint32_t dimension,
                                   kj_location location);

static kt_expr *make_dimensions(kt_scope *s, kt_expr *array, make_dimension make,
                                kj_location location)
{
  kt_exprs items = { 0 };
  array = kt_keep_value(s, array);
  uint32_t rank = ki_type(s->c->types, array->type)->rank;
  for (uint32_t i = 0; i < rank; i++)
    KJ_PUSH(s->arena, &items, make(s, kt_copy_texpr(s, array), i, location));
  return kt_make_tuple(s, &items, location);
}

kt_expr *kt_make_shape(kt_scope *s, kt_expr *array, kj_location location)
{
  return make_dimensions(s, array, kt_make_extent, location);
}

kt_expr *kt_make_size(kt_scope *s, kt_expr *array, kj_location location)
{
  kt_expr *size = kt_new_integer(s, KJIT_INDEX, 1, location);
  kt_expr *shape = kt_make_shape(s, array, location);
  for (size_t i = 0; i < shape->args.count; i++)
    size = i ? kt_make_binary(s, KJIT_OP_MUL, size, shape->args.items[i], location)
             : shape->args.items[i];
  return size;
}

kt_expr *kt_infer_property(kt_scope *s, const ki_expr *expr, kt_expr *array)
{
  if (strcmp(expr->name, "shape") == 0) return kt_make_shape(s, array, expr->location);
  if (strcmp(expr->name, "strides") == 0)
    return make_dimensions(s, array, kt_make_stride, expr->location);
  if (strcmp(expr->name, "size") == 0) return kt_make_size(s, array, expr->location);
  if (strcmp(expr->name, "ndim") == 0) {
    kt_drop_value(s, array);
    return kt_new_integer(s, KJ_WEAK_INT, ki_type(s->c->types, array->type)->rank, expr->location);
  }
  if (strcmp(expr->name, "T") == 0 && kt_is_array(s->c, array->type))
    return kt_make_transpose(s, array, expr->location);
  return NULL;
}

/* ---- indices ---- */

bool kt_is_from_end(const ki_expr *expr, __int128 *distance)
{
  if (expr->kind != KJ_EXPR_UNARY || expr->op != KJIT_OP_NEG || expr->x->kind != KJ_EXPR_INT)
    return false;
  *distance = expr->x->integer;
  return *distance > 0;
}

static void check_index_type(kt_scope *s, const kt_expr *index)
{
  if (kt_is_integer(s->c, index->type)) return;
  const char *hint = kt_is_float(s->c, index->type) ? ": write i32(...)" : "";
  kt_fail_number(s->c, index->location, index->type, "an index must be an integer, got %s%s",
                 kt_type_text(s->c, index->type), hint);
}

typedef struct indexing {
  const ki_expr *expr;
  kt_expr *base;
  kt_exprs indices;
  /* for each dimension, the slice if its index is a slice; a slice's start is in `indices` */
  kt_slice slices[KJ_MAX_RANK];
  uint32_t slice_count;
} indexing;

static void check_rank(kt_scope *s, const indexing *at)
{
  uint32_t rank = ki_type(s->c->types, at->base->type)->rank;
  if (at->indices.count <= rank) return;
  kt_fail(s->c, at->expr->location, KJIT_ERROR_TYPE,
          "`%s` has %u dimension%s (%s), got %zu indices", name_of(at->expr->x), rank,
          rank == 1 ? "" : "s", kt_type_text(s->c, at->base->type), at->indices.count);
}

kt_expr *kt_convert_to_index(kt_scope *s, kt_expr *value, kj_location location)
{
  if (value->type != KJIT_U64) return kt_convert(s, value, KJIT_INDEX, location);
  kt_expr *largest = kt_new_integer(s, KJIT_U64, INT64_MAX, location);
  if (kt_is_constant(value))
    return kt_convert(s, value->integer > INT64_MAX ? largest : value, KJIT_INDEX, location);
  kt_operands operands = { .builtin = &ki_builtin_table[KJ_BUILTIN_MIN], .location = location };
  KJ_PUSH(s->arena, &operands.values, value);
  KJ_PUSH(s->arena, &operands.values, largest);
  return kt_convert(s, kt_new_builtin(s, &operands, KJIT_U64), KJIT_INDEX, location);
}

kt_expr *kt_wrap_index(kt_scope *s, kt_expr *index, kt_expr *extent)
{
  kj_location location = index->location;
  kjit_type type = kt_concrete_type(index);
  if (!s->wraps || type == KJIT_BOOL || kt_class_of(s->c, type) == KJ_CLASS_UNSIGNED) return index;
  if (kt_is_constant(index) && index->integer >= 0) return index;
  index = kt_keep_value(s, kt_convert(s, index, KJIT_INDEX, location));
  kt_expr *from_end = kt_make_binary(s, KJIT_OP_ADD, kt_copy_texpr(s, index), extent, location);
  if (kt_is_constant(index)) return from_end;
  kt_expr *zero = kt_new_integer(s, KJIT_INDEX, 0, location),
          *is_negative = kt_make_binary(s, KJIT_OP_LT, kt_copy_texpr(s, index), zero, location),
          *wrapped = kt_make_cond(s, is_negative, from_end, index, location);
  if (wrapped->kind == KJ_T_COND) wrapped->is_wrap = s->c->has_wraps = true;
  return wrapped;
}

static void add_index(kt_scope *s, indexing *at, kt_expr *index)
{
  uint32_t dimension = (uint32_t)at->indices.count;
  check_index_type(s, index);
  if (s->wraps && dimension < ki_type(s->c->types, at->base->type)->rank)
    index =
      kt_wrap_index(s, index,
                    kt_make_extent(s, kt_copy_texpr(s, at->base), dimension, index->location));
  KJ_PUSH(s->arena, &at->indices, kt_make_concrete(s, index));
  check_rank(s, at);
}

static void add_from_end(kt_scope *s, indexing *at, __int128 distance, kj_location location)
{
  uint32_t dimension = (uint32_t)at->indices.count;
  const ki_type_info *info = ki_type(s->c->types, at->base->type);
  if (info->is_static && dimension < info->rank && distance > info->extents[dimension])
    kt_fail(s->c, location, KJIT_ERROR_TYPE, "index -%s is out of bounds for an extent of %lld",
            kt_integer_text(s->arena, distance), (long long)info->extents[dimension]);
  if (dimension >= info->rank) KJ_PUSH(s->arena, &at->indices, NULL);
  check_rank(s, at);
  kt_expr *extent = kt_make_extent(s, kt_copy_texpr(s, at->base), dimension, location);
  KJ_PUSH(s->arena, &at->indices,
          kt_make_binary(s, KJIT_OP_SUB, extent, kt_new_integer(s, KJ_WEAK_INT, distance, location),
                         location));
}

static void add_slice(kt_scope *s, indexing *at, const ki_expr *expr)
{
  uint32_t dimension = (uint32_t)at->indices.count;
  if (dimension >= ki_type(s->c->types, at->base->type)->rank)
    KJ_PUSH(s->arena, &at->indices, NULL);
  check_rank(s, at);
  at->slices[dimension] = kt_infer_slice(s, expr, at->base, dimension);
  KJ_PUSH(s->arena, &at->indices, at->slices[dimension].start);
  at->slice_count++;
}

static void add_argument(kt_scope *s, indexing *at, const ki_expr *expr)
{
  __int128 distance;
  if (expr->kind == KJ_EXPR_SLICE) {
    add_slice(s, at, expr);
    return;
  }
  if (kt_is_from_end(expr, &distance)) {
    add_from_end(s, at, distance, expr->location);
    return;
  }
  kt_expr *index = kt_infer_expr(s, expr);
  if (!kt_is_tuple(s->c, index->type)) {
    add_index(s, at, index);
    return;
  }
  index = kt_keep_value(s, index);
  uint32_t count = ki_type(s->c->types, index->type)->count;
  for (uint32_t i = 0; i < count; i++)
    add_index(s, at, kt_make_item(s, kt_copy_texpr(s, index), i, expr->location));
}

/* Returns whether an index counts from the end or is a slice. */
static bool has_from_end(const ki_exprs *args)
{
  __int128 distance;
  for (size_t i = 0; i < args->count; i++)
    if (args->items[i]->kind == KJ_EXPR_SLICE || kt_is_from_end(args->items[i], &distance))
      return true;
  return false;
}

/* Ends an argument as an operand. If the argument is a tuple, each of its items is an index. */
static void end_argument(kt_scope *s, const indexing *at, size_t before, kt_order *order)
{
  kt_exprs added = { .items = at->indices.items + before, .count = at->indices.count - before };
  kt_end_place(s, order, &(kt_place){ .indices = added });
}

static void infer_indices(kt_scope *s, indexing *at)
{
  const ki_exprs *args = &at->expr->args;
  if (s->wraps || has_from_end(args)) at->base = kt_keep_value(s, at->base);
  kt_order order = { 0 };
  kt_begin_operand(s, &order);
  kt_end_operand(s, &order, at->base);
  for (size_t i = 0; i < args->count; i++) {
    size_t before = at->indices.count;
    kt_begin_operand(s, &order);
    add_argument(s, at, args->items[i]);
    end_argument(s, at, before, &order);
    at->base = kt_settle_array(s, &order, at->base);
    kt_settle(s, &order, at->indices.items, before);
  }
}

/* ---- elements and views ---- */

static kt_expr *make_view(kt_scope *s, const indexing *at)
{
  kt_slice slices[KJ_MAX_RANK];
  uint32_t rank = ki_type(s->c->types, at->base->type)->rank;
  for (uint32_t d = 0; d < rank; d++) {
    bool is_given = d < at->indices.count, is_slice = is_given && at->slices[d].start;
    slices[d] =
      is_slice ? at->slices[d] : (kt_slice){ .is_index = is_given, .is_whole = !is_given };
    slices[d].start = is_given ? at->indices.items[d] : NULL;
  }
  return kt_make_view(s, at->base, slices, at->expr->location);
}

/* Returns the element of a constant array if all indices are known at compile time, otherwise
 * NULL. */
static kt_expr *constant_element(kt_scope *s, const kt_constant *constant, const indexing *at)
{
  int64_t place = 0;
  for (uint32_t i = 0; i < constant->rank; i++) {
    const kt_expr *index = at->indices.items[i];
    if (!kt_is_constant(index)) return NULL;
    if (constant->extents[i] == 0)
      kt_fail(s->c, index->location, KJIT_ERROR_TYPE, "`%s` has no elements", constant->name);
    if (index->integer < 0 || index->integer >= constant->extents[i])
      kt_fail(s->c, index->location, KJIT_ERROR_TYPE, "index %s is out of bounds for 0..%lld",
              kt_integer_text(s->arena, index->integer), (long long)constant->extents[i] - 1);
    place = place * constant->extents[i] + (int64_t)index->integer;
  }
  kt_expr *element = kt_copy_texpr(s, constant->elements.items[place]);
  element->location = at->expr->location;
  return element;
}

static kt_expr *make_element(kt_scope *s, indexing *at)
{
  const kt_constant *constant = kt_weak_constant(s, at->base);
  kt_expr *known = constant && at->indices.count == constant->rank && !at->slice_count
                     ? constant_element(s, constant, at)
                     : NULL;
  if (known) return known;
  bool is_whole =
    at->indices.count == ki_type(s->c->types, at->base->type)->rank && !at->slice_count;
  if (constant && !(is_whole && ki_is_weak(constant->element)))
    at->base = kt_make_concrete(s, at->base);
  if (!is_whole) return make_view(s, at);
  kt_expr *load = kt_new_texpr(s->c, KJ_T_LOAD, ki_type(s->c->types, at->base->type)->element,
                               at->expr->location);
  load->x = at->base;
  load->args = at->indices;
  return load;
}

/* Ends the value as an operand and begins its index, which is evaluated after the value. */
static kt_order begin_index_of(kt_scope *s, const kt_expr *value)
{
  kt_order order = { 0 };
  kt_begin_operand(s, &order);
  kt_end_operand(s, &order, value);
  kt_begin_operand(s, &order);
  return order;
}

/* Infers a lane in a vector, `v[i]` or `v[-1]`. If the index is known at compile time, the result
 * is an ITEM node. */
static kt_expr *infer_lane(kt_scope *s, const ki_expr *expr, kt_expr *vector)
{
  uint32_t count = ki_type(s->c->types, vector->type)->count;
  __int128 distance = 0;
  if (expr->args.count != 1)
    kt_fail(s->c, expr->location, KJIT_ERROR_TYPE, "a vector takes exactly one index, got %zu",
            expr->args.count);
  const ki_expr *arg = expr->args.items[0];
  if (arg->kind == KJ_EXPR_SLICE)
    kt_fail(s->c, arg->location, KJIT_ERROR_TYPE,
            "a vector cannot be sliced: select its lanes, as in `v.xy`");
  bool is_from_end = kt_is_from_end(arg, &distance);
  kt_order order = begin_index_of(s, vector);
  kt_expr *index = is_from_end ? kt_new_integer(s, KJ_WEAK_INT, count - distance, arg->location)
                               : kt_infer_expr(s, arg);
  check_index_type(s, index);
  index = kt_wrap_index(s, index, kt_new_integer(s, KJIT_INDEX, count, arg->location));
  kt_end_operand(s, &order, index);
  kt_settle(s, &order, &vector, 1);
  if (!kt_is_constant(index))
    return kt_read_lane(s, vector, kt_make_concrete(s, index), expr->location);
  if (index->integer < 0 || index->integer >= count)
    kt_fail(s->c, arg->location, KJIT_ERROR_TYPE,
            "index %s is out of bounds for a vector with %u lanes",
            kt_integer_text(s->arena, is_from_end ? -distance : index->integer), count);
  ki_component lane = ki_get_component(s->c->types, vector->type, (uint32_t)index->integer);
  return kt_read_component(s, vector, lane, expr->location);
}

/* ---- parts of values: lanes of vectors, elements of arrays inside structs ---- */

static int64_t part_extent(const ki_type_info *info, uint32_t dimension)
{
  return info->class_ == KJ_CLASS_VECTOR ? info->count : info->extents[dimension];
}

static kt_expr *infer_part_index(kt_scope *s, const ki_expr *arg, int64_t extent)
{
  __int128 distance;
  if (arg->kind == KJ_EXPR_SLICE)
    kt_fail(s->c, arg->location, KJIT_ERROR_TYPE,
            "slices of vectors and of arrays inside structs are not supported: select one element");
  kt_expr *index = kt_is_from_end(arg, &distance)
                     ? kt_new_integer(s, KJIT_INDEX, extent - distance, arg->location)
                     : kt_infer_expr(s, arg);
  check_index_type(s, index);
  index = kt_wrap_index(s, index, kt_new_integer(s, KJIT_INDEX, extent, arg->location));
  if (kt_is_constant(index) && (index->integer < 0 || index->integer >= extent))
    kt_fail(s->c, arg->location, KJIT_ERROR_TYPE, "index %s is out of bounds for 0..%lld",
            kt_integer_text(s->arena, index->integer), (long long)extent - 1);
  return kt_make_concrete(s, index);
}

kt_exprs kt_infer_part_indices(kt_scope *s, const ki_expr *expr, kjit_type type)
{
  const ki_type_info *info = ki_type(s->c->types, type);
  kt_exprs indices = { 0 };
  uint32_t rank = info->class_ == KJ_CLASS_VECTOR ? 1 : info->rank;
  if (expr->args.count != rank)
    kt_fail(s->c, expr->location, KJIT_ERROR_TYPE, "%s takes %u %s, got %zu",
            kt_type_text(s->c, type), rank, rank == 1 ? "index" : "indices", expr->args.count);
  kt_order order = { 0 };
  for (uint32_t i = 0; i < rank; i++) {
    kt_begin_operand(s, &order);
    kt_expr *index = infer_part_index(s, expr->args.items[i], part_extent(info, i));
    kt_end_operand(s, &order, index);
    kt_settle(s, &order, indices.items, indices.count);
    KJ_PUSH(s->arena, &indices, index);
  }
  return indices;
}

kt_expr *kt_take_part(kt_scope *s, kt_expr *value, const kt_exprs *indices, kj_location location)
{
  const ki_type_info *info = ki_type(s->c->types, value->type);
  int64_t place = 0;
  bool is_known = true;
  for (uint32_t i = 0; i < indices->count; i++) {
    is_known = is_known && kt_is_constant(indices->items[i]);
    if (is_known) place = place * part_extent(info, i) + (int64_t)indices->items[i]->integer;
  }
  bool is_item =
    is_known && (info->class_ == KJ_CLASS_VECTOR || kt_can_take_item(s, value, (uint32_t)place));
  if (is_item) return kt_make_item(s, value, (uint32_t)place, location);
  kt_expr *element = kt_new_texpr(s->c, KJ_T_ELEMENT, info->element, location);
  element->x = value;
  element->args = *indices;
  return element;
}

static kt_expr *infer_part(kt_scope *s, const ki_expr *expr, kt_expr *value)
{
  kt_order order = begin_index_of(s, value);
  kt_exprs indices = kt_infer_part_indices(s, expr, value->type);
  kt_end_place(s, &order, &(kt_place){ .indices = indices });
  kt_settle(s, &order, &value, 1);
  return kt_take_part(s, value, &indices, expr->location);
}

/* ---- elements that a pointer points to ---- */

static kt_expr *infer_pointed(kt_scope *s, const ki_expr *expr, kt_expr *pointer)
{
  const ki_exprs *args = &expr->args;
  if (args->count != 1)
    kt_fail(
      s->c, expr->location, KJIT_ERROR_TYPE,
      "a pointer takes exactly one index, got %zu; for more dimensions write `view(%s[n, m], p)`",
      args->count, kt_type_text(s->c, ki_type(s->c->types, pointer->type)->element));
  if (has_from_end(args))
    kt_fail(s->c, args->items[0]->location, KJIT_ERROR_TYPE,
            "a pointer has no length, so negative indices and slices are not possible: "
            "`view(%s[n], p)` is an array of n elements",
            kt_type_text(s->c, ki_type(s->c->types, pointer->type)->element));
  kt_order order = begin_index_of(s, pointer);
  kt_expr *index = kt_infer_expr(s, args->items[0]);
  check_index_type(s, index);
  kt_end_operand(s, &order, index);
  kt_settle(s, &order, &pointer, 1);
  kt_expr *load =
    kt_new_texpr(s->c, KJ_T_LOAD, ki_type(s->c->types, pointer->type)->element, expr->location);
  load->x = kt_make_pointed(s, pointer, expr->location);
  KJ_PUSH(s->arena, &load->args, kt_make_concrete(s, index));
  return load;
}

/* ---- fields of records by number, as in Numba ---- */

/* Returns the struct type whose fields can be selected by number. Returns KJIT_ANY if `base` is
 * neither a struct nor a reference to a struct, which is an array of rank 0. */
static kjit_type numbered_struct(kt_scope *s, kjit_type base)
{
  const ki_type_info *info = ki_type(s->c->types, base);
  bool is_reference = kt_is_array(s->c, base) && info->rank == 0;
  kjit_type type = is_reference ? info->element : base;
  return s->has_numba_types && kt_is_struct(s->c, type) ? type : KJIT_ANY;
}

/* Returns whether the field only fills a gap between the fields of a NumPy dtype. The Python
 * package adds such fields. They have no numbers. */
static bool is_gap(const char *field) { return strncmp(field, "gap_at_", 7) == 0; }

static uint32_t count_numbered(const ki_type_info *info)
{
  uint32_t count = 0;
  for (uint32_t i = 0; i < info->count; i++) count += !is_gap(info->field_names[i]);
  return count;
}

static uint32_t numbered_field(const ki_type_info *info, uint32_t number)
{
  uint32_t field = 0;
  for (; field < info->count; field++)
    if (!is_gap(info->field_names[field]) && number-- == 0) break;
  KJ_ASSERT(field < info->count);
  return field;
}

bool kt_find_numbered(kt_scope *s, const ki_expr *expr, kjit_type base, ki_component *component)
{
  kjit_type type = numbered_struct(s, base);
  if (type == KJIT_ANY || expr->args.count != 1) return false;
  const ki_expr *arg = expr->args.items[0];
  if (arg->kind == KJ_EXPR_SLICE) return false;
  const ki_type_info *info = ki_type(s->c->types, type);
  uint32_t count = count_numbered(info);
  __int128 distance = 0;
  kt_expr *index = kt_is_from_end(arg, &distance)
                     ? kt_new_integer(s, KJ_WEAK_INT, count - distance, arg->location)
                     : kt_infer_expr(s, arg);
  check_index_type(s, index);
  if (!kt_is_constant(index))
    kt_fail(s->c, arg->location, KJIT_ERROR_TYPE,
            "the index of a field must be known at compile time: %s has %u fields",
            kt_type_text(s->c, type), count);
  if (index->integer < 0 || index->integer >= count)
    kt_fail(s->c, arg->location, KJIT_ERROR_TYPE, "%s has %u fields, and no field %s",
            kt_type_text(s->c, type), count,
            kt_integer_text(s->arena, distance ? -distance : index->integer));
  uint32_t field = numbered_field(info, (uint32_t)index->integer);
  *component = ki_get_component(s->c->types, type, field);
  return true;
}

static kt_expr *read_numbered(kt_scope *s, const ki_expr *expr, kt_expr *base,
                              ki_component component)
{
  if (kt_is_struct(s->c, base->type)) return kt_read_component(s, base, component, expr->location);
  kt_expr *member = kt_make_member(s, base, component, expr->location);
  return kt_is_value_array(s->c, component.type)
           ? member
           : kt_new_load(s, member, &(kt_exprs){ 0 }, expr->location);
}

/* ---- indexing of any value ---- */

kt_expr *kt_index_value(kt_scope *s, const ki_expr *expr, kt_expr *base)
{
  ki_component field;
  if (kt_find_numbered(s, expr, base->type, &field)) return read_numbered(s, expr, base, field);
  if (kt_is_tuple(s->c, base->type)) return kt_infer_item(s, expr, base);
  if (kt_is_vector(s->c, base->type)) return infer_lane(s, expr, base);
  if (kt_is_value_array(s->c, base->type)) return infer_part(s, expr, base);
  if (kt_is_pointer(s->c, base->type)) return infer_pointed(s, expr, base);
  if (!kt_is_array(s->c, base->type))
    kt_fail(s->c, expr->location, KJIT_ERROR_TYPE,
            "only arrays, tuples, vectors and pointers can be indexed, but `%s` is %s",
            name_of(expr->x), kt_type_text(s->c, base->type));
  indexing at = { .expr = expr, .base = base };
  infer_indices(s, &at);
  return make_element(s, &at);
}

kt_expr *kt_infer_index(kt_scope *s, const ki_expr *expr)
{
  const ki_expr *moved = kt_move_index(s, expr);
  return moved ? kt_infer_expr(s, moved) : kt_index_value(s, expr, kt_infer_expr(s, expr->x));
}
