/* The context: what everything else hangs off. Its diagnostics are kept per calling thread. */
#ifndef KJ_IR_CONTEXT_H
#define KJ_IR_CONTEXT_H

#include <pthread.h>
#include <stdatomic.h>

#include "support/diagnostics.h"
#include "support/host_process.h"
#include "support/lock.h"

typedef struct ki_types ki_types; /* ir/type.h */
typedef struct ki_thread_record ki_thread_record;

/* Statistics are relaxed counters: whoever makes a launch or a specialization adds to them. */
typedef struct ki_counters {
  _Atomic uint64_t missed_launches, compilations, compile_time_ns, disk_hits, disk_misses,
    evictions, imports;
} ki_counters;

/* Launches are counted on several cache lines, which threads share out among themselves: those that
 * were made; calls that have begun and that have ended, whatever came of them. */
enum { KJ_LAUNCH_COUNTERS = 64 };
typedef struct ki_launch_counter {
  _Atomic uint64_t count, begun, ended;
  char padding[104];
} ki_launch_counter;

struct kjit_context {
  /* a copy with every field of this version; its strings and what its structs point to are the
   * context's own, what `user` points to is the host's */
  kjit_config config;
  kjit_executor executor;
  kjit_device_allocator device_allocator;
  kjit_cache_store cache_store;
  kjit_compile_limits compile_limits; /* all of them numbers, or KJIT_NO_LIMIT */
  _Atomic uint64_t interrupts;        /* calls of kjit_interrupt, for compilations under way */
  ki_types *types;
  ki_counters counters;
  ki_launch_counter launches[KJ_LAUNCH_COUNTERS];
  _Atomic uint32_t owners;   /* kjit_create_context, kjit_retain_context */
  uint32_t forks;            /* kj_forks when it was made */
  pthread_mutex_t mutex;     /* protects records and modules */
  ki_thread_record *records; /* the last failed call of each thread */
  /* every live module, so that the context's end ends those that were not released */
  struct kjit_module *modules;
  void (*end_module)(struct kjit_module *module); /* set with the first of them */
  /* Devices, the compiler, arrays: made by the runtime under runtime_mutex when first needed.
   * The context's end calls wait_runtime (may be NULL), which ends all objects but the modules,
   * then ends the modules with their kernels, then calls destroy_runtime. */
  pthread_mutex_t runtime_mutex;
  void *runtime;
  void (*wait_runtime)(void *runtime);
  void (*destroy_runtime)(void *runtime);
};

/* Whether it was made in a process that this one was forked from. One load: the hot path asks, too.
 */
static inline bool ki_is_forked(const kjit_context *context)
{
  return atomic_load_explicit(&kj_forks, memory_order_relaxed) != context->forks;
}

bool ki_is_trust(kjit_trust trust); /* for numbers from a host */
/* Checks from a host: a bit that is unknown would be a check that is not made. Errors: MISUSE. */
kjit_status ki_verify_checks(kjit_context *context, const char *call, uint32_t checks);
kjit_status ki_verify_debug(kjit_context *context, const char *call, kjit_debug debug);
/* Whether sources of whom nobody has said anything are guests'. */
static inline bool ki_trusts_nobody(const kjit_context *context)
{
  return context->config.trust == KJIT_TRUST_GUEST;
}

/* The context of objects whose own has ended; no call that looks at ki_is_forked goes on with it.
 */
extern kjit_context ki_ended_context;

/* What a host gets when it asks an object for its context. */
static inline kjit_context *ki_told_context(kjit_context *context)
{
  return context == &ki_ended_context ? NULL : context;
}

/* ---- code of the host that runs within a call on a context ----
 * Each thread knows in which calls it is: what waits for one of them, or frees what it uses, is
 * refused. */
typedef struct ki_host_code {
  const struct ki_host_code *outer;
  const kjit_context *context;
  bool is_diagnostic; /* on_diagnostic */
} ki_host_code;

extern _Thread_local const ki_host_code *ki_own_host_code
  __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Around each call of the host's code; code stays where it is until ki_leave_host. */
static inline void ki_enter_host(ki_host_code *code, const kjit_context *context)
{
  kj_assert_no_locks();
  *code = (ki_host_code){ .outer = ki_own_host_code, .context = context };
  ki_own_host_code = code;
}

static inline void ki_leave_host(const ki_host_code *code) { ki_own_host_code = code->outer; }

/* The limits of the host's struct, those of a context (NULL: the defaults) where it has 0 or is
 * NULL. Errors: those of ki_read_sized. */
kjit_status ki_read_limits(kjit_context *context, const char *call,
                           const kjit_compile_limits *given, const kjit_compile_limits *defaults,
                           kjit_compile_limits *own);

/* The context's table of types; lives as long as the context. */
ki_types *ki_context_types(kjit_context *context);

/* Ends a public call: hands every message to on_diagnostic, moves the messages of a failed call to
 * this thread's record and returns diagnostics->status. A call that succeeded leaves the record
 * alone. diagnostics is empty afterwards. */
kjit_status ki_finish_call(kjit_context *context, kj_diagnostics *diagnostics);

/* A failed call with one message without a source place: return ki_fail_call(context,
 * KJIT_ERROR_ARGUMENT, "...", ...). context NULL: the status only. */
kjit_status ki_fail_call(kjit_context *context, kjit_status status, const char *format, ...)
  __attribute__((format(printf, 3, 4)));

/* ---- structs of the public API that may grow ----
 * A host's struct may be smaller than this kjit's, of an older header, or larger, of a newer one:
 * what is read is read into a struct of kjit's own, what is filled in is made in one and written
 * from there. sized.def lists them. */

typedef enum ki_sized {
#define X(name, type, last) KI_##name,
#include "ir/sized.def"
#undef X
  KI_SIZED_COUNT
} ki_sized;

/* Reads the host's struct into own; what an older one lacks becomes 0. given NULL: all 0. call: the
 * public function, for messages; context may be NULL, then there is none. Errors: MISUSE (a size
 * that is none; fields of a newer one that are not 0). */
kjit_status ki_read_sized(kjit_context *context, const char *call, ki_sized which,
                          const void *given, void *own);

/* Whether ki_write_sized will succeed: for functions that do something before they fill in. Errors:
 * MISUSE (given is NULL, or of no size). */
kjit_status ki_check_sized(kjit_context *context, const char *call, ki_sized which,
                           const void *given);

/* Fills in the host's struct from own, as much as it has; what is behind own's fields becomes 0,
 * size_bytes stays. Errors: as ki_check_sized. */
kjit_status ki_write_sized(kjit_context *context, const char *call, ki_sized which, const void *own,
                           void *given);

#endif
