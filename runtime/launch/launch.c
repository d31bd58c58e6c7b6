/* kjit_launch: the stages of a call in their order. On a cache hit none of them allocates, takes a
 * lock, formats text or calls the driver except for the launch. */
#include <stdlib.h>
#include <string.h>

#include "base/interrupt.h"
#include "code/kernel.h"
#include "launch/fast_path.h"
#include "launch/steps.h"
#include "report/report.h"
#include "stream/stream.h"

/* Memory of a call on the stack, enough for most kernels. */
enum { CALL_BYTES = 8192 };

/* ---- parameters ---- */

static inline uint64_t read_parameter(const kj_bound *bound, const kj_parameter *parameter)
{
  if (parameter->kind == KJ_PARAMETER_POINTER) return bound->target;
  if (parameter->kind == KJ_PARAMETER_EXTENT) return (uint64_t)bound->shape[parameter->dimension];
  if (parameter->kind == KJ_PARAMETER_SCALAR) return bound->bits[0];
  return bound->rank == 1 && !bound->strides ? 1
                                             : (uint64_t)kj_stride_of(bound, parameter->dimension);
}

static void marshal_shared(const kj_call *call, const kj_parameter *parameter, char *block)
{
  const kj_shared_size *size = &call->shared[parameter->argument];
  KJ_ASSERT(parameter->argument <= KJ_MOST_SHARED_ARRAYS && parameter->size_bytes == 4);
  bool is_offset = parameter->kind == KJ_PARAMETER_SHARED_OFFSET;
  memcpy(block + parameter->offset,
         is_offset ? &size->offset : &size->extents[parameter->dimension], sizeof(uint32_t));
}

void kj_marshal_parameter(const kj_call *call, const kj_parameter *parameter, char *block)
{
  if (parameter->kind == KJ_PARAMETER_TENSOR_MAP) return; /* see pass_maps */
  if (parameter->kind >= KJ_PARAMETER_SHARED_OFFSET) {
    marshal_shared(call, parameter, block);
    return;
  }
  const kj_bound *bound = &call->bound[parameter->argument];
  char *place = block + parameter->offset;
  KJ_ASSERT(parameter->argument < call->kernel->parameter_count);
  KJ_ASSERT(bound->kind == KJ_ARGUMENT_ARRAY || parameter->kind == KJ_PARAMETER_SCALAR);
  KJ_ASSERT(parameter->kind == KJ_PARAMETER_SCALAR || parameter->kind == KJ_PARAMETER_POINTER ||
            parameter->dimension < bound->rank);
  if (parameter->part) {
    memcpy(place, (const char *)(uintptr_t)bound->bits[0] + parameter->part - 1,
           parameter->size_bytes);
    return;
  }
  uint64_t word = read_parameter(bound, parameter);
  if (parameter->size_bytes == 8) memcpy(place, &word, 8);
  else if (parameter->size_bytes == 4) memcpy(place, &word, 4);
  else memcpy(place, bound->bits, parameter->size_bytes); /* only scalars */
}

void kj_pass_failure_record(const kj_code *code, uint64_t address, char *block)
{
  KJ_ASSERT(!code->can_fail || code->failure_offset + sizeof address <= code->parameter_bytes);
  if (code->can_fail) memcpy(block + code->failure_offset, &address, sizeof address);
}

kjit_status kj_marshal(kj_call *call, const kjit_specialization *specialization,
                       kj_diagnostics *diagnostics)
{
  const kj_code *code = &specialization->code;
  if (code->parameter_bytes > call->parameter_room) {
    char *larger = realloc(call->own_parameters, code->parameter_bytes);
    if (!larger) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
    call->parameters = call->own_parameters = larger;
    call->parameter_room = code->parameter_bytes;
  }
  /* assertions compare whole blocks, including the bytes between parameters */
  if (KJ_HAS_ASSERTIONS) memset(call->parameters, 0, code->parameter_bytes);
  KJ_ASSERT(kj_is_held_here(specialization) && call->parameter_room >= code->parameter_bytes);
  for (uint32_t i = 0; i < code->parameter_count; i++) {
    const kj_parameter *parameter = &code->parameters[i];
    KJ_ASSERT(parameter->offset + parameter->size_bytes <= code->parameter_bytes);
    kj_marshal_parameter(call, parameter, call->parameters);
  }
  kj_pass_failure_record(code, specialization->failure_address, call->parameters);
  return KJIT_OK;
}

