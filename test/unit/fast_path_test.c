/* Calls that the fast path of a launch must decline. If the fast path compared less than the slow
 * path does, it would take them for the previous call. */
#include "fast_launches.h"

#include <kjit/code.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch/fast_path.h"

static const char source[] = "kernel set(r) { r[threadIdx.x] = 1 }\n"
                             "kernel placed(r) @grid(2) { r[threadIdx.x] = 1 }\n"
                             "kernel fill(r) { for i in grid_range(len(r)) { r[i] = 1 } }\n"
                             "kernel scale(r, a) { for i in grid_range(len(r)) { r[i] = a } }\n";

/* A kernel without a grid_range has no block to choose, even if other launches preceded. */
static void test_missing_block(void **state)
{
  kjit_array *array = make_vector(gpu(*state, 0), N, NULL);
  kjit_arg argument = kjit_arg_array(array);
  kjit_module *module = parse(*state, source);
  kjit_kernel *kernel = kernel_of(module, "set"), *placed = kernel_of(module, "placed");
  launch_often(kernel,
               &(kjit_launch_config){
                 .size_bytes = sizeof(kjit_launch_config), .grid = { 1 }, .block = { 32 } },
               &argument, 1);
  launch_often(placed,
               &(kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config), .block = { 32 } },
               &argument, 1);
  assert_true(is_direct(kernel, 0) && is_direct(placed, 0));
  int launches = cuda.launches;
  assert_int_equal(kjit_launch(kernel,
                               &(kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config),
                                                      .grid = { 1 } },
                               &argument, 1),
                   KJIT_ERROR_LAUNCH);
  assert_int_equal(kjit_launch(kernel,
                               &(kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config),
                                                      .grid = { 0, 2 } },
                               &argument, 1),
                   KJIT_ERROR_LAUNCH);
  assert_int_equal(kjit_launch(kernel,
                               &(kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config),
                                                      .block = { 32 } },
                               &argument, 1),
                   KJIT_ERROR_LAUNCH);
  assert_int_equal(kjit_launch(placed, NULL, &argument, 1), KJIT_ERROR_LAUNCH);
  assert_int_equal(cuda.launches, launches);
  kjit_release_array(array);
}

/* A context that is not interruptible refuses a time limit, even if other launches preceded. */
static void test_time_limit(void **state)
{
  kjit_array *array = make_vector(gpu(*state, 0), N, NULL);
  kjit_arg argument = kjit_arg_array(array);
  kjit_kernel *kernel = kernel_of(parse(*state, source), "set");
  kjit_launch_config config = { .size_bytes = sizeof config, .grid = { 1 }, .block = { 32 } };
  kjit_prepared *prepared;
  launch_often(kernel, &config, &argument, 1);
  assert_true(is_direct(kernel, 0));
  int launches = cuda.launches;
  config.time_limit_ns = 1;
  assert_int_equal(kjit_launch(kernel, &config, &argument, 1), KJIT_ERROR_MISUSE);
  expect_ok(*state, kjit_prepare_launch(kernel, &config, &argument, 1, &prepared));
  for (int i = 0; i < TIMES; i++)
    assert_int_equal(kjit_run_prepared(prepared, NULL), KJIT_ERROR_MISUSE);
  kjit_destroy_prepared(prepared);
  assert_int_equal(cuda.launches, launches);
  config.time_limit_ns = 0;
  launch_often(kernel, &config, &argument, 1);
  assert_int_equal(cuda.launches, launches + TIMES);
  kjit_release_array(array);
}

