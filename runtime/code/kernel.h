/* Kernels, what a launch needs to know of one before it is typed; calls of them and their keys. */
#ifndef KJ_CODE_KERNEL_H
#define KJ_CODE_KERNEL_H

#include "base/runtime.h"
#include "code/evaluate.h"

/* What an annotation says that the dispatcher can check without typing the kernel. */
typedef enum kj_annotation_kind {
  KJ_ANNOTATION_NONE,
  KJ_ANNOTATION_SCALAR,  /* .type */
  KJ_ANNOTATION_POINTER, /* .type */
  KJ_ANNOTATION_ARRAY,   /* .type the element, KJIT_ANY: not known or of .same_as; .rank, .layout */
  KJ_ANNOTATION_SAME,    /* dtype(p): the scalar type of parameter .same_as */
  KJ_ANNOTATION_OTHER    /* left to inference */
} kj_annotation_kind;

typedef struct kj_annotation {
  kj_annotation_kind kind;
  kjit_type type;
  int same_as; /* a parameter; -1: none */
  uint8_t rank, layout, read_only;
} kj_annotation;

typedef struct kj_parameter_row {
  const ki_decl *decl;
  kj_annotation annotation;
  bool is_const, is_func, is_read, is_written;
  bool is_general; /* @general: no facts */
  bool is_shaping; /* grid, block or shared memory may depend on it */
} kj_parameter_row;

/* A shared array of the kernel that has extents. */
typedef struct kj_kernel_shared {
  const ki_decl *decl;
  kj_programs programs; /* of the extents */
} kj_kernel_shared;

/* What a launch makes of it. */
typedef struct kj_shared_size {
  uint32_t offset, extents[KJ_MAX_RANK]; /* bytes; elements */
} kj_shared_size;

typedef struct kj_table kj_table;
typedef struct kj_function_code kj_function_code;

/* What threads write often lies in slots of its own cache lines. A thread has one for itself as
 * long as it lives, so that it counts there without a locked instruction; those for whom none is
 * left share the last one. evict.c */
enum { KJ_SLOTS = KJ_LAUNCH_COUNTERS, KJ_SHARED_SLOT = KJ_SLOTS - 1, KJ_SLOT_BYTES = 128 };
/* from 1; 0: none yet */
extern _Thread_local uint32_t kj_own_slot
  __attribute__((tls_model("initial-exec"), visibility("hidden")));
uint32_t kj_take_slot(void);
static inline uint32_t kj_slot(void) { return kj_own_slot ? kj_own_slot - 1 : kj_take_slot(); }

/* What was done before can be seen by whoever sees the new number. */
static inline void kj_count_up(_Atomic uint64_t *count, uint32_t slot)
{
  if (slot == KJ_SHARED_SLOT) atomic_fetch_add(count, 1);
  else
    atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + 1,
                          memory_order_release);
}

/* The shape of a launch that had nothing beside it, and what it was decided from: a launch of the
 * same code with the same of that has the same shape. launch/learned.c */
enum { KJ_MOST_SHAPE_INPUTS = 8 };
typedef struct kj_known_shape {
  const kjit_specialization *specialization; /* NULL: none is known */
  uint32_t grid[3], block[3], shared_bytes, parameter_bytes;
  kjit_launch_config config;             /* but for its stream and its device */
  uint64_t inputs[KJ_MOST_SHAPE_INPUTS]; /* extents and scalars among the arguments */
} kj_known_shape;

/* What a thread launched last; of the shared slot no shape is known. */
typedef struct kj_recent_slot {
  _Atomic(kjit_specialization *) specialization;
  kj_known_shape shape;
  char padding[64]; /* a line between two slots */
} kj_recent_slot;

