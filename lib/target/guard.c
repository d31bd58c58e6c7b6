/* LLVM's bitcode reader believes much of what it reads: a damaged file may make it follow a wild
 * pointer. What reads files of others runs under a guard, as LLVM's own tools do it: a fault of
 * this thread meanwhile comes back as a failure, and what the reader has begun is left as it is.
 * Faults of other threads go where they always went. */
#include "target/guard.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>

/* a handler that is called because the stack is full needs another one */
enum { STACK_BYTES = 64 * 1024 };

static const int signals[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };
enum { SIGNALS = sizeof signals / sizeof *signals };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* held while the handlers are ours */
static struct sigaction previous[SIGNALS];
static _Thread_local sigjmp_buf *target;

void kj_fault_guarded(void)
{
  if (target) siglongjmp(*target, 1);
}

static void on_fault(int signal)
{
  kj_fault_guarded();
  for (int i = 0; i < SIGNALS; i++)
    if (signals[i] == signal) sigaction(signal, &previous[i], NULL);
  if (signal == SIGABRT) raise(signal); /* the others happen again */
}

static bool run_guarded(void (*run)(void *data), void *data)
{
  sigjmp_buf here;
  bool has_returned = false;
  if (sigsetjmp(here, 1) == 0) {
    target = &here;
    run(data);
    has_returned = true;
  }
  target = NULL;
  return has_returned;
}

bool kj_run_guarded(void (*run)(void *data), void *data)
{
  struct sigaction ours = { .sa_handler = on_fault, .sa_flags = SA_ONSTACK | SA_NODEFER };
  stack_t stack = { .ss_sp = malloc(STACK_BYTES), .ss_size = STACK_BYTES }, outer;
  bool has_stack = stack.ss_sp && sigaltstack(&stack, &outer) == 0;
  sigemptyset(&ours.sa_mask);
  pthread_mutex_lock(&mutex);
  for (int i = 0; i < SIGNALS; i++) sigaction(signals[i], &ours, &previous[i]);
  bool has_returned = run_guarded(run, data);
  for (int i = 0; i < SIGNALS; i++) sigaction(signals[i], &previous[i], NULL);
  pthread_mutex_unlock(&mutex);
  if (has_stack) sigaltstack(&outer, NULL);
  free(stack.ss_sp);
  return has_returned;
}
