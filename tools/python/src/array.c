/* The Python type of kjit arrays, which have a shape and memory of a device. */
#include "quick.h"
#include <structmember.h>

PyTypeObject *binding_array_type;

static const char *const numpy_names[KJIT_SCALAR_COUNT] = {
  [KJIT_BOOL] = "bool",     [KJIT_I8] = "int8",         [KJIT_I16] = "int16",
  [KJIT_I32] = "int32",     [KJIT_I64] = "int64",       [KJIT_U8] = "uint8",
  [KJIT_U16] = "uint16",    [KJIT_U32] = "uint32",      [KJIT_U64] = "uint64",
  [KJIT_F16] = "float16",   [KJIT_F32] = "float32",     [KJIT_F64] = "float64",
  [KJIT_C64] = "complex64", [KJIT_C128] = "complex128",
};

const char *binding_get_numpy_name(kjit_type type)
{
  return type < KJIT_SCALAR_COUNT ? numpy_names[type] : NULL;
}

/* Memory of released array objects, for new ones. The GIL protects the list. */
enum { MOST_SPARE = 1024 };
#ifndef Py_GIL_DISABLED
static array_object *spare[MOST_SPARE];
static int spare_count;

static array_object *take_spare(void)
{
  if (!spare_count) return NULL;
  array_object *self = spare[--spare_count];
  memset(self, 0, sizeof *self);
  return (array_object *)PyObject_Init((PyObject *)self, binding_array_type);
}

/* Keeps the memory of a released object for a new one. Returns 0 if enough memory is kept
 * already. */
static int keep_spare(array_object *self)
{
  if (spare_count == MOST_SPARE) return 0;
  spare[spare_count++] = self;
  return 1;
}
#else
static array_object *take_spare(void) { return NULL; }
static int keep_spare(array_object *self) { return (void)self, 0; }
#endif

PyObject *binding_wrap_array(context_object *context, kjit_array *array, int is_read_only)
{
  array_object *self = take_spare();
  if (!self) self = binding_new_object(binding_array_type);
  if (!self) {
    kjit_release_array(array);
    return NULL;
  }
  self->context = (context_object *)Py_NewRef((PyObject *)context);
  self->array = array;
  self->device = kjit_get_array_device(array);
  self->is_read_only = is_read_only;
  return (PyObject *)self;
}

int binding_finish_array(context_object *context, kjit_status status, kjit_array *array)
{
  if (!binding_finish(context, status)) return 0;
  if (status == KJIT_OK) kjit_release_array(array);
  return -1;
}

int binding_protect_memory(array_object *self)
{
  kjit_array *view = NULL;
  if (self->unprotected) return 0;
  kjit_status status = kjit_protect_array(self->array, &view);
  if (binding_finish_array(self->context, status, view)) return -1;
  if (self->unprotected) { /* Python code that received a message has already protected the array */
    kjit_release_array(view);
    return 0;
  }
  self->unprotected = self->array;
  self->array = view;
  return 0;
}

PyObject *binding_wrap_view(array_object *owner, kjit_array *view, int is_read_only)
{
  const kjit_tensor *tensor = kjit_get_tensor(view);
  int protection = owner->is_read_only == BINDING_READ_ONLY || is_read_only ? BINDING_READ_ONLY
                   : owner->is_read_only && tensor && !tensor->rank         ? BINDING_ELEMENT
                                                                            : BINDING_WRITABLE;
  PyObject *made = binding_wrap_array(owner->context, view, protection);
  if (made && (binding_share_block((array_object *)made, owner) ||
               (protection == BINDING_READ_ONLY && binding_protect_memory((array_object *)made))))
    Py_CLEAR(made);
  return made;
}

PyObject *binding_wrap_foreign(context_object *context, kjit_array *array, int is_read_only)
{
  PyObject *made = binding_wrap_array(context, array, is_read_only);
  if (made && binding_open_block((array_object *)made)) Py_CLEAR(made);
  return made;
}

