#include "dispatch/evaluate.h"

#include <math.h>
#include <string.h>

#include "dispatch/dispatch.h"

static bool evaluate(kj_scope *scope, const kj_expr *expr, kj_value *value);

bool kj_refuse_evaluation(kj_scope *scope, const kj_expr *expr, const char *reason)
{
  if (scope->reason) return false;
  scope->reason = reason;
  scope->location = expr->location;
  return false;
}

static bool refuse(kj_scope *scope, const kj_expr *expr, const char *reason)
{
  return kj_refuse_evaluation(scope, expr, reason);
}

static bool make_integer(kj_scope *scope, const kj_expr *expr, __int128 integer, kjit_type type,
                         kj_value *value)
{
  if (integer < INT64_MIN || integer > (__int128)UINT64_MAX)
    return refuse(scope, expr, "does not fit 64 bits");
  *value = (kj_value){ .type = type, .integer = integer };
  return true;
}

static bool make_bool(bool truth, kj_value *value)
{
  *value = (kj_value){ .type = KJIT_BOOL, .integer = truth };
  return true;
}

static bool make_float(double number, kjit_type type, kj_value *value)
{
  *value = (kj_value){ .type = type == KJIT_F32 || type == KJIT_F64 ? type : KJ_WEAK_FLOAT,
                       .is_float = true,
                       .number = type == KJIT_F32 ? (double)(float)number : number };
  return true;
}

static double as_number(const kj_value *value)
{
  return value->is_float ? value->number : (double)value->integer;
}

static bool is_true(const kj_value *value)
{
  return value->is_float ? value->number != 0 : value->integer != 0;
}

/* ---- operators ---- */

/* Of two operands: the one with a type of its own; the wider of two. Only literals' weakness
 * matters to the callers, who check ranges themselves. */
static kjit_type join(const kj_value *x, const kj_value *y)
{
  if (kj_is_weak(x->type) || x->type == KJIT_BOOL)
    return y->type == KJIT_BOOL ? KJ_WEAK_INT : y->type;
  if (kj_is_weak(y->type) || y->type == KJIT_BOOL) return x->type;
  return kj_element_bytes(NULL, x->type) >= kj_element_bytes(NULL, y->type) ? x->type : y->type;
}

static __int128 floor_divide(__int128 x, __int128 y)
{
  __int128 quotient = x / y;
  return x % y != 0 && (x < 0) != (y < 0) ? quotient - 1 : quotient;
}

static bool integer_power(kj_scope *scope, const kj_expr *expr, __int128 base, __int128 exponent,
                          kjit_type type, kj_value *value)
{
  __int128 power = 1;
  if (exponent < 0) return refuse(scope, expr, "has a negative exponent");
  for (; exponent > 0; exponent--) {
    power *= base;
    if (power < INT64_MIN || power > (__int128)UINT64_MAX)
      return refuse(scope, expr, "does not fit 64 bits");
    if (power == 0 || (base == 1)) break;
    if (base == -1 && exponent > 2) exponent = 2 + exponent % 2;
  }
  return make_integer(scope, expr, power, type, value);
}

static bool combine_integers(kj_scope *scope, const kj_expr *expr, kjit_op op, __int128 x,
                             __int128 y, kjit_type type, kj_value *value)
{
  switch (op) {
  case KJIT_ADD: return make_integer(scope, expr, x + y, type, value);
  case KJIT_SUB: return make_integer(scope, expr, x - y, type, value);
  case KJIT_MUL:
    if (x && (y > (__int128)UINT64_MAX / (x < 0 ? -x : x) ||
              -y > (__int128)UINT64_MAX / (x < 0 ? -x : x)))
      return refuse(scope, expr, "does not fit 64 bits");
    return make_integer(scope, expr, x * y, type, value);
  case KJIT_FLOORDIV: return make_integer(scope, expr, y ? floor_divide(x, y) : 0, type, value);
  case KJIT_MOD: return make_integer(scope, expr, y ? x - floor_divide(x, y) * y : 0, type, value);
  case KJIT_BIT_AND: return make_integer(scope, expr, x & y, type, value);
  case KJIT_BIT_OR: return make_integer(scope, expr, x | y, type, value);
  case KJIT_BIT_XOR: return make_integer(scope, expr, x ^ y, type, value);
  case KJIT_SHL:
    return y < 0 || y > 62 ? refuse(scope, expr, "shifts too far")
                           : make_integer(scope, expr, x * ((__int128)1 << y), type, value);
  case KJIT_SHR:
    return y < 0 || y > 63 ? refuse(scope, expr, "shifts too far")
                           : make_integer(scope, expr, x >> y, type, value);
  case KJIT_POW: return integer_power(scope, expr, x, y, type, value);
  case KJIT_DIV: return refuse(scope, expr, "divides integers with `/`; `//` does that");
  default: return refuse(scope, expr, "is an operator that is not evaluated before a launch");
  }
}

