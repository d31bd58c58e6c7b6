/* kjit/stream.h: streams, events, graphs and profiling. status.h has the rules that hold for every
 * function. */
#ifndef KJIT_STREAM_H
#define KJIT_STREAM_H

#include <kjit/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* a point in a stream, with a time */
typedef struct kjit_event kjit_event;
/* captured launches and copies */
typedef struct kjit_graph kjit_graph;
/* a captured graph that can be launched any number of times */
typedef struct kjit_executable_graph kjit_executable_graph;

/* ---- streams. On the CPU, work is done when the call that queues it returns ---- */

/* Flags of a stream. */
typedef enum kjit_stream_flags {
  /* not ordered with the default stream, which launches and copies without a stream use */
  KJIT_STREAM_NON_BLOCKING = 1
} kjit_stream_flags;

/* Creates a stream with default priority, ordered with the default stream. */
KJIT_API KJIT_CHECK kjit_status kjit_create_stream(kjit_device *device, kjit_stream **stream);
/* Creates a stream with a priority and kjit_stream_flags. Lower numbers have a higher priority. A
 * number outside the device's range is clamped. Errors: DEVICE, MEMORY. */
KJIT_API KJIT_CHECK kjit_status kjit_create_stream_with(kjit_device *device, int32_t priority,
                                                        uint32_t flags, kjit_stream **stream);
/* Returns the range of priorities. least is the number of the lowest priority, and greatest that of
 * the highest priority, which is a lower number. Both are 0 if the device has no priorities. */
KJIT_API KJIT_CHECK kjit_status kjit_get_stream_priorities(kjit_device *device, int32_t *least,
                                                           int32_t *greatest);
/* Wraps a CUstream without taking ownership. The CUstream must outlive the kjit_stream.
 *
 * If native is NULL, the legacy default stream is wrapped. Wrap each CUstream only once: when a
 * kjit_stream is destroyed, the default stream has to wait for its pending uses of kjit arrays. If
 * a CUstream has several wrappers, kjit_begin_capture captures work queued through any of them.
 * Errors: UNSUPPORTED on the CPU, MEMORY. */
KJIT_API KJIT_CHECK kjit_status kjit_wrap_stream(kjit_device *device, void *native,
                                                 kjit_stream **stream);
/* Returns the default stream. Launches for which no stream is given run on it. The stream is
 * borrowed from the device; kjit_destroy_stream ignores it. */
KJIT_API KJIT_CHECK kjit_status kjit_get_default_stream(kjit_device *device, kjit_stream **stream);
/* Returns CUDA's per-thread default stream (CU_STREAM_PER_THREAD), a separate stream for each
 * thread, ordered with the default stream. It is borrowed from the device, and any number of
 * threads may use it at the same time. On the CPU it is the default stream. */
KJIT_API KJIT_CHECK kjit_status kjit_get_thread_stream(kjit_device *device, kjit_stream **stream);
/* Returns the CUstream, or NULL for the default stream and on the CPU. */
KJIT_API void *kjit_get_native_stream(const kjit_stream *stream);
/* Destroys a stream, which can be NULL. Queued work still runs. Arrays created on the stream
 * continue in the order of the default stream. If a stream of the device is capturing, the call
 * waits for the destroyed stream. */
KJIT_API void kjit_destroy_stream(kjit_stream *stream);
/* Returns the context that the stream belongs to. */
KJIT_API kjit_context *kjit_get_stream_context(const kjit_stream *stream);
/* Returns the device that the stream belongs to, borrowed from the context, or NULL for NULL. */
KJIT_API kjit_device *kjit_get_stream_device(const kjit_stream *stream);
/* Waits for the work on a stream and returns errors of kernels, like kjit_synchronize_device.
 * Failures of kernels on other streams of the device can be among them. */
