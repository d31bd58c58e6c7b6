/* Implements arrays in memory that kjit has not allocated, and the export of kjit arrays. Such
 * memory belongs to the application, to another library (DLPack managed tensors), or to another
 * process, which passes a name of the memory. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "memory/array.h"
#include "memory/pool.h"
#include "stream/stream.h"

_Static_assert(sizeof(kjit_tensor) == 48 && offsetof(kjit_managed_tensor, manager) == 48,
               "DLPack's layout");
_Static_assert(offsetof(kjit_managed_tensor_versioned, flags) == 24 &&
                 offsetof(kjit_managed_tensor_versioned, tensor) == 32,
               "DLPack's layout");

/* ---- memory of other owners ---- */

/* Returns whether the tensor is on one of several CPU devices: its device number is not 0, which is
 * the number of host memory. Other libraries have only one CPU device. If such a library passes on
 * an array that kjit_export_dlpack has exported, the tensor has the device number of that
 * library. */
static bool is_of_cpu_device(kj_runtime *runtime, const kjit_tensor *tensor)
{
  return tensor->device_type == KJIT_DEVICE_CPU && tensor->device_id > 0 &&
         (uint32_t)tensor->device_id < runtime->context->config.cpu_devices;
}

static kjit_tensor for_others(const kjit_array *array)
{
  kjit_tensor tensor = array->tensor;
  if (tensor.device_type == KJ_DLPACK_PLACED) tensor.device_type = KJIT_DEVICE_CPU;
  return tensor;
}

/* Makes an array for a tensor. The caller sets how its memory is released. */
static kjit_status make_foreign(kjit_context *context, const kjit_tensor *tensor, const char *what,
                                kj_diagnostics *diagnostics, kjit_array **array)
{
  kj_view view;
  kjit_device *device;
  kj_runtime *runtime = kj_get_runtime(context);
  if (!runtime) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  kjit_tensor placed = *tensor;
  if (is_of_cpu_device(runtime, tensor)) placed.device_type = KJ_DLPACK_PLACED;
  tensor = &placed;
  KJ_TRY(kj_view_tensor(context->types, tensor, KJIT_ANY, what, diagnostics, &view));
  /* DLPack's pinned memory belongs to a GPU */
  bool is_pinned = tensor->device_type == KJ_DLPACK_PINNED;
  KJ_TRY(kj_find_device(runtime, is_pinned ? KJIT_DEVICE_CUDA : view.kind,
                        is_pinned ? tensor->device_id : view.ordinal, diagnostics, &device));
  kjit_array *made =
    kj_make_array(device, view.element, view.shape, view.strides, view.rank, KJIT_LAYOUT_STRIDED);
  if (!made) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  made->tensor.data = tensor->data;
  made->tensor.byte_offset = tensor->byte_offset;
  made->tensor.device_type = tensor->device_type;
  made->memory = tensor->device_type == KJ_DLPACK_PINNED    ? KJIT_MEMORY_PINNED
                 : tensor->device_type == KJ_DLPACK_MANAGED ? KJIT_MEMORY_MANAGED
                                                            : KJIT_MEMORY_DEVICE;
  *array = made;
  return KJIT_OK;
}

kjit_status kjit_wrap_tensor(kjit_context *context, const kjit_tensor *tensor, kjit_array **array)
{
  kj_diagnostics diagnostics = { 0 };
  KJ_TRY(kj_check_call(context, "kjit_wrap_tensor", !tensor ? "tensor" : array ? NULL : "array"));
  if (make_foreign(context, tensor, "the tensor", &diagnostics, array) == KJIT_OK)
    kj_publish_array(*array);
  return ki_finish_call(context, &diagnostics);
}

/* ---- import from other libraries ---- */

static void delete_plain(kjit_managed_tensor *managed)
{
  if (managed->deleter) managed->deleter(managed);
}
static void delete_versioned(kjit_managed_tensor_versioned *managed)
{
  if (managed->deleter) managed->deleter(managed);
}

/* Calls the deleter. The owner may reuse the memory at once, in the order of the stream. */
static void free_plain(kj_block *block)
{
  kj_assert_no_locks();
  delete_plain(block->data);
  kj_drop_block(block);
}
static void free_versioned(kj_block *block)
{
  kj_assert_no_locks();
  delete_versioned(block->data);
  kj_drop_block(block);
}

static const kj_block_kind plain_kind = { .is_in_order = true,
                                          .waits = true,
                                          .calls_host = true,
                                          .free = free_plain },
                           versioned_kind = { .is_in_order = true,
                                              .waits = true,
                                              .calls_host = true,
                                              .free = free_versioned };

typedef struct offer {
  const kjit_tensor *tensor;
  const kjit_managed_tensor_versioned *versioned; /* NULL for an unversioned tensor */
  void *managed;
  const kj_block_kind *kind;
  kjit_stream *stream;
} offer;

