/* kjit/stream.h: streams, events, graphs, profiling. See status.h for the rules that hold for every
 * function. */
#ifndef KJIT_STREAM_H
#define KJIT_STREAM_H

#include <kjit/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* a point in a stream, with a time */
typedef struct kjit_event kjit_event;
/* launches and copies that were captured */
typedef struct kjit_graph kjit_graph;
/* a captured graph, ready to be launched again and again */
typedef struct kjit_executable_graph kjit_executable_graph;

/* ---- streams. On the CPU work is done when the call that queues it returns ---- */

/* How a stream is made. */
typedef enum kjit_stream_flags {
  /* not ordered with the default stream, which launches and copies without a stream use */
  KJIT_STREAM_NON_BLOCKING = 1
} kjit_stream_flags;

/* A stream of default priority, ordered with the default stream. */
KJIT_API KJIT_CHECK kjit_status kjit_create_stream(kjit_device *device, kjit_stream **stream);
/* priority: lower numbers run first; outside the device's range the nearest one is taken. flags: of
 * kjit_stream_flags. Errors: DEVICE, MEMORY. */
KJIT_API KJIT_CHECK kjit_status kjit_create_stream_with(kjit_device *device, int32_t priority,
                                                        uint32_t flags, kjit_stream **stream);
/* The range of priorities: least is the number of the least urgent, greatest that of the most
 * urgent (a lower number). 0 and 0: the device has none. */
KJIT_API KJIT_CHECK kjit_status kjit_get_stream_priorities(kjit_device *device, int32_t *least,
                                                           int32_t *greatest);
/* The host's CUstream, not owned: it has to live until the kjit_stream is destroyed. native NULL is
 * the legacy default stream. One object for a stream is best kept: when it goes, what kjit arrays
 * were used for on it becomes the default stream's to wait for. Where there are several,
 * kjit_begin_capture captures what is queued by any of them. Errors: UNSUPPORTED on the CPU,
 * MEMORY. */
KJIT_API KJIT_CHECK kjit_status kjit_wrap_stream(kjit_device *device, void *native,
                                                 kjit_stream **stream);
/* The stream that launches without one use, as an object. Borrowed from the device:
 * kjit_destroy_stream leaves it alone. */
KJIT_API KJIT_CHECK kjit_status kjit_get_default_stream(kjit_device *device, kjit_stream **stream);
/* CUDA's per-thread default stream (CU_STREAM_PER_THREAD): a stream of its own for each thread that
 * uses it, ordered with the default stream. Borrowed likewise; any number of threads may use it at
 * once. On the CPU the default stream. */
KJIT_API KJIT_CHECK kjit_status kjit_get_thread_stream(kjit_device *device, kjit_stream **stream);
/* The CUstream; NULL for the default stream and on the CPU. */
KJIT_API void *kjit_get_native_stream(const kjit_stream *stream);
/* Gives the stream up; NULL is fine. Work that is queued is done. Arrays that were made on it go on
 * in the order of the default stream; while streams of the device are captured the call waits for
 * the stream. */
KJIT_API void kjit_destroy_stream(kjit_stream *stream);
/* The context that the stream belongs to. */
KJIT_API kjit_context *kjit_get_stream_context(const kjit_stream *stream);
/* Waits. Here errors of kernels arrive, as at kjit_synchronize_device; failures of kernels on the
 * device's other streams may be among them. */
KJIT_API KJIT_CHECK kjit_status kjit_synchronize_stream(kjit_stream *stream);
/* KJIT_NOT_READY while work is queued, without a diagnostic. Errors: DEVICE for faults. */
KJIT_API KJIT_CHECK kjit_status kjit_query_stream(kjit_stream *stream);
/* function(user) is called on a thread of the driver when the stream gets there; on the CPU by the
 * call itself. It must not call CUDA, nor any function of kjit that waits, allocates, launches or
 * releases. stream NULL: the device's default stream. */
KJIT_API KJIT_CHECK kjit_status kjit_add_host_callback(kjit_device *device, kjit_stream *stream,
                                                       void (*function)(void *user), void *user);

/* ---- events, with timing. On the CPU they are clock readings ---- */

/* An event that can be recorded on the device's streams, with a time. Errors: DEVICE, MEMORY. */
KJIT_API KJIT_CHECK kjit_status kjit_create_event(kjit_device *device, kjit_event **event);
/* The host's CUevent, not owned: it has to live until the kjit_event is destroyed, and counts as
 * recorded. Errors: MISUSE (NULL), UNSUPPORTED on the CPU. */
KJIT_API KJIT_CHECK kjit_status kjit_wrap_event(kjit_device *device, void *native,
                                                kjit_event **event);
/* The CUevent; NULL on the CPU. One that the host records itself is not known as recorded here. */
KJIT_API void *kjit_get_native_event(const kjit_event *event);
/* Gives the event up; NULL is fine. What waits for it goes on waiting. */
KJIT_API void kjit_destroy_event(kjit_event *event);
/* The context that the event belongs to. */
KJIT_API kjit_context *kjit_get_event_context(const kjit_event *event);
/* stream NULL: the device's default stream */
KJIT_API KJIT_CHECK kjit_status kjit_record_event(kjit_event *event, kjit_stream *stream);
/* Waits until the work before the event is done. Errors: MISUSE when it was never recorded, DEVICE.
 */
