/* Copies elements between memories of any kind, with any strides.
 *
 * Both sides are simplified to as few dimensions as possible (kj_simplify_views). The device copies
 * contiguous elements and long rows. Non-contiguous host elements are first copied to host memory
 * in the device's order. A kernel of kjit's library copies non-contiguous device elements. If the
 * other side is not on this device, the copy goes through device memory from the pool. */
#include "memory/array.h"
#include "stream/stream.h"

#include <stdlib.h>
#include <string.h>

typedef struct copy_job {
  kjit_context *context;
  /* `device` is the device on which the copy is queued: the destination's device if the copy is
   * between two GPUs. `source_device` is the source's device. */
  kjit_device *device, *source_device;
  kjit_stream *stream;
  bool is_async, is_captured;
  kj_view to, from;
  /* owner of the source memory, or NULL if no later work has to wait for the copy */
  kjit_array *source;
  kj_waited *waited; /* result of the last wait */
} copy_job;

static size_t bytes_of(const kj_view *view) { return view->count * view->element_bytes; }
static kj_stream_id id_of(const copy_job *job) { return kj_id_of(job->stream, job->device); }

/* ---- intermediate memory ---- */

static kjit_status take_between(copy_job *job, kjit_device *device, kj_diagnostics *diagnostics,
                                kj_block **block)
{
  KJ_TRY(kj_check_uncaptured(job->stream,
                             "kjit_copy_async: cannot capture a copy that needs an intermediate "
                             "buffer: make one side contiguous",
                             diagnostics));
  return kj_take_block(device, KJ_POOL_DEVICE, bytes_of(&job->to),
                       device == job->device ? job->stream : NULL, diagnostics, block);
}

/* ---- copies by the device ---- */

static kj_transfer describe(const copy_job *job, const kj_view *to, const kj_view *from)
{
  return (kj_transfer){ .to = to->address,
                        .from = from->address,
                        .to_host = kj_is_on_host(to),
                        .from_host = kj_is_on_host(from),
                        .source = job->source_device,
                        .width_bytes = bytes_of(to),
                        .rows = 1 };
}

static kjit_status queue(const copy_job *job, kj_transfer transfer, kj_diagnostics *diagnostics)
{
  KJ_ASSERT(transfer.rows && transfer.width_bytes);
  KJ_ASSERT(transfer.rows == 1 || (transfer.to_pitch_bytes >= transfer.width_bytes &&
                                   transfer.from_pitch_bytes >= transfer.width_bytes));
  return job->device->operations->copy(job->device, &transfer, kj_native(job->stream), diagnostics);
}

static kjit_status copy_line(const copy_job *job, const kj_view *to, const kj_view *from,
                             kj_diagnostics *diagnostics)
{
  return queue(job, describe(job, to, from), diagnostics);
}

/* Returns whether both sides are contiguous rows at constant distances, long enough for an
 * efficient copy by the device. */
static bool are_rows(const copy_job *job, kj_transfer *rows)
{
  enum { LEAST_BYTES = 64, MOST_PITCH = 0x7fffffff };
  const kj_view *to = &job->to, *from = &job->from;
  if (to->rank != 2 || to->strides[1] != 1 || from->strides[1] != 1 ||
      job->source_device != job->device)
    return false;
  int64_t width = to->shape[1] * to->element_bytes, to_pitch = to->strides[0] * to->element_bytes,
          from_pitch = from->strides[0] * from->element_bytes;
  *rows = describe(job, to, from);
  rows->width_bytes = (size_t)width;
  KJ_ASSERT(from->rank == 2 && from->shape[0] == to->shape[0] && from->shape[1] == to->shape[1]);
  rows->rows = (size_t)to->shape[0];
  rows->to_pitch_bytes = (size_t)to_pitch;
  rows->from_pitch_bytes = (size_t)from_pitch;
  bool is_worth_it = width >= LEAST_BYTES || job->is_captured;
  return is_worth_it && to_pitch >= width && from_pitch >= width && to_pitch <= MOST_PITCH &&
         from_pitch <= MOST_PITCH;
}

/* ---- non-contiguous host elements: copied through pinned memory in the order of the stream
 * ---- */

typedef struct host_step {
  kj_view to, from;
  void *buffer;   /* see kj_take_copy_buffer */
  kj_block *give; /* block to release afterwards, or NULL */
  kj_waited passed;
} host_step;

