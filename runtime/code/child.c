/* Runs compilations in child processes (kjit_config.compile_in_child). It starts the processes,
 * sends them requests, and handles children that end or do not answer. */
#include "code/child.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/program.h"
#include "base/status.h"
#include "code/specialization.h"
#include "cpu/cpu.h"
#include "ir/context.h"
#include "support/host_process.h"
#include "support/paths.h"

/* A child process. `messages` is the file to which its standard output and errors go. After a
 * crash, this file contains the last output of LLVM. */
typedef struct child {
  struct child *next; /* next idle child */
  pid_t process;
  bool has_served; /* whether the child has completed a compilation before */
  /* handle: a pidfd with which kjit waits for the end of the process, or -1 */
  int socket, handle, messages;
} child;

/* The compiler of a runtime that uses child processes. The context's number of compile threads
 * limits the children that compile at the same time. A few idle children wait for the next
 * compilation. */
typedef struct children {
  kj_runtime *runtime;
  char *path;
  uint64_t limit_ns;
  uint32_t most;
  pthread_mutex_t mutex; /* protects the following fields */
  pthread_cond_t returned;
  child *idle;
  uint32_t idle_count, count;
} children;

enum { MOST_IDLE = 2, DEFAULT_MOST = 8, DEFAULT_LIMIT_S = 600 };

/* ---- one process ---- */

static void close_file(int *file)
{
  if (*file >= 0) close(*file);
  *file = -1;
}

static void free_child(child *c)
{
  close_file(&c->socket);
  close_file(&c->handle);
  close_file(&c->messages);
  free(c);
}

/* The file descriptors of the child: an empty standard input, the messages file for its output and
 * errors, and the socket. */
enum { CHILD_SOCKET = 3, CHILD_END };

static int start_process(child *c, const char *path)
{
  const char *const arguments[] = { path, NULL };
  int pair[2] = { -1, -1 };
  c->messages = memfd_create("kjit-compile-child", MFD_CLOEXEC);
  if (c->messages < 0 || !kj_lift_file(&c->messages, CHILD_END) ||
      socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
    return errno;
  c->socket = pair[0];
  bool is_lifted = kj_lift_file(&c->socket, CHILD_END);
  is_lifted = kj_lift_file(&pair[1], CHILD_END) && is_lifted;
  int files[CHILD_END] = { -1, c->messages, c->messages, pair[1] };
  int failure = is_lifted ? kj_start_program(&c->process, arguments, files, CHILD_END) : errno;
  close_file(&pair[1]);
  if (failure) c->process = 0;
  else c->handle = (int)syscall(SYS_pidfd_open, c->process, 0);
  if (c->handle >= 0) (void)kj_lift_file(&c->handle, CHILD_END);
  return failure;
}

/* Kills the process and waits for its end. Returns false if another waitpid call has reaped the
 * process. In either case, the process no longer exists. */
static bool end_process(child *c, int *status)
{
  pid_t reaped;
  kj_kill_program(c->process);
  while ((reaped = waitpid(c->process, status, 0)) < 0 && errno == EINTR) {}
  return reaped == c->process;
}

static void end_child(child *c)
{
  int status;
  (void)end_process(c, &status);
  free_child(c);
}

/* Returns whether an idle child still runs. An idle child sends nothing, so any event on its
 * descriptors means that it has ended. */
static bool is_alive(const child *c)
{
  struct pollfd wanted[2] = { { .fd = c->socket, .events = POLLIN },
                              { .fd = c->handle, .events = POLLIN } };
  return poll(wanted, 2, 0) == 0;
}

/* ---- messages ---- */

typedef enum outcome {
  ANSWERED,
  ENDED,       /* the process ended */
  NOT_BEGUN,   /* the process ended before it received the request */
  LATE,        /* the process exceeded the time limit */
  OTHER_BUILD, /* the process has another build of kjit */
  NO_SENSE,    /* the answer is malformed */
  NO_MEMORY
} outcome;

typedef struct exchange {
  const child *c;
  uint64_t deadline_ns;
} exchange;

/* Waits until the socket is ready, the process has ended or the deadline has passed. */
static outcome wait_for(const exchange *e, short events)
{
  for (;;) {
    struct pollfd wanted[2] = { { .fd = e->c->socket, .events = events },
                                { .fd = e->c->handle, .events = POLLIN } };
    uint64_t now = kj_clock_ns(),
             left_ms = now < e->deadline_ns ? (e->deadline_ns - now) / 1000000 + 1 : 0;
    if (!left_ms) return LATE;
    int ready = poll(wanted, 2, left_ms < INT_MAX ? (int)left_ms : INT_MAX);
    if (ready < 0 && errno != EINTR) return ENDED;
    if (ready > 0 && wanted[0].revents) return ANSWERED;
    if (ready > 0) return ENDED;
  }
}

static outcome send_all(const exchange *e, const char *bytes, size_t size_bytes)
{
  while (size_bytes) {
    ssize_t count = send(e->c->socket, bytes, size_bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && errno != EAGAIN && errno != EINTR) return ENDED;
    if (count < 0) {
      outcome waited = wait_for(e, POLLOUT);
      if (waited != ANSWERED) return waited;
      continue;
    }
    bytes += count;
    size_bytes -= (size_t)count;
  }
  return ANSWERED;
}

static outcome receive_all(const exchange *e, char *bytes, size_t size_bytes)
{
  while (size_bytes) {
    ssize_t count = recv(e->c->socket, bytes, size_bytes, MSG_DONTWAIT);
    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) return ENDED;
    if (count < 0) {
      outcome waited = wait_for(e, POLLIN);
      if (waited != ANSWERED) return waited;
      continue;
    }
    bytes += count;
    size_bytes -= (size_t)count;
  }
  return ANSWERED;
}

