/* The Python types of contexts, their devices, and modules of kernel IR. */
#include "message_queue.h"
#include "random_state.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

PyTypeObject *binding_context_type, *binding_device_type, *binding_module_type;

/* ---- contexts ---- */

/* Context(checks, debug, interruptible, cache_directory, device_memory, cpu_devices, plain_code) */
static PyObject *create_context(PyTypeObject *type, PyObject *args, PyObject *names)
{
  unsigned checks = 0, cpu_devices = 0;
  int debug = 0, is_interruptible = 0, plain_code = KJIT_PLAIN_DEFAULT;
  const char *cache = NULL;
  PyObject *memory = Py_None;
  static char checks_name[] = "checks", debug_name[] = "debug", cache_name[] = "cache_directory",
              interruptible_name[] = "interruptible", memory_name[] = "device_memory",
              cpu_name[] = "cpu_devices", plain_name[] = "plain_code";
  static char *keywords[] = { checks_name, debug_name, interruptible_name, cache_name,
                              memory_name, cpu_name,   plain_name,         NULL };
  if (!PyArg_ParseTupleAndKeywords(args, names, "|IipzOIi", keywords, &checks, &debug,
                                   &is_interruptible, &cache, &memory, &cpu_devices, &plain_code))
    return NULL;
  context_object *self = binding_new_object(type);
  if (!self) return NULL;
  self->generation = binding_generation;
  self->is_interruptible = is_interruptible;
  self->messages = binding_create_message_queue();
  if (!self->messages) {
    Py_DECREF((PyObject *)self);
    return PyErr_NoMemory();
  }
  self->device_memory = memory == Py_None ? NULL : Py_NewRef(memory);
  kjit_device_allocator allocator = binding_device_allocator;
  allocator.user = self->device_memory;
  kjit_config config = { .size_bytes = sizeof config,
                         .device_allocator = self->device_memory ? &allocator : NULL,
                         .checks = checks,
                         .debug = (kjit_debug)debug,
                         .cache_directory = cache,
                         .interruptible = is_interruptible,
                         .cpu_devices = cpu_devices,
                         .plain_code = (kjit_plain_code)plain_code,
                         .user = self->messages,
                         .on_print = binding_post_lines,
                         .on_stage = binding_post_stage,
                         .on_diagnostic = binding_post_diagnostic };
  kjit_status status = kjit_create_context(&config, &self->context);
  if (status == KJIT_OK) {
    binding_has_several |= cpu_devices > 1;
    return (PyObject *)self;
  }
  self->context = NULL;
  Py_DECREF((PyObject *)self);
  return binding_fail(status, "a context cannot be created with these settings");
}

static void end_context(PyObject *object)
{
  context_object *self = (context_object *)object;
  binding_free_wraps(self);
  if (self->context) {
    kjit_context *context = self->context;
    /* Does nothing in a forked child. Lines that kernels on a GPU have printed since the last
     * synchronization are lost, because the message queue is destroyed. */
    Py_BEGIN_ALLOW_THREADS(void) kjit_destroy_context(context);
    Py_END_ALLOW_THREADS
  }
  binding_destroy_message_queue(self->messages);
  Py_CLEAR(self->records);
  Py_CLEAR(self->device_memory);
  binding_free_object(object);
}

/* Reads a tuple of pairs (file, text). The entries borrow from the tuple. Returns NULL with an
 * exception. */
static kjit_quoted_text *read_quoted(PyObject *pairs, size_t *count)
{
  *count = (size_t)PyTuple_Size(pairs);
  kjit_quoted_text *list = calloc(*count + 1, sizeof *list);
  if (!list) return (void *)PyErr_NoMemory();
  for (size_t i = 0; i < *count; i++) {
    Py_ssize_t size;
    if (!PyArg_ParseTuple(PyTuple_GetItem(pairs, (Py_ssize_t)i), "ss#", &list[i].file,
                          &list[i].text, &size)) {
      free(list);
      return NULL;
    }
    list[i].text_bytes = (size_t)size;
  }
  return list;
}

