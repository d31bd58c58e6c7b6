/* The runtime's mutexes. Builds with assertions record which mutexes each thread holds. They check
 * that all threads lock mutexes in the same order, that a thread holds no mutex while the
 * application's code runs, and that it holds the mutex of the data that it accesses
 * (kj_is_locked_here). */
#ifndef KJ_LOCK_H
#define KJ_LOCK_H

#include <pthread.h>
#include <stdbool.h>

#include "support/assert.h"

/* The order of mutexes. A thread that holds a mutex may lock only mutexes further down in this
 * list. It never holds two mutexes of the same kind. */
typedef enum kj_lock_order {
  KJ_LOCK_ALGORITHMS,      /* the cache of the algorithms' kernels */
  KJ_LOCK_RUNTIME,         /* context->runtime_mutex */
  KJ_LOCK_LOADED,          /* kj_runtime.loaded_mutex */
  KJ_LOCK_KERNEL,          /* kjit_kernel.mutex */
  KJ_LOCK_SPECIALIZATION,  /* kjit_specialization.mutex */
  KJ_LOCK_COMPILER,        /* kj_runtime.compiler_mutex */
  KJ_LOCK_BACKGROUND,      /* the background threads */
  KJ_LOCK_COMPILE_THREADS, /* the threads that run compilations of other threads */
  KJ_LOCK_CHILDREN,        /* the child processes that compile */
  KJ_LOCK_AHEAD,           /* the threads that compile ahead of time */
  KJ_LOCK_DISK,            /* kj_disk.mutex */
  KJ_LOCK_STREAMS,         /* streams and captures of a device, and their order */
  KJ_LOCK_POOL,            /* a memory pool; never held during a driver call */
  KJ_LOCK_PRINTS,          /* kj_prints.mutex */
  KJ_LOCK_INTERRUPTS,      /* kj_interrupts.mutex */
  KJ_LOCK_DEVICE,          /* kjit_device.mutex */
  KJ_LOCK_LINES,           /* kj_runtime.print_mutex */
  KJ_LOCK_OBJECTS,         /* kj_runtime.objects_mutex */
  KJ_LOCK_SINK,            /* kn_print_sink.mutex */
  KJ_LOCK_WORKERS          /* the worker threads of CPU launches */
} kj_lock_order;

/* lock.c: records the mutexes that this thread holds, in builds with assertions only. */
void kj_note_locked(const pthread_mutex_t *mutex, kj_lock_order order);
void kj_note_unlocked(const pthread_mutex_t *mutex, kj_lock_order order);
unsigned kj_count_locks(void);
/* Returns whether this thread holds the mutex, for assertions. */
bool kj_is_locked_here(const pthread_mutex_t *mutex);

static inline void kj_lock(pthread_mutex_t *mutex, kj_lock_order order)
{
  if (KJ_HAS_ASSERTIONS) kj_note_locked(mutex, order); /* before it can block in a deadlock */
  pthread_mutex_lock(mutex);
}

static inline void kj_unlock(pthread_mutex_t *mutex, kj_lock_order order)
{
  pthread_mutex_unlock(mutex);
  if (KJ_HAS_ASSERTIONS) kj_note_unlocked(mutex, order);
}

/* Waits until the condition is signalled. The caller holds the mutex; the wait releases it. */
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

/* Must precede each call of the application's code (deleters, allocators, on_print, executors,
 * stores). The application's code can wait for a lock of the application, whose holder may be
 * waiting for a lock of kjit. */
static inline void kj_assert_no_locks(void)
{
  if (KJ_HAS_ASSERTIONS) KJ_ASSERT(!kj_count_locks());
}

#endif
