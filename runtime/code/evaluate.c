#include "code/evaluate.h"

#include <math.h>
#include <string.h>

/* A subexpression's value, which may be evaluated only partly.
 *
 * A value that is computed only from untyped numbers and literals has a weak type and is called
 * open. If an operation has an open operand, the operand gets the type of the other operand: its
 * expression is evaluated again in this type, as in type inference. */
typedef struct known {
  ki_value value;
  bool is_constant; /* computed from literals, constants and const parameters only */
  bool is_open;
  bool is_product; /* a product of floats, which a kernel may fuse with an addition */
} known;

/* Evaluates an expression. wanted: the type that the context requires, or KJIT_ANY. */
static bool evaluate(kj_scope *scope, const ki_expr *expr, kjit_type wanted, known *k);

bool kj_refuse_evaluation(kj_scope *scope, const ki_expr *expr, const char *reason)
{
  if (scope->reason) return false;
  scope->reason = reason;
  scope->location = expr->location;
  return false;
}

static bool refuse(kj_scope *scope, const ki_expr *expr, const char *reason)
{
  return kj_refuse_evaluation(scope, expr, reason);
}

static bool give_index(int64_t integer, known *k)
{
  *k = (known){ .value = { KJIT_I64, integer } };
  return true;
}

static bool give_literal(ki_value value, known *k)
{
  *k = (known){ .value = value, .is_constant = true };
  return true;
}

static bool give_truth(bool truth, bool is_constant, known *k)
{
  *k = (known){ .value = ki_integer_value(KJIT_BOOL, truth), .is_constant = is_constant };
  return true;
}

static bool convert(kj_scope *scope, const ki_expr *expr, kjit_type type, known *k)
{
  k->is_open = false;
  if (k->value.type == type && type != KJ_WEAK_INT) return true;
  bool is_literal = k->value.type == KJ_WEAK_INT && ki_is_integral(type);
  if (is_literal && k->is_constant && !ki_integer_fits(type, k->value.integer))
    return refuse(scope, expr, "does not fit its type");
  k->value = ki_convert_value(k->value, type);
  return true;
}

/* Evaluates an operand again, now in its operation's type, after it was evaluated without a
 * required type. */
static bool settle(kj_scope *scope, const ki_expr *expr, kjit_type type, known *k)
{
  return k->is_open ? evaluate(scope, expr, type, k) : convert(scope, expr, type, k);
}

/* Returns whether the type is i64 or i32, which nearly all extents have. */
static inline bool is_extent_type(kjit_type type) { return type == KJIT_I64 || type == KJIT_I32; }

static inline bool fits_extent(kjit_type type, __int128 integer)
{
  return type == KJIT_I64 ? integer == (int64_t)integer : integer == (int32_t)integer;
}

/* Converts two operands to their common type in the frequent cases: both operands have the same
 * type, i32 or i64, or one of them is a literal. In these cases no operand must be evaluated again.
 * Returns false in all other cases. */
static inline bool join_directly(known *x, known *y)
{
  kjit_type type = x->value.type == KJ_WEAK_INT ? y->value.type : x->value.type;
  known *const both[] = { x, y };
  bool is_direct = is_extent_type(type);
  for (int i = 0; i < 2 && is_direct; i++)
    is_direct =
      both[i]->value.type == type || (both[i]->value.type == KJ_WEAK_INT && both[i]->is_constant &&
                                      fits_extent(type, both[i]->value.integer));
  if (is_direct) x->value.type = y->value.type = type;
  return is_direct;
}

/* Returns the type that a value has if its context does not require a type. */
static kjit_type concrete_type(const known *k)
{
  if (k->value.type == KJ_WEAK_FLOAT) return KJIT_F64;
  if (k->value.type != KJ_WEAK_INT) return k->value.type;
  bool is_wide = !k->is_open && !ki_integer_fits(KJIT_I32, k->value.integer);
  return is_wide ? KJIT_I64 : KJIT_I32;
}

