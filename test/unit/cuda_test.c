/* Tests the code for CUDA with a fake driver in host memory: copies, staged host arrays, faults and
 * resets. Also lets every driver call fail in turn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <kjit/code.h>

#include "code/specialization.h"
#include "fake_compiler.h"
#include "fake_cuda.h"

static kjit_context *make_context(void)
{
  kj_diagnostics diagnostics = { 0 };
  kjit_context *context = make_fake_context();
  cuda.current = NULL;
  kjit_status status = kj_use_driver(context, find_fake, NULL, &diagnostics);
  kj_free_diagnostics(&diagnostics);
  if (status == KJIT_OK) return context;
  kjit_destroy_context(context);
  return NULL;
}

/* version: the driver's version; 0 means that of CUDA 12.8 */
static int set_up_version(void **state, int version)
{
  cuda = (fake_driver){ .devices = 2, .version = version };
  fake_delete_all();
  *state = make_context();
  return *state ? 0 : -1;
}

static int set_up(void **state) { return set_up_version(state, 0); }

static int tear_down(void **state)
{
  kjit_destroy_context(*state);
  assert_int_equal(cuda.modules, 0);
  assert_int_equal(cuda.allocations, 0);
  assert_int_equal(cuda.streams, 0);
  assert_int_equal(cuda.events, 0);
  assert_int_equal(cuda.retained, 0);
  return 0;
}

static kjit_device *gpu(kjit_context *context, int32_t ordinal)
{
  kjit_device *device = NULL;
  assert_int_equal(kjit_get_device(context, KJIT_DEVICE_CUDA, ordinal, &device), KJIT_OK);
  return device;
}

static void expect_ok(kjit_context *context, kjit_status status)
{
  if (status != KJIT_OK) print_error("%s\n", last_message(context));
  assert_int_equal(status, KJIT_OK);
}

static kjit_tensor vector(float *data, int64_t *length)
{
  return (kjit_tensor){
    .data = data, .device_type = 1, .rank = 1, .code = 2, .bits = 32, .lanes = 1, .shape = length
  };
}

/* ---- devices ---- */

static void test_devices(void **state)
{
  kjit_device_info info = { .size_bytes = sizeof info };
  kjit_device *device = NULL;
  assert_int_equal(kjit_get_device_count(*state, KJIT_DEVICE_CUDA), 2);
  kjit_get_device_info(gpu(*state, 1), &info);
  assert_string_equal(info.name, "Fake 1");
  assert_string_equal(info.target, "sm_90");
  assert_int_equal(info.compute_capability, 90);
  assert_int_equal(info.max_shared_bytes, 232448);
  assert_int_equal(kjit_get_device(*state, KJIT_DEVICE_CUDA, 2, &device), KJIT_ERROR_NO_DEVICE);
  assert_string_equal(last_message(*state),
                      "device cuda:2 does not exist; the driver reports 2 devices");
  assert_ptr_equal(gpu(*state, 0), gpu(*state, 0));
}

static void test_ptx_limits(void **state)
{
  (void)state;
  assert_int_equal(kj_ptx_limit(11080), 78);
  assert_int_equal(kj_ptx_limit(12060), 85);
  assert_int_equal(kj_ptx_limit(12080), 87);
  assert_int_equal(kj_ptx_limit(13000), 90);
  assert_int_equal(kj_ptx_limit(13010), 0);
}

/* ---- copies ---- */

