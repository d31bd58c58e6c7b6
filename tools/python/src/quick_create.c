/* Quick functions that create arrays. */
#include "quick.h"

#include <stdlib.h>

/* ---- devices and types ---- */

/* Returns the first CPU device. */
static kjit_device *find_cpu(context_object *context)
{
  static context_object *owner; /* the context of the device that was found last */
  static kjit_device *found;
  if (owner != context) {
    found = binding_open_device(context, KJIT_DEVICE_CPU, 0);
    if (!found) return NULL;
    binding_set((PyObject **)(void *)&owner, Py_NewRef((PyObject *)context));
  }
  return found;
}

/* Returns the device of new arrays, by the same rules as _engine.device_name: the device of the
 * argument device=, or else the thread's current device, or else the device that the environment
 * names. Returns NULL for names that only the Python layer understands. */
static kjit_device *find_device(context_object *context, PyObject *device)
{
  if (!quick_is_none(device))
    return PyUnicode_CheckExact(device) ? binding_get_device(context, device) : NULL;
  if (binding_has_current()) return binding_get_current(context);
  const char *word = getenv("KJIT_DEVICE");
  if (word && !strcmp(word, "cpu")) return find_cpu(context);
  int is_set = (word && *word) || getenv("NUMBA_ENABLE_CUDASIM");
  return is_set ? NULL : binding_get_device(context, Py_None);
}

/* Objects that name types, such as numpy.float32, and the types that they name. */
enum { MOST_NAMES = 64 };
static struct {
  PyObject *object;
  kjit_type type;
} known_names[MOST_NAMES];
static unsigned name_count;
/* function of kjit.numpy: find(dtype) returns the type name, or None if the object may mean another
 * type later */
static PyObject *find_text;

int quick_find_element(PyObject *dtype, kjit_type *element)
{
  for (unsigned i = 0; i < MOST_NAMES && known_names[i].object; i++)
    if (known_names[i].object == dtype) {
      *element = known_names[i].type;
      return 1;
    }
  PyObject *text = find_text ? PyObject_CallFunctionObjArgs(find_text, dtype, NULL) : NULL;
  int is_found = text && text != Py_None &&
                 binding_parse_element(expression_context, text, element) &&
                 *element < KJIT_SCALAR_COUNT;
  Py_XDECREF(text);
  quick_clear_error();
  if (!is_found) return 0;
  unsigned place = name_count++ % MOST_NAMES;
  known_names[place].type = *element;
  binding_set(&known_names[place].object, Py_NewRef(dtype));
  return 1;
}

/* set_quick_types(find) */
static PyObject *set_types(PyObject *module, PyObject *find)
{
  (void)module;
  binding_set(&find_text, Py_NewRef(find));
  Py_RETURN_NONE;
}

/* ---- new arrays ---- */

array_object *quick_new(context_object *context, kjit_device *device, kjit_type element, int rank,
                        const int64_t *shape, quick_view *view)
{
  kjit_array_config config = { .size_bytes = sizeof config,
                               .device = device,
                               .element = element,
                               .rank = (uint32_t)rank,
                               .shape = shape };
  kjit_array *array = NULL;
  kjit_status status = kjit_create_array_with(&config, &array);
  /* binding_finish may run Python code, which may change the elements that the caller has read. So
   * messages of other threads are delivered by a later call. */
  if (status != KJIT_OK) {
    (void)binding_finish(context, status);
    return NULL;
  }
  array_object *made = (array_object *)binding_wrap_array(context, array, 0);
  if (made && quick_count(made) >= 0 && quick_read(made, view) == QUICK_DONE) return made;
  if (made) view->first = NULL;
  return made;
}

/* The properties of a new array that a call requests. */
typedef struct request {
  context_object *context;
  kjit_device *device;
  kjit_type element;
  int rank;
  int64_t shape[BINDING_MAX_RANK], count;
} request;

static int is_row_major(PyObject *order)
{
  return quick_is_none(order) ||
         (PyUnicode_CheckExact(order) && !PyUnicode_CompareWithASCIIString(order, "C"));
}