static bool evaluate_condition(kj_scope *scope, const ki_expr *expr, known *k, bool *holds)
{
  if (!evaluate(scope, expr, KJIT_ANY, k) || !settle(scope, expr, concrete_type(k), k))
    return false;
  if (ki_is_floating(k->value.type)) return refuse(scope, expr, "is a float, not a condition");
  *holds = ki_is_true(k->value);
  return true;
}

/* ---- operators ---- */

/* Returns the type in which an open operation is computed. `weak` is its weak type and `wanted` the
 * type that the context requires. Operations that exist only for integers ignore a float type that
 * the context requires. Small integer types become i32. */
static kjit_type operation_type(kjit_type weak, bool is_integer_only, kjit_type wanted)
{
  bool to_float = ki_is_floating(wanted);
  if (weak == KJ_WEAK_FLOAT) return to_float ? wanted : KJIT_F64;
  return to_float && is_integer_only ? KJIT_I32 : ki_arithmetic_type(wanted);
}

static bool give_open(kjit_type weak, known *k)
{
  *k = (known){ .value.type = weak, .is_open = true };
  return true;
}

static bool accept(kj_scope *scope, const ki_expr *expr, ki_outcome outcome)
{
  switch (outcome) {
  case KJ_COMPUTED: return true;
  case KJ_TOO_LARGE: return refuse(scope, expr, "is too large");
  case KJ_SHIFTED_TOO_FAR: return refuse(scope, expr, "shifts too far");
  case KJ_NEGATIVE_EXPONENT: return refuse(scope, expr, "has a negative exponent");
  case KJ_NOT_COMPUTED: break;
  }
  return refuse(scope, expr, "is an operator that is not evaluated before a launch");
}

static bool combine(kj_scope *scope, const ki_expr *expr, const known *x, const known *y, known *k)
{
  bool is_float = ki_is_floating(x->value.type),
       is_sum = expr->op == KJIT_OP_ADD || expr->op == KJIT_OP_SUB;
  *k = (known){ .is_constant = x->is_constant && y->is_constant,
                .is_product = is_float && expr->op == KJIT_OP_MUL };
  bool is_exact = !is_float || k->is_constant ||
                  (expr->op != KJIT_OP_POW && !(is_sum && (x->is_product || y->is_product)));
  scope->is_rounded |= !is_exact;
  return accept(scope, expr, ki_compute_binary(expr->op, x->value, y->value, &k->value));
}

static bool compare(kj_scope *scope, const ki_expr *expr, known *x, known *y, known *k)
{
  bool is_constant = x->is_constant && y->is_constant;
  if (!is_constant && ki_is_weak(x->value.type) && ki_is_weak(y->value.type) &&
      (!settle(scope, expr->x, concrete_type(x), x) ||
       !settle(scope, expr->y, concrete_type(y), y)))
    return false;
  kjit_type type = ki_common_type(x->value.type, y->value.type);
  if (x->value.type == KJIT_BOOL && y->value.type == KJIT_BOOL) type = KJIT_BOOL;
  if (type != KJIT_ANY && (!settle(scope, expr->x, type, x) || !settle(scope, expr->y, type, y)))
    return false;
  return give_truth(ki_compute_comparison(expr->op, x->value, y->value), is_constant, k);
}

static bool evaluate_logic(kj_scope *scope, const ki_expr *expr, known *k)
{
  bool holds, is_constant;
  if (!evaluate_condition(scope, expr->x, k, &holds)) return false;
  is_constant = k->is_constant;
  if (holds == (expr->op == KJIT_OP_OR)) return give_truth(holds, is_constant, k);
  return evaluate_condition(scope, expr->y, k, &holds) &&
         give_truth(holds, is_constant && k->is_constant, k);
}

