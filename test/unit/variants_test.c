/* Tests several specializations for the same types. A launch immediately runs code for fewer facts,
 * and later launches run better code. The tests also cover limits of the number of variants, and
 * signatures compiled ahead of time and in the background. Others cover sealed kernels, unloading
 * and blobs. */
#include "kj_test.h"

#include <kjit/code.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "code/specialization.h"
#include "fake_compiler.h"

static const char axpy[] = "kernel axpy(r, a, x, y) {\n  for i in grid_range(len(r)) { r[i] = a * "
                           "x[i] + y[i] }\n}\nkernel other(r) { r[0] = 1 }\n";

static void do_nothing(const void *parameters, const kj_cpu_grid *grid, uint64_t first,
                       uint64_t last, void *scratch)
{
  (void)parameters, (void)grid, (void)first, (void)last, (void)scratch;
}

static kjit_config config_of_test;

static kjit_context *make_context(void)
{
  kj_diagnostics diagnostics = { 0 };
  kjit_context *context = NULL;
  memset(&fake, 0, sizeof fake);
  fake.kernel = do_nothing;
  if (kjit_create_context(&config_of_test, &context) != KJIT_OK ||
      kj_use_compiler(context, &fake_interface, &diagnostics) != KJIT_OK)
    abort();
  return context;
}

static int set_up(void **state)
{
  config_of_test = (kjit_config){ .size_bytes = sizeof config_of_test };
  config_of_test.cache_directory = "";
  *state = make_context();
  return 0;
}

static int tear_down(void **state)
{
  kjit_destroy_context(*state);
  assert_int_equal(fake.loads, fake.unloads);
  return 0;
}

/* Replaces the context by one with the test's configuration. */
static void replace_context(void **state)
{
  kjit_destroy_context(*state);
  *state = make_context();
}

static void expect_ok(kjit_context *context, kjit_status status)
{
  if (status != KJIT_OK) print_error("%s\n", last_message(context));
  assert_int_equal(status, KJIT_OK);
}

_Alignas(64) static float data[256];
static int64_t length[] = { 16 };

/* Launches with four vectors that begin 16 elements apart, moved by `offset` elements; with an
 * offset of 1 they are not aligned. */
static kjit_status launch(kjit_context *context, kjit_kernel *kernel, int r_offset, int x_at,
                          uint32_t flags)
{
  kjit_tensor r = { .data = data + r_offset,
                    .device_type = 1,
                    .rank = 1,
                    .code = 2,
                    .bits = 32,
                    .lanes = 1,
                    .shape = length },
              x = r, y = r;
  kjit_launch_config config = { .size_bytes = sizeof config, .flags = flags };
  x.data = data + x_at;
  y.data = data + 128;
  kjit_arg arguments[] = { kjit_arg_tensor(&r), kjit_arg_f32(2), kjit_arg_tensor(&x),
                           kjit_arg_tensor(&y) };
  if (kjit_get_device(context, KJIT_DEVICE_CPU, 0, &config.device) != KJIT_OK)
    return KJIT_ERROR_NO_DEVICE;
  return kjit_launch(kernel, &config, arguments, 4);
}

/* Maximum time for an event of another thread. Even on a busy machine, only a defect takes so
 * long. */
enum { PATIENCE_MS = 100000 };

static void wait_for_loads(int count)
{
  for (int i = 0; i < PATIENCE_MS && fake.loads < count; i++)
    nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
  assert_int_equal(fake.loads, count);
}

static kjit_specialization_info info_of(kjit_kernel *kernel, size_t index)
{
  kjit_specialization_info info = { .size_bytes = sizeof info };
  kjit_specialization *specialization = kjit_get_specialization(kernel, index);
  assert_non_null(specialization);
  kjit_get_specialization_info(specialization, &info);
  return info;
}

/* ---- fewer facts now, better code later ---- */

/* The variant that is being compiled takes the last place of the limit. The next call with the same
 * key waits for it and does not drop its facts. */
static void test_last_variant(void **state)
{
  config_of_test.variant_limit = 1;
  replace_context(state);
  kjit_kernel *kernel = kernel_of(parse(*state, axpy), "axpy");
  fake.delay_ms = 20;
  kjit_status status;
  while ((status = launch(*state, kernel, 0, 64, KJIT_LAUNCH_NO_WAIT)) == KJIT_NOT_READY)
    nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
  expect_ok(*state, status);
  assert_int_equal(fake.compilations, 1);
  assert_true(*info_of(kernel, 0).facts);
}

