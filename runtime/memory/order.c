/* What several streams have used: events that put one stream behind others, so that memory can go
 * on in the order of a single one. */
#include <stdlib.h>

#include "memory/device_memory_state.h"

/* ---- one stream behind another; under the order mutex ---- */

static kjit_status put_behind(kjit_device *device, void *first, void *next,
                              kj_diagnostics *diagnostics)
{
  enum { DISABLE_TIMING = 2 };
  struct kj_memory *memory = device->memory;
  if (!memory->join_event)
    KJ_TRY(KJ_DRIVER(device, diagnostics, cuEventCreate, &memory->join_event, DISABLE_TIMING));
  KJ_TRY(KJ_DRIVER(device, diagnostics, cuEventRecord, memory->join_event, first));
  /* it waits for the event as it is now */
  return KJ_DRIVER(device, diagnostics, cuStreamWaitEvent, next, memory->join_event, 0);
}

static kjit_status order_natives(kjit_device *device, void *first, void *next,
                                 kj_diagnostics *diagnostics)
{
  void *previous;
  KJ_TRY(kj_enter_device(device, diagnostics, &previous));
  kjit_status status = put_behind(device, first, next, diagnostics);
  kj_leave_device(device, previous);
  return status;
}

kjit_status kj_order_streams_locked(kjit_device *device, kjit_stream *first, kjit_stream *next,
                                    kj_diagnostics *diagnostics)
{
  return kj_native(first) == kj_native(next)
           ? KJIT_OK
           : order_natives(device, kj_native(first), kj_native(next), diagnostics);
}

kjit_status kj_order_streams(kjit_device *device, kjit_stream *first, kjit_stream *next,
                             kj_diagnostics *diagnostics)
{
  pthread_mutex_lock(&device->memory->order_mutex);
  kjit_status status = kj_order_streams_locked(device, first, next, diagnostics);
  pthread_mutex_unlock(&device->memory->order_mutex);
  return status;
}

/* Under the order mutex of the first. An event is of the context that is current when it is made, a
 * default stream of the one that is current when it is named. */
static kjit_status order_defaults(kjit_device *first, kjit_device *next,
                                  kj_diagnostics *diagnostics)
{
  enum { DISABLE_TIMING = 2 };
  struct kj_memory *memory = first->memory;
  void *previous;
  KJ_TRY(kj_enter_device(first, diagnostics, &previous));
  kjit_status status = memory->join_event ? KJIT_OK
                                          : KJ_DRIVER(first, diagnostics, cuEventCreate,
                                                      &memory->join_event, DISABLE_TIMING);
  if (status == KJIT_OK)
    status = KJ_DRIVER(first, diagnostics, cuEventRecord, memory->join_event, NULL);
  kj_leave_device(first, previous);
  KJ_TRY(status);
  KJ_TRY(kj_enter_device(next, diagnostics, &previous));
  status = KJ_DRIVER(next, diagnostics, cuStreamWaitEvent, NULL, memory->join_event, 0);
  kj_leave_device(next, previous);
  return status;
}

kjit_status kj_order_devices(kjit_device *first, kjit_device *next, kj_diagnostics *diagnostics)
{
  pthread_mutex_lock(&first->memory->order_mutex);
  kjit_status status = order_defaults(first, next, diagnostics);
  pthread_mutex_unlock(&first->memory->order_mutex);
  return status;
}

/* ---- streams ---- */

void kj_add_stream(kjit_stream *stream)
{
  struct kj_memory *memory = stream->object.device->memory;
  if (!memory) return; /* the CPU's */
  pthread_mutex_lock(&memory->order_mutex);
  stream->slot =
    /* shared where there are many: they wait for more than they must */
    (uint8_t)(KJ_SLOT_FIRST + memory->next_slot++ % (KJ_SLOT_ELSEWHERE - KJ_SLOT_FIRST));
  stream->next_of_device = memory->streams;
  memory->streams = stream;
  pthread_mutex_unlock(&memory->order_mutex);
}

static void unlink_stream(kjit_stream *stream)
{
  kjit_stream **at = &stream->object.device->memory->streams;
  while (*at && *at != stream) at = &(*at)->next_of_device;
  if (*at) *at = stream->next_of_device;
}

/* Of before a reset: the driver does not know it any more. */
static bool is_stale(const kjit_stream *stream)
{
  return stream->object.generation != atomic_load(&stream->object.device->generation);
}

/* Under the order mutex. true: nothing that is queued on the stream uses memory. */
static bool is_done(kjit_stream *stream)
{
  kj_diagnostics ignored = { 0 };
  kjit_device *device = stream->object.device;
  void *previous;
  bool done = is_stale(stream) || atomic_load(&device->lost);
  if (!done && kj_enter_device(device, &ignored, &previous) == KJIT_OK) {
    done = device->driver->cuStreamQuery(stream->native) == 0;
    kj_leave_device(device, previous);
  }
  kj_free_diagnostics(&ignored);
  return done;
}

