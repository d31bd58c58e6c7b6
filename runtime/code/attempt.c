/* Attempts to compile a specialization. This file ensures that each key is compiled once, however
 * many threads request it. It also manages plain code (kjit_plain_code), which launches run until
 * the best code is compiled. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "code/specialization.h"

void kj_copy_diagnostics(const kj_diagnostics *from, kj_diagnostics *to)
{
  for (size_t i = 0; i < from->count; i++) kj_add_diagnostic(to, &from->items[i]);
  if (to->status == KJIT_OK) to->status = from->status;
}

/* Adds the specialization to kernel->order, because a sealed kernel accepts only specializations in
 * this list. Returns false if out of memory. */
static bool remember_order(kjit_kernel *kernel, kjit_specialization *entry)
{
  kj_lock(&kernel->mutex, KJ_LOCK_KERNEL);
  if (!entry->is_listed && kernel->order_count == kernel->order_capacity) {
    size_t wanted = KJ_GROWN(kernel->order_capacity, 8);
    kjit_specialization **grown = realloc(kernel->order, wanted * sizeof *grown);
    if (grown) {
      kernel->order = grown;
      kernel->order_capacity = wanted;
    }
  }
  KJ_ASSERT(kernel->order_count <= kernel->order_capacity && entry->kernel == kernel);
  if (!entry->is_listed && kernel->order_count < kernel->order_capacity) {
    kernel->order[kernel->order_count++] = entry;
    entry->is_listed = true;
  }
  bool is_listed = entry->is_listed;
  kj_unlock(&kernel->mutex, KJ_LOCK_KERNEL);
  return is_listed;
}

/* Begins a profiler range for the time in which the caller waits until the code is compiled or
 * loaded. */
static void begin_code_range(const kjit_kernel *kernel)
{
  char name[256];
  snprintf(name, sizeof name, "kjit: code of %s", kernel->function->decl->name);
  (void)kjit_begin_range(kernel->context, name);
}

static void count_compilation(kj_call *call, uint64_t start, kjit_status status)
{
  ki_counters *counters = &call->kernel->context->counters;
  atomic_fetch_add_explicit(&counters->compile_time_ns, kj_clock_ns() - start,
                            memory_order_relaxed);
  if (status == KJIT_OK)
    atomic_fetch_add_explicit(&counters->compilations, 1, memory_order_relaxed);
}

/* Ends an attempt with its status and wakes the waiting threads. The caller holds no lock. */
static kjit_status end_attempt(kj_call *call, kjit_specialization *entry, kjit_status status,
                               kj_diagnostics *diagnostics)
{
  if (status == KJIT_OK && !remember_order(call->kernel, entry)) {
    status = kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
    kj_unload_code(entry);
  }
  kj_lock(&entry->mutex, KJ_LOCK_SPECIALIZATION);
  /* only the thread that has begun the attempt ends it */
  KJ_ASSERT(atomic_load(&entry->state) == KJ_PENDING);
  KJ_ASSERT(status != KJIT_OK || entry->device_code.function != KJ_UNLOADED);
  if (status != KJIT_OK) kj_copy_diagnostics(diagnostics, &entry->failure);
  if (status == KJIT_OK || status == KJIT_ERROR_INTERRUPTED) entry->is_hopeless = false;
  atomic_store_explicit(&entry->state, status == KJIT_OK ? KJ_READY : KJ_FAILED,
                        memory_order_release);
  pthread_cond_broadcast(&entry->changed);
  kj_unlock(&entry->mutex, KJ_LOCK_SPECIALIZATION);
  if (status == KJIT_OK) kj_note_loaded(entry);
  return status;
}

/* Begins an attempt: sets the state to PENDING. The caller holds entry->mutex. */
static void begin_attempt(kjit_specialization *entry)
{
  KJ_ASSERT(kj_is_locked_here(&entry->mutex) && atomic_load(&entry->state) == KJ_FAILED);
  KJ_ASSERT(!entry->failure_slot && !entry->loaded && !entry->print_source);
  entry->attempt++;
  entry->is_unreported = false;
  kj_free_diagnostics(&entry->failure);
  atomic_store(&entry->state, KJ_PENDING);
}

