/* The table of operations that runtime/cuda and runtime/cpu each provide for their kind of device,
 * and the parameters of these operations. */
#ifndef KJ_DEVICE_OPERATIONS_H
#define KJ_DEVICE_OPERATIONS_H

#include <kjit/runtime.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/status.h"
#include "compiler.h"
#include "support/assert.h"

typedef struct kj_runtime kj_runtime;

/* ---- parameters of the functions in the table ---- */

/* A memory allocation of the device. */
typedef struct kj_allocation {
  kjit_memory memory;
  size_t size_bytes;
  uint64_t address;
  int file; /* SHARED memory on the CPU: descriptor of the file that is mapped; otherwise
             * -1 */
  /* name of the driver call that allocates, for the error message */
  const char *call;
} kj_allocation;

/* A copy of contiguous bytes, or of rows at a constant distance. */
typedef struct kj_transfer {
  uint64_t to, from;
  bool to_host, from_host;
  kjit_device *source;      /* another device of the same kind, whose memory contains `from`, or
                             * NULL for this device */
  size_t width_bytes, rows; /* rows 1 means contiguous bytes */
  size_t to_pitch_bytes, from_pitch_bytes; /* distance between rows, unused if rows is 1 */
} kj_transfer;

/* Data with which another process opens an allocation. Each kind of device defines the content. The
 * opening process must treat it as untrusted input. */
typedef struct kj_memory_name {
  uint64_t process, offset_bytes, size_bytes; /* offset of the address in the allocation, and size
                                               * of the allocation */
  unsigned char uuid[16];
  char native[64];
  /* CPU: file descriptor in the exporting process; the inode and device number that the file must
   * have */
  uint64_t file, file_number, file_device;
} kj_memory_name;

/* The last launch of the kernels with this name on a device. The driver reports a fault long after
 * the launch, so the error message of a fault lists all marked kernels. A mark lives as long as the
 * device. */
typedef struct kj_launch_mark {
  struct kj_launch_mark *next;
  char *name;
  _Atomic uint64_t epoch;   /* the device's epoch at the last launch */
  _Atomic uintptr_t stream; /* stream of the launches, or MIXED if several streams were used since
                             * the last synchronization */
} kj_launch_mark;

/* Machine code of a kernel, ready to run on a device. */
typedef struct kj_device_code {
  void *module, *function; /* on the CPU: a kj_image or kj_loaded, and a kj_cpu_kernel */
  uint32_t registers, shared_bytes, local_bytes, constant_bytes, max_threads;
  uint32_t max_dynamic_shared_bytes;
  kj_launch_mark *mark;
} kj_device_code;

/* The value of `function` after the code was unloaded; no launch may use it.
 * NOLINTNEXTLINE(performance-no-int-to-ptr) */
#define KJ_UNLOADED ((void *)(uintptr_t)0x6b6a676f6e652121)

/* Code to be linked. The data is followed by a 0 byte. */
typedef struct kj_link_input {
  kjit_link_format format;
  const char *name, *data;
  size_t size_bytes;
  const char *options; /* CUDA C: options for NVRTC, one in each line, or NULL */
} kj_link_input;

/* Measured times of a specialization's launches on the CPU, per unit of work. There is a time for
 * each width (number of threads) and each size class (logarithm of the launch size). See
 * cpu/spread.c. */
enum { KJ_COST_CLASSES = 40 };
typedef enum kj_width { KJ_ALONE, KJ_SOME, KJ_ALL, KJ_WIDTHS } kj_width;
typedef struct kj_cost {
  _Atomic float unit_ns;  /* 0 means that no time was measured */
  _Atomic uint32_t count; /* number of measurements; the count stops at a small limit */
} kj_cost;
typedef struct kj_cost_of_size {
  kj_cost widths[KJ_WIDTHS];
  _Atomic uint16_t timed; /* number of timed launches */
} kj_cost_of_size;
typedef struct kj_cpu_cost {
  /* large if recent launches took far more or far less time than earlier launches of the same
   * size */
  _Atomic uint32_t surprises;
  kj_cost_of_size sizes[KJ_COST_CLASSES];
} kj_cpu_cost;

/* A launch with marshalled parameters. */
typedef struct kj_device_launch {
  const uint32_t *grid, *block;
  uint32_t dynamic_shared_bytes;
  void *stream;     /* native stream */
  void *parameters; /* address of the parameter block, which has parameter_bytes bytes */
  size_t parameter_bytes;
  void **pointers; /* address of each parameter, or NULL to pass the block */
  /* true if any of the following attributes is set: cluster, is_cooperative, is_programmatic,
   * priority */
  bool has_attributes;
  const uint32_t *cluster; /* cluster[0] is 0 if the launch has no clusters */
  bool is_cooperative, is_programmatic;
  int32_t priority; /* 0 means the priority of the stream */
  /* `elements` is the number of iterations of the largest grid_range, if has_elements is set. It is
   * a hint for a device that divides the grid itself. */
  bool has_elements;
  uint64_t elements;
  /* measured times of the specialization; NULL if the device queues its launches */
  kj_cpu_cost *cost;
  uint32_t cpu_threads; /* maximum number of threads for this launch, or 0 for no limit */
} kj_device_launch;

