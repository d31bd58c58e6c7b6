/* Creates views of arrays with arbitrary strides, and determines whether the memory of two arrays
 * overlaps. */
#include "quick.h"

/* Writes the tensor's strides, which count elements. A tensor without strides is contiguous, so its
 * strides are computed from its shape. */
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
  int rank = tensor->rank; /* making a tuple can run finalizers, which can free the tensor */
  PyObject *tuple = PyTuple_New(rank);
  for (int i = 0; tuple && i < rank; i++) {
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
    return binding_fail(KJIT_ERROR_ARGUMENT,
                        "got %u extents, but %u strides; both numbers must be equal", rank,
                        step_count);
  kjit_array *view = NULL;
  kjit_status status =
    kjit_restride_array(self->array, extents, steps, rank, (int64_t)offset, &view);
  if (binding_finish_array(self->context, status, view)) return NULL;
  return binding_wrap_view(self, view, is_read_only);
}

/* _part(element, index): returns a view of one component of each element. An element consists of
 * several values of type `element`, for example the two floats of a complex number; index is the
 * number of the component. */
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
  return binding_finish_array(self->context, status, view) ? NULL : binding_wrap_shape(self, view);
}

/* _protect(): makes the array read-only. Other arrays that share its memory stay writable. */
PyObject *binding_protect(PyObject *array, PyObject *unused)
{
  array_object *self = (array_object *)array;
  (void)unused;
  if (!binding_get_tensor(array) || binding_protect_memory(self)) return NULL;
  self->is_read_only = BINDING_READ_ONLY;
  self->is_alone = 0;
  Py_RETURN_NONE;
}

/* _mark_element(): declares that the array is a copy of one element, and returns the array. */
PyObject *binding_mark_element(PyObject *array, PyObject *unused)
{
  (void)unused;
  ((array_object *)array)->is_read_only = BINDING_ELEMENT;
  return Py_NewRef(array);
}

/* _mark_result(): declares that NumPy would return a scalar instead of the array if it has no
 * dimensions. Returns the array. */
PyObject *binding_mark_result(PyObject *array, PyObject *unused)
{
  (void)unused;
  const kjit_tensor *tensor = binding_look_at_array(array);
  if (!tensor) return NULL;
  ((array_object *)array)->is_result = !tensor->rank;
  return Py_NewRef(array);
}

/* _mark_array(): declares that operators in place change the array, also if it has no dimensions,
 * and returns the array. */
PyObject *binding_mark_array(PyObject *array, PyObject *unused)
{
  (void)unused;
  ((array_object *)array)->is_result = 0;
  return Py_NewRef(array);
}

