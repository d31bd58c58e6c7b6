/* Tests graphs, with a fake driver in host memory and on the CPU. */
#include "graph_sequence.h"

static void check_graph(kjit_context *context, kjit_device *device)
{
  sequence s;
  kjit_executable_graph *executable;
  begin(&s, context, device);
  kjit_graph *graph = capture(&s, 10), *other = capture(&s, 20), *shorter;
  int calls = s.calls;
  expect_ok(context, kjit_instantiate_graph(graph, &executable));
  kjit_destroy_graph(graph); /* the executable graph stays valid */
  for (int i = 0; i < 3; i++)
    expect_ok(context, kjit_launch_graph(executable, i ? s.stream : NULL));
  expect_values(&s, 12);
  assert_int_equal(s.calls, calls + 3);
  expect_ok(context, kjit_update_graph(executable, other));
  kjit_destroy_graph(other);
  expect_ok(context, kjit_launch_graph(executable, s.stream));
  expect_values(&s, 22);
  expect_ok(context, kjit_begin_capture(s.stream));
  kjit_arg x = kjit_arg_array(s.x);
  expect_ok(context, kjit_launch(s.kernel,
                                 &(kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config),
                                                        .stream = s.stream },
                                 &x, 1));
  expect_ok(context, kjit_end_capture(s.stream, &shorter));
  expect_refused(context, kjit_update_graph(executable, shorter), KJIT_ERROR_ARGUMENT,
                 "the graph has other operations, or another order, than the instantiated graph; "
                 "instantiate the graph again");
  kjit_destroy_graph(shorter);
  kjit_release_array(s.x); /* the graph keeps the arrays alive */
  kjit_release_array(s.y);
  expect_ok(context, kjit_launch_graph(executable, s.stream));
  expect_values(&s, 22);
  kjit_destroy_executable_graph(executable);
  end(&s);
}

static void test_graphs(void **state) { check_graph(*state, gpu(*state, 0)); }

static void test_graphs_on_cpu(void **state)
{
  kjit_device *cpu;
  expect_ok(*state, kjit_get_device(*state, KJIT_DEVICE_CPU, 0, &cpu));
  check_graph(*state, cpu);
}

/* Calls that wait, and work whose objects cannot be kept alive, are rejected, and the capture
 * continues. */