static void free_array(PyObject *object)
{
  array_object *self = (array_object *)object;
  PyTypeObject *type = Py_TYPE(object);
  if (self->weak_references) PyObject_ClearWeakRefs(object);
  expression_drop(self);
  int is_kept = self->is_alone && !self->block && quick_keep_element(self);
  binding_release_block(self->block);
  Py_XDECREF(self->key);
  if (!is_kept) kjit_release_array(self->array);
  kjit_release_array(self->unprotected);
  Py_XDECREF((PyObject *)self->context);
  if (!keep_spare(self)) ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
  Py_DECREF(type);
}

const kjit_tensor *binding_get_tensor(PyObject *object)
{
  array_object *self = (array_object *)object;
  if (self->pending && binding_evaluate(self)) return NULL;
  self->is_alone = 0;
  const kjit_tensor *tensor = kjit_get_tensor(self->array);
  if (tensor && self->context->generation == binding_generation) return tensor;
  binding_fail(KJIT_ERROR_FORKED, "the array was created by the parent process before a fork");
  return NULL;
}

/* The class kjit.dtypes.DType; its subclass for the objects that Array.dtype returns; and these
 * objects, which are created at their first use. */
static PyObject *dtype_class, *element_dtype_class, *scalar_dtypes[KJIT_SCALAR_COUNT];

static int is_dtype_object(PyObject *object)
{
  PyObject *type = (PyObject *)Py_TYPE(object);
  return type == dtype_class || type == element_dtype_class;
}

PyObject *binding_parse_element(context_object *context, PyObject *text, kjit_type *element)
{
  if (is_dtype_object(text)) {
    text = PyObject_GetAttrString(text, "text");
    Py_XDECREF(text); /* the dtype object still has a reference to the string */
    if (!text) return NULL;
  }
  const char *name = PyUnicode_Check(text) ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
  if (!name) {
    if (!PyErr_Occurred())
      PyErr_SetString(PyExc_TypeError, "the name of an element type must be a string");
    return NULL;
  }
  if (binding_names_record(name)) *element = binding_find_named_record(context, text);
  else if (binding_finish(context, kjit_parse_type(context->context, name, element))) return NULL;
  return *element == KJIT_VOID ? NULL : text;
}

int binding_parse_shape(PyObject *object, int64_t *shape, uint32_t *rank)
{
  if (PyIndex_Check(object)) {
    shape[0] = PyNumber_AsSsize_t(object, PyExc_OverflowError);
    *rank = 1;
    if (shape[0] == -1 && PyErr_Occurred()) return -1;
  } else {
    Py_ssize_t count = PySequence_Size(object);
    if (count < 0) return -1;
    if (count > BINDING_MAX_RANK) {
      binding_fail(KJIT_ERROR_ARGUMENT, "the shape has %zd dimensions; kjit supports at most 8",
                   count);
      return -1;
    }
    *rank = (uint32_t)count;
    for (Py_ssize_t i = 0; i < count; i++) {
      PyObject *item = PySequence_GetItem(object, i);
      shape[i] = item ? PyNumber_AsSsize_t(item, PyExc_OverflowError) : -1;
      Py_XDECREF(item);
      if (shape[i] == -1 && PyErr_Occurred()) return -1;
    }
  }
  return 0;
}

/* ---- making arrays ---- */

static PyObject *create_empty(PyObject *module, PyObject *args)
{
  (void)module;
  context_object *context;
  PyObject *shape, *element, *device = Py_None;
  int memory = KJIT_MEMORY_DEVICE;
  if (!PyArg_ParseTuple(args, "O!OO|Oi", binding_context_type, &context, &shape, &element, &device,
                        &memory))
    return NULL;
  int64_t extents[BINDING_MAX_RANK];
  kjit_array_config config = { .size_bytes = sizeof config,
                               .shape = extents,
                               .memory = (kjit_memory)memory };
  if (binding_parse_shape(shape, extents, &config.rank) ||
      !binding_parse_element(context, element, &config.element))
    return NULL;
  config.device = binding_get_device(context, device);
  if (!config.device) return NULL;
  kjit_array *array = NULL;
  kjit_status status;
  BINDING_UNLOCKED(context, status = kjit_create_array_with(&config, &array));
  return binding_finish_array(context, status, array) ? NULL
                                                      : binding_wrap_array(context, array, 0);
}

