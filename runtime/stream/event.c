/* Events. On the CPU they are readings of the clock. */
#include <stdlib.h>

#include "stream/stream.h"

static void destroy_event(kj_object *object)
{
  kjit_event *event = (kjit_event *)object;
  if (event->native && !event->is_wrapped)
    kj_release_native(object, object->device->driver->cuEventDestroy, event->native);
  free(event);
}

static kjit_status make_native_event(kjit_device *device, kj_diagnostics *diagnostics,
                                     void **native)
{
  enum { WITH_TIMING = 0 };
  void *previous;
  KJ_TRY(kj_enter_device(device, diagnostics, &previous));
  kjit_status status = KJ_DRIVER(device, diagnostics, cuEventCreate, native, WITH_TIMING);
  kj_leave_device(device, previous);
  return status;
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
  if (kj_is_cuda(device) && make_native_event(device, &diagnostics, &made->native) != KJIT_OK) {
    free(made);
    return ki_finish_call(device->context, &diagnostics);
  }
  kj_add_object(device, &made->object, destroy_event);
  *event = made;
  return KJIT_OK;
}

kjit_status kjit_wrap_event(kjit_device *device, void *native, kjit_event **event)
{
  if (!device) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(device->context)) return KJIT_ERROR_FORKED;
  if (!event || !native)
    return ki_fail_call(device->context, KJIT_ERROR_MISUSE, "kjit_wrap_event: %s is NULL",
                        event ? "native" : "event");
  if (!kj_is_cuda(device))
    return ki_fail_call(device->context, KJIT_ERROR_UNSUPPORTED,
                        "kjit_wrap_event: the CPU has no events of a host");
  kjit_event *made = calloc(1, sizeof *made);
  if (!made) return ki_fail_call(device->context, KJIT_ERROR_MEMORY, "out of memory");
  made->native = native;
  made->is_wrapped = made->is_recorded = true;
  kj_add_object(device, &made->object, destroy_event);
  *event = made;
  return KJIT_OK;
}

void *kjit_get_native_event(const kjit_event *event) { return event ? event->native : NULL; }

void kjit_destroy_event(kjit_event *event)
{
  if (!event || ki_is_forked(event->object.device->context)) return;
  kj_remove_object(&event->object);
  destroy_event(&event->object);
}

/* ---- recording and waiting ---- */

/* A reading of the clock is nothing that a graph repeats: events in a capture order its streams and
 * do no more, on the CPU as on a GPU. */
static kjit_status record(kjit_event *event, kjit_stream *stream, kj_diagnostics *diagnostics)
{
  kjit_device *device = event->object.device;
  KJ_TRY(kj_check_stream(device, stream, false, diagnostics));
  if (!kj_is_cuda(device)) {
    event->time_ns = kj_clock_ns();
    return KJIT_OK;
  }
  KJ_TRY(kj_check_object(&event->object, "event", diagnostics));
  void *previous;
  KJ_TRY(kj_enter_device(device, diagnostics, &previous));
  kjit_status status =
    KJ_DRIVER(device, diagnostics, cuEventRecord, event->native, kj_native(stream));
  kj_leave_device(device, previous);
  return status;
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
    return kj_error(diagnostics, KJIT_ERROR_MISUSE,
                    "the event was recorded in a capture: it never happens by itself");
  return kj_check_object(&event->object, "event", diagnostics);
}

static kjit_status synchronize(kjit_event *event, kj_diagnostics *diagnostics)
{
  kjit_device *device = event->object.device;
  KJ_TRY(check_event(event, true, diagnostics));
  if (!kj_is_cuda(device)) return KJIT_OK;
  void *previous;
  KJ_TRY(kj_enter_device(device, diagnostics, &previous));
  kjit_status status = KJ_DRIVER(device, diagnostics, cuEventSynchronize, event->native);
  kj_leave_device(device, previous);
  return status;
}

kjit_status kjit_synchronize_event(kjit_event *event)
{
  if (!event) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(event->object.device->context)) return KJIT_ERROR_FORKED;
  kj_diagnostics diagnostics = { 0 };
  (void)synchronize(event, &diagnostics);
  return ki_finish_call(event->object.device->context, &diagnostics);
}

