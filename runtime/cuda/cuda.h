/* The functions of the CUDA driver's devices; device.c puts them into the table. What each does
 * stands in base/device.h. */
#ifndef KJ_CUDA_CUDA_H
#define KJ_CUDA_CUDA_H

#include "cuda/driver.h"

extern const kj_device_operations kj_cuda_operations;

/* The driver has refused something for want of memory: asks once more when all that is kept was
 * given back. */
#define KJ_ASK_TWICE(result, device, call) \
  do { \
    (result) = (device)->driver->call; \
    if ((result) != KJ_CU_OUT_OF_MEMORY) break; \
    kj_relieve_device(device); \
    (result) = (device)->driver->call; \
  } while (0)

/* One call with the device's context current. */
#define KJ_CALL_IN(status, device, diagnostics, name, ...) \
  do { \
    void *previous_; \
    (status) = kj_enter_device(device, diagnostics, &previous_); \
    if ((status) != KJIT_OK) break; \
    (status) = KJ_DRIVER(device, diagnostics, name, __VA_ARGS__); \
    kj_leave_device(device, previous_); \
  } while (0)

/* ---- memory.c ---- */

kjit_status kj_cuda_allocate(kjit_device *device, kj_allocation *allocation,
                             kj_diagnostics *diagnostics);
bool kj_cuda_release(kjit_device *device, const kj_allocation *allocation);
kjit_status kj_cuda_copy(kjit_device *device, const kj_transfer *transfer, void *stream,
                         kj_diagnostics *diagnostics);
kjit_status kj_cuda_set(kjit_device *device, uint64_t address, uint32_t bits, uint32_t word_bytes,
                        size_t count, void *stream, kj_diagnostics *diagnostics);
kjit_status kj_cuda_prefetch(kjit_device *device, uint64_t address, size_t size_bytes,
                             kjit_device *to, void *stream, kj_diagnostics *diagnostics);
kjit_status kj_cuda_pin(kjit_device *device, void *memory, size_t size_bytes,
                        kj_diagnostics *diagnostics);
kjit_status kj_cuda_unpin(kjit_device *device, void *memory, kj_diagnostics *diagnostics);
kjit_status kj_cuda_map(kjit_device *device, size_t size_bytes, kj_diagnostics *diagnostics,
                        void **memory, uint64_t *address);
void kj_cuda_release_mapped(kjit_device *device, void *memory);
kjit_status kj_cuda_name_memory(kjit_device *device, uint64_t address,
                                const kj_allocation *allocation, kj_diagnostics *diagnostics,
                                kj_memory_name *name);
kjit_status kj_cuda_open_memory(kjit_device *device, const kj_memory_name *name,
                                kj_diagnostics *diagnostics, kj_allocation *allocation);
bool kj_cuda_close_memory(kjit_device *device, const kj_allocation *allocation);

/* ---- stream.c ---- */

kjit_status kj_cuda_read_priorities(kjit_device *device, kj_diagnostics *diagnostics,
                                    int32_t *least, int32_t *greatest);
kjit_status kj_cuda_create_stream(kjit_device *device, int32_t priority, uint32_t flags,
                                  kj_diagnostics *diagnostics, void **stream);
void kj_cuda_destroy_stream(kjit_device *device, void *stream);
kjit_status kj_cuda_query_stream(kjit_device *device, void *stream, kj_diagnostics *diagnostics);
kjit_status kj_cuda_call_host(kjit_device *device, void *stream, void (*function)(void *user),
                              void *user, kj_diagnostics *diagnostics);
kjit_status kj_cuda_create_event(kjit_device *device, bool has_time, kj_diagnostics *diagnostics,
                                 void **event);
void kj_cuda_destroy_event(kjit_device *device, void *event);
kjit_status kj_cuda_record_event(kjit_device *device, void *event, void *stream,
                                 kj_diagnostics *diagnostics);
kjit_status kj_cuda_wait_event(kjit_device *device, void *stream, void *event,
                               kj_diagnostics *diagnostics);
kjit_status kj_cuda_query_event(kjit_device *device, void *event, kj_diagnostics *diagnostics);
kjit_status kj_cuda_synchronize_event(kjit_device *device, void *event,
                                      kj_diagnostics *diagnostics);
kjit_status kj_cuda_read_elapsed(kjit_device *device, void *first, void *last,
                                 kj_diagnostics *diagnostics, uint64_t *time_ns);
kjit_status kj_cuda_begin_capture(kjit_device *device, void *stream, kj_diagnostics *diagnostics);
kjit_status kj_cuda_end_capture(kjit_device *device, void *stream, kj_diagnostics *diagnostics,
                                void **graph, size_t *size);
kjit_status kj_cuda_ask_capture(kjit_device *device, void *stream, kj_diagnostics *diagnostics,
                                bool *is_captured);
void kj_cuda_destroy_graph(kjit_device *device, void *graph);
kjit_status kj_cuda_instantiate_graph(kjit_device *device, void *graph, kj_diagnostics *diagnostics,
                                      void **executable);
kjit_status kj_cuda_update_graph(kjit_device *device, void *executable, void *graph,
                                 kj_diagnostics *diagnostics);
kjit_status kj_cuda_launch_graph(kjit_device *device, void *executable, void *stream,
                                 kj_diagnostics *diagnostics);
void kj_cuda_destroy_executable(kjit_device *device, void *executable);

/* ---- load.c, link.c, occupancy.c, cuda_device.c ---- */

kjit_status kj_cuda_load(kjit_device *device, const kj_code *code, const char *name,
                         const kj_outside *outside, kj_diagnostics *diagnostics,
                         kj_device_code *loaded);
void kj_cuda_unload(kjit_device *device, void *module);
kjit_status kj_cuda_find_variable(kjit_device *device, const kj_device_code *loaded,
                                  const char *name, kj_diagnostics *diagnostics, uint64_t *address,
                                  size_t *size_bytes);
kjit_status kj_cuda_launch_code(kjit_device *device, const kj_device_code *loaded,
                                const kj_code *code, const kj_device_launch *launch,
                                kj_diagnostics *diagnostics);

#endif
