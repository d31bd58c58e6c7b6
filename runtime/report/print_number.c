/* Floats as text, the same on every target: the shortest digits that read back as the number, laid
 * out as Python does. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/print.h"

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
