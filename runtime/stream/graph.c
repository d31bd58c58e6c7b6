/* Implements captures and graphs. If the device captures queued work itself, as a GPU's driver
 * does, a kjit graph consists of the driver's graph and of the objects that have to stay alive.
 * Otherwise the graph keeps the operations and repeats them in the order in which the application
 * queued them. This order also satisfies the order of the captured streams and events. */
#include <stdlib.h>

#include "memory/pool.h"
#include "stream/record.h"

struct kj_capture {
  struct kj_capture *next; /* next capture of the runtime */
  uint64_t number;
  kjit_device *device;
  kjit_stream *origin;
  kj_pointers streams; /* streams that take part in the capture */
  kj_record *record;
  /* true if an object could not be kept alive; the capture then produces no graph */
  bool is_broken;
};

/* ---- captures in progress; the caller holds streams_mutex ---- */

static void lock(kj_runtime *runtime) { kj_lock(&runtime->streams_mutex, KJ_LOCK_STREAMS); }
static void unlock(kj_runtime *runtime) { kj_unlock(&runtime->streams_mutex, KJ_LOCK_STREAMS); }

/* For assertions: checks that the capture is in progress. The caller holds streams_mutex. */
static void check_capture(const struct kj_capture *capture)
{
  const kj_runtime *runtime = capture->device->runtime;
  const struct kj_capture *at = runtime->captures;
  if (!KJ_HAS_ASSERTIONS) return;
  KJ_ASSERT(kj_is_locked_here(&runtime->streams_mutex));
  while (at && at != capture) at = at->next;
  KJ_ASSERT(at && capture->number && capture->record && capture->origin);
  /* no other thread has access to the record yet */
  KJ_ASSERT(atomic_load(&capture->record->references) == 1);
  KJ_ASSERT(capture->streams.count <= capture->streams.capacity);
  for (size_t i = 0; i < capture->streams.count; i++) {
    const kjit_stream *stream = capture->streams.items[i];
    KJ_ASSERT(atomic_load(&stream->capture) == capture);
    KJ_ASSERT(stream->object.device == capture->device);
    for (size_t k = 0; k < i; k++) KJ_ASSERT(capture->streams.items[k] != stream);
  }
}

/* Returns the capture that the stream belongs to, or NULL. The caller holds streams_mutex. */
static struct kj_capture *capture_of(const kjit_stream *stream)
{
  struct kj_capture *capture = atomic_load(&stream->capture);
  KJ_ASSERT(kj_is_locked_here(&stream->object.device->runtime->streams_mutex));
  if (capture) check_capture(capture);
  return capture;
}

static bool is_same_stream(const kjit_stream *a, const kjit_stream *b)
{
  return a == b || (a->native && a->native == b->native && a->object.device == b->object.device &&
                    a->object.generation == b->object.generation);
}

static bool add_one(struct kj_capture *capture, kjit_stream *stream)
{
  KJ_ASSERT(!atomic_load(&stream->capture));
  if (!kj_add_pointer(&capture->streams, stream)) return false;
  atomic_store(&stream->capture, capture);
  return true;
}

/* Removes the streams that were added after the first `count`. */
static void drop_streams(struct kj_capture *capture, size_t count)
{
  KJ_ASSERT(count <= capture->streams.count);
  while (capture->streams.count > count) {
    kjit_stream *stream = capture->streams.items[--capture->streams.count];
    KJ_ASSERT(atomic_load(&stream->capture) == capture);
    atomic_store(&stream->capture, NULL);
  }
}

/* Adds a stream to the capture. The application can wrap a CUstream more than once, so all stream
 * objects of this CUstream are added. Returns false if memory is exhausted; no object is added in
 * this case. */
static bool add_stream(struct kj_capture *capture, kjit_stream *stream)
{
  const struct kj_memory *memory = capture->device->memory;
  size_t before = capture->streams.count;
  bool is_added = add_one(capture, stream);
  for (kjit_stream *at = memory ? memory->streams : NULL; at && is_added; at = at->next_of_device)
    if (at != stream && is_same_stream(at, stream)) is_added = add_one(capture, at);
  if (!is_added) drop_streams(capture, before);
  return is_added;
}

/* Registers the capture before the driver starts it, because other threads look for captures before
 * they order streams. */
static void open_capture(struct kj_capture *capture)
{
  static uint64_t count;
  kj_runtime *runtime = capture->device->runtime;
  KJ_ASSERT(kj_is_locked_here(&runtime->streams_mutex) && !capture->number);
  KJ_ASSERT(!capture->device->memory || !capture->device->memory->waiting);
  capture->number = __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED);
  capture->next = runtime->captures;
  runtime->captures = capture;
  atomic_fetch_add(&capture->device->captures, 1);
  check_capture(capture);
}

