/* Kernels and their launches. kjit.Kernel in Python derives from Kernel here, which calls its
 * methods _begin() and _load(), for the module of kernel IR, at the first launch, and again in a
 * forked process. */
#include "binding.h"

#include <stdlib.h>
#include <structmember.h>

PyTypeObject *binding_kernel_type, *binding_launcher_type;

/* Launchers that one kernel keeps; a program with more configurations makes them anew. */
#define MOST_LAUNCHERS 256
/* Arguments whose storage is on the stack. */
#define FEW 12

/* Of Python from 3.12 on in the limited API, and in 3.11 of the same name and number without. */
#define HAS_VECTORCALL (1UL << 11)
/* As PEP 590 has it: the values of keywords, whose names are a tuple, stand behind the arguments.
 */
typedef PyObject *(*vector_function)(PyObject *object, PyObject *const *args, size_t count,
                                     PyObject *names);
static Py_ssize_t count_of(size_t count) { return (Py_ssize_t)(count & SIZE_MAX >> 1); }

typedef struct kernel_object {
  PyObject_HEAD vector_function call;
  context_object *context; /* NULL: nothing is known yet */
  unsigned generation;     /* in which that was said */
  binding_parameters parameters;
  PyObject *device;      /* as binding_get_device takes it; None: where the arrays are */
  kjit_device *place;    /* of device; NULL: where the arrays are */
  module_object *module; /* NULL: not loaded */
  kjit_kernel *kernel;   /* borrowed from the module; NULL: not loaded */
  int has_run;           /* then a launch hardly ever compiles */
  PyObject *launchers;   /* dictionary by the subscript */
} kernel_object;

typedef struct launcher_object {
  PyObject_HEAD vector_function call;
  kernel_object *kernel;
  PyObject *key;    /* it keeps a stream of kjit's */
  PyObject *stream; /* a stream of another library as one of kjit's, or NULL */
  unsigned generation;
  kjit_launch_config config;
} launcher_object;

/* ---- loading ---- */

/* What a launch needs to know before it is clear what is to be loaded: a kernel some of whose
 * arguments are functions is another one for each. */
static int begin(kernel_object *self)
{
  PyObject *made = PyObject_CallMethod((PyObject *)self, "_begin", NULL);
  if (!made) return -1;
  PyObject *context, *names, *defaults, *device;
  int is_typed;
  kjit_device *place = NULL;
  int outcome = PyArg_ParseTuple(made, "O!O!O!Op", binding_context_type, &context, &PyTuple_Type,
                                 &names, &PyTuple_Type, &defaults, &device, &is_typed)
                  ? 0
                  : -1;
  if (!outcome && device != Py_None &&
      !(place = binding_get_device((context_object *)context, device)))
    outcome = -1;
  if (!outcome) {
    context_object *old = self->context;
    self->context = (context_object *)Py_NewRef(context);
    Py_XDECREF((PyObject *)old);
    binding_set_parameters(&self->parameters, "the kernel", names, defaults, is_typed);
    binding_set(&self->device, Py_NewRef(device));
    self->place = place;
    self->kernel = NULL;
    self->generation = binding_generation;
  }
  Py_DECREF(made);
  return outcome;
}

static int make_known(kernel_object *self)
{
  return self->context && self->generation == binding_generation ? 0 : begin(self);
}

static int load(kernel_object *self)
{
  PyObject *made = PyObject_CallMethod((PyObject *)self, "_load", NULL);
  if (!made) return -1;
  PyObject *module;
  const char *name;
  kjit_kernel *kernel = NULL;
  int outcome = PyArg_ParseTuple(made, "O!s", binding_module_type, &module, &name) ? 0 : -1;
  if (!outcome)
    outcome = binding_finish(((module_object *)module)->context,
                             kjit_get_kernel(((module_object *)module)->module, name, &kernel));
  if (!outcome) {
    module_object *old = self->module;
    self->module = (module_object *)Py_NewRef(module);
    Py_XDECREF((PyObject *)old);
    self->kernel = kernel;
    self->has_run = 0;
  }
  Py_DECREF(made);
  return outcome;
}

