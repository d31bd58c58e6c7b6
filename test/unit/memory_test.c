/* Tests a GPU's pool, and the objects that use its memory, with a fake driver in host memory. */
#include "gpu_test.h"

/* ---- the pool ---- */

static void test_blocks_are_kept(void **state)
{
  kjit_device *device = gpu(*state, 0);
  kjit_array *array = make_vector(device, 1000, NULL);
  void *address = address_of(array);
  assert_int_equal((uintptr_t)address % 256, 0);
  assert_int_equal(memory_of(device).used_bytes, 4096);
  kjit_release_array(array);
  assert_int_equal(cuda.allocations, 1);
  array = make_vector(device, 990, NULL); /* a little smaller: the same block */
  assert_ptr_equal(address_of(array), address);
  kjit_array *small = make_vector(device, 10, NULL); /* much smaller: another one */
  kjit_memory_statistics statistics = memory_of(device);
  assert_int_equal(statistics.allocations, 3);
  assert_int_equal(statistics.hits, 1);
  assert_int_equal(statistics.driver_allocations, 2);
  assert_int_equal(statistics.used_bytes, 4096 + 512);
  assert_int_equal(statistics.peak_bytes, 4096 + 512);
  assert_int_equal(statistics.cached_bytes, 0);
  kjit_release_array(array);
  kjit_release_array(small);
  assert_int_equal(memory_of(device).cached_bytes, 4096 + 512);
  kjit_trim_memory(device, 1000);
  assert_int_equal(memory_of(device).cached_bytes, 512);
  kjit_trim_memory(device, 0);
  assert_int_equal(cuda.allocations, 0);
  assert_int_equal(memory_of(gpu(*state, 1)).allocations, 0);
}

/* A block is free for the stream on which it was released. For other streams it is free after the
 * host has waited for the device. */
static void test_streams_have_an_order(void **state)
{
  kjit_device *device = gpu(*state, 0);
  kjit_stream *one, *two, *apart;
  expect_ok(*state, kjit_create_stream(device, &one));
  expect_ok(*state, kjit_create_stream(device, &two));
  expect_ok(*state, kjit_create_stream_with(device, 0, KJIT_STREAM_NON_BLOCKING, &apart));
  struct {
    kjit_stream *from, *to;
    bool is_same;
  } rows[] = { { one, one, true },    { one, two, false },    { one, NULL, false },
               { NULL, one, false },  { NULL, apart, false }, { apart, NULL, false },
               { apart, apart, true } };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    kjit_array *array = make_vector(device, 1000, rows[i].from);
    void *address = address_of(array);
    kjit_release_array(array);
    array = make_vector(device, 1000, rows[i].to);
    assert_int_equal(address_of(array) == address, rows[i].is_same);
    kjit_release_array(array);
    kjit_trim_memory(device, 0);
  }
  kjit_array *array = make_vector(device, 1000, one);
  void *address = address_of(array);
  kjit_release_array(array);
  expect_ok(*state, kjit_synchronize_device(device));
  array = make_vector(device, 1000, apart);
  assert_ptr_equal(address_of(array), address);
  kjit_release_array(array);
  assert_int_equal(cuda.orders, 0); /* no event was needed */
  kjit_destroy_stream(one);
  kjit_destroy_stream(two);
  kjit_destroy_stream(apart);
}

/* The next use of an array's memory comes after the uses by other streams. */
static void test_uses_are_joined(void **state)
{
  kjit_device *device = gpu(*state, 0);
  kjit_kernel *kernel = kernel_of(parse(*state, add_one), "add_one");
  kjit_stream *own, *other;
  expect_ok(*state, kjit_create_stream(device, &own));
  expect_ok(*state, kjit_create_stream(device, &other));
  for (int prepared = 0; prepared < 2; prepared++) {
    kjit_array *array = make_vector(device, 100, own);
    kjit_array *view;
    /* uses of the view count as uses of the array */
    expect_ok(*state, kjit_slice_array(array, &(kjit_array_slice){ 10, 90, 1 }, 1, &view));
    kjit_arg argument = kjit_arg_array(view);
    kjit_launch_config config = { .size_bytes = sizeof config, .stream = other };
    kjit_prepared *again = NULL;
    for (int i = 0; i < 3 && !prepared; i++)
      expect_ok(*state, kjit_launch(kernel, &config, &argument, 1));
    if (prepared)
      expect_ok(*state,
                kjit_prepare_launch(kernel,
                                    &(kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config),
                                                           .stream = own },
                                    &argument, 1, &again));
    if (prepared) expect_ok(*state, kjit_run_prepared(again, NULL));
    if (prepared) expect_ok(*state, kjit_run_prepared(again, other));
    kjit_destroy_prepared(again);
    kjit_release_array(view);
    assert_int_equal(cuda.orders, prepared);
    kjit_release_array(array);
    assert_int_equal(cuda.orders, prepared + 1);
    assert_ptr_equal(cuda.ordered[prepared][0], kjit_get_native_stream(other));
    assert_ptr_equal(cuda.ordered[prepared][1], kjit_get_native_stream(own));
  }
  kjit_destroy_stream(own);
  kjit_destroy_stream(other);
}

