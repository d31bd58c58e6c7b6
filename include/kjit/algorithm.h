/* kjit/algorithm.h: reductions, scans, sorts, searches, products and other algorithms on whole
 * arrays.
 *
 * status.h has the rules that hold for every function. docs/algorithms.md describes each algorithm.
 *
 * A call takes operands, options and, for many algorithms, an operator. It is asynchronous on the
 * stream in the options, like a launch. With options.plan, kjit only prepares the call, and
 * kjit_run_plan runs it any number of times. Results have the same meaning on GPUs and on the CPU.
 * kjit compiles the code for the operand types, funcs and operators at the first call that needs it
 * and caches it like kernel code. */
#ifndef KJIT_ALGORITHM_H
#define KJIT_ALGORITHM_H

#include <kjit/function.h>
#include <kjit/memory.h>
#include <kjit/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- operands ---- */

/* An algorithm's input or output: an array with any strides, or a func that computes each element
 * on demand.
 *
 * Element (i, j) of an input func f with arrays a and b is f(i, j, a, b). An output func f is
 * called as f(i, j, v, a, b) for each element v. Indices are i64. If a func writes to arrays, the
 * application must make sure that they do not overlap the inputs. Memory that an operand points to
 * is read only during the call, but the arrays themselves are used until the work on the stream is
 * done. */
typedef struct kjit_operand {
  /* from kjit_arg_array, kjit_arg_tensor, kjit_arg_elements or kjit_arg_function */
  kjit_arg argument;
  const kjit_arg *arrays; /* a func's last arguments: arrays and scalars */
  /* number of arrays */
  size_t array_count;
  const int64_t *shape; /* a func's extents, rank numbers */
  /* how many extents a func has, 0 to 8 */
  uint32_t rank;
} kjit_operand;

/* Returns an operand for an argument: an array, a tensor, or one value for all elements. */
static inline kjit_operand kjit_operand_of(kjit_arg argument)
{
  kjit_operand operand = { argument, NULL, 0, NULL, 0 };
  return operand;
}
/* Returns an operand for an array, which is borrowed. */
static inline kjit_operand kjit_operand_array(kjit_array *array)
{
  return kjit_operand_of(kjit_arg_array(array));
}
/* Returns an operand for a DLTensor or kjit_tensor, which kjit reads during the call. The memory of
 * the tensor must live until the work on the stream is done. */
static inline kjit_operand kjit_operand_tensor(const void *dl_tensor)
{
  return kjit_operand_of(kjit_arg_tensor(dl_tensor));
}
/* Returns an operand for a func with `count` last arguments and rank extents. kjit borrows the
 * pointers and copies nothing. */
static inline kjit_operand kjit_operand_function(kjit_function *function, const kjit_arg *arrays,
                                                 size_t count, const int64_t *shape, uint32_t rank)
{
  kjit_operand operand = { kjit_arg_function(function), arrays, count, shape, rank };
  return operand;
}

/* ---- operators ---- */

/* An associative function that combines two values: a func with two parameters, or the name of a
 * built-in operator ("add", "mul", "min", "max" ...). docs/algorithms.md lists the names.
 *
 * The func returns the combined value. A func that returns bool, like a comparison, is rejected
 * (TYPE) unless the elements or the accumulator are bool. A func's identity element is the result
 * of the func named by its `@identity`. */
typedef struct kjit_operator {
  const char *name;        /* NULL if function is set */
  kjit_function *function; /* NULL if name is set */
  /* Nonzero means that f(a, b) equals f(b, a), like a func's attribute `@commutes`. A
   * reduction may then change the order of elements, which is a little faster. kjit knows which
   * built-in operators commute. */
  int commutes;
} kjit_operator;

/* Returns the built-in operator `name`. The string is not copied. */
static inline kjit_operator kjit_operator_named(const char *name)
{
  kjit_operator operator_ = { name, NULL, 0 };
  return operator_;
}
/* Returns an associative operator for a func with two parameters. Set commutes if the func is
 * commutative. */
static inline kjit_operator kjit_operator_function(kjit_function *function)
{
  kjit_operator operator_ = { NULL, function, 0 };
  return operator_;
}
/* Returns the built-in operator's name for this index, or NULL after the last operator. The
 * order is that of docs/algorithms.md; operators that only kjit_reduce takes come last. */
