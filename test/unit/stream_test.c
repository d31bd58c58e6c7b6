/* Tests streams, events and graphs, with a fake driver in host memory and on the CPU. */
#include "gpu_test.h"

#include "compiler.h"

/* ---- streams ---- */

static void test_making_streams(void **state)
{
  kjit_device *device = gpu(*state, 0), *cpu;
  kjit_stream *stream, *same, *thread;
  int32_t least, greatest;
  char native;
  expect_ok(*state, kjit_get_device(*state, KJIT_DEVICE_CPU, 0, &cpu));
  expect_ok(*state, kjit_get_stream_priorities(device, &least, &greatest));
  assert_int_equal(least, 0);
  assert_int_equal(greatest, -5);
  /* the nearest */
  expect_ok(*state, kjit_create_stream_with(device, -100, KJIT_STREAM_NON_BLOCKING, &stream));
  /* builds with assertions keep a list of the native streams that are alive */
  const void *nearest = kjit_get_native_stream(stream);
  assert_int_equal(kj_is_alive(device, nearest), KJ_HAS_ASSERTIONS);
  kjit_destroy_stream(stream);
  assert_false(kj_is_alive(device, nearest));
  assert_true(kj_is_alive(device, NULL));
  expect_refused(*state, kjit_create_stream_with(device, 0, 8, &stream), KJIT_ERROR_MISUSE,
                 "kjit_create_stream_with: unknown flags 0x8");
  expect_ok(*state, kjit_get_default_stream(device, &stream));
  expect_ok(*state, kjit_get_default_stream(device, &same));
  assert_ptr_equal(stream, same);
  assert_null(kjit_get_native_stream(stream));
  /* the default stream does not belong to the application, so this call has no effect */
  kjit_destroy_stream(stream);
  expect_ok(*state, kjit_synchronize_stream(stream));
  expect_ok(*state, kjit_get_thread_stream(device, &thread));
  assert_ptr_equal(kjit_get_native_stream(thread), (void *)2);
  expect_ok(*state, kjit_wrap_stream(device, &native, &stream));
  assert_ptr_equal(kjit_get_native_stream(stream), &native);
  assert_int_equal(kj_is_alive(device, &native), KJ_HAS_ASSERTIONS);
  kjit_destroy_stream(stream);
  assert_false(kj_is_alive(device, &native));
  assert_int_equal(kjit_wrap_stream(cpu, &native, &stream), KJIT_ERROR_UNSUPPORTED);
  expect_ok(*state, kjit_get_thread_stream(cpu, &thread));
  expect_ok(*state, kjit_get_default_stream(cpu, &stream));
  assert_ptr_equal(stream, thread);
}

static void count_call(void *user) { ++*(int *)user; }

static void test_asking(void **state)
{
  kjit_device *device = gpu(*state, 0), *cpu;
  kjit_stream *stream, *other;
  kjit_event *event;
  int calls = 0;
  expect_ok(*state, kjit_get_device(*state, KJIT_DEVICE_CPU, 0, &cpu));
  expect_ok(*state, kjit_create_stream(device, &stream));
  expect_ok(*state, kjit_create_stream(gpu(*state, 1), &other));
  expect_ok(*state, kjit_create_event(device, &event));
  expect_refused(*state, kjit_query_event(event), KJIT_ERROR_MISUSE,
                 "the event was never recorded");
  expect_refused(*state, kjit_wait_event(stream, event), KJIT_ERROR_MISUSE,
                 "the event was never recorded");
  expect_ok(*state, kjit_record_event(event, stream));
  expect_ok(*state, kjit_query_event(event));
  expect_ok(*state, kjit_query_stream(stream));
  cuda.is_busy = true;
  assert_int_equal(kjit_query_event(event), KJIT_NOT_READY);
  assert_int_equal(kjit_query_stream(stream), KJIT_NOT_READY);
  cuda.is_busy = false;
  expect_ok(*state, kjit_wait_event(other, event)); /* of another GPU */
  assert_ptr_equal(cuda.ordered[0][0], kjit_get_native_stream(stream));
  assert_ptr_equal(cuda.ordered[0][1], kjit_get_native_stream(other));
  expect_ok(*state, kjit_add_host_callback(device, stream, count_call, &calls));
  assert_int_equal(cuda.host_calls, 1);
  expect_ok(*state, kjit_add_host_callback(cpu, NULL, count_call, &calls));
  assert_int_equal(calls, 2);
  expect_refused(*state, kjit_add_host_callback(device, other, count_call, &calls),
                 KJIT_ERROR_ARGUMENT,
                 "the stream belongs to cuda:1, but the work to queue on it belongs to cuda:0");
  expect_ok(*state, kjit_start_profiler(device));
  assert_int_equal(cuda.profiling, 1);
  expect_ok(*state, kjit_stop_profiler(device));
  assert_int_equal(cuda.profiling, 0);
  (void)kjit_begin_range(*state, "a part"); /* with or without NVTX */
  kjit_end_range(*state);
  kjit_destroy_event(event);
  kjit_destroy_stream(stream);
  kjit_destroy_stream(other);
}

