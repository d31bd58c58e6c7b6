/* The specializations of a kernel: a table that any thread reads without a lock, and the rule that
 * a key is compiled once however many threads ask for it.
 *
 * Slots of a table only ever go from empty to an entry, and entries live as long as the kernel: a
 * reader needs no more than acquire loads. A table that becomes too full is copied; readers may
 * still be in the old one, so that it is kept. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "code/key.h"
#include "code/specialization.h"

struct kj_table {
  kj_table *previous;
  size_t capacity, count; /* capacity: a power of two */
  _Atomic(kjit_specialization *) slots[];
};

enum { FIRST_CAPACITY = KJ_SIZE(16, 2) };

/* ---- the table ---- */

static kjit_specialization *find(const kjit_kernel *kernel, const uint64_t *key, uint32_t count,
                                 uint64_t hash)
{
  const kj_table *table = atomic_load_explicit(&kernel->table, memory_order_acquire);
  if (!table) return NULL;
  for (size_t i = hash & (table->capacity - 1);; i = (i + 1) & (table->capacity - 1)) {
    kjit_specialization *entry = atomic_load_explicit(&table->slots[i], memory_order_acquire);
    if (!entry) return NULL;
    if (entry->hash == hash && entry->key_count == count &&
        !memcmp(entry->key, key, count * sizeof *key))
      return entry;
  }
}

kjit_specialization *kj_look_up(const kjit_kernel *kernel, const uint64_t *key, uint32_t count,
                                uint64_t hash)
{
  kjit_specialization *entry = find(kernel, key, count, hash);
  return entry && kj_hold(entry) ? entry : NULL;
}

static kjit_specialization *better_of(kjit_specialization *a, kjit_specialization *b)
{
  return !a || kj_count_facts(b->key, b->key_count) > kj_count_facts(a->key, a->key_count) ? b : a;
}

kjit_specialization *kj_look_up_general(const kj_call *call, uint32_t *variants)
{
  const kj_table *table = atomic_load_explicit(&call->kernel->table, memory_order_acquire);
  kjit_specialization *best = NULL;
  *variants = 0;
  for (size_t i = 0; table && i < table->capacity; i++) {
    kjit_specialization *entry = atomic_load_explicit(&table->slots[i], memory_order_acquire);
    if (!entry || entry->key_count != call->key_count ||
        atomic_load_explicit(&entry->state, memory_order_acquire) == KJ_FAILED)
      continue;
    kj_key_match match = kj_match_key(call->kernel, entry->key, call->key, call->key_count);
    *variants += match != KJ_KEY_OTHER;
    if (match == KJ_KEY_SERVES &&
        atomic_load_explicit(&entry->state, memory_order_acquire) == KJ_READY)
      best = better_of(best, entry);
  }
  return best && kj_hold(best) ? best : NULL;
}

static void place(kj_table *table, kjit_specialization *entry)
{
  size_t i = entry->hash & (table->capacity - 1);
  while (atomic_load_explicit(&table->slots[i], memory_order_relaxed))
    i = (i + 1) & (table->capacity - 1);
  atomic_store_explicit(&table->slots[i], entry, memory_order_release);
  table->count++;
}

/* Under kernel->mutex. NULL: out of memory. */
static kj_table *make_room(kjit_kernel *kernel)
{
  kj_table *table = atomic_load(&kernel->table);
  if (table && table->count * 2 < table->capacity) return table;
  size_t capacity = table ? table->capacity * 2 : FIRST_CAPACITY;
  kj_table *larger = calloc(1, sizeof *larger + capacity * sizeof *larger->slots);
  if (!larger) return NULL;
  larger->capacity = capacity;
  larger->previous = table;
  for (size_t i = 0; table && i < table->capacity; i++) {
    kjit_specialization *entry = atomic_load(&table->slots[i]);
    if (entry) place(larger, entry);
  }
  atomic_store_explicit(&kernel->table, larger, memory_order_release);
  return larger;
}

/* ---- entries ---- */

static kjit_specialization *make_entry(kj_call *call, uint64_t hash)
{
  kjit_specialization *entry = calloc(1, sizeof *entry + call->key_count * sizeof *entry->key);
  if (!entry) return NULL;
  entry->kernel = call->kernel;
  entry->hash = hash;
  entry->key_count = call->key_count;
  memcpy(entry->key, call->key, call->key_count * sizeof *entry->key);
  atomic_init(&entry->state, KJ_FAILED); /* whoever comes first takes it on */
  pthread_mutex_init(&entry->mutex, NULL);
  pthread_cond_init(&entry->changed, NULL);
  return entry;
}

