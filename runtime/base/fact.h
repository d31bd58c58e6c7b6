/* How the facts of facts.def are found. */
#ifndef KJ_BASE_FACT_H
#define KJ_BASE_FACT_H

#include "compiler.h"

/* What the facts of an array argument are made of. */
typedef struct kj_array_place {
  uint64_t address;   /* of element 0 */
  bool has_rows;      /* rank 2 and more, layout C */
  uint64_t row_bytes; /* of the innermost extent */
} kj_array_place;

/* KJ_FACT_* */
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
/* Those without which code serves a call too. */
enum {
  KJ_CALL_FACT_KIND_FACT = 1,
  KJ_CALL_FACT_KIND_MODE = 0,
  KJ_CALL_FACTS = 0
#define KJ_CALL_FACT(NAME, field, text, kind, holds) \
  | KJ_CALL_FACT_KIND_##kind << KJ_CALL_FACT_AT_##NAME
#include "facts.def"
};

/* What the facts of a call are made of. */
typedef struct kj_call_place {
  bool has_small_offsets;   /* of all array arguments */
  uint64_t blocks, threads; /* of the grid, of a block */
  bool is_programmatic;
} kj_call_place;

/* KJ_CALL_FACT_* */
static inline uint32_t kj_find_call_facts(kj_call_place call)
{
  uint32_t facts = 0;
#define KJ_CALL_FACT(NAME, field, text, kind, holds) \
  facts |= (uint32_t)(holds) << KJ_CALL_FACT_AT_##NAME;
#include "facts.def"
  return facts;
}

#endif
