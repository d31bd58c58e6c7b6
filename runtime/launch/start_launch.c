/* Starts a launch whose code and shape are decided: writes the parameter block, encodes tensor
 * maps, passes the interrupt word and the address for printed lines, and calls the device. */
#include <stdlib.h>
#include <string.h>

#include "base/interrupt.h"
#include "code/kernel.h"
#include "launch/steps.h"
#include "report/report.h"
#include "stream/stream.h"

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
  /* parameters of other sizes are scalars */
  else memcpy(place, bound->bits, parameter->size_bytes);
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
  /* assertions compare whole parameter blocks, including padding */
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

/* Encodes the tensor maps in aligned memory, because the parameter block does not guarantee the
 * alignment that an encoded map needs. */
static kjit_status pass_maps(const kj_call *call, const kj_code *code, kj_diagnostics *diagnostics)
{
  _Alignas(KJ_MAP_ALIGNMENT) char map[KJ_MAP_BYTES];
  if (code->parameter_count > MOST_POINTERS)
    return kj_error(diagnostics, KJIT_ERROR_LAUNCH,
                    "launching `%s`: the code of a kernel with tensor copies can have at most %d "
                    "parameters, but this code has %u",
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

/* Fills in each parameter's address, from which the driver copies the parameter to its position.
 * kjit does not compute the positions, because the position of a parameter with 64-byte alignment
 * depends on the architecture: on sm_90 the parameter block itself starts 16 bytes after a multiple
 * of 64. The compiler's hidden parameters come last. */
static void point_at_parameters(const kj_code *code, char *block, void **pointers)
{
  uint32_t count = code->parameter_count;
  KJ_ASSERT(count <= MOST_POINTERS); /* the array has space for HIDDEN further parameters */
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

/* All launches in a graph use the same interrupt word, because the parameters of its kernels stay
 * the same. */
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

/* Prepares the interruption of a launch. Does nothing if the code does not poll. */
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
  /* another thread can destroy the interrupter during a launch that is not queued */
  kjit_interrupter *interrupter = kj_retain_interrupter(call->config->interrupter);
  kjit_status status = start_marshalled(call, specialization, diagnostics);
  if (status != KJIT_OK || !call->device->operations->is_queued)
    kj_end_interruptible(call->device, &begun);
  kj_release_interrupter(interrupter);
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

/* Launches on a device that runs the kernel before the launch returns. The failure record of this
 * launch is on the stack. */
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
