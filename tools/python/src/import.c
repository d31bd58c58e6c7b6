/* Imports arrays of other libraries by __dlpack__ and __cuda_array_interface__. */
#include "binding.h"

PyObject *binding_refuse(PyObject *object, const char *what)
{
  return binding_fail(KJIT_ERROR_ARGUMENT, "%R: %s", (PyObject *)Py_TYPE(object), what);
}

/* ---- DLPack ---- */

const char *binding_find_flaw(const kjit_tensor *t, long device_type, long device_id)
{
  if (t->rank < 0 || t->rank > BINDING_MAX_RANK)
    return "__dlpack__ returned more than 8 dimensions";
  if (t->rank && !t->shape) return "__dlpack__ returned no shape";
  int64_t size = 1;
  for (int i = 0; i < t->rank; i++) {
    if (t->shape[i] < 0) return "__dlpack__ returned a negative extent";
    if (__builtin_mul_overflow(size, t->shape[i], &size))
      return "__dlpack__ returned a shape that does not fit the address space";
  }
  if (size && !t->data) return "__dlpack__ returned no memory";
  if (t->device_type != device_type || t->device_id != device_id)
    return "__dlpack__ and __dlpack_device__ contradict each other";
  return NULL;
}

/* Returns an integer attribute of a library's stream, such as
 * torch.cuda.current_stream(0).cuda_stream, or -1 if the library has no such function. */
static long long ask_library(const char *module, const char *function, int device, const char *name)
{
  PyObject *root = PyDict_GetItemString(PyImport_GetModuleDict(), module); /* borrowed */
  PyObject *cuda = root ? PyObject_GetAttrString(root, "cuda") : NULL;
  PyObject *stream = cuda ? PyObject_CallMethod(cuda, function, "i", device) : NULL;
  PyObject *number = stream ? PyObject_GetAttrString(stream, name) : NULL;
  long long handle = number && PyLong_Check(number) ? PyLong_AsLongLong(number) : -1;
  Py_XDECREF(number);
  Py_XDECREF(stream);
  Py_XDECREF(cuda);
  PyErr_Clear();
  return handle;
}

/* Returns whether the class of the array is defined in the package or in one of its modules. */
static int is_of_package(PyObject *object, const char *package)
{
  PyObject *module = PyObject_GetAttrString((PyObject *)Py_TYPE(object), "__module__");
  const char *text =
    module && PyUnicode_Check(module) ? PyUnicode_AsUTF8AndSize(module, NULL) : NULL;
  PyErr_Clear();
  size_t length = strlen(package);
  int is_of = text && !strncmp(text, package, length) && (!text[length] || text[length] == '.');
  Py_XDECREF(module);
  return is_of;
}

/* Finds the stream on which the array's library queues its next work on the array's device. */
static void find_current_stream(PyObject *object, int device, binding_producer *producer)
{
  long long handle = -1;
  if (is_of_package(object, "torch"))
    handle = ask_library("torch", "current_stream", device, "cuda_stream");
  else if (is_of_package(object, "cupy"))
    handle = ask_library("cupy", "get_current_stream", device, "ptr");
  if (handle >= 0)
    *producer = (binding_producer){ .is_known = 1, .device = device, .handle = (uint64_t)handle };
}

/* Makes the GPU of a PyTorch tensor PyTorch's current device, because PyTorch exports the tensor
 * only then. Returns torch.cuda.device(device), whose __exit__ restores the previous device.
 * Returns NULL for other arrays, and with an exception on failure. */
static PyObject *enter_device_of_library(PyObject *object, int device)
{
  PyObject *root = is_of_package(object, "torch")
                     ? PyDict_GetItemString(PyImport_GetModuleDict(), "torch") /* borrowed */
                     : NULL;
  PyObject *cuda = root ? PyObject_GetAttrString(root, "cuda") : NULL;
  PyObject *guard = cuda ? PyObject_CallMethod(cuda, "device", "i", device) : NULL;
  PyObject *entered = guard ? PyObject_CallMethod(guard, "__enter__", NULL) : NULL;
  Py_XDECREF(cuda);
  if (guard && !entered) Py_CLEAR(guard);
  Py_XDECREF(entered);
  return guard;
}

