/* Views: arrays on the memory of another one. */
#include <stdlib.h>
#include <string.h>

#include "memory/array.h"

static kjit_status make_view(kjit_array *array, const int64_t *shape, const int64_t *strides,
                             uint32_t rank, int64_t offset, kj_diagnostics *diagnostics,
                             kjit_array **view)
{
  kjit_array *made =
    kj_make_array(array->object.device, array->element, shape, strides, rank, KJIT_LAYOUT_STRIDED);
  if (!made) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  int32_t own_rank = made->tensor.rank;
  made->tensor = array->tensor;
  made->tensor.rank = own_rank;
  made->tensor.shape = made->shape;
  made->tensor.strides = made->strides;
  if (offset)
    made->tensor.data =
      (char *)array->tensor.data +
      offset * (int64_t)kj_element_bytes(array->object.device->context->types, array->element);
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
  uint64_t offset; /* means nothing, and may overflow, where it is empty */
} extents;

static kjit_status check_position(int64_t position, int64_t extent, uint32_t dimension,
                                  kj_diagnostics *diagnostics)
{
  if (position >= 0 && position < extent) return KJIT_OK;
  if (extent > 0)
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT,
                    "dimension %u: position %lld is outside of 0..%lld", dimension,
                    (long long)position, (long long)extent - 1);
  return kj_error(diagnostics, KJIT_ERROR_ARGUMENT,
                  "position %lld is out of bounds: dimension %u has extent 0", (long long)position,
                  dimension);
}

/* Computed without a sign that overflows: the ends may be any numbers. */
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
  /* too many: the last position is outside, whatever it is */
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
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT, "there are %u slices for %u dimensions",
                    count, rank);
  for (uint32_t i = 0; i < rank; i++) {
    kjit_array_slice whole = { 0, array->shape[i], 1 };
    KJ_TRY(slice_dimension(array, i, i < count ? &slices[i] : &whole, &result, diagnostics));
  }
  return make_view(array, result.shape, result.strides, result.rank,
                   result.is_empty ? 0 : (int64_t)result.offset, diagnostics, view);
}

kjit_status kjit_slice_array(kjit_array *array, const kjit_array_slice *slices, uint32_t count,
                             kjit_array **view)
{
  if (!array) return KJIT_ERROR_MISUSE;
  kjit_context *context = array->object.device->context;
  if (ki_is_forked(context)) return KJIT_ERROR_FORKED;
  if (!view || (count && !slices))
    return ki_fail_call(context, KJIT_ERROR_MISUSE, "kjit_slice_array: %s is NULL",
                        view ? "slices" : "view");
  kj_diagnostics diagnostics = { 0 };
  (void)slice_array(array, slices, count, &diagnostics, view);
  return ki_finish_call(context, &diagnostics);
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
                      "extent %lld of dimension %u: one extent may be -1, none less",
                      (long long)shape[i], i);
    if (shape[i] == -1) open = (int)i;
    else if (__builtin_mul_overflow(known, (uint64_t)shape[i], &known))
      return kj_error(diagnostics, KJIT_ERROR_ARGUMENT, "the extents do not fit the address space");
  }
  bool fits = open < 0 ? known == *size : known && *size % known == 0;
  if (!fits)
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT, "an array of %llu elements has no such shape",
                    (unsigned long long)*size);
  if (open >= 0) complete[open] = (int64_t)(*size / known);
  return KJIT_OK;
}

/* Runs of dimensions that are contiguous in each other are divided anew; a boundary between two
 * runs has to stay one. */
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
    int64_t stride = old_strides[old_end - 1];
    for (uint32_t i = new_end; i-- > fresh;) {
      strides[i] = stride;
      stride *= shape[i];
    }
    old = old_end;
    fresh = new_end;
  }
  for (; fresh < rank; fresh++) strides[fresh] = 1; /* of one element each */
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
                    "the elements do not lie so that a view can have this shape: copy them to a "
                    "contiguous array");
  return make_view(array, complete, strides, rank, 0, diagnostics, view);
}

kjit_status kjit_reshape_array(kjit_array *array, const int64_t *shape, uint32_t rank,
                               kjit_array **view)
{
  if (!array) return KJIT_ERROR_MISUSE;
  kjit_context *context = array->object.device->context;
  if (ki_is_forked(context)) return KJIT_ERROR_FORKED;
  if (!view || (rank && !shape))
    return ki_fail_call(context, KJIT_ERROR_MISUSE, "kjit_reshape_array: %s is NULL",
                        view ? "shape" : "view");
  kj_diagnostics diagnostics = { 0 };
  (void)reshape(array, shape, rank, &diagnostics, view);
  return ki_finish_call(context, &diagnostics);
}

/* ---- transpose ---- */

static kjit_status transpose(kjit_array *array, const uint32_t *axes, kj_diagnostics *diagnostics,
                             kjit_array **view)
{
  int64_t shape[KJ_MAX_RANK], strides[KJ_MAX_RANK];
  uint32_t rank = (uint32_t)array->tensor.rank, seen = 0;
  KJ_TRY(kj_check_object(&array->object, "array", diagnostics));
  for (uint32_t i = 0; i < rank; i++) {
    uint32_t axis = axes ? axes[i] : rank - 1 - i;
    if (axis >= rank || seen >> axis & 1)
      return kj_error(diagnostics, KJIT_ERROR_ARGUMENT,
                      "axis %u of dimension %u: every dimension of the array has to come once",
                      axis, i);
    seen |= 1u << axis;
    shape[i] = array->shape[axis];
    strides[i] = array->strides[axis];
  }
  return make_view(array, shape, strides, rank, 0, diagnostics, view);
}

kjit_status kjit_transpose_array(kjit_array *array, const uint32_t *axes, kjit_array **view)
{
  if (!array) return KJIT_ERROR_MISUSE;
  kjit_context *context = array->object.device->context;
  if (ki_is_forked(context)) return KJIT_ERROR_FORKED;
  if (!view) return ki_fail_call(context, KJIT_ERROR_MISUSE, "kjit_transpose_array: view is NULL");
  kj_diagnostics diagnostics = { 0 };
  (void)transpose(array, axes, &diagnostics, view);
  return ki_finish_call(context, &diagnostics);
}
