/* Allocates and frees memory blocks. The pools of a device cache, by size, the blocks that arrays
 * and launches with host arrays have released.
 *
 * A cached block is free in the order of one stream: a new owner can use it at once on this stream,
 * after the work that is queued there. After the host has waited for the device, the block is free
 * for every stream. A new owner takes a block of another stream only if the driver has no memory
 * left; an event then orders the two streams. A cached block is used for a request if it is only
 * slightly larger, so that at most about a fifth of the memory is wasted. No driver call is made
 * while a pool's mutex is held, because host callbacks of the driver release blocks, too. */
#include "memory/pool_lists.h"

#include <stdlib.h>
#include <string.h>

/* ---- the end of a block ---- */

bool kj_is_gone(const kj_block *block)
{
  return block->generation != atomic_load(&block->device->generation);
}

kj_allocation kj_describe_block(const kj_block *block)
{
  return (kj_allocation){ .memory = block->memory,
                          .size_bytes = block->size_bytes,
                          .address = block->address,
                          .file = block->file };
}

/* Returns a block's memory to the device. A reset may have freed it already. Returns false if the
 * device cannot take it back now. */
static bool give_back(const kj_block *block)
{
  const kj_allocation allocation = kj_describe_block(block);
  return kj_is_gone(block) || block->device->operations->release(block->device, &allocation);
}

void kj_drop_block(kj_block *block)
{
  KJ_ASSERT(!block->next);
  free(block);
}

static void free_own(kj_block *block)
{
  (void)give_back(block);
  kj_drop_block(block);
}

static void cache_block(kj_block *block)
{
  kj_pool *pool = block->data;
  if (kj_is_gone(block)) { /* after a reset, the block's streams no longer exist */
    kj_drop_block(block);
    return;
  }
  /* only the block's own stream can still use it, see order_uses */
  KJ_ASSERT(!kj_read_use(&block->use, 1));
  block->stamp = atomic_load(&block->device->runtime->waits);
  kj_lock_pool(pool);
  kj_count_unused(pool, block);
  kj_add_cached(pool, block);
  kj_unlock_pool(pool);
}

/* Returns the block's stream and retains it, because the application could destroy the stream at
 * the same time. */
kjit_stream *kj_hold_stream(const kj_block *block)
{
  kj_runtime *runtime = block->device->runtime;
  kj_lock(&runtime->streams_mutex, KJ_LOCK_STREAMS);
  kjit_stream *stream = kj_find_stream(runtime, block->stream);
  kj_unlock(&runtime->streams_mutex, KJ_LOCK_STREAMS);
  return stream;
}

static void give_to_host(kj_block *block)
{
  kjit_device *device = block->device;
  const kjit_device_allocator *allocator = device->context->config.device_allocator;
  kj_pool *pool = &device->memory->pools[KJ_POOL_DEVICE];
  kjit_stream *stream = kj_hold_stream(block);
  kj_lock_pool(pool);
  kj_count_unused(pool, block);
  kj_unlock_pool(pool);
  kj_assert_no_locks();
  allocator->release(allocator->user, device, (void *)(uintptr_t)block->address, block->size_bytes,
                     stream);
  kj_release_stream(stream);
  free(block);
}

static const kj_block_kind own_kind = { .waits = true, .free = free_own };
static const kj_block_kind pool_kinds[KJ_POOL_COUNT] = {
  [KJ_POOL_DEVICE] = { .is_in_order = true, .free = cache_block },
  [KJ_POOL_PINNED] = { .free = cache_block },
};
static const kjit_memory pool_memory[KJ_POOL_COUNT] = { KJIT_MEMORY_DEVICE, KJIT_MEMORY_PINNED };
static const kj_block_kind hosts_kind = { .is_in_order = true,
                                          .calls_host = true,
                                          .free = give_to_host };

/* ---- release ---- */

