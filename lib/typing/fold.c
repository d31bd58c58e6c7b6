/* Constant folding of operations on integers and on float literals, and of negations and
 * comparisons of any float constants. LLVM folds all other operations on float constants. Inference
 * must fold literals, and the values that it needs at compile time, such as extents and static
 * conditions. */
#include <math.h>
#include <string.h>

#include "typing/values.h"

const char *kt_integer_text(kj_arena *arena, __int128 value)
{
  char digits[48];
  size_t at = sizeof digits;
  unsigned __int128 rest = value < 0 ? -(unsigned __int128)value : (unsigned __int128)value;
  do {
    digits[--at] = (char)('0' + (int)(rest % 10));
    rest /= 10;
  } while (rest);
  if (value < 0) digits[--at] = '-';
  return kj_copy_string(arena, digits + at, sizeof digits - at);
}

/* ---- operators ---- */

static kt_expr *new_result(kt_scope *s, ki_outcome outcome, ki_value result, const kt_expr *x,
                           const kt_expr *y, kj_location location)
{
  KJ_ASSERT(outcome != KJ_SHIFTED_TOO_FAR || y);
  KJ_ASSERT(outcome != KJ_NEGATIVE_EXPONENT || (x && y));
  switch (outcome) {
  case KJ_COMPUTED: return kt_new_value(s, result, location);
  case KJ_NOT_COMPUTED: return NULL;
  case KJ_TOO_LARGE:
    kt_fail(s->c, location, KJIT_ERROR_TYPE,
            "this integer literal is too large: an integer literal must fit in i64 or u64");
  case KJ_SHIFTED_TOO_FAR:
    kt_fail(s->c, location, KJIT_ERROR_TYPE, "a literal can be shifted by 0 to 100 bits, not by %s",
            kt_integer_text(s->arena, y->integer));
  case KJ_NEGATIVE_EXPONENT:
    kt_fail(s->c, location, KJIT_ERROR_TYPE,
            "the result of a negative power of an integer is not an integer; write a float base: "
            "`%s.0 ** %s`",
            kt_integer_text(s->arena, x->integer), kt_integer_text(s->arena, y->integer));
  }
  return NULL;
}

/* Returns whether the division has the divisor 0 and is checked. Such a division is not folded, so
 * that its check fails at run time. A division of weak constants is always folded; if its divisor
 * is 0, the quotient is 0. */
static bool is_checked_division(const kt_scope *s, const kt_expr *divisor)
{
  return !ki_is_weak(divisor->type) && kt_checks_divisor(s->c, divisor->type) &&
         !ki_is_true(kt_value_of(divisor));
}

kt_expr *kt_fold_binary(kt_scope *s, kjit_op op, const kt_expr *x, const kt_expr *y,
                        kj_location location)
{
  if (x->kind != KJ_T_CONST || y->kind != KJ_T_CONST) return NULL;
  ki_value result = { 0 };
  bool is_typed_float = ki_is_floating(x->type) && x->type != KJ_WEAK_FLOAT;
  if (is_typed_float || (kt_is_division(op) && is_checked_division(s, y))) return NULL;
  ki_outcome outcome = ki_compute_binary(op, kt_value_of(x), kt_value_of(y), &result);
  return new_result(s, outcome, result, x, y, location);
}

kt_expr *kt_fold_unary(kt_scope *s, kjit_op op, const kt_expr *x, kj_location location)
{
  if (x->kind != KJ_T_CONST) return NULL;
  ki_value result = { 0 };
  ki_outcome outcome = ki_compute_unary(op, kt_value_of(x), &result);
  return new_result(s, outcome, result, x, NULL, location);
}

kt_expr *kt_fold_compare(kt_scope *s, kjit_op op, const kt_expr *x, const kt_expr *y,
                         kj_location location)
{
  if (x->kind != KJ_T_CONST || y->kind != KJ_T_CONST) return NULL;
  if (ki_is_floating(x->type) != ki_is_floating(y->type)) return NULL;
  bool holds = ki_compute_comparison(op, kt_value_of(x), kt_value_of(y));
  return kt_new_integer(s, KJIT_BOOL, holds, location);
}

/* ---- built-ins ---- */

static double reciprocal_root(double x) { return 1 / sqrt(x); }

/* lgamma writes a global variable; lgamma_r does not. */
static double log_gamma(double x)
{
  int sign;
  return lgamma_r(x, &sign);
}

static double quotient(double x, double y) { return x / y; }

/* Returns x - y if it is positive, otherwise 0. For two equal infinities it returns 0. */
static double positive_difference(double x, double y)
{
  return isnan(x) || isnan(y) ? x + y : x > y ? x - y : 0;
}

#define NONE \
  { \
    0 \
  }
#define ONE(f) \
  { \
    .one = (f) \
  }
#define TWO(f) \
  { \
    .two = (f) \
  }
#define THREE(f) \
  { \
    .three = (f) \
  }
static const struct {
  double (*one)(double);
  double (*two)(double, double);
  double (*three)(double, double, double);
} folds[KJ_BUILTIN_COUNT] = {
#define EXACT(id, fold, ...) [KJ_BUILTIN_##id] = fold,
#define MATH(id, fold, ...) [KJ_BUILTIN_##id] = fold,
#define COMPLEX(...)
#include "ir/math.def"
#undef EXACT
#undef MATH
#undef COMPLEX
};

static kt_expr *fold_math(kt_scope *s, ki_builtin_id id, const kt_exprs *values,
                          kj_location location)
{
  double x[3] = { 0 };
  for (size_t i = 0; i < values->count && i < 3; i++)
    x[i] = ki_number_of(kt_value_of(values->items[i]));
  if (folds[id].one) return kt_new_number(s, KJ_WEAK_FLOAT, folds[id].one(x[0]), location);
  if (folds[id].two) return kt_new_number(s, KJ_WEAK_FLOAT, folds[id].two(x[0], x[1]), location);
  if (folds[id].three)
    return kt_new_number(s, KJ_WEAK_FLOAT, folds[id].three(x[0], x[1], x[2]), location);
  return NULL;
}

kt_expr *kt_fold_builtin(kt_scope *s, const ki_builtin *builtin, const kt_exprs *values,
                         kj_location location)
{
  for (size_t i = 0; i < values->count; i++)
    if (values->items[i]->kind != KJ_T_CONST || values->items[i]->type != values->items[0]->type)
      return NULL;
  if (values->count == 0 || values->count > 3) return NULL;
  kjit_type type = values->items[0]->type;
  if (ki_is_floating(type) && type != KJ_WEAK_FLOAT) return NULL;
  if (kt_is_division_builtin(builtin->id) && is_checked_division(s, values->items[1])) return NULL;
  ki_value operands[3] = { 0 }, result = { 0 };
  for (size_t i = 0; i < values->count; i++) operands[i] = kt_value_of(values->items[i]);
  ki_outcome outcome = ki_compute_builtin(builtin->id, operands, values->count, &result);
  if (outcome == KJ_NOT_COMPUTED && type == KJ_WEAK_FLOAT)
    return fold_math(s, builtin->id, values, location);
  return new_result(s, outcome, result, NULL, NULL, location);
}
