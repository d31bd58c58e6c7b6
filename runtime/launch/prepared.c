/* Prepared launches keep the arguments of a launch, and the specialization, grid and parameter
 * block made from them. Replacing a run-time scalar that no extent depends on writes the value to
 * the parameter block. After any other argument is replaced, the next run checks all facts again
 * and may find another specialization. */
#include <stdlib.h>
#include <string.h>

#include "launch/steps.h"
#include "launch/fast_path.h"
#include "support/assert.h"
#include "support/host_process.h"
#include "stream/stream.h"

/* A copy of the data that an argument points to, because the application's tensors and values live
 * only during the call. */
typedef struct kept_argument {
  kjit_tensor tensor;
  int64_t extents[2 * KJ_MAX_RANK];
  uint64_t bits[2];
  int32_t scalar_offset; /* offset in the parameter block, or -1 if replacing the argument needs
                          * more than a write */
  uint8_t scalar_bytes;
  void *value; /* memory of a value that is too large for `bits`, or NULL */
} kept_argument;

/* The fields that a run on a GPU reads if it only has to call the driver. code and function belong
 * to the specialization, which may be evicted and loaded again. */
typedef struct ready_launch {
  _Alignas(64) bool is_ready; /* the parameter block and the shape belong to the current
                               * arguments */
  uint32_t forks, generation; /* generation of the device when the arguments were checked */
  kj_stream_id noted; /* the stream for which the uses of the arrays are recorded, or NONE */
  kjit_specialization *specialization;
  ki_launch_counter *launches;
  kj_known_shape shape;
} ready_launch;

struct kjit_prepared {
  ready_launch ready;
  kj_object object;
  kjit_kernel *kernel;
  kjit_launch_config config;
  kjit_arg *arguments; /* pointers in the arguments lead to `kept` */
  kept_argument *kept;
  size_t count;
  char *memory; /* memory of the call */
  kj_call call;
  /* an argument was replaced, so `call` does not match the arguments, whether `ready` is or not */
  bool is_stale;
  bool is_sealed; /* whether the kernel was sealed when the slow path found the specialization */
};

/* ---- keeping arguments ---- */

static kjit_status refuse(const kjit_prepared *prepared, size_t index, const char *text,
                          kj_diagnostics *diagnostics)
{
  const ki_decl *decl = prepared->kernel->parameters[index].decl;
  return kj_error_at(diagnostics, prepared->kernel->module, decl->location, KJIT_ERROR_ARGUMENT,
                     "parameter `%s`: %s", decl->name, text);
}

static kjit_status keep_tensor(kjit_prepared *prepared, size_t index, const kjit_tensor *tensor,
                               kj_diagnostics *diagnostics)
{
  kept_argument *kept = &prepared->kept[index];
  if (!tensor) return refuse(prepared, index, "expected an array, got NULL", diagnostics);
  if (tensor->rank < 0 || tensor->rank > KJ_MAX_RANK || (tensor->rank && !tensor->shape))
    return refuse(prepared, index, "expected an array of 0 to 8 dimensions with a shape",
                  diagnostics);
  size_t bytes = (size_t)tensor->rank * sizeof *tensor->shape;
  kept->tensor = *tensor;
  if (bytes) memcpy(kept->extents, tensor->shape, bytes);
  if (bytes && tensor->strides) memcpy(kept->extents + KJ_MAX_RANK, tensor->strides, bytes);
  kept->tensor.shape = kept->extents;
  kept->tensor.strides = tensor->strides ? kept->extents + KJ_MAX_RANK : NULL;
  prepared->arguments[index].value.tensor = &kept->tensor;
  return KJIT_OK;
}

static kjit_status keep_value(kjit_prepared *prepared, size_t index, const kjit_arg *argument,
                              kj_diagnostics *diagnostics)
{
  kept_argument *kept = &prepared->kept[index];
  ki_types *types = prepared->kernel->module->types;
  if (!argument->value.address || !ki_is_element(types, argument->type))
    return refuse(prepared, index, "expected a value, got none", diagnostics);
  size_t size = kj_element_bytes(types, argument->type);
  if (size <= sizeof kept->bits && !kept->value) {
    memcpy(kept->bits, argument->value.address, size);
    return KJIT_OK;
  }
  void *grown = realloc(kept->value, size > sizeof kept->bits ? size : sizeof kept->bits);
  if (!grown) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  kept->value = grown;
  memcpy(kept->value, argument->value.address, size);
  return KJIT_OK;
}

