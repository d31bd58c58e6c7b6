/* From a call to code: relations, facts, the key, the configuration of a launch, one compilation
 * for many threads, running on the cores. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <fenv.h>
#include <pthread.h>
#include <sched.h>

#include "cpu/cpu.h"
#include "code/specialization.h"
#include "fake_compiler.h"

/* ---- the fake code ---- */

static _Atomic uint64_t blocks_run, threads_run, runs;
static uint32_t last_grid[3], last_block[3];
static uint8_t *seen;     /* counts the visits of each block, if a test sets it */
static uint64_t block_ns; /* time of a block; launches that take long use several threads */

static void count_blocks(const void *parameters, const kj_cpu_grid *grid, uint64_t first,
                         uint64_t last, void *scratch)
{
  (void)parameters;
  memcpy(last_grid, grid->grid, sizeof last_grid);
  memcpy(last_block, grid->block, sizeof last_block);
  if (fake.scratch_bytes) memset(scratch, 1, fake.scratch_bytes);
  if ((uintptr_t)scratch % 64) abort();
  for (uint64_t i = first; i < last && seen; i++) seen[i]++;
  uint64_t end_ns = block_ns ? kj_clock_ns() + block_ns * (last - first) : 0;
  while (end_ns && kj_clock_ns() < end_ns) {}
  blocks_run += last - first;
  threads_run += (last - first) * grid->block[0] * grid->block[1] * grid->block[2];
  runs++;
}

static int set_up(void **state)
{
  *state = make_fake_context();
  fake.kernel = count_blocks;
  blocks_run = threads_run = runs = 0;
  seen = NULL;
  block_ns = 0;
  memset(last_grid, 0, sizeof last_grid);
  return 0;
}

static int tear_down(void **state)
{
  kjit_destroy_context(*state);
  assert_int_equal(fake.loads, fake.unloads);
  assert_int_equal(fake.created, fake.destroyed);
  return 0;
}

static kjit_tensor vector(float *data, int64_t *length)
{
  return (kjit_tensor){
    .data = data, .device_type = 1, .rank = 1, .code = 2, .bits = 32, .lanes = 1, .shape = length
  };
}

static kjit_launch_config on_cpu(kjit_context *context)
{
  kjit_launch_config config = { .size_bytes = sizeof config };
  assert_int_equal(kjit_get_device(context, KJIT_DEVICE_CPU, 0, &config.device), KJIT_OK);
  return config;
}

static void expect_ok(kjit_context *context, kjit_status status)
{
  if (status != KJIT_OK) print_error("%s\n", last_message(context));
  assert_int_equal(status, KJIT_OK);
}

/* ---- relations ---- */

static const char axpy[] =
  "kernel axpy(r, a, x, y) {\n  for i in grid_range(len(r)) { r[i] = a * x[i] + y[i] }\n}\n";

static int relation_of(uint32_t i, uint32_t j) { return fake.relations[i * 4 + j]; }

static void test_relations(void **state)
{
  kjit_kernel *kernel = kernel_of(parse(*state, axpy), "axpy");
  _Alignas(16) static float data[64];
  int64_t length[] = { 16 }, longer[] = { 17 };
  kjit_tensor r = vector(data, length), x = vector(data + 16, length),
              y = vector(data + 32, length);
  kjit_arg arguments[] = { kjit_arg_tensor(&r), kjit_arg_f32(2), kjit_arg_tensor(&x),
                           kjit_arg_tensor(&y) };
  kjit_launch_config config = on_cpu(*state);
  expect_ok(*state, kjit_launch(kernel, &config, arguments, 4));
  assert_int_equal(relation_of(0, 2), KJ_RELATION_DISJOINT);
  assert_int_equal(relation_of(2, 0), KJ_RELATION_DISJOINT);
  /* neither array is written, so their relation is not part of the key */
  assert_int_equal(relation_of(2, 3), KJ_RELATION_ANY);
  assert_true(fake.signature.offsets32 && fake.signature.grid32);
  x.data = data;
  expect_ok(*state, kjit_launch(kernel, &config, arguments, 4));
  assert_int_equal(relation_of(0, 2), KJ_RELATION_SAME);
  x.data = data + 4;
  expect_ok(*state, kjit_launch(kernel, &config, arguments, 4));
  assert_int_equal(relation_of(0, 2), KJ_RELATION_ANY);
  x.data = data;
  x.shape = longer;
  expect_ok(*state, kjit_launch(kernel, &config, arguments, 4));
  assert_int_equal(fake.compilations, 3); /* another overlap has the same key */
  assert_int_equal(relation_of(0, 2), KJ_RELATION_ANY);
  int64_t backwards[] = { -1 };
  x = vector(data + 31, length);
  x.strides = backwards;
  expect_ok(*state, kjit_launch(kernel, &config, arguments, 4));
  assert_int_equal(relation_of(0, 2), KJ_RELATION_DISJOINT); /* elements 16..31 */
  assert_int_equal(fake.compilations, 4);
  x.data = y.data = r.data = data;
  y = x = vector(data + 16, length);
  x.data = y.data = data + 16;
  expect_ok(*state, kjit_launch(kernel, &config, arguments, 4));
  assert_int_equal(fake.compilations, 4); /* overlapping inputs count like disjoint ones */
}

