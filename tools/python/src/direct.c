/* Reads arrays of other libraries directly, without a DLPack capsule. If the array's type has
 * DLPack's exchange API, this API is used. CuPy's type does not have it, so CuPy's arrays are read
 * by their attributes. */
#include "binding.h"

/* ---- DLPack's exchange API: C functions in the type's attribute `__dlpack_c_exchange_api__`
 * ---- */

/* The struct of DLPack 1.3. Only functions that kjit calls are declared with their types. */
typedef struct exchange_api {
  uint32_t major, minor;
  const struct exchange_api *older; /* an API with an older version number, or NULL */
  void (*allocate)(void);
  int (*take)(void *object, kjit_managed_tensor_versioned **tensor);
  void (*give)(void);
  int (*look)(void *object, kjit_tensor *tensor);
  int (*get_current_stream)(int32_t device_type, int32_t device_id, void **stream);
} exchange_api;

static const exchange_api *find_api(PyTypeObject *type)
{
  const exchange_api *api = NULL;
  PyObject *capsule = PyObject_GetAttrString((PyObject *)type, "__dlpack_c_exchange_api__");
  if (capsule && PyCapsule_IsValid(capsule, "dlpack_exchange_api"))
    api = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
  PyErr_Clear();
  while (api && api->major != 1) api = api->older;
  if (api && (!api->look || !api->get_current_stream)) api = NULL;
  Py_XDECREF(capsule); /* the type keeps the capsule alive */
  return api;
}

static int look_by_api(const exchange_api *api, PyObject *object, binding_argument *storage)
{
  kjit_tensor *tensor = &storage->tensor;
  if (api->look(object, tensor)) {
    if (!PyErr_Occurred())
      binding_refuse(object, "its DLPack exchange API failed without an error message");
    return -1;
  }
  const char *flaw = binding_find_flaw(tensor, tensor->device_type, tensor->device_id);
  if (!flaw && tensor->device_type != 1 && tensor->device_type != 2 && tensor->device_type != 3 &&
      tensor->device_type != 13)
    flaw = "it is on a device that kjit does not support";
  if (flaw) {
    binding_refuse(object, flaw);
    return -1;
  }
  if (tensor->device_type == KJIT_DEVICE_CUDA)
    storage->producer = (binding_producer){
      .is_known = 1, .lives_on = 1, .device = tensor->device_id, .library = api
    };
  return 1;
}

/* ---- CuPy's arrays ---- */

enum { DATA, PTR, DEVICE_ID, DTYPE, NDIM, SIZE, SHAPE, STRIDES, IS_DENSE, NAME_COUNT };
static const char *const texts[NAME_COUNT] = { "data", "ptr",   "device_id", "dtype",        "ndim",
                                               "size", "shape", "strides",   "_c_contiguous" };
static PyObject *names[NAME_COUNT]; /* interned */

/* Attributes of CuPy's arrays and memory pointers are descriptors of their types. They are cached
 * here, because a normal attribute lookup would search the type each time. */
typedef struct attribute {
  PyObject *descriptor; /* NULL if the attribute needs a normal lookup */
  descrgetfunc get;
} attribute;
typedef struct attributes {
  PyTypeObject *type;
  attribute of[NAME_COUNT];
} attributes;
static attributes of_arrays, of_pointers;

static attribute find_attribute(PyTypeObject *type, PyObject *name)
{
  attribute found = { PyObject_GetAttr((PyObject *)type, name), NULL };
  PyErr_Clear();
  PyTypeObject *kind = found.descriptor ? Py_TYPE(found.descriptor) : NULL;
  if (kind == &PyGetSetDescr_Type || kind == &PyMemberDescr_Type) {
    found.get = (descrgetfunc)PyType_GetSlot(kind, Py_tp_descr_get);
    if (found.get) return found;
  }
  Py_XDECREF(found.descriptor);
  return (attribute){ NULL, NULL };
}

/* Caches a type's descriptors. If the type overrides attribute lookup, caches that no descriptor
 * can be used. */
static void learn(attributes *known, PyTypeObject *type)
{
  int is_plain =
    (getattrofunc)PyType_GetSlot(type, Py_tp_getattro) == (getattrofunc)PyObject_GenericGetAttr;
  binding_set((PyObject **)(void *)&known->type, Py_NewRef((PyObject *)type));
  for (int i = 0; i < NAME_COUNT; i++) {
    attribute found = is_plain ? find_attribute(type, names[i]) : (attribute){ NULL, NULL };
    PyObject *old = known->of[i].descriptor;
    known->of[i] = found;
    Py_XDECREF(old);
  }
}

