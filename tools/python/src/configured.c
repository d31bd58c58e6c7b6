/* Implements launches of kjit.cuda: the base classes of its Dispatcher and of its configured
 * kernels. */
#include "route.h"

#include <structmember.h>

/* Maximum number of configured kernels that a dispatcher caches. */
enum { MOST_CONFIGURATIONS = 256 };

static PyTypeObject *dispatcher_type, *configured_type;

/* ---- calls ---- */

/* Adds hints for users of Numba to the current exception. */
static void explain(PyObject *self)
{
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  PyObject *done = value ? PyObject_CallMethod(self, "_explain", "(O)", value) : NULL;
  if (!done) PyErr_Clear();
  Py_XDECREF(done);
  PyErr_Restore(type, value, trace);
}

static PyObject *call_configured(PyObject *object, PyObject *args, PyObject *keywords)
{
  configured_object *self = (configured_object *)object;
  Py_ssize_t count = PyTuple_Size(args);
  int outcome = 0;
  if ((!keywords || !PyDict_Size(keywords)) && count <= FORM_MOST) {
    PyObject *items[FORM_MOST];
    for (Py_ssize_t i = 0; i < count; i++) items[i] = PyTuple_GetItem(args, i); /* borrowed */
    outcome = route_try(self, items, count);
  }
  if (outcome > 0) Py_RETURN_NONE;
  if (outcome < 0) {
    explain(object);
    return NULL;
  }
  PyObject *method = PyObject_GetAttrString(object, "_launch_anew");
  PyObject *result = method ? PyObject_Call(method, args, keywords) : NULL;
  Py_XDECREF(method);
  return result;
}

/* Calls the slow path, which takes a tuple and a dictionary. */
static PyObject *call_with_objects(PyObject *object, PyObject *const *items, Py_ssize_t count,
                                   PyObject *names)
{
  PyObject *args = PyTuple_New(count), *keywords = names ? PyDict_New() : NULL, *result = NULL;
  for (Py_ssize_t i = 0; args && i < count; i++) PyTuple_SetItem(args, i, Py_NewRef(items[i]));
  Py_ssize_t name_count = keywords ? PyTuple_Size(names) : 0;
  for (Py_ssize_t i = 0; i < name_count; i++)
    if (PyDict_SetItem(keywords, PyTuple_GetItem(names, i), items[count + i])) Py_CLEAR(args);
  if (args && (keywords || !names)) {
    PyObject *method = PyObject_GetAttrString(object, "_launch_anew");
    result = method ? PyObject_Call(method, args, keywords) : NULL;
    Py_XDECREF(method);
  }
  Py_XDECREF(args);
  Py_XDECREF(keywords);
  return result;
}

static PyObject *call_configured_with(PyObject *object, PyObject *const *items, size_t given,
                                      PyObject *names)
{
  Py_ssize_t count = count_of(given);
  int outcome =
    names && PyTuple_Size(names) ? 0 : route_try((configured_object *)object, items, count);
  if (outcome > 0) Py_RETURN_NONE;
  if (!outcome) return call_with_objects(object, items, count, names);
  explain(object);
  return NULL;
}

/* ---- kjit.cuda's configured kernels ---- */

static PyObject *create_configured(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
  (void)keywords;
  PyObject *dispatcher = PyTuple_Size(args) ? PyTuple_GetItem(args, 0) : NULL; /* borrowed */
  if (!dispatcher || !PyObject_TypeCheck(dispatcher, dispatcher_type)) {
    PyErr_SetString(PyExc_TypeError, "expected a kjit.cuda dispatcher");
    return NULL;
  }
  configured_object *self = binding_new_object(type);
  if (!self) return NULL;
  self->call = call_configured_with;
  self->dispatcher = (dispatcher_object *)Py_NewRef(dispatcher);
  return (PyObject *)self;
}

/* _set_launcher(launcher, before, after, has_stream, is_on_cpu) */
static PyObject *set_launcher(PyObject *object, PyObject *args)
{
  configured_object *self = (configured_object *)object;
  PyObject *launcher, *before, *after;
  if (!PyArg_ParseTuple(args, "O!OOpp", binding_launcher_type, &launcher, &before, &after,
                        &self->has_stream, &self->is_on_cpu))
    return NULL;
  binding_set(&self->before, before == Py_None ? NULL : Py_NewRef(before));
  binding_set(&self->after, after == Py_None ? NULL : Py_NewRef(after));
  launcher_object *old = self->launcher;
  self->launcher = (launcher_object *)Py_NewRef(launcher);
  Py_XDECREF((PyObject *)old);
  Py_RETURN_NONE;
}

