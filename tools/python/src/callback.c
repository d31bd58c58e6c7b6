/* Implements posting of objects to streams: a posted object arrives when the work that was queued
 * before it is done. A driver thread passes it on without taking a Python lock, because a Python
 * thread that holds such a lock may be waiting for the driver. A Python thread takes the objects
 * (kjit/cuda/callbacks.py). */
#include "binding.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

typedef struct posted {
  struct posted *next;
  PyObject *object;
} posted;

static struct {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  posted *first, **end; /* posted objects in the order of arrival */
  int is_closed;
} box = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL, &box.first, 0 };

/* After a fork: discards the objects of the parent process, and initializes the mutex, which
 * another thread may have held. */
static void renew(void)
{
  pthread_mutex_init(&box.mutex, NULL);
  pthread_cond_init(&box.changed, NULL);
  box.first = NULL;
  box.end = &box.first;
  box.is_closed = 0;
}

static void arrive(void *user)
{
  posted *made = user;
  pthread_mutex_lock(&box.mutex);
  *box.end = made;
  box.end = &made->next;
  pthread_cond_signal(&box.changed);
  pthread_mutex_unlock(&box.mutex);
}

/* post_after(device, stream, object): take_posted() returns the object after the work that is
 * queued on the stream now. */
static PyObject *post_after(PyObject *module, PyObject *args)
{
  (void)module;
  device_object *device;
  PyObject *given, *object, *keeper;
  kjit_stream *stream;
  if (!PyArg_ParseTuple(args, "O!OO", binding_device_type, &device, &given, &object) ||
      binding_get_stream(device->context, given, device->device, &keeper, &stream))
    return NULL;
  if (binding_evaluate_all()) {
    Py_XDECREF(keeper);
    return NULL;
  }
  if (stream && kjit_is_capturing(stream)) {
    Py_XDECREF(keeper);
    return binding_fail(KJIT_ERROR_MISUSE, "the stream is being captured: a graph cannot call "
                                           "functions of Python");
  }
  posted *made = malloc(sizeof *made);
  if (!made) {
    Py_XDECREF(keeper);
    return PyErr_NoMemory();
  }
  *made = (posted){ NULL, Py_NewRef(object) };
  kjit_status status;
  BINDING_UNLOCKED(device->context,
                   status = kjit_add_host_callback(device->device, stream, arrive, made));
  Py_XDECREF(keeper);
  if (status != KJIT_OK) { /* the driver will not call arrive() */
    Py_DECREF(made->object);
    free(made);
  }
  if (binding_finish(device->context, status)) return NULL;
  Py_RETURN_NONE;
}

static struct timespec time_after(long milliseconds)
{
  struct timespec at;
  clock_gettime(CLOCK_REALTIME, &at);
  at.tv_sec += milliseconds / 1000;
  at.tv_nsec += milliseconds % 1000 * 1000000;
  if (at.tv_nsec >= 1000000000) at.tv_sec++, at.tv_nsec -= 1000000000;
  return at;
}

/* Waits for an object. Returns NULL if no object arrives in time, or if the box is closed. */
static posted *wait_for_arrival(long milliseconds, int *is_closed)
{
  struct timespec end = time_after(milliseconds);
  pthread_mutex_lock(&box.mutex);
  int result = 0;
  while (!box.first && !box.is_closed && result != ETIMEDOUT)
    result = pthread_cond_timedwait(&box.changed, &box.mutex, &end);
  posted *made = box.is_closed ? NULL : box.first;
  if (made) box.first = made->next;
  if (!box.first) box.end = &box.first;
  *is_closed = box.is_closed;
  pthread_mutex_unlock(&box.mutex);
  return made;
}

/* take_posted(milliseconds): waits for the next object and returns it. Returns None if none arrives
 * in time, or False after close_posted(). */
static PyObject *take_posted(PyObject *module, PyObject *number)
{
  (void)module;
  long milliseconds = PyLong_AsLong(number);
  if (milliseconds == -1 && PyErr_Occurred()) return NULL;
  posted *made;
  int is_closed;
  Py_BEGIN_ALLOW_THREADS made = wait_for_arrival(milliseconds, &is_closed);
  Py_END_ALLOW_THREADS if (!made) return Py_NewRef(is_closed ? Py_False : Py_None);
  PyObject *object = made->object;
  free(made);
  return object;
}

static PyObject *close_posted(PyObject *module, PyObject *unused)
{
  (void)module, (void)unused;
  pthread_mutex_lock(&box.mutex);
  box.is_closed = 1;
  pthread_cond_broadcast(&box.changed);
  pthread_mutex_unlock(&box.mutex);
  Py_RETURN_NONE;
}

/* call_reporting(function, ...): calls the function and passes an exception to sys.unraisablehook,
 * because no Python code could catch it. */
static PyObject *call_reporting(PyObject *module, PyObject *args)
{
  (void)module;
  PyObject *function = PyTuple_GetItem(args, 0);
  PyObject *rest = function ? PyTuple_GetSlice(args, 1, PyTuple_Size(args)) : NULL;
  if (!rest) return NULL;
  PyObject *result = PyObject_Call(function, rest, NULL);
  Py_DECREF(rest);
  if (!result) PyErr_WriteUnraisable(function);
  Py_XDECREF(result);
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
  { "post_after", post_after, METH_VARARGS, NULL },
  { "take_posted", take_posted, METH_O, NULL },
  { "close_posted", close_posted, METH_NOARGS, NULL },
  { "call_reporting", call_reporting, METH_VARARGS, NULL },
  { NULL, NULL, 0, NULL },
};

int binding_add_callbacks(PyObject *module)
{
  static int is_watching;
  if (!is_watching) pthread_atfork(NULL, NULL, renew);
  is_watching = 1;
  return PyModule_AddFunctions(module, functions);
}
