/* Arrays of other processes: on a GPU by the driver's handles, on the CPU by the file that the
 * memory is. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cuda/cuda.h"
#include "memory/array.h"
#include "stream/stream.h"

typedef struct contents {
  char magic[8];
  uint32_t kind, element, rank, is_read_only;
  int64_t shape[KJ_MAX_RANK], strides[KJ_MAX_RANK];
  uint64_t process, offset_bytes, size_bytes; /* offset of element 0; size of the whole memory */
  unsigned char uuid[16];
  kj_cu_ipc_handle native;
  /* the CPU's: descriptor of the exporter, and what it has to be */
  uint64_t file, file_number, file_device;
} contents;

static const char magic[8] = "kjitarr\1";
_Static_assert(sizeof(contents) <= sizeof(kjit_array_handle), "a handle holds its contents");

/* ---- giving ---- */

static kjit_status export_gpu(kjit_array *array, contents *c, kj_diagnostics *diagnostics)
{
  kjit_device *device = array->object.device;
  uint64_t address = (uint64_t)(uintptr_t)array->tensor.data + array->tensor.byte_offset, base = 0;
  size_t size_bytes = 0;
  KJ_TRY(device->operations->read_uuid(device, diagnostics, c->uuid));
  KJ_TRY(KJ_DRIVER(device, diagnostics, cuMemGetAddressRange, &base, &size_bytes, address));
  KJ_TRY(KJ_DRIVER(device, diagnostics, cuIpcGetMemHandle, &c->native, base));
  c->offset_bytes = address - base;
  c->size_bytes = size_bytes;
  return KJIT_OK;
}

static kjit_status export_cpu(const kjit_array *array, contents *c, kj_diagnostics *diagnostics)
{
  struct stat status;
  const kj_block *block = array->owner->block;
  if (!block || block->file < 0 || fstat(block->file, &status))
    return kj_error(diagnostics, KJIT_ERROR_UNSUPPORTED,
                    "on the CPU only arrays in KJIT_MEMORY_SHARED can be exported: another process "
                    "cannot see other memory");
  c->file = (uint64_t)block->file;
  c->file_number = status.st_ino;
  c->file_device = status.st_dev;
  c->offset_bytes = (uint64_t)((uintptr_t)array->tensor.data - (uintptr_t)block->address);
  c->size_bytes = block->size_bytes;
  return KJIT_OK;
}

/* What the importer sees has to be there: the two processes' streams have no order. Other devices
 * may have used it, too. */
static kjit_status wait_for_array(kjit_array *array, kj_diagnostics *diagnostics)
{
  kjit_device *device = array->object.device;
  if (!kj_is_cuda(device)) return KJIT_OK;
  KJ_TRY(kj_check_captures(device, diagnostics));
  KJ_TRY(kj_synchronize(device, true, NULL, diagnostics));
  kj_last_use uses = { 0 };
  kj_copy_uses(&uses, array->line.owners_use);
  return kj_wait_uses(device, &uses, diagnostics);
}

static kjit_status export_array(kjit_array *array, contents *c, kj_diagnostics *diagnostics)
{
  kjit_device *device = array->object.device;
  void *previous;
  memcpy(c->magic, magic, sizeof magic);
  c->kind = device->info.kind;
  c->element = array->element;
  c->rank = (uint32_t)array->tensor.rank;
  c->is_read_only = array->is_read_only;
  c->process = (uint64_t)getpid();
  memcpy(c->shape, array->shape, sizeof c->shape);
  memcpy(c->strides, array->strides, sizeof c->strides);
  KJ_TRY(kj_check_object(&array->object, "array", diagnostics));
  if (!ki_is_scalar(array->element))
    return kj_error(
      diagnostics, KJIT_ERROR_UNSUPPORTED,
      "only arrays of scalars can be exported: other types are known to their context only");
  if (!kj_is_cuda(device)) return export_cpu(array, c, diagnostics);
  if (array->memory != KJIT_MEMORY_DEVICE && array->memory != KJIT_MEMORY_SHARED)
    return kj_error(diagnostics, KJIT_ERROR_UNSUPPORTED,
                    "only device memory can be exported: KJIT_MEMORY_DEVICE or KJIT_MEMORY_SHARED");
  KJ_TRY(wait_for_array(array, diagnostics));
  KJ_TRY(kj_enter_device(device, diagnostics, &previous));
  kjit_status status = export_gpu(array, c, diagnostics);
  kj_leave_device(device, previous);
  return status;
}

