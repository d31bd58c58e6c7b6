/* Implements views: kj_view, which describes elements by address, extents and strides, and arrays
 * that share another array's memory. */
#include <stdlib.h>
#include <string.h>

#include "memory/array.h"

/* ---- reading tensors ---- */

void kj_fill_strides(int64_t *strides, const int64_t *shape, uint32_t rank)
{
  int64_t stride = 1;
  for (uint32_t i = rank; i-- > 0;) {
    strides[i] = stride;
    /* an empty array, whose strides are irrelevant */
    if (__builtin_mul_overflow(stride, shape[i] ? shape[i] : 1, &stride)) stride = 1;
  }
}

/* Counts the elements. Returns false if the byte range of the elements exceeds the address
 * space. */
static bool measure(kj_view *view)
{
  uint64_t count = 1;
  int64_t span = 0;
  bool is_empty = false;
  for (uint32_t i = 0; i < view->rank; i++) is_empty = is_empty || view->shape[i] == 0;
  for (uint32_t i = 0; i < view->rank && !is_empty; i++) {
    int64_t steps, reach;
    if (view->strides[i] == INT64_MIN ||
        __builtin_mul_overflow(count, (uint64_t)view->shape[i], &count))
      return false;
    reach = view->strides[i] < 0 ? -view->strides[i] : view->strides[i];
    if (__builtin_mul_overflow(view->shape[i] - 1, reach, &steps) ||
        __builtin_add_overflow(span, steps, &span))
      return false;
  }
  /* no code must use invalid strides of an empty view */
  for (uint32_t i = 0; i < view->rank && is_empty; i++) view->strides[i] = 1;
  view->count = is_empty ? 0 : count;
  return !__builtin_mul_overflow(span, (int64_t)view->element_bytes, &span) &&
         (is_empty || count <= INT64_MAX / (view->element_bytes ? view->element_bytes : 1));
}

/* Stores the distances in bytes from the first element to the first byte and to the byte after the
 * last one. measure has checked that they fit. */
static void find_reaches(const kj_view *view, uint64_t *before, uint64_t *after)
{
  *before = 0;
  *after = view->element_bytes;
  for (uint32_t i = 0; i < view->rank; i++) {
    int64_t reach = (view->shape[i] - 1) * view->strides[i] * (int64_t)view->element_bytes;
    if (reach < 0) *before += (uint64_t)-reach;
    else *after += (uint64_t)reach;
  }
}

/* Returns whether no address of the elements exceeds 64 bits. A tensor of another library can have
 * any address. */
static bool is_addressable(const kj_view *view)
{
  uint64_t before, after, end;
  if (!view->count) return true;
  find_reaches(view, &before, &after);
  return before <= view->address && !__builtin_add_overflow(view->address, after, &end);
}

kjit_status kj_view_tensor(ki_types *types, const kjit_tensor *tensor, kjit_type element,
                           const char *what, kj_diagnostics *diagnostics, kj_view *view)
{
  *view = (kj_view){ 0 };
  if (!kj_locate_tensor(tensor, &view->kind, &view->ordinal))
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT,
                    "%s: device type %d is neither the CPU's (1) nor CUDA's (2)", what,
                    tensor->device_type);
  view->is_placed = tensor->device_type == KJ_DLPACK_PLACED;
  if (tensor->rank < 0 || tensor->rank > KJ_MAX_RANK)
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT, "%s: expected 0 to %d dimensions, got %d",
                    what, KJ_MAX_RANK, tensor->rank);
  view->element = kj_type_of_tensor(types, tensor, element);
  if (view->element == KJIT_ANY)
    return kj_error(
      diagnostics, KJIT_ERROR_ARGUMENT,
      "%s: DLPack element type (code %u, %u bits, %u lanes) is not an element type of kjit", what,
      tensor->code, tensor->bits, tensor->lanes);
  view->rank = (uint32_t)tensor->rank;
  view->element_bytes = kj_element_bytes(types, view->element);
  view->address = (uint64_t)(uintptr_t)tensor->data + tensor->byte_offset;
  if (view->rank && !tensor->shape)
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT, "%s: the tensor has no shape", what);
  for (uint32_t i = 0; i < view->rank; i++) {
    if (tensor->shape[i] < 0)
      return kj_error(diagnostics, KJIT_ERROR_ARGUMENT,
                      "%s: extent %lld of dimension %u is negative", what,
                      (long long)tensor->shape[i], i);
    view->shape[i] = tensor->shape[i];
  }
  if (tensor->strides) memcpy(view->strides, tensor->strides, view->rank * sizeof *view->strides);
  else kj_fill_strides(view->strides, view->shape, view->rank);
  if (!measure(view))
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT,
                    "%s: the extents and strides do not fit the address space", what);
  if (view->count && (!tensor->data || view->address < tensor->byte_offset))
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT, "%s: the tensor has no data", what);
  if (!is_addressable(view))
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT,
                    "%s: the addresses of the elements exceed the address space", what);
  return KJIT_OK;
}