static outcome send_message(const exchange *e, const kj_buffer *message)
{
  kj_frame frame = kj_make_frame(message->length);
  outcome so_far = send_all(e, (const char *)&frame, sizeof frame);
  return so_far == ANSWERED ? send_all(e, message->text, message->length) : so_far;
}

static outcome receive_frame(const exchange *e, uint64_t *size_bytes)
{
  kj_frame frame;
  outcome so_far = receive_all(e, (char *)&frame, sizeof frame);
  if (so_far != ANSWERED) return so_far;
  if (!kj_is_own_frame(&frame)) return OTHER_BUILD;
  *size_bytes = frame.size_bytes;
  return ANSWERED;
}

/* A child that died while idle can seem alive for a moment and accept data into its socket. The
 * request has arrived only after the child has acknowledged it. */
static outcome send_request(const exchange *e, const kj_buffer *request)
{
  uint64_t nothing;
  outcome so_far = send_message(e, request);
  if (so_far == LATE) return LATE;
  /* the acknowledgement contains the child's build; a child of another build reads no request */
  so_far = receive_frame(e, &nothing);
  if (so_far == ENDED) return NOT_BEGUN;
  return so_far == ANSWERED && nothing ? NO_SENSE : so_far;
}

/* Sends a request and returns the answer, which is allocated with malloc. */
static outcome converse(const exchange *e, const kj_buffer *request, char **answer,
                        size_t *answer_bytes)
{
  outcome so_far = send_request(e, request);
  if (so_far == ANSWERED) so_far = receive_frame(e, answer_bytes);
  if (so_far != ANSWERED) return so_far;
  if (*answer_bytes > (uint64_t)KJ_MOST_MESSAGE_MIB << 20) return NO_SENSE;
  *answer = malloc(*answer_bytes + 1);
  return *answer ? receive_all(e, *answer, *answer_bytes) : NO_MEMORY;
}

/* ---- a child for a while ---- */

/* Sends the configuration. The call only fills the socket's buffer; if the child never reads the
 * buffer, the first request fails. */
static bool send_start(const children *all, const child *c)
{
  const kjit_config *config = &all->runtime->context->config;
  kj_child_start start = { config->compiler_path, config->libdevice_path, (uint32_t)config->debug };
  kj_buffer bytes = { 0 };
  bool is_packed = kj_pack_start(&start, &bytes);
  if (is_packed) (void)send_message(&(exchange){ c, kj_deadline_ns(all->limit_ns) }, &bytes);
  kj_free_buffer(&bytes);
  return is_packed;
}

