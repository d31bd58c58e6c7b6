/* Implements the memory operations of a GPU: allocation, copies, and sharing with other
 * processes. */
#include <string.h>
#include <unistd.h>

#include "cuda/cuda.h"

/* ---- allocations ---- */

/* Host and device share one address space on all 64-bit systems. */
static void *pointer_of(uint64_t address)
{
  return (void *)(uintptr_t)address; /* NOLINT(performance-no-int-to-ptr) */
}

static bool is_host_memory(kjit_memory memory)
{
  return memory == KJIT_MEMORY_PINNED || memory == KJIT_MEMORY_MAPPED;
}

static int ask(const kj_driver *driver, kj_allocation *allocation)
{
  enum { PORTABLE = 1, MAPPED = 2, ATTACH_GLOBAL = 1 };
  size_t size_bytes = allocation->size_bytes ? allocation->size_bytes : 1;
  if (allocation->memory == KJIT_MEMORY_MANAGED) {
    allocation->call = "cuMemAllocManaged";
    return driver->cuMemAllocManaged(&allocation->address, size_bytes, ATTACH_GLOBAL);
  }
  if (!is_host_memory(allocation->memory)) {
    allocation->call = "cuMemAlloc";
    return driver->cuMemAlloc(&allocation->address, size_bytes);
  }
  void *memory = NULL;
  unsigned flags = allocation->memory == KJIT_MEMORY_MAPPED ? PORTABLE | MAPPED : PORTABLE;
  allocation->call = "cuMemHostAlloc";
  int result = driver->cuMemHostAlloc(&memory, size_bytes, flags);
  allocation->address = (uint64_t)(uintptr_t)memory;
  return result;
}

kjit_status kj_cuda_allocate(kjit_device *device, kj_allocation *allocation,
                             kj_diagnostics *diagnostics)
{
  void *previous;
  KJ_TRY(kj_enter_device(device, diagnostics, &previous));
  allocation->file = -1;
  int result = ask(device->driver, allocation);
  KJ_ASSERT(result || allocation->address);
  kj_leave_device(device, previous);
  if (result == KJ_CU_OUT_OF_MEMORY)
    return is_host_memory(allocation->memory) ? KJIT_ERROR_MEMORY : KJIT_ERROR_DEVICE_MEMORY;
  return kj_check_driver(device->driver, device, result, allocation->call, diagnostics);
}

bool kj_cuda_release(kjit_device *device, const kj_allocation *allocation)
{
  void *previous;
  KJ_ASSERT(allocation->address);
  bool is_entered = kj_enter_device(device, NULL, &previous) == KJIT_OK;
  if (is_entered) {
    if (is_host_memory(allocation->memory))
      device->driver->cuMemFreeHost(pointer_of(allocation->address));
    else device->driver->cuMemFree(allocation->address);
    kj_leave_device(device, previous);
  }
  return is_entered;
}

kjit_status kj_cuda_map(kjit_device *device, size_t size_bytes, kj_diagnostics *diagnostics,
                        void **memory, uint64_t *address)
{
  enum { PORTABLE = 1, MAPPED = 2 };
  void *previous, *made = NULL;
  KJ_TRY(kj_enter_device(device, diagnostics, &previous));
  kjit_status status =
    KJ_DRIVER(device, diagnostics, cuMemHostAlloc, &made, size_bytes, PORTABLE | MAPPED);
  if (status == KJIT_OK) {
    status = KJ_DRIVER(device, diagnostics, cuMemHostGetDevicePointer, address, made, 0);
    if (status != KJIT_OK) device->driver->cuMemFreeHost(made);
    else *memory = memset(made, 0, size_bytes);
  }
  kj_leave_device(device, previous);
  return status;
}

void kj_cuda_release_mapped(kjit_device *device, void *memory)
{
  (void)kj_cuda_release(device, &(kj_allocation){ .memory = KJIT_MEMORY_MAPPED,
                                                  .address = (uint64_t)(uintptr_t)memory });
}