bool kj_is_row_major(const kj_view *view)
{
  int64_t expected = 1;
  for (uint32_t i = view->rank; i-- > 0 && view->count;) {
    if (view->shape[i] != 1 && view->strides[i] != expected) return false;
    expected *= view->shape[i];
  }
  return true;
}

void kj_view_range(const kj_view *view, uint64_t *low, uint64_t *high)
{
  uint64_t before, after;
  KJ_ASSERT(view->rank <= KJ_MAX_RANK);
  *low = *high = view->address;
  if (!view->count) return;
  find_reaches(view, &before, &after);
  *low -= before;
  *high += after;
  KJ_ASSERT(*low <= view->address && (*high > view->address || !view->element_bytes));
}

bool kj_do_overlap(const kj_view *a, const kj_view *b)
{
  uint64_t a_low, a_high, b_low, b_high;
  kj_view_range(a, &a_low, &a_high);
  kj_view_range(b, &b_low, &b_high);
  return a_low < b_high && b_low < a_high;
}

bool kj_is_line(const kj_view *view)
{
  return view->rank == 0 || (view->rank == 1 && view->strides[0] == 1);
}

kj_view kj_dense_view(const kj_view *view, uint64_t address)
{
  kj_view dense = *view;
  dense.address = address;
  kj_fill_strides(dense.strides, dense.shape, dense.rank);
  return dense;
}

/* ---- simplifying dimensions ---- */

static void flip(kj_view *view, uint32_t dimension)
{
  view->address += (uint64_t)((view->shape[dimension] - 1) * view->strides[dimension] *
                              (int64_t)view->element_bytes);
  view->strides[dimension] = -view->strides[dimension];
}

static void move_dimension(kj_view *view, uint32_t from, uint32_t to)
{
  view->shape[to] = view->shape[from];
  view->strides[to] = view->strides[from];
}

static void swap_dimensions(kj_view *view, uint32_t a, uint32_t b)
{
  int64_t shape = view->shape[a], stride = view->strides[a];
  move_dimension(view, b, a);
  view->shape[b] = shape;
  view->strides[b] = stride;
}

static void drop_single(kj_view *lead, kj_view *other)
{
  uint32_t rank = 0;
  for (uint32_t i = 0; i < lead->rank; i++) {
    if (lead->shape[i] == 1) continue;
    move_dimension(lead, i, rank);
    move_dimension(other, i, rank++);
  }
  lead->rank = other->rank = rank;
}

/* Checks the properties that kj_simplify_views guarantees for the leading view. */
static void check_simple(const kj_view *lead, const kj_view *other)
{
  uint64_t count = 1;
  KJ_ASSERT(lead->rank == other->rank);
  for (uint32_t i = 0; KJ_HAS_ASSERTIONS && i < lead->rank; i++) {
    KJ_ASSERT(lead->shape[i] == other->shape[i] && lead->shape[i] != 1);
    KJ_ASSERT(lead->strides[i] >= 0 && (!i || lead->strides[i] <= lead->strides[i - 1]));
    count *= (uint64_t)lead->shape[i];
  }
  KJ_ASSERT(count == lead->count && count == other->count);
}

static bool can_merge(const kj_view *view, uint32_t i)
{
  return view->strides[i] == view->strides[i + 1] * view->shape[i + 1];
}

