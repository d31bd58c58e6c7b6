/* Declarations that all families of whole-array algorithms (reductions, sorts, products ...) share.
 *
 * A public call runs as launches of kernels, which are written in the kernel IR and call funcs of
 * lib/library. A call goes through these stages:
 *
 *   operand.c      reads and checks the operands: element type, shape, array or func.
 *   reduce.c etc.  The family adds its steps. A step is a launch of a kernel on operands and on
 *                  blocks of temporary storage.
 *   kernel_text.c  writes the source of each kernel. It imports the family's module and passes the
 *                  operands to it as funcs, `bind_back(x_at, x0)`, with one parameter for each
 *                  array, so that one source serves all types and sizes.
 *   kernel_cache.c parses each source once and links it with the funcs of the application.
 *   perform.c      launches the steps, or plan.c prepares them for a plan.
 *
 * A function that finds an error reports it to the context and leaves the call by a longjmp to
 * ka_call.on_failure. */
#ifndef KA_ALGORITHM_H
#define KA_ALGORITHM_H

#include "algorithm/call.h"

/* ---- plan.c ---- */

/* Prepares the launches of the steps and stores them in *options.plan. The temporary storage of the
 * steps must have been allocated. */
void ka_prepare_plan(ka_call *call);
/* Returns whether the stream is captured, by kjit or by the application. If so, queued work runs
 * when the graph is launched. */
bool ka_is_captured(const kjit_stream *stream);

/* ---- operand.c ---- */

/* Maximum number of groups of axes. A group consists of consecutive axes of an operand. A kernel
 * has one linear index for each group, which numbers the elements along the group's axes. */
enum { KA_MOST_GROUPS = 3 };

typedef struct ka_operand {
  const char *name;        /* name in messages and in the kernel's source */
  kjit_function *function; /* NULL for an array or a value */
  kjit_type element;       /* KJIT_ANY for an output func and for an untyped number */
  bool is_output, is_value;
  uint32_t rank;
  int64_t shape[KJ_MAX_RANK];
  uint64_t count;
  kj_view view;     /* view of an array */
  kjit_arg *arrays; /* arguments of the kernel: the array itself, or the arrays of the func */
  size_t array_count;
  /* The fields below are set by ka_arrange: the axes in the kernel's order. Axes that are
   * contiguous in memory are merged into one. */
  /* axes: for an operand that is a func, the func's axis for each of the kernel's axes */
  uint32_t axis_count, axes[KJ_MAX_RANK];
  int64_t extents[KJ_MAX_RANK];
  uint32_t group_count, group_ranks[KA_MOST_GROUPS];
} ka_operand;

/* Reads an operand. If the call has no device yet, the operand's array determines it. Errors:
 * MISUSE, ARGUMENT, TYPE. */
void ka_read_input(ka_call *call, const char *name, const kjit_operand *given, ka_operand *operand);
void ka_read_output(ka_call *call, const char *name, const kjit_operand *given,
                    ka_operand *operand);
/* Like ka_read_input, but also accepts a single value, which stands for all elements and has rank
 * 0. */
void ka_read_argument(ka_call *call, const char *name, const kjit_operand *given,
                      ka_operand *operand);
/* Returns the type of an argument of an operand's func. Errors: ARGUMENT. */
kjit_type ka_argument_type(ka_call *call, const ka_operand *operand, const kjit_arg *argument);
/* Rejects an output array, or an array of an output func, that overlaps an array of the other
 * operand. If may_be_same is true, both operands may consist of exactly the same elements. Errors:
 * ARGUMENT. */
void ka_check_overlap(ka_call *call, const ka_operand *output, const ka_operand *other,
                      bool may_be_same);
/* Rejects an output array with an integer type that cannot represent all positions below count.
 * Accepts funcs and arrays of other types, because positions are converted to those types. Errors:
 * ARGUMENT. */
void ka_check_positions(ka_call *call, const ka_operand *result, uint64_t count);
/* Like ka_check_positions, for a result whose elements must be integers. Errors: also TYPE. */
void ka_check_index_result(ka_call *call, const ka_operand *result, uint64_t count);
/* Rejects a func of the application that does not return a bool for two elements of this type
 * (known_operators.c). `meaning` describes the bool in the error message. Errors: TYPE. */
