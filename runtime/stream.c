/* Streams and events. On the CPU a launch is done when its call returns: a stream has nothing to wait for, an event is a reading of the clock. */
#include <stdlib.h>

#include "runtime.h"

/* Ends in a driver call whose failure nobody can act on: the object is gone either way. */
static void release_native(kj_object *object, int (*release)(void *native), void *native)
{
  kj_diagnostics ignored = { 0 };
  void *previous;
  kjit_device *device = object->device;
  if (native && object->generation == atomic_load(&device->generation) && kj_enter_device(device, &ignored, &previous) == KJIT_OK) {
    release(native);
    kj_leave_device(device, previous);
  }
  kj_free_diagnostics(&ignored);
}

/* ---- streams ---- */

static void destroy_stream(kj_object *object)
{
  kjit_stream *stream = (kjit_stream *)object;
  if (stream->is_owned) release_native(object, object->device->driver->cuStreamDestroy, stream->native);
  free(stream);
}

static kjit_status make_native_stream(kjit_device *device, kj_diagnostics *diagnostics, void **native)
{
  enum { BLOCKING = 0 }; /* ordered with the default stream, which copies and launches without a stream use */
  void *previous;
  KJ_TRY(kj_enter_device(device, diagnostics, &previous));
  kjit_status status = KJ_DRIVER(device, diagnostics, cuStreamCreate, native, BLOCKING);
  kj_leave_device(device, previous);
  return status;
}

kjit_status kjit_create_stream(kjit_device *device, kjit_stream **stream)
{
  if (!device) return KJIT_ERROR_MISUSE;
  if (!stream) return kj_fail_call(device->context, KJIT_ERROR_MISUSE, "kjit_create_stream: stream is NULL");
  kjit_stream *made = calloc(1, sizeof *made);
  if (!made) return kj_fail_call(device->context, KJIT_ERROR_MEMORY, "out of memory");
  kj_diagnostics diagnostics = { 0 };
  if (kj_is_cuda(device) && make_native_stream(device, &diagnostics, &made->native) != KJIT_OK) {
    free(made);
    return kj_finish_call(device->context, &diagnostics);
  }
  made->is_owned = kj_is_cuda(device);
  kj_add_object(device, &made->object, destroy_stream);
  *stream = made;
  return KJIT_OK;
}

kjit_status kjit_wrap_stream(kjit_device *device, void *native, kjit_stream **stream)
{
  if (!device) return KJIT_ERROR_MISUSE;
  if (!stream) return kj_fail_call(device->context, KJIT_ERROR_MISUSE, "kjit_wrap_stream: stream is NULL");
  if (!kj_is_cuda(device)) return kj_fail_call(device->context, KJIT_ERROR_UNSUPPORTED, "kjit_wrap_stream: the CPU has no streams of a host");
  kjit_stream *made = calloc(1, sizeof *made);
  if (!made) return kj_fail_call(device->context, KJIT_ERROR_MEMORY, "out of memory");
  uintptr_t legacy = 1; /* CU_STREAM_LEGACY, another name of the default stream */
  made->native = (uintptr_t)native == legacy ? NULL : native;
  kj_add_object(device, &made->object, destroy_stream);
  *stream = made;
  return KJIT_OK;
}

void kjit_destroy_stream(kjit_stream *stream)
{
  if (!stream) return;
  kj_remove_object(&stream->object);
  destroy_stream(&stream->object);
}

kjit_status kjit_synchronize_stream(kjit_stream *stream)
{
  if (!stream) return KJIT_ERROR_MISUSE;
  kjit_device *device = stream->object.device;
  if (!kj_is_cuda(device)) return KJIT_OK;
  kj_diagnostics diagnostics = { 0 };
  kjit_status status = kj_check_object(&stream->object, "stream", &diagnostics);
  if (status == KJIT_OK) status = kj_synchronize(device, false, stream->native, &diagnostics);
  if (status == KJIT_OK) (void)kj_take_failures(device, &diagnostics);
  return kj_finish_call(device->context, &diagnostics);
}

/* ---- events ---- */

static void destroy_event(kj_object *object)
{
  kjit_event *event = (kjit_event *)object;
  if (event->native) release_native(object, object->device->driver->cuEventDestroy, event->native);
  free(event);
}

