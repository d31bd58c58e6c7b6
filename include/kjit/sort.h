/* kjit/sort.h: algorithms that order, select or find elements: sorts, selections, set operations,
 * searches and histograms. algorithm.h describes how algorithms are called. */
#ifndef KJIT_SORT_H
#define KJIT_SORT_H

#include <kjit/operand.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- sort ---- */

/* Sorts x along one axis, options.axes or by default the last axis, and writes the sorted elements
 * to result.
 *
 * If less is NULL, kjit compares numbers, and NaNs come last. Otherwise less(a, b) returns whether
 * a comes before b. It must be a strict weak ordering, like `<`. The sort is stable, also with
 * KJIT_ALGORITHM_DESCENDING. result has the shape and element type of x and can be x itself.
 *
 * If options is NULL, all options have their defaults. Errors: ARGUMENT (shapes, axes, bits,
 * operands that overlap or cannot be written, too little temporary storage), TYPE (elements that
 * cannot be compared, or less is not a func with two parameters), UNSUPPORTED, and errors from
 * kjit_launch. */
KJIT_API KJIT_CHECK kjit_status kjit_sort(kjit_context *context, const kjit_operand *result,
                                          const kjit_operand *x, kjit_function *less,
                                          const kjit_algorithm_options *options);
/* Sorts x like kjit_sort and moves the elements of values (any type) to result_values.
 * result_values can be values itself. */
KJIT_API KJIT_CHECK kjit_status kjit_sort_pairs(kjit_context *context, const kjit_operand *result,
                                                const kjit_operand *result_values,
                                                const kjit_operand *x, const kjit_operand *values,
                                                kjit_function *less,
                                                const kjit_algorithm_options *options);
/* Writes the indices that would sort x along the axis to result, an integer array. options.results
 * reports i64 as its element type. */
KJIT_API KJIT_CHECK kjit_status kjit_argsort(kjit_context *context, const kjit_operand *result,
                                             const kjit_operand *x, kjit_function *less,
                                             const kjit_algorithm_options *options);
/* Merges x and y, which have one axis and are sorted by less (NULL means numeric order). If
 * elements of x and y are equal, those from x come first. */
KJIT_API KJIT_CHECK kjit_status kjit_merge(kjit_context *context, const kjit_operand *result,
                                           const kjit_operand *x, const kjit_operand *y,
                                           kjit_function *less,
                                           const kjit_algorithm_options *options);

/* Writes the first k elements in sorted order along one axis, options.axes or by default the
 * last axis.
 *
 * These are the k smallest elements, or the k largest with KJIT_ALGORITHM_DESCENDING. result_places
 * receives their indices along the axis, as integers. One result can be NULL. Both have x's shape
 * with extent k along the axis, and overlap neither x nor each other. options.results reports x's
 * element type and i64. Errors: see kjit_sort; also ARGUMENT if k is negative or larger than the
 * extent. */
KJIT_API KJIT_CHECK kjit_status kjit_top_k(kjit_context *context, const kjit_operand *result,
                                           const kjit_operand *result_places, const kjit_operand *x,
                                           int64_t k, kjit_function *less,
                                           const kjit_algorithm_options *options);

/* Sorts each segment in x separately. Segment i has the elements offsets[i] to offsets[i + 1] - 1.
 *
 * x has one axis. offsets holds integers along one axis and has one more element than there are
 * segments. Segments can be empty. Elements before the first segment and after the last segment
 * keep their positions. values and result_values have the same meaning as in kjit_sort_pairs; both
 * can be NULL. A result can be its own input: result can be x, and result_values can be values. If
 * offsets decrease or are out of bounds, the call raises a kernel error (KERNEL), and the results
 * are undefined. Errors: see kjit_sort. */
KJIT_API KJIT_CHECK kjit_status kjit_sort_segments(
  kjit_context *context, const kjit_operand *result, const kjit_operand *result_values,
  const kjit_operand *x, const kjit_operand *values, const kjit_operand *offsets,
  kjit_function *less, const kjit_algorithm_options *options);

/* ---- select ---- */

/* These functions write the selected elements to the start of a result, in the row-major order of
 * x. The result needs a capacity of all n elements. kjit leaves the unused elements unchanged.
 *
 * kjit writes the number of selected elements to count, an array with one integer on the device, so
 * the calls do not wait. Results must not overlap inputs. On the CPU a result func can be called
 * several times for the same index. The last call counts. If options is NULL, all options have
 * their defaults; axes are not supported. Errors: see kjit_reduce. */

