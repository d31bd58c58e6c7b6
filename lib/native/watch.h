/* The checks for uninitialized memory and races on the CPU. A watch monitors a block's memory: it
 * records which bytes of the shared and local arrays the threads have written, and detects races in
 * shared memory. CPU code calls these functions. One worker thread runs all threads in a block, one
 * after the other.
 *
 * Two accesses to a byte race if all of the following is true: they come from different threads, at
 * least one access is a write, at least one access is not atomic, and no synchronization orders the
 * accesses. A chain of synchronizations (block barriers and syncwarps) orders two accesses if both
 * threads take part in it. Time is the number of synchronizations that have been executed. For each
 * pair of threads, the watch stores the time up to which the accesses of one thread happen before
 * the next access of the other thread. docs/architecture/checks.md has more details. */
#ifndef KJ_NATIVE_WATCH_H
#define KJ_NATIVE_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A set of accesses of the same kind since the last barrier of the whole block. Accesses that
 * happen before a later access in the set are removed. `time` is the time of the latest access. If
 * it is before that barrier, the set is empty. */
typedef enum kn_watch_members {
  KJ_WATCH_ONE, /* `where` is the thread */
  /* threads of one unit; `where` is the index of a vector with a time for each thread of the unit;
   * the time is 0 if the thread is not in the set */
  KJ_WATCH_VECTOR,
  /* threads of several units; no synchronization orders all of them before any single thread */
  KJ_WATCH_UNITS
} kn_watch_members;
typedef struct kn_watch_set {
  uint32_t time;
  uint32_t where;
  uint16_t unit, members; /* members is a kn_watch_members */
} kn_watch_set;

/* The state of one byte. A time of 0 means that there was no such access. */
typedef struct kn_watch_cell {
  /* the times of the last write, and of the last write that was not atomic */
  uint32_t written, stored;
  uint16_t writer, storer;
  /* accesses since the last write that was not atomic */
  kn_watch_set reads, atomic_reads, atomic_writes;
} kn_watch_cell;

/* The watch of a worker thread. It must be zeroed before the worker's first block. */
typedef struct kn_watch {
  /* the current time, the time at which the block began, and the time of the last barrier of the
   * whole block */
  uint32_t time, block, barrier;
  uint32_t threads; /* number of threads in a block */
  /* Number of threads in a unit. A unit is a warp or, if the kernel has a barrier that only some
   * threads in a block may reach, the whole block. Only barriers of the whole block order threads
   * of different units. */
  uint32_t unit;
  bool is_exhausted; /* memory is exhausted, so races are no longer reported */
  /* size of the monitored memory in bytes, which is also the number of cells */
  uint64_t size_bytes;
  /* knows[b * unit + a] is a time: the accesses that thread a of b's unit made before that time
   * happen before the next access of thread b. */
  uint32_t *knows;
  /* vectors of `unit` times each, which are reused after each barrier of the whole block */
  uint32_t *vectors;
  size_t vector_count, vector_capacity;
  uint64_t padding[1];
  kn_watch_cell cells[];
} kn_watch;

/* The kind of an access, and the checks that are enabled. */
enum {
  KJ_WATCH_READ = 1,
  KJ_WATCH_WRITE = 2,
  KJ_WATCH_ATOMIC = 4,
  KJ_WATCH_LOCAL = 8,
  KJ_WATCH_UNINITIALIZED = 16,
  KJ_WATCH_RACES = 32
};
/* The result for an access, in the low byte. The bytes above it hold the number of the other
 * thread, or KJ_WATCH_SEVERAL. */
typedef enum kn_watch_result {
  KJ_WATCH_FINE,
  KJ_WATCH_UNWRITTEN,
  KJ_WATCH_WAS_WRITTEN,
  KJ_WATCH_WAS_READ
} kn_watch_result;
enum { KJ_WATCH_RESULT_BITS = 8, KJ_WATCH_SEVERAL = 1024 };

/* Starts a block. unit: see kn_watch. */
#define KJ_WATCH_BLOCK_FUNCTION "kn_watch_block"
void kn_watch_block(kn_watch *watch, uint64_t size_bytes, uint32_t threads, uint32_t unit);

/* Records a barrier of the block. meets[b] is nonzero if thread b waits at the barrier or has left
 * the kernel. NULL means that all threads wait. */
#define KJ_WATCH_BARRIER_FUNCTION "kn_watch_barrier"
void kn_watch_barrier(kn_watch *watch, const uint32_t *meets);

/* Records a syncwarp. masks[b] is the mask that thread b has passed, or 0 if it does not take part.
 * Threads of a warp synchronize with each other if they pass the same mask and the mask contains
 * them. */
#define KJ_WATCH_WARPS_FUNCTION "kn_watch_warps"
void kn_watch_warps(kn_watch *watch, const uint32_t *masks);

/* Checks and records an access to the bytes [offset, offset + size). Call it before the access. */
#define KJ_WATCH_ACCESS_FUNCTION "kn_watch_access"
uint64_t kn_watch_access(kn_watch *watch, uint64_t offset, uint64_t size, uint32_t how,
                         uint32_t thread);

/* Frees the memory that the watch has allocated, but not the watch itself. Call it after the last
 * block of the worker. */
void kn_end_watch(kn_watch *watch);

#endif
