/* Arrays without a GPU: creation, views and copies. */
#include "small_arrays.h"
#include "memory/pool.h"

/* ---- making ---- */

static void test_making(void **state)
{
  kjit_device *cpu = cpu_of(*state);
  kjit_array *columns = make_counted(cpu, KJIT_LAYOUT_F), *like, *from;
  assert_int_equal(kjit_get_tensor(columns)->strides[1], 3);
  assert_true(((float *)address_of(columns))[1] == 4);
  expect_ok(*state, kjit_create_array_like(columns, &like));
  assert_int_equal(kjit_get_tensor(like)->strides[1], 3);
  assert_int_equal(kjit_get_array_element(like), KJIT_F32);
  assert_ptr_equal(kjit_get_array_device(like), cpu);
  expect_ok(*state, kjit_create_array_from(cpu, kjit_get_tensor(columns), NULL, &from));
  assert_int_equal(kjit_get_tensor(from)->strides[1], 1);
  EXPECT_ELEMENTS(from, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11);
  float values[3];
  expect_refused(*state, kjit_copy_to_host(columns, values, sizeof values, NULL),
                 KJIT_ERROR_ARGUMENT,
                 "kjit_copy_to_host: the host memory has 12 bytes, but the array has 48");
  for (kjit_memory memory = KJIT_MEMORY_PINNED; memory <= KJIT_MEMORY_SHARED; memory++) {
    kjit_array *array = make_matrix(cpu, KJIT_LAYOUT_C, memory);
    assert_int_equal(kjit_get_tensor(array)->device_type, 1);
    kjit_release_array(array);
  }
  kjit_array_config config = { .size_bytes = sizeof config };
  assert_int_equal(kjit_create_array_with(&config, &like), KJIT_ERROR_MISUSE);
  config.device = cpu;
  config.element = KJIT_F32;
  config.rank = 1;
  expect_refused(*state, kjit_create_array_with(&config, &like), KJIT_ERROR_MISUSE,
                 "the shape of the array is NULL");
  config.shape = (int64_t[]){ -1 };
  assert_int_equal(kjit_create_array_with(&config, &like), KJIT_ERROR_ARGUMENT);
  config.shape = (int64_t[]){ INT64_MAX };
  assert_int_equal(kjit_create_array_with(&config, &like), KJIT_ERROR_ARGUMENT);
}

/* Structs of an application that was built with an older header are shorter. Missing fields have
 * their defaults, whatever bytes follow the struct. */
static void test_older_structs(void **state)
{
  static const struct {
    size_t bytes;
    kjit_layout layout;
    bool is_shared;
  } rows[] = { { offsetof(kjit_array_config, layout), KJIT_LAYOUT_C, false },
               { offsetof(kjit_array_config, stream), KJIT_LAYOUT_F, true },
               { sizeof(kjit_array_config), KJIT_LAYOUT_F, true } };
  kjit_device *cpu = cpu_of(*state);
  kjit_array *array = NULL;
  kjit_array_config config = { .size_bytes = sizeof config };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    kjit_array_config full = { .size_bytes = sizeof full };
    kjit_array_handle handle;
    full.device = cpu;
    full.element = KJIT_F32;
    full.rank = 2;
    full.shape = (int64_t[]){ 3, 4 };
    full.layout = KJIT_LAYOUT_F;
    full.memory = KJIT_MEMORY_SHARED;
    memset(&config, 0x7e, sizeof config);
    memcpy(&config, &full, rows[i].bytes);
    config.size_bytes = (uint32_t)rows[i].bytes;
    expect_ok(*state, kjit_create_array_with(&config, &array));
    assert_int_equal(kjit_get_tensor(array)->strides[0], rows[i].layout == KJIT_LAYOUT_F ? 1 : 4);
    assert_int_equal(kjit_export_array(array, &handle),
                     rows[i].is_shared ? KJIT_OK : KJIT_ERROR_UNSUPPORTED);
    kjit_release_array(array);
  }
  const uint32_t unknown[] = { 0, 1, offsetof(kjit_array_config, device), sizeof config + 4,
                               UINT32_MAX };
  for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
    config.size_bytes = unknown[i];
    assert_int_equal(kjit_create_array_with(&config, &array), KJIT_ERROR_MISUSE);
  }
}

