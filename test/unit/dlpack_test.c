/* DLPack: tensors of other libraries become arrays, and arrays become tensors. Stream order is
 * tested against the fake driver. */
#include "small_arrays.h"
#include "memory/pool.h"

/* ---- DLPack ---- */

static int deleted;

static void delete_plain(kjit_managed_tensor *self)
{
  (void)self;
  deleted++;
}

static void delete_versioned(kjit_managed_tensor_versioned *self)
{
  (void)self;
  deleted++;
}

static void test_taking(void **state)
{
  float data[] = { 1, 2, 3, 4 };
  int64_t length = 4;
  kjit_managed_tensor plain = { .tensor = host_vector(data, &length), .deleter = delete_plain };
  kjit_managed_tensor_versioned versioned = {
    .major = 1, .minor = 9, .deleter = delete_versioned, .tensor = plain.tensor
  };
  kjit_array *array, *view;
  deleted = 0;
  expect_ok(*state, kjit_take_dlpack(*state, &plain, NULL, &array));
  EXPECT_ELEMENTS(array, 1, 2, 3, 4);
  expect_ok(*state, kjit_slice_array(array, &(kjit_array_slice){ 1, 3, 1 }, 1, &view));
  kjit_release_array(array);
  assert_int_equal(deleted, 0);
  kjit_release_array(view);
  assert_int_equal(deleted, 1);
  expect_ok(*state, kjit_take_dlpack_versioned(*state, &versioned, NULL, &array));
  kjit_release_array(array);
  assert_int_equal(deleted, 2);
  versioned.major = 2;
  expect_refused(*state, kjit_take_dlpack_versioned(*state, &versioned, NULL, &array),
                 KJIT_ERROR_UNSUPPORTED,
                 "the tensor has DLPack version 2.9, but kjit supports versions 1.x");
  assert_int_equal(deleted, 3); /* ownership is taken on failure, too */
  plain.tensor.bits = 4;
  assert_int_equal(kjit_take_dlpack(*state, &plain, NULL, &array), KJIT_ERROR_ARGUMENT);
  assert_int_equal(deleted, 4);
  plain.tensor.bits = 32;
  assert_int_equal(kjit_take_dlpack(*state, &plain, NULL, NULL), KJIT_ERROR_MISUSE);
  assert_int_equal(deleted, 5);
  assert_int_equal(kjit_take_dlpack(*state, NULL, NULL, &array), KJIT_ERROR_MISUSE);
  plain.tensor.device_type = 2;
  plain.tensor.device_id = 9;
  assert_int_equal(kjit_take_dlpack(*state, &plain, NULL, &array), KJIT_ERROR_NO_DEVICE);
  assert_int_equal(deleted, 6);
}

/* Takes unusual tensors: some have no dimensions, elements, memory or strides, others have an
 * offset or negative strides. Then checks the tensors that a consumer gets from kjit. */
static void test_odd_tensors(void **state)
{
  float data[8] = { 0, 1, 2, 3, 4, 5, 6, 7 };
  const struct {
    int32_t rank;
    int first; /* index of the first element in the data; -1 means no memory */
    uint64_t byte_offset;
    int64_t shape[2], strides[2]; /* strides 0 0 stand for NULL */
    size_t count;
    float expected[6];
  } rows[] = { { 0, 3, 0, { 0 }, { 0 }, 1, { 3 } },
               { 0, 0, 20, { 0 }, { 0 }, 1, { 5 } },
               { 1, -1, 0, { 0 }, { 0 }, 0, { 0 } },
               { 2, -1, 0, { 3, 0 }, { 0, 1 }, 0, { 0 } },
               { 2, 0, 8, { 2, 3 }, { 0 }, 6, { 2, 3, 4, 5, 6, 7 } },
               { 2, 7, 0, { 2, 2 }, { -4, -1 }, 4, { 7, 6, 3, 2 } },
               { 2, 1, 4, { 2, 2 }, { 0, 3 }, 4, { 2, 5, 2, 5 } } };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    int64_t shape[2], strides[2];
    float found[6] = { 0 };
    bool has_strides = rows[i].strides[0] || rows[i].strides[1];
    memcpy(shape, rows[i].shape, sizeof shape);
    memcpy(strides, rows[i].strides, sizeof strides);
    kjit_managed_tensor_versioned managed = { .major = 1,
                                              .deleter = delete_versioned,
                                              .flags = KJIT_DLPACK_IS_COPIED },
                                  *given;
    managed.tensor =
      host_vector(rows[i].first < 0 ? NULL : data + rows[i].first, rows[i].rank ? shape : NULL);
    managed.tensor.rank = rows[i].rank;
    managed.tensor.strides = has_strides ? strides : NULL;
    managed.tensor.byte_offset = rows[i].byte_offset;
    kjit_array *array, *again;
    deleted = 0;
    expect_ok(*state, kjit_take_dlpack_versioned(*state, &managed, NULL, &array));
    /* the call has read the producer's shape, so it may change now */
    memset(shape, 0x55, sizeof shape);
    memset(strides, 0x55, sizeof strides);
    expect_ok(*state, kjit_copy_to_host(array, found, rows[i].count * sizeof *found, NULL));
    assert_memory_equal(found, rows[i].expected, rows[i].count * sizeof *found);
    expect_ok(*state, kjit_export_dlpack_versioned(array, NULL, &given));
    assert_true(given->tensor.shape && given->tensor.strides); /* DLPack 1.2 requires strides */
    assert_int_equal(given->flags, 0);
    kjit_release_array(array);
    assert_int_equal(deleted, 0);
    expect_ok(*state, kjit_take_dlpack_versioned(*state, given, NULL, &again));
    memset(found, 0, sizeof found);
    expect_ok(*state, kjit_copy_to_host(again, found, rows[i].count * sizeof *found, NULL));
    assert_memory_equal(found, rows[i].expected, rows[i].count * sizeof *found);
    kjit_release_array(again);
    assert_int_equal(deleted, 1);
  }
}

