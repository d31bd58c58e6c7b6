/* Signatures that are compiled ahead of time and in the background, and sealed kernels. */
#include "variant_launches.h"

/* ---- ahead of time ---- */

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

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = {
    TEST(test_async),
    TEST(test_async_at_the_end),
    TEST(test_waiting_in_callback),
    TEST(test_overtaking),
    TEST(test_all),
    TEST(test_all_in_parallel),
    TEST(test_sealed),
    TEST(test_ambiguous),
    TEST(test_sealed_layouts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
