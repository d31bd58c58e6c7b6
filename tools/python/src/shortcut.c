/* Shortcuts: functions of kjit.numpy whose repeated calls start from C. The Python function of a
 * shortcut reads its arguments' metadata, makes an array for the result and runs one algorithm. The
 * shortcut observes the first such call and keeps a recipe: the algorithm, its options, and the
 * shape and type of the result. A later call whose arguments have the same types, shapes, strides
 * and devices runs the algorithm with the recipe. All other calls go to the Python function.
 *
 * A recipe is only made if the call has performed exactly one algorithm, the function has returned
 * the array to which the algorithm has written, and all other operands are positional arguments of
 * the call. In addition, the function must not depend on the values of elements.
 *
 * Shortcuts can have a quick function (quick.h) instead of recipes, or before them. shortcut_type.c
 * has the type. */
#include "shortcut.h"

#include "algorithm.h"

enum {
  MOST_WORDS = 48,    /* maximum words of a key */
  MOST_OPERANDS = 4,  /* maximum operands of a recipe, including the result */
  MOST_CONSTANTS = 8, /* maximum Python objects that a recipe keeps alive */
  WAYS = 2,           /* number of adjacent slots of the table in which a recipe can be */
  OF_RESULT = -1,     /* marks the operand that is the result */
  /* Maximum number of elements of a pending operand on the CPU that is computed before the call. */
  MOST_COMPUTED = 1 << 14
};

/* ---- keys ---- */

/* Everything on which a recipe depends: the arguments without the contents and addresses of arrays.
 * The first word of each item contains its kind (ITEM_ARRAY and so on). */
typedef struct shortcut_key {
  uint64_t words[MOST_WORDS], hash;
  int count;
  Py_ssize_t first; /* index of the first array among the arguments, or -1 */
} shortcut_key;

enum { ITEM_ARRAY = 1, ITEM_SINGLETON, ITEM_INTEGER, ITEM_TUPLE, ITEM_NAME };

/* Adds a word to the key. Returns false if the key is full. */
static int put(shortcut_key *key, uint64_t word)
{
  if (key->count == MOST_WORDS) return 0;
  key->words[key->count++] = word;
  key->hash = (key->hash ^ word) * 0x9E3779B97F4A7C15u;
  key->hash ^= key->hash >> 29;
  return 1;
}

static int put_array(shortcut_key *key, const array_object *array)
{
  const context_object *context = array->context;
  if (array->pending || array->producer.is_known || context->generation != binding_generation)
    return 0;
  const kjit_tensor *tensor = kjit_get_tensor(array->array);
  kjit_type element = binding_get_element(array);
  if (!tensor || element >= KJIT_SCALAR_COUNT) return 0;
  uint32_t rank = (uint32_t)tensor->rank;
  int fits = put(key, ITEM_ARRAY | (uint64_t)element << 8 | (uint64_t)rank << 32) &&
             put(key, (uint64_t)(uintptr_t)context) && put(key, (uint64_t)(uintptr_t)array->device);
  for (uint32_t i = 0; i < rank && fits; i++)
    fits = put(key, (uint64_t)tensor->shape[i]) && put(key, (uint64_t)tensor->strides[i]);
  return fits;
}

static int put_integer(shortcut_key *key, PyObject *object)
{
  int overflow = 0;
  if (!PyLong_CheckExact(object)) return 0;
  long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
  return !overflow && put(key, (uint64_t)value);
}

/* Adds an argument to the key. Returns false for objects that a key cannot describe. */
static int put_object(shortcut_key *key, PyObject *object)
{
  if (Py_TYPE(object) == binding_array_type) return put_array(key, (array_object *)object);
  if (object == Py_None || object == Py_True || object == Py_False)
    return put(key, ITEM_SINGLETON) && put(key, (uint64_t)(uintptr_t)object);
  if (PyLong_CheckExact(object)) return put(key, ITEM_INTEGER) && put_integer(key, object);
  if (!PyTuple_CheckExact(object)) return 0;
  Py_ssize_t count = PyTuple_Size(object);
  int fits = put(key, ITEM_TUPLE | (uint64_t)count << 8);
  for (Py_ssize_t i = 0; i < count && fits; i++)
    fits = put_integer(key, PyTuple_GetItem(object, i));
  return fits;
}