/* kernel is NULL from begin() on, so that what it is is of this process. */
static int make_ready(kernel_object *self)
{
  if (make_known(self)) return -1;
  return self->kernel ? 0 : load(self);
}

/* ---- launching ---- */

/* Arrays of another context are not known to this one's order of streams: it waits instead. */
static int wait_for_foreign(context_object *context, kernel_object *self)
{
  kjit_device *device = self->place ? self->place : binding_get_device(context, Py_None);
  if (!device) return -1;
  kjit_status status;
  BINDING_LONG(context, status = kjit_synchronize_device(device), .what = "wait", .device = device);
  return binding_finish(context, status);
}

/* The arguments of a call, borrowed. is_apart: what is taken apart was. */
typedef struct call {
  PyObject *const *items;
  Py_ssize_t count;
  int is_apart;
} call;

static PyObject *launch_composed(kernel_object *self, const kjit_launch_config *config,
                                 const call *args);

static int is_composed(const call *args)
{
  if (args->is_apart) return 0;
  for (Py_ssize_t i = 0; i < args->count; i++)
    if (binding_is_composed(args->items[i])) return 1;
  return 0;
}

static PyObject *launch_with(kernel_object *self, const kjit_launch_config *given, const call *args)
{
  if (is_composed(args)) return launch_composed(self, given, args);
  if (make_ready(self)) return NULL;
  kjit_launch_config config = *given;
  config.cpu_threads = binding_cpu_threads;
  if (!config.stream) config.device = self->place;
  context_object *context = self->context;
  Py_ssize_t count = args->count, taken = 0;
  binding_argument few[FEW], *storage = few;
  kjit_arg few_args[FEW], *list = few_args;
  if (count > FEW) {
    storage = calloc((size_t)count, sizeof *storage);
    list = calloc((size_t)count, sizeof *list);
  }
  int outcome = -1, is_foreign = 0;
  if (!storage || !list) PyErr_NoMemory();
  else {
    for (; taken < count; taken++) {
      if (binding_take_parameter(context, &self->parameters, taken, args->items[taken],
                                 &storage[taken], &list[taken]))
        break;
      is_foreign |= storage[taken].is_foreign;
    }
    binding_followed followed = { .count = 0 };
    if (taken == count && !binding_begin_following(context, storage, count, &config, &followed)) {
      /* Another thread may load the kernel again meanwhile. */
      module_object *module = (module_object *)Py_NewRef((PyObject *)self->module);
      kjit_kernel *kernel = self->kernel;
      kjit_status status;
      binding_interruptible saved = { 0 };
      if (context->is_interruptible || !self->has_run) binding_begin_interruptible(context, &saved);
      BINDING_LONG(context, status = kjit_launch(kernel, &config, list, (size_t)count),
                   .what = "run", .object = (PyObject *)self,
                   .device = followed.count ? followed.devices[0] : self->place, .args = list,
                   .arg_count = (size_t)count);
      kjit_status ended = binding_end_following(&followed);
      if (status == KJIT_OK) status = ended;
      outcome = binding_finish_interruptible(context, status, &saved);
      self->has_run |= !outcome;
      Py_DECREF((PyObject *)module);
      if (!outcome && is_foreign) outcome = wait_for_foreign(context, self);
    }
  }
  for (Py_ssize_t i = 0; i < taken; i++) binding_free_argument(&storage[i]);
  if (storage != few) free(storage);
  if (list != few_args) free(list);
  if (outcome) return NULL;
  Py_RETURN_NONE;
}

/* With the items of a tuple of arguments. */
static PyObject *launch_tuple(kernel_object *self, const kjit_launch_config *config,
                              PyObject *tuple, PyObject *keywords, int is_apart);

static PyObject *make_tuple(const call *args)
{
  PyObject *tuple = PyTuple_New(args->count);
  for (Py_ssize_t i = 0; tuple && i < args->count; i++)
    PyTuple_SetItem(tuple, i, Py_NewRef(args->items[i]));
  return tuple;
}

/* kjit.Kernel knows the kernel for tuples of this shape and for these functions, what such
 * arguments are one after the other, and what is to be called behind the launch, or None. */
