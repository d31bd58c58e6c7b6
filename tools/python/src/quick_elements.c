/* Quick functions that read and write elements. */
#include "quick.h"

/* ---- the elements in an array ---- */

int64_t quick_count(const array_object *array)
{
  if (array->context != expression_context || array->context->generation != binding_generation)
    return -1;
  const kjit_tensor *t = array->pending ? &array->pending->tensor : kjit_get_tensor(array->array);
  if (!t || t->device_type != KJIT_DEVICE_CPU || binding_get_element(array) >= KJIT_SCALAR_COUNT)
    return -1;
  int64_t count = 1;
  for (int i = 0; i < t->rank; i++) count *= t->shape[i];
  return count;
}

/* Describes the elements in an array that has memory. */
static void describe(const array_object *array, quick_view *view)
{
  const kjit_tensor *t = kjit_get_tensor(array->array);
  int64_t stride = 1;
  view->first = (char *)t->data + t->byte_offset;
  view->element = kjit_get_array_element(array->array);
  view->rank = t->rank;
  view->size_bytes = (size_t)t->bits * t->lanes / 8;
  for (int i = t->rank - 1; i >= 0; i--) {
    view->shape[i] = t->shape[i];
    view->strides[i] = t->strides ? t->strides[i] : stride;
    stride *= t->shape[i];
  }
  view->count = stride;
}

int quick_read(array_object *array, quick_view *view)
{
  if (expression_captures || quick_count(array) < 0) return QUICK_LEFT;
  if (array->pending && binding_evaluate(array)) return QUICK_FAILED;
  describe(array, view);
  return QUICK_DONE;
}

int quick_write(array_object *array, quick_view *view)
{
  if (expression_captures || array->is_read_only || quick_count(array) < 0) return QUICK_LEFT;
  if (binding_before_write(array)) return QUICK_FAILED;
  describe(array, view);
  return QUICK_DONE;
}

int quick_is_dense(const quick_view *view)
{
  int64_t stride = 1;
  for (int i = view->rank - 1; i >= 0; i--) {
    if (view->shape[i] > 1 && view->strides[i] != stride) return !view->count;
    stride *= view->shape[i];
  }
  return 1;
}

/* Stores the address of the lowest byte and the address after the highest byte of a view that has
 * elements. */
static void find_range(const quick_view *view, const char **low, const char **high)
{
  *low = view->first;
  *high = view->first + view->size_bytes;
  for (int i = 0; i < view->rank; i++) {
    int64_t reach = (view->shape[i] - 1) * view->strides[i] * (int64_t)view->size_bytes;
    if (reach < 0) *low += reach;
    else *high += reach;
  }
}

int quick_are_apart(const quick_view *a, const quick_view *b)
{
  const char *low, *high, *other_low, *other_high;
  if (!a->count || !b->count) return 1;
  find_range(a, &low, &high);
  find_range(b, &other_low, &other_high);
  return high <= other_low || other_high <= low;
}

/* Copies one-dimensional sequences of elements with given strides. A stride of 0 repeats one
 * element. */
static void copy_line(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t count,
                      size_t size)
{
#define COPY(bytes) \
  for (int64_t i = 0; i < count; i++) \
  memcpy(to + i * to_step * (bytes), from + i * from_step * (bytes), bytes)
  if (to_step == 1 && from_step == 1) memcpy(to, from, (size_t)count * size);
  else if (size == 8) COPY(8);
  else if (size == 4) COPY(4);
  else if (size == 1) COPY(1);
  else if (size == 2) COPY(2);
  else COPY(16);
#undef COPY
}

