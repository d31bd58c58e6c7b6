/* Operators on dates, with NumPy's results. The operators convert the operands to a common unit.
 * Operations without a valid result give NaT.
 *
 * A date is a struct with a count of units (ir/date.h), so all operators become arithmetic on i64.
 * If a value is used twice, it is stored in a temporary. */
#include "ir/date.h"
#include "typing/infer.h"
#include "typing/rules.h"

/* An operand of a date operator: a date or a number. */
typedef struct operand {
  kt_expr *value;
  bool is_date;
  ki_date date;
} operand;

/* Data that the functions in this file share while they build one operator. */
typedef struct making {
  kt_scope *s;
  kj_location at;
  const char *name; /* name of the operator */
} making;

bool kt_is_date(const kt_scope *s, kjit_type type)
{
  ki_date date;
  return ki_read_date(s->c->types, type, &date);
}

static operand take(kt_scope *s, kt_expr *value)
{
  operand taken = { .value = value };
  taken.is_date = ki_read_date(s->c->types, value->type, &taken.date);
  return taken;
}

/* ---- arithmetic of counts ---- */

static kt_expr *number(const making *m, int64_t value)
{
  return kt_new_integer(m->s, KJIT_I64, value, m->at);
}

static kt_expr *real_number(const making *m, double value)
{
  return kt_new_number(m->s, KJIT_F64, value, m->at);
}

static kt_expr *apply(const making *m, kjit_op op, kt_expr *x, kt_expr *y)
{
  return kt_make_own_binary(m->s, op, x, y, m->at);
}

static kt_expr *apply_number(const making *m, kjit_op op, const kt_expr *x, int64_t y)
{
  return apply(m, op, kt_copy_texpr(m->s, x), number(m, y));
}

static kt_expr *keep(const making *m, kt_expr *value) { return kt_keep_value(m->s, value); }

static kt_expr *copy(const making *m, const kt_expr *value) { return kt_copy_texpr(m->s, value); }

static kt_expr *choose(const making *m, kt_expr *condition, kt_expr *yes, kt_expr *no)
{
  return kt_make_cond(m->s, condition, yes, no, m->at);
}

static kt_expr *is_no_time(const making *m, const kt_expr *count)
{
  return apply_number(m, KJIT_OP_EQ, count, KI_NOT_A_TIME);
}

static kt_expr *count_of(const making *m, kt_expr *value)
{
  return keep(m, kt_make_item(m->s, value, 0, m->at));
}

static kt_expr *make_date(const making *m, kt_expr *count, ki_date date)
{
  kjit_type type = ki_intern_date(m->s->c->types, date);
  if (type == KJIT_ANY) longjmp(*m->s->c->on_failure, KJ_JUMP_MEMORY);
  kt_exprs parts = { 0 };
  KJ_PUSH(m->s->arena, &parts, count);
  return kt_make_composed(m->s, type, &parts, m->at);
}

/* ---- other units ---- */

/* Converts months since January 1970 to days since 1970-01-01 in the Gregorian calendar. The
 * algorithm counts years from March, so that the leap day is the last day of a year. */
static kt_expr *days_of_months(const making *m, kt_expr *months)
{
  months = keep(m, months);
  kt_expr *month = keep(m, apply_number(m, KJIT_OP_MOD, months, 12)); /* January is 0 */
  kt_expr *shifted = keep(m, apply_number(m, KJIT_OP_ADD, month, 10));
  kt_expr *year = apply_number(m, KJIT_OP_FLOORDIV, months, 12);
  year = apply(m, KJIT_OP_ADD, year, apply_number(m, KJIT_OP_FLOORDIV, shifted, 12));
  year = keep(m, apply(m, KJIT_OP_ADD, year, number(m, 1969)));
  kt_expr *days = apply_number(m, KJIT_OP_MUL, year, 365);
  days = apply(m, KJIT_OP_ADD, days, apply_number(m, KJIT_OP_FLOORDIV, year, 4));
  days = apply(m, KJIT_OP_SUB, days, apply_number(m, KJIT_OP_FLOORDIV, year, 100));
  days = apply(m, KJIT_OP_ADD, days, apply_number(m, KJIT_OP_FLOORDIV, year, 400));
  kt_expr *from_march = apply_number(m, KJIT_OP_MOD, shifted, 12);
  from_march = apply(m, KJIT_OP_MUL, from_march, number(m, 153));
  from_march = apply(m, KJIT_OP_ADD, from_march, number(m, 2));
  from_march = apply(m, KJIT_OP_FLOORDIV, from_march, number(m, 5));
  return apply(m, KJIT_OP_SUB, apply(m, KJIT_OP_ADD, days, from_march), number(m, 719468));
}

