/* Implements streams and host callbacks. */
#include "stream/stream.h"

#include "base/interrupt.h"

#include <stdlib.h>

kjit_status kj_check_stream(const kjit_device *device, const kjit_stream *stream, bool waits,
                            kj_diagnostics *diagnostics)
{
  char here[24], there[24];
  if (!stream) return KJIT_OK;
  if (stream->object.device->context != device->context)
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT, "the stream belongs to another context");
  if (stream->object.device != device)
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT,
                    "the stream belongs to %s, but the work to queue on it belongs to %s",
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

static void end_stream(kjit_stream *stream)
{
  kj_assert_no_locks();
  kj_abort_capture(stream);
  KJ_ASSERT(!atomic_load(&stream->capture));
  kj_close_interrupt_slot(stream->object.device, atomic_load(&stream->interrupts));
  kj_forget_stream(stream);
  kj_release_stream(stream);
}

/* Called when the context ends; the device's own streams are released only here. */
static void destroy_stream(kj_object *object)
{
  kjit_stream *stream = (kjit_stream *)object;
  KJ_ASSERT(object->is_left && !(stream->is_owned && stream->is_borrowed));
  object->is_left = !stream->is_borrowed;
  end_stream(stream);
}

/* Makes a stream object for a native stream. Its id identifies the device's default stream, or its
 * per-thread default streams if `threads` has their bits; kj_add_stream gives other streams their
 * own id. */
static kjit_stream *make_stream(kjit_device *device, void *native, kj_stream_id threads)
{
  kjit_stream *made = calloc(1, sizeof *made);
  if (!made) return NULL;
  made->native = native;
  made->id = kj_id_of(NULL, device) | threads;
  atomic_store(&made->references, 1);
  made->object.device = device;
  KJ_ASSERT(made->id >> KJ_STREAM_BITS == device->number && !(threads & ~KJ_STREAM_THREADS));
  return made;
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
  if (device->operations->create_stream(device, priority, flags, &diagnostics, &made->native) !=
      KJIT_OK) {
    free(made);
    return ki_finish_call(device->context, &diagnostics);
  }
  made->is_owned = true;
  kj_add_object(device, &made->object, destroy_stream);
  kj_add_stream(made);
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
  int32_t low, high;
  if (device->operations->read_priorities(device, &diagnostics, &low, &high) == KJIT_OK) {
    *least = low;
    *greatest = high;
  }
  return ki_finish_call(device->context, &diagnostics);
}

kjit_status kjit_wrap_stream(kjit_device *device, void *native, kjit_stream **stream)
{
  char place[24];
  if (!device) return KJIT_ERROR_MISUSE;
  const kj_device_operations *operations = device->operations;
  if (ki_is_forked(device->context)) return KJIT_ERROR_FORKED;
  if (!stream)
    return ki_fail_call(device->context, KJIT_ERROR_MISUSE, "kjit_wrap_stream: stream is NULL");
  if (!operations->is_queued)
    return ki_fail_call(
      device->context, KJIT_ERROR_UNSUPPORTED,
      "kjit_wrap_stream: streams of %s cannot be wrapped, because it is not a GPU",
      kj_device_text(device, place));
  uintptr_t name = (uintptr_t)native;
  bool is_default = !name || name == operations->default_stream,
       is_thread = name && name == operations->thread_stream;
  kjit_stream *made =
    make_stream(device, is_default ? NULL : native, is_thread ? KJ_STREAM_THREADS : 0);
  if (!made) return ki_fail_call(device->context, KJIT_ERROR_MEMORY, "out of memory");
  kj_add_object(device, &made->object, destroy_stream);
  if (!is_default) atomic_store(&device->runtime->has_hosts_streams, true);
  kj_diagnostics diagnostics = { 0 };
  kjit_status status = KJIT_OK;
  if (!is_default && !is_thread) {
    kj_add_stream(made);
    status = kj_capture_alias(made, &diagnostics);
  }
  if (status == KJIT_OK) *stream = made;
  else kjit_destroy_stream(made);
  return ki_finish_call(device->context, &diagnostics);
}