static bool evaluate_binary(kj_scope *scope, const ki_expr *expr, kjit_type wanted, known *k)
{
  known x, y;
  if (ki_op_table[expr->op].class_ == KJ_OP_LOGIC) return evaluate_logic(scope, expr, k);
  if (!evaluate(scope, expr->x, KJIT_ANY, &x) || !evaluate(scope, expr->y, KJIT_ANY, &y))
    return false;
  if (ki_op_table[expr->op].class_ == KJ_OP_COMPARE) return compare(scope, expr, &x, &y, k);
  if (ki_op_table[expr->op].class_ == KJ_OP_ARITH && join_directly(&x, &y))
    return combine(scope, expr, &x, &y, k);
  kjit_type type = ki_operator_type(expr->op, x.value.type, y.value.type);
  if (type == KJIT_ANY)
    return refuse(scope, expr,
                  expr->op == KJIT_OP_DIV
                    ? "divides integers with `/`; use `//`"
                    : "is an operation that the types of its operands do not support");
  bool is_shift = ki_op_table[expr->op].class_ == KJ_OP_SHIFT,
       is_power = ki_op_table[expr->op].class_ == KJ_OP_POWER && !ki_is_floating(y.value.type);
  if (ki_is_weak(type) && !(x.is_constant && y.is_constant)) {
    bool is_arithmetic = ki_op_table[expr->op].class_ == KJ_OP_ARITH &&
                         expr->op != KJIT_OP_FLOORDIV && expr->op != KJIT_OP_MOD;
    if (wanted == KJIT_ANY) return give_open(type, k);
    type = operation_type(type, !is_arithmetic && !is_power, wanted);
  }
  if (!settle(scope, expr->x, type, &x)) return false;
  /* shift counts and exponents do not get the type of the other operand */
  bool is_free = (is_shift || is_power) && !ki_is_floating(type);
  if (!settle(scope, expr->y, is_free ? concrete_type(&y) : type, &y)) return false;
  return combine(scope, expr, &x, &y, k);
}

static bool evaluate_unary(kj_scope *scope, const ki_expr *expr, kjit_type wanted, known *k)
{
  bool holds;
  if (expr->op == KJIT_OP_NOT)
    return evaluate_condition(scope, expr->x, k, &holds) && give_truth(!holds, k->is_constant, k);
  /* the minimum of a signed type can be written as a literal, `-128i8` */
  bool is_least =
    expr->op == KJIT_OP_NEG && expr->x->kind == KJ_EXPR_INT && ki_is_signed(expr->x->type);
  __int128 least = is_least ? -expr->x->integer : 0;
  if (is_least && ki_integer_fits(expr->x->type, least))
    return give_literal((ki_value){ expr->x->type, least }, k);
  if (!evaluate(scope, expr->x, KJIT_ANY, k)) return false;
  kjit_type type = ki_arithmetic_type(k->value.type);
  if (k->is_open) {
    if (wanted == KJIT_ANY) return true;
    type = operation_type(type, expr->op == KJIT_OP_INVERT, wanted);
  }
  return settle(scope, expr->x, type, k) &&
         accept(scope, expr, ki_compute_unary(expr->op, k->value, &k->value));
}

/* Evaluates a conditional expression. The types of both branches determine its type, even if only
 * one branch can be evaluated. */
static bool evaluate_choice(kj_scope *scope, const ki_expr *expr, kjit_type wanted, known *k)
{
  known condition, other;
  bool holds;
  if (!evaluate_condition(scope, expr->x, &condition, &holds)) return false;
  const ki_expr *arm = holds ? expr->y : expr->z, *left = holds ? expr->z : expr->y;
  if (condition.is_constant) return evaluate(scope, arm, wanted, k);
  if (!evaluate(scope, arm, KJIT_ANY, k)) return false;
  kj_scope before = *scope;
  if (!evaluate(scope, left, KJIT_ANY, &other)) {
    before.steps = scope->steps;
    *scope = before;
    return wanted == KJIT_ANY || settle(scope, arm, wanted, k);
  }
  kjit_type type = ki_joined_type(k->value.type, other.value.type);
  if (type == KJIT_ANY) return refuse(scope, expr, "has two alternatives without a common type");
  if (ki_is_weak(type)) {
    if (wanted == KJIT_ANY) return give_open(type, k);
    type = type == KJ_WEAK_FLOAT && !ki_is_floating(wanted) ? KJIT_F64 : wanted;
  }
  k->is_constant = false;
  return settle(scope, arm, type, k);
}

/* ---- names ---- */

