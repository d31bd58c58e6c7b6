/* Arrays without a GPU: views, copies, DLPack, other processes, and the use of a context in a
 * forked child. DLPack's stream order is tested against the fake driver. */
#include "gpu_test.h"
#include "memory/pool.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kjit/cache.h>
#include <kjit/code.h>

#include "compiler.h"

static kjit_device *cpu_of(kjit_context *context)
{
  kjit_device *device;
  expect_ok(context, kjit_get_device(context, KJIT_DEVICE_CPU, 0, &device));
  return device;
}

static kjit_array *make_matrix(kjit_device *device, kjit_layout layout, kjit_memory memory)
{
  static const int64_t shape[] = { 3, 4 };
  kjit_array *array = NULL;
  kjit_array_config config = { .size_bytes = sizeof config };
  config.device = device;
  config.element = KJIT_F32;
  config.rank = 2;
  config.shape = shape;
  config.layout = layout;
  config.memory = memory;
  expect_ok(device->context, kjit_create_array_with(&config, &array));
  return array;
}

/* Creates an array with the elements 0, 1, 2 ... in row-major order. */
static kjit_array *make_counted(kjit_device *device, kjit_layout layout)
{
  float values[12];
  kjit_array *array = make_matrix(device, layout, KJIT_MEMORY_DEVICE);
  for (int i = 0; i < 12; i++) values[i] = (float)i;
  expect_ok(device->context, kjit_copy_from_host(array, values, sizeof values, NULL));
  return array;
}

static void expect_elements(kjit_array *array, const float *expected, size_t count)
{
  float found[64];
  expect_ok(array->object.device->context,
            kjit_copy_to_host(array, found, count * sizeof *found, NULL));
  assert_memory_equal(found, expected, count * sizeof *found);
}
#define EXPECT_ELEMENTS(array, ...) \
  expect_elements(array, (const float[]){ __VA_ARGS__ }, \
                  sizeof((float[]){ __VA_ARGS__ }) / sizeof(float))

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

/* ---- other processes ---- */

/* Returns the child's exit status, which is 0 if everything was correct. */
static int wait_for(pid_t child)
{
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + status;
}

static int use_imported(const kjit_array_handle *handle)
{
  kjit_array *array;
  float values[6];
  kjit_context *context = make_fake_context();
  if (kjit_import_array(context, handle, &array) != KJIT_OK) return 1;
  if (kjit_get_tensor(array)->rank != 2 || kjit_get_tensor(array)->shape[0] != 3) return 2;
  if (kjit_copy_to_host(array, values, sizeof values, NULL) != KJIT_OK || values[5] != 11) return 3;
  kjit_arg destination = kjit_arg_array(array), value = kjit_arg_number(-7);
  if (kjit_fill(context, &destination, &value, NULL) != KJIT_OK) return 4;
  kjit_release_array(array);
  kjit_destroy_context(context);
  return 0;
}

static void test_shared_memory(void **state)
{
  kjit_device *cpu = cpu_of(*state);
  kjit_array *array = make_matrix(cpu, KJIT_LAYOUT_C, KJIT_MEMORY_SHARED), *view, *again,
             *plain = make_counted(cpu, KJIT_LAYOUT_C);
  float values[12];
  kjit_array_handle handle;
  for (int i = 0; i < 12; i++) values[i] = (float)i;
  expect_ok(*state, kjit_copy_from_host(array, values, sizeof values, NULL));
  expect_ok(*state,
            kjit_slice_array(array, (kjit_array_slice[]){ { 0, 3, 1 }, { 1, 4, 2 } }, 2, &view));
  expect_ok(*state, kjit_export_array(view, &handle));
  fflush(NULL);
  pid_t child = fork();
  if (!child) _exit(use_imported(&handle));
  assert_int_equal(wait_for(child), 0);
  EXPECT_ELEMENTS(array, 0, -7, 2, -7, 4, -7, 6, -7, 8, -7, 10, -7);
  assert_int_equal(ftruncate(array->block->file, 0), -1); /* whoever has it */
  expect_refused(*state, kjit_import_array(*state, &handle, &again), KJIT_ERROR_ARGUMENT,
                 "the array belongs to this process; use it directly");
  expect_refused(*state, kjit_export_array(plain, &handle), KJIT_ERROR_UNSUPPORTED,
                 "on the CPU only arrays in KJIT_MEMORY_SHARED can be exported, because another "
                 "process cannot access other memory");
}

