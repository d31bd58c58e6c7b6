#include "memory/view.h"

#include <stdlib.h>
#include <string.h>

void kj_fill_strides(int64_t *strides, const int64_t *shape, uint32_t rank)
{
  int64_t stride = 1;
  for (uint32_t i = rank; i-- > 0;) {
    strides[i] = stride;
    /* of an empty array, whose strides say nothing */
    if (__builtin_mul_overflow(stride, shape[i] ? shape[i] : 1, &stride)) stride = 1;
  }
}

/* Counts elements; false when the bytes between the first and the last element do not fit the
 * address space. */
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
  /* so that nobody computes with what the host has left there */
  for (uint32_t i = 0; i < view->rank && is_empty; i++) view->strides[i] = 1;
  view->count = is_empty ? 0 : count;
  return !__builtin_mul_overflow(span, (int64_t)view->element_bytes, &span) &&
         (is_empty || count <= INT64_MAX / (view->element_bytes ? view->element_bytes : 1));
}

kjit_status kj_view_tensor(ki_types *types, const kjit_tensor *tensor, kjit_type element,
                           const char *what, kj_diagnostics *diagnostics, kj_view *view)
{
  *view = (kj_view){ 0 };
  if (!kj_locate_tensor(tensor, &view->kind, &view->ordinal))
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT,
                    "%s: device type %d is neither the CPU's (1) nor CUDA's (2)", what,
                    tensor->device_type);
  if (tensor->rank < 0 || tensor->rank > KJ_MAX_RANK)
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT, "%s: expected 0 to %d dimensions, got %d",
                    what, KJ_MAX_RANK, tensor->rank);
  view->element = kj_type_of_tensor(types, tensor, element);
  if (view->element == KJIT_ANY)
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT,
                    "%s: DLPack element type (code %u, %u bits, %u lanes) is none of kjit's", what,
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
  view->count = 1;
  if (!tensor->strides) {
    uint64_t size = 1;
    for (uint32_t i = 0; i < view->rank; i++)
      if (view->shape[i] && __builtin_mul_overflow(size, (uint64_t)view->shape[i], &size))
        size = UINT64_MAX;
    if (size > INT64_MAX / 16)
      return kj_error(diagnostics, KJIT_ERROR_ARGUMENT,
                      "%s: the extents do not fit the address space", what);
    kj_fill_strides(view->strides, view->shape, view->rank);
  }
  if (!measure(view))
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT,
                    "%s: the extents and strides do not fit the address space", what);
  if (view->count && (!tensor->data || view->address < tensor->byte_offset))
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT, "%s: the tensor has no data", what);
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

kj_view kj_reverse_view(const kj_view *view)
{
  kj_view reversed = *view;
  for (uint32_t i = 0; i < view->rank; i++) {
    reversed.shape[i] = view->shape[view->rank - 1 - i];
    reversed.strides[i] = view->strides[view->rank - 1 - i];
  }
  return reversed;
}

void kj_view_range(const kj_view *view, uint64_t *low, uint64_t *high)
{
  int64_t least = 0, most = 0;
  *low = *high = view->address;
  if (!view->count) return;
  for (uint32_t i = 0; i < view->rank; i++) {
    int64_t reach = (view->shape[i] - 1) * view->strides[i];
    if (reach < 0) least += reach;
    if (reach > 0) most += reach;
  }
  *low = view->address + (uint64_t)(least * (int64_t)view->element_bytes);
  *high = view->address + (uint64_t)((most + 1) * (int64_t)view->element_bytes);
}

/* ---- copies on the host ---- */

/* One line of elements: the innermost dimension. The sizes of scalars are few, so each gets a loop
 * that the compiler can make moves of. */
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

bool kj_do_overlap(const kj_view *a, const kj_view *b)
{
  uint64_t a_low, a_high, b_low, b_high;
  kj_view_range(a, &a_low, &a_high);
  kj_view_range(b, &b_low, &b_high);
  return a_low < b_high && b_low < a_high;
}

kjit_status kj_copy_host(const kj_view *destination, const kj_view *source,
                         kj_diagnostics *diagnostics)
{
  if (!destination->count) return KJIT_OK;
  size_t size_bytes = destination->count * destination->element_bytes;
  if (kj_is_row_major(destination) && kj_is_row_major(source)) {
    memmove((void *)(uintptr_t)destination->address, (const void *)(uintptr_t)source->address,
            size_bytes);
    return KJIT_OK;
  }
  if (!kj_do_overlap(destination, source)) {
    copy_apart(destination, source);
    return KJIT_OK;
  }
  kj_view between = *source;
  void *memory = malloc(size_bytes);
  if (!memory)
    return kj_error(diagnostics, KJIT_ERROR_MEMORY,
                    "out of memory: a copy between overlapping views needs %zu bytes", size_bytes);
  between.address = (uint64_t)(uintptr_t)memory;
  kj_fill_strides(between.strides, between.shape, between.rank);
  copy_apart(&between, source);
  copy_apart(destination, &between);
  free(memory);
  return KJIT_OK;
}
