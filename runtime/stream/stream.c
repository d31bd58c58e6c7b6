/* Streams. On the CPU a launch is done when its call returns: a stream has nothing to wait for. */
#include "cuda/cuda.h"
#include "stream/stream.h"

#include <stdlib.h>

void kj_release_native(kj_object *object, int (*release)(void *native), void *native)
{
  kj_diagnostics ignored = { 0 };
  void *previous;
  kjit_device *device = object->device;
  if (native && object->generation == atomic_load(&device->generation) &&
      kj_enter_device(device, &ignored, &previous) == KJIT_OK) {
    release(native);
    kj_leave_device(device, previous);
  }
  kj_free_diagnostics(&ignored);
}

kjit_status kj_check_stream(const kjit_device *device, const kjit_stream *stream, bool waits,
                            kj_diagnostics *diagnostics)
{
  char here[24], there[24];
  if (!stream) return KJIT_OK;
  if (stream->object.device->context != device->context)
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT, "the stream belongs to another context");
  if (stream->object.device != device)
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT,
                    "the stream belongs to %s, what is queued on it to %s",
                    kj_device_text(stream->object.device, there), kj_device_text(device, here));
  KJ_TRY(kj_check_object(&stream->object, "stream", diagnostics));
  bool is_captured = false;
  if (waits) KJ_TRY(kj_ask_capture(stream, diagnostics, &is_captured));
  if (is_captured)
    return kj_error(
      diagnostics, KJIT_ERROR_MISUSE,
      "the stream is being captured: nothing can wait for it before kjit_end_capture");
  return KJIT_OK;
}

/* ---- creation and end ---- */

static void end_stream(kjit_stream *stream, bool forget)
{
  kj_abort_capture(stream, forget);
  kj_forget_stream(stream);
  kj_release_stream(stream);
}

/* The context's end. */
static void destroy_stream(kj_object *object) { end_stream((kjit_stream *)object, true); }

/* Of a default stream: id has the number of its device. */
static kjit_stream *make_stream(kjit_device *device, void *native, kj_stream_id threads)
{
  kjit_stream *made = calloc(1, sizeof *made);
  if (!made) return NULL;
  made->native = native;
  made->id = kj_id_of(NULL, device) | threads;
  atomic_store(&made->references, 1);
  made->object.device = device;
  return made;
}

static void publish_stream(kjit_stream *stream)
{
  kj_add_object(stream->object.device, &stream->object, destroy_stream);
  if (!stream->is_borrowed && stream->native) kj_add_stream(stream);
}

static kjit_status make_native(kjit_device *device, int32_t priority, uint32_t flags,
                               kj_diagnostics *diagnostics, void **native)
{
  void *previous;
  int least = 0, greatest = 0;
  KJ_TRY(kj_enter_device(device, diagnostics, &previous));
  kjit_status status =
    priority ? KJ_DRIVER(device, diagnostics, cuCtxGetStreamPriorityRange, &least, &greatest)
             : KJIT_OK;
  int nearest = priority < greatest ? greatest : priority > least ? least : priority;
  if (status == KJIT_OK && nearest)
    status = KJ_DRIVER(device, diagnostics, cuStreamCreateWithPriority, native, flags, nearest);
  else if (status == KJIT_OK)
    status = KJ_DRIVER(device, diagnostics, cuStreamCreate, native, flags);
  kj_leave_device(device, previous);
  return status;
}

kjit_status kjit_create_stream_with(kjit_device *device, int32_t priority, uint32_t flags,
                                    kjit_stream **stream)
{
  if (!device) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(device->context)) return KJIT_ERROR_FORKED;
  if (!stream)
    return ki_fail_call(device->context, KJIT_ERROR_MISUSE, "kjit_create_stream: stream is NULL");
  if (flags & ~(uint32_t)KJIT_STREAM_NON_BLOCKING)
    return ki_fail_call(device->context, KJIT_ERROR_MISUSE,
                        "kjit_create_stream_with: unknown flags %#x", flags);
  kjit_stream *made = make_stream(device, NULL, 0);
  if (!made) return ki_fail_call(device->context, KJIT_ERROR_MEMORY, "out of memory");
  kj_diagnostics diagnostics = { 0 };
  if (kj_is_cuda(device) &&
      make_native(device, priority, flags, &diagnostics, &made->native) != KJIT_OK) {
    free(made);
    return ki_finish_call(device->context, &diagnostics);
  }
  made->is_owned = kj_is_cuda(device);
  publish_stream(made);
  *stream = made;
  return KJIT_OK;
}