/* When a stream is destroyed, the default stream takes over its order, and waits for it if it is
 * busy. */
static void test_streams_that_go(void **state)
{
  kjit_device *device = gpu(*state, 0);
  for (int busy = 0; busy < 2; busy++) {
    kjit_stream *own, *later;
    expect_ok(*state, kjit_create_stream_with(device, 0, KJIT_STREAM_NON_BLOCKING, &own));
    expect_ok(*state, kjit_create_stream_with(device, 0, KJIT_STREAM_NON_BLOCKING, &later));
    kjit_array *array = make_vector(device, 100, own);
    void *address = address_of(array);
    cuda.is_busy = busy;
    kjit_destroy_stream(own);
    assert_int_equal(cuda.streams, 1);
    assert_int_equal(cuda.orders, busy);
    kjit_release_array(array); /* in the order of the default stream */
    assert_int_equal(cuda.orders, busy);
    array = make_vector(device, 100, later);
    assert_ptr_not_equal(address_of(array), address);
    kjit_array *next = make_vector(device, 100, NULL);
    assert_ptr_equal(address_of(next), address);
    kjit_release_array(next);
    kjit_release_array(array);
    kjit_destroy_stream(later);
    cuda.is_busy = false;
    cuda.orders = 0;
    kjit_trim_memory(device, 0);
  }
}

/* Each thread has its own default stream. Only the thread itself can order this stream; for other
 * threads the device's default stream replaces it. */
typedef struct own_launch {
  kjit_context *context;
  kjit_kernel *kernel;
  kjit_array *array;
} own_launch;

static void *launch_on_own(void *user)
{
  const own_launch *own = user;
  kjit_stream *thread;
  kjit_arg argument = kjit_arg_array(own->array);
  expect_ok(own->context, kjit_get_thread_stream(gpu(own->context, 0), &thread));
  expect_ok(own->context,
            kjit_launch(own->kernel,
                        &(kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config),
                                               .stream = thread },
                        &argument, 1));
  return NULL;
}

static void test_threads_streams(void **state)
{
  kjit_device *device = gpu(*state, 0);
  own_launch own = { *state, kernel_of(parse(*state, add_one), "add_one"), NULL };
  for (int is_other = 0; is_other < 2; is_other++) {
    pthread_t thread;
    kjit_stream *last;
    expect_ok(*state, kjit_create_stream_with(device, 0, KJIT_STREAM_NON_BLOCKING, &last));
    own.array = make_vector(device, 100, last);
    int orders = cuda.orders;
    if (!is_other) launch_on_own(&own);
    else if (!pthread_create(&thread, NULL, launch_on_own, &own)) pthread_join(thread, NULL);
    assert_ptr_equal(cuda.stream, (void *)2);
    kjit_release_array(own.array);
    assert_int_equal(cuda.orders, orders + 1);
    assert_ptr_equal(cuda.ordered[orders][0], is_other ? NULL : (void *)2);
    assert_ptr_equal(cuda.ordered[orders][1], kjit_get_native_stream(last));
    assert_int_equal(memory_of(device).cached_bytes, 512);
    kjit_trim_memory(device, 0);
    kjit_destroy_stream(last);
  }
}

/* Memory whose uses cannot be ordered, because the driver returns an error, is freed after the next
 * wait for the device. */
