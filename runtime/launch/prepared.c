/* Implements prepared launches. A prepared launch keeps a launch's arguments, and the
 * specialization, grid and parameter block for these arguments. If the application replaces a
 * run-time scalar on which no extent depends, kjit writes the new value to the parameter block. If
 * it replaces any other argument, the next run checks all facts again and may find another
 * specialization. */
#include <stdlib.h>
#include <string.h>

#include "base/interrupt.h"
#include "launch/fast_path.h"
#include "launch/prepared.h"
#include "launch/steps.h"
#include "stream/stream.h"
#include "support/assert.h"
#include "support/host_process.h"

/* ---- finding the specialization ---- */

static void begin_call(kjit_prepared *prepared)
{
  free(prepared->call.own_parameters);
  prepared->call = (kj_call){ .kernel = prepared->kernel,
                              .config = &prepared->config,
                              .runtime = prepared->kernel->context->runtime };
  (void)kj_divide_memory(&prepared->call, prepared->memory);
}

/* Fills in prepared->ready after the call was prepared or has run, while the specialization is
 * still held. Without the hold, the code could be evicted at the same time. Its fields would then
 * be zero, which looks like code that needs only grid, block and parameters. */
static void set_ready(kjit_prepared *prepared)
{
  const kj_call *call = &prepared->call;
  kj_ready_launch *ready = &prepared->ready;
  const kjit_specialization *specialization = ready->specialization;
  KJ_ASSERT(kj_is_held_here(specialization));
  prepared->is_stale = call->is_fallback;
  ready->is_ready = !prepared->is_stale && call->device->operations->is_queued &&
                    call->device->start && !call->has_host_arrays && !call->has_nothing &&
                    !call->is_miss && !specialization->code.tensor_map_count &&
                    !specialization->code.is_interruptible && !kj_has_interrupts(call->config) &&
                    !kj_has_attributes(call);
  ready->forks = prepared->kernel->context->forks;
  ready->launches = prepared->kernel->context->launches;
  KJ_ASSERT(ready->shape.parameter_bytes <= call->parameter_room);
  kj_take_shape(&ready->shape, specialization, call);
  KJ_ASSERT(!ready->is_ready || ready->shape.parameter_bytes <= call->parameter_room);
  ready->shape.specialization = NULL; /* the shape's inputs are not recorded */
}

/* Tests, after an argument was replaced, whether the tables of the current code (see
 * kj_follow_table) apply to the new arguments. */
static __attribute__((noinline)) bool follow_tables(kjit_prepared *prepared, kjit_stream *stream)
{
  kj_ready_launch *ready = &prepared->ready;
  kjit_specialization *known = ready->specialization;
  kjit_launch_config config = prepared->config;
  config.stream = stream;
  bool is_open =
    prepared->is_sealed == atomic_load_explicit(&prepared->kernel->is_sealed, memory_order_acquire);
  if (!is_open || !kj_hold(known)) return false;
  /* the parameter block has its initial capacity if no specialization was found */
  ready->is_ready = known->code.parameter_bytes <= prepared->call.parameter_room &&
                    kj_follow_table(known, &config, prepared->arguments, prepared->count,
                                    &ready->shape, prepared->call.parameters);
  if (ready->is_ready) {
    ready->generation = known->generation;
    ready->noted = kj_id_of(stream, known->device);
  }
  kj_release(known, false);
  return ready->is_ready;
}

/* Prepares the call on the slow path. On success its specialization is held. */
static kjit_status look_up(kjit_prepared *prepared, kj_diagnostics *diagnostics)
{
  kj_call *call = &prepared->call;
  kjit_device *device = call->device;
  kjit_specialization *found = NULL;
  kj_set_stale(prepared);
  prepared->ready.noted = KJ_STREAM_NONE;
  begin_call(prepared);
  kjit_status status =
    kj_prepare_call(call, prepared->arguments, prepared->count, diagnostics, &found);
  if (status != KJIT_OK) {
    /* the other fields may be incomplete; the next run sets these fields before it reads them */
    call->device = device;
    return status;
  }
  KJ_ASSERT(kj_is_held_here(found) && found->kernel == prepared->kernel);
  kj_make_launch_table(call, found, prepared->arguments, prepared->count);
  bool is_other = found != prepared->ready.specialization;
  prepared->ready.specialization = found;
  prepared->ready.generation = found->generation;
  prepared->is_sealed = call->is_sealed;
  if (is_other) kj_find_scalars(prepared);
  return KJIT_OK;
}