static void free_entry(kjit_specialization *entry)
{
  kj_forget_loaded(entry);
  kj_unload_code(entry);
  kj_free_texts(entry);
  kj_free_diagnostics(&entry->failure);
  free(atomic_load(&entry->learned));
  pthread_mutex_destroy(&entry->mutex);
  pthread_cond_destroy(&entry->changed);
  free(entry);
}

/* The entry of the call's key, made where there is none. */
static kjit_specialization *get_entry(kj_call *call, uint64_t hash)
{
  kjit_kernel *kernel = call->kernel;
  kjit_specialization *entry = find(kernel, call->key, call->key_count, hash);
  if (entry) return entry;
  pthread_mutex_lock(&kernel->mutex);
  entry = find(kernel, call->key, call->key_count, hash);
  kj_table *table = entry ? NULL : make_room(kernel);
  if (table && (entry = make_entry(call, hash))) place(table, entry);
  pthread_mutex_unlock(&kernel->mutex);
  return entry;
}

void kj_free_specializations(kjit_kernel *kernel)
{
  kj_table *table = atomic_load(&kernel->table);
  for (size_t i = 0; table && i < table->capacity; i++) {
    kjit_specialization *entry = atomic_load(&table->slots[i]);
    if (entry) free_entry(entry);
  }
  if (table && kernel->context->runtime) kj_unload_listed(kernel->context->runtime);
  while (table) {
    kj_table *previous = table->previous;
    free(table);
    table = previous;
  }
  atomic_store(&kernel->table, NULL);
}

/* ---- one compilation for many callers ---- */

static void copy_diagnostics(const kj_diagnostics *from, kj_diagnostics *to)
{
  for (size_t i = 0; i < from->count; i++) {
    const kjit_diagnostic *item = &from->items[i];
    size_t known = to->count;
    kj_report(to, NULL, (kj_location){ 0 }, item->severity, item->status, "%s", item->message);
    if (to->count == known || !item->file) continue;
    to->items[known].file = strdup(item->file);
    to->items[known].line = item->line;
    to->items[known].column = item->column;
    to->items[known].source_line = item->source_line ? strdup(item->source_line) : NULL;
  }
  if (to->status == KJIT_OK) to->status = from->status;
}

/* False: out of memory. A sealed kernel knows only what is listed. */
static bool remember_order(kjit_kernel *kernel, kjit_specialization *entry)
{
  pthread_mutex_lock(&kernel->mutex);
  if (!entry->is_listed && kernel->order_count == kernel->order_capacity) {
    size_t wanted = KJ_GROWN(kernel->order_capacity, 8);
    kjit_specialization **grown = realloc(kernel->order, wanted * sizeof *grown);
    if (grown) {
      kernel->order = grown;
      kernel->order_capacity = wanted;
    }
  }
  if (!entry->is_listed && kernel->order_count < kernel->order_capacity) {
    kernel->order[kernel->order_count++] = entry;
    entry->is_listed = true;
  }
  bool is_listed = entry->is_listed;
  pthread_mutex_unlock(&kernel->mutex);
  return is_listed;
}

/* No lock is held while compiling. */
kjit_status kj_compile_entry(kj_call *call, kjit_specialization *entry, kj_diagnostics *diagnostics)
{
  ki_counters *counters = &call->kernel->context->counters;
  uint64_t start = kj_clock_ns();
  kjit_status status = kj_compile_call(call, entry, diagnostics);
  bool is_compiled = !entry->is_from_disk && !entry->is_imported;
  if (is_compiled)
    atomic_fetch_add_explicit(&counters->compile_time_ns, kj_clock_ns() - start,
                              memory_order_relaxed);
  if (status == KJIT_OK && is_compiled)
    atomic_fetch_add_explicit(&counters->compilations, 1, memory_order_relaxed);
  if (status == KJIT_OK && !remember_order(call->kernel, entry)) {
    status = kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
    kj_unload_code(entry);
  }
  pthread_mutex_lock(&entry->mutex);
  if (status != KJIT_OK) copy_diagnostics(diagnostics, &entry->failure);
  else entry->is_hopeless = false;
  atomic_store_explicit(&entry->state, status == KJIT_OK ? KJ_READY : KJ_FAILED,
                        memory_order_release);
  pthread_cond_broadcast(&entry->changed);
  pthread_mutex_unlock(&entry->mutex);
  if (status == KJIT_OK) kj_note_loaded(entry);
  return status;
}

void kj_abandon_entry(kjit_specialization *entry)
{
  pthread_mutex_lock(&entry->mutex);
  entry->is_unreported = false;
  atomic_store_explicit(&entry->state, KJ_FAILED, memory_order_release);
  pthread_cond_broadcast(&entry->changed);
  pthread_mutex_unlock(&entry->mutex);
}