/* ---- tensor maps: descriptors of array arguments for tensor copies. The device encodes them, and
 * they are passed in the parameter block ---- */

static kjit_status refuse_map(const kj_call *call, const kj_tensor_map *map, const char *why,
                              kj_diagnostics *diagnostics)
{
  const ki_function *kernel = call->kernel->function;
  return kj_error(diagnostics, KJIT_ERROR_LAUNCH,
                  "launching `%s`: tensor copies cannot access the argument `%s`: %s",
                  kernel->decl->name, kernel->params.items[map->argument]->name, why);
}

static kjit_status encode(const kj_call *call, const kj_tensor_map *map, void *place,
                          kj_diagnostics *diagnostics)
{
  const kj_bound *bound = &call->bound[map->argument];
  const char *why = NULL;
  kj_map_array array = { .address = bound->target, .element = bound->type, .rank = map->rank };
  KJ_ASSERT(map->rank && map->rank <= KJ_MAP_RANK && map->rank == bound->rank);
  KJ_ASSERT(bound->kind == KJ_ARGUMENT_ARRAY);
  array.element_bytes = ki_type(call->kernel->module->types, bound->type)->size_bytes;
  for (uint32_t d = 0; d < map->rank; d++) {
    array.extents[d] = (uint64_t)bound->shape[d];
    array.stride_bytes[d] = (uint64_t)kj_stride_of(bound, (uint8_t)d) * array.element_bytes;
  }
  kjit_status status =
    call->device->operations->encode_map(call->device, map, &array, diagnostics, place, &why);
  return why ? refuse_map(call, map, why, diagnostics) : status;
}

enum { MOST_POINTERS = 512, HIDDEN = 3 };

/* Encodes the descriptors. An encoded map needs an alignment that the parameter block does not
 * guarantee. */
static kjit_status pass_maps(const kj_call *call, const kj_code *code, kj_diagnostics *diagnostics)
{
  _Alignas(KJ_MAP_ALIGNMENT) char map[KJ_MAP_BYTES];
  if (code->parameter_count > MOST_POINTERS)
    return kj_error(diagnostics, KJIT_ERROR_LAUNCH,
                    "launching `%s`: a kernel with tensor copies can have at most %d parameters in "
                    "its code, this one has %u",
                    call->kernel->function->decl->name, MOST_POINTERS, code->parameter_count);
  for (uint32_t i = 0; i < code->parameter_count; i++) {
    const kj_parameter *parameter = &code->parameters[i];
    if (parameter->kind != KJ_PARAMETER_TENSOR_MAP) continue;
    KJ_ASSERT(parameter->dimension < code->tensor_map_count);
    KJ_ASSERT(parameter->offset + sizeof map <= code->parameter_bytes);
    KJ_TRY(encode(call, &code->tensor_maps[parameter->dimension], map, diagnostics));
    memcpy(call->parameters + parameter->offset, map, sizeof map);
  }
  return KJIT_OK;
}

/* Fills in the address of each parameter. The position of a parameter with 64-byte alignment
 * depends on the architecture: on sm_90 the block itself starts 16 bytes after a multiple of 64. So
 * the driver gets the address of each parameter and places them itself. The compiler's hidden
 * parameters come last. */
