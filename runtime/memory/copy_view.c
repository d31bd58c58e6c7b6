/* Two views that are copied, brought to the fewest dimensions. */
#include "memory/copy.h"

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

static void swap_dimensions(kj_view *view, uint32_t a, uint32_t b)
{
  int64_t shape = view->shape[a], stride = view->strides[a];
  move_dimension(view, b, a);
  view->shape[b] = shape;
  view->strides[b] = stride;
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