static void test_fallback_code(void **state)
{
  kjit_kernel *kernel = kernel_of(parse(*state, axpy), "axpy");
  expect_ok(*state, launch(*state, kernel, 1, 65, 0)); /* only y is aligned */
  assert_int_equal(fake.compilations, 1);
  fake.is_held = true;
  expect_ok(*state, launch(*state, kernel, 0, 64, 0)); /* everything is */
  expect_ok(*state, launch(*state, kernel, 0, 64, 0));
  assert_int_equal(info_of(kernel, 0).launches, 3); /* the launch used the existing code */
  fake.is_held = false;
  wait_for_loads(2);
  for (int i = 0; i < PATIENCE_MS && !kjit_get_specialization(kernel, 1); i++)
    nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
  for (int i = 0; i < PATIENCE_MS && !info_of(kernel, 1).launches; i++) {
    nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    expect_ok(*state, launch(*state, kernel, 0, 64, 0));
  }
  assert_int_equal(info_of(kernel, 1).launches, 1);
  assert_string_equal(
    info_of(kernel, 1).facts,
    "aligned16(r, x, y) offsets32 grid32 disjoint(r, x) disjoint(r, y) block(256, 1, 1)");
  assert_int_equal(fake.compilations, 2);
  /* the arrays overlap, so neither variant can run the call */
  expect_ok(*state, launch(*state, kernel, 0, 8, 0));
  assert_int_equal(fake.compilations, 3);
}

/* If a compilation fails for which no launch waits, not every launch tries it again. */
static void test_failing_improvement(void **state)
{
  kjit_kernel *kernel = kernel_of(parse(*state, axpy), "axpy");
  expect_ok(*state, launch(*state, kernel, 1, 65, 0));
  fake.fail = 100;
  uint64_t launches = 1;
  for (int i = 0, more = 20; i < PATIENCE_MS / 2 && more; i++) {
    expect_ok(*state, launch(*state, kernel, 0, 64, 0));
    launches++;
    more -= fake.compilations == 2; /* a busy machine comes to it late */
    nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
  }
  assert_int_equal(fake.compilations, 2);
  assert_int_equal(info_of(kernel, 0).launches, launches);
}

static void test_variant_limit(void **state)
{
  config_of_test.variant_limit = 2;
  replace_context(state);
  kjit_kernel *kernel = kernel_of(parse(*state, axpy), "axpy");
  expect_ok(*state, launch(*state, kernel, 0, 64, 0)); /* aligned, disjoint */
  expect_ok(*state, launch(*state, kernel, 0, 0, 0));  /* one array is passed twice */
  /* not aligned: the third variant, which relies on no facts */
  expect_ok(*state, launch(*state, kernel, 1, 64, 0));
  assert_string_equal(info_of(kernel, 2).facts, "block(256, 1, 1)");
  expect_ok(*state, launch(*state, kernel, 1, 1, 0));
  expect_ok(*state, launch(*state, kernel, 0, 8, 0));
  assert_int_equal(fake.compilations, 3);
  assert_int_equal(info_of(kernel, 2).launches, 3);
  expect_ok(*state, launch(*state, kernel, 0, 64, 0));
  assert_int_equal(info_of(kernel, 0).launches, 2);
}

/* ---- ahead of time ---- */

static const char f32_signature[] = "f32[:] C, f32, f32[:] C, f32[:] C",
                  f64_signature[] = "f64[:] C, f64, f64[:] C, f64[:] C";

typedef struct async_result {
  _Atomic int calls, status;
  kjit_specialization *specialization;
  char message[128];
  kjit_context *context;
} async_result;

static void take_result(void *user, kjit_status status, kjit_specialization *specialization)
{
  async_result *result = user;
  result->specialization = specialization;
  if (status != KJIT_OK && result->context)
    snprintf(result->message, sizeof result->message, "%s", last_message(result->context));
  result->status = (int)status;
  result->calls++;
}

static void wait_for_result(async_result *result)
{
  for (int i = 0; i < PATIENCE_MS && !result->calls; i++)
    nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
  assert_int_equal(result->calls, 1);
}

static kjit_device *cpu_of(kjit_context *context)
{
  kjit_device *device = NULL;
  assert_int_equal(kjit_get_device(context, KJIT_DEVICE_CPU, 0, &device), KJIT_OK);
  return device;
}

