/* What a device says of itself, its memory, and how it reaches other GPUs. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "memory/device_memory.h"

/* ---- attributes ---- */

static kjit_status read_attribute(kjit_device *device, kjit_device_attribute attribute,
                                  kj_diagnostics *diagnostics, int64_t *value)
{
#define KJ_CPU_CORES device->info.multiprocessor_count
  const struct {
    int number;
    int64_t cpu;
  } rows[] = {
#define X(name, number, cpu, text) { number, cpu },
#include <kjit/device.def>
#undef X
  };
#undef KJ_CPU_CORES
  int found = 0;
  if ((unsigned)attribute >= KJIT_DEVICE_ATTRIBUTE_COUNT)
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT, "there is no attribute %d of devices",
                    (int)attribute);
  if (!kj_is_cuda(device)) {
    *value = rows[attribute].cpu;
    return KJIT_OK;
  }
  KJ_TRY(kj_check_device(device, diagnostics));
  KJ_TRY(KJ_DRIVER(device, diagnostics, cuDeviceGetAttribute, &found, rows[attribute].number,
                   device->handle));
  *value = found;
  return KJIT_OK;
}

kjit_status kjit_get_device_attribute(const kjit_device *device, kjit_device_attribute attribute,
                                      int64_t *value)
{
  if (!device) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(device->context)) return KJIT_ERROR_FORKED;
  if (!value)
    return ki_fail_call(device->context, KJIT_ERROR_MISUSE,
                        "kjit_get_device_attribute: value is NULL");
  kj_diagnostics diagnostics = { 0 };
  (void)read_attribute((kjit_device *)(uintptr_t)device, attribute, &diagnostics, value);
  return ki_finish_call(device->context, &diagnostics);
}

kjit_status kj_read_uuid(kjit_device *device, kj_diagnostics *diagnostics, unsigned char uuid[16])
{
  memset(uuid, 0, 16);
  if (!kj_is_cuda(device)) return KJIT_OK;
  KJ_TRY(kj_check_device(device, diagnostics));
  return KJ_DRIVER(device, diagnostics, cuDeviceGetUuid, uuid, device->handle);
}

kjit_status kjit_get_device_uuid(const kjit_device *device, unsigned char uuid[16])
{
  unsigned char read[16];
  if (!device) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(device->context)) return KJIT_ERROR_FORKED;
  if (!uuid)
    return ki_fail_call(device->context, KJIT_ERROR_MISUSE, "kjit_get_device_uuid: uuid is NULL");
  kj_diagnostics diagnostics = { 0 };
  if (kj_read_uuid((kjit_device *)(uintptr_t)device, &diagnostics, read) == KJIT_OK)
    memcpy(uuid, read, sizeof read);
  return ki_finish_call(device->context, &diagnostics);
}

/* ---- memory ---- */

static kjit_status read_memory(kjit_device *device, kj_diagnostics *diagnostics,
                               uint64_t *free_bytes, uint64_t *total_bytes)
{
  size_t unused = 0, total = 0;
  void *previous;
  if (!kj_is_cuda(device)) {
    long pages = sysconf(_SC_AVPHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    *free_bytes = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
    *total_bytes = device->info.memory_bytes;
    return KJIT_OK;
  }
  KJ_TRY(kj_enter_device(device, diagnostics, &previous));
  kjit_status status = KJ_DRIVER(device, diagnostics, cuMemGetInfo, &unused, &total);
  kj_leave_device(device, previous);
  *free_bytes = unused;
  *total_bytes = total;
  return status;
}

kjit_status kjit_get_memory_info(kjit_device *device, uint64_t *free_bytes, uint64_t *total_bytes)
{
  uint64_t unused = 0, total = 0;
  if (!device) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(device->context)) return KJIT_ERROR_FORKED;
  kj_diagnostics diagnostics = { 0 };
  if (read_memory(device, &diagnostics, &unused, &total) == KJIT_OK) {
    if (free_bytes) *free_bytes = unused;
    if (total_bytes) *total_bytes = total;
  }
  return ki_finish_call(device->context, &diagnostics);
}

/* ---- peers ---- */

static kjit_status check_pair(const kjit_device *device, const kjit_device *peer,
                              kj_diagnostics *diagnostics)
{
  if (device->context != peer->context)
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT, "the devices belong to different contexts");
  KJ_TRY(kj_check_device(device, diagnostics));
  return kj_check_device(peer, diagnostics);
}

