/* Runs algorithms over whole arrays. Each algorithm has a row in the table of algorithm_table.c.
 * This file converts the Python objects of a call to the arguments of the row's C function. */
#include "algorithm.h"
#include "expression.h"

/* ---- operands and operators ---- */

/* Memory of the previous call, which the next call reuses. The struct is so large that malloc would
 * consolidate its free blocks each time the struct is allocated. */
static algorithm_call *spare;

algorithm_call *binding_create_call(context_object *context)
{
  algorithm_call *call = spare ? spare : PyMem_Malloc(sizeof *call);
  spare = NULL;
  if (!call) return (algorithm_call *)PyErr_NoMemory();
  call->context = (context_object *)Py_NewRef((PyObject *)context);
  call->object_count = call->operand_count = call->operator_count = 0;
  call->is_result = call->is_planned = call->is_short = call->written_count = 0;
  call->result_count = 0;
  memset(call->arguments, 0, sizeof call->arguments);
  return call;
}

void binding_destroy_call(algorithm_call *call)
{
  for (int i = 0; i < call->object_count; i++) binding_free_argument(&call->objects[i]);
  for (int i = 0; i < call->written_count; i++) binding_release_block(call->written[i]);
  Py_DECREF((PyObject *)call->context);
  if (spare) PyMem_Free(call);
  else spare = call;
}

/* Prepares an array for a result. A plan writes the array in each run. */
static int begin_writing(algorithm_call *call, array_object *array)
{
  if (array->is_read_only == BINDING_ELEMENT) return binding_refuse_write(array);
  if (!call->is_planned) {
    call->results[call->result_count++] = array; /* a call has at most as many results as objects */
    return binding_before_write(array);
  }
  if (call->written_count == ALGORITHM_MOST_OBJECTS) return 0;
  binding_block *block = binding_get_block(array);
  if (!block) return -1;
  call->written[call->written_count++] = binding_retain_block(block);
  return 0;
}

int binding_write_again(const algorithm_call *call)
{
  for (int i = 0; i < call->written_count; i++) {
    call->written[i]->is_open = 1;
    if (binding_compute_readers(call->written[i], 0)) return -1;
  }
  return 0;
}

/* Stores a number that is passed by address in the argument itself. libkjit can then keep the steps
 * of the call for the next such call. */
static void take_inline(kjit_arg *arg)
{
  if (arg->kind != KJIT_ARG_BY_ADDRESS || arg->type >= KJIT_SCALAR_COUNT) return;
  const void *bytes = arg->value.address;
  kjit_arg made = kjit_make_arg(KJIT_ARG_VALUE, arg->type);
  switch (arg->type) {
  case KJIT_I8: made.value.i = *(const int8_t *)bytes; break;
  case KJIT_I16: made.value.i = *(const int16_t *)bytes; break;
  case KJIT_I32: made.value.i = *(const int32_t *)bytes; break;
  case KJIT_BOOL:
  case KJIT_U8: made.value.u = *(const uint8_t *)bytes; break;
  case KJIT_U16:
  case KJIT_F16:
  case KJIT_BF16: made.value.u = *(const uint16_t *)bytes; break;
  case KJIT_U32: made.value.u = *(const uint32_t *)bytes; break;
  case KJIT_F32: made.value.f32 = *(const float *)bytes; break;
  case KJIT_I64:
  case KJIT_U64:
  case KJIT_F64: made.value.u = *(const uint64_t *)bytes; break;
  default: return; /* other values, such as complex numbers, are always passed by address */
  }
  *arg = made;
}

/* Converts the next object to an argument. Returns NULL with an exception. */
static kjit_arg *add_object(algorithm_call *call, PyObject *object, const char *name)
{
  int at = call->object_count;
  if (at == ALGORITHM_MOST_OBJECTS) {
    binding_fail(KJIT_ERROR_UNSUPPORTED, "a call takes at most %d operands",
                 ALGORITHM_MOST_OBJECTS);
    return NULL;
  }
  if (call->is_result && Py_TYPE(object) == binding_array_type &&
      begin_writing(call, (array_object *)object))
    return NULL;
  if (binding_take_argument(call->context, object, name, &call->objects[at], &call->values[at]))
    return NULL;
  call->object_count++;
  take_inline(&call->values[at]);
  return &call->values[at];
}

