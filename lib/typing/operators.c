/* Type inference of operators: common types of operands, conversions, and constant folding
 * (docs/ir.md, Inference). */
#include "typing/rules.h"

static const char *text_of(kjit_op op) { return ki_op_table[op].text; }

static void require_numbers(kt_scope *s, kjit_op op, const kt_expr *x)
{
  if (kt_is_number(s->c, x->type)) return;
  bool compares = ki_op_table[op].class_ == KJ_OP_COMPARE;
  if (compares && kt_is_struct(s->c, x->type))
    kt_fail(s->c, x->location, KJIT_ERROR_TYPE, "compare structs field by field: `a.x %s b.x`",
            text_of(op));
  if (compares && kt_is_pointer(s->c, x->type))
    kt_fail(s->c, x->location, KJIT_ERROR_TYPE,
            "compare pointers as addresses: `bitcast(u64, p) %s 0`", text_of(op));
  if (kt_is_pointer(s->c, x->type))
    kt_fail(s->c, x->location, KJIT_ERROR_TYPE,
            "pointer arithmetic is not supported: `p[i]` is an element, and `pointer(p[i])` is its "
            "address");
  const char *hint = kt_is_array(s->c, x->type)   ? "; index the array: `a[i]`"
                     : kt_is_tuple(s->c, x->type) ? "; select an item: `t[0]`"
                                                  : "";
  kt_fail_number(s->c, x->location, x->type, "`%s` needs numbers, got %s%s", text_of(op),
                 kt_type_text(s->c, x->type), hint);
}

static void require_integers(kt_scope *s, kjit_op op, const kt_expr *x)
{
  if (!kt_is_float(s->c, x->type)) return;
  kt_fail_number(s->c, x->location, x->type, "`%s` needs integers, got %s", text_of(op),
                 kt_type_text(s->c, x->type));
}

/* Returns whether the type of a weak expression can change in a later round, because it contains a
 * variable to which only literals have been assigned so far. */
static bool is_unsettled(const kt_expr *e)
{
  if (!e || !ki_is_weak(e->type)) return false;
  if (e->kind == KJ_T_VAR) return e->var->kind == KJ_V_VAR;
  for (size_t i = 0; i < kt_operand_count(e); i++)
    if (is_unsettled(kt_operand(e, i))) return true;
  return false;
}

static bool is_settled_integer(const kt_scope *s, kjit_type type)
{
  return type == KJIT_BOOL || (kt_is_integer(s->c, type) && !ki_is_weak(type));
}

bool kt_stays_open(const kt_scope *s, const kt_expr *x, const kt_expr *y)
{
  bool has_integer = is_settled_integer(s, x->type) || is_settled_integer(s, y->type);
  return has_integer && ((x->type == KJ_WEAK_FLOAT && is_unsettled(x)) ||
                         (y->type == KJ_WEAK_FLOAT && is_unsettled(y)));
}

static kjit_type promote(kt_scope *s, kjit_op op, const kt_expr *x, const kt_expr *y,
                         kj_location location)
{
  if (kt_stays_open(s, x, y)) return KJ_WEAK_FLOAT;
  kjit_type type = kt_promote(s, x->type, y->type, location);
  if (type != KJIT_ANY) return type;
  const char *a = kt_type_text(s->c, x->type), *b = kt_type_text(s->c, y->type);
  kt_fail(s->c, location, KJIT_ERROR_TYPE,
          "`%s` on %s and %s: no integer type can represent both; convert one, `%s(...)`",
          text_of(op), a, b, a);
}

static kt_expr *new_binary(kt_scope *s, kjit_op op, kjit_type type, kt_expr *x, kt_expr *y,
                           kj_location location)
{
  kt_expr *expr = kt_new_texpr(s->c, KJ_T_BINARY, type, location);
  expr->op = op;
  expr->x = x;
  expr->y = y;
  return expr;
}

