/* Programs in which streams, captures, graphs, code or devices end, or are used, at the wrong
 * time. */
#include "oracle_programs.h"

static void keep_a_wrapped_stream(void)
{
  world_stream wrapped = world_make_stream(0, KJIT_STREAM_NON_BLOCKING, true),
               other = non_blocking(0);
  world_array array = array_on(0, wrapped.stream);
  launch_on(&other, &array);
  world_destroy_stream(&wrapped);
  world_release_array(&array);
  (void)array_on(0, NULL);
}

static world_array at_begin;
static void release_at_begin(void) { world_release_array(&at_begin); }

/* As soon as the driver captures a stream, another thread releases an array that the stream has
 * used. */
static void release_as_a_capture_begins(void)
{
  world_stream own = non_blocking(0), other = non_blocking(0);
  at_begin = array_on(0, own.stream);
  launch_on(&other, &at_begin);
  elsewhere = release_at_begin;
  oracle_after_begin = do_elsewhere;
  (void)WORLD_CALL(kjit_begin_capture, other.stream);
  kjit_graph *graph = NULL;
  (void)WORLD_CALL(kjit_end_capture, other.stream, &graph);
}

/* The same, if the captured stream is the stream on which the array was created. */
static void release_as_its_own_stream_is_captured(void)
{
  world_stream own = non_blocking(0), other = non_blocking(0);
  at_begin = array_on(0, own.stream);
  launch_on(&other, &at_begin);
  elsewhere = release_at_begin;
  oracle_after_begin = do_elsewhere;
  (void)WORLD_CALL(kjit_begin_capture, own.stream);
  kjit_graph *graph = NULL;
  (void)WORLD_CALL(kjit_end_capture, own.stream, &graph);
}

static world_stream at_wait;
static void begin_at_wait(void) { (void)WORLD_CALL(kjit_begin_capture, at_wait.stream); }

/* One thread is about to wait for the device when another thread begins a capture, which this wait
 * would break. kjit has to do one of the two before the other. */
static void wait_as_a_capture_begins(void)
{
  at_wait = non_blocking(0);
  elsewhere = begin_at_wait;
  oracle_before_wait = do_elsewhere;
  (void)world_synchronize_device(0);
}

/* The same, but kjit waits because it unloads code. */
static void unload_as_a_capture_begins(void)
{
  static const char source[] =
    "kernel passing(x) {\n  for i in grid_range(x.shape) { x[i] = x[i] }\n}\n";
  kjit_module *module = parse(world.context, source);
  world_array array = array_on(0, NULL);
  kjit_arg argument = kjit_arg_array(array.array);
  kjit_launch_config config = { .size_bytes = sizeof config, .device = world.devices[0] };
  (void)WORLD_CALL(kjit_launch, kernel_of(module, "passing"), &config, &argument, 1);
  at_wait = non_blocking(0);
  elsewhere = begin_at_wait;
  oracle_before_wait = do_elsewhere;
  WORLD_END(kjit_release_module, module);
}

/* An array is created on the per-thread stream of one thread and released by another thread, while
 * the first thread continues to use it. */
static void release_on_another_thread(void)
{
  kjit_stream *thread;
  world_stream user = non_blocking(0);
  (void)WORLD_CALL(kjit_get_thread_stream, world.devices[0], &thread);
  at_begin = world_take(0, thread, shape);
  launch_on(&user, &at_begin);
  elsewhere = release_at_begin;
  do_elsewhere();
}

static kjit_module *late;
static kjit_kernel *late_kernel;
static world_stream late_stream, late_captured;
static world_array late_array;

static void launch_and_unload(void)
{
  kjit_arg argument = kjit_arg_array(late_array.array);
  kjit_launch_config config = { .size_bytes = sizeof config,
                                .stream = late_stream.stream,
                                .device = world.devices[0] };
  (void)WORLD_CALL(kjit_launch, late_kernel, &config, &argument, 1);
  (void)WORLD_CALL(kjit_begin_capture, late_captured.stream);
  WORLD_END(kjit_release_module, late);
}

/* One thread unloads code and has waited for the device. Before it continues, another thread
 * launches other code, begins a capture and releases this code, which then has to stay loaded until
 * the next wait. */
