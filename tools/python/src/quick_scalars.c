/* Quick functions for single elements: conversions to Python numbers, copies, and iterators. */
#include "quick.h"

/* ---- conversions ---- */

/* Returns the only element in an array as a Python number, or NULL without an exception if the
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

/* Converts a number to an int. Returns NULL without an exception for NaN and infinity, for which
 * the Python layer raises exceptions with NumPy's messages. */
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

/* A copied element is an array without dimensions; NumPy returns a scalar in its place. A new copy
 * is a view of an array with SHARED_ELEMENTS elements. When each of these elements has been used
 * once, a new array is allocated. Making a view takes longer than copying an element, so the view
 * of a released copy is kept for the next copy, unless other code has used its memory. */
enum { SHARED_ELEMENTS = 64, MOST_KEPT_ELEMENTS = 1024 };
typedef struct element_memory {
  array_object *array;
  int64_t taken;
  kjit_array *kept[MOST_KEPT_ELEMENTS]; /* belong to the device and the context of `array` */
  int kept_count;
} element_memory;

#ifdef Py_GIL_DISABLED
int quick_keep_element(const array_object *element) { return (void)element, 0; }
#else
static element_memory memories[KJIT_SCALAR_COUNT]; /* by type; the GIL protects them */

/* Returns whether new elements with the device and the context of an array fit the memory. */
static int fits_memory(const element_memory *memory, const array_object *array)
{
  const array_object *own = memory->array;
  return own && own->device == array->device && own->context == array->context &&
         own->context->generation == binding_generation;
}

int quick_keep_element(const array_object *element)
{
  element_memory *memory = &memories[kjit_get_array_element(element->array)];
  if (memory->kept_count == MOST_KEPT_ELEMENTS || !fits_memory(memory, element)) return 0;
  memory->kept[memory->kept_count++] = element->array;
  return 1;
}
#endif

/* Replaces the memory by a new array on the device of `model`. Returns 0 for success. */
static int renew(element_memory *memory, const array_object *model, kjit_type element)
{
  const int64_t count = SHARED_ELEMENTS;
  quick_view view;
  array_object *made = quick_new(model->context, model->device, element, 1, &count, &view);
  if (!made || !view.first) {
    Py_XDECREF((PyObject *)made);
    return -1;
  }
  while (memory->kept_count) kjit_release_array(memory->kept[--memory->kept_count]);
  memory->taken = 0;
  binding_set((PyObject **)(void *)&memory->array, (PyObject *)made);
  return 0;
}

/* Returns an array without dimensions for an element; NULL with an exception or without memory. */
static kjit_array *take_part(element_memory *memory, const array_object *model, kjit_type element)
{
  kjit_array *made = NULL;
#ifndef Py_GIL_DISABLED
  int fits = fits_memory(memory, model);
  if (fits && memory->kept_count) return memory->kept[--memory->kept_count];
  if ((!fits || memory->taken == SHARED_ELEMENTS) && renew(memory, model, element)) return NULL;
#else
  if (renew(memory, model, element)) return NULL;
#endif
  kjit_status status =
    kjit_restride_array(memory->array->array, NULL, NULL, 0, memory->taken++, &made);
  return binding_finish_array(model->context, status, made) ? NULL : made;
}

/* Copies an element in an array that has memory on the CPU. */
static PyObject *copy_element(const array_object *array, const kjit_tensor *from, int64_t offset)
{
  kjit_type element = binding_get_element(array);
#ifdef Py_GIL_DISABLED
  /* without the GIL, other threads could take the same part of a shared array */
  element_memory own = { 0 }, *memory = &own;
#else
  element_memory *memory = &memories[element];
#endif
  int64_t size_bytes = (int64_t)from->bits * from->lanes / 8;
  kjit_array *made = take_part(memory, array, element);
#ifdef Py_GIL_DISABLED
  Py_XDECREF((PyObject *)own.array);
#endif
  if (!made) return NULL;
  const kjit_tensor *to = kjit_get_tensor(made);
  memcpy((char *)to->data + to->byte_offset,
         (const char *)from->data + from->byte_offset + offset * size_bytes, (size_t)size_bytes);
  PyObject *copy = binding_wrap_array(array->context, made, BINDING_ELEMENT);
  if (copy) ((array_object *)copy)->is_alone = 1;
  return copy;
}

/* Returns the array's tensor; NULL if the Python layer has to copy, or with an exception. */
static const kjit_tensor *get_source(array_object *array)
{
  if (expression_captures || quick_count(array) < 0) return NULL;
  if (array->pending && binding_evaluate(array)) return NULL;
  return kjit_get_tensor(array->array);
}

PyObject *quick_copy_element(array_object *array, int64_t offset)
{
  const kjit_tensor *from = get_source(array);
  return from ? copy_element(array, from, offset) : NULL;
}

PyObject *quick_get_element(array_object *array, int64_t index)
{
  const kjit_tensor *from = get_source(array);
  if (!from) return NULL;
  return copy_element(array, from, from->strides ? index * from->strides[0] : index);
}
