/* Running the launches, and timing them. */
#ifndef RUN_MEASURE_H
#define RUN_MEASURE_H

#include "launch.h"

typedef struct run_timing {
  uint64_t first_ns;  /* host time of the first pass over all launches, compilation included */
  uint64_t device_ns; /* from before the first launch to after the last, on the device */
  uint64_t launches;
} run_timing;

/* All launches, `repeat` times; waits for the device. */
bool run_all_launches(tool_error *error, kjit_context *context, kjit_device *device,
                      const run_launches *launches, uint64_t repeat, run_timing *timing);
/* One more repetition to warm up, then `count` timed ones, each of `repeat` times all launches;
 * prints the result. */
bool run_bench(tool_error *error, kjit_context *context, kjit_device *device,
               const run_launches *launches, uint64_t repeat, uint64_t count);

#endif