KJIT_API const char *kjit_get_operator_name(size_t index);

/* ---- plans ---- */

/* A prepared call: compiled, with its memory allocated. Only one thread may use a plan at a time;
 * kjit_run_plan returns MISUSE if another thread is running the plan. */
typedef struct kjit_plan kjit_plan;

/* Queues the prepared call's work. If stream is NULL, the stream in the options is used.
 *
 * The function never waits for the device and can be captured into a graph. A plan has its own
 * temporary storage, so the application must order runs of the same plan on different streams. The
 * first run clears part of the temporary storage. After a kernel on the device has failed
 * (KJIT_ERROR_KERNEL), the next run clears it again. A graph that captured an earlier run must then
 * be captured again. Errors: see kjit_launch. */
KJIT_API KJIT_CHECK kjit_status kjit_run_plan(kjit_plan *plan, kjit_stream *stream);
/* Destroys a plan. Its arrays and temporary storage are released in stream order. plan can be
 * NULL. */
KJIT_API void kjit_destroy_plan(kjit_plan *plan);
/* Returns the context that the plan belongs to. */
KJIT_API kjit_context *kjit_get_plan_context(const kjit_plan *plan);
/* Returns how many launches a run has. */
KJIT_API size_t kjit_get_plan_size(const kjit_plan *plan);
/* Returns a plan's launch for kjit_get_prepared_specialization, or NULL if index is too large.
 * The launch is borrowed from the plan. Do not run or change it. */
KJIT_API const kjit_prepared *kjit_get_plan_launch(const kjit_plan *plan, size_t index);

/* ---- results that are not there yet ---- */

/* Element type and shape of the array that would hold an algorithm's result. Front ends that create
 * result arrays, like NumPy, use it. */
typedef struct kjit_result_info {
  /* element type, or KJIT_ANY if it is not known */
  kjit_type element;
  /* number of extents */
  uint32_t rank;
  /* extents, rank numbers */
  int64_t shape[8];
} kjit_result_info;

/* ---- options ---- */

/* An algorithm's options. Zero or NULL means the default. Each algorithm takes some of the options.
 * An algorithm rejects options that it does not take, if they are set. */
