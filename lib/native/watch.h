/* Watched memory of a block on the CPU: which bytes of its shared and local arrays the threads have
 * written, and which accesses of shared memory race. Code on the CPU calls these functions; a
 * worker runs the threads of a block one after the other.
 *
 * Two accesses of a byte race if they come from different threads, at least one of them writes, not
 * both are atomic, and nothing orders them. A chain of synchronizations that both threads take part
 * in orders them: barriers of the block and syncwarps. Time counts synchronizations. For each pair
 * of threads the watch knows up to which time the accesses of the one happen before what the other
 * does now. docs/architecture/checks.md says more. */
#ifndef KJ_NATIVE_WATCH_H
#define KJ_NATIVE_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Accesses of one kind since the last barrier of the whole block, without those that happen before
 * a later one of the set. It is empty where `time`, of the latest, is before that barrier. */
typedef enum kn_watch_members {
  KJ_WATCH_ONE,    /* where: the thread */
  KJ_WATCH_VECTOR, /* threads of one unit; where: index of a vector of their times, 0: not in it */
  KJ_WATCH_UNITS   /* threads of several units: nothing orders them all before any thread */
} kn_watch_members;
typedef struct kn_watch_set {
  uint32_t time;
  uint32_t where;
  uint16_t unit, members; /* members: kn_watch_members */
} kn_watch_set;

/* One byte. Times of 0 mean never. */
typedef struct kn_watch_cell {
  uint32_t written, stored; /* the last write; the last one that was not atomic */
  uint16_t writer, storer;
  kn_watch_set reads, atomic_reads, atomic_writes; /* since the last write that was not atomic */
} kn_watch_cell;

/* Zeroed before the worker's first block. */
typedef struct kn_watch {
  uint32_t time, block, barrier; /* now; when the block began; of its last whole barrier */
  uint32_t threads;              /* of a block */
  /* Threads of different units are ordered by barriers of the whole block alone: a unit is a warp,
   * or the block if part of its threads may meet at a barrier. */
  uint32_t unit;
  bool is_exhausted;   /* no memory for what is known: races are not looked for */
  uint64_t size_bytes; /* of the memory: that number of cells follows */
  /* knows[b * unit + a]: what the a-th thread of b's unit did before this time happens before what
   * thread b does now. */
  uint32_t *knows;
  uint32_t *vectors; /* of `unit` times each; taken from the start again after each whole barrier */
  size_t vector_count, vector_capacity;
  uint64_t padding[1];
  kn_watch_cell cells[];
} kn_watch;

/* How memory is accessed, and which checks are made. */
enum {
  KJ_WATCH_READ = 1,
  KJ_WATCH_WRITE = 2,
  KJ_WATCH_ATOMIC = 4,
  KJ_WATCH_LOCAL = 8,
  KJ_WATCH_UNINITIALIZED = 16,
  KJ_WATCH_RACES = 32
};
/* Results, in the low byte. Above it is the number of the other thread, or KJ_WATCH_SEVERAL. */
typedef enum kn_watch_result {
  KJ_WATCH_FINE,
  KJ_WATCH_UNWRITTEN,
  KJ_WATCH_WAS_WRITTEN,
  KJ_WATCH_WAS_READ
} kn_watch_result;
enum { KJ_WATCH_RESULT_BITS = 8, KJ_WATCH_SEVERAL = 1024 };

/* At the start of each block. unit: see kn_watch. */
#define KJ_WATCH_BLOCK_FUNCTION "kn_watch_block"
void kn_watch_block(kn_watch *watch, uint64_t size_bytes, uint32_t threads, uint32_t unit);

/* At a barrier of the block. meets[b]: whether thread b takes part, or has left the kernel; NULL:
 * all threads do. */
#define KJ_WATCH_BARRIER_FUNCTION "kn_watch_barrier"
void kn_watch_barrier(kn_watch *watch, const uint32_t *meets);

/* At a syncwarp. masks[b]: the mask that thread b gives, 0 if it is not there. Those meet that are
 * in one warp, give one mask and are in it. */
#define KJ_WATCH_WARPS_FUNCTION "kn_watch_warps"
void kn_watch_warps(kn_watch *watch, const uint32_t *masks);

/* Before each access of bytes [offset, offset + size). */
#define KJ_WATCH_ACCESS_FUNCTION "kn_watch_access"
uint64_t kn_watch_access(kn_watch *watch, uint64_t offset, uint64_t size, uint32_t how,
                         uint32_t thread);

/* After the worker's last block: frees the memory of the watch, but for the watch itself. */
void kn_end_watch(kn_watch *watch);

#endif
