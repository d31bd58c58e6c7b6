/* Launchers: kernels with a launch configuration, `kernel[grid, block, stream, shared_bytes]`. */
#include "kernel.h"

#include <structmember.h>

PyTypeObject *binding_launcher_type;

/* Maximum number of launchers that a kernel caches; further ones are created at each use. */
#define MOST_LAUNCHERS 256

static int read_extents(PyObject *object, uint32_t extents[3], const char *what)
{
  Py_ssize_t count = PyTuple_Check(object) ? PyTuple_Size(object) : 1;
  if (count < 1 || count > 3) {
    binding_fail(KJIT_ERROR_ARGUMENT, "a %s must have 1 to 3 extents, not %zd", what, count);
    return -1;
  }
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject *item = PyTuple_Check(object) ? PyTuple_GetItem(object, i) : object;
    if (!PyIndex_Check(item)) {
      binding_fail(KJIT_ERROR_ARGUMENT, "the extents of a %s must be integers, not %R", what,
                   (PyObject *)Py_TYPE(item));
      return -1;
    }
    Py_ssize_t value = PyNumber_AsSsize_t(item, NULL);
    if (value == -1 && PyErr_Occurred()) return -1;
    if (value < 1 || value > (Py_ssize_t)UINT32_MAX) {
      binding_fail(KJIT_ERROR_LAUNCH, "the extents of a %s must be from 1 to 2^32 - 1, not %zd",
                   what, value);
      return -1;
    }
    extents[i] = (uint32_t)value;
  }
  return 0;
}

/* Reads kernel[grid], kernel[grid, block] or kernel[grid, block, stream, shared bytes]; None means
 * not given. */
static int read_key(launcher_object *self)
{
  context_object *context = self->kernel->context;
  PyObject *parts[4] = { Py_None, Py_None, Py_None, Py_None };
  Py_ssize_t count = PyTuple_Check(self->key) ? PyTuple_Size(self->key) : 1;
  if (count < 1 || count > 4) {
    PyErr_SetString(PyExc_TypeError, "expected kernel[grid, block, stream, shared_bytes](...)");
    return -1;
  }
  for (Py_ssize_t i = 0; i < count; i++)
    parts[i] = PyTuple_Check(self->key) ? PyTuple_GetItem(self->key, i) : self->key;
  kjit_launch_config config = { .size_bytes = sizeof config };
  if (parts[0] != Py_None && read_extents(parts[0], config.grid, "grid")) return -1;
  if (parts[1] != Py_None && read_extents(parts[1], config.block, "block")) return -1;
  PyObject *keeper;
  if (binding_get_stream(context, parts[2], self->kernel->place, &keeper, &config.stream))
    return -1;
  binding_set(&self->stream, keeper);
  if (parts[3] != Py_None) {
    Py_ssize_t bytes = PyIndex_Check(parts[3]) ? PyNumber_AsSsize_t(parts[3], NULL) : -1;
    if (bytes < 0) {
      /* otherwise the object's __index__ has raised an exception, which is kept */
      if (!PyErr_Occurred())
        binding_fail(KJIT_ERROR_ARGUMENT,
                     "the size of shared memory must be a number of bytes, not %R", parts[3]);
      return -1;
    }
    config.dynamic_shared_bytes = (uint64_t)bytes;
  }
  self->config = config;
  self->generation = self->kernel->generation;
  return 0;
}

int launcher_make_ready(launcher_object *self)
{
  if (kernel_make_known(self->kernel)) return -1;
  return self->generation == self->kernel->generation ? 0 : read_key(self);
}

static PyObject *call_launcher(PyObject *object, PyObject *args, PyObject *keywords)
{
  launcher_object *self = (launcher_object *)object;
  if (launcher_make_ready(self)) return NULL;
  return kernel_launch_tuple(self->kernel, &self->config, args, keywords, CALL_GIVEN);
}

static PyObject *call_launcher_with(PyObject *object, PyObject *const *items, size_t count,
                                    PyObject *names)
{
  launcher_object *self = (launcher_object *)object;
  if (launcher_make_ready(self)) return NULL;
  const kernel_call args = { items, count_of(count), CALL_GIVEN };
  return kernel_launch(self->kernel, &self->config, &args, names);
}

PyObject *launcher_configure(PyObject *object, PyObject *key)
{
  kernel_object *self = (kernel_object *)object;
  if (!self->launchers && !(self->launchers = PyDict_New())) return NULL;
  PyObject *known = PyDict_GetItemWithError(self->launchers, key); /* borrowed */
  if (known) return Py_NewRef(known);
  if (PyErr_Occurred() || kernel_make_known(self)) return NULL;
  allocfunc allocate = (allocfunc)PyType_GetSlot(binding_launcher_type, Py_tp_alloc);
  launcher_object *launcher = (launcher_object *)allocate(binding_launcher_type, 0);
  if (!launcher) return NULL;
  launcher->call = call_launcher_with;
  launcher->kernel = (kernel_object *)Py_NewRef(object);
  launcher->key = Py_NewRef(key);
  if (read_key(launcher)) {
    Py_DECREF((PyObject *)launcher);
    return NULL;
  }
  if (PyDict_Size(self->launchers) >= MOST_LAUNCHERS) PyDict_Clear(self->launchers);
  if (PyDict_SetItem(self->launchers, key, (PyObject *)launcher)) {
    Py_DECREF((PyObject *)launcher);
    return NULL;
  }
  return (PyObject *)launcher;
}

static int traverse_launcher(PyObject *object, visitproc visit, void *arg)
{
  launcher_object *self = (launcher_object *)object;
  Py_VISIT(Py_TYPE(object));
  Py_VISIT((PyObject *)self->kernel);
  Py_VISIT(self->key);
  return 0;
}

static int clear_launcher(PyObject *object)
{
  /* Keeps the kernel, because a finalizer can still call the launcher. clear_kernel breaks the
   * reference cycle: it clears the kernel's dictionary of launchers. */
  Py_CLEAR(((launcher_object *)object)->key);
  return 0;
}

static void free_launcher(PyObject *object)
{
  launcher_object *self = (launcher_object *)object;
  PyTypeObject *type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  Py_CLEAR(self->key);
  Py_CLEAR(self->stream);
  Py_XDECREF((PyObject *)self->kernel);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
  Py_DECREF(type);
}

static PyObject *show_launcher(PyObject *object)
{
  launcher_object *self = (launcher_object *)object;
  return PyUnicode_FromFormat("%R[%R]", (PyObject *)self->kernel, self->key ? self->key : Py_None);
}

static PyMemberDef launcher_members[] = {
  { "__vectorcalloffset__", T_PYSSIZET, offsetof(launcher_object, call), READONLY, NULL },
  { NULL, 0, 0, 0, NULL },
};
static PyType_Slot launcher_slots[] = {
  { Py_tp_dealloc, (void *)free_launcher },
  { Py_tp_traverse, (void *)traverse_launcher },
  { Py_tp_clear, (void *)clear_launcher },
  { Py_tp_call, (void *)call_launcher },
  { Py_tp_members, launcher_members },
  { Py_tp_repr, (void *)show_launcher },
  { Py_tp_doc, (void *)"A kernel with a launch configuration." },
  { 0, NULL },
};
static PyType_Spec launcher_spec = { "kjit._kjit.Launcher", sizeof(launcher_object), 0,
                                     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | HAS_VECTORCALL |
                                       Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                     launcher_slots };

int binding_add_launcher(PyObject *module)
{
  binding_launcher_type = binding_make_type(module, &launcher_spec);
  return binding_launcher_type ? 0 : -1;
}