typedef struct kjit_algorithm_options {
  uint32_t size_bytes; /* sizeof(kjit_algorithm_options) */
  /* Device. Default: the device of the stream or the arrays, otherwise as in a launch. */
  kjit_device *device;
  kjit_stream *stream; /* Stream. Default: the device's default stream. */
  /* Axes. Default: all axes for a reduction, the last axis for algorithms with one axis. -1 is the
   * last axis. */
  const int32_t *axes;
  /* number of axes; default 0 */
  uint32_t axis_count;
  /* Type in which a reduction or scan computes. The default (KJIT_ANY) is the result type if it is
   * wider. Otherwise NumPy's rules apply: sums and products of small integers use 64 bits, and
   * those of f16 and bf16 use f32.
   *
   * If the operator is a func and the result array has numbers as elements, the default is the
   * element type of the result. With an i32 result, for example, f32 elements are truncated to i32
   * before the func receives them. With accumulator KJIT_F32 the func computes in f32, and only the
   * result is truncated. */
  kjit_type accumulator;
  /* Initial value for a reduction or scan, combined before all elements. Default NULL: no initial
   * value. */
  const kjit_arg *initial;
  uint32_t flags; /* see kjit_algorithm_flags */
  /* If not NULL, the call does not run. It prepares a plan and stores it in *plan. */
  kjit_plan **plan;
  /* If not NULL, the call neither runs nor prepares. It stores its temporary storage size in
   * *work_bytes. */
  uint64_t *work_bytes;
  /* Temporary storage provided by the application: a u8 array on the device with at least
   * *work_bytes elements. A plan keeps the array. Default NULL: memory from the device's pool, in
   * stream order. */
  kjit_array *work;
  /* If not NULL, the call neither runs nor prepares. It ignores the operands of results, which may
   * be NULL, and stores in results[i] the description of an array for result i. It leaves further
   * entries unchanged. */
  kjit_result_info *results;
  /* capacity of results, at least the call's number of results */
  size_t result_count;
  /* Range of bits that a sort of numbers compares: begin_bit to end_bit - 1, or to the last bit if
   * end_bit is 0. The default (0, 0) compares all bits. */
  uint32_t begin_bit, end_bit;
  /* Options for kjit_map. where (default NULL) is a bool operand that broadcasts to the results;
   * elements for which it is false stay unchanged. signature (default NULL) names the core
   * dimensions, for example "(m,n),(n)->(m)". */
  const kjit_operand *where;
  /* see where */
  const char *signature;
  /* Option for kjit_pairs: number of y rows to read at a time. Default 0: all rows. If y is in
   * host memory, its rows are copied to the device through two buffers while the kernels work on
   * the preceding rows. Such a call returns when the work is done and cannot be prepared. */
  uint64_t chunk;
  /* Option for kjit_pairs: devices of one kind that share x's rows. Default NULL: only
   * `device`. Each device reads all of y. The array may name a device several times.
   *
   * x, y and the results are arrays in any memory. kjit copies them to the devices and back if
   * necessary. Each device works in its default stream's order. Work that is queued for the
   * arrays must be on the default streams of their devices or done. The call returns when the work
   * is done and cannot be prepared. */
  kjit_device *const *devices;
  /* number of devices; default 0 */
  size_t device_count;
  /* Option for products: a func that is applied to each sum before it is stored. Default NULL: no
   * func.
   *
   * The func receives the sum in the accumulator type and one element of each operand in
   * epilogue_operands, for example epilogue(sum, bias). These operands broadcast to the result's
   * shape and are the same kinds as kjit_map's operands. The value that the func returns is
   * converted to the result's element type. Messages call the operands e0, e1. An operand can be
   * the result itself, because kjit reads an element before it writes it: alpha * sum + beta *
   * old. */
  kjit_function *epilogue;
  /* see epilogue; borrowed during the call */
  const kjit_operand *epilogue_operands;
  /* number of epilogue_operands, at most 8 */
  size_t epilogue_operand_count;
} kjit_algorithm_options;

/* Flags for kjit_algorithm_options. */
typedef enum kjit_algorithm_flags {
  /* Scan: result element i combines the elements before i, without i itself. */
  KJIT_ALGORITHM_EXCLUSIVE = 1,
  KJIT_ALGORITHM_DESCENDING = 2, /* Sort in descending order. */
  /* Map: combine each element in the first operand with each one in the second, and so on. The
   * result shape is the concatenated operand shapes. */
  KJIT_ALGORITHM_OUTER = 8,
  KJIT_ALGORITHM_RIGHT = 16, /* Search: return the index after equal elements. */
  /* Product: round f32 operands to tf32, with 11 significant bits, if the GPU has tensor cores for
   * it (sm_80 and up). Sums stay f32. Other devices ignore the flag. */
  KJIT_ALGORITHM_TF32 = 32,
  /* Product: treat u8 elements of all operands as FP8, in the format that from_e4m3 or from_e5m2
   * reads. Sums are f32. */
  KJIT_ALGORITHM_E4M3 = 64,
  KJIT_ALGORITHM_E5M2 = 128 /* see KJIT_ALGORITHM_E4M3 */
} kjit_algorithm_flags;

/* ---- reduce ---- */

/* Combines x's elements with an operator and writes the value to result.
 *
 * The reduction covers all elements (result has rank 0 or one element) or the axes in options.axes.
 * In the second case, result has x's shape without these axes, or with extent 1 there. Elements are
 * combined in order. The grouping is the same in every run on the same device. If x is empty, the
 * result is options.initial, or the operator's identity (0 for add); without both, the call fails.
 * options.results reports the accumulator type for the result, or x's element type if that is f16
 * or bf16.
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
 * call does not access any other memory. An array for the result (options.results) has the element
 * type of kjit_reduce. Errors: see kjit_reduce. */
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
 * receives their indices along the axis, as integers. One result can be NULL. Both have
 * x's shape with extent k along the axis, and overlap neither x nor each other. Arrays for
 * them (options.results) have x's element type and i64. Errors: see kjit_sort; also ARGUMENT
 * if k is negative or larger than the extent. */
