/* Converts Python and NumPy numbers to other types like NumPy's astype. */
#include "form.h"

#include <math.h>

/* Returns the nearest half-precision number, ties to even. */
static uint16_t round_to_half(double value)
{
  uint16_t sign = signbit(value) ? 0x8000 : 0;
  double size = fabs(value);
  if (isnan(value)) return sign | 0x7e00;
  if (size >= 65520) return sign | 0x7c00;
  /* the value may be rounded up to 0x400, which is 2^-14 */
  if (size < 0x1p-14) return sign | (uint16_t)nearbyint(size * 0x1p24);
  int exponent;
  double fraction = frexp(size, &exponent);                 /* 0.5 to 1 */
  uint32_t digits = (uint32_t)nearbyint(fraction * 0x1p11); /* 1024 to 2048 */
  return (uint16_t)(sign + (uint32_t)((exponent + 13) << 10) + digits);
}

typedef enum number_class { TRUTH, SIGNED, UNSIGNED, FLOAT, COMPLEX, NONE } number_class;

static number_class class_of(kjit_type type)
{
  if (type == KJIT_BOOL) return TRUTH;
  if (type >= KJIT_I8 && type <= KJIT_I64) return SIGNED;
  if (type >= KJIT_U8 && type <= KJIT_U64) return UNSIGNED;
  if (type == KJIT_F16 || type == KJIT_F32 || type == KJIT_F64) return FLOAT;
  if (type == KJIT_C64 || type == KJIT_C128) return COMPLEX;
  return NONE;
}

static double half_of(uint16_t bits)
{
  int exponent = bits >> 10 & 31;
  double digits = bits & 1023;
  double size = exponent == 31 ? (digits != 0 ? (double)NAN : (double)INFINITY)
                : exponent     ? ldexp(1024 + digits, exponent - 25)
                               : ldexp(digits, -24);
  return bits >> 15 ? -size : size;
}

/* Reads the value of a NumPy scalar, which follows the object header in memory. */
static void read_bytes(const void *bytes, form_number *number)
{
  union {
    uint8_t u8;
    int8_t i8;
    int16_t i16;
    uint16_t u16;
    int32_t i32;
    uint32_t u32;
    int64_t i64;
    uint64_t u64;
    float f32[2];
    double f64[2];
  } v;
  static const uint8_t sizes[KJIT_SCALAR_COUNT] = {
#define KJIT_ROW(name, text, size, class_, code, bits) [KJIT_##name] = size,
#include <kjit/types.def>
#undef KJIT_ROW
  };
  memcpy(&v, bytes, sizes[number->type]);
  switch (number->type) {
  case KJIT_BOOL: number->value.u = v.u8 != 0; break;
  case KJIT_I8: number->value.i = v.i8; break;
  case KJIT_I16: number->value.i = v.i16; break;
  case KJIT_I32: number->value.i = v.i32; break;
  case KJIT_I64: number->value.i = v.i64; break;
  case KJIT_U8: number->value.u = v.u8; break;
  case KJIT_U16: number->value.u = v.u16; break;
  case KJIT_U32: number->value.u = v.u32; break;
  case KJIT_U64: number->value.u = v.u64; break;
  case KJIT_F16: number->value.f[0] = half_of(v.u16); break;
  case KJIT_F32: number->value.f[0] = (double)v.f32[0]; break;
  case KJIT_F64: number->value.f[0] = v.f64[0]; break;
  case KJIT_C64:
    number->value.f[0] = (double)v.f32[0];
    number->value.f[1] = (double)v.f32[1];
    break;
  default: memcpy(number->value.f, v.f64, sizeof v.f64); break;
  }
}

static int read_integer(PyObject *object, form_number *number)
{
  int overflow;
  number->type = KJIT_I64;
  number->value.i = PyLong_AsLongLongAndOverflow(object, &overflow);
  if (overflow > 0) {
    number->type = KJIT_U64;
    number->value.u = PyLong_AsUnsignedLongLong(object);
  }
  if (!PyErr_Occurred()) return overflow >= 0;
  PyErr_Clear();
  return 0;
}

