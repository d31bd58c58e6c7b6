/* Selects the recorded operations that become one kernel, and describes the expression that they
 * form. */
#include "expression.h"

static int64_t count_elements(const kjit_tensor *tensor)
{
  int64_t count = 1;
  for (int i = 0; i < tensor->rank; i++) count *= tensor->shape[i];
  return count;
}

/* Returns whether an operand is computed separately, before the array's kernel runs. There are
 * three such cases. First, a thread is already computing the operand. Second, an earlier kernel
 * computed the operand within a larger expression and did not store it, and later expressions may
 * need it again. Third, the operand is not cheap to compute and has fewer elements than the array,
 * so the array's kernel would compute each element of the operand repeatedly. */
static int is_computed_apart(const array_object *operand, const array_object *array)
{
  const binding_pending *pending = operand->pending;
  if (pending->busy) return 1;
  if (pending->was_part && Py_REFCNT((PyObject *)operand) > pending->reader_count) return 1;
  int is_costly =
    pending->operation_count > 2 || !expression_get_operation(pending->operation)->is_cheap;
  return is_costly && count_elements(&pending->tensor) < count_elements(&array->pending->tensor);
}

static array_object *find_apart(array_object *array, const array_object *outermost, uint64_t walk)
{
  const binding_pending *pending = array->pending;
  for (int i = 0; i < pending->operand_count; i++) {
    array_object *operand = expression_as_pending(pending->operands[i]);
    if (!operand || operand->pending->visit == walk) continue;
    operand->pending->visit = walk;
    if (is_computed_apart(operand, outermost)) return operand;
    array_object *found = find_apart(operand, outermost, walk);
    if (found) return found;
  }
  return NULL;
}

/* Adds a number or array to the inputs, unless the array is already listed, and returns its
 * index. */
static int add_input(binding_expression *e, PyObject *object, kjit_type type)
{
  int is_array = Py_TYPE(object) == binding_array_type;
  for (int i = 0; is_array && i < e->input_count; i++)
    if (e->inputs[i] == object) return i;
  e->has_more_inputs = e->has_more_inputs || e->input_count == EXPRESSION_MOST_INPUTS;
  if (e->has_more_inputs) return 0;
  e->inputs[e->input_count] = object;
  e->types[e->input_count] = is_array ? KJIT_ANY : type;
  return e->input_count++;
}

static void put(binding_expression *e, unsigned byte)
{
  e->key[e->key_size++] = (unsigned char)byte;
}

static int add_node(binding_expression *e, array_object *array, uint64_t walk)
{
  binding_pending *pending = array->pending;
  const binding_operation *operation = expression_get_operation(pending->operation);
  unsigned char places[EXPRESSION_MOST_OPERANDS] = { 0 };
  for (int i = 0; i < pending->operand_count; i++) {
    array_object *operand = expression_as_pending(pending->operands[i]);
    if (operand && operand->pending->visit != walk) add_node(e, operand, walk);
    places[i] = operand ? (unsigned char)(EXPRESSION_IS_OPERATION | operand->pending->index)
                        : (unsigned char)add_input(e, pending->operands[i], operation->scalar);
  }
  pending->visit = walk;
  pending->index = e->node_count;
  put(e, pending->operation >> 8);
  put(e, pending->operation & 0xff);
  for (int i = 0; i < pending->operand_count; i++) put(e, places[i]);
  memcpy(e->places[e->node_count], places, sizeof places);
  e->nodes[e->node_count++] = array;
  return pending->index;
}

/* Adds the memory layout of an input to the key, because the compiled code depends on it. */
static void put_layout(binding_expression *e, PyObject *input, const kjit_tensor *result)
{
  if (Py_TYPE(input) != binding_array_type) return put(e, 0xff);
  const kjit_tensor *t = kjit_get_tensor(((const array_object *)input)->array);
  unsigned repeated = 0;
  int64_t stride = 1;
  int is_dense = 1;
  for (int i = t->rank - 1; i >= 0; i--) {
    int64_t own = t->strides ? t->strides[i] : stride;
    if (t->shape[i] > 1 && own != stride) is_dense = 0;
    if (t->shape[i] == 1 || own == 0) repeated |= 1u << i;
    stride *= t->shape[i];
  }
  int is_line = t->rank && (!t->strides || t->strides[t->rank - 1] == 1);
  put(e, (unsigned)(t->rank | is_dense << 4 | is_line << 5));
  put(e, count_elements(t) == count_elements(result) ? 0 : repeated);
}

