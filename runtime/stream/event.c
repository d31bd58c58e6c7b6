/* Implements events, which mark a point in the work of a stream and store the time at which the
 * stream reached it. */
#include <stdlib.h>

#include "stream/stream.h"

static void destroy_event(kj_object *object)
{
  kjit_event *event = (kjit_event *)object;
  bool is_there = object->generation == atomic_load(&object->device->generation);
  KJ_ASSERT(event->native && (!event->is_wrapped || event->is_recorded));
  if (event->native && !event->is_wrapped && is_there)
    object->device->operations->destroy_event(object->device, event->native);
  event->native = NULL;
  kj_free_object(object, event);
}

kjit_status kjit_create_event(kjit_device *device, kjit_event **event)
{
  if (!device) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(device->context)) return KJIT_ERROR_FORKED;
  if (!event)
    return ki_fail_call(device->context, KJIT_ERROR_MISUSE, "kjit_create_event: event is NULL");
  kjit_event *made = calloc(1, sizeof *made);
  if (!made) return ki_fail_call(device->context, KJIT_ERROR_MEMORY, "out of memory");
  kj_diagnostics diagnostics = { 0 };
  if (device->operations->create_event(device, true, &diagnostics, &made->native) != KJIT_OK) {
    free(made);
    return ki_finish_call(device->context, &diagnostics);
  }
  KJ_ASSERT(made->native);
  kj_add_object(device, &made->object, destroy_event);
  *event = made;
  return KJIT_OK;
}

kjit_status kjit_wrap_event(kjit_device *device, void *native, kjit_event **event)
{
  char place[24];
  if (!device) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(device->context)) return KJIT_ERROR_FORKED;
  if (!event || !native)
    return ki_fail_call(device->context, KJIT_ERROR_MISUSE, "kjit_wrap_event: %s is NULL",
                        event ? "native" : "event");
  if (!device->operations->is_queued)
    return ki_fail_call(device->context, KJIT_ERROR_UNSUPPORTED,
                        "kjit_wrap_event: events of %s cannot be wrapped, because it is not a GPU",
                        kj_device_text(device, place));
  kjit_event *made = calloc(1, sizeof *made);
  if (!made) return ki_fail_call(device->context, KJIT_ERROR_MEMORY, "out of memory");
  made->native = native;
  made->is_wrapped = made->is_recorded = true;
  kj_add_object(device, &made->object, destroy_event);
  *event = made;
  return KJIT_OK;
}

void *kjit_get_native_event(const kjit_event *event)
{
  return event && event->object.device->operations->is_queued ? event->native : NULL;
}

kjit_context *kjit_get_event_context(const kjit_event *event)
{
  return kj_told_context(event ? &event->object : NULL);
}

void kjit_destroy_event(kjit_event *event)
{
  if (event && kj_take_object(&event->object)) destroy_event(&event->object);
}

/* ---- recording and waiting ---- */

/* Records an event. In a capture, an event only orders the streams: the graph does not record the
 * time of the event. */
static kjit_status record(kjit_event *event, kjit_stream *stream, kj_diagnostics *diagnostics)
{
  kjit_device *device = event->object.device;
  KJ_TRY(kj_check_stream(device, stream, false, diagnostics));
  KJ_TRY(kj_check_object(&event->object, "event", diagnostics));
  return device->operations->record_event(device, event->native, kj_native(stream), diagnostics);
}

kjit_status kjit_record_event(kjit_event *event, kjit_stream *stream)
{
  if (!event) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(event->object.device->context)) return KJIT_ERROR_FORKED;
  kj_diagnostics diagnostics = { 0 };
  if (record(event, stream, &diagnostics) == KJIT_OK) {
    event->is_recorded = true;
    event->capture = kj_capture_number(stream);
  }
  return ki_finish_call(event->object.device->context, &diagnostics);
}

static kjit_status check_event(const kjit_event *event, bool waits, kj_diagnostics *diagnostics)
{
  if (!event->is_recorded)
    return kj_error(diagnostics, KJIT_ERROR_MISUSE, "the event was never recorded");
  if (event->capture && waits)
    return kj_error(
      diagnostics, KJIT_ERROR_MISUSE,
      "the event was recorded in a capture, so it only happens when the graph is launched");
  return kj_check_object(&event->object, "event", diagnostics);
}

