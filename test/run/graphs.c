/* Streams and graphs in an application: each launch of a graph gives the same results as the
 * captured calls by themselves.
 * RUN: %programs/graphs cpu
 * RUN: %if cuda %{ %programs/graphs cuda %}
 */
#include <string.h>

#include "stop_at_first.h"

enum { N = 300, STEPS = 6 };

static const char text[] = "kernel step(r, x, k) {\n"
                           "  for i, j in grid_range(r.shape[0] - 2, r.shape[1] - 2) {\n"
                           "    r[i + 1, j + 1] = x[i + 1, j + 1] + k * (x[i, j + 1] + x[i + 2, j "
                           "+ 1] + x[i + 1, j] + x[i + 1, j + 2] - 4 * x[i + 1, j + 1])\n"
                           "  }\n"
                           "}\n"
                           "kernel add(r, x, y) { for i, j in grid_range(r.shape[0], r.shape[1]) { "
                           "r[i, j] = x[i, j] + y[i, j] } }\n"
                           "kernel check(x, limit) { for i, j in grid_range(x.shape[0], "
                           "x.shape[1]) { if x[i, j] > limit { raise \"too hot\" } } }\n";

static kjit_device *device;
static kjit_array *arrays[4];
static kjit_stream *stream, *side;
static kjit_event *forked, *joined;
static int calls;

static void count_call(void *user) { ++*(int *)user; }

/* Queues steps between two arrays, a copy and a sum on another stream, a fill, and a host
 * callback.
 */
static void queue_work(float k)
{
  kjit_arg edge = kjit_arg_f32(k / 2), fourth = kjit_arg_array(arrays[3]),
           third = kjit_arg_array(arrays[2]), second = kjit_arg_array(arrays[1]),
           first = kjit_arg_array(arrays[0]);
  kjit_launch_config config = { .size_bytes = sizeof config, .stream = stream },
                     beside = { .size_bytes = sizeof beside, .stream = side };
  kjit_prepared *prepared;
  kjit_arg there[] = { second, first, kjit_arg_f32(k) },
           back[] = { first, second, kjit_arg_f32(k) }, sum[] = { fourth, third, third };
  OK(kjit_prepare_launch(kernel_of("step"), &config, back, 3, &prepared));
  OK(kjit_record_event(forked, stream));
  OK(kjit_wait_event(side, forked));
  OK(kjit_fill(context, &third, &edge, side));
  OK(kjit_launch(kernel_of("add"), &beside, sum, 3));
  for (int i = 0; i < STEPS; i++) {
    OK(kjit_launch(kernel_of("step"), &config, there, 3));
    OK(kjit_run_prepared(prepared, NULL));
  }
  OK(kjit_record_event(joined, side));
  OK(kjit_wait_event(stream, joined));
  OK(kjit_copy_async(context, &third, &first, stream));
  OK(kjit_add_host_callback(device, stream, count_call, &calls));
  kjit_destroy_prepared(prepared);
}

static void set_up(void)
{
  static float values[N * N];
  kjit_arg zero = kjit_arg_number(0);
  for (int i = 0; i < N * N; i++) values[i] = (float)(i * 7919 % 1000) / 1000;
  for (int i = 1; i < 4; i++) {
    kjit_arg all = kjit_arg_array(arrays[i]);
    OK(kjit_fill(context, &all, &zero, stream));
  }
  OK(kjit_copy_from_host(arrays[0], values, sizeof values, stream));
}

static void read_all(float *values)
{
  for (int i = 0; i < 4; i++)
    OK(kjit_copy_to_host(arrays[i], values + i * N * N, N * N * sizeof *values, stream));
}

static kjit_graph *capture(float k)
{
  kjit_graph *graph;
  OK(kjit_begin_capture(stream));
  queue_work(k);
  OK(kjit_end_capture(stream, &graph));
  return graph;
}

