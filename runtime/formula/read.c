/* Translates the tree of a formula bottom-up: for each operator, adds a statement to the func that
 * computes a row. Operations on literals are evaluated here and need no statement. */
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "formula/formula.h"

_Noreturn void kf_fail(kf_writer *w, kj_location location, kjit_status status, const char *format,
                       ...)
{
  va_list list;
  va_start(list, format);
  kj_report_list(w->diagnostics, &w->source->sources, location, KJIT_SEVERITY_ERROR, status, format,
                 list);
  va_end(list);
  longjmp(*w->arena->on_failure, KJ_JUMP_ERROR);
}

/* ---- literals ---- */

static double literal_number(const kf_value *x)
{
  return x->type == KJ_WEAK_INT ? (double)x->integer : x->number;
}

static __int128 floor_divide(__int128 x, __int128 y)
{
  __int128 quotient = x / y;
  return quotient * y != x && (x < 0) != (y < 0) ? quotient - 1 : quotient;
}

/* Computes a power of integers. Returns false only for results that do not fit 64 bits, but not for
 * all of them; the caller checks the result. */
static bool compute_power(__int128 base, __int128 exponent, __int128 *result)
{
  *result = 1;
  if (base == 0 || base == 1) *result = exponent == 0 ? 1 : base;
  else if (base == -1) *result = exponent % 2 == 0 ? 1 : -1;
  else if (exponent > 64) return false;
  else
    for (; exponent > 0; exponent--)
      if (__builtin_mul_overflow(*result, base, result)) return false;
  return true;
}

/* Evaluates an operation on two integer literals whose result is an integer. */
static bool fold_integers(kf_writer *w, kjit_op op, __int128 x, __int128 y, __int128 *result,
                          kj_location location)
{
  bool is_done = true;
  switch (KJ_AMONG(op)) {
  case KJIT_OP_ADD: *result = x + y; break;
  case KJIT_OP_SUB: *result = x - y; break;
  case KJIT_OP_MUL: is_done = !__builtin_mul_overflow(x, y, result); break;
  case KJIT_OP_FLOORDIV: *result = y ? floor_divide(x, y) : 0; break;
  case KJIT_OP_MOD: *result = y ? x - floor_divide(x, y) * y : 0; break;
  case KJIT_OP_POW:
    if (y < 0) return false;
    is_done = compute_power(x, y, result);
    break;
  default: return false;
  }
  if (!is_done || *result > UINT64_MAX || *result < INT64_MIN)
    kf_fail(w, location, KJIT_ERROR_TYPE, "the result of these integers has more than 64 bits");
  return true;
}

static bool fold_numbers(kjit_op op, double x, double y, double *result)
{
  switch (KJ_AMONG(op)) {
  case KJIT_OP_ADD: *result = x + y; return true;
  case KJIT_OP_SUB: *result = x - y; return true;
  case KJIT_OP_MUL: *result = x * y; return true;
  case KJIT_OP_DIV: *result = x / y; return true;
  case KJIT_OP_POW: *result = pow(x, y); return true;
  default: return false;
  }
}

static bool fold(kf_writer *w, kjit_op op, const kf_value *x, const kf_value *y, kf_value *result,
                 kj_location location)
{
  if (!ki_is_weak(x->type) || !ki_is_weak(y->type)) return false;
  *result = (kf_value){ .type = KJ_WEAK_INT };
  bool is_integer = x->type == KJ_WEAK_INT && y->type == KJ_WEAK_INT;
  if (is_integer && fold_integers(w, op, x->integer, y->integer, &result->integer, location))
    return true;
  result->type = KJ_WEAK_FLOAT;
  return fold_numbers(op, literal_number(x), literal_number(y), &result->number);
}

/* ---- operators ---- */

static _Noreturn void refuse_types(kf_writer *w, kjit_op op, const kf_value *x, const kf_value *y,
                                   kj_location location, const char *hint)
{
  kf_fail(w, location, KJIT_ERROR_TYPE, "`%s` of %s and %s%s", ki_op_table[op].text,
          kf_type_name(w, x), kf_type_name(w, y), hint);
}

/* Converts both operands to a type and applies the operator. */
static kf_value combine(kf_writer *w, kjit_op op, const kf_value *x, const kf_value *y,
                        kjit_type type, kjit_type result)
{
  const char *text = kj_format(w->arena, "%s %s %s", kf_convert(w, x, type), ki_op_table[op].text,
                               kf_convert(w, y, type));
  return kf_let(w, result, kf_join(w, x->valid, y->valid), text);
}