static kjit_status synchronize(kjit_event *event, kj_diagnostics *diagnostics)
{
  kjit_device *device = event->object.device;
  KJ_TRY(check_event(event, true, diagnostics));
  return device->operations->synchronize_event(device, event->native, diagnostics);
}

kjit_status kjit_synchronize_event(kjit_event *event)
{
  if (!event) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(event->object.device->context)) return KJIT_ERROR_FORKED;
  kj_diagnostics diagnostics = { 0 };
  (void)synchronize(event, &diagnostics);
  kj_deliver_lines(event->object.device);
  return ki_finish_call(event->object.device->context, &diagnostics);
}

kjit_status kjit_query_event(kjit_event *event)
{
  if (!event) return KJIT_ERROR_MISUSE;
  kjit_device *device = event->object.device;
  if (ki_is_forked(device->context)) return KJIT_ERROR_FORKED;
  kj_diagnostics diagnostics = { 0 };
  kjit_status status = check_event(event, true, &diagnostics);
  if (status == KJIT_OK)
    status = device->operations->query_event(device, event->native, &diagnostics);
  return status == KJIT_NOT_READY ? status : ki_finish_call(device->context, &diagnostics);
}

/* Makes a stream wait for an event, which may belong to another device. If that device is of
 * another kind (CPU or GPU), the host waits instead. */
static kjit_status wait_event(kjit_stream *stream, kjit_event *event, kj_diagnostics *diagnostics)
{
  kjit_device *device = stream ? stream->object.device : event->object.device;
  KJ_TRY(check_event(event, false, diagnostics));
  KJ_TRY(kj_check_stream(device, stream, false, diagnostics));
  if (event->capture)
    return kj_join_capture(device == event->object.device ? stream : NULL, event, diagnostics);
  return device->operations == event->object.device->operations
           ? device->operations->wait_event(device, kj_native(stream), event->native, diagnostics)
           : synchronize(event, diagnostics);
}

kjit_status kjit_wait_event(kjit_stream *stream, kjit_event *event)
{
  if (!event && !stream) return KJIT_ERROR_MISUSE;
  const kj_object *either = event ? &event->object : &stream->object;
  kjit_context *context = either->device->context;
  if (ki_is_forked(context)) return KJIT_ERROR_FORKED;
  if (!event) return ki_fail_call(context, KJIT_ERROR_MISUSE, "kjit_wait_event: event is NULL");
  if (stream && stream->object.device->context != context)
    return ki_fail_call(context, KJIT_ERROR_ARGUMENT,
                        "kjit_wait_event: the stream and the event belong to different contexts");
  kj_diagnostics diagnostics = { 0 };
  (void)wait_event(stream, event, &diagnostics);
  return ki_finish_call(context, &diagnostics);
}

/* ---- time ---- */

static kjit_status measure(kjit_event *first, kjit_event *last, kj_diagnostics *diagnostics,
                           uint64_t *time_ns)
{
  kjit_device *device = first->object.device;
  if (last->object.device != device)
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT, "the events belong to different devices");
  if (!first->is_recorded)
    return kj_error(diagnostics, KJIT_ERROR_MISUSE, "the first event was never recorded");
  KJ_TRY(check_event(first, true, diagnostics));
  KJ_TRY(synchronize(last, diagnostics));
  return device->operations->read_elapsed(device, first->native, last->native, diagnostics,
                                          time_ns);
}

kjit_status kjit_get_elapsed_time(kjit_event *first, kjit_event *last, uint64_t *time_ns)
{
  if (!first && !last) return KJIT_ERROR_MISUSE;
  kjit_context *context = (first ? first : last)->object.device->context;
  if (ki_is_forked(context)) return KJIT_ERROR_FORKED;
  const char *missing = !first ? "first" : !last ? "last" : !time_ns ? "time_ns" : NULL;
  if (missing)
    return ki_fail_call(context, KJIT_ERROR_MISUSE, "kjit_get_elapsed_time: %s is NULL", missing);
  kj_diagnostics diagnostics = { 0 };
  (void)measure(first, last, &diagnostics, time_ns);
  return ki_finish_call(context, &diagnostics);
}