/* Restores the device that enter_device_of_library replaced. An exception that is set stays set. */
static void leave_device_of_library(PyObject *guard)
{
  if (!guard) return;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyObject *left = PyObject_CallMethod(guard, "__exit__", "OOO", Py_None, Py_None, Py_None);
  if (!left) PyErr_WriteUnraisable(guard);
  Py_XDECREF(left);
  Py_DECREF(guard);
  PyErr_Restore(type, value, trace);
}

static PyObject *call_dlpack(PyObject *object, int is_on_gpu)
{
  PyObject *method = PyObject_GetAttrString(object, "__dlpack__");
  PyObject *none = method ? PyTuple_New(0) : NULL;
  PyObject *names = none ? Py_BuildValue("{s(ii)}", "max_version", 1, 0) : NULL;
  PyObject *one = names && is_on_gpu ? PyLong_FromLong(1) : NULL; /* 1 means the default stream */
  if (one) PyDict_SetItemString(names, "stream", one);
  PyObject *capsule = names && !PyErr_Occurred() ? PyObject_Call(method, none, names) : NULL;
  if (!capsule && names && PyErr_ExceptionMatches(PyExc_TypeError)) {
    /* producers older than DLPack 1.0 do not accept the argument max_version */
    PyErr_Clear();
    PyDict_DelItemString(names, "max_version");
    capsule = PyObject_Call(method, none, names);
  }
  Py_XDECREF(one);
  Py_XDECREF(names);
  Py_XDECREF(none);
  Py_XDECREF(method);
  return capsule;
}

static PyObject *take_capsule(context_object *context, PyObject *object, PyObject *capsule,
                              long device_type, long device_id)
{
  int is_versioned = PyCapsule_IsValid(capsule, "dltensor_versioned");
  if (!is_versioned && !PyCapsule_IsValid(capsule, "dltensor"))
    return binding_refuse(
      object, "__dlpack__ returned no DLPack capsule, or a capsule that was already used");
  kjit_array *array = NULL;
  kjit_status status;
  int is_read_only = 0;
  if (is_versioned) {
    kjit_managed_tensor_versioned *m = PyCapsule_GetPointer(capsule, "dltensor_versioned");
    /* with another major version, only the deleter is defined */
    const char *flaw = m->major == 1 ? binding_find_flaw(&m->tensor, device_type, device_id) : NULL;
    if (flaw) return binding_refuse(object, flaw);
    is_read_only = m->major == 1 && (m->flags & KJIT_DLPACK_READ_ONLY);
    if (PyCapsule_SetName(capsule, "used_dltensor_versioned")) return NULL;
    BINDING_UNLOCKED(context,
                     status = kjit_take_dlpack_versioned(context->context, m, NULL, &array));
  } else {
    kjit_managed_tensor *m = PyCapsule_GetPointer(capsule, "dltensor");
    const char *flaw = binding_find_flaw(&m->tensor, device_type, device_id);
    if (flaw) return binding_refuse(object, flaw);
    if (PyCapsule_SetName(capsule, "used_dltensor")) return NULL;
    BINDING_UNLOCKED(context, status = kjit_take_dlpack(context->context, m, NULL, &array));
  }
  if (binding_finish_array(context, status, array)) return NULL;
  return binding_wrap_foreign(context, array, is_read_only);
}

