/* Records the results of element-wise operations as pending arrays. */
#include "expression.h"

context_object *expression_context;
int expression_mode = FUSE_LATER, expression_captures;
uint64_t expression_changes, expression_walks, binding_recorded;

/* ---- operations ---- */

/* The types of operands as one number with a byte for each operand: a kjit type, or the kind of a
 * Python number. */
enum {
  NUMBER_OF_PYTHON = 0x80,
  NUMBER_BOOL = NUMBER_OF_PYTHON,
  NUMBER_INT,
  NUMBER_FLOAT,
  NUMBER_COMPLEX
};
_Static_assert((int)KJIT_SCALAR_COUNT < (int)NUMBER_OF_PYTHON, "a type is a byte");

enum { MOST_ROWS = 256, MOST_KNOWN = 16384 };
/* Operations by number, and for each row of kjit.numpy's table its operations by operand types. */
static binding_operation *operations;
static uint32_t operation_count, operation_capacity;
typedef struct known_types {
  uint64_t types;
  uint32_t operation;
} known_types;
static struct {
  known_types *known;
  int count, capacity;
} rows[MOST_ROWS];
static PyObject *find_kernel;  /* function of kjit.numpy: find(row, operands) */
static PyObject *scalar_types; /* dictionary of NumPy's scalar classes and the numbers of kjit's
                                * types, or NULL until it is set */

const binding_operation *expression_get_operation(uint32_t number) { return &operations[number]; }

int expression_set_rows(PyObject *find)
{
  binding_set(&find_kernel, Py_NewRef(find));
  return 0;
}

void expression_set_scalars(PyObject *types) { binding_set(&scalar_types, Py_NewRef(types)); }

static void *grow(void *items, int count, int *capacity, size_t size)
{
  if (count < *capacity) return items;
  int wanted = *capacity ? 2 * *capacity : 8;
  void *grown = PyMem_Realloc(items, (size_t)wanted * size);
  if (!grown) return PyErr_NoMemory();
  *capacity = wanted;
  return grown;
}

static int add_operation(long row, uint64_t types, const binding_operation *made)
{
  int capacity = (int)operation_capacity;
  void *grown = grow(operations, (int)operation_count, &capacity, sizeof *operations);
  if (!grown) return -1;
  operations = grown;
  operation_capacity = (uint32_t)capacity;
  grown = grow(rows[row].known, rows[row].count, &rows[row].capacity, sizeof(known_types));
  if (!grown) return -1;
  rows[row].known = grown;
  rows[row].known[rows[row].count++] = (known_types){ types, operation_count };
  operations[operation_count] = *made;
  Py_INCREF(made->kernel);
  return (int)operation_count++;
}

/* Asks kjit.numpy for the operation of a row with these operand types. Operands that are not valid
 * make kjit.numpy raise an exception. Returns the number of the operation, or -1 with an
 * exception. */
static int ask_operation(long row, uint64_t types, PyObject *const *operands, int count)
{
  PyObject *tuple = PyTuple_New(count);
  for (int i = 0; tuple && i < count; i++) PyTuple_SetItem(tuple, i, Py_NewRef(operands[i]));
  PyObject *answer = tuple ? PyObject_CallFunction(find_kernel, "lO", row, tuple) : NULL;
  binding_operation made = { .types = types };
  const char *scalar, *result;
  int number = -1;
  if (answer && PyArg_ParseTuple(answer, "Ossp", &made.kernel, &scalar, &result, &made.is_cheap)) {
    kjit_context *context = expression_context->context;
    kjit_status status = kjit_parse_type(context, scalar, &made.scalar);
    if (status == KJIT_OK) status = kjit_parse_type(context, result, &made.result);
    if (!binding_finish(expression_context, status)) number = add_operation(row, types, &made);
  }
  Py_XDECREF(answer);
  Py_XDECREF(tuple);
  return number;
}

