/* Memory exchange with other libraries: the buffer protocol, DLPack and the CUDA array interface.
 * Descriptions provided by other objects are checked before use. */
#include "binding.h"

#include <stdlib.h>

/* ---- tensors owned by a Python object ---- */

typedef struct owned_tensor {
  kjit_managed_tensor_versioned managed;
  PyObject *owner;  /* or NULL */
  Py_buffer buffer; /* obj is NULL if there is no buffer */
  int64_t shape[BINDING_MAX_RANK], strides[BINDING_MAX_RANK];
} owned_tensor;

static void drop_owned(owned_tensor *owned)
{
  /* after the interpreter has ended, its lock cannot be taken, so the references are never
   * released */
  if (Py_IsInitialized()) {
    PyGILState_STATE state = PyGILState_Ensure();
    if (owned->buffer.obj) PyBuffer_Release(&owned->buffer);
    Py_XDECREF(owned->owner);
    PyGILState_Release(state);
  }
  free(owned);
}

static void delete_owned(kjit_managed_tensor_versioned *managed) { drop_owned(managed->manager); }

PyObject *binding_take_tensor(context_object *context, PyObject *owner, const kjit_tensor *tensor,
                              kjit_stream *stream, int is_read_only, const Py_buffer *buffer)
{
  owned_tensor *owned = calloc(1, sizeof *owned);
  if (!owned) {
    Py_buffer unused;
    if (buffer) {
      unused = *buffer;
      PyBuffer_Release(&unused);
    }
    return PyErr_NoMemory();
  }
  owned->owner = Py_XNewRef(owner);
  if (buffer) owned->buffer = *buffer;
  owned->managed.major = 1;
  owned->managed.manager = owned;
  owned->managed.deleter = delete_owned;
  owned->managed.flags = is_read_only ? KJIT_DLPACK_READ_ONLY : 0;
  owned->managed.tensor = *tensor;
  for (int i = 0; i < tensor->rank; i++) {
    owned->shape[i] = tensor->shape[i];
    if (tensor->strides) owned->strides[i] = tensor->strides[i];
  }
  owned->managed.tensor.shape = owned->shape;
  if (tensor->strides) owned->managed.tensor.strides = owned->strides;
  kjit_array *array = NULL;
  kjit_status status;
  BINDING_UNLOCKED(context, status = kjit_take_dlpack_versioned(context->context, &owned->managed,
                                                                stream, &array));
  if (binding_finish_array(context, status, array)) return NULL;
  return binding_wrap_foreign(context, array, is_read_only);
}

/* ---- the buffer protocol, for arrays on the CPU ---- */

typedef struct exported_buffer {
  Py_ssize_t shape[BINDING_MAX_RANK], strides[BINDING_MAX_RANK];
} exported_buffer;

/* NumPy has two types of 64-bit integers. On the systems that kjit supports, int64 is the type of
 * C's long. */
_Static_assert(sizeof(long) == sizeof(int64_t), "the format l is a 64-bit integer");
static const char *const formats[KJIT_SCALAR_COUNT] = {
  [KJIT_BOOL] = "?", [KJIT_I8] = "b",  [KJIT_I16] = "h",  [KJIT_I32] = "i",   [KJIT_I64] = "l",
  [KJIT_U8] = "B",   [KJIT_U16] = "H", [KJIT_U32] = "I",  [KJIT_U64] = "L",   [KJIT_F16] = "e",
  [KJIT_F32] = "f",  [KJIT_F64] = "d", [KJIT_C64] = "Zf", [KJIT_C128] = "Zd",
};

