/* Computes pending arrays. It runs all operations in an expression as a single kernel. If this
 * kernel is not compiled yet, it runs the operations one by one. */
#include "algorithm.h"
#include "expression.h"

#include <unistd.h>

/* Functions of kjit.numpy; see expression_set_functions. */
static PyObject *functions, *choose_function, *report_failure, *store_computed;
static int operands_are_counted;

void expression_set_functions(PyObject *known, PyObject *choose, PyObject *fail, PyObject *store,
                              int are_counted)
{
  binding_set(&functions, Py_NewRef(known));
  binding_set(&choose_function, Py_NewRef(choose));
  binding_set(&report_failure, Py_NewRef(fail));
  binding_set(&store_computed, Py_NewRef(store));
  operands_are_counted = are_counted;
}

/* How an expression is computed. */
typedef struct choice {
  PyObject *key;
  /* func that computes the whole expression; NULL means that the operations run one by one */
  PyObject *function;
  PyObject *line;  /* line (see line.c) of the func, or NULL */
  PyObject *later; /* callable that compiles the func, or NULL */
  /* true if an earlier call chose the same func, whose code then probably exists */
  int is_known;
} choice;

/* ---- running a kernel ---- */

static kjit_arg make_number(PyObject *number, kjit_type type)
{
  double real = PyFloat_CheckExact(number) ? PyFloat_AsDouble(number) : 0;
  if (type == KJIT_F64) return kjit_arg_f64(real);
  if (type == KJIT_F32) return kjit_arg_f32((float)real);
  kjit_arg arg = kjit_make_arg(KJIT_ARG_VALUE, type);
  arg.value.i = PyLong_AsLongLong(number);
  return arg;
}

static int hand_over(algorithm_call *call, PyObject *input, kjit_type type)
{
  int is_plain = PyFloat_CheckExact(input) || PyLong_CheckExact(input);
  if (type == KJIT_ANY || !is_plain) return binding_add_operand(call, input, "x") ? 0 : -1;
  binding_begin_argument(&call->objects[call->object_count]);
  call->operands[call->operand_count++] =
    kjit_operand_of(call->values[call->object_count++] = make_number(input, type));
  return 0;
}

/* Returns whether the result and the inputs have few elements. */
static int is_small(const binding_expression *e, const kjit_array *out)
{
  int64_t most = 1;
  const kjit_tensor *tensor = kjit_get_tensor(out);
  for (int k = 0; tensor && k < tensor->rank; k++) most *= tensor->shape[k];
  return tensor && most * (1 + e->node_count) <= ALGORITHM_FEW_ELEMENTS;
}

/* Computes the expression into out. Returns 0, or -1 with an exception. */
static int run_map(context_object *context, kjit_device *device, const binding_expression *e,
                   const choice *made, kjit_array *out, PyObject *where)
{
  static const algorithm_row *map;
  if (!map) map = binding_find_algorithm("map");
  algorithm_call *call = binding_create_call(context);
  if (!call) return -1;
  kjit_algorithm_options options = { .size_bytes = sizeof options, .device = device };
  algorithm_argument *arguments = call->arguments;
  call->is_short = made->is_known && is_small(e, out);
  call->operands[call->operand_count++] = kjit_operand_of(kjit_arg_array(out));
  arguments[0] = (algorithm_argument){ .operands = &call->operands[0], .count = 1 };
  arguments[2] =
    (algorithm_argument){ .operands = &call->operands[1], .count = (size_t)e->input_count };
  int outcome = binding_get_pair(context, made->function, &arguments[1].function);
  for (int i = 0; !outcome && i < e->input_count; i++)
    outcome = hand_over(call, e->inputs[i], e->types[i]);
  if (!outcome && where && !(options.where = binding_add_operand(call, where, "where")))
    outcome = -1;
  if (!outcome) outcome = binding_perform(call, map, &options);
  binding_destroy_call(call);
  return outcome;
}

/* Marks the arrays of an expression while a thread computes it, so that other threads do not change
 * them. */
static void set_busy(const binding_expression *e, unsigned long thread)
{
  for (int i = 0; i < e->node_count; i++) e->nodes[i]->pending->busy = thread;
}

static int run_busy(array_object *array, const binding_expression *e, const choice *made,
                    kjit_array *out, PyObject *where)
{
  set_busy(e, PyThread_get_thread_ident());
  int done = made->line && !where ? expression_run_line(made->line, e, array, out) : 0;
  if (!done) done = run_map(array->context, array->device, e, made, out, where) ? -1 : 1;
  set_busy(e, 0);
  return done > 0 ? 0 : -1;
}

