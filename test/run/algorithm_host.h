/* Shared by test programs that call algorithms. They run on the GPU if the program gets the
 * argument `cuda`. */
#ifndef ALGORITHM_HOST_H
#define ALGORITHM_HOST_H

#include "../seed.h"
#include "functions.h"

static kjit_device *device;

/* Creates an array. If from is NULL, its elements are not set. */
static inline kjit_array *make_array_of(kjit_type type, const int64_t *shape, uint32_t rank,
                                        const void *from, size_t size_bytes)
{
  kjit_array *array = NULL;
  REQUIRE(kjit_create_array(device, type, shape, rank, &array) == KJIT_OK);
  if (from) REQUIRE(kjit_copy_from_host(array, from, size_bytes, NULL) == KJIT_OK);
  return array;
}

static inline kjit_array *make_array(kjit_type type, const int64_t *shape, uint32_t rank)
{
  return make_array_of(type, shape, rank, NULL, 0);
}

/* Creates an array with one axis. */
static inline kjit_array *make_line_of(kjit_type type, int64_t extent, const void *from,
                                       size_t size_bytes)
{
  return make_array_of(type, &extent, 1, from, size_bytes);
}

static inline kjit_array *make_line(kjit_type type, int64_t extent)
{
  return make_array_of(type, &extent, 1, NULL, 0);
}

static inline void read_array(const kjit_array *array, void *to, size_t size_bytes)
{
  REQUIRE(kjit_copy_to_host(array, to, size_bytes, NULL) == KJIT_OK);
}

/* Returns the only element of an array. */
static inline int64_t integer_in(const kjit_array *array)
{
  int64_t value = -1;
  read_array(array, &value, sizeof value);
  return value;
}

static kjit_device_kind chosen_kind = KJIT_DEVICE_CPU;
static void (*chosen_tests)(void);

static void run_on_device(void)
{
  srand(kj_draw_seed());
  REQUIRE(kjit_get_device(context, chosen_kind, 0, &device) == KJIT_OK);
  if (device) chosen_tests();
}

/* Runs `tests`, with the device and with new random numbers in each run, and returns the exit
 * status of the program. */
static int run_algorithm_tests(int argc, char **argv, void (*tests)(void))
{
  if (argc > 1 && !strcmp(argv[argc - 1], "cuda")) chosen_kind = KJIT_DEVICE_CUDA;
  chosen_tests = tests;
  return run_tests(run_on_device);
}

#endif