int binding_get_buffer(PyObject *object, Py_buffer *view, int flags)
{
  array_object *self = (array_object *)object;
  view->obj = NULL;
  self->is_interrupted = 0;
  if (self->pending && binding_evaluate(self)) {
    self->is_interrupted = PyErr_ExceptionMatches(PyExc_KeyboardInterrupt);
    return -1;
  }
  const kjit_tensor *t = kjit_get_tensor(self->array);
  kjit_type element = kjit_get_array_element(self->array);
  const char *problem = NULL;
  if (!t || self->context->generation != binding_generation)
    problem = "the array was created by the parent process before a fork";
  else if (t->device_type == KJIT_DEVICE_CUDA)
    problem = "the array is on a GPU; copy it with to_host()";
  else if (element >= KJIT_SCALAR_COUNT || !formats[element])
    problem = "buffers have no format for elements of this type";
  else if (self->is_read_only == BINDING_READ_ONLY && (flags & PyBUF_WRITABLE))
    problem = "the array is read-only";
  if (problem) {
    PyErr_SetString(PyExc_BufferError, problem);
    return -1;
  }
  exported_buffer *exported = PyMem_Malloc(sizeof *exported);
  if (!exported) {
    PyErr_NoMemory();
    return -1;
  }
  if (binding_lend_block(self)) {
    PyMem_Free(exported);
    return -1;
  }
  Py_ssize_t size_bytes = t->bits / 8, total = size_bytes, stride = size_bytes;
  int is_contiguous = 1;
  for (int i = t->rank - 1; i >= 0; i--) {
    exported->shape[i] = (Py_ssize_t)t->shape[i];
    exported->strides[i] = t->strides ? (Py_ssize_t)t->strides[i] * size_bytes : stride;
    if (exported->shape[i] > 1 && exported->strides[i] != stride) is_contiguous = 0;
    stride *= exported->shape[i];
    total *= exported->shape[i];
  }
  if (!is_contiguous && (flags & PyBUF_STRIDES) != PyBUF_STRIDES) {
    PyMem_Free(exported);
    binding_return_block(self);
    PyErr_SetString(PyExc_BufferError, "the array is not contiguous");
    return -1;
  }
  view->buf = (char *)t->data + t->byte_offset;
  view->obj = Py_NewRef(object);
  view->len = total;
  view->itemsize = size_bytes;
  view->readonly = self->is_read_only == BINDING_READ_ONLY;
  view->ndim = t->rank;
  view->format = flags & PyBUF_FORMAT ? (char *)formats[element] : NULL;
  view->shape = flags & PyBUF_ND ? exported->shape : NULL;
  view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? exported->strides : NULL;
  view->suboffsets = NULL;
  view->internal = exported;
  return 0;
}

void binding_release_buffer(PyObject *object, Py_buffer *view)
{
  binding_return_block((array_object *)object);
  PyMem_Free(view->internal);
}

/* ---- DLPack export ---- */

/* The DLPack tensor that this file exports. It contains libkjit's managed tensor, and keeps a
 * reference to the Python object whose context libkjit's tensor needs. */
typedef struct lent_tensor {
  kjit_managed_tensor plain;
  kjit_managed_tensor_versioned versioned;
  kjit_managed_tensor_versioned *inner;
  PyObject *array;
} lent_tensor;

static void drop_lent(lent_tensor *lent)
{
  if (Py_IsInitialized()) {
    PyGILState_STATE state = PyGILState_Ensure();
    if (lent->inner->deleter) lent->inner->deleter(lent->inner);
    binding_return_block((array_object *)lent->array);
    Py_DECREF(lent->array);
    PyGILState_Release(state);
  }
  free(lent);
}

static void delete_plain(kjit_managed_tensor *managed) { drop_lent(managed->manager); }
static void delete_versioned(kjit_managed_tensor_versioned *managed)
{
  drop_lent(managed->manager);
}

/* Called when a capsule is freed. If the capsule still has its original name, no consumer has taken
 * the tensor, and it is released. */
static void free_plain(PyObject *capsule)
{
  kjit_managed_tensor *managed =
    PyCapsule_IsValid(capsule, "dltensor") ? PyCapsule_GetPointer(capsule, "dltensor") : NULL;
  if (managed) managed->deleter(managed);
}

static void free_versioned(PyObject *capsule)
{
  kjit_managed_tensor_versioned *managed = PyCapsule_IsValid(capsule, "dltensor_versioned")
                                             ? PyCapsule_GetPointer(capsule, "dltensor_versioned")
                                             : NULL;
  if (managed) managed->deleter(managed);
}

/* DLPack flag, in addition to kjit_dlpack_flags: the producer has made a copy. */
enum { DLPACK_IS_COPIED = 2 };