/* Tensors that no memory can have are rejected. The strides of a tensor without elements are
 * ignored. */
static void test_impossible_tensors(void **state)
{
  float data[4] = { 0 };
  int64_t one = 1, shape[] = { 0, INT64_MAX, INT64_MAX },
          strides[] = { INT64_MIN, INT64_MIN, INT64_MAX };
  kjit_array *array, *view;
  kjit_tensor tensor = host_vector(NULL, &one);
  tensor.byte_offset = 64;
  expect_refused(*state, kjit_wrap_tensor(*state, &tensor, &array), KJIT_ERROR_ARGUMENT,
                 "the tensor: the tensor has no data");
  tensor.data = data;
  tensor.byte_offset = UINT64_MAX;
  expect_refused(*state, kjit_wrap_tensor(*state, &tensor, &array), KJIT_ERROR_ARGUMENT,
                 "the tensor: the tensor has no data");
  /* elements after the last address, and before the first one */
  static const char beyond[] = "the tensor: the addresses of the elements exceed the address space";
  int64_t ways[] = { INT64_MAX / 8, -(INT64_MAX / 8) }, three = 3;
  tensor = host_vector(data, &three);
  tensor.strides = &ways[0];
  tensor.data = (char *)(uintptr_t)-64; /* NOLINT(performance-no-int-to-ptr) */
  expect_refused(*state, kjit_wrap_tensor(*state, &tensor, &array), KJIT_ERROR_ARGUMENT, beyond);
  tensor.data = data;
  tensor.strides = &ways[1];
  expect_refused(*state, kjit_wrap_tensor(*state, &tensor, &array), KJIT_ERROR_ARGUMENT, beyond);
  tensor = host_vector(data, shape);
  tensor.rank = 3;
  tensor.strides = strides;
  expect_ok(*state, kjit_wrap_tensor(*state, &tensor, &array));
  kjit_array_slice slices[] = { { 0, 0, 1 },
                                { INT64_MAX - 1, -1, -1 },
                                { INT64_MAX - 1, INT64_MAX, 1 } };
  expect_ok(*state, kjit_slice_array(array, slices, 3, &view));
  kjit_release_array(view);
  expect_ok(*state, kjit_transpose_array(array, NULL, &view));
  kjit_release_array(view);
  expect_ok(*state, kjit_reshape_array(array, shape, 3, &view));
  assert_ptr_equal(address_of(view), data);
  kjit_release_array(view);
  kjit_release_array(array);
}

static void test_read_only(void **state)
{
  float data[] = { 1, 2, 3, 4 };
  int64_t length = 4;
  kjit_managed_tensor_versioned versioned = { .major = 1,
                                              .deleter = delete_versioned,
                                              .flags = KJIT_DLPACK_READ_ONLY };
  kjit_managed_tensor *plain;
  kjit_managed_tensor_versioned *given;
  kjit_kernel *kernel = kernel_of(parse(*state, add_one), "add_one");
  for (int place = 0; place < 2; place++) {
    kjit_array *array, *view;
    versioned.tensor = host_vector(data, &length);
    if (place) versioned.tensor.device_type = 2; /* the fake GPU's memory is the host's */
    expect_ok(*state, kjit_take_dlpack_versioned(*state, &versioned, NULL, &array));
    expect_ok(*state, kjit_slice_array(array, &(kjit_array_slice){ 1, 3, 1 }, 1, &view));
    kjit_arg arguments[] = { kjit_arg_array(array), kjit_arg_array(view) };
    for (int i = 0; i < 2; i++) {
      assert_int_equal(kjit_launch(kernel, NULL, &arguments[i], 1), KJIT_ERROR_ARGUMENT);
      char *text = kjit_copy_diagnostics_text(*state); /* a remark on the compilation may precede */
      assert_non_null(strstr(text, "parameter `x`: the kernel writes to the array, but the array's "
                                   "owner has marked it read-only"));
      kjit_free(*state, text);
    }
    kjit_arg zero = kjit_arg_number(0);
    expect_refused(*state, kjit_fill(*state, &arguments[0], &zero, NULL), KJIT_ERROR_ARGUMENT,
                   "the destination is read-only: its owner has marked it so");
    assert_int_equal(kjit_export_dlpack(array, NULL, &plain), KJIT_ERROR_UNSUPPORTED);
    expect_ok(*state, kjit_export_dlpack_versioned(array, NULL, &given));
    assert_true(given->flags & KJIT_DLPACK_READ_ONLY);
    given->deleter(given);
    kjit_release_array(view);
    kjit_release_array(array);
  }
}

