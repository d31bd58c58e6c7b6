/* Quick functions for the element-wise functions of kjit.numpy and for NumPy's protocols. */
#include "quick.h"

/* ---- element-wise functions ---- */

/* Records the operation of a row. If `out` is an array, stores the result in it. */
static PyObject *operate(long row, PyObject *const *operands, int count, PyObject *out)
{
  if (quick_is_none(out)) {
    PyObject *made = expression_operate(row, operands, count);
    if (made != Py_NotImplemented) return made;
    Py_DECREF(made);
    return NULL;
  }
  if (!quick_is_array(out)) return NULL;
  int outcome = expression_operate_into(row, operands, count, (array_object *)out);
  return outcome > 0 ? Py_NewRef(out) : NULL;
}

static int has_array(PyObject *const *operands, int count)
{
  for (int i = 0; i < count; i++)
    if (quick_is_array(operands[i])) return 1;
  return 0;
}

PyObject *quick_unary(const quick_call *call)
{
  PyObject *const *v = call->values;
  return quick_is_array(v[0]) && quick_is_none(v[2]) ? operate(call->number, v, 1, v[1]) : NULL;
}

PyObject *quick_binary(const quick_call *call)
{
  PyObject *const *v = call->values;
  return v[1] && has_array(v, 2) && quick_is_none(v[3]) ? operate(call->number, v, 2, v[2]) : NULL;
}

PyObject *quick_choice(const quick_call *call)
{
  PyObject *const *v = call->values;
  PyObject *made = quick_is_array(v[0]) && v[1] && v[2] ? operate(call->number, v, 3, NULL) : NULL;
  /* as in NumPy, the result is an array even if it has no dimensions */
  if (made && quick_is_array(made)) ((array_object *)made)->is_result = 0;
  return made;
}

/* ---- __array_ufunc__ ---- */

/* A cache of the rows that compute a ufunc for operands of certain types. The table has references
 * to the ufuncs, so their addresses stay valid. */
enum { MOST_LOOPS = 512, NO_ROW = -1 };
static struct {
  PyObject *ufunc;
  uint64_t types;
  int count;
  long row;
} loops[MOST_LOOPS];
static unsigned loop_count;
static PyObject *find_row; /* function of kjit.numpy: find(ufunc, operands) returns the row that
                              computes the ufunc with NumPy's types, or -1 */

static long ask_row(PyObject *ufunc, PyObject *const *operands, int count)
{
  PyObject *tuple = PyTuple_New(count);
  for (int i = 0; tuple && i < count; i++) PyTuple_SetItem(tuple, i, Py_NewRef(operands[i]));
  PyObject *found = tuple ? PyObject_CallFunctionObjArgs(find_row, ufunc, tuple, NULL) : NULL;
  long row = found ? PyLong_AsLong(found) : NO_ROW;
  Py_XDECREF(found);
  Py_XDECREF(tuple);
  quick_clear_error();
  return row;
}

/* Returns the row for a call of a ufunc, or NO_ROW. */
static long get_row(PyObject *ufunc, PyObject *const *operands, int count)
{
  uint64_t types;
  if (!expression_read_types(operands, count, &types)) return NO_ROW;
  unsigned hash = (unsigned)((uintptr_t)ufunc >> 4) * 31u + (unsigned)types * 7u;
  for (unsigned i = 0; i < MOST_LOOPS; i++) {
    unsigned place = (hash + i) % MOST_LOOPS;
    if (loops[place].ufunc == ufunc && loops[place].types == types && loops[place].count == count)
      return loops[place].row;
    if (loops[place].ufunc) continue;
    /* kjit.numpy has not set the function yet; its first call does so */
    if (!find_row) return NO_ROW;
    long row = ask_row(ufunc, operands, count);
    if (PyErr_Occurred()) return NO_ROW;
    if (loop_count >= MOST_LOOPS / 2 || loops[place].ufunc) return row;
    loop_count++;
    loops[place].ufunc = Py_NewRef(ufunc);
    loops[place].types = types;
    loops[place].count = count;
    loops[place].row = row;
    return row;
  }
  return NO_ROW;
}

