#include "ir/arithmetic.h"

#include <math.h>
#include <string.h>

#include "ir/module.h"

typedef unsigned __int128 wide;

/* ---- types ---- */

typedef struct scalar {
  const char *name;
  ki_type_class class_;
  uint8_t width;
  /* floats: number of bits in the fields of the IEEE 754 format, or of bf16 */
  uint8_t fraction_bits, exponent_bits;
} scalar;

static scalar scalar_of(kjit_type type)
{
  static const struct {
    const char *name;
    ki_type_class class_;
    uint8_t width;
  } rows[KJIT_SCALAR_COUNT] = {
#define KJIT_ROW(name, text, bytes, class, code, bits) \
  [KJIT_##name] = { text, KJ_CLASS_##class, bits },
#include <kjit/types.def>
#undef KJIT_ROW
  };
  if (type == KJ_WEAK_INT) return (scalar){ .class_ = KJ_CLASS_WEAK };
  bool is_weak = type == KJ_WEAK_FLOAT;
  if (is_weak) type = KJIT_F64;
  if (!ki_is_scalar(type)) return (scalar){ .class_ = KJ_CLASS_NONE };
  scalar found = { .name = is_weak ? NULL : rows[type].name, .class_ = rows[type].class_ };
  found.width = type == KJIT_BOOL ? 1 : rows[type].width;
  if (found.class_ != KJ_CLASS_FLOAT) return found;
  found.exponent_bits = type == KJIT_F16 ? 5 : type == KJIT_F64 ? 11 : 8;
  found.fraction_bits = (uint8_t)(found.width - 1 - found.exponent_bits);
  return found;
}

bool ki_is_floating(kjit_type type)
{
  return type == KJ_WEAK_FLOAT || (type >= KJIT_F16 && type <= KJIT_F64);
}
bool ki_is_integral(kjit_type type)
{
  return type == KJ_WEAK_INT || (type >= KJIT_I8 && type <= KJIT_U64);
}
bool ki_is_signed(kjit_type type) { return type >= KJIT_I8 && type <= KJIT_I64; }

static int width_of(kjit_type type) { return scalar_of(type).width; }

kjit_type ki_arithmetic_type(kjit_type type)
{
  bool is_small = type == KJIT_BOOL || (ki_is_integral(type) && type != KJ_WEAK_INT);
  return is_small && width_of(type) < 32 ? KJIT_I32 : type;
}

static kjit_type common_integer(kjit_type a, kjit_type b)
{
  a = ki_arithmetic_type(a);
  b = ki_arithmetic_type(b);
  if (ki_is_signed(a) == ki_is_signed(b)) return width_of(a) >= width_of(b) ? a : b;
  /* no integer type can hold all values of u64 as well as negative numbers; i64 can hold all values
   * of u32, i32 and i64 */
  return a == KJIT_U64 || b == KJIT_U64 ? KJIT_ANY : KJIT_I64;
}

static kjit_type common_weak(kjit_type weak, kjit_type type)
{
  if (ki_is_weak(type)) return weak == KJ_WEAK_FLOAT ? weak : type;
  if (weak == KJ_WEAK_INT || ki_is_floating(type)) return ki_arithmetic_type(type);
  return KJIT_F64; /* one operand is a float literal, and the other is an integer */
}

kjit_type ki_common_type(kjit_type a, kjit_type b)
{
  if (ki_is_weak(a)) return common_weak(a, b);
  if (ki_is_weak(b)) return common_weak(b, a);
  bool is_a_float = ki_is_floating(a), is_b_float = ki_is_floating(b);
  if (!is_a_float && !is_b_float) return common_integer(a, b);
  if (is_a_float && is_b_float) {
    /* one operand is f16, and the other is bf16 */
    if (a != b && width_of(a) == width_of(b)) return KJIT_F32;
    return width_of(a) >= width_of(b) ? a : b;
  }
  kjit_type number = is_a_float ? a : b, integer = is_a_float ? b : a;
  return width_of(integer) >= 32 && width_of(number) < 32 ? KJIT_F32 : number;
}

kjit_type ki_operator_type(kjit_op op, kjit_type a, kjit_type b)
{
  bool has_float = ki_is_floating(a) || ki_is_floating(b);
  switch (KJ_AMONG(ki_op_table[op].class_)) {
  case KJ_OP_SHIFT: return has_float ? KJIT_ANY : ki_arithmetic_type(a);
  case KJ_OP_POWER: return ki_is_floating(b) ? ki_common_type(a, b) : ki_arithmetic_type(a);
  case KJ_OP_INT:
    if (has_float) return KJIT_ANY;
    return a == KJIT_BOOL && b == KJIT_BOOL ? KJIT_BOOL : ki_common_type(a, b);
  case KJ_OP_DIVIDE: return has_float ? ki_common_type(a, b) : KJIT_ANY;
  default: return ki_common_type(a, b);
  }
}

kjit_type ki_joined_type(kjit_type a, kjit_type b)
{
  if (a == b) return a;
  if (a == KJ_WEAK_INT && b != KJIT_BOOL) return b;
  if (b == KJ_WEAK_INT && a != KJIT_BOOL) return a;
  return ki_common_type(a, b);
}

kjit_type ki_power_type(kjit_type base, kjit_type exponent)
{
  bool is_same_sign = ki_is_signed(base) == ki_is_signed(exponent);
  /* i64 represents every exponent of this type, including negative exponents */
  if (!is_same_sign && !ki_is_signed(base)) return KJIT_I64;
  int held = width_of(base), needed = width_of(exponent);
  return needed > held || (needed == held && !is_same_sign) ? exponent : base;
}

/* ---- floats as bits ---- */

static int count_bits(wide x)
{
  uint64_t high = (uint64_t)(x >> 64), low = (uint64_t)x;
  return high ? 128 - __builtin_clzll(high) : low ? 64 - __builtin_clzll(low) : 0;
}

static uint64_t infinity_of(scalar f)
{
  return (((uint64_t)1 << f.exponent_bits) - 1) << f.fraction_bits;
}

static uint64_t sign_of(scalar f) { return (uint64_t)1 << (f.width - 1); }

/* Returns the bits of significand * 2^exponent in the format, rounded once (to nearest, ties to
 * even). */
static uint64_t round_to_format(scalar f, bool is_negative, wide significand, int exponent)
{
  KJ_ASSERT(f.exponent_bits && f.fraction_bits);
  int bias = (1 << (f.exponent_bits - 1)) - 1, length = count_bits(significand),
      top = exponent + length - 1;
  uint64_t sign = is_negative ? sign_of(f) : 0;
  if (!length) return sign;
  if (top > bias) return sign | infinity_of(f);
  int least = top < 1 - bias ? 1 - bias : top; /* exponent of the leading bit in the format */
  int dropped = least - f.fraction_bits - exponent;
  wide kept = 0;
  if (dropped <= 0) kept = significand << -dropped;
  else if (dropped <= length) {
    wide half = (wide)1 << (dropped - 1), rest = significand & ((half << 1) - 1);
    kept = significand >> dropped;
    kept += rest > half || (rest == half && (kept & 1));
  }
  /* the implicit leading bit of a normal number adds 1 to the exponent field */
  uint64_t magnitude = ((uint64_t)(least + bias - 1) << f.fraction_bits) + (uint64_t)kept;
  return sign | (magnitude < infinity_of(f) ? magnitude : infinity_of(f));
}

/* Converts the bits of a float to another format. A NaN keeps its sign and the high bits of its
 * payload and becomes quiet, as on processors. */
static uint64_t change_format(scalar from, scalar to, uint64_t bits)
{
  KJ_ASSERT(from.exponent_bits && to.exponent_bits);
  bool is_negative = (bits & sign_of(from)) != 0;
  uint64_t magnitude = bits & (sign_of(from) - 1),
           fraction = bits & (((uint64_t)1 << from.fraction_bits) - 1);
  if (from.fraction_bits == to.fraction_bits && from.width == to.width) return bits;
  if (magnitude >= infinity_of(from)) {
    int shift = to.fraction_bits - from.fraction_bits;
    uint64_t payload = shift < 0 ? fraction >> -shift : fraction << shift,
             quiet = fraction ? (uint64_t)1 << (to.fraction_bits - 1) : 0;
    return (is_negative ? sign_of(to) : 0) | infinity_of(to) | payload | quiet;
  }
  int bias = (1 << (from.exponent_bits - 1)) - 1, field = (int)(magnitude >> from.fraction_bits);
  if (field) fraction |= (uint64_t)1 << from.fraction_bits;
  return round_to_format(to, is_negative, fraction,
                         (field ? field : 1) - bias - from.fraction_bits);
}

static uint64_t bits_of(double number)
{
  uint64_t bits;
  memcpy(&bits, &number, sizeof bits);
  return bits;
}

/* ---- values ---- */

/* The functions below handle the types of extents first, because extents are evaluated at every
 * launch. */
bool ki_integer_fits(kjit_type type, __int128 integer)
{
  if (type == KJIT_I64) return integer == (int64_t)integer;
  if (type == KJIT_I32) return integer == (int32_t)integer;
  if (type == KJ_WEAK_INT) return integer >= INT64_MIN && integer <= (__int128)UINT64_MAX;
  int width = width_of(type);
  if (!ki_is_signed(type)) return integer >= 0 && integer < (__int128)1 << width;
  return integer >= -((__int128)1 << (width - 1)) && integer < (__int128)1 << (width - 1);
}

static __int128 wrap(kjit_type type, __int128 integer)
{
  if (type == KJIT_I64) return (int64_t)(uint64_t)integer;
  if (type == KJIT_I32) return (int32_t)(uint32_t)integer;
  if (type == KJ_WEAK_INT) return integer;
  if (type == KJIT_BOOL) return integer != 0;
  int unused = 128 - width_of(type);
  wide shifted = (wide)integer << unused;
  return ki_is_signed(type) ? (__int128)shifted >> unused : (__int128)(shifted >> unused);
}

ki_value ki_integer_value(kjit_type type, __int128 integer)
{
  if (!ki_is_floating(type)) return (ki_value){ .type = type, .integer = wrap(type, integer) };
  wide magnitude = integer < 0 ? -(wide)integer : (wide)integer;
  return (ki_value){ .type = type,
                     .integer =
                       (__int128)round_to_format(scalar_of(type), integer < 0, magnitude, 0) };
}

/* Truncates a float to an integer, and saturates it to the range of the type. Returns 0 for NaN. */
static __int128 truncate_to(kjit_type type, double number)
{
  int width = width_of(type) - ki_is_signed(type);
  if (type == KJ_WEAK_INT) width = 100;
  __int128 most = ((__int128)1 << width) - 1, least = ki_is_signed(type) ? -most - 1 : 0;
  if (type == KJ_WEAK_INT) least = -most;
  if (isnan(number)) return 0;
  if (number >= (double)most) return most;
  return number <= (double)least ? least : (__int128)number;
}

ki_value ki_float_value(kjit_type type, double number)
{
  ki_value value = { .type = type };
  if (ki_is_floating(type))
    value.integer = change_format(scalar_of(KJIT_F64), scalar_of(type), bits_of(number));
  else value.integer = type == KJIT_BOOL ? number != 0 : truncate_to(type, number);
  return value;
}

double ki_number_of(ki_value value)
{
  if (!ki_is_floating(value.type)) return (double)value.integer;
  uint64_t bits =
    change_format(scalar_of(value.type), scalar_of(KJIT_F64), (uint64_t)value.integer);
  double number;
  memcpy(&number, &bits, sizeof number);
  return number;
}

bool ki_is_true(ki_value value)
{
  if (!ki_is_floating(value.type)) return value.integer != 0;
  return ((uint64_t)value.integer & (sign_of(scalar_of(value.type)) - 1)) != 0;
}

bool ki_is_nan(ki_value value)
{
  if (!ki_is_floating(value.type)) return false;
  scalar f = scalar_of(value.type);
  return ((uint64_t)value.integer & (sign_of(f) - 1)) > infinity_of(f);
}

bool ki_is_other_nan(ki_value value)
{
  return ki_is_nan(value) && !ki_is_same_value(value, ki_float_value(value.type, NAN));
}

bool ki_is_negative(ki_value value)
{
  if (!ki_is_floating(value.type)) return value.integer < 0;
  return ((uint64_t)value.integer & sign_of(scalar_of(value.type))) != 0;
}

bool ki_is_same_value(ki_value x, ki_value y) { return x.type == y.type && x.integer == y.integer; }

ki_value ki_index_value(ki_value value)
{
  bool is_beyond = value.type == KJIT_U64 && value.integer > INT64_MAX;
  return is_beyond ? ki_integer_value(KJIT_I64, INT64_MAX) : value;
}

ki_value ki_convert_value(ki_value value, kjit_type type)
{
  if (value.type == type) return value;
  if (type == KJIT_BOOL) return (ki_value){ .type = type, .integer = ki_is_true(value) };
  if (!ki_is_floating(value.type)) return ki_integer_value(type, value.integer);
  if (!ki_is_floating(type)) return ki_float_value(type, ki_number_of(value));
  return (ki_value){ .type = type,
                     .integer = change_format(scalar_of(value.type), scalar_of(type),
                                              (uint64_t)value.integer) };
}

bool ki_fit_argument(ki_value value, kjit_type type, ki_value *fitted)
{
  KJ_ASSERT(fitted);
  bool from_float = ki_is_floating(value.type), to_float = ki_is_floating(type);
  bool is_number = to_float || ki_is_integral(type) || type == KJIT_BOOL;
  if (!is_number) return false;
  if (from_float && !to_float) {
    double number = ki_number_of(value);
    if (!(fabs(number) < 0x1p64) || number != trunc(number)) return false;
    value = (ki_value){ .type = KJ_WEAK_INT, .integer = (__int128)number };
  }
  if (!to_float && !ki_integer_fits(type, value.integer)) return false;
  *fitted = ki_convert_value(value, type);
  if (from_float || !to_float) return true;
  double number = ki_number_of(*fitted);
  return isfinite(number) && (__int128)number == value.integer;
}

static size_t size_of(kjit_type type)
{
  return ki_is_weak(type) ? 8 : (size_t)(width_of(type) + 7) / 8;
}

bool ki_decode_value(kjit_type type, const void *memory, ki_value *value)
{
  uint64_t bits = 0;
  *value = (ki_value){ .type = type };
  if (!ki_is_floating(type) && !ki_is_integral(type) && type != KJIT_BOOL) return false;
  memcpy(&bits, memory, size_of(type)); /* all targets are little-endian */
  if (ki_is_floating(type)) value->integer = bits;
  else value->integer = type == KJ_WEAK_INT ? (int64_t)bits : wrap(type, (__int128)bits);
  return true;
}

void ki_encode_value(ki_value value, void *memory)
{
  KJ_ASSERT(size_of(value.type) && size_of(value.type) <= sizeof(uint64_t));
  uint64_t bits = (uint64_t)value.integer;
  memcpy(memory, &bits, size_of(value.type));
}

/* ---- integers ---- */

static ki_outcome give_integer(kjit_type type, __int128 integer, bool is_overflow, ki_value *result)
{
  /* Results of operators on weak integers are exact and have at most 100 bits. Sums of such numbers
   * do not overflow 128 bits, and the products below report an overflow. */
  const __int128 limit = (__int128)1 << 100;
  *result = (ki_value){ .type = type, .integer = wrap(type, integer) };
  bool is_too_large = type == KJ_WEAK_INT && (is_overflow || integer > limit || integer < -limit);
  return is_too_large ? KJ_TOO_LARGE : KJ_COMPUTED;
}

static ki_outcome multiply(kjit_type type, __int128 x, __int128 y, ki_value *result)
{
  __int128 product;
  bool is_overflow = __builtin_mul_overflow(x, y, &product);
  return give_integer(type, (__int128)((wide)x * (wide)y), is_overflow, result);
}

/* Shifts by count modulo the width. Reports a weak integer that is shifted by a count that is out
 * of range. */
static ki_outcome shift(kjit_op op, ki_value x, __int128 count, ki_value *result)
{
  KJ_ASSERT(op == KJIT_OP_SHL || op == KJIT_OP_SHR);
  if (x.type != KJ_WEAK_INT) count &= width_of(x.type) - 1;
  else if (count < 0 || count > 100) return KJ_SHIFTED_TOO_FAR;
  if (op == KJIT_OP_SHL) return multiply(x.type, x.integer, (__int128)1 << count, result);
  return give_integer(x.type, x.integer >> count, false, result);
}

/* Computes a power by repeated squaring. A negative exponent gives 1 / base**-exponent rounded
 * toward zero. */
static ki_outcome power(ki_value base, __int128 exponent, ki_value *result)
{
  __int128 x = base.integer;
  if (exponent < 0) {
    if (base.type == KJ_WEAK_INT) return KJ_NEGATIVE_EXPONENT;
    bool is_unit = x == 1 || x == -1;
    return give_integer(base.type, !is_unit ? 0 : exponent % 2 ? x : 1, false, result);
  }
  *result = (ki_value){ .type = base.type, .integer = 1 };
  for (;; exponent >>= 1) {
    if (exponent & 1 && multiply(base.type, result->integer, base.integer, result))
      return KJ_TOO_LARGE;
    if (exponent <= 1) return KJ_COMPUTED;
    if (multiply(base.type, base.integer, base.integer, &base)) return KJ_TOO_LARGE;
  }
}

static ki_outcome compute_integer(kjit_op op, ki_value x, ki_value y, ki_value *result)
{
  __int128 a = x.integer, b = y.integer;
  switch (KJ_AMONG(op)) {
  case KJIT_OP_ADD: return give_integer(x.type, a + b, false, result);
  case KJIT_OP_SUB: return give_integer(x.type, a - b, false, result);
  case KJIT_OP_MUL: return multiply(x.type, a, b, result);
  case KJIT_OP_FLOORDIV: return give_integer(x.type, b ? ki_floor_divide(a, b) : 0, false, result);
  case KJIT_OP_MOD:
    return give_integer(x.type, b ? a - ki_floor_divide(a, b) * b : 0, false, result);
  case KJIT_OP_BIT_AND: return give_integer(x.type, a & b, false, result);
  case KJIT_OP_BIT_OR: return give_integer(x.type, a | b, false, result);
  case KJIT_OP_BIT_XOR: return give_integer(x.type, a ^ b, false, result);
  case KJIT_OP_SHL:
  case KJIT_OP_SHR: return shift(op, x, b, result);
  case KJIT_OP_POW: return power(x, b, result);
  default: return KJ_NOT_COMPUTED;
  }
}

/* ---- floats ---- */

/* Rounds a number to the type in which kernels compute. For f16 and bf16 this is f32, and the
 * result is rounded again later. The f32 result is the same if the number is computed in double
 * first, because a double has at least 2 * 24 + 2 bits of precision. */
static double round_to_computed(kjit_type type, double number)
{
  return type == KJIT_F64 || type == KJ_WEAK_FLOAT ? number : (double)(float)number;
}

/* Floating-point modulo and floor division, in the same steps as in kernels. floor_modulo is fmod
 * with the sign of the divisor, and floor_quotient is the corresponding quotient. */
static double floor_modulo(kjit_type type, double x, double y)
{
  KJ_ASSERT(ki_is_floating(type));
  double rest = fmod(x, y);
  if (rest == 0) return copysign(0, y);
  return (rest < 0) != (y < 0) ? round_to_computed(type, rest + y) : rest;
}

static double floor_quotient(kjit_type type, double x, double y)
{
  KJ_ASSERT(ki_is_floating(type));
  if (y == 0) return x / y;
  double rest = fmod(x, y), q = round_to_computed(type, round_to_computed(type, x - rest) / y);
  if (rest != 0 && (rest < 0) != (y < 0)) q = round_to_computed(type, q - 1);
  if (q == 0) return copysign(0, x / y);
  double whole = floor(q);
  return round_to_computed(type, q - whole) > 0.5 ? whole + 1 : whole;
}

static ki_outcome compute_float(kjit_op op, ki_value x, ki_value y, ki_value *result)
{
  double a = ki_number_of(x), b = ki_number_of(y), number;
  switch (KJ_AMONG(op)) {
  case KJIT_OP_ADD: number = a + b; break;
  case KJIT_OP_SUB: number = a - b; break;
  case KJIT_OP_MUL: number = a * b; break;
  case KJIT_OP_DIV: number = a / b; break;
  case KJIT_OP_FLOORDIV: number = floor_quotient(x.type, a, b); break;
  case KJIT_OP_MOD: number = floor_modulo(x.type, a, b); break;
  case KJIT_OP_POW: number = pow(a, b); break;
  default: return KJ_NOT_COMPUTED;
  }
  *result = ki_float_value(x.type, round_to_computed(x.type, number));
  return KJ_COMPUTED;
}

/* ---- operators ---- */

ki_outcome ki_compute_binary(kjit_op op, ki_value x, ki_value y, ki_value *result)
{
  bool is_x_float = ki_is_floating(x.type), is_y_float = ki_is_floating(y.type);
  if (!is_x_float && !is_y_float) return compute_integer(op, x, y, result);
  return is_x_float && is_y_float ? compute_float(op, x, y, result) : KJ_NOT_COMPUTED;
}

ki_outcome ki_compute_unary(kjit_op op, ki_value x, ki_value *result)
{
  *result = x;
  if (op == KJIT_OP_POS) return KJ_COMPUTED;
  if (op == KJIT_OP_NOT) {
    result->integer = !x.integer;
    return x.type == KJIT_BOOL ? KJ_COMPUTED : KJ_NOT_COMPUTED;
  }
  if (ki_is_floating(x.type)) {
    result->integer ^= (__int128)sign_of(scalar_of(x.type));
    return op == KJIT_OP_NEG ? KJ_COMPUTED : KJ_NOT_COMPUTED;
  }
  if (op == KJIT_OP_NEG) return give_integer(x.type, -x.integer, false, result);
  return give_integer(x.type, x.type == KJIT_BOOL ? !x.integer : ~x.integer, false, result);
}

bool ki_compute_comparison(kjit_op op, ki_value x, ki_value y)
{
  bool is_less, is_greater;
  if (ki_is_floating(x.type)) {
    double a = ki_number_of(x), b = ki_number_of(y);
    if (isnan(a) || isnan(b)) return op == KJIT_OP_NE;
    is_less = a < b;
    is_greater = a > b;
  } else {
    is_less = x.integer < y.integer;
    is_greater = x.integer > y.integer;
  }
  switch (KJ_AMONG(op)) {
  case KJIT_OP_EQ: return !is_less && !is_greater;
  case KJIT_OP_NE: return is_less || is_greater;
  case KJIT_OP_LT: return is_less;
  case KJIT_OP_GT: return is_greater;
  case KJIT_OP_LE: return !is_greater;
  default: KJ_ASSERT(op == KJIT_OP_GE); return !is_less;
  }
}

/* Counts bits in an integer of the type's width. Weak integers have no width. */
static ki_outcome compute_bit_count(ki_builtin_id id, ki_value x, ki_value *result)
{
  if (x.type == KJ_WEAK_INT) return KJ_NOT_COMPUTED;
  int width = width_of(x.type);
  uint64_t bits = (uint64_t)x.integer << (64 - width) >> (64 - width);
  int trailing = bits ? __builtin_ctzll(bits) : width;
  int count = id == KJ_BUILTIN_POPC  ? __builtin_popcountll(bits)
              : id == KJ_BUILTIN_CTZ ? trailing
              : id == KJ_BUILTIN_FFS ? (bits ? trailing + 1 : 0)
              : bits                 ? __builtin_clzll(bits) - (64 - width)
                                     : width;
  return give_integer(KJIT_I32, count, false, result);
}

ki_outcome ki_compute_builtin(ki_builtin_id id, const ki_value *values, size_t count,
                              ki_value *result)
{
  KJ_ASSERT(count >= 1);
  kjit_type type = values[0].type;
  __int128 a = values[0].integer, b = count > 1 ? values[1].integer : a;
  if (ki_is_floating(type)) {
    ki_value x = values[0], y = count > 1 ? values[1] : x;
    double number;
    switch (KJ_AMONG(id)) {
    case KJ_BUILTIN_ABS: number = fabs(ki_number_of(x)); break;
    case KJ_BUILTIN_MIN: number = fmin(ki_number_of(x), ki_number_of(y)); break;
    case KJ_BUILTIN_MAX: number = fmax(ki_number_of(x), ki_number_of(y)); break;
    default: return KJ_NOT_COMPUTED;
    }
    *result = ki_float_value(type, number);
    return KJ_COMPUTED;
  }
  switch (KJ_AMONG(id)) {
  case KJ_BUILTIN_ABS: return give_integer(type, a < 0 ? -a : a, false, result);
  case KJ_BUILTIN_MIN: return give_integer(type, a < b ? a : b, false, result);
  case KJ_BUILTIN_MAX: return give_integer(type, a > b ? a : b, false, result);
  case KJ_BUILTIN_CEIL_DIV:
    return give_integer(type, b ? -ki_floor_divide(-a, b) : 0, false, result);
  case KJ_BUILTIN_DIV_TRUNC: return give_integer(type, b ? a / b : 0, false, result);
  case KJ_BUILTIN_REM_TRUNC: return give_integer(type, b ? a % b : 0, false, result);
  case KJ_BUILTIN_POPC:
  case KJ_BUILTIN_CLZ:
  case KJ_BUILTIN_CTZ:
  case KJ_BUILTIN_FFS: return compute_bit_count(id, values[0], result);
  default: return KJ_NOT_COMPUTED;
  }
}
