/* Small programs that the oracle looks at, each of them once a mistake that it found or was told
 * of. Run one by its name, with everything that happened:
 *
 *   build/ci/test/unit/oracle_programs_test shared_slot
 *
 * Indented by two columns are the calls of kjit, by six those of the driver; the last line is the
 * violation: who uses the memory, by which operation of which stream, and what did not wait for it.
 * A row of the table that says what is broken is expected to end in a violation: whoever mends it
 * empties that column, which a program that has come to pass demands. */
#include "oracle_process.h"

static const int64_t shape[2] = { 32, 32 };

static world_stream non_blocking(uint32_t device)
{
  return world_make_stream(device, KJIT_STREAM_NON_BLOCKING, false);
}

static world_array array_on(uint32_t device, kjit_stream *stream)
{
  return world_make_array(device, KJIT_MEMORY_DEVICE, shape, stream);
}

static void launch_on(const world_stream *stream, world_array *array)
{
  (void)world_launch(stream->device, stream->stream, &array, 1);
}

static world_array every_other_column(const world_array *array)
{
  return world_slice(array, (kjit_array_slice[]){ { 0, 32, 1 }, { 0, 32, 2 } });
}

/* What another thread does meanwhile. Where a lock keeps it out, it comes later. */
static void (*elsewhere)(void);
static void *run_elsewhere(void *user)
{
  (void)user;
  oracle_here.thread = 2;
  elsewhere();
  return NULL;
}
static pthread_t late_thread;
static bool is_late; /* it is joined when the program ends */
static void do_elsewhere(void)
{
  pthread_t thread;
  struct timespec until;
  if (pthread_create(&thread, NULL, run_elsewhere, NULL)) abort();
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += 50000000;
  until.tv_sec += until.tv_nsec / 1000000000;
  until.tv_nsec %= 1000000000;
  is_late = pthread_timedjoin_np(thread, NULL, &until) != 0;
  late_thread = thread;
}

/* ---- memory that goes on while another stream uses it ---- */

/* More streams than a word has bits. */
static void use_many_streams(void)
{
  world_stream own = non_blocking(0);
  for (int i = 0; i < 60; i++) {
    world_stream passing = non_blocking(0);
    world_destroy_stream(&passing);
  }
  world_stream other = non_blocking(0);
  world_array array = array_on(0, own.stream);
  launch_on(&other, &array);
  world_release_array(&array);
  (void)array_on(0, own.stream);
}

static void export_among_many_streams(void)
{
  world_stream own = non_blocking(0);
  for (int i = 0; i < 60; i++) {
    world_stream passing = non_blocking(0);
    world_destroy_stream(&passing);
  }
  world_stream other = non_blocking(0);
  world_array array = array_on(0, NULL);
  launch_on(&own, &array);
  (void)world_give(&array, 0, other.stream);
}

/* A block is behind an event, is taken and given back unused, and goes on to a stream that has not
 * waited for the event. */
static void forget_a_join(void)
{
  world_stream own = world_make_stream(0, 0, false), other = non_blocking(0);
  world_array array = array_on(0, own.stream);
  launch_on(&other, &array);
  world_release_array(&array);
  array = array_on(0, own.stream);
  world_release_array(&array);
  (void)array_on(0, NULL);
}

/* From a stream to the default one and on to a third, with nothing queued in between. */
static void pass_by_the_default_stream(void)
{
  world_stream first = world_make_stream(0, 0, false), last = world_make_stream(0, 0, false);
  world_array array = array_on(0, first.stream);
  launch_on(&first, &array);
  world_release_array(&array);
  array = array_on(0, NULL);
  world_release_array(&array);
  (void)array_on(0, last.stream);
}

/* Memory is short, so that the thread's stream takes it behind an event. */
static void pass_by_the_threads_stream(void)
{
  kjit_stream *thread;
  world_stream first = non_blocking(0);
  world_array array = array_on(0, first.stream);
  launch_on(&first, &array);
  world_release_array(&array);
  oracle.memory_limit = 4096;
  (void)WORLD_CALL(kjit_get_thread_stream, world.devices[0], &thread);
  array = array_on(0, thread);
  if (!array.array) return;
  world_release_array(&array);
  (void)array_on(0, NULL);
}

