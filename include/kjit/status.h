/* kjit/status.h: status codes, diagnostics, the context.
 *
 * Rules that hold for every public function, so that they are not repeated below:
 *  - Errors. A fallible function returns kjit_status and writes results through its last
 * parameters, only on KJIT_OK. The diagnostics of a failed call are kept per context and per
 * calling thread until that thread's next failing call on the context. Nothing prints, exits or
 * aborts.
 *  - Ownership. create/destroy: one owner, destroy(NULL) is fine. retain/release: shared, counted,
 * thread safe. get: borrowed, valid as long as the object it was got from. copy: the caller frees
 * with kjit_free. Strings and arrays passed in are copied unless the parameter says "kept".
 *  - Threads. Context, module, kernel, function, specialization, device, array: any number of
 * threads at once. Builder, stream, event: one thread at a time. A thread that is in a call is not
 * cancelled (pthread_cancel): others would wait for what it has begun.
 *  - Contexts. kjit_get_module_context and its kin tell what context an object belongs to, so that
 * diagnostics can be asked for: borrowed, not retained; NULL for NULL, and for an object whose
 * context has ended. They never fail.
 *  - Structs. A struct that may grow starts with size_bytes, which the host sets to its sizeof; all
 * other fields are by default 0: `kjit_config config = { .size_bytes = sizeof config };`. kjit
 * reads and writes so many bytes, so that a host built with older headers keeps working. Fields of
 * newer headers, which this kjit does not know, have to be 0 where it reads, and become 0 where it
 * fills in. Errors of every function that takes one: MISUSE for a size_bytes that is 0, or less
 * than the struct's oldest form has. Of structs that kjit hands to the host (kjit_diagnostic,
 * kjit_cache_entry, kjit_import_source) size_bytes is kjit's: what is behind it is not there.
 * Structs without size_bytes never grow.
 *  - Processes. A context belongs to the process that made it: in a forked child calls on it, and
 * on what was made from it, give KJIT_ERROR_FORKED; releasing and destroying do nothing there. A
 * child makes a context of its own.
 *  - NULL where an object is required is KJIT_ERROR_MISUSE, never a crash, as long as a context can
 * be reached; functions that return a pointer return NULL. */
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

/* The version of these headers: one with another major number may lack what this one has. */
#define KJIT_VERSION_MAJOR 0
/* It grows with each version that adds to the interface. */
#define KJIT_VERSION_MINOR 2
/* It grows with each version that only mends. */
#define KJIT_VERSION_PATCH 0
/* One number, for comparisons: 1.23.4 is 12304. */
#define KJIT_VERSION_NUMBER \
  (KJIT_VERSION_MAJOR * 10000 + KJIT_VERSION_MINOR * 100 + KJIT_VERSION_PATCH)

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kjit_context kjit_context; /* everything hangs off it; two contexts never meet */
typedef struct kjit_device kjit_device;   /* one GPU, or the CPU */
typedef struct kjit_stream kjit_stream;   /* a queue of launches and copies on one device */

/* What a function returns: KJIT_OK, KJIT_NOT_READY, or what has failed. */
typedef enum kjit_status {
#define KJIT_ROW(name, text) KJIT_##name,
#include <kjit/status.def>
#undef KJIT_ROW
  /* how many there are: grows with versions */
  KJIT_STATUS_COUNT
} kjit_status;

/* How much a message matters. */
typedef enum kjit_severity {
  /* the call has failed */
  KJIT_SEVERITY_ERROR,
  /* probably not what was meant */
  KJIT_SEVERITY_WARNING,
  /* advice about speed and types */
  KJIT_SEVERITY_REMARK,
  /* explains the message before it */
  KJIT_SEVERITY_NOTE
} kjit_severity;

