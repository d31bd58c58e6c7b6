/* From a call to code: kernels and their specializations, bound arguments, the key, the launch
 * configuration. */
#ifndef KJ_DISPATCH_H
#define KJ_DISPATCH_H

#include "cpu/object.h"
#include "launch/program.h"
#include "base/runtime.h"

/* ---- kernels ---- */

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
 * left share the last one. slot.c */
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

typedef struct kj_recent_slot {
  _Atomic(kjit_specialization *) specialization;
  char padding[KJ_SLOT_BYTES - sizeof(void *)];
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
  bool is_range_only;    /* nothing but lets and grid_ranges: no iterations, nothing to do */
  kj_kernel_shared *shared;
  uint32_t shared_count;
  size_t call_bytes; /* of a call's memory, see kj_call */
  /* the same as programs */
  kj_programs *range_programs; /* of each range */
  kj_programs block_program, grid_program, bounds_program;
  /* the last specialization that a thread of the slot launched */
  kj_recent_slot recent[KJ_SLOTS];
  _Atomic(kj_function_code *) functions; /* of a func: what the host called, function.c's own */
  /* specializations */
  _Atomic bool is_sealed; /* kjit_seal_kernel */
  _Atomic(kj_table *) table;
  pthread_mutex_t mutex;
  kjit_specialization **order; /* compiled ones in the order of their compilation */
  size_t order_count, order_capacity;
};

void kj_release_kernels(kjit_module *module);
/* What is known of a kernel, or of a func as of one: its parameters and how arguments are bound to
 * them. NULL: out of memory. */
kjit_kernel *kj_get_kernel_object(kjit_module *module, size_t index);
/* function.c */
void kj_free_function_codes(kjit_kernel *kernel);
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

/* ---- a call ---- */

/* One bound argument. Small and without a need to be cleared: filling these is most of what a hit
 * does. */
struct kj_bound {
  uint8_t kind; /* kj_argument_kind */
  uint8_t rank, layout, facts, access;
  bool on_host, is_empty;
  bool offsets_fit; /* every offset, extent and stride is in the range of i32 */
  kjit_type type;   /* of scalars and compile-time values; arrays: the element */
  union {
    struct {          /* scalars and compile-time values */
      ki_value value; /* type KJIT_ANY: none that the host can compute with */
      uint64_t
        /* a run-time scalar or pointer as it goes to the kernel; of a value that is made of others,
           in bits[0], the address where the host has it */
        bits[2];
    };
    struct {                          /* arrays */
      const int64_t *shape, *strides; /* strides only of strided layouts */
      uint64_t address, low, high;    /* of element 0; the bytes [low, high) hold all elements */
      uint64_t count;
      uint64_t target; /* address of element 0 for the kernel: address, or the copy's on the GPU */
    };
    const ki_decl *function;
  };
};

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

/* Reads the arguments into call->bound. Errors: ARGUMENT, located at the parameter. */
kjit_status kj_bind_arguments(kj_call *call, const kjit_arg *arguments, size_t count,
                              kj_diagnostics *diagnostics);
/* Fills bound from a tensor: layout, range, facts. */
kjit_status kj_bind_tensor(kj_call *call, uint32_t index, const kjit_tensor *tensor,
                           kjit_type given, kj_diagnostics *diagnostics);
/* The device of the launch, from the configuration, else from the arrays; then whether every array
 * can be used there. */
kjit_status kj_choose_device(kj_call *call, const kjit_arg *arguments, kj_diagnostics *diagnostics);
/* "f32[:, :] C", "f32", "16", "a func" for messages and signatures. */
void kj_print_bound(const kj_call *call, const kj_bound *bound, kj_buffer *buffer);
int64_t kj_stride_of(const kj_bound *array, uint32_t dimension);
/* Whether the bytes [low, high) of two arrays have some in common; neither is empty. */
static inline bool kj_do_meet(uint64_t low, uint64_t high, uint64_t other_low, uint64_t other_high)
{
  return (high > other_low) & (other_high > low);
}
kj_relation kj_relate(const kj_bound *a, const kj_bound *b);
/* Whether the key has the relation of two arguments: arrays of which one is written. */
bool kj_has_relation(const kj_call *call, uint32_t i, uint32_t j);
/* Whether the key has the block. */
static inline bool kj_knows_block(const kjit_kernel *kernel, const kjit_device *device)
{
  return !kj_is_cuda(device) || kernel->block_is_static;
}

