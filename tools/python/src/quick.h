/* Declarations for quick functions. A quick function executes frequent calls of a kjit.numpy
 * function entirely in C: calls with small arrays on the CPU, numbers, and arguments of the most
 * frequent types. It leaves all other calls, and all errors, to the Python function of the same
 * name.
 *
 * quick.c has the table of quick functions and reads the arguments of calls. The functions are in
 * quick_elements.c (indexing, assignments), quick_scalars.c (single elements), quick_create.c (new
 * arrays), quick_views.c (shapes, copies, joining), quick_order.c (sorts, extremes, unique
 * elements) and quick_ufunc.c (element-wise functions, NumPy's protocols).
 * docs/architecture/python.md describes the design. */
#ifndef KJIT_PYTHON_QUICK_H
#define KJIT_PYTHON_QUICK_H

#include "expression.h"

enum {
  QUICK_MOST_PARAMETERS = 7,
  /* number of elements above which an algorithm of libkjit is faster */
  QUICK_MOST_ELEMENTS = 1 << 14,
  QUICK_NUMBER_BYTES = 16 /* size of the largest scalar type */
};

/* Results of quick functions, which may leave a call to the Python layer. */
enum { QUICK_FAILED = -1, QUICK_LEFT, QUICK_DONE };

/* A call's arguments. */
typedef struct quick_call {
  PyObject *values[QUICK_MOST_PARAMETERS]; /* arguments in the order of the parameters; NULL if an
                                              argument is not given */
  PyObject *const *rest; /* further positional arguments, if the row accepts them */
  Py_ssize_t rest_count;
  PyObject *names; /* names of keyword arguments after `rest`, or NULL */
  long number;     /* number of the shortcut: a row of kjit.numpy's table, or an axis */
} quick_call;

typedef struct quick_row {
  const char *name;
  /* Executes the call. Returns a new reference; NULL with an exception; or NULL without an
   * exception if the Python function has to handle the call. */
  PyObject *(*run)(const quick_call *call);
  int positional;     /* number of parameters that can be given by position */
  int takes_the_rest; /* true if further arguments are passed as `rest` */
  const char *parameters[QUICK_MOST_PARAMETERS];
} quick_row;

/* ---- quick.c ---- */

/* Returns the row of a quick function, or NULL. */
const quick_row *quick_find(const char *name);
/* Runs a quick function. Returns NULL without an exception if the Python function has to handle the
 * call. A kjit exception also leaves the call to the Python function, which raises the exception
 * again. */
PyObject *quick_run(const quick_row *row, long number, PyObject *const *args, Py_ssize_t count,
                    PyObject *names);
/* Clears the current exception if the Python function will raise it again. Other exceptions, such
 * as KeyboardInterrupt, stay set. */
void quick_clear_error(void);
/* Returns the context of new arrays, or NULL if the Python layer has to create it. */
context_object *quick_context(void);
int quick_add(PyObject *module);

static inline int quick_is_array(PyObject *object)
{
  return object && Py_TYPE(object) == binding_array_type;
}

/* Returns whether an argument is None or not given. */
static inline int quick_is_none(PyObject *object) { return !object || object == Py_None; }

/* ---- quick_elements.c ---- */

/* The elements in an array on the CPU. */
typedef struct quick_view {
  char *first;
  kjit_type element;
  int rank;
  size_t size_bytes; /* size of an element in bytes */
  int64_t count, shape[BINDING_MAX_RANK], strides[BINDING_MAX_RANK]; /* strides in elements */
} quick_view;

/* Returns the number of elements in an array, which may be pending. Returns -1 if the array is not
 * on the CPU or does not belong to kjit.numpy's context. */
int64_t quick_count(const array_object *array);
/* quick_read describes the elements in an array; it computes a pending array first. quick_write
 * does the same and prepares the array for a write. It leaves read-only arrays to the Python
 * layer. */
