/* Handles Ctrl-C during a call of libkjit. Python's own signal handler only sets a flag, which the
 * interpreter tests after the call. So while the main thread is in a call that may take long, the
 * binding has its own handler. It interrupts the call, and after the call the binding raises the
 * signal again for Python's handler. */
#include "binding.h"

#include <signal.h>
#include <unistd.h>

/* The context of the main thread's call, and whether the signal arrived during it. */
static kjit_context *_Atomic current;
static atomic_int is_hit;

static void end_call(int number)
{
  (void)number;
  kjit_context *context = atomic_load(&current);
  atomic_store(&is_hit, 1);
  if (context) kjit_interrupt(context);
}

/* Returns whether this is the main thread, which handles signals. The only thread of a forked child
 * is its main thread. */
static int is_main_thread(void) { return gettid() == getpid(); }

int binding_begin_interruptible(context_object *context, binding_interruptible *saved)
{
  saved->is_begun = 0;
  struct sigaction action = { .sa_handler = end_call };
  if (!is_main_thread() || sigaction(SIGINT, NULL, &saved->before)) return 0;
  /* an ignored signal stays ignored; in a nested call, the outer call handles the signal */
  if (saved->before.sa_handler == SIG_IGN || saved->before.sa_handler == end_call) return 0;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  atomic_store(&is_hit, 0);
  atomic_store(&current, context->context);
  saved->is_begun = !sigaction(SIGINT, &action, NULL);
  return saved->is_begun;
}

int binding_end_interruptible(binding_interruptible *saved)
{
  if (!saved->is_begun) return 0;
  (void)sigaction(SIGINT, &saved->before, NULL);
  atomic_store(&current, NULL);
  if (!atomic_exchange(&is_hit, 0)) return 0;
  PyErr_SetInterruptEx(SIGINT);
  return PyErr_CheckSignals();
}

int binding_finish_interruptible(context_object *context, kjit_status status,
                                 binding_interruptible *saved)
{
  if (binding_end_interruptible(saved)) {
    /* the printed lines and warnings of the call are delivered nevertheless */
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    if (binding_finish(context, KJIT_OK)) PyErr_Clear();
    PyErr_Restore(type, value, trace);
    return -1;
  }
  return binding_finish(context, status);
}