static void merge(kj_view *view, uint32_t i)
{
  view->shape[i] *= view->shape[i + 1];
  view->strides[i] = view->strides[i + 1];
  for (uint32_t k = i + 1; k + 1 < view->rank; k++) move_dimension(view, k + 1, k);
  view->rank--;
}

void kj_simplify_views(kj_view *lead, kj_view *other)
{
  KJ_ASSERT(lead->rank == other->rank && lead->count == other->count && lead->count);
  drop_single(lead, other);
  for (uint32_t i = 0; i < lead->rank; i++) {
    if (lead->strides[i] >= 0) continue;
    flip(lead, i);
    flip(other, i);
  }
  for (uint32_t i = 1; i < lead->rank; i++) {
    for (uint32_t k = i; k > 0 && lead->strides[k] > lead->strides[k - 1]; k--) {
      swap_dimensions(lead, k, k - 1);
      swap_dimensions(other, k, k - 1);
    }
  }
  for (uint32_t i = lead->rank; i-- > 1;) {
    if (!can_merge(lead, i - 1) || !can_merge(other, i - 1)) continue;
    merge(lead, i - 1);
    merge(other, i - 1);
  }
  check_simple(lead, other);
}

/* ---- copies on the host ---- */

/* Copies the innermost dimension. Each common element size has its own loop, so that the compiler
 * uses moves. */
static void copy_line(char *to, const char *from, int64_t count, int64_t to_step, int64_t from_step,
                      uint32_t bytes)
{
#define LINE(size) \
  for (int64_t i = 0; i < count; i++) memcpy(to + i * to_step, from + i * from_step, size)
  if (to_step == bytes && from_step == bytes) memcpy(to, from, (size_t)count * bytes);
  else if (bytes == 1) LINE(1);
  else if (bytes == 2) LINE(2);
  else if (bytes == 4) LINE(4);
  else if (bytes == 8) LINE(8);
  else LINE(bytes);
#undef LINE
}

static void copy_dimension(const kj_view *to, const kj_view *from, uint32_t dimension,
                           char *to_address, const char *from_address)
{
  int64_t bytes = to->element_bytes, to_step = to->strides[dimension] * bytes,
          from_step = from->strides[dimension] * bytes;
  if (dimension + 1 == to->rank) {
    copy_line(to_address, from_address, to->shape[dimension], to_step, from_step,
              to->element_bytes);
    return;
  }
  for (int64_t i = 0; i < to->shape[dimension]; i++)
    copy_dimension(to, from, dimension + 1, to_address + i * to_step, from_address + i * from_step);
}

static void copy_apart(const kj_view *to, const kj_view *from)
{
  char *to_address = (char *)(uintptr_t)to->address;
  const char *from_address = (const char *)(uintptr_t)from->address;
  if (to->rank == 0) memcpy(to_address, from_address, to->element_bytes);
  else copy_dimension(to, from, 0, to_address, from_address);
}

/* Returns the size of the buffer that a copy needs, or 0 if it needs none. */
static size_t buffer_bytes(const kj_view *destination, const kj_view *source)
{
  bool is_direct = !destination->count ||
                   (kj_is_row_major(destination) && kj_is_row_major(source)) ||
                   !kj_do_overlap(destination, source);
  return is_direct ? 0 : destination->count * destination->element_bytes;
}

void kj_copy_host_through(const kj_view *destination, const kj_view *source, void *buffer)
{
  if (!destination->count) return;
  KJ_ASSERT(kj_is_on_host(destination) && kj_is_on_host(source));
  KJ_ASSERT(destination->count == source->count && destination->rank == source->rank);
  KJ_ASSERT(destination->element_bytes == source->element_bytes);
  KJ_ASSERT(buffer || !buffer_bytes(destination, source));
  if (buffer) {
    const kj_view between = kj_dense_view(source, (uint64_t)(uintptr_t)buffer);
    copy_apart(&between, source);
    copy_apart(destination, &between);
  } else if (kj_is_row_major(destination) && kj_is_row_major(source)) {
    memmove((void *)(uintptr_t)destination->address, (const void *)(uintptr_t)source->address,
            destination->count * destination->element_bytes);
  } else {
    copy_apart(destination, source);
  }
}

