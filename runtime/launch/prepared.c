/* Prepared launches: the arguments are kept, with the key's specialization, the grid and the
 * parameter block made from them. Replacing a run-time scalar that no extent depends on writes the
 * block; any other argument has the next run look at all facts again, which leads to the same
 * specialization or to another one. */
#include <stdlib.h>
#include <string.h>

#include "cuda/cuda.h"
#include "launch/launch.h"
#include "launch/learned.h"
#include "launch/shape.h"
#include "launch/start.h"
#include "support/assert.h"
#include "support/host_process.h"
#include "stream/stream.h"

/* What an argument points to, kept: a host's tensors and values live for a call only. */
typedef struct kept_argument {
  kjit_tensor tensor;
  int64_t extents[2 * KJ_MAX_RANK];
  uint64_t bits[2];
  int32_t scalar_offset; /* in the parameter block; -1: replacing it needs more than that */
  uint8_t scalar_bytes;
  void *value; /* of a value that bits do not hold, or NULL */
} kept_argument;

/* What a run on a GPU looks at where nothing but the driver's plain launch is left to do; code and
 * function are the specialization's, which may be loaded anew. */
typedef struct ready_launch {
  _Alignas(64) bool is_ready;
  uint32_t forks, shared_bytes;
  kj_stream_id noted;  /* the stream that the arrays know to be used on; NONE: none */
  uint32_t generation; /* of the device when the arguments were looked at */
  kjit_specialization *specialization;
  ki_launch_counter *launches;
  uint32_t grid[3], block[3];
} ready_launch;

struct kjit_prepared {
  ready_launch ready;
  kj_object object;
  kjit_kernel *kernel;
  kjit_launch_config config;
  kjit_arg *arguments; /* they point to kept */
  kept_argument *kept;
  size_t count;
  char *memory; /* of the call */
  kj_call call;
  kjit_specialization *specialization;
  bool is_stale;  /* an argument was replaced: the call is not what the arguments say */
  bool is_sealed; /* the kernel was when the specialization was found by the general rules */
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
    /* it may end before this one does */
    if (argument->value.array->object.device->context != prepared->kernel->context)
      return refuse(prepared, index,
                    "expected an array of the kernel's context, got one of another context",
                    diagnostics);
    (void)kjit_retain_array(argument->value.array);
    break;
  default: break;
  }
  *own = *argument;
  if (argument->kind == KJIT_ARG_TENSOR) own->value.tensor = &kept->tensor;
  if (argument->kind == KJIT_ARG_BY_ADDRESS)
    own->value.address = kept->value ? kept->value : kept->bits;
  release_kept(&before);
  return KJIT_OK;
}

/* ---- which scalars can be written in place ---- */

static bool shapes_launch(const kjit_kernel *kernel, uint32_t index)
{
  bool is_used = kernel->parameters[index].is_shaping;
  /* a default may be made of it */
  for (uint32_t i = 0; i < kernel->parameter_count; i++)
    is_used = is_used || kernel->parameters[i].decl->value;
  return is_used;
}

static void find_scalars(kjit_prepared *prepared)
{
  const kj_code *code = &prepared->specialization->code;
  for (size_t i = 0; i < prepared->count; i++) prepared->kept[i].scalar_offset = -1;
  for (uint32_t i = 0; i < code->parameter_count; i++) {
    const kj_parameter *parameter = &code->parameters[i];
    if (parameter->kind != KJ_PARAMETER_SCALAR || parameter->size_bytes > 8 || parameter->part ||
        parameter->argument >= prepared->count)
      continue;
    if (prepared->call.bound[parameter->argument].kind != KJ_ARGUMENT_VALUE ||
        shapes_launch(prepared->kernel, parameter->argument))
      continue;
    prepared->kept[parameter->argument].scalar_offset = (int32_t)parameter->offset;
    prepared->kept[parameter->argument].scalar_bytes = parameter->size_bytes;
  }
}