/* Selects the elements of x whose flag is not 0. flags is an array or a func of the index, which
 * can read x. It has the same number of elements as x. */
KJIT_API KJIT_CHECK kjit_status kjit_select(kjit_context *context, const kjit_operand *result,
                                            const kjit_operand *count, const kjit_operand *x,
                                            const kjit_operand *flags,
                                            const kjit_algorithm_options *options);
/* Like kjit_select, and writes the remaining elements to rest. */
KJIT_API KJIT_CHECK kjit_status kjit_partition(kjit_context *context, const kjit_operand *result,
                                               const kjit_operand *rest, const kjit_operand *count,
                                               const kjit_operand *x, const kjit_operand *flags,
                                               const kjit_algorithm_options *options);
/* Distributes x's elements by their class: class 0 to first, class 1 to second, class 2 to
 * rest.
 *
 * classes is an array of integers or a func of the index, and has the same number of elements as x.
 * counts receives two integers, the number of elements in first and in second. Another class raises
 * a kernel error (KERNEL), and the element is written to rest. */
KJIT_API KJIT_CHECK kjit_status
kjit_partition_three(kjit_context *context, const kjit_operand *first, const kjit_operand *second,
                     const kjit_operand *rest, const kjit_operand *counts, const kjit_operand *x,
                     const kjit_operand *classes, const kjit_algorithm_options *options);
/* Writes the indices where x is nonzero, starting at 0. */
KJIT_API KJIT_CHECK kjit_status kjit_nonzero(kjit_context *context, const kjit_operand *result,
                                             const kjit_operand *count, const kjit_operand *x,
                                             const kjit_algorithm_options *options);
/* Selects the first element of each run of equal consecutive elements. equal is a func with two
 * parameters. NULL means ==. */
KJIT_API KJIT_CHECK kjit_status kjit_unique(kjit_context *context, const kjit_operand *result,
                                            const kjit_operand *count, const kjit_operand *x,
                                            kjit_function *equal,
                                            const kjit_algorithm_options *options);
/* Like kjit_unique, and writes the corresponding elements of values to result_values. */
KJIT_API KJIT_CHECK kjit_status kjit_unique_pairs(kjit_context *context, const kjit_operand *result,
                                                  const kjit_operand *result_values,
                                                  const kjit_operand *count, const kjit_operand *x,
                                                  const kjit_operand *values, kjit_function *equal,
                                                  const kjit_algorithm_options *options);
/* Like kjit_unique, and writes each run's length to lengths and its first index to starts.
 * starts can be NULL. */
KJIT_API KJIT_CHECK kjit_status kjit_run_lengths(kjit_context *context, const kjit_operand *result,
                                                 const kjit_operand *lengths,
                                                 const kjit_operand *starts,
                                                 const kjit_operand *count, const kjit_operand *x,
                                                 kjit_function *equal,
                                                 const kjit_algorithm_options *options);

/* ---- sets ---- */

/* Computes the union of x and y, which have one axis and are sorted by less.
 *
 * If less is NULL, the order is numeric: NaNs come last and are equal to each other, and -0.0
 * equals 0.0. Otherwise less(a, b) returns whether a comes before b. With KJIT_ALGORITHM_DESCENDING
 * the order is reversed. The result for unsorted inputs is unspecified.
 *
 * Repeated elements are handled as by C++'s std::set_union. If an element occurs m times in x and n
 * times in y, it occurs max(m, n) times in the union, min(m, n) times in the intersection, max(m -
 * n, 0) times in the difference and abs(m - n) times in the symmetric difference. Elements from x
 * come first; surplus elements are the last ones in the input that has more.
 *
 * result needs a capacity for the largest possible result: x.size + y.size for the union and
 * symmetric difference, min(x.size, y.size) for the intersection and x.size for the difference.
 * kjit leaves unused elements unchanged. kjit writes the number of result elements to count, an
 * integer on the device, without waiting. Results must not overlap x and y. On the CPU a result
 * func can be called several times for the same index. The last call counts.
 *
 * If options is NULL, all options have their defaults. Errors: ARGUMENT (shapes, too little
 * capacity, operands that overlap or cannot be written, too little temporary storage), TYPE (x and
 * y of different types, elements that cannot be compared), UNSUPPORTED, and errors from
 * kjit_launch. */