/* Only copies of tensors were queued on the stream, by memory in between. */
static void destroy_a_stream_of_copies(void)
{
  static float host[32 * 64];
  int64_t extents[] = { 32, 32 }, strides[] = { 64, 2 };
  world_stream own = non_blocking(0), other = non_blocking(0);
  world_array first = world_make_array(0, KJIT_MEMORY_DEVICE, (int64_t[]){ 32, 64 }, own.stream),
              part = world_slice(&first, (kjit_array_slice[]){ { 0, 32, 1 }, { 0, 64, 2 } });
  kjit_tensor tensor = { .data = host,
                         .device_type = 1,
                         .rank = 2,
                         .code = 2,
                         .bits = 32,
                         .lanes = 1,
                         .shape = extents,
                         .strides = strides };
  kjit_arg to = kjit_arg_tensor(kjit_get_tensor(part.array)), from = kjit_arg_tensor(&tensor);
  world_stream copies = non_blocking(0);
  world_order(first.memory, copies.native);
  (void)WORLD_CALL(kjit_copy_async, world.context, &to, &from, copies.stream);
  world_destroy_stream(&copies);
  (void)array_on(0, other.stream);
}

/* The last wait fails, after the copy to the other GPU was queued. */
static void fail_a_copy_between_devices(void)
{
  for (int fail_at = 1; fail_at < 60; fail_at++) {
    world_array source = array_on(0, NULL), target = array_on(1, NULL);
    world_array part = every_other_column(&source), there = every_other_column(&target);
    oracle_here.fail_at = fail_at;
    oracle_here.fail_with = CUDA_UNKNOWN;
    (void)world_copy(1, NULL, &there, &part, false);
    world_array next = world_make_array(0, KJIT_MEMORY_DEVICE, (int64_t[]){ 32, 16 }, NULL);
    world_array after = world_make_array(1, KJIT_MEMORY_DEVICE, (int64_t[]){ 32, 16 }, NULL);
    world_array *all[] = { &next, &after, &part, &there, &source, &target };
    for (int i = 0; i < 6; i++) world_release_array(all[i]);
    (void)world_synchronize_device(0);
    (void)world_synchronize_device(1);
  }
}

/* Used by another GPU on which something is captured. */
static void release_what_another_device_uses(void)
{
  world_stream captured = non_blocking(1), user = non_blocking(1);
  world_array array = array_on(0, NULL);
  (void)WORLD_CALL(kjit_begin_capture, captured.stream);
  launch_on(&user, &array);
  world_release_array(&array);
  (void)array_on(0, NULL);
}

/* ... or whose streams stand elsewhere in the list: the first of its device uses what the second of
 * the owner's may have. */
static void release_what_many_devices_use(void)
{
  world_stream captured = non_blocking(1);
  (void)WORLD_CALL(kjit_begin_capture, captured.stream);
  for (uint32_t i = 1; i < ORACLE_DEVICES; i++) {
    world_stream user = non_blocking(i);
    world_array array = array_on(0, NULL);
    launch_on(&user, &array);
    world_release_array(&array);
  }
  (void)array_on(0, NULL);
  (void)array_on(0, NULL);
}

static void delete_what_the_default_stream_uses(void)
{
  world_stream captured = non_blocking(0), own = non_blocking(0);
  world_stream none = { .device = 0 };
  world_array array = world_take(0, own.stream, shape);
  launch_on(&none, &array);
  (void)WORLD_CALL(kjit_begin_capture, captured.stream);
  world_release_array(&array);
}

static void delete_after_a_failed_wait(void)
{
  for (int fail_at = 1; fail_at < 12; fail_at++) {
    world_stream own = non_blocking(0), other = non_blocking(1);
    world_array array = world_take(0, own.stream, shape);
    launch_on(&other, &array);
    oracle_here.fail_at = fail_at;
    oracle_here.fail_with = CUDA_UNKNOWN;
    world_release_array(&array);
    world_destroy_stream(&own);
    world_destroy_stream(&other);
  }
}

/* Memory of the driver's own, whose wait fails, is kept. */
static void free_after_a_failed_wait(void)
{
  for (int fail_at = 1; fail_at < 12; fail_at++) {
    world_stream other = non_blocking(1);
    world_array array = world_make_array(0, KJIT_MEMORY_SHARED, shape, NULL);
    launch_on(&other, &array);
    oracle_here.fail_at = fail_at;
    oracle_here.fail_with = CUDA_UNKNOWN;
    world_release_array(&array);
    world_destroy_stream(&other);
  }
}

