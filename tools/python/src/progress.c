/* Lists the running calls of libkjit for kjit._progress. kjit._progress is a Python thread that
 * checks the list from time to time and shows a line about calls that take long. Listing a call
 * takes a few stores, or no time if progress is switched off. All data here is protected by the
 * interpreter lock, which a call holds at its beginning and end. */
#include "message_queue.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int binding_shows_progress;

/* List of the running calls. `generation` is the number of the process to which the calls
 * belong. */
static binding_call *first;
static uint64_t last_number;
static unsigned generation;
/* A callable that wakes the thread of kjit._progress once; NULL if the thread is awake or not
 * used. */
static PyObject *waker;
/* The kernel that was launched last, shown for a call that waits for a device; borrowed. */
static PyObject *last_launched;
/* The terminal that shows a line, or -1. */
static int line = -1;

/* Before a call returns, the progress thread removes the call's line if the line is not on a
 * terminal. The calling thread must not run Python code here, so it waits for the progress thread,
 * for a limited time. */
static struct {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  uint64_t ended, gone; /* `ended` is the number of ended calls that had such a line; `gone` is the
                           number of these calls whose line was removed */
} own_lines;

static void open_own_lines(void)
{
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_mutex_init(&own_lines.mutex, NULL);
  pthread_cond_init(&own_lines.changed, &attributes);
  pthread_condattr_destroy(&attributes);
  own_lines.ended = own_lines.gone = 0;
}

/* After a fork: discards the line and the calls of the parent process. The stacks that hold these
 * calls do not exist in the child. */
static void begin_generation(void)
{
  if (generation == binding_generation) return;
  generation = binding_generation;
  first = NULL;
  last_launched = NULL;
  line = -1;
  open_own_lines();
}

/* Calls the waker, a C function that for example releases a lock. So no Python code runs in which a
 * signal handler could raise an exception. */
static void wake(void)
{
  PyObject *call = waker;
  waker = NULL;
  PyObject *result = PyObject_CallNoArgs(call);
  if (!result) PyErr_Clear();
  Py_XDECREF(result);
  Py_DECREF(call);
}

void binding_list_call(binding_call *call)
{
  begin_generation();
  call->number = ++last_number;
  call->generation = generation;
  call->next = first;
  call->place = &first;
  if (first) first->place = &call->next;
  first = call;
  if (call->args) last_launched = call->object;
  if (waker) wake();
}

/* Writes to a terminal only if it accepts output now. */
static int write_terminal(int file, const char *text, size_t size)
{
  struct pollfd asked = { .fd = file, .events = POLLOUT };
  return poll(&asked, 1, 0) == 1 && asked.revents & POLLOUT &&
         write(file, text, size) == (ssize_t)size;
}

static void erase_line(void)
{
  static const char erase[] = "\r\033[K";
  if (line >= 0) (void)write_terminal(line, erase, sizeof erase - 1);
  line = -1;
}

static struct timespec moment_in(double seconds)
{
  struct timespec moment;
  clock_gettime(CLOCK_MONOTONIC, &moment);
  int64_t ns = moment.tv_nsec + (int64_t)(seconds * 1e9);
  moment.tv_sec += ns / 1000000000;
  moment.tv_nsec = ns % 1000000000;
  return moment;
}

/* Tells the progress thread that the call has ended, and waits until the progress thread has
 * removed the line. Called without the interpreter lock. */
static void end_own_line(void)
{
  enum { PATIENCE_S = 5 };
  struct timespec until = moment_in(PATIENCE_S);
  int outcome = 0;
  pthread_mutex_lock(&own_lines.mutex);
  uint64_t number = ++own_lines.ended;
  pthread_cond_broadcast(&own_lines.changed);
  while (own_lines.gone < number && !outcome)
    outcome = pthread_cond_timedwait(&own_lines.changed, &own_lines.mutex, &until);
  pthread_mutex_unlock(&own_lines.mutex);
}

static void confirm_own_lines(uint64_t gone)
{
  pthread_mutex_lock(&own_lines.mutex);
  own_lines.gone = gone < own_lines.ended ? gone : own_lines.ended;
  pthread_cond_broadcast(&own_lines.changed);
  pthread_mutex_unlock(&own_lines.mutex);
}

void binding_unlist_call(binding_call *call)
{
  if (call->generation != binding_generation) return;
  *call->place = call->next;
  if (call->next) call->next->place = call->place;
  if (call->line == BINDING_LINE_OF_TERMINAL) erase_line();
  if (call->line != BINDING_LINE_OF_THREAD) return;
  Py_BEGIN_ALLOW_THREADS end_own_line();
  Py_END_ALLOW_THREADS
}

void binding_forget_launched(PyObject *kernel)
{
  if (last_launched == kernel) last_launched = NULL;
}

/* ---- work in Python code ---- */

static const char work_name[] = "kjit._kjit.work";

