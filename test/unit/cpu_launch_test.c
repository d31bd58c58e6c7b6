/* Launches on the CPU: one compilation for many callers, the threads that run the blocks, the
 * application's executor, and the end of a context. */
#include "fake_kernel.h"

#include <fenv.h>

/* ---- the cache ---- */

static void test_hits(void **state)
{
  kjit_kernel *kernel = kernel_of(parse(*state, "kernel k(a, const n) { a[0] = n }\n"), "k");
  static float data[4];
  int64_t length[] = { 4 };
  kjit_tensor t = vector(data, length);
  kjit_launch_config config = on_cpu(*state);
  config.grid[0] = config.block[0] = 1;
  for (int round = 0; round < 3; round++)
    for (int n = 0; n < 100; n++) {
      kjit_arg arguments[] = { kjit_arg_tensor(&t), kjit_arg_i32(n) };
      expect_ok(*state, kjit_launch(kernel, &config, arguments, 2));
    }
  kjit_statistics statistics = { .size_bytes = sizeof statistics };
  kjit_get_statistics(*state, &statistics);
  assert_int_equal(fake.compilations, 100);
  assert_int_equal(statistics.compilations, 100);
  assert_int_equal(statistics.launches, 300);
  assert_int_equal(statistics.memory_hits, 200);
  assert_non_null(kjit_get_specialization(kernel, 99));
  assert_null(kjit_get_specialization(kernel, 100));
  kjit_specialization_info info = { .size_bytes = sizeof info };
  kjit_get_specialization_info(kjit_get_specialization(kernel, 7), &info);
  assert_string_equal(info.signature, "f32[:] C, 7i32");
  assert_string_equal(info.target, "cpu");
  assert_int_equal(info.launches, 3);
}

typedef struct caller {
  pthread_t thread;
  kjit_context *context;
  kjit_kernel *kernel;
  pthread_barrier_t *start;
  kjit_status status;
  char message[128];
} caller;

static void *call_once(void *data)
{
  caller *caller = data;
  static float values[4];
  int64_t length[] = { 4 };
  kjit_tensor t = vector(values, length);
  kjit_arg argument = kjit_arg_tensor(&t);
  kjit_launch_config config = { .size_bytes = sizeof config, .grid = { 1 }, .block = { 32 } };
  if (kjit_get_device(caller->context, KJIT_DEVICE_CPU, 0, &config.device) != KJIT_OK) abort();
  pthread_barrier_wait(caller->start);
  caller->status = kjit_launch(caller->kernel, &config, &argument, 1);
  snprintf(caller->message, sizeof caller->message, "%s",
           caller->status == KJIT_OK ? "" : last_message(caller->context));
  return NULL;
}

enum { CALLERS = 16 };

static void call_together(kjit_context *context, kjit_kernel *kernel, caller callers[CALLERS])
{
  pthread_barrier_t start;
  pthread_barrier_init(&start, NULL, CALLERS);
  for (int i = 0; i < CALLERS; i++) {
    callers[i] = (caller){ .context = context, .kernel = kernel, .start = &start };
    assert_int_equal(pthread_create(&callers[i].thread, NULL, call_once, &callers[i]), 0);
  }
  for (int i = 0; i < CALLERS; i++) pthread_join(callers[i].thread, NULL);
  pthread_barrier_destroy(&start);
}

static void test_one_compilation(void **state)
{
  kjit_kernel *kernel = kernel_of(parse(*state, "kernel k(a) { a[0] = 1 }\n"), "k");
  caller callers[CALLERS];
  fake.delay_ms = 100;
  call_together(*state, kernel, callers);
  for (int i = 0; i < CALLERS; i++) assert_int_equal(callers[i].status, KJIT_OK);
  assert_int_equal(fake.compilations, 1);
  assert_int_equal(runs, CALLERS);
}

static void test_one_failure(void **state)
{
  kjit_kernel *kernel = kernel_of(parse(*state, "kernel k(a) { a[0] = 1 }\n"), "k");
  caller callers[CALLERS];
  fake.delay_ms = 200;
  fake.fail = 1;
  call_together(*state, kernel, callers);
  /* Threads that came after the failure compiled again and succeeded. */
  int failures = 0;
  for (int i = 0; i < CALLERS; i++) {
    if (callers[i].status == KJIT_OK) continue;
    failures++;
    assert_int_equal(callers[i].status, KJIT_ERROR_TYPE);
    assert_string_equal(callers[i].message, "the fake compiler refuses `k`");
  }
  assert_true(failures >= 1);
  assert_true(fake.compilations <= 2);
  fake.delay_ms = 0;
  caller again[CALLERS];
  call_together(*state, kernel, again);
  for (int i = 0; i < CALLERS; i++) assert_int_equal(again[i].status, KJIT_OK);
}

