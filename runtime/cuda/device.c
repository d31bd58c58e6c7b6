/* One GPU: its primary context, what is known about it, waiting, faults and reset. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory/device_memory.h"

/* ---- the context on this thread ---- */

kjit_status kj_enter_device(kjit_device *device, kj_diagnostics *diagnostics, void **previous)
{
  KJ_TRY(kj_check_device(device, diagnostics));
  *previous = NULL;
  KJ_TRY(KJ_DRIVER(device, diagnostics, cuCtxGetCurrent, previous));
  if (*previous == device->primary) return KJIT_OK;
  return KJ_DRIVER(device, diagnostics, cuCtxSetCurrent, device->primary);
}

void kj_leave_device(kjit_device *device, void *previous)
{
  if (previous && previous != device->primary) device->driver->cuCtxSetCurrent(previous);
}

/* ---- opening ---- */

/* Code for a device in hand may use what only its own architecture has (wgmma), where the driver
 * knows it. */
static char exact_suffix(const kjit_device *device)
{
  static const struct {
    uint32_t arch, ptx;
  } rows[] = { { 90, 80 },  { 100, 86 }, { 101, 86 }, { 103, 88 },
               { 110, 90 }, { 120, 87 }, { 121, 88 } };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].arch == device->info.compute_capability &&
        (!device->ptx_limit || rows[i].ptx <= device->ptx_limit))
      return 'a';
  return 0;
}

static kjit_status read_info(kjit_device *device, kj_diagnostics *diagnostics)
{
  int major = 0, minor = 0, multiprocessors = 0, threads = 0, block[3], grid[3], shared = 0,
      resident = 0, cooperative = 0, clusters = 0;
  /* a driver without knows no clusters either */
  bool has_attributes = device->driver->cuLaunchKernelEx != NULL;
  size_t memory = 0;
  const struct {
    int attribute, *value;
  } wanted[] = {
    { KJ_CU_CAPABILITY_MAJOR, &major },
    { KJ_CU_CAPABILITY_MINOR, &minor },
    { KJ_CU_MULTIPROCESSORS, &multiprocessors },
    { KJ_CU_MAX_THREADS_PER_BLOCK, &threads },
    { KJ_CU_MAX_SHARED_OPTIN, &shared },
    { KJ_CU_MAX_BLOCK_X, &block[0] },
    { KJ_CU_MAX_BLOCK_X + 1, &block[1] },
    { KJ_CU_MAX_BLOCK_X + 2, &block[2] },
    { KJ_CU_MAX_GRID_X, &grid[0] },
    { KJ_CU_MAX_GRID_X + 1, &grid[1] },
    { KJ_CU_MAX_GRID_X + 2, &grid[2] },
    { KJ_CU_THREADS_OF_MULTIPROCESSOR, &resident },
    { KJ_CU_COOPERATIVE_LAUNCH, &cooperative },
  };
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
    KJ_TRY(KJ_DRIVER(device, diagnostics, cuDeviceGetAttribute, wanted[i].value,
                     wanted[i].attribute, device->handle));
  if (has_attributes)
    KJ_TRY(KJ_DRIVER(device, diagnostics, cuDeviceGetAttribute, &clusters, KJ_CU_CLUSTER_LAUNCH,
                     device->handle));
  KJ_TRY(KJ_DRIVER(device, diagnostics, cuDeviceGetName, device->name, (int)sizeof device->name,
                   device->handle));
  KJ_TRY(KJ_DRIVER(device, diagnostics, cuDeviceTotalMem, &memory, device->handle));
  kjit_device_info *info = &device->info;
  info->compute_capability = (uint32_t)(major * 10 + minor);
  info->multiprocessor_count = (uint32_t)multiprocessors;
  info->max_threads_per_block = (uint32_t)threads;
  for (int i = 0; i < 3; i++) {
    info->max_block[i] = (uint32_t)block[i];
    info->max_grid[i] = (uint32_t)grid[i];
  }
  info->max_shared_bytes = (uint64_t)shared;
  info->memory_bytes = memory;
  device->multiprocessor_threads = (uint32_t)resident;
  device->has_cooperative_launch = cooperative && has_attributes;
  device->has_clusters = clusters && has_attributes;
  info->driver_version = device->driver->version;
  snprintf(device->target, sizeof device->target, "sm_%u", info->compute_capability);
  device->suffix = exact_suffix(device);
  snprintf(device->code_target, sizeof device->code_target, "%s%s", device->target,
           device->suffix ? "a" : "");
  return KJIT_OK;
}

kjit_status kj_open_cuda_device(kjit_device *device, int32_t ordinal, kj_diagnostics *diagnostics)
{
  device->ptx_limit = kj_ptx_limit(device->driver->version);
  KJ_TRY(KJ_DRIVER(device, diagnostics, cuDeviceGet, &device->handle, ordinal));
  KJ_TRY(read_info(device, diagnostics));
  atomic_store(&device->epoch, 1);
  device->memory = kj_create_memory(device);
  if (!device->memory) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  return KJ_DRIVER(device, diagnostics, cuDevicePrimaryCtxRetain, &device->primary, device->handle);
}