static PyObject *get(const attributes *known, PyObject *object, int name)
{
  const attribute *of = &known->of[name];
  if (Py_TYPE(object) == known->type && of->descriptor)
    return of->get(of->descriptor, object, (PyObject *)known->type);
  return PyObject_GetAttr(object, names[name]);
}

/* The function cupy.cuda.get_current_stream. Its address also identifies the library in
 * binding_producer. */
static PyObject *get_cupys_stream;

int binding_init_direct(void)
{
  for (int i = 0; i < NAME_COUNT; i++)
    if (!names[i] && !(names[i] = PyUnicode_InternFromString(texts[i]))) return -1;
  return 0;
}

/* Returns whether the type is cupy.ndarray itself. A subclass may define the attributes
 * differently. */
static int is_cupys(PyTypeObject *type)
{
  PyObject *cupy = PyDict_GetItemString(PyImport_GetModuleDict(), "cupy"); /* borrowed */
  PyObject *array = cupy ? PyObject_GetAttrString(cupy, "ndarray") : NULL;
  PyObject *cuda = array == (PyObject *)type ? PyObject_GetAttrString(cupy, "cuda") : NULL;
  PyObject *function = cuda ? PyObject_GetAttrString(cuda, "get_current_stream") : NULL;
  PyErr_Clear();
  int is = function != NULL;
  if (is) {
    binding_set(&get_cupys_stream, Py_NewRef(function));
    learn(&of_arrays, type);
  }
  Py_XDECREF(function);
  Py_XDECREF(cuda);
  Py_XDECREF(array);
  return is;
}

/* Element types of the dtypes seen last. Arrays usually share few dtype objects. */
static struct known_dtype {
  PyObject *dtype;
  uint8_t code, bits;
} known_dtypes[16];
static unsigned next_dtype;

/* Reads the element type of a dtype. Returns 0 if kjit has no such element type. */
static int read_dtype(PyObject *dtype, kjit_tensor *tensor)
{
  tensor->lanes = 1;
  for (size_t i = 0; i < sizeof known_dtypes / sizeof *known_dtypes; i++)
    if (known_dtypes[i].dtype == dtype) {
      tensor->code = known_dtypes[i].code, tensor->bits = known_dtypes[i].bits;
      return 1;
    }
  PyObject *text = PyObject_GetAttrString(dtype, "str");
  const char *typestr = text && PyUnicode_Check(text) ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
  int is_known = typestr && !binding_parse_typestr(typestr, tensor);
  Py_XDECREF(text);
  if (!is_known) return 0;
  struct known_dtype *place =
    &known_dtypes[next_dtype++ % (sizeof known_dtypes / sizeof *known_dtypes)];
  PyObject *old = place->dtype;
  *place = (struct known_dtype){ Py_NewRef(dtype), tensor->code, tensor->bits };
  Py_XDECREF(old);
  return 1;
}

static long long get_integer(const attributes *known, PyObject *object, int name)
{
  PyObject *value = object ? get(known, object, name) : NULL;
  long long number = value ? PyLong_AsLongLong(value) : -1;
  Py_XDECREF(value);
  return number;
}

static int get_integers(PyObject *object, int name, int64_t *values, int count)
{
  PyObject *tuple = get(&of_arrays, object, name);
  int is_right = tuple && PyTuple_Check(tuple) && PyTuple_Size(tuple) == count &&
                 !binding_parse_integers(tuple, values, count);
  Py_XDECREF(tuple);
  return is_right;
}

/* Reads rank, shape and strides. Avoids reading tuples for one-dimensional contiguous arrays, the
 * most frequent case, because reading tuples is slow. */
static int read_extents(PyObject *object, binding_argument *storage)
{
  kjit_tensor *tensor = &storage->tensor;
  long long rank = get_integer(&of_arrays, object, NDIM);
  PyObject *dense = get(&of_arrays, object, IS_DENSE);
  int is_dense = dense == Py_True;
  Py_XDECREF(dense);
  if (!dense || rank < 0 || rank > BINDING_MAX_RANK) return 0;
  tensor->rank = (int32_t)rank;
  tensor->shape = storage->shape;
  if (rank == 1 && is_dense) {
    storage->shape[0] = get_integer(&of_arrays, object, SIZE);
    return 1;
  }
  if (!get_integers(object, SHAPE, storage->shape, tensor->rank)) return 0;
  if (is_dense) return 1;
  if (!get_integers(object, STRIDES, storage->strides, tensor->rank)) return 0;
  for (int i = 0; i < tensor->rank; i++) {
    if (storage->strides[i] % (tensor->bits / 8)) return 0;
    storage->strides[i] /= tensor->bits / 8;
  }
  tensor->strides = storage->strides;
  return 1;
}