static void test_no_compiler(void **state)
{
  (void)state;
  kjit_config config = { .size_bytes = sizeof config };
  kjit_context *context;
  config.compiler_path = "/nonexistent/compiler.so";
  assert_int_equal(kjit_create_context(&config, &context), KJIT_OK);
  kjit_kernel *kernel = kernel_of(parse(context, "kernel k() { }\n"), "k");
  kjit_launch_config launch = on_cpu(context);
  launch.grid[0] = launch.block[0] = 1;
  assert_int_equal(kjit_launch(kernel, &launch, NULL, 0), KJIT_ERROR_NO_COMPILER);
  assert_non_null(strstr(last_message(context), "/nonexistent/compiler.so"));
  kjit_destroy_context(context);
}

/* ---- running ---- */

static void test_every_block_once(void **state)
{
  kjit_kernel *kernel = kernel_of(parse(*state, "kernel k() { }\n"), "k");
  static uint8_t counts[5000];
  kjit_launch_config config = on_cpu(*state);
  fake.scratch_bytes = 100000;
  config.block[0] = 64;
  for (uint32_t blocks = 1; blocks <= 5000; blocks = blocks * 3 + 1) {
    memset(counts, 0, sizeof counts);
    seen = counts;
    config.grid[0] = blocks;
    expect_ok(*state, kjit_launch(kernel, &config, NULL, 0));
    for (uint32_t i = 0; i < 5000; i++) assert_int_equal(counts[i], i < blocks);
  }
}

static void run_in_reverse(void *user, size_t count, void (*body)(void *data, size_t index),
                           void *data)
{
  ++*(int *)user;
  while (count--) body(data, count);
}

/* An executor that runs only `user` of the bodies. The remaining bodies do the work of the missing
 * ones, if any body runs.
 */
static void run_some(void *user, size_t count, void (*body)(void *data, size_t index), void *data)
{
  for (size_t i = 0; i < *(size_t *)user && i < count; i++) body(data, i);
}

/* A launch that the application's executor did not run does not succeed. */
static void test_lazy_executor(void **state)
{
  (void)state;
  size_t most = 0;
  kjit_executor executor = {
    .size_bytes = sizeof executor, .user = &most, .concurrency = 5, .run = run_some
  };
  kjit_config options = { .size_bytes = sizeof options };
  kjit_context *context;
  kj_diagnostics diagnostics = { 0 };
  static uint8_t counts[1000];
  options.executor = &executor;
  options.cache_directory = "";
  assert_int_equal(kjit_create_context(&options, &context), KJIT_OK);
  assert_int_equal(kj_use_compiler(context, &fake_interface, &diagnostics), KJIT_OK);
  kjit_kernel *kernel = kernel_of(parse(context, "kernel k() { }\n"), "k");
  kjit_launch_config config = on_cpu(context);
  config.grid[0] = 1000;
  config.block[0] = 32;
  block_ns = 2000;
  seen = counts;
  assert_int_equal(kjit_launch(kernel, &config, NULL, 0), KJIT_ERROR_MISUSE);
  assert_string_equal(last_message(context),
                      "the application's executor returned before the launch was complete; it must "
                      "call body for every index first");
  most = 1; /* allows the executor to run one body, which does all the work */
  memset(counts, 0, sizeof counts);
  expect_ok(context, kjit_launch(kernel, &config, NULL, 0));
  for (int i = 0; i < 1000; i++) assert_int_equal(counts[i], 1);
  kjit_destroy_context(context);
}

/* The time of an interrupted launch is not recorded, whether it is interrupted in its first part or
 * later. */
static void leave_at_once(const void *parameters, const kj_cpu_grid *grid, uint64_t first,
                          uint64_t last, void *scratch)
{
  (void)parameters, (void)first, (void)last, (void)scratch;
  grid->leave(grid);
}

static void test_interrupted_cost(void **state)
{
  static const kj_cpu_cost nothing;
  for (uint32_t blocks = 4; blocks <= 64; blocks += 60) {
    kj_cpu_cost cost = nothing;
    kj_cpu_kernel kernel = leave_at_once;
    kj_code code = { .is_interruptible = true };
    kj_device_code loaded = { .module = NULL };
    uint32_t grid[3] = { blocks, 1, 1 }, block[3] = { 1, 1, 1 };
    kj_device_launch launch = { .grid = grid, .block = block, .cost = &cost };
    kj_diagnostics diagnostics = { 0 };
    memcpy(&loaded.function, &kernel, sizeof kernel);
    assert_int_equal(kj_launch_on_cpu(on_cpu(*state).device, &loaded, &code, &launch, &diagnostics),
                     KJIT_OK);
    assert_memory_equal(&cost, &nothing, sizeof cost);
  }
}