int quick_read(array_object *array, quick_view *view);
int quick_write(array_object *array, quick_view *view);
/* Returns whether the elements are contiguous in row-major order. */
int quick_is_dense(const quick_view *view);
int quick_are_apart(const quick_view *a, const quick_view *b);
/* Copies the elements to a view of the same shape and type. */
void quick_copy(const quick_view *to, const quick_view *from);
/* Sets all elements to the value with these bytes. */
void quick_fill(const quick_view *to, const char *bytes);
/* Writes a Python number as an element of a type. Returns 0 for numbers that kjit.numpy has to
 * convert or to reject. */
int quick_put_number(kjit_type type, PyObject *number, char *bytes);
/* Implement array[key] and array[key] = value for keys with an array, and all assignments. */
PyObject *quick_get(array_object *array, PyObject *key);
int quick_set(array_object *array, PyObject *key, PyObject *value);

PyObject *quick_take(const quick_call *call);
PyObject *quick_fill_method(const quick_call *call);

/* ---- quick_scalars.c ---- */

PyObject *quick_float(const quick_call *call);
PyObject *quick_int(const quick_call *call);
PyObject *quick_bool(const quick_call *call);
PyObject *quick_item(const quick_call *call);
PyObject *quick_iterate(const quick_call *call);
/* Returns a zero-dimensional array with a copy of an element in an array on the CPU. The element is
 * given by its offset in elements. Returns NULL without an exception if the Python layer has to
 * copy. */
PyObject *quick_copy_element(array_object *array, int64_t offset);
/* Like quick_copy_element, for the element at an index of a one-dimensional array. */
PyObject *quick_get_element(array_object *array, int64_t index);
/* Keeps the memory of a released element for the next one. Returns whether it is kept. */
int quick_keep_element(const array_object *element);

/* ---- quick_create.c ---- */

/* Returns a new array with undefined contents on the device, or NULL with an exception. */
array_object *quick_new(context_object *context, kjit_device *device, kjit_type element, int rank,
                        const int64_t *shape, quick_view *view);
/* Finds the scalar type that an argument dtype= names. Returns 0 if kjit.numpy has to find the
 * type. */
int quick_find_element(PyObject *dtype, kjit_type *element);
int quick_add_creation(PyObject *module);

PyObject *quick_empty(const quick_call *call);
PyObject *quick_zeros(const quick_call *call);
PyObject *quick_ones(const quick_call *call);
PyObject *quick_full(const quick_call *call);
PyObject *quick_empty_like(const quick_call *call);
PyObject *quick_zeros_like(const quick_call *call);
PyObject *quick_ones_like(const quick_call *call);
PyObject *quick_arange(const quick_call *call);
PyObject *quick_eye(const quick_call *call);
PyObject *quick_asarray(const quick_call *call);
PyObject *quick_array(const quick_call *call);

/* ---- quick_views.c ---- */

PyObject *quick_copy_method(const quick_call *call);
PyObject *quick_astype(const quick_call *call);
PyObject *quick_reshape(const quick_call *call);
PyObject *quick_reshape_method(const quick_call *call);
PyObject *quick_ravel(const quick_call *call);
PyObject *quick_flatten(const quick_call *call);
PyObject *quick_transpose(const quick_call *call);
PyObject *quick_squeeze(const quick_call *call);
PyObject *quick_expand_dims(const quick_call *call);
PyObject *quick_concat(const quick_call *call);
PyObject *quick_stack(const quick_call *call);
PyObject *quick_nonzero(const quick_call *call);
int quick_add_shapes(PyObject *module);

/* ---- quick_order.c ---- */

PyObject *quick_sort(const quick_call *call);
PyObject *quick_find_extreme(const quick_call *call);
PyObject *quick_unique(const quick_call *call);
int quick_add_orders(PyObject *module);

/* ---- quick_ufunc.c ---- */

PyObject *quick_unary(const quick_call *call);
PyObject *quick_binary(const quick_call *call);
PyObject *quick_choice(const quick_call *call);
PyObject *quick_array_ufunc(const quick_call *call);
PyObject *quick_array_function(const quick_call *call);
int quick_add_protocols(PyObject *module);

#endif
