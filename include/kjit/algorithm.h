/* kjit/algorithm.h: reductions, scans, sorts and their kin over whole arrays. See status.h for the
 * rules that hold for every function, and docs/algorithms.md for what each algorithm does.
 *
 * A call takes operands, perhaps an operator, and options. It is asynchronous on the options'
 * stream, as a launch is; or, with options.plan, it is prepared once and run many times. On a GPU
 * and on the CPU it means the same. The code for the operands' types, funcs and operators is
 * compiled at the first call that needs it, and kept as the code of kernels is. */
#ifndef KJIT_ALGORITHM_H
#define KJIT_ALGORITHM_H

#include <kjit/function.h>
#include <kjit/memory.h>
#include <kjit/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- operands ---- */

/* What is read or written: an array of any strides, or a func with arrays that is computed where an
 * element is needed. Element (i, j) of an input f with arrays a and b is f(i, j, a, b); an output f
 * is called as f(i, j, v, a, b) for each element v. Indices are i64. The
 * arrays of a func that writes are the host's to keep apart from what is read. Everything that an
 * operand points to is read during the call only, but for the arrays themselves. */
typedef struct kjit_operand {
  kjit_arg argument; /* kjit_arg_array, kjit_arg_tensor, kjit_arg_elements; kjit_arg_function */
  const kjit_arg *arrays; /* of a func: arrays and scalars, its last arguments */
  /* so many arrays */
  size_t array_count;
  const int64_t *shape; /* of a func: rank extents */
  /* of a func: number of extents, 0 to 8 */
  uint32_t rank;
} kjit_operand;

/* An operand from an argument: an array, a tensor, or a value for all elements. */
static inline kjit_operand kjit_operand_of(kjit_arg argument)
{
  kjit_operand operand = { argument, NULL, 0, NULL, 0 };
  return operand;
}
/* An array as an operand; borrowed. */
static inline kjit_operand kjit_operand_array(kjit_array *array)
{
  return kjit_operand_of(kjit_arg_array(array));
}
/* A func with its last arguments, arrays and scalars, as an operand of rank extents. Nothing is
 * copied. */
static inline kjit_operand kjit_operand_function(kjit_function *function, const kjit_arg *arrays,
                                                 size_t count, const int64_t *shape, uint32_t rank)
{
  kjit_operand operand = { kjit_arg_function(function), arrays, count, shape, rank };
  return operand;
}

/* ---- operators ---- */

/* What combines two values: a func of two arguments, which has to be associative, or the name of
 * one that kjit has (docs/algorithms.md lists them: "add", "mul", "min", "max" ...). The func
 * returns what the two become. One that returns bool, as a comparison does, is refused (TYPE)
 * unless elements are bool or bool is what is computed in. Its identity is what the func that its
 * `@identity` names returns. */
typedef struct kjit_operator {
  const char *name;        /* NULL: function */
  kjit_function *function; /* NULL: name */
  /* not 0: f(a, b) is f(b, a), as a func with `@commutes` says itself, so that a reduction need not
   * keep the order of elements, which makes it a little faster; names are known to kjit */
  int commutes;
} kjit_operator;

/* An operator of kjit's by its name, which is not copied. */
static inline kjit_operator kjit_operator_named(const char *name)
{
  kjit_operator operator_ = { name, NULL, 0 };
  return operator_;
}
/* A func of two arguments as an operator that is associative; set commutes where it may. */
static inline kjit_operator kjit_operator_function(kjit_function *function)
{
  kjit_operator operator_ = { NULL, function, 0 };
  return operator_;
}
/* The names, in the order of docs/algorithms.md, those that only kjit_reduce takes last; NULL past
 * the end. */
KJIT_API const char *kjit_get_operator_name(size_t index);

/* ---- plans ---- */

/* a call with everything looked up, compiled and allocated; one thread at a time */
typedef struct kjit_plan kjit_plan;

/* Queues what the call would. stream NULL: the one of its options. It never waits for the device,
 * and can be captured into a graph. The plan has work memory of its own: runs of one plan on two
 * streams have to be ordered by the host. The first run clears some of that memory, and so does the
 * first one after a kernel of the device is known to have failed (KJIT_ERROR_KERNEL); a graph that
 * has captured a run has to be captured again then. Errors: as kjit_launch. */
KJIT_API KJIT_CHECK kjit_status kjit_run_plan(kjit_plan *plan, kjit_stream *stream);
/* The arrays and work memory that it keeps are released in the order of the streams that it ran on.
 * plan NULL is fine. */
KJIT_API void kjit_destroy_plan(kjit_plan *plan);
/* The context that the plan belongs to. */
KJIT_API kjit_context *kjit_get_plan_context(const kjit_plan *plan);
/* How many launches a run is. */
KJIT_API size_t kjit_get_plan_size(const kjit_plan *plan);
/* One of them, for kjit_get_prepared_specialization: what was compiled. Borrowed from the plan, and
 * not to be run alone or changed; NULL past the end. */
KJIT_API const kjit_prepared *kjit_get_plan_launch(const kjit_plan *plan, size_t index);

/* ---- results that are not there yet ---- */

/* The array that a call without one would make, as NumPy does: element type and shape. */
typedef struct kjit_result_info {
  /* of the elements; KJIT_ANY where nothing says it */
  kjit_type element;
  /* number of extents */
  uint32_t rank;
  /* rank extents */
  int64_t shape[8];
} kjit_result_info;

/* ---- options ---- */

