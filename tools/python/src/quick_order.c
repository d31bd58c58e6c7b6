/* Quick functions that compare elements: sorts, extremes and unique elements of vectors.
 *
 * Elements of all types are compared by 64-bit keys. A key is an unsigned integer; keys have the
 * order of the elements, and equal elements have equal keys. 0.0 equals -0.0, and NaNs come
 * last. */
#include "quick.h"

enum {
  /* number of elements above which NumPy's sort, which the Python layer calls, is faster */
  MOST_SORTED = 256,
  MOST_IN_SETS = 1 << 12,  /* maximum number of elements for `unique` */
  MOST_SEARCHED = 1 << 12, /* number of elements above which libkjit's reductions are faster */
  RUN = 8                  /* number of elements in a run that is sorted by insertion */
};

#define NAN_KEY UINT64_MAX
#define SIGN ((uint64_t)1 << 63)

typedef struct sort_item {
  uint64_t key;
  int64_t index;
} sort_item;

/* ---- keys ---- */

static uint64_t make_real_key(double value)
{
  uint64_t bits;
  if (value != value) return NAN_KEY;
  value += 0.0; /* -0.0 becomes 0.0 */
  memcpy(&bits, &value, sizeof bits);
  return bits & SIGN ? ~bits : bits | SIGN;
}

#define SIGNED_KEY(value) ((uint64_t)(int64_t)(value) ^ SIGN)
#define UNSIGNED_KEY(value) ((uint64_t)(value))

/* Stores the keys of `count` elements that are `step` bytes apart. Returns 0 for types that only
 * the Python layer can sort. */
static int make_keys(kjit_type type, const char *first, int64_t step, int64_t count,
                     sort_item *items)
{
#define KEYS(enumerator, c_type, key_of) \
  case enumerator: \
    for (int64_t i = 0; i < count; i++) { \
      c_type value; \
      memcpy(&value, first + i * step, sizeof value); \
      items[i] = (sort_item){ .key = key_of(value), i }; \
    } \
    return 1;
  switch (type) {
    KEYS(KJIT_BOOL, uint8_t, UNSIGNED_KEY)
    KEYS(KJIT_I8, int8_t, SIGNED_KEY)
    KEYS(KJIT_I16, int16_t, SIGNED_KEY)
    KEYS(KJIT_I32, int32_t, SIGNED_KEY)
    KEYS(KJIT_I64, int64_t, SIGNED_KEY)
    KEYS(KJIT_U8, uint8_t, UNSIGNED_KEY)
    KEYS(KJIT_U16, uint16_t, UNSIGNED_KEY)
    KEYS(KJIT_U32, uint32_t, UNSIGNED_KEY)
    KEYS(KJIT_U64, uint64_t, UNSIGNED_KEY)
    KEYS(KJIT_F32, float, make_real_key)
    KEYS(KJIT_F64, double, make_real_key)
  default: return 0;
  }
#undef KEYS
}

/* ---- sorting ---- */

static void sort_run(sort_item *items, int64_t count)
{
  for (int64_t i = 1; i < count; i++) {
    sort_item item = items[i];
    int64_t k = i;
    for (; k > 0 && items[k - 1].key > item.key; k--) items[k] = items[k - 1];
    items[k] = item;
  }
}

static void merge(sort_item *to, const sort_item *a, int64_t a_count, const sort_item *b,
                  int64_t b_count)
{
  const sort_item *a_end = a + a_count, *b_end = b + b_count;
  while (a < a_end && b < b_end) { /* the loop has no branch that depends on the elements */
    int is_later = b->key < a->key;
    *to++ = is_later ? *b : *a;
    b += is_later;
    a += !is_later;
  }
  memcpy(to, a, (size_t)(a_end - a) * sizeof *a);
  memcpy(to + (a_end - a), b, (size_t)(b_end - b) * sizeof *b);
}

/* Sorts the items by their keys; the sort is stable. Returns the sorted items: `items`, or `other`,
 * a buffer of the same size. */
static sort_item *sort_items(sort_item *items, sort_item *other, int64_t count)
{
  for (int64_t i = 0; i < count; i += RUN) sort_run(items + i, count - i < RUN ? count - i : RUN);
  for (int64_t width = RUN; width < count; width *= 2) {
    for (int64_t i = 0; i < count; i += 2 * width) {
      int64_t middle = i + width < count ? i + width : count,
              end = i + 2 * width < count ? i + 2 * width : count;
      merge(other + i, items + i, middle - i, items + middle, end - middle);
    }
    sort_item *swapped = items;
    items = other;
    other = swapped;
  }
  return items;
}

/* A vector and its sorted items. */
typedef struct sorted_vector {
  quick_view x;
  int64_t step; /* in bytes */
  sort_item *memory, *items;
} sorted_vector;

