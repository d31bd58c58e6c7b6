/* A new kind of device is a table of functions. This test has a kind that runs kernels as the CPU
 * does, and a kind with native streams, events and graphs. Both count the calls of their
 * functions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cpu/cpu.h"
#include "fake_compiler.h"
#include "gpu_test.h"

enum { TOY = 12, TOYS = 2 };

static struct {
  int opened, closed, launches, resets, waits, forgotten, attributes;
  int allocated, released, pinned, named;
} toy;

static kjit_status count_toys(const kjit_context *context, const kj_driver_source *source,
                              kj_diagnostics *diagnostics, void **shared, uint32_t *count)
{
  (void)context, (void)source, (void)diagnostics;
  *shared = &toy;
  *count = TOYS;
  return KJIT_OK;
}

static void forget_toys(void *shared)
{
  assert_ptr_equal(shared, &toy);
  toy.forgotten++;
}

static kjit_status open_toy(kjit_device *device, kj_diagnostics *diagnostics)
{
  toy.opened++;
  return kj_cpu_operations.open(device, diagnostics);
}

static void close_toy(kjit_device *device)
{
  toy.closed++;
  kj_cpu_operations.close(device);
}

static kjit_status reset_toy(kjit_device *device, kj_diagnostics *diagnostics)
{
  (void)device, (void)diagnostics;
  toy.resets++;
  return KJIT_OK;
}

static kjit_status wait_for_toy(kjit_device *device, bool whole, void *stream,
                                kj_diagnostics *diagnostics)
{
  (void)device, (void)whole, (void)stream, (void)diagnostics;
  toy.waits++;
  return KJIT_OK;
}

static kjit_status read_toy_attribute(kjit_device *device, kjit_device_attribute attribute,
                                      kj_diagnostics *diagnostics, int64_t *value)
{
  (void)device, (void)attribute, (void)diagnostics;
  toy.attributes++;
  *value = 77;
  return KJIT_OK;
}

static kjit_status launch_on_toy(kjit_device *device, const kj_device_code *loaded,
                                 const kj_code *code, const kj_device_launch *launch,
                                 kj_diagnostics *diagnostics)
{
  toy.launches++;
  return kj_cpu_operations.launch(device, loaded, code, launch, diagnostics);
}

static kjit_status allocate_on_toy(kjit_device *device, kj_allocation *allocation,
                                   kj_diagnostics *diagnostics)
{
  toy.allocated++;
  return kj_cpu_operations.allocate(device, allocation, diagnostics);
}

static bool release_on_toy(kjit_device *device, const kj_allocation *allocation)
{
  toy.released++;
  return kj_cpu_operations.release(device, allocation);
}

static kjit_status pin_on_toy(kjit_device *device, void *memory, size_t size_bytes,
                              kj_diagnostics *diagnostics)
{
  (void)device, (void)memory, (void)size_bytes;
  toy.pinned++;
  return kj_error(diagnostics, KJIT_ERROR_UNSUPPORTED, "a toy pins nothing");
}

static kjit_status name_on_toy(kjit_device *device, uint64_t address,
                               const kj_allocation *allocation, kj_diagnostics *diagnostics,
                               kj_memory_name *name)
{
  toy.named++;
  return kj_cpu_operations.name_memory(device, address, allocation, diagnostics, name);
}

static kj_device_operations make_toy(void)
{
  kj_device_operations made = kj_cpu_operations;
  made.kind = (kjit_device_kind)TOY;
  made.name = "toy";
  made.is_usually_single = false;
  made.count = count_toys;
  made.forget = forget_toys;
  made.open = open_toy;
  made.close = close_toy;
  made.reset = reset_toy;
  made.synchronize = wait_for_toy;
  made.read_attribute = read_toy_attribute;
  made.launch = launch_on_toy;
  made.allocate = allocate_on_toy;
  made.release = release_on_toy;
  made.pin = pin_on_toy;
  made.name_memory = name_on_toy;
  return made;
}

static void add_to_each(const void *parameters, const kj_cpu_grid *grid, uint64_t first,
                        uint64_t last, void *scratch)
{
  float *data;
  (void)grid, (void)scratch;
  memcpy(&data, parameters, sizeof data);
  for (uint64_t i = first; i < last; i++) data[i] += 1;
}

static kjit_context *make_toy_context(const kj_device_operations *operations)
{
  kj_diagnostics diagnostics = { 0 };
  kjit_context *context;
  kjit_config config = { .size_bytes = sizeof config };
  config.cache_directory = "";
  memset(&fake, 0, sizeof fake);
  memset(&toy, 0, sizeof toy);
  assert_int_equal(kjit_create_context(&config, &context), KJIT_OK);
  assert_int_equal(kj_add_kind(context, operations, &diagnostics), KJIT_OK);
  return context;
}

static kjit_array *make_array(kjit_device *device, kjit_memory memory)
{
  kjit_array *made;
  int64_t shape[] = { 4, 6 };
  kjit_array_config config = { .size_bytes = sizeof config,
                               .device = device,
                               .element = KJIT_F32,
                               .shape = shape,
                               .rank = 2,
                               .layout = KJIT_LAYOUT_C,
                               .memory = memory };
  assert_int_equal(kjit_create_array_with(&config, &made), KJIT_OK);
  return made;
}

/* The device uses host memory, so the host performs copies and fills. */
static void test_its_arrays(void **state)
{
  kj_device_operations operations = make_toy();
  kjit_context *context = make_toy_context(&operations);
  kjit_device *device;
  kjit_array *view;
  kjit_array_handle handle;
  float data[24] = { 0 };
  (void)state;
  assert_int_equal(kjit_get_device(context, operations.kind, 1, &device), KJIT_OK);
  kjit_array *plain = make_array(device, KJIT_MEMORY_DEVICE),
             *shared = make_array(device, KJIT_MEMORY_SHARED);
  assert_int_equal(toy.allocated, 2);
  assert_int_equal(kjit_get_tensor(plain)->device_type, KJIT_DEVICE_CPU);
  kjit_array_slice columns[] = { { 0, 4, 1 }, { 5, -1, -2 } };
  assert_int_equal(kjit_slice_array(plain, columns, 2, &view), KJIT_OK);
  kjit_arg whole = kjit_arg_array(plain), part = kjit_arg_array(view), all = kjit_arg_array(shared),
           one = kjit_arg_number(1), two = kjit_arg_number(2);
  assert_int_equal(kjit_fill(context, &whole, &one, NULL), KJIT_OK);
  assert_int_equal(kjit_fill(context, &part, &two, NULL), KJIT_OK);
  assert_int_equal(kjit_copy(context, &all, &whole, NULL), KJIT_OK);
  assert_int_equal(kjit_copy_to_host(shared, data, sizeof data, NULL), KJIT_OK);
  for (int i = 0; i < 24; i++) assert_true(data[i] == (i % 2 ? 2 : 1));
  assert_int_equal(kjit_export_array(plain, &handle), KJIT_ERROR_UNSUPPORTED);
  assert_int_equal(kjit_export_array(shared, &handle), KJIT_OK);
  assert_int_equal(toy.named, 2);
  assert_int_equal(kjit_pin_memory(device, data, sizeof data), KJIT_ERROR_UNSUPPORTED);
  assert_int_equal(toy.pinned, 1);
  kjit_release_array(plain);
  kjit_release_array(shared);
  assert_int_equal(toy.released, 1); /* the view keeps the other array alive */
  kjit_release_array(view);
  assert_int_equal(toy.released, 2);
  kjit_destroy_context(context);
}