static bool evaluate_constant(kj_scope *scope, const ki_expr *expr, known *k)
{
  const ki_decl *decl = expr->decl;
  if (decl->data && decl->rank == 0) {
    ki_value value;
    return ki_decode_value(decl->data_element, decl->data, &value)
             ? give_literal(value, k)
             : refuse(scope, expr, "is complex");
  }
  if (!decl->value)
    return refuse(scope, expr,
                  decl->data ? "is an array" : "is an extern constant without a value");
  if (!evaluate(scope, decl->value, KJIT_ANY, k)) return false;
  if (!decl->type_expr || decl->type_expr->kind != KJ_TYPE_FIXED) return true;
  return ki_fit_argument(k->value, decl->type_expr->type, &k->value) ||
         refuse(scope, expr, "does not fit its type");
}

static bool evaluate_item(kj_scope *scope, const ki_expr *expr, uint32_t item, kjit_type wanted,
                          known *k);

static bool evaluate_let(kj_scope *scope, const ki_expr *expr, kjit_type wanted, known *k)
{
  const ki_decl *decl = expr->decl;
  const kj_binding *binding = kj_find_binding(scope, decl);
  if (!binding)
    return refuse(scope, expr,
                  decl->kind == KJ_DECL_VAR || decl->kind == KJ_DECL_LOOP
                    ? "changes while the kernel runs"
                    : "is not known before the launch");
  return binding->item < 0
           ? evaluate(scope, binding->value, wanted, k)
           : evaluate_item(scope, binding->value, (uint32_t)binding->item, wanted, k);
}

static bool evaluate_decl(kj_scope *scope, const ki_expr *expr, kjit_type wanted, known *k)
{
  const ki_decl *decl = expr->decl;
  if (decl->kind == KJ_DECL_CONST) return evaluate_constant(scope, expr, k);
  if (decl->kind == KJ_DECL_FUNCTION) return refuse(scope, expr, "is a function");
  if (decl->kind != KJ_DECL_PARAM) return evaluate_let(scope, expr, wanted, k);
  if (!scope->bound || decl->index >= scope->bound_count)
    return refuse(scope, expr, "is not known here");
  const kj_bound *bound = &scope->bound[decl->index];
  if (bound->kind == KJ_ARGUMENT_ARRAY) return refuse(scope, expr, "is an array");
  if (bound->kind == KJ_ARGUMENT_FUNCTION)
    return refuse(scope, expr,
                  bound->function ? "is a function"
                                  : "is an argument whose value is known only at the launch");
  if (bound->value.type == KJIT_ANY) return refuse(scope, expr, "is complex");
  *k = (known){ .value = bound->value, .is_constant = bound->kind == KJ_ARGUMENT_CONST };
  k->is_open = ki_is_weak(bound->value.type) && !k->is_constant;
  return k->is_open && wanted != KJIT_ANY ? convert(scope, expr, wanted, k) : true;
}

/* ---- fields, calls ---- */

/* Evaluates an index into an array's shape. A negative index counts from the end. */
static bool evaluate_dimension(kj_scope *scope, const ki_expr *index, uint32_t count,
                               uint32_t *dimension)
{
  int64_t value;
  if (!kj_evaluate_index(scope, index, &value)) return false;
  if (value < 0) value += count;
  if (value < 0 || value >= count) return refuse(scope, index, "is out of range");
  *dimension = (uint32_t)value;
  return true;
}

static __attribute__((noinline)) bool extent_of_view(kj_scope *scope, const ki_expr *expr,
                                                     const ki_expr *array, uint32_t dimension,
                                                     bool is_stride, known *k)
{
  kj_shape shape;
  if (!kj_evaluate_shape(scope, array, &shape)) return false;
  if (dimension >= shape.rank)
    return refuse(scope, expr, "names a dimension that the array does not have");
  return give_index(is_stride ? shape.strides[dimension] : shape.extents[dimension], k);
}

static inline bool extent_of(kj_scope *scope, const ki_expr *expr, const ki_expr *array,
                             uint32_t dimension, bool is_stride, known *k)
{
  const kj_bound *bound = is_stride ? NULL : kj_find_array(scope, array);
  return bound && dimension < bound->rank
           ? give_index(bound->shape[dimension], k)
           : extent_of_view(scope, expr, array, dimension, is_stride, k);
}