#define KA_ORDER "a bool, whether the first one comes before the second"
#define KA_EQUALITY "a bool, whether they are equal"
void ka_check_decides(ka_call *call, const kjit_function *function, kjit_type element,
                      const char *meaning);
/* Rejects a func of the application that cannot be called with `count` arguments. `what` describes
 * the arguments in the error message, for example "two values". Errors: TYPE. */
void ka_check_arity(ka_call *call, const kjit_function *function, size_t count, const char *what);
/* Like ka_check_arity, for the func of an operand, whose arguments are indices, the stored value,
 * arrays and values. */
void ka_check_operand_arity(ka_call *call, const ka_operand *operand);
/* Rejects a kernel argument that is neither a number nor a value of an element type. Errors:
 * ARGUMENT.
 */
void ka_check_value(ka_call *call, const char *name, const kjit_arg *argument);
/* Like ka_check_value, for the option `initial`, which may be NULL. */
void ka_check_initial(ka_call *call);
/* Returns whether a store can convert a value of type `from` to an element of type `to` (map.c). */
bool ka_converts(const ka_call *call, kjit_type from, kjit_type to);
/* Rejects an output that cannot store values of the computed type, unless the caller has set
 * options.accumulator. Errors: TYPE. */
void ka_check_stored(ka_call *call, const ka_operand *result, kjit_type computed);
/* Gives each untyped number among the operands of an elementwise func the common type of the other
 * operands, as NumPy does with Python numbers. Errors: ARGUMENT. */
void ka_settle_numbers(ka_call *call, ka_operand *const *operands, size_t count);
/* Describes the arguments of an elementwise func, for ka_check_arity. */
#define KA_ELEMENTS "an element of each operand"
/* Returns the result type of a func for elements of the operands; VOID if it returns nothing.
 * Errors: TYPE. */
kjit_type ka_infer_result(ka_call *call, kjit_function *function, ka_operand *const *operands,
                          size_t count);
/* Finds the result type of any func for arguments of these types. Errors: as kjit_get_result_type.
 */
kjit_status ka_get_result_type(ka_call *call, kjit_function *function, const kjit_type *types,
                               size_t count, kjit_type *type);
/* Finds the result type of a func for one or two values of the element type. Returns false if there
 * is no compiler, because only the compiler infers types. The call can continue in this case: code
 * that exists was checked when it was compiled, and if there is no code, the launch reports an
 * error. */
bool ka_infer_of_values(ka_call *call, kjit_function *function, size_t count, kjit_type element,
                        kjit_type *type);
/* If no operand has determined the call's device, chooses it. Called before kernels are made. */
void ka_choose_device(ka_call *call);
/* Returns the call's device, or the device that ka_choose_device would choose. Operands that are
 * read later can still determine another device. */
const kjit_device *ka_likely_device(ka_call *call);
/* If the call has no device yet, chooses the device of the first operand that is an array on a
 * device. Called before the operands are read. */
void ka_prefer_device(ka_call *call, const kjit_operand *operands, size_t count);

/* Returns options.axes as a bit set: bit i stands for axis i of `rank` axes. If the option is not
 * set, all bits are set. */
uint32_t ka_read_axes(ka_call *call, uint32_t rank);

/* Passes the operand's array to the kernel as a view with these extents and strides. The extents
 * and strides are copied. */
void ka_view_operand(ka_call *call, ka_operand *operand, const int64_t *extents,
                     const int64_t *strides, uint32_t rank);
/* Returns the address at which the caller stores a new array. This array is released at the end of
 * the call. */
kjit_array **ka_add_view(ka_call *call);
/* Creates the view that the fields of `wanted` describe, and stores it in wanted->made. */
void ka_make_view(ka_call *call, ka_view *wanted);
/* Puts the axes into the given order and divides them into groups. The kernel has one linear index
 * for each group; the last axis of the group varies fastest. Joins axes that are contiguous in
 * memory. */
void ka_arrange(ka_call *call, ka_operand *operand, const uint32_t *axes, uint32_t group_count,
                const uint32_t *group_ranks);

/* ---- known_operators.c ---- */

typedef struct ka_operator {
  const char *name;        /* operator_<name> in lib/library/operators.kir, or NULL */
  kjit_function *function; /* the func of the application if name is NULL */
  bool commutes, has_identity;
  size_t row; /* row in the table of operators if name is not NULL */
} ka_operator;

