/* Tests streams, events and work that a capture meets, with a fake driver in host memory and on the
 * CPU. */
#include "graph_sequence.h"

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

/* ---- captures ---- */

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
    TEST(test_making_streams),        TEST(test_asking),
    TEST(test_events_of_the_host),    TEST(test_fault_in_graph),
    TEST(test_allocation_in_capture), TEST(test_release_in_capture),
    TEST(test_waiting_in_capture),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
