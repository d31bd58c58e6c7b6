/* Kernels and their launches. The Python class kjit.Kernel derives from Kernel here, which calls
 * its methods _begin() and _load() for the module of kernel IR at the first launch, and again in a
 * forked process. */
#include "kernel.h"

#include <stdlib.h>
#include <structmember.h>

PyTypeObject *binding_kernel_type;

/* Maximum number of arguments whose storage is on the stack. */
#define FEW 12

/* ---- loading ---- */

/* Determines what a launch needs before the kernel is loaded. For function arguments, a different
 * kernel is loaded for each combination of functions. */
static int begin(kernel_object *self)
{
  PyObject *made = PyObject_CallMethod((PyObject *)self, "_begin", NULL);
  if (!made) return -1;
  PyObject *context, *names, *defaults, *device;
  int is_typed, placement;
  kjit_device *place = NULL;
  int outcome = PyArg_ParseTuple(made, "O!O!OOpi", binding_context_type, &context, &PyTuple_Type,
                                 &names, &defaults, &device, &is_typed, &placement)
                  ? 0
                  : -1;
  if (!outcome && device != Py_None &&
      !(place = binding_get_device((context_object *)context, device)))
    outcome = -1;
  if (!outcome) {
    context_object *old = self->context;
    self->context = (context_object *)Py_NewRef(context);
    Py_XDECREF((PyObject *)old);
    binding_set_parameters(&self->parameters, (PyObject *)self, names, defaults, is_typed);
    binding_set(&self->device, Py_NewRef(device));
    self->place = place;
    self->placement = placement;
    self->kernel = NULL;
    self->generation = binding_generation;
  }
  Py_DECREF(made);
  return outcome;
}

int kernel_make_known(kernel_object *self)
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

/* begin() sets kernel to NULL, so a kernel of the parent process is not used. */
int kernel_make_ready(kernel_object *self)
{
  if (kernel_make_known(self)) return -1;
  return self->kernel ? 0 : load(self);
}

/* ---- launching ---- */

/* Waits for a launch that uses arrays of another context, because this context cannot order the
 * other context's streams. */
static int wait_for_foreign(context_object *context, kjit_device *device)
{
  if (!device && !(device = binding_get_device(context, Py_None))) return -1;
  kjit_status status;
  BINDING_LONG(context, status = kjit_synchronize_device(device), .what = "wait", .device = device);
  return binding_finish(context, status);
}

static PyObject *launch_composed(kernel_object *self, const kjit_launch_config *config,
                                 const kernel_call *args);

static int is_composed(const kernel_call *args)
{
  if (args->state == CALL_APART) return 0;
  for (Py_ssize_t i = 0; i < args->count; i++)
    if (binding_is_composed(args->items[i])) return 1;
  return 0;
}

int kernel_launch_taken(kernel_object *self, const kjit_launch_config *given, const kjit_arg *list,
                        Py_ssize_t count, const binding_argument *storage, Py_ssize_t storage_count)
{
  context_object *context = self->context;
  kjit_launch_config config = *given;
  config.cpu_threads = binding_cpu_threads;
  int is_foreign = 0;
  if (binding_has_several) {
    if (binding_place_launch(self, &config, list, count)) return -1;
    if (config.device && storage_count)
      is_foreign = binding_wait_for_peers(context, storage, storage_count, config.device);
    if (is_foreign < 0) return -1;
  } else if (!config.stream) {
    config.device = self->place;
  }
  kjit_device *device = config.device;
  binding_followed followed = { .count = 0 };
  if (binding_begin_following(context, storage, storage_count, &config, &followed)) return -1;
  /* keeps the kernel, because another thread may load it again meanwhile */
  module_object *module = (module_object *)Py_NewRef((PyObject *)self->module);
  kjit_kernel *kernel = self->kernel;
  kjit_status status;
  binding_interruptible saved = { 0 };
  if (context->is_interruptible || !self->has_run) binding_begin_interruptible(context, &saved);
  BINDING_LONG(context, status = kjit_launch(kernel, &config, list, (size_t)count), .what = "run",
               .object = (PyObject *)self,
               .device = followed.count ? binding_follows(&followed)->device : device, .args = list,
               .arg_count = (size_t)count);
  kjit_status ended = binding_end_following(&followed);
  if (status == KJIT_OK) status = ended;
  int outcome = binding_finish_interruptible(context, status, &saved);
  self->has_run |= !outcome;
  Py_DECREF((PyObject *)module);
  for (Py_ssize_t i = 0; i < storage_count; i++) is_foreign |= storage[i].is_foreign;
  return !outcome && is_foreign ? wait_for_foreign(context, device) : outcome;
}

static kjit_status describe_parameter(void *kernel, size_t index, kjit_parameter_info *info)
{
  return kjit_get_parameter_info(kernel, index, info);
}

