/* Algorithms when memory is exhausted. With the driver and the compiler of the tests, on a GPU and
 * on the CPU, every allocation of a call that compiles fails in turn. The error names the call, no
 * memory is leaked, and the same call works afterwards. With the real compiler, on the CPU, every
 * allocation of a call whose code exists fails in turn. The call gives the correct result, or an
 * error with unchanged results. Temporary storage that is one byte too small is rejected. */
#include <stdio.h>

#include "built_compiler.h"
#include "every_allocation.h"
#include "many_calls.h"

/* A run tries a quarter of the allocations, another quarter in each run. Builds with sanitizers
 * take twenty times as long and try fewer. Calls on the CPU try fewer as well, because nearly all
 * of their allocations occur in calls on a GPU, too. */
#if HAS_OWN_MALLOC
enum { STRIDE = 4, ON_CPU = 2, OF_READY = 4 };
#else
enum { STRIDE = 1024, ON_CPU = 1, OF_READY = 16 };
#endif

/* ---- every allocation of a call that compiles ---- */

struct objects {
  kjit_context *context;
  many_calls calls;
};

/* number of tried calls; the device, 0 for the GPU and 1 for the CPU */
static int tried, tried_device;

static void open_objects(objects *o)
{
  kjit_device *devices[2];
  o->context = open_devices(devices);
  open_calls(&o->calls, o->context, devices[tried_device]);
}

static void close_objects(objects *o)
{
  close_calls(&o->calls);
  close_devices(o->context);
}

static kjit_status call_it(objects *o) { return calls[tried].call(&o->calls); }

static void test_every_allocation(void **state)
{
  (void)state;
  static host_step *const steps[] = { call_it };
  objects o;
  const host_work work = { &o, open_objects, close_objects, steps, 1, 2 };
  for (tried_device = 0; tried_device < 2; tried_device++)
    for (tried = 0; tried < CALLS; tried++) {
      print_message("%s on the %s\n", calls[tried].name, tried_device ? "CPU" : "GPU");
      try_every_allocation(&work, 10, tried_device ? ON_CPU * STRIDE : STRIDE);
    }
}

/* ---- every allocation of a call whose code exists ---- */

typedef struct real {
  kjit_context *context;
  many_calls calls;
  size_t bytes; /* of all results */
  unsigned char *before, *right, *now;
} real;

static void copy_results(const real *r, unsigned char *to)
{
  for (int i = FIRST_RESULT; i < ARRAYS; i++) {
    size_t bytes = bytes_of(r->calls.arrays[i]);
    memcpy(to, address_of(r->calls.arrays[i]), bytes);
    to += bytes;
  }
}

static void reset_results(const real *r)
{
  for (int i = FIRST_RESULT; i < ARRAYS; i++)
    memset(address_of(r->calls.arrays[i]), 0x41, bytes_of(r->calls.arrays[i]));
}

static void expect_results(real *r, const unsigned char *expected)
{
  expect_ok(r->context, kjit_synchronize_device(r->calls.device));
  copy_results(r, r->now);
  assert_memory_equal(r->now, expected, r->bytes);
}

static int open_real(void **state)
{
  static real r;
  kjit_device *cpu = NULL;
  kjit_config config = { .size_bytes = sizeof config };
  config.cache_directory = "";
  config.compiler_path = find_built_compiler();
  r = (real){ 0 };
  is_tester = true;
  assert_int_equal(kjit_create_context(&config, &r.context), KJIT_OK);
  expect_ok(r.context, kjit_get_device(r.context, KJIT_DEVICE_CPU, 0, &cpu));
  open_calls(&r.calls, r.context, cpu);
  for (int i = FIRST_RESULT; i < ARRAYS; i++) r.bytes += bytes_of(r.calls.arrays[i]);
  r.before = malloc(r.bytes);
  r.right = malloc(r.bytes);
  r.now = malloc(r.bytes);
  reset_results(&r);
  copy_results(&r, r.before);
  *state = &r;
  return r.before && r.right && r.now ? 0 : -1;
}

static int close_real(void **state)
{
  real *r = *state;
  close_calls(&r->calls);
  kjit_destroy_context(r->context);
  free(r->before);
  free(r->right);
  free(r->now);
  return 0;
}

/* Stores the result of the call without failures. */
static void find_right(real *r, const many_call *call)
{
  reset_results(r);
  expect_ok(r->context, call->call(&r->calls));
  expect_ok(r->context, kjit_synchronize_device(r->calls.device));
  copy_results(r, r->right);
  assert_memory_not_equal(r->right, r->before, r->bytes);
}

/* Lets an allocation fail. Returns false if the call made fewer allocations, so none has failed. */
static bool fail_once(real *r, const many_call *call, long number)
{
  reset_results(r);
  has_failed = false;
  left = number;
  kjit_status status = call->call(&r->calls);
  left = 0;
  if (status == KJIT_OK) {
    expect_results(r, r->right);
    return has_failed;
  }
  expect_told(r->context, (size_t)(call - calls), number, status);
  if (!call->is_several) expect_results(r, r->before);
  expect_ok(r->context, call->call(&r->calls));
  expect_results(r, r->right);
  return true;
}

static void fail_each(real *r, const many_call *call)
{
  long number = 1;
  for (int i = 0; i < 2; i++) find_right(r, call);
  while (fail_once(r, call, number)) number += OF_READY;
  print_message("%s: %ld\n", call->name, number - 1);
}

static void test_results(void **state)
{
  for (int i = 0; i < CALLS; i++) fail_each(*state, &calls[i]);
}

/* ---- too little temporary storage ---- */

static kjit_array *make_work(const real *r, uint64_t bytes)
{
  int64_t extent = (int64_t)bytes;
  kjit_array *work = NULL;
  expect_ok(r->context, kjit_create_array(r->calls.device, KJIT_U8, &extent, 1, &work));
  return work;
}

static void try_less_work(real *r, const many_call *call, uint64_t bytes)
{
  char ending[120];
  snprintf(ending, sizeof ending, "%llu bytes, got %llu", (unsigned long long)bytes,
           (unsigned long long)bytes - 1);
  reset_results(r);
  r->calls.options.work = make_work(r, bytes - 1);
  kjit_status status = call->call(&r->calls);
  assert_int_equal(status, KJIT_ERROR_ARGUMENT);
  assert_non_null(
    strstr(last_message(r->context), "options.work must be a one-dimensional array of u8"));
  assert_non_null(strstr(last_message(r->context), ending));
  expect_results(r, r->before);
  kjit_release_array(r->calls.options.work);
  r->calls.options.work = make_work(r, bytes);
  /* calls with storage of the application are not kept, so each call builds its steps again */
  fail_each(r, call);
  kjit_release_array(r->calls.options.work);
  r->calls.options.work = NULL;
}

static void test_work(void **state)
{
  real *r = *state;
  int count = 0;
  for (int i = 0; i < CALLS; i++) {
    const many_call *call = &calls[i];
    uint64_t bytes = 0;
    find_right(r, call);
    if (!call->takes_work) continue;
    reset_results(r);
    r->calls.options.work_bytes = &bytes;
    expect_ok(r->context, call->call(&r->calls));
    r->calls.options.work_bytes = NULL;
    expect_results(r, r->before);
    print_message("%s: %llu bytes\n", call->name, (unsigned long long)bytes);
    count += bytes > 0;
    if (bytes) try_less_work(r, call, bytes);
  }
  assert_true(count >= 5);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_results, open_real, close_real),
    cmocka_unit_test_setup_teardown(test_work, open_real, close_real),
    cmocka_unit_test(test_every_allocation),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
