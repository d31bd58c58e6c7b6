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

/* ---- an allocator of the application ---- */

typedef struct host_pool {
  int allocated, released;
  size_t bytes;
  kjit_stream *stream;
  bool is_empty, has_room_after_release;
} host_pool;

static void *take_from_pool(void *user, kjit_device *device, size_t size_bytes, kjit_stream *stream)
{
  (void)device;
  host_pool *pool = user;
  if (pool->is_empty) return NULL;
  pool->allocated++;
  pool->bytes += size_bytes;
  pool->stream = stream;
  return aligned_alloc(256, (size_bytes + 255) / 256 * 256);
}

static void give_to_pool(void *user, kjit_device *device, void *memory, size_t size_bytes,
                         kjit_stream *stream)
{
  (void)device;
  host_pool *pool = user;
  pool->released++;
  if (pool->has_room_after_release) pool->is_empty = false;
  pool->bytes -= size_bytes;
  pool->stream = stream;
  free(memory);
}

static void test_device_allocator(void **state)
{
  (void)state;
  host_pool pool = { 0 };
  kjit_device_allocator allocator = { .size_bytes = sizeof allocator,
                                      .user = &pool,
                                      .allocate = take_from_pool,
                                      .release = give_to_pool };
  cuda = (fake_driver){ .devices = 1 };
  kjit_context *context = make_gpu_context();
  context->config.device_allocator = &allocator; /* what kjit_create_context keeps */
  kjit_device *device = gpu(context, 0);
  kjit_stream *stream;
  expect_ok(context, kjit_create_stream(device, &stream));
  kjit_array *array = make_vector(device, 100, stream);
  assert_int_equal(pool.allocated, 1);
  assert_in_range(pool.bytes, 400, 512);
  assert_ptr_equal(pool.stream, stream);
  assert_int_equal(cuda.allocations, 0);
  pool.stream = NULL;
  kjit_release_array(array);
  assert_int_equal(pool.released, 1);
  assert_int_equal(pool.bytes, 0);
  assert_ptr_equal(pool.stream, stream);
  pool.is_empty = true;
  int64_t length = 100;
  expect_refused(
    context, kjit_create_array(device, KJIT_F32, &length, 1, &array), KJIT_ERROR_DEVICE_MEMORY,
    "out of memory on cuda:0: the application's device allocator cannot allocate 512 bytes");
  pool.is_empty = false;
  /* memory that kjit still holds, because the driver could not order its uses */
  kjit_kernel *kernel = kernel_of(parse(context, add_one), "add_one");
  array = make_vector(device, 100, NULL);
  kjit_arg argument = kjit_arg_array(array);
  expect_ok(context, kjit_launch(kernel,
                                 &(kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config),
                                                        .stream = stream },
                                 &argument, 1));
  cuda.fail_at = cuda.calls + 1;
  cuda.fail_with = CUDA_UNKNOWN;
  kjit_release_array(array);
  assert_int_equal(pool.released, 1);
  pool.is_empty = pool.has_room_after_release = true;
  array = make_vector(device, 100, NULL);
  assert_int_equal(pool.released, 2);
  kjit_release_array(array);
  pool.is_empty = pool.has_room_after_release = false;
  pool.released = 1;
  array = make_vector(device, 100, NULL);
  kjit_destroy_stream(stream);
  /* the context ends with an array that the application has not released */
  kjit_destroy_context(context);
  assert_int_equal(pool.released, 2);
  expect_nothing_left();
}

/* ---- host arrays of launches ---- */