/* Returns whether other threads have computed parts of the expression since it was collected, or
 * are computing them. */
static int is_stale(const binding_expression *e, uint64_t changes)
{
  if (expression_changes != changes) return 1;
  for (int i = 0; i < e->node_count; i++)
    if (e->nodes[i]->pending->busy) return 1;
  return 0;
}

/* changes: the value of expression_changes when the expression was collected. Returns the same
 * values as expression_evaluate. */
static int run_new(array_object *array, const binding_expression *e, const choice *chosen,
                   uint64_t changes)
{
  const kjit_tensor *tensor = &array->pending->tensor;
  kjit_array_config config = { .size_bytes = sizeof config,
                               .shape = tensor->shape,
                               .rank = (uint32_t)tensor->rank,
                               .element = array->pending->element,
                               .device = array->device };
  kjit_array *made = NULL;
  kjit_status status = kjit_create_array_with(&config, &made);
  if (binding_finish_array(array->context, status, made)) return -1;
  if (is_stale(e, changes)) { /* an allocator written in Python may let other threads run */
    kjit_release_array(made);
    return expression_evaluate(array);
  }
  if (run_busy(array, e, chosen, made, NULL)) {
    kjit_release_array(made);
    return -1;
  }
  for (int i = 0; i + 1 < e->node_count; i++) e->nodes[i]->pending->was_part = 1;
  array->launch_count = 1;
  array->was_fused = e->node_count > 1;
  int outcome = binding_adopt(array, made);
  if (!outcome && expression_captures) outcome = binding_open_block(array);
  return outcome;
}

/* ---- choosing the kernel ---- */

/* Finds the func of an expression and returns a new reference. The result is None if the func is
 * not compiled yet or cannot be compiled. The result is a callable if the func should be compiled
 * now; the caller must call it after it has created the result array. Returns NULL with an
 * exception. */
static PyObject *find_function(array_object *array, const binding_expression *e, choice *made)
{
  PyObject *key = made->key = expression_make_key(e);
  if (!key) return NULL;
  PyObject *known = PyDict_GetItemWithError(functions, key); /* borrowed */
  made->is_known = known != NULL;
  if (known) return Py_NewRef(known);
  if (PyErr_Occurred()) return NULL;
  PyObject *described = expression_describe(e);
  PyObject *chosen =
    described ? PyObject_CallFunction(choose_function, "OO", described, array) : NULL;
  Py_XDECREF(described);
  return chosen;
}

/* Reports the current exception to kjit.numpy and clears it. Returns -1 if the exception must reach
 * the caller, and otherwise 0; the operations then run one by one. */
static int give_up_fusing(PyObject *key)
{
  if (!PyErr_ExceptionMatches(PyExc_Exception)) return -1; /* KeyboardInterrupt */
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  PyObject *told = PyObject_CallFunctionObjArgs(report_failure, key, value, NULL);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(trace);
  Py_XDECREF(told);
  return told ? 0 : -1;
}

/* Returns an operand that has no pending operands. */
static array_object *find_innermost(array_object *array)
{
  for (;;) {
    array_object *inner = NULL;
    for (int i = 0; !inner && i < array->pending->operand_count; i++)
      inner = expression_as_pending(array->pending->operands[i]);
    if (!inner) return array;
    array = inner;
  }
}

/* Computes the operands one by one. Each is released when its last reader is computed. */
static int compute_operands(array_object *array)
{
  while (array->pending) {
    array_object *inner = find_innermost(array);
    if (inner == array) return 0;
    Py_INCREF((PyObject *)inner);
    int outcome = binding_evaluate(inner);
    Py_DECREF((PyObject *)inner);
    if (outcome) return -1;
  }
  return 0;
}

static void refuse_forked(void)
{
  binding_fail(KJIT_ERROR_FORKED, "the array was created by the parent process before a fork");
}

int expression_wait(const array_object *array)
{
  enum { MICROSECONDS = 50 };
  while (array->pending && array->pending->busy) {
    /* the thread that computes the array does not exist in a forked child */
    if (array->context->generation != binding_generation) {
      refuse_forked();
      return -1;
    }
    if (array->pending->busy == PyThread_get_thread_ident()) {
      PyErr_SetString(PyExc_RuntimeError,
                      "this thread uses the array before it has finished computing it");
      return -1;
    }
    Py_BEGIN_ALLOW_THREADS;
    usleep(MICROSECONDS);
    Py_END_ALLOW_THREADS;
    if (PyErr_CheckSignals()) return -1;
  }
  return 0;
}