/* Each algorithm takes some of these; one that it does not take is refused when it is set. */
typedef struct kjit_algorithm_options {
  uint32_t size_bytes; /* sizeof(kjit_algorithm_options) */
  kjit_device
    *device; /* default NULL: the stream's; else where the arrays are; none: as for a launch */
  kjit_stream *stream; /* default NULL: the device's default stream */
  /* default NULL: all axes of a reduction, the last one of what has one axis. -1 is the last */
  const int32_t *axes;
  /* so many axes; default 0 */
  uint32_t axis_count;
  /* what a reduction or scan computes in; default KJIT_ANY: the result's type where that is wider,
   * else as NumPy: sums and products of small integers in 64 bits, those of f16 and bf16 in f32.
   * With a func for an operator it is the type of the result's array where that is a number: for an
   * i32 array elements of f32 are cut to i32 before the func sees them. KJIT_F32 here has it
   * compute in f32, and only the result is cut */
  kjit_type accumulator;
  /* default NULL: none. A value that a reduction or scan starts with, in front of all elements */
  const kjit_arg *initial;
  uint32_t flags; /* of kjit_algorithm_flags */
  /* not NULL: nothing is run; *plan becomes what runs it */
  kjit_plan **plan;
  /* not NULL: nothing is run or prepared; *work_bytes becomes the size of its work memory */
  uint64_t *work_bytes;
  /* work memory of the host's, an array of u8 of at least that size on the device; a plan keeps it.
   * Default NULL: from the device's pool, in the order of the stream */
  kjit_array *work;
  /* not NULL: nothing is run or prepared, and the results' operands are not looked at and may be
   * NULL; results[i] becomes what an array for the call's result i would be, those behind the
   * call's stay as they were. result_count: as many as there is place for, at least the call's */
  kjit_result_info *results;
  /* see results */
  size_t result_count;
  /* a sort of numbers looks at the bits from begin_bit to end_bit - 1 of them only, to the last one
   * where end_bit is 0; default 0, 0: at all */
  uint32_t begin_bit, end_bit;
  /* of a map. where, default NULL: an operand of bool that broadcasts; what is computed is what it
   * has true for, and other elements of the results stay as they were. signature, default NULL: the
   * core dimensions, "(m,n),(n)->(m)" */
  const kjit_operand *where;
  /* see where */
  const char *signature;
  /* of pairs: so many rows of y are read at a time; default 0: all. Rows in memory of the host come
   * to the device through two buffers, beside the kernels on the rows before; the call returns when
   * it is done, and cannot be prepared */
  uint64_t chunk;
  /* of pairs: device_count devices of one kind share the rows of x, of which each goes through all
   * of y; default NULL, 0: device alone. One may be named several times. x, y and the results are
   * arrays, wherever they lie: what is not on a device is copied there, and back. Work is in the
   * order of the default stream of each device; what the arrays need is queued on the default
   * streams of theirs, or done. The call returns when it is done, and cannot be prepared */
  kjit_device *const *devices;
  /* see devices */
  size_t device_count;
  /* of products, default NULL: none. What an element of the result goes through before it is
   * stored: a func of its sum, in the type that sums are computed in, and of an element of each of
   * epilogue_operands, which broadcast to the result's shape and are what a map's operands are:
   * epilogue(sum, bias). What it returns is converted to the result's elements. Messages call the
   * operands e0, e1; one may be the result itself, whose elements are read before they are written:
   * alpha * sum + beta * old. */
  kjit_function *epilogue;
  /* see epilogue; borrowed during the call */
  const kjit_operand *epilogue_operands;
  /* so many epilogue_operands, at most 8 */
  size_t epilogue_operand_count;
} kjit_algorithm_options;

/* What kjit_algorithm_options.flags may have. */
typedef enum kjit_algorithm_flags {
  KJIT_ALGORITHM_EXCLUSIVE = 1,  /* a scan's element i is made of those before i */
  KJIT_ALGORITHM_DESCENDING = 2, /* a sort's order is the other way around */
  /* a map of each element of the first operand with each of the second, and so on: the results'
   * shape is those of the operands one after the other */
  KJIT_ALGORITHM_OUTER = 8,
  KJIT_ALGORITHM_RIGHT = 16, /* a search goes behind elements that are equal */
  /* factors of a product of f32 are cut to tf32, of 11 significant bits, where tensor cores take
   * that (GPUs of sm_80); sums stay f32. Elsewhere it changes nothing */
  KJIT_ALGORITHM_TF32 = 32,
  /* u8 of a product are numbers of 8 bits, as from_e4m3 or from_e5m2 reads them, in all operands;
   * sums are f32 */
  KJIT_ALGORITHM_E4M3 = 64,
  KJIT_ALGORITHM_E5M2 = 128 /* see KJIT_ALGORITHM_E4M3 */
} kjit_algorithm_flags;

/* ---- reduce ---- */

/* result becomes operator over x: over all elements (result of rank 0, or one element), or along
 * options.axes (result has x's shape without them, or with extent 1 there). Elements are combined
 * in their order; which are combined first is the same in every run on one device. Without elements
 * the result is options.initial, else the operator's identity (0 of add), else an error. An array
 * for the result (options.results) has what it is computed in, but f16 and bf16 stay. options NULL:
 * all defaults. Errors: ARGUMENT (shapes, axes, operands that overlap or cannot be written,
 * too little work memory), TYPE (the operator's result, an element type without that operator),
 * NAME (no such operator), UNSUPPORTED; those of kjit_launch. */
KJIT_API KJIT_CHECK kjit_status kjit_reduce(kjit_context *context, const kjit_operand *result,
                                            const kjit_operand *x, const kjit_operator *operator_,
                                            const kjit_algorithm_options *options);

/* kjit_reduce for several operators in one pass over x, which is read once: results[i] becomes
 * operators[i] over it, computed in what kjit_reduce computes it in; both have count elements. Sums
 * of floats may be rounded otherwise than those of kjit_reduce. options.initial is not taken.
 * Messages call results r0, r1. Errors: as kjit_reduce; UNSUPPORTED where what is computed in takes
 * more than 128 bytes together. */
KJIT_API KJIT_CHECK kjit_status kjit_reduce_several(kjit_context *context,
                                                    const kjit_operand *results,
                                                    const kjit_operand *x,
                                                    const kjit_operator *operators, size_t count,
                                                    const kjit_algorithm_options *options);

/* ---- reduce and scan by segments and by key ---- */

/* Operands have one axis; axes are not taken. */

/* result[i] becomes operator over segment i of x: its elements from offsets[i] up to
 * offsets[i + 1] - 1. offsets has an integer more than there are segments, as the row pointers of a
 * CSR matrix, and does not descend; elements before the first and behind the last segment are in
 * none. Segments may be empty: they get options.initial, else the operator's identity, else what
 * kjit_reduce says of its name without elements. Where that is nothing, and where offsets descend
 * or lead out of x, it is the failure of a thread, as `raise` in a kernel, when all others are
 * done; what result then has is undefined, and nothing else is read or written. An array for the
 * result (options.results) is that of kjit_reduce. Errors: as kjit_reduce. */
