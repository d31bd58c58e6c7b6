/* Reads NumPy arrays and scalars directly from memory in the layout of NumPy's C interface, because
 * NumPy's functions and the buffer protocol are too slow for a launch. The extension is compiled
 * without NumPy, so the layout is tested with known values before it is used. */
#include "form.h"

#include <stdlib.h>

static const char *const class_names[KJIT_SCALAR_COUNT] = {
  [KJIT_BOOL] = "bool_",    [KJIT_I8] = "int8",         [KJIT_I16] = "int16",
  [KJIT_I32] = "int32",     [KJIT_I64] = "int64",       [KJIT_U8] = "uint8",
  [KJIT_U16] = "uint16",    [KJIT_U32] = "uint32",      [KJIT_U64] = "uint64",
  [KJIT_F16] = "float16",   [KJIT_F32] = "float32",     [KJIT_F64] = "float64",
  [KJIT_C64] = "complex64", [KJIT_C128] = "complex128",
};
static PyTypeObject *scalar_classes[KJIT_SCALAR_COUNT];
/* Classes for C's long long and unsigned long long, which are separate classes if long has 64
 * bits. */
static PyTypeObject *long_classes[2];

static PyTypeObject *find_class(PyObject *numpy, const char *name)
{
  PyObject *found = PyObject_GetAttrString(numpy, name);
  if (found && PyType_Check(found)) return (PyTypeObject *)found;
  PyErr_Clear();
  Py_XDECREF(found);
  return NULL;
}

/* Returns whether the value of a scalar of this class is at the expected position. */
static int is_scalar_as_expected(PyTypeObject *type)
{
  PyObject *scalar = type ? PyObject_CallFunction((PyObject *)type, "i", 77) : NULL;
  form_number number = { .type = KJIT_VOID };
  kjit_type kind = scalar ? form_find_scalar_class(type) : KJIT_VOID;
  int is_right = 0;
  if (kind != KJIT_VOID && form_read_number(scalar, kind, &number)) {
    kjit_arg as_float;
    is_right = form_convert(&number, KJIT_F64, &as_float) &&
               as_float.value.f64 == (kind == KJIT_BOOL ? 1 : 77);
    if (kind == KJIT_C64 || kind == KJIT_C128) is_right = number.value.f[0] == 77;
  }
  Py_XDECREF(scalar);
  PyErr_Clear();
  return is_right;
}

/* Tests a view of rows 1 and 2 and columns 1 and 3 of a 3 x 4 array of 16-bit integers. */
static int is_array_as_expected(PyObject *numpy)
{
  PyObject *whole = PyObject_CallMethod(numpy, "zeros", "(ii)s", 3, 4, "i2");
  PyObject *from = PyLong_FromLong(1), *step = PyLong_FromLong(2);
  PyObject *first = PySlice_New(from, NULL, NULL), *second = PySlice_New(from, NULL, step);
  PyObject *key = first && second ? PyTuple_Pack(2, first, second) : NULL;
  PyObject *view = whole && key ? PyObject_GetItem(whole, key) : NULL;
  PyObject *dtype = view ? PyObject_GetAttrString(view, "dtype") : NULL;
  const form_numpy_array *array = (const form_numpy_array *)view;
  const form_numpy_array *base = (const form_numpy_array *)whole;
  int is_right =
    dtype && array->rank == 2 && array->extents[0] == 2 && array->extents[1] == 2 &&
    array->strides[0] == 8 && array->strides[1] == 4 && array->dtype == dtype &&
    array->base == whole && array->data == base->data + 10 &&
    (array->flags & 0x503) == (FORM_NUMPY_ALIGNED | FORM_NUMPY_WRITEABLE) &&
    (base->flags & 0x503) == (FORM_NUMPY_C | FORM_NUMPY_ALIGNED | FORM_NUMPY_WRITEABLE);
  PyObject *made[] = { whole, from, step, first, second, key, view, dtype };
  for (size_t i = 0; i < sizeof made / sizeof *made; i++) Py_XDECREF(made[i]);
  PyErr_Clear();
  return is_right;
}

static int try_numpy(PyObject *numpy)
{
  for (kjit_type type = 0; type < KJIT_SCALAR_COUNT; type++)
    if (class_names[type]) scalar_classes[type] = find_class(numpy, class_names[type]);
  long_classes[0] = find_class(numpy, "longlong");
  long_classes[1] = find_class(numpy, "ulonglong");
  for (kjit_type type = 0; type < KJIT_SCALAR_COUNT; type++)
    if (class_names[type] && !is_scalar_as_expected(scalar_classes[type])) return 0;
  return is_array_as_expected(numpy);
}