static void point_at_parameters(const kj_code *code, char *block, void **pointers)
{
  uint32_t count = code->parameter_count;
  KJ_ASSERT(count <= MOST_POINTERS); /* includes space for HIDDEN more */
  for (uint32_t i = 0; i < count; i++) pointers[i] = block + code->parameters[i].offset;
  if (code->can_fail) pointers[count++] = block + code->failure_offset;
  for (uint32_t i = 0; code->is_interruptible && i < 2; i++)
    pointers[count++] = block + code->interrupt_offset + i * sizeof(uint64_t);
}

/* ---- the launch ---- */

kj_device_launch kj_describe_launch(const kj_call *call, const kjit_specialization *specialization,
                                    void *stream)
{
  return (kj_device_launch){ .grid = call->grid,
                             .block = call->block,
                             .dynamic_shared_bytes = (uint32_t)call->dynamic_shared_bytes,
                             .stream = stream,
                             .parameters = call->parameters,
                             .parameter_bytes = specialization->code.parameter_bytes,
                             .has_attributes = kj_has_attributes(call),
                             .cluster = call->cluster,
                             .is_cooperative = call->is_cooperative,
                             .is_programmatic = call->facts & KJ_CALL_FACT_PROGRAMMATIC,
                             .priority = call->config->priority,
                             .has_elements = call->has_elements,
                             .elements = call->elements,
                             .cost = specialization->cost,
                             .cpu_threads = call->config->cpu_threads };
}

/* ---- interruptible code ---- */

/* A graph has an interrupt word for all its launches, because its kernels keep their parameters. */
static void retain_nothing(void *word) { (void)word; }

static void close_graph_word(void *item)
{
  kjit_interrupter *word = item;
  kjit_destroy_interrupter(word);
}

static kjit_status number_graph(void *item, kjit_device *device, kjit_stream *stream,
                                kj_diagnostics *diagnostics)
{
  const kjit_interrupter *word = item;
  kj_interrupt_slot listens;
  KJ_TRY(kj_check_object(&word->object, "graph", diagnostics));
  KJ_TRY(kj_find_stream_slot(device, stream, diagnostics, &listens));
  return kj_number_graph(device, word->slot, listens, kj_native(stream), diagnostics);
}

static const kj_kept_kind graph_word = { retain_nothing, close_graph_word, number_graph };

static kjit_status begin_captured(const kj_call *call, kj_diagnostics *diagnostics,
                                  kj_interruptible_launch *begun)
{
  const kjit_launch_config *config = call->config;
  kjit_interrupter *word = kj_find_kept(call->stream, &graph_word);
  if (kj_has_interrupts(config))
    return kj_error(
      diagnostics, KJIT_ERROR_UNSUPPORTED,
      "a captured launch has no %s of its own; interrupt the stream that the graph is launched on",
      config->time_limit_ns ? "time limit" : "interrupter");
  if (!word) {
    KJ_TRY(kj_create_interrupter(call->device, diagnostics, &word));
    KJ_TRY(kj_keep(call->stream, &graph_word, word, diagnostics));
  }
  return kj_find_graph_word(call->device, word->slot, diagnostics, begun);
}

/* Code that does not poll ends on its own. */
static kjit_status begin_interruptible(const kj_call *call, const kj_code *code,
                                       kj_diagnostics *diagnostics, kj_interruptible_launch *begun)
{
  const kjit_launch_config *config = call->config;
  kj_interrupt_slot listens;
  *begun = (kj_interruptible_launch){ 0 };
  if (kj_has_interrupts(config) && !call->device->interrupts)
    return kj_error(diagnostics, KJIT_ERROR_MISUSE,
                    "launching `%s`: %s needs kjit_config.interruptible",
                    call->kernel->function->decl->name,
                    config->time_limit_ns ? "a time limit" : "an interrupter");
  if (config->interrupter && config->interrupter->object.device != call->device)
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT,
                    "launching `%s`: the interrupter belongs to another device",
                    call->kernel->function->decl->name);
  if (!code->is_interruptible) return KJIT_OK;
  if (kj_is_captured(call->stream)) return begin_captured(call, diagnostics, begun);
  if (config->interrupter) {
    KJ_TRY(kj_check_object(&config->interrupter->object, "interrupter", diagnostics));
    listens = config->interrupter->slot;
  } else {
    KJ_TRY(kj_find_stream_slot(call->device, call->stream, diagnostics, &listens));
  }
  return kj_begin_interruptible(call->device, listens, config->time_limit_ns, diagnostics, begun);
}

