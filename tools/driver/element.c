#include <driver/element.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/decimal.h"

enum {
  EXPONENT_BITS_F16 = 5,
  EXPONENT_BITS_BF16 = 8,
  MANTISSA_BITS_F16 = 10,
  MANTISSA_BITS_BF16 = 7
};

/* Type names of numpy.save. NumPy has no bf16. */
#define NUMPY_BOOL "|b1"
#define NUMPY_I8 "|i1"
#define NUMPY_I16 "<i2"
#define NUMPY_I32 "<i4"
#define NUMPY_I64 "<i8"
#define NUMPY_U8 "|u1"
#define NUMPY_U16 "<u2"
#define NUMPY_U32 "<u4"
#define NUMPY_U64 "<u8"
#define NUMPY_F16 "<f2"
#define NUMPY_BF16 NULL
#define NUMPY_F32 "<f4"
#define NUMPY_F64 "<f8"
#define NUMPY_C64 "<c8"
#define NUMPY_C128 "<c16"
#define MANTISSA(name) \
  (KJIT_##name == KJIT_F16                              ? MANTISSA_BITS_F16 \
   : KJIT_##name == KJIT_BF16                           ? MANTISSA_BITS_BF16 \
   : KJIT_##name == KJIT_F32 || KJIT_##name == KJIT_C64 ? 23 \
                                                        : 52)

