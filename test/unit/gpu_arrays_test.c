/* Tests arrays on GPUs with a fake driver in host memory: an allocator of the application, staging
 * of host arrays, kinds of memory, copies between views, and several GPUs. */
#include "gpu_test.h"

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

/* Fills elements at addresses that are not multiples of their size: the real part of a complex
 * number determines its alignment, and tensors of other libraries can have any address. */
static void check_unaligned_fills(kjit_context *context, kjit_device *device)
{
  static const kjit_type types[] = { KJIT_I16, KJIT_F32, KJIT_F64, KJIT_C64, KJIT_C128 };
  enum { LENGTH = 37, MOST_BYTES = 16 };
  int64_t length = (LENGTH + 1) * MOST_BYTES, elements = LENGTH;
  const char value[MOST_BYTES] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 };
  kjit_array *room, *typed;
  expect_ok(context, kjit_create_array(device, KJIT_I8, &length, 1, &room));
  for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
    expect_ok(context, kjit_create_array(device, types[t], &elements, 1, &typed));
    kjit_tensor tensor = *kjit_get_tensor(typed);
    size_t bytes = tensor.bits / 8u;
    kjit_arg element = kjit_arg_value(types[t], value);
    for (size_t shift = 1; shift < bytes; shift++) {
      char *data = address_of(room);
      memset(data, 0, (size_t)length);
      tensor.data = data + shift;
      kjit_arg destination = kjit_arg_tensor(&tensor);
      expect_ok(context, kjit_fill(context, &destination, &element, NULL));
      for (size_t i = 0; i < LENGTH; i++)
        assert_memory_equal(data + shift + i * bytes, value, bytes);
      for (size_t i = 0; i < shift; i++) assert_int_equal(data[i], 0);
      for (size_t i = shift + LENGTH * bytes; i < (size_t)length; i++) assert_int_equal(data[i], 0);
    }
    kjit_release_array(typed);
  }
  kjit_release_array(room);
}

static void test_fills(void **state)
{
  kjit_device *device = gpu(*state, 0);
  check_unaligned_fills(*state, device);
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
