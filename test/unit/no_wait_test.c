/* A launch that may not wait does not wait for another thread that evicts code. */
#include <pthread.h>
#include <time.h>

#include "gpu_test.h"

static _Atomic bool holds_back, is_waiting, is_done;

static void pause_ms(long ms) { nanosleep(&(struct timespec){ 0, ms * 1000000 }, NULL); }

static int synchronize(void)
{
  is_waiting = holds_back;
  while (holds_back) pause_ms(1);
  return 0;
}

static void *find(void *user, const char *symbol)
{
  return strcmp(symbol, "cuCtxSynchronize") ? find_fake(user, symbol)
                                            : (void *)(uintptr_t)synchronize;
}

typedef struct launcher {
  kjit_kernel *kernel;
  kjit_launch_config config;
  kjit_arg argument;
  kjit_status status;
} launcher;

static void *launch(void *data)
{
  launcher *l = data;
  l->status = kjit_launch(l->kernel, &l->config, &l->argument, 1);
  if (l->config.flags) is_done = true;
  return NULL;
}

static void test_no_wait(void **state)
{
  (void)state;
  enum { LONG_MS = 60000 }; /* longer than a thread waits on a busy machine */
  kj_diagnostics diagnostics = { 0 };
  cuda = (fake_driver){ .devices = 1 };
  kjit_context *context = make_fake_context();
  context->config.code_limit_bytes = 1; /* enough for the code that was loaded last */
  assert_int_equal(kj_use_driver(context, find, NULL, &diagnostics), KJIT_OK);
  kjit_module *module = parse(context, "kernel a(x) { x[0] = 1 }\nkernel b(x) { x[0] = 2 }\n");
  kjit_array *array = make_vector(gpu(context, 0), 64, NULL);
  launcher waits = { .kernel = kernel_of(module, "b"),
                     .config = { .size_bytes = sizeof waits.config,
                                 .grid = { 1 },
                                 .block = { 32 } },
                     .argument = kjit_arg_array(array) },
           hurries = waits;
  hurries.kernel = kernel_of(module, "a");
  expect_ok(context, kjit_launch(hurries.kernel, &hurries.config, &hurries.argument, 1));
  hurries.config.flags = KJIT_LAUNCH_NO_WAIT;
  pthread_t threads[2];
  holds_back = true;
  assert_int_equal(pthread_create(&threads[0], NULL, launch, &waits), 0);
  while (!is_waiting) pause_ms(1);
  assert_int_equal(pthread_create(&threads[1], NULL, launch, &hurries), 0);
  for (int ms = 0; ms < LONG_MS && !is_done; ms++) pause_ms(1);
  bool was_done = is_done;
  holds_back = false;
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  assert_true(was_done);
  assert_int_equal(waits.status, KJIT_OK);
  kjit_release_array(array);
  kjit_release_module(module);
  kjit_destroy_context(context);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_no_wait) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
