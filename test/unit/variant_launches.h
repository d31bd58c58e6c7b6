/* Launches of one kernel that differ in facts, for tests of its variants. */
#ifndef VARIANT_LAUNCHES_H
#define VARIANT_LAUNCHES_H

#include "kj_test.h"

#include <kjit/code.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "code/specialization.h"
#include "fake_compiler.h"

static const char axpy[] = "kernel axpy(r, a, x, y) {\n  for i in grid_range(len(r)) { r[i] = a * "
                           "x[i] + y[i] }\n}\nkernel other(r) { r[0] = 1 }\n";

static inline void do_nothing(const void *parameters, const kj_cpu_grid *grid, uint64_t first,
                              uint64_t last, void *scratch)
{
  (void)parameters, (void)grid, (void)first, (void)last, (void)scratch;
}

static kjit_config config_of_test;

static inline kjit_context *make_context(void)
{
  kj_diagnostics diagnostics = { 0 };
  kjit_context *context = NULL;
  memset(&fake, 0, sizeof fake);
  fake.kernel = do_nothing;
  if (kjit_create_context(&config_of_test, &context) != KJIT_OK ||
      kj_use_compiler(context, &fake_interface, &diagnostics) != KJIT_OK)
    abort();
  return context;
}

static inline int set_up(void **state)
{
  config_of_test = (kjit_config){ .size_bytes = sizeof config_of_test };
  config_of_test.cache_directory = "";
  *state = make_context();
  return 0;
}

static inline int tear_down(void **state)
{
  kjit_destroy_context(*state);
  assert_int_equal(fake.loads, fake.unloads);
  return 0;
}

/* Replaces the context by one with the test's configuration. */
static inline void replace_context(void **state)
{
  kjit_destroy_context(*state);
  *state = make_context();
}

static inline void expect_ok(kjit_context *context, kjit_status status)
{
  if (status != KJIT_OK) print_error("%s\n", last_message(context));
  assert_int_equal(status, KJIT_OK);
}

_Alignas(64) static float data[256];
static int64_t length[] = { 16 };

/* Launches with four vectors that begin 16 elements apart, moved by `offset` elements; with an
 * offset of 1 they are not aligned. */
static inline kjit_status launch(kjit_context *context, kjit_kernel *kernel, int r_offset, int x_at,
                                 uint32_t flags)
{
  kjit_tensor r = { .data = data + r_offset,
                    .device_type = 1,
                    .rank = 1,
                    .code = 2,
                    .bits = 32,
                    .lanes = 1,
                    .shape = length },
              x = r, y = r;
  kjit_launch_config config = { .size_bytes = sizeof config, .flags = flags };
  x.data = data + x_at;
  y.data = data + 128;
  kjit_arg arguments[] = { kjit_arg_tensor(&r), kjit_arg_f32(2), kjit_arg_tensor(&x),
                           kjit_arg_tensor(&y) };
  if (kjit_get_device(context, KJIT_DEVICE_CPU, 0, &config.device) != KJIT_OK)
    return KJIT_ERROR_NO_DEVICE;
  return kjit_launch(kernel, &config, arguments, 4);
}

/* Maximum time for an event of another thread. Even on a busy machine, only a defect takes so
 * long. */
enum { PATIENCE_MS = 100000 };

static inline void wait_for_loads(int count)
{
  for (int i = 0; i < PATIENCE_MS && fake.loads < count; i++)
    nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
  assert_int_equal(fake.loads, count);
}

static inline kjit_specialization_info info_of(kjit_kernel *kernel, size_t index)
{
  kjit_specialization_info info = { .size_bytes = sizeof info };
  kjit_specialization *specialization = kjit_get_specialization(kernel, index);
  assert_non_null(specialization);
  kjit_get_specialization_info(specialization, &info);
  return info;
}

static const char f32_signature[] = "f32[:] C, f32, f32[:] C, f32[:] C",
                  f64_signature[] = "f64[:] C, f64, f64[:] C, f64[:] C";

static inline kjit_device *cpu_of(kjit_context *context)
{
  kjit_device *device = NULL;
  assert_int_equal(kjit_get_device(context, KJIT_DEVICE_CPU, 0, &device), KJIT_OK);
  return device;
}

#endif
