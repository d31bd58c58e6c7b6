/* kjit_launch. The stages of a call in their order; on a hit none of them allocates, locks, formats or asks the driver anything. */
#include <stdlib.h>
#include <string.h>

#include "cpu/run.h"
#include "dispatch/plan.h"

/* Memory of a call that most kernels need no more than. */
enum { CALL_BYTES = 8192 };

/* ---- parameters ---- */

static inline uint64_t read_parameter(const kj_bound *bound, const kj_parameter *parameter)
{
  if (parameter->kind == KJ_PARAMETER_POINTER) return bound->target;
  if (parameter->kind == KJ_PARAMETER_EXTENT) return (uint64_t)bound->shape[parameter->dimension];
  if (parameter->kind == KJ_PARAMETER_SCALAR) return bound->bits[0];
  return bound->rank == 1 && !bound->strides ? 1 : (uint64_t)kj_stride_of(bound, parameter->dimension);
}

void kj_marshal_parameter(const kj_call *call, const kj_parameter *parameter, char *block)
{
  const kj_bound *bound = &call->bound[parameter->argument];
  char *place = block + parameter->offset;
  uint64_t word = read_parameter(bound, parameter);
  if (parameter->size_bytes == 8) memcpy(place, &word, 8);
  else if (parameter->size_bytes == 4) memcpy(place, &word, 4);
  else memcpy(place, bound->bits, parameter->size_bytes); /* scalars only */
}