static PyObject *launch_composed(kernel_object *self, const kjit_launch_config *config,
                                 const call *args)
{
  PyObject *tuple = make_tuple(args), *result = NULL, *kernel, *items, *finish;
  PyObject *apart =
    tuple ? PyObject_CallMethod((PyObject *)self, "_take_apart", "(O)", tuple) : NULL;
  if (apart &&
      PyArg_ParseTuple(apart, "O!O!O", binding_kernel_type, &kernel, &PyTuple_Type, &items,
                       &finish) &&
      !make_known((kernel_object *)kernel))
    result = launch_tuple((kernel_object *)kernel, config, items, NULL, 1);
  if (result && finish != Py_None) binding_set(&result, PyObject_CallNoArgs(finish));
  Py_XDECREF(apart);
  Py_XDECREF(tuple);
  return result;
}

static PyObject *launch(kernel_object *self, const kjit_launch_config *config, const call *args,
                        PyObject *keywords)
{
  if (args->is_apart || (!keywords && args->count == self->parameters.count))
    return launch_with(self, config, args);
  PyObject *arranged = binding_arrange(&self->parameters, args->items, args->count, keywords);
  if (!arranged) return NULL;
  PyObject *result = launch_tuple(self, config, arranged, NULL, 0);
  Py_DECREF(arranged);
  return result;
}

static PyObject *launch_tuple(kernel_object *self, const kjit_launch_config *config,
                              PyObject *tuple, PyObject *keywords, int is_apart)
{
  Py_ssize_t count = PyTuple_Size(tuple);
  PyObject *few[FEW], **items = few;
  if (count > FEW && !(items = PyMem_Calloc((size_t)count, sizeof *items))) return PyErr_NoMemory();
  for (Py_ssize_t i = 0; i < count; i++) items[i] = PyTuple_GetItem(tuple, i);
  const call args = { items, count, is_apart };
  PyObject *result = launch(self, config, &args, keywords);
  if (items != few) PyMem_Free(items);
  return result;
}

static PyObject *call_kernel(PyObject *object, PyObject *args, PyObject *keywords)
{
  kernel_object *self = (kernel_object *)object;
  if (make_known(self)) return NULL;
  kjit_launch_config config = { .size_bytes = sizeof config };
  return launch_tuple(self, &config, args, keywords, 0);
}

static PyObject *call_kernel_with(PyObject *object, PyObject *const *items, size_t count,
                                  PyObject *names)
{
  kernel_object *self = (kernel_object *)object;
  if (make_known(self)) return NULL;
  kjit_launch_config config = { .size_bytes = sizeof config };
  const call args = { items, count_of(count), 0 };
  return launch(self, &config, &args, names);
}

/* ---- launchers ---- */

static int read_extents(PyObject *object, uint32_t extents[3], const char *what)
{
  Py_ssize_t count = PyTuple_Check(object) ? PyTuple_Size(object) : 1;
  if (count < 1 || count > 3) {
    binding_fail(KJIT_ERROR_ARGUMENT, "a %s has 1 to 3 extents, not %zd", what, count);
    return -1;
  }
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject *item = PyTuple_Check(object) ? PyTuple_GetItem(object, i) : object;
    if (!PyIndex_Check(item)) {
      binding_fail(KJIT_ERROR_ARGUMENT, "the extents of a %s are integers, not %R", what,
                   (PyObject *)Py_TYPE(item));
      return -1;
    }
    Py_ssize_t value = PyNumber_AsSsize_t(item, NULL);
    if (value == -1 && PyErr_Occurred()) return -1;
    if (value < 1 || value > (Py_ssize_t)UINT32_MAX) {
      binding_fail(KJIT_ERROR_LAUNCH,
                   "the extents of a %s are at least 1 and at most 2^32 - 1, not %zd", what, value);
      return -1;
    }
    extents[i] = (uint32_t)value;
  }
  return 0;
}