/* ---- plain code: it has a specialization of its own, and the call's specialization stays PENDING
 * until a background thread has compiled the best code ---- */

/* Begins an attempt of the specialization for plain code. Returns NULL if this specialization has
 * code already, if another thread is compiling it, or if memory is exhausted. */
static kjit_specialization *begin_plain(const kj_call *call, const kjit_specialization *best)
{
  kjit_specialization *plain = kj_get_plain_entry(call, best);
  if (!plain) return NULL;
  kj_lock(&plain->mutex, KJ_LOCK_SPECIALIZATION);
  bool begins = atomic_load(&plain->state) == KJ_FAILED;
  if (begins) begin_attempt(plain);
  kj_unlock(&plain->mutex, KJ_LOCK_SPECIALIZATION);
  return begins ? plain : NULL;
}

bool kj_suits_plain(const kj_call *call, kj_plain allowed, const kjit_specialization *plain)
{
  /* 0 means that the code has no limit for the number of threads */
  uint32_t most = plain->device_code.max_threads;
  _Static_assert(KJ_PLAIN_NONE < KJ_PLAIN_EQUAL && KJ_PLAIN_EQUAL < KJ_PLAIN_ANY,
                 "a kind includes the kinds before it");
  KJ_ASSERT(plain->plain_kind != KJ_PLAIN_NONE);
  if (plain->plain_kind > allowed) return false;
  return !most || (uint64_t)call->block[0] * call->block[1] * call->block[2] <= most;
}

/* Loads the plain code that was compiled for a PENDING specialization, and queues the compilation
 * of its best code. Returns false if the plain code cannot be used. */
static bool hand_over(kj_call *call, kjit_specialization *entry, kj_diagnostics *diagnostics)
{
  kj_diagnostics own = { 0 };
  kj_code code = entry->code;
  entry->code = (kj_code){ 0 };
  kjit_specialization *plain = begin_plain(call, entry);
  if (!plain) {
    kj_free_code(&code);
    return false;
  }
  plain->plain_kind = call->plain;
  kjit_status status = kj_load_plain(call, plain, &code, &own);
  status = end_attempt(call, plain, status, &own);
  if (status == KJIT_OK) kj_copy_diagnostics(&own, diagnostics);
  kj_free_diagnostics(&own);
  if (status != KJIT_OK || !kj_suits_plain(call, call->plain, plain)) return false;
  kj_lock(&entry->mutex, KJ_LOCK_SPECIALIZATION);
  entry->plain = plain;
  entry->is_hopeless = true; /* cleared when a compilation succeeds */
  pthread_cond_broadcast(&entry->changed);
  kj_unlock(&entry->mutex, KJ_LOCK_SPECIALIZATION);
  call->plain = KJ_PLAIN_NONE;
  if (!kj_compile_later(call, entry)) kj_abandon_entry(entry);
  return true;
}

/* Returns whether a call may run plain code in place of a specialization that has no code yet. The
 * caller holds entry->mutex. */
static bool takes_plain(const kj_call *call, const kjit_specialization *entry)
{
  return entry->plain && atomic_load(&entry->state) != KJ_READY &&
         atomic_load(&entry->plain->state) == KJ_READY &&
         kj_suits_plain(call, call->plain, entry->plain);
}

/* Compiles or loads the code of an entry that this thread has set to KJ_PENDING, and wakes the
 * waiting threads. The caller holds no lock. */
