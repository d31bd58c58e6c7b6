/* Extents before a launch. The first part computes shapes of array arguments and of views of them,
 * as inference and lowering do for the kernel. The value of an index does not affect the shape, so
 * `A[blockIdx.x]` has a known shape. The second part translates extents, @block and @grid to
 * programs and runs them. */
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
  return kj_evaluate_shape(scope, binding->value, shape);
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

/* Returns whether an index expression is certainly one index, not a tuple of several. */
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

/* ---- programs ---- */

/* State of a translation. types: the type of each value on the program's stack, or KJIT_ANY for an
 * argument whose type is known only when the program runs. */
typedef struct maker {
  const kjit_kernel *kernel;
  kj_program *program;
  uint32_t depth, height;
  kjit_type types[KJ_MOST_STEPS_OF_PROGRAM];
} maker;

enum { MOST_NESTING = 32 };

/* ---- translating ---- */

static bool make(maker *m, const ki_expr *expr);

static bool add(maker *m, kj_step_op op, kjit_type type, uint32_t parameter, int64_t number)
{
  if (m->program->count == KJ_MOST_STEPS_OF_PROGRAM || parameter > UINT16_MAX) return false;
  m->program->steps[m->program->count++] = (kj_step){
    .op = (uint16_t)op, .parameter = (uint16_t)parameter, .type = type, .number = number
  };
  m->types[m->height++] = type;
  return true;
}

static bool add_number(maker *m, kjit_type type, __int128 number)
{
  return ki_is_integral(type) && number == (int64_t)number &&
         add(m, KJ_STEP_NUMBER, type, 0, (int64_t)number);
}

static bool add_extent(maker *m, kj_step_op op, uint32_t parameter, int64_t number)
{
  return add(m, op, KJIT_I64, parameter, number);
}

static bool add_scalar(maker *m, const ki_decl *decl)
{
  const kj_annotation *annotation = &m->kernel->parameters[decl->index].annotation;
  bool is_known = annotation->kind == KJ_ANNOTATION_SCALAR;
  return add(m, KJ_STEP_SCALAR, is_known ? annotation->type : KJIT_ANY, decl->index, 0);
}

/* Returns the value of a let, or the expression itself. */
static const ki_expr *look_through(const kjit_kernel *kernel, const ki_expr *expr)
{
  for (uint32_t i = 0;
       i < MOST_NESTING && expr->kind == KJ_EXPR_DECL && expr->decl->kind == KJ_DECL_LET; i++) {
    const kj_binding *binding =
      expr->decl->index < kernel->binding_count ? &kernel->bindings[expr->decl->index] : NULL;
    if (!binding || !binding->value || binding->item >= 0) break;
    expr = binding->value;
  }
  return expr;
}

/* Returns whether the expression is a parameter. Whether it is an array is checked when the program
 * runs. */
static bool is_parameter(const maker *m, const ki_expr *expr, uint32_t *index)
{
  expr = look_through(m->kernel, expr);
  if (expr->kind != KJ_EXPR_DECL || expr->decl->kind != KJ_DECL_PARAM || expr->decl->is_func)
    return false;
  *index = expr->decl->index;
  return true;
}

static bool is_shape(const ki_expr *expr)
{
  return expr->kind == KJ_EXPR_FIELD && !strcmp(expr->name, "shape");
}

static bool make_decl(maker *m, const ki_expr *expr)
{
  const ki_decl *decl = expr->decl;
  if (decl->kind == KJ_DECL_PARAM) return !decl->is_func && add_scalar(m, decl);
  if (decl->kind == KJ_DECL_CONST) {
    kj_scope nothing = { 0 };
    ki_value value;
    return kj_evaluate(&nothing, expr, &value) && add_number(m, value.type, value.integer);
  }
  const ki_expr *value = look_through(m->kernel, expr);
  return value != expr && make(m, value);
}

static bool make_field(maker *m, const ki_expr *expr)
{
  uint32_t parameter;
  bool is_block = expr->x->kind == KJ_EXPR_BUILTIN && expr->x->builtin->id == KJ_BUILTIN_BLOCK_DIM;
  if (is_block)
    return expr->name[0] >= 'x' && expr->name[0] <= 'z' && !expr->name[1] &&
           add_extent(m, KJ_STEP_BLOCK, 0, expr->name[0] - 'x');
  return !strcmp(expr->name, "size") && is_parameter(m, expr->x, &parameter) &&
         add_extent(m, KJ_STEP_COUNT, parameter, 0);
}

/* x.shape[d] */
static bool make_subscript(maker *m, const ki_expr *expr)
{
  const ki_expr *tuple = look_through(m->kernel, expr->x),
                *index = expr->args.count == 1 ? expr->args.items[0] : NULL;
  uint32_t parameter;
  if (!index || !is_shape(tuple) || !is_parameter(m, tuple->x, &parameter)) return false;
  bool is_from_end = index->kind == KJ_EXPR_UNARY && index->op == KJIT_OP_NEG;
  const ki_expr *number = is_from_end ? index->x : index;
  if (number->kind != KJ_EXPR_INT || number->integer > KJ_MAX_RANK) return false;
  return add_extent(m, KJ_STEP_EXTENT, parameter,
                    is_from_end ? -(int64_t)number->integer : (int64_t)number->integer);
}