/* parse(name, text, quoted): parses a module. quoted contains the sources that line directives
 * name. */
static PyObject *parse_module(PyObject *object, PyObject *args)
{
  context_object *self = (context_object *)object;
  const char *name, *text;
  Py_ssize_t size;
  PyObject *pairs;
  kjit_parse_options options = { .size_bytes = sizeof options };
  if (!PyArg_ParseTuple(args, "ss#O!", &name, &text, &size, &PyTuple_Type, &pairs)) return NULL;
  kjit_quoted_text *quoted = read_quoted(pairs, &options.quoted_count);
  module_object *module = quoted ? binding_new_object(binding_module_type) : NULL;
  if (module) {
    options.quoted = quoted;
    kjit_status status;
    BINDING_LONG(self,
                 status = kjit_parse_module_with(self->context, &options, name, text, (size_t)size,
                                                 &module->module),
                 .what = "compile", .name = name);
    if (status != KJIT_OK) module->module = NULL;
    module->context = (context_object *)Py_NewRef(object);
    if (binding_finish(self, status)) {
      Py_DECREF((PyObject *)module);
      module = NULL;
    }
  }
  free(quoted);
  return (PyObject *)module;
}

PyObject *binding_wrap_device(context_object *context, kjit_device *device)
{
  device_object *self = binding_new_object(binding_device_type);
  if (!self) return NULL;
  self->context = (context_object *)Py_NewRef((PyObject *)context);
  self->device = device;
  return (PyObject *)self;
}

kjit_device *binding_open_device(context_object *context, kjit_device_kind kind, int ordinal)
{
  kjit_device *device = NULL;
  kjit_status status;
  BINDING_UNLOCKED(context, status = kjit_get_device(context->context, kind, ordinal, &device));
  if (binding_finish(context, status)) return NULL;
  if (!binding_has_several && kjit_get_device_count(context->context, kind) > 1)
    binding_has_several = 1;
  return device;
}

static kjit_device *parse_device(context_object *context, const char *text)
{
  int is_cpu = !strncmp(text, "cpu", 3);
  const char *rest = is_cpu ? text + 3 : !strncmp(text, "cuda", 4) ? text + 4 : NULL;
  kjit_device_kind kind = is_cpu ? KJIT_DEVICE_CPU : KJIT_DEVICE_CUDA;
  if (rest && !*rest) return binding_open_device(context, kind, 0);
  if (rest && *rest == ':' && rest[1] >= '0' && rest[1] <= '9') {
    char *end;
    long ordinal = strtol(rest + 1, &end, 10);
    if (!*end && ordinal < 1024) return binding_open_device(context, kind, (int)ordinal);
  }
  binding_fail(KJIT_ERROR_NO_DEVICE,
               "there is no device '%s'; write \"cpu\", \"cuda\" or a name such as \"cuda:1\"",
               text);
  return NULL;
}

kjit_device *binding_get_device(context_object *context, PyObject *object)
{
  if (!object || object == Py_None) {
    if (binding_has_current()) return binding_get_current(context);
    /* prefers the first GPU to the CPU, like a launch */
    uint32_t count = kjit_get_device_count(context->context, KJIT_DEVICE_CUDA);
    return binding_open_device(context, count ? KJIT_DEVICE_CUDA : KJIT_DEVICE_CPU, 0);
  }
  if (PyUnicode_Check(object)) {
    const char *text = PyUnicode_AsUTF8AndSize(object, NULL);
    return text ? parse_device(context, text) : NULL;
  }
  if (PyObject_TypeCheck(object, binding_device_type)) {
    device_object *device = (device_object *)object;
    if (device->context == context) return device->device;
    kjit_device_info info = { .size_bytes = sizeof info };
    if (kjit_get_device_info(device->device, &info) != KJIT_OK) info.kind = KJIT_DEVICE_CPU;
    return binding_open_device(context, info.kind, info.ordinal);
  }
  PyErr_Format(PyExc_TypeError,
               "a device must be a kjit.Device or a string such as \"cpu\", not %R",
               (PyObject *)Py_TYPE(object));
  return NULL;
}

