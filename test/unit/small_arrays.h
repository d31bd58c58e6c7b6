/* Small arrays on the CPU, for the tests of arrays. */
#ifndef SMALL_ARRAYS_H
#define SMALL_ARRAYS_H

#include "gpu_test.h"

static inline kjit_device *cpu_of(kjit_context *context)
{
  kjit_device *device;
  expect_ok(context, kjit_get_device(context, KJIT_DEVICE_CPU, 0, &device));
  return device;
}

static inline kjit_array *make_matrix(kjit_device *device, kjit_layout layout, kjit_memory memory)
{
  static const int64_t shape[] = { 3, 4 };
  kjit_array *array = NULL;
  kjit_array_config config = { .size_bytes = sizeof config };
  config.device = device;
  config.element = KJIT_F32;
  config.rank = 2;
  config.shape = shape;
  config.layout = layout;
  config.memory = memory;
  expect_ok(device->context, kjit_create_array_with(&config, &array));
  return array;
}

/* Creates an array with the elements 0, 1, 2 ... in row-major order. */
static inline kjit_array *make_counted(kjit_device *device, kjit_layout layout)
{
  float values[12];
  kjit_array *array = make_matrix(device, layout, KJIT_MEMORY_DEVICE);
  for (int i = 0; i < 12; i++) values[i] = (float)i;
  expect_ok(device->context, kjit_copy_from_host(array, values, sizeof values, NULL));
  return array;
}

static inline void expect_elements(kjit_array *array, const float *expected, size_t count)
{
  float found[64];
  expect_ok(array->object.device->context,
            kjit_copy_to_host(array, found, count * sizeof *found, NULL));
  assert_memory_equal(found, expected, count * sizeof *found);
}
#define EXPECT_ELEMENTS(array, ...) \
  expect_elements(array, (const float[]){ __VA_ARGS__ }, \
                  sizeof((float[]){ __VA_ARGS__ }) / sizeof(float))

#endif
