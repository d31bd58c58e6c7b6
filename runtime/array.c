/* Arrays that kjit allocates, and copies of elements between any two places. */
#include <stdlib.h>
#include <string.h>

#include "view.h"

enum { ALIGNMENT = 64 };

/* ---- arrays ---- */

static void destroy_array(kj_object *object)
{
  kjit_array *array = (kjit_array *)object;
  kjit_device *device = object->device;
  if (!kj_is_cuda(device)) {
    free(array->tensor.data);
  } else if (array->tensor.data && object->generation == atomic_load(&device->generation)) {
    kj_diagnostics ignored = { 0 };
    void *previous;
    if (kj_enter_device(device, &ignored, &previous) == KJIT_OK) {
      device->driver->cuMemFree((uint64_t)(uintptr_t)array->tensor.data);
      kj_leave_device(device, previous);
    }
    kj_free_diagnostics(&ignored);
  }
  free(array);
}

static kjit_status allocate(kjit_device *device, size_t size_bytes, kj_diagnostics *diagnostics, void **data)
{
  if (!kj_is_cuda(device)) {
    size_t rounded = (size_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    *data = aligned_alloc(ALIGNMENT, rounded ? rounded : ALIGNMENT);
    return *data ? KJIT_OK : kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory: an array needs %zu bytes", size_bytes);
  }
  void *previous;
  uint64_t address = 0;
  KJ_TRY(kj_enter_device(device, diagnostics, &previous));
  kjit_status status = kj_allocate_cuda(device, size_bytes, diagnostics, &address);
  kj_leave_device(device, previous);
  *data = (void *)(uintptr_t)address;
  return status;
}

static kjit_status measure_array(kjit_type element, const int64_t *shape, uint32_t rank, kj_diagnostics *diagnostics, size_t *size_bytes)
{
  bool is_empty = false;
  if (element < KJIT_BOOL || element >= KJIT_SCALAR_COUNT)
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT, "the element type of an array is a scalar type, not %u", element);
  if (rank > KJ_MAX_RANK) return kj_error(diagnostics, KJIT_ERROR_ARGUMENT, "an array has at most %d dimensions, not %u", KJ_MAX_RANK, rank);
  if (rank && !shape) return kj_error(diagnostics, KJIT_ERROR_MISUSE, "kjit_create_array: shape is NULL");
  *size_bytes = kj_element_bytes(element);
  for (uint32_t i = 0; i < rank; i++) {
    if (shape[i] < 0) return kj_error(diagnostics, KJIT_ERROR_ARGUMENT, "extent %lld of dimension %u is negative", (long long)shape[i], i);
    is_empty = is_empty || shape[i] == 0;
    if (__builtin_mul_overflow(*size_bytes, shape[i] ? (size_t)shape[i] : 1, size_bytes) || *size_bytes > PTRDIFF_MAX)
      return kj_error(diagnostics, KJIT_ERROR_ARGUMENT, "the extents do not fit the address space");
  }
  if (is_empty) *size_bytes = 0;
  return KJIT_OK;
}

static void describe(kjit_array *array, kjit_device *device, kjit_type element, const int64_t *shape, uint32_t rank)
{
  static const struct {
    uint8_t code, bits;
  } dlpack[KJIT_SCALAR_COUNT] = {
#define X(name, text, size, class_, code, bits) [KJIT_##name] = { code, bits },
#include <kjit/types.def>
#undef X
  };
  if (rank) memcpy(array->shape, shape, rank * sizeof *shape);
  kj_fill_strides(array->strides, array->shape, rank);
  array->element = element;
  kjit_tensor *tensor = &array->tensor;
  tensor->device_type = device->info.kind;
  tensor->device_id = device->info.ordinal;
  tensor->rank = (int32_t)rank;
  tensor->code = dlpack[element].code;
  tensor->bits = dlpack[element].bits;
  tensor->lanes = 1;
  tensor->shape = array->shape;
  tensor->strides = array->strides;
}

static kjit_status create_array(kjit_device *device, kjit_type element, const int64_t *shape, uint32_t rank, kj_diagnostics *diagnostics, kjit_array **array)
{
  size_t size_bytes = 0;
  KJ_TRY(measure_array(element, shape, rank, diagnostics, &size_bytes));
  kjit_array *made = calloc(1, sizeof *made);
  if (!made) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  describe(made, device, element, shape, rank);
  atomic_store(&made->references, 1);
  kjit_status status = allocate(device, size_bytes, diagnostics, &made->tensor.data);
  if (status != KJIT_OK) {
    free(made);
    return status;
  }
  kj_add_object(device, &made->object, destroy_array);
  *array = made;
  return KJIT_OK;
}