static int find_operation(long row, uint64_t types, PyObject *const *operands, int count)
{
  for (int i = 0; i < rows[row].count; i++)
    if (rows[row].known[i].types == types) return (int)rows[row].known[i].operation;
  return ask_operation(row, types, operands, count);
}

/* ---- operands ---- */

static const kjit_tensor *look_at(const array_object *array)
{
  return array->pending ? &array->pending->tensor : kjit_get_tensor(array->array);
}

kjit_type binding_get_element(const array_object *array)
{
  return array->pending ? array->pending->element : kjit_get_array_element(array->array);
}

const kjit_tensor *binding_look_at_array(PyObject *object)
{
  const array_object *array = (const array_object *)object;
  if (array->pending && array->context->generation == binding_generation)
    return &array->pending->tensor;
  return binding_get_tensor(object);
}

/* Returns the byte that expression_read_types stores for an operand's type, or -1 if kjit.numpy has
 * to handle the operand. */
static int find_type(PyObject *object)
{
  PyTypeObject *type = Py_TYPE(object);
  if (type == binding_array_type) {
    const array_object *array = (const array_object *)object;
    if (array->context != expression_context || array->context->generation != binding_generation)
      return -1;
    kjit_type element = binding_get_element(array);
    return element < KJIT_SCALAR_COUNT ? (int)element : -1;
  }
  if (type == &PyFloat_Type) return NUMBER_FLOAT;
  if (type == &PyBool_Type) return NUMBER_BOOL;
  if (type == &PyLong_Type) return NUMBER_INT;
  if (type == &PyComplex_Type) return NUMBER_COMPLEX;
  PyObject *known = scalar_types ? PyDict_GetItem(scalar_types, (PyObject *)type) : NULL;
  return known ? (int)PyLong_AsLong(known) : -1;
}

int expression_read_types(PyObject *const *operands, int count, uint64_t *types)
{
  *types = 0;
  for (int i = 0; i < count; i++) {
    int type = find_type(operands[i]);
    if (type < 0) return 0;
    *types = *types << 8 | (unsigned)type;
  }
  return 1;
}

/* Broadcasts the result's shape with an operand. Returns 0 if the shapes do not broadcast or the
 * devices differ. */
static int add_shape(kjit_tensor *result, int64_t *shape, const kjit_tensor *tensor, int is_first)
{
  if (is_first) {
    result->device_type = tensor->device_type;
    result->device_id = tensor->device_id;
    result->rank = tensor->rank;
    for (int i = 0; i < tensor->rank; i++) shape[i] = tensor->shape[i];
    return 1;
  }
  if (result->device_type != tensor->device_type || result->device_id != tensor->device_id)
    return 0;
  int more = tensor->rank - result->rank;
  if (more > 0) {
    memmove(shape + more, shape, (size_t)result->rank * sizeof *shape);
    for (int i = 0; i < more; i++) shape[i] = 1;
    result->rank = tensor->rank;
  }
  int skipped = result->rank - tensor->rank;
  for (int i = 0; i < tensor->rank; i++) {
    int64_t *extent = &shape[skipped + i];
    if (*extent == tensor->shape[i] || tensor->shape[i] == 1) continue;
    if (*extent != 1) return 0;
    *extent = tensor->shape[i];
  }
  return 1;
}

/* Returns whether an integer is in the range of an integer type. */
static int is_in_range(PyObject *number, kjit_type type)
{
  int overflow;
  long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
  if (overflow) return 0;
  switch (type) {
  case KJIT_I8: return value >= INT8_MIN && value <= INT8_MAX;
  case KJIT_I16: return value >= INT16_MIN && value <= INT16_MAX;
  case KJIT_I32: return value >= INT32_MIN && value <= INT32_MAX;
  case KJIT_I64: return 1;
  case KJIT_U8: return value >= 0 && value <= UINT8_MAX;
  case KJIT_U16: return value >= 0 && value <= UINT16_MAX;
  case KJIT_U32: return value >= 0 && value <= UINT32_MAX;
  case KJIT_U64: return value >= 0;
  default: return 0;
  }
}