static void test_copies(void **state)
{
  kjit_array *array;
  int64_t shape[] = { 3, 4 }, strides[] = { 1, 3 }, backwards[] = { -4, -1 };
  float in[12], out[12], turned[12];
  for (int i = 0; i < 12; i++) in[i] = (float)i;
  expect_ok(*state, kjit_create_array(gpu(*state, 0), KJIT_F32, shape, 2, &array));
  kjit_tensor from = vector(in, shape), to = vector(out, shape), columns = vector(turned, shape),
              reversed = vector(in + 11, shape);
  from.rank = to.rank = columns.rank = reversed.rank = 2;
  columns.strides = strides;
  reversed.strides = backwards;
  kjit_arg device = kjit_arg_array(array), a = kjit_arg_tensor(&from), b = kjit_arg_tensor(&to),
           c = kjit_arg_tensor(&columns), d = kjit_arg_tensor(&reversed);
  expect_ok(*state, kjit_copy(*state, &device, &a, NULL));
  expect_ok(*state, kjit_copy(*state, &b, &device, NULL));
  expect_ok(*state, kjit_copy(*state, &c, &device, NULL));
  assert_memory_equal(in, out, sizeof in);
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 4; j++) assert_true(turned[i + 3 * j] == in[4 * i + j]);
  expect_ok(*state, kjit_copy(*state, &device, &d, NULL));
  expect_ok(*state, kjit_copy(*state, &b, &device, NULL));
  for (int i = 0; i < 12; i++) assert_true(out[i] == (float)(11 - i));
  expect_ok(*state, kjit_copy(*state, &b, &a, NULL)); /* host to host */
  assert_memory_equal(in, out, sizeof in);
  expect_ok(*state, kjit_copy(*state, &d, &a, NULL)); /* onto itself, reversed */
  for (int i = 0; i < 12; i++) assert_true(in[i] == (float)(11 - i));

  int64_t other[] = { 4, 3 };
  to.shape = other;
  assert_int_equal(kjit_copy(*state, &b, &device, NULL), KJIT_ERROR_ARGUMENT);
  assert_string_equal(
    last_message(*state),
    "kjit_copy: dimension 0 has 4 elements in the destination, but 3 in the source");
  to.shape = shape;
  to.bits = 64;
  assert_int_equal(kjit_copy(*state, &b, &device, NULL), KJIT_ERROR_ARGUMENT);
  kjit_tensor same = *kjit_get_tensor(array);
  int64_t none[] = { 0, 1 };
  same.strides = none;
  b = kjit_arg_tensor(&same);
  assert_int_equal(kjit_copy(*state, &b, &a, NULL), KJIT_ERROR_ARGUMENT);
  assert_string_equal(
    last_message(*state),
    "dimension 0 of the destination has the stride 0, so several elements have the same address");
  kjit_array *second;
  expect_ok(*state, kjit_create_array(gpu(*state, 1), KJIT_F32, shape, 2, &second));
  b = kjit_arg_array(second);
  expect_ok(*state, kjit_copy(*state, &b, &device, NULL)); /* between GPUs */
  kjit_release_array(array);
  /* the context releases the second one */
}

/* ---- host arrays ---- */

static const char axpy[] =
  "kernel axpy(r, a, x, y) {\n  for i in grid_range(len(r)) { r[i] = a * x[i] + y[i] }\n}\n";

/* The parameter block that fake_plan lays out for axpy with 32-bit offsets. */
typedef struct axpy_block {
  float *r;
  int32_t r_length, r_stride;
  float a;
  float *x;
  int32_t x_length, x_stride;
  float *y;
  int32_t y_length, y_stride;
} axpy_block;

static axpy_block block_seen;

static void run_axpy(const char *parameters)
{
  axpy_block block;
  memcpy(&block, parameters, sizeof block);
  block_seen = block;
  for (int32_t i = 0; i < block.r_length; i++)
    block.r[i * block.r_stride] =
      block.a * block.x[i * block.x_stride] + block.y[i * block.y_stride];
}

static kjit_status launch_axpy(kjit_context *context, kjit_kernel *kernel, kjit_tensor *r,
                               kjit_tensor *x, kjit_tensor *y, kjit_access access)
{
  kjit_arg arguments[] = { kjit_with_access(kjit_arg_tensor(r), access), kjit_arg_f32(2),
                           kjit_arg_tensor(x), kjit_arg_tensor(y) };
  kjit_launch_config config = { .size_bytes = sizeof config, .device = gpu(context, 0) };
  return kjit_launch(kernel, &config, arguments, 4);
}