kjit_status kjit_create_array(kjit_device *device, kjit_type element, const int64_t *shape, uint32_t rank, kjit_array **array)
{
  if (!device) return KJIT_ERROR_MISUSE;
  if (!array) return kj_fail_call(device->context, KJIT_ERROR_MISUSE, "kjit_create_array: array is NULL");
  kj_diagnostics diagnostics = { 0 };
  (void)create_array(device, element, shape, rank, &diagnostics, array);
  return kj_finish_call(device->context, &diagnostics);
}

kjit_array *kjit_retain_array(kjit_array *array)
{
  if (array) atomic_fetch_add_explicit(&array->references, 1, memory_order_relaxed);
  return array;
}

void kjit_release_array(kjit_array *array)
{
  if (!array || atomic_fetch_sub_explicit(&array->references, 1, memory_order_acq_rel) != 1) return;
  kj_remove_object(&array->object);
  destroy_array(&array->object);
}

const kjit_tensor *kjit_get_tensor(const kjit_array *array) { return array ? &array->tensor : NULL; }

/* ---- copies ---- */

static kjit_status view_argument(const kjit_arg *argument, const char *what, kj_diagnostics *diagnostics, kj_view *view)
{
  if (argument->kind == KJIT_ARG_ARRAY && argument->value.array) {
    KJ_TRY(kj_check_object(&argument->value.array->object, "array", diagnostics));
    return kj_view_tensor(&argument->value.array->tensor, what, diagnostics, view);
  }
  if (argument->kind == KJIT_ARG_TENSOR && argument->value.tensor) return kj_view_tensor(argument->value.tensor, what, diagnostics, view);
  return kj_error(diagnostics, KJIT_ERROR_MISUSE, "kjit_copy: the %s is neither a tensor nor an array", what);
}

static kjit_status check_equal(const kj_view *destination, const kj_view *source, kjit_context *context, kj_diagnostics *diagnostics)
{
  const kj_types *types = context->types;
  if (destination->element != source->element)
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT, "kjit_copy: the destination's elements are %s, the source's %s",
                    kj_type(types, destination->element)->name, kj_type(types, source->element)->name);
  if (destination->rank != source->rank)
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT, "kjit_copy: the destination has %u dimensions, the source %u", destination->rank, source->rank);
  for (uint32_t i = 0; i < source->rank; i++)
    if (destination->shape[i] != source->shape[i])
      return kj_error(diagnostics, KJIT_ERROR_ARGUMENT, "kjit_copy: dimension %u is %lld in the destination, %lld in the source", i,
                      (long long)destination->shape[i], (long long)source->shape[i]);
  return KJIT_OK;
}

typedef struct copy_job {
  kjit_device *device, *source_device; /* the GPU that the copy is queued on; for two GPUs the destination's, and the source's */
  void *stream;
  kj_view destination, source;
  void *between; /* host memory in the GPU's order where the host's view is not */
} copy_job;

/* Both sides are turned around until the GPU's is row-major. */
static kjit_status orient(copy_job *job, kj_diagnostics *diagnostics)
{
  bool both = job->destination.kind == KJIT_DEVICE_CUDA && job->source.kind == KJIT_DEVICE_CUDA;
  const kj_view *device_side = job->destination.kind == KJIT_DEVICE_CUDA ? &job->destination : &job->source;
  if (!kj_is_row_major(device_side)) {
    job->destination = kj_reverse_view(&job->destination);
    job->source = kj_reverse_view(&job->source);
  }
  if (kj_is_row_major(device_side) && (!both || kj_is_row_major(&job->source))) return KJIT_OK;
  return kj_error(diagnostics, KJIT_ERROR_UNSUPPORTED, "kjit_copy: on a GPU the elements must be contiguous%s",
                  both ? " and in the same order on both sides" : "");
}

static kjit_status copy_to_device(copy_job *job, size_t size_bytes, kj_diagnostics *diagnostics)
{
  kj_view from = job->source;
  if (job->between) {
    from.address = (uint64_t)(uintptr_t)job->between;
    kj_fill_strides(from.strides, from.shape, from.rank);
    KJ_TRY(kj_copy_host(&from, &job->source, diagnostics));
  }
  return KJ_DRIVER(job->device, diagnostics, cuMemcpyHtoDAsync, job->destination.address, (const void *)(uintptr_t)from.address, size_bytes, job->stream);
}

static kjit_status copy_to_host(copy_job *job, size_t size_bytes, kj_diagnostics *diagnostics)
{
  void *to = job->between ? job->between : (void *)(uintptr_t)job->destination.address;
  return KJ_DRIVER(job->device, diagnostics, cuMemcpyDtoHAsync, to, job->source.address, size_bytes, job->stream);
}