KJIT_API KJIT_CHECK kjit_status kjit_reduce_segments(kjit_context *context,
                                                     const kjit_operand *result,
                                                     const kjit_operand *x,
                                                     const kjit_operand *offsets,
                                                     const kjit_operator *operator_,
                                                     const kjit_algorithm_options *options);
/* kjit_scan that starts anew in each segment, with options.initial or the identity in each.
 * Elements of result that are in no segment stay as they were. */
KJIT_API KJIT_CHECK kjit_status kjit_scan_segments(kjit_context *context,
                                                   const kjit_operand *result,
                                                   const kjit_operand *x,
                                                   const kjit_operand *offsets,
                                                   const kjit_operator *operator_,
                                                   const kjit_algorithm_options *options);

/* Segments are runs of elements whose neighbouring keys are equal: by equal, a func of two keys,
 * or ==. keys has as many elements as x; sorted keys have one run each. result_keys becomes the key
 * of the first element of each run, result operator over it, options.initial in front, and count,
 * one integer, how many runs there are: on the device, without waiting for it. Results have room
 * for all n elements, of which those behind the runs stay as they were, and must not overlap
 * anything. No operator needs an identity. Errors: as kjit_reduce. */
KJIT_API KJIT_CHECK kjit_status kjit_reduce_by_key(
  kjit_context *context, const kjit_operand *result_keys, const kjit_operand *result,
  const kjit_operand *count, const kjit_operand *keys, const kjit_operand *x,
  const kjit_operator *operator_, kjit_function *equal, const kjit_algorithm_options *options);
/* kjit_scan that starts anew with each run; result may be the very array that x is. */
KJIT_API KJIT_CHECK kjit_status kjit_scan_by_key(kjit_context *context, const kjit_operand *result,
                                                 const kjit_operand *keys, const kjit_operand *x,
                                                 const kjit_operator *operator_,
                                                 kjit_function *equal,
                                                 const kjit_algorithm_options *options);

/* ---- sort ---- */

/* result becomes x, sorted along options.axes, one axis, by default the last one. less NULL: in the
 * order of the numbers, NaNs last; else a func of two elements, whether the first one comes before
 * the second one, a strict order as that of `<`. Elements that are equal stay in their order, in
 * descending order (KJIT_ALGORITHM_DESCENDING), too. result may be x itself, and has its shape and
 * element type. options NULL: all defaults. Errors: ARGUMENT (shapes, axes, bits, operands that
 * overlap or cannot be written, too little work memory), TYPE (elements without an order, less is
 * not a func of two), UNSUPPORTED; those of kjit_launch. */
KJIT_API KJIT_CHECK kjit_status kjit_sort(kjit_context *context, const kjit_operand *result,
                                          const kjit_operand *x, kjit_function *less,
                                          const kjit_algorithm_options *options);
/* As kjit_sort, and result_values becomes values, of any type, each where its element of x comes to
 * be. result_values may be values itself. */
KJIT_API KJIT_CHECK kjit_status kjit_sort_pairs(kjit_context *context, const kjit_operand *result,
                                                const kjit_operand *result_values,
                                                const kjit_operand *x, const kjit_operand *values,
                                                kjit_function *less,
                                                const kjit_algorithm_options *options);
/* result, of integers, becomes where along the axis the elements of x are in that order. An array
 * for it (options.results) is of i64. */
KJIT_API KJIT_CHECK kjit_status kjit_argsort(kjit_context *context, const kjit_operand *result,
                                             const kjit_operand *x, kjit_function *less,
                                             const kjit_algorithm_options *options);
/* result becomes the elements of x and y, lines of one axis that are sorted by less (or the order
 * of numbers), in that order; of equal ones those of x come first. */
KJIT_API KJIT_CHECK kjit_status kjit_merge(kjit_context *context, const kjit_operand *result,
                                           const kjit_operand *x, const kjit_operand *y,
                                           kjit_function *less,
                                           const kjit_algorithm_options *options);

/* result becomes the first k elements that kjit_sort would put along options.axes, one axis, by
 * default the last one: the least, or with KJIT_ALGORITHM_DESCENDING the greatest. result_places,
 * of integers, becomes where along the axis they are in x. Of the two, one may be NULL; they have
 * the shape of x with k elements along the axis, and overlap neither x nor each other. Arrays for
 * them (options.results) are of the element type of x and of i64. Errors: as kjit_sort; ARGUMENT (a
 * k that is negative or more than there are). */
KJIT_API KJIT_CHECK kjit_status kjit_top_k(kjit_context *context, const kjit_operand *result,
                                           const kjit_operand *result_places, const kjit_operand *x,
                                           int64_t k, kjit_function *less,
                                           const kjit_algorithm_options *options);

/* The segments of x, an operand of one axis, are sorted, each apart from the others: segment i has
 * elements offsets[i] to offsets[i + 1] - 1. offsets, integers of one axis, has one more than there
 * are segments, which may be empty. Elements in front of the first segment and behind the last one
 * stay where they are. values and result_values as in kjit_sort_pairs; both NULL: there are none.
 * Results may be what they are made of, as there. An offset that is less than the one before it, or
 * not from 0 to the number of elements, is the failure of a thread, as `raise` in a kernel, and
 * what the results have then is not defined. Errors: as kjit_sort. */
KJIT_API KJIT_CHECK kjit_status kjit_sort_segments(
  kjit_context *context, const kjit_operand *result, const kjit_operand *result_values,
  const kjit_operand *x, const kjit_operand *values, const kjit_operand *offsets,
  kjit_function *less, const kjit_algorithm_options *options);

/* ---- map ---- */

/* Each element of the results becomes what func returns for the elements at its place: one value,
 * or a tuple of a value for each result. Operands are arrays, funcs with arrays, or values for all
 * elements (of kjit_arg_number: of the type that the other operands have, as NumPy treats numbers
 * of Python); they broadcast to the shape of the results, which all have the same one. Messages
 * call results r0, r1 and operands x0, x1. A result may be an operand, with the very same elements.
 *
 * With options.signature, "(n),(n)->()", func has the results as its last arguments and writes
 * them: it is called with views of the last dimensions of each operand and result, those that the
 * signature names, for all others that broadcast. An operand of `()` is an element, a result of
 * `()` an array of one. What overlaps is refused then.
 *
 * options.results tells what func returns for the operands, and the shape that they broadcast to,
 * for as many results as func returns, whatever result_count is; of results that func writes the
 * element is KJIT_ANY.
 *
 * Errors: ARGUMENT (shapes that do not broadcast, operands that overlap or cannot be written, a
 * signature that does not fit), TYPE (what func returns), SYNTAX (of the signature), UNSUPPORTED;
 * those of kjit_launch. */