static void test_host_arrays(void **state)
{
  kjit_kernel *kernel = kernel_of(parse(*state, axpy), "axpy");
  float r[100] = { 0 }, x[100], y[100];
  int64_t length[] = { 100 };
  for (int i = 0; i < 100; i++) x[i] = (float)i, y[i] = 1;
  kjit_tensor tr = vector(r, length), tx = vector(x, length), ty = vector(y, length);
  cuda.kernel = run_axpy;
  expect_ok(*state, launch_axpy(*state, kernel, &tr, &tx, &ty, KJIT_ACCESS_AUTO));
  for (int i = 0; i < 100; i++) assert_true(r[i] == 2 * x[i] + 1);
  /* each copy begins at a multiple of 256 bytes plus the same remainder as on the host */
  assert_in_range(cuda.bytes_in, 1200, 3 * 768);
  assert_int_equal(cuda.bytes_out, 400);
  assert_int_equal(cuda.allocations + cuda.pinned, 2); /* kept for the next launch */
  cuda.bytes_in = 0;
  expect_ok(*state, launch_axpy(*state, kernel, &tr, &tx, &ty, KJIT_ACCESS_OUT));
  assert_in_range(cuda.bytes_in, 800, 3 * 768);
  assert_int_equal(cuda.allocations + cuda.pinned, 2);
  assert_int_equal(cuda.grid[0], 1);
  assert_int_equal(cuda.block[0], 256);
  /* facts about alignment hold for the copy */
  assert_int_equal((uintptr_t)block_seen.r % 16, (uintptr_t)r % 16);
}

/* r and x are one array, y is a view that starts two elements later: one image, and the same result
 * as on the host. */
static void test_overlapping_host_arrays(void **state)
{
  kjit_kernel *kernel = kernel_of(parse(*state, axpy), "axpy");
  float data[102], expected[102];
  int64_t length[] = { 100 };
  for (int i = 0; i < 102; i++) data[i] = expected[i] = (float)i;
  kjit_tensor r = vector(data, length), x = vector(data, length), y = vector(data + 2, length);
  for (int i = 0; i < 100; i++) expected[i] = 2 * expected[i] + expected[i + 2];
  cuda.kernel = run_axpy;
  expect_ok(*state, launch_axpy(*state, kernel, &r, &x, &y, KJIT_ACCESS_OUT));
  assert_memory_equal(data, expected, sizeof data);
  assert_ptr_equal(block_seen.r, block_seen.x);
  assert_ptr_equal(block_seen.r + 2, block_seen.y);
  assert_in_range(cuda.bytes_in, 408, 768);
  assert_int_equal(fake.relations[2], KJ_RELATION_SAME);
  assert_int_equal(fake.relations[3], KJ_RELATION_ANY);
}

/* The kernel writes every second element. The elements in between are not written. */
static void test_strided_host_arrays(void **state)
{
  kjit_kernel *kernel = kernel_of(parse(*state, axpy), "axpy");
  float data[40], x[20], y[20];
  int64_t length[] = { 20 }, two[] = { 2 };
  for (int i = 0; i < 40; i++) data[i] = -1;
  for (int i = 0; i < 20; i++) x[i] = (float)i, y[i] = 0;
  kjit_tensor r = vector(data, length), tx = vector(x, length), ty = vector(y, length);
  r.strides = two;
  cuda.kernel = run_axpy;
  expect_ok(*state, launch_axpy(*state, kernel, &r, &tx, &ty, KJIT_ACCESS_OUT));
  for (int i = 0; i < 40; i++) assert_true(data[i] == (i % 2 ? -1 : (float)i));
}

/* The compiler may choose PTX 8.1, for example for FP8 conversions on sm_89, so it must know the
 * limit of a driver for CUDA 12.0. */
static void test_old_drivers(void **state)
{
  static const struct {
    int driver;
    unsigned limit;
  } rows[] = { { 11080, 78 }, { 12000, 80 }, { 12010, 0 } };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assert_int_equal(tear_down(state), 0);
    assert_int_equal(set_up_version(state, rows[i].driver), 0);
    kjit_array *array;
    expect_ok(*state, kjit_create_array(gpu(*state, 0), KJIT_F32, (int64_t[]){ 8 }, 1, &array));
    kjit_arg a = kjit_arg_array(array);
    kjit_arg arguments[] = { a, kjit_arg_number(2), a, a };
    expect_ok(*state, kjit_launch(kernel_of(parse(*state, axpy), "axpy"), NULL, arguments, 4));
    assert_int_equal(fake.target.ptx_version, rows[i].limit);
    kjit_release_array(array);
  }
}