/* Returns whether all Python integers among the operands are in the range of the operation's type.
 * If not, kjit.numpy handles the operation. */
static int has_integers(const binding_operation *operation, PyObject *const *operands, int count)
{
  kjit_type type = operation->scalar;
  if (type < KJIT_I8 || type > KJIT_U64) return 1;
  for (int i = 0; i < count; i++) {
    if (Py_TYPE(operands[i]) != &PyLong_Type || is_in_range(operands[i], type)) continue;
    if (type != KJIT_U64) return 0;
    if (PyLong_AsUnsignedLongLong(operands[i]) == (unsigned long long)-1 && PyErr_Occurred()) {
      PyErr_Clear();
      return 0;
    }
  }
  return 1;
}

/* Converts a number to the operation's type: a Python number to float or int, or a Python or NumPy
 * number to a NumPy scalar. Returns a new reference, or NULL with an exception. */
static PyObject *convert_number(const binding_operation *operation, PyObject *number)
{
  PyTypeObject *type = Py_TYPE(number);
  int is_float = operation->scalar == KJIT_F32 || operation->scalar == KJIT_F64;
  if (type == &PyFloat_Type && is_float) return Py_NewRef(number);
  if (type == &PyLong_Type && is_float) {
    double value = PyLong_AsDouble(number);
    return value == -1 && PyErr_Occurred() ? NULL : PyFloat_FromDouble(value);
  }
  if (type == &PyLong_Type && is_in_range(number, operation->scalar)) return Py_NewRef(number);
  return PyObject_CallMethod(operation->kernel, "typed_number", "O", number);
}

/* ---- pending arrays ---- */

static array_object *all_pending;

static void list_pending(array_object *array)
{
  binding_pending *pending = array->pending;
  pending->previous = NULL;
  pending->next = all_pending;
  if (all_pending) all_pending->pending->previous = array;
  all_pending = array;
}

static void unlist_pending(array_object *array)
{
  const binding_pending *pending = array->pending;
  if (pending->previous) pending->previous->pending->next = pending->next;
  else all_pending = pending->next;
  if (pending->next) pending->next->pending->previous = pending->previous;
}

static void free_pending(binding_pending *pending)
{
  for (int i = 0; i < pending->operand_count; i++) Py_XDECREF(pending->operands[i]);
  PyMem_Free(pending);
}

void expression_drop(array_object *array)
{
  binding_pending *pending = array->pending;
  if (!pending) return;
  expression_changes++;
  unlist_pending(array);
  while (pending->readers) binding_remove_edge(pending->readers);
  for (int i = 0; i < pending->operand_count; i++) {
    const binding_edge *edge = &pending->edges[i];
    const array_object *operand = (const array_object *)pending->operands[i];
    if (edge->place && operand->pending) operand->pending->reader_count--;
    binding_remove_edge(&pending->edges[i]);
  }
  array->pending = NULL;
  free_pending(pending);
}

/* Moves the readers of a formerly pending array to its memory block. */
static int move_readers(array_object *array, binding_edge *readers)
{
  if (!readers) return 0;
  binding_block *block = binding_get_block(array);
  if (!block) return -1;
  for (binding_edge *edge = readers, *next; edge; edge = next) {
    next = edge->next;
    binding_remove_edge(edge);
    binding_add_edge(&block->readers, edge, edge->reader);
  }
  return 0;
}

int binding_adopt(array_object *array, kjit_array *computed)
{
  if (array->pending->readers && !binding_get_block(array)) {
    kjit_release_array(computed);
    return -1;
  }
  array->array = computed;
  int outcome = move_readers(array, array->pending->readers);
  expression_drop(array);
  return outcome;
}

/* Returns a pending array to compute, or NULL. Arrays that a parent process created before a fork,
 * and arrays whose elements another thread is storing in other memory, are not computed. */