static void check_refusals(kjit_context *context, kjit_device *device, bool is_gpu)
{
  sequence s;
  kjit_graph *graph, *nothing = NULL;
  kjit_stream *usual;
  uint64_t time_ns;
  float data[100];
  int64_t length = 100;
  kjit_tensor host = host_vector(data, &length);
  kjit_array_handle handle;
  begin(&s, context, device);
  kjit_arg x = kjit_arg_array(s.x), on_host = kjit_arg_tensor(&host);
  expect_refused(context, kjit_end_capture(s.stream, &nothing), KJIT_ERROR_MISUSE,
                 "the stream is not being captured");
  expect_ok(context, kjit_get_default_stream(device, &usual));
  expect_refused(context, kjit_begin_capture(usual), KJIT_ERROR_MISUSE,
                 "the default stream cannot be captured; create a stream with kjit_create_stream");
  expect_ok(context, kjit_begin_capture(s.stream));
  assert_int_equal(kjit_begin_capture(s.stream), KJIT_ERROR_MISUSE);
  static const char waiting[] =
    "the stream is being captured: nothing can wait for it before kjit_end_capture";
  expect_refused(context, kjit_synchronize_stream(s.stream), KJIT_ERROR_MISUSE, waiting);
  expect_refused(context, kjit_query_stream(s.stream), KJIT_ERROR_MISUSE, waiting);
  if (is_gpu) {
    expect_refused(context, kjit_synchronize_device(device), KJIT_ERROR_MISUSE,
                   "a stream of cuda:0 is being captured; nothing can wait for the device before "
                   "kjit_end_capture");
    expect_refused(context, kjit_copy(context, &x, &on_host, s.stream), KJIT_ERROR_MISUSE, waiting);
    expect_refused(
      context,
      kjit_launch(s.kernel,
                  &(kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config),
                                         .stream = s.stream },
                  &on_host, 1),
      KJIT_ERROR_MISUSE,
      "host arrays cannot be part of a capture on a GPU; copy them to device arrays first");
    assert_int_equal(kjit_export_array(s.x, &handle), KJIT_ERROR_MISUSE);
  }
  expect_ok(context, kjit_record_event(s.forked, s.stream));
  expect_refused(
    context, kjit_synchronize_event(s.forked), KJIT_ERROR_MISUSE,
    "the event was recorded in a capture, so it only happens when the graph is launched");
  expect_ok(context, kjit_record_event(s.joined, NULL));
  expect_refused(
    context, kjit_get_elapsed_time(s.forked, s.joined, &time_ns), KJIT_ERROR_MISUSE,
    "the event was recorded in a capture, so it only happens when the graph is launched");
  expect_ok(context, kjit_wait_event(s.side, s.forked));
  expect_refused(context, kjit_end_capture(s.side, &nothing), KJIT_ERROR_MISUSE,
                 "the capture began on another stream and must end there");
  expect_ok(context, kjit_end_capture(s.stream, &graph));
  assert_int_equal(kjit_get_graph_size(graph), 0);
  expect_refused(context, kjit_wait_event(s.side, s.forked), KJIT_ERROR_MISUSE,
                 "the event was recorded in a capture that has ended");
  kjit_destroy_graph(graph);
  expect_ok(context, kjit_begin_capture(s.stream)); /* this capture is never ended */
  expect_ok(context, kjit_launch(s.kernel,
                                 &(kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config),
                                                        .stream = s.stream },
                                 &x, 1));
  kjit_release_array(s.x);
  kjit_release_array(s.y);
  end(&s);
  if (is_gpu) expect_ok(context, kjit_synchronize_device(device));
}

/* If the driver invalidates a capture, no part of it is left, and the streams run the work that is
 * queued on them. */
static void test_failing_end(void **state)
{
  enum { UNJOINED = 904 };
  sequence s;
  kjit_graph *graph = NULL;
  begin(&s, *state, gpu(*state, 0));
  kjit_arg x = kjit_arg_array(s.x);
  kjit_launch_config config = { .size_bytes = sizeof config, .stream = s.stream };
  for (int at = 1; !cuda.failed || strcmp(cuda.failed, "cuStreamEndCapture") != 0; at++) {
    expect_ok(*state, kjit_begin_capture(s.stream));
    expect_ok(*state, kjit_record_event(s.forked, s.stream));
    expect_ok(*state, kjit_wait_event(s.side, s.forked));
    expect_ok(*state, kjit_launch(s.kernel, &config, &x, 1));
    cuda.fail_at = cuda.calls + at;
    cuda.fail_with = UNJOINED;
    assert_int_equal(kjit_end_capture(s.stream, &graph), KJIT_ERROR_MISUSE);
    assert_int_equal(kjit_is_capturing(s.stream), 0);
    assert_int_equal(kjit_is_capturing(s.side), 0);
    assert_int_equal(cuda.graphs, 0);
    assert_null(graph);
    expect_ok(*state, kjit_synchronize_device(s.device));
  }
  int launches = cuda.launches;
  expect_ok(*state, kjit_launch(s.kernel, &config, &x, 1));
  assert_int_equal(cuda.launches, launches + 1);
  kjit_release_array(s.x);
  kjit_release_array(s.y);
  end(&s);
}

static void test_refusals(void **state) { check_refusals(*state, gpu(*state, 0), true); }

static void test_refusals_on_cpu(void **state)
{
  kjit_device *cpu;
  expect_ok(*state, kjit_get_device(*state, KJIT_DEVICE_CPU, 0, &cpu));
  check_refusals(*state, cpu, false);
}

