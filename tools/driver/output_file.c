#define _GNU_SOURCE
#include <driver/output_file.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- removing the temporary file if a signal ends the program ---- */

static const int ends[] = { SIGINT, SIGTERM, SIGHUP };
enum { END_COUNT = sizeof ends / sizeof *ends };
static struct sigaction before[END_COUNT];
static const char *volatile unfinished; /* file to remove */

static void remove_unfinished(int number)
{
  if (unfinished) unlink(unfinished);
  signal(number, SIG_DFL);
  raise(number);
}

/* Installs handlers. A signal that is already ignored (as under nohup) or handled is left
 * unchanged. */
static void watch_ends(const char *temporary)
{
  struct sigaction action = { .sa_handler = remove_unfinished };
  unfinished = temporary;
  for (int i = 0; i < END_COUNT; i++) {
    sigaction(ends[i], NULL, &before[i]);
    if (before[i].sa_handler == SIG_DFL) sigaction(ends[i], &action, NULL);
  }
}

static void stop_watching(void)
{
  for (int i = 0; i < END_COUNT; i++) sigaction(ends[i], &before[i], NULL);
  unfinished = NULL;
}

/* ---- files ---- */

static bool fail_open(tool_error *error, const char *path)
{
  return tool_fail(error, TOOL_EXIT_FILE, "%s: %s", *path ? path : "the file name is empty",
                   strerror(errno));
}

static bool is_same(const struct stat *a, const struct stat *b)
{
  return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static bool is_open_as(int file, const struct stat *status)
{
  struct stat other;
  return fstat(file, &other) == 0 && is_same(&other, status);
}

/* Returns the file that a link points to. Returns NULL if the file must be written in place. A file
 * is written in place if it is open as standard error or no longer has a name, because its readers
 * would not see a new file with this name. */
static char *find_target(const char *path, const struct stat *status)
{
  struct stat other;
  char *target = is_open_as(STDERR_FILENO, status) ? NULL : realpath(path, NULL);
  if (target && stat(target, &other) == 0 && is_same(&other, status)) return target;
  free(target);
  return NULL;
}

static mode_t usual_mode(void)
{
  mode_t mask = umask(0);
  umask(mask);
  return 0666 & ~mask;
}

/* Creates the temporary file in the final directory, because renaming works only within a file
 * system. */
static bool create_temporary(tool_error *error, tool_output_file *output, mode_t mode)
{
  const char *slash = strrchr(output->target, '/');
  int folder_length = slash ? (int)(slash + 1 - output->target) : 0;
  output->temporary = tool_format("%.*s.kjit-XXXXXX", folder_length, output->target);
  /* set before the file exists, because any thread may receive the signal */
  watch_ends(output->temporary);
  int file = mkostemp(output->temporary, O_CLOEXEC);
  if (file >= 0) {
    fchmod(file, mode);
    output->stream = fdopen(file, "wb");
    if (output->stream) return true;
    close(file);
    unlink(output->temporary);
  }
  fail_open(error, output->path);
  stop_watching();
  free(output->temporary);
  free(output->target);
  return false;
}

bool tool_create_output(tool_error *error, const char *path, tool_output_file *output)
{
  struct stat status;
  *output = (tool_output_file){ .path = path };
  output->replaces = path && strcmp(path, "-") != 0 && stat(path, &status) == 0;
  output->is_standard =
    !path || !strcmp(path, "-") ||
    (output->replaces && S_ISREG(status.st_mode) && is_open_as(STDOUT_FILENO, &status));
  if (output->is_standard) {
    output->stream = stdout;
    return true;
  }
  if (!output->replaces) {
    if (!*path) errno = ENOENT;
    if (!*path) return fail_open(error, path);
    output->target = tool_copy_text(path, strlen(path));
    return create_temporary(error, output, usual_mode());
  }
  if (S_ISREG(status.st_mode)) output->target = find_target(path, &status);
  if (!output->target) {
    output->stream = fopen(path, "wb");
    return output->stream || fail_open(error, path);
  }
  if (access(path, W_OK) == 0) return create_temporary(error, output, status.st_mode & 07777);
  free(output->target);
  return fail_open(error, path);
}

bool tool_finish_output(tool_error *error, tool_output_file *output, bool is_complete)
{
  int reason = errno; /* errno of the last failure */
  if (output->is_standard) {
    if (ferror(stdout)) tool_note_output_failure(reason);
    return is_complete;
  }
  bool ok = !ferror(output->stream);
  if (fclose(output->stream) != 0 && ok) {
    reason = errno;
    ok = false;
  }
  bool is_kept = is_complete && ok;
  if (output->temporary) {
    if (is_kept && rename(output->temporary, output->target) != 0) {
      reason = errno;
      is_kept = ok = false;
    }
    if (!is_kept) unlink(output->temporary);
    stop_watching();
  }
  if (!ok)
    tool_fail(error, TOOL_EXIT_FILE, "%s: writing failed: %s%s", output->path, strerror(reason),
              !output->temporary ? ""
              : output->replaces ? "; the existing file is unchanged"
                                 : "; no file was created");
  free(output->temporary);
  free(output->target);
  return is_kept;
}