static PyObject *get_device(PyObject *object, PyObject *args)
{
  PyObject *name = Py_None;
  if (!PyArg_ParseTuple(args, "|O", &name)) return NULL;
  kjit_device *device = binding_get_device((context_object *)object, name);
  return device ? binding_wrap_device((context_object *)object, device) : NULL;
}

static PyObject *list_devices(PyObject *object, PyObject *unused)
{
  (void)unused;
  context_object *self = (context_object *)object;
  PyObject *list = PyList_New(0);
  uint32_t gpus = kjit_get_device_count(self->context, KJIT_DEVICE_CUDA),
           count = gpus + kjit_get_device_count(self->context, KJIT_DEVICE_CPU);
  for (uint32_t i = 0; list && i < count; i++) {
    int is_gpu = i < gpus;
    kjit_device *device = binding_open_device(self, is_gpu ? KJIT_DEVICE_CUDA : KJIT_DEVICE_CPU,
                                              (int)(is_gpu ? i : i - gpus));
    PyObject *item = device ? binding_wrap_device(self, device) : NULL;
    if (!item || PyList_Append(list, item)) Py_CLEAR(list);
    Py_XDECREF(item);
  }
  return list;
}

static PyObject *get_statistics(PyObject *object, PyObject *unused)
{
  (void)unused;
  kjit_statistics s = { .size_bytes = sizeof s };
  kjit_status status = kjit_get_statistics(((context_object *)object)->context, &s);
  if (status != KJIT_OK) return binding_raise((context_object *)object, status);
  return Py_BuildValue("{sKsKsKsKsKsKsKsK}", "launches", s.launches, "memory_hits", s.memory_hits,
                       "compilations", s.compilations, "compile_time_ns", s.compile_time_ns,
                       "disk_hits", s.disk_hits, "disk_misses", s.disk_misses, "evictions",
                       s.evictions, "imports", s.imports);
}

/* leave(seconds): called when the interpreter ends. Interrupts compilations, waits until no thread
 * is in a call of libkjit, and ends the background threads. They must end before exit(), which
 * destroys data that LLVM uses. */
static PyObject *leave_context(PyObject *object, PyObject *args)
{
  context_object *self = (context_object *)object;
  double seconds;
  if (!PyArg_ParseTuple(args, "d", &seconds)) return NULL;
  if (self->generation != binding_generation) Py_RETURN_NONE;
  Py_BEGIN_ALLOW_THREADS const struct timespec pause = { 0, 1000000 };
  for (int i = 0; atomic_load(&self->calls) && i < (int)(seconds * 1000); i++) {
    kjit_interrupt(self->context);
    nanosleep(&pause, NULL);
  }
  kjit_interrupt(self->context);
  kjit_stop_background(self->context);
  Py_END_ALLOW_THREADS if (binding_deliver_messages(self->messages)) return NULL;
  Py_RETURN_NONE;
}

static PyObject *set_plain_code(PyObject *object, PyObject *args)
{
  context_object *self = (context_object *)object;
  int kind;
  if (!PyArg_ParseTuple(args, "i", &kind)) return NULL;
  kjit_status status = kjit_set_plain_code(self->context, (kjit_plain_code)kind);
  if (binding_finish(self, status)) return NULL;
  Py_RETURN_NONE;
}