/* Returns the array of the argument out=(array,), or NULL. */
static PyObject *get_out(PyObject *names, PyObject *value)
{
  if (PyTuple_Size(names) != 1 ||
      PyUnicode_CompareWithASCIIString(PyTuple_GetItem(names, 0), "out") ||
      !PyTuple_CheckExact(value) || PyTuple_Size(value) != 1)
    return NULL;
  PyObject *out = PyTuple_GetItem(value, 0);
  return quick_is_array(out) ? out : NULL;
}

/* __array_ufunc__(self, ufunc, "__call__", *inputs, out=(array,)) */
PyObject *quick_array_ufunc(const quick_call *call)
{
  PyObject *const *v = call->values, *out = NULL;
  if (call->rest_count < 1 || call->rest_count > EXPRESSION_MOST_OPERANDS ||
      !PyUnicode_CheckExact(v[2]) || PyUnicode_CompareWithASCIIString(v[2], "__call__"))
    return NULL;
  int count = (int)call->rest_count;
  if (call->names && PyTuple_Size(call->names) && !(out = get_out(call->names, call->rest[count])))
    return NULL;
  if (!has_array(call->rest, count)) return NULL;
  long row = get_row(v[1], call->rest, count);
  return row < 0 ? NULL : operate(row, call->rest, count, out);
}

/* ---- __array_function__ ---- */

/* Kinds of arguments for which a function of kjit.numpy returns the same results as NumPy's
 * function. */
enum { FLOATS, SEQUENCE_OF_FLOATS, MASK_AND_FLOATS };

static PyObject *protocol_functions; /* dictionary that maps NumPy's function to (function of
                                        kjit.numpy, one of the kinds above) */

/* Returns the element type of an array, or KJIT_VOID if the array is empty or zero-dimensional. */
static kjit_type get_type(PyObject *object)
{
  if (!quick_is_array(object) || quick_count((array_object *)object) < 1) return KJIT_VOID;
  const kjit_tensor *tensor = binding_look_at_array(object);
  return tensor && tensor->rank ? binding_get_element((array_object *)object) : KJIT_VOID;
}

/* Returns whether all items from `first` on are arrays with the same float type. */
static int are_floats(PyObject *tuple, Py_ssize_t first)
{
  Py_ssize_t count = PyTuple_CheckExact(tuple) ? PyTuple_Size(tuple) : 0;
  kjit_type type = count > first ? get_type(PyTuple_GetItem(tuple, first)) : KJIT_VOID;
  for (Py_ssize_t i = first + 1; i < count; i++)
    if (get_type(PyTuple_GetItem(tuple, i)) != type) return 0;
  return type == KJIT_F32 || type == KJIT_F64;
}

static int have_form(PyObject *args, long form)
{
  Py_ssize_t count = PyTuple_Size(args);
  if (form == SEQUENCE_OF_FLOATS) return count == 1 && are_floats(PyTuple_GetItem(args, 0), 0);
  if (form == FLOATS) return are_floats(args, 0);
  return count == 3 && get_type(PyTuple_GetItem(args, 0)) == KJIT_BOOL && are_floats(args, 1);
}

/* __array_function__(self, func, types, args, kwargs) without keywords */
PyObject *quick_array_function(const quick_call *call)
{
  PyObject *const *v = call->values;
  if (!protocol_functions || !v[4] || !PyDict_CheckExact(v[4]) || PyDict_Size(v[4]) ||
      !PyTuple_CheckExact(v[3]))
    return NULL;
  PyObject *found = PyDict_GetItem(protocol_functions, v[1]); /* borrowed */
  if (!found || !have_form(v[3], PyLong_AsLong(PyTuple_GetItem(found, 1)))) return NULL;
  return PyObject_Call(PyTuple_GetItem(found, 0), v[3], NULL);
}

/* set_quick_ufuncs(find) */
static PyObject *set_ufuncs(PyObject *module, PyObject *find)
{
  (void)module;
  binding_set(&find_row, Py_NewRef(find));
  Py_RETURN_NONE;
}

/* set_quick_functions(functions) */
static PyObject *set_functions(PyObject *module, PyObject *functions)
{
  (void)module;
  binding_set(&protocol_functions, Py_NewRef(functions));
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
  { "set_quick_ufuncs", set_ufuncs, METH_O, NULL },
  { "set_quick_functions", set_functions, METH_O, NULL },
  { NULL, NULL, 0, NULL },
};

int quick_add_protocols(PyObject *module) { return PyModule_AddFunctions(module, functions); }