static kjit_type type_of_operation(const kj_step *step, kjit_type x, kjit_type y)
{
  return step->op == KJ_STEP_BUILTIN ? ki_common_type(ki_arithmetic_type(x), y)
                                     : ki_operator_type((kjit_op)step->number, x, y);
}

/* Converts a value. Only literals and const parameters have weak types; a value that does not fit
 * is an error. */
static bool convert(kjit_type type, ki_value *value)
{
  if (value->type == type) return true;
  if (ki_is_weak(value->type) && !ki_integer_fits(type, value->integer)) return false;
  *value = ki_convert_value(*value, type);
  return true;
}

/* Converts a literal on top of the stack to the type of the other operand once, during
 * translation. */
static bool settle_literal(kj_step *step, kjit_type type)
{
  ki_value value = { step->type, step->number };
  if (step->op != KJ_STEP_NUMBER) return true;
  if (!convert(type, &value) || value.integer != (int64_t)value.integer) return false;
  step->type = type;
  step->number = (int64_t)value.integer;
  return true;
}

static bool make_both(maker *m, const ki_expr *x, const ki_expr *y, kj_step_op op, int64_t number)
{
  if (!make(m, x) || !make(m, y)) return false;
  kjit_type a = m->types[m->height - 2], b = m->types[m->height - 1], type = KJIT_ANY;
  kj_step step = { .op = (uint16_t)op, .number = number };
  if (a != KJIT_ANY && b != KJIT_ANY) {
    type = type_of_operation(&step, a, b);
    if (!ki_is_integral(type) || !settle_literal(&m->program->steps[m->program->count - 1], type))
      return false;
  }
  m->height -= 2;
  return add(m, op, type, 0, number);
}

static bool make_call(maker *m, const ki_expr *expr)
{
  uint32_t parameter;
  if (expr->x->kind != KJ_EXPR_BUILTIN) return false;
  switch (KJ_AMONG(expr->x->builtin->id)) {
  case KJ_BUILTIN_LEN:
    return is_parameter(m, expr->args.items[0], &parameter) &&
           add_extent(m, KJ_STEP_EXTENT, parameter, 0);
  case KJ_BUILTIN_MIN:
  case KJ_BUILTIN_MAX:
  case KJ_BUILTIN_CEIL_DIV:
    return expr->args.count == 2 && make_both(m, expr->args.items[0], expr->args.items[1],
                                              KJ_STEP_BUILTIN, expr->x->builtin->id);
  default: return false;
  }
}

static bool make_binary(maker *m, const ki_expr *expr)
{
  switch (KJ_AMONG(expr->op)) {
  case KJIT_OP_ADD:
  case KJIT_OP_SUB:
  case KJIT_OP_MUL:
  case KJIT_OP_FLOORDIV:
  case KJIT_OP_MOD: return make_both(m, expr->x, expr->y, KJ_STEP_BINARY, expr->op);
  default: return false;
  }
}

static bool make_kind(maker *m, const ki_expr *expr)
{
  switch (expr->kind) {
  case KJ_EXPR_INT:
    return ki_integer_fits(expr->type, expr->integer) && add_number(m, expr->type, expr->integer);
  case KJ_EXPR_DECL: return make_decl(m, expr);
  case KJ_EXPR_FIELD: return make_field(m, expr);
  case KJ_EXPR_INDEX: return make_subscript(m, expr);
  case KJ_EXPR_CALL: return make_call(m, expr);
  case KJ_EXPR_BINARY: return make_binary(m, expr);
  default: return false;
  }
}

static bool make(maker *m, const ki_expr *expr)
{
  if (m->depth == MOST_NESTING) return false;
  m->depth++;
  bool is_made = make_kind(m, expr);
  m->depth--;
  return is_made;
}

static bool add_program(const kjit_kernel *kernel, const ki_expr *expr, kj_programs *programs)
{
  if (programs->count == KJ_MOST_PROGRAMS) return false;
  maker m = { .kernel = kernel, .program = &programs->items[programs->count] };
  uint32_t parameter;
  const ki_expr *value = look_through(kernel, expr);
  if (is_shape(value)) {
    if (!is_parameter(&m, value->x, &parameter)) return false;
    (void)add_extent(&m, KJ_STEP_COUNT, parameter, 0);
  } else if (!make(&m, expr) ||
             (m.program->count == 1 && !settle_literal(m.program->steps, KJIT_I64))) {
    m.program->count = 0;
    return false;
  }
  programs->count++;
  return true;
}