static void free_host_step(host_step *step)
{
  free(step->buffer);
  free(step);
}

/* Called by the driver in the order of the stream. It cannot report errors, so queue_host_step has
 * allocated the memory that the copy needs. */
static void run_host_step(void *user)
{
  host_step *step = user;
  kj_copy_host_through(&step->to, &step->from, step->buffer);
  if (step->give) kj_note_waited(&step->give->use, step->passed);
  kj_release_block(step->give);
  free_host_step(step);
}

static kjit_status queue_host_step(const copy_job *job, const kj_view *to, const kj_view *from,
                                   kj_block *give, kj_diagnostics *diagnostics)
{
  host_step *step = calloc(1, sizeof *step);
  if (!step) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  if (to) step->to = *to;
  if (from) step->from = *from;
  step->give = give;
  step->passed = kj_passed_in_order(id_of(job));
  kjit_status status = kj_take_copy_buffer(&step->to, &step->from, diagnostics, &step->buffer);
  if (status == KJIT_OK)
    status = job->device->operations->call_host(job->device, kj_native(job->stream), run_host_step,
                                                step, diagnostics);
  if (status != KJIT_OK) free_host_step(step);
  return status;
}

static kjit_status wait(const copy_job *job, kj_diagnostics *diagnostics)
{
  return kj_wait_stream(job->device, job->stream, diagnostics, job->waited);
}

static kjit_status copy_in(const copy_job *job, const kj_view *to, const kj_view *from,
                           kj_block *pinned, kj_diagnostics *diagnostics)
{
  kj_view line = kj_dense_view(from, pinned->address);
  if (job->is_async) {
    KJ_TRY(queue_host_step(job, &line, from, NULL, diagnostics));
  } else {
    KJ_TRY(wait(job, diagnostics)); /* earlier work of the stream may still write to the memory */
    KJ_TRY(kj_copy_host(&line, from, diagnostics));
  }
  KJ_TRY(copy_line(job, to, &line, diagnostics));
  return job->is_async ? queue_host_step(job, NULL, NULL, pinned, diagnostics)
                       : wait(job, diagnostics);
}

static kjit_status copy_out(const copy_job *job, const kj_view *to, const kj_view *from,
                            kj_block *pinned, kj_diagnostics *diagnostics)
{
  kj_view line = kj_dense_view(to, pinned->address);
  KJ_TRY(copy_line(job, &line, from, diagnostics));
  if (job->is_async) return queue_host_step(job, to, &line, pinned, diagnostics);
  KJ_TRY(wait(job, diagnostics));
  return kj_copy_host(to, &line, diagnostics);
}

/* Copies between strided host memory and contiguous device memory. An asynchronous copy releases
 * the intermediate memory in stream order. After a failure, the function first waits for the part
 * of the copy that is already queued. */
static kjit_status copy_between(copy_job *job, const kj_view *to, const kj_view *from,
                                kj_diagnostics *diagnostics)
{
  kj_block *pinned;
  KJ_TRY(
    kj_check_uncaptured(job->stream,
                        "kjit_copy_async: cannot capture a copy of non-contiguous host elements",
                        diagnostics));
  KJ_TRY(kj_take_block(job->device, KJ_POOL_PINNED, bytes_of(to), NULL, diagnostics, &pinned));
  KJ_ASSERT(pinned->size_bytes >= bytes_of(to) && kj_is_on_host(from) != kj_is_on_host(to));
  kj_add_use(&pinned->use, id_of(job));
  kjit_status status = kj_is_on_host(from) ? copy_in(job, to, from, pinned, diagnostics)
                                           : copy_out(job, to, from, pinned, diagnostics);
  if (status == KJIT_OK && job->is_async) return KJIT_OK;
  /* after a failure, the block is parked until its uses have ended */
  if (status != KJIT_OK) (void)wait(job, NULL);
  kj_note_waited(&pinned->use, *job->waited);
  kj_release_block(pinned);
  return status;
}

static kjit_status copy_dense(copy_job *job, const kj_view *to, const kj_view *from,
                              kj_diagnostics *diagnostics)
{
  const kj_view *host = kj_is_on_host(to) ? to : from;
  if (!kj_is_on_host(host) || kj_is_row_major(host)) return copy_line(job, to, from, diagnostics);
  return copy_between(job, to, from, diagnostics);
}

