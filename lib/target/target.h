/* The interface of the targets for lib/pipeline.c: a table of functions for each target. */
#ifndef KJ_TARGET_TARGET_H
#define KJ_TARGET_TARGET_H

#include <stdbool.h>

#include "typing/typed.h"

/* State of a target that lives as long as the compiler. Several threads may emit code with one
 * state at the same time. */
typedef void kg_state;

typedef struct kg_target {
  /* *state is NULL on failure. libdevice_path is for GPUs: a file, KJ_OWN_LIBCLC or NULL. NULL
   * means that libdevice of a CUDA toolkit is searched when it is first needed; without a toolkit
   * the compiler library's libclc is used. An error is reported if a given file cannot be read. */
  kjit_status (*create)(const char *libdevice_path, kj_diagnostics *diagnostics, kg_state **state);
  void (*destroy)(kg_state *state); /* state may be NULL */
  /* Returns the size in bytes of a thread's widest load or store. */
  uint32_t (*vector_bytes)(const kg_state *state, const kj_target *target);
  /* Rejects a target that the request must not name. Runs before inference, so that its error comes
   * first. Fails through kt_fail. May be NULL. */
  void (*check)(kt_compilation *c);
  /* Lowers, optimizes and emits the code of request->stage into *c->code. The caller frees the
   * code, also after a failure. Fails through kt_fail. */
  void (*emit)(kg_state *state, kt_compilation *c);
} kg_target;

extern const kg_target kg_nvptx_target; /* nvptx.c */
/* host.c. A kernel must have passed kp_make_thread_loops. */
extern const kg_target kg_host_target;

/* host_load.c: load an OBJECT into this process. host is the state of kg_host_target. */
kjit_status kg_load_host(kg_state *host, const kj_code *code, const kj_outside *outside,
                         kj_diagnostics *diagnostics, kj_loaded **loaded, kj_cpu_kernel *kernel);
void kg_unload_host(kj_loaded *loaded);

/* Guarded execution of code that may fault on damaged input. */

/* Runs run(data) and returns whether it has returned. If run raised a signal that would end the
 * process, kjit has abandoned it, and its resources are leaked. Only one thread at a time runs;
 * others wait. run must not jump out. */
bool kg_run_guarded(void (*run)(void *data), void *data);
/* Raises a fault if this thread is guarded; otherwise does nothing. */
void kg_fault_guarded(void);

#endif