static void pass_interrupt(const kj_code *code, const kj_interruptible_launch *begun, char *block)
{
  if (!code->is_interruptible) return;
  KJ_ASSERT(begun->word &&
            code->interrupt_offset + 2 * sizeof begun->word <= code->parameter_bytes);
  memcpy(block + code->interrupt_offset, &begun->word, sizeof begun->word);
  memcpy(block + code->interrupt_offset + sizeof begun->word, &begun->number, sizeof begun->number);
}

static kjit_status start_marshalled(const kj_call *call, const kjit_specialization *specialization,
                                    kj_diagnostics *diagnostics)
{
  const kj_code *code = &specialization->code;
  kjit_device *device = call->device;
  KJ_ASSERT(specialization->device == device && kj_is_held_here(specialization));
  KJ_ASSERT(kj_volume(call->grid) && kj_volume(call->block) && !call->has_nothing);
  KJ_ASSERT(!call->stream || call->stream->object.device == device);
  void *pointers[MOST_POINTERS + HIDDEN];
  kj_device_launch made =
    kj_describe_launch(call, specialization, call->stream ? call->stream->native : NULL);
  if (code->tensor_map_count && device->operations->encode_map) {
    KJ_TRY(pass_maps(call, code, diagnostics));
    point_at_parameters(code, call->parameters, pointers);
    made.pointers = pointers;
  }
  return device->operations->launch(device, &specialization->device_code, code, &made, diagnostics);
}

static kjit_status start_code(const kj_call *call, const kjit_specialization *specialization,
                              kj_diagnostics *diagnostics)
{
  const kj_code *code = &specialization->code;
  kj_interruptible_launch begun;
  KJ_TRY(begin_interruptible(call, code, diagnostics, &begun));
  pass_interrupt(code, &begun, call->parameters);
  kjit_status status = start_marshalled(call, specialization, diagnostics);
  if (status != KJIT_OK || !call->device->operations->is_queued)
    kj_end_interruptible(call->device, &begun);
  return status;
}

/* Launches a kernel that prints, and delivers the lines after it has run. */
static kjit_status launch_printing(const kj_call *call, const kjit_specialization *specialization,
                                   kj_diagnostics *diagnostics)
{
  kj_cpu_prints prints;
  uint64_t address = (uint64_t)(uintptr_t)&prints;
  KJ_ASSERT(specialization->code.print_offset + sizeof address <=
            specialization->code.parameter_bytes);
  kj_begin_cpu_prints(&prints, call->device->runtime, &specialization->code);
  memcpy(call->parameters + specialization->code.print_offset, &address, sizeof address);
  kjit_status status = start_code(call, specialization, diagnostics);
  kj_end_cpu_prints(&prints);
  return status;
}

/* Launches a kernel that has finished when the launch returns. A failure record on the stack is
 * used for this launch. */
static kjit_status launch_and_wait(const kj_call *call, const kjit_specialization *specialization,
                                   kj_diagnostics *diagnostics)
{
  const kj_code *code = &specialization->code;
  kj_failure_record record;
  record.state = KJ_FAILURE_FREE;
  kj_pass_failure_record(code, (uint64_t)(uintptr_t)&record, call->parameters);
  KJ_TRY(code->prints ? launch_printing(call, specialization, diagnostics)
                      : start_code(call, specialization, diagnostics));
  return record.state == KJ_FAILURE_WRITTEN
           ? kj_report_failure(specialization->kernel, &specialization->code, false, &record,
                               diagnostics)
           : KJIT_OK;
}

