/* Memory blocks and the pools of a device. A pool caches blocks, by size, that arrays and staged
 * launches have released.
 *
 * A cached block is free in the order of one stream: a new owner can use it at once on this stream,
 * after the work that is queued there. After the host has waited for the device, the block is free
 * for every stream. A block of another stream is taken only if the driver has no memory left; an
 * event then orders the two streams. A cached block is used for a request if it is only slightly
 * larger, so that at most about a fifth of the memory is wasted. No driver call is made while a
 * pool's mutex is held, because host callbacks of the driver release blocks, too. */
#include "memory/pool.h"

#include <stdlib.h>
#include <string.h>

enum { SMALL_STEP = 512, LARGE_STEP = 128 << 10, LARGE = 1 << 20, CLASSES = 8 * 40 };

typedef struct kj_pool {
  pthread_mutex_t mutex;
  /* Generation of the device at the last reset that the pool has seen. Blocks of an earlier
   * generation are neither cached nor counted. A reset increments the device's number before it
   * informs the pools. */
  uint32_t generation;
  /* only their stream uses them, or no stream if the host has waited since */
  kj_block *cached[CLASSES];
  kjit_memory_statistics count; /* except the pinned_... fields */
} kj_pool;

/* ---- sizes ---- */

static size_t round_size(size_t size_bytes)
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
  return index < CLASSES ? index : CLASSES - 1;
}

/* ---- the lists; the caller holds the pool's mutex ---- */

/* For assertions: every cached block is in the class of its size, and the counts are correct. */
static void check_pool(const kj_pool *pool)
{
  uint64_t cached_bytes = 0;
  if (!KJ_HAS_ASSERTIONS) return;
  KJ_ASSERT(kj_is_locked_here(&pool->mutex));
  for (uint32_t i = 0; i < CLASSES; i++)
    for (const kj_block *block = pool->cached[i]; block; block = block->next) {
      KJ_ASSERT(block->data == pool && class_of(block->size_bytes) == i);
      KJ_ASSERT(block->kind->free && block->address && block->generation == pool->generation);
      cached_bytes += block->size_bytes;
    }
  KJ_ASSERT(pool->count.cached_bytes == cached_bytes);
  KJ_ASSERT(pool->count.used_bytes <= pool->count.peak_bytes);
  /* the caller counts before or after this check */
  KJ_ASSERT(pool->count.hits <= pool->count.allocations + 1);
}

static void lock_pool(kj_pool *pool)
{
  kj_lock(&pool->mutex, KJ_LOCK_POOL);
  check_pool(pool);
}

static void unlock_pool(kj_pool *pool)
{
  check_pool(pool);
  kj_unlock(&pool->mutex, KJ_LOCK_POOL);
}

/* Counts a block that its user has released. */
static void count_unused(kj_pool *pool, const kj_block *block)
{
  KJ_ASSERT(kj_is_locked_here(&pool->mutex));
  if (block->generation != pool->generation) return;
  KJ_ASSERT(pool->count.used_bytes >= block->size_bytes);
  pool->count.used_bytes -= block->size_bytes;
}

static void count_used(kj_pool *pool, const kj_block *block)
{
  KJ_ASSERT(kj_is_locked_here(&pool->mutex));
  if (block->generation != pool->generation) return;
  pool->count.used_bytes += block->size_bytes;
  if (pool->count.used_bytes > pool->count.peak_bytes)
    pool->count.peak_bytes = pool->count.used_bytes;
}

/* Whether all streams have finished with the block. This is so if the block was released without a
 * stream, or if the host has waited for the device after the release. */
static bool is_idle(const kj_block *block)
{
  return !block->stream ||
         block->stamp <= atomic_load_explicit(&block->device->memory->waited, memory_order_acquire);
}

static const uint64_t ANY_CONTENT = UINT64_MAX;

/* Finds a cached block in a class. If stream is ALL, the block can belong to any stream and can
 * still be in use. */
static kj_block *find_in_class(kj_pool *pool, uint32_t class_, size_t size_bytes,
                               kj_stream_id stream, uint64_t content)
{
  for (kj_block **at = &pool->cached[class_]; *at; at = &(*at)->next) {
    kj_block *block = *at;
    bool fits = block->size_bytes >= size_bytes &&
                (content == ANY_CONTENT || block->content == content) &&
                (stream == KJ_STREAM_ALL || block->stream == stream || is_idle(block));
    if (!fits) continue;
    *at = block->next;
    block->next = NULL;
    pool->count.cached_bytes -= block->size_bytes;
    pool->count.hits++;
    count_used(pool, block);
    return block;
  }
  return NULL;
}

