/* Contains the table of quick functions (see quick.h) and reads their calls' arguments. */
#include "quick.h"

#define ONLY "" /* name of a parameter that can be given by position only */
#define CREATION "dtype", "order", "device"
#define LIKE ONLY, "dtype", "order", "subok", "shape", "device"

static const quick_row rows[] = {
  { "empty", quick_empty, 3, 0, { "shape", CREATION } },
  { "zeros", quick_zeros, 3, 0, { "shape", CREATION } },
  { "ones", quick_ones, 3, 0, { "shape", CREATION } },
  { "full", quick_full, 4, 0, { "shape", "fill_value", CREATION } },
  { "empty_like", quick_empty_like, 5, 0, { LIKE } },
  { "zeros_like", quick_zeros_like, 5, 0, { LIKE } },
  { "ones_like", quick_ones_like, 5, 0, { LIKE } },
  { "arange", quick_arange, 4, 0, { ONLY, "stop", "step", "dtype", "device" } },
  { "eye", quick_eye, 2, 0, { ONLY, ONLY, "k", "dtype", "device" } },
  { "asarray", quick_asarray, 3, 0, { ONLY, CREATION, "copy" } },
  { "array", quick_array, 2, 0, { "obj", "dtype", "device", "copy", "order", "subok", "ndmin" } },
  { "copy", quick_copy_method, 2, 0, { ONLY, "order" } },
  { "astype",
    quick_astype,
    2,
    0,
    { ONLY, "dtype", "order", "casting", "subok", "copy", "device" } },
  { "reshape", quick_reshape, 3, 0, { ONLY, "shape", "order", "copy" } },
  { "reshape_method", quick_reshape_method, 1, 1, { ONLY } },
  { "ravel", quick_ravel, 2, 0, { ONLY, "order" } },
  { "flatten", quick_flatten, 1, 0, { ONLY } },
  { "transpose", quick_transpose, 1, 0, { ONLY } },
  { "squeeze", quick_squeeze, 1, 0, { ONLY } },
  { "expand_dims", quick_expand_dims, 2, 0, { ONLY, "axis" } },
  { "concat", quick_concat, 2, 0, { ONLY, "axis" } },
  { "stack", quick_stack, 2, 0, { ONLY, "axis" } },
  { "nonzero", quick_nonzero, 1, 0, { ONLY } },
  { "take", quick_take, 2, 0, { ONLY, ONLY } },
  { "float", quick_float, 1, 0, { ONLY } },
  { "int", quick_int, 1, 0, { ONLY } },
  { "bool", quick_bool, 1, 0, { ONLY } },
  { "item", quick_item, 2, 0, { ONLY, ONLY } },
  { "iterate", quick_iterate, 1, 0, { ONLY } },
  { "sort", quick_sort, 2, 0, { ONLY, "axis" } },
  { "find_extreme", quick_find_extreme, 2, 0, { ONLY, "axis" } },
  { "unique",
    quick_unique,
    5,
    0,
    { "ar", "return_index", "return_inverse", "return_counts", "axis", "equal_nan", "sorted" } },
  { "fill", quick_fill_method, 2, 0, { ONLY, ONLY } },
  { "unary", quick_unary, 2, 0, { ONLY, "out", "where" } },
  { "binary", quick_binary, 3, 0, { ONLY, ONLY, "out", "where" } },
  { "choice", quick_choice, 3, 0, { ONLY, ONLY, ONLY } },
  { "array_ufunc", quick_array_ufunc, 3, 1, { ONLY, ONLY, ONLY } },
  { "array_function", quick_array_function, 5, 0, { ONLY, ONLY, ONLY, ONLY, ONLY } },
};

const quick_row *quick_find(const char *name)
{
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (!strcmp(rows[i].name, name)) return &rows[i];
  return NULL;
}

/* Returns the index of a keyword argument's parameter that has no value yet, or -1. */
static int find_parameter(const quick_row *row, const quick_call *call, PyObject *name)
{
  for (int i = 0; i < QUICK_MOST_PARAMETERS && row->parameters[i]; i++)
    if (*row->parameters[i] && !PyUnicode_CompareWithASCIIString(name, row->parameters[i]))
      return call->values[i] ? -1 : i;
  return -1;
}

/* Assigns a call's arguments to a row's parameters. Returns 0 if the arguments do not fit the
 * row. */
static int read_call(const quick_row *row, PyObject *const *args, Py_ssize_t count, PyObject *names,
                     quick_call *call)
{
  Py_ssize_t own = count < row->positional ? count : row->positional;
  if (own < count && !row->takes_the_rest) return 0;
  for (Py_ssize_t i = 0; i < own; i++) call->values[i] = args[i];
  if (row->takes_the_rest) {
    call->rest = args + own;
    call->rest_count = count - own;
    call->names = names;
    return 1;
  }
  for (Py_ssize_t i = 0; names && i < PyTuple_Size(names); i++) {
    int place = find_parameter(row, call, PyTuple_GetItem(names, i));
    if (place < 0) return 0;
    call->values[place] = args[count + i];
  }
  return 1;
}

PyObject *quick_run(const quick_row *row, long number, PyObject *const *args, Py_ssize_t count,
                    PyObject *names)
{
  quick_call call = { .number = number };
  if (expression_captures || !read_call(row, args, count, names, &call) || !call.values[0])
    return NULL;
  PyObject *made = row->run(&call);
  if (!made && PyErr_Occurred() && binding_is_error()) PyErr_Clear();
  return made;
}

void quick_clear_error(void)
{
  if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_Exception)) PyErr_Clear();
}

context_object *quick_context(void)
{
  context_object *context = expression_context;
  return context && context->generation == binding_generation ? context : NULL;
}

int quick_add(PyObject *module)
{
  int is_failed = quick_add_creation(module) || quick_add_shapes(module) ||
                  quick_add_orders(module) || quick_add_protocols(module);
  return is_failed ? -1 : 0;
}