KJIT_API KJIT_CHECK kjit_status kjit_map(kjit_context *context, const kjit_operand *results,
                                         size_t result_count, kjit_function *function,
                                         const kjit_operand *operands, size_t operand_count,
                                         const kjit_algorithm_options *options);

/* ---- scan ---- */

/* result, of the shape of x, becomes operator over the elements up to each one along one axis:
 * options.axes, the last one unless given. With KJIT_ALGORITHM_EXCLUSIVE over those before it,
 * which starts with options.initial, else with the operator's identity; without, options.initial is
 * put in front of all. Any associative operator; elements are combined in an order that is the same
 * in every run on one device. result may be the very array that x is. options NULL: all defaults.
 * Errors: as kjit_reduce. */
KJIT_API KJIT_CHECK kjit_status kjit_scan(kjit_context *context, const kjit_operand *result,
                                          const kjit_operand *x, const kjit_operator *operator_,
                                          const kjit_algorithm_options *options);

/* ---- select ---- */

/* What is kept of n elements goes to the front of a result, which has room for all n, in the order
 * of x (row-major); what is behind it stays as it was. count, one integer, becomes how many there
 * are: on the device, without waiting for it. Results must not overlap inputs. On the CPU a result
 * that is a func may be called for one place several times: the last call counts. options NULL: all
 * defaults; axes and the like are not taken. Errors: as kjit_reduce. */

/* The elements of x for which flags, as many, are not 0: an array, or a func of the place, perhaps
 * with x itself. */
KJIT_API KJIT_CHECK kjit_status kjit_select(kjit_context *context, const kjit_operand *result,
                                            const kjit_operand *count, const kjit_operand *x,
                                            const kjit_operand *flags,
                                            const kjit_algorithm_options *options);
/* As kjit_select, and the others go to rest. */
KJIT_API KJIT_CHECK kjit_status kjit_partition(kjit_context *context, const kjit_operand *result,
                                               const kjit_operand *rest, const kjit_operand *count,
                                               const kjit_operand *x, const kjit_operand *flags,
                                               const kjit_algorithm_options *options);
/* The elements whose class is 0 go to first, those of class 1 to second, those of class 2 to rest:
 * classes, as many integers as x has elements, an array or a func of the place. counts, two
 * integers, becomes how many are in first and in second. Another class is the failure of a thread,
 * as `raise` in a kernel, and its element goes to rest. */
KJIT_API KJIT_CHECK kjit_status
kjit_partition_three(kjit_context *context, const kjit_operand *first, const kjit_operand *second,
                     const kjit_operand *rest, const kjit_operand *counts, const kjit_operand *x,
                     const kjit_operand *classes, const kjit_algorithm_options *options);
/* The places of the elements of x that are not 0, from 0 on. */
KJIT_API KJIT_CHECK kjit_status kjit_nonzero(kjit_context *context, const kjit_operand *result,
                                             const kjit_operand *count, const kjit_operand *x,
                                             const kjit_algorithm_options *options);
/* The first one of each run of equal neighbours. equal: a func of two elements; NULL: ==. */
KJIT_API KJIT_CHECK kjit_status kjit_unique(kjit_context *context, const kjit_operand *result,
                                            const kjit_operand *count, const kjit_operand *x,
                                            kjit_function *equal,
                                            const kjit_algorithm_options *options);
/* As kjit_unique, and what values has at its place goes to result_values. */
KJIT_API KJIT_CHECK kjit_status kjit_unique_pairs(kjit_context *context, const kjit_operand *result,
                                                  const kjit_operand *result_values,
                                                  const kjit_operand *count, const kjit_operand *x,
                                                  const kjit_operand *values, kjit_function *equal,
                                                  const kjit_algorithm_options *options);
/* kjit_unique, the length of each run, and, unless starts is NULL, where it starts. */
KJIT_API KJIT_CHECK kjit_status kjit_run_lengths(kjit_context *context, const kjit_operand *result,
                                                 const kjit_operand *lengths,
                                                 const kjit_operand *starts,
                                                 const kjit_operand *count, const kjit_operand *x,
                                                 kjit_function *equal,
                                                 const kjit_algorithm_options *options);

/* ---- sets ---- */

/* result becomes the union of x and y, of one axis each, that are sorted by less (NULL: in the
 * order of numbers, NaNs last and equal to each other, -0.0 equal to 0.0; else a func of two
 * elements, whether the first one comes before the second one), with KJIT_ALGORITHM_DESCENDING in
 * that order the other way around. Elements are as often there as they come, as with C++'s
 * std::set_union: of m equal ones in x and n in y the union has max(m, n), the intersection min(m,
 * n), the difference max(m - n, 0), the symmetric difference abs(m - n). Those of x come first; of
 * what one of them has more, the last ones are taken. What is not sorted gives some result. result
 * has room for the largest outcome: for as many elements as x and y have, for the intersection as
 * the shorter one has, for the difference as x has; what is behind the outcome stays as it was.
 * count, one integer, becomes how many there are: on the device, without waiting for it. Results
 * must not overlap x and y. On the CPU a result that is a func may be called for one place several
 * times: the last call counts. options NULL: all defaults. Errors: ARGUMENT (shapes, too little
 * room, operands that overlap or cannot be written, too little work memory), TYPE (x and y of
 * different types, elements without an order), UNSUPPORTED; those of kjit_launch. */
KJIT_API KJIT_CHECK kjit_status kjit_set_union(kjit_context *context, const kjit_operand *result,
                                               const kjit_operand *count, const kjit_operand *x,
                                               const kjit_operand *y, kjit_function *less,
                                               const kjit_algorithm_options *options);
/* The elements that both have. */
KJIT_API KJIT_CHECK kjit_status kjit_set_intersection(kjit_context *context,
                                                      const kjit_operand *result,
                                                      const kjit_operand *count,
                                                      const kjit_operand *x, const kjit_operand *y,
                                                      kjit_function *less,
                                                      const kjit_algorithm_options *options);
/* The elements of x that y does not have. */
KJIT_API KJIT_CHECK kjit_status kjit_set_difference(kjit_context *context,
                                                    const kjit_operand *result,
                                                    const kjit_operand *count,
                                                    const kjit_operand *x, const kjit_operand *y,
                                                    kjit_function *less,
                                                    const kjit_algorithm_options *options);
