/* kjit/operand.h: the operands, operators, options and plans of algorithms on whole arrays. Every
 * function in reduce.h, sort.h, product.h, sparse.h and random.h takes them. */
#ifndef KJIT_OPERAND_H
#define KJIT_OPERAND_H

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
  const int64_t *shape; /* a func's extents; the array has rank elements */
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
  const char *name;        /* name of a built-in operator; NULL if function is set */
  kjit_function *function; /* func with two parameters; NULL if name is set */
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
 * kjit_run_plan returns MISUSE if a run of the plan is in progress. */
typedef struct kjit_plan kjit_plan;

/* Queues the prepared call's work. If stream is NULL, the stream in the options is used.
 *
 * The function never waits for the device and can be captured into a graph. A plan has its own
 * temporary storage, so the application must order runs of the same plan on different streams. The
 * first run clears part of the temporary storage. After a kernel on the device has failed
 * (KJIT_ERROR_KERNEL), the next run clears it again. A graph that captured an earlier run must then
 * be captured again. Errors: MISUSE (another thread is running the plan, or a function of the
 * application that the plan calls runs it again), and those of kjit_launch. */
KJIT_API KJIT_CHECK kjit_status kjit_run_plan(kjit_plan *plan, kjit_stream *stream);
/* Destroys a plan. Its arrays and temporary storage are released in stream order. plan can be
 * NULL. */
KJIT_API void kjit_destroy_plan(kjit_plan *plan);
/* Returns the context that the plan belongs to. */
KJIT_API kjit_context *kjit_get_plan_context(const kjit_plan *plan);
/* Returns the number of launches in one run of the plan. */
KJIT_API size_t kjit_get_plan_size(const kjit_plan *plan);
/* Returns a plan's launch for kjit_get_prepared_specialization, or NULL if index is too large.
 * The launch is borrowed from the plan. Do not run or change it. */
KJIT_API const kjit_prepared *kjit_get_plan_launch(const kjit_plan *plan, size_t index);

/* ---- shapes and types of results ---- */

/* Element type and shape of the array that would hold an algorithm's result. It is for front ends
 * that create result arrays themselves, as NumPy does. */
typedef struct kjit_result_info {
  /* element type, or KJIT_ANY if it is not known */
  kjit_type element;
  /* number of extents */
  uint32_t rank;
  /* extents; the first rank elements are used */
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
  /* Type in which a reduction or scan computes. The default (KJIT_ANY) for floats is f64 if the
   * result array has f64 elements. Otherwise NumPy's rules apply: sums and products of small
   * integers use 64 bits, and those of f16 and bf16 use f32.
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
  /* If not NULL, the call neither runs nor prepares a plan. It stores its temporary storage size in
   * *work_bytes. */
  uint64_t *work_bytes;
  /* Temporary storage provided by the application: a u8 array on the device with at least
   * *work_bytes elements. A plan keeps the array. Default NULL: memory from the device's pool, in
   * stream order. */
  kjit_array *work;
  /* If not NULL, the call neither runs nor prepares a plan. It ignores the operands of results,
   * which may be NULL, and stores in results[i] the description of an array for result i. It leaves
   * further entries unchanged. */
  kjit_result_info *results;
  /* capacity of results, at least the call's number of results */
  size_t result_count;
  /* Range of bits that a sort of numbers compares: begin_bit to end_bit - 1, or to the last bit if
   * end_bit is 0. The default (0, 0) compares all bits. */
  uint32_t begin_bit, end_bit;
  /* Option for kjit_map: a bool operand that broadcasts to the results. Elements for which it is
   * false stay unchanged. Default NULL: all elements are written. */
  const kjit_operand *where;
  /* Option for kjit_map: the core dimensions, for example "(m,n),(n)->(m)". Default NULL: none. */
  const char *signature;
  /* Option for kjit_pairs: number of y rows to read at a time. Default 0: all rows. If y is in
   * host memory, its rows are copied to the device through two buffers while the kernels work on
   * the preceding rows. Such a call returns when the work is done and cannot be prepared. */
  uint64_t chunk;
  /* Option for kjit_pairs: devices of one kind that share x's rows. Default NULL: only
   * `device`. Each device reads all of y. The array may name a device several times.
   *
   * x, y and the results are arrays in any memory. kjit copies them to the devices and back if
   * necessary. Each device works in its default stream's order. Earlier work on the arrays must be
   * finished, or queued on the default streams of their devices. The call returns when the work is
   * done and cannot be prepared. */
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

#ifdef __cplusplus
}
#endif
#endif
