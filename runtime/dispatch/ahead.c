/* kjit_specialize: code for a signature before its first launch, under the facts that a fresh allocation has: the launches that have them find it. */
#include <stdlib.h>
#include <string.h>

#include "dispatch/dispatch.h"

/* Arrays that lie apart from each other: only how they lie is looked at. */
static void assume_array(const kj_call *call, uint32_t index, kjit_type type, kj_bound *bound)
{
  enum { APART = 1 << 20 };
  const kj_type_info *info = kj_type(call->kernel->module->types, type);
  uint64_t address = (uint64_t)(index + 1) * APART;
  *bound = (kj_bound){ .kind = KJ_ARGUMENT_ARRAY,
                       .rank = (uint8_t)info->rank,
                       .layout = (uint8_t)info->layout,
                       .type = info->element,
                       .offsets_fit = true,
                       .count = 1,
                       .address = address,
                       .low = address,
                       .high = address + APART };
  if (call->kernel->parameters[index].is_general) return;
  bound->facts = KJ_FACT_ALIGNED16;
  if (info->rank > 1 && info->layout == KJIT_LAYOUT_C) bound->facts |= KJ_FACT_ROWS_ALIGNED16;
}

static void assume_arguments(kj_call *call, const kj_argument *arguments)
{
  for (uint32_t i = 0; i < call->kernel->parameter_count; i++) {
    kj_bound *bound = &call->bound[i];
    const kj_argument *argument = &arguments[i];
    if (argument->kind == KJ_ARGUMENT_ARRAY) assume_array(call, i, argument->type, bound);
    if (argument->kind == KJ_ARGUMENT_VALUE || argument->kind == KJ_ARGUMENT_NUMBER) *bound = (kj_bound){ .kind = argument->kind, .type = argument->type };
  }
}

/* The block that a launch without one takes. */
static kjit_status assume_block(kj_call *call, kj_diagnostics *diagnostics)
{
  enum { DEFAULT_BLOCK = 256, WARP = 32 };
  const kjit_kernel *kernel = call->kernel;
  kj_scope scope = kj_call_scope(call);
  uint32_t bounds[3] = { DEFAULT_BLOCK, 1, 1 };
  call->block[0] = call->block[1] = call->block[2] = 1;
  if (kernel->block && (kernel->block_is_static || !kj_is_cuda(call->device)))
    return kj_evaluate_attribute(kernel, &scope, kernel->block, diagnostics, call->block);
  if (kj_is_cuda(call->device)) return KJIT_OK; /* not in the key */
  if (kernel->launch_bounds) KJ_TRY(kj_evaluate_attribute(kernel, &scope, kernel->launch_bounds, diagnostics, bounds));
  uint32_t threads = bounds[0] < DEFAULT_BLOCK ? bounds[0] : DEFAULT_BLOCK;
  call->block[0] = threads > WARP ? threads / WARP * WARP : threads;
  return KJIT_OK;
}

static kjit_status specialize(kj_call *call, const char *signature, kj_argument *arguments, kj_diagnostics *diagnostics, kjit_specialization **specialization)
{
  KJ_TRY(kj_check_device(call->device, diagnostics));
  KJ_TRY(kj_read_signature(call->kernel, signature, arguments, call->bound, diagnostics));
  assume_arguments(call, arguments);
  KJ_TRY(assume_block(call, diagnostics));
  call->grid32 = true;
  kj_make_key(call);
  uint64_t hash = kj_hash_key(call->key, call->key_count);
  *specialization = kj_look_up(call->kernel, call->key, call->key_count, hash);
  return *specialization ? KJIT_OK : kj_specialize(call, hash, diagnostics, specialization);
}

kjit_status kjit_specialize(kjit_kernel *kernel, kjit_device *device, const char *signature, kjit_specialization **specialization)
{
  static const kjit_launch_config none;
  if (!kernel) return KJIT_ERROR_MISUSE;
  kjit_context *context = kernel->context;
  if (!signature || !specialization) return kj_fail_call(context, KJIT_ERROR_MISUSE, "kjit_specialize: %s is NULL", signature ? "specialization" : "signature");
  if (device && device->context != context) return kj_fail_call(context, KJIT_ERROR_ARGUMENT, "the device and the kernel belong to different contexts");
  kj_diagnostics diagnostics = { 0 };
  kjit_specialization *made = NULL;
  kj_call call = { .kernel = kernel, .config = &none, .runtime = kj_get_runtime(context), .device = device };
  kj_argument *arguments = calloc(kernel->parameter_count + 1, sizeof *arguments);
  char *memory = calloc(1, kernel->call_bytes);
  kjit_status status = KJIT_ERROR_MEMORY;
  if (!call.runtime || !arguments || !memory) {
    kj_error(&diagnostics, status, "out of memory");
  } else {
    (void)kj_divide_memory(&call, memory);
    status = device ? KJIT_OK : kj_default_device(call.runtime, &diagnostics, &call.device);
    if (status == KJIT_OK) status = specialize(&call, signature, arguments, &diagnostics, &made);
  }
  free(arguments);
  free(memory);
  if (status == KJIT_OK) *specialization = made;
  return kj_finish_call(context, &diagnostics);
}
