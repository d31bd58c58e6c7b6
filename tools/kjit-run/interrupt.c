#include "interrupt.h"

#include <signal.h>
#include <sys/time.h>

static kjit_context *interrupted_context;
static volatile sig_atomic_t was_interrupted;
static struct sigaction before_interrupt, before_alarm;

static void interrupt(int signal)
{
  if (signal == SIGINT) was_interrupted = 1;
  kjit_interrupt(interrupted_context);
}

void run_begin_interrupts(kjit_context *context)
{
  struct sigaction once = { .sa_handler = interrupt, .sa_flags = SA_RESETHAND | SA_RESTART },
                   alarm = { .sa_handler = interrupt, .sa_flags = SA_RESTART };
  interrupted_context = context;
  sigaction(SIGINT, &once, &before_interrupt);
  sigaction(SIGALRM, &alarm, &before_alarm);
}

void run_end_interrupts(void)
{
  run_set_alarm(0);
  sigaction(SIGINT, &before_interrupt, NULL);
  sigaction(SIGALRM, &before_alarm, NULL);
}

bool run_was_interrupted(void) { return was_interrupted != 0; }

/* Repeats the interrupt every 0.1 s, because a call may start further launches. */
void run_set_alarm(uint64_t time_ns)
{
  enum { SECOND = 1000000000, MICROSECOND = 1000, AGAIN_US = 100000 };
  struct itimerval timer = { { 0, time_ns ? AGAIN_US : 0 },
                             { (time_t)(time_ns / SECOND),
                               (suseconds_t)(time_ns % SECOND / MICROSECOND) } };
  if (time_ns && !timer.it_value.tv_sec && !timer.it_value.tv_usec) timer.it_value.tv_usec = 1;
  setitimer(ITIMER_REAL, &timer, NULL);
}
