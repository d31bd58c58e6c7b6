#define _GNU_SOURCE
#include <driver/progress.h>

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* The state of the progress line. A process has one such line, because it has one stderr. */
static struct {
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool is_running, is_stopping, is_silent;
  const char *what; /* protected by the lock */
  uint64_t total;
  struct timespec start;
  atomic_uint_fast64_t done;
  bool line_is_open;
} progress = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void write_line(int64_t seconds)
{
  bool terminal = isatty(STDERR_FILENO);
  uint64_t done = atomic_load(&progress.done);
  fprintf(stderr, "%s%s: %s: %lld s", terminal ? "\r" : "", program_invocation_short_name,
          progress.what, (long long)seconds);
  if (progress.total)
    fprintf(stderr, ", %llu of %llu", (unsigned long long)done, (unsigned long long)progress.total);
  fputs(terminal ? "  " : "\n", stderr);
  fflush(stderr);
  progress.line_is_open = terminal;
}

/* On a terminal the line is updated each second. In a log file lines appear after 1, 2, 4, 8 ...
 * seconds. */
static void *run(void *unused)
{
  (void)unused;
  pthread_mutex_lock(&progress.lock);
  int64_t shown = 0;
  while (!progress.is_stopping) {
    struct timespec now, until = progress.start;
    clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t elapsed = now.tv_sec - progress.start.tv_sec - (now.tv_nsec < progress.start.tv_nsec);
    if (elapsed < shown) shown = 0; /* another activity has begun meanwhile */
    if (progress.what && elapsed > shown && (isatty(STDERR_FILENO) || elapsed >= 2 * shown))
      write_line(shown = elapsed);
    until.tv_sec += elapsed + 1;
    pthread_cond_timedwait(&progress.changed, &progress.lock, &until);
  }
  pthread_mutex_unlock(&progress.lock);
  return NULL;
}

static void start_thread(void)
{
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&progress.changed, &attributes);
  pthread_condattr_destroy(&attributes);
  progress.is_stopping = false;
  /* if the thread cannot be created, only the progress line is missing */
  progress.is_running = pthread_create(&progress.thread, NULL, run, NULL) == 0;
}

void tool_silence_progress(void) { progress.is_silent = true; }

void tool_progress(const char *what, uint64_t total)
{
  if (progress.is_silent) return;
  pthread_mutex_lock(&progress.lock);
  progress.what = what;
  progress.total = total;
  clock_gettime(CLOCK_MONOTONIC, &progress.start);
  atomic_store(&progress.done, 0);
  pthread_mutex_unlock(&progress.lock);
  if (!progress.is_running) start_thread();
  else pthread_cond_signal(&progress.changed);
}

void tool_progress_at(uint64_t done)
{
  atomic_store_explicit(&progress.done, done, memory_order_relaxed);
}

void tool_stop_progress(void)
{
  if (!progress.is_running) return;
  pthread_mutex_lock(&progress.lock);
  progress.is_stopping = true;
  progress.what = NULL;
  pthread_cond_signal(&progress.changed);
  pthread_mutex_unlock(&progress.lock);
  pthread_join(progress.thread, NULL);
  pthread_cond_destroy(&progress.changed);
  progress.is_running = false;
  if (progress.line_is_open) fputs("\r\033[K", stderr);
  progress.line_is_open = false;
}
