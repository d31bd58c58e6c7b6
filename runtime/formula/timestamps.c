/* Translates operations on timestamps and durations, which are integers that count a unit. Values
 * with different units are converted exactly; if an exact conversion is not possible, the formula
 * is rejected. */
#include <string.h>

#include "formula/formula.h"

typedef struct unit_row {
  const char *name, *one, *function;
  int64_t of_next; /* number of these units in one unit of the next row */
} unit_row;

static const unit_row units[KF_UNIT_COUNT] = {
  [KF_DAYS] = { "D", "days", "days", 86400 },
  [KF_SECONDS] = { "s", "seconds", "seconds", 1000 },
  [KF_MILLISECONDS] = { "ms", "milliseconds", "milliseconds", 1000 },
  [KF_MICROSECONDS] = { "us", "microseconds", "microseconds", 1000 },
  [KF_NANOSECONDS] = { "ns", "nanoseconds", "nanoseconds", 1 },
};

/* ---- flags of columns ---- */

enum {
  KINDS = KJIT_COLUMN_TIMESTAMP | KJIT_COLUMN_DURATION,
  UNITS = KJIT_COLUMN_DAYS | KJIT_COLUMN_SECONDS | KJIT_COLUMN_MILLISECONDS |
          KJIT_COLUMN_MICROSECONDS | KJIT_COLUMN_NANOSECONDS
};

bool kf_read_date_flags(uint32_t flags, kf_kind *kind, kf_unit *unit)
{
  uint32_t kinds = flags & KINDS, own = flags & UNITS;
  *kind = kinds == KJIT_COLUMN_TIMESTAMP  ? KF_TIMESTAMP
          : kinds == KJIT_COLUMN_DURATION ? KF_DURATION
                                          : KF_PLAIN;
  *unit = own ? (kf_unit)__builtin_ctz(own / KJIT_COLUMN_DAYS) : KF_DAYS;
  bool is_one = own && !(own & (own - 1));
  return kinds ? *kind != KF_PLAIN && is_one : !own;
}

uint32_t kf_date_flags(const kf_value *value)
{
  if (value->kind != KF_TIMESTAMP && value->kind != KF_DURATION) return 0;
  uint32_t kind = value->kind == KF_TIMESTAMP ? KJIT_COLUMN_TIMESTAMP : KJIT_COLUMN_DURATION;
  return kind | (uint32_t)KJIT_COLUMN_DAYS << value->unit;
}

const char *kf_date_name(const kf_writer *w, const kf_value *value)
{
  if (value->kind == KF_STRING) return "a text";
  if (value->kind == KF_TEXT) return "a column of texts";
  return kj_format(w->arena, "%s[%s]", value->kind == KF_TIMESTAMP ? "timestamp" : "duration",
                   units[value->unit].name);
}

/* ---- texts ---- */

