#include "launch/program.h"

#include <string.h>

#include "code/dispatch.h"

typedef struct maker {
  const kjit_kernel *kernel;
  kj_program *program;
  uint32_t depth;
} maker;

enum { MOST_NESTING = 32 };

/* ---- making ---- */

static bool make(maker *m, const ki_expr *expr);

static bool add(maker *m, kj_step_op op, uint32_t parameter, int64_t number)
{
  if (m->program->count == KJ_MOST_STEPS_OF_PROGRAM || parameter > UINT16_MAX) return false;
  m->program->steps[m->program->count++] =
    (kj_step){ .op = (uint16_t)op, .parameter = (uint16_t)parameter, .number = number };
  return true;
}

static bool add_argument(maker *m, kj_step_op op, uint32_t parameter, int64_t number)
{
  m->program->uses_arguments = true;
  return add(m, op, parameter, number);
}

static bool add_number(maker *m, kjit_type type, __int128 number)
{
  bool is_made =
    ki_is_integral(type) && number == (int64_t)number && add(m, KJ_STEP_NUMBER, 0, (int64_t)number);
  if (is_made) m->program->steps[m->program->count - 1].type = type;
  return is_made;
}

/* What a let stands for. */
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

/* The parameter that expr is; whether an array is bound to it shows when the program runs. */
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
  /* part of the key: no argument in this sense */
  if (decl->kind == KJ_DECL_PARAM && decl->is_const) return add(m, KJ_STEP_SCALAR, decl->index, 0);
  if (decl->kind == KJ_DECL_PARAM)
    return !decl->is_func && add_argument(m, KJ_STEP_SCALAR, decl->index, 0);
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
           add(m, KJ_STEP_BLOCK, 0, expr->name[0] - 'x');
  return !strcmp(expr->name, "size") && is_parameter(m, expr->x, &parameter) &&
         add_argument(m, KJ_STEP_COUNT, parameter, 0);
}

/* x.shape[d] */
static bool make_subscript(maker *m, const ki_expr *expr)
{
  const ki_expr *tuple = look_through(m->kernel, expr->x),
                *index = expr->args.count == 1 ? expr->args.items[0] : NULL;
  uint32_t parameter;
  if (!index || !is_shape(tuple) || !is_parameter(m, tuple->x, &parameter)) return false;
  bool is_from_end = index->kind == KJ_EXPR_UNARY && index->op == KJIT_NEG;
  const ki_expr *number = is_from_end ? index->x : index;
  if (number->kind != KJ_EXPR_INT || number->integer > KJ_MAX_RANK) return false;
  return add_argument(m, KJ_STEP_EXTENT, parameter,
                      is_from_end ? -(int64_t)number->integer : (int64_t)number->integer);
}

static bool make_call(maker *m, const ki_expr *expr)
{
  static const struct {
    ki_builtin_id id;
    kj_step_op op;
  } rows[] = { { KJ_BUILTIN_MIN, KJ_STEP_MIN },
               { KJ_BUILTIN_MAX, KJ_STEP_MAX },
               { KJ_BUILTIN_CEIL_DIV, KJ_STEP_CEIL_DIV } };
  uint32_t parameter;
  if (expr->x->kind != KJ_EXPR_BUILTIN) return false;
  if (expr->x->builtin->id == KJ_BUILTIN_LEN)
    return is_parameter(m, expr->args.items[0], &parameter) &&
           add_argument(m, KJ_STEP_EXTENT, parameter, 0);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].id == expr->x->builtin->id && expr->args.count == 2)
      return make(m, expr->args.items[0]) && make(m, expr->args.items[1]) &&
             add(m, rows[i].op, 0, 0);
  return false;
}

