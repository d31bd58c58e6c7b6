/* What the host may ask of a specialization: its code at a stage, its machine code, occupancy. */
#include <kjit/code.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/assemble.h"
#include "code/disk.h"

static kjit_context *context_of(const kjit_specialization *specialization)
{
  return specialization->kernel->context;
}

/* ---- code ---- */

static kjit_status compile_stage(kjit_specialization *specialization, kjit_stage stage,
                                 kj_diagnostics *diagnostics, kj_code *code)
{
  kjit_device *device = specialization->device;
  kj_runtime *runtime = device->runtime;
  kj_compile_request request =
    kj_make_request(specialization->kernel, device, &specialization->compiled_for, stage);
  KJ_TRY(kj_get_compiler(runtime, diagnostics));
  return runtime->interface->compile(runtime->compiler, &request, diagnostics, code);
}

/* The machine code that was loaded, or that text of it. */
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

kjit_status kjit_copy_specialization_code(kjit_specialization *specialization, kjit_stage stage,
                                          void **code, size_t *size_bytes)
{
  if (!specialization) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(context_of(specialization))) return KJIT_ERROR_FORKED;
  kjit_context *context = context_of(specialization);
  if (!code || !size_bytes)
    return ki_fail_call(context, KJIT_ERROR_MISUSE, "kjit_copy_specialization_code: %s is NULL",
                        code ? "size_bytes" : "code");
  if ((unsigned)stage >= KJIT_STAGE_COUNT)
    return ki_fail_call(context, KJIT_ERROR_MISUSE,
                        "kjit_copy_specialization_code: there is no stage %d", (int)stage);
  bool takes_ptx = specialization->device->operations->takes_ptx;
  if (!kj_has_stage(stage, takes_ptx))
    return ki_fail_call(context, KJIT_ERROR_UNSUPPORTED, "code for %s has no such stage: it has %s",
                        specialization->device->info.target, kj_own_stages(takes_ptx));
  kj_diagnostics diagnostics = { 0 };
  kj_code made = { 0 };
  if (stage == KJIT_STAGE_CUBIN || stage == KJIT_STAGE_SASS) {
    (void)copy_binary(specialization, stage == KJIT_STAGE_SASS, &diagnostics, code, size_bytes);
    return ki_finish_call(context, &diagnostics);
  }
  if (compile_stage(specialization, stage, &diagnostics, &made) == KJIT_OK) {
    *code = made.data;
    *size_bytes = made.size_bytes;
    made.data = NULL;
  }
  kj_free_code(&made);
  return ki_finish_call(context, &diagnostics);
}

kjit_status kjit_copy_specialization_binary(kjit_specialization *specialization, void **binary,
                                            size_t *size_bytes)
{
  if (!specialization) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(context_of(specialization))) return KJIT_ERROR_FORKED;
  kjit_context *context = context_of(specialization);
  if (!binary || !size_bytes)
    return ki_fail_call(context, KJIT_ERROR_MISUSE, "kjit_copy_specialization_binary: %s is NULL",
                        binary ? "size_bytes" : "binary");
  kj_diagnostics diagnostics = { 0 };
  (void)copy_binary(specialization, false, &diagnostics, binary, size_bytes);
  return ki_finish_call(context, &diagnostics);
}

/* ---- occupancy ---- */

static kjit_status refuse(const kjit_specialization *specialization, const char *what,
                          uint64_t given, uint64_t limit, kj_diagnostics *diagnostics)
{
  return kj_error(diagnostics, KJIT_ERROR_LAUNCH,
                  "kernel `%s`: kjit_get_occupancy: %s %llu, at most %llu are possible",
                  specialization->kernel->function->decl->name, what, (unsigned long long)given,
                  (unsigned long long)limit);
}

static kjit_status check_block(const kjit_specialization *specialization, const uint32_t block[3],
                               uint64_t dynamic_shared_bytes, kj_diagnostics *diagnostics)
{
  static const char *const extents[] = { "threads a block in x are", "threads a block in y are",
                                         "threads a block in z are" };
  const kjit_device_info *info = &specialization->device->info;
  const kj_device_code *function = &specialization->cuda;
  uint64_t threads = (uint64_t)block[0] * block[1] * block[2],
           most = function->max_threads ? function->max_threads : info->max_threads_per_block;
  for (int i = 0; i < 3; i++)
    if (!block[i] || block[i] > info->max_block[i])
      return refuse(specialization, extents[i], block[i], info->max_block[i], diagnostics);
  if (threads > most)
    return refuse(specialization, "threads a block are", threads, most, diagnostics);
  uint64_t memory = function->max_dynamic_shared_bytes;
  return dynamic_shared_bytes > memory
           ? refuse(specialization, "bytes of dynamic shared memory a block are",
                    dynamic_shared_bytes, memory, diagnostics)
           : KJIT_OK;
}

static kjit_status choose_block(kjit_specialization *specialization, uint64_t dynamic_shared_bytes,
                                kj_diagnostics *diagnostics, uint32_t block[3])
{
  const uint32_t *compiled = specialization->compiled_for.block;
  kjit_device *device = specialization->device;
  block[1] = block[2] = 1;
  if (compiled[0]) {
    memcpy(block, compiled, 3 * sizeof *block);
    return KJIT_OK;
  }
  return device->operations->choose_threads(device, &specialization->cuda, dynamic_shared_bytes,
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
    KJ_TRY(choose_block(specialization, dynamic_shared_bytes, diagnostics, found.block));
  }
  KJ_TRY(check_block(specialization, found.block, dynamic_shared_bytes, diagnostics));
  uint32_t threads = found.block[0] * found.block[1] * found.block[2];
  KJ_TRY(device->operations->count_resident(device, &specialization->cuda, threads,
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
  if (!occupancy)
    return ki_fail_call(context, KJIT_ERROR_MISUSE, "kjit_get_occupancy: occupancy is NULL");
  kj_diagnostics diagnostics = { 0 };
  if (kj_revive(specialization, &diagnostics) == KJIT_OK) {
    (void)fill_occupancy(specialization, block, dynamic_shared_bytes, &diagnostics, occupancy);
    kj_release(specialization, false);
  }
  return ki_finish_call(context, &diagnostics);
}