kjit_status kj_take_copy_buffer(const kj_view *destination, const kj_view *source,
                                kj_diagnostics *diagnostics, void **buffer)
{
  size_t size_bytes = buffer_bytes(destination, source);
  *buffer = size_bytes ? malloc(size_bytes) : NULL;
  if (*buffer || !size_bytes) return KJIT_OK;
  return kj_error(diagnostics, KJIT_ERROR_MEMORY,
                  "out of memory: a copy between overlapping views needs %zu bytes", size_bytes);
}

kjit_status kj_copy_host(const kj_view *destination, const kj_view *source,
                         kj_diagnostics *diagnostics)
{
  void *buffer;
  KJ_TRY(kj_take_copy_buffer(destination, source, diagnostics, &buffer));
  kj_copy_host_through(destination, source, buffer);
  free(buffer);
  return KJIT_OK;
}

/* ---- arrays that share memory ---- */

kjit_status kj_make_view(kjit_array *array, kjit_type element, const int64_t *shape,
                         const int64_t *strides, uint32_t rank, int64_t offset,
                         kj_diagnostics *diagnostics, kjit_array **view)
{
  uint32_t bytes = kj_element_bytes(array->object.device->context->types, array->element);
  return kj_make_view_at(array, element, shape, strides, rank, offset * (int64_t)bytes, diagnostics,
                         view);
}

kjit_status kj_make_view_at(kjit_array *array, kjit_type element, const int64_t *shape,
                            const int64_t *strides, uint32_t rank, int64_t offset_bytes,
                            kj_diagnostics *diagnostics, kjit_array **view)
{
  kjit_array *made =
    kj_make_array(array->object.device, element, shape, strides, rank, KJIT_LAYOUT_STRIDED);
  if (!made) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  kjit_tensor own = made->tensor;
  made->tensor = array->tensor;
  made->tensor.rank = own.rank;
  made->tensor.code = own.code;
  made->tensor.bits = own.bits;
  made->tensor.lanes = own.lanes;
  made->tensor.shape = made->shape;
  made->tensor.strides = made->strides;
  if (offset_bytes) made->tensor.data = (char *)array->tensor.data + offset_bytes;
  made->is_read_only = array->is_read_only;
  made->is_in_place = array->is_in_place;
  made->memory = array->memory;
  made->object.generation = array->object.generation;
  made->owner = kjit_retain_array(array->owner);
  kj_publish_array(made);
  *view = made;
  return KJIT_OK;
}

/* ---- slices ---- */

typedef struct extents {
  uint32_t rank;
  bool is_empty;
  int64_t shape[KJ_MAX_RANK], strides[KJ_MAX_RANK];
  uint64_t offset; /* the strides of an empty view are irrelevant, and may have overflowed */
} extents;

static kjit_status check_position(int64_t position, int64_t extent, uint32_t dimension,
                                  kj_diagnostics *diagnostics)
{
  if (position >= 0 && position < extent) return KJIT_OK;
  if (extent > 0)
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT,
                    "dimension %u: position %lld is out of bounds for 0..%lld", dimension,
                    (long long)position, (long long)extent - 1);
  return kj_error(diagnostics, KJIT_ERROR_ARGUMENT,
                  "position %lld is out of bounds: dimension %u has extent 0", (long long)position,
                  dimension);
}

/* Computes with unsigned numbers, because the bounds may be arbitrary and signed arithmetic could
 * overflow. */
static uint64_t count_steps(const kjit_array_slice *slice)
{
  uint64_t distance = slice->step > 0 ? (uint64_t)slice->last - (uint64_t)slice->first
                                      : (uint64_t)slice->first - (uint64_t)slice->last;
  uint64_t step = slice->step > 0 ? (uint64_t)slice->step : 0 - (uint64_t)slice->step;
  bool is_empty = slice->step > 0 ? slice->first >= slice->last : slice->first <= slice->last;
  return is_empty ? 0 : (distance - 1) / step + 1;
}

