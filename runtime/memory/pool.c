/* Blocks of memory, and the pools of a GPU: blocks that arrays and staged launches have given back,
 * by size.
 *
 * A cached block is free in the order of one stream: whoever takes it for that stream may use it at
 * once, behind what is queued there. When the host has waited for the device since, it is free for
 * everyone. Blocks of other streams are taken only when the driver has no memory left, behind an
 * event. A cached block is taken for a request that it exceeds by little, so that not more than
 * about a fifth of the memory lies idle in it. No driver call is made while a pool's mutex is held:
 * host callbacks of the driver give blocks back, too. */
#include "cuda/cuda.h"
#include "memory/pool.h"

#include <stdlib.h>
#include <string.h>

enum { SMALL_STEP = 512, LARGE_STEP = 128 << 10, LARGE = 1 << 20 };

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
  return index < KJ_POOL_CLASSES ? index : KJ_POOL_CLASSES - 1;
}

/* ---- the lists; under the pool's mutex ---- */

static void lock_pool(kj_pool *pool) { kj_lock(&pool->mutex, KJ_LOCK_POOL); }
static void unlock_pool(kj_pool *pool) { kj_unlock(&pool->mutex, KJ_LOCK_POOL); }

static void count_used(kj_pool *pool, size_t size_bytes)
{
  pool->used_bytes += size_bytes;
  if (pool->used_bytes > pool->peak_bytes) pool->peak_bytes = pool->used_bytes;
}

/* What is free for nobody in particular, or has been waited for since. */
static bool is_idle(const kj_block *block)
{
  return !block->stream ||
         block->stamp <= atomic_load_explicit(&block->device->memory->waited, memory_order_acquire);
}

typedef enum find_what { FIND_IN_ORDER, FIND_ANY } find_what;

static kj_block *find_in_class(kj_pool *pool, uint32_t class_, size_t size_bytes,
                               kj_stream_id stream, find_what what)
{
  for (kj_block **at = &pool->cached[class_]; *at; at = &(*at)->next) {
    kj_block *block = *at;
    bool fits = block->size_bytes >= size_bytes &&
                (what == FIND_ANY || block->stream == stream || is_idle(block));
    if (!fits) continue;
    *at = block->next;
    pool->cached_bytes -= block->size_bytes;
    return block;
  }
  return NULL;
}

static kj_block *find_cached(kj_pool *pool, size_t size_bytes, kj_stream_id stream, find_what what)
{
  lock_pool(pool);
  uint32_t class_ = class_of(size_bytes);
  kj_block *block = find_in_class(pool, class_, size_bytes, stream, what);
  if (!block && class_ + 1 < KJ_POOL_CLASSES)
    block = find_in_class(pool, class_ + 1, size_bytes, stream, what);
  if (block) {
    pool->hits++;
    count_used(pool, block->size_bytes);
  }
  unlock_pool(pool);
  return block;
}

static void add_cached(kj_pool *pool, kj_block *block)
{
  kj_block **list = &pool->cached[class_of(block->size_bytes)];
  block->next = *list;
  *list = block;
  pool->cached_bytes += block->size_bytes;
}

/* ---- how blocks end ---- */

bool kj_is_gone(const kj_block *block)
{
  return block->generation != atomic_load(&block->device->generation);
}

static void cache_block(kj_block *block, kj_pool_kind kind)
{
  kj_pool *pool = &block->device->memory->pools[kind];
  if (kj_is_gone(block)) { /* with its memory; its bytes are counted no more */
    free(block);
    return;
  }
  block->stamp = atomic_load(&block->device->runtime->waits);
  lock_pool(pool);
  pool->used_bytes -= block->size_bytes;
  add_cached(pool, block);
  unlock_pool(pool);
}

static void cache_device(kj_block *block) { cache_block(block, KJ_POOL_DEVICE); }
static void cache_pinned(kj_block *block) { cache_block(block, KJ_POOL_PINNED); }

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
  if (!kj_is_gone(block)) pool->used_bytes -= block->size_bytes;
  unlock_pool(pool);
  kj_assert_no_locks();
  allocator->release(allocator->user, device, (void *)(uintptr_t)block->address, block->size_bytes,
                     stream);
  kj_release_stream(stream);
  free(block);
}

