/* Conversions between floats that LLVM calls if the processor has no instruction for them. libgcc
 * and compiler-rt have functions of these names, but the C library of a machine need not export
 * them. Processors of the level x86-64-v2 need them for f16. */
#include "native/functions.h"

#include <stdint.h>
#include <string.h>

/* A format of 16 bits: the number of bits of its mantissa. The other bits are the sign and the
 * exponent. */
typedef struct format {
  unsigned mantissa_bits;
  int bias;
} format;
static const format half = { 10, 15 }, brain = { 7, 127 };

static uint16_t infinity_of(const format *f)
{
  return (uint16_t)(0x7fff >> f->mantissa_bits << f->mantissa_bits);
}

/* Rounds to nearest even. A NaN keeps its sign and the first bits of its payload, and becomes
 * quiet. The processor's instructions do the same. */
static uint16_t narrow(const format *f, double x)
{
  enum { MANTISSA_BITS = 52, BIAS = 1023 };
  const uint64_t implicit = (uint64_t)1 << MANTISSA_BITS,
                 infinity = (uint64_t)0x7ff << MANTISSA_BITS;
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  uint16_t sign = (uint16_t)(bits >> 48 & 0x8000);
  bits &= ~((uint64_t)1 << 63);
  unsigned shift = MANTISSA_BITS - f->mantissa_bits;
  if (bits > infinity) {
    unsigned quiet = 1u << (f->mantissa_bits - 1), payload = (unsigned)((bits - infinity) >> shift);
    return (uint16_t)(sign | infinity_of(f) | quiet | payload);
  }
  int exponent = (int)(bits >> MANTISSA_BITS) - BIAS, smallest = 1 - f->bias;
  unsigned base = 0;
  if (exponent < smallest) shift += (unsigned)(smallest - exponent); /* subnormal */
  else base = (unsigned)(exponent - smallest) << f->mantissa_bits;
  if (shift > MANTISSA_BITS + 1) return sign; /* less than half of the smallest number */
  if (exponent > f->bias) return (uint16_t)(sign | infinity_of(f));
  uint64_t significand = (bits & (implicit - 1)) | implicit;
  uint64_t below_half = ((uint64_t)1 << (shift - 1)) - 1;
  uint64_t rounded = (significand + below_half + (significand >> shift & 1)) >> shift;
  /* a carry out of the mantissa increments the exponent, which is correct */
  return (uint16_t)(sign | (base + (unsigned)rounded));
}

static float extend_half_bits(uint16_t bits)
{
  uint32_t sign = (uint32_t)(bits & 0x8000) << 16, magnitude = bits & 0x7fff, result;
  if (magnitude < 0x400) { /* subnormal: a multiple of 2^-24 */
    float small = (float)magnitude * 0x1p-24F;
    memcpy(&result, &small, sizeof result);
  } else if (magnitude < 0x7c00) {
    result = (magnitude << 13) + ((uint32_t)(127 - 15) << 23);
  } else {
    result = 0x7f800000 | (magnitude & 0x3ff) << 13;
    if (magnitude > 0x7c00) result |= 0x400000; /* a quiet NaN */
  }
  result |= sign;
  float value;
  memcpy(&value, &result, sizeof value);
  return value;
}

/* Not every C compiler has a type for f16. A register of a float argument or result has an f16 in
 * its low 16 bits, and the other bits are undefined. */
static uint16_t low_bits(float holder)
{
  uint32_t bits;
  memcpy(&bits, &holder, sizeof bits);
  return (uint16_t)bits;
}

static float hold(uint16_t low)
{
  uint32_t bits = low;
  float holder;
  memcpy(&holder, &bits, sizeof holder);
  return holder;
}

static float extend_half(float x) { return extend_half_bits(low_bits(x)); }
static double extend_half_to_double(float x) { return (double)extend_half_bits(low_bits(x)); }
static float narrow_to_half(float x) { return hold(narrow(&half, (double)x)); }
static float narrow_double_to_half(double x) { return hold(narrow(&half, x)); }
static float narrow_to_brain(float x) { return hold(narrow(&brain, (double)x)); }
static float narrow_double_to_brain(double x) { return hold(narrow(&brain, x)); }

const kn_host_function kn_conversions[] = { { "__extendhfsf2", (void *)extend_half },
                                            { "__extendhfdf2", (void *)extend_half_to_double },
                                            { "__truncsfhf2", (void *)narrow_to_half },
                                            { "__truncdfhf2", (void *)narrow_double_to_half },
                                            { "__truncsfbf2", (void *)narrow_to_brain },
                                            { "__truncdfbf2", (void *)narrow_double_to_brain },
                                            { NULL, NULL } };
