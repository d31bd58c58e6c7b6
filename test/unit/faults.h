/* The shared part of tests in which every driver call fails in turn. A test defines steps with the
 * calls of an application. The functions here let each driver call in these steps fail once, with
 * each kind of error. The failure is reported, no object is leaked, and the same step works
 * afterwards.
 *
 * Before a test includes this header, it defines struct objects, which has the objects that use_all
 * creates, and the members kjit_context *context and int step, failed_in. step counts the steps
 * that have begun. failed_in is the step in which a driver call failed, or 0. The test also defines
 * the functions that are declared below. */
#ifndef FAULTS_H
#define FAULTS_H

#include "gpu_test.h"

#define STEP(call) \
  do { \
    o->step++; \
    kjit_status status_ = (call); \
    if (cuda.failed && !o->failed_in) o->failed_in = o->step; \
    if (status_ != KJIT_OK) return status_; \
  } while (0)

typedef struct objects objects;
/* opens a context with the fake driver; NULL means that a call failed */
static kjit_context *open_context(int kind);
static kjit_status use_all(objects *o); /* STEPs */
/* releases the objects that use_all has created, also after a failure */
static void release_all(objects *o);
/* Returns whether use_all may succeed although the call has failed, because another call had the
 * same effect. */
static bool is_excused(const objects *o, const char *call, int fail_with);

/* Returns whether the failure of a call is not reported: calls that enter the device to release an
 * object, and calls that order or wait for the uses of released memory. */
static inline bool is_quiet(const char *call)
{
  static const char *const quiet[] = { "cuCtxGetCurrent",   "cuCtxSetCurrent",
                                       "cuCtxSynchronize",  "cuStreamSynchronize",
                                       "cuStreamQuery",     "cuEventCreate",
                                       "cuEventRecord",     "cuStreamWaitEvent",
                                       "cuStreamEndCapture" };
  for (size_t i = 0; i < sizeof quiet / sizeof *quiet; i++)
    if (!strcmp(call, quiet[i])) return true;
  return false;
}

/* Returns whether kjit makes the call again after it has run out of memory and the cached memory
 * was returned. */
static inline bool is_asked_again(const char *call)
{
  static const char *const calls[] = { "cuMemAlloc",         "cuMemHostAlloc", "cuMemAllocManaged",
                                       "cuModuleLoadDataEx", "cuCtxSetLimit",  "cuGraphInstantiate",
                                       "cuGraphLaunch",      "cuLaunchKernel", "cuLaunchKernelEx" };
  bool is_found = false;
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
    is_found = is_found || !strcmp(calls[i], call);
  return is_found;
}

/* Returns whether the error is reported. Remarks may precede the error. */
static inline bool is_told(kjit_context *context, int step, const char *what)
{
  char *text = kjit_copy_diagnostics_text(context);
  bool is_found = text && strstr(text, what);
  if (!is_found)
    print_error("%s failed in step %d, and was told as: %s\n", cuda.failed, step, text ? text : "");
  free(text);
  return is_found;
}

static inline int count_left(void)
{
  return cuda.allocations + cuda.pinned + cuda.modules + cuda.links + cuda.streams + cuda.events +
         cuda.graphs + cuda.executables + cuda.opened;
}

/* Runs one trial. o->context is NULL if the driver could not be opened. */
static inline kjit_status run_trial(objects *o, int kind, int fail_at, int fail_with)
{
  *o = (objects){ 0 };
  cuda =
    (fake_driver){ .devices = 2, .fail_at = fail_at, .fail_with = fail_with, .stack_bytes = 1024 };
  o->context = open_context(kind);
  return o->context ? use_all(o) : KJIT_OK;
}