static bool combine_floats(kj_scope *scope, const kj_expr *expr, kjit_op op, double x, double y,
                           kjit_type type, kj_value *value)
{
  switch (op) {
  case KJIT_ADD: return make_float(x + y, type, value);
  case KJIT_SUB: return make_float(x - y, type, value);
  case KJIT_MUL: return make_float(x * y, type, value);
  case KJIT_DIV: return make_float(x / y, type, value);
  case KJIT_FLOORDIV: return make_float(floor(x / y), type, value);
  case KJIT_POW: return make_float(pow(x, y), type, value);
  default: return refuse(scope, expr, "is an operator that is not evaluated before a launch");
  }
}

static bool compare(kjit_op op, const kj_value *x, const kj_value *y, kj_value *value)
{
  bool exact = !x->is_float && !y->is_float;
  double a = as_number(x), b = as_number(y);
  bool less = exact ? x->integer < y->integer : a < b,
       greater = exact ? x->integer > y->integer : a > b,
       equal = exact ? x->integer == y->integer : a == b;
  switch (op) {
  case KJIT_EQ: return make_bool(equal, value);
  case KJIT_NE: return make_bool(!equal, value);
  case KJIT_LT: return make_bool(less, value);
  case KJIT_GT: return make_bool(greater, value);
  case KJIT_LE: return make_bool(less || equal, value);
  default: return make_bool(greater || equal, value);
  }
}

static bool evaluate_binary(kj_scope *scope, const kj_expr *expr, kj_value *value)
{
  kj_value x, y;
  if (!evaluate(scope, expr->x, &x)) return false;
  bool is_logic = expr->op == KJIT_AND || expr->op == KJIT_OR;
  if (is_logic && is_true(&x) == (expr->op == KJIT_OR)) return make_bool(is_true(&x), value);
  if (!evaluate(scope, expr->y, &y)) return false;
  if (is_logic) return make_bool(is_true(&y), value);
  if (kj_op_table[expr->op].class_ == KJ_OP_COMPARE) return compare(expr->op, &x, &y, value);
  kjit_type type = expr->op == KJIT_SHL || expr->op == KJIT_SHR ? x.type : join(&x, &y);
  if (x.is_float || y.is_float)
    return combine_floats(scope, expr, expr->op, as_number(&x), as_number(&y),
                          x.is_float && y.is_float ? type
                          : x.is_float             ? x.type
                                                   : y.type,
                          value);
  return combine_integers(scope, expr, expr->op, x.integer, y.integer, type, value);
}

static bool evaluate_unary(kj_scope *scope, const kj_expr *expr, kj_value *value)
{
  kj_value x;
  if (!evaluate(scope, expr->x, &x)) return false;
  *value = x;
  switch (expr->op) {
  case KJIT_POS: return true;
  case KJIT_NOT: return make_bool(!is_true(&x), value);
  case KJIT_NEG:
    return x.is_float ? make_float(-x.number, x.type, value)
                      : make_integer(scope, expr, -x.integer, x.type, value);
  case KJIT_INVERT:
    return x.is_float ? refuse(scope, expr, "inverts a float")
                      : make_integer(scope, expr, ~x.integer, x.type, value);
  default: return refuse(scope, expr, "is an operator that is not evaluated before a launch");
  }
}

/* ---- names ---- */

static const kj_bound *find_bound(const kj_scope *scope, const kj_decl *decl)
{
  return decl->kind == KJ_DECL_PARAM && scope->bound && decl->index < scope->bound_count
           ? &scope->bound[decl->index]
           : NULL;
}

