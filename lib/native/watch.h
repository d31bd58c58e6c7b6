/* Watched memory of a block on the CPU: records which bytes of its shared and local arrays the
 * threads have written, and finds races in shared memory. CPU code calls these functions. One
 * worker runs all threads of a block, one after the other.
 *
 * Two accesses to a byte race if they come from different threads, at least one is a write, at
 * least one is not atomic, and no synchronization orders them. Accesses are ordered by a chain of
 * synchronizations (block barriers and syncwarps) in which both threads take part. Time is the
 * number of synchronizations so far. For each pair of threads, the watch knows the time up to which
 * the accesses of one thread happen before the next access of the other. See
 * docs/architecture/checks.md. */
#ifndef KJ_NATIVE_WATCH_H
#define KJ_NATIVE_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A set of accesses of one kind since the last barrier of the whole block. Accesses that happen
 * before a later one of the set are dropped. `time` is the time of the latest access; the set is
 * empty if `time` is before that barrier. */
typedef enum kn_watch_members {
  KJ_WATCH_ONE, /* `where` is the thread */
  /* threads of one unit; `where` is the index of a vector with the time of each, or 0 for threads
   * not in the set */
  KJ_WATCH_VECTOR,
  /* threads of several units; no synchronization orders all of them before any one thread */
  KJ_WATCH_UNITS
} kn_watch_members;
typedef struct kn_watch_set {
  uint32_t time;
  uint32_t where;
  uint16_t unit, members; /* members is a kn_watch_members */
} kn_watch_set;

/* State of one byte. A time of 0 means never. */
typedef struct kn_watch_cell {
  uint32_t written, stored; /* times of the last write, and of the last write that was not atomic */
  uint16_t writer, storer;
  kn_watch_set reads, atomic_reads, atomic_writes; /* since the last write that was not atomic */
} kn_watch_cell;

/* The watch of a worker, zeroed before the worker's first block. */
typedef struct kn_watch {
  /* the current time, the time when the block began, the time of the last barrier of the whole
   * block */
  uint32_t time, block, barrier;
  uint32_t threads; /* number of threads of a block */
  /* Number of threads of a unit. Only barriers of the whole block order threads of different units.
   * A unit is a warp, or the block if only some of its threads may meet at a barrier. */
  uint32_t unit;
  bool is_exhausted;   /* memory ran out; races are no longer reported */
  uint64_t size_bytes; /* size of the watched memory, and number of cells */
  /* knows[b * unit + a] is a time: accesses of thread a of b's unit before it happen before the
   * next access of thread b. */
  uint32_t *knows;
  /* vectors of `unit` times each; reused after each barrier of the whole block */
  uint32_t *vectors;
  size_t vector_count, vector_capacity;
  uint64_t padding[1];
  kn_watch_cell cells[];
} kn_watch;

/* Kind of an access, and the checks that are made. */
enum {
  KJ_WATCH_READ = 1,
  KJ_WATCH_WRITE = 2,
  KJ_WATCH_ATOMIC = 4,
  KJ_WATCH_LOCAL = 8,
  KJ_WATCH_UNINITIALIZED = 16,
  KJ_WATCH_RACES = 32
};
/* Result of an access, in the low byte. The bytes above hold the number of the other thread, or
 * KJ_WATCH_SEVERAL. */
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

/* Records a barrier of the block. meets[b] is nonzero if thread b takes part or has left the
 * kernel; NULL means that all threads do. */
#define KJ_WATCH_BARRIER_FUNCTION "kn_watch_barrier"
void kn_watch_barrier(kn_watch *watch, const uint32_t *meets);

/* Records a syncwarp. masks[b] is the mask that thread b passes, or 0 if it does not take part.
 * Threads of a warp meet if they pass the same mask and are in it. */
#define KJ_WATCH_WARPS_FUNCTION "kn_watch_warps"
void kn_watch_warps(kn_watch *watch, const uint32_t *masks);

/* Checks and records an access to bytes [offset, offset + size). Call it before the access. */
#define KJ_WATCH_ACCESS_FUNCTION "kn_watch_access"
uint64_t kn_watch_access(kn_watch *watch, uint64_t offset, uint64_t size, uint32_t how,
                         uint32_t thread);

/* Frees the memory that the watch has allocated, but not the watch itself. Call it after the
 * worker's last block. */
void kn_end_watch(kn_watch *watch);

#endif
