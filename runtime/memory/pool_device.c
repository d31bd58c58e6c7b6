/* Connects the pools of a device with the runtime: creates and destroys the pools, reacts to resets
 * of the device and to waits for the device, and implements the public functions about memory
 * use. */
#include <stdlib.h>

#include "memory/pool_lists.h"

/* Frees parked memory at the end of a context. Earlier waits for this memory's uses have failed.
 * This function waits once more and then frees the memory in any case. */
static void end_parked(kjit_device *device)
{
  kj_runtime *runtime = device->runtime;
  if (!atomic_load(&runtime->parked)) return;
  (void)kj_synchronize(device, true, NULL, NULL);
  kj_settle_parked(runtime, true);
  kj_block *blocks = atomic_exchange(&runtime->parked, NULL);
  for (kj_block *block; (block = kj_pop_block(&blocks));) {
    block->use = (kj_last_use){ 0 }; /* no further work uses the memory */
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

/* Returns an error if the application itself captures a stream, because a wait for the device would
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

static void relieve(kj_attachment *attachment) { kj_flush_pools(attachment->device, false); }

static kjit_status report(kj_attachment *attachment, kj_diagnostics *diagnostics)
{
  (void)diagnostics;
  kj_settle_parked(attachment->runtime, true);
  return KJIT_OK;
}

/* Begins a new generation after a reset, which has freed the device's memory. If two resets
 * overlap, the second call finds the pool up to date. */
static void begin_generation(kj_pool *pool, uint32_t generation)
{
  kj_block *lost = NULL;
  kj_lock_pool(pool);
  if (pool->generation != generation) {
    lost = kj_detach_cached(pool, 0);
    pool->count.used_bytes = 0;
    pool->generation = generation;
  }
  kj_unlock_pool(pool);
  kj_drop_blocks(lost);
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
    kj_trim_pool(&memory->pools[i], 0);
    kj_drop_blocks(kj_detach_blocks(&memory->pools[i], 0));
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
  kj_lock_pool(pool);
  *statistics = pool->count;
  kj_unlock_pool(pool);
  kj_lock_pool(pinned);
  statistics->pinned_used_bytes = pinned->count.used_bytes;
  statistics->pinned_cached_bytes = pinned->count.cached_bytes;
  kj_unlock_pool(pinned);
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
  for (int i = 0; i < KJ_POOL_COUNT; i++) kj_trim_pool(&device->memory->pools[i], keep_bytes);
}
