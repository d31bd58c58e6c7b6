/* Named ranges as a profiler receives them: names, nesting, threads; without a profiler, with a
 * missing one, and with one that refuses to start. Each case has its own process, because a process
 * looks for a profiler only once. */
#include "kj_test.h"

#include <dlfcn.h>
#include <kjit/kjit.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__has_include)
#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define HAS_HEADER 1
#endif
#endif

static char recorder[4096];

/* Beside this program. */
static void find_recorder(void)
{
  ssize_t length = readlink("/proc/self/exe", recorder, sizeof recorder - 32);
  assert_true(length > 0);
  recorder[length] = 0;
  strcpy(strrchr(recorder, '/'), "/nvtx_recorder.so");
}

static const char *recorded(void)
{
  void *library = dlopen(recorder, RTLD_NOW | RTLD_NOLOAD);
  if (!library) return "";
  const char *(*get)(void);
  *(void **)&get = dlsym(library, "nvtx_recorder_text");
  return get();
}

static kjit_context *make_context(void)
{
  kjit_context *context = NULL;
  kjit_config config = { .size_bytes = sizeof config };
  config.cache_directory = "";
  if (kjit_create_context(&config, &context) != KJIT_OK) abort();
  return context;
}

/* Runs a test in a child process and fails if the child fails. */
static void in_a_process(const char *path, void (*test)(void))
{
  fflush(NULL);
  pid_t child = fork();
  assert_true(child >= 0);
  if (!child) {
    if (path) setenv("NVTX_INJECTION64_PATH", path, 1);
    else unsetenv("NVTX_INJECTION64_PATH");
    test();
    _exit(0);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
}

#define EXPECT(condition) \
  do { \
    if (!(condition)) \
      fprintf(stderr, "line %d: %s\n%s", __LINE__, #condition, recorded()), _exit(1); \
  } while (0)

/* ---- with a profiler ---- */

static void *run_thread(void *context)
{
  long *id = malloc(sizeof *id);
  *id = syscall(SYS_gettid);
  EXPECT(kjit_begin_range(context, "of a thread") == 1);
  kjit_end_range(context);
  return id;
}

static void tell_ranges(void)
{
  kjit_context *context = make_context(), *other = make_context();
  EXPECT(!*recorded()); /* the first range loads the profiler */
  EXPECT(kjit_begin_range(context, "outer") == 1);
  EXPECT(kjit_begin_range(other, "inner, \303\251") == 2);
  pthread_t thread;
  void *thread_id;
  EXPECT(pthread_create(&thread, NULL, run_thread, context) == 0);
  EXPECT(pthread_join(thread, &thread_id) == 0);
  kjit_end_range(other);
  EXPECT(kjit_begin_range(context, "") == 2);
  kjit_end_range(context);
  EXPECT(kjit_begin_range(context, NULL) == 0 && kjit_begin_range(NULL, "nobody's") == 0);
  kjit_end_range(NULL);
  kjit_end_range(context);
  char expected[512];
  long here = syscall(SYS_gettid), there = *(long *)thread_id;
  free(thread_id);
  snprintf(expected, sizeof expected,
           "%ld push outer\n%ld push inner, \303\251\n%ld push of a thread\n%ld pop\n%ld pop\n%ld "
           "push \n%ld pop\n%ld pop\n",
           here, here, there, there, here, here, here, here);
  EXPECT(!strcmp(recorded(), expected));
  kjit_destroy_context(other);
  kjit_destroy_context(context);
}

static void test_ranges(void **state)
{
  (void)state;
  in_a_process(recorder, tell_ranges);
}

enum { THREADS = 8, RANGES = 100 };

static void *run_many(void *context)
{
  for (int i = 0; i < RANGES; i++) {
    EXPECT(kjit_begin_range(context, "x") == 1);
    kjit_end_range(context);
  }
  return NULL;
}

/* All threads begin their first range at the same time. The profiler starts once. */
static void tell_from_threads(void)
{
  kjit_context *context = make_context();
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++)
    EXPECT(pthread_create(&threads[i], NULL, run_many, context) == 0);
  for (int i = 0; i < THREADS; i++) EXPECT(pthread_join(threads[i], NULL) == 0);
  size_t lines = 0;
  for (const char *at = recorded(); (at = strchr(at, '\n')); at++) lines++;
  EXPECT(lines == (size_t)THREADS * RANGES * 2);
  void *library = dlopen(recorder, RTLD_NOW | RTLD_NOLOAD);
  int (*starts)(void);
  *(void **)&starts = dlsym(library, "nvtx_recorder_starts");
  EXPECT(starts() == 1);
  kjit_destroy_context(context);
}

static void test_threads(void **state)
{
  (void)state;
  in_a_process(recorder, tell_from_threads);
}

/* A context of the parent reports no ranges in a child. */
static void fork_in_range(void)
{
  kjit_context *context = make_context();
  EXPECT(kjit_begin_range(context, "parent") == 1);
  pid_t child = fork();
  if (!child) {
    EXPECT(kjit_begin_range(context, "child") == 0);
    kjit_end_range(context);
    EXPECT(!strstr(recorded(), "child") && !strstr(recorded(), "pop"));
    _exit(0);
  }
  int status;
  EXPECT(waitpid(child, &status, 0) == child && status == 0);
  kjit_end_range(context);
  kjit_destroy_context(context);
}

static void test_fork(void **state)
{
  (void)state;
  in_a_process(recorder, fork_in_range);
}

/* NVIDIA's own header, if it is installed, in the same process and with the same profiler: both
 * count ranges together. */
static void tell_with_header(void)
{
#ifdef HAS_HEADER
  kjit_context *context = make_context();
  EXPECT(nvtxRangePushA("the host's") == 0);
  EXPECT(kjit_begin_range(context, "kjit's") == 2);
  EXPECT(nvtxRangePushA("the host's again") == 2);
  EXPECT(nvtxRangePop() == 2);
  kjit_end_range(context);
  EXPECT(nvtxRangePop() == 0);
  kjit_destroy_context(context);
#endif
}

static void test_header(void **state)
{
  (void)state;
#ifndef HAS_HEADER
  skip();
#else
  assert_int_equal(NVTX_CBID_CORE_RangePushA, 9);
  assert_int_equal(NVTX_CBID_CORE_RangePop, 11);
  assert_int_equal(NVTX_VERSION, 3);
#endif
  in_a_process(recorder, tell_with_header);
}

/* ---- without ---- */

static void tell_nobody(void)
{
  kjit_context *context = make_context();
  for (int i = 0; i < 2; i++) {
    EXPECT(kjit_begin_range(context, "a part") == 0);
    kjit_end_range(context);
  }
  EXPECT(!*recorded());
  kjit_destroy_context(context);
}

static void refuse(void)
{
  setenv("NVTX_RECORDER_REFUSES", "1", 1);
  tell_nobody();
  EXPECT(!dlopen(recorder, RTLD_NOW | RTLD_NOLOAD)); /* closed again */
}

static void test_nobody(void **state)
{
  (void)state;
  in_a_process(NULL, tell_nobody);
  in_a_process("", tell_nobody);
  in_a_process("/nowhere/profiler.so", tell_nobody);
  in_a_process("libm.so.6", tell_nobody); /* no profiler */
  in_a_process(recorder, refuse);
}

int main(void)
{
  find_recorder();
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_ranges), cmocka_unit_test(test_threads), cmocka_unit_test(test_fork),
    cmocka_unit_test(test_header), cmocka_unit_test(test_nobody),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