kjit_status binding_copy_array(kjit_device *device, kjit_array *source, kjit_array **array)
{
  const kjit_tensor *tensor = kjit_get_tensor(source);
  kjit_array_config config = { .size_bytes = sizeof config,
                               .device = device,
                               .element = kjit_get_array_element(source),
                               .rank = (uint32_t)tensor->rank,
                               .shape = tensor->shape };
  kjit_array *made = NULL;
  kjit_status status = kjit_create_array_with(&config, &made);
  if (status != KJIT_OK) return status;
  kjit_arg to = kjit_arg_array(made), from = kjit_arg_array(source);
  status = kjit_copy(kjit_get_array_context(source), &to, &from, NULL);
  if (status == KJIT_OK) *array = made;
  else kjit_release_array(made);
  return status;
}

/* copy_of(context, object, device): returns a new array with the elements of an array of any
 * library. */
static PyObject *create_copy(PyObject *module, PyObject *args)
{
  (void)module;
  context_object *context;
  PyObject *object, *device = Py_None;
  if (!PyArg_ParseTuple(args, "O!O|O", binding_context_type, &context, &object, &device))
    return NULL;
  kjit_device *place = binding_get_device(context, device);
  if (!place) return NULL;
  binding_argument storage;
  kjit_arg arg;
  if (binding_take_argument(context, object, "object", &storage, &arg)) return NULL;
  PyObject *result = NULL;
  if (arg.kind != KJIT_ARG_ARRAY && arg.kind != KJIT_ARG_TENSOR) {
    binding_fail(KJIT_ERROR_ARGUMENT, "%R is not an array", (PyObject *)Py_TYPE(object));
  } else {
    kjit_array *array = NULL;
    kjit_status status;
    BINDING_UNLOCKED(context,
                     status = arg.kind == KJIT_ARG_ARRAY
                                ? binding_copy_array(place, arg.value.array, &array)
                                : kjit_create_array_from(place, arg.value.tensor, NULL, &array));
    if (!binding_finish_array(context, status, array))
      result = binding_wrap_array(context, array, 0);
  }
  binding_free_argument(&storage);
  return result;
}

static PyObject *import_array(PyObject *module, PyObject *args)
{
  (void)module;
  context_object *context;
  PyObject *object;
  if (!PyArg_ParseTuple(args, "O!O", binding_context_type, &context, &object)) return NULL;
  PyObject *array = binding_import(context, object);
  if (!array && !PyErr_Occurred())
    PyErr_Format(PyExc_TypeError, "%R has neither __dlpack__ nor __cuda_array_interface__",
                 (PyObject *)Py_TYPE(object));
  return array;
}

/* wrap_buffer(context, object): wraps the host memory of an object with the buffer protocol without
 * copying it; the array keeps a reference to the object. */
static PyObject *wrap_buffer(PyObject *module, PyObject *args)
{
  (void)module;
  context_object *context;
  PyObject *object;
  if (!PyArg_ParseTuple(args, "O!O", binding_context_type, &context, &object)) return NULL;
  binding_argument storage;
  kjit_arg arg;
  if (binding_take_argument(context, object, "object", &storage, &arg)) return NULL;
  PyObject *result = NULL;
  if (arg.kind == KJIT_ARG_TENSOR && storage.buffer.obj) {
    Py_buffer buffer = storage.buffer;
    storage.buffer.obj = NULL;
    result = binding_take_tensor(context, NULL, &storage.tensor, NULL, buffer.readonly, &buffer);
  } else if (arg.kind == KJIT_ARG_ARRAY && storage.keep) {
    result = Py_NewRef(storage.keep);
  } else {
    binding_fail(KJIT_ERROR_ARGUMENT, "%R is not a host array", (PyObject *)Py_TYPE(object));
  }
  binding_free_argument(&storage);
  return result;
}

/* ---- properties ---- */

static PyObject *get_shape(PyObject *object, void *unused)
{
  (void)unused;
  const kjit_tensor *t = binding_look_at_array(object);
  if (!t) return NULL;
  /* making a tuple can run finalizers, which can compute the array, so that t is freed */
  int64_t shape[BINDING_MAX_RANK];
  int rank = t->rank;
  for (int i = 0; i < rank; i++) shape[i] = t->shape[i];
  PyObject *tuple = PyTuple_New(rank);
  for (int i = 0; tuple && i < rank; i++) {
    PyObject *extent = PyLong_FromLongLong(shape[i]);
    if (!extent || PyTuple_SetItem(tuple, i, extent)) Py_CLEAR(tuple);
  }
  return tuple;
}

