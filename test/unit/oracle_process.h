/* Runs a program of the oracle in a separate process. A violation ends this process, so it does not
 * affect the next program. */
#ifndef ORACLE_PROCESS_H
#define ORACLE_PROCESS_H

#include <signal.h>
#include <sys/personality.h>
#include <sys/wait.h>

#include "oracle_calls.h"

/* The addresses of host arrays that are close together decide how kjit copies them. So that a seed
 * always gives the same program, this process starts again with fixed addresses if the system
 * allows it. */
static void world_fix_addresses(char **arguments)
{
  static char buffer[1 << 16];
  int before = personality(0xffffffff);
  setvbuf(stdout, buffer, _IOLBF, sizeof buffer);
  if (before < 0 || before & ADDR_NO_RANDOMIZE) return;
  if (personality((unsigned long)before | ADDR_NO_RANDOMIZE) >= 0)
    (void)execv("/proc/self/exe", arguments);
}

/* Returns true if the program has reached its end without a violation. */
static bool world_run(void (*program)(void *user), void *user)
{
  enum { LIMIT_S = 300 }; /* a program takes a second; busy machines and sanitizers are slower */
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
