/* Implements the operators of arrays. An operator records an operation, which can be computed
 * later. kjit.numpy defines the operations with functions in this file. */
#include "expression.h"

static PyObject *operate_at_once; /* function of kjit.numpy: operate(row, operands), for operands of
                                   * any kind */

/* Rows of kjit.numpy's table for Python's operators. */
#define BINARY(row) \
  row(add) row(subtract) row(multiply) row(divide) row(floor_divide) row(remainder) \
    row(bitwise_and) row(bitwise_or) row(bitwise_xor) row(bitwise_left_shift) \
      row(bitwise_right_shift)
#define UNARY(row) row(negative) row(positive) row(abs) row(bitwise_invert)
#define COMPARISONS(row) \
  row(less) row(less_equal) row(equal) row(not_equal) row(greater) row(greater_equal)
#define NAME(name) ROW_##name,
enum { BINARY(NAME) UNARY(NAME) COMPARISONS(NAME) OPERATOR_COUNT };
#undef NAME
#define NAME(name) #name,
static const char *const names[] = { BINARY(NAME) UNARY(NAME) COMPARISONS(NAME) };
#undef NAME
static long rows[OPERATOR_COUNT]; /* row numbers in the table */

/* Imports kjit.numpy, which defines the operations, at the first operator. */
static int make_ready(void)
{
  if (operate_at_once) return 0;
  PyObject *module = PyImport_ImportModule("kjit.numpy");
  Py_XDECREF(module);
  if (module && !operate_at_once)
    PyErr_SetString(PyExc_ImportError,
                    "operators of kjit arrays cannot be used while kjit.numpy is being imported");
  return module && operate_at_once ? 0 : -1;
}

static PyObject *call_at_once(long row, PyObject *const *operands, int count)
{
  PyObject *tuple = PyTuple_New(count);
  for (int i = 0; tuple && i < count; i++) PyTuple_SetItem(tuple, i, Py_NewRef(operands[i]));
  PyObject *result = tuple ? PyObject_CallFunction(operate_at_once, "lO", row, tuple) : NULL;
  Py_XDECREF(tuple);
  return result;
}

/* Returns whether an operation is delayed until its result is needed. */
static int is_put_off(const array_object *array)
{
  if (expression_mode == FUSE_NEVER || expression_captures) return 0;
  const binding_pending *pending = array->pending;
  for (int i = 0; i < pending->operand_count; i++) {
    PyObject *operand = pending->operands[i];
    if (Py_TYPE(operand) == binding_array_type && binding_is_shared((array_object *)operand))
      return 0;
  }
  return 1;
}

static PyObject *operate(long row, PyObject *const *operands, int count)
{
  array_object *array = expression_record(row, operands, count);
  if (!array) return PyErr_Occurred() ? NULL : call_at_once(row, operands, count);
  if (is_put_off(array) || !binding_evaluate(array)) return (PyObject *)array;
  Py_DECREF((PyObject *)array);
  return NULL;
}

static int is_fitting(const array_object *made, const array_object *out)
{
  const kjit_tensor *a = &made->pending->tensor;
  const kjit_tensor *b = out->pending ? &out->pending->tensor : kjit_get_tensor(out->array);
  if (!b || out->is_read_only || made->pending->element != binding_get_element(out)) return 0;
  if (a->rank != b->rank || made->device != out->device) return 0;
  for (int i = 0; i < a->rank; i++)
    if (a->shape[i] != b->shape[i]) return 0;
  return 1;
}

PyObject *expression_operate(long row, PyObject *const *operands, int count)
{
  return make_ready() ? NULL : operate(row, operands, count);
}

PyObject *expression_record_element(PyObject *view)
{
  if (!operate_at_once || binding_get_element((array_object *)view) == KJIT_BOOL) return NULL;
  array_object *made = expression_record(rows[ROW_positive], &view, 1);
  if (!made) return NULL;
  if (!is_put_off(made)) {
    Py_DECREF((PyObject *)made);
    return NULL;
  }
  made->is_read_only = BINDING_ELEMENT;
  made->pending->is_element = 1;
  return (PyObject *)made;
}