static bool evaluate_field(kj_scope *scope, const ki_expr *expr, kjit_type wanted, known *k)
{
  (void)wanted;
  if (expr->x->kind == KJ_EXPR_BUILTIN && expr->x->builtin->id == KJ_BUILTIN_BLOCK_DIM &&
      scope->block && expr->name[1] == 0 && expr->name[0] >= 'x' && expr->name[0] <= 'z')
    return give_index(scope->block[expr->name[0] - 'x'], k);
  if (expr->x->kind == KJ_EXPR_BUILTIN) return refuse(scope, expr, "is a position");
  bool is_size = !strcmp(expr->name, "size"), is_rank = !strcmp(expr->name, "ndim");
  if (!is_size && !is_rank) return refuse(scope, expr, "is a tuple");
  kj_shape shape;
  if (!kj_evaluate_shape(scope, expr->x, &shape)) return false;
  if (is_rank) return give_literal(ki_integer_value(KJ_WEAK_INT, shape.rank), k);
  uint64_t size = 1;
  for (uint32_t d = 0; d < shape.rank; d++) size *= (uint64_t)shape.extents[d];
  return give_index((int64_t)size, k);
}

/* Computes a function whose operands have been evaluated but may still be open. */
static bool compute_numeric(kj_scope *scope, const ki_expr *expr, kjit_type wanted,
                            known operands[2], known *k)
{
  ki_builtin_id id = expr->x->builtin->id;
  bool is_integer_only = id != KJ_BUILTIN_MIN && id != KJ_BUILTIN_MAX && id != KJ_BUILTIN_ABS,
       is_constant = true;
  ki_value values[2];
  kjit_type type = KJIT_ANY;
  for (size_t i = 0; i < expr->args.count; i++) {
    kjit_type own = operands[i].value.type;
    type = i ? ki_common_type(type, own) : ki_arithmetic_type(own);
    if (type == KJIT_ANY) return refuse(scope, expr, "has arguments without a common type");
    is_constant &= operands[i].is_constant;
  }
  if (is_integer_only && ki_is_floating(type))
    return refuse(scope, expr, "divides floats as integers");
  if (ki_is_weak(type) && !is_constant) {
    if (wanted == KJIT_ANY) return give_open(type, k);
    type = operation_type(type, is_integer_only, wanted);
  }
  for (size_t i = 0; i < expr->args.count; i++) {
    if (!settle(scope, expr->args.items[i], type, &operands[i])) return false;
    values[i] = operands[i].value;
  }
  *k = (known){ .is_constant = is_constant };
  return accept(scope, expr, ki_compute_builtin(id, values, expr->args.count, &k->value));
}

/* Evaluates min, max, abs and integer divisions, whose operands have the result type. */
static __attribute__((noinline)) bool evaluate_numeric(kj_scope *scope, const ki_expr *expr,
                                                       kjit_type wanted, known *k)
{
  known operands[2];
  ki_expr *const *args = expr->args.items;
  if (expr->args.count > 2) return refuse(scope, expr, "has too many arguments");
  if (!evaluate(scope, args[0], KJIT_ANY, &operands[0])) return false;
  if (expr->args.count < 2) return compute_numeric(scope, expr, wanted, operands, k);
  if (!evaluate(scope, args[1], KJIT_ANY, &operands[1])) return false;
  if (!join_directly(&operands[0], &operands[1]))
    return compute_numeric(scope, expr, wanted, operands, k);
  const ki_value values[] = { operands[0].value, operands[1].value };
  k->is_constant = operands[0].is_constant && operands[1].is_constant;
  k->is_open = k->is_product = false;
  return accept(scope, expr, ki_compute_builtin(expr->x->builtin->id, values, 2, &k->value));
}

static __attribute__((noinline)) bool evaluate_root(kj_scope *scope, const ki_expr *expr, known *k)
{
  if (!evaluate(scope, expr->args.items[0], KJIT_ANY, k)) return false;
  kjit_type type = k->value.type;
  if (type == KJ_WEAK_INT && !k->is_open) type = KJ_WEAK_FLOAT;
  else if (!ki_is_floating(type) || k->is_open) type = KJIT_F64;
  if (!settle(scope, expr->args.items[0], type, k)) return false;
  scope->is_rounded = true;
  k->value = ki_float_value(type, sqrt(ki_number_of(k->value)));
  return true;
}

