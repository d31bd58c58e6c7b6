/* Kernel objects, which hold the properties of a kernel that a launch needs before type inference;
 * calls of kernels and their keys. */
#ifndef KJ_CODE_KERNEL_H
#define KJ_CODE_KERNEL_H

#include "base/runtime.h"
#include "code/evaluate.h"

/* Kinds of parameter annotations that the dispatcher checks without type inference. */
typedef enum kj_annotation_kind {
  KJ_ANNOTATION_NONE,
  KJ_ANNOTATION_SCALAR,  /* a scalar of type .type */
  KJ_ANNOTATION_POINTER, /* a pointer of type .type */
  /* an array with .rank, .layout and element type .type; KJIT_ANY means that the type is unknown,
   * or is the type of .same_as */
  KJ_ANNOTATION_ARRAY,
  KJ_ANNOTATION_SAME, /* `dtype(p)`: the element type of parameter .same_as */
  KJ_ANNOTATION_OTHER /* any other annotation, which only type inference checks */
} kj_annotation_kind;

typedef struct kj_annotation {
  kj_annotation_kind kind;
  kjit_type type;
  int same_as; /* index of a parameter, or -1 */
  uint8_t rank, layout, read_only;
} kj_annotation;

typedef struct kj_parameter_row {
  const ki_decl *decl;
  kj_annotation annotation;
  bool is_const, is_func, is_read, is_written;
  bool is_general; /* true if the parameter is declared @general: no specialization relies on facts
                      about it */
  /* the launch shape (grid, block, shared memory size) may depend on the parameter */
  bool is_shaping;
} kj_parameter_row;

/* Position and extents of a shared array in a launch. */
typedef struct kj_shared_size {
  uint32_t offset, extents[KJ_MAX_RANK]; /* offset in bytes, extents in elements */
} kj_shared_size;

typedef struct kj_table kj_table;
typedef struct kj_function_code kj_function_code;

/* Counters that threads write often exist once per slot, and each slot has its own cache lines. A
 * thread owns a slot until the thread ends, so it increments its counters without an atomic
 * read-modify-write. If there are more threads than slots, the remaining threads share the last
 * slot. See evict.c. */
enum { KJ_SLOTS = KJ_LAUNCH_COUNTERS, KJ_SHARED_SLOT = KJ_SLOTS - 1, KJ_SLOT_BYTES = 128 };
/* slot of this thread plus 1, or 0 before kj_take_slot assigned a slot */
extern _Thread_local uint32_t kj_own_slot
  __attribute__((tls_model("initial-exec"), visibility("hidden")));
uint32_t kj_take_slot(void);
static inline uint32_t kj_slot(void) { return kj_own_slot ? kj_own_slot - 1 : kj_take_slot(); }

/* Increments a counter. A thread that reads the new count also sees the writes that this thread
 * made before. */
static inline void kj_count_up(_Atomic uint64_t *count, uint32_t slot)
{
  if (slot == KJ_SHARED_SLOT) atomic_fetch_add(count, 1);
  else
    atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + 1,
                          memory_order_release);
}

/* The shape of the last launch on the fast path that needed only grid, block and shared memory
 * size, and that shape's inputs. A launch of the same code with the same inputs and configuration
 * has the same shape, which is not computed again. See launch/fast_path.c. */
enum { KJ_MOST_SHAPE_INPUTS = 8 };
typedef struct kj_known_shape {
  const kjit_specialization *specialization; /* NULL means that no shape is stored */
  uint32_t grid[3], block[3], shared_bytes, parameter_bytes;
  kjit_launch_config config;             /* stream and device are not compared */
  uint64_t inputs[KJ_MOST_SHAPE_INPUTS]; /* extents and scalar arguments on which the shape
                                          * depends */
} kj_known_shape;