/* Returns the year within an era of 400 years, given the day within the era. */
static kt_expr *year_of_era(const making *m, const kt_expr *day)
{
  kt_expr *days = apply(m, KJIT_OP_SUB, copy(m, day), apply_number(m, KJIT_OP_FLOORDIV, day, 1460));
  days = apply(m, KJIT_OP_ADD, days, apply_number(m, KJIT_OP_FLOORDIV, day, 36524));
  days = apply(m, KJIT_OP_SUB, days, apply_number(m, KJIT_OP_FLOORDIV, day, 146096));
  return keep(m, apply(m, KJIT_OP_FLOORDIV, days, number(m, 365)));
}

/* Returns the month that contains a day, as a number of months since January 1970. */
static kt_expr *months_of_days(const making *m, kt_expr *days)
{
  days = keep(m, apply(m, KJIT_OP_ADD, days, number(m, 719468)));
  kt_expr *era = keep(m, apply_number(m, KJIT_OP_FLOORDIV, days, 146097));
  kt_expr *of_era = keep(m, apply_number(m, KJIT_OP_MOD, days, 146097));
  kt_expr *year = year_of_era(m, of_era);
  /* number of the first day of the year within the era */
  kt_expr *first = apply_number(m, KJIT_OP_MUL, year, 365);
  first = apply(m, KJIT_OP_ADD, first, apply_number(m, KJIT_OP_FLOORDIV, year, 4));
  first = apply(m, KJIT_OP_SUB, first, apply_number(m, KJIT_OP_FLOORDIV, year, 100));
  kt_expr *day = apply(m, KJIT_OP_SUB, copy(m, of_era), first);
  kt_expr *from_march = apply(m, KJIT_OP_MUL, day, number(m, 5));
  from_march = apply(m, KJIT_OP_ADD, from_march, number(m, 2));
  from_march = apply(m, KJIT_OP_FLOORDIV, from_march, number(m, 153));
  kt_expr *years = apply(m, KJIT_OP_ADD, apply_number(m, KJIT_OP_MUL, era, 400), copy(m, year));
  years = apply(m, KJIT_OP_SUB, years, number(m, 1970));
  kt_expr *months = apply(m, KJIT_OP_MUL, years, number(m, 12));
  return apply(m, KJIT_OP_ADD, apply(m, KJIT_OP_ADD, months, from_march), number(m, 2));
}

static _Noreturn void fail_units(const making *m, ki_date a, ki_date b)
{
  char first[KI_DATE_TEXT], second[KI_DATE_TEXT];
  ki_write_date(a, first);
  ki_write_date(b, second);
  kt_fail(m->s->c, m->at, KJIT_ERROR_TYPE,
          "`%s` of %s and %s: NumPy has no common unit for these types", m->name, first, second);
}

/* Converts a count to another unit and rounds down. The result for NaT is arbitrary. */
static kt_expr *scale(const making *m, kt_expr *count, ki_date from, ki_date to)
{
  int64_t numerator, denominator;
  if (!ki_find_date_ratio(from, to, &numerator, &denominator)) fail_units(m, from, to);
  if (numerator != 1) count = apply(m, KJIT_OP_MUL, count, number(m, numerator));
  if (denominator != 1) count = apply(m, KJIT_OP_FLOORDIV, count, number(m, denominator));
  return count;
}