/* Lists the operands of an expression with a single operation. The func of the operation has one
 * parameter for each operand, even if two operands are the same array. */
static void list_operands_apart(const array_object *array, binding_expression *e)
{
  const binding_pending *pending = array->pending;
  kjit_type scalar = expression_get_operation(pending->operation)->scalar;
  enum { KEY_OF_OPERATION = 2 };
  for (int i = 0; i < pending->operand_count; i++) {
    e->inputs[i] = pending->operands[i];
    e->types[i] = Py_TYPE(e->inputs[i]) == binding_array_type ? (kjit_type)KJIT_ANY : scalar;
    e->key[KEY_OF_OPERATION + i] = e->places[0][i] = (unsigned char)i;
  }
  e->input_count = pending->operand_count;
}

/* Computes the operands that are computed separately, each with an expression of its own. */
static int compute_separate_operands(array_object *array)
{
  array_object *apart;
  while (array->pending && (apart = find_apart(array, array, ++expression_walks))) {
    Py_INCREF((PyObject *)apart);
    int outcome = binding_evaluate(apart);
    Py_DECREF((PyObject *)apart);
    if (outcome) return -1;
  }
  return 0;
}

/* Computes the operand with the most operations, so that the rest of the expression has fewer
 * inputs. */
static int compute_longest_operand(const array_object *array)
{
  const binding_pending *pending = array->pending;
  array_object *longest = expression_find_longest(pending->operands, pending->operand_count);
  /* longest is not NULL: without pending operands, the operation would have fewer inputs than the
   * maximum */
  Py_INCREF((PyObject *)longest);
  int outcome = binding_evaluate(longest);
  Py_DECREF((PyObject *)longest);
  return outcome;
}

int expression_collect(array_object *array, binding_expression *e)
{
  /* If parts of an expression are computed separately, the expression can get more inputs than it
   * had when it was recorded. For example, (a + b) * a * b has two inputs; if the sum is computed
   * separately, it becomes a third input. */
  do {
    if (compute_separate_operands(array)) return -1;
    e->node_count = e->input_count = e->has_more_inputs = 0;
    e->key_size = 0;
    if (!array->pending) return 0;
    add_node(e, array, ++expression_walks);
    if (e->has_more_inputs && compute_longest_operand(array)) return -1;
  } while (e->has_more_inputs);
  if (e->node_count == 1) list_operands_apart(array, e);
  const kjit_tensor *result = &array->pending->tensor;
  put(e, 0xfe);
  put(e, (unsigned)result->device_type);
  put(e, (unsigned)result->device_id);
  put(e, (unsigned)result->rank);
  for (int i = 0; i < e->input_count; i++) put_layout(e, e->inputs[i], result);
  return 0;
}

static PyObject *describe_node(const binding_expression *e, int number)
{
  const binding_pending *pending = e->nodes[number]->pending;
  PyObject *tuple = PyTuple_New(pending->operand_count + 1);
  if (!tuple) return NULL;
  PyTuple_SetItem(tuple, 0, Py_NewRef(expression_get_operation(pending->operation)->kernel));
  for (int i = 0; i < pending->operand_count; i++) {
    long place = e->places[number][i];
    if (place & EXPRESSION_IS_OPERATION) place = -1 - (place & ~EXPRESSION_IS_OPERATION);
    PyTuple_SetItem(tuple, i + 1, PyLong_FromLong(place));
  }
  return tuple;
}

PyObject *expression_make_key(const binding_expression *e)
{
  return PyBytes_FromStringAndSize((const char *)e->key, (Py_ssize_t)e->key_size);
}

PyObject *expression_describe(const binding_expression *e)
{
  PyObject *nodes = PyTuple_New(e->node_count), *inputs = PyTuple_New(e->input_count);
  for (int i = 0; nodes && i < e->node_count; i++) {
    PyObject *node = describe_node(e, i);
    if (!node || PyTuple_SetItem(nodes, i, node)) Py_CLEAR(nodes);
  }
  for (int i = 0; inputs && i < e->input_count; i++)
    PyTuple_SetItem(inputs, i, Py_NewRef(e->inputs[i]));
  PyObject *key = nodes && inputs ? expression_make_key(e) : NULL;
  PyObject *described = key ? PyTuple_Pack(3, key, nodes, inputs) : NULL;
  Py_XDECREF(key);
  Py_XDECREF(nodes);
  Py_XDECREF(inputs);
  return described;
}