/* The last launch by a thread with this slot. The slot that threads share stores no shape. */
typedef struct kj_recent_slot {
  _Atomic(kjit_specialization *) specialization;
  kj_known_shape shape;
  char padding[64]; /* ensures that two slots are on different cache lines */
} kj_recent_slot;

/* Counts how often the threads that share a slot use a specialization: `begun` counts uses that
 * have begun, `launched` uses that ended with a launch, and `passed` uses that ended without one.
 * The code is in use while begun > launched + passed. */
typedef struct kj_hold_slot {
  _Atomic uint64_t begun, launched, passed;
  char padding[KJ_SLOT_BYTES - 3 * sizeof(uint64_t)];
} kj_hold_slot;

struct kjit_kernel {
  kjit_module *module;
  kjit_context *context;
  const ki_function *function;
  kj_parameter_row *parameters;
  uint32_t parameter_count;
  kj_binding *bindings; /* has function->local_count items: parameters, then locals */
  uint32_t binding_count;
  /* attributes from which a launch computes its shape, or NULL */
  const ki_attribute *block, *grid, *launch_bounds;
  /* true if @block depends on const parameters only, so that the block is known when the kernel is
   * compiled */
  bool block_is_static;
  /* a @block that depends on no parameter; otherwise fixed_block[0] is 0 */
  uint32_t fixed_block[3];
  const ki_stmt **ranges; /* grid_range statements in the kernel body */
  uint32_t range_count;
  bool has_callee_range;  /* true if a called func may contain further grid_ranges */
  bool is_range_only;     /* see kj_is_range_only */
  const ki_decl **shared; /* shared arrays whose extents are evaluated at launch */
  uint32_t shared_count;
  size_t call_bytes; /* size of a call's memory, which kj_divide_memory divides */
  kj_recent_slot recent[KJ_SLOTS];
  /* for a func: the compiled functions that the application has called. launch/function_code.c
   * creates them and sets free_functions. */
  _Atomic(kj_function_code *) functions;
  void (*free_functions)(kjit_kernel *kernel);
  _Atomic uint64_t combines; /* for a func: the last successful check as an operator, see
                                algorithm/known_operators.c */
  /* specializations, protected by mutex unless atomic */
  _Atomic bool is_sealed; /* set by kjit_seal_kernel */
  _Atomic(kj_table *) table;
  pthread_mutex_t mutex;
  kjit_specialization **order; /* compiled specializations in the order of compilation */
  size_t order_count, order_capacity;
};

/* Returns the kernel object of a kernel or func: its parameters and the rules for binding
 * arguments. The first call creates the object. Returns NULL if out of memory. */
kjit_kernel *kj_get_kernel_object(kjit_module *module, size_t index);
/* inspect.c. Finds the type that a func returns for arguments of these types. The type may depend
 * on the target for which the func is compiled (`vector_bytes`, `target`). device NULL means the
 * CPU. The messages go to diagnostics. */
kjit_status kj_find_result_type(kjit_function *function, const kjit_device *device,
                                const kjit_type *types, size_t count, kj_diagnostics *diagnostics,
                                kjit_type *type);
/* cache.c */
void kj_free_specializations(kjit_kernel *kernel);
/* Returns the kernel object of a declaration, or NULL if none was created yet. */
kjit_kernel *kj_get_made_kernel(kjit_module *module, size_t index);

/* Block size of a launch if neither the launch nor the kernel specifies one. */
enum { KJ_DEFAULT_BLOCK = 256 };
/* Returns the default block size: `bound`, which comes from @launch_bounds, but at most
 * KJ_DEFAULT_BLOCK, rounded down to whole warps. */
static inline uint32_t kj_default_block(uint32_t bound)
{
  uint32_t threads = bound < KJ_DEFAULT_BLOCK ? bound : KJ_DEFAULT_BLOCK;
  return threads > KJ_WARP_THREADS ? threads / KJ_WARP_THREADS * KJ_WARP_THREADS : threads;
}

