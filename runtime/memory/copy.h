/* Moving elements: the host's part, the GPU's part, and the kernels of the library between them. */
#ifndef KJ_COPY_H
#define KJ_COPY_H

#include "memory/array.h"
#include "stream/stream.h"

/* Both views, of equal shape, with the dimensions in an order, and as few of them, as copying
 * needs: sorted by the strides of `lead`, which become positive, what is contiguous in both merged,
 * no dimension of one element. */
void kj_simplify_views(kj_view *lead, kj_view *other);
/* One line without gaps, or one element. */
bool kj_is_line(const kj_view *view);
/* Row-major elements of the view's shape at another address. */
kj_view kj_dense_view(const kj_view *view, uint64_t address);

/* The argument as something to write. Errors: MISUSE, ARGUMENT. */
kjit_status kj_view_destination(const kjit_arg *argument, kjit_context *context,
                                kj_diagnostics *diagnostics, kj_view *view);

/* What is queued uses the argument, if it is an array: said before it is queued, as memory that
 * another thread releases meanwhile is the host's mistake, not kjit's. device NULL: nothing is. */
kjit_status kj_note_argument(const kjit_arg *argument, kjit_stream *stream,
                             const kjit_device *device, kj_diagnostics *diagnostics);

/* Copies between views of equal shape on a GPU by a kernel, and fills one with bits of its element
 * size; queued on the stream. They end the call: the context has the diagnostics. */
kjit_status kj_copy_strided(kjit_device *device, const kj_view *to, const kj_view *from,
                            kjit_stream *stream);
kjit_status kj_fill_strided(kjit_device *device, const kj_view *to, const uint64_t bits[2],
                            kjit_stream *stream);

#endif