kjit_status kj_capture_alias(kjit_stream *stream, kj_diagnostics *diagnostics)
{
  const kjit_device *device = stream->object.device;
  kj_runtime *runtime = device->runtime;
  bool is_added = true;
  lock(runtime);
  for (const kjit_stream *at = device->memory->streams; at && is_added; at = at->next_of_device) {
    struct kj_capture *capture = capture_of(at);
    if (at == stream || !capture || !is_same_stream(at, stream)) continue;
    is_added = add_one(capture, stream);
    break;
  }
  unlock(runtime);
  return is_added ? KJIT_OK : kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
}

/* Unregisters the capture after the driver has ended it. Returns the record to the caller. */
static kj_record *close_capture(struct kj_capture *capture)
{
  kj_record *record = capture->record;
  kjit_device *device = capture->device;
  struct kj_capture **at = &device->runtime->captures;
  check_capture(capture);
  while (*at && *at != capture) at = &(*at)->next;
  if (*at) *at = capture->next;
  /* a reset of the device has set the count to 0 */
  bool is_counted = capture->origin->object.generation == atomic_load(&device->generation);
  KJ_ASSERT(!is_counted || atomic_load(&device->captures));
  if (is_counted) atomic_fetch_sub(&device->captures, 1);
  drop_streams(capture, 0);
  free(capture->streams.items);
  free(capture);
  return record;
}

uint64_t kj_capture_number(kjit_stream *stream)
{
  if (!stream || !atomic_load(&stream->capture)) return 0;
  kj_runtime *runtime = stream->object.device->runtime;
  lock(runtime);
  const struct kj_capture *capture = capture_of(stream);
  uint64_t number = capture ? capture->number : 0;
  unlock(runtime);
  return number;
}

static kjit_status join_capture(kjit_stream *stream, kjit_event *event, kj_diagnostics *diagnostics)
{
  kjit_device *device = event->object.device;
  struct kj_capture *capture = device->runtime->captures;
  while (capture && (capture->number != event->capture || capture->device != device))
    capture = capture->next;
  if (!capture)
    return kj_error(diagnostics, KJIT_ERROR_MISUSE,
                    "the event was recorded in a capture that has ended");
  if (!stream)
    return kj_error(diagnostics, KJIT_ERROR_MISUSE,
                    "the event was recorded in a capture; the stream that waits for it must belong "
                    "to the event's device and must not be the default stream");
  struct kj_capture *own = capture_of(stream);
  if (own && own != capture)
    return kj_error(diagnostics, KJIT_ERROR_MISUSE, "the stream is part of another capture");
  size_t before = capture->streams.count;
  if (!own && !add_stream(capture, stream))
    return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  kjit_status status =
    device->operations->wait_event(device, stream->native, event->native, diagnostics);
  if (status != KJIT_OK) drop_streams(capture, before);
  check_capture(capture);
  return status;
}

kjit_status kj_join_capture(kjit_stream *stream, kjit_event *event, kj_diagnostics *diagnostics)
{
  kj_runtime *runtime = event->object.device->runtime;
  lock(runtime);
  kjit_status status = join_capture(stream, event, diagnostics);
  unlock(runtime);
  return status;
}

static void drop_native(const kjit_stream *stream)
{
  kjit_device *device = stream->object.device;
  kj_diagnostics ignored = { 0 };
  bool is_there = device->operations->end_capture && !atomic_load(&device->lost) &&
                  stream->object.generation == atomic_load(&device->generation);
  if (is_there) (void)device->operations->end_capture(device, stream->native, &ignored, NULL, NULL);
  kj_free_diagnostics(&ignored);
}

static kj_record *abort_capture(kjit_stream *stream)
{
  struct kj_capture *capture = capture_of(stream);
  if (!capture) return NULL;
  if (capture->origin == stream) {
    drop_native(stream);
    return close_capture(capture);
  }
  kj_pointers *streams = &capture->streams;
  for (size_t i = 0; i < streams->count; i++)
    if (streams->items[i] == stream) streams->items[i] = streams->items[--streams->count];
  atomic_store(&stream->capture, NULL);
  check_capture(capture);
  return NULL;
}

void kj_abort_capture(kjit_stream *stream)
{
  kj_runtime *runtime = stream->object.device->runtime;
  if (!atomic_load(&stream->capture)) return;
  lock(runtime);
  kj_record *record = abort_capture(stream);
  unlock(runtime);
  kj_release_record(record);
  kj_settle_parked(runtime, true);
}

static void abort_captures(kj_attachment *attachment)
{
  while (attachment->runtime->captures) kj_abort_capture(attachment->runtime->captures->origin);
}