/* Returns the declaration of a function handle. */
static inline const ki_decl *kj_function_of(const kjit_function *function)
{
  return (const ki_decl *)function;
}

/* ---- expressions of a kernel that a launch evaluates: extents.c ---- */

/* Sets is_shaping of the parameters. Returns false if memory is exhausted. */
bool kj_mark_shaping(kjit_kernel *kernel);
/* Evaluates the values of @block or another attribute. Values that the attribute omits are 1.
 * Errors: LAUNCH, without a report if diagnostics is NULL. */
kjit_status kj_evaluate_attribute(const kjit_kernel *kernel, kj_scope *scope,
                                  const ki_attribute *attribute, kj_diagnostics *diagnostics,
                                  uint32_t values[3]);

/* ---- a call: bound arguments, launch shape and key ---- */

typedef struct kj_call {
  kjit_kernel *kernel;
  kj_runtime *runtime;
  kjit_device *device;
  kjit_stream *stream; /* or NULL */
  const kjit_launch_config *config;
  kj_bound *bound; /* one item for each parameter */
  uint64_t *key;
  uint32_t key_count;
  kj_shared_size *shared; /* the arrays of kj_code.shared_arrays, and one more item for the dynamic
                           * shared memory of the launch */
  char *parameters;       /* the parameter block, with space for parameter_room bytes */
  size_t parameter_room;
  char *own_parameters; /* NULL, or memory that kj_make_room has allocated; the function that
                         * divided the call's memory frees it */
  bool has_host_arrays, is_miss;
  bool has_read_only; /* an array is read-only, but the kernel's source may write to it */
  uint32_t facts;     /* KJ_CALL_FACT_*, set by kj_make_key */
  bool is_sealed;     /* true if the kernel was sealed when the arguments were matched */
  bool is_general;    /* the key contains no facts */
  bool is_fallback;   /* true if the call runs plain code, or code that relies on fewer facts than
                         are true for the call */
  kj_plain plain;     /* the kinds of plain code that the call may compile and run */
  /* launch configuration */
  uint32_t grid[3], block[3], cluster[3];
  bool is_block_chosen; /* true if kjit chose the block, because the launch gives none */
  bool is_cooperative;
  /* true if the grid was chosen by kjit and may be reduced, because the launch gives no grid and
   * the kernel is range-only (kj_is_range_only) */
  bool is_chosen;
  bool has_elements; /* `elements` is set */
  bool has_nothing;  /* true if the launch has no iterations and is skipped */
  uint64_t elements; /* iteration count of the largest grid_range */
  uint64_t dynamic_shared_bytes;
} kj_call;

/* Divides call_bytes of memory into bound arguments, key and parameter block, and returns the
 * number of bytes used. */
size_t kj_divide_memory(kj_call *call, char *memory);
/* Prints a bound argument for messages and signatures, for example "f32[:, :] C", "f32", "16" or "a
 * func". */
void kj_print_bound(const kj_call *call, const kj_bound *bound, kj_buffer *buffer);
/* Returns whether the non-empty byte ranges [low, high) of two arrays overlap. */
static inline bool kj_do_meet(uint64_t low, uint64_t high, uint64_t other_low, uint64_t other_high)
{
  return (high > other_low) & (other_high > low);
}
kj_relation kj_relate(const kj_bound *a, const kj_bound *b);
static inline kj_scope kj_call_scope(const kj_call *call, const uint32_t *block)
{
  return (kj_scope){ .bound = call->bound,
                     .bound_count = call->kernel->parameter_count,
                     .bindings = call->kernel->bindings,
                     .binding_count = call->kernel->binding_count,
                     .block = block };
}

/* ---- the key and its facts: cache.c ---- */

