/* Devices of the CUDA driver. kjit opens the driver library at run time, so it can be built without
 * the library, and the CPU device works without it. This header declares the few types and
 * constants of the driver that kjit uses, so that cuda.h of the toolkit is not needed. */
#ifndef KJ_CUDA_CUDA_H
#define KJ_CUDA_CUDA_H

#include <kjit/runtime.h>
#include <stdbool.h>

#include "base/device.h"
#include "support/diagnostics.h"

extern const kj_device_operations kj_cuda_operations;

/* ---- the driver ---- */

/* CUlaunchAttribute and CUlaunchConfig, with only the attributes that kjit sets. */
/* CUresult */
enum { KJ_CU_INVALID_VALUE = 1, KJ_CU_OUT_OF_MEMORY = 2, KJ_CU_INVALID_CONTEXT = 201 };
enum {
  KJ_CU_LAUNCH_COOPERATIVE = 2,
  KJ_CU_LAUNCH_CLUSTER = 4,
  KJ_CU_LAUNCH_PROGRAMMATIC = 6,
  KJ_CU_LAUNCH_PRIORITY = 8,
  KJ_CU_LAUNCH_ATTRIBUTES = 4
};
typedef struct kj_cu_launch_attribute {
  int id;
  _Alignas(8) union {
    int number;
    unsigned cluster[3];
    char padding[64];
  } value;
} kj_cu_launch_attribute;

typedef struct kj_cu_launch_config {
  unsigned grid[3], block[3], dynamic_shared_bytes;
  void *stream;
  kj_cu_launch_attribute *attributes;
  unsigned attribute_count;
} kj_cu_launch_config;

/* CUipcMemHandle, which is passed by value. */
typedef struct kj_cu_ipc_handle {
  char bytes[64];
} kj_cu_ipc_handle;

/* CUDA_MEMCPY2D */
enum { KJ_CU_HOST = 1, KJ_CU_DEVICE = 2 };
typedef struct kj_cu_side {
  size_t x_bytes, y;
  int type; /* KJ_CU_HOST or KJ_CU_DEVICE */
  void *host;
  uint64_t device;
  void *array;
  size_t pitch_bytes;
} kj_cu_side;
typedef struct kj_cu_rows {
  kj_cu_side source, destination;
  size_t width_bytes, height;
} kj_cu_rows;

typedef struct kj_driver {
  void *library;
  int version; /* for example 13000 for CUDA 13.0 */
#define X(name, symbol, parameters) int(*name) parameters;
#include "cuda/driver.def"
#undef X
} kj_driver;

/* CUdevice_attribute */
enum {
  KJ_CU_MAX_THREADS_PER_BLOCK = 1,
  KJ_CU_MAX_BLOCK_X = 2, /* and Y, Z */
  KJ_CU_MAX_GRID_X = 5,  /* and Y, Z */
  KJ_CU_MULTIPROCESSORS = 16,
  KJ_CU_THREADS_OF_MULTIPROCESSOR = 39,
  KJ_CU_CAPABILITY_MAJOR = 75,
  KJ_CU_CAPABILITY_MINOR = 76,
  KJ_CU_COOPERATIVE_LAUNCH = 95,
  KJ_CU_MAX_SHARED_OPTIN = 97,
  KJ_CU_CLUSTER_LAUNCH = 120
};

/* CUfunction_attribute */
enum {
  KJ_CU_FUNCTION_MAX_THREADS = 0,
  KJ_CU_FUNCTION_SHARED = 1,
  KJ_CU_FUNCTION_CONST = 2,
  KJ_CU_FUNCTION_LOCAL = 3,
  KJ_CU_FUNCTION_REGISTERS = 4,
  KJ_CU_FUNCTION_MAX_DYNAMIC_SHARED = 8,
  KJ_CU_FUNCTION_ANY_CLUSTER = 14 /* CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, which
                                     allows clusters of more than 8 blocks */
};

/* CUjit_option */
enum {
  KJ_CU_JIT_INFO_LOG = 3,
  KJ_CU_JIT_INFO_LOG_BYTES = 4,
  KJ_CU_JIT_ERROR_LOG = 5,
  KJ_CU_JIT_ERROR_LOG_BYTES = 6,
  KJ_CU_JIT_OPTIMIZATION_LEVEL = 7, /* optimization level from 0 to 4; the default is 4 */
  KJ_CU_JIT_GENERATE_DEBUG_INFO = 11,
  KJ_CU_JIT_GENERATE_LINE_INFO = 13
};

