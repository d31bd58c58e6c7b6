/* The struct of a pool and its lists of blocks, for the pool_*.c files. */
#ifndef KJ_POOL_LISTS_H
#define KJ_POOL_LISTS_H

#include "memory/pool.h"

enum { KJ_POOL_CLASSES = 8 * 40 };
#define KJ_ANY_CONTENT UINT64_MAX

typedef struct kj_pool {
  pthread_mutex_t mutex;
  /* Generation of the device at the last reset that the pool has seen. Blocks of an earlier
   * generation are neither cached nor counted. A reset increments the device's generation before it
   * informs the pools. */
  uint32_t generation;
  /* Free blocks by size class. Only work on a block's own stream can still use the block. If the
   * host has waited for the device since the release, no work uses the block. */
  kj_block *cached[KJ_POOL_CLASSES];
  kjit_memory_statistics count; /* counts of this pool, in all fields except pinned_... */
} kj_pool;

/* ---- pool_lists.c ---- */

/* Rounds a size up so that blocks of similar sizes can replace each other. */
size_t kj_round_block_size(size_t size_bytes);
void kj_lock_pool(kj_pool *pool);
void kj_unlock_pool(kj_pool *pool);
/* The caller of the following functions holds the pool's mutex. */
void kj_count_used(kj_pool *pool, const kj_block *block);
void kj_count_unused(kj_pool *pool, const kj_block *block);
/* Remove and return a cached block that the stream may use now, or return NULL if there is none.
 * kj_find_content returns a block with this content; kj_find_cached prefers a block without
 * content. stream ALL means that the block can belong to any stream and can still be in use. */
kj_block *kj_find_content(kj_pool *pool, size_t size_bytes, kj_stream_id stream, uint64_t content);
kj_block *kj_find_cached(kj_pool *pool, size_t size_bytes, kj_stream_id stream);
void kj_add_cached(kj_pool *pool, kj_block *block);
/* Removes cached blocks from the lists, large ones first, until at most keep_bytes remain. */
kj_block *kj_detach_cached(kj_pool *pool, uint64_t keep_bytes);
/* Like kj_detach_cached, for a caller that does not hold the mutex. */
kj_block *kj_detach_blocks(kj_pool *pool, uint64_t keep_bytes);
/* Removes the first block from a list of the caller, and returns it. Returns NULL if the list is
 * empty. */
kj_block *kj_pop_block(kj_block **list);

/* Frees a list of blocks that never had memory, or whose memory a reset has freed. */
void kj_drop_blocks(kj_block *blocks);

/* ---- pool_blocks.c ---- */

/* Frees cached blocks until at most keep_bytes remain. The driver waits for work that still uses
 * the memory. Memory that cannot be freed now remains cached. */
void kj_trim_pool(kj_pool *pool, uint64_t keep_bytes);
/* Frees all cached blocks, after a wait for the device if blocks are parked. */
void kj_flush_pools(kjit_device *device, bool calls_host);

#endif
