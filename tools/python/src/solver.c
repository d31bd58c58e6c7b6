/* Solves linear systems by kjit_cg and kjit_lsmr, with matrices or Python functions as
 * operators. */
#include "algorithm.h"

/* A Python function that is a system's operator, and the exception that it has raised. */
typedef struct python_operator {
  context_object *context;
  PyObject *multiply[2]; /* functions that multiply by the matrix and by the transposed matrix; NULL
                            if not given */
  PyObject *type, *value, *trace;
} python_operator;

static PyObject *wrap_vector(context_object *context, const kjit_operand *operand, int is_read_only)
{
  if (operand->argument.kind != KJIT_ARG_ARRAY)
    return binding_fail(KJIT_ERROR_UNSUPPORTED, "a vector of a solver must be an array");
  kjit_array *array = kjit_retain_array(operand->argument.value.array);
  return binding_wrap_foreign(context, array, is_read_only);
}

static int call_operator(python_operator *self, PyObject *function, const kjit_operand *result,
                         const kjit_operand *x)
{
  PyObject *to = wrap_vector(self->context, result, 0);
  PyObject *from = to ? wrap_vector(self->context, x, 1) : NULL;
  PyObject *outcome = from ? PyObject_CallFunctionObjArgs(function, to, from, NULL) : NULL;
  Py_XDECREF(to);
  Py_XDECREF(from);
  Py_XDECREF(outcome);
  return outcome ? 0 : -1;
}

static kjit_status multiply_with(python_operator *self, int is_transposed,
                                 const kjit_operand *result, const kjit_operand *x)
{
  PyGILState_STATE state = PyGILState_Ensure();
  kjit_status status = KJIT_OK;
  if (call_operator(self, self->multiply[is_transposed], result, x)) {
    PyErr_Fetch(&self->type, &self->value, &self->trace);
    status = KJIT_ERROR_INTERRUPTED;
  }
  PyGILState_Release(state);
  return status;
}

static kjit_status multiply(void *user, const kjit_operand *result, const kjit_operand *x,
                            const kjit_algorithm_options *options)
{
  (void)options;
  return multiply_with(user, 0, result, x);
}

static kjit_status multiply_transposed(void *user, const kjit_operand *result,
                                       const kjit_operand *x, const kjit_algorithm_options *options)
{
  (void)options;
  return multiply_with(user, 1, result, x);
}

/* Reads a matrix given as (data, columns, offsets, rows, columns). None leaves *matrix unchanged.
 * Returns 0, or -1 with an exception. */
static int read_matrix(algorithm_call *call, PyObject *object, kjit_csr *storage,
                       const kjit_csr **matrix)
{
  PyObject *parts[3];
  long long rows, columns;
  if (object == Py_None) return 0;
  if (!PyArg_ParseTuple(object, "OOOLL", &parts[0], &parts[1], &parts[2], &rows, &columns))
    return -1;
  const kjit_operand *operands[3];
  for (int i = 0; i < 3; i++)
    if (!(operands[i] = binding_add_operand(call, parts[i], "a"))) return -1;
  *storage = (kjit_csr){ operands[0], operands[1], operands[2], { rows, columns } };
  *matrix = storage;
  return 0;
}

static PyObject *tell_solution(const kjit_solution *s)
{
  return Py_BuildValue("(isLddddd)", (int)s->status, kjit_get_solve_status_text(s->status),
                       (long long)s->iterations, s->residual_norm, s->normal_residual_norm,
                       s->matrix_norm, s->condition, s->solution_norm);
}

typedef struct system_call {
  const char *name;
  PyObject *x, *b, *matrix, *transposed, *device, *stream, *keeper;
  kjit_linear_operator a;
  kjit_solve_options options;
  python_operator python;
} system_call;

static PyObject *solve(algorithm_call *call, system_call *s)
{
  context_object *context = call->context;
  kjit_csr matrices[2];
  if (read_matrix(call, s->matrix, &matrices[0], &s->a.matrix) ||
      read_matrix(call, s->transposed, &matrices[1], &s->a.transposed))
    return NULL;
  call->is_result = 1;
  const kjit_operand *x = binding_add_operand(call, s->x, "x");
  call->is_result = 0;
  const kjit_operand *b = x ? binding_add_operand(call, s->b, "b") : NULL;
  if (!b) return NULL;
  if (s->device != Py_None && !(s->options.device = binding_get_device(context, s->device)))
    return NULL;
  if (binding_get_stream(context, s->stream, s->options.device, &s->keeper, &s->options.stream))
    return NULL;
  if (s->options.stream) s->options.device = NULL;
  if (Py_TYPE(s->x) == binding_array_type && binding_compute_late_readers((array_object *)s->x))
    return NULL;
  s->python.context = context;
  s->a.user = &s->python;
  s->a.multiply = s->python.multiply[0] ? multiply : NULL;
  s->a.multiply_transposed = s->python.multiply[1] ? multiply_transposed : NULL;
  kjit_solution solution = { .size_bytes = sizeof solution };
  kjit_status status;
  int is_cg = !strcmp(s->name, "cg");
  BINDING_LONG(context,
               status = is_cg ? kjit_cg(context->context, x, &s->a, b, &s->options, &solution)
                              : kjit_lsmr(context->context, x, &s->a, b, &s->options, &solution),
               .what = "run", .name = s->name, .device = s->options.device);
  if (s->python.type) {
    PyErr_Restore(s->python.type, s->python.value, s->python.trace);
    return NULL;
  }
  return binding_finish(context, status) ? NULL : tell_solution(&solution);
}

/* solve(context, name, x, b, matrix, transposed, multiply, multiply_transposed, rows, columns,
 * residual_tolerance, damp, matrix_tolerance, b_tolerance, condition_limit, iteration_limit,
 * device, stream): solves a system and returns (status, text, iterations, norms ...). */
static PyObject *solve_system(PyObject *unused, PyObject *args)
{
  (void)unused;
  context_object *context;
  PyObject *plain, *turned;
  system_call s = { .options = { .size_bytes = sizeof s.options } };
  long long rows, columns, limit;
  if (!PyArg_ParseTuple(args, "O!sOOOOOOLLdddddLOO", binding_context_type, &context, &s.name, &s.x,
                        &s.b, &s.matrix, &s.transposed, &plain, &turned, &rows, &columns,
                        &s.options.residual_tolerance, &s.options.damp, &s.options.matrix_tolerance,
                        &s.options.b_tolerance, &s.options.condition_limit, &limit, &s.device,
                        &s.stream))
    return NULL;
  s.options.iteration_limit = limit;
  s.a.shape[0] = rows, s.a.shape[1] = columns;
  s.python.multiply[0] = plain == Py_None ? NULL : plain;
  s.python.multiply[1] = turned == Py_None ? NULL : turned;
  algorithm_call *call = binding_create_call(context);
  if (!call) return NULL;
  PyObject *told = solve(call, &s);
  Py_XDECREF(s.keeper);
  binding_destroy_call(call);
  return told;
}

/* solve_status_text(status) */
static PyObject *get_status_text(PyObject *unused, PyObject *status)
{
  (void)unused;
  long number = PyLong_AsLong(status);
  if (number == -1 && PyErr_Occurred()) return NULL;
  return Py_BuildValue("z", kjit_get_solve_status_text((kjit_solve_status)number));
}

static PyMethodDef functions[] = {
  { "solve_status_text", get_status_text, METH_O, NULL },
  { "solve_system", solve_system, METH_VARARGS, NULL },
  { NULL, NULL, 0, NULL },
};

int binding_add_solvers(PyObject *module) { return PyModule_AddFunctions(module, functions); }