kjit_status kj_start(const kj_call *call, const kjit_specialization *specialization,
                     kj_diagnostics *diagnostics)
{
  return call->device->operations->is_queued ? start_code(call, specialization, diagnostics)
                                             : launch_and_wait(call, specialization, diagnostics);
}

/* ---- plain launches ---- */

void kj_take_shape(kj_known_shape *shape, const kjit_specialization *specialization,
                   const kj_call *call)
{
  memcpy(shape->grid, call->grid, sizeof shape->grid);
  memcpy(shape->block, call->block, sizeof shape->block);
  shape->shared_bytes = (uint32_t)call->dynamic_shared_bytes;
  shape->parameter_bytes = specialization->code.parameter_bytes;
}

kjit_status kj_retry_plainly(const kjit_specialization *specialization, const kj_known_shape *shape,
                             kjit_stream *stream, char *parameters, int result,
                             kj_diagnostics *diagnostics)
{
  kj_device_launch launch = { .grid = shape->grid,
                              .block = shape->block,
                              .dynamic_shared_bytes = shape->shared_bytes,
                              .stream = stream ? stream->native : NULL,
                              .parameters = parameters,
                              .parameter_bytes = shape->parameter_bytes };
  kjit_device *device = specialization->device;
  return device->operations->retry(device, &specialization->device_code, &launch, result,
                                   diagnostics);
}

/* ---- running a call ---- */

static kjit_status start_here(kj_call *call, kjit_specialization *specialization,
                              kj_diagnostics *diagnostics)
{
  KJ_TRY(kj_marshal(call, specialization, diagnostics));
  return kj_start(call, specialization, diagnostics);
}

static kjit_status start_staged(kj_call *call, kjit_specialization *specialization,
                                kj_diagnostics *diagnostics)
{
  void *stream = call->stream ? call->stream->native : NULL;
  kj_staging *staging = NULL;
  if (kj_is_captured(call->stream))
    return kj_error(
      diagnostics, KJIT_ERROR_MISUSE,
      "host arrays cannot be part of a capture on a GPU; copy them to device arrays first");
  kjit_status status = kj_stage_in(call, stream, diagnostics, &staging);
  if (status == KJIT_OK) status = start_here(call, specialization, diagnostics);
  if (status == KJIT_OK) status = kj_stage_out(call, stream, staging, diagnostics);
  kj_free_staging(call, staging);
  return status;
}

static void count_launch(const kj_call *call)
{
  uint32_t own = kj_slot();
  kj_count_up(&call->kernel->context->launches[own].count, own);
}

kjit_status kj_run_call(kj_call *call, kjit_specialization *specialization,
                        kj_diagnostics *diagnostics)
{
  /* a target device runs nothing, so it needs no copies and has no driver */
  const bool is_staged = call->has_host_arrays && !call->device->is_target;
  KJ_TRY(kj_fit_shape(call, specialization, diagnostics));
  if (!call->has_nothing)
    KJ_TRY(is_staged ? start_staged(call, specialization, diagnostics)
                     : start_here(call, specialization, diagnostics));
  if (call->is_miss)
    atomic_fetch_add_explicit(&call->kernel->context->counters.missed_launches, 1,
                              memory_order_relaxed);
  count_launch(call);
  return KJIT_OK;
}

/* ---- the stages ---- */

/* Compiles now or, if the call must not wait, in the background. */
static kjit_status make_specialization(kj_call *call, uint64_t hash, kj_diagnostics *diagnostics,
                                       kjit_specialization **specialization)
{
  for (;;) {
    KJ_TRY(call->config->flags & KJIT_LAUNCH_NO_WAIT
             ? kj_specialize_later(call, hash, diagnostics, specialization)
             : kj_specialize(call, hash, diagnostics, specialization));
    if (kj_hold(*specialization)) return KJIT_OK; /* otherwise it was evicted again */
  }
}

