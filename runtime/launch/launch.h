/* The general way of a launch. */
#ifndef KJ_LAUNCH_LAUNCH_H
#define KJ_LAUNCH_LAUNCH_H

#include "code/specialization.h"
#include "support/assert.h"

/* What kjit_launch_config.flags may have. */
enum { KJ_LAUNCH_FLAGS = KJIT_LAUNCH_COOPERATIVE | KJIT_LAUNCH_NO_WAIT | KJIT_LAUNCH_PROGRAMMATIC };
/* Binds, places and configures the call and finds its code, or compiles it; held. NOT_READY reports
 * nothing. */
kjit_status kj_prepare_call(kj_call *call, const kjit_arg *arguments, size_t count,
                            kj_diagnostics *diagnostics, kjit_specialization **specialization);
/* For assertions of the learned way: whether the general one decides as it has: key, grid, block,
 * clusters, shared memory and parameter block. */
bool kj_agrees(const kj_call *decided, kjit_specialization *specialization,
               const kjit_arg *arguments, size_t count);

/* prepared.c: a launch on a stream of which kjit itself makes the graph (kj_is_recorded) is kept,
 * not run. Ends the call: the context has the diagnostics. */
kjit_status kj_record_launch(kjit_stream *stream, kjit_kernel *kernel,
                             const kjit_launch_config *config, const kjit_arg *arguments,
                             size_t count);

#endif