static void test_device_arrays(void **state)
{
  kjit_kernel *kernel = kernel_of(parse(*state, axpy), "axpy");
  kjit_array *arrays[3];
  int64_t length[] = { 4096 };
  for (int i = 0; i < 3; i++)
    expect_ok(*state, kjit_create_array(gpu(*state, 0), KJIT_F32, length, 1, &arrays[i]));
  kjit_arg arguments[] = { kjit_arg_array(arrays[0]), kjit_arg_number(2), kjit_arg_array(arrays[1]),
                           kjit_arg_array(arrays[2]) };
  fake.elements_a_thread = 4;
  /* the launch runs on the device of the arrays */
  expect_ok(*state, kjit_launch(kernel, NULL, arguments, 4));
  assert_int_equal(cuda.grid[0], 4);
  assert_int_equal(cuda.bytes_in + cuda.bytes_out, 0);
  assert_int_equal(fake.target.ptx_version, 0);
  assert_int_equal(cuda.shared_attribute, 232448 - 1000);
  int calls = cuda.calls;
  expect_ok(*state, kjit_launch(kernel, NULL, arguments, 4));
  /* a hit makes no driver call except the launch */
  assert_int_equal(cuda.calls - calls, FAKE_DEFAULT_LAUNCH);
  kjit_launch_config config = { .size_bytes = sizeof config, .device = gpu(*state, 1) };
  assert_int_equal(kjit_launch(kernel, &config, arguments, 4), KJIT_ERROR_ARGUMENT);
  assert_string_equal(
    last_message(*state),
    "parameter `r`: the launch is on cuda:1, but the array is on cuda:0; copy the "
    "array to the device, or switch peer access on");
  config = (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config),
                                 .grid = { 1 },
                                 .block = { 1024 } };
  assert_int_equal(kjit_launch(kernel, &config, arguments, 4), KJIT_ERROR_LAUNCH);
  assert_string_equal(last_message(*state),
                      "kernel `axpy`: the launch has 1024 threads per block, but the kernel uses "
                      "32 registers per thread, which allows at most 512");
  config = (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config),
                                 .grid = { 1 },
                                 .block = { 256 },
                                 .dynamic_shared_bytes = 232000 };
  assert_int_equal(kjit_launch(kernel, &config, arguments, 4), KJIT_ERROR_LAUNCH);
  assert_string_equal(last_message(*state),
                      "kernel `axpy`: a block of the launch has 233000 bytes of shared memory "
                      "(1000 static, 232000 dynamic), but cuda:0 allows at most 232448");
}

static void test_too_much_local_memory(void **state)
{
  kjit_kernel *kernel = kernel_of(parse(*state, "kernel k() { }\n"), "k");
  kjit_launch_config config = {
    .size_bytes = sizeof config, .grid = { 1 }, .block = { 32 }, .device = gpu(*state, 0)
  };
  cuda.local_bytes = 4000000;
  assert_int_equal(kjit_launch(kernel, &config, NULL, 0), KJIT_ERROR_UNSUPPORTED);
  /* the first launch also had the remark about local memory */
  assert_int_equal(kjit_launch(kernel, &config, NULL, 0), KJIT_ERROR_UNSUPPORTED);
  assert_string_equal(last_message(*state),
                      "kernel `k` on cuda:0: a thread needs 4000000 bytes for local arrays, "
                      "including those of called functions; the maximum on a GPU is 512 KiB");
}

static char stages_told[200];

static void tell_stage(void *user, const char *name, const char *stage)
{
  (void)user;
  size_t length = strlen(stages_told);
  snprintf(stages_told + length, sizeof stages_told - length, "%s %s;", name,
           stage ? stage : "over");
}

/* on_stage reports the driver's stage after the compiler's stages, and the end of the compilation,
 * also after a failure. */
static void test_stages(void **state)
{
  kjit_kernel *kernel = kernel_of(parse(*state, "kernel k() { }\n"), "k");
  kjit_launch_config config = {
    .size_bytes = sizeof config, .grid = { 1 }, .block = { 32 }, .device = gpu(*state, 0)
  };
  ((kjit_context *)*state)->config.on_stage = tell_stage;
  stages_told[0] = 0;
  cuda.refuse_ptx = true;
  assert_int_equal(kjit_launch(kernel, &config, NULL, 0), KJIT_ERROR_COMPILE);
  assert_string_equal(stages_told, "k typed;k over;k cubin;k over;");
  cuda.refuse_ptx = false;
  stages_told[0] = 0;
  expect_ok(*state, kjit_launch(kernel, &config, NULL, 0));
  expect_ok(*state, kjit_launch(kernel, &config, NULL, 0));
  assert_string_equal(stages_told, "k typed;k over;k cubin;k over;");
}