/* If a kind of device queues its work, device memory comes from a pool. Other memory does not. */
static void test_its_pool(void **state)
{
  kj_device_operations operations = make_toy();
  operations.is_queued = true;
  kjit_context *context = make_toy_context(&operations);
  kjit_device *device;
  kjit_memory_statistics statistics = { .size_bytes = sizeof statistics };
  (void)state;
  assert_int_equal(kjit_get_device(context, operations.kind, 0, &device), KJIT_OK);
  for (int i = 0; i < 3; i++) {
    kjit_array *pooled = make_array(device, KJIT_MEMORY_DEVICE),
               *own = make_array(device, KJIT_MEMORY_MANAGED);
    assert_int_equal(toy.allocated, 2 + i);
    kjit_release_array(pooled);
    kjit_release_array(own);
    assert_int_equal(toy.released, 1 + i);
  }
  kjit_get_memory_statistics(device, &statistics);
  assert_int_equal(statistics.allocations, 3);
  assert_int_equal(statistics.hits, 2);
  assert_int_equal(statistics.cached_bytes, 512);
  kjit_trim_memory(device, 0);
  assert_int_equal(toy.released, 4);
  kjit_destroy_context(context);
  assert_int_equal(toy.allocated, toy.released);
}

static void test_a_third_kind(void **state)
{
  kj_device_operations operations = make_toy();
  kjit_context *context;
  kjit_device *first, *last, *none;
  kj_diagnostics diagnostics = { 0 };
  kjit_config config = { .size_bytes = sizeof config };
  int64_t value = 0, shape[] = { 4 };
  float data[4] = { 1, 2, 3, 4 };
  char text[24];
  (void)state;
  config.cache_directory = "";
  memset(&fake, 0, sizeof fake);
  memset(&toy, 0, sizeof toy);
  fake.kernel = add_to_each;
  assert_int_equal(kjit_create_context(&config, &context), KJIT_OK);
  assert_int_equal(kj_use_compiler(context, &fake_interface, &diagnostics), KJIT_OK);
  assert_int_equal(kjit_get_device(context, operations.kind, 0, &none), KJIT_ERROR_NO_DEVICE);
  assert_int_equal(kj_add_kind(context, &operations, &diagnostics), KJIT_OK);
  assert_int_equal(kj_add_kind(context, &operations, &diagnostics), KJIT_ERROR_MISUSE);
  kj_free_diagnostics(&diagnostics);
  assert_int_equal(kjit_get_device_count(context, operations.kind), TOYS);
  assert_int_equal(kjit_get_device(context, operations.kind, 0, &first), KJIT_OK);
  assert_int_equal(kjit_get_device(context, operations.kind, 1, &last), KJIT_OK);
  assert_int_equal(kjit_get_device(context, operations.kind, TOYS, &none), KJIT_ERROR_NO_DEVICE);
  assert_int_equal(toy.opened, 2);
  assert_string_equal(kj_device_text(last, text), "toy:1");
  assert_int_equal(kjit_get_device_attribute(last, KJIT_DEVICE_ATTRIBUTE_WARP_SIZE, &value),
                   KJIT_OK);
  assert_int_equal(value, 77);
  kjit_module *module = parse(context, "kernel k(a) { a[blockIdx.x] += 1 }");
  kjit_tensor tensor = { .data = data,
                         .device_type = KJIT_DEVICE_CPU,
                         .rank = 1,
                         .code = 2,
                         .bits = 32,
                         .lanes = 1,
                         .shape = shape };
  kjit_arg argument = kjit_arg_tensor(&tensor);
  kjit_launch_config launch = {
    .size_bytes = sizeof launch, .grid = { 4 }, .block = { 1 }, .device = last
  };
  for (int i = 0; i < 3; i++)
    assert_int_equal(kjit_launch(kernel_of(module, "k"), &launch, &argument, 1), KJIT_OK);
  assert_int_equal(toy.launches, 3);
  assert_int_equal(fake.compilations, 1);
  for (int i = 0; i < 4; i++) assert_true(data[i] == (float)(i + 4));
  launch.device = first; /* another device, other code */
  assert_int_equal(kjit_launch(kernel_of(module, "k"), &launch, &argument, 1), KJIT_OK);
  assert_int_equal(fake.compilations, 2);
  assert_int_equal(kjit_reset_device(first), KJIT_OK);
  assert_int_equal(toy.resets, 1);
  kjit_release_module(module);
  kjit_destroy_context(context);
  assert_int_equal(toy.waits, 2);
  assert_int_equal(toy.closed, 2);
  assert_int_equal(toy.forgotten, 1);
  assert_int_equal(fake.loads, fake.unloads);
}