static PyObject *get_dtype(PyObject *object, void *unused)
{
  (void)unused;
  array_object *self = (array_object *)object;
  if (!binding_look_at_array(object)) return NULL;
  kjit_type element = binding_get_element(self);
  if (element < KJIT_SCALAR_COUNT && scalar_dtypes[element])
    return Py_NewRef(scalar_dtypes[element]);
  char *text = kjit_copy_type_text(self->context->context, element);
  PyObject *dtype = text ? PyObject_CallFunction(element_dtype_class, "s", text) : PyErr_NoMemory();
  kjit_free(self->context->context, text);
  if (dtype && element < KJIT_SCALAR_COUNT) scalar_dtypes[element] = Py_NewRef(dtype);
  return dtype;
}

/* set_dtype_classes(DType, ElementType): ElementType(name) is the object that Array.dtype returns.
 */
static PyObject *set_dtype_classes(PyObject *module, PyObject *args)
{
  PyObject *own, *element;
  (void)module;
  if (!PyArg_ParseTuple(args, "OO", &own, &element)) return NULL;
  binding_set(&dtype_class, Py_NewRef(own));
  binding_set(&element_dtype_class, Py_NewRef(element));
  for (int i = 0; i < KJIT_SCALAR_COUNT; i++) Py_CLEAR(scalar_dtypes[i]);
  Py_RETURN_NONE;
}

static int64_t count_elements(const kjit_tensor *t)
{
  int64_t size = 1;
  for (int i = 0; i < t->rank; i++) size *= t->shape[i];
  return size;
}

static PyObject *get_size(PyObject *object, void *unused)
{
  (void)unused;
  const kjit_tensor *t = binding_look_at_array(object);
  return t ? PyLong_FromLongLong(count_elements(t)) : NULL;
}

static PyObject *get_rank(PyObject *object, void *unused)
{
  (void)unused;
  const kjit_tensor *t = binding_look_at_array(object);
  return t ? PyLong_FromLong(t->rank) : NULL;
}

static PyObject *get_address(PyObject *object, void *unused)
{
  (void)unused;
  if (binding_open_block((array_object *)object)) return NULL;
  const kjit_tensor *t = binding_get_tensor(object);
  return t ? PyLong_FromVoidPtr((char *)t->data + t->byte_offset) : NULL;
}

static PyObject *get_device(PyObject *object, void *unused)
{
  (void)unused;
  const kjit_tensor *t = binding_look_at_array(object);
  if (!t) return NULL;
  return binding_name_home(t);
}

static PyObject *get_read_only(PyObject *object, void *unused)
{
  (void)unused;
  return PyBool_FromLong(((array_object *)object)->is_read_only);
}

static PyObject *get_is_element(PyObject *object, void *unused)
{
  (void)unused;
  return PyBool_FromLong(((array_object *)object)->is_read_only == BINDING_ELEMENT);
}

static PyObject *get_is_scalar(PyObject *object, void *unused)
{
  (void)unused;
  return PyBool_FromLong(binding_is_scalar((array_object *)object));
}

static Py_ssize_t get_length(PyObject *object)
{
  const kjit_tensor *t = binding_look_at_array(object);
  if (!t) return -1;
  if (t->rank) return (Py_ssize_t)t->shape[0];
  PyErr_SetString(PyExc_TypeError, "len() of an array without dimensions");
  return -1;
}

/* ---- views ---- */

static PyObject *finish_view(array_object *self, kjit_status status, kjit_array *view)
{
  return binding_finish_array(self->context, status, view) ? NULL : binding_wrap_shape(self, view);
}

static PyObject *transpose(PyObject *object, void *unused)
{
  (void)unused;
  array_object *self = (array_object *)object;
  if (!binding_get_tensor(object)) return NULL;
  kjit_array *view = NULL;
  kjit_status status = kjit_transpose_array(self->array, NULL, &view);
  return finish_view(self, status, view);
}