static PyObject *open_cache(PyObject *object, PyObject *path)
{
  context_object *self = (context_object *)object;
  PyObject *bytes = NULL;
  if (!PyUnicode_FSConverter(path, &bytes)) return NULL;
  kjit_status status;
  Py_BEGIN_ALLOW_THREADS status = kjit_open_cache(self->context, PyBytes_AsString(bytes));
  Py_END_ALLOW_THREADS Py_DECREF(bytes);
  if (binding_finish(self, status)) return NULL;
  Py_RETURN_NONE;
}

static PyObject *wait_background(PyObject *object, PyObject *none)
{
  context_object *self = (context_object *)object;
  (void)none;
  kjit_status status;
  BINDING_LONG(self, status = kjit_wait_background(self->context), .what = "compile");
  if (binding_finish(self, status)) return NULL;
  Py_RETURN_NONE;
}

static PyObject *begin_range(PyObject *object, PyObject *name)
{
  const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
  if (!text) return NULL;
  return PyLong_FromUnsignedLong(kjit_begin_range(((context_object *)object)->context, text));
}

static PyObject *end_range(PyObject *object, PyObject *unused)
{
  (void)unused;
  kjit_end_range(((context_object *)object)->context);
  Py_RETURN_NONE;
}

static PyObject *is_forked(PyObject *object, void *unused)
{
  (void)unused;
  return PyBool_FromLong(((context_object *)object)->generation != binding_generation);
}

static PyMethodDef context_methods[] = {
  { "parse", parse_module, METH_VARARGS,
    "parse(name, text, ((file, text), ...)): parses a module of kernel IR. The pairs are source "
    "files that messages quote." },
  { "device", get_device, METH_VARARGS, "device(name=None): returns a device of the context." },
  { "devices", list_devices, METH_NOARGS, "Lists all devices, GPUs first." },
  { "statistics", get_statistics, METH_NOARGS,
    "Returns counters that start when the context is created." },
  { "begin_range", begin_range, METH_O,
    "begin_range(name): begins a profiler range of this thread." },
  { "end_range", end_range, METH_NOARGS, "Ends the last profiler range that this thread began." },
  { "set_plain_code", set_plain_code, METH_VARARGS,
    "set_plain_code(kind): whether launches may run plain code, by the number of "
    "kjit_plain_code." },
  { "open_cache", open_cache, METH_O,
    "open_cache(path): opens a file of compiled kernels, see kjit_open_cache." },
  { "wait_background", wait_background, METH_NOARGS, "Waits for compilations in the background." },
  { "leave", leave_context, METH_VARARGS, NULL },
  { NULL, NULL, 0, NULL },
};
static PyGetSetDef context_fields[] = {
  { "is_forked", is_forked, NULL, "whether the parent process created the context before a fork",
    NULL },
  { NULL, NULL, NULL, NULL, NULL },
};
static PyType_Slot context_slots[] = {
  { Py_tp_new, (void *)create_context },
  { Py_tp_dealloc, (void *)end_context },
  { Py_tp_methods, context_methods },
  { Py_tp_getset, context_fields },
  { Py_tp_doc, (void *)"A context of libkjit." },
  { 0, NULL },
};
static PyType_Spec context_spec = { "kjit._kjit.Context", sizeof(context_object), 0,
                                    Py_TPFLAGS_DEFAULT, context_slots };

/* ---- devices ---- */

static void free_device(PyObject *object)
{
  Py_XDECREF((PyObject *)((device_object *)object)->context);
  binding_free_object(object);
}

static void get_info(PyObject *object, kjit_device_info *info)
{
  memset(info, 0, sizeof *info);
  info->size_bytes = sizeof *info;
  if (kjit_get_device_info(((device_object *)object)->device, info) != KJIT_OK) {
    info->kind = KJIT_DEVICE_CPU;
    info->name = info->target = "";
  }
}

static PyObject *get_kind(PyObject *object, void *unused)
{
  (void)unused;
  kjit_device_info info;
  get_info(object, &info);
  return PyUnicode_FromString(info.kind == KJIT_DEVICE_CUDA ? "cuda" : "cpu");
}