kjit_status kjit_create_stream(kjit_device *device, kjit_stream **stream)
{
  return kjit_create_stream_with(device, 0, 0, stream);
}

kjit_status kjit_get_stream_priorities(kjit_device *device, int32_t *least, int32_t *greatest)
{
  if (!device) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(device->context)) return KJIT_ERROR_FORKED;
  if (!least || !greatest)
    return ki_fail_call(device->context, KJIT_ERROR_MISUSE,
                        "kjit_get_stream_priorities: %s is NULL", least ? "greatest" : "least");
  kj_diagnostics diagnostics = { 0 };
  int low = 0, high = 0;
  void *previous;
  if (kj_is_cuda(device) && kj_enter_device(device, &diagnostics, &previous) == KJIT_OK) {
    (void)KJ_DRIVER(device, &diagnostics, cuCtxGetStreamPriorityRange, &low, &high);
    kj_leave_device(device, previous);
  }
  if (!diagnostics.count) {
    *least = low;
    *greatest = high;
  }
  return ki_finish_call(device->context, &diagnostics);
}

kjit_status kjit_wrap_stream(kjit_device *device, void *native, kjit_stream **stream)
{
  if (!device) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(device->context)) return KJIT_ERROR_FORKED;
  if (!stream)
    return ki_fail_call(device->context, KJIT_ERROR_MISUSE, "kjit_wrap_stream: stream is NULL");
  if (!kj_is_cuda(device))
    return ki_fail_call(device->context, KJIT_ERROR_UNSUPPORTED,
                        "kjit_wrap_stream: the CPU has no streams of a host");
  uintptr_t legacy = 1, per_thread = 2; /* CU_STREAM_LEGACY is another name of the default stream */
  bool is_default = (uintptr_t)native <= legacy, is_thread = (uintptr_t)native == per_thread;
  kjit_stream *made =
    make_stream(device, is_default ? NULL : native, is_thread ? KJ_STREAM_THREADS : 0);
  if (!made) return ki_fail_call(device->context, KJIT_ERROR_MEMORY, "out of memory");
  kj_add_object(device, &made->object, destroy_stream);
  if (!is_default && !is_thread) kj_add_stream(made);
  *stream = made;
  return KJIT_OK;
}

/* The device's own objects, made when first asked for. */
static kjit_status get_borrowed(kjit_device *device, kjit_stream **place, void *native,
                                kj_stream_id threads, kjit_stream **stream)
{
  kjit_stream *made = make_stream(device, native, threads);
  if (!made) return ki_fail_call(device->context, KJIT_ERROR_MEMORY, "out of memory");
  made->is_borrowed = true;
  kj_lock(&device->mutex, KJ_LOCK_DEVICE);
  bool is_new = !*place || (*place)->object.generation != atomic_load(&device->generation);
  if (is_new) {
    /* one of an earlier generation stays with the context's objects: a host may hold it */
    publish_stream(made);
    *place = made;
  } else {
    free(made);
  }
  *stream = *place;
  kj_unlock(&device->mutex, KJ_LOCK_DEVICE);
  return KJIT_OK;
}

kjit_status kjit_get_default_stream(kjit_device *device, kjit_stream **stream)
{
  if (!device) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(device->context)) return KJIT_ERROR_FORKED;
  if (!stream)
    return ki_fail_call(device->context, KJIT_ERROR_MISUSE,
                        "kjit_get_default_stream: stream is NULL");
  return get_borrowed(device, &device->default_stream, NULL, 0, stream);
}

kjit_status kjit_get_thread_stream(kjit_device *device, kjit_stream **stream)
{
  static const uintptr_t per_thread = 2; /* CU_STREAM_PER_THREAD */
  if (!device) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(device->context)) return KJIT_ERROR_FORKED;
  if (!stream)
    return ki_fail_call(device->context, KJIT_ERROR_MISUSE,
                        "kjit_get_thread_stream: stream is NULL");
  if (!kj_is_cuda(device)) return kjit_get_default_stream(device, stream);
  /* NOLINT(performance-no-int-to-ptr) */
  return get_borrowed(device, &device->thread_stream, (void *)per_thread, KJ_STREAM_THREADS,
                      stream);
}