static int add_extent(request *r, PyObject *item)
{
  int overflow = 0;
  if (!PyLong_CheckExact(item) || r->rank == BINDING_MAX_RANK) return 0;
  long long extent = PyLong_AsLongLongAndOverflow(item, &overflow);
  r->shape[r->rank++] = extent;
  return !overflow && extent >= 0 && !__builtin_mul_overflow(r->count, extent, &r->count);
}

static int read_shape(request *r, PyObject *shape)
{
  r->rank = 0;
  r->count = 1;
  if (!PyTuple_CheckExact(shape)) return add_extent(r, shape);
  for (Py_ssize_t i = 0; i < PyTuple_Size(shape); i++)
    if (!add_extent(r, PyTuple_GetItem(shape, i))) return 0;
  return 1;
}

/* Reads the arguments dtype= and device=. Returns 0 if the Python layer has to read them. */
static int read_place(request *r, PyObject *dtype, PyObject *device, kjit_type usual)
{
  r->context = quick_context();
  r->element = usual;
  if (!r->context || (!quick_is_none(dtype) && !quick_find_element(dtype, &r->element))) return 0;
  r->device = find_device(r->context, device);
  return r->device != NULL;
}

static array_object *create(const request *r, quick_view *view)
{
  return quick_new(r->context, r->device, r->element, r->rank, r->shape, view);
}

/* Returns whether this file can write the elements of the new array. */
static int is_on_cpu(const request *r)
{
  kjit_device_info info = { .size_bytes = sizeof info };
  return kjit_get_device_info(r->device, &info) == KJIT_OK && info.kind == KJIT_DEVICE_CPU;
}

/* Creates an array and sets its elements to a number. */
static PyObject *create_full(const request *r, PyObject *number)
{
  char bytes[QUICK_NUMBER_BYTES];
  quick_view view;
  if (r->count > QUICK_MOST_ELEMENTS || !is_on_cpu(r) ||
      !quick_put_number(r->element, number, bytes))
    return NULL;
  array_object *made = create(r, &view);
  if (made && view.first) {
    quick_fill(&view, bytes);
    return (PyObject *)made;
  }
  Py_XDECREF((PyObject *)made);
  return NULL;
}

enum { SHAPE, DTYPE, ORDER, DEVICE };

static int read_request(const quick_call *call, request *r)
{
  PyObject *const *v = call->values;
  return is_row_major(v[ORDER]) && read_shape(r, v[SHAPE]) &&
         read_place(r, v[DTYPE], v[DEVICE], KJIT_F64);
}

PyObject *quick_empty(const quick_call *call)
{
  request r;
  quick_view view;
  return read_request(call, &r) ? (PyObject *)create(&r, &view) : NULL;
}

static PyObject *create_numbers(const quick_call *call, long value)
{
  request r;
  if (!read_request(call, &r)) return NULL;
  PyObject *number = PyLong_FromLong(value);
  PyObject *made = number ? create_full(&r, number) : NULL;
  Py_XDECREF(number);
  return made;
}

PyObject *quick_zeros(const quick_call *call) { return create_numbers(call, 0); }
PyObject *quick_ones(const quick_call *call) { return create_numbers(call, 1); }

PyObject *quick_full(const quick_call *call)
{
  PyObject *const *v = call->values;
  PyObject *number = v[1];
  request r;
  if (!number || !is_row_major(v[3]) || !read_shape(&r, v[0])) return NULL;
  kjit_type usual = PyFloat_CheckExact(number)  ? KJIT_F64
                    : PyLong_CheckExact(number) ? KJIT_I64
                    : PyBool_Check(number)      ? KJIT_BOOL
                                                : KJIT_VOID;
  if (usual == KJIT_VOID || !read_place(&r, v[2], v[4], usual)) return NULL;
  return create_full(&r, number);
}

