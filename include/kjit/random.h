/* kjit/random.h: random numbers, permutations and shuffles. algorithm.h describes how algorithms
 * are called. */
#ifndef KJIT_RANDOM_H
#define KJIT_RANDOM_H

#include <kjit/operand.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- random numbers ---- */

/* These functions fill x, an array or an output func, with random numbers. In row-major order, the
 * elements are the numbers offset, offset + 1 and so on of the sequence that the seed determines.
 *
 * Number i of a seed depends only on the seed and i (Philox4x32-10). Several calls can therefore
 * fill parts of an array, and a call has no state. For types up to 32 bits, number i is computed
 * from word i of the generator; for 64-bit types it is computed from the words 2 * i and 2 * i + 1.
 * Uniform numbers and integers have the same bits on every device. Normal and exponential numbers
 * differ in the rounding in log, sqrt and sincospi.
 *
 * options.accumulator is the number type that an output func receives, by default f32, or i64 for
 * integers. If options is NULL, all options have their defaults. Errors: ARGUMENT (numbers that are
 * not finite or too large, an x that cannot be written), TYPE (elements that are not floats with at
 * least 16 bits, or not integers for kjit_random_integers), and errors from kjit_launch. */

/* Fills x with uniformly distributed numbers in [low, high). With bounds other than 0 and 1,
 * rounding can produce high itself. Numbers in [0, 1) have 53 bits in f64, 24 in f32, 11 in f16 and
 * 8 in bf16. */
KJIT_API KJIT_CHECK kjit_status kjit_random_uniform(kjit_context *context, const kjit_operand *x,
                                                    uint64_t seed, uint64_t offset, double low,
                                                    double high,
                                                    const kjit_algorithm_options *options);
/* Fills x with normally distributed numbers. deviation is the standard deviation and must not be
 * negative. */
KJIT_API KJIT_CHECK kjit_status kjit_random_normal(kjit_context *context, const kjit_operand *x,
                                                   uint64_t seed, uint64_t offset, double mean,
                                                   double deviation,
                                                   const kjit_algorithm_options *options);
/* Fills x with exponentially distributed numbers. scale is their mean and must not be negative. */
KJIT_API KJIT_CHECK kjit_status kjit_random_exponential(kjit_context *context,
                                                        const kjit_operand *x, uint64_t seed,
                                                        uint64_t offset, double scale,
                                                        const kjit_algorithm_options *options);
/* Fills x with integers from least to greatest, inclusive, all with the same probability. Both
 * bounds must be valid for x's type; for u64 they are reinterpreted as unsigned. */
KJIT_API KJIT_CHECK kjit_status kjit_random_integers(kjit_context *context, const kjit_operand *x,
                                                     uint64_t seed, uint64_t offset, int64_t least,
                                                     int64_t greatest,
                                                     const kjit_algorithm_options *options);
/* Fills the n elements of x with a random permutation of 0 to n - 1. All permutations have the same
 * probability. x holds integers along one axis or is a func with one index. The permutation is the
 * same on every device and changes with n. Errors: ARGUMENT (more than one axis, a type that cannot
 * hold n - 1), TYPE (elements that are not integers), and errors from kjit_launch. */
KJIT_API KJIT_CHECK kjit_status kjit_random_permutation(kjit_context *context,
                                                        const kjit_operand *x, uint64_t seed,
                                                        const kjit_algorithm_options *options);
/* Permutes x's rows (or its elements, for one axis) with the permutation p from
 * kjit_random_permutation: result[i] is x[p[i]]. result has x's shape and type and must not
 * overlap it. Errors: ARGUMENT (shapes, operands that overlap or cannot be written), TYPE, and the
 * kjit_launch errors. */
KJIT_API KJIT_CHECK kjit_status kjit_random_shuffle(kjit_context *context,
                                                    const kjit_operand *result,
                                                    const kjit_operand *x, uint64_t seed,
                                                    const kjit_algorithm_options *options);

#ifdef __cplusplus
}
#endif
#endif