/* A context is destroyed while captures, graphs and queued work exist. */
static void test_end_of_context(void **state)
{
  kjit_device *devices[] = { gpu(*state, 0), NULL };
  expect_ok(*state, kjit_get_device(*state, KJIT_DEVICE_CPU, 0, &devices[1]));
  for (int i = 0; i < 2; i++) {
    sequence s;
    kjit_executable_graph *executable;
    begin(&s, *state, devices[i]);
    kjit_graph *graph = capture(&s, 1);
    expect_ok(*state, kjit_instantiate_graph(graph, &executable));
    s.x = make_vector(s.device, 100, s.side); /* created after the graphs */
    expect_ok(*state, kjit_begin_capture(s.stream));
    kjit_arg x = kjit_arg_array(s.x);
    expect_ok(*state, kjit_launch(s.kernel,
                                  &(kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config),
                                                         .stream = s.stream },
                                  &x, 1));
  }
}

/* The streams of one capture may belong to different threads. They add objects to the capture one
 * at a time. */
enum { CALLBACKS = 20000 };
static void do_nothing(void *user) { (void)user; }

static void *queue_many(void *user)
{
  kjit_stream *stream = user;
  for (int i = 0; i < CALLBACKS; i++)
    if (kjit_add_host_callback(stream->object.device, stream, do_nothing, NULL) != KJIT_OK)
      return NULL;
  return user;
}

static void test_threads_in_one_capture(void **state)
{
  kjit_device *cpu;
  kjit_stream *streams[2];
  kjit_event *event;
  kjit_graph *graph;
  pthread_t threads[2];
  void *result;
  expect_ok(*state, kjit_get_device(*state, KJIT_DEVICE_CPU, 0, &cpu));
  for (int i = 0; i < 2; i++) expect_ok(*state, kjit_create_stream(cpu, &streams[i]));
  expect_ok(*state, kjit_create_event(cpu, &event));
  expect_ok(*state, kjit_begin_capture(streams[0]));
  expect_ok(*state, kjit_record_event(event, streams[0]));
  expect_ok(*state, kjit_wait_event(streams[1], event));
  for (int i = 0; i < 2; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, queue_many, streams[i]), 0);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(pthread_join(threads[i], &result), 0);
    assert_ptr_equal(result, streams[i]);
  }
  expect_ok(*state, kjit_end_capture(streams[0], &graph));
  assert_int_equal(kjit_get_graph_size(graph), 2 * CALLBACKS);
  kjit_destroy_graph(graph);
  kjit_destroy_event(event);
  for (int i = 0; i < 2; i++) kjit_destroy_stream(streams[i]);
}

/* Application code that an operation of a graph calls (here kernels and a callback) may launch the
 * graph again, update it, and destroy it. kjit holds no lock during the call, and keeps the running
 * operations alive. */
static struct {
  kjit_executable_graph *executable;
  kjit_graph *other;
  int kernels, calls;
} nested;

static void launch_inside(const void *parameters, const kj_cpu_grid *grid, uint64_t first,
                          uint64_t last, void *scratch)
{
  (void)grid, (void)scratch;
  if (first || !last) return;
  if (++nested.kernels == 1) assert_int_equal(kjit_launch_graph(nested.executable, NULL), KJIT_OK);
  run_add_one(parameters);
}

static void replace_inside(void *user)
{
  (void)user;
  if (++nested.calls == 1) {
    assert_int_equal(kjit_update_graph(nested.executable, nested.other), KJIT_OK);
    kjit_destroy_graph(nested.other);
  }
  if (nested.calls == 3) kjit_destroy_executable_graph(nested.executable);
}

static kjit_graph *capture_nested(sequence *s, kjit_array *array)
{
  kjit_graph *graph;
  kjit_arg argument = kjit_arg_array(array);
  kjit_launch_config config = {
    .size_bytes = sizeof config, .grid = { 1 }, .block = { 1 }, .stream = s->stream
  };
  expect_ok(s->context, kjit_begin_capture(s->stream));
  expect_ok(s->context, kjit_launch(s->kernel, &config, &argument, 1));
  expect_ok(s->context, kjit_add_host_callback(s->device, s->stream, replace_inside, NULL));
  expect_ok(s->context, kjit_launch(s->kernel, &config, &argument, 1));
  expect_ok(s->context, kjit_end_capture(s->stream, &graph));
  return graph;
}

