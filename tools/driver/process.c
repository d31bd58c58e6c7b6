#define _GNU_SOURCE
#include <driver/process.h>

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { READ_BYTES = 1 << 14 };

/* ---- finding ---- */

static char *executable_in(const char *folder, size_t length, const char *name)
{
  char *path = tool_format("%.*s/%s", (int)length, folder, name);
  if (access(path, X_OK) == 0) return path;
  free(path);
  return NULL;
}

static char *find_on_path(const char *name)
{
  for (const char *at = getenv("PATH"); at && *at;) {
    size_t length = strcspn(at, ":");
    char *path = length ? executable_in(at, length, name) : NULL;
    if (path) return path;
    at += length + (at[length] == ':');
  }
  return NULL;
}

char *tool_find_program(const char *name, const char *given)
{
  if (given) return access(given, X_OK) == 0 ? tool_copy_text(given, strlen(given)) : NULL;
  char *found = find_on_path(name);
  if (found) return found;
  const char *home = getenv("CUDA_HOME");
  if (home) {
    char *folder = tool_format("%s/bin", home);
    found = executable_in(folder, strlen(folder), name);
    free(folder);
    if (found) return found;
  }
  glob_t folders = { 0 };
  if (glob("/usr/local/cuda*/bin", 0, NULL, &folders) == 0)
    for (size_t i = 0; i < folders.gl_pathc && !found; i++) found = executable_in(folders.gl_pathv[i], strlen(folders.gl_pathv[i]), name);
  globfree(&folders);
  return found;
}

/* ---- running ---- */

typedef struct capture {
  int read_end, write_end; /* -1: closed */
  char *data;              /* 0-terminated */
  size_t size;
} capture;

static bool open_capture(capture *c)
{
  int ends[2];
  *c = (capture){ .read_end = -1, .write_end = -1 };
  if (pipe2(ends, O_CLOEXEC) < 0) return false;
  c->read_end = ends[0];
  c->write_end = ends[1];
  c->data = tool_copy_text("", 0);
  return true;
}

static void close_end(int *end)
{
  if (*end >= 0) close(*end);
  *end = -1;
}

static void read_some(capture *c)
{
  char buffer[READ_BYTES];
  ssize_t got = read(c->read_end, buffer, sizeof buffer);
  if (got < 0 && errno == EINTR) return;
  if (got <= 0) {
    close_end(&c->read_end);
    return;
  }
  char *larger = tool_allocate(c->size + (size_t)got + 1);
  memcpy(larger, c->data, c->size);
  memcpy(larger + c->size, buffer, (size_t)got);
  free(c->data);
  c->data = larger;
  c->size += (size_t)got;
}

/* Both pipes at once: a program that fills the one nobody reads would wait for ever. */
static void drain(capture *out, capture *err)
{
  while (out->read_end >= 0 || err->read_end >= 0) {
    struct pollfd ends[2] = { { .fd = out->read_end, .events = POLLIN }, { .fd = err->read_end, .events = POLLIN } };
    if (poll(ends, 2, -1) < 0 && errno != EINTR) return;
    if (ends[0].revents) read_some(out);
    if (ends[1].revents) read_some(err);
  }
}

static int spawn(pid_t *child, const char *const *arguments, const capture *out, const capture *err)
{
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out->write_end, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err->write_end, STDERR_FILENO);
  int failure = posix_spawn(child, arguments[0], &actions, NULL, (char *const *)arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  return failure;
}

static bool run(tool_error *error, const char *const *arguments, capture *out, capture *err)
{
  pid_t child;
  int status = 0, failure = spawn(&child, arguments, out, err);
  close_end(&out->write_end);
  close_end(&err->write_end);
  if (failure) return tool_fail(error, TOOL_EXIT_DEVICE, "%s cannot be run: %s", arguments[0], strerror(failure));
  drain(out, err);
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return true;
  const char *how = WIFSIGNALED(status) ? "was killed by signal" : "failed with status";
  return tool_fail(error, TOOL_EXIT_DEVICE, "%s %s %d\n%s%s", arguments[0], how, WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), out->data,
                   err->data);
}

bool tool_run_program(tool_error *error, const char *const *arguments, void **output, size_t *output_bytes)
{
  capture out, err = { .read_end = -1, .write_end = -1 };
  bool ok = open_capture(&out) && open_capture(&err);
  ok = ok ? run(error, arguments, &out, &err) : tool_fail(error, TOOL_EXIT_DEVICE, "no pipe for %s: %s", arguments[0], strerror(errno));
  capture *both[] = { &out, &err };
  for (size_t i = 0; i < 2; i++) {
    close_end(&both[i]->read_end);
    close_end(&both[i]->write_end);
  }
  free(err.data);
  if (ok && output) {
    *output = out.data;
    *output_bytes = out.size;
  } else {
    free(out.data);
  }
  return ok;
}
