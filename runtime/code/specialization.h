/* Specializations. A specialization is a kernel's code for one key. This header declares how a
 * launch finds a specialization, how it is compiled and loaded, how a caller holds it while using
 * its code, and how its code is unloaded. */
#ifndef KJ_CODE_SPECIALIZATION_H
#define KJ_CODE_SPECIALIZATION_H

#include "code/kernel.h"
#include "report/report.h"

typedef enum kj_state { KJ_PENDING, KJ_READY, KJ_FAILED } kj_state;

struct kjit_specialization {
  /* A kj_state. All fields that launches read, and all fields after mutex, are written before the
   * state becomes READY. They do not change while the state is READY. */
  _Atomic int state;
  uint32_t generation;
  /* tables of the fast path, see launch/fast_path.h; freed as one block */
  _Atomic(struct kj_launch_table *) table;
  kjit_device *device;
  kj_device_code device_code;
  kjit_kernel *kernel;
  uint64_t hash;
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  uint64_t attempt;       /* number of compilations of this key */
  kj_diagnostics failure; /* diagnostics of the last failed attempt */
  bool is_unreported;     /* the background compilation has failed, and no caller has received its
                             errors yet */
  kj_code code;
  kj_failure_slot *failure_slot; /* for devices with queued launches, if code.can_fail is set */
  uint64_t failure_address;      /* device address of the failure record */
  uint32_t print_source; /* for devices with queued launches, if code.prints is set; 0 means none */
  kj_loaded *loaded;     /* handle of an object that the compiler's loader has loaded */
  struct kj_unloading *unloading; /* only for devices that queue their launches */
  bool is_from_disk, is_imported;
  char *signature, *facts;
  uint64_t load_time_ns;
  kj_cpu_cost *cost; /* used if the device runs a launch before the call returns */
  /* Last result of the occupancy calculator, and the launch for which it was computed (see
   * launch/fit.c). 0 means that there is no result. */
  _Atomic uint64_t chosen_threads, resident_blocks;
  /* The signature for which the code was compiled. This signature and the code itself (code.data
   * holds PTX, a cubin or an object) are kept after loading, for export and for callers that
   * request the code in another form. */
  kj_signature compiled_for; /* owns its arguments and relations */
  bool is_listed;            /* the specialization is in kernel->order */
  /* kjit_specialize has returned the specialization; protected by kernel->mutex */
  bool is_explicit;
  /* A background compilation has failed, so kjit by itself starts no further background
   * compilation. Protected by mutex. */
  bool is_hopeless;
  kj_plain plain_kind; /* for plain code: the kind that the compilation allowed; otherwise NONE */
  /* The specialization with plain code, which launches run while this specialization is being
   * compiled, or NULL. Protected by mutex. */
  kjit_specialization *plain;
  kjit_specialization *next_loaded; /* runtime->loaded */
  size_t compiled_bytes;            /* size of code.data */
  /* Protected by runtime->loaded_mutex. swept is the number of launches at the last sweep of the
   * eviction. */
  uint64_t code_bytes, swept;
  /* Number of pins. A pin is a graph or another object that uses the code without a hold. A caller
   * must hold the specialization to increment the number. */
  _Atomic uint32_t pins;
  kj_hold_slot holds[KJ_SLOTS];
  _Atomic bool has_tried_table;
  uint32_t key_count;
  uint64_t key[];
};

/* ---- holding: evict.c ----
 *
 * Code can be unloaded while its specialization lives on. A caller that uses code, device_code or
 * table must hold the specialization during this time. A hold takes one addition in a cache line
 * that only threads with the same slot number use, and no thread waits for another thread. */

/* For assertions: returns whether a thread with this slot holds the specialization. Other threads
 * with the same slot can begin and end holds while this function reads the counts. The function
 * reads the count of ended holds first, so the result is always true if this thread holds the
 * specialization. */
static inline bool kj_is_slot_in_use(const kj_hold_slot *slot)
{
  uint64_t ended = atomic_load(&slot->launched) + atomic_load(&slot->passed);
  return atomic_load(&slot->begun) != ended;
}

/* Ends a hold of this thread. `own` is the result of kj_slot(). */
static inline void kj_release_of(kjit_specialization *specialization, uint32_t own,
                                 bool is_launched)
{
  kj_hold_slot *slot = &specialization->holds[own];
  KJ_ASSERT(own < KJ_SLOTS);
  KJ_ASSERT(kj_is_slot_in_use(slot));
  kj_count_up(is_launched ? &slot->launched : &slot->passed, own);
}

/* Holds the specialization and returns true, or returns false if it has no code. A holder first
 * publishes its hold and then reads the state. Eviction first changes the state, then makes every
 * thread execute a memory barrier, and then reads the holds. So either the holder sees the changed
 * state, or the eviction sees the hold. */
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

/* For assertions: returns whether this thread, or another thread with the same slot number, holds
 * the specialization. */
static inline bool kj_is_held_here(const kjit_specialization *specialization)
{
  return kj_is_slot_in_use(&specialization->holds[kj_slot()]);
}