/* Copies all dimensions from `axis` on. from_strides may contain zeros. */
static void copy_axes(const quick_view *to, char *target, const char *source,
                      const int64_t *from_strides, int axis)
{
  int64_t count = axis < to->rank ? to->shape[axis] : 1;
  if (axis >= to->rank - 1) {
    int is_scalar = axis >= to->rank;
    copy_line(target, is_scalar ? 1 : to->strides[axis], source, is_scalar ? 1 : from_strides[axis],
              count, to->size_bytes);
    return;
  }
  for (int64_t i = 0; i < count; i++)
    copy_axes(to, target + i * to->strides[axis] * (int64_t)to->size_bytes,
              source + i * from_strides[axis] * (int64_t)to->size_bytes, from_strides, axis + 1);
}

void quick_copy(const quick_view *to, const quick_view *from)
{
  if (!to->count) return;
  if (quick_is_dense(to) && quick_is_dense(from))
    memcpy(to->first, from->first, (size_t)to->count * to->size_bytes);
  else copy_axes(to, to->first, from->first, from->strides, 0);
}

static int are_zeros(const char *bytes, size_t size)
{
  char any = 0;
  for (size_t i = 0; i < size; i++) any |= bytes[i];
  return !any;
}

/* Fills memory by doubling the filled part, because memcpy uses the processor's vector
 * instructions. */
static void fill_dense(char *to, size_t size, const char *bytes, size_t element_bytes)
{
  if (are_zeros(bytes, element_bytes)) {
    memset(to, 0, size);
    return;
  }
  memcpy(to, bytes, element_bytes);
  for (size_t done = element_bytes; done < size; done *= 2)
    memcpy(to + done, to, done < size - done ? done : size - done);
}

void quick_fill(const quick_view *to, const char *bytes)
{
  static const int64_t zeros[BINDING_MAX_RANK];
  if (!to->count) return;
  if (quick_is_dense(to))
    fill_dense(to->first, (size_t)to->count * to->size_bytes, bytes, to->size_bytes);
  else copy_axes(to, to->first, bytes, zeros, 0);
}

/* ---- numbers ---- */

static int put_integer(kjit_type type, int64_t value, char *bytes)
{
  static const struct {
    int64_t least, most;
    int size_bytes;
  } ranges[KJIT_SCALAR_COUNT] = {
    [KJIT_I8] = { INT8_MIN, INT8_MAX, 1 },    [KJIT_I16] = { INT16_MIN, INT16_MAX, 2 },
    [KJIT_I32] = { INT32_MIN, INT32_MAX, 4 }, [KJIT_I64] = { INT64_MIN, INT64_MAX, 8 },
    [KJIT_U8] = { 0, UINT8_MAX, 1 },          [KJIT_U16] = { 0, UINT16_MAX, 2 },
    [KJIT_U32] = { 0, UINT32_MAX, 4 },        [KJIT_U64] = { 0, INT64_MAX, 8 },
  };
  if (!ranges[type].size_bytes || value < ranges[type].least || value > ranges[type].most) return 0;
  memcpy(bytes, &value, (size_t)ranges[type].size_bytes); /* little endian */
  return 1;
}

/* Writes a float. A finite number that would overflow an f32 is left to NumPy, which may warn. */
static int put_float(kjit_type type, double value, char *bytes)
{
  float single = (float)value;
  if (type == KJIT_F64) memcpy(bytes, &value, sizeof value);
  else if (type != KJIT_F32 || (single - single != 0 && value - value == 0)) return 0;
  else memcpy(bytes, &single, sizeof single);
  return 1;
}

int quick_put_number(kjit_type type, PyObject *number, char *bytes)
{
  /* largest magnitude up to which a double represents every integer */
  const int64_t exact = (int64_t)1 << 53;
  int is_float = PyFloat_CheckExact(number), overflow = 0;
  if (!is_float && !PyLong_CheckExact(number) && !PyBool_Check(number)) return 0;
  double real = is_float ? PyFloat_AsDouble(number) : 0;
  if (is_float && (type == KJIT_F64 || type == KJIT_F32)) return put_float(type, real, bytes);
  if (is_float && type == KJIT_BOOL) return *bytes = real != 0, 1;
  if (is_float && !(real < (double)exact && real > -(double)exact)) return 0;
  int64_t value = is_float ? (int64_t)real : PyLong_AsLongLongAndOverflow(number, &overflow);
  if (overflow) return 0;
  if (type == KJIT_BOOL) return *bytes = value != 0, 1;
  if (type == KJIT_F64 || type == KJIT_F32)
    return value <= exact && value >= -exact && put_float(type, (double)value, bytes);
  return put_integer(type, value, bytes);
}

