/* Launches on a GPU of the fake driver, for tests of launch configurations. */
#ifndef GPU_LAUNCHES_H
#define GPU_LAUNCHES_H

#include "kj_test.h"

#include <stdio.h>

#include "fake_compiler.h"
#include "fake_cuda.h"

static inline kjit_context *make_context(void)
{
  kj_diagnostics diagnostics = { 0 };
  kjit_context *context = make_fake_context();
  cuda.current = NULL;
  if (kj_use_driver(context, find_fake, NULL, &diagnostics) != KJIT_OK) abort();
  return context;
}

static inline int set_up_devices(void **state, int devices)
{
  cuda = (fake_driver){ .devices = devices };
  *state = make_context();
  fake.has_tight_plans = true;
  return 0;
}
static inline int set_up(void **state) { return set_up_devices(state, 1); }
static inline int set_up_two(void **state) { return set_up_devices(state, 2); }

static inline int tear_down(void **state)
{
  kjit_destroy_context(*state);
  assert_int_equal(cuda.modules, 0);
  fake_delete_all();
  return 0;
}

static inline kjit_device *gpu(kjit_context *context)
{
  kjit_device *device = NULL;
  assert_int_equal(kjit_get_device(context, KJIT_DEVICE_CUDA, 0, &device), KJIT_OK);
  return device;
}

static inline void expect_ok(kjit_context *context, kjit_status status)
{
  if (status != KJIT_OK) print_error("%s\n", last_message(context));
  assert_int_equal(status, KJIT_OK);
}

_Alignas(256) static float data[4096];
static int64_t length[] = { 1000000 };

static inline kjit_tensor vector(void)
{
  return (kjit_tensor){
    .data = data, .device_type = 2, .rank = 1, .code = 2, .bits = 32, .lanes = 1, .shape = length
  };
}

static const char source[] =
  "kernel fill(r) { for i in grid_range(len(r)) { r[i] = 1 } }\n"
  "kernel set(r) { r[threadIdx.x] = 1 }\n"
  "kernel bounded(r) @launch_bounds(128) { for i in grid_range(len(r)) { r[i] = 1 } }\n";

static inline kjit_status launch(kjit_context *context, kjit_kernel *kernel,
                                 kjit_launch_config config)
{
  kjit_tensor r = vector();
  kjit_arg argument = kjit_arg_tensor(&r);
  config.device = gpu(context);
  return kjit_launch(kernel, &config, &argument, 1);
}

static inline void expect_refused(kjit_context *context, kjit_kernel *kernel,
                                  kjit_launch_config config, const char *message)
{
  int launches = cuda.launches;
  assert_int_equal(launch(context, kernel, config), KJIT_ERROR_LAUNCH);
  assert_string_equal(last_message(context), message);
  assert_int_equal(cuda.launches, launches);
}

#endif