/* Orders a block's uses. Afterwards only uses remain that the kind of the block allows: no use, or
 * the use by its own stream. The block's stream certainly exists if it existed when the block was
 * taken and no stream of the device was destroyed since. */
static bool order_uses(kj_block *block)
{
  kjit_device *device = block->device;
  const struct kj_memory *memory = device->memory;
  kj_stream_id stream = block->kind->is_in_order ? block->stream : KJ_STREAM_NONE;
  bool is_alive =
    !block->stream || !memory ||
    block->forgotten == atomic_load_explicit(&memory->forgotten, memory_order_relaxed);
  KJ_ASSERT(!block->stream || block->stream == KJ_STREAM_ALL ||
            block->stream >> KJ_STREAM_BITS == device->number);
  if (is_alive && kj_is_only_use(&block->use, stream)) return true;
  if (kj_is_gone(block)) return true; /* after a reset, the block's streams no longer exist */
  stream = block->stream;
  /* memory of the CPU has no stream that could wait for a GPU's stream, for example for a copy from
   * an array of another library */
  if (!block->kind->is_in_order || !memory ||
      kj_join_uses(device, &block->use, &stream, NULL) != KJIT_OK)
    return false;
  KJ_ASSERT(stream);
  block->stream = stream;
  block->use = (kj_last_use){ { stream } };
  return true;
}

static void park(kj_block *block)
{
  kj_runtime *runtime = block->device->runtime;
  KJ_ASSERT(!block->next && block->stamp <= atomic_load(&runtime->waits));
  kj_lock(&runtime->objects_mutex, KJ_LOCK_OBJECTS);
  block->next = atomic_load(&runtime->parked);
  atomic_store(&runtime->parked, block);
  kj_unlock(&runtime->objects_mutex, KJ_LOCK_OBJECTS);
}

void kj_release_block(kj_block *block)
{
  if (!block) return;
  KJ_ASSERT(!block->next && block->kind && block->kind->free);
  if (block->kind->calls_host) kj_assert_no_locks();
  if (order_uses(block) ||
      (block->kind->waits && kj_wait_uses(block->device, &block->use, NULL) == KJIT_OK)) {
    block->kind->free(block);
    return;
  }
  block->stamp = atomic_load(&block->device->runtime->waits);
  park(block);
}

void kj_settle_parked(kj_runtime *runtime, bool calls_host)
{
  kj_assert_no_locks();
  if (!atomic_load_explicit(&runtime->parked, memory_order_relaxed)) return;
  kj_lock(&runtime->objects_mutex, KJ_LOCK_OBJECTS);
  kj_block *blocks = atomic_exchange(&runtime->parked, NULL);
  kj_unlock(&runtime->objects_mutex, KJ_LOCK_OBJECTS);
  for (kj_block *block; (block = kj_pop_block(&blocks));) {
    kj_note_passed(runtime, &block->use, block->stamp);
    if ((calls_host || !block->kind->calls_host) && order_uses(block)) block->kind->free(block);
    else park(block);
  }
}

/* ---- the device ---- */

kj_block *kj_make_block(kjit_device *device, const kj_block_kind *kind,
                        const kj_allocation *allocation)
{
  kj_block *made = malloc(sizeof *made);
  KJ_ASSERT(kind->free && (!allocation || allocation->address));
  if (!made) return NULL;
  /* compilers replace malloc and memset by calloc, which does not use the thread's cache in glibc
   */
  *made = (kj_block){
    .kind = kind, .device = device, .generation = atomic_load(&device->generation), .file = -1
  };
  if (!allocation) return made;
  made->address = allocation->address;
  made->size_bytes = allocation->size_bytes;
  made->memory = allocation->memory;
  made->file = allocation->file;
  return made;
}

/* Returns whether the status means that the device has no memory left. The functions that return
 * such a status have not reported an error. */
static bool is_out(kjit_status status)
{
  return status == KJIT_ERROR_DEVICE_MEMORY || status == KJIT_ERROR_MEMORY;
}

