/* KJ_ASSERT: in builds with assertions, a false condition ends the process and prints the condition
 * and its location; in other builds it is not evaluated. The same holds for locks that are taken in
 * the wrong order, or held while application code is called. */
#include "kj_test.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "code/disk.h"
#include "support/assert.h"
#include "support/lock.h"

static int evaluations;

static int count(int value)
{
  evaluations++;
  return value;
}

static void test_evaluated_where_on(void **state)
{
  (void)state;
  evaluations = 0;
  KJ_ASSERT(count(1) == 1);
  assert_int_equal(evaluations, KJ_HAS_ASSERTIONS ? 1 : 0);
}

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, last = PTHREAD_MUTEX_INITIALIZER;

static void break_assertion(void) { KJ_ASSERT(count(1) == 2); }
static void lock_in_wrong_order(void)
{
  kj_lock(&last, KJ_LOCK_POOL);
  kj_lock(&first, KJ_LOCK_STREAMS);
}
static void call_host_with_lock(void)
{
  kj_lock(&first, KJ_LOCK_STREAMS);
  kj_assert_no_locks();
}

static void unlock_another(void)
{
  kj_lock(&first, KJ_LOCK_STREAMS);
  kj_unlock(&last, KJ_LOCK_STREAMS);
}

static void finish_call_with_lock(void)
{
  kj_diagnostics diagnostics = { 0 };
  kj_lock(&first, KJ_LOCK_KERNEL);
  (void)ki_finish_call(NULL, &diagnostics); /* on_diagnostic */
}
static int load_nothing(void *user, const uint8_t *key, const void **data, size_t *size_bytes)
{
  (void)user, (void)key, (void)data, (void)size_bytes;
  return 0;
}
static void ask_store_with_lock(void)
{
  const kjit_cache_store store = { .size_bytes = sizeof store, .load = load_nothing };
  kjit_config config = { .size_bytes = sizeof config, .cache_store = &store };
  kj_disk_key key = { .text = (char[]){ "key" }, .size_bytes = 3 };
  kj_code code;
  kj_disk *disk = kj_open_disk(&config);
  kj_lock(&first, KJ_LOCK_SPECIALIZATION);
  (void)kj_fetch_entry(disk, &key, NULL, &code);
}

/* Runs the function in a child process and returns how the child ended, and its message in
 * `text`. */
static int break_in_child(void (*break_it)(void), char *text, size_t size)
{
  int pipes[2];
  assert_int_equal(pipe(pipes), 0);
  pid_t child = fork();
  if (child == 0) {
    signal(SIGABRT, SIG_DFL); /* cmocka's handler would go on with the next test */
    dup2(pipes[1], 2);
    break_it();
    _exit(0);
  }
  close(pipes[1]);
  size_t length = 0;
  for (ssize_t got; (got = read(pipes[0], text + length, size - 1 - length)) > 0;)
    length += (size_t)got;
  text[length] = 0;
  close(pipes[0]);
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  return status;
}

static void test_broken(void **state)
{
  (void)state;
  char text[4096];
  int status = break_in_child(break_assertion, text, sizeof text);
  if (!KJ_HAS_ASSERTIONS) {
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return;
  }
  assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
  assert_non_null(strstr(text, "count(1) == 2"));
  assert_non_null(strstr(text, "assert_test.c"));
}

static void test_locks(void **state)
{
  (void)state;
  char text[4096];
  kj_lock(&first, KJ_LOCK_STREAMS);
  kj_lock(&last, KJ_LOCK_POOL);
  kj_unlock(&first, KJ_LOCK_STREAMS); /* in any order */
  kj_unlock(&last, KJ_LOCK_POOL);
  kj_assert_no_locks();
  kj_lock(&first, KJ_LOCK_STREAMS);
  assert_int_equal(kj_is_locked_here(&first), KJ_HAS_ASSERTIONS);
  assert_false(kj_is_locked_here(&last));
  kj_unlock(&first, KJ_LOCK_STREAMS);
  assert_false(kj_is_locked_here(&first));
  void (*const wrong[])(void) = { lock_in_wrong_order, call_host_with_lock, finish_call_with_lock,
                                  ask_store_with_lock, unlock_another };
  size_t count = sizeof wrong / sizeof *wrong;
#ifdef __SANITIZE_THREAD__
  count--; /* ThreadSanitizer itself ends a process that unlocks a mutex that is not locked */
#endif
  for (size_t i = 0; i < count; i++) {
    int status = break_in_child(wrong[i], text, sizeof text);
    assert_int_equal(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, KJ_HAS_ASSERTIONS);
    assert_int_equal(strstr(text, "lock") != NULL, KJ_HAS_ASSERTIONS);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_evaluated_where_on),
    cmocka_unit_test(test_broken),
    cmocka_unit_test(test_locks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
