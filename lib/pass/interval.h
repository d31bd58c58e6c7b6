/* Intervals of integers: the least and the most value that an expression can have.
 *
 * Ends are 128 bits wide, so that those of every type and every result before it wraps are exact.
 * kp_exact_* give what the operation gives in the integers; kp_wrap_interval what a type makes of
 * that. All of them may be wider than what can happen, never narrower. */
#ifndef KJ_PASS_INTERVAL_H
#define KJ_PASS_INTERVAL_H

#include "typing/typed.h"

/* A type of integers. bool is one bit without a sign. */
typedef struct kp_integer {
  uint32_t bits; /* 0: no type of integers */
  bool is_signed;
} kp_integer;

/* A weak integer is kept in 64 bits. */
kp_integer kp_find_integer(const ki_types *types, kjit_type type);

/* ---- sets ---- */

/* Not known where least > most. */
kt_interval kp_make_interval(__int128 least, __int128 most);
kt_interval kp_whole_interval(kp_integer type);
kt_interval kp_join_intervals(kt_interval x, kt_interval y);
/* What is in both. Not known: nothing is. */
kt_interval kp_meet_intervals(kt_interval x, kt_interval y);
bool kp_is_within(kt_interval x, __int128 least, __int128 most);
bool kp_fits32(kt_interval x);

/* ---- operations: of known operands, which are values of the type ---- */

kt_interval kp_wrap_interval(kp_integer type, kt_interval exact);
/* Not known: nothing better than the whole type is. A shift count is taken modulo the bits of the
 * type, and division by 0 gives 0. */
kt_interval kp_exact_unary(kjit_op op, kt_interval x);
kt_interval kp_exact_binary(kjit_op op, kp_integer type, kt_interval x, kt_interval y);
kt_interval kp_exact_builtin(ki_builtin_id id, const kt_interval *operands, size_t count);
/* An integer made one of another type; to bool: whether it is not 0. */
kt_interval kp_convert_interval(kp_integer to, kt_interval x);

/* ---- leaves ---- */

/* Of a counter from first to stop by step: values in the body; *past: what it is after the last
 * step. Not known: steps of both signs. */
kt_interval kp_counter_interval(kt_interval first, kt_interval stop, kt_interval step,
                                kt_interval *past);
/* Of the variable of a range over an extent. */
kt_interval kp_range_interval(kt_interval extent);

/* What a launch may look like, as the request's signature and the kernel's attributes say it. */
typedef struct kp_launch_limits {
  uint32_t block[3]; /* 0: not known */
  bool grid32;
} kp_launch_limits;
kp_launch_limits kp_find_limits(const kt_compilation *c);
/* blockDim, gridDim and all that counts threads and blocks; not known: no position. */
kt_interval kp_position_interval(const kp_launch_limits *limits, ki_builtin_id id,
                                 uint32_t dimension);
/* Of any array of the type, as far as its memory tells: what pointers lead to may say anything. */
kt_interval kp_extent_interval(kt_compilation *c, kjit_type array);

#endif
