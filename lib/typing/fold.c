/* Arithmetic at compile time. Literals are exact (128-bit integers; f64 for floats); typed integers
 * wrap as they do at run time. What is not folded here is left to the backend: it only matters for
 * literals and for what must be known at compile time (extents, static conditions). */
#include <math.h>
#include <string.h>

#include "typing/infer.h"

static int width_of(const kj_compilation *c, kjit_type type)
{
  return (int)kj_type(c->types, type)->size_bytes * 8;
}

bool kj_integer_fits(const kj_compilation *c, kjit_type type, __int128 value)
{
  kj_type_class class_ = kj_class_of(c, type);
  int width = width_of(c, type);
  if (class_ == KJ_CLASS_BOOL) return value == 0 || value == 1;
  if (class_ == KJ_CLASS_UNSIGNED) return value >= 0 && value < (__int128)1 << width;
  return value >= -((__int128)1 << (width - 1)) && value < (__int128)1 << (width - 1);
}

__int128 kj_wrap_integer(const kj_compilation *c, kjit_type type, __int128 value)
{
  if (type == KJIT_BOOL) return value != 0;
  int width = width_of(c, type);
  unsigned __int128 mask = ((unsigned __int128)1 << width) - 1,
                    bits = (unsigned __int128)value & mask;
  bool is_negative = kj_class_of(c, type) == KJ_CLASS_SIGNED && (bits >> (width - 1) & 1);
  return is_negative ? (__int128)(bits | ~mask) : (__int128)bits;
}

/* To `bits` significant bits, ties to even; least: exponent of the smallest subnormal; most: the
 * largest finite value. */
static double round_to_bits(double value, int bits, int least, double most)
{
  if (value == 0 || !isfinite(value)) return value;
  int exponent;
  frexp(value, &exponent);
  int unit = exponent - bits > least ? exponent - bits : least;
  double rounded = ldexp(rint(ldexp(value, -unit)), unit);
  return fabs(rounded) > most ? copysign(INFINITY, value) : rounded;
}

double kj_round_number(kjit_type type, double value)
{
  switch (type) {
  case KJIT_F16: return round_to_bits(value, 11, -24, 65504.0);
  case KJIT_BF16: return round_to_bits(value, 8, -133, 0x1.fep127);
  case KJIT_F32: return (double)(float)value;
  default: return value;
  }
}

__int128 kj_truncate_number(const kj_compilation *c, kjit_type type, double value)
{
  int width = width_of(c, type);
  bool is_signed = kj_class_of(c, type) == KJ_CLASS_SIGNED;
  __int128 most = ((__int128)1 << (is_signed ? width - 1 : width)) - 1,
           least = is_signed ? -((__int128)1 << (width - 1)) : 0;
  if (isnan(value)) return 0;
  if (value >= (double)most) return most;
  if (value <= (double)least) return least;
  return (__int128)value;
}

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

static kj_texpr *new_bool(kj_scope *s, bool value, kj_location location)
{
  return kj_new_integer(s, KJIT_BOOL, value, location);
}

/* ---- integers ---- */

static __int128 divide_floor(__int128 x, __int128 y)
{
  if (y == 0) return 0;
  __int128 quotient = x / y;
  return x % y != 0 && (x < 0) != (y < 0) ? quotient - 1 : quotient;
}

static __int128 modulo_floor(__int128 x, __int128 y)
{
  return y == 0 ? 0 : x - divide_floor(x, y) * y;
}

static __int128 divide_up(__int128 x, __int128 y) { return y == 0 ? 0 : -divide_floor(-x, y); }

_Noreturn static void fail_too_large(kj_scope *s, kj_location location)
{
  kj_fail(s->c, location, KJIT_ERROR_TYPE,
          "this literal is too large: integer literals have the range of i64 and u64");
}

/* Literals may pass the range of every type on the way, but not of 100 bits: then shifts and
 * products below cannot overflow unseen. */
static kj_texpr *new_exact(kj_scope *s, __int128 value, bool is_overflow, kj_location location)
{
  const __int128 limit = (__int128)1 << 100;
  if (is_overflow || value > limit || value < -limit) fail_too_large(s, location);
  return kj_new_integer(s, KJ_WEAK_INT, value, location);
}

static kj_texpr *new_result(kj_scope *s, kjit_type type, __int128 value, bool is_overflow,
                            kj_location location)
{
  if (type == KJ_WEAK_INT) return new_exact(s, value, is_overflow, location);
  return kj_new_integer(s, type, kj_wrap_integer(s->c, type, value), location);
}

/* A shift count is taken modulo the width; of a literal it must be a sensible number. */
static int shift_count(kj_scope *s, kjit_type type, __int128 count, kj_location location)
{
  if (type != KJ_WEAK_INT)
    return (int)((unsigned __int128)count & (unsigned)(width_of(s->c, type) - 1));
  if (count < 0 || count > 100)
    kj_fail(s->c, location, KJIT_ERROR_TYPE, "a literal is shifted by 0 to 100 bits, not by %s",
            kj_integer_text(s->arena, count));
  return (int)count;
}