/* Why a thread of a kernel failed. */
typedef enum kjit_failure {
  KJIT_FAILURE_NONE = 0,          /* no thread failed: the message is about something else */
  KJIT_FAILURE_RAISE = 1,         /* `raise` */
  KJIT_FAILURE_ASSERT = 2,        /* an `assert` whose condition does not hold */
  KJIT_FAILURE_BOUNDS = 3,        /* an index or a slice out of bounds */
  KJIT_FAILURE_DIVISION = 4,      /* a division by zero */
  KJIT_FAILURE_BARRIER = 5,       /* others of the block wait at a barrier that it has passed by */
  KJIT_FAILURE_UNINITIALIZED = 6, /* a read of what nobody has written */
  KJIT_FAILURE_RACE = 7,          /* an access that races with another thread's */
  KJIT_FAILURE_VIEW_SIZE = 8,     /* a `view` or `reshape` of more bytes than there are */
  KJIT_FAILURE_VIEW_START = 9,    /* a `view` that is not aligned */
  KJIT_FAILURE_INTERRUPTED = 10,  /* it was interrupted */
  KJIT_FAILURE_STEP = 11,         /* a `range` whose step is 0 */
  KJIT_FAILURE_RECURSION = 12,    /* a recursion that needs more stack than there is */
  KJIT_FAILURE_WAIT = 13          /* it waits in a loop for a thread that does not run */
} kjit_failure;

/* What exactly is wrong, of the errors that a front end may treat in a way of its own. The text of
 * a message can change with each version; the code stays. */
typedef enum kjit_error_code {
#define KJIT_ROW(name, text) KJIT_CODE_##name,
#include <kjit/error_codes.def>
#undef KJIT_ROW
  /* how many there are: grows with versions */
  KJIT_CODE_COUNT
} kjit_error_code;

/* One message. A remark is advice: "computed in f64 although no argument is f64". */
typedef struct kjit_diagnostic {
  uint32_t size_bytes; /* see above; kjit's own size in diagnostics of its own */
  /* how much it matters */
  kjit_severity severity;
  /* what failed; KJIT_OK where nothing did */
  kjit_status status;
  const char *file;        /* NULL: no source place */
  uint32_t line, column;   /* from 1; 0: no source place; column 0: a front end's line alone */
  const char *message;     /* one sentence, no trailing newline */
  const char *source_line; /* the line itself for a caret, or NULL */
  /* why a thread failed; then the message is about that thread, and what follows is set */
  kjit_failure failure;
  /* the thread's block, and its position in that, x first; of a func that the host called all 0 */
  uint32_t block[3], thread[3];
  int32_t is_whole_block; /* not 0: what failed is all of the block, and thread means nothing */
  /* RAISE and ASSERT: the text that stands in the kernel, NULL where an assert has none */
  const char *failure_text;
  kjit_error_code code; /* of an error; KJIT_CODE_NONE of all other messages */
} kjit_diagnostic;

/* The version of the library that runs, as KJIT_VERSION_NUMBER is that of the headers. Never fails.
 */
KJIT_API uint32_t kjit_get_version(void);

/* Name of a status, "KJIT_ERROR_TYPE"; static storage; "KJIT_STATUS_UNKNOWN" for a number that is
 * none. Never fails. */
KJIT_API const char *kjit_get_status_name(kjit_status status);

/* Name of a code, "ARRAY_AS_NUMBER"; static storage; NULL for a number that is none. Never fails.
 */
KJIT_API const char *kjit_get_error_code_name(kjit_error_code code);

/* The diagnostics of this thread's last failed call on the context, in order; notes follow what
 * they explain. Borrowed until this thread's next failing call. NULL past the end. */
KJIT_API const kjit_diagnostic *kjit_get_diagnostic(kjit_context *context, size_t index);

/* The diagnostics as one text with source lines and carets, as the tools print it. Free with
 * kjit_free. NULL only when out of memory. */
KJIT_API char *kjit_copy_diagnostics_text(kjit_context *context);

/* One diagnostic as text in the same form, with its source line and caret: for on_diagnostic. Free
 * with kjit_free. NULL when out of memory, or diagnostic is NULL. */
KJIT_API char *kjit_copy_diagnostic_text(const kjit_diagnostic *diagnostic);

/* Frees what a copy function gave. memory NULL is fine; context may be NULL. */
KJIT_API void kjit_free(kjit_context *context, void *memory);

/* Runs the parts of a CPU launch on the host's own threads. run must call body(data, index) exactly
 * once for each index below count before it returns; a launch whose parts were not all run gives
 * MISUSE. Several launches may call run at once. What one thread does as fast runs on the thread
 * that launches, without run: small launches, all with concurrency 1. body may be called from
 * threads that kjit has never seen; it does not return early, and it must not be left by longjmp or
 * an exception. */
