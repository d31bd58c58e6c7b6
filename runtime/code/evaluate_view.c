/* Shapes of arrays before a launch: of arguments, and of views of them, as inference and lowering
 * make them in the kernel. What an index is does not matter to the shape, so that `A[blockIdx.x]`
 * has one. */
#include <string.h>

#include "code/call.h"

static bool find_shape(kj_scope *scope, const ki_expr *expr, kj_shape *shape);

/* ---- names ---- */

static bool find_named(kj_scope *scope, const ki_expr *expr, kj_shape *shape)
{
  const ki_decl *decl = expr->decl;
  bool is_bound = decl->kind == KJ_DECL_PARAM && scope->bound && decl->index < scope->bound_count;
  if (is_bound && scope->bound[decl->index].kind == KJ_ARGUMENT_ARRAY) {
    const kj_bound *bound = &scope->bound[decl->index];
    shape->rank = bound->rank;
    for (uint32_t d = 0; d < bound->rank; d++) {
      shape->extents[d] = bound->shape[d];
      shape->strides[d] = kj_stride_of(bound, d);
    }
    return true;
  }
  bool is_let = decl->kind == KJ_DECL_LET && scope->bindings && decl->index < scope->binding_count;
  const kj_binding *binding = is_let ? &scope->bindings[decl->index] : NULL;
  if (!binding || !binding->value || binding->item >= 0)
    return kj_refuse_evaluation(scope, expr, "is not an array argument");
  return find_shape(scope, binding->value, shape);
}

/* ---- slices ---- */

static bool is_from_end(const ki_expr *expr, __int128 *distance)
{
  if (expr->kind != KJ_EXPR_UNARY || expr->op != KJIT_NEG || expr->x->kind != KJ_EXPR_INT)
    return false;
  *distance = expr->x->integer;
  return *distance > 0;
}

static bool find_bound_of(kj_scope *scope, const ki_expr *expr, int64_t extent, int64_t otherwise,
                          int64_t *position)
{
  __int128 distance;
  *position = otherwise;
  if (!expr) return true;
  if (!is_from_end(expr, &distance)) return kj_evaluate_index(scope, expr, position);
  *position = distance > extent ? -1 : extent - (int64_t)distance;
  return true;
}

static bool slice_dimension(kj_scope *scope, const ki_expr *slice, int64_t *extent, int64_t *stride)
{
  int64_t step = 1, first, stop;
  if (slice->z && !kj_evaluate_index(scope, slice->z, &step)) return false;
  if (!find_bound_of(scope, slice->x, *extent, step > 0 ? 0 : *extent - 1, &first)) return false;
  if (!find_bound_of(scope, slice->y, *extent, step > 0 ? *extent : -1, &stop)) return false;
  __int128 span = step > 0 ? (__int128)stop - first : (__int128)first - stop,
           size = step > 0 ? step : -(__int128)step;
  __int128 count = span <= 0 || step == 0 ? 0 : (span + size - 1) / size;
  *extent = count > INT64_MAX ? INT64_MAX : (int64_t)count;
  *stride = (int64_t)((uint64_t)*stride * (uint64_t)step);
  return true;
}

/* A tuple counts as several. */
static bool is_one_index(const ki_expr *expr)
{
  if (expr->kind == KJ_EXPR_CALL) return expr->x->kind == KJ_EXPR_TYPE;
  if (expr->kind == KJ_EXPR_DECL) return false;
  return expr->kind != KJ_EXPR_TUPLE && expr->kind != KJ_EXPR_COND &&
         (expr->kind != KJ_EXPR_FIELD || expr->x->kind == KJ_EXPR_BUILTIN);
}

static bool find_index(kj_scope *scope, const ki_expr *expr)
{
  ki_value value;
  return is_one_index(expr) ||
         (kj_count_items(scope, expr) == 1 && kj_evaluate(scope, expr, &value)) ||
         kj_refuse_evaluation(scope, expr, "is not known to be one index");
}