static kj_texpr *fold_shift(kj_scope *s, kjit_op op, const kj_texpr *x, const kj_texpr *y,
                            kj_location location)
{
  int count = shift_count(s, x->type, y->integer, location);
  if (op == KJIT_SHR) return new_result(s, x->type, x->integer >> count, false, location);
  __int128 shifted;
  bool is_overflow = __builtin_mul_overflow(x->integer, (__int128)1 << count, &shifted);
  if (is_overflow) shifted = (__int128)((unsigned __int128)x->integer << count);
  return new_result(s, x->type, shifted, is_overflow, location);
}

static kj_texpr *fold_power(kj_scope *s, const kj_texpr *x, const kj_texpr *y, kj_location location)
{
  __int128 base = x->integer, exponent = y->integer, result = 1;
  bool is_overflow = false;
  if (exponent < 0) {
    if (x->type == KJ_WEAK_INT)
      kj_fail(s->c, location, KJIT_ERROR_TYPE,
              "an integer to a negative power is not an integer; write a float: `%s.0 ** %s`",
              kj_integer_text(s->arena, base), kj_integer_text(s->arena, exponent));
    bool is_unit = base == 1 || base == -1;
    return kj_new_integer(s, x->type,
                          !is_unit                         ? 0
                          : base == 1 || exponent % 2 == 0 ? 1
                                                           : -1,
                          location);
  }
  while (exponent) {
    if (exponent & 1) {
      is_overflow |= __builtin_mul_overflow(result, base, &result);
      if (x->type != KJ_WEAK_INT) result = kj_wrap_integer(s->c, x->type, result);
    }
    exponent >>= 1;
    if (!exponent) break;
    is_overflow |= __builtin_mul_overflow(base, base, &base);
    if (x->type != KJ_WEAK_INT) base = kj_wrap_integer(s->c, x->type, base);
    else if (is_overflow) fail_too_large(s, location);
  }
  return new_result(s, x->type, result, is_overflow, location);
}

static kj_texpr *fold_integers(kj_scope *s, kjit_op op, const kj_texpr *x, const kj_texpr *y,
                               kj_location location)
{
  __int128 a = x->integer, b = y->integer, r = 0;
  bool is_overflow = false;
  switch (op) {
  case KJIT_ADD: is_overflow = __builtin_add_overflow(a, b, &r); break;
  case KJIT_SUB: is_overflow = __builtin_sub_overflow(a, b, &r); break;
  case KJIT_MUL:
    is_overflow = __builtin_mul_overflow(a, b, &r);
    if (is_overflow) r = (__int128)((unsigned __int128)a * (unsigned __int128)b);
    break;
  case KJIT_FLOORDIV: r = divide_floor(a, b); break;
  case KJIT_MOD: r = modulo_floor(a, b); break;
  case KJIT_BIT_AND: r = a & b; break;
  case KJIT_BIT_OR: r = a | b; break;
  case KJIT_BIT_XOR: r = a ^ b; break;
  default: return NULL;
  }
  return new_result(s, x->type, r, is_overflow, location);
}

/* ---- floats: literals only ---- */

static double floor_modulo(double x, double y)
{
  double rest = fmod(x, y);
  if (rest == 0) return copysign(0, y);
  return (rest < 0) != (y < 0) ? rest + y : rest;
}

/* As CPython's float //: the quotient is corrected by the remainder, so that it is exact where it
 * can be. */
static double floor_divide(double x, double y)
{
  if (y == 0) return x / y;
  double rest = floor_modulo(x, y), quotient = (x - rest) / y;
  if (quotient == 0) return copysign(0, x / y);
  double whole = floor(quotient);
  return quotient - whole > 0.5 ? whole + 1 : whole;
}

static kj_texpr *fold_floats(kj_scope *s, kjit_op op, double x, double y, kj_location location)
{
  switch (op) {
  case KJIT_ADD: return kj_new_number(s, KJ_WEAK_FLOAT, x + y, location);
  case KJIT_SUB: return kj_new_number(s, KJ_WEAK_FLOAT, x - y, location);
  case KJIT_MUL: return kj_new_number(s, KJ_WEAK_FLOAT, x * y, location);
  case KJIT_DIV: return kj_new_number(s, KJ_WEAK_FLOAT, x / y, location);
  case KJIT_FLOORDIV: return kj_new_number(s, KJ_WEAK_FLOAT, floor_divide(x, y), location);
  case KJIT_MOD: return kj_new_number(s, KJ_WEAK_FLOAT, floor_modulo(x, y), location);
  case KJIT_POW: return kj_new_number(s, KJ_WEAK_FLOAT, pow(x, y), location);
  default: return NULL;
  }
}

