/* Converts Python objects to kernel arguments: numbers, NumPy scalars, buffers and arrays. */
#include "binding.h"

#include <math.h>

/* numpy.generic, the base class of typed NumPy scalars, or NULL until numpy is imported.
 * 0-dimensional arrays count as arrays. */
static PyTypeObject *numpy_generic;

/* Buffer protocol formats, one string for each type code. The item size distinguishes formats such
 * as `l`, which has 4 or 8 bytes. */
static const char *const classes[] = { "?", "bhilqn", "BHILQN", "efd" };

typedef struct scalar_row {
  uint8_t code, bits, size_bytes;
} scalar_row;

static const scalar_row scalars[KJIT_SCALAR_COUNT] = {
  { 0, 0, 0 },
#define KJIT_ROW(name, text, size, class_, code, bits) { code, bits, size },
#include <kjit/types.def>
#undef KJIT_ROW
};

static kjit_type find_scalar(uint8_t code, Py_ssize_t size_bytes)
{
  for (kjit_type type = 1; type < KJIT_SCALAR_COUNT; type++)
    if (scalars[type].code == code && scalars[type].size_bytes == size_bytes) return type;
  return KJIT_VOID;
}

/* Returns the element type for a buffer format, or KJIT_VOID if kjit has no such type. */
static kjit_type parse_format(const char *format, Py_ssize_t size_bytes)
{
  static const uint8_t codes[] = { 6, 0, 1, 2 };
  if (!format) format = "B";
  if (*format == '@' || *format == '=' || *format == '<') format++;
  if (format[0] == 'Z' && format[1] && strchr("fd", format[1]) && !format[2])
    return find_scalar(5, size_bytes);
  if (!format[0] || format[1]) return KJIT_VOID;
  for (size_t i = 0; i < sizeof codes; i++)
    if (strchr(classes[i], format[0])) return find_scalar(codes[i], size_bytes);
  return KJIT_VOID;
}

static const char *say_name(const char *name) { return name ? name : "an argument"; }

static int refuse_element(const char *name, PyObject *object, const char *format)
{
  binding_fail(KJIT_ERROR_ARGUMENT,
               "parameter `%s`: elements of the format '%s' (of %R) are not supported; use bool, "
               "integers of 8 to 64 bits, f16, f32, f64, c64 or c128 in the machine's byte order",
               say_name(name), format ? format : "", (PyObject *)Py_TYPE(object));
  return -1;
}

/* Returns the alignment of buffer elements of a scalar type, or of the struct `record` if it is not
 * KJIT_VOID. */
static Py_ssize_t find_alignment(context_object *context, kjit_type type, kjit_type record,
                                 Py_ssize_t size_bytes)
{
  kjit_type_layout layout = { .size_bytes = sizeof layout };
  if (record == KJIT_VOID)
    return type == KJIT_C64 || type == KJIT_C128 ? size_bytes / 2 : size_bytes;
  if (kjit_get_type_layout(context->context, record, &layout) != KJIT_OK) return 1;
  return (Py_ssize_t)layout.alignment_bytes;
}

/* Fills a buffer's tensor. *record receives the struct type of the elements, or KJIT_VOID if they
 * are not structs. The dtype is read from object and not from the buffer, because the buffer can
 * belong to a view of object with another element type. A NumPy array of dates, for example, is
 * viewed as an array of integers. */