/* ---- non-contiguous elements on a GPU ---- */

static kjit_status copy_by_kernel(const copy_job *job, const kj_view *to, const kj_view *from,
                                  kj_diagnostics *diagnostics)
{
  return kj_copy_strided(job->device, to, from, job->stream, diagnostics);
}

static kjit_status gather(copy_job *job, kj_diagnostics *diagnostics)
{
  kj_block *block;
  KJ_TRY(take_between(job, job->device, diagnostics, &block));
  kj_view dense = kj_dense_view(&job->from, block->address);
  kjit_status status = copy_by_kernel(job, &dense, &job->from, diagnostics);
  if (status == KJIT_OK) status = copy_dense(job, &job->to, &dense, diagnostics);
  kj_release_block(block);
  return status;
}

static kjit_status scatter(copy_job *job, kj_diagnostics *diagnostics)
{
  kj_block *block;
  KJ_TRY(take_between(job, job->device, diagnostics, &block));
  kj_view dense = kj_dense_view(&job->to, block->address);
  kjit_status status = copy_dense(job, &dense, &job->from, diagnostics);
  if (status == KJIT_OK)
    status = kj_is_row_major(&job->to) ? copy_line(job, &job->to, &dense, diagnostics)
                                       : copy_by_kernel(job, &job->to, &dense, diagnostics);
  kj_release_block(block);
  return status;
}

/* Gathers the elements on the source's device and waits for its default stream, because streams of
 * two devices have no order. */
static kjit_status gather_there(copy_job *job, kj_diagnostics *diagnostics)
{
  kj_block *block;
  kj_waited waited;
  KJ_TRY(take_between(job, job->source_device, diagnostics, &block));
  const kj_view from = job->from, dense = kj_dense_view(&from, block->address);
  if (job->source) kj_note_use(job->source, NULL, job->source_device);
  kjit_status status = kj_copy_strided(job->source_device, &dense, &from, NULL, diagnostics);
  if (status == KJIT_OK) status = kj_wait_stream(job->source_device, NULL, diagnostics, &waited);
  kj_add_use(&block->use, id_of(job));
  job->from = dense;
  if (status == KJIT_OK)
    status = kj_is_row_major(&job->to) ? copy_line(job, &job->to, &dense, diagnostics)
                                       : scatter(job, diagnostics);
  job->from = from;
  if (status == KJIT_OK) status = wait(job, diagnostics);
  if (status == KJIT_OK) kj_note_waited(&block->use, *job->waited);
  kj_release_block(block);
  return status;
}

/* Copies between memories of two GPUs, or within one GPU. */
static kjit_status copy_on_device(copy_job *job, kj_diagnostics *diagnostics)
{
  bool is_dense = kj_is_row_major(&job->to) && kj_is_row_major(&job->from);
  if (job->source_device != job->device) {
    /* without a stream, the copy waits for the default streams of both GPUs, as a copy within one
     * GPU waits for that GPU's default stream */
    if (!job->stream) KJ_TRY(kj_order_devices(job->source_device, job->device, diagnostics));
    if (is_dense) return copy_line(job, &job->to, &job->from, diagnostics);
    return kj_is_row_major(&job->from) ? scatter(job, diagnostics) : gather_there(job, diagnostics);
  }
  bool has_same_place = is_dense && job->to.address == job->from.address;
  if (has_same_place) return KJIT_OK;
  if (is_dense && kj_do_overlap(&job->to, &job->from)) return scatter(job, diagnostics);
  if (is_dense) return copy_line(job, &job->to, &job->from, diagnostics);
  kj_transfer rows;
  return are_rows(job, &rows) ? queue(job, rows, diagnostics)
                              : copy_by_kernel(job, &job->to, &job->from, diagnostics);
}

static kjit_status queue_copy(copy_job *job, kj_diagnostics *diagnostics)
{
  bool is_in = kj_is_on_host(&job->from), is_out = kj_is_on_host(&job->to);
  kj_view *lead = is_out ? &job->from : &job->to;
  KJ_ASSERT(job->device && job->source_device && !(is_in && is_out));
  kj_simplify_views(lead, is_out ? &job->to : &job->from);
  if (!is_in && !is_out) return copy_on_device(job, diagnostics);
  if (kj_is_line(&job->to) && kj_is_line(&job->from))
    return copy_line(job, &job->to, &job->from, diagnostics);
  kj_transfer rows;
  if (are_rows(job, &rows)) return queue(job, rows, diagnostics);
  if (kj_is_row_major(lead)) return copy_dense(job, &job->to, &job->from, diagnostics);
  return is_in ? scatter(job, diagnostics) : gather(job, diagnostics);
}