void kj_close_cuda_device(kjit_device *device)
{
  kj_unload_parked(device);
  kj_free_prints(device);
  kj_destroy_memory(device);
  if (device->primary) device->driver->cuDevicePrimaryCtxRelease(device->handle);
  kj_launch_mark *mark = atomic_load(&device->marks);
  while (mark) {
    kj_launch_mark *next = mark->next;
    free(mark->name);
    free(mark);
    mark = next;
  }
  free(device->fault);
}

/* ---- waiting ---- */

static void note_synchronized(kjit_device *device, bool whole, void *stream, uint64_t epoch)
{
  if (whole) {
    uint64_t known = atomic_load(&device->synchronized_epoch);
    while (known < epoch &&
           !atomic_compare_exchange_weak(&device->synchronized_epoch, &known, epoch)) {}
    return;
  }
  for (kj_launch_mark *mark = atomic_load(&device->marks); mark; mark = mark->next)
    if (atomic_load(&mark->stream) == (uintptr_t)stream && atomic_load(&mark->epoch) <= epoch)
      atomic_store(&mark->epoch, 0);
}

kjit_status kj_synchronize(kjit_device *device, bool whole, void *stream,
                           kj_diagnostics *diagnostics)
{
  void *previous;
  KJ_TRY(kj_enter_device(device, diagnostics, &previous));
  kj_block *parked = whole ? kj_take_parked(device) : NULL;
  uint64_t epoch = atomic_fetch_add(&device->epoch, 1);
  kjit_status status = whole ? KJ_DRIVER(device, diagnostics, cuCtxSynchronize)
                             : KJ_DRIVER(device, diagnostics, cuStreamSynchronize, stream);
  if (status == KJIT_OK) note_synchronized(device, whole, stream, epoch);
  kj_leave_device(device, previous);
  kj_return_parked(parked, status == KJIT_OK);
  kj_take_prints(device); /* after a fault too: lines show the way there */
  return status;
}

/* ---- reset ---- */

/* The faulty context goes, a fresh one is retained and tried: some drivers keep the process from
 * using the device at all. */
/* loses nothing more */
#define TRY_DRIVER(device, diagnostics, name, ...) \
  kj_check_driver((device)->driver, NULL, (device)->driver->name(__VA_ARGS__), #name, (diagnostics))

static kjit_status take_fresh_context(kjit_device *device, kj_diagnostics *diagnostics)
{
  uint64_t probe = 0;
  KJ_TRY(TRY_DRIVER(device, diagnostics, cuDevicePrimaryCtxReset, device->handle));
  /* an earlier reset may have got none */
  if (device->primary) device->driver->cuDevicePrimaryCtxRelease(device->handle);
  device->primary = NULL;
  KJ_TRY(
    TRY_DRIVER(device, diagnostics, cuDevicePrimaryCtxRetain, &device->primary, device->handle));
  KJ_TRY(TRY_DRIVER(device, diagnostics, cuCtxSetCurrent, device->primary));
  KJ_TRY(TRY_DRIVER(device, diagnostics, cuMemAlloc, &probe, (size_t)256));
  KJ_TRY(TRY_DRIVER(device, diagnostics, cuMemFree, probe));
  return TRY_DRIVER(device, diagnostics, cuCtxSynchronize);
}

/* Tried with driver 580 on an H200: after a fault every order of reset, release and retain gives
 * the fault again, for the whole process. */
static void give_up(kjit_device *device, const kj_diagnostics *reasons)
{
  char place[24];
  kj_buffer text = { 0 };
  kj_append_format(&text,
                   "%s cannot be used again by this process: the driver allows no fresh context "
                   "after the fault (%s)",
                   kj_device_text(device, place),
                   reasons->count ? reasons->items[0].message : "out of memory");
  pthread_mutex_lock(&device->mutex);
  free(device->fault);
  device->fault = kj_take_text(&text);
  atomic_store(&device->lost, true);
  pthread_mutex_unlock(&device->mutex);
}

kjit_status kj_reset_cuda_device(kjit_device *device, kj_diagnostics *diagnostics)
{
  kj_diagnostics reasons = { 0 };
  pthread_mutex_lock(&device->mutex);
  atomic_store(&device->lost, false);
  pthread_mutex_unlock(&device->mutex);
  atomic_fetch_add(&device->generation, 1);
  kj_forget_memory(device);
  atomic_store(&device->peers, 0);
  uint64_t epoch = atomic_fetch_add(&device->epoch, 1);
  note_synchronized(device, true, NULL, epoch);
  kjit_status status = take_fresh_context(device, &reasons);
  if (status != KJIT_OK) {
    give_up(device, &reasons);
    status = kj_check_device(device, diagnostics);
  }
  kj_free_diagnostics(&reasons);
  return status;
}
