/* Orders streams. If several streams have used memory, this file lets streams wait for each other,
 * so that a single stream can use the memory again or free it.
 * docs/architecture/memory-and-streams.md explains why these waits are sufficient. */
#include "memory/order.h"

#include <stdlib.h>

/* ---- completed work ---- */

/* Returns the next device after `device` that queues its work. If device is NULL, returns the first
 * such device. */
static kjit_device *next_device(kj_runtime *runtime, const kjit_device *device)
{
  bool is_next = !device;
  for (uint32_t i = 0; i < runtime->kind_count; i++) {
    const kj_kind *kind = &runtime->kinds[i];
    bool is_open = atomic_load_explicit(&kind->is_open, memory_order_acquire);
    for (uint32_t j = 0; is_open && j < kind->count; j++) {
      kjit_device *at = atomic_load_explicit(&kind->devices[j], memory_order_acquire);
      if (is_next && at && at->memory) return at;
      is_next = is_next || at == device;
    }
  }
  return NULL;
}

static kjit_device *device_of(kj_runtime *runtime, kj_stream_id stream)
{
  kjit_device *device = next_device(runtime, NULL);
  while (device && device->number != stream >> KJ_STREAM_BITS)
    device = next_device(runtime, device);
  return device;
}

static void take_out(kj_last_use *use, uint32_t i)
{
  KJ_ASSERT(i < KJ_MOST_USES && kj_read_use(use, i));
  for (; i < KJ_MOST_USES; i++)
    atomic_store_explicit(&use->streams[i], i + 1 < KJ_MOST_USES ? kj_read_use(use, i + 1) : 0,
                          memory_order_relaxed);
}

void kj_note_waited(kj_last_use *use, kj_waited waited)
{
  if (!waited.stream) return; /* a failed wait proves nothing */
  for (uint32_t i = KJ_MOST_USES; i-- > 0;)
    if (kj_read_use(use, i) == waited.stream) take_out(use, i);
}

kj_waited kj_passed_in_order(kj_stream_id stream) { return (kj_waited){ stream }; }

static bool has_waited(const kjit_device *device, uint64_t stamp)
{
  return stamp <= atomic_load(&device->memory->waited);
}

static bool has_passed_since(kj_runtime *runtime, kj_stream_id stream, uint64_t stamp)
{
  const kjit_device *device = NULL;
  if (stream != KJ_STREAM_ALL)
    return !(device = device_of(runtime, stream)) || has_waited(device, stamp);
  while ((device = next_device(runtime, device)))
    if (!has_waited(device, stamp)) return false;
  return true;
}

void kj_note_passed(kj_runtime *runtime, kj_last_use *use, uint64_t stamp)
{
  for (uint32_t i = KJ_MOST_USES; i-- > 0;)
    if (kj_read_use(use, i) && has_passed_since(runtime, kj_read_use(use, i), stamp))
      take_out(use, i);
}

void kj_note_wait(kjit_device *device, uint64_t number)
{
  _Atomic uint64_t *waited = &device->memory->waited;
  KJ_ASSERT(number && number < atomic_load(&device->runtime->waits));
  uint64_t known = atomic_load(waited);
  while (known < number && !atomic_compare_exchange_weak(waited, &known, number)) {}
}

kjit_status kj_wait_stream(kjit_device *device, kjit_stream *stream, kj_diagnostics *diagnostics,
                           kj_waited *waited)
{
  waited->stream = KJ_STREAM_NONE;
  KJ_TRY(kj_synchronize(device, false, kj_native(stream), diagnostics));
  waited->stream = kj_id_of(stream, device);
  return KJIT_OK;
}

/* ---- streams ---- */

static void lock(kj_runtime *runtime) { kj_lock(&runtime->streams_mutex, KJ_LOCK_STREAMS); }
static void unlock(kj_runtime *runtime) { kj_unlock(&runtime->streams_mutex, KJ_LOCK_STREAMS); }

void kj_add_stream(kjit_stream *stream)
{
  kjit_device *device = stream->object.device;
  struct kj_memory *memory = device->memory;
  kj_note_alive(stream);
  if (!memory) return;              /* memory of the CPU has no streams to wait for */
  KJ_ASSERT(kj_is_default(stream)); /* the stream has no number yet */
  lock(device->runtime);
  stream->id = ((kj_stream_id)device->number << KJ_STREAM_BITS) + ++memory->stream_count;
  KJ_ASSERT(!(stream->id & KJ_STREAM_THREADS)); /* the bit above the stream numbers */
  stream->next_of_device = memory->streams;
  memory->streams = stream;
  unlock(device->runtime);
}