static const kj_block_kind pool_kinds[KJ_POOL_COUNT] = {
  [KJ_POOL_DEVICE] = { .is_in_order = true, .free = cache_device },
  [KJ_POOL_PINNED] = { .free = cache_pinned },
};
static const kj_block_kind hosts_kind = { .is_in_order = true,
                                          .calls_host = true,
                                          .free = give_to_host };

/* ---- release ---- */

static bool is_uses_own(const kj_block *block)
{
  return kj_is_only_use(&block->use, block->kind->is_in_order ? block->stream : KJ_STREAM_NONE);
}

/* A stream that was alive when the block was taken, and no stream of the device has gone since. */
static bool has_own_stream(const kj_block *block)
{
  const struct kj_memory *memory = block->device->memory;
  return !block->stream || !memory ||
         block->forgotten == atomic_load_explicit(&memory->forgotten, memory_order_relaxed);
}

/* Brings the uses down to what the kind allows: nothing, or the block's own stream. */
static bool order_uses(kj_block *block)
{
  kjit_device *device = block->device;
  if (is_uses_own(block) && has_own_stream(block)) return true;
  if (kj_is_gone(block)) return true; /* and what used it, with it */
  if (!block->kind->is_in_order) return false;
  kj_diagnostics ignored = { 0 };
  kj_stream_id stream = block->stream;
  kjit_status status = kj_join_uses(device, &block->use, &stream, &ignored);
  kj_free_diagnostics(&ignored);
  if (status == KJIT_OK) {
    block->stream = stream;
    block->use = (kj_last_use){ { stream } };
  }
  return status == KJIT_OK;
}

static bool wait_uses(kj_block *block)
{
  kj_diagnostics ignored = { 0 };
  kjit_status status = kj_wait_uses(block->device, &block->use, &ignored);
  kj_free_diagnostics(&ignored);
  return status == KJIT_OK;
}

static void park(kj_block *block)
{
  kj_runtime *runtime = block->device->runtime;
  kj_lock(&runtime->objects_mutex, KJ_LOCK_OBJECTS);
  block->next = atomic_load(&runtime->parked);
  atomic_store(&runtime->parked, block);
  kj_unlock(&runtime->objects_mutex, KJ_LOCK_OBJECTS);
}

void kj_release_block(kj_block *block)
{
  if (!block) return;
  if (order_uses(block) || (block->kind->waits && wait_uses(block))) {
    block->kind->free(block);
    return;
  }
  block->stamp = atomic_load(&block->device->runtime->waits);
  park(block);
}

void kj_settle_parked(kj_runtime *runtime, bool calls_host)
{
  if (!atomic_load_explicit(&runtime->parked, memory_order_relaxed)) return;
  kj_lock(&runtime->objects_mutex, KJ_LOCK_OBJECTS);
  kj_block *blocks = atomic_exchange(&runtime->parked, NULL);
  kj_unlock(&runtime->objects_mutex, KJ_LOCK_OBJECTS);
  for (kj_block *next; blocks; blocks = next) {
    next = blocks->next;
    kj_note_passed(runtime, &blocks->use, blocks->stamp);
    if ((calls_host || !blocks->kind->calls_host) && order_uses(blocks)) blocks->kind->free(blocks);
    else park(blocks);
  }
}

/* ---- the driver ---- */

static int call_driver(kjit_device *device, kj_pool_kind kind, size_t size_bytes, uint64_t *address)
{
  enum { PORTABLE = 1 };
  if (kind == KJ_POOL_DEVICE) return device->driver->cuMemAlloc(address, size_bytes);
  void *memory = NULL;
  int result = device->driver->cuMemHostAlloc(&memory, size_bytes, PORTABLE);
  *address = (uint64_t)(uintptr_t)memory;
  return result;
}