/* Without seals, the file that a handle names could become shorter while the importer uses it. */
static int import_in_child(const kjit_array_handle *handle)
{
  kjit_context *context;
  kjit_array *array = NULL;
  if (kjit_create_context(NULL, &context) != KJIT_OK) return 0;
  return (int)kjit_import_array(context, handle, &array);
}

static void test_unsealed_memory(void **state)
{
  enum { FILE_AT = 256, PROCESS_AT = 152 };
  kjit_array *array;
  kjit_array_handle handle;
  struct stat found;
  int64_t length = 100;
  kjit_array_config config = { .size_bytes = sizeof config,
                               .device = cpu_of(*state),
                               .element = KJIT_F32,
                               .rank = 1,
                               .shape = &length,
                               .layout = KJIT_LAYOUT_C,
                               .memory = KJIT_MEMORY_SHARED };
  expect_ok(*state, kjit_create_array_with(&config, &array));
  expect_ok(*state, kjit_export_array(array, &handle));
  for (int sealed = 0; sealed < 2; sealed++) {
    int file = memfd_create("another one", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_int_equal(ftruncate(file, 4096), 0);
    if (sealed) assert_int_equal(fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK), 0);
    assert_int_equal(fstat(file, &found), 0);
    uint64_t words[] = { (uint64_t)file, found.st_ino, found.st_dev };
    memcpy(handle.bytes + FILE_AT, words, sizeof words);
    fflush(NULL);
    pid_t child = fork();
    if (!child) _exit(import_in_child(&handle));
    assert_int_equal(wait_for(child), sealed ? KJIT_OK : KJIT_ERROR_ARGUMENT);
    close(file);
  }
  kjit_release_array(array);
}

/* Handles are untrusted. Whatever bytes a handle has, the call returns an error or maps the memory
 * that the handle names. */
static void test_damaged_handles(void **state)
{
  kjit_array *array = make_matrix(cpu_of(*state), KJIT_LAYOUT_C, KJIT_MEMORY_SHARED), *imported;
  kjit_array_handle handle, damaged;
  expect_ok(*state, kjit_export_array(array, &handle));
  uint64_t seed = 1;
  for (int i = 0; i < 20000; i++) {
    damaged = handle;
    for (int k = 0; k <= i % 3; k++) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      damaged.bytes[(seed >> 33) % 280] ^= (unsigned char)(1u << (seed >> 60 & 7));
    }
    if (kjit_import_array(*state, &damaged, &imported) == KJIT_OK) kjit_release_array(imported);
  }
}

static void test_gpu_handles(void **state)
{
  enum { PROCESS_AT = 152 };
  kjit_device *device = gpu(*state, 0);
  kjit_array *array = make_vector(device, 100, NULL), *view, *imported, *pinned;
  kjit_array_handle handle;
  memset(address_of(array), 0, 400);
  ((float *)address_of(array))[10] = 42;
  expect_ok(*state, kjit_slice_array(array, &(kjit_array_slice){ 10, 20, 1 }, 1, &view));
  expect_ok(*state, kjit_export_array(view, &handle));
  handle.bytes[PROCESS_AT] ^= 1; /* the handle now names another process */
  expect_ok(*state, kjit_import_array(*state, &handle, &imported));
  assert_ptr_equal(kjit_get_array_device(imported), device);
  EXPECT_ELEMENTS(imported, 42, 0, 0, 0, 0, 0, 0, 0, 0, 0);
  assert_int_equal(cuda.opened, 1);
  kjit_release_array(imported);
  assert_int_equal(cuda.opened, 0);
  /* the handle claims a larger size than the memory has; kjit relies on the driver's size */
  enum { SHAPE_AT = 24, SIZE_AT = 168 };
  int64_t many = 1 << 24, bytes = many * 4 + 40;
  memcpy(handle.bytes + SHAPE_AT, &many, sizeof many);
  memcpy(handle.bytes + SIZE_AT, &bytes, sizeof bytes);
  expect_refused(
    *state, kjit_import_array(*state, &handle, &imported), KJIT_ERROR_ARGUMENT,
    "the handle is damaged: it states 67108904 bytes of memory, but the opened memory has 512");
  assert_int_equal(cuda.opened, 0);
  kjit_array_config config = { .size_bytes = sizeof config,
                               .device = device,
                               .element = KJIT_F32,
                               .layout = KJIT_LAYOUT_C,
                               .memory = KJIT_MEMORY_PINNED };
  expect_ok(*state, kjit_create_array_with(&config, &pinned));
  assert_int_equal(kjit_export_array(pinned, &handle), KJIT_ERROR_UNSUPPORTED);
}

/* ---- fork ---- */