static PyObject *reshape(PyObject *object, PyObject *args)
{
  array_object *self = (array_object *)object;
  int64_t shape[BINDING_MAX_RANK];
  uint32_t rank;
  if (!binding_get_tensor(object)) return NULL;
  PyObject *first = PyTuple_Size(args) == 1 ? PyTuple_GetItem(args, 0) : args;
  if (binding_parse_shape(first, shape, &rank)) return NULL;
  kjit_array *view = NULL;
  kjit_status status = kjit_reshape_array(self->array, shape, rank, &view);
  return finish_view(self, status, view);
}

/* ---- contents ---- */

/* Copies between this array and an object that can be an argument. */
static int copy_with(array_object *self, PyObject *object, int is_into_self)
{
  binding_argument storage;
  if (is_into_self ? binding_before_write(self) : self->pending && binding_evaluate(self))
    return -1;
  kjit_arg other, own = binding_pass_array(self);
  if (binding_take_argument(self->context, object, is_into_self ? "source" : "destination",
                            &storage, &other))
    return -1;
  if (is_into_self && binding_compute_late_readers(self)) {
    binding_free_argument(&storage);
    return -1;
  }
  int is_scalar = other.kind != KJIT_ARG_TENSOR && other.kind != KJIT_ARG_ARRAY;
  kjit_status status;
  BINDING_LONG(self->context,
               status = is_scalar ? kjit_fill(self->context->context, &own, &other, NULL)
                                  : kjit_copy(self->context->context, is_into_self ? &own : &other,
                                              is_into_self ? &other : &own, NULL),
               .what = "copy", .device = self->device);
  int outcome = binding_finish(self->context, status);
  binding_free_argument(&storage);
  return outcome;
}

int binding_refuse_write(const array_object *array)
{
  if (array->is_read_only == BINDING_ELEMENT)
    PyErr_SetString(PyExc_TypeError, "the array is a copy of one element, to which nothing can be "
                                     "written; assign to x[i], or write to the view x[i, ...]");
  else if (array->is_read_only) PyErr_SetString(PyExc_ValueError, "the array is read-only");
  return array->is_read_only ? -1 : 0;
}

static PyObject *copy_from(PyObject *object, PyObject *source)
{
  array_object *self = (array_object *)object;
  if (!binding_get_tensor(object) || binding_refuse_write(self) || copy_with(self, source, 1))
    return NULL;
  Py_RETURN_NONE;
}

/* Returns NumPy's name of the element type, or the dtype if the elements are records or dates. */
static PyObject *make_dtype(array_object *self)
{
  kjit_type element = kjit_get_array_element(self->array);
  if (element < KJIT_SCALAR_COUNT && numpy_names[element])
    return PyUnicode_FromString(numpy_names[element]);
  char *text = kjit_copy_type_text(self->context->context, element);
  PyObject *dtype = text && binding_names_record(text) ? binding_get_record_dtype(text) : NULL;
  kjit_free(self->context->context, text);
  if (!dtype && !PyErr_Occurred())
    binding_fail(KJIT_ERROR_UNSUPPORTED, "NumPy has no elements of this type");
  return dtype;
}

static PyObject *copy_to_host(PyObject *object, PyObject *unused)
{
  (void)unused;
  array_object *self = (array_object *)object;
  if (!binding_get_tensor(object)) return NULL;
  PyObject *dtype = make_dtype(self);
  PyObject *numpy = dtype ? PyImport_ImportModule("numpy") : NULL;
  PyObject *shape = numpy ? get_shape(object, NULL) : NULL;
  PyObject *result = shape ? PyObject_CallMethod(numpy, "empty", "OO", shape, dtype) : NULL;
  Py_XDECREF(shape);
  Py_XDECREF(dtype);
  Py_XDECREF(numpy);
  if (result && copy_with(self, result, 0)) Py_CLEAR(result);
  return result;
}

/* Returns the only element in an array that has memory, as a Python number. */
static PyObject *read_number(array_object *self)
{
  kjit_type element = kjit_get_array_element(self->array);
  const kjit_tensor *own = kjit_get_tensor(self->array);
  union {
    double numbers[2];
    unsigned char bytes[1];
  } value = { { 0 } };
  kjit_tensor host = kjit_make_tensor(&value, element, (uint32_t)own->rank, own->shape);
  kjit_arg to = kjit_arg_tensor(&host), from = kjit_arg_array(self->array);
  kjit_status status;
  BINDING_LONG(self->context, status = kjit_copy(self->context->context, &to, &from, NULL),
               .what = "copy", .device = self->device);
  return binding_finish(self->context, status) ? NULL : binding_make_value(element, value.bytes);
}