/* kernel[grid], kernel[grid, block], kernel[grid, block, stream, shared bytes]; None: not given. */
static int read_key(launcher_object *self)
{
  context_object *context = self->kernel->context;
  PyObject *parts[4] = { Py_None, Py_None, Py_None, Py_None };
  Py_ssize_t count = PyTuple_Check(self->key) ? PyTuple_Size(self->key) : 1;
  if (count < 1 || count > 4) {
    PyErr_SetString(PyExc_TypeError, "a launch is kernel[grid, block, stream, shared bytes](...)");
    return -1;
  }
  for (Py_ssize_t i = 0; i < count; i++)
    parts[i] = PyTuple_Check(self->key) ? PyTuple_GetItem(self->key, i) : self->key;
  kjit_launch_config config = { .size_bytes = sizeof config };
  if (parts[0] != Py_None && read_extents(parts[0], config.grid, "grid")) return -1;
  if (parts[1] != Py_None && read_extents(parts[1], config.block, "block")) return -1;
  PyObject *keeper;
  if (binding_get_stream(context, parts[2], self->kernel->place, &keeper, &config.stream))
    return -1;
  binding_set(&self->stream, keeper);
  if (parts[3] != Py_None) {
    Py_ssize_t bytes = PyIndex_Check(parts[3]) ? PyNumber_AsSsize_t(parts[3], NULL) : -1;
    if (bytes < 0) {
      PyErr_Clear();
      binding_fail(KJIT_ERROR_ARGUMENT, "shared memory is a number of bytes, not %R", parts[3]);
      return -1;
    }
    config.dynamic_shared_bytes = (uint64_t)bytes;
  }
  self->config = config;
  self->generation = self->kernel->generation;
  return 0;
}

static int make_launcher_ready(launcher_object *self)
{
  if (make_known(self->kernel)) return -1;
  return self->generation == self->kernel->generation ? 0 : read_key(self);
}

static PyObject *call_launcher(PyObject *object, PyObject *args, PyObject *keywords)
{
  launcher_object *self = (launcher_object *)object;
  if (make_launcher_ready(self)) return NULL;
  return launch_tuple(self->kernel, &self->config, args, keywords, 0);
}

static PyObject *call_launcher_with(PyObject *object, PyObject *const *items, size_t count,
                                    PyObject *names)
{
  launcher_object *self = (launcher_object *)object;
  if (make_launcher_ready(self)) return NULL;
  const call args = { items, count_of(count), 0 };
  return launch(self->kernel, &self->config, &args, names);
}

static PyObject *configure(PyObject *object, PyObject *key)
{
  kernel_object *self = (kernel_object *)object;
  if (!self->launchers && !(self->launchers = PyDict_New())) return NULL;
  PyObject *known = PyDict_GetItemWithError(self->launchers, key); /* borrowed */
  if (known) return Py_NewRef(known);
  if (PyErr_Occurred() || make_known(self)) return NULL;
  allocfunc allocate = (allocfunc)PyType_GetSlot(binding_launcher_type, Py_tp_alloc);
  launcher_object *launcher = (launcher_object *)allocate(binding_launcher_type, 0);
  if (!launcher) return NULL;
  launcher->call = call_launcher_with;
  launcher->kernel = (kernel_object *)Py_NewRef(object);
  launcher->key = Py_NewRef(key);
  if (read_key(launcher)) {
    Py_DECREF((PyObject *)launcher);
    return NULL;
  }
  if (PyDict_Size(self->launchers) >= MOST_LAUNCHERS) PyDict_Clear(self->launchers);
  if (PyDict_SetItem(self->launchers, key, (PyObject *)launcher)) {
    Py_DECREF((PyObject *)launcher);
    return NULL;
  }
  return (PyObject *)launcher;
}

static int traverse_launcher(PyObject *object, visitproc visit, void *arg)
{
  launcher_object *self = (launcher_object *)object;
  Py_VISIT(Py_TYPE(object));
  Py_VISIT((PyObject *)self->kernel);
  Py_VISIT(self->key);
  return 0;
}

static int clear_launcher(PyObject *object)
{
  /* The kernel stays: a launcher that is called by a finalizer needs it. Its dictionary breaks the
   * circle. */
  Py_CLEAR(((launcher_object *)object)->key);
  return 0;
}