static void free_what_a_copy_reads(void)
{
  world_stream stream = non_blocking(0);
  world_array there = array_on(0, stream.stream), part = every_other_column(&there);
  world_array host = world_make_array(ORACLE_DEVICES, KJIT_MEMORY_DEVICE, shape, NULL),
              some = every_other_column(&host);
  (void)world_copy(0, stream.stream, &part, &some, true);
  world_release_array(&some);
  world_release_array(&host);
}

/* ---- lifetime ---- */

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

/* Another thread releases an array as soon as the driver captures: the capture is of a stream that
 * has used it. */
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

/* ... or in whose order it was made. */
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

/* One thread is about to wait for the device, and another one begins a capture, which that wait
 * would break: one of the two has to come first. */
static void wait_as_a_capture_begins(void)
{
  at_wait = non_blocking(0);
  elsewhere = begin_at_wait;
  oracle_before_wait = do_elsewhere;
  (void)world_synchronize_device(0);
}

/* The same where code is unloaded. */
static void unload_as_a_capture_begins(void)
{
  static const char source[] =
    "kernel passing(x) {\n  for i in grid_range(x.shape) { x[i] = x[i] }\n}\n";
  kjit_module *module = parse(world.context, source);
  world_array array = array_on(0, NULL);
  kjit_arg argument = kjit_arg_array(array.array);
  kjit_launch_config config = { .device = world.devices[0] };
  (void)WORLD_CALL(kjit_launch, kernel_of(module, "passing"), &config, &argument, 1);
  at_wait = non_blocking(0);
  elsewhere = begin_at_wait;
  oracle_before_wait = do_elsewhere;
  WORLD_END(kjit_release_module, module);
}

/* Taken on one thread's own stream, and released by another thread: the first goes on with it. */
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
  kjit_launch_config config = { .stream = late_stream.stream, .device = world.devices[0] };
  (void)WORLD_CALL(kjit_launch, late_kernel, &config, &argument, 1);
  (void)WORLD_CALL(kjit_begin_capture, late_captured.stream);
  WORLD_END(kjit_release_module, late);
}

/* One thread unloads code, and has waited; another one launches code, captures, and lets the code
 * go, which now waits for the next occasion. */
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
  kjit_launch_config config = { .stream = late_stream.stream, .device = world.devices[0] };
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

/* ---- found by random programs ---- */

/* The other process is told that the array is there. */
static void export_what_another_device_uses(void)
{
  world_stream user = non_blocking(1);
  world_array array = array_on(0, NULL);
  kjit_array_handle handle;
  launch_on(&user, &array);
  if (WORLD_CALL(kjit_export_array, array.array, &handle) != KJIT_OK) abort();
  oracle_expect_unused(array.memory->block, &oracle.host, "an array is exported to a process");
}

static world_array opened_array(void)
{
  world_array source = array_on(0, NULL), made = { 0 };
  kjit_array_handle handle;
  if (WORLD_CALL(kjit_export_array, source.array, &handle) != KJIT_OK) abort();
  world_change_process(&handle);
  if (WORLD_CALL(kjit_import_array, world.context, &handle, &made.array) != KJIT_OK) abort();
  made.memory = world_begin_memory(made.array, 0, oracle.legacy[0]);
  return made;
}

static void close_what_the_default_stream_uses(void)
{
  world_stream captured = non_blocking(0), none = { .device = 0 };
  world_array array = opened_array();
  launch_on(&none, &array);
  (void)WORLD_CALL(kjit_begin_capture, captured.stream);
  world_release_array(&array);
}

static void unpin_what_another_device_uses(void)
{
  world_stream captured = non_blocking(1), user = non_blocking(1);
  world_array array = world_make_array(0, KJIT_MEMORY_PINNED, shape, NULL),
              there = array_on(1, user.stream);
  (void)world_copy(1, user.stream, &there, &array, true);
  (void)WORLD_CALL(kjit_begin_capture, captured.stream);
  world_release_array(&array);
}

static void export_what_another_device_used(void)
{
  world_stream captured = non_blocking(1), none = { .device = 1 };
  world_array array = array_on(0, NULL);
  launch_on(&none, &array);
  (void)WORLD_CALL(kjit_begin_capture, captured.stream);
  (void)world_give(&array, 0, NULL);
}