/* Converts a count to another date's unit. The count must be in a temporary. */
static kt_expr *convert_count(const making *m, kt_expr *count, ki_date from, ki_date to)
{
  if (from.unit == KI_UNIT_GENERIC || (from.unit == to.unit && from.multiple == to.multiple))
    return copy(m, count);
  if (to.unit == KI_UNIT_GENERIC) fail_units(m, from, to);
  bool had_calendar = ki_is_of_calendar(from), has_calendar = ki_is_of_calendar(to);
  const ki_date month = { from.is_difference, KI_UNIT_MONTH, 1 },
                day = { from.is_difference, KI_UNIT_DAY, 1 };
  kt_expr *scaled = copy(m, count);
  if (had_calendar != has_calendar && from.is_difference) fail_units(m, from, to);
  if (had_calendar == has_calendar) scaled = scale(m, scaled, from, to);
  else if (had_calendar)
    scaled = scale(m, days_of_months(m, scale(m, scaled, from, month)), day, to);
  else scaled = scale(m, months_of_days(m, scale(m, scaled, from, day)), month, to);
  return keep(m, choose(m, is_no_time(m, count), number(m, KI_NOT_A_TIME), scaled));
}

/* ---- operands ---- */

static _Noreturn void fail_operands(const making *m, const operand *x, const operand *y)
{
  const char *texts[2];
  const operand *both[] = { x, y };
  for (size_t i = 0; i < 2; i++) {
    char text[KI_DATE_TEXT];
    if (both[i]->is_date) ki_write_date(both[i]->date, text);
    texts[i] = both[i]->is_date ? kj_format(m->s->arena, "%s", text)
                                : kt_type_text(m->s->c, both[i]->value->type);
  }
  kt_fail(m->s->c, m->at, KJIT_ERROR_TYPE, "`%s` of %s and %s: NumPy has no such operator", m->name,
          texts[0], texts[1]);
}

static bool is_whole(const making *m, const operand *x)
{
  return !x->is_date && (kt_is_integer(m->s->c, x->value->type) || x->value->type == KJIT_BOOL);
}

static bool is_real(const making *m, const operand *x)
{
  return !x->is_date && kt_is_float(m->s->c, x->value->type);
}

/* The counts of both operands in their common unit. If an operand is an integer, it is treated as a
 * count in the unit of the other operand. */
typedef struct counts {
  kt_expr *x, *y;
  ki_date unit;
} counts;

static counts bring_together(const making *m, const operand *x, const operand *y)
{
  operand both[] = { *x, *y };
  for (size_t i = 0; i < 2; i++) {
    if (both[i].is_date) {
      both[i].value = count_of(m, both[i].value);
      continue;
    }
    if (!is_whole(m, &both[i])) fail_operands(m, x, y);
    both[i].value = keep(m, kt_convert(m->s, both[i].value, KJIT_I64, m->at));
    both[i].date = both[1 - i].date;
    both[i].date.is_difference = true;
  }
  counts made;
  if (!ki_find_common_unit(both[0].date, both[1].date, &made.unit))
    fail_units(m, both[0].date, both[1].date);
  made.x = keep(m, convert_count(m, both[0].value, both[0].date, made.unit));
  made.y = keep(m, convert_count(m, both[1].value, both[1].date, made.unit));
  return made;
}

static kt_expr *choose_unless(const making *m, const counts *c, kt_expr *otherwise, kt_expr *value)
{
  return choose(m, is_no_time(m, c->x), otherwise,
                choose(m, is_no_time(m, c->y), copy(m, otherwise), value));
}

/* ---- sums and differences ---- */

static kt_expr *make_sum(const making *m, kjit_op op, const operand *x, const operand *y)
{
  bool x_is_time = x->is_date && !x->date.is_difference,
       y_is_time = y->is_date && !y->date.is_difference;
  if (y_is_time && (op == KJIT_OP_ADD) == x_is_time) fail_operands(m, x, y);
  counts c = bring_together(m, x, y);
  c.unit.is_difference = x_is_time == y_is_time;
  kt_expr *sum = apply(m, op, copy(m, c.x), copy(m, c.y));
  return make_date(m, choose_unless(m, &c, number(m, KI_NOT_A_TIME), sum), c.unit);
}

/* ---- products and quotients ---- */