int expression_operate_into(long row, PyObject *const *operands, int count, array_object *out)
{
  array_object *made = make_ready() ? NULL : expression_record(row, operands, count);
  if (!made) return PyErr_Occurred() ? -1 : 0;
  int outcome = is_fitting(made, out) ? expression_store(made, out, NULL, 0) ? -1 : 1 : 0;
  Py_DECREF((PyObject *)made);
  return outcome;
}

/* Implements in-place operators such as self += other. If the operation cannot be recorded or its
 * result does not fit self, kjit.numpy computes it or raises the exception. If self is a copied
 * element or a result without dimensions, the result is a new array, as for a scalar of NumPy. */
static PyObject *operate_in_place(long row, PyObject *self, PyObject *other)
{
  PyObject *operands[] = { self, other };
  if (binding_is_scalar((array_object *)self)) return operate(row, operands, 2);
  array_object *out = (array_object *)self, *made = expression_record(row, operands, 2);
  if (!made && PyErr_Occurred()) return NULL;
  if (!made || !is_fitting(made, out)) {
    Py_XDECREF((PyObject *)made);
    return PyObject_CallFunction(operate_at_once, "l(OO)O", row, self, other, self);
  }
  int outcome = expression_store(made, out, NULL, 1);
  Py_DECREF((PyObject *)made);
  return outcome ? NULL : Py_NewRef(self);
}