/* ---- creation and end ---- */

static void free_prepared(kjit_prepared *prepared)
{
  for (size_t i = 0; i < prepared->count && prepared->kept; i++) free(prepared->kept[i].value);
  free(prepared->arguments);
  free(prepared->kept);
  free(prepared->memory);
  free(prepared->call.own_parameters);
  kj_release_interrupter(prepared->config.interrupter);
  kj_free_object(&prepared->object, prepared);
}

static void destroy_object(kj_object *object)
{
  kjit_prepared *prepared = (kjit_prepared *)((char *)object - offsetof(kjit_prepared, object));
  kjit_module *module = prepared->kernel->module;
  kj_release_arguments(prepared);
  free_prepared(prepared);
  kjit_release_module(module);
}

static kjit_prepared *make_prepared(kjit_kernel *kernel, const kjit_launch_config *config,
                                    size_t count)
{
  enum { LINE = 64 };
  kjit_prepared *made = aligned_alloc(LINE, (sizeof *made + LINE - 1) / LINE * LINE);
  if (!made) return NULL;
  memset(made, 0, sizeof *made);
  made->kernel = kernel;
  made->count = count;
  made->config = *config;
  (void)kj_retain_interrupter(config->interrupter);
  made->arguments = calloc(count + 1, sizeof *made->arguments);
  made->kept = calloc(count + 1, sizeof *made->kept);
  made->memory = aligned_alloc(LINE, (kernel->call_bytes + LINE - 1) / LINE * LINE);
  if (made->arguments && made->kept && made->memory) return made;
  free_prepared(made);
  return NULL;
}

static kjit_status fill_prepared(kjit_prepared *prepared, const kjit_arg *arguments,
                                 kj_diagnostics *diagnostics)
{
  KJ_TRY(kj_keep_arguments(prepared, arguments, diagnostics));
  KJ_TRY(look_up(prepared, diagnostics));
  kjit_specialization *found = prepared->ready.specialization;
  kjit_status status = kj_fit_shape(&prepared->call, found, diagnostics);
  if (status == KJIT_OK) status = kj_marshal(&prepared->call, found, diagnostics);
  if (status == KJIT_OK) set_ready(prepared);
  kj_release(found, false);
  return status;
}

static kjit_status prepare(kjit_kernel *kernel, const kjit_launch_config *config,
                           const kjit_arg *arguments, size_t count, kjit_prepared **prepared)
{
  kjit_context *context = kernel->context;
  if (count > kernel->parameter_count)
    return ki_fail_call(context, KJIT_ERROR_ARGUMENT,
                        "kernel `%s`: expected at most %u arguments, got %zu",
                        kernel->function->decl->name, kernel->parameter_count, count);
  /* the interrupter's context may end before the prepared launch */
  if (config->interrupter && config->interrupter->object.device->context != context)
    return ki_fail_call(context, KJIT_ERROR_ARGUMENT,
                        "preparing `%s`: the interrupter belongs to another context",
                        kernel->function->decl->name);
  kjit_prepared *made = kj_get_runtime(context) ? make_prepared(kernel, config, count) : NULL;
  if (!made) return ki_fail_call(context, KJIT_ERROR_MEMORY, "out of memory");
  kj_diagnostics diagnostics = { 0 };
  kjit_status status = fill_prepared(made, arguments, &diagnostics);
  if (status == KJIT_OK) {
    (void)kjit_retain_module(kernel->module);
    kj_add_object(made->call.device, &made->object, destroy_object);
    *prepared = made;
  } else {
    kj_release_arguments(made);
    free_prepared(made);
  }
  return kj_end_launch(context, status, &diagnostics);
}

kjit_status kjit_prepare_launch(kjit_kernel *kernel, const kjit_launch_config *config,
                                const kjit_arg *arguments, size_t count, kjit_prepared **prepared)
{
  if (!kernel) return KJIT_ERROR_MISUSE;
  kjit_context *context = kernel->context;
  if (ki_is_forked(context)) return KJIT_ERROR_FORKED;
  if (!prepared || (count && !arguments))
    return ki_fail_call(context, KJIT_ERROR_MISUSE, "kjit_prepare_launch: %s is NULL",
                        prepared ? "arguments" : "prepared");
  kjit_launch_config read;
  KJ_TRY(ki_read_sized(context, "kjit_prepare_launch", KI_LAUNCH_CONFIG, config, &read));
  if (read.flags & ~(uint32_t)KJ_LAUNCH_FLAGS)
    return ki_fail_call(context, KJIT_ERROR_MISUSE, "kjit_prepare_launch: unknown flags %#x",
                        read.flags & ~(uint32_t)KJ_LAUNCH_FLAGS);
  kj_flat_arguments flat = { 0 };
  kj_diagnostics diagnostics = { 0 };
  if (!kj_has_tuples(arguments, count)) return prepare(kernel, &read, arguments, count, prepared);
  if (kj_flatten_arguments(kernel, arguments, count, &diagnostics, &flat) != KJIT_OK)
    return ki_finish_call(context, &diagnostics);
  kjit_status status = prepare(kernel, &read, flat.items, flat.count, prepared);
  free(flat.items);
  return status;
}

