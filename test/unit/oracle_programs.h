/* Small programs that the oracle checks: oracle_reuse_test.c and oracle_lifetime_test.c have one
 * for each defect that was found in kjit. To run one program and print all calls, give its name:
 *
 *   build/ci/test/unit/oracle_reuse_test shared_slot
 *
 * Calls of kjit are indented by two columns, and calls of the driver by six. The last line is the
 * violation: the owner of the memory, the operation and the stream that use it, and the operation
 * that did not wait for this use. A row of the table that names a defect must end in a violation.
 * When the defect is mended, the name has to be removed from the row, because such a program must
 * not pass. */
#ifndef ORACLE_PROGRAMS_H
#define ORACLE_PROGRAMS_H

#include "oracle_process.h"

static const int64_t shape[2] = { 32, 32 };

static inline world_stream non_blocking(uint32_t device)
{
  return world_make_stream(device, KJIT_STREAM_NON_BLOCKING, false);
}

static inline world_array array_on(uint32_t device, kjit_stream *stream)
{
  return world_make_array(device, KJIT_MEMORY_DEVICE, shape, stream);
}

static inline void launch_on(const world_stream *stream, world_array *array)
{
  (void)world_launch(stream->device, stream->stream, &array, 1);
}

static inline world_array every_other_column(const world_array *array)
{
  return world_slice(array, (kjit_array_slice[]){ { 0, 32, 1 }, { 0, 32, 2 } });
}

/* An action of another thread at a certain moment. If the thread has to wait for a lock, the action
 * comes later. */
static void (*elsewhere)(void);
static void *run_elsewhere(void *user)
{
  (void)user;
  oracle_here.thread = 2;
  elsewhere();
  return NULL;
}
static pthread_t late_thread;
static bool is_late; /* it is joined when the program ends */
static inline void do_elsewhere(void)
{
  pthread_t thread;
  struct timespec until;
  if (pthread_create(&thread, NULL, run_elsewhere, NULL)) abort();
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += 500000000; /* a busy machine starts the thread late */
  until.tv_sec += until.tv_nsec / 1000000000;
  until.tv_nsec %= 1000000000;
  is_late = pthread_timedjoin_np(thread, NULL, &until) != 0;
  late_thread = thread;
}

/* ---- running them ---- */

typedef struct row {
  const char *name;
  void (*program)(void);
  /* name of the defect that makes this program fail; NULL means that the program must pass */
  const char *broken;
} row;

static void run_row(void *user)
{
  const row *at = user;
  bool is_traced = oracle.is_traced;
  oracle_reset_state();
  oracle.is_traced = is_traced;
  world_open(0, false);
  at->program();
  if (is_late) pthread_join(late_thread, NULL);
  world_close();
}

static int show(const row *at)
{
  oracle.is_traced = true;
  bool has_passed = world_run(run_row, (void *)(uintptr_t)at);
  printf("%.*s", (int)oracle_result->trace_bytes, oracle_result->trace);
  printf("%s: %s\n", at->name, has_passed ? "no violation" : oracle_result->message);
  return has_passed ? 0 : 1;
}

/* The body of main: runs the programs of the table. */
static int run_programs(const row *rows, size_t row_count, int count, char **arguments)
{
  int failures = 0;
  world_fix_addresses(arguments);
  for (size_t i = 0; i < row_count; i++) {
    const row *at = &rows[i];
    if (count > 1) {
      if (!strcmp(arguments[1], at->name)) return show(at);
      continue;
    }
    bool has_passed = world_run(run_row, (void *)(uintptr_t)at);
    bool is_expected = has_passed == !at->broken;
    printf("%s %s%s%s: %s\n", is_expected ? "ok  " : "FAIL", at->name,
           at->broken ? ", known as " : "", at->broken ? at->broken : "",
           !has_passed  ? oracle_result->message
           : at->broken ? "passes now: empty its third column"
                        : "no violation");
    failures += !is_expected;
  }
  return failures || count > 1;
}

#endif