static __attribute__((noinline)) bool evaluate_cast(kj_scope *scope, const ki_expr *expr, known *k)
{
  const ki_type_expr *type = expr->x->type_expr;
  if (type->kind != KJ_TYPE_FIXED || !ki_is_scalar(type->type) || type->type >= KJIT_C64 ||
      expr->args.count != 1)
    return refuse(scope, expr, "is a conversion that is not evaluated before a launch");
  return evaluate(scope, expr->args.items[0], type->type, k);
}

static bool evaluate_call(kj_scope *scope, const ki_expr *expr, kjit_type wanted, known *k)
{
  if (expr->x->kind == KJ_EXPR_TYPE) return evaluate_cast(scope, expr, k);
  if (expr->x->kind != KJ_EXPR_BUILTIN) return refuse(scope, expr, "calls a function");
  switch ((int)expr->x->builtin->id) {
  case KJ_BUILTIN_LEN: return extent_of(scope, expr, expr->args.items[0], 0, false, k);
  case KJ_BUILTIN_MIN:
  case KJ_BUILTIN_MAX:
  case KJ_BUILTIN_ABS:
  case KJ_BUILTIN_CEIL_DIV:
  case KJ_BUILTIN_DIV_TRUNC:
  case KJ_BUILTIN_REM_TRUNC: return evaluate_numeric(scope, expr, wanted, k);
  case KJ_BUILTIN_SQRT: return evaluate_root(scope, expr, k);
  default:
    return refuse(scope, expr, "is a built-in function that is not evaluated before a launch");
  }
}

static bool evaluate_name(kj_scope *scope, const ki_expr *expr, kjit_type wanted, known *k)
{
  (void)wanted;
  switch ((int)expr->builtin->id) {
  case KJ_BUILTIN_PI: return give_literal(ki_float_value(KJ_WEAK_FLOAT, M_PI), k);
  case KJ_BUILTIN_INF: return give_literal(ki_float_value(KJ_WEAK_FLOAT, INFINITY), k);
  case KJ_BUILTIN_NAN: return give_literal(ki_float_value(KJ_WEAK_FLOAT, NAN), k);
  case KJ_BUILTIN_WARPSIZE: return give_literal(ki_integer_value(KJ_WEAK_INT, KJ_WARP_THREADS), k);
  default: return refuse(scope, expr, "is a position");
  }
}

/* ---- tuples ---- */

/* Returns the declared type of a tuple's item, or NULL if none is declared. */
static const ki_type_expr *type_of_item(const ki_type_expr *type, uint32_t item)
{
  return type && type->kind == KJ_TYPE_TUPLE && item < type->items.count ? type->items.items[item]
                                                                         : NULL;
}

/* Follows an expression to its definition. A name is replaced by the value of its let or module
 * constant, and a subscript of a tuple by the item. This is repeated until neither is possible.
 * *type receives the declared type of a constant, or NULL. */
static const ki_expr *look_through(kj_scope *scope, const ki_expr *expr, const ki_type_expr **type)
{
  *type = NULL;
  if (++scope->steps > KJ_MOST_STEPS || scope->depth >= KJ_MOST_DEPTH) return expr;
  const ki_decl *decl = expr->kind == KJ_EXPR_DECL ? expr->decl : NULL;
  const ki_expr *found = NULL;
  scope->depth++;
  if (decl && decl->kind == KJ_DECL_CONST && decl->value) {
    found = look_through(scope, decl->value, type);
    if (decl->type_expr) *type = decl->type_expr;
  } else if (decl) {
    const kj_binding *binding = kj_find_binding(scope, decl);
    if (binding && binding->item < 0) found = look_through(scope, binding->value, type);
  } else if (expr->kind == KJ_EXPR_INDEX && expr->args.count == 1) {
    const ki_expr *tuple = look_through(scope, expr->x, type);
    const ki_type_expr *own = *type;
    uint32_t item;
    if (tuple->kind == KJ_EXPR_TUPLE &&
        evaluate_dimension(scope, expr->args.items[0], (uint32_t)tuple->args.count, &item)) {
      found = look_through(scope, tuple->args.items[item], type);
      if (type_of_item(own, item)) *type = type_of_item(own, item);
    }
  }
  scope->depth--;
  return found ? found : expr;
}

