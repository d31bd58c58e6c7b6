/* Orders launches with other libraries. A launch runs on, or waits for, the streams on which these
 * libraries use its arrays. */
#include "binding.h"

/* Returns a wrapped stream from the cache, or wraps the stream and caches the wrapper if the
 * library never destroys its streams. */
static kjit_status follow(context_object *context, const binding_producer *producer,
                          kjit_stream **stream, int *is_own)
{
  kjit_device *device;
  kjit_status status =
    kjit_get_device(context->context, KJIT_DEVICE_CUDA, producer->device, &device);
  if (status != KJIT_OK) return status;
  for (int i = 0; i < context->wrap_count; i++)
    if (context->wraps[i].handle == producer->handle && context->wraps[i].device == device) {
      *stream = context->wraps[i].stream, *is_own = 0;
      return KJIT_OK;
    }
  status = binding_open_handle(device, producer->handle, stream, is_own);
  if (status == KJIT_OK && *is_own && producer->lives_on &&
      context->wrap_count < BINDING_MOST_WRAPS) {
    context->wraps[context->wrap_count++] = (binding_wrap){ producer->handle, device, *stream };
    *is_own = 0;
  }
  return status;
}

/* Orders all work queued on `first` so far before future work of `later`. */
static kjit_status put_in_order(kjit_stream *first, kjit_stream *later, kjit_device *device)
{
  kjit_event *event = NULL;
  kjit_status status = kjit_create_event(device, &event);
  if (status == KJIT_OK) status = kjit_record_event(event, first);
  if (status == KJIT_OK) status = kjit_wait_event(later, event);
  kjit_destroy_event(event);
  return status;
}

/* Returns the device of a stream, or NULL if the device does not exist; the launch then reports the
 * error. */
static kjit_device *device_of(context_object *context, const binding_producer *producer)
{
  kjit_device *device = NULL;
  kjit_status status =
    kjit_get_device(context->context, KJIT_DEVICE_CUDA, producer->device, &device);
  return status == KJIT_OK ? device : NULL;
}

/* Returns whether two arrays of one launch certainly have the same stream. */
static int are_alike(const binding_producer *a, const binding_producer *b)
{
  return a->device == b->device && a->library == b->library &&
         (a->library || a->handle == b->handle);
}

int binding_begin_following(context_object *context, const binding_argument *arguments,
                            Py_ssize_t count, kjit_launch_config *config,
                            binding_followed *followed)
{
  const binding_producer *last = NULL;
  followed->count = 0;
  if (config->stream) return 0;
  for (Py_ssize_t i = 0; i < count; i++) {
    binding_producer asked = arguments[i].producer, *producer = &asked;
    if (!producer->is_known || (last && are_alike(last, producer))) continue;
    last = &arguments[i].producer;
    /* the launch's device is not the array's device; the launch reports this error */
    if (config->device && config->device != device_of(context, producer)) continue;
    if (producer->library && binding_ask_stream(producer)) {
      (void)binding_end_following(followed);
      return -1;
    }
    kjit_stream *stream = NULL;
    int is_own = 0, is_known = 0;
    kjit_status status = follow(context, producer, &stream, &is_own);
    for (int k = 0; status == KJIT_OK && k < followed->count; k++)
      is_known |= followed->streams[k] == stream ||
                  (kjit_get_native_stream(stream) == kjit_get_native_stream(followed->streams[k]));
    if (status == KJIT_OK && (is_known || followed->count == 4)) {
      if (is_own) kjit_destroy_stream(stream);
      continue;
    }
    if (status == KJIT_OK) {
      followed->streams[followed->count] = stream;
      followed->devices[followed->count] = device_of(context, producer);
      followed->is_own[followed->count++] = is_own;
      if (followed->count > 1)
        status = put_in_order(stream, followed->streams[0], device_of(context, producer));
    }
    if (binding_finish(context, status)) {
      (void)binding_end_following(followed);
      return -1;
    }
  }
  if (followed->count) {
    config->stream = followed->streams[0];
    config->device = NULL;
  }
  return 0;
}

kjit_status binding_end_following(binding_followed *followed)
{
  kjit_status status = KJIT_OK;
  for (int i = 1; i < followed->count; i++) {
    kjit_status one =
      put_in_order(followed->streams[0], followed->streams[i], followed->devices[0]);
    if (status == KJIT_OK) status = one;
  }
  for (int i = 0; i < followed->count; i++)
    if (followed->is_own[i]) kjit_destroy_stream(followed->streams[i]);
  followed->count = 0;
  return status;
}

void binding_free_wraps(context_object *context)
{
  for (int i = 0; i < context->wrap_count; i++) kjit_destroy_stream(context->wraps[i].stream);
  context->wrap_count = 0;
}

int binding_wait_for_peers(context_object *context, const binding_argument *arguments,
                           Py_ssize_t count, const kjit_device *device)
{
  int waits = 0;
  for (Py_ssize_t i = 0; i < count; i++) {
    binding_producer asked = arguments[i].producer, *producer = &asked;
    if (!producer->is_known || device_of(context, producer) == device) continue;
    if (producer->library && binding_ask_stream(producer)) return -1;
    kjit_stream *theirs = NULL;
    int is_own = 0;
    kjit_status status = follow(context, producer, &theirs, &is_own);
    if (status == KJIT_OK) BINDING_UNLOCKED(context, status = kjit_synchronize_stream(theirs));
    if (is_own) kjit_destroy_stream(theirs);
    if (binding_finish(context, status)) return -1;
    waits++;
  }
  return waits;
}

int binding_wait_for_producers(context_object *context, const binding_argument *arguments,
                               Py_ssize_t count, kjit_stream *stream)
{
  const binding_producer *last = NULL;
  for (Py_ssize_t i = 0; i < count; i++) {
    binding_producer asked = arguments[i].producer, *producer = &asked;
    if (!producer->is_known || (last && are_alike(last, producer))) continue;
    last = &arguments[i].producer;
    if (producer->library && binding_ask_stream(producer)) return -1;
    kjit_device *device = device_of(context, producer);
    if (!device) continue;
    kjit_stream *theirs = NULL;
    int is_own = 0;
    kjit_status status = follow(context, producer, &theirs, &is_own);
    if (status == KJIT_OK && kjit_get_native_stream(theirs) != kjit_get_native_stream(stream))
      status = put_in_order(theirs, stream, device);
    if (is_own) kjit_destroy_stream(theirs);
    if (binding_finish(context, status)) return -1;
  }
  return 0;
}
