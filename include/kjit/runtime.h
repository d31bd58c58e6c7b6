/* kjit/runtime.h: devices; with memory.h and stream.h all of the runtime. See status.h for the
 * rules that hold for every function. */
#ifndef KJIT_RUNTIME_H
#define KJIT_RUNTIME_H

#include <kjit/launch.h>
#include <kjit/memory.h>
#include <kjit/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a device is, in DLPack's numbers. */
typedef enum kjit_device_kind {
  KJIT_DEVICE_CPU = 1, /* the processor that the host runs on */
  KJIT_DEVICE_CUDA = 2 /* an NVIDIA GPU */
} kjit_device_kind;

/* What a device is; kjit_get_device_attribute has further numbers. */
typedef struct kjit_device_info {
  uint32_t size_bytes; /* sizeof(kjit_device_info), set by the host */
  /* a GPU or the CPU */
  kjit_device_kind kind;
  /* its number among those of its kind, from 0 */
  int32_t ordinal;
  const char *name;              /* "NVIDIA H200", "AMD EPYC"; borrowed */
  const char *target;            /* "sm_90", "cpu" */
  uint32_t compute_capability;   /* 90; 0 on the CPU */
  uint32_t multiprocessor_count; /* cores on the CPU */
  /* of one block: in all, and in x, y and z */
  uint32_t max_threads_per_block, max_block[3];
  /* blocks of a launch in x, y and z */
  uint32_t max_grid[3];
  uint64_t max_shared_bytes; /* of one block, opted in */
  /* all that it has; on the CPU the machine's */
  uint64_t memory_bytes;
  int32_t driver_version; /* 13000: what cuDriverGetVersion says; 0 on the CPU */
} kjit_device_info;

/* Opens the driver on the first CUDA device asked for. Borrowed from the context. Errors:
 * NO_DEVICE, DEVICE, FORKED. */
KJIT_API KJIT_CHECK kjit_status kjit_get_device(kjit_context *context, kjit_device_kind kind,
                                                int32_t ordinal, kjit_device **device);
/* How many devices of the kind there are; 0 without a driver. Never fails. */
KJIT_API uint32_t kjit_get_device_count(kjit_context *context, kjit_device_kind kind);
/* The context that the device belongs to. */
KJIT_API kjit_context *kjit_get_device_context(const kjit_device *device);
/* What the device is. Errors: MISUSE. */
KJIT_API kjit_status kjit_get_device_info(const kjit_device *device, kjit_device_info *info);

/* Numbers to ask a device for; device.def has what each is. */
typedef enum kjit_device_attribute {
#define KJIT_ROW(name, number, cpu, text) KJIT_DEVICE_ATTRIBUTE_##name,
#include <kjit/device.def>
#undef KJIT_ROW
  /* how many there are: grows with versions */
  KJIT_DEVICE_ATTRIBUTE_COUNT
} kjit_device_attribute;

/* One of the numbers of device.def. Errors: ARGUMENT (no such attribute), DEVICE (the driver does
 * not know it). */
KJIT_API KJIT_CHECK kjit_status kjit_get_device_attribute(const kjit_device *device,
                                                          kjit_device_attribute attribute,
                                                          int64_t *value);
/* 16 bytes that tell the device from every other one; on the CPU 0. Errors: DEVICE. */
KJIT_API KJIT_CHECK kjit_status kjit_get_device_uuid(const kjit_device *device,
                                                     unsigned char uuid[16]);

/* ---- several GPUs ---- */

/* 1: kernels on the device can be let use the peer's memory where it is. Devices that are the same,
 * or the CPU's: 0. Errors: ARGUMENT (of two contexts), DEVICE. */
KJIT_API KJIT_CHECK kjit_status kjit_can_access_peer(const kjit_device *device,
                                                     const kjit_device *peer, int *can_access);
/* From now on launches on the device take arrays of the peer. Once more is fine. Copies between
 * GPUs (kjit_copy) need no access, and are faster with it. Errors: UNSUPPORTED (the two are not
 * connected), ARGUMENT, DEVICE. */
KJIT_API KJIT_CHECK kjit_status kjit_enable_peer_access(kjit_device *device, kjit_device *peer);
/* The opposite; nothing queued may still use the peer's memory. Errors: ARGUMENT, DEVICE. */
KJIT_API KJIT_CHECK kjit_status kjit_disable_peer_access(kjit_device *device, kjit_device *peer);

/* Waits for everything queued on the device. Here errors of kernels arrive: KERNEL with the first
 * failure of each kernel since the last call, DEVICE for faults. */
KJIT_API KJIT_CHECK kjit_status kjit_synchronize_device(kjit_device *device);
/* After KJIT_ERROR_DEVICE: forgets what was loaded on the device and takes a fresh primary context
 * where the driver allows one; arrays, streams and events on it are lost: releasing them stays
 * allowed, using them gives DEVICE. No other thread may use the device meanwhile. The primary
 * context is the process's: what other contexts of kjit, and the host by CUDA itself, have there is
 * lost, too. Drivers may lose all GPUs of the process by a fault on one, and give no fresh context
 * (driver 580 does both): whoever must survive a fault runs kernels in a process of their own.
 * Errors: DEVICE when the driver keeps the process from going on. */
KJIT_API KJIT_CHECK kjit_status kjit_reset_device(kjit_device *device);

#ifdef __cplusplus
}
#endif
#endif
