/* Chooses devices: the current device of each thread, and a launch's device. */
#include "kernel.h"

#include <stdlib.h>

int binding_has_several;

/* ---- the current device of a thread ---- */

enum { MOST_ENTERED = 64 };

typedef struct place {
  kjit_device_kind kind; /* 0 if the thread has no current device */
  int32_t ordinal;
} place;

/* The current device is the last entry. Entry 0 is used outside of all `with` blocks. */
static _Thread_local place entered[MOST_ENTERED + 1];
static _Thread_local int entered_count;

static place place_of(PyObject *device)
{
  kjit_device_info info = { .size_bytes = sizeof info };
  if (kjit_get_device_info(((device_object *)device)->device, &info) != KJIT_OK)
    info.kind = KJIT_DEVICE_CPU;
  return (place){ info.kind, info.ordinal };
}

int binding_has_current(void) { return entered[entered_count].kind != 0; }

kjit_device *binding_get_current(context_object *context)
{
  const place current = entered[entered_count];
  return binding_open_device(context, current.kind, current.ordinal);
}

PyObject *binding_name_place(context_object *context, kjit_device_kind kind, int ordinal)
{
  if (kind == KJIT_DEVICE_CUDA) return PyUnicode_FromFormat("cuda:%d", ordinal);
  return kjit_get_device_count(context->context, KJIT_DEVICE_CPU) > 1
           ? PyUnicode_FromFormat("cpu:%d", ordinal)
           : PyUnicode_FromString("cpu");
}

PyObject *binding_name_home(const kjit_tensor *tensor)
{
  if (tensor->device_type == KJIT_DEVICE_CPU) return PyUnicode_FromString("cpu");
  return PyUnicode_FromFormat("%s:%d", binding_is_on_cpu(tensor) ? "cpu" : "cuda",
                              (int)tensor->device_id);
}

/* set_current_device(device): sets a Device as the current device, or removes the current device if
 * device is None. */
static PyObject *set_current(PyObject *module, PyObject *device)
{
  (void)module;
  if (device != Py_None && !PyObject_TypeCheck(device, binding_device_type)) {
    PyErr_Format(PyExc_TypeError, "a device must be a kjit.Device, not %R",
                 (PyObject *)Py_TYPE(device));
    return NULL;
  }
  entered[entered_count] = device == Py_None ? (place){ 0 } : place_of(device);
  Py_RETURN_NONE;
}

/* get_current_device(): returns (kind, ordinal), or None. */
static PyObject *get_current(PyObject *module, PyObject *unused)
{
  (void)module, (void)unused;
  const place *current = &entered[entered_count];
  if (!current->kind) Py_RETURN_NONE;
  return PyUnicode_FromFormat("%s:%d", current->kind == KJIT_DEVICE_CUDA ? "cuda" : "cpu",
                              (int)current->ordinal);
}

PyObject *binding_enter_device(PyObject *device, PyObject *unused)
{
  (void)unused;
  if (entered_count == MOST_ENTERED) {
    PyErr_Format(PyExc_RuntimeError, "`with` blocks of devices can be nested at most %d deep",
                 MOST_ENTERED);
    return NULL;
  }
  entered[++entered_count] = place_of(device);
  return Py_NewRef(device);
}

PyObject *binding_leave_device(PyObject *device, PyObject *unused)
{
  (void)device, (void)unused;
  if (!entered_count) {
    PyErr_SetString(PyExc_RuntimeError, "this thread is not in the `with` block of a device");
    return NULL;
  }
  entered_count--;
  Py_RETURN_NONE;
}

/* ---- the device of a launch ---- */

/* Finds the arguments' device. Returns 0, or -1 with an exception. *device stays NULL if no
 * argument belongs to a device. */
