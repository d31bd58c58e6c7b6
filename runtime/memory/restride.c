/* Implements views with arbitrary shape and strides, and views with another element type. */
#include <string.h>

#include "memory/array.h"

/* Returns whether the number of bytes fits 63 bits, as in every array. Several elements of a view
 * can have the same address, so the number may be larger than the size of the viewed array. */
static bool is_countable(const int64_t *shape, uint32_t rank, uint32_t element_bytes)
{
  uint64_t bytes = element_bytes;
  for (uint32_t i = 0; i < rank; i++)
    if (__builtin_mul_overflow(bytes, (uint64_t)shape[i], &bytes) || bytes > INT64_MAX)
      return false;
  return true;
}

/* Computes the lowest and the highest element index of an array with this shape and these strides,
 * relative to its first element. Returns false if an index does not fit 64 bits. The loop ends at
 * the first sum that does not fit 64 bits, because the sum of all products could exceed 128
 * bits. */
static bool find_span(const int64_t *shape, const int64_t *strides, uint32_t rank, __int128 *low,
                      __int128 *high)
{
  *low = *high = 0;
  for (uint32_t i = 0; i < rank; i++) {
    __int128 last = (__int128)(shape[i] - 1) * strides[i];
    if (last < 0) *low += last;
    else *high += last;
    if (*low < INT64_MIN || *high > INT64_MAX) return false;
  }
  return true;
}

static bool has_elements(const int64_t *shape, uint32_t rank)
{
  for (uint32_t i = 0; i < rank; i++)
    if (!shape[i]) return false;
  return true;
}

static kjit_status check_span(const kjit_array *array, const int64_t *shape, const int64_t *strides,
                              uint32_t rank, int64_t offset, kj_diagnostics *diagnostics)
{
  __int128 low, high, own_low, own_high;
  uint32_t own_rank = (uint32_t)array->tensor.rank;
  for (uint32_t i = 0; i < rank; i++)
    if (shape[i] < 0)
      return kj_error(diagnostics, KJIT_ERROR_ARGUMENT, "extent %lld of dimension %u is negative",
                      (long long)shape[i], i);
  if (!has_elements(shape, rank)) return KJIT_OK;
  bool is_inside = has_elements(array->shape, own_rank) &&
                   find_span(array->shape, array->strides, own_rank, &own_low, &own_high) &&
                   find_span(shape, strides, rank, &low, &high) && low + offset >= own_low &&
                   high + offset <= own_high;
  if (!is_inside)
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT,
                    "the view contains elements outside of the array: all its elements must be "
                    "between the first and the last element of the array");
  const ki_types *types = array->object.device->context->types;
  if (!is_countable(shape, rank, kj_element_bytes(types, array->element)))
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT,
                    "the extents of the view do not fit the address space");
  return KJIT_OK;
}

static kjit_status restride(kjit_array *array, const int64_t *shape, const int64_t *strides,
                            uint32_t rank, int64_t offset, kj_diagnostics *diagnostics,
                            kjit_array **view)
{
  int64_t own[KJ_MAX_RANK];
  KJ_TRY(kj_check_object(&array->object, "array", diagnostics));
  if (rank > KJ_MAX_RANK)
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT, "an array has at most %d dimensions, not %u",
                    KJ_MAX_RANK, rank);
  KJ_TRY(check_span(array, shape, strides, rank, offset, diagnostics));
  bool is_empty = !has_elements(shape, rank);
  if (is_empty) kj_fill_strides(own, shape, rank);
  else if (rank) memcpy(own, strides, rank * sizeof *own);
  return kj_make_view(array, array->element, shape, own, rank, is_empty ? 0 : offset, diagnostics,
                      view);
}

kjit_status kjit_restride_array(kjit_array *array, const int64_t *shape, const int64_t *strides,
                                uint32_t rank, int64_t offset, kjit_array **view)
{
  kj_diagnostics diagnostics = { 0 };
  const char *missing = !view              ? "view"
                        : rank && !shape   ? "shape"
                        : rank && !strides ? "strides"
                                           : NULL;
  KJ_TRY(kj_check_array_call(array, "kjit_restride_array", missing));
  (void)restride(array, shape, strides, rank, offset, &diagnostics, view);
  return ki_finish_call(array->object.device->context, &diagnostics);
}

static kjit_status retype(kjit_array *array, kjit_type element, uint32_t part,
                          kj_diagnostics *diagnostics, kjit_array **view)
{
  KJ_TRY(kj_check_object(&array->object, "array", diagnostics));
  const ki_types *types = array->object.device->context->types;
  if (element == KJIT_ANY || element >= KJIT_SCALAR_COUNT)
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT, "the new element type is not a scalar type");
  uint64_t own = kj_element_bytes(types, array->element), other = kj_element_bytes(types, element);
  if (own % other)
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT,
                    "elements of %llu bytes cannot be divided into elements of %llu bytes",
                    (unsigned long long)own, (unsigned long long)other);
  uint64_t count = own / other;
  if (part >= count)
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT,
                    "component %u does not exist: an element has %llu components", part,
                    (unsigned long long)count);
  int64_t strides[KJ_MAX_RANK];
  uint32_t rank = (uint32_t)array->tensor.rank;
  bool is_empty = false;
  for (uint32_t i = 0; i < rank; i++) {
    strides[i] = array->strides[i] * (int64_t)count;
    is_empty = is_empty || !array->shape[i];
  }
  int64_t offset_bytes = is_empty ? 0 : (int64_t)(part * other);
  return kj_make_view_at(array, element, array->shape, strides, rank, offset_bytes, diagnostics,
                         view);
}

kjit_status kjit_retype_array(kjit_array *array, kjit_type element, uint32_t part,
                              kjit_array **view)
{
  kj_diagnostics diagnostics = { 0 };
  KJ_TRY(kj_check_array_call(array, "kjit_retype_array", view ? NULL : "view"));
  (void)retype(array, element, part, &diagnostics, view);
  return ki_finish_call(array->object.device->context, &diagnostics);
}

static kjit_status protect(kjit_array *array, kj_diagnostics *diagnostics, kjit_array **view)
{
  KJ_TRY(kj_check_object(&array->object, "array", diagnostics));
  KJ_TRY(kj_make_view(array, array->element, array->shape, array->strides,
                      (uint32_t)array->tensor.rank, 0, diagnostics, view));
  (*view)->is_read_only = true;
  (*view)->line.form = 0; /* launches of read-only arrays are checked on the slow path */
  return KJIT_OK;
}

kjit_status kjit_protect_array(kjit_array *array, kjit_array **view)
{
  kj_diagnostics diagnostics = { 0 };
  KJ_TRY(kj_check_array_call(array, "kjit_protect_array", view ? NULL : "view"));
  (void)protect(array, &diagnostics, view);
  return ki_finish_call(array->object.device->context, &diagnostics);
}