/* The elements that only one of them has. */
KJIT_API KJIT_CHECK kjit_status kjit_set_symmetric_difference(
  kjit_context *context, const kjit_operand *result, const kjit_operand *count,
  const kjit_operand *x, const kjit_operand *y, kjit_function *less,
  const kjit_algorithm_options *options);

/* ---- updates ---- */

/* NumPy's ufunc.at: x[places[i]] becomes operator of it and values[i], for each i, so that a place
 * which comes several times is updated as often. x, an array, is read and written; places, integers
 * of any shape, an array or a func, are along its first axis, negative ones from its end. values,
 * an array, a func or a value for all, has the shape of places and then that of a row of x (x[0]),
 * or is an array that broadcasts to it. The operator has to commute, and to be computed in the type
 * of x, to which values are converted. A place that is none is the failure of a thread, as `raise`
 * in a kernel. On a GPU values of one place are combined in any order, so that floats differ by
 * their rounding; on the CPU in their order. options NULL: all defaults. Errors: ARGUMENT (shapes,
 * an operator that does not commute, operands that overlap or cannot be written), TYPE, NAME (no
 * such operator), UNSUPPORTED (elements that a GPU cannot swap: they have 1, 2, 4, 8 or 16 bytes);
 * those of kjit_launch. */
KJIT_API KJIT_CHECK kjit_status kjit_update_at(kjit_context *context, const kjit_operand *x,
                                               const kjit_operand *places,
                                               const kjit_operand *values,
                                               const kjit_operator *operator_,
                                               const kjit_algorithm_options *options);

/* ---- products ---- */

/* result becomes the sum of products that expression asks for, as numpy.einsum: "ij,jk->ik". Each
 * axis of an operand has a letter, A to Z or a to z, or is one of those of "...", which broadcast
 * from the last one on; axes of extent 1 broadcast. A letter that an operand repeats is its
 * diagonal; letters that the result does not have are summed over. Without "->" the result has the
 * ellipsis, then the letters that come once, in their order. operands: 1 to 10, of one type of
 * numbers; messages call them x0, x1. They are multiplied in pairs, in the order of the fewest
 * products, with work memory between these. Sums are computed in options.accumulator, by default
 * the result's type where that is wider, of f16 and bf16 f32, and with options.epilogue whatever
 * the result is: each sum goes through that func once. An array for the result (options.results)
 * has what the epilogue returns, else the operands' type. Tensor cores of GPUs multiply f16, bf16,
 * f64, i8 and u8, f32 with KJIT_ALGORITHM_TF32, and u8 that are numbers of 8 bits
 * (KJIT_ALGORITHM_E4M3, KJIT_ALGORITHM_E5M2). options NULL: all defaults. Errors: ARGUMENT
 * (expression, shapes, operands that overlap or cannot be written or do not broadcast, too little
 * work memory), TYPE (operands of several types, elements that are no numbers, what the epilogue
 * returns), UNSUPPORTED (more operands, products between of more than 8 axes); those of
 * kjit_launch. */
KJIT_API KJIT_CHECK kjit_status kjit_einsum(kjit_context *context, const kjit_operand *result,
                                            const char *expression, const kjit_operand *operands,
                                            size_t operand_count,
                                            const kjit_algorithm_options *options);
/* result becomes the product of matrices x and y, as numpy.matmul: their last two axes are
 * multiplied, the others broadcast; an operand of one axis is a row on the left, a column on the
 * right, and the result is without that axis. Errors and all else: as kjit_einsum. */
KJIT_API KJIT_CHECK kjit_status kjit_matmul(kjit_context *context, const kjit_operand *result,
                                            const kjit_operand *x, const kjit_operand *y,
                                            const kjit_algorithm_options *options);

/* ---- pairs ---- */

/* result[i] becomes operator over all j of function(x[i], y0[j], y1[j] ..., i, j, more), without
 * the matrix of all pairs. x and y, y_count operands, 1 to 8, are of one axis, whose elements the
 * func gets as numbers, or of two, whose rows it gets as arrays with extents known at compile time;
 * i and j are i64. function: kjit_operand_function of a func, its arguments behind these, and no
 * shape. operator_: as of kjit_reduce, all its names; of logaddexp the greatest value and the sum
 * of the exponentials of distances from it are kept. Values are combined in the order of j, in
 * parts, which are the same in every run on one device. Without rows of y: the operator's identity,
 * else an error. Messages call y y0, y1. The result's type and options.accumulator are those of
 * kjit_reduce. Errors: ARGUMENT (shapes, operands that overlap or cannot be written, too little
 * work memory), TYPE (what the func returns, an operator that has no meaning for it), NAME,
 * UNSUPPORTED (rows of more than 4096 bytes, or 8192 in all of y); those of kjit_launch. */
KJIT_API KJIT_CHECK kjit_status kjit_pairs(kjit_context *context, const kjit_operand *result,
                                           const kjit_operand *function, const kjit_operand *x,
                                           const kjit_operand *y, size_t y_count,
                                           const kjit_operator *operator_,
                                           const kjit_algorithm_options *options);
/* Reduces several values of each pair in one pass. function returns a tuple of result_count values,
 * 1 to 16, each of which the operator reduces to the result of its index; one result may be what a
 * function without a tuple returns. The results have one axis and must not overlap. Messages call
 * them r0, r1.
 *
 * options.results says what the function returns: result_count may be any number then.
 *
 * Errors: as kjit_pairs; TYPE (another number of values than of results), UNSUPPORTED (more than 16
 * values). */
KJIT_API KJIT_CHECK kjit_status kjit_pairs_several(kjit_context *context,
                                                   const kjit_operand *results, size_t result_count,
                                                   const kjit_operand *function,
                                                   const kjit_operand *x, const kjit_operand *y,
                                                   size_t y_count, const kjit_operator *operator_,
                                                   const kjit_algorithm_options *options);