static void test_refused_ptx(void **state)
{
  kjit_kernel *kernel = kernel_of(parse(*state, "kernel k() { }\n"), "k");
  kjit_launch_config config = {
    .size_bytes = sizeof config, .grid = { 1 }, .block = { 32 }, .device = gpu(*state, 0)
  };
  cuda.refuse_ptx = true;
  assert_int_equal(kjit_launch(kernel, &config, NULL, 0), KJIT_ERROR_COMPILE);
  assert_string_equal(last_message(*state),
                      "the driver cannot load the code of kernel `k` for sm_90: cuModuleLoadDataEx "
                      "returns CUDA_ERROR_INVALID_PTX (218):\nptxas fatal   : bad PTX");
  cuda.refuse_ptx = false;
  expect_ok(*state, kjit_launch(kernel, &config, NULL, 0));
}

static void test_out_of_memory(void **state)
{
  kjit_array *array;
  int64_t length[] = { 1 << 20 };
  cuda.limit = 1 << 20;
  assert_int_equal(kjit_create_array(gpu(*state, 0), KJIT_F32, length, 1, &array),
                   KJIT_ERROR_DEVICE_MEMORY);
  assert_string_equal(
    last_message(*state),
    "out of memory on cuda:0: cuMemAlloc cannot allocate 4194304 bytes (the device "
    "has 1073741824, kjit's arrays use 0, and kjit released 0 of cached memory)");
}

/* The application's own context stays current. */
static void test_foreign_context(void **state)
{
  char mine;
  kjit_array *array;
  int64_t length[] = { 4 };
  kjit_device *device = gpu(*state, 0);
  cuda.current = &mine;
  expect_ok(*state, kjit_create_array(device, KJIT_F32, length, 1, &array));
  assert_ptr_equal(cuda.current, &mine);
}

/* If the application has no current context, its next library chooses GPU 0, whichever GPU kjit has
 * used. */
static void test_no_context(void **state)
{
  kjit_array *array;
  int64_t length[] = { 4 };
  kjit_device *first = gpu(*state, 0), *second = gpu(*state, 1);
  cuda.current = NULL;
  expect_ok(*state, kjit_create_array(second, KJIT_F32, length, 1, &array));
  assert_null(cuda.current);
  expect_ok(*state, kjit_create_array(first, KJIT_F32, length, 1, &array));
  assert_ptr_equal(cuda.current, &fake_primary[0]);
  expect_ok(*state, kjit_create_array(second, KJIT_F32, length, 1, &array));
  assert_ptr_equal(cuda.current, &fake_primary[0]);
}

/* ---- faults ---- */

static void test_fault_and_reset(void **state)
{
  kjit_module *module = parse(*state, "kernel good() { }\nkernel bad() { }\n");
  kjit_kernel *good = kernel_of(module, "good"), *bad = kernel_of(module, "bad");
  kjit_device *device = gpu(*state, 0);
  kjit_launch_config config = {
    .size_bytes = sizeof config, .grid = { 1 }, .block = { 32 }, .device = device
  };
  kjit_array *array;
  kjit_stream *stream;
  kjit_event *event;
  int64_t length[] = { 4 };
  expect_ok(*state, kjit_create_array(device, KJIT_F32, length, 1, &array));
  expect_ok(*state, kjit_create_stream(device, &stream));
  expect_ok(*state, kjit_create_event(device, &event));
  expect_ok(*state, kjit_launch(good, &config, NULL, 0));
  expect_ok(*state, kjit_synchronize_device(device));
  cuda.fault_next_launch = true;
  expect_ok(*state, kjit_launch(bad, &config, NULL, 0));
  static const char message[] =
    "cuda:0 has failed: cuCtxSynchronize gives CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory "
    "access was encountered; launched since the last "
    "synchronization: `bad`; it stays lost until kjit_reset_device";
  assert_int_equal(kjit_synchronize_device(device), KJIT_ERROR_DEVICE);
  assert_string_equal(last_message(*state), message);
  assert_int_equal(kjit_launch(good, &config, NULL, 0), KJIT_ERROR_DEVICE);
  assert_string_equal(last_message(*state), message);
  kjit_array *another;
  assert_int_equal(kjit_create_array(device, KJIT_F32, length, 1, &another), KJIT_ERROR_DEVICE);
  cuda.refuse_reset = true;
  assert_int_equal(kjit_reset_device(device), KJIT_ERROR_DEVICE);
  assert_non_null(strstr(last_message(*state), "this process cannot use cuda:0 again: after the "
                                               "fault the driver does not allow a new context ("));
  assert_int_equal(kjit_launch(good, &config, NULL, 0), KJIT_ERROR_DEVICE);
  cuda.refuse_reset = false;
  expect_ok(*state, kjit_reset_device(device));
  int compilations = fake.compilations;
  expect_ok(*state, kjit_launch(good, &config, NULL, 0));
  assert_int_equal(fake.compilations, compilations + 1); /* the loaded code is lost */
  expect_ok(*state, kjit_synchronize_device(device));
  assert_int_equal(kjit_synchronize_stream(stream), KJIT_ERROR_DEVICE);
  assert_string_equal(last_message(*state), "the stream was lost when cuda:0 was reset");
  float data[4];
  kjit_tensor host = vector(data, length);
  kjit_arg from = kjit_arg_array(array), to = kjit_arg_tensor(&host);
  assert_int_equal(kjit_copy(*state, &to, &from, NULL), KJIT_ERROR_DEVICE);
  kjit_release_array(array);
  kjit_destroy_stream(stream);
  kjit_destroy_event(event);
  expect_ok(*state, kjit_create_array(device, KJIT_F32, length, 1, &another));
  kjit_release_array(another);
}

