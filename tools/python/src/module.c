/* The module kjit._kjit itself: exceptions for errors, and actions after a fork. */
#include "binding.h"

#include <pthread.h>
#include <stdarg.h>

unsigned binding_generation;

/* kjit._errors.make(status, diagnostics), which makes an exception. */
static PyObject *make_error;
/* kjit.Error */
static PyObject *error_class;
/* The interpreter to which the types belong. */
static int64_t interpreter = -1;

static void count_fork(void) { binding_generation++; }

static PyObject *make_position(const uint32_t at[3])
{
  return Py_BuildValue("(III)", at[0], at[1], at[2]);
}

static PyObject *make_text(const char *text, size_t size)
{
  return PyUnicode_DecodeUTF8(text, (Py_ssize_t)size, "replace");
}

/* Appends an object to a list and releases it. Returns -1 if the object is NULL, or out of memory.
 */
static int append_new(PyObject *list, PyObject *item)
{
  int outcome = item ? PyList_Append(list, item) : -1;
  Py_XDECREF(item);
  return outcome;
}

/* Returns a message as a list of strings and phrases; a phrase is a tuple (name, text, argument).
 */
static PyObject *make_parts(const kjit_diagnostic *d)
{
  PyObject *parts = PyList_New(0);
  size_t at = 0, length = strlen(d->message);
  for (size_t i = 0; parts && i < d->phrase_count; i++) {
    const kjit_phrase *phrase = &d->phrases[i];
    const char *text = d->message + phrase->first;
    if (phrase->first > at && append_new(parts, make_text(d->message + at, phrase->first - at)))
      Py_CLEAR(parts);
    at = phrase->first + phrase->size_bytes;
    if (parts && append_new(parts, Py_BuildValue("(sNN)", kjit_get_phrase_name(phrase->code),
                                                 make_text(text, phrase->size_bytes),
                                                 make_text(d->message + phrase->argument_first,
                                                           phrase->argument_bytes))))
      Py_CLEAR(parts);
  }
  if (parts && (at < length || !at) && append_new(parts, make_text(d->message + at, length - at)))
    Py_CLEAR(parts);
  return parts;
}

/* Returns a diagnostic in the form that kjit._errors.make takes. */
static PyObject *make_row(const kjit_diagnostic *d)
{
  const char *code = d->code == KJIT_CODE_NONE ? NULL : kjit_get_error_code_name(d->code);
  if (d->failure == KJIT_FAILURE_NONE)
    return Py_BuildValue("iziiNzz", (int)d->severity, d->file, (int)d->line, (int)d->column,
                         make_parts(d), d->source_line, code);
  PyObject *thread = d->is_whole_block ? Py_NewRef(Py_None) : make_position(d->thread);
  return Py_BuildValue("iziiNzziNNz", (int)d->severity, d->file, (int)d->line, (int)d->column,
                       make_parts(d), d->source_line, code, (int)d->failure,
                       make_position(d->block), thread, d->failure_text);
}

/* Returns this thread's diagnostics. A diagnostic is valid until the thread's next call of libkjit,
 * which a finalizer could make. So the function disables the garbage collector meanwhile. */
static PyObject *list_diagnostics(kjit_context *context)
{
  int collects = PyGC_Disable();
  PyObject *list = PyList_New(0);
  const kjit_diagnostic *d;
  for (size_t i = 0; list && (d = kjit_get_diagnostic(context, i)); i++) {
    PyObject *row = make_row(d);
    if (!row || PyList_Append(list, row)) Py_CLEAR(list);
    Py_XDECREF(row);
  }
  if (collects) PyGC_Enable();
  return list;
}

static PyObject *raise_made(kjit_status status, PyObject *diagnostics)
{
  if (!diagnostics) return NULL;
  if (!make_error) {
    PyErr_SetString(PyExc_RuntimeError, kjit_get_status_name(status));
    Py_DECREF(diagnostics);
    return NULL;
  }
  PyObject *error =
    PyObject_CallFunction(make_error, "sN", kjit_get_status_name(status), diagnostics);
  if (error) {
    PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_DECREF(error);
  }
  return NULL;
}

PyObject *binding_raise(context_object *context, kjit_status status)
{
  return raise_made(status, list_diagnostics(context->context));
}

PyObject *binding_fail(kjit_status status, const char *format, ...)
{
  va_list list;
  va_start(list, format);
  PyObject *text = PyUnicode_FromFormatV(format, list);
  va_end(list);
  if (!text) return NULL;
  PyObject *row =
    Py_BuildValue("[(iOii[N]OO)]", KJIT_SEVERITY_ERROR, Py_None, 0, 0, text, Py_None, Py_None);
  return raise_made(status, row);
}

/* The types that were created. If a program imports kjit again after it removed kjit from
 * sys.modules, it gets the same types, because objects of these types still exist. */
static struct made_type {
  const PyType_Spec *spec;
  PyTypeObject *type;
} made_types[20];