/* ---- a kind with native streams, events and graphs: the calls of its functions, and that all
 * native objects are released ---- */

enum { THREADS_OWN = 7 };

static struct {
  int streams, events, graphs, executables; /* that are alive */
  int recorded, waited, asked, timed, called, captures, updates, launched;
} native;

/* Creates a native object, which is an allocated byte. */
static kjit_status make_native(int *alive, void **made)
{
  *made = malloc(1);
  assert_non_null(*made);
  ++*alive;
  return KJIT_OK;
}

static void drop_native(int *alive, void *made)
{
  assert_non_null(made);
  free(made);
  --*alive;
}

static kjit_status create_stream(kjit_device *device, int32_t priority, uint32_t flags,
                                 kj_diagnostics *diagnostics, void **stream)
{
  (void)device, (void)diagnostics;
  assert_true(priority == -1 && flags == KJIT_STREAM_NON_BLOCKING);
  return make_native(&native.streams, stream);
}

static void destroy_stream(kjit_device *device, void *stream)
{
  (void)device;
  drop_native(&native.streams, stream);
}

static kjit_status query_stream(kjit_device *device, void *stream, kj_diagnostics *diagnostics)
{
  (void)device, (void)stream, (void)diagnostics;
  native.asked++;
  return KJIT_NOT_READY;
}

