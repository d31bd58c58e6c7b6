/* Prepared launches, code made ahead of launches and in the background. */
#include "kj_test.h"

#include <stdio.h>

#include "code/specialization.h"
#include "fake_compiler.h"
#include "fake_cuda.h"

static int set_up(void **state)
{
  kj_diagnostics diagnostics = { 0 };
  memset(&cuda, 0, sizeof cuda);
  cuda.devices = 2;
  *state = make_fake_context();
  assert_int_equal(kj_use_driver(*state, find_fake, NULL, &diagnostics), KJIT_OK);
  return 0;
}

static int tear_down(void **state)
{
  kjit_destroy_context(*state);
  assert_int_equal(fake.created, fake.destroyed);
  assert_int_equal(cuda.modules, 0);
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

static const char axpy[] =
  "kernel axpy(r, a, x, y) {\n  for i in grid_range(len(r)) { r[i] = a * x[i] + y[i] }\n}\n";

_Alignas(256) static float memory[4096];

static kjit_tensor on_gpu(float *data, int64_t *length)
{
  return (kjit_tensor){
    .data = data, .device_type = 2, .rank = 1, .code = 2, .bits = 32, .lanes = 1, .shape = length
  };
}

/* The parameter block that the fake compiler lays out for axpy: a pointer, an extent and a stride
 * for each array, with the scalar between the arrays. */
typedef struct block {
  uint64_t r;
  int32_t r_extent, r_stride;
  float a;
  uint64_t x;
  int32_t x_extent, x_stride;
  uint64_t y;
  int32_t y_extent, y_stride;
} block;

static block last_block(void)
{
  block last;
  assert_int_equal(cuda.parameter_bytes, sizeof last);
  memcpy(&last, cuda.parameters, sizeof last);
  return last;
}

typedef struct fixture {
  kjit_kernel *kernel;
  int64_t length;
  kjit_tensor r, x, y;
  kjit_arg arguments[4];
} fixture;

static void make_axpy(kjit_context *context, fixture *f)
{
  f->kernel = kernel_of(parse(context, axpy), "axpy");
  f->length = 512;
  f->r = on_gpu(memory, &f->length);
  f->x = on_gpu(memory + 1024, &f->length);
  f->y = on_gpu(memory + 2048, &f->length);
  f->arguments[0] = kjit_arg_tensor(&f->r);
  f->arguments[1] = kjit_arg_f32(2);
  f->arguments[2] = kjit_arg_tensor(&f->x);
  f->arguments[3] = kjit_arg_tensor(&f->y);
}

static kjit_prepared *prepare(kjit_context *context, fixture *f)
{
  kjit_prepared *prepared = NULL;
  make_axpy(context, f);
  expect_ok(context, kjit_prepare_launch(f->kernel, NULL, f->arguments, 4, &prepared));
  return prepared;
}

static void test_run(void **state)
{
  fixture f;
  kjit_prepared *prepared = prepare(*state, &f);
  assert_int_equal(cuda.launches, 0);
  int64_t gone = 512;
  memset(&f, 0, sizeof f); /* a prepared launch has a copy of the tensor */
  for (int i = 1; i <= 3; i++) {
    expect_ok(*state, kjit_run_prepared(prepared, NULL));
    assert_int_equal(cuda.launches, i);
    assert_int_equal(cuda.grid[0], 2);
    assert_int_equal(cuda.block[0], 256);
    assert_true(last_block().r == (uintptr_t)memory && last_block().a == 2 &&
                last_block().x_extent == gone);
  }
  kjit_statistics statistics = { .size_bytes = sizeof statistics };
  kjit_get_statistics(*state, &statistics);
  assert_int_equal(statistics.launches, 3);
  assert_int_equal(fake.compilations, 1);
  kjit_destroy_prepared(prepared);
  kjit_destroy_prepared(NULL);
}

static void test_scalar_in_place(void **state)
{
  fixture f;
  kjit_prepared *prepared = prepare(*state, &f);
  kjit_arg three = kjit_arg_f32(3), wrong = kjit_arg_f64(3);
  expect_ok(*state, kjit_set_prepared_argument(prepared, 1, &three));
  int calls = cuda.calls;
  expect_ok(*state, kjit_run_prepared(prepared, NULL));
  assert_int_equal(cuda.calls - calls, FAKE_DEFAULT_LAUNCH);
  assert_true(last_block().a == 3);
  assert_int_equal(kjit_set_prepared_argument(prepared, 1, &wrong), KJIT_ERROR_ARGUMENT);
  assert_string_equal(
    last_message(*state),
    "parameter `a`: an argument of a prepared launch can be replaced only by one of the same type");
  assert_int_equal(kjit_set_prepared_argument(prepared, 1, &f.arguments[0]), KJIT_ERROR_ARGUMENT);
  assert_int_equal(kjit_set_prepared_argument(prepared, 4, &three), KJIT_ERROR_ARGUMENT);
  assert_string_equal(
    last_message(*state),
    "the launch of kernel `axpy` was prepared with 4 arguments, so there is no argument 4");
  assert_int_equal(kjit_set_prepared_argument(prepared, 1, NULL), KJIT_ERROR_MISUSE);
  expect_ok(*state, kjit_run_prepared(prepared, NULL));
  assert_true(last_block().a == 3);
  kjit_destroy_prepared(prepared);
}

/* After an argument is replaced by an array with the same facts, the next run uses the same code.
 * Changed facts, extents and relations are noticed. */
static void test_arrays(void **state)
{
  fixture f;
  kjit_prepared *prepared = prepare(*state, &f);
  int64_t longer = 1024;
  kjit_tensor other = on_gpu(memory + 3072, &f.length), unaligned = on_gpu(memory + 1, &longer),
              same = on_gpu(memory, &f.length);
  kjit_arg argument = kjit_arg_tensor(&other);
  expect_ok(*state, kjit_set_prepared_argument(prepared, 2, &argument));
  expect_ok(*state, kjit_run_prepared(prepared, NULL));
  assert_int_equal(fake.compilations, 1);
  assert_true(last_block().x == (uintptr_t)(memory + 3072));

  argument = kjit_arg_tensor(&unaligned);
  expect_ok(*state, kjit_set_prepared_argument(prepared, 0, &argument));
  argument = kjit_arg_tensor(&f.x);
  /* now the arrays overlap; no code is compiled for them, because the argument is replaced again
   * before the next run */
  expect_ok(*state, kjit_set_prepared_argument(prepared, 2, &argument));
  argument = kjit_arg_tensor(&other);
  expect_ok(*state, kjit_set_prepared_argument(prepared, 2, &argument));
  expect_ok(*state, kjit_run_prepared(prepared, NULL));
  assert_int_equal(fake.compilations, 2);
  assert_int_equal(fake.arguments[0].facts, 0);
  assert_int_equal(cuda.grid[0], 4);
  assert_int_equal(last_block().r_extent, 1024);

  argument = kjit_arg_tensor(&same);
  expect_ok(*state, kjit_set_prepared_argument(prepared, 0, &argument));
  /* the result is the input itself */
  expect_ok(*state, kjit_set_prepared_argument(prepared, 2, &argument));
  expect_ok(*state, kjit_run_prepared(prepared, NULL));
  assert_int_equal(fake.compilations, 3);
  assert_int_equal(fake.relations[2], KJ_RELATION_SAME);
  expect_ok(*state, kjit_run_prepared(prepared, NULL));
  assert_int_equal(fake.compilations, 3);
  kjit_destroy_prepared(prepared);
}

/* An extent depends on the scalar, so replacing the scalar changes the grid. */
static void test_extent_of_scalar(void **state)
{
  kjit_kernel *kernel = kernel_of(
    parse(*state, "kernel fill(r, n: i32, const w) { for i in grid_range(n * w) { r[i] = 1 } }\n"),
    "fill");
  int64_t length = 4096;
  kjit_tensor r = on_gpu(memory, &length);
  kjit_arg arguments[] = { kjit_arg_tensor(&r), kjit_arg_i32(256), kjit_arg_number(1) },
           more = kjit_arg_i32(1024), twice = kjit_arg_number(2);
  kjit_prepared *prepared = NULL;
  expect_ok(*state, kjit_prepare_launch(kernel, NULL, arguments, 3, &prepared));
  expect_ok(*state, kjit_run_prepared(prepared, NULL));
  assert_int_equal(cuda.grid[0], 1);
  expect_ok(*state, kjit_set_prepared_argument(prepared, 1, &more));
  expect_ok(*state, kjit_run_prepared(prepared, NULL));
  assert_int_equal(cuda.grid[0], 4);
  assert_int_equal(fake.compilations, 1);
  expect_ok(*state, kjit_set_prepared_argument(prepared, 2, &twice));
  expect_ok(*state, kjit_run_prepared(prepared, NULL));
  assert_int_equal(cuda.grid[0], 8);
  assert_int_equal(fake.compilations, 2);
  kjit_destroy_prepared(prepared);
}

static void test_streams_and_devices(void **state)
{
  fixture f;
  kjit_prepared *prepared = prepare(*state, &f);
  kjit_stream *here = NULL, *there = NULL;
  expect_ok(*state, kjit_create_stream(gpu(*state, 0), &here));
  expect_ok(*state, kjit_create_stream(gpu(*state, 1), &there));
  expect_ok(*state, kjit_run_prepared(prepared, here));
  assert_ptr_equal(cuda.stream, here->native);
  expect_ok(*state, kjit_run_prepared(prepared, NULL));
  assert_null(cuda.stream);
  assert_int_equal(kjit_run_prepared(prepared, there), KJIT_ERROR_ARGUMENT);
  assert_string_equal(
    last_message(*state),
    "the stream belongs to cuda:1, but the work to queue on it belongs to cuda:0");
  cuda.current = NULL; /* the application changes the current context */
  expect_ok(*state, kjit_run_prepared(prepared, NULL));
  cuda.current = &fake_primary[1];
  expect_ok(*state, kjit_run_prepared(prepared, NULL));
  assert_ptr_equal(cuda.current, &fake_primary[1]);
  kjit_destroy_prepared(prepared);
}

/* After a failed run, the prepared launch can be repaired by replacing the argument. */
static void test_failed_run(void **state)
{
  fixture f;
  kjit_prepared *prepared = prepare(*state, &f);
  kjit_tensor elsewhere = f.x;
  elsewhere.device_id = 1;
  kjit_arg argument = kjit_arg_tensor(&elsewhere);
  expect_ok(*state, kjit_set_prepared_argument(prepared, 2, &argument));
  for (int i = 0; i < 2; i++)
    assert_int_equal(kjit_run_prepared(prepared, NULL), KJIT_ERROR_ARGUMENT);
  assert_int_equal(cuda.launches, 0);
  expect_ok(*state, kjit_set_prepared_argument(prepared, 2, &f.arguments[2]));
  expect_ok(*state, kjit_run_prepared(prepared, NULL));
  assert_int_equal(cuda.launches, 1);
  kjit_destroy_prepared(prepared);
}

/* Code with tensor maps that another launch has unloaded: each run encodes its maps. Builds with
 * assertions also check that a run reads the code only while it holds the specialization. */
static void test_unloaded_maps(void **state)
{
  enum { ROUNDS = 4, ENCODE_AND_LAUNCH = 1 + FAKE_DEFAULT_LAUNCH };
  static const char maps[] = "kernel m(x) { x[threadIdx.x, 0] = 1 }\nkernel o(x) { }\n";
  kjit_context *context = *state;
  context->config.code_limit_bytes = 1; /* enough for the code that was loaded last */
  kjit_module *module = parse(context, maps);
  kjit_launch_config config = { .size_bytes = sizeof config, .grid = { 1 }, .block = { 32 } };
  kjit_array *array;
  kjit_prepared *prepared;
  expect_ok(context, kjit_create_array(gpu(context, 0), KJIT_F32, (int64_t[]){ 8, 8 }, 2, &array));
  kjit_arg argument = kjit_arg_array(array);
  fake.has_map = true;
  expect_ok(context, kjit_prepare_launch(kernel_of(module, "m"), &config, &argument, 1, &prepared));
  for (int i = 0; i < ROUNDS; i++) {
    fake.has_map = true; /* its code is compiled again */
    expect_ok(context, kjit_run_prepared(prepared, NULL));
    int calls = cuda.calls;
    expect_ok(context, kjit_run_prepared(prepared, NULL));
    assert_int_equal(cuda.calls - calls, ENCODE_AND_LAUNCH);
    uint64_t evictions = atomic_load(&context->counters.evictions);
    fake.has_map = false;
    expect_ok(context, kjit_launch(kernel_of(module, "o"), &config, &argument, 1));
    assert_int_equal(atomic_load(&context->counters.evictions), evictions + 1);
  }
  kjit_destroy_prepared(prepared);
  kjit_release_array(array);
}

static void test_lifetimes(void **state)
{
  kjit_module *module = parse(*state, axpy);
  kjit_array *array = NULL;
  int64_t length = 256;
  expect_ok(*state, kjit_create_array(gpu(*state, 0), KJIT_F32, &length, 1, &array));
  kjit_arg arguments[] = { kjit_arg_array(array), kjit_arg_f32(1), kjit_arg_array(array),
                           kjit_arg_array(array) };
  kjit_prepared *prepared = NULL, *forgotten = NULL;
  expect_ok(*state, kjit_prepare_launch(kernel_of(module, "axpy"), NULL, arguments, 4, &prepared));
  /* freed with the context */
  expect_ok(*state, kjit_prepare_launch(kernel_of(module, "axpy"), NULL, arguments, 4, &forgotten));
  kjit_release_array(array);
  kjit_release_module(module);
  expect_ok(*state, kjit_run_prepared(prepared, NULL));
  assert_int_equal(cuda.allocations, 1);
  kjit_destroy_prepared(prepared);
}

static void run_nothing(const void *parameters, const kj_cpu_grid *grid, uint64_t first,
                        uint64_t last, void *scratch)
{
  (void)grid;
  (void)first;
  (void)last;
  (void)scratch;
  float a;
  memcpy(&a, (const char *)parameters + 16, sizeof a);
  memory[0] = a;
}

static void test_cpu(void **state)
{
  fixture f;
  kjit_prepared *prepared = NULL;
  make_axpy(*state, &f);
  f.r.device_type = f.x.device_type = f.y.device_type = 1;
  fake.kernel = run_nothing;
  expect_ok(*state, kjit_prepare_launch(f.kernel, NULL, f.arguments, 4, &prepared));
  expect_ok(*state, kjit_run_prepared(prepared, NULL));
  assert_true(memory[0] == 2);
  kjit_arg seven = kjit_arg_f32(7);
  expect_ok(*state, kjit_set_prepared_argument(prepared, 1, &seven));
  expect_ok(*state, kjit_run_prepared(prepared, NULL));
  assert_true(memory[0] == 7);
  kjit_destroy_prepared(prepared);
}

/* ---- ahead of launches ---- */

static void test_specialize(void **state)
{
  fixture f;
  kjit_specialization *specialization = NULL, *again = NULL;
  kjit_specialization_info info = { .size_bytes = sizeof info };
  make_axpy(*state, &f);
  expect_ok(*state, kjit_specialize(f.kernel, gpu(*state, 0), "f32[:] C, f32, f32[:] C, f32[:] C",
                                    &specialization));
  expect_ok(*state, kjit_specialize(f.kernel, NULL, "f32[:] C, f32, f32[:] C, f32[:] C", &again));
  assert_ptr_equal(specialization, again);
  assert_ptr_equal(specialization, kjit_get_specialization(f.kernel, 0));
  expect_ok(*state, kjit_launch(f.kernel, NULL, f.arguments, 4));
  assert_int_equal(fake.compilations, 1);
  kjit_get_specialization_info(specialization, &info);
  assert_int_equal(info.launches, 1);
  assert_int_equal(kjit_specialize(f.kernel, NULL, "f32[:] C", &again), KJIT_ERROR_ARGUMENT);
  assert_int_equal(kjit_specialize(f.kernel, NULL, NULL, &again), KJIT_ERROR_MISUSE);
}

static void test_specialize_on_cpu(void **state)
{
  fixture f;
  kjit_specialization *specialization = NULL;
  kjit_device *cpu = NULL;
  make_axpy(*state, &f);
  f.r.device_type = f.x.device_type = f.y.device_type = 1;
  fake.kernel = run_nothing;
  expect_ok(*state, kjit_get_device(*state, KJIT_DEVICE_CPU, 0, &cpu));
  expect_ok(*state,
            kjit_specialize(f.kernel, cpu, "f32[:] C, f32, f32[:] C, f32[:] C", &specialization));
  expect_ok(*state, kjit_launch(f.kernel, NULL, f.arguments, 4));
  assert_int_equal(fake.compilations, 1);
}

/* ---- in the background ---- */

static kjit_status launch_patiently(fixture *f)
{
  kjit_launch_config config = { .size_bytes = sizeof config, .flags = KJIT_LAUNCH_NO_WAIT };
  kjit_status status = kjit_launch(f->kernel, &config, f->arguments, 4);
  /* on a busy machine the compilation starts late */
  for (int i = 0; i < 100000 && status == KJIT_NOT_READY; i++) {
    nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    status = kjit_launch(f->kernel, &config, f->arguments, 4);
  }
  return status;
}

static void test_no_wait(void **state)
{
  fixture f;
  kjit_launch_config config = { .size_bytes = sizeof config, .flags = KJIT_LAUNCH_NO_WAIT };
  kjit_prepared *prepared = NULL;
  make_axpy(*state, &f);
  fake.is_held = true;
  assert_int_equal(kjit_launch(f.kernel, &config, f.arguments, 4), KJIT_NOT_READY);
  assert_int_equal(kjit_prepare_launch(f.kernel, &config, f.arguments, 4, &prepared),
                   KJIT_NOT_READY);
  assert_null(prepared);
  assert_int_equal(cuda.launches, 0);
  fake.is_held = false;
  expect_ok(*state, launch_patiently(&f));
  assert_int_equal(fake.compilations, 1);
  assert_int_equal(cuda.launches, 1);
}

/* A launch that may wait waits for the running compilation. */
static void test_waiting_for_background(void **state)
{
  fixture f;
  kjit_launch_config config = { .size_bytes = sizeof config, .flags = KJIT_LAUNCH_NO_WAIT };
  make_axpy(*state, &f);
  fake.delay_ms = 20;
  assert_int_equal(kjit_launch(f.kernel, &config, f.arguments, 4), KJIT_NOT_READY);
  expect_ok(*state, kjit_launch(f.kernel, NULL, f.arguments, 4));
  assert_int_equal(fake.compilations, 1);
}

static void test_failure_in_background(void **state)
{
  fixture f;
  make_axpy(*state, &f);
  fake.fail = 1;
  assert_int_equal(launch_patiently(&f), KJIT_ERROR_TYPE);
  assert_string_equal(last_message(*state), "the fake compiler refuses `axpy`");
  expect_ok(*state, launch_patiently(&f));
  assert_int_equal(fake.compilations, 2);
}

/* The module is released and the context is destroyed while one compilation is running and another
 * one has not begun. */
static void test_end_in_background(void **state)
{
  fixture f;
  kjit_launch_config config = { .size_bytes = sizeof config, .flags = KJIT_LAUNCH_NO_WAIT };
  make_axpy(*state, &f);
  fake.delay_ms = 20;
  assert_int_equal(kjit_launch(f.kernel, &config, f.arguments, 4), KJIT_NOT_READY);
  f.arguments[1] = kjit_arg_f64(1);
  assert_int_equal(kjit_launch(f.kernel, &config, f.arguments, 4), KJIT_NOT_READY);
  kjit_release_module(f.kernel->module);
}

/* ---- many threads ---- */

enum { THREADS = 4, LAUNCHES = 500 };

static void run_empty(const void *parameters, const kj_cpu_grid *grid, uint64_t first,
                      uint64_t last, void *scratch)
{
  (void)parameters;
  (void)grid;
  (void)first;
  (void)last;
  (void)scratch;
}

/* Each thread alternates between two specializations and its own prepared launch. */
static void *launch_many(void *data)
{
  kjit_kernel *kernel = data;
  int64_t length = 64;
  kjit_tensor x[3];
  kjit_prepared *prepared = NULL;
  for (int i = 0; i < 3; i++) {
    x[i] = on_gpu(memory + 1024 * i, &length);
    x[i].device_type = 1;
  }
  kjit_arg arguments[] = { kjit_arg_tensor(&x[0]), kjit_arg_f32(1), kjit_arg_tensor(&x[1]),
                           kjit_arg_tensor(&x[2]) };
  intptr_t failures = kjit_prepare_launch(kernel, NULL, arguments, 4, &prepared) != KJIT_OK;
  for (int i = 0; i < LAUNCHES && !failures; i++) {
    arguments[1] = i % 2 ? kjit_arg_f32(1) : kjit_arg_f64(1);
    failures += kjit_launch(kernel, NULL, arguments, 4) != KJIT_OK;
    failures += kjit_run_prepared(prepared, NULL) != KJIT_OK;
  }
  kjit_destroy_prepared(prepared);
  return (void *)failures;
}

static void test_threads(void **state)
{
  pthread_t threads[THREADS];
  kjit_statistics statistics = { .size_bytes = sizeof statistics };
  kjit_kernel *kernel = kernel_of(parse(*state, axpy), "axpy");
  fake.kernel = run_empty;
  for (int i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, launch_many, kernel), 0);
  for (int i = 0; i < THREADS; i++) {
    void *failures;
    pthread_join(threads[i], &failures);
    assert_null(failures);
  }
  kjit_get_statistics(*state, &statistics);
  assert_int_equal(statistics.launches, 2 * THREADS * LAUNCHES);
  assert_int_equal(fake.compilations, 2);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = {
    TEST(test_run),
    TEST(test_scalar_in_place),
    TEST(test_arrays),
    TEST(test_extent_of_scalar),
    TEST(test_streams_and_devices),
    TEST(test_failed_run),
    TEST(test_unloaded_maps),
    TEST(test_lifetimes),
    TEST(test_cpu),
    TEST(test_specialize),
    TEST(test_specialize_on_cpu),
    TEST(test_no_wait),
    TEST(test_waiting_for_background),
    TEST(test_failure_in_background),
    TEST(test_end_in_background),
    TEST(test_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
