/* Determines extents before a launch: the shapes of array arguments and of views of them, and the
 * values of @block and @grid. Shapes follow the same rules as in type inference and lowering. The
 * shape of `A[blockIdx.x]` is known although the index's value is unknown, because the shape does
 * not depend on this value. */
#include <stdlib.h>
#include <string.h>

#include "code/kernel.h"

/* ---- shapes of arrays ---- */

int64_t kj_stride_of(const kj_bound *array, uint32_t dimension)
{
  int64_t stride = 1;
  if (array->strides) return array->strides[dimension];
  bool is_row_major = array->layout != KJIT_LAYOUT_F;
  for (uint32_t i = is_row_major ? dimension + 1 : 0; i < (is_row_major ? array->rank : dimension);
       i++)
    stride *= array->shape[i];
  return stride;
}

/* ---- names ---- */

const kj_bound *kj_find_array(const kj_scope *scope, const ki_expr *expr)
{
  enum { MOST_LETS = 32 };
  for (uint32_t i = 0; i < MOST_LETS && expr->kind == KJ_EXPR_DECL; i++) {
    const ki_decl *decl = expr->decl;
    bool is_bound = decl->kind == KJ_DECL_PARAM && scope->bound && decl->index < scope->bound_count;
    if (is_bound && scope->bound[decl->index].kind == KJ_ARGUMENT_ARRAY)
      return &scope->bound[decl->index];
    const kj_binding *binding = kj_find_binding(scope, decl);
    if (!binding || binding->item >= 0) return NULL;
    expr = binding->value;
  }
  return NULL;
}

static bool find_named(kj_scope *scope, const ki_expr *expr, kj_shape *shape)
{
  const kj_bound *bound = kj_find_array(scope, expr);
  const kj_binding *binding = kj_find_binding(scope, expr->decl);
  if (!bound)
    return binding && binding->item < 0
             ? kj_evaluate_shape(scope, binding->value, shape)
             : kj_refuse_evaluation(scope, expr, "is not an array argument");
  shape->rank = bound->rank;
  for (uint32_t d = 0; d < bound->rank; d++) {
    shape->extents[d] = bound->shape[d];
    shape->strides[d] = kj_stride_of(bound, d);
  }
  return true;
}

/* ---- slices ---- */

static bool is_from_end(const ki_expr *expr, __int128 *distance)
{
  if (expr->kind != KJ_EXPR_UNARY || expr->op != KJIT_OP_NEG || expr->x->kind != KJ_EXPR_INT)
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

/* Returns whether an index expression is certainly a single index and not a tuple of indices. */
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
  if (!kj_evaluate_shape(scope, expr->x, &array)) return false;
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
  if (!kj_evaluate_shape(scope, expr, &array)) return false;
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
      if (value < 0)
        return kj_refuse_evaluation(scope, call->args.items[i],
                                    "is negative and cannot be an extent");
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
           kj_evaluate_shape(scope, condition ? expr->y : expr->z, shape);
  default: return kj_refuse_evaluation(scope, expr, "is not an array");
  }
}

bool kj_evaluate_shape(kj_scope *scope, const ki_expr *expr, kj_shape *shape)
{
  if (++scope->steps > KJ_MOST_STEPS || scope->depth >= KJ_MOST_DEPTH)
    return kj_refuse_evaluation(scope, expr, "takes too many steps to evaluate");
  scope->depth++;
  bool is_known = find_kind(scope, expr, shape);
  scope->depth--;
  return is_known;
}

/* ---- parameters on which the shape of a launch depends ---- */

/* Marks the parameters on which the expression depends, directly or through lets. seen contains the
 * lets that were visited, by index. */
static void mark_parameters(kjit_kernel *kernel, const ki_expr *expr, bool *seen)
{
  const ki_decl *decl = expr ? expr->decl : NULL;
  if (!expr) return;
  mark_parameters(kernel, expr->x, seen);
  mark_parameters(kernel, expr->y, seen);
  mark_parameters(kernel, expr->z, seen);
  for (size_t i = 0; i < expr->args.count; i++) mark_parameters(kernel, expr->args.items[i], seen);
  if (expr->kind != KJ_EXPR_DECL || decl->index >= kernel->binding_count) return;
  if (decl->kind == KJ_DECL_PARAM) kernel->parameters[decl->index].is_shaping = true;
  if (decl->kind != KJ_DECL_LET || seen[decl->index]) return;
  seen[decl->index] = true;
  mark_parameters(kernel, kernel->bindings[decl->index].value, seen);
}

static void mark_list(kjit_kernel *kernel, const ki_exprs *list, bool *seen)
{
  for (size_t i = 0; i < list->count; i++) mark_parameters(kernel, list->items[i], seen);
}

bool kj_mark_shaping(kjit_kernel *kernel)
{
  const ki_attribute *attributes[] = { kernel->block, kernel->grid, kernel->launch_bounds };
  bool *seen = calloc(kernel->binding_count + 1, sizeof *seen);
  if (!seen) return false;
  for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
    if (attributes[i]) mark_list(kernel, &attributes[i]->values, seen);
  for (uint32_t i = 0; i < kernel->range_count; i++)
    mark_list(kernel, &kernel->ranges[i]->args, seen);
  for (uint32_t i = 0; i < kernel->shared_count; i++)
    mark_list(kernel, &kernel->shared[i]->type_expr->extents, seen);
  free(seen);
  return true;
}

/* ---- attributes ---- */

kjit_status kj_evaluate_attribute(const kjit_kernel *kernel, kj_scope *scope,
                                  const ki_attribute *attribute, kj_diagnostics *diagnostics,
                                  uint32_t values[3])
{
  if (attribute == kernel->block && kernel->fixed_block[0]) {
    memcpy(values, kernel->fixed_block, sizeof kernel->fixed_block);
    return KJIT_OK;
  }
  values[0] = values[1] = values[2] = 1;
  for (size_t i = 0; i < attribute->values.count && i < 3; i++) {
    const ki_expr *expr = attribute->values.items[i];
    int64_t value;
    bool is_known = kj_evaluate_index(scope, expr, &value);
    KJ_ASSERT(is_known || scope->reason);
    if ((!is_known || value < 0 || value > INT32_MAX) && !diagnostics) return KJIT_ERROR_LAUNCH;
    if (!is_known)
      return kj_error_at(diagnostics, kernel->module, scope->location, KJIT_ERROR_LAUNCH,
                         "@%s of kernel `%s` cannot be evaluated before the launch: this %s",
                         attribute->info->name, kernel->function->decl->name, scope->reason);
    if (value < 0 || value > INT32_MAX)
      return kj_error_at(diagnostics, kernel->module, expr->location, KJIT_ERROR_LAUNCH,
                         "@%s of kernel `%s`: expected 1 to 2147483647, got %lld",
                         attribute->info->name, kernel->function->decl->name, (long long)value);
    values[i] = (uint32_t)value;
  }
  return KJIT_OK;
}