/* Returns the device's own stream object, created when first requested. */
static kjit_status get_borrowed(kjit_device *device, kjit_stream **place, void *native,
                                kj_stream_id threads, kjit_stream **stream)
{
  kj_lock(&device->mutex, KJ_LOCK_DEVICE);
  bool is_there = *place && (*place)->object.generation == atomic_load(&device->generation);
  kjit_stream *made = is_there ? *place : make_stream(device, native, threads);
  if (made && !is_there) {
    /* an object of an earlier generation stays in the context's list, because the application may
     * still use it */
    made->is_borrowed = true;
    kj_add_object(device, &made->object, destroy_stream);
    *place = made;
  }
  kj_unlock(&device->mutex, KJ_LOCK_DEVICE);
  if (!made) return ki_fail_call(device->context, KJIT_ERROR_MEMORY, "out of memory");
  *stream = made;
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
  if (!device) return KJIT_ERROR_MISUSE;
  uintptr_t name = device->operations->thread_stream;
  if (ki_is_forked(device->context)) return KJIT_ERROR_FORKED;
  if (!stream)
    return ki_fail_call(device->context, KJIT_ERROR_MISUSE,
                        "kjit_get_thread_stream: stream is NULL");
  if (!name) return kjit_get_default_stream(device, stream);
  atomic_store(&device->runtime->has_hosts_streams, true);
  /* NOLINTNEXTLINE(performance-no-int-to-ptr) */
  return get_borrowed(device, &device->thread_stream, (void *)name, KJ_STREAM_THREADS, stream);
}

void *kjit_get_native_stream(const kjit_stream *stream) { return stream ? stream->native : NULL; }

kjit_context *kjit_get_stream_context(const kjit_stream *stream)
{
  return kj_told_context(stream ? &stream->object : NULL);
}

kjit_device *kjit_get_stream_device(const kjit_stream *stream)
{
  return stream ? stream->object.device : NULL;
}

void kjit_destroy_stream(kjit_stream *stream)
{
  if (stream && !stream->is_borrowed && kj_take_object(&stream->object)) end_stream(stream);
}

/* ---- waits and queries ---- */

kjit_status kjit_synchronize_stream(kjit_stream *stream)
{
  if (!stream) return KJIT_ERROR_MISUSE;
  kjit_device *device = stream->object.device;
  if (ki_is_forked(device->context)) return KJIT_ERROR_FORKED;
  kj_diagnostics diagnostics = { 0 };
  kjit_status status = kj_check_stream(device, stream, true, &diagnostics);
  if (status == KJIT_OK) status = kj_synchronize(device, false, stream->native, &diagnostics);
  if (status == KJIT_OK) (void)kj_report_kernels(device, &diagnostics);
  else kj_deliver_lines(device);
  return ki_finish_call(device->context, &diagnostics);
}

kjit_status kjit_query_stream(kjit_stream *stream)
{
  if (!stream) return KJIT_ERROR_MISUSE;
  kjit_device *device = stream->object.device;
  if (ki_is_forked(device->context)) return KJIT_ERROR_FORKED;
  kj_diagnostics diagnostics = { 0 };
  kjit_status status = kj_check_stream(device, stream, true, &diagnostics);
  if (status == KJIT_OK)
    status = device->operations->query_stream(device, stream->native, &diagnostics);
  return status == KJIT_NOT_READY ? status : ki_finish_call(device->context, &diagnostics);
}

/* ---- host callbacks ---- */

typedef struct host_callback {
  kj_operation operation;
  const kjit_context *context;
  void (*function)(void *user);
  void *user;
} host_callback;

static kjit_status run_callback(kj_operation *operation, kjit_stream *stream)
{
  (void)stream;
  host_callback *callback = (host_callback *)operation;
  kj_assert_no_locks();
  ki_host_code code;
  ki_enter_host(&code, callback->context);
  callback->function(callback->user);
  ki_leave_host(&code);
  return KJIT_OK;
}

static void free_callback(kj_operation *operation) { free(operation); }

static kjit_status record_callback(kjit_stream *stream, void (*function)(void *user), void *user,
                                   kj_diagnostics *diagnostics)
{
  host_callback *callback = calloc(1, sizeof *callback);
  if (!callback) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  *callback = (host_callback){ .operation = { .run = run_callback, .destroy = free_callback },
                               .context = stream->object.device->context,
                               .function = function,
                               .user = user };
  return kj_record_operation(stream, &callback->operation, diagnostics);
}

static kjit_status queue_callback(kjit_device *device, kjit_stream *stream,
                                  void (*function)(void *user), void *user,
                                  kj_diagnostics *diagnostics)
{
  KJ_TRY(kj_check_stream(device, stream, false, diagnostics));
  return kj_is_recorded(stream)
           ? record_callback(stream, function, user, diagnostics)
           : device->operations->call_host(device, kj_native(stream), function, user, diagnostics);
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