static void test_pending_by_stream(void **state)
{
  kjit_module *module = parse(*state, "kernel one() { }\nkernel two() { }\n");
  kjit_device *device = gpu(*state, 0);
  kjit_stream *stream;
  expect_ok(*state, kjit_create_stream(device, &stream));
  kjit_launch_config config = {
    .size_bytes = sizeof config, .grid = { 1 }, .block = { 32 }, .device = device
  };
  expect_ok(*state, kjit_launch(kernel_of(module, "one"), &config, NULL, 0));
  config.stream = stream;
  expect_ok(*state, kjit_launch(kernel_of(module, "two"), &config, NULL, 0));
  expect_ok(*state, kjit_synchronize_stream(stream));
  cuda.fault = CUDA_ILLEGAL_ADDRESS;
  assert_int_equal(kjit_synchronize_device(device), KJIT_ERROR_DEVICE);
  assert_non_null(strstr(last_message(*state), "synchronization: `one`;"));
  cuda.fault = 0;
  expect_ok(*state, kjit_reset_device(device));
  kjit_destroy_stream(stream);
}

/* Code that is shown, or linked with other code, is made with the same options as code that
 * runs. */
static void test_debug_options(void **state)
{
  static const struct {
    kjit_debug debug;
    int option;
  } rows[] = { { KJIT_DEBUG_NONE, 0 }, { KJIT_DEBUG_LINES, 13 }, { KJIT_DEBUG_FULL, 11 } };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    kjit_specialization *made;
    void *binary;
    size_t size_bytes;
    ((kjit_context *)*state)->config.debug = rows[i].debug;
    expect_ok(*state, kjit_specialize(kernel_of(parse(*state, axpy), "axpy"), gpu(*state, 0),
                                      "f32[:] C, f32, f32[:] C, f32[:] C", &made));
    assert_int_equal(cuda.load_debug, rows[i].option);
    expect_ok(*state, kjit_copy_specialization_binary(made, &binary, &size_bytes));
    assert_int_equal(cuda.link_debug, rows[i].option);
    kjit_free(*state, binary);
  }
}

/* ---- every driver call fails once ---- */

