/* kjit_launch. The stages of a call in their order; on a hit none of them allocates, locks, formats
 * or asks the driver anything. */
#include <stdlib.h>
#include <string.h>

#include "code/kernel.h"
#include "launch/bind.h"
#include "launch/launch.h"
#include "launch/learned.h"
#include "launch/shape.h"
#include "launch/start.h"
#include "stream/stream.h"

/* Memory of a call that most kernels need no more than. */
enum { CALL_BYTES = 8192, MEMORY_ALIGNMENT = 64 };

/* ---- the stages ---- */

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

static kjit_status bind_and_shape(kj_call *call, const kjit_arg *arguments, size_t count,
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
  KJ_TRY(bind_and_shape(call, arguments, count, diagnostics));
  return find_specialization(call, diagnostics, specialization);
}

/* For the next launch of this thread. */
static void note_recent(const kj_call *call, kjit_specialization *specialization)
{
  kjit_kernel *kernel = call->kernel;
  _Atomic(kjit_specialization *) *recent = &kernel->recent[kj_slot()].specialization;
  if (!atomic_load_explicit(&specialization->learned, memory_order_acquire) ||
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
  kj_learn(call, specialization, arguments, count);
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

/* ---- assertions ---- */

static bool are_same(const kj_call *call, const kj_call *decided,
                     const kjit_specialization *specialization)
{
  const kj_code *code = &specialization->code;
  bool has_same_cluster = !memcmp(call->cluster, decided->cluster, sizeof call->cluster);
  return !memcmp(call->grid, decided->grid, sizeof call->grid) &&
         !memcmp(call->block, decided->block, sizeof call->block) && has_same_cluster &&
         call->dynamic_shared_bytes == decided->dynamic_shared_bytes &&
         call->is_cooperative == decided->is_cooperative &&
         !memcmp(call->parameters, decided->parameters, code->parameter_bytes);
}

static kjit_status decide_again(kj_call *call, kjit_specialization *specialization,
                                const kjit_arg *arguments, size_t count,
                                kj_diagnostics *diagnostics, bool *has_key)
{
  KJ_TRY(bind_and_shape(call, arguments, count, diagnostics));
  kj_make_key(call);
  *has_key = call->key_count == specialization->key_count &&
             !memcmp(call->key, specialization->key, call->key_count * sizeof *call->key);
  if (!*has_key) return KJIT_OK;
  KJ_TRY(kj_fit_shape(call, specialization, diagnostics));
  KJ_TRY(kj_make_room(call, &specialization->code, diagnostics));
  memset(call->parameters, 0, specialization->code.parameter_bytes); /* what lies between */
  kj_marshal(call, specialization);
  return KJIT_OK;
}

bool kj_agrees(const kj_call *decided, kjit_specialization *specialization,
               const kjit_arg *arguments, size_t count)
{
  kjit_kernel *kernel = decided->kernel;
  kj_diagnostics diagnostics = { 0 };
  char *memory = aligned_alloc(MEMORY_ALIGNMENT, (kernel->call_bytes + MEMORY_ALIGNMENT - 1) /
                                                   MEMORY_ALIGNMENT * MEMORY_ALIGNMENT);
  kj_call call = { .kernel = kernel,
                   .config = decided->config,
                   .runtime = kj_get_runtime(kernel->context) };
  if (!memory) return true;
  (void)kj_divide_memory(&call, memory);
  bool has_key = false;
  kjit_status status =
    decide_again(&call, specialization, arguments, count, &diagnostics, &has_key);
  /* another thread has sealed the kernel meanwhile, or the device is lost, or memory is short */
  bool is_other = call.is_sealed || status == KJIT_ERROR_DEVICE || status == KJIT_ERROR_MEMORY;
  bool agrees = status == KJIT_OK ? has_key && are_same(&call, decided, specialization) : is_other;
  kj_free_diagnostics(&diagnostics);
  free(call.own_parameters);
  free(memory);
  return agrees || (is_other && !has_key);
}

/* ---- entry ---- */

static kjit_status launch_in(char *memory, kjit_kernel *kernel, const kjit_launch_config *config,
                             const kjit_arg *arguments, size_t count)
{
  kj_diagnostics diagnostics = { 0 };
  kj_call call = { .kernel = kernel, .config = config, .runtime = kj_get_runtime(kernel->context) };
  if (!call.runtime) return ki_fail_call(kernel->context, KJIT_ERROR_MEMORY, "out of memory");
  (void)kj_divide_memory(&call, memory);
  kjit_status status = launch(&call, arguments, count, &diagnostics);
  free(call.own_parameters);
  if (status == KJIT_NOT_READY) return status; /* nothing was filled in */
  /* an error for whose message there was no memory has a status only */
  bool is_told = diagnostics.count || diagnostics.status != KJIT_OK;
  return is_told ? ki_finish_call(kernel->context, &diagnostics) : KJIT_OK;
}

static kjit_status launch_anyhow(kjit_kernel *kernel, const kjit_launch_config *config,
                                 const kjit_arg *arguments, size_t count)
{
  _Alignas(MEMORY_ALIGNMENT) char small[CALL_BYTES];
  uint32_t unknown = config->flags & ~(uint32_t)KJ_LAUNCH_FLAGS; /* the learned way takes none */
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
  if (config && kj_is_recorded(config->stream))
    return kj_record_launch(config->stream, kernel, config, arguments, count);
  return launch_anyhow(kernel, config ? config : &defaults, arguments, count);
}

kjit_status kjit_launch(kjit_kernel *kernel, const kjit_launch_config *config,
                        const kjit_arg *arguments, size_t count)
{
  if (!kernel) return KJIT_ERROR_MISUSE;
  int status = kj_launch_learned(kernel, config, arguments, count);
  return status != KJ_OTHER_WAY ? (kjit_status)status
                                : launch_by_rules(kernel, config, arguments, count);
}
