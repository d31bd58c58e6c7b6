/* The key of a specialization, and the facts in it. */
#ifndef KJ_CODE_KEY_H
#define KJ_CODE_KEY_H

#include "code/call.h"

/* The facts of a call with a grid and a block. */
uint32_t kj_find_facts_of(const kj_call *call, bool has_small_offsets);
enum { KJ_KEY_FIXED_WORDS = 4 };
/* Fills call->key from bound, device, facts and, where it counts, block. */
void kj_make_key(kj_call *call);
/* At most so many words. */
size_t kj_key_capacity(const kjit_kernel *kernel);

/* The call with no facts at all; the key follows. */
void kj_drop_facts(kj_call *call);
/* Whether the key has the relation of two arguments: arrays of which one is written. */
bool kj_has_relation(const kj_call *call, uint32_t i, uint32_t j);
/* Whether the key has the block. */
static inline bool kj_knows_block(const kjit_kernel *kernel, const kjit_device *device)
{
  return device->operations->knows_block || kernel->block_is_static;
}

/* ---- keys that differ in facts only ---- */

/* A known key beside that of a call; both have so many words. */
typedef enum kj_key_match {
  KJ_KEY_OTHER,
  KJ_KEY_SAME_TYPES, /* differs in facts only */
  KJ_KEY_SERVES      /* and the call has all facts of the known one */
} kj_key_match;
kj_key_match kj_match_key(const kjit_kernel *kernel, const uint64_t *known, const uint64_t *key,
                          uint32_t count);
/* Says which of two keys for the same types has more facts. */
uint32_t kj_count_facts(const uint64_t *key, uint32_t count);
uint64_t kj_hash_key(const uint64_t *key, uint32_t count);

/* ---- signature.c: facts as text ---- */

/* Facts as text into a signature: flags of arguments, relations[count * count], block. Errors:
 * ARGUMENT. */
kjit_status kj_read_facts(const kjit_kernel *kernel, const char *facts, kj_argument *arguments,
                          uint8_t *relations, kj_signature *signature, kj_diagnostics *diagnostics);

/* The same of a call as text, for hosts: "aligned16(r, x) disjoint(r, x)"; malloc'd, NULL: out of
 * memory. */
char *kj_print_facts(const kj_call *call, const kj_signature *signature);

#endif
