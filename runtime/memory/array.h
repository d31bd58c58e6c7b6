/* Arrays, and elements in memory: what making, viewing, copying and filling them share. */
#ifndef KJ_ARRAY_H
#define KJ_ARRAY_H

#include "base/runtime.h"

/* ---- view.c: elements by address, extents and strides ---- */

typedef struct kj_view {
  kjit_device_kind kind;
  int32_t ordinal;
  bool is_placed; /* in memory of one of several CPU devices */
  kjit_type element;
  uint32_t rank, element_bytes;
  uint64_t address;                                 /* of element 0 */
  uint64_t count;                                   /* elements */
  int64_t shape[KJ_MAX_RANK], strides[KJ_MAX_RANK]; /* in elements */
} kj_view;

static inline bool kj_is_on_host(const kj_view *view) { return view->kind == KJIT_DEVICE_CPU; }
/* element: KJIT_ANY, or what the host says besides. Errors: ARGUMENT for what no array can be; what
 * names it in messages. */
kjit_status kj_view_tensor(ki_types *types, const kjit_tensor *tensor, kjit_type element,
                           const char *what, kj_diagnostics *diagnostics, kj_view *view);
/* Strides of a row-major contiguous array. */
void kj_fill_strides(int64_t *strides, const int64_t *shape, uint32_t rank);
/* First and one past the last byte of the elements; an empty view gives low = high. */
void kj_view_range(const kj_view *view, uint64_t *low, uint64_t *high);
/* Whether their ranges do. */
bool kj_do_overlap(const kj_view *a, const kj_view *b);
bool kj_is_row_major(const kj_view *view);
/* One line without gaps, or one element. */
bool kj_is_line(const kj_view *view);
/* Row-major elements of the view's shape at another address. */
kj_view kj_dense_view(const kj_view *view, uint64_t address);
/* Both views, of equal shape, with the dimensions in an order, and as few of them, as copying
 * needs: sorted by the strides of `lead`, which become positive, what is contiguous in both merged,
 * no dimension of one element. */
void kj_simplify_views(kj_view *lead, kj_view *other);
/* Copies between host memory of equal shape and element size; views that overlap are fine. Errors:
 * MEMORY. */
kjit_status kj_copy_host(const kj_view *destination, const kj_view *source,
                         kj_diagnostics *diagnostics);

/* ---- array.c ---- */

/* Numbers of DLPack beside kjit_device_kind. */
enum { KJ_DLPACK_PINNED = 3, KJ_DLPACK_MANAGED = 13 };

/* An array without memory, with one reference; strides NULL: contiguous in that order. NULL: out of
 * memory. */
kjit_array *kj_make_array(kjit_device *device, kjit_type element, const int64_t *shape,
                          const int64_t *strides, uint32_t rank, kjit_layout layout);
/* As kjit_create_array_with, in memory of the pool in which another array has left something,
 * if there is such: kj_release_array_with, with the same number, not 0, and an array as large. */
kjit_status kj_create_array_with(const kjit_array_config *config, uint64_t content,
                                 kj_diagnostics *diagnostics, kjit_array **array,
                                 bool *has_content);
/* By its only owner, when all that writes what it is to leave is queued on its stream. */
void kj_release_array_with(kjit_array *array, uint64_t content);
/* It is complete: the host owns it. */
void kj_publish_array(kjit_array *array);
/* Ends an array that was not published, and has no memory. */
void kj_drop_array(kjit_array *array);
/* Of a call on the array, which may be NULL: kj_check_call. */
static inline kjit_status kj_check_array_call(const kjit_array *array, const char *function,
                                              const char *missing)
{
  return kj_check_call(array ? array->object.device->context : NULL, function, missing);
}
kjit_status kj_view_array(const kjit_array *array, const char *what, kj_diagnostics *diagnostics,
                          kj_view *view);

/* view.c: an array on the memory of another one. Its elements have to be inside. offset: of its
 * first element, in elements of array. Errors: MEMORY. */
kjit_status kj_make_view(kjit_array *array, kjit_type element, const int64_t *shape,
                         const int64_t *strides, uint32_t rank, int64_t offset,
                         kj_diagnostics *diagnostics, kjit_array **view);
/* As kj_make_view, and the offset is in bytes. */
kjit_status kj_make_view_at(kjit_array *array, kjit_type element, const int64_t *shape,
                            const int64_t *strides, uint32_t rank, int64_t offset_bytes,
                            kj_diagnostics *diagnostics, kjit_array **view);

/* ---- copy.c ---- */

/* The argument as something to write. Errors: MISUSE, ARGUMENT. */
kjit_status kj_view_destination(const kjit_arg *argument, kjit_context *context,
                                kj_diagnostics *diagnostics, kj_view *view);
/* What is queued uses the argument, if it is an array: said before it is queued, as memory that
 * another thread releases meanwhile is the host's mistake, not kjit's. device NULL: nothing is. */
kjit_status kj_note_argument(const kjit_arg *argument, kjit_stream *stream,
                             const kjit_device *device, kj_diagnostics *diagnostics);
/* A copy between views of the host: done now, or when the graph is launched that the stream is
 * captured for. value: the two words that the source lies in, which need not live on; else NULL. */
kjit_status kj_queue_host_copy(kjit_context *context, kjit_stream *stream, const kj_view *to,
                               const kj_view *from, const uint64_t value[2],
                               kj_diagnostics *diagnostics);

/* ---- fill.c: kernels of the library ---- */

/* Copies between views of equal shape in memory of a device, and fills one with bits of its element
 * size; queued on the stream. */
kjit_status kj_copy_strided(kjit_device *device, const kj_view *to, const kj_view *from,
                            kjit_stream *stream, kj_diagnostics *diagnostics);
kjit_status kj_fill_strided(kjit_device *device, const kj_view *to, const uint64_t bits[2],
                            kjit_stream *stream, kj_diagnostics *diagnostics);

#endif
