/* Implements lines. A line is a C function that computes an expression of small arrays on the CPU,
 * in a loop over contiguous arrays. The extension calls the C function directly, and not through an
 * algorithm of libkjit.
 *
 * A line replaces an expression's func in the dictionary of funcs. The line counts the computations
 * of small arrays. After MOST_USES computations it asks kjit.numpy to compile the C function on
 * another thread. Until the C function is compiled, and for all other arrays, the extension uses
 * the func. kjit.numpy makes lines only for operations whose results have the same bits in all
 * code. */
#include "kernel.h"

#include "algorithm.h"
#include "expression.h"

enum {
  /* number of computations of small arrays after which the C function is compiled */
  MOST_USES = 64,
  /* maximum of (number of elements) * (number of operations + 1) */
  MOST_ELEMENTS = 1 << 16,
  FIRST_INPUT =
    2 /* the argument of a line is an array of words: extent, address of the result, inputs */
};

typedef void (*line_function)(const uint64_t *words);

typedef struct line_object {
  PyObject_HEAD PyObject *pair; /* the func as (module, name) */
  PyObject *ask;                /* callable that compiles the C function, or NULL */
  PyObject *module;             /* module of the C function, or NULL */
  line_function function;       /* NULL until it is compiled */
  kjit_type element;            /* type of the result */
  int uses;
} line_object;

static PyTypeObject *line_type;

int expression_is_line(PyObject *object) { return Py_TYPE(object) == line_type; }

PyObject *expression_get_pair(PyObject *line) { return ((line_object *)line)->pair; }

/* Returns the address of the first element in an array on the CPU that has memory without gaps and
 * `count` elements, or NULL. */
static char *find_elements(const array_object *array, int64_t count)
{
  if (array->pending || array->producer.is_known ||
      array->context->generation != binding_generation)
    return NULL;
  const kjit_tensor *t = kjit_get_tensor(array->array);
  if (!t || t->device_type == KJIT_DEVICE_CUDA) return NULL;
  int64_t stride = 1;
  for (int i = t->rank - 1; i >= 0; i--) {
    if (t->strides && t->shape[i] > 1 && t->strides[i] != stride) return NULL;
    stride *= t->shape[i];
  }
  return stride == count ? (char *)t->data + t->byte_offset : NULL;
}

/* Writes an input as a word: an array as its elements' address, a number as its bits. Returns 0 for
 * other inputs. */
static int put_input(uint64_t *word, PyObject *input, kjit_type type, int64_t count)
{
  if (Py_TYPE(input) == binding_array_type) {
    *word = (uint64_t)(uintptr_t)find_elements((const array_object *)input, count);
    return *word != 0;
  }
  if (PyFloat_CheckExact(input) && type == KJIT_F64) {
    double value = PyFloat_AsDouble(input);
    memcpy(word, &value, sizeof value);
    return 1;
  }
  if (PyFloat_CheckExact(input) && type == KJIT_F32) {
    float value = (float)PyFloat_AsDouble(input);
    memcpy(word, &value, sizeof value);
    return 1;
  }
  if (!PyLong_CheckExact(input) || type == KJIT_F64 || type == KJIT_F32) return 0;
  int overflow = 0;
  *word = (uint64_t)PyLong_AsLongLongAndOverflow(input, &overflow);
  return !overflow;
}

/* Computes small arrays by the C function. Returns whether it has done so. */
static int run(line_object *line, const binding_expression *e, const array_object *reader,
               kjit_array *out)
{
  const kjit_tensor *t = kjit_get_tensor(out);
  int64_t count = 1;
  if (!t || kjit_get_array_element(out) != line->element) return 0;
  for (int i = 0; i < t->rank; i++) count *= t->shape[i];
  if (!count || count * (1 + e->node_count) > MOST_ELEMENTS || expression_captures) return 0;
  array_object result = { .context = reader->context, .array = out };
  uint64_t words[FIRST_INPUT + EXPRESSION_MOST_INPUTS] = { (uint64_t)count };
  words[1] = (uint64_t)(uintptr_t)find_elements(&result, count);
  int fits = words[1] != 0;
  for (int i = 0; i < e->input_count && fits; i++)
    fits = put_input(&words[FIRST_INPUT + i], e->inputs[i], e->types[i], count);
  if (!fits) return 0;
  if (!line->function) {
    line->uses++;
    return 0;
  }
  line->function(words);
  binding_count_algorithm();
  return 1;
}

