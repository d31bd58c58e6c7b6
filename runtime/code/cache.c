/* Specializations of a kernel: their keys, a hash table that threads read without a lock, and the
 * rule that each key is compiled once, however many threads request it.
 *
 * A key consists of 64-bit words and contains everything that the code may depend on. It contains
 * only facts that the kernel can use.
 *
 * A slot of a table changes only once, from empty to an entry, and entries live as long as the
 * kernel, so acquire loads are enough for readers. A table that becomes too full is copied to a
 * larger one. Readers may still use the old table, so it is kept until the kernel is destroyed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "code/specialization.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

/* ---- the key ---- */

/* In key[1], the call facts are the low bits and bit BLOCK_AT tells whether the block is known. The
 * facts of an array are one byte of the array's word, from bit FACTS_AT on. */
enum { BLOCK_AT = 32, FACTS_AT = 24 };
_Static_assert((int)KJ_CALL_FACT_COUNT <= (int)BLOCK_AT && KJ_ARRAY_FACT_COUNT <= 8,
               "the key has room");

size_t kj_key_capacity(const kjit_kernel *kernel)
{
  size_t pairs = (size_t)kernel->parameter_count * kernel->parameter_count / 2;
  size_t words = KJ_KEY_FIXED_WORDS + 3 * (size_t)kernel->parameter_count + pairs / 32 + 1;
  return words + words % 2; /* even, so that the data after the key is aligned to 16 bytes */
}

static void add_argument(kj_call *call, const kj_bound *bound)
{
  uint64_t *key = call->key;
  uint32_t count = call->key_count;
  key[count++] = (uint64_t)bound->kind | (uint64_t)bound->rank << 8 |
                 (uint64_t)bound->layout << 16 | (uint64_t)bound->facts << FACTS_AT |
                 (uint64_t)bound->type << 32;
  if (bound->kind == KJ_ARGUMENT_FUNCTION) key[count++] = (uint64_t)(uintptr_t)bound->function;
  if (bound->kind == KJ_ARGUMENT_CONST) {
    key[count++] = (uint64_t)bound->value.integer;
    key[count++] = (uint64_t)(bound->value.integer >> 64);
  }
  call->key_count = count;
}

bool kj_has_relation(const kj_call *call, uint32_t i, uint32_t j)
{
  const kj_parameter_row *a = &call->kernel->parameters[i], *b = &call->kernel->parameters[j];
  bool are_arrays =
    call->bound[i].kind == KJ_ARGUMENT_ARRAY && call->bound[j].kind == KJ_ARGUMENT_ARRAY;
  return are_arrays && (a->is_written || b->is_written) && !a->is_general && !b->is_general &&
         !call->is_general;
}

/* Adds two bits for each pair of arrays of which the kernel writes at least one. */
static void add_relations(kj_call *call)
{
  const kjit_kernel *kernel = call->kernel;
  uint64_t word = 0;
  uint32_t used = 0;
  for (uint32_t i = 0; i < kernel->parameter_count; i++) {
    if (call->bound[i].kind != KJ_ARGUMENT_ARRAY) continue;
    for (uint32_t j = i + 1; j < kernel->parameter_count; j++) {
      /* if an array is general, the bits stay 0 (ANY) */
      if (call->bound[j].kind != KJ_ARGUMENT_ARRAY ||
          !(kernel->parameters[i].is_written || kernel->parameters[j].is_written))
        continue;
      if (kj_has_relation(call, i, j))
        word |= (uint64_t)kj_relate(&call->bound[i], &call->bound[j]) << used;
      used += 2;
      if (used < 64) continue;
      call->key[call->key_count++] = word;
      word = 0;
      used = 0;
    }
  }
  if (used) call->key[call->key_count++] = word;
}

static bool is_programmatic(const kj_call *call)
{
  enum { FROM = 90 };
  return (call->config->flags & KJIT_LAUNCH_PROGRAMMATIC) &&
         call->device->info.compute_capability >= FROM && call->device->has_launch_attributes;
}