static child *start_child(const children *all, kj_diagnostics *diagnostics)
{
  child *c = malloc(sizeof *c);
  if (!c) {
    (void)kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
    return NULL;
  }
  *c = (child){ .socket = -1, .handle = -1, .messages = -1 };
  int failure = start_process(c, all->path);
  if (!failure && send_start(all, c)) return c;
  if (!failure) {
    end_child(c);
    (void)kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
    return NULL;
  }
  (void)kj_error(diagnostics, KJIT_ERROR_NO_COMPILER,
                 "the program that compiles in a child process, %s, cannot be run: %s", all->path,
                 strerror(failure));
  free_child(c);
  return NULL;
}

/* Starts a new child in place of a child that has ended. c is NULL if there was no child. Returns
 * NULL after an error, which is reported. */
static child *replace_child(children *all, child *c, kj_diagnostics *diagnostics)
{
  if (c) end_child(c);
  c = start_child(all, diagnostics);
  if (c) return c;
  kj_lock(&all->mutex, KJ_LOCK_CHILDREN);
  all->count--;
  pthread_cond_signal(&all->returned);
  kj_unlock(&all->mutex, KJ_LOCK_CHILDREN);
  return NULL;
}

static child *pop_idle(children *all)
{
  child *c = all->idle;
  if (!c) return NULL;
  all->idle = c->next;
  all->idle_count--;
  return c;
}

/* Takes an idle child or starts a new one. If the idle child has ended, starts another child in its
 * place. Returns NULL after an error, which is reported. */
static child *take_child(children *all, kj_diagnostics *diagnostics)
{
  kj_lock(&all->mutex, KJ_LOCK_CHILDREN);
  while (!all->idle && all->count == all->most) kj_wait_for(&all->returned, &all->mutex);
  child *c = pop_idle(all);
  if (!c) all->count++;
  kj_unlock(&all->mutex, KJ_LOCK_CHILDREN);
  return c && is_alive(c) ? c : replace_child(all, c, diagnostics);
}

/* Keeps a child for the next compilation, or ends it if enough children are idle. c NULL means that
 * the child has ended already. */
static void return_child(children *all, child *c)
{
  kj_lock(&all->mutex, KJ_LOCK_CHILDREN);
  bool is_kept = c && all->idle_count < MOST_IDLE;
  if (is_kept) {
    c->next = all->idle;
    all->idle = c;
    all->idle_count++;
  } else {
    all->count--;
  }
  pthread_cond_signal(&all->returned);
  kj_unlock(&all->mutex, KJ_LOCK_CHILDREN);
  if (c && !is_kept) end_child(c);
}

/* ---- errors ---- */

/* Returns the first line of the child's output for a message, allocated with malloc, or NULL. */
static char *read_last_words(const child *c)
{
  enum { MOST = 300 };
  char text[MOST + 1];
  ssize_t count = pread(c->messages, text, MOST, 0);
  if (count <= 0) return NULL;
  text[count] = 0;
  text[strcspn(text, "\n")] = 0;
  return *text ? strdup(text) : NULL;
}

/* Discards the earlier output, so that later output starts at the beginning of the file. */
static void keep_child(child *c)
{
  c->has_served = true;
  if (ftruncate(c->messages, 0) == 0) (void)lseek(c->messages, 0, SEEK_SET);
}

static void describe_end(int status, bool is_known, kj_buffer *text)
{
  const char *signal = is_known && WIFSIGNALED(status) ? sigabbrev_np(WTERMSIG(status)) : NULL;
  if (signal)
    kj_append_format(text, "was killed by SIG%s (%s)", signal, sigdescr_np(WTERMSIG(status)));
  else if (is_known && WIFSIGNALED(status))
    kj_append_format(text, "was killed by signal %d", WTERMSIG(status));
  else if (is_known) kj_append_format(text, "exited with status %d", WEXITSTATUS(status));
  else
    kj_append_text(text, "ended for an unknown reason, because this process ignores SIGCHLD or "
                         "waits for child processes that it did not start");
}