static kjit_status take(kjit_context *context, const offer *offer, kj_diagnostics *diagnostics,
                        kjit_array **array)
{
  kjit_array *made = NULL;
  const kjit_managed_tensor_versioned *versioned = offer->versioned;
  /* if the major version differs, only the beginning of the struct and the deleter are defined */
  if (versioned && versioned->major != 1)
    return kj_error(diagnostics, KJIT_ERROR_UNSUPPORTED,
                    "the tensor has DLPack version %u.%u, but kjit supports versions 1.x",
                    versioned->major, versioned->minor);
  KJ_TRY(make_foreign(context, offer->tensor, "the tensor", diagnostics, &made));
  kjit_device *device = made->object.device;
  kjit_status status = kj_check_stream(device, offer->stream, false, diagnostics);
  if (status == KJIT_OK && !(made->block = kj_make_block(device, offer->kind, NULL)))
    status = kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  if (status != KJIT_OK) {
    kj_drop_array(made);
    return status;
  }
  /* kjit does not free the memory */
  KJ_ASSERT(!made->block->address && made->block->kind->calls_host);
  made->block->data = offer->managed;
  if (device->memory)
    made->line.use.streams[0] = made->block->stream = kj_id_of(offer->stream, device);
  made->is_read_only = versioned && versioned->flags & KJIT_DLPACK_READ_ONLY;
  kj_publish_array(made);
  *array = made;
  return KJIT_OK;
}

static kjit_status take_offer(kjit_context *context, const char *function, const offer *offer,
                              kjit_array **array)
{
  kj_diagnostics diagnostics = { 0 };
  KJ_TRY(kj_check_call(context, function, array ? NULL : "array"));
  (void)take(context, offer, &diagnostics, array);
  return ki_finish_call(context, &diagnostics);
}

kjit_status kjit_take_dlpack(kjit_context *context, kjit_managed_tensor *managed,
                             kjit_stream *stream, kjit_array **array)
{
  if (!managed) return kj_check_call(context, "kjit_take_dlpack", "managed");
  const offer offer = {
    .tensor = &managed->tensor, .managed = managed, .kind = &plain_kind, .stream = stream
  };
  kjit_status status = take_offer(context, "kjit_take_dlpack", &offer, array);
  if (status != KJIT_OK) delete_plain(managed);
  return status;
}

kjit_status kjit_take_dlpack_versioned(kjit_context *context,
                                       kjit_managed_tensor_versioned *managed, kjit_stream *stream,
                                       kjit_array **array)
{
  if (!managed) return kj_check_call(context, "kjit_take_dlpack_versioned", "managed");
  const offer offer = { .tensor = &managed->tensor,
                        .versioned = managed,
                        .managed = managed,
                        .kind = &versioned_kind,
                        .stream = stream };
  kjit_status status = take_offer(context, "kjit_take_dlpack_versioned", &offer, array);
  if (status != KJIT_OK) delete_versioned(managed);
  return status;
}

/* ---- export to other libraries ---- */

/* An exported tensor. It is an object of the context. So if the consumer releases the tensor after
 * the context has ended, nothing is left to release. */
typedef struct export
{
  kj_object object;
  _Atomic(kjit_array *) array; /* NULL after the end of the context and of its memory */
  union {
    kjit_managed_tensor plain;
    kjit_managed_tensor_versioned versioned;
  } managed;
}
export;

/* Called when the context ends while the consumer still has the exported tensor. */
static void forget_export(kj_object *object)
{
  KJ_ASSERT(object->is_left);
  kjit_release_array(atomic_exchange(&((export *)object)->array, NULL));
}

static void end_export(export *given)
{
  kjit_array *array = atomic_load(&given->array);
  KJ_ASSERT(!array || atomic_load(&array->references));
  if (array && kj_take_object(&given->object)) kjit_release_array(array);
  free(given);
}

static void end_plain(kjit_managed_tensor *self) { end_export(self->manager); }
static void end_versioned(kjit_managed_tensor_versioned *self) { end_export(self->manager); }

/* Makes the consumer's stream wait for the array's work. The consumer's stream is usually wrapped
 * for this call, but it can also be a kjit stream of the same GPU. */
static kjit_status order_consumer(kjit_array *array, kjit_stream *consumer,
                                  kj_diagnostics *diagnostics)
{
  kjit_device *device = array->object.device;
  KJ_TRY(kj_check_object(&array->object, "array", diagnostics));
  if (!device->memory) return KJIT_OK;
  kj_stream_id next = kj_id_of(consumer, device);
  KJ_TRY(kj_check_stream(device, consumer, false, diagnostics));
  KJ_TRY(kj_check_captures(device, diagnostics));
  KJ_TRY(kj_join_uses(device, array->line.owners_use, &next, diagnostics));
  kj_note_use(array, consumer, device);
  return KJIT_OK;
}