static bool find_indexed(kj_scope *scope, const ki_expr *expr, kj_shape *shape)
{
  kj_shape array;
  if (!find_shape(scope, expr->x, &array)) return false;
  if (expr->args.count > array.rank)
    return kj_refuse_evaluation(scope, expr, "has more indices than dimensions");
  shape->rank = 0;
  for (uint32_t d = 0; d < array.rank; d++) {
    const ki_expr *index = d < expr->args.count ? expr->args.items[d] : NULL;
    bool is_slice = index && index->kind == KJ_EXPR_SLICE;
    if (is_slice && !slice_dimension(scope, index, &array.extents[d], &array.strides[d]))
      return false;
    if (index && !is_slice) {
      if (!find_index(scope, index)) return false;
      continue;
    }
    shape->extents[shape->rank] = array.extents[d];
    shape->strides[shape->rank++] = array.strides[d];
  }
  return true;
}

/* ---- other shapes ---- */

static bool find_transposed(kj_scope *scope, const ki_expr *expr, kj_shape *shape)
{
  kj_shape array;
  if (!find_shape(scope, expr, &array)) return false;
  shape->rank = array.rank;
  for (uint32_t d = 0; d < array.rank; d++) {
    shape->extents[d] = array.extents[array.rank - 1 - d];
    shape->strides[d] = array.strides[array.rank - 1 - d];
  }
  return true;
}

static bool find_reshaped(kj_scope *scope, const ki_expr *call, kj_shape *shape)
{
  shape->rank = 0;
  for (size_t i = 1; i < call->args.count; i++) {
    uint32_t count = kj_count_items(scope, call->args.items[i]);
    if (count == 0 || shape->rank + count > KJ_MAX_RANK)
      return kj_refuse_evaluation(scope, call, "has too many dimensions");
    for (uint32_t k = 0; k < count; k++) {
      int64_t value;
      if (!kj_evaluate_item(scope, call->args.items[i], k, &value)) return false;
      if (value < 0) return kj_refuse_evaluation(scope, call->args.items[i], "is no extent");
      shape->extents[shape->rank++] = value;
    }
  }
  uint64_t stride = 1;
  for (uint32_t d = shape->rank; d-- > 0; stride *= (uint64_t)shape->extents[d])
    shape->strides[d] = (int64_t)stride;
  return true;
}

static bool find_call(kj_scope *scope, const ki_expr *call, kj_shape *shape)
{
  if (call->x->kind == KJ_EXPR_BUILTIN && call->x->builtin->id == KJ_BUILTIN_TRANSPOSE)
    return find_transposed(scope, call->args.items[0], shape);
  if (call->x->kind == KJ_EXPR_BUILTIN && call->x->builtin->id == KJ_BUILTIN_RESHAPE)
    return find_reshaped(scope, call, shape);
  return kj_refuse_evaluation(scope, call, "is an array that is not known before the launch");
}

static bool find_kind(kj_scope *scope, const ki_expr *expr, kj_shape *shape)
{
  bool condition;
  switch (expr->kind) {
  case KJ_EXPR_DECL: return find_named(scope, expr, shape);
  case KJ_EXPR_INDEX: return find_indexed(scope, expr, shape);
  case KJ_EXPR_CALL: return find_call(scope, expr, shape);
  case KJ_EXPR_FIELD:
    if (strcmp(expr->name, "T") == 0) return find_transposed(scope, expr->x, shape);
    return kj_refuse_evaluation(scope, expr, "is not an array");
  case KJ_EXPR_COND:
    return kj_evaluate_condition(scope, expr->x, &condition) &&
           find_shape(scope, condition ? expr->y : expr->z, shape);
  default: return kj_refuse_evaluation(scope, expr, "is not an array");
  }
}

static bool find_shape(kj_scope *scope, const ki_expr *expr, kj_shape *shape)
{
  if (++scope->steps > KJ_MOST_STEPS || scope->depth >= KJ_MOST_DEPTH)
    return kj_refuse_evaluation(scope, expr, "takes too many steps to evaluate");
  scope->depth++;
  bool is_known = find_kind(scope, expr, shape);
  scope->depth--;
  return is_known;
}

bool kj_evaluate_shape(kj_scope *scope, const ki_expr *expr, kj_shape *shape)
{
  return find_shape(scope, expr, shape);
}