/* ---- looking everything up ---- */

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

/* After the call was made, or has run. The specialization is still held: code that nobody holds may
 * be unloaded meanwhile, and looks then as if it needed nothing beside its launch. */
static void set_ready(kjit_prepared *prepared)
{
  const kj_call *call = &prepared->call;
  const kjit_specialization *specialization = prepared->specialization;
  KJ_ASSERT(kj_is_held_here(specialization));
  ready_launch *ready = &prepared->ready;
  kj_device_launch launch = kj_describe_launch(call, specialization, NULL);
  ready->is_ready = !prepared->is_stale && call->device->operations->is_queued &&
                    !call->has_host_arrays && !call->has_nothing && !call->is_miss &&
                    !specialization->code.tensor_map_count && !launch.has_attributes;
  ready->forks = prepared->kernel->context->forks;
  ready->shared_bytes = launch.dynamic_shared_bytes;
  ready->specialization = prepared->specialization;
  ready->launches = prepared->kernel->context->launches;
  memcpy(ready->grid, call->grid, sizeof ready->grid);
  memcpy(ready->block, call->block, sizeof ready->block);
}

/* found is held. What runs for now under fewer facts than it has is looked up again by every run,
 * until what fits better is there. */
static kjit_status fill_call(kjit_prepared *prepared, kjit_specialization *found,
                             kj_diagnostics *diagnostics)
{
  kjit_specialization *known = prepared->specialization;
  KJ_TRY(kj_fit_shape(&prepared->call, found, diagnostics));
  KJ_TRY(kj_make_room(&prepared->call, &found->code, diagnostics));
  prepared->specialization = found;
  kj_marshal(&prepared->call, found);
  if (found != known) find_scalars(prepared);
  prepared->is_stale = prepared->call.is_makeshift;
  set_ready(prepared);
  return KJIT_OK;
}

static kjit_status find_code(kjit_prepared *prepared, kj_diagnostics *diagnostics)
{
  kj_call *call = &prepared->call;
  kjit_specialization *known = prepared->specialization, *found = known;
  begin_call(prepared);
  bool is_open = prepared->is_sealed ==
                 atomic_load_explicit(&prepared->kernel->is_sealed, memory_order_acquire),
       is_held = known && is_open && kj_hold(known);
  if (!is_held || !kj_follow_learned(call, known, prepared->arguments, prepared->count)) {
    if (is_held) kj_release(known, false);
    begin_call(prepared);
    KJ_TRY(kj_prepare_call(call, prepared->arguments, prepared->count, diagnostics, &found));
    prepared->is_sealed = call->is_sealed;
    kj_learn(call, found, prepared->arguments, prepared->count);
  }
  kjit_status status = fill_call(prepared, found, diagnostics);
  kj_release(found, false);
  return status;
}

static kjit_status look_up(kjit_prepared *prepared, kj_diagnostics *diagnostics)
{
  kjit_device *device = prepared->call.device;
  set_stale(prepared);
  prepared->ready.noted = KJ_STREAM_NONE;
  kjit_status status = find_code(prepared, diagnostics);
  if (status == KJIT_OK) prepared->ready.generation = prepared->specialization->generation;
  /* the others may be half made: they are not looked at before the next look-up */
  if (status != KJIT_OK) prepared->call.device = device;
  return status;
}

/* ---- creation and end ---- */

static void free_prepared(kjit_prepared *prepared)
{
  for (size_t i = 0; i < prepared->count && prepared->kept; i++) free(prepared->kept[i].value);
  free(prepared->arguments);
  free(prepared->kept);
  free(prepared->memory);
  free(prepared->call.own_parameters);
  free(prepared);
}

/* The context's end: its modules and arrays go by themselves. */
static void destroy_object(kj_object *object)
{
  free_prepared((kjit_prepared *)((char *)object - offsetof(kjit_prepared, object)));
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
  if (config) made->config = *config;
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
  return look_up(prepared, diagnostics);
}

