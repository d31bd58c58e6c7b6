/* Compiling threads of kjit, with a compiler that inspects the thread on which it runs: its stack,
 * whether the memory of the stack is released, its signals and its floating-point environment. Also
 * the number of threads, and an application thread that is cancelled while it waits. */
#include "kj_test.h"

#include <dirent.h>
#include <fenv.h>
#include <kjit/code.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "fake_compiler.h"

enum { MIB = 1 << 20, DEEP_MIB = 64, CALLERS = 12 };

/* The values that the last compilation has observed. */
static struct {
  pthread_t thread;
  size_t stack_mib;
  bool blocks_interrupt, blocks_fault;
  int rounding;
} seen;
static _Atomic int entered;
static _Atomic bool is_held;

/* Touches this number of MiB of the stack. */
static __attribute__((noinline)) void use_stack(int mib)
{
  volatile char bytes[MIB];
  for (size_t i = 0; i < sizeof bytes; i += 4096) bytes[i] = 1;
  if (mib > 1) use_stack(mib - 1);
  bytes[0]++;
}

static void look_at_thread(void)
{
  pthread_attr_t attributes;
  sigset_t blocked;
  void *low;
  char here;
  size_t bytes;
  pthread_getattr_np(pthread_self(), &attributes);
  pthread_attr_getstack(&attributes, &low, &bytes);
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_BLOCK, NULL, &blocked);
  seen.thread = pthread_self();
  seen.stack_mib = (size_t)(&here - (char *)low) / MIB;
  seen.blocks_interrupt = sigismember(&blocked, SIGINT) == 1;
  seen.blocks_fault = sigismember(&blocked, SIGSEGV) == 1;
  seen.rounding = fegetround();
}

static kjit_status compile_deep(kj_compiler *compiler, const kj_compile_request *request,
                                kj_diagnostics *diagnostics, kj_code *code)
{
  use_stack(DEEP_MIB);
  pthread_mutex_lock(&fake_mutex);
  look_at_thread();
  pthread_mutex_unlock(&fake_mutex);
  entered++;
  while (is_held) usleep(100);
  return fake_compile(compiler, request, diagnostics, code);
}

static int set_up(void **state)
{
  static kj_compiler_interface interface;
  kj_diagnostics diagnostics = { 0 };
  kjit_context *context = make_fake_context();
  interface = fake_interface;
  interface.compile = compile_deep;
  entered = 0;
  is_held = false;
  *state = context;
  return kj_use_compiler(context, &interface, &diagnostics) != KJIT_OK;
}

static int tear_down(void **state)
{
  is_held = false; /* left over from a test that has failed */
  kjit_destroy_context(*state);
  return 0;
}

/* Returns a field of /proc/self/status, in KiB or as a count. */
static long status_of(const char *field)
{
  char line[256];
  long value = -1;
  FILE *file = fopen("/proc/self/status", "r");
  assert_non_null(file);
  while (fgets(line, sizeof line, file))
    if (!strncmp(line, field, strlen(field))) sscanf(line + strlen(field), ": %ld", &value);
  fclose(file);
  return value;
}

static kjit_status compile(kjit_kernel *kernel)
{
  void *code = NULL;
  size_t size_bytes;
  kjit_status status = kjit_compile(kernel, "f32[:]", NULL, KJIT_STAGE_LLVM, &code, &size_bytes);
  free(code);
  return status;
}

static kjit_kernel *make_kernel(kjit_context *context)
{
  return kernel_of(parse(context, "kernel k(r) { r[0] = 1 }"), "k");
}

static void test_thread(void **state)
{
  kjit_kernel *kernel = make_kernel(*state);
  fesetround(FE_UPWARD);
  assert_int_equal(compile(kernel), KJIT_OK);
  assert_int_equal(fegetround(), FE_UPWARD);
  fesetround(FE_TONEAREST);
  assert_false(pthread_equal(seen.thread, pthread_self()));
  assert_true(seen.stack_mib >= 200);
  assert_true(seen.blocks_interrupt);
  assert_false(seen.blocks_fault);
  assert_int_equal(seen.rounding, FE_TONEAREST);
  pthread_t first = seen.thread;
  assert_int_equal(compile(kernel), KJIT_OK);
  assert_true(pthread_equal(seen.thread, first));
}

/* Sanitizers keep memory of their own for stacks. */
static void test_memory_is_given_back(void **state)
{
  kjit_kernel *kernel = make_kernel(*state);
  assert_int_equal(compile(kernel), KJIT_OK);
  long after = status_of("VmRSS"), most = status_of("VmHWM");
  assert_true(most - after > (DEEP_MIB - 8) * 1024L);
}