/* Makes an arithmetic operation. The operands must have the result type, which can be weak. */
static kt_expr *make_arithmetic(kt_scope *s, kjit_op op, kjit_type type, kt_expr *x, kt_expr *y,
                                kj_location location)
{
  x = kt_convert(s, x, type, location);
  y = kt_convert(s, y, type, location);
  kt_expr *folded = kt_fold_binary(s, op, x, y, location);
  return folded ? folded : new_binary(s, op, type, x, y, location);
}

static kt_expr *make_division(kt_scope *s, kt_expr *x, kt_expr *y, kj_location location)
{
  kjit_type type = promote(s, KJIT_OP_DIV, x, y, location);
  if (kt_is_float(s->c, type)) return make_arithmetic(s, KJIT_OP_DIV, type, x, y, location);
  if (is_unsettled(x) || is_unsettled(y))
    return new_binary(s, KJIT_OP_DIV, KJ_WEAK_FLOAT, x, y, location);
  kt_fail(s->c, location, KJIT_ERROR_TYPE,
          "`/` is for floats, but both operands are integers; write `//` (rounds down) or "
          "`div_trunc(x, y)` (rounds to zero, like C), or convert an operand to a float");
}

static kt_expr *make_bits(kt_scope *s, kjit_op op, kt_expr *x, kt_expr *y, kj_location location)
{
  require_integers(s, op, x);
  require_integers(s, op, y);
  bool is_logic = x->type == KJIT_BOOL && y->type == KJIT_BOOL;
  return make_arithmetic(s, op, is_logic ? KJIT_BOOL : promote(s, op, x, y, location), x, y,
                         location);
}

static kt_expr *make_shift(kt_scope *s, kjit_op op, kt_expr *x, kt_expr *y, kj_location location)
{
  require_integers(s, op, x);
  require_integers(s, op, y);
  kjit_type type = ki_arithmetic_type(x->type);
  x = kt_convert(s, x, type, location);
  kt_expr *folded = kt_fold_binary(s, op, x, y, location);
  if (folded) return folded;
  /* The count can be converted to any integer type, because only its low bits matter: it is taken
   * modulo the width. */
  if (y->kind == KJ_T_CONST && !ki_is_weak(type))
    y = kt_new_integer(s, type, y->integer & (ki_type(s->c->types, type)->size_bytes * 8 - 1),
                       y->location);
  else if (ki_is_weak(y->type) && !ki_is_weak(type))
    y = kt_convert(s, y, KJIT_I32,
                   /* the count has the type i32 and not `type`, which can be unsigned, because the
                    * count can contain a negative literal */
                   location);
  return new_binary(s, op, type, x, kt_convert(s, y, type, location), location);
}

static kt_expr *make_compare(kt_scope *s, kjit_op op, kt_expr *x, kt_expr *y, kj_location location);

kt_expr *kt_make_one(kt_scope *s, kjit_type type, kj_location location)
{
  return kt_convert(s, kt_new_integer(s, KJ_WEAK_INT, 1, location), type, location);
}

static kt_expr *multiply(kt_scope *s, kt_expr *x, kt_expr *y, kj_location location)
{
  return make_arithmetic(s, KJIT_OP_MUL, x->type, x, y, location);
}

/* Computes x to the power n, n > 0, by repeated squaring. x has its final type and can be
 * copied. */
static kt_expr *multiply_out(kt_scope *s, kt_expr *x, unsigned __int128 n, kj_location location)
{
  kt_expr *result = NULL;
  for (; n > 1; n >>= 1) {
    if (n & 1)
      result = result ? multiply(s, result, kt_copy_texpr(s, x), location) : kt_copy_texpr(s, x);
    kt_expr *square = multiply(s, x, kt_copy_texpr(s, x), location);
    x = n >> 1 == 1 ? square : kt_keep_value(s, square);
  }
  return result ? multiply(s, result, x, location) : x;
}

/* Computes a power of a u64. No integer type represents both every u64 and negative exponents, so
 * negative exponents are handled separately: the result is 0 unless x is 1. */