/* Code that counts threads in 32 bits must not run with a larger grid. */
static void test_wide_grid(void **state)
{
  kjit_array *array = make_vector(gpu(*state, 0), N, NULL);
  kjit_arg argument = kjit_arg_array(array);
  kjit_kernel *kernel = kernel_of(parse(*state, source), "set");
  launch_often(kernel,
               &(kjit_launch_config){
                 .size_bytes = sizeof(kjit_launch_config), .grid = { 1 }, .block = { 32 } },
               &argument, 1);
  assert_true(is_direct(kernel, 0));
  assert_non_null(strstr(specialization_of(kernel, 0)->facts, "grid32"));
  launch_often(kernel,
               &(kjit_launch_config){
                 .size_bytes = sizeof(kjit_launch_config), .grid = { INT32_MAX }, .block = { 32 } },
               &argument, 1);
  launch_often(kernel,
               &(kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config),
                                      .grid = { 65536, 1024 },
                                      .block = { 32 } },
               &argument, 1);
  assert_int_equal(launches_of(kernel, 0), TIMES);
  kjit_release_array(array);
}

/* The element type that the application specifies counts, not the tensor's own. */
static void test_given_elements(void **state)
{
  _Alignas(64) static float data[N];
  int64_t length = N;
  kjit_tensor tensor = host_vector(data, &length);
  tensor.device_type = 2;
  kjit_arg as_given = kjit_arg_elements(KJIT_I32, &tensor), as_it_is = kjit_arg_tensor(&tensor);
  kjit_launch_config config = { .size_bytes = sizeof config, .device = gpu(*state, 0) };
  for (int order = 0; order < 2; order++) {
    kjit_kernel *kernel = kernel_of(parse(*state, source), "fill");
    launch_often(kernel, &config, order ? &as_it_is : &as_given, 1);
    launch_often(kernel, &config, order ? &as_given : &as_it_is, 1);
    launch_often(kernel, &config, order ? &as_it_is : &as_given, 1);
    assert_string_equal(specialization_of(kernel, order)->signature, "i32[:] C");
    assert_string_equal(specialization_of(kernel, !order)->signature, "f32[:] C");
    assert_int_equal(launches_of(kernel, order), order ? TIMES : 2 * TIMES);
    assert_int_equal(launches_of(kernel, !order), order ? 2 * TIMES : TIMES);
    assert_true(is_direct(kernel, 0) && is_direct(kernel, 1));
  }
}

/* All devices can access managed memory. The array determines the device of a call without a
 * device, not the last call. */
static void test_managed_elsewhere(void **state)
{
  kjit_array *array = make_array(gpu(*state, 1), KJIT_MEMORY_MANAGED);
  kjit_device *cpu = NULL;
  expect_ok(*state, kjit_get_device(*state, KJIT_DEVICE_CPU, 0, &cpu));
  kjit_arg arguments[] = { kjit_arg_array(array), kjit_arg_tensor(kjit_get_tensor(array)) };
  kjit_device *asked[] = { cpu, gpu(*state, 0), gpu(*state, 1) };
  fake.kernel = run_nothing;
  for (int i = 0; i < 6; i++) {
    kjit_kernel *kernel = kernel_of(parse(*state, source), "set");
    kjit_launch_config there = { .size_bytes = sizeof there,
                                 .device = asked[i % 3],
                                 .grid = { 1 },
                                 .block = { 32 } },
                       anywhere = { .size_bytes = sizeof anywhere, .grid = { 1 }, .block = { 32 } };
    launch_often(kernel, &there, &arguments[i / 3], 1);
    launch_often(kernel, &anywhere, &arguments[i / 3], 1);
    bool is_same = asked[i % 3] == gpu(*state, 1);
    assert_ptr_equal(specialization_of(kernel, !is_same)->device, gpu(*state, 1));
    assert_int_equal(launches_of(kernel, 0), is_same ? 2 * TIMES : TIMES);
  }
  kjit_release_array(array);
}

/* Pinned memory belongs to the host, and mapped memory is also accessible by the GPU, but their
 * tensors have the same device type. */
static void test_mapped_after_pinned(void **state)
{
  kjit_array *pinned = make_array(gpu(*state, 0), KJIT_MEMORY_PINNED),
             *mapped = make_array(gpu(*state, 0), KJIT_MEMORY_MAPPED);
  kjit_arg host = kjit_arg_array(pinned), both = kjit_arg_array(mapped);
  kjit_kernel *kernel = kernel_of(parse(*state, source), "set");
  kjit_launch_config config = { .size_bytes = sizeof config, .grid = { 1 }, .block = { 32 } };
  fake.kernel = run_nothing;
  launch_often(kernel, &config, &host, 1);
  launch_often(kernel, &config, &both, 1);
  assert_ptr_equal(specialization_of(kernel, 1)->device, gpu(*state, 0));
  assert_int_equal(launches_of(kernel, 1), TIMES);
  kjit_release_array(pinned);
  kjit_release_array(mapped);
}

