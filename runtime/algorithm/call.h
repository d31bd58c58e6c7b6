/* One call of an algorithm: its options, its temporary storage and its steps. algorithm.h describes
 * the stages of a call. */
#ifndef KA_CALL_H
#define KA_CALL_H

#include <kjit/algorithm.h>

#include "base/runtime.h"
#include "ir/module.h"
#include "memory/array.h"
#include "support/containers.h"

/* A block of temporary storage. Steps refer to it by its index in ka_call.works. */
typedef struct ka_work {
  kjit_type element;
  uint64_t count;
  uint32_t rank; /* 0 means one axis */
  int64_t shape[3];
  bool starts_zero;  /* true if the storage must be zero before the first call; each call restores
                        the state that the next call of the same kind needs */
  kjit_array *array; /* perform.c */
  /* identifies the contents that a call of the same kind leaves in the storage (kept_call.c); 0
   * means unknown */
  uint64_t content;
} ka_work;

typedef struct ka_step {
  kjit_kernel *kernel;
  kjit_module *module; /* held */
  kjit_launch_config config;
  kjit_arg *arguments;
  size_t count;
} ka_step;

/* The buffers in which a kernel's source is written. The call frees them on success and on
 * failure. */
typedef struct ka_texts {
  kj_buffer funcs, parameters, constants, body;
} ka_texts;

/* The array of an operand. options.work must not overlap it. */
typedef struct ka_given {
  const char *name;
  kj_view view;
} ka_given;

/* A view of an operand's array that is passed to a kernel. */
typedef struct ka_view {
  kjit_arg made, base;
  kjit_type element;
  uint32_t rank;
  int64_t extents[KJ_MAX_RANK], strides[KJ_MAX_RANK];
} ka_view;

typedef struct ka_kept ka_kept;

/* One action of a plan: a launch, the plan of an inner call, or a fill. All pointers are NULL if an
 * inner call has nothing to do. */
typedef struct ka_part {
  kjit_prepared *prepared; /* launch */
  kjit_module *module;     /* module of the launched kernel, retained */
  kjit_plan *plan;
  kjit_array *array; /* for a fill: the array, which is retained, and the number that is written to
                        all its elements */
  double number;
} ka_part;

typedef struct ka_call {
  kj_arena arena;
  jmp_buf on_failure;
  kjit_status status; /* status of the error that ended the call through on_failure */
  kjit_context *context;
  const char *name; /* name of the public function */
  kjit_algorithm_options options;
  kjit_device *device; /* set by the first array that is read, or by ka_choose_device */
  bool is_wide;        /* indices are i64, because i32 cannot number all elements */
  KJ_LIST(ka_work) works;
  KJ_LIST(ka_step) steps;
  KJ_LIST(ka_part *) parts;    /* sparse_calls.c */
  KJ_LIST(kjit_array *) views; /* views that were made for this call */
  KJ_LIST(ka_view) viewed;     /* descriptions of these views */
  KJ_LIST(ka_given) given;     /* arrays of operands; only listed if options.work is set */
  ka_kept *kept; /* the earlier call whose steps this call repeats, retained, or NULL */
  KJ_LIST(ka_texts *) texts;
} ka_call;

/* Options that only some algorithms accept: a set of flags. */
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
  KA_FORMAT = 16384 /* format of u8 elements */
} ka_option;

/* All arguments of a public function except its options. */
enum { KA_MOST_INPUTS = 24, KA_MOST_NUMBERS = 4 };
typedef struct ka_inputs {
  const kjit_operand *operands[KA_MOST_INPUTS]; /* NULL for an operand that was not given */
  const kjit_operator *operator_;
  kjit_function *function;
  const char *text;                  /* an expression */
  uint64_t numbers[KA_MOST_NUMBERS]; /* other numbers on which the steps depend */
} ka_inputs;

typedef void ka_build(ka_call *call, const void *data);

/* Executes a public call: reads the options, calls build(call, data), which adds the steps, and
 * runs or prepares the steps.
 *
 * `takes` contains the flags of ka_option that the call accepts; any other option is rejected.
 * `inputs` contains the call's arguments, which `data` passes to `build`. The steps are kept for
 * later calls with equal inputs (kept_call.c); if inputs is NULL, each call builds its steps. */
kjit_status ka_perform_kept(kjit_context *context, const char *name, uint32_t takes,
                            const kjit_algorithm_options *options, ka_build *build,
                            const void *data, const ka_inputs *inputs);
static inline kjit_status ka_perform(kjit_context *context, const char *name, uint32_t takes,
                                     const kjit_algorithm_options *options, ka_build *build,
                                     const void *data)
{
  return ka_perform_kept(context, name, takes, options, build, data, NULL);
}
/* Reports an error and leaves the call. */
_Noreturn void ka_fail(ka_call *call, kjit_status status, const char *format, ...)
  __attribute__((format(printf, 3, 4)));
/* Like ka_fail, for an error in a func of the application. The message shows the declaration of
 * this func. */
_Noreturn void ka_fail_at(ka_call *call, const ki_decl *decl, kjit_status status,
                          const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Reports that memory is exhausted in the public function `name`. */
kjit_status ka_fail_memory(kjit_context *context, const char *name);
/* Leaves the call if status is not KJIT_OK. The function that returned the status has already
 * reported the error. */
void ka_try(ka_call *call, kjit_status status);

/* If the call only asks for a description of its results (options.results), describes result
 * `index` and returns true. Algorithms call this function before they read their outputs, and
 * return at once if it returns true. */
bool ka_describe(ka_call *call, size_t index, kjit_type element, uint32_t rank,
                 const int64_t *shape);

/* Adds a block of temporary storage and returns its index. */
uint32_t ka_add_work(ka_call *call, kjit_type element, uint64_t count, bool starts_zero);

/* Like ka_add_work, for a three-dimensional array in row-major order. */
uint32_t ka_add_work_matrices(ka_call *call, kjit_type element, const int64_t shape[3]);

/* Returns a type's name for messages, in the call's arena. Do not use the name in a kernel's
 * source, where it can belong to another type; use ka_use_type there. */
const char *ka_type_text(ka_call *call, kjit_type type);
/* Returns an untyped number as a string for messages. */
const char *ka_number_text(ka_call *call, ki_value number);
/* Returns whether the call runs on the CPU, where a single thread runs a whole block. */
bool ka_is_cpu(const ka_call *call);
/* Returns the number of multiprocessors if the call runs on a GPU, or the number of cores if it
 * runs on the CPU. */
uint32_t ka_core_count(const ka_call *call);
/* Returns the number of threads in a block. Starts with `threads` and halves the number until
 * bytes_a_thread for each thread fit in the block's shared memory, which is smaller on older
 * GPUs. */
uint32_t ka_fit_threads(const ka_call *call, uint32_t threads, uint64_t bytes_a_thread);

static inline uint64_t ka_least(uint64_t a, uint64_t b) { return a < b ? a : b; }
static inline uint64_t ka_most(uint64_t a, uint64_t b) { return a > b ? a : b; }
static inline uint64_t ka_divide_up(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

#endif
