/* Implements streams, events and graphs of a GPU, using the driver's objects. */
#include "cuda/cuda.h"

enum { NOT_READY = 600 }; /* CUresult */

/* Checks the result of a query. "Not ready" is not an error. */
static kjit_status check_query(kjit_device *device, int result, const char *call,
                               kj_diagnostics *diagnostics)
{
  return result == NOT_READY ? KJIT_NOT_READY
                             : kj_check_driver(device->driver, device, result, call, diagnostics);
}

/* Destroys a driver object. Errors are ignored, because the caller forgets the object in any
 * case. */
static void end(kjit_device *device, int (*function)(void *native), void *native)
{
  void *previous;
  if (native && kj_enter_device(device, NULL, &previous) == KJIT_OK) {
    function(native);
    kj_leave_device(device, previous);
  }
}

/* ---- streams ---- */

kjit_status kj_cuda_read_priorities(kjit_device *device, kj_diagnostics *diagnostics,
                                    int32_t *least, int32_t *greatest)
{
  kjit_status status;
  KJ_CALL_IN(status, device, diagnostics, cuCtxGetStreamPriorityRange, least, greatest);
  return status;
}

kjit_status kj_cuda_create_stream(kjit_device *device, int32_t priority, uint32_t flags,
                                  kj_diagnostics *diagnostics, void **stream)
{
  int least = 0, greatest = 0;
  kjit_status status;
  if (priority) KJ_TRY(kj_cuda_read_priorities(device, diagnostics, &least, &greatest));
  int nearest = priority < greatest ? greatest : priority > least ? least : priority;
  if (nearest)
    KJ_CALL_IN(status, device, diagnostics, cuStreamCreateWithPriority, stream, flags, nearest);
  else KJ_CALL_IN(status, device, diagnostics, cuStreamCreate, stream, flags);
  return status;
}

void kj_cuda_destroy_stream(kjit_device *device, void *stream)
{
  end(device, device->driver->cuStreamDestroy, stream);
}

kjit_status kj_cuda_query_stream(kjit_device *device, void *stream, kj_diagnostics *diagnostics)
{
  kj_assert_alive(device, stream);
  void *previous;
  KJ_TRY(kj_enter_device(device, diagnostics, &previous));
  int result = device->driver->cuStreamQuery(stream);
  kj_leave_device(device, previous);
  return check_query(device, result, "cuStreamQuery", diagnostics);
}

kjit_status kj_cuda_call_host(kjit_device *device, void *stream, void (*function)(void *user),
                              void *user, kj_diagnostics *diagnostics)
{
  kj_assert_alive(device, stream);
  kjit_status status;
  KJ_CALL_IN(status, device, diagnostics, cuLaunchHostFunc, stream, function, user);
  return status;
}

/* ---- events ---- */

kjit_status kj_cuda_create_event(kjit_device *device, bool has_time, kj_diagnostics *diagnostics,
                                 void **event)
{
  enum { DISABLE_TIMING = 2 };
  kjit_status status;
  KJ_CALL_IN(status, device, diagnostics, cuEventCreate, event, has_time ? 0 : DISABLE_TIMING);
  return status;
}

void kj_cuda_destroy_event(kjit_device *device, void *event)
{
  end(device, device->driver->cuEventDestroy, event);
}

kjit_status kj_cuda_record_event(kjit_device *device, void *event, void *stream,
                                 kj_diagnostics *diagnostics)
{
  kj_assert_alive(device, stream);
  kjit_status status;
  KJ_CALL_IN(status, device, diagnostics, cuEventRecord, event, stream);
  return status;
}

kjit_status kj_cuda_wait_event(kjit_device *device, void *stream, void *event,
                               kj_diagnostics *diagnostics)
{
  kj_assert_alive(device, stream);
  kjit_status status;
  KJ_CALL_IN(status, device, diagnostics, cuStreamWaitEvent, stream, event, 0);
  return status;
}

kjit_status kj_cuda_query_event(kjit_device *device, void *event, kj_diagnostics *diagnostics)
{
  void *previous;
  KJ_TRY(kj_enter_device(device, diagnostics, &previous));
  int result = device->driver->cuEventQuery(event);
  kj_leave_device(device, previous);
  return check_query(device, result, "cuEventQuery", diagnostics);
}

kjit_status kj_cuda_synchronize_event(kjit_device *device, void *event, kj_diagnostics *diagnostics)
{
  kjit_status status;
  KJ_CALL_IN(status, device, diagnostics, cuEventSynchronize, event);
  return status;
}