static void release_kept(kjit_arg *argument)
{
  KJ_ASSERT(argument->kind != KJIT_ARG_TUPLE); /* tuples are flattened first */
  if (argument->kind == KJIT_ARG_ARRAY) kjit_release_array(argument->value.array);
  argument->kind = 0;
}

static kjit_status keep_argument(kjit_prepared *prepared, size_t index, const kjit_arg *argument,
                                 kj_diagnostics *diagnostics)
{
  kjit_arg *own = &prepared->arguments[index], before = *own;
  kept_argument *kept = &prepared->kept[index];
  switch (argument->kind) {
  case KJIT_ARG_TENSOR:
    KJ_TRY(keep_tensor(prepared, index, argument->value.tensor, diagnostics));
    break;
  case KJIT_ARG_BY_ADDRESS: KJ_TRY(keep_value(prepared, index, argument, diagnostics)); break;
  case KJIT_ARG_ARRAY:
    if (!argument->value.array)
      return refuse(prepared, index, "expected an array, got NULL", diagnostics);
    /* the other context may end before the prepared launch */
    if (argument->value.array->object.device->context != prepared->kernel->context)
      return refuse(prepared, index,
                    "expected an array of the kernel's context, got an array of another context",
                    diagnostics);
    (void)kjit_retain_array(argument->value.array);
    break;
  default: break;
  }
  *own = *argument;
  KJ_ASSERT(index < prepared->count);
  if (argument->kind == KJIT_ARG_TENSOR) own->value.tensor = &kept->tensor;
  if (argument->kind == KJIT_ARG_BY_ADDRESS)
    own->value.address = kept->value ? kept->value : kept->bits;
  release_kept(&before);
  return KJIT_OK;
}

/* ---- scalars that can be replaced in the parameter block ---- */

static bool shapes_launch(const kjit_kernel *kernel, uint32_t index)
{
  bool is_used = kernel->parameters[index].is_shaping;
  /* the default value of a parameter may depend on it */
  for (uint32_t i = 0; i < kernel->parameter_count; i++)
    is_used = is_used || kernel->parameters[i].decl->value;
  return is_used;
}

static void find_scalars(kjit_prepared *prepared)
{
  const kj_code *code = &prepared->ready.specialization->code;
  for (size_t i = 0; i < prepared->count; i++) prepared->kept[i].scalar_offset = -1;
  for (uint32_t i = 0; i < code->parameter_count; i++) {
    const kj_parameter *parameter = &code->parameters[i];
    if (parameter->kind != KJ_PARAMETER_SCALAR || parameter->size_bytes > 8 || parameter->part ||
        parameter->argument >= prepared->count)
      continue;
    if (prepared->call.bound[parameter->argument].kind != KJ_ARGUMENT_VALUE ||
        shapes_launch(prepared->kernel, parameter->argument))
      continue;
    KJ_ASSERT(parameter->offset + parameter->size_bytes <= code->parameter_bytes);
    prepared->kept[parameter->argument].scalar_offset = (int32_t)parameter->offset;
    prepared->kept[parameter->argument].scalar_bytes = parameter->size_bytes;
  }
}

/* ---- finding the specialization ---- */

static void begin_call(kjit_prepared *prepared)
{
  free(prepared->call.own_parameters);
  prepared->call = (kj_call){ .kernel = prepared->kernel,
                              .config = &prepared->config,
                              .runtime = prepared->kernel->context->runtime };
  (void)kj_divide_memory(&prepared->call, prepared->memory);
}

static void set_stale(kjit_prepared *prepared)
{
  prepared->is_stale = true;
  prepared->ready.is_ready = false;
}

/* Called after the call was prepared or has run, while the specialization is still held. Otherwise
 * it could be evicted meanwhile and would look as if its launch needed only grid, block and
 * parameters. */
static void set_ready(kjit_prepared *prepared)
{
  const kj_call *call = &prepared->call;
  ready_launch *ready = &prepared->ready;
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
  ready->shape.specialization = NULL; /* the inputs of the shape are not recorded */
}

/* After an argument was replaced: tries the tables of the current code (see kj_follow_table) on
 * the new arguments. */