/* Lets a driver call fail. Returns false if there were fewer calls, so none has failed. */
static inline bool try_failure(int kind, int fail_at, int fail_with)
{
  objects o;
  kjit_status status = run_trial(&o, kind, fail_at, fail_with);
  if (o.context) {
    bool is_known = !cuda.failed || status == KJIT_OK || is_told(o.context, o.step, cuda.failed);
    bool is_fine = !cuda.failed || status != KJIT_OK || is_quiet(cuda.failed) ||
                   (fail_with == CUDA_OUT_OF_MEMORY && is_asked_again(cuda.failed)) ||
                   cuda.failed_elsewhere || /* the launch is repeated in its own context */
                   is_excused(&o, cuda.failed, fail_with);
    if (!is_fine)
      print_error("%s failed in step %d, and nobody was told\n", cuda.failed, o.failed_in);
    assert_true(is_known && is_fine);
    release_all(&o);
    objects again = { .context = o.context };
    if (cuda.failed) expect_ok(o.context, use_all(&again)); /* nothing is broken */
    release_all(&again);
    kjit_destroy_context(o.context);
  }
  /* One object is left if its release could not be called; for printed lines these are a ring and
   * its counter. If the driver does not report whether the application captures a stream, kjit does
   * not wait. */
  bool is_kept =
    cuda.failed && (is_quiet(cuda.failed) || !strcmp(cuda.failed, "cuStreamIsCapturing"));
  int may_lose = is_kept ? 2 : 0, left = count_left();
  if (left > may_lose)
    print_error("after %s (call %d, step %d): %d left\n", cuda.failed ? cuda.failed : "nothing",
                fail_at, o.failed_in, left);
  assert_in_range(left, 0, may_lose);
  assert_int_equal(cuda.retained, 0);
  fake_delete_all();
  return cuda.failed != NULL;
}

static inline void try_failures(int kind, int least)
{
  static const int errors[] = { CUDA_UNKNOWN, CUDA_OUT_OF_MEMORY };
  for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
    int fail_at = 1;
    while (try_failure(kind, fail_at, errors[i])) fail_at++;
    assert_true(fail_at > least);
  }
}

/* Each call that releases an object fails once, as after a fault that another library has caused.
 * The failure is not reported, because the caller could not handle it, and no other object is
 * left. */
static inline bool try_release(int kind, int fail_at)
{
  objects o = { 0 };
  cuda = (fake_driver){
    .devices = 2, .fail_release_at = fail_at, .fail_with = CUDA_UNKNOWN, .stack_bytes = 1024
  };
  o.context = open_context(kind);
  expect_ok(o.context, use_all(&o));
  release_all(&o);
  kjit_destroy_context(o.context);
  bool is_one = cuda.failed != NULL;
  int left = count_left() + cuda.retained;
  if (left != is_one)
    print_error("after %s (call %d): %d left\n", is_one ? cuda.failed : "nothing", fail_at, left);
  assert_int_equal(left, is_one);
  fake_delete_all();
  return is_one;
}

static inline void try_releases(int kind, int least)
{
  int fail_at = 1;
  while (try_release(kind, fail_at)) fail_at++;
  assert_true(fail_at > least);
}

/* After a fault every call returns the fault until the device is reset. Then all steps work
 * again. */
static inline bool try_fault(int kind, int fail_at)
{
  objects o;
  kjit_status status = run_trial(&o, kind, fail_at, CUDA_ILLEGAL_ADDRESS);
  if (o.context) {
    assert_true(status == KJIT_OK || is_told(o.context, o.step, "CUDA_ERROR_ILLEGAL_ADDRESS"));
    release_all(&o);
    for (int32_t i = 0; i < 2 && cuda.failed; i++) {
      kjit_device *device;
      if (kjit_get_device(o.context, KJIT_DEVICE_CUDA, i, &device) == KJIT_OK &&
          kjit_reset_device(device) != KJIT_OK)
        expect_ok(o.context, kjit_reset_device(device)); /* the first trial met the fault */
    }
    objects again = { .context = o.context };
    if (cuda.failed) expect_ok(o.context, use_all(&again));
    release_all(&again);
    /* the fault occurs when the context ends: the device is not reset, and the driver keeps the
     * objects on it */
    bool is_lost = !cuda.failed;
    kjit_destroy_context(o.context);
    int left = is_lost && cuda.failed ? 0 : count_left();
    if (left)
      print_error("after %s (call %d, step %d): %d left\n", cuda.failed ? cuda.failed : "nothing",
                  fail_at, o.failed_in, left);
    assert_int_equal(left, 0);
  }
  assert_int_equal(cuda.retained, 0);
  fake_delete_all();
  return cuda.failed != NULL;
}

static inline void try_faults(int kind)
{
  int fail_at = 1;
  while (try_fault(kind, fail_at)) fail_at++;
}

/* ---- all trials for one kind of application, in which at least this number of calls can fail
 * ---- */

static inline void test_every_failure_of(void **least) { try_failures(0, **(int **)least); }
static inline void test_every_release_of(void **least)
{
  (void)least;
  try_releases(0, 20);
}
static inline void test_faults_of(void **least)
{
  (void)least;
  try_faults(0);
}

static inline int run_fault_tests(int least)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test_prestate(test_every_failure_of, &least),
                                      cmocka_unit_test(test_every_release_of),
                                      cmocka_unit_test(test_faults_of) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
