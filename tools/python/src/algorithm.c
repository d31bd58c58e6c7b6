/* Algorithms over whole arrays, with funcs for operators. */
#include "binding.h"

#define MOST_OPERANDS 16

typedef struct algorithm_call {
  kjit_context *context;
  const kjit_operand *result; /* NULL: only asked what it would be */
  const kjit_operand *inputs;
  size_t input_count;
  kjit_function *function; /* or NULL */
  kjit_operator operator_;
  const kjit_algorithm_options *options;
} algorithm_call;

static kjit_status run_reduce(const algorithm_call *c)
{
  return kjit_reduce(c->context, c->result, c->inputs, &c->operator_, c->options);
}

static kjit_status run_scan(const algorithm_call *c)
{
  return kjit_scan(c->context, c->result, c->inputs, &c->operator_, c->options);
}

static kjit_status run_sort(const algorithm_call *c)
{
  return kjit_sort(c->context, c->result, c->inputs, c->function, c->options);
}

static kjit_status run_argsort(const algorithm_call *c)
{
  return kjit_argsort(c->context, c->result, c->inputs, c->function, c->options);
}

static kjit_status run_map(const algorithm_call *c)
{
  return kjit_map(c->context, c->result, 1, c->function, c->inputs, c->input_count, c->options);
}

static const struct algorithm_row {
  const char *name;
  kjit_status (*run)(const algorithm_call *c);
} rows[] = { { "reduce", run_reduce },
             { "scan", run_scan },
             { "sort", run_sort },
             { "argsort", run_argsort },
             { "map", run_map } };

/* operator: the name of one of kjit's, a pair of a module and the name of its func, or None. */
static int read_operator(context_object *context, PyObject *object, algorithm_call *call)
{
  if (object == Py_None) return 0;
  if (PyUnicode_Check(object)) {
    call->operator_.name = PyUnicode_AsUTF8AndSize(object, NULL);
    return call->operator_.name ? 0 : -1;
  }
  module_object *module;
  const char *name;
  if (!PyArg_ParseTuple(object, "O!s", binding_module_type, &module, &name)) return -1;
  kjit_status status = kjit_get_function(module->module, name, &call->function);
  call->operator_.function = call->function;
  return binding_finish(context, status);
}

static int read_axes(PyObject *object, int32_t axes[BINDING_MAX_RANK],
                     kjit_algorithm_options *options)
{
  if (object == Py_None) return 0;
  Py_ssize_t count = PyTuple_Check(object) ? PyTuple_Size(object) : -1;
  if (count < 0 || count > BINDING_MAX_RANK) {
    PyErr_SetString(PyExc_TypeError, "axes are a tuple of at most 8 integers");
    return -1;
  }
  for (Py_ssize_t i = 0; i < count; i++) {
    long axis = PyLong_AsLong(PyTuple_GetItem(object, i));
    if (axis == -1 && PyErr_Occurred()) return -1;
    /* One that no array has stays one. */
    axes[i] = axis < -100 ? -100 : axis > 100 ? 100 : (int32_t)axis;
  }
  options->axes = axes;
  options->axis_count = (uint32_t)count;
  return 0;
}

static PyObject *tell_result(context_object *context, const kjit_result_info *info)
{
  char *text = kjit_copy_type_text(context->context, info->element);
  PyObject *shape = text ? PyTuple_New(info->rank) : NULL;
  for (uint32_t i = 0; shape && i < info->rank; i++) {
    PyObject *extent = PyLong_FromLongLong(info->shape[i]);
    if (!extent || PyTuple_SetItem(shape, i, extent)) Py_CLEAR(shape);
  }
  PyObject *told = shape ? Py_BuildValue("sN", text, shape) : NULL;
  kjit_free(context->context, text);
  return told || PyErr_Occurred() ? told : PyErr_NoMemory();
}

/* Runs the call, or asks what its result would be: a pair of element type and shape. */
static PyObject *run_call(context_object *context, const struct algorithm_row *row,
                          algorithm_call *call, kjit_algorithm_options *options)
{
  kjit_result_info info;
  memset(&info, 0, sizeof info);
  if (!call->result) options->results = &info, options->result_count = 1;
  call->context = context->context;
  call->options = options;
  kjit_status status;
  BINDING_UNLOCKED(context, status = row->run(call));
  if (binding_finish(context, status)) return NULL;
  return call->result ? Py_NewRef(Py_None) : tell_result(context, &info);
}

/* run_algorithm(context, name, result or None, inputs, operator, axes, flags, initial, device) */
static PyObject *run_algorithm(PyObject *unused, PyObject *args)
{
  (void)unused;
  context_object *context;
  const char *name;
  PyObject *result, *inputs, *operator_, *axis, *initial, *device;
  kjit_algorithm_options options = { .size_bytes = sizeof options };
  if (!PyArg_ParseTuple(args, "O!sOO!OOIOO", binding_context_type, &context, &name, &result,
                        &PyTuple_Type, &inputs, &operator_, &axis, &options.flags, &initial,
                        &device))
    return NULL;
  const struct algorithm_row *row = NULL;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (!strcmp(rows[i].name, name)) row = &rows[i];
  Py_ssize_t count = PyTuple_Size(inputs), taken = 0;
  if (!row || count < 1 || count > MOST_OPERANDS)
    return binding_fail(KJIT_ERROR_ARGUMENT, "%s of %zd operands", name, count);
  algorithm_call call = { .input_count = (size_t)count };
  int32_t axes[BINDING_MAX_RANK];
  if (read_operator(context, operator_, &call) || read_axes(axis, axes, &options)) return NULL;
  if (device != Py_None && !(options.device = binding_get_device(context, device))) return NULL;

  /* The operands, then the result and what a reduction starts with. */
  binding_argument storage[MOST_OPERANDS + 2];
  kjit_operand operands[MOST_OPERANDS + 1];
  kjit_arg arg, first;
  int is_good = 1;
  for (; is_good && taken < count; taken += is_good) {
    is_good =
      !binding_take_argument(context, PyTuple_GetItem(inputs, taken), "x", &storage[taken], &arg);
    if (is_good) operands[taken] = kjit_operand_of(arg);
  }
  if (is_good && result != Py_None) {
    is_good = !binding_take_argument(context, result, "out", &storage[taken], &arg);
    if (is_good) operands[taken++] = kjit_operand_of(arg), call.result = &operands[count];
  }
  if (is_good && initial != Py_None) {
    is_good = !binding_take_argument(context, initial, "initial", &storage[taken], &first);
    if (is_good) taken++, options.initial = &first;
  }
  call.inputs = operands;
  PyObject *told = is_good ? run_call(context, row, &call, &options) : NULL;
  for (Py_ssize_t i = 0; i < taken; i++) binding_free_argument(&storage[i]);
  return told;
}

static PyMethodDef functions[] = {
  { "run_algorithm", run_algorithm, METH_VARARGS, NULL },
  { NULL, NULL, 0, NULL },
};

int binding_add_algorithms(PyObject *module) { return PyModule_AddFunctions(module, functions); }
