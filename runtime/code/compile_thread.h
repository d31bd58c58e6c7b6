/* Threads that compile. LLVM is recursive, so the compiler needs a large stack and never runs on a
 * stack of the application, which may be small. */
#ifndef KJ_COMPILE_THREAD_H
#define KJ_COMPILE_THREAD_H

#include <pthread.h>

#include "base/runtime.h"

/* A thread with a large stack. Only the part of the stack that was touched uses memory, and most of
 * this memory is released after each compilation. The thread blocks all signals, so signals of the
 * process go to the application's threads. The thread has the default floating-point
 * environment. */
typedef struct kj_large_thread {
  pthread_t thread;
  void *stack; /* a separate mapping */
} kj_large_thread;

/* Starts a thread that calls run(data). Returns false if the system cannot create the thread or has
 * no address space for its stack. */
bool kj_start_large_thread(kj_large_thread *thread, void *(*run)(void *data), void *data);
void kj_join_large_thread(kj_large_thread *thread);

/* Calls the functions of the compiler (kj_compiler_interface) from any thread. The functions run on
 * a thread with a large stack, or directly if the calling thread has a large stack. The calling
 * thread waits, and cannot be cancelled while it waits. The calling thread must hold no lock;
 * callers of kj_create_compiler hold the compiler's lock. Returns the errors of the called
 * function, or MEMORY if no thread can be created. */
kjit_status kj_create_compiler(kj_runtime *runtime, kj_diagnostics *diagnostics);
kjit_status kj_call_compiler(kj_runtime *runtime, const kj_compile_request *request,
                             kj_diagnostics *diagnostics, kj_code *code);
/* Like kj_call_compiler, but never calls kjit_config.on_stage. */
kjit_status kj_call_compiler_unseen(kj_runtime *runtime, const kj_compile_request *request,
                                    kj_diagnostics *diagnostics, kj_code *code);
kjit_status kj_call_loader(kj_runtime *runtime, const kj_code *code, const kj_outside *outside,
                           kj_diagnostics *diagnostics, kj_loaded **loaded, kj_cpu_kernel *kernel);

/* Calls kjit_config.on_stage with the next stage of the compilation with this name.
 * KJIT_STAGE_COUNT means that the compilation has ended. */
void kj_tell_stage(kjit_context *context, const char *name, kjit_stage stage);

bool kj_open_compile_threads(kj_runtime *runtime); /* returns false if memory is exhausted */
/* Ends the threads. No compilation may be in progress. */
void kj_close_compile_threads(kj_runtime *runtime);

#endif