/* Code that a launch compiled before the kernel was sealed matches none of the kernel's
 * signatures. */
static void test_sealed_later(void **state)
{
  kjit_array *array = make_vector(gpu(*state, 0), N, NULL);
  kjit_kernel *kernel = kernel_of(parse(*state, source), "scale");
  kjit_specialization *made;
  kjit_prepared *prepared;
  kjit_arg wide[] = { kjit_arg_array(array), kjit_arg_f64(1) },
           exact[] = { kjit_arg_array(array), kjit_arg_f32(1) };
  kjit_arg unfit[] = { kjit_arg_f32(1), kjit_arg_f32(1) };
  expect_ok(*state, kjit_specialize(kernel, gpu(*state, 0), "f32[:] C, f32", &made));
  launch_often(kernel, NULL, wide, 2);
  expect_ok(*state, kjit_prepare_launch(kernel, NULL, wide, 2, &prepared));
  assert_true(is_direct(kernel, 1));
  expect_ok(*state, kjit_seal_kernel(kernel));
  launch_often(kernel, NULL, wide, 2); /* rounds */
  assert_int_equal(launches_of(kernel, 1), TIMES);
  assert_int_equal(kj_count_launches(made), TIMES);
  launch_often(kernel, NULL, exact, 2);
  assert_int_equal(kj_count_launches(made), 2 * TIMES);
  assert_true(is_direct(kernel, 0));
  expect_ok(*state, kjit_set_prepared_argument(prepared, 0, &wide[0]));
  expect_ok(*state, kjit_run_prepared(prepared, NULL));
  assert_ptr_equal(kjit_get_prepared_specialization(prepared), made);
  int launches = cuda.launches;
  assert_int_equal(kjit_launch(kernel, NULL, unfit, 2), KJIT_ERROR_ARGUMENT);
  assert_int_equal(cuda.launches, launches);
  kjit_destroy_prepared(prepared);
  kjit_release_array(array);
}

/* ---- sealed while others launch ---- */

enum { THREADS = 4, SEALED_ROUNDS = 100 };

typedef struct launcher {
  kjit_kernel *kernel;
  kjit_arg argument;
  _Atomic int ready;
  _Atomic bool is_sealed;
} launcher;

/* Counts the launches that began after the kernel was sealed and were not rejected. */
static void *launch_until_sealed(void *data)
{
  launcher *l = data;
  const kjit_launch_config config = { .size_bytes = sizeof config, .grid = { 1 }, .block = { 32 } };
  uintptr_t wrong = 0;
  bool is_sealed = false;
  for (int left = TIMES; left; left -= is_sealed) {
    is_sealed = atomic_load(&l->is_sealed);
    kjit_status status = kjit_launch(l->kernel, &config, &l->argument, 1);
    wrong += is_sealed && status != KJIT_ERROR_ARGUMENT;
    atomic_fetch_add(&l->ready, 1);
  }
  return (void *)wrong; /* NOLINT(performance-no-int-to-ptr) */
}