kjit_status kj_compile_entry(kj_call *call, kjit_specialization *entry, kj_diagnostics *diagnostics)
{
  uint64_t start = kj_clock_ns();
  bool is_handed_over = false;
  kj_assert_no_locks();
  KJ_ASSERT(atomic_load(&entry->state) == KJ_PENDING && entry->kernel == call->kernel);
  begin_code_range(call->kernel);
  kjit_status status = kj_compile_call(call, entry, diagnostics);
  if (status == KJIT_OK && entry->code.is_plain) {
    count_compilation(call, start, status);
    is_handed_over = hand_over(call, entry, diagnostics);
    call->plain = KJ_PLAIN_NONE;
    start = kj_clock_ns();
    if (!is_handed_over) status = kj_compile_call(call, entry, diagnostics);
  }
  kjit_end_range(call->kernel->context);
  if (is_handed_over) return KJIT_OK;
  if (!entry->is_from_disk && !entry->is_imported) count_compilation(call, start, status);
  return end_attempt(call, entry, status, diagnostics);
}

void kj_abandon_entry(kjit_specialization *entry)
{
  kj_lock(&entry->mutex, KJ_LOCK_SPECIALIZATION);
  KJ_ASSERT(atomic_load(&entry->state) == KJ_PENDING);
  entry->is_unreported = entry->is_hopeless = false;
  atomic_store_explicit(&entry->state, KJ_FAILED, memory_order_release);
  pthread_cond_broadcast(&entry->changed);
  kj_unlock(&entry->mutex, KJ_LOCK_SPECIALIZATION);
}

void kj_upgrade_later(kj_call *call, uint64_t hash)
{
  kjit_specialization *entry = kj_get_own_entry(call, hash);
  if (!entry || atomic_load_explicit(&entry->state, memory_order_acquire) != KJ_FAILED) return;
  kj_lock(&entry->mutex, KJ_LOCK_SPECIALIZATION);
  bool begins = atomic_load(&entry->state) == KJ_FAILED && !entry->is_hopeless;
  if (begins) begin_attempt(entry);
  if (begins) entry->is_hopeless = true; /* cleared when a compilation succeeds */
  kj_unlock(&entry->mutex, KJ_LOCK_SPECIALIZATION);
  if (begins && !kj_compile_later(call, entry)) kj_abandon_entry(entry);
}

/* Waits for a compilation that another thread started. The caller holds entry->mutex; the wait
 * releases it. If the job is still queued, this thread runs it. The other thread may queue the job
 * after this check. If this thread is a background thread, it may then be the only thread that can
 * run the job, so it looks for the job again every LOOK_AGAIN_NS. */
static void wait_for_attempt(const kj_call *call, kjit_specialization *entry, uint64_t attempt)
{
  enum { LOOK_AGAIN_NS = 5000000, SECOND_NS = 1000000000 };
  bool is_worker = kj_is_in_background(call->runtime), has_looked = false;
  KJ_ASSERT(kj_is_locked_here(&entry->mutex));
  while (atomic_load(&entry->state) == KJ_PENDING && entry->attempt == attempt &&
         !takes_plain(call, entry)) {
    if (!has_looked || is_worker) {
      kj_unlock(&entry->mutex, KJ_LOCK_SPECIALIZATION);
      kj_hurry(call->runtime, entry);
      kj_lock(&entry->mutex, KJ_LOCK_SPECIALIZATION);
      has_looked = true;
      if (atomic_load(&entry->state) != KJ_PENDING || entry->attempt != attempt) return;
    }
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += LOOK_AGAIN_NS;
    if (until.tv_nsec >= SECOND_NS) until.tv_nsec -= SECOND_NS, until.tv_sec++;
    if (is_worker) pthread_cond_timedwait(&entry->changed, &entry->mutex, &until);
    else kj_wait_for(&entry->changed, &entry->mutex);
  }
}

/* Returns the specialization whose code the call can run: `entry`, or the specialization with its
 * plain code if `entry` has no code yet and the call may run plain code. */
static kjit_specialization *choose_code(const kj_call *call, kjit_specialization *entry)
{
  kj_lock(&entry->mutex, KJ_LOCK_SPECIALIZATION);
  kjit_specialization *chosen = takes_plain(call, entry) ? entry->plain : entry;
  kj_unlock(&entry->mutex, KJ_LOCK_SPECIALIZATION);
  return chosen;
}

