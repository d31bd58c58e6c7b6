/* Properties and memory use of devices, GPU memory allocated by Python code, and arrays shared with
 * other processes. */
#include "binding.h"

/* ---- devices ---- */

PyObject *binding_get_memory_info(PyObject *object, PyObject *unused)
{
  (void)unused;
  device_object *self = (device_object *)object;
  uint64_t free_bytes = 0, total_bytes = 0;
  kjit_status status;
  BINDING_UNLOCKED(self->context,
                   status = kjit_get_memory_info(self->device, &free_bytes, &total_bytes));
  if (binding_finish(self->context, status)) return NULL;
  return Py_BuildValue("(KK)", (unsigned long long)free_bytes, (unsigned long long)total_bytes);
}

PyObject *binding_trim_memory(PyObject *object, PyObject *unused)
{
  (void)unused;
  device_object *self = (device_object *)object;
  BINDING_UNLOCKED(self->context, kjit_trim_memory(self->device, 0));
  Py_RETURN_NONE;
}

PyObject *binding_get_uuid(PyObject *object, void *unused)
{
  (void)unused;
  device_object *self = (device_object *)object;
  unsigned char uuid[16];
  if (binding_finish(self->context, kjit_get_device_uuid(self->device, uuid))) return NULL;
  return PyBytes_FromStringAndSize((const char *)uuid, sizeof uuid);
}

static const char *const attribute_names[] = {
#define KJIT_ROW(name, number, cpu, text) #name,
#include <kjit/device.def>
#undef KJIT_ROW
};

PyObject *binding_get_attribute(PyObject *object, PyObject *text)
{
  device_object *self = (device_object *)object;
  const char *name = PyUnicode_Check(text) ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
  for (size_t i = 0; name && i < sizeof attribute_names / sizeof *attribute_names; i++) {
    if (strcmp(name, attribute_names[i]) != 0) continue;
    int64_t value = 0;
    kjit_status status = kjit_get_device_attribute(self->device, (kjit_device_attribute)i, &value);
    if (binding_finish(self->context, status)) return NULL;
    return PyLong_FromLongLong(value);
  }
  if (!PyErr_Occurred()) binding_fail(KJIT_ERROR_ARGUMENT, "devices have no attribute %R", text);
  return NULL;
}

/* ---- GPU memory allocated by Python code ---- */

/* libkjit holds no lock when it calls allocate and release, so they may wait for the interpreter
 * lock. Both keep an exception that the thread is raising. */

/* Calls a method of the allocator. Returns NULL after it has reported an exception. */
static PyObject *ask(void *user, const char *method, PyObject *arguments)
{
  PyObject *function = arguments ? PyObject_GetAttrString(user, method) : NULL;
  PyObject *result = function ? PyObject_CallObject(function, arguments) : NULL;
  if (!result) PyErr_WriteUnraisable(user);
  Py_XDECREF(function);
  Py_XDECREF(arguments);
  return result;
}

static int ordinal_of(kjit_device *device)
{
  kjit_device_info info = { .size_bytes = sizeof info };
  return kjit_get_device_info(device, &info) == KJIT_OK ? (int)info.ordinal : 0;
}

static unsigned long long native_of(const kjit_stream *stream)
{
  return stream ? (unsigned long long)(uintptr_t)kjit_get_native_stream(stream) : 0;
}

static void *allocate(void *user, kjit_device *device, size_t size_bytes, kjit_stream *stream)
{
  if (!Py_IsInitialized()) return NULL;
  PyGILState_STATE state = PyGILState_Ensure();
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyObject *address =
    ask(user, "allocate",
        Py_BuildValue("(inK)", ordinal_of(device), (Py_ssize_t)size_bytes, native_of(stream)));
  void *memory = address ? (void *)(uintptr_t)PyLong_AsUnsignedLongLong(address) : NULL;
  if (PyErr_Occurred()) {
    PyErr_WriteUnraisable(user);
    memory = NULL;
  }
  Py_XDECREF(address);
  PyErr_Restore(type, value, trace);
  PyGILState_Release(state);
  return memory;
}

/* after the interpreter has ended, the memory is freed with the process */
static void release(void *user, kjit_device *device, void *memory, size_t size_bytes,
                    kjit_stream *stream)
{
  if (!Py_IsInitialized()) return;
  PyGILState_STATE state = PyGILState_Ensure();
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyObject *done =
    ask(user, "release",
        Py_BuildValue("(iKnK)", ordinal_of(device), (unsigned long long)(uintptr_t)memory,
                      (Py_ssize_t)size_bytes, native_of(stream)));
  Py_XDECREF(done);
  PyErr_Restore(type, value, trace);
  PyGILState_Release(state);
}

const kjit_device_allocator binding_device_allocator = {
  .size_bytes = sizeof binding_device_allocator, .allocate = allocate, .release = release
};

/* ---- arrays shared with other processes ---- */

/* export_array(array): returns bytes with which another process of this machine opens the array. */
static PyObject *export_array(PyObject *module, PyObject *object)
{
  (void)module;
  if (!PyObject_TypeCheck(object, binding_array_type)) {
    PyErr_Format(PyExc_TypeError, "expected a kjit array, not %R", (PyObject *)Py_TYPE(object));
    return NULL;
  }
  array_object *self = (array_object *)object;
  if (binding_open_block(self)) return NULL;
  kjit_array_handle handle;
  kjit_status status;
  BINDING_UNLOCKED(self->context, status = kjit_export_array(self->array, &handle));
  if (binding_finish(self->context, status)) return NULL;
  return PyBytes_FromStringAndSize((const char *)handle.bytes, sizeof handle.bytes);
}

/* open_array(context, bytes): opens the array of another process. */
static PyObject *open_array(PyObject *module, PyObject *args)
{
  (void)module;
  context_object *context;
  const char *bytes;
  Py_ssize_t size;
  if (!PyArg_ParseTuple(args, "O!y#", binding_context_type, &context, &bytes, &size)) return NULL;
  kjit_array_handle handle;
  if (size != (Py_ssize_t)sizeof handle.bytes)
    return binding_fail(KJIT_ERROR_ARGUMENT, "an array handle must have %d bytes, not %zd",
                        (int)sizeof handle.bytes, size);
  memcpy(handle.bytes, bytes, sizeof handle.bytes);
  kjit_array *array = NULL;
  kjit_status status;
  BINDING_UNLOCKED(context, status = kjit_import_array(context->context, &handle, &array));
  return binding_finish_array(context, status, array) ? NULL
                                                      : binding_wrap_foreign(context, array, 0);
}

static PyMethodDef functions[] = {
  { "export_array", export_array, METH_O, NULL },
  { "open_array", open_array, METH_VARARGS, NULL },
  { NULL, NULL, 0, NULL },
};

int binding_add_memory(PyObject *module) { return PyModule_AddFunctions(module, functions); }
