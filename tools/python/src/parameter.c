/* Arranges a call's arguments in the order of the parameters of a kernel or func, and converts
 * them. */
#include "binding.h"

#include <stdlib.h>

/* Returns a function's name for messages. */
static PyObject *describe_owner(PyObject *owner)
{
  PyObject *name = PyObject_GetAttrString(owner, "__name__");
  if (!name) PyErr_Clear();
  PyObject *text = name ? PyUnicode_FromFormat("%S()", name) : PyUnicode_FromString("the function");
  Py_XDECREF(name);
  if (!text) PyErr_Clear();
  return text;
}

void binding_set_parameters(binding_parameters *self, PyObject *owner, PyObject *names,
                            PyObject *defaults, int is_typed)
{
  binding_set(&self->name, describe_owner(owner));
  self->count = PyTuple_Check(defaults) ? PyTuple_Size(names) : -1;
  binding_set(&self->names, Py_NewRef(names));
  binding_set(&self->defaults, Py_NewRef(defaults));
  self->is_typed = is_typed;
}

void binding_clear_parameters(binding_parameters *self)
{
  Py_CLEAR(self->name);
  Py_CLEAR(self->names);
  Py_CLEAR(self->defaults);
}

static int find_name(const binding_parameters *self, PyObject *name)
{
  Py_ssize_t count = PyTuple_Size(self->names);
  for (Py_ssize_t i = 0; i < count; i++)
    if (!PyUnicode_Compare(PyTuple_GetItem(self->names, i), name)) return (int)i;
  return -1;
}

/* Stores the value of a keyword argument at its parameter. */
static int place_keyword(const binding_parameters *self, PyObject *key, PyObject *value,
                         PyObject **found)
{
  int index = find_name(self, key);
  if (index < 0)
    binding_fail(KJIT_ERROR_ARGUMENT, "%V has no parameter `%U`", self->name, "the function", key);
  else if (found[index])
    binding_fail(KJIT_ERROR_ARGUMENT, "%V got two values for the parameter `%U`", self->name,
                 "the function", key);
  if (PyErr_Occurred()) return -1;
  found[index] = value;
  return 0;
}

static int place_keywords(const binding_parameters *self, PyObject *const *values,
                          PyObject *keywords, PyObject **found)
{
  PyObject *key, *value;
  if (!keywords) return 0;
  if (PyDict_Check(keywords)) {
    for (Py_ssize_t at = 0; PyDict_Next(keywords, &at, &key, &value);)
      if (place_keyword(self, key, value, found)) return -1;
    return 0;
  }
  Py_ssize_t count = PyTuple_Size(keywords);
  for (Py_ssize_t i = 0; i < count; i++)
    if (place_keyword(self, PyTuple_GetItem(keywords, i), values[i], found)) return -1;
  return 0;
}

/* Calls the Python function that arranges arguments for functions with *args or keyword-only
 * parameters. */
static PyObject *arrange_in_python(const binding_parameters *self, PyObject *const *args,
                                   Py_ssize_t given, PyObject *keywords)
{
  PyObject *tuple = PyTuple_New(given), *named = NULL, *result = NULL;
  for (Py_ssize_t i = 0; tuple && i < given; i++) PyTuple_SetItem(tuple, i, Py_NewRef(args[i]));
  if (keywords && PyTuple_Check(keywords)) {
    named = PyDict_New();
    for (Py_ssize_t i = 0; named && i < PyTuple_Size(keywords); i++)
      if (PyDict_SetItem(named, PyTuple_GetItem(keywords, i), args[given + i])) Py_CLEAR(named);
    if (!named) Py_CLEAR(tuple);
  }
  if (tuple) result = PyObject_Call(self->defaults, tuple, named ? named : keywords);
  Py_XDECREF(named);
  Py_XDECREF(tuple);
  return result;
}

PyObject *binding_arrange(const binding_parameters *self, PyObject *const *args, Py_ssize_t given,
                          PyObject *keywords)
{
  if (!PyTuple_Check(self->defaults)) return arrange_in_python(self, args, given, keywords);
  Py_ssize_t count = PyTuple_Size(self->names);
  Py_ssize_t first_default = count - PyTuple_Size(self->defaults);
  if (given > count) {
    binding_fail(KJIT_ERROR_ARGUMENT, "%V takes %zd argument%s, %zd %s given", self->name,
                 "the function", count, count == 1 ? "" : "s", given, given == 1 ? "was" : "were");
    return NULL;
  }
  PyObject *result = PyTuple_New(count);
  PyObject **found = calloc((size_t)count + 1, sizeof *found); /* borrowed */
  if (!result || !found) {
    if (result) PyErr_NoMemory();
    goto fail;
  }
  for (Py_ssize_t i = 0; i < given; i++) found[i] = args[i];
  if (place_keywords(self, args + given, keywords, found)) goto fail;
  for (Py_ssize_t i = 0; i < count; i++) {
    if (!found[i] && i >= first_default)
      found[i] = PyTuple_GetItem(self->defaults, i - first_default);
    if (!found[i]) {
      binding_fail(KJIT_ERROR_ARGUMENT, "%V: the argument for the parameter `%U` is missing",
                   self->name, "the function", PyTuple_GetItem(self->names, i));
      goto fail;
    }
    PyTuple_SetItem(result, i, Py_NewRef(found[i]));
  }
  free(found);
  return result;
fail:
  free(found);
  Py_XDECREF(result);
  return NULL;
}

