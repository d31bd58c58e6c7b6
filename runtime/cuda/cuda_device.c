/* Implements a GPU as a device: its primary context, properties, waits, faults and reset. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/cuda.h"
#include "support/lock.h"

/* ---- entering and leaving the context ---- */

kjit_status kj_enter_device(kjit_device *device, kj_diagnostics *diagnostics, void **previous)
{
  KJ_TRY(kj_check_device(device, diagnostics));
  KJ_ASSERT(device->operations == &kj_cuda_operations && device->primary);
  *previous = NULL;
  KJ_TRY(KJ_DRIVER(device, diagnostics, cuCtxGetCurrent, previous));
  if (*previous == device->primary) return KJIT_OK;
  return KJ_DRIVER(device, diagnostics, cuCtxSetCurrent, device->primary);
}

/* Restores the context that was current before. If no context was current, the context of GPU 0 may
 * stay current: libraries that use CUDA's runtime use the GPU of the current context, and GPU 0 if
 * no context is current. */
void kj_leave_device(kjit_device *device, void *previous)
{
  if (previous == device->primary || (!previous && !device->info.ordinal)) return;
  device->driver->cuCtxSetCurrent(previous);
}

/* ---- opening ---- */

/* Returns the suffix for code that may use features of this exact architecture (such as wgmma), if
 * the driver supports them, or 0. */
static char exact_suffix(const kjit_device *device, uint32_t newest_ptx)
{
  static const struct {
    uint32_t arch, ptx;
  } rows[] = { { 90, 80 },  { 100, 86 }, { 101, 86 }, { 103, 88 },
               { 110, 90 }, { 120, 87 }, { 121, 88 } };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].arch == device->info.compute_capability &&
        (!newest_ptx || rows[i].ptx <= newest_ptx))
      return 'a';
  return 0;
}

static kjit_status read_info(kjit_device *device, kj_diagnostics *diagnostics)
{
  /* device->ptx_limit is set only for drivers whose newest PTX version is below this version, which
   * FP8 conversions on sm_89 and large parameter blocks need; newer drivers support the versions
   * that their GPUs need */
  enum { ALWAYS_ENOUGH = 81 };
  int major = 0, minor = 0, multiprocessors = 0, threads = 0, block[3], grid[3], shared = 0,
      resident = 0, cooperative = 0, clusters = 0;
  /* a driver without cuLaunchKernelEx does not support clusters either */
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
  device->has_launch_attributes = has_attributes;
  device->has_cooperative_launch = cooperative && has_attributes;
  device->has_clusters = clusters && has_attributes;
  info->driver_version = device->driver->version;
  snprintf(device->target, sizeof device->target, "sm_%u", info->compute_capability);
  uint32_t newest_ptx = kj_ptx_limit(device->driver->version);
  device->suffix = exact_suffix(device, newest_ptx);
  device->ptx_limit = newest_ptx < ALWAYS_ENOUGH ? newest_ptx : 0;
  snprintf(device->code_target, sizeof device->code_target, "%s%s", device->target,
           device->suffix ? "a" : "");
  return KJIT_OK;
}

static kjit_status open_device(kjit_device *device, kj_diagnostics *diagnostics)
{
  KJ_ASSERT(device->shared && !device->primary);
  device->driver = device->shared;
  device->start = device->driver->cuLaunchKernel;
  device->get_context = device->driver->cuCtxGetCurrent;
  KJ_TRY(KJ_DRIVER(device, diagnostics, cuDeviceGet, &device->handle, device->info.ordinal));
  KJ_TRY(read_info(device, diagnostics));
  return KJ_DRIVER(device, diagnostics, cuDevicePrimaryCtxRetain, &device->primary, device->handle);
}

static void close_device(kjit_device *device)
{
  if (device->primary) device->driver->cuDevicePrimaryCtxRelease(device->handle);
}

static kjit_status count_devices(const kjit_context *context, const kj_driver_source *source,
                                 kj_diagnostics *diagnostics, void **shared, uint32_t *count)
{
  (void)context;
  kj_driver *driver;
  KJ_TRY(kj_open_driver(source ? source->find : NULL, source ? source->user : NULL, diagnostics,
                        &driver, count));
  *shared = driver;
  return KJIT_OK;
}

