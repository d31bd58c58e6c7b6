/* The table of functions that each target provides to lib/pipeline.c. */
#ifndef KJ_TARGET_TARGET_H
#define KJ_TARGET_TARGET_H

#include <stdbool.h>

#include "typing/typed.h"

/* The state of a target, which lives as long as the compiler. Several threads can emit code with
 * the same state at the same time. */
typedef void kg_state;

typedef struct kg_target {
  /* Creates the state of the target. On failure, sets *state to NULL. libdevice_path, for GPUs, is
   * a file, KJ_OWN_LIBCLC or NULL. If libdevice_path is NULL, kjit searches for libdevice in a CUDA
   * toolkit when it needs a function for the first time; if there is no toolkit, it uses the libclc
   * in the compiler library. A given file that cannot be read is an error. */
  kjit_status (*create)(const char *libdevice_path, kj_diagnostics *diagnostics, kg_state **state);
  void (*destroy)(kg_state *state); /* state may be NULL */
  /* Returns the size in bytes of the widest load or store of a thread. */
  uint32_t (*vector_bytes)(const kg_state *state, const kj_target *target);
  /* Rejects a request whose target is not supported. Runs before type inference, so that this error
   * is reported first. Reports errors with kt_fail. Can be NULL. */
  void (*check)(kt_compilation *c);
  /* Lowers, optimizes and emits the code of request->stage and stores it in *c->code. The caller
   * frees the code, even if there is an error. Reports errors with kt_fail. */
  void (*emit)(kg_state *state, kt_compilation *c);
} kg_target;

extern const kg_target kg_nvptx_target; /* nvptx.c */
/* host.c. kp_make_thread_loops must have converted the kernel. */
extern const kg_target kg_host_target;

/* host_load.c: loads an OBJECT into this process. host is the state of kg_host_target. */
kjit_status kg_load_host(kg_state *host, const kj_code *code, const kj_outside *outside,
                         kj_diagnostics *diagnostics, kj_loaded **loaded, kj_cpu_kernel *kernel);
void kg_unload_host(kj_loaded *loaded);

/* ---- execution of code that can fault on damaged input ---- */

/* Runs run(data) and returns whether it has returned. If run raises a signal that would end the
 * process, it does not return, and its resources are leaked. Only one thread at a time can use this
 * function; other threads wait. run must not jump out of the function. */
bool kg_run_guarded(void (*run)(void *data), void *data);
/* If this thread is inside kg_run_guarded, raises a fault, otherwise does nothing. */
void kg_fault_guarded(void);

#endif