/* Kernels run in the default floating-point environment on every thread, and the application's own
 * environment is restored afterwards. */
static _Atomic uint32_t other_roundings, arrived;

static void look_at_rounding(const void *parameters, const kj_cpu_grid *grid, uint64_t first,
                             uint64_t last, void *scratch)
{
  (void)parameters, (void)grid, (void)last, (void)scratch;
  volatile float one = 1, three = 3, tiny = 1e-38F;
  other_roundings += one / three != 0x1.555556p-2F || -one / three != -0x1.555556p-2F;
  other_roundings += fegetround() != FE_TONEAREST || tiny / three == 0;
  arrived++;
  uint64_t end_ns = kj_clock_ns() + 20000000;
  while (first < 8 && arrived < 4 && kj_clock_ns() < end_ns) sched_yield();
}

static void test_rounding(void **state)
{
  kjit_kernel *kernel = kernel_of(parse(*state, "kernel k() { }\n"), "k");
  kjit_launch_config config = on_cpu(*state);
  config.grid[0] = 64;
  config.block[0] = 1;
  fake.kernel = look_at_rounding;
  other_roundings = 0;
  static const int modes[] = { FE_UPWARD, FE_TONEAREST, FE_DOWNWARD };
  for (int i = 0; i < 3; i++) {
    arrived = 0;
    fesetround(modes[i]);
    assert_int_equal(kjit_launch(kernel, &config, NULL, 0), KJIT_OK);
    assert_int_equal(fegetround(), modes[i]);
    fesetround(FE_TONEAREST);
    assert_int_equal(other_roundings, 0);
  }
}

/* Destroying a context waits for launches on the CPU that other threads have begun. */
typedef struct late_launch {
  kjit_context *context;
  kjit_kernel *kernel;
  bool is_prepared;
} late_launch;

static _Atomic bool is_running, has_run;

static void run_slowly(const void *parameters, const kj_cpu_grid *grid, uint64_t first,
                       uint64_t last, void *scratch)
{
  (void)parameters, (void)grid, (void)first, (void)last, (void)scratch;
  is_running = true;
  uint64_t end_ns = kj_clock_ns() + 50000000;
  while (kj_clock_ns() < end_ns) sched_yield();
  has_run = true;
}

static void *launch_late(void *data)
{
  const late_launch *late = data;
  kjit_prepared *prepared = NULL;
  kjit_launch_config config = on_cpu(late->context);
  config.grid[0] = config.block[0] = 1;
  if (late->is_prepared) {
    assert_int_equal(kjit_prepare_launch(late->kernel, &config, NULL, 0, &prepared), KJIT_OK);
    assert_int_equal(kjit_run_prepared(prepared, NULL), KJIT_OK);
  } else {
    assert_int_equal(kjit_launch(late->kernel, &config, NULL, 0), KJIT_OK);
  }
  return NULL;
}

static void test_late_launch(void **state)
{
  (void)state;
  for (int i = 0; i < 2; i++) {
    kjit_context *context = make_fake_context();
    kjit_kernel *kernel = kernel_of(parse(context, "kernel k() { }\n"), "k");
    late_launch late = { context, kernel, i };
    pthread_t thread;
    fake.kernel = run_slowly;
    is_running = has_run = false;
    assert_int_equal(pthread_create(&thread, NULL, launch_late, &late), 0);
    while (!is_running) sched_yield();
    kjit_destroy_context(context);
    assert_true(has_run);
    pthread_join(thread, NULL);
  }
}

static void test_flags(void **state)
{
  kjit_kernel *kernel = kernel_of(parse(*state, "kernel k() { }\n"), "k");
  kjit_launch_config config = on_cpu(*state);
  kjit_prepared *prepared = NULL;
  static uint8_t counts[1];
  seen = counts;
  config.grid[0] = config.block[0] = 1;
  expect_ok(*state, kjit_launch(kernel, &config, NULL, 0));
  for (int bit = 0; bit < 32; bit++) {
    config.flags = (uint32_t)1 << bit;
    bool is_known =
      config.flags & (KJIT_LAUNCH_COOPERATIVE | KJIT_LAUNCH_NO_WAIT | KJIT_LAUNCH_PROGRAMMATIC);
    assert_int_equal(kjit_launch(kernel, &config, NULL, 0), is_known ? KJIT_OK : KJIT_ERROR_MISUSE);
    assert_int_equal(kjit_prepare_launch(kernel, &config, NULL, 0, &prepared),
                     is_known ? KJIT_OK : KJIT_ERROR_MISUSE);
    if (is_known) kjit_destroy_prepared(prepared);
  }
  assert_string_equal(last_message(*state), "kjit_prepare_launch: unknown flags 0x80000000");
}

