/* Algorithms over whole arrays: what the families share.
 *
 * A public call is a description; what runs are launches of kernels in the kernel IR, whose bodies
 * are funcs of lib/library. The way of a call:
 *
 *   operands    are read and checked (operand.c): element, shape, which array or func it is.
 *   The family  decides which kernels run on which pieces of work memory: its steps (reduce.c).
 *   Each kernel is a short text (kernel_text.c): it imports the family's module and hands it the
 *               operands as funcs, `bind_back(x_at, x0)`, one parameter for each array, so that
 *               one text serves all types and sizes. Texts are parsed and linked with the host's
 *               funcs once (kernel_cache.c).
 *   plan.c      then launches the steps, or prepares them for a plan.
 *
 * Errors are told to the context where they are found, and leave the call through its arena. */
#ifndef KA_ALGORITHM_H
#define KA_ALGORITHM_H

#include <kjit/algorithm.h>

#include "base/runtime.h"
#include "ir/module.h"
#include "memory/array.h"
#include "support/containers.h"

/* ---- one call ---- */

/* A piece of work memory, by its number. */
typedef struct ka_work {
  kjit_type element;
  uint64_t count;
  uint32_t rank; /* 0: of one axis */
  int64_t shape[3];
  bool starts_zero;  /* and its kernels leave it as they want to find it */
  kjit_array *array; /* plan.c */
  uint64_t content;  /* kept_call.c: what a call like this one leaves in it; 0: not known */
} ka_work;

typedef struct ka_step {
  kjit_kernel *kernel;
  kjit_module *module; /* held */
  kjit_launch_config config;
  kjit_arg *arguments;
  size_t count;
} ka_step;

/* The parts of a kernel's text. The call frees them, however it is left. */
typedef struct ka_texts {
  kj_buffer funcs, parameters, constants, body;
} ka_texts;

/* An operand's array, which work memory must not overlap. */
typedef struct ka_given {
  const char *name;
  kj_view view;
} ka_given;

/* A view of an operand's array that a kernel is given. */
typedef struct ka_view {
  kjit_arg made, base;
  kjit_type element;
  uint32_t rank;
  int64_t extents[KJ_MAX_RANK], strides[KJ_MAX_RANK];
} ka_view;

typedef struct ka_kept ka_kept;

/* One of the things that a call made of others does, where it is prepared: an inner call, or a
 * fill. */
typedef struct ka_part {
  kjit_plan *plan;   /* NULL: a fill, or nothing */
  kjit_array *array; /* held; every element becomes number */
  double number;
} ka_part;

typedef struct ka_call {
  kj_arena arena;
  jmp_buf on_failure;
  kjit_status status; /* why it was left */
  kjit_context *context;
  const char *name; /* of the public function */
  kjit_algorithm_options options;
  kjit_device *device; /* by ka_read_operand of the first array, or ka_choose_device */
  bool is_wide;        /* indices are i64: more than i32 holds */
  KJ_LIST(ka_work) works;
  KJ_LIST(ka_step) steps;
  KJ_LIST(ka_part *) parts;    /* sparse_calls.c */
  KJ_LIST(kjit_array *) views; /* made for this call */
  KJ_LIST(ka_view) viewed;     /* and of what */
  KJ_LIST(ka_given) given;     /* where options.work is */
  ka_kept *kept;               /* held: the steps are of a call that was made before */
  KJ_LIST(ka_texts *) texts;
} ka_call;

/* Options that not every algorithm takes. */
typedef enum ka_option {
  KA_AXES = 1,
  KA_ACCUMULATOR = 2,
  KA_INITIAL = 4,
  KA_EXCLUSIVE = 8,
  KA_DESCENDING = 16,
  KA_OUTER = 32,
  KA_RIGHT = 64,
  KA_BITS = 128,
  KA_WHERE = 256,
  KA_SIGNATURE = 512,
  KA_TF32 = 1024,
  KA_CHUNK = 2048,
  KA_DEVICES = 4096,
  KA_EPILOGUE = 8192,
  KA_FORMAT = 16384 /* of u8 */
} ka_option;

/* All that a public function was called with, but for its options. */
enum { KA_MOST_INPUTS = 24, KA_MOST_NUMBERS = 4 };
typedef struct ka_inputs {
  const kjit_operand *operands[KA_MOST_INPUTS]; /* NULL: not given */
  const kjit_operator *operator_;
  kjit_function *function;
  const char *text;                  /* an expression */
  uint64_t numbers[KA_MOST_NUMBERS]; /* what else its steps depend on */
} ka_inputs;

