/* The shared part of tests with the fake driver: a context with two GPUs, and checks of the objects
 * that are left when it ends. */
#ifndef GPU_TEST_H
#define GPU_TEST_H

#include "kj_test.h"

#include <stdio.h>

#include "code/specialization.h"
#include "fake_compiler.h"
#include "fake_cuda.h"

static inline kjit_context *make_gpu_context(void)
{
  kj_diagnostics diagnostics = { 0 };
  kjit_context *context = make_fake_context();
  /* no compilation in background threads, because the fake driver supports only one thread */
  context->config.variant_limit = 1;
  cuda.current = NULL;
  kjit_status status = kj_use_driver(context, find_fake, NULL, &diagnostics);
  kj_free_diagnostics(&diagnostics);
  if (status == KJIT_OK) return context;
  kjit_destroy_context(context);
  return NULL;
}

static inline int set_up_gpus(void **state)
{
  cuda = (fake_driver){ .devices = 2 };
  fake_delete_all();
  *state = make_gpu_context();
  return *state ? 0 : -1;
}

static inline void expect_nothing_left(void)
{
  assert_int_equal(cuda.modules, 0);
  assert_int_equal(cuda.allocations, 0);
  assert_int_equal(cuda.pinned, 0);
  assert_int_equal(cuda.streams, 0);
  assert_int_equal(cuda.events, 0);
  assert_int_equal(cuda.graphs, 0);
  assert_int_equal(cuda.executables, 0);
  assert_int_equal(cuda.opened, 0);
  assert_int_equal(cuda.retained, 0);
}

static inline int tear_down_gpus(void **state)
{
  kjit_destroy_context(*state);
  expect_nothing_left();
  return 0;
}

static inline kjit_device *gpu(kjit_context *context, int32_t ordinal)
{
  kjit_device *device = NULL;
  assert_int_equal(kjit_get_device(context, KJIT_DEVICE_CUDA, ordinal, &device), KJIT_OK);
  return device;
}

static inline void expect_ok(kjit_context *context, kjit_status status)
{
  if (status != KJIT_OK) print_error("%s\n", last_message(context));
  assert_int_equal(status, KJIT_OK);
}

static inline void expect_refused(kjit_context *context, kjit_status status, kjit_status expected,
                                  const char *message)
{
  if (status == expected && strcmp(last_message(context), message))
    print_error("%s\n", last_message(context));
  assert_int_equal(status, expected);
  assert_string_equal(last_message(context), message);
}

/* Creates an f32[n] in a kind of memory, in the order of a stream. */
static inline kjit_status try_vector(kjit_device *device, kjit_memory memory, int64_t n,
                                     kjit_stream *stream, kjit_array **array)
{
  kjit_array_config config = { .size_bytes = sizeof config };
  config.device = device;
  config.element = KJIT_F32;
  config.rank = 1;
  config.shape = &n;
  config.memory = memory;
  config.stream = stream;
  return kjit_create_array_with(&config, array);
}

static inline kjit_array *make_vector(kjit_device *device, int64_t n, kjit_stream *stream)
{
  kjit_array *array = NULL;
  expect_ok(device->context, try_vector(device, KJIT_MEMORY_DEVICE, n, stream, &array));
  return array;
}

static inline void *address_of(const kjit_array *array) { return kjit_get_tensor(array)->data; }

static inline kjit_memory_statistics memory_of(const kjit_device *device)
{
  kjit_memory_statistics statistics = { .size_bytes = sizeof statistics };
  kjit_get_memory_statistics(device, &statistics);
  return statistics;
}

static inline kjit_tensor host_vector(float *data, int64_t *length)
{
  return (kjit_tensor){
    .data = data, .device_type = 1, .rank = 1, .code = 2, .bits = 32, .lanes = 1, .shape = length
  };
}

/* A kernel for x[i] += 1, and its function, which reads the parameters as fake_plan lays them out
 * with 32-bit offsets. */
static const char add_one[] =
  "kernel add_one(x) {\n  for i in grid_range(len(x)) { x[i] = x[i] + 1 }\n}\n";

static inline void run_add_one(const char *parameters)
{
  struct {
    float *x;
    int32_t length, stride;
  } block;
  memcpy(&block, parameters, sizeof block);
  for (int32_t i = 0; i < block.length; i++) block.x[i * block.stride] += 1;
}

#endif
