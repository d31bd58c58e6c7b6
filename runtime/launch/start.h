/* A launch that is decided: its parameters are marshalled, and it is started. */
#ifndef KJ_LAUNCH_START_H
#define KJ_LAUNCH_START_H

#include "cuda/cuda.h"
#include "code/specialization.h"
#include "support/assert.h"
#include "support/host_process.h"

/* Room for the parameter block: structs among the parameters may take more than was counted when
 * the kernel was made, which did not know its types. */
kjit_status kj_make_room(kj_call *call, const kj_code *code, kj_diagnostics *diagnostics);
/* Writes one parameter, or all that the code has, from bound arguments. Addresses of tensor maps
 * and of lines that are printed are written when the launch is started. */
void kj_marshal_parameter(const kj_call *call, const kj_parameter *parameter, char *block);
void kj_marshal(const kj_call *call, const kjit_specialization *specialization);
/* Where a thread that fails leaves word of it. */
void kj_pass_failure_record(const kj_code *code, uint64_t address, char *block);
/* Starts a call that fits its code and whose parameters are marshalled. Tensor maps are encoded
 * from bound arguments. */
kjit_status kj_start(const kj_call *call, const kjit_specialization *specialization,
                     kj_diagnostics *diagnostics);
/* Fits and marshals a call that is bound; and starts it, and copies host arrays to a GPU and back.
 */
kjit_status kj_fit_call(kj_call *call, kjit_specialization *specialization,
                        kj_diagnostics *diagnostics);
/* Fits, marshals and starts a call that is bound, and copies host arrays to a GPU and back. */
kjit_status kj_run_call(kj_call *call, kjit_specialization *specialization,
                        kj_diagnostics *diagnostics);
void kj_count_launch(const kj_call *call);
/* Grid, block and all else, for the device; stream: its native one. */
kj_device_launch kj_describe_launch(const kj_call *call, const kjit_specialization *specialization,
                                    void *stream);

/* ---- stage.c ---- */

typedef struct kj_staging kj_staging;
/* Copies host arrays to the GPU and points bound->target there; NULL staging: none. The device's
 * context is current. */
kjit_status kj_stage_in(kj_call *call, void *stream, kj_diagnostics *diagnostics,
                        kj_staging **staging);
/* Waits, copies back what was written. */
kjit_status kj_stage_out(kj_call *call, void *stream, kj_staging *staging,
                         kj_diagnostics *diagnostics);
void kj_free_staging(kj_call *call, kj_staging *staging);

/* ---- plain launches: of code whose launch has nothing beside its shape and parameters ---- */

/* The shape of the call, which was fitted. */
void kj_take_shape(kj_known_shape *shape, const kjit_specialization *specialization,
                   const kj_call *call);
/* The driver has refused the launch with a CUresult. */
kjit_status kj_retry_plainly(const kjit_specialization *specialization, const kj_known_shape *shape,
                             kjit_stream *stream, char *parameters, int result);

static inline bool kj_is_captured(const kjit_stream *stream)
{
  return stream && atomic_load_explicit(&stream->capture, memory_order_relaxed);
}

/* What may have changed since an earlier launch: the device was lost or reset, the process is a
 * child, the stream is another device's or was lost with it. */
static inline bool kj_is_usable(const kjit_device *device, uint32_t generation, uint32_t forks,
                                const kjit_stream *stream)
{
  return forks == atomic_load_explicit(&kj_forks, memory_order_relaxed) &&
         generation == atomic_load_explicit(&device->generation, memory_order_relaxed) &&
         !atomic_load_explicit(&device->lost, memory_order_acquire) &&
         (!stream || (stream->object.device == device && stream->object.generation == generation));
}

/* The shortest call of the driver. The specialization is held. */
static inline kjit_status kj_start_plainly(const kjit_specialization *specialization,
                                           const kj_known_shape *shape, kjit_stream *stream,
                                           char *parameters)
{
  enum { BUFFER_POINTER = 1, BUFFER_SIZE = 2 };
  const kj_device_code *code = &specialization->cuda;
  const uint32_t *grid = shape->grid, *block = shape->block;
  kjit_device *device = specialization->device;
  void *native = stream ? stream->native : NULL;
  size_t parameter_bytes = shape->parameter_bytes;
  void *block_and_size[] = { (void *)(uintptr_t)BUFFER_POINTER, parameters,
                             (void *)(uintptr_t)BUFFER_SIZE, &parameter_bytes, NULL };
  KJ_ASSERT(code->function != KJ_UNLOADED);
  kj_mark_launch(device, code->mark, native);
  int result = device->driver->cuLaunchKernel(code->function, grid[0], grid[1], grid[2], block[0],
                                              block[1], block[2], shape->shared_bytes, native, NULL,
                                              parameter_bytes ? block_and_size : NULL);
  return __builtin_expect(result, 0)
           ? kj_retry_plainly(specialization, shape, stream, parameters, result)
           : KJIT_OK;
}

#endif
