/* Funcs called from Python, on the CPU. The Python class kjit.Function derives from Function here,
 * which calls its method _load() for the module of kernel IR at the first call, and again in a
 * forked process. */
#include "binding.h"

#include <stdlib.h>

static PyTypeObject *function_type;

/* Maximum number of arguments of a call. The language has no such limit, but real programs stay
 * below it. */
#define MOST 64
/* Maximum size of a result whose memory is on the stack. A tuple of 1024 numbers fits; structs with
 * arrays can be larger. */
#define MOST_RESULT_BYTES ((size_t)1024 * 16)

/* Maximum number of argument signatures that a func object remembers, so that calls with these
 * types run no Python code. */
#define MOST_NOTED 32

typedef struct function_object {
  PyObject_HEAD module_object *module; /* NULL before the func is loaded */
  kjit_function *function;             /* owned by the module */
  PyObject *driver;                    /* object that is called in place of the func, or NULL */
  unsigned generation;                 /* process generation when the func was loaded */
  /* 0 before the first call, which compiles the func. Later calls rarely compile. */
  int has_run;
  int keeps_types; /* see load() */
  binding_parameters parameters;
  /* keys of the argument types whose calls _note_call has seen; see note() */
  uint64_t noted[MOST_NOTED];
  int noted_count; /* negative if the Python class has no _note_call */
} function_object;

/* Loads the func. _load() returns (module, name, parameters, defaults, is_typed, keeps_types), or
 * an object to call instead. keeps_types: results are NumPy scalars if a Python number would lose
 * the type. */
static int load(function_object *self)
{
  PyObject *made = PyObject_CallMethod((PyObject *)self, "_load", NULL);
  if (!made) return -1;
  int outcome = 0;
  if (!PyTuple_Check(made)) binding_set(&self->driver, Py_NewRef(made));
  else {
    PyObject *module, *names, *defaults;
    const char *name;
    int is_typed, keeps_types;
    kjit_function *function = NULL;
    outcome = PyArg_ParseTuple(made, "O!sO!Opp", binding_module_type, &module, &name, &PyTuple_Type,
                               &names, &defaults, &is_typed, &keeps_types)
                ? 0
                : -1;
    if (!outcome) {
      module_object *loaded = (module_object *)module;
      outcome = binding_finish(loaded->context, kjit_get_function(loaded->module, name, &function));
    }
    if (!outcome) {
      module_object *old = self->module;
      self->module = (module_object *)Py_NewRef(module);
      Py_XDECREF((PyObject *)old);
      binding_set_parameters(&self->parameters, (PyObject *)self, names, defaults, is_typed);
      self->function = function;
      self->keeps_types = keeps_types;
      int is_noted = PyObject_HasAttrString((PyObject *)self, "_note_call");
      self->noted_count = is_noted ? 0 : -1;
    }
  }
  if (!outcome) self->generation = binding_generation;
  Py_DECREF(made);
  return outcome;
}

/* ---- results ---- */

/* How results become objects: Python numbers or, with `keeps_types`, NumPy scalars for types that
 * Python numbers do not have. */
typedef struct result_reader {
  kjit_context *context;
  int keeps_types;
} result_reader;

static PyObject *make_number(const result_reader *reader, kjit_type type, const void *bytes)
{
  PyObject *value = binding_make_value(type, bytes);
  const char *name = binding_get_numpy_name(type);
  if (!value || !reader->keeps_types || !name || type == KJIT_BOOL || type == KJIT_I64 ||
      type == KJIT_F64 || type == KJIT_C128)
    return value;
  PyObject *numpy = PyImport_ImportModule("numpy");
  PyObject *scalar = numpy ? PyObject_CallMethod(numpy, name, "O", value) : NULL;
  Py_XDECREF(numpy);
  Py_DECREF(value);
  return scalar;
}

static PyObject *make_result(const result_reader *reader, const char *text, const char *bytes,
                             size_t *size, size_t *alignment);