kjit_status kj_open_captures(kj_runtime *runtime, kj_diagnostics *diagnostics)
{
  static const kj_attachment_class class = { .stop = abort_captures };
  (void)diagnostics;
  kj_attach_to_runtime(runtime, &runtime->capture_attachment, &class);
  return KJIT_OK;
}

/* ---- objects that a capture keeps alive ---- */

/* Marks the capture as broken if an object could not be kept alive. The driver's graph already uses
 * this object, so the graph must not run. */
static kjit_status check_kept(struct kj_capture *capture, bool is_kept, kj_diagnostics *diagnostics)
{
  if (is_kept) return KJIT_OK;
  if (capture) capture->is_broken = true;
  return capture
           ? kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory")
           : kj_error(diagnostics, KJIT_ERROR_MISUSE, "the capture has ended in the meantime");
}

kjit_status kj_keep(kjit_stream *stream, const kj_kept_kind *kind, void *item,
                    kj_diagnostics *diagnostics)
{
  kj_runtime *runtime = stream->object.device->runtime;
  lock(runtime);
  struct kj_capture *capture = capture_of(stream);
  bool is_kept = capture && kj_add_kept(capture->record, kind, item);
  kjit_status status = check_kept(capture, is_kept, diagnostics);
  unlock(runtime);
  return status;
}

void *kj_find_kept(kjit_stream *stream, const kj_kept_kind *kind)
{
  kj_runtime *runtime = stream->object.device->runtime;
  lock(runtime);
  const struct kj_capture *capture = capture_of(stream);
  const kj_kept *kept = capture ? capture->record->kept : NULL;
  while (kept && kept->kind != kind) kept = kept->next;
  void *item = kept ? kept->item : NULL;
  unlock(runtime);
  return item;
}

static void retain_array(void *array) { (void)kjit_retain_array(array); }
static void release_array(void *array) { kjit_release_array(array); }

/* Records the use of an array, which can belong to another device. */
static kjit_status use_array(void *item, kjit_device *device, kjit_stream *stream,
                             kj_diagnostics *diagnostics)
{
  kjit_array *array = item;
  KJ_TRY(kj_check_object(&array->object, "array of the graph", diagnostics));
  kj_note_use(array, stream, device);
  return KJIT_OK;
}

static const kj_kept_kind array_kind = { retain_array, release_array, use_array };

kjit_status kj_keep_array(kjit_stream *stream, kjit_array *array, kj_diagnostics *diagnostics)
{
  kjit_arg argument = kjit_arg_array(array);
  return kj_keep_arrays(stream, &argument, 1, diagnostics);
}

kjit_status kj_keep_arrays(kjit_stream *stream, const kjit_arg *arguments, size_t count,
                           kj_diagnostics *diagnostics)
{
  kj_runtime *runtime = stream->object.device->runtime;
  lock(runtime);
  struct kj_capture *capture = capture_of(stream);
  bool is_kept = capture;
  for (size_t i = 0; i < count && is_kept; i++)
    if (arguments[i].kind == KJIT_ARG_ARRAY && arguments[i].value.array)
      is_kept = kj_add_kept(capture->record, &array_kind, arguments[i].value.array);
  kjit_status status = check_kept(capture, is_kept, diagnostics);
  unlock(runtime);
  return status;
}

kjit_status kj_record_operation(kjit_stream *stream, kj_operation *operation,
                                kj_diagnostics *diagnostics)
{
  kj_runtime *runtime = stream->object.device->runtime;
  lock(runtime);
  struct kj_capture *capture = capture_of(stream);
  KJ_ASSERT(kj_is_recorded(stream) || !capture);
  KJ_ASSERT(operation->run && operation->destroy);
  bool is_kept = capture && kj_add_pointer(&capture->record->operations, operation);
  kjit_status status = check_kept(capture, is_kept, diagnostics);
  unlock(runtime);
  if (!is_kept) operation->destroy(operation);
  return status;
}

/* ---- begin and end ---- */

static kjit_status begin_capture(kjit_stream *stream, kj_diagnostics *diagnostics)
{
  kjit_device *device = stream->object.device;
  bool is_default = !stream->is_owned && kj_is_default(stream);
  KJ_TRY(kj_check_stream(device, stream, true, diagnostics));
  if (is_default)
    return kj_error(
      diagnostics, KJIT_ERROR_MISUSE,
      "the default stream cannot be captured; create a stream with kjit_create_stream");
  struct kj_capture *capture = calloc(1, sizeof *capture);
  kj_record *record = capture ? kj_make_record() : NULL;
  if (!record) {
    free(capture);
    return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  }
  capture->device = device;
  capture->origin = stream;
  capture->record = record;
  kjit_status status = KJIT_OK;
  lock(device->runtime);
  /* a wait for the device would break the capture */
  while (device->memory && device->memory->waiting)
    kj_wait_for(&device->runtime->waits_changed, &device->runtime->streams_mutex);
  open_capture(capture);
  if (!add_stream(capture, stream))
    status = kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  if (status == KJIT_OK && device->operations->begin_capture)
    status = device->operations->begin_capture(device, stream->native, diagnostics);
  if (status != KJIT_OK) (void)close_capture(capture);
  unlock(device->runtime);
  if (status != KJIT_OK) kj_release_record(record);
  return status;
}