static void free_launcher(PyObject *object)
{
  launcher_object *self = (launcher_object *)object;
  PyTypeObject *type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  Py_CLEAR(self->key);
  Py_CLEAR(self->stream);
  Py_XDECREF((PyObject *)self->kernel);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
  Py_DECREF(type);
}

static PyObject *show_launcher(PyObject *object)
{
  launcher_object *self = (launcher_object *)object;
  return PyUnicode_FromFormat("%R[%R]", (PyObject *)self->kernel, self->key ? self->key : Py_None);
}

static PyMemberDef launcher_members[] = {
  { "__vectorcalloffset__", T_PYSSIZET, offsetof(launcher_object, call), READONLY, NULL },
  { NULL, 0, 0, 0, NULL },
};
static PyType_Slot launcher_slots[] = {
  { Py_tp_dealloc, (void *)free_launcher },
  { Py_tp_traverse, (void *)traverse_launcher },
  { Py_tp_clear, (void *)clear_launcher },
  { Py_tp_call, (void *)call_launcher },
  { Py_tp_members, launcher_members },
  { Py_tp_repr, (void *)show_launcher },
  { Py_tp_doc, (void *)"A kernel with a configuration." },
  { 0, NULL },
};
static PyType_Spec launcher_spec = { "kjit._kjit.Launcher", sizeof(launcher_object), 0,
                                     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | HAS_VECTORCALL |
                                       Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                     launcher_slots };

/* ---- the base of kjit.Kernel ---- */

static PyObject *create_kernel(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
  (void)args, (void)keywords;
  kernel_object *self = binding_new_object(type);
  if (self) self->call = call_kernel_with;
  return (PyObject *)self;
}

static int traverse_kernel(PyObject *object, visitproc visit, void *arg)
{
  kernel_object *self = (kernel_object *)object;
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(self->launchers);
  Py_VISIT(self->parameters.defaults);
  Py_VISIT(self->device);
  return 0;
}

static int clear_kernel(PyObject *object)
{
  kernel_object *self = (kernel_object *)object;
  Py_CLEAR(self->launchers);
  return 0;
}

static void free_kernel(PyObject *object)
{
  kernel_object *self = (kernel_object *)object;
  PyTypeObject *type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  binding_forget_launched(object);
  Py_CLEAR(self->launchers);
  binding_clear_parameters(&self->parameters);
  Py_CLEAR(self->device);
  Py_XDECREF((PyObject *)self->module);
  Py_XDECREF((PyObject *)self->context);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
  Py_DECREF(type);
}

static PyObject *get_module(PyObject *object, void *unused)
{
  (void)unused;
  kernel_object *self = (kernel_object *)object;
  return make_ready(self) ? NULL : Py_NewRef((PyObject *)self->module);
}

static PyGetSetDef kernel_fields[] = {
  { "_launched_module", get_module, NULL, "the module of kernel IR that launches use", NULL },
  { NULL, NULL, NULL, NULL, NULL },
};
static PyMemberDef kernel_members[] = {
  { "__vectorcalloffset__", T_PYSSIZET, offsetof(kernel_object, call), READONLY, NULL },
  { NULL, 0, 0, 0, NULL },
};
static PyType_Slot kernel_slots[] = {
  { Py_tp_new, (void *)create_kernel },
  { Py_tp_dealloc, (void *)free_kernel },
  { Py_tp_traverse, (void *)traverse_kernel },
  { Py_tp_clear, (void *)clear_kernel },
  { Py_tp_call, (void *)call_kernel },
  { Py_tp_members, kernel_members },
  { Py_mp_subscript, (void *)configure },
  { Py_tp_getset, kernel_fields },
  { Py_tp_doc, (void *)"What kjit.Kernel derives from." },
  { 0, NULL },
};
static PyType_Spec kernel_spec = { "kjit._kjit.Kernel", sizeof(kernel_object), 0,
                                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | HAS_VECTORCALL |
                                     Py_TPFLAGS_BASETYPE,
                                   kernel_slots };

int binding_add_kernel(PyObject *module)
{
  binding_kernel_type = binding_make_type(module, &kernel_spec);
  binding_launcher_type = binding_make_type(module, &launcher_spec);
  return binding_kernel_type && binding_launcher_type ? 0 : -1;
}
