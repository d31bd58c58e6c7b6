/* Threads of kjit's own that compile. LLVM recurses over what it compiles, so the compiler never
 * runs on a stack of the host's, which may be as small as the host likes. */
#ifndef KJ_COMPILE_THREAD_H
#define KJ_COMPILE_THREAD_H

#include <pthread.h>

#include "base/runtime.h"

/* A thread whose stack is large. Only what was touched of it is memory, and the rest of that is
 * given back after each compilation. Signals of the process go to the host's threads; the
 * floating-point environment is the default one. */
typedef struct kj_large_thread {
  pthread_t thread;
  void *stack; /* its own mapping */
} kj_large_thread;

/* False: the system gives no thread, or no address space for its stack. */
bool kj_start_large_thread(kj_large_thread *thread, void *(*run)(void *data), void *data);
void kj_join_large_thread(kj_large_thread *thread);

/* The compiler's functions (kj_compiler_interface), for any thread: called on a large one, on the
 * spot where this is one. The caller waits, cannot be cancelled meanwhile, and holds no lock but,
 * for kj_create_compiler, the compiler's. Errors: theirs; MEMORY where there is no thread. */
kjit_status kj_create_compiler(kj_runtime *runtime, kj_diagnostics *diagnostics);
kjit_status kj_call_compiler(kj_runtime *runtime, const kj_compile_request *request,
                             kj_diagnostics *diagnostics, kj_code *code);
/* The same without telling kjit_config.on_stage. */
kjit_status kj_call_compiler_unseen(kj_runtime *runtime, const kj_compile_request *request,
                                    kj_diagnostics *diagnostics, kj_code *code);
kjit_status kj_call_loader(kj_runtime *runtime, const kj_code *code, const kj_outside *outside,
                           kj_diagnostics *diagnostics, kj_loaded **loaded, kj_cpu_kernel *kernel);

/* For kjit_config.on_stage: what the compilation of that name makes next; KJIT_STAGE_COUNT: it has
 * ended. */
void kj_tell_stage(kjit_context *context, const char *name, kjit_stage stage);

bool kj_open_compile_threads(kj_runtime *runtime); /* false: out of memory */
/* Nobody compiles any more. */
void kj_close_compile_threads(kj_runtime *runtime);

#endif