typedef void ka_build(ka_call *call, const void *data);

/* The frame of every public call: reads the options, has build add steps, runs or prepares them.
 * takes: of ka_option; others that are given are refused. inputs: what data says; steps are kept
 * for calls with such inputs (kept_call.c). NULL: they are built each time. */
kjit_status ka_perform_kept(kjit_context *context, const char *name, uint32_t takes,
                            const kjit_algorithm_options *options, ka_build *build,
                            const void *data, const ka_inputs *inputs);
static inline kjit_status ka_perform(kjit_context *context, const char *name, uint32_t takes,
                                     const kjit_algorithm_options *options, ka_build *build,
                                     const void *data)
{
  return ka_perform_kept(context, name, takes, options, build, data, NULL);
}
/* Reports and leaves the call. */
_Noreturn void ka_fail(ka_call *call, kjit_status status, const char *format, ...)
  __attribute__((format(printf, 3, 4)));
/* The same about a func of the host's, with the place where it is declared. */
_Noreturn void ka_fail_at(ka_call *call, const ki_decl *decl, kjit_status status,
                          const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Leaves it where a public function has failed, which has reported. */
void ka_try(ka_call *call, kjit_status status);

/* Whether the call only asks what its results would be (options.results): this says it of one. The
 * family asks before it reads its outputs, and returns. */
bool ka_describe(ka_call *call, size_t index, kjit_type element, uint32_t rank,
                 const int64_t *shape);

/* A new piece of work memory; its number. */
uint32_t ka_add_work(ka_call *call, kjit_type element, uint64_t count, bool starts_zero);

/* The same as an array of three axes, row by row. */
uint32_t ka_add_work_matrices(ka_call *call, kjit_type element, const int64_t shape[3]);

/* The text of a type for messages, in the call's arena. In the text of a kernel it may name another
 * type: ka_use_type. */
const char *ka_type_text(ka_call *call, kjit_type type);
/* The text of a plain number, for messages. */
const char *ka_number_text(ka_call *call, ki_value number);
/* On the CPU one thread runs a block. */
bool ka_is_cpu(const ka_call *call);
/* Multiprocessors, or cores. */
uint32_t ka_core_count(const ka_call *call);
/* Returns the threads of a block, halved until the block's shared memory has room for so many bytes
 * of each thread: older GPUs have less of it. */
uint32_t ka_fit_threads(const ka_call *call, uint32_t threads, uint64_t bytes_a_thread);

static inline uint64_t ka_least(uint64_t a, uint64_t b) { return a < b ? a : b; }
static inline uint64_t ka_most(uint64_t a, uint64_t b) { return a > b ? a : b; }
static inline uint64_t ka_divide_up(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

/* ---- operand.c ---- */

/* Where a linear index of a kernel stands for several axes: the axes [first, first + count) of an
 * operand's order. */
enum { KA_MOST_GROUPS = 3 };

typedef struct ka_operand {
  const char *name;        /* in messages and in the kernel's text */
  kjit_function *function; /* NULL: an array, or a value */
  kjit_type element;       /* of a func that writes, and of a number without a type: KJIT_ANY */
  bool is_output, is_value;
  uint32_t rank;
  int64_t shape[KJ_MAX_RANK];
  uint64_t count;
  kj_view view;     /* of an array */
  kjit_arg *arrays; /* what the kernel is given: the array itself, or those of the func */
  size_t array_count;
  /* ka_arrange: axes in the kernel's order, as few as its array allows */
  uint32_t axis_count, axes[KJ_MAX_RANK]; /* of a func: which axis it is */
  int64_t extents[KJ_MAX_RANK];
  uint32_t group_count, group_ranks[KA_MOST_GROUPS];
} ka_operand;

/* Reads an operand, chooses the call's device by it where none is chosen yet. Errors: MISUSE,
 * ARGUMENT, TYPE. */
void ka_read_input(ka_call *call, const char *name, const kjit_operand *given, ka_operand *operand);
void ka_read_output(ka_call *call, const char *name, const kjit_operand *given,
                    ka_operand *operand);
/* An input, or a value for all elements: rank 0. */
void ka_read_argument(ka_call *call, const char *name, const kjit_operand *given,
                      ka_operand *operand);
/* The type of an argument of an operand's func. Errors: ARGUMENT. */
kjit_type ka_argument_type(ka_call *call, const ka_operand *operand, const kjit_arg *argument);
/* The output's array, or those that its func stores to, do not overlap the arrays of the other
 * operand; may_be_same: but may be the very same elements. Errors: ARGUMENT. */
void ka_check_overlap(ka_call *call, const ka_operand *output, const ka_operand *other,
                      bool may_be_same);
/* Integers of the output's array hold positions below count; a func stores them as it likes, and
 * what is no integer gets them converted. Errors: ARGUMENT. */
void ka_check_positions(ka_call *call, const ka_operand *result, uint64_t count);
/* known_operators.c. The host's func returns a bool of two such elements; meaning: what it says,
 * for the message. Errors: TYPE. */
#define KA_ORDER "a bool, whether the first one comes before the second"
#define KA_EQUALITY "a bool, whether they are equal"
void ka_check_decides(ka_call *call, const kjit_function *function, kjit_type element,
                      const char *meaning);
/* The host's func can be called with so many arguments; what: which ones these are, for the
 * message: "two values". Errors: TYPE. */
void ka_check_arity(ka_call *call, const kjit_function *function, size_t count, const char *what);
/* The same for an operand's func: indices, what is stored, its arrays and values. */
void ka_check_operand_arity(ka_call *call, const ka_operand *operand);
/* A value that a kernel gets: of an element's type, or a number. Errors: ARGUMENT. */
void ka_check_value(ka_call *call, const char *name, const kjit_arg *argument);
/* map.c. Whether a store of such a value into an array of such elements converts it. */
bool ka_converts(const ka_call *call, kjit_type from, kjit_type to);
/* What is computed of that type can be stored in the output; who gives options.accumulator has
 * asked for it. Errors: TYPE. */
void ka_check_stored(ka_call *call, const ka_operand *result, kjit_type computed);
/* Numbers without a type among the operands of a func of elements take the one that the others
 * have, as NumPy treats numbers of Python. Errors: ARGUMENT. */
void ka_settle_numbers(ka_call *call, ka_operand *const *operands, size_t count);
/* What a func of elements is called with, for ka_check_arity. */
#define KA_ELEMENTS "an element of each operand"
/* What a func returns for elements of the operands; VOID: nothing. Errors: TYPE. */
kjit_type ka_infer_result(ka_call *call, kjit_function *function, ka_operand *const *operands,
                          size_t count);
/* What any func returns for arguments of these types. Errors: as kjit_get_result_type. */
kjit_status ka_get_result_type(ka_call *call, kjit_function *function, const kjit_type *types,
                               size_t count, kjit_type *type);
/* The same of one or two values of that type. False: there is no compiler that could say it, so
 * that code was checked when it was compiled, or is not there. */
bool ka_infer_of_values(ka_call *call, kjit_function *function, size_t count, kjit_type element,
                        kjit_type *type);
/* Before kernels are made, when no operand is on a device. */
void ka_choose_device(ka_call *call);
/* Returns the call's device, or the one that ka_choose_device would choose: while operands are
 * still to be read, which may be on another device. */
const kjit_device *ka_likely_device(ka_call *call);
/* Chooses the device by the first of the operands that is an array on a device, where none is
 * chosen yet: before the operands are read. */
void ka_prefer_device(ka_call *call, const kjit_operand *operands, size_t count);

/* From options.axes: bit i is set where axis i of the rank is one of them; none given: all. */
uint32_t ka_read_axes(ka_call *call, uint32_t rank);

/* The array as the kernel is given it: with these extents and strides. They are kept. */
void ka_view_operand(ka_call *call, ka_operand *operand, const int64_t *extents,
                     const int64_t *strides, uint32_t rank);
/* Where an array comes to be that is released at the call's end. */
kjit_array **ka_add_view(ka_call *call);
/* Makes wanted->made from the rest of it. */
void ka_make_view(ka_call *call, ka_view *wanted);
/* Puts the axes in the given order, in groups that one linear index each runs over (the last one
 * fastest), and joins what lies together in memory. */
void ka_arrange(ka_call *call, ka_operand *operand, const uint32_t *axes, uint32_t group_count,
                const uint32_t *group_ranks);

/* ---- known_operators.c ---- */

typedef struct ka_operator {
  const char *name;        /* operator_<name> in lib/library/operators.kir; NULL: function */
  kjit_function *function; /* of the host */
  bool commutes, has_identity;
  size_t row; /* of the table, where it has a name */
} ka_operator;

/* Errors: MISUSE, NAME. */
void ka_read_operator(ka_call *call, const kjit_operator *given, ka_operator *operator_);
/* The same, or a reduction by its name, which is given back; NULL: operator_ is set. */
const struct ka_reduction *ka_read_reduction(ka_call *call, const kjit_operator *given,
                                             ka_operator *operator_);
/* Of integers, bool among them. */
bool ka_is_integer(const ka_call *call, kjit_type type);
/* What a reduction of such elements into such results computes in. Errors: TYPE. */
kjit_type ka_accumulator(ka_call *call, const ka_operator *operator_, kjit_type element,
                         kjit_type result);

/* ---- kernel_text.c ---- */

/* What the text of a kernel calls a func of the host. */
typedef struct ka_function_name {
  const char *name;
  const ki_decl *decl;
} ka_function_name;

/* A kernel on the way: its text, its arguments in the order of its parameters, the host's funcs
 * that it calls. */
typedef struct ka_kernel {
  ka_call *call;
  const char *module;                               /* of lib/library */
  kj_buffer *funcs, *parameters, *constants, *body; /* body: as far as a family wants it */
  KJ_LIST(kjit_arg) arguments;
  KJ_LIST(ka_function_name) functions;
  KJ_LIST(kjit_arg) constant_values;
  KJ_LIST(ki_named_type) structs; /* of the host, and what its text calls them */
  uint32_t operators;             /* of the host's that it has used */
  uint32_t blocks;  /* at least so many are to be on a multiprocessor; 0: the compiler chooses */
  uint32_t cluster; /* so many blocks are a cluster; 0: none */
} ka_kernel;

void ka_begin_kernel(ka_call *call, const char *module, ka_kernel *kernel);
/* Each adds parameters and gives what stands for the operand in the body: a func. accumulator:
 * what the elements of an input are converted to, KJIT_ANY: nothing. */
const char *ka_use_input(ka_kernel *kernel, const ka_operand *operand, kjit_type accumulator);
const char *ka_use_output(ka_kernel *kernel, const ka_operand *operand);
/* Of an array that is read and written: a func of its indices and a value, which calls
 * `change(array, indices, value, more)`; more may be empty. */
const char *ka_use_changed(ka_kernel *kernel, const ka_operand *operand, const char *change,
                           const char *more);
const char *ka_use_operator(ka_kernel *kernel, const ka_operator *operator_, kjit_type accumulator);
/* The text of its identity, which it has. */
const char *ka_use_identity(ka_kernel *kernel, const ka_operator *operator_, kjit_type accumulator);
/* What those are made of, for families that write the access themselves: parameters for what the
 * operand has, `x_0`, `x_1`; their names, each behind a comma. */
const char *ka_use_arrays(ka_kernel *kernel, const ka_operand *operand);
/* An array whose last axis has stride 1, as the type of its parameter says; its name. */
const char *ka_use_rows(ka_kernel *kernel, const ka_operand *operand);
/* The text of a type in the kernel's text, which names structs of the host by what they are: host
 * structs of several modules may have one name, and it may be that of something in the text. */
const char *ka_use_type(ka_kernel *kernel, kjit_type type);
/* The name of a func in the kernel's text; count, what: as in ka_check_arity. */
const char *ka_use_function(ka_kernel *kernel, kjit_function *function, size_t count,
                            const char *what);
/* That of an operand. */
const char *ka_use_operand_function(ka_kernel *kernel, const ka_operand *operand);
const char *ka_use_work(ka_kernel *kernel, uint32_t work);
/* Work memory of three axes, read only, of these elements. */
const char *ka_use_work_rows(ka_kernel *kernel, uint32_t work, kjit_type element);
/* An array as work memory is handed over. */
const char *ka_use_array(ka_kernel *kernel, const kjit_arg *array);
/* A number of elements: i32, or i64 where the call is wide. */
const char *ka_use_count(ka_kernel *kernel, uint64_t count);
/* A value as it is given. */
const char *ka_use_value(ka_kernel *kernel, const kjit_arg *value);
/* A const parameter. */
const char *ka_use_constant(ka_kernel *kernel, int64_t value);
/* Adds the step. threads: of a block, a constant of the kernel; 0: grid and block are chosen by the
 * kernel's grid_range. */
void ka_launch(ka_kernel *kernel, uint32_t threads, uint64_t blocks, const char *body, ...)
  __attribute__((format(printf, 4, 5)));

/* ---- reduce_named.c ---- */

/* A reduction by name that is more than an operator: any, argmax, mean ... */
typedef struct ka_reduction ka_reduction;

/* NULL past the end. */
const char *ka_get_reduction_name(size_t index);
/* NULL: not one of these. */
const ka_reduction *ka_find_reduction(const kjit_operator *given);
/* What elements are converted to first. Errors: TYPE; ARGUMENT for options that say otherwise. */
kjit_type ka_reduction_value(ka_call *call, const ka_reduction *r, kjit_type element);
/* The element type of an array for the result. */
kjit_type ka_reduction_result(const ka_call *call, const ka_reduction *r, kjit_type element,
                              kjit_type value);
/* What is combined: a type, or KJIT_ANY for a struct of the kernel's; its bytes; by what. */
kjit_type ka_reduction_computed(const ka_reduction *r, kjit_type value);
uint32_t ka_reduction_bytes(const ka_call *call, const ka_reduction *r, kjit_type value);
const char *ka_reduction_operator(const ka_reduction *r);
const char *ka_reduction_type(ka_call *call, const ka_reduction *r, kjit_type value);
/* Its result is the place of an element: where there is none, it has none. */
bool ka_finds_place(const ka_reduction *r);
/* The text of the result without elements. Errors: ARGUMENT. */
const char *ka_reduction_empty(ka_call *call, const ka_reduction *r, const char *operand);
/* Funcs around load, of one index or more, and store; count: elements of each result. */
const char *ka_prepare_elements(ka_kernel *kernel, const ka_reduction *r, kjit_type value,
                                const char *load, uint32_t index_count);
const char *ka_finish_values(ka_kernel *kernel, const ka_reduction *r, kjit_type value,
                             const char *put, uint64_t count);
/* The same where results have different counts: a func of i, v, store and count. */
const char *ka_finish_function(ka_kernel *kernel, const ka_reduction *r, kjit_type value);
/* What those are made of. Declares the struct that is combined, if it is one, and gives the text of
 * what is combined: its name, or a type. */
const char *ka_declare_reduced(ka_kernel *kernel, const ka_reduction *r, kjit_type value,
                               const char *name);
/* The text of what is made of an element `x` at a position, and of the result of `v` and `n`, of
 * which ka_reduced_count gives the type. */
const char *ka_reduced_element(ka_call *call, const ka_reduction *r, const char *name,
                               const char *position);
const char *ka_reduced_result(const ka_reduction *r);
const char *ka_reduced_count(ka_call *call, const ka_reduction *r, kjit_type value);
/* "i0, i1" */
const char *ka_list_indices(ka_call *call, uint32_t count);
/* Work memory for `count` values: so many u64 where they are structs, and what the kernel makes of
 * these. */
uint64_t ka_count_words(uint32_t bytes, uint64_t count);
const char *ka_view_words(ka_kernel *kernel, const ka_reduction *r, kjit_type value,
                          const char *words, uint64_t count);

/* ---- segments.c ---- */

/* Elements that a family computes where they are read: use gives the text of a func of an index,
 * an i64, as ka_use_input does. */
typedef struct ka_elements {
  const char *(*use)(ka_kernel *kernel, const void *data);
  const void *data;
} ka_elements;

/* Adds the steps that sum the segments of `count` elements of the accumulator's type, as
 * kjit_reduce_segments does. Operands are arranged, the device is chosen, is_wide is decided. */
void ka_add_segment_sums(ka_call *call, const ka_operand *result, const ka_operand *offsets,
                         uint64_t count, kjit_type accumulator, const ka_elements *elements);

/* ---- carried.c ---- */

/* What parts of a line give on to the next ones: a value with a number about it, a struct of the
 * kernel's: `struct carried_value { state: i32; value: f32 }`. */
typedef struct ka_carried {
  const char *field, *type; /* of the number */
  const char *value; /* name of a struct of the kernel's; the value's type is KJIT_ANY then */
  uint32_t bytes;    /* of the struct, at least */
} ka_carried;

/* element: the value's type, or KJIT_ANY: a struct of the kernel's, of the name `text`. bytes: of a
 * value. Errors: UNSUPPORTED. */
ka_carried ka_carry(ka_call *call, const char *field, kjit_type number, const char *text,
                    uint32_t bytes);
/* Declares it, and the structs that it is made of; `zero(carried_value)`. */
const char *ka_use_carried(ka_kernel *kernel, const ka_carried *c, kjit_type element);
/* Work memory for `count` of them, and what a kernel makes of it. */
uint32_t ka_add_carried(ka_call *call, const ka_carried *c, uint64_t count);
const char *ka_view_carried(ka_kernel *kernel, uint32_t work, uint64_t count);
/* Elements of look_back's work memory, as look_back_size has them, for values of so many bytes. */
uint64_t ka_look_back_size(uint32_t bytes, uint64_t tiles, uint64_t sequences);

/* How a line of so many steps is cut: on the CPU, into pieces of a block each. */
typedef struct ka_carried_tiling {
  uint32_t threads, items; /* steps of a thread */
  uint32_t at_once;        /* ka_kernel.blocks */
  uint64_t blocks;
} ka_carried_tiling;
/* bytes: of a value. is_simple: the operator is one by name. */
ka_carried_tiling ka_tile_carried(const ka_call *call, uint32_t bytes, uint64_t steps,
                                  bool is_simple);

/* ---- kernel_cache.c ---- */

enum { KA_MOST_FUNCTIONS = KI_MOST_MEANINGS }; /* of the host, that one kernel calls */
/* What decides a kernel: its text, the host's funcs that its extern funcs stand for, and the host's
 * structs that it names. */
typedef struct ka_kernel_source {
  const char *text;
  size_t length;
  const ka_function_name *functions;
  size_t function_count;
  const ki_named_type *types;
  size_t type_count;
} ka_kernel_source;
/* Of a kernel's funcs, structs and this text. */
ka_kernel_source ka_get_kernel_source(const ka_kernel *kernel, const char *text, size_t length);
/* The kernel of a text. The module is held for the caller. */
kjit_status ka_find_kernel(kjit_context *context, const ka_kernel_source *source,
                           kjit_module **module, kjit_kernel **kernel);
/* The same without a kernel: for who asks what a func of the text returns. */
kjit_status ka_find_linked(kjit_context *context, const ka_kernel_source *source,
                           kjit_module **module);
/* The layer's part of a context. */
kjit_status ka_open_cache(kj_runtime *runtime, kj_diagnostics *diagnostics);

/* ---- kept_call.c ---- */

enum { KA_MOST_KEPT = 128 };
/* Of a context, under the mutex of its cache of kernels. */
typedef struct ka_kept_calls {
  size_t count;
  uint64_t uses, hashes[KA_MOST_KEPT];
  ka_kept *items[KA_MOST_KEPT];
} ka_kept_calls;

/* What decides which steps a call has, as words, and the arrays whose places do not. */
enum { KA_KEY_WORDS = 448, KA_KEY_ARRAYS = 24, KA_KEY_FUNCTIONS = 24 };
typedef struct ka_array_input {
  kjit_arg argument;
  uint64_t address, low, high;
} ka_array_input;
typedef struct ka_key {
  uint64_t hash;
  size_t count, array_count, function_count;
  bool is_complete;
  ka_array_input arrays[KA_KEY_ARRAYS];
  kjit_function *functions[KA_KEY_FUNCTIONS];
  uint64_t words[KA_KEY_WORDS];
} ka_key;

/* False: calls like this one are not kept. */
bool ka_make_key(ka_call *call, ka_build *build, const ka_inputs *inputs, ka_key *key);
/* Adds the steps and work memory of the call that has this key, with this call's arrays. */
bool ka_take_kept(ka_call *call, const ka_key *key);
/* All is queued: whether the call's work memory is left as its kernels want to find it. */
bool ka_leaves_work(ka_call *call);
/* Keeps what build has added, before work memory has places. */
void ka_keep_call(ka_call *call, const ka_key *key);
/* For assertions: build has added what ka_take_kept would. */
bool ka_agrees_with_kept(ka_call *call, const ka_key *key);
void ka_release_kept(ka_kept *kept);
/* Under the mutex: those with a kernel of the module, or all (NULL), put into gone for the caller
 * to release. */
size_t ka_forget_kept(ka_kept_calls *calls, const kjit_module *module, ka_kept **gone);
/* kernel_cache.c */
ka_kept_calls *ka_lock_kept(kjit_context *context);
void ka_unlock_kept(kjit_context *context);

#endif