static kjit_status make_native_event(kjit_device *device, kj_diagnostics *diagnostics, void **native)
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
  if (!event) return kj_fail_call(device->context, KJIT_ERROR_MISUSE, "kjit_create_event: event is NULL");
  kjit_event *made = calloc(1, sizeof *made);
  if (!made) return kj_fail_call(device->context, KJIT_ERROR_MEMORY, "out of memory");
  kj_diagnostics diagnostics = { 0 };
  if (kj_is_cuda(device) && make_native_event(device, &diagnostics, &made->native) != KJIT_OK) {
    free(made);
    return kj_finish_call(device->context, &diagnostics);
  }
  kj_add_object(device, &made->object, destroy_event);
  *event = made;
  return KJIT_OK;
}

void kjit_destroy_event(kjit_event *event)
{
  if (!event) return;
  kj_remove_object(&event->object);
  destroy_event(&event->object);
}

static kjit_status record(kjit_event *event, kjit_stream *stream, kj_diagnostics *diagnostics)
{
  kjit_device *device = event->object.device;
  if (stream && stream->object.device != device) return kj_error(diagnostics, KJIT_ERROR_ARGUMENT, "the event and the stream belong to different devices");
  if (!kj_is_cuda(device)) {
    event->time_ns = kj_clock_ns();
    return KJIT_OK;
  }
  KJ_TRY(kj_check_object(&event->object, "event", diagnostics));
  if (stream) KJ_TRY(kj_check_object(&stream->object, "stream", diagnostics));
  void *previous;
  KJ_TRY(kj_enter_device(device, diagnostics, &previous));
  kjit_status status = KJ_DRIVER(device, diagnostics, cuEventRecord, event->native, stream ? stream->native : NULL);
  kj_leave_device(device, previous);
  return status;
}

kjit_status kjit_record_event(kjit_event *event, kjit_stream *stream)
{
  if (!event) return KJIT_ERROR_MISUSE;
  kj_diagnostics diagnostics = { 0 };
  if (record(event, stream, &diagnostics) == KJIT_OK) event->is_recorded = true;
  return kj_finish_call(event->object.device->context, &diagnostics);
}

static kjit_status wait_event(kjit_event *event, kj_diagnostics *diagnostics)
{
  kjit_device *device = event->object.device;
  if (!event->is_recorded) return kj_error(diagnostics, KJIT_ERROR_MISUSE, "the event was never recorded");
  if (!kj_is_cuda(device)) return KJIT_OK;
  KJ_TRY(kj_check_object(&event->object, "event", diagnostics));
  void *previous;
  KJ_TRY(kj_enter_device(device, diagnostics, &previous));
  kjit_status status = KJ_DRIVER(device, diagnostics, cuEventSynchronize, event->native);
  kj_leave_device(device, previous);
  return status;
}

kjit_status kjit_synchronize_event(kjit_event *event)
{
  if (!event) return KJIT_ERROR_MISUSE;
  kj_diagnostics diagnostics = { 0 };
  (void)wait_event(event, &diagnostics);
  return kj_finish_call(event->object.device->context, &diagnostics);
}

static kjit_status measure(kjit_event *first, kjit_event *last, kj_diagnostics *diagnostics, uint64_t *time_ns)
{
  kjit_device *device = first->object.device;
  if (last->object.device != device) return kj_error(diagnostics, KJIT_ERROR_ARGUMENT, "the events belong to different devices");
  if (!first->is_recorded) return kj_error(diagnostics, KJIT_ERROR_MISUSE, "the first event was never recorded");
  KJ_TRY(wait_event(last, diagnostics));
  if (!kj_is_cuda(device)) {
    *time_ns = last->time_ns > first->time_ns ? last->time_ns - first->time_ns : 0;
    return KJIT_OK;
  }
  float time_ms = 0;
  void *previous;
  KJ_TRY(kj_check_object(&first->object, "event", diagnostics));
  KJ_TRY(kj_enter_device(device, diagnostics, &previous));
  kjit_status status = KJ_DRIVER(device, diagnostics, cuEventElapsedTime, &time_ms, first->native, last->native);
  kj_leave_device(device, previous);
  if (status == KJIT_OK) *time_ns = time_ms > 0 ? (uint64_t)((double)time_ms * 1e6) : 0;
  return status;
}

kjit_status kjit_get_elapsed_time(kjit_event *first, kjit_event *last, uint64_t *time_ns)
{
  if (!first || !last) return KJIT_ERROR_MISUSE;
  kjit_context *context = first->object.device->context;
  if (!time_ns) return kj_fail_call(context, KJIT_ERROR_MISUSE, "kjit_get_elapsed_time: time_ns is NULL");
  kj_diagnostics diagnostics = { 0 };
  (void)measure(first, last, &diagnostics, time_ns);
  return kj_finish_call(context, &diagnostics);
}
