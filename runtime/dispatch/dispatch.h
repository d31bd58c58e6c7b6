/* From a call to code: kernels and their specializations, bound arguments, the key, the launch configuration. */
#ifndef KJ_DISPATCH_H
#define KJ_DISPATCH_H

#include "cpu/object.h"
#include "dispatch/program.h"
#include "runtime.h"

/* ---- kernels ---- */

/* What an annotation says that the dispatcher can check without typing the kernel. */
typedef enum kj_annotation_kind {
  KJ_ANNOTATION_NONE,
  KJ_ANNOTATION_SCALAR, /* .type */
  KJ_ANNOTATION_ARRAY,  /* .type the element, KJIT_ANY: not known or of .same_as; .rank, .layout */
  KJ_ANNOTATION_SAME,   /* dtype(p): the scalar type of parameter .same_as */
  KJ_ANNOTATION_OTHER   /* left to inference */
} kj_annotation_kind;

typedef struct kj_annotation {
  kj_annotation_kind kind;
  kjit_type type;
  int same_as; /* a parameter; -1: none */
  uint8_t rank, layout, read_only;
} kj_annotation;

typedef struct kj_parameter_row {
  const kj_decl *decl;
  kj_annotation annotation;
  bool is_const, is_func, is_read, is_written;
  bool is_general; /* @general: no facts */
} kj_parameter_row;

typedef struct kj_table kj_table;
typedef struct kj_plan kj_plan;

/* What threads write often lies in slots of its own cache lines; a thread always takes the same one. */
enum { KJ_SLOTS = 16, KJ_SLOT_BYTES = 128 };
extern _Thread_local uint32_t kj_own_slot __attribute__((tls_model("initial-exec"), visibility("hidden"))); /* from 1; 0: none yet */
uint32_t kj_take_slot(void);
static inline uint32_t kj_slot(void) { return kj_own_slot ? kj_own_slot - 1 : kj_take_slot(); }

typedef struct kj_recent_slot {
  _Atomic(kjit_specialization *) specialization;
  char padding[KJ_SLOT_BYTES - sizeof(void *)];
} kj_recent_slot;

typedef struct kj_count_slot {
  _Atomic uint64_t count;
  char padding[KJ_SLOT_BYTES - sizeof(uint64_t)];
} kj_count_slot;

struct kjit_kernel {
  kjit_module *module;
  kjit_context *context;
  const kj_function *function;
  kj_parameter_row *parameters;
  uint32_t parameter_count;
  kj_binding *bindings; /* function->local_count, or params + locals */
  uint32_t binding_count;
  /* positions that a launch is made from */
  const kj_attribute *block, *grid, *launch_bounds;
  bool block_is_static;   /* @block depends on const parameters only: part of what the compiler may know */
  const kj_stmt **ranges; /* the grid_ranges of the kernel itself */
  uint32_t range_count;
  bool has_callee_range; /* a func may contain more */
  bool is_range_only;    /* nothing but lets and grid_ranges: no iterations, nothing to do */
  size_t call_bytes;     /* of a call's memory, see kj_call */
  /* the same as programs */
  kj_programs *range_programs; /* of each range */
  kj_programs block_program, grid_program, bounds_program;
  bool is_quick;                   /* the programs are all that a configuration needs */
  kj_recent_slot recent[KJ_SLOTS]; /* the last specialization with a plan that a thread of the slot launched */
  /* specializations */
  _Atomic(kj_table *) table;
  pthread_mutex_t mutex;
  kjit_specialization **order; /* compiled ones in the order of their compilation */
  size_t order_count, order_capacity;
};

void kj_release_kernels(kjit_module *module);

/* ---- a call ---- */