/* Returns the end of the tuple item that begins at text. */
static const char *find_end(const char *text)
{
  int depth = 0;
  for (; *text; text++) {
    if (*text == '(' || *text == '[') depth++;
    if ((*text == ')' || *text == ']') && depth-- == 0) return text;
    if (*text == ',' && depth == 0) return text;
  }
  return text;
}

/* Creates the tuple item at *at and moves *at past the item. */
static PyObject *make_item(const result_reader *reader, const char *text, size_t length,
                           const char *bytes, size_t *at, size_t *alignment)
{
  char *part = strndup(text, length);
  if (!part) return PyErr_NoMemory();
  /* the layout is computed first, and then the item is read at its aligned position */
  size_t size = 0, own = 1;
  PyObject *item = make_result(reader, part, NULL, &size, &own);
  *at = (*at + own - 1) / own * own;
  if (item) binding_set(&item, make_result(reader, part, bytes ? bytes + *at : NULL, &size, &own));
  free(part);
  *at += size;
  if (own > *alignment) *alignment = own;
  return item;
}

/* Makes a tuple such as "(f32, (i64, bool))" from bytes in the layout of a C struct. */
static PyObject *make_tuple(const result_reader *reader, const char *text, const char *bytes,
                            size_t *size, size_t *alignment)
{
  PyObject *list = PyList_New(0);
  size_t at = 0;
  *alignment = 1;
  for (text++; list && *text && *text != ')';) {
    const char *end = find_end(text);
    PyObject *item = make_item(reader, text, (size_t)(end - text), bytes, &at, alignment);
    if (!item || PyList_Append(list, item)) Py_CLEAR(list);
    Py_XDECREF(item);
    for (text = end; *text == ',' || *text == ' ';) text++;
  }
  *size = (at + *alignment - 1) / *alignment * *alignment;
  PyObject *tuple = list ? PyList_AsTuple(list) : NULL;
  Py_XDECREF(list);
  return tuple;
}

/* Makes a NumPy record. kjit._records knows the struct layout by its name. */
static PyObject *make_record(const char *name, const char *bytes, size_t *size, size_t *alignment)
{
  PyObject *records = PyImport_ImportModule("kjit._records"), *value = NULL;
  PyObject *layout = records ? PyObject_CallMethod(records, "size_and_alignment", "s", name) : NULL;
  if (layout && PyArg_ParseTuple(layout, "nn", (Py_ssize_t *)size, (Py_ssize_t *)alignment))
    value = !bytes ? Py_NewRef(Py_None)
                   : PyObject_CallMethod(records, "scalar", "sy#", name, bytes, (Py_ssize_t)*size);
  Py_XDECREF(layout);
  Py_XDECREF(records);
  return value;
}

/* Creates the Python object of a result or of an item. If bytes is NULL, returns None and computes
 * only size and alignment. */
static PyObject *make_result(const result_reader *reader, const char *text, const char *bytes,
                             size_t *size, size_t *alignment)
{
  if (*text == '(') return make_tuple(reader, text, bytes, size, alignment);
  if (binding_names_record(text)) return make_record(text, bytes, size, alignment);
  kjit_type type;
  kjit_type_layout layout = { .size_bytes = sizeof layout };
  if (binding_names_date(text)) {
    int64_t count = 0;
    *size = *alignment = sizeof count;
    if (!bytes) Py_RETURN_NONE;
    memcpy(&count, bytes, sizeof count);
    return binding_make_date(text, count);
  }
  if (kjit_parse_type(reader->context, text, &type) != KJIT_OK || type >= KJIT_SCALAR_COUNT ||
      kjit_get_type_layout(reader->context, type, &layout) != KJIT_OK)
    return binding_fail(KJIT_ERROR_UNSUPPORTED,
                        "a value of type %s cannot be represented in Python", text);
  *size = layout.type_bytes;
  *alignment = layout.alignment_bytes;
  if (!bytes) Py_RETURN_NONE;
  return make_number(reader, type, bytes);
}

