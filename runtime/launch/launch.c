/* kjit_launch. The stages of a call in their order; on a hit none of them allocates, locks, formats
 * or asks the driver anything. */
#include <stdlib.h>
#include <string.h>

#include "cpu/run.h"
#include "launch/direct.h"
#include "launch/plan.h"
#include "stream/stream.h"
#include "report/print.h"
#include "native/support_routines.h"

/* Memory of a call that most kernels need no more than. */
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
  bool is_offset = parameter->kind == KJ_PARAMETER_SHARED_OFFSET;
  memcpy(block + parameter->offset,
         is_offset ? &size->offset : &size->extents[parameter->dimension], sizeof(uint32_t));
}

void kj_marshal_parameter(const kj_call *call, const kj_parameter *parameter, char *block)
{
  if (parameter->kind == KJ_PARAMETER_TENSOR_MAP) return; /* kj_launch_with_maps */
  if (parameter->kind >= KJ_PARAMETER_SHARED_OFFSET) {
    marshal_shared(call, parameter, block);
    return;
  }
  const kj_bound *bound = &call->bound[parameter->argument];
  char *place = block + parameter->offset;
  if (parameter->part) {
    memcpy(place, (const char *)(uintptr_t)bound->bits[0] + parameter->part - 1,
           parameter->size_bytes);
    return;
  }
  uint64_t word = read_parameter(bound, parameter);
  if (parameter->size_bytes == 8) memcpy(place, &word, 8);
  else if (parameter->size_bytes == 4) memcpy(place, &word, 4);
  else memcpy(place, bound->bits, parameter->size_bytes); /* scalars only */
}

void kj_marshal(const kj_call *call, const kj_code *code, char *block)
{
  for (uint32_t i = 0; i < code->parameter_count; i++)
    kj_marshal_parameter(call, &code->parameters[i], block);
}

/* Where a thread that fails leaves word of it. */
static void pass_failure_record(const kj_code *code, uint64_t address, char *block)
{
  if (code->failures) memcpy(block + code->failure_offset, &address, sizeof address);
}

void kj_fill_parameters(const kj_call *call, const kjit_specialization *specialization)
{
  const kj_plan *plan = atomic_load_explicit(&specialization->plan, memory_order_acquire);
  if (plan) kj_marshal_by_plan(call, plan, &specialization->code, call->parameters);
  else kj_marshal(call, &specialization->code, call->parameters);
  pass_failure_record(&specialization->code, specialization->failure_address, call->parameters);
}

/* ---- CPU ---- */

/* Grids of one-thread blocks for kernels that are grid_ranges only: enough pieces that unequal ones
 * even out, none so short that starting it costs more than its work. */
static void cut_range(const kj_call *call, kj_cpu_launch *launch)
{
  enum { PIECES = 4, LEAST = 256 };
  uint64_t wanted = (uint64_t)call->device->workers * PIECES, pieces = wanted;
  if (call->has_elements && call->elements / LEAST < wanted) pieces = call->elements / LEAST;
  launch->grid.grid[0] = pieces ? (uint32_t)pieces : 1;
  launch->grid.grid[1] = launch->grid.grid[2] = 1;
  launch->grid.block[0] = launch->grid.block[1] = launch->grid.block[2] = 1;
}

/* Waking the other cores takes some microseconds. A vectorized loop is known to do little per
 * element; anything else may do much. */
static bool is_small(const kj_call *call, const kj_code *code)
{
  enum { FEW_ELEMENTS = 16384, FEW_THREADS = 512 };
  if (code->is_range_only && call->has_elements)
    return call->elements < (code->elements_a_thread ? FEW_ELEMENTS : FEW_THREADS);
  uint64_t blocks = (uint64_t)call->grid[0] * call->grid[1] * call->grid[2];
  return blocks * call->block[0] * call->block[1] * call->block[2] < FEW_THREADS &&
         blocks < FEW_THREADS;
}

/* Behind the block's memory what is known about it, where accesses are watched. */
static void set_scratch(kj_cpu_launch *launch, const kj_code *code)
{
  enum { LINE = 64 };
  uint64_t bytes = launch->scratch_bytes;
  launch->zeroed_from = code->is_watched ? (bytes + LINE - 1) / LINE * LINE : bytes;
  if (code->is_watched)
    launch->scratch_bytes = launch->zeroed_from + sizeof(kn_watch) + bytes * sizeof(kn_watch_cell);
}