/* Reads the arguments of empty_like and similar functions: a kjit array, and a type. */
static int read_like(const quick_call *call, request *r)
{
  PyObject *const *v = call->values;
  array_object *model = (array_object *)v[0];
  if (!quick_is_array(v[0]) || !is_row_major(v[2]) || !quick_is_none(v[4]) ||
      !quick_is_none(v[5]) || (r->count = quick_count(model)) < 0)
    return 0;
  const kjit_tensor *tensor = binding_look_at_array(v[0]);
  if (!tensor) return 0;
  r->context = model->context;
  r->device = model->device;
  r->element = binding_get_element(model);
  r->rank = tensor->rank;
  memcpy(r->shape, tensor->shape, (size_t)r->rank * sizeof *r->shape);
  return quick_is_none(v[1]) || quick_find_element(v[1], &r->element);
}

PyObject *quick_empty_like(const quick_call *call)
{
  request r;
  quick_view view;
  return read_like(call, &r) ? (PyObject *)create(&r, &view) : NULL;
}

static PyObject *create_numbers_like(const quick_call *call, long value)
{
  request r;
  if (!read_like(call, &r)) return NULL;
  PyObject *number = PyLong_FromLong(value);
  PyObject *made = number ? create_full(&r, number) : NULL;
  Py_XDECREF(number);
  return made;
}

PyObject *quick_zeros_like(const quick_call *call) { return create_numbers_like(call, 0); }
PyObject *quick_ones_like(const quick_call *call) { return create_numbers_like(call, 1); }

/* ---- sequences ---- */

static int read_integer(PyObject *object, int64_t usual, int64_t *value)
{
  const int64_t most = (int64_t)1 << 52;
  int overflow = 0;
  *value = usual;
  if (quick_is_none(object)) return 1;
  if (!PyLong_CheckExact(object)) return 0;
  *value = PyLong_AsLongLongAndOverflow(object, &overflow);
  return !overflow && *value <= most && *value >= -most;
}

static void fill_line(const quick_view *view, int64_t start, int64_t step)
{
  for (int64_t i = 0; i < view->count; i++) {
    int64_t value = start + i * step;
    double real = (double)value;
    memcpy(view->first + i * 8, view->element == KJIT_F64 ? (void *)&real : (void *)&value, 8);
  }
}

/* Implements arange for integers that a double can represent exactly. */
PyObject *quick_arange(const quick_call *call)
{
  PyObject *const *v = call->values;
  int64_t start, stop, step;
  request r;
  int has_stop = !quick_is_none(v[1]);
  if (!read_integer(has_stop ? v[0] : NULL, 0, &start) || quick_is_none(v[0]) ||
      !read_integer(has_stop ? v[1] : v[0], 0, &stop) || v[2] == Py_None ||
      !read_integer(v[2], 1, &step) || !step)
    return NULL;
  int64_t span = stop - start, count = span / step + (span % step != 0);
  if (span == 0 || (span < 0) != (step < 0)) count = 0;
  if (count > QUICK_MOST_ELEMENTS || !read_place(&r, v[3], v[4], KJIT_I64)) return NULL;
  if ((r.element != KJIT_I64 && r.element != KJIT_F64) || !is_on_cpu(&r)) return NULL;
  r.rank = 1;
  r.shape[0] = r.count = count;
  quick_view view;
  array_object *made = create(&r, &view);
  if (made && view.first) {
    fill_line(&view, start, step);
    return (PyObject *)made;
  }
  Py_XDECREF((PyObject *)made);
  return NULL;
}

PyObject *quick_eye(const quick_call *call)
{
  PyObject *const *v = call->values;
  int64_t diagonal;
  request r = { .rank = 0, .count = 1 };
  if (!add_extent(&r, v[0]) || !add_extent(&r, quick_is_none(v[1]) ? v[0] : v[1]) ||
      v[2] == Py_None || !read_integer(v[2], 0, &diagonal) || !read_place(&r, v[3], v[4], KJIT_F64))
    return NULL;
  PyObject *zero = PyLong_FromLong(0), *one = PyLong_FromLong(1);
  char bytes[QUICK_NUMBER_BYTES];
  PyObject *made =
    zero && one && quick_put_number(r.element, one, bytes) ? create_full(&r, zero) : NULL;
  Py_XDECREF(zero);
  Py_XDECREF(one);
  quick_view view;
  if (!made || quick_read((array_object *)made, &view) != QUICK_DONE) return made;
  for (int64_t i = diagonal < 0 ? -diagonal : 0; i < r.shape[0] && i + diagonal < r.shape[1]; i++)
    memcpy(view.first + (i * r.shape[1] + i + diagonal) * (int64_t)view.size_bytes, bytes,
           view.size_bytes);
  return made;
}