static bool is_extents(const ki_expr *expr)
{
  return expr->kind == KJ_EXPR_FIELD &&
         (!strcmp(expr->name, "shape") || !strcmp(expr->name, "strides"));
}

uint32_t kj_count_tuple_items(kj_scope *scope, const ki_expr *expr)
{
  const ki_type_expr *type;
  expr = look_through(scope, expr, &type);
  if (expr->kind == KJ_EXPR_TUPLE) return (uint32_t)expr->args.count;
  if (!is_extents(expr)) return 1;
  const kj_bound *array = kj_find_array(scope, expr->x);
  if (array) return array->rank;
  kj_shape shape;
  return kj_evaluate_shape(scope, expr->x, &shape) ? shape.rank : 0;
}

/* Evaluates an item in an expression. The expression and its type come from look_through. */
static bool take_item(kj_scope *scope, const ki_expr *expr, const ki_type_expr *type, uint32_t item,
                      kjit_type wanted, known *k)
{
  if (expr->kind == KJ_EXPR_TUPLE) {
    if (item >= expr->args.count) return refuse(scope, expr, "has too few items");
    const ki_type_expr *own = type_of_item(type, item);
    bool has_type = own && own->kind == KJ_TYPE_FIXED;
    if (!evaluate(scope, expr->args.items[item], has_type ? KJIT_ANY : wanted, k)) return false;
    if (!has_type) return true;
    if (!ki_fit_argument(k->value, own->type, &k->value))
      return refuse(scope, expr, "does not fit its type");
    return wanted == KJIT_ANY || convert(scope, expr, wanted, k);
  }
  if (!is_extents(expr))
    return item == 0 ? evaluate(scope, expr, wanted, k)
                     : refuse(scope, expr, "is not a tuple that is known before the launch");
  return extent_of(scope, expr, expr->x, item, !strcmp(expr->name, "strides"), k);
}

static bool evaluate_item(kj_scope *scope, const ki_expr *expr, uint32_t item, kjit_type wanted,
                          known *k)
{
  const ki_type_expr *type;
  expr = look_through(scope, expr, &type);
  return take_item(scope, expr, type, item, wanted, k);
}

static bool evaluate_subscript(kj_scope *scope, const ki_expr *expr, kjit_type wanted, known *k)
{
  const ki_type_expr *type;
  const ki_expr *tuple = look_through(scope, expr->x, &type),
                *index = expr->args.count == 1 ? expr->args.items[0] : NULL;
  uint32_t item, count;
  bool is_shape = tuple->kind == KJ_EXPR_FIELD && !strcmp(tuple->name, "shape");
  const kj_bound *array = is_shape ? kj_find_array(scope, tuple->x) : NULL;
  if (array && index) /* an extent of an array, by far the most frequent case */
    return evaluate_dimension(scope, index, array->rank, &item) &&
           give_index(array->shape[item], k);
  if (!index || (tuple->kind != KJ_EXPR_TUPLE && !is_extents(tuple)))
    return refuse(scope, expr, "loads an element of an array");
  count = kj_count_items(scope, tuple);
  bool is_known = count || !scope->reason; /* the shape of an array of rank 0 has no items */
  return is_known && evaluate_dimension(scope, index, count, &item) &&
         take_item(scope, tuple, type, item, wanted, k);
}

/* ---- entry ---- */

static bool evaluate_integer(kj_scope *scope, const ki_expr *expr, kjit_type wanted, known *k)
{
  (void)wanted;
  return ki_integer_fits(expr->type, expr->integer)
           ? give_literal((ki_value){ expr->type, expr->integer }, k)
           : refuse(scope, expr, "does not fit its type");
}

