/* Two threads make driver calls for the same graph, or for the same limit. The fake driver lets the
 * second thread begin at the worst moment: inside a driver call of the first one. A thread that has
 * to wait is seen only by its absence, so the first thread gives it some time. A test with a
 * correct kjit passes however long a thread takes. */
#include "graph_sequence.h"

#include <pthread.h>
#include <time.h>

/* Runs another thread from a driver call. */
static struct {
  void *(*run)(void *data);
  void *data;
  pthread_t thread;
  bool follows_launch; /* it begins when the driver has launched the graph, before the call ends */
  _Atomic bool is_done;
} other;

static void *run_other(void *unused)
{
  (void)unused;
  void *result = other.run(other.data);
  other.is_done = true;
  return result;
}

static void begin_other(void *(*run)(void *data), void *data)
{
  other.run = run;
  other.data = data;
  other.is_done = false;
}

/* Starts the other thread once, and gives it time to end. */
static void let_other_run(void)
{
  enum { TURNS = 200, TURN_NS = 1000000 };
  if (!other.run || other.thread) return;
  assert_int_equal(pthread_create(&other.thread, NULL, run_other, NULL), 0);
  for (int i = 0; i < TURNS && !other.is_done; i++)
    (void)nanosleep(&(struct timespec){ .tv_nsec = TURN_NS }, NULL);
}

static void *join_other(void)
{
  void *result = NULL;
  assert_true(other.thread);
  assert_int_equal(pthread_join(other.thread, &result), 0);
  memset(&other, 0, sizeof other);
  return result;
}

static int watched_cuGraphLaunch(void *executable, void *stream)
{
  if (!other.follows_launch) let_other_run();
  int result = fake_cuGraphLaunch(executable, stream);
  if (other.follows_launch) let_other_run();
  return result;
}

static int watched_cuCtxSetLimit(int limit, size_t value)
{
  let_other_run();
  return fake_cuCtxSetLimit(limit, value);
}

static void *find_watched(void *user, const char *symbol)
{
  if (!strcmp(symbol, "cuGraphLaunch")) return (void *)(uintptr_t)watched_cuGraphLaunch;
  if (!strcmp(symbol, "cuCtxSetLimit")) return (void *)(uintptr_t)watched_cuCtxSetLimit;
  return find_fake(user, symbol);
}

static kjit_context *make_watched_context(void)
{
  kj_diagnostics diagnostics = { 0 };
  kjit_context *context = make_fake_context();
  context->config.variant_limit = 1;
  assert_int_equal(kj_use_driver(context, find_watched, NULL, &diagnostics), KJIT_OK);
  kj_free_diagnostics(&diagnostics);
  return context;
}

static int set_up(void **state)
{
  cuda = (fake_driver){ .devices = 2 };
  memset(&other, 0, sizeof other);
  fake_delete_all();
  *state = make_watched_context();
  return 0;
}

/* ---- an update of a graph during a launch ---- */

static struct {
  kjit_executable_graph *executable;
  kjit_graph *graph;
} replaced;

static void *replace(void *unused)
{
  (void)unused;
  return kjit_update_graph(replaced.executable, replaced.graph) == KJIT_OK ? &replaced : NULL;
}

static kjit_graph *capture_fill(sequence *s, const kjit_array *array, double value)
{
  kjit_graph *graph = NULL;
  kjit_arg x = kjit_arg_array((kjit_array *)(uintptr_t)array), number = kjit_arg_number(value);
  expect_ok(s->context, kjit_begin_capture(s->stream));
  expect_ok(s->context, kjit_fill(s->context, &x, &number, s->stream));
  expect_ok(s->context, kjit_end_capture(s->stream, &graph));
  return graph;
}

/* Returns whether the stream is a use of the array, so that its memory is not reused before the
 * work that the stream has now. */
static bool is_used_by(const kjit_array *array, const kjit_stream *stream)
{
  for (uint32_t i = 0; i < KJ_MOST_USES; i++)
    if (kj_read_use(&array->line.use, i) == stream->id) return true;
  return false;
}