uint32_t kj_find_facts_of(const kj_call *call, bool has_small_offsets)
{
  uint32_t facts = kj_find_call_facts(
    (kj_call_place){ .has_small_offsets = has_small_offsets,
                     .blocks = (uint64_t)call->grid[0] * call->grid[1] * call->grid[2],
                     .threads = (uint64_t)call->block[0] * call->block[1] * call->block[2],
                     .is_programmatic = is_programmatic(call) });
  return call->is_general ? facts & ~(uint32_t)KJ_CALL_FACTS : facts;
}

void kj_make_key(kj_call *call)
{
  const kjit_kernel *kernel = call->kernel;
  const kjit_device *device = call->device;
  bool knows_block = kj_knows_block(kernel, device), has_array = false, has_small_offsets = true;
  call->key_count = KJ_KEY_FIXED_WORDS;
  for (uint32_t i = 0; i < kernel->parameter_count; i++) {
    add_argument(call, &call->bound[i]);
    if (call->bound[i].kind != KJ_ARGUMENT_ARRAY) continue;
    has_array = true;
    has_small_offsets =
      has_small_offsets && call->bound[i].offsets_fit && !kernel->parameters[i].is_general;
  }
  if (has_array) add_relations(call);
  call->key[0] = (uint64_t)device->info.kind | (uint64_t)(uint32_t)device->info.ordinal << 8 |
                 (uint64_t)atomic_load_explicit(&device->generation, memory_order_relaxed) << 32;
  call->facts = kj_find_facts_of(call, has_small_offsets);
  call->key[1] = (uint64_t)call->facts | (uint64_t)knows_block << BLOCK_AT;
  call->key[2] = knows_block ? (uint64_t)call->block[0] | (uint64_t)call->block[1] << 32 : 0;
  call->key[3] = knows_block ? call->block[2] : 0;
  KJ_ASSERT(call->key_count <= kj_key_capacity(kernel));
  KJ_ASSERT(!(call->facts & ~(((uint32_t)1 << KJ_CALL_FACT_COUNT) - 1)));
}

void kj_drop_facts(kj_call *call)
{
  call->is_general = true;
  for (uint32_t i = 0; i < call->kernel->parameter_count; i++)
    if (call->bound[i].kind == KJ_ARGUMENT_ARRAY) call->bound[i].facts = 0;
}

/* ---- keys that differ in facts only ---- */

/* How a known key compares with the key of a call that has the same number of words. */
typedef enum key_match {
  KEY_OTHER,
  KEY_SAME_TYPES, /* the keys differ in facts only */
  KEY_SERVES      /* the keys differ in facts only, and the call has all facts of the known key */
} key_match;

static const uint64_t facts_mask = (uint64_t)0xff << FACTS_AT;

/* Returns how many further words follow the first word of an argument. */
static uint32_t more_words(uint64_t word)
{
  uint8_t kind = (uint8_t)word;
  return kind == KJ_ARGUMENT_FUNCTION ? 1 : kind == KJ_ARGUMENT_CONST ? 2 : 0;
}

/* Compares relations, two bits each. A wanted relation of ANY matches every given relation. */
static bool has_relations(uint64_t wanted, uint64_t given)
{
  const uint64_t low = 0x5555555555555555u;
  uint64_t is_some = (wanted | wanted >> 1) & low, differs = wanted ^ given;
  return !((differs | differs >> 1) & low & is_some);
}

static key_match match_key(const kjit_kernel *kernel, const uint64_t *known, const uint64_t *key,
                           uint32_t count)
{
  uint64_t facts = KJ_CALL_FACTS, known_flags = known[1], flags = key[1];
  if (known[0] != key[0] || ((known_flags ^ flags) & ~facts) || known[2] != key[2] ||
      known[3] != key[3])
    return KEY_OTHER;
  bool has_facts = !(known_flags & ~flags & facts);
  uint32_t at = KJ_KEY_FIXED_WORDS;
  for (uint32_t i = 0; i < kernel->parameter_count; i++, at++) {
    if ((known[at] ^ key[at]) & ~facts_mask) return KEY_OTHER;
    has_facts = has_facts && !(known[at] & ~key[at] & facts_mask);
    for (uint32_t more = more_words(key[at]); more; more--)
      if (at++, known[at] != key[at]) return KEY_OTHER;
  }
  KJ_ASSERT(at <= count); /* the remaining words are relations */
  for (; at < count; at++) has_facts = has_facts && has_relations(known[at], key[at]);
  return has_facts ? KEY_SERVES : KEY_SAME_TYPES;
}