static bool are_gpus(const kjit_device *device, const kjit_device *peer)
{
  return device != peer && kj_is_cuda(device) && kj_is_cuda(peer);
}

static kjit_status can_access(const kjit_device *device, const kjit_device *peer,
                              kj_diagnostics *diagnostics, int *result)
{
  *result = 0;
  KJ_TRY(check_pair(device, peer, diagnostics));
  if (!are_gpus(device, peer)) return KJIT_OK;
  kjit_device *mutable_device = (kjit_device *)(uintptr_t)device; /* a fault would mark it */
  return KJ_DRIVER(mutable_device, diagnostics, cuDeviceCanAccessPeer, result, device->handle,
                   peer->handle);
}

kjit_status kjit_can_access_peer(const kjit_device *device, const kjit_device *peer, int *can)
{
  int result = 0;
  if (!device || !peer) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(device->context)) return KJIT_ERROR_FORKED;
  if (!can)
    return ki_fail_call(device->context, KJIT_ERROR_MISUSE,
                        "kjit_can_access_peer: can_access is NULL");
  kj_diagnostics diagnostics = { 0 };
  if (can_access(device, peer, &diagnostics, &result) == KJIT_OK) *can = result != 0;
  return ki_finish_call(device->context, &diagnostics);
}

/* The host, or another context of kjit, may have done it already: access is the primary context's.
 */
static kjit_status enable(kjit_device *device, kjit_device *peer, kj_diagnostics *diagnostics)
{
  enum { ALREADY_ENABLED = 704 };
  void *previous;
  KJ_TRY(kj_enter_device(device, diagnostics, &previous));
  int result = device->driver->cuCtxEnablePeerAccess(peer->primary, 0);
  kjit_status status =
    result == ALREADY_ENABLED
      ? KJIT_OK
      : kj_check_driver(device->driver, device, result, "cuCtxEnablePeerAccess", diagnostics);
  kj_leave_device(device, previous);
  return status;
}

static kjit_status disable(kjit_device *device, kjit_device *peer, kj_diagnostics *diagnostics)
{
  enum { NOT_ENABLED = 705 };
  void *previous;
  KJ_TRY(kj_enter_device(device, diagnostics, &previous));
  int result = device->driver->cuCtxDisablePeerAccess(peer->primary);
  kjit_status status =
    result == NOT_ENABLED
      ? KJIT_OK
      : kj_check_driver(device->driver, device, result, "cuCtxDisablePeerAccess", diagnostics);
  kj_leave_device(device, previous);
  return status;
}

static kjit_status change_access(kjit_device *device, kjit_device *peer, bool is_on,
                                 kj_diagnostics *diagnostics)
{
  enum { MOST_PEERS = 64 };
  char here[24], there[24];
  int can = 0;
  KJ_TRY(check_pair(device, peer, diagnostics));
  if (!are_gpus(device, peer))
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT, "peer access is between two different GPUs");
  if (peer->info.ordinal >= MOST_PEERS)
    return kj_error(diagnostics, KJIT_ERROR_UNSUPPORTED,
                    "peer access is supported for the first %d GPUs", MOST_PEERS);
  uint64_t bit = (uint64_t)1 << peer->info.ordinal;
  if (!is_on) {
    KJ_TRY(disable(device, peer, diagnostics));
    atomic_fetch_and(&device->peers, ~bit);
    return KJIT_OK;
  }
  KJ_TRY(can_access(device, peer, diagnostics, &can));
  if (!can)
    return kj_error(diagnostics, KJIT_ERROR_UNSUPPORTED,
                    "%s cannot reach the memory of %s: they are not connected so that the driver "
                    "allows it; kjit_copy works",
                    kj_device_text(device, here), kj_device_text(peer, there));
  KJ_TRY(enable(device, peer, diagnostics));
  atomic_fetch_or(&device->peers, bit);
  return KJIT_OK;
}

static kjit_status set_peer_access(kjit_device *device, kjit_device *peer, bool is_on)
{
  if (!device || !peer) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(device->context)) return KJIT_ERROR_FORKED;
  kj_diagnostics diagnostics = { 0 };
  (void)change_access(device, peer, is_on, &diagnostics);
  return ki_finish_call(device->context, &diagnostics);
}

kjit_status kjit_enable_peer_access(kjit_device *device, kjit_device *peer)
{
  return set_peer_access(device, peer, true);
}
kjit_status kjit_disable_peer_access(kjit_device *device, kjit_device *peer)
{
  return set_peer_access(device, peer, false);
}
