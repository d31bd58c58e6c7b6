/* Funcs that Python calls, on the CPU. */
#include "binding.h"

/* Arguments of a call at most; the language has no such limit, programs that people write do not
 * meet it. */
#define MOST 64

/* call_function(module, name, parameters, arguments): what the func returns. */
static PyObject *call_function(PyObject *unused, PyObject *const *args, Py_ssize_t given)
{
  (void)unused;
  if (given != 4 || !PyObject_TypeCheck(args[0], binding_module_type) || !PyTuple_Check(args[2]) ||
      !PyTuple_Check(args[3])) {
    PyErr_SetString(PyExc_TypeError, "call_function(module, name, parameters, arguments)");
    return NULL;
  }
  module_object *module = (module_object *)args[0];
  context_object *context = module->context;
  const char *name = PyUnicode_AsUTF8AndSize(args[1], NULL);
  Py_ssize_t count = PyTuple_Size(args[3]), taken = 0;
  if (!name) return NULL;
  if (count > MOST || count != PyTuple_Size(args[2]))
    return binding_fail(KJIT_ERROR_ARGUMENT, "the func %s takes %zd arguments, %zd were given",
                        name, PyTuple_Size(args[2]), count);
  kjit_function *function;
  kjit_status status = kjit_get_function(module->module, name, &function);
  if (binding_finish(context, status)) return NULL;
  binding_argument storage[MOST];
  kjit_arg list[MOST], result = kjit_make_arg(KJIT_ARG_VALUE, KJIT_ANY);
  for (; taken < count; taken++) {
    const char *parameter = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(args[2], taken), NULL);
    if (!parameter || binding_take_argument(context, PyTuple_GetItem(args[3], taken), parameter,
                                            &storage[taken], &list[taken]))
      break;
  }
  PyObject *value = NULL;
  if (taken == count) {
    BINDING_UNLOCKED(context, status = kjit_call_function(function, list, (size_t)count, &result));
    if (!binding_finish(context, status)) value = binding_make_value(result.type, &result.value);
  }
  for (Py_ssize_t i = 0; i < taken; i++) binding_free_argument(&storage[i]);
  return value;
}

static PyMethodDef functions[] = {
  { "call_function", (PyCFunction)(void (*)(void))call_function, METH_FASTCALL, NULL },
  { NULL, NULL, 0, NULL },
};

int binding_add_functions(PyObject *module) { return PyModule_AddFunctions(module, functions); }
