/* kjit/reduce.h: algorithms that combine or map elements: reductions, scans, maps and updates of
 * indexed elements. algorithm.h describes how algorithms are called. */
#ifndef KJIT_REDUCE_H
#define KJIT_REDUCE_H

#include <kjit/operand.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- reduce ---- */

/* Combines x's elements with an operator and writes the value to result.
 *
 * The reduction covers all elements (result has rank 0 or one element) or the axes in options.axes.
 * In the second case, result has x's shape without these axes, or with extent 1 there. Elements are
 * combined in order. The grouping is the same in every run on the same device. If x is empty, the
 * result is options.initial, or the operator's identity (0 for add); without both, the call fails.
 * options.results reports the accumulator type for the result, or x's element type if x has f16 or
 * bf16 elements.
 *
 * If options is NULL, all options have their defaults. Errors: ARGUMENT (shapes, axes, operands
 * that overlap or cannot be written, too little temporary storage), TYPE (operator's result type,
 * or an unsupported element type), NAME (unknown operator), UNSUPPORTED, and errors from
 * kjit_launch. */
KJIT_API KJIT_CHECK kjit_status kjit_reduce(kjit_context *context, const kjit_operand *result,
                                            const kjit_operand *x, const kjit_operator *operator_,
                                            const kjit_algorithm_options *options);

/* Computes several reductions and reads x only once. results[i] receives the reduction with
 * operators[i]. Both arrays have count elements.
 *
 * Each reduction uses kjit_reduce's accumulator type. Float sums can differ from
 * kjit_reduce in rounding. options.initial is not supported. Messages call the results r0, r1.
 * Errors: see kjit_reduce; also UNSUPPORTED if the accumulators need more than 128 bytes
 * together. */
KJIT_API KJIT_CHECK kjit_status kjit_reduce_several(kjit_context *context,
                                                    const kjit_operand *results,
                                                    const kjit_operand *x,
                                                    const kjit_operator *operators, size_t count,
                                                    const kjit_algorithm_options *options);

/* ---- reduce and scan by segments and by key ---- */

/* These functions' operands have one axis; options.axes is not supported. */

/* Reduces each segment of x. Segment i has the elements offsets[i] to offsets[i + 1] - 1, and
 * result[i] receives its reduction.
 *
 * offsets has one more element than there are segments, like a CSR matrix's row pointers, and must
 * not decrease. Elements before the first segment and after the last segment are ignored. An
 * empty segment has the result of kjit_reduce for an empty array: options.initial if it is set,
 * otherwise the operator's identity.
 *
 * If an empty segment has no such result, or if offsets decrease or are out of bounds, the call
 * raises a kernel error (KERNEL) after all threads have finished; result is then undefined. The
 * call does not access any other memory. options.results reports the same element type as in
 * kjit_reduce. Errors: see kjit_reduce. */
KJIT_API KJIT_CHECK kjit_status kjit_reduce_segments(kjit_context *context,
                                                     const kjit_operand *result,
                                                     const kjit_operand *x,
                                                     const kjit_operand *offsets,
                                                     const kjit_operator *operator_,
                                                     const kjit_algorithm_options *options);
/* Scans each segment separately, like kjit_scan. Each segment starts with options.initial or the
 * identity. Elements in result outside all segments stay unchanged. */
KJIT_API KJIT_CHECK kjit_status kjit_scan_segments(kjit_context *context,
                                                   const kjit_operand *result,
                                                   const kjit_operand *x,
                                                   const kjit_operand *offsets,
                                                   const kjit_operator *operator_,
                                                   const kjit_algorithm_options *options);

/* Reduces each run of elements with equal consecutive keys.
 *
 * equal(a, b) compares two keys. NULL means ==. keys and x have the same number of elements, n. If
 * keys is sorted, each distinct key has one run. For each run, kjit writes the first key to
 * result_keys and the reduction, starting with options.initial, to result. It writes the number of
 * runs to count on the device, so the call does not wait. Both results need a capacity of n
 * elements. kjit leaves the unused elements unchanged. Outputs must not overlap any operand. The
 * operator needs no identity. Errors: see kjit_reduce. */
KJIT_API KJIT_CHECK kjit_status kjit_reduce_by_key(
  kjit_context *context, const kjit_operand *result_keys, const kjit_operand *result,
  const kjit_operand *count, const kjit_operand *keys, const kjit_operand *x,
  const kjit_operator *operator_, kjit_function *equal, const kjit_algorithm_options *options);
/* Scans each run of equal keys separately, like kjit_scan. result can be x itself. */
KJIT_API KJIT_CHECK kjit_status kjit_scan_by_key(kjit_context *context, const kjit_operand *result,
                                                 const kjit_operand *keys, const kjit_operand *x,
                                                 const kjit_operator *operator_,
                                                 kjit_function *equal,
                                                 const kjit_algorithm_options *options);