kj_scope kj_call_scope(const kj_call *call);
/* Values of @block or another attribute, missing ones 1. */
kjit_status kj_evaluate_attribute(const kjit_kernel *kernel, kj_scope *scope,
                                  const ki_attribute *attribute, kj_diagnostics *diagnostics,
                                  uint32_t values[3]);

/* ---- specializations ---- */

typedef struct kj_failure_slot kj_failure_slot;
typedef enum kj_state { KJ_PENDING, KJ_READY, KJ_FAILED } kj_state;

struct kjit_specialization {
  /* kj_state; what follows mutex is written before READY is and never changes afterwards */
  _Atomic int state;
  /* launch/learned.h; freed as one piece */
  _Atomic(struct kj_learned *) learned;
  kjit_kernel *kernel;
  uint64_t hash;
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  uint64_t attempt;       /* counts compilations of this key */
  kj_diagnostics failure; /* of the last failed attempt */
  bool is_unreported;     /* it was made in the background: nobody has been told of a failure */
  kjit_device *device;
  uint32_t generation;
  kj_code code;
  kj_cuda_function cuda;
  kj_failure_slot *failure_slot; /* GPU, with code.failures */
  uint64_t failure_address;      /* of its record for the kernel */
  kj_loaded *loaded;             /* by the compiler; or */
  kj_image *image;               /* without it, from the disk cache */
  kj_cpu_kernel run;
  bool is_from_disk, is_imported;
  char *signature, *facts;
  uint64_t load_time_ns;
  /* what the occupancy calculator said last, and for which launch: see limits.c; 0: nothing */
  _Atomic uint64_t chosen_threads, resident_blocks;
  /* Kept after loading, for whoever asks for the code in another form, and for export: what it was
   * compiled for and, in code.data, PTX, a cubin or an object. */
  kj_signature compiled_for; /* arguments and relations are its own */
  bool is_listed;            /* in kernel->order */
  bool is_explicit;          /* kjit_specialize made or found it; under kernel->mutex */
  /* a compilation that nobody waits for has failed: it is not tried again by itself; under mutex */
  bool is_hopeless;
  kjit_specialization *next_loaded; /* runtime->loaded */
  size_t compiled_bytes;            /* of code.data */
  /* under runtime->loaded_mutex: swept: launches when eviction looked last */
  uint64_t code_bytes, swept;
  /* graphs and other things that use the code without holding it; added to while it is held */
  _Atomic uint32_t pins;
  kj_hold_slot holds[KJ_SLOTS];
  _Atomic bool has_tried_learning;
  uint32_t key_count;
  uint64_t key[];
};

/* ---- holding: evict.c ----
 *
 * Code may be unloaded while its specialization lives on. Whoever uses code, cuda, run or learned
 * holds the specialization meanwhile; a hold is one addition to a line that the thread has for
 * itself, and never waits. */

/* own: kj_slot() */
static inline void kj_release_of(kjit_specialization *specialization, uint32_t own,
                                 bool is_launched)
{
  kj_hold_slot *slot = &specialization->holds[own];
  kj_count_up(is_launched ? &slot->launched : &slot->passed, own);
}

/* False: it has no code (any more). Each side publishes before it reads, this one the hold and
 * eviction the state, and eviction makes every thread pass a barrier in between: so at least one of
 * them notices the other. */
static inline bool kj_hold_of(kjit_specialization *specialization, uint32_t own)
{
  kj_count_up(&specialization->holds[own].begun, own);
  atomic_signal_fence(memory_order_seq_cst);
  if (atomic_load_explicit(&specialization->state, memory_order_acquire) == KJ_READY) return true;
  kj_release_of(specialization, own, false);
  return false;
}
static inline void kj_release(kjit_specialization *specialization, bool is_launched)
{
  kj_release_of(specialization, kj_slot(), is_launched);
}
static inline bool kj_hold(kjit_specialization *specialization)
{
  return kj_hold_of(specialization, kj_slot());
}