/* Options of the driver's JIT compiler. Loading and linking use the same options, so that they
 * produce the same code. The exception is plain code (see kjit_plain_code), which is never
 * linked. */
enum { KJ_LOG_BYTES = 16384 };
typedef struct kj_jit_options {
  unsigned count;
  int names[4];
  void *values[4];
} kj_jit_options;
/* Returns the options for a device. The compiler writes its errors to log, which has KJ_LOG_BYTES
 * bytes. If is_plain is set, the compiler optimizes little. */
kj_jit_options kj_make_jit_options(const kjit_device *device, bool is_plain, char *log);
/* Removes blank lines at the end of a log and returns its length. */
size_t kj_trim_log(char *log);

/* Opens the driver and counts its devices. find NULL means libcuda.so.1. Errors: NO_DEVICE with the
 * loader's message. */
kjit_status kj_open_driver(void *(*find)(void *user, const char *symbol), void *user,
                           kj_diagnostics *diagnostics, kj_driver **driver, uint32_t *device_count);
void kj_close_driver(kj_driver *driver);
/* Returns the newest PTX version that a driver accepts (78 means PTX 7.8), or 0 if the driver
 * accepts all versions that kjit emits. */
uint32_t kj_ptx_limit(int driver_version);

/* Returns KJIT_OK, or reports an error that names the call and the driver's error. A fault marks
 * the device as lost. device may be NULL. */
kjit_status kj_check_driver(const kj_driver *driver, kjit_device *device, int result,
                            const char *call, kj_diagnostics *diagnostics);
/* Like kj_check_driver, for a driver call that concerns a kernel. The message contains the kernel
 * name. */
kjit_status kj_check_kernel_call(kjit_device *device, const char *kernel, int result,
                                 const char *call, kj_diagnostics *diagnostics);
#define KJ_DRIVER(device, diagnostics, name, ...) \
  kj_check_driver((device)->driver, (device), (device)->driver->name(__VA_ARGS__), #name, \
                  (diagnostics))

/* ---- the device's context on this thread ---- */

/* Makes the device's primary context current, or returns DEVICE if the device is lost.
 * kj_leave_device restores `previous`, so that the application's own context stays current, and
 * other libraries on this thread continue to use their GPU. */
kjit_status kj_enter_device(kjit_device *device, kj_diagnostics *diagnostics, void **previous);
void kj_leave_device(kjit_device *device, void *previous);

/* Calls a driver function. If it fails because no memory is left, returns cached memory to the
 * driver and calls the function once more. */
#define KJ_ASK_TWICE(result, device, call) \
  do { \
    (result) = (device)->driver->call; \
    if ((result) != KJ_CU_OUT_OF_MEMORY) break; \
    kj_relieve_device(device); \
    (result) = (device)->driver->call; \
  } while (0)

/* Calls a driver function with the device's context current. */
#define KJ_CALL_IN(status, device, diagnostics, name, ...) \
  do { \
    void *previous_; \
    (status) = kj_enter_device(device, diagnostics, &previous_); \
    if ((status) != KJIT_OK) break; \
    (status) = KJ_DRIVER(device, diagnostics, name, __VA_ARGS__); \
    kj_leave_device(device, previous_); \
  } while (0)

/* ---- functions of the operation table, except those in cuda_device.c ---- */

/* The operations of a CUDA device, kj_cuda_allocate and so on. base/device.h documents them. */
/* clang-format off */
#define KJ_CUDA_OPERATIONS(X) \
  /* cuda_memory.c */ \
  X(allocate) X(release) X(copy) X(set) X(prefetch) X(pin) X(unpin) X(map) X(release_mapped) \
  X(name_memory) X(open_memory) X(close_memory) \
  /* cuda_stream.c */ \
  X(read_priorities) X(create_stream) X(destroy_stream) X(query_stream) X(call_host) \
  X(create_event) X(destroy_event) X(record_event) X(wait_event) X(query_event) \
  X(synchronize_event) X(read_elapsed) \
  X(begin_capture) X(end_capture) X(ask_capture) X(destroy_graph) X(instantiate_graph) \
  X(update_graph) X(launch_graph) X(destroy_executable) \
  /* cuda_code.c */ \
  X(load) X(unload) X(find_variable) X(count_resident) X(choose_threads) \
  /* cuda_launch.c */ \
  X(launch) X(retry) X(encode_map) \
  /* cuda_link.c */ \
  X(link)
/* clang-format on */
#define X(name) __typeof__(*((kj_device_operations *)0)->name) kj_cuda_##name;
KJ_CUDA_OPERATIONS(X)
#undef X

#endif