KJIT_API KJIT_CHECK kjit_status kjit_top_k(kjit_context *context, const kjit_operand *result,
                                           const kjit_operand *result_places, const kjit_operand *x,
                                           int64_t k, kjit_function *less,
                                           const kjit_algorithm_options *options);

/* Sorts each segment in x separately. Segment i has the elements offsets[i] to offsets[i + 1] - 1.
 *
 * x has one axis. offsets holds integers along one axis, one more than there are segments; segments
 * can be empty. Elements before the first segment and after the last segment keep their positions.
 * values and result_values have the same meaning as in kjit_sort_pairs; both can be NULL. Results
 * can be their own inputs. If offsets decrease or are out of bounds, the call raises a kernel error
 * (KERNEL), and the results are undefined. Errors: see kjit_sort. */
KJIT_API KJIT_CHECK kjit_status kjit_sort_segments(
  kjit_context *context, const kjit_operand *result, const kjit_operand *result_values,
  const kjit_operand *x, const kjit_operand *values, const kjit_operand *offsets,
  kjit_function *less, const kjit_algorithm_options *options);

/* ---- map ---- */

/* Calls func for the corresponding elements of all operands and writes its value to the results. A
 * func for several results returns a tuple with one value for each result.
 *
 * Operands are arrays, funcs with arrays, or single values. A kjit_arg_number value takes the
 * other operands' type, like a Python number in NumPy. Operands broadcast to the shape in the
 * results. All results have the same shape. Messages call the results r0, r1 and the operands x0,
 * x1. A result can be an operand if both have identical elements.
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
 * NULL, and either can be x itself. Arrays for them (options.results) have x's element type and
 * i64. Errors: ARGUMENT (axes, shapes, operands that overlap), TYPE (elements without an order,
 * indices that are not integers), UNSUPPORTED (another operator), MISUSE (both results are NULL),
 * and errors from kjit_launch. */
KJIT_API KJIT_CHECK kjit_status kjit_scan_with_index(
  kjit_context *context, const kjit_operand *result, const kjit_operand *result_places,
  const kjit_operand *x, const kjit_operator *operator_, const kjit_algorithm_options *options);

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
 * UNSUPPORTED (a GPU can only swap elements of 1, 2, 4, 8 or 16 bytes), and errors from
 * kjit_launch. */
KJIT_API KJIT_CHECK kjit_status kjit_update_at(kjit_context *context, const kjit_operand *x,
                                               const kjit_operand *places,
                                               const kjit_operand *values,
                                               const kjit_operator *operator_,
                                               const kjit_algorithm_options *options);

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
 * this is the result type if it is wider, or f32 for f16 and bf16. With options.epilogue the result
 * type has no influence, and the epilogue is applied once to each sum. An array for the result
 * (options.results) has the type that the epilogue returns, or the operands' type.
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
 * and j are i64. function is a kjit_operand_function without a shape. Its arguments follow i and j.
 * operator_ can be every kjit_reduce operator. logaddexp keeps the largest value and the sum of
 * exp(value - largest).
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
 * values, 1 to 16, and the operator reduces each of them to the result with its index. With one
 * result, function can return a single value. The results have one axis and must not overlap.
 * Messages call the results r0, r1.
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
 * row of x. If it is an array with one axis of up to 64 elements, the gradient has a row of this
 * length for each row of x. The derivative is the sum of these elements or rows. A pass over the
 * pairs computes the derivatives with respect to x and the last arguments. Another pass computes
 * the derivatives with respect to y. Messages call the gradients g0, g1, by parameter index.
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
 * k is 1 to 64 and at most y's row count. result_places, integers or NULL, receives the
 * index j of each value. Among equal values the first ones are chosen; NaN comes after all numbers.
 * An array for result_places (options.results) has i64 elements. Errors: see kjit_pairs. */
KJIT_API KJIT_CHECK kjit_status kjit_pairs_smallest(
  kjit_context *context, const kjit_operand *result, const kjit_operand *result_places,
  const kjit_operand *function, const kjit_operand *x, const kjit_operand *y, size_t y_count,
  int64_t k, const kjit_algorithm_options *options);