static kjit_type common_number(kf_writer *w, kjit_op op, const kf_value *x, const kf_value *y,
                               kj_location location)
{
  if (x->type == KJIT_BOOL && y->type == KJIT_BOOL)
    refuse_types(w, op, x, y, location, "; use `&`, `|` or `^`, or int32(x) to count");
  kjit_type type = kf_find_common_type(x, y);
  if (type == KJIT_ANY)
    refuse_types(w, op, x, y, location,
                 ", which does not fit; convert with int64(x) or float64(x)");
  return type;
}

/* Replaces the divisor in rows that are null, so that a divisor of 0 in such a row does not cause
 * an error. */
static kf_value guard_divisor(kf_writer *w, const kf_value *x, kf_value y, kjit_type type)
{
  kf_conditions valid = kf_join(w, x->valid, y.valid);
  if (!w->checks_division || !valid.count) return y;
  const char *condition = kf_condition_text(w, valid), *divisor = kf_convert(w, &y, type);
  const char *name = ki_type(w->context->types, type)->name;
  return kf_let(w, type, valid,
                kj_format(w->arena, "select(%s, %s, %s(1))", condition, divisor, name));
}

static kf_value divide(kf_writer *w, kjit_op op, const kf_value *x, kf_value y,
                       kj_location location)
{
  kjit_type type = common_number(w, op, x, &y, location);
  if (op == KJIT_OP_DIV && !kf_is_float(type)) type = KJIT_F64;
  y = guard_divisor(w, x, y, type);
  if (op != KJIT_OP_FLOORDIV || !kf_is_float(type)) return combine(w, op, x, &y, type, type);
  const char *text = kj_format(w->arena, "formula_floor_divide(%s, %s)", kf_convert(w, x, type),
                               kf_convert(w, &y, type));
  return kf_let(w, type, kf_join(w, x->valid, y.valid), text);
}

/* Replaces a power with a small integer exponent by multiplications. */
static kf_value raise(kf_writer *w, const kf_value *x, const kf_value *y, kj_location location)
{
  kjit_type type = common_number(w, KJIT_OP_POW, x, y, location);
  bool is_literal = y->type == KJ_WEAK_INT && y->integer >= INT32_MIN && y->integer <= INT32_MAX;
  if (is_literal && y->integer < 0 && !kf_is_float(type)) type = KJIT_F64;
  if (!is_literal) return combine(w, KJIT_OP_POW, x, y, type, type);
  const char *text = kj_format(w->arena, "(%s) ** %s%d", kf_convert(w, x, type),
                               y->integer < 0 ? "-" : "", abs((int)y->integer));
  return kf_let(w, type, kf_join(w, x->valid, y->valid), text);
}

/* Compares integers of any types exactly. */
static kf_value compare(kf_writer *w, kjit_op op, const kf_value *x, const kf_value *y,
                        kj_location location)
{
  bool is_equality = op == KJIT_OP_EQ || op == KJIT_OP_NE;
  if (is_equality && x->type == KJIT_BOOL && y->type == KJIT_BOOL)
    return combine(w, op, x, y, KJIT_BOOL, KJIT_BOOL);
  kjit_type a = kf_own_type(x), b = kf_own_type(y), type = KJIT_I32;
  if (kf_is_integer(a) && kf_is_integer(b)) {
    const char *text = kj_format(w->arena, "%s %s %s", kf_convert(w, x, a), ki_op_table[op].text,
                                 kf_convert(w, y, b));
    return kf_let(w, KJIT_BOOL, kf_join(w, x->valid, y->valid), text);
  }
  if (x->type != KJIT_BOOL || y->type != KJIT_BOOL) type = kf_find_common_type(x, y);
  if (type == KJIT_ANY) refuse_types(w, op, x, y, location, "");
  return combine(w, op, x, y, type, KJIT_BOOL);
}

/* Implements three-valued logic: false and null is false, true or null is true, and any other
 * operation with null is null. */
static kf_value combine_logic(kf_writer *w, bool is_and, const kf_value *x, const kf_value *y)
{
  const char *a = kf_convert(w, x, KJIT_BOOL), *b = kf_convert(w, y, KJIT_BOOL);
  const char *text = kj_format(w->arena, "%s %s %s", a, is_and ? "&" : "|", b);
  kf_conditions valid = kf_join(w, x->valid, y->valid);
  if (valid.count) {
    const char *left = kf_condition_text(w, x->valid), *right = kf_condition_text(w, y->valid);
    const char *decides = is_and ? "not " : "";
    valid = kf_let_condition(w, kj_format(w->arena, "(%s & %s) | (%s & (%s%s)) | (%s & (%s%s))",
                                          left, right, left, decides, a, right, decides, b));
  }
  return kf_let(w, KJIT_BOOL, valid, text);
}

static bool is_bool(const kf_value *x) { return x->type == KJIT_BOOL || x->type == KJIT_ANY; }

