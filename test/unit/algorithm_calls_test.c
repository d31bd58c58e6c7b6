/* Repeated calls of algorithms: their driver calls, the arrays that their kernels receive, and when
 * temporary storage is cleared. */
#include <kjit/algorithm.h>
#include <kjit/code.h>

#include "gpu_test.h"

enum { N = 5000 };

typedef struct objects {
  kjit_context *context;
  kjit_module *module;
  kjit_device *device;
  kjit_array *x, *y, *r, *s;
} objects;

static kjit_array *make(const objects *o, int64_t extent)
{
  kjit_array *array;
  expect_ok(o->context, kjit_create_array(o->device, KJIT_F32, &extent, 1, &array));
  return array;
}

static objects open_objects(void)
{
  cuda = (fake_driver){ .devices = 1 };
  objects o = { .context = make_gpu_context() };
  o.device = gpu(o.context, 0);
  o.module = parse(o.context, "func both(a, b) { return a + b }\n");
  o.x = make(&o, N);
  o.y = make(&o, N);
  o.r = make(&o, 1);
  o.s = make(&o, 1);
  return o;
}

static void close_objects(objects *o)
{
  kjit_array *arrays[] = { o->x, o->y, o->r, o->s };
  for (int i = 0; i < 4; i++) kjit_release_array(arrays[i]);
  kjit_release_module(o->module);
  kjit_destroy_context(o->context);
  expect_nothing_left();
}

static kjit_status reduce(const objects *o, kjit_array *to, kjit_array *from, kjit_stream *stream)
{
  kjit_operand r = kjit_operand_array(to), x = kjit_operand_array(from);
  kjit_operator both = { 0 };
  kjit_algorithm_options options = { .size_bytes = sizeof options };
  options.stream = stream;
  expect_ok(o->context, kjit_get_function(o->module, "both", &both.function));
  return kjit_reduce(o->context, &r, &x, &both, &options);
}

static kjit_plan *plan(const objects *o, kjit_stream *stream)
{
  kjit_operand r = kjit_operand_array(o->r), x = kjit_operand_array(o->x);
  kjit_operator add = { .name = "add" };
  kjit_algorithm_options options = { .size_bytes = sizeof options };
  kjit_plan *made = NULL;
  options.stream = stream;
  options.plan = &made;
  expect_ok(o->context, kjit_reduce(o->context, &r, &x, &add, &options));
  return made;
}

static int count_run(const objects *o, kjit_plan *plan, kjit_stream *stream)
{
  int before = cuda.calls;
  expect_ok(o->context, kjit_run_plan(plan, stream));
  return cuda.calls - before;
}

static bool has_parameter(const kjit_array *array)
{
  uint64_t address = (uint64_t)(uintptr_t)kjit_get_tensor(array)->data, word;
  for (size_t i = 0; i + sizeof word <= cuda.parameter_bytes; i++) {
    memcpy(&word, cuda.parameters + i, sizeof word);
    if (word == address) return true;
  }
  return false;
}

/* The driver calls of a call: the launch, and the query for the context of its stream. */
enum { LAUNCH = FAKE_DEFAULT_LAUNCH };

static int count_calls(const objects *o, kjit_array *to, kjit_array *from, kjit_stream *stream)
{
  int before = cuda.calls, launches = cuda.launches;
  expect_ok(o->context, reduce(o, to, from, stream));
  assert_int_equal(cuda.launches, launches + 1);
  assert_true(has_parameter(to) && has_parameter(from));
  return cuda.calls - before;
}

static void test_asks_for_launches_only(void **state)
{
  (void)state;
  objects o = open_objects();
  for (int i = 0; i < 3; i++) (void)count_calls(&o, o.r, o.x, NULL);
  int compilations = fake.compilations;
  assert_int_equal(count_calls(&o, o.r, o.x, NULL), LAUNCH);
  /* other arrays of the same kind */
  assert_int_equal(count_calls(&o, o.s, o.y, NULL), LAUNCH);
  assert_int_equal(fake.compilations, compilations);
  close_objects(&o);
}

/* Temporary storage is cleared if its contents are not known. */
static void test_clears(void **state)
{
  (void)state;
  objects o = open_objects();
  kjit_stream *stream;
  expect_ok(o.context, kjit_create_stream(o.device, &stream));
  for (int i = 0; i < 4; i++) (void)count_calls(&o, o.r, o.x, NULL);
  /* another stream has its own storage, which this stream can also use after the host has waited */
  int first = count_calls(&o, o.r, o.x, stream), second = count_calls(&o, o.r, o.x, stream);
  assert_true(first > second);
  /* after a failed launch the contents of the storage are not known */
  cuda.fail_at = cuda.calls + LAUNCH;
  cuda.fail_with = CUDA_INVALID_VALUE;
  assert_int_not_equal(reduce(&o, o.r, o.x, NULL), KJIT_OK);
  cuda.fail_at = 0;
  assert_true(count_calls(&o, o.r, o.x, NULL) > LAUNCH);
  assert_int_equal(count_calls(&o, o.r, o.x, NULL), LAUNCH);
  kjit_destroy_stream(stream);
  close_objects(&o);
}

/* Work in a capture of the application runs when its graph is launched, so the storage has no
 * contents for later calls. */