/* Converts a float to a count, rounded toward zero. NaN and values out of range give NaT. */
static kt_expr *count_of_float(const making *m, kt_expr *value)
{
  const double limit = 9223372036854775808.0;
  value = keep(m, value);
  kt_expr *is_above = apply(m, KJIT_OP_GE, copy(m, value), real_number(m, -limit)),
          *is_below = apply(m, KJIT_OP_LT, copy(m, value), real_number(m, limit));
  kt_expr *converted = kt_convert(m->s, copy(m, value), KJIT_I64, m->at);
  return choose(m, is_above, choose(m, is_below, converted, number(m, KI_NOT_A_TIME)),
                number(m, KI_NOT_A_TIME));
}

static kt_expr *make_float_product(const making *m, kjit_op op, const operand *x, const operand *y)
{
  kt_expr *count = count_of(m, x->value);
  kt_expr *factor = keep(m, kt_convert(m->s, y->value, KJIT_F64, m->at)), *is_zero = NULL;
  if (op == KJIT_OP_DIV) { /* no check is added, because a division by 0 gives NaT */
    is_zero = keep(m, apply(m, KJIT_OP_EQ, copy(m, factor), real_number(m, 0)));
    factor = choose(m, copy(m, is_zero), real_number(m, 1), copy(m, factor));
  }
  kt_expr *product = apply(m, op, kt_convert(m->s, copy(m, count), KJIT_F64, m->at), factor);
  kt_expr *result = count_of_float(m, product);
  if (is_zero) result = choose(m, is_zero, number(m, KI_NOT_A_TIME), result);
  return make_date(m, choose(m, is_no_time(m, count), number(m, KI_NOT_A_TIME), result), x->date);
}

static kt_expr *make_product(const making *m, const operand *x, const operand *y)
{
  const operand *date = x->is_date ? x : y, *factor = x->is_date ? y : x;
  if (factor->is_date || !date->date.is_difference) fail_operands(m, x, y);
  if (is_real(m, factor)) return make_float_product(m, KJIT_OP_MUL, date, factor);
  if (!is_whole(m, factor)) fail_operands(m, x, y);
  kt_expr *count = count_of(m, date->value);
  kt_expr *product =
    apply(m, KJIT_OP_MUL, copy(m, count), kt_convert(m->s, factor->value, KJIT_I64, m->at));
  product = choose(m, is_no_time(m, count), number(m, KI_NOT_A_TIME), product);
  return make_date(m, product, date->date);
}

/* Divides x by y. The result for y == 0 is `otherwise`. x and y must be in temporaries. */
static kt_expr *divide(const making *m, kjit_op op, kt_expr *x, kt_expr *y, int64_t otherwise)
{
  kt_expr *is_zero = keep(m, apply_number(m, KJIT_OP_EQ, y, 0));
  kt_expr *divisor = choose(m, copy(m, is_zero), number(m, 1), copy(m, y));
  kt_expr *quotient = apply(m, op, copy(m, x), divisor);
  return choose(m, copy(m, is_zero), number(m, otherwise), quotient);
}

/* Divides a timedelta by an integer. `/` and `//` round toward zero, as in NumPy. */
static kt_expr *divide_toward_zero(const making *m, kt_expr *x, kt_expr *y)
{
  kt_expr *is_less = keep(m, apply_number(m, KJIT_OP_LT, x, 0));
  kt_expr *negated = apply(m, KJIT_OP_SUB, number(m, 0), copy(m, x));
  kt_expr *size = keep(m, choose(m, copy(m, is_less), negated, copy(m, x)));
  kt_expr *y_is_less = keep(m, apply_number(m, KJIT_OP_LT, y, 0));
  kt_expr *y_negated = apply(m, KJIT_OP_SUB, number(m, 0), copy(m, y));
  kt_expr *y_size = keep(m, choose(m, copy(m, y_is_less), y_negated, copy(m, y)));
  kt_expr *quotient = keep(m, divide(m, KJIT_OP_FLOORDIV, size, y_size, KI_NOT_A_TIME));
  kt_expr *changes = apply(m, KJIT_OP_NE, copy(m, is_less), copy(m, y_is_less));
  kt_expr *opposite = apply(m, KJIT_OP_SUB, number(m, 0), copy(m, quotient));
  return choose(m, changes, opposite, copy(m, quotient));
}