/* Counts of how the threads of a slot used a specialization: uses that began, that ended with a
 * launch, that ended without. In use = begun - launched - passed. */
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
  kj_binding *bindings; /* function->local_count, or params + locals */
  uint32_t binding_count;
  /* positions that a launch is made from */
  const ki_attribute *block, *grid, *launch_bounds;
  /* @block depends on const parameters only: part of what the compiler may know */
  bool block_is_static;
  const ki_stmt **ranges; /* the grid_ranges of the kernel itself */
  uint32_t range_count;
  bool has_callee_range; /* a func may contain more */
  bool is_range_only;    /* kj_is_range_only: no iterations, nothing to do */
  kj_kernel_shared *shared;
  uint32_t shared_count;
  size_t call_bytes; /* of a call's memory, see kj_call */
  /* the same as programs */
  kj_programs *range_programs; /* of each range */
  kj_programs block_program, grid_program, bounds_program;
  kj_recent_slot recent[KJ_SLOTS];
  /* of a func: what the host called, of launch/function.c, which sets free_functions with them */
  _Atomic(kj_function_code *) functions;
  void (*free_functions)(kjit_kernel *kernel);
  _Atomic uint64_t
    combines; /* of a func: what algorithm/known_operators.c found it good for last */
  /* specializations */
  _Atomic bool is_sealed; /* kjit_seal_kernel */
  _Atomic(kj_table *) table;
  pthread_mutex_t mutex;
  kjit_specialization **order; /* compiled ones in the order of their compilation */
  size_t order_count, order_capacity;
};

/* What is known of a kernel, or of a func as of one: its parameters and how arguments are bound to
 * them. NULL: out of memory. */
kjit_kernel *kj_get_kernel_object(kjit_module *module, size_t index);
/* inspect.c. Finds the type that a func returns for arguments of these types when it is compiled
 * for the device, as the type may depend on the target (`vector_bytes`, `target`). device NULL
 * means the CPU. The messages go to diagnostics. */
kjit_status kj_find_result_type(kjit_function *function, const kjit_device *device,
                                const kjit_type *types, size_t count, kj_diagnostics *diagnostics,
                                kjit_type *type);
/* cache.c */
void kj_free_specializations(kjit_kernel *kernel);
/* The kernel of a declaration of the module where anybody has asked for it, or NULL. */
kjit_kernel *kj_get_made_kernel(kjit_module *module, size_t index);

/* Threads of a block where nobody has given one. */
enum { KJ_DEFAULT_BLOCK = 256 };
/* bound: of @launch_bounds; KJ_DEFAULT_BLOCK where there are none. */
static inline uint32_t kj_default_block(uint32_t bound)
{
  uint32_t threads = bound < KJ_DEFAULT_BLOCK ? bound : KJ_DEFAULT_BLOCK;
  return threads > KJ_WARP_THREADS ? threads / KJ_WARP_THREADS * KJ_WARP_THREADS : threads;
}

/* The func behind a handle. */
static inline const ki_decl *kj_function_of(const kjit_function *function)
{
  return (const ki_decl *)function;
}

/* ---- what a launch evaluates of a kernel: extents.c ---- */

/* is_product: only the product of the values counts. */
void kj_make_programs(const kjit_kernel *kernel, const ki_exprs *values, bool is_product,
                      kj_programs *programs);
/* Values of @block or another attribute, missing ones 1. Errors: LAUNCH. */
kjit_status kj_evaluate_attribute(const kjit_kernel *kernel, kj_scope *scope,
                                  const ki_attribute *attribute, kj_diagnostics *diagnostics,
                                  uint32_t values[3]);

/* ---- a call on its way to its code: bound arguments, the shape of the launch, the key ---- */

typedef struct kj_call {
  kjit_kernel *kernel;
  kj_runtime *runtime;
  kjit_device *device;
  kjit_stream *stream; /* or NULL */
  const kjit_launch_config *config;
  kj_bound *bound; /* one for each parameter */
  uint64_t *key;
  uint32_t key_count;
  kj_shared_size *shared; /* as kj_code.shared_arrays; one more for the launch's own */
  char *parameters;       /* memory for the parameter block, parameter_room bytes */
  size_t parameter_room;
  char *own_parameters; /* of kj_make_room; whoever divided the call's memory frees it */
  bool has_host_arrays, is_miss;
  uint32_t facts;    /* KJ_CALL_FACT_*, of kj_make_key */
  bool is_sealed;    /* the kernel was when the arguments were matched */
  bool is_general;   /* facts are left out of the key */
  bool is_makeshift; /* runs code for fewer facts than it has */
  /* configuration */
  uint32_t grid[3], block[3], cluster[3];
  bool is_block_chosen; /* nobody has given a block */
  bool is_cooperative;
  /* the grid may still be made smaller: the kernel is all grid_ranges and no grid was given */
  bool is_chosen;
  bool has_elements; /* elements is known */
  bool has_nothing;  /* no iterations at all */
  uint64_t elements; /* of the largest grid_range */
  uint64_t dynamic_shared_bytes;
} kj_call;

