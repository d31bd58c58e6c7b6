/* Stores lines that kernels print, and warnings of the compiler. These messages arrive on threads
 * that must not wait for the interpreter lock: such a thread may hold locks of libkjit, and while
 * the interpreter shuts down it would never get the interpreter lock. So the message queue stores
 * the messages, and the Python thread that made the call delivers them after the call. */
#include "message_queue.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Maximum size of stored text. Text beyond it is dropped and counted, because a kernel may print
 * without end. */
#define ROOM ((size_t)64 << 20)

typedef struct binding_text {
  char *bytes;
  size_t size, capacity;
} binding_text;

/* The current stage of a compilation. There is one for each name of a kernel or func. */
typedef struct binding_stage {
  struct binding_stage *next;
  const char *stage;
  char name[]; /* followed by the stage name */
} binding_stage;

struct binding_message_queue {
  pthread_mutex_t mutex;
  atomic_int is_filled;
  size_t dropped_bytes;
  binding_text lines;
  binding_text warnings; /* file, line:column, message, source line, each followed by a 0 byte */
  binding_stage *stages;
};

static int append(binding_message_queue *queue, binding_text *text, const char *bytes, size_t size)
{
  if (size > ROOM - text->size) return -1;
  if (text->size + size > text->capacity) {
    size_t capacity = 2 * (text->size + size);
    char *grown = realloc(text->bytes, capacity);
    if (!grown) return -1;
    text->bytes = grown, text->capacity = capacity;
  }
  memcpy(text->bytes + text->size, bytes, size);
  text->size += size;
  atomic_store(&queue->is_filled, 1);
  return 0;
}

binding_message_queue *binding_create_message_queue(void)
{
  binding_message_queue *queue = calloc(1, sizeof *queue);
  if (queue && pthread_mutex_init(&queue->mutex, NULL)) {
    free(queue);
    return NULL;
  }
  return queue;
}

static void free_stages(binding_stage *stages)
{
  while (stages) {
    binding_stage *next = stages->next;
    free(stages);
    stages = next;
  }
}

void binding_destroy_message_queue(binding_message_queue *queue)
{
  if (!queue) return;
  free(queue->lines.bytes);
  free(queue->warnings.bytes);
  free_stages(queue->stages);
  pthread_mutex_destroy(&queue->mutex);
  free(queue);
}

void binding_post_lines(void *user, const char *text, size_t size_bytes)
{
  binding_message_queue *queue = user;
  pthread_mutex_lock(&queue->mutex);
  if (append(queue, &queue->lines, text, size_bytes)) {
    queue->dropped_bytes += size_bytes;
    atomic_store(&queue->is_filled, 1);
  }
  pthread_mutex_unlock(&queue->mutex);
}

/* Stores warnings only. Errors become exceptions of the failing call, and remarks are not shown by
 * default. */
void binding_post_diagnostic(void *user, const kjit_diagnostic *d)
{
  binding_message_queue *queue = user;
  if (d->severity != KJIT_SEVERITY_WARNING) return;
  char place[64];
  int length = snprintf(place, sizeof place, "%u:%u", d->line, d->column);
  const char *parts[] = { d->file ? d->file : "", place, d->message,
                          d->source_line ? d->source_line : "" };
  (void)length;
  size_t sizes[4], total = 0;
  for (int i = 0; i < 4; i++) total += sizes[i] = strlen(parts[i]) + 1;
  pthread_mutex_lock(&queue->mutex);
  if (total <= ROOM - queue->warnings.size)
    for (int i = 0; i < 4 && !append(queue, &queue->warnings, parts[i], sizes[i]); i++) {}
  pthread_mutex_unlock(&queue->mutex);
}

/* ---- running compilations ---- */

static binding_stage *make_stage(const char *name, const char *stage)
{
  size_t name_size = strlen(name) + 1, stage_size = strlen(stage) + 1;
  binding_stage *made = malloc(sizeof *made + name_size + stage_size);
  if (!made) return NULL;
  memcpy(made->name, name, name_size);
  made->stage = memcpy(made->name + name_size, stage, stage_size);
  return made;
}

/* If several compilations of one name run at once, the stage that was posted last counts. */
void binding_post_stage(void *user, const char *name, const char *stage)
{
  binding_message_queue *queue = user;
  binding_stage *made = stage ? make_stage(name, stage) : NULL, *old;
  pthread_mutex_lock(&queue->mutex);
  binding_stage **at = &queue->stages;
  while (*at && strcmp((*at)->name, name) != 0) at = &(*at)->next;
  old = *at;
  if (old) *at = old->next;
  if (made) {
    made->next = queue->stages;
    queue->stages = made;
  }
  pthread_mutex_unlock(&queue->mutex);
  free(old);
}