/* Returns the days since 1970-01-01 in the Gregorian calendar. */
static int64_t days_of(int64_t year, int month, int day)
{
  int64_t y = month > 2 ? year : year - 1;
  int64_t era = (y >= 0 ? y : y - 399) / 400, of_era = y - era * 400;
  int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static int days_in(int64_t year, int month)
{
  static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
  bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  return days[month - 1] + (month == 2 && is_leap);
}

/* Reads `count` digits. Returns -1 if there are fewer. */
static int read_digits(const char **at, int count)
{
  int value = 0;
  for (int i = 0; i < count; i++, (*at)++) {
    if (**at < '0' || **at > '9') return -1;
    value = 10 * value + (**at - '0');
  }
  return value;
}

static bool skip(const char **at, char c)
{
  if (**at != c) return false;
  (*at)++;
  return true;
}

/* Reads a fraction of a second such as ".123". The number of digits determines the unit. */
static bool read_fraction(const char **at, __int128 *count, kf_unit *unit)
{
  if (!skip(at, '.')) return true;
  int digits = 0;
  int64_t fraction = 0;
  for (; **at >= '0' && **at <= '9'; (*at)++, digits++)
    if (digits < 9) fraction = 10 * fraction + (**at - '0');
  if (digits < 1 || digits > 9) return false;
  for (; digits % 3; digits++) fraction *= 10;
  for (int i = 0; i < digits / 3; i++, (*unit)++) *count *= 1000;
  *count += fraction;
  return true;
}

/* Reads for example "2024-01-31", "2024-01-31 12:30" or "2024-01-31T12:30:00.5". The unit is the
 * coarsest unit that represents the time exactly. */
static bool read_timestamp(const char *at, __int128 *count, kf_unit *unit)
{
  int year = read_digits(&at, 4);
  if (year < 0 || !skip(&at, '-')) return false;
  int month = read_digits(&at, 2);
  if (month < 1 || month > 12 || !skip(&at, '-')) return false;
  int day = read_digits(&at, 2);
  if (day < 1 || day > days_in(year, month)) return false;
  *count = days_of(year, month, day);
  *unit = KF_DAYS;
  if (!*at) return true;
  if (!skip(&at, 'T') && !skip(&at, ' ')) return false;
  int hour = read_digits(&at, 2);
  if (hour < 0 || hour > 23 || !skip(&at, ':')) return false;
  int minute = read_digits(&at, 2), second = 0;
  if (minute < 0 || minute > 59) return false;
  if (skip(&at, ':')) second = read_digits(&at, 2);
  if (second < 0 || second > 59) return false;
  *count = *count * 86400 + hour * 3600 + minute * 60 + second;
  *unit = KF_SECONDS;
  return read_fraction(&at, count, unit) && !*at;
}

/* Converts a string to a timestamp if the other operand is a timestamp. */
static kf_value resolve_text(kf_writer *w, kf_value x, const kf_value *other, kj_location location)
{
  if (x.kind != KF_STRING) return x;
  kf_value value = { .type = KJ_WEAK_INT, .kind = KF_TIMESTAMP };
  if (other->kind != KF_TIMESTAMP)
    kf_fail(w, location, KJIT_ERROR_TYPE,
            "a text can be combined only with a timestamp or a column of texts, not %s",
            kf_type_name(w, other));
  if (!read_timestamp(x.text, &value.integer, &value.unit))
    kf_fail(w, location, KJIT_ERROR_TYPE,
            "\"%s\" is not a timestamp such as \"2024-01-31\" or \"2024-01-31T12:30:00\"", x.text);
  return value;
}

/* ---- units ---- */

static int64_t factor_between(kf_unit coarse, kf_unit fine)
{
  int64_t factor = 1;
  for (kf_unit unit = coarse; unit < fine; unit++) factor *= units[unit].of_next;
  return factor;
}

/* Returns whether every value of this type can be converted to the finer unit. */
static bool fits_unit(const kf_value *x, kf_unit unit)
{
  if (x->type == KJIT_ANY || x->unit == unit) return true;
  int64_t factor = factor_between(x->unit, unit);
  if (x->type == KJIT_I32) return factor <= INT64_MAX / ((int64_t)1 << 31);
  if (x->type != KJ_WEAK_INT) return false;
  __int128 count;
  return !__builtin_mul_overflow(x->integer, (__int128)factor, &count) && count <= INT64_MAX &&
         count >= INT64_MIN;
}

/* Converts a value to a unit that is at least as fine as its own unit. The result is an i64 or a
 * literal. */
static kf_value in_unit(kf_writer *w, const kf_value *x, kf_unit unit)
{
  kf_value plain = *x;
  plain.kind = KF_PLAIN;
  if (x->type == KJIT_ANY) return plain;
  int64_t factor = factor_between(x->unit, unit);
  if (x->type == KJ_WEAK_INT) {
    plain.integer *= factor;
    return plain;
  }
  const char *count = kf_convert(w, x, KJIT_I64);
  if (factor == 1 && x->type == KJIT_I64) return plain;
  if (factor == 1) return kf_let(w, KJIT_I64, x->valid, count);
  return kf_let(w, KJIT_I64, x->valid,
                kj_format(w->arena, "%s * %lldi64", count, (long long)factor));
}

static kf_unit finer(const kf_value *x, const kf_value *y)
{
  if (x->type == KJIT_ANY) return y->unit;
  if (y->type == KJIT_ANY) return x->unit;
  return x->unit > y->unit ? x->unit : y->unit;
}

static _Noreturn void refuse_unit(kf_writer *w, const kf_value *x, kf_unit unit,
                                  kj_location location)
{
  kf_fail(w, location, KJIT_ERROR_TYPE,
          "a number of %s can be too large to count in %s; convert the other value with `as_%s(x)`",
          units[x->unit].one, units[unit].one, units[x->unit].function);
}

kf_unit kf_unify(kf_writer *w, kf_value *items, size_t count, kf_kind *kind, kj_location location)
{
  const kf_value *model = NULL;
  kf_unit unit = KF_DAYS;
  for (size_t i = 0; i < count; i++)
    if (items[i].kind == KF_TIMESTAMP || items[i].kind == KF_DURATION) model = &items[i];
  if (!model)
    kf_fail(w, location, KJIT_ERROR_TYPE,
            "a text can be combined only with a timestamp or a column of texts");
  const kf_value example = *model;
  for (size_t i = 0; i < count; i++) {
    items[i] = resolve_text(w, items[i], &example, location);
    if (items[i].type == KJIT_ANY) continue;
    if (items[i].kind != example.kind)
      kf_fail(w, location, KJIT_ERROR_TYPE, "%s and %s cannot be combined",
              kf_type_name(w, &example), kf_type_name(w, &items[i]));
    if (items[i].unit > unit) unit = items[i].unit;
  }
  for (size_t i = 0; i < count; i++) {
    if (!fits_unit(&items[i], unit)) refuse_unit(w, &items[i], unit, location);
    items[i] = in_unit(w, &items[i], unit);
    if (items[i].type == KJ_WEAK_INT)
      items[i] = kf_let(w, KJIT_I64, items[i].valid, kf_convert(w, &items[i], KJIT_I64));
  }
  *kind = example.kind;
  return unit;
}

/* ---- comparisons ---- */

static kjit_op mirrored(kjit_op op)
{
  switch (KJ_AMONG(op)) {
  case KJIT_OP_LT: return KJIT_OP_GT;
  case KJIT_OP_GT: return KJIT_OP_LT;
  case KJIT_OP_LE: return KJIT_OP_GE;
  case KJIT_OP_GE: return KJIT_OP_LE;
  default: return op;
  }
}

/* Compares x with y, which has a coarser unit, without converting y, which could overflow: x < y *
 * factor is the same as floor(x / factor) < y. */
static kf_value compare_with_coarser(kf_writer *w, kjit_op op, const kf_value *x, const kf_value *y)
{
  int64_t factor = factor_between(y->unit, x->unit);
  kf_conditions valid = kf_join(w, x->valid, y->valid);
  const char *count = kf_convert(w, x, KJIT_I64), *other = kf_convert(w, y, KJIT_I64);
  const kf_value whole =
    kf_let(w, KJIT_I64, valid, kj_format(w->arena, "%s // %lldi64", count, (long long)factor));
  const char *rest =
    kj_format(w->arena, "(%s != %s * %lldi64)", count, whole.text, (long long)factor);
  kj_buffer made = { 0 };
  if (op == KJIT_OP_LT || op == KJIT_OP_GE)
    kj_append_format(&made, "%s %s %s", whole.text, op == KJIT_OP_LT ? "<" : ">=", other);
  else if (op == KJIT_OP_GT || op == KJIT_OP_LE)
    kj_append_format(&made, "(%s %s %s) | ((%s == %s) & %s%s%s)", whole.text,
                     op == KJIT_OP_GT ? ">" : "<", other, whole.text, other,
                     op == KJIT_OP_GT ? "" : "(not ", rest, op == KJIT_OP_GT ? "" : ")");
  else if (op == KJIT_OP_EQ)
    kj_append_format(&made, "(%s == %s) & (not %s)", whole.text, other, rest);
  else kj_append_format(&made, "(%s != %s) | %s", whole.text, other, rest);
  return kf_let(w, KJIT_BOOL, valid, kj_keep_text(w->arena, &made));
}

static kf_value compare(kf_writer *w, kjit_op op, const kf_value *x, const kf_value *y,
                        kj_location location)
{
  kf_unit unit = finer(x, y);
  if (!fits_unit(y, unit)) return compare_with_coarser(w, op, x, y);
  if (!fits_unit(x, unit)) return compare_with_coarser(w, mirrored(op), y, x);
  return kf_apply(w, op, in_unit(w, x, unit), in_unit(w, y, unit), location);
}

/* ---- arithmetic ---- */

static _Noreturn void refuse(kf_writer *w, kjit_op op, const kf_value *x, const kf_value *y,
                             kj_location location, const char *hint)
{
  kf_fail(w, location, KJIT_ERROR_TYPE, "`%s` of %s and %s%s", ki_op_table[op].text,
          kf_type_name(w, x), kf_type_name(w, y), hint);
}

/* Adds or subtracts in the finer unit. */
static kf_value combine(kf_writer *w, kjit_op op, const kf_value *x, const kf_value *y,
                        kj_location location)
{
  bool is_sum = op == KJIT_OP_ADD;
  bool has_kinds = x->type == KJIT_ANY || y->type == KJIT_ANY ||
                   (y->kind == KF_DURATION && x->kind != KF_PLAIN) ||
                   (x->kind == KF_TIMESTAMP && y->kind == KF_TIMESTAMP && !is_sum) ||
                   (x->kind == KF_DURATION && y->kind == KF_TIMESTAMP && is_sum);
  if (!has_kinds)
    refuse(w, op, x, y, location,
           x->kind == KF_PLAIN || y->kind == KF_PLAIN ? "; write seconds(n) or days(n)" : "");
  kf_unit unit = finer(x, y);
  if (!fits_unit(x, unit)) refuse_unit(w, x, unit, location);
  if (!fits_unit(y, unit)) refuse_unit(w, y, unit, location);
  kf_value result = kf_apply(w, op, in_unit(w, x, unit), in_unit(w, y, unit), location);
  bool is_moved = x->kind == KF_TIMESTAMP || y->kind == KF_TIMESTAMP;
  bool is_between = x->kind == KF_TIMESTAMP && y->kind == KF_TIMESTAMP;
  result.kind = is_moved && !is_between ? KF_TIMESTAMP : KF_DURATION;
  result.unit = unit;
  return result;
}

/* Multiplies a duration by an integer, or divides it by an integer or a duration. */
static kf_value scale(kf_writer *w, kjit_op op, const kf_value *x, const kf_value *y,
                      kj_location location)
{
  bool is_product = op == KJIT_OP_MUL;
  if (op == KJIT_OP_DIV && x->kind == KF_DURATION && y->kind == KF_DURATION) {
    kf_unit unit = finer(x, y);
    if (!fits_unit(x, unit)) refuse_unit(w, x, unit, location);
    if (!fits_unit(y, unit)) refuse_unit(w, y, unit, location);
    return kf_apply(w, op, in_unit(w, x, unit), in_unit(w, y, unit), location);
  }
  const kf_value *duration = is_product && y->kind == KF_DURATION ? y : x;
  const kf_value *factor = duration == x ? y : x;
  bool is_integer = kf_is_integer(kf_own_type(factor)) && factor->kind == KF_PLAIN;
  if (duration->kind != KF_DURATION || !is_integer || kf_own_type(factor) == KJIT_U64 ||
      op == KJIT_OP_DIV)
    refuse(w, op, x, y, location, "");
  const kf_value count = in_unit(w, duration, duration->unit);
  kf_value result = duration == x ? kf_apply(w, op, count, *factor, location)
                                  : kf_apply(w, op, *factor, count, location);
  result.kind = KF_DURATION;
  result.unit = duration->unit;
  return result;
}

kf_value kf_apply_dates(kf_writer *w, kjit_op op, kf_value x, kf_value y, kj_location location)
{
  bool is_comparison = ki_op_table[op].class_ == KJ_OP_COMPARE;
  if (is_comparison || x.kind == KF_TIMESTAMP || y.kind == KF_TIMESTAMP) {
    const kf_value left = x;
    x = resolve_text(w, x, &y, location);
    y = resolve_text(w, y, &left, location);
  }
  if (is_comparison) {
    if (x.type != KJIT_ANY && y.type != KJIT_ANY && x.kind != y.kind)
      refuse(w, op, &x, &y, location, "");
    return compare(w, op, &x, &y, location);
  }
  switch (KJ_AMONG(op)) {
  case KJIT_OP_ADD:
  case KJIT_OP_SUB: return combine(w, op, &x, &y, location);
  case KJIT_OP_MUL:
  case KJIT_OP_DIV:
  case KJIT_OP_FLOORDIV: return scale(w, op, &x, &y, location);
  default: refuse(w, op, &x, &y, location, "");
  }
}

kf_value kf_negate_date(kf_writer *w, kf_value x, kj_location location)
{
  if (x.kind != KF_DURATION)
    kf_fail(w, location, KJIT_ERROR_TYPE, "`-` of %s", kf_type_name(w, &x));
  kf_value zero = { .type = KJ_WEAK_INT, .kind = KF_DURATION, .unit = x.unit };
  return combine(w, KJIT_OP_SUB, &zero, &x, location);
}

/* ---- functions ---- */

kf_value kf_make_duration(kf_writer *w, const char *name, kf_value x)
{
  kf_value made = x;
  if (x.type != KJ_WEAK_INT && x.type != KJIT_I32)
    made = kf_let(w, KJIT_I64, x.valid, kf_convert(w, &x, KJIT_I64));
  made.kind = KF_DURATION;
  for (made.unit = KF_DAYS; strcmp(units[made.unit].function, name) != 0;) made.unit++;
  return made;
}

/* Translates functions such as as_seconds(x): converts the value to another unit and rounds down if
 * the unit is coarser. */
kf_value kf_change_unit(kf_writer *w, const char *name, kf_value x, kj_location location)
{
  kf_unit unit = KF_DAYS;
  while (strcmp(units[unit].function, name + strlen("as_")) != 0) unit++;
  kf_value result;
  if (unit >= x.unit) {
    if (!fits_unit(&x, unit)) refuse_unit(w, &x, unit, location);
    result = in_unit(w, &x, unit);
  } else {
    int64_t factor = factor_between(unit, x.unit);
    result =
      kf_let(w, KJIT_I64, x.valid,
             kj_format(w->arena, "%s // %lldi64", kf_convert(w, &x, KJIT_I64), (long long)factor));
  }
  result.kind = x.kind;
  result.unit = unit;
  return result;
}