void kj_make_programs(const kjit_kernel *kernel, const ki_exprs *values, bool is_product,
                      kj_programs *programs)
{
  memset(programs, 0, sizeof *programs);
  for (size_t i = 0; i < values->count; i++) {
    const ki_expr *value = look_through(kernel, values->items[i]);
    bool is_tuple = value->kind == KJ_EXPR_TUPLE;
    if ((is_tuple || is_shape(value)) && !is_product) return;
    for (size_t k = 0; is_tuple && k < value->args.count; k++)
      if (is_shape(look_through(kernel, value->args.items[k])) ||
          !add_program(kernel, value->args.items[k], programs))
        return;
    if (!is_tuple && !add_program(kernel, value, programs)) return;
  }
  programs->is_complete = true;
}

/* ---- running programs ---- */

/* Untyped numbers of the application are not supported: they take the type of the other operand,
 * which only kj_evaluate knows. */
static bool read_scalar(const kj_bound *bound, ki_value *value)
{
  if (bound->kind != KJ_ARGUMENT_VALUE && bound->kind != KJ_ARGUMENT_CONST) return false;
  *value = bound->value;
  return value->type != KJIT_ANY;
}

static bool read_extent(const kj_bound *bound, int64_t dimension, ki_value *value)
{
  int64_t d = dimension < 0 ? dimension + bound->rank : dimension;
  if (bound->kind != KJ_ARGUMENT_ARRAY || d < 0 || d >= bound->rank) return false;
  *value = (ki_value){ KJIT_I64, bound->shape[d] };
  return true;
}

static bool combine(const kj_step *step, ki_value *operands)
{
  ki_value *x = &operands[0], *y = &operands[1];
  kjit_type type = step->type != KJIT_ANY ? step->type : type_of_operation(step, x->type, y->type);
  if (!ki_is_integral(type) || !convert(type, x) || !convert(type, y)) return false;
  return KJ_COMPUTED == (step->op == KJ_STEP_BUILTIN
                           ? ki_compute_builtin((ki_builtin_id)step->number, operands, 2, x)
                           : ki_compute_binary((kjit_op)step->number, *x, *y, x));
}

bool kj_run_program(const kj_program *program, const kj_bound *bound, const uint32_t *block,
                    int64_t *value)
{
  ki_value stack[KJ_MOST_STEPS_OF_PROGRAM];
  uint32_t height = 0;
  /* the usual case for @block */
  if (program->count == 1 && program->steps[0].op == KJ_STEP_NUMBER) {
    *value = program->steps[0].number;
    return true;
  }
  for (uint32_t i = 0; i < program->count; i++) {
    const kj_step *step = &program->steps[i];
    const kj_bound *argument = &bound[step->parameter];
    ki_value *next = &stack[height++];
    switch ((kj_step_op)step->op) {
    case KJ_STEP_NUMBER: *next = (ki_value){ step->type, step->number }; break;
    case KJ_STEP_SCALAR:
      if (!read_scalar(argument, next)) return false;
      break;
    case KJ_STEP_EXTENT:
      if (!read_extent(argument, step->number, next)) return false;
      break;
    case KJ_STEP_COUNT:
      if (argument->kind != KJ_ARGUMENT_ARRAY) return false;
      *next = (ki_value){ KJIT_I64, (int64_t)argument->count };
      break;
    case KJ_STEP_BLOCK:
      if (!block) return false;
      *next = (ki_value){ KJIT_I64, block[step->number] };
      break;
    case KJ_STEP_BINARY:
    case KJ_STEP_BUILTIN:
      height -= 2; /* the operands are below `next` */
      if (!combine(step, &stack[height - 1])) return false;
    }
  }
  if (!program->count || !ki_is_integral(stack[0].type)) return false;
  stack[0] = ki_index_value(stack[0]);
  if (!convert(KJIT_I64, &stack[0])) return false;
  *value = (int64_t)stack[0].integer;
  return true;
}

bool kj_programs_use(const kj_programs *programs, uint32_t parameter)
{
  for (uint32_t i = 0; i < programs->count; i++)
    for (uint32_t k = 0; k < programs->items[i].count; k++) {
      const kj_step *step = &programs->items[i].steps[k];
      bool has_parameter =
        step->op == KJ_STEP_SCALAR || step->op == KJ_STEP_EXTENT || step->op == KJ_STEP_COUNT;
      if (has_parameter && step->parameter == parameter) return true;
    }
  return !programs->is_complete; /* nobody knows */
}

/* ---- attributes ---- */

kjit_status kj_evaluate_attribute(const kjit_kernel *kernel, kj_scope *scope,
                                  const ki_attribute *attribute, kj_diagnostics *diagnostics,
                                  uint32_t values[3])
{
  values[0] = values[1] = values[2] = 1;
  for (size_t i = 0; i < attribute->values.count && i < 3; i++) {
    const ki_expr *expr = attribute->values.items[i];
    int64_t value;
    if (!kj_evaluate_index(scope, expr, &value))
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
