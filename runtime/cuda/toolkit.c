#include "cuda/toolkit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/program.h"
#include "base/status.h"
#include "support/host_process.h"
#include "support/paths.h"

/* ---- finding programs ---- */

const char kj_program_places[] = "on PATH, in bin of $CUDA_HOME and $CUDA_PATH, in "
                                 "/usr/local/cuda/bin, in /usr/local/cuda-*/bin and beside kjit in "
                                 "../nvidia/*/bin";

static char *executable_in(const char *folder, size_t length, const char *below, const char *name)
{
  struct stat about;
  kj_buffer path = { 0 };
  kj_append_format(&path, "%.*s%s/%s", (int)length, folder, below, name);
  if (path.text && !path.failed && stat(path.text, &about) == 0 && S_ISREG(about.st_mode) &&
      access(path.text, X_OK) == 0)
    return kj_take_text(&path);
  kj_free_buffer(&path);
  return NULL;
}

/* Searches the directories of PATH. Relative and empty directories are skipped, because they depend
 * on the current directory, which another user may control. */
static char *find_on_path(const char *name)
{
  char *path = NULL;
  for (const char *at = secure_getenv("PATH"); at && *at && !path;) {
    size_t length = strcspn(at, ":");
    path = *at == '/' ? executable_in(at, length, "", name) : NULL;
    at += length + (at[length] == ':');
  }
  return path;
}

static char *find_in_toolkit(const char *variable, const char *name)
{
  const char *folder = secure_getenv(variable);
  return folder && *folder == '/' ? executable_in(folder, strlen(folder), "/bin", name) : NULL;
}

/* Searches the directories that match the pattern, the last one by name first. */
static char *find_among(const char *pattern, const char *name)
{
  char *path = NULL;
  kj_paths folders = { 0 };
  (void)kj_find_paths(&folders, pattern);
  for (size_t i = folders.count; i-- > 0 && !path;)
    path = executable_in(folders.items[i], strlen(folders.items[i]), "/bin", name);
  kj_free_paths(&folders);
  return path;
}

/* Searches /usr/local/cuda, then other toolkits in /usr/local, then the Python package
 * nvidia-cuda-nvcc that is installed next to the package kjit. */
static char *find_installed(const char *name)
{
  static const char usual[] = "/usr/local/cuda";
  char *path = executable_in(usual, sizeof usual - 1, "/bin", name);
  if (!path) path = find_among("/usr/local/cuda-*", name);
  return path ? path : find_among(KJ_OWN_FOLDER "/../nvidia/*", name);
}

char *kj_find_program(const char *name)
{
  char *path = find_on_path(name);
  if (!path) path = find_in_toolkit("CUDA_HOME", name);
  if (!path) path = find_in_toolkit("CUDA_PATH", name);
  return path ? path : find_installed(name);
}

/* ---- file descriptors ---- */

enum { CHILD_INPUT = 3, CHILD_RESULT, CHILD_END, STDERR_LIMIT = 1 << 16 };

/* File descriptors for a running program; -1 means closed. */
typedef struct ends {
  int input, result, out[2], err[2]; /* [0] is the end that this process reads */
} ends;

static void close_end(int *end)
{
  if (*end >= 0) close(*end);
  *end = -1;
}

static void close_ends(ends *e)
{
  int *all[] = { &e->input, &e->result, &e->out[0], &e->out[1], &e->err[0], &e->err[1] };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) close_end(all[i]);
}

static bool open_memory(int *end)
{
  *end = memfd_create("kjit", MFD_CLOEXEC);
  return *end >= 0 && kj_lift_file(end, CHILD_END);
}

static bool open_pipe(int pair[2])
{
  if (pipe2(pair, O_CLOEXEC) < 0) return false;
  bool is_read_lifted = kj_lift_file(&pair[0], CHILD_END),
       is_write_lifted = kj_lift_file(&pair[1], CHILD_END);
  return is_read_lifted && is_write_lifted;
}