static void run_on_cpu(const void *parameters, const kj_cpu_grid *grid, uint64_t first,
                       uint64_t last, void *scratch)
{
  (void)grid, (void)scratch;
  if (first == 0 && last) run_add_one(parameters);
}

typedef struct everything {
  kjit_context *context;
  kjit_device *device;
  kjit_module *module;
  kjit_kernel *kernel;
  kjit_array *array;
  kjit_stream *stream;
  kjit_event *event;
  kjit_prepared *prepared;
} everything;

/* Makes every kind of call on the parent's objects. Returns the index of the first call that is not
 * rejected, or 0 if all are rejected. */
static int use_after_fork(everything *e)
{
  kjit_arg argument = kjit_arg_array(e->array), number = kjit_arg_number(1);
  kjit_device *device;
  kjit_array *array;
  kjit_stream *stream;
  kjit_event *event;
  kjit_prepared *prepared;
  kjit_graph *graph;
  kjit_managed_tensor *managed;
  kjit_array_handle handle;
  kjit_specialization *specialization;
  kjit_module *module;
  kjit_kernel *kernel;
  void *blob;
  size_t blob_bytes;
  int64_t length = 1;
  float data[4096] = { 0 };
  const kjit_status results[] = {
    kjit_launch(e->kernel, NULL, &argument, 1),
    kjit_prepare_launch(e->kernel, NULL, &argument, 1, &prepared),
    kjit_run_prepared(e->prepared, NULL),
    kjit_set_prepared_argument(e->prepared, 0, &argument),
    kjit_get_prepared_specialization(e->prepared) ? KJIT_OK : KJIT_ERROR_FORKED,
    kjit_seal_kernel(e->kernel),
    kjit_specialize(e->kernel, e->device, "f32[:] C", &specialization),
    kjit_parse_module(e->context, "x.kir", "", 0, &module),
    kjit_get_kernel(e->module, "add_one", &kernel),
    kjit_export_code(e->module, &blob, &blob_bytes),
    kjit_import_code(e->context, data, sizeof data),
    kjit_get_device(e->context, KJIT_DEVICE_CPU, 0, &device),
    kjit_synchronize_device(e->device),
    kjit_reset_device(e->device),
    kjit_create_array(e->device, KJIT_F32, &length, 1, &array),
    kjit_create_array_like(e->array, &array),
    kjit_create_array_from(e->device, kjit_get_tensor(e->array), NULL, &array),
    kjit_slice_array(e->array, NULL, 0, &array),
    kjit_reshape_array(e->array, &length, 1, &array),
    kjit_transpose_array(e->array, NULL, &array),
    kjit_restride_array(e->array, NULL, NULL, 0, 0, &array),
    kjit_wrap_tensor(e->context, kjit_get_tensor(e->array), &array),
    kjit_copy(e->context, &argument, &argument, NULL),
    kjit_copy_async(e->context, &argument, &argument, NULL),
    kjit_copy_to_host(e->array, data, sizeof data, NULL),
    kjit_fill(e->context, &argument, &number, NULL),
    kjit_export_dlpack(e->array, NULL, &managed),
    kjit_export_array(e->array, &handle),
    kjit_create_stream(e->device, &stream),
    kjit_get_default_stream(e->device, &stream),
    kjit_synchronize_stream(e->stream),
    kjit_query_stream(e->stream),
    kjit_begin_capture(e->stream),
    kjit_end_capture(e->stream, &graph),
    kjit_create_event(e->device, &event),
    kjit_record_event(e->event, e->stream),
    kjit_synchronize_event(e->event),
    kjit_wait_event(e->stream, e->event),
    kjit_query_event(e->event),
    kjit_start_profiler(e->device),
    kjit_pin_memory(e->device, data, sizeof data),
  };
  for (size_t i = 0; i < sizeof results / sizeof *results; i++)
    if (results[i] != KJIT_ERROR_FORKED) return (int)i + 1;
  return 0;
}

/* ThreadSanitizer does not support threads in a child of a process that had threads. */
#if defined(__SANITIZE_THREAD__)
enum { MAY_START_THREADS = 0 };
#else
enum { MAY_START_THREADS = 1 };
#endif

/* A context that the child creates works. */
static int use_own_context(void)
{
  kjit_context *context = make_fake_context();
  fake.kernel = run_on_cpu;
  float data[4096] = { 0 };
  int64_t length = 4096;
  kjit_tensor tensor = host_vector(data, &length);
  kjit_arg argument = kjit_arg_tensor(&tensor);
  kjit_device *cpu;
  if (kjit_get_device(context, KJIT_DEVICE_CPU, 0, &cpu) != KJIT_OK) return 91;
  if (kjit_launch(kernel_of(parse(context, add_one), "add_one"),
                  &(kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config), .device = cpu },
                  &argument, 1) != KJIT_OK)
    return 92;
  if (data[4095] != 1) return 93;
  kjit_destroy_context(context);
  return 0;
}

