/* The targets, as lib/pipeline.c sees them: state that lives as long as the compiler, and one entry
 * each that takes a typed kernel to code. */
#ifndef KJ_TARGET_TARGET_H
#define KJ_TARGET_TARGET_H

#include <stdbool.h>

#include "typing/typed.h"

/* nvptx.c. Any number of threads at once may emit with one state. */
typedef struct kg_nvptx kg_nvptx;
/* libdevice_path may be KJ_OWN_LIBCLC, or NULL: libdevice of a CUDA toolkit is looked for when it
 * is first needed, and libclc of the compiler library is used where there is none. A given path
 * must be readable: reported through diagnostics otherwise. *nvptx is NULL on failure. */
kjit_status kg_create_nvptx(const char *libdevice_path, kj_diagnostics *diagnostics,
                            kg_nvptx **nvptx);
void kg_destroy_nvptx(kg_nvptx *nvptx); /* NULL is fine */
/* Refuses what cannot be compiled for: an unknown architecture, a PTX version below what it needs.
 * Fails through kt_fail; before inference, so that errors are plain. */
void kg_check_nvptx(kt_compilation *c);
/* Lowers, optimizes and emits what request->stage asks for into *c->code (freed by the caller after
 * a failure too). Fails through kt_fail. */
void kg_emit_nvptx(kg_nvptx *nvptx, kt_compilation *c);

/* host.c */
typedef struct kg_host kg_host;
kjit_status kg_create_host(kj_diagnostics *diagnostics, kg_host **host);
void kg_destroy_host(kg_host *host);
/* Of a vector register of a processor with that level. */
uint32_t kg_vector_bytes(const kg_host *host, kj_cpu_level level);
/* As kg_emit_nvptx; the kernel has gone through kp_make_thread_loops. */
void kg_emit_host(kg_host *host, kt_compilation *c);
kjit_status kg_load_host(kg_host *host, const kj_code *code, const kj_outside *outside,
                         kj_diagnostics *diagnostics, kj_loaded **loaded, kj_cpu_kernel *kernel);
void kg_unload_host(kg_host *host, kj_loaded *loaded);

/* Running what may fault on damaged input. */

/* Whether run(data) has returned. If not, it made a signal that ends processes, and has been left
 * in the middle: what it held is lost. One thread at a time; the others wait. run must not jump
 * out. */
bool kg_run_guarded(void (*run)(void *data), void *data);
/* As a fault, where this thread is guarded; else nothing. */
void kg_fault_guarded(void);

#endif
