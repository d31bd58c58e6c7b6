/* Starting programs: from a process of somebody else's, which may have any files open and any
 * signals blocked. */
#ifndef KJ_BASE_PROGRAM_H
#define KJ_BASE_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Runs arguments[0], a path. Its descriptors 0, 1, ... are files, count of them: each of these is
 * close-on-exec here and its number at least count; -1 is /dev/null. It gets nothing else of the
 * host's but environment, working folder and limits: no descriptors, no ignored SIGPIPE, no blocked
 * signals. 0, or why not, as errno. */
int kj_start_program(pid_t *child, const char *const *arguments, const int *files, size_t count);

/* Gives a descriptor a number of at least `least`: a host may have closed its standard streams.
 * false, with errno: *file is closed. */
bool kj_lift_file(int *file, int least);

/* Only while it is there to be waited for: its number may be another process's otherwise. */
void kj_kill_program(pid_t child);

#endif