/* ---- conversions ---- */

/* Returns an item in a list or tuple, borrowed. */
static PyObject *get_item(PyObject *items, Py_ssize_t i)
{
  return PyList_CheckExact(items) ? PyList_GetItem(items, i) : PyTuple_GetItem(items, i);
}

/* Returns the type that NumPy gives to Python numbers of one class, or KJIT_VOID. */
static kjit_type find_common(PyObject *items, Py_ssize_t count)
{
  PyTypeObject *class = count ? Py_TYPE(get_item(items, 0)) : NULL;
  for (Py_ssize_t i = 1; i < count; i++)
    if (Py_TYPE(get_item(items, i)) != class) return KJIT_VOID;
  return class == &PyFloat_Type  ? KJIT_F64
         : class == &PyLong_Type ? KJIT_I64
         : class == &PyBool_Type ? KJIT_BOOL
                                 : KJIT_VOID;
}

/* Creates an array from a list or tuple of numbers. */
static PyObject *create_from(PyObject *items, PyObject *device)
{
  if (!PyList_CheckExact(items) && !PyTuple_CheckExact(items)) return NULL;
  request r;
  quick_view view;
  /* the device is opened first, because other threads may change the list while it is opened */
  if (!read_place(&r, NULL, device, KJIT_VOID) || !is_on_cpu(&r)) return NULL;
  Py_ssize_t count = PyList_CheckExact(items) ? PyList_Size(items) : PyTuple_Size(items);
  r.element = count <= QUICK_MOST_ELEMENTS ? find_common(items, count) : KJIT_VOID;
  if (r.element == KJIT_VOID) return NULL;
  r.rank = 1;
  r.shape[0] = r.count = count;
  array_object *made = create(&r, &view);
  int fits = made && view.first;
  for (Py_ssize_t i = 0; i < count && fits; i++)
    fits =
      quick_put_number(r.element, get_item(items, i), view.first + i * (int64_t)view.size_bytes);
  if (fits) return (PyObject *)made;
  Py_XDECREF((PyObject *)made);
  return NULL;
}

/* Implements asarray. If the argument is a kjit array with the requested type, the result is the
 * argument itself. The Python layer handles copied elements, of which it returns writable views. */
PyObject *quick_asarray(const quick_call *call)
{
  PyObject *const *v = call->values;
  kjit_type element;
  if (!is_row_major(v[2]) || !quick_is_none(v[4])) return NULL;
  if (!quick_is_array(v[0])) return quick_is_none(v[1]) ? create_from(v[0], v[3]) : NULL;
  if (!quick_is_none(v[3]) || !quick_is_none(v[2]) || binding_is_scalar((const array_object *)v[0]))
    return NULL;
  if (!quick_is_none(v[1]) && (!quick_find_element(v[1], &element) ||
                               element != binding_get_element((const array_object *)v[0])))
    return NULL;
  return Py_NewRef(v[0]);
}

PyObject *quick_array(const quick_call *call)
{
  PyObject *const *v = call->values;
  if (!quick_is_none(v[1]) || v[3] || v[4] || v[5] || v[6]) return NULL;
  if (!quick_is_array(v[0])) return create_from(v[0], v[2]);
  quick_view view;
  if (quick_read((array_object *)v[0], &view) != QUICK_DONE || !quick_is_dense(&view)) return NULL;
  const quick_call copied = { .values = { v[0] } };
  PyObject *made = quick_is_none(v[2]) ? quick_copy_method(&copied) : NULL;
  /* as in NumPy, the result is an array even if it has no dimensions */
  if (made) ((array_object *)made)->is_result = 0;
  return made;
}

static PyMethodDef functions[] = {
  { "set_quick_types", set_types, METH_O, NULL },
  { NULL, NULL, 0, NULL },
};

int quick_add_creation(PyObject *module) { return PyModule_AddFunctions(module, functions); }