static kf_value apply_bits(kf_writer *w, kjit_op op, const kf_value *x, const kf_value *y,
                           kj_location location)
{
  if (is_bool(x) && is_bool(y) && (x->type == KJIT_BOOL || y->type == KJIT_BOOL)) {
    if (op == KJIT_OP_BIT_XOR) return combine(w, op, x, y, KJIT_BOOL, KJIT_BOOL);
    return combine_logic(w, op == KJIT_OP_BIT_AND, x, y);
  }
  kjit_type type = kf_find_common_type(x, y);
  bool has_bool = x->type == KJIT_BOOL || y->type == KJIT_BOOL;
  if (has_bool || !kf_is_integer(type))
    refuse_types(w, op, x, y, location, "; it takes two bools or two integers");
  return combine(w, op, x, y, type, type);
}

static kf_value apply_logic(kf_writer *w, kjit_op op, const kf_value *x, const kf_value *y,
                            kj_location location)
{
  if (!is_bool(x) || !is_bool(y))
    refuse_types(w, op, x, y, location, "; it takes bools, such as comparisons");
  return combine_logic(w, op == KJIT_OP_AND, x, y);
}

/* Implements NumPy's shifts: a negative count, or a count of at least the number of bits, shifts
 * all bits out. */
static kf_value shift(kf_writer *w, kjit_op op, const kf_value *x, const kf_value *y,
                      kj_location location)
{
  kjit_type type = kf_find_common_type(x, x);
  if (!kf_is_integer(type) || x->type == KJIT_BOOL || y->type == KJIT_BOOL ||
      !kf_is_integer(kf_own_type(y)))
    refuse_types(w, op, x, y, location, "; it takes two integers");
  const char *text =
    kj_format(w->arena, "formula_shift_%s(%s, %s, %u)", op == KJIT_OP_SHL ? "left" : "right",
              kf_convert(w, x, type), kf_convert(w, y, KJIT_I64),
              8 * (unsigned)ki_type(w->context->types, type)->size_bytes);
  return kf_let(w, type, kf_join(w, x->valid, y->valid), text);
}

kf_value kf_apply(kf_writer *w, kjit_op op, kf_value x, kf_value y, kj_location location)
{
  kf_value folded;
  w->location = location;
  if (x.kind == KF_TEXT || y.kind == KF_TEXT) return kf_apply_texts(w, op, x, y, location);
  if (x.kind != KF_PLAIN || y.kind != KF_PLAIN) return kf_apply_dates(w, op, x, y, location);
  if (fold(w, op, &x, &y, &folded, location)) return folded;
  if (x.type == KJIT_ANY && y.type == KJIT_ANY) return x;
  switch (KJ_AMONG(op)) {
  case KJIT_OP_AND:
  case KJIT_OP_OR: return apply_logic(w, op, &x, &y, location);
  case KJIT_OP_BIT_AND:
  case KJIT_OP_BIT_OR:
  case KJIT_OP_BIT_XOR: return apply_bits(w, op, &x, &y, location);
  case KJIT_OP_SHL:
  case KJIT_OP_SHR: return shift(w, op, &x, &y, location);
  case KJIT_OP_DIV:
  case KJIT_OP_FLOORDIV:
  case KJIT_OP_MOD: return divide(w, op, &x, y, location);
  case KJIT_OP_POW: return raise(w, &x, &y, location);
  default: break;
  }
  if (ki_op_table[op].class_ == KJ_OP_COMPARE) return compare(w, op, &x, &y, location);
  kjit_type type = common_number(w, op, &x, &y, location);
  return combine(w, op, &x, &y, type, type);
}

static kf_value negate(kf_writer *w, kf_value x, kj_location location)
{
  if (x.type == KJ_WEAK_INT && x.integer <= -(__int128)INT64_MIN) x.integer = -x.integer;
  else if (x.type == KJ_WEAK_FLOAT) x.number = -x.number;
  else if (x.type == KJIT_BOOL || x.type == KJIT_U64 || x.type == KJ_WEAK_INT)
    kf_fail(w, location, KJIT_ERROR_TYPE,
            "`-` cannot be applied to %s; convert with int64(x) or float64(x)",
            kf_type_name(w, &x));
  else if (x.type != KJIT_ANY) {
    kjit_type type = kf_find_common_type(&x, &x);
    return kf_let(w, type, x.valid, kj_format(w->arena, "-(%s)", kf_convert(w, &x, type)));
  }
  return x;
}

