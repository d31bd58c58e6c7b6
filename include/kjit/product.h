/* kjit/product.h: products of arrays (einsum, matrix products) and reductions over all pairs of
 * rows. algorithm.h describes how algorithms are called. */
#ifndef KJIT_PRODUCT_H
#define KJIT_PRODUCT_H

#include <kjit/operand.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- products ---- */

/* Computes the product sum that expression describes, like numpy.einsum; "ij,jk->ik" is a matrix
 * product.
 *
 * Each operand axis has a letter, A to Z or a to z, or belongs to "...". Axes in "..."
 * broadcast from the last one backwards; axes with extent 1 broadcast. A letter that an operand
 * repeats selects the diagonal. Letters that the result does not have are summed. Without "->" the
 * result has the ellipsis followed by the letters that occur once, in alphabetical order. There are
 * 1 to 10 operands with the same number type; messages call them x0, x1.
 *
 * kjit multiplies operands in pairs, in the order with the fewest multiplications, and keeps
 * intermediate results in temporary storage. Sums are computed in options.accumulator. By default
 * this is f64 for floats if the result array has f64 elements, otherwise f32 for f16 and bf16, and
 * 64 bits or the integer type of the result array for integers. With options.epilogue the result
 * type has no influence, and the epilogue is applied once to each sum. options.results reports the
 * type that the epilogue returns, or without an epilogue the operands' type.
 *
 * GPUs' tensor cores multiply f16, bf16, f64, i8 and u8, f32 with KJIT_ALGORITHM_TF32, and FP8
 * with KJIT_ALGORITHM_E4M3 or KJIT_ALGORITHM_E5M2.
 *
 * If options is NULL, all options have their defaults. Errors: ARGUMENT (expression, shapes,
 * operands that overlap, cannot be written or do not broadcast, too little temporary storage), TYPE
 * (operands of different types, elements that are not numbers, the type that the epilogue returns),
 * UNSUPPORTED (too many operands, intermediate results with more than 8 axes), and errors from
 * kjit_launch. */
KJIT_API KJIT_CHECK kjit_status kjit_einsum(kjit_context *context, const kjit_operand *result,
                                            const char *expression, const kjit_operand *operands,
                                            size_t operand_count,
                                            const kjit_algorithm_options *options);
/* Computes the matrix product of x and y, like numpy.matmul. The last two axes are multiplied, and
 * the others broadcast. An operand with one axis is a row on the left or a column on the right. The
 * result does not have this axis. Errors and options: see kjit_einsum. */
KJIT_API KJIT_CHECK kjit_status kjit_matmul(kjit_context *context, const kjit_operand *result,
                                            const kjit_operand *x, const kjit_operand *y,
                                            const kjit_algorithm_options *options);

/* ---- pairs ---- */

/* Combines the values function(x[i], y0[j], y1[j] ..., i, j, more) over all j with an operator and
 * writes the result for each i to result[i]. The matrix of all pairs is never stored.
 *
 * x and the y_count operands y (1 to 8) have one or two axes. With one axis, the func receives
 * elements; with two axes, it receives rows as arrays whose extents are known at compile time. i
 * and j are i64. function is a kjit_operand_function without a shape. Its last arguments, `more`,
 * follow i and j. operator_ can be any operator of kjit_reduce. So that exp does not overflow,
 * logaddexp keeps the largest value and the sum of exp(value - largest).
 *
 * Values are combined in the order of j, in chunks that are the same in every run on the same
 * device. If y has no rows, the result is the operator's identity; without an identity the call
 * fails. Messages call y's operands y0, y1. The result type and options.accumulator are as in
 * kjit_reduce. Errors: ARGUMENT (shapes, operands that overlap or cannot be written, too little
 * temporary storage), TYPE (type that the func returns, or an operator that does not support it),
 * NAME, UNSUPPORTED (rows with more than 4096 bytes, or 8192 bytes in all y rows), and errors from
 * kjit_launch. */
KJIT_API KJIT_CHECK kjit_status kjit_pairs(kjit_context *context, const kjit_operand *result,
                                           const kjit_operand *function, const kjit_operand *x,
                                           const kjit_operand *y, size_t y_count,
                                           const kjit_operator *operator_,
                                           const kjit_algorithm_options *options);