/* One bound argument. Small and without a need to be cleared: filling these is most of what a hit does. */
struct kj_bound {
  uint8_t kind; /* kj_argument_kind */
  uint8_t rank, layout, facts, access;
  bool on_host, is_empty;
  bool offsets_fit; /* every offset, extent and stride is in the range of i32 */
  kjit_type type;   /* of scalars and compile-time values; arrays: the element */
  union {
    struct {            /* scalars and compile-time values */
      kj_value value;   /* type KJIT_ANY: none that the host can compute with */
      uint64_t bits[2]; /* a run-time scalar as it goes to the kernel */
    };
    struct {                          /* arrays */
      const int64_t *shape, *strides; /* strides only of strided layouts */
      uint64_t address, low, high;    /* of element 0; the bytes [low, high) hold all elements */
      uint64_t count;
      uint64_t target; /* address of element 0 for the kernel: address, or the copy's on the GPU */
    };
    const kj_decl *function;
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
  char *parameters; /* memory for the parameter block */
  bool has_host_arrays, offsets32, grid32, is_miss;
  /* configuration */
  uint32_t grid[3], block[3];
  bool is_chosen;    /* the grid may still be made smaller: the kernel is all grid_ranges and no grid was given */
  bool has_elements; /* elements is known */
  bool has_nothing;  /* no iterations at all */
  uint64_t elements; /* of the largest grid_range */
  uint64_t dynamic_shared_bytes;
} kj_call;

/* Reads the arguments into call->bound. Errors: ARGUMENT, located at the parameter. */
kjit_status kj_bind_arguments(kj_call *call, const kjit_arg *arguments, size_t count, kj_diagnostics *diagnostics);
/* Fills bound from a tensor: layout, range, facts. */
kjit_status kj_bind_tensor(kj_call *call, uint32_t index, const kjit_tensor *tensor, kj_diagnostics *diagnostics);
/* The device of the launch, from the configuration, else from the arrays; then whether every array can be used there. */
kjit_status kj_choose_device(kj_call *call, const kjit_arg *arguments, kj_diagnostics *diagnostics);
/* "f32[:, :] C", "f32", "16", "a func" for messages and signatures. */
void kj_print_bound(const kj_call *call, const kj_bound *bound, kj_buffer *buffer);
int64_t kj_stride_of(const kj_bound *array, uint32_t dimension);
kj_relation kj_relate(const kj_bound *a, const kj_bound *b);

/* Grid and block of the launch. Errors: LAUNCH, ARGUMENT. */
kjit_status kj_configure(kj_call *call, kj_diagnostics *diagnostics);
/* Limits that only the compiled code knows; makes a chosen grid smaller where a thread takes several elements. */
kjit_status kj_fit_grid(kj_call *call, const kjit_specialization *specialization, kj_diagnostics *diagnostics);
/* The same from the kernel's programs. False: not to be had so, or to be refused; kj_configure knows which. */
bool kj_configure_quickly(kj_call *call);
kj_scope kj_call_scope(const kj_call *call);
/* Values of @block or another attribute, missing ones 1. */
kjit_status kj_evaluate_attribute(const kjit_kernel *kernel, kj_scope *scope, const kj_attribute *attribute, kj_diagnostics *diagnostics, uint32_t values[3]);

/* ---- specializations ---- */

typedef struct kj_failure_slot kj_failure_slot;
typedef enum kj_state { KJ_PENDING, KJ_READY, KJ_FAILED } kj_state;

struct kjit_specialization {
  kjit_kernel *kernel;
  uint64_t hash;
  _Atomic int state; /* kj_state; what follows mutex is written before READY is and never changes afterwards */
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
  bool is_from_disk;
  char *signature, *facts;
  uint64_t load_time_ns;
  kj_count_slot launches[KJ_SLOTS];
  _Atomic bool has_tried_plan;
  _Atomic(kj_plan *) plan; /* see plan.h */
  uint32_t key_count;
  uint64_t key[];
};

/* ---- failure.c ---- */

/* KERNEL, with the place and the message. */
kjit_status kj_report_failure(const kjit_specialization *specialization, const kj_failure_record *record, kj_diagnostics *diagnostics);
/* The record of a specialization on a GPU. */
kjit_status kj_open_failures(kjit_specialization *specialization, kj_diagnostics *diagnostics);
void kj_close_failures(kjit_specialization *specialization);

enum { KJ_KEY_FIXED_WORDS = 4 };
/* Fills call->key from bound, device, facts and, where it counts, block. */
void kj_make_key(kj_call *call);
/* At most so many words. */
size_t kj_key_capacity(const kjit_kernel *kernel);

/* The ready specialization of the call's key, or NULL. Lock-free. */
kjit_specialization *kj_look_up(const kjit_kernel *kernel, const uint64_t *key, uint32_t count, uint64_t hash);
uint64_t kj_hash_key(const uint64_t *key, uint32_t count);
/* Compiles and loads, or waits for whoever does. Errors: those of the compiler. */
kjit_status kj_specialize(kj_call *call, uint64_t hash, kj_diagnostics *diagnostics, kjit_specialization **specialization);
/* Queues the compilation where there is none. NOT_READY: it is under way. Errors: those of the compiler, once. */
kjit_status kj_specialize_later(kj_call *call, uint64_t hash, kj_diagnostics *diagnostics, kjit_specialization **specialization);
/* The compilation of an entry that is PENDING, by whoever made it so; or its end without one. */
kjit_status kj_compile_entry(kj_call *call, kjit_specialization *entry, kj_diagnostics *diagnostics);
void kj_abandon_entry(kjit_specialization *entry);
void kj_free_specializations(kjit_kernel *kernel);

/* One compilation and its load into the specialization. */
kjit_status kj_compile_call(kj_call *call, kjit_specialization *specialization, kj_diagnostics *diagnostics);
void kj_unload_specialization(kjit_specialization *specialization);
/* The newest PTX that the device's driver takes where that may be less than what the code needs, else 0: the compiler chooses. */
uint32_t kj_limit_ptx(const kjit_device *device);

/* A signature as text: arguments, one for each parameter; bound has the compile-time ones. Errors: SYNTAX, TYPE, NAME, ARGUMENT. */
kjit_status kj_read_signature(kjit_kernel *kernel, const char *text, kj_argument *arguments, kj_bound *bound, kj_diagnostics *diagnostics);
/* Facts as text into a signature: flags of arguments, relations[count * count], block. Errors: ARGUMENT. */
kjit_status kj_read_facts(const kjit_kernel *kernel, const char *facts, kj_argument *arguments, uint8_t *relations, kj_signature *signature,
                          kj_diagnostics *diagnostics);

/* ---- the launch itself ---- */

/* Divides call_bytes of memory: bound arguments, then the key, then the parameter block. */
size_t kj_divide_memory(kj_call *call, char *memory);
/* Binds, places and configures the call and finds its code, or compiles it. NOT_READY reports nothing. */
kjit_status kj_prepare_call(kj_call *call, const kjit_arg *arguments, size_t count, kj_diagnostics *diagnostics, kjit_specialization **specialization);
kjit_status kj_run_call(kj_call *call, kjit_specialization *specialization, kj_diagnostics *diagnostics);
void kj_count_launch(kjit_context *context, kjit_specialization *specialization);
/* Writes the kernel's parameters by the plan of its code. */
void kj_marshal(const kj_call *call, const kj_code *code, char *block);
void kj_marshal_parameter(const kj_call *call, const kj_parameter *parameter, char *block);
/* The whole parameter block of a launch on a GPU. */
void kj_fill_parameters(const kj_call *call, const kjit_specialization *specialization);

typedef struct kj_staging kj_staging;
/* Copies host arrays to the GPU and points bound->target there; NULL staging: none. The device's context is current. */
kjit_status kj_stage_in(kj_call *call, void *stream, kj_diagnostics *diagnostics, kj_staging **staging);
/* Waits, copies back what was written. */
kjit_status kj_stage_out(kj_call *call, void *stream, kj_staging *staging, kj_diagnostics *diagnostics);
void kj_free_staging(kj_call *call, kj_staging *staging);

/* The func behind a handle. */
static inline const kj_decl *kj_function_of(const kjit_function *function) { return (const kj_decl *)function; }

#endif