static PyObject *get_ordinal(PyObject *object, void *unused)
{
  (void)unused;
  kjit_device_info info;
  get_info(object, &info);
  return PyLong_FromLong(info.ordinal);
}

static PyObject *get_name(PyObject *object, void *unused)
{
  (void)unused;
  kjit_device_info info;
  get_info(object, &info);
  return PyUnicode_FromString(info.name);
}

static PyObject *get_target(PyObject *object, void *unused)
{
  (void)unused;
  kjit_device_info info;
  get_info(object, &info);
  return PyUnicode_FromString(info.target);
}

static PyObject *synchronize_device(PyObject *object, PyObject *unused)
{
  (void)unused;
  device_object *self = (device_object *)object;
  if (binding_evaluate_all()) return NULL;
  kjit_status status;
  binding_interruptible saved;
  binding_begin_interruptible(self->context, &saved);
  BINDING_LONG(self->context, status = kjit_synchronize_device(self->device), .what = "wait",
               .device = self->device);
  if (binding_finish_interruptible(self->context, status, &saved)) return NULL;
  Py_RETURN_NONE;
}

static PyObject *start_profiler(PyObject *object, PyObject *unused)
{
  (void)unused;
  device_object *self = (device_object *)object;
  if (binding_finish(self->context, kjit_start_profiler(self->device))) return NULL;
  Py_RETURN_NONE;
}

static PyObject *stop_profiler(PyObject *object, PyObject *unused)
{
  (void)unused;
  device_object *self = (device_object *)object;
  if (binding_finish(self->context, kjit_stop_profiler(self->device))) return NULL;
  Py_RETURN_NONE;
}

/* Returns the device for an argument, in the device's context `object`. */
static kjit_device *read_peer(PyObject *object, PyObject *peer)
{
  return binding_get_device(((device_object *)object)->context, peer);
}

static PyObject *can_access_peer(PyObject *object, PyObject *other)
{
  device_object *self = (device_object *)object;
  kjit_device *peer = read_peer(object, other);
  int can = 0;
  if (!peer || binding_finish(self->context, kjit_can_access_peer(self->device, peer, &can)))
    return NULL;
  return PyBool_FromLong(can);
}

static PyObject *change_access(PyObject *object, PyObject *other, int is_on)
{
  device_object *self = (device_object *)object;
  kjit_device *peer = read_peer(object, other);
  if (!peer) return NULL;
  kjit_status status;
  BINDING_UNLOCKED(self->context, status = is_on ? kjit_enable_peer_access(self->device, peer)
                                                 : kjit_disable_peer_access(self->device, peer));
  if (binding_finish(self->context, status)) return NULL;
  Py_RETURN_NONE;
}

static PyObject *enable_peer_access(PyObject *object, PyObject *peer)
{
  return change_access(object, peer, 1);
}

static PyObject *disable_peer_access(PyObject *object, PyObject *peer)
{
  return change_access(object, peer, 0);
}

static PyObject *show_device(PyObject *object)
{
  kjit_device_info info;
  get_info(object, &info);
  PyObject *name = binding_name_place(((device_object *)object)->context, info.kind, info.ordinal);
  PyObject *shown = name ? PyUnicode_FromFormat("<kjit.Device %U: %s>", name, info.name) : NULL;
  Py_XDECREF(name);
  return shown;
}