kjit_status kjit_export_array(kjit_array *array, kjit_array_handle *handle)
{
  if (!array) return KJIT_ERROR_MISUSE;
  kjit_context *context = array->object.device->context;
  if (ki_is_forked(context)) return KJIT_ERROR_FORKED;
  if (!handle) return ki_fail_call(context, KJIT_ERROR_MISUSE, "kjit_export_array: handle is NULL");
  kj_diagnostics diagnostics = { 0 };
  contents c = { 0 };
  kjit_status status = export_array(array, &c, &diagnostics);
  kj_deliver_lines(array->object.device);
  if (status == KJIT_OK) {
    memset(handle, 0, sizeof *handle);
    memcpy(handle, &c, sizeof c);
  }
  return ki_finish_call(context, &diagnostics);
}

/* ---- taking ---- */

/* A handle comes from outside: what it says must not lead out of the memory that it names. */
static kjit_status check_contents(kjit_context *context, const contents *c,
                                  kj_diagnostics *diagnostics)
{
  kj_view view;
  uint64_t low, high;
  bool is_known = !memcmp(c->magic, magic, sizeof magic) && c->rank <= KJ_MAX_RANK &&
                  c->element >= KJIT_BOOL && c->element < KJIT_SCALAR_COUNT &&
                  (c->kind == KJIT_DEVICE_CPU || c->kind == KJIT_DEVICE_CUDA);
  if (!is_known)
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT, "the bytes are no handle of an array");
  if (c->process == (uint64_t)getpid())
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT,
                    "the array is of this process: use it as it is");
  const uint64_t base = (uint64_t)1 << 62; /* any does */
  kjit_tensor probe = { 0 };
  kj_describe_element(context->types, c->element, &probe);
  probe.data = (void *)(uintptr_t)base; /* NOLINT(performance-no-int-to-ptr) */
  probe.rank = (int32_t)c->rank;
  probe.shape = (int64_t *)(uintptr_t)c->shape;
  probe.strides = (int64_t *)(uintptr_t)c->strides;
  probe.device_type = KJIT_DEVICE_CPU;
  KJ_TRY(kj_view_tensor(context->types, &probe, c->element, "the handle", diagnostics, &view));
  kj_view_range(&view, &low, &high);
  uint64_t before = base - low, after = high - base;
  bool is_inside =
    !view.count || (low <= base && high >= base && before <= c->offset_bytes &&
                    c->offset_bytes <= c->size_bytes && after <= c->size_bytes - c->offset_bytes);
  return is_inside ? KJIT_OK
                   : kj_error(diagnostics, KJIT_ERROR_ARGUMENT,
                              "the handle is damaged: its elements are outside of its memory");
}

static kjit_status find_gpu(kj_runtime *runtime, const contents *c, kj_diagnostics *diagnostics,
                            kjit_device **device)
{
  unsigned char uuid[16];
  int32_t i = 0;
  do {
    KJ_TRY(kj_find_device(runtime, KJIT_DEVICE_CUDA, i, diagnostics, device));
    KJ_TRY((*device)->operations->read_uuid(*device, diagnostics, uuid));
    if (!memcmp(uuid, c->uuid, sizeof uuid)) return KJIT_OK;
  } while ((uint32_t)++i < kj_find_kind(runtime, KJIT_DEVICE_CUDA)->count);
  return kj_error(diagnostics, KJIT_ERROR_NO_DEVICE,
                  "the array is on a GPU that this process does not see");
}

static int call_close(const kj_driver *driver, uint64_t address)
{
  return driver->cuIpcCloseMemHandle(address);
}
static void close_gpu(kj_block *block) { kj_free_by_driver(block, call_close); }

static const kj_block_kind opened_kind = { .waits = true, .free = close_gpu };

/* The driver knows how large the memory is: the handle's own word is not to be believed. */
static kjit_status open_native(kjit_device *device, const contents *c, kj_diagnostics *diagnostics,
                               uint64_t *address)
{
  enum { LAZY_PEER_ACCESS = 1 };
  uint64_t base = 0;
  size_t size_bytes = 0;
  KJ_TRY(KJ_DRIVER(device, diagnostics, cuIpcOpenMemHandle, address, c->native, LAZY_PEER_ACCESS));
  kjit_status status =
    KJ_DRIVER(device, diagnostics, cuMemGetAddressRange, &base, &size_bytes, *address);
  if (status == KJIT_OK && c->size_bytes > size_bytes - (*address - base))
    status = kj_error(diagnostics, KJIT_ERROR_ARGUMENT,
                      "the handle is damaged: it says that its memory has %llu bytes, the driver "
                      "has opened %llu",
                      (unsigned long long)c->size_bytes,
                      (unsigned long long)(size_bytes - (*address - base)));
  if (status != KJIT_OK) device->driver->cuIpcCloseMemHandle(*address);
  return status;
}

