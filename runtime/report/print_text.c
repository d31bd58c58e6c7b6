/* Lines of kernels as text, the same on every target. Floats have the shortest digits that read
 * back as the number, laid out as Python does. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/arithmetic.h"
#include "report/report.h"

/* ---- numbers ---- */

enum { DOUBLE_PRECISION = 53, MOST_DIGITS = 17 };

/* Exponent of the least positive number. */
static int least_exponent(int precision)
{
  switch (precision) {
  case 8: return -133;
  case 11: return -24;
  default: return -149;
  }
}

/* Every number of the format but this one is further away than half the distance to its neighbours.
 */
static bool reads_back(const char *digits, double value, int precision)
{
  double read = strtod(digits, NULL);
  if (precision >= DOUBLE_PRECISION) return read == value;
  int exponent, least = least_exponent(precision);
  double fraction = frexp(fabs(value), &exponent);
  int step = exponent - precision > least ? exponent - precision : least;
  double above = ldexp(0.5, step), below = fraction == 0.5 && step > least ? above / 2 : above,
         distance = fabs(read) - fabs(value);
  return distance < above && distance > -below;
}

typedef struct decimal {
  char digits[MOST_DIGITS + 1];
  int count, exponent; /* of the first digit */
} decimal;

/* "d.ddde+xx" in any locale. */
static decimal take_apart(const char *text)
{
  decimal d = { .count = 0 };
  const char *at = text;
  for (; *at && *at != 'e'; at++)
    if (*at >= '0' && *at <= '9' && d.count < MOST_DIGITS) d.digits[d.count++] = *at;
  d.exponent = *at ? atoi(at + 1) : 0;
  while (d.count > 1 && d.digits[d.count - 1] == '0') d.count--;
  d.digits[d.count] = 0;
  return d;
}

static decimal find_shortest(double value, int precision)
{
  char text[KJ_NUMBER_BYTES];
  for (int digits = 0; digits < MOST_DIGITS; digits++) {
    snprintf(text, sizeof text, "%.*e", digits, fabs(value));
    if (reads_back(text, value, precision)) break;
  }
  return take_apart(text);
}

static void lay_out_exponent(const decimal *d, char *text, size_t size_bytes)
{
  snprintf(text, size_bytes,
           "%c%s%s"
           "e%c%02d",
           d->digits[0], d->count > 1 ? "." : "", d->digits + 1, d->exponent < 0 ? '-' : '+',
           abs(d->exponent));
}

static void lay_out_point(const decimal *d, bool is_part, char *text)
{
  char *to = text;
  if (d->exponent < 0) {
    *to++ = '0', *to++ = '.';
    for (int i = -1; i > d->exponent; i--) *to++ = '0';
    memcpy(to, d->digits, (size_t)d->count + 1);
    return;
  }
  for (int i = 0; i <= d->exponent || i < d->count; i++) {
    if (i == d->exponent + 1) *to++ = '.';
    *to++ = i < d->count ? d->digits[i] : '0';
  }
  if (d->count <= d->exponent + 1 && !is_part) *to++ = '.', *to++ = '0';
  *to = 0;
}

void kj_format_number(double value, int precision, bool is_part, char text[KJ_NUMBER_BYTES])
{
  enum { LEAST_POINT = -4, MOST_POINT = 16 };
  if (isnan(value)) {
    memcpy(text, "nan", sizeof "nan");
    return;
  }
  if (signbit(value)) *text++ = '-';
  if (isinf(value)) {
    memcpy(text, "inf", sizeof "inf");
    return;
  }
  decimal d = find_shortest(value, precision);
  if (d.exponent < LEAST_POINT || d.exponent >= MOST_POINT)
    lay_out_exponent(&d, text, KJ_NUMBER_BYTES - 1);
  else lay_out_point(&d, is_part, text);
}

/* ---- values ---- */

enum { F16_PRECISION = 11, BF16_PRECISION = 8, F32_PRECISION = 24, F64_PRECISION = 53 };

/* The word holds the bits of the type, and perhaps others above them. */
static double float_of(kjit_type type, uint64_t word)
{
  ki_value value;
  (void)ki_decode_value(type, &word, &value);
  return ki_number_of(value);
}

static void append_number(kj_buffer *text, double value, int precision, bool is_part)
{
  char number[KJ_NUMBER_BYTES];
  kj_format_number(value, precision, is_part, number);
  kj_append_text(text, number);
}

static void append_complex(kj_buffer *text, double real, double imaginary, int precision)
{
  kj_append_text(text, "(");
  append_number(text, real, precision, true);
  if (isnan(imaginary) || !signbit(imaginary)) kj_append_text(text, "+");
  append_number(text, imaginary, precision, true);
  kj_append_text(text, "j)");
}

/* How many words it took. */
static uint32_t append_value(kj_buffer *text, char letter, const uint64_t *words)
{
  uint64_t word = words[0];
  switch (letter) {
  case 'b': kj_append_text(text, word ? "true" : "false"); return 1;
  case 'B': kj_append_text(text, word ? "True" : "False"); return 1;
  case 'i': kj_append_format(text, "%" PRId64, (int64_t)word); return 1;
  case 'u': kj_append_format(text, "%" PRIu64, word); return 1;
  case 'p': kj_append_format(text, "0x%" PRIx64, word); return 1;
  case 'h': append_number(text, float_of(KJIT_F16, word), F16_PRECISION, false); return 1;
  case 'y': append_number(text, float_of(KJIT_BF16, word), BF16_PRECISION, false); return 1;
  case 'f': append_number(text, float_of(KJIT_F32, word), F32_PRECISION, false); return 1;
  case 'd': append_number(text, float_of(KJIT_F64, word), F64_PRECISION, false); return 1;
  case 'F':
    append_complex(text, float_of(KJIT_F32, word), float_of(KJIT_F32, words[1]), F32_PRECISION);
    return 2;
  default:
    append_complex(text, float_of(KJIT_F64, word), float_of(KJIT_F64, words[1]), F64_PRECISION);
    return 2;
  }
}

/* ---- lines ---- */

static const char *find_line(const char *prints, uint32_t site)
{
  for (; site && prints; site--) prints = (prints = strchr(prints, '\n')) ? prints + 1 : NULL;
  return prints;
}

static uint32_t words_of(char letter) { return letter == 'F' || letter == 'D' ? 2 : 1; }

void kj_format_line(const char *prints, uint64_t header, const uint64_t *values, kj_buffer *text)
{
  enum { ESCAPE = 1, VALUE = 2, SHIFT = 64 };
  const char *at = find_line(prints, kn_print_site(header));
  uint32_t left = kn_print_count(header);
  for (; at && *at && *at != '\n'; at++) {
    bool is_mark = (*at == ESCAPE || *at == VALUE) && at[1] && at[1] != '\n';
    if (!is_mark) {
      kj_append(text, at, 1);
    } else if (*at++ == ESCAPE) {
      kj_append_format(text, "%c", *at - SHIFT);
    } else if (words_of(*at) <= left) {
      uint32_t taken = append_value(text, *at, values);
      values += taken;
      left -= taken;
    }
  }
  kj_append_text(text, "\n");
}