static kjit_status run_printing(const kj_call *call, const kj_code *code,
                                const kj_cpu_launch *launch, kj_diagnostics *diagnostics)
{
  kj_cpu_prints prints;
  uint64_t address = (uint64_t)(uintptr_t)&prints;
  kj_begin_cpu_prints(&prints, call->kernel->context, code);
  memcpy(call->parameters + code->print_offset, &address, sizeof address);
  kjit_status status = kj_run_cpu(call->device, launch, diagnostics);
  kj_end_cpu_prints(&prints);
  return status;
}

static kjit_status run_on_cpu(kj_call *call, kjit_specialization *specialization,
                              kj_diagnostics *diagnostics)
{
  const kj_code *code = &specialization->code;
  KJ_TRY(kj_make_room(call, code, diagnostics));
  kj_cpu_launch launch = { .kernel = specialization->run,
                           .parameters = call->parameters,
                           .scratch_bytes = code->scratch_bytes + call->dynamic_shared_bytes };
  kj_marshal(call, code, call->parameters);
  memcpy(launch.grid.grid, call->grid, sizeof call->grid);
  memcpy(launch.grid.block, call->block, sizeof call->block);
  launch.grid.dynamic_shared_bytes = call->dynamic_shared_bytes;
  for (int i = 0; i < 3; i++) launch.grid.cluster[i] = call->cluster[i] ? call->cluster[i] : 1;
  launch.is_cooperative = code->is_cooperative;
  launch.parts = (kj_cpu_parts)code->cpu_parts;
  set_scratch(&launch, code);
  launch.is_small = is_small(call, code);
  if (code->is_range_only) cut_range(call, &launch);
  kj_failure_record record;
  record.state = KJ_FAILURE_FREE;
  pass_failure_record(code, (uint64_t)(uintptr_t)&record, call->parameters);
  KJ_TRY(code->prints ? run_printing(call, code, &launch, diagnostics)
                      : kj_run_cpu(call->device, &launch, diagnostics));
  return record.state == KJ_FAILURE_WRITTEN
           ? kj_report_failure(specialization, &record, diagnostics)
           : KJIT_OK;
}

/* ---- GPU ---- */

static kjit_status launch_here(kj_call *call, kjit_specialization *specialization, void *stream,
                               kj_diagnostics *diagnostics)
{
  KJ_TRY(kj_make_room(call, &specialization->code, diagnostics));
  kj_cuda_launch launch = kj_describe_launch(call, specialization, stream);
  kj_fill_parameters(call, specialization);
  if (specialization->code.tensor_map_count)
    return kj_launch_with_maps(call, specialization, &launch, diagnostics);
  return kj_launch_cuda(call->device, &specialization->cuda, &launch, diagnostics);
}

static kjit_status launch_staged(kj_call *call, kjit_specialization *specialization, void *stream,
                                 kj_diagnostics *diagnostics)
{
  kj_staging *staging = NULL;
  kjit_status status = kj_stage_in(call, stream, diagnostics, &staging);
  if (status == KJIT_OK) status = launch_here(call, specialization, stream, diagnostics);
  if (status == KJIT_OK) status = kj_stage_out(call, stream, staging, diagnostics);
  kj_free_staging(call, staging);
  return status;
}

static kjit_status run_on_gpu(kj_call *call, kjit_specialization *specialization,
                              kj_diagnostics *diagnostics)
{
  void *stream = call->stream ? call->stream->native : NULL, *previous;
  if (!call->has_host_arrays) return launch_here(call, specialization, stream, diagnostics);
  if (call->stream && atomic_load_explicit(&call->stream->capture, memory_order_relaxed))
    return kj_error(
      diagnostics, KJIT_ERROR_MISUSE,
      "host arrays cannot be part of a capture on a GPU: copy them to device arrays first");
  KJ_TRY(kj_enter_device(call->device, diagnostics, &previous));
  kjit_status status = launch_staged(call, specialization, stream, diagnostics);
  kj_leave_device(call->device, previous);
  return status;
}

/* ---- the stages ---- */

kjit_status kj_run_call(kj_call *call, kjit_specialization *specialization,
                        kj_diagnostics *diagnostics)
{
  KJ_TRY(kj_fit_grid(call, specialization, diagnostics));
  if (!call->has_nothing)
    KJ_TRY(kj_is_cuda(call->device) ? run_on_gpu(call, specialization, diagnostics)
                                    : run_on_cpu(call, specialization, diagnostics));
  if (call->is_miss)
    atomic_fetch_add_explicit(&call->kernel->context->counters.missed_launches, 1,
                              memory_order_relaxed);
  kj_count_launch(call->kernel->context);
  return KJIT_OK;
}