/* Makes the calls of an application up to the first failure, and releases all objects. */
static kjit_status use_everything(kjit_context *context)
{
  kjit_device *device;
  kjit_array *array = NULL;
  kjit_stream *stream = NULL;
  kjit_event *events[2] = { NULL, NULL };
  float r[64], x[64] = { 1 }, y[64] = { 2 };
  int64_t length[] = { 64 };
  uint64_t time_ns;
  kjit_kernel *kernel = kernel_of(parse(context, axpy), "axpy");
  kjit_tensor tr = vector(r, length), tx = vector(x, length), ty = vector(y, length);
  kjit_status status = kjit_get_device(context, KJIT_DEVICE_CUDA, 0, &device);
  if (status == KJIT_OK) status = kjit_create_stream(device, &stream);
  if (status == KJIT_OK) status = kjit_create_array(device, KJIT_F32, length, 1, &array);
  if (status == KJIT_OK) status = kjit_create_event(device, &events[0]);
  if (status == KJIT_OK) status = kjit_create_event(device, &events[1]);
  kjit_arg on_device = kjit_arg_array(array), on_host = kjit_arg_tensor(&tx);
  if (status == KJIT_OK) status = kjit_record_event(events[0], stream);
  if (status == KJIT_OK) status = kjit_copy(context, &on_device, &on_host, stream);
  if (status == KJIT_OK) status = kjit_copy(context, &on_host, &on_device, NULL);
  kjit_arg arguments[] = { kjit_arg_tensor(&tr), kjit_arg_f32(1), on_device, kjit_arg_tensor(&ty) };
  kjit_launch_config config = { .size_bytes = sizeof config, .stream = stream };
  if (status == KJIT_OK) status = kjit_launch(kernel, &config, arguments, 4);
  if (status == KJIT_OK) status = kjit_record_event(events[1], stream);
  if (status == KJIT_OK) status = kjit_get_elapsed_time(events[0], events[1], &time_ns);
  if (status == KJIT_OK) status = kjit_synchronize_stream(stream);
  if (status == KJIT_OK) status = kjit_synchronize_device(device);
  kjit_release_array(array);
  kjit_destroy_event(events[0]);
  kjit_destroy_event(events[1]);
  kjit_destroy_stream(stream);
  return status;
}

static void test_every_failure(void **state)
{
  (void)state;
  kjit_status status;
  int fail_at = 0;
  do {
    cuda = (fake_driver){
      .devices = 1, .fail_at = ++fail_at, .fail_with = CUDA_UNKNOWN, .kernel = run_axpy
    };
    kjit_context *context = make_context();
    if (!context) continue; /* the driver could not be opened, so no objects exist */
    status = use_everything(context);
    /* true if the failed call entered the device to release an object */
    bool is_release = cuda.failed && status == KJIT_OK;
    if (cuda.failed && !is_release) {
      assert_int_not_equal(status, KJIT_OK);
      assert_non_null(strstr(last_message(context), cuda.failed));
      assert_non_null(strstr(last_message(context), "CUDA_ERROR_UNKNOWN"));
    }
    kjit_destroy_context(context);
    /* one object is left if its release could not be called */
    int lost = is_release || (cuda.failed && !strncmp(cuda.failed, "cuCtx", 5)) ? 1 : 0;
    assert_in_range(cuda.allocations + cuda.modules + cuda.streams + cuda.events, 0,
                    (uintmax_t)lost);
    assert_int_equal(cuda.retained, 0);
    fake_delete_all();
  } while (cuda.failed);
  assert_true(fail_at > 60);
}

static void test_faults_everywhere(void **state)
{
  (void)state;
  for (int fail_at = 1; fail_at == 1 || cuda.failed; fail_at++) {
    cuda = (fake_driver){
      .devices = 1, .fail_at = fail_at, .fail_with = CUDA_ILLEGAL_ADDRESS, .kernel = run_axpy
    };
    kjit_context *context = make_context();
    if (!context) continue;
    kjit_status status = use_everything(context);
    if (status != KJIT_OK)
      assert_non_null(strstr(last_message(context), "CUDA_ERROR_ILLEGAL_ADDRESS"));
    kjit_destroy_context(context);
    assert_int_equal(cuda.retained, 0);
    fake_delete_all();
  }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = {
    TEST(test_devices),
    TEST(test_ptx_limits),
    TEST(test_old_drivers),
    TEST(test_copies),
    TEST(test_host_arrays),
    TEST(test_overlapping_host_arrays),
    TEST(test_strided_host_arrays),
    TEST(test_device_arrays),
    TEST(test_too_much_local_memory),
    TEST(test_stages),
    TEST(test_refused_ptx),
    TEST(test_out_of_memory),
    TEST(test_foreign_context),
    TEST(test_no_context),
    TEST(test_fault_and_reset),
    TEST(test_pending_by_stream),
    TEST(test_debug_options),
    cmocka_unit_test(test_every_failure),
    cmocka_unit_test(test_faults_everywhere),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
