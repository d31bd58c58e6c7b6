/* The targets, as lib/pipeline.c sees them: state that lives as long as the compiler, and one entry
 * each that takes a typed kernel to code. */
#ifndef KJ_TARGET_TARGET_H
#define KJ_TARGET_TARGET_H

#include <stdbool.h>

#include "typing/typed.h"

/* nvptx.c. Any number of threads at once may emit with one state. */
typedef struct kj_nvptx kj_nvptx;
/* libdevice_path may be NULL: the CUDA toolkit's libdevice, else libclc's library for nvptx is
 * looked for, when first needed. A given path must be readable: reported through diagnostics
 * otherwise. *nvptx is NULL on failure. */
kjit_status kj_create_nvptx(const char *libdevice_path, kj_diagnostics *diagnostics,
                            kj_nvptx **nvptx);
void kj_destroy_nvptx(kj_nvptx *nvptx); /* NULL is fine */
/* Refuses what cannot be compiled for: an unknown architecture, a PTX version below what it needs.
 * Fails through kj_fail; before inference, so that errors are plain. */
void kj_check_nvptx(kj_compilation *c);
/* Lowers, optimizes and emits what request->stage asks for into *c->code (freed by the caller after
 * a failure too). Fails through kj_fail. */
void kj_emit_nvptx(kj_nvptx *nvptx, kj_compilation *c);

/* host.c */
typedef struct kj_host kj_host;
kjit_status kj_create_host(kj_diagnostics *diagnostics, kj_host **host);
void kj_destroy_host(kj_host *host);
/* As kj_emit_nvptx; the kernel has gone through kj_make_thread_loops. */
void kj_emit_host(kj_host *host, kj_compilation *c);
kjit_status kj_load_host(kj_host *host, const kj_code *code, const kj_outside *outside,
                         kj_diagnostics *diagnostics, kj_loaded **loaded, kj_cpu_kernel *kernel);
void kj_unload_host(kj_host *host, kj_loaded *loaded);

/* Running what may fault on damaged input. */

/* Whether run(data) has returned. If not, it made a signal that ends processes, and has been left
 * in the middle: what it held is lost. One thread at a time; the others wait. run must not jump
 * out. */
bool kj_run_guarded(void (*run)(void *data), void *data);
/* As a fault, where this thread is guarded; else nothing. */
void kj_fault_guarded(void);

#endif
