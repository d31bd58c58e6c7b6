/* Specializations: a kernel compiled for one key; how they are found, made, held and unloaded. */
#ifndef KJ_CODE_SPECIALIZATION_H
#define KJ_CODE_SPECIALIZATION_H

#include "code/kernel.h"
#include "report/report.h"

typedef enum kj_state { KJ_PENDING, KJ_READY, KJ_FAILED } kj_state;

struct kjit_specialization {
  /* kj_state; what a launch looks at, and what follows mutex, is written before READY is and does
   * not change while it is */
  _Atomic int state;
  uint32_t generation;
  /* launch/learned.h; freed as one piece */
  _Atomic(struct kj_learned *) learned;
  kjit_device *device;
  kj_device_code cuda;
  kjit_kernel *kernel;
  uint64_t hash;
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  uint64_t attempt;       /* counts compilations of this key */
  kj_diagnostics failure; /* of the last failed attempt */
  bool is_unreported;     /* it was made in the background: nobody has been told of a failure */
  kj_code code;
  kj_failure_slot *failure_slot;  /* where launches are queued, with code.failures */
  uint64_t failure_address;       /* of its record for the kernel */
  uint32_t print_source;          /* where launches are queued, with code.prints; 0: none */
  kj_loaded *loaded;              /* an object by the compiler's loader */
  struct kj_unloading *unloading; /* of code on a device where launches are queued */
  bool is_from_disk, is_imported;
  char *signature, *facts;
  uint64_t load_time_ns;
  kj_cpu_cost *cost; /* where launches are not queued */
  /* what the occupancy calculator said last, and for which launch: see launch/fit.c; 0: nothing */
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
 * Code may be unloaded while its specialization lives on. Whoever uses code, cuda or learned
 * holds the specialization meanwhile; a hold is one addition to a line that the thread has for
 * itself, and never waits. */

/* own: kj_slot() */
static inline void kj_release_of(kjit_specialization *specialization, uint32_t own,
                                 bool is_launched)
{
  kj_hold_slot *slot = &specialization->holds[own];
  KJ_ASSERT(own < KJ_SLOTS);
  KJ_ASSERT(atomic_load(&slot->begun) != atomic_load(&slot->launched) + atomic_load(&slot->passed));
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

/* A launch that a device has captured: the graph pins the code. The caller holds it. */
kjit_status kj_keep_code(kjit_stream *stream, kjit_specialization *specialization,
                         kj_diagnostics *diagnostics);
/* Code of a specialization that nobody holds goes. Where launches of it may still be queued it is
 * listed, and unloaded after the next wait for the device that succeeds: see kj_unload_listed. */
void kj_unload_code(kjit_specialization *specialization);
/* Before code is loaded: what its end takes is there then, so that unloading cannot fail. */
kjit_status kj_expect_unloading(kjit_specialization *specialization, kj_diagnostics *diagnostics);
/* Waits for each device for which code is listed and of which no stream is captured. Under no
 * lock. */
void kj_unload_listed(kj_runtime *runtime);
bool kj_has_listed(kjit_device *device);
/* The layer's part of a device. */
kjit_status kj_open_unloading(kjit_device *device, kj_diagnostics *diagnostics);

uint64_t kj_count_launches(const kjit_specialization *specialization);
/* The specialization has code now: unloads what was not used for long until the rest keeps to the
 * bound of the configuration. */
void kj_note_loaded(kjit_specialization *specialization);
/* Before it is freed. */
void kj_forget_loaded(kjit_specialization *specialization);

/* ---- cache.c: finding and making them ---- */

/* The ready specialization of the call's key, or NULL, held. Lock-free. */
kjit_specialization *kj_look_up(const kjit_kernel *kernel, const uint64_t *key, uint32_t count,
                                uint64_t hash);
/* The ready specialization for the same types whose facts the call has too, held; NULL: none.
 * variants: how many there are for the same types; none counts where the call's own is one of them,
 * being compiled. Lock-free. */
/* Adds all messages of one list to another. */
void kj_copy_diagnostics(const kj_diagnostics *from, kj_diagnostics *to);
kjit_specialization *kj_look_up_general(const kj_call *call, uint32_t *variants);
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

/* What an argument is to the compiler. False: out of memory. */
bool kj_describe_argument(const kjit_kernel *kernel, const kj_bound *bound, kj_argument *argument);
/* One compilation and its load into the specialization. */
kjit_status kj_compile_call(kj_call *call, kjit_specialization *specialization,
                            kj_diagnostics *diagnostics);
/* The request for the code of a specialization. The key of the disk cache is made from it too. */
kj_compile_request kj_make_request(const kjit_kernel *kernel, const kjit_device *device,
                                   const kj_signature *signature, kjit_stage stage);
/* The stage that a device runs: PTX or OBJECT. */
kjit_stage kj_code_stage(const kjit_device *device);
/* What the compiler makes of a kernel for a device, but for its stage the same however a
 * specialization's code is wanted. Finds the compiler, and links what is linked where it is
 * compiled. */
kjit_status kj_compile_kernel(const kjit_kernel *kernel, const kjit_device *device,
                              const kj_signature *signature, kjit_stage stage,
                              kj_diagnostics *diagnostics, kj_code *code);
/* Fills in the signature of a call whose key was made. Its arguments and relations are malloc'd. */
kjit_status kj_describe_call(const kj_call *call, kj_diagnostics *diagnostics,
                             kj_signature *signature);
/* Compiles for a signature once more, told to nobody: to compare with what the disk cache gives, or
 * for another process. */
kjit_status kj_compile_again(const kj_call *call, const kj_signature *signature,
                             kj_diagnostics *diagnostics, kj_code *code);
void kj_free_texts(kjit_specialization *specialization);

/* ahead.c: loads code again that was unloaded; held then. */
kjit_status kj_revive(kjit_specialization *specialization, kj_diagnostics *diagnostics);
/* A signature as text: arguments, one for each parameter; bound has the compile-time ones. Errors:
 * SYNTAX, TYPE, NAME, ARGUMENT. */
kjit_status kj_read_signature(const kjit_kernel *kernel, const char *text, kj_argument *arguments,
                              kj_bound *bound, kj_diagnostics *diagnostics);
/* The same of types: text names structs only, of which several may have one name. */
kjit_status kj_read_types(const kjit_kernel *kernel, const kjit_type *types, size_t count,
                          kj_argument *arguments, kj_bound *bound, kj_diagnostics *diagnostics);
/* A failed thread of a kernel, or of a func that the host called: KERNEL, with the place and the
 * message. */
kjit_status kj_report_failure(const kjit_kernel *kernel, const char *failures, bool is_func,
                              const kj_failure_record *record, kj_diagnostics *diagnostics);

/* ---- compiler.c: work beside the host's threads ----
 *
 * Compilations that a launch does not wait for, and signatures given ahead of time. The threads of
 * a context start as there is work, at most kjit_config.compile_threads of them. */

typedef struct kj_job {
  struct kj_job *next;
  /* Does the work and frees the job. is_given_up: the context ends, nothing is to be done but
   * telling whoever waits. */
  void (*run)(struct kj_job *job, bool is_given_up);
} kj_job;

/* False: out of memory, no thread to be had, or the context ends; the job is still the caller's. */
bool kj_queue_job(kj_runtime *runtime, kj_job *job);
/* This thread is one of those that do the jobs: what it queued and then waited for, nobody might
 * ever do. */
bool kj_is_in_background(const kj_runtime *runtime);
/* Who waits for an entry does its job on the spot where that is still queued: nobody waits for what
 * stands before it, nor for a thread that is the waiting one. */
void kj_hurry(kj_runtime *runtime, const kjit_specialization *entry);
/* Copies what a compilation needs of the call and queues it; the entry is PENDING. False as above.
 */
bool kj_compile_later(const kj_call *call, kjit_specialization *entry);
/* Whether kjit_stop_background was called, after which nothing is queued. */
bool kj_is_background_stopped(kj_runtime *runtime);

/* compiler.c: loads the compiler where that has not been done. */
kjit_status kj_get_compiler(kj_runtime *runtime, kj_diagnostics *diagnostics);
/* Another one in its place; before its first use. */
kjit_status kj_use_compiler(kjit_context *context, const kj_compiler_interface *interface,
                            kj_diagnostics *diagnostics);

/* The layer's part of a runtime. */
kjit_status kj_open_code(kj_runtime *runtime, kj_diagnostics *diagnostics);

#endif