static PyObject *import_dlpack(context_object *context, PyObject *object)
{
  PyObject *device = PyObject_CallMethod(object, "__dlpack_device__", NULL);
  if (!device) return NULL;
  PyObject *type = NULL, *id = NULL;
  long device_type = 0, device_id = 0;
  if (PyTuple_Check(device) && PyTuple_Size(device) == 2) {
    type = PyNumber_Long(PyTuple_GetItem(device, 0));
    id = type ? PyNumber_Long(PyTuple_GetItem(device, 1)) : NULL;
    if (id) device_type = PyLong_AsLong(type), device_id = PyLong_AsLong(id);
  }
  Py_XDECREF(type);
  Py_XDECREF(id);
  Py_DECREF(device);
  if (!id)
    return PyErr_Occurred() ? NULL
                            : binding_refuse(object, "__dlpack_device__ did not return (type, id)");
  if (PyErr_Occurred()) return NULL;
  /* CPU, CUDA, CUDA pinned memory, and managed memory */
  if (device_type != 1 && device_type != 2 && device_type != 3 && device_type != 13)
    return binding_refuse(object, "it is on a device that kjit does not support");
  PyObject *guard =
    device_type == KJIT_DEVICE_CUDA ? enter_device_of_library(object, (int)device_id) : NULL;
  PyObject *capsule = PyErr_Occurred() ? NULL : call_dlpack(object, device_type != 1);
  leave_device_of_library(guard);
  if (!capsule) return NULL;
  PyObject *array = take_capsule(context, object, capsule, device_type, device_id);
  Py_DECREF(capsule);
  if (array && device_type == KJIT_DEVICE_CUDA)
    find_current_stream(object, (int)device_id, &((array_object *)array)->producer);
  return array;
}

/* ---- the CUDA array interface ---- */

typedef struct cuda_interface {
  kjit_tensor tensor;
  int64_t shape[BINDING_MAX_RANK], strides[BINDING_MAX_RANK];
  int is_read_only;
  unsigned long long stream; /* stream handle, or 0 if no stream is given */
} cuda_interface;

int binding_parse_typestr(const char *text, kjit_tensor *tensor)
{
  static const char letters[] = "iufxxcb";
  if (strlen(text) < 3 || (text[0] != '<' && text[0] != '|' && text[0] != '=')) return -1;
  const char *letter = strchr(letters, text[1]);
  if (!letter || text[1] == 'x') return -1;
  int bytes = text[3] ? 10 * (text[2] - '0') + (text[3] - '0') : text[2] - '0';
  if (bytes < 1 || bytes > 16 || (text[3] && text[4])) return -1;
  tensor->code = (uint8_t)(letter - letters);
  tensor->bits = (uint8_t)(8 * bytes);
  tensor->lanes = 1;
  return 0;
}

int binding_parse_integers(PyObject *tuple, int64_t *values, int count)
{
  for (int i = 0; i < count; i++) {
    PyObject *item = PyTuple_GetItem(tuple, i); /* borrowed */
    values[i] = item ? PyLong_AsLongLong(item) : -1;
    if (values[i] == -1 && PyErr_Occurred()) return -1;
  }
  return 0;
}

enum { SHAPE, TYPESTR, DATA, STRIDES, MASK, STREAM, VERSION, INTERFACE, NAME_COUNT };
static const char *const texts[NAME_COUNT] = {
  "shape", "typestr", "data", "strides", "mask", "stream", "version", "__cuda_array_interface__"
};

/* Returns an interned name, or NULL with an exception. */
static PyObject *get_name(int name)
{
  static PyObject *names[NAME_COUNT]; /* interned */
  if (!names[name]) names[name] = PyUnicode_InternFromString(texts[name]);
  return names[name];
}

/* Returns a field in the dictionary, borrowed, or NULL if it does not exist. */
static PyObject *get_field(PyObject *dictionary, int field)
{
  PyObject *name = get_name(field);
  return name ? PyDict_GetItem(dictionary, name) : NULL;
}