/* Converts an object to a single value. A record becomes a zero-dimensional array whose memory
 * lives until the call is over. */
static kjit_arg *add_value(algorithm_call *call, PyObject *object, const char *name)
{
  binding_argument *storage = &call->objects[call->object_count];
  kjit_arg *arg = add_object(call, object, name);
  if (arg && arg->kind == KJIT_ARG_TENSOR && storage->tensor.rank == 0)
    *arg = kjit_arg_value(arg->type, storage->tensor.data);
  return arg;
}

int binding_get_pair(context_object *context, PyObject *object, kjit_function **function)
{
  module_object *module;
  const char *name;
  if (!PyTuple_Check(object)) {
    PyErr_Format(PyExc_TypeError, "a function must be a pair of a module and a name, not %R",
                 (PyObject *)Py_TYPE(object));
    return -1;
  }
  if (!PyArg_ParseTuple(object, "O!s", binding_module_type, &module, &name)) return -1;
  return binding_finish(context, kjit_get_function(module->module, name, function));
}

/* Reads a func operand given as (module, name, shape or None, arrays). */
static int read_computed(algorithm_call *call, PyObject *object, kjit_operand *operand)
{
  PyObject *module, *name, *shape, *arrays;
  if (!PyArg_ParseTuple(object, "OOOO!", &module, &name, &shape, &PyTuple_Type, &arrays)) return -1;
  PyObject *pair = PyTuple_Pack(2, module, name);
  kjit_function *function = NULL;
  int outcome = pair ? binding_get_pair(call->context, pair, &function) : -1;
  Py_XDECREF(pair);
  if (outcome) return -1;
  Py_ssize_t count = PyTuple_Size(arrays);
  const kjit_arg *first = &call->values[call->object_count];
  for (Py_ssize_t i = 0; i < count; i++)
    if (!add_object(call, PyTuple_GetItem(arrays, i), "of a function")) return -1;
  int64_t *extents = call->shapes[operand - call->operands];
  uint32_t rank = 0;
  if (shape != Py_None && binding_parse_shape(shape, extents, &rank)) return -1;
  *operand =
    kjit_operand_function(function, first, (size_t)count, shape == Py_None ? NULL : extents, rank);
  return 0;
}

kjit_operand *binding_add_operand(algorithm_call *call, PyObject *object, const char *name)
{
  if (call->operand_count == ALGORITHM_MOST_OBJECTS) {
    binding_fail(KJIT_ERROR_UNSUPPORTED, "a call takes at most %d operands",
                 ALGORITHM_MOST_OBJECTS);
    return NULL;
  }
  kjit_operand *operand = &call->operands[call->operand_count];
  if (PyTuple_Check(object)) {
    if (read_computed(call, object, operand)) return NULL;
  } else {
    const kjit_arg *arg = add_object(call, object, name);
    if (!arg) return NULL;
    *operand = kjit_operand_of(*arg);
  }
  call->operand_count++;
  return operand;
}

/* Reads an operator: the name of a built-in operator, or (module, name of the func, whether the
 * func commutes). */
static kjit_operator *add_operator(algorithm_call *call, PyObject *object)
{
  if (call->operator_count == ALGORITHM_MOST_OPERATORS) {
    binding_fail(KJIT_ERROR_UNSUPPORTED, "a call takes at most %d operators",
                 ALGORITHM_MOST_OPERATORS);
    return NULL;
  }
  kjit_operator *operator_ = &call->operators[call->operator_count];
  memset(operator_, 0, sizeof *operator_);
  if (PyUnicode_Check(object)) {
    operator_->name = PyUnicode_AsUTF8AndSize(object, NULL);
    if (!operator_->name) return NULL;
  } else {
    PyObject *module, *name;
    if (!PyArg_ParseTuple(object, "OOp", &module, &name, &operator_->commutes)) return NULL;
    PyObject *pair = PyTuple_Pack(2, module, name);
    int outcome = pair ? binding_get_pair(call->context, pair, &operator_->function) : -1;
    Py_XDECREF(pair);
    if (outcome) return NULL;
  }
  call->operator_count++;
  return operator_;
}