/* Divides call_bytes of memory: bound arguments, then the key, then the parameter block. */
size_t kj_divide_memory(kj_call *call, char *memory);
/* "f32[:, :] C", "f32", "16", "a func" for messages and signatures. */
void kj_print_bound(const kj_call *call, const kj_bound *bound, kj_buffer *buffer);
/* Whether the bytes [low, high) of two arrays have some in common; neither is empty. */
static inline bool kj_do_meet(uint64_t low, uint64_t high, uint64_t other_low, uint64_t other_high)
{
  return (high > other_low) & (other_high > low);
}
kj_relation kj_relate(const kj_bound *a, const kj_bound *b);
kj_scope kj_call_scope(const kj_call *call);

/* ---- the key and the facts in it: cache.c ---- */

/* The facts of a call with a grid and a block. */
uint32_t kj_find_facts_of(const kj_call *call, bool has_small_offsets);
enum { KJ_KEY_FIXED_WORDS = 4 };
/* Fills call->key from bound, device, facts and, where it counts, block. */
void kj_make_key(kj_call *call);
/* At most so many words. */
size_t kj_key_capacity(const kjit_kernel *kernel);

/* The call with no facts at all; the key follows. */
void kj_drop_facts(kj_call *call);
/* Whether the key has the relation of two arguments: arrays of which one is written. */
bool kj_has_relation(const kj_call *call, uint32_t i, uint32_t j);
/* Whether the key has the block. */
static inline bool kj_knows_block(const kjit_kernel *kernel, const kjit_device *device)
{
  return device->operations->knows_block || kernel->block_is_static;
}

uint64_t kj_hash_key(const uint64_t *key, uint32_t count);

/* ---- signature.c ---- */

/* The text of a KJ_ARGUMENT_NUMBER's type in signatures and keys. */
const char *kj_number_text(kjit_type type);

/* Facts as text into a signature: flags of arguments, relations[count * count], block. Errors:
 * ARGUMENT. */
kjit_status kj_read_facts(const kjit_kernel *kernel, const char *facts, kj_argument *arguments,
                          uint8_t *relations, kj_signature *signature, kj_diagnostics *diagnostics);

/* The same of a call as text, for hosts: "aligned16(r, x) disjoint(r, x)"; malloc'd, NULL: out of
 * memory. */
char *kj_print_facts(const kj_call *call, const kj_signature *signature);

/* ---- extern_bindings.c: what the application has bound to extern funcs ---- */

/* Functions that native code of the module may call, by their symbols; free with kj_free_outside.
 */
kjit_status kj_list_outside(const kjit_module *module, kj_diagnostics *diagnostics,
                            kj_outside *outside);
void kj_free_outside(kj_outside *outside);
/* What a kernel's PTX is linked with, itself first. */
typedef struct kj_link_inputs {
  kj_link_input *items;
  size_t count, renamed; /* renamed: how many texts after the kernel's are copies */
} kj_link_inputs;
/* The kernel's own PTX alone. */
kj_link_input kj_link_own(const kj_code *code);
/* The kernel's PTX, the PTX that is bound to funcs which it calls, with the symbols that it calls,
 * and the linked code of such funcs; each once. Free with kj_free_link_inputs. */
kjit_status kj_list_link_inputs(const kjit_module *module, const kj_code *code,
                                kj_diagnostics *diagnostics, kj_link_inputs *inputs);
void kj_free_link_inputs(kj_link_inputs *inputs);
/* Whether funcs are bound to code that a linker puts together with the kernel's. */
bool kj_has_outside_code(const kjit_module *module);
/* Whether the linked code reads files whose content is in no key. */
bool kj_depends_on_files(const kjit_module *module);
/* Lines of the disk cache's key: the symbol of each bound func, which contains the digest of code
 * for GPUs, and the name that the func has in the canonical text of the module. */
void kj_add_extern_key(const kjit_module *module, bool takes_ptx, kj_buffer *text);

/* ---- range_only.c ---- */

/* The kernel consists of grid_ranges and of lets that only compute: without iterations there is
 * nothing to do. */
bool kj_is_range_only(const ki_function *function);

#endif