static bool evaluate_float(kj_scope *scope, const ki_expr *expr, kjit_type wanted, known *k)
{
  (void)scope, (void)wanted;
  return give_literal(ki_float_value(expr->type, expr->number), k);
}

static bool evaluate_truth(kj_scope *scope, const ki_expr *expr, kjit_type wanted, known *k)
{
  (void)scope, (void)wanted;
  return give_truth(expr->integer != 0, true, k);
}

typedef bool evaluator(kj_scope *scope, const ki_expr *expr, kjit_type wanted, known *k);

static evaluator *const evaluators[] = {
  [KJ_EXPR_INT] = evaluate_integer,   [KJ_EXPR_FLOAT] = evaluate_float,
  [KJ_EXPR_BOOL] = evaluate_truth,    [KJ_EXPR_DECL] = evaluate_decl,
  [KJ_EXPR_BUILTIN] = evaluate_name,  [KJ_EXPR_UNARY] = evaluate_unary,
  [KJ_EXPR_BINARY] = evaluate_binary, [KJ_EXPR_COND] = evaluate_choice,
  [KJ_EXPR_CALL] = evaluate_call,     [KJ_EXPR_INDEX] = evaluate_subscript,
  [KJ_EXPR_FIELD] = evaluate_field,
};

enum { KINDS = sizeof evaluators / sizeof *evaluators };

static bool evaluate(kj_scope *scope, const ki_expr *expr, kjit_type wanted, known *k)
{
  if (++scope->steps > KJ_MOST_STEPS || scope->depth >= KJ_MOST_DEPTH)
    return refuse(scope, expr, "takes too many steps to evaluate");
  evaluator *function = (uint32_t)expr->kind < KINDS ? evaluators[expr->kind] : NULL;
  if (!function) return refuse(scope, expr, "is not a number");
  scope->depth++;
  bool is_known = function(scope, expr, wanted, k);
  scope->depth--;
  return is_known && (wanted == KJIT_ANY || convert(scope, expr, wanted, k));
}

bool kj_evaluate(kj_scope *scope, const ki_expr *expr, ki_value *value)
{
  known k;
  if (!evaluate(scope, expr, KJIT_ANY, &k)) return false;
  kjit_type type = k.value.type;
  if (k.is_open && !evaluate(scope, expr, type == KJ_WEAK_INT ? KJIT_I64 : KJIT_F64, &k))
    return false;
  *value = k.value;
  value->type = type; /* an i64 has the same bits as a weak integer, and an f64 has the same bits as
                       * a weak float */
  return true;
}

/* Converts a value in an index position to i64. */
static bool take_index(kj_scope *scope, const ki_expr *expr, known *k, int64_t *value)
{
  if (ki_is_floating(k->value.type)) return refuse(scope, expr, "is a float, not an integer");
  k->value = ki_index_value(k->value);
  if (!convert(scope, expr, KJIT_I64, k)) return false;
  *value = (int64_t)k->value.integer;
  return true;
}

bool kj_evaluate_item(kj_scope *scope, const ki_expr *expr, int64_t item, int64_t *value)
{
  known k;
  bool is_literal = expr->kind == KJ_EXPR_INT && expr->type == KJ_WEAK_INT && item <= 0;
  if (is_literal && fits_extent(KJIT_I64, expr->integer)) {
    *value = (int64_t)expr->integer;
    return true;
  }
  if (!(item < 0 ? evaluate(scope, expr, KJIT_ANY, &k)
                 : evaluate_item(scope, expr, (uint32_t)item, KJIT_ANY, &k)))
    return false;
  if (is_extent_type(k.value.type)) { /* the value is open, so it has a weak type */
    *value = (int64_t)k.value.integer;
    return true;
  }
  if (k.is_open && !ki_is_floating(k.value.type) &&
      !(item < 0 ? evaluate(scope, expr, KJIT_I64, &k)
                 : evaluate_item(scope, expr, (uint32_t)item, KJIT_I64, &k)))
    return false;
  return take_index(scope, expr, &k, value);
}

bool kj_evaluate_condition(kj_scope *scope, const ki_expr *expr, bool *holds)
{
  known k;
  return evaluate_condition(scope, expr, &k, holds);
}