static void end_listed(binding_call *call)
{
  if (call->number) binding_unlist_call(call);
  call->number = 0;
}

static void free_work(PyObject *capsule)
{
  binding_call *call = PyCapsule_GetPointer(capsule, work_name);
  end_listed(call);
  Py_DECREF((PyObject *)call->context);
  Py_DECREF(call->object);
  free(call);
}

/* begin_work(context, kernel): lists the work that Python code does before a kernel is compiled,
 * like a call. end_work removes it from the list. Returns None if calls are not listed. */
static PyObject *begin_work(PyObject *module, PyObject *args)
{
  (void)module;
  PyObject *context, *kernel;
  if (!PyArg_ParseTuple(args, "O!O", binding_context_type, &context, &kernel)) return NULL;
  if (!binding_shows_progress) Py_RETURN_NONE;
  binding_call *call = calloc(1, sizeof *call);
  PyObject *capsule = call ? PyCapsule_New(call, work_name, free_work) : PyErr_NoMemory();
  if (!capsule) {
    free(call);
    return NULL;
  }
  call->context = (context_object *)Py_NewRef(context);
  call->object = Py_NewRef(kernel);
  call->what = "write";
  binding_list_call(call);
  return capsule;
}

/* end_work(result of begin_work) */
static PyObject *end_work(PyObject *module, PyObject *capsule)
{
  (void)module;
  if (capsule == Py_None) Py_RETURN_NONE;
  binding_call *call = PyCapsule_GetPointer(capsule, work_name);
  if (!call) return NULL;
  end_listed(call);
  Py_RETURN_NONE;
}

/* ---- functions for kjit._progress ---- */

/* Returns a call's device. A launch without a given device uses the device of its first array on a
 * GPU or in kjit's memory, and by default the context's first device. */
static kjit_device *find_device(const binding_call *call)
{
  kjit_context *context = call->context->context;
  kjit_device *device = call->device;
  for (size_t i = 0; !device && i < call->arg_count; i++) {
    const kjit_arg *arg = &call->args[i];
    if (arg->kind == KJIT_ARG_ARRAY) device = kjit_get_array_device(arg->value.array);
    if (arg->kind == KJIT_ARG_TENSOR && !binding_is_on_cpu(arg->value.tensor) &&
        kjit_get_device(context, KJIT_DEVICE_CUDA, arg->value.tensor->device_id, &device))
      device = NULL;
  }
  return device ? device : call->args ? binding_get_device(call->context, Py_None) : NULL;
}

/* Returns a name such as "cuda:0", or None if the device is unknown. The call may end before this
 * function does, because opening a device lets other threads run. */
static PyObject *name_device(const binding_call *call, context_object *context)
{
  kjit_device *device = find_device(call);
  kjit_device_info info = { .size_bytes = sizeof info };
  if (!device || kjit_get_device_info(device, &info) != KJIT_OK) {
    PyErr_Clear();
    Py_RETURN_NONE;
  }
  return binding_name_place(context, info.kind, info.ordinal);
}

/* Finds a running call by its number. Returns NULL if the call has ended. */
static binding_call *find_call(uint64_t number)
{
  binding_call *call = first;
  while (call && call->number != number) call = call->next;
  return call;
}

/* Returns the result of describe_call. The call may end meanwhile, because making objects may let
 * other threads run. */
static PyObject *describe(uint64_t number)
{
  binding_call *call = find_call(number);
  if (!call) Py_RETURN_NONE;
  context_object *context = (context_object *)Py_NewRef((PyObject *)call->context);
  PyObject *object = Py_XNewRef(call->object), *launched = Py_XNewRef(last_launched);
  PyObject *name = call->name ? PyUnicode_FromString(call->name) : Py_NewRef(Py_None);
  const char *what = call->what;
  PyObject *device = name_device(call, context);
  PyObject *stages = binding_list_stages(context->messages);
  PyObject *row = name && device && stages
                    ? Py_BuildValue("sOOOOO", what, name, object ? object : Py_None, device, stages,
                                    launched ? launched : Py_None)
                    : NULL;
  Py_DECREF((PyObject *)context);
  Py_XDECREF(name);
  Py_XDECREF(object);
  Py_XDECREF(launched);
  Py_XDECREF(device);
  Py_XDECREF(stages);
  return row;
}

/* list_calls(): returns (number of the latest call, list of the numbers of running calls, oldest
 * first). */
static PyObject *list_calls(PyObject *module, PyObject *unused)
{
  (void)module, (void)unused;
  begin_generation();
  size_t count = 0;
  for (binding_call *call = first; call; call = call->next) count++;
  uint64_t *numbers = calloc(count + 1, sizeof *numbers), last = last_number;
  if (!numbers) return PyErr_NoMemory();
  binding_call *call = first;
  for (size_t i = count; i-- > 0; call = call->next) numbers[i] = call->number;
  PyObject *list = PyList_New(0);
  for (size_t i = 0; list && i < count; i++) {
    PyObject *number = PyLong_FromUnsignedLongLong(numbers[i]);
    if (!number || PyList_Append(list, number)) Py_CLEAR(list);
    Py_XDECREF(number);
  }
  free(numbers);
  return list ? Py_BuildValue("KN", (unsigned long long)last, list) : NULL;
}