static const char *read_fields(PyObject *const *fields, cuda_interface *out)
{
  PyObject *shape = fields[SHAPE], *typestr = fields[TYPESTR], *data = fields[DATA];
  PyObject *strides = fields[STRIDES], *mask = fields[MASK], *stream = fields[STREAM];
  PyObject *version = fields[VERSION];
  if (!version || !PyLong_Check(version) || PyLong_AsLong(version) < 2)
    return "__cuda_array_interface__: the version must be 2 or 3";
  if (!shape || !PyTuple_Check(shape) || PyTuple_Size(shape) > BINDING_MAX_RANK)
    return "__cuda_array_interface__: shape must be a tuple of at most 8 integers";
  if (mask && mask != Py_None)
    return "__cuda_array_interface__: arrays with a mask are not supported";
  int rank = (int)PyTuple_Size(shape);
  const char *text =
    typestr && PyUnicode_Check(typestr) ? PyUnicode_AsUTF8AndSize(typestr, NULL) : NULL;
  if (!text || binding_parse_typestr(text, &out->tensor))
    return "__cuda_array_interface__: the typestr is not supported";
  if (binding_parse_integers(shape, out->shape, rank))
    return "__cuda_array_interface__: shape must be a tuple of integers";
  int64_t size = 1;
  for (int i = 0; i < rank; i++)
    if (out->shape[i] < 0 || __builtin_mul_overflow(size, out->shape[i], &size))
      return "__cuda_array_interface__: an extent of shape is negative or too large";
  out->tensor.rank = rank;
  out->tensor.shape = out->shape;
  if (strides && strides != Py_None) {
    if (!PyTuple_Check(strides) || PyTuple_Size(strides) != rank ||
        binding_parse_integers(strides, out->strides, rank))
      return "__cuda_array_interface__: strides must have one integer for each dimension";
    for (int i = 0; i < rank; i++) {
      if (out->strides[i] % (out->tensor.bits / 8))
        return "__cuda_array_interface__: strides must be multiples of the element size";
      out->strides[i] /= out->tensor.bits / 8;
    }
    out->tensor.strides = out->strides;
  }
  if (!data || !PyTuple_Check(data) || PyTuple_Size(data) != 2 ||
      !PyLong_Check(PyTuple_GetItem(data, 0)))
    return "__cuda_array_interface__: data must be a pair of an address and a read-only flag";
  unsigned long long address = PyLong_AsUnsignedLongLong(PyTuple_GetItem(data, 0));
  if (PyErr_Occurred()) return "__cuda_array_interface__: data has no valid address";
  if (size && !address) return "__cuda_array_interface__: the address is 0";
  out->tensor.data = (void *)(uintptr_t)address;
  int is_read_only = PyObject_IsTrue(PyTuple_GetItem(data, 1));
  if (is_read_only < 0) return "__cuda_array_interface__: data has no valid read-only flag";
  out->is_read_only = is_read_only;
  if (stream && stream != Py_None) {
    out->stream = PyLong_Check(stream) ? PyLong_AsUnsignedLongLong(stream) : 0;
    if (!out->stream || PyErr_Occurred())
      return "__cuda_array_interface__: stream must be 1, 2 or a handle; 0 is ambiguous";
  }
  return NULL;
}

/* Reads the interface. Returns NULL if it is valid, and otherwise the error; an exception may be
 * set then. The items in the dictionary are retained, because reading an integer can call a method
 * in Python, which can change the dictionary. */
static const char *read_interface(PyObject *dictionary, cuda_interface *out)
{
  PyObject *fields[INTERFACE];
  if (!PyDict_Check(dictionary)) return "__cuda_array_interface__ is not a dictionary";
  for (int i = 0; i < INTERFACE; i++) fields[i] = Py_XNewRef(get_field(dictionary, i));
  const char *flaw = read_fields(fields, out);
  for (int i = 0; i < INTERFACE; i++) Py_XDECREF(fields[i]);
  return flaw;
}

/* Makes kjit's default stream wait for the work that the producer has queued. */
static kjit_status wait_for_producer(kjit_device *device, unsigned long long handle,
                                     kjit_stream **producer)
{
  kjit_event *event = NULL;
  kjit_stream *own = NULL;
  kjit_status status = handle == 2 ? kjit_get_thread_stream(device, producer)
                                   : kjit_wrap_stream(device, (void *)(uintptr_t)handle, producer);
  if (status == KJIT_OK) status = kjit_create_event(device, &event);
  if (status == KJIT_OK) status = kjit_record_event(event, *producer);
  if (status == KJIT_OK) status = kjit_get_default_stream(device, &own);
  if (status == KJIT_OK) status = kjit_wait_event(own, event);
  kjit_destroy_event(event);
  return status;
}