/* Computes derivatives of kjit_pairs without the matrix of all pairs. cotangents has an element for
 * each row of x: the derivative of some number by result[i]. The gradients are the derivatives of
 * this number by parameters of function.
 *
 * by has `count` numbers of parameters, 1 to 16, in ascending order: 0 is the row of x, 1 to
 * y_count are the rows of y, and y_count + 3 is the first of the function's last arguments.
 * gradients[k] is by parameter by[k]. By x and y it has the shape of that operand. By a number it
 * has one element for each row of x, and by an array of one axis with up to 64 elements a row of
 * that many: their sum over the rows is the derivative. Derivatives by x and the last arguments are
 * computed in one pass over the pairs, those by y in another one. Messages call the gradients g0,
 * g1, by the parameter.
 *
 * operator_ is "add", "logaddexp", "max" or "min". result is not needed for "add". For "logaddexp"
 * it is the result of kjit_pairs, for "max" and "min" the result of "argmax" and "argmin",
 * integers: of equal values the first one has the derivative.
 *
 * options.chunk reads that many rows of y at a time, and for derivatives by y that many rows of x
 * for each of as many rows of y. options.devices share the rows of x, and for derivatives by y
 * those of y.
 *
 * Errors: as kjit_pairs; TYPE (an operator without a derivative, elements other than f32 and f64),
 * those of the derivative of function (docs/derivatives.md). */
KJIT_API KJIT_CHECK kjit_status kjit_pairs_gradient(
  kjit_context *context, const kjit_operand *gradients, const uint32_t *by, size_t count,
  const kjit_operand *cotangents, const kjit_operand *result, const kjit_operand *function,
  const kjit_operand *x, const kjit_operand *y, size_t y_count, const kjit_operator *operator_,
  const kjit_algorithm_options *options);
/* Row i of result becomes the k least of these values, 1 to 64 and at most as many as y has rows,
 * in ascending order, and that of result_places, integers or NULL, the j that they are of; of equal
 * values the first ones, NaN behind all numbers. An array for result_places (options.results) is of
 * i64. Errors: as kjit_pairs. */
KJIT_API KJIT_CHECK kjit_status kjit_pairs_smallest(
  kjit_context *context, const kjit_operand *result, const kjit_operand *result_places,
  const kjit_operand *function, const kjit_operand *x, const kjit_operand *y, size_t y_count,
  int64_t k, const kjit_algorithm_options *options);

/* ---- sparse matrices ---- */

/* A matrix in compressed sparse rows, as scipy.sparse.csr_array has it: row i has the entries
 * offsets[i] up to offsets[i + 1] - 1, of which entry k is data[k] in column columns[k]. offsets
 * has shape[0] + 1 elements; data and columns may have more elements than there are entries.
 * Entries of one row and column are added. Operands are arrays of any strides, or funcs of the
 * index; columns and offsets are i32 or i64, each of its own type. The same three of the transposed
 * matrix are the matrix in compressed sparse columns: kjit_csr_transpose. */
typedef struct kjit_csr {
  /* of each entry its value and its column; of each row where its entries begin, and the end */
  const kjit_operand *data, *columns, *offsets;
  int64_t shape[2]; /* rows and columns */
} kjit_csr;

/* A matrix by coordinates, as scipy.sparse.coo_array has it: entry k is data[k] in row rows[k] and
 * column columns[k], in any order. Entries of one row and column are added. */
typedef struct kjit_coo {
  const kjit_operand *data, *rows, *columns; /* of each entry */
  int64_t shape[2];                          /* rows and columns */
} kjit_coo;

/* What kjit_csr_check asks for besides indices that are in range. */
typedef enum kjit_csr_flags {
  KJIT_CSR_SORTED = 1, /* columns ascend in each row, or stay */
  KJIT_CSR_UNIQUE = 2  /* no column comes twice in a row; it asks for sorted columns, too */
} kjit_csr_flags;

/* Conversions and checks are several calls, one after the other, whose work memory comes from the
 * device's pool: they take none of options.work and work_bytes. A plan of a conversion reads the
 * entries, and how many they are, in each run; the check takes none. The operands of a result are
 * written; messages call them `result_data`, `result_columns`, `result_offsets`. options NULL: all
 * defaults. Errors, where nothing else is said: those of kjit_spmv. */

/* Waits until the device has looked at the matrix; it takes no options.plan. flags: of
 * kjit_csr_flags. Errors: ARGUMENT: offsets that descend or lead out of data, columns outside of
 * the matrix, and what flags ask against, each by name and with the first place; those of
 * kjit_spmv. */
KJIT_API KJIT_CHECK kjit_status kjit_csr_check(kjit_context *context, const kjit_csr *a,
                                               uint32_t flags,
                                               const kjit_algorithm_options *options);
/* result becomes the matrix in CSR, entries of one row and column added (of bool: or), columns
 * sorted in each row, as SciPy's tocsr. data and columns of the result have room for as many
 * entries as a has; result.offsets[shape[0]] is how many there are. Arrays for them
 * (options.results): data, columns, offsets. An entry outside of the matrix is the failure of a
 * thread. Errors: ARGUMENT, TYPE (elements that cannot be added), UNSUPPORTED (rows times columns
 * is beyond 2^64). */
KJIT_API KJIT_CHECK kjit_status kjit_csr_from_coo(kjit_context *context, const kjit_csr *result,
                                                  const kjit_coo *a,
                                                  const kjit_algorithm_options *options);
/* rows, of i32 or i64, becomes the row of each entry: with data and columns of a it is the matrix
 * by coordinates. What is no entry stays as it was. */
KJIT_API KJIT_CHECK kjit_status kjit_csr_to_coo(kjit_context *context, const kjit_operand *rows,
                                                const kjit_csr *a,
                                                const kjit_algorithm_options *options);
/* result, of shape[1] rows, becomes the transposed matrix, which is a in compressed sparse columns:
 * its columns are the rows of a, sorted in each of its rows. Nothing is added. data and columns
 * have room for as many entries as those of a. A column outside of the matrix is the failure of a
 * thread. */
KJIT_API KJIT_CHECK kjit_status kjit_csr_transpose(kjit_context *context, const kjit_csr *result,
                                                   const kjit_csr *a,
                                                   const kjit_algorithm_options *options);
/* result becomes the elements of x, of two axes, that are not 0. data and columns of the result
 * have as much room as the host has counted; more entries than that are the failure of a thread,
 * and offsets are right then. Arrays for them (options.results) have room for all elements of x. */
KJIT_API KJIT_CHECK kjit_status kjit_csr_from_dense(kjit_context *context, const kjit_csr *result,
                                                    const kjit_operand *x,
                                                    const kjit_algorithm_options *options);
