/* Implements the functions that inspect specializations: their properties, code at a stage, machine
 * code and occupancy. */
#include <kjit/code.h>
#include <stdlib.h>
#include <string.h>

#include "code/compile_thread.h"
#include "code/disk.h"
#include "cuda/toolkit.h"

kjit_specialization *kjit_get_specialization(kjit_kernel *kernel, size_t index)
{
  if (!kernel || ki_is_forked(kernel->context)) return NULL;
  kj_lock(&kernel->mutex, KJ_LOCK_KERNEL);
  kjit_specialization *found = index < kernel->order_count ? kernel->order[index] : NULL;
  kj_unlock(&kernel->mutex, KJ_LOCK_KERNEL);
  return found;
}

/* Fills in properties that are known only while the code is loaded. */
static void describe_code(const kjit_specialization *specialization, kjit_specialization_info *info)
{
  const kj_code *code = &specialization->code;
  const kj_device_code *loaded = &specialization->device_code;
  info->is_loaded = 1;
  info->registers = loaded->registers;
  info->shared_bytes = loaded->shared_bytes;
  info->local_bytes = loaded->local_bytes;
  info->constant_bytes = loaded->constant_bytes;
  info->max_threads = loaded->max_threads;
  info->max_dynamic_shared_bytes = loaded->max_dynamic_shared_bytes;
  info->elements_a_thread = code->elements_a_thread;
  info->stack_bytes = code->stack_bytes;
  info->vector_bits = code->vector_bits;
  info->block_bytes = code->scratch_bytes;
  info->is_cooperative = code->is_cooperative;
  info->is_plain = code->is_plain;
  memcpy(info->cluster, code->cluster, sizeof info->cluster);
  info->infer_time_ns = code->infer_time_ns;
  info->lower_time_ns = code->lower_time_ns;
  info->optimize_time_ns = code->optimize_time_ns;
  info->emit_time_ns = code->emit_time_ns;
  info->code_bytes = specialization->compiled_bytes;
  info->load_time_ns = specialization->load_time_ns;
  info->is_from_disk = specialization->is_from_disk;
  info->is_imported = specialization->is_imported;
}

kjit_status kjit_get_specialization_info(const kjit_specialization *specialization,
                                         kjit_specialization_info *info)
{
  if (!specialization) return KJIT_ERROR_MISUSE;
  /* holding the specialization changes its counters */
  kjit_specialization *held = (kjit_specialization *)specialization;
  kjit_specialization_info own = {
    .signature = specialization->signature,
    .facts = specialization->facts,
    .target = specialization->device->code_target,
    .launches = kj_count_launches(specialization),
    .parse_time_ns = ki_parse_time(specialization->kernel->module),
  };
  if (kj_hold(held)) {
    describe_code(specialization, &own);
    kj_release(held, false);
  }
  return ki_write_sized(specialization->kernel->context, "kjit_get_specialization_info",
                        KI_SPECIALIZATION_INFO, &own, info);
}

static kjit_context *context_of(const kjit_specialization *specialization)
{
  return specialization->kernel->context;
}

kjit_context *kjit_get_specialization_context(const kjit_specialization *specialization)
{
  return specialization ? context_of(specialization) : NULL;
}

kjit_context *kjit_get_kernel_context(const kjit_kernel *kernel)
{
  return kernel ? kernel->context : NULL;
}

kjit_context *kjit_get_function_context(const kjit_function *function)
{
  return function ? kj_function_of(function)->function->module->context : NULL;
}

/* ---- code ---- */

static kjit_status compile_stage(kjit_specialization *specialization, kjit_stage stage,
                                 kj_diagnostics *diagnostics, kj_code *code)
{
  return kj_compile_kernel(specialization->kernel, specialization->device,
                           &specialization->compiled_for, stage, diagnostics, code);
}

/* Copies the loaded machine code, or its disassembly. */
static kjit_status copy_binary(kjit_specialization *specialization, bool as_text,
                               kj_diagnostics *diagnostics, void **result, size_t *size_bytes)
{
  void *binary;
  size_t binary_bytes;
  KJ_TRY(kj_revive(specialization, diagnostics));
  kjit_status status = kj_copy_binary(specialization, diagnostics, &binary, &binary_bytes);
  kj_release(specialization, false);
  if (status != KJIT_OK) return status;
  if (as_text) {
    status = kj_disassemble(binary, binary_bytes, diagnostics, result, size_bytes);
    free(binary);
    return status;
  }
  *result = binary;
  *size_bytes = binary_bytes;
  return KJIT_OK;
}

static kjit_status copy_code(const char *call, kjit_specialization *specialization,
                             kjit_stage stage, bool is_binary, void **code, size_t *size_bytes)
{
  if (!specialization) return KJIT_ERROR_MISUSE;
  kjit_context *context = context_of(specialization);
  if (ki_is_forked(context)) return KJIT_ERROR_FORKED;
  if (!code || !size_bytes)
    return ki_fail_call(context, KJIT_ERROR_MISUSE, "%s: %s is NULL", call,
                        code        ? "size_bytes"
                        : is_binary ? "binary"
                                    : "code");
  if ((unsigned)stage >= KJIT_STAGE_COUNT)
    return ki_fail_call(context, KJIT_ERROR_MISUSE, "%s: stage %d is not a value of kjit_stage",
                        call, (int)stage);
  kj_target_kind target = specialization->device->operations->target;
  if (!is_binary && !kj_has_stage(target, stage))
    return ki_fail_call(context, KJIT_ERROR_UNSUPPORTED,
                        "code for %s does not have this stage; it has %s",
                        specialization->device->info.target, kj_get_code_format(target)->own_names);
  kj_diagnostics diagnostics = { 0 };
  kj_code made = { 0 };
  if (stage == KJIT_STAGE_CUBIN || stage == KJIT_STAGE_SASS) {
    (void)copy_binary(specialization, stage == KJIT_STAGE_SASS, &diagnostics, code, size_bytes);
  } else if (compile_stage(specialization, stage, &diagnostics, &made) == KJIT_OK) {
    *code = made.data;
    *size_bytes = made.size_bytes;
    made.data = NULL;
  }
  kj_free_code(&made);
  return ki_finish_call(context, &diagnostics);
}