static array_object *find_computable(void)
{
  array_object *array = all_pending;
  while (array && (array->context->generation != binding_generation || array->pending->is_spent))
    array = array->pending->next;
  return array;
}

int binding_evaluate_all(void)
{
  for (array_object *array; (array = find_computable());) {
    Py_INCREF((PyObject *)array);
    int outcome = expression_evaluate(array);
    Py_DECREF((PyObject *)array);
    if (outcome < 0) return -1;
  }
  return 0;
}

static int attach_operand(array_object *array, int i)
{
  binding_pending *pending = array->pending;
  array_object *operand = (array_object *)pending->operands[i];
  if (operand->pending) {
    binding_add_edge(&operand->pending->readers, &pending->edges[i], array);
    operand->pending->reader_count++;
    return 0;
  }
  binding_block *block = binding_get_block(operand);
  if (!block) return -1;
  binding_add_edge(&block->readers, &pending->edges[i], array);
  return 0;
}

/* Converts the numbers among the operands of a new operation. The conversion may run Python code,
 * so other threads may reallocate the table of operations meanwhile. */
static int convert_operands(binding_pending *pending, PyObject *const *operands, int count)
{
  for (int i = 0; i < count; i++) {
    int is_array = Py_TYPE(operands[i]) == binding_array_type;
    pending->operands[i] = is_array ? Py_NewRef(operands[i])
                                    : convert_number(&operations[pending->operation], operands[i]);
    if (!pending->operands[i]) return -1;
    pending->operand_count = i + 1;
  }
  return 0;
}

/* Makes other code aware of a pending array: it is listed, and its operands know that it reads
 * them. No Python code runs here, so no thread finds an array with only some of its operands. */
static int publish(array_object *array)
{
  binding_recorded++;
  list_pending(array);
  for (int i = 0; i < array->pending->operand_count; i++)
    if (Py_TYPE(array->pending->operands[i]) == binding_array_type && attach_operand(array, i))
      return -1;
  return 0;
}

static array_object *make_pending(int number, PyObject *const *operands, int count,
                                  kjit_device *device, const kjit_tensor *tensor,
                                  const int64_t *shape)
{
  array_object *array = (array_object *)binding_new_object(binding_array_type);
  binding_pending *pending = array ? PyMem_Calloc(1, sizeof *pending) : NULL;
  if (!pending) {
    Py_XDECREF((PyObject *)array);
    return (array_object *)PyErr_NoMemory();
  }
  array->context = (context_object *)Py_NewRef((PyObject *)expression_context);
  array->device = device;
  pending->operation = (uint32_t)number;
  pending->element = operations[number].result;
  kjit_tensor own = kjit_make_tensor(NULL, pending->element, 0, NULL);
  own.device_type = tensor->device_type;
  own.device_id = tensor->device_id;
  own.rank = tensor->rank;
  memcpy(pending->shape, shape, sizeof pending->shape);
  own.shape = pending->shape;
  pending->tensor = own;
  if (convert_operands(pending, operands, count)) {
    free_pending(pending);
    Py_DECREF((PyObject *)array);
    return NULL;
  }
  array->pending = pending;
  if (!publish(array)) return array;
  Py_DECREF((PyObject *)array);
  return NULL;
}

/* Size of the expression that an operation on some operands would have. */
typedef struct tally {
  int operations, inputs, array_count;
  uint64_t walk;
  const PyObject *arrays[EXPRESSION_MOST_OPERATIONS * EXPRESSION_MOST_OPERANDS];
} tally;

static void count_input(tally *t, PyObject *object)
{
  const int most = sizeof t->arrays / sizeof *t->arrays;
  if (Py_TYPE(object) == binding_array_type) {
    for (int i = 0; i < t->array_count; i++)
      if (t->arrays[i] == object) return;
    if (t->array_count < most) t->arrays[t->array_count++] = object;
  }
  t->inputs++;
}