static void free_native(kjit_device *device, kj_pool_kind kind, uint64_t address)
{
  if (kind == KJ_POOL_DEVICE) device->driver->cuMemFree(address);
  else device->driver->cuMemFreeHost((void *)(uintptr_t)address);
}

static const char *const calls[KJ_POOL_COUNT] = { "cuMemAlloc", "cuMemHostAlloc" };

static int allocate_native(kjit_device *device, kj_pool_kind kind, size_t size_bytes,
                           uint64_t *address, kj_diagnostics *diagnostics)
{
  enum { NOT_ENTERED = -1 };
  void *previous;
  if (kj_enter_device(device, diagnostics, &previous) != KJIT_OK) return NOT_ENTERED;
  int result = call_driver(device, kind, size_bytes, address);
  kj_leave_device(device, previous);
  return result;
}

static kjit_status report_out_of_memory(kjit_device *device, kj_pool_kind kind, size_t size_bytes,
                                        uint64_t flushed_bytes, kj_diagnostics *diagnostics)
{
  char place[24];
  kj_pool *pool = &device->memory->pools[kind];
  lock_pool(pool);
  uint64_t used = pool->used_bytes, total = device->info.memory_bytes;
  unlock_pool(pool);
  if (kind == KJ_POOL_PINNED)
    return kj_error(
      diagnostics, KJIT_ERROR_MEMORY,
      "out of pinned host memory for %s: cuMemHostAlloc cannot give %zu bytes (kjit uses %llu)",
      kj_device_text(device, place), size_bytes, (unsigned long long)used);
  return kj_error(diagnostics, KJIT_ERROR_DEVICE_MEMORY,
                  "out of memory on %s: cuMemAlloc cannot give %zu bytes (the device has %llu, "
                  "kjit's arrays use %llu, %llu were cached and are given back)",
                  kj_device_text(device, place), size_bytes, (unsigned long long)total,
                  (unsigned long long)used, (unsigned long long)flushed_bytes);
}

kj_block *kj_make_block(kjit_device *device, const kj_block_kind *kind)
{
  kj_block *made = calloc(1, sizeof *made);
  if (!made) return NULL;
  made->kind = kind;
  made->device = device;
  made->generation = atomic_load(&device->generation);
  made->file = -1;
  return made;
}

void kj_drop_block(kj_block *block) { free(block); }

/* ---- taking ---- */

/* Of another stream: an event orders the two. The blocks are looked through without a lock on the
 * streams' order, so that one whose stream cannot be waited for now goes back to the end of the
 * search. */
static kj_block *take_behind_event(kjit_device *device, kj_pool_kind kind, size_t size_bytes,
                                   kj_stream_id stream)
{
  kj_pool *pool = &device->memory->pools[kind];
  kj_block *refused = NULL, *block;
  if (kj_has_captures(device)) return NULL; /* none can be waited for */
  while ((block = find_cached(pool, size_bytes, stream, FIND_ANY))) {
    kj_diagnostics ignored = { 0 };
    kj_stream_id next = stream;
    block->use = (kj_last_use){ { block->stream } };
    kjit_status status = kj_join_uses(device, &block->use, &next, &ignored);
    kj_free_diagnostics(&ignored);
    if (status == KJIT_OK && next == stream) break;
    block->next = refused;
    refused = block;
  }
  lock_pool(pool);
  for (kj_block *next; refused; refused = next) {
    next = refused->next;
    pool->used_bytes -= refused->size_bytes;
    pool->hits--;
    add_cached(pool, refused);
  }
  unlock_pool(pool);
  return block;
}

static kjit_status finish_new(kjit_device *device, kj_pool_kind kind, uint64_t address,
                              size_t size_bytes, kj_diagnostics *diagnostics, kj_block **block)
{
  kj_pool *pool = &device->memory->pools[kind];
  void *previous;
  *block = kj_make_block(device, &pool_kinds[kind]);
  if (!*block && kj_enter_device(device, diagnostics, &previous) == KJIT_OK) {
    free_native(device, kind, address);
    kj_leave_device(device, previous);
  }
  if (!*block) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  (*block)->address = address;
  (*block)->size_bytes = size_bytes;
  lock_pool(pool);
  pool->driver_allocations++;
  count_used(pool, size_bytes);
  unlock_pool(pool);
  return KJIT_OK;
}