static bool open_ends(const kj_process *process, ends *e)
{
  *e = (ends){ -1, -1, { -1, -1 }, { -1, -1 } };
  return open_memory(&e->input) &&
         kj_write_quietly(e->input, process->input, process->input_bytes) &&
         (!process->has_result || open_memory(&e->result)) && open_pipe(e->out) &&
         open_pipe(e->err);
}

/* ---- running a program ---- */

/* How a program ended. */
typedef struct outcome {
  /* is_unknown: the exit status is unknown, because another part of the application has waited for
   * the child */
  bool is_late, is_too_long, is_unknown;
  int status;
} outcome;

static uint64_t milliseconds_left(uint64_t deadline_ns)
{
  uint64_t now = kj_clock_ns();
  return now < deadline_ns ? (deadline_ns - now) / 1000000 + 1 : 0;
}

static void read_some(int *end, kj_buffer *text, size_t limit_bytes, bool *is_too_long)
{
  char bytes[1 << 14];
  ssize_t got = read(*end, bytes, sizeof bytes);
  if (got < 0 && errno == EINTR) return;
  if (got <= 0) {
    close_end(end);
    return;
  }
  KJ_ASSERT(text->length <= limit_bytes);
  size_t room = limit_bytes - text->length;
  *is_too_long |= (size_t)got > room;
  kj_append(text, bytes, (size_t)got < room ? (size_t)got : room);
}

/* Reads both pipes at the same time, because a program blocks if the pipe to which it writes is
 * full. Keeps only the beginning of the standard error output. */
static void drain(const kj_process *process, ends *e, uint64_t deadline_ns, kj_buffer *out,
                  kj_buffer *err, outcome *how)
{
  while ((e->out[0] >= 0 || e->err[0] >= 0) && !how->is_too_long) {
    struct pollfd wanted[2] = { { .fd = e->out[0], .events = POLLIN },
                                { .fd = e->err[0], .events = POLLIN } };
    uint64_t left = milliseconds_left(deadline_ns);
    bool ignored = false;
    how->is_late = !left;
    if (how->is_late ||
        (poll(wanted, 2, left < INT_MAX ? (int)left : INT_MAX) < 0 && errno != EINTR))
      return;
    if (wanted[0].revents) read_some(&e->out[0], out, process->limit_bytes, &how->is_too_long);
    if (wanted[1].revents) read_some(&e->err[0], err, STDERR_LIMIT, &ignored);
  }
}

/* Waits for the end of the child, which has closed its pipes. Kills the child if it has exceeded a
 * limit, or when the deadline passes. */
static void reap(pid_t child, uint64_t deadline_ns, outcome *how)
{
  enum { FIRST_NS = 50000, LAST_NS = 10000000 };
  long pause_ns = FIRST_NS;
  bool is_killed = how->is_late || how->is_too_long;
  if (is_killed) kj_kill_program(child);
  for (;;) {
    pid_t reaped = waitpid(child, &how->status, is_killed ? 0 : WNOHANG);
    if (reaped == child) return;
    if (reaped < 0 && errno == EINTR) continue;
    how->is_unknown = reaped < 0;
    if (how->is_unknown) return;
    if (!milliseconds_left(deadline_ns)) {
      how->is_late = is_killed = true;
      kj_kill_program(child);
      continue;
    }
    nanosleep(&(struct timespec){ .tv_nsec = pause_ns }, NULL);
    if (pause_ns < LAST_NS) pause_ns *= 2;
  }
}

/* ---- results ---- */

static kjit_status check_outcome(const kj_process *process, const outcome *how, const char *said,
                                 kj_diagnostics *diagnostics)
{
  const char *path = process->arguments[0], *separator = *said ? ":\n" : "";
  int status = how->status;
  if (how->is_too_long)
    return kj_error(diagnostics, KJIT_ERROR_COMPILE, "%s wrote more than %u bytes and was stopped",
                    path, process->limit_bytes);
  if (how->is_late)
    return kj_error(diagnostics, KJIT_ERROR_COMPILE, "%s took longer than %g s and was stopped%s%s",
                    path, process->limit_ms / 1e3, separator, said);
  if (how->is_unknown)
    return kj_error(diagnostics, KJIT_ERROR_IO,
                    "the exit status of %s is unknown, because this process ignores SIGCHLD or "
                    "waits for child processes that it did not start",
                    path);
  if (WIFSIGNALED(status))
    return kj_error(diagnostics, KJIT_ERROR_COMPILE, "%s was killed by signal %d%s%s", path,
                    WTERMSIG(status), separator, said);
  if (WEXITSTATUS(status))
    return kj_error(diagnostics, KJIT_ERROR_COMPILE, "%s failed with status %d%s%s", path,
                    WEXITSTATUS(status), separator, said);
  return KJIT_OK;
}