static uint32_t variant_limit(const kj_call *call)
{
  enum { DEFAULT_LIMIT = 16 };
  uint32_t given = call->kernel->context->config.variant_limit;
  return given ? given : DEFAULT_LIMIT;
}

/* Compiles code for all facts of the call or, without a compiler, fetches code without facts that
 * the application has imported. */
static kjit_status make_or_fetch(kj_call *call, uint64_t hash, kj_diagnostics *diagnostics,
                                 kjit_specialization **specialization)
{
  kj_diagnostics fast = { 0 }, general = { 0 };
  kjit_status status = make_specialization(call, hash, &fast, specialization);
  bool is_missing = status == KJIT_ERROR_NO_COMPILER && !call->is_general;
  if (is_missing) {
    kj_drop_facts(call);
    kj_make_key(call);
    hash = kj_hash_key(call->key, call->key_count);
    status = make_specialization(call, hash, &general, specialization);
  }
  bool is_general = is_missing && status == KJIT_OK;
  kj_copy_diagnostics(is_general ? &general : &fast, diagnostics);
  kj_free_diagnostics(&fast);
  kj_free_diagnostics(&general);
  return is_missing && !is_general ? KJIT_ERROR_NO_COMPILER : status;
}

static kj_plain get_plain_kind(const kj_call *call)
{
  static const kj_plain kinds[] = { [KJIT_PLAIN_DEFAULT] = KJ_PLAIN_NONE,
                                    [KJIT_PLAIN_NEVER] = KJ_PLAIN_NONE,
                                    [KJIT_PLAIN_EQUAL] = KJ_PLAIN_EQUAL,
                                    [KJIT_PLAIN_ALWAYS] = KJ_PLAIN_ANY };
  return kinds[atomic_load_explicit(&call->kernel->context->plain_code, memory_order_relaxed)];
}

/* Returns whether a call has to run the best code. A graph would keep plain code. On a GPU, the
 * shape of some launches depends on the registers of the code: the blocks that are resident
 * together, and the block that kjit chooses for a number of threads, on which results may depend.
 * Plain code is not linked with code of the application. */
static bool needs_best(const kj_call *call)
{
  const kjit_launch_config *given = call->config;
  const kjit_config *config = &call->kernel->context->config;
  if (kj_is_captured(call->stream)) return true;
  if (!call->device->operations->is_queued) return false;
  bool is_equal = get_plain_kind(call) == KJ_PLAIN_EQUAL;
  return (given->flags & KJIT_LAUNCH_COOPERATIVE) || given->cluster[0] || given->cluster[1] ||
         given->cluster[2] || (given->threads && is_equal) || config->compile_in_child ||
         kj_has_outside_code(call->kernel->module);
}

/* Decides which plain code a compilation for this call may give. A sealed kernel and a context
 * without background threads could never replace plain code. */
static kj_plain choose_plain(const kj_call *call)
{
  bool can_use = !call->is_sealed && !call->device->is_target &&
                 call->kernel->context->config.debug == KJIT_DEBUG_NONE && !needs_best(call) &&
                 !kj_is_background_stopped(call->runtime);
  return can_use ? get_plain_kind(call) : KJ_PLAIN_NONE;
}

/* Returns whether the code that was found is plain and the call must not run it. */
static bool is_too_plain(const kj_call *call, const kjit_specialization *found)
{
  return found && kj_is_for_plain(found) &&
         (needs_best(call) || !kj_suits_plain(call, get_plain_kind(call), found));
}

/* Runs code for fewer facts at once while better code is compiled in the background, up to the
 * limit of variants. */