static void trim(kjit_device *device, kj_pool_kind kind, uint64_t keep_bytes);

static uint64_t flush(kjit_device *device, bool calls_host)
{
  kj_runtime *runtime = device->runtime;
  kj_pool *pool = &device->memory->pools[KJ_POOL_DEVICE];
  lock_pool(pool);
  uint64_t cached = pool->cached_bytes;
  pool->flushes++;
  unlock_pool(pool);
  /* waiting for the device is what they need, and memory is what the caller needs */
  if (atomic_load(&runtime->parked) && kj_is_waitable(device)) {
    kj_diagnostics ignored = { 0 };
    (void)kj_synchronize(device, true, NULL, &ignored);
    kj_free_diagnostics(&ignored);
    kj_settle_parked(runtime, calls_host);
  }
  for (int i = 0; i < KJ_POOL_COUNT; i++) trim(device, (kj_pool_kind)i, 0);
  return cached;
}

static kjit_status take_new(kjit_device *device, kj_pool_kind kind, size_t size_bytes,
                            kj_stream_id stream, kj_diagnostics *diagnostics, kj_block **block)
{
  uint64_t address = 0, flushed = 0;
  int result = allocate_native(device, kind, size_bytes, &address, diagnostics);
  if (result == KJ_CU_OUT_OF_MEMORY) {
    if (stream && (*block = take_behind_event(device, kind, size_bytes, stream))) return KJIT_OK;
    flushed = flush(device, false);
    result = allocate_native(device, kind, size_bytes, &address, diagnostics);
  }
  if (result < 0) return diagnostics->status;
  if (result == KJ_CU_OUT_OF_MEMORY)
    return report_out_of_memory(device, kind, size_bytes, flushed, diagnostics);
  KJ_TRY(kj_check_driver(device->driver, device, result, calls[kind], diagnostics));
  return finish_new(device, kind, address, size_bytes, diagnostics, block);
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
    (void)flush(device, true);
    memory = allocator->allocate(allocator->user, device, size_bytes, stream);
  }
  if (!memory)
    return kj_error(diagnostics, KJIT_ERROR_DEVICE_MEMORY,
                    "out of memory on %s: the host's device allocator cannot give %zu bytes",
                    kj_device_text(device, place), size_bytes);
  *block = kj_make_block(device, &hosts_kind);
  if (!*block) {
    allocator->release(allocator->user, device, memory, size_bytes, stream);
    return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  }
  (*block)->address = (uint64_t)(uintptr_t)memory;
  (*block)->size_bytes = size_bytes;
  lock_pool(pool);
  count_used(pool, size_bytes);
  unlock_pool(pool);
  return KJIT_OK;
}

kjit_status kj_take_block(kjit_device *device, kj_pool_kind kind, size_t size_bytes,
                          kjit_stream *stream, kj_diagnostics *diagnostics, kj_block **block)
{
  struct kj_memory *memory = device->memory;
  kj_pool *pool = &memory->pools[kind];
  size_t rounded = round_size(size_bytes);
  kj_stream_id id = kind == KJ_POOL_PINNED ? KJ_STREAM_NONE : kj_id_of(stream, device);
  KJ_TRY(kj_check_device(device, diagnostics));
  /* What is captured runs later, beside what the stream has queued by now: only memory that nothing
   * uses will do. */
  bool is_captured = false;
  if (stream && id) KJ_TRY(kj_ask_capture(stream, diagnostics, &is_captured));
  uint32_t forgotten = atomic_load_explicit(&memory->forgotten, memory_order_relaxed);
  lock_pool(pool);
  pool->allocations++;
  unlock_pool(pool);
  bool is_hosts = kind == KJ_POOL_DEVICE && device->context->config.device_allocator;
  if (is_hosts) {
    if (is_captured)
      return kj_error(diagnostics, KJIT_ERROR_MISUSE,
                      "the host's device allocator gives memory in the order of a stream, and this "
                      "one is being captured: allocate before kjit_begin_capture");
    KJ_TRY(take_from_host(device, rounded, stream, diagnostics, block));
  } else {
    *block = find_cached(pool, rounded, is_captured ? KJ_STREAM_NONE : id, FIND_IN_ORDER);
    if (!*block)
      KJ_TRY(
        take_new(device, kind, rounded, is_captured ? KJ_STREAM_NONE : id, diagnostics, block));
  }
  /* which names no thread's own stream when it is given memory back */
  (*block)->stream = is_hosts && id & KJ_STREAM_THREADS ? kj_id_of(NULL, device) : id;
  (*block)->forgotten = forgotten;
  (*block)->use.streams[0] = id; /* there is at most one, whose order the block was free in */
  return KJIT_OK;
}

