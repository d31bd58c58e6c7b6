/* The child's side of compilation in child processes: a context that serves one request after the
 * other until the application's process ends. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "code/child.h"
#include "code/compile_thread.h"
#include "code/specialization.h"
#include "ir/context.h"

/* ---- end of the application's process ---- */

/* Ends this process when the application's process ends. This thread is needed during a
 * compilation, because no other thread then reads from the socket. */
static void *watch_host(void *data)
{
  enum { PAUSE_MS = 1000 };
  pid_t host = *(pid_t *)data;
  int handle = (int)syscall(SYS_pidfd_open, host, 0);
  while (getppid() == host)
    (void)poll(&(struct pollfd){ .fd = handle, .events = POLLIN }, 1, handle < 0 ? PAUSE_MS : -1);
  _exit(EXIT_SUCCESS);
}

static bool start_watching(void)
{
  static pid_t host;
  pthread_t thread;
  host = getppid();
  if (pthread_create(&thread, NULL, watch_host, &host)) return false;
  pthread_detach(thread);
  return true;
}

/* ---- messages ---- */

static bool receive_all(int socket, void *bytes, size_t size_bytes)
{
  for (char *at = bytes; size_bytes;) {
    ssize_t count = recv(socket, at, size_bytes, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    at += count;
    size_bytes -= (size_t)count;
  }
  return true;
}

static bool send_all(int socket, const void *bytes, size_t size_bytes)
{
  for (const char *at = bytes; size_bytes;) {
    ssize_t count = send(socket, at, size_bytes, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    at += count;
    size_bytes -= (size_t)count;
  }
  return true;
}

static bool send_message(int socket, const void *bytes, size_t size_bytes)
{
  kj_frame frame = kj_make_frame(size_bytes);
  return send_all(socket, &frame, sizeof frame) && send_all(socket, bytes, size_bytes);
}

/* Tells the application's process that the request has been read. */
static bool send_begun(int socket)
{
  kj_frame frame = kj_make_frame(0);
  return send_all(socket, &frame, sizeof frame);
}

/* ---- requests ---- */

static kjit_status compile(kj_runtime *runtime, const kj_child_request *request,
                           kj_diagnostics *diagnostics, kj_code *code)
{
  KJ_TRY(kj_get_compiler(runtime, diagnostics));
  return kj_call_compiler(runtime, request->compile, diagnostics, code);
}

static kjit_status assemble(kj_runtime *runtime, const kj_child_request *request,
                            kj_diagnostics *diagnostics, kj_code *code)
{
  kjit_device *device;
  KJ_TRY(kj_find_device(runtime, KJIT_DEVICE_CUDA, request->ordinal, diagnostics, &device));
  return device->operations->link(device, request->inputs, request->input_count, diagnostics,
                                  &code->data, &code->size_bytes);
}

/* Appends a 0 byte to assembled code, which the assembler does not write. */
static bool end_code(kj_code *code)
{
  char *grown = code->data ? realloc(code->data, code->size_bytes + 1) : NULL;
  if (!code->data) return true;
  if (!grown) return false;
  grown[code->size_bytes] = 0;
  code->data = grown;
  return true;
}

static bool answer_request(int socket, kjit_context *context, const kj_child_request *request)
{
  kj_diagnostics diagnostics = { 0 };
  kj_child_answer answer = { 0 };
  kj_buffer bytes = { 0 };
  kj_runtime *runtime = kj_get_runtime(context);
  kjit_status status = !runtime           ? KJIT_ERROR_MEMORY
                       : request->compile ? compile(runtime, request, &diagnostics, &answer.code)
                                          : assemble(runtime, request, &diagnostics, &answer.code);
  if (status == KJIT_OK && !end_code(&answer.code)) status = KJIT_ERROR_MEMORY;
  if (status == KJIT_ERROR_MEMORY && !diagnostics.error_count)
    (void)kj_error(&diagnostics, status, "out of memory in the child process that compiles");
  if (status != KJIT_OK) kj_free_code(&answer.code);
  answer.status = (uint32_t)status;
  answer.diagnostics = diagnostics.items;
  answer.diagnostic_count = diagnostics.count;
  bool is_sent = kj_pack_answer(context->types, &answer, &bytes) &&
                 send_message(socket, bytes.text, bytes.length);
  kj_free_buffer(&bytes);
  kj_free_code(&answer.code);
  kj_free_diagnostics(&diagnostics);
  return is_sent;
}

/* ---- the loop ---- */

/* Receives a message in a malloc'd buffer. Returns NULL if the application's process has ended.
 * Also returns NULL if that process uses another build of kjit, and answers with this process'
 * build. */
static char *receive_message(int socket, size_t *size_bytes)
{
  kj_frame frame;
  if (!receive_all(socket, &frame, sizeof frame)) return NULL;
  if (!kj_is_own_frame(&frame)) {
    (void)send_begun(socket); /* this answer tells the other process to which build this process
                               * belongs */
    return NULL;
  }
  *size_bytes = frame.size_bytes;
  char *bytes = malloc(frame.size_bytes + 1);
  if (bytes && receive_all(socket, bytes, frame.size_bytes)) return bytes;
  free(bytes);
  return NULL;
}

static kjit_status open_context(const kj_child_start *start, kjit_context **context)
{
  kjit_config config = { .size_bytes = sizeof config,
                         .compiler_path = start->compiler_path,
                         .libdevice_path = start->libdevice_path,
                         .cache_directory = "",
                         .debug = (kjit_debug)start->debug };
  return kjit_create_context(&config, context);
}

/* Serves one message with a new arena. Returns false if the connection has ended. */
static bool serve_message(int socket, kjit_context **context)
{
  jmp_buf on_failure;
  kj_arena arena;
  size_t size_bytes = 0;
  volatile bool is_served = false;
  char *bytes = receive_message(socket, &size_bytes);
  if (!bytes) return false;
  kj_init_arena(&arena, &on_failure);
  if (setjmp(on_failure) == 0) {
    if (!*context) {
      const kj_child_start *start = kj_unpack_start(bytes, size_bytes, &arena);
      is_served = start && open_context(start, context) == KJIT_OK;
    } else {
      const kj_child_request *request = kj_unpack_request(*context, bytes, size_bytes, &arena);
      is_served = request && send_begun(socket) && answer_request(socket, *context, request);
    }
  }
  kj_free_arena(&arena);
  free(bytes);
  return is_served;
}

kjit_status kjit_serve_compilations(int socket)
{
  kjit_context *context = NULL;
  if (!start_watching()) return KJIT_ERROR_MEMORY;
  while (serve_message(socket, &context)) {}
  kjit_destroy_context(context);
  return KJIT_OK;
}