static PyObject *lend(array_object *self, kjit_stream *consumer, int is_versioned, uint64_t flags)
{
  lent_tensor *lent = calloc(1, sizeof *lent);
  if (!lent) return PyErr_NoMemory();
  if (binding_lend_block(self)) {
    free(lent);
    return NULL;
  }
  kjit_status status;
  BINDING_UNLOCKED(self->context,
                   status = kjit_export_dlpack_versioned(self->array, consumer, &lent->inner));
  if (binding_finish(self->context, status)) {
    if (status == KJIT_OK && lent->inner->deleter) lent->inner->deleter(lent->inner);
    binding_return_block(self);
    free(lent);
    return NULL;
  }
  lent->array = Py_NewRef((PyObject *)self);
  lent->plain.tensor = lent->versioned.tensor = lent->inner->tensor;
  lent->plain.manager = lent->versioned.manager = lent;
  lent->plain.deleter = delete_plain;
  lent->versioned.deleter = delete_versioned;
  lent->versioned.major = 1;
  lent->versioned.flags = lent->inner->flags | flags;
  PyObject *capsule = is_versioned
                        ? PyCapsule_New(&lent->versioned, "dltensor_versioned", free_versioned)
                        : PyCapsule_New(&lent->plain, "dltensor", free_plain);
  if (!capsule) drop_lent(lent);
  return capsule;
}

/* Reads the argument `stream`: None and 1 mean the default stream, 2 the per-thread default stream,
 * -1 no synchronization; any other value is a cudaStream_t. */
static int get_consumer(array_object *self, PyObject *object, kjit_stream **stream, int *is_own)
{
  *stream = NULL, *is_own = 0;
  if (!object || object == Py_None) return 0;
  long long handle = PyLong_AsLongLong(object);
  if (handle == -1 && PyErr_Occurred()) return -1;
  if (handle == -1 || handle == 1) return 0;
  if (handle == 0) {
    PyErr_SetString(PyExc_ValueError, "stream 0 is ambiguous: pass 1 for the default stream, or 2 "
                                      "for the per-thread default stream");
    return -1;
  }
  kjit_status status = handle == 2
                         ? kjit_get_thread_stream(self->device, stream)
                         : kjit_wrap_stream(self->device, (void *)(intptr_t)handle, stream);
  *is_own = handle != 2 && status == KJIT_OK;
  int outcome = binding_finish(self->context, status);
  if (outcome && *is_own) kjit_destroy_stream(*stream);
  return outcome;
}

/* Keyword arguments of __dlpack__. NULL means not given or None. */
typedef struct dlpack_request {
  PyObject *stream, *max_version, *dl_device, *copy;
} dlpack_request;

static int read_request(PyObject *const *args, Py_ssize_t count, PyObject *names,
                        dlpack_request *request)
{
  if (count) {
    PyErr_SetString(PyExc_TypeError, "__dlpack__ takes keyword arguments only");
    return -1;
  }
  Py_ssize_t named = names ? PyTuple_Size(names) : 0;
  for (Py_ssize_t i = 0; i < named; i++) {
    PyObject *name = PyTuple_GetItem(names, i); /* borrowed */
    PyObject *value = args[i] == Py_None ? NULL : args[i];
    if (!PyUnicode_CompareWithASCIIString(name, "stream")) request->stream = value;
    else if (!PyUnicode_CompareWithASCIIString(name, "max_version")) request->max_version = value;
    else if (!PyUnicode_CompareWithASCIIString(name, "dl_device")) request->dl_device = value;
    else if (!PyUnicode_CompareWithASCIIString(name, "copy")) request->copy = value;
    else {
      PyErr_Format(PyExc_TypeError, "__dlpack__ has no argument %U", name);
      return -1;
    }
  }
  return 0;
}

/* Returns a copy of the array on a kjit device, or NULL with an exception. */
static array_object *copy_array(array_object *self, const char *device)
{
  PyObject *name = PyUnicode_FromString(device);
  kjit_device *place = name ? binding_get_device(self->context, name) : NULL;
  Py_XDECREF(name);
  if (!place) return NULL;
  kjit_array *array = NULL;
  kjit_status status;
  BINDING_UNLOCKED(self->context,
                   status =
                     kjit_create_array_from(place, kjit_get_tensor(self->array), NULL, &array));
  if (binding_finish_array(self->context, status, array)) return NULL;
  return (array_object *)binding_wrap_array(self->context, array, 0);
}

/* Returns the array to export as a new reference: self, or a copy if the consumer requests a copy
 * or host memory. */