void kj_count_launch(kjit_context *context)
{
  uint32_t own = kj_slot();
  kj_count_up(&context->launches[own].count, own);
}

/* Compiled now, or, where the call must not wait, later. */
static kjit_status make_specialization(kj_call *call, uint64_t hash, kj_diagnostics *diagnostics,
                                       kjit_specialization **specialization)
{
  for (;;) {
    KJ_TRY(call->config->flags & KJIT_LAUNCH_NO_WAIT
             ? kj_specialize_later(call, hash, diagnostics, specialization)
             : kj_specialize(call, hash, diagnostics, specialization));
    if (kj_hold(*specialization)) return KJIT_OK; /* else it was unloaded already */
  }
}

static uint32_t variant_limit(const kj_call *call)
{
  enum { DEFAULT_LIMIT = 16 };
  uint32_t given = call->kernel->context->config.variant_limit;
  return given ? given : DEFAULT_LIMIT;
}

/* Code for fewer facts runs at once, and what fits better is compiled beside; not without end,
 * though. */
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
  call->is_makeshift = *specialization != NULL;
  bool is_full = variants >= variant_limit(call);
  if (*specialization && !is_full) kj_improve_later(call, hash);
  if (*specialization) return KJIT_OK;
  if (is_full) {
    kj_drop_facts(call);
    kj_make_key(call);
    hash = kj_hash_key(call->key, call->key_count);
  }
  return make_specialization(call, hash, diagnostics, specialization);
}

kjit_status kj_prepare_call(kj_call *call, const kjit_arg *arguments, size_t count,
                            kj_diagnostics *diagnostics, kjit_specialization **specialization)
{
  KJ_TRY(kj_bind_arguments(call, arguments, count, diagnostics));
  KJ_TRY(kj_choose_device(call, arguments, diagnostics));
  KJ_TRY(kj_check_device(call->device, diagnostics));
  call->is_sealed = atomic_load_explicit(&call->kernel->is_sealed, memory_order_acquire);
  if (call->is_sealed) KJ_TRY(kj_match_signature(call, arguments, diagnostics));
  KJ_TRY(kj_configure(call, diagnostics));
  return find_specialization(call, diagnostics, specialization);
}

/* For the next launch of this thread. */
static void note_recent(const kj_call *call, kjit_specialization *specialization)
{
  kjit_kernel *kernel = call->kernel;
  _Atomic(kjit_specialization *) *recent = &kernel->recent[kj_slot()].specialization;
  if (!atomic_load_explicit(&specialization->plan, memory_order_acquire) ||
      atomic_load_explicit(recent, memory_order_relaxed) == specialization)
    return;
  atomic_store(recent, specialization);
  /* sealed meanwhile */
  if (atomic_load(&kernel->is_sealed) != call->is_sealed) atomic_store(recent, NULL);
}

static kjit_status launch(kj_call *call, const kjit_arg *arguments, size_t count,
                          kj_diagnostics *diagnostics)
{
  kjit_specialization *specialization;
  KJ_TRY(kj_prepare_call(call, arguments, count, diagnostics, &specialization));
  if (!call->is_makeshift && !call->is_general)
    kj_learn_plan(call, specialization, arguments, count);
  note_recent(call, specialization);
  kjit_status status = kj_run_call(call, specialization, diagnostics);
  if (status == KJIT_OK && call->stream &&
      atomic_load_explicit(&call->stream->capture, memory_order_relaxed) && !call->has_nothing) {
    status = kj_keep_code(call->stream, specialization, diagnostics);
    if (status == KJIT_OK) status = kj_keep_arrays(call->stream, arguments, count, diagnostics);
  }
  kj_release(specialization, status == KJIT_OK);
  return status;
}

size_t kj_divide_memory(kj_call *call, char *memory)
{
  const kjit_kernel *kernel = call->kernel;
  call->bound = (kj_bound *)memory;
  call->key = (uint64_t *)(call->bound + kernel->parameter_count);
  call->shared = (kj_shared_size *)(call->key + kj_key_capacity(kernel));
  size_t shared_bytes = (kernel->shared_count + 1) * sizeof *call->shared;
  call->parameters = (char *)call->shared + (shared_bytes + 7) / 8 * 8;
  call->parameter_room = (size_t)(memory + kernel->call_bytes - call->parameters);
  return kernel->call_bytes;
}

