/* The stack of a GPU's threads: where functions call themselves, the driver cannot know how much of
 * it they need. */
#include "cuda/cuda.h"

enum { LIMIT_STACK_SIZE = 0 }; /* CUlimit */

static kjit_status provide(kjit_device *device, uint32_t bytes, kj_diagnostics *diagnostics)
{
  size_t current = 0;
  KJ_TRY(KJ_DRIVER(device, diagnostics, cuCtxGetLimit, &current, LIMIT_STACK_SIZE));
  if (current >= bytes) return KJIT_OK;
  int result;
  KJ_ASK_TWICE(result, device, cuCtxSetLimit(LIMIT_STACK_SIZE, bytes));
  return kj_check_driver(device->driver, device, result, "cuCtxSetLimit", diagnostics);
}

kjit_status kj_provide_stack(kjit_device *device, uint32_t bytes, kj_diagnostics *diagnostics)
{
  void *previous;
  KJ_TRY(kj_enter_device(device, diagnostics, &previous));
  kjit_status status = provide(device, bytes, diagnostics);
  kj_leave_device(device, previous);
  return status;
}
