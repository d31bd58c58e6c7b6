#include "base/program.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/assert.h"

extern char **environ;

bool kj_lift_file(int *file, int least)
{
  KJ_ASSERT(least >= 0);
  int lifted = fcntl(*file, F_DUPFD_CLOEXEC, least);
  if (*file >= 0) close(*file);
  *file = lifted;
  KJ_ASSERT(lifted < 0 || lifted >= least);
  return lifted >= 0;
}

static int add_actions(posix_spawn_file_actions_t *actions, const int *files, size_t count)
{
  int failure = 0;
  for (size_t i = 0; i < count && !failure; i++)
    failure = files[i] < 0
                ? posix_spawn_file_actions_addopen(actions, (int)i, "/dev/null", O_RDWR, 0)
                : posix_spawn_file_actions_adddup2(actions, files[i], (int)i);
  return failure ? failure : posix_spawn_file_actions_addclosefrom_np(actions, (int)count);
}

static int add_signals(posix_spawnattr_t *attributes)
{
  sigset_t none, usual;
  sigemptyset(&none);
  sigemptyset(&usual);
  sigaddset(&usual, SIGPIPE);
  sigaddset(&usual, SIGCHLD);
  int failure = posix_spawnattr_setsigmask(attributes, &none);
  if (!failure) failure = posix_spawnattr_setsigdefault(attributes, &usual);
  return failure
           ? failure
           : posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

int kj_start_program(pid_t *child, const char *const *arguments, const int *files, size_t count)
{
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  KJ_ASSERT(arguments[0] && strchr(arguments[0], '/'));
  for (size_t i = 0; i < count; i++) KJ_ASSERT(files[i] < 0 || files[i] >= (int)count);
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  int failure = add_actions(&actions, files, count);
  if (!failure) failure = add_signals(&attributes);
  if (!failure)
    failure =
      posix_spawn(child, arguments[0], &actions, &attributes, (char *const *)arguments, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return failure;
}

void kj_kill_program(pid_t child)
{
  siginfo_t info;
  KJ_ASSERT(child > 0); /* 0 and negative numbers would denote process groups */
  if (waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) == 0)
    (void)kill(child, SIGKILL);
}
