/* The key of a specialization: everything about a call that the code may depend on, as words. A
 * fact is in it only where the kernel can use it. */
#include <string.h>

#include "cuda/cuda.h"
#include "code/key.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

/* Call facts have bits of their own in the key, and so does that the block is known; facts of an
 * array are a byte of its word. */
enum { BLOCK_AT = 32, FACTS_AT = 24 };
_Static_assert((int)KJ_CALL_FACT_COUNT <= (int)BLOCK_AT && KJ_ARRAY_FACT_COUNT <= 8,
               "the key has room");

size_t kj_key_capacity(const kjit_kernel *kernel)
{
  size_t pairs = (size_t)kernel->parameter_count * kernel->parameter_count / 2;
  size_t words = KJ_KEY_FIXED_WORDS + 3 * (size_t)kernel->parameter_count + pairs / 32 + 1;
  return words + words % 2; /* what follows in a call's memory stays aligned for 16-byte scalars */
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

/* Two bits for each pair of arrays of which one is written. */
static void add_relations(kj_call *call)
{
  const kjit_kernel *kernel = call->kernel;
  uint64_t word = 0;
  uint32_t used = 0;
  for (uint32_t i = 0; i < kernel->parameter_count; i++) {
    if (call->bound[i].kind != KJ_ARGUMENT_ARRAY) continue;
    for (uint32_t j = i + 1; j < kernel->parameter_count; j++) {
      /* of a general one the bits stay ANY */
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
  return (call->config->flags & KJIT_LAUNCH_PROGRAMMATIC) && call->device->operations->is_queued &&
         call->device->info.compute_capability >= FROM && call->device->driver->cuLaunchKernelEx;
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
}

void kj_drop_facts(kj_call *call)
{
  call->is_general = true;
  for (uint32_t i = 0; i < call->kernel->parameter_count; i++)
    if (call->bound[i].kind == KJ_ARGUMENT_ARRAY) call->bound[i].facts = 0;
}

/* ---- keys that differ in facts only ---- */

static const uint64_t facts_mask = (uint64_t)0xff << FACTS_AT;

/* Words that an argument has after the first. */
static uint32_t more_words(uint64_t word)
{
  uint8_t kind = (uint8_t)word;
  return kind == KJ_ARGUMENT_FUNCTION ? 1 : kind == KJ_ARGUMENT_CONST ? 2 : 0;
}

/* Pairs of bits: ANY is what every relation satisfies. */
static bool has_relations(uint64_t wanted, uint64_t given)
{
  const uint64_t low = 0x5555555555555555u;
  uint64_t is_some = (wanted | wanted >> 1) & low, differs = wanted ^ given;
  return !((differs | differs >> 1) & low & is_some);
}

kj_key_match kj_match_key(const kjit_kernel *kernel, const uint64_t *known, const uint64_t *key,
                          uint32_t count)
{
  uint64_t facts = KJ_CALL_FACTS, known_flags = known[1], flags = key[1];
  if (known[0] != key[0] || ((known_flags ^ flags) & ~facts) || known[2] != key[2] ||
      known[3] != key[3])
    return KJ_KEY_OTHER;
  bool has_facts = !(known_flags & ~flags & facts);
  uint32_t at = KJ_KEY_FIXED_WORDS;
  for (uint32_t i = 0; i < kernel->parameter_count; i++, at++) {
    if ((known[at] ^ key[at]) & ~facts_mask) return KJ_KEY_OTHER;
    has_facts = has_facts && !(known[at] & ~key[at] & facts_mask);
    for (uint32_t more = more_words(key[at]); more; more--)
      if (at++, known[at] != key[at]) return KJ_KEY_OTHER;
  }
  for (; at < count; at++) has_facts = has_facts && has_relations(known[at], key[at]);
  return has_facts ? KJ_KEY_SERVES : KJ_KEY_SAME_TYPES;
}

uint32_t kj_count_facts(const uint64_t *key, uint32_t count)
{
  uint32_t facts = (uint32_t)__builtin_popcountll(key[1] & KJ_CALL_FACTS);
  for (uint32_t at = KJ_KEY_FIXED_WORDS; at < count; at++)
    /* types and values add the same to all that are compared */
    facts += (uint32_t)__builtin_popcountll(key[at]);
  return facts;
}

uint64_t kj_hash_key(const uint64_t *key, uint32_t count)
{
  return XXH3_64bits(key, count * sizeof *key);
}