PyObject *quick_fill_method(const quick_call *call)
{
  char bytes[QUICK_NUMBER_BYTES];
  quick_view view;
  array_object *self = (array_object *)call->values[0];
  if (!quick_is_array(call->values[0]) || !call->values[1] ||
      quick_count(self) > QUICK_MOST_ELEMENTS ||
      !quick_put_number(binding_get_element(self), call->values[1], bytes) ||
      quick_write(self, &view) != QUICK_DONE)
    return NULL;
  quick_fill(&view, bytes);
  Py_RETURN_NONE;
}

/* ---- arrays as keys ---- */

/* Describes a key that is an array, and the array along the axis from which the key selects. */
typedef struct selection {
  quick_view x, key;
  int64_t step;      /* distance, in bytes, from one element or row of x to the next */
  int64_t key_step;  /* in bytes */
  size_t row_bytes;  /* size of the elements that one index selects */
  int64_t row_count; /* number of elements that one index selects */
} selection;

/* Returns the stride, in bytes, of a view that is equivalent to a one-dimensional array, or 0 for
 * other views. */
static int64_t find_step(const quick_view *view)
{
  if (view->rank == 1) return view->strides[0] * (int64_t)view->size_bytes;
  return quick_is_dense(view) ? (int64_t)view->size_bytes : 0;
}

/* Reads a key that is a mask with the array's shape. */
static int read_mask(selection *s)
{
  s->step = find_step(&s->x);
  s->row_bytes = s->x.size_bytes;
  s->row_count = 1;
  if (s->x.rank != s->key.rank || !s->step) return QUICK_LEFT;
  for (int i = 0; i < s->x.rank; i++)
    if (s->x.shape[i] != s->key.shape[i]) return QUICK_LEFT;
  return QUICK_DONE;
}

/* Reads a key of indices into the first axis. The other axes must be contiguous. */
static int read_indices(selection *s)
{
  quick_view rest = s->x;
  rest.rank = s->x.rank - 1;
  memmove(rest.shape, s->x.shape + 1, (size_t)rest.rank * sizeof *rest.shape);
  memmove(rest.strides, s->x.strides + 1, (size_t)rest.rank * sizeof *rest.strides);
  s->row_count = 1;
  for (int i = 0; i < rest.rank; i++) s->row_count *= rest.shape[i];
  s->row_bytes = (size_t)s->row_count * s->x.size_bytes;
  s->step = s->x.strides[0] * (int64_t)s->x.size_bytes;
  return quick_is_dense(&rest) ? QUICK_DONE : QUICK_LEFT;
}

static int64_t get_index(const selection *s, int64_t i)
{
  const char *place = s->key.first + i * s->key_step;
  int64_t index = 0;
  int32_t narrow;
  if (s->key.element == KJIT_I64) memcpy(&index, place, sizeof index);
  else {
    memcpy(&narrow, place, sizeof narrow);
    index = narrow;
  }
  return index < 0 ? index + s->x.shape[0] : index;
}

/* Returns an index of the key after are_in_bounds has tested it. A kernel on another thread may
 * have changed the index since then. If it is no longer in bounds, returns 0, so that no other
 * memory is accessed. */
static int64_t get_safe_index(const selection *s, int64_t i)
{
  int64_t index = get_index(s, i);
  return index < 0 || index >= s->x.shape[0] ? 0 : index;
}