static void test_async(void **state)
{
  kjit_kernel *kernel = kernel_of(parse(*state, axpy), "axpy");
  async_result good = { 0 }, bad = { .context = *state };
  expect_ok(*state,
            kjit_specialize_async(kernel, cpu_of(*state), f32_signature, take_result, &good));
  wait_for_result(&good);
  assert_int_equal(good.status, KJIT_OK);
  assert_ptr_equal(good.specialization, kjit_get_specialization(kernel, 0));
  expect_ok(*state, launch(*state, kernel, 0, 64, 0));
  assert_int_equal(fake.compilations, 1);
  expect_ok(*state,
            kjit_specialize_async(kernel, cpu_of(*state), "f32[:] C, f32", take_result, &bad));
  wait_for_result(&bad);
  assert_int_equal(bad.status, KJIT_ERROR_ARGUMENT);
  assert_null(bad.specialization);
  assert_string_equal(bad.message, "kernel `axpy`: expected 4 arguments in the signature, got 2");
  assert_int_equal(kjit_specialize_async(kernel, NULL, NULL, take_result, &bad), KJIT_ERROR_MISUSE);
  assert_int_equal(kjit_specialize_async(kernel, NULL, f32_signature, NULL, NULL),
                   KJIT_ERROR_MISUSE);
}

/* Compilations that are still queued when the context ends are reported to their callbacks, each
 * once. */
static void test_async_at_the_end(void **state)
{
  config_of_test.compile_threads = 1;
  replace_context(state);
  kjit_kernel *kernel = kernel_of(parse(*state, axpy), "axpy");
  async_result results[8] = { 0 };
  char signature[64];
  /* Four compilations take 6 s. A busy machine needs less to start destroying the context. */
  fake.delay_ms = 1500;
  fake.is_held = true;
  for (int i = 0; i < 8; i++) {
    snprintf(signature, sizeof signature, "f32[:] C, %s, f32[:] C, f32[:] C",
             (const char *[]){ "f32", "f64", "i32", "i64", "u32", "u64", "i16", "i8" }[i]);
    expect_ok(*state,
              kjit_specialize_async(kernel, cpu_of(*state), signature, take_result, &results[i]));
  }
  fake.is_held = false;
  replace_context(state);
  int given_up = 0;
  for (int i = 0; i < 8; i++) {
    assert_int_equal(results[i].calls, 1);
    assert_true(results[i].status == KJIT_OK || results[i].status == KJIT_NOT_READY);
    given_up += results[i].status == KJIT_NOT_READY;
  }
  assert_true(given_up >= 4);
}

/* A callback on the only compiling thread waits for a compilation that is queued after it. No other
 * thread could do this compilation. */
typedef struct nested {
  kjit_context *context;
  kjit_kernel *kernel;
  _Atomic bool is_queued, is_done;
  kjit_status launch_status, all_status, async_status;
  async_result last;
} nested;

static void wait_in_callback(void *user, kjit_status status, kjit_specialization *specialization)
{
  (void)status, (void)specialization;
  nested *n = user;
  while (!n->is_queued) nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
  /* the code of this launch is queued after the running job */
  n->launch_status = launch(n->context, n->kernel, 0, 64, 0);
  kjit_specialize_item items[] = {
    { .size_bytes = sizeof items[0], .kernel = n->kernel, .signature = f64_signature },
    { .size_bytes = sizeof items[0],
      .kernel = n->kernel,
      .signature = "i32[:] C, i32, i32[:] C, i32[:] C" }
  };
  n->all_status = kjit_specialize_all(n->context, cpu_of(n->context), items, 2, NULL, NULL);
  n->async_status = kjit_specialize_async(n->kernel, cpu_of(n->context),
                                          "i8[:] C, i8, i8[:] C, i8[:] C", take_result, &n->last);
  n->is_done = true;
}

static void test_waiting_in_callback(void **state)
{
  config_of_test.compile_threads = 1;
  replace_context(state);
  nested n = { .context = *state, .kernel = kernel_of(parse(*state, axpy), "axpy") };
  alarm(PATIENCE_MS / 1000); /* ends the test if it would wait forever */
  expect_ok(*state,
            kjit_specialize_async(n.kernel, cpu_of(*state), "i64[:] C, i64, i64[:] C, i64[:] C",
                                  wait_in_callback, &n));
  assert_int_equal(launch(*state, n.kernel, 0, 64, KJIT_LAUNCH_NO_WAIT), KJIT_NOT_READY);
  n.is_queued = true;
  while (!n.is_done) nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
  expect_ok(*state, n.launch_status);
  expect_ok(*state, n.all_status);
  expect_ok(*state, n.async_status);
  wait_for_result(&n.last);
  assert_int_equal(fake.compilations, 5);
  alarm(0);
}