static void unload_without_a_wait(void)
{
  static const char source[] =
    "kernel late(x) {\n  for i in grid_range(x.shape) { x[i] = x[i] }\n}\n";
  late_stream = non_blocking(0);
  late_captured = non_blocking(0);
  late_array = array_on(0, late_stream.stream);
  late = parse(world.context, source);
  late_kernel = kernel_of(late, "late");
  kjit_module *first = parse(world.context, source);
  kjit_kernel *kernel = kernel_of(first, "late");
  kjit_arg argument = kjit_arg_array(late_array.array);
  kjit_launch_config config = { .size_bytes = sizeof config,
                                .stream = late_stream.stream,
                                .device = world.devices[0] };
  (void)WORLD_CALL(kjit_launch, kernel, &config, &argument, 1);
  (void)WORLD_CALL(kjit_launch, late_kernel, &config, &argument, 1);
  elsewhere = launch_and_unload;
  oracle_after_wait = do_elsewhere;
  WORLD_END(kjit_release_module, first);
}

static void take_with_a_stream_of_before(void)
{
  world_stream old = non_blocking(0), other = non_blocking(0);
  (void)WORLD_CALL(kjit_reset_device, world.devices[0]);
  world.generations[0]++;
  other = non_blocking(0);
  world_array array = world_take(0, old.stream, shape);
  if (!array.array) return;
  launch_on(&other, &array);
  world_release_array(&array);
}

/* After a reset the driver does not know the streams that were created before it. */
static void release_after_a_reset(void)
{
  world_stream own = non_blocking(0), none = { .device = 0 };
  world_array array = array_on(0, own.stream);
  launch_on(&none, &array);
  world.generations[0]++;
  (void)WORLD_CALL(kjit_reset_device, world.devices[0]);
  world_release_array(&array);
}

/* A graph is launched on a device that was not reset, but it uses an array of a device that was. */
static void launch_a_graph_of_what_is_lost(void)
{
  world_stream captured = non_blocking(1);
  world_graph graph = { .device = 1 };
  world_array array = array_on(0, NULL);
  (void)WORLD_CALL(kjit_begin_capture, captured.stream);
  launch_on(&captured, &array);
  if (WORLD_CALL(kjit_end_capture, captured.stream, &graph.graph) != KJIT_OK ||
      WORLD_CALL(kjit_instantiate_graph, graph.graph, &graph.executable) != KJIT_OK)
    abort();
  world.generations[0]++;
  (void)WORLD_CALL(kjit_reset_device, world.devices[0]);
  (void)world_launch_graph(&graph, captured.stream);
}

static void end_by_itself(const world_stream *stream)
{
  void *graph = NULL;
  oracle_here.context = &fake_primary[0];
  if (oracle_cuStreamEndCapture(stream->native, &graph)) abort();
  (void)oracle_cuGraphDestroy(graph);
}

/* The program captures a stream itself, with the driver. During the capture it releases an array
 * that the stream has used.
 */
static void release_while_the_host_captures(void)
{
  enum { RELAXED = 2 };
  world_stream own = non_blocking(0),
               wrapped = world_make_stream(0, KJIT_STREAM_NON_BLOCKING, true);
  world_array array = array_on(0, own.stream);
  launch_on(&wrapped, &array);
  oracle_here.context = &fake_primary[0];
  if (oracle_cuStreamBeginCapture(wrapped.native, RELAXED)) abort();
  world_release_array(&array);
  (void)array_on(0, own.stream);
  end_by_itself(&wrapped);
}

static void release_in_the_order_of_a_hosts_capture(void)
{
  enum { RELAXED = 2 };
  world_stream own = world_make_stream(0, KJIT_STREAM_NON_BLOCKING, true), other = non_blocking(0);
  world_array array = array_on(0, own.stream);
  launch_on(&other, &array);
  oracle_here.context = &fake_primary[0];
  if (oracle_cuStreamBeginCapture(own.native, RELAXED)) abort();
  oracle.checks_host_captures = true;
  world_release_array(&array);
  (void)array_on(0, NULL);
  end_by_itself(&own);
}