/* ---- sparse matrices ---- */

/* A sparse matrix in compressed sparse row format, like scipy.sparse.csr_array.
 *
 * Row i has the entries offsets[i] to offsets[i + 1] - 1. Entry k is data[k] in column columns[k].
 * offsets has shape[0] + 1 elements; data and columns may have more elements than there are
 * entries. Entries with the same row and column are added. Operands are arrays with any strides, or
 * funcs of the index. columns and offsets are i32 or i64. Their types can differ.
 * kjit_csr_transpose returns the transposed matrix, which is the same matrix in compressed sparse
 * column format. */
typedef struct kjit_csr {
  /* each entry's value and column, and each row's first entry followed by the end */
  const kjit_operand *data, *columns, *offsets;
  int64_t shape[2]; /* rows and columns */
} kjit_csr;

/* A sparse matrix in coordinate format, like scipy.sparse.coo_array. Entry k is data[k] in row
 * rows[k] and column columns[k]. Entries are in any order; entries with the same row and column are
 * added. */
typedef struct kjit_coo {
  const kjit_operand *data, *rows, *columns; /* each entry's value, row and column */
  int64_t shape[2];                          /* rows and columns */
} kjit_coo;

/* Properties that kjit_csr_check checks in addition to index ranges. */
typedef enum kjit_csr_flags {
  KJIT_CSR_SORTED = 1, /* columns in a row never decrease */
  KJIT_CSR_UNIQUE = 2  /* no column occurs twice in a row; includes KJIT_CSR_SORTED */
} kjit_csr_flags;

/* Conversions and checks consist of several calls that take temporary storage from the
 * device's pool; options.work and work_bytes are not supported. A plan of a conversion reads the
 * entries and their number in each run. kjit_csr_check does not support plans. Conversions write
 * the operands of their result; messages call them `result_data`, `result_columns`,
 * `result_offsets`. If options is NULL, all options have their defaults. Unless stated otherwise,
 * errors are as in kjit_spmv. */

/* Checks a matrix and waits for the device. flags are kjit_csr_flags. options.plan is not
 * supported. Errors: ARGUMENT (offsets that decrease or are out of bounds, columns outside the
 * matrix, and violations of flags. The message names the operand and the first index), and the
 * kjit_spmv errors. */
KJIT_API KJIT_CHECK kjit_status kjit_csr_check(kjit_context *context, const kjit_csr *a,
                                               uint32_t flags,
                                               const kjit_algorithm_options *options);
/* Converts a matrix from coordinate to CSR format, like SciPy's tocsr.
 *
 * Entries with the same row and column are added (or combined by `or`, for bool), and the columns
 * of each row are sorted. data and columns of the result need the capacity of all entries of a;
 * result.offsets[shape[0]] receives the number of entries. options.results describes arrays for
 * data, columns and offsets, in this order. An entry outside the matrix raises a kernel error
 * (KERNEL). Errors: ARGUMENT, TYPE (elements that cannot be added), UNSUPPORTED (rows times columns
 * exceeds 2^64). */
KJIT_API KJIT_CHECK kjit_status kjit_csr_from_coo(kjit_context *context, const kjit_csr *result,
                                                  const kjit_coo *a,
                                                  const kjit_algorithm_options *options);
/* Writes each entry's row to rows, an i32 or i64 array. Together with data and columns of
 * a, rows is the matrix in coordinate format. Elements of rows that belong to no entry stay
 * unchanged. */
KJIT_API KJIT_CHECK kjit_status kjit_csr_to_coo(kjit_context *context, const kjit_operand *rows,
                                                const kjit_csr *a,
                                                const kjit_algorithm_options *options);
/* Transposes a matrix. The result has shape[1] rows. It is also the matrix a in compressed sparse
 * column format.
 *
 * Each result row is sorted by column. Entries are not added. data and columns need the same
 * capacity as in a. A column outside the matrix raises a kernel error (KERNEL). */
KJIT_API KJIT_CHECK kjit_status kjit_csr_transpose(kjit_context *context, const kjit_csr *result,
                                                   const kjit_csr *a,
                                                   const kjit_algorithm_options *options);