static void test_staging(void **state)
{
  kjit_device *device = gpu(*state, 0);
  kjit_kernel *kernel = kernel_of(parse(*state, add_one), "add_one");
  enum { LARGE = (5 << 20) / 4 };
  float small[100] = { 0 }, *large = calloc(LARGE, sizeof *large);
  int64_t lengths[] = { 100, LARGE };
  kjit_tensor tensors[] = { host_vector(small, &lengths[0]), host_vector(large, &lengths[1]) };
  cuda.kernel = run_add_one;
  for (int i = 0; i < 2; i++) {
    kjit_arg argument = kjit_arg_tensor(&tensors[i]);
    kjit_launch_config config = { .size_bytes = sizeof config, .device = device };
    expect_ok(*state, kjit_launch(kernel, &config, &argument, 1));
    int allocations = cuda.allocations, pinned = cuda.pinned;
    for (int k = 0; k < 5; k++) expect_ok(*state, kjit_launch(kernel, &config, &argument, 1));
    assert_int_equal(cuda.allocations, allocations);
    assert_int_equal(cuda.pinned, pinned);
    assert_int_equal(pinned, 1); /* the large array is copied without pinned memory */
  }
  for (int i = 0; i < 100; i++) assert_true(small[i] == 6);
  for (int i = 0; i < LARGE; i++) assert_true(large[i] == 6);
  assert_int_equal(memory_of(device).used_bytes + memory_of(device).pinned_used_bytes, 0);
  free(large);
}

/* ---- kinds of memory ---- */

static kjit_array *make_memory(kjit_device *device, kjit_memory memory, kjit_status expected)
{
  kjit_array *array = NULL;
  assert_int_equal(try_vector(device, memory, 100, NULL, &array), expected);
  return array;
}

static void test_kinds(void **state)
{
  static const struct {
    kjit_memory memory;
    int32_t device_type;
    int copies; /* copies that a launch on the GPU makes */
    bool runs_on_cpu;
  } rows[] = { { KJIT_MEMORY_DEVICE, 2, 0, false },
               { KJIT_MEMORY_PINNED, 3, 1, true },
               { KJIT_MEMORY_MAPPED, 3, 0, true },
               { KJIT_MEMORY_MANAGED, 13, 0, true },
               { KJIT_MEMORY_SHARED, 2, 0, false } };
  kjit_device *device = gpu(*state, 0), *cpu;
  kjit_kernel *kernel = kernel_of(parse(*state, add_one), "add_one");
  expect_ok(*state, kjit_get_device(*state, KJIT_DEVICE_CPU, 0, &cpu));
  cuda.kernel = run_add_one;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    kjit_array *array = make_memory(device, rows[i].memory, KJIT_OK);
    float *data = address_of(array);
    for (int k = 0; k < 100; k++) data[k] = 1;
    assert_int_equal(kjit_get_tensor(array)->device_type, rows[i].device_type);
    kjit_arg argument = kjit_arg_array(array);
    kjit_launch_config config = { .size_bytes = sizeof config, .device = device };
    cuda.bytes_in = 0;
    expect_ok(*state, kjit_launch(kernel, &config, &argument, 1));
    expect_ok(*state, kjit_launch(kernel, &config, &argument, 1));
    for (int k = 0; k < 100; k++) assert_true(data[k] == 3);
    assert_int_equal(cuda.bytes_in != 0, rows[i].copies);
    int launches = cuda.launches;
    /* the launch must use the array's own memory */
    if (rows[i].memory == KJIT_MEMORY_MAPPED)
      expect_ok(*state, kjit_launch(kernel, NULL, &argument, 1));
    if (rows[i].memory == KJIT_MEMORY_MAPPED) assert_int_equal(cuda.launches, launches + 1);
    kjit_prepared *on_cpu = NULL;
    kjit_status status =
      kjit_prepare_launch(kernel,
                          &(kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config),
                                                 .device = cpu },
                          &argument, 1, &on_cpu);
    assert_int_equal(status, rows[i].runs_on_cpu ? KJIT_OK : KJIT_ERROR_ARGUMENT);
    kjit_destroy_prepared(on_cpu);
    kjit_release_array(array);
  }
  make_memory(device, (kjit_memory)5, KJIT_ERROR_ARGUMENT);
  float memory[64];
  expect_ok(*state, kjit_pin_memory(device, memory, sizeof memory));
  assert_int_equal(cuda.registered, 1);
  expect_ok(*state, kjit_unpin_memory(device, memory));
  assert_int_equal(cuda.registered, 0);
  kjit_array *managed = make_memory(device, KJIT_MEMORY_MANAGED, KJIT_OK),
             *plain = make_memory(device, KJIT_MEMORY_DEVICE, KJIT_OK);
  expect_ok(*state, kjit_prefetch_array(managed, cpu, NULL));
  assert_ptr_equal(cuda.prefetched, address_of(managed));
  expect_ok(*state, kjit_prefetch_array(plain, cpu, NULL));
  assert_ptr_equal(cuda.prefetched, address_of(managed));
}