static int traverse_configured(PyObject *object, visitproc visit, void *arg)
{
  configured_object *self = (configured_object *)object;
  Py_VISIT(Py_TYPE(object));
  Py_VISIT((PyObject *)self->dispatcher);
  Py_VISIT((PyObject *)self->launcher);
  Py_VISIT(self->before);
  Py_VISIT(self->after);
  Py_VISIT(self->callbacks);
  return 0;
}

/* Keeps dispatcher and launcher, because a finalizer can still call the object. Clearing the
 * dispatcher's own fields breaks the reference cycle. */
static int clear_configured(PyObject *object)
{
  Py_CLEAR(((configured_object *)object)->callbacks);
  return 0;
}

static void free_configured(PyObject *object)
{
  configured_object *self = (configured_object *)object;
  PyTypeObject *type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  Py_XDECREF((PyObject *)self->launcher);
  Py_XDECREF((PyObject *)self->dispatcher);
  Py_CLEAR(self->before);
  Py_CLEAR(self->after);
  Py_CLEAR(self->callbacks);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
  Py_DECREF(type);
}

static PyMemberDef configured_members[] = {
  { "__vectorcalloffset__", T_PYSSIZET, offsetof(configured_object, call), READONLY, NULL },
  { "dispatcher", T_OBJECT_EX, offsetof(configured_object, dispatcher), READONLY,
    "the kernel that is launched" },
  { "pre_launch_callbacks", T_OBJECT_EX, offsetof(configured_object, callbacks), 0,
    "functions called before each launch, with the dispatcher and this object" },
  { "_before", T_OBJECT, offsetof(configured_object, before), READONLY, NULL },
  { "_after", T_OBJECT, offsetof(configured_object, after), READONLY, NULL },
  { "_launcher", T_OBJECT, offsetof(configured_object, launcher), READONLY, NULL },
  { NULL, 0, 0, 0, NULL },
};
static PyMethodDef configured_methods[] = {
  { "_set_launcher", set_launcher, METH_VARARGS, NULL },
  { "_keep", route_keep, METH_VARARGS, NULL },
  { NULL, NULL, 0, NULL },
};
static PyType_Slot configured_slots[] = {
  { Py_tp_new, (void *)create_configured },
  { Py_tp_dealloc, (void *)free_configured },
  { Py_tp_traverse, (void *)traverse_configured },
  { Py_tp_clear, (void *)clear_configured },
  { Py_tp_call, (void *)call_configured },
  { Py_tp_members, configured_members },
  { Py_tp_methods, configured_methods },
  { Py_tp_doc, (void *)"Base class of kjit.cuda's kernels with a launch configuration." },
  { 0, NULL },
};
static PyType_Spec configured_spec = { "kjit._kjit.Configured", sizeof(configured_object), 0,
                                       Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | HAS_VECTORCALL |
                                         Py_TPFLAGS_BASETYPE,
                                       configured_slots };

/* ---- kjit.cuda's dispatchers ---- */

static PyTypeObject *queue_class; /* class of kjit.cuda's streams */

static int is_extent(PyObject *object)
{
  if (PyLong_CheckExact(object)) return 1;
  Py_ssize_t count = PyTuple_CheckExact(object) ? PyTuple_Size(object) : 0;
  for (Py_ssize_t i = 0; i < count; i++)
    if (!PyLong_CheckExact(PyTuple_GetItem(object, i))) return 0;
  return count > 0;
}

/* Returns whether an equal subscript always has the same meaning. 1.0 and True are equal to 1 but
 * mean something else, and lists can change. */
static int is_plain_key(PyObject *key)
{
  Py_ssize_t count = PyTuple_CheckExact(key) ? PyTuple_Size(key) : 0;
  if (count < 2 || count > 4) return 0;
  if (!is_extent(PyTuple_GetItem(key, 0)) || !is_extent(PyTuple_GetItem(key, 1))) return 0;
  PyObject *queue = count > 2 ? PyTuple_GetItem(key, 2) : NULL;
  if (queue && !PyLong_CheckExact(queue) && Py_TYPE(queue) != queue_class) return 0;
  return count < 4 || PyLong_CheckExact(PyTuple_GetItem(key, 3));
}