/* result, an array of two axes, becomes the matrix, entries of one row and column added. On a GPU
 * floats that come three times and more are added in any order. A column outside of the matrix is
 * the failure of a thread. */
KJIT_API KJIT_CHECK kjit_status kjit_csr_to_dense(kjit_context *context, const kjit_operand *result,
                                                  const kjit_csr *a,
                                                  const kjit_algorithm_options *options);

/* result becomes the product of the matrix and the vector x, of shape[1] elements: shape[0] sums.
 * Each part of the entries takes the same time, whatever the lengths of the rows are, and the same
 * call gives the same bits in every run on one device. data and x are numbers of one type, in which
 * an array for the result (options.results) is, too; sums are computed in options.accumulator, by
 * default the result's type where that is wider, of f16 and bf16 f32. Where offsets descend or lead
 * out of data, it is the failure of a thread, as `raise` in a kernel. Columns are read as they are:
 * those outside of the matrix are outside of x, which kjit_csr_check finds, and kernels that check
 * their indices. options NULL: all defaults. Messages call the operands of a matrix `data`,
 * `columns` and `offsets`. Errors: ARGUMENT (shapes, operands that overlap or cannot be written,
 * too little work memory), TYPE (operands of several types, elements that are no numbers, indices
 * that are neither i32 nor i64), UNSUPPORTED; those of kjit_launch. */
KJIT_API KJIT_CHECK kjit_status kjit_spmv(kjit_context *context, const kjit_operand *result,
                                          const kjit_csr *a, const kjit_operand *x,
                                          const kjit_algorithm_options *options);
/* kjit_spmv for x of several columns: x has two axes, and so has result. */
KJIT_API KJIT_CHECK kjit_status kjit_spmm(kjit_context *context, const kjit_operand *result,
                                          const kjit_csr *a, const kjit_operand *x,
                                          const kjit_algorithm_options *options);

/* ---- solvers ---- */

/* result becomes a matrix, or its transpose, times x; both are arrays of one axis on
 * options->device, and what is queued goes to options->stream, so that options fit every call of
 * this header. user is the operator's. A status that is not KJIT_OK ends the solver, which returns
 * it. */
typedef kjit_status kjit_multiply(void *user, const kjit_operand *result, const kjit_operand *x,
                                  const kjit_algorithm_options *options);

/* A matrix of a linear system, by its entries or by what it does. */
typedef struct kjit_linear_operator {
  const kjit_csr *matrix;             /* NULL: multiply */
  const kjit_csr *transposed;         /* for kjit_lsmr, of matrix; NULL: the call makes it, once */
  kjit_multiply *multiply;            /* called by the thread that calls the solver */
  kjit_multiply *multiply_transposed; /* for kjit_lsmr */
  void *user;                         /* what these are called with */
  int64_t shape[2];                   /* where there is no matrix */
} kjit_linear_operator;

/* Of a solver; 0 stands for the default. */
typedef struct kjit_solve_options {
  uint32_t size_bytes; /* sizeof(kjit_solve_options) */
  double damp;         /* of kjit_lsmr: not negative; default 0 */
  /* relative errors of the matrix and of b, which a solution of kjit_lsmr is allowed to explain;
   * default 1e-6. Less than the rounding is as good as that */
  double matrix_tolerance, b_tolerance;
  /* of kjit_lsmr: it ends where the estimated condition is beyond this; default 1e8 */
  double condition_limit;
  /* of kjit_cg: it ends where the residual is that part of b; default 1e-5 */
  double residual_tolerance;
  /* default: of kjit_lsmr as many as the lesser extent, of kjit_cg 10 for each row */
  int64_t iteration_limit;
  kjit_device *device; /* as in kjit_algorithm_options */
  kjit_stream *stream; /* likewise */
} kjit_solve_options;

/* How a solver has ended. */
typedef enum kjit_solve_status {
  KJIT_SOLVED = 0,               /* the residual is within the tolerances */
  KJIT_SOLVED_LEAST_SQUARES = 1, /* no x has such a residual; this one is the least */
  KJIT_SOLVE_CONDITION = 2,      /* the matrix is too ill-conditioned to go on */
  KJIT_SOLVE_ITERATIONS = 3,     /* there were as many as are allowed */
  KJIT_SOLVE_INDEFINITE = 4,     /* kjit_cg: the matrix is not positive definite */
  KJIT_SOLVE_OVERFLOW = 5        /* what is computed is no longer finite */
} kjit_solve_status;

/* What is known about the x that a solver gives: the best so far, however it has ended. Norms are
 * Euclidean; those of kjit_lsmr are its estimates, of the matrix with damp times the unit matrix
 * below. */
typedef struct kjit_solution {
  uint32_t size_bytes;      /* sizeof(kjit_solution); filled in by the host */
  kjit_solve_status status; /* how the solver has ended */
  int64_t iterations;       /* that it has done */
  double residual_norm;     /* of b - A x; of kjit_cg computed anew from x */
  /* of kjit_lsmr: of A^T (b - A x) - damp^2 x; of the matrix (Frobenius); its condition */
  double normal_residual_norm, matrix_norm, condition;
  double solution_norm; /* of x */
} kjit_solution;

/* The text of a status: "the residual is within the tolerances". Static; NULL: no such status. */
KJIT_API const char *kjit_get_solve_status_text(kjit_solve_status status);

/* x becomes the solution of A x = b for a symmetric positive definite matrix, by the method of
 * conjugate gradients, from zeros. b and x have one axis, and A as many rows and columns; elements
 * are f32 or f64, those of the matrix, too. Vectors stay on the device; the host reads two sums of
 * an iteration and waits for them. A system that does not converge is no error: *solution says so,
 * and x has the least residual that was met. options NULL: all defaults. Errors: ARGUMENT (shapes,
 * operands that overlap or cannot be written, options that are negative or no numbers), TYPE
 * (elements that are neither f32 nor f64), MISUSE (no matrix and no function, solution is NULL);
 * those of kjit_spmv, and of the operator's function. */
KJIT_API KJIT_CHECK kjit_status kjit_cg(kjit_context *context, const kjit_operand *x,
                                        const kjit_linear_operator *a, const kjit_operand *b,
                                        const kjit_solve_options *options, kjit_solution *solution);