/* Memory that does not come from the pool is freed when it is released, after its uses. */
static void test_other_memory_goes(void **state)
{
  kjit_device *device = gpu(*state, 0);
  for (kjit_memory memory = KJIT_MEMORY_PINNED; memory <= KJIT_MEMORY_SHARED; memory++) {
    kjit_array *array = make_memory(device, memory, KJIT_OK);
    assert_int_equal(cuda.allocations + cuda.pinned, 1);
    kjit_release_array(array);
    assert_int_equal(cuda.allocations + cuda.pinned, 0);
  }
}

/* ---- elements that are not contiguous ---- */

static int copies_by_kernel;

/* Extents and strides of an array parameter of fake_plan, in 32 or 64 bits; the place after them.
 */
static const char *read_view(const char *at, uint32_t rank, bool is_wide, uint32_t **data,
                             int64_t *extents)
{
  memcpy(data, at, sizeof *data);
  at += sizeof *data;
  for (uint32_t i = 0; i < 2 * rank; i++) {
    int32_t narrow;
    memcpy(&narrow, at, sizeof narrow);
    if (is_wide) memcpy(&extents[i], at, sizeof *extents);
    else extents[i] = narrow;
    at += is_wide ? 8 : 4;
  }
  return at;
}

/* Runs the library's kernels that copy arrays of one and two dimensions. A parameter block of 48
 * bytes can have either number of dimensions, and its bytes 12 to 15 tell which. With one dimension
 * they are the upper half of a 64-bit extent and contain 0. With two dimensions they contain the
 * second extent, which is never 0. */
static void run_copy(const char *parameters)
{
  int32_t second;
  uint32_t *r, *x;
  int64_t to[4], from[4];
  memcpy(&second, parameters + 12, sizeof second);
  uint32_t rank = cuda.parameter_bytes == 32 || (cuda.parameter_bytes == 48 && !second) ? 1 : 2;
  bool is_wide = cuda.parameter_bytes == (rank == 1 ? 48 : 80);
  (void)read_view(read_view(parameters, rank, is_wide, &r, to), rank, is_wide, &x, from);
  copies_by_kernel++;
  for (int64_t i = 0; i < to[0]; i++)
    for (int64_t j = 0; j < (rank == 2 ? to[1] : 1); j++)
      r[i * to[rank] + (rank == 2 ? j * to[3] : 0)] =
        x[i * from[rank] + (rank == 2 ? j * from[3] : 0)];
}

enum { ROWS = 6, COLUMNS = 40 };

/* Copies between all kinds of views: contiguous, transposed, every second column, long rows of a
 * wider array. */