/* Converts the nonzero elements of x, an operand with two axes, to a CSR matrix. data and columns
 * of the result need capacity for all nonzero elements. If there are more, the call raises a kernel
 * error (KERNEL), but the offsets are correct. Arrays for data and columns (options.results) have
 * capacity for all x elements. */
KJIT_API KJIT_CHECK kjit_status kjit_csr_from_dense(kjit_context *context, const kjit_csr *result,
                                                    const kjit_operand *x,
                                                    const kjit_algorithm_options *options);
/* Converts a matrix to a dense array, result, with two axes. Entries with the same row and column
 * are added. If a GPU adds three or more floats, their order is not deterministic. A column outside
 * the matrix raises a kernel error (KERNEL). */
KJIT_API KJIT_CHECK kjit_status kjit_csr_to_dense(kjit_context *context, const kjit_operand *result,
                                                  const kjit_csr *a,
                                                  const kjit_algorithm_options *options);

/* Multiplies the matrix by the vector x with shape[1] elements and writes shape[0] sums to result.
 *
 * The running time depends on the number of entries, not on how they are distributed over the rows.
 * The result has the same bits in every run on the same device. data and x have the same number
 * type. An array for the result (options.results) has this type as well. Sums are computed in
 * options.accumulator. By default this is the result type if it is wider, or f32 for f16 and bf16.
 *
 * If offsets decrease or are out of bounds, the call raises a kernel error (KERNEL). The call does
 * not check columns: a column outside the matrix reads outside x. kjit_csr_check and kernels with
 * bounds checks find such columns.
 *
 * If options is NULL, all options have their defaults. Messages call the matrix operands
 * `data`, `columns` and `offsets`. Errors: ARGUMENT (shapes, operands that overlap or cannot be
 * written, too little temporary storage), TYPE (operands of different types, elements that are not
 * numbers, indices that are not i32 or i64), UNSUPPORTED, and errors from kjit_launch. */
KJIT_API KJIT_CHECK kjit_status kjit_spmv(kjit_context *context, const kjit_operand *result,
                                          const kjit_csr *a, const kjit_operand *x,
                                          const kjit_algorithm_options *options);
/* Multiplies the matrix by a matrix x with several columns. x and result have two axes. Otherwise
 * like kjit_spmv. */
KJIT_API KJIT_CHECK kjit_status kjit_spmm(kjit_context *context, const kjit_operand *result,
                                          const kjit_csr *a, const kjit_operand *x,
                                          const kjit_algorithm_options *options);

/* ---- solvers ---- */

/* Multiplies a matrix, or its transpose, by x and writes the product to result.
 *
 * Both operands are arrays with one axis on options->device. The function queues its work on
 * options->stream. It can pass options to every function of this header. user is the field of the
 * kjit_linear_operator. If the status is not KJIT_OK, the solver stops and returns it. */
typedef kjit_status kjit_multiply(void *user, const kjit_operand *result, const kjit_operand *x,
                                  const kjit_algorithm_options *options);

/* A linear system's matrix, given by its entries or by a function that multiplies. */
typedef struct kjit_linear_operator {
  const kjit_csr *matrix; /* NULL if multiply is set */
  /* for kjit_lsmr: transpose of matrix; NULL means that the call computes it once */
  const kjit_csr *transposed;
  kjit_multiply *multiply;            /* called by the thread that calls the solver */
  kjit_multiply *multiply_transposed; /* for kjit_lsmr */
  void *user;                         /* passed to the functions */
  int64_t shape[2];                   /* shape, if matrix is NULL */
} kjit_linear_operator;

/* A solver's options; 0 means the default. */
typedef struct kjit_solve_options {
  uint32_t size_bytes; /* sizeof(kjit_solve_options) */
  double damp;         /* for kjit_lsmr: damping factor, not negative; default 0 */
  /* For kjit_lsmr: relative errors in the matrix and b that a solution may explain; default
   * 1e-6. Values below the rounding error have the same effect as the rounding error. */
  double matrix_tolerance, b_tolerance;
  /* for kjit_lsmr: stop if the estimated condition exceeds this limit; default 1e8 */
  double condition_limit;
  /* for kjit_cg: stop if |b - A x| is at most this factor times |b|; default 1e-5 */
  double residual_tolerance;
  /* Maximum number of iterations. Default: the smaller extent for kjit_lsmr, 10 per row for
   * kjit_cg. */
  int64_t iteration_limit;
  kjit_device *device; /* as in kjit_algorithm_options */
  kjit_stream *stream; /* as in kjit_algorithm_options */
} kjit_solve_options;