/* Chooses how to compute an expression. result is the array that is computed or written. Returns 0,
 * or -1 with an exception. */
static int choose(array_object *result, const binding_expression *e, choice *made)
{
  *made = (choice){ .key = NULL };
  made->function = find_function(result, e, made);
  if (!made->function) return -1;
  if (PyTuple_Check(made->function)) return 0;
  if (expression_is_line(made->function)) {
    made->line = made->function;
    made->function = Py_NewRef(expression_get_pair(made->line));
    return 0;
  }
  if (made->function != Py_None) made->later = Py_NewRef(made->function);
  Py_CLEAR(made->function);
  return 0;
}

static int compile_later(const choice *made)
{
  if (!made->later) return 0;
  PyObject *told = PyObject_CallNoArgs(made->later);
  Py_XDECREF(told);
  return told ? 0 : -1;
}

static void free_choice(choice *made)
{
  Py_XDECREF(made->key);
  Py_XDECREF(made->function);
  Py_XDECREF(made->line);
  Py_XDECREF(made->later);
}

/* Computes the operations one by one. Returns the same values as expression_evaluate. */
static int compute_apart(array_object *array, const choice *made, int count)
{
  int outcome = compute_operands(array) ? -1 : expression_evaluate(array);
  if (outcome) return outcome;
  array->launch_count = count;
  array->was_fused = 0;
  return compile_later(made);
}

/* ---- copies of elements ---- */

array_object *expression_find_view(PyObject *object)
{
  const array_object *array = expression_as_pending(object);
  if (!array || !array->pending->is_element) return NULL;
  PyObject *view = array->pending->operands[0];
  return expression_as_pending(view) ? NULL : (array_object *)view;
}

/* Copies an element within the device's memory, which takes less time than a kernel. */
static int copy_element(array_object *array, array_object *view)
{
  kjit_array *made = NULL;
  Py_INCREF((PyObject *)view);
  array->pending->busy = PyThread_get_thread_ident();
  kjit_status status = binding_copy_array(array->device, view->array, &made);
  int outcome = binding_finish_array(array->context, status, made);
  array->pending->busy = 0;
  Py_DECREF((PyObject *)view);
  if (!outcome) outcome = binding_adopt(array, made);
  if (!outcome && expression_captures) outcome = binding_open_block(array);
  return outcome;
}

array_object *expression_begin_reading(array_object *array)
{
  array_object *view = expression_find_view((PyObject *)array);
  if (!view || array->pending->busy || array->context->generation != binding_generation)
    return NULL;
  array->pending->busy = PyThread_get_thread_ident();
  return (array_object *)Py_NewRef((PyObject *)view);
}

void expression_end_reading(array_object *array, array_object *view)
{
  array->pending->busy = 0;
  Py_DECREF((PyObject *)view);
}

/* ---- computing pending arrays ---- */

/* Returns the same values as expression_evaluate. */
static int compute(array_object *array)
{
  array_object *view = expression_find_view((PyObject *)array);
  if (view) return copy_element(array, view);
  binding_expression e;
  choice made;
  if (expression_collect(array, &e)) return -1;
  if (!array->pending) return 0;
  if (array->pending->busy) return expression_evaluate(array);
  uint64_t before = expression_changes;
  int count = e.node_count, outcome = choose(array, &e, &made);
  if (!outcome && is_stale(&e, before)) {
    free_choice(&made);
    return expression_evaluate(array);
  }
  if (!outcome && made.function) {
    outcome = run_new(array, &e, &made, before);
    if (outcome < 0 && count > 1) {
      Py_CLEAR(made.function);
      outcome = give_up_fusing(made.key);
    }
  }
  if (!outcome && !made.function) outcome = compute_apart(array, &made, count);
  if (!outcome) binding_set(&array->key, Py_NewRef(made.key));
  free_choice(&made);
  return outcome;
}

int expression_evaluate(array_object *array)
{
  Py_INCREF((PyObject *)array);
  int outcome = expression_wait(array);
  if (!outcome && array->pending) {
    if (array->context->generation != binding_generation) {
      refuse_forked();
      outcome = -1;
    } else outcome = array->pending->is_spent ? 1 : compute(array);
  }
  Py_DECREF((PyObject *)array);
  return outcome;
}

int binding_evaluate(array_object *array)
{
  int outcome = expression_evaluate(array);
  if (outcome > 0)
    PyErr_SetString(PyExc_RuntimeError, "the array was not computed yet, and an operand of its "
                                        "expression has been overwritten in place");
  return outcome ? -1 : 0;
}