/* Returns the call facts. The grid and the block of the call must be set. */
uint32_t kj_find_facts_of(const kj_call *call, bool has_small_offsets);
enum { KJ_KEY_FIXED_WORDS = 4 };
/* Fills call->key from device, bound arguments, facts and, if kj_knows_block, the block. */
void kj_make_key(kj_call *call);
/* Returns the maximum number of key words. */
size_t kj_key_capacity(const kjit_kernel *kernel);

/* Removes all facts from the call. The caller has to make the key again. */
void kj_drop_facts(kj_call *call);
/* Removes only the fact KJ_FACT_LARGE. Returns whether the call had this fact. The caller has to
 * make the key again. */
bool kj_drop_large(kj_call *call);
/* Returns whether the key contains the relation of two arguments: both are arrays, and the kernel
 * writes at least one. */
bool kj_has_relation(const kj_call *call, uint32_t i, uint32_t j);
/* Returns whether the key contains the block. */
static inline bool kj_knows_block(const kjit_kernel *kernel, const kjit_device *device)
{
  return device->operations->knows_block || kernel->block_is_static;
}

uint64_t kj_hash_key(const uint64_t *key, uint32_t count);

/* ---- signature.c ---- */

/* Returns the word that stands for the type of a KJ_ARGUMENT_NUMBER in signatures and keys. */
const char *kj_number_text(kjit_type type);

/* Parses facts into a signature: the flags of arguments, relations[count * count] and the block.
 * Errors: ARGUMENT. */
kjit_status kj_read_facts(const kjit_kernel *kernel, const char *facts, kj_argument *arguments,
                          uint8_t *relations, kj_signature *signature, kj_diagnostics *diagnostics);

/* Returns a call's facts as a malloc'd string for the application, such as "aligned16(r, x)
 * disjoint(r, x)", or NULL if out of memory. */
char *kj_print_facts(const kj_call *call, const kj_signature *signature);

/* ---- extern_bindings.c: code that the application has bound to extern funcs ---- */

/* Lists the symbols and addresses of the functions that native code of the module may call. Free
 * the list with kj_free_outside. */
kjit_status kj_list_outside(const kjit_module *module, kj_diagnostics *diagnostics,
                            kj_outside *outside);
void kj_free_outside(kj_outside *outside);
/* Inputs for linking a kernel; the first input is the kernel's PTX. */
typedef struct kj_link_inputs {
  kj_link_input *items;
  /* number of renamed PTX sources, which follow the kernel's own PTX and are owned */
  size_t count, renamed;
} kj_link_inputs;
/* Returns the kernel's own PTX as a link input. */
kj_link_input kj_link_own(const kj_code *code);
/* Lists the kernel's PTX, the PTX to which called funcs are bound, and the linked code of called
 * funcs. The symbols of bound PTX are renamed to the symbols that the kernel calls. Each input is
 * listed once. Free the list with kj_free_link_inputs. */
kjit_status kj_list_link_inputs(const kjit_module *module, const kj_code *code,
                                kj_diagnostics *diagnostics, kj_link_inputs *inputs);
void kj_free_link_inputs(kj_link_inputs *inputs);
/* Returns whether a func of the module is bound to code that has to be linked with the kernel. */
bool kj_has_outside_code(const kjit_module *module);
/* Appends a line to the disk cache key for each bound func: its name in the canonical text of the
 * module, and its symbol. The symbol of GPU code contains a digest of the code and of the files
 * that CUDA C includes. is_linked: see kj_code_format. driver_version: version of the driver that
 * loads the code, or 0. */
void kj_add_extern_key(const kjit_module *module, bool is_linked, int driver_version,
                       kj_buffer *text);
/* Returns whether the files that linked CUDA C includes are known and have not changed since the
 * key was made.
 */
bool kj_is_extern_key_current(const kjit_module *module, int driver_version, const char *key);

/* ---- range_only.c ---- */

/* Returns whether the kernel has no effect if its grid_ranges have no iterations, so that such a
 * launch can be skipped (range_only.c). */
bool kj_is_range_only(const ki_function *function);

#endif