static void test_parked_blocks(void **state)
{
  kjit_device *device = gpu(*state, 0);
  kjit_kernel *kernel = kernel_of(parse(*state, add_one), "add_one");
  kjit_stream *other;
  expect_ok(*state, kjit_create_stream(device, &other));
  kjit_array *array = make_vector(device, 100, NULL);
  void *address = address_of(array);
  kjit_arg argument = kjit_arg_array(array);
  kjit_launch_config config = { .size_bytes = sizeof config, .stream = other };
  expect_ok(*state, kjit_launch(kernel, &config, &argument, 1));
  cuda.fail_at = cuda.calls + 1;
  cuda.fail_with = CUDA_UNKNOWN;
  kjit_release_array(array);
  assert_int_equal(memory_of(device).cached_bytes, 0);
  array = make_vector(device, 100, NULL);
  assert_ptr_not_equal(address_of(array), address);
  expect_ok(*state, kjit_synchronize_device(device));
  assert_int_equal(memory_of(device).cached_bytes, 512);
  kjit_release_array(array);
  kjit_destroy_stream(other);
}

static void test_out_of_memory(void **state)
{
  kjit_device *device = gpu(*state, 0);
  kjit_array *array, *kept = make_vector(device, 1 << 16, NULL);
  int64_t length = 1 << 18;
  cuda.memory_limit = 3 << 19;
  kjit_release_array(make_vector(device, 1 << 17, NULL));
  array = make_vector(device, length, NULL); /* only after the cached block is given back */
  kjit_memory_statistics statistics = memory_of(device);
  assert_int_equal(statistics.flushes, 1);
  assert_int_equal(statistics.cached_bytes, 0);
  int allocations = cuda.allocations;
  kjit_array *another = NULL;
  expect_refused(
    *state, kjit_create_array(device, KJIT_F32, &length, 1, &another), KJIT_ERROR_DEVICE_MEMORY,
    "out of memory on cuda:0: cuMemAlloc cannot allocate 1048576 bytes (the device has "
    "1073741824, kjit's arrays use 1310720, and kjit released 0 of cached memory)");
  assert_null(another);
  assert_int_equal(cuda.allocations, allocations);
  assert_int_equal(memory_of(device).used_bytes, 1310720);
  kjit_release_array(kept);
  kjit_release_array(array);
}

/* ---- all calls that need memory of the driver ---- */

typedef struct needs {
  kjit_context *context;
  kjit_device *device;
  kjit_memory memory;
  kjit_kernel *loaded;
  kjit_array *array;
  kjit_stream *stream;
  kjit_graph *graph;
  kjit_executable_graph *executable;
} needs;

static kjit_status need_array(needs *n)
{
  static const int64_t length = 100;
  kjit_array *array = NULL;
  kjit_array_config config = { .size_bytes = sizeof config,
                               .device = n->device,
                               .element = KJIT_F32,
                               .rank = 1,
                               .shape = &length,
                               .layout = KJIT_LAYOUT_C };
  config.memory = n->memory;
  kjit_status status = kjit_create_array_with(&config, &array);
  kjit_release_array(array);
  return status;
}

static kjit_status need_code(needs *n)
{
  kjit_specialization *made;
  return kjit_specialize(kernel_of(parse(n->context, add_one), "add_one"), n->device, "f32[:] C",
                         &made);
}

static kjit_status need_stack(needs *n)
{
  fake.stack_bytes = (uint32_t)cuda.stack_bytes + 1024;
  kjit_status status = need_code(n);
  fake.stack_bytes = 0;
  return status;
}

static kjit_status need_launch(needs *n)
{
  kjit_arg argument = kjit_arg_array(n->array);
  return kjit_launch(n->loaded, NULL, &argument, 1);
}

static kjit_status need_executable(needs *n)
{
  kjit_executable_graph *made = NULL;
  kjit_status status = kjit_instantiate_graph(n->graph, &made);
  kjit_destroy_executable_graph(made);
  return status;
}

static kjit_status need_graph_launch(needs *n) { return kjit_launch_graph(n->executable, NULL); }

static void set_up_needs(needs *n, kjit_context *context)
{
  *n = (needs){ .context = context,
                .device = gpu(context, 0),
                .loaded = kernel_of(parse(context, add_one), "add_one") };
  cuda.kernel = run_add_one;
  n->array = make_vector(n->device, 100, NULL);
  expect_ok(context, need_launch(n));
  expect_ok(context, kjit_create_stream(n->device, &n->stream));
  kjit_arg argument = kjit_arg_array(n->array);
  expect_ok(context, kjit_begin_capture(n->stream));
  expect_ok(context, kjit_launch(n->loaded,
                                 &(kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config),
                                                        .stream = n->stream },
                                 &argument, 1));
  expect_ok(context, kjit_end_capture(n->stream, &n->graph));
  expect_ok(context, kjit_instantiate_graph(n->graph, &n->executable));
}

