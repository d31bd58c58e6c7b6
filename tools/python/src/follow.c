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

/* Returns a stream's device, or NULL if the device does not exist; the launch then reports the
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

/* Adds a stream unless the launch follows the same native stream already. Returns the number of
 * added streams, or -1 if out of memory. */
static int add_stream(binding_followed *followed, const binding_follow *added)
{
  binding_follow *items = binding_follows(followed);
  for (int i = 0; i < followed->count; i++)
    if (kjit_get_native_stream(items[i].stream) == kjit_get_native_stream(added->stream)) return 0;
  if (followed->count == followed->capacity) {
    size_t capacity = 2 * (size_t)followed->count;
    items = PyMem_Realloc(followed->more, capacity * sizeof *items);
    if (!items) return -1;
    if (!followed->more) memcpy(items, followed->first, sizeof followed->first);
    followed->more = items;
    followed->capacity = (int)capacity;
  }
  items[followed->count++] = *added;
  return 1;
}

/* Adds an array's stream, and makes the launch's stream wait for it. Returns 0, or -1 with an
 * exception. */
static int follow_producer(context_object *context, binding_producer *producer,
                           binding_followed *followed)
{
  if (producer->library && binding_ask_stream(producer)) return -1;
  binding_follow added = { .device = device_of(context, producer) };
  kjit_status status = follow(context, producer, &added.stream, &added.is_own);
  if (status != KJIT_OK) return binding_finish(context, status);
  int count = add_stream(followed, &added);
  if (count <= 0 && added.is_own) kjit_destroy_stream(added.stream);
  if (count < 0) {
    (void)PyErr_NoMemory();
    return -1;
  }
  if (count && followed->count > 1)
    status = put_in_order(added.stream, binding_follows(followed)->stream, added.device);
  return binding_finish(context, status);
}

int binding_begin_following(context_object *context, const binding_argument *arguments,
                            Py_ssize_t count, kjit_launch_config *config,
                            binding_followed *followed)
{
  const binding_producer *last = NULL;
  followed->count = 0;
  followed->capacity = (int)(sizeof followed->first / sizeof *followed->first);
  followed->more = NULL;
  if (config->stream) return 0;
  for (Py_ssize_t i = 0; i < count; i++) {
    binding_producer producer = arguments[i].producer;
    if (!producer.is_known || (last && are_alike(last, &producer))) continue;
    last = &arguments[i].producer;
    /* the launch's device is not the array's device; the launch reports this error */
    if (config->device && config->device != device_of(context, &producer)) continue;
    if (follow_producer(context, &producer, followed)) {
      (void)binding_end_following(followed);
      return -1;
    }
  }
  if (followed->count) {
    config->stream = binding_follows(followed)->stream;
    config->device = NULL;
  }
  return 0;
}

kjit_status binding_end_following(binding_followed *followed)
{
  kjit_status status = KJIT_OK;
  const binding_follow *items = binding_follows(followed);
  for (int i = 1; i < followed->count; i++) {
    kjit_status one = put_in_order(items->stream, items[i].stream, items->device);
    if (status == KJIT_OK) status = one;
  }
  for (int i = 0; i < followed->count; i++)
    if (items[i].is_own) kjit_destroy_stream(items[i].stream);
  PyMem_Free(followed->more);
  followed->more = NULL;
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