static int fill_tensor(context_object *context, PyObject *object, const char *name,
                       binding_argument *storage, kjit_type *record)
{
  Py_buffer *view = &storage->buffer;
  kjit_type type = parse_format(view->format, view->itemsize);
  int may_be_record = type == KJIT_VOID || (type == KJIT_I64 && view->obj != object);
  *record = may_be_record ? binding_find_record(context, object) : KJIT_VOID;
  if (PyErr_Occurred()) return -1;
  if (type == KJIT_VOID && *record == KJIT_VOID)
    return refuse_element(name, view->obj, view->format);
  if (view->ndim > BINDING_MAX_RANK) {
    binding_fail(KJIT_ERROR_ARGUMENT,
                 "parameter `%s`: the array has %d dimensions; kjit supports at most 8",
                 say_name(name), view->ndim);
    return -1;
  }
  Py_ssize_t alignment = find_alignment(context, type, *record, view->itemsize);
  int is_aligned = (uintptr_t)view->buf % (uintptr_t)alignment == 0;
  for (int i = 0; i < view->ndim; i++) {
    storage->shape[i] = view->shape[i];
    if (view->strides) {
      if (view->shape[i] > 1 && view->strides[i] % view->itemsize) is_aligned = 0;
      storage->strides[i] = view->strides[i] / view->itemsize;
    }
  }
  if (!is_aligned) {
    binding_fail(KJIT_ERROR_ARGUMENT,
                 "parameter `%s`: the array's elements are not aligned; copy it first",
                 say_name(name));
    return -1;
  }
  storage->tensor = kjit_make_tensor(view->buf, type, (uint32_t)view->ndim, storage->shape);
  if (view->strides) storage->tensor.strides = storage->strides;
  return 0;
}

/* Passes a buffer without copying. A read-only buffer is passed as a kjit array, because a tensor
 * cannot be marked read-only. typed is the object with the record dtype: either object itself, or
 * the array of which object is a view. */
static int take_buffer_as(context_object *context, PyObject *object, PyObject *typed,
                          const char *name, binding_argument *storage, kjit_arg *arg)
{
  if (PyObject_GetBuffer(object, &storage->buffer, PyBUF_RECORDS_RO)) {
    storage->buffer.obj = NULL;
    return -1;
  }
  kjit_type record;
  if (fill_tensor(context, typed, name, storage, &record)) {
    PyBuffer_Release(&storage->buffer);
    storage->buffer.obj = NULL;
    return -1;
  }
  if (!storage->buffer.readonly) {
    *arg = record == KJIT_VOID ? kjit_arg_tensor(&storage->tensor)
                               : kjit_arg_elements(record, &storage->tensor);
    return 0;
  }
  if (record != KJIT_VOID) {
    binding_free_argument(storage);
    binding_fail(KJIT_ERROR_UNSUPPORTED,
                 "parameter `%s`: the array of records is read-only; copy it first",
                 say_name(name));
    return -1;
  }
  Py_buffer buffer = storage->buffer;
  storage->buffer.obj = NULL;
  storage->keep = binding_take_tensor(context, NULL, &storage->tensor, NULL, 1, &buffer);
  if (!storage->keep) return -1;
  *arg = kjit_arg_array(((array_object *)storage->keep)->array);
  return 0;
}

static int take_buffer(context_object *context, PyObject *object, const char *name,
                       binding_argument *storage, kjit_arg *arg)
{
  return take_buffer_as(context, object, object, name, storage, arg);
}

/* Converts arrays of dates, and of records that contain dates, for which NumPy provides no buffer.
 * Returns 1 without an exception if the object is not such an array. */
static int take_dates(context_object *context, PyObject *object, const char *name,
                      binding_argument *storage, kjit_arg *arg)
{
  PyObject *view = binding_view_plainly(object);
  if (!view) return -1;
  int outcome = view == Py_None ? 1 : take_buffer_as(context, view, object, name, storage, arg);
  Py_DECREF(view);
  return outcome;
}

/* Passes elements of ml_dtypes.bfloat16, which have no buffer format, through a view as 16-bit
 * integers. */
static int take_bfloat(context_object *context, PyObject *object, const char *name,
                       binding_argument *storage, kjit_arg *arg)
{
  PyObject *bits = PyObject_CallMethod(object, "view", "s", "uint16");
  if (!bits) return -1;
  int outcome = take_buffer(context, bits, name, storage, arg);
  Py_DECREF(bits);
  if (outcome) return -1;
  if (storage->keep) {
    binding_free_argument(storage);
    binding_fail(KJIT_ERROR_UNSUPPORTED,
                 "parameter `%s`: the array of bfloat16 is read-only; copy it first",
                 say_name(name));
    return -1;
  }
  storage->tensor.code = scalars[KJIT_BF16].code;
  return 0;
}