int form_read_number(PyObject *object, kjit_type type, form_number *number)
{
  PyTypeObject *kind = Py_TYPE(object);
  number->type = type;
  number->value.f[1] = 0;
  if (kind == &PyLong_Type) return read_integer(object, number);
  if (kind == &PyBool_Type) number->value.u = object == Py_True;
  else if (kind == &PyFloat_Type) number->value.f[0] = PyFloat_AsDouble(object);
  else if (kind == &PyComplex_Type) {
    number->value.f[0] = PyComplex_RealAsDouble(object);
    number->value.f[1] = PyComplex_ImagAsDouble(object);
  } else read_bytes((const char *)object + sizeof(PyObject), number);
  return 1;
}

/* Converts any real number to the nearest double. */
static double to_float(const form_number *number)
{
  switch (class_of(number->type)) {
  case SIGNED: return (double)number->value.i;
  case TRUTH:
  case UNSIGNED: return (double)number->value.u;
  default: return number->value.f[0];
  }
}

/* Converts directly to float, so that integers are rounded only once. */
static float to_single(const form_number *number)
{
  switch (class_of(number->type)) {
  case SIGNED: return (float)number->value.i;
  case TRUTH:
  case UNSIGNED: return (float)number->value.u;
  default: return (float)number->value.f[0];
  }
}

/* NumPy converts an integer to half precision through single precision. */
static uint16_t to_half(const form_number *number)
{
  int is_float = class_of(number->type) == FLOAT;
  return round_to_half(is_float ? number->value.f[0] : (double)to_single(number));
}

static kjit_arg make_float(const form_number *number, kjit_type wanted)
{
  if (wanted == KJIT_F16) return kjit_arg_f16(to_half(number));
  if (wanted == KJIT_F32) return kjit_arg_f32(to_single(number));
  return kjit_arg_f64(to_float(number));
}

/* Truncates to the bits of the wanted type. */
static kjit_arg make_integer(uint64_t bits, kjit_type wanted)
{
  switch (wanted) {
  case KJIT_I8: return kjit_arg_i8((int8_t)bits);
  case KJIT_I16: return kjit_arg_i16((int16_t)bits);
  case KJIT_I32: return kjit_arg_i32((int32_t)bits);
  case KJIT_I64: return kjit_arg_i64((int64_t)bits);
  case KJIT_U8: return kjit_arg_u8((uint8_t)bits);
  case KJIT_U16: return kjit_arg_u16((uint16_t)bits);
  case KJIT_U32: return kjit_arg_u32((uint32_t)bits);
  default: return kjit_arg_u64(bits);
  }
}

/* Stores a 16-byte value, which is passed by address. */
static kjit_arg make_complex(form_number *number, kjit_type wanted)
{
  int is_complex = class_of(number->type) == COMPLEX;
  double real = is_complex ? number->value.f[0] : to_float(number);
  double imaginary = is_complex ? number->value.f[1] : 0;
  if (wanted == KJIT_C64)
    return kjit_arg_c64(is_complex ? (float)real : to_single(number), (float)imaginary);
  number->value.f[0] = real;
  number->value.f[1] = imaginary;
  return kjit_arg_value(KJIT_C128, number->value.f);
}

int form_convert(form_number *number, kjit_type wanted, kjit_arg *arg)
{
  number_class from = class_of(number->type), to = class_of(wanted);
  if (from == COMPLEX && to != COMPLEX) return 0;
  switch (to) {
  case TRUTH:
    *arg = kjit_arg_bool(from == FLOAT ? number->value.f[0] != 0 : number->value.u != 0);
    return 1;
  case SIGNED:
  case UNSIGNED: /* conversions from floats to integers are not supported here */
    if (from == FLOAT) return 0;
    *arg = make_integer(number->value.u, wanted);
    return 1;
  case FLOAT: *arg = make_float(number, wanted); return 1;
  case COMPLEX: *arg = make_complex(number, wanted); return 1;
  default: return 0;
  }
}
