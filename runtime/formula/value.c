/* Operations on a formula's values: common types, conversions, and conditions for null. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "formula/formula.h"
#include "support/decimal.h"

/* ---- types ---- */

const char *kf_type_name(const kf_writer *w, const kf_value *value)
{
  if (value->kind != KF_PLAIN) return kf_date_name(w, value);
  if (value->type == KJIT_ANY) return "null";
  if (value->type == KJ_WEAK_INT) return "an integer literal";
  if (value->type == KJ_WEAK_FLOAT) return "a float literal";
  return ki_type(w->context->types, value->type)->name;
}

/* Widens small integers to i32 and u32 to i64, as numexpr does, so that sums of a few values do not
 * overflow and differences may be negative. */
static kjit_type widen(kjit_type type)
{
  if (type == KJIT_U32) return KJIT_I64;
  return type == KJIT_BOOL || (type >= KJIT_I8 && type <= KJIT_I32) || kf_is_unsigned(type)
           ? (type == KJIT_U64 ? KJIT_U64 : KJIT_I32)
           : type;
}

static bool fits(__int128 integer, kjit_type type)
{
  if (type == KJIT_U64) return integer >= 0 && integer <= UINT64_MAX;
  if (type == KJIT_BOOL) return integer == 0 || integer == 1;
  static const int bits[KJIT_SCALAR_COUNT] = {
    [KJIT_I8] = 7, [KJIT_I16] = 15, [KJIT_I32] = 31, [KJIT_I64] = 63,
    [KJIT_U8] = 8, [KJIT_U16] = 16, [KJIT_U32] = 32
  };
  __int128 limit = (__int128)1 << bits[type];
  return integer < limit && integer >= (kf_is_unsigned(type) ? 0 : -limit);
}

static bool is_never_negative(kjit_type type) { return type == KJIT_BOOL || kf_is_unsigned(type); }

static kjit_type common_integer(kjit_type x, kjit_type y)
{
  kjit_type a = widen(x), b = widen(y);
  if (a == b) return a;
  if (a != KJIT_U64 && b != KJIT_U64) return KJIT_I64;
  return is_never_negative(x) && is_never_negative(y) ? KJIT_U64 : KJIT_F64;
}

static kjit_type common_float(kjit_type x, kjit_type y)
{
  if (x == y) return x;
  if (x == KJIT_F64 || y == KJIT_F64) return KJIT_F64;
  return KJIT_F32;
}

/* Returns the common type of an integer and a float: the float type if it represents all values of
 * the integer type. */
static kjit_type common_mixed(kjit_type integer, kjit_type real)
{
  switch (KJ_AMONG(integer)) {
  case KJIT_BOOL:
  case KJIT_I8:
  case KJIT_U8: return real == KJIT_BF16 ? KJIT_F32 : real;
  case KJIT_I16:
  case KJIT_U16: return real == KJIT_F64 ? KJIT_F64 : KJIT_F32;
  default: return KJIT_F64;
  }
}

/* Returns the common type of a literal and a value of another type: the other type, widened to at
 * least i32, if it can represent the literal. */
static kjit_type common_with_literal(const kf_value *literal, kjit_type type)
{
  if (literal->type == KJ_WEAK_INT) {
    if (kf_is_float(type)) return type;
    type = widen(type);
    if (fits(literal->integer, type)) return type;
    if (type == KJIT_U64) return KJIT_ANY;
    return fits(literal->integer, KJIT_I64) ? KJIT_I64 : KJIT_F64;
  }
  if (!kf_is_float(type)) return KJIT_F64;
  double magnitude = fabs(literal->number);
  double most = type == KJIT_F16 ? 65504 : FLT_MAX;
  return type != KJIT_F64 && isfinite(magnitude) && magnitude > most ? KJIT_F64 : type;
}

kjit_type kf_own_type(const kf_value *x)
{
  if (x->type == KJ_WEAK_FLOAT) return KJIT_F64;
  if (x->type != KJ_WEAK_INT) return x->type;
  return fits(x->integer, KJIT_I64) ? KJIT_I64 : KJIT_U64;
}

kjit_type kf_find_common_type(const kf_value *x, const kf_value *y)
{
  kjit_type a = x->type, b = y->type;
  if (ki_is_weak(a) && ki_is_weak(b)) {
    a = kf_own_type(x);
    b = kf_own_type(y);
  } else if (ki_is_weak(a)) return common_with_literal(x, b);
  else if (ki_is_weak(b)) return common_with_literal(y, a);
  if (a == KJIT_ANY) return widen(b);
  if (b == KJIT_ANY) return widen(a);
  if (kf_is_float(a) && kf_is_float(b)) return common_float(a, b);
  if (kf_is_float(a)) return common_mixed(b, a);
  if (kf_is_float(b)) return common_mixed(a, b);
  return common_integer(a, b);
}

