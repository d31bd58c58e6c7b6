/* A reduction on the way from its operands (reduce.c) to the text of its kernels (reduce_text.c).
 */
#ifndef KA_REDUCE_H
#define KA_REDUCE_H

#include "algorithm/algorithm.h"

/* One result. */
typedef struct ka_reduced {
  ka_operator operator_;         /* or */
  const ka_reduction *reduction; /* by name, not NULL then */
  kjit_type value, accumulator;  /* what elements are converted to, and what is combined */
  uint32_t bytes;                /* of the latter */
  bool commutes;
  ka_operand operand;
} ka_reduced;

/* What every kernel of a call is made of. */
typedef struct ka_reduce {
  ka_call *call;
  ka_operand x;
  ka_reduced *results;
  size_t count;
  bool is_several; /* what is combined is a struct with a field for each result */
  uint32_t bytes;  /* of what is combined */
  uint32_t loaded; /* bytes of an element, as a thread keeps it before that */
  bool commutes;
  bool keeps_order; /* an index is that of the elements in their order */
} ka_reduce;

/* What the kernels take in common, as text. */
typedef struct ka_reduce_texts {
  ka_kernel kernel;
  const char *operands;      /* load, store and operator */
  const char *works;         /* partial results, counters and whether the operator commutes */
  const char *piece, *lines; /* on the CPU: funcs that reduce some elements, or rows of columns */
} ka_reduce_texts;

/* index_count: of an element; n: elements of a result. */
void ka_begin_reduce(const ka_reduce *r, const char *module, uint32_t index_count, uint64_t n,
                     uint64_t partials, uint64_t counters, ka_reduce_texts *t);
/* The step for a result without elements. Errors: ARGUMENT. */
void ka_fill_reduced(const ka_reduce *r, ka_reduced *result);
/* Bytes of the struct of several. Errors: UNSUPPORTED. */
uint32_t ka_several_bytes(const ka_reduce *r);

#endif
