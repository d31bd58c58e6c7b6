/* The pools of a GPU: blocks that arrays and staged launches have given back, by size.
 *
 * A block is free in the order of the stream that it was given back on: whoever takes it for the
 * same stream may use it at once, behind what is queued there. Blocks of other streams are taken
 * only when the driver has no memory left, behind an event. A cached block is taken for a request
 * that it exceeds by little, so that not more than about a fifth of the memory lies idle in it. No
 * driver call is made while a mutex is held: host callbacks of the driver give blocks back, too. */
#include <stdlib.h>
#include <string.h>

#include "memory/device_memory.h"
#include "memory/device_memory_state.h"

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

static void count_used(kj_pool *pool, size_t size_bytes)
{
  pool->used_bytes += size_bytes;
  if (pool->used_bytes > pool->peak_bytes) pool->peak_bytes = pool->used_bytes;
}

/* What a stream may use without an event: its own, what nothing uses, and across the default stream
 * and those that are ordered with it. */
static bool is_in_order(const kj_block *block, const kjit_stream *stream)
{
  if (block->is_idle) return true;
  if (block->stream == stream || kj_native(block->stream) == kj_native(stream)) return true;
  /* only events say so, not what was launched on the stream itself */
  if (block->is_joined) return false;
  if (!kj_native(block->stream)) return stream->is_blocking;
  return !kj_native(stream) && block->stream->is_blocking;
}

static kj_block *find_in_class(kj_pool *pool, uint32_t class_, size_t size_bytes,
                               kjit_stream *stream, bool any_order)
{
  for (kj_block **at = &pool->cached[class_]; *at; at = &(*at)->next) {
    kj_block *block = *at;
    if (block->size_bytes < size_bytes || !(any_order || is_in_order(block, stream))) continue;
    /* an event there would become part of the capture */
    if (any_order && block->stream && block->stream->capture) continue;
    *at = block->next;
    pool->cached_bytes -= block->size_bytes;
    return block;
  }
  return NULL;
}

static kj_block *find_cached(kj_pool *pool, size_t size_bytes, kjit_stream *stream, bool any_order)
{
  pthread_mutex_lock(&pool->mutex);
  uint32_t class_ = class_of(size_bytes);
  kj_block *block = find_in_class(pool, class_, size_bytes, stream, any_order);
  if (!block && class_ + 1 < KJ_POOL_CLASSES)
    block = find_in_class(pool, class_ + 1, size_bytes, stream, any_order);
  if (block) {
    pool->hits++;
    count_used(pool, block->size_bytes);
  }
  pthread_mutex_unlock(&pool->mutex);
  return block;
}