/* Describes an array as a one-dimensional sequence in row-major order. */
static int read_line(array_object *array, int64_t most, quick_view *x, int64_t *step)
{
  int64_t count = quick_count(array);
  if (count < 0 || count > most || (array->pending && expression_mode == FUSE_NOW))
    return QUICK_LEFT;
  int outcome = quick_read(array, x);
  if (outcome != QUICK_DONE) return outcome;
  *step = (x->rank == 1 ? x->strides[0] : 1) * (int64_t)x->size_bytes;
  return x->rank == 1 || quick_is_dense(x) ? QUICK_DONE : QUICK_LEFT;
}

/* Sorts the elements in an array. The caller has to free v->memory, also after a failure. */
static int sort_line(array_object *array, int64_t most, sorted_vector *v)
{
  v->memory = NULL;
  int outcome = read_line(array, most, &v->x, &v->step);
  if (outcome != QUICK_DONE) return outcome;
  v->memory = PyMem_Malloc(2 * (size_t)(v->x.count + 1) * sizeof *v->memory);
  if (!v->memory) {
    PyErr_NoMemory();
    return QUICK_FAILED;
  }
  if (!make_keys(v->x.element, v->x.first, v->step, v->x.count, v->memory)) return QUICK_LEFT;
  v->items = sort_items(v->memory, v->memory + v->x.count, v->x.count);
  return QUICK_DONE;
}

static void copy_element(char *to, const sorted_vector *v, int64_t index)
{
  memcpy(to, v->x.first + index * v->step, v->x.size_bytes);
}

/* Returns whether the argument axis= names the only axis of a vector. */
static int is_only_axis(PyObject *axis)
{
  int overflow = 0;
  if (!axis) return 1;
  if (!PyLong_CheckExact(axis)) return 0;
  long value = PyLong_AsLongAndOverflow(axis, &overflow);
  return !overflow && (value == 0 || value == -1);
}

static int is_vector(PyObject *object)
{
  if (!quick_is_array(object) || quick_count((array_object *)object) < 0) return 0;
  const kjit_tensor *tensor = binding_look_at_array(object);
  return tensor && tensor->rank == 1;
}

static array_object *create_like(PyObject *object, kjit_type element, int rank,
                                 const int64_t *shape, quick_view *made)
{
  const array_object *model = (const array_object *)object;
  array_object *result = quick_new(model->context, model->device, element, rank, shape, made);
  if (result) result->is_result = !rank;
  return result;
}

/* Implements sort(x, axis) and argsort(x, axis) of vectors. The number of the row is ELEMENTS for
 * sort and INDICES for argsort. */
enum { ELEMENTS, INDICES };

PyObject *quick_sort(const quick_call *call)
{
  PyObject *x = call->values[0];
  if (!is_vector(x) || !is_only_axis(call->values[1])) return NULL;
  sorted_vector v;
  quick_view made;
  array_object *result = NULL;
  if (sort_line((array_object *)x, MOST_SORTED, &v) == QUICK_DONE)
    result = create_like(x, call->number == INDICES ? KJIT_I64 : v.x.element, 1, &v.x.count, &made);
  for (int64_t i = 0; result && i < v.x.count; i++) {
    char *to = made.first + i * (int64_t)made.size_bytes;
    if (call->number == INDICES) memcpy(to, &v.items[i].index, sizeof v.items[i].index);
    else copy_element(to, &v, v.items[i].index);
  }
  PyMem_Free(v.memory);
  return (PyObject *)result;
}

/* ---- the smallest and the largest element ---- */

/* Implements argmin(x, axis) and argmax(x, axis), which differ in the number of the call: SMALLEST
 * or LARGEST. If x contains a NaN, the result is the index of the first NaN. */
enum { SMALLEST, LARGEST };

/* Defines a function that returns the minimum index, the maximum or the first NaN of a vector.
 * `is_worse` returns whether the second value replaces the first as the result. The inner loop only
 * tests whether a block of elements contains such a value, which is rare after the first blocks. */
enum { SEARCH_BLOCK = 16 };
#define DEFINE_SEARCH(name, c_type, is_worse) \
  static int64_t name(const char *first, int64_t step, int64_t count) \
  { \
    int64_t found = 0, i = 0; \
    c_type best = *(const c_type *)(const void *)first, value; \
    if (best != best) return 0; \
    while (i < count) { \
      int64_t end = count - i < SEARCH_BLOCK ? count : i + SEARCH_BLOCK; \
      int is_better = 0; \
      for (int64_t k = i; k < end; k++) { \
        value = *(const c_type *)(const void *)(first + k * step); \
        is_better |= is_worse(best, value); \
      } \
      for (; is_better && i < end; i++) { \
        value = *(const c_type *)(const void *)(first + i * step); \
        if (!is_worse(best, value)) continue; \
        if (value != value) return i; \
        best = value; \
        found = i; \
      } \
      i = end; \
    } \
    return found; \
  }