/* ---- arguments ---- */

static kjit_status view_argument(kjit_context *context, const kjit_arg *argument, const char *what,
                                 kj_diagnostics *diagnostics, kj_view *view)
{
  const kjit_array *array = argument->kind == KJIT_ARG_ARRAY ? argument->value.array : NULL;
  /* the streams that use the array belong to the other context */
  if (array && array->object.device->context != context)
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT,
                    "the %s is an array of another context; pass it as a tensor (kjit_get_tensor)",
                    what);
  if (array) return kj_view_array(array, what, diagnostics, view);
  if (argument->kind == KJIT_ARG_TENSOR && argument->value.tensor)
    return kj_view_tensor(context->types, argument->value.tensor, argument->type, what, diagnostics,
                          view);
  return kj_error(diagnostics, KJIT_ERROR_MISUSE, "the %s is neither a tensor nor an array", what);
}

kjit_status kj_view_destination(const kjit_arg *argument, kjit_context *context,
                                kj_diagnostics *diagnostics, kj_view *view)
{
  KJ_TRY(view_argument(context, argument, "destination", diagnostics, view));
  if (argument->kind == KJIT_ARG_ARRAY && argument->value.array->is_read_only)
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT,
                    "the destination is read-only: its owner has marked it so");
  for (uint32_t i = 0; i < view->rank && view->count; i++)
    if (view->strides[i] == 0 && view->shape[i] > 1)
      return kj_error(diagnostics, KJIT_ERROR_ARGUMENT,
                      "dimension %u of the destination has the stride 0, so several elements have "
                      "the same address",
                      i);
  return KJIT_OK;
}

static kjit_status check_equal(const kj_view *destination, const kj_view *source,
                               kjit_context *context, kj_diagnostics *diagnostics)
{
  const ki_types *types = context->types;
  if (destination->element != source->element) {
    kj_buffer there = { 0 }, here = { 0 };
    ki_print_type(types, destination->element, &there);
    ki_print_type(types, source->element, &here);
    kjit_status status = kj_error(
      diagnostics, KJIT_ERROR_ARGUMENT,
      "kjit_copy: the destination has elements of type %s, but the source has elements of type %s",
      there.text ? there.text : "others", here.text ? here.text : "others");
    kj_free_buffer(&there);
    kj_free_buffer(&here);
    return status;
  }
  if (destination->rank != source->rank)
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT,
                    "kjit_copy: the destination has %u dimensions, but the source has %u",
                    destination->rank, source->rank);
  for (uint32_t i = 0; i < source->rank; i++)
    if (destination->shape[i] != source->shape[i])
      return kj_error(
        diagnostics, KJIT_ERROR_ARGUMENT,
        "kjit_copy: dimension %u has %lld elements in the destination, but %lld in the source", i,
        (long long)destination->shape[i], (long long)source->shape[i]);
  return KJIT_OK;
}

/* Chooses the device whose stream orders the copy. */
static kjit_status choose_device(copy_job *job, kj_diagnostics *diagnostics)
{
  kj_runtime *runtime = kj_get_runtime(job->context);
  if (!runtime) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  const kj_view *to = kj_is_on_host(&job->to) ? &job->from : &job->to,
                *from = kj_is_on_host(&job->from) ? to : &job->from;
  KJ_TRY(kj_find_device(runtime, to->kind, to->ordinal, diagnostics, &job->device));
  KJ_TRY(kj_find_device(runtime, from->kind, from->ordinal, diagnostics, &job->source_device));
  return kj_check_stream(job->device, job->stream, !job->is_async, diagnostics);
}

/* ---- host to host ---- */

typedef struct copy_operation {
  kj_operation operation;
  kjit_context *context;
  kj_view to, from;
  uint64_t value[2];
} copy_operation;

