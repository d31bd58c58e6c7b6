/* What a library must mind in a process that is not its own: forks, objects that are released late,
 * signals of writing; its clock. */
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

/* Objects of a host that it releases after their context has ended. The context's end frees what
 * they have; their memory remains, so that the release finds it, and is freed by that, or when the
 * library is unloaded. */
typedef struct kj_remains {
  struct kj_remains *previous, *next;
  void *memory;
} kj_remains;

/* remains lies in memory, which is malloc's. Returns kj_forks, which the release brings along. */
uint32_t kj_keep_remains(kj_remains *remains, void *memory);
/* The host's release: frees the memory; a child that was forked meanwhile leaves it alone. */
void kj_drop_remains(kj_remains *remains, uint32_t forks);
/* How many there are: for tests. */
size_t kj_count_remains(void);

/* Writing to files that a library opens in its host's process. */

/* All of it, or false with errno. A file larger than the process may write gives EFBIG and no
 * signal. */
bool kj_write_quietly(int file, const void *bytes, size_t size_bytes);

/* For times, and for the events of the CPU. */
uint64_t kj_clock_ns(void);
/* The time of the clock when limit_ns have gone by. For a limit that the clock cannot reach it is
 * UINT64_MAX, which is never. Every limit that a host gives goes through this. */
uint64_t kj_deadline_ns(uint64_t limit_ns);

#endif
