/* Views of arrays with arbitrary strides, and the overlap of the memory of two arrays. */
#include "expression.h"

/* Stores the strides in elements. A contiguous tensor may have no strides. */
static void list_strides(const kjit_tensor *tensor, int64_t *strides)
{
  int64_t stride = 1;
  for (int i = tensor->rank - 1; i >= 0; i--) {
    strides[i] = tensor->strides ? tensor->strides[i] : stride;
    stride *= tensor->shape[i];
  }
}

PyObject *binding_get_strides(PyObject *array, void *unused)
{
  (void)unused;
  const kjit_tensor *tensor = binding_look_at_array(array);
  if (!tensor) return NULL;
  int64_t strides[BINDING_MAX_RANK];
  list_strides(tensor, strides);
  PyObject *tuple = PyTuple_New(tensor->rank);
  for (int i = 0; tuple && i < tensor->rank; i++) {
    PyObject *stride = PyLong_FromLongLong(strides[i]);
    if (!stride || PyTuple_SetItem(tuple, i, stride)) Py_CLEAR(tuple);
  }
  return tuple;
}

/* _view(shape, strides, offset, is_read_only): returns a view. strides and offset are in
 * elements. */
PyObject *binding_restride(PyObject *array, PyObject *args)
{
  array_object *self = (array_object *)array;
  PyObject *shape, *strides;
  long long offset;
  int is_read_only = 0;
  if (!PyArg_ParseTuple(args, "OOL|p", &shape, &strides, &offset, &is_read_only)) return NULL;
  int64_t extents[BINDING_MAX_RANK], steps[BINDING_MAX_RANK];
  uint32_t rank, step_count;
  if (!binding_get_tensor(array) || binding_parse_shape(shape, extents, &rank) ||
      binding_parse_shape(strides, steps, &step_count))
    return NULL;
  if (rank != step_count)
    return binding_fail(KJIT_ERROR_ARGUMENT, "%u extents and %u strides", rank, step_count);
  kjit_array *view = NULL;
  kjit_status status =
    kjit_restride_array(self->array, extents, steps, rank, (int64_t)offset, &view);
  if (binding_finish(self->context, status)) return NULL;
  return binding_wrap_view(self, view, is_read_only);
}

/* _part(element, index): returns a view of the component with this index of all elements. Each
 * element consists of several values of type `element`, for example a complex number of two
 * floats. */
PyObject *binding_get_part(PyObject *array, PyObject *args)
{
  array_object *self = (array_object *)array;
  PyObject *text;
  unsigned index;
  kjit_type element;
  if (!PyArg_ParseTuple(args, "OI", &text, &index) || !binding_get_tensor(array) ||
      !binding_parse_element(self->context, text, &element))
    return NULL;
  kjit_array *view = NULL;
  kjit_status status = kjit_retype_array(self->array, element, index, &view);
  return binding_finish(self->context, status) ? NULL : binding_wrap_view(self, view, 0);
}

/* _protect(): makes the array read-only. Other arrays with the same memory do not change. */
PyObject *binding_protect(PyObject *array, PyObject *unused)
{
  (void)unused;
  ((array_object *)array)->is_read_only = 1;
  Py_RETURN_NONE;
}

/* Stores the address of the lowest byte and the address after the highest byte. Returns 0 if the
 * tensor has no elements. */
static int find_range(const kjit_tensor *tensor, uintptr_t *low, uintptr_t *high)
{
  int64_t strides[BINDING_MAX_RANK], first = 0, last = 0;
  list_strides(tensor, strides);
  for (int i = 0; i < tensor->rank; i++) {
    if (!tensor->shape[i]) return 0;
    int64_t reach = (tensor->shape[i] - 1) * strides[i];
    if (reach < 0) first += reach;
    else last += reach;
  }
  int64_t size_bytes = (int64_t)tensor->bits * tensor->lanes / 8;
  uintptr_t address = (uintptr_t)tensor->data + tensor->byte_offset;
  *low = address + (uintptr_t)(first * size_bytes);
  *high = address + (uintptr_t)((last + 1) * size_bytes);
  return 1;
}

static int are_same(const kjit_tensor *a, const kjit_tensor *b)
{
  int64_t a_strides[BINDING_MAX_RANK], b_strides[BINDING_MAX_RANK];
  if ((char *)a->data + a->byte_offset != (char *)b->data + b->byte_offset || a->rank != b->rank ||
      a->bits != b->bits || a->code != b->code || a->lanes != b->lanes)
    return 0;
  list_strides(a, a_strides);
  list_strides(b, b_strides);
  for (int i = 0; i < a->rank; i++)
    if (a->shape[i] != b->shape[i] || (a->shape[i] > 1 && a_strides[i] != b_strides[i])) return 0;
  return 1;
}

int binding_relation(const array_object *first, const array_object *second)
{
  const kjit_tensor *a = kjit_get_tensor(first->array), *b = kjit_get_tensor(second->array);
  uintptr_t low, high, other_low, other_high;
  int is_apart = !find_range(a, &low, &high) || !find_range(b, &other_low, &other_high) ||
                 high <= other_low || other_high <= low;
  return is_apart ? 0 : are_same(a, b) ? 1 : 2;
}

/* _relation(other): see binding_relation. */
PyObject *binding_relate(PyObject *array, PyObject *other)
{
  if (!PyObject_TypeCheck(other, binding_array_type)) {
    PyErr_Format(PyExc_TypeError, "%R is not a kjit.Array", (PyObject *)Py_TYPE(other));
    return NULL;
  }
  if (!binding_get_tensor(array) || !binding_get_tensor(other)) return NULL;
  return PyLong_FromLong(binding_relation((array_object *)array, (array_object *)other));
}