static void release_arguments(kjit_prepared *prepared)
{
  for (size_t i = 0; i < prepared->count; i++) release_kept(&prepared->arguments[i]);
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
  if (config && config->flags & ~(uint32_t)KJ_LAUNCH_FLAGS)
    return ki_fail_call(context, KJIT_ERROR_MISUSE, "kjit_prepare_launch: unknown flags %#x",
                        config->flags & ~(uint32_t)KJ_LAUNCH_FLAGS);
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
  return status == KJIT_NOT_READY ? status : ki_finish_call(context, &diagnostics);
}

void kjit_destroy_prepared(kjit_prepared *prepared)
{
  if (!prepared || ki_is_forked(prepared->kernel->context)) return;
  kjit_module *module = prepared->kernel->module;
  kj_remove_object(&prepared->object);
  release_arguments(prepared);
  free_prepared(prepared);
  kjit_release_module(module);
}

/* ---- replacing ---- */

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
  bool is_plain = !prepared->is_stale && kept->scalar_offset >= 0 &&
                  argument->kind == KJIT_ARG_VALUE && own->kind == KJIT_ARG_VALUE;
  kj_bound *bound = &prepared->call.bound[index];
  /* a conversion may refuse the value */
  if (!is_plain || argument->type != own->type || argument->type != bound->type) return false;
  *own = *argument;
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
      "the launch of kernel `%s` was prepared with %zu arguments: there is no argument %zu",
      prepared->kernel->function->decl->name, prepared->count, index);
  if (!has_same_type(&prepared->arguments[index], argument))
    return refuse(prepared, index,
                  "an argument of a prepared launch is replaced by one of the same type only",
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

/* What may have changed since the last run. */
static kjit_status check_run(kjit_prepared *prepared, kjit_stream *stream,
                             kj_diagnostics *diagnostics)
{
  kjit_device *device = prepared->call.device;
  KJ_TRY(kj_check_device(device, diagnostics));
  if (stream && stream->object.device != device) {
    char here[24], there[24];
    if (stream->object.device->context != device->context)
      return kj_error(diagnostics, KJIT_ERROR_ARGUMENT, "the stream belongs to another context");
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT,
                    "the launch was prepared for %s, its stream is on %s",
                    kj_device_text(device, here), kj_device_text(stream->object.device, there));
  }
  if (stream) KJ_TRY(kj_check_object(&stream->object, "stream", diagnostics));
  return KJIT_OK;
}

/* The arrays are told once for each stream, not at each run. */
static inline void note_uses(kjit_prepared *prepared, kjit_stream *stream)
{
  kj_stream_id id = kj_id_of(stream, prepared->call.device);
  if (prepared->ready.noted == id) return;
  for (size_t i = 0; i < prepared->count; i++)
    if (prepared->arguments[i].kind == KJIT_ARG_ARRAY)
      kj_note_use(prepared->arguments[i].value.array, stream, prepared->call.device);
  prepared->ready.noted = id;
}

static bool is_captured(const kjit_stream *stream)
{
  return stream && atomic_load_explicit(&stream->capture, memory_order_relaxed);
}

/* The specialization is held. */
static kjit_status keep_captured(kjit_prepared *prepared, kjit_stream *stream,
                                 kj_diagnostics *diagnostics)
{
  KJ_TRY(kj_keep_code(stream, prepared->specialization, diagnostics));
  return kj_keep_arrays(stream, prepared->arguments, prepared->count, diagnostics);
}

