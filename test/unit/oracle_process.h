/* A program of the oracle in a process of its own: a violation ends it, and what is wrong with one
 * is nothing to the next. */
#ifndef ORACLE_PROCESS_H
#define ORACLE_PROCESS_H

#include <signal.h>
#include <sys/wait.h>

#include "oracle_world.h"

/* true: it came to its end without a violation. */
static bool world_run(void (*program)(void *user), void *user)
{
  enum { LIMIT_S = 60 };
  if (!oracle_result)
    oracle_result =
      mmap(NULL, sizeof *oracle_result, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (oracle_result == MAP_FAILED) abort();
  oracle_result->is_violated = false;
  oracle_result->message[0] = 0;
  oracle_result->trace_bytes = 0;
  fflush(stdout);
  pid_t child = fork();
  if (child < 0) abort();
  if (!child) {
    alarm(LIMIT_S);
    program(user);
    _exit(0);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {}
  if (WIFEXITED(status) && !WEXITSTATUS(status)) return true;
  if (!oracle_result->message[0]) {
    const char *what = !WIFSIGNALED(status)          ? "it exits"
                       : WTERMSIG(status) == SIGALRM ? "it hangs"
                                                     : "it is killed";
    snprintf(oracle_result->message, sizeof oracle_result->message, "%s: %s %d", what,
             WIFSIGNALED(status) ? "signal" : "status",
             WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
  }
  return false;
}

#endif
