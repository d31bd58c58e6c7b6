/* Intervals of integers: the least and the most value that an expression can have.
 *
 * Ends are 128 bits wide, so that those of every type and every result before it wraps are exact.
 * kj_exact_* give what the operation gives in the integers; kj_wrap_interval what a type makes of
 * that. All of them may be wider than what can happen, never narrower. */
#ifndef KJ_PASS_INTERVAL_H
#define KJ_PASS_INTERVAL_H

#include "typing/typed.h"

/* A type of integers. bool is one bit without a sign. */
typedef struct kj_integer {
  uint32_t bits; /* 0: no type of integers */
  bool is_signed;
} kj_integer;

/* A weak integer is kept in 64 bits. */
kj_integer kj_find_integer(const kj_types *types, kjit_type type);

/* ---- sets ---- */

/* Not known where least > most. */
kj_interval kj_make_interval(__int128 least, __int128 most);
kj_interval kj_whole_interval(kj_integer type);
kj_interval kj_join_intervals(kj_interval x, kj_interval y);
/* What is in both. Not known: nothing is. */
kj_interval kj_meet_intervals(kj_interval x, kj_interval y);
bool kj_is_within(kj_interval x, __int128 least, __int128 most);
bool kj_fits32(kj_interval x);

/* ---- operations: of known operands, which are values of the type ---- */

kj_interval kj_wrap_interval(kj_integer type, kj_interval exact);
/* Not known: nothing better than the whole type is. A shift count is taken modulo the bits of the
 * type, and division by 0 gives 0. */
kj_interval kj_exact_unary(kjit_op op, kj_interval x);
kj_interval kj_exact_binary(kjit_op op, kj_integer type, kj_interval x, kj_interval y);
kj_interval kj_exact_builtin(kj_builtin_id id, const kj_interval *operands, size_t count);
/* An integer made one of another type; to bool: whether it is not 0. */
kj_interval kj_convert_interval(kj_integer to, kj_interval x);

/* ---- leaves ---- */

/* Of a counter from first to stop by step: values in the body; *past: what it is after the last
 * step. Not known: steps of both signs. */
kj_interval kj_counter_interval(kj_interval first, kj_interval stop, kj_interval step,
                                kj_interval *past);
/* Of the variable of a range over an extent. */
kj_interval kj_range_interval(kj_interval extent);

/* What a launch may look like, as the request's signature and the kernel's attributes say it. */
typedef struct kj_launch_limits {
  uint32_t block[3]; /* 0: not known */
  bool grid32;
} kj_launch_limits;
kj_launch_limits kj_find_limits(const kj_compilation *c);
/* blockDim, gridDim and all that counts threads and blocks; not known: no position. */
kj_interval kj_position_interval(const kj_launch_limits *limits, kj_builtin_id id,
                                 uint32_t dimension);
/* Of any array of the type, as far as its memory tells: what pointers lead to may say anything. */
kj_interval kj_extent_interval(kj_compilation *c, kjit_type array);

#endif