/* Returns a number that orders keys for the same types by how many facts they have. */
static uint32_t count_facts(const uint64_t *key, uint32_t count)
{
  uint32_t facts = (uint32_t)__builtin_popcountll(key[1] & KJ_CALL_FACTS);
  for (uint32_t at = KJ_KEY_FIXED_WORDS; at < count; at++)
    /* bits of types and values count, too, but are the same in all compared keys */
    facts += (uint32_t)__builtin_popcountll(key[at]);
  return facts;
}

uint64_t kj_hash_key(const uint64_t *key, uint32_t count)
{
  return XXH3_64bits(key, count * sizeof *key);
}

/* ---- the table ---- */

struct kj_table {
  kj_table *previous;
  size_t capacity, count; /* capacity: a power of two */
  _Atomic(kjit_specialization *) slots[];
};

/* A search ends at an empty slot, so a table must have at least one. */
static void check_table(const kj_table *table)
{
  KJ_ASSERT(table->capacity && (table->capacity & (table->capacity - 1)) == 0);
  KJ_ASSERT(table->count < table->capacity);
}

enum { FIRST_CAPACITY = KJ_SIZE(16, 2) };

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
  return !a || count_facts(b->key, b->key_count) > count_facts(a->key, a->key_count) ? b : a;
}

kjit_specialization *kj_look_up_general(const kj_call *call, uint32_t *variants)
{
  const kj_table *table = atomic_load_explicit(&call->kernel->table, memory_order_acquire);
  kjit_specialization *best = NULL;
  bool is_made = false;
  *variants = 0;
  for (size_t i = 0; table && i < table->capacity; i++) {
    kjit_specialization *entry = atomic_load_explicit(&table->slots[i], memory_order_acquire);
    if (!entry || entry->key_count != call->key_count ||
        atomic_load_explicit(&entry->state, memory_order_acquire) == KJ_FAILED)
      continue;
    key_match match = match_key(call->kernel, entry->key, call->key, call->key_count);
    *variants += match != KEY_OTHER;
    is_made = is_made || !memcmp(entry->key, call->key, call->key_count * sizeof *call->key);
    if (match == KEY_SERVES &&
        atomic_load_explicit(&entry->state, memory_order_acquire) == KJ_READY)
      best = better_of(best, entry);
  }
  if (is_made) *variants = 0;
  return best && kj_hold(best) ? best : NULL;
}

static void place(kj_table *table, kjit_specialization *entry)
{
  size_t i = entry->hash & (table->capacity - 1);
  KJ_ASSERT(entry->hash == kj_hash_key(entry->key, entry->key_count));
  while (atomic_load_explicit(&table->slots[i], memory_order_relaxed))
    i = (i + 1) & (table->capacity - 1);
  atomic_store_explicit(&table->slots[i], entry, memory_order_release);
  table->count++;
  check_table(table);
}

/* Returns a table with space for one more entry, or NULL if out of memory. The caller holds
 * kernel->mutex. */
static kj_table *make_room(kjit_kernel *kernel)
{
  kj_table *table = atomic_load(&kernel->table);
  KJ_ASSERT(kj_is_locked_here(&kernel->mutex));
  if (table) check_table(table);
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
  KJ_ASSERT(!table || larger->count == table->count);
  atomic_store_explicit(&kernel->table, larger, memory_order_release);
  return larger;
}

/* ---- entries ---- */

static kjit_specialization *make_entry(kj_call *call, uint64_t hash)
{
  kjit_specialization *entry = calloc(1, sizeof *entry + call->key_count * sizeof *entry->key);
  if (!entry) return NULL;
  bool is_queued = call->device->operations->is_queued;
  if (!is_queued && !(entry->cost = calloc(1, sizeof *entry->cost))) {
    free(entry);
    return NULL;
  }
  entry->kernel = call->kernel;
  entry->hash = hash;
  entry->key_count = call->key_count;
  memcpy(entry->key, call->key, call->key_count * sizeof *entry->key);
  atomic_init(&entry->state, KJ_FAILED); /* the first thread that needs the code compiles it */
  pthread_mutex_init(&entry->mutex, NULL);
  pthread_cond_init(&entry->changed, NULL);
  return entry;
}