static PyMethodDef device_methods[] = {
  { "synchronize", synchronize_device, METH_NOARGS,
    "Waits for all work queued on the device. Raises the errors of kernels." },
  { "stream", (PyCFunction)(void (*)(void))binding_create_stream, METH_VARARGS | METH_KEYWORDS,
    "stream(priority=0, non_blocking=False): creates a stream of the device. Streams with a lower "
    "number run first. A non-blocking stream is not ordered with the default stream." },
  { "event", binding_create_event, METH_NOARGS, "Creates an event of the device." },
  { "memory_info", binding_get_memory_info, METH_NOARGS,
    "Returns (free bytes, total bytes) of the device memory." },
  { "trim", binding_trim_memory, METH_NOARGS,
    "Returns the cached memory of deleted arrays to the driver." },
  { "start_profiler", start_profiler, METH_NOARGS,
    "Lets a profiler attached to the process record this device." },
  { "stop_profiler", stop_profiler, METH_NOARGS,
    "Stops the recording of this device by the profiler." },
  { "attribute", binding_get_attribute, METH_O,
    "attribute(name): returns an attribute named in kjit/device.def, such as \"WARP_SIZE\"." },
  { "can_access_peer", can_access_peer, METH_O,
    "can_access_peer(peer): returns whether enable_peer_access(peer) is possible." },
  { "enable_peer_access", enable_peer_access, METH_O,
    "enable_peer_access(peer): lets kernels on this device access arrays on the device peer." },
  { "disable_peer_access", disable_peer_access, METH_O,
    "disable_peer_access(peer): reverses enable_peer_access(peer)." },
  { "__enter__", binding_enter_device, METH_NOARGS,
    "Makes the device the thread's current device until the with block ends." },
  { "__exit__", binding_leave_device, METH_VARARGS,
    "Restores the thread's previous current device." },
  { NULL, NULL, 0, NULL },
};
static PyGetSetDef device_fields[] = {
  { "kind", get_kind, NULL, "the kind of device, \"cpu\" or \"cuda\"", NULL },
  { "ordinal", get_ordinal, NULL, "the number of the device among the devices of its kind", NULL },
  { "name", get_name, NULL, "the product name of the device", NULL },
  { "target", get_target, NULL, "the compilation target, such as \"sm_90\" or \"cpu\"", NULL },
  { "uuid", binding_get_uuid, NULL, "16 bytes that identify the device; 0 for the CPU", NULL },
  { NULL, NULL, NULL, NULL, NULL },
};
static PyType_Slot device_slots[] = {
  { Py_tp_dealloc, (void *)free_device },
  { Py_tp_methods, device_methods },
  { Py_tp_getset, device_fields },
  { Py_tp_repr, (void *)show_device },
  { Py_tp_doc, (void *)"A GPU, or the CPU." },
  { 0, NULL },
};
static PyType_Spec device_spec = { "kjit._kjit.Device", sizeof(device_object), 0,
                                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                   device_slots };

/* ---- modules of kernel IR ---- */

static void free_module(PyObject *object)
{
  module_object *self = (module_object *)object;
  kjit_release_module(self->module);
  Py_XDECREF((PyObject *)self->context);
  binding_free_object(object);
}

/* set_constant(name, value): returns a module in which the constant has the value. */
static PyObject *set_constant(PyObject *object, PyObject *args)
{
  module_object *self = (module_object *)object;
  const char *name;
  PyObject *value;
  if (!PyArg_ParseTuple(args, "sO", &name, &value)) return NULL;
  binding_argument storage;
  kjit_arg arg;
  if (binding_take_argument(self->context, value, name, &storage, &arg)) return NULL;
  module_object *changed = binding_new_object(binding_module_type);
  if (changed) {
    changed->context = (context_object *)Py_NewRef((PyObject *)self->context);
    kjit_status status = kjit_set_constant(self->module, name, &arg, &changed->module);
    if (status != KJIT_OK) changed->module = NULL;
    if (binding_finish(self->context, status)) {
      Py_DECREF((PyObject *)changed);
      changed = NULL;
    }
  }
  binding_free_argument(&storage);
  return (PyObject *)changed;
}

/* Reads a list of (name, data, options) as link inputs; data is bytes. The objects in the list own
 * the data that the result points to. */