/* ---- map ---- */

/* Calls func for the corresponding elements of all operands and writes its value to the results. A
 * func for several results returns a tuple with one value for each result.
 *
 * Operands are arrays, funcs with arrays, or single values. A kjit_arg_number value takes the other
 * operands' type, like a Python number in NumPy. Operands broadcast to the shape of the results.
 * All results have the same shape. Messages call the results r0, r1 and the operands x0, x1. A
 * result can be an operand if both refer to exactly the same elements.
 *
 * With options.signature, for example "(n),(n)->()", func writes the results, which are its last
 * arguments. The signature names the core dimensions, which are the last dimensions of each operand
 * and result. kjit calls func with views of the core dimensions for each index of the other
 * dimensions, which broadcast. An operand with the signature `()` is passed as an element, a result
 * with `()` as an array with one element. Operands and results must not overlap.
 *
 * options.results reports the types that func returns and the broadcast shape, for all results of
 * func; result_count is ignored. For results that func writes, the element type is KJIT_ANY.
 *
 * Errors: ARGUMENT (shapes that do not broadcast, operands that overlap or cannot be written, a
 * signature that does not match), TYPE (type that func returns), SYNTAX (in the signature),
 * UNSUPPORTED, and errors from kjit_launch. */
KJIT_API KJIT_CHECK kjit_status kjit_map(kjit_context *context, const kjit_operand *results,
                                         size_t result_count, kjit_function *function,
                                         const kjit_operand *operands, size_t operand_count,
                                         const kjit_algorithm_options *options);

/* ---- scan ---- */

/* Computes x's running reduction along one axis, options.axes or by default the last axis.
 *
 * Element i of result combines all elements up to i. With KJIT_ALGORITHM_EXCLUSIVE it combines the
 * elements before i and starts with options.initial or the operator's identity. Without the flag,
 * options.initial is combined before all elements. The operator must be associative. The grouping
 * of elements is the same in every run on the same device. result has x's shape and can be x
 * itself. If options is NULL, all options have their defaults. Errors: see kjit_reduce. */
KJIT_API KJIT_CHECK kjit_status kjit_scan(kjit_context *context, const kjit_operand *result,
                                          const kjit_operand *x, const kjit_operator *operator_,
                                          const kjit_algorithm_options *options);

/* Writes the running maximum or minimum along one axis, options.axes or by default the last axis,
 * and its index along the axis.
 *
 * The operator is "max" or "min". As with "argmax" and "argmin" in kjit_reduce, the index is that
 * of the first of several equal elements, or of the first NaN. result has elements of x's type or a
 * type to which they convert, result_places has integers. Both have x's shape. One of them can be
 * NULL, and either can be x itself. options.results reports x's element type and i64. Errors:
 * ARGUMENT (axes, shapes, operands that overlap), TYPE (elements without an order, indices that are
 * not integers), UNSUPPORTED (another operator), MISUSE (both results are NULL), and errors from
 * kjit_launch. */
KJIT_API KJIT_CHECK kjit_status kjit_scan_with_index(
  kjit_context *context, const kjit_operand *result, const kjit_operand *result_places,
  const kjit_operand *x, const kjit_operator *operator_, const kjit_algorithm_options *options);

/* ---- updates ---- */

/* Sets x[places[i]] to operator(x[places[i]], values[i]) for each i, like NumPy's ufunc.at. An
 * index that occurs several times is updated each time.
 *
 * x is an array. places is an array or a func with any shape, whose elements are integer indices
 * into x's first axis. Negative indices count from the end. values is an array, a func or a single
 * value. The shape of values is places.shape + x[0].shape, or a shape that broadcasts to it. The
 * values are converted to x's type, in which the operator computes. The operator must commute.
 *
 * An index out of bounds raises a kernel error (KERNEL). The CPU applies the values in order,
 * except with the operators "min", "max", "fmin", "fmax", "and" and "or". A GPU applies all values
 * in any order, so floating-point results can differ in rounding.
 *
 * If options is NULL, all options have their defaults. Errors: ARGUMENT (shapes, an operator that
 * does not commute, operands that overlap or cannot be written), TYPE, NAME (unknown operator),
 * UNSUPPORTED (on a GPU, elements that need a compare-and-swap and do not have 1, 2, 4, 8 or 16
 * bytes), and errors from kjit_launch. */
KJIT_API KJIT_CHECK kjit_status kjit_update_at(kjit_context *context, const kjit_operand *x,
                                               const kjit_operand *places,
                                               const kjit_operand *values,
                                               const kjit_operator *operator_,
                                               const kjit_algorithm_options *options);

#ifdef __cplusplus
}
#endif
#endif