/* x becomes what makes |b - A x|^2 + damp^2 |x|^2 least, for a matrix of any shape, by LSMR (Fong
 * and Saunders, 2011), from zeros; where several do, the shortest one. The rest as kjit_cg; the
 * host reads three sums of an iteration. */
KJIT_API KJIT_CHECK kjit_status kjit_lsmr(kjit_context *context, const kjit_operand *x,
                                          const kjit_linear_operator *a, const kjit_operand *b,
                                          const kjit_solve_options *options,
                                          kjit_solution *solution);

/* ---- search ---- */

/* result, of integers, becomes for each of values its place in sorted, an operand of one axis: how
 * many elements come before it; with KJIT_ALGORITHM_RIGHT how many come before it or are equal to
 * it. less NULL: numbers in ascending order, NaN last; else a func of two elements, whether the
 * first one comes before the second one, which sorted is sorted by. result has the shape of values.
 * options NULL: all defaults. Errors: ARGUMENT (shapes, operands that overlap or cannot be
 * written), TYPE (elements without an order, a result that is no integer); those of kjit_launch. */
KJIT_API KJIT_CHECK kjit_status kjit_search_sorted(kjit_context *context,
                                                   const kjit_operand *result,
                                                   const kjit_operand *sorted,
                                                   const kjit_operand *values, kjit_function *less,
                                                   const kjit_algorithm_options *options);

/* result[i] becomes how many elements of x, integers of any shape, are i, for i from 0 to bins - 1;
 * or the sum of their weights, of the shape of x; weights NULL: none. An element that is no bin is
 * the failure of a thread, as `raise` in a kernel. Sums of weights are computed in i64, u64 or f64;
 * of floats in any order on a GPU. Errors: ARGUMENT (shapes, bins, operands that overlap or cannot
 * be written), TYPE (elements that are no integers, weights that are no real numbers); those of
 * kjit_launch. */
KJIT_API KJIT_CHECK kjit_status kjit_bincount(kjit_context *context, const kjit_operand *result,
                                              const kjit_operand *x, int64_t bins,
                                              const kjit_operand *weights,
                                              const kjit_algorithm_options *options);
/* Counts of bins, as kjit_bincount, of equal width from low to high, as numpy.histogram has them: a
 * bin has its lower edge, and the last one both; other elements, and NaN, are not counted. x is of
 * real numbers. low equal to high: bins around it that are 1 wide together. */
KJIT_API KJIT_CHECK kjit_status kjit_histogram(kjit_context *context, const kjit_operand *result,
                                               const kjit_operand *x, int64_t bins, double low,
                                               double high, const kjit_operand *weights,
                                               const kjit_algorithm_options *options);
/* kjit_histogram for bins between the neighbours of edges, an operand of one axis that ascends. */
KJIT_API KJIT_CHECK kjit_status kjit_histogram_edges(
  kjit_context *context, const kjit_operand *result, const kjit_operand *x,
  const kjit_operand *edges, const kjit_operand *weights, const kjit_algorithm_options *options);

/* ---- random numbers ---- */

/* x, an array or a func that writes, becomes random numbers: its elements in row-major order are
 * the numbers offset, offset + 1 and so on of the seed. Number i of a seed depends on nothing but
 * the seed and i (Philox4x32-10), so that parts of an array may be filled by several calls, and a
 * call has no state. Of types of up to 32 bits number i is made of word i, of those of 64 bits of
 * the words 2 * i and 2 * i + 1. Uniform numbers and integers have the same bits on every device;
 * normal and exponential ones differ by the rounding of log, sqrt and sincospi there.
 * options.accumulator: the type of the numbers that a func gets, by default f32, or i64 of
 * integers. options NULL: all defaults. Errors: ARGUMENT (numbers that are not finite or too large,
 * an x that cannot be written), TYPE (elements that are no floats of 16 bits or more, or for
 * kjit_random_integers no integers); those of kjit_launch. */

/* From low to high: of 0 and 1 in [0, 1), of others the greatest one may be high by rounding.
 * Numbers in [0, 1) have 53 bits in f64, 24 in f32, 11 in f16 and 8 in bf16. */
KJIT_API KJIT_CHECK kjit_status kjit_random_uniform(kjit_context *context, const kjit_operand *x,
                                                    uint64_t seed, uint64_t offset, double low,
                                                    double high,
                                                    const kjit_algorithm_options *options);
/* Of this mean and standard deviation, which is not negative. */
KJIT_API KJIT_CHECK kjit_status kjit_random_normal(kjit_context *context, const kjit_operand *x,
                                                   uint64_t seed, uint64_t offset, double mean,
                                                   double deviation,
                                                   const kjit_algorithm_options *options);
/* Exponentially distributed, of mean scale, which is not negative. */
KJIT_API KJIT_CHECK kjit_status kjit_random_exponential(kjit_context *context,
                                                        const kjit_operand *x, uint64_t seed,
                                                        uint64_t offset, double scale,
                                                        const kjit_algorithm_options *options);
/* Integers from least to greatest, which are among them, each as likely as the others. Both are
 * numbers of the type of x; of u64 the bits of these. */
KJIT_API KJIT_CHECK kjit_status kjit_random_integers(kjit_context *context, const kjit_operand *x,
                                                     uint64_t seed, uint64_t offset, int64_t least,
                                                     int64_t greatest,
                                                     const kjit_algorithm_options *options);
/* x, integers of one axis or a func of one index, becomes the numbers from 0 to n - 1 of a random
 * order of n elements, each order as likely as the others. The same ones on every device; for
 * another n they are others. Errors: ARGUMENT (not one axis, a type that does not hold n - 1), TYPE
 * (elements that are no integers); those of kjit_launch. */
KJIT_API KJIT_CHECK kjit_status kjit_random_permutation(kjit_context *context,
                                                        const kjit_operand *x, uint64_t seed,
                                                        const kjit_algorithm_options *options);
/* result becomes x with the elements of its first axis, numbers or rows, in the order that
 * kjit_random_permutation has: result[i] is x[p[i]]. It has the shape and type of x, and must not
 * overlap it. Errors: ARGUMENT (shapes, operands that overlap or cannot be written), TYPE; those of
 * kjit_launch. */
KJIT_API KJIT_CHECK kjit_status kjit_random_shuffle(kjit_context *context,
                                                    const kjit_operand *result,
                                                    const kjit_operand *x, uint64_t seed,
                                                    const kjit_algorithm_options *options);

#ifdef __cplusplus
}
#endif
#endif
