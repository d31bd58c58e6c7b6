#include "ir/number.h"

#include <fenv.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/arithmetic.h"

/* The C library hands out its own "C" locale here: nothing is allocated. */
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

/* The double nearest to the digits, with its last bit set where it is not exact: rounded once more,
 * to a format with fewer bits, it gives what the digits themselves would. */
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

double kj_read_float(const char *digits, kjit_type type)
{
  if (type == KJIT_F32) return read_f32(digits);
  if (type != KJIT_F16 && type != KJIT_BF16) return read_f64(digits);
  double value = read_to_odd(digits);
  return isfinite(kj_number_of(kj_float_value(type, value))) ? value : INFINITY;
}

/* 17 digits give every double back, 9 every float; fewer are tried first. */
static void format_shortest(double value, bool is_f32, char *text, size_t size)
{
  locale_t locale = c_locale(), old = uselocale(locale);
  for (int digits = is_f32 ? FLT_DIG : DBL_DIG; digits <= 17; digits++) {
    snprintf(text, size, "%.*g", digits, value);
    double back = strtod_l(text, NULL, locale);
    if (is_f32 ? (float)back == (float)value && strtof_l(text, NULL, locale) == (float)value
               : back == value)
      break;
  }
  uselocale(old);
  freelocale(locale);
}

void kj_print_float(double value, kjit_type type, kj_buffer *buffer)
{
  char text[40];
  format_shortest(value, type == KJIT_F32, text, sizeof text);
  kj_append_text(buffer, text);
  if (!strpbrk(text, ".e")) kj_append_text(buffer, ".0");
}