kjit_context *kjit_get_prepared_context(const kjit_prepared *prepared)
{
  return kj_told_context(prepared ? &prepared->object : NULL);
}

void kjit_destroy_prepared(kjit_prepared *prepared)
{
  if (prepared && kj_take_object(&prepared->object)) destroy_object(&prepared->object);
}

/* ---- running ---- */

/* Checks conditions that can change between runs. */
static kjit_status check_run(const kjit_prepared *prepared, const kjit_stream *stream,
                             kj_diagnostics *diagnostics)
{
  KJ_TRY(kj_check_device(prepared->call.device, diagnostics));
  return kj_check_stream(prepared->call.device, stream, false, diagnostics);
}

/* Records that the stream uses the arrays. This is done once for each stream, not in each run. */
static inline void note_uses(kjit_prepared *prepared, kjit_stream *stream)
{
  kj_stream_id id = kj_id_of(stream, prepared->call.device);
  KJ_ASSERT(id != KJ_STREAM_NONE);
  if (prepared->ready.noted == id) return;
  for (size_t i = 0; i < prepared->count; i++)
    if (prepared->arguments[i].kind == KJIT_ARG_ARRAY)
      kj_note_use(prepared->arguments[i].value.array, stream, prepared->call.device);
  prepared->ready.noted = id;
}

/* Makes the graph keep the code and the arrays. The specialization is held. */
static kjit_status keep_captured(kjit_prepared *prepared, kjit_stream *stream,
                                 kj_diagnostics *diagnostics)
{
  KJ_TRY(kj_keep_code(stream, prepared->ready.specialization, diagnostics));
  return kj_keep_arrays(stream, prepared->arguments, prepared->count, diagnostics);
}

static kjit_status run_slowly(kjit_prepared *prepared, kjit_stream *stream,
                              kj_diagnostics *diagnostics)
{
  uint32_t generation =
    atomic_load_explicit(&prepared->call.device->generation, memory_order_relaxed);
  KJ_TRY(check_run(prepared, stream, diagnostics));
  bool is_current = !prepared->is_stale && prepared->ready.generation == generation &&
                    kj_hold(prepared->ready.specialization);
  if (!is_current) KJ_TRY(look_up(prepared, diagnostics));
  /* replaced arrays can be on another device than the stream */
  kjit_status status = check_run(prepared, stream, diagnostics);
  prepared->call.stream = stream;
  /* the uses are recorded before the launch, because a launch that reports a failure may have
   * queued the kernel */
  if (status == KJIT_OK && prepared->call.device->operations->is_queued)
    note_uses(prepared, stream);
  if (status == KJIT_OK)
    status = kj_run_call(&prepared->call, prepared->ready.specialization, diagnostics);
  if (status == KJIT_OK && kj_is_captured(stream))
    status = keep_captured(prepared, stream, diagnostics);
  prepared->call.is_miss = false;
  if (status == KJIT_OK) set_ready(prepared);
  kj_release(prepared->ready.specialization, status == KJIT_OK);
  return status;
}

kjit_specialization *kjit_get_prepared_specialization(const kjit_prepared *prepared)
{
  return prepared && !ki_is_forked(prepared->kernel->context) ? prepared->ready.specialization
                                                              : NULL;
}

static __attribute__((noinline)) kjit_status run_by_rules(kjit_prepared *prepared,
                                                          kjit_stream *stream)
{
  kj_diagnostics diagnostics = { 0 };
  if (ki_is_forked(prepared->kernel->context)) return KJIT_ERROR_FORKED;
  if (kj_is_recorded(stream))
    return kj_record_launch(stream, prepared->kernel, &prepared->config, prepared->arguments,
                            prepared->count);
  kjit_status status = run_slowly(prepared, stream, &diagnostics);
  return kj_end_launch(prepared->kernel->context, status, &diagnostics);
}

