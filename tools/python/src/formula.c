/* kjit._kjit.Formula: a checked formula that runs over columns owned by Python. */
#include "binding.h"

#include <stdlib.h>
#include <string.h>

static PyTypeObject *formula_type;

typedef struct formula_object {
  PyObject_HEAD context_object *context;
  kjit_formula *formula;
  size_t column_count;
  unsigned generation;
} formula_object;

/* ---- creating formulas ---- */

/* Reads the tuple of strings that is a column's dictionary. texts->items is malloc'ed; the strings
 * belong to Python. */
static int read_texts(PyObject *items, kjit_formula_texts *texts)
{
  const Py_ssize_t count = PyTuple_Size(items);
  const char **made = calloc((size_t)count + 1, sizeof *made);
  if (!made) {
    (void)PyErr_NoMemory();
    return -1;
  }
  *texts = (kjit_formula_texts){ made, (size_t)count };
  for (Py_ssize_t i = 0; i < count; i++) {
    Py_ssize_t size_bytes;
    if (!(made[i] = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(items, i), &size_bytes))) return -1;
    if (strlen(made[i]) == (size_t)size_bytes) continue;
    PyErr_Format(PyExc_ValueError,
                 "a string in the columns of a formula contains a null character: %R",
                 PyTuple_GetItem(items, i));
    return -1;
  }
  return 0;
}

/* Reads (name, type, flags, texts of the dictionary). */
static int read_column(context_object *context, PyObject *row, kjit_formula_column *column,
                       kjit_formula_texts *texts)
{
  const char *type;
  PyObject *items;
  *column = (kjit_formula_column){ 0 };
  if (!PyArg_ParseTuple(row, "ssIO!", &column->name, &type, &column->flags, &PyTuple_Type, &items))
    return -1;
  if (read_texts(items, texts)) return -1;
  return binding_finish(context, kjit_parse_type(context->context, type, &column->type));
}

static void free_columns(kjit_formula_column *columns, kjit_formula_texts *texts, Py_ssize_t count)
{
  for (Py_ssize_t i = 0; texts && i < count; i++) free((void *)texts[i].items);
  free(texts);
  free(columns);
}

static PyObject *wrap(context_object *context, kjit_formula *formula, size_t column_count)
{
  formula_object *self = binding_new_object(formula_type);
  if (!self) {
    kjit_destroy_formula(formula);
    return NULL;
  }
  self->context = (context_object *)Py_NewRef((PyObject *)context);
  self->formula = formula;
  self->column_count = column_count;
  self->generation = binding_generation;
  return (PyObject *)self;
}

/* make_formula(context, text, columns): creates a formula. columns is a tuple of (name, type,
 * flags, texts). */
static PyObject *make_formula(PyObject *unused, PyObject *args)
{
  (void)unused;
  PyObject *object, *rows;
  const char *text;
  Py_ssize_t text_bytes;
  if (!PyArg_ParseTuple(args, "O!s#O!", binding_context_type, &object, &text, &text_bytes,
                        &PyTuple_Type, &rows))
    return NULL;
  context_object *context = (context_object *)object;
  const Py_ssize_t count = PyTuple_Size(rows);
  kjit_formula_column *columns = calloc((size_t)count + 1, sizeof *columns);
  kjit_formula_texts *texts = calloc((size_t)count + 1, sizeof *texts);
  if (!columns || !texts) {
    free_columns(columns, texts, count);
    return PyErr_NoMemory();
  }
  for (Py_ssize_t i = 0; i < count; i++)
    if (read_column(context, PyTuple_GetItem(rows, i), &columns[i], &texts[i])) {
      free_columns(columns, texts, count);
      return NULL;
    }
  const kjit_formula_options options = { .size_bytes = sizeof options,
                                         .columns = columns,
                                         .column_count = (uint32_t)count,
                                         .texts = texts };
  kjit_formula *formula = NULL;
  kjit_status status;
  BINDING_UNLOCKED(context, status = kjit_create_formula(context->context, &options, text,
                                                         (size_t)text_bytes, &formula));
  free_columns(columns, texts, count);
  if (!binding_finish(context, status)) return wrap(context, formula, (size_t)count);
  if (status == KJIT_OK) kjit_destroy_formula(formula);
  return NULL;
}

static void free_formula(PyObject *object)
{
  formula_object *self = (formula_object *)object;
  if (self->formula && self->generation == binding_generation) kjit_destroy_formula(self->formula);
  Py_XDECREF((PyObject *)self->context);
  binding_free_object(object);
}

/* ---- properties ---- */

/* Returns the dictionary of a formula whose result is strings, as a tuple. The tuple is empty if
 * the result is not strings. */
static PyObject *list_texts(const kjit_formula *formula)
{
  const kjit_formula_texts *texts = kjit_get_formula_texts(formula);
  PyObject *list = PyTuple_New(texts ? (Py_ssize_t)texts->count : 0);
  for (size_t i = 0; list && texts && i < texts->count; i++) {
    PyObject *item = PyUnicode_FromString(texts->items[i]);
    if (!item || PyTuple_SetItem(list, (Py_ssize_t)i, item)) Py_CLEAR(list);
  }
  return list;
}