static PyObject *configure(PyObject *object, PyObject *key)
{
  dispatcher_object *self = (dispatcher_object *)object;
  int is_plain = is_plain_key(key);
  if (!self->configurations && !(self->configurations = PyDict_New())) return NULL;
  if (is_plain) {
    PyObject *known = PyDict_GetItemWithError(self->configurations, key); /* borrowed */
    if (known) return Py_NewRef(known);
    if (PyErr_Occurred()) return NULL;
  }
  PyObject *made = PyObject_CallMethod(object, "_configure", "(O)", key);
  if (!made || !is_plain) return made;
  if (PyDict_Size(self->configurations) >= MOST_CONFIGURATIONS) PyDict_Clear(self->configurations);
  if (PyDict_SetItem(self->configurations, key, made)) Py_CLEAR(made);
  return made;
}

static PyObject *forget(PyObject *object, PyObject *unused)
{
  (void)unused;
  route_forget_all((dispatcher_object *)object);
  Py_RETURN_NONE;
}

static PyObject *count_routes(PyObject *object, void *unused)
{
  (void)unused;
  return PyLong_FromLong(((dispatcher_object *)object)->route_count);
}

static int traverse_dispatcher(PyObject *object, visitproc visit, void *arg)
{
  dispatcher_object *self = (dispatcher_object *)object;
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(self->configurations);
  Py_VISIT(self->extensions);
  for (int i = 0; i < self->route_count; i++) {
    /* another thread's launch uses the route at this moment */
    if (self->routes[i]->uses > 1) continue;
    Py_VISIT(self->routes[i]->kept);
    Py_VISIT((PyObject *)self->routes[i]->kernel);
  }
  return 0;
}

static int clear_dispatcher(PyObject *object)
{
  dispatcher_object *self = (dispatcher_object *)object;
  Py_CLEAR(self->configurations);
  Py_CLEAR(self->extensions);
  route_forget_all(self);
  return 0;
}

static void free_dispatcher(PyObject *object)
{
  PyTypeObject *type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  clear_dispatcher(object);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
  Py_DECREF(type);
}

static PyMemberDef dispatcher_members[] = {
  { "extensions", T_OBJECT_EX, offsetof(dispatcher_object, extensions), 0,
    "objects that change the arguments of each launch" },
  { NULL, 0, 0, 0, NULL },
};
static PyGetSetDef dispatcher_fields[] = {
  { "_route_count", count_routes, NULL,
    "the number of argument combinations with a saved fast path", NULL },
  { NULL, NULL, NULL, NULL, NULL },
};
static PyMethodDef dispatcher_methods[] = {
  { "_forget_routes", forget, METH_NOARGS, NULL },
  { NULL, NULL, 0, NULL },
};
static PyType_Slot dispatcher_slots[] = {
  { Py_tp_dealloc, (void *)free_dispatcher },
  { Py_tp_traverse, (void *)traverse_dispatcher },
  { Py_tp_clear, (void *)clear_dispatcher },
  { Py_mp_subscript, (void *)configure },
  { Py_tp_members, dispatcher_members },
  { Py_tp_getset, dispatcher_fields },
  { Py_tp_methods, dispatcher_methods },
  { Py_tp_doc, (void *)"Base class of kjit.cuda.Dispatcher." },
  { 0, NULL },
};
static PyType_Spec dispatcher_spec = { "kjit._kjit.Dispatcher", sizeof(dispatcher_object), 0,
                                       Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC |
                                         Py_TPFLAGS_BASETYPE,
                                       dispatcher_slots };

/* know_streams(class): sets the class of streams. Subscripts with such streams are equal only if
 * they contain the same stream objects. */
static PyObject *know_streams(PyObject *module, PyObject *type)
{
  (void)module;
  if (!PyType_Check(type)) {
    PyErr_SetString(PyExc_TypeError, "expected a class");
    return NULL;
  }
  binding_set((PyObject **)(void *)&queue_class, Py_NewRef(type));
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
  { "know_streams", know_streams, METH_O, NULL },
  { NULL, NULL, 0, NULL },
};

int binding_add_configured(PyObject *module)
{
  dispatcher_type = binding_make_type(module, &dispatcher_spec);
  configured_type = binding_make_type(module, &configured_spec);
  if (!dispatcher_type || !configured_type || form_add(module)) return -1;
  return PyModule_AddFunctions(module, functions);
}
