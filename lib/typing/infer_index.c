/* Elements, parts and properties of arrays, items of tuples, and places. */
#include <string.h>

#include "typing/infer.h"

static const char *name_of(const kj_expr *expr) { return expr->kind == KJ_EXPR_DECL ? expr->decl->name : "the array"; }

/* ---- properties ---- */

/* Without making the view. */
static kj_texpr *extent_of_view(kj_scope *s, const kj_texpr *view, uint32_t dimension, kj_location location)
{
  const kj_view_dimension same = { (int)(dimension + view->args.count), KJ_VIEW_SAME, KJ_VIEW_SAME };
  const kj_view_dimension *from = view->dimensions ? &view->dimensions[dimension] : &same;
  if (from->extent != KJ_VIEW_SAME) return kj_copy_texpr(s, view->indices.items[from->extent]);
  return kj_make_extent(s, kj_copy_texpr(s, view->x), (uint32_t)from->source, location);
}

kj_texpr *kj_make_extent(kj_scope *s, kj_texpr *array, uint32_t dimension, kj_location location)
{
  const kj_type_info *info = kj_type(s->c->types, array->type);
  if (info->is_static) return kj_new_integer(s, KJIT_INDEX, info->extents[dimension], location);
  if (array->kind == KJ_T_VIEW && !kj_has_effect(array)) return extent_of_view(s, array, dimension, location);
  kj_texpr *extent = kj_new_texpr(s->c, KJ_T_EXTENT, KJIT_INDEX, location);
  extent->x = array;
  extent->dimension = dimension;
  return extent;
}

static kj_texpr *make_stride(kj_scope *s, kj_texpr *array, uint32_t dimension, kj_location location)
{
  const kj_type_info *info = kj_type(s->c->types, array->type);
  if (info->is_static) {
    int64_t stride = 1;
    for (uint32_t i = dimension + 1; i < info->rank; i++) stride *= info->extents[i];
    return kj_new_integer(s, KJIT_INDEX, stride, location);
  }
  kj_texpr *expr = kj_new_texpr(s->c, KJ_T_STRIDE, KJIT_INDEX, location);
  expr->x = array;
  expr->dimension = dimension;
  return expr;
}

typedef kj_texpr *(*make_dimension)(kj_scope *s, kj_texpr *array, uint32_t dimension, kj_location location);

static kj_texpr *make_dimensions(kj_scope *s, kj_texpr *array, make_dimension make, kj_location location)
{
  kj_texprs items = { 0 };
  array = kj_keep_value(s, array);
  uint32_t rank = kj_type(s->c->types, array->type)->rank;
  for (uint32_t i = 0; i < rank; i++) KJ_PUSH(s->arena, &items, make(s, kj_copy_texpr(s, array), i, location));
  return kj_make_tuple(s, &items, location);
}

kj_texpr *kj_make_shape(kj_scope *s, kj_texpr *array, kj_location location) { return make_dimensions(s, array, kj_make_extent, location); }

kj_texpr *kj_make_size(kj_scope *s, kj_texpr *array, kj_location location)
{
  kj_texpr *size = kj_new_integer(s, KJIT_INDEX, 1, location);
  kj_texpr *shape = kj_make_shape(s, array, location);
  for (size_t i = 0; i < shape->args.count; i++) size = i ? kj_make_binary(s, KJIT_MUL, size, shape->args.items[i], location) : shape->args.items[i];
  return size;
}

static kj_texpr *infer_array_field(kj_scope *s, const kj_expr *expr, kj_texpr *array)
{
  if (strcmp(expr->name, "shape") == 0) return kj_make_shape(s, array, expr->location);
  if (strcmp(expr->name, "strides") == 0) return make_dimensions(s, array, make_stride, expr->location);
  if (strcmp(expr->name, "size") == 0) return kj_make_size(s, array, expr->location);
  if (strcmp(expr->name, "ndim") == 0) return kj_new_integer(s, KJ_WEAK_INT, kj_type(s->c->types, array->type)->rank, expr->location);
  if (strcmp(expr->name, "T") == 0) return kj_make_transpose(s, array, expr->location);
  kj_fail(s->c, expr->location, KJIT_ERROR_NAME, "an array has no `.%s`: it has `.shape`, `.strides`, `.size`, `.ndim` and `.T`", expr->name);
}

