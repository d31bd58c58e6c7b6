/* The key of a specialization: everything about a call that the code may depend on, as words. A fact is in it only where the kernel can use it. */
#include <string.h>

#include "dispatch/dispatch.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

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
  key[count++] =
    (uint64_t)bound->kind | (uint64_t)bound->rank << 8 | (uint64_t)bound->layout << 16 | (uint64_t)bound->facts << 24 | (uint64_t)bound->type << 32;
  if (bound->kind == KJ_ARGUMENT_FUNCTION) key[count++] = (uint64_t)(uintptr_t)bound->function;
  if (bound->kind == KJ_ARGUMENT_CONST) {
    uint64_t number;
    memcpy(&number, &bound->value.number, sizeof number);
    key[count++] = bound->value.is_float ? number : (uint64_t)bound->value.integer;
    key[count++] = bound->value.is_float ? 0 : (uint64_t)(bound->value.integer >> 64);
  }
  call->key_count = count;
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
      if (call->bound[j].kind != KJ_ARGUMENT_ARRAY || !(kernel->parameters[i].is_written || kernel->parameters[j].is_written)) continue;
      bool is_general = kernel->parameters[i].is_general || kernel->parameters[j].is_general;
      word |= (uint64_t)(is_general ? KJ_RELATION_ANY : kj_relate(&call->bound[i], &call->bound[j])) << used;
      used += 2;
      if (used < 64) continue;
      call->key[call->key_count++] = word;
      word = 0;
      used = 0;
    }
  }
  if (used) call->key[call->key_count++] = word;
}

void kj_make_key(kj_call *call)
{
  const kjit_kernel *kernel = call->kernel;
  const kjit_device *device = call->device;
  bool knows_block = !kj_is_cuda(device) || kernel->block_is_static, has_array = false;
  call->offsets32 = true;
  call->key_count = KJ_KEY_FIXED_WORDS;
  for (uint32_t i = 0; i < kernel->parameter_count; i++) {
    add_argument(call, &call->bound[i]);
    if (call->bound[i].kind != KJ_ARGUMENT_ARRAY) continue;
    has_array = true;
    call->offsets32 = call->offsets32 && call->bound[i].offsets_fit && !kernel->parameters[i].is_general;
  }
  if (has_array) add_relations(call);
  call->key[0] = (uint64_t)device->info.kind | (uint64_t)(uint32_t)device->info.ordinal << 8 |
                 (uint64_t)atomic_load_explicit(&device->generation, memory_order_relaxed) << 32;
  call->key[1] = (uint64_t)call->offsets32 | (uint64_t)call->grid32 << 1 | (uint64_t)knows_block << 2;
  call->key[2] = knows_block ? (uint64_t)call->block[0] | (uint64_t)call->block[1] << 32 : 0;
  call->key[3] = knows_block ? call->block[2] : 0;
}

uint64_t kj_hash_key(const uint64_t *key, uint32_t count) { return XXH3_64bits(key, count * sizeof *key); }