kj_texpr *kj_fold_binary(kj_scope *s, kjit_op op, const kj_texpr *x, const kj_texpr *y,
                         kj_location location)
{
  if (x->kind != KJ_T_CONST || y->kind != KJ_T_CONST) return NULL;
  if (x->type == KJ_WEAK_FLOAT && y->type == KJ_WEAK_FLOAT)
    return fold_floats(s, op, x->number, y->number, location);
  if (kj_is_float(s->c, x->type) || kj_is_float(s->c, y->type)) return NULL;
  if (op == KJIT_SHL || op == KJIT_SHR) return fold_shift(s, op, x, y, location);
  if (op == KJIT_POW) return fold_power(s, x, y, location);
  return fold_integers(s, op, x, y, location);
}

kj_texpr *kj_fold_unary(kj_scope *s, kjit_op op, const kj_texpr *x, kj_location location)
{
  if (x->kind != KJ_T_CONST) return NULL;
  if (op == KJIT_NOT) return x->type == KJIT_BOOL ? new_bool(s, !x->integer, location) : NULL;
  if (op == KJIT_NEG && kj_is_float(s->c, x->type))
    return kj_new_number(s, x->type, -x->number, location);
  if (kj_is_float(s->c, x->type)) return NULL;
  if (op == KJIT_NEG) return new_result(s, x->type, -x->integer, false, location);
  return new_result(s, x->type, x->type == KJIT_BOOL ? !x->integer : ~x->integer, false, location);
}

static bool compare(kjit_op op, int order, bool is_unordered)
{
  switch (op) {
  case KJIT_EQ: return !is_unordered && order == 0;
  case KJIT_NE: return is_unordered || order != 0;
  case KJIT_LT: return !is_unordered && order < 0;
  case KJIT_GT: return !is_unordered && order > 0;
  case KJIT_LE: return !is_unordered && order <= 0;
  default: return !is_unordered && order >= 0;
  }
}

kj_texpr *kj_fold_compare(kj_scope *s, kjit_op op, const kj_texpr *x, const kj_texpr *y,
                          kj_location location)
{
  if (x->kind != KJ_T_CONST || y->kind != KJ_T_CONST) return NULL;
  bool x_float = kj_is_float(s->c, x->type), y_float = kj_is_float(s->c, y->type);
  if (x_float != y_float) return NULL;
  if (!x_float)
    return new_bool(s, compare(op, x->integer < y->integer ? -1 : x->integer > y->integer, false),
                    location);
  double a = x->number, b = y->number;
  return new_bool(s, compare(op, a < b ? -1 : a > b, isnan(a) || isnan(b)), location);
}

/* ---- built-ins ---- */

static double reciprocal_root(double x) { return 1 / sqrt(x); }

static double power_of_ten(double x) { return pow(10, x); }

/* lgamma itself writes a global. */
static double log_gamma(double x)
{
  int sign;
  return lgamma_r(x, &sign);
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
  for (size_t i = 0; i < values->count && i < 3; i++) x[i] = values->items[i]->number;
  if (folds[id].one) return kj_new_number(s, KJ_WEAK_FLOAT, folds[id].one(x[0]), location);
  if (folds[id].two) return kj_new_number(s, KJ_WEAK_FLOAT, folds[id].two(x[0], x[1]), location);
  if (folds[id].three)
    return kj_new_number(s, KJ_WEAK_FLOAT, folds[id].three(x[0], x[1], x[2]), location);
  return NULL;
}

static kj_texpr *fold_integer_builtin(kj_scope *s, kj_builtin_id id, const kj_texprs *values,
                                      kj_location location)
{
  __int128 x = values->items[0]->integer, y = values->count > 1 ? values->items[1]->integer : 0;
  kjit_type type = values->items[0]->type;
  switch (id) {
  case KJ_BUILTIN_ABS: return new_result(s, type, x < 0 ? -x : x, false, location);
  case KJ_BUILTIN_MIN: return new_result(s, type, x < y ? x : y, false, location);
  case KJ_BUILTIN_MAX: return new_result(s, type, x > y ? x : y, false, location);
  case KJ_BUILTIN_CEIL_DIV: return new_result(s, type, divide_up(x, y), false, location);
  case KJ_BUILTIN_DIV_TRUNC: return new_result(s, type, y == 0 ? 0 : x / y, false, location);
  case KJ_BUILTIN_REM_TRUNC: return new_result(s, type, y == 0 ? 0 : x % y, false, location);
  default: return NULL;
  }
}

kj_texpr *kj_fold_builtin(kj_scope *s, const kj_builtin *builtin, const kj_texprs *values,
                          kj_location location)
{
  for (size_t i = 0; i < values->count; i++)
    if (values->items[i]->kind != KJ_T_CONST || values->items[i]->type != values->items[0]->type)
      return NULL;
  if (values->count == 0) return NULL;
  kjit_type type = values->items[0]->type;
  if (type == KJ_WEAK_FLOAT) return fold_math(s, builtin->id, values, location);
  return kj_is_integer(s->c, type) ? fold_integer_builtin(s, builtin->id, values, location) : NULL;
}