static void test_fill(void **state)
{
  kjit_array *array = make_counted(cpu_of(*state), KJIT_LAYOUT_C), *view;
  expect_ok(*state,
            kjit_slice_array(array, (kjit_array_slice[]){ { 0, 3, 2 }, { 3, 0, -2 } }, 2, &view));
  kjit_arg destination = kjit_arg_array(view), value = kjit_arg_f32(-1);
  expect_ok(*state, kjit_fill(*state, &destination, &value, NULL));
  EXPECT_ELEMENTS(array, 0, -1, 2, -1, 4, 5, 6, 7, 8, -1, 10, -1);
}

static void abort_call(void *user)
{
  (void)user;
  abort();
}

/* ---- views ---- */

static void test_slices(void **state)
{
  kjit_array *array = make_counted(cpu_of(*state), KJIT_LAYOUT_C), *view, *part;
  expect_ok(*state,
            kjit_slice_array(array, (kjit_array_slice[]){ { 1, 3, 1 }, { 3, -1, -1 } }, 2, &view));
  EXPECT_ELEMENTS(view, 7, 6, 5, 4, 11, 10, 9, 8);
  kjit_release_array(array); /* the view keeps the memory */
  expect_ok(*state,
            kjit_slice_array(view, (kjit_array_slice[]){ { 1, 0, 0 }, { 0, 4, 3 } }, 2, &part));
  assert_int_equal(kjit_get_tensor(part)->rank, 1);
  EXPECT_ELEMENTS(part, 11, 8);
  kjit_release_array(view);
  EXPECT_ELEMENTS(part, 11, 8);
  /* nothing of it */
  expect_ok(*state, kjit_slice_array(part, (kjit_array_slice[]){ { 1, 1, 1 } }, 1, &view));
  assert_int_equal(kjit_get_tensor(view)->shape[0], 0);
  kjit_release_array(view);
  static const struct {
    kjit_array_slice slice;
    const char *message;
  } wrong[] = {
    { { 2, 0, 0 }, "dimension 0: position 2 is out of bounds for 0..1" },
    { { -1, 0, 0 }, "dimension 0: position -1 is out of bounds for 0..1" },
    { { 0, 3, 1 }, "dimension 0: position 2 is out of bounds for 0..1" },
    { { 1, -2, -1 }, "dimension 0: position -1 is out of bounds for 0..1" },
    { { 0, INT64_MAX, INT64_MAX - 1 },
      "dimension 0: position 9223372036854775806 is out of bounds for 0..1" },
    { { 0, INT64_MIN, INT64_MIN }, NULL }, /* one element */
    { { INT64_MIN, INT64_MAX, 1 },
      "dimension 0: position -9223372036854775808 is out of bounds for 0..1" },
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    if (wrong[i].message)
      expect_refused(*state, kjit_slice_array(part, &wrong[i].slice, 1, &view), KJIT_ERROR_ARGUMENT,
                     wrong[i].message);
    else expect_ok(*state, kjit_slice_array(part, &wrong[i].slice, 1, &view));
  }
  kjit_array_slice two[] = { { 0, 1, 1 }, { 0, 1, 1 } };
  expect_refused(*state, kjit_slice_array(part, two, 2, &view), KJIT_ERROR_ARGUMENT,
                 "got 2 slices for an array with 1 dimensions");
}