static bool evaluate_constant(kj_scope *scope, const kj_expr *expr, kj_value *value)
{
  const kj_decl *decl = expr->decl;
  if (decl->data && decl->rank == 0)
    return kj_decode_value(decl->data_element, decl->data, value) ||
           refuse(scope, expr, "is complex");
  if (!decl->value)
    return refuse(scope, expr,
                  decl->data ? "is an array" : "is an extern constant without a value");
  if (!evaluate(scope, decl->value, value)) return false;
  kj_value converted;
  if (!decl->type_expr || decl->type_expr->kind != KJ_TYPE_FIXED) return true;
  if (!kj_convert_value(value, decl->type_expr->type, &converted))
    return refuse(scope, expr, "does not fit its type");
  *value = converted;
  return true;
}

static bool evaluate_let(kj_scope *scope, const kj_expr *expr, kj_value *value)
{
  const kj_decl *decl = expr->decl;
  if (decl->kind != KJ_DECL_LET || !scope->bindings || decl->index >= scope->binding_count ||
      !scope->bindings[decl->index].value)
    return refuse(scope, expr,
                  decl->kind == KJ_DECL_VAR || decl->kind == KJ_DECL_LOOP
                    ? "changes while the kernel runs"
                    : "is not known before the launch");
  const kj_binding *binding = &scope->bindings[decl->index];
  return binding->item < 0
           ? evaluate(scope, binding->value, value)
           : kj_evaluate_item(scope, binding->value, (uint32_t)binding->item, value);
}

static bool evaluate_decl(kj_scope *scope, const kj_expr *expr, kj_value *value)
{
  const kj_decl *decl = expr->decl;
  if (decl->kind == KJ_DECL_CONST) return evaluate_constant(scope, expr, value);
  if (decl->kind != KJ_DECL_PARAM) return evaluate_let(scope, expr, value);
  const kj_bound *bound = find_bound(scope, decl);
  if (!bound) return refuse(scope, expr, "is not known here");
  if (bound->kind == KJ_ARGUMENT_ARRAY) return refuse(scope, expr, "is an array");
  if (bound->kind == KJ_ARGUMENT_FUNCTION)
    return refuse(scope, expr,
                  bound->function ? "is a func" : "is an argument that only a launch has");
  if (bound->value.type == KJIT_ANY) return refuse(scope, expr, "is complex");
  *value = bound->value;
  return true;
}

/* ---- fields, calls ---- */

/* An index written as `-` and a literal counts from the end. */
static bool evaluate_dimension(kj_scope *scope, const kj_expr *index, uint32_t count,
                               uint32_t *dimension)
{
  int64_t value;
  if (!kj_evaluate_index(scope, index, &value)) return false;
  if (value < 0) value += count;
  if (value < 0 || value >= count) return refuse(scope, index, "is out of range");
  *dimension = (uint32_t)value;
  return true;
}

static bool extent_of(kj_scope *scope, const kj_expr *expr, const kj_expr *array,
                      uint32_t dimension, bool is_stride, kj_value *value)
{
  kj_shape shape;
  if (!kj_evaluate_shape(scope, array, &shape)) return false;
  if (dimension >= shape.rank)
    return refuse(scope, expr, "asks for a dimension that the array does not have");
  return make_integer(scope, expr, is_stride ? shape.strides[dimension] : shape.extents[dimension],
                      KJIT_I64, value);
}

static bool evaluate_field(kj_scope *scope, const kj_expr *expr, kj_value *value)
{
  if (expr->x->kind == KJ_EXPR_BUILTIN && expr->x->builtin->id == KJ_BUILTIN_BLOCK_DIM &&
      scope->block && expr->name[1] == 0 && expr->name[0] >= 'x' && expr->name[0] <= 'z')
    return make_integer(scope, expr, scope->block[expr->name[0] - 'x'], KJIT_I64, value);
  if (expr->x->kind == KJ_EXPR_BUILTIN) return refuse(scope, expr, "is a position");
  bool is_size = !strcmp(expr->name, "size"), is_rank = !strcmp(expr->name, "ndim");
  if (!is_size && !is_rank) return refuse(scope, expr, "is a tuple");
  kj_shape shape;
  if (!kj_evaluate_shape(scope, expr->x, &shape)) return false;
  __int128 size = 1;
  for (uint32_t d = 0; d < shape.rank; d++)
    size = size > INT64_MAX ? size : size * shape.extents[d];
  return make_integer(scope, expr, is_size ? size : shape.rank, is_size ? KJIT_I64 : KJ_WEAK_INT,
                      value);
}

