/* Number formats, and the arguments at which functions are measured. */
#include <math.h>
#include <string.h>

#include "accuracy.h"

const format formats[FORMAT_COUNT] = {
  [FORMAT_F32] = { "f32", 24, -126, 127, 4, 2 },
  [FORMAT_F64] = { "f64", 53, -1022, 1023, 8, 2 },
  [FORMAT_F16] = { "f16", 11, -14, 15, 2, 2 },
  [FORMAT_BF16] = { "bf16", 8, -126, 127, 2, 4 },
};

/* ---- bits ---- */

static uint64_t mantissa_mask(const format *f) { return ((uint64_t)1 << (f->precision - 1)) - 1; }
static uint64_t infinity_bits(const format *f)
{
  return (uint64_t)(f->most_exponent - f->least_exponent + 2) << (f->precision - 1);
}
static uint64_t sign_bit(const format *f) { return (uint64_t)1 << (8 * f->bytes - 1); }

double decode(const format *f, uint64_t bits)
{
  uint64_t size = bits & (sign_bit(f) - 1), field = size >> (f->precision - 1),
           mantissa = size & mantissa_mask(f);
  double value;
  if (size >= infinity_bits(f)) value = size > infinity_bits(f) ? NAN : INFINITY;
  else if (field == 0) value = ldexp((double)mantissa, f->least_exponent - f->precision + 1);
  else
    value = ldexp((double)(mantissa | (mantissa_mask(f) + 1)),
                  (int)field - 1 + f->least_exponent - f->precision + 1);
  return bits & sign_bit(f) ? -value : value;
}

uint64_t encode(const format *f, double value)
{
  uint64_t sign = signbit(value) ? sign_bit(f) : 0;
  if (isnan(value)) return infinity_bits(f) | (mantissa_mask(f) + 1) / 2;
  if (isinf(value)) return sign | infinity_bits(f);
  if (value == 0) return sign;
  int least = f->least_exponent - f->precision + 1, exponent = ilogb(value) - f->precision + 1;
  if (exponent < least) exponent = least;
  uint64_t bits = (uint64_t)rint(ldexp(fabs(value), -exponent)) +
                  ((uint64_t)(exponent - least) << (f->precision - 1));
  return sign | (bits > infinity_bits(f) ? infinity_bits(f) : bits);
}

uint64_t load_bits(const format *f, const void *array, size_t i)
{
  uint64_t bits = 0;
  memcpy(&bits, (const char *)array + i * f->bytes, f->bytes); /* little-endian */
  return bits;
}

void store_bits(const format *f, void *array, size_t i, uint64_t bits)
{
  memcpy((char *)array + i * f->bytes, &bits, f->bytes);
}

/* ---- random numbers: splitmix64 ---- */

uint64_t next_random(random_state *random)
{
  uint64_t z = random->state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

static double uniform(random_state *random, double low, double high)
{
  return low + (high - low) * (double)(next_random(random) >> 11) * 0x1p-53;
}

/* ---- special values ---- */

static const double common[] = { 0.0,
                                 1.0,
                                 0.5,
                                 2.0,
                                 3.0,
                                 1.5,
                                 2.5,
                                 10.0,
                                 0.25,
                                 0.75,
                                 100.5,
                                 1e5,
                                 16777215.0,
                                 4503599627370497.0,
                                 1e15,
                                 1e300,
                                 0x1.7f50d35dd0d33p-896 };
enum {
  COMMON_COUNT = sizeof common / sizeof *common,
  EDGE_COUNT = 12,
  SPECIAL_COUNT = 2 * (COMMON_COUNT + EDGE_COUNT)
};

static uint64_t edge(const format *f, size_t i)
{
  uint64_t normal = mantissa_mask(f) + 1, infinity = infinity_bits(f), one = encode(f, 1);
  const uint64_t edges[EDGE_COUNT] = { infinity,
                                       infinity | normal / 2,
                                       1,
                                       normal - 1,
                                       normal,
                                       normal + 1,
                                       infinity - 1,
                                       one - 1,
                                       one + 1,
                                       encode(f, 1.5) + 1,
                                       3,
                                       encode(f, 3.14159265358979323846) };
  return edges[i];
}

static uint64_t special(const format *f, size_t i)
{
  uint64_t sign = i % 2 ? sign_bit(f) : 0;
  i /= 2;
  return sign ^ (i < COMMON_COUNT ? encode(f, common[i]) : edge(f, i - COMMON_COUNT));
}

/* ---- tuples ---- */

/* Returns a random argument. Half of the arguments lie in the function's interval, a quarter have
 * any magnitude, and a quarter have magnitudes near 1. Some arguments in the interval are near
 * multiples of pi / 2. */
static uint64_t random_argument(const measured *m, const format *f, random_state *random)
{
  uint64_t choice = next_random(random) % 8, all = sign_bit(f) | (sign_bit(f) - 1);
  if (m->flags & ONLY_DOMAIN || choice < 3) return encode(f, uniform(random, m->low, m->high));
  if (choice == 3)
    return encode(f, rint(uniform(random, m->low, m->high)) * 0.78539816339744830962) ^
           next_random(random) % 4;
  if (choice < 6) return next_random(random) & all;
  double sign = next_random(random) % 2 ? -1 : 1;
  return encode(f, sign * ldexp(uniform(random, 1, 2), (int)uniform(random, -f->precision, 4)));
}

static uint64_t bounded(const measured *m, const format *f, unsigned position, uint64_t bits)
{
  double value = decode(f, bits);
  if (m->most && isfinite(value) && fabs(value) > m->most) value = remainder(value, m->most);
  bool is_whole =
    (position == 0 && m->flags & FIRST_INTEGER) || (position == 1 && m->flags & SECOND_INTEGER);
  if (is_whole) value = isfinite(value) ? rint(value) : 0;
  return encode(f, value);
}

void make_inputs(const measured *m, const format *f, random_state *random,
                 uint64_t *arguments[MOST_ARGUMENTS], size_t count)
{
  size_t combinations = 1;
  for (unsigned k = 0; k < m->arguments; k++) combinations *= SPECIAL_COUNT;
  if (m->flags & ONLY_DOMAIN) combinations = 0;
  bool is_all = combinations <= count / 2;
  for (size_t i = 0; i < count; i++) {
    size_t rest = combinations;
    if (combinations && i < count / 2)
      rest = is_all ? i : (size_t)(next_random(random) % combinations);
    bool is_special = rest < combinations;
    for (unsigned k = 0; k < m->arguments; k++) {
      uint64_t bits = is_special ? special(f, rest % SPECIAL_COUNT) : random_argument(m, f, random);
      rest /= SPECIAL_COUNT;
      arguments[k][i] = bounded(m, f, k, bits);
    }
  }
}
