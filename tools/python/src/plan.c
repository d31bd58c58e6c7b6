/* Implements kjit.Plan, an algorithm that is prepared once and can run many times. */
#include "algorithm.h"

static PyTypeObject *plan_type;

typedef struct plan_object {
  PyObject_HEAD kjit_plan *plan;
  algorithm_call *call; /* the call, which owns the plan's operands */
  unsigned generation;
} plan_object;

PyObject *binding_make_plan(context_object *context, kjit_plan *plan, algorithm_call *call)
{
  (void)context;
  plan_object *self = binding_new_object(plan_type);
  if (!self) {
    kjit_destroy_plan(plan);
    binding_destroy_call(call);
    return NULL;
  }
  self->plan = plan;
  self->call = call;
  self->generation = binding_generation;
  return (PyObject *)self;
}

static void free_plan(PyObject *object)
{
  plan_object *self = (plan_object *)object;
  if (self->plan && self->generation == binding_generation) kjit_destroy_plan(self->plan);
  if (self->call) binding_destroy_call(self->call);
  binding_free_object(object);
}

static PyObject *run_plan(PyObject *object, PyObject *args)
{
  plan_object *self = (plan_object *)object;
  context_object *context = self->call->context;
  PyObject *stream_or_none = Py_None, *keeper;
  kjit_stream *stream;
  if (!PyArg_ParseTuple(args, "|O", &stream_or_none)) return NULL;
  if (self->generation != binding_generation)
    return binding_fail(KJIT_ERROR_FORKED,
                        "the plan was created by the parent process before a fork");
  if (binding_get_stream(context, stream_or_none, NULL, &keeper, &stream)) return NULL;
  if (binding_write_again(self->call)) {
    Py_XDECREF(keeper);
    return NULL;
  }
  kjit_status status;
  BINDING_LONG(context, status = kjit_run_plan(self->plan, stream), .what = "run",
               .name = "a plan");
  Py_XDECREF(keeper);
  if (binding_finish(context, status)) return NULL;
  Py_RETURN_NONE;
}

static Py_ssize_t count_launches(PyObject *object)
{
  return (Py_ssize_t)kjit_get_plan_size(((plan_object *)object)->plan);
}

static PyMethodDef methods[] = {
  { "run", run_plan, METH_VARARGS,
    "run(stream=None): queues the launches on the stream, by default the stream of the call that "
    "created the plan. Only one thread may run a plan at a time." },
  { NULL, NULL, 0, NULL },
};
static PyType_Slot slots[] = {
  { Py_tp_dealloc, (void *)free_plan },
  { Py_tp_methods, methods },
  { Py_mp_length, (void *)count_launches },
  { Py_tp_doc,
    (void *)"A prepared call of an algorithm: its code is compiled and its memory is allocated." },
  { 0, NULL },
};
static PyType_Spec spec = { "kjit._kjit.Prepared", sizeof(plan_object), 0,
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots };

int binding_add_plans(PyObject *module)
{
  plan_type = binding_make_type(module, &spec);
  return plan_type ? 0 : -1;
}