/* Reports why a compilation failed, and frees the child. */
static kjit_status report_lost(const children *all, child *c, outcome how, const char *task,
                               const char *name, kj_diagnostics *diagnostics)
{
  enum { PATIENCE_MS = 2000 };
  bool has_ended = how == ENDED || how == NOT_BEGUN;
  int status = 0;
  kj_buffer what = { 0 };
  /* the child can close its end of the socket before waitpid can reap it */
  if (has_ended && c->handle >= 0)
    (void)poll(&(struct pollfd){ .fd = c->handle, .events = POLLIN }, 1, PATIENCE_MS);
  bool is_known = end_process(c, &status);
  char *words = read_last_words(c);
  free_child(c);
  if (how == OTHER_BUILD) {
    free(words);
    return kj_error(
      diagnostics, KJIT_ERROR_NO_COMPILER,
      "libkjit and the program %s come from different builds; install both from the same build",
      all->path);
  }
  if (has_ended) describe_end(status, is_known, &what);
  else if (how == LATE)
    kj_append_format(&what, "took longer than %g s and was killed", (double)all->limit_ns / 1e9);
  else kj_append_text(&what, "sent an invalid answer and was killed");
  kjit_status reported =
    kj_error(diagnostics, KJIT_ERROR_COMPILER_LOST,
             "the child process that %s `%s` %s%s%s; the next compilation starts a new one", task,
             name, what.text ? what.text : "has ended", words ? ": " : "", words ? words : "");
  kj_free_buffer(&what);
  free(words);
  return reported;
}

/* ---- requests ---- */

/* Words for error messages about a request: the child's task, and the kernel name. */
typedef struct errand {
  const char *task, *name;
} errand;

static kjit_status ask(children *all, const kj_child_request *request, errand e,
                       kj_diagnostics *diagnostics, kj_code *code)
{
  ki_types *types = all->runtime->context->types;
  kj_buffer bytes = { 0 };
  char *answer = NULL;
  size_t answer_bytes = 0;
  kjit_status status = KJIT_ERROR_MEMORY;
  if (!kj_pack_request(types, request, &bytes)) {
    kj_free_buffer(&bytes);
    return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  }
  child *c = take_child(all, diagnostics);
  outcome how = NOT_BEGUN;
  while (c) {
    how = converse(&(exchange){ c, kj_deadline_ns(all->limit_ns) }, &bytes, &answer, &answer_bytes);
    if (how != NOT_BEGUN || !c->has_served) break;
    c = replace_child(all, c, diagnostics);
  }
  kj_free_buffer(&bytes);
  if (!c) return diagnostics->status;
  if (how == ANSWERED && !kj_take_answer(types, answer, answer_bytes, diagnostics, code, &status))
    how = NO_SENSE;
  free(answer);
  if (how == ANSWERED) keep_child(c);
  else if (how == NO_MEMORY) end_child(c);
  else status = report_lost(all, c, how, e.task, e.name, diagnostics);
  return_child(all, how == ANSWERED ? c : NULL);
  if (status == KJIT_ERROR_MEMORY && !diagnostics->error_count)
    return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  return status;
}

kjit_status kj_link(kjit_device *device, const kj_link_input *inputs, size_t count,
                    kj_diagnostics *diagnostics, void **binary, size_t *binary_bytes)
{
  kj_runtime *runtime = device->runtime;
  if (!runtime->context->config.compile_in_child)
    return device->operations->link(device, inputs, count, diagnostics, binary, binary_bytes);
  KJ_TRY(kj_get_compiler(runtime, diagnostics));
  children *all = (children *)runtime->compiler;
  kj_child_request request = { .ordinal = device->info.ordinal,
                               .inputs = inputs,
                               .input_count = count };
  kj_code code = { 0 };
  KJ_TRY(ask(all, &request, (errand){ "assembled", inputs[0].name }, diagnostics, &code));
  *binary = code.data;
  *binary_bytes = code.size_bytes;
  code.data = NULL;
  kj_free_code(&code);
  return KJIT_OK;
}

/* ---- as a compiler ---- */

