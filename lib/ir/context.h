/* The context, the root of all objects. It has a separate record of diagnostics for each thread. */
#ifndef KJ_IR_CONTEXT_H
#define KJ_IR_CONTEXT_H

#include <pthread.h>
#include <stdatomic.h>

#include "support/diagnostics.h"
#include "support/host_process.h"
#include "support/lock.h"

typedef struct ki_types ki_types; /* ir/type.h */
typedef struct ki_thread_record ki_thread_record;

/* Counters for kjit_get_statistics. Any thread increments them, with relaxed order. */
typedef struct ki_counters {
  _Atomic uint64_t missed_launches, compilations, compile_time_ns, disk_hits, disk_misses,
    evictions, imports;
} ki_counters;

/* Counters of launches. Different threads use different counters. Each counter has its own cache
 * lines. */
enum { KJ_LAUNCH_COUNTERS = 64 };
typedef struct ki_launch_counter {
  /* count: number of successful launches; begun, ended: number of calls that have started and
   * returned */
  _Atomic uint64_t count, begun, ended;
  char padding[104];
} ki_launch_counter;

struct kjit_context {
  /* A copy of the application's configuration, with all fields of this version of kjit_config. The
   * context owns its strings and the structs to which it points; `user` still points to the
   * application's object. */
  kjit_config config;
  kjit_executor executor;
  kjit_device_allocator device_allocator;
  kjit_cache_store cache_store;
  kjit_compile_limits compile_limits; /* each field is a number or KJIT_NO_LIMIT */
  _Atomic int plain_code;      /* kjit_plain_code: kjit_config.plain_code or kjit_set_plain_code */
  _Atomic uint64_t interrupts; /* number of kjit_interrupt calls; running compilations check it */
  ki_types *types;
  ki_counters counters;
  ki_launch_counter launches[KJ_LAUNCH_COUNTERS];
  _Atomic uint32_t owners;   /* incremented by kjit_create_context and kjit_retain_context */
  uint32_t forks;            /* value of kj_forks when the context was created */
  pthread_mutex_t mutex;     /* protects `records` and `modules` */
  ki_thread_record *records; /* for each thread, the record of its last failed call */
  /* all published modules; destroying the context ends those that are not released yet */
  struct kjit_module *modules;
  void (*end_module)(struct kjit_module *module); /* set when the first module is published */
  /* `runtime` holds the devices, the compiler and the arrays. It is created under runtime_mutex
   * when it is first needed. Destroying the context has three steps: wait_runtime, which can be
   * NULL, ends all objects except modules; then the modules and their kernels end; then
   * destroy_runtime is called. */
  pthread_mutex_t runtime_mutex;
  void *runtime;
  void (*wait_runtime)(void *runtime);
  void (*destroy_runtime)(void *runtime);
};

/* Returns whether this process was forked after the context was created. It needs only a single
 * load, because the fast path of a launch calls it. */
static inline bool ki_is_forked(const kjit_context *context)
{
  return atomic_load_explicit(&kj_forks, memory_order_relaxed) != context->forks;
}

bool ki_is_trust(kjit_trust trust); /* checks that a value from the application is valid */
/* The next three functions check values from the application. An unknown bit in checks is an error;
 * if kjit ignored it, a check would be missing without notice. Errors: MISUSE. */
kjit_status ki_verify_checks(kjit_context *context, const char *call, uint32_t checks);
kjit_status ki_verify_debug(kjit_context *context, const char *call, kjit_debug debug);
kjit_status ki_verify_plain(kjit_context *context, const char *call, kjit_plain_code plain);
/* Returns whether KJIT_TRUST_DEFAULT means guest code, which is untrusted. */
static inline bool ki_trusts_nobody(const kjit_context *context)
{
  return context->config.trust == KJIT_TRUST_GUEST;
}

/* When a context is destroyed, its remaining objects get this context instead. ki_is_forked returns
 * true for it, so every call that checks for forks rejects such an object. */