void kj_hand_blocks_on(kjit_device *device, kj_stream_id stream, bool is_passed)
{
  kj_pool *pool = &device->memory->pools[KJ_POOL_DEVICE];
  lock_pool(pool);
  for (uint32_t i = 0; i < KJ_POOL_CLASSES; i++)
    for (kj_block *block = pool->cached[i]; block; block = block->next)
      if (block->stream == stream)
        block->stream = is_passed ? KJ_STREAM_NONE : kj_id_of(NULL, device);
  unlock_pool(pool);
}

/* ---- trimming and the end ---- */

static kj_block *detach(kj_pool *pool, uint64_t keep_bytes)
{
  kj_block *detached = NULL;
  lock_pool(pool);
  for (uint32_t i = KJ_POOL_CLASSES; i-- > 0;) { /* large ones first */
    while (pool->cached[i] && pool->cached_bytes > keep_bytes) {
      kj_block *block = pool->cached[i];
      pool->cached[i] = block->next;
      pool->cached_bytes -= block->size_bytes;
      block->next = detached;
      detached = block;
    }
  }
  unlock_pool(pool);
  return detached;
}

/* The driver waits for what still uses the memory that it frees. */
static bool free_cached(kj_block *block, kj_pool_kind kind)
{
  kj_diagnostics ignored = { 0 };
  void *previous;
  bool is_entered = kj_enter_device(block->device, &ignored, &previous) == KJIT_OK;
  if (is_entered && !kj_is_gone(block)) free_native(block->device, kind, block->address);
  if (is_entered) kj_leave_device(block->device, previous);
  kj_free_diagnostics(&ignored);
  return is_entered;
}

static void free_blocks(kj_block *blocks)
{
  for (kj_block *next; blocks; blocks = next) {
    next = blocks->next;
    free(blocks);
  }
}

/* What cannot be freed now stays cached. */
static void trim(kjit_device *device, kj_pool_kind kind, uint64_t keep_bytes)
{
  kj_pool *pool = &device->memory->pools[kind];
  kj_block *blocks = detach(pool, keep_bytes);
  for (kj_block *next; blocks; blocks = next) {
    next = blocks->next;
    if (free_cached(blocks, kind)) {
      free(blocks);
      continue;
    }
    lock_pool(pool);
    add_cached(pool, blocks);
    unlock_pool(pool);
  }
}

/* ---- the layer's part of a device ---- */

/* The context ends while something is parked, whose waits have failed: it is freed in any case, but
 * not without having tried once more. */
static void end_parked(kjit_device *device)
{
  kj_runtime *runtime = device->runtime;
  kj_diagnostics ignored = { 0 };
  if (!atomic_load(&runtime->parked)) return;
  (void)kj_synchronize(device, true, NULL, &ignored);
  kj_free_diagnostics(&ignored);
  kj_settle_parked(runtime, true);
  kj_block *blocks = atomic_exchange(&runtime->parked, NULL);
  for (kj_block *next; blocks; blocks = next) {
    next = blocks->next;
    blocks->kind->free(blocks);
  }
}