static kjit_status queue_copy(copy_job *job, size_t size_bytes, kj_diagnostics *diagnostics)
{
  if (job->source.kind == KJIT_DEVICE_CPU) return copy_to_device(job, size_bytes, diagnostics);
  if (job->destination.kind == KJIT_DEVICE_CPU) return copy_to_host(job, size_bytes, diagnostics);
  if (job->source_device == job->device)
    return KJ_DRIVER(job->device, diagnostics, cuMemcpyDtoDAsync, job->destination.address, job->source.address, size_bytes, job->stream);
  return KJ_DRIVER(job->device, diagnostics, cuMemcpyPeerAsync, job->destination.address, job->device->primary, job->source.address,
                   job->source_device->primary, size_bytes, job->stream);
}

static kjit_status run_copy(copy_job *job, kj_diagnostics *diagnostics)
{
  size_t size_bytes = job->destination.count * job->destination.element_bytes;
  const kj_view *host = job->source.kind == KJIT_DEVICE_CPU ? &job->source : &job->destination;
  KJ_TRY(orient(job, diagnostics));
  if (!kj_is_row_major(host) && !(job->between = malloc(size_bytes)))
    return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory: a copy of host elements that are not contiguous needs %zu bytes", size_bytes);
  void *previous;
  KJ_TRY(kj_enter_device(job->device, diagnostics, &previous));
  kjit_status status = queue_copy(job, size_bytes, diagnostics);
  kj_leave_device(job->device, previous);
  if (status == KJIT_OK) status = kj_synchronize(job->device, false, job->stream, diagnostics);
  if (status != KJIT_OK || !job->between || job->destination.kind != KJIT_DEVICE_CPU) return status;
  kj_view between = job->destination;
  between.address = (uint64_t)(uintptr_t)job->between;
  kj_fill_strides(between.strides, between.shape, between.rank);
  return kj_copy_host(&job->destination, &between, diagnostics);
}

/* The GPU whose stream orders the copy. */
static kjit_status choose_device(kjit_context *context, copy_job *job, kjit_stream *stream, kj_diagnostics *diagnostics)
{
  kj_runtime *runtime = kj_get_runtime(context);
  if (!runtime) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  const kj_view *main_side = job->destination.kind == KJIT_DEVICE_CUDA ? &job->destination : &job->source;
  KJ_TRY(kj_find_device(runtime, KJIT_DEVICE_CUDA, main_side->ordinal, diagnostics, &job->device));
  job->source_device = job->device;
  if (job->source.kind == KJIT_DEVICE_CUDA) KJ_TRY(kj_find_device(runtime, KJIT_DEVICE_CUDA, job->source.ordinal, diagnostics, &job->source_device));
  if (!stream) return KJIT_OK;
  char there[24], here[24];
  if (stream->object.device != job->device)
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT, "kjit_copy: the stream belongs to %s, the copy to %s", kj_device_text(stream->object.device, there),
                    kj_device_text(job->device, here));
  job->stream = stream->native;
  return kj_check_object(&stream->object, "stream", diagnostics);
}

static kjit_status copy(kjit_context *context, const kjit_arg *destination, const kjit_arg *source, kjit_stream *stream, kj_diagnostics *diagnostics)
{
  copy_job job = { 0 };
  KJ_TRY(view_argument(destination, "destination", diagnostics, &job.destination));
  KJ_TRY(view_argument(source, "source", diagnostics, &job.source));
  KJ_TRY(check_equal(&job.destination, &job.source, context, diagnostics));
  if (!job.destination.count) return KJIT_OK;
  if (job.destination.kind == KJIT_DEVICE_CPU && job.source.kind == KJIT_DEVICE_CPU) return kj_copy_host(&job.destination, &job.source, diagnostics);
  KJ_TRY(choose_device(context, &job, stream, diagnostics));
  kjit_status status = run_copy(&job, diagnostics);
  free(job.between);
  return status;
}

kjit_status kjit_copy(kjit_context *context, const kjit_arg *destination, const kjit_arg *source, kjit_stream *stream)
{
  if (!context) return KJIT_ERROR_MISUSE;
  if (!destination || !source) return kj_fail_call(context, KJIT_ERROR_MISUSE, "kjit_copy: the %s is NULL", destination ? "source" : "destination");
  kj_diagnostics diagnostics = { 0 };
  (void)copy(context, destination, source, stream, &diagnostics);
  return kj_finish_call(context, &diagnostics);
}
