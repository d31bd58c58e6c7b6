/* Elements in memory: address, extents, strides. What copies and staged launches work on. */
#ifndef KJ_VIEW_H
#define KJ_VIEW_H

#include "base/runtime.h"

typedef struct kj_view {
  kjit_device_kind kind;
  int32_t ordinal;
  kjit_type element;
  uint32_t rank, element_bytes;
  uint64_t address;                                 /* of element 0 */
  uint64_t count;                                   /* elements */
  int64_t shape[KJ_MAX_RANK], strides[KJ_MAX_RANK]; /* in elements */
} kj_view;

static inline bool kj_is_on_host(const kj_view *view) { return view->kind == KJIT_DEVICE_CPU; }
/* Of their ranges, at least. */
bool kj_do_overlap(const kj_view *a, const kj_view *b);
/* element: KJIT_ANY, or what the host says besides. Errors: ARGUMENT for what no array can be; what
 * names it in messages. */
kjit_status kj_view_tensor(ki_types *types, const kjit_tensor *tensor, kjit_type element,
                           const char *what, kj_diagnostics *diagnostics, kj_view *view);
bool kj_is_row_major(const kj_view *view);
/* The same elements with the dimensions in reverse order: a column-major view becomes row-major. */
kj_view kj_reverse_view(const kj_view *view);
/* Copies between host memory of equal shape and element type; views that overlap are fine. Errors:
 * MEMORY. */
kjit_status kj_copy_host(const kj_view *destination, const kj_view *source,
                         kj_diagnostics *diagnostics);
/* Strides of a row-major contiguous array. */
void kj_fill_strides(int64_t *strides, const int64_t *shape, uint32_t rank);
/* First and one past the last byte of the elements; an empty view gives low = high. */
void kj_view_range(const kj_view *view, uint64_t *low, uint64_t *high);

#endif
