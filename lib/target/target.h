/* The interface of the targets for lib/pipeline.c: state that lives as long as the compiler, and
 * one function for each target that compiles a typed kernel. */
#ifndef KJ_TARGET_TARGET_H
#define KJ_TARGET_TARGET_H

#include <stdbool.h>

#include "typing/typed.h"

/* nvptx.c. Several threads may emit code with one state at the same time. */
typedef struct kg_nvptx kg_nvptx;
/* libdevice_path is a file, KJ_OWN_LIBCLC or NULL. NULL means that libdevice of a CUDA toolkit is
 * searched when it is first needed; without a toolkit the compiler library's libclc is used. An
 * error is reported if a given file cannot be read. *nvptx is NULL on failure. */
kjit_status kg_create_nvptx(const char *libdevice_path, kj_diagnostics *diagnostics,
                            kg_nvptx **nvptx);
void kg_destroy_nvptx(kg_nvptx *nvptx); /* nvptx may be NULL */
/* Rejects an unknown architecture and a PTX version that is too low for it. Fails through kt_fail.
 * It runs before inference, so that the error comes first. */
void kg_check_nvptx(kt_compilation *c);
/* Lowers, optimizes and emits the code of request->stage into *c->code. The caller frees the code,
 * also after a failure. Fails through kt_fail. */
void kg_emit_nvptx(kg_nvptx *nvptx, kt_compilation *c);

/* host.c */
typedef struct kg_host kg_host;
kjit_status kg_create_host(kj_diagnostics *diagnostics, kg_host **host);
void kg_destroy_host(kg_host *host);
/* Returns the size in bytes of a vector register of a processor with this level. */
uint32_t kg_vector_bytes(const kg_host *host, kj_cpu_level level);
/* Like kg_emit_nvptx. The kernel must have passed kp_make_thread_loops. */
void kg_emit_host(kg_host *host, kt_compilation *c);
kjit_status kg_load_host(kg_host *host, const kj_code *code, const kj_outside *outside,
                         kj_diagnostics *diagnostics, kj_loaded **loaded, kj_cpu_kernel *kernel);
void kg_unload_host(kg_host *host, kj_loaded *loaded);

/* Guarded execution of code that may fault on damaged input. */

/* Runs run(data) and returns whether it has returned. If it raised a signal that would end the
 * process, kjit has abandoned it, and its resources are leaked. Only one thread at a time runs;
 * others wait. run must not jump out. */
bool kg_run_guarded(void (*run)(void *data), void *data);
/* Raises a fault if this thread is guarded; otherwise does nothing. */
void kg_fault_guarded(void);

#endif
