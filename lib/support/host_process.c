/* Interaction with the application's process: forks, late releases of objects, signals caused by
 * writes. */
#include "support/host_process.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* ---- fork ---- */

_Atomic uint32_t kj_forks;

const kjit_diagnostic kj_forked_diagnostic = {
  .size_bytes = sizeof kj_forked_diagnostic,
  .severity = KJIT_SEVERITY_ERROR,
  .status = KJIT_ERROR_FORKED,
  .message = "the context was created before fork(), and a child process cannot use it; create a "
             "context in the child process"
};

static pthread_mutex_t remains_mutex = PTHREAD_MUTEX_INITIALIZER;
static kj_remains *all_remains; /* under remains_mutex */

/* Runs in a child process after a fork. The mutex is initialized again, because another thread of
 * the parent may have held it and may have been changing the list. */
static void begin_child(void)
{
  atomic_fetch_add(&kj_forks, 1);
  pthread_mutex_init(&remains_mutex, NULL);
  all_remains = NULL;
}

static void watch(void) { (void)pthread_atfork(NULL, NULL, begin_child); }

void kj_watch_forks(void)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, watch);
}

/* ---- objects that the application releases after their context ---- */

uint32_t kj_keep_remains(kj_remains *remains, void *memory)
{
  *remains = (kj_remains){ .memory = memory };
  pthread_mutex_lock(&remains_mutex);
  remains->next = all_remains;
  if (remains->next) remains->next->previous = remains;
  all_remains = remains;
  pthread_mutex_unlock(&remains_mutex);
  return atomic_load(&kj_forks);
}

void kj_drop_remains(kj_remains *remains, uint32_t forks)
{
  if (forks != atomic_load(&kj_forks)) return;
  pthread_mutex_lock(&remains_mutex);
  if (remains->next) remains->next->previous = remains->previous;
  if (remains->previous) remains->previous->next = remains->next;
  else all_remains = remains->next;
  pthread_mutex_unlock(&remains_mutex);
  free(remains->memory);
}

size_t kj_count_remains(void)
{
  size_t count = 0;
  pthread_mutex_lock(&remains_mutex);
  for (const kj_remains *at = all_remains; at; at = at->next) count++;
  pthread_mutex_unlock(&remains_mutex);
  return count;
}

/* Runs when the library is unloaded. After that, the application cannot release objects. */
__attribute__((destructor)) static void free_remains(void)
{
  for (kj_remains *at = all_remains, *next; at; at = next) {
    next = at->next;
    free(at->memory);
  }
  all_remains = NULL;
}

/* ---- write ---- */

static bool write_all(int file, const char *bytes, size_t size_bytes)
{
  while (size_bytes) {
    ssize_t count = write(file, bytes, size_bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes += count;
    size_bytes -= (size_t)count;
  }
  return true;
}

/* If a file grows beyond its size limit, the signal SIGXFSZ would end the process, so the signal is
 * blocked and then consumed. */
bool kj_write_quietly(int file, const void *bytes, size_t size_bytes)
{
  sigset_t signals, previous, pending;
  sigemptyset(&signals);
  sigaddset(&signals, SIGXFSZ);
  bool is_held = !pthread_sigmask(SIG_BLOCK, &signals, &previous);
  bool was_pending = !sigpending(&pending) && sigismember(&pending, SIGXFSZ) == 1;
  bool is_written = write_all(file, bytes, size_bytes);
  int failure = errno;
  if (is_held && !is_written && !was_pending)
    (void)sigtimedwait(&signals, NULL, &(struct timespec){ 0 });
  if (is_held) (void)pthread_sigmask(SIG_SETMASK, &previous, NULL);
  errno = failure;
  return is_written;
}

uint64_t kj_clock_ns(void)
{
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

uint64_t kj_deadline_ns(uint64_t limit_ns)
{
  uint64_t deadline;
  return __builtin_add_overflow(kj_clock_ns(), limit_ns, &deadline) ? UINT64_MAX : deadline;
}
