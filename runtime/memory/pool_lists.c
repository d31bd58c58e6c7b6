/* Implements the lists of a pool's cached blocks, one list for each size class. The caller of most
 * functions holds the pool's mutex. No function calls the driver. */
#include "memory/pool_lists.h"

enum { SMALL_STEP = 512, LARGE_STEP = 128 << 10, LARGE = 1 << 20 };

/* ---- sizes ---- */

size_t kj_round_block_size(size_t size_bytes)
{
  size_t step = size_bytes >= LARGE ? LARGE_STEP : SMALL_STEP;
  if (size_bytes > SIZE_MAX - step) return size_bytes;
  return size_bytes ? (size_bytes + step - 1) / step * step : step;
}

/* Returns the largest size class that does not exceed the size. Each power of two has
 * eight classes. */
static uint32_t class_of(size_t size_bytes)
{
  uint32_t power = 63 - (uint32_t)__builtin_clzll(size_bytes), first = 9; /* 512 */
  if (power < first) return 0;
  uint32_t index = (power - first) * 8 + (uint32_t)(size_bytes >> (power - 3) & 7);
  return index < KJ_POOL_CLASSES ? index : KJ_POOL_CLASSES - 1;
}

/* ---- the lists ---- */

/* For assertions: every cached block is in the class of its size, and the counts are correct. */
static void check_pool(const kj_pool *pool)
{
  uint64_t cached_bytes = 0;
  if (!KJ_HAS_ASSERTIONS) return;
  KJ_ASSERT(kj_is_locked_here(&pool->mutex));
  for (uint32_t i = 0; i < KJ_POOL_CLASSES; i++)
    for (const kj_block *block = pool->cached[i]; block; block = block->next) {
      KJ_ASSERT(block->data == pool && class_of(block->size_bytes) == i);
      KJ_ASSERT(block->kind->free && block->address && block->generation == pool->generation);
      cached_bytes += block->size_bytes;
    }
  KJ_ASSERT(pool->count.cached_bytes == cached_bytes);
  KJ_ASSERT(pool->count.used_bytes <= pool->count.peak_bytes);
  /* the caller updates the counts before or after this check */
  KJ_ASSERT(pool->count.hits <= pool->count.allocations + 1);
}

void kj_lock_pool(kj_pool *pool)
{
  kj_lock(&pool->mutex, KJ_LOCK_POOL);
  check_pool(pool);
}

void kj_unlock_pool(kj_pool *pool)
{
  check_pool(pool);
  kj_unlock(&pool->mutex, KJ_LOCK_POOL);
}

/* Counts a block that its user has released. */
void kj_count_unused(kj_pool *pool, const kj_block *block)
{
  KJ_ASSERT(kj_is_locked_here(&pool->mutex));
  if (block->generation != pool->generation) return;
  KJ_ASSERT(pool->count.used_bytes >= block->size_bytes);
  pool->count.used_bytes -= block->size_bytes;
}

void kj_count_used(kj_pool *pool, const kj_block *block)
{
  KJ_ASSERT(kj_is_locked_here(&pool->mutex));
  if (block->generation != pool->generation) return;
  pool->count.used_bytes += block->size_bytes;
  if (pool->count.used_bytes > pool->count.peak_bytes)
    pool->count.peak_bytes = pool->count.used_bytes;
}

/* Returns whether all streams have finished with the block. They have if no stream used the block
 * when it was released, or if the host has waited for the device since then. */
static bool is_idle(const kj_block *block)
{
  return !block->stream ||
         block->stamp <= atomic_load_explicit(&block->device->memory->waited, memory_order_acquire);
}

/* Finds a cached block in a class. If stream is ALL, the block can belong to any stream and can
 * still be in use. */
static kj_block *find_in_class(kj_pool *pool, uint32_t class_, size_t size_bytes,
                               kj_stream_id stream, uint64_t content)
{
  for (kj_block **at = &pool->cached[class_]; *at; at = &(*at)->next) {
    kj_block *block = *at;
    bool fits = block->size_bytes >= size_bytes &&
                (content == KJ_ANY_CONTENT || block->content == content) &&
                (stream == KJ_STREAM_ALL || block->stream == stream || is_idle(block));
    if (!fits) continue;
    *at = block->next;
    block->next = NULL;
    pool->count.cached_bytes -= block->size_bytes;
    pool->count.hits++;
    kj_count_used(pool, block);
    return block;
  }
  return NULL;
}

kj_block *kj_find_content(kj_pool *pool, size_t size_bytes, kj_stream_id stream, uint64_t content)
{
  uint32_t class_ = class_of(size_bytes);
  kj_block *block = find_in_class(pool, class_, size_bytes, stream, content);
  return block || class_ + 1 == KJ_POOL_CLASSES
           ? block
           : find_in_class(pool, class_ + 1, size_bytes, stream, content);
}

/* Finds a cached block. Prefers a block without content, because a later launch could use the
 * content again. */
kj_block *kj_find_cached(kj_pool *pool, size_t size_bytes, kj_stream_id stream)
{
  kj_block *block = kj_find_content(pool, size_bytes, stream, 0);
  return block ? block : kj_find_content(pool, size_bytes, stream, KJ_ANY_CONTENT);
}

kj_block *kj_pop_block(kj_block **list)
{
  kj_block *first = *list;
  if (!first) return NULL;
  *list = first->next;
  first->next = NULL;
  return first;
}

/* Adds a block to the cache, unless a reset has freed its memory in the meantime. */
void kj_add_cached(kj_pool *pool, kj_block *block)
{
  kj_block **list = &pool->cached[class_of(block->size_bytes)];
  KJ_ASSERT(!block->next && block->data == pool); /* the block is in no list */
  if (block->generation != pool->generation) {
    kj_drop_block(block);
    return;
  }
  block->next = *list;
  *list = block;
  pool->count.cached_bytes += block->size_bytes;
}

/* Detaches cached blocks, large ones first, until at most keep_bytes remain. The caller holds the
 * pool's mutex. */
kj_block *kj_detach_cached(kj_pool *pool, uint64_t keep_bytes)
{
  kj_block *detached = NULL;
  for (uint32_t i = KJ_POOL_CLASSES; i-- > 0;) { /* large blocks first */
    while (pool->cached[i] && pool->count.cached_bytes > keep_bytes) {
      kj_block *block = kj_pop_block(&pool->cached[i]);
      KJ_ASSERT(pool->count.cached_bytes >= block->size_bytes);
      pool->count.cached_bytes -= block->size_bytes;
      block->next = detached;
      detached = block;
    }
  }
  return detached;
}

kj_block *kj_detach_blocks(kj_pool *pool, uint64_t keep_bytes)
{
  kj_lock_pool(pool);
  kj_block *detached = kj_detach_cached(pool, keep_bytes);
  kj_unlock_pool(pool);
  return detached;
}

void kj_drop_blocks(kj_block *blocks)
{
  for (kj_block *block; (block = kj_pop_block(&blocks));) kj_drop_block(block);
}