static void test_graph_inside_of_itself(void **state)
{
  kjit_device *cpu;
  sequence s;
  expect_ok(*state, kjit_get_device(*state, KJIT_DEVICE_CPU, 0, &cpu));
  begin(&s, *state, cpu);
  memset(&nested, 0, sizeof nested);
  fake.kernel = launch_inside;
  s.x_data[0] = s.y_data[0] = 0;
  kjit_graph *graph = capture_nested(&s, s.x);
  nested.other = capture_nested(&s, s.y);
  expect_ok(*state, kjit_instantiate_graph(graph, &nested.executable));
  kjit_destroy_graph(graph);
  expect_ok(*state, kjit_launch_graph(nested.executable, s.stream));
  assert_true(nested.kernels == 4 && nested.calls == 2);
  /* the outer launch continued with its own operations */
  assert_true(s.x_data[0] == 4 && s.y_data[0] == 0);
  expect_ok(*state, kjit_launch_graph(nested.executable, s.stream));
  assert_true(nested.kernels == 6 && nested.calls == 3);
  assert_true(s.x_data[0] == 4 && s.y_data[0] == 2);
  kjit_release_array(s.x);
  kjit_release_array(s.y);
  end(&s);
}

/* Two threads launch an executable graph each, both created from one graph. Neither launch waits
 * for the other: their kernels end only after both have started. */
static pthread_barrier_t both;

static void meet(const void *parameters, const kj_cpu_grid *grid, uint64_t first, uint64_t last,
                 void *scratch)
{
  (void)parameters, (void)grid, (void)scratch;
  if (!first && last) (void)pthread_barrier_wait(&both);
}

static void *launch_one(void *executable)
{
  return kjit_launch_graph(executable, NULL) == KJIT_OK ? executable : NULL;
}

static void test_two_of_one_graph(void **state)
{
  kjit_device *cpu;
  sequence s;
  kjit_executable_graph *executables[2];
  pthread_t threads[2];
  kjit_graph *graph;
  kjit_launch_config config = { .size_bytes = sizeof config, .grid = { 1 }, .block = { 1 } };
  expect_ok(*state, kjit_get_device(*state, KJIT_DEVICE_CPU, 0, &cpu));
  begin(&s, *state, cpu);
  fake.kernel = meet;
  config.stream = s.stream;
  assert_int_equal(pthread_barrier_init(&both, NULL, 2), 0);
  kjit_arg x = kjit_arg_array(s.x);
  expect_ok(*state, kjit_begin_capture(s.stream));
  expect_ok(*state, kjit_launch(s.kernel, &config, &x, 1));
  expect_ok(*state, kjit_end_capture(s.stream, &graph));
  for (int i = 0; i < 2; i++) {
    expect_ok(*state, kjit_instantiate_graph(graph, &executables[i]));
    assert_int_equal(pthread_create(&threads[i], NULL, launch_one, executables[i]), 0);
  }
  for (int i = 0; i < 2; i++) {
    void *result;
    assert_int_equal(pthread_join(threads[i], &result), 0);
    assert_ptr_equal(result, executables[i]);
    kjit_destroy_executable_graph(executables[i]);
  }
  kjit_destroy_graph(graph);
  pthread_barrier_destroy(&both);
  kjit_release_array(s.x);
  kjit_release_array(s.y);
  end(&s);
}

/* Memory that is allocated during a capture is used later, concurrently with work that is queued on
 * the stream. So it must not be memory that this work uses. */

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_gpus, tear_down_gpus)
  const struct CMUnitTest tests[] = {
    TEST(test_graphs),
    TEST(test_graphs_on_cpu),
    TEST(test_refusals),
    TEST(test_failing_end),
    TEST(test_refusals_on_cpu),
    TEST(test_end_of_context),
    TEST(test_threads_in_one_capture),
    TEST(test_graph_inside_of_itself),
    TEST(test_two_of_one_graph),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