static kt_expr *make_u64_power(kt_scope *s, kt_expr *x, kt_expr *y, kj_location location)
{
  x = kt_keep_value(s, x);
  y = kt_keep_value(s, kt_convert(s, y, KJIT_I64, location));
  kt_expr *zero = kt_new_integer(s, KJIT_I64, 0, location);
  kt_expr *is_negative = make_compare(s, KJIT_OP_LT, y, zero, location);
  kt_expr *is_one =
    make_compare(s, KJIT_OP_EQ, kt_copy_texpr(s, x), kt_make_one(s, KJIT_U64, location), location);
  kt_expr *small = kt_convert(s, is_one, KJIT_U64, location);
  if (kt_is_constant(is_negative) && is_negative->integer) return small;
  kt_expr *power =
    make_arithmetic(s, KJIT_OP_POW, KJIT_U64, kt_copy_texpr(s, x), kt_copy_texpr(s, y), location);
  return kt_is_constant(is_negative) ? power : kt_make_cond(s, is_negative, small, power, location);
}

/* Computes an integer power if the exponent is not a constant or is negative. */
static kt_expr *make_integer_power(kt_scope *s, kt_expr *x, kt_expr *y, kj_location location)
{
  kjit_type type = ki_arithmetic_type(x->type), exponent = ki_arithmetic_type(y->type);
  if (kt_is_constant(x) && kt_is_constant(y))
    return kt_fold_binary(s, KJIT_OP_POW, kt_convert(s, x, type, location), y, location);
  if (ki_is_weak(exponent)) {
    y = kt_make_concrete(s, y);
    exponent = y->type;
  }
  if (type == KJIT_U64 && ki_is_signed(exponent)) return make_u64_power(s, x, y, location);
  kt_expr *power = make_arithmetic(s, KJIT_OP_POW, ki_power_type(type, exponent), x, y, location);
  return kt_convert(s, power, type, location);
}

/* Computes a power with a constant exponent. If the base is a float and the exponent is negative,
 * multiplies reciprocals of the base, which overflow or underflow only if the result does. */
static kt_expr *make_constant_power(kt_scope *s, kt_expr *x, kt_expr *y, kj_location location)
{
  kjit_type type = ki_arithmetic_type(x->type);
  __int128 n = y->integer;
  x = kt_convert(s, x, type, location);
  if (n == 0) {
    kt_drop_value(s, x);
    return kt_make_one(s, type, location);
  }
  if (n < 0 && !kt_is_float(s->c, type)) return make_integer_power(s, x, y, location);
  if (n < 0) {
    x = make_arithmetic(s, KJIT_OP_DIV, type, kt_make_one(s, type, location), x, location);
    x->is_power = true;
  }
  if (n == -1) return x;
  return multiply_out(s, kt_keep_value(s, x), n < 0 ? -(unsigned __int128)n : (unsigned __int128)n,
                      location);
}

/* Computes a power whose base is weak. The power stays one node until its type is known; the node
 * is then replaced by a product. */
static kt_expr *make_weak_power(kt_scope *s, kt_expr *x, kt_expr *y, kj_location location)
{
  bool is_known = kt_is_constant(y) && y->integer >= 0;
  if (is_known) y = kt_new_integer(s, KJ_WEAK_INT, y->integer, y->location);
  kt_expr *folded =
    is_known && x->type == y->type ? kt_fold_binary(s, KJIT_OP_POW, x, y, location) : NULL;
  if (folded) return folded;
  if (is_known && y->integer == 0) {
    kt_drop_value(s, x);
    return kt_new_integer(s, KJ_WEAK_INT, 1, location);
  }
  return new_binary(s, KJIT_OP_POW, x->type, kt_keep_value(s, x), y, location);
}