/* info(): returns (type, flags, whether the formula uses each column, the result's dictionary as
 * returned by list_texts). */
static PyObject *get_info(PyObject *object, PyObject *unused)
{
  (void)unused;
  formula_object *self = (formula_object *)object;
  kjit_formula_info info = { .size_bytes = sizeof info };
  if (binding_finish(self->context, kjit_get_formula_info(self->formula, &info))) return NULL;
  PyObject *used = PyTuple_New((Py_ssize_t)self->column_count);
  for (size_t i = 0; used && i < self->column_count; i++)
    if (PyTuple_SetItem(used, (Py_ssize_t)i, PyBool_FromLong(kjit_uses_column(self->formula, i))))
      Py_CLEAR(used);
  if (!used) return NULL;
  char *type = kjit_copy_type_text(self->context->context, info.type);
  PyObject *texts = type ? list_texts(self->formula) : PyErr_NoMemory();
  PyObject *result = texts ? Py_BuildValue("sINN", type, info.flags, used, texts) : NULL;
  if (!texts) Py_DECREF(used);
  kjit_free(self->context->context, type);
  return result;
}

/* ---- running ---- */

/* Reads (address of the values, address of the bitmap or 0, offset), or None for a column that is
 * not used. */
static int read_chunk(PyObject *row, kjit_column *column)
{
  unsigned long long values, validity;
  long long offset;
  *column = (kjit_column){ 0 };
  if (row == Py_None) return 0;
  if (!PyTuple_Check(row)) {
    PyErr_SetString(PyExc_TypeError, "expected a tuple of addresses");
    return -1;
  }
  if (!PyArg_ParseTuple(row, "KKL", &values, &validity, &offset)) return -1;
  column->values = (void *)(uintptr_t)values;
  column->validity = (uint8_t *)(uintptr_t)validity;
  column->offset = (int64_t)offset;
  return 0;
}

/* run(columns, result, rows, device) */
static PyObject *run_formula(PyObject *object, PyObject *args)
{
  formula_object *self = (formula_object *)object;
  PyObject *rows, *result_row, *place;
  long long count;
  kjit_column result;
  if (!PyArg_ParseTuple(args, "O!OLO", &PyTuple_Type, &rows, &result_row, &count, &place))
    return NULL;
  if (self->generation != binding_generation)
    return binding_fail(KJIT_ERROR_FORKED,
                        "the formula was created by the parent process before a fork");
  if (PyTuple_Size(rows) != (Py_ssize_t)self->column_count) {
    PyErr_SetString(PyExc_ValueError, "the number of columns differs from that of the formula");
    return NULL;
  }
  kjit_formula_run options = { .size_bytes = sizeof options };
  options.device = binding_get_device(self->context, place);
  if (!options.device || read_chunk(result_row, &result)) return NULL;
  kjit_column *columns = calloc(self->column_count + 1, sizeof *columns);
  if (!columns) return PyErr_NoMemory();
  int is_read = 1;
  for (size_t i = 0; i < self->column_count && is_read; i++)
    is_read = !read_chunk(PyTuple_GetItem(rows, (Py_ssize_t)i), &columns[i]);
  kjit_status status = KJIT_OK;
  if (is_read)
    BINDING_LONG(self->context,
                 status = kjit_run_formula(self->formula, columns, &result, count, &options),
                 .what = "compile", .name = "a formula", .device = options.device);
  free(columns);
  if (!is_read || binding_finish(self->context, status)) return NULL;
  Py_RETURN_NONE;
}

/* formula_functions(): returns the names of the functions that formulas can call. */
static PyObject *list_functions(PyObject *unused, PyObject *no_arguments)
{
  (void)unused, (void)no_arguments;
  PyObject *list = PyList_New(0);
  const char *name;
  for (size_t i = 0; list && (name = kjit_get_formula_function(i)); i++) {
    PyObject *item = PyUnicode_FromString(name);
    if (!item || PyList_Append(list, item)) Py_CLEAR(list);
    Py_XDECREF(item);
  }
  return list;
}

static PyMethodDef methods[] = {
  { "info", get_info, METH_NOARGS, NULL },
  { "run", run_formula, METH_VARARGS, NULL },
  { NULL, NULL, 0, NULL },
};
static PyMethodDef functions[] = {
  { "make_formula", make_formula, METH_VARARGS, NULL },
  { "formula_functions", list_functions, METH_NOARGS, NULL },
  { NULL, NULL, 0, NULL },
};
static PyType_Slot slots[] = {
  { Py_tp_dealloc, (void *)free_formula },
  { Py_tp_methods, methods },
  { 0, NULL },
};
static PyType_Spec spec = { "kjit._kjit.Formula", sizeof(formula_object), 0,
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots };

int binding_add_formulas(PyObject *module)
{
  formula_type = binding_make_type(module, &spec);
  return formula_type ? PyModule_AddFunctions(module, functions) : -1;
}
