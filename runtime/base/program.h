/* Starts programs (compilers, assemblers) from the application's process, which may have any open
 * files and blocked signals. */
#ifndef KJ_BASE_PROGRAM_H
#define KJ_BASE_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Runs the program with path arguments[0]. Its descriptors 0, 1, ... are the `count` descriptors in
 * `files`; -1 means /dev/null. Each descriptor must be close-on-exec and have a number of at least
 * `count`. The program inherits only environment, working directory and resource limits: no other
 * descriptors, no ignored SIGPIPE, no blocked signals. Returns 0 or an errno value. */
int kj_start_program(pid_t *child, const char *const *arguments, const int *files, size_t count);

/* Moves a descriptor to a number of at least `least`. A new descriptor can have a lower number if
 * the application has closed its standard streams. On failure, closes *file, sets errno and returns
 * false. */
bool kj_lift_file(int *file, int least);

/* Kills a child process. No thread may have waited for its end yet, because after such a wait the
 * process id may belong to another process. */
void kj_kill_program(pid_t child);

#endif