KJIT_API KJIT_CHECK kjit_status kjit_synchronize_stream(kjit_stream *stream);
/* Returns KJIT_NOT_READY, without a diagnostic, while work is queued. Errors: DEVICE for faults. */
KJIT_API KJIT_CHECK kjit_status kjit_query_stream(kjit_stream *stream);
/* Calls function(user) on a thread of the driver when the stream reaches this point. On the CPU,
 * kjit_add_host_callback itself calls the function. The function must not call CUDA, nor functions
 * of kjit that wait, allocate, launch or release. If stream is NULL, the device's default stream is
 * used. */
KJIT_API KJIT_CHECK kjit_status kjit_add_host_callback(kjit_device *device, kjit_stream *stream,
                                                       void (*function)(void *user), void *user);

/* ---- events with timing. On the CPU, events are clock readings ---- */

/* Creates an event that can be recorded on streams of the device. Errors: DEVICE, MEMORY. */
KJIT_API KJIT_CHECK kjit_status kjit_create_event(kjit_device *device, kjit_event **event);
/* Wraps a CUevent without taking ownership. The CUevent must outlive the kjit_event. kjit treats
 * the event as recorded. Errors: MISUSE (NULL), UNSUPPORTED on the CPU. */
KJIT_API KJIT_CHECK kjit_status kjit_wrap_event(kjit_device *device, void *native,
                                                kjit_event **event);
/* Returns the CUevent, or NULL on the CPU. If the application records the CUevent itself, kjit does
 * not know that it was recorded. */
KJIT_API void *kjit_get_native_event(const kjit_event *event);
/* Destroys an event, which can be NULL. Work that waits for the event continues to wait. */
KJIT_API void kjit_destroy_event(kjit_event *event);
/* Returns the context that the event belongs to. */
KJIT_API kjit_context *kjit_get_event_context(const kjit_event *event);
/* Records an event. If stream is NULL, the device's default stream is used. */
KJIT_API KJIT_CHECK kjit_status kjit_record_event(kjit_event *event, kjit_stream *stream);
/* Waits until the work before the event is done. Errors: MISUSE if the event was never recorded,
 * DEVICE. */
KJIT_API KJIT_CHECK kjit_status kjit_synchronize_event(kjit_event *event);
/* Returns KJIT_NOT_READY, without a diagnostic, while work before the event is queued. Errors:
 * MISUSE if the event was never recorded, DEVICE. */
KJIT_API KJIT_CHECK kjit_status kjit_query_event(kjit_event *event);
/* Makes later work on the stream wait for the event's last record. The host does not wait. Stream
 * and event can belong to different devices. If stream is NULL, the default stream of the event's
 * device is used. Errors: MISUSE if the event was never recorded, DEVICE. */
KJIT_API KJIT_CHECK kjit_status kjit_wait_event(kjit_stream *stream, kjit_event *event);
/* Returns the device time between two recorded events and waits for the last event. Errors: MISUSE
 * if an event was never recorded, or was recorded in a capture. */
KJIT_API KJIT_CHECK kjit_status kjit_get_elapsed_time(kjit_event *first, kjit_event *last,
                                                      uint64_t *time_ns);

/* ---- graphs ---- */

/* Starts a capture: later work on the stream is recorded in a graph and does not run.
 *
 * Recorded work includes launches, prepared launches, kjit_copy_async, kjit_fill, host callbacks
 * and events, also on streams that wait for an event of a capturing stream. kjit compiles and loads
 * missing code during the capture. Kernels that print are an exception; launch them or call
 * kjit_specialize before the capture. Scalar arguments are captured by value, and arrays by
 * address. kjit arrays stay alive as long as the graph. The application must keep other memory
 * alive.
 *
 * Work that cannot be captured returns MISUSE or UNSUPPORTED, and the capture continues without it.
 * This concerns host arrays in a GPU launch, copies through intermediate memory, and calls that
 * wait (kjit_synchronize_stream, kjit_synchronize_device, kjit_copy).
 *
 * kjit does not interfere with captures that the application makes with CUDA on a wrapped stream,
 * if no other thread is in a call of kjit when the capture starts. Such a graph keeps neither
 * loaded code nor arrays alive. Errors: MISUSE (the stream is capturing or is a default stream),
 * DEVICE, MEMORY. */