static int read_cupys(context_object *context, PyObject *object, binding_argument *storage)
{
  kjit_tensor *tensor = &storage->tensor;
  memset(tensor, 0, sizeof *tensor);
  PyObject *data = get(&of_arrays, object, DATA), *dtype = NULL;
  if (data && Py_TYPE(data) != of_pointers.type) learn(&of_pointers, Py_TYPE(data));
  long long address = get_integer(&of_pointers, data, PTR), device = 0;
  if (!context->gpu_count)
    context->gpu_count = kjit_get_device_count(context->context, KJIT_DEVICE_CUDA);
  if (context->gpu_count != 1) device = get_integer(&of_pointers, data, DEVICE_ID);
  Py_XDECREF(data);
  int is_right = data && !PyErr_Occurred() && device >= 0 && device <= INT32_MAX &&
                 (dtype = get(&of_arrays, object, DTYPE)) && read_dtype(dtype, tensor) &&
                 read_extents(object, storage) && !PyErr_Occurred();
  Py_XDECREF(dtype);
  if (!is_right) return 0;
  tensor->data = (void *)(uintptr_t)address;
  tensor->device_type = KJIT_DEVICE_CUDA;
  tensor->device_id = (int32_t)device;
  storage->producer = (binding_producer){ .is_known = 1,
                                          .device = tensor->device_id,
                                          .library = (const void *)&get_cupys_stream };
  return !binding_find_flaw(tensor, KJIT_DEVICE_CUDA, tensor->device_id);
}

/* Reads a CuPy array. If this fails, the caller uses the protocols that CuPy supports, which also
 * report errors. */
static int look_at_cupys(context_object *context, PyObject *object, binding_argument *storage)
{
  int is_read = read_cupys(context, object, storage);
  PyErr_Clear();
  if (!is_read) storage->producer.is_known = 0;
  return is_read;
}

/* ---- arrays of either kind ---- */

/* A cache of results for the types that were seen last. Programs usually pass objects of few
 * types. */
static struct known_type {
  PyTypeObject *type;
  const exchange_api *api; /* NULL if the type has no API that kjit supports */
  int is_cupys;
} known_types[16];
static unsigned next_type;

static struct known_type find_type(PyTypeObject *type)
{
  for (unsigned i = 0; i < sizeof known_types / sizeof *known_types; i++)
    if (known_types[i].type == type) return known_types[i];
  const exchange_api *api = find_api(type);
  struct known_type found = { type, api, !api && is_cupys(type) };
  struct known_type *place = &known_types[next_type++ % (sizeof known_types / sizeof *known_types)];
  PyTypeObject *old = place->type;
  *place = found;
  Py_INCREF((PyObject *)type);
  Py_XDECREF((PyObject *)old);
  return found;
}

int binding_look(context_object *context, PyObject *object, binding_argument *storage)
{
  struct known_type known = find_type(Py_TYPE(object));
  binding_begin_argument(storage);
  return known.api        ? look_by_api(known.api, object, storage)
         : known.is_cupys ? look_at_cupys(context, object, storage)
                          : 0;
}

static int ask_cupy(binding_producer *producer)
{
  PyObject *function = Py_NewRef(get_cupys_stream), *device = PyLong_FromLong(producer->device);
  PyObject *stream = device ? PyObject_CallFunctionObjArgs(function, device, NULL) : NULL;
  PyObject *number = stream ? PyObject_GetAttr(stream, names[PTR]) : NULL;
  if (number) producer->handle = PyLong_AsUnsignedLongLong(number);
  Py_XDECREF(number);
  Py_XDECREF(stream);
  Py_XDECREF(device);
  Py_DECREF(function);
  return PyErr_Occurred() ? -1 : 0;
}

int binding_ask_stream(binding_producer *producer)
{
  if (producer->library == (const void *)&get_cupys_stream) return ask_cupy(producer);
  const exchange_api *api = producer->library;
  void *stream = NULL;
  if (api->get_current_stream(KJIT_DEVICE_CUDA, producer->device, &stream)) {
    if (!PyErr_Occurred())
      binding_fail(KJIT_ERROR_ARGUMENT, "the library's DLPack exchange API returned no stream");
    return -1;
  }
  producer->handle = (uint64_t)(uintptr_t)stream;
  return 0;
}
