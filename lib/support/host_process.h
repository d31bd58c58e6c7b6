/* Interaction with the application's process: forks, late releases of objects, signals caused by
 * writes, and the clock. */
#ifndef KJ_SUPPORT_HOST_PROCESS_H
#define KJ_SUPPORT_HOST_PROCESS_H

#include <kjit/status.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- fork ----
 *
 * A child process has the memory of its parent, but not its threads and GPU. A context therefore
 * works only in the process that created it. */

/* Number of forks between the process that created the first context and this one. The child
 * counts. */
extern _Atomic uint32_t kj_forks;
/* Starts counting. Has an effect once per process. */
void kj_watch_forks(void);

/* The diagnostic that kjit_get_diagnostic returns in a child process. It is a constant, because the
 * context cannot be used: a thread of the parent may hold its locks. */
extern const kjit_diagnostic kj_forked_diagnostic;

/* An object that the application releases after its context was destroyed. Destroying the context
 * frees the object's resources but not its memory, because the release accesses it. The release, or
 * unloading the library, frees the memory. */
typedef struct kj_remains {
  struct kj_remains *previous, *next;
  void *memory;
} kj_remains;

/* Registers an object. remains is a field in memory, which comes from malloc. Returns kj_forks,
 * which must be passed to kj_drop_remains. */
uint32_t kj_keep_remains(kj_remains *remains, void *memory);
/* Implements the release by the application: frees the memory. Has no effect in a child process
 * that was forked after kj_keep_remains. */
void kj_drop_remains(kj_remains *remains, uint32_t forks);
/* Returns the number of registered objects, for tests. */
size_t kj_count_remains(void);

/* ---- writing to files ---- */

/* Writes all bytes. On failure returns false and sets errno. If the file would exceed the size
 * limit of the process, errno is EFBIG, and the process gets no signal. */
bool kj_write_quietly(int file, const void *bytes, size_t size_bytes);

/* Returns the time of a monotonic clock. */
uint64_t kj_clock_ns(void);
/* Returns the time at which limit_ns will have passed. If the clock cannot represent it, returns
 * UINT64_MAX, which means never. Use this function for every time limit from the application. */
uint64_t kj_deadline_ns(uint64_t limit_ns);

#endif