KJIT_API KJIT_CHECK kjit_status kjit_set_union(kjit_context *context, const kjit_operand *result,
                                               const kjit_operand *count, const kjit_operand *x,
                                               const kjit_operand *y, kjit_function *less,
                                               const kjit_algorithm_options *options);
/* Computes the intersection of x and y, like kjit_set_union. */
KJIT_API KJIT_CHECK kjit_status kjit_set_intersection(kjit_context *context,
                                                      const kjit_operand *result,
                                                      const kjit_operand *count,
                                                      const kjit_operand *x, const kjit_operand *y,
                                                      kjit_function *less,
                                                      const kjit_algorithm_options *options);
/* Computes the elements of x that are not in y, like kjit_set_union. */
KJIT_API KJIT_CHECK kjit_status kjit_set_difference(kjit_context *context,
                                                    const kjit_operand *result,
                                                    const kjit_operand *count,
                                                    const kjit_operand *x, const kjit_operand *y,
                                                    kjit_function *less,
                                                    const kjit_algorithm_options *options);
/* Computes the elements that are in x or in y but not in both, like kjit_set_union. */
KJIT_API KJIT_CHECK kjit_status kjit_set_symmetric_difference(
  kjit_context *context, const kjit_operand *result, const kjit_operand *count,
  const kjit_operand *x, const kjit_operand *y, kjit_function *less,
  const kjit_algorithm_options *options);

/* ---- search ---- */

/* Finds the insertion index for each element of values: how many elements of sorted come before it.
 * With KJIT_ALGORITHM_RIGHT, equal elements count as well.
 *
 * sorted has one axis. If less is NULL, it is in ascending numeric order with NaNs last. Otherwise
 * less(a, b) returns whether a comes before b. result holds integers and has the shape of values.
 * If options is NULL, all options have their defaults. Errors: ARGUMENT (shapes, operands that
 * overlap or cannot be written), TYPE (elements that cannot be compared, a result that is not an
 * integer), and errors from kjit_launch. */
KJIT_API KJIT_CHECK kjit_status kjit_search_sorted(kjit_context *context,
                                                   const kjit_operand *result,
                                                   const kjit_operand *sorted,
                                                   const kjit_operand *values, kjit_function *less,
                                                   const kjit_algorithm_options *options);

/* Counts how many elements of x equal i, for i from 0 to bins - 1, and writes the counts to result.
 * With weights, result[i] is these elements' total weight.
 *
 * x holds integers and can have any shape. weights is NULL or has x's shape. An element
 * outside 0 to bins - 1 raises a kernel error (KERNEL). Sums of weights are computed in i64, u64 or
 * f64. On a GPU the order of floating-point additions is not deterministic. Errors: ARGUMENT
 * (shapes, bins, operands that overlap or cannot be written), TYPE (elements that are not integers,
 * weights that are not real numbers), and errors from kjit_launch. */
KJIT_API KJIT_CHECK kjit_status kjit_bincount(kjit_context *context, const kjit_operand *result,
                                              const kjit_operand *x, int64_t bins,
                                              const kjit_operand *weights,
                                              const kjit_algorithm_options *options);
/* Counts the elements of x in bins of equal width from low to high, like numpy.histogram. A bin
 * includes its lower edge, and the last bin includes both edges. Other elements and NaN are not
 * counted. x holds real numbers. If low equals high, the bins cover a range of width 1 around it.
 * Otherwise like kjit_bincount. */
KJIT_API KJIT_CHECK kjit_status kjit_histogram(kjit_context *context, const kjit_operand *result,
                                               const kjit_operand *x, int64_t bins, double low,
                                               double high, const kjit_operand *weights,
                                               const kjit_algorithm_options *options);
/* Like kjit_histogram, but each bin lies between two consecutive elements of edges, a
 * one-dimensional operand whose elements are in ascending order. */
KJIT_API KJIT_CHECK kjit_status kjit_histogram_edges(
  kjit_context *context, const kjit_operand *result, const kjit_operand *x,
  const kjit_operand *edges, const kjit_operand *weights, const kjit_algorithm_options *options);

#ifdef __cplusplus
}
#endif
#endif