static void count_waiting(kj_attachment *attachment, uint32_t change)
{
  kj_runtime *runtime = attachment->runtime;
  kj_lock(&runtime->streams_mutex, KJ_LOCK_STREAMS);
  attachment->device->memory->waiting += change;
  pthread_cond_broadcast(&runtime->waits_changed);
  kj_unlock(&runtime->streams_mutex, KJ_LOCK_STREAMS);
}

static void *begin_wait(kj_attachment *attachment)
{
  count_waiting(attachment, 1);
  return (void *)(uintptr_t)atomic_fetch_add(&attachment->runtime->waits, 1);
}

static void end_wait(kj_attachment *attachment, void *number, bool is_done)
{
  count_waiting(attachment, (uint32_t)-1);
  if (!is_done) return;
  kj_note_wait(attachment->device, (uintptr_t)number);
  kj_settle_parked(attachment->runtime, false);
}

static void relieve(kj_attachment *attachment) { (void)flush(attachment->device, false); }

static kjit_status report(kj_attachment *attachment, kj_diagnostics *diagnostics)
{
  (void)diagnostics;
  kj_settle_parked(attachment->runtime, true);
  return KJIT_OK;
}

static void forget(kj_attachment *attachment)
{
  kjit_device *device = attachment->device;
  struct kj_memory *memory = device->memory;
  for (uint32_t i = 0; i < KJ_POOL_COUNT; i++) {
    free_blocks(detach(&memory->pools[i], 0));
    memory->pools[i].used_bytes = 0;
  }
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
    trim(device, (kj_pool_kind)i, 0);
    free_blocks(detach(&memory->pools[i], 0));
  }
  if (memory->join_event) device->operations->destroy_event(device, memory->join_event);
  for (int i = 0; i < KJ_POOL_COUNT; i++) pthread_mutex_destroy(&memory->pools[i].mutex);
  free(memory);
  device->memory = NULL;
}

kjit_status kj_open_memory(kjit_device *device, kj_diagnostics *diagnostics)
{
  static const kj_attachment_class class = { .destroy = destroy,
                                             .forget = forget,
                                             .begin_wait = begin_wait,
                                             .end_wait = end_wait,
                                             .relieve = relieve,
                                             .report = report };
  if (!device->operations->is_queued) return KJIT_OK;
  struct kj_memory *memory = calloc(1, sizeof *memory);
  if (!memory) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  for (int i = 0; i < KJ_POOL_COUNT; i++) pthread_mutex_init(&memory->pools[i].mutex, NULL);
  device->memory = memory;
  kj_attach_to_device(device, &memory->attachment, &class);
  return KJIT_OK;
}

/* ---- the public functions ---- */

void kjit_get_memory_statistics(const kjit_device *device, kjit_memory_statistics *statistics)
{
  if (!statistics) return;
  *statistics = (kjit_memory_statistics){ 0 };
  if (!device || !device->memory || ki_is_forked(device->context)) return;
  kj_pool *pool = &device->memory->pools[KJ_POOL_DEVICE],
          *pinned = &device->memory->pools[KJ_POOL_PINNED];
  lock_pool(pool);
  statistics->used_bytes = pool->used_bytes;
  statistics->cached_bytes = pool->cached_bytes;
  statistics->peak_bytes = pool->peak_bytes;
  statistics->allocations = pool->allocations;
  statistics->hits = pool->hits;
  statistics->driver_allocations = pool->driver_allocations;
  statistics->flushes = pool->flushes;
  unlock_pool(pool);
  lock_pool(pinned);
  statistics->pinned_used_bytes = pinned->used_bytes;
  statistics->pinned_cached_bytes = pinned->cached_bytes;
  unlock_pool(pinned);
}

void kjit_trim_memory(kjit_device *device, uint64_t keep_bytes)
{
  if (!device || !device->memory || ki_is_forked(device->context)) return;
  trim(device, KJ_POOL_DEVICE, keep_bytes);
  trim(device, KJ_POOL_PINNED, keep_bytes);
}