/* The streams of before a reset mean nothing to the driver. */
static void release_after_a_reset(void)
{
  world_stream own = non_blocking(0), none = { .device = 0 };
  world_array array = array_on(0, own.stream);
  launch_on(&none, &array);
  world.generations[0]++;
  (void)WORLD_CALL(kjit_reset_device, world.devices[0]);
  world_release_array(&array);
}

/* Its own device was not reset: that of an array was. */
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

/* The program captures a stream by itself, on which an array was used that is released meanwhile.
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

/* A copy between GPUs gathers on the source's default stream, and the wait for that fails. */
static void fail_to_wait_for_a_gather(void)
{
  for (int fail_at = 1; fail_at < 40; fail_at++) {
    world_stream own = non_blocking(0);
    world_array source = array_on(0, own.stream), target = array_on(1, NULL);
    world_array part = every_other_column(&source), there = every_other_column(&target);
    oracle_here.fail_at = fail_at;
    oracle_here.fail_with = CUDA_UNKNOWN;
    (void)world_copy(1, NULL, &there, &part, false);
    world_release_array(&part);
    world_release_array(&source);
    world_array next = array_on(0, own.stream);
    world_release_array(&next);
    world_release_array(&there);
    world_release_array(&target);
    (void)world_synchronize_device(0);
    (void)world_synchronize_device(1);
    world_destroy_stream(&own);
  }
}

/* Code is unloaded while the program captures a stream by itself. */
static void unload_while_the_host_captures(void)
{
  enum { RELAXED = 2 };
  static const char source[] =
    "kernel passing(x) {\n  for i in grid_range(x.shape) { x[i] = x[i] }\n}\n";
  world_stream wrapped = world_make_stream(0, KJIT_STREAM_NON_BLOCKING, true);
  kjit_module *module = parse(world.context, source);
  world_array array = array_on(0, NULL);
  kjit_arg argument = kjit_arg_array(array.array);
  kjit_launch_config config = { .device = world.devices[0] };
  (void)WORLD_CALL(kjit_launch, kernel_of(module, "passing"), &config, &argument, 1);
  oracle_here.context = &fake_primary[0];
  if (oracle_cuStreamBeginCapture(wrapped.native, RELAXED)) abort();
  oracle.checks_host_captures = true;
  WORLD_END(kjit_release_module, module);
  end_by_itself(&wrapped);
}

/* ... the one of its thread, or another device's, which an event has brought into the capture. */
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
    kjit_launch_config config = { .device = world.devices[0] };
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

/* ... or an array is exported to another process, which the host would wait for. */
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

/* Two objects for one stream of the program's: what is launched by the second is captured by the
 * first. */
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

static void make_on_default(void) { (void)array_on(0, NULL); }

/* Memory goes on in the order of one thread's own stream, which has waited for an event and done
 * nothing since. Another thread can name the default stream only, which comes after what the other
 * one has done. */
static void take_what_a_threads_stream_waits_for(void)
{
  kjit_stream *thread;
  world_stream user = non_blocking(0);
  (void)WORLD_CALL(kjit_get_thread_stream, world.devices[0], &thread);
  world_array array = array_on(0, thread);
  launch_on(&user, &array);
  world_release_array(&array);
  oracle.memory_limit = 4096;
  elsewhere = make_on_default;
  do_elsewhere();
}

/* The program's thread has a device current that has failed: another one's capture ends all the
 * same, before the stream is the program's again. */
static void destroy_what_is_captured_beside_a_fault(void)
{
  world_stream captured = world_make_stream(0, KJIT_STREAM_NON_BLOCKING, true);
  (void)WORLD_CALL(kjit_begin_capture, captured.stream);
  oracle_begin_fault(1);
  oracle_here.context = &fake_primary[1];
  world_destroy_stream(&captured);
  (void)world_synchronize_device(0);
}

/* ---- what has always been right: the rules themselves ---- */