static kjit_status open_gpu(kjit_array *array, const contents *c, kj_diagnostics *diagnostics)
{
  void *previous;
  kjit_device *device = array->object.device;
  array->block = kj_make_block(device, &opened_kind);
  if (!array->block) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  KJ_TRY(kj_enter_device(device, diagnostics, &previous));
  kjit_status status = open_native(device, c, diagnostics, &array->block->address);
  kj_leave_device(device, previous);
  return status;
}

/* The file has to be the one that was meant, and to keep its size: whoever could shrink it would
 * make a fault of touching the array. Nobody takes a seal off again. */
static kjit_status check_file(int file, const contents *c, kj_diagnostics *diagnostics)
{
  struct stat status;
  if (file < 0 || fstat(file, &status) || status.st_ino != c->file_number ||
      status.st_dev != c->file_device)
    return kj_error(diagnostics, KJIT_ERROR_IO,
                    "the memory of process %llu cannot be mapped: it is gone, or another user's",
                    (unsigned long long)c->process);
  int seals = fcntl(file, F_GET_SEALS);
  if (seals < 0 || !(seals & F_SEAL_SHRINK))
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT,
                    "the memory of process %llu is not sealed: it could shrink while it is used",
                    (unsigned long long)c->process);
  if (fstat(file, &status) || status.st_size < 0 || (uint64_t)status.st_size < c->size_bytes)
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT,
                    "the handle is damaged: its memory is smaller than %llu bytes",
                    (unsigned long long)c->size_bytes);
  return KJIT_OK;
}

/* The descriptor is the exporter's: /proc leads to the file. */
static kjit_status open_cpu(kjit_array *array, const contents *c, kj_diagnostics *diagnostics)
{
  char path[64];
  array->block = kj_make_block(array->object.device, &kj_mapping_kind);
  if (!array->block) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  snprintf(path, sizeof path, "/proc/%llu/fd/%llu", (unsigned long long)c->process,
           (unsigned long long)c->file);
  int file = open(path, O_RDWR | O_CLOEXEC);
  kjit_status status = check_file(file, c, diagnostics);
  void *memory = status == KJIT_OK
                   ? mmap(NULL, c->size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
                   : MAP_FAILED;
  if (memory == MAP_FAILED) {
    if (file >= 0) close(file);
    return status != KJIT_OK
             ? status
             : kj_error(diagnostics, KJIT_ERROR_IO, "the memory of process %llu cannot be mapped",
                        (unsigned long long)c->process);
  }
  array->block->address = (uint64_t)(uintptr_t)(array->block->data = memory);
  array->block->size_bytes = c->size_bytes;
  array->block->file = file;
  return KJIT_OK;
}

static kjit_status import_array(kjit_context *context, const contents *c,
                                kj_diagnostics *diagnostics, kjit_array **array)
{
  kj_runtime *runtime = kj_get_runtime(context);
  kjit_device *device;
  if (!runtime) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  KJ_TRY(check_contents(context, c, diagnostics));
  KJ_TRY(c->kind == KJIT_DEVICE_CPU
           ? kj_find_device(runtime, KJIT_DEVICE_CPU, 0, diagnostics, &device)
           : find_gpu(runtime, c, diagnostics, &device));
  kjit_array *made =
    kj_make_array(device, c->element, c->shape, c->strides, c->rank, KJIT_LAYOUT_STRIDED);
  if (!made) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  made->memory = KJIT_MEMORY_SHARED;
  made->is_read_only = c->is_read_only;
  kjit_status status =
    kj_is_cuda(device) ? open_gpu(made, c, diagnostics) : open_cpu(made, c, diagnostics);
  if (status != KJIT_OK) {
    kj_drop_array(made);
    return status;
  }
  /* NOLINT(performance-no-int-to-ptr) */
  made->tensor.data = (void *)(uintptr_t)(made->block->address + c->offset_bytes);
  kj_publish_array(made);
  *array = made;
  return KJIT_OK;
}

kjit_status kjit_import_array(kjit_context *context, const kjit_array_handle *handle,
                              kjit_array **array)
{
  if (!context) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(context)) return KJIT_ERROR_FORKED;
  if (!handle || !array)
    return ki_fail_call(context, KJIT_ERROR_MISUSE, "kjit_import_array: %s is NULL",
                        handle ? "array" : "handle");
  kj_diagnostics diagnostics = { 0 };
  contents c;
  memcpy(&c, handle, sizeof c);
  (void)import_array(context, &c, &diagnostics, array);
  return ki_finish_call(context, &diagnostics);
}