static kjit_status find_specialization(kj_call *call, kj_diagnostics *diagnostics,
                                       kjit_specialization **specialization)
{
  uint32_t variants;
  kj_make_key(call);
  uint64_t hash = kj_hash_key(call->key, call->key_count);
  *specialization = kj_look_up(call->kernel, call->key, call->key_count, hash);
  call->is_miss = !*specialization;
  if (*specialization) return KJIT_OK;
  *specialization = kj_look_up_general(call, &variants);
  if (is_too_plain(call, *specialization)) {
    kj_release(*specialization, false);
    *specialization = NULL;
  }
  call->is_fallback = *specialization != NULL;
  bool is_full = variants >= variant_limit(call);
  if (*specialization && !is_full) kj_upgrade_later(call, hash);
  if (*specialization) return KJIT_OK;
  if (is_full) {
    kj_drop_facts(call);
    kj_make_key(call);
    hash = kj_hash_key(call->key, call->key_count);
  }
  call->plain = choose_plain(call);
  KJ_TRY(make_or_fetch(call, hash, diagnostics, specialization));
  call->is_fallback = kj_is_for_plain(*specialization);
  return KJIT_OK;
}

kjit_status kj_shape_call(kj_call *call, const kjit_arg *arguments, size_t count,
                          kj_diagnostics *diagnostics)
{
  KJ_TRY(kj_bind_arguments(call, arguments, count, diagnostics));
  KJ_TRY(kj_choose_device(call, arguments, diagnostics));
  KJ_TRY(kj_check_device(call->device, diagnostics));
  call->is_sealed = atomic_load_explicit(&call->kernel->is_sealed, memory_order_acquire);
  if (call->is_sealed) KJ_TRY(kj_match_signature(call, arguments, diagnostics));
  return kj_choose_shape(call, diagnostics);
}

kjit_status kj_prepare_call(kj_call *call, const kjit_arg *arguments, size_t count,
                            kj_diagnostics *diagnostics, kjit_specialization **specialization)
{
  KJ_TRY(kj_shape_call(call, arguments, count, diagnostics));
  KJ_TRY(find_specialization(call, diagnostics, specialization));
  kjit_status status = kj_check_limits(call, &(*specialization)->code, diagnostics);
  if (status != KJIT_OK) kj_release(*specialization, false);
  return status;
}

/* Remembers the specialization for the next launch of this thread. */
static void note_recent(const kj_call *call, kjit_specialization *specialization)
{
  kjit_kernel *kernel = call->kernel;
  _Atomic(kjit_specialization *) *recent = &kernel->recent[kj_slot()].specialization;
  KJ_ASSERT(specialization->kernel == kernel);
  if (!atomic_load_explicit(&specialization->table, memory_order_acquire) ||
      atomic_load_explicit(recent, memory_order_relaxed) == specialization)
    return;
  atomic_store(recent, specialization);
  /* the kernel was sealed meanwhile */
  if (atomic_load(&kernel->is_sealed) != call->is_sealed) atomic_store(recent, NULL);
}

static kjit_status launch(kj_call *call, const kjit_arg *arguments, size_t count,
                          kj_diagnostics *diagnostics)
{
  kjit_specialization *specialization;
  KJ_TRY(kj_prepare_call(call, arguments, count, diagnostics, &specialization));
  KJ_ASSERT(kj_is_held_here(specialization) && specialization->kernel == call->kernel);
  KJ_ASSERT(specialization->device == call->device);
  kj_make_launch_table(call, specialization, arguments, count);
  note_recent(call, specialization);
  kjit_status status = kj_run_call(call, specialization, diagnostics);
  if (status == KJIT_OK && kj_is_captured(call->stream) && !call->has_nothing) {
    status = kj_keep_code(call->stream, specialization, diagnostics);
    if (status == KJIT_OK) status = kj_keep_arrays(call->stream, arguments, count, diagnostics);
  }
  kj_release(specialization, status == KJIT_OK);
  return status;
}

/* ---- entry ---- */

static kjit_status launch_in(char *memory, kjit_kernel *kernel, const kjit_launch_config *config,
                             const kjit_arg *arguments, size_t count, kj_diagnostics *diagnostics)
{
  kj_call call = { .kernel = kernel, .config = config, .runtime = kj_get_runtime(kernel->context) };
  if (!call.runtime) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  (void)kj_divide_memory(&call, memory);
  kjit_status status = launch(&call, arguments, count, diagnostics);
  free(call.own_parameters);
  return status;
}