static kjit_status run_slowly(kjit_prepared *prepared, kjit_stream *stream,
                              kj_diagnostics *diagnostics)
{
  uint32_t generation =
    atomic_load_explicit(&prepared->call.device->generation, memory_order_relaxed);
  KJ_TRY(check_run(prepared, stream, diagnostics));
  bool is_current = !prepared->is_stale && prepared->ready.generation == generation &&
                    kj_hold(prepared->specialization);
  while (!is_current) {
    KJ_TRY(look_up(prepared, diagnostics));
    is_current = kj_hold(prepared->specialization); /* else it was unloaded since */
  }
  /* other arrays may have moved the launch */
  kjit_status status = check_run(prepared, stream, diagnostics);
  prepared->call.stream = stream;
  if (status == KJIT_OK)
    status = kj_run_call(&prepared->call, prepared->specialization, diagnostics);
  if (status == KJIT_OK && prepared->call.device->operations->is_queued)
    note_uses(prepared, stream);
  if (status == KJIT_OK && is_captured(stream))
    status = keep_captured(prepared, stream, diagnostics);
  prepared->call.is_miss = false;
  if (status == KJIT_OK) set_ready(prepared);
  kj_release(prepared->specialization, status == KJIT_OK);
  return status;
}

kjit_specialization *kjit_get_prepared_specialization(const kjit_prepared *prepared)
{
  return prepared ? prepared->specialization : NULL;
}

static __attribute__((noinline)) kjit_status run_by_rules(kjit_prepared *prepared,
                                                          kjit_stream *stream)
{
  kj_diagnostics diagnostics = { 0 };
  if (ki_is_forked(prepared->kernel->context)) return KJIT_ERROR_FORKED;
  if (kj_is_recorded(stream))
    return kj_capture_launch(stream, prepared->kernel, &prepared->config, prepared->arguments,
                             prepared->count);
  kjit_status status = run_slowly(prepared, stream, &diagnostics);
  return diagnostics.count ? ki_finish_call(prepared->kernel->context, &diagnostics) : status;
}

/* The driver has refused the launch. */
static __attribute__((noinline, cold)) kjit_status retry(kjit_prepared *prepared,
                                                         kjit_stream *stream, int result)
{
  kj_diagnostics diagnostics = { 0 };
  const kjit_specialization *specialization = prepared->specialization;
  kj_device_launch launch =
    kj_describe_launch(&prepared->call, specialization, stream ? stream->native : NULL);
  kjit_status status =
    kj_retry_launch(prepared->call.device, &specialization->cuda, &launch, result, &diagnostics);
  return diagnostics.count ? ki_finish_call(prepared->kernel->context, &diagnostics) : status;
}

static inline bool is_current(const ready_launch *ready, const kjit_device *device,
                              const kjit_stream *stream)
{
  uint32_t generation = atomic_load_explicit(&device->generation, memory_order_relaxed);
  return ready->forks == atomic_load_explicit(&kj_forks, memory_order_relaxed) &&
         ready->generation == generation &&
         !atomic_load_explicit(&device->lost, memory_order_acquire) &&
         (!stream || (stream->object.device == device && stream->object.generation == generation &&
                      !is_captured(stream)));
}

kjit_status kjit_run_prepared(kjit_prepared *prepared, kjit_stream *stream)
{
  if (!prepared) return KJIT_ERROR_MISUSE;
  const ready_launch *ready = &prepared->ready;
  kjit_device *device = prepared->call.device;
  uint32_t own = kj_slot();
  if (!stream) stream = prepared->config.stream;
  if (!ready->is_ready || !is_current(ready, device, stream) ||
      !kj_hold_of(ready->specialization, own))
    return run_by_rules(prepared, stream);
  const kj_device_code *function = &ready->specialization->cuda;
  int result =
    kj_launch_function(device, function->function, function->mark, ready->grid, ready->block,
                       ready->shared_bytes, stream ? stream->native : NULL,
                       prepared->call.parameters, ready->specialization->code.parameter_bytes);
  kjit_status status = __builtin_expect(result, 0) ? retry(prepared, stream, result) : KJIT_OK;
  kj_release_of(ready->specialization, own, status == KJIT_OK);
  note_uses(prepared, stream);
  if (status == KJIT_OK) kj_count_up(&ready->launches[own].count, own);
  return status;
}
