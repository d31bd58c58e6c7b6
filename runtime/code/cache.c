/* Specializations of a kernel: their keys, and a hash table that threads read without a lock.
 *
 * A key consists of 64-bit words and contains everything that the code may depend on. Of the facts
 * about the arguments (such as alignment), the key contains only those that the kernel can use.
 *
 * A slot of a table changes only once, from empty to an entry, and entries live as long as the
 * kernel, so acquire loads are enough for readers. A table that becomes too full is copied to a
 * larger table. The old table is kept until the kernel is destroyed, because readers may still use
 * it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "code/specialization.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

/* ---- the key ---- */

/* Layout of key[1]: the low bits are the call facts, bit BLOCK_AT tells whether the block is known,
 * and bit PLAIN_AT marks a specialization for plain code. The key of a call never has bit PLAIN_AT.
 * An array's facts are one byte of the array's word, which starts at bit FACTS_AT. */
enum { BLOCK_AT = 32, PLAIN_AT = 33, FACTS_AT = 24 };
static const uint64_t plain_bit = (uint64_t)1 << PLAIN_AT;
_Static_assert((int)KJ_CALL_FACT_COUNT <= (int)BLOCK_AT && KJ_ARRAY_FACT_COUNT <= 8,
               "the key has room");

size_t kj_key_capacity(const kjit_kernel *kernel)
{
  size_t pairs = (size_t)kernel->parameter_count * kernel->parameter_count / 2;
  size_t words = KJ_KEY_FIXED_WORDS + 3 * (size_t)kernel->parameter_count + pairs / 32 + 1;
  return words + words % 2; /* the number of words is even, so that the data after the key is
                               aligned to 16 bytes */
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

/* Adds the relations of arrays to the key: two bits for each pair of arrays, if the kernel writes
 * at least one of the two. */
static void add_relations(kj_call *call)
{
  const kjit_kernel *kernel = call->kernel;
  uint64_t word = 0;
  uint32_t used = 0;
  for (uint32_t i = 0; i < kernel->parameter_count; i++) {
    if (call->bound[i].kind != KJ_ARGUMENT_ARRAY) continue;
    for (uint32_t j = i + 1; j < kernel->parameter_count; j++) {
      /* the bits stay 0 (ANY) if an array is @general */
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

bool kj_drop_large(kj_call *call)
{
  bool had_fact = false;
  for (uint32_t i = 0; i < call->kernel->parameter_count; i++) {
    had_fact |= call->bound[i].facts & KJ_FACT_LARGE;
    call->bound[i].facts &= (uint8_t)~KJ_FACT_LARGE;
  }
  return had_fact;
}

void kj_make_key(kj_call *call)
{
  const kjit_kernel *kernel = call->kernel;
  const kjit_device *device = call->device;
  bool knows_block = kj_knows_block(kernel, device), has_array = false, has_small_offsets = true;
  call->key_count = KJ_KEY_FIXED_WORDS;
  /* GPU code does not use the fact KJ_FACT_LARGE, which was determined before the device was
   * known */
  if (device->info.kind != KJIT_DEVICE_CPU) (void)kj_drop_large(call);
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

/* Result of comparing a specialization's key with a call's key. Both keys have the same number of
 * words. */
typedef enum key_match {
  KEY_OTHER,
  KEY_SAME_TYPES, /* the keys differ in facts only */
  KEY_SERVES      /* the keys differ only in facts, and the call has all facts on which the known
                   * specialization relies */
} key_match;

static const uint64_t facts_mask = (uint64_t)0xff << FACTS_AT;

/* Returns the number of words that follow the first word of an argument in the key. */
static uint32_t more_words(uint64_t word)
{
  uint8_t kind = (uint8_t)word;
  return kind == KJ_ARGUMENT_FUNCTION ? 1 : kind == KJ_ARGUMENT_CONST ? 2 : 0;
}

/* Compares the relations of pairs of arrays, two bits each. The wanted relation ANY matches every
 * given relation. */
static bool has_relations(uint64_t wanted, uint64_t given)
{
  const uint64_t low = 0x5555555555555555u;
  uint64_t is_some = (wanted | wanted >> 1) & low, differs = wanted ^ given;
  return !((differs | differs >> 1) & low & is_some);
}

static key_match match_key(const kjit_kernel *kernel, const uint64_t *known, const uint64_t *key,
                           uint32_t count)
{
  uint64_t facts = KJ_CALL_FACTS, known_flags = known[1] & ~plain_bit, flags = key[1];
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

/* Returns a number that is larger for a key with more facts. Only keys for the same types are
 * compared. */
static uint32_t count_facts(const uint64_t *key, uint32_t count)
{
  uint32_t facts = (uint32_t)__builtin_popcountll(key[1] & KJ_CALL_FACTS);
  for (uint32_t at = KJ_KEY_FIXED_WORDS; at < count; at++)
    /* the sum also counts bits of types and values, which are the same in all keys that are
     * compared */
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

/* A search ends at an empty slot, so a table must have at least one empty slot. */
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

bool kj_is_for_plain(const kjit_specialization *specialization)
{
  return specialization->key[1] & plain_bit;
}

/* Compares two specializations that can run the call. The best code for few facts is better than
 * plain code for many facts. */
static kjit_specialization *better_of(kjit_specialization *a, kjit_specialization *b)
{
  if (!a) return b;
  if (kj_is_for_plain(a) != kj_is_for_plain(b)) return kj_is_for_plain(a) ? b : a;
  return count_facts(b->key, b->key_count) > count_facts(a->key, a->key_count) ? b : a;
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
    *variants += match != KEY_OTHER && !kj_is_for_plain(entry);
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

static kjit_specialization *make_entry(const kj_call *call, uint64_t hash)
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
  /* in this state, the first thread that needs the code compiles it */
  atomic_init(&entry->state, KJ_FAILED);
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
  free(atomic_load(&entry->table));
  free(entry->cost);
  kj_destroy_mutex(&entry->mutex);
  pthread_cond_destroy(&entry->changed);
  free(entry);
}

kjit_specialization *kj_get_own_entry(const kj_call *call, uint64_t hash)
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

kjit_specialization *kj_get_plain_entry(const kj_call *call, const kjit_specialization *best)
{
  kj_call own = *call;
  own.key_count = best->key_count;
  own.key = malloc(own.key_count * sizeof *own.key);
  if (!own.key) return NULL;
  memcpy(own.key, best->key, own.key_count * sizeof *own.key);
  KJ_ASSERT(!(own.key[1] & plain_bit));
  own.key[1] |= plain_bit;
  kjit_specialization *entry = kj_get_own_entry(&own, kj_hash_key(own.key, own.key_count));
  free(own.key);
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