static int is_bfloat(PyObject *object)
{
  PyObject *dtype = PyObject_GetAttrString(object, "dtype");
  PyObject *name = dtype ? PyObject_GetAttrString(dtype, "name") : NULL;
  int is = name && PyUnicode_Check(name) && !PyUnicode_CompareWithASCIIString(name, "bfloat16");
  Py_XDECREF(name);
  Py_XDECREF(dtype);
  PyErr_Clear();
  return is;
}

/* Converts a NumPy date or duration to the integer that represents it. Returns 1 without an
 * exception if the object is not a date. */
static int take_date(context_object *context, PyObject *object, binding_argument *storage,
                     kjit_arg *arg)
{
  kjit_type type = binding_find_record(context, object);
  PyObject *count = type == KJIT_VOID ? NULL : PyObject_CallMethod(object, "view", "s", "i8");
  int64_t number = count ? PyLong_AsLongLong(count) : 0;
  Py_XDECREF(count);
  if (PyErr_Occurred()) return -1;
  if (type == KJIT_VOID) return 1;
  memcpy(storage->value, &number, sizeof number);
  *arg = kjit_arg_value(type, storage->value);
  return 0;
}

static int take_scalar(context_object *context, PyObject *object, const char *name,
                       binding_argument *storage, kjit_arg *arg)
{
  Py_buffer view;
  if (PyObject_GetBuffer(object, &view, PyBUF_FORMAT)) return -1;
  kjit_type type = view.ndim ? KJIT_VOID : parse_format(view.format, view.itemsize);
  if (type == KJIT_VOID) {
    int outcome = take_date(context, object, storage, arg);
    if (outcome == 1) outcome = refuse_element(name, object, view.format);
    PyBuffer_Release(&view);
    return outcome;
  }
  memcpy(storage->value, view.buf, (size_t)view.itemsize);
  PyBuffer_Release(&view);
  *arg = kjit_arg_value(type, storage->value);
  return 0;
}

static int take_integer(PyObject *object, const char *name, kjit_arg *arg)
{
  int overflow;
  long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
  if (value == -1 && !overflow && PyErr_Occurred()) return -1;
  if (!overflow) {
    int is_short = value >= INT32_MIN && value <= INT32_MAX;
    *arg = is_short ? kjit_arg_number((double)value) : kjit_arg_integer(value);
    return 0;
  }
  unsigned long long large = overflow > 0 ? PyLong_AsUnsignedLongLong(object) : 0;
  if (overflow < 0 || (large == ~0ULL && PyErr_Occurred())) {
    PyErr_Clear();
    binding_fail(KJIT_ERROR_ARGUMENT, "parameter `%s`: the integer needs more than 64 bits",
                 say_name(name));
    return -1;
  }
  *arg = kjit_arg_unsigned_integer(large);
  return 0;
}

/* Returns the struct type of this context that corresponds to the element type of an array of
 * another context. Returns KJIT_ANY if the element type is no struct, or KJIT_VOID with an
 * exception. */
static kjit_type find_own_struct(context_object *context, const array_object *array)
{
  kjit_type element = kjit_get_array_element(array->array);
  if (element < KJIT_SCALAR_COUNT) return KJIT_ANY;
  char *text = kjit_copy_type_text(array->context->context, element);
  if (!text) {
    PyErr_NoMemory();
    return KJIT_VOID;
  }
  PyObject *name = binding_names_record(text) ? PyUnicode_FromString(text) : NULL;
  kjit_free(array->context->context, text);
  if (!name) return PyErr_Occurred() ? KJIT_VOID : KJIT_ANY;
  kjit_type own = binding_find_named_record(context, name);
  Py_DECREF(name);
  return own;
}