static void test_giving(void **state)
{
  kjit_array *array = make_counted(cpu_of(*state), KJIT_LAYOUT_F), *back;
  kjit_managed_tensor *plain;
  kjit_managed_tensor_versioned *versioned, *late;
  expect_ok(*state, kjit_export_dlpack(array, NULL, &plain));
  expect_ok(*state, kjit_export_dlpack_versioned(array, NULL, &versioned));
  expect_ok(*state, kjit_export_dlpack_versioned(array, NULL, &late));
  assert_int_equal(versioned->major, 1);
  assert_int_equal(plain->tensor.strides[1], 3);
  kjit_release_array(array);
  /* the exported array is imported again */
  expect_ok(*state, kjit_take_dlpack(*state, plain, NULL, &back));
  EXPECT_ELEMENTS(back, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11);
  kjit_release_array(back);
  versioned->deleter(versioned);
  kjit_destroy_context(*state);
  late->deleter(late); /* a consumer that outlives the context */
  *state = make_gpu_context();
}

/* The consumer's stream waits for earlier uses of the array, and the owner's stream waits for
 * kjit's uses. */
static void test_stream_order(void **state)
{
  kjit_device *device = gpu(*state, 0);
  kjit_kernel *kernel = kernel_of(parse(*state, add_one), "add_one");
  kjit_stream *own, *other, *consumer;
  char native;
  expect_ok(*state, kjit_create_stream(device, &own));
  expect_ok(*state, kjit_create_stream(device, &other));
  expect_ok(*state, kjit_wrap_stream(device, &native, &consumer));
  kjit_array *array = make_vector(device, 100, own);
  kjit_arg argument = kjit_arg_array(array);
  expect_ok(*state, kjit_launch(kernel,
                                &(kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config),
                                                       .stream = other },
                                &argument, 1));
  kjit_managed_tensor_versioned *given;
  expect_ok(*state, kjit_export_dlpack_versioned(array, consumer, &given));
  assert_int_equal(cuda.orders, 2);
  assert_ptr_equal(cuda.ordered[0][0], kjit_get_native_stream(own));
  assert_ptr_equal(cuda.ordered[1][0], kjit_get_native_stream(other));
  assert_ptr_equal(cuda.ordered[0][1], &native);
  assert_ptr_equal(cuda.ordered[1][1], &native);
  given->deleter(given);
  cuda.orders = 0;
  kjit_release_array(array); /* the array's own stream waits for both uses */
  assert_int_equal(cuda.orders, 2);
  kjit_managed_tensor managed = { .deleter = delete_plain };
  float data[100];
  int64_t length = 100;
  managed.tensor = host_vector(data, &length);
  managed.tensor.device_type = 2;
  expect_ok(*state, kjit_take_dlpack(*state, &managed, own, &array));
  argument = kjit_arg_array(array);
  expect_ok(*state, kjit_launch(kernel,
                                &(kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config),
                                                       .stream = other },
                                &argument, 1));
  cuda.orders = deleted = 0;
  kjit_release_array(array);
  assert_int_equal(deleted, 1);
  assert_int_equal(cuda.orders, 1);
  assert_ptr_equal(cuda.ordered[0][0], kjit_get_native_stream(other));
  assert_ptr_equal(cuda.ordered[0][1], kjit_get_native_stream(own));
  kjit_destroy_stream(own);
  kjit_destroy_stream(other);
  kjit_destroy_stream(consumer);
}

/* A stream of a GPU reads memory of another library that is on the host. The host waits for the
 * stream, because the memory has no stream of its own. */
static void test_host_memory(void **state)
{
  enum { LENGTH = 4 };
  kjit_device *device = gpu(*state, 0);
  kjit_stream *stream;
  float data[LENGTH] = { 1, 2, 3, 4 };
  int64_t length = LENGTH;
  kjit_managed_tensor managed = { .tensor = host_vector(data, &length), .deleter = delete_plain };
  kjit_array *host, *copied = make_vector(device, LENGTH, NULL);
  expect_ok(*state, kjit_create_stream(device, &stream));
  expect_ok(*state, kjit_take_dlpack(*state, &managed, NULL, &host));
  kjit_arg to = kjit_arg_array(copied), from = kjit_arg_array(host);
  deleted = 0;
  expect_ok(*state, kjit_copy_async(*state, &to, &from, stream));
  kjit_release_array(host);
  assert_int_equal(deleted, 1);
  assert_memory_equal(address_of(copied), data, sizeof data);
  kjit_release_array(copied);
  kjit_destroy_stream(stream);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_gpus, tear_down_gpus)
  const struct CMUnitTest tests[] = {
    TEST(test_taking), TEST(test_odd_tensors),  TEST(test_impossible_tensors), TEST(test_read_only),
    TEST(test_giving), TEST(test_stream_order), TEST(test_host_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