typedef struct kjit_executor {
  uint32_t size_bytes;  /* sizeof(kjit_executor) */
  uint32_t concurrency; /* how many bodies run at once; 0 counts as 1 */
  void *user;           /* first argument of run */
  /* Its threads need a stack of 128 KiB: code that needs more is given one for its call. */
  void (*run)(void *user, size_t count, void (*body)(void *data, size_t index), void *data);
} kjit_executor;

/* Device memory of the host's own, instead of kjit's pool: RMM, a framework's. Both are called from
 * any thread, several at once, for GPUs only, with the stream (NULL: the default stream) in whose
 * order the memory may be used, and is free. allocate: at least size_bytes, aligned to 256; NULL
 * when there is none, which the call of kjit reports as DEVICE_MEMORY; it may be asked a second
 * time after kjit has given back memory that was only waiting. It is not asked for a stream that is
 * being captured: that is MISUSE of who creates the array. Neither may call a function of kjit
 * that launches, allocates, releases or waits. Memory that is lost with its device
 * (kjit_reset_device) is released, too. Pinned, mapped, managed and shared arrays are the driver's
 * own. */
typedef struct kjit_device_allocator {
  uint32_t size_bytes; /* sizeof(kjit_device_allocator) */
  void *user;          /* first argument of both */
  /* memory, or NULL */
  void *(*allocate)(void *user, kjit_device *device, size_t size_bytes, kjit_stream *stream);
  /* takes back what allocate gave, with the same size */
  void (*release)(void *user, kjit_device *device, void *memory, size_t size_bytes,
                  kjit_stream *stream);
} kjit_device_allocator;

/* Where compiled code is kept instead of the directory of the disk cache. key: 32 bytes. All are
 * called from any thread, several at once, while a launch or kjit_specialize waits for the code;
 * they may call anything that does not wait for that. What a store gives back is checked as a file
 * is: a damaged entry is a miss, never wrong code. Whoever can write to the store can have the
 * process run anything, as with the directory. release and store may be NULL: nothing is given
 * back, nothing is kept. */
typedef struct kjit_cache_store {
  uint32_t size_bytes; /* sizeof(kjit_cache_store) */
  void *user;          /* first argument of all three */
  /* 1: found; the data stays until release */
  int (*load)(void *user, const uint8_t *key, const void **data, size_t *size_bytes);
  /* takes back what load gave; NULL: nothing */
  void (*release)(void *user, const void *data);
  /* a key may come again, with other data that is as good */
  void (*store)(void *user, const uint8_t *key, const void *data, size_t size_bytes);
} kjit_cache_store;

/* What compiled kernels check. A thread that fails a check leaves the kernel, the others go on; the
 * first failure is reported as KJIT_ERROR_KERNEL. `raise` is always compiled. */
enum {
  /* nothing */
  KJIT_CHECK_NONE = 0,
  /* indices of arrays */
  KJIT_CHECK_BOUNDS = 1,
  /* divisions by 0, of integers and floats; a `range` whose step is 0 */
  KJIT_CHECK_DIVISION = 2,
  /* `assert` */
  KJIT_CHECK_ASSERT = 4,
  KJIT_CHECK_USUAL = 7, /* those above */
  /* a barrier that some threads of the block do not reach although they have not left. This and the
     next two: on the CPU only, UNSUPPORTED on a GPU */
  KJIT_CHECK_BARRIER = 8,
  KJIT_CHECK_UNINITIALIZED = 16, /* reads of shared and local elements that were not written */
  /* accesses of shared memory by two threads without a barrier between them, of which one writes;
     atomics with each other are none */
  KJIT_CHECK_RACES = 32,
  /* all of them */
  KJIT_CHECK_ALL = 63,
  /* divisions of integers by 0, which without it give 0, and a `range` whose step is 0, which
     without it has no iterations: half of KJIT_CHECK_DIVISION */
  KJIT_CHECK_INTEGER_DIVISION = 64,
  /* divisions of floats and complex numbers by 0, which without it give an infinity or NaN: the
     other half */
  KJIT_CHECK_FLOAT_DIVISION = 128
};

/* Who wrote a source, and so what it may do (docs/architecture/guests.md). */
typedef enum kjit_trust {
  /* kjit_config.trust; of kjit_config.trust itself: HOST; of an import: as the importing source */
  KJIT_TRUST_DEFAULT = 0,
  /* the host, or somebody whom it trusts as itself: the whole language */
  KJIT_TRUST_HOST = 1,
  /* anybody: what may reach memory other than the launch's arrays is refused (REFUSED), and the
     check of bounds is compiled whatever the options say */
  KJIT_TRUST_GUEST = 2
} kjit_trust;