static kjit_status slice_dimension(const kjit_array *array, uint32_t dimension,
                                   const kjit_array_slice *slice, extents *result,
                                   kj_diagnostics *diagnostics)
{
  int64_t extent = array->shape[dimension], stride = array->strides[dimension];
  uint64_t count = slice->step ? count_steps(slice) : 1;
  if (count) {
    KJ_TRY(check_position(slice->first, extent, dimension, diagnostics));
    result->offset += (uint64_t)slice->first * (uint64_t)stride;
  }
  result->is_empty = result->is_empty || !count || !extent;
  if (!slice->step) return KJIT_OK;
  /* a count of extent + 1 is enough, because the last index is then already invalid */
  if (count > (uint64_t)extent) count = (uint64_t)extent + 1;
  if (count > 1) {
    __int128 last = (__int128)slice->first + (__int128)(count - 1) * slice->step;
    int64_t shown = last > INT64_MAX ? INT64_MAX : last < INT64_MIN ? INT64_MIN : (int64_t)last;
    KJ_TRY(check_position(shown, extent, dimension, diagnostics));
  }
  result->shape[result->rank] = (int64_t)count;
  result->strides[result->rank++] = count > 1 ? stride * slice->step : 1;
  return KJIT_OK;
}

static kjit_status slice_array(kjit_array *array, const kjit_array_slice *slices, uint32_t count,
                               kj_diagnostics *diagnostics, kjit_array **view)
{
  extents result = { 0 };
  uint32_t rank = (uint32_t)array->tensor.rank;
  KJ_TRY(kj_check_object(&array->object, "array", diagnostics));
  if (count > rank)
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT,
                    "got %u slices for an array with %u dimensions", count, rank);
  for (uint32_t i = 0; i < rank; i++) {
    kjit_array_slice whole = { 0, array->shape[i], 1 };
    KJ_TRY(slice_dimension(array, i, i < count ? &slices[i] : &whole, &result, diagnostics));
  }
  return kj_make_view(array, array->element, result.shape, result.strides, result.rank,
                      result.is_empty ? 0 : (int64_t)result.offset, diagnostics, view);
}

kjit_status kjit_slice_array(kjit_array *array, const kjit_array_slice *slices, uint32_t count,
                             kjit_array **view)
{
  kj_diagnostics diagnostics = { 0 };
  const char *missing = !view ? "view" : count && !slices ? "slices" : NULL;
  KJ_TRY(kj_check_array_call(array, "kjit_slice_array", missing));
  (void)slice_array(array, slices, count, &diagnostics, view);
  return ki_finish_call(array->object.device->context, &diagnostics);
}

/* ---- reshape ---- */

static kjit_status complete_shape(const kjit_array *array, const int64_t *shape, uint32_t rank,
                                  kj_diagnostics *diagnostics, int64_t *complete, uint64_t *size)
{
  int open = -1;
  uint64_t known = 1;
  *size = 1;
  for (int32_t i = 0; i < array->tensor.rank; i++) *size *= (uint64_t)array->shape[i];
  for (uint32_t i = 0; i < rank; i++) {
    complete[i] = shape[i];
    if (shape[i] < -1 || (shape[i] == -1 && open >= 0))
      return kj_error(diagnostics, KJIT_ERROR_ARGUMENT,
                      "extent %lld of dimension %u is negative; only a single extent may be -1",
                      (long long)shape[i], i);
    if (shape[i] == -1) open = (int)i;
    else if (__builtin_mul_overflow(known, (uint64_t)shape[i], &known))
      return kj_error(diagnostics, KJIT_ERROR_ARGUMENT, "the extents do not fit the address space");
  }
  bool fits = open < 0 ? known == *size : known && *size % known == 0;
  if (!fits)
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT,
                    "an array with %llu elements cannot have this shape",
                    (unsigned long long)*size);
  if (open >= 0) complete[open] = (int64_t)(*size / known);
  return KJIT_OK;
}

/* Computes the strides of a view of the array with a new shape. Returns false if there is no such
 * view: a new dimension can extend over several old dimensions only if these are contiguous with
 * each other. */