static kjit_status call_host(kjit_device *device, void *stream, void (*function)(void *user),
                             void *user, kj_diagnostics *diagnostics)
{
  (void)device, (void)stream, (void)diagnostics;
  native.called++;
  function(user);
  return KJIT_OK;
}

static kjit_status read_priorities(kjit_device *device, kj_diagnostics *diagnostics, int32_t *least,
                                   int32_t *greatest)
{
  (void)device, (void)diagnostics;
  *least = 3;
  *greatest = -3;
  return KJIT_OK;
}

static kjit_status create_event(kjit_device *device, bool has_time, kj_diagnostics *diagnostics,
                                void **event)
{
  (void)device, (void)diagnostics;
  assert_true(has_time);
  return make_native(&native.events, event);
}

static void destroy_event(kjit_device *device, void *event)
{
  (void)device;
  drop_native(&native.events, event);
}

static kjit_status record_event(kjit_device *device, void *event, void *stream,
                                kj_diagnostics *diagnostics)
{
  (void)device, (void)event, (void)stream, (void)diagnostics;
  native.recorded++;
  return KJIT_OK;
}

static kjit_status wait_event(kjit_device *device, void *stream, void *event,
                              kj_diagnostics *diagnostics)
{
  (void)device, (void)diagnostics;
  assert_true(stream && event);
  native.waited++;
  return KJIT_OK;
}

static kjit_status ask_event(kjit_device *device, void *event, kj_diagnostics *diagnostics)
{
  (void)device, (void)event, (void)diagnostics;
  native.asked++;
  return KJIT_OK;
}

static kjit_status read_elapsed(kjit_device *device, void *first, void *last,
                                kj_diagnostics *diagnostics, uint64_t *time_ns)
{
  (void)device, (void)first, (void)last, (void)diagnostics;
  native.timed++;
  *time_ns = 5;
  return KJIT_OK;
}

static kjit_status begin_capture(kjit_device *device, void *stream, kj_diagnostics *diagnostics)
{
  (void)device, (void)stream, (void)diagnostics;
  native.captures++;
  return KJIT_OK;
}