/* Waits for compilations for which no launch waits. On a busy machine they begin late. */
static void wait_for_compilations(int count)
{
  for (int i = 0; i < 100000 && fake.loads < count; i++)
    nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
  assert_int_equal(fake.loads, count);
}

static void test_key_of_offsets(void **state)
{
  kjit_kernel *kernel = kernel_of(parse(*state, "kernel k(a) { a[0, 0] = 1 }\n"), "k");
  static float data[4];
  int64_t shape[] = { 2, 1LL << 31 }, narrow[] = { 2, 16 }, zero[] = { 0, 0 },
          far[] = { 1LL << 31, 1 };
  kjit_tensor t = vector(data, shape);
  t.rank = 2;
  t.strides = zero;
  kjit_arg argument = kjit_arg_tensor(&t);
  kjit_launch_config config = on_cpu(*state);
  config.grid[0] = config.block[0] = 1;
  expect_ok(*state, kjit_launch(kernel, &config, &argument, 1));
  assert_false(fake.signature.offsets32);
  t.shape = narrow;
  /* the launch uses the existing code */
  expect_ok(*state, kjit_launch(kernel, &config, &argument, 1));
  wait_for_compilations(2);
  assert_true(fake.signature.offsets32);
  t.strides = far;
  expect_ok(*state, kjit_launch(kernel, &config, &argument, 1));
  assert_int_equal(fake.compilations, 2);
}

/* ---- configuration ---- */

static void launch_for(kjit_context *context, kjit_kernel *kernel, kjit_launch_config config,
                       const kjit_arg *arguments, size_t count, kjit_status status,
                       const char *message)
{
  kjit_launch_config base = on_cpu(context);
  config.device = base.device;
  kjit_status got = kjit_launch(kernel, &config, arguments, count);
  if (got != status) print_error("%s\n", last_message(context));
  assert_int_equal(got, status);
  if (message) assert_string_equal(last_message(context), message);
}

static void expect_grid(uint32_t x, uint32_t y, uint32_t z)
{
  assert_int_equal(last_grid[0], x);
  assert_int_equal(last_grid[1], y);
  assert_int_equal(last_grid[2], z);
}

static void test_attributes(void **state)
{
  static const char text[] =
    "const SIDE = 4\n"
    "kernel k(c, const tpb = SIDE * 2) @block(tpb, tpb) @grid(ceil_div(c.shape[1], tpb), "
    "max(c.shape[0] // tpb, 1)) { c[0, 0] = 1 }\n"
    "kernel l(c, n) @block(32) @grid(n + len(c)) { c[0, 0] = 1 }\n"
    "kernel m(c) @block(32) @grid(c[0]) { c[0] = 1 }\n";
  kjit_module *module = parse(*state, text);
  static float data[300];
  int64_t shape[] = { 10, 30 };
  kjit_tensor t = vector(data, shape);
  t.rank = 2;
  kjit_arg arguments[] = { kjit_arg_tensor(&t), kjit_arg_i32(5) };
  kjit_kernel *kernel = kernel_of(module, "k");
  launch_for(*state, kernel, (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config) },
             arguments, 1, KJIT_OK, NULL);
  expect_grid(4, 1, 1);
  assert_int_equal(last_block[0], 8);
  assert_int_equal(last_block[1], 8);
  launch_for(*state, kernel,
             (kjit_launch_config){
               .size_bytes = sizeof(kjit_launch_config), .grid = { 4, 1 }, .block = { 8, 8 } },
             arguments, 1, KJIT_OK, NULL);
  launch_for(*state, kernel,
             (kjit_launch_config){
               .size_bytes = sizeof(kjit_launch_config), .grid = { 4, 1 }, .block = { 8, 4 } },
             arguments, 1, KJIT_ERROR_LAUNCH,
             "kernel `k`: @block is 8 x 8 x 1, but the launch requests a block of 8 x 4 x 1");
  launch_for(*state, kernel,
             (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config), .grid = { 5 } },
             arguments, 1, KJIT_ERROR_LAUNCH,
             "kernel `k`: @grid is 4 x 1 x 1, but the launch requests a grid of 5 x 1 x 1");
  launch_for(*state, kernel_of(module, "l"),
             (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config) }, arguments, 2,
             KJIT_OK, NULL);
  expect_grid(15, 1, 1);
  t.rank = 1;
  launch_for(
    *state, kernel_of(module, "m"),
    (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config) }, arguments, 1,
    KJIT_ERROR_LAUNCH,
    "@grid of kernel `m` cannot be evaluated before the launch: this loads an element of an array");
}