static const char *get_name(const binding_parameters *self, Py_ssize_t index)
{
  PyObject *name = index < PyTuple_Size(self->names) ? PyTuple_GetItem(self->names, index) : NULL;
  const char *text = name ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
  if (!text) PyErr_Clear();
  return text;
}

static kjit_arg type_number(const kjit_arg *arg)
{
  switch (arg->type) {
  case KJIT_F64: return kjit_arg_f64(arg->value.f64);
  case KJIT_I64: return kjit_arg_i64(arg->value.i);
  case KJIT_U64: return kjit_arg_u64(arg->value.u);
  default: return kjit_arg_i64((int64_t)arg->value.f64);
  }
}

/* Returns whether an argument is a copy of one element, and the callee has Numba's types. Such a
 * copy is passed as a number, because Numba treats an element of a NumPy array as a number. */
static int is_number_of_numba(const binding_parameters *self, PyObject *object)
{
  if (!self->is_typed || ((array_object *)object)->is_read_only != BINDING_ELEMENT) return 0;
  kjit_type element = binding_get_element((array_object *)object);
  return element < KJIT_SCALAR_COUNT && element != KJIT_BF16; /* NumPy has no bfloat16 */
}

static int take_element(context_object *context, const binding_parameters *self, Py_ssize_t index,
                        PyObject *object, binding_argument *storage, kjit_arg *arg)
{
  PyObject *copy = PyObject_CallMethod(object, "to_host", NULL), *position = PyTuple_New(0);
  PyObject *number = copy && position ? PyObject_GetItem(copy, position) : NULL;
  int failed =
    !number || binding_take_argument(context, number, get_name(self, index), storage, arg);
  Py_XDECREF(number);
  Py_XDECREF(position);
  Py_XDECREF(copy);
  return failed ? -1 : 0;
}

int binding_check_protection(binding_describe_parameter *describe, void *callee,
                             const binding_parameters *self, PyObject *const *args,
                             Py_ssize_t count)
{
  for (Py_ssize_t i = 0; i < count; i++) {
    if (Py_TYPE(args[i]) != binding_array_type || !((array_object *)args[i])->is_read_only)
      continue;
    if (is_number_of_numba(self, args[i])) continue;
    kjit_parameter_info info = { .size_bytes = sizeof info };
    if (describe(callee, (size_t)i, &info) != KJIT_OK || !info.is_written) continue;
    /* With Numba's types, is_written is also true if the callee only reads the array but passes a
     * part of it to a function that could write. So a read-only array is accepted if is_read is
     * also true. */
    if (self->is_typed && info.is_read &&
        ((array_object *)args[i])->is_read_only != BINDING_ELEMENT)
      continue;
    binding_fail(KJIT_ERROR_ARGUMENT,
                 "parameter `%s`: the function writes to the array, but the array is %s", info.name,
                 ((array_object *)args[i])->is_read_only == BINDING_ELEMENT
                   ? "a copy of one element; pass the view x[i, ...]"
                   : "read-only");
    return -1;
  }
  return 0;
}

int binding_take_parameter(context_object *context, const binding_parameters *self,
                           Py_ssize_t index, PyObject *object, binding_argument *storage,
                           kjit_arg *arg)
{
  PyTypeObject *type = Py_TYPE(object);
  int is_number = type == &PyFloat_Type || type == &PyLong_Type;
  if (type == binding_array_type && binding_before_write((array_object *)object)) return -1;
  if (type == binding_array_type && is_number_of_numba(self, object))
    return take_element(context, self, index, object, storage, arg);
  if (type == binding_array_type && ((array_object *)object)->context == context) {
    binding_begin_argument(storage);
    *arg = binding_pass_array((array_object *)object);
    return 0;
  }
  int looked = is_number || type == binding_array_type ? 0 : binding_look(context, object, storage);
  if (looked < 0) return -1;
  if (looked) {
    *arg = kjit_arg_tensor(&storage->tensor);
    return 0;
  }
  if (binding_take_argument(context, object, get_name(self, index), storage, arg)) return -1;
  if (self->is_typed && arg->kind == KJIT_ARG_NUMBER) *arg = type_number(arg);
  return 0;
}