static kj_block *find_content(kj_pool *pool, size_t size_bytes, kj_stream_id stream,
                              uint64_t content)
{
  uint32_t class_ = class_of(size_bytes);
  kj_block *block = find_in_class(pool, class_, size_bytes, stream, content);
  return block || class_ + 1 == CLASSES
           ? block
           : find_in_class(pool, class_ + 1, size_bytes, stream, content);
}

/* Finds a cached block, preferably one without content that a later launch could reuse. */
static kj_block *find_cached(kj_pool *pool, size_t size_bytes, kj_stream_id stream)
{
  kj_block *block = find_content(pool, size_bytes, stream, 0);
  return block ? block : find_content(pool, size_bytes, stream, ANY_CONTENT);
}

static kj_block *pop(kj_block **list)
{
  kj_block *first = *list;
  if (!first) return NULL;
  *list = first->next;
  first->next = NULL;
  return first;
}

/* Adds a block to the cache, unless a reset has freed its memory in the meantime. */
static void add_cached(kj_pool *pool, kj_block *block)
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

/* Returns the memory of a block to the device. A reset may have freed it already. Returns false if
 * the device cannot take it back now. */
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
  if (kj_is_gone(block)) { /* its users are gone, too */
    kj_drop_block(block);
    return;
  }
  /* at most its own stream still uses it, see order_uses */
  KJ_ASSERT(!kj_read_use(&block->use, 1));
  block->stamp = atomic_load(&block->device->runtime->waits);
  lock_pool(pool);
  count_unused(pool, block);
  add_cached(pool, block);
  unlock_pool(pool);
}

/* Returns the block's stream and retains it, because the application could destroy the stream in
 * the meantime. */
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
  lock_pool(pool);
  count_unused(pool, block);
  unlock_pool(pool);
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