/* A launch does not wait for compilations that were queued before its own. */
static void test_overtaking(void **state)
{
  config_of_test.compile_threads = 1;
  replace_context(state);
  kjit_kernel *kernel = kernel_of(parse(*state, axpy), "axpy");
  async_result results[20] = { 0 };
  char signature[64];
  fake.is_held = true; /* the compiling thread stops in its first job */
  for (int i = 0; i < 20; i++) {
    snprintf(signature, sizeof signature, "f64[:] C, %s, f64[:] C, f64[:] %s",
             (const char *[]){ "f32", "f64", "i32", "i64", "u32", "u64", "i16", "i8", "u8",
                               "u16" }[i % 10],
             i < 10 ? "C" : "");
    expect_ok(*state,
              kjit_specialize_async(kernel, cpu_of(*state), signature, take_result, &results[i]));
  }
  assert_int_equal(launch(*state, kernel, 0, 64, KJIT_LAUNCH_NO_WAIT), KJIT_NOT_READY);
  while (!fake.running) fake_pause(); /* the compiling thread has begun its first job */
  expect_ok(*state, launch(*state, kernel, 0, 64, 0));
  assert_in_range(fake.compilations, 1, 2); /* of 21 */
  fake.is_held = false;
  for (int i = 0; i < 20; i++) wait_for_result(&results[i]);
}

typedef struct progress_log {
  size_t calls, last_done;
  pthread_t thread;
} progress_log;

static void log_progress(void *user, size_t done, size_t count, const kjit_specialize_item *item)
{
  progress_log *log = user;
  assert_true(pthread_equal(log->thread, pthread_self()));
  assert_int_equal(done, log->last_done + 1);
  assert_int_equal(count, 3);
  assert_true(item->status != KJIT_NOT_READY);
  log->last_done = done;
  log->calls++;
}

static void test_all(void **state)
{
  kjit_module *module = parse(*state, axpy);
  kjit_kernel *kernel = kernel_of(module, "axpy");
  kjit_specialize_item items[] = {
    { .size_bytes = sizeof items[0], .kernel = kernel, .signature = f32_signature },
    { .size_bytes = sizeof items[0], .kernel = kernel, .signature = "nonsense" },
    { .size_bytes = sizeof items[0], .kernel = kernel_of(module, "other"), .signature = "i32[:] C" }
  };
  progress_log log = { .thread = pthread_self() };
  kjit_device *device = cpu_of(*state);
  kjit_status status = kjit_specialize_all(*state, device, items, 3, log_progress, &log);
  assert_int_equal(status, items[1].status);
  assert_int_equal(log.calls, 3);
  assert_true(items[1].status != KJIT_OK);
  assert_int_equal(items[0].status, KJIT_OK);
  assert_int_equal(items[2].status, KJIT_OK);
  assert_non_null(items[0].specialization);
  assert_null(items[1].specialization);
  assert_non_null(strstr(last_message(*state), "nonsense"));
  assert_int_equal(fake.compilations, 2);
  expect_ok(*state, kjit_specialize_all(*state, device, NULL, 0, NULL, NULL));
  items[1].kernel = NULL;
  assert_int_equal(kjit_specialize_all(*state, device, items, 3, NULL, NULL), KJIT_ERROR_MISUSE);
}

/* All items are compiled at the same time. */
static void test_all_in_parallel(void **state)
{
  config_of_test.compile_threads = 4;
  replace_context(state);
  kjit_kernel *kernel = kernel_of(parse(*state, axpy), "axpy");
  kjit_specialize_item items[4];
  const char *signatures[] = { f32_signature, f64_signature, "i32[:] C, i32, i32[:] C, i32[:] C",
                               "i64[:] C, i64, i64[:] C, i64[:] C" };
  for (int i = 0; i < 4; i++)
    items[i] = (kjit_specialize_item){ .size_bytes = sizeof(kjit_specialize_item),
                                       .kernel = kernel,
                                       .signature = signatures[i] };
  fake.meeting = 2;
  expect_ok(*state, kjit_specialize_all(*state, cpu_of(*state), items, 4, NULL, NULL));
  assert_in_range(fake.most_running, 2, 4);
}

/* ---- sealed kernels ---- */