PyObject *binding_wrap_shape(array_object *owner, kjit_array *view)
{
  PyObject *made = binding_wrap_view(owner, view, 0);
  if (!made || !binding_is_scalar(owner)) return made;
  if (!kjit_get_tensor(view)->rank) {
    ((array_object *)made)->is_result = owner->is_result;
    return made;
  }
  PyObject *copy = PyObject_CallMethod(made, "copy", NULL);
  Py_DECREF(made);
  return copy;
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

/* ---- views by keys ---- */

/* kjit.numpy's functions for keys with arrays, and for assignments: get(array, key), set(array,
 * key, value). */
static PyObject *get_by_key, *set_by_key;

static int add_axis(binding_layout *made, int64_t extent, int64_t step)
{
  if (made->rank == BINDING_MAX_RANK) return 0;
  made->extents[made->rank] = extent;
  made->steps[made->rank++] = step;
  return 1;
}

static int is_integer(PyObject *item) { return PyLong_Check(item) && !PyBool_Check(item); }

static int is_slice(PyObject *item) { return PyObject_TypeCheck(item, &PySlice_Type); }

static int add_slice(binding_layout *made, PyObject *slice, int64_t extent, int64_t step)
{
  Py_ssize_t first, last, stride;
  if (PySlice_Unpack(slice, &first, &last, &stride)) return 0;
  Py_ssize_t count = PySlice_AdjustIndices((Py_ssize_t)extent, &first, &last, stride);
  if (count) made->offset += first * step;
  /* If the step exceeds the extent, the slice has a single element, and the stride is not
   * multiplied by the step, because the product could overflow. */
  return add_axis(made, count, stride > extent || stride < -extent ? step : step * stride);
}

/* Applies an integer or a slice to the next axis. Returns 0 if the item is not valid. An exception
 * of the item's own __index__ stays set. */
static int add_selected(binding_layout *made, PyObject *item, int64_t extent, int64_t step)
{
  if (is_slice(item)) return add_slice(made, item, extent, step);
  int is_beyond;
  long long index = PyLong_AsLongLongAndOverflow(item, &is_beyond);
  if (is_beyond) return 0;
  if (index < 0) index += extent;
  if (index < 0 || index >= extent) return 0;
  made->offset += index * step;
  return 1;
}

/* Counts the axes that the items in a key select from. Returns -1 if the key has other items than
 * integers, slices, None and one Ellipsis. */
static int count_selected(PyObject *const *items, Py_ssize_t count)
{
  int selected = 0, ellipses = 0;
  for (Py_ssize_t i = 0; i < count; i++) {
    if (is_integer(items[i]) || is_slice(items[i])) selected++;
    else if (items[i] == Py_Ellipsis) ellipses++;
    else if (items[i] != Py_None) return -1;
  }
  return ellipses > 1 ? -1 : selected;
}

static int read_key(const kjit_tensor *tensor, PyObject *const *items, Py_ssize_t count,
                    int selected, binding_layout *made)
{
  int64_t strides[BINDING_MAX_RANK];
  list_strides(tensor, strides);
  int axis = 0, rest = tensor->rank - selected, has_ellipsis = 0;
  if (rest < 0) return 0;
  for (Py_ssize_t i = 0; i <= count; i++) {
    PyObject *item = i < count ? items[i] : has_ellipsis ? Py_None : Py_Ellipsis;
    if (i == count && has_ellipsis) break;
    if (item == Py_None) {
      if (!add_axis(made, 1, 0)) return 0;
    } else if (item == Py_Ellipsis) {
      has_ellipsis = 1;
      for (int k = 0; k < rest; k++, axis++)
        if (!add_axis(made, tensor->shape[axis], strides[axis])) return 0;
    } else {
      if (!add_selected(made, item, tensor->shape[axis], strides[axis])) return 0;
      axis++;
    }
  }
  return 1;
}

int binding_read_key(PyObject *array, PyObject *key, binding_layout *made)
{
  PyObject *items[2 * BINDING_MAX_RANK + 1];
  Py_ssize_t count = 1;
  items[0] = key;
  if (PyTuple_Check(key)) {
    count = PyTuple_Size(key);
    if (count > (Py_ssize_t)(sizeof items / sizeof *items)) return 0;
    for (Py_ssize_t i = 0; i < count; i++) items[i] = PyTuple_GetItem(key, i);
  }
  int selected = count_selected(items, count);
  made->offset = 0;
  made->rank = 0;
  const kjit_tensor *tensor = selected < 0 ? NULL : binding_get_tensor(array);
  return tensor && read_key(tensor, items, count, selected, made);
}

/* Returns the view that a key selects. Returns NULL without an exception if the key has items that
 * do not select views, or if there is no such view. */
static PyObject *view_by_key(PyObject *array, PyObject *key)
{
  array_object *self = (array_object *)array;
  binding_layout made;
  if (quick_is_array(key) || !binding_read_key(array, key, &made)) return NULL;
  kjit_array *view = NULL;
  kjit_status status =
    kjit_restride_array(self->array, made.extents, made.steps, made.rank, made.offset, &view);
  return binding_finish_array(self->context, status, view) ? NULL
                                                           : binding_wrap_view(self, view, 0);
}

/* Returns a copy of the only element of a view. If operations on the array are recorded, so is the
 * copy. kjit then makes the copy when its value is needed, or before the element is overwritten. */
static PyObject *copy_view(PyObject *view)
{
  PyObject *copy = view ? expression_record_element(view) : NULL;
  if (view && !copy && !PyErr_Occurred()) copy = PyObject_CallMethod(view, "copy", NULL);
  Py_XDECREF(view);
  if (copy && Py_TYPE(copy) == binding_array_type)
    ((array_object *)copy)->is_read_only = BINDING_ELEMENT;
  return copy;
}

/* Returns whether elements are copied when integers select them, as in NumPy. Records are views, so
 * that their fields can be set. */
static int copies_elements(const array_object *array)
{
  return binding_get_element(array) < KJIT_SCALAR_COUNT;
}

/* Returns whether a key consists of integers for all axes. For an array without axes, only the
 * empty tuple is such a key. */
static int is_element_key(PyObject *array, PyObject *key)
{
  const kjit_tensor *tensor = binding_look_at_array(array);
  if (!tensor) return 0;
  if (!PyTuple_Check(key)) return tensor->rank == 1 && is_integer(key);
  Py_ssize_t count = PyTuple_Size(key);
  for (Py_ssize_t i = 0; i < count; i++)
    if (!is_integer(PyTuple_GetItem(key, i))) return 0;
  return count == tensor->rank;
}

/* Returns the element that a key of integers for all axes selects. Returns NULL without an
 * exception for an index out of bounds. */
static PyObject *get_element(PyObject *array, PyObject *key)
{
  binding_layout made;
  int overflow = 0;
  if (PyLong_CheckExact(key)) {
    const kjit_tensor *tensor = binding_look_at_array(array);
    long long i = PyLong_AsLongLongAndOverflow(key, &overflow);
    if (i < 0) i += tensor->shape[0];
    if (overflow || i < 0 || i >= tensor->shape[0]) return NULL;
    PyObject *found = quick_get_element((array_object *)array, i);
    if (found || PyErr_Occurred()) return found;
  }
  if (!binding_read_key(array, key, &made)) return NULL;
  PyObject *found = quick_copy_element((array_object *)array, made.offset);
  return found || PyErr_Occurred() ? found : copy_view(view_by_key(array, key));
}

/* Returns the array that a key such as an ellipsis selects. If NumPy would have a scalar in place
 * of the array, the result is a new array, as in NumPy. */
static PyObject *select_by_key(PyObject *array, PyObject *key)
{
  PyObject *view = view_by_key(array, key);
  if (!view || !binding_is_scalar((array_object *)array)) return view;
  PyObject *copy = PyObject_CallMethod(view, "copy", NULL);
  Py_DECREF(view);
  if (copy && quick_is_array(copy)) ((array_object *)copy)->is_result = 0;
  return copy;
}

/* array[key] */
PyObject *binding_get_item(PyObject *array, PyObject *key)
{
  int is_element = copies_elements((array_object *)array) && is_element_key(array, key);
  PyObject *found = is_element ? get_element(array, key) : select_by_key(array, key);
  if (!found && !PyErr_Occurred()) found = quick_get((array_object *)array, key);
  if (found || PyErr_Occurred()) return found;
  return PyObject_CallFunctionObjArgs(get_by_key, array, key, NULL);
}

/* array[index] along the first axis: for iterators, and for libraries that use sequences */
PyObject *binding_get_at(PyObject *array, Py_ssize_t index)
{
  array_object *self = (array_object *)array;
  const kjit_tensor *tensor = binding_look_at_array(array);
  if (!tensor) return NULL;
  if (!tensor->rank || index < 0 || index >= tensor->shape[0])
    return PyErr_Format(PyExc_IndexError, "index %zd is out of bounds", index);
  int is_element = tensor->rank == 1 && copies_elements(self);
  PyObject *found = is_element ? quick_get_element(self, index) : NULL;
  if (found || PyErr_Occurred()) return found;
  int64_t strides[BINDING_MAX_RANK];
  tensor = binding_get_tensor(array);
  if (!tensor) return NULL;
  list_strides(tensor, strides);
  kjit_array *view = NULL;
  kjit_status status = kjit_restride_array(self->array, tensor->shape + 1, strides + 1,
                                           (uint32_t)tensor->rank - 1, index * strides[0], &view);
  if (binding_finish_array(self->context, status, view)) return NULL;
  found = binding_wrap_view(self, view, 0);
  return is_element ? copy_view(found) : found;
}

/* array[key] = value */
int binding_set_item(PyObject *array, PyObject *key, PyObject *value)
{
  if (!value) {
    PyErr_SetString(PyExc_ValueError, "elements of an array cannot be deleted");
    return -1;
  }
  int outcome = quick_set((array_object *)array, key, value);
  if (outcome != QUICK_LEFT) return outcome < 0 ? -1 : 0;
  PyObject *done = PyObject_CallFunctionObjArgs(set_by_key, array, key, value, NULL);
  Py_XDECREF(done);
  return done ? 0 : -1;
}

/* _basic(key): the view that a key without arrays selects, or None for other keys. */
PyObject *binding_get_basic(PyObject *array, PyObject *key)
{
  PyObject *view = view_by_key(array, key);
  if (view || PyErr_Occurred()) return view;
  Py_RETURN_NONE;
}

/* set_indexing(get, set) */
PyObject *binding_set_indexing(PyObject *module, PyObject *args)
{
  PyObject *get, *set;
  (void)module;
  if (!PyArg_ParseTuple(args, "OO", &get, &set)) return NULL;
  binding_set(&get_by_key, Py_NewRef(get));
  binding_set(&set_by_key, Py_NewRef(set));
  Py_RETURN_NONE;
}