static int take_array(context_object *context, array_object *array, const char *name,
                      binding_argument *storage, kjit_arg *arg)
{
  if (array->pending && binding_evaluate(array)) return -1;
  array->is_alone = 0;
  if (array->context == context) {
    *arg = binding_pass_array(array);
    return 0;
  }
  const kjit_tensor *tensor = kjit_get_tensor(array->array);
  if (!tensor || array->context->generation != binding_generation) {
    binding_fail(KJIT_ERROR_FORKED, "the array was created by the parent process before a fork");
    return -1;
  }
  storage->tensor = *tensor;
  storage->is_foreign = !binding_is_on_cpu(tensor);
  kjit_type record = find_own_struct(context, array);
  if (record == KJIT_VOID) return -1;
  if (array->is_read_only == BINDING_READ_ONLY && record != KJIT_ANY) {
    binding_fail(KJIT_ERROR_UNSUPPORTED,
                 "parameter `%s`: the array of records is read-only; copy it first",
                 say_name(name));
    return -1;
  }
  if (array->is_read_only == BINDING_READ_ONLY) {
    storage->keep = binding_take_tensor(context, (PyObject *)array, tensor, NULL, 1, NULL);
    if (!storage->keep) return -1;
    *arg = kjit_arg_array(((array_object *)storage->keep)->array);
    return 0;
  }
  *arg = kjit_arg_elements(record, &storage->tensor);
  return 0;
}

static int take_complex(PyObject *object, binding_argument *storage, kjit_arg *arg)
{
  storage->value[0] = PyComplex_RealAsDouble(object);
  storage->value[1] = PyComplex_ImagAsDouble(object);
  *arg = kjit_arg_value(KJIT_C128, storage->value);
  return 0;
}

static int take_real(PyObject *object, kjit_arg *arg)
{
  double value = PyFloat_AsDouble(object);
  if (value == -1 && PyErr_Occurred()) return -1;
  *arg = kjit_arg_real(value);
  return 0;
}

/* Returns whether the object is a NumPy scalar. Each call looks for numpy.generic until numpy is
 * imported. */
static int is_numpy_scalar(PyObject *object)
{
  if (!numpy_generic) {
    PyObject *modules = PyImport_GetModuleDict(); /* borrowed */
    PyObject *numpy = PyDict_GetItemString(modules, "numpy");
    PyObject *generic = numpy ? PyObject_GetAttrString(numpy, "generic") : NULL;
    if (generic && PyType_Check(generic)) numpy_generic = (PyTypeObject *)Py_NewRef(generic);
    Py_XDECREF(generic);
    PyErr_Clear();
  }
  return numpy_generic && PyObject_TypeCheck(object, numpy_generic);
}

int binding_init_arguments(void) { return 0; }

PyTypeObject *binding_plain_type;
/* numpy_void: numpy.void, the class of records, or NULL until it is needed. */
static PyTypeObject *numpy_void, *enum_base;

/* Returns whether the object is a function or a type, which are compiled into the kernel. A
 * callable array counts as an array. */
static int is_function(PyObject *object)
{
  return PyCallable_Check(object) && !PyObject_CheckBuffer(object) &&
         !PyObject_HasAttrString(object, "__dlpack__") &&
         !PyObject_HasAttrString(object, "__cuda_array_interface__");
}

/* Returns a class of a Python module and caches it. */
static PyTypeObject *find_class(PyTypeObject **kept, const char *module, const char *name)
{
  if (*kept) return *kept;
  PyObject *imported = PyImport_ImportModule(module);
  PyObject *found = imported ? PyObject_GetAttrString(imported, name) : NULL;
  if (found && PyType_Check(found)) *kept = (PyTypeObject *)Py_NewRef(found);
  Py_XDECREF(found);
  Py_XDECREF(imported);
  PyErr_Clear();
  return *kept;
}

static int is_member(PyObject *object)
{
  PyTypeObject *enumeration = find_class(&enum_base, "enum", "Enum");
  return enumeration && PyObject_TypeCheck(object, enumeration);
}

