/* A reduction over pairs of rows on the way from its operands (pairs.c) to the text of its kernels
 * (pairs_text.c). */
#ifndef KA_PAIRS_H
#define KA_PAIRS_H

#include "algorithm/algorithm.h"

enum { KA_MOST_PAIRED = 8 }; /* operands that have rows of y */

/* An operand by rows: of one axis a number each, of two axes so many. */
typedef struct ka_rows {
  ka_operand operand;
  uint32_t width;
  uint32_t bytes; /* of a row */
} ka_rows;

typedef struct ka_pairs {
  ka_call *call;
  ka_operand function; /* with its last arguments */
  ka_rows x, y[KA_MOST_PAIRED];
  size_t y_count;
  uint64_t m, n;
  kjit_type element; /* what the func returns */
  /* how it is reduced: the k least, or by one of these */
  int64_t k;
  ka_operator operator_;
  const ka_reduction *reduction; /* by name, not NULL then */
  bool is_exponential;           /* logaddexp: as a struct */
  kjit_type value, accumulator;  /* what values are converted to; KJIT_ANY: a struct is combined */
  uint32_t bytes;                /* of what is combined */
  ka_operand result, result_places;
  bool has_places;
  uint64_t chunk; /* rows of y at a time; 0: all */
} ka_pairs;

/* What the func returns. Errors: as kjit_get_result_type; TYPE. */
kjit_type ka_infer_pair(ka_pairs *p);
/* Adds the steps, for at least one row of both. */
void ka_pairs_steps(ka_pairs *p);
/* The step for results without rows of y. Errors: ARGUMENT. */
void ka_fill_pairs(ka_pairs *p);

#endif