static kt_expr *make_power(kt_scope *s, kt_expr *x, kt_expr *y, kj_location location)
{
  kt_expr *folded = ki_is_weak(x->type) && x->type == y->type
                      ? kt_fold_binary(s, KJIT_OP_POW, x, y, location)
                      : NULL;
  if (folded) return folded;
  bool is_integer_exponent = !kt_is_float(s->c, y->type),
       is_integer_base = !kt_is_float(s->c, x->type);
  bool is_float_literal = kt_is_constant(x) && x->type == KJ_WEAK_FLOAT && kt_is_constant(y);
  if (is_integer_exponent && ki_is_weak(x->type) && !is_float_literal)
    return make_weak_power(s, x, y, location);
  if (is_integer_exponent && kt_is_constant(y)) return make_constant_power(s, x, y, location);
  if (is_integer_exponent && is_integer_base) return make_integer_power(s, x, y, location);
  if (is_integer_exponent && !is_float_literal) {
    y = kt_make_concrete(s, y);
    y = kt_convert(s, y, ki_arithmetic_type(y->type), y->location);
    return new_binary(s, KJIT_OP_POW, x->type, x, y, location);
  }
  kt_operands operands = { .builtin = &ki_builtin_table[KJ_BUILTIN_POW], .location = location };
  KJ_PUSH(s->arena, &operands.values, x);
  KJ_PUSH(s->arena, &operands.values, y);
  return kt_apply_rule(s, &operands);
}

/* Returns the type in which two values are compared. Integers are compared by their mathematical
 * values. If no type can represent both integers, *x and *y keep their types. */
static kjit_type type_to_compare(kt_scope *s, kt_expr **x, kt_expr **y, kj_location location)
{
  if ((*x)->type == KJIT_BOOL && (*y)->type == KJIT_BOOL) return KJIT_BOOL;
  if (kt_wide_type(*x) != KJIT_ANY && kt_is_integer(s->c, (*y)->type)) *x = kt_make_concrete(s, *x);
  if (kt_wide_type(*y) != KJIT_ANY && kt_is_integer(s->c, (*x)->type)) *y = kt_make_concrete(s, *y);
  kjit_type type = kt_promote(s, (*x)->type, (*y)->type, location);
  if (!ki_is_weak(type) || (kt_is_constant(*x) && kt_is_constant(*y))) return type;
  *x = kt_make_concrete(s, *x);
  *y = kt_make_concrete(s, *y);
  return kt_promote(s, (*x)->type, (*y)->type, location);
}

static kt_expr *make_compare(kt_scope *s, kjit_op op, kt_expr *x, kt_expr *y, kj_location location)
{
  kjit_type type = type_to_compare(s, &x, &y, location);
  if (type == KJIT_ANY) {
    x = kt_convert(s, x, ki_arithmetic_type(x->type), location);
    y = kt_convert(s, y, ki_arithmetic_type(y->type), location);
  } else {
    x = kt_convert(s, x, type, location);
    y = kt_convert(s, y, type, location);
  }
  kt_expr *folded = kt_fold_compare(s, op, x, y, location);
  if (folded) return folded;
  kt_expr *expr = kt_new_texpr(s->c, KJ_T_COMPARE, KJIT_BOOL, location);
  expr->op = op;
  expr->x = x;
  expr->y = y;
  return expr;
}

kt_expr *kt_make_own_binary(kt_scope *s, kjit_op op, kt_expr *x, kt_expr *y, kj_location location)
{
  if (kt_is_date(s, x->type) || kt_is_date(s, y->type))
    return kt_make_date_binary(s, op, x, y, location);
  bool x_parts = kt_has_parts(s->c, x->type), y_parts = kt_has_parts(s->c, y->type);
  bool has_tuple = kt_is_tuple(s->c, x->type) || kt_is_tuple(s->c, y->type);
  kt_expr *of_tuples = has_tuple ? kt_make_tuple_binary(s, op, x, y, location) : NULL;
  if (of_tuples) return of_tuples;
  if (!x_parts) require_numbers(s, op, x);
  if (!y_parts) require_numbers(s, op, y);
  if (x_parts || y_parts) return kt_make_binary_parts(s, op, x, y, location);
  switch (KJ_AMONG(ki_op_table[op].class_)) {
  case KJ_OP_DIVIDE: return make_division(s, x, y, location);
  case KJ_OP_INT: return make_bits(s, op, x, y, location);
  case KJ_OP_SHIFT: return make_shift(s, op, x, y, location);
  case KJ_OP_POWER: return make_power(s, x, y, location);
  case KJ_OP_COMPARE: return make_compare(s, op, x, y, location);
  default: return make_arithmetic(s, op, promote(s, op, x, y, location), x, y, location);
  }
}

