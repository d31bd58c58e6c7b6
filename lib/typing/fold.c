/* What is computed at compile time: everything on integers, and floats that are literals; other
 * constants of float types are left to the backend, unless they are negated or compared. It only
 * matters for literals and for what must be known at compile time (extents, static conditions). */
#include <math.h>
#include <string.h>

#include "typing/infer.h"

const char *kj_integer_text(kj_arena *arena, __int128 value)
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

static kj_texpr *new_result(kj_scope *s, kj_outcome outcome, kj_value result, const kj_texpr *x,
                            const kj_texpr *y, kj_location location)
{
  switch (outcome) {
  case KJ_COMPUTED: return kj_new_value(s, result, location);
  case KJ_NOT_COMPUTED: return NULL;
  case KJ_TOO_LARGE:
    kj_fail(s->c, location, KJIT_ERROR_TYPE,
            "this literal is too large: integer literals have the range of i64 and u64");
  case KJ_SHIFTED_TOO_FAR:
    kj_fail(s->c, location, KJIT_ERROR_TYPE, "a literal is shifted by 0 to 100 bits, not by %s",
            kj_integer_text(s->arena, y->integer));
  case KJ_NEGATIVE_EXPONENT:
    kj_fail(s->c, location, KJIT_ERROR_TYPE,
            "an integer to a negative power is not an integer; write a float: `%s.0 ** %s`",
            kj_integer_text(s->arena, x->integer), kj_integer_text(s->arena, y->integer));
  }
  return NULL;
}

kj_texpr *kj_fold_binary(kj_scope *s, kjit_op op, const kj_texpr *x, const kj_texpr *y,
                         kj_location location)
{
  if (x->kind != KJ_T_CONST || y->kind != KJ_T_CONST) return NULL;
  kj_value result = { 0 };
  bool is_typed_float = kj_is_floating(x->type) && x->type != KJ_WEAK_FLOAT;
  if (is_typed_float) return NULL;
  kj_outcome outcome = kj_compute_binary(op, kj_value_of(x), kj_value_of(y), &result);
  return new_result(s, outcome, result, x, y, location);
}

kj_texpr *kj_fold_unary(kj_scope *s, kjit_op op, const kj_texpr *x, kj_location location)
{
  if (x->kind != KJ_T_CONST) return NULL;
  kj_value result = { 0 };
  kj_outcome outcome = kj_compute_unary(op, kj_value_of(x), &result);
  return new_result(s, outcome, result, x, NULL, location);
}

kj_texpr *kj_fold_compare(kj_scope *s, kjit_op op, const kj_texpr *x, const kj_texpr *y,
                          kj_location location)
{
  if (x->kind != KJ_T_CONST || y->kind != KJ_T_CONST) return NULL;
  if (kj_is_floating(x->type) != kj_is_floating(y->type)) return NULL;
  bool holds = kj_compute_comparison(op, kj_value_of(x), kj_value_of(y));
  return kj_new_integer(s, KJIT_BOOL, holds, location);
}

/* ---- built-ins ---- */

static double reciprocal_root(double x) { return 1 / sqrt(x); }

/* lgamma itself writes a global. */
static double log_gamma(double x)
{
  int sign;
  return lgamma_r(x, &sign);
}

/* The difference where it is positive; infinities that are equal have none. */
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

static kj_texpr *fold_math(kj_scope *s, kj_builtin_id id, const kj_texprs *values,
                           kj_location location)
{
  double x[3] = { 0 };
  for (size_t i = 0; i < values->count && i < 3; i++)
    x[i] = kj_number_of(kj_value_of(values->items[i]));
  if (folds[id].one) return kj_new_number(s, KJ_WEAK_FLOAT, folds[id].one(x[0]), location);
  if (folds[id].two) return kj_new_number(s, KJ_WEAK_FLOAT, folds[id].two(x[0], x[1]), location);
  if (folds[id].three)
    return kj_new_number(s, KJ_WEAK_FLOAT, folds[id].three(x[0], x[1], x[2]), location);
  return NULL;
}

kj_texpr *kj_fold_builtin(kj_scope *s, const kj_builtin *builtin, const kj_texprs *values,
                          kj_location location)
{
  for (size_t i = 0; i < values->count; i++)
    if (values->items[i]->kind != KJ_T_CONST || values->items[i]->type != values->items[0]->type)
      return NULL;
  if (values->count == 0 || values->count > 3) return NULL;
  kjit_type type = values->items[0]->type;
  if (kj_is_floating(type) && type != KJ_WEAK_FLOAT) return NULL;
  kj_value operands[3] = { 0 }, result = { 0 };
  for (size_t i = 0; i < values->count; i++) operands[i] = kj_value_of(values->items[i]);
  kj_outcome outcome = kj_compute_builtin(builtin->id, operands, values->count, &result);
  if (outcome == KJ_NOT_COMPUTED && type == KJ_WEAK_FLOAT)
    return fold_math(s, builtin->id, values, location);
  return new_result(s, outcome, result, NULL, NULL, location);
}
