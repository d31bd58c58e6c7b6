/* Launches that the fast path runs, for the tests of the fast path. */
#ifndef FAST_LAUNCHES_H
#define FAST_LAUNCHES_H

#include "gpu_test.h"

static inline int set_up(void **state)
{
  int failure = set_up_gpus(state);
  fake.has_tight_plans = true;
  return failure;
}

enum { TIMES = 3, N = 64 };

static inline void launch_often(kjit_kernel *kernel, const kjit_launch_config *config,
                                const kjit_arg *arguments, size_t count)
{
  for (int i = 0; i < TIMES; i++)
    expect_ok(kernel->context, kjit_launch(kernel, config, arguments, count));
}

static inline kjit_specialization *specialization_of(kjit_kernel *kernel, size_t index)
{
  kjit_specialization *found = kjit_get_specialization(kernel, index);
  if (!found) fail_msg("there is no specialization %zu", index);
  return found;
}

static inline bool is_direct(kjit_kernel *kernel, size_t index)
{
  return specialization_of(kernel, index)->table != NULL;
}

static inline uint64_t launches_of(kjit_kernel *kernel, size_t index)
{
  return kj_count_launches(specialization_of(kernel, index));
}

static inline kjit_array *make_array(kjit_device *device, kjit_memory memory)
{
  kjit_array *array = NULL;
  expect_ok(device->context, try_vector(device, memory, N, NULL, &array));
  return array;
}

static inline void run_nothing(const void *parameters, const kj_cpu_grid *grid, uint64_t first,
                               uint64_t last, void *scratch)
{
  (void)parameters, (void)grid, (void)first, (void)last, (void)scratch;
}

#endif
