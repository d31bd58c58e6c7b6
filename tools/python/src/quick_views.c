/* Quick functions that copy arrays, change their shapes and join them. */
#include "quick.h"

/* ---- copies ---- */

static PyObject *copy(array_object *array, int rank, const int64_t *shape)
{
  quick_view from, to;
  int64_t count = quick_count(array);
  if (count < 0 || count > QUICK_MOST_ELEMENTS || quick_read(array, &from) != QUICK_DONE)
    return NULL;
  array_object *made =
    quick_new(array->context, array->device, from.element, from.rank, from.shape, &to);
  if (!made) return NULL;
  quick_copy(&to, &from);
  made->is_result = !shape && binding_is_scalar(array);
  if (!shape) return (PyObject *)made;
  kjit_array *view = NULL;
  kjit_status status = kjit_reshape_array(made->array, shape, (uint32_t)rank, &view);
  PyObject *result =
    binding_finish_array(made->context, status, view) ? NULL : binding_wrap_view(made, view, 0);
  Py_DECREF((PyObject *)made);
  return result;
}

/* Returns whether an argument `order` is not given or is the string "C". */
static int is_row_major(PyObject *order)
{
  return !order || (PyUnicode_CheckExact(order) && !PyUnicode_CompareWithASCIIString(order, "C"));
}

PyObject *quick_copy_method(const quick_call *call)
{
  if (!quick_is_array(call->values[0]) || !is_row_major(call->values[1])) return NULL;
  return copy((array_object *)call->values[0], 0, NULL);
}

static long cast_rows[KJIT_SCALAR_COUNT]; /* numbers of kjit.numpy's rows for conversions to each
                                             type, or 0 */