int expression_run_line(PyObject *object, const binding_expression *e, const array_object *reader,
                        kjit_array *out)
{
  line_object *line = (line_object *)object;
  if (run(line, e, reader, out)) return 1;
  if (line->uses < MOST_USES || !line->ask) return 0;
  PyObject *ask = line->ask;
  line->ask = NULL;
  PyObject *told = PyObject_CallFunctionObjArgs(ask, (PyObject *)line, NULL);
  if (told == Py_False) { /* too many functions wait for the compiler */
    line->uses = 0;
    line->ask = Py_NewRef(ask);
  }
  Py_DECREF(ask);
  Py_XDECREF(told);
  return told ? 0 : -1;
}

/* ---- for kjit.numpy ---- */

/* make_line(context, pair, element, ask): returns a line for the func `pair`. ask(line) compiles
 * the C function and gives it to set_line(). */
static PyObject *make_line(PyObject *module, PyObject *args)
{
  (void)module;
  context_object *context;
  PyObject *pair, *ask;
  const char *text;
  kjit_type element;
  if (!PyArg_ParseTuple(args, "O!O!sO", binding_context_type, &context, &PyTuple_Type, &pair, &text,
                        &ask))
    return NULL;
  if (binding_finish(context, kjit_parse_type(context->context, text, &element))) return NULL;
  line_object *made = binding_new_object(line_type);
  if (!made) return NULL;
  made->pair = Py_NewRef(pair);
  made->ask = Py_NewRef(ask);
  made->element = element;
  return (PyObject *)made;
}

/* set_line(line, context, (module, name)): compiles the func `name`, whose parameter is a pointer
 * to u64, as the C function of a line. */
static PyObject *set_line(PyObject *unused, PyObject *args)
{
  (void)unused;
  line_object *line;
  context_object *context;
  PyObject *pair;
  kjit_function *function;
  line_function found = NULL;
  kjit_status status;
  if (!PyArg_ParseTuple(args, "O!O!O!", line_type, &line, binding_context_type, &context,
                        &PyTuple_Type, &pair) ||
      binding_get_pair(context, pair, &function))
    return NULL;
  BINDING_UNLOCKED(context, status = kjit_get_function_pointer(function, "void(const u64*)",
                                                               (void (**)(void)) & found));
  if (binding_finish(context, status)) return NULL;
  binding_set(&line->module, Py_NewRef(PyTuple_GetItem(pair, 0)));
  line->function = found;
  Py_RETURN_NONE;
}

/* has_function(line): returns whether the C function is compiled. */
static PyObject *has_function(PyObject *module, PyObject *object)
{
  (void)module;
  return PyBool_FromLong(Py_TYPE(object) == line_type && ((line_object *)object)->function);
}

static int traverse_line(PyObject *object, visitproc visit, void *arg)
{
  line_object *line = (line_object *)object;
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(line->pair);
  Py_VISIT(line->ask);
  Py_VISIT(line->module);
  return 0;
}

static int clear_line(PyObject *object)
{
  line_object *line = (line_object *)object;
  Py_CLEAR(line->ask);
  return 0;
}

static void free_line(PyObject *object)
{
  line_object *line = (line_object *)object;
  PyObject_GC_UnTrack(object);
  Py_XDECREF(line->pair);
  Py_XDECREF(line->ask);
  Py_XDECREF(line->module);
  binding_free_object(object);
}

static PyType_Slot slots[] = {
  { Py_tp_dealloc, (void *)free_line },
  { Py_tp_traverse, (void *)traverse_line },
  { Py_tp_clear, (void *)clear_line },
  { 0, NULL },
};
static PyType_Spec spec = { "kjit._kjit.Line", sizeof(line_object), 0,
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC |
                              Py_TPFLAGS_DISALLOW_INSTANTIATION,
                            slots };
static PyMethodDef functions[] = {
  { "has_function", has_function, METH_O, NULL },
  { "make_line", make_line, METH_VARARGS, NULL },
  { "set_line", set_line, METH_VARARGS, NULL },
  { NULL, NULL, 0, NULL },
};

int binding_add_lines(PyObject *module)
{
  line_type = binding_make_type(module, &spec);
  return line_type ? PyModule_AddFunctions(module, functions) : -1;
}