kj_texpr *kj_infer_field(kj_scope *s, const kj_expr *expr)
{
  if (expr->x->kind == KJ_EXPR_BUILTIN) return kj_infer_builtin_name(s, expr, expr->x->builtin, expr->name);
  kj_texpr *x = kj_infer_expr(s, expr->x);
  if (kj_is_array(s->c, x->type)) return infer_array_field(s, expr, x);
  kj_fail(s->c, expr->location, KJIT_ERROR_NAME, "%s has no `.%s`", kj_type_text(s->c, x->type), expr->name);
}

/* ---- indices ---- */

bool kj_is_from_end(const kj_expr *expr, __int128 *distance)
{
  if (expr->kind != KJ_EXPR_UNARY || expr->op != KJIT_NEG || expr->x->kind != KJ_EXPR_INT) return false;
  *distance = expr->x->integer;
  return *distance > 0;
}

static void check_index_type(kj_scope *s, const kj_texpr *index)
{
  if (kj_is_integer(s->c, index->type)) return;
  const char *hint = kj_is_float(s->c, index->type) ? ": write i32(...)" : "";
  kj_fail(s->c, index->location, KJIT_ERROR_TYPE, "an index is an integer, got %s%s", kj_type_text(s->c, index->type), hint);
}

typedef struct indexing {
  const kj_expr *expr;
  kj_texpr *base;
  kj_texprs indices;
  kj_slice slices[KJ_MAX_RANK]; /* of those that are slices; start is in indices */
  uint32_t slice_count;
} indexing;

static void check_rank(kj_scope *s, const indexing *at)
{
  uint32_t rank = kj_type(s->c->types, at->base->type)->rank;
  if (at->indices.count <= rank) return;
  kj_fail(s->c, at->expr->location, KJIT_ERROR_TYPE, "`%s` has %u dimension%s (%s), got %zu indices", name_of(at->expr->x), rank, rank == 1 ? "" : "s",
          kj_type_text(s->c, at->base->type), at->indices.count);
}

static void add_index(kj_scope *s, indexing *at, kj_texpr *index)
{
  check_index_type(s, index);
  KJ_PUSH(s->arena, &at->indices, kj_make_concrete(s, index));
  check_rank(s, at);
}

static void add_from_end(kj_scope *s, indexing *at, __int128 distance, kj_location location)
{
  uint32_t dimension = (uint32_t)at->indices.count;
  const kj_type_info *info = kj_type(s->c->types, at->base->type);
  if (info->is_static && dimension < info->rank && distance > info->extents[dimension])
    kj_fail(s->c, location, KJIT_ERROR_TYPE, "index -%s of an extent of %lld", kj_integer_text(s->arena, distance), (long long)info->extents[dimension]);
  if (dimension >= info->rank) KJ_PUSH(s->arena, &at->indices, NULL);
  check_rank(s, at);
  kj_texpr *extent = kj_make_extent(s, kj_copy_texpr(s, at->base), dimension, location);
  KJ_PUSH(s->arena, &at->indices, kj_make_binary(s, KJIT_SUB, extent, kj_new_integer(s, KJ_WEAK_INT, distance, location), location));
}

static void add_slice(kj_scope *s, indexing *at, const kj_expr *expr)
{
  uint32_t dimension = (uint32_t)at->indices.count;
  if (dimension >= kj_type(s->c->types, at->base->type)->rank) KJ_PUSH(s->arena, &at->indices, NULL);
  check_rank(s, at);
  at->slices[dimension] = kj_infer_slice(s, expr, at->base, dimension);
  KJ_PUSH(s->arena, &at->indices, at->slices[dimension].start);
  at->slice_count++;
}

static void add_argument(kj_scope *s, indexing *at, const kj_expr *expr)
{
  __int128 distance;
  if (expr->kind == KJ_EXPR_SLICE) {
    add_slice(s, at, expr);
    return;
  }
  if (kj_is_from_end(expr, &distance)) {
    add_from_end(s, at, distance, expr->location);
    return;
  }
  kj_texpr *index = kj_infer_expr(s, expr);
  if (!kj_is_tuple(s->c, index->type)) {
    add_index(s, at, index);
    return;
  }
  index = kj_keep_value(s, index);
  uint32_t count = kj_type(s->c->types, index->type)->count;
  for (uint32_t i = 0; i < count; i++) add_index(s, at, kj_make_item(s, kj_copy_texpr(s, index), i, expr->location));
}