/* ---- the arguments of a row ---- */

/* Reads a signed or unsigned 64-bit integer. A value above the largest i64 is stored as the bits of
 * a u64. */
static int read_integer(PyObject *object, int64_t *value)
{
  int overflow;
  PyObject *number = PyNumber_Index(object);
  if (!number) return -1;
  *value = PyLong_AsLongLongAndOverflow(number, &overflow);
  if (overflow > 0) *value = (int64_t)PyLong_AsUnsignedLongLong(number);
  if (overflow < 0) PyErr_SetString(PyExc_OverflowError, "an integer has more than 64 bits");
  Py_DECREF(number);
  return PyErr_Occurred() ? -1 : 0;
}

static int read_several(algorithm_call *call, PyObject *object, int are_operators,
                        algorithm_argument *a)
{
  if (!PyTuple_Check(object)) {
    PyErr_Format(PyExc_TypeError, "expected a tuple, not %R", (PyObject *)Py_TYPE(object));
    return -1;
  }
  a->count = (size_t)PyTuple_Size(object);
  a->operands = &call->operands[call->operand_count];
  a->operators = &call->operators[call->operator_count];
  for (size_t i = 0; i < a->count; i++) {
    PyObject *item = PyTuple_GetItem(object, (Py_ssize_t)i);
    int is_read = are_operators ? add_operator(call, item) != NULL
                                : binding_add_operand(call, item, "x") != NULL;
    if (!is_read) return -1;
  }
  return 0;
}

static int read_integers(PyObject *object, algorithm_argument *a)
{
  enum { MOST = sizeof a->integers / sizeof *a->integers };
  Py_ssize_t count = PyTuple_Check(object) ? PyTuple_Size(object) : -1;
  if (count < 0 || count > MOST) {
    PyErr_Format(PyExc_TypeError, "expected a tuple of at most %d integers", MOST);
    return -1;
  }
  a->count = (size_t)count;
  for (Py_ssize_t i = 0; i < count; i++) {
    unsigned long number = PyLong_AsUnsignedLong(PyTuple_GetItem(object, i));
    if (PyErr_Occurred()) return -1;
    a->integers[i] = number > UINT32_MAX ? UINT32_MAX : (uint32_t)number;
  }
  return 0;
}

static int read_argument(algorithm_call *call, char letter, PyObject *object, algorithm_argument *a)
{
  int is_none = object == Py_None;
  call->is_result = letter == 'r' || letter == 'R';
  switch (letter) {
  case 'r':
  case 'x':
    if (!is_none) a->operands = binding_add_operand(call, object, "x");
    return is_none || a->operands ? 0 : -1;
  case 'R':
  case 'X': return is_none ? 0 : read_several(call, object, 0, a);
  case 'o': return (a->operators = add_operator(call, object)) ? 0 : -1;
  case 'O': return read_several(call, object, 1, a);
  case 'f': return is_none ? 0 : binding_get_pair(call->context, object, &a->function);
  case 'i': return read_integer(object, &a->integer);
  case 'I': return read_integers(object, a);
  case 'd': a->real = PyFloat_AsDouble(object); return PyErr_Occurred() ? -1 : 0;
  default: a->text = PyUnicode_AsUTF8AndSize(object, NULL); return a->text ? 0 : -1;
  }
}