/* A native event of the application that kjit wraps, and a native event of kjit that the
 * application uses. */
static void test_events_of_the_host(void **state)
{
  kjit_device *device = gpu(*state, 0), *cpu;
  kjit_stream *stream, *other;
  kjit_event *own, *wrapped;
  void *native = NULL;
  expect_ok(*state, kjit_get_device(*state, KJIT_DEVICE_CPU, 0, &cpu));
  expect_ok(*state, kjit_create_stream(device, &stream));
  expect_ok(*state, kjit_create_stream(device, &other));
  expect_ok(*state, kjit_create_event(device, &own));
  assert_int_equal(fake_cuEventCreate(&native, 0), 0);
  expect_ok(*state, kjit_wrap_event(device, native, &wrapped));
  assert_ptr_equal(kjit_get_native_event(wrapped), native);
  assert_int_equal(fake_cuEventRecord(native, kjit_get_native_stream(stream)), 0); /* by the host */
  expect_ok(*state, kjit_wait_event(other, wrapped));
  assert_ptr_equal(cuda.ordered[0][0], kjit_get_native_stream(stream));
  assert_ptr_equal(cuda.ordered[0][1], kjit_get_native_stream(other));
  expect_ok(*state, kjit_record_event(own, other));
  assert_int_equal(fake_cuStreamWaitEvent(kjit_get_native_stream(stream),
                                          kjit_get_native_event(own), 0),
                   0);
  assert_ptr_equal(cuda.ordered[1][0], kjit_get_native_stream(other));
  kjit_destroy_event(wrapped); /* does not destroy the application's event */
  assert_int_equal(cuda.events, 2);
  assert_int_equal(fake_cuEventDestroy(native), 0);
  assert_int_equal(kjit_wrap_event(device, NULL, &wrapped), KJIT_ERROR_MISUSE);
  assert_int_equal(kjit_wrap_event(cpu, native, &wrapped), KJIT_ERROR_UNSUPPORTED);
  assert_null(kjit_get_native_event(NULL));
  kjit_destroy_event(own);
  kjit_destroy_stream(stream);
  kjit_destroy_stream(other);
}

/* ---- graphs ---- */

static void run_on_cpu(const void *parameters, const kj_cpu_grid *grid, uint64_t first,
                       uint64_t last, void *scratch)
{
  (void)grid, (void)scratch;
  if (first == 0 && last) run_add_one(parameters); /* the first block computes all elements */
}

typedef struct sequence {
  kjit_context *context;
  kjit_device *device;
  kjit_kernel *kernel;
  kjit_stream *stream, *side;
  kjit_event *forked, *joined;
  kjit_array *x, *y;
  float *x_data, *y_data;
  int calls;
} sequence;

static void begin(sequence *s, kjit_context *context, kjit_device *device)
{
  *s = (sequence){ .context = context, .device = device };
  fake.kernel = run_on_cpu;
  cuda.kernel = run_add_one;
  s->kernel = kernel_of(parse(context, add_one), "add_one");
  expect_ok(context, kjit_create_stream(device, &s->stream));
  expect_ok(context, kjit_create_stream(device, &s->side));
  expect_ok(context, kjit_create_event(device, &s->forked));
  expect_ok(context, kjit_create_event(device, &s->joined));
  s->x = make_vector(device, 100, NULL);
  s->y = make_vector(device, 100, NULL);
  s->x_data = address_of(s->x);
  s->y_data = address_of(s->y);
}

static void end(sequence *s)
{
  kjit_destroy_event(s->forked);
  kjit_destroy_event(s->joined);
  kjit_destroy_stream(s->stream);
  kjit_destroy_stream(s->side);
}

/* Captures these operations: x = value; x += 1 twice, the second time as a prepared launch; y = x
 * on another stream; a host callback. */