/* Called after the driver's launch function has returned an error. */
static __attribute__((noinline, cold)) kjit_status retry(kjit_prepared *prepared,
                                                         kjit_stream *stream, int result)
{
  kj_diagnostics diagnostics = { 0 };
  const kj_ready_launch *ready = &prepared->ready;
  kjit_status status = kj_retry_plainly(ready->specialization, &ready->shape, stream,
                                        prepared->call.parameters, result, &diagnostics);
  return kj_end_launch(prepared->kernel->context, status, &diagnostics);
}

/* Runs the launch on the slow path. Launches on the CPU always take this path, and have ended when
 * the call returns. */
static kjit_status run_in_call(kjit_prepared *prepared, kjit_stream *stream, uint32_t own)
{
  kjit_context *context = prepared->kernel->context;
  kj_count_up(&context->launches[own].begun, own);
  kjit_status status = run_by_rules(prepared, stream);
  kj_count_up(&context->launches[own].ended, own); /* another thread may destroy the context after
                                                    * this statement */
  return status;
}

kjit_status kjit_run_prepared(kjit_prepared *prepared, kjit_stream *stream)
{
  if (!prepared) return KJIT_ERROR_MISUSE;
  kj_ready_launch *ready = &prepared->ready;
  uint32_t own = kj_slot();
  if (!stream) stream = prepared->config.stream;
  if ((!ready->is_ready && !(prepared->is_stale && follow_tables(prepared, stream))) ||
      !kj_is_usable(prepared->call.device, ready->generation, ready->forks, stream) ||
      kj_is_captured(stream) || !kj_hold_of(ready->specialization, own))
    return run_in_call(prepared, stream, own);
  int result =
    kj_start_plainly(ready->specialization, &ready->shape, stream, prepared->call.parameters);
  kjit_status status = __builtin_expect(result, 0) ? retry(prepared, stream, result) : KJIT_OK;
  kj_release_of(ready->specialization, own, status == KJIT_OK);
  note_uses(prepared, stream);
  if (status == KJIT_OK) kj_count_up(&ready->launches[own].count, own);
  return status;
}

/* ---- launches that a graph repeats ---- */

typedef struct launch_operation {
  kj_operation operation;
  kjit_prepared *prepared;
  _Atomic bool is_running;
} launch_operation;

/* Runs a captured launch when its graph is launched. Only one thread at a time can run a prepared
 * launch. If another thread is running it, or if its kernel calls application code that launches
 * the graph again, this function makes an ordinary launch instead of waiting, because it must not
 * wait for the application. The application can destroy the stream before it launches the graph; a
 * device on which kjit repeats operations does not need the stream. */
static kjit_status run_launch(kj_operation *operation, kjit_stream *stream)
{
  (void)stream;
  launch_operation *launch = (launch_operation *)operation;
  const kjit_prepared *prepared = launch->prepared;
  if (atomic_exchange(&launch->is_running, true))
    return kjit_launch(prepared->kernel, &prepared->config, prepared->arguments, prepared->count);
  kjit_status status = kjit_run_prepared(launch->prepared, NULL);
  KJ_ASSERT(atomic_load(&launch->is_running)); /* the flag must still be set, because no other run
                                                * can clear it */
  atomic_store(&launch->is_running, false);
  return status;
}

static void destroy_launch(kj_operation *operation)
{
  kjit_destroy_prepared(((launch_operation *)operation)->prepared);
  free(operation);
}

kjit_status kj_record_launch(kjit_stream *stream, kjit_kernel *kernel,
                             const kjit_launch_config *config, const kjit_arg *arguments,
                             size_t count)
{
  kjit_device *device = stream->object.device;
  kj_diagnostics diagnostics = { 0 };
  launch_operation *launch = calloc(1, sizeof *launch);
  if (!launch) return ki_fail_call(device->context, KJIT_ERROR_MEMORY, "out of memory");
  launch->operation =
    (kj_operation){ .run = run_launch, .destroy = destroy_launch, .form = kernel };
  kjit_launch_config kept = *config;
  kept.stream = NULL;
  kept.device = device;
  kjit_status status = kjit_prepare_launch(kernel, &kept, arguments, count, &launch->prepared);
  if (status != KJIT_OK) {
    free(launch);
    return status;
  }
  (void)kj_record_operation(stream, &launch->operation, &diagnostics);
  return ki_finish_call(device->context, &diagnostics);
}