static int read_arguments(algorithm_call *call, const algorithm_row *row, PyObject *given,
                          size_t result_count)
{
  Py_ssize_t count = (Py_ssize_t)strlen(row->parameters);
  if (PyTuple_Size(given) != count) {
    binding_fail(KJIT_ERROR_MISUSE, "%s takes %zd arguments", row->name, count);
    return -1;
  }
  for (Py_ssize_t i = 0; i < count; i++)
    if (read_argument(call, row->parameters[i], PyTuple_GetItem(given, i), &call->arguments[i]))
      return -1;
  if (result_count && row->parameters[0] == 'R') call->arguments[0].count = result_count;
  call->is_result = 0;
  return 0;
}

/* ---- options ---- */

static int read_axes(PyObject *object, int32_t axes[BINDING_MAX_RANK],
                     kjit_algorithm_options *options)
{
  if (object == Py_None) return 0;
  Py_ssize_t count = PyTuple_Check(object) ? PyTuple_Size(object) : -1;
  if (count < 0 || count > BINDING_MAX_RANK) {
    PyErr_SetString(PyExc_TypeError, "axes must be a tuple of at most 8 integers");
    return -1;
  }
  for (Py_ssize_t i = 0; i < count; i++) {
    long axis = PyLong_AsLong(PyTuple_GetItem(object, i));
    if (axis == -1 && PyErr_Occurred()) return -1;
    /* any axis beyond 100 is out of range, and must stay so after the conversion to 32 bits */
    axes[i] = axis < -100 ? -100 : axis > 100 ? 100 : (int32_t)axis;
  }
  options->axes = axes;
  options->axis_count = (uint32_t)count;
  return 0;
}

enum { MOST_DEVICES = 64 };

typedef struct given_options {
  PyObject *axes, *initial, *device, *stream, *accumulator, *where, *epilogue, *epilogue_operands,
    *devices;
  int is_planned;
  int32_t axis_numbers[BINDING_MAX_RANK];
  PyObject *keeper; /* keeps the stream alive */
  kjit_device *shared[MOST_DEVICES];
} given_options;

/* Reads the func of an epilogue and its tuple of operands. */
static int read_epilogue(algorithm_call *call, const given_options *given,
                         kjit_algorithm_options *options)
{
  algorithm_argument operands = { .count = 0 };
  if (given->epilogue == Py_None) return 0;
  if (binding_get_pair(call->context, given->epilogue, &options->epilogue)) return -1;
  if (read_several(call, given->epilogue_operands, 0, &operands)) return -1;
  options->epilogue_operands = operands.operands;
  options->epilogue_operand_count = operands.count;
  return 0;
}

static int read_devices(algorithm_call *call, given_options *given, kjit_algorithm_options *options)
{
  if (given->devices == Py_None) return 0;
  Py_ssize_t count = PyTuple_Check(given->devices) ? PyTuple_Size(given->devices) : -1;
  if (count < 1 || count > MOST_DEVICES) {
    PyErr_Format(PyExc_TypeError, "devices must be a tuple of 1 to %d devices", MOST_DEVICES);
    return -1;
  }
  for (Py_ssize_t i = 0; i < count; i++)
    if (!(given->shared[i] = binding_get_device(call->context, PyTuple_GetItem(given->devices, i))))
      return -1;
  options->devices = given->shared;
  options->device_count = (size_t)count;
  return 0;
}

static int read_options(algorithm_call *call, given_options *given, kjit_algorithm_options *options)
{
  context_object *context = call->context;
  if (read_axes(given->axes, given->axis_numbers, options)) return -1;
  if (given->device != Py_None && !(options->device = binding_get_device(context, given->device)))
    return -1;
  if (binding_get_stream(context, given->stream, options->device, &given->keeper, &options->stream))
    return -1;
  if (options->stream) options->device = NULL;
  if (given->accumulator != Py_None &&
      !binding_parse_element(context, given->accumulator, &options->accumulator))
    return -1;
  if (given->initial != Py_None && !(options->initial = add_value(call, given->initial, "initial")))
    return -1;
  if (given->where != Py_None &&
      !(options->where = binding_add_operand(call, given->where, "where")))
    return -1;
  if (read_epilogue(call, given, options)) return -1;
  return read_devices(call, given, options);
}