/* The source that an import means: kjit sets size_bytes and makes all else 0, the host fills in
 * field by field. Everything is read until the call of kjit_parse_module that asked for it returns.
 */
typedef struct kjit_import_source {
  uint32_t size_bytes; /* of this struct, set by kjit */
  /* what diagnostics call it, and what says which source it is: a name that the module already has
   * is not read again */
  const char *name;
  /* its text, UTF-8 */
  const char *text;
  size_t text_bytes; /* of text, without a 0 behind it */
  kjit_trust trust;  /* default: that of the importing source */
} kjit_import_source;

/* What debuggers and profilers are told about the code of kernels. FULL: lines and variables, for
 * gdb and cuda-gdb; the code is not optimized. */
typedef enum kjit_debug {
  /* nothing */
  KJIT_DEBUG_NONE = 0,
  /* lines; the code is optimized as without */
  KJIT_DEBUG_LINES = 1,
  /* lines and variables */
  KJIT_DEBUG_FULL = 2
} kjit_debug;

/* What one compilation may use at most, so that no kernel, be it a guest's, keeps its host busy or
 * takes its memory: a compilation that needs more ends with KJIT_ERROR_LIMIT, which names the
 * limit, what was over it and where, and leaves nothing behind. A field of 0 is the default,
 * KJIT_NO_LIMIT is none. limits.def has the same with the names in the tools. Each is looked at
 * where it grows; the time, and kjit_interrupt, between the statements and expressions that are
 * typed and lowered, between passes, and before LLVM generates code, but not in one of LLVM's
 * passes nor while it generates code: how long that takes goes with the instructions. */
typedef struct kjit_compile_limits {
  uint32_t size_bytes; /* sizeof(kjit_compile_limits) */
  uint64_t time_ns;    /* processor time of the thread that compiles; default 20 s */
  /* instances of functions, one for each function and tuple of argument types, literals and
   * functions that it is called with; default 4096 */
  uint64_t instances;
  /* statements and expressions that are typed, in each instance anew; default 4,000,000 */
  uint64_t expressions;
  /* statements and expressions that `@unroll` makes of one loop and of those in it; default 32,768
   */
  uint64_t unrolled;
  /* instructions of LLVM at once, those of unrolled loops as often as there are copies; default
   * 1,000,000 */
  uint64_t instructions;
  /* kjit's own: the typed kernel IR and what belongs to it; default 4 GiB. What LLVM takes goes
   * with its instructions */
  uint64_t memory_bytes;
  uint64_t code_bytes; /* the PTX, assembly or object that is made; default 64 MiB */
} kjit_compile_limits;
/* For fields of kjit_compile_limits: no limit. */
#define KJIT_NO_LIMIT UINT64_MAX