/* Returns the only element of an array of numbers. The array must have memory, or be the copy of
 * one element, which kjit has recorded and not made yet. Returns NULL without an exception for
 * other arrays. */
static PyObject *get_number(array_object *self)
{
  if (binding_get_element(self) >= KJIT_SCALAR_COUNT || binding_get_element(self) == KJIT_BF16)
    return NULL;
  array_object *view = expression_begin_reading(self);
  if (!view) return binding_get_tensor((PyObject *)self) ? read_number(self) : NULL;
  PyObject *number = read_number(view);
  expression_end_reading(self, view);
  return number;
}

/* Returns the element in an array with one element, such as the result of a reduction, as a Python
 * number. */
static PyObject *get_item(PyObject *object, PyObject *unused)
{
  const kjit_tensor *tensor = binding_look_at_array(object);
  if (!tensor) return NULL;
  if (count_elements(tensor) != 1) {
    PyErr_Format(
      PyExc_ValueError,
      "an array of %lld elements cannot be converted to a number; copy it with to_host()",
      (long long)count_elements(tensor));
    return NULL;
  }
  PyObject *number = get_number((array_object *)object);
  if (number || PyErr_Occurred()) return number;
  PyObject *copy = copy_to_host(object, unused);
  PyObject *item = copy ? PyObject_CallMethod(copy, "item", NULL) : NULL;
  Py_XDECREF(copy);
  return item;
}

static PyObject *convert_item(PyObject *object, PyObject *convert(PyObject *))
{
  PyObject *item = get_item(object, NULL);
  PyObject *result = item ? convert(item) : NULL;
  Py_XDECREF(item);
  return result;
}

static PyObject *get_float(PyObject *object) { return convert_item(object, PyNumber_Float); }
static PyObject *get_int(PyObject *object) { return convert_item(object, PyNumber_Long); }

/* Returns the truth value: for a zero-dimensional array whether the number is not 0, and otherwise
 * whether the first extent is not 0. */
static int get_truth(PyObject *object)
{
  const kjit_tensor *tensor = binding_get_tensor(object);
  if (!tensor) return -1;
  if (tensor->rank) return tensor->shape[0] != 0;
  PyObject *item = get_item(object, NULL);
  int truth = item ? PyObject_IsTrue(item) : -1;
  Py_XDECREF(item);
  return truth;
}

static PyObject *refuse_array(PyObject *object, PyObject *args, PyObject *names)
{
  (void)args, (void)names;
  (void)object;
  PyErr_SetString(PyExc_TypeError, "the array is not in host memory, or NumPy does not support its "
                                   "elements; copy it with to_host()");
  return NULL;
}

static PyObject *show(PyObject *object)
{
  PyObject *shape = get_shape(object, NULL);
  PyObject *dtype = shape ? get_dtype(object, NULL) : NULL;
  PyObject *device = dtype ? get_device(object, NULL) : NULL;
  PyObject *text =
    device ? PyUnicode_FromFormat("<kjit.Array %S, shape %R, on %U>", dtype, shape, device) : NULL;
  Py_XDECREF(shape);
  Py_XDECREF(dtype);
  Py_XDECREF(device);
  return text;
}