/* An array that a tensor map describes. Dimensions are in the array's own order, outermost first.
 */
typedef struct kj_map_array {
  uint64_t address;
  kjit_type element;
  uint32_t element_bytes, rank;
  uint64_t extents[KJ_MAP_RANK], stride_bytes[KJ_MAP_RANK];
} kj_map_array;

/* Provides driver functions in place of the system's driver, for tests. */
typedef struct kj_driver_source {
  void *(*find)(void *user, const char *symbol);
  void *user;
} kj_driver_source;

/* ---- targets: target.c ---- */

/* The format of a target's code, and the steps that are needed before the code can run. */
typedef struct kj_code_format {
  kjit_stage stage; /* the last stage of the compiler, whose output is stored and loaded */
  /* True if a driver translates the code to machine code (CUBIN) and can link it with other code.
   * Otherwise the code is machine code, which calls functions of the application by their
   * addresses. */
  bool is_linked;
  uint32_t own; /* bit mask of the stages that only this target has */
  const char *own_names;
} kj_code_format;
const kj_code_format *kj_get_code_format(kj_target_kind target);
/* Returns whether the target has this stage. */
bool kj_has_stage(kj_target_kind target, kjit_stage stage);

/* Parses a target such as "cpu", "x86-64-v3" or "sm_90a". Returns false if no target has this
 * name. */
bool kj_read_target(const char *text, kj_target *target);
const char *kj_level_name(kj_cpu_level level);
/* Returns the level with this name, or KJ_CPU_OWN if no level has this name. */
kj_cpu_level kj_read_level(const char *text, size_t size_bytes);

/* ---- the driver's plain launch ---- */

/* The driver function that launches a kernel, which the fast path calls directly. The functions of
 * CUDA's and HIP's drivers have the same signature. Parameters are passed in one of two ways.
 * `pointers` has each parameter's address. Or `block` describes a block that contains all
 * parameters: it is the array KJ_BLOCK_ADDRESS, address of the block, KJ_BLOCK_BYTES, address of
 * the block's size, NULL. Both are NULL if the kernel has no parameters. */
typedef int kj_driver_launch(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                             unsigned block_x, unsigned block_y, unsigned block_z,
                             unsigned dynamic_shared_bytes, void *stream, void **pointers,
                             void **block);
enum { KJ_BLOCK_ADDRESS = 1, KJ_BLOCK_BYTES = 2 };

/* ---- the table of operations ---- */

/* The operations of a kind of device. Unless documented otherwise, each function returns a status
 * and reports its error. A function may be called while any driver context is current, and leaves
 * the same context current. Native streams, events and graphs belong to the device; stream NULL is
 * its default stream. A function may be NULL only if its comment says so. */