static void test_chosen_grids(void **state)
{
  static const char text[] =
    "kernel one(a) { for i in grid_range(len(a)) { a[i] = 1 } }\n"
    "kernel two(a) {\n  let rows, cols = a.shape\n  let all = rows * cols\n  let x = threadIdx.x\n "
    " for i in grid_range(all) { a[0, i] = x }\n}\n"
    "kernel shaped(a) { for idx in grid_range(a.shape) { a[idx] = 1 } }\n"
    "kernel unknown(n, a) { for i in grid_range(i64(n[0])) { a[i] = 1 } }\n"
    "kernel plain(a) { a[0] = 1 }\n";
  kjit_module *module = parse(*state, text);
  static float data[3000];
  int64_t length[] = { 3000 }, shape[] = { 30, 100 }, none[] = { 0 };
  kjit_tensor t = vector(data, length), u = vector(data, shape), empty = vector(data, none);
  u.rank = 2;
  kjit_arg line = kjit_arg_tensor(&t), matrix = kjit_arg_tensor(&u),
           nothing = kjit_arg_tensor(&empty), pair[] = { line, line };
  launch_for(*state, kernel_of(module, "one"),
             (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config) }, &line, 1, KJIT_OK,
             NULL);
  expect_grid(12, 1, 1);
  assert_int_equal(last_block[0], 256);
  launch_for(*state, kernel_of(module, "two"),
             (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config) }, &matrix, 1, KJIT_OK,
             NULL);
  expect_grid(12, 1, 1);
  launch_for(*state, kernel_of(module, "shaped"),
             (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config) }, &matrix, 1, KJIT_OK,
             NULL);
  expect_grid(12, 1, 1);
  launch_for(*state, kernel_of(module, "unknown"),
             (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config) }, pair, 2, KJIT_OK,
             NULL);
  assert_true(last_grid[0] >= 8 && last_grid[0] % 8 == 0);
  launch_for(*state, kernel_of(module, "one"),
             (kjit_launch_config){
               .size_bytes = sizeof(kjit_launch_config), .threads = 1000, .block = { 100 } },
             &line, 1, KJIT_OK, NULL);
  expect_grid(10, 1, 1);
  launch_for(*state, kernel_of(module, "plain"),
             (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config), .threads = 1000 },
             &line, 1, KJIT_OK, NULL);
  expect_grid(4, 1, 1);
  launch_for(*state, kernel_of(module, "plain"),
             (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config) }, &line, 1,
             KJIT_ERROR_LAUNCH,
             "kernel `plain` needs a launch configuration: a grid and a block; it has neither "
             "@block and @grid nor a grid_range from which kjit can choose them");
  uint64_t before = runs;
  launch_for(*state, kernel_of(module, "one"),
             (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config) }, &nothing, 1, KJIT_OK,
             NULL);
  assert_int_equal(runs, before);
  fake.elements_a_thread = 4;
  u.shape = (int64_t[]){ 30, 99 };
  static float odd[6000];
  t.data = odd + 1; /* not aligned: another key */
  launch_for(*state, kernel_of(module, "one"),
             (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config) }, &line, 1, KJIT_OK,
             NULL);
  expect_grid(3, 1, 1);
}

