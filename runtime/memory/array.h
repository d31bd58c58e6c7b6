/* Arrays and views: declarations for creating arrays and for viewing, copying and filling them. */
#ifndef KJ_ARRAY_H
#define KJ_ARRAY_H

#include "base/runtime.h"

/* ---- view.c: a view describes elements by address, extents and strides ---- */

typedef struct kj_view {
  kjit_device_kind kind;
  int32_t ordinal;
  bool is_placed; /* the memory belongs to one of several CPU devices */
  kjit_type element;
  uint32_t rank, element_bytes;
  uint64_t address;                                 /* address of element 0 */
  uint64_t count;                                   /* number of elements */
  int64_t shape[KJ_MAX_RANK], strides[KJ_MAX_RANK]; /* in elements */
} kj_view;

static inline bool kj_is_on_host(const kj_view *view) { return view->kind == KJIT_DEVICE_CPU; }
/* Makes a view of a tensor. element is the type that the application specified, or KJIT_ANY. what:
 * name of the tensor in messages. Errors: ARGUMENT if no array can have such a shape, strides and
 * element type. */
kjit_status kj_view_tensor(ki_types *types, const kjit_tensor *tensor, kjit_type element,
                           const char *what, kj_diagnostics *diagnostics, kj_view *view);
/* Stores the strides of a contiguous row-major array with this shape. */
void kj_fill_strides(int64_t *strides, const int64_t *shape, uint32_t rank);
/* Stores the address of the first byte of the elements, and the address of the byte after the last
 * one. For an empty view the two addresses are equal. */
void kj_view_range(const kj_view *view, uint64_t *low, uint64_t *high);
/* Returns whether the byte ranges of two views overlap. */
bool kj_do_overlap(const kj_view *a, const kj_view *b);
bool kj_is_row_major(const kj_view *view);
/* Returns whether the elements are contiguous along one axis, or there is only one element. */
bool kj_is_line(const kj_view *view);
/* Returns a row-major view with the same shape at another address. */
kj_view kj_dense_view(const kj_view *view, uint64_t address);
/* Simplifies two views of equal shape for copying. Sorts the dimensions by the strides of `lead`,
 * which become positive, merges dimensions that are contiguous in both, and drops dimensions with
 * one element. */
void kj_simplify_views(kj_view *lead, kj_view *other);
/* Copies between host memory of equal shape and element size. The views may overlap. Errors:
 * MEMORY. */
kjit_status kj_copy_host(const kj_view *destination, const kj_view *source,
                         kj_diagnostics *diagnostics);
/* The two steps of kj_copy_host, for a copy that must not fail when it runs. kj_take_copy_buffer
 * allocates the buffer that the copy needs, or sets *buffer to NULL if the copy needs none. The
 * caller frees the buffer. */
kjit_status kj_take_copy_buffer(const kj_view *destination, const kj_view *source,
                                kj_diagnostics *diagnostics, void **buffer);
void kj_copy_host_through(const kj_view *destination, const kj_view *source, void *buffer);

/* ---- array.c ---- */

/* DLPack device types that are not a kjit_device_kind. */
enum { KJ_DLPACK_PINNED = 3, KJ_DLPACK_MANAGED = 13 };

/* Makes an array without memory and with one reference. strides NULL means contiguous in the given
 * layout. Returns NULL if out of memory. */
kjit_array *kj_make_array(kjit_device *device, kjit_type element, const int64_t *shape,
                          const int64_t *strides, uint32_t rank, kjit_layout layout);
/* Creates an array like kjit_create_array_with. If the pool has a block of the same size that
 * kj_release_array_with released with the same nonzero `content`, the array gets that block, and
 * *has_content is true. */
kjit_status kj_create_array_with(const kjit_array_config *config, uint64_t content,
                                 kj_diagnostics *diagnostics, kjit_array **array,
                                 bool *has_content);
/* Releases the array. The pool keeps its memory and the number `content`, by which
 * kj_create_array_with can find the memory. The caller must be the only owner of the array, and all
 * work that writes the content must be queued on the array's stream. */
void kj_release_array_with(kjit_array *array, uint64_t content);
/* Marks the array as complete, so that it can be passed to the application. */
void kj_publish_array(kjit_array *array);
/* Frees an array that was not published and has no memory. */
void kj_drop_array(kjit_array *array);
/* Checks a public call on the array like kj_check_call. array may be NULL. */
static inline kjit_status kj_check_array_call(const kjit_array *array, const char *function,
                                              const char *missing)
{
  return kj_check_call(array ? array->object.device->context : NULL, function, missing);
}
kjit_status kj_view_array(const kjit_array *array, const char *what, kj_diagnostics *diagnostics,
                          kj_view *view);

/* view.c: Makes an array that shares the memory of `array`. All its elements must lie in this
 * memory. offset is the position of its first element, in elements of `array`. Errors: MEMORY. */
kjit_status kj_make_view(kjit_array *array, kjit_type element, const int64_t *shape,
                         const int64_t *strides, uint32_t rank, int64_t offset,
                         kj_diagnostics *diagnostics, kjit_array **view);
/* Like kj_make_view, with an offset in bytes. */
kjit_status kj_make_view_at(kjit_array *array, kjit_type element, const int64_t *shape,
                            const int64_t *strides, uint32_t rank, int64_t offset_bytes,
                            kj_diagnostics *diagnostics, kjit_array **view);

/* ---- copy.c ---- */

/* Makes a view of an argument that the call will write. Errors: MISUSE, ARGUMENT. */
kjit_status kj_view_destination(const kjit_arg *argument, kjit_context *context,
                                kj_diagnostics *diagnostics, kj_view *view);
/* Records that work on the stream will use the argument, if it is an array. The caller queues the
 * work afterwards. Between this call and the queueing, the application must not release the memory
 * on another thread. device is NULL if no work is queued. */
kjit_status kj_note_argument(const kjit_arg *argument, kjit_stream *stream,
                             const kjit_device *device, kj_diagnostics *diagnostics);
/* Copies between views in host memory. If the stream is captured, the copy happens when the graph
 * is launched, otherwise immediately. If value is not NULL, `from` is a view of its two words; the
 * function copies them, because a graph reads them later. */
kjit_status kj_queue_host_copy(kjit_context *context, kjit_stream *stream, const kj_view *to,
                               const kj_view *from, const uint64_t value[2],
                               kj_diagnostics *diagnostics);

/* ---- fill.c: kernels of kjit's library ---- */

/* Queue work on the stream: kj_copy_strided copies between views of equal shape in a device's
 * memory, and kj_fill_strided fills a view with bits of its element size. */
kjit_status kj_copy_strided(kjit_device *device, const kj_view *to, const kj_view *from,
                            kjit_stream *stream, kj_diagnostics *diagnostics);
kjit_status kj_fill_strided(kjit_device *device, const kj_view *to, const uint64_t bits[2],
                            kjit_stream *stream, kj_diagnostics *diagnostics);

#endif
