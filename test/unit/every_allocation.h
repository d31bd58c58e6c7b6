/* The framework of tests in which every allocation of an application's calls fails in turn, on a
 * GPU and on the CPU. The error names the call, no memory is leaked, and the same call works
 * afterwards. */
#ifndef EVERY_ALLOCATION_H
#define EVERY_ALLOCATION_H

#include <kjit/code.h>

#include "../seed.h"
#include "failing_memory.h"
#include "gpu_test.h"

/* ---- the driver and the compiler of the tests, whose own allocations do not fail ---- */

static kjit_status compile_paused(kj_compiler *compiler, const kj_compile_request *request,
                                  kj_diagnostics *diagnostics, kj_code *code)
{
  paused = true;
  kjit_status status = fake_interface.compile(compiler, request, diagnostics, code);
  paused = false;
  return status;
}

static void run_nothing(const void *parameters, const kj_cpu_grid *grid, uint64_t first,
                        uint64_t last, void *scratch)
{
  (void)parameters, (void)grid, (void)first, (void)last, (void)scratch;
}

/* Opens a context with the driver and the compiler of the tests, its GPU and its CPU. */
static kjit_context *open_devices(kjit_device *devices[2])
{
  static kj_compiler_interface interface;
  kj_diagnostics diagnostics = { 0 };
  cuda = (fake_driver){ .devices = 1 };
  kjit_context *context = make_fake_context();
  fake.kernel = run_nothing;
  interface = fake_interface;
  interface.compile = compile_paused;
  assert_int_equal(kj_use_compiler(context, &interface, &diagnostics), KJIT_OK);
  assert_int_equal(kj_use_driver(context, find_fake, NULL, &diagnostics), KJIT_OK);
  devices[0] = gpu(context, 0);
  expect_ok(context, kjit_get_device(context, KJIT_DEVICE_CPU, 0, &devices[1]));
  return context;
}

static void close_devices(kjit_context *context)
{
  kjit_destroy_context(context);
  assert_int_equal(cuda.allocations + cuda.pinned + cuda.modules, 0);
}

/* ---- one allocation fails ---- */

typedef struct objects objects; /* defined by the test; the first member is the context */
typedef kjit_status host_step(objects *o);

typedef struct host_work {
  objects *objects;
  void (*open)(objects *o);
  void (*close)(objects *o);
  host_step *const *steps;
  size_t count;
  int times; /* number of times that each step runs */
} host_work;

static void expect_told(kjit_context *context, size_t step, long number, kjit_status status)
{
  char *text = kjit_copy_diagnostics_text(context);
  if (status != KJIT_ERROR_MEMORY || !text || !strstr(text, "memory"))
    print_error("step %zu, allocation %ld: %s: %s\n", step, number, kjit_get_status_name(status),
                text ? text : "");
  assert_int_equal(status, KJIT_ERROR_MEMORY);
  assert_non_null(text);
  assert_non_null(strstr(text, "memory"));
  free(text);
}

/* Lets an allocation fail. Returns false if the work made fewer allocations, so none has failed. */
static bool try_allocation(const host_work *work, long number)
{
  long before = live;
  work->open(work->objects);
  kjit_context *context = *(kjit_context **)work->objects;
  has_failed = false;
  left = number;
  for (size_t i = 0; i < work->count; i++)
    for (int time = 0; time < work->times; time++) {
      kjit_status status = work->steps[i](work->objects);
      long rest = left;
      left = 0;
      if (status != KJIT_OK) {
        expect_told(context, i, number, status);
        expect_ok(context, work->steps[i](work->objects)); /* nothing is broken */
      }
      left = rest;
    }
  left = 0;
  work->close(work->objects);
  long blocks = count_left(number, before);
  if (blocks) print_error("allocation %ld: %ld blocks are left\n", number, blocks);
  assert_int_equal(blocks, 0);
  return has_failed;
}

/* least: minimum number of allocations, so that the test cannot pass without trying any. stride:
 * one of `stride` allocations is tried, another one in each run. */
static void try_every_allocation(const host_work *work, long least, long stride)
{
  long number = 1 + kj_draw_seed() % stride;
  is_tester = true;
  for (int i = 0; i < 2; i++) assert_false(try_allocation(work, 0));
  while (try_allocation(work, number)) number += stride;
  assert_true(number > least);
}

#endif