KJIT_API KJIT_CHECK kjit_status kjit_synchronize_event(kjit_event *event);
/* KJIT_NOT_READY while the work before the event is queued, without a diagnostic. Errors: MISUSE
 * when it was never recorded, DEVICE. */
KJIT_API KJIT_CHECK kjit_status kjit_query_event(kjit_event *event);
/* What is queued on the stream from now on waits for the event as it was last recorded, the host
 * does not; the devices may differ. stream NULL: the default stream of the event's device. Errors:
 * MISUSE when it was never recorded, DEVICE. */
KJIT_API KJIT_CHECK kjit_status kjit_wait_event(kjit_stream *stream, kjit_event *event);
/* Device time between two recorded events; waits for the last. Errors: MISUSE when one was never
 * recorded, or in a capture. */
KJIT_API KJIT_CHECK kjit_status kjit_get_elapsed_time(kjit_event *first, kjit_event *last,
                                                      uint64_t *time_ns);

/* ---- graphs ---- */

/* From now on what is queued on the stream is kept instead of run: launches, prepared launches,
 * kjit_copy_async, kjit_fill, host callbacks, events, and the same on streams that wait for an
 * event of a capturing stream. Code that is not there yet is compiled and loaded meanwhile (but for
 * kernels that print: launch or kjit_specialize those before). Arguments are kept as they are:
 * scalars by value, arrays by address; kjit arrays stay alive as long as the graph, other memory is
 * the host's to keep. What cannot be kept gives MISUSE or UNSUPPORTED, and the capture goes on
 * without it: host arrays of a launch on a GPU, copies through memory in between, and whatever
 * waits (kjit_synchronize_stream, kjit_synchronize_device, kjit_copy). What the host captures by
 * CUDA itself on a stream that it has wrapped is left alone, where that capture begins while no
 * other thread is in a call of kjit, but such a graph keeps neither code loaded nor arrays alive.
 * Errors: MISUSE (it is capturing, or is one of the default streams), DEVICE, MEMORY. */
KJIT_API KJIT_CHECK kjit_status kjit_begin_capture(kjit_stream *stream);
/* Ends the capture that was begun on this stream. On a GPU nothing comes of it, and the status is
 * MISUSE, where a stream that joined was not joined back by an event, or where the driver has given
 * the capture up since: because the host has used CUDA itself on a stream of the capture in a way
 * that cannot be captured. After an error no stream of the capture captures any more, and
 * kjit_begin_capture starts anew. Two errors change nothing: MISUSE for a stream on which no
 * capture was begun, and MEMORY. Destroying the stream drops its capture. Errors: MISUSE, DEVICE,
 * MEMORY. */
KJIT_API KJIT_CHECK kjit_status kjit_end_capture(kjit_stream *stream, kjit_graph **graph);
/* 1: the stream captures. */
KJIT_API int kjit_is_capturing(const kjit_stream *stream);
/* Launches, copies, fills and callbacks in it (on a GPU all nodes that the driver made of them). */
KJIT_API size_t kjit_get_graph_size(const kjit_graph *graph);
/* Gives the graph up; NULL is fine; executable graphs made of it live on. */
KJIT_API void kjit_destroy_graph(kjit_graph *graph);
/* The context that the graph belongs to. */
KJIT_API kjit_context *kjit_get_graph_context(const kjit_graph *graph);
/* Makes what kjit_launch_graph launches of a captured graph. Errors: DEVICE, DEVICE_MEMORY, MEMORY.
 */
KJIT_API KJIT_CHECK kjit_status kjit_instantiate_graph(kjit_graph *graph,
                                                       kjit_executable_graph **executable);
/* Takes the arguments of another graph of the same form (the same operations in the same order),
 * for the launches that follow. Errors: ARGUMENT when the form differs, and the executable graph is
 * as it was; DEVICE. */
KJIT_API KJIT_CHECK kjit_status kjit_update_graph(kjit_executable_graph *executable,
                                                  const kjit_graph *graph);
/* Queues everything in the graph, once. stream NULL: the device's default stream. Errors: DEVICE;
 * on the CPU KERNEL and what the operations themselves give. */
KJIT_API KJIT_CHECK kjit_status kjit_launch_graph(kjit_executable_graph *executable,
                                                  kjit_stream *stream);
/* Gives the executable graph up; NULL is fine. Launches under way go on. */
KJIT_API void kjit_destroy_executable_graph(kjit_executable_graph *executable);
/* The context that the executable graph belongs to. */
KJIT_API kjit_context *kjit_get_executable_graph_context(const kjit_executable_graph *executable);

/* ---- profiling ---- */

/* Tells a profiler that watches the process what to look at; without one, and on the CPU, nothing
 * happens. Errors: DEVICE. */
KJIT_API KJIT_CHECK kjit_status kjit_start_profiler(kjit_device *device);
/* The opposite; errors as above. */
KJIT_API KJIT_CHECK kjit_status kjit_stop_profiler(kjit_device *device);
/* A range of this thread's time with a name, for profilers that show NVTX ranges, in the default
 * domain. The profiler's library is the one that NVTX_INJECTION64_PATH names, as profilers set it
 * for what they start; it is opened at the first range, and without it nothing happens. Ranges
 * nest. Returns how many ranges are open on this thread, this one included; 0: nobody takes them.
 */
KJIT_API uint32_t kjit_begin_range(kjit_context *context, const char *name);
/* Ends the range of this thread that was begun last. */
KJIT_API void kjit_end_range(kjit_context *context);

#ifdef __cplusplus
}
#endif
#endif