/* Pins the code for the graph that captures a launch on this stream. The caller holds the
 * specialization. */
kjit_status kj_keep_code(kjit_stream *stream, kjit_specialization *specialization,
                         kj_diagnostics *diagnostics);
/* Unloads the code of a specialization without holds. If launches of this code may still be queued,
 * adds the code to a list, from which it is unloaded after the next successful wait for the device
 * (see kj_unload_listed). */
void kj_unload_code(kjit_specialization *specialization);
/* Allocates the memory that unloading needs. Must be called before code is loaded, so that
 * unloading cannot fail. */
kjit_status kj_expect_unloading(kjit_specialization *specialization, kj_diagnostics *diagnostics);
/* Waits for each device that has listed code and no stream in capture. The caller holds no lock. */
void kj_unload_listed(kj_runtime *runtime);
bool kj_has_listed(kjit_device *device);
/* Creates the device's list of code to unload. */
kjit_status kj_open_unloading(kjit_device *device, kj_diagnostics *diagnostics);

uint64_t kj_count_launches(const kjit_specialization *specialization);
/* Records that the specialization now has code. Unloads the least recently used code until the rest
 * is within the limit of the configuration. */
void kj_note_loaded(kjit_specialization *specialization);
/* Removes the specialization from the list of loaded code. Called before it is freed. */
void kj_forget_loaded(kjit_specialization *specialization);

/* ---- cache.c: finding ---- */

/* Returns the READY specialization for the call's key and holds it, or returns NULL. Takes no
 * lock. */
kjit_specialization *kj_look_up(const kjit_kernel *kernel, const uint64_t *key, uint32_t count,
                                uint64_t hash);
/* Finds a READY specialization for the same types whose facts are all true for this call, and holds
 * it. Returns NULL if there is none. Returns plain code only if there is no other code. *variants
 * receives the number of specializations for the same types, not counting plain code. It receives 0
 * while the variant for the call itself is being compiled. Takes no lock. */
kjit_specialization *kj_look_up_general(const kj_call *call, uint32_t *variants);
/* Returns the entry for the call's key and creates it if necessary. Returns NULL if memory is
 * exhausted. */
kjit_specialization *kj_get_own_entry(const kj_call *call, uint64_t hash);
/* Returns the entry for the plain code of a call, like kj_get_own_entry. best is the call's own
 * entry. */
kjit_specialization *kj_get_plain_entry(const kj_call *call, const kjit_specialization *best);

/* ---- attempt.c: one compilation for all threads that wait for the same key ---- */

/* Appends all diagnostics of one list to another list. */
void kj_copy_diagnostics(const kj_diagnostics *from, kj_diagnostics *to);
/* Queues the compilation of a better variant, for which no caller waits. Does nothing if this
 * compilation is in progress or has failed. */
void kj_upgrade_later(kj_call *call, uint64_t hash);
/* Compiles and loads the specialization, or waits for the thread that is doing so. The result is
 * not held. If call->plain allows it, the result may be a specialization with plain code; the
 * specialization for the call itself is then compiled in the background. Returns the compiler's
 * errors. */
kjit_status kj_specialize(kj_call *call, uint64_t hash, kj_diagnostics *diagnostics,
                          kjit_specialization **specialization);
/* Queues the compilation unless it is queued or running already. Returns NOT_READY while the
 * compilation is in progress. If the compilation has failed, returns the compiler's errors once. */
kjit_status kj_specialize_later(kj_call *call, uint64_t hash, kj_diagnostics *diagnostics,
                                kjit_specialization **specialization);
/* Compiles a PENDING entry, also if call->plain is set. The caller is the thread that made it
 * PENDING. kj_abandon_entry ends a PENDING entry without a compilation. */
kjit_status kj_compile_entry(kj_call *call, kjit_specialization *entry,
                             kj_diagnostics *diagnostics);
void kj_abandon_entry(kjit_specialization *entry);

/* Fills in the compiler's description of an argument. Returns false if memory is exhausted. */
bool kj_describe_argument(const kjit_kernel *kernel, const kj_bound *bound, kj_argument *argument);
/* Returns whether the specialization is for plain code, which a bit in its key says. */
bool kj_is_for_plain(const kjit_specialization *specialization);
/* Returns whether loaded plain code can run the call: its kind is one of `allowed`, and its number
 * of registers allows the call's block. */
bool kj_suits_plain(const kj_call *call, kj_plain allowed, const kjit_specialization *plain);
/* Compiles the call's kernel and loads the code into the specialization. Plain code is not
 * loaded. */
kjit_status kj_compile_call(kj_call *call, kjit_specialization *specialization,
                            kj_diagnostics *diagnostics);
/* Returns the compile request for a specialization. The key of the disk cache is derived from it,
 * too. */
kj_compile_request kj_make_request(const kjit_kernel *kernel, const kjit_device *device,
                                   const kj_signature *signature, kjit_stage stage);