static void add_cached(kj_pool *pool, kj_block *block)
{
  kj_block **list = &pool->cached[class_of(block->size_bytes)];
  block->next = *list;
  *list = block;
  pool->cached_bytes += block->size_bytes;
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
  pthread_mutex_lock(&pool->mutex);
  uint64_t used = pool->used_bytes, total = device->info.memory_bytes;
  pthread_mutex_unlock(&pool->mutex);
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

static kjit_status make_block(kjit_device *device, kj_pool_kind kind, uint64_t address,
                              size_t size_bytes, kj_diagnostics *diagnostics, kj_block **block)
{
  kj_block *made = calloc(1, sizeof *made);
  if (!made) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  *made = (kj_block){ .device = device,
                      .generation = atomic_load(&device->generation),
                      .kind = (uint8_t)kind,
                      .address = address,
                      .size_bytes = size_bytes };
  *block = made;
  return KJIT_OK;
}

/* ---- taking ---- */

/* Under the order mutex, so that the block's stream stays while the block is in no list. Where
 * ordering fails the block stays cached. */
static kj_block *take_ordered(kjit_device *device, kj_pool_kind kind, size_t size_bytes,
                              kjit_stream *stream)
{
  kj_pool *pool = &device->memory->pools[kind];
  kj_block *block = find_cached(pool, size_bytes, stream, true);
  if (!block) return NULL;
  kj_diagnostics ignored = { 0 };
  bool is_ordered =
    block->is_idle || kj_order_streams_locked(device, block->stream, stream, &ignored) == KJIT_OK;
  kj_free_diagnostics(&ignored);
  if (is_ordered) return block;
  pthread_mutex_lock(&pool->mutex);
  pool->used_bytes -= block->size_bytes;
  pool->hits--;
  add_cached(pool, block);
  pthread_mutex_unlock(&pool->mutex);
  return NULL;
}

/* Of another stream: an event orders the two. Not while something is captured, which events on
 * other streams would end. */
static kj_block *take_behind_event(kjit_device *device, kj_pool_kind kind, size_t size_bytes,
                                   kjit_stream *stream)
{
  if (kj_has_captures(device)) return NULL;
  pthread_mutex_lock(&device->memory->order_mutex);
  kj_block *block = take_ordered(device, kind, size_bytes, stream);
  pthread_mutex_unlock(&device->memory->order_mutex);
  return block;
}

static kjit_status finish_new(kjit_device *device, kj_pool_kind kind, uint64_t address,
                              size_t size_bytes, kj_diagnostics *diagnostics, kj_block **block)
{
  kj_pool *pool = &device->memory->pools[kind];
  kjit_status status = make_block(device, kind, address, size_bytes, diagnostics, block);
  if (status != KJIT_OK) {
    void *previous;
    if (kj_enter_device(device, diagnostics, &previous) == KJIT_OK) {
      free_native(device, kind, address);
      kj_leave_device(device, previous);
    }
    return status;
  }
  pthread_mutex_lock(&pool->mutex);
  pool->driver_allocations++;
  count_used(pool, size_bytes);
  pthread_mutex_unlock(&pool->mutex);
  return KJIT_OK;
}

static uint64_t flush(kjit_device *device)
{
  kj_pool *pools = device->memory->pools;
  pthread_mutex_lock(&pools[KJ_POOL_DEVICE].mutex);
  uint64_t cached = pools[KJ_POOL_DEVICE].cached_bytes;
  pools[KJ_POOL_DEVICE].flushes++;
  pthread_mutex_unlock(&pools[KJ_POOL_DEVICE].mutex);
  if (atomic_load(&pools[KJ_POOL_DEVICE].parked) &&
      /* waiting for the device is what they need, and memory is what the caller needs */
      !kj_has_captures(device)) {
    kj_diagnostics ignored = { 0 };
    (void)kj_synchronize(device, true, NULL, &ignored);
    kj_free_diagnostics(&ignored);
  }
  kj_trim_pool(device, KJ_POOL_DEVICE, 0);
  kj_trim_pool(device, KJ_POOL_PINNED, 0);
  return cached;
}

static kjit_status take_new(kjit_device *device, kj_pool_kind kind, size_t size_bytes,
                            kjit_stream *stream, kj_diagnostics *diagnostics, kj_block **block)
{
  uint64_t address = 0, flushed = 0;
  int result = allocate_native(device, kind, size_bytes, &address, diagnostics);
  if (result == KJ_CU_OUT_OF_MEMORY) {
    if ((*block = take_behind_event(device, kind, size_bytes, stream))) return KJIT_OK;
    flushed = flush(device);
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
  KJ_TRY(kj_check_device(device, diagnostics));
  void *memory = allocator->allocate(allocator->user, device, size_bytes, stream);
  /* what waits for its uses the host's pool can have back first */
  if (!memory && atomic_load(&pool->parked)) {
    (void)flush(device);
    memory = allocator->allocate(allocator->user, device, size_bytes, stream);
  }
  if (!memory)
    return kj_error(diagnostics, KJIT_ERROR_DEVICE_MEMORY,
                    "out of memory on %s: the host's device allocator cannot give %zu bytes",
                    kj_device_text(device, place), size_bytes);
  kjit_status status =
    make_block(device, KJ_POOL_DEVICE, (uint64_t)(uintptr_t)memory, size_bytes, diagnostics, block);
  if (status != KJIT_OK) {
    allocator->release(allocator->user, device, memory, size_bytes, stream);
    return status;
  }
  (*block)->is_hosts = true;
  pthread_mutex_lock(&pool->mutex);
  count_used(pool, size_bytes);
  pthread_mutex_unlock(&pool->mutex);
  return KJIT_OK;
}

kjit_status kj_take_block(kjit_device *device, kj_pool_kind kind, size_t size_bytes,
                          kjit_stream *stream, kj_diagnostics *diagnostics, kj_block **block)
{
  kj_pool *pool = &device->memory->pools[kind];
  size_t rounded = round_size(size_bytes);
  if (kind == KJ_POOL_PINNED) stream = NULL;
  KJ_TRY(kj_check_device(device, diagnostics));
  pthread_mutex_lock(&pool->mutex);
  pool->allocations++;
  pthread_mutex_unlock(&pool->mutex);
  if (kind == KJ_POOL_DEVICE && device->context->config.device_allocator)
    return take_from_host(device, rounded, stream, diagnostics, block);
  /* What is captured runs later, beside what the stream has queued by now: only memory that nothing
   * has used will do. */
  bool is_captured = stream && stream->capture;
  *block = is_captured ? NULL : find_cached(pool, rounded, stream, false);
  if (!*block) KJ_TRY(take_new(device, kind, rounded, stream, diagnostics, block));
  (*block)->is_idle = false;
  return KJIT_OK;
}

/* ---- giving back ---- */

/* A reset of the device has taken its memory, and its bytes are counted no more. */
static bool is_gone(const kj_block *block)
{
  return block->generation != atomic_load(&block->device->generation);
}

static void count_given(kj_pool *pool, const kj_block *block)
{
  pthread_mutex_lock(&pool->mutex);
  pool->used_bytes -= block->size_bytes;
  pthread_mutex_unlock(&pool->mutex);
}

static void give_to_host(kj_block *block, kjit_stream *stream)
{
  const kjit_device_allocator *allocator = block->device->context->config.device_allocator;
  if (!is_gone(block)) count_given(&block->device->memory->pools[KJ_POOL_DEVICE], block);
  allocator->release(allocator->user, block->device, (void *)(uintptr_t)block->address,
                     block->size_bytes, stream);
  free(block);
}

static void cache_block(kj_block *block, kjit_stream *stream, bool is_idle)
{
  kj_pool *pool = &block->device->memory->pools[block->kind];
  block->is_joined = block->is_joined && !is_idle;
  block->stream = stream;
  block->is_idle = is_idle;
  pthread_mutex_lock(&pool->mutex);
  pool->used_bytes -= block->size_bytes;
  add_cached(pool, block);
  pthread_mutex_unlock(&pool->mutex);
}

void kj_give_block(kj_block *block, kjit_stream *stream)
{
  if (!block) return;
  if (block->is_hosts) give_to_host(block, stream);
  else if (is_gone(block)) free(block);
  else
    cache_block(block, block->kind == KJ_POOL_PINNED ? NULL : stream,
                block->kind == KJ_POOL_PINNED);
}

void kj_give_idle_block(kj_block *block)
{
  if (!block) return;
  block->next = NULL;
  kj_return_parked(block, true);
}

void kj_park_block(kj_block *block)
{
  kj_pool *pool = &block->device->memory->pools[KJ_POOL_DEVICE];
  pthread_mutex_lock(&pool->mutex);
  block->next = atomic_load_explicit(&pool->parked, memory_order_relaxed);
  atomic_store_explicit(&pool->parked, block, memory_order_release);
  pthread_mutex_unlock(&pool->mutex);
}

kj_block *kj_take_parked(kjit_device *device)
{
  kj_pool *pool = device->memory ? &device->memory->pools[KJ_POOL_DEVICE] : NULL;
  if (!pool || !atomic_load_explicit(&pool->parked, memory_order_relaxed)) return NULL;
  pthread_mutex_lock(&pool->mutex);
  kj_block *blocks = atomic_exchange(&pool->parked, NULL);
  pthread_mutex_unlock(&pool->mutex);
  return blocks;
}

void kj_return_parked(kj_block *blocks, bool is_idle)
{
  for (kj_block *next; blocks; blocks = next) {
    next = blocks->next;
    if (!is_idle) kj_park_block(blocks);
    else if (blocks->is_hosts) give_to_host(blocks, NULL);
    else if (is_gone(blocks)) free(blocks);
    else cache_block(blocks, NULL, true);
  }
}

void kj_retag_blocks(kjit_stream *stream, bool is_idle)
{
  kj_pool *pool = &stream->object.device->memory->pools[KJ_POOL_DEVICE];
  pthread_mutex_lock(&pool->mutex);
  for (uint32_t i = 0; i < KJ_POOL_CLASSES; i++) {
    for (kj_block *block = pool->cached[i]; block; block = block->next) {
      if (block->stream != stream) continue;
      block->stream = NULL;
      block->is_idle = block->is_idle || is_idle;
      block->is_joined = !block->is_idle;
    }
  }
  pthread_mutex_unlock(&pool->mutex);
}

/* ---- trimming and the end ---- */

static kj_block *detach(kj_pool *pool, uint64_t keep_bytes)
{
  kj_block *detached = NULL;
  pthread_mutex_lock(&pool->mutex);
  for (uint32_t i = KJ_POOL_CLASSES; i-- > 0;) { /* large ones first */
    while (pool->cached[i] && pool->cached_bytes > keep_bytes) {
      kj_block *block = pool->cached[i];
      pool->cached[i] = block->next;
      pool->cached_bytes -= block->size_bytes;
      block->next = detached;
      detached = block;
    }
  }
  pthread_mutex_unlock(&pool->mutex);
  return detached;
}

/* The driver waits for what still uses the memory that it frees. */
static bool free_cached(kj_block *block)
{
  kj_diagnostics ignored = { 0 };
  void *previous;
  bool is_entered = kj_enter_device(block->device, &ignored, &previous) == KJIT_OK;
  if (is_entered && !is_gone(block))
    free_native(block->device, (kj_pool_kind)block->kind, block->address);
  if (is_entered) kj_leave_device(block->device, previous);
  kj_free_diagnostics(&ignored);
  return is_entered;
}

static void trim(kjit_device *device, kj_pool_kind kind, uint64_t keep_bytes, bool is_end)
{
  kj_pool *pool = &device->memory->pools[kind];
  kj_block *blocks = detach(pool, keep_bytes);
  for (kj_block *next; blocks; blocks = next) {
    next = blocks->next;
    if (free_cached(blocks) || is_end) {
      free(blocks);
      continue;
    }
    pthread_mutex_lock(&pool->mutex);
    add_cached(pool, blocks);
    pthread_mutex_unlock(&pool->mutex);
  }
}

void kj_trim_pool(kjit_device *device, kj_pool_kind kind, uint64_t keep_bytes)
{
  trim(device, kind, keep_bytes, false);
}

static struct kj_memory *memory_of(kj_attachment *attachment) { return attachment->device->memory; }

static void *begin_wait(kj_attachment *attachment) { return kj_take_parked(attachment->device); }

static void end_wait(kj_attachment *attachment, void *covered, bool is_done)
{
  (void)attachment;
  kj_return_parked(covered, is_done);
}

static void relieve(kj_attachment *attachment) { (void)flush(attachment->device); }

static void forget_memory(kj_attachment *attachment)
{
  kjit_device *device = attachment->device;
  kj_return_parked(kj_take_parked(device), true);
  for (uint32_t i = 0; i < KJ_POOL_COUNT; i++) {
    kj_block *blocks = detach(&device->memory->pools[i], 0);
    for (kj_block *next; blocks; blocks = next) {
      next = blocks->next;
      free(blocks);
    }
    device->memory->pools[i].used_bytes = 0;
  }
  device->memory->join_event = NULL;
}

static void destroy_memory(kj_attachment *attachment)
{
  kjit_device *device = attachment->device;
  struct kj_memory *memory = memory_of(attachment);
  kj_return_parked(kj_take_parked(device), true);
  for (int i = 0; i < KJ_POOL_COUNT; i++) trim(device, (kj_pool_kind)i, 0, true);
  if (memory->join_event) device->operations->destroy_event(device, memory->join_event);
  for (int i = 0; i < KJ_POOL_COUNT; i++) pthread_mutex_destroy(&memory->pools[i].mutex);
  pthread_mutex_destroy(&memory->order_mutex);
  free(memory);
  device->memory = NULL;
}

kjit_status kj_open_memory(kjit_device *device, kj_diagnostics *diagnostics)
{
  static const kj_attachment_class class = { .destroy = destroy_memory,
                                             .forget = forget_memory,
                                             .begin_wait = begin_wait,
                                             .end_wait = end_wait,
                                             .relieve = relieve };
  if (!device->operations->is_queued) return KJIT_OK;
  struct kj_memory *memory = calloc(1, sizeof *memory);
  if (!memory) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  for (int i = 0; i < KJ_POOL_COUNT; i++) pthread_mutex_init(&memory->pools[i].mutex, NULL);
  pthread_mutex_init(&memory->order_mutex, NULL);
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
  pthread_mutex_lock(&pool->mutex);
  statistics->used_bytes = pool->used_bytes;
  statistics->cached_bytes = pool->cached_bytes;
  statistics->peak_bytes = pool->peak_bytes;
  statistics->allocations = pool->allocations;
  statistics->hits = pool->hits;
  statistics->driver_allocations = pool->driver_allocations;
  statistics->flushes = pool->flushes;
  pthread_mutex_unlock(&pool->mutex);
  pthread_mutex_lock(&pinned->mutex);
  statistics->pinned_used_bytes = pinned->used_bytes;
  statistics->pinned_cached_bytes = pinned->cached_bytes;
  pthread_mutex_unlock(&pinned->mutex);
}

void kjit_trim_memory(kjit_device *device, uint64_t keep_bytes)
{
  if (!device || !device->memory || ki_is_forked(device->context)) return;
  kj_trim_pool(device, KJ_POOL_DEVICE, keep_bytes);
  kj_trim_pool(device, KJ_POOL_PINNED, keep_bytes);
}