static int are_in_bounds(const selection *s)
{
  for (int64_t i = 0; i < s->key.count; i++) {
    int64_t index = get_index(s, i);
    if (index < 0 || index >= s->x.shape[0]) return 0;
  }
  return 1;
}

/* Returns whether the Python layer has to handle a key or value: it is large, or it is a pending
 * array that may become a part of the selection's kernel. */
static int is_left(const array_object *array)
{
  int64_t count = quick_count(array);
  return count < 0 || count > QUICK_MOST_ELEMENTS ||
         (array->pending && expression_mode == FUSE_NOW);
}

/* Describes the array and a selection's key. Returns QUICK_LEFT if the Python layer has to handle
 * them. */
static int read_selection(array_object *array, PyObject *object, selection *s)
{
  array_object *key = (array_object *)object;
  kjit_type type = binding_get_element(key);
  int is_mask = type == KJIT_BOOL;
  if ((!is_mask && type != KJIT_I64 && type != KJIT_I32) || is_left(key)) return QUICK_LEFT;
  if (is_mask && quick_count(array) != quick_count(key)) return QUICK_LEFT;
  int outcome = quick_read(array, &s->x);
  if (outcome == QUICK_DONE) outcome = quick_read(key, &s->key);
  if (outcome != QUICK_DONE) return outcome;
  s->key_step = find_step(&s->key);
  if (!s->x.rank || !s->key.rank || !s->key_step) return QUICK_LEFT;
  return is_mask ? read_mask(s) : read_indices(s);
}

static PyObject *select_by_mask(const array_object *array, const selection *s)
{
  int64_t count = 0, size = (int64_t)s->row_bytes;
  quick_view made;
  for (int64_t i = 0; i < s->key.count; i++) count += s->key.first[i * s->key_step] != 0;
  array_object *result = quick_new(array->context, array->device, s->x.element, 1, &count, &made);
  char *to = result ? made.first : NULL, *end = result ? to + count * size : NULL;
  /* a kernel on another thread may change the mask after it was counted */
  for (int64_t i = 0; to < end && i < s->key.count; i++) {
    if (!s->key.first[i * s->key_step]) continue;
    copy_line(to, 1, s->x.first + i * s->step, 1, 1, s->row_bytes);
    to += size;
  }
  if (to < end) memset(to, 0, (size_t)(end - to));
  return (PyObject *)result;
}

static PyObject *select_by_indices(const array_object *array, const selection *s)
{
  int64_t shape[2 * BINDING_MAX_RANK], size = (int64_t)s->row_bytes;
  int rank = s->key.rank + s->x.rank - 1;
  if (rank > BINDING_MAX_RANK || s->row_count > QUICK_MOST_ELEMENTS ||
      s->key.count * s->row_count > QUICK_MOST_ELEMENTS || !are_in_bounds(s))
    return NULL;
  memcpy(shape, s->key.shape, (size_t)s->key.rank * sizeof *shape);
  memcpy(shape + s->key.rank, s->x.shape + 1, (size_t)(s->x.rank - 1) * sizeof *shape);
  quick_view made;
  array_object *result = quick_new(array->context, array->device, s->x.element, rank, shape, &made);
  for (int64_t i = 0; result && i < s->key.count; i++)
    memcpy(made.first + i * size, s->x.first + get_safe_index(s, i) * s->step, s->row_bytes);
  return (PyObject *)result;
}

PyObject *quick_get(array_object *array, PyObject *key)
{
  selection s;
  if (!quick_is_array(key) || quick_count(array) < 0 ||
      read_selection(array, key, &s) != QUICK_DONE)
    return NULL;
  return s.key.element == KJIT_BOOL ? select_by_mask(array, &s) : select_by_indices(array, &s);
}

