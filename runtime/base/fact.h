/* Determines which facts of facts.def hold for arguments and calls. A fact is a property on which
 * compiled code may rely, such as an aligned address. */
#ifndef KJ_BASE_FACT_H
#define KJ_BASE_FACT_H

#include "compiler.h"
#include "native/architecture.h"

/* Properties of an array argument that determine its facts. */
typedef struct kj_array_place {
  uint64_t address;   /* address of element 0 */
  bool has_rows;      /* true for rank 2 or higher with layout C */
  uint64_t row_bytes; /* bytes of a row: innermost extent times element size */
  /* size of the array if a kernel on the CPU writes it only in grid_ranges, otherwise 0 */
  uint64_t result_bytes;
} kj_array_place;

/* Returns KJ_FACT_* flags. */
static inline uint32_t kj_find_array_facts(kj_array_place array)
{
  uint32_t facts = 0;
#define KJ_ARRAY_FACT(NAME, text, in_all, holds) facts |= (uint32_t)(holds) << KJ_FACT_AT_##NAME;
#include "facts.def"
  return facts;
}

enum {
#define KJ_CALL_FACT(NAME, field, text, kind, holds) KJ_CALL_FACT_AT_##NAME,
#include "facts.def"
  KJ_CALL_FACT_COUNT
};
enum {
#define KJ_CALL_FACT(NAME, field, text, kind, holds) \
  KJ_CALL_FACT_##NAME = 1 << KJ_CALL_FACT_AT_##NAME,
#include "facts.def"
};
/* The facts of kind FACT: a call can run code if all facts on which the code relies are true for
 * the call. The other bits (kind MODE) must be the same for the call and the code. */
enum {
  KJ_CALL_FACT_KIND_FACT = 1,
  KJ_CALL_FACT_KIND_MODE = 0,
  KJ_CALL_FACTS = 0
#define KJ_CALL_FACT(NAME, field, text, kind, holds) \
  | KJ_CALL_FACT_KIND_##kind << KJ_CALL_FACT_AT_##NAME
#include "facts.def"
};

/* Properties of a call that determine its facts. */
typedef struct kj_call_place {
  /* whether all offsets, extents and strides of the array arguments fit i32 */
  bool has_small_offsets;
  uint64_t blocks, threads; /* number of blocks, threads in a block */
  bool is_programmatic;
} kj_call_place;

/* Returns KJ_CALL_FACT_* flags. */
static inline uint32_t kj_find_call_facts(kj_call_place call)
{
  uint32_t facts = 0;
#define KJ_CALL_FACT(NAME, field, text, kind, holds) \
  facts |= (uint32_t)(holds) << KJ_CALL_FACT_AT_##NAME;
#include "facts.def"
  return facts;
}

#endif