/* Reads an operator of the call. Errors: MISUSE, NAME. */
void ka_read_operator(ka_call *call, const kjit_operator *given, ka_operator *operator_);
/* If `given` names a reduction that is more than an operator (such as mean), returns this
 * reduction. Otherwise reads `given` as an operator, stores it in *operator_ and returns NULL. */
const struct ka_reduction *ka_read_reduction(ka_call *call, const kjit_operator *given,
                                             ka_operator *operator_);
/* Returns whether the type is an integer type or bool. */
bool ka_is_integer(const ka_call *call, kjit_type type);
/* Returns the accumulator type of a reduction with these element and result types. Errors: TYPE. */
kjit_type ka_accumulator(ka_call *call, const ka_operator *operator_, kjit_type element,
                         kjit_type result);

/* ---- kernel_text.c ---- */

/* A func of the application, and the name by which a kernel's source calls it. */
typedef struct ka_function_name {
  const char *name;
  const ki_decl *decl;
} ka_function_name;

/* A kernel whose source is being written: the parts of the source, the arguments in the order of
 * the parameters, and the funcs of the application that it calls. */
typedef struct ka_kernel {
  ka_call *call;
  const char *module; /* name of a module of lib/library */
  /* body: statements in the kernel, for algorithms that write the body in several steps */
  kj_buffer *funcs, *parameters, *constants, *body;
  KJ_LIST(kjit_arg) arguments;
  KJ_LIST(ka_function_name) functions;
  KJ_LIST(kjit_arg) constant_values;
  KJ_LIST(ki_named_type)
  structs;            /* structs of the application that the source names, and their
                       * names in the source */
  uint32_t operators; /* number of operators of the application used so far */
  /* minimum number of blocks on a multiprocessor; 0 means that the compiler chooses */
  uint32_t blocks;
  uint32_t cluster; /* number of blocks in a cluster; 0 means no clusters */
} ka_kernel;

void ka_begin_kernel(ka_call *call, const char *module, ka_kernel *kernel);
/* ka_use_input and ka_use_output add an operand's parameters to the kernel. They return an
 * expression for a func that loads or stores elements of the operand. Loaded elements are converted
 * to the type accumulator; KJIT_ANY means no conversion. */
const char *ka_use_input(ka_kernel *kernel, const ka_operand *operand, kjit_type accumulator);
const char *ka_use_output(ka_kernel *kernel, const ka_operand *operand);
/* Like ka_use_output, for an array that the kernel reads and writes. The returned func takes
 * indices and a value, and calls `change(array, indices, value, more)`; more may be empty. */
const char *ka_use_changed(ka_kernel *kernel, const ka_operand *operand, const char *change,
                           const char *more);
const char *ka_use_operator(ka_kernel *kernel, const ka_operator *operator_, kjit_type accumulator);
/* Returns the expression of the operator's identity element. The operator must have an identity
 * element. */
const char *ka_use_identity(ka_kernel *kernel, const ka_operator *operator_, kjit_type accumulator);
/* Adds a parameter `x_0`, `x_1` ... for each array or value of the operand, and returns their
 * names, each after a comma. For algorithms whose kernel source itself accesses the elements. */
const char *ka_use_arrays(ka_kernel *kernel, const ka_operand *operand);
/* Adds a parameter for an array whose last axis has stride 1; the parameter's type declares this
 * stride. Returns the parameter's name. */
const char *ka_use_rows(ka_kernel *kernel, const ka_operand *operand);
/* Returns a type's name in the kernel's source. A struct of the application gets a name that is
 * unique in the source, because another struct, or a declaration of the source, can have the
 * struct's own name. */
const char *ka_use_type(ka_kernel *kernel, kjit_type type);
/* Returns a func's name in the kernel's source. `count` and `what` are passed to ka_check_arity. */
const char *ka_use_function(ka_kernel *kernel, kjit_function *function, size_t count,
                            const char *what);
/* Like ka_use_function, for the func of an operand. */
const char *ka_use_operand_function(ka_kernel *kernel, const ka_operand *operand);
const char *ka_use_work(ka_kernel *kernel, uint32_t work);
/* Adds a parameter for a three-dimensional block of temporary storage. The kernel only reads this
 * block, and its elements have the given type. */
const char *ka_use_work_rows(ka_kernel *kernel, uint32_t work, kjit_type element);
/* Adds a parameter for an array. The parameter has the same declaration as a parameter for
 * temporary storage. */