static kf_value apply_unary(kf_writer *w, kjit_op op, kf_value x, kj_location location)
{
  w->location = location;
  if (x.kind != KF_PLAIN && x.kind != KF_TEXT && op == KJIT_OP_NEG)
    return kf_negate_date(w, x, location);
  if (x.kind != KF_PLAIN)
    kf_fail(w, location, KJIT_ERROR_TYPE, "`%s` of %s", ki_op_table[op].text, kf_type_name(w, &x));
  if (op == KJIT_OP_NEG) return negate(w, x, location);
  if (x.type == KJIT_ANY) return x;
  if (op == KJIT_OP_POS && x.type != KJIT_BOOL) return x;
  if (op == KJIT_OP_INVERT && kf_is_integer(kf_own_type(&x))) {
    kf_value same = x;
    kjit_type type = ki_is_weak(x.type) ? KJIT_I64 : kf_find_common_type(&x, &same);
    return kf_let(w, type, x.valid, kj_format(w->arena, "~(%s)", kf_convert(w, &x, type)));
  }
  if (op == KJIT_OP_POS || x.type != KJIT_BOOL)
    kf_fail(w, location, KJIT_ERROR_TYPE, "`%s` of %s%s", ki_op_table[op].text, kf_type_name(w, &x),
            op == KJIT_OP_NOT ? "; it takes a bool, such as a comparison" : "");
  return kf_let(w, KJIT_BOOL, x.valid, kj_format(w->arena, "not %s", x.text));
}

/* ---- nodes ---- */

static kf_value read_column(kf_writer *w, const ki_decl *decl)
{
  const uint32_t number = decl->index;
  kf_value value = { .type = w->columns[number].type, .text = kj_format(w->arena, "c%u", number) };
  (void)kf_read_date_flags(w->columns[number].flags, &value.kind, &value.unit);
  if (w->columns[number].flags & KJIT_COLUMN_TEXT) {
    value.kind = KF_TEXT;
    value.texts = &w->texts[number];
    value.own_count = value.texts->count;
  }
  w->is_used[number] = true;
  if (!w->with_nulls || !(w->columns[number].flags & KJIT_COLUMN_NULLABLE)) return value;
  uint32_t *item = KJ_NEW(w->arena, uint32_t);
  *item = number;
  value.valid = (kf_conditions){ item, 1 };
  return value;
}

static kf_value read_literal(kf_writer *w, const ki_expr *expr)
{
  if (expr->type == KJ_WEAK_INT) return (kf_value){ .type = KJ_WEAK_INT, .integer = expr->integer };
  if (expr->type == KJ_WEAK_FLOAT)
    return (kf_value){ .type = KJ_WEAK_FLOAT, .number = expr->number };
  kf_value value = { .type = expr->kind == KJ_EXPR_INT ? KJ_WEAK_INT : KJ_WEAK_FLOAT,
                     .integer = expr->integer,
                     .number = expr->number };
  if (expr->kind == KJ_EXPR_INT && kf_is_float(expr->type)) {
    value.type = KJ_WEAK_FLOAT;
    value.number = (double)expr->integer;
  }
  value.text = kf_convert(w, &value, expr->type);
  value.type = expr->type;
  return value;
}

void kf_count_operations(kf_writer *w, uint32_t count, kj_location location)
{
  w->operation_count += count;
  if (w->operation_count > w->operation_limit)
    kf_fail(w, location, KJIT_ERROR_LIMIT,
            "the formula has more than %u operators, calls and values of `in`", w->operation_limit);
}

kf_value kf_read(kf_writer *w, const ki_expr *expr)
{
  const char *what = "tuples";
  switch (KJ_AMONG(expr->kind)) {
  case KJ_EXPR_DECL: return read_column(w, expr->decl);
  case KJ_EXPR_NAME: return kf_read_name(w, expr);
  case KJ_EXPR_INT:
  case KJ_EXPR_FLOAT: return read_literal(w, expr);
  case KJ_EXPR_BOOL: return kf_bool(expr->integer != 0);
  case KJ_EXPR_UNARY: {
    kf_count_operations(w, 1, expr->location);
    kf_value x = kf_read(w, expr->x);
    return apply_unary(w, expr->op, x, expr->location);
  }
  case KJ_EXPR_BINARY: {
    kf_count_operations(w, 1, expr->location);
    kf_value x = kf_read(w, expr->x), y = kf_read(w, expr->y);
    return kf_apply(w, expr->op, x, y, expr->location);
  }
  case KJ_EXPR_CALL: kf_count_operations(w, 1, expr->location); return kf_call(w, expr);
  case KJ_EXPR_STRING:
    return (kf_value){ .type = KJ_WEAK_INT, .kind = KF_STRING, .text = expr->name };
  case KJ_EXPR_INDEX: what = "indices"; break;
  case KJ_EXPR_FIELD: what = "attributes"; break;
  case KJ_EXPR_COND: what = "`? :`; write `where(c, a, b)`"; break;
  case KJ_EXPR_TYPE: what = "types"; break;
  default: break;
  }
  kf_fail(w, expr->location, KJIT_ERROR_SYNTAX, "a formula has no %s", what);
}
