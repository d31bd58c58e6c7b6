/* Scalar values of a host: conversion between types, bits in memory. */
#include <math.h>
#include <string.h>

#include "dispatch/evaluate.h"
#include "ir/number.h"

typedef struct integer_range {
  __int128 least, most;
} integer_range;

static bool find_range(kjit_type type, integer_range *range)
{
  switch (type) {
  case KJIT_BOOL: *range = (integer_range){ 0, 1 }; return true;
  case KJIT_I8: *range = (integer_range){ INT8_MIN, INT8_MAX }; return true;
  case KJIT_I16: *range = (integer_range){ INT16_MIN, INT16_MAX }; return true;
  case KJIT_I32: *range = (integer_range){ INT32_MIN, INT32_MAX }; return true;
  case KJIT_I64: *range = (integer_range){ INT64_MIN, INT64_MAX }; return true;
  case KJIT_U8: *range = (integer_range){ 0, UINT8_MAX }; return true;
  case KJIT_U16: *range = (integer_range){ 0, UINT16_MAX }; return true;
  case KJIT_U32: *range = (integer_range){ 0, UINT32_MAX }; return true;
  case KJIT_U64: *range = (integer_range){ 0, UINT64_MAX }; return true;
  case KJ_WEAK_INT: *range = (integer_range){ INT64_MIN, UINT64_MAX }; return true;
  default: return false;
  }
}

static bool is_float(kjit_type type)
{
  return type == KJIT_F16 || type == KJIT_BF16 || type == KJIT_F32 || type == KJIT_F64 ||
         type == KJ_WEAK_FLOAT;
}

/* ---- small floats ---- */

/* Rounds to nearest, ties to even: the format's significand counts in units of 2^(e -
 * fraction_bits). */
static uint64_t encode_small(double x, int fraction_bits, int exponent_bits)
{
  uint64_t sign = signbit(x) ? (uint64_t)1 << (fraction_bits + exponent_bits) : 0,
           infinity = (((uint64_t)1 << exponent_bits) - 1) << fraction_bits;
  int bias = (1 << (exponent_bits - 1)) - 1, exponent;
  if (isnan(x)) return infinity | (uint64_t)1 << (fraction_bits - 1);
  if (isinf(x)) return sign | infinity;
  if (x == 0) return sign;
  frexp(fabs(x), &exponent);
  int e = exponent - 1 < 1 - bias ? 1 - bias : exponent - 1;
  uint64_t significand = (uint64_t)rint(ldexp(fabs(x), fraction_bits - e));
  /* the leading 1 of a normal number adds 1 to the exponent's field */
  uint64_t magnitude = ((uint64_t)(e + bias - 1) << fraction_bits) + significand;
  return sign | (magnitude < infinity ? magnitude : infinity);
}

static double round_to(double x, kjit_type type)
{
  switch (type) {
  case KJIT_F16: return kj_decode_f16((uint16_t)encode_small(x, 10, 5));
  case KJIT_BF16: return kj_decode_bf16((uint16_t)encode_small(x, 7, 8));
  case KJIT_F32: return (double)(float)x;
  default: return x;
  }
}

/* ---- conversion ---- */

static bool convert_to_integer(const kj_value *value, kjit_type type, kj_value *converted)
{
  integer_range range;
  __int128 integer = value->integer;
  if (value->is_float) {
    if (!(fabs(value->number) < 0x1p64) || value->number != trunc(value->number)) return false;
    integer = (__int128)value->number;
  }
  if (!find_range(type, &range) || integer < range.least || integer > range.most) return false;
  *converted = (kj_value){ .type = type, .integer = integer };
  return true;
}

static bool convert_to_float(const kj_value *value, kjit_type type, kj_value *converted)
{
  *converted = (kj_value){ .type = type, .is_float = true, .number = value->number };
  if (value->is_float) {
    converted->number = round_to(value->number, type);
    return true;
  }
  converted->number = round_to((double)value->integer, type);
  return (__int128)converted->number == value->integer && isfinite(converted->number);
}