const char *ka_use_array(ka_kernel *kernel, const kjit_arg *array);
/* Adds a parameter for a number of elements: an i32, or an i64 if the call is wide. */
const char *ka_use_count(ka_kernel *kernel, uint64_t count);
/* Adds a parameter for a value of any type. */
const char *ka_use_value(ka_kernel *kernel, const kjit_arg *value);
/* Adds a const parameter. */
const char *ka_use_constant(ka_kernel *kernel, int64_t value);
/* Completes the kernel and adds its step. threads is the number of threads in a block, which is a
 * constant in the kernel. 0 means that the kernel has a grid_range, and the launch chooses grid and
 * block. */
void ka_launch(ka_kernel *kernel, uint32_t threads, uint64_t blocks, const char *body, ...)
  __attribute__((format(printf, 4, 5)));

/* ---- reduce_named.c ---- */

/* A named reduction that is more than an operator: any, argmax, mean ... */
typedef struct ka_reduction ka_reduction;

/* Returns a reduction's name, or NULL if index is past the end of the table. */
const char *ka_get_reduction_name(size_t index);
/* Returns the reduction that `given` names, or NULL if it names none. */
const ka_reduction *ka_find_reduction(const kjit_operator *given);
/* Returns the type to which elements are converted before they are combined. Errors: TYPE; ARGUMENT
 * if options.accumulator contradicts it. */
kjit_type ka_reduction_value(ka_call *call, const ka_reduction *r, kjit_type element);
/* Returns the default element type of the result. */
kjit_type ka_reduction_result(const ka_call *call, const ka_reduction *r, kjit_type element,
                              kjit_type value);
/* Describe the values that a reduction combines. ka_reduction_computed returns their type, or
 * KJIT_ANY if the type is a struct in the kernel's source. ka_reduction_bytes returns their size,
 * and ka_reduction_operator returns the operator. */
kjit_type ka_reduction_computed(const ka_reduction *r, kjit_type value);
uint32_t ka_reduction_bytes(const ka_call *call, const ka_reduction *r, kjit_type value);
const char *ka_reduction_operator(const ka_reduction *r);
const char *ka_reduction_type(ka_call *call, const ka_reduction *r, kjit_type value);
/* Returns whether the result is an element's index. Such a reduction has no result for 0 elements.
 */
bool ka_finds_place(const ka_reduction *r);
/* Returns the expression of the result for 0 elements. Errors: ARGUMENT if it has none. */
const char *ka_reduction_empty(ka_call *call, const ka_reduction *r, const char *operand);
/* ka_prepare_elements wraps a func that loads an element at index_count indices. ka_finish_values
 * wraps a func that stores a result; each result combines `count` elements. */
const char *ka_prepare_elements(ka_kernel *kernel, const ka_reduction *r, kjit_type value,
                                const char *load, uint32_t index_count);
const char *ka_finish_values(ka_kernel *kernel, const ka_reduction *r, kjit_type value,
                             const char *put, uint64_t count);
/* Like ka_finish_values, for results that combine different numbers of elements. Returns a func
 * with the parameters i, v, store and count. */
const char *ka_finish_function(ka_kernel *kernel, const ka_reduction *r, kjit_type value);
/* If a combined value is a struct, ka_declare_reduced declares this struct and returns its name.
 * Otherwise it returns the name of the value's type. ka_prepare_elements calls ka_declare_reduced
 * itself. */
const char *ka_declare_reduced(ka_kernel *kernel, const ka_reduction *r, kjit_type value,
                               const char *name);
/* Return expressions for kernels. ka_reduced_element returns the value to combine for an element
 * `x` at a position. ka_reduced_result returns the result for a combined value `v` and a count `n`.
 * ka_reduced_count returns the type of `n`. */
const char *ka_reduced_element(ka_call *call, const ka_reduction *r, const char *name,
                               const char *position);
const char *ka_reduced_result(const ka_reduction *r);
const char *ka_reduced_count(ka_call *call, const ka_reduction *r, kjit_type value);
/* "i0, i1" */
const char *ka_list_indices(ka_call *call, uint32_t count);
/* Temporary storage for `count` combined values that are structs is an array of u64. ka_count_words
 * returns the number of u64. ka_view_words returns the expression by which the kernel views this
 * array as an array of structs. */
