/* Arithmetic on numbers that are known at compile time or at launch, with the rules of the language
 * (docs/ir.md, Types and Inference). Type inference folds constants with these functions, and the
 * runtime evaluates extents with them at launch, so both agree with compiled kernels.
 *
 * Literals have a weak type. A weak integer is exact; a weak float has the bits of an f64. */
#ifndef KJ_IR_ARITHMETIC_H
#define KJ_IR_ARITHMETIC_H

#include <kjit/builder.h>

#include "ir/builtin.h"
#include "ir/type.h"

/* A number with a type. Its exact bits are stored, so that a NaN keeps its sign and payload. */
typedef struct ki_value {
  kjit_type type; /* bool, an integer, a float or a weak type */
  /* bool and integers: the number, in the range of the type. Floats: the bits, as unsigned
   * number. */
  __int128 integer;
} ki_value;

/* ---- types of operands and results ---- */

/* These functions take a scalar number type or a weak type. */
bool ki_is_floating(kjit_type type);
bool ki_is_integral(kjit_type type); /* false for bool */
bool ki_is_signed(kjit_type type);   /* false for weak types */
/* Returns i32 for bool and for integers of fewer than 32 bits, and any other type unchanged. */
kjit_type ki_arithmetic_type(kjit_type type);
/* Returns the type in which an operator combines two numbers, or KJIT_ANY if no integer type can
 * represent both operand types. */
kjit_type ki_common_type(kjit_type a, kjit_type b);
/* Like ki_common_type for a given operator. Shifts and powers have the type of the left operand.
 * Also returns KJIT_ANY if the operator does not accept these types. */
kjit_type ki_operator_type(kjit_op op, kjit_type a, kjit_type b);
/* Returns the type of `c ? a : b`. Unlike in ki_common_type, a literal does not widen the other
 * operand. */
kjit_type ki_joined_type(kjit_type a, kjit_type b);
/* Returns the type in which an integer power, base ** exponent, is computed. The type represents
 * every exponent, and the low bits of products in it are the same as in the base type. */
kjit_type ki_power_type(kjit_type base, kjit_type exponent);

/* ---- values ---- */

bool ki_integer_fits(kjit_type type, __int128 integer);
/* Converts an integer to the type. It wraps around in an integer type and is rounded once in a
 * float type. */
ki_value ki_integer_value(kjit_type type, __int128 integer);
/* Converts a number to the type. It is rounded once in a float type, and truncated and saturated in
 * an integer type. */
ki_value ki_float_value(kjit_type type, double number);
/* Converts to double; exact for floats. */
double ki_number_of(ki_value value);
bool ki_is_true(ki_value value);
bool ki_is_nan(ki_value value);
bool ki_is_other_nan(ki_value value); /* a NaN whose sign or payload differs from `nan` */
bool ki_is_negative(ki_value value);  /* also true for -0.0 and for a NaN whose sign bit is set */
/* Returns whether type and bits are equal. */
bool ki_is_same_value(ki_value x, ki_value y);
/* Converts like a conversion in a kernel. A weak integer wraps like any other integer; callers that
 * reject literals out of range must first call ki_integer_fits. */
ki_value ki_convert_value(ki_value value, kjit_type type);
/* Prepares an integer for use as an index or extent: a u64 above the range of i64 becomes the
 * maximum i64, as kt_convert_to_index does in compiled code. Other values are not changed. */
ki_value ki_index_value(ki_value value);
/* Converts an argument to the type of a scalar parameter. The number must be exact in the type; a
 * float can be rounded to another float type. Returns false if the argument does not fit. */
bool ki_fit_argument(ki_value value, kjit_type type, ki_value *fitted);
/* Convert between a value and its bytes in memory; weak types have 8 bytes. Return false for types
 * that are not numbers. */
bool ki_decode_value(kjit_type type, const void *memory, ki_value *value);
void ki_encode_value(ki_value value, void *memory);

/* ---- results of operators ---- */

typedef enum ki_outcome {
  KJ_COMPUTED,
  KJ_NOT_COMPUTED,      /* these types have no such operator */
  KJ_TOO_LARGE,         /* the result is a weak integer of more than 100 bits */
  KJ_SHIFTED_TOO_FAR,   /* a weak integer is shifted by less than 0 or more than 100 bits */
  KJ_NEGATIVE_EXPONENT, /* a weak integer has a negative exponent */
} ki_outcome;

/* x and y must have the result type, except that y can have any integer type in shifts and integer
 * powers. */
ki_outcome ki_compute_binary(kjit_op op, ki_value x, ki_value y, ki_value *result);
ki_outcome ki_compute_unary(kjit_op op, ki_value x, ki_value *result);
/* Compares two integers of any types by their mathematical values, or two floats of the same
 * type. */
bool ki_compute_comparison(kjit_op op, ki_value x, ki_value y);
/* Computes abs, min, max, ceil_div, div_trunc or rem_trunc. All values have the same type. */
ki_outcome ki_compute_builtin(ki_builtin_id id, const ki_value *values, size_t count,
                              ki_value *result);

/* Returns the quotient rounded down; y must not be 0. A fast path handles 64-bit numbers. */
static inline __int128 ki_floor_divide(__int128 x, __int128 y)
{
  if (x == (int64_t)x && y == (int64_t)y && y != -1) {
    int64_t a = (int64_t)x, b = (int64_t)y;
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
  }
  return x / y - (x % y != 0 && (x < 0) != (y < 0));
}

#endif