/* Returns whether the stream was created before a reset of its device. The driver does not know
 * such a stream any more. */
static bool is_stale(const kjit_stream *stream)
{
  return stream->object.generation != atomic_load(&stream->object.device->generation);
}

/* For assertions: returns whether this thread holds streams_mutex. */
static bool is_locked(const kj_runtime *runtime)
{
  return kj_is_locked_here(&runtime->streams_mutex);
}

/* Returns the stream with this id, or NULL. The caller holds streams_mutex. */
static kjit_stream *look_up(const kjit_device *device, kj_stream_id id)
{
  KJ_ASSERT(is_locked(device->runtime));
  kjit_stream *stream = device->memory->streams;
  while (stream && stream->id != id) stream = stream->next_of_device;
  return stream;
}

kjit_stream *kj_find_stream(kj_runtime *runtime, kj_stream_id id)
{
  const kjit_device *device = device_of(runtime, id);
  kjit_stream *stream = device ? look_up(device, id) : NULL;
  /* the list owns a reference to the stream */
  KJ_ASSERT(!stream || atomic_load(&stream->references));
  if (stream) atomic_fetch_add_explicit(&stream->references, 1, memory_order_relaxed);
  return stream;
}

bool kj_has_stream(kjit_device *device, const kjit_stream *stream)
{
  if (!device->memory || kj_is_default(stream)) return true;
  lock(device->runtime);
  const kjit_stream *found = device->memory->streams;
  while (found && found != stream) found = found->next_of_device;
  unlock(device->runtime);
  return found;
}

void kj_release_stream(kjit_stream *stream)
{
  KJ_ASSERT(!stream || atomic_load(&stream->references));
  if (!stream || atomic_fetch_sub_explicit(&stream->references, 1, memory_order_acq_rel) != 1)
    return;
  kjit_device *device = stream->object.device;
  KJ_ASSERT(!atomic_load(&stream->capture));
  KJ_ASSERT(kj_is_default(stream) || !kj_has_stream(device, stream));
  kj_note_destroyed(stream);
  if (stream->is_owned && !is_stale(stream))
    device->operations->destroy_stream(device, stream->native);
  stream->native = NULL;
  kj_free_object(&stream->object, stream);
}

/* ---- captures ---- */

/* Asks the driver whether a stream is being captured. kjit does not know the captures that the
 * application makes itself, and an event can include any stream of any device in such a capture. */
static kjit_status ask_driver(kjit_device *device, void *native, kj_diagnostics *diagnostics,
                              bool *is_captured)
{
  *is_captured = false;
  if (!device->memory || !atomic_load(&device->runtime->has_hosts_streams)) return KJIT_OK;
  return device->operations->ask_capture(device, native, diagnostics, is_captured);
}

kjit_status kj_ask_capture(const kjit_stream *stream, kj_diagnostics *diagnostics,
                           bool *is_captured)
{
  *is_captured = stream && atomic_load(&stream->capture);
  if (*is_captured || !stream || !stream->native || is_stale(stream)) return KJIT_OK;
  return ask_driver(stream->object.device, stream->native, diagnostics, is_captured);
}

/* Returns an error if a stream of the device is being captured. The query about the default stream
 * covers the per-thread streams: while a stream that is ordered with the default stream is
 * captured, the driver rejects this query. */
static kjit_status check_streams(kjit_device *device, kj_diagnostics *diagnostics)
{
  char place[24];
  bool is_captured;
  KJ_ASSERT(is_locked(device->runtime));
  KJ_TRY(ask_driver(device, NULL, diagnostics, &is_captured));
  for (const kjit_stream *stream = device->memory->streams; stream;
       stream = stream->next_of_device) {
    is_captured = false;
    if (!is_stale(stream)) KJ_TRY(ask_driver(device, stream->native, diagnostics, &is_captured));
    if (is_captured)
      return kj_error(diagnostics, KJIT_ERROR_MISUSE,
                      "the application is capturing a stream of %s, so no stream can wait for the "
                      "device before the capture has ended",
                      kj_device_text(device, place));
  }
  return KJIT_OK;
}

kjit_status kj_check_hosts_captures(kjit_device *device, kj_diagnostics *diagnostics)
{
  if (!atomic_load(&device->runtime->has_hosts_streams)) return KJIT_OK;
  lock(device->runtime);
  kjit_status status = check_streams(device, diagnostics);
  unlock(device->runtime);
  return status;
}

kjit_status kj_check_uncaptured(const kjit_stream *stream, const char *refusal,
                                kj_diagnostics *diagnostics)
{
  bool is_captured;
  KJ_TRY(kj_ask_capture(stream, diagnostics, &is_captured));
  return is_captured ? kj_error(diagnostics, KJIT_ERROR_UNSUPPORTED, "%s", refusal) : KJIT_OK;
}

