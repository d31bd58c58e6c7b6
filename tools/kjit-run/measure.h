/* Running the steps, and timing them. */
#ifndef RUN_MEASURE_H
#define RUN_MEASURE_H

#include "step.h"

typedef struct run_timing {
  uint64_t first_ns;  /* host time of the first pass over all steps, compilation included */
  uint64_t device_ns; /* from before the first step to after the last, on the device */
  uint64_t steps;
} run_timing;

/* All steps, `repeat` times; waits for the device. */
bool run_all_steps(tool_error *error, kjit_context *context, kjit_device *device, run_steps *steps,
                   uint64_t repeat, run_timing *timing);
/* What repetitions have taken. */
typedef struct run_measurement {
  uint64_t repetitions, median_ns, least_ns; /* of one repetition, on the device */
  uint64_t lower_ns, upper_ns;               /* the quartiles */
  uint64_t host_ns;                          /* median, of one step, on the host */
  uint64_t bytes; /* of a repetition: arrays that are read, plus those that are written */
} run_measurement;

/* One repetition to warm up, then `count` timed ones, or, with count 0, as many as take a moment;
 * each of `repeat` times all steps. */
bool run_measure(tool_error *error, kjit_context *context, kjit_device *device, run_steps *steps,
                 uint64_t repeat, uint64_t count, run_measurement *result);
/* One more repetition to warm up, then `count` timed ones, each of `repeat` times all steps;
 * prints the result. */
bool run_bench(tool_error *error, kjit_context *context, kjit_device *device, run_steps *steps,
               uint64_t repeat, uint64_t count);

#endif