/* For assertions: returns whether no launch and no graph uses the code. */
static bool is_unused(const kjit_specialization *entry)
{
  uint64_t begun = 0, ended = 0;
  for (uint32_t i = 0; i < KJ_SLOTS; i++) {
    ended += atomic_load(&entry->holds[i].launched) + atomic_load(&entry->holds[i].passed);
    begun += atomic_load(&entry->holds[i].begun);
  }
  return begun == ended && !atomic_load(&entry->pins);
}

static void free_entry(kjit_specialization *entry)
{
  KJ_ASSERT(atomic_load(&entry->state) != KJ_PENDING && is_unused(entry));
  kj_forget_loaded(entry);
  kj_unload_code(entry);
  kj_free_texts(entry);
  kj_free_diagnostics(&entry->failure);
  free(atomic_load(&entry->learned));
  free(entry->cost);
  kj_destroy_mutex(&entry->mutex);
  pthread_cond_destroy(&entry->changed);
  free(entry);
}

/* Returns the entry for the call's key and creates it if necessary. */
static kjit_specialization *get_entry(kj_call *call, uint64_t hash)
{
  kjit_kernel *kernel = call->kernel;
  kjit_specialization *entry = find(kernel, call->key, call->key_count, hash);
  if (entry) return entry;
  kj_lock(&kernel->mutex, KJ_LOCK_KERNEL);
  entry = find(kernel, call->key, call->key_count, hash);
  kj_table *table = entry ? NULL : make_room(kernel);
  if (table && (entry = make_entry(call, hash))) place(table, entry);
  kj_unlock(&kernel->mutex, KJ_LOCK_KERNEL);
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

/* ---- one compilation for all threads that wait for the same key ---- */

void kj_copy_diagnostics(const kj_diagnostics *from, kj_diagnostics *to)
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

/* Adds the entry to kernel->order, because a sealed kernel accepts only listed entries. Returns
 * false if out of memory. */
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

/* Begins a profiler range for the time in which the caller waits for code, compiled or loaded. */
static void begin_code_range(const kjit_kernel *kernel)
{
  char name[256];
  snprintf(name, sizeof name, "kjit: code of %s", kernel->function->decl->name);
  (void)kjit_begin_range(kernel->context, name);
}

/* Compiles or loads the code of an entry that this thread has set to KJ_PENDING, and wakes the
 * waiting threads. The caller holds no lock. */
kjit_status kj_compile_entry(kj_call *call, kjit_specialization *entry, kj_diagnostics *diagnostics)
{
  ki_counters *counters = &call->kernel->context->counters;
  uint64_t start = kj_clock_ns();
  kj_assert_no_locks();
  KJ_ASSERT(atomic_load(&entry->state) == KJ_PENDING && entry->kernel == call->kernel);
  begin_code_range(call->kernel);
  kjit_status status = kj_compile_call(call, entry, diagnostics);
  kjit_end_range(call->kernel->context);
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
  kj_lock(&entry->mutex, KJ_LOCK_SPECIALIZATION);
  /* only the thread that began the attempt ends it */
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

void kj_abandon_entry(kjit_specialization *entry)
{
  kj_lock(&entry->mutex, KJ_LOCK_SPECIALIZATION);
  KJ_ASSERT(atomic_load(&entry->state) == KJ_PENDING);
  entry->is_unreported = entry->is_hopeless = false;
  atomic_store_explicit(&entry->state, KJ_FAILED, memory_order_release);
  pthread_cond_broadcast(&entry->changed);
  kj_unlock(&entry->mutex, KJ_LOCK_SPECIALIZATION);
}

/* The caller holds entry->mutex. */
static void begin_attempt(kjit_specialization *entry)
{
  KJ_ASSERT(kj_is_locked_here(&entry->mutex) && atomic_load(&entry->state) == KJ_FAILED);
  KJ_ASSERT(!entry->failure_slot && !entry->loaded && !entry->print_source);
  entry->attempt++;
  entry->is_unreported = false;
  kj_free_diagnostics(&entry->failure);
  atomic_store(&entry->state, KJ_PENDING);
}

void kj_upgrade_later(kj_call *call, uint64_t hash)
{
  kjit_specialization *entry = get_entry(call, hash);
  if (!entry || atomic_load_explicit(&entry->state, memory_order_acquire) != KJ_FAILED) return;
  kj_lock(&entry->mutex, KJ_LOCK_SPECIALIZATION);
  bool begins = atomic_load(&entry->state) == KJ_FAILED && !entry->is_hopeless;
  if (begins) begin_attempt(entry);
  if (begins) entry->is_hopeless = true; /* cleared when a compilation succeeds */
  kj_unlock(&entry->mutex, KJ_LOCK_SPECIALIZATION);
  if (begins && !kj_compile_later(call, entry)) kj_abandon_entry(entry);
}

/* Waits for a compilation that another thread started. The caller holds entry->mutex; the wait
 * releases it. If the job is still queued, this thread runs it. The other thread may not have
 * queued the job yet, so a background thread checks again every LOOK_AGAIN_NS, because it may be
 * the only thread left to run the job. */
static void wait_for_attempt(kj_runtime *runtime, kjit_specialization *entry, uint64_t attempt)
{
  enum { LOOK_AGAIN_NS = 5000000, SECOND_NS = 1000000000 };
  bool is_worker = kj_is_in_background(runtime), has_looked = false;
  KJ_ASSERT(kj_is_locked_here(&entry->mutex));
  while (atomic_load(&entry->state) == KJ_PENDING && entry->attempt == attempt) {
    if (!has_looked || is_worker) {
      kj_unlock(&entry->mutex, KJ_LOCK_SPECIALIZATION);
      kj_hurry(runtime, entry);
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

/* Compiles the entry or waits for the current attempt and returns its status. After a failed
 * attempt, the next caller tries again, because the cause may have been temporary. */
static kjit_status join_attempt(kj_call *call, uint64_t hash, kj_diagnostics *diagnostics,
                                kjit_specialization **specialization)
{
  kjit_specialization *entry = get_entry(call, hash);
  if (!entry) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  *specialization = entry;
  kj_lock(&entry->mutex, KJ_LOCK_SPECIALIZATION);
  int state = atomic_load(&entry->state);
  if (state == KJ_FAILED) {
    begin_attempt(entry);
    kj_unlock(&entry->mutex, KJ_LOCK_SPECIALIZATION);
    return kj_compile_entry(call, entry, diagnostics);
  }
  uint64_t attempt = entry->attempt;
  wait_for_attempt(call->runtime, entry, attempt);
  /* An abandoned attempt has no message. */
  bool is_settled = atomic_load(&entry->state) == KJ_READY ||
                    (entry->attempt == attempt && entry->failure.status != KJIT_OK);
  if (atomic_load(&entry->state) == KJ_FAILED && is_settled)
    kj_copy_diagnostics(&entry->failure, diagnostics);
  kjit_status status = atomic_load(&entry->state) == KJ_READY ? KJIT_OK : diagnostics->status;
  kj_unlock(&entry->mutex, KJ_LOCK_SPECIALIZATION);
  /* Try again: the attempt was abandoned, or another one began before this thread woke up. */
  return is_settled ? status : join_attempt(call, hash, diagnostics, specialization);
}

/* Starts the compilation on a background thread. The next launch with the key reports a failure,
 * and the launch after that tries again. */
kjit_status kj_specialize_later(kj_call *call, uint64_t hash, kj_diagnostics *diagnostics,
                                kjit_specialization **specialization)
{
  kjit_specialization *entry = get_entry(call, hash);
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
                  "out of memory, or the system gives no thread to compile on");
}

/* Disables cancellation: a cancelled thread would keep its locks and never end its attempt. */
kjit_status kj_specialize(kj_call *call, uint64_t hash, kj_diagnostics *diagnostics,
                          kjit_specialization **specialization)
{
  int state;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
  kjit_status status = join_attempt(call, hash, diagnostics, specialization);
  pthread_setcancelstate(state, NULL);
  return status;
}