/* When the driver is out of memory, kjit returns the pool's memory and repeats the call. If it
 * fails again, the error names the call, and no object is left. */
static void test_everybody_asks_twice(void **state)
{
  static const struct {
    kjit_status (*need)(needs *n);
    kjit_memory memory;
    kjit_status status;
    const char *call;
  } rows[] = { { need_array, KJIT_MEMORY_DEVICE, KJIT_ERROR_DEVICE_MEMORY, "cuMemAlloc" },
               { need_array, KJIT_MEMORY_SHARED, KJIT_ERROR_DEVICE_MEMORY, "cuMemAlloc" },
               { need_array, KJIT_MEMORY_MANAGED, KJIT_ERROR_DEVICE_MEMORY, "cuMemAllocManaged" },
               { need_array, KJIT_MEMORY_PINNED, KJIT_ERROR_MEMORY, "cuMemHostAlloc" },
               { need_array, KJIT_MEMORY_MAPPED, KJIT_ERROR_MEMORY, "cuMemHostAlloc" },
               { need_code, 0, KJIT_ERROR_DEVICE_MEMORY, "cuModuleLoadDataEx" },
               { need_stack, 0, KJIT_ERROR_DEVICE_MEMORY, "cuCtxSetLimit" },
               { need_launch, 0, KJIT_ERROR_DEVICE_MEMORY, "cuLaunchKernel" },
               { need_executable, 0, KJIT_ERROR_DEVICE_MEMORY, "cuGraphInstantiate" },
               { need_graph_launch, 0, KJIT_ERROR_DEVICE_MEMORY, "cuGraphLaunch" } };
  needs n;
  set_up_needs(&n, *state);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    n.memory = rows[i].memory;
    for (int is_full = 0; is_full < 2; is_full++) {
      kjit_trim_memory(n.device, 0);
      /* a cached block that is too large for these requests */
      kjit_release_array(make_vector(n.device, 5000, NULL));
      uint64_t flushes = memory_of(n.device).flushes;
      cuda.is_starved = !is_full;
      cuda.is_full = is_full;
      if (rows[i].need == need_stack) cuda.is_starved = cuda.is_full = false;
      if (rows[i].need == need_stack) cuda.starve_stack = is_full ? 2 : 1;
      kjit_status status = rows[i].need(&n);
      if (status != (is_full ? rows[i].status : KJIT_OK))
        print_error("%s: %s\n", rows[i].call, last_message(*state));
      assert_int_equal(status, is_full ? rows[i].status : KJIT_OK);
      if (is_full) assert_non_null(strstr(last_message(*state), rows[i].call));
      assert_int_equal(memory_of(n.device).flushes, flushes + 1);
      cuda.is_starved = cuda.is_full = false;
      cuda.starve_stack = 0;
      assert_int_equal(memory_of(n.device).used_bytes, 512); /* n.array's */
    }
  }
  kjit_destroy_executable_graph(n.executable);
  kjit_destroy_graph(n.graph);
  kjit_destroy_stream(n.stream);
  kjit_release_array(n.array);
}

/* Before the cached memory is returned, kjit takes a block of another stream, ordered by an
 * event. */
static void test_other_streams_blocks(void **state)
{
  kjit_device *device = gpu(*state, 0);
  kjit_stream *one, *two;
  expect_ok(*state, kjit_create_stream(device, &one));
  expect_ok(*state, kjit_create_stream(device, &two));
  kjit_array *array = make_vector(device, 1 << 18, one);
  void *address = address_of(array);
  kjit_release_array(array);
  cuda.memory_limit = 3 << 19;
  array = make_vector(device, 1 << 18, two);
  assert_ptr_equal(address_of(array), address);
  assert_int_equal(cuda.orders, 1);
  assert_ptr_equal(cuda.ordered[0][0], kjit_get_native_stream(one));
  assert_ptr_equal(cuda.ordered[0][1], kjit_get_native_stream(two));
  assert_int_equal(memory_of(device).flushes, 0);
  kjit_release_array(array);
  kjit_destroy_stream(one);
  kjit_destroy_stream(two);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_gpus, tear_down_gpus)
  const struct CMUnitTest tests[] = {
    TEST(test_blocks_are_kept), TEST(test_streams_have_an_order), TEST(test_uses_are_joined),
    TEST(test_streams_that_go), TEST(test_threads_streams),       TEST(test_parked_blocks),
    TEST(test_out_of_memory),   TEST(test_everybody_asks_twice),  TEST(test_other_streams_blocks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