void *kjit_get_native_stream(const kjit_stream *stream) { return stream ? stream->native : NULL; }

void kjit_destroy_stream(kjit_stream *stream)
{
  if (!stream || stream->is_borrowed || ki_is_forked(stream->object.device->context)) return;
  kj_remove_object(&stream->object);
  end_stream(stream, false);
}

/* ---- waiting and asking ---- */

kjit_status kjit_synchronize_stream(kjit_stream *stream)
{
  if (!stream) return KJIT_ERROR_MISUSE;
  kjit_device *device = stream->object.device;
  if (ki_is_forked(device->context)) return KJIT_ERROR_FORKED;
  kj_diagnostics diagnostics = { 0 };
  kjit_status status = kj_check_stream(device, stream, true, &diagnostics);
  if (status == KJIT_OK && kj_is_cuda(device))
    status = kj_synchronize(device, false, stream->native, &diagnostics);
  if (status == KJIT_OK) (void)kj_report_kernels(device, &diagnostics);
  else kj_deliver_lines(device);
  return ki_finish_call(device->context, &diagnostics);
}

kjit_status kjit_query_stream(kjit_stream *stream)
{
  enum { NOT_READY = 600 };
  if (!stream) return KJIT_ERROR_MISUSE;
  kjit_device *device = stream->object.device;
  if (ki_is_forked(device->context)) return KJIT_ERROR_FORKED;
  kj_diagnostics diagnostics = { 0 };
  void *previous;
  int result = 0;
  kjit_status status = kj_check_stream(device, stream, true, &diagnostics);
  if (status == KJIT_OK && kj_is_cuda(device) &&
      kj_enter_device(device, &diagnostics, &previous) == KJIT_OK) {
    result = device->driver->cuStreamQuery(stream->native);
    if (result != NOT_READY)
      (void)kj_check_driver(device->driver, device, result, "cuStreamQuery", &diagnostics);
    kj_leave_device(device, previous);
  }
  return result == NOT_READY ? KJIT_NOT_READY : ki_finish_call(device->context, &diagnostics);
}

/* ---- host callbacks ---- */

typedef struct host_callback {
  kj_operation operation;
  void (*function)(void *user);
  void *user;
} host_callback;

static kjit_status run_callback(kj_operation *operation, kjit_stream *stream)
{
  (void)stream;
  host_callback *callback = (host_callback *)operation;
  callback->function(callback->user);
  return KJIT_OK;
}

static void free_callback(kj_operation *operation) { free(operation); }

static kjit_status record_callback(kjit_stream *stream, void (*function)(void *user), void *user,
                                   kj_diagnostics *diagnostics)
{
  host_callback *callback = calloc(1, sizeof *callback);
  if (!callback) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  *callback = (host_callback){ .operation = { .run = run_callback, .destroy = free_callback },
                               .function = function,
                               .user = user };
  return kj_record_operation(stream, &callback->operation, diagnostics);
}

static kjit_status queue_callback(kjit_device *device, kjit_stream *stream,
                                  void (*function)(void *user), void *user,
                                  kj_diagnostics *diagnostics)
{
  KJ_TRY(kj_check_stream(device, stream, false, diagnostics));
  if (!kj_is_cuda(device)) {
    if (stream && atomic_load(&stream->capture))
      return record_callback(stream, function, user, diagnostics);
    kj_assert_no_locks();
    function(user);
    return KJIT_OK;
  }
  void *previous;
  KJ_TRY(kj_enter_device(device, diagnostics, &previous));
  kjit_status status =
    KJ_DRIVER(device, diagnostics, cuLaunchHostFunc, kj_native(stream), function, user);
  kj_leave_device(device, previous);
  return status;
}

kjit_status kjit_add_host_callback(kjit_device *device, kjit_stream *stream,
                                   void (*function)(void *user), void *user)
{
  if (!device) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(device->context)) return KJIT_ERROR_FORKED;
  if (!function)
    return ki_fail_call(device->context, KJIT_ERROR_MISUSE,
                        "kjit_add_host_callback: function is NULL");
  kj_diagnostics diagnostics = { 0 };
  (void)queue_callback(device, stream, function, user, &diagnostics);
  return ki_finish_call(device->context, &diagnostics);
}