/* The default stream takes over what the stream has to be waited for. While streams are captured it
 * cannot be used, and the host waits. */
static bool hand_over(kjit_stream *stream)
{
  kj_diagnostics ignored = { 0 };
  kjit_device *device = stream->object.device;
  struct kj_memory *memory = device->memory;
  bool is_ordered =
    !kj_has_captures(device) && order_natives(device, stream->native, NULL, &ignored) == KJIT_OK;
  if (!is_ordered) (void)kj_synchronize(device, false, stream->native, &ignored);
  kj_free_diagnostics(&ignored);
  memory->has_lost_streams = memory->has_lost_streams || is_ordered;
  return is_ordered;
}

void kj_forget_stream(kjit_stream *stream)
{
  struct kj_memory *memory = stream->object.device->memory;
  /* names of the default streams, which stay */
  if (!memory || stream->slot < KJ_SLOT_FIRST) return;
  pthread_mutex_lock(&memory->order_mutex);
  unlink_stream(stream);
  bool is_idle = !atomic_load(&stream->is_used) || is_done(stream) || !hand_over(stream);
  kj_retag_blocks(stream, is_idle); /* before anybody orders something behind it again */
  pthread_mutex_unlock(&memory->order_mutex);
}

/* ---- the uses of an array ---- */

/* Under the order mutex. */
static bool put_all_behind(kjit_device *device, uint64_t slots, kjit_stream *next,
                           kj_diagnostics *diagnostics)
{
  struct kj_memory *memory = device->memory;
  const uint64_t default_slots = (uint64_t)1 << KJ_SLOT_DEFAULT | (uint64_t)1 << KJ_SLOT_PER_THREAD;
  bool uses_default = slots & default_slots || memory->has_lost_streams;
  for (kjit_stream *stream = memory->streams; stream; stream = stream->next_of_device) {
    if (stream == next || !(slots >> stream->slot & 1) || is_stale(stream)) continue;
    if (stream->capture ||
        order_natives(device, stream->native, kj_native(next), diagnostics) != KJIT_OK)
      return false;
  }
  /* An event on the default stream comes after everything queued by then on the streams that are
   * ordered with it, the threads' own among them. */
  return !uses_default || !kj_native(next) ||
         order_natives(device, NULL, kj_native(next), diagnostics) == KJIT_OK;
}

bool kj_join_uses(kjit_array *array, kjit_stream *stream)
{
  kjit_array *owner = array->owner;
  kjit_device *device = owner->object.device;
  uint64_t own = (uint64_t)1 << (stream ? stream->slot : KJ_SLOT_DEFAULT),
           slots = atomic_load(&owner->line.uses) & ~own;
  if (!slots || !device->memory) return true;
  bool needs_wait = slots >> KJ_SLOT_ELSEWHERE & 1 ||
                    (slots >> KJ_SLOT_PER_THREAD & 1 && !kj_native(stream)) ||
                    kj_has_captures(device);
  if (needs_wait) return false;
  kj_diagnostics ignored = { 0 };
  pthread_mutex_lock(&device->memory->order_mutex);
  bool is_joined = put_all_behind(device, slots, stream, &ignored);
  pthread_mutex_unlock(&device->memory->order_mutex);
  kj_free_diagnostics(&ignored);
  return is_joined;
}

/* While a stream is captured nothing can wait for the whole device, nor for the default stream:
 * what the driver does when it frees memory has to do for that one. */
static void wait_for_streams(kjit_device *device, uint64_t slots, kj_diagnostics *ignored)
{
  struct kj_memory *memory = device->memory;
  pthread_mutex_lock(&memory->order_mutex);
  for (kjit_stream *stream = memory->streams; stream; stream = stream->next_of_device)
    if (slots >> stream->slot & 1 && !is_stale(stream) && !atomic_load(&stream->capture))
      (void)kj_synchronize(device, false, stream->native, ignored);
  pthread_mutex_unlock(&memory->order_mutex);
}

void kj_wait_uses(kjit_array *array)
{
  kjit_array *owner = array->owner;
  const kj_kind *kind =
    kj_find_kind(owner->object.device->runtime, owner->object.device->info.kind);
  uint64_t slots = atomic_load(&owner->line.uses);
  kj_diagnostics ignored = { 0 };
  bool is_elsewhere = slots >> KJ_SLOT_ELSEWHERE & 1;
  for (uint32_t i = 0; slots && i < kind->count; i++) {
    kjit_device *device = atomic_load_explicit(&kind->devices[i], memory_order_acquire);
    if (!device || !(is_elsewhere || device == owner->object.device)) continue;
    if (kj_has_captures(device)) wait_for_streams(device, slots, &ignored);
    else (void)kj_synchronize(device, true, NULL, &ignored);
  }
  kj_free_diagnostics(&ignored);
}