/* Converters for O& of PyArg_ParseTuple. The formats K and I cannot be used, because they would
 * reduce numbers modulo 2^64 and 2^32. */
static int take_count(PyObject *object, void *to)
{
  PyObject *number = PyNumber_Index(object);
  unsigned long long value = number ? PyLong_AsUnsignedLongLong(number) : 0;
  Py_XDECREF(number);
  *(uint64_t *)to = value;
  return !PyErr_Occurred();
}

static int take_word(PyObject *object, void *to)
{
  uint64_t value;
  if (!take_count(object, &value)) return 0;
  if (value > UINT32_MAX) {
    PyErr_Format(PyExc_OverflowError, "%R has more than 32 bits", object);
    return 0;
  }
  *(uint32_t *)to = (uint32_t)value;
  return 1;
}

/* ---- the call ---- */

static PyObject *tell_result(context_object *context, const kjit_result_info *info)
{
  char *text =
    info->element == KJIT_ANY ? NULL : kjit_copy_type_text(context->context, info->element);
  PyObject *shape = PyTuple_New(info->rank);
  for (uint32_t i = 0; shape && i < info->rank; i++) {
    PyObject *extent = PyLong_FromLongLong(info->shape[i]);
    if (!extent || PyTuple_SetItem(shape, i, extent)) Py_CLEAR(shape);
  }
  PyObject *told = shape ? Py_BuildValue("zN", text, shape) : NULL;
  kjit_free(context->context, text);
  return told;
}

/* Returns a list of (element type, shape) that describes the results. */
static PyObject *ask(algorithm_call *call, const algorithm_row *row,
                     kjit_algorithm_options *options)
{
  kjit_result_info infos[ALGORITHM_MOST_RESULTS];
  memset(infos, 0, sizeof infos);
  for (size_t i = 0; i < ALGORITHM_MOST_RESULTS; i++) infos[i].element = KJIT_VOID;
  options->results = infos;
  options->result_count = ALGORITHM_MOST_RESULTS;
  kjit_status status;
  BINDING_LONG(call->context, status = row->run(call->context->context, call->arguments, options),
               .what = "run", .name = row->name, .device = options->device);
  PyObject *list = binding_finish(call->context, status) ? NULL : PyList_New(0);
  for (size_t i = 0; list && i < ALGORITHM_MOST_RESULTS && infos[i].element != KJIT_VOID; i++) {
    PyObject *told = tell_result(call->context, &infos[i]);
    if (!told || PyList_Append(list, told)) Py_CLEAR(list);
    Py_XDECREF(told);
  }
  return list;
}

/* Waits for the streams that produce the arguments. Only calls on several devices use this
 * function: they have no single stream that could wait for these streams, so the calling thread
 * waits. */
static kjit_status wait_for_followed(binding_followed *followed)
{
  kjit_status status = KJIT_OK;
  for (int i = 0; i < followed->count && status == KJIT_OK; i++) {
    Py_BEGIN_ALLOW_THREADS;
    status = kjit_synchronize_stream(binding_follows(followed)[i].stream);
    Py_END_ALLOW_THREADS;
  }
  return status;
}

int binding_perform(algorithm_call *call, const algorithm_row *row, kjit_algorithm_options *options)
{
  kjit_launch_config config = { .size_bytes = sizeof config };
  config.device = options->device;
  config.stream = options->stream;
  binding_followed followed = { .count = 0 };
  if (!options->plan &&
      binding_begin_following(call->context, call->objects, call->object_count, &config, &followed))
    return -1;
  /* the conversion of other operands and of streams may have run Python code, which may have
   * recorded operations on results */
  for (int i = 0; i < call->result_count; i++)
    if (binding_compute_late_readers(call->results[i])) {
      (void)binding_end_following(&followed);
      return -1;
    }
  kjit_status status = KJIT_OK;
  if (options->devices) status = wait_for_followed(&followed);
  else options->device = config.device, options->stream = config.stream;
  binding_interruptible saved;
  binding_count_algorithm();
  saved.is_begun = 0;
  if (!call->is_short) binding_begin_interruptible(call->context, &saved);
  if (status == KJIT_OK)
    BINDING_LONG(call->context, status = row->run(call->context->context, call->arguments, options),
                 .what = "run", .name = row->name, .device = options->device);
  kjit_status ended = binding_end_following(&followed);
  if (status == KJIT_OK) status = ended;
  return binding_finish_interruptible(call->context, status, &saved);
}

