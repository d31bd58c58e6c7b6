/* A fake kernel on the CPU that counts its blocks and threads, for tests of launches. */
#ifndef FAKE_KERNEL_H
#define FAKE_KERNEL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>

#include "cpu/cpu.h"
#include "code/specialization.h"
#include "fake_compiler.h"

/* ---- the fake code ---- */

static _Atomic uint64_t blocks_run, threads_run, runs;
static uint32_t last_grid[3], last_block[3];
static uint8_t *seen;     /* counts the visits of each block, if a test sets it */
static uint64_t block_ns; /* time of a block; launches that take long use several threads */

static inline void count_blocks(const void *parameters, const kj_cpu_grid *grid, uint64_t first,
                                uint64_t last, void *scratch)
{
  (void)parameters;
  memcpy(last_grid, grid->grid, sizeof last_grid);
  memcpy(last_block, grid->block, sizeof last_block);
  if (fake.scratch_bytes) memset(scratch, 1, fake.scratch_bytes);
  if ((uintptr_t)scratch % 64) abort();
  for (uint64_t i = first; i < last && seen; i++) seen[i]++;
  uint64_t end_ns = block_ns ? kj_clock_ns() + block_ns * (last - first) : 0;
  while (end_ns && kj_clock_ns() < end_ns) {}
  blocks_run += last - first;
  threads_run += (last - first) * grid->block[0] * grid->block[1] * grid->block[2];
  runs++;
}

static inline int set_up(void **state)
{
  *state = make_fake_context();
  fake.kernel = count_blocks;
  blocks_run = threads_run = runs = 0;
  seen = NULL;
  block_ns = 0;
  memset(last_grid, 0, sizeof last_grid);
  return 0;
}

static inline int tear_down(void **state)
{
  kjit_destroy_context(*state);
  assert_int_equal(fake.loads, fake.unloads);
  assert_int_equal(fake.created, fake.destroyed);
  return 0;
}

static inline kjit_tensor vector(float *data, int64_t *length)
{
  return (kjit_tensor){
    .data = data, .device_type = 1, .rank = 1, .code = 2, .bits = 32, .lanes = 1, .shape = length
  };
}

static inline kjit_launch_config on_cpu(kjit_context *context)
{
  kjit_launch_config config = { .size_bytes = sizeof config };
  assert_int_equal(kjit_get_device(context, KJIT_DEVICE_CPU, 0, &config.device), KJIT_OK);
  return config;
}

static inline void expect_ok(kjit_context *context, kjit_status status)
{
  if (status != KJIT_OK) print_error("%s\n", last_message(context));
  assert_int_equal(status, KJIT_OK);
}

static const char axpy[] =
  "kernel axpy(r, a, x, y) {\n  for i in grid_range(len(r)) { r[i] = a * x[i] + y[i] }\n}\n";

#endif