kt_expr *kt_make_binary(kt_scope *s, kjit_op op, kt_expr *x, kt_expr *y, kj_location location)
{
  kt_expr *made = s->has_numba_types ? kt_make_numba_binary(s, op, x, y, location) : NULL;
  return made ? made : kt_make_own_binary(s, op, x, y, location);
}

kt_expr *kt_make_condition(kt_scope *s, kt_expr *value)
{
  if (value->type == KJIT_BOOL) return value;
  bool is_python_number =
    s->has_numba_types && (kt_is_float(s->c, value->type) || kt_is_complex(s->c, value->type));
  if (is_python_number)
    return kt_make_binary(s, KJIT_OP_NE, value, kt_make_zero(s, value->type, value->location),
                          value->location);
  if (kt_is_integer(s->c, value->type))
    return make_compare(s, KJIT_OP_NE, value, kt_new_integer(s, KJ_WEAK_INT, 0, value->location),
                        value->location);
  if (s->has_numba_types && kt_is_tuple(s->c, value->type) && !kt_has_effect(value)) {
    bool has_items = ki_type(s->c->types, value->type)->count > 0;
    kt_drop_value(s, value);
    return kt_new_integer(s, KJIT_BOOL, has_items, value->location);
  }
  bool is_mask = kt_is_vector(s->c, value->type) && kt_part_type(s->c, value->type) == KJIT_BOOL;
  bool has_zero = kt_is_float(s->c, value->type) || kt_is_complex(s->c, value->type);
  const char *hint = is_mask    ? "; write `all(v)` or `any(v)`, or `select(v, x, y)`"
                     : has_zero ? "; write `!= 0`"
                                : "";
  kt_fail_number(s->c, value->location, value->type,
                 "a condition must be a bool or an integer, got %s%s",
                 kt_type_text(s->c, value->type), hint);
}

kt_expr *kt_make_own_unary(kt_scope *s, kjit_op op, kt_expr *x, kj_location location)
{
  if (kt_is_date(s, x->type)) return kt_make_date_unary(s, op, x, location);
  bool is_truth = op == KJIT_OP_NOT && s->has_numba_types && kt_is_complex(s->c, x->type);
  if (kt_has_parts(s->c, x->type) && !is_truth) return kt_make_unary_parts(s, op, x, location);
  if (op == KJIT_OP_NOT) x = kt_make_condition(s, x);
  require_numbers(s, op, x);
  if (op == KJIT_OP_INVERT) require_integers(s, op, x);
  if (op == KJIT_OP_INVERT && x->type == KJIT_BOOL)
    kt_fail(s->c, location, KJIT_ERROR_TYPE, "`~` needs an integer, got a bool; write `not`");
  if (op != KJIT_OP_NOT) x = kt_convert(s, x, ki_arithmetic_type(x->type), location);
  if (op == KJIT_OP_POS) return x;
  kt_expr *folded = kt_fold_unary(s, op, x, location);
  if (folded) return folded;
  kt_expr *expr = kt_new_texpr(s->c, KJ_T_UNARY, x->type, location);
  expr->op = op;
  expr->x = x;
  return expr;
}

kt_expr *kt_make_unary(kt_scope *s, kjit_op op, kt_expr *x, kj_location location)
{
  kt_expr *made = s->has_numba_types ? kt_make_numba_unary(s, op, x, location) : NULL;
  return made ? made : kt_make_own_unary(s, op, x, location);
}
