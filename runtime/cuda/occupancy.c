/* How many blocks of a kernel a multiprocessor holds at once, by the driver's occupancy calculator.
 */
#include <stdlib.h>

#include "cuda/cuda.h"

static kjit_status count_resident(kjit_device *device, const kj_device_code *function,
                                  uint32_t threads, uint64_t dynamic_shared_bytes,
                                  kj_diagnostics *diagnostics, uint32_t *blocks)
{
  int count = 0;
  int result =
    device->driver->cuOccupancyMaxActiveBlocksPerMultiprocessor(&count, function->function,
                                                                (int)threads,
                                                                (size_t)dynamic_shared_bytes);
  KJ_TRY(kj_check_kernel_call(device, function->mark->name, result,
                              "cuOccupancyMaxActiveBlocksPerMultiprocessor", diagnostics));
  *blocks = count > 0 ? (uint32_t)count : 0;
  return KJIT_OK;
}

kjit_status kj_count_resident(kjit_device *device, const kj_device_code *function, uint32_t threads,
                              uint64_t dynamic_shared_bytes, kj_diagnostics *diagnostics,
                              uint32_t *blocks)
{
  void *previous;
  KJ_TRY(kj_enter_device(device, diagnostics, &previous));
  kjit_status status =
    count_resident(device, function, threads, dynamic_shared_bytes, diagnostics, blocks);
  kj_leave_device(device, previous);
  return status;
}

/* Sizes in the order in which they are preferred: of those that keep as many threads resident,
 * large blocks leave a multiprocessor half empty while the last of them end, and small ones cost
 * more to start. */
kjit_status kj_choose_threads(kjit_device *device, const kj_device_code *function,
                              uint64_t dynamic_shared_bytes, uint32_t most,
                              kj_diagnostics *diagnostics, uint32_t *threads)
{
  static const uint32_t sizes[] = { 256, 192, 128, 384, 512, 320, 96, 64, 640, 768, 1024, 32 };
  uint32_t best = 0;
  void *previous;
  *threads = 0;
  if (function->max_threads && function->max_threads < most) most = function->max_threads;
  KJ_TRY(kj_enter_device(device, diagnostics, &previous));
  kjit_status status = KJIT_OK;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes && status == KJIT_OK; i++) {
    uint32_t blocks = 0;
    if (sizes[i] > most) continue;
    status = count_resident(device, function, sizes[i], dynamic_shared_bytes, diagnostics, &blocks);
    if (status != KJIT_OK || blocks * sizes[i] <= best) continue;
    best = blocks * sizes[i];
    *threads = sizes[i];
  }
  kj_leave_device(device, previous);
  return status;
}
