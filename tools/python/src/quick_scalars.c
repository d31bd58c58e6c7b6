/* Quick functions for single elements: conversions to Python numbers, copies, and iterators. */
#include "quick.h"

/* ---- conversions ---- */

/* Returns the only element of an array as a Python number, or NULL without an exception if the
 * array has several elements. */
static PyObject *get_number(PyObject *object)
{
  quick_view view;
  if (!quick_is_array(object) || quick_count((array_object *)object) != 1 ||
      quick_read((array_object *)object, &view) != QUICK_DONE)
    return NULL;
  return view.element == KJIT_BF16 ? NULL : binding_make_value(view.element, view.first);
}

static PyObject *convert(const quick_call *call, PyObject *function(PyObject *))
{
  PyObject *number = get_number(call->values[0]);
  PyObject *made = number && !PyComplex_CheckExact(number) ? function(number) : NULL;
  Py_XDECREF(number);
  return made;
}

PyObject *quick_float(const quick_call *call) { return convert(call, PyNumber_Float); }

/* Conversions of NaN and infinity are left to the Python layer, which raises exceptions with
 * NumPy's messages. */
static PyObject *find_integer(PyObject *number)
{
  PyObject *made = PyNumber_Long(number);
  if (!made) PyErr_Clear();
  return made;
}

PyObject *quick_int(const quick_call *call) { return convert(call, find_integer); }

static PyObject *find_truth(PyObject *number) { return PyBool_FromLong(PyObject_IsTrue(number)); }

PyObject *quick_bool(const quick_call *call)
{
  quick_view view;
  array_object *array = (array_object *)call->values[0];
  if (!quick_is_array(call->values[0]) || binding_get_element(array) != KJIT_BOOL)
    return convert(call, find_truth);
  if (quick_count(array) != 1 || quick_read(array, &view) != QUICK_DONE) return NULL;
  return PyBool_FromLong(*view.first);
}

/* Implements item() and item(index); index counts elements in row-major order. */
PyObject *quick_item(const quick_call *call)
{
  PyObject *object = call->values[0], *index = call->values[1];
  quick_view view;
  if (!index) return get_number(object);
  int overflow = 0;
  long long i = PyLong_CheckExact(index) ? PyLong_AsLongLongAndOverflow(index, &overflow) : 0;
  if (!PyLong_CheckExact(index) || overflow || !quick_is_array(object) ||
      quick_read((array_object *)object, &view) != QUICK_DONE)
    return NULL;
  if (i < 0) i += view.count;
  if (i < 0 || i >= view.count || view.element == KJIT_BF16 ||
      !(view.rank == 1 || quick_is_dense(&view)))
    return NULL;
  int64_t step = view.rank == 1 ? view.strides[0] : 1;
  return binding_make_value(view.element, view.first + i * step * (int64_t)view.size_bytes);
}

/* Implements iter(x): returns an iterator over the rows that ends at the first index out of
 * bounds. */
PyObject *quick_iterate(const quick_call *call)
{
  const kjit_tensor *tensor =
    quick_is_array(call->values[0]) ? binding_look_at_array(call->values[0]) : NULL;
  return tensor && tensor->rank ? PySeqIter_New(call->values[0]) : NULL;
}

/* ---- copies of single elements ---- */

/* Where NumPy returns a scalar, kjit returns a zero-dimensional array with a copy of the element.
 * Its memory is one element of a small array. Each element of this array is used once; then a new
 * array is created. */
enum { SHARED_ELEMENTS = 64 };
typedef struct element_memory {
  array_object *array;
  int64_t taken;
} element_memory;

/* Takes an element of this memory and returns its index. Returns -1 with an exception, or if there
 * is no memory.
 */
static int64_t take_part(element_memory *memory, const array_object *model, kjit_type element)
{
  const int64_t count = SHARED_ELEMENTS;
  const array_object *old = memory->array;
  quick_view view;
  if (old && memory->taken < count && old->device == model->device &&
      old->context == model->context && old->context->generation == binding_generation)
    return memory->taken++;
  array_object *made = quick_new(model->context, model->device, element, 1, &count, &view);
  if (!made || !view.first) {
    Py_XDECREF((PyObject *)made);
    return -1;
  }
  memory->taken = 1;
  binding_set((PyObject **)(void *)&memory->array, (PyObject *)made);
  return 0;
}

PyObject *quick_copy_element(array_object *array, int64_t offset)
{
#ifdef Py_GIL_DISABLED
  element_memory own = { NULL, 0 },
                 *memory = &own; /* memory for this call alone, because without the GIL other
                                    threads could take the same element */
#else
  static element_memory shared[KJIT_SCALAR_COUNT];
  element_memory *memory = &shared[binding_get_element(array)];
#endif
  quick_view view;
  if (quick_count(array) < 0 || quick_read(array, &view) != QUICK_DONE) return NULL;
  int64_t part = take_part(memory, array, view.element);
  if (part < 0) return NULL;
  const kjit_tensor *t = kjit_get_tensor(memory->array->array);
  memcpy((char *)t->data + t->byte_offset + part * (int64_t)view.size_bytes,
         view.first + offset * (int64_t)view.size_bytes, view.size_bytes);
  kjit_array *made = NULL;
  kjit_status status = kjit_restride_array(memory->array->array, NULL, NULL, 0, part, &made);
  PyObject *copy = binding_finish(array->context, status)
                     ? NULL
                     : binding_wrap_array(array->context, made, BINDING_ELEMENT);
#ifdef Py_GIL_DISABLED
  Py_DECREF((PyObject *)own.array);
#endif
  return copy;
}