static void check_replays(void)
{
  static float expected[4 * N * N], found[4 * N * N];
  const float ks[] = { 0.1f, 0.05f };
  set_up();
  /* the first capture compiles the kernels that it launches */
  kjit_graph *graph = capture(ks[0]), *other = capture(ks[1]), *empty;
  kjit_executable_graph *executable;
  CHECK(kjit_get_graph_size(graph) >= 2 * STEPS + 4 && calls == 0);
  OK(kjit_instantiate_graph(graph, &executable));
  kjit_destroy_graph(graph);
  for (int which = 0; which < 2; which++) {
    set_up();
    for (int i = 0; i < 5; i++) queue_work(ks[which]);
    OK(kjit_synchronize_stream(stream));
    read_all(expected);
    set_up();
    if (which) OK(kjit_update_graph(executable, other));
    calls = 0;
    for (int i = 0; i < 5; i++) {
      OK(kjit_launch_graph(executable, i % 2 ? side : stream));
      OK(kjit_synchronize_device(device));
    }
    read_all(found);
    CHECK(calls == 5 && !memcmp(expected, found, sizeof found));
  }
  OK(kjit_begin_capture(stream));
  OK(kjit_end_capture(stream, &empty));
  CHECK(kjit_update_graph(executable, empty) == KJIT_ERROR_ARGUMENT);
  OK(kjit_launch_graph(executable, NULL)); /* as it was */
  OK(kjit_synchronize_device(device));
  kjit_destroy_graph(empty);
  kjit_destroy_graph(other);
  kjit_destroy_executable_graph(executable);
}

/* A failing thread in a launch of a graph is reported like in any other launch. */
static void check_failure(void)
{
  kjit_graph *graph;
  kjit_executable_graph *executable;
  kjit_launch_config config = { .size_bytes = sizeof config, .stream = stream };
  kjit_arg arguments[] = { kjit_arg_array(arrays[0]), kjit_arg_f32(0.9f) };
  set_up();
  OK(kjit_begin_capture(stream));
  OK(kjit_launch(kernel_of("check"), &config, arguments, 2));
  OK(kjit_end_capture(stream, &graph));
  OK(kjit_instantiate_graph(graph, &executable));
  for (int i = 0; i < 3; i++) {
    kjit_status status = kjit_launch_graph(executable, stream);
    if (status == KJIT_OK) status = kjit_synchronize_stream(stream);
    CHECK(status == KJIT_ERROR_KERNEL &&
          strstr(kjit_get_diagnostic(context, 0)->message, "too hot"));
  }
  kjit_destroy_graph(graph);
  kjit_destroy_executable_graph(executable);
}

static void check_streams(void)
{
  int32_t least, greatest;
  uint64_t time_ns;
  kjit_stream *urgent, *usual, *threads;
  kjit_arg first = kjit_arg_array(arrays[0]), second = kjit_arg_array(arrays[1]);
  kjit_arg arguments[] = { second, first, kjit_arg_f32(0.1f) };
  OK(kjit_get_stream_priorities(device, &least, &greatest));
  CHECK(greatest <= least);
  OK(kjit_create_stream_with(device, greatest, KJIT_STREAM_NON_BLOCKING, &urgent));
  OK(kjit_get_default_stream(device, &usual));
  OK(kjit_get_thread_stream(device, &threads));
  kjit_stream *all[] = { urgent, usual, threads, stream };
  OK(kjit_start_profiler(device));
  (void)kjit_begin_range(context, "all streams");
  for (int i = 0; i < 4; i++) {
    kjit_launch_config config = { .size_bytes = sizeof config, .stream = all[i] };
    OK(kjit_record_event(forked, all[i]));
    OK(kjit_launch(kernel_of("step"), &config, arguments, 3));
    OK(kjit_record_event(joined, all[i]));
    kjit_status status;
    while ((status = kjit_query_event(joined)) == KJIT_NOT_READY) {}
    OK(status);
    OK(kjit_get_elapsed_time(forked, joined, &time_ns));
    CHECK(time_ns < 1000000000);
    while ((status = kjit_query_stream(all[i])) == KJIT_NOT_READY) {}
    OK(status);
  }
  kjit_end_range(context);
  OK(kjit_stop_profiler(device));
  kjit_destroy_stream(urgent);
}

int main(int count, char **arguments)
{
  if (count < 2) return 2;
  int64_t shape[] = { N, N };
  OK(kjit_create_context(NULL, &context));
  OK(kjit_get_device(context, !strcmp(arguments[1], "cuda") ? KJIT_DEVICE_CUDA : KJIT_DEVICE_CPU, 0,
                     &device));
  OK(kjit_parse_module(context, "graphs.kir", text, sizeof text - 1, &module));
  OK(kjit_create_stream_with(device, 0, KJIT_STREAM_NON_BLOCKING, &stream));
  OK(kjit_create_stream_with(device, 0, KJIT_STREAM_NON_BLOCKING, &side));
  OK(kjit_create_event(device, &forked));
  OK(kjit_create_event(device, &joined));
  for (int i = 0; i < 4; i++) OK(kjit_create_array(device, KJIT_F32, shape, 2, &arrays[i]));
  OK(kjit_synchronize_device(device));
  check_replays();
  check_failure();
  check_streams();
  kjit_destroy_context(context);
  printf("ok\n");
  return 0;
}