bool kj_is_waitable(kjit_device *device)
{
  bool is_waitable = !kj_has_captures(device) && kj_check_hosts_captures(device, NULL) == KJIT_OK;
  return is_waitable;
}

/* ---- a stream waits for another stream; the caller holds streams_mutex ---- */

/* A stream as calls of the driver need it. */
typedef struct place {
  kjit_device *device;
  void *native;
  bool has_passed; /* all work of the stream has completed */
} place;

static kjit_status refuse(kj_diagnostics *diagnostics, const char *why)
{
  return kj_error(diagnostics, KJIT_ERROR_MISUSE, "cannot wait for a stream: %s", why);
}

/* Finds the stream for an id. A destroyed stream is replaced by the default stream, which has
 * waited for its work. The per-thread stream of another thread is replaced by the default stream as
 * well, because these two streams are ordered with each other. */
static kjit_status find_place(kj_runtime *runtime, kj_stream_id id, kj_diagnostics *diagnostics,
                              place *place)
{
  const kj_stream_id rest = id & (((kj_stream_id)1 << KJ_STREAM_BITS) - 1);
  KJ_ASSERT(is_locked(runtime) && id && id != KJ_STREAM_ALL);
  place->device = device_of(runtime, id);
  place->native = NULL;
  place->has_passed = !place->device;
  if (place->has_passed || !rest) return KJIT_OK;
  if (rest & KJ_STREAM_THREADS) {
    if ((rest ^ KJ_STREAM_THREADS) == kj_own_thread) /* NOLINTNEXTLINE(performance-no-int-to-ptr) */
      place->native = (void *)place->device->operations->thread_stream;
    return KJIT_OK;
  }
  const kjit_stream *stream = look_up(place->device, id);
  if (stream) {
    place->native = stream->native;
    place->has_passed = is_stale(stream);
    return stream->is_closing ? refuse(diagnostics, "the stream is being destroyed") : KJIT_OK;
  }
  return has_waited(place->device, place->device->memory->lost_order)
           ? KJIT_OK
           : refuse(diagnostics,
                    "the stream was destroyed, and the driver cannot order other work after it");
}

static kjit_status check_place(place place, kj_diagnostics *diagnostics)
{
  return kj_has_captures(place.device) ? refuse(diagnostics, "streams of its device are captured")
                                       : KJIT_OK;
}

static kjit_status record_event(place first, void *event, kj_diagnostics *diagnostics)
{
  bool is_captured;
  KJ_TRY(ask_driver(first.device, first.native, diagnostics, &is_captured));
  if (is_captured) return refuse(diagnostics, "the application captures it");
  return first.device->operations->record_event(first.device, event, first.native, diagnostics);
}

static kjit_status put_behind(place first, place next, kj_diagnostics *diagnostics)
{
  bool is_captured;
  void **event = &first.device->memory->join_event;
  KJ_ASSERT(is_locked(first.device->runtime)); /* all streams share one event */
  KJ_TRY(check_place(first, diagnostics));
  KJ_TRY(check_place(next, diagnostics));
  if (!*event)
    KJ_TRY(first.device->operations->create_event(first.device, false, diagnostics, event));
  KJ_TRY(record_event(first, *event, diagnostics));
  KJ_TRY(ask_driver(next.device, next.native, diagnostics, &is_captured));
  if (is_captured) return refuse(diagnostics, "the application captures the waiting stream");
  /* the stream waits for this recording of the event, also if the event is recorded again */
  return next.device->operations->wait_event(next.device, next.native, *event, diagnostics);
}

/* Makes `next` wait for all streams of a device. The wait for the default stream includes the
 * per-thread streams. */
static kjit_status put_device_behind(kjit_device *device, place next, kj_diagnostics *diagnostics)
{
  for (const kjit_stream *stream = device->memory->streams; stream;
       stream = stream->next_of_device) {
    place first = { .device = device, .native = stream->native };
    if (is_stale(stream) || (device == next.device && first.native == next.native)) continue;
    if (stream->is_closing) return refuse(diagnostics, "a stream is being destroyed");
    KJ_TRY(put_behind(first, next, diagnostics));
  }
  if (!has_waited(device, device->memory->lost_order))
    return refuse(diagnostics,
                  "a stream was destroyed, and the driver cannot order other work after it");
  return put_behind((place){ .device = device }, next, diagnostics);
}

