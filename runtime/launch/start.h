/* A launch that is decided: its parameters are marshalled, and it is started. */
#ifndef KJ_LAUNCH_START_H
#define KJ_LAUNCH_START_H

#include "code/dispatch.h"

/* Room for the parameter block: structs among the parameters may take more than was counted when
 * the kernel was made, which did not know its types. */
kjit_status kj_make_room(kj_call *call, const kj_code *code, kj_diagnostics *diagnostics);
/* Writes one parameter, or all that the code has, from bound arguments. Addresses of tensor maps
 * and of lines that are printed are written when the launch is started. */
void kj_marshal_parameter(const kj_call *call, const kj_parameter *parameter, char *block);
void kj_marshal(const kj_call *call, const kjit_specialization *specialization);
/* Starts a call that fits its code and whose parameters are marshalled. Tensor maps are encoded
 * from bound arguments. */
kjit_status kj_start(kj_call *call, kjit_specialization *specialization,
                     kj_diagnostics *diagnostics);
/* Fits, marshals and starts a call that is bound, and copies host arrays to a GPU and back. */
kjit_status kj_run_call(kj_call *call, kjit_specialization *specialization,
                        kj_diagnostics *diagnostics);
void kj_count_launch(const kj_call *call);
/* Grid, block and all else of a launch on a GPU. */
kj_cuda_launch kj_describe_launch(const kj_call *call, const kjit_specialization *specialization,
                                  void *stream);

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