static int be_child(everything *e)
{
  alarm(150); /* ends a child that waits for a lock */
  int failed = use_after_fork(e);
  if (failed) return failed;
  const kjit_diagnostic *diagnostic = kjit_get_diagnostic(e->context, 0);
  char *text = kjit_copy_diagnostics_text(e->context);
  if (!diagnostic || diagnostic->status != KJIT_ERROR_FORKED || !text ||
      !strstr(text, "create a context in the child process"))
    return 90;
  free(text);
  if (kjit_get_specialization(e->kernel, 0) || kjit_get_cache_directory(e->context)) return 94;
  kjit_release_array(e->array); /* these calls have no effect and do not wait */
  kjit_release_module(e->module);
  kjit_destroy_prepared(e->prepared);
  kjit_destroy_stream(e->stream);
  kjit_destroy_event(e->event);
  kjit_destroy_context(e->context);
  return MAY_START_THREADS ? use_own_context() : 0;
}

static void check_fork(kjit_context *context, kjit_device *device)
{
  everything e = { .context = context, .device = device };
  fake.kernel = run_on_cpu;
  cuda.kernel = run_add_one;
  e.module = parse(context, add_one);
  e.kernel = kernel_of(e.module, "add_one");
  e.array = make_vector(device, 1024, NULL);
  expect_ok(context, kjit_create_stream(device, &e.stream));
  expect_ok(context, kjit_create_event(device, &e.event));
  kjit_arg argument = kjit_arg_array(e.array);
  expect_ok(context, kjit_prepare_launch(e.kernel, NULL, &argument, 1, &e.prepared));
  expect_ok(context, kjit_run_prepared(e.prepared, NULL)); /* the workers may exist */
  fflush(NULL);
  kj_runtime *runtime = kj_get_runtime(context);
  pthread_mutex_t *held[] = { &context->runtime_mutex, &runtime->streams_mutex,
                              &runtime->objects_mutex, &device->mutex };
  /* another thread may hold these locks at the fork */
  for (int i = 0; i < 4; i++) pthread_mutex_lock(held[i]);
  pid_t child = fork();
  if (!child) _exit(be_child(&e));
  for (int i = 0; i < 4; i++) pthread_mutex_unlock(held[i]);
  assert_int_equal(wait_for(child), 0);
  expect_ok(context, kjit_run_prepared(e.prepared, NULL)); /* the parent continues */
  kjit_destroy_prepared(e.prepared);
  kjit_destroy_stream(e.stream);
  kjit_destroy_event(e.event);
  kjit_release_array(e.array);
}

/* The driver's error in a child whose parent has used the driver. */
static void test_driver_in_child(void **state)
{
  (void)state;
  kj_diagnostics diagnostics = { 0 };
  kjit_context *context = make_fake_context();
  cuda = (fake_driver){ .devices = 1, .fail_at = 1, .fail_with = 3 };
  assert_int_equal(kj_use_driver(context, find_fake, NULL, &diagnostics), KJIT_ERROR_FORKED);
  assert_string_equal(diagnostics.items[0].message,
                      "the CUDA driver was in use when this process was forked; a child process "
                      "cannot use it (cuInit returns 3)");
  kj_free_diagnostics(&diagnostics);
  kjit_destroy_context(context);
}

static void test_fork(void **state) { check_fork(*state, cpu_of(*state)); }
static void test_fork_with_gpu(void **state) { check_fork(*state, gpu(*state, 0)); }

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_gpus, tear_down_gpus)
  const struct CMUnitTest tests[] = {
    TEST(test_making),
    TEST(test_older_structs),
    TEST(test_fill),
    TEST(test_slices),
    TEST(test_reshape),
    TEST(test_restride),
    TEST(test_retype),
    TEST(test_protect),
    TEST(test_wrapped),
    TEST(test_other_contexts),
    TEST(test_taking),
    TEST(test_odd_tensors),
    TEST(test_impossible_tensors),
    TEST(test_read_only),
    TEST(test_giving),
    TEST(test_stream_order),
    TEST(test_shared_memory),
    TEST(test_damaged_handles),
    TEST(test_gpu_handles),
    TEST(test_unsealed_memory),

    TEST(test_fork),
    TEST(test_fork_with_gpu),
    cmocka_unit_test(test_driver_in_child),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