/* Adds to the key whether an array is the same object as an earlier argument. A recipe from a call
 * with one array for two operands does not fit a call with two arrays. */
static int put_identity(shortcut_key *key, PyObject *const *args, Py_ssize_t index)
{
  Py_ssize_t same = 0;
  while (args[same] != args[index]) same++;
  return put(key, (uint64_t)same);
}

/* Makes a call's key. names: the names of the keyword arguments, whose values follow the positional
 * arguments, or NULL. Returns false if there is no shortcut for such calls. */
static int make_key(shortcut_key *key, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
  key->count = 0;
  key->hash = 0;
  key->first = -1;
  Py_ssize_t name_count = names ? PyTuple_Size(names) : 0;
  int fits = put(key, (uint64_t)count);
  for (Py_ssize_t i = 0; i < count && fits; i++) {
    int is_array = Py_TYPE(args[i]) == binding_array_type;
    if (key->first < 0 && is_array) key->first = i;
    fits = put_object(key, args[i]) && (!is_array || put_identity(key, args, i));
  }
  for (Py_ssize_t i = 0; i < name_count && fits; i++)
    fits = put(key, ITEM_NAME) && put(key, (uint64_t)(uintptr_t)PyTuple_GetItem(names, i)) &&
           Py_TYPE(args[count + i]) != binding_array_type && put_object(key, args[count + i]);
  return fits && key->first >= 0;
}

/* ---- recipes ---- */

typedef struct shortcut_recipe recipe;

struct shortcut_recipe {
  int references; /* references by the table and by running calls */
  uint64_t words[MOST_WORDS], hash;
  int word_count;
  Py_ssize_t first;
  const algorithm_row *row;
  int sources[MOST_OPERANDS]; /* index of each operand among the arguments, or OF_RESULT */
  int operand_count;
  algorithm_argument arguments[ALGORITHM_MOST_ARGUMENTS]; /* arguments of the algorithm; the
                                                             operands are set for each call */
  signed char first_operands[ALGORITHM_MOST_ARGUMENTS];   /* index of the argument's operand, or
                                                           * -1 */
  kjit_operator operator_;
  kjit_algorithm_options options;
  int32_t axes[BINDING_MAX_RANK];
  int64_t shape[BINDING_MAX_RANK];
  uint32_t rank;
  kjit_type element;
  int is_short; /* true if the call is too short to be interrupted */
  /* Objects whose addresses the key contains, or whose strings the arguments use. */
  PyObject *constants[MOST_CONSTANTS];
  int constant_count;
};

void shortcut_release_recipe(recipe *r)
{
  if (!r || --r->references) return;
  for (int i = 0; i < r->constant_count; i++) Py_DECREF(r->constants[i]);
  PyMem_Free(r);
}

static recipe *find_recipe(const shortcut_object *self, const shortcut_key *key)
{
  for (unsigned i = 0; i < WAYS; i++) {
    recipe *r = self->recipes[(key->hash ^ i) % SHORTCUT_SLOTS];
    if (r && r->hash == key->hash && r->word_count == key->count &&
        !memcmp(r->words, key->words, (size_t)key->count * sizeof *key->words))
      return r;
  }
  return NULL;
}

static void add_recipe(shortcut_object *self, recipe *made)
{
  recipe **places[WAYS];
  for (unsigned i = 0; i < WAYS; i++) places[i] = &self->recipes[(made->hash ^ i) % SHORTCUT_SLOTS];
  if (*places[0] && !*places[1]) places[0] = places[1];
  shortcut_release_recipe(*places[0]);
  *places[0] = made;
}