/* The launch fills exactly the array whose use it has noted. */
static void test_update_during_launch(void **state)
{
  sequence s;
  begin(&s, *state, gpu(*state, 0));
  kjit_graph *first = capture_fill(&s, s.x, 1);
  replaced.graph = capture_fill(&s, s.y, 2);
  expect_ok(*state, kjit_instantiate_graph(first, &replaced.executable));
  s.x_data[0] = s.y_data[0] = 0;
  begin_other(replace, NULL);
  expect_ok(*state, kjit_launch_graph(replaced.executable, s.side));
  assert_ptr_equal(join_other(), &replaced);
  assert_int_equal(is_used_by(s.x, s.side), s.x_data[0] == 1);
  assert_int_equal(is_used_by(s.y, s.side), s.y_data[0] == 2);
  expect_ok(*state, kjit_launch_graph(replaced.executable, s.side));
  assert_true(s.y_data[0] == 2 && is_used_by(s.y, s.side));
  kjit_destroy_graph(first);
  kjit_destroy_graph(replaced.graph);
  kjit_destroy_executable_graph(replaced.executable);
  kjit_release_array(s.x);
  kjit_release_array(s.y);
  end(&s);
}

/* A thread can destroy the graph as soon as the driver has launched it. */
static void *destroy(void *unused)
{
  (void)unused;
  kjit_destroy_executable_graph(replaced.executable);
  return &replaced;
}

static void test_end_during_launch(void **state)
{
  sequence s;
  begin(&s, *state, gpu(*state, 0));
  kjit_graph *graph = capture_fill(&s, s.x, 1);
  expect_ok(*state, kjit_instantiate_graph(graph, &replaced.executable));
  begin_other(destroy, NULL);
  other.follows_launch = true;
  expect_ok(*state, kjit_launch_graph(replaced.executable, s.stream));
  assert_ptr_equal(join_other(), &replaced);
  kjit_destroy_graph(graph);
  kjit_release_array(s.x);
  kjit_release_array(s.y);
  end(&s);
}

/* A function that the driver calls on the launching thread cannot wait for this launch. */
static kjit_status inside[2];

static void use_inside(void *unused)
{
  (void)unused;
  inside[0] = kjit_update_graph(replaced.executable, replaced.graph);
  inside[1] = kjit_launch_graph(replaced.executable, NULL);
}

static void test_launch_inside(void **state)
{
  sequence s;
  begin(&s, *state, gpu(*state, 0));
  expect_ok(*state, kjit_begin_capture(s.stream));
  expect_ok(*state, kjit_add_host_callback(s.device, s.stream, use_inside, NULL));
  expect_ok(*state, kjit_end_capture(s.stream, &replaced.graph));
  expect_ok(*state, kjit_instantiate_graph(replaced.graph, &replaced.executable));
  for (int i = 0; i < 2; i++) {
    inside[0] = inside[1] = KJIT_OK;
    expect_ok(*state, kjit_launch_graph(replaced.executable, s.stream));
    assert_true(inside[0] == KJIT_ERROR_MISUSE && inside[1] == KJIT_ERROR_MISUSE);
  }
  expect_ok(*state, kjit_update_graph(replaced.executable, replaced.graph));
  kjit_destroy_graph(replaced.graph);
  kjit_destroy_executable_graph(replaced.executable);
  kjit_release_array(s.x);
  kjit_release_array(s.y);
  end(&s);
}

/* ---- the stack limit of GPU threads ---- */

enum { SMALL_STACK = 4096, LARGE_STACK = 65536 };

static void *need_large_stack(void *data)
{
  kjit_device *device = data;
  kj_diagnostics diagnostics = { 0 };
  kjit_status status = device->operations->provide_stack(device, LARGE_STACK, &diagnostics);
  kj_free_diagnostics(&diagnostics);
  return status == KJIT_OK ? data : NULL;
}

/* Two threads load code that needs different stacks. Both contexts use the GPU's primary context,
 * to which the limit belongs. */
static void test_stack_limits(void **state)
{
  kjit_context *second = make_watched_context();
  kjit_device *device = gpu(*state, 0);
  kj_diagnostics diagnostics = { 0 };
  begin_other(need_large_stack, gpu(second, 0));
  assert_int_equal(device->operations->provide_stack(device, SMALL_STACK, &diagnostics), KJIT_OK);
  assert_non_null(join_other());
  assert_int_equal(cuda.stack_bytes, LARGE_STACK);
  kj_free_diagnostics(&diagnostics);
  kjit_destroy_context(second);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down_gpus)
  const struct CMUnitTest tests[] = {
    TEST(test_update_during_launch),
    TEST(test_end_during_launch),
    TEST(test_launch_inside),
    TEST(test_stack_limits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
