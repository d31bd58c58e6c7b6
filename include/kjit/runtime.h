/* kjit/runtime.h: devices. This header, memory.h and stream.h together declare the runtime:
 * devices, memory, streams, events and graphs. status.h has the rules that hold for every
 * function. */
#ifndef KJIT_RUNTIME_H
#define KJIT_RUNTIME_H

#include <kjit/launch.h>
#include <kjit/memory.h>
#include <kjit/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Kinds of devices, with DLPack's numbers. */
typedef enum kjit_device_kind {
  KJIT_DEVICE_CPU = 1, /* the processor of the host */
  KJIT_DEVICE_CUDA = 2 /* an NVIDIA GPU */
} kjit_device_kind;

/* Basic properties of a device; kjit_get_device_attribute returns others. */
typedef struct kjit_device_info {
  uint32_t size_bytes; /* sizeof(kjit_device_info), set by the application */
  /* a GPU or the CPU */
  kjit_device_kind kind;
  /* index among the devices of its kind, starting at 0 */
  int32_t ordinal;
  const char *name;              /* for example "NVIDIA H200" or "AMD EPYC"; borrowed */
  const char *target;            /* target of kjit_compile, for example "sm_90" or "cpu" */
  uint32_t compute_capability;   /* for example 90; 0 on the CPU */
  uint32_t multiprocessor_count; /* number of multiprocessors of a GPU, or of cores of the CPU */
  /* maximum number of threads in a block: in total; in x, y and z */
  uint32_t max_threads_per_block, max_block[3];
  /* maximum number of blocks in a launch: in x, y and z */
  uint32_t max_grid[3];
  uint64_t max_shared_bytes; /* maximum shared memory of a block, with opt-in as in CUDA */
  /* total memory; on the CPU the machine's memory */
  uint64_t memory_bytes;
  int32_t driver_version; /* result of cuDriverGetVersion, for example 13000; 0 on the CPU */
} kjit_device_info;

/* Returns a device, borrowed from the context. The first call for a CUDA device opens the driver.
 * Errors: NO_DEVICE, DEVICE, FORKED. */
KJIT_API KJIT_CHECK kjit_status kjit_get_device(kjit_context *context, kjit_device_kind kind,
                                                int32_t ordinal, kjit_device **device);
/* Returns the number of devices of a kind; 0 without a driver. It never fails. */
KJIT_API uint32_t kjit_get_device_count(kjit_context *context, kjit_device_kind kind);
/* Returns the context that the device belongs to. */
KJIT_API kjit_context *kjit_get_device_context(const kjit_device *device);
/* Describes a device. Errors: MISUSE. */
KJIT_API kjit_status kjit_get_device_info(const kjit_device *device, kjit_device_info *info);

/* Attributes of a device; device.def describes each attribute. */
typedef enum kjit_device_attribute {
#define KJIT_ROW(name, number, cpu, text) KJIT_DEVICE_ATTRIBUTE_##name,
#include <kjit/device.def>
#undef KJIT_ROW
  /* number of attributes, which grows with versions */
  KJIT_DEVICE_ATTRIBUTE_COUNT
} kjit_device_attribute;

/* Returns an attribute of a device. Errors: ARGUMENT (unknown attribute), DEVICE (the driver does
 * not know it). */
KJIT_API KJIT_CHECK kjit_status kjit_get_device_attribute(const kjit_device *device,
                                                          kjit_device_attribute attribute,
                                                          int64_t *value);
/* Returns 16 bytes that identify the device. All bytes are 0 on the CPU. Errors: DEVICE. */
KJIT_API KJIT_CHECK kjit_status kjit_get_device_uuid(const kjit_device *device,
                                                     unsigned char uuid[16]);

/* ---- several GPUs ---- */

/* Returns 1 if kernels on the device can be given direct access to memory of the peer. Returns 0 if
 * the devices are the same or one of them is the CPU. Errors: ARGUMENT (devices of different
 * contexts), DEVICE. */
KJIT_API KJIT_CHECK kjit_status kjit_can_access_peer(const kjit_device *device,
                                                     const kjit_device *peer, int *can_access);
/* Allows launches on the device to take arrays of the peer. Repeated calls have no effect. Copies
 * between GPUs (kjit_copy) do not need access, but are faster with it. Errors: UNSUPPORTED (the
 * devices are not connected), ARGUMENT, DEVICE. */
KJIT_API KJIT_CHECK kjit_status kjit_enable_peer_access(kjit_device *device, kjit_device *peer);
/* Revokes access to the peer. No queued work may still use memory of the peer. Errors: ARGUMENT,
 * DEVICE. */
KJIT_API KJIT_CHECK kjit_status kjit_disable_peer_access(kjit_device *device, kjit_device *peer);

/* Waits for all work on the device and returns errors of kernels: KERNEL with the first failure of
 * each kernel since the last call, or DEVICE for faults. */
KJIT_API KJIT_CHECK kjit_status kjit_synchronize_device(kjit_device *device);
/* Resets a device after KJIT_ERROR_DEVICE: kjit forgets all code loaded on the device and takes a
 * new primary context if the driver allows it.
 *
 * Arrays, streams and events on the device are lost. They can still be released, but their use
 * returns DEVICE. No other thread may use the device during the call. All users of the process
 * share the primary context, so the work of other kjit contexts and of the application's own CUDA
 * calls is lost as well. A driver can lose all GPUs of the process after a fault on one GPU, and
 * refuse a new context (driver 580 does both). Programs that must survive a fault should run
 * kernels in a separate process. Errors: DEVICE if the driver does not allow the process to
 * continue. */
KJIT_API KJIT_CHECK kjit_status kjit_reset_device(kjit_device *device);

#ifdef __cplusplus
}
#endif
#endif