/* Under entry->mutex. */
static void begin_attempt(kjit_specialization *entry)
{
  entry->attempt++;
  entry->is_unreported = false;
  kj_free_diagnostics(&entry->failure);
  atomic_store(&entry->state, KJ_PENDING);
}

void kj_improve_later(kj_call *call, uint64_t hash)
{
  kjit_specialization *entry = get_entry(call, hash);
  if (!entry || atomic_load_explicit(&entry->state, memory_order_acquire) != KJ_FAILED) return;
  pthread_mutex_lock(&entry->mutex);
  bool begins = atomic_load(&entry->state) == KJ_FAILED && !entry->is_hopeless;
  if (begins) begin_attempt(entry);
  if (begins) entry->is_hopeless = true; /* until it has succeeded */
  pthread_mutex_unlock(&entry->mutex);
  if (begins && !kj_compile_later(call, entry)) kj_abandon_entry(entry);
}

/* A failure in the background is reported to the next launch of the key; the one after that tries
 * again. */
kjit_status kj_specialize_later(kj_call *call, uint64_t hash, kj_diagnostics *diagnostics,
                                kjit_specialization **specialization)
{
  kjit_specialization *entry = get_entry(call, hash);
  if (!entry) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  *specialization = entry;
  pthread_mutex_lock(&entry->mutex);
  int state = atomic_load(&entry->state);
  bool reports = state == KJ_FAILED && entry->is_unreported,
       begins = state == KJ_FAILED && !reports;
  if (reports) copy_diagnostics(&entry->failure, diagnostics);
  if (reports) entry->is_unreported = false;
  if (begins) begin_attempt(entry);
  if (begins) entry->is_unreported = true; /* whatever comes of it */
  pthread_mutex_unlock(&entry->mutex);
  if (state == KJ_READY) return KJIT_OK;
  if (reports) return diagnostics->status;
  if (!begins || kj_compile_later(call, entry)) return KJIT_NOT_READY;
  kj_abandon_entry(entry);
  return kj_error(diagnostics, KJIT_ERROR_MEMORY,
                  "out of memory, or the system gives no thread to compile on");
}

/* Under entry->mutex, which is let go meanwhile. A job that is still queued is done here. Whoever
 * began the attempt may be about to queue it: a thread that does jobs itself looks again, since no
 * other may be left to do it. */
static void wait_for_attempt(kj_runtime *runtime, kjit_specialization *entry, uint64_t attempt)
{
  enum { LOOK_AGAIN_NS = 5000000, SECOND_NS = 1000000000 };
  bool is_worker = kj_is_in_background(runtime), has_looked = false;
  while (atomic_load(&entry->state) == KJ_PENDING && entry->attempt == attempt) {
    if (!has_looked || is_worker) {
      pthread_mutex_unlock(&entry->mutex);
      kj_hurry(runtime, entry);
      pthread_mutex_lock(&entry->mutex);
      has_looked = true;
      if (atomic_load(&entry->state) != KJ_PENDING || entry->attempt != attempt) return;
    }
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += LOOK_AGAIN_NS;
    if (until.tv_nsec >= SECOND_NS) until.tv_nsec -= SECOND_NS, until.tv_sec++;
    if (is_worker) pthread_cond_timedwait(&entry->changed, &entry->mutex, &until);
    else pthread_cond_wait(&entry->changed, &entry->mutex);
  }
}

/* Whoever waited for an attempt gets its outcome. One who comes after a failure tries again: what
 * failed may have been the machine. */
kjit_status kj_specialize(kj_call *call, uint64_t hash, kj_diagnostics *diagnostics,
                          kjit_specialization **specialization)
{
  kjit_specialization *entry = get_entry(call, hash);
  if (!entry) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  *specialization = entry;
  pthread_mutex_lock(&entry->mutex);
  int state = atomic_load(&entry->state);
  if (state == KJ_FAILED) {
    begin_attempt(entry);
    pthread_mutex_unlock(&entry->mutex);
    return kj_compile_entry(call, entry, diagnostics);
  }
  uint64_t attempt = entry->attempt;
  wait_for_attempt(call->runtime, entry, attempt);
  bool is_settled = atomic_load(&entry->state) == KJ_READY || entry->attempt == attempt;
  if (atomic_load(&entry->state) == KJ_FAILED && is_settled)
    copy_diagnostics(&entry->failure, diagnostics);
  kjit_status status = atomic_load(&entry->state) == KJ_READY ? KJIT_OK : diagnostics->status;
  pthread_mutex_unlock(&entry->mutex);
  /* another attempt began between this one's end and this thread's waking: join that one */
  return is_settled ? status : kj_specialize(call, hash, diagnostics, specialization);
}
