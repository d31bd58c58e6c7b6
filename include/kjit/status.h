/* kjit/status.h: status codes, diagnostics and the context.
 *
 * The following rules hold for every public function.
 *
 * Errors. A function that can fail returns kjit_status. It writes its results through its last
 * parameters, and only if it returns KJIT_OK. The diagnostics of a failed call are kept for each
 * context and thread until the thread's next failing call on the context. No function prints, exits
 * or aborts.
 *
 * Ownership. Objects with create and destroy have a single owner, and destroy(NULL) has no effect.
 * Objects with retain and release are reference counted and thread safe. A get function returns a
 * borrowed pointer, which is valid as long as the object that it came from. The caller frees the
 * result of a copy function with kjit_free. kjit copies strings and arrays that are passed in,
 * unless the parameter is described as "kept".
 *
 * Threads. Any number of threads can use a context, module, kernel, function, specialization,
 * device or array at the same time. Only one thread at a time may use a builder, stream or event.
 * Do not cancel a thread (pthread_cancel) during a call, because other threads could wait for its
 * work.
 *
 * Contexts. kjit_get_module_context and similar functions return an object's context, borrowed, so
 * that a program can read its diagnostics. These functions never fail. They return NULL for NULL
 * and for an object whose context no longer exists.
 *
 * Structs. A struct that can grow starts with size_bytes, which the application sets to the
 * struct's sizeof. All other fields default to 0: `kjit_config config = { .size_bytes = sizeof
 * config };`. kjit reads and writes only this number of bytes, so an application built with older
 * headers still works. Fields that this kjit version does not know must be 0 in inputs and are
 * set to 0 in outputs. Functions that take such a struct return MISUSE if size_bytes is 0 or
 * smaller than the struct's oldest form. In structs that kjit passes to the application
 * (kjit_diagnostic, kjit_cache_entry, kjit_import_source), kjit sets size_bytes, and fields after
 * this size do not exist. Structs without size_bytes never grow.
 *
 * Processes. A context belongs to the process that created it. In a forked child, calls on the
 * context and its objects return KJIT_ERROR_FORKED, and release and destroy have no effect. A child
 * must create its own context.
 *
 * NULL. If a required object is NULL, a function returns KJIT_ERROR_MISUSE, with a diagnostic if
 * another argument belongs to a context. A function that returns a pointer returns NULL instead. No
 * function crashes because of a NULL. */
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

/* Major version of these headers. A library with another major version can lack parts of this
 * interface. */
#define KJIT_VERSION_MAJOR 0
/* Minor version. It increases when the interface grows. */
#define KJIT_VERSION_MINOR 2
/* Patch version. It increases for fixes only. */
#define KJIT_VERSION_PATCH 0
/* The version as a single number for comparisons: 1.23.4 is 12304. */
#define KJIT_VERSION_NUMBER \
  (KJIT_VERSION_MAJOR * 10000 + KJIT_VERSION_MINOR * 100 + KJIT_VERSION_PATCH)

