/* Shortest decimals by the free-format algorithm of Steele and White ("How to print floating-point
 * numbers accurately", 1990), with exact integers. A decimal number reads back as the original
 * number if their difference is less than half the distance to the next floating-point number. The
 * algorithm therefore produces digits until the remainder is less than this bound. */
#include "support/decimal.h"

#include <fenv.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/assert.h"

/* ---- large integers ---- */

/* The denominator of the smallest f64 is 2^1074. Three further bits are needed for quarters of a
 * step, and four for a factor of 10. The largest f64 is less than 2^1024. */
enum { WORDS = 36, WORD_BITS = 32 };
typedef struct large {
  uint32_t words[WORDS]; /* least significant first */
  int count;             /* the words from this index on are 0 */
} large;

static void multiply(large *x, uint32_t by)
{
  uint64_t carry = 0;
  for (int i = 0; i < x->count; i++) {
    carry += (uint64_t)x->words[i] * by;
    x->words[i] = (uint32_t)carry;
    carry >>= WORD_BITS;
  }
  if (!carry) return;
  KJ_ASSERT(x->count < WORDS);
  x->words[x->count++] = (uint32_t)carry;
}

static large make_power(int of_two)
{
  large x = { .count = of_two / WORD_BITS + 1 };
  KJ_ASSERT(of_two >= 0 && x.count <= WORDS);
  x.words[of_two / WORD_BITS] = (uint32_t)1 << of_two % WORD_BITS;
  return x;
}

static void multiply_by_mantissa(large *x, uint64_t mantissa)
{
  enum { HALF = 27 };
  KJ_ASSERT(mantissa >> 2 * HALF == 0);
  large low = *x;
  multiply(&low, (uint32_t)(mantissa & (((uint64_t)1 << HALF) - 1)));
  multiply(x, (uint32_t)(mantissa >> HALF));
  multiply(x, (uint32_t)1 << HALF);
  uint64_t carry = 0;
  for (int i = 0; i < WORDS; i++) {
    carry += (uint64_t)x->words[i] + low.words[i];
    x->words[i] = (uint32_t)carry;
    if (carry) x->count = i >= x->count ? i + 1 : x->count;
    carry >>= WORD_BITS;
  }
}

static void multiply_by_power(large *x, int of_ten)
{
  for (; of_ten > 0; of_ten--) multiply(x, 10);
}

static int compare(const large *x, const large *y)
{
  for (int i = WORDS - 1; i >= 0; i--)
    if (x->words[i] != y->words[i]) return x->words[i] < y->words[i] ? -1 : 1;
  return 0;
}

static large add(const large *x, const large *y)
{
  large sum = { .count = WORDS };
  uint64_t carry = 0;
  for (int i = 0; i < WORDS; i++) {
    carry += (uint64_t)x->words[i] + y->words[i];
    sum.words[i] = (uint32_t)carry;
    carry >>= WORD_BITS;
  }
  KJ_ASSERT(!carry);
  return sum;
}

static void subtract(large *x, const large *y)
{
  int64_t borrow = 0;
  KJ_ASSERT(compare(x, y) >= 0);
  for (int i = 0; i < WORDS; i++) {
    borrow += (int64_t)x->words[i] - y->words[i];
    x->words[i] = (uint32_t)borrow;
    borrow >>= WORD_BITS;
  }
}

/* ---- formats ---- */

static int precision_of(kjit_type type)
{
  return type == KJIT_F16 ? 11 : type == KJIT_BF16 ? 8 : type == KJIT_F32 ? 24 : 53;
}

/* Returns the exponent of the smallest positive number of the type, which is a power of two. */
static int least_exponent_of(kjit_type type)
{
  return type == KJIT_F16 ? -24 : type == KJIT_BF16 ? -133 : type == KJIT_F32 ? -149 : -1074;
}

/* The number is rest / whole. Every decimal number between (rest - below) / whole and (rest +
 * above) / whole reads back as this number. */
typedef struct scaled {
  large rest, whole, below, above;
  bool is_even; /* the two limits themselves also read back as the number */
} scaled;

/* Expresses the number and the limits in units of a quarter of the distance to the next number. A
 * quarter is needed for powers of two: the distance to the number below is half the distance to the
 * number above, and the limit is half of that. */
static scaled scale(double magnitude, kjit_type type)
{
  enum { QUARTERS = 2 };
  int exponent, precision = precision_of(type), least = least_exponent_of(type);
  (void)frexp(magnitude, &exponent);
  int step = exponent - precision > least ? exponent - precision : least;
  uint64_t mantissa = (uint64_t)ldexp(magnitude, -step);
  KJ_ASSERT(ldexp((double)mantissa, step) == magnitude && mantissa >> precision == 0);
  bool is_power = mantissa == (uint64_t)1 << (precision - 1) && step > least;
  int left = step > 0 ? step : 0;
  scaled s = { .rest = make_power(QUARTERS + left),
               .whole = make_power(QUARTERS + (step < 0 ? -step : 0)),
               .below = make_power(left + !is_power),
               .above = make_power(left + 1),
               .is_even = mantissa % 2 == 0 };
  multiply_by_mantissa(&s.rest, mantissa);
  return s;
}

/* Scales rest / whole so that it is at least 1 and less than 10. Returns the exponent of the power
 * of ten that was removed. */