static kjit_status launch_scale(kjit_context *context, kjit_kernel *kernel, kjit_arg scalar)
{
  kjit_tensor r = {
    .data = data, .device_type = 1, .rank = 1, .code = 2, .bits = 32, .lanes = 1, .shape = length
  };
  kjit_arg arguments[] = { kjit_arg_tensor(&r), scalar };
  kjit_launch_config config = { .size_bytes = sizeof config, .device = cpu_of(context) };
  return kjit_launch(kernel, &config, arguments, 2);
}

static void test_sealed(void **state)
{
  kjit_kernel *kernel =
    kernel_of(parse(*state,
                    "kernel scale(r, a) {\n  for i in grid_range(len(r)) { r[i] = a }\n}\n"),
              "scale");
  kjit_specialization *narrow, *wide, *real;
  kjit_device *device = cpu_of(*state);
  expect_ok(*state, kjit_seal_kernel(kernel));
  assert_int_equal(launch_scale(*state, kernel, kjit_arg_i32(1)), KJIT_ERROR_ARGUMENT);
  assert_string_equal(last_message(*state), "kernel `scale` is sealed: no signature matches the "
                                            "arguments (f32[:] C, i32); on cpu it has none");
  expect_ok(*state, kjit_specialize(kernel, device, "f32[:] C, i32", &narrow));
  expect_ok(*state, kjit_specialize(kernel, device, "f32[:] C, i64", &wide));
  expect_ok(*state, kjit_specialize(kernel, device, "f32[:] C, f64", &real));
  const struct {
    kjit_arg argument;
    kjit_specialization *expected;
  } rows[] = { { kjit_arg_i32(1), narrow },   { kjit_arg_i64(1), wide },
               { kjit_arg_u32(1), wide },     { kjit_arg_f32(1.5f), real },
               { kjit_arg_f64(1.5), real },   { kjit_arg_number(7), narrow },
               { kjit_arg_number(7.5), real } };
  kjit_specialization_info before = { .size_bytes = sizeof before },
                           after = { .size_bytes = sizeof after };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    for (int again = 0; again < 2; again++) {
      kjit_get_specialization_info(rows[i].expected, &before);
      expect_ok(*state, launch_scale(*state, kernel, rows[i].argument));
      kjit_get_specialization_info(rows[i].expected, &after);
      assert_int_equal(after.launches, before.launches + 1);
    }
  assert_int_equal(fake.compilations, 3);
  float matrix[4];
  int64_t shape[] = { 2, 2 };
  kjit_tensor r = {
    .data = matrix, .device_type = 1, .rank = 2, .code = 2, .bits = 32, .lanes = 1, .shape = shape
  };
  kjit_arg arguments[] = { kjit_arg_tensor(&r), kjit_arg_i32(1) };
  kjit_launch_config config = { .size_bytes = sizeof config, .device = device };
  assert_int_equal(kjit_launch(kernel, &config, arguments, 2), KJIT_ERROR_ARGUMENT);
  assert_string_equal(last_message(*state),
                      "kernel `scale` is sealed: no signature matches the arguments (f32[:, :] C, "
                      "i32); on cpu it has (f32[:] C, i32), (f32[:] C, i64), "
                      "(f32[:] C, f64)");
}

static void test_ambiguous(void **state)
{
  kjit_kernel *kernel =
    kernel_of(parse(*state,
                    "kernel pair(r, a, b) {\n  for i in grid_range(len(r)) { r[i] = a + b }\n}\n"),
              "pair");
  kjit_specialization *made;
  kjit_device *device = cpu_of(*state);
  expect_ok(*state, kjit_specialize(kernel, device, "f32[:] C, i32, i64", &made));
  expect_ok(*state, kjit_specialize(kernel, device, "f32[:] C, i64, i32", &made));
  expect_ok(*state, kjit_seal_kernel(kernel));
  kjit_tensor r = {
    .data = data, .device_type = 1, .rank = 1, .code = 2, .bits = 32, .lanes = 1, .shape = length
  };
  kjit_arg arguments[] = { kjit_arg_tensor(&r), kjit_arg_i32(1), kjit_arg_i32(1) };
  kjit_launch_config config = { .size_bytes = sizeof config, .device = device };
  assert_int_equal(kjit_launch(kernel, &config, arguments, 3), KJIT_ERROR_ARGUMENT);
  assert_string_equal(last_message(*state),
                      "kernel `pair` is sealed: these signatures match the arguments equally well, "
                      "(f32[:] C, i32, i32): (f32[:] C, i32, i64), (f32[:] C, i64, i32)");
  arguments[2] = kjit_arg_i64(1);
  expect_ok(*state, kjit_launch(kernel, &config, arguments, 3));
}

