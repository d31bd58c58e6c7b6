/* Converts record dtypes (NumPy dtypes with fields) and date dtypes to structs of the kernel IR.
 * kjit._records determines the fields in a struct; this file makes the types and stores them for
 * each context. */
#include "binding.h"

int binding_names_date(const char *name)
{
  return !strncmp(name, "datetime64_", 11) || !strncmp(name, "timedelta64_", 12);
}

int binding_names_record(const char *name)
{
  return !strncmp(name, "record_", 7) || binding_names_date(name);
}

/* ---- making structs ---- */

/* Reads (name, name of the type, extents, offset) of a field. */
static int read_field(context_object *context, PyObject *row, kjit_field *field, uint32_t *offset)
{
  PyObject *type, *extents;
  const char *name;
  if (!PyArg_ParseTuple(row, "sUO!I", &name, &type, &PyTuple_Type, &extents, offset)) return -1;
  field->name = name;
  return binding_parse_shape(extents, field->shape, &field->rank) ||
             !binding_parse_element(context, type, &field->type)
           ? -1
           : 0;
}

/* Checks that the struct has the same field offsets as the NumPy dtype. */
static int check_layout(context_object *context, kjit_type type, const kjit_field *fields,
                        const uint32_t *offsets, Py_ssize_t count, uint32_t size_bytes)
{
  kjit_type_layout layout = { .size_bytes = sizeof layout };
  kjit_field own;
  uint32_t offset;
  int is_same = kjit_get_type_layout(context->context, type, &layout) == KJIT_OK &&
                layout.type_bytes == size_bytes && layout.field_count == (uint32_t)count;
  for (Py_ssize_t i = 0; is_same && i < count; i++) {
    is_same = kjit_get_type_field(context->context, type, (uint32_t)i, &own, &offset) == KJIT_OK &&
              !strcmp(own.name, fields[i].name) && offset == offsets[i];
  }
  if (is_same) return 0;
  binding_fail(KJIT_ERROR_UNSUPPORTED,
               "the fields of this record type have offsets that a struct of kjit cannot have");
  return -1;
}

/* Makes a struct from (name, fields, is_packed, bytes). */
static kjit_type make_struct(context_object *context, PyObject *described)
{
  PyObject *rows;
  const char *name;
  int is_packed;
  unsigned size_bytes;
  if (!PyArg_ParseTuple(described, "sO!pI", &name, &PyTuple_Type, &rows, &is_packed, &size_bytes))
    return KJIT_VOID;
  Py_ssize_t count = PyTuple_Size(rows);
  kjit_field *fields = PyMem_Calloc((size_t)count + 1, sizeof *fields);
  uint32_t *offsets = PyMem_Calloc((size_t)count + 1, sizeof *offsets);
  kjit_type made = KJIT_VOID;
  if (!fields || !offsets) PyErr_NoMemory();
  for (Py_ssize_t i = 0; !PyErr_Occurred() && i < count; i++)
    if (read_field(context, PyTuple_GetItem(rows, i), &fields[i], &offsets[i])) break;
  if (!PyErr_Occurred()) {
    made = kjit_get_struct_type(context->context, name, fields, (size_t)count,
                                is_packed ? KJIT_STRUCT_PACKED : 0);
    if (made == KJIT_VOID) binding_raise(context, KJIT_ERROR_ARGUMENT);
    else if (check_layout(context, made, fields, offsets, count, size_bytes)) made = KJIT_VOID;
  }
  PyMem_Free(offsets);
  PyMem_Free(fields);
  return made;
}

/* ---- by dtype, by name ---- */

static PyObject *call_records(const char *function, PyObject *argument)
{
  PyObject *module = PyImport_ImportModule("kjit._records");
  PyObject *result = module ? PyObject_CallMethod(module, function, "(O)", argument) : NULL;
  Py_XDECREF(module);
  return result;
}

/* Returns the struct that a function of kjit._records describes for the key, or KJIT_VOID if the
 * function returns None. */
static kjit_type find(context_object *context, PyObject *key, const char *function)
{
  if (!context->records && !(context->records = PyDict_New())) return KJIT_VOID;
  PyObject *known = PyDict_GetItemWithError(context->records, key); /* borrowed */
  if (known) return (kjit_type)PyLong_AsUnsignedLong(known);
  PyObject *described = PyErr_Occurred() ? NULL : call_records(function, key);
  kjit_type type = described && described != Py_None ? make_struct(context, described) : KJIT_VOID;
  Py_XDECREF(described);
  PyObject *number = type == KJIT_VOID ? NULL : PyLong_FromUnsignedLong(type);
  if (number && PyDict_SetItem(context->records, key, number)) type = KJIT_VOID;
  Py_XDECREF(number);
  return type;
}

kjit_type binding_find_record(context_object *context, PyObject *object)
{
  PyObject *dtype = PyObject_GetAttrString(object, "dtype");
  if (!dtype) {
    PyErr_Clear();
    return KJIT_VOID;
  }
  kjit_type type = find(context, dtype, "describe");
  Py_DECREF(dtype);
  return type;
}

kjit_type binding_find_named_record(context_object *context, PyObject *name)
{
  return find(context, name, "describe_named");
}

PyObject *binding_view_plainly(PyObject *object) { return call_records("view_plainly", object); }

/* find_record(context, name): makes the struct in the context, so that type names can refer to
 * it. */
static PyObject *find_record(PyObject *module, PyObject *args)
{
  (void)module;
  context_object *context;
  PyObject *name;
  if (!PyArg_ParseTuple(args, "O!U", binding_context_type, &context, &name) ||
      binding_find_named_record(context, name) == KJIT_VOID)
    return NULL;
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
  { "find_record", find_record, METH_VARARGS, NULL },
  { NULL, NULL, 0, NULL },
};

int binding_add_records(PyObject *module) { return PyModule_AddFunctions(module, functions); }

PyObject *binding_make_date(const char *name, int64_t count)
{
  PyObject *module = PyImport_ImportModule("kjit._records");
  PyObject *date =
    module ? PyObject_CallMethod(module, "date_of", "sL", name, (long long)count) : NULL;
  Py_XDECREF(module);
  return date;
}

PyObject *binding_get_record_dtype(const char *name)
{
  PyObject *text = PyUnicode_FromString(name);
  PyObject *dtype = text ? call_records("dtype_of", text) : NULL;
  Py_XDECREF(text);
  return dtype;
}