kjit_status kj_make_room(kj_call *call, const kj_code *code, kj_diagnostics *diagnostics)
{
  if (code->parameter_bytes <= call->parameter_room) return KJIT_OK;
  char *larger = realloc(call->own_parameters, code->parameter_bytes);
  if (!larger) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  call->parameters = call->own_parameters = larger;
  call->parameter_room = code->parameter_bytes;
  return KJIT_OK;
}

/* The way of nearly every launch. */
static bool launch_again(kj_call *call, const kjit_arg *arguments, size_t count,
                         kj_diagnostics *diagnostics)
{
  /* the graph keeps what the call has */
  if (call->config->stream &&
      atomic_load_explicit(&call->config->stream->capture, memory_order_relaxed))
    return false;
  kjit_specialization *recent =
    atomic_load_explicit(&call->kernel->recent[kj_slot()].specialization, memory_order_acquire);
  if (!recent || !kj_hold(recent)) return false;
  bool is_followed = kj_follow_plan(call, recent, arguments, count);
  bool is_launched = is_followed && kj_run_call(call, recent, diagnostics) == KJIT_OK;
  kj_release(recent, is_launched);
  return is_followed;
}

static kjit_status launch_in(char *memory, kjit_kernel *kernel, const kjit_launch_config *config,
                             const kjit_arg *arguments, size_t count)
{
  kj_diagnostics diagnostics = { 0 };
  kj_call call = { .kernel = kernel, .config = config };
  (void)kj_divide_memory(&call, memory);
  if (!launch_again(&call, arguments, count, &diagnostics)) {
    free(call.own_parameters);
    call = (kj_call){ .kernel = kernel,
                      .config = call.config,
                      .runtime = kj_get_runtime(kernel->context) };
    (void)kj_divide_memory(&call, memory);
    if (!call.runtime) return ki_fail_call(kernel->context, KJIT_ERROR_MEMORY, "out of memory");
    kjit_status status = launch(&call, arguments, count, &diagnostics);
    if (status == KJIT_NOT_READY) return status; /* nothing was filled in */
  }
  free(call.own_parameters);
  /* an error for whose message there was no memory has a status only */
  bool is_told = diagnostics.count || diagnostics.status != KJIT_OK;
  return is_told ? ki_finish_call(kernel->context, &diagnostics) : KJIT_OK;
}

/* A GPU's driver captures what is launched; on the CPU it is kept instead. */
static bool is_recorded(const kjit_stream *stream)
{
  return atomic_load_explicit(&stream->capture, memory_order_relaxed) &&
         !kj_is_cuda(stream->object.device);
}

static kjit_status launch_anyhow(kjit_kernel *kernel, const kjit_launch_config *config,
                                 const kjit_arg *arguments, size_t count)
{
  _Alignas(64) char small[CALL_BYTES];
  uint32_t unknown = config->flags & ~(uint32_t)KJ_LAUNCH_FLAGS; /* the direct way takes none */
  if (unknown)
    return ki_fail_call(kernel->context, KJIT_ERROR_MISUSE, "kjit_launch: unknown flags %#x",
                        unknown);
  if (kernel->call_bytes <= sizeof small) return launch_in(small, kernel, config, arguments, count);
  char *large = malloc(kernel->call_bytes);
  if (!large) return ki_fail_call(kernel->context, KJIT_ERROR_MEMORY, "out of memory");
  kjit_status status = launch_in(large, kernel, config, arguments, count);
  free(large);
  return status;
}

static __attribute__((noinline)) kjit_status launch_by_rules(kjit_kernel *kernel,
                                                             const kjit_launch_config *config,
                                                             const kjit_arg *arguments,
                                                             size_t count)
{
  static const kjit_launch_config defaults;
  if (ki_is_forked(kernel->context)) return KJIT_ERROR_FORKED;
  if (count && !arguments)
    return ki_fail_call(kernel->context, KJIT_ERROR_MISUSE, "kjit_launch: arguments is NULL");
  if (config && config->stream && is_recorded(config->stream))
    return kj_capture_launch(config->stream, kernel, config, arguments, count);
  return launch_anyhow(kernel, config ? config : &defaults, arguments, count);
}

kjit_status kjit_launch(kjit_kernel *kernel, const kjit_launch_config *config,
                        const kjit_arg *arguments, size_t count)
{
  if (!kernel) return KJIT_ERROR_MISUSE;
  int status = kj_launch_directly(kernel, config, arguments, count);
  return status != KJ_OTHER_WAY ? (kjit_status)status
                                : launch_by_rules(kernel, config, arguments, count);
}
