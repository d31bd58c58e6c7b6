/* What a library must mind in a process that is not its own: forks, and signals of writing. */
#include "support/host_process.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

/* ---- fork ---- */

_Atomic uint32_t kj_forks;

const kjit_diagnostic kj_forked_diagnostic = {
  .size_bytes = sizeof kj_forked_diagnostic,
  .severity = KJIT_SEVERITY_ERROR,
  .status = KJIT_ERROR_FORKED,
  .message = "the context was made before this process was forked from another one; make a context "
             "in this process"
};

static void count_fork(void) { atomic_fetch_add(&kj_forks, 1); }

static void watch(void) { (void)pthread_atfork(NULL, NULL, count_fork); }

void kj_watch_forks(void)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, watch);
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

/* The signal would end the process: it is held back and taken. */
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