static PyObject *take_result(const result_reader *reader, const kjit_arg *result)
{
  if (result->kind != KJIT_ARG_BY_ADDRESS) return make_number(reader, result->type, &result->value);
  char *text = kjit_copy_type_text(reader->context, result->type);
  if (!text) return PyErr_NoMemory();
  size_t size, alignment;
  PyObject *value = make_result(reader, text, result->value.address, &size, &alignment);
  kjit_free(reader->context, text);
  return value;
}

/* ---- the types of calls ---- */

/* Calls a method with a call's arguments as a tuple, and one more object. */
static PyObject *call_method(function_object *self, const char *method, PyObject *const *items,
                             Py_ssize_t count, PyObject *last)
{
  PyObject *tuple = PyTuple_New(count);
  for (Py_ssize_t i = 0; tuple && i < count; i++) PyTuple_SetItem(tuple, i, Py_NewRef(items[i]));
  if (!tuple) return NULL;
  PyObject *result = PyObject_CallMethod((PyObject *)self, method, "(OO)", tuple, last);
  Py_DECREF(tuple);
  return result;
}

static uint64_t mix(uint64_t key, uint64_t number)
{
  key = (key ^ number) * 0x9e3779b97f4a7c15u;
  return key ^ key >> 29;
}

/* Returns whether an array is contiguous, with the last dimension innermost or, if is_reversed, the
 * first. */
static int is_contiguous(const kjit_tensor *t, int is_reversed)
{
  int64_t expected = 1;
  for (int i = 0; t->strides && i < t->rank; i++) {
    int d = is_reversed ? i : t->rank - 1 - i;
    if (t->shape[d] != 1 && t->strides[d] != expected) return 0;
    expected *= t->shape[d];
  }
  return t->strides || !is_reversed || t->rank < 2;
}

/* Returns a key of the argument types. Calls with different types have different keys. */
static uint64_t make_key(const kjit_arg *list, Py_ssize_t count)
{
  uint64_t key = (uint64_t)count;
  for (Py_ssize_t i = 0; i < count; i++) {
    const kjit_arg *arg = &list[i];
    key = mix(key, (uint64_t)arg->kind << 40 | (uint64_t)arg->access << 32 | (uint32_t)arg->type);
    if (arg->kind != KJIT_ARG_TENSOR) continue;
    const kjit_tensor *t = arg->value.tensor;
    int layout = is_contiguous(t, 0) << 1 | is_contiguous(t, 1);
    key = mix(key, (uint64_t)t->rank << 40 | (uint64_t)layout << 32 | (uint64_t)t->code << 24 |
                     (uint64_t)t->bits << 16 | t->lanes);
  }
  return key;
}

/* Passes the first call with new types to the method _note_call of kjit.njit. */
static int note(function_object *self, PyObject *const *args, const kjit_arg *list,
                Py_ssize_t count, PyObject *result)
{
  uint64_t key = make_key(list, count);
  for (int i = 0; i < self->noted_count && i < MOST_NOTED; i++)
    if (self->noted[i] == key) return 0;
  if (self->noted_count < MOST_NOTED) self->noted[self->noted_count++] = key;
  PyObject *done = call_method(self, "_note_call", args, count, result);
  Py_XDECREF(done);
  return done ? 0 : -1;
}

/* ---- calls ---- */

static kjit_status describe_parameter(void *function, size_t index, kjit_parameter_info *info)
{
  return kjit_get_function_parameter_info(function, index, info);
}

/* Calls the func. A result of more than MOST_RESULT_BYTES is written to memory of its own, which
 * the caller has to free. If there is no memory for such a result, sets *missing_bytes to its size
 * and returns KJIT_OK. */
static kjit_status call_code(function_object *self, context_object *context,
                             kjit_function *function, const kjit_arg *list, size_t count,
                             kjit_arg *result, void **own, size_t *missing_bytes)
{
  size_t size_bytes = MOST_RESULT_BYTES;
  kjit_status status;
  BINDING_LONG(context,
               status = kjit_call_function_into(function, list, count, &size_bytes, result),
               .what = "run", .object = (PyObject *)self);
  *own = NULL;
  if (size_bytes <= MOST_RESULT_BYTES) return status;
  *own = malloc(size_bytes);
  if (!*own) {
    *missing_bytes = size_bytes;
    return KJIT_OK;
  }
  result->value.address = *own;
  BINDING_LONG(context,
               status = kjit_call_function_into(function, list, count, &size_bytes, result),
               .what = "run", .object = (PyObject *)self);
  return status;
}