static kjit_link_input *read_link_inputs(PyObject *list, Py_ssize_t count)
{
  kjit_link_input *inputs = PyMem_Calloc((size_t)count + 1, sizeof *inputs);
  if (!inputs) return (kjit_link_input *)PyErr_NoMemory();
  for (Py_ssize_t i = 0; i < count; i++) {
    int format;
    char *data;
    Py_ssize_t size_bytes;
    PyObject *bytes;
    kjit_link_input *input = &inputs[i];
    PyObject *item = PyList_GetItem(list, i);
    if (!item || !PyArg_ParseTuple(item, "isSs", &format, &input->name, &bytes, &input->options) ||
        PyBytes_AsStringAndSize(bytes, &data, &size_bytes)) {
      PyMem_Free(inputs);
      return NULL;
    }
    input->format = (kjit_link_format)format;
    input->data = data;
    input->data_bytes = (size_t)size_bytes;
  }
  return inputs;
}

/* bind_linked(name, symbol, [(format, name, data, options)]): returns a module in which GPU code
 * finds the extern func in the linked code. */
static PyObject *bind_linked(PyObject *object, PyObject *args)
{
  module_object *self = (module_object *)object;
  const char *name, *symbol;
  PyObject *list;
  if (!PyArg_ParseTuple(args, "ssO!", &name, &symbol, &PyList_Type, &list)) return NULL;
  Py_ssize_t count = PyList_Size(list);
  kjit_link_input *inputs = read_link_inputs(list, count);
  module_object *changed = inputs ? binding_new_object(binding_module_type) : NULL;
  if (changed) {
    changed->context = (context_object *)Py_NewRef((PyObject *)self->context);
    kjit_status status =
      kjit_bind_linked(self->module, name, symbol, inputs, (size_t)count, &changed->module);
    if (status != KJIT_OK) changed->module = NULL;
    if (binding_finish(self->context, status)) {
      Py_DECREF((PyObject *)changed);
      changed = NULL;
    }
  }
  PyMem_Free(inputs);
  return (PyObject *)changed;
}

/* bind_generator(name, function): returns a module in which the extern func `name` calls a function
 * of random_state.c. */
static PyObject *bind_generator(PyObject *object, PyObject *args)
{
  module_object *self = (module_object *)object;
  const char *name, *function;
  if (!PyArg_ParseTuple(args, "ss", &name, &function)) return NULL;
  void (*found)(void) = random_state_find(function);
  if (!found) return PyErr_Format(PyExc_ValueError, "no generator has a function %s", function);
  module_object *changed = binding_new_object(binding_module_type);
  if (!changed) return NULL;
  changed->context = (context_object *)Py_NewRef((PyObject *)self->context);
  kjit_status status = kjit_bind_extern(self->module, name, found, NULL, 0, &changed->module);
  if (status != KJIT_OK) changed->module = NULL;
  if (binding_finish(self->context, status)) {
    Py_DECREF((PyObject *)changed);
    return NULL;
  }
  return (PyObject *)changed;
}

static PyMethodDef module_methods[] = {
  { "bind_generator", bind_generator, METH_VARARGS, NULL },
  { "bind_linked", bind_linked, METH_VARARGS, NULL },
  { "set_constant", set_constant, METH_VARARGS, NULL },
  { NULL, NULL, 0, NULL },
};
static PyType_Slot module_slots[] = {
  { Py_tp_dealloc, (void *)free_module },
  { Py_tp_methods, module_methods },
  { Py_tp_doc, (void *)"A module of kernel IR." },
  { 0, NULL },
};
static PyType_Spec module_spec = { "kjit._kjit.Module", sizeof(module_object), 0,
                                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                   module_slots };

int binding_add_context(PyObject *module)
{
  binding_context_type = binding_make_type(module, &context_spec);
  binding_device_type = binding_make_type(module, &device_spec);
  binding_module_type = binding_make_type(module, &module_spec);
  return binding_context_type && binding_device_type && binding_module_type ? 0 : -1;
}
