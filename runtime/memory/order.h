/* Declarations for the order between streams: the list of live streams, how a stream waits for
 * other streams, and records of the work for which the host has waited. */
#ifndef KJ_ORDER_H
#define KJ_ORDER_H

#include "base/runtime.h"

static inline void *kj_native(const kjit_stream *stream) { return stream ? stream->native : NULL; }
/* Returns whether the stream object stands for the device's default stream or for the per-thread
 * default streams. */
static inline bool kj_is_default(const kjit_stream *stream)
{
  const kj_stream_id rest = ((kj_stream_id)1 << (KJ_STREAM_BITS - 1)) - 1;
  return !(stream->id & rest);
}

/* State of this folder for a device whose work is queued, created by pool_device.c. */
struct kj_memory {
  kj_attachment attachment; /* attachment to the device */
  struct kj_pool *pools;    /* see pool_lists.h */
  /* number of the last successful wait for the device (see kj_runtime.waits) */
  _Atomic uint64_t waited;
  _Atomic uint32_t forgotten; /* number of destroyed streams */
  /* protected by streams_mutex */
  uint32_t waiting; /* number of running waits for the device; while it is not 0, no capture can
                     * begin */
  kjit_stream *streams;
  uint64_t stream_count;
  /* Not 0 if a stream was destroyed while its work was unfinished, and the default stream could not
   * be made to wait for this work. In this case, only a wait for the device orders the work.
   * The value is the number of waits at that time. */
  uint64_t lost_order;
  void *join_event; /* created when first needed */
};

/* Attaches the layer to a runtime. */
kjit_status kj_open_order(kj_runtime *runtime, kj_diagnostics *diagnostics);

/* ---- live streams; default streams are always alive and not listed ---- */

/* Assigns the stream its number and lists it. */
void kj_add_stream(kjit_stream *stream);
/* The state of a destroyed stream's work, see kj_forget_stream. */
typedef enum kj_stream_end {
  KJ_STREAM_PASSED,  /* the host has waited for it */
  KJ_STREAM_ORDERED, /* the default stream waits for it */
  /* neither PASSED nor ORDERED is true, or the object represents a default stream, which is never
   * destroyed */
  KJ_STREAM_LOST
} kj_stream_end;
kj_stream_end kj_end_stream(kjit_stream *stream);
/* Returns whether the stream is alive. For assertions only, on devices whose work is queued. */
bool kj_has_stream(kjit_device *device, const kjit_stream *stream);
/* Returns the live stream with this number, retained. Returns NULL if no such stream exists or if
 * the stream is a default stream. The caller holds streams_mutex. */
kjit_stream *kj_find_stream(kj_runtime *runtime, kj_stream_id id);
void kj_release_stream(kjit_stream *stream);

/* Returns whether calls can wait for the device. No call can wait while kjit or the application
 * (has_hosts_streams) captures a stream of the device. The caller does not hold streams_mutex. */
bool kj_is_waitable(kjit_device *device);
/* Returns MISUSE if the application captures a stream of the device itself, without kjit. */
kjit_status kj_check_hosts_captures(kjit_device *device, kj_diagnostics *diagnostics);
/* Stores whether kjit or the application is capturing this stream. */
kjit_status kj_ask_capture(const kjit_stream *stream, kj_diagnostics *diagnostics,
                           bool *is_captured);
/* Returns UNSUPPORTED with the message `refusal` if the stream is being captured. */
kjit_status kj_check_uncaptured(const kjit_stream *stream, const char *refusal,
                                kj_diagnostics *diagnostics);

/* ---- finished work ---- */

/* A stamp proves that the host has waited for the work that was queued on a stream. Only waits
 * create stamps. */
typedef struct kj_waited {
  kj_stream_id stream;
} kj_waited;

/* Waits for a stream, or for the default stream if stream is NULL. Reports faults. */
kjit_status kj_wait_stream(kjit_device *device, kjit_stream *stream, kj_diagnostics *diagnostics,
                           kj_waited *waited);
/* Creates a stamp in a function that the stream calls (cuLaunchHostFunc) after all work that was
 * queued on it before. */
kj_waited kj_passed_in_order(kj_stream_id stream);
void kj_note_waited(kj_last_use *use, kj_waited waited);
/* Removes the uses that have ended, because kjit has waited for their whole device. stamp is the
 * value of kj_runtime.waits at a time when the uses were already queued; only later waits count. */
void kj_note_passed(kj_runtime *runtime, kj_last_use *use, uint64_t stamp);
/* Records that all work on the device that was queued before the wait with this number has
 * ended. */
void kj_note_wait(kjit_device *device, uint64_t number);

/* Makes future work of `next` wait for the uses. If `next` was destroyed, the device's default
 * stream waits instead, because it was ordered after the work of `next`. If `next` is a per-thread
 * default stream, the default stream waits, and therefore the per-thread stream waits as well. The
 * function fails during captures and if a driver call fails; in this case, `next` may wait for some
 * of the uses. */
kjit_status kj_join_uses(kjit_device *device, const kj_last_use *use, kj_stream_id *next,
                         kj_diagnostics *diagnostics);
/* Makes the host wait for the uses, and removes them. After an error, the set still contains the
 * uses for which the host has not waited. */
kjit_status kj_wait_uses(kjit_device *device, kj_last_use *use, kj_diagnostics *diagnostics);
/* Makes the default stream of one GPU wait for the work queued on the default stream of another
 * GPU. */
kjit_status kj_order_devices(kjit_device *first, kjit_device *next, kj_diagnostics *diagnostics);

#endif
