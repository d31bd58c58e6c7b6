/* The order of streams: which are alive, what makes one wait for others, what the host has waited
 * for. */
#ifndef KJ_ORDER_H
#define KJ_ORDER_H

#include "base/runtime.h"

static inline void *kj_native(const kjit_stream *stream) { return stream ? stream->native : NULL; }
/* A name of the device's default stream, or of the threads' own. */
static inline bool kj_is_default(const kjit_stream *stream)
{
  const kj_stream_id rest = ((kj_stream_id)1 << (KJ_STREAM_BITS - 1)) - 1;
  return !(stream->id & rest);
}

/* What this folder keeps of a device whose work is queued; pool.c makes it. */
struct kj_memory {
  kj_attachment attachment; /* to the device */
  struct kj_pool *pools;    /* pool.c */
  /* the number of the last wait for the device that has ended well (kj_runtime.waits) */
  _Atomic uint64_t waited;
  _Atomic uint32_t forgotten; /* streams that have gone */
  /* under streams_mutex */
  uint32_t waiting; /* waits for the device under way: no capture begins meanwhile */
  kjit_stream *streams;
  uint64_t stream_count;
  /* a stream has gone whose work is neither waited for nor ordered: only a wait for the device
   * helps; the number of waits then, 0: none */
  uint64_t lost_order;
  void *join_event; /* made when first needed */
};

/* The layer's part of a runtime. */
kjit_status kj_open_order(kj_runtime *runtime, kj_diagnostics *diagnostics);

/* ---- streams that are alive; not the default ones, which always are ---- */

/* Gives it its number. */
void kj_add_stream(kjit_stream *stream);
/* The stream goes, see kj_forget_stream: what comes of its order. */
typedef enum kj_stream_end {
  KJ_STREAM_PASSED,  /* the host has waited for it */
  KJ_STREAM_ORDERED, /* the default stream has */
  KJ_STREAM_LOST     /* neither; or a name of a default stream, which stays */
} kj_stream_end;
kj_stream_end kj_end_stream(kjit_stream *stream);
/* For assertions: whether the stream is alive, among all of a device whose work is queued. */
bool kj_has_stream(kjit_device *device, const kjit_stream *stream);
/* Under streams_mutex, retained; NULL: none that is alive, or a default stream. */
kjit_stream *kj_find_stream(kj_runtime *runtime, kj_stream_id id);
void kj_release_stream(kjit_stream *stream);

/* No stream of the device is being captured, by kjit or by the host (has_hosts_streams): the device
 * can be waited for. Not under streams_mutex. */
bool kj_is_waitable(kjit_device *device);
/* The latter alone: MISUSE where there is one. */
kjit_status kj_check_hosts_captures(kjit_device *device, kj_diagnostics *diagnostics);
/* Whether the stream itself is, by kjit or by the host. */
kjit_status kj_ask_capture(const kjit_stream *stream, kj_diagnostics *diagnostics,
                           bool *is_captured);
/* UNSUPPORTED with that message where it is. */
kjit_status kj_check_uncaptured(const kjit_stream *stream, const char *refusal,
                                kj_diagnostics *diagnostics);

/* ---- what has passed ---- */

/* That the host has waited for what a stream had queued. Only waits make one. */
typedef struct kj_waited {
  kj_stream_id stream;
} kj_waited;

/* Waits for a stream, NULL: the default one. Faults arrive here. */
kjit_status kj_wait_stream(kjit_device *device, kjit_stream *stream, kj_diagnostics *diagnostics,
                           kj_waited *waited);
/* For a function that the stream itself calls (cuLaunchHostFunc), which comes after what it had
 * queued before. */
kj_waited kj_passed_in_order(kj_stream_id stream);
void kj_note_waited(kj_last_use *use, kj_waited waited);
/* Takes out what has passed since the stamp, by waits for whole devices. */
void kj_note_passed(kj_runtime *runtime, kj_last_use *use, uint64_t stamp);
/* Everything that was queued on the device before the wait of that number began has passed. */
void kj_note_wait(kjit_device *device, uint64_t number);

/* Makes what `next` does from now on come after the uses. Where `next` is not alive, the device's
 * default stream stands in for it, which has taken over its order; where it is a thread's own, the
 * default stream waits, and it with that. An error: nothing can be ordered now (captures, driver
 * calls that fail); some streams may wait. */
kjit_status kj_join_uses(kjit_device *device, const kj_last_use *use, kj_stream_id *next,
                         kj_diagnostics *diagnostics);
/* The host waits for the uses, and takes them out. An error: for those that are left. */
kjit_status kj_wait_uses(kjit_device *device, kj_last_use *use, kj_diagnostics *diagnostics);
/* Makes the default stream of one GPU wait for what another one's has queued. */
kjit_status kj_order_devices(kjit_device *first, kjit_device *next, kj_diagnostics *diagnostics);

#endif