static bool read_result(int file, size_t limit_bytes, kj_buffer *result, outcome *how)
{
  char bytes[1 << 14];
  ssize_t got;
  while ((got = pread(file, bytes, sizeof bytes, (off_t)result->length)) != 0 &&
         !how->is_too_long) {
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return false;
    how->is_too_long = (size_t)got > limit_bytes - result->length;
    kj_append(result, bytes, how->is_too_long ? 0 : (size_t)got);
    if (result->failed) break;
  }
  return true;
}

/* Returns the output of both standard streams for a message, without blank lines at the end. */
static char *take_messages(kj_buffer *out, const kj_buffer *err)
{
  if (out->length > STDERR_LIMIT) out->text[out->length = STDERR_LIMIT] = 0;
  if (err->length) kj_append(out, err->text, err->length);
  char *text = kj_take_text(out);
  for (size_t length = text ? strlen(text) : 0;
       length && (text[length - 1] == '\n' || text[length - 1] == ' '); length--)
    text[length - 1] = 0;
  return text;
}

static kjit_status run(const kj_process *process, ends *e, kj_buffer *out, kj_buffer *err,
                       kj_buffer *result, kj_diagnostics *diagnostics)
{
  pid_t child;
  outcome how = { 0 };
  uint64_t deadline_ns = kj_deadline_ns((uint64_t)process->limit_ms * 1000000);
  KJ_ASSERT(!process->has_result == (e->result < 0));
  int files[] = { -1, e->out[1], e->err[1], e->input, e->result };
  int failure =
    kj_start_program(&child, process->arguments, files, e->result >= 0 ? CHILD_END : CHILD_RESULT);
  close_end(&e->out[1]);
  close_end(&e->err[1]);
  if (failure)
    return kj_error(diagnostics, KJIT_ERROR_IO, "%s cannot be run: %s", process->arguments[0],
                    strerror(failure));
  drain(process, e, deadline_ns, out, err, &how);
  reap(child, deadline_ns, &how);
  if (process->has_result && !read_result(e->result, process->limit_bytes, result, &how))
    return kj_error(diagnostics, KJIT_ERROR_IO, "the output of %s cannot be read: %s",
                    process->arguments[0], strerror(errno));
  bool is_fine = !how.is_late && !how.is_too_long && !how.is_unknown && how.status == 0;
  const kj_buffer *wanted = process->has_result ? result : out;
  if (is_fine && (wanted->length || wanted->failed)) return KJIT_OK;
  char *said = take_messages(out, err);
  kjit_status status = check_outcome(process, &how, said ? said : "", diagnostics);
  if (status == KJIT_OK)
    status = kj_error(diagnostics, KJIT_ERROR_COMPILE, "%s gave nothing%s%s", process->arguments[0],
                      said && *said ? ":\n" : "", said ? said : "");
  free(said);
  return status;
}

/* Disables cancellation: a cancelled thread would leave the child process and the pipes behind. */
kjit_status kj_run_process(const kj_process *process, kj_diagnostics *diagnostics, void **output,
                           size_t *output_bytes)
{
  int state;
  ends e;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
  kj_buffer out = { 0 }, err = { 0 }, result = { 0 },
            *wanted = process->has_result ? &result : &out;
  kjit_status status =
    open_ends(process, &e)
      ? run(process, &e, &out, &err, &result, diagnostics)
      : kj_error(diagnostics, KJIT_ERROR_IO, "cannot create pipes or memory files for %s: %s",
                 process->arguments[0], strerror(errno));
  close_ends(&e);
  if (status == KJIT_OK) {
    *output_bytes = wanted->length;
    *output = kj_take_text(wanted);
    if (!*output) status = kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  }
  kj_free_buffer(&out);
  kj_free_buffer(&err);
  kj_free_buffer(&result);
  pthread_setcancelstate(state, NULL);
  return status;
}