/* Releases all cached memory and tries the allocation again, because the device has no memory
 * left. */
static kjit_status ask_again(kjit_device *device, kj_allocation *wanted,
                             kj_diagnostics *diagnostics)
{
  char place[24];
  kjit_memory_statistics before = { .size_bytes = sizeof before }, now = before;
  kjit_get_memory_statistics(device, &before);
  kj_relieve_device(device);
  kjit_status status = device->operations->allocate(device, wanted, diagnostics);
  if (status == KJIT_ERROR_MEMORY)
    return kj_error(
      diagnostics, status,
      "out of host memory: %s cannot allocate %zu bytes, although kjit released all cached memory",
      wanted->call, wanted->size_bytes);
  if (status != KJIT_ERROR_DEVICE_MEMORY) return status;
  kjit_get_memory_statistics(device, &now);
  return kj_error(diagnostics, status,
                  "out of memory on %s: %s cannot allocate %zu bytes (the device has %llu, kjit's "
                  "arrays use %llu, and kjit released %llu of cached memory)",
                  kj_device_text(device, place), wanted->call, wanted->size_bytes,
                  (unsigned long long)device->info.memory_bytes, (unsigned long long)now.used_bytes,
                  (unsigned long long)before.cached_bytes);
}

static kjit_status wrap_memory(kjit_device *device, const kj_block_kind *kind,
                               const kj_allocation *allocation, kj_diagnostics *diagnostics,
                               kj_block **block)
{
  *block = kj_make_block(device, kind, allocation);
  if (*block) return KJIT_OK;
  (void)device->operations->release(device, allocation);
  return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
}

kjit_status kj_allocate_block(kjit_device *device, kjit_memory memory, size_t size_bytes,
                              kj_diagnostics *diagnostics, kj_block **block)
{
  kj_allocation wanted = { .memory = memory, .size_bytes = size_bytes };
  kjit_status status = device->operations->allocate(device, &wanted, diagnostics);
  if (is_out(status)) status = ask_again(device, &wanted, diagnostics);
  return status == KJIT_OK ? wrap_memory(device, &own_kind, &wanted, diagnostics, block) : status;
}

/* ---- taking ---- */

/* Takes a block of another stream and orders the two streams with an event. If the new owner's
 * stream cannot wait for the block's stream now, the search continues with other blocks, and the
 * block is put back at the end. */
static kj_block *take_behind_event(kjit_device *device, kj_pool *pool, size_t size_bytes,
                                   kj_stream_id stream)
{
  kj_block *refused = NULL, *block;
  KJ_ASSERT(stream != KJ_STREAM_NONE && stream != KJ_STREAM_ALL);
  /* a capture is in progress, so no stream can be waited for */
  if (kj_has_captures(device)) return NULL;
  for (;;) {
    kj_lock_pool(pool);
    block = kj_find_cached(pool, size_bytes, KJ_STREAM_ALL);
    kj_unlock_pool(pool);
    if (!block) break;
    kj_stream_id next = stream;
    block->use = (kj_last_use){ { block->stream } };
    if (kj_join_uses(device, &block->use, &next, NULL) == KJIT_OK && next == stream) break;
    block->next = refused;
    refused = block;
  }
  kj_lock_pool(pool);
  for (kj_block *back; (back = kj_pop_block(&refused));) {
    kj_count_unused(pool, back);
    KJ_ASSERT(pool->count.hits);
    pool->count.hits--;
    kj_add_cached(pool, back);
  }
  kj_unlock_pool(pool);
  return block;
}