/* What a context is made with. */
typedef struct kjit_config {
  uint32_t size_bytes;           /* sizeof(kjit_config) */
  const kjit_executor *executor; /* default NULL: threads of kjit's own; copied */
  /* default NULL: libkjit-compiler beside libkjit, then the loader's search path; loaded at the
   * first miss */
  const char *compiler_path;
  /* Math functions for GPUs: a file of LLVM bitcode, or "libclc", which is part of the compiler
   * library and the same on every machine. Default NULL: libdevice of a CUDA toolkit where one is
   * found, else "libclc". */
  const char *libdevice_path;
  /* Default NULL; called from any thread, several at once, as diagnostics arise, warnings and
   * remarks too. It must not call what launches, waits, releases or destroys. */
  void (*on_diagnostic)(void *user, const kjit_diagnostic *diagnostic);
  void *user;      /* first argument of on_diagnostic; kept */
  uint32_t checks; /* KJIT_CHECK_* that kernels are compiled with; default KJIT_CHECK_NONE */
  /* Of the disk cache, see cache.h; default NULL: the user's, $XDG_CACHE_HOME/kjit or
   * $HOME/.cache/kjit (absolute paths only; without them no disk cache);
   * "": no disk cache. */
  const char *cache_directory;
  /* of all its files; what was used least recently goes first; default 0: 1 GiB */
  uint64_t cache_limit_bytes;
  /* Where the lines go that kernels `print`: one or several whole lines, each with its newline, and
   * a 0 after them; UTF-8 as in the source. Called by threads that are in a call of kjit, never by
   * two at once, and with no lock of kjit's held: for a launch on the CPU before it returns, in the
   * order of its blocks; for a GPU by kjit_synchronize_*, kjit_copy, kjit_fill, kjit_export_array
   * and kjit_destroy_context, in the order of the threads. Where another thread is in it, that one
   * gets the lines, and nobody waits for it. It must not call functions of the context. Default
   * NULL: the lines are dropped. */
  void (*on_print)(void *user, const char *text, size_t size_bytes);
  /* room for lines that wait for the host, a GPU; those without room are counted in a warning;
   * default 0: 1 MiB */
  uint64_t print_buffer_bytes;
  const char
    /* folders, separated by `:`, where `import "file"` looks for what is not in the folder of the
       importing source; default NULL: none */
    *import_path;
  /* Answers imports instead of files: fills in the source that `import "name"` in the source called
   * importer means and returns 1; 0: there is none. default NULL: files. A host whose kernels come
   * from somebody else gives one, so that their text opens no file. */
  int (*find_import)(void *user, const char *importer, const char *name,
                     kjit_import_source *import);
  /* that compile at once beside the host's own; default 0: as many as there are cores, at most 8 */
  uint32_t compile_threads;
  /* specializations of a kernel that differ only in facts about the arguments; further launches run
   * one for no facts; default 0: 16 */
  uint32_t variant_limit;
  uint64_t
    /* machine code loaded at once; what was not launched for long is unloaded, and loaded again
       when it is needed; default 0: 256 MiB */
    code_limit_bytes;
  /* default NULL: the pool of each device, see memory.h; copied */
  const kjit_device_allocator *device_allocator;
  const kjit_cache_store *cache_store; /* default NULL: cache_directory; copied */
  /* default KJIT_DEBUG_NONE; code with debug information is not kept in the disk cache */
  kjit_debug debug;
  /* that a launch on the CPU is spread over at most, the launching one too; how many of them it is
   * worth is measured. Default 0: the cores that the process may use, or what executor has. More
   * than 256 count as 256. */
  uint32_t cpu_threads;
  /* not 0: kernels, and functions of kjit_call_function, look now and then whether they were
   * interrupted (kjit_interrupt and its kin, kjit_launch_config.time_limit_ns); default 0 */
  int32_t interruptible;
  /* not looked at: hosts that were built without what follows have padding here */
  uint32_t reserved;
  /* of modules that are parsed or built without saying; default: KJIT_TRUST_HOST */
  kjit_trust trust;
  /* the program that compiles in a child process; default NULL: kjit-compile-child, which is
   * installed with libkjit */
  const char *compile_child_path;
  /* that a child process may take for one compilation; then it is killed, and the compilation
   * fails. Default 0: 600 s. KJIT_NO_LIMIT: any time */
  uint64_t compile_child_limit_ns;
  /* not 0: LLVM and the assembler of the CUDA driver run in child processes that stay, as many as
   * compile at once: a crash there is KJIT_ERROR_COMPILER_LOST of one compilation, and the next one
   * has a new child. The host's process has no LLVM in it; debuggers are not told of code that was
   * compiled for the CPU. The host gets SIGCHLD when a child ends. Default 0 */
  int32_t compile_in_child;
  const kjit_compile_limits *compile_limits; /* of each compilation; default NULL: all 0; copied */
  /* Where compilations are, for a host that shows its user how far they are: told as each begins
   * what is to become a stage, with the name of its kernel or func and that of the stage in
   * KJIT_STAGES, "typed", "llvm", "llvm-opt", then what was asked for, or "object" and "ptx" for
   * launches, and "cubin" where a driver makes machine code of that; and with stage NULL when it
   * has ended, well or not. Of those in child processes (compile_in_child) only "typed" and the end
   * are known, of what the disk cache has nothing. Called by the threads that compile, several at
   * once; the texts are valid until it returns. It must not call functions of the context. Default
   * NULL */
  void (*on_stage)(void *user, const char *name, const char *stage);
  /* The machine that the context compiles for. NULL (default) means the devices of this machine.
   * "sm_75" and up, "sm_90a", "x86-64-v2", "x86-64-v3" or "x86-64-v4" make a context for
   * kjit_export_cache and kjit_export_code: it has one GPU of that architecture, or a CPU of that
   * level of x86-64, and needs no driver.
   *
   * A launch or an algorithm on this device compiles the kernels that it would run, and runs
   * nothing. The arrays of such a GPU have no values, so that copying them to the host returns
   * KJIT_ERROR_UNSUPPORTED. For any other name, kjit_get_device returns KJIT_ERROR_ARGUMENT. */
  const char *target;
  /* The path of a file of compiled kernels, see kjit_open_cache. Launches look in the file after
   * the disk cache. NULL (default) means the file that is installed with libkjit, if there is one
   * and the disk cache is on; "" means none. If the file cannot be used, the first compilation has
   * a remark, and no error. */
  const char *shipped_cache;
  /* With a GPU as target, the path of ptxas, the assembler of a CUDA toolkit; "" means the one that
   * kjit finds as kjit_compile does. kjit_export_cache then also has machine code for exactly that
   * architecture, which a launch prefers to the PTX. The PTX stays for drivers that are older than
   * ptxas. If there is no ptxas, a launch returns KJIT_ERROR_NO_COMPILER. NULL (default) means that
   * only PTX is kept. Without target, the field has no effect. */
  const char *ptxas;
} kjit_config;

