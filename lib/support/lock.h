/* The runtime's mutexes. Builds with assertions record which mutexes each thread holds. They assert
 * that every thread takes several mutexes in the same order, that it holds none while the host's
 * code runs, and that it holds the mutex of what it reads or changes (kj_is_locked_here). */
#ifndef KJ_LOCK_H
#define KJ_LOCK_H

#include <pthread.h>
#include <stdbool.h>

#include "support/assert.h"

/* A thread that holds one takes only those that stand further down. Two of one kind are never held
 * together. */
typedef enum kj_lock_order {
  KJ_LOCK_ALGORITHMS,      /* of the cache of their kernels */
  KJ_LOCK_RUNTIME,         /* context->runtime_mutex */
  KJ_LOCK_LOADED,          /* kj_runtime.loaded_mutex */
  KJ_LOCK_KERNEL,          /* kjit_kernel.mutex */
  KJ_LOCK_SPECIALIZATION,  /* kjit_specialization.mutex */
  KJ_LOCK_COMPILER,        /* kj_runtime.compiler_mutex */
  KJ_LOCK_BACKGROUND,      /* of the background threads */
  KJ_LOCK_COMPILE_THREADS, /* of the threads to which compilations are handed over */
  KJ_LOCK_CHILDREN,        /* of the child processes that compile */
  KJ_LOCK_AHEAD,           /* of the threads that compile ahead */
  KJ_LOCK_DISK,            /* kj_disk.mutex */
  KJ_LOCK_STREAMS,         /* of a device: its streams, captures, and the order between them */
  KJ_LOCK_POOL,            /* of a pool of memory; no driver call is made with it held */
  KJ_LOCK_PRINTS,          /* kj_prints.mutex */
  KJ_LOCK_INTERRUPTS,      /* kj_interrupts.mutex */
  KJ_LOCK_DEVICE,          /* kjit_device.mutex */
  KJ_LOCK_LINES,           /* kj_runtime.print_mutex */
  KJ_LOCK_OBJECTS,         /* kj_runtime.objects_mutex */
  KJ_LOCK_SINK,            /* kn_print_sink.mutex */
  KJ_LOCK_WORKERS          /* of the threads that help launches on the CPU */
} kj_lock_order;

/* lock.c: the mutexes that this thread holds, recorded in builds with assertions only. */
void kj_note_locked(const pthread_mutex_t *mutex, kj_lock_order order);
void kj_note_unlocked(const pthread_mutex_t *mutex, kj_lock_order order);
unsigned kj_count_locks(void);
/* For assertions: whether this thread holds the mutex. */
bool kj_is_locked_here(const pthread_mutex_t *mutex);

static inline void kj_lock(pthread_mutex_t *mutex, kj_lock_order order)
{
  if (KJ_HAS_ASSERTIONS) kj_note_locked(mutex, order); /* before it may wait for ever */
  pthread_mutex_lock(mutex);
}

static inline void kj_unlock(pthread_mutex_t *mutex, kj_lock_order order)
{
  pthread_mutex_unlock(mutex);
  if (KJ_HAS_ASSERTIONS) kj_note_unlocked(mutex, order);
}

/* Waits until the condition is signalled. The mutex is free meanwhile, so the caller has to hold
 * it. */
static inline void kj_wait_for(pthread_cond_t *changed, pthread_mutex_t *mutex)
{
  KJ_ASSERT(kj_is_locked_here(mutex));
  pthread_cond_wait(changed, mutex);
}

/* Ends a mutex that no thread holds any more. */
static inline void kj_destroy_mutex(pthread_mutex_t *mutex)
{
  int failure = pthread_mutex_destroy(mutex);
  KJ_ASSERT(!failure);
  (void)failure;
}

/* Before each call of the host's code (deleters, allocators, on_print, executors, stores): it may
 * wait for a lock of its own, whose holder may be waiting for one of kjit's. */
static inline void kj_assert_no_locks(void)
{
  if (KJ_HAS_ASSERTIONS) KJ_ASSERT(!kj_count_locks());
}

#endif
