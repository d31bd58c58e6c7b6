/* Interaction with the application's process: forks, objects that are released late, signals that
 * are raised by writes, and the clock. */
#ifndef KJ_SUPPORT_HOST_PROCESS_H
#define KJ_SUPPORT_HOST_PROCESS_H

#include <kjit/status.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- fork ----
 *
 * A child process has its parent's memory, but neither its threads nor its GPU. A context therefore
 * works only in the process that created it. */

/* Number of forks between the process that created the first context and this process. The child
 * process increments it. */
extern _Atomic uint32_t kj_forks;
/* Starts counting forks. Only the first call in a process has an effect. */
void kj_watch_forks(void);

/* The diagnostic that kjit_get_diagnostic returns in a child process. It is a constant, because the
 * context cannot be used: a thread of the parent may have held its locks. */
extern const kjit_diagnostic kj_forked_diagnostic;

/* An object that the application has not released when its context is destroyed. Destroying the
 * context frees the object's resources but not its memory, because releasing the object accesses
 * that memory. The memory is freed when the object is released or the library is unloaded. */
typedef struct kj_remains {
  struct kj_remains *previous, *next;
  void *memory;
} kj_remains;

/* Registers an object. remains is a field of the object `memory`, which must come from malloc.
 * Returns kj_forks, which must be passed to kj_drop_remains. */
uint32_t kj_keep_remains(kj_remains *remains, void *memory);
/* Frees the object's memory. Called when the application releases the object. Has no effect in a
 * child process that was forked after kj_keep_remains. */
void kj_drop_remains(kj_remains *remains, uint32_t forks);
/* Returns the number of registered objects, for tests. */
size_t kj_count_remains(void);

/* ---- writing to files ---- */

/* Writes all bytes. On failure returns false and sets errno. If the file would exceed the size
 * limit of the process, errno is EFBIG, and no signal is raised. */
bool kj_write_quietly(int file, const void *bytes, size_t size_bytes);

/* Returns the time of a monotonic clock. */
uint64_t kj_clock_ns(void);
/* Returns the time at which limit_ns will have passed. If the clock cannot represent that time,
 * returns UINT64_MAX, which means never. This function must be used for every time limit that the
 * application sets. */
uint64_t kj_deadline_ns(uint64_t limit_ns);

#endif