int binding_find_composed(PyObject *object)
{
  if (object == Py_None || PyTuple_Check(object) || is_member(object) || is_function(object))
    return 1;
  if (!is_numpy_scalar(object)) {
    binding_set((PyObject **)(void *)&binding_plain_type, Py_NewRef((PyObject *)Py_TYPE(object)));
    return 0;
  }
  find_class(&numpy_void, "numpy", "void");
  return numpy_void && PyObject_TypeCheck(object, numpy_void);
}

/* Replaces an exception raised by the object by a kjit exception that names the parameter and
 * includes the message. */
static int explain(PyObject *object, const char *name)
{
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  binding_fail(KJIT_ERROR_ARGUMENT, "parameter `%s`: %R cannot be used as an array: %S",
               say_name(name), (PyObject *)Py_TYPE(object), value ? value : Py_None);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(trace);
  return -1;
}

/* Converts an array of another library by DLPack or __cuda_array_interface__. Returns 1 without an
 * exception if the object is not such an array. */
static int take_foreign(context_object *context, PyObject *object, binding_argument *storage,
                        kjit_arg *arg)
{
  storage->keep = binding_import(context, object);
  if (!storage->keep) return PyErr_Occurred() ? -1 : 1;
  storage->producer = ((array_object *)storage->keep)->producer;
  *arg = kjit_arg_array(((array_object *)storage->keep)->array);
  return 0;
}

/* Returns whether the current exception is KeyboardInterrupt, SystemExit or another exception that
 * does not derive from Exception. Another conversion of the object must not replace such an
 * exception. */
static int ends_program(void)
{
  return PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception);
}

void binding_clear_usual(void)
{
  if (!ends_program()) PyErr_Clear();
}

/* The type that last failed to provide a buffer and was converted by DLPack. CuPy's arrays have the
 * buffer protocol, but raise an exception if their memory is on a GPU. For this type DLPack is
 * tried first. */
static PyTypeObject *without_buffer;

static int take_instead_of_buffer(context_object *context, PyObject *object,
                                  binding_argument *storage, kjit_arg *arg)
{
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  int outcome = take_foreign(context, object, storage, arg);
  if (outcome && !ends_program()) {
    PyErr_Clear();
    PyErr_Restore(type, value, trace);
    return -1;
  }
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(trace);
  if (!outcome) without_buffer = Py_TYPE(object);
  return outcome;
}

static int take_from_buffer(context_object *context, PyObject *object, const char *name,
                            binding_argument *storage, kjit_arg *arg)
{
  if (Py_TYPE(object) == without_buffer && !take_foreign(context, object, storage, arg)) return 0;
  if (ends_program()) return -1;
  PyErr_Clear();
  if (!take_buffer(context, object, name, storage, arg)) return 0;
  /* true if the object has raised an exception; other conversions are tried then. An exception of
   * kjit itself is final. */
  int is_refused = !binding_is_error();
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  int dated = is_refused ? take_dates(context, object, name, storage, arg) : 1;
  if (dated <= 0) {
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return dated;
  }
  if (!is_bfloat(object)) {
    PyErr_Restore(type, value, trace);
    return is_refused ? take_instead_of_buffer(context, object, storage, arg) : -1;
  }
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(trace);
  return take_bfloat(context, object, name, storage, arg);
}

static int take_other(context_object *context, PyObject *object, const char *name,
                      binding_argument *storage, kjit_arg *arg)
{
  if (PyObject_CheckBuffer(object)) return take_from_buffer(context, object, name, storage, arg);
  if (PyLong_Check(object)) return take_integer(object, name, arg);
  if (PyFloat_Check(object)) return take_real(object, arg);
  if (PyComplex_Check(object)) return take_complex(object, storage, arg);
  int outcome = take_foreign(context, object, storage, arg);
  if (outcome <= 0) return outcome;
  binding_fail(
    KJIT_ERROR_ARGUMENT,
    "parameter `%s`: %R is neither a number nor an array (NumPy's, kjit's, or one with the "
    "buffer protocol, __dlpack__ or __cuda_array_interface__)%s",
    say_name(name), (PyObject *)Py_TYPE(object),
    PyCallable_Check(object) ? "; of callable objects, kernels accept Python functions, kjit.funcs "
                               "and functions of the kernel language"
                             : "");
  return -1;
}