static kjit_status put_all_behind(kj_runtime *runtime, place next, kj_diagnostics *diagnostics)
{
  kjit_device *device = NULL;
  while ((device = next_device(runtime, device)))
    KJ_TRY(put_device_behind(device, next, diagnostics));
  return KJIT_OK;
}

/* Makes `next` wait for a use of memory. If the use's stream was destroyed, the default stream
 * already waits for its work. A use by another thread's per-thread stream is replaced by the
 * default stream, whose events come after the work of all per-thread streams. So this function also
 * records and waits for an event if `next` is the default stream itself. */
static kjit_status put_use_behind(kj_runtime *runtime, kj_stream_id use, place next,
                                  kj_diagnostics *diagnostics)
{
  place first;
  if (use == KJ_STREAM_ALL) return put_all_behind(runtime, next, diagnostics);
  KJ_TRY(find_place(runtime, use, diagnostics, &first));
  bool is_same = first.device == next.device && first.native == next.native;
  if (first.has_passed || (is_same && !(use & KJ_STREAM_THREADS))) return KJIT_OK;
  return put_behind(first, next, diagnostics);
}

static kjit_status join(kjit_device *device, const kj_last_use *uses, kj_stream_id *next,
                        kj_diagnostics *diagnostics)
{
  kj_runtime *runtime = device->runtime;
  place place;
  KJ_ASSERT(*next >> KJ_STREAM_BITS == device->number);
  KJ_TRY(find_place(runtime, *next, diagnostics, &place));
  if (place.has_passed) return refuse(diagnostics, "the waiting stream was lost");
  /* In place of a per-thread stream, the default stream waits, and per-thread streams are ordered
   * after it. Other threads have no handle of this per-thread stream, so they could not order their
   * work after a wait of this stream alone. */
  bool is_threads = *next & KJ_STREAM_THREADS;
  if (is_threads) place.native = NULL;
  KJ_ASSERT(place.device == device);
  kj_stream_id effective = place.native || is_threads ? *next : kj_id_of(NULL, place.device);
  for (uint32_t i = 0; i < KJ_MOST_USES && kj_read_use(uses, i); i++)
    if (kj_read_use(uses, i) != effective)
      KJ_TRY(put_use_behind(runtime, kj_read_use(uses, i), place, diagnostics));
  *next = effective;
  return KJIT_OK;
}

kjit_status kj_join_uses(kjit_device *device, const kj_last_use *use, kj_stream_id *next,
                         kj_diagnostics *diagnostics)
{
  lock(device->runtime);
  kjit_status status = join(device, use, next, diagnostics);
  unlock(device->runtime);
  return status;
}

kjit_status kj_order_devices(kjit_device *first, kjit_device *next, kj_diagnostics *diagnostics)
{
  lock(first->runtime);
  kjit_status status =
    put_behind((place){ .device = first }, (place){ .device = next }, diagnostics);
  unlock(first->runtime);
  return status;
}

/* ---- the host waits for streams ---- */

/* Records an event after the use. Sets *event to NULL if the use has completed already. */
static kjit_status mark_use(kj_runtime *runtime, kj_stream_id use, kj_diagnostics *diagnostics,
                            kjit_device **device, void **event)
{
  place place;
  *event = NULL;
  KJ_TRY(find_place(runtime, use, diagnostics, &place));
  *device = place.device;
  if (place.has_passed) return KJIT_OK;
  KJ_TRY(check_place(place, diagnostics));
  KJ_TRY(place.device->operations->create_event(place.device, false, diagnostics, event));
  return record_event(place, *event, diagnostics);
}

/* Waits for a use in the calling thread, without holding a lock. */
static kjit_status wait_use(kj_runtime *runtime, kj_stream_id use, kj_diagnostics *diagnostics,
                            kj_waited *waited)
{
  kjit_device *device = NULL;
  void *event;
  kj_assert_no_locks();
  waited->stream = KJ_STREAM_NONE;
  lock(runtime);
  kjit_status status = mark_use(runtime, use, diagnostics, &device, &event);
  unlock(runtime);
  if (event) {
    if (status == KJIT_OK)
      status = device->operations->synchronize_event(device, event, diagnostics);
    device->operations->destroy_event(device, event);
  }
  if (status == KJIT_OK) waited->stream = use;
  return status;
}

/* Waits for all devices: the default stream of each device waits for the other streams, and the
 * host waits for the default streams. */
static kjit_status wait_all(kj_runtime *runtime, kj_diagnostics *diagnostics)
{
  kj_waited waited;
  kjit_device *device = NULL;
  while ((device = next_device(runtime, device))) {
    lock(runtime);
    kjit_status status = put_device_behind(device, (place){ .device = device }, diagnostics);
    unlock(runtime);
    KJ_TRY(status);
    KJ_TRY(wait_use(runtime, kj_id_of(NULL, device), diagnostics, &waited));
  }
  return KJIT_OK;
}