static void test_strided_copies(void **state)
{
  kjit_device *device = gpu(*state, 0), *second = gpu(*state, 1);
  kjit_stream *stream;
  expect_ok(*state, kjit_create_stream(device, &stream));
  cuda.kernel = run_copy;
  static const struct {
    int64_t strides[2];
  } forms[] = { { { COLUMNS, 1 } },
                { { 1, ROWS } },
                { { 2 * COLUMNS, 2 } },
                { { COLUMNS + 8, 1 } },
                { { -COLUMNS, 1 } } };
  enum { FORMS = sizeof forms / sizeof *forms, PLACES = 3, ROOM = 2 * ROWS * COLUMNS + 8 * ROWS };
  kjit_array *rooms[2][2];
  float hosts[2][ROOM];
  int64_t shape[] = { ROWS, COLUMNS };
  for (int side = 0; side < 2; side++)
    for (int i = 0; i < 2; i++) rooms[side][i] = make_vector(i ? second : device, ROOM, NULL);
  for (int way = 0; way < PLACES * PLACES * FORMS * FORMS * 2; way++) {
    int place[2] = { way % PLACES, way / PLACES % PLACES },
        form[2] = { way / 9 % FORMS, way / 9 / FORMS % FORMS }, is_async = way / 9 / FORMS / FORMS;
    kjit_tensor tensors[2];
    float *elements[2];
    for (int side = 0; side < 2; side++) {
      float *room = place[side] == 2 ? hosts[side] : (float *)address_of(rooms[side][place[side]]);
      for (int k = 0; k < ROOM; k++) room[k] = side ? (float)(k + 1) : -1;
      const int64_t *strides = forms[form[side]].strides;
      elements[side] = room + (strides[0] < 0 ? (ROWS - 1) * COLUMNS : 0);
      tensors[side] = (kjit_tensor){ .data = elements[side],
                                     .device_type = place[side] == 2 ? 1 : 2,
                                     .device_id = place[side] == 2 ? 0 : place[side],
                                     .rank = 2,
                                     .code = 2,
                                     .bits = 32,
                                     .lanes = 1,
                                     .shape = shape,
                                     .strides = (int64_t *)(uintptr_t)strides };
    }
    kjit_arg to = kjit_arg_tensor(&tensors[0]), from = kjit_arg_tensor(&tensors[1]);
    bool on_first = place[0] == 0 || (place[0] == 2 && place[1] == 0);
    kjit_status status =
      (is_async ? kjit_copy_async : kjit_copy)(*state, &to, &from, on_first ? stream : NULL);
    expect_ok(*state, status);
    int written = 0;
    float *room = place[0] == 2 ? hosts[0] : (float *)address_of(rooms[0][place[0]]);
    for (int i = 0; i < ROWS; i++)
      for (int j = 0; j < COLUMNS; j++)
        assert_true(elements[0][i * forms[form[0]].strides[0] + j * forms[form[0]].strides[1]] ==
                    elements[1][i * forms[form[1]].strides[0] + j * forms[form[1]].strides[1]]);
    for (int k = 0; k < ROOM; k++) written += room[k] != -1;
    assert_int_equal(written, ROWS * COLUMNS); /* bytes between the elements are not written */
  }
  assert_true(copies_by_kernel > 100);
  assert_true(cuda.rows > 10);
  /* the arrays; intermediate memory was returned */
  assert_int_equal(memory_of(device).used_bytes, 2 * ((ROOM * 4 + 511) / 512 * 512));
  assert_int_equal(memory_of(device).pinned_used_bytes, 0);
  kjit_destroy_stream(stream);
}

static void test_overlap(void **state)
{
  kjit_device *device = gpu(*state, 0);
  kjit_array *array = make_vector(device, 100, NULL), *low, *high;
  float *data = address_of(array);
  for (int i = 0; i < 100; i++) data[i] = (float)i;
  expect_ok(*state, kjit_slice_array(array, &(kjit_array_slice){ 0, 90, 1 }, 1, &low));
  expect_ok(*state, kjit_slice_array(array, &(kjit_array_slice){ 10, 100, 1 }, 1, &high));
  kjit_arg to = kjit_arg_array(high), from = kjit_arg_array(low);
  expect_ok(*state, kjit_copy(*state, &to, &from, NULL));
  for (int i = 0; i < 100; i++) assert_true(data[i] == (float)(i < 10 ? i : i - 10));
  expect_ok(*state, kjit_copy(*state, &to, &to, NULL));
  kjit_release_array(low);
  kjit_release_array(high);
  kjit_release_array(array);
}