/* ---- observing a call ---- */

/* The call whose algorithms are observed, to make a recipe. There is at most one such call: calls
 * that other threads start meanwhile, and shortcuts that the observed function calls, are not
 * observed. */
static struct {
  int is_active, count; /* `count` is the number of algorithms that have run in this process since
                           the observed call began */
  const algorithm_row *row;
  PyObject *arguments; /* arguments of the last observed algorithm, or NULL */
  kjit_algorithm_options options;
  int32_t axes[BINDING_MAX_RANK];
} observed;

void binding_count_algorithm(void) { observed.count++; }

void binding_observe_algorithm(const algorithm_row *row, PyObject *arguments,
                               const kjit_algorithm_options *options)
{
  if (!observed.is_active) return;
  binding_set(&observed.arguments, Py_NewRef(arguments));
  observed.row = row;
  observed.options = *options;
  observed.options.axes = NULL;
  for (uint32_t i = 0; i < options->axis_count && i < BINDING_MAX_RANK; i++)
    observed.axes[i] = options->axes[i];
}

static int keep_constant(recipe *r, PyObject *object)
{
  if (r->constant_count == MOST_CONSTANTS) return 0;
  r->constants[r->constant_count++] = Py_NewRef(object);
  return 1;
}

/* The call from which a recipe is made. */
typedef struct observed_call {
  PyObject *const *args;
  Py_ssize_t count;
  PyObject *result;
} observed_call;

/* Adds an array of the observed algorithm to the recipe. Returns false for an array that is neither
 * the result nor a positional argument. */
static int add_source(recipe *r, const observed_call *call, PyObject *object, int is_result)
{
  if (r->operand_count == MOST_OPERANDS || Py_TYPE(object) != binding_array_type) return 0;
  int *source = &r->sources[r->operand_count++];
  if (is_result) {
    *source = OF_RESULT;
    return object == call->result;
  }
  for (*source = 0; *source < call->count; ++*source)
    if (call->args[*source] == object) return 1;
  return 0;
}

static int add_operator(recipe *r, PyObject *object, algorithm_argument *argument)
{
  if (!PyUnicode_Check(object)) return 0;
  r->operator_ = (kjit_operator){ .name = PyUnicode_AsUTF8AndSize(object, NULL) };
  argument->operators = &r->operator_;
  return r->operator_.name && keep_constant(r, object);
}

/* Adds argument i of the observed algorithm. Returns false if a recipe cannot contain it. */
static int add_argument(recipe *r, const observed_call *call, int i, PyObject *object)
{
  algorithm_argument *argument = &r->arguments[i];
  char letter = r->row->parameters[i];
  r->first_operands[i] = -1;
  if (object == Py_None) return letter == 'x' || letter == 'f';
  switch (letter) {
  case 'r':
  case 'x':
    r->first_operands[i] = (signed char)r->operand_count;
    return add_source(r, call, object, letter == 'r');
  case 'X': {
    r->first_operands[i] = (signed char)r->operand_count;
    argument->count = PyTuple_Check(object) ? (size_t)PyTuple_Size(object) : 0;
    int fits = argument->count > 0;
    for (size_t k = 0; k < argument->count && fits; k++)
      fits = add_source(r, call, PyTuple_GetItem(object, (Py_ssize_t)k), 0);
    return fits;
  }
  case 'o': return add_operator(r, object, argument);
  case 's':
    argument->text = PyUnicode_Check(object) ? PyUnicode_AsUTF8AndSize(object, NULL) : NULL;
    return argument->text && keep_constant(r, object);
  default: return 0;
  }
}

static int add_options(recipe *r)
{
  const kjit_algorithm_options *given = &observed.options;
  if (given->initial || given->stream || given->where || given->plan || given->results ||
      given->epilogue || given->devices || given->signature || given->work || given->work_bytes ||
      given->axis_count > BINDING_MAX_RANK)
    return 0;
  r->options = *given;
  memcpy(r->axes, observed.axes, sizeof r->axes);
  if (given->axis_count) r->options.axes = r->axes;
  return 1;
}