/* Whether extents of the array are asked for. */
static bool has_from_end(const kj_exprs *args)
{
  __int128 distance;
  for (size_t i = 0; i < args->count; i++)
    if (args->items[i]->kind == KJ_EXPR_SLICE || kj_is_from_end(args->items[i], &distance)) return true;
  return false;
}

static void infer_indices(kj_scope *s, indexing *at)
{
  const kj_exprs *args = &at->expr->args;
  if (has_from_end(args)) at->base = kj_keep_value(s, at->base);
  for (size_t i = 0; i < args->count; i++) {
    size_t mark = s->out->count;
    add_argument(s, at, args->items[i]);
    /* What the last argument needed before it comes after the earlier indices. */
    for (size_t j = 0; s->out->count > mark && j < i && j < at->indices.count; j++) {
      size_t before = s->out->count;
      at->indices.items[j] = kj_keep_value_at(s, at->indices.items[j], mark);
      mark += s->out->count - before;
    }
  }
}

/* ---- elements and views ---- */

static kj_texpr *make_view(kj_scope *s, const indexing *at)
{
  kj_slice slices[KJ_MAX_RANK];
  uint32_t rank = kj_type(s->c->types, at->base->type)->rank;
  for (uint32_t d = 0; d < rank; d++) {
    bool is_given = d < at->indices.count, is_slice = is_given && at->slices[d].start;
    slices[d] = is_slice ? at->slices[d] : (kj_slice){ .is_index = is_given, .is_whole = !is_given };
    slices[d].start = is_given ? at->indices.items[d] : NULL;
  }
  return kj_make_view(s, at->base, slices, at->expr->location);
}

/* The element itself where all indices are known. */
static kj_texpr *constant_element(kj_scope *s, const kj_constant *constant, const indexing *at)
{
  int64_t place = 0;
  for (uint32_t i = 0; i < constant->rank; i++) {
    const kj_texpr *index = at->indices.items[i];
    if (!kj_is_constant(index)) return NULL;
    if (index->integer < 0 || index->integer >= constant->extents[i])
      kj_fail(s->c, index->location, KJIT_ERROR_TYPE, "index %s of 0..%lld", kj_integer_text(s->arena, index->integer), (long long)constant->extents[i] - 1);
    place = place * constant->extents[i] + (int64_t)index->integer;
  }
  kj_texpr *element = kj_copy_texpr(s, constant->elements.items[place]);
  element->location = at->expr->location;
  return element;
}

static kj_texpr *make_element(kj_scope *s, indexing *at)
{
  const kj_constant *constant = kj_weak_constant(s, at->base);
  kj_texpr *known = constant && at->indices.count == constant->rank && !at->slice_count ? constant_element(s, constant, at) : NULL;
  if (known) return known;
  bool is_whole = at->indices.count == kj_type(s->c->types, at->base->type)->rank && !at->slice_count;
  if (constant && !(is_whole && kj_is_weak(constant->element))) at->base = kj_make_concrete(s, at->base);
  if (!is_whole) return make_view(s, at);
  kj_texpr *load = kj_new_texpr(s->c, KJ_T_LOAD, kj_type(s->c->types, at->base->type)->element, at->expr->location);
  kj_refuse_complex(s->c, load->type, at->expr->location);
  load->x = at->base;
  load->args = at->indices;
  return load;
}

static kj_texpr *infer_item(kj_scope *s, const kj_expr *expr, kj_texpr *tuple)
{
  uint32_t count = kj_type(s->c->types, tuple->type)->count;
  __int128 distance;
  if (expr->args.count != 1) kj_fail(s->c, expr->location, KJIT_ERROR_TYPE, "a tuple takes one index, got %zu", expr->args.count);
  const kj_expr *arg = expr->args.items[0];
  __int128 index = kj_is_from_end(arg, &distance) ? count - distance : kj_infer_constant(s, arg, "the index of a tuple");
  if (index < 0 || index >= count)
    kj_fail(s->c, arg->location, KJIT_ERROR_TYPE, "index %s of a tuple of %u", kj_integer_text(s->arena, kj_is_from_end(arg, &distance) ? -distance : index),
            count);
  return kj_make_item(s, tuple, (uint32_t)index, expr->location);
}

kj_texpr *kj_infer_index(kj_scope *s, const kj_expr *expr)
{
  kj_texpr *base = kj_infer_expr(s, expr->x);
  if (kj_is_tuple(s->c, base->type)) return infer_item(s, expr, base);
  if (!kj_is_array(s->c, base->type))
    kj_fail(s->c, expr->location, KJIT_ERROR_TYPE, "only arrays and tuples have an index, `%s` is %s", name_of(expr->x), kj_type_text(s->c, base->type));
  indexing at = { .expr = expr, .base = base };
  infer_indices(s, &at);
  return make_element(s, &at);
}