static bool make_binary(maker *m, const ki_expr *expr)
{
  static const struct {
    kjit_op op;
    kj_step_op step;
  } rows[] = {
    { KJIT_ADD, KJ_STEP_ADD },           { KJIT_SUB, KJ_STEP_SUB }, { KJIT_MUL, KJ_STEP_MUL },
    { KJIT_FLOORDIV, KJ_STEP_FLOORDIV }, { KJIT_MOD, KJ_STEP_MOD },
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].op == expr->op)
      return make(m, expr->x) && make(m, expr->y) && add(m, rows[i].step, 0, 0);
  return false;
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
    (void)add_argument(&m, KJ_STEP_COUNT, parameter, 0);
  } else if (!make(&m, expr)) {
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

/* ---- running ---- */

typedef struct number {
  int64_t value;
  kjit_type type; /* weak for literals, and for plain numbers of the host */
} number;

static bool read_scalar(const kj_bound *bound, number *x)
{
  uint64_t bits = bound->bits[0];
  x->type = bound->type;
  if (bound->kind == KJ_ARGUMENT_CONST) {
    x->type = bound->value.type;
    x->value = (int64_t)bound->value.integer;
    return ki_is_integral(x->type) && bound->value.integer == x->value;
  }
  if (bound->kind == KJ_ARGUMENT_NUMBER) {
    x->value = (int64_t)bound->value.integer;
    return x->type == KJ_WEAK_INT && x->value >= 0;
  }
  if (bound->kind != KJ_ARGUMENT_VALUE) return false;
  switch (bound->type) {
  case KJIT_I8: x->value = (int8_t)bits; return true;
  case KJIT_I16: x->value = (int16_t)bits; return true;
  case KJIT_I32: x->value = (int32_t)bits; return true;
  case KJIT_I64: x->value = (int64_t)bits; return true;
  case KJIT_U8: x->value = (uint8_t)bits; return true;
  case KJIT_U16: x->value = (uint16_t)bits; return true;
  case KJIT_U32: x->value = (uint32_t)bits; return true;
  case KJIT_U64: x->value = (int64_t)bits; return x->value >= 0;
  default: return false;
  }
}

static bool read_extent(const kj_bound *bound, int64_t dimension, number *x)
{
  int64_t d = dimension < 0 ? dimension + bound->rank : dimension;
  if (bound->kind != KJ_ARGUMENT_ARRAY || d < 0 || d >= bound->rank) return false;
  *x = (number){ bound->shape[d], KJIT_I64 };
  return true;
}

/* Whether an operation in the type may take or give the value. Of a weak type that is what every
 * type holds that it may turn out to be. */
static bool holds(kjit_type type, int64_t value)
{
  switch (type) {
  case KJIT_I32: return value == (int32_t)value;
  case KJIT_I64: return true;
  case KJIT_U32: return value == (uint32_t)value;
  case KJIT_U64: return value >= 0;
  case KJ_WEAK_INT: return value >= 0 && value <= INT32_MAX;
  default: return false;
  }
}

static bool combine(kj_step_op op, number x, number y, number *result)
{
  bool is_plain = x.type == y.type && (x.type == KJIT_I64 || x.type == KJIT_I32);
  kjit_type type = is_plain ? x.type : ki_common_type(x.type, y.type);
  if (!holds(type, x.value) || !holds(type, y.value)) return false;
  result->type = type;
  switch (op) {
  case KJ_STEP_ADD:
    if (__builtin_add_overflow(x.value, y.value, &result->value)) return false;
    break;
  case KJ_STEP_SUB:
    if (__builtin_sub_overflow(x.value, y.value, &result->value)) return false;
    break;
  case KJ_STEP_MUL:
    if (__builtin_mul_overflow(x.value, y.value, &result->value)) return false;
    break;
  case KJ_STEP_MIN: result->value = x.value < y.value ? x.value : y.value; break;
  case KJ_STEP_MAX: result->value = x.value > y.value ? x.value : y.value; break;
  default: {
    if (y.value == 0 || x.value == INT64_MIN) return false;
    int64_t quotient =
      (int64_t)ki_floor_divide(op == KJ_STEP_CEIL_DIV ? -x.value : x.value, y.value);
    result->value = op == KJ_STEP_FLOORDIV ? quotient
                    : op == KJ_STEP_MOD    ? x.value - quotient * y.value
                                           : -quotient;
  }
  }
  return holds(type, result->value);
}

bool kj_run_program(const kj_program *program, const kj_bound *bound, const uint32_t *block,
                    int64_t *value)
{
  number stack[KJ_MOST_STEPS_OF_PROGRAM];
  uint32_t height = 0;
  for (uint32_t i = 0; i < program->count; i++) {
    const kj_step *step = &program->steps[i];
    const kj_bound *argument = &bound[step->parameter];
    switch ((kj_step_op)step->op) {
    case KJ_STEP_NUMBER: stack[height++] = (number){ step->number, step->type }; break;
    case KJ_STEP_SCALAR:
      if (!read_scalar(argument, &stack[height++])) return false;
      break;
    case KJ_STEP_EXTENT:
      if (!read_extent(argument, step->number, &stack[height++])) return false;
      break;
    case KJ_STEP_COUNT:
      if (argument->kind != KJ_ARGUMENT_ARRAY) return false;
      stack[height++] = (number){ (int64_t)argument->count, KJIT_I64 };
      break;
    case KJ_STEP_BLOCK:
      if (!block) return false;
      stack[height++] = (number){ block[step->number], KJIT_I64 };
      break;
    default:
      height--;
      if (!combine((kj_step_op)step->op, stack[height - 1], stack[height], &stack[height - 1]))
        return false;
    }
  }
  *value = stack[0].value;
  return program->count > 0;
}
