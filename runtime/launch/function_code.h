/* The code of funcs that the application calls: compiled as C functions, once for each combination
 * of argument types and compile-time values, and kept as long as the module. */
#ifndef KJ_LAUNCH_FUNCTION_CODE_H
#define KJ_LAUNCH_FUNCTION_CODE_H

#include "code/disk.h"
#include "cpu/cpu.h"
#include "launch/steps.h"

/* State of the best code that is to replace plain code. */
typedef enum kj_best {
  KJ_BEST_WANTED, /* no thread compiles it; the next call queues it */
  KJ_BEST_QUEUED, /* a job is queued or running */
  KJ_BEST_ENDED   /* the best code exists, or cannot be compiled */
} kj_best;

struct kj_function_code {
  kj_job job; /* for plain code: the job that compiles the best code; must be the first member */
  kj_function_code *next;
  kjit_kernel *kernel;
  kj_code code;
  kj_loaded *loaded; /* compiled code; NULL for code from the disk cache */
  kj_image *image;   /* code from the disk cache, or NULL */
  void (*entry)(void);
  uint32_t checks;
  bool is_interruptible;
  kj_plain plain_kind; /* for plain code: the kind that the compilation allowed; otherwise NONE */
  _Atomic int best;    /* a kj_best; changed under kernel->mutex */
  pthread_cond_t changed;  /* signals that `best` has changed */
  kj_argument arguments[]; /* for each parameter: the argument type and compile-time value for
                              which the function was compiled */
};

/* Describes the calls for which a func's code is compiled. */
typedef struct kj_function_key {
  const kj_argument *arguments; /* one for each parameter */
  uint32_t checks;
  bool is_interruptible;
} kj_function_key;

/* Finds the code or compiles it. allowed: the kinds of plain code that the call may run until a
 * background thread has compiled the best code. The code is valid as long as the module. The caller
 * holds no lock. Errors: see kjit_call_function. */
kjit_status kj_get_function_code(kjit_kernel *kernel, const kj_function_key *key, kj_plain allowed,
                                 kj_diagnostics *diagnostics, kj_function_code **code);

/* ---- function_disk.c: functions and errors of their compilation in the disk cache ---- */

/* Makes the key of the best code for a request. Returns false if no cache is used, or if memory is
 * exhausted. */
bool kj_make_function_key(const kjit_kernel *kernel, const kj_compile_request *request,
                          kj_disk_key *key);
/* Loads stored code into `made`, whose arguments and kernel are set, and sets *status to OK. If the
 * cache has the error of a compilation instead, adds the error to the messages and sets *status to
 * its status. Returns false if the cache has neither, or if the code cannot be loaded. */
bool kj_fetch_function(const kj_compile_request *request, const kj_disk_key *key,
                       kj_function_code *made, kj_diagnostics *diagnostics, kjit_status *status);
/* Stores compiled code if a new process can load it. Must be called while code.data of `made` still
 * exists. */
void kj_publish_function(const kj_compile_request *request, const kj_disk_key *key,
                         kj_function_code *made);
/* Stores the error of a failed compilation, if applications may handle it. The messages of the
 * compilation start at index `first`. */
void kj_publish_error(const kj_compile_request *request, const kj_disk_key *key,
                      const kj_diagnostics *diagnostics, size_t first, kjit_status status);

#endif
