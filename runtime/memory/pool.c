/* Blocks of memory, and the pools of a device: blocks that arrays and staged launches have given
 * back, by size.
 *
 * A cached block is free in the order of one stream: whoever takes it for that stream may use it at
 * once, behind what is queued there. When the host has waited for the device since, it is free for
 * everyone. Blocks of other streams are taken only when the driver has no memory left, behind an
 * event. A cached block is taken for a request that it exceeds by little, so that not more than
 * about a fifth of the memory lies idle in it. No driver call is made while a pool's mutex is held:
 * host callbacks of the driver give blocks back, too. */
#include "memory/pool.h"

#include <stdlib.h>
#include <string.h>

enum { SMALL_STEP = 512, LARGE_STEP = 128 << 10, LARGE = 1 << 20, CLASSES = 8 * 40 };

typedef struct kj_pool {
  pthread_mutex_t mutex;
  /* Of the device, up to the last reset that the pool knows of: blocks of an earlier generation are
   * neither kept nor counted. A reset raises the device's number before it tells the pools. */
  uint32_t generation;
  /* not used by anything but their stream, by none where a wait has passed since */
  kj_block *cached[CLASSES];
  kjit_memory_statistics count; /* but for the pinned_... */
} kj_pool;

/* ---- sizes ---- */

static size_t round_size(size_t size_bytes)
{
  size_t step = size_bytes >= LARGE ? LARGE_STEP : SMALL_STEP;
  if (size_bytes > SIZE_MAX - step) return size_bytes;
  return size_bytes ? (size_bytes + step - 1) / step * step : step;
}

/* Eight classes for each power of two; a block is in the class that its size reaches. */
static uint32_t class_of(size_t size_bytes)
{
  uint32_t power = 63 - (uint32_t)__builtin_clzll(size_bytes), first = 9; /* 512 */
  if (power < first) return 0;
  uint32_t index = (power - first) * 8 + (uint32_t)(size_bytes >> (power - 3) & 7);
  return index < CLASSES ? index : CLASSES - 1;
}

/* ---- the lists; under the pool's mutex ---- */

/* Every cached block is in the class of its size, and the counts are their sums. */
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
  KJ_ASSERT(pool->count.hits <= pool->count.allocations + 1); /* counted before or after this */
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

/* A block leaves the hands of its user. */
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

/* What is free for nobody in particular, or has been waited for since. */
static bool is_idle(const kj_block *block)
{
  return !block->stream ||
         block->stamp <= atomic_load_explicit(&block->device->memory->waited, memory_order_acquire);
}

static const uint64_t ANY_CONTENT = UINT64_MAX;

/* stream ALL: of any one, whatever still uses it. */
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

/* Whatever is in it, but rather what nobody comes back for. */
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

/* What a reset has taken meanwhile is not kept. */
static void add_cached(kj_pool *pool, kj_block *block)
{
  kj_block **list = &pool->cached[class_of(block->size_bytes)];
  KJ_ASSERT(!block->next && block->data == pool); /* in no list */
  if (block->generation != pool->generation) {
    kj_drop_block(block);
    return;
  }
  block->next = *list;
  *list = block;
  pool->count.cached_bytes += block->size_bytes;
}

/* ---- how blocks end ---- */

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

/* What a reset has taken is gone already. false: the device cannot have it back now. */
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
  if (kj_is_gone(block)) { /* with what used it */
    kj_drop_block(block);
    return;
  }
  KJ_ASSERT(!kj_read_use(&block->use, 1)); /* its own stream's at most: order_uses */
  block->stamp = atomic_load(&block->device->runtime->waits);
  lock_pool(pool);
  count_unused(pool, block);
  add_cached(pool, block);
  unlock_pool(pool);
}

/* The host may destroy the stream meanwhile: it is held. */
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

/* Brings the uses down to what the kind allows: nothing, or the block's own stream. That one is
 * alive if it was when the block was taken, and no stream of the device has gone since. */
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
  if (kj_is_gone(block)) return true; /* and what used it, with it */
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
  kj_block *made = calloc(1, sizeof *made);
  KJ_ASSERT(kind->free && (!allocation || allocation->address));
  if (!made) return NULL;
  made->kind = kind;
  made->device = device;
  made->generation = atomic_load(&device->generation);
  made->file = -1;
  if (!allocation) return made;
  made->address = allocation->address;
  made->size_bytes = allocation->size_bytes;
  made->memory = allocation->memory;
  made->file = allocation->file;
  return made;
}

/* A device has none left: it says so without a report. */
static bool is_out(kjit_status status)
{
  return status == KJIT_ERROR_DEVICE_MEMORY || status == KJIT_ERROR_MEMORY;
}

/* The device has none left: all that is kept goes back, and it is asked once more. */
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

/* Of another stream: an event orders the two. The blocks are looked through without a lock on the
 * streams' order, so that one whose stream cannot be waited for now goes back to the end of the
 * search. */
static kj_block *take_behind_event(kjit_device *device, kj_pool *pool, size_t size_bytes,
                                   kj_stream_id stream)
{
  kj_block *refused = NULL, *block;
  KJ_ASSERT(stream != KJ_STREAM_NONE && stream != KJ_STREAM_ALL);
  if (kj_has_captures(device)) return NULL; /* none can be waited for */
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

/* Under the pool's mutex. */
static kj_block *detach_cached(kj_pool *pool, uint64_t keep_bytes)
{
  kj_block *detached = NULL;
  for (uint32_t i = CLASSES; i-- > 0;) { /* large ones first */
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

/* The driver waits for what still uses the memory that it frees. What cannot be freed now stays
 * cached. */
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
  /* waiting for the device is what they need, and memory is what the caller needs */
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
  /* what waits for its uses the host's pool can have back first */
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

/* What is known of a block that was taken on a stream. */
static void note_taken(kj_block *block, kj_stream_id stream, uint32_t forgotten)
{
  KJ_ASSERT(!block->next && !kj_read_use(&block->use, 1));
  block->stream = stream;
  block->forgotten = forgotten;
  block->use.streams[0] = stream; /* there is at most one, whose order the block was free in */
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
  /* What is captured runs later, beside what the stream has queued by now: only memory that nothing
   * uses will do. */
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
  /* which names no thread's own stream when it is given memory back */
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

/* ---- the layer's part of a device ---- */

/* The context ends while something is parked, whose waits have failed: it is freed in any case, but
 * not without having tried once more. */
static void end_parked(kjit_device *device)
{
  kj_runtime *runtime = device->runtime;
  if (!atomic_load(&runtime->parked)) return;
  (void)kj_synchronize(device, true, NULL, NULL);
  kj_settle_parked(runtime, true);
  kj_block *blocks = atomic_exchange(&runtime->parked, NULL);
  for (kj_block *block; (block = pop(&blocks));) {
    block->use = (kj_last_use){ 0 }; /* nothing comes after them */
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

/* What the host captures by itself a wait for the device would break. */
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

/* A reset takes the device's memory. Of two at once the second finds the pool told already. */
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
  /* Every block has come back by now, and no stream is left. On a lost device the driver does not
   * call host functions that were queued, so that the block of an asynchronous copy stays out. */
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