static kjit_status take_new(kjit_device *device, kj_pool_kind kind, size_t size_bytes,
                            kj_stream_id stream, kj_diagnostics *diagnostics, kj_block **block)
{
  kj_pool *pool = &device->memory->pools[kind];
  kj_allocation wanted = { .memory = pool_memory[kind], .size_bytes = size_bytes };
  kjit_status status = device->operations->allocate(device, &wanted, diagnostics);
  if (is_out(status)) {
    if (stream && (*block = take_behind_event(device, pool, size_bytes, stream))) return KJIT_OK;
    status = ask_again(device, &wanted, diagnostics);
  }
  KJ_TRY(status);
  KJ_TRY(wrap_memory(device, &pool_kinds[kind], &wanted, diagnostics, block));
  KJ_ASSERT((*block)->address && (*block)->size_bytes >= size_bytes);
  (*block)->data = pool;
  kj_lock_pool(pool);
  pool->count.driver_allocations++;
  kj_count_used(pool, *block);
  kj_unlock_pool(pool);
  return KJIT_OK;
}

/* ---- trimming ---- */

/* Frees cached blocks until at most keep_bytes remain. The driver waits for work that still uses
 * the memory. Memory that cannot be freed now remains cached. */
void kj_trim_pool(kj_pool *pool, uint64_t keep_bytes)
{
  kj_block *blocks = kj_detach_blocks(pool, keep_bytes);
  for (kj_block *block; (block = kj_pop_block(&blocks));) {
    if (give_back(block)) {
      kj_drop_block(block);
      continue;
    }
    kj_lock_pool(pool);
    kj_add_cached(pool, block);
    kj_unlock_pool(pool);
  }
}

void kj_flush_pools(kjit_device *device, bool calls_host)
{
  kj_runtime *runtime = device->runtime;
  kj_pool *pool = &device->memory->pools[KJ_POOL_DEVICE];
  kj_lock_pool(pool);
  pool->count.flushes++;
  kj_unlock_pool(pool);
  /* a wait for the device frees the parked blocks, and the caller needs memory */
  if (atomic_load(&runtime->parked) && kj_is_waitable(device)) {
    (void)kj_synchronize(device, true, NULL, NULL);
    kj_settle_parked(runtime, calls_host);
  }
  for (int i = 0; i < KJ_POOL_COUNT; i++) kj_trim_pool(&device->memory->pools[i], 0);
}

static kjit_status take_from_host(kjit_device *device, size_t size_bytes, kjit_stream *stream,
                                  kj_diagnostics *diagnostics, kj_block **block)
{
  const kjit_device_allocator *allocator = device->context->config.device_allocator;
  kj_pool *pool = &device->memory->pools[KJ_POOL_DEVICE];
  char place[24];
  kj_assert_no_locks();
  void *memory = allocator->allocate(allocator->user, device, size_bytes, stream);
  /* parked blocks that only wait for their last uses are first returned to the application's
   * allocator */
  if (!memory && atomic_load(&device->runtime->parked)) {
    kj_flush_pools(device, true);
    memory = allocator->allocate(allocator->user, device, size_bytes, stream);
  }
  if (!memory)
    return kj_error(
      diagnostics, KJIT_ERROR_DEVICE_MEMORY,
      "out of memory on %s: the application's device allocator cannot allocate %zu bytes",
      kj_device_text(device, place), size_bytes);
  kj_allocation given = { .size_bytes = size_bytes,
                          .address = (uint64_t)(uintptr_t)memory,
                          .file = -1 };
  *block = kj_make_block(device, &hosts_kind, &given);
  if (!*block) {
    allocator->release(allocator->user, device, memory, size_bytes, stream);
    return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  }
  kj_lock_pool(pool);
  pool->count.allocations++;
  kj_count_used(pool, *block);
  kj_unlock_pool(pool);
  return KJIT_OK;
}

/* Records on which stream a block was taken. */
static void note_taken(kj_block *block, kj_stream_id stream, uint32_t forgotten)
{
  KJ_ASSERT(!block->next && !kj_read_use(&block->use, 1));
  block->stream = stream;
  block->forgotten = forgotten;
  /* a cached block has at most one use, by the stream in whose order the block is free */
  block->use.streams[0] = stream;
  block->content = 0;
}

