/* Intervals of integers: the minimum and maximum of an expression's values in any launch.
 *
 * The limits have 128 bits, so they are exact for every type and for every result before it wraps.
 * kp_exact_* return the mathematical result of an operation; kp_wrap_interval reduces it to the
 * range of a type. An interval always contains all possible values; it can also contain others. */
#ifndef KJ_PASS_INTERVAL_H
#define KJ_PASS_INTERVAL_H

#include "typing/typed.h"

/* An integer type. bool is treated as an unsigned type of one bit. */
typedef struct kp_integer {
  uint32_t bits; /* 0 means that the type is not an integer type */
  bool is_signed;
} kp_integer;

/* Returns the number of bits and the signedness of a type. A weak integer has 64 bits. */
kp_integer kp_find_integer(const ki_types *types, kjit_type type);

/* ---- sets ---- */

/* Returns an interval, which is unknown if least > most. */
kt_interval kp_make_interval(__int128 least, __int128 most);
kt_interval kp_whole_interval(kp_integer type);
kt_interval kp_join_intervals(kt_interval x, kt_interval y);
/* Returns the intersection. The result is unknown if the intersection is empty or an operand is
 * unknown. */
kt_interval kp_meet_intervals(kt_interval x, kt_interval y);
bool kp_is_within(kt_interval x, __int128 least, __int128 most);
bool kp_fits32(kt_interval x);

/* ---- operations: the operands are known and within the range of the type ---- */

kt_interval kp_wrap_interval(kp_integer type, kt_interval exact);
/* These functions return an unknown interval if the result is not narrower than the range of the
 * type. A shift count is taken modulo the number of bits, and division by 0 gives 0. */
kt_interval kp_exact_unary(kjit_op op, kt_interval x);
kt_interval kp_exact_binary(kjit_op op, kp_integer type, kt_interval x, kt_interval y);
kt_interval kp_exact_builtin(ki_builtin_id id, const kt_interval *operands, size_t count);
/* Returns the interval after a conversion to another integer type. A conversion to bool tests
 * whether the value is not 0. */
kt_interval kp_convert_interval(kp_integer to, kt_interval x);

/* ---- leaves ---- */

/* Returns the interval of a loop counter within the body of a loop that counts from first to stop
 * in steps of step. Sets *past to the counter's interval after the last step. If the step may be
 * positive or negative, the result is unknown. */
kt_interval kp_counter_interval(kt_interval first, kt_interval stop, kt_interval step,
                                kt_interval *past);
/* Returns the interval of the variable of a range with this extent. */
kt_interval kp_range_interval(kt_interval extent);

/* The limits of a launch that follow from the signature of the request and from attributes of the
 * kernel. */
typedef struct kp_launch_limits {
  uint32_t block[3]; /* 0 means not known */
  bool grid32;
} kp_launch_limits;
kp_launch_limits kp_find_limits(const kt_compilation *c);
/* Returns the interval of blockDim, gridDim or another built-in that numbers or counts threads and
 * blocks, and an unknown interval for any other built-in. */
kt_interval kp_position_interval(const kp_launch_limits *limits, ki_builtin_id id,
                                 uint32_t dimension);
/* Returns the interval of an extent of any array of the type. The size of memory limits the extent,
 * except for arrays made from pointers, which can have any extent. */
kt_interval kp_extent_interval(kt_compilation *c, kjit_type array);

#endif