/* For assertions: whether this thread holds it. Of threads that share a slot, whether one does. */
static inline bool kj_is_held_here(const kjit_specialization *specialization)
{
  const kj_hold_slot *slot = &specialization->holds[kj_slot()];
  return atomic_load(&slot->begun) != atomic_load(&slot->launched) + atomic_load(&slot->passed);
}

uint64_t kj_count_launches(const kjit_specialization *specialization);
/* The specialization has code now: unloads what was not used for long until the rest keeps to the
 * bound of the configuration. */
void kj_note_loaded(kjit_specialization *specialization);
/* Before it is freed. */
void kj_forget_loaded(kjit_specialization *specialization);

/* ---- failure.c ---- */

/* KERNEL, with the place and the message. */
kjit_status kj_report_failure(const kjit_specialization *specialization,
                              const kj_failure_record *record, kj_diagnostics *diagnostics);
/* The same of a call of a func by the host. */
kjit_status kj_report_function_failure(const kjit_kernel *kernel, const char *failures,
                                       const kj_failure_record *record,
                                       kj_diagnostics *diagnostics);
/* The record of a specialization on a GPU. */
kjit_status kj_open_failures(kjit_specialization *specialization, kj_diagnostics *diagnostics);
void kj_close_failures(kjit_specialization *specialization);

/* The facts of a call with a grid and a block. */
uint32_t kj_find_facts_of(const kj_call *call, bool has_small_offsets);
enum { KJ_KEY_FIXED_WORDS = 4 };
/* Fills call->key from bound, device, facts and, where it counts, block. */
void kj_make_key(kj_call *call);
/* At most so many words. */
size_t kj_key_capacity(const kjit_kernel *kernel);

/* The ready specialization of the call's key, or NULL, held. Lock-free. */
kjit_specialization *kj_look_up(const kjit_kernel *kernel, const uint64_t *key, uint32_t count,
                                uint64_t hash);
/* A known key beside that of a call; both have so many words. */
typedef enum kj_key_match {
  KJ_KEY_OTHER,
  KJ_KEY_SAME_TYPES, /* differs in facts only */
  KJ_KEY_SERVES      /* and the call has all facts of the known one */
} kj_key_match;
kj_key_match kj_match_key(const kjit_kernel *kernel, const uint64_t *known, const uint64_t *key,
                          uint32_t count);
/* Says which of two keys for the same types has more facts. */
uint32_t kj_count_facts(const uint64_t *key, uint32_t count);
uint64_t kj_hash_key(const uint64_t *key, uint32_t count);
/* The ready specialization for the same types whose facts the call has too, held; NULL: none.
 * variants: how many there are for the same types. Lock-free. */
kjit_specialization *kj_look_up_general(const kj_call *call, uint32_t *variants);
/* The call with no facts at all; the key follows. */
void kj_drop_facts(kj_call *call);
/* Queues the compilation unless it is under way or has failed: nobody waits for it. */
void kj_improve_later(kj_call *call, uint64_t hash);
/* Compiles and loads, or waits for whoever does; not held. Errors: those of the compiler. */
kjit_status kj_specialize(kj_call *call, uint64_t hash, kj_diagnostics *diagnostics,
                          kjit_specialization **specialization);
/* Queues the compilation where there is none. NOT_READY: it is under way. Errors: those of the
 * compiler, once. */
kjit_status kj_specialize_later(kj_call *call, uint64_t hash, kj_diagnostics *diagnostics,
                                kjit_specialization **specialization);
/* The compilation of an entry that is PENDING, by whoever made it so; or its end without one. */
kjit_status kj_compile_entry(kj_call *call, kjit_specialization *entry,
                             kj_diagnostics *diagnostics);
void kj_abandon_entry(kjit_specialization *entry);
void kj_free_specializations(kjit_kernel *kernel);

/* One compilation and its load into the specialization. */
kjit_status kj_compile_call(kj_call *call, kjit_specialization *specialization,
                            kj_diagnostics *diagnostics);
/* What the compiler is asked for, but for its stage the same however a specialization's code is
 * wanted. */
kj_compile_request kj_make_request(const kjit_kernel *kernel, const kjit_device *device,
                                   const kj_signature *signature, kjit_stage stage);
