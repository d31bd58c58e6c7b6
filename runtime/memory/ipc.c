/* Arrays of other processes, by the names that devices give their memory. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "memory/array.h"
#include "stream/stream.h"

typedef struct contents {
  char magic[8];
  uint32_t kind, element, rank, is_read_only;
  int64_t shape[KJ_MAX_RANK], strides[KJ_MAX_RANK];
  kj_memory_name name; /* of element 0 */
} contents;

static const char magic[8] = "kjitarr\1";
_Static_assert(sizeof(contents) <= sizeof(kjit_array_handle), "a handle holds its contents");

/* ---- giving ---- */

/* What the importer sees has to be there: the two processes' streams have no order. Other devices
 * may have used it, too. */
static kjit_status wait_for_array(kjit_array *array, kj_diagnostics *diagnostics)
{
  kjit_device *device = array->object.device;
  if (!device->memory) return KJIT_OK;
  KJ_TRY(kj_check_captures(device, diagnostics));
  KJ_TRY(kj_synchronize(device, true, NULL, diagnostics));
  kj_last_use uses = { 0 };
  kj_copy_uses(&uses, array->line.owners_use);
  return kj_wait_uses(device, &uses, diagnostics);
}

static kjit_status export_array(kjit_array *array, contents *c, kj_diagnostics *diagnostics)
{
  kjit_device *device = array->object.device;
  const kj_block *block = array->owner->block;
  kj_allocation allocation = { .memory = array->memory, .file = -1 };
  if (block && block->address) allocation = kj_describe_block(block);
  memcpy(c->magic, magic, sizeof magic);
  c->kind = device->info.kind;
  c->element = array->element;
  c->rank = (uint32_t)array->tensor.rank;
  c->is_read_only = array->is_read_only;
  memcpy(c->shape, array->shape, sizeof c->shape);
  memcpy(c->strides, array->strides, sizeof c->strides);
  KJ_TRY(kj_check_object(&array->object, "array", diagnostics));
  if (!ki_is_scalar(array->element))
    return kj_error(
      diagnostics, KJIT_ERROR_UNSUPPORTED,
      "only arrays of scalars can be exported: other types are known to their context only");
  KJ_TRY(wait_for_array(array, diagnostics));
  return device->operations->name_memory(device,
                                         (uint64_t)(uintptr_t)array->tensor.data +
                                           array->tensor.byte_offset,
                                         &allocation, diagnostics, &c->name);
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
static kjit_status check_contents(kj_runtime *runtime, const contents *c,
                                  kj_diagnostics *diagnostics)
{
  kj_view view;
  uint64_t low, high, offset = c->name.offset_bytes, size = c->name.size_bytes;
  bool is_known = !memcmp(c->magic, magic, sizeof magic) && c->rank <= KJ_MAX_RANK &&
                  c->element >= KJIT_BOOL && c->element < KJIT_SCALAR_COUNT &&
                  kj_find_kind(runtime, (kjit_device_kind)c->kind);
  if (!is_known)
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT, "the bytes are no handle of an array");
  if (c->name.process == (uint64_t)getpid())
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT,
                    "the array is of this process: use it as it is");
  const uint64_t base = (uint64_t)1 << 62; /* any does */
  kjit_tensor probe = { 0 };
  ki_types *types = runtime->context->types;
  kj_describe_element(types, c->element, &probe);
  probe.data = (void *)(uintptr_t)base; /* NOLINT(performance-no-int-to-ptr) */
  probe.rank = (int32_t)c->rank;
  probe.shape = (int64_t *)(uintptr_t)c->shape;
  probe.strides = (int64_t *)(uintptr_t)c->strides;
  probe.device_type = KJIT_DEVICE_CPU;
  KJ_TRY(kj_view_tensor(types, &probe, c->element, "the handle", diagnostics, &view));
  kj_view_range(&view, &low, &high);
  uint64_t before = base - low, after = high - base;
  bool is_inside = !view.count || (low <= base && high >= base && before <= offset &&
                                   offset <= size && after <= size - offset);
  return is_inside ? KJIT_OK
                   : kj_error(diagnostics, KJIT_ERROR_ARGUMENT,
                              "the handle is damaged: its elements are outside of its memory");
}

static kjit_status find_device(kj_runtime *runtime, const contents *c, kj_diagnostics *diagnostics,
                               kjit_device **device)
{
  const kjit_device_kind kind = (kjit_device_kind)c->kind;
  unsigned char uuid[16];
  int32_t i = 0;
  do {
    KJ_TRY(kj_find_device(runtime, kind, i, diagnostics, device));
    KJ_TRY((*device)->operations->read_uuid(*device, diagnostics, uuid));
    if (!memcmp(uuid, c->name.uuid, sizeof uuid)) return KJIT_OK;
  } while ((uint32_t)++i < kj_find_kind(runtime, kind)->count);
  return kj_error(diagnostics, KJIT_ERROR_NO_DEVICE,
                  "the array is on a device that this process does not see");
}

static void close_memory(kj_block *block)
{
  const kj_allocation allocation = kj_describe_block(block);
  if (!kj_is_gone(block)) (void)block->device->operations->close_memory(block->device, &allocation);
  kj_drop_block(block);
}

static const kj_block_kind opened_kind = { .waits = true, .free = close_memory };

static kjit_status open_memory(kjit_device *device, const contents *c, kj_diagnostics *diagnostics,
                               kj_block **block)
{
  kj_allocation opened;
  KJ_TRY(device->operations->open_memory(device, &c->name, diagnostics, &opened));
  kjit_status status = KJIT_OK;
  if (c->name.size_bytes > opened.size_bytes)
    status = kj_error(diagnostics, KJIT_ERROR_ARGUMENT,
                      "the handle is damaged: it says that its memory has %llu bytes, %zu have "
                      "been opened",
                      (unsigned long long)c->name.size_bytes, opened.size_bytes);
  else if (!(*block = kj_make_block(device, &opened_kind, &opened)))
    status = kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  if (status != KJIT_OK) (void)device->operations->close_memory(device, &opened);
  return status;
}

static kjit_status import_array(kjit_context *context, const contents *c,
                                kj_diagnostics *diagnostics, kjit_array **array)
{
  kj_runtime *runtime = kj_get_runtime(context);
  kjit_device *device;
  if (!runtime) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  KJ_TRY(check_contents(runtime, c, diagnostics));
  KJ_TRY(find_device(runtime, c, diagnostics, &device));
  kjit_array *made =
    kj_make_array(device, c->element, c->shape, c->strides, c->rank, KJIT_LAYOUT_STRIDED);
  if (!made) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  made->memory = KJIT_MEMORY_SHARED;
  made->is_read_only = c->is_read_only;
  kjit_status status = open_memory(device, c, diagnostics, &made->block);
  if (status != KJIT_OK) {
    kj_drop_array(made);
    return status;
  }
  /* NOLINT(performance-no-int-to-ptr) */
  made->tensor.data = (void *)(uintptr_t)(made->block->address + c->name.offset_bytes);
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