/* Arrays of any layout match a signature that accepts any strides; kjit compiles variants for the
 * facts of the calls. */
static void test_sealed_layouts(void **state)
{
  kjit_kernel *kernel = kernel_of(parse(*state, "kernel turn(r) { r[0, 1] = 1 }\n"), "turn");
  kjit_specialization *made;
  float memory[16];
  int64_t shape[] = { 4, 4 }, columns[] = { 1, 4 };
  expect_ok(*state, kjit_specialize(kernel, cpu_of(*state), "f32[:, :]", &made));
  expect_ok(*state, kjit_seal_kernel(kernel));
  kjit_tensor r = { .data = memory,
                    .device_type = 1,
                    .rank = 2,
                    .code = 2,
                    .bits = 32,
                    .lanes = 1,
                    .shape = shape,
                    .strides = columns };
  kjit_arg argument = kjit_arg_tensor(&r);
  kjit_launch_config config = {
    .size_bytes = sizeof config, .grid = { 1 }, .block = { 1 }, .device = cpu_of(*state)
  };
  expect_ok(*state, kjit_launch(kernel, &config, &argument, 1));
  assert_int_equal(ki_type(ki_context_types(*state), fake.arguments[0].type)->layout,
                   KJIT_LAYOUT_STRIDED);
  r.strides = NULL;
  expect_ok(*state, kjit_launch(kernel, &config, &argument, 1));
  assert_int_equal(ki_type(ki_context_types(*state), fake.arguments[0].type)->layout,
                   KJIT_LAYOUT_STRIDED);
}

/* ---- unloading ---- */

static void test_eviction(void **state)
{
  /* code of the fake compiler has as many bytes as the kernel's name */
  config_of_test.code_limit_bytes = 12;
  replace_context(state);
  kjit_kernel *kernel = kernel_of(parse(*state, axpy), "axpy");
  kjit_specialization *made[4];
  kjit_statistics statistics = { .size_bytes = sizeof statistics };
  const char *signatures[] = { f32_signature, f64_signature, "i32[:] C, i32, i32[:] C, i32[:] C",
                               "i64[:] C, i64, i64[:] C, i64[:] C" };
  for (int i = 0; i < 3; i++)
    expect_ok(*state, kjit_specialize(kernel, cpu_of(*state), signatures[i], &made[i]));
  assert_int_equal(fake.loads - fake.unloads, 3);
  expect_ok(*state, kjit_specialize(kernel, cpu_of(*state), signatures[3], &made[3]));
  assert_int_equal(fake.loads - fake.unloads, 3);
  kjit_get_statistics(*state, &statistics);
  assert_int_equal(statistics.evictions, 1);
  int loaded = 0;
  for (size_t i = 0; i < 4; i++) {
    kjit_specialization_info info = info_of(kernel, i);
    assert_string_equal(info.signature, signatures[i]);
    loaded += info.is_loaded;
  }
  assert_int_equal(loaded, 3);
  assert_false(info_of(kernel, 0).is_loaded);
  expect_ok(*state, launch(*state, kernel, 0, 64, 0)); /* f32: loaded again */
  assert_true(info_of(kernel, 0).is_loaded);
  assert_null(kjit_get_specialization(kernel, 4));
  assert_int_equal(fake.loads - fake.unloads, 3);
}

/* A prepared launch loads its evicted code again. */
static void test_eviction_of_prepared(void **state)
{
  config_of_test.code_limit_bytes = 4;
  replace_context(state);
  kjit_kernel *kernel = kernel_of(parse(*state, axpy), "axpy");
  kjit_specialization *made;
  kjit_prepared *prepared;
  kjit_tensor t = {
    .data = data, .device_type = 1, .rank = 1, .code = 2, .bits = 32, .lanes = 1, .shape = length
  };
  kjit_arg arguments[] = { kjit_arg_tensor(&t), kjit_arg_f32(2), kjit_arg_tensor(&t),
                           kjit_arg_tensor(&t) };
  kjit_launch_config config = { .size_bytes = sizeof config, .device = cpu_of(*state) };
  expect_ok(*state, kjit_prepare_launch(kernel, &config, arguments, 4, &prepared));
  for (int i = 0; i < 3; i++) {
    expect_ok(*state, kjit_run_prepared(prepared, NULL));
    expect_ok(*state, kjit_specialize(kernel, cpu_of(*state), i % 2 ? f32_signature : f64_signature,
                                      &made));
  }
  assert_int_equal(fake.loads - fake.unloads, 1);
  kjit_specialization_info info = { .size_bytes = sizeof info };
  kjit_get_specialization_info(kjit_get_prepared_specialization(prepared), &info);
  assert_int_equal(info.launches, 3);
  kjit_destroy_prepared(prepared);
}