kjit_status kjit_begin_capture(kjit_stream *stream)
{
  if (!stream) return KJIT_ERROR_MISUSE;
  kjit_context *context = stream->object.device->context;
  if (ki_is_forked(context)) return KJIT_ERROR_FORKED;
  kj_diagnostics diagnostics = { 0 };
  (void)begin_capture(stream, &diagnostics);
  return ki_finish_call(context, &diagnostics);
}

static void free_graph(kjit_graph *graph)
{
  KJ_ASSERT(!graph->record || atomic_load(&graph->record->references));
  kj_release_native(&graph->object, graph->object.device->operations->destroy_graph, graph->native);
  kj_release_record(graph->record);
  graph->size = 0;
  kj_free_object(&graph->object, graph);
}

static void destroy_graph(kj_object *object) { free_graph((kjit_graph *)object); }

/* Moves the capture's record to the graph, also after an error. The caller holds streams_mutex. */
static kjit_status close_into(kjit_stream *stream, struct kj_capture *capture, kjit_graph *graph,
                              kj_diagnostics *diagnostics)
{
  kjit_device *device = stream->object.device;
  bool is_native = device->operations->end_capture;
  kjit_status status = kj_check_object(&stream->object, "stream", diagnostics);
  if (status == KJIT_OK && is_native)
    status = device->operations->end_capture(device, stream->native, diagnostics, &graph->native,
                                             &graph->size);
  if (status == KJIT_OK && capture->is_broken)
    status = kj_error(diagnostics, KJIT_ERROR_MISUSE,
                      "the capture is incomplete, because there was not enough memory to keep the "
                      "used objects alive");
  KJ_ASSERT(!graph->record && (is_native || !graph->native));
  graph->record = close_capture(capture);
  if (!is_native) graph->size = graph->record->operations.count;
  return status;
}

/* Ends the capture. Work that is queued later on the captured streams runs again as usual. */
static kjit_status end_capture(kjit_stream *stream, kj_diagnostics *diagnostics, kjit_graph **graph)
{
  kjit_device *device = stream->object.device;
  kjit_graph *made = calloc(1, sizeof *made);
  if (!made) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  made->object.device = device;
  made->object.generation = stream->object.generation;
  lock(device->runtime);
  struct kj_capture *capture = capture_of(stream);
  kjit_status status = KJIT_OK;
  if (!capture)
    status = kj_error(diagnostics, KJIT_ERROR_MISUSE, "the stream is not being captured");
  else if (!is_same_stream(capture->origin, stream))
    status = kj_error(diagnostics, KJIT_ERROR_MISUSE,
                      "the capture began on another stream and must end there");
  else status = close_into(stream, capture, made, diagnostics);
  unlock(device->runtime);
  if (status != KJIT_OK) free_graph(made);
  /* orders the uses of memory that could not be ordered during the capture */
  kj_settle_parked(device->runtime, true);
  KJ_TRY(status);
  kj_add_object(device, &made->object, destroy_graph);
  *graph = made;
  return KJIT_OK;
}

kjit_status kjit_end_capture(kjit_stream *stream, kjit_graph **graph)
{
  if (!stream) return KJIT_ERROR_MISUSE;
  kjit_context *context = stream->object.device->context;
  if (ki_is_forked(context)) return KJIT_ERROR_FORKED;
  if (!graph) return ki_fail_call(context, KJIT_ERROR_MISUSE, "kjit_end_capture: graph is NULL");
  kj_diagnostics diagnostics = { 0 };
  (void)end_capture(stream, &diagnostics, graph);
  return ki_finish_call(context, &diagnostics);
}

int kjit_is_capturing(const kjit_stream *stream)
{
  kj_diagnostics ignored = { 0 };
  bool is_captured = false;
  if (!stream || ki_is_forked(stream->object.device->context)) return 0;
  (void)kj_ask_capture(stream, &ignored, &is_captured);
  kj_free_diagnostics(&ignored);
  return is_captured;
}

size_t kjit_get_graph_size(const kjit_graph *graph) { return graph ? graph->size : 0; }

kjit_context *kjit_get_graph_context(const kjit_graph *graph)
{
  return kj_told_context(graph ? &graph->object : NULL);
}

void kjit_destroy_graph(kjit_graph *graph)
{
  if (graph && kj_take_object(&graph->object)) free_graph(graph);
}