static void forget_driver(void *shared) { kj_close_driver(shared); }

static kjit_status synchronize(kjit_device *device, bool whole, void *stream,
                               kj_diagnostics *diagnostics)
{
  kj_assert_alive(device, stream);
  void *previous;
  KJ_TRY(kj_enter_device(device, diagnostics, &previous));
  kjit_status status = whole ? KJ_DRIVER(device, diagnostics, cuCtxSynchronize)
                             : KJ_DRIVER(device, diagnostics, cuStreamSynchronize, stream);
  kj_leave_device(device, previous);
  return status;
}

/* ---- reset ---- */

/* during a reset, a fault must not mark the device as lost again */
#define TRY_DRIVER(device, diagnostics, name, ...) \
  kj_check_driver((device)->driver, NULL, (device)->driver->name(__VA_ARGS__), #name, (diagnostics))

/* Releases the faulty context and retains a new one. Tests the new context, because some drivers do
 * not let a process use the device again after a fault. */
static kjit_status reset(kjit_device *device, kj_diagnostics *diagnostics)
{
  uint64_t probe = 0;
  KJ_ASSERT(!atomic_load(&device->captures) && !atomic_load(&device->peers));
  KJ_TRY(TRY_DRIVER(device, diagnostics, cuDevicePrimaryCtxReset, device->handle));
  /* NULL if an earlier reset failed to retain a context */
  if (device->primary) device->driver->cuDevicePrimaryCtxRelease(device->handle);
  device->primary = NULL;
  KJ_TRY(
    TRY_DRIVER(device, diagnostics, cuDevicePrimaryCtxRetain, &device->primary, device->handle));
  KJ_TRY(TRY_DRIVER(device, diagnostics, cuCtxSetCurrent, device->primary));
  KJ_TRY(TRY_DRIVER(device, diagnostics, cuMemAlloc, &probe, (size_t)256));
  KJ_TRY(TRY_DRIVER(device, diagnostics, cuMemFree, probe));
  return TRY_DRIVER(device, diagnostics, cuCtxSynchronize);
}

/* ---- properties ---- */

static kjit_status read_attribute(kjit_device *device, kjit_device_attribute attribute,
                                  kj_diagnostics *diagnostics, int64_t *value)
{
  static const int numbers[] = {
#define KJIT_ROW(name, number, cpu, text) number,
#include <kjit/device.def>
#undef KJIT_ROW
  };
  int found = 0;
  KJ_ASSERT((size_t)attribute < sizeof numbers / sizeof *numbers);
  KJ_TRY(KJ_DRIVER(device, diagnostics, cuDeviceGetAttribute, &found, numbers[attribute],
                   device->handle));
  *value = found;
  return KJIT_OK;
}

static kjit_status read_uuid(kjit_device *device, kj_diagnostics *diagnostics,
                             unsigned char uuid[16])
{
  return KJ_DRIVER(device, diagnostics, cuDeviceGetUuid, uuid, device->handle);
}

static kjit_status read_memory(kjit_device *device, kj_diagnostics *diagnostics,
                               uint64_t *free_bytes, uint64_t *total_bytes)
{
  size_t unused = 0, total = 0;
  kjit_status status;
  KJ_CALL_IN(status, device, diagnostics, cuMemGetInfo, &unused, &total);
  *free_bytes = unused;
  *total_bytes = total;
  return status;
}

static kjit_status tell_profiler(kjit_device *device, bool is_start, kj_diagnostics *diagnostics)
{
  void *previous;
  KJ_TRY(kj_enter_device(device, diagnostics, &previous));
  kjit_status status = is_start ? KJ_DRIVER(device, diagnostics, cuProfilerStart)
                                : KJ_DRIVER(device, diagnostics, cuProfilerStop);
  kj_leave_device(device, previous);
  return status;
}

/* ---- locating memory ---- */

static int32_t locate(kjit_device *device, uint64_t address)
{
  enum { DEVICE_ORDINAL = 9 }; /* CUpointer_attribute */
  int ordinal = -1;
  if (!device->driver->cuPointerGetAttribute) return -1;
  return device->driver->cuPointerGetAttribute(&ordinal, DEVICE_ORDINAL, address) ? -1 : ordinal;
}

/* ---- peer access ---- */

static kjit_status can_access_peer(kjit_device *device, kjit_device *peer,
                                   kj_diagnostics *diagnostics, bool *can)
{
  int result = 0;
  kjit_status status =
    KJ_DRIVER(device, diagnostics, cuDeviceCanAccessPeer, &result, device->handle, peer->handle);
  *can = result != 0;
  return status;
}

/* Peer access belongs to the primary context, so the application or another kjit context may
 * already have changed it. */
static kjit_status change_peer_access(kjit_device *device, kjit_device *peer, bool is_on,
                                      kj_diagnostics *diagnostics)
{
  enum { ALREADY_ENABLED = 704, NOT_ENABLED = 705 };
  void *previous;
  KJ_ASSERT(device != peer && peer->operations == &kj_cuda_operations);
  KJ_TRY(kj_enter_device(device, diagnostics, &previous));
  int result = is_on ? device->driver->cuCtxEnablePeerAccess(peer->primary, 0)
                     : device->driver->cuCtxDisablePeerAccess(peer->primary);
  kj_leave_device(device, previous);
  if (result == (is_on ? ALREADY_ENABLED : NOT_ENABLED)) return KJIT_OK;
  return kj_check_driver(device->driver, device, result,
                         is_on ? "cuCtxEnablePeerAccess" : "cuCtxDisablePeerAccess", diagnostics);
}

/* ---- stack of GPU threads: the driver cannot determine how much stack recursive functions need
 * ---- */

enum { LIMIT_STACK_SIZE = 0 }; /* CUlimit */

/* Raises the limit unless it is large enough. Two threads that raise the limit at the same time
 * must not replace the larger value by the smaller one. All kjit contexts of the process share the
 * limit, because it belongs to the device's primary context. Returns the driver's result.
 * *is_raised: whether this is the result of cuCtxSetLimit. */
static int raise_limit(const kj_driver *driver, uint32_t bytes, bool *is_raised)
{
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  size_t current = 0;
  kj_lock(&mutex, KJ_LOCK_STACK_LIMIT);
  int result = driver->cuCtxGetLimit(&current, LIMIT_STACK_SIZE);
  *is_raised = !result && current < bytes;
  if (*is_raised) result = driver->cuCtxSetLimit(LIMIT_STACK_SIZE, bytes);
  kj_unlock(&mutex, KJ_LOCK_STACK_LIMIT);
  return result;
}

static kjit_status provide(kjit_device *device, uint32_t bytes, kj_diagnostics *diagnostics)
{
  bool is_raised;
  int result = raise_limit(device->driver, bytes, &is_raised);
  if (is_raised && result == KJ_CU_OUT_OF_MEMORY) {
    kj_relieve_device(device);
    result = raise_limit(device->driver, bytes, &is_raised);
  }
  return kj_check_driver(device->driver, device, result,
                         is_raised ? "cuCtxSetLimit" : "cuCtxGetLimit", diagnostics);
}

static kjit_status provide_stack(kjit_device *device, uint32_t bytes, kj_diagnostics *diagnostics)
{
  void *previous;
  KJ_TRY(kj_enter_device(device, diagnostics, &previous));
  kjit_status status = provide(device, bytes, diagnostics);
  kj_leave_device(device, previous);
  return status;
}

/* ---- the table of operations ---- */

#define X(function) .function = kj_cuda_##function,
const kj_device_operations kj_cuda_operations = {
  KJ_CUDA_OPERATIONS(X).kind = KJIT_DEVICE_CUDA,
  .name = "cuda",
  .target = KJ_TARGET_NVPTX,
  .is_queued = true,
  .has_memory = true,
  .default_stream = 1, /* CU_STREAM_LEGACY */
  .thread_stream = 2,  /* CU_STREAM_PER_THREAD */
  .count = count_devices,
  .forget = forget_driver,
  .open = open_device,
  .close = close_device,
  .reset = reset,
  .synchronize = synchronize,
  .read_attribute = read_attribute,
  .read_uuid = read_uuid,
  .read_memory = read_memory,
  .locate = locate,
  .can_access_peer = can_access_peer,
  .change_peer_access = change_peer_access,
  .tell_profiler = tell_profiler,
  .provide_stack = provide_stack,
};
#undef X