static kjit_status compile(kj_compiler *compiler, const kj_compile_request *given,
                           kj_diagnostics *diagnostics, kj_code *code)
{
  children *all = (children *)compiler;
  kj_compile_request sent = *given;
  kj_child_request request = { .compile = &sent };
  sent.interrupts = NULL; /* these pointers have no meaning in the child process */
  sent.on_stage = NULL;
  *code = (kj_code){ 0 };
  return ask(all, &request, (errand){ "compiled", given->kernel->decl->name }, diagnostics, code);
}

/* Loads an object with the loader of the disk cache, because the application process has no
 * LLVM. */
static kjit_status load(kj_compiler *compiler, const kj_code *code, const kj_outside *outside,
                        kj_diagnostics *diagnostics, kj_loaded **loaded, kj_cpu_kernel *kernel)
{
  kj_image *image = NULL;
  char reason[KJ_IMAGE_REASON_BYTES];
  (void)compiler;
  if (!kj_load_image(code->data, code->size_bytes, code->entry, outside, &image, kernel, reason))
    return kj_error(diagnostics, KJIT_ERROR_COMPILE,
                    "cannot load machine code that a child process compiled: %s", reason);
  *loaded = (kj_loaded *)image;
  return KJIT_OK;
}

static void unload(kj_compiler *compiler, kj_loaded *loaded)
{
  (void)compiler;
  kj_unload_image((kj_image *)loaded);
}

static void destroy(kj_compiler *compiler)
{
  children *all = (children *)compiler;
  for (child *c; (c = pop_idle(all));) end_child(c);
  pthread_cond_destroy(&all->returned);
  kj_destroy_mutex(&all->mutex);
  free(all->path);
  free(all);
}

static const kj_compiler_interface child_interface = { .size_bytes = sizeof child_interface,
                                                       .version = KJ_COMPILER_VERSION,
                                                       .build = kj_build,
                                                       .destroy = destroy,
                                                       .compile = compile,
                                                       .load = load,
                                                       .unload = unload };

/* ---- opening ---- */

/* Returns the given path, or the path of the program in a folder for this version next to libkjit.
 * If the folder of libkjit is unknown, the path begins with a slash and does not exist. */
static char *find_program(const char *given)
{
  kj_buffer path = { 0 };
  if (given) return strdup(given);
  kj_append_own_folder(&path);
  if (!path.length) kj_append_text(&path, "/");
  kj_append_format(&path, "kjit-%d.%d.%d/kjit-compile-child", KJIT_VERSION_MAJOR,
                   KJIT_VERSION_MINOR, KJIT_VERSION_PATCH);
  return kj_take_text(&path);
}

static uint32_t choose_most(const kjit_config *config)
{
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  if (config->compile_threads) return config->compile_threads;
  return cores < 1 ? 1 : cores > DEFAULT_MOST ? DEFAULT_MOST : (uint32_t)cores;
}

kjit_status kj_open_children(kj_runtime *runtime, kj_diagnostics *diagnostics)
{
  const kjit_config *config = &runtime->context->config;
  struct stat about;
  char *path = find_program(config->compile_child_path);
  if (!path) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  bool is_missing = stat(path, &about) < 0 || access(path, X_OK) < 0;
  if (is_missing || !S_ISREG(about.st_mode)) {
    (void)kj_error(diagnostics, KJIT_ERROR_NO_COMPILER,
                   "`%s`: expected the program that compiles in a child process "
                   "(kjit_config.compile_child_path): %s",
                   path, is_missing ? strerror(errno) : "not a regular file");
    free(path);
    return KJIT_ERROR_NO_COMPILER;
  }
  children *all = calloc(1, sizeof *all);
  if (!all) {
    free(path);
    return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  }
  all->runtime = runtime;
  all->path = path;
  all->most = choose_most(config);
  all->limit_ns = config->compile_child_limit_ns ? config->compile_child_limit_ns
                                                 : (uint64_t)DEFAULT_LIMIT_S * 1000000000;
  pthread_mutex_init(&all->mutex, NULL);
  pthread_cond_init(&all->returned, NULL);
  runtime->compiler = (kj_compiler *)all;
  runtime->interface = &child_interface;
  return KJIT_OK;
}