int binding_take_argument(context_object *context, PyObject *object, const char *name,
                          binding_argument *storage, kjit_arg *arg)
{
  binding_begin_argument(storage);
  if (Py_TYPE(object) == binding_array_type)
    return take_array(context, (array_object *)object, name, storage, arg);
  if (PyFloat_CheckExact(object)) return take_real(object, arg);
  if (PyBool_Check(object)) {
    *arg = kjit_arg_bool(object == Py_True);
    return 0;
  }
  if (PyLong_CheckExact(object)) return take_integer(object, name, arg);
  int outcome = is_numpy_scalar(object) ? take_scalar(context, object, name, storage, arg)
                                        : take_other(context, object, name, storage, arg);
  if (outcome && !ends_program() && !binding_is_error()) return explain(object, name);
  return outcome;
}

void binding_free_argument(binding_argument *storage)
{
  if (storage->buffer.obj) PyBuffer_Release(&storage->buffer);
  storage->buffer.obj = NULL;
  Py_CLEAR(storage->keep);
}

/* ---- values ---- */

static double half_to_double(uint16_t bits)
{
  int exponent = bits >> 10 & 31;
  double fraction = (bits & 1023) / 1024.0;
  double size = exponent == 31 ? (bits & 1023 ? NAN : INFINITY)
                : exponent     ? ldexp(1 + fraction, exponent - 15)
                               : ldexp(fraction, -14);
  return bits >> 15 ? -size : size;
}

static double bfloat_to_double(uint16_t bits)
{
  uint32_t wide = (uint32_t)bits << 16;
  float value;
  memcpy(&value, &wide, sizeof value);
  return (double)value;
}

PyObject *binding_make_value(kjit_type type, const void *bytes)
{
  union {
    int8_t i8;
    int16_t i16;
    int32_t i32;
    int64_t i64;
    uint8_t u8;
    uint16_t u16;
    uint32_t u32;
    uint64_t u64;
    float f32[2];
    double f64[2];
  } v;
  memset(&v, 0, sizeof v);
  if (type < KJIT_SCALAR_COUNT) memcpy(&v, bytes, scalars[type].size_bytes);
  switch (type) {
  case KJIT_VOID: Py_RETURN_NONE;
  case KJIT_BOOL: return PyBool_FromLong(v.u8);
  case KJIT_I8: return PyLong_FromLong(v.i8);
  case KJIT_I16: return PyLong_FromLong(v.i16);
  case KJIT_I32: return PyLong_FromLong(v.i32);
  case KJIT_I64: return PyLong_FromLongLong(v.i64);
  case KJIT_U8: return PyLong_FromUnsignedLong(v.u8);
  case KJIT_U16: return PyLong_FromUnsignedLong(v.u16);
  case KJIT_U32: return PyLong_FromUnsignedLong(v.u32);
  case KJIT_U64: return PyLong_FromUnsignedLongLong(v.u64);
  case KJIT_F16: return PyFloat_FromDouble(half_to_double(v.u16));
  case KJIT_BF16: return PyFloat_FromDouble(bfloat_to_double(v.u16));
  case KJIT_F32: return PyFloat_FromDouble((double)v.f32[0]);
  case KJIT_F64: return PyFloat_FromDouble(v.f64[0]);
  case KJIT_C64: return PyComplex_FromDoubles((double)v.f32[0], (double)v.f32[1]);
  case KJIT_C128: return PyComplex_FromDoubles(v.f64[0], v.f64[1]);
  default:
    return binding_fail(KJIT_ERROR_UNSUPPORTED,
                        "a value of this type cannot be represented in Python");
  }
}