kjit_status kj_cuda_pin(kjit_device *device, void *memory, size_t size_bytes,
                        kj_diagnostics *diagnostics)
{
  enum { PORTABLE = 1 };
  kjit_status status;
  KJ_CALL_IN(status, device, diagnostics, cuMemHostRegister, memory, size_bytes, PORTABLE);
  return status;
}

kjit_status kj_cuda_unpin(kjit_device *device, void *memory, kj_diagnostics *diagnostics)
{
  kjit_status status;
  KJ_CALL_IN(status, device, diagnostics, cuMemHostUnregister, memory);
  return status;
}

/* ---- copies; the device's context is current ---- */

static kjit_status copy_line(kjit_device *device, const kj_transfer *transfer, void *stream,
                             kj_diagnostics *diagnostics)
{
  uint64_t to = transfer->to, from = transfer->from;
  size_t size_bytes = transfer->width_bytes;
  KJ_ASSERT(!(transfer->from_host && transfer->to_host));
  KJ_ASSERT(!transfer->source || transfer->source->operations == &kj_cuda_operations);
  if (transfer->from_host)
    return KJ_DRIVER(device, diagnostics, cuMemcpyHtoDAsync, to, pointer_of(from), size_bytes,
                     stream);
  if (transfer->to_host)
    return KJ_DRIVER(device, diagnostics, cuMemcpyDtoHAsync, pointer_of(to), from, size_bytes,
                     stream);
  if (!transfer->source || transfer->source == device)
    return KJ_DRIVER(device, diagnostics, cuMemcpyDtoDAsync, to, from, size_bytes, stream);
  return KJ_DRIVER(device, diagnostics, cuMemcpyPeerAsync, to, device->primary, from,
                   transfer->source->primary, size_bytes, stream);
}

static kj_cu_side describe_side(uint64_t address, bool is_host, size_t pitch_bytes)
{
  return (kj_cu_side){ .type = is_host ? KJ_CU_HOST : KJ_CU_DEVICE,
                       .host = pointer_of(address),
                       .device = address,
                       .pitch_bytes = pitch_bytes };
}

static kjit_status copy_rows(kjit_device *device, const kj_transfer *transfer, void *stream,
                             kj_diagnostics *diagnostics)
{
  KJ_ASSERT(transfer->to_pitch_bytes >= transfer->width_bytes &&
            transfer->from_pitch_bytes >= transfer->width_bytes);
  KJ_ASSERT(!transfer->source || transfer->source == device);
  kj_cu_rows rows = {
    .source = describe_side(transfer->from, transfer->from_host, transfer->from_pitch_bytes),
    .destination = describe_side(transfer->to, transfer->to_host, transfer->to_pitch_bytes),
    .width_bytes = transfer->width_bytes,
    .height = transfer->rows
  };
  return KJ_DRIVER(device, diagnostics, cuMemcpy2DAsync, &rows, stream);
}

kjit_status kj_cuda_copy(kjit_device *device, const kj_transfer *transfer, void *stream,
                         kj_diagnostics *diagnostics)
{
  kj_assert_alive(device, stream);
  void *previous;
  KJ_ASSERT(transfer->rows && transfer->width_bytes);
  KJ_TRY(kj_enter_device(device, diagnostics, &previous));
  kjit_status status = transfer->rows == 1 ? copy_line(device, transfer, stream, diagnostics)
                                           : copy_rows(device, transfer, stream, diagnostics);
  kj_leave_device(device, previous);
  return status;
}