static void test_sealed_meanwhile(void **state)
{
  kjit_device *cpu;
  expect_ok(*state, kjit_get_device(*state, KJIT_DEVICE_CPU, 0, &cpu));
  kjit_array *array = make_vector(cpu, N, NULL);
  fake.kernel = run_nothing;
  for (int round = 0; round < SEALED_ROUNDS; round++) {
    kjit_module *module = parse(*state, source);
    launcher l = { .kernel = kernel_of(module, "set"), .argument = kjit_arg_array(array) };
    pthread_t threads[THREADS];
    kjit_specialization *made;
    uintptr_t wrong = 0;
    expect_ok(*state, kjit_specialize(l.kernel, cpu, "f64[:] C", &made));
    for (int i = 0; i < THREADS; i++)
      assert_int_equal(pthread_create(&threads[i], NULL, launch_until_sealed, &l), 0);
    /* otherwise about when the first launches are made */
    while (round % 2 && atomic_load(&l.ready) < THREADS) sched_yield();
    expect_ok(*state, kjit_seal_kernel(l.kernel));
    atomic_store(&l.is_sealed, true);
    for (int i = 0; i < THREADS; i++) {
      void *result;
      assert_int_equal(pthread_join(threads[i], &result), 0);
      wrong += (uintptr_t)result;
    }
    assert_int_equal(wrong, 0);
    kjit_release_module(module);
  }
  kjit_release_array(array);
}

/* A reset invalidates the arrays of a prepared launch, although its code can be loaded again, for
 * example by a request for its machine code. */
static void test_prepared_after_reset(void **state)
{
  /* enough for the code that was loaded last */
  ((kjit_context *)*state)->config.code_limit_bytes = 1;
  kjit_device *device = gpu(*state, 0);
  kjit_array *array = make_vector(device, N, NULL);
  kjit_module *module = parse(*state, source);
  kjit_kernel *kernel = kernel_of(module, "fill");
  kjit_arg argument = kjit_arg_array(array);
  kjit_prepared *prepared;
  kjit_specialization *other;
  void *binary;
  size_t size_bytes;
  expect_ok(*state, kjit_prepare_launch(kernel, NULL, &argument, 1, &prepared));
  for (int i = 0; i < TIMES; i++) expect_ok(*state, kjit_run_prepared(prepared, NULL));
  for (int i = 0; i < 2; i++)
    expect_ok(*state, kjit_specialize(kernel_of(module, "set"), device, i ? "f64[:] C" : "f32[:] C",
                                      &other));
  kjit_specialization *code = kjit_get_prepared_specialization(prepared);
  assert_int_not_equal(code->state, KJ_READY);
  expect_ok(*state, kjit_reset_device(device));
  if (kjit_copy_specialization_binary(code, &binary, &size_bytes) == KJIT_OK)
    kjit_free(*state, binary);
  assert_int_equal(code->state, KJ_READY);
  int launches = cuda.launches;
  for (int i = 0; i < 2; i++)
    assert_int_equal(kjit_run_prepared(prepared, NULL), KJIT_ERROR_DEVICE);
  assert_int_equal(cuda.launches, launches);
  kjit_destroy_prepared(prepared);
  kjit_release_array(array);
}

/* Code that is to be unloaded after a capture is lost with the context if the device is lost
 * before. kjit frees its own data about this code, which a build with AddressSanitizer checks. */
static void test_parked_and_lost(void **state)
{
  kjit_device *device = gpu(*state, 0);
  kjit_module *module = parse(*state, source);
  kjit_stream *stream;
  kjit_specialization *made;
  expect_ok(*state, kjit_create_stream(device, &stream));
  expect_ok(*state, kjit_specialize(kernel_of(module, "fill"), device, "f32[:] C", &made));
  expect_ok(*state, kjit_begin_capture(stream));
  kjit_release_module(module);
  assert_true(kj_has_listed(device));
  cuda.fault = CUDA_ILLEGAL_ADDRESS;
  assert_int_equal(kjit_create_stream(device, &stream), KJIT_ERROR_DEVICE);
  assert_true(device->lost);
}

static int tear_down_lost(void **state)
{
  kjit_destroy_context(*state);
  fake_delete_all();
  return 0;
}

/* ---- checks of builds with assertions ---- */

/* Returns how launches on the fast path end in a forked child in which the check for forks is
 * disabled. */