void kj_marshal(const kj_call *call, const kj_code *code, char *block)
{
  for (uint32_t i = 0; i < code->parameter_count; i++) kj_marshal_parameter(call, &code->parameters[i], block);
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

/* Grids of one-thread blocks for kernels that are grid_ranges only: enough pieces that unequal ones even out, none so short that starting it costs more than its work. */
static void cut_range(const kj_call *call, kj_cpu_launch *launch)
{
  enum { PIECES = 4, LEAST = 256 };
  uint64_t wanted = (uint64_t)call->device->workers * PIECES, pieces = wanted;
  if (call->has_elements && call->elements / LEAST < wanted) pieces = call->elements / LEAST;
  launch->grid.grid[0] = pieces ? (uint32_t)pieces : 1;
  launch->grid.grid[1] = launch->grid.grid[2] = 1;
  launch->grid.block[0] = launch->grid.block[1] = launch->grid.block[2] = 1;
}

/* Waking the other cores takes some microseconds. A vectorized loop is known to do little per element; anything else may do much. */
static bool is_small(const kj_call *call, const kj_code *code)
{
  enum { FEW_ELEMENTS = 16384, FEW_THREADS = 512 };
  if (code->is_range_only && call->has_elements) return call->elements < (code->elements_a_thread ? FEW_ELEMENTS : FEW_THREADS);
  uint64_t blocks = (uint64_t)call->grid[0] * call->grid[1] * call->grid[2];
  return blocks * call->block[0] * call->block[1] * call->block[2] < FEW_THREADS && blocks < FEW_THREADS;
}

static kjit_status run_on_cpu(kj_call *call, kjit_specialization *specialization, kj_diagnostics *diagnostics)
{
  const kj_code *code = &specialization->code;
  kj_cpu_launch launch = { .kernel = specialization->run, .parameters = call->parameters, .scratch_bytes = code->scratch_bytes + call->dynamic_shared_bytes };
  kj_marshal(call, code, call->parameters);
  memcpy(launch.grid.grid, call->grid, sizeof call->grid);
  memcpy(launch.grid.block, call->block, sizeof call->block);
  launch.grid.dynamic_shared_bytes = call->dynamic_shared_bytes;
  launch.is_small = is_small(call, code);
  if (code->is_range_only) cut_range(call, &launch);
  kj_failure_record record;
  record.state = KJ_FAILURE_FREE;
  pass_failure_record(code, (uint64_t)(uintptr_t)&record, call->parameters);
  KJ_TRY(kj_run_cpu(call->device, &launch, diagnostics));
  return record.state == KJ_FAILURE_WRITTEN ? kj_report_failure(specialization, &record, diagnostics) : KJIT_OK;
}

/* ---- GPU ---- */

static kjit_status launch_here(kj_call *call, kjit_specialization *specialization, void *stream, kj_diagnostics *diagnostics)
{
  const kj_code *code = &specialization->code;
  kj_cuda_launch launch = { .grid = call->grid,
                            .block = call->block,
                            .dynamic_shared_bytes = (uint32_t)call->dynamic_shared_bytes,
                            .stream = stream,
                            .parameters = call->parameters,
                            .parameter_bytes = code->parameter_bytes };
  kj_fill_parameters(call, specialization);
  return kj_launch_cuda(call->device, &specialization->cuda, &launch, diagnostics);
}

static kjit_status launch_staged(kj_call *call, kjit_specialization *specialization, void *stream, kj_diagnostics *diagnostics)
{
  kj_staging *staging = NULL;
  kjit_status status = kj_stage_in(call, stream, diagnostics, &staging);
  if (status == KJIT_OK) status = launch_here(call, specialization, stream, diagnostics);
  if (status == KJIT_OK) status = kj_stage_out(call, stream, staging, diagnostics);
  kj_free_staging(call, staging);
  return status;
}

static kjit_status run_on_gpu(kj_call *call, kjit_specialization *specialization, kj_diagnostics *diagnostics)
{
  void *stream = call->stream ? call->stream->native : NULL, *previous;
  if (!call->has_host_arrays) return launch_here(call, specialization, stream, diagnostics);
  KJ_TRY(kj_enter_device(call->device, diagnostics, &previous));
  kjit_status status = launch_staged(call, specialization, stream, diagnostics);
  kj_leave_device(call->device, previous);
  return status;
}

/* ---- slots ---- */

_Thread_local uint32_t kj_own_slot;

uint32_t kj_take_slot(void)
{
  static _Atomic uint32_t taken;
  uint32_t slot = atomic_fetch_add_explicit(&taken, 1, memory_order_relaxed) % KJ_SLOTS;
  kj_own_slot = slot + 1;
  return slot;
}

/* ---- the stages ---- */

kjit_status kj_run_call(kj_call *call, kjit_specialization *specialization, kj_diagnostics *diagnostics)
{
  KJ_TRY(kj_fit_grid(call, specialization, diagnostics));
  if (!call->has_nothing) KJ_TRY(kj_is_cuda(call->device) ? run_on_gpu(call, specialization, diagnostics) : run_on_cpu(call, specialization, diagnostics));
  if (call->is_miss) atomic_fetch_add_explicit(&call->kernel->context->counters.missed_launches, 1, memory_order_relaxed);
  kj_count_launch(call->kernel->context, specialization);
  return KJIT_OK;
}

void kj_count_launch(kjit_context *context, kjit_specialization *specialization)
{
  uint32_t slot = kj_slot();
  atomic_fetch_add_explicit(&specialization->launches[slot].count, 1, memory_order_relaxed);
  atomic_fetch_add_explicit(&context->launches[slot % KJ_LAUNCH_COUNTERS].count, 1, memory_order_relaxed);
}

static kjit_status find_specialization(kj_call *call, kj_diagnostics *diagnostics, kjit_specialization **specialization)
{
  kj_make_key(call);
  uint64_t hash = kj_hash_key(call->key, call->key_count);
  *specialization = kj_look_up(call->kernel, call->key, call->key_count, hash);
  call->is_miss = !*specialization;
  if (*specialization) return KJIT_OK;
  if (call->config->flags & KJIT_LAUNCH_NO_WAIT) return kj_specialize_later(call, hash, diagnostics, specialization);
  return kj_specialize(call, hash, diagnostics, specialization);
}

kjit_status kj_prepare_call(kj_call *call, const kjit_arg *arguments, size_t count, kj_diagnostics *diagnostics, kjit_specialization **specialization)
{
  KJ_TRY(kj_bind_arguments(call, arguments, count, diagnostics));
  KJ_TRY(kj_choose_device(call, arguments, diagnostics));
  KJ_TRY(kj_check_device(call->device, diagnostics));
  KJ_TRY(kj_configure(call, diagnostics));
  return find_specialization(call, diagnostics, specialization);
}

static kjit_status launch(kj_call *call, const kjit_arg *arguments, size_t count, kj_diagnostics *diagnostics)
{
  kjit_specialization *specialization;
  KJ_TRY(kj_prepare_call(call, arguments, count, diagnostics, &specialization));
  kj_learn_plan(call, specialization, arguments, count);
  _Atomic(kjit_specialization *) *recent = &call->kernel->recent[kj_slot()].specialization;
  if (atomic_load_explicit(&specialization->plan, memory_order_acquire) && atomic_load_explicit(recent, memory_order_relaxed) != specialization)
    atomic_store_explicit(recent, specialization, memory_order_release);
  return kj_run_call(call, specialization, diagnostics);
}

size_t kj_divide_memory(kj_call *call, char *memory)
{
  const kjit_kernel *kernel = call->kernel;
  call->bound = (kj_bound *)memory;
  call->key = (uint64_t *)(call->bound + kernel->parameter_count);
  call->parameters = (char *)(call->key + kj_key_capacity(kernel));
  return kernel->call_bytes;
}

/* The way of nearly every launch. */
static bool launch_again(kj_call *call, const kjit_arg *arguments, size_t count, kj_diagnostics *diagnostics)
{
  kjit_specialization *recent = atomic_load_explicit(&call->kernel->recent[kj_slot()].specialization, memory_order_acquire);
  if (!recent || !kj_follow_plan(call, recent, arguments, count)) return false;
  (void)kj_run_call(call, recent, diagnostics);
  return true;
}

static kjit_status launch_in(char *memory, kjit_kernel *kernel, const kjit_launch_config *config, const kjit_arg *arguments, size_t count)
{
  static const kjit_launch_config defaults;
  kj_diagnostics diagnostics = { 0 };
  kj_call call = { .kernel = kernel, .config = config ? config : &defaults };
  (void)kj_divide_memory(&call, memory);
  if (!launch_again(&call, arguments, count, &diagnostics)) {
    call = (kj_call){ .kernel = kernel, .config = call.config, .runtime = kj_get_runtime(kernel->context) };
    (void)kj_divide_memory(&call, memory);
    if (!call.runtime) return kj_fail_call(kernel->context, KJIT_ERROR_MEMORY, "out of memory");
    kjit_status status = launch(&call, arguments, count, &diagnostics);
    if (status == KJIT_NOT_READY) return status;
  }
  return diagnostics.count ? kj_finish_call(kernel->context, &diagnostics) : KJIT_OK;
}

kjit_status kjit_launch(kjit_kernel *kernel, const kjit_launch_config *config, const kjit_arg *arguments, size_t count)
{
  _Alignas(64) char small[CALL_BYTES];
  if (!kernel) return KJIT_ERROR_MISUSE;
  if (count && !arguments) return kj_fail_call(kernel->context, KJIT_ERROR_MISUSE, "kjit_launch: arguments is NULL");
  if (kernel->call_bytes <= sizeof small) return launch_in(small, kernel, config, arguments, count);
  char *large = malloc(kernel->call_bytes);
  if (!large) return kj_fail_call(kernel->context, KJIT_ERROR_MEMORY, "out of memory");
  kjit_status status = launch_in(large, kernel, config, arguments, count);
  free(large);
  return status;
}
