/* The numbers that are known while compiling or before a launch, and what the language computes
 * with them (docs/ir.md, Types and Inference). Inference folds with these functions, and the
 * dispatcher evaluates extents with them, so that both agree with the code of a kernel.
 *
 * Literals are weak: a weak integer is exact, a weak float has the bits of an f64. */
#ifndef KJ_IR_ARITHMETIC_H
#define KJ_IR_ARITHMETIC_H

#include "ir/builtin.h"
#include "ir/type.h"

/* A number: its type and its exact bits, so that a NaN keeps sign and payload. */
typedef struct ki_value {
  kjit_type type; /* bool, an integer or a float; or weak */
  /* bool and integers: the number, in the range of the type. Floats: their bits, not negative */
  __int128 integer;
} ki_value;

/* ---- types of operands and results ---- */

/* Of scalars that are numbers, and of weak types. */
bool ki_is_floating(kjit_type type);
bool ki_is_integral(kjit_type type); /* not bool */
bool ki_is_signed(kjit_type type);   /* not weak */
/* bool and integers below 32 bits count as i32. */
kjit_type ki_arithmetic_type(kjit_type type);
/* The type that an operator computes two numbers in. KJIT_ANY: no integer type holds both. */
kjit_type ki_common_type(kjit_type a, kjit_type b);
/* The same for one operator: shifts and powers have the type of the left operand; KJIT_ANY also
 * where the operator has no operands of these types. */
kjit_type ki_operator_type(kjit_op op, kjit_type a, kjit_type b);
/* The type of `c ? a : b`: as ki_common_type, but a literal does not widen the other. */
kjit_type ki_joined_type(kjit_type a, kjit_type b);
/* The type in which base ** exponent is computed for integers: it holds every exponent, and the
 * product wraps in it as in the type of the base. */
kjit_type ki_power_type(kjit_type base, kjit_type exponent);

/* ---- values ---- */

bool ki_integer_fits(kjit_type type, __int128 integer);
/* Wraps around in an integer type; rounds once to a float type. */
ki_value ki_integer_value(kjit_type type, __int128 integer);
/* Rounds once to the float type, or truncates and saturates to the integer type. */
ki_value ki_float_value(kjit_type type, double number);
/* Exact for floats. */
double ki_number_of(ki_value value);
bool ki_is_true(ki_value value);
bool ki_is_nan(ki_value value);
bool ki_is_other_nan(ki_value value); /* with another sign or payload than `nan` has */
bool ki_is_negative(ki_value value);  /* also -0.0 and a NaN with its sign set */
/* The same type and bits. */
bool ki_is_same_value(ki_value x, ki_value y);
/* As a conversion in a kernel does. A weak integer wraps like any other: who refuses literals that
 * do not fit asks ki_integer_fits. */
ki_value ki_convert_value(ki_value value, kjit_type type);
/* An integer that is used as a position or an extent: a u64 that no i64 holds becomes the largest
 * i64, as kt_convert_to_index makes it in code. Other values stay as they are. */
ki_value ki_index_value(ki_value value);
/* As an argument becomes a scalar parameter: any number that the type holds exactly; between floats
 * with rounding. */
bool ki_fit_argument(ki_value value, kjit_type type, ki_value *fitted);
/* The bytes in memory; weak types have 8. False for types that are no numbers. */
bool ki_decode_value(kjit_type type, const void *memory, ki_value *value);
void ki_encode_value(ki_value value, void *memory);

/* ---- what operators give ---- */

typedef enum ki_outcome {
  KJ_COMPUTED,
  KJ_NOT_COMPUTED,      /* no operator of these types */
  KJ_TOO_LARGE,         /* a weak integer beyond 100 bits */
  KJ_SHIFTED_TOO_FAR,   /* a weak integer, by less than 0 or more than 100 bits */
  KJ_NEGATIVE_EXPONENT, /* of a weak integer */
} ki_outcome;

/* x and y have the type of the result. Of shifts and of powers of integers y may be any integer. */
ki_outcome ki_compute_binary(kjit_op op, ki_value x, ki_value y, ki_value *result);
ki_outcome ki_compute_unary(kjit_op op, ki_value x, ki_value *result);
/* Any two integers are compared as the numbers that they are; floats of one type. */
bool ki_compute_comparison(kjit_op op, ki_value x, ki_value y);
/* abs, min, max, ceil_div, div_trunc and rem_trunc on values of one type. */
ki_outcome ki_compute_builtin(ki_builtin_id id, const ki_value *values, size_t count,
                              ki_value *result);

/* The quotient rounded down; y is not 0. Numbers of 64 bits take the short way. */
static inline __int128 ki_floor_divide(__int128 x, __int128 y)
{
  if (x == (int64_t)x && y == (int64_t)y && y != -1) {
    int64_t a = (int64_t)x, b = (int64_t)y;
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
  }
  return x / y - (x % y != 0 && (x < 0) != (y < 0));
}

#endif