kjit_status kj_cuda_read_elapsed(kjit_device *device, void *first, void *last,
                                 kj_diagnostics *diagnostics, uint64_t *time_ns)
{
  float time_ms = 0;
  kjit_status status;
  KJ_CALL_IN(status, device, diagnostics, cuEventElapsedTime, &time_ms, first, last);
  KJ_ASSERT(first && last);
  if (status == KJIT_OK) *time_ns = time_ms > 0 ? (uint64_t)((double)time_ms * 1e6) : 0;
  return status;
}

/* ---- captures and graphs ---- */

kjit_status kj_cuda_begin_capture(kjit_device *device, void *stream, kj_diagnostics *diagnostics)
{
  kj_assert_alive(device, stream);
  /* relaxed mode: during the capture, this thread and others may load code and allocate memory */
  enum { RELAXED = 2 };
  kjit_status status;
  KJ_CALL_IN(status, device, diagnostics, cuStreamBeginCapture, stream, RELAXED);
  return status;
}

/* Discards a capture, with the stream's own context current if possible. The context may have
 * failed, but the capture must end nevertheless. */
static void drop_capture(kjit_device *device, void *stream)
{
  void *graph = NULL, *previous;
  bool is_entered = kj_enter_device(device, NULL, &previous) == KJIT_OK;
  if (!device->driver->cuStreamEndCapture(stream, &graph) && graph)
    device->driver->cuGraphDestroy(graph);
  if (is_entered) kj_leave_device(device, previous);
}

kjit_status kj_cuda_end_capture(kjit_device *device, void *stream, kj_diagnostics *diagnostics,
                                void **graph, size_t *size)
{
  kj_assert_alive(device, stream);
  void *previous, *made = NULL;
  kjit_status status = graph ? kj_enter_device(device, diagnostics, &previous) : KJIT_OK;
  if (!graph || status != KJIT_OK) {
    drop_capture(device, stream);
    return status;
  }
  status = KJ_DRIVER(device, diagnostics, cuStreamEndCapture, stream, &made);
  if (status == KJIT_OK) {
    status = KJ_DRIVER(device, diagnostics, cuGraphGetNodes, made, NULL, size);
    if (status != KJIT_OK) device->driver->cuGraphDestroy(made);
  }
  kj_leave_device(device, previous);
  KJ_ASSERT(status != KJIT_OK || made);
  if (status == KJIT_OK) *graph = made;
  return status;
}

kjit_status kj_cuda_ask_capture(kjit_device *device, void *stream, kj_diagnostics *diagnostics,
                                bool *is_captured)
{
  kj_assert_alive(device, stream);
  int state = 0;
  kjit_status status;
  KJ_CALL_IN(status, device, diagnostics, cuStreamIsCapturing, stream, &state);
  *is_captured = state != 0;
  return status;
}

void kj_cuda_destroy_graph(kjit_device *device, void *graph)
{
  end(device, device->driver->cuGraphDestroy, graph);
}

kjit_status kj_cuda_instantiate_graph(kjit_device *device, void *graph, kj_diagnostics *diagnostics,
                                      void **executable)
{
  void *previous;
  int result;
  KJ_TRY(kj_enter_device(device, diagnostics, &previous));
  KJ_ASK_TWICE(result, device, cuGraphInstantiate(executable, graph, 0));
  kj_leave_device(device, previous);
  return kj_check_driver(device->driver, device, result, "cuGraphInstantiate", diagnostics);
}

kjit_status kj_cuda_update_graph(kjit_device *device, void *executable, void *graph,
                                 kj_diagnostics *diagnostics)
{
  enum { UPDATE_FAILURE = 910 };
  void *previous, *node = NULL;
  int reason = 0;
  KJ_TRY(kj_enter_device(device, diagnostics, &previous));
  int result = device->driver->cuGraphExecUpdate(executable, graph, &node, &reason);
  kj_leave_device(device, previous);
  return result == UPDATE_FAILURE
           ? KJIT_ERROR_ARGUMENT
           : kj_check_driver(device->driver, device, result, "cuGraphExecUpdate", diagnostics);
}

kjit_status kj_cuda_launch_graph(kjit_device *device, void *executable, void *stream,
                                 kj_diagnostics *diagnostics)
{
  kj_assert_alive(device, stream);
  void *previous;
  int result;
  KJ_TRY(kj_enter_device(device, diagnostics, &previous));
  KJ_ASK_TWICE(result, device, cuGraphLaunch(executable, stream));
  kj_leave_device(device, previous);
  return kj_check_driver(device->driver, device, result, "cuGraphLaunch", diagnostics);
}

void kj_cuda_destroy_executable(kjit_device *device, void *executable)
{
  end(device, device->driver->cuGraphExecDestroy, executable);
}