/* Whether code for a GPU, or for the CPU, has the stage; and the stages that only one of them has,
 * for messages. */
bool kj_has_stage(kjit_stage stage, bool is_gpu);
const char *kj_own_stages(bool is_gpu);
/* Of a specialization that nobody holds. */
void kj_unload_code(kjit_specialization *specialization);
void kj_free_texts(kjit_specialization *specialization);
/* The newest PTX that the device's driver takes where that may be less than what the code needs,
 * else 0: the compiler chooses. */
uint32_t kj_limit_ptx(const kjit_device *device);

/* Of a sealed kernel: finds the signature that the arguments match best and makes bound what it
 * has. Errors: ARGUMENT. */
kjit_status kj_match_signature(kj_call *call, const kjit_arg *arguments,
                               kj_diagnostics *diagnostics);
/* ahead.c: a signature on a device; not held. Its diagnostics are the caller's. */
kjit_status kj_specialize_signature(kjit_kernel *kernel, kjit_device *device, const char *signature,
                                    kj_diagnostics *diagnostics,
                                    kjit_specialization **specialization);
/* Loads code again that was unloaded; held then. */
kjit_status kj_revive(kjit_specialization *specialization, kj_diagnostics *diagnostics);
/* A signature as text: arguments, one for each parameter; bound has the compile-time ones. Errors:
 * SYNTAX, TYPE, NAME, ARGUMENT. */
kjit_status kj_read_signature(kjit_kernel *kernel, const char *text, kj_argument *arguments,
                              kj_bound *bound, kj_diagnostics *diagnostics);
/* Facts as text into a signature: flags of arguments, relations[count * count], block. Errors:
 * ARGUMENT. */
kjit_status kj_read_facts(const kjit_kernel *kernel, const char *facts, kj_argument *arguments,
                          uint8_t *relations, kj_signature *signature, kj_diagnostics *diagnostics);

/* The layer's part of a runtime. */
kjit_status kj_open_code(kj_runtime *runtime, kj_diagnostics *diagnostics);

/* ---- externs.c: what the host gave for extern funcs ---- */

/* Functions that native code of the module may call; free with kj_free_outside. */
kjit_status kj_list_outside(const kjit_module *module, kj_diagnostics *diagnostics,
                            kj_outside *outside);
void kj_free_outside(kj_outside *outside);
/* PTX bound to funcs whose names the kernel's PTX has, each once, into inputs[module->decls.count];
 * how many. */
size_t kj_list_extern_ptx(const kjit_module *module, const char *ptx, kj_link_input *inputs);
bool kj_has_extern_ptx(const kjit_module *module);
/* Lines of the disk cache's key. */
void kj_add_extern_key(const kjit_module *module, bool is_cuda, kj_buffer *text);

/* ---- the launch itself ---- */

/* Divides call_bytes of memory: bound arguments, then the key, then the parameter block. */
size_t kj_divide_memory(kj_call *call, char *memory);
/* What kjit_launch_config.flags may have. */
enum { KJ_LAUNCH_FLAGS = KJIT_LAUNCH_COOPERATIVE | KJIT_LAUNCH_NO_WAIT | KJIT_LAUNCH_PROGRAMMATIC };
/* Binds, places and configures the call and finds its code, or compiles it; held. NOT_READY reports
 * nothing. */
kjit_status kj_prepare_call(kj_call *call, const kjit_arg *arguments, size_t count,
                            kj_diagnostics *diagnostics, kjit_specialization **specialization);
typedef struct kj_staging kj_staging;
/* Copies host arrays to the GPU and points bound->target there; NULL staging: none. The device's
 * context is current. */
kjit_status kj_stage_in(kj_call *call, void *stream, kj_diagnostics *diagnostics,
                        kj_staging **staging);
/* Waits, copies back what was written. */
kjit_status kj_stage_out(kj_call *call, void *stream, kj_staging *staging,
                         kj_diagnostics *diagnostics);
void kj_free_staging(kj_call *call, kj_staging *staging);

/* The func behind a handle. */
static inline const ki_decl *kj_function_of(const kjit_function *function)
{
  return (const ki_decl *)function;
}

#endif
