/* The Python type of shortcuts. A shortcut replaces a Python function, behaves like this function,
 * and runs calls in C if it can (docs/architecture/python.md). */
#include "shortcut.h"

#include "algorithm.h"

#include <structmember.h>

enum { MOST_ITEMS = 16 }; /* maximum number of arguments of a call with a tuple and a dictionary */

static PyTypeObject *shortcut_type;
static PyObject *method_type; /* types.MethodType */

/* shortcut(function, name=None, number=0, has_recipes=False): returns the shortcut of a Python
 * function. name: the name of its quick function. Without a name, the shortcut has recipes. */
static PyObject *create_shortcut(PyObject *module, PyObject *args)
{
  (void)module;
  PyObject *function;
  const char *name = NULL;
  long number = 0;
  int has_recipes = 0;
  if (!PyArg_ParseTuple(args, "O|zlp", &function, &name, &number, &has_recipes)) return NULL;
  has_recipes |= !name;
  const quick_row *quick = name ? quick_find(name) : NULL;
  if (name && !quick) return PyErr_Format(PyExc_ValueError, "there is no quick function %s", name);
  shortcut_recipe **recipes = has_recipes ? PyMem_Calloc(SHORTCUT_SLOTS, sizeof *recipes) : NULL;
  shortcut_object *self = recipes || !has_recipes ? binding_new_object(shortcut_type) : NULL;
  if (!self) {
    PyMem_Free(recipes);
    return PyErr_Occurred() ? NULL : PyErr_NoMemory();
  }
  self->function = Py_NewRef(function);
  self->call = shortcut_call;
  self->quick = quick;
  self->number = number;
  self->recipes = recipes;
  return (PyObject *)self;
}

static int traverse_shortcut(PyObject *object, visitproc visit, void *arg)
{
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(((shortcut_object *)object)->function);
  return 0;
}

static void free_shortcut(PyObject *object)
{
  shortcut_object *self = (shortcut_object *)object;
  PyObject_GC_UnTrack(object);
  for (int i = 0; self->recipes && i < SHORTCUT_SLOTS; i++)
    shortcut_release_recipe(self->recipes[i]);
  PyMem_Free(self->recipes);
  Py_XDECREF(self->function);
  binding_free_object(object);
}

/* Calls with a tuple and a dictionary, as NumPy calls __array_ufunc__. */
static PyObject *call_with_tuple(PyObject *object, PyObject *args, PyObject *options)
{
  PyObject *items[MOST_ITEMS], *name, *value;
  Py_ssize_t count = PyTuple_Size(args), more = options ? PyDict_Size(options) : 0, place = 0;
  if (count + more > MOST_ITEMS)
    return PyObject_Call(((shortcut_object *)object)->function, args, options);
  PyObject *names = more ? PyTuple_New(more) : NULL;
  if (more && !names) return NULL;
  for (Py_ssize_t i = 0; i < count; i++) items[i] = PyTuple_GetItem(args, i);
  for (Py_ssize_t i = 0; more && PyDict_Next(options, &place, &name, &value); i++) {
    PyTuple_SetItem(names, i, Py_NewRef(name));
    items[count + i] = value;
  }
  PyObject *result = shortcut_call(object, items, (size_t)count, names);
  Py_XDECREF(names);
  return result;
}

/* Returns an attribute of the Python function, such as its name or its documentation. */
static PyObject *get_attribute(PyObject *object, PyObject *name)
{
  static const char *const own[] = { "__class__", "__reduce__", "__reduce_ex__" };
  PyObject *function = ((shortcut_object *)object)->function;
  for (size_t i = 0; i < sizeof own / sizeof *own; i++)
    if (PyUnicode_CompareWithASCIIString(name, own[i]) == 0)
      return PyObject_GenericGetAttr(object, name);
  PyObject *found = PyObject_GetAttr(function, name);
  if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
  PyErr_Clear();
  return PyObject_GenericGetAttr(object, name);
}

static int set_attribute(PyObject *object, PyObject *name, PyObject *value)
{
  return PyObject_SetAttr(((shortcut_object *)object)->function, name, value);
}

static PyObject *bind(PyObject *object, PyObject *instance, PyObject *owner)
{
  (void)owner;
  if (!instance || instance == Py_None) return Py_NewRef(object);
  return PyObject_CallFunctionObjArgs(method_type, object, instance, NULL);
}

static PyObject *show(PyObject *object)
{
  return PyObject_Repr(((shortcut_object *)object)->function);
}

/* __reduce_ex__(protocol): a shortcut is pickled by its name, like a function. */
static PyObject *reduce(PyObject *object, PyObject *unused)
{
  (void)unused;
  return PyObject_GetAttrString(((shortcut_object *)object)->function, "__qualname__");
}

static PyMethodDef methods[] = {
  { "__reduce_ex__", reduce, METH_O, NULL },
  { NULL, NULL, 0, NULL },
};
static PyMemberDef members[] = {
  { "__vectorcalloffset__", T_PYSSIZET, offsetof(shortcut_object, call), READONLY, NULL },
  { "python_function", T_OBJECT, offsetof(shortcut_object, function), READONLY,
    "the Python function that handles the other calls" },
  { NULL, 0, 0, 0, NULL },
};
static PyType_Slot slots[] = {
  { Py_tp_dealloc, (void *)free_shortcut },
  { Py_tp_traverse, (void *)traverse_shortcut },
  { Py_tp_call, (void *)call_with_tuple },
  { Py_tp_getattro, (void *)get_attribute },
  { Py_tp_setattro, (void *)set_attribute },
  { Py_tp_descr_get, (void *)bind },
  { Py_tp_repr, (void *)show },
  { Py_tp_members, members },
  { Py_tp_methods, methods },
  { 0, NULL },
};
static PyType_Spec spec = { "kjit._kjit.Shortcut", sizeof(shortcut_object), 0,
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | HAS_VECTORCALL |
                              Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                            slots };

static PyMethodDef shortcut_functions[] = {
  { "shortcut", create_shortcut, METH_VARARGS, NULL },
  { NULL, NULL, 0, NULL },
};

int binding_add_shortcuts(PyObject *module)
{
  shortcut_type = binding_make_type(module, &spec);
  PyObject *types = shortcut_type ? PyImport_ImportModule("types") : NULL;
  binding_set(&method_type, types ? PyObject_GetAttrString(types, "MethodType") : NULL);
  Py_XDECREF(types);
  return method_type && !quick_add(module) ? PyModule_AddFunctions(module, shortcut_functions) : -1;
}