static kjit_status end_capture(kjit_device *device, void *stream, kj_diagnostics *diagnostics,
                               void **graph, size_t *size)
{
  (void)device, (void)stream, (void)diagnostics;
  native.captures--;
  if (!graph) return KJIT_OK;
  *size = 9;
  return make_native(&native.graphs, graph);
}

static void destroy_graph(kjit_device *device, void *graph)
{
  (void)device;
  drop_native(&native.graphs, graph);
}

static kjit_status instantiate_graph(kjit_device *device, void *graph, kj_diagnostics *diagnostics,
                                     void **executable)
{
  (void)device, (void)graph, (void)diagnostics;
  return make_native(&native.executables, executable);
}

/* Only the first graph has the structure that updates accept. */
static kjit_status update_graph(kjit_device *device, void *executable, void *graph,
                                kj_diagnostics *diagnostics)
{
  (void)device, (void)executable, (void)graph, (void)diagnostics;
  return native.updates++ ? KJIT_ERROR_ARGUMENT : KJIT_OK;
}

static kjit_status launch_graph(kjit_device *device, void *executable, void *stream,
                                kj_diagnostics *diagnostics)
{
  (void)device, (void)executable, (void)stream, (void)diagnostics;
  native.launched++;
  return KJIT_OK;
}

static void destroy_executable(kjit_device *device, void *executable)
{
  (void)device;
  drop_native(&native.executables, executable);
}

static kj_device_operations make_toy_with_streams(void)
{
  kj_device_operations made = make_toy();
  made.thread_stream = THREADS_OWN;
  made.read_priorities = read_priorities;
  made.create_stream = create_stream;
  made.destroy_stream = destroy_stream;
  made.query_stream = query_stream;
  made.call_host = call_host;
  made.create_event = create_event;
  made.destroy_event = destroy_event;
  made.record_event = record_event;
  made.wait_event = wait_event;
  made.query_event = ask_event;
  made.synchronize_event = ask_event;
  made.read_elapsed = read_elapsed;
  made.begin_capture = begin_capture;
  made.end_capture = end_capture;
  made.destroy_graph = destroy_graph;
  made.instantiate_graph = instantiate_graph;
  made.update_graph = update_graph;
  made.launch_graph = launch_graph;
  made.destroy_executable = destroy_executable;
  return made;
}

static void count_call(void *user) { ++*(int *)user; }

/* Captures a callback. On a kind that captures by itself, the callback runs when the kind's graph
 * runs, which is immediately in this test. */
static kjit_graph *capture_call(kjit_device *device, kjit_stream *stream, kjit_event *event,
                                kjit_stream *joined, int *calls)
{
  kjit_graph *graph = NULL;
  assert_int_equal(kjit_begin_capture(stream), KJIT_OK);
  assert_int_equal(kjit_add_host_callback(device, stream, count_call, calls), KJIT_OK);
  assert_int_equal(kjit_record_event(event, stream), KJIT_OK);
  assert_int_equal(kjit_wait_event(joined, event), KJIT_OK);
  assert_int_equal(kjit_is_capturing(joined), 1);
  assert_int_equal(kjit_end_capture(stream, &graph), KJIT_OK);
  return graph;
}