typedef struct kj_device_operations {
  kjit_device_kind kind;
  const char *name; /* "cuda" */
  /* If only one device of this kind exists, messages omit its ordinal. */
  bool is_usually_single;
  kj_target_kind target; /* the target of code for the device */
  /* Operations are queued and run later, in the order of their stream. Otherwise an operation is
   * complete when the call returns, and the application cannot create native streams or events. */
  bool is_queued;
  /* Kernels use device memory, so host memory is copied to it and back. */
  bool has_memory;
  /* Code is compiled for a specific block shape. */
  bool knows_block;
  /* Native handles that always exist: default_stream is another handle of the default stream, in
   * addition to NULL; thread_stream is the handle of the per-thread default stream. 0 means that
   * there is no such handle. */
  uintptr_t default_stream, thread_stream;

  /* Counts the devices of this kind. *shared receives the state that they share. source NULL means
   * the system's driver. Errors: NO_DEVICE. */
  kjit_status (*count)(const kjit_context *context, const kj_driver_source *source,
                       kj_diagnostics *diagnostics, void **shared, uint32_t *count);
  void (*forget)(void *shared); /* called after the last device of the kind was closed */
  /* Fills in device->info and the fields of this kind. ordinal, kind and shared are already set. If
   * open fails, the caller calls close. */
  kjit_status (*open)(kjit_device *device, kj_diagnostics *diagnostics);
  void (*close)(kjit_device *device);
  /* Makes the device usable again after a fault in a kernel. All memory, code and streams on the
   * device are lost. */
  kjit_status (*reset)(kjit_device *device, kj_diagnostics *diagnostics);
  /* Waits for a stream or for all queued work, and reports faults. Called by kj_synchronize. */
  kjit_status (*synchronize)(kjit_device *device, bool whole, void *stream,
                             kj_diagnostics *diagnostics);

  /* ---- properties ---- */
  kjit_status (*read_attribute)(kjit_device *device, kjit_device_attribute attribute,
                                kj_diagnostics *diagnostics, int64_t *value);
  kjit_status (*read_uuid)(kjit_device *device, kj_diagnostics *diagnostics,
                           unsigned char uuid[16]);
  kjit_status (*read_memory)(kjit_device *device, kj_diagnostics *diagnostics, uint64_t *free_bytes,
                             uint64_t *total_bytes);
  /* Peer access. `device` and `peer` are devices of this kind. */
  kjit_status (*can_access_peer)(kjit_device *device, kjit_device *peer,
                                 kj_diagnostics *diagnostics, bool *can);
  kjit_status (*change_peer_access)(kjit_device *device, kjit_device *peer, bool is_on,
                                    kj_diagnostics *diagnostics);
  kjit_status (*tell_profiler)(kjit_device *device, bool is_start, kj_diagnostics *diagnostics);

  /* ---- memory ---- */
  /* Allocates memory. The caller sets memory and size_bytes; the function fills in the other
   * fields. If no memory is left, it returns DEVICE_MEMORY or MEMORY without a report, so that the
   * caller can free cached memory and try again. */
  kjit_status (*allocate)(kjit_device *device, kj_allocation *allocation,
                          kj_diagnostics *diagnostics);
  /* Frees memory. Returns false if the memory cannot be freed now. */
  bool (*release)(kjit_device *device, const kj_allocation *allocation);
  kjit_status (*copy)(kjit_device *device, const kj_transfer *transfer, void *stream,
                      kj_diagnostics *diagnostics);
  /* Returns the ordinal of the device whose memory contains an address, or -1. May be NULL if
   * addresses do not tell the device. */
  int32_t (*locate)(kjit_device *device, uint64_t address);
  /* Stores a word of 1, 2 or 4 bytes `count` times. */
  kjit_status (*set)(kjit_device *device, uint64_t address, uint32_t bits, uint32_t word_bytes,
                     size_t count, void *stream, kj_diagnostics *diagnostics);
  /* Prefetches managed memory to a device, or to the host if `to` is NULL. */
  kjit_status (*prefetch)(kjit_device *device, uint64_t address, size_t size_bytes, kjit_device *to,
                          void *stream, kj_diagnostics *diagnostics);
  kjit_status (*pin)(kjit_device *device, void *memory, size_t size_bytes,
                     kj_diagnostics *diagnostics);
  kjit_status (*unpin)(kjit_device *device, void *memory, kj_diagnostics *diagnostics);
  /* Allocates host memory that kernels can write; *address is its address on the device.
   * release_mapped frees the memory. */
  kjit_status (*map)(kjit_device *device, size_t size_bytes, kj_diagnostics *diagnostics,
                     void **memory, uint64_t *address);
  void (*release_mapped)(kjit_device *device, void *memory);
  /* Functions that share memory with other processes. address is any address in the allocation. A
   * name is untrusted input, so open_memory checks that the memory has the size that the name
   * contains and cannot shrink. close_memory closes opened memory. */
  kjit_status (*name_memory)(kjit_device *device, uint64_t address, const kj_allocation *allocation,
                             kj_diagnostics *diagnostics, kj_memory_name *name);
  kjit_status (*open_memory)(kjit_device *device, const kj_memory_name *name,
                             kj_diagnostics *diagnostics, kj_allocation *allocation);
  bool (*close_memory)(kjit_device *device, const kj_allocation *allocation);

  /* ---- streams and events ---- */
  kjit_status (*read_priorities)(kjit_device *device, kj_diagnostics *diagnostics, int32_t *least,
                                 int32_t *greatest);
  /* flags: KJIT_STREAM_... A priority out of range is clamped. */
  kjit_status (*create_stream)(kjit_device *device, int32_t priority, uint32_t flags,
                               kj_diagnostics *diagnostics, void **stream);
  void (*destroy_stream)(kjit_device *device, void *stream);
  /* Returns OK if all work of the stream has ended, otherwise NOT_READY without a report. */
  kjit_status (*query_stream)(kjit_device *device, void *stream, kj_diagnostics *diagnostics);
  kjit_status (*call_host)(kjit_device *device, void *stream, void (*function)(void *user),
                           void *user, kj_diagnostics *diagnostics);
  kjit_status (*create_event)(kjit_device *device, bool has_time, kj_diagnostics *diagnostics,
                              void **event);
  void (*destroy_event)(kjit_device *device, void *event);
  kjit_status (*record_event)(kjit_device *device, void *event, void *stream,
                              kj_diagnostics *diagnostics);
  /* The stream belongs to the device; the event may belong to another device of the kind. */
  kjit_status (*wait_event)(kjit_device *device, void *stream, void *event,
                            kj_diagnostics *diagnostics);
  kjit_status (*query_event)(kjit_device *device, void *event, kj_diagnostics *diagnostics);
  kjit_status (*synchronize_event)(kjit_device *device, void *event, kj_diagnostics *diagnostics);
  kjit_status (*read_elapsed)(kjit_device *device, void *first, void *last,
                              kj_diagnostics *diagnostics, uint64_t *time_ns);

  /* ---- captures and graphs; if begin_capture is NULL, kjit itself records and repeats operations
   * ---- */
  kjit_status (*begin_capture)(kjit_device *device, void *stream, kj_diagnostics *diagnostics);
  /* If graph is NULL, the capture is discarded. The status is then ignored, and any context may be
   * current. */
  kjit_status (*end_capture)(kjit_device *device, void *stream, kj_diagnostics *diagnostics,
                             void **graph, size_t *size);
  kjit_status (*ask_capture)(kjit_device *device, void *stream, kj_diagnostics *diagnostics,
                             bool *is_captured);
  void (*destroy_graph)(kjit_device *device, void *graph);
  kjit_status (*instantiate_graph)(kjit_device *device, void *graph, kj_diagnostics *diagnostics,
                                   void **executable);
  /* Replaces the contents of an executable graph by the contents of `graph`. Returns ARGUMENT
   * without a report if their structures differ. */
  kjit_status (*update_graph)(kjit_device *device, void *executable, void *graph,
                              kj_diagnostics *diagnostics);
  kjit_status (*launch_graph)(kjit_device *device, void *executable, void *stream,
                              kj_diagnostics *diagnostics);
  void (*destroy_executable)(kjit_device *device, void *executable);

  /* ---- code ---- */
  /* Loads the code of kernel `name`. outside: the functions that an object may call. The module of
   * the code belongs to the device until unload is called. Errors: COMPILE. */
  kjit_status (*load)(kjit_device *device, const kj_code *code, const char *name,
                      const kj_outside *outside, kj_diagnostics *diagnostics,
                      kj_device_code *loaded);
  /* Unloads a module. The caller guarantees that no queued work uses it. */
  void (*unload)(kjit_device *device, void *module);
  /* Links PTX and other inputs to machine code in a malloc'd buffer. May be NULL if devices of this
   * kind have no linker. */
  kjit_status (*link)(kjit_device *device, const kj_link_input *inputs, size_t count,
                      kj_diagnostics *diagnostics, void **binary, size_t *binary_bytes);
  /* Finds a variable of the module, for access by the host. */
  kjit_status (*find_variable)(kjit_device *device, const kj_device_code *loaded, const char *name,
                               kj_diagnostics *diagnostics, uint64_t *address, size_t *size_bytes);
  /* Makes each thread's stack at least `bytes` large. */
  kjit_status (*provide_stack)(kjit_device *device, uint32_t bytes, kj_diagnostics *diagnostics);
  /* Returns how many blocks of this size a multiprocessor can hold at a time. */
  kjit_status (*count_resident)(kjit_device *device, const kj_device_code *loaded, uint32_t threads,
                                uint64_t dynamic_shared_bytes, kj_diagnostics *diagnostics,
                                uint32_t *blocks);
  /* Returns the one-dimensional block size, at most `most`, with the highest occupancy, or 0 if no
   * block fits. */
  kjit_status (*choose_threads)(kjit_device *device, const kj_device_code *loaded,
                                uint64_t dynamic_shared_bytes, uint32_t most,
                                kj_diagnostics *diagnostics, uint32_t *threads);
  kjit_status (*launch)(kjit_device *device, const kj_device_code *loaded, const kj_code *code,
                        const kj_device_launch *launch, kj_diagnostics *diagnostics);
  /* Called after the driver's launch function (device->start) has returned the error number
   * `result`, or in its place if `result` is KJ_ELSEWHERE. Repeats the launch if this can succeed,
   * and otherwise reports the error. May be NULL if devices of this kind have no fast path. */
  kjit_status (*retry)(kjit_device *device, const kj_device_code *loaded,
                       const kj_device_launch *launch, int result, kj_diagnostics *diagnostics);
  /* Encodes a tensor map in KJ_MAP_BYTES bytes, aligned to KJ_MAP_ALIGNMENT. If the array does not
   * meet a map's requirements, the function sets *why and returns LAUNCH without a report.
   * encode_map is NULL if the device runs no code that uses tensor maps. */
  kjit_status (*encode_map)(kjit_device *device, const kj_tensor_map *map,
                            const kj_map_array *array, kj_diagnostics *diagnostics, void *encoded,
                            const char **why);
} kj_device_operations;

#endif