static int add_result(recipe *r, const shortcut_key *key, const array_object *result,
                      const array_object *model)
{
  if (result->pending || result->context != model->context || result->device != model->device ||
      result->is_read_only || result->producer.is_known)
    return 0;
  const kjit_tensor *tensor = kjit_get_tensor(result->array);
  r->element = binding_get_element(result);
  if (!tensor || r->element >= KJIT_SCALAR_COUNT || tensor->byte_offset) return 0;
  int64_t stride = 1, most = 1;
  r->rank = (uint32_t)tensor->rank;
  for (uint32_t i = r->rank; i-- > 0;) {
    r->shape[i] = tensor->shape[i];
    if (r->shape[i] > 1 && tensor->strides[i] != stride) return 0;
    stride *= r->shape[i];
  }
  memcpy(r->words, key->words, sizeof r->words);
  r->hash = key->hash;
  r->word_count = key->count;
  r->first = key->first;
  tensor = kjit_get_tensor(model->array);
  for (int i = 0; i < tensor->rank; i++) most *= tensor->shape[i];
  r->is_short = most <= ALGORITHM_FEW_ELEMENTS && stride <= ALGORITHM_FEW_ELEMENTS;
  return 1;
}

/* Makes a recipe from the observed algorithm. Returns false if such calls cannot have a recipe. */
static int fill_recipe(recipe *r, const shortcut_key *key, const observed_call *call,
                       PyObject *names)
{
  if (observed.count != 1 || !observed.arguments || Py_TYPE(call->result) != binding_array_type)
    return 0;
  r->row = observed.row;
  Py_ssize_t count = PyTuple_Size(observed.arguments);
  int has_result = 0;
  for (Py_ssize_t i = 0; i < count; i++) {
    if (!add_argument(r, call, (int)i, PyTuple_GetItem(observed.arguments, i))) return 0;
    has_result += r->row->parameters[i] == 'r';
  }
  for (Py_ssize_t i = 0; names && i < PyTuple_Size(names); i++)
    if (!keep_constant(r, PyTuple_GetItem(names, i))) return 0;
  return has_result == 1 && add_options(r) &&
         add_result(r, key, (array_object *)call->result, (array_object *)call->args[key->first]);
}

/* Calls the Python function. PyObject_Vectorcall joined the limited API in Python 3.12. */
static PyObject *call_function(const shortcut_object *self, PyObject *const *args, Py_ssize_t count,
                               PyObject *names)
{
  PyObject *tuple = PyTuple_New(count), *options = names ? PyDict_New() : NULL;
  int outcome = !tuple || (names && !options) ? -1 : 0;
  for (Py_ssize_t i = 0; i < count && !outcome; i++)
    outcome = PyTuple_SetItem(tuple, i, Py_NewRef(args[i]));
  for (Py_ssize_t i = 0; names && i < PyTuple_Size(names) && !outcome; i++)
    outcome = PyDict_SetItem(options, PyTuple_GetItem(names, i), args[count + i]);
  PyObject *result = outcome ? NULL : PyObject_Call(self->function, tuple, options);
  Py_XDECREF(tuple);
  Py_XDECREF(options);
  return result;
}

/* Calls the Python function and keeps a recipe for the next such call. */
static PyObject *call_observed(shortcut_object *self, const shortcut_key *key,
                               PyObject *const *args, Py_ssize_t count, PyObject *names)
{
  observed.is_active = 1;
  observed.count = 0;
  PyObject *result = call_function(self, args, count, names);
  recipe *made = result ? PyMem_Calloc(1, sizeof *made) : NULL;
  const observed_call call = { args, count, result };
  if (made) made->references = 1;
  if (made && fill_recipe(made, key, &call, names)) add_recipe(self, made);
  else shortcut_release_recipe(made);
  Py_CLEAR(observed.arguments);
  observed.is_active = 0;
  return result;
}