static void test_limits(void **state)
{
  kjit_module *module =
    parse(*state, "kernel k(a) { a[0] = 1 }\nkernel b(a) @launch_bounds(128) { a[0] = 1 }\n");
  static float data[4];
  int64_t length[] = { 4 };
  kjit_tensor t = vector(data, length);
  kjit_arg a = kjit_arg_tensor(&t);
  kjit_kernel *kernel = kernel_of(module, "k");
  launch_for(*state, kernel,
             (kjit_launch_config){
               .size_bytes = sizeof(kjit_launch_config), .grid = { 1 }, .block = { 2048 } },
             &a, 1, KJIT_ERROR_LAUNCH,
             "kernel `k`: the launch has 2048 threads per block in x, but cpu allows at most 1024");
  launch_for(*state, kernel,
             (kjit_launch_config){
               .size_bytes = sizeof(kjit_launch_config), .grid = { 1 }, .block = { 64, 32 } },
             &a, 1, KJIT_ERROR_LAUNCH,
             "kernel `k`: the launch has 2048 threads per block, but cpu allows at most 1024");
  launch_for(*state, kernel,
             (kjit_launch_config){
               .size_bytes = sizeof(kjit_launch_config), .grid = { 1, 70000 }, .block = { 64 } },
             &a, 1, KJIT_ERROR_LAUNCH,
             "kernel `k`: the launch has 70000 blocks in y, but cpu allows at most 65535");
  launch_for(*state, kernel,
             (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config),
                                   .grid = { 1 },
                                   .block = { 64 },
                                   .dynamic_shared_bytes = 1 << 30 },
             &a, 1, KJIT_ERROR_LAUNCH,
             "kernel `k`: the launch has 1073741824 bytes of dynamic shared memory per block, but "
             "cpu allows at most 1048576");
  launch_for(
    *state, kernel_of(module, "b"),
    (kjit_launch_config){
      .size_bytes = sizeof(kjit_launch_config), .grid = { 1 }, .block = { 256 } },
    &a, 1, KJIT_ERROR_LAUNCH,
    "kernel `b`: the launch has 256 threads per block, but its @launch_bounds allows at most 128");
  launch_for(*state, kernel_of(module, "b"),
             (kjit_launch_config){
               .size_bytes = sizeof(kjit_launch_config), .grid = { 1 }, .block = { 128 } },
             &a, 1, KJIT_OK, NULL);
}

/* The evaluator gives up at a chain of lets in which each uses the previous one twice, and at
 * arithmetic that exceeds 64 bits. */
static void test_evaluator_is_bounded(void **state)
{
  kj_buffer text = { 0 };
  kj_append_text(&text, "kernel k(a, n) {\n  let x0 = n\n");
  for (int i = 1; i < 80; i++) kj_append_format(&text, "  let x%d = x%d + x%d\n", i, i - 1, i - 1);
  kj_append_text(&text, "  for i in grid_range(x79) { a[0] = 1 }\n}\n");
  kjit_module *module = parse(*state, text.text);
  kj_free_buffer(&text);
  static float data[4];
  int64_t length[] = { 4 };
  kjit_tensor t = vector(data, length);
  kjit_arg arguments[] = { kjit_arg_tensor(&t), kjit_arg_i64(INT64_MAX) };
  launch_for(*state, kernel_of(module, "k"),
             (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config) }, arguments, 2,
             KJIT_OK, NULL);
  assert_true(last_grid[0] >= 8);
}

static void test_evaluator_values(void **state)
{
  static const struct {
    const char *expr;
    uint32_t value;
  } rows[] = {
    { "7 // 2", 3 },
    { "-7 // 2 + 10", 6 },
    { "-7 % 3 + 1", 3 },
    { "2 ** 10", 1024 },
    { "n > 3 ? 5 : 6", 5 },
    { "n > 30 ? c[0] : 6", 6 },
    { "c.shape[-1]", 30 },
    { "c.size // 100", 3 },
    { "c.ndim", 2 },
    { "min(n, 3) + max(n, 3)", 7 },
    { "n == 4 and len(c) == 10 ? 8 : 9", 8 },
    { "(n << 3) | 1", 33 },
    { "~n + 10", 5 },
    { "i32(2.9 * n)", 11 },
    { "ceil_div(n, 3)", 2 },
    { "div_trunc(-7, 2) + 10", 7 },
    { "n // 0 + 1", 1 },
    { "SIDE * SIDE", 25 },
    { "abs(-n)", 4 },
    { "not (n < 3) ? 2 : 1", 2 },
  };
  static float data[300];
  int64_t shape[] = { 10, 30 };
  kjit_tensor t = vector(data, shape);
  t.rank = 2;
  kjit_arg arguments[] = { kjit_arg_tensor(&t), kjit_arg_i32(4) };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    kj_buffer text = { 0 };
    kj_append_format(&text, "const SIDE = 5\nkernel k(c, n) @block(32) @grid(%s) { c[0, 0] = 1 }\n",
                     rows[i].expr);
    kjit_module *module = parse(*state, text.text);
    kj_free_buffer(&text);
    launch_for(*state, kernel_of(module, "k"),
               (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config) }, arguments, 2,
               KJIT_OK, NULL);
    if (last_grid[0] != rows[i].value) print_error("%s\n", rows[i].expr);
    assert_int_equal(last_grid[0], rows[i].value);
    kjit_release_module(module);
  }
}

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

/* ---- kjit_compile ---- */