static PyObject *call_with(function_object *self, PyObject *const *args, Py_ssize_t count)
{
  Py_ssize_t taken = 0;
  if (count > MOST)
    return binding_fail(KJIT_ERROR_ARGUMENT,
                        "a function takes at most %d arguments; each item of a tuple counts as one",
                        MOST);
  if (binding_check_protection(describe_parameter, self->function, &self->parameters, args, count))
    return NULL;
  /* keeps the func, because another thread may load it again meanwhile */
  module_object *module = (module_object *)Py_NewRef((PyObject *)self->module);
  context_object *context = module->context;
  kjit_function *function = self->function;
  uint64_t recorded = binding_recorded;
  binding_argument storage[MOST];
  kjit_arg list[MOST];
  max_align_t room[MOST_RESULT_BYTES / sizeof(max_align_t)];
  kjit_arg result = kjit_make_arg(KJIT_ARG_BY_ADDRESS, KJIT_ANY);
  result.value.address = room;
  for (; taken < count; taken++)
    if (binding_take_parameter(context, &self->parameters, taken, args[taken], &storage[taken],
                               &list[taken]))
      break;
  PyObject *value = NULL;
  if (taken == count &&
      (recorded == binding_recorded || !binding_compute_all_late_readers(args, count))) {
    void *own;
    size_t missing_bytes = 0;
    binding_interruptible saved = { 0 };
    if (context->is_interruptible || !self->has_run) binding_begin_interruptible(context, &saved);
    kjit_status status =
      call_code(self, context, function, list, (size_t)count, &result, &own, &missing_bytes);
    const result_reader reader = { context->context, self->keeps_types };
    if (binding_finish_interruptible(context, status, &saved)) {
      /* the exception is set */
    } else if (missing_bytes) {
      binding_fail(KJIT_ERROR_MEMORY, "out of memory: the result of the function has %zu bytes",
                   missing_bytes);
    } else {
      self->has_run = 1;
      value = take_result(&reader, &result);
      if (value && self->noted_count >= 0 && note(self, args, list, count, value)) Py_CLEAR(value);
    }
    free(own);
  }
  for (Py_ssize_t i = 0; i < taken; i++) binding_free_argument(&storage[i]);
  Py_DECREF((PyObject *)module);
  return value;
}

/* ---- arguments that only kjit.njit can convert ---- */

/* Returns whether an argument is a tuple, a record, a function, None or a string. */
static int is_composed(PyObject *const *items, Py_ssize_t count)
{
  for (Py_ssize_t i = 0; i < count; i++)
    if (items[i] == Py_None || PyUnicode_Check(items[i]) || binding_is_composed(items[i])) return 1;
  return 0;
}

/* Calls the compiled code. The methods _call_composed and _call_otherwise of kjit.njit handle
 * arguments that the code does not accept and results that it cannot return. */
static PyObject *call_any(function_object *self, PyObject *const *items, Py_ssize_t count)
{
  if (count <= MOST && is_composed(items, count) &&
      PyObject_HasAttrString((PyObject *)self, "_call_composed"))
    return call_method(self, "_call_composed", items, count, Py_None);
  PyObject *result = call_with(self, items, count);
  /* _call_composed and _call_otherwise do not accept more than MOST arguments */
  if (result || count > MOST) return result;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  int has_other_way = PyObject_HasAttrString((PyObject *)self, "_call_otherwise");
  if (has_other_way) result = call_method(self, "_call_otherwise", items, count, value);
  if (!has_other_way || result == Py_NotImplemented) {
    Py_CLEAR(result);
    PyErr_Restore(type, value, trace);
    return NULL;
  }
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(trace);
  return result;
}

