/* The runtime's mutexes. In builds with assertions, kjit records which mutexes each thread holds,
 * and checks three rules. All threads lock mutexes in the same order. A thread holds no mutex while
 * code of the application runs. A thread holds the mutex that protects the data that it accesses
 * (kj_is_locked_here). */
#ifndef KJ_LOCK_H
#define KJ_LOCK_H

#include <pthread.h>
#include <stdbool.h>

#include "support/assert.h"

/* The order of mutexes. A thread that holds a mutex can lock only mutexes that come later in this
 * list. It never holds two mutexes with the same order. */
typedef enum kj_lock_order {
  KJ_LOCK_ALGORITHMS,      /* the cache of the algorithms' kernels */
  KJ_LOCK_RUNTIME,         /* context->runtime_mutex */
  KJ_LOCK_LOADED,          /* kj_runtime.loaded_mutex */
  KJ_LOCK_KERNEL,          /* kjit_kernel.mutex */
  KJ_LOCK_SPECIALIZATION,  /* kjit_specialization.mutex */
  KJ_LOCK_COMPILER,        /* kj_runtime.compiler_mutex */
  KJ_LOCK_BACKGROUND,      /* the background threads */
  KJ_LOCK_COMPILE_THREADS, /* the threads that run compilations for other threads */
  KJ_LOCK_CHILDREN,        /* the child processes that compile */
  KJ_LOCK_AHEAD,           /* the threads that compile kernels before they are launched */
  KJ_LOCK_DISK,            /* kj_disk.mutex */
  KJ_LOCK_STREAMS,         /* streams and captures of a device */
  KJ_LOCK_POOL,            /* a memory pool; it is never held during a driver call */
  KJ_LOCK_PRINTS,          /* kj_prints.mutex */
  KJ_LOCK_INTERRUPTS,      /* kj_interrupts.mutex */
  KJ_LOCK_STACK_LIMIT,     /* the stack limit of GPU threads (cuda_device.c) */
  KJ_LOCK_DEVICE,          /* kjit_device.mutex */
  KJ_LOCK_LINES,           /* kj_runtime.print_mutex */
  KJ_LOCK_OBJECTS,         /* kj_runtime.objects_mutex */
  KJ_LOCK_SINK,            /* kn_print_sink.mutex */
  KJ_LOCK_WORKERS          /* the worker threads of CPU launches */
} kj_lock_order;

/* Record the mutexes that this thread holds (lock.c). Only builds with assertions call them. */
void kj_note_locked(const pthread_mutex_t *mutex, kj_lock_order order);
void kj_note_unlocked(const pthread_mutex_t *mutex, kj_lock_order order);
unsigned kj_count_locks(void);
/* Returns whether this thread holds the mutex, for assertions. */
bool kj_is_locked_here(const pthread_mutex_t *mutex);

static inline void kj_lock(pthread_mutex_t *mutex, kj_lock_order order)
{
  /* recorded before the lock, because a lock that causes a deadlock never returns */
  if (KJ_HAS_ASSERTIONS) kj_note_locked(mutex, order);
  pthread_mutex_lock(mutex);
}

static inline void kj_unlock(pthread_mutex_t *mutex, kj_lock_order order)
{
  pthread_mutex_unlock(mutex);
  if (KJ_HAS_ASSERTIONS) kj_note_unlocked(mutex, order);
}

/* Waits until the condition variable is signalled. The caller must hold the mutex, which the wait
 * releases. */
static inline void kj_wait_for(pthread_cond_t *changed, pthread_mutex_t *mutex)
{
  KJ_ASSERT(kj_is_locked_here(mutex));
  pthread_cond_wait(changed, mutex);
}

/* Destroys a mutex that no thread holds. */
static inline void kj_destroy_mutex(pthread_mutex_t *mutex)
{
  int failure = pthread_mutex_destroy(mutex);
  KJ_ASSERT(!failure);
  (void)failure;
}

/* Must be called before each call of the application's code (deleters, allocators, on_print,
 * executors, stores). Otherwise there can be a deadlock: the application's code can wait for a lock
 * of the application, while the thread that holds this lock waits for a lock of kjit. */
static inline void kj_assert_no_locks(void)
{
  if (KJ_HAS_ASSERTIONS) KJ_ASSERT(!kj_count_locks());
}

#endif
