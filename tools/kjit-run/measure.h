/* Runs the steps and measures their time. */
#ifndef RUN_MEASURE_H
#define RUN_MEASURE_H

#include "step.h"

typedef struct run_timing {
  uint64_t first_ns;  /* host time of the first pass over all steps, including compilation */
  uint64_t device_ns; /* device time from the start of the first step to the end of the last step */
  uint64_t steps;
} run_timing;

/* Runs all steps `repeat` times and waits for the device. */
bool run_all_steps(tool_error *error, kjit_context *context, kjit_device *device, run_steps *steps,
                   uint64_t repeat, run_timing *timing);
/* Measured times of repetitions. */
typedef struct run_measurement {
  uint64_t repetitions, median_ns, least_ns; /* median and minimum of a repetition's device time */
  uint64_t lower_ns, upper_ns;               /* lower and upper quartile */
  uint64_t host_ns;                          /* median host time of one step */
  uint64_t bytes; /* bytes that a repetition accesses: the sizes of the arrays that it reads plus
                     the sizes of the arrays that it writes */
} run_measurement;

/* Runs one repetition to warm up, then `count` timed repetitions; with count 0 the number is chosen
 * for a short total time. A repetition runs all steps `repeat` times. */
bool run_measure(tool_error *error, kjit_context *context, kjit_device *device, run_steps *steps,
                 uint64_t repeat, uint64_t count, run_measurement *result);
/* Measures like run_measure, and prints the result. */
bool run_bench(tool_error *error, kjit_context *context, kjit_device *device, run_steps *steps,
               uint64_t repeat, uint64_t count);

#endif
