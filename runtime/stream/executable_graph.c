/* Implements executable graphs, which can be launched and updated. */
#include <stdlib.h>

#include "stream/record.h"

/* Lets one thread at a time pass a native graph to the driver. The device's mutex protects the
 * fields. A launch retains the turn, because the application can destroy the graph during the
 * launch. */
typedef struct turn {
  uint32_t references;
  bool is_taken;
  pthread_t owner; /* the thread that has the turn */
  pthread_cond_t ended;
} turn;

struct kjit_executable_graph {
  kj_object object;
  kj_record *record;
  void *native; /* NULL means that the record contains the whole graph */
  turn *turn;   /* NULL if there is no native graph */
};

/* Creates a turn with one reference. Returns NULL if out of memory. */
static turn *make_turn(void)
{
  turn *made = calloc(1, sizeof *made);
  if (!made) return NULL;
  made->references = 1;
  pthread_cond_init(&made->ended, NULL);
  return made;
}

/* Ends the turn if `is_end` is set, and releases the object. */
static void release_turn(kjit_device *device, turn *turn, bool is_end)
{
  if (!turn) return;
  kj_lock(&device->mutex, KJ_LOCK_DEVICE);
  KJ_ASSERT(turn->references && (!is_end || turn->is_taken));
  if (is_end) {
    turn->is_taken = false;
    pthread_cond_signal(&turn->ended);
  }
  bool is_last = --turn->references == 0;
  kj_unlock(&device->mutex, KJ_LOCK_DEVICE);
  if (!is_last) return;
  pthread_cond_destroy(&turn->ended);
  free(turn);
}

/* Waits until no other thread passes the native graph to the driver. A launch notes the uses of the
 * record's arrays and then launches the native graph, and an update replaces the record and the
 * native graph. If a launch and an update overlapped, the driver could run a graph whose arrays
 * have no noted use, so their memory could be reused too early. The driver does not allow calls of
 * several threads for one executable graph either. kjit holds no mutex during these driver calls,
 * because they can return cached memory.
 *
 * If the graph has no native graph, *taken is NULL. Errors: MISUSE if this thread has the turn,
 * because it is in a function that the driver calls, such as a callback of a profiler. */
static kjit_status take_turn(kjit_executable_graph *executable, kj_diagnostics *diagnostics,
                             turn **taken)
{
  pthread_mutex_t *mutex = &executable->object.device->mutex;
  turn *turn = *taken = executable->turn;
  if (!turn) return KJIT_OK;
  kj_lock(mutex, KJ_LOCK_DEVICE);
  bool is_nested = turn->is_taken && pthread_equal(turn->owner, pthread_self());
  if (!is_nested) {
    turn->references++;
    while (turn->is_taken) kj_wait_for(&turn->ended, mutex);
    turn->is_taken = true;
    turn->owner = pthread_self();
  }
  kj_unlock(mutex, KJ_LOCK_DEVICE);
  return is_nested ? kj_error(diagnostics, KJIT_ERROR_MISUSE,
                              "a function that the driver calls while it launches or updates this "
                              "graph cannot launch or update the graph")
                   : KJIT_OK;
}

static void free_executable(kjit_executable_graph *executable)
{
  kj_release_native(&executable->object, executable->object.device->operations->destroy_executable,
                    executable->native);
  kj_release_record(executable->record);
  release_turn(executable->object.device, executable->turn, false);
  kj_free_object(&executable->object, executable);
}

static void destroy_executable(kj_object *object)
{
  free_executable((kjit_executable_graph *)object);
}

static kjit_status instantiate(const kjit_graph *graph, kj_diagnostics *diagnostics,
                               kjit_executable_graph *made)
{
  kjit_device *device = graph->object.device;
  KJ_TRY(kj_check_object(&graph->object, "graph", diagnostics));
  if (!graph->native) return KJIT_OK;
  made->turn = make_turn();
  return made->turn ? device->operations->instantiate_graph(device, graph->native, diagnostics,
                                                            &made->native)
                    : kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
}

kjit_status kjit_instantiate_graph(kjit_graph *graph, kjit_executable_graph **executable)
{
  if (!graph) return KJIT_ERROR_MISUSE;
  kjit_device *device = graph->object.device;
  if (ki_is_forked(device->context)) return KJIT_ERROR_FORKED;
  if (!executable)
    return ki_fail_call(device->context, KJIT_ERROR_MISUSE,
                        "kjit_instantiate_graph: executable is NULL");
  kjit_executable_graph *made = calloc(1, sizeof *made);
  if (!made) return ki_fail_call(device->context, KJIT_ERROR_MEMORY, "out of memory");
  kj_diagnostics diagnostics = { 0 };
  if (instantiate(graph, &diagnostics, made) != KJIT_OK) {
    release_turn(device, made->turn, false);
    free(made);
    return ki_finish_call(device->context, &diagnostics);
  }
  made->record = kj_retain_record(graph->record);
  kj_add_object(device, &made->object, destroy_executable);
  *executable = made;
  return KJIT_OK;
}

/* Returns the graph's record and retains it, because other threads, or a host callback in the
 * record, can update or destroy the graph. */
