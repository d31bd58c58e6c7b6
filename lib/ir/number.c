#include "ir/number.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Halfway between the largest finite value and the next power of two: from here on rounding gives
 * infinity. */
static const double F16_OVERFLOW = 65520.0;
static const double BF16_OVERFLOW = 0x1.ffp127;

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

double kj_read_float(const char *digits, kjit_type type)
{
  if (type == KJIT_F32) return read_f32(digits);
  double value = read_f64(digits);
  if (type == KJIT_F16 && value >= F16_OVERFLOW) return INFINITY;
  if (type == KJIT_BF16 && value >= BF16_OVERFLOW) return INFINITY;
  return value;
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

double kj_decode_f16(uint16_t bits)
{
  int exponent = bits >> 10 & 31, fraction = bits & 1023;
  double magnitude = exponent == 31 ? (fraction ? NAN : INFINITY)
                     : exponent     ? ldexp(1024 + fraction, exponent - 25)
                                    : ldexp(fraction, -24);
  return bits >> 15 ? -magnitude : magnitude;
}

double kj_decode_bf16(uint16_t bits)
{
  uint32_t wide = (uint32_t)bits << 16;
  float value;
  memcpy(&value, &wide, sizeof value);
  return value;
}
