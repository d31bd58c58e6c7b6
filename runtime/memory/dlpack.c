/* Arrays of other libraries, and arrays for them: DLPack's managed tensors, and tensors of the
 * host's own memory. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "memory/array.h"
#include "stream/stream.h"

_Static_assert(sizeof(kjit_tensor) == 48 && offsetof(kjit_managed_tensor, manager) == 48,
               "DLPack's layout");
_Static_assert(offsetof(kjit_managed_tensor_versioned, flags) == 24 &&
                 offsetof(kjit_managed_tensor_versioned, tensor) == 32,
               "DLPack's layout");

/* ---- the memory of others ---- */

/* What the array is, without a say in when its memory goes. */
static kjit_status make_foreign(kjit_context *context, const kjit_tensor *tensor, const char *what,
                                kj_diagnostics *diagnostics, kjit_array **array)
{
  kj_view view;
  kjit_device *device;
  kj_runtime *runtime = kj_get_runtime(context);
  if (!runtime) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  KJ_TRY(kj_view_tensor(context->types, tensor, KJIT_ANY, what, diagnostics, &view));
  /* pinned memory is made for a GPU */
  bool is_gpus = view.kind == KJIT_DEVICE_CUDA || tensor->device_type == KJ_DLPACK_PINNED;
  bool has_gpu = is_gpus && kj_find_device(runtime, KJIT_DEVICE_CUDA, tensor->device_id,
                                           diagnostics, &device) == KJIT_OK;
  if (is_gpus && !has_gpu) return diagnostics->status;
  if (!is_gpus) KJ_TRY(kj_find_device(runtime, KJIT_DEVICE_CPU, 0, diagnostics, &device));
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
  if (!context) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(context)) return KJIT_ERROR_FORKED;
  if (!tensor || !array)
    return ki_fail_call(context, KJIT_ERROR_MISUSE, "kjit_wrap_tensor: %s is NULL",
                        tensor ? "array" : "tensor");
  kj_diagnostics diagnostics = { 0 };
  if (make_foreign(context, tensor, "the tensor", &diagnostics, array) == KJIT_OK)
    kj_publish_array(*array);
  return ki_finish_call(context, &diagnostics);
}

/* ---- taking ---- */

/* The owner may use the memory again, in the order of the stream, as soon as its deleter is called.
 */
static void call_deleter(kj_block *block)
{
  kjit_managed_tensor *managed = block->data;
  kj_assert_no_locks();
  if (managed->deleter) managed->deleter(managed);
  kj_drop_block(block);
}

static void call_deleter_versioned(kj_block *block)
{
  kjit_managed_tensor_versioned *managed = block->data;
  kj_assert_no_locks();
  if (managed->deleter) managed->deleter(managed);
  kj_drop_block(block);
}

static const kj_block_kind plain_kind = { .is_in_order = true,
                                          .waits = true,
                                          .calls_host = true,
                                          .free = call_deleter },
                           versioned_kind = { .is_in_order = true,
                                              .waits = true,
                                              .calls_host = true,
                                              .free = call_deleter_versioned };

typedef struct offer {
  kjit_context *context;
  const kjit_tensor *tensor;
  void *managed;
  const kj_block_kind *kind;
  bool is_read_only;
  kjit_stream *stream;
} offer;

static kjit_status take(const offer *offer, kj_diagnostics *diagnostics, kjit_array **array)
{
  kjit_array *made = NULL;
  KJ_TRY(make_foreign(offer->context, offer->tensor, "the tensor", diagnostics, &made));
  kjit_device *device = made->object.device;
  kjit_status status = kj_check_stream(device, offer->stream, false, diagnostics);
  if (status == KJIT_OK && !(made->block = kj_make_block(device, offer->kind, NULL)))
    status = kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  if (status != KJIT_OK) {
    free(made);
    return status;
  }
  made->block->data = offer->managed;
  if (device->memory) {
    made->block->stream = kj_id_of(offer->stream, device);
    made->line.use.streams[0] = made->block->stream;
  }
  made->is_read_only = offer->is_read_only;
  kj_publish_array(made);
  *array = made;
  return KJIT_OK;
}

kjit_status kjit_take_dlpack(kjit_context *context, kjit_managed_tensor *managed,
                             kjit_stream *stream, kjit_array **array)
{
  kjit_status status = KJIT_ERROR_MISUSE;
  kj_diagnostics diagnostics = { 0 };
  if (!managed)
    return context ? ki_fail_call(context, KJIT_ERROR_MISUSE, "kjit_take_dlpack: managed is NULL")
                   : KJIT_ERROR_MISUSE;
  if (context && ki_is_forked(context)) status = KJIT_ERROR_FORKED;
  else if (context && !array)
    status = ki_fail_call(context, KJIT_ERROR_MISUSE, "kjit_take_dlpack: array is NULL");
  else if (context) {
    offer offer = { .context = context,
                    .tensor = &managed->tensor,
                    .managed = managed,
                    .kind = &plain_kind,
                    .stream = stream };
    (void)take(&offer, &diagnostics, array);
    status = ki_finish_call(context, &diagnostics);
  }
  if (status != KJIT_OK && managed->deleter) managed->deleter(managed);
  return status;
}

