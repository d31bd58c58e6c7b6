/* Keeps the sources and syntax trees that exec, eval and compile have compiled, unless they are in
 * a file: no file has the source of the functions that they define. Python calls its audit hooks
 * for each compilation. A hook in Python would slow down all audit events; a hook in C takes hardly
 * any time. */
#include "binding.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

/* Maximum number of statements in a kept syntax tree. Programs that create functions from syntax
 * trees use small trees. Trees of whole modules, which test tools compile, would take much
 * memory. */
enum { MOST_SOURCES = 1000, MOST_BYTES = 1 << 20, MOST_STATEMENTS = 16 };

typedef int (*hook_function)(const char *event, PyObject *args, void *data);
typedef int (*add_function)(hook_function hook, void *data);

static PyObject *kept;      /* list of (source, file or None); NULL until listen() is called */
static Py_ssize_t oldest;   /* index of the item to replace next, if the list is full */
static int64_t interpreter; /* the interpreter whose sources are kept */
static _Thread_local int is_deaf;

/* Returns whether the text may contain a function. */
static int has_function(const char *text, Py_ssize_t size)
{
  return text && size <= MOST_BYTES && (strstr(text, "def ") || strstr(text, "lambda"));
}

static int is_small_tree(PyObject *source)
{
  PyObject *body = PyObject_GetAttrString(source, "body");
  int is_small = body && (!PyList_Check(body) || PyList_Size(body) <= MOST_STATEMENTS);
  Py_XDECREF(body);
  return is_small;
}

static int is_wanted(PyObject *source)
{
  if (source == Py_None) return 0;
  if (PyBytes_Check(source)) return has_function(PyBytes_AsString(source), PyBytes_Size(source));
  if (!PyUnicode_Check(source)) return is_small_tree(source);
  Py_ssize_t size = 0;
  const char *text = PyUnicode_AsUTF8AndSize(source, &size);
  return has_function(text, size);
}

/* Returns whether no file has this name. The name is None if Python compiles a syntax tree. */
static int is_elsewhere(PyObject *file)
{
  if (file == Py_None) return 1;
  const char *name = PyUnicode_Check(file) ? PyUnicode_AsUTF8AndSize(file, NULL) : NULL;
  return name && (*name == '<' || access(name, F_OK));
}

static void keep(PyObject *pair)
{
  if (PyList_Size(kept) < MOST_SOURCES) {
    PyList_Append(kept, pair);
    return;
  }
  PyList_SetItem(kept, oldest, Py_NewRef(pair));
  oldest = (oldest + 1) % MOST_SOURCES;
}

static int hear(const char *event, PyObject *args, void *data)
{
  (void)data;
  if (strcmp(event, "compile") || is_deaf || !kept) return 0;
  if (PyInterpreterState_GetID(PyInterpreterState_Get()) != interpreter) return 0;
  if (!PyTuple_Check(args) || PyTuple_Size(args) != 2) return 0;
  is_deaf = 1;
  if (is_elsewhere(PyTuple_GetItem(args, 1)) && is_wanted(PyTuple_GetItem(args, 0))) keep(args);
  PyErr_Clear();
  is_deaf = 0;
  return 0;
}

/* listen(): starts to keep the latest 1000 sources. Returns whether this is possible. */
static PyObject *listen_to_compilations(PyObject *module, PyObject *unused)
{
  (void)module, (void)unused;
  if (kept) Py_RETURN_TRUE;
  /* the limited API does not declare this function */
  add_function add;
  *(void **)&add = dlsym(RTLD_DEFAULT, "PySys_AddAuditHook");
  if (!add) Py_RETURN_FALSE;
  interpreter = PyInterpreterState_GetID(PyInterpreterState_Get());
  PyObject *list = PyList_New(0);
  if (!list) return NULL;
  if (add(hear, NULL)) {
    Py_DECREF(list);
    return NULL;
  }
  kept = list;
  Py_RETURN_TRUE;
}

/* recorded_sources(): returns a list of (source, file or None), oldest first. */
static PyObject *get_recorded_sources(PyObject *module, PyObject *unused)
{
  (void)module, (void)unused;
  PyObject *list = PyList_New(0);
  Py_ssize_t count = kept ? PyList_Size(kept) : 0;
  for (Py_ssize_t i = 0; list && i < count; i++)
    if (PyList_Append(list, PyList_GetItem(kept, (oldest + i) % count))) Py_CLEAR(list);
  return list;
}

/* set_deaf(value): sets whether compilations of this thread are ignored. */
static PyObject *set_deaf(PyObject *module, PyObject *value)
{
  (void)module;
  is_deaf = PyObject_IsTrue(value) == 1;
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
  { "listen", listen_to_compilations, METH_NOARGS, NULL },
  { "recorded_sources", get_recorded_sources, METH_NOARGS, NULL },
  { "set_deaf", set_deaf, METH_O, NULL },
  { NULL, NULL, 0, NULL },
};

int binding_add_recorded_sources(PyObject *module)
{
  return PyModule_AddFunctions(module, functions);
}