/* ---- places ---- */

static void infer_element_place(kj_scope *s, const kj_expr *expr, kj_place *place)
{
  kj_texpr *base = kj_infer_expr(s, expr->x);
  if (!kj_is_array(s->c, base->type))
    kj_fail(s->c, expr->location, KJIT_ERROR_TYPE, "only elements of arrays can be assigned, `%s` is %s", name_of(expr->x), kj_type_text(s->c, base->type));
  indexing at = { .expr = expr, .base = base };
  infer_indices(s, &at);
  const kj_type_info *info = kj_type(s->c->types, base->type);
  if (at.slice_count) kj_fail(s->c, expr->location, KJIT_ERROR_TYPE, "a slice of `%s` is a view: only one element can be assigned", name_of(expr->x));
  if (at.indices.count < info->rank)
    kj_fail(s->c, expr->location, KJIT_ERROR_TYPE, "`%s` has %u dimensions (%s), got %zu %s: only one element can be assigned", name_of(expr->x), info->rank,
            kj_type_text(s->c, base->type), at.indices.count, at.indices.count == 1 ? "index" : "indices");
  if (info->read_only || info->space == KJ_SPACE_CONST)
    kj_fail(s->c, expr->location, KJIT_ERROR_TYPE, "`%s` is read-only (%s)", name_of(expr->x), kj_type_text(s->c, base->type));
  kj_refuse_complex(s->c, info->element, expr->location);
  place->array = at.base;
  place->indices = at.indices;
  place->type = info->element;
}

static void infer_name_place(kj_scope *s, const kj_expr *expr, kj_place *place)
{
  const kj_decl *decl = expr->decl;
  bool is_local = s->meanings && decl->kind != KJ_DECL_CONST && decl->kind != KJ_DECL_FUNCTION;
  const kj_meaning *meaning = is_local ? &s->meanings[decl->index] : NULL;
  place->decl = decl;
  if (meaning && meaning->is_scalar) {
    place->array = kj_make_var(s, meaning->var, expr->location);
    place->type = kj_type(s->c->types, meaning->var->type)->element;
    return;
  }
  if (meaning && meaning->kind == KJ_MEANS_VARIABLE && meaning->var->kind == KJ_V_VAR) {
    place->var = meaning->var;
    place->type = meaning->var->type;
    return;
  }
  if (meaning && meaning->var && kj_is_array(s->c, meaning->var->type))
    kj_fail(s->c, expr->location, KJIT_ERROR_TYPE, "`%s` is an array: assign its elements, `%s[i] = ...`", decl->name, decl->name);
  kj_fail(s->c, expr->location, KJIT_ERROR_TYPE, "`%s` cannot be assigned: only what is declared with `var` can", decl->name);
}

void kj_infer_place(kj_scope *s, const kj_expr *expr, kj_place *place)
{
  *place = (kj_place){ .location = expr->location };
  kj_count_work(s->inference, expr->location);
  if (expr->kind == KJ_EXPR_INDEX) infer_element_place(s, expr, place);
  else if (expr->kind == KJ_EXPR_DECL) infer_name_place(s, expr, place);
  else kj_fail(s->c, expr->location, KJIT_ERROR_TYPE, "this is no place: a var or an element of an array is");
}

void kj_store_place(kj_scope *s, const kj_place *place, kj_texpr *value, kj_location location)
{
  if (place->var) {
    kj_assign_variable(s, place, value, location);
    return;
  }
  kj_tstmt *store = kj_new_tstmt(s->c, KJ_TS_STORE, location);
  store->array = place->array;
  store->indices = place->indices;
  store->value = kj_convert_stored(s, value, place->type, "the element", value->location);
  kj_emit(s, store);
}

kj_texpr *kj_load_place(kj_scope *s, const kj_place *place)
{
  if (place->var) return kj_make_var(s, place->var, place->location);
  kj_texpr *load = kj_new_texpr(s->c, KJ_T_LOAD, place->type, place->location);
  load->x = kj_copy_texpr(s, place->array);
  for (size_t i = 0; i < place->indices.count; i++) KJ_PUSH(s->arena, &load->args, kj_copy_texpr(s, place->indices.items[i]));
  return load;
}