static void test_executor(void **state)
{
  (void)state;
  int calls = 0;
  kjit_executor executor = {
    .size_bytes = sizeof executor, .user = &calls, .concurrency = 5, .run = run_in_reverse
  };
  kjit_config options = { .size_bytes = sizeof options };
  kjit_context *context;
  kj_diagnostics diagnostics = { 0 };
  static uint8_t counts[1000];
  options.executor = &executor;
  assert_int_equal(kjit_create_context(&options, &context), KJIT_OK);
  assert_int_equal(kj_use_compiler(context, &fake_interface, &diagnostics), KJIT_OK);
  kjit_kernel *kernel = kernel_of(parse(context, "kernel k() { }\n"), "k");
  kjit_launch_config config = on_cpu(context);
  config.grid[0] = 1000;
  config.block[0] = 32;
  block_ns = 2000;
  seen = counts;
  memset(counts, 0, sizeof counts);
  expect_ok(context, kjit_launch(kernel, &config, NULL, 0));
  for (int i = 0; i < 1000; i++) assert_int_equal(counts[i], 1);
  assert_int_equal(calls, 1);
  kjit_destroy_context(context);
}

/* A compiler of another build is refused, and the message names both. */
static void test_other_builds(void **state)
{
  kjit_context *context;
  const kjit_config options = { .size_bytes = sizeof options };
  const struct {
    uint32_t size_bytes, version;
    const char *build, *name;
  } rows[] = { { sizeof(kj_compiler_interface), KJ_COMPILER_VERSION, "kjit 9.9.9, build 0", NULL },
               { sizeof(kj_compiler_interface), 4, NULL, "of a version before 0.2" },
               { sizeof(kj_compiler_interface) + 8, KJ_COMPILER_VERSION + 1, kj_build, NULL } };
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    kj_diagnostics diagnostics = { 0 };
    kj_compiler_interface other = fake_interface;
    other.size_bytes = rows[i].size_bytes;
    other.version = rows[i].version;
    other.build = rows[i].build;
    assert_int_equal(kjit_create_context(&options, &context), KJIT_OK);
    assert_int_equal(kj_use_compiler(context, &other, &diagnostics), KJIT_ERROR_NO_COMPILER);
    assert_int_equal(ki_finish_call(context, &diagnostics), KJIT_ERROR_NO_COMPILER);
    assert_non_null(
      strstr(last_message(context), "libkjit and its compiler come from different builds"));
    assert_non_null(strstr(last_message(context), kj_build));
    assert_non_null(strstr(last_message(context), rows[i].name ? rows[i].name : rows[i].build));
    kjit_destroy_context(context);
  }
  assert_int_equal(kjit_get_version(), KJIT_VERSION_NUMBER);
}

static void test_range_only(void **state)
{
  kjit_kernel *kernel = kernel_of(parse(*state, axpy), "axpy");
  static float data[3][1 << 20];
  int64_t length[] = { 1 << 20 };
  kjit_tensor r = vector(data[0], length), x = vector(data[1], length), y = vector(data[2], length);
  kjit_arg arguments[] = { kjit_arg_tensor(&r), kjit_arg_f32(2), kjit_arg_tensor(&x),
                           kjit_arg_tensor(&y) };
  fake.is_range_only = true;
  fake.elements_a_thread = 4;
  kjit_launch_config config = on_cpu(*state);
  expect_ok(*state, kjit_launch(kernel, &config, arguments, 4));
  assert_int_equal(last_block[0], 1);
  assert_int_equal(last_grid[0], blocks_run);
  assert_true(last_grid[0] >= 1 && last_grid[0] <= 64 * config.device->workers);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = {
    TEST(test_hits),
    TEST(test_one_compilation),
    TEST(test_one_failure),
    TEST(test_no_compiler),
    TEST(test_every_block_once),
    TEST(test_executor),
    TEST(test_lazy_executor),
    TEST(test_interrupted_cost),
    TEST(test_rounding),
    cmocka_unit_test(test_late_launch),
    TEST(test_flags),
    TEST(test_other_builds),
    TEST(test_range_only),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
