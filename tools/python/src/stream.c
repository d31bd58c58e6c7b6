/* The Python types of streams, events and graphs, and wrappers for streams of other libraries. */
#include "expression.h"

#include <stdlib.h>

static PyTypeObject *event_type, *graph_type;
PyTypeObject *binding_stream_type;

typedef struct event_object {
  PyObject_HEAD context_object *context;
  kjit_event *event;
} event_object;

/* Work that was captured on a stream between __enter__ and __exit__, and can be launched
 * repeatedly. */
typedef struct graph_object {
  PyObject_HEAD context_object *context;
  stream_object *stream;
  int is_entered;                    /* between __enter__ and __exit__ */
  kjit_graph *graph;                 /* NULL before the work is captured */
  kjit_executable_graph *executable; /* NULL before the first launch */
} graph_object;

/* ---- streams of other libraries ---- */

static int read_number(PyObject *number, uint64_t *handle)
{
  unsigned long long value = number && PyLong_Check(number) ? PyLong_AsUnsignedLongLong(number) : 0;
  int is_right = number && PyLong_Check(number) && !PyErr_Occurred();
  PyErr_Clear();
  if (is_right) *handle = value;
  return is_right;
}

/* Reads `__cuda_stream__`, which returns (version, handle). It is a method, or an attribute in
 * older libraries. Returns 1, 0 if the object has no such handle, or -1 with an exception. */
static int read_protocol(PyObject *object, uint64_t *handle)
{
  PyObject *found;
  int has = binding_look_up(object, "__cuda_stream__", &found);
  if (has <= 0) return has;
  if (PyCallable_Check(found)) binding_set(&found, PyObject_CallNoArgs(found));
  if (!found) return -1;
  int is_right = PyTuple_Check(found) && PyTuple_Size(found) == 2 &&
                 read_number(PyTuple_GetItem(found, 1), handle);
  Py_DECREF(found);
  return is_right;
}

/* Reads an attribute that is the handle, or an object whose attribute `value` is the handle.
 * Returns the same values as read_protocol. */
static int read_attribute(PyObject *object, const char *name, uint64_t *handle)
{
  PyObject *found, *value = NULL;
  int has = binding_look_up(object, name, &found);
  if (has > 0 && !PyLong_Check(found)) has = binding_look_up(found, "value", &value);
  int is_right = has > 0 ? read_number(value ? value : found, handle) : has;
  Py_XDECREF(value);
  Py_XDECREF(found);
  return is_right;
}

/* Reads the CUstream handle of another library's stream object. Returns the same values as
 * read_protocol. */
static int read_handle(PyObject *object, uint64_t *handle)
{
  /* names of the attribute in PyTorch, CuPy and Numba */
  static const char *const names[] = { "cuda_stream", "ptr", "handle" };
  if (PyBool_Check(object)) return 0;
  int has = read_number(object, handle) ? 1 : read_protocol(object, handle);
  for (size_t i = 0; !has && i < sizeof names / sizeof *names; i++)
    has = read_attribute(object, names[i], handle);
  return has;
}

/* Gets a stream for a native handle. Sets *is_own if the caller has to destroy the stream. */
kjit_status binding_open_handle(kjit_device *device, uint64_t handle, kjit_stream **stream,
                                int *is_own)
{
  *is_own = handle > 2;
  if (handle < 2) return kjit_get_default_stream(device, stream);
  if (handle == 2) return kjit_get_thread_stream(device, stream);
  return kjit_wrap_stream(device, (void *)(uintptr_t)handle, stream);
}

static stream_object *make_stream(context_object *context, kjit_device *device)
{
  stream_object *stream = binding_new_object(binding_stream_type);
  if (!stream) return NULL;
  stream->context = (context_object *)Py_NewRef((PyObject *)context);
  stream->device = device;
  return stream;
}

/* Finds the ordinal of the device of another library's stream, from the attributes that PyTorch,
 * CuPy and kjit's wrappers have; *ordinal is -1 if it is not available. Returns -1 with an
 * exception if reading an attribute raises one. */
static int find_ordinal(PyObject *object, int *ordinal)
{
  static const char *const names[] = { "device_index", "device_id" };
  *ordinal = -1;
  for (size_t i = 0; *ordinal < 0 && i < sizeof names / sizeof *names; i++) {
    PyObject *found;
    if (binding_look_up(object, names[i], &found) < 0) return -1;
    int overflow = 0;
    long value = found && PyLong_Check(found) ? PyLong_AsLongAndOverflow(found, &overflow) : -1;
    if (value >= 0 && value < INT32_MAX) *ordinal = (int)value;
    Py_XDECREF(found);
  }
  return 0;
}