/* Returns the stage of the code that the device loads: PTX or OBJECT. */
kjit_stage kj_code_stage(const kjit_device *device);
/* Compiles a kernel for a device and a signature, and stops after the given stage. The code is the
 * same for all callers. Loads the compiler if necessary, and links code that has to be linked at
 * compile time. */
kjit_status kj_compile_kernel(const kjit_kernel *kernel, const kjit_device *device,
                              const kj_signature *signature, kjit_stage stage,
                              kj_diagnostics *diagnostics, kj_code *code);
/* Fills in the signature of a call that has a key. The arguments and relations are allocated with
 * malloc. */
kjit_status kj_describe_call(const kj_call *call, kj_diagnostics *diagnostics,
                             kj_signature *signature);
/* Compiles once more for a signature, without messages or statistics: for a comparison with the
 * disk cache, or for another process. */
kjit_status kj_compile_again(const kj_call *call, const kj_signature *signature,
                             kj_diagnostics *diagnostics, kj_code *code);
/* Loads plain code into a specialization for plain code. The function takes over the code, also on
 * failure. */
kjit_status kj_load_plain(kj_call *call, kjit_specialization *specialization, kj_code *code,
                          kj_diagnostics *diagnostics);
void kj_free_texts(kjit_specialization *specialization);

/* Loads evicted code again (ahead.c). On success the caller holds the specialization. */
kjit_status kj_revive(kjit_specialization *specialization, kj_diagnostics *diagnostics);
/* Reads a signature in text form. `arguments` receives an element for each parameter, and `bound`
 * receives the values that are known at compile time. Errors: SYNTAX, TYPE, NAME, ARGUMENT. */
kjit_status kj_read_signature(const kjit_kernel *kernel, const char *text, kj_argument *arguments,
                              kj_bound *bound, kj_diagnostics *diagnostics);
/* Like kj_read_signature, for a list of types instead of a text. In a text, a struct has only a
 * name, which several structs can share. */
kjit_status kj_read_types(const kjit_kernel *kernel, const kjit_type *types, size_t count,
                          kj_argument *arguments, kj_bound *bound, kj_diagnostics *diagnostics);
/* Reports that a thread has failed in a kernel, or in a func that the application called. The
 * status is KERNEL, with location and message. */
kjit_status kj_report_failure(const kjit_kernel *kernel, const kj_code *code, bool is_func,
                              const kj_failure_record *record, kj_diagnostics *diagnostics);

/* ---- compiler.c: compilation in background threads ----
 *
 * A job for a background thread: a compilation for which no launch waits, or for a signature that
 * the application has given ahead of time. A context starts these threads when there is work, at
 * most kjit_config.compile_threads of them. */

typedef struct kj_job {
  struct kj_job *next;
  /* Performs the job and frees it. If is_given_up is true, the context is being destroyed; the
   * function then only wakes the waiting threads and frees the job. */
  void (*run)(struct kj_job *job, bool is_given_up);
} kj_job;

/* Queues a job for a background thread. Returns false if memory is exhausted, no thread can be
 * created, or the context is being destroyed. The caller then still owns the job. */
bool kj_queue_job(kj_runtime *runtime, kj_job *job);
/* Returns whether the caller is a background thread. A background thread must not queue a job and
 * wait for it, because no other thread may be left to run it. */
bool kj_is_in_background(const kj_runtime *runtime);
/* Runs the queued job of this specialization in the calling thread, which needs its result. So the
 * caller does not wait for earlier jobs in the queue. A caller that is a background thread would
 * otherwise wait for itself. */
void kj_hurry(kj_runtime *runtime, const kjit_specialization *entry);
/* Like kj_hurry, for a job that the caller may have queued. Does nothing if a thread has taken the
 * job from the queue. */
void kj_hurry_job(kj_runtime *runtime, const kj_job *job);
/* Warns that callers continue to use the plain code of a kernel or func, because the best code
 * could not be compiled. Without the warning, no one would see this error, because no caller needs
 * the best code. kind: "kernel" or "function"; callers: "launches" or "calls". */
void kj_warn_of_plain(const kjit_kernel *kernel, const char *kind, const char *callers,
                      const kj_diagnostics *diagnostics);
/* Queues the compilation for a call, with a copy of the data that it needs. The entry is PENDING.
 * Returns false like kj_queue_job. */
bool kj_compile_later(const kj_call *call, kjit_specialization *entry);
/* Returns whether kjit_stop_background was called, after which no job is queued. */
bool kj_is_background_stopped(kj_runtime *runtime);

/* Loads the compiler unless it is loaded already (compiler.c). */
kjit_status kj_get_compiler(kj_runtime *runtime, kj_diagnostics *diagnostics);
/* Sets another compiler interface. Must be called before the first compilation. */
kjit_status kj_use_compiler(kjit_context *context, const kj_compiler_interface *interface,
                            kj_diagnostics *diagnostics);

/* Creates the runtime's data for compiled code. */
kjit_status kj_open_code(kj_runtime *runtime, kj_diagnostics *diagnostics);

#endif