/* _forget(): the next call loads the function again. */
static PyObject *forget(PyObject *object, PyObject *none)
{
  (void)none;
  ((function_object *)object)->generation = binding_generation - 1;
  Py_CLEAR(((function_object *)object)->driver);
  Py_RETURN_NONE;
}

static PyObject *call_driver(function_object *self, PyObject *args, PyObject *keywords)
{
  PyObject *driver = Py_NewRef(self->driver), *result = PyObject_Call(driver, args, keywords);
  Py_DECREF(driver);
  return result;
}

static PyObject *call_function(PyObject *object, PyObject *args, PyObject *keywords)
{
  function_object *self = (function_object *)object;
  int is_ready = (self->function || self->driver) && self->generation == binding_generation;
  if (!is_ready && load(self)) return NULL;
  if (self->driver) return call_driver(self, args, keywords);
  PyObject *items[MOST];
  Py_ssize_t given = PyTuple_Size(args);
  for (Py_ssize_t i = 0; i < given && i < MOST; i++) items[i] = PyTuple_GetItem(args, i);
  if (given > MOST || (!keywords && given == self->parameters.count))
    return call_any(self, items, given);
  PyObject *arranged = binding_arrange(&self->parameters, items, given, keywords);
  if (!arranged) return NULL;
  Py_ssize_t count = PyTuple_Size(arranged);
  for (Py_ssize_t i = 0; i < count && i < MOST; i++) items[i] = PyTuple_GetItem(arranged, i);
  PyObject *result = call_any(self, items, count);
  Py_DECREF(arranged);
  return result;
}

/* ---- the base of kjit.Function ---- */

static int traverse_function(PyObject *object, visitproc visit, void *arg)
{
  function_object *self = (function_object *)object;
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(self->parameters.defaults);
  Py_VISIT(self->driver);
  return 0;
}

static int clear_function(PyObject *object)
{
  Py_CLEAR(((function_object *)object)->driver);
  return 0;
}

static void free_function(PyObject *object)
{
  function_object *self = (function_object *)object;
  PyTypeObject *type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  Py_CLEAR(self->driver);
  binding_clear_parameters(&self->parameters);
  Py_XDECREF((PyObject *)self->module);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
  Py_DECREF(type);
}

static PyMethodDef methods[] = {
  { "_forget", forget, METH_NOARGS, NULL },
  { NULL, NULL, 0, NULL },
};
static PyType_Slot function_slots[] = {
  { Py_tp_methods, methods },
  { Py_tp_dealloc, (void *)free_function },
  { Py_tp_traverse, (void *)traverse_function },
  { Py_tp_clear, (void *)clear_function },
  { Py_tp_call, (void *)call_function },
  { Py_tp_doc, (void *)"Base class of kjit.Function." },
  { 0, NULL },
};
static PyType_Spec function_spec = { "kjit._kjit.Function", sizeof(function_object), 0,
                                     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
                                     function_slots };

/* ---- threads ---- */

_Thread_local uint32_t binding_cpu_threads;

/* set_threads(n): sets the maximum number of threads for launches of this thread on the CPU; 0
 * means the default. */
static PyObject *set_threads(PyObject *unused, PyObject *number)
{
  (void)unused;
  long value = PyLong_AsLong(number);
  if (value == -1 && PyErr_Occurred()) return NULL;
  if (value < 0 || value > 256) {
    PyErr_SetString(PyExc_ValueError, "the number of threads must be from 0 to 256");
    return NULL;
  }
  binding_cpu_threads = (uint32_t)value;
  Py_RETURN_NONE;
}

static PyObject *get_threads(PyObject *unused, PyObject *none)
{
  (void)unused, (void)none;
  return PyLong_FromUnsignedLong(binding_cpu_threads);
}

static PyMethodDef functions[] = {
  { "set_threads", set_threads, METH_O, NULL },
  { "get_threads", get_threads, METH_NOARGS, NULL },
  { NULL, NULL, 0, NULL },
};

int binding_add_functions(PyObject *module)
{
  function_type = binding_make_type(module, &function_spec);
  return function_type ? PyModule_AddFunctions(module, functions) : -1;
}