kjit_status kjit_copy_specialization_code(kjit_specialization *specialization, kjit_stage stage,
                                          void **code, size_t *size_bytes)
{
  return copy_code("kjit_copy_specialization_code", specialization, stage, false, code, size_bytes);
}

kjit_status kjit_copy_specialization_binary(kjit_specialization *specialization, void **binary,
                                            size_t *size_bytes)
{
  return copy_code("kjit_copy_specialization_binary", specialization, KJIT_STAGE_CUBIN, true,
                   binary, size_bytes);
}

/* ---- occupancy ---- */

static kjit_status refuse(const kjit_specialization *specialization, const char *what,
                          uint64_t given, uint64_t limit, kj_diagnostics *diagnostics)
{
  return kj_error(diagnostics, KJIT_ERROR_LAUNCH,
                  "kernel `%s`: kjit_get_occupancy: %s %llu; the maximum is %llu",
                  specialization->kernel->function->decl->name, what, (unsigned long long)given,
                  (unsigned long long)limit);
}

static kjit_status check_block(const kjit_specialization *specialization, const uint32_t block[3],
                               uint64_t dynamic_shared_bytes, kj_diagnostics *diagnostics)
{
  static const char *const extents[] = { "the number of threads in x is",
                                         "the number of threads in y is",
                                         "the number of threads in z is" };
  const kjit_device_info *info = &specialization->device->info;
  const kj_device_code *function = &specialization->device_code;
  uint64_t threads = (uint64_t)block[0] * block[1] * block[2],
           most = function->max_threads ? function->max_threads : info->max_threads_per_block;
  for (int i = 0; i < 3; i++)
    if (!block[i] || block[i] > info->max_block[i])
      return refuse(specialization, extents[i], block[i], info->max_block[i], diagnostics);
  if (threads > most)
    return refuse(specialization, "the number of threads is", threads, most, diagnostics);
  uint64_t memory = function->max_dynamic_shared_bytes;
  return dynamic_shared_bytes > memory
           ? refuse(specialization, "the dynamic shared memory in bytes is", dynamic_shared_bytes,
                    memory, diagnostics)
           : KJIT_OK;
}

static kjit_status suggest_block(kjit_specialization *specialization, uint64_t dynamic_shared_bytes,
                                 kj_diagnostics *diagnostics, uint32_t block[3])
{
  const uint32_t *compiled = specialization->compiled_for.block;
  kjit_device *device = specialization->device;
  block[1] = block[2] = 1;
  if (compiled[0]) {
    memcpy(block, compiled, 3 * sizeof *block);
    return KJIT_OK;
  }
  return device->operations->choose_threads(device, &specialization->device_code,
                                            dynamic_shared_bytes,
                                            device->info.max_threads_per_block, diagnostics, block);
}

static kjit_status fill_occupancy(kjit_specialization *specialization, const uint32_t *given,
                                  uint64_t dynamic_shared_bytes, kj_diagnostics *diagnostics,
                                  kjit_occupancy *occupancy)
{
  kjit_device *device = specialization->device;
  kjit_occupancy found = { .blocks = 1 };
  if (given) {
    for (int i = 0; i < 3; i++) found.block[i] = i && given[0] && !given[i] ? 1 : given[i];
  } else {
    KJ_TRY(suggest_block(specialization, dynamic_shared_bytes, diagnostics, found.block));
  }
  KJ_TRY(check_block(specialization, found.block, dynamic_shared_bytes, diagnostics));
  uint32_t threads = found.block[0] * found.block[1] * found.block[2];
  KJ_TRY(device->operations->count_resident(device, &specialization->device_code, threads,
                                            dynamic_shared_bytes, diagnostics, &found.blocks));
  found.threads = found.blocks * threads;
  found.max_threads = device->multiprocessor_threads ? device->multiprocessor_threads : threads;
  found.max_cooperative_blocks = (uint64_t)found.blocks * device->info.multiprocessor_count;
  *occupancy = found;
  return KJIT_OK;
}

kjit_status kjit_get_occupancy(kjit_specialization *specialization, const uint32_t block[3],
                               uint64_t dynamic_shared_bytes, kjit_occupancy *occupancy)
{
  if (!specialization) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(context_of(specialization))) return KJIT_ERROR_FORKED;
  kjit_context *context = context_of(specialization);
  static const char call[] = "kjit_get_occupancy";
  KJ_TRY(ki_check_sized(context, call, KI_OCCUPANCY, occupancy));
  kjit_occupancy own;
  kj_diagnostics diagnostics = { 0 };
  kjit_status status = kj_revive(specialization, &diagnostics);
  if (status == KJIT_OK) {
    status = fill_occupancy(specialization, block, dynamic_shared_bytes, &diagnostics, &own);
    kj_release(specialization, false);
  }
  if (status == KJIT_OK) status = ki_write_sized(context, call, KI_OCCUPANCY, &own, occupancy);
  kjit_status reported = ki_finish_call(context, &diagnostics);
  return status != KJIT_OK ? status : reported;
}