/* Code is unloaded while the program captures a stream itself, with the driver. */
static void unload_while_the_host_captures(void)
{
  enum { RELAXED = 2 };
  static const char source[] =
    "kernel passing(x) {\n  for i in grid_range(x.shape) { x[i] = x[i] }\n}\n";
  world_stream wrapped = world_make_stream(0, KJIT_STREAM_NON_BLOCKING, true);
  kjit_module *module = parse(world.context, source);
  world_array array = array_on(0, NULL);
  kjit_arg argument = kjit_arg_array(array.array);
  kjit_launch_config config = { .size_bytes = sizeof config, .device = world.devices[0] };
  (void)WORLD_CALL(kjit_launch, kernel_of(module, "passing"), &config, &argument, 1);
  oracle_here.context = &fake_primary[0];
  if (oracle_cuStreamBeginCapture(wrapped.native, RELAXED)) abort();
  oracle.checks_host_captures = true;
  WORLD_END(kjit_release_module, module);
  end_by_itself(&wrapped);
}

/* The same with another captured stream. It is the thread's default stream, or a stream of another
 * device; in the second case the thread's stream has joined the capture by an event. */
static void unload_while_a_thread_is_captured(void)
{
  enum { RELAXED = 2 };
  static const char source[] =
    "kernel passing(x) {\n  for i in grid_range(x.shape) { x[i] = x[i] }\n}\n";
  kjit_stream *thread;
  kjit_event *event = NULL;
  (void)WORLD_CALL(kjit_get_thread_stream, world.devices[0], &thread);
  world_stream wrapped = world_make_stream(1, KJIT_STREAM_NON_BLOCKING, true),
               own = { .native = world_thread_stream(0) };
  for (int is_brought = 0; is_brought < 2; is_brought++) {
    kjit_module *module = parse(world.context, source);
    world_array array = array_on(0, NULL);
    kjit_arg argument = kjit_arg_array(array.array);
    kjit_launch_config config = { .size_bytes = sizeof config, .device = world.devices[0] };
    (void)WORLD_CALL(kjit_launch, kernel_of(module, "passing"), &config, &argument, 1);
    const world_stream *origin = is_brought ? &wrapped : &own;
    oracle_here.context = &fake_primary[origin->device];
    if (oracle_cuStreamBeginCapture(origin->native, RELAXED)) abort();
    if (is_brought) {
      (void)WORLD_CALL(kjit_create_event, world.devices[1], &event);
      (void)WORLD_CALL(kjit_record_event, event, wrapped.stream);
      oracle_here.joins = own.native;
      (void)WORLD_CALL(kjit_wait_event, thread, event);
    }
    oracle.checks_host_captures = true;
    WORLD_END(kjit_release_module, module);
    end_by_itself(origin);
  }
}

/* An array is exported to another process, which needs a wait, while the program captures a stream
 * itself. */
static void export_while_the_host_captures(void)
{
  enum { RELAXED = 2 };
  kjit_array_handle handle;
  world_stream wrapped = world_make_stream(0, KJIT_STREAM_NON_BLOCKING, true);
  world_array array = array_on(0, NULL);
  oracle_here.context = &fake_primary[0];
  if (oracle_cuStreamBeginCapture(wrapped.native, RELAXED)) abort();
  oracle.checks_host_captures = true;
  (void)WORLD_CALL(kjit_export_array, array.array, &handle);
  end_by_itself(&wrapped);
}

/* The program wraps one native stream twice. Launches on the second wrapper are part of the capture
 * on the first wrapper. */
static void capture_by_another_name(void)
{
  world_stream wrapped = world_make_stream(0, KJIT_STREAM_NON_BLOCKING, true), other = wrapped;
  world_graph graph = { .device = 0 };
  world_array array = array_on(0, wrapped.stream);
  for (int is_second = 0; is_second < 2; is_second++) {
    if (!is_second)
      (void)WORLD_CALL(kjit_wrap_stream, world.devices[0], wrapped.native, &other.stream);
    (void)WORLD_CALL(kjit_begin_capture, wrapped.stream);
    if (is_second)
      (void)WORLD_CALL(kjit_wrap_stream, world.devices[0], wrapped.native, &other.stream);
    launch_on(&other, &array);
    if (WORLD_CALL(kjit_end_capture, is_second ? other.stream : wrapped.stream, &graph.graph) !=
          KJIT_OK ||
        WORLD_CALL(kjit_instantiate_graph, graph.graph, &graph.executable) != KJIT_OK)
      abort();
    world_release_array(&array);
    array = array_on(0, wrapped.stream);
    (void)world_launch_graph(&graph, wrapped.stream);
    world_destroy_graph(&graph);
    WORLD_END(kjit_destroy_stream, other.stream);
  }
}