static kjit_status launch_within(kjit_kernel *kernel, const kjit_launch_config *config,
                                 const kjit_arg *arguments, size_t count,
                                 kj_diagnostics *diagnostics);

/* Launches with flattened arguments, which contain no tuples. */
static kjit_status launch_flat(kjit_kernel *kernel, const kjit_launch_config *config,
                               const kjit_arg *arguments, size_t count, kj_diagnostics *diagnostics)
{
  kj_flat_arguments flat;
  KJ_TRY(kj_flatten_arguments(kernel, arguments, count, diagnostics, &flat));
  kjit_status status = launch_within(kernel, config, flat.items, flat.count, diagnostics);
  free(flat.items);
  return status;
}

static __attribute__((noinline)) kjit_status
launch_by_rules(kjit_kernel *kernel, const kjit_launch_config *config, const kjit_arg *arguments,
                size_t count, kj_diagnostics *diagnostics)
{
  kjit_launch_config own;
  _Alignas(KJ_CALL_ALIGNMENT) char small[CALL_BYTES];
  if (ki_is_forked(kernel->context)) return KJIT_ERROR_FORKED;
  if (!config || config->size_bytes != sizeof *config) {
    kjit_status read =
      ki_read_sized(kernel->context, "kjit_launch", KI_LAUNCH_CONFIG, config, &own);
    if (read != KJIT_OK) return read;
    config = &own;
  }
  if (count && !arguments)
    return kj_error(diagnostics, KJIT_ERROR_MISUSE, "kjit_launch: arguments is NULL");
  if (kj_has_tuples(arguments, count))
    return launch_flat(kernel, config, arguments, count, diagnostics);
  if (kj_is_recorded(config->stream))
    return kj_record_launch(config->stream, kernel, config, arguments, count);
  /* the fast path accepts no unknown flags */
  uint32_t unknown = config->flags & ~(uint32_t)KJ_LAUNCH_FLAGS;
  if (unknown)
    return kj_error(diagnostics, KJIT_ERROR_MISUSE, "kjit_launch: unknown flags %#x", unknown);
  if (kernel->call_bytes <= sizeof small)
    return launch_in(small, kernel, config, arguments, count, diagnostics);
  char *large = malloc(kernel->call_bytes);
  if (!large) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  kjit_status status = launch_in(large, kernel, config, arguments, count, diagnostics);
  free(large);
  return status;
}

static inline kjit_status launch_within(kjit_kernel *kernel, const kjit_launch_config *config,
                                        const kjit_arg *arguments, size_t count,
                                        kj_diagnostics *diagnostics)
{
  int status = kj_launch_by_table(kernel, config, arguments, count, diagnostics);
  return status != KJ_OTHER_WAY ? (kjit_status)status
                                : launch_by_rules(kernel, config, arguments, count, diagnostics);
}

kjit_status kj_open_launches(kj_runtime *runtime, kj_diagnostics *diagnostics)
{
  (void)diagnostics;
  runtime->launch = launch_within;
  return KJIT_OK;
}

kjit_status kjit_launch(kjit_kernel *kernel, const kjit_launch_config *config,
                        const kjit_arg *arguments, size_t count)
{
  kj_diagnostics diagnostics = { 0 };
  if (!kernel) return KJIT_ERROR_MISUSE;
  kjit_context *context = kernel->context;
  uint32_t own = kj_slot();
  KJ_ASSERT(own < KJ_LAUNCH_COUNTERS);
  kj_count_up(&context->launches[own].begun, own);
  kjit_status status = launch_within(kernel, config, arguments, count, &diagnostics);
  status = kj_end_launch(context, status, &diagnostics);
  kj_count_up(&context->launches[own].ended, own); /* after this, another thread may destroy the
                                                    * context */
  return status;
}