/* ---- writing to an existing array ---- */

/* Returns whether an input overlaps out but does not consist of the same elements in the same
 * order. */
static int reads_elsewhere(const binding_expression *e, array_object *out)
{
  for (int i = 0; i < e->input_count; i++)
    if (Py_TYPE(e->inputs[i]) == binding_array_type &&
        binding_relation((const array_object *)e->inputs[i], out) == 2)
      return 1;
  return 0;
}

/* Marks the arrays of an expression that nothing can need after the expression has been stored
 * elsewhere: `outermost`, and operands that are referenced only by marked arrays. is_slot: the
 * interpreter holds one reference to an operand of the outermost operation, and releases it after
 * the operator. */
static void mark_spent(const binding_expression *e, const array_object *outermost, int is_slot)
{
  const binding_pending *root = outermost->pending;
  for (int i = e->node_count; i-- > 0;) { /* an operation has a higher index than its operands */
    array_object *node = e->nodes[i];
    Py_ssize_t references = node->pending->reader_count;
    for (int j = 0; is_slot && j < root->operand_count; j++)
      references += root->operands[j] == (PyObject *)node;
    int ends = node == outermost || Py_REFCNT((PyObject *)node) <= references;
    for (const binding_edge *edge = node->pending->readers; edge; edge = edge->next)
      ends = ends && edge->reader->pending->visit == root->visit && edge->reader->pending->is_spent;
    node->pending->is_spent = ends;
  }
}

static void unmark_spent(array_object *array)
{
  array->pending->is_spent = 0;
  for (int i = 0; i < array->pending->operand_count; i++) {
    array_object *operand = expression_as_pending(array->pending->operands[i]);
    if (operand && operand->pending->is_spent) unmark_spent(operand);
  }
}

/* Computes pending arrays that read the memory that will be written. Returns 1 if the expression
 * has changed. */
static int compute_other_readers(array_object *array, array_object *out,
                                 const binding_expression *e, int is_slot)
{
  if (!out->block || !out->block->readers) return 0;
  uint64_t before = expression_changes;
  mark_spent(e, array, is_slot && operands_are_counted);
  int outcome = binding_compute_readers(out->block, array->pending->visit);
  if (!outcome && is_stale(e, before)) outcome = 1;
  if (outcome && array->pending) unmark_spent(array);
  return outcome;
}

/* Returns 0 if done, 1 if the caller has to try again because the expression has changed, or -1
 * with an exception. */
static int store_fused(array_object *array, array_object *out, PyObject *where,
                       const binding_expression *e, int is_slot)
{
  choice made;
  uint64_t before = expression_changes;
  int outcome = choose(out, e, &made);
  if (!outcome) outcome = compile_later(&made);
  if (!outcome && is_stale(e, before)) outcome = 1;
  if (!outcome && !made.function) outcome = compute_operands(array) ? -1 : 1;
  if (!outcome) outcome = compute_other_readers(array, out, e, is_slot);
  if (!outcome) {
    outcome = run_busy(array, e, &made, out->array, where);
    for (int i = 0; i < e->node_count; i++) e->nodes[i]->pending->was_part = 1;
    if (outcome) unmark_spent(array);
    if (outcome && e->node_count > 1 && !give_up_fusing(made.key)) outcome = 1;
  }
  free_choice(&made);
  return outcome;
}

int expression_store(array_object *array, array_object *out, PyObject *where, int is_slot)
{
  if (out->pending && binding_evaluate(out)) return -1;
  array_object *mask = where && Py_TYPE(where) == binding_array_type ? (array_object *)where : NULL;
  if (mask && mask->pending && binding_evaluate(mask)) return -1;
  int is_mask_apart = !mask || binding_relation(mask, out) != 2;
  while (array->pending) {
    binding_expression e;
    /* another thread may be computing the array, because it writes to memory that the array
     * reads */
    if (expression_wait(array) || expression_collect(array, &e)) return -1;
    if (!array->pending || reads_elsewhere(&e, out) || !is_mask_apart) break;
    int outcome = store_fused(array, out, where, &e, is_slot);
    if (outcome <= 0) return outcome;
  }
  if (binding_evaluate(array)) return -1;
  PyObject *told = PyObject_CallFunctionObjArgs(store_computed, (PyObject *)out, (PyObject *)array,
                                                where ? where : Py_None, NULL);
  Py_XDECREF(told);
  return told ? 0 : -1;
}