/* Of another major version only the start is known: the deleter is where it always is. */
static kjit_status check_version(const kjit_managed_tensor_versioned *managed,
                                 kj_diagnostics *diagnostics)
{
  if (managed->major == 1) return KJIT_OK;
  return kj_error(diagnostics, KJIT_ERROR_UNSUPPORTED,
                  "the tensor is of DLPack %u.%u, kjit knows 1.x", managed->major, managed->minor);
}

kjit_status kjit_take_dlpack_versioned(kjit_context *context,
                                       kjit_managed_tensor_versioned *managed, kjit_stream *stream,
                                       kjit_array **array)
{
  kjit_status status = KJIT_ERROR_MISUSE;
  kj_diagnostics diagnostics = { 0 };
  if (!managed)
    return context ? ki_fail_call(context, KJIT_ERROR_MISUSE,
                                  "kjit_take_dlpack_versioned: managed is NULL")
                   : KJIT_ERROR_MISUSE;
  if (context && ki_is_forked(context)) status = KJIT_ERROR_FORKED;
  else if (context && !array)
    status = ki_fail_call(context, KJIT_ERROR_MISUSE, "kjit_take_dlpack_versioned: array is NULL");
  else if (context) {
    offer offer = { .context = context,
                    .tensor = &managed->tensor,
                    .managed = managed,
                    .kind = &versioned_kind,
                    .stream = stream };
    offer.is_read_only = managed->flags & KJIT_DLPACK_READ_ONLY;
    if (check_version(managed, &diagnostics) == KJIT_OK) (void)take(&offer, &diagnostics, array);
    status = ki_finish_call(context, &diagnostics);
  }
  if (status != KJIT_OK && managed->deleter) managed->deleter(managed);
  return status;
}

/* ---- giving ---- */

/* An object of the context, so that a consumer that outlives the context finds nothing to give
 * back. */
typedef struct export
{
  kj_object object;
  _Atomic(kjit_array *) array; /* NULL: the context is gone, and the memory with it */
  union {
    kjit_managed_tensor plain;
    kjit_managed_tensor_versioned versioned;
  } managed;
}
export;

/* The context's end: the consumer still has the struct. */
static void forget_export(kj_object *object) { atomic_store(&((export *)object)->array, NULL); }

static void end_export(export *given)
{
  kjit_array *array = atomic_load(&given->array);
  if (array && !ki_is_forked(array->object.device->context)) {
    kj_remove_object(&given->object);
    kjit_release_array(array);
  }
  free(given);
}

static void delete_plain(kjit_managed_tensor *self) { end_export(self->manager); }
static void delete_versioned(kjit_managed_tensor_versioned *self) { end_export(self->manager); }

/* The consumer's stream may be one of kjit's on the same GPU; a wrapped one of the consumer's own
 * is the usual case. */
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

static kjit_status make_export(kjit_array *array, kjit_stream *consumer,
                               kj_diagnostics *diagnostics, export **given)
{
  KJ_TRY(order_consumer(array, consumer, diagnostics));
  export *made = calloc(1, sizeof *made);
  if (!made) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  atomic_store(&made->array, kjit_retain_array(array));
  kj_add_object(array->object.device, &made->object, forget_export);
  *given = made;
  return KJIT_OK;
}

kjit_status kjit_export_dlpack(kjit_array *array, kjit_stream *consumer,
                               kjit_managed_tensor **managed)
{
  if (!array) return KJIT_ERROR_MISUSE;
  kjit_context *context = array->object.device->context;
  if (ki_is_forked(context)) return KJIT_ERROR_FORKED;
  if (!managed)
    return ki_fail_call(context, KJIT_ERROR_MISUSE, "kjit_export_dlpack: managed is NULL");
  if (array->is_read_only)
    return ki_fail_call(context, KJIT_ERROR_UNSUPPORTED,
                        "kjit_export_dlpack: the array is read-only, which only "
                        "kjit_export_dlpack_versioned can say");
  kj_diagnostics diagnostics = { 0 };
  export *made;
  if (make_export(array, consumer, &diagnostics, &made) != KJIT_OK)
    return ki_finish_call(context, &diagnostics);
  made->managed.plain =
    (kjit_managed_tensor){ .tensor = array->tensor, .manager = made, .deleter = delete_plain };
  *managed = &made->managed.plain;
  return KJIT_OK;
}

kjit_status kjit_export_dlpack_versioned(kjit_array *array, kjit_stream *consumer,
                                         kjit_managed_tensor_versioned **managed)
{
  if (!array) return KJIT_ERROR_MISUSE;
  kjit_context *context = array->object.device->context;
  if (ki_is_forked(context)) return KJIT_ERROR_FORKED;
  if (!managed)
    return ki_fail_call(context, KJIT_ERROR_MISUSE,
                        "kjit_export_dlpack_versioned: managed is NULL");
  kj_diagnostics diagnostics = { 0 };
  export *made;
  if (make_export(array, consumer, &diagnostics, &made) != KJIT_OK)
    return ki_finish_call(context, &diagnostics);
  made->managed.versioned = (kjit_managed_tensor_versioned){
    .major = 1, .manager = made, .deleter = delete_versioned, .tensor = array->tensor
  };
  if (array->is_read_only) made->managed.versioned.flags |= KJIT_DLPACK_READ_ONLY;
  *managed = &made->managed.versioned;
  return KJIT_OK;
}