static kjit_status run_operation(kj_operation *operation, kjit_stream *stream)
{
  (void)stream;
  const copy_operation *copy = (copy_operation *)operation;
  kj_diagnostics diagnostics = { 0 };
  (void)kj_copy_host(&copy->to, &copy->from, &diagnostics);
  return ki_finish_call(copy->context, &diagnostics);
}

static void free_operation(kj_operation *operation) { free(operation); }

kjit_status kj_queue_host_copy(kjit_context *context, kjit_stream *stream, const kj_view *to,
                               const kj_view *from, const uint64_t value[2],
                               kj_diagnostics *diagnostics)
{
  if (!stream || !atomic_load(&stream->capture)) return kj_copy_host(to, from, diagnostics);
  KJ_ASSERT(kj_is_recorded(stream)); /* a capture of the device itself does not record host
                                      * copies */
  copy_operation *copy = calloc(1, sizeof *copy);
  if (!copy) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  *copy = (copy_operation){ .operation = { .run = run_operation, .destroy = free_operation },
                            .context = context,
                            .to = *to,
                            .from = *from };
  if (value) {
    memcpy(copy->value, value, sizeof copy->value);
    copy->from.address = (uint64_t)(uintptr_t)copy->value;
  }
  return kj_record_operation(stream, &copy->operation, diagnostics);
}

/* Checks that the stream belongs to the CPU device of the destination or, if only the source is on
 * one of several CPU devices, to the device of the source. GPUs have the same rule. */
static kjit_status check_cpu_devices(const copy_job *job, kj_diagnostics *diagnostics)
{
  const kj_view *view = job->to.is_placed ? &job->to : &job->from;
  const kjit_device *device = job->stream ? job->stream->object.device : NULL;
  char place[24];
  if (!view->is_placed || !device || device->operations->has_memory ||
      device->info.ordinal == view->ordinal)
    return KJIT_OK;
  return kj_error(diagnostics, KJIT_ERROR_ARGUMENT,
                  "the stream belongs to %s, but the work to queue on it belongs to %s:%d",
                  kj_device_text(device, place), device->operations->name, view->ordinal);
}

/* Copies between host memories. If the stream belongs to a GPU, the copy is ordered with the work
 * on the stream, because that work can access pinned and mapped memory. */
static kjit_status copy_on_host(copy_job *job, kj_diagnostics *diagnostics)
{
  KJ_TRY(check_cpu_devices(job, diagnostics));
  if (job->device) KJ_TRY(kj_check_stream(job->device, job->stream, !job->is_async, diagnostics));
  if (!job->device || !job->device->operations->is_queued)
    return kj_queue_host_copy(job->context, job->stream, &job->to, &job->from, NULL, diagnostics);
  KJ_TRY(kj_check_uncaptured(
    job->stream, "kjit_copy_async: cannot capture a copy from host to host on a GPU's stream",
    diagnostics));
  if (job->is_async) return queue_host_step(job, &job->to, &job->from, NULL, diagnostics);
  KJ_TRY(wait(job, diagnostics));
  return kj_copy_host(&job->to, &job->from, diagnostics);
}

/* ---- the public functions ---- */

kjit_status kj_note_argument(const kjit_arg *argument, kjit_stream *stream,
                             const kjit_device *device, kj_diagnostics *diagnostics)
{
  if (argument->kind != KJIT_ARG_ARRAY) return KJIT_OK;
  kjit_array *array = argument->value.array;
  if (device && device->operations->is_queued) kj_note_use(array, stream, device);
  return stream && atomic_load(&stream->capture) ? kj_keep_array(stream, array, diagnostics)
                                                 : KJIT_OK;
}

/* Returns the device of a kjit array if the device queues work, even if the array's memory is
 * elsewhere. */
static kjit_device *find_queue(const kjit_arg *argument)
{
  kjit_device *device =
    argument->kind == KJIT_ARG_ARRAY ? argument->value.array->object.device : NULL;
  return device && device->operations->is_queued ? device : NULL;
}