static int launch_in_child(kjit_kernel *kernel, const kjit_launch_config *config,
                           const kjit_arg *argument, kjit_prepared *prepared)
{
  int status = 0;
  pid_t child = fork();
  if (!child) {
    atomic_store(&kj_forks, kernel->context->forks);
    signal(SIGABRT, SIG_DFL);
    alarm(100);
    close(2); /* the assertion would be printed to standard error */
    kjit_status ended = prepared ? kjit_run_prepared(prepared, config->stream)
                                 : kjit_launch(kernel, config, argument, 1);
    _exit(ended == KJIT_OK ? 0 : 1);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  return status;
}

/* kjit passes neither unloaded code nor a destroyed stream to the driver. */
static void test_gone(void **state)
{
  kjit_array *array = make_vector(gpu(*state, 0), N, NULL);
  kjit_arg argument = kjit_arg_array(array);
  kjit_kernel *kernel = kernel_of(parse(*state, source), "fill");
  kjit_stream *stream;
  kjit_prepared *prepared;
  expect_ok(*state, kjit_create_stream(gpu(*state, 0), &stream));
  kjit_launch_config config = { .size_bytes = sizeof config, .stream = stream };
  launch_often(kernel, &config, &argument, 1);
  expect_ok(*state, kjit_prepare_launch(kernel, &config, &argument, 1, &prepared));
  for (int i = 0; i < TIMES; i++) expect_ok(*state, kjit_run_prepared(prepared, NULL));
  kjit_specialization *code = specialization_of(kernel, 0);
  void *function = code->device_code.function;
  kjit_stream gone = *stream; /* of no list */
  for (int way = 0; way < 2; way++) {
    kjit_launch_config on_gone = { .size_bytes = sizeof on_gone, .stream = &gone };
    assert_int_equal(launch_in_child(kernel, &config, &argument, way ? prepared : NULL), 0);
    int status = launch_in_child(kernel, &on_gone, &argument, way ? prepared : NULL);
    assert_int_equal(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, KJ_HAS_ASSERTIONS);
    code->device_code.function = KJ_UNLOADED;
    status = launch_in_child(kernel, &config, &argument, way ? prepared : NULL);
    assert_int_equal(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, KJ_HAS_ASSERTIONS);
    code->device_code.function = function;
  }
  kjit_destroy_prepared(prepared);
  kjit_destroy_stream(stream);
  kjit_release_array(array);
}

/* A forked child cannot run a prepared launch, although it is ready. */
static void test_ready_in_a_child(void **state)
{
  kjit_array *array = make_vector(gpu(*state, 0), N, NULL);
  kjit_arg argument = kjit_arg_array(array);
  kjit_kernel *kernel = kernel_of(parse(*state, source), "fill");
  kjit_prepared *prepared;
  int status = 0;
  launch_often(kernel, NULL, &argument, 1);
  expect_ok(*state, kjit_prepare_launch(kernel, NULL, &argument, 1, &prepared));
  for (int i = 0; i < TIMES; i++) expect_ok(*state, kjit_run_prepared(prepared, NULL));
  int launches = cuda.launches;
  pid_t child = fork();
  if (!child)
    _exit(kjit_launch(kernel, NULL, &argument, 1) == KJIT_ERROR_FORKED &&
              kjit_run_prepared(prepared, NULL) == KJIT_ERROR_FORKED &&
              kjit_set_prepared_argument(prepared, 0, &argument) == KJIT_ERROR_FORKED &&
              kjit_run_prepared(prepared, NULL) == KJIT_ERROR_FORKED &&
              !kjit_get_prepared_specialization(prepared) &&
              kjit_seal_kernel(kernel) == KJIT_ERROR_FORKED && cuda.launches == launches
            ? 0
            : 1);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  kjit_destroy_prepared(prepared);
  kjit_release_array(array);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down_gpus)
  const struct CMUnitTest tests[] = {
    TEST(test_missing_block),
    TEST(test_time_limit),
    TEST(test_wide_grid),
    TEST(test_given_elements),
    TEST(test_managed_elsewhere),
    TEST(test_mapped_after_pinned),
    TEST(test_sealed_later),
    TEST(test_sealed_meanwhile),
    TEST(test_prepared_after_reset),
    cmocka_unit_test_setup_teardown(test_parked_and_lost, set_up, tear_down_lost),
    TEST(test_gone),
    TEST(test_ready_in_a_child),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
