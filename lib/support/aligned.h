/* Memory that is aligned to cache lines, inside of a larger malloc block. The block address is
 * stored before the memory. aligned_alloc would be slower: malloc keeps a cache of ordinary blocks
 * for each thread, but splits and merges an aligned block at each call. */
#ifndef KJ_SUPPORT_ALIGNED_H
#define KJ_SUPPORT_ALIGNED_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

enum { KJ_ALIGNMENT = 64 };

/* Returns memory with undefined contents, or NULL when out of memory. */
static inline void *kj_allocate_aligned(size_t size_bytes)
{
  char *block = size_bytes > SIZE_MAX - KJ_ALIGNMENT ? NULL : malloc(size_bytes + KJ_ALIGNMENT);
  if (!block) return NULL;
  _Static_assert(_Alignof(max_align_t) >= sizeof block, "the address has room before the memory");
  char *memory = block + KJ_ALIGNMENT - (uintptr_t)block % KJ_ALIGNMENT;
  ((char **)memory)[-1] = block;
  return memory;
}

/* Returns the malloc block to free. */
static inline void *kj_block_of_aligned(const void *memory) { return ((char *const *)memory)[-1]; }

#endif