kjit_status kj_cuda_set(kjit_device *device, uint64_t address, uint32_t bits, uint32_t word_bytes,
                        size_t count, void *stream, kj_diagnostics *diagnostics)
{
  kj_assert_alive(device, stream);
  kjit_status status;
  KJ_ASSERT(word_bytes == 1 || word_bytes == 2 || word_bytes == 4);
  KJ_ASSERT(address % word_bytes == 0 && count);
  if (word_bytes == 1)
    KJ_CALL_IN(status, device, diagnostics, cuMemsetD8Async, address, (unsigned char)bits, count,
               stream);
  else if (word_bytes == 2)
    KJ_CALL_IN(status, device, diagnostics, cuMemsetD16Async, address, (unsigned short)bits, count,
               stream);
  else KJ_CALL_IN(status, device, diagnostics, cuMemsetD32Async, address, bits, count, stream);
  return status;
}

kjit_status kj_cuda_prefetch(kjit_device *device, uint64_t address, size_t size_bytes,
                             kjit_device *to, void *stream, kj_diagnostics *diagnostics)
{
  kj_assert_alive(device, stream);
  enum { TO_HOST = -1 };
  kjit_status status;
  KJ_CALL_IN(status, device, diagnostics, cuMemPrefetchAsync, address, size_bytes,
             to ? to->handle : TO_HOST, stream);
  return status;
}

/* ---- other processes ---- */

kjit_status kj_cuda_name_memory(kjit_device *device, uint64_t address,
                                const kj_allocation *allocation, kj_diagnostics *diagnostics,
                                kj_memory_name *name)
{
  uint64_t base = 0;
  size_t size_bytes = 0;
  kj_cu_ipc_handle handle = { 0 };
  void *previous;
  if (allocation->memory != KJIT_MEMORY_DEVICE && allocation->memory != KJIT_MEMORY_SHARED)
    return kj_error(diagnostics, KJIT_ERROR_UNSUPPORTED,
                    "only device memory can be exported: KJIT_MEMORY_DEVICE or KJIT_MEMORY_SHARED");
  *name = (kj_memory_name){ .process = (uint64_t)getpid() };
  KJ_TRY(kj_enter_device(device, diagnostics, &previous));
  kjit_status status = KJ_DRIVER(device, diagnostics, cuDeviceGetUuid, name->uuid, device->handle);
  if (status == KJIT_OK)
    status = KJ_DRIVER(device, diagnostics, cuMemGetAddressRange, &base, &size_bytes, address);
  if (status == KJIT_OK) status = KJ_DRIVER(device, diagnostics, cuIpcGetMemHandle, &handle, base);
  kj_leave_device(device, previous);
  memcpy(name->native, handle.bytes, sizeof name->native);
  name->size_bytes = size_bytes;
  name->offset_bytes = address - base;
  return status;
}

kjit_status kj_cuda_open_memory(kjit_device *device, const kj_memory_name *name,
                                kj_diagnostics *diagnostics, kj_allocation *allocation)
{
  enum { LAZY_PEER_ACCESS = 1 };
  kj_cu_ipc_handle handle;
  uint64_t opened = 0, base = 0;
  size_t size_bytes = 0;
  void *previous;
  memcpy(handle.bytes, name->native, sizeof handle.bytes);
  KJ_TRY(kj_enter_device(device, diagnostics, &previous));
  kjit_status status =
    KJ_DRIVER(device, diagnostics, cuIpcOpenMemHandle, &opened, handle, LAZY_PEER_ACCESS);
  if (status == KJIT_OK) {
    status = KJ_DRIVER(device, diagnostics, cuMemGetAddressRange, &base, &size_bytes, opened);
    if (status != KJIT_OK) device->driver->cuIpcCloseMemHandle(opened);
  }
  kj_leave_device(device, previous);
  *allocation = (kj_allocation){ .memory = KJIT_MEMORY_SHARED,
                                 .size_bytes = size_bytes - (opened - base),
                                 .address = opened,
                                 .file = -1 };
  return status;
}

bool kj_cuda_close_memory(kjit_device *device, const kj_allocation *allocation)
{
  kjit_status status;
  KJ_CALL_IN(status, device, NULL, cuIpcCloseMemHandle, allocation->address);
  return status == KJIT_OK;
}