extern kjit_context ki_ended_context;

/* Returns an object's context for a public function that returns it: NULL if the context has been
 * destroyed. */
static inline kjit_context *ki_told_context(kjit_context *context)
{
  return context == &ki_ended_context ? NULL : context;
}

/* ---- callbacks of the application that run within a call on a context ----
 *
 * Each thread keeps a list of its calls that are running a callback. A call from within the
 * callback is rejected if it would wait for such a call, or would free an object that the call
 * uses. */
typedef struct ki_host_code {
  const struct ki_host_code *outer;
  const kjit_context *context;
  bool is_diagnostic; /* the callback is on_diagnostic */
} ki_host_code;

extern _Thread_local const ki_host_code *ki_own_host_code
  __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Must be called before each callback. `code` must stay at its address until ki_leave_host is
 * called. */
static inline void ki_enter_host(ki_host_code *code, const kjit_context *context)
{
  kj_assert_no_locks();
  *code = (ki_host_code){ .outer = ki_own_host_code, .context = context };
  ki_own_host_code = code;
}

static inline void ki_leave_host(const ki_host_code *code) { ki_own_host_code = code->outer; }

/* Reads the application's limits into own. Fields that are 0 get their value from defaults; if
 * given is NULL, all fields get it. If defaults is NULL, kjit's defaults are used. Errors: as
 * ki_read_sized. */
kjit_status ki_read_limits(kjit_context *context, const char *call,
                           const kjit_compile_limits *given, const kjit_compile_limits *defaults,
                           kjit_compile_limits *own);

/* Returns the context's table of types, which lives as long as the context. */
ki_types *ki_context_types(kjit_context *context);

/* Ends a public call and returns diagnostics->status. Passes every message to on_diagnostic. If the
 * call failed, moves its messages to this thread's record; otherwise the record is not changed.
 * diagnostics is empty afterwards. */
kjit_status ki_finish_call(kjit_context *context, kj_diagnostics *diagnostics);

/* Reports an error that has no source location, for public calls that fail: return
 * ki_fail_call(context, KJIT_ERROR_ARGUMENT, "...", ...). If context is NULL, only returns the
 * status. */
kjit_status ki_fail_call(kjit_context *context, kjit_status status, const char *format, ...)
  __attribute__((format(printf, 3, 4)));
kjit_status ki_fail_call_list(kjit_context *context, kjit_status status, const char *format,
                              va_list list);

/* ---- structs of the public API that may grow ----
 *
 * The application's struct can be smaller than kjit's if it was compiled with an older header, or
 * larger if the header was newer. Inputs are therefore copied to a struct of this version. Outputs
 * are written to such a struct and then copied to the application's struct. sized.def lists these
 * structs. */

typedef enum ki_sized {
#define X(name, type, last) KI_##name,
#include "ir/sized.def"
#undef X
  KI_SIZED_COUNT
} ki_sized;

/* Copies the application's struct to own. Fields that the application's struct does not have become
 * 0; if given is NULL, all fields become 0. `call` is the name of the public function, for
 * messages. context can be NULL. Errors: MISUSE (size_bytes is invalid, or fields that this version
 * does not know are not 0). */
kjit_status ki_read_sized(kjit_context *context, const char *call, ki_sized which,
                          const void *given, void *own);

/* Checks that ki_write_sized will succeed, for functions that have effects before they write the
 * struct. Errors: MISUSE (given is NULL, or its size_bytes is invalid). */
kjit_status ki_check_sized(kjit_context *context, const char *call, ki_sized which,
                           const void *given);

/* Sets each field of the application's struct to the value in own. Fields that this version does
 * not know become 0; size_bytes is not changed. Errors: as ki_check_sized. */
kjit_status ki_write_sized(kjit_context *context, const char *call, ki_sized which, const void *own,
                           void *given);

#endif