static PyObject *import_interface(context_object *context, PyObject *object, PyObject *dictionary)
{
  cuda_interface interface;
  memset(&interface, 0, sizeof interface);
  const char *flaw = read_interface(dictionary, &interface);
  if (flaw) {
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception)) return NULL;
    PyErr_Clear();
    return binding_refuse(object, flaw);
  }
  /* The interface does not name the GPU, so the GPU is found by the address. */
  kjit_device *device = NULL;
  kjit_device_info info = { .size_bytes = sizeof info };
  kjit_status status = kjit_get_device(context->context, KJIT_DEVICE_CUDA, 0, &device);
  if (status == KJIT_OK && kjit_get_device_count(context->context, KJIT_DEVICE_CUDA) > 1) {
    kjit_device *owner = NULL;
    status = kjit_locate_memory(context->context, interface.tensor.data, &owner);
    if (owner) device = owner;
  }
  if (status == KJIT_OK) status = kjit_get_device_info(device, &info);
  kjit_stream *producer = NULL;
  if (status == KJIT_OK && interface.stream > 1)
    status = wait_for_producer(device, interface.stream, &producer);
  PyObject *array = NULL;
  if (!binding_finish(context, status)) {
    interface.tensor.device_type = (int32_t)info.kind;
    interface.tensor.device_id = info.ordinal;
    array = binding_take_tensor(context, object, &interface.tensor, producer,
                                interface.is_read_only, NULL);
  }
  if (interface.stream > 2) kjit_destroy_stream(producer);
  if (array && interface.stream)
    ((array_object *)array)->producer =
      (binding_producer){ .is_known = 1, .device = info.ordinal, .handle = interface.stream };
  return array;
}

/* Returns whether the address is a multiple of the size of the elements, or of their real part for
 * complex numbers. */
static int is_aligned(const kjit_tensor *tensor)
{
  uintptr_t size = tensor->bits / 8 / (tensor->code == 5 ? 2 : 1);
  return size && (uintptr_t)tensor->data % size == 0;
}

int binding_read_interface(PyObject *object, int32_t device_kind, binding_argument *storage)
{
  PyObject *name = PyType_Check(object) ? NULL : get_name(INTERFACE);
  PyObject *dictionary = name ? PyObject_GetAttr(object, name) : NULL;
  cuda_interface interface;
  memset(&interface, 0, sizeof interface);
  int is_read = dictionary && !read_interface(dictionary, &interface) && !interface.stream &&
                !interface.is_read_only && is_aligned(&interface.tensor);
  Py_XDECREF(dictionary);
  binding_clear_usual();
  if (!is_read) return 0;
  memcpy(storage->shape, interface.shape, sizeof interface.shape);
  memcpy(storage->strides, interface.strides, sizeof interface.strides);
  storage->tensor = interface.tensor;
  storage->tensor.device_type = device_kind;
  storage->tensor.shape = storage->shape;
  storage->tensor.strides = interface.tensor.strides ? storage->strides : NULL;
  return 1;
}

PyObject *binding_import(context_object *context, PyObject *object)
{
  if (PyType_Check(object)) return NULL; /* the object is a class, whose methods are not bound */
  static const char *const protocol[] = { "__dlpack__", "__dlpack_device__" };
  PyObject *found;
  int has = 1;
  for (size_t i = 0; has > 0 && i < sizeof protocol / sizeof *protocol; i++) {
    has = binding_look_up(object, protocol[i], &found);
    Py_XDECREF(found);
  }
  if (has > 0) return import_dlpack(context, object);
  if (has < 0 || binding_look_up(object, "__cuda_array_interface__", &found) <= 0) return NULL;
  PyObject *array = import_interface(context, object, found);
  Py_DECREF(found);
  return array;
}