static void test_fills(void **state)
{
  kjit_device *device = gpu(*state, 0);
  static const kjit_type types[] = { KJIT_BOOL, KJIT_U8,  KJIT_I16, KJIT_F16, KJIT_F32,
                                     KJIT_I64,  KJIT_F64, KJIT_C64, KJIT_C128 };
  for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
    kjit_array *array;
    int64_t length = 37;
    expect_ok(*state, kjit_create_array(device, types[t], &length, 1, &array));
    const kjit_tensor *tensor = kjit_get_tensor(array);
    size_t bytes = tensor->bits / 8u;
    char value[16] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 };
    if (types[t] == KJIT_BOOL) value[0] = 1;
    kjit_arg destination = kjit_arg_array(array), element = kjit_arg_value(types[t], value);
    expect_ok(*state, kjit_fill(*state, &destination, &element, NULL));
    for (int i = 0; i < 37; i++)
      assert_memory_equal((char *)tensor->data + (size_t)i * bytes, value, bytes);
    kjit_arg zero = kjit_arg_number(0);
    expect_ok(*state, kjit_fill(*state, &destination, &zero, NULL));
    for (size_t i = 0; i < 37 * bytes; i++) assert_int_equal(((char *)tensor->data)[i], 0);
    kjit_release_array(array);
  }
  kjit_array *array = make_vector(device, 10, NULL);
  kjit_arg destination = kjit_arg_array(array), wrong = kjit_arg_f64(1);
  expect_refused(*state, kjit_fill(*state, &destination, &wrong, NULL), KJIT_ERROR_TYPE,
                 "kjit_fill: the elements have the type f32, but the value has the type f64");
  kjit_array *bytes;
  int64_t length = 4;
  expect_ok(*state, kjit_create_array(device, KJIT_U8, &length, 1, &bytes));
  destination = kjit_arg_array(bytes);
  wrong = kjit_arg_number(300);
  expect_refused(*state, kjit_fill(*state, &destination, &wrong, NULL), KJIT_ERROR_TYPE,
                 "kjit_fill: an element of type u8 cannot hold the number 300");
}

/* ---- several GPUs ---- */

static void test_peers(void **state)
{
  kjit_device *first = gpu(*state, 0), *second = gpu(*state, 1);
  kjit_kernel *kernel = kernel_of(parse(*state, add_one), "add_one");
  int can = 0;
  expect_ok(*state, kjit_can_access_peer(first, second, &can));
  assert_int_equal(can, 1);
  expect_ok(*state, kjit_can_access_peer(first, first, &can));
  assert_int_equal(can, 0);
  kjit_array *array = make_vector(second, 100, NULL);
  kjit_arg argument = kjit_arg_array(array);
  kjit_launch_config config = { .size_bytes = sizeof config, .device = first };
  expect_refused(*state, kjit_launch(kernel, &config, &argument, 1), KJIT_ERROR_ARGUMENT,
                 "parameter `x`: the launch is on cuda:0, but the array is on cuda:1; copy the "
                 "array to the device, or switch peer access on");
  expect_ok(*state, kjit_enable_peer_access(first, second));
  expect_ok(*state, kjit_enable_peer_access(first, second));
  assert_int_equal(cuda.peers, 2);
  cuda.kernel = run_add_one;
  memset(address_of(array), 0, 400);
  expect_ok(*state, kjit_launch(kernel, &config, &argument, 1));
  assert_true(((float *)address_of(array))[99] == 1);
  kjit_release_array(array); /* after the work of the other GPU */
  assert_int_equal(memory_of(second).cached_bytes, 512);
  expect_ok(*state, kjit_disable_peer_access(first, second));
  assert_int_equal(cuda.peers, 0);
  array = make_vector(second, 100, NULL);
  argument = kjit_arg_array(array);
  assert_int_equal(kjit_launch(kernel, &config, &argument, 1), KJIT_ERROR_ARGUMENT);
  cuda.refuse_peers = true;
  expect_refused(*state, kjit_enable_peer_access(first, second), KJIT_ERROR_UNSUPPORTED,
                 "cuda:0 cannot access the memory of cuda:1, because the driver does not allow "
                 "peer access between them; use kjit_copy");
}