/* Finds the device of another library's stream: the device that the stream names, or else the
 * thread's current device, or else `device`. If all are missing, returns the context's default
 * device. Returns NULL with an exception. */
static kjit_device *find_device(context_object *context, PyObject *stream, kjit_device *device)
{
  int ordinal;
  if (find_ordinal(stream, &ordinal)) return NULL;
  if (ordinal >= 0) return binding_open_device(context, KJIT_DEVICE_CUDA, ordinal);
  if (binding_has_current() || !device) return binding_get_device(context, Py_None);
  return device;
}

int binding_get_stream(context_object *context, PyObject *object, kjit_device *device,
                       PyObject **keeper, kjit_stream **stream)
{
  *stream = NULL, *keeper = NULL;
  if (!object || object == Py_None) return 0;
  if (PyObject_TypeCheck(object, binding_stream_type)) {
    stream_object *self = (stream_object *)object;
    if (self->context != context) {
      binding_fail(KJIT_ERROR_ARGUMENT, "the stream belongs to another context; kernels with "
                                        "checks= or debug= need streams of their own context");
      return -1;
    }
    *stream = self->stream;
    *keeper = Py_NewRef(object);
    return 0;
  }
  uint64_t handle = 0;
  int has = read_handle(object, &handle);
  if (has < 0) return -1;
  if (!has) {
    PyErr_Format(PyExc_TypeError,
                 "a stream must be a kjit.Stream, a stream of another library (with "
                 "__cuda_stream__), its number, or None, not %R",
                 (PyObject *)Py_TYPE(object));
    return -1;
  }
  if (!device || binding_has_several) device = find_device(context, object, device);
  if (!device) return -1;
  stream_object *made = make_stream(context, device);
  if (!made) return -1;
  int is_own;
  kjit_status status = binding_open_handle(device, handle, &made->stream, &is_own);
  if (status != KJIT_OK) made->stream = NULL;
  if (binding_finish(context, status)) {
    Py_DECREF((PyObject *)made);
    return -1;
  }
  *stream = made->stream;
  *keeper = (PyObject *)made;
  return 0;
}

/* open_stream(context, object, device=None): wraps a stream of another library. */
static PyObject *open_stream(PyObject *module, PyObject *args)
{
  (void)module;
  context_object *context;
  PyObject *object, *keeper, *place = Py_None;
  kjit_stream *stream;
  if (!PyArg_ParseTuple(args, "O!O|O", binding_context_type, &context, &object, &place))
    return NULL;
  kjit_device *device = place == Py_None ? NULL : binding_get_device(context, place);
  if ((place != Py_None && !device) ||
      binding_get_stream(context, object, device, &keeper, &stream))
    return NULL;
  if (keeper) return keeper;
  Py_RETURN_NONE;
}

/* ---- kjit's streams ---- */

static void free_stream(PyObject *object)
{
  stream_object *self = (stream_object *)object;
  kjit_destroy_stream(self->stream);
  Py_XDECREF((PyObject *)self->context);
  binding_free_object(object);
}

PyObject *binding_create_stream(PyObject *object, PyObject *args, PyObject *names)
{
  device_object *self = (device_object *)object;
  static char priority_name[] = "priority", blocking_name[] = "non_blocking";
  static char *keywords[] = { priority_name, blocking_name, NULL };
  int priority = 0, is_non_blocking = 0;
  if (!PyArg_ParseTupleAndKeywords(args, names, "|ip", keywords, &priority, &is_non_blocking))
    return NULL;
  stream_object *stream = make_stream(self->context, self->device);
  if (!stream) return NULL;
  kjit_status status;
  BINDING_UNLOCKED(self->context,
                   status = kjit_create_stream_with(self->device, priority,
                                                    is_non_blocking ? KJIT_STREAM_NON_BLOCKING : 0,
                                                    &stream->stream));
  if (status != KJIT_OK) stream->stream = NULL;
  if (binding_finish(self->context, status)) {
    Py_DECREF((PyObject *)stream);
    return NULL;
  }
  return (PyObject *)stream;
}