static PyTypeObject *find_type(PyType_Spec *spec)
{
  struct made_type *made = made_types;
  while (made->spec && made->spec != spec) made++;
  if (made->spec) return made->type;
  PyTypeObject *type = (PyTypeObject *)PyType_FromSpec(spec);
  if (type) *made = (struct made_type){ spec, type };
  return type;
}

PyTypeObject *binding_make_type(PyObject *module, PyType_Spec *spec)
{
  PyTypeObject *type = find_type(spec);
  const char *name = strrchr(spec->name, '.') + 1;
  return type && !PyModule_AddObjectRef(module, name, (PyObject *)type) ? type : NULL;
}

void *binding_new_object(PyTypeObject *type)
{
  allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
  return allocate(type, 0);
}

void binding_free_object(PyObject *object)
{
  PyTypeObject *type = Py_TYPE(object);
  freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
  release(object);
  Py_DECREF(type);
}

static PyObject *set_error_factory(PyObject *module, PyObject *args)
{
  (void)module;
  PyObject *factory, *class;
  if (!PyArg_ParseTuple(args, "OO", &factory, &class)) return NULL;
  binding_set(&make_error, Py_NewRef(factory));
  binding_set(&error_class, Py_NewRef(class));
  Py_RETURN_NONE;
}

int binding_look_up(PyObject *object, const char *name, PyObject **found)
{
  *found = PyObject_GetAttrString(object, name);
  if (*found) return 1;
  if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return -1;
  PyErr_Clear();
  return 0;
}

int binding_is_error(void) { return error_class && PyErr_ExceptionMatches(error_class); }

/* phrase_names(): returns the names of all phrases of messages in order. */
static PyObject *phrase_names(PyObject *module, PyObject *unused)
{
  (void)module, (void)unused;
  PyObject *list = PyList_New(0);
  for (int i = KJIT_PHRASE_NONE + 1; list && i < KJIT_PHRASE_COUNT; i++)
    if (append_new(list, PyUnicode_FromString(kjit_get_phrase_name((kjit_phrase_code)i))))
      Py_CLEAR(list);
  return list;
}

/* status_names(): returns the names of all error statuses in order. */
static PyObject *status_names(PyObject *module, PyObject *unused)
{
  (void)module, (void)unused;
  PyObject *list = PyList_New(0);
  for (int i = KJIT_ERROR_MISUSE; list && i < KJIT_STATUS_COUNT; i++) {
    PyObject *name = PyUnicode_FromString(kjit_get_status_name((kjit_status)i));
    if (!name || PyList_Append(list, name)) Py_CLEAR(list);
    Py_XDECREF(name);
  }
  return list;
}

static PyObject *version(PyObject *module, PyObject *unused)
{
  (void)module, (void)unused;
  uint32_t number = kjit_get_version();
  return PyUnicode_FromFormat("%u.%u.%u", number / 10000, number / 100 % 100, number % 100);
}

static PyMethodDef functions[] = {
  { "set_error_factory", set_error_factory, METH_VARARGS, NULL },
  { "phrase_names", phrase_names, METH_NOARGS, NULL },
  { "status_names", status_names, METH_NOARGS, NULL },
  { "version", version, METH_NOARGS, NULL },
  { NULL, NULL, 0, NULL },
};

/* The types belong to one interpreter. Another interpreter with its own lock must not use them. */
static int fill_module(PyObject *module)
{
  int64_t here = PyInterpreterState_GetID(PyInterpreterState_Get());
  if (interpreter >= 0 && interpreter != here) {
    PyErr_SetString(PyExc_ImportError, "only one interpreter of a process can import kjit");
    return -1;
  }
  if (interpreter < 0) pthread_atfork(NULL, NULL, count_fork);
  interpreter = here;
  if (binding_init_arguments() || binding_init_direct()) return -1;
  if (binding_add_context(module) || binding_add_streams(module) || binding_add_array(module))
    return -1;
  return binding_add_kernel(module) || binding_add_launcher(module) ||
             binding_add_configured(module) || binding_add_functions(module) ||
             binding_add_algorithms(module) || binding_add_code(module) ||
             binding_add_records(module) || binding_add_memory(module) ||
             binding_add_progress(module) || binding_add_callbacks(module) ||
             binding_add_recorded_sources(module) || binding_add_places(module) ||
             binding_add_expressions(module) || binding_add_formulas(module) ||
             binding_add_figures(module)
           ? -1
           : 0;
}

static PyModuleDef_Slot slots[] = {
  { Py_mod_exec, (void *)fill_module },
  { 0, NULL },
};

static struct PyModuleDef definition = {
  .m_base = PyModuleDef_HEAD_INIT,
  .m_name = "kjit._kjit",
  .m_doc = "Binding to libkjit. Programs import the package kjit instead.",
  .m_methods = functions,
  .m_slots = slots,
};

PyMODINIT_FUNC PyInit__kjit(void);
PyMODINIT_FUNC PyInit__kjit(void) { return PyModuleDef_Init(&definition); }
