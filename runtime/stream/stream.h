/* Declarations that streams, events and graphs share. */
#ifndef KJ_STREAM_H
#define KJ_STREAM_H

#include "memory/pool.h"

/* Checks that a stream can be used. stream NULL means the default stream. Errors: ARGUMENT, DEVICE
 * and, if `waits` is set and the stream cannot be waited for now, MISUSE. */
kjit_status kj_check_stream(const kjit_device *device, const kjit_stream *stream, bool waits,
                            kj_diagnostics *diagnostics);

/* ---- graph.c: work that is queued on a captured stream (with .capture) ---- */

/* Returns whether kjit itself captures the stream, because the device cannot capture. In this case,
 * work that is queued on the stream becomes an operation of the graph. */
static inline bool kj_is_recorded(const kjit_stream *stream)
{
  return stream && atomic_load(&stream->capture) &&
         !stream->object.device->operations->begin_capture;
}

/* An operation: work that the application queues on a stream that kjit itself captures. The
 * operation runs when the graph is launched. Several threads may run the same operation at once. A
 * thread may even run it recursively, because application code in a graph may launch this graph. */
typedef struct kj_operation {
  kjit_status (*run)(struct kj_operation *operation, kjit_stream *stream);
  void (*destroy)(struct kj_operation *operation);
  /* kjit_update_graph can replace an operation by another operation that has the same `form` and
   * `run` */
  const void *form;
} kj_operation;

/* A kind of object that launches of a graph need. */
typedef struct kj_kept_kind {
  void (*retain)(void *item); /* called under streams_mutex */
  void (*release)(void *item);
  /* Called before each launch in a graph, on devices that capture. */
  kjit_status (*use)(void *item, kjit_device *device, kjit_stream *stream,
                     kj_diagnostics *diagnostics);
} kj_kept_kind;

/* Objects of a capture are added under streams_mutex, because its streams may be used by several
 * threads. If an object cannot be added, the capture produces no graph.
 *
 * kj_record_operation takes ownership of the operation, even if it fails. */
kjit_status kj_record_operation(kjit_stream *stream, kj_operation *operation,
                                kj_diagnostics *diagnostics);
/* Makes the graph retain the item. */
kjit_status kj_keep(kjit_stream *stream, const kj_kept_kind *kind, void *item,
                    kj_diagnostics *diagnostics);
/* Returns the item of that kind that the graph retains, or NULL. */
void *kj_find_kept(kjit_stream *stream, const kj_kept_kind *kind);
kjit_status kj_keep_array(kjit_stream *stream, kjit_array *array, kj_diagnostics *diagnostics);
kjit_status kj_keep_arrays(kjit_stream *stream, const kjit_arg *arguments, size_t count,
                           kj_diagnostics *diagnostics);
/* Returns the number of the capture, or 0 if the stream is not captured. */
uint64_t kj_capture_number(kjit_stream *stream);
/* Makes a stream part of a capture when the stream waits for an event that was recorded in the
 * capture. stream NULL means that the waiting stream cannot be captured. Errors: MISUSE, also if
 * the capture has ended or the stream is part of another capture. */
kjit_status kj_join_capture(kjit_stream *stream, kjit_event *event, kj_diagnostics *diagnostics);
/* Called when the application wraps a native stream again. If kjit captures the stream, the new
 * object joins the capture. */
kjit_status kj_capture_alias(kjit_stream *stream, kj_diagnostics *diagnostics);
/* Called when the stream is destroyed: discards its capture. */
void kj_abort_capture(kjit_stream *stream);
/* Attaches the layer to a runtime. When the context ends, running captures are discarded, because
 * no call can wait for the device during a capture. */
kjit_status kj_open_captures(kj_runtime *runtime, kj_diagnostics *diagnostics);

#endif