static void test_compile_signatures(void **state)
{
  kjit_module *module = parse(*state, "func g(x) { return x }\nkernel k(r, a, n: i32, f: func, "
                                      "const t = 16) @block(t) { r[0] = f(a) + n }\n");
  kjit_kernel *kernel = kernel_of(module, "k");
  kjit_compile_options options = { .size_bytes = sizeof options };
  void *code;
  size_t size;
  options.target = "sm_90a";
  options.facts = "all";
  expect_ok(*state, kjit_compile(kernel, "f32[:, :] C, 2.5, i64, g, 32", &options, KJIT_STAGE_PTX,
                                 &code, &size));
  kjit_free(*state, code);
  assert_int_equal(fake.target.arch, 90);
  assert_int_equal(fake.target.suffix, 'a');
  assert_int_equal(fake.arguments[0].facts, KJ_FACT_ALIGNED16);
  assert_int_equal(fake.arguments[1].type, KJ_WEAK_FLOAT);
  assert_int_equal(fake.arguments[2].type, KJIT_I32);
  assert_int_equal((int)fake.arguments[4].integer, 32);
  assert_int_equal(fake.signature.block[0], 32);
  expect_ok(*state,
            kjit_compile(kernel, "f32[:], f32, i32, g", NULL, KJIT_STAGE_LLVM, &code, &size));
  kjit_free(*state, code);
  assert_int_equal(fake.signature.block[0], 16);
  static const struct {
    const char *signature;
    kjit_status status;
    const char *message;
  } wrong[] = {
    { "f32[:]", KJIT_ERROR_ARGUMENT, "kernel `k`: expected 5 arguments in the signature, got 1" },
    { "f32[:], f32, i32, g, 1, 2, 3", KJIT_ERROR_ARGUMENT,
      "kernel `k`: expected 5 arguments in the signature, got 7" },
    { "f32[:], f32, i32, h", KJIT_ERROR_NAME,
      "parameter `f`: expected the name of a function, got `h`" },
    { "f32[:], f32, f32[:], g", KJIT_ERROR_ARGUMENT, "parameter `n`: expected i32, got `f32[:]`" },
    { "f32[:], f32, i32, g, f32", KJIT_ERROR_ARGUMENT,
      "parameter `t`: expected a value, because the parameter is const, got `f32`" },
    { "f32[:], , i32, g", KJIT_ERROR_SYNTAX, "parameter `a`: expected a type or a value, got ``" },
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_int_equal(kjit_compile(kernel, wrong[i].signature, NULL, KJIT_STAGE_LLVM, &code, &size),
                     wrong[i].status);
    assert_string_equal(last_message(*state), wrong[i].message);
  }
  kjit_compile_options older = {
    .size_bytes = sizeof older
  }; /* a shorter struct from an older header, without the later fields */
  memset(&older.ptxas, 0x7e, sizeof older - offsetof(kjit_compile_options, ptxas));
  older.size_bytes = offsetof(kjit_compile_options, ptxas);
  older.target = "sm_80";
  expect_ok(*state,
            kjit_compile(kernel, "f32[:], f32, i32, g", &older, KJIT_STAGE_PTX, &code, &size));
  kjit_free(*state, code);
  assert_int_equal(fake.target.arch, 80);
  assert_int_equal(fake.target.ptx_version, 0);
  assert_int_equal(fake.signature.block[0], 16);
  older.size_bytes = offsetof(kjit_compile_options, debug);
  assert_int_equal(kjit_compile(kernel, "f32[:], f32, i32, g", &older, KJIT_STAGE_PTX, &code,
                                &size),
                   KJIT_ERROR_MISUSE);
  options.target = "sm_9";
  assert_int_equal(kjit_compile(kernel, "f32[:], f32, i32, g", &options, KJIT_STAGE_PTX, &code,
                                &size),
                   KJIT_ERROR_ARGUMENT);
  options.target = "cpu";
  assert_int_equal(kjit_compile(kernel, "f32[:], f32, i32, g", &options, KJIT_STAGE_PTX, &code,
                                &size),
                   KJIT_ERROR_ARGUMENT);
  options.facts = "aligned17";
  assert_int_equal(kjit_compile(kernel, "f32[:], f32, i32, g", &options, KJIT_STAGE_LLVM, &code,
                                &size),
                   KJIT_ERROR_ARGUMENT);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = {
    TEST(test_relations),
    TEST(test_key_of_offsets),
    TEST(test_attributes),
    TEST(test_chosen_grids),
    TEST(test_limits),
    TEST(test_evaluator_is_bounded),
    TEST(test_evaluator_values),
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
    TEST(test_compile_signatures),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