#define IS_LARGER(best, value) (!((value) <= (best)))
#define IS_SMALLER(best, value) (!((value) >= (best)))
#define DEFINE_SEARCHES(name, c_type) \
  DEFINE_SEARCH(find_max_##name, c_type, IS_LARGER) \
  DEFINE_SEARCH(find_min_##name, c_type, IS_SMALLER)
DEFINE_SEARCHES(i8, int8_t)
DEFINE_SEARCHES(i16, int16_t)
DEFINE_SEARCHES(i32, int32_t)
DEFINE_SEARCHES(i64, int64_t)
DEFINE_SEARCHES(u8, uint8_t)
DEFINE_SEARCHES(u16, uint16_t)
DEFINE_SEARCHES(u32, uint32_t)
DEFINE_SEARCHES(u64, uint64_t)
DEFINE_SEARCHES(f32, float)
DEFINE_SEARCHES(f64, double)

typedef int64_t search_function(const char *first, int64_t step, int64_t count);
static search_function *const searches[KJIT_SCALAR_COUNT][2] = {
  [KJIT_BOOL] = { find_min_u8, find_max_u8 },  [KJIT_I8] = { find_min_i8, find_max_i8 },
  [KJIT_I16] = { find_min_i16, find_max_i16 }, [KJIT_I32] = { find_min_i32, find_max_i32 },
  [KJIT_I64] = { find_min_i64, find_max_i64 }, [KJIT_U8] = { find_min_u8, find_max_u8 },
  [KJIT_U16] = { find_min_u16, find_max_u16 }, [KJIT_U32] = { find_min_u32, find_max_u32 },
  [KJIT_U64] = { find_min_u64, find_max_u64 }, [KJIT_F32] = { find_min_f32, find_max_f32 },
  [KJIT_F64] = { find_min_f64, find_max_f64 },
};

PyObject *quick_find_extreme(const quick_call *call)
{
  PyObject *const *v = call->values;
  quick_view x, made;
  int64_t step;
  if (!quick_is_array(v[0]) || (!quick_is_none(v[1]) && !(is_vector(v[0]) && is_only_axis(v[1]))) ||
      read_line((array_object *)v[0], MOST_SEARCHED, &x, &step) != QUICK_DONE || !x.count ||
      !searches[x.element][call->number])
    return NULL;
  /* memory of other libraries may be unaligned */
  if ((uintptr_t)x.first % x.size_bytes) return NULL;
  int64_t found = searches[x.element][call->number](x.first, step, x.count);
  array_object *result = create_like(v[0], KJIT_I64, 0, NULL, &made);
  if (result) memcpy(made.first, &found, sizeof found);
  return (PyObject *)result;
}

/* ---- unique elements ---- */

/* The results of `unique`, in the order in which the tuple has them. Only requested results are
 * created. */
enum { VALUES, FIRST_INDICES, INVERSE, COUNTS, UNIQUE_RESULTS };

typedef struct unique_request {
  int is_asked[UNIQUE_RESULTS], equal_nan, keeps_shape;
} unique_request;

/* Replaces each item's key by the number of its run of equal elements. Returns the number of
 * runs. */
static int64_t number_runs(sorted_vector *v, const unique_request *request)
{
  int is_real = v->x.element == KJIT_F32 || v->x.element == KJIT_F64;
  int64_t count = 0;
  uint64_t before = 0;
  for (int64_t i = 0; i < v->x.count; i++) {
    uint64_t key = v->items[i].key;
    int is_new = !i || key != before || (is_real && key == NAN_KEY && !request->equal_nan);
    before = key;
    count += is_new;
    v->items[i].key = (uint64_t)(count - 1);
  }
  return count;
}

static void fill_results(const sorted_vector *v, const quick_view *made, const unique_request *r)
{
  int64_t last = -1;
  for (int64_t i = 0; i < v->x.count; i++) {
    int64_t index = v->items[i].index, run = (int64_t)v->items[i].key, start = i;
    if (r->is_asked[INVERSE]) memcpy(made[INVERSE].first + index * 8, &run, sizeof run);
    if (run == last) continue;
    last = run;
    copy_element(made[VALUES].first + run * (int64_t)v->x.size_bytes, v, index);
    if (r->is_asked[FIRST_INDICES])
      memcpy(made[FIRST_INDICES].first + run * 8, &index, sizeof index);
    if (!r->is_asked[COUNTS]) continue;
    while (i + 1 < v->x.count && (int64_t)v->items[i + 1].key == run) i++;
    int64_t count = i + 1 - start;
    memcpy(made[COUNTS].first + run * 8, &count, sizeof count);
    for (int64_t k = start + 1; k <= i && r->is_asked[INVERSE]; k++)
      memcpy(made[INVERSE].first + v->items[k].index * 8, &run, sizeof run);
  }
}

/* Creates the requested arrays. Returns a tuple, or one array if only the values are requested. */
static PyObject *create_results(PyObject *x, sorted_vector *v, const unique_request *r)
{
  quick_view made[UNIQUE_RESULTS];
  PyObject *results[UNIQUE_RESULTS];
  int64_t runs = number_runs(v, r);
  int count = 0, failed = 0;
  for (int i = 0; i < UNIQUE_RESULTS && !failed; i++) {
    if (!r->is_asked[i]) continue;
    int is_shaped = i == INVERSE && r->keeps_shape;
    const int64_t *shape = is_shaped ? v->x.shape : i == INVERSE ? &v->x.count : &runs;
    results[count] = (PyObject *)create_like(x, i == VALUES ? v->x.element : KJIT_I64,
                                             is_shaped ? v->x.rank : 1, shape, &made[i]);
    failed = !results[count];
    /* as in NumPy, the inverse is an array even if it has no dimensions */
    if (!failed && i == INVERSE) ((array_object *)results[count])->is_result = 0;
    count += !failed;
  }
  if (!failed) fill_results(v, made, r);
  PyObject *tuple = failed || count == 1 ? NULL : PyTuple_New(count);
  if (count == 1 && !failed) return results[0];
  for (int i = 0; i < count; i++) {
    if (tuple) PyTuple_SetItem(tuple, i, results[i]);
    else Py_DECREF(results[i]);
  }
  return tuple;
}

/* Returns the results of `unique`. Returns NULL with an exception, or NULL without an exception if
 * the Python layer has to compute them. */
static PyObject *find_unique(PyObject *x, const unique_request *request)
{
  sorted_vector v;
  PyObject *made = NULL;
  if (!quick_is_array(x) || expression_captures) return NULL;
  if (sort_line((array_object *)x, MOST_IN_SETS, &v) == QUICK_DONE)
    made = create_results(x, &v, request);
  PyMem_Free(v.memory);
  return made;
}

/* small_unique(x, return_index, return_inverse, return_counts, equal_nan, keeps_shape): returns the
 * unique elements of a small array on the CPU, or a tuple with the unique elements and the other
 * requested results. Returns None for other arrays. If keeps_shape is true, the inverse has the
 * shape of x. */
static PyObject *small_unique(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
  (void)module;
  unique_request r = { .is_asked = { [VALUES] = 1 } };
  int *const flags[] = { &r.is_asked[FIRST_INDICES], &r.is_asked[INVERSE], &r.is_asked[COUNTS],
                         &r.equal_nan, &r.keeps_shape };
  enum { FLAGS = sizeof flags / sizeof *flags };
  if (count != 1 + FLAGS) {
    PyErr_SetString(PyExc_TypeError, "small_unique takes an array and five flags");
    return NULL;
  }
  for (int i = 0; i < FLAGS; i++)
    if ((*flags[i] = PyObject_IsTrue(args[1 + i])) < 0) return NULL;
  PyObject *made = find_unique(args[0], &r);
  if (!made && PyErr_Occurred() && binding_is_error()) PyErr_Clear();
  return made || PyErr_Occurred() ? made : Py_NewRef(Py_None);
}

/* Returns the value of a bool argument, or 0 if the argument is not given. Sets *is_other if the
 * argument is not a bool. */
static int read_flag(PyObject *object, int *is_other)
{
  if (object && !PyBool_Check(object)) *is_other = 1;
  return object == Py_True;
}

/* unique(x, return_index, return_inverse, return_counts, axis, equal_nan, sorted); the row's number
 * is 1 if the inverse has the shape of x, as in NumPy 2 */
PyObject *quick_unique(const quick_call *call)
{
  PyObject *const *v = call->values;
  int is_other = 0;
  unique_request r = {
    .is_asked = { 1, read_flag(v[1], &is_other), read_flag(v[2], &is_other),
                  read_flag(v[3], &is_other) },
    .equal_nan = !v[5] || read_flag(v[5], &is_other),
    .keeps_shape = (int)call->number,
  };
  (void)read_flag(v[6], &is_other);
  return is_other || !quick_is_none(v[4]) ? NULL : find_unique(v[0], &r);
}

static PyMethodDef functions[] = {
  { "small_unique", (PyCFunction)(void (*)(void))small_unique, METH_FASTCALL, NULL },
  { NULL, NULL, 0, NULL },
};

int quick_add_orders(PyObject *module) { return PyModule_AddFunctions(module, functions); }