kjit_type kf_find_joined_type(const kf_value *x, const kf_value *y)
{
  if (x->type == KJIT_ANY) return kf_own_type(y);
  if (y->type == KJIT_ANY || x->type == y->type) return kf_own_type(x);
  if (x->type == KJ_WEAK_INT && kf_is_integer(y->type) && fits(x->integer, y->type)) return y->type;
  if (y->type == KJ_WEAK_INT && kf_is_integer(x->type) && fits(y->integer, x->type)) return x->type;
  return kf_find_common_type(x, y);
}

/* ---- text ---- */

static const char *integer_text(kj_arena *arena, __int128 integer)
{
  bool is_negative = integer < 0;
  uint64_t magnitude = (uint64_t)(is_negative ? -integer : integer);
  return kj_format(arena, "%s%llu", is_negative ? "-" : "", (unsigned long long)magnitude);
}

static const char *number_text(kj_arena *arena, double number)
{
  char digits[KJ_DECIMAL_BYTES];
  if (isnan(number)) return "nan";
  const char *sign = signbit(number) ? "-" : "";
  if (isinf(number)) return kj_format(arena, "%sinf", sign);
  kj_decimal decimal = kj_find_shortest(fabs(number), KJIT_F64);
  kj_lay_out_decimal(&decimal, KJ_MOST_DIGITS - 1, digits);
  return kj_format(arena, "%s%s%s", sign, digits, strpbrk(digits, ".e") ? "" : ".0");
}

const char *kf_convert(kf_writer *w, const kf_value *value, kjit_type type)
{
  const char *name = ki_type(w->context->types, type)->name;
  if (value->type == type) return value->text;
  if (value->type == KJIT_ANY) return kj_format(w->arena, "zero(%s)", name);
  if (value->type == KJ_WEAK_INT)
    return kj_format(w->arena, "%s(%s)", name, integer_text(w->arena, value->integer));
  if (value->type == KJ_WEAK_FLOAT)
    return kj_format(w->arena, "%s(%s)", name, number_text(w->arena, value->number));
  if (type == KJIT_BOOL) return kj_format(w->arena, "%s != 0", value->text);
  return kj_format(w->arena, "%s(%s)", name, value->text);
}

kf_value kf_bool(bool value)
{
  return (kf_value){ .type = KJIT_BOOL, .text = value ? "true" : "false" };
}

/* Writes a let statement with the location of the operator that it implements. */
static uint32_t write_let(kf_writer *w, char letter, const char *text)
{
  uint32_t number = w->name_count++;
  kj_append_format(w->body, "  @line(%u, %u, %s) let %c%u = %s\n", w->location.line,
                   w->location.column, w->file, letter, number, text);
  return number;
}

kf_value kf_let(kf_writer *w, kjit_type type, kf_conditions valid, const char *text)
{
  uint32_t number = write_let(w, 'v', text);
  return (kf_value){ .type = type, .text = kj_format(w->arena, "v%u", number), .valid = valid };
}

/* ---- nulls ---- */

bool kf_same_conditions(kf_conditions x, kf_conditions y)
{
  return x.count == y.count && (!x.count || !memcmp(x.items, y.items, x.count * sizeof *x.items));
}

kf_conditions kf_join(kf_writer *w, kf_conditions x, kf_conditions y)
{
  if (!y.count || kf_same_conditions(x, y)) return x;
  if (!x.count) return y;
  uint32_t *items = KJ_NEW_ARRAY(w->arena, uint32_t, x.count + y.count);
  size_t count = 0, i = 0, j = 0;
  while (i < x.count || j < y.count) {
    bool is_first = j == y.count || (i < x.count && x.items[i] <= y.items[j]);
    if (is_first && j < y.count && x.items[i] == y.items[j]) j++;
    items[count++] = is_first ? x.items[i++] : y.items[j++];
  }
  return (kf_conditions){ items, count };
}

const char *kf_condition_text(kf_writer *w, kf_conditions conditions)
{
  if (!conditions.count) return "true";
  kj_buffer text = { 0 };
  for (size_t i = 0; i < conditions.count; i++) {
    uint32_t item = conditions.items[i];
    if (i) kj_append_text(&text, " & ");
    if (item == KF_ALWAYS_NULL) kj_append_text(&text, "false");
    else if (item >= KF_FIRST_TERM) kj_append_format(&text, "n%u", item - KF_FIRST_TERM);
    else kj_append_format(&text, "k%u", item);
    if (item < KF_FIRST_TERM) w->is_asked[item] = true;
  }
  return kj_keep_text(w->arena, &text);
}

kf_conditions kf_let_condition(kf_writer *w, const char *text)
{
  uint32_t *item = KJ_NEW(w->arena, uint32_t);
  *item = KF_FIRST_TERM + write_let(w, 'n', text);
  return (kf_conditions){ item, 1 };
}