uint64_t ka_count_words(uint32_t bytes, uint64_t count);
const char *ka_view_words(ka_kernel *kernel, const ka_reduction *r, kjit_type value,
                          const char *words, uint64_t count);

/* ---- segments.c ---- */

/* Elements that an algorithm computes when a kernel reads them. `use` returns the expression of a
 * func that loads an element, like ka_use_input; the func takes an i64 index. */
typedef struct ka_elements {
  const char *(*use)(ka_kernel *kernel, const void *data);
  const void *data;
} ka_elements;

/* Adds the steps that sum the segments of `count` elements of the accumulator type, as
 * kjit_reduce_segments does. The caller has arranged the operands, chosen the device and set
 * is_wide. */
void ka_add_segment_sums(ka_call *call, const ka_operand *result, const ka_operand *offsets,
                         uint64_t count, kjit_type accumulator, const ka_elements *elements);

/* ---- carried.c ---- */

/* The carried value of a scan, which is passed from each chunk of the sequence to the next chunk.
 * It is a struct in the kernel's source with a number and a value: `struct carried_value { state:
 * i32; value: f32 }`. */
typedef struct ka_carried {
  const char *field, *type; /* name and type of the number's field */
  const char *value; /* name of the value's struct in the source, if the value's type is KJIT_ANY */
  uint32_t bytes;    /* minimum size of the struct */
} ka_carried;

/* Describes a carried value with a number of the type `number`. If the value is a struct, text is
 * this struct's name. bytes is the value size. Errors: UNSUPPORTED. */
ka_carried ka_carry(ka_call *call, const char *field, kjit_type number, const char *text,
                    uint32_t bytes);
/* Declares carried_value and the structs that it contains. Returns `zero(carried_value)`. */
const char *ka_use_carried(ka_kernel *kernel, const ka_carried *c, kjit_type element);
/* ka_add_carried adds temporary storage for `count` carried values; ka_view_carried returns the
 * expression by which a kernel views this memory as carried values. */
uint32_t ka_add_carried(ka_call *call, const ka_carried *c, uint64_t count);
const char *ka_view_carried(ka_kernel *kernel, uint32_t work, uint64_t count);
/* Returns the number of elements of look_back's temporary storage for values of this size: the same
 * number as look_back_size of lib/library. */
uint64_t ka_look_back_size(uint32_t bytes, uint64_t tiles, uint64_t sequences);

/* The division of a sequence of steps among threads and blocks. On the CPU each block has one
 * contiguous chunk of the sequence. */
typedef struct ka_carried_tiling {
  uint32_t threads, items; /* items: number of steps that a thread performs */
  uint32_t at_once;        /* value for ka_kernel.blocks */
  uint64_t blocks;
} ka_carried_tiling;
/* Chooses the division of `steps` steps. bytes: size of a value. is_simple: the operator is a
 * built-in operator. */
ka_carried_tiling ka_tile_carried(const ka_call *call, uint32_t bytes, uint64_t steps,
                                  bool is_simple);

/* ---- kernel_cache.c ---- */

/* Maximum number of funcs of the application that one kernel calls. */
enum { KA_MOST_FUNCTIONS = KI_MOST_MEANINGS };
/* The description by which the cache finds a kernel: its source, the application's funcs to which
 * its extern funcs are linked, and the application's structs that it names. */
typedef struct ka_kernel_source {
  const char *text;
  size_t length;
  const ka_function_name *functions;
  size_t function_count;
  const ki_named_type *types;
  size_t type_count;
} ka_kernel_source;
/* Returns the description of a kernel with this text as its source. */
ka_kernel_source ka_get_kernel_source(const ka_kernel *kernel, const char *text, size_t length);
/* Finds the kernel of a source, or parses and links the source. The module is retained for the
 * caller.
 */
kjit_status ka_find_kernel(kjit_context *context, const ka_kernel_source *source,
                           kjit_module **module, kjit_kernel **kernel);
/* Like ka_find_kernel, for a source that has no kernel. Callers infer the result type of a func in
 * this source. */
kjit_status ka_find_linked(kjit_context *context, const ka_kernel_source *source,
                           kjit_module **module);
/* Opens the cache of kernels of a context. */
kjit_status ka_open_cache(kj_runtime *runtime, kj_diagnostics *diagnostics);

#endif