static int scale_to_one_digit(scaled *s, double magnitude)
{
  int exponent = (int)floor(log10(magnitude)); /* may be off by one */
  multiply_by_power(&s->whole, exponent);
  large *scaled_up[] = { &s->rest, &s->below, &s->above };
  for (int i = 0; i < 3; i++) multiply_by_power(scaled_up[i], -exponent);
  if (compare(&s->rest, &s->whole) < 0) {
    for (int i = 0; i < 3; i++) multiply(scaled_up[i], 10);
    return exponent - 1;
  }
  large ten = s->whole;
  multiply(&ten, 10);
  if (compare(&s->rest, &ten) < 0) return exponent;
  s->whole = ten;
  return exponent + 1;
}

static char take_digit(scaled *s)
{
  char digit = '0';
  for (; compare(&s->rest, &s->whole) >= 0; digit++) subtract(&s->rest, &s->whole);
  KJ_ASSERT(digit <= '9');
  return digit;
}

/* Returns whether the last digit is rounded up: to the nearer digit or, in a tie, to the even
 * digit. */
static bool rounds_up(const scaled *s, char digit)
{
  large twice = add(&s->rest, &s->rest);
  int order = compare(&twice, &s->whole);
  return order > 0 || (order == 0 && (digit - '0') % 2 == 1);
}

/* ---- short decimals ---- */

/* Returns whether a decimal number certainly reads back as the original number: their difference
 * must be less than a bound, which is at most half the distance to the next number. `near` is the
 * f64 that is nearest to the decimal number. */
static bool reads_back(double near, double magnitude, kjit_type type)
{
  const double margin = 1 - 0x1p-20; /* allows for the rounding of `near` */
  int precision = precision_of(type);
  if (precision == 53) return near == magnitude;
  return fabs(near - magnitude) < ldexp(magnitude, -precision - 1) * margin;
}

/* Finds the shortest decimal number of most literals as `whole` / 10^k, without large integers.
 * `whole` and 10^k are exact in f64, so their quotient is the f64 that is nearest to the decimal
 * number. Two different decimal numbers with so few digits never read back as the same number, so
 * the decimal number is the shortest. */
static bool find_short(double magnitude, kjit_type type, kj_decimal *d)
{
  enum { EXACT_POWERS = 22 };
  int precision = precision_of(type), digits = (int)((precision - 1) * 0.30103);
  double most = 1, power = 1, whole = 0;
  for (int i = 0; i < digits; i++) most *= 10;
  if (magnitude < ldexp(1, least_exponent_of(type) + precision - 1)) return false; /* subnormal */
  if (fegetround() != FE_TONEAREST) return false;
  for (int k = 0; k <= EXACT_POWERS; k++, power *= 10) {
    whole = nearbyint(magnitude * power);
    if (whole >= most) return false;
    if (whole < 1 || !reads_back(whole / power, magnitude, type)) continue;
    d->count = snprintf(d->digits, sizeof d->digits, "%llu", (unsigned long long)whole);
    d->exponent = d->count - 1 - k;
    while (d->digits[d->count - 1] == '0') d->count--;
    d->digits[d->count] = 0;
    return true;
  }
  return false;
}

kj_decimal kj_find_shortest(double magnitude, kjit_type type)
{
  KJ_ASSERT(isfinite(magnitude) && !signbit(magnitude));
  kj_decimal d = { .digits = "0", .count = 1 };
  if (magnitude == 0 || find_short(magnitude, type, &d)) return d;
  scaled s = scale(magnitude, type);
  d.exponent = scale_to_one_digit(&s, magnitude);
  for (d.count = 0;;) {
    KJ_ASSERT(d.count < KJ_MOST_DIGITS);
    char digit = take_digit(&s);
    large end = add(&s.rest, &s.above);
    int below = compare(&s.rest, &s.below), above = compare(&s.whole, &end);
    bool is_enough = below < s.is_even, next_is_enough = above < s.is_even;
    bool is_next = next_is_enough && (!is_enough || rounds_up(&s, digit));
    d.digits[d.count++] = (char)(digit + is_next);
    if (is_enough || next_is_enough) break;
    multiply(&s.rest, 10);
    multiply(&s.below, 10);
    multiply(&s.above, 10);
  }
  /* the last digit is never rounded up to 10, because fewer digits would then have been
   * sufficient */
  if (d.digits[d.count - 1] > '9') {
    KJ_ASSERT(d.count == 1);
    d.digits[0] = '1';
    d.exponent++;
  }
  return d;
}

/* ---- text ---- */

static void lay_out_exponent(const kj_decimal *d, char *text)
{
  snprintf(text, KJ_DECIMAL_BYTES,
           "%c%s%s"
           "e%c%02d",
           d->digits[0], d->count > 1 ? "." : "", d->digits + 1, d->exponent < 0 ? '-' : '+',
           abs(d->exponent));
}

void kj_lay_out_decimal(const kj_decimal *d, int most_point, char text[KJ_DECIMAL_BYTES])
{
  enum { LEAST_POINT = -4 };
  KJ_ASSERT(most_point <= KJ_MOST_DIGITS && d->count == (int)strlen(d->digits));
  char *to = text;
  if (d->exponent < LEAST_POINT || d->exponent >= most_point) {
    lay_out_exponent(d, text);
    return;
  }
  if (d->exponent < 0) {
    *to++ = '0', *to++ = '.';
    for (int i = -1; i > d->exponent; i--) *to++ = '0';
  }
  for (int i = 0; i <= d->exponent || i < d->count; i++) {
    if (i == d->exponent + 1 && i) *to++ = '.';
    *to++ = i < d->count ? d->digits[i] : '0';
  }
  *to = 0;
}