/* Reduces several values for each pair in one pass. function returns a tuple with result_count
 * values, 1 to 16, and the operator reduces the values with index k to result k. With one result,
 * function can return a single value. The results have one axis and must not overlap. Messages call
 * the results r0, r1.
 *
 * options.results reports the types of all values that the function returns; result_count is then
 * ignored. Errors: see kjit_pairs; TYPE (the number of values differs from result_count),
 * UNSUPPORTED (more than 16 values). */
KJIT_API KJIT_CHECK kjit_status kjit_pairs_several(kjit_context *context,
                                                   const kjit_operand *results, size_t result_count,
                                                   const kjit_operand *function,
                                                   const kjit_operand *x, const kjit_operand *y,
                                                   size_t y_count, const kjit_operator *operator_,
                                                   const kjit_algorithm_options *options);
/* Values for `by` of kjit_pairs_gradient that are not the number of a parameter. */
enum {
  KJIT_PAIRS_VALUE = 0x7fffffff /* the result of kjit_pairs itself */
};
/* Computes derivatives of kjit_pairs without storing the matrix of all pairs.
 *
 * cotangents has an element for each row of x: the derivative of a scalar (such as a loss) with
 * respect to result[i]. The gradients are the derivatives of this scalar with respect to parameters
 * of function.
 *
 * by holds `count` parameter indices, 1 to 16, in ascending order: 0 is the row of x, 1 to y_count
 * are y's rows, and y_count + 3 is the first of the function's last arguments. gradients[k] belongs
 * to parameter by[k]. If the parameter is a row of x or y, the gradient has the shape of this
 * operand. If the parameter is a last argument and a number, the gradient has one element for each
 * row of x. If the last argument is an array with one axis of up to 64 elements, the gradient has a
 * row of this length for each row of x. The derivative with respect to the last argument is the sum
 * of these elements or rows. A pass over the pairs computes the derivatives with respect to x and
 * the last arguments. Another pass computes the derivatives with respect to y. Messages call the
 * gradients g0, g1, by parameter index.
 *
 * If the last item of by is KJIT_PAIRS_VALUE, the last gradient is the result of kjit_pairs, which
 * the pass for x computes. KJIT_PAIRS_VALUE needs the operator "add" and a derivative with respect
 * to x or a last argument.
 *
 * operator_ is "add", "logaddexp", "max" or "min". result can be NULL for "add". For "logaddexp",
 * result is the result of kjit_pairs. For "max" and "min", result holds the integers from
 * kjit_pairs with "argmax" or "argmin". Among equal values, only the first one has a derivative.
 *
 * With options.chunk, kjit reads this many y rows at a time. For derivatives with respect to y it
 * reads this number of x rows for each chunk of y rows. options.devices share the rows of x, and
 * for derivatives with respect to y the rows of y.
 *
 * The func receives f16 and bf16 rows and numbers as f32. The same holds for f16 and bf16 arrays by
 * which it is differentiated. kjit sums their derivatives in f32 and rounds the sums when it stores
 * them. For a last argument, an f32 gradient avoids this rounding.
 *
 * Errors: see kjit_pairs; TYPE (an operator without a derivative, elements that are not floats, a
 * func that returns neither f32 nor f64), and errors of the derivative of function
 * (docs/derivatives.md). */
KJIT_API KJIT_CHECK kjit_status kjit_pairs_gradient(
  kjit_context *context, const kjit_operand *gradients, const uint32_t *by, size_t count,
  const kjit_operand *cotangents, const kjit_operand *result, const kjit_operand *function,
  const kjit_operand *x, const kjit_operand *y, size_t y_count, const kjit_operator *operator_,
  const kjit_algorithm_options *options);
/* Writes the k smallest values for each row i of x to row i of result, in ascending order.
 *
 * k is 1 to 64 and at most y's row count. result_places, integers or NULL, receives the index j of
 * each value. Among equal values the first ones are chosen; NaN comes after all numbers.
 * options.results reports i64 for result_places. Errors: see kjit_pairs. */
KJIT_API KJIT_CHECK kjit_status kjit_pairs_smallest(
  kjit_context *context, const kjit_operand *result, const kjit_operand *result_places,
  const kjit_operand *function, const kjit_operand *x, const kjit_operand *y, size_t y_count,
  int64_t k, const kjit_algorithm_options *options);

#ifdef __cplusplus
}
#endif
#endif