/* describe_call(number): returns (what the call does, name of an algorithm or None, kernel or func
 * or None, device, dictionary of running compilations: name -> stage, kernel launched last), or
 * None if the call has ended. */
static PyObject *describe_call(PyObject *module, PyObject *number)
{
  (void)module;
  unsigned long long value = PyLong_AsUnsignedLongLong(number);
  if (PyErr_Occurred()) return NULL;
  begin_generation();
  return describe(value);
}

/* show_call(number, terminal, text): returns whether the call is still running and calls are
 * listed. If so, the text is written to the terminal and erased when the call ends. terminal -1:
 * the caller shows the text and it stays. terminal -2: the caller shows the text and removes it
 * when await_end() has returned. */
static PyObject *show_call(PyObject *module, PyObject *args)
{
  (void)module;
  unsigned long long number;
  int file;
  const char *text;
  Py_ssize_t size;
  if (!PyArg_ParseTuple(args, "Kiy#", &number, &file, &text, &size)) return NULL;
  begin_generation();
  binding_call *call = binding_shows_progress ? find_call(number) : NULL;
  if (call && file == -2) call->line = BINDING_LINE_OF_THREAD;
  if (call && file >= 0 && write_terminal(file, text, (size_t)size)) {
    call->line = BINDING_LINE_OF_TERMINAL;
    line = file;
  }
  return PyBool_FromLong(call != NULL);
}

/* set_progress(is_on, waker): sets whether calls are listed. The next call calls waker unless it is
 * None. */
static PyObject *set_progress(PyObject *module, PyObject *args)
{
  (void)module;
  PyObject *callable;
  int is_on;
  if (!PyArg_ParseTuple(args, "pO", &is_on, &callable)) return NULL;
  begin_generation();
  binding_shows_progress = is_on;
  if (!is_on) {
    erase_line();
    for (binding_call *call = first; call; call = call->next) call->line = BINDING_NO_LINE;
    confirm_own_lines(UINT64_MAX);
  }
  binding_set(&waker, callable == Py_None ? NULL : Py_NewRef(callable));
  Py_RETURN_NONE;
}

/* await_end(seconds): waits until a call whose line the progress thread shows has ended, or for the
 * given time. Returns the number of such calls that have ended. */
static PyObject *await_end(PyObject *module, PyObject *args)
{
  (void)module;
  double seconds;
  if (!PyArg_ParseTuple(args, "d", &seconds)) return NULL;
  begin_generation();
  uint64_t ended;
  int outcome = 0;
  Py_BEGIN_ALLOW_THREADS struct timespec until = moment_in(seconds);
  pthread_mutex_lock(&own_lines.mutex);
  while (own_lines.gone == own_lines.ended && !outcome)
    outcome = pthread_cond_timedwait(&own_lines.changed, &own_lines.mutex, &until);
  ended = own_lines.ended;
  pthread_mutex_unlock(&own_lines.mutex);
  Py_END_ALLOW_THREADS return PyLong_FromUnsignedLongLong(ended);
}

/* confirm_end(count): the lines of the first `count` ended calls were removed. */
static PyObject *confirm_end(PyObject *module, PyObject *count)
{
  (void)module;
  unsigned long long gone = PyLong_AsUnsignedLongLong(count);
  if (PyErr_Occurred()) return NULL;
  confirm_own_lines(gone);
  Py_RETURN_NONE;
}

/* arm_progress(waker): returns whether calls are listed; if so, the next call calls waker. */
static PyObject *arm_progress(PyObject *module, PyObject *callable)
{
  (void)module;
  if (binding_shows_progress) binding_set(&waker, Py_NewRef(callable));
  return PyBool_FromLong(binding_shows_progress);
}

static PyMethodDef functions[] = {
  { "begin_work", begin_work, METH_VARARGS, NULL },
  { "end_work", end_work, METH_O, NULL },
  { "list_calls", list_calls, METH_NOARGS, NULL },
  { "describe_call", describe_call, METH_O, NULL },
  { "show_call", show_call, METH_VARARGS, NULL },
  { "set_progress", set_progress, METH_VARARGS, NULL },
  { "arm_progress", arm_progress, METH_O, NULL },
  { "await_end", await_end, METH_VARARGS, NULL },
  { "confirm_end", confirm_end, METH_O, NULL },
  { NULL, NULL, 0, NULL },
};

int binding_add_progress(PyObject *module)
{
  static int is_open; /* a program may import kjit more than once */
  if (!is_open) open_own_lines();
  is_open = 1;
  return PyModule_AddFunctions(module, functions);
}