static bool evaluate_extremum(kj_scope *scope, const kj_expr *expr, bool is_min, kj_value *value)
{
  kj_value x, y;
  if (!evaluate(scope, expr->args.items[0], &x) || !evaluate(scope, expr->args.items[1], &y))
    return false;
  if (x.is_float || y.is_float)
    return make_float(is_min ? fmin(as_number(&x), as_number(&y))
                             : fmax(as_number(&x), as_number(&y)),
                      join(&x, &y), value);
  return make_integer(scope, expr, is_min == (x.integer < y.integer) ? x.integer : y.integer,
                      join(&x, &y), value);
}

static bool evaluate_division(kj_scope *scope, const kj_expr *expr, kj_builtin_id id,
                              kj_value *value)
{
  kj_value x, y;
  if (!evaluate(scope, expr->args.items[0], &x) || !evaluate(scope, expr->args.items[1], &y))
    return false;
  if (x.is_float || y.is_float) return refuse(scope, expr, "divides floats as integers");
  kjit_type type = join(&x, &y);
  if (y.integer == 0) return make_integer(scope, expr, 0, type, value);
  if (id == KJ_BUILTIN_CEIL_DIV)
    return make_integer(scope, expr, -floor_divide(-x.integer, y.integer), type, value);
  return make_integer(scope, expr,
                      id == KJ_BUILTIN_DIV_TRUNC ? x.integer / y.integer : x.integer % y.integer,
                      type, value);
}

static bool evaluate_cast(kj_scope *scope, const kj_expr *expr, kj_value *value)
{
  const kj_type_expr *type = expr->x->type_expr;
  kj_value x;
  if (type->kind != KJ_TYPE_FIXED || !kj_is_scalar(type->type) || expr->args.count != 1)
    return refuse(scope, expr, "is a conversion that is not evaluated before a launch");
  if (!evaluate(scope, expr->args.items[0], &x)) return false;
  if (x.is_float && type->type < KJIT_F16) x.number = trunc(x.number);
  return kj_convert_value(&x, type->type, value) ||
         refuse(scope, expr, "does not fit the type it is converted to");
}

static bool evaluate_call(kj_scope *scope, const kj_expr *expr, kj_value *value)
{
  if (expr->x->kind == KJ_EXPR_TYPE) return evaluate_cast(scope, expr, value);
  if (expr->x->kind != KJ_EXPR_BUILTIN) return refuse(scope, expr, "calls a func");
  kj_builtin_id id = expr->x->builtin->id;
  kj_value x;
  switch (id) {
  case KJ_BUILTIN_LEN: return extent_of(scope, expr, expr->args.items[0], 0, false, value);
  case KJ_BUILTIN_MIN:
  case KJ_BUILTIN_MAX: return evaluate_extremum(scope, expr, id == KJ_BUILTIN_MIN, value);
  case KJ_BUILTIN_CEIL_DIV:
  case KJ_BUILTIN_DIV_TRUNC:
  case KJ_BUILTIN_REM_TRUNC: return evaluate_division(scope, expr, id, value);
  case KJ_BUILTIN_ABS:
    if (!evaluate(scope, expr->args.items[0], &x)) return false;
    return x.is_float
             ? make_float(fabs(x.number), x.type, value)
             : make_integer(scope, expr, x.integer < 0 ? -x.integer : x.integer, x.type, value);
  case KJ_BUILTIN_SQRT:
    if (!evaluate(scope, expr->args.items[0], &x)) return false;
    return make_float(sqrt(as_number(&x)), x.type, value);
  default:
    return refuse(scope, expr, "is a built-in function that is not evaluated before a launch");
  }
}

static bool evaluate_name(kj_scope *scope, const kj_expr *expr, kj_value *value)
{
  switch (expr->builtin->id) {
  case KJ_BUILTIN_PI: return make_float(3.14159265358979323846, KJ_WEAK_FLOAT, value);
  case KJ_BUILTIN_INF: return make_float(INFINITY, KJ_WEAK_FLOAT, value);
  case KJ_BUILTIN_NAN: return make_float(NAN, KJ_WEAK_FLOAT, value);
  case KJ_BUILTIN_WARPSIZE: return make_integer(scope, expr, 32, KJ_WEAK_INT, value);
  default: return refuse(scope, expr, "is a position");
  }
}

/* ---- tuples ---- */

/* What a let stands for, as long as that is a let itself. */
static const kj_expr *look_through(const kj_scope *scope, const kj_expr *expr)
{
  for (uint32_t i = 0;
       i < KJ_MOST_DEPTH && expr->kind == KJ_EXPR_DECL && expr->decl->kind == KJ_DECL_LET; i++) {
    if (!scope->bindings || expr->decl->index >= scope->binding_count) break;
    const kj_binding *binding = &scope->bindings[expr->decl->index];
    if (!binding->value || binding->item >= 0) break;
    expr = binding->value;
  }
  return expr;
}