/* The caller gets the diagnostics from the other thread. */
static void test_diagnostics(void **state)
{
  kjit_kernel *kernel = make_kernel(*state);
  fake.fail = 1;
  assert_int_equal(compile(kernel), KJIT_ERROR_TYPE);
  assert_string_equal(last_message(*state), "the fake compiler refuses `k`");
  assert_int_equal(compile(kernel), KJIT_OK);
}

static void *compile_once(void *kernel) { return compile(kernel) == KJIT_OK ? kernel : NULL; }

/* Starts a caller with a stack of a fixed size, because the default size depends on the machine. */
static void start_caller(pthread_t *caller, kjit_kernel *kernel)
{
  pthread_attr_t attributes;
  assert_int_equal(pthread_attr_init(&attributes), 0);
  assert_int_equal(pthread_attr_setstacksize(&attributes, MIB), 0);
  assert_int_equal(pthread_create(caller, &attributes, compile_once, kernel), 0);
  pthread_attr_destroy(&attributes);
}

/* There are as many compiling threads as callers. Afterwards a few threads are kept. */
static void test_many(void **state)
{
  kjit_kernel *kernel = make_kernel(*state);
  pthread_t callers[CALLERS];
  long before = status_of("Threads");
  is_held = true;
  for (int i = 0; i < CALLERS; i++) start_caller(&callers[i], kernel);
  while (entered < CALLERS) usleep(100);
  assert_int_equal(status_of("Threads"), before + 2 * CALLERS);
  is_held = false;
  for (int i = 0; i < CALLERS; i++) {
    void *result;
    pthread_join(callers[i], &result);
    assert_non_null(result);
  }
  assert_true(status_of("Threads") <= before + 5);
}

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
static void test_no_more_threads(void **state)
{
  (void)state;
  skip(); /* a sanitizer needs a large address space */
}
#else
/* There is no address space for a second stack, so a second caller waits for the existing
 * thread. */
static void test_no_more_threads(void **state)
{
  enum { CALLER_MIB = 20, MIB_OF_KIB = 1024 };
  kjit_kernel *kernel = make_kernel(*state);
  pthread_t callers[CALLERS];
  void *results[CALLERS];
  struct rlimit before, limit;
  assert_int_equal(compile(kernel), KJIT_OK);
  assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
  limit = before;
  is_held = true;
  limit.rlim_cur = ((rlim_t)status_of("VmSize") / MIB_OF_KIB + (rlim_t)CALLERS * CALLER_MIB) * MIB;
  assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
  for (int i = 0; i < CALLERS; i++) start_caller(&callers[i], kernel);
  while (entered < 2) usleep(100);
  usleep(20000);
  assert_int_equal(entered, 2);
  is_held = false;
  for (int i = 0; i < CALLERS; i++) pthread_join(callers[i], &results[i]);
  assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
  for (int i = 0; i < CALLERS; i++) assert_non_null(results[i]);
}
#endif

/* The compilation uses the caller's memory, so the caller must exist until the compilation ends. */
static void test_cancelled_caller(void **state)
{
  kjit_kernel *kernel = make_kernel(*state);
  pthread_t caller;
  void *result;
  is_held = true;
  start_caller(&caller, kernel);
  while (!entered) usleep(100);
  pthread_cancel(caller);
  usleep(20000);
  is_held = false;
  pthread_join(caller, &result);
  assert_int_equal(compile(kernel), KJIT_OK);
  assert_int_equal(entered, 2);
}

static _Atomic int done;
static void note_done(void *user, kjit_status status, kjit_specialization *specialization)
{
  (void)user, (void)specialization;
  done += status == KJIT_OK;
}

/* Background threads have large stacks as well, so they compile without another thread. */
static void test_background(void **state)
{
  kjit_kernel *kernel = make_kernel(*state);
  kjit_device *cpu = NULL; /* the fake compiler makes no GPU code */
  assert_int_equal(kjit_get_device(*state, KJIT_DEVICE_CPU, 0, &cpu), KJIT_OK);
  long before = status_of("Threads");
  done = 0;
  assert_int_equal(kjit_specialize_async(kernel, cpu, "f32[:]", note_done, NULL), KJIT_OK);
  while (!done) usleep(100);
  assert_true(seen.stack_mib >= 200);
  /* the compiler exists already; the CPU's worker threads start at the first launch */
  assert_true(status_of("Threads") <= before + 2);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_memory_is_given_back, set_up, tear_down),
    cmocka_unit_test_setup_teardown(test_thread, set_up, tear_down),
    cmocka_unit_test_setup_teardown(test_diagnostics, set_up, tear_down),
    cmocka_unit_test_setup_teardown(test_many, set_up, tear_down),
    cmocka_unit_test_setup_teardown(test_no_more_threads, set_up, tear_down),
    cmocka_unit_test_setup_teardown(test_cancelled_caller, set_up, tear_down),
    cmocka_unit_test_setup_teardown(test_background, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