bool kj_convert_value(const kj_value *value, kjit_type type, kj_value *converted)
{
  return is_float(type) ? convert_to_float(value, type, converted)
                        : convert_to_integer(value, type, converted);
}

bool kj_encode_value(const kj_value *value, uint64_t *bits)
{
  float single = (float)value->number;
  uint32_t word;
  switch (value->type) {
  case KJIT_F16: *bits = encode_small(value->number, 10, 5); return true;
  case KJIT_BF16: *bits = encode_small(value->number, 7, 8); return true;
  case KJIT_F32:
    memcpy(&word, &single, sizeof word);
    *bits = word;
    return true;
  case KJIT_F64:
  case KJ_WEAK_FLOAT: memcpy(bits, &value->number, sizeof *bits); return true;
  case KJIT_C64:
  case KJIT_C128: return false;
  default: *bits = (uint64_t)value->integer; return true;
  }
}

#define READ_INTEGER(type_) \
  do { \
    type_ x; \
    memcpy(&x, memory, sizeof x); \
    value->integer = x; \
  } while (0)

bool kj_decode_value(kjit_type type, const void *memory, kj_value *value)
{
  uint16_t half;
  float single;
  *value = (kj_value){ .type = type, .is_float = is_float(type) };
  switch (type) {
  case KJIT_BOOL: value->integer = *(const unsigned char *)memory != 0; return true;
  case KJIT_I8: READ_INTEGER(int8_t); return true;
  case KJIT_I16: READ_INTEGER(int16_t); return true;
  case KJIT_I32: READ_INTEGER(int32_t); return true;
  case KJIT_I64: READ_INTEGER(int64_t); return true;
  case KJIT_U8: READ_INTEGER(uint8_t); return true;
  case KJIT_U16: READ_INTEGER(uint16_t); return true;
  case KJIT_U32: READ_INTEGER(uint32_t); return true;
  case KJIT_U64: READ_INTEGER(uint64_t); return true;
  case KJIT_F16:
  case KJIT_BF16:
    memcpy(&half, memory, sizeof half);
    value->number = type == KJIT_F16 ? kj_decode_f16(half) : kj_decode_bf16(half);
    return true;
  case KJIT_F32:
    memcpy(&single, memory, sizeof single);
    value->number = single;
    return true;
  case KJIT_F64: memcpy(&value->number, memory, sizeof value->number); return true;
  default: return false;
  }
}

kj_value kj_number_value(double number)
{
  /* -0.0 stays a float */
  bool is_weak_int = number >= INT32_MIN && number <= INT32_MAX && number == trunc(number) &&
                     !(number == 0 && signbit(number));
  if (is_weak_int) return (kj_value){ .type = KJ_WEAK_INT, .integer = (__int128)number };
  return (kj_value){ .type = KJ_WEAK_FLOAT, .is_float = true, .number = number };
}

kj_value kj_argument_number(const kjit_arg *argument)
{
  double number = argument->value.f64;
  return argument->type == KJIT_F64
           ? (kj_value){ .type = KJ_WEAK_FLOAT, .is_float = true, .number = number }
           : kj_number_value(number);
}

void kj_print_value(const kj_types *types, const kj_value *value, kj_buffer *buffer)
{
  bool is_weak = kj_is_weak(value->type);
  if (value->type == KJIT_BOOL) {
    kj_append_text(buffer, value->integer ? "true" : "false");
    return;
  }
  if (value->is_float && !isfinite(value->number))
    kj_append_text(buffer, isnan(value->number) ? "nan" : value->number < 0 ? "-inf" : "inf");
  else if (value->is_float) {
    if (signbit(value->number)) kj_append_text(buffer, "-");
    kj_print_float(fabs(value->number), value->type == KJIT_F32 ? KJIT_F32 : KJIT_F64, buffer);
  } else if (value->integer < 0) kj_append_format(buffer, "%lld", (long long)value->integer);
  else kj_append_format(buffer, "%llu", (unsigned long long)value->integer);
  if (!is_weak) kj_append_text(buffer, kj_type(types, value->type)->name);
}