static PyObject *synchronize_stream(PyObject *object, PyObject *unused)
{
  (void)unused;
  stream_object *self = (stream_object *)object;
  if (binding_evaluate_all()) return NULL;
  kjit_status status;
  binding_interruptible saved;
  binding_begin_interruptible(self->context, &saved);
  BINDING_LONG(self->context, status = kjit_synchronize_stream(self->stream), .what = "wait",
               .device = self->device);
  if (binding_finish_interruptible(self->context, status, &saved)) return NULL;
  Py_RETURN_NONE;
}

/* Converts a status to a bool: whether the work is done. KJIT_NOT_READY is not an error, but means
 * that the work is not done. */
static PyObject *answer(context_object *context, kjit_status status)
{
  if (status == KJIT_NOT_READY) Py_RETURN_FALSE;
  if (binding_finish(context, status)) return NULL;
  Py_RETURN_TRUE;
}

static PyObject *query_stream(PyObject *object, PyObject *unused)
{
  (void)unused;
  stream_object *self = (stream_object *)object;
  return answer(self->context, kjit_query_stream(self->stream));
}

static PyObject *wait_for_event(PyObject *object, PyObject *event)
{
  stream_object *self = (stream_object *)object;
  if (!PyObject_TypeCheck(event, event_type)) {
    PyErr_Format(PyExc_TypeError, "an event must be a kjit.Event, not %R",
                 (PyObject *)Py_TYPE(event));
    return NULL;
  }
  if (binding_finish(self->context, kjit_wait_event(self->stream, ((event_object *)event)->event)))
    return NULL;
  Py_RETURN_NONE;
}

static PyObject *capture_stream(PyObject *object, PyObject *unused)
{
  (void)unused;
  stream_object *self = (stream_object *)object;
  graph_object *graph = binding_new_object(graph_type);
  if (!graph) return NULL;
  graph->context = (context_object *)Py_NewRef((PyObject *)self->context);
  graph->stream = (stream_object *)Py_NewRef(object);
  return (PyObject *)graph;
}

static PyObject *get_cuda_stream(PyObject *object, PyObject *unused)
{
  (void)unused;
  uintptr_t native = (uintptr_t)kjit_get_native_stream(((stream_object *)object)->stream);
  return Py_BuildValue("(iK)", 0, (unsigned long long)native);
}

static PyObject *get_stream_handle(PyObject *object, void *unused)
{
  (void)unused;
  uintptr_t native = (uintptr_t)kjit_get_native_stream(((stream_object *)object)->stream);
  return PyLong_FromUnsignedLongLong(native);
}

static PyObject *get_stream_device(PyObject *object, void *unused)
{
  (void)unused;
  stream_object *self = (stream_object *)object;
  return binding_wrap_device(self->context, self->device);
}

static PyMethodDef stream_methods[] = {
  { "synchronize", synchronize_stream, METH_NOARGS,
    "Waits for all work queued on the stream. Raises the errors of kernels." },
  { "query", query_stream, METH_NOARGS, "Returns whether all queued work is complete." },
  { "wait", wait_for_event, METH_O,
    "wait(event): makes later work on the stream wait for the last recording of the event." },
  { "capture", capture_stream, METH_NOARGS,
    "with stream.capture() as graph: records the launches on the stream instead of running them; "
    "graph.launch() runs them. Arrays that are not kjit's must live as long as the graph." },
  { "__cuda_stream__", get_cuda_stream, METH_NOARGS, "Returns (0, handle), for other libraries." },
  { NULL, NULL, 0, NULL },
};
static PyGetSetDef stream_fields[] = {
  { "device", get_stream_device, NULL, "the device of the stream", NULL },
  { "handle", get_stream_handle, NULL, "the CUstream as an integer; 0 on the CPU", NULL },
  { NULL, NULL, NULL, NULL, NULL },
};
static PyType_Slot stream_slots[] = {
  { Py_tp_dealloc, (void *)free_stream },
  { Py_tp_methods, stream_methods },
  { Py_tp_getset, stream_fields },
  { Py_tp_doc,
    (void *)"A queue of launches and copies. The CPU executes each of them immediately." },
  { 0, NULL },
};
static PyType_Spec stream_spec = { "kjit._kjit.Stream", sizeof(stream_object), 0,
                                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                   stream_slots };

/* ---- events ---- */