static void test_locate(void **state)
{
  kjit_device *found = gpu(*state, 0);
  kjit_array *array = make_vector(gpu(*state, 1), 100, NULL);
  const char *address = address_of(array);
  expect_ok(*state, kjit_locate_memory(*state, address + 396, &found));
  assert_ptr_equal(found, gpu(*state, 1));
  expect_ok(*state, kjit_locate_memory(*state, &found, &found));
  assert_null(found);
  kjit_release_array(array);
}

static void test_queries(void **state)
{
  kjit_device *device = gpu(*state, 0), *cpu;
  int64_t value = 0;
  uint64_t unused = 0, total = 0;
  unsigned char uuid[16];
  expect_ok(*state, kjit_get_device(*state, KJIT_DEVICE_CPU, 0, &cpu));
  expect_ok(*state,
            kjit_get_device_attribute(device, KJIT_DEVICE_ATTRIBUTE_CAPABILITY_MAJOR, &value));
  assert_int_equal(value, 9);
  for (int i = 0; i < KJIT_DEVICE_ATTRIBUTE_COUNT; i++)
    expect_ok(*state, kjit_get_device_attribute(cpu, (kjit_device_attribute)i, &value));
  expect_ok(*state, kjit_get_device_attribute(cpu, KJIT_DEVICE_ATTRIBUTE_WARP_SIZE, &value));
  assert_int_equal(value, 32);
  expect_refused(*state, kjit_get_device_attribute(device, KJIT_DEVICE_ATTRIBUTE_COUNT, &value),
                 KJIT_ERROR_ARGUMENT, "device attribute 35 does not exist");
  expect_ok(*state, kjit_get_device_uuid(gpu(*state, 1), uuid));
  assert_int_equal(uuid[15], 8);
  expect_ok(*state, kjit_get_memory_info(device, &unused, &total));
  assert_int_equal(total, 1 << 30);
  expect_ok(*state, kjit_get_memory_info(cpu, &unused, &total));
  assert_true(unused > 0 && total >= unused);
}

/* ---- a reset takes the memory ---- */

static void test_reset(void **state)
{
  kjit_device *device = gpu(*state, 0);
  kjit_array *alive = make_vector(device, 100, NULL),
             *pinned = make_memory(device, KJIT_MEMORY_PINNED, KJIT_OK);
  kjit_release_array(make_vector(device, 100000, NULL));
  expect_ok(*state, kjit_reset_device(device));
  assert_int_equal(memory_of(device).cached_bytes + memory_of(device).used_bytes, 0);
  kjit_release_array(alive);
  kjit_release_array(pinned);
  assert_int_equal(memory_of(device).cached_bytes + memory_of(device).used_bytes, 0);
  kjit_release_array(make_vector(device, 100, NULL));
  assert_int_equal(memory_of(device).cached_bytes, 512);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_gpus, tear_down_gpus)
  const struct CMUnitTest tests[] = {
    TEST(test_blocks_are_kept),
    TEST(test_streams_have_an_order),
    TEST(test_uses_are_joined),
    TEST(test_streams_that_go),
    TEST(test_threads_streams),
    TEST(test_parked_blocks),
    TEST(test_out_of_memory),
    TEST(test_everybody_asks_twice),
    TEST(test_other_streams_blocks),
    cmocka_unit_test(test_device_allocator),
    TEST(test_staging),
    TEST(test_kinds),
    TEST(test_other_memory_goes),
    TEST(test_strided_copies),
    TEST(test_overlap),
    TEST(test_fills),
    TEST(test_peers),
    TEST(test_locate),
    TEST(test_queries),
    TEST(test_reset),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