/* Performs the call except for allocating the consumer's struct. */
static kjit_status make_export(kjit_array *array, kjit_stream *consumer, const char *function,
                               const char *missing, export **given)
{
  kj_diagnostics diagnostics = { 0 };
  KJ_TRY(kj_check_array_call(array, function, missing));
  if (order_consumer(array, consumer, &diagnostics) == KJIT_OK) {
    *given = calloc(1, sizeof **given);
    if (!*given) (void)kj_error(&diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  }
  KJ_TRY(ki_finish_call(array->object.device->context, &diagnostics));
  atomic_store(&(*given)->array, kjit_retain_array(array));
  kj_add_object(array->object.device, &(*given)->object, forget_export);
  return KJIT_OK;
}

kjit_status kjit_export_dlpack(kjit_array *array, kjit_stream *consumer,
                               kjit_managed_tensor **managed)
{
  const char *missing = managed ? NULL : "managed";
  export *made = NULL;
  KJ_TRY(kj_check_array_call(array, "kjit_export_dlpack", missing));
  if (array->is_read_only)
    return ki_fail_call(array->object.device->context, KJIT_ERROR_UNSUPPORTED,
                        "kjit_export_dlpack: the array is read-only, which this DLPack version "
                        "cannot express; use kjit_export_dlpack_versioned");
  KJ_TRY(make_export(array, consumer, "kjit_export_dlpack", missing, &made));
  made->managed.plain =
    (kjit_managed_tensor){ .tensor = for_others(array), .manager = made, .deleter = end_plain };
  *managed = &made->managed.plain;
  return KJIT_OK;
}

kjit_status kjit_export_dlpack_versioned(kjit_array *array, kjit_stream *consumer,
                                         kjit_managed_tensor_versioned **managed)
{
  export *made = NULL;
  KJ_TRY(make_export(array, consumer, "kjit_export_dlpack_versioned", managed ? NULL : "managed",
                     &made));
  made->managed.versioned =
    (kjit_managed_tensor_versioned){ .major = 1,
                                     .manager = made,
                                     .deleter = end_versioned,
                                     .flags = array->is_read_only ? KJIT_DLPACK_READ_ONLY : 0,
                                     .tensor = for_others(array) };
  *managed = &made->managed.versioned;
  return KJIT_OK;
}

/* ---- other processes ---- */

typedef struct contents {
  char magic[8];
  uint32_t kind, element, rank, is_read_only;
  int64_t shape[KJ_MAX_RANK], strides[KJ_MAX_RANK];
  kj_memory_name name; /* the name refers to element 0 */
} contents;

static const char magic[8] = "kjitarr\1";
_Static_assert(sizeof(contents) <= sizeof(kjit_array_handle), "a handle holds its contents");

/* Waits for the array's work, because the importing process cannot order its work after streams of
 * this process. Other devices may have used the array as well. */
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
      "only arrays of scalars can be exported, because other contexts know only scalar types");
  KJ_TRY(wait_for_array(array, diagnostics));
  return device->operations->name_memory(device,
                                         (uint64_t)(uintptr_t)array->tensor.data +
                                           array->tensor.byte_offset,
                                         &allocation, diagnostics, &c->name);
}

kjit_status kjit_export_array(kjit_array *array, kjit_array_handle *handle)
{
  kj_diagnostics diagnostics = { 0 };
  contents c = { 0 };
  KJ_TRY(kj_check_array_call(array, "kjit_export_array", handle ? NULL : "handle"));
  kjit_status status = export_array(array, &c, &diagnostics);
  kj_deliver_lines(array->object.device);
  if (status == KJIT_OK) {
    memset(handle, 0, sizeof *handle);
    memcpy(handle, &c, sizeof c);
  }
  return ki_finish_call(array->object.device->context, &diagnostics);
}

/* Checks a handle's contents, which are untrusted, so that the array lies inside the named
 * memory. */
static kjit_status check_contents(kj_runtime *runtime, const contents *c,
                                  kj_diagnostics *diagnostics)
{
  kj_view view;
  uint64_t low, high, offset = c->name.offset_bytes, size = c->name.size_bytes;
  bool is_known = !memcmp(c->magic, magic, sizeof magic) && c->rank <= KJ_MAX_RANK &&
                  c->element >= KJIT_BOOL && c->element < KJIT_SCALAR_COUNT &&
                  kj_find_kind(runtime, (kjit_device_kind)c->kind);
  if (!is_known)
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT, "the bytes are not a handle of an array");
  if (c->name.process == (uint64_t)getpid())
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT,
                    "the array belongs to this process; use it directly");
  const uint64_t base = (uint64_t)1 << 62; /* an arbitrary base address */
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
  return is_inside
           ? KJIT_OK
           : kj_error(diagnostics, KJIT_ERROR_ARGUMENT,
                      "the handle is damaged: its elements are out of bounds of its memory");
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
                  "the array is on a device that is not visible to this process");
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
    status = kj_error(
      diagnostics, KJIT_ERROR_ARGUMENT,
      "the handle is damaged: it states %llu bytes of memory, but the opened memory has %zu",
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
  kj_diagnostics diagnostics = { 0 };
  contents c;
  KJ_TRY(kj_check_call(context, "kjit_import_array", !handle ? "handle" : array ? NULL : "array"));
  memcpy(&c, handle, sizeof c);
  (void)import_array(context, &c, &diagnostics, array);
  return ki_finish_call(context, &diagnostics);
}