static void test_streams_of_a_third_kind(void **state)
{
  kj_device_operations operations = make_toy_with_streams();
  kjit_context *context;
  kjit_device *device, *cpu;
  kj_diagnostics diagnostics = { 0 };
  kjit_config config = { .size_bytes = sizeof config };
  kjit_stream *stream, *joined, *usual, *own, *on_cpu;
  kjit_event *first, *last;
  kjit_graph *graph, *other;
  kjit_executable_graph *executable;
  int32_t least, greatest;
  uint64_t time_ns;
  int calls = 0;
  char host;
  (void)state;
  config.cache_directory = "";
  memset(&fake, 0, sizeof fake);
  memset(&native, 0, sizeof native);
  assert_int_equal(kjit_create_context(&config, &context), KJIT_OK);
  assert_int_equal(kj_add_kind(context, &operations, &diagnostics), KJIT_OK);
  assert_int_equal(kjit_get_device(context, operations.kind, 0, &device), KJIT_OK);
  assert_int_equal(kjit_get_device(context, KJIT_DEVICE_CPU, 0, &cpu), KJIT_OK);
  assert_int_equal(kjit_get_stream_priorities(device, &least, &greatest), KJIT_OK);
  assert_true(least == 3 && greatest == -3);
  uint32_t flags = KJIT_STREAM_NON_BLOCKING;
  assert_int_equal(kjit_create_stream_with(device, -1, flags, &stream), KJIT_OK);
  assert_int_equal(kjit_create_stream_with(device, -1, flags, &joined), KJIT_OK);
  assert_int_equal(kjit_create_stream(cpu, &on_cpu), KJIT_OK);
  assert_int_equal(kjit_wrap_stream(device, &host, &own), KJIT_ERROR_UNSUPPORTED);
  assert_int_equal(kjit_get_default_stream(device, &usual), KJIT_OK);
  assert_int_equal(kjit_get_thread_stream(device, &own), KJIT_OK);
  assert_int_equal((uintptr_t)kjit_get_native_stream(own), THREADS_OWN);
  assert_int_equal(kjit_query_stream(stream), KJIT_NOT_READY);
  assert_int_equal(kjit_synchronize_stream(stream), KJIT_OK);
  assert_int_equal(kjit_add_host_callback(device, stream, count_call, &calls), KJIT_OK);
  assert_true(native.called == 1 && calls == 1);

  assert_int_equal(kjit_create_event(device, &first), KJIT_OK);
  assert_int_equal(kjit_create_event(device, &last), KJIT_OK);
  assert_int_equal(kjit_record_event(first, stream), KJIT_OK);
  assert_int_equal(kjit_record_event(last, stream), KJIT_OK);
  assert_int_equal(kjit_wait_event(joined, first), KJIT_OK);
  assert_true(native.recorded == 2 && native.waited == 1 && native.asked == 1);
  assert_int_equal(kjit_wait_event(on_cpu, first), KJIT_OK); /* another kind: the host waits */
  assert_true(native.waited == 1 && native.asked == 2);
  assert_int_equal(kjit_get_elapsed_time(first, last, &time_ns), KJIT_OK);
  assert_true(time_ns == 5 && native.timed == 1);

  assert_int_equal(kjit_begin_capture(usual), KJIT_ERROR_MISUSE);
  assert_int_equal(kjit_begin_capture(own), KJIT_ERROR_MISUSE);
  graph = capture_call(device, stream, last, joined, &calls);
  other = capture_call(device, stream, last, joined, &calls);
  assert_true(native.captures == 0 && native.graphs == 2 && calls == 3);
  assert_int_equal(kjit_get_graph_size(graph), 9);
  assert_int_equal(kjit_instantiate_graph(graph, &executable), KJIT_OK);
  assert_int_equal(kjit_update_graph(executable, other), KJIT_OK);
  assert_int_equal(kjit_update_graph(executable, other), KJIT_ERROR_ARGUMENT);
  assert_int_equal(kjit_launch_graph(executable, stream), KJIT_OK);
  assert_true(native.launched == 1 && calls == 3); /* kjit itself repeats no operations */
  kjit_destroy_graph(graph);
  kjit_destroy_event(first);
  assert_int_equal(kjit_begin_capture(stream), KJIT_OK); /* this capture is never ended */
  kjit_destroy_stream(stream);
  assert_int_equal(native.captures, 0);
  kjit_destroy_context(context); /* with the others */
  assert_true(!native.streams && !native.events && !native.graphs && !native.executables);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_a_third_kind),
    cmocka_unit_test(test_its_arrays),
    cmocka_unit_test(test_its_pool),
    cmocka_unit_test(test_streams_of_a_third_kind),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