/* ---- PTX to machine code, and machine code to text ---- */

/* The assembler may need minutes for a very large kernel. */
enum { ASSEMBLER_MS = 3600 * 1000, DISASSEMBLER_MS = 300 * 1000, MOST_BYTES = 1 << 30 };

/* Stores the path of ptxas in *path, allocated with malloc. `given` is the path that the
 * application has set, or NULL to search for ptxas. */
static kjit_status find_assembler(const char *given, kj_diagnostics *diagnostics, char **path)
{
  struct stat about;
  bool is_missing = given && (access(given, X_OK) < 0 || stat(given, &about) < 0),
       is_other = given && !is_missing && !S_ISREG(about.st_mode);
  if (is_missing || is_other)
    return kj_error(diagnostics, KJIT_ERROR_NO_COMPILER, "`%s`: expected the program ptxas: %s",
                    given, is_missing ? strerror(errno) : "not a regular file");
  *path = given ? strdup(given) : kj_find_program("ptxas");
  if (*path) return KJIT_OK;
  if (given) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  return kj_error(diagnostics, KJIT_ERROR_NO_COMPILER,
                  "ptxas, which makes machine code of PTX, was not found %s", kj_program_places);
}

kjit_status kj_assemble(const kj_assembly *assembly, const void *ptx, size_t ptx_bytes,
                        kj_diagnostics *diagnostics, void **cubin, size_t *cubin_bytes)
{
  static const char *const debug_options[] = {
    [KJIT_DEBUG_LINES] = "-lineinfo", [KJIT_DEBUG_FULL] = "-g"
  };
  char *path;
  KJ_TRY(find_assembler(assembly->ptxas, diagnostics, &path));
  kj_buffer architecture = { 0 };
  kj_append_format(&architecture, "-arch=%s", assembly->target);
  const char *arguments[8] = { path, architecture.text, "-o", KJ_PROCESS_RESULT, KJ_PROCESS_INPUT };
  size_t count = 5;
  if (assembly->debug != KJIT_DEBUG_NONE) arguments[count++] = debug_options[assembly->debug];
  if (assembly->is_part) arguments[count++] = "-c";
  KJ_ASSERT(count < sizeof arguments / sizeof *arguments && !arguments[count]);
  kj_process process = { .arguments = arguments,
                         .input = ptx,
                         .input_bytes = ptx_bytes,
                         .has_result = true,
                         .limit_ms = ASSEMBLER_MS,
                         .limit_bytes = MOST_BYTES };
  kjit_status status = architecture.failed
                         ? kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory")
                         : kj_run_process(&process, diagnostics, cubin, cubin_bytes);
  kj_free_buffer(&architecture);
  free(path);
  return status;
}

kjit_status kj_disassemble(const void *cubin, size_t cubin_bytes, kj_diagnostics *diagnostics,
                           void **sass, size_t *sass_bytes)
{
  static const char *const programs[][2] = { { "nvdisasm", "-c" }, { "cuobjdump", "-sass" } };
  for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
    char *path = kj_find_program(programs[i][0]);
    if (!path) continue;
    const char *arguments[] = { path, programs[i][1], KJ_PROCESS_INPUT, NULL };
    kj_process process = { .arguments = arguments,
                           .input = cubin,
                           .input_bytes = cubin_bytes,
                           .limit_ms = DISASSEMBLER_MS,
                           .limit_bytes = MOST_BYTES };
    kjit_status status = kj_run_process(&process, diagnostics, sass, sass_bytes);
    free(path);
    return status;
  }
  return kj_error(
    diagnostics, KJIT_ERROR_NO_COMPILER,
    "neither nvdisasm nor cuobjdump, which disassemble machine code to SASS, was found %s",
    kj_program_places);
}