/* Implements take(x, indices) for a vector. */
PyObject *quick_take(const quick_call *call)
{
  PyObject *x = call->values[0], *indices = call->values[1];
  if (!quick_is_array(x) || !quick_is_array(indices)) return NULL;
  const kjit_tensor *tensor = binding_look_at_array(x);
  int is_mask = binding_get_element((array_object *)indices) == KJIT_BOOL;
  return tensor && tensor->rank == 1 && !is_mask ? quick_get((array_object *)x, indices) : NULL;
}

/* Stores a number in all elements that the key, an array, selects. */
static int set_by_array(array_object *array, PyObject *key, const char *bytes)
{
  selection s;
  int outcome = read_selection(array, key, &s);
  if (outcome != QUICK_DONE) return outcome;
  int is_mask = s.key.element == KJIT_BOOL;
  if (s.row_count > QUICK_MOST_ELEMENTS || s.key.count * s.row_count > QUICK_MOST_ELEMENTS ||
      !quick_are_apart(&s.x, &s.key))
    return QUICK_LEFT;
  outcome = quick_write(array, &s.x);
  if (outcome != QUICK_DONE) return outcome;
  /* quick_write may run Python code, which may change the indices */
  if (!is_mask && !are_in_bounds(&s)) return QUICK_LEFT;
  for (int64_t i = 0; i < s.key.count; i++) {
    if (is_mask && !s.key.first[i * s.key_step]) continue;
    copy_line(s.x.first + (is_mask ? i : get_safe_index(&s, i)) * s.step, 1, bytes, 0, s.row_count,
              s.x.size_bytes);
  }
  return QUICK_DONE;
}

/* ---- assignments ---- */

/* Describes the part of an array that a key of integers and slices selects. */
static int read_part(array_object *array, PyObject *key, quick_view *part)
{
  binding_layout layout;
  quick_view whole;
  if (!binding_read_key((PyObject *)array, key, &layout))
    return PyErr_Occurred() ? QUICK_FAILED : QUICK_LEFT;
  int outcome = quick_write(array, &whole);
  if (outcome != QUICK_DONE) return outcome;
  *part = whole;
  part->rank = (int)layout.rank;
  part->first += layout.offset * (int64_t)whole.size_bytes;
  part->count = 1;
  for (int i = 0; i < part->rank; i++) {
    part->shape[i] = layout.extents[i];
    part->strides[i] = layout.steps[i];
    part->count *= layout.extents[i];
  }
  return part->count <= QUICK_MOST_ELEMENTS ? QUICK_DONE : QUICK_LEFT;
}

static int have_same_shape(const quick_view *a, const quick_view *b)
{
  if (a->rank != b->rank) return 0;
  for (int i = 0; i < a->rank; i++)
    if (a->shape[i] != b->shape[i]) return 0;
  return 1;
}

/* Copies an array of the same type and shape. */
static int set_by_copy(array_object *array, PyObject *key, array_object *value)
{
  quick_view from, part;
  if (binding_get_element(value) != binding_get_element(array) || is_left(value)) return QUICK_LEFT;
  int outcome = quick_read(value, &from);
  if (outcome == QUICK_DONE) outcome = read_part(array, key, &part);
  if (outcome != QUICK_DONE) return outcome;
  if (!have_same_shape(&part, &from) || !quick_are_apart(&part, &from)) return QUICK_LEFT;
  quick_copy(&part, &from);
  return QUICK_DONE;
}

int quick_set(array_object *array, PyObject *key, PyObject *value)
{
  char bytes[QUICK_NUMBER_BYTES];
  quick_view part;
  if (expression_captures || array->is_read_only || quick_count(array) < 0) return QUICK_LEFT;
  if (quick_is_array(value))
    return quick_is_array(key) ? QUICK_LEFT : set_by_copy(array, key, (array_object *)value);
  if (!quick_put_number(binding_get_element(array), value, bytes)) return QUICK_LEFT;
  if (quick_is_array(key)) return set_by_array(array, key, bytes);
  int outcome = read_part(array, key, &part);
  if (outcome == QUICK_DONE) quick_fill(&part, bytes);
  return outcome;
}