static kjit_status copy(copy_job *job, const kjit_arg *destination, const kjit_arg *source,
                        kj_diagnostics *diagnostics)
{
  KJ_TRY(kj_view_destination(destination, job->context, diagnostics, &job->to));
  KJ_TRY(view_argument(job->context, source, "source", diagnostics, &job->from));
  KJ_TRY(check_equal(&job->to, &job->from, job->context, diagnostics));
  job->is_captured = job->stream && atomic_load(&job->stream->capture);
  if (!job->to.count) return KJIT_OK;
  bool is_on_host = kj_is_on_host(&job->to) && kj_is_on_host(&job->from);
  if (!is_on_host) KJ_TRY(choose_device(job, diagnostics));
  else if (job->stream) job->device = job->stream->object.device;
  else if (!(job->device = find_queue(destination))) job->device = find_queue(source);
  KJ_TRY(kj_note_argument(destination, job->stream, job->device, diagnostics));
  KJ_TRY(kj_note_argument(source, job->stream, job->device, diagnostics));
  if (source->kind == KJIT_ARG_ARRAY) job->source = source->value.array;
  if (is_on_host) return copy_on_host(job, diagnostics);
  KJ_TRY(queue_copy(job, diagnostics));
  return job->is_async ? KJIT_OK : wait(job, diagnostics);
}

static kjit_status run_copy(kjit_context *context, const kjit_arg *destination,
                            const kjit_arg *source, kjit_stream *stream, bool is_async)
{
  KJ_TRY(kj_check_call(context, "kjit_copy",
                       !destination ? "the destination"
                       : source     ? NULL
                                    : "the source"));
  if (stream && stream->object.device->context != context)
    return ki_fail_call(context, KJIT_ERROR_ARGUMENT,
                        "kjit_copy: the stream belongs to another context");
  kj_diagnostics diagnostics = { 0 };
  kj_waited waited;
  copy_job job = { .context = context, .stream = stream, .is_async = is_async, .waited = &waited };
  kjit_status status = copy(&job, destination, source, &diagnostics);
  if (job.device && !is_async) kj_deliver_lines(job.device);
  /* there is no diagnostic if the call has succeeded, or if memory for the diagnostic was exhausted
   * (diagnostics.c) */
  return diagnostics.count ? ki_finish_call(context, &diagnostics) : status;
}

kjit_status kjit_copy(kjit_context *context, const kjit_arg *destination, const kjit_arg *source,
                      kjit_stream *stream)
{
  return run_copy(context, destination, source, stream, false);
}

kjit_status kjit_copy_async(kjit_context *context, const kjit_arg *destination,
                            const kjit_arg *source, kjit_stream *stream)
{
  return run_copy(context, destination, source, stream, true);
}

/* ---- copying whole arrays from and to host memory ---- */

static kjit_status copy_all(kjit_array *array, void *memory, size_t size_bytes, kjit_stream *stream,
                            bool to_host)
{
  KJ_TRY(kj_check_array_call(array, NULL, NULL));
  kjit_context *context = array->object.device->context;
  const char *call = to_host ? "kjit_copy_to_host" : "kjit_copy_from_host";
  kj_diagnostics diagnostics = { 0 };
  kj_view view;
  int64_t strides[KJ_MAX_RANK];
  if (kj_view_array(array, "the array", &diagnostics, &view) != KJIT_OK)
    return ki_finish_call(context, &diagnostics);
  if (!memory && view.count)
    return ki_fail_call(context, KJIT_ERROR_MISUSE, "%s: the host memory is NULL", call);
  if (size_bytes != bytes_of(&view))
    return ki_fail_call(context, KJIT_ERROR_ARGUMENT,
                        "%s: the host memory has %zu bytes, but the array has %zu", call,
                        size_bytes, bytes_of(&view));
  kjit_tensor tensor = array->tensor;
  kj_fill_strides(strides, array->shape, view.rank);
  tensor.data = memory;
  tensor.byte_offset = 0;
  tensor.device_type = KJIT_DEVICE_CPU;
  tensor.device_id = 0;
  tensor.strides = strides;
  kjit_arg device = kjit_arg_array(array), host = kjit_arg_elements(array->element, &tensor);
  return kjit_copy(context, to_host ? &host : &device, to_host ? &device : &host, stream);
}

kjit_status kjit_copy_from_host(kjit_array *array, const void *memory, size_t size_bytes,
                                kjit_stream *stream)
{
  return copy_all(array, (void *)(uintptr_t)memory, size_bytes, stream, false);
}

kjit_status kjit_copy_to_host(const kjit_array *array, void *memory, size_t size_bytes,
                              kjit_stream *stream)
{
  return copy_all((kjit_array *)(uintptr_t)array, memory, size_bytes, stream, true);
}
