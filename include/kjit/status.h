/* kjit/status.h: status codes, diagnostics, the context.
 *
 * Rules that hold for every public function, so that they are not repeated below:
 *  - Errors. A fallible function returns kjit_status and writes results through its last parameters, only on KJIT_OK. The diagnostics of a failed call are
 *    kept per context and per calling thread until that thread's next failing call on the context. Nothing prints, exits or aborts.
 *  - Ownership. create/destroy: one owner, destroy(NULL) is fine. retain/release: shared, counted, thread safe. get: borrowed, valid as long as the object it
 *    was got from. copy: the caller frees with kjit_free. Strings and arrays passed in are copied unless the parameter says "kept".
 *  - Threads. Context, module, kernel, function, specialization, device, array: any number of threads at once. Builder, stream, event: one thread at a time.
 *  - Structs. A struct that may grow starts with size_bytes, set by its init function: a host built against an older header keeps working.
 *  - NULL where an object is required is KJIT_ERROR_MISUSE, never a crash, as long as a context can be reached; functions that return a pointer return NULL. */
#ifndef KJIT_STATUS_H
#define KJIT_STATUS_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define KJIT_CHECK __attribute__((warn_unused_result))
#define KJIT_API __attribute__((visibility("default")))
#else
#define KJIT_CHECK
#define KJIT_API
#endif

#define KJIT_VERSION_MAJOR 0
#define KJIT_VERSION_MINOR 1
#define KJIT_VERSION_PATCH 0

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kjit_context kjit_context; /* everything hangs off it; two contexts never meet */
typedef struct kjit_device kjit_device;   /* one GPU, or the CPU */
typedef struct kjit_stream kjit_stream;   /* a queue of launches and copies on one device */

typedef enum kjit_status {
#define X(name, text) KJIT_##name,
#include <kjit/status.def>
#undef X
  KJIT_STATUS_COUNT
} kjit_status;

typedef enum kjit_severity { KJIT_SEVERITY_ERROR, KJIT_SEVERITY_WARNING, KJIT_SEVERITY_REMARK, KJIT_SEVERITY_NOTE } kjit_severity;

/* One message. A remark is advice: "computed in f64 although no argument is f64". */
typedef struct kjit_diagnostic {
  kjit_severity severity;
  kjit_status status;
  const char *file;        /* NULL: no source place */
  uint32_t line, column;   /* from 1; 0: no source place */
  const char *message;     /* one sentence, no trailing newline */
  const char *source_line; /* the line itself for a caret, or NULL */
} kjit_diagnostic;

/* Name of a status, "KJIT_ERROR_TYPE"; static storage; "KJIT_STATUS_UNKNOWN" for a number that is none. Never fails. */
KJIT_API const char *kjit_get_status_name(kjit_status status);

/* The diagnostics of this thread's last failed call on the context, in order; notes follow what they explain.
 * Borrowed until this thread's next failing call. NULL past the end. */
KJIT_API const kjit_diagnostic *kjit_get_diagnostic(kjit_context *context, size_t index);

/* The same as one text with source lines and carets, as the tools print it. Free with kjit_free. NULL only when out of memory. */
KJIT_API char *kjit_copy_diagnostics_text(kjit_context *context);

/* Frees what a copy function gave. memory NULL is fine; context may be NULL. */
KJIT_API void kjit_free(kjit_context *context, void *memory);

/* Runs the parts of a CPU launch on the host's own threads. run must call body(data, index) exactly once for each index below count before it returns. */
typedef struct kjit_executor {
  void *user;
  uint32_t concurrency; /* how many bodies may run at once; 0 counts as 1 */
  void (*run)(void *user, size_t count, void (*body)(void *data, size_t index), void *data);
} kjit_executor;

/* What compiled kernels check. A thread that fails a check leaves the kernel, the others go on; the first failure is reported as KJIT_ERROR_KERNEL. `raise` is always compiled. */
enum { KJIT_CHECK_NONE = 0, KJIT_CHECK_BOUNDS = 1, KJIT_CHECK_DIVISION = 2, KJIT_CHECK_ASSERT = 4, KJIT_CHECK_ALL = 7 };

typedef struct kjit_config {
  uint32_t size_bytes;           /* set by kjit_init_config, as all defaults below */
  const kjit_executor *executor; /* default NULL: OpenMP; kept */
  const char *compiler_path;     /* default NULL: libkjit-compiler beside libkjit, then the loader's search path; loaded at the first miss */
  const char *libdevice_path;    /* default NULL: a CUDA toolkit's libdevice where one is found, else libclc's; a bitcode file */
  void (*on_diagnostic)(void *user,
                        const kjit_diagnostic *diagnostic); /* default NULL; called from any thread as diagnostics arise, warnings and remarks too */
  void *user;                                               /* first argument of on_diagnostic; kept */
  uint32_t checks;                                          /* KJIT_CHECK_* that kernels are compiled with; default KJIT_CHECK_NONE */
  const char *cache_directory; /* of the disk cache, see cache.h; default NULL: the user's, $XDG_CACHE_HOME/kjit or $HOME/.cache/kjit; "": no disk cache */
  uint64_t cache_limit_bytes;  /* of all its files; what was used least recently goes first; default 0: 1 GiB */
} kjit_config;

/* Fills in size_bytes and the defaults. */
KJIT_API void kjit_init_config(kjit_config *config);

/* config NULL: defaults. Loads neither LLVM nor the CUDA driver. Errors: MEMORY, MISUSE (size_bytes unknown). */
KJIT_API KJIT_CHECK kjit_status kjit_create_context(const kjit_config *config, kjit_context **context);

/* Waits for launches under way and frees everything that hangs off the context: modules, kernels, devices, streams and arrays must not be used afterwards. */
KJIT_API void kjit_destroy_context(kjit_context *context);

typedef struct kjit_statistics {
  uint64_t launches;        /* launches made */
  uint64_t memory_hits;     /* launches that found their specialization in the cache */
  uint64_t compilations;    /* specializations compiled */
  uint64_t compile_time_ns; /* wall time spent compiling, summed over threads */
  uint64_t disk_hits;       /* specializations taken from the disk cache instead of compiled */
  uint64_t disk_misses;     /* specializations looked for there and not found, or not usable */
} kjit_statistics;

KJIT_API void kjit_get_statistics(kjit_context *context, kjit_statistics *statistics);

#ifdef __cplusplus
}
#endif
#endif