static array_object *find_exported(array_object *self, const dlpack_request *request,
                                   int *is_copied)
{
  const kjit_tensor *tensor = binding_get_tensor((PyObject *)self);
  if (!tensor) return NULL;
  int own_type = binding_is_on_cpu(tensor) ? KJIT_DEVICE_CPU : tensor->device_type, type = own_type,
      ordinal = tensor->device_id;
  if (request->dl_device && !PyArg_ParseTuple(request->dl_device, "ii", &type, &ordinal))
    return NULL;
  /* other libraries know only CPU device 0 */
  int is_here = type == own_type && (type == KJIT_DEVICE_CPU || ordinal == tensor->device_id);
  int may_copy = !request->copy || PyObject_IsTrue(request->copy);
  if (PyErr_Occurred()) return NULL;
  *is_copied = !is_here || (request->copy && may_copy);
  if (!*is_copied) return (array_object *)Py_NewRef((PyObject *)self);
  if (!is_here && (type != KJIT_DEVICE_CPU || !may_copy)) {
    PyErr_Format(PyExc_BufferError,
                 "__dlpack__: the array is on device (%d, %d), but device (%d, %d) was requested%s",
                 own_type, (int)tensor->device_id, type, ordinal,
                 may_copy ? "; copy the array with to_device()" : " without a copy");
    return NULL;
  }
  char name[32] = "cpu";
  if (type != KJIT_DEVICE_CPU) PyOS_snprintf(name, sizeof name, "cuda:%d", ordinal);
  return copy_array(self, name);
}

PyObject *binding_export_dlpack(PyObject *object, PyObject *const *args, Py_ssize_t count,
                                PyObject *names)
{
  dlpack_request request = { 0 };
  if (read_request(args, count, names, &request)) return NULL;
  int is_versioned = 0, is_copied = 0, is_own;
  if (request.max_version) {
    int major, minor;
    if (!PyArg_ParseTuple(request.max_version, "ii", &major, &minor)) return NULL;
    is_versioned = major >= 1;
  }
  array_object *self = find_exported((array_object *)object, &request, &is_copied);
  if (!self) return NULL;
  PyObject *capsule = NULL;
  kjit_stream *consumer = NULL;
  if (self->is_read_only == BINDING_READ_ONLY && !is_versioned)
    PyErr_SetString(PyExc_BufferError,
                    "the array is read-only, which DLPack versions below 1.0 cannot express");
  else if (!get_consumer(self, request.stream, &consumer, &is_own)) {
    capsule = lend(self, consumer, is_versioned, is_copied ? DLPACK_IS_COPIED : 0);
    if (is_own) kjit_destroy_stream(consumer);
  }
  Py_DECREF((PyObject *)self);
  return capsule;
}

PyObject *binding_get_dlpack_device(PyObject *object, PyObject *unused)
{
  (void)unused;
  const kjit_tensor *t = binding_look_at_array(object);
  int is_on_cpu = t && binding_is_on_cpu(t);
  return t ? Py_BuildValue("ii", is_on_cpu ? KJIT_DEVICE_CPU : (int)t->device_type,
                           (int)t->device_id)
           : NULL;
}

PyObject *binding_get_cuda_interface(PyObject *object, void *unused)
{
  (void)unused;
  array_object *self = (array_object *)object;
  const kjit_tensor *t = binding_look_at_array(object);
  if (t && !binding_is_on_cpu(t)) {
    if (binding_open_block(self)) return NULL;
    t = kjit_get_tensor(self->array);
  }
  if (!t || binding_is_on_cpu(t) || t->lanes != 1 || t->code == 4 || t->code > 6) {
    /* hasattr returns False for an AttributeError */
    PyErr_SetString(PyExc_AttributeError, "__cuda_array_interface__: the array is not on a GPU, or "
                                          "the interface does not support its elements");
    return NULL;
  }
  static const char letters[] = "iufxxcb";
  PyObject *shape = PyTuple_New(t->rank), *strides = t->strides ? PyTuple_New(t->rank) : NULL;
  for (int i = 0; shape && i < t->rank; i++) {
    PyTuple_SetItem(shape, i, PyLong_FromLongLong(t->shape[i]));
    if (strides) PyTuple_SetItem(strides, i, PyLong_FromLongLong(t->strides[i] * t->bits / 8));
  }
  if (!shape || PyErr_Occurred()) {
    Py_XDECREF(shape);
    Py_XDECREF(strides);
    return NULL;
  }
  PyObject *typestr =
    PyUnicode_FromFormat("%c%c%d", t->bits == 8 ? '|' : '<', letters[t->code], t->bits / 8);
  return Py_BuildValue("{sNsNs(KO)sNsisi}", "shape", shape, "typestr", typestr, "data",
                       (unsigned long long)(uintptr_t)t->data + t->byte_offset,
                       self->is_read_only == BINDING_READ_ONLY ? Py_True : Py_False, "strides",
                       strides ? strides : Py_NewRef(Py_None), "version", 3, "stream", 1);
}