/* ---- calls with a recipe ---- */

static int perform(const recipe *r, context_object *context, const algorithm_argument *arguments)
{
  binding_interruptible saved = { 0 };
  kjit_status status;
  if (!r->is_short) binding_begin_interruptible(context, &saved);
  BINDING_LONG(context, status = r->row->run(context->context, arguments, &r->options),
               .what = "run", .name = r->row->name, .device = r->options.device);
  binding_count_algorithm();
  if (r->is_short) return binding_finish(context, status);
  return binding_finish_interruptible(context, status, &saved);
}

static PyObject *call_recipe(const recipe *r, PyObject *const *args)
{
  const array_object *first = (const array_object *)args[r->first];
  context_object *context = first->context;
  kjit_array_config config = { .size_bytes = sizeof config,
                               .device = first->device,
                               .element = r->element,
                               .rank = r->rank,
                               .shape = r->shape };
  kjit_array *array = NULL;
  kjit_status status = kjit_create_array_with(&config, &array);
  if (binding_finish_array(context, status, array)) return NULL;
  kjit_operand operands[MOST_OPERANDS];
  for (int i = 0; i < r->operand_count; i++) {
    int source = r->sources[i];
    operands[i] =
      kjit_operand_of(source == OF_RESULT ? kjit_arg_array(array)
                                          : binding_pass_array((array_object *)args[source]));
  }
  algorithm_argument arguments[ALGORITHM_MOST_ARGUMENTS];
  for (int i = 0; r->row->parameters[i]; i++) {
    arguments[i] = r->arguments[i];
    if (r->first_operands[i] >= 0) arguments[i].operands = &operands[(int)r->first_operands[i]];
  }
  PyObject *result = binding_wrap_array(context, array, 0);
  if (result) ((array_object *)result)->is_result = !r->rank;
  if (result && perform(r, context, arguments)) Py_CLEAR(result);
  return result;
}

/* Returns whether a pending operand is computed before the algorithm. For small arrays this takes
 * less time than the Python code that lets the algorithm compute the operand in its own pass. After
 * kjit.numpy.fuse("now") the operand is computed in the algorithm's pass. */
static int is_worth_computing(const array_object *array)
{
  if (!array->pending || expression_mode == FUSE_NOW ||
      array->context->generation != binding_generation)
    return 0;
  const kjit_tensor *tensor = binding_look_at_array((PyObject *)(uintptr_t)array);
  int64_t count = 1;
  if (!tensor || !binding_is_on_cpu(tensor)) return 0;
  for (int i = 0; i < tensor->rank; i++) count *= tensor->shape[i];
  return count <= MOST_COMPUTED;
}

PyObject *shortcut_call(PyObject *object, PyObject *const *args, size_t given, PyObject *names)
{
  shortcut_object *self = (shortcut_object *)object;
  Py_ssize_t count = count_of(given);
  shortcut_key key;
  if (self->quick) {
    PyObject *made = quick_run(self->quick, self->number, args, count, names);
    if (made || PyErr_Occurred()) return made;
    if (!self->recipes) return call_function(self, args, count, names);
  }
  for (Py_ssize_t i = 0; i < count; i++) {
    array_object *array = (array_object *)args[i];
    if (Py_TYPE(args[i]) == binding_array_type && is_worth_computing(array) &&
        binding_evaluate(array))
      return NULL;
  }
  if (!make_key(&key, args, count, names)) return call_function(self, args, count, names);
  recipe *r = find_recipe(self, &key);
  if (r) {
    r->references++; /* another thread can replace the recipe while this thread runs the algorithm
                      */
    PyObject *result = call_recipe(r, args);
    shortcut_release_recipe(r);
    return result;
  }
  if (observed.is_active) return call_function(self, args, count, names);
  return call_observed(self, &key, args, count, names);
}