static void test_reshape(void **state)
{
  kjit_array *array = make_counted(cpu_of(*state), KJIT_LAYOUT_C), *view, *columns, *again;
  expect_ok(*state, kjit_reshape_array(array, (int64_t[]){ 2, -1, 1, 3 }, 4, &view));
  assert_int_equal(kjit_get_tensor(view)->shape[1], 2);
  EXPECT_ELEMENTS(view, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11);
  expect_ok(*state, kjit_transpose_array(array, NULL, &columns));
  EXPECT_ELEMENTS(columns, 0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11);
  /* only the first dimension is divided */
  expect_ok(*state, kjit_reshape_array(columns, (int64_t[]){ 2, 2, 3 }, 3, &again));
  EXPECT_ELEMENTS(again, 0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11);
  expect_refused(
    *state, kjit_reshape_array(columns, (int64_t[]){ 12 }, 1, &again), KJIT_ERROR_ARGUMENT,
    "the strides of the array do not allow a view with this shape; copy it to a contiguous array");
  expect_refused(*state, kjit_reshape_array(array, (int64_t[]){ 5, -1 }, 2, &again),
                 KJIT_ERROR_ARGUMENT, "an array with 12 elements cannot have this shape");
  expect_refused(*state, kjit_reshape_array(array, (int64_t[]){ -1, -1 }, 2, &again),
                 KJIT_ERROR_ARGUMENT,
                 "extent -1 of dimension 1 is negative; only a single extent may be -1");
  expect_refused(
    *state, kjit_transpose_array(array, (uint32_t[]){ 1, 1 }, &again), KJIT_ERROR_ARGUMENT,
    "axis 1 is given for dimension 1, but every dimension of the array must occur exactly once");
  kjit_array *empty, *one;
  expect_ok(*state, kjit_slice_array(array, (kjit_array_slice[]){ { 0, 0, 1 } }, 1, &empty));
  expect_ok(*state, kjit_reshape_array(empty, (int64_t[]){ 7, 0 }, 2, &again));
  expect_ok(*state,
            kjit_slice_array(array, (kjit_array_slice[]){ { 1, 0, 0 }, { 1, 0, 0 } }, 2, &one));
  expect_ok(*state, kjit_reshape_array(one, (int64_t[]){ 1, 1 }, 2, &again));
  EXPECT_ELEMENTS(again, 5);
}

static void test_restride(void **state)
{
  kjit_array *array = make_counted(cpu_of(*state), KJIT_LAYOUT_C), *view, *part, *again;
  expect_ok(*state, kjit_restride_array(array, (int64_t[]){ 2, 3 }, (int64_t[]){ 0, -4 }, 2, 9,
                                        &view)); /* rows 2, 1, 0 of column 1, twice */
  EXPECT_ELEMENTS(view, 9, 5, 1, 9, 5, 1);
  expect_ok(*state, kjit_restride_array(array, NULL, NULL, 0, 11, &view));
  EXPECT_ELEMENTS(view, 11);
  expect_ok(*state,
            kjit_restride_array(array, (int64_t[]){ 4, 0 }, (int64_t[]){ 999, 1 }, 2, 99, &view));
  assert_int_equal(kjit_get_tensor(view)->shape[0], 4);
  /* the bounds are those of the view, not those of the viewed array */
  expect_ok(*state, kjit_slice_array(array, (kjit_array_slice[]){ { 1, 2, 1 } }, 1, &part));
  expect_ok(*state, kjit_restride_array(part, (int64_t[]){ 2 }, (int64_t[]){ -1 }, 1, 3, &again));
  EXPECT_ELEMENTS(again, 7, 6);
  static const char outside[] = "the view contains elements outside of the array: all its elements "
                                "must be between the first and the last element of the array";
  const struct {
    int64_t extent, stride, offset;
  } bad[] = { { 2, 4, 0 }, { 2, -1, 0 }, { 1, 1, 4 }, { INT64_MAX, INT64_MAX, 0 }, { 1, 1, -1 } };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    expect_refused(*state,
                   kjit_restride_array(part, &bad[i].extent, &bad[i].stride, 1, bad[i].offset,
                                       &again),
                   KJIT_ERROR_ARGUMENT, outside);
  expect_refused(*state,
                 kjit_restride_array(part, (int64_t[]){ -2 }, (int64_t[]){ 1 }, 1, 0, &again),
                 KJIT_ERROR_ARGUMENT, "extent -2 of dimension 0 is negative");
  expect_refused(*state,
                 kjit_restride_array(part, (int64_t[9]){ 0 }, (int64_t[9]){ 0 }, 9, 0, &again),
                 KJIT_ERROR_ARGUMENT, "an array has at most 8 dimensions, not 9");
  /* eight reaches of -2^125 + 2^63 + ..., whose sum in 128 bits is a small positive number: the
   * view of one index would be outside of the array */
  int64_t shape[8], strides[8];
  for (int i = 0; i < 8; i++) {
    shape[i] = INT64_MAX;
    strides[i] = -((int64_t)1 << 62) + 1024;
  }
  expect_refused(*state, kjit_restride_array(array, shape, strides, 8, 0, &again),
                 KJIT_ERROR_ARGUMENT, outside);
  for (int i = 0; i < 8; i++) strides[i] = -strides[i];
  expect_refused(*state, kjit_restride_array(array, shape, strides, 8, 0, &again),
                 KJIT_ERROR_ARGUMENT, outside);
  /* 2^64 elements with the same address, whose number would be 0 */
  expect_refused(*state,
                 kjit_restride_array(array, (int64_t[]){ (int64_t)1 << 32, (int64_t)1 << 32 },
                                     (int64_t[]){ 0, 0 }, 2, 0, &again),
                 KJIT_ERROR_ARGUMENT, "the extents of the view do not fit the address space");
}