/* Orders the uses of a block so that only uses remain that its kind allows: no use, or the use by
 * its own stream. This stream exists if it existed when the block was taken and the device has lost
 * no stream since. */
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
  if (kj_is_gone(block)) return true; /* its users are gone, too */
  stream = block->stream;
  if (!block->kind->is_in_order || kj_join_uses(device, &block->use, &stream, NULL) != KJIT_OK)
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
  for (kj_block *block; (block = pop(&blocks));) {
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

/* Whether the device has no memory left. Such an error is not reported yet. */
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

/* Takes a block of another stream and orders the two streams with an event. The search holds no
 * lock on the order of streams. If the block's stream cannot be waited for now, the search
 * continues and the block is put back at the end. */
static kj_block *take_behind_event(kjit_device *device, kj_pool *pool, size_t size_bytes,
                                   kj_stream_id stream)
{
  kj_block *refused = NULL, *block;
  KJ_ASSERT(stream != KJ_STREAM_NONE && stream != KJ_STREAM_ALL);
  /* a capture is in progress, so no stream can be waited for */
  if (kj_has_captures(device)) return NULL;
  for (;;) {
    lock_pool(pool);
    block = find_cached(pool, size_bytes, KJ_STREAM_ALL);
    unlock_pool(pool);
    if (!block) break;
    kj_stream_id next = stream;
    block->use = (kj_last_use){ { block->stream } };
    if (kj_join_uses(device, &block->use, &next, NULL) == KJIT_OK && next == stream) break;
    block->next = refused;
    refused = block;
  }
  lock_pool(pool);
  for (kj_block *back; (back = pop(&refused));) {
    count_unused(pool, back);
    KJ_ASSERT(pool->count.hits);
    pool->count.hits--;
    add_cached(pool, back);
  }
  unlock_pool(pool);
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
  lock_pool(pool);
  pool->count.driver_allocations++;
  count_used(pool, *block);
  unlock_pool(pool);
  return KJIT_OK;
}

/* ---- trimming ---- */

/* Detaches cached blocks, large ones first, until at most keep_bytes remain. The caller holds the
 * pool's mutex. */
static kj_block *detach_cached(kj_pool *pool, uint64_t keep_bytes)
{
  kj_block *detached = NULL;
  for (uint32_t i = CLASSES; i-- > 0;) { /* large blocks first */
    while (pool->cached[i] && pool->count.cached_bytes > keep_bytes) {
      kj_block *block = pop(&pool->cached[i]);
      KJ_ASSERT(pool->count.cached_bytes >= block->size_bytes);
      pool->count.cached_bytes -= block->size_bytes;
      block->next = detached;
      detached = block;
    }
  }
  return detached;
}

static kj_block *detach(kj_pool *pool, uint64_t keep_bytes)
{
  lock_pool(pool);
  kj_block *detached = detach_cached(pool, keep_bytes);
  unlock_pool(pool);
  return detached;
}

static void drop_each(kj_block *blocks)
{
  for (kj_block *block; (block = pop(&blocks));) kj_drop_block(block);
}

/* Frees cached blocks until at most keep_bytes remain. The driver waits for work that still uses
 * the memory. Memory that cannot be freed now remains cached. */
static void trim(kj_pool *pool, uint64_t keep_bytes)
{
  kj_block *blocks = detach(pool, keep_bytes);
  for (kj_block *block; (block = pop(&blocks));) {
    if (give_back(block)) {
      kj_drop_block(block);
      continue;
    }
    lock_pool(pool);
    add_cached(pool, block);
    unlock_pool(pool);
  }
}

static void flush(kjit_device *device, bool calls_host)
{
  kj_runtime *runtime = device->runtime;
  kj_pool *pool = &device->memory->pools[KJ_POOL_DEVICE];
  lock_pool(pool);
  pool->count.flushes++;
  unlock_pool(pool);
  /* parked blocks only need a wait for the device, and the caller needs memory */
  if (atomic_load(&runtime->parked) && kj_is_waitable(device)) {
    (void)kj_synchronize(device, true, NULL, NULL);
    kj_settle_parked(runtime, calls_host);
  }
  for (int i = 0; i < KJ_POOL_COUNT; i++) trim(&device->memory->pools[i], 0);
}

static kjit_status take_from_host(kjit_device *device, size_t size_bytes, kjit_stream *stream,
                                  kj_diagnostics *diagnostics, kj_block **block)
{
  const kjit_device_allocator *allocator = device->context->config.device_allocator;
  kj_pool *pool = &device->memory->pools[KJ_POOL_DEVICE];
  char place[24];
  kj_assert_no_locks();
  void *memory = allocator->allocate(allocator->user, device, size_bytes, stream);
  /* the application's allocator can first get back the memory that waits for its last uses */
  if (!memory && atomic_load(&device->runtime->parked)) {
    flush(device, true);
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
  lock_pool(pool);
  pool->count.allocations++;
  count_used(pool, *block);
  unlock_pool(pool);
  return KJIT_OK;
}

/* Records on which stream a block was taken. */
static void note_taken(kj_block *block, kj_stream_id stream, uint32_t forgotten)
{
  KJ_ASSERT(!block->next && !kj_read_use(&block->use, 1));
  block->stream = stream;
  block->forgotten = forgotten;
  block->use.streams[0] = stream; /* at most one stream, in whose order the block was free */
  block->content = 0;
}

kjit_status kj_take_content(kjit_device *device, uint64_t content, size_t size_bytes,
                            kjit_stream *stream, kj_diagnostics *diagnostics, kj_block **block)
{
  kj_pool *pool = &device->memory->pools[KJ_POOL_DEVICE];
  kj_stream_id id = kj_id_of(stream, device);
  bool is_captured = false;
  KJ_ASSERT(content && content != ANY_CONTENT);
  *block = NULL;
  KJ_TRY(kj_check_device(device, diagnostics));
  if (stream && id) KJ_TRY(kj_ask_capture(stream, diagnostics, &is_captured));
  if (is_captured) return KJIT_OK;
  uint32_t forgotten = atomic_load_explicit(&device->memory->forgotten, memory_order_relaxed);
  lock_pool(pool);
  *block = find_content(pool, round_size(size_bytes), id, content);
  if (*block) pool->count.allocations++;
  unlock_pool(pool);
  if (*block) note_taken(*block, id, forgotten);
  return KJIT_OK;
}

kjit_status kj_take_block(kjit_device *device, kj_pool_kind kind, size_t size_bytes,
                          kjit_stream *stream, kj_diagnostics *diagnostics, kj_block **block)
{
  struct kj_memory *memory = device->memory;
  kj_pool *pool = &memory->pools[kind];
  size_t rounded = round_size(size_bytes);
  KJ_ASSERT(memory && kind < KJ_POOL_COUNT && rounded >= size_bytes && rounded);
  kj_stream_id id = kind == KJ_POOL_PINNED ? KJ_STREAM_NONE : kj_id_of(stream, device);
  KJ_TRY(kj_check_device(device, diagnostics));
  /* A captured launch runs later and concurrently with work that is queued on the stream now, so
   * only unused memory is suitable. */
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
    lock_pool(pool);
    pool->count.allocations++;
    *block = find_cached(pool, rounded, own);
    unlock_pool(pool);
    if (!*block) KJ_TRY(take_new(device, kind, rounded, own, diagnostics, block));
  }
  KJ_ASSERT((*block)->size_bytes >= size_bytes && (*block)->device == device);
  note_taken(*block, id, forgotten);
  /* the application's allocator does not receive a per-thread stream when it gets memory back */
  if (is_hosts && id & KJ_STREAM_THREADS) (*block)->stream = kj_id_of(NULL, device);
  return KJIT_OK;
}

void kj_forget_stream(kjit_stream *stream)
{
  kjit_device *device = stream->object.device;
  kj_stream_end end = kj_end_stream(stream);
  if (end == KJ_STREAM_LOST) return;
  kj_pool *pool = &device->memory->pools[KJ_POOL_DEVICE];
  lock_pool(pool);
  for (uint32_t i = 0; i < CLASSES; i++)
    for (kj_block *block = pool->cached[i]; block; block = block->next)
      if (block->stream == stream->id)
        block->stream = end == KJ_STREAM_PASSED ? KJ_STREAM_NONE : kj_id_of(NULL, device);
  unlock_pool(pool);
}

/* ---- the data of this layer for a device ---- */

/* Frees parked memory at the end of a context. Its waits have failed before; this function tries
 * once more and then frees it in any case. */
static void end_parked(kjit_device *device)
{
  kj_runtime *runtime = device->runtime;
  if (!atomic_load(&runtime->parked)) return;
  (void)kj_synchronize(device, true, NULL, NULL);
  kj_settle_parked(runtime, true);
  kj_block *blocks = atomic_exchange(&runtime->parked, NULL);
  for (kj_block *block; (block = pop(&blocks));) {
    block->use = (kj_last_use){ 0 }; /* no use follows */
    block->kind->free(block);
  }
}

static void count_waiting(kj_attachment *attachment, uint32_t change)
{
  kj_runtime *runtime = attachment->runtime;
  kj_lock(&runtime->streams_mutex, KJ_LOCK_STREAMS);
  KJ_ASSERT(change == 1 || attachment->device->memory->waiting);
  attachment->device->memory->waiting += change;
  pthread_cond_broadcast(&runtime->waits_changed);
  kj_unlock(&runtime->streams_mutex, KJ_LOCK_STREAMS);
}

static void *begin_wait(kj_attachment *attachment)
{
  count_waiting(attachment, 1);
  return (void *)(uintptr_t)atomic_fetch_add(&attachment->runtime->waits, 1);
}

/* Returns an error if the application captures a stream itself, because a wait for the device would
 * break this capture. */
static kjit_status check_wait(kj_attachment *attachment, kj_diagnostics *diagnostics)
{
  return kj_check_hosts_captures(attachment->device, diagnostics);
}

static void end_wait(kj_attachment *attachment, void *number, bool is_done)
{
  count_waiting(attachment, (uint32_t)-1);
  if (!is_done) return;
  kj_note_wait(attachment->device, (uintptr_t)number);
  kj_settle_parked(attachment->runtime, false);
}

static void relieve(kj_attachment *attachment) { flush(attachment->device, false); }

static kjit_status report(kj_attachment *attachment, kj_diagnostics *diagnostics)
{
  (void)diagnostics;
  kj_settle_parked(attachment->runtime, true);
  return KJIT_OK;
}

/* Begins a new generation after a reset, which has freed the device's memory. If two resets
 * overlap, the second one finds the pool up to date. */
static void begin_generation(kj_pool *pool, uint32_t generation)
{
  kj_block *lost = NULL;
  lock_pool(pool);
  if (pool->generation != generation) {
    lost = detach_cached(pool, 0);
    pool->count.used_bytes = 0;
    pool->generation = generation;
  }
  unlock_pool(pool);
  drop_each(lost);
}

static void forget(kj_attachment *attachment)
{
  kjit_device *device = attachment->device;
  struct kj_memory *memory = device->memory;
  uint32_t generation = atomic_load(&device->generation);
  for (uint32_t i = 0; i < KJ_POOL_COUNT; i++) begin_generation(&memory->pools[i], generation);
  kj_lock(&device->runtime->streams_mutex, KJ_LOCK_STREAMS);
  memory->join_event = NULL;
  kj_unlock(&device->runtime->streams_mutex, KJ_LOCK_STREAMS);
  kj_note_wait(device, atomic_fetch_add(&device->runtime->waits, 1));
}

static void destroy(kj_attachment *attachment)
{
  kjit_device *device = attachment->device;
  struct kj_memory *memory = device->memory;
  end_parked(device);
  for (int i = 0; i < KJ_POOL_COUNT; i++) {
    trim(&memory->pools[i], 0);
    drop_each(detach(&memory->pools[i], 0));
  }
  /* All blocks have been released, and no stream is left. On a lost device the driver does not call
   * queued host functions, so the block of an asynchronous copy may remain in use. */
  for (int i = 0; i < KJ_POOL_COUNT; i++)
    KJ_ASSERT(!memory->pools[i].count.used_bytes || atomic_load(&device->lost));
  KJ_ASSERT(!memory->streams && !memory->waiting && !atomic_load(&device->runtime->parked));
  if (memory->join_event) device->operations->destroy_event(device, memory->join_event);
  for (int i = 0; i < KJ_POOL_COUNT; i++) kj_destroy_mutex(&memory->pools[i].mutex);
  free(memory->pools);
  free(memory);
  device->memory = NULL;
}

kjit_status kj_open_memory(kjit_device *device, kj_diagnostics *diagnostics)
{
  static const kj_attachment_class class = { .destroy = destroy,
                                             .forget = forget,
                                             .begin_wait = begin_wait,
                                             .check_wait = check_wait,
                                             .end_wait = end_wait,
                                             .relieve = relieve,
                                             .report = report };
  if (!device->operations->is_queued) return KJIT_OK;
  struct kj_memory *memory = calloc(1, sizeof *memory);
  kj_pool *pools = calloc(KJ_POOL_COUNT, sizeof *pools);
  if (!memory || !pools) {
    free(memory);
    free(pools);
    return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  }
  memory->pools = pools;
  for (int i = 0; i < KJ_POOL_COUNT; i++) {
    pthread_mutex_init(&pools[i].mutex, NULL);
    pools[i].generation = atomic_load(&device->generation);
  }
  KJ_ASSERT(!device->memory);
  device->memory = memory;
  kj_attach_to_device(device, &memory->attachment, &class);
  return KJIT_OK;
}

/* ---- the public functions ---- */

static void read_statistics(const kjit_device *device, kjit_memory_statistics *statistics)
{
  if (!device->memory || ki_is_forked(device->context)) return;
  kj_pool *pool = &device->memory->pools[KJ_POOL_DEVICE],
          *pinned = &device->memory->pools[KJ_POOL_PINNED];
  lock_pool(pool);
  *statistics = pool->count;
  unlock_pool(pool);
  lock_pool(pinned);
  statistics->pinned_used_bytes = pinned->count.used_bytes;
  statistics->pinned_cached_bytes = pinned->count.cached_bytes;
  unlock_pool(pinned);
}

kjit_status kjit_get_memory_statistics(const kjit_device *device,
                                       kjit_memory_statistics *statistics)
{
  if (!device) return KJIT_ERROR_MISUSE;
  kjit_memory_statistics own = { 0 };
  read_statistics(device, &own);
  return ki_write_sized(device->context, "kjit_get_memory_statistics", KI_MEMORY_STATISTICS, &own,
                        statistics);
}

void kjit_trim_memory(kjit_device *device, uint64_t keep_bytes)
{
  if (!device || !device->memory || ki_is_forked(device->context)) return;
  for (int i = 0; i < KJ_POOL_COUNT; i++) trim(&device->memory->pools[i], keep_bytes);
}
