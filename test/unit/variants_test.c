/* Tests several specializations for the same types. A launch immediately runs code for fewer facts,
 * and later launches run better code. The tests also cover limits of the number of variants, and
 * unloading. */
#include "variant_launches.h"

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
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = {
    TEST(test_fallback_code),
    TEST(test_last_variant),
    TEST(test_failing_improvement),
    TEST(test_variant_limit),
    TEST(test_eviction),
    TEST(test_eviction_of_prepared),
    TEST(test_eviction_of_improvement),
    TEST(test_eviction_under_launches),
    TEST(test_many_threads),
    TEST(test_queries),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
