/* The code of funcs that the application calls: compiled as C functions, once for each combination
 * of argument types and compile-time values, and kept as long as the module. */
#ifndef KJ_LAUNCH_FUNCTION_CODE_H
#define KJ_LAUNCH_FUNCTION_CODE_H

#include "launch/steps.h"

/* State of the best code that is to replace plain code. */
typedef enum kj_best {
  KJ_BEST_WANTED, /* no thread compiles it; the next call queues it */
  KJ_BEST_QUEUED, /* a job is queued or running */
  KJ_BEST_ENDED   /* the best code exists, or cannot be compiled */
} kj_best;

struct kj_function_code {
  kj_job job; /* plain code: compiles the best code; must be the first member */
  kj_function_code *next;
  kjit_kernel *kernel;
  kj_code code;
  kj_loaded *loaded;
  void (*entry)(void);
  uint32_t checks;
  bool is_interruptible;
  kj_plain plain_kind; /* for plain code: the kind that the compilation allowed; otherwise NONE */
  _Atomic int best;    /* a kj_best; changed under kernel->mutex */
  pthread_cond_t changed;  /* signals that `best` has changed */
  kj_argument arguments[]; /* for each parameter: the argument type and compile-time value for
                              which the function was compiled */
};

/* Describes the calls for which the code of a func is compiled. */
typedef struct kj_function_key {
  const kj_argument *arguments; /* one for each parameter */
  uint32_t checks;
  bool is_interruptible;
} kj_function_key;

/* Finds the code or compiles it. allowed: the plain code that the call may run until a background
 * thread has compiled the best code. The code is valid as long as the module. The caller holds no
 * lock. Errors: see kjit_call_function. */
kjit_status kj_get_function_code(kjit_kernel *kernel, const kj_function_key *key, kj_plain allowed,
                                 kj_diagnostics *diagnostics, kj_function_code **code);

#endif