static void prefetch_on_a_stream_of_the_cpu(void)
{
  kjit_stream *cpus;
  world_array array = world_make_array(0, KJIT_MEMORY_MANAGED, shape, NULL);
  (void)WORLD_CALL(kjit_create_stream, world.cpu, &cpus);
  (void)WORLD_CALL(kjit_prefetch_array, array.array, world.devices[0], cpus);
}

/* The current device of the thread has failed. Destroying a captured stream of another device still
 * ends the capture, before the program gets the native stream back. */
static void destroy_what_is_captured_beside_a_fault(void)
{
  world_stream captured = world_make_stream(0, KJIT_STREAM_NON_BLOCKING, true);
  (void)WORLD_CALL(kjit_begin_capture, captured.stream);
  oracle_begin_fault(1);
  oracle_here.context = &fake_primary[1];
  world_destroy_stream(&captured);
  (void)world_synchronize_device(0);
}

/* A default stream belongs to the current context. A launch on the default stream of another device
 * must not use the current context, because that would break a capture in it. */
static void launch_on_a_default_stream_elsewhere(void)
{
  world_stream captured = world_make_stream(0, 0, true), legacy = { .device = 1 };
  world_array array = array_on(0, captured.stream), other = array_on(1, NULL);
  (void)WORLD_CALL(kjit_begin_capture, captured.stream);
  launch_on(&captured, &array);
  oracle_here.context = &fake_primary[0];
  for (int i = 0; i < 2; i++) launch_on(&legacy, &other);
  kjit_graph *graph = NULL;
  (void)WORLD_CALL(kjit_end_capture, captured.stream, &graph);
  kjit_destroy_graph(graph);
}

static void launch_a_graph_twice(void)
{
  world_stream captured = non_blocking(0), other = non_blocking(0);
  world_graph graph = { .device = 0 };
  world_array array = array_on(0, captured.stream);
  (void)WORLD_CALL(kjit_begin_capture, captured.stream);
  launch_on(&captured, &array);
  world_keep(&graph, array.memory);
  if (WORLD_CALL(kjit_end_capture, captured.stream, &graph.graph) != KJIT_OK ||
      WORLD_CALL(kjit_instantiate_graph, graph.graph, &graph.executable) != KJIT_OK)
    abort();
  world_release_array(&array);
  (void)world_launch_graph(&graph, other.stream);
  (void)world_launch_graph(&graph, captured.stream);
  (void)array_on(0, captured.stream);
  world_destroy_graph(&graph);
  (void)array_on(0, NULL);
}

/* ---- the table ---- */

static const row rows[] = {
  { "wrapped_stream", keep_a_wrapped_stream, NULL },
  { "capture_begins", release_as_a_capture_begins, NULL },
  { "capture_begins_own", release_as_its_own_stream_is_captured, NULL },
  { "wait_and_capture", wait_as_a_capture_begins, NULL },
  { "unload_and_capture", unload_as_a_capture_begins, NULL },
  { "deleter_thread", release_on_another_thread, NULL },
  { "parked_code", unload_without_a_wait, NULL },
  { "stale_stream", take_with_a_stream_of_before, NULL },
  { "lost_array", release_after_a_reset, NULL },
  { "graph_of_lost", launch_a_graph_of_what_is_lost, NULL },
  { "hosts_capture", release_while_the_host_captures, NULL },
  { "hosts_capture_own", release_in_the_order_of_a_hosts_capture, NULL },
  { "hosts_capture_unload", unload_while_the_host_captures, NULL },
  { "hosts_capture_thread", unload_while_a_thread_is_captured, NULL },
  { "hosts_capture_export", export_while_the_host_captures, NULL },
  { "capture_alias", capture_by_another_name, NULL },
  { "prefetch_cpu_stream", prefetch_on_a_stream_of_the_cpu, NULL },
  { "captured_beside_fault", destroy_what_is_captured_beside_a_fault, NULL },
  { "default_stream_elsewhere", launch_on_a_default_stream_elsewhere, NULL },
  { "graph", launch_a_graph_twice, NULL },
};

int main(int count, char **arguments)
{
  return run_programs(rows, sizeof rows / sizeof *rows, count, arguments);
}