static bool divide(const kjit_array *array, const int64_t *shape, uint32_t rank, int64_t *strides)
{
  int64_t old_shape[KJ_MAX_RANK], old_strides[KJ_MAX_RANK];
  uint32_t old_rank = 0, old = 0, fresh = 0;
  for (int32_t i = 0; i < array->tensor.rank; i++) {
    if (array->shape[i] == 1) continue;
    old_shape[old_rank] = array->shape[i];
    old_strides[old_rank++] = array->strides[i];
  }
  while (old < old_rank) {
    int64_t old_count = old_shape[old], new_count = fresh < rank ? shape[fresh] : 1;
    uint32_t old_end = old + 1, new_end = fresh < rank ? fresh + 1 : fresh;
    while (old_count != new_count) {
      if (old_count < new_count && old_end < old_rank) {
        if (old_strides[old_end - 1] != old_strides[old_end] * old_shape[old_end]) return false;
        old_count *= old_shape[old_end++];
      } else if (new_end < rank) {
        new_count *= shape[new_end++];
      } else {
        return false;
      }
    }
    KJ_ASSERT(old_count == new_count && old_end <= old_rank && new_end <= rank);
    int64_t stride = old_strides[old_end - 1];
    for (uint32_t i = new_end; i-- > fresh;) {
      strides[i] = stride;
      stride *= shape[i];
    }
    old = old_end;
    fresh = new_end;
  }
  /* the remaining new dimensions have one element */
  for (; fresh < rank; fresh++) strides[fresh] = 1;
  return true;
}

static kjit_status reshape(kjit_array *array, const int64_t *shape, uint32_t rank,
                           kj_diagnostics *diagnostics, kjit_array **view)
{
  int64_t complete[KJ_MAX_RANK], strides[KJ_MAX_RANK];
  uint64_t size;
  KJ_TRY(kj_check_object(&array->object, "array", diagnostics));
  if (rank > KJ_MAX_RANK)
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT, "an array has at most %d dimensions, not %u",
                    KJ_MAX_RANK, rank);
  KJ_TRY(complete_shape(array, shape, rank, diagnostics, complete, &size));
  if (!size) kj_fill_strides(strides, complete, rank);
  else if (!divide(array, complete, rank, strides))
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT,
                    "the strides of the array do not allow a view with this shape; copy it to a "
                    "contiguous array");
  return kj_make_view(array, array->element, complete, strides, rank, 0, diagnostics, view);
}

kjit_status kjit_reshape_array(kjit_array *array, const int64_t *shape, uint32_t rank,
                               kjit_array **view)
{
  kj_diagnostics diagnostics = { 0 };
  const char *missing = !view ? "view" : rank && !shape ? "shape" : NULL;
  KJ_TRY(kj_check_array_call(array, "kjit_reshape_array", missing));
  (void)reshape(array, shape, rank, &diagnostics, view);
  return ki_finish_call(array->object.device->context, &diagnostics);
}

/* ---- transpose ---- */

static kjit_status transpose(kjit_array *array, const uint32_t *axes, kj_diagnostics *diagnostics,
                             kjit_array **view)
{
  int64_t shape[KJ_MAX_RANK], strides[KJ_MAX_RANK];
  uint32_t rank = (uint32_t)array->tensor.rank, seen = 0;
  KJ_TRY(kj_check_object(&array->object, "array", diagnostics));
  KJ_ASSERT(rank <= KJ_MAX_RANK);
  for (uint32_t i = 0; i < rank; i++) {
    uint32_t axis = axes ? axes[i] : rank - 1 - i;
    if (axis >= rank || seen >> axis & 1)
      return kj_error(diagnostics, KJIT_ERROR_ARGUMENT,
                      "axis %u is given for dimension %u, but every dimension of the array must "
                      "occur exactly once",
                      axis, i);
    seen |= 1u << axis;
    shape[i] = array->shape[axis];
    strides[i] = array->strides[axis];
  }
  return kj_make_view(array, array->element, shape, strides, rank, 0, diagnostics, view);
}

kjit_status kjit_transpose_array(kjit_array *array, const uint32_t *axes, kjit_array **view)
{
  kj_diagnostics diagnostics = { 0 };
  KJ_TRY(kj_check_array_call(array, "kjit_transpose_array", view ? NULL : "view"));
  (void)transpose(array, axes, &diagnostics, view);
  return ki_finish_call(array->object.device->context, &diagnostics);
}