static kt_expr *make_number_quotient(const making *m, const operand *x, const operand *y)
{
  if (is_real(m, y)) return make_float_product(m, KJIT_OP_DIV, x, y);
  if (!is_whole(m, y)) fail_operands(m, x, y);
  kt_expr *count = count_of(m, x->value);
  kt_expr *divisor = keep(m, kt_convert(m->s, y->value, KJIT_I64, m->at));
  kt_expr *quotient = divide_toward_zero(m, count, divisor);
  quotient = choose(m, is_no_time(m, count), number(m, KI_NOT_A_TIME), quotient);
  return make_date(m, quotient, x->date);
}

/* Returns x / y as a float. No check is added, because a division by 0 gives an infinity or NaN. */
static kt_expr *make_ratio(const making *m, const kt_expr *x, const kt_expr *y)
{
  kt_expr *is_zero = keep(m, apply_number(m, KJIT_OP_EQ, y, 0));
  kt_expr *divisor = choose(m, copy(m, is_zero), number(m, 1), copy(m, y));
  kt_expr *signed_infinity =
    choose(m, apply_number(m, KJIT_OP_LT, x, 0), real_number(m, -__builtin_inf()),
           real_number(m, __builtin_inf()));
  kt_expr *by_zero = choose(m, apply_number(m, KJIT_OP_EQ, x, 0), real_number(m, __builtin_nan("")),
                            signed_infinity);
  kt_expr *quotient = apply(m, KJIT_OP_DIV, kt_convert(m->s, copy(m, x), KJIT_F64, m->at),
                            kt_convert(m->s, divisor, KJIT_F64, m->at));
  return choose(m, copy(m, is_zero), by_zero, quotient);
}

/* Divides two timedeltas. `/` gives a float. `//` gives an integer; it is 0 if an operand is NaT or
 * the divisor is 0, in which case NumPy also returns 0 and warns. */
static kt_expr *make_quotient(const making *m, kjit_op op, const operand *x, const operand *y)
{
  if (!x->is_date || !x->date.is_difference || (y->is_date && !y->date.is_difference))
    fail_operands(m, x, y);
  if (!y->is_date && op != KJIT_OP_MOD) return make_number_quotient(m, x, y);
  if (!y->is_date) fail_operands(m, x, y);
  counts c = bring_together(m, x, y);
  if (op == KJIT_OP_FLOORDIV) return choose_unless(m, &c, number(m, 0), divide(m, op, c.x, c.y, 0));
  if (op == KJIT_OP_MOD)
    return make_date(m,
                     choose_unless(m, &c, number(m, KI_NOT_A_TIME),
                                   divide(m, op, c.x, c.y, KI_NOT_A_TIME)),
                     c.unit);
  kt_expr *quotient = make_ratio(m, c.x, c.y);
  return choose_unless(m, &c, real_number(m, __builtin_nan("")), quotient);
}

/* ---- comparisons, and the entry points for operators and built-ins ---- */

/* Compares two dates. NaT is not equal to any date, and neither less nor greater than any date. */
static kt_expr *make_comparison(const making *m, kjit_op op, const operand *x, const operand *y)
{
  bool x_is_time = x->is_date && !x->date.is_difference,
       y_is_time = y->is_date && !y->date.is_difference;
  if (x_is_time != y_is_time) fail_operands(m, x, y);
  counts c = bring_together(m, x, y);
  kt_expr *outcome = apply(m, op, copy(m, c.x), copy(m, c.y));
  return choose_unless(m, &c, kt_new_integer(m->s, KJIT_BOOL, op == KJIT_OP_NE, m->at), outcome);
}

kt_expr *kt_make_date_binary(kt_scope *s, kjit_op op, kt_expr *x, kt_expr *y, kj_location location)
{
  const making m = { s, location, ki_op_table[op].text };
  const operand a = take(s, x), b = take(s, y);
  KJ_ASSERT(a.is_date || b.is_date);
  if (ki_op_table[op].class_ == KJ_OP_COMPARE) return make_comparison(&m, op, &a, &b);
  if (op == KJIT_OP_ADD || op == KJIT_OP_SUB) return make_sum(&m, op, &a, &b);
  if (op == KJIT_OP_MUL) return make_product(&m, &a, &b);
  if (op == KJIT_OP_DIV || op == KJIT_OP_FLOORDIV || op == KJIT_OP_MOD)
    return make_quotient(&m, op, &a, &b);
  fail_operands(&m, &a, &b);
}