kjit_status kj_take_content(kjit_device *device, uint64_t content, size_t size_bytes,
                            kjit_stream *stream, kj_diagnostics *diagnostics, kj_block **block)
{
  kj_pool *pool = &device->memory->pools[KJ_POOL_DEVICE];
  kj_stream_id id = kj_id_of(stream, device);
  bool is_captured = false;
  KJ_ASSERT(content && content != KJ_ANY_CONTENT);
  *block = NULL;
  KJ_TRY(kj_check_device(device, diagnostics));
  if (stream && id) KJ_TRY(kj_ask_capture(stream, diagnostics, &is_captured));
  if (is_captured) return KJIT_OK;
  uint32_t forgotten = atomic_load_explicit(&device->memory->forgotten, memory_order_relaxed);
  kj_lock_pool(pool);
  *block = kj_find_content(pool, kj_round_block_size(size_bytes), id, content);
  if (*block) pool->count.allocations++;
  kj_unlock_pool(pool);
  if (*block) note_taken(*block, id, forgotten);
  return KJIT_OK;
}

kjit_status kj_take_block(kjit_device *device, kj_pool_kind kind, size_t size_bytes,
                          kjit_stream *stream, kj_diagnostics *diagnostics, kj_block **block)
{
  struct kj_memory *memory = device->memory;
  kj_pool *pool = &memory->pools[kind];
  size_t rounded = kj_round_block_size(size_bytes);
  KJ_ASSERT(memory && kind < KJ_POOL_COUNT && rounded >= size_bytes && rounded);
  kj_stream_id id = kind == KJ_POOL_PINNED ? KJ_STREAM_NONE : kj_id_of(stream, device);
  KJ_TRY(kj_check_device(device, diagnostics));
  /* a captured launch runs later, possibly at the same time as work that is queued on the stream
   * now, so only unused memory is suitable */
  bool is_captured = false;
  if (stream && id) KJ_TRY(kj_ask_capture(stream, diagnostics, &is_captured));
  uint32_t forgotten = atomic_load_explicit(&memory->forgotten, memory_order_relaxed);
  bool is_hosts = kind == KJ_POOL_DEVICE && device->context->config.device_allocator;
  if (is_hosts) {
    if (is_captured)
      return kj_error(diagnostics, KJIT_ERROR_MISUSE,
                      "the application's device allocator allocates memory in stream order, and "
                      "this stream is being captured; allocate before kjit_begin_capture");
    KJ_TRY(take_from_host(device, rounded, stream, diagnostics, block));
  } else {
    kj_stream_id own = is_captured ? KJ_STREAM_NONE : id;
    kj_lock_pool(pool);
    pool->count.allocations++;
    *block = kj_find_cached(pool, rounded, own);
    kj_unlock_pool(pool);
    if (!*block) KJ_TRY(take_new(device, kind, rounded, own, diagnostics, block));
  }
  KJ_ASSERT((*block)->size_bytes >= size_bytes && (*block)->device == device);
  note_taken(*block, id, forgotten);
  /* the application's allocator is never called with a per-thread stream when memory is returned to
   * it */
  if (is_hosts && id & KJ_STREAM_THREADS) (*block)->stream = kj_id_of(NULL, device);
  return KJIT_OK;
}

void kj_forget_stream(kjit_stream *stream)
{
  kjit_device *device = stream->object.device;
  kj_stream_end end = kj_end_stream(stream);
  if (end == KJ_STREAM_LOST) return;
  kj_pool *pool = &device->memory->pools[KJ_POOL_DEVICE];
  kj_lock_pool(pool);
  for (uint32_t i = 0; i < KJ_POOL_CLASSES; i++)
    for (kj_block *block = pool->cached[i]; block; block = block->next)
      if (block->stream == stream->id)
        block->stream = end == KJ_STREAM_PASSED ? KJ_STREAM_NONE : kj_id_of(NULL, device);
  kj_unlock_pool(pool);
}
