#include "ir/number.h"

#include <fenv.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ir/arithmetic.h"
#include "support/decimal.h"

/* The C library returns a static object for the "C" locale, so this does not allocate memory. */
static locale_t c_locale(void) { return newlocale(LC_ALL_MASK, "C", (locale_t)0); }

static double read_f64(const char *digits)
{
  locale_t locale = c_locale();
  double value = strtod_l(digits, NULL, locale);
  freelocale(locale);
  return value;
}

static double read_f32(const char *digits)
{
  locale_t locale = c_locale();
  double value = strtof_l(digits, NULL, locale);
  freelocale(locale);
  return value;
}

/* Rounds to odd: returns a double next to the number in the text. If the number is not exact, the
 * last bit of the double is set. Rounding this double to a shorter format gives the same result as
 * rounding the number directly. */
static double read_to_odd(const char *digits)
{
  int mode = fegetround();
  fesetround(FE_DOWNWARD);
  double low = read_f64(digits);
  fesetround(FE_UPWARD);
  double high = read_f64(digits);
  fesetround(mode);
  uint64_t bits;
  memcpy(&bits, &low, sizeof bits);
  return bits & 1 ? low : high;
}

double ki_read_float(const char *digits, kjit_type type)
{
  if (type == KJIT_F32) return read_f32(digits);
  if (type != KJIT_F16 && type != KJIT_BF16) return read_f64(digits);
  double value = read_to_odd(digits);
  return isfinite(ki_number_of(ki_float_value(type, value))) ? value : INFINITY;
}

static void append_shortest(double value, kjit_type type, int most_point, char *text)
{
  kj_decimal decimal = kj_find_shortest(value, type);
  kj_lay_out_decimal(&decimal, decimal.count > most_point ? decimal.count : most_point, text);
}

/* The text can be read as an untyped number, which is rounded to f64 first and then to the type. In
 * rare cases, this double rounding gives a neighbour of the value. The shortest digits that
 * identify the value as an f64 are then printed instead. */
void ki_print_float(double value, kjit_type type, kj_buffer *buffer)
{
  char text[KJ_DECIMAL_BYTES];
  bool is_narrow = type == KJIT_F16 || type == KJIT_BF16 || type == KJIT_F32;
  double rounded = is_narrow ? ki_number_of(ki_float_value(type, value)) : value;
  append_shortest(rounded, is_narrow ? type : KJIT_F64, is_narrow ? FLT_DIG : DBL_DIG, text);
  if (is_narrow && ki_number_of(ki_float_value(type, read_f64(text))) != rounded)
    append_shortest(rounded, KJIT_F64, FLT_DIG, text);
  kj_append_text(buffer, text);
  if (!strpbrk(text, ".e")) kj_append_text(buffer, ".0");
}

/* ---- values ---- */

static void print_integer(__int128 integer, kj_buffer *buffer)
{
  char digits[48];
  size_t at = sizeof digits - 1;
  unsigned __int128 rest = integer < 0 ? -(unsigned __int128)integer : (unsigned __int128)integer;
  digits[at] = 0;
  do digits[--at] = (char)('0' + (int)(rest % 10));
  while (rest /= 10);
  if (integer < 0) digits[--at] = '-';
  kj_append_text(buffer, digits + at);
}

static void print_float(ki_value value, kj_buffer *buffer)
{
  double number = fabs(ki_number_of(value));
  if (ki_is_negative(value)) kj_append_text(buffer, "-");
  if (isfinite(number)) ki_print_float(number, value.type, buffer);
  else kj_append_text(buffer, isnan(number) ? "nan" : "inf");
}

void ki_print_value(ki_value value, bool has_suffix, kj_buffer *buffer)
{
  static const struct {
    const char *name;
    unsigned bits;
  } rows[KJIT_SCALAR_COUNT] = {
#define KJIT_ROW(name, text, bytes, class, code, bits) [KJIT_##name] = { text, bits },
#include <kjit/types.def>
#undef KJIT_ROW
  };
  const char *name = has_suffix && ki_is_scalar(value.type) ? rows[value.type].name : NULL;
  if (value.type == KJIT_BOOL) kj_append_text(buffer, value.integer ? "true" : "false");
  else if (!ki_is_floating(value.type)) {
    print_integer(value.integer, buffer);
    kj_append_text(buffer, name ? name : "");
  } else if (ki_is_other_nan(value) && value.type != KJ_WEAK_FLOAT) {
    kj_append_format(buffer, "bitcast(%s, %lluu%u)", rows[value.type].name,
                     (unsigned long long)value.integer, rows[value.type].bits);
  } else if (!name || isfinite(ki_number_of(value))) {
    print_float(value, buffer);
    kj_append_text(buffer, name ? name : "");
  } else {
    kj_append_format(buffer, "%s(", name);
    print_float(value, buffer);
    kj_append_text(buffer, ")");
  }
}
