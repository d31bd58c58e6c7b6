/* Quick functions: calls of kjit.numpy with common arguments that C code runs from end to end. A
 * quick function handles small arrays on the CPU, numbers, and arguments of the most frequent
 * types. It leaves all other calls, and all errors, to the Python function of the same name.
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
  QUICK_MOST_ELEMENTS = 1 << 14, /* algorithms of libkjit are faster for more elements */
  QUICK_NUMBER_BYTES = 16        /* size of the largest scalar type */
};

/* Results of functions that may leave a call to the Python layer. */
enum { QUICK_FAILED = -1, QUICK_LEFT, QUICK_DONE };

/* The arguments of a call. */
typedef struct quick_call {
  PyObject *values[QUICK_MOST_PARAMETERS]; /* by parameter; NULL if the argument is not given */
  PyObject *const *rest; /* positional arguments after the parameters, if the row accepts them */
  Py_ssize_t rest_count;
  PyObject *names; /* names of keyword arguments after `rest`, or NULL */
  long number;     /* number of the shortcut: a row of kjit.numpy's table, or an axis */
} quick_call;

typedef struct quick_row {
  const char *name;
  /* Returns a new reference; NULL with an exception; or NULL without an exception if the Python
   * function has to handle the call. */
  PyObject *(*run)(const quick_call *call);
  int positional;     /* number of parameters that can be given by position */
  int takes_the_rest; /* further arguments are not parsed but passed as `rest` */
  const char *parameters[QUICK_MOST_PARAMETERS];
} quick_row;

/* ---- quick.c ---- */

/* Returns the row of a quick function, or NULL. */
const quick_row *quick_find(const char *name);
/* Runs a quick function. Returns NULL without an exception if the Python function has to handle the
 * call. kjit's exceptions count as such a case, because the Python function raises them again. */
PyObject *quick_run(const quick_row *row, long number, PyObject *const *args, Py_ssize_t count,
                    PyObject *names);
/* Clears an exception that the Python function of a call raises again. Leaves others, such as
 * KeyboardInterrupt. */
void quick_clear_error(void);
/* Returns the context of new arrays, or NULL if the Python layer has to make one. */
context_object *quick_context(void);
int quick_add(PyObject *module);

static inline int quick_is_array(PyObject *object)
{
  return object && Py_TYPE(object) == binding_array_type;
}

/* Returns whether an argument is None or not given. */
static inline int quick_is_none(PyObject *object) { return !object || object == Py_None; }

/* ---- quick_elements.c ---- */

/* The elements of an array on the CPU. */
typedef struct quick_view {
  char *first;
  kjit_type element;
  int rank;
  size_t size_bytes;                                                 /* of an element */
  int64_t count, shape[BINDING_MAX_RANK], strides[BINDING_MAX_RANK]; /* strides in elements */
} quick_view;

/* Number of elements of an array, which may be pending. Returns -1 if the array is not on the CPU
 * or does not belong to kjit.numpy's context. */
int64_t quick_count(const array_object *array);
/* quick_read describes the elements of an array, and computes a pending array first. quick_write
 * also prepares the array for a write, and leaves read-only arrays to the Python layer. */
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
/* Returns an array without dimensions with a copy of the element at an offset, in elements, of an
 * array on the CPU. Returns NULL without an exception if the Python layer has to copy. */
PyObject *quick_copy_element(array_object *array, int64_t offset);

/* ---- quick_create.c ---- */

/* Returns a new array with undefined contents on the device, or NULL with an exception. */
array_object *quick_new(context_object *context, kjit_device *device, kjit_type element, int rank,
                        const int64_t *shape, quick_view *view);
/* Finds the scalar type for an argument dtype=. Returns 0 if kjit.numpy has to find it. */
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