/* Threads launch four kernels in turn, but the code of at most two is loaded at a time. */
enum { THREADS = 6, ROUNDS = 300 };

typedef struct crew {
  kjit_context *context;
  kjit_kernel *kernel;
  _Atomic int failures;
} crew;

static void *launch_all_types(void *user)
{
  crew *crew = user;
  static double wide[64];
  kjit_launch_config config = { .size_bytes = sizeof config, .device = cpu_of(crew->context) };
  static const struct {
    uint8_t code, bits;
  } types[] = { { 2, 32 }, { 2, 64 }, { 0, 32 }, { 0, 64 } };
  for (int i = 0; i < ROUNDS; i++) {
    kjit_tensor t = { .data = wide,
                      .device_type = 1,
                      .rank = 1,
                      .code = types[i % 4].code,
                      .bits = types[i % 4].bits,
                      .lanes = 1,
                      .shape = length };
    kjit_arg arguments[] = { kjit_arg_tensor(&t), kjit_arg_f32(2), kjit_arg_tensor(&t),
                             kjit_arg_tensor(&t) };
    crew->failures += kjit_launch(crew->kernel, &config, arguments, 4) != KJIT_OK;
    kjit_specialization_info info = {
      .size_bytes = sizeof info
    }; /* the properties of code that other threads load and unload */
    kjit_get_specialization_info(kjit_get_specialization(crew->kernel, (size_t)i % 4), &info);
    crew->failures += info.signature && strncmp(info.signature + 3, "[:] C", 5) != 0;
  }
  return NULL;
}

static void run_evicting_crew(void **state, bool is_sealed)
{
  config_of_test.code_limit_bytes = 8;
  replace_context(state);
  crew crew = { .context = *state, .kernel = kernel_of(parse(*state, axpy), "axpy") };
  pthread_t threads[THREADS];
  kjit_specialization *made;
  char signature[64];
  for (int i = 0; i < 4 && is_sealed; i++) {
    const char *element = (const char *[]){ "f32", "f64", "i32", "i64" }[i];
    snprintf(signature, sizeof signature, "%s[:] C, f32, %s[:] C, %s[:] C", element, element,
             element);
    expect_ok(*state, kjit_specialize(crew.kernel, cpu_of(*state), signature, &made));
  }
  if (is_sealed) expect_ok(*state, kjit_seal_kernel(crew.kernel));
  /* while one thread loads code again, other threads read its signature */
  fake.delay_ms = is_sealed;
  for (int i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, launch_all_types, &crew), 0);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  assert_int_equal(crew.failures, 0);
  kjit_statistics statistics = { .size_bytes = sizeof statistics };
  kjit_get_statistics(*state, &statistics);
  assert_int_equal(statistics.launches, THREADS * ROUNDS);
  assert_true(statistics.evictions > 0);
  uint64_t launches = 0;
  for (size_t i = 0; kjit_get_specialization(crew.kernel, i); i++)
    launches += info_of(crew.kernel, i).launches;
  assert_int_equal(launches, THREADS * ROUNDS);
}

static void test_eviction_under_launches(void **state)
{
  run_evicting_crew(state, false);
  run_evicting_crew(state, true); /* launches of sealed kernels read all signatures */
}

/* Better code that was unloaded is loaded again in the background, while launches run other
 * code. */
static void test_eviction_of_improvement(void **state)
{
  config_of_test.code_limit_bytes = 8;
  replace_context(state);
  kjit_kernel *kernel = kernel_of(parse(*state, axpy), "axpy");
  kjit_specialization *made;
  bool is_out = false;
  expect_ok(*state, launch(*state, kernel, 1, 65, 0));
  expect_ok(*state, launch(*state, kernel, 0, 64, 0));
  for (int i = 0; i < PATIENCE_MS && !kjit_get_specialization(kernel, 1); i++)
    nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
  for (int i = 0; i < 50 && !is_out; i++) {
    expect_ok(*state, launch(*state, kernel, 1, 65, 0));
    expect_ok(*state,
              kjit_specialize(kernel, cpu_of(*state),
                              i % 2 ? f64_signature : "i32[:] C, i32, i32[:] C, i32[:] C", &made));
    is_out = info_of(kernel, 0).is_loaded && !info_of(kernel, 1).is_loaded;
  }
  assert_true(is_out);
  uint64_t launches = info_of(kernel, 1).launches;
  /* the launch used the code for fewer facts */
  expect_ok(*state, launch(*state, kernel, 0, 64, 0));
  assert_int_equal(info_of(kernel, 1).launches, launches);
  for (int i = 0; i < PATIENCE_MS && !info_of(kernel, 1).is_loaded; i++)
    nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
  expect_ok(*state, launch(*state, kernel, 0, 64, 0));
  assert_int_equal(info_of(kernel, 1).launches, launches + 1);
}