int form_knows_numpy(void)
{
  static int known = -1; /* -1: the test has not run yet */
  if (known >= 0) return known;
  PyObject *numpy = PyDict_GetItemString(PyImport_GetModuleDict(), "numpy"); /* borrowed */
  if (!numpy) return 0;
  known = 0;
  known = try_numpy(numpy);
  return known;
}

kjit_type form_find_scalar_class(PyTypeObject *type)
{
  for (kjit_type i = 0; i < KJIT_SCALAR_COUNT; i++)
    if (scalar_classes[i] == type) return i;
  return type == long_classes[0] ? KJIT_I64 : type == long_classes[1] ? KJIT_U64 : KJIT_VOID;
}

/* ---- dtypes ---- */

enum { MOST_DTYPES = 1024, RECENT = 64 };
static form_dtype *dtypes; /* indices start at 1 */
static uint32_t dtype_count;
static PyObject *numbers; /* dictionary: dtype -> number */
static struct {
  PyObject *dtype;
  uint32_t number;
} recent[RECENT]; /* indexed by a hash of the address */

const form_dtype *form_get_dtype(uint32_t number) { return &dtypes[number]; }

static int64_t get_integer(PyObject *object, const char *name)
{
  PyObject *value = PyObject_GetAttrString(object, name);
  long long number = value ? PyLong_AsLongLong(value) : 0;
  Py_XDECREF(value);
  return number;
}

/* Returns the alignment of the array's elements. For records it is the alignment of the struct. */
static int64_t find_alignment(context_object *context, PyObject *array)
{
  kjit_type_layout layout = { .size_bytes = sizeof layout };
  kjit_type record = binding_find_record(context, array);
  if (record == KJIT_VOID || kjit_get_type_layout(context->context, record, &layout) != KJIT_OK)
    return 0;
  return (int64_t)layout.alignment_bytes;
}

static form_dtype describe(context_object *context, PyObject *array, PyObject *dtype)
{
  form_dtype found = { .dtype = dtype, .size_bytes = get_integer(dtype, "itemsize") };
  PyObject *names = PyObject_GetAttrString(dtype, "names");
  found.has_fields = names && names != Py_None;
  Py_XDECREF(names);
  PyObject *text = PyObject_GetAttrString(dtype, "str");
  const char *typestr = text && PyUnicode_Check(text) ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
  if (!found.has_fields && typestr && !binding_parse_typestr(typestr, &found.element)) {
    found.is_taken = 1;
    found.alignment_bytes = found.size_bytes / (found.element.code == 5 ? 2 : 1);
  }
  if (found.has_fields && found.size_bytes > 0) {
    found.alignment_bytes = find_alignment(context, array);
    found.is_taken = found.alignment_bytes > 0;
  }
  Py_XDECREF(text);
  if (PyErr_Occurred()) found.is_taken = 0;
  PyErr_Clear();
  return found;
}

/* Returns the number of a dtype, or 0 if it has none. */
static uint32_t get_number(PyObject *dtype)
{
  PyObject *known = PyDict_GetItemWithError(numbers, dtype); /* borrowed */
  return known ? (uint32_t)PyLong_AsUnsignedLong(known) : 0;
}

static uint32_t add_dtype(context_object *context, PyObject *array, PyObject *dtype)
{
  if (!numbers && !(numbers = PyDict_New())) return 0;
  uint32_t own = get_number(dtype);
  if (own || PyErr_Occurred()) return own;
  if (!dtypes && !(dtypes = calloc(MOST_DTYPES, sizeof *dtypes))) return 0;
  /* Describing a dtype runs Python code, and other threads may number dtypes meanwhile. So the
   * dtype gets its number afterwards, if no other thread has numbered it. */
  const form_dtype described = describe(context, array, dtype);
  own = get_number(dtype);
  if (own || PyErr_Occurred() || dtype_count + 1 >= MOST_DTYPES) return own;
  own = dtype_count + 1;
  PyObject *number = PyLong_FromUnsignedLong(own);
  int is_kept = number && !PyDict_SetItem(numbers, dtype, number);
  Py_XDECREF(number);
  if (!is_kept) return 0;
  dtypes[own] = described; /* `numbers` keeps a reference */
  return dtype_count = own;
}

uint32_t form_find_dtype(context_object *context, PyObject *array, PyObject *dtype)
{
  size_t place = ((uintptr_t)dtype >> 4 ^ (uintptr_t)dtype >> 10) % RECENT;
  if (recent[place].dtype == dtype) return recent[place].number;
  uint32_t number = add_dtype(context, array, dtype);
  PyErr_Clear();
  if (!number) return 0;
  PyObject *old = recent[place].dtype;
  recent[place].dtype = Py_NewRef(dtype);
  recent[place].number = number;
  Py_XDECREF(old);
  return number;
}