static bool is_extents(const kj_expr *expr)
{
  return expr->kind == KJ_EXPR_FIELD &&
         (!strcmp(expr->name, "shape") || !strcmp(expr->name, "strides"));
}

uint32_t kj_count_items(kj_scope *scope, const kj_expr *expr)
{
  expr = look_through(scope, expr);
  if (expr->kind == KJ_EXPR_TUPLE) return (uint32_t)expr->args.count;
  if (!is_extents(expr)) return 1;
  kj_shape shape;
  return kj_evaluate_shape(scope, expr->x, &shape) ? shape.rank : 0;
}

bool kj_evaluate_item(kj_scope *scope, const kj_expr *expr, uint32_t item, kj_value *value)
{
  expr = look_through(scope, expr);
  if (expr->kind == KJ_EXPR_TUPLE)
    return item < expr->args.count ? evaluate(scope, expr->args.items[item], value)
                                   : refuse(scope, expr, "has too few items");
  if (!is_extents(expr))
    return item == 0 ? evaluate(scope, expr, value)
                     : refuse(scope, expr, "is not a tuple that is known before the launch");
  return extent_of(scope, expr, expr->x, item, !strcmp(expr->name, "strides"), value);
}

static bool evaluate_subscript(kj_scope *scope, const kj_expr *expr, kj_value *value)
{
  const kj_expr *tuple = look_through(scope, expr->x);
  uint32_t item, count;
  if (expr->args.count != 1 || (tuple->kind != KJ_EXPR_TUPLE && !is_extents(tuple)))
    return refuse(scope, expr, "is an element of an array");
  count = kj_count_items(scope, tuple);
  return count && evaluate_dimension(scope, expr->args.items[0], count, &item) &&
         kj_evaluate_item(scope, tuple, item, value);
}

/* ---- entry ---- */

static bool evaluate_kind(kj_scope *scope, const kj_expr *expr, kj_value *value)
{
  kj_value condition;
  switch (expr->kind) {
  case KJ_EXPR_INT: return make_integer(scope, expr, expr->integer, expr->type, value);
  case KJ_EXPR_FLOAT:
    *value = (kj_value){ .type = expr->type, .is_float = true, .number = expr->number };
    return true;
  case KJ_EXPR_BOOL: return make_bool(expr->integer != 0, value);
  case KJ_EXPR_DECL: return evaluate_decl(scope, expr, value);
  case KJ_EXPR_BUILTIN: return evaluate_name(scope, expr, value);
  case KJ_EXPR_UNARY: return evaluate_unary(scope, expr, value);
  case KJ_EXPR_BINARY: return evaluate_binary(scope, expr, value);
  case KJ_EXPR_COND:
    if (!evaluate(scope, expr->x, &condition)) return false;
    return evaluate(scope, is_true(&condition) ? expr->y : expr->z, value);
  case KJ_EXPR_CALL: return evaluate_call(scope, expr, value);
  case KJ_EXPR_INDEX: return evaluate_subscript(scope, expr, value);
  case KJ_EXPR_FIELD: return evaluate_field(scope, expr, value);
  default: return refuse(scope, expr, "is no number");
  }
}

static bool evaluate(kj_scope *scope, const kj_expr *expr, kj_value *value)
{
  if (++scope->steps > KJ_MOST_STEPS || scope->depth >= KJ_MOST_DEPTH)
    return refuse(scope, expr, "takes too many steps to evaluate");
  scope->depth++;
  bool is_known = evaluate_kind(scope, expr, value);
  scope->depth--;
  return is_known;
}

bool kj_evaluate(kj_scope *scope, const kj_expr *expr, kj_value *value)
{
  return evaluate(scope, expr, value);
}

bool kj_evaluate_index(kj_scope *scope, const kj_expr *expr, int64_t *value)
{
  kj_value evaluated;
  if (!evaluate(scope, expr, &evaluated)) return false;
  if (evaluated.is_float) return refuse(scope, expr, "is a float, not an integer");
  if (evaluated.integer > INT64_MAX) return refuse(scope, expr, "does not fit an index");
  *value = (int64_t)evaluated.integer;
  return true;
}