kjit_status kj_wait_uses(kjit_device *device, kj_last_use *use, kj_diagnostics *diagnostics)
{
  for (kj_stream_id stream; (stream = kj_read_use(use, 0));) {
    kj_waited waited = { KJ_STREAM_ALL };
    if (stream == KJ_STREAM_ALL) KJ_TRY(wait_all(device->runtime, diagnostics));
    else KJ_TRY(wait_use(device->runtime, stream, diagnostics, &waited));
    kj_note_waited(use, waited);
  }
  return KJIT_OK;
}

/* ---- the end of a stream ---- */

static void unlink_stream(kjit_stream *stream)
{
  struct kj_memory *memory = stream->object.device->memory;
  kjit_stream **at = &memory->streams;
  KJ_ASSERT(is_locked(stream->object.device->runtime));
  while (*at && *at != stream) at = &(*at)->next_of_device;
  KJ_ASSERT(*at); /* the list contains the stream, because a stream is removed only once */
  if (*at) *at = stream->next_of_device;
  atomic_fetch_add(&memory->forgotten, 1);
}

typedef enum stream_state { STREAM_DONE, STREAM_BUSY, STREAM_CAPTURED } stream_state;

/* Returns the state of a stream that is being destroyed. If the stream is or may be in a capture,
 * the function does not query the driver, because a query would break the capture. */
static stream_state state_of(const kjit_stream *stream)
{
  kjit_device *device = stream->object.device;
  bool is_captured = false;
  stream_state state = is_stale(stream) ? STREAM_DONE : STREAM_BUSY;
  if (state == STREAM_BUSY &&
      device->operations->ask_capture(device, stream->native, NULL, &is_captured) != KJIT_OK)
    is_captured = true;
  if (is_captured) state = STREAM_CAPTURED;
  else if (state == STREAM_BUSY &&
           device->operations->query_stream(device, stream->native, NULL) == KJIT_OK)
    state = STREAM_DONE;
  return state;
}

/* Makes the default stream wait for the work that is queued on the stream. The caller holds
 * streams_mutex. */
static bool hand_over(const kjit_stream *stream)
{
  place first = { .device = stream->object.device, .native = stream->native };
  kjit_status status = put_behind(first, (place){ .device = first.device }, NULL);
  return status == KJIT_OK;
}

kj_stream_end kj_end_stream(kjit_stream *stream)
{
  kjit_device *device = stream->object.device;
  kj_runtime *runtime = device->runtime;
  kj_stream_end end = KJ_STREAM_LOST;
  if (!device->memory) return end;
  lock(runtime);
  if (!look_up(device, stream->id)) { /* the object is another name of the default stream */
    unlock(runtime);
    return end;
  }
  KJ_ASSERT(look_up(device, stream->id) == stream && !stream->is_closing);
  stream_state state = state_of(stream);
  if (state == STREAM_DONE) end = KJ_STREAM_PASSED;
  else if (state == STREAM_BUSY && hand_over(stream)) end = KJ_STREAM_ORDERED;
  stream->is_closing = state == STREAM_BUSY && end == KJ_STREAM_LOST;
  /* the default stream cannot wait, for example during a capture: the host waits instead, without
   * the lock */
  if (stream->is_closing) {
    kj_waited waited;
    unlock(runtime);
    if (kj_wait_stream(device, stream, NULL, &waited) == KJIT_OK) end = KJ_STREAM_PASSED;
    lock(runtime);
  }
  unlink_stream(stream);
  if (end == KJ_STREAM_LOST) device->memory->lost_order = atomic_load(&runtime->waits);
  unlock(runtime);
  return end;
}

/* ---- the layer ---- */

static void destroy_order(kj_attachment *attachment)
{
  pthread_cond_destroy(&attachment->runtime->waits_changed);
  KJ_ASSERT(!attachment->runtime->captures);
  kj_destroy_mutex(&attachment->runtime->streams_mutex);
}

kjit_status kj_open_order(kj_runtime *runtime, kj_diagnostics *diagnostics)
{
  static const kj_attachment_class class = { .destroy = destroy_order };
  (void)diagnostics;
  atomic_store(&runtime->waits, 1);
  pthread_mutex_init(&runtime->streams_mutex, NULL);
  pthread_cond_init(&runtime->waits_changed, NULL);
  kj_attach_to_runtime(runtime, &runtime->order_attachment, &class);
  return KJIT_OK;
}
