/* Use after fork. A child has the parent's memory, but neither its threads nor its GPU: a context
 * works in the process that made it only. */
#ifndef KJ_SUPPORT_FORK_H
#define KJ_SUPPORT_FORK_H

#include <stdatomic.h>
#include <stdbool.h>

#include "support/context.h"

/* Forks between the first process with a context and this one; counted in the child. */
extern _Atomic uint32_t kj_forks;
/* Starts counting, once for the process. */
void kj_watch_forks(void);

/* One load: the hot path asks, too. */
static inline bool kj_is_forked(const kjit_context *context)
{
  return atomic_load_explicit(&kj_forks, memory_order_relaxed) != context->forks;
}

/* What kjit_get_diagnostic says then. Nothing of the context can be used for it: a thread that the
 * child does not have may hold its locks. */
extern const kjit_diagnostic kj_forked_diagnostic;

#endif