static kt_expr *negate(const making *m, const kt_expr *count)
{
  return apply(m, KJIT_OP_SUB, number(m, 0), copy(m, count));
}

static const operand *require_difference(const making *m, const operand *x)
{
  char text[KI_DATE_TEXT];
  ki_write_date(x->date, text);
  if (!x->date.is_difference)
    kt_fail(m->s->c, m->at, KJIT_ERROR_TYPE, "`%s` of %s: NumPy has no such operator", m->name,
            text);
  return x;
}

kt_expr *kt_make_date_unary(kt_scope *s, kjit_op op, kt_expr *x, kj_location location)
{
  const making m = { s, location, ki_op_table[op].text };
  const operand a = take(s, x);
  KJ_ASSERT(a.is_date);
  if (op != KJIT_OP_NEG && op != KJIT_OP_POS)
    kt_fail(s->c, location, KJIT_ERROR_TYPE, "`%s` of a date: NumPy has no such operator", m.name);
  require_difference(&m, &a);
  if (op == KJIT_OP_POS) return x;
  /* NaT is the minimum i64, whose negation is NaT again */
  return make_date(&m, negate(&m, count_of(&m, x)), a.date);
}

static kt_expr *make_absolute(const making *m, const operand *x)
{
  kt_expr *count = count_of(m, require_difference(m, x)->value);
  kt_expr *is_less = apply_number(m, KJIT_OP_LT, count, 0);
  return make_date(m, choose(m, is_less, negate(m, count), copy(m, count)), x->date);
}

/* Implements abs, and min and max with Python's meaning: the result is the first value unless the
 * second value is less (greater). */
kt_expr *kt_apply_date_rule(kt_scope *s, const kt_operands *o)
{
  kt_expr *const *values = o->values.items;
  size_t count = o->values.count;
  ki_builtin_id id = o->builtin->id;
  bool is_extremum = id == KJ_BUILTIN_MIN || id == KJ_BUILTIN_MAX;
  if (id != KJ_BUILTIN_ABS && !is_extremum) return NULL;
  const making m = { s, o->location, o->builtin->name };
  if (count == 1 && kt_is_date(s, values[0]->type)) {
    const operand x = take(s, values[0]);
    return make_absolute(&m, &x);
  }
  if (count != 2 || (!kt_is_date(s, values[0]->type) && !kt_is_date(s, values[1]->type)))
    return NULL;
  const operand x = take(s, keep(&m, values[0])), y = take(s, keep(&m, values[1]));
  kt_expr *is_second = make_comparison(&m, id == KJ_BUILTIN_MIN ? KJIT_OP_LT : KJIT_OP_GT, &y, &x);
  return choose(&m, is_second, copy(&m, y.value), copy(&m, x.value));
}

/* ---- conversions ---- */

kjit_type kt_join_dates(kt_scope *s, kjit_type a, kjit_type b)
{
  ki_date x, y, common;
  if (!ki_read_date(s->c->types, a, &x) || !ki_read_date(s->c->types, b, &y)) return KJIT_ANY;
  if (x.is_difference != y.is_difference || !ki_find_common_unit(x, y, &common)) return KJIT_ANY;
  kjit_type type = ki_intern_date(s->c->types, common);
  if (type == KJIT_ANY) longjmp(*s->c->on_failure, KJ_JUMP_MEMORY);
  return type;
}

kt_expr *kt_convert_date(kt_scope *s, kt_expr *value, kjit_type type, kj_location location)
{
  const making m = { s, location, "=" };
  operand from = take(s, value);
  ki_date to;
  if (!ki_read_date(s->c->types, type, &to)) return NULL;
  if (!from.is_date) {
    if (!is_whole(&m, &from)) return NULL;
    return make_date(&m, kt_convert(s, value, KJIT_I64, location), to);
  }
  if (from.date.is_difference != to.is_difference) return NULL;
  return make_date(&m, convert_count(&m, count_of(&m, value), from.date, to), to);
}

kt_expr *kt_count_date(kt_scope *s, kt_expr *value, kjit_type type, kj_location location)
{
  return kt_convert(s, kt_make_item(s, value, 0, location), type, location);
}
