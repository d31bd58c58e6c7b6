/* What streams, events and graphs share. */
#ifndef KJ_STREAM_H
#define KJ_STREAM_H

#include "memory/pool.h"

/* stream may be NULL: the default stream. ARGUMENT, DEVICE or, with waits, MISUSE for a stream that
 * cannot be used (now). */
kjit_status kj_check_stream(const kjit_device *device, const kjit_stream *stream, bool waits,
                            kj_diagnostics *diagnostics);

/* ---- graph.c: what happens to the things that are queued on a stream with .capture ---- */

/* The stream is captured by kjit itself, as its device cannot: what is queued is an operation of
 * the graph. */
static inline bool kj_is_recorded(const kjit_stream *stream)
{
  return stream && atomic_load(&stream->capture) &&
         !stream->object.device->operations->begin_capture;
}

/* What a host queues on such a stream: kept, and done when the graph is launched. Any number of
 * threads run it at once, or one inside of itself: the host's code may launch its own graph. */
typedef struct kj_operation {
  kjit_status (*run)(struct kj_operation *operation, kjit_stream *stream);
  void (*destroy)(struct kj_operation *operation);
  const void *form; /* equal for operations that an update may exchange, beside run */
} kj_operation;

/* Something that the launches of a graph need. */
typedef struct kj_kept_kind {
  void (*retain)(void *item); /* under streams_mutex */
  void (*release)(void *item);
  /* Before each launch, of a device that captures. */
  kjit_status (*use)(void *item, kjit_device *device, kjit_stream *stream,
                     kj_diagnostics *diagnostics);
} kj_kept_kind;

/* All that a capture keeps is added under streams_mutex, by any thread: its streams may be
 * different threads'. Where it cannot be added the capture gives no graph.
 *
 * Takes the operation, on failure too. */
kjit_status kj_record_operation(kjit_stream *stream, kj_operation *operation,
                                kj_diagnostics *diagnostics);
/* The graph keeps it. */
kjit_status kj_keep(kjit_stream *stream, const kj_kept_kind *kind, void *item,
                    kj_diagnostics *diagnostics);
/* What the graph keeps of that kind; NULL: nothing yet. */
void *kj_find_kept(kjit_stream *stream, const kj_kept_kind *kind);
kjit_status kj_keep_array(kjit_stream *stream, kjit_array *array, kj_diagnostics *diagnostics);
kjit_status kj_keep_arrays(kjit_stream *stream, const kjit_arg *arguments, size_t count,
                           kj_diagnostics *diagnostics);
/* 0: the stream is not captured. */
uint64_t kj_capture_number(kjit_stream *stream);
/* The stream waits for an event that was recorded in a capture: it belongs to the capture from now
 * on. stream NULL: one that cannot. Errors: MISUSE, also where the capture has ended, or the stream
 * is part of another one. */
kjit_status kj_join_capture(kjit_stream *stream, kjit_event *event, kj_diagnostics *diagnostics);
/* A host has wrapped a stream once more: where it is captured by kjit, the new object is, too. */
kjit_status kj_capture_alias(kjit_stream *stream, kj_diagnostics *diagnostics);
/* The stream goes: what was captured is dropped. */
void kj_abort_capture(kjit_stream *stream);
/* The layer's part of a runtime: captures that are under way when the context ends are dropped, as
 * nothing can be waited for while they go on. */
kjit_status kj_open_captures(kj_runtime *runtime, kj_diagnostics *diagnostics);

#endif