/* Compiles the entry or waits for the current attempt and returns its status. After a failed
 * attempt, the next caller tries again, because the cause may have been temporary. */
static kjit_status join_attempt(kj_call *call, uint64_t hash, kj_diagnostics *diagnostics,
                                kjit_specialization **specialization)
{
  kjit_specialization *entry = kj_get_own_entry(call, hash);
  if (!entry) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  *specialization = entry;
  kj_lock(&entry->mutex, KJ_LOCK_SPECIALIZATION);
  int state = atomic_load(&entry->state);
  if (state == KJ_FAILED) {
    const kj_plain plain = call->plain;
    begin_attempt(entry);
    kj_unlock(&entry->mutex, KJ_LOCK_SPECIALIZATION);
    KJ_TRY(kj_compile_entry(call, entry, diagnostics));
    call->plain = plain;
    *specialization = choose_code(call, entry);
    return KJIT_OK;
  }
  uint64_t attempt = entry->attempt;
  wait_for_attempt(call, entry, attempt);
  if (takes_plain(call, entry)) {
    *specialization = entry->plain;
    kj_unlock(&entry->mutex, KJ_LOCK_SPECIALIZATION);
    return KJIT_OK;
  }
  /* An abandoned attempt has no message. */
  bool is_settled = atomic_load(&entry->state) == KJ_READY ||
                    (entry->attempt == attempt && entry->failure.status != KJIT_OK);
  if (atomic_load(&entry->state) == KJ_FAILED && is_settled)
    kj_copy_diagnostics(&entry->failure, diagnostics);
  kjit_status status = atomic_load(&entry->state) == KJ_READY ? KJIT_OK : diagnostics->status;
  kj_unlock(&entry->mutex, KJ_LOCK_SPECIALIZATION);
  /* If the attempt was abandoned, or if another attempt began before this thread woke up, this
   * thread tries again. */
  return is_settled ? status : join_attempt(call, hash, diagnostics, specialization);
}

/* Starts the compilation on a background thread. If the compilation fails, the next launch with the
 * key reports the error, and the launch after it tries again. */
kjit_status kj_specialize_later(kj_call *call, uint64_t hash, kj_diagnostics *diagnostics,
                                kjit_specialization **specialization)
{
  kjit_specialization *entry = kj_get_own_entry(call, hash);
  if (!entry) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  *specialization = entry;
  kj_lock(&entry->mutex, KJ_LOCK_SPECIALIZATION);
  int state = atomic_load(&entry->state);
  bool reports = state == KJ_FAILED && entry->is_unreported,
       begins = state == KJ_FAILED && !reports;
  if (reports) kj_copy_diagnostics(&entry->failure, diagnostics);
  if (reports) entry->is_unreported = false;
  if (begins) begin_attempt(entry);
  if (begins) entry->is_unreported = true; /* cleared by the launch that reports the failure */
  kj_unlock(&entry->mutex, KJ_LOCK_SPECIALIZATION);
  if (state == KJ_READY) return KJIT_OK;
  if (reports) return diagnostics->status;
  if (!begins || kj_compile_later(call, entry)) return KJIT_NOT_READY;
  kj_abandon_entry(entry);
  if (kj_is_background_stopped(call->runtime))
    return join_attempt(call, hash, diagnostics, specialization);
  return kj_error(diagnostics, KJIT_ERROR_MEMORY,
                  "cannot start a compilation: out of memory or too many threads");
}

/* Disables the cancellation of this thread: if it were cancelled, it would keep its locks and never
 * end its attempt. */
kjit_status kj_specialize(kj_call *call, uint64_t hash, kj_diagnostics *diagnostics,
                          kjit_specialization **specialization)
{
  int state;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
  kjit_status status = join_attempt(call, hash, diagnostics, specialization);
  pthread_setcancelstate(state, NULL);
  return status;
}
