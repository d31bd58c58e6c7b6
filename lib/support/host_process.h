/* What a library must mind in a process that is not its own: forks, and signals of writing; its
 * clock.
 */
#ifndef KJ_SUPPORT_HOST_PROCESS_H
#define KJ_SUPPORT_HOST_PROCESS_H

#include <kjit/status.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Use after fork. A child has the parent's memory, but neither its threads nor its GPU: a context
 * works in the process that made it only. */

/* Forks between the first process with a context and this one; counted in the child. */
extern _Atomic uint32_t kj_forks;
/* Starts counting, once for the process. */
void kj_watch_forks(void);

/* What kjit_get_diagnostic says then. Nothing of the context can be used for it: a thread that the
 * child does not have may hold its locks. */
extern const kjit_diagnostic kj_forked_diagnostic;

/* Writing to files that a library opens in its host's process. */

/* All of it, or false with errno. A file larger than the process may write gives EFBIG and no
 * signal. */
bool kj_write_quietly(int file, const void *bytes, size_t size_bytes);

/* For times, and for the events of the CPU. */
uint64_t kj_clock_ns(void);

#endif