static PyObject *launch_with(kernel_object *self, const kjit_launch_config *config,
                             const kernel_call *args)
{
  if (is_composed(args)) return launch_composed(self, config, args);
  if (kernel_make_ready(self) ||
      binding_check_protection(describe_parameter, self->kernel, &self->parameters, args->items,
                               args->count))
    return NULL;
  Py_ssize_t count = args->count, taken = 0;
  uint64_t recorded = binding_recorded;
  binding_argument few[FEW], *storage = few;
  kjit_arg few_args[FEW], *list = few_args;
  if (count > FEW) {
    storage = calloc((size_t)count, sizeof *storage);
    list = calloc((size_t)count, sizeof *list);
  }
  int outcome = -1;
  if (!storage || !list) PyErr_NoMemory();
  else {
    while (taken < count &&
           !binding_take_parameter(self->context, &self->parameters, taken, args->items[taken],
                                   &storage[taken], &list[taken]))
      taken++;
    int is_ready = taken == count && (recorded == binding_recorded ||
                                      !binding_compute_all_late_readers(args->items, count));
    if (is_ready) outcome = kernel_launch_taken(self, config, list, count, storage, count);
  }
  for (Py_ssize_t i = 0; i < taken; i++) binding_free_argument(&storage[i]);
  if (storage != few) free(storage);
  if (list != few_args) free(list);
  if (outcome) return NULL;
  Py_RETURN_NONE;
}

static PyObject *make_tuple(const kernel_call *args)
{
  PyObject *tuple = PyTuple_New(args->count);
  for (Py_ssize_t i = 0; tuple && i < args->count; i++)
    PyTuple_SetItem(tuple, i, Py_NewRef(args->items[i]));
  return tuple;
}

/* Launches with tuples, records or functions as arguments. kjit.Kernel._take_apart returns the
 * kernel for these shapes and functions, the flattened arguments, and a callable to call after the
 * launch (or None). */
static PyObject *launch_composed(kernel_object *self, const kjit_launch_config *config,
                                 const kernel_call *args)
{
  PyObject *tuple = make_tuple(args), *result = NULL, *kernel, *items, *finish;
  PyObject *apart =
    tuple ? PyObject_CallMethod((PyObject *)self, "_take_apart", "(O)", tuple) : NULL;
  if (apart &&
      PyArg_ParseTuple(apart, "O!O!O", binding_kernel_type, &kernel, &PyTuple_Type, &items,
                       &finish) &&
      !kernel_make_known((kernel_object *)kernel))
    result = kernel_launch_tuple((kernel_object *)kernel, config, items, NULL, CALL_APART);
  if (result && finish != Py_None) binding_set(&result, PyObject_CallNoArgs(finish));
  Py_XDECREF(apart);
  Py_XDECREF(tuple);
  return result;
}

PyObject *kernel_launch(kernel_object *self, const kjit_launch_config *config,
                        const kernel_call *args, PyObject *keywords)
{
  if (args->state != CALL_GIVEN || (!keywords && args->count == self->parameters.count))
    return launch_with(self, config, args);
  PyObject *arranged = binding_arrange(&self->parameters, args->items, args->count, keywords);
  if (!arranged) return NULL;
  PyObject *result = kernel_launch_tuple(self, config, arranged, NULL, CALL_ARRANGED);
  Py_DECREF(arranged);
  return result;
}

PyObject *kernel_launch_tuple(kernel_object *self, const kjit_launch_config *config,
                              PyObject *tuple, PyObject *keywords, kernel_call_state state)
{
  Py_ssize_t count = PyTuple_Size(tuple);
  PyObject *few[FEW], **items = few;
  if (count > FEW && !(items = PyMem_Calloc((size_t)count, sizeof *items))) return PyErr_NoMemory();
  for (Py_ssize_t i = 0; i < count; i++) items[i] = PyTuple_GetItem(tuple, i);
  const kernel_call args = { items, count, state };
  PyObject *result = kernel_launch(self, config, &args, keywords);
  if (items != few) PyMem_Free(items);
  return result;
}

static PyObject *call_kernel(PyObject *object, PyObject *args, PyObject *keywords)
{
  kernel_object *self = (kernel_object *)object;
  if (kernel_make_known(self)) return NULL;
  kjit_launch_config config = { .size_bytes = sizeof config };
  return kernel_launch_tuple(self, &config, args, keywords, CALL_GIVEN);
}

static PyObject *call_kernel_with(PyObject *object, PyObject *const *items, size_t count,
                                  PyObject *names)
{
  kernel_object *self = (kernel_object *)object;
  if (kernel_make_known(self)) return NULL;
  kjit_launch_config config = { .size_bytes = sizeof config };
  const kernel_call args = { items, count_of(count), CALL_GIVEN };
  return kernel_launch(self, &config, &args, names);
}

/* ---- base class of kjit.Kernel ---- */

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
  return kernel_make_ready(self) ? NULL : Py_NewRef((PyObject *)self->module);
}

static PyGetSetDef kernel_fields[] = {
  { "_launched_module", get_module, NULL, "the kernel IR module that launches use", NULL },
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
  { Py_mp_subscript, (void *)launcher_configure },
  { Py_tp_getset, kernel_fields },
  { Py_tp_doc, (void *)"Base class of kjit.Kernel." },
  { 0, NULL },
};
static PyType_Spec kernel_spec = { "kjit._kjit.Kernel", sizeof(kernel_object), 0,
                                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | HAS_VECTORCALL |
                                     Py_TPFLAGS_BASETYPE,
                                   kernel_slots };

int binding_add_kernel(PyObject *module)
{
  binding_kernel_type = binding_make_type(module, &kernel_spec);
  return binding_kernel_type ? 0 : -1;
}