const tool_element tool_elements[KJIT_SCALAR_COUNT] = {
#define KJIT_ROW(name, text, size, class_, code, bits) \
  [KJIT_##name] = { text, size, TOOL_##class_, code, bits, NUMPY_##name, MANTISSA(name) },
#include <kjit/types.def>
#undef KJIT_ROW
};

kjit_type tool_find_element(const char *text, size_t length)
{
  for (kjit_type type = KJIT_BOOL; type < KJIT_SCALAR_COUNT; type++)
    if (strlen(tool_elements[type].text) == length &&
        !memcmp(tool_elements[type].text, text, length))
      return type;
  return KJIT_ANY;
}

char *tool_element_names(void)
{
  char *names = tool_copy_text("", 0);
  for (kjit_type type = KJIT_BOOL; type < KJIT_SCALAR_COUNT; type++) {
    char *longer = tool_format("%s%s%s", names, *names ? ", " : "", tool_elements[type].text);
    free(names);
    names = longer;
  }
  return names;
}

double tool_number_real(const tool_number *number)
{
  if (number->kind == TOOL_NUMBER_UNSIGNED) return (double)number->u;
  if (number->kind == TOOL_NUMBER_REAL || number->kind == TOOL_NUMBER_COMPLEX) return number->re;
  return (double)number->i;
}

tool_number tool_make_integer(int64_t value)
{
  return (tool_number){ .kind = TOOL_NUMBER_SIGNED, .i = value };
}

tool_number tool_make_real(double value)
{
  return (tool_number){ .kind = TOOL_NUMBER_REAL, .re = value };
}

/* ---- 16-bit floats ---- */

/* Rounds to nearest even. The bits of the result are the sum of the exponent field and the mantissa
 * with its hidden bit. With this sum, a carry out of the mantissa, subnormals and infinity need no
 * special case. */
static uint16_t narrow(double value, int mantissa_bits, int exponent_bits)
{
  int bias = (1 << (exponent_bits - 1)) - 1;
  uint32_t sign = signbit(value) ? 0x8000u : 0, infinity = ((1u << exponent_bits) - 1)
                                                           << mantissa_bits;
  if (isnan(value)) return (uint16_t)(sign | infinity | 1u << (mantissa_bits - 1));
  if (isinf(value)) return (uint16_t)(sign | infinity);
  if (value == 0) return (uint16_t)sign;
  int exponent = ilogb(value);
  if (exponent > bias) return (uint16_t)(sign | infinity);
  if (exponent < 1 - bias) exponent = 1 - bias;
  uint32_t mantissa = (uint32_t)nearbyint(ldexp(fabs(value), mantissa_bits - exponent));
  uint32_t bits = ((uint32_t)(exponent + bias - 1) << mantissa_bits) + mantissa;
  return (uint16_t)(sign | (bits < infinity ? bits : infinity));
}

static double widen(uint16_t bits, int mantissa_bits, int exponent_bits)
{
  int bias = (1 << (exponent_bits - 1)) - 1,
      field = bits >> mantissa_bits & ((1 << exponent_bits) - 1);
  int mantissa = bits & ((1 << mantissa_bits) - 1);
  double magnitude;
  if (field == (1 << exponent_bits) - 1) magnitude = mantissa ? NAN : INFINITY;
  else if (field == 0) magnitude = ldexp(mantissa, 1 - bias - mantissa_bits);
  else magnitude = ldexp(mantissa + (1 << mantissa_bits), field - bias - mantissa_bits);
  return bits & 0x8000 ? -magnitude : magnitude;
}

/* ---- numbers and elements ---- */

static const char *misfit_integer(const tool_element *element, const tool_number *number)
{
  if (number->kind == TOOL_NUMBER_REAL || number->kind == TOOL_NUMBER_COMPLEX)
    return "it is not an integer";
  bool is_unsigned = element->class_ == TOOL_UNSIGNED;
  if (number->kind == TOOL_NUMBER_UNSIGNED)
    return is_unsigned && element->bits == 64 ? NULL : "it is too large";
  if (is_unsigned && number->i < 0) return "it is negative";
  if (element->bits == 64) return NULL;
  int64_t largest = ((int64_t)1 << (element->bits - (is_unsigned ? 0 : 1))) - 1;
  if (number->i > largest) return "it is too large";
  return !is_unsigned && number->i < -largest - 1 ? "it is too small" : NULL;
}

const char *tool_misfit(kjit_type type, const tool_number *number)
{
  const tool_element *element = &tool_elements[type];
  switch (element->class_) {
  case TOOL_BOOL:
    return number->kind == TOOL_NUMBER_BOOL ||
               (number->kind == TOOL_NUMBER_SIGNED && (number->i == 0 || number->i == 1))
             ? NULL
             : "it is not a truth value";
  case TOOL_SIGNED:
  case TOOL_UNSIGNED: return misfit_integer(element, number);
  case TOOL_FLOAT: return number->kind == TOOL_NUMBER_COMPLEX ? "it is complex" : NULL;
  case TOOL_COMPLEX: return NULL;
  }
  return NULL;
}

void tool_store(kjit_type type, void *element, const tool_number *number)
{
  double re = tool_number_real(number), im = number->kind == TOOL_NUMBER_COMPLEX ? number->im : 0;
  uint64_t bits = number->kind == TOOL_NUMBER_UNSIGNED ? number->u : (uint64_t)number->i;
  switch (type) {
  case KJIT_BOOL: *(uint8_t *)element = bits != 0; return;
  case KJIT_F16: *(uint16_t *)element = narrow(re, MANTISSA_BITS_F16, EXPONENT_BITS_F16); return;
  case KJIT_BF16: *(uint16_t *)element = narrow(re, MANTISSA_BITS_BF16, EXPONENT_BITS_BF16); return;
  case KJIT_F32: *(float *)element = (float)re; return;
  case KJIT_F64: *(double *)element = re; return;
  case KJIT_C64: ((float *)element)[0] = (float)re, ((float *)element)[1] = (float)im; return;
  case KJIT_C128: ((double *)element)[0] = re, ((double *)element)[1] = im; return;
  default: break;
  }
  switch (tool_elements[type].size_bytes) {
  case 1: *(uint8_t *)element = (uint8_t)bits; return;
  case 2: *(uint16_t *)element = (uint16_t)bits; return;
  case 4: *(uint32_t *)element = (uint32_t)bits; return;
  default: *(uint64_t *)element = bits; return;
  }
}

static tool_number make_unsigned(uint64_t value)
{
  if (value <= INT64_MAX) return tool_make_integer((int64_t)value);
  return (tool_number){ .kind = TOOL_NUMBER_UNSIGNED, .u = value };
}

static tool_number make_complex(double re, double im)
{
  return (tool_number){ .kind = TOOL_NUMBER_COMPLEX, .re = re, .im = im };
}

tool_number tool_load(kjit_type type, const void *element)
{
  switch (type) {
  case KJIT_BOOL:
    return (tool_number){ .kind = TOOL_NUMBER_BOOL, .i = *(const uint8_t *)element != 0 };
  case KJIT_I8: return tool_make_integer(*(const int8_t *)element);
  case KJIT_I16: return tool_make_integer(*(const int16_t *)element);
  case KJIT_I32: return tool_make_integer(*(const int32_t *)element);
  case KJIT_I64: return tool_make_integer(*(const int64_t *)element);
  case KJIT_U8: return tool_make_integer(*(const uint8_t *)element);
  case KJIT_U16: return tool_make_integer(*(const uint16_t *)element);
  case KJIT_U32: return tool_make_integer(*(const uint32_t *)element);
  case KJIT_U64: return make_unsigned(*(const uint64_t *)element);
  case KJIT_F16:
    return tool_make_real(widen(*(const uint16_t *)element, MANTISSA_BITS_F16, EXPONENT_BITS_F16));
  case KJIT_BF16:
    return tool_make_real(
      widen(*(const uint16_t *)element, MANTISSA_BITS_BF16, EXPONENT_BITS_BF16));
  case KJIT_F32: return tool_make_real(*(const float *)element);
  case KJIT_F64: return tool_make_real(*(const double *)element);
  case KJIT_C64: return make_complex(((const float *)element)[0], ((const float *)element)[1]);
  case KJIT_C128: return make_complex(((const double *)element)[0], ((const double *)element)[1]);
  default: return tool_make_integer(0);
  }
}

/* ---- text ---- */

static kjit_type part_of(kjit_type type)
{
  if (type == KJIT_C64) return KJIT_F32;
  return type == KJIT_C128 ? KJIT_F64 : type;
}

/* Writes the fewest digits that read back as the same number. Integers that are exact in the type
 * are written in full, as 100 and not 1e+02. */
static int real_text(kjit_type type, double value, bool with_sign, char *buffer, size_t size)
{
  if (isnan(value)) return snprintf(buffer, size, with_sign ? "+nan" : "nan");
  const char *sign = signbit(value) ? "-" : with_sign ? "+" : "";
  if (isinf(value)) return snprintf(buffer, size, "%sinf", sign);
  char text[KJ_DECIMAL_BYTES];
  int exact_digits = tool_elements[type].mantissa_bits * 3 / 10 + 1;
  kj_decimal decimal = kj_find_shortest(fabs(value), part_of(type));
  if (decimal.exponent < exact_digits && decimal.exponent >= decimal.count)
    return snprintf(buffer, size, "%s%.0f", sign, fabs(value));
  kj_lay_out_decimal(&decimal, decimal.count > exact_digits ? decimal.count : exact_digits, text);
  return snprintf(buffer, size, "%s%s", sign, text);
}

void tool_element_text(kjit_type type, const void *element, char *buffer)
{
  tool_number number = tool_load(type, element);
  switch (number.kind) {
  case TOOL_NUMBER_BOOL:
    snprintf(buffer, TOOL_ELEMENT_TEXT, "%s", number.i ? "true" : "false");
    return;
  case TOOL_NUMBER_SIGNED: snprintf(buffer, TOOL_ELEMENT_TEXT, "%lld", (long long)number.i); return;
  case TOOL_NUMBER_UNSIGNED:
    snprintf(buffer, TOOL_ELEMENT_TEXT, "%llu", (unsigned long long)number.u);
    return;
  case TOOL_NUMBER_REAL: real_text(type, number.re, false, buffer, TOOL_ELEMENT_TEXT); return;
  case TOOL_NUMBER_COMPLEX: {
    int length = real_text(type, number.re, false, buffer, TOOL_ELEMENT_TEXT);
    length += real_text(type, number.im, true, buffer + length, TOOL_ELEMENT_TEXT - (size_t)length);
    snprintf(buffer + length, TOOL_ELEMENT_TEXT - (size_t)length, "j");
    return;
  }
  }
}