static void pass_by_an_event(void)
{
  world_stream own = non_blocking(0), other = non_blocking(0);
  world_array array = array_on(0, own.stream);
  launch_on(&own, &array);
  launch_on(&other, &array);
  world_release_array(&array);
  array = array_on(0, own.stream);
  launch_on(&own, &array);
  (void)world_synchronize(own.stream, own.native);
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

typedef struct row {
  const char *name;
  void (*program)(void);
  const char *broken; /* by its name in the review; NULL: nothing, as it should be */
} row;

static const row rows[] = {
  { "shared_slot", use_many_streams, NULL },
  { "shared_slot_export", export_among_many_streams, NULL },
  { "forgotten_join", forget_a_join, NULL },
  { "by_default_stream", pass_by_the_default_stream, NULL },
  { "by_thread_stream", pass_by_the_threads_stream, NULL },
  { "stream_of_copies", destroy_a_stream_of_copies, NULL },
  { "failed_peer_copy", fail_a_copy_between_devices, NULL },
  { "used_elsewhere", release_what_another_device_uses, NULL },
  { "used_on_many", release_what_many_devices_use, NULL },
  { "deleter_default", delete_what_the_default_stream_uses, NULL },
  { "deleter_failed_wait", delete_after_a_failed_wait, NULL },
  { "free_failed_wait", free_after_a_failed_wait, NULL },
  { "host_array_copied", free_what_a_copy_reads, NULL },
  { "wrapped_stream", keep_a_wrapped_stream, NULL },
  { "capture_begins", release_as_a_capture_begins, NULL },
  { "capture_begins_own", release_as_its_own_stream_is_captured, NULL },
  { "wait_and_capture", wait_as_a_capture_begins, NULL },
  { "unload_and_capture", unload_as_a_capture_begins, NULL },
  { "deleter_thread", release_on_another_thread, NULL },
  { "parked_code", unload_without_a_wait, NULL },
  { "stale_stream", take_with_a_stream_of_before, NULL },
  { "process_elsewhere", export_what_another_device_uses, NULL },
  { "opened_default", close_what_the_default_stream_uses, NULL },
  { "unpinned_elsewhere", unpin_what_another_device_uses, NULL },
  { "exported_elsewhere", export_what_another_device_used, NULL },
  { "lost_array", release_after_a_reset, NULL },
  { "graph_of_lost", launch_a_graph_of_what_is_lost, NULL },
  { "hosts_capture", release_while_the_host_captures, NULL },
  { "hosts_capture_own", release_in_the_order_of_a_hosts_capture, NULL },
  { "failed_gather", fail_to_wait_for_a_gather, NULL },
  { "hosts_capture_unload", unload_while_the_host_captures, NULL },
  { "hosts_capture_thread", unload_while_a_thread_is_captured, NULL },
  { "hosts_capture_export", export_while_the_host_captures, NULL },
  { "capture_alias", capture_by_another_name, NULL },
  { "prefetch_cpu_stream", prefetch_on_a_stream_of_the_cpu, NULL },
  { "other_threads_wait", take_what_a_threads_stream_waits_for, NULL },
  { "captured_beside_fault", destroy_what_is_captured_beside_a_fault, NULL },
  { "event", pass_by_an_event, NULL },
  { "graph", launch_a_graph_twice, NULL },
};

static void run_row(void *user)
{
  const row *at = user;
  bool is_traced = oracle.is_traced;
  oracle_reset_state();
  oracle.is_traced = is_traced;
  world_open(0, false);
  at->program();
  if (is_late) pthread_join(late_thread, NULL);
  world_close();
}

static int show(const row *at)
{
  oracle.is_traced = true;
  bool has_passed = world_run(run_row, (void *)(uintptr_t)at);
  printf("%.*s", (int)oracle_result->trace_bytes, oracle_result->trace);
  printf("%s: %s\n", at->name, has_passed ? "no violation" : oracle_result->message);
  return has_passed ? 0 : 1;
}

int main(int count, char **arguments)
{
  int failures = 0;
  world_fix_addresses(arguments);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const row *at = &rows[i];
    if (count > 1) {
      if (!strcmp(arguments[1], at->name)) return show(at);
      continue;
    }
    bool has_passed = world_run(run_row, (void *)(uintptr_t)at);
    bool is_expected = has_passed == !at->broken;
    printf("%s %s%s%s: %s\n", is_expected ? "ok  " : "FAIL", at->name,
           at->broken ? ", known as " : "", at->broken ? at->broken : "",
           !has_passed  ? oracle_result->message
           : at->broken ? "passes now: empty its third column"
                        : "no violation");
    failures += !is_expected;
  }
  return failures || count > 1;
}