/* set_quick_casts({name of a type: row}) */
static PyObject *set_casts(PyObject *module, PyObject *casts)
{
  PyObject *name, *row;
  Py_ssize_t place = 0;
  (void)module;
  while (PyDict_Next(casts, &place, &name, &row)) {
    kjit_type element;
    if (!binding_parse_element(expression_context, name, &element)) return NULL;
    if (element < KJIT_SCALAR_COUNT) cast_rows[element] = PyLong_AsLong(row);
  }
  return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

static int is_complex(kjit_type type) { return type == KJIT_C64 || type == KJIT_C128; }

/* x.astype(dtype), without other arguments. A matrix in column-major order is left to the Python
 * layer, which keeps this order in the result. */
PyObject *quick_astype(const quick_call *call)
{
  PyObject *const *v = call->values;
  array_object *array = (array_object *)v[0];
  kjit_type wanted, own;
  if (!quick_is_array(v[0]) || !v[1] || v[2] || v[3] || v[4] || v[5] || v[6] ||
      quick_count(array) < 0 || !quick_find_element(v[1], &wanted))
    return NULL;
  quick_view view;
  const kjit_tensor *tensor = binding_look_at_array(v[0]);
  if (!tensor ||
      (tensor->rank > 1 && (quick_read(array, &view) != QUICK_DONE || !quick_is_dense(&view))))
    return NULL;
  own = binding_get_element(array);
  if (own == wanted) return copy(array, 0, NULL);
  if ((is_complex(own) && !is_complex(wanted)) || !cast_rows[wanted]) return NULL;
  PyObject *made = expression_operate(cast_rows[wanted], v, 1);
  if (made && quick_is_array(made)) ((array_object *)made)->is_result = binding_is_scalar(array);
  return made;
}

/* ---- shapes ---- */

typedef struct new_shape {
  int64_t extents[BINDING_MAX_RANK], known;
  int rank, open; /* open: index of the extent that is -1, or -1 if none is */
} new_shape;

static int add_extent(new_shape *s, PyObject *item)
{
  int overflow = 0;
  if (!PyLong_CheckExact(item) || s->rank == BINDING_MAX_RANK) return 0;
  int64_t extent = PyLong_AsLongLongAndOverflow(item, &overflow);
  if (overflow || extent < -1 || (extent == -1 && s->open >= 0)) return 0;
  if (extent == -1) s->open = s->rank;
  else if (__builtin_mul_overflow(s->known, extent, &s->known)) return 0;
  s->extents[s->rank++] = extent;
  return 1;
}

/* Determines the open extent from the number of elements. Returns 0 if the number of elements does
 * not fit the shape. */
static int complete(new_shape *s, int64_t count)
{
  if (s->open < 0) return s->known == count;
  if (!s->known || count % s->known) return 0;
  s->extents[s->open] = count / s->known;
  return 1;
}

/* Returns a view of a contiguous array. */
static PyObject *reshape(array_object *array, new_shape *shape)
{
  quick_view view;
  if (quick_count(array) < 0 || quick_read(array, &view) != QUICK_DONE || !quick_is_dense(&view) ||
      !complete(shape, view.count))
    return NULL;
  kjit_array *made = NULL;
  kjit_status status =
    kjit_reshape_array(array->array, shape->extents, (uint32_t)shape->rank, &made);
  return binding_finish_array(array->context, status, made) ? NULL
                                                            : binding_wrap_shape(array, made);
}

static PyObject *reshape_to(PyObject *array, PyObject *const *items, Py_ssize_t count)
{
  new_shape shape = { .known = 1, .open = -1 };
  for (Py_ssize_t i = 0; i < count; i++)
    if (!add_extent(&shape, items[i])) return NULL;
  return quick_is_array(array) ? reshape((array_object *)array, &shape) : NULL;
}

/* Reshapes an array to a shape that is given as a tuple or as one extent. */
static PyObject *reshape_by(PyObject *array, PyObject *shape)
{
  PyObject *items[BINDING_MAX_RANK];
  if (!PyTuple_CheckExact(shape)) return reshape_to(array, &shape, 1);
  Py_ssize_t count = PyTuple_Size(shape);
  if (count > BINDING_MAX_RANK) return NULL;
  for (Py_ssize_t i = 0; i < count; i++) items[i] = PyTuple_GetItem(shape, i);
  return reshape_to(array, items, count);
}

PyObject *quick_reshape(const quick_call *call)
{
  PyObject *const *v = call->values;
  return v[1] && is_row_major(v[2]) && quick_is_none(v[3]) ? reshape_by(v[0], v[1]) : NULL;
}

PyObject *quick_reshape_method(const quick_call *call)
{
  if (call->names || !call->rest_count) return NULL;
  if (call->rest_count == 1) return reshape_by(call->values[0], call->rest[0]);
  return reshape_to(call->values[0], call->rest, call->rest_count);
}

PyObject *quick_ravel(const quick_call *call)
{
  array_object *array = (array_object *)call->values[0];
  if (!quick_is_array(call->values[0]) || !is_row_major(call->values[1])) return NULL;
  new_shape line = { .rank = 1, .open = -1 };
  line.known = line.extents[0] = quick_count(array);
  return reshape(array, &line);
}

PyObject *quick_flatten(const quick_call *call)
{
  if (!quick_is_array(call->values[0])) return NULL;
  array_object *array = (array_object *)call->values[0];
  int64_t count = quick_count(array);
  return copy(array, 1, &count);
}

/* Returns a view whose axis i is axis axes[i], or a new axis of extent 1 for -1. */
static PyObject *restride(array_object *array, const int *axes, int rank)
{
  int64_t extents[BINDING_MAX_RANK], steps[BINDING_MAX_RANK];
  quick_view view;
  if (rank > BINDING_MAX_RANK || quick_read(array, &view) != QUICK_DONE) return NULL;
  for (int i = 0; i < rank; i++) {
    extents[i] = axes[i] < 0 ? 1 : view.shape[axes[i]];
    steps[i] = axes[i] < 0 ? 0 : view.strides[axes[i]];
  }
  kjit_array *made = NULL;
  kjit_status status = kjit_restride_array(array->array, extents, steps, (uint32_t)rank, 0, &made);
  return binding_finish_array(array->context, status, made) ? NULL
                                                            : binding_wrap_shape(array, made);
}

/* Returns an array's rank on the CPU, or -1. */
static int get_rank(PyObject *object)
{
  if (!quick_is_array(object) || quick_count((array_object *)object) < 0) return -1;
  const kjit_tensor *tensor = binding_look_at_array(object);
  return tensor ? tensor->rank : -1;
}

PyObject *quick_transpose(const quick_call *call)
{
  int axes[BINDING_MAX_RANK], rank = get_rank(call->values[0]);
  if (rank < 0) return NULL;
  for (int i = 0; i < rank; i++) axes[i] = rank - 1 - i;
  return restride((array_object *)call->values[0], axes, rank);
}

PyObject *quick_squeeze(const quick_call *call)
{
  int axes[BINDING_MAX_RANK], rank = get_rank(call->values[0]), kept = 0;
  if (rank < 0) return NULL;
  const kjit_tensor *tensor = binding_look_at_array(call->values[0]);
  for (int i = 0; i < rank; i++)
    if (tensor->shape[i] != 1) axes[kept++] = i;
  return restride((array_object *)call->values[0], axes, kept);
}

/* Reads an axis of an array with this rank. Returns -1 if the object is not an integer in the valid
 * range. */
static int read_axis(PyObject *object, int rank)
{
  int overflow = 0;
  if (!object || !PyLong_CheckExact(object)) return -1;
  long axis = PyLong_AsLongAndOverflow(object, &overflow);
  if (overflow || axis < -rank || axis >= rank) return -1;
  return (int)(axis < 0 ? axis + rank : axis);
}

PyObject *quick_expand_dims(const quick_call *call)
{
  int axes[BINDING_MAX_RANK + 1], rank = get_rank(call->values[0]);
  int at = rank < 0 ? -1 : read_axis(call->values[1], rank + 1);
  if (at < 0) return NULL;
  for (int i = 0, axis = 0; i <= rank; i++) axes[i] = i == at ? -1 : axis++;
  return restride((array_object *)call->values[0], axes, rank + 1);
}

/* ---- joining ---- */

enum { MOST_JOINED = 16 };

typedef struct join {
  quick_view parts[MOST_JOINED];
  array_object *arrays[MOST_JOINED]; /* owned references, because other code may change the list */
  int count;
} join;

/* Adds an array, which must have the same type and device as the arrays added before. */
static int add_part(join *j, PyObject *item)
{
  array_object *array = (array_object *)item;
  if (!quick_is_array(item) || quick_count(array) < 0 || quick_count(array) > QUICK_MOST_ELEMENTS)
    return QUICK_LEFT;
  quick_view *part = &j->parts[j->count];
  j->arrays[j->count++] = (array_object *)Py_NewRef(item);
  int outcome = quick_read(array, part);
  if (outcome != QUICK_DONE) return outcome;
  return part->element == j->parts[0].element && array->device == j->arrays[0]->device ? QUICK_DONE
                                                                                       : QUICK_LEFT;
}

static void release_parts(const join *j)
{
  for (int i = 0; i < j->count; i++) Py_DECREF((PyObject *)j->arrays[i]);
}

/* Reads the arrays of a list or tuple. The caller has to release the parts, also after a failure.
 */
static int read_parts(PyObject *items, join *j)
{
  int is_list = PyList_CheckExact(items);
  if (!is_list && !PyTuple_CheckExact(items)) return QUICK_LEFT;
  Py_ssize_t count = is_list ? PyList_Size(items) : PyTuple_Size(items);
  if (count < 1 || count > MOST_JOINED) return QUICK_LEFT;
  for (Py_ssize_t i = 0; i < count; i++) {
    /* computing the previous array may have run Python code that changed the list */
    if (is_list && PyList_Size(items) != count) return QUICK_LEFT;
    int outcome = add_part(j, is_list ? PyList_GetItem(items, i) : PyTuple_GetItem(items, i));
    if (outcome != QUICK_DONE) return outcome;
  }
  return QUICK_DONE;
}

/* Inserts an axis of extent 1. Returns 0 if the view has too many axes. */
static int insert_axis(quick_view *view, int axis)
{
  if (view->rank == BINDING_MAX_RANK) return 0;
  int after = view->rank++ - axis;
  memmove(view->shape + axis + 1, view->shape + axis, (size_t)after * sizeof *view->shape);
  memmove(view->strides + axis + 1, view->strides + axis, (size_t)after * sizeof *view->strides);
  view->shape[axis] = 1;
  view->strides[axis] = 1;
  return 1;
}

static int fit(const quick_view *a, const quick_view *b, int axis)
{
  if (a->rank != b->rank) return 0;
  for (int i = 0; i < a->rank; i++)
    if (i != axis && a->shape[i] != b->shape[i]) return 0;
  return 1;
}

/* Concatenates the parts along an axis. */
static PyObject *join_parts(const join *j, int axis)
{
  const quick_view *first = &j->parts[0];
  int64_t shape[BINDING_MAX_RANK];
  memcpy(shape, first->shape, sizeof shape);
  for (int i = 1; i < j->count; i++) {
    if (!fit(first, &j->parts[i], axis)) return NULL;
    shape[axis] += j->parts[i].shape[axis];
  }
  quick_view whole;
  array_object *made = quick_new(j->arrays[0]->context, j->arrays[0]->device, first->element,
                                 first->rank, shape, &whole);
  for (int i = 0; made && i < j->count; i++) {
    quick_view part = whole;
    part.shape[axis] = j->parts[i].shape[axis];
    part.count = j->parts[i].count;
    quick_copy(&part, &j->parts[i]);
    whole.first += part.shape[axis] * whole.strides[axis] * (int64_t)whole.size_bytes;
  }
  return (PyObject *)made;
}

/* Row numbers of the functions that join arrays along an existing axis: concat, hstack, vstack. */
enum { ALONG_AXIS, ALONG_COLUMNS, ALONG_ROWS };

static PyObject *concatenate(join *j, const quick_call *call)
{
  int rank = j->parts[0].rank, axis = 0;
  if (call->number == ALONG_AXIS && call->values[1]) axis = read_axis(call->values[1], rank);
  else if (call->values[1]) return NULL;
  if (axis < 0 || !rank) return NULL;
  if (call->number == ALONG_COLUMNS) axis = rank > 1;
  for (int i = 0; i < j->count && call->number == ALONG_ROWS && rank == 1; i++)
    if (j->parts[i].rank != 1 || !insert_axis(&j->parts[i], 0)) return NULL;
  return join_parts(j, axis);
}

static PyObject *stack(join *j, const quick_call *call)
{
  int rank = j->parts[0].rank;
  int axis = call->values[1] ? read_axis(call->values[1], rank + 1) : 0;
  if (axis < 0) return NULL;
  for (int i = 0; i < j->count; i++)
    if (j->parts[i].rank != rank || !insert_axis(&j->parts[i], axis)) return NULL;
  return join_parts(j, axis);
}

static PyObject *read_and_join(const quick_call *call,
                               PyObject *run(join *j, const quick_call *call))
{
  join j;
  j.count = 0;
  PyObject *made = read_parts(call->values[0], &j) == QUICK_DONE ? run(&j, call) : NULL;
  release_parts(&j);
  return made;
}

PyObject *quick_concat(const quick_call *call) { return read_and_join(call, concatenate); }
PyObject *quick_stack(const quick_call *call) { return read_and_join(call, stack); }

/* ---- indices of elements ---- */

static int is_nonzero(const char *bytes, size_t size)
{
  for (size_t i = 0; i < size; i++)
    if (bytes[i]) return 1;
  return 0;
}

/* Implements nonzero for vectors of bools and integers. */
PyObject *quick_nonzero(const quick_call *call)
{
  quick_view x, made;
  array_object *array = (array_object *)call->values[0];
  if (!quick_is_array(call->values[0]) || quick_count(array) > QUICK_MOST_ELEMENTS ||
      (array->pending && expression_mode == FUSE_NOW) || quick_read(array, &x) != QUICK_DONE ||
      x.rank != 1 || x.element > KJIT_U64)
    return NULL;
  int64_t step = x.strides[0] * (int64_t)x.size_bytes, count = 0;
  for (int64_t i = 0; i < x.count; i++) count += is_nonzero(x.first + i * step, x.size_bytes);
  array_object *result = quick_new(array->context, array->device, KJIT_I64, 1, &count, &made);
  char *to = result ? made.first : NULL, *end = result ? to + count * (int64_t)sizeof count : NULL;
  /* a kernel on another thread may change the elements after they were counted */
  for (int64_t i = 0; to < end && i < x.count; i++) {
    if (!is_nonzero(x.first + i * step, x.size_bytes)) continue;
    memcpy(to, &i, sizeof i);
    to += sizeof i;
  }
  if (to < end) memset(to, 0, (size_t)(end - to));
  PyObject *tuple = result ? PyTuple_Pack(1, (PyObject *)result) : NULL;
  Py_XDECREF((PyObject *)result);
  return tuple;
}

static PyMethodDef functions[] = {
  { "set_quick_casts", set_casts, METH_O, NULL },
  { NULL, NULL, 0, NULL },
};

int quick_add_shapes(PyObject *module) { return PyModule_AddFunctions(module, functions); }