/* Why a solver stopped. */
typedef enum kjit_solve_status {
  KJIT_SOLVED = 0,               /* the residual is within the tolerances */
  KJIT_SOLVED_LEAST_SQUARES = 1, /* no x has such a residual; this x minimizes it */
  KJIT_SOLVE_CONDITION = 2,      /* the matrix is too ill-conditioned */
  KJIT_SOLVE_ITERATIONS = 3,     /* the iteration limit is reached */
  KJIT_SOLVE_INDEFINITE = 4,     /* kjit_cg: the matrix is not positive definite */
  KJIT_SOLVE_OVERFLOW = 5        /* a value is no longer finite */
} kjit_solve_status;

/* Properties of the returned solution: the best x found, independent of why the solver stopped.
 * Norms are Euclidean. kjit_lsmr estimates its norms. With damp, they are the norms of the matrix
 * that is extended by damp times the identity matrix. */
typedef struct kjit_solution {
  uint32_t size_bytes;      /* sizeof(kjit_solution); set by the application */
  kjit_solve_status status; /* why the solver stopped */
  int64_t iterations;       /* number of iterations */
  double residual_norm;     /* norm of b - A x; kjit_cg computes it from x */
  /* norm of A^T (b - A x) - damp^2 x, Frobenius norm of the matrix, and its condition; kjit_lsmr
   * only */
  double normal_residual_norm, matrix_norm, condition;
  double solution_norm; /* norm of x */
} kjit_solution;

/* Returns a status description, for example "the residual is within the tolerances". The
 * string is static. Returns NULL if the status is unknown. */
KJIT_API const char *kjit_get_solve_status_text(kjit_solve_status status);

/* Solves A x = b for a symmetric positive definite matrix with the conjugate gradient method,
 * starting from zeros.
 *
 * b and x have one axis, and A is square with the same size. All elements are f32 or f64. Vectors
 * stay on the device. The host waits for two sums in each iteration. If the system does not
 * converge, the call still succeeds: *solution has the reason, and x has the smallest residual
 * found.
 *
 * If options is NULL, all options have their defaults. Errors: ARGUMENT (shapes, operands that
 * overlap or cannot be written, negative options or NaN), TYPE (elements that are not f32 or f64),
 * MISUSE (neither matrix nor function, or solution is NULL), and errors from kjit_spmv and from the
 * operator's function. */
KJIT_API KJIT_CHECK kjit_status kjit_cg(kjit_context *context, const kjit_operand *x,
                                        const kjit_linear_operator *a, const kjit_operand *b,
                                        const kjit_solve_options *options, kjit_solution *solution);
/* Minimizes |b - A x|^2 + damp^2 |x|^2 for a matrix of any shape with LSMR (Fong and Saunders,
 * 2011), starting from zeros. If several x minimize it, the result is the x with the smallest norm.
 * The host waits for three sums in each iteration. Otherwise like kjit_cg. */
KJIT_API KJIT_CHECK kjit_status kjit_lsmr(kjit_context *context, const kjit_operand *x,
                                          const kjit_linear_operator *a, const kjit_operand *b,
                                          const kjit_solve_options *options,
                                          kjit_solution *solution);

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

/* ---- random numbers ---- */

/* These functions fill x, an array or an output func, with random numbers. The elements in
 * row-major order are the numbers offset, offset + 1 and so on of the seed.
 *
 * Number i of a seed depends only on the seed and i (Philox4x32-10). Several calls can therefore
 * fill parts of an array, and a call has no state. For types up to 32 bits, number i is computed
 * from word i; for 64-bit types it is computed from the words 2 * i and 2 * i + 1. Uniform numbers
 * and integers have the same bits on every device. Normal and exponential numbers differ in the
 * rounding in log, sqrt and sincospi.
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
/* Fills x with exponentially distributed numbers with mean scale, which must not be negative. */
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