PyObject *binding_create_event(PyObject *object, PyObject *unused)
{
  (void)unused;
  device_object *self = (device_object *)object;
  event_object *event = binding_new_object(event_type);
  if (!event) return NULL;
  event->context = (context_object *)Py_NewRef((PyObject *)self->context);
  kjit_status status = kjit_create_event(self->device, &event->event);
  if (status != KJIT_OK) event->event = NULL;
  if (binding_finish(self->context, status)) {
    Py_DECREF((PyObject *)event);
    return NULL;
  }
  return (PyObject *)event;
}

static void free_event(PyObject *object)
{
  event_object *self = (event_object *)object;
  kjit_destroy_event(self->event);
  Py_XDECREF((PyObject *)self->context);
  binding_free_object(object);
}

static PyObject *record_event(PyObject *object, PyObject *args)
{
  event_object *self = (event_object *)object;
  PyObject *stream_or_none = Py_None, *keeper;
  kjit_stream *stream;
  if (!PyArg_ParseTuple(args, "|O", &stream_or_none)) return NULL;
  if (binding_get_stream(self->context, stream_or_none, NULL, &keeper, &stream)) return NULL;
  kjit_status status = kjit_record_event(self->event, stream);
  Py_XDECREF(keeper);
  if (binding_finish(self->context, status)) return NULL;
  return Py_NewRef(object);
}

static PyObject *synchronize_event(PyObject *object, PyObject *unused)
{
  (void)unused;
  event_object *self = (event_object *)object;
  kjit_status status;
  BINDING_LONG(self->context, status = kjit_synchronize_event(self->event), .what = "wait");
  if (binding_finish(self->context, status)) return NULL;
  Py_RETURN_NONE;
}

static PyObject *query_event(PyObject *object, PyObject *unused)
{
  (void)unused;
  event_object *self = (event_object *)object;
  return answer(self->context, kjit_query_event(self->event));
}

static PyObject *measure_since(PyObject *object, PyObject *first)
{
  event_object *self = (event_object *)object;
  if (!PyObject_TypeCheck(first, event_type)) {
    PyErr_Format(PyExc_TypeError, "an event must be a kjit.Event, not %R",
                 (PyObject *)Py_TYPE(first));
    return NULL;
  }
  uint64_t time_ns = 0;
  kjit_status status;
  BINDING_UNLOCKED(self->context, status = kjit_get_elapsed_time(((event_object *)first)->event,
                                                                 self->event, &time_ns));
  if (binding_finish(self->context, status)) return NULL;
  return PyFloat_FromDouble(1e-9 * (double)time_ns);
}

static PyMethodDef event_methods[] = {
  { "record", record_event, METH_VARARGS,
    "record(stream=None): records the event after the work queued so far. Returns the event." },
  { "synchronize", synchronize_event, METH_NOARGS, "Waits for all work before the event." },
  { "query", query_event, METH_NOARGS, "Returns whether all work before the event is complete." },
  { "since", measure_since, METH_O,
    "since(first): waits for this event and returns the seconds since the event first." },
  { NULL, NULL, 0, NULL },
};
static PyType_Slot event_slots[] = {
  { Py_tp_dealloc, (void *)free_event },
  { Py_tp_methods, event_methods },
  { Py_tp_doc, (void *)"A point in a stream whose time is recorded." },
  { 0, NULL },
};
static PyType_Spec event_spec = { "kjit._kjit.Event", sizeof(event_object), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                  event_slots };

/* ---- graphs ---- */

static void free_graph(PyObject *object)
{
  graph_object *self = (graph_object *)object;
  kjit_destroy_executable_graph(self->executable);
  kjit_destroy_graph(self->graph);
  Py_XDECREF((PyObject *)self->stream);
  Py_XDECREF((PyObject *)self->context);
  binding_free_object(object);
}

static PyObject *enter_graph(PyObject *object, PyObject *unused)
{
  (void)unused;
  graph_object *self = (graph_object *)object;
  if (self->graph) return binding_fail(KJIT_ERROR_MISUSE, "the graph was already captured");
  if (binding_evaluate_all()) return NULL;
  kjit_status status = kjit_begin_capture(self->stream->stream);
  if (status != KJIT_OK) { /* if the capture has begun, messages are delivered later */
    (void)binding_finish(self->context, status);
    return NULL;
  }
  self->is_entered = 1;
  expression_captures++;
  return Py_NewRef(object);
}