KJIT_API KJIT_CHECK kjit_status kjit_begin_capture(kjit_stream *stream);
/* Ends the capture that was started on this stream and returns the graph.
 *
 * On a GPU the call returns MISUSE and no graph in two cases. In the first case, a stream has
 * joined the capture, and the stream that began the capture does not wait for an event of the
 * joined stream. In the second case, the application made a CUDA call that cannot be captured, and
 * the driver has invalidated the capture. After an error no stream captures, and kjit_begin_capture
 * can start a new capture. Two errors change nothing: MISUSE for a stream without a capture, and
 * MEMORY. Destroying the stream discards its capture. Errors: MISUSE, DEVICE, MEMORY. */
KJIT_API KJIT_CHECK kjit_status kjit_end_capture(kjit_stream *stream, kjit_graph **graph);
/* Returns 1 if the stream is capturing, otherwise 0. */
KJIT_API int kjit_is_capturing(const kjit_stream *stream);
/* Returns the number of launches, copies, fills and callbacks in the graph. On a GPU it is the
 * number of all nodes that the driver created for these operations. */
KJIT_API size_t kjit_get_graph_size(const kjit_graph *graph);
/* Destroys a graph, which can be NULL. Executable graphs created from it stay valid. */
KJIT_API void kjit_destroy_graph(kjit_graph *graph);
/* Returns the context that the graph belongs to. */
KJIT_API kjit_context *kjit_get_graph_context(const kjit_graph *graph);
/* Creates an executable graph, which kjit_launch_graph can launch. Errors: DEVICE, DEVICE_MEMORY,
 * MEMORY. */
KJIT_API KJIT_CHECK kjit_status kjit_instantiate_graph(kjit_graph *graph,
                                                       kjit_executable_graph **executable);
/* Replaces the arguments of all operations in an executable graph by the arguments in another
 * graph, which must have the same operations in the same order. Later launches use the new
 * arguments.
 *
 * Other threads can launch the executable graph during the call. Each launch uses either the
 * earlier or the new arguments for all operations.
 *
 * Errors: ARGUMENT if the operations differ, in which case nothing changes; MISUSE (the call comes
 * from a callback of the CUDA driver during a launch or an update of this graph, for example in a
 * profiler); DEVICE. */
KJIT_API KJIT_CHECK kjit_status kjit_update_graph(kjit_executable_graph *executable,
                                                  const kjit_graph *graph);
/* Queues all work in the graph once. If stream is NULL, the device's default stream is used.
 * Errors: DEVICE, and MISUSE as kjit_update_graph. On the CPU, KERNEL and the errors of the
 * operations. */
KJIT_API KJIT_CHECK kjit_status kjit_launch_graph(kjit_executable_graph *executable,
                                                  kjit_stream *stream);
/* Destroys an executable graph, which can be NULL. Running launches continue. */
KJIT_API void kjit_destroy_executable_graph(kjit_executable_graph *executable);
/* Returns the context that the executable graph belongs to. */
KJIT_API kjit_context *kjit_get_executable_graph_context(const kjit_executable_graph *executable);

/* ---- profiling ---- */

/* Makes a profiler that is attached to the process start recording. Without a profiler, and on the
 * CPU, the call has no effect. Errors: DEVICE. */
KJIT_API KJIT_CHECK kjit_status kjit_start_profiler(kjit_device *device);
/* Makes the profiler stop recording. Errors: DEVICE. */
KJIT_API KJIT_CHECK kjit_status kjit_stop_profiler(kjit_device *device);
/* Begins a named range on this thread for profilers that show NVTX ranges (default domain).
 *
 * kjit loads the library that NVTX_INJECTION64_PATH names when the first range begins; profilers
 * set this variable for the programs that they start. Without the library the call has no effect.
 * Ranges can be nested. The function returns the number of open ranges on this thread, including
 * this range, or 0 if no profiler receives them. */
KJIT_API uint32_t kjit_begin_range(kjit_context *context, const char *name);
/* Ends the innermost range of this thread. */
KJIT_API void kjit_end_range(kjit_context *context);

#ifdef __cplusplus
}
#endif
#endif