/* ---- more threads than slots ---- */

static pthread_barrier_t all_here;

static void *launch_some(void *user)
{
  crew *crew = user;
  pthread_barrier_wait(&all_here);
  for (int i = 0; i < ROUNDS; i++)
    crew->failures += launch(crew->context, crew->kernel, 0, 64, 0) != KJIT_OK;
  pthread_barrier_wait(&all_here); /* all threads have a slot at the same time */
  return NULL;
}

static void test_many_threads(void **state)
{
  enum { MANY = KJ_SLOTS + 16 };
  crew crew = { .context = *state, .kernel = kernel_of(parse(*state, axpy), "axpy") };
  pthread_t threads[MANY];
  pthread_barrier_init(&all_here, NULL, MANY);
  /* the second round uses the slots that the threads of the first round have returned */
  for (int round = 0; round < 2; round++) {
    for (int i = 0; i < MANY; i++)
      assert_int_equal(pthread_create(&threads[i], NULL, launch_some, &crew), 0);
    for (int i = 0; i < MANY; i++) pthread_join(threads[i], NULL);
  }
  pthread_barrier_destroy(&all_here);
  assert_int_equal(crew.failures, 0);
  assert_int_equal(info_of(crew.kernel, 0).launches, 2 * MANY * ROUNDS);
}

/* ---- occupancy on the CPU, code ---- */

static void test_queries(void **state)
{
  kjit_kernel *kernel = kernel_of(parse(*state, axpy), "axpy");
  kjit_specialization *made;
  kjit_occupancy occupancy = { .size_bytes = sizeof occupancy };
  void *binary;
  size_t size_bytes;
  expect_ok(*state, kjit_specialize(kernel, cpu_of(*state), f32_signature, &made));
  expect_ok(*state, kjit_get_occupancy(made, NULL, 0, &occupancy));
  assert_int_equal(occupancy.block[0], 256);
  assert_int_equal(occupancy.threads, occupancy.max_threads);
  assert_int_equal(kjit_get_occupancy(made, (uint32_t[3]){ 2048, 1, 1 }, 0, &occupancy),
                   KJIT_ERROR_LAUNCH);
  assert_string_equal(
    last_message(*state),
    "kernel `axpy`: kjit_get_occupancy: the number of threads in x is 2048; the maximum is 1024");
  expect_ok(*state, kjit_copy_specialization_binary(made, &binary, &size_bytes));
  assert_int_equal(size_bytes, 4);
  assert_memory_equal(binary, "axpy", 4);
  kjit_free(*state, binary);
  assert_int_equal(kjit_copy_specialization_code(made, KJIT_STAGE_PTX, &binary, &size_bytes),
                   KJIT_ERROR_UNSUPPORTED);
  assert_int_equal(kjit_copy_specialization_code(made, (kjit_stage)99, &binary, &size_bytes),
                   KJIT_ERROR_MISUSE);
  expect_ok(*state, kjit_copy_specialization_code(made, KJIT_STAGE_LLVM, &binary, &size_bytes));
  kjit_free(*state, binary);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    TEST(test_fallback_code),
    TEST(test_last_variant),
    TEST(test_failing_improvement),
    TEST(test_variant_limit),
    TEST(test_async),
    TEST(test_async_at_the_end),
    TEST(test_waiting_in_callback),
    TEST(test_overtaking),
    TEST(test_all),
    TEST(test_all_in_parallel),
    TEST(test_sealed),
    TEST(test_ambiguous),
    TEST(test_sealed_layouts),
    TEST(test_eviction),
    TEST(test_eviction_of_prepared),
    TEST(test_eviction_of_improvement),
    TEST(test_eviction_under_launches),
    TEST(test_many_threads),
    TEST(test_queries),
#undef TEST
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