static PyObject *exit_graph(PyObject *object, PyObject *args)
{
  graph_object *self = (graph_object *)object;
  PyObject *type, *value, *trace;
  if (!PyArg_ParseTuple(args, "OOO", &type, &value, &trace)) return NULL;
  if (!self->is_entered)
    return binding_fail(KJIT_ERROR_MISUSE,
                        "the graph is not being captured; write `with stream.capture() as graph:`");
  self->is_entered = 0;
  expression_captures--;
  kjit_graph *graph = NULL;
  kjit_status status;
  BINDING_UNLOCKED(self->context, status = kjit_end_capture(self->stream->stream, &graph));
  if (type != Py_None) { /* keeps the exception of the `with` block */
    if (status == KJIT_OK) kjit_destroy_graph(graph);
    Py_RETURN_FALSE;
  }
  if (status == KJIT_OK) self->graph = graph;
  if (binding_finish(self->context, status)) return NULL;
  Py_RETURN_FALSE;
}

static int make_executable(graph_object *self)
{
  if (!self->graph) {
    binding_fail(KJIT_ERROR_MISUSE,
                 "the graph is not captured; write `with stream.capture() as graph:`");
    return -1;
  }
  if (self->executable) return 0;
  kjit_status status;
  kjit_executable_graph *made = NULL;
  BINDING_UNLOCKED(self->context, status = kjit_instantiate_graph(self->graph, &made));
  if (status == KJIT_OK && self->executable) kjit_destroy_executable_graph(made);
  else if (status == KJIT_OK) self->executable = made; /* no other thread was faster */
  return binding_finish(self->context, status);
}

static PyObject *launch_graph(PyObject *object, PyObject *args)
{
  graph_object *self = (graph_object *)object;
  PyObject *stream_or_none = (PyObject *)self->stream, *keeper;
  kjit_stream *stream;
  if (!PyArg_ParseTuple(args, "|O", &stream_or_none) || make_executable(self)) return NULL;
  if (binding_get_stream(self->context, stream_or_none, self->stream->device, &keeper, &stream))
    return NULL;
  kjit_status status;
  BINDING_LONG(self->context, status = kjit_launch_graph(self->executable, stream), .what = "run",
               .name = "a graph");
  Py_XDECREF(keeper);
  if (binding_finish(self->context, status)) return NULL;
  Py_RETURN_NONE;
}

static PyObject *update_graph(PyObject *object, PyObject *other)
{
  graph_object *self = (graph_object *)object;
  if (!PyObject_TypeCheck(other, graph_type) || !((graph_object *)other)->graph) {
    PyErr_SetString(PyExc_TypeError, "update() takes another graph that was captured");
    return NULL;
  }
  if (make_executable(self)) return NULL;
  kjit_status status;
  BINDING_UNLOCKED(self->context,
                   status = kjit_update_graph(self->executable, ((graph_object *)other)->graph));
  if (binding_finish(self->context, status)) return NULL;
  Py_RETURN_NONE;
}

static Py_ssize_t count_nodes(PyObject *object)
{
  graph_object *self = (graph_object *)object;
  return self->graph ? (Py_ssize_t)kjit_get_graph_size(self->graph) : 0;
}

static PyMethodDef graph_methods[] = {
  { "__enter__", enter_graph, METH_NOARGS, NULL },
  { "__exit__", exit_graph, METH_VARARGS, NULL },
  { "launch", launch_graph, METH_VARARGS,
    "launch(stream=None): queues the operations of the graph on the stream, by default the "
    "captured stream." },
  { "update", update_graph, METH_O,
    "update(other): replaces the arguments by those of another graph with the same operations." },
  { NULL, NULL, 0, NULL },
};
static PyType_Slot graph_slots[] = {
  { Py_tp_dealloc, (void *)free_graph },
  { Py_tp_methods, graph_methods },
  { Py_sq_length, (void *)count_nodes },
  { Py_tp_doc, (void *)"The captured launches and copies; len() returns their number." },
  { 0, NULL },
};
static PyType_Spec graph_spec = { "kjit._kjit.Graph", sizeof(graph_object), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                  graph_slots };

static PyMethodDef functions[] = {
  { "open_stream", open_stream, METH_VARARGS, NULL },
  { NULL, NULL, 0, NULL },
};

int binding_add_streams(PyObject *module)
{
  binding_stream_type = binding_make_type(module, &stream_spec);
  event_type = binding_make_type(module, &event_spec);
  graph_type = binding_make_type(module, &graph_spec);
  if (!binding_stream_type || !event_type || !graph_type) return -1;
  return PyModule_AddFunctions(module, functions);
}