/* run_algorithm(context, name, arguments, asked=0, axes=None, flags=0, initial=None, device=None,
 * stream=None, accumulator=None, where=None, signature=None, chunk=0, begin_bit=0, end_bit=0,
 * plan=False, epilogue=None, epilogue_operands=(), devices=None): returns None or a Plan. If
 * `asked` is not 0, it returns a list of descriptions of the first `asked` results. */
static PyObject *run_algorithm(PyObject *unused, PyObject *args, PyObject *names)
{
  (void)unused;
  static const char *const keywords[] = {
    "context", "name",      "arguments", "asked",       "axes",     "flags",
    "initial", "device",    "stream",    "accumulator", "where",    "signature",
    "chunk",   "begin_bit", "end_bit",   "plan",        "epilogue", "epilogue_operands",
    "devices", NULL
  };
  context_object *context;
  const char *name;
  PyObject *arguments;
  unsigned asked = 0;
  given_options given = { Py_None, Py_None, Py_None, Py_None, Py_None,
                          Py_None, Py_None, Py_None, Py_None, .is_planned = 0 };
  kjit_algorithm_options options = { .size_bytes = sizeof options };
  if (!PyArg_ParseTupleAndKeywords(args, names, "O!sO!|IOO&OOOOOzO&O&O&pOOO",
                                   (char **)(uintptr_t)keywords, binding_context_type, &context,
                                   &name, &PyTuple_Type, &arguments, &asked, &given.axes, take_word,
                                   &options.flags, &given.initial, &given.device, &given.stream,
                                   &given.accumulator, &given.where, &options.signature, take_count,
                                   &options.chunk, take_word, &options.begin_bit, take_word,
                                   &options.end_bit, &given.is_planned, &given.epilogue,
                                   &given.epilogue_operands, &given.devices))
    return NULL;
  const algorithm_row *row = binding_find_algorithm(name);
  if (!row) return binding_fail(KJIT_ERROR_NAME, "there is no algorithm %s", name);
  algorithm_call *call = binding_create_call(context);
  if (!call) return NULL;
  call->is_planned = given.is_planned;
  kjit_plan *plan = NULL;
  PyObject *told = NULL;
  if (!read_arguments(call, row, arguments, asked) && !read_options(call, &given, &options)) {
    if (given.is_planned && !asked) options.plan = &plan;
    if (asked) told = ask(call, row, &options);
    else {
      binding_observe_algorithm(row, arguments, &options);
      if (!binding_perform(call, row, &options)) told = Py_NewRef(Py_None);
    }
  }
  Py_XDECREF(given.keeper);
  if (!plan || !told) { /* an exception after the creation of the plan releases the plan, too */
    kjit_destroy_plan(plan);
    binding_destroy_call(call);
    return told;
  }
  Py_DECREF(told);
  return binding_make_plan(context, plan, call);
}

static PyMethodDef functions[] = {
  { "run_algorithm", (PyCFunction)(void (*)(void))run_algorithm, METH_VARARGS | METH_KEYWORDS,
    NULL },
  { NULL, NULL, 0, NULL },
};

int binding_add_algorithms(PyObject *module)
{
  if (PyModule_AddFunctions(module, functions) || binding_add_plans(module)) return -1;
  return binding_add_solvers(module) || binding_add_shortcuts(module) || binding_add_lines(module)
           ? -1
           : 0;
}