static kjit_graph *capture(sequence *s, double value)
{
  kjit_graph *graph = NULL;
  kjit_prepared *prepared;
  kjit_arg x = kjit_arg_array(s->x), y = kjit_arg_array(s->y), number = kjit_arg_number(value);
  kjit_launch_config config = { .size_bytes = sizeof config, .stream = s->stream };
  expect_ok(s->context, kjit_prepare_launch(s->kernel, &config, &x, 1, &prepared));
  for (int i = 0; i < 100; i++) s->x_data[i] = s->y_data[i] = -5;
  expect_ok(s->context, kjit_begin_capture(s->stream));
  assert_int_equal(kjit_is_capturing(s->stream), 1);
  assert_int_equal(kjit_is_capturing(s->side), 0);
  expect_ok(s->context, kjit_fill(s->context, &x, &number, s->stream));
  expect_ok(s->context, kjit_launch(s->kernel, &config, &x, 1));
  expect_ok(s->context, kjit_run_prepared(prepared, NULL));
  expect_ok(s->context, kjit_record_event(s->forked, s->stream));
  expect_ok(s->context, kjit_wait_event(s->side, s->forked));
  assert_int_equal(kjit_is_capturing(s->side), 1);
  expect_ok(s->context, kjit_copy_async(s->context, &y, &x, s->side));
  expect_ok(s->context, kjit_record_event(s->joined, s->side));
  expect_ok(s->context, kjit_wait_event(s->stream, s->joined));
  expect_ok(s->context, kjit_add_host_callback(s->device, s->stream, count_call, &s->calls));
  kjit_destroy_prepared(prepared);
  expect_ok(s->context, kjit_end_capture(s->stream, &graph));
  assert_int_equal(kjit_is_capturing(s->stream) + kjit_is_capturing(s->side), 0);
  assert_int_equal(kjit_get_graph_size(graph), 5);
  assert_true(s->x_data[0] == -5 && s->y_data[0] == -5); /* nothing has run */
  return graph;
}

static void expect_values(const sequence *s, float value)
{
  for (int i = 0; i < 100; i++) assert_true(s->x_data[i] == value && s->y_data[i] == value);
}

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
static void test_allocation_in_capture(void **state)
{
  kjit_device *device = gpu(*state, 0);
  kjit_stream *stream;
  kjit_graph *graph;
  expect_ok(*state, kjit_create_stream(device, &stream));
  kjit_array *array = make_vector(device, 100, stream);
  void *address = address_of(array);
  kjit_release_array(array);
  expect_ok(*state, kjit_begin_capture(stream));
  array = make_vector(device, 100, stream);
  assert_ptr_not_equal(address_of(array), address);
  expect_ok(*state, kjit_end_capture(stream, &graph));
  kjit_release_array(array);
  kjit_destroy_graph(graph);
  kjit_destroy_stream(stream);
}

/* Releasing memory whose uses need a wait does not disturb a capture. */
static void test_release_in_capture(void **state)
{
  kjit_device *device = gpu(*state, 0);
  kjit_kernel *kernel = kernel_of(parse(*state, add_one), "add_one");
  kjit_stream *stream, *other;
  kjit_graph *graph;
  kjit_array *mapped, *joined;
  int64_t length = 100;
  kjit_array_config config = { .size_bytes = sizeof config,
                               .device = device,
                               .element = KJIT_F32,
                               .rank = 1,
                               .shape = &length,
                               .layout = KJIT_LAYOUT_C };
  expect_ok(*state, kjit_create_stream(device, &stream));
  expect_ok(*state, kjit_create_stream(device, &other));
  config.memory = KJIT_MEMORY_MAPPED;
  expect_ok(*state, kjit_create_array_with(&config, &mapped));
  joined = make_vector(device, 100, stream);
  kjit_arg arguments[] = { kjit_arg_array(mapped), kjit_arg_array(joined) };
  for (int i = 0; i < 2; i++)
    expect_ok(*state, kjit_launch(kernel,
                                  &(kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config),
                                                         .stream = other },
                                  &arguments[i], 1));
  expect_ok(*state, kjit_begin_capture(stream));
  kjit_release_array(mapped);
  kjit_release_array(joined);
  assert_int_equal(cuda.pinned, 1);
  assert_int_equal(memory_of(device).cached_bytes, 0);
  expect_ok(*state, kjit_end_capture(stream, &graph));
  assert_int_equal(memory_of(device).cached_bytes, 512); /* behind an event */
  assert_int_equal(cuda.pinned, 1);
  expect_ok(*state, kjit_synchronize_device(device));
  assert_int_equal(cuda.pinned, 0);
  kjit_destroy_graph(graph);
  kjit_destroy_stream(stream);
  kjit_destroy_stream(other);
}

/* Unloading code and a lack of memory do not disturb a capture either. Calls that need to wait are
 * rejected. */