static __attribute__((noinline)) bool follow_tables(kjit_prepared *prepared, kjit_stream *stream)
{
  ready_launch *ready = &prepared->ready;
  kjit_specialization *known = ready->specialization;
  kjit_launch_config config = prepared->config;
  config.stream = stream;
  bool is_open =
    prepared->is_sealed == atomic_load_explicit(&prepared->kernel->is_sealed, memory_order_acquire);
  if (!is_open || !kj_hold(known)) return false;
  /* after a failed look-up the parameter block has only its initial capacity */
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
  set_stale(prepared);
  prepared->ready.noted = KJ_STREAM_NONE;
  begin_call(prepared);
  kjit_status status =
    kj_prepare_call(call, prepared->arguments, prepared->count, diagnostics, &found);
  if (status != KJIT_OK) {
    /* the other fields may be incomplete and are not read before the next look-up */
    call->device = device;
    return status;
  }
  KJ_ASSERT(kj_is_held_here(found) && found->kernel == prepared->kernel);
  kj_make_launch_table(call, found, prepared->arguments, prepared->count);
  bool is_other = found != prepared->ready.specialization;
  prepared->ready.specialization = found;
  prepared->ready.generation = found->generation;
  prepared->is_sealed = call->is_sealed;
  if (is_other) find_scalars(prepared);
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
  kj_free_object(&prepared->object, prepared);
}

static void release_arguments(kjit_prepared *prepared)
{
  for (size_t i = 0; i < prepared->count; i++) release_kept(&prepared->arguments[i]);
}