static PyMethodDef methods[] = {
  { "to_host", copy_to_host, METH_NOARGS, "Copies the elements to a new NumPy array." },
  { "item", get_item, METH_NOARGS, "Returns the only element of an array as a Python number." },
  { "copy_from", copy_from, METH_O,
    "Copies the elements of another array, or fills the array with a number." },
  { "_view", binding_restride, METH_VARARGS, NULL },
  { "_basic", binding_get_basic, METH_O, NULL },
  { "_part", binding_get_part, METH_VARARGS, NULL },
  { "_protect", binding_protect, METH_NOARGS, NULL },
  { "_mark_element", binding_mark_element, METH_NOARGS, NULL },
  { "_mark_result", binding_mark_result, METH_NOARGS, NULL },
  { "_mark_array", binding_mark_array, METH_NOARGS, NULL },
  { "_relation", binding_relate, METH_O, NULL },
  { "_reshape", reshape, METH_VARARGS, "Returns a view of the elements with another shape." },
  { "__dlpack__", (PyCFunction)(void (*)(void))binding_export_dlpack, METH_FASTCALL | METH_KEYWORDS,
    NULL },
  { "__dlpack_device__", binding_get_dlpack_device, METH_NOARGS, NULL },
  { "__array__", (PyCFunction)(void (*)(void))refuse_array, METH_VARARGS | METH_KEYWORDS, NULL },
  { NULL, NULL, 0, NULL },
};
static PyGetSetDef fields[] = {
  { "shape", get_shape, NULL, "extents", NULL },
  { "dtype", get_dtype, NULL, "the element type, such as kjit.f32; it equals its name, \"f32\"",
    NULL },
  { "ndim", get_rank, NULL, "number of dimensions", NULL },
  { "size", get_size, NULL, "number of elements", NULL },
  { "device", get_device, NULL, "the name of the device, such as \"cpu\" or \"cuda:0\"", NULL },
  { "_address", get_address, NULL, NULL, NULL },
  { "_strides", binding_get_strides, NULL, NULL, NULL },
  { "T", transpose, NULL, "a view with the dimensions in reverse order", NULL },
  { "is_read_only", get_read_only, NULL, "whether the array is read-only for kernels", NULL },
  { "_is_element", get_is_element, NULL, NULL, NULL },
  { "_is_scalar", get_is_scalar, NULL, NULL, NULL },
  { "__cuda_array_interface__", binding_get_cuda_interface, NULL, NULL, NULL },
  { NULL, NULL, NULL, NULL, NULL },
};
static PyMemberDef members[] = {
  { "__weaklistoffset__", T_PYSSIZET, offsetof(array_object, weak_references), READONLY, NULL },
  { NULL, 0, 0, 0, NULL },
};
static PyType_Slot own_slots[] = {
  { Py_tp_dealloc, (void *)free_array },
  { Py_tp_methods, methods },
  { Py_tp_members, members },
  { Py_tp_getset, fields },
  { Py_tp_repr, (void *)show },
  { Py_tp_richcompare, (void *)binding_compare },
  { Py_nb_float, (void *)get_float },
  { Py_nb_int, (void *)get_int },
  { Py_nb_bool, (void *)get_truth },
  { Py_mp_length, (void *)get_length },
  { Py_sq_length, (void *)get_length },
  { Py_sq_item, (void *)binding_get_at },
  { Py_mp_subscript, (void *)binding_get_item },
  { Py_mp_ass_subscript, (void *)binding_set_item },
  { Py_bf_getbuffer, (void *)binding_get_buffer },
  { Py_bf_releasebuffer, (void *)binding_release_buffer },
  { Py_tp_doc, (void *)"An array in the memory of a device." },
};
enum { OWN_SLOTS = sizeof own_slots / sizeof *own_slots, MOST_OPERATORS = 63 };
/* own_slots, the slots of operators, and an empty slot as the end */
static PyType_Slot slots[OWN_SLOTS + MOST_OPERATORS + 1];
static PyType_Spec spec = { "kjit._kjit.Array", sizeof(array_object), 0,
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots };

static PyMethodDef functions[] = {
  { "empty", create_empty, METH_VARARGS, NULL },
  { "copy_of", create_copy, METH_VARARGS, NULL },
  { "import_array", import_array, METH_VARARGS, NULL },
  { "wrap_buffer", wrap_buffer, METH_VARARGS, NULL },
  { "set_dtype_classes", set_dtype_classes, METH_VARARGS, NULL },
  { "set_indexing", binding_set_indexing, METH_VARARGS, NULL },
  { NULL, NULL, 0, NULL },
};

int binding_add_array(PyObject *module)
{
  size_t operator_count = binding_copy_operators(NULL);
  if (operator_count > MOST_OPERATORS) return -1;
  memcpy(slots, own_slots, sizeof own_slots);
  binding_copy_operators(slots + OWN_SLOTS);
  binding_array_type = binding_make_type(module, &spec);
  return binding_array_type ? PyModule_AddFunctions(module, functions) : -1;
}