static void test_retype(void **state)
{
  kjit_array *numbers, *part, *rows, *again, *empty;
  expect_ok(*state, kjit_create_array(cpu_of(*state), KJIT_C64, (int64_t[]){ 2, 3 }, 2, &numbers));
  float *elements = kjit_get_tensor(numbers)->data;
  for (int i = 0; i < 12; i++) elements[i] = (float)i;
  expect_ok(*state, kjit_retype_array(numbers, KJIT_F32, 1, &part));
  const kjit_tensor *tensor = kjit_get_tensor(part);
  assert_int_equal(tensor->bits, 32);
  assert_ptr_equal((char *)tensor->data + tensor->byte_offset, elements + 1);
  assert_int_equal(tensor->rank, 2);
  assert_int_equal(tensor->shape[1], 3);
  assert_int_equal(tensor->strides[0], 6);
  assert_int_equal(tensor->strides[1], 2);
  /* the last element of a view with negative strides */
  expect_ok(*state,
            kjit_restride_array(numbers, (int64_t[]){ 2, 2 }, (int64_t[]){ -3, -2 }, 2, 5, &rows));
  expect_ok(*state, kjit_retype_array(rows, KJIT_I16, 3, &again));
  tensor = kjit_get_tensor(again);
  assert_ptr_equal((char *)tensor->data + tensor->byte_offset, (short *)(elements + 10) + 3);
  assert_int_equal(tensor->strides[1], -8);
  expect_ok(*state, kjit_slice_array(numbers, (kjit_array_slice[]){ { 0, 0, 1 } }, 1, &empty));
  expect_ok(*state, kjit_retype_array(empty, KJIT_F32, 1, &again));
  expect_refused(*state, kjit_retype_array(numbers, KJIT_F32, 2, &again), KJIT_ERROR_ARGUMENT,
                 "component 2 does not exist: an element has 2 components");
  expect_refused(*state, kjit_retype_array(numbers, KJIT_C128, 0, &again), KJIT_ERROR_ARGUMENT,
                 "elements of 8 bytes cannot be divided into elements of 16 bytes");
  const kjit_type others[] = { KJIT_ANY, KJIT_VOID, KJIT_FUNC };
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    expect_refused(*state, kjit_retype_array(numbers, others[i], 0, &again), KJIT_ERROR_ARGUMENT,
                   "the new element type is not a scalar type");
}

