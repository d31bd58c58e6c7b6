/* kjit/runtime.h: devices, arrays, streams, events. See status.h for the rules that hold for every function. */
#ifndef KJIT_RUNTIME_H
#define KJIT_RUNTIME_H

#include <kjit/launch.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kjit_event kjit_event;

typedef enum kjit_device_kind { KJIT_DEVICE_CPU = 1, KJIT_DEVICE_CUDA = 2 } kjit_device_kind; /* DLPack's numbers */

typedef struct kjit_device_info {
  kjit_device_kind kind;
  int32_t ordinal;
  const char *name;              /* "NVIDIA H200", "AMD EPYC"; borrowed */
  const char *target;            /* "sm_90", "cpu" */
  uint32_t compute_capability;   /* 90; 0 on the CPU */
  uint32_t multiprocessor_count; /* cores on the CPU */
  uint32_t max_threads_per_block, max_block[3];
  uint32_t max_grid[3];
  uint64_t max_shared_bytes; /* of one block, opted in */
  uint64_t memory_bytes;
  int32_t driver_version; /* 13000: what cuDriverGetVersion says; 0 on the CPU */
} kjit_device_info;

/* Opens the driver on the first CUDA device asked for. Borrowed from the context. Errors: NO_DEVICE, DEVICE. */
KJIT_API KJIT_CHECK kjit_status kjit_get_device(kjit_context *context, kjit_device_kind kind, int32_t ordinal, kjit_device **device);
/* How many devices of the kind there are; 0 without a driver. Never fails. */
KJIT_API uint32_t kjit_get_device_count(kjit_context *context, kjit_device_kind kind);
KJIT_API void kjit_get_device_info(const kjit_device *device, kjit_device_info *info);
/* Waits for everything queued on the device. Here errors of kernels arrive: KERNEL with the first failure of each kernel since
 * the last call, DEVICE for faults. */
KJIT_API KJIT_CHECK kjit_status kjit_synchronize_device(kjit_device *device);
/* After KJIT_ERROR_DEVICE: forgets what was loaded on the device and takes a fresh primary context where the driver allows one; arrays, streams and events on it
 * are lost: releasing them stays allowed, using them gives DEVICE. Errors: DEVICE when the driver keeps the process from going on. */
KJIT_API KJIT_CHECK kjit_status kjit_reset_device(kjit_device *device);

/* A new array of shape[rank] elements of a scalar type, row-major, contiguous, contents undefined. Errors: DEVICE_MEMORY, MEMORY, ARGUMENT. */
KJIT_API KJIT_CHECK kjit_status kjit_create_array(kjit_device *device, kjit_type element, const int64_t *shape, uint32_t rank, kjit_array **array);
KJIT_API kjit_array *kjit_retain_array(kjit_array *array);
KJIT_API void kjit_release_array(kjit_array *array);
/* The array as a tensor; borrowed. */
KJIT_API const kjit_tensor *kjit_get_tensor(const kjit_array *array);
/* Copies elements between tensors or arrays of equal shape and type, host or device, any strides on the host, contiguous on a GPU.
 * Ordered on the stream (NULL: the default stream of the GPU involved); returns when the copy is done. Errors: ARGUMENT, UNSUPPORTED, DEVICE. */
KJIT_API KJIT_CHECK kjit_status kjit_copy(kjit_context *context, const kjit_arg *destination, const kjit_arg *source, kjit_stream *stream);

KJIT_API KJIT_CHECK kjit_status kjit_create_stream(kjit_device *device, kjit_stream **stream);
/* The host's CUstream, not owned; native NULL is the legacy default stream. Errors: UNSUPPORTED on the CPU. */
KJIT_API KJIT_CHECK kjit_status kjit_wrap_stream(kjit_device *device, void *native, kjit_stream **stream);
KJIT_API void kjit_destroy_stream(kjit_stream *stream);
/* Errors of kernels: as kjit_synchronize_device's; failures of kernels on the device's other streams may be among them. */
KJIT_API KJIT_CHECK kjit_status kjit_synchronize_stream(kjit_stream *stream);

/* Events with timing. On the CPU the work is done when a launch returns, and events are clock readings. */
KJIT_API KJIT_CHECK kjit_status kjit_create_event(kjit_device *device, kjit_event **event);
KJIT_API void kjit_destroy_event(kjit_event *event);
KJIT_API KJIT_CHECK kjit_status kjit_record_event(kjit_event *event, kjit_stream *stream); /* stream NULL: the device's default stream */
KJIT_API KJIT_CHECK kjit_status kjit_synchronize_event(kjit_event *event);
/* Device time between two recorded events; waits for the last. Errors: MISUSE when one was never recorded. */
KJIT_API KJIT_CHECK kjit_status kjit_get_elapsed_time(kjit_event *first, kjit_event *last, uint64_t *time_ns);

#ifdef __cplusplus
}
#endif
#endif