static int find_home(context_object *context, const kjit_arg *list, Py_ssize_t count,
                     kjit_device **device)
{
  for (Py_ssize_t i = 0; i < count && !*device; i++) {
    const kjit_tensor *tensor = list[i].kind == KJIT_ARG_ARRAY
                                  ? kjit_get_tensor(list[i].value.array)
                                : list[i].kind == KJIT_ARG_TENSOR ? list[i].value.tensor
                                                                  : NULL;
    if (!tensor || tensor->device_type == KJIT_DEVICE_CPU || tensor->device_type == 3) continue;
    *device =
      binding_open_device(context, binding_is_on_cpu(tensor) ? KJIT_DEVICE_CPU : KJIT_DEVICE_CUDA,
                          tensor->device_id);
    if (!*device) return -1;
  }
  return 0;
}

int binding_place_launch(const kernel_object *self, kjit_launch_config *config,
                         const kjit_arg *list, Py_ssize_t count)
{
  kjit_device *device = NULL;
  if (self->placement == PLACE_CURRENT) {
    device = binding_has_current() ? binding_get_current(self->context) : self->place;
    if (!device && PyErr_Occurred()) return -1;
    config->device = device;
    return 0;
  }
  if (config->stream) return 0;
  if (self->placement == PLACE_BY_ARRAYS && find_home(self->context, list, count, &device))
    return -1;
  if (!device && self->placement == PLACE_BY_ARRAYS && binding_has_current() &&
      !(device = binding_get_current(self->context)))
    return -1;
  config->device = device ? device : self->place;
  return 0;
}

static PyObject *has_several(PyObject *module, PyObject *unused)
{
  (void)module, (void)unused;
  return PyBool_FromLong(binding_has_several);
}

/* locate(context, address): returns the Device whose memory contains the address, or None. */
static PyObject *locate(PyObject *module, PyObject *args)
{
  (void)module;
  context_object *context;
  unsigned long long address;
  kjit_device *device = NULL;
  if (!PyArg_ParseTuple(args, "O!K", binding_context_type, &context, &address)) return NULL;
  kjit_status status;
  BINDING_UNLOCKED(context, status = kjit_locate_memory(context->context,
                                                        (void *)(uintptr_t)address, &device));
  if (binding_finish(context, status)) return NULL;
  if (device) return binding_wrap_device(context, device);
  Py_RETURN_NONE;
}

/* place_buffer(device, object): wraps the memory of an object with the buffer protocol, without
 * copying it, as an array of the given CPU device, which is one of several CPU devices. */
static PyObject *place_buffer(PyObject *module, PyObject *args)
{
  (void)module;
  PyObject *given, *object;
  if (!PyArg_ParseTuple(args, "O!O", binding_device_type, &given, &object)) return NULL;
  device_object *device = (device_object *)given;
  PyObject *host = binding_import(device->context, object);
  const kjit_tensor *tensor = host ? binding_get_tensor(host) : NULL;
  if (!tensor) {
    if (!PyErr_Occurred())
      PyErr_Format(PyExc_TypeError, "%R is not a NumPy array", (PyObject *)Py_TYPE(object));
    Py_XDECREF(host);
    return NULL;
  }
  kjit_tensor placed = *tensor;
  placed.device_type = BINDING_PLACED;
  placed.device_id = place_of(given).ordinal;
  PyObject *array =
    binding_take_tensor(device->context, host, &placed, NULL,
                        ((array_object *)host)->is_read_only == BINDING_READ_ONLY, NULL);
  Py_DECREF(host);
  return array;
}

static PyMethodDef functions[] = {
  { "has_several_devices", has_several, METH_NOARGS, NULL },
  { "locate", locate, METH_VARARGS, NULL },
  { "place_buffer", place_buffer, METH_VARARGS, NULL },
  { "set_current_device", set_current, METH_O, NULL },
  { "get_current_device", get_current, METH_NOARGS, NULL },
  { NULL, NULL, 0, NULL },
};

int binding_add_places(PyObject *module) { return PyModule_AddFunctions(module, functions); }