/* Counts operations and arrays exactly, each once. */
static void count_parts(tally *t, PyObject *object)
{
  const array_object *array = (const array_object *)object;
  if (Py_TYPE(object) != binding_array_type || !array->pending) {
    count_input(t, object);
    return;
  }
  binding_pending *pending = array->pending;
  if (pending->visit == t->walk) return;
  pending->visit = t->walk;
  t->operations++;
  for (int i = 0; i < pending->operand_count; i++) count_parts(t, pending->operands[i]);
}

/* Adds upper bounds of the numbers that count_parts counts, which takes less time. */
static void count_quickly(tally *t, PyObject *object)
{
  const array_object *array = (const array_object *)object;
  int is_pending = Py_TYPE(object) == binding_array_type && array->pending;
  t->operations += is_pending ? array->pending->operation_count : 0;
  t->inputs += is_pending ? array->pending->input_count : 1;
}

static int fits(const tally *t)
{
  return t->operations <= EXPRESSION_MOST_OPERATIONS && t->inputs <= EXPRESSION_MOST_INPUTS;
}

array_object *expression_find_longest(PyObject *const *operands, int count)
{
  array_object *longest = NULL;
  for (int i = 0; i < count; i++) {
    array_object *operand = expression_as_pending(operands[i]);
    if (operand &&
        (!longest || operand->pending->operation_count > longest->pending->operation_count))
      longest = operand;
  }
  return longest;
}

/* Computes operands until the remaining expression fits one kernel, and counts its operations and
 * arrays. */
static int shorten(PyObject *const *operands, int count, tally *t)
{
  for (;;) {
    *t = (tally){ .operations = 1 };
    for (int i = 0; i < count; i++) count_quickly(t, operands[i]);
    if (fits(t)) return 0;
    *t = (tally){ .operations = 1, .walk = ++expression_walks };
    for (int i = 0; i < count; i++) count_parts(t, operands[i]);
    array_object *longest = expression_find_longest(operands, count);
    if (fits(t) || !longest) return 0;
    if (binding_evaluate(longest)) return -1;
  }
}

static array_object *record(long row, PyObject *const *operands, int count)
{
  uint64_t types = 0;
  kjit_tensor tensor = { 0 };
  int64_t shape[BINDING_MAX_RANK];
  int array_count = 0;
  kjit_device *device = NULL;
  if (!expression_context || row < 0 || row >= MOST_ROWS) return NULL;
  for (int i = 0; i < count; i++) {
    int type = find_type(operands[i]);
    if (type < 0) return NULL;
    types = types << 8 | (unsigned)type;
    if (Py_TYPE(operands[i]) != binding_array_type) continue;
    const kjit_tensor *own = look_at((const array_object *)operands[i]);
    device = ((const array_object *)operands[i])->device;
    if (!own || !add_shape(&tensor, shape, own, !array_count++)) return NULL;
  }
  if (!array_count) return NULL;
  tally t;
  int number = find_operation(row, types, operands, count);
  if (number < 0 || !has_integers(&operations[number], operands, count)) return NULL;
  if (shorten(operands, count, &t)) return NULL;
  array_object *made = make_pending(number, operands, count, device, &tensor, shape);
  if (!made) return NULL;
  made->pending->operation_count = t.operations;
  made->pending->input_count = t.inputs;
  made->is_result = !tensor.rank;
  return made;
}

/* An operation on a recorded copy of an element reads the view that the copy reads. */
array_object *expression_record(long row, PyObject *const *operands, int count)
{
  PyObject *sources[EXPRESSION_MOST_OPERANDS] = { NULL };
  for (int i = 0; i < count; i++) {
    array_object *view = expression_find_view(operands[i]);
    sources[i] = Py_NewRef(view ? (PyObject *)view : operands[i]);
  }
  array_object *made = record(row, sources, count);
  for (int i = 0; i < count; i++) Py_DECREF(sources[i]);
  return made;
}