static kj_record *take_record(kjit_executable_graph *executable)
{
  kj_lock(&executable->object.device->mutex, KJ_LOCK_DEVICE);
  kj_record *record = kj_retain_record(executable->record);
  kj_unlock(&executable->object.device->mutex, KJ_LOCK_DEVICE);
  return record;
}

static bool has_form_of(kjit_executable_graph *executable, const kj_record *record)
{
  kj_record *own = take_record(executable);
  bool has = kj_has_form_of(own, record);
  kj_release_record(own);
  return has;
}

/* Updates the native graph, or checks the form of the new operations if there is none. */
static kjit_status update_native(kjit_executable_graph *executable, const kjit_graph *graph,
                                 kj_diagnostics *diagnostics)
{
  kjit_device *device = executable->object.device;
  kjit_status status = KJIT_OK;
  if (executable->native)
    status =
      device->operations->update_graph(device, executable->native, graph->native, diagnostics);
  else if (!has_form_of(executable, graph->record)) status = KJIT_ERROR_ARGUMENT;
  KJ_ASSERT(!executable->native == !graph->native);
  return status == KJIT_ERROR_ARGUMENT && !diagnostics->count
           ? kj_error(diagnostics, KJIT_ERROR_ARGUMENT,
                      "the graph has other operations, or another order, than the instantiated "
                      "graph; instantiate the graph again")
           : status;
}

static kjit_status update(kjit_executable_graph *executable, const kjit_graph *graph,
                          kj_diagnostics *diagnostics)
{
  kjit_device *device = executable->object.device;
  if (graph->object.device != device)
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT, "the graphs belong to different devices");
  KJ_TRY(kj_check_object(&executable->object, "graph", diagnostics));
  KJ_TRY(kj_check_object(&graph->object, "graph", diagnostics));
  turn *taken;
  KJ_TRY(take_turn(executable, diagnostics, &taken));
  kj_record *before = NULL;
  kjit_status status = update_native(executable, graph, diagnostics);
  if (status == KJIT_OK) {
    kj_record *after = kj_retain_record(graph->record);
    kj_lock(&device->mutex, KJ_LOCK_DEVICE);
    before = executable->record;
    executable->record = after;
    kj_unlock(&device->mutex, KJ_LOCK_DEVICE);
  }
  release_turn(device, taken, true);
  kj_release_record(before);
  return status;
}

kjit_status kjit_update_graph(kjit_executable_graph *executable, const kjit_graph *graph)
{
  if (!executable) return KJIT_ERROR_MISUSE;
  kjit_context *context = executable->object.device->context;
  if (ki_is_forked(context)) return KJIT_ERROR_FORKED;
  if (!graph) return ki_fail_call(context, KJIT_ERROR_MISUSE, "kjit_update_graph: graph is NULL");
  kj_diagnostics diagnostics = { 0 };
  (void)update(executable, graph, &diagnostics);
  return ki_finish_call(context, &diagnostics);
}

static kjit_status launch_native(kjit_executable_graph *executable, kjit_stream *stream,
                                 kj_diagnostics *diagnostics)
{
  kjit_device *device = executable->object.device;
  KJ_TRY(kj_check_object(&executable->object, "graph", diagnostics));
  turn *taken;
  KJ_TRY(take_turn(executable, diagnostics, &taken));
  kj_record *record = take_record(executable);
  /* the driver repeats the captured operations itself */
  KJ_ASSERT(!record->operations.count);
  kjit_status status = KJIT_OK;
  for (const kj_kept *kept = record->kept; kept && status == KJIT_OK; kept = kept->next)
    status = kept->kind->use(kept->item, device, stream, diagnostics);
  if (status == KJIT_OK)
    status =
      device->operations->launch_graph(device, executable->native, kj_native(stream), diagnostics);
  release_turn(device, taken, true);
  kj_release_record(record);
  return status;
}

/* Repeats a record's operations. */
static kjit_status run(kjit_executable_graph *executable, kjit_stream *stream)
{
  kj_record *record = take_record(executable);
  kjit_status status = kj_run_record(record, stream);
  kj_release_record(record);
  return status;
}

kjit_status kjit_launch_graph(kjit_executable_graph *executable, kjit_stream *stream)
{
  if (!executable) return KJIT_ERROR_MISUSE;
  kjit_device *device = executable->object.device;
  if (ki_is_forked(device->context)) return KJIT_ERROR_FORKED;
  kj_diagnostics diagnostics = { 0 };
  kjit_status status = kj_check_stream(device, stream, false, &diagnostics);
  if (status == KJIT_OK && stream && atomic_load(&stream->capture))
    status = kj_error(&diagnostics, KJIT_ERROR_MISUSE,
                      "a graph cannot be launched on a stream that is being captured");
  /* errors of the driver are reported below */
  if (status == KJIT_OK && !executable->native) return run(executable, stream);
  if (status == KJIT_OK) (void)launch_native(executable, stream, &diagnostics);
  return ki_finish_call(device->context, &diagnostics);
}

kjit_context *kjit_get_executable_graph_context(const kjit_executable_graph *executable)
{
  return kj_told_context(executable ? &executable->object : NULL);
}

void kjit_destroy_executable_graph(kjit_executable_graph *executable)
{
  if (executable && kj_take_object(&executable->object)) free_executable(executable);
}