kjit_status kjit_query_event(kjit_event *event)
{
  enum { NOT_READY = 600 };
  if (!event) return KJIT_ERROR_MISUSE;
  kjit_device *device = event->object.device;
  if (ki_is_forked(device->context)) return KJIT_ERROR_FORKED;
  kj_diagnostics diagnostics = { 0 };
  void *previous;
  int result = 0;
  kjit_status status = check_event(event, true, &diagnostics);
  if (status == KJIT_OK && kj_is_cuda(device) &&
      kj_enter_device(device, &diagnostics, &previous) == KJIT_OK) {
    result = device->driver->cuEventQuery(event->native);
    if (result != NOT_READY)
      (void)kj_check_driver(device->driver, device, result, "cuEventQuery", &diagnostics);
    kj_leave_device(device, previous);
  }
  return result == NOT_READY ? KJIT_NOT_READY : ki_finish_call(device->context, &diagnostics);
}

/* Only the context of the stream's own device need be current. */
static kjit_status wait_native(kjit_stream *stream, kjit_event *event, kj_diagnostics *diagnostics)
{
  kjit_device *device = stream ? stream->object.device : event->object.device;
  void *previous;
  KJ_TRY(kj_enter_device(device, diagnostics, &previous));
  kjit_status status =
    KJ_DRIVER(device, diagnostics, cuStreamWaitEvent, kj_native(stream), event->native, 0);
  kj_leave_device(device, previous);
  return status;
}

/* What a stream of the CPU has to do is done. */
static kjit_status join_on_cpu(kjit_stream *stream, kjit_event *event, kj_diagnostics *diagnostics)
{
  (void)stream, (void)event, (void)diagnostics;
  return KJIT_OK;
}

/* The stream may be another GPU's. For a stream of the CPU the host waits in its place. */
static kjit_status wait_event(kjit_stream *stream, kjit_event *event, kj_diagnostics *diagnostics)
{
  kjit_device *device = stream ? stream->object.device : event->object.device;
  bool are_gpus = kj_is_cuda(device) && kj_is_cuda(event->object.device);
  KJ_TRY(check_event(event, false, diagnostics));
  KJ_TRY(kj_check_stream(device, stream, false, diagnostics));
  if (!event->capture)
    return are_gpus ? wait_native(stream, event, diagnostics) : synchronize(event, diagnostics);
  if (stream && device != event->object.device) stream = NULL;
  return kj_join_capture(stream, event, are_gpus ? wait_native : join_on_cpu, diagnostics);
}

kjit_status kjit_wait_event(kjit_stream *stream, kjit_event *event)
{
  if (!event) return KJIT_ERROR_MISUSE;
  kjit_context *context = event->object.device->context;
  if (ki_is_forked(context)) return KJIT_ERROR_FORKED;
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
  if (!kj_is_cuda(device)) {
    *time_ns = last->time_ns > first->time_ns ? last->time_ns - first->time_ns : 0;
    return KJIT_OK;
  }
  float time_ms = 0;
  void *previous;
  KJ_TRY(kj_enter_device(device, diagnostics, &previous));
  kjit_status status =
    KJ_DRIVER(device, diagnostics, cuEventElapsedTime, &time_ms, first->native, last->native);
  kj_leave_device(device, previous);
  if (status == KJIT_OK) *time_ns = time_ms > 0 ? (uint64_t)((double)time_ms * 1e6) : 0;
  return status;
}

kjit_status kjit_get_elapsed_time(kjit_event *first, kjit_event *last, uint64_t *time_ns)
{
  if (!first || !last) return KJIT_ERROR_MISUSE;
  kjit_context *context = first->object.device->context;
  if (ki_is_forked(context)) return KJIT_ERROR_FORKED;
  if (!time_ns)
    return ki_fail_call(context, KJIT_ERROR_MISUSE, "kjit_get_elapsed_time: time_ns is NULL");
  kj_diagnostics diagnostics = { 0 };
  (void)measure(first, last, &diagnostics, time_ns);
  return ki_finish_call(context, &diagnostics);
}
