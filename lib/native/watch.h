/* Watched memory of a block on the CPU: which bytes of its shared and local arrays were written, by
 * whom, and whether a synchronization lies between two accesses.
 *
 * Time counts synchronizations. Two accesses of different threads are ordered if a barrier of the
 * block, or a syncwarp of the warp that both are in, lies between them. A worker has one kj_watch,
 * zeroed before the first block; it runs the threads of a block one after the other. */
#ifndef KJ_NATIVE_WATCH_H
#define KJ_NATIVE_WATCH_H

#include <stdint.h>

/* One byte. Times of 0: never. Threads: a number below 1024, or KJ_WATCH_SEVERAL and, if all are of
 * one warp, its number. */
typedef struct kj_watch_cell {
  uint32_t written, read;
  uint16_t writer, reader;
  uint32_t is_atomic; /* the last write */
} kj_watch_cell;
enum { KJ_WATCH_SEVERAL = 1024, KJ_WATCH_MANY = KJ_WATCH_SEVERAL + 32 };

typedef struct kj_watch {
  /* now; when the block began; of the last barrier; of the last syncwarp */
  uint32_t time, block, barrier, warps;
  uint64_t size_bytes; /* of the memory: so many cells follow */
  uint64_t padding[5];
  kj_watch_cell cells[];
} kj_watch;

/* how */
enum {
  KJ_WATCH_READ = 1,
  KJ_WATCH_WRITE = 2,
  KJ_WATCH_ATOMIC = 4,
  KJ_WATCH_LOCAL = 8,
  KJ_WATCH_UNINITIALIZED = 16,
  KJ_WATCH_RACES = 32
};
/* Results, in the low byte; above it the other thread's number, 1024 and more: several. */
typedef enum kj_watch_result {
  KJ_WATCH_FINE,
  KJ_WATCH_UNWRITTEN,
  KJ_WATCH_WAS_WRITTEN,
  KJ_WATCH_WAS_READ
} kj_watch_result;
enum { KJ_WATCH_RESULT_BITS = 8 };

/* Code on the CPU calls these: at the start of each block, at its barriers and syncwarps, and
 * before each access of bytes [offset, offset + size). */
#define KJ_WATCH_BLOCK_FUNCTION "kj_watch_block"
#define KJ_WATCH_BARRIER_FUNCTION "kj_watch_barrier"
#define KJ_WATCH_WARPS_FUNCTION "kj_watch_warps"
#define KJ_WATCH_ACCESS_FUNCTION "kj_watch_access"
void kj_watch_block(kj_watch *watch, uint64_t size_bytes);
void kj_watch_barrier(kj_watch *watch);
void kj_watch_warps(kj_watch *watch);
uint64_t kj_watch_access(kj_watch *watch, uint64_t offset, uint64_t size, uint32_t how,
                         uint32_t thread);

#endif