#define OF_TWO(name) \
  static PyObject *operate_##name(PyObject *a, PyObject *b) \
  { \
    PyObject *operands[] = { a, b }; \
    return make_ready() ? NULL : operate(rows[ROW_##name], operands, 2); \
  } \
  static PyObject *operate_##name##_in_place(PyObject *a, PyObject *b) \
  { \
    return make_ready() ? NULL : operate_in_place(rows[ROW_##name], a, b); \
  }
#define OF_ONE(name) \
  static PyObject *operate_##name(PyObject *a) \
  { \
    return make_ready() ? NULL : operate(rows[ROW_##name], &a, 1); \
  }
BINARY(OF_TWO)
UNARY(OF_ONE)

PyObject *binding_compare(PyObject *a, PyObject *b, int op)
{
  static const int row_of[] = {
    [Py_LT] = ROW_less,      [Py_LE] = ROW_less_equal, [Py_EQ] = ROW_equal,
    [Py_NE] = ROW_not_equal, [Py_GT] = ROW_greater,    [Py_GE] = ROW_greater_equal
  };
  PyObject *operands[] = { a, b };
  return make_ready() ? NULL : operate(rows[row_of[op]], operands, 2);
}

#define SLOTS(slot, name) \
  { Py_nb_##slot, (void *)operate_##name }, \
  { \
    Py_nb_inplace_##slot, (void *)operate_##name##_in_place \
  }
static const PyType_Slot operator_slots[] = {
  SLOTS(add, add),
  SLOTS(subtract, subtract),
  SLOTS(multiply, multiply),
  SLOTS(true_divide, divide),
  SLOTS(floor_divide, floor_divide),
  SLOTS(remainder, remainder),
  SLOTS(and, bitwise_and),
  SLOTS(or, bitwise_or),
  SLOTS(xor, bitwise_xor),
  SLOTS(lshift, bitwise_left_shift),
  SLOTS(rshift, bitwise_right_shift),
  { Py_nb_negative, (void *)operate_negative },
  { Py_nb_positive, (void *)operate_positive },
  { Py_nb_absolute, (void *)operate_abs },
  { Py_nb_invert, (void *)operate_bitwise_invert },
};

size_t binding_copy_operators(PyType_Slot *slots)
{
  if (slots) memcpy(slots, operator_slots, sizeof operator_slots);
  return sizeof operator_slots / sizeof *operator_slots;
}

/* ---- for kjit.numpy ---- */

/* operate(row, x, ...): returns a pending array for the operation. */
static PyObject *operate_row(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
  (void)module;
  if (count < 2 || count > EXPRESSION_MOST_OPERANDS + 1) {
    PyErr_SetString(PyExc_TypeError, "operate(row, x, ...) takes one to three operands");
    return NULL;
  }
  long row = PyLong_AsLong(args[0]);
  return row == -1 && PyErr_Occurred() ? NULL : operate(row, args + 1, (int)count - 1);
}

/* store(row, operands, out, where): computes a row and stores the result in out. Returns None, or
 * NotImplemented for operands whose operations cannot be recorded. */
static PyObject *store(PyObject *module, PyObject *args)
{
  (void)module;
  long row;
  PyObject *operands, *out, *where, *items[EXPRESSION_MOST_OPERANDS];
  if (!PyArg_ParseTuple(args, "lO!O!O", &row, &PyTuple_Type, &operands, binding_array_type, &out,
                        &where))
    return NULL;
  Py_ssize_t count = PyTuple_Size(operands);
  if (count < 1 || count > EXPRESSION_MOST_OPERANDS) Py_RETURN_NOTIMPLEMENTED;
  for (Py_ssize_t i = 0; i < count; i++) items[i] = PyTuple_GetItem(operands, i);
  array_object *made = expression_record(row, items, (int)count);
  if (!made) return PyErr_Occurred() ? NULL : Py_NewRef(Py_NotImplemented);
  int outcome = expression_store(made, (array_object *)out, where == Py_None ? NULL : where, 0);
  Py_DECREF((PyObject *)made);
  return outcome ? NULL : Py_NewRef(Py_None);
}

/* collect(array): returns (key, operations, inputs) of a pending array, or None. */
static PyObject *collect(PyObject *module, PyObject *object)
{
  (void)module;
  binding_expression e;
  array_object *array = (array_object *)object;
  if (Py_TYPE(object) != binding_array_type || !array->pending) Py_RETURN_NONE;
  if (expression_collect(array, &e)) return NULL;
  return array->pending ? expression_describe(&e) : Py_NewRef(Py_None);
}

/* mark_parts(array): marks that the expression was computed as part of another expression. */
static void mark_parts(array_object *array)
{
  binding_pending *pending = array->pending;
  if (pending->was_part) return;
  pending->was_part = 1;
  for (int i = 0; i < pending->operand_count; i++)
    if (Py_TYPE(pending->operands[i]) == binding_array_type &&
        ((array_object *)pending->operands[i])->pending)
      mark_parts((array_object *)pending->operands[i]);
}

static PyObject *mark(PyObject *module, PyObject *object)
{
  (void)module;
  if (Py_TYPE(object) == binding_array_type && ((array_object *)object)->pending)
    mark_parts((array_object *)object);
  Py_RETURN_NONE;
}

/* tell(array): returns (whether it is pending, key, number of launches that have computed it,
 * whether one kernel has computed several operations, whether it is a recorded copy of an
 * element). */
static PyObject *tell(PyObject *module, PyObject *object)
{
  (void)module;
  if (Py_TYPE(object) != binding_array_type) {
    PyErr_Format(PyExc_TypeError, "%R is not a kjit.Array", (PyObject *)Py_TYPE(object));
    return NULL;
  }
  const array_object *array = (const array_object *)object;
  PyObject *is_element = expression_find_view(object) ? Py_True : Py_False;
  return Py_BuildValue("(OOiiO)", array->pending ? Py_True : Py_False,
                       array->key ? array->key : Py_None, array->launch_count, array->was_fused,
                       is_element);
}

static PyObject *is_pending(PyObject *module, PyObject *object)
{
  (void)module;
  return PyBool_FromLong(Py_TYPE(object) == binding_array_type &&
                         ((array_object *)object)->pending);
}

/* Returns whether Ctrl-C has ended the last request for a buffer of an array that is still pending,
 * and resets this state. NumPy discards every exception of such a request, and then calls
 * __array__. */
static PyObject *take_interrupt(PyObject *module, PyObject *object)
{
  (void)module;
  if (Py_TYPE(object) != binding_array_type) Py_RETURN_FALSE;
  array_object *array = (array_object *)object;
  int is_interrupted = array->is_interrupted && array->pending;
  array->is_interrupted = 0;
  return PyBool_FromLong(is_interrupted);
}

static PyObject *set_mode(PyObject *module, PyObject *args)
{
  (void)module;
  int before = expression_mode;
  if (!PyArg_ParseTuple(args, "i", &expression_mode)) return NULL;
  return PyLong_FromLong(before);
}

static PyObject *compute(PyObject *module, PyObject *object)
{
  (void)module;
  if (Py_TYPE(object) != binding_array_type) {
    PyErr_Format(PyExc_TypeError, "%R is not a kjit.Array", (PyObject *)Py_TYPE(object));
    return NULL;
  }
  return binding_evaluate((array_object *)object) ? NULL : Py_NewRef(Py_None);
}

static PyObject *compute_all(PyObject *module, PyObject *unused)
{
  (void)module, (void)unused;
  return binding_evaluate_all() ? NULL : Py_NewRef(Py_None);
}

static PyObject *set_context(PyObject *module, PyObject *object)
{
  (void)module;
  if (!PyObject_TypeCheck(object, binding_context_type)) {
    PyErr_SetString(PyExc_TypeError, "expected a context");
    return NULL;
  }
  PyObject *before = (PyObject *)expression_context;
  expression_context = (context_object *)Py_NewRef(object);
  Py_XDECREF(before);
  Py_RETURN_NONE;
}

/* set_operations(context, numbers, find, operate, functions, choose, fail, store, are_counted):
 * sets the functions of kjit.numpy that the operators of arrays call. numbers: the row of each
 * operator. find returns the kernel of a row, and operate computes a row at once. See
 * expression_set_functions for the other arguments. */
static PyObject *set_operations(PyObject *module, PyObject *args)
{
  PyObject *context, *numbers, *find, *at_once, *functions, *choose, *fail, *copy;
  int are_counted;
  if (!PyArg_ParseTuple(args, "OO!OOO!OOOp", &context, &PyTuple_Type, &numbers, &find, &at_once,
                        &PyDict_Type, &functions, &choose, &fail, &copy, &are_counted))
    return NULL;
  if (PyTuple_Size(numbers) != OPERATOR_COUNT) {
    PyErr_Format(PyExc_ValueError, "expected %d rows", (int)OPERATOR_COUNT);
    return NULL;
  }
  for (int i = 0; i < OPERATOR_COUNT; i++) rows[i] = PyLong_AsLong(PyTuple_GetItem(numbers, i));
  PyObject *done = PyErr_Occurred() ? NULL : set_context(module, context);
  if (!done) return NULL;
  expression_set_rows(find);
  expression_set_functions(functions, choose, fail, copy, are_counted);
  binding_set(&operate_at_once, Py_NewRef(at_once));
  return done;
}

/* set_scalar_types(types): sets the NumPy scalar classes and kjit's names of their types. */
static PyObject *set_scalars(PyObject *module, PyObject *types)
{
  (void)module;
  PyObject *numbers = PyDict_New(), *class, *name;
  Py_ssize_t place = 0;
  while (numbers && PyDict_Next(types, &place, &class, &name)) {
    kjit_type element;
    PyObject *text = binding_parse_element(expression_context, name, &element);
    PyObject *number = text ? PyLong_FromLong((long)element) : NULL;
    if (!number || PyDict_SetItem(numbers, class, number)) Py_CLEAR(numbers);
    Py_XDECREF(number);
  }
  if (!numbers) return NULL;
  expression_set_scalars(numbers);
  Py_DECREF(numbers);
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
  { "set_scalar_types", set_scalars, METH_O, NULL },
  { "operate", (PyCFunction)(void (*)(void))operate_row, METH_FASTCALL, NULL },
  { "store", store, METH_VARARGS, NULL },
  { "collect", collect, METH_O, NULL },
  { "mark", mark, METH_O, NULL },
  { "is_pending", is_pending, METH_O, NULL },
  { "take_interrupt", take_interrupt, METH_O, NULL },
  { "tell", tell, METH_O, NULL },
  { "set_fusing", set_mode, METH_VARARGS, NULL },
  { "compute", compute, METH_O, NULL },
  { "compute_all", compute_all, METH_NOARGS, NULL },
  { "set_expression_context", set_context, METH_O, NULL },
  { "set_operations", set_operations, METH_VARARGS, NULL },
  { NULL, NULL, 0, NULL },
};

int binding_add_expressions(PyObject *module)
{
  PyObject *tuple = PyTuple_New(OPERATOR_COUNT);
  for (int i = 0; tuple && i < OPERATOR_COUNT; i++)
    PyTuple_SetItem(tuple, i, PyUnicode_FromString(names[i]));
  int outcome = tuple ? PyModule_AddObjectRef(module, "operators", tuple) : -1;
  Py_XDECREF(tuple);
  return outcome ? -1 : PyModule_AddFunctions(module, functions);
}