static void test_waiting_in_capture(void **state)
{
  kjit_device *device = gpu(*state, 0);
  kjit_module *going = parse(*state, add_one), *module = parse(*state, add_one);
  kjit_kernel *gone = kernel_of(going, "add_one"), *kernel = kernel_of(module, "add_one"),
              *printing = kernel_of(parse(*state, add_one), "add_one");
  kjit_stream *stream, *other, *third;
  kjit_graph *graph;
  kjit_array *array = make_vector(device, 100, NULL), *large;
  kjit_arg x = kjit_arg_array(array);
  cuda.kernel = run_add_one;
  expect_ok(*state, kjit_create_stream(device, &stream));
  expect_ok(*state, kjit_create_stream(device, &other));
  expect_ok(*state, kjit_create_stream(device, &third));
  /* the code has a failure record that its threads can write */
  fake.failures = "0 0 1 1 -- refused\n";
  expect_ok(*state, kjit_launch(gone, NULL, &x, 1));
  fake.failures = NULL;
  expect_ok(*state, kjit_launch(kernel, NULL, &x, 1));
  kjit_array *parked = make_vector(device, 100, stream);
  kjit_arg also = kjit_arg_array(parked);
  expect_ok(*state, kjit_launch(kernel,
                                &(kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config),
                                                       .stream = other },
                                &also, 1));
  int64_t length = 5000;
  kjit_array_config config = { .size_bytes = sizeof config,
                               .device = device,
                               .element = KJIT_F32,
                               .rank = 1,
                               .shape = &length,
                               .layout = KJIT_LAYOUT_C,
                               .stream = third };
  int modules = cuda.modules, orders = cuda.orders, pinned = cuda.pinned;
  expect_ok(*state, kjit_begin_capture(stream));
  kjit_release_module(going);
  assert_int_equal(cuda.modules, modules); /* for now */
  assert_int_equal(cuda.pinned, pinned);
  fake.prints = "a line\n";
  expect_refused(*state,
                 kjit_launch(printing,
                             &(kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config),
                                                    .stream = stream },
                             &x, 1),
                 KJIT_ERROR_MISUSE,
                 "a kernel that prints cannot be loaded during a stream capture; launch it or call "
                 "kjit_specialize before the capture");
  fake.prints = NULL;
  kjit_release_array(make_vector(device, 5000, other)); /* free in the order of that stream */
  kjit_release_array(parked);                           /* free after a wait for the device */
  cuda.is_starved = true;
  if (kjit_create_array_with(&config, &large) == KJIT_OK) kjit_release_array(large);
  cuda.is_starved = false;
  assert_int_equal(cuda.orders, orders); /* no stream waits for another one */
  expect_ok(*state, kjit_launch(kernel,
                                &(kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config),
                                                       .stream = stream },
                                &x, 1));
  expect_ok(*state, kjit_end_capture(stream, &graph));
  assert_int_equal(kjit_get_graph_size(graph), 1);
  kjit_destroy_graph(graph);
  kjit_release_module(module);
  assert_int_equal(cuda.modules, 0);
  assert_int_equal(cuda.pinned, pinned - 1);
  kjit_release_array(array);
  kjit_destroy_stream(stream);
  kjit_destroy_stream(other);
  kjit_destroy_stream(third);
}

static void test_fault_in_graph(void **state)
{
  kjit_device *device = gpu(*state, 0);
  kjit_executable_graph *executable;
  sequence s;
  begin(&s, *state, device);
  kjit_graph *graph = capture(&s, 1);
  expect_ok(*state, kjit_instantiate_graph(graph, &executable));
  expect_ok(*state, kjit_synchronize_device(device));
  cuda.fault_next_launch = true;
  expect_ok(*state, kjit_launch_graph(executable, s.stream));
  assert_int_equal(kjit_synchronize_stream(s.stream), KJIT_ERROR_DEVICE);
  assert_non_null(
    strstr(last_message(*state), "launched since the last synchronization: `add_one`"));
  expect_ok(*state, kjit_reset_device(device));
  expect_refused(*state, kjit_launch_graph(executable, NULL), KJIT_ERROR_DEVICE,
                 "the graph was lost when cuda:0 was reset");
  kjit_destroy_graph(graph);
  kjit_destroy_executable_graph(executable);
  end(&s);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_gpus, tear_down_gpus)
  const struct CMUnitTest tests[] = {
    TEST(test_making_streams),
    TEST(test_asking),
    TEST(test_events_of_the_host),
    TEST(test_graphs),
    TEST(test_graphs_on_cpu),
    TEST(test_refusals),
    TEST(test_failing_end),
    TEST(test_refusals_on_cpu),
    TEST(test_end_of_context),
    TEST(test_fault_in_graph),
    TEST(test_threads_in_one_capture),
    TEST(test_graph_inside_of_itself),
    TEST(test_two_of_one_graph),
    TEST(test_release_in_capture),
    TEST(test_allocation_in_capture),
    TEST(test_release_in_capture),
    TEST(test_waiting_in_capture),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