/* config NULL: defaults. Loads neither LLVM nor the CUDA driver. Errors: MEMORY, MISUSE (an
 * executor without run, a device_allocator without both its functions, a cache_store without load,
 * a trust, a debug or bits of checks that are unknown): there is no context to ask why, but
 * on_diagnostic is told. Nobody is told of a size_bytes that is 0: config is not read at all then.
 */
KJIT_API KJIT_CHECK kjit_status kjit_create_context(const kjit_config *config,
                                                    kjit_context **context);

/* One owner more; returns context, which may be NULL. Any thread. */
KJIT_API kjit_context *kjit_retain_context(kjit_context *context);
/* One owner less, of those that kjit_create_context and kjit_retain_context have made; NULL is
 * fine. The last one ends the context. That waits for launches and calls of kjit_call_function
 * under way; where the code is interruptible, kjit_interrupt before it ends them. Then everything
 * that hangs off the context is freed: devices, memory, code, threads. What the host has made or
 * retained and not released yet (modules, arrays, streams, events, graphs, prepared launches,
 * plans, interrupters) may be released and destroyed afterwards, and used for nothing else; until
 * then a few hundred bytes of each remain. No other thread may be in a call on what is freed, but
 * in those that are waited for. Any thread, but for code of the host that a call on the context
 * runs: a function that a kernel calls, an executor, a callback. Errors: MISUSE (from there, and
 * nothing has changed), FORKED. */
KJIT_API kjit_status kjit_destroy_context(kjit_context *context);

/* Ends what was launched in the context so far, on all its devices, queued launches too: those of
 * code that is interruptible (kjit_config.interruptible), and calls of kjit_call_function. Each
 * ends with KJIT_ERROR_INTERRUPTED, reported as failures of kernels are; arrays hold what was
 * written, and everything is usable afterwards. Compilations under way end with the same status,
 * whatever else the context was made with, where they look (kjit_compile_limits), but not those in
 * child processes (compile_in_child); the next of the same
 * kernel begins anew. Launches and compilations made later are not touched. Returns at once. From
 * any thread and from signal handlers, while the context is there. */
KJIT_API void kjit_interrupt(kjit_context *context);

/* Counts of a context since it was made. */
typedef struct kjit_statistics {
  uint32_t size_bytes;      /* sizeof(kjit_statistics), set by the host */
  uint64_t launches;        /* launches made */
  uint64_t memory_hits;     /* launches that found their specialization in the cache */
  uint64_t compilations;    /* specializations compiled */
  uint64_t compile_time_ns; /* wall time spent compiling, summed over threads */
  uint64_t disk_hits;       /* specializations taken from the disk cache instead of compiled */
  uint64_t disk_misses;     /* specializations looked for there and not found, or not usable */
  uint64_t evictions;       /* specializations unloaded to keep to kjit_config.code_limit_bytes */
  /* specializations taken from blobs of kjit_import_code instead of compiled */
  uint64_t imports;
} kjit_statistics;

/* What the context has done so far. Errors: MISUSE. */
KJIT_API kjit_status kjit_get_statistics(kjit_context *context, kjit_statistics *statistics);

#ifdef __cplusplus
}
#endif
#endif