static void test_host_captures(void **state)
{
  (void)state;
  objects o = open_objects();
  kjit_stream *stream;
  int native;
  void *graph = NULL;
  expect_ok(o.context, kjit_wrap_stream(o.device, &native, &stream));
  for (int i = 0; i < 3; i++) (void)count_calls(&o, o.r, o.x, stream);
  int again = count_calls(&o, o.r, o.x, stream);
  kjit_trim_memory(o.device, 0);
  assert_int_equal(fake_cuStreamBeginCapture(&native, 0), 0);
  expect_ok(o.context, reduce(&o, o.r, o.x, stream));
  assert_int_equal(fake_cuStreamEndCapture(&native, &graph), 0);
  /* this call clears it */
  assert_true(count_calls(&o, o.r, o.x, stream) > again);
  assert_int_equal(count_calls(&o, o.r, o.x, stream), again);
  assert_int_equal(fake_cuGraphDestroy(graph), 0);
  kjit_destroy_stream(stream);
  close_objects(&o);
}

static void test_host_captures_plan(void **state)
{
  (void)state;
  objects o = open_objects();
  kjit_stream *stream;
  int native;
  void *graph = NULL;
  expect_ok(o.context, kjit_wrap_stream(o.device, &native, &stream));
  kjit_plan *run = plan(&o, stream);
  assert_int_equal(fake_cuStreamBeginCapture(&native, 0), 0);
  (void)count_run(&o, run, stream);
  assert_int_equal(fake_cuStreamEndCapture(&native, &graph), 0);
  int first = count_run(&o, run, stream);
  assert_true(first > count_run(&o, run, stream));
  assert_int_equal(fake_cuGraphDestroy(graph), 0);
  kjit_destroy_plan(run);
  kjit_destroy_stream(stream);
  close_objects(&o);
}

/* If a thread of the kernel can fail, the contents of the storage are not known afterwards. */
static void test_kernel_that_may_fail(void **state)
{
  (void)state;
  objects o = open_objects();
  fake.failures = "it failed";
  for (int i = 0; i < 4; i++) (void)count_calls(&o, o.r, o.x, NULL);
  assert_true(count_calls(&o, o.r, o.x, NULL) > LAUNCH);
  fake.failures = NULL;
  close_objects(&o);
}

/* A block that a call has left with its counters can be given to another owner; the next call
 * clears its storage again. */
static void test_memory_is_taken(void **state)
{
  (void)state;
  objects o = open_objects();
  for (int i = 0; i < 4; i++) (void)count_calls(&o, o.r, o.x, NULL);
  kjit_array *others[8];
  for (int i = 0; i < 8; i++) others[i] = make(&o, 1);
  for (int i = 0; i < 8; i++) kjit_release_array(others[i]);
  assert_true(count_calls(&o, o.r, o.x, NULL) > LAUNCH);
  kjit_trim_memory(o.device, 0);
  assert_true(count_calls(&o, o.r, o.x, NULL) > LAUNCH);
  assert_int_equal(count_calls(&o, o.r, o.x, NULL), LAUNCH);
  close_objects(&o);
}

/* More kinds of calls than the cache keeps, and funcs that no longer exist. A new func at the
 * address of an old one is another func. */
static void test_other_funcs(void **state)
{
  enum { MANY = 150, COUNT = 300 };
  (void)state;
  objects o = open_objects();
  kjit_release_module(o.module);
  int before = fake.compilations;
  for (int i = 0; i < COUNT; i++) {
    char text[80];
    (void)snprintf(text, sizeof text, "func both(a, b) { return a + b + %d }\n", i % MANY);
    o.module = parse(o.context, text);
    expect_ok(o.context, reduce(&o, o.r, o.x, NULL));
    expect_ok(o.context, reduce(&o, o.s, o.y, NULL));
    kjit_release_module(o.module);
  }
  assert_int_equal(fake.compilations - before, COUNT);
  o.module = NULL;
  close_objects(&o);
}

/* The plan that a launch of the test's driver runs once, and the result of this run. */
static kjit_plan *inner;
static kjit_status inner_status;

static void run_inner(const char *parameters)
{
  (void)parameters;
  kjit_plan *own = inner;
  inner = NULL;
  if (own) inner_status = kjit_run_plan(own, NULL);
}

/* A plan cannot run inside its own run, but another plan can. */
static void test_runs_inside(void **state)
{
  (void)state;
  objects o = open_objects();
  kjit_plan *own = plan(&o, NULL), *other = plan(&o, NULL);
  expect_ok(o.context, kjit_run_plan(own, NULL));
  cuda.kernel = run_inner;
  inner = other;
  expect_ok(o.context, kjit_run_plan(own, NULL));
  expect_ok(o.context, inner_status);
  inner = own;
  expect_ok(o.context, kjit_run_plan(own, NULL));
  assert_int_equal(inner_status, KJIT_ERROR_MISUSE);
  assert_string_equal(last_message(o.context),
                      "kjit_run_plan: a function that is called during a run of the plan runs the "
                      "same plan again");
  expect_ok(o.context, kjit_run_plan(own, NULL));
  kjit_destroy_plan(own);
  kjit_destroy_plan(other);
  close_objects(&o);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_asks_for_launches_only),
    cmocka_unit_test(test_clears),
    cmocka_unit_test(test_host_captures),
    cmocka_unit_test(test_host_captures_plan),
    cmocka_unit_test(test_kernel_that_may_fail),
    cmocka_unit_test(test_memory_is_taken),
    cmocka_unit_test(test_other_funcs),
    cmocka_unit_test(test_runs_inside),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
