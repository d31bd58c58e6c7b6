/* A launch that is decided: its parameters are marshalled, and it is started. */
#ifndef KJ_LAUNCH_START_H
#define KJ_LAUNCH_START_H

#include "cuda/cuda.h"
#include "code/specialization.h"

/* Room for the parameter block: structs among the parameters may take more than was counted when
 * the kernel was made, which did not know its types. */
kjit_status kj_make_room(kj_call *call, const kj_code *code, kj_diagnostics *diagnostics);
/* Writes one parameter, or all that the code has, from bound arguments. Addresses of tensor maps
 * and of lines that are printed are written when the launch is started. */
void kj_marshal_parameter(const kj_call *call, const kj_parameter *parameter, char *block);
void kj_marshal(const kj_call *call, const kjit_specialization *specialization);
/* Starts a call that fits its code and whose parameters are marshalled. Tensor maps are encoded
 * from bound arguments. */
kjit_status kj_start(const kj_call *call, const kjit_specialization *specialization,
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

/* ---- plain launches ---- */

/* The shortest call of the driver, for code whose launch has no attributes. Gives a CUresult. */
static inline int kj_launch_function(kjit_device *device, void *function, kj_launch_mark *mark,
                                     const uint32_t grid[3], const uint32_t block[3],
                                     uint32_t shared_bytes, void *stream, void *parameters,
                                     size_t parameter_bytes)
{
  enum { BUFFER_POINTER = 1, BUFFER_SIZE = 2 };
  void *block_and_size[] = { (void *)(uintptr_t)BUFFER_POINTER, parameters,
                             (void *)(uintptr_t)BUFFER_SIZE, &parameter_bytes, NULL };
  kj_mark_launch(device, mark, stream);
  return device->driver->cuLaunchKernel(function, grid[0], grid[1], grid[2], block[0], block[1],
                                        block[2], shared_bytes, stream, NULL,
                                        parameter_bytes ? block_and_size : NULL);
}

#endif