static void destroy_object(kj_object *object)
{
  kjit_prepared *prepared = (kjit_prepared *)((char *)object - offsetof(kjit_prepared, object));
  kjit_module *module = prepared->kernel->module;
  release_arguments(prepared);
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
  for (size_t i = 0; i < prepared->count; i++)
    KJ_TRY(keep_argument(prepared, i, &arguments[i], diagnostics));
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
  kjit_prepared *made = kj_get_runtime(context) ? make_prepared(kernel, config, count) : NULL;
  if (!made) return ki_fail_call(context, KJIT_ERROR_MEMORY, "out of memory");
  kj_diagnostics diagnostics = { 0 };
  kjit_status status = fill_prepared(made, arguments, &diagnostics);
  if (status == KJIT_OK) {
    (void)kjit_retain_module(kernel->module);
    kj_add_object(made->call.device, &made->object, destroy_object);
    *prepared = made;
  } else {
    release_arguments(made);
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

/* ---- replacing arguments ---- */

static const kjit_tensor *tensor_of(const kjit_arg *argument)
{
  if (argument->kind == KJIT_ARG_TENSOR) return argument->value.tensor;
  return argument->kind == KJIT_ARG_ARRAY && argument->value.array ? &argument->value.array->tensor
                                                                   : NULL;
}

static bool is_scalar(const kjit_arg *argument)
{
  return argument->kind == KJIT_ARG_VALUE || argument->kind == KJIT_ARG_BY_ADDRESS;
}

static bool has_same_type(const kjit_arg *a, const kjit_arg *b)
{
  const kjit_tensor *x = tensor_of(a), *y = tensor_of(b);
  if (x || y)
    return x && y && x->rank == y->rank && x->code == y->code && x->bits == y->bits &&
           x->lanes == y->lanes;
  return is_scalar(a) ? is_scalar(b) && a->type == b->type : a->kind == b->kind;
}

static bool write_scalar(kjit_prepared *prepared, size_t index, const kjit_arg *argument)
{
  kept_argument *kept = &prepared->kept[index];
  kjit_arg *own = &prepared->arguments[index];
  bool is_made =
    (prepared->ready.is_ready || !prepared->is_stale) &&
    !prepared->call.has_nothing; /* if it has nothing to do, the parameter block may not exist */
  bool is_plain = is_made && kept->scalar_offset >= 0 && argument->kind == KJIT_ARG_VALUE &&
                  own->kind == KJIT_ARG_VALUE;
  kj_bound *bound = &prepared->call.bound[index];
  /* converting the value to the parameter's type may fail */
  if (!is_plain || argument->type != own->type || argument->type != bound->type) return false;
  *own = *argument;
  KJ_ASSERT(kept->scalar_bytes <= sizeof bound->bits[0]);
  KJ_ASSERT((size_t)kept->scalar_offset + kept->scalar_bytes <= prepared->call.parameter_room);
  bound->bits[0] =
    argument->type == KJIT_BOOL ? (argument->value.u & 0xff) != 0 : argument->value.u;
  memcpy(prepared->call.parameters + kept->scalar_offset, bound->bits, kept->scalar_bytes);
  return true;
}

static kjit_status replace(kjit_prepared *prepared, size_t index, const kjit_arg *argument,
                           kj_diagnostics *diagnostics)
{
  if (index >= prepared->count)
    return kj_error(
      diagnostics, KJIT_ERROR_ARGUMENT,
      "the launch of kernel `%s` was prepared with %zu arguments, so there is no argument %zu",
      prepared->kernel->function->decl->name, prepared->count, index);
  if (!has_same_type(&prepared->arguments[index], argument))
    return refuse(prepared, index,
                  "an argument of a prepared launch can be replaced only by one of the same type",
                  diagnostics);
  KJ_TRY(keep_argument(prepared, index, argument, diagnostics));
  set_stale(prepared);
  return KJIT_OK;
}

kjit_status kjit_set_prepared_argument(kjit_prepared *prepared, size_t index,
                                       const kjit_arg *argument)
{
  if (!prepared) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(prepared->kernel->context)) return KJIT_ERROR_FORKED;
  if (!argument)
    return ki_fail_call(prepared->kernel->context, KJIT_ERROR_MISUSE,
                        "kjit_set_prepared_argument: argument is NULL");
  if (index < prepared->count && write_scalar(prepared, index, argument)) return KJIT_OK;
  kj_diagnostics diagnostics = { 0 };
  if (replace(prepared, index, argument, &diagnostics) == KJIT_OK) return KJIT_OK;
  return ki_finish_call(prepared->kernel->context, &diagnostics);
}

/* ---- running ---- */

/* Checks conditions that can change between runs. */
static kjit_status check_run(const kjit_prepared *prepared, const kjit_stream *stream,
                             kj_diagnostics *diagnostics)
{
  KJ_TRY(kj_check_device(prepared->call.device, diagnostics));
  return kj_check_stream(prepared->call.device, stream, false, diagnostics);
}

/* Notes the use of the arrays once for each stream instead of at each run. */
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
  /* other arrays may have moved the launch to another device */
  kjit_status status = check_run(prepared, stream, diagnostics);
  prepared->call.stream = stream;
  /* before the launch, because a failing launch may still have queued the kernel */
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

/* Called after the driver has refused the launch. */
static __attribute__((noinline, cold)) kjit_status retry(kjit_prepared *prepared,
                                                         kjit_stream *stream, int result)
{
  kj_diagnostics diagnostics = { 0 };
  const ready_launch *ready = &prepared->ready;
  kjit_status status = kj_retry_plainly(ready->specialization, &ready->shape, stream,
                                        prepared->call.parameters, result, &diagnostics);
  return kj_end_launch(prepared->kernel->context, status, &diagnostics);
}

/* Runs on the slow path. All launches on the CPU take this path and have finished when the call
 * returns. */
static kjit_status run_in_call(kjit_prepared *prepared, kjit_stream *stream, uint32_t own)
{
  kjit_context *context = prepared->kernel->context;
  kj_count_up(&context->launches[own].begun, own);
  kjit_status status = run_by_rules(prepared, stream);
  kj_count_up(&context->launches[own].ended, own); /* after this, another thread may destroy the
                                                    * context */
  return status;
}

kjit_status kjit_run_prepared(kjit_prepared *prepared, kjit_stream *stream)
{
  if (!prepared) return KJIT_ERROR_MISUSE;
  ready_launch *ready = &prepared->ready;
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

/* Only one thread at a time can run a prepared launch. If another thread is running it, or if its
 * kernel calls application code that launches the graph again, this function makes an ordinary
 * launch instead, so that it does not wait for the application. The stream may be destroyed before
 * the graph is launched; a device on which kjit repeats operations does not need it. */
static kjit_status run_launch(kj_operation *operation, kjit_stream *stream)
{
  (void)stream;
  launch_operation *launch = (launch_operation *)operation;
  const kjit_prepared *prepared = launch->prepared;
  if (atomic_exchange(&launch->is_running, true))
    return kjit_launch(prepared->kernel, &prepared->config, prepared->arguments, prepared->count);
  kjit_status status = kjit_run_prepared(launch->prepared, NULL);
  KJ_ASSERT(atomic_load(&launch->is_running)); /* no other run has cleared the flag */
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