#ifdef __cplusplus
extern "C" {
#endif

/* owns all other objects; objects from different contexts cannot be combined */
typedef struct kjit_context kjit_context;
typedef struct kjit_device kjit_device; /* a GPU, or the CPU */
typedef struct kjit_stream kjit_stream; /* a queue for launches and copies on a device */

/* A function's result: KJIT_OK, KJIT_NOT_READY, or the kind of error. */
typedef enum kjit_status {
#define KJIT_ROW(name, text) KJIT_##name,
#include <kjit/status.def>
#undef KJIT_ROW
  /* number of status codes, which grows with versions */
  KJIT_STATUS_COUNT
} kjit_status;

/* Message severity. */
typedef enum kjit_severity {
  /* the call failed */
  KJIT_SEVERITY_ERROR,
  /* the code is probably not what the author intended */
  KJIT_SEVERITY_WARNING,
  /* advice about speed and types */
  KJIT_SEVERITY_REMARK,
  /* explains the preceding message */
  KJIT_SEVERITY_NOTE
} kjit_severity;

/* Why a kernel's thread failed. */
typedef enum kjit_failure {
  KJIT_FAILURE_NONE = 0,     /* the message is not about a failing thread */
  KJIT_FAILURE_RAISE = 1,    /* the thread executed `raise` */
  KJIT_FAILURE_ASSERT = 2,   /* an `assert` condition is false */
  KJIT_FAILURE_BOUNDS = 3,   /* an index or a slice is out of bounds */
  KJIT_FAILURE_DIVISION = 4, /* a division by zero */
  /* the thread passed a barrier at which other threads in the block wait */
  KJIT_FAILURE_BARRIER = 5,
  KJIT_FAILURE_UNINITIALIZED = 6, /* a read of uninitialized memory */
  KJIT_FAILURE_RACE = 7,          /* a data race with another thread */
  KJIT_FAILURE_VIEW_SIZE = 8,     /* a `view` or `reshape` has more bytes than the array */
  KJIT_FAILURE_VIEW_START = 9,    /* a `view` is not aligned */
  KJIT_FAILURE_INTERRUPTED = 10,  /* the thread was interrupted */
  KJIT_FAILURE_STEP = 11,         /* the step of a `range` or slice is 0 */
  KJIT_FAILURE_RECURSION = 12,    /* a recursion exceeds the stack */
  KJIT_FAILURE_WAIT = 13          /* the thread waits in a loop for a thread that does not run */
} kjit_failure;

/* Errors that a front end may handle in its own way. A message's text can change with each
 * version, but the code stays. */
typedef enum kjit_error_code {
#define KJIT_ROW(name, text) KJIT_CODE_##name,
#include <kjit/error_codes.def>
#undef KJIT_ROW
  /* number of codes, which grows with versions */
  KJIT_CODE_COUNT
} kjit_error_code;

/* Phrases in error messages that a front end may replace by its own words. */
typedef enum kjit_phrase_code {
#define KJIT_ROW(name, text) KJIT_PHRASE_##name,
#include <kjit/phrases.def>
#undef KJIT_ROW
  /* number of codes, which grows with versions */
  KJIT_PHRASE_COUNT
} kjit_phrase_code;

/* A phrase in kjit_diagnostic.message. Phrases do not overlap and are sorted by position. */
typedef struct kjit_phrase {
  kjit_phrase_code code;      /* meaning of the phrase */
  uint32_t first, size_bytes; /* position in the message, in bytes */
  /* position in the message, and size, of the argument inside the phrase, such as a variable's
   * name; 0 bytes if the phrase has no argument */
  uint32_t argument_first, argument_bytes;
} kjit_phrase;

/* A message. Remarks give advice, such as "computed in f64 although no argument is f64". */
typedef struct kjit_diagnostic {
  uint32_t size_bytes; /* this struct's size; kjit sets it in its own diagnostics */
  /* error, warning, remark or note */
  kjit_severity severity;
  /* error, or KJIT_OK if nothing failed */
  kjit_status status;
  const char *file; /* source file, or NULL */
  /* position starting at 1; 0 if it is not known; column is also 0 if a front end gives only
   * lines */
  uint32_t line, column;
  const char *message;     /* one sentence without a newline */
  const char *source_line; /* text of the source line, for a caret below it, or NULL */
  /* If not NONE, the message is about a failing thread, and the following fields are set. */
  kjit_failure failure;
  /* the block's index, and the thread's index in it, x first; all 0 in a func that the
   * application called */
  uint32_t block[3], thread[3];
  int32_t is_whole_block; /* not 0 if the whole block failed; `thread` is then undefined */
  /* for RAISE and ASSERT: message in the kernel, or NULL if the assert has no message */
  const char *failure_text;
  kjit_error_code code; /* an error's code, otherwise KJIT_CODE_NONE */
  /* phrases in the message, or NULL if there are none */
  const kjit_phrase *phrases;
  size_t phrase_count; /* number of phrases */
} kjit_diagnostic;

/* Returns the version of the loaded library as a single number. KJIT_VERSION_NUMBER is the version
 * of the headers, in the same format. The function never fails. */
KJIT_API uint32_t kjit_get_version(void);

/* Returns a status name, such as "KJIT_ERROR_TYPE", or "KJIT_STATUS_UNKNOWN" for an unknown
 * number. The string is static. It never fails. */
KJIT_API const char *kjit_get_status_name(kjit_status status);

/* Returns a code's name, such as "ARRAY_AS_NUMBER", or NULL for an unknown number. The string
 * is static. It never fails. */
KJIT_API const char *kjit_get_error_code_name(kjit_error_code code);

/* Returns a phrase's name, such as "LOOP_BOUND", or NULL for an unknown number. The string is
 * static. It never fails. */
KJIT_API const char *kjit_get_phrase_name(kjit_phrase_code code);

/* Returns a diagnostic of this thread's last failed call on the context, in order, or NULL if index
 * is too large. Notes follow the message that they explain. The diagnostic is borrowed until the
 * thread's next failing call. */
KJIT_API const kjit_diagnostic *kjit_get_diagnostic(kjit_context *context, size_t index);

/* Returns all diagnostics as text with source lines and carets, as the tools print them. Free the
 * text with kjit_free. Returns NULL only if memory is exhausted. */
KJIT_API char *kjit_copy_diagnostics_text(kjit_context *context);

/* Prints what failed, the status name and all diagnostics to stderr, for programs that
 * report errors in this way. action says what the program tried, for example "vector_add". action
 * and context can be NULL. If status is KJIT_OK, the function prints nothing. It keeps the
 * diagnostics. */
KJIT_API void kjit_print_error(kjit_context *context, kjit_status status, const char *action);

/* Returns a diagnostic as text with its source line and caret, for use in on_diagnostic. Free the
 * text with kjit_free. Returns NULL if memory is exhausted or diagnostic is NULL. */
KJIT_API char *kjit_copy_diagnostic_text(const kjit_diagnostic *diagnostic);

/* Frees memory that a copy function returned. Both parameters can be NULL. */
KJIT_API void kjit_free(kjit_context *context, void *memory);

/* Runs CPU launches on application threads.
 *
 * run must call body(data, index) exactly once for each index below count before it returns.
 * Otherwise the launch returns MISUSE. Several launches can call run at the same time. Small
 * launches, and all launches with concurrency 1, run on the launching thread without run. body can
 * be called from any thread. Do not leave body with longjmp or an exception. */
typedef struct kjit_executor {
  uint32_t size_bytes;  /* sizeof(kjit_executor) */
  uint32_t concurrency; /* bodies that run at the same time; 0 counts as 1 */
  void *user;           /* run's first argument */
  /* Runs the bodies. The threads that run them need a 128 KiB stack. kjit provides a larger stack
   * for code that needs it. */
  void (*run)(void *user, size_t count, void (*body)(void *data, size_t index), void *data);
} kjit_executor;

/* Provides the application's device memory in place of kjit's pool, for example from RMM or a
 * framework.
 *
 * kjit calls both functions for GPUs only, from any thread and from several threads at the same
 * time. The memory must be usable, and is released, in the order of stream; NULL means the default
 * stream. The functions must not call kjit functions that launch, allocate, release or wait.
 * allocate returns at least size_bytes, aligned to 256 bytes, or NULL. After NULL, kjit may release
 * pending memory and call allocate again. If this fails as well, the kjit call returns
 * DEVICE_MEMORY.
 *
 * kjit does not call allocate for a capturing stream; creating an array on such a stream returns
 * MISUSE. Memory that is lost with its device (kjit_reset_device) is released as well. Pinned,
 * mapped, managed and shared arrays always come from the driver. */
typedef struct kjit_device_allocator {
  uint32_t size_bytes; /* sizeof(kjit_device_allocator) */
  void *user;          /* both functions' first argument */
  /* returns memory or NULL */
  void *(*allocate)(void *user, kjit_device *device, size_t size_bytes, kjit_stream *stream);
  /* receives memory from allocate and the same size */
  void (*release)(void *user, kjit_device *device, void *memory, size_t size_bytes,
                  kjit_stream *stream);
} kjit_device_allocator;

/* Stores compiled code in place of the disk cache directory. Keys have 32 bytes.
 *
 * kjit calls the functions from any thread, and from several threads at the same time, while a
 * launch or kjit_specialize waits for the code. They may call any function that does not wait for
 * this code. kjit checks the returned data in the same way as a file: a damaged entry counts as a
 * miss. Anyone who can write to the store can make the process run any code, as with the directory.
 * release and store can be NULL if entries need no release or cannot be added. */
typedef struct kjit_cache_store {
  uint32_t size_bytes; /* sizeof(kjit_cache_store) */
  void *user;          /* all functions' first argument */
  /* returns 1 if it finds the key; data must stay valid until release */
  int (*load)(void *user, const uint8_t *key, const void **data, size_t *size_bytes);
  /* releases data from load; can be NULL */
  void (*release)(void *user, const void *data);
  /* adds an entry; can be called again for a key, with equivalent data */
  void (*store)(void *user, const uint8_t *key, const void *data, size_t size_bytes);
} kjit_cache_store;

/* Run-time checks in kernels. A thread that fails a check leaves the kernel, and the other threads
 * continue. The first failure is reported as KJIT_ERROR_KERNEL. `raise` is always compiled. */
enum {
  /* no checks */
  KJIT_CHECK_NONE = 0,
  /* indices and slices of arrays that are out of bounds */
  KJIT_CHECK_BOUNDS = 1,
  /* Integer divisions by 0, which return 0 without the check, and a `range` with step 0, which has
   * no iterations without the check. */
  KJIT_CHECK_INTEGER_DIVISION = 2,
  /* float and complex divisions by 0, which return an infinity or NaN without the check */
  KJIT_CHECK_FLOAT_DIVISION = 4,
  /* both checks of divisions */
  KJIT_CHECK_DIVISION = 6,
  /* conditions of `assert` that are false */
  KJIT_CHECK_ASSERT = 8,
  KJIT_CHECK_USUAL = 15, /* bounds, division and assert */
  /* A barrier that some threads in the block do not reach although they have not left the kernel.
   * This check and the next two exist only on the CPU. A GPU returns UNSUPPORTED. */
  KJIT_CHECK_BARRIER = 16,
  KJIT_CHECK_UNINITIALIZED = 32, /* reads of shared and local elements that were not written */
  /* Accesses to shared memory by two threads without a barrier between them, if one of them writes.
   * Two atomics do not race with each other. */
  KJIT_CHECK_RACES = 64,
  /* all checks above */
  KJIT_CHECK_ALL = 127
};

/* Trust in a source's author, which decides what the source may do
 * (docs/architecture/guests.md). */
typedef enum kjit_trust {
  /* As an argument, the trust in kjit_config.trust. In kjit_config.trust itself, HOST. In a
   * kjit_import_source, the trust of the importing source. */
  KJIT_TRUST_DEFAULT = 0,
  /* trusted like the application: the whole language is allowed */
  KJIT_TRUST_HOST = 1,
  /* Untrusted: kjit rejects (REFUSED) code that could access memory other than the launch's arrays,
   * and always compiles bounds checks, whatever the options are. */
  KJIT_TRUST_GUEST = 2
} kjit_trust;

/* The source for an import. kjit sets size_bytes and clears the other fields, and the application
 * fills them in. The strings must stay valid until the call of kjit_parse_module returns. */
typedef struct kjit_import_source {
  uint32_t size_bytes; /* this struct's size, set by kjit */
  /* The source's name in diagnostics, which also identifies it. kjit does not read a source again
   * if the module already has a source with this name. */
  const char *name;
  /* text in UTF-8 */
  const char *text;
  size_t text_bytes; /* text length without a terminating 0 */
  kjit_trust trust;  /* default: the importing source's trust */
} kjit_import_source;

/* Debug information in compiled kernels. FULL adds lines and variables for gdb and cuda-gdb and
 * turns optimization off. */
typedef enum kjit_debug {
  /* no debug information */
  KJIT_DEBUG_NONE = 0,
  /* lines, in optimized code */
  KJIT_DEBUG_LINES = 1,
  /* lines and variables, in code without optimization */
  KJIT_DEBUG_FULL = 2
} kjit_debug;

/* Limits for a single compilation, so that no kernel, even of a guest, can use up the time or
 * memory of the process.
 *
 * A compilation that exceeds a limit returns KJIT_ERROR_LIMIT, with the limit, the value and the
 * location in the diagnostic, and has no other effect. 0 means the default, KJIT_NO_LIMIT means no
 * limit. limits.def has the limits' names in the tools.
 *
 * kjit checks each limit when the value grows. It checks the time, and kjit_interrupt, between
 * statements and expressions, between passes, and before LLVM generates code, but not inside an
 * LLVM pass or during code generation. The time that these take depends on the number of
 * instructions. */
typedef struct kjit_compile_limits {
  uint32_t size_bytes; /* sizeof(kjit_compile_limits) */
  uint64_t time_ns;    /* the compiling thread's processor time; default 20 s */
  /* Function instances. Each function has an instance for each combination of argument types,
   * literals and funcs. Default 4096. */
  uint64_t instances;
  /* typed statements and expressions in all instances; default 4,000,000 */
  uint64_t expressions;
  /* statements and expressions in a loop's body, times the number of copies that `@unroll` of this
   * loop and of outer loops makes; default 32,768 */
  uint64_t unrolled;
  /* LLVM instructions that exist at the same time, including all copies of unrolled loops; default
   * 1,000,000 */
  uint64_t instructions;
  /* kjit's memory for the typed kernel IR and related data; default 4 GiB. LLVM's memory depends
   * on the instruction count. */
  uint64_t memory_bytes;
  uint64_t code_bytes; /* PTX, assembly or object size; default 64 MiB */
} kjit_compile_limits;
/* A kjit_compile_limits value that means no limit. */
#define KJIT_NO_LIMIT UINT64_MAX

/* Whether a launch or a call of a func (kjit_call_function) that finds no code may run plain code.
 * The compiler makes plain code with few optimizations, in a fifth of the time; for GPUs, the
 * driver translates it with few optimizations as well. The launch runs it at once, while a
 * background thread compiles the best code. Later launches run the best code as soon as it is ready
 * (kjit_wait_background). With KJIT_LAUNCH_NO_WAIT, launches run the first code that is ready.
 *
 * Plain code can take 100 times as long to run as the best code. A long kernel can therefore lose
 * more time by running plain code than it saves by not waiting for the best code.
 *
 * There is no plain code for captured launches, sealed kernels, function pointers
 * (kjit_get_function_pointer), and contexts with debug information or kjit_config.target. On GPUs,
 * plain code is also not used for kernels without loops, whose best code compiles as fast; for
 * kernels with wgmma, @cluster or grid_sync; for cooperative launches and launches with clusters;
 * for modules with code of the application; and for contexts with compile_in_child. If plain code
 * needs too many registers for the block of a launch, the launch waits for the best code. Disk
 * caches and blobs never contain plain code. */
typedef enum kjit_plain_code {
  KJIT_PLAIN_DEFAULT, /* the same as KJIT_PLAIN_NEVER */
  KJIT_PLAIN_NEVER,   /* the launch waits for the best code */
  /* Plain code only for kernels and funcs whose results have the same bits in plain code and in the
   * best code, except for the payloads of NaNs. This excludes kernels with products and sums of
   * floats, because the best code may fuse a product and a sum into one operation with one
   * rounding, and kernels with @fastmath or with functions on floats such as sin, min or max. On
   * GPUs it also excludes launches with kjit_launch_config.threads, because their block size
   * depends on the registers that the code uses. */
  KJIT_PLAIN_EQUAL,
  /* Plain code for all kernels and funcs. Until the best code is ready, float results can differ
   * from those of the best code in the last bits, as they can between two machines. */
  KJIT_PLAIN_ALWAYS
} kjit_plain_code;

/* Options of kjit_create_context. */
typedef struct kjit_config {
  uint32_t size_bytes;           /* sizeof(kjit_config) */
  const kjit_executor *executor; /* default NULL: kjit's threads; copied */
  /* default NULL: libkjit-compiler next to libkjit, then the loader's search path; loaded at
   * the first cache miss */
  const char *compiler_path;
  /* Math functions for GPUs: an LLVM bitcode file, or "libclc", which is part of the compiler
   * library and the same on every machine. The default NULL means libdevice from an installed CUDA
   * toolkit, or "libclc" without a toolkit. */
  const char *libdevice_path;
  /* Receives diagnostics, including warnings and remarks, as they arise. kjit calls it from any
   * thread, and from several threads at the same time. It must not call functions that launch,
   * wait, release or destroy. Default NULL. */
  void (*on_diagnostic)(void *user, const kjit_diagnostic *diagnostic);
  void *user;      /* on_diagnostic's first argument; kept */
  uint32_t checks; /* KJIT_CHECK_* for kernels; default KJIT_CHECK_NONE */
  /* The disk cache's directory, see cache.h. The default NULL means $XDG_CACHE_HOME/kjit or
   * $HOME/.cache/kjit, if it is an absolute path, otherwise no disk cache. "" means no disk
   * cache. */
  const char *cache_directory;
  /* The disk cache's maximum size. The least recently used entries are removed first. Default 0: 1
   * GiB. */
  uint64_t cache_limit_bytes;
  /* Receives the lines that kernels `print`: one or several whole lines in UTF-8, each with a
   * newline, and a terminating 0. Default NULL: the lines are dropped.
   *
   * kjit calls it from threads that are in a kjit call, one thread at a time and without holding
   * a lock. For a CPU launch the call comes before the launch returns, in block order.
   * For a GPU it comes from kjit_synchronize_*, kjit_copy, kjit_fill, kjit_export_array and
   * kjit_destroy_context, in thread order. If another thread is in on_print, that
   * thread receives the lines. on_print must not call functions on the context. */
  void (*on_print)(void *user, const char *text, size_t size_bytes);
  /* Size of a GPU's buffer for printed lines. A warning counts the lines that did not fit. Default
   * 0: 1 MiB. */
  uint64_t print_buffer_bytes;
  /* Folders, separated by `:`, that `import "file"` searches after the importing source's folder.
   * Default NULL: none. */
  const char *import_path;
  /* Resolves imports instead of opening files. If `import "name"` in the source called importer
   * refers to a source, the function fills it in and returns 1; otherwise it returns 0. Default
   * NULL: imports open files. Applications that run untrusted kernels set it, so that imports
   * cannot open files. */
  int (*find_import)(void *user, const char *importer, const char *name,
                     kjit_import_source *import);
  /* Number of threads that compile in the background. Default 0: the core count, at most 8. */
  uint32_t compile_threads;
  /* Maximum number of specializations of a kernel that differ only in facts. Further launches run a
   * specialization without facts. Default 0: 16. */
  uint32_t variant_limit;
  /* The loaded machine code's maximum size. kjit unloads code that was not launched recently and
   * loads it again on demand. Default 0: 256 MiB. */
  uint64_t code_limit_bytes;
  /* source of device memory; default NULL: each device's pool, see memory.h; copied */
  const kjit_device_allocator *device_allocator;
  /* store of compiled code; default NULL: cache_directory; copied */
  const kjit_cache_store *cache_store;
  /* debug information in compiled kernels; default KJIT_DEBUG_NONE; code with debug information is
   * not kept in the disk cache */
  kjit_debug debug;
  /* Maximum number of threads for a CPU launch, including the calling thread. kjit measures how
   * many threads are fastest and uses that number. 0 (default) means all cores available to the
   * process, or executor->concurrency. Values above 256 mean 256. */
  uint32_t cpu_threads;
  /* If not 0, kernels and functions called with kjit_call_function poll for interruption
   * (kjit_interrupt, kjit_interrupt_stream, kjit_interrupt_launches,
   * kjit_launch_config.time_limit_ns). Default 0. */
  int32_t interruptible;
  /* ignored; applications built with older headers have padding here */
  uint32_t reserved;
  /* trust in modules that are parsed or built without an explicit trust; default KJIT_TRUST_HOST */
  kjit_trust trust;
  /* path to the program that compiles in a child process; default NULL: kjit-compile-child, which
   * is installed with libkjit */
  const char *compile_child_path;
  /* Maximum time for a compilation in a child process. kjit then kills the process, and the
   * compilation fails. Default 0: 600 s. KJIT_NO_LIMIT means no limit. */
  uint64_t compile_child_limit_ns;
  /* If not 0, LLVM and the CUDA driver's assembler run in child processes, one for each
   * concurrent compilation. A crash is then one compilation's error KJIT_ERROR_COMPILER_LOST,
   * and the next compilation uses a new child. LLVM is not loaded into the application, and
   * debuggers do not see code compiled for the CPU. The application receives SIGCHLD when a child
   * ends. Default 0. */
  int32_t compile_in_child;
  /* for each compilation; default NULL: all limits have their defaults; copied */
  const kjit_compile_limits *compile_limits;
  /* Reports how compilations progress. Default NULL.
   *
   * When a stage starts, kjit passes the name of the kernel or func, and the name of the stage from
   * KJIT_STAGES: "typed", "llvm", "llvm-opt", then the requested stage, or "object" or "ptx" for
   * launches, and "cubin" if a driver generates machine code. stage is NULL at the end, after
   * success or failure. For child processes (compile_in_child) kjit reports only "typed" and the
   * end. For code from the disk cache it reports nothing. Several compiling threads can call
   * on_stage at the same time. The strings are valid until it returns. It must not call functions
   * of the context. */
  void (*on_stage)(void *user, const char *name, const char *stage);
  /* The machine that the context compiles for. NULL (default) means this machine's devices.
   * "sm_75" and up, "sm_90a", "x86-64-v2", "x86-64-v3" or "x86-64-v4" (on aarch64 "armv8-a")
   * create a context for kjit_export_cache and kjit_export_code. It has one GPU of that
   * architecture, or a CPU at that level, and needs no driver.
   *
   * A launch or an algorithm on this device compiles the kernels that it would run, and runs
   * nothing. Such a GPU's arrays have no values, and copying them to the host returns
   * KJIT_ERROR_UNSUPPORTED. For any other name, kjit_get_device returns KJIT_ERROR_ARGUMENT. */
  const char *target;
  /* The path of a file of compiled kernels, see kjit_open_cache. Launches search the file after the
   * disk cache. NULL (default) means the file installed with libkjit, if it exists and the disk
   * cache is on; "" means no file. If the file is damaged or cannot be used, launches compile, and
   * the first launch that searches the file reports a warning, not an error. */
  const char *shipped_cache;
  /* With a GPU as target, the path to ptxas, a CUDA toolkit's assembler; "" means that kjit
   * searches for ptxas like kjit_compile. kjit_export_cache then also has machine code for exactly
   * that architecture, which a launch prefers to the PTX. The PTX stays for drivers that are older
   * than ptxas. If there is no ptxas, a launch returns KJIT_ERROR_NO_COMPILER. NULL (default) means
   * that only PTX is kept. Without target, the field has no effect. */
  const char *ptxas;
  /* CPU device count; 0 (default) means 1, and at most 64 are possible. More devices behave like
   * several GPUs, so that programs for several GPUs can be tested without a GPU: an array belongs
   * to one device, and a launch on another device rejects it unless peer access is on. The devices
   * share the cores, and each of them can use host memory. Tensors of the arrays of several CPU
   * devices have DLPack's device type for extensions, 12. */
  uint32_t cpu_devices;
  /* ignored; applications built with older headers have padding here */
  uint32_t reserved_after_cpu_devices;
  /* Whether launches may run plain code until the best code is compiled; default
   * KJIT_PLAIN_DEFAULT. */
  kjit_plain_code plain_code;
} kjit_config;

/* Creates a context; config NULL means the defaults. The call loads neither LLVM nor the CUDA
 * driver.
 *
 * Errors: MEMORY, MISUSE (an executor without run, a device_allocator without one of its functions,
 * a cache_store without load, unknown values of trust, debug, checks or plain_code). After an error
 * there is no context with diagnostics, but on_diagnostic receives them. If size_bytes is 0, config
 * is not read at all, and there is no message. */
KJIT_API KJIT_CHECK kjit_status kjit_create_context(const kjit_config *config,
                                                    kjit_context **context);

/* Adds an owner and returns context, which can be NULL. Any thread may call it. */
KJIT_API kjit_context *kjit_retain_context(kjit_context *context);
/* Removes an owner of a context, which can be NULL. The last owner destroys the context.
 *
 * The call then waits for running launches and kjit_call_function calls; for interruptible code,
 * kjit_interrupt ends them earlier. It frees all devices, memory, code and threads of the context.
 * Objects that the application still holds (modules, arrays, streams, events, graphs, prepared
 * launches, plans, interrupters) can only be released or destroyed afterwards. Each of them
 * occupies a few hundred bytes until then. Other threads must not be in calls on objects that are
 * freed, except in calls for which this call waits.
 *
 * Any thread can call it, but not a callback inside another call on the context: a function called
 * by a kernel, an executor or another callback. Errors: MISUSE (called from a callback; nothing
 * changes), FORKED. */
KJIT_API kjit_status kjit_destroy_context(kjit_context *context);

/* Interrupts all launches with interruptible code (kjit_config.interruptible) so far on all devices
 * of the context, including queued launches, and all running kjit_call_function calls with such
 * code.
 *
 * Each launch ends with KJIT_ERROR_INTERRUPTED, which is reported like a kernel failure. Arrays
 * keep the values written so far, and all objects stay usable. Running compilations of the context
 * end with the same status when they next poll (see kjit_compile_limits), even without
 * kjit_config.interruptible. Compilations in child processes (compile_in_child) continue. Later
 * launches and compilations are not affected. The next compilation for the same kernel starts
 * again.
 *
 * The call returns immediately. Any thread and signal handlers can call it while the context
 * exists. */
KJIT_API void kjit_interrupt(kjit_context *context);

/* Waits for the compilations that run in the background. Cancels the compilations that have not
 * begun. From then on the context compiles in the calling thread, also for launches with
 * KJIT_LAUNCH_NO_WAIT. A process that exits without destroying the context calls this function
 * first: the compiler must not run while exit() destroys its data. kjit_interrupt shortens the
 * wait.
 *
 * Any thread can call it, but no signal handler and no kjit callback. If context is NULL, and in
 * a forked child, it does nothing. */
KJIT_API void kjit_stop_background(kjit_context *context);

/* Waits until no compilation runs or is queued in the background, such as the compilation of the
 * best code (kjit_plain_code), of a variant for more facts, or of kjit_specialize_async. Launches
 * of other threads can start further compilations meanwhile.
 *
 * Any thread can call it, but no callback of kjit. If a compilation fails, the launch that needs
 * its code reports the error. Errors: MISUSE (context is NULL, or a background thread calls),
 * FORKED. */
KJIT_API kjit_status kjit_wait_background(kjit_context *context);

/* Changes kjit_config.plain_code for launches and calls that begin afterwards. A later launch waits
 * for the best code if the existing plain code was compiled under a value that allows more plain
 * code. Compilations that have begun are not affected. Any thread can call it. Errors: MISUSE
 * (context is NULL, or an unknown value), FORKED. */
KJIT_API KJIT_CHECK kjit_status kjit_set_plain_code(kjit_context *context,
                                                    kjit_plain_code plain_code);

/* Counters of a context since its creation. */
typedef struct kjit_statistics {
  uint32_t size_bytes;  /* sizeof(kjit_statistics), set by the application */
  uint64_t launches;    /* number of launches */
  uint64_t memory_hits; /* launches that found their specialization in memory */
  /* compiled specializations, and funcs compiled for kjit_call_function or
   * kjit_get_function_pointer; plain code and the best code that replaces it count separately */
  uint64_t compilations;
  uint64_t compile_time_ns; /* wall time of compilations, summed over threads */
  uint64_t disk_hits;       /* specializations and funcs loaded from the disk cache */
  /* specializations and funcs that the disk cache did not have, or that were not usable */
  uint64_t disk_misses;
  uint64_t evictions; /* specializations unloaded because of kjit_config.code_limit_bytes */
  /* specializations loaded from blobs of kjit_import_code */
  uint64_t imports;
} kjit_statistics;

/* Returns a context's counters. Errors: MISUSE. */
KJIT_API kjit_status kjit_get_statistics(kjit_context *context, kjit_statistics *statistics);

#ifdef __cplusplus
}
#endif
#endif
