/* kjit_launch: the stages of a call in order. On a cache hit, no stage allocates memory, takes a
 * lock, formats text or calls the driver, except for the launch itself. */
#include <stdlib.h>
#include <string.h>

#include "code/kernel.h"
#include "launch/fast_path.h"
#include "launch/steps.h"
#include "stream/stream.h"

/* Memory on the stack for bound arguments, key and parameter block, enough for most kernels. */
enum { CALL_BYTES = 8192 };

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
  /* a target device (kjit_config.target) runs nothing and has no driver, so it needs no copies */
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
    /* a failure means that the code has been evicted again, so the loop continues */
    if (kj_hold(*specialization)) return KJIT_OK;
  }
}

static uint32_t variant_limit(const kj_call *call)
{
  enum { DEFAULT_LIMIT = 16 };
  uint32_t given = call->kernel->context->config.variant_limit;
  return given ? given : DEFAULT_LIMIT;
}

static uint64_t make_key(kj_call *call)
{
  kj_make_key(call);
  return kj_hash_key(call->key, call->key_count);
}

/* Compiles code that relies on all facts of the call. If there is no compiler, searches the
 * imported code: first for code with these facts, then for code that does not rely on the fact that
 * results are large. */
static kjit_status make_fast(kj_call *call, uint64_t hash, kj_diagnostics *diagnostics,
                             kjit_specialization **specialization)
{
  kjit_status status = make_specialization(call, hash, diagnostics, specialization);
  if (status != KJIT_ERROR_NO_COMPILER || !kj_drop_large(call)) return status;
  kj_free_diagnostics(diagnostics);
  *diagnostics = (kj_diagnostics){ 0 };
  return make_specialization(call, make_key(call), diagnostics, specialization);
}

/* Compiles code that relies on all facts of the call. If there is no compiler, fetches imported
 * code that relies on no facts. */
static kjit_status make_or_fetch(kj_call *call, uint64_t hash, kj_diagnostics *diagnostics,
                                 kjit_specialization **specialization)
{
  kj_diagnostics fast = { 0 }, general = { 0 };
  kjit_status status = make_fast(call, hash, &fast, specialization);
  bool is_missing = status == KJIT_ERROR_NO_COMPILER && !call->is_general;
  if (is_missing) {
    kj_drop_facts(call);
    status = make_specialization(call, make_key(call), &general, specialization);
  }
  bool is_general = is_missing && status == KJIT_OK;
  kj_copy_diagnostics(is_general ? &general : &fast, diagnostics);
  kj_free_diagnostics(&fast);
  kj_free_diagnostics(&general);
  return is_missing && !is_general ? KJIT_ERROR_NO_COMPILER : status;
}

kj_plain kj_get_plain_kind(const kjit_context *context)
{
  static const kj_plain kinds[] = { [KJIT_PLAIN_DEFAULT] = KJ_PLAIN_NONE,
                                    [KJIT_PLAIN_NEVER] = KJ_PLAIN_NONE,
                                    [KJIT_PLAIN_EQUAL] = KJ_PLAIN_EQUAL,
                                    [KJIT_PLAIN_ALWAYS] = KJ_PLAIN_ANY };
  return kinds[atomic_load_explicit(&context->plain_code, memory_order_relaxed)];
}

/* Returns whether a call must not run plain code. Captured launches must not, because the graph
 * would keep the plain code. On a GPU, cooperative launches and launches with clusters must not,
 * because the number of registers in the code limits their shape. If plain code must give equal
 * results, launches for which kjit chooses the block from a number of threads must not: the block
 * depends on the registers of the code, and results may depend on the block. Plain code is not
 * linked, so kernels that are linked with code of the application must not run it, nor kernels of a
 * context that compiles in child processes. */
static bool needs_best(const kj_call *call)
{
  const kjit_launch_config *given = call->config;
  const kjit_config *config = &call->kernel->context->config;
  if (kj_is_captured(call->stream)) return true;
  if (!call->device->operations->is_queued) return false;
  bool is_equal = kj_get_plain_kind(call->kernel->context) == KJ_PLAIN_EQUAL;
  return (given->flags & KJIT_LAUNCH_COOPERATIVE) || given->cluster[0] || given->cluster[1] ||
         given->cluster[2] || (given->threads && is_equal) || config->compile_in_child ||
         kj_has_outside_code(call->kernel->module);
}

/* Decides which kind of plain code a compilation for this call may produce. Sealed kernels and
 * contexts without background threads get no plain code, because the best code could never replace
 * it. */
static kj_plain choose_plain(const kj_call *call)
{
  bool can_use = !call->is_sealed && !call->device->is_target &&
                 call->kernel->context->config.debug == KJIT_DEBUG_NONE && !needs_best(call) &&
                 !kj_is_background_stopped(call->runtime);
  return can_use ? kj_get_plain_kind(call->kernel->context) : KJ_PLAIN_NONE;
}

/* Returns whether the code that was found is plain code that the call must not run. */
static bool is_too_plain(const kj_call *call, const kjit_specialization *found)
{
  return found && kj_is_for_plain(found) &&
         (needs_best(call) ||
          !kj_suits_plain(call, kj_get_plain_kind(call->kernel->context), found));
}

/* Finds or compiles code for one key. If there is code that relies on fewer facts, the call runs it
 * at once, and a background thread compiles better code, unless the limit of variants is
 * reached. */
static kjit_status find_one(kj_call *call, kj_diagnostics *diagnostics,
                            kjit_specialization **specialization)
{
  uint32_t variants;
  uint64_t hash = make_key(call);
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
    hash = make_key(call);
  }
  call->plain = choose_plain(call);
  KJ_TRY(make_or_fetch(call, hash, diagnostics, specialization));
  call->is_fallback = kj_is_for_plain(*specialization);
  return KJIT_OK;
}

/* Finds or compiles a call's code. In a context that compiles for other machines, a call with large
 * results also compiles the code for small results. The code for small results is needed because
 * the other machine may have no compiler, and its calls may have results of any size. */
static kjit_status find_specialization(kj_call *call, kj_diagnostics *diagnostics,
                                       kjit_specialization **specialization)
{
  KJ_TRY(find_one(call, diagnostics, specialization));
  if (!call->device->is_target || !kj_drop_large(call)) return KJIT_OK;
  kj_release(*specialization, false);
  return find_one(call, diagnostics, specialization);
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
  const kj_code *code = &(*specialization)->code;
  kjit_status status = kj_check_limits(call, code, diagnostics);
  if (call->has_read_only && status == KJIT_OK)
    status = kj_check_writes(call, arguments, code, diagnostics);
  if (status != KJIT_OK) kj_release(*specialization, false);
  return status;
}

/* Records that this thread has launched the specialization last. */
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
  /* another thread may destroy the context after this line */
  kj_count_up(&context->launches[own].ended, own);
  return status;
}
