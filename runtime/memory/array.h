/* Making kjit arrays: what array.c, array_view.c, dlpack.c and ipc.c share. */
#ifndef KJ_ARRAY_H
#define KJ_ARRAY_H

#include "memory/pool.h"
#include "memory/view.h"

/* Numbers of DLPack beside kjit_device_kind. */
enum { KJ_DLPACK_PINNED = 3, KJ_DLPACK_MANAGED = 13 };

/* An array without memory, with one reference; strides NULL: contiguous in that order. malloc'd;
 * NULL: out of memory. */
kjit_array *kj_make_array(kjit_device *device, kjit_type element, const int64_t *shape,
                          const int64_t *strides, uint32_t rank, kjit_layout layout);
/* It is complete: the host owns it. */
void kj_publish_array(kjit_array *array);
/* Bytes of a contiguous array; 0: it is empty. Errors: ARGUMENT, MISUSE. */
kjit_status kj_measure_array(ki_types *types, kjit_type element, const int64_t *shape,
                             uint32_t rank, kj_diagnostics *diagnostics, size_t *size_bytes);
/* The first and last positions of its elements in memory, of arrays with strides of any sign. */
kjit_status kj_view_array(const kjit_array *array, const char *what, kj_diagnostics *diagnostics,
                          kj_view *view);
/* Ends an array that was not published, with its block. */
void kj_drop_array(kjit_array *array);
#endif