static void test_protect(void **state)
{
  kjit_array *numbers, *view, *part;
  expect_ok(*state, kjit_create_array(cpu_of(*state), KJIT_F64, (int64_t[]){ 4 }, 1, &numbers));
  expect_ok(*state, kjit_protect_array(numbers, &view));
  expect_ok(*state, kjit_slice_array(view, (kjit_array_slice[]){ { 1, 3, 1 } }, 1, &part));
  kjit_arg value = kjit_arg_number(3), own = kjit_arg_array(numbers);
  kjit_arg protected[] = { kjit_arg_array(view), kjit_arg_array(part) };
  for (size_t i = 0; i < 2; i++)
    expect_refused(*state, kjit_fill(*state, &protected[i], &value, NULL), KJIT_ERROR_ARGUMENT,
                   "the destination is read-only: its owner has marked it so");
  expect_ok(*state, kjit_fill(*state, &own, &value, NULL));
  const double *elements = kjit_get_tensor(part)->data;
  assert_true(elements[0] == 3);
  kjit_release_array(numbers);
  kjit_release_array(part);
  kjit_release_array(view);
}

/* Streams belong to one context, so arrays of another context are passed as tensors. */
static void test_other_contexts(void **state)
{
  static const char message[] =
    "the %s is an array of another context; pass it as a tensor (kjit_get_tensor)";
  char expected[128];
  kjit_context *other = make_fake_context();
  kjit_array *mine = make_counted(cpu_of(*state), KJIT_LAYOUT_C),
             *theirs = make_counted(cpu_of(other), KJIT_LAYOUT_C);
  kjit_arg here = kjit_arg_array(mine), there = kjit_arg_array(theirs), value = kjit_arg_number(3),
           tensor = kjit_arg_tensor(kjit_get_tensor(theirs));
  kjit_stream *stream;
  kjit_prepared *prepared;
  snprintf(expected, sizeof expected, message, "destination");
  expect_refused(*state, kjit_fill(*state, &there, &value, NULL), KJIT_ERROR_ARGUMENT, expected);
  expect_refused(*state, kjit_copy(*state, &there, &here, NULL), KJIT_ERROR_ARGUMENT, expected);
  snprintf(expected, sizeof expected, message, "source");
  expect_refused(*state, kjit_copy_async(*state, &here, &there, NULL), KJIT_ERROR_ARGUMENT,
                 expected);
  EXPECT_ELEMENTS(theirs, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11);
  expect_ok(*state, kjit_fill(*state, &tensor, &value, NULL));
  EXPECT_ELEMENTS(theirs, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3);
  expect_ok(other, kjit_create_stream(cpu_of(other), &stream));
  kjit_kernel *kernel =
    kernel_of(parse(*state, "kernel k(x) {\n  for i in grid_range(len(x)) { x[i, 0] = 1 }\n}\n"),
              "k");
  expect_ok(*state, kjit_prepare_launch(kernel, NULL, &here, 1, &prepared));
  expect_refused(*state, kjit_run_prepared(prepared, stream), KJIT_ERROR_ARGUMENT,
                 "the stream belongs to another context");
  expect_refused(
    *state, kjit_set_prepared_argument(prepared, 0, &there), KJIT_ERROR_ARGUMENT,
    "parameter `x`: expected an array of the kernel's context, got an array of another context");
  expect_refused(*state, kjit_add_host_callback(cpu_of(*state), stream, abort_call, NULL),
                 KJIT_ERROR_ARGUMENT, "the stream belongs to another context");
  kjit_destroy_prepared(prepared);
  kjit_destroy_context(other);
}

static void test_wrapped(void **state)
{
  float data[] = { 1, 2, 3, 4 };
  int64_t length = 2, stride = 2;
  kjit_tensor tensor = host_vector(data, &length);
  tensor.strides = &stride;
  kjit_array *array;
  expect_ok(*state, kjit_wrap_tensor(*state, &tensor, &array));
  EXPECT_ELEMENTS(array, 1, 3);
  kjit_release_array(array);
  tensor.device_type = 7;
  assert_int_equal(kjit_wrap_tensor(*state, &tensor, &array), KJIT_ERROR_ARGUMENT);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_gpus, tear_down_gpus)
  const struct CMUnitTest tests[] = {
    TEST(test_making),  TEST(test_older_structs),  TEST(test_fill),   TEST(test_slices),
    TEST(test_reshape), TEST(test_restride),       TEST(test_retype), TEST(test_protect),
    TEST(test_wrapped), TEST(test_other_contexts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