/* Makes the Python objects without the mutex, because making objects may run other Python code that
 * needs the mutex. */
PyObject *binding_list_stages(binding_message_queue *queue)
{
  binding_stage *copies = NULL;
  pthread_mutex_lock(&queue->mutex);
  for (binding_stage *stage = queue->stages; stage; stage = stage->next) {
    binding_stage *copy = make_stage(stage->name, stage->stage);
    if (!copy) break;
    copy->next = copies;
    copies = copy;
  }
  pthread_mutex_unlock(&queue->mutex);
  PyObject *stages = PyDict_New();
  for (binding_stage *copy = copies; stages && copy; copy = copy->next) {
    PyObject *text = PyUnicode_FromString(copy->stage);
    if (!text || PyDict_SetItemString(stages, copy->name, text)) Py_CLEAR(stages);
    Py_XDECREF(text);
  }
  free_stages(copies);
  return stages;
}

/* ---- delivery to the interpreter ---- */

static int write_lines(const binding_text *text, size_t dropped)
{
  /* None if the process has no standard output; writing can run code that replaces sys.stdout */
  PyObject *out = Py_XNewRef(PySys_GetObject("stdout"));
  if (!out || out == Py_None) {
    Py_XDECREF(out);
    return 0;
  }
  PyObject *lines = PyUnicode_DecodeUTF8(text->bytes, (Py_ssize_t)text->size, "replace");
  if (lines && dropped)
    binding_set(&lines, PyUnicode_FromFormat("%U(kjit: %zu bytes more were printed, and dropped)\n",
                                             lines, dropped));
  PyObject *result = lines ? PyObject_CallMethod(out, "write", "O", lines) : NULL;
  Py_XDECREF(lines);
  Py_XDECREF(result);
  Py_DECREF(out);
  return result ? 0 : -1;
}

/* Calls kjit._errors.warn(file, line, column, message, source line). */
static int give_warnings(const binding_text *text)
{
  PyObject *errors = PyImport_ImportModule("kjit._errors");
  const char *at = text->bytes, *end = at + text->size;
  int outcome = errors ? 0 : -1;
  while (!outcome && at < end) {
    const char *place = at + strlen(at) + 1, *message = place + strlen(place) + 1;
    const char *quoted = message < end ? message + strlen(message) + 1 : end;
    if (quoted >= end) break; /* memory was exhausted, so the remaining strings are missing */
    char *colon;
    long line = strtol(place, &colon, 10), column = strtol(colon + 1, NULL, 10);
    PyObject *result = PyObject_CallMethod(errors, "warn", "sllsz", at, line, column, message,
                                           *quoted ? quoted : NULL);
    if (!result) outcome = -1;
    Py_XDECREF(result);
    at = quoted + strlen(quoted) + 1;
  }
  Py_XDECREF(errors);
  return outcome;
}

int binding_deliver_messages(binding_message_queue *queue)
{
  if (!atomic_load_explicit(&queue->is_filled, memory_order_relaxed)) return 0;
  pthread_mutex_lock(&queue->mutex);
  binding_text lines = queue->lines, warnings = queue->warnings;
  size_t dropped = queue->dropped_bytes;
  memset(&queue->lines, 0, sizeof queue->lines);
  memset(&queue->warnings, 0, sizeof queue->warnings);
  queue->dropped_bytes = 0;
  atomic_store(&queue->is_filled, 0);
  pthread_mutex_unlock(&queue->mutex);
  int outcome = lines.size || dropped ? write_lines(&lines, dropped) : 0;
  if (!outcome && warnings.size) outcome = give_warnings(&warnings);
  free(lines.bytes);
  free(warnings.bytes);
  return outcome;
}

int binding_finish(context_object *context, kjit_status status)
{
  /* A forked child leaves the messages to its parent. Another thread may have held the queue's
   * mutex at the fork. */
  if (atomic_load_explicit(&context->messages->is_filled, memory_order_relaxed) &&
      context->generation == binding_generation) {
    /* the call's failure is reported, not an exception from writing the lines */
    if (status != KJIT_OK) {
      binding_raise(context, status);
      PyObject *type, *value, *trace;
      PyErr_Fetch(&type, &value, &trace);
      if (binding_deliver_messages(context->messages)) PyErr_Clear();
      PyErr_Restore(type, value, trace);
      return -1;
    }
    return binding_deliver_messages(context->messages);
  }
  if (status == KJIT_OK) return 0;
  binding_raise(context, status);
  return -1;
}
