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

/* Where y comes in pieces, one call each: slot 0 of found has what the pieces before have left, and
 * the others what the blocks that share this piece find. */
typedef struct ka_piece {
  uint64_t first, total; /* the number of its first row; of the rows of y altogether */
  uint64_t row;          /* the number of the first row of x, where x is a share of its rows */
  bool is_share, is_wide, is_last;
  kjit_array *found, *places;
} ka_piece;

typedef struct ka_pairs {
  ka_call *call;
  ka_operand function; /* with its last arguments */
  ka_rows x, y[KA_MOST_PAIRED];
  size_t y_count;
  uint64_t m, n, total;  /* rows of x, of y now, and altogether */
  const ka_piece *piece; /* NULL: y is whole */
  kjit_type element;     /* what the func returns */
  /* how it is reduced: the k least, or by one of these */
  int64_t k;
  ka_operator operator_;
  const ka_reduction *reduction; /* by name, not NULL then */
  bool is_exponential;           /* logaddexp: as a struct */
  kjit_type value, accumulator;  /* what values are converted to; KJIT_ANY: a struct is combined */
  uint32_t bytes;                /* of what is combined */
  ka_operand result, result_places;
  bool has_places;
} ka_pairs;

/* Rows of y by pieces of options.chunk, and rows of x by options.devices (pairs_stream.c). */
typedef struct ka_pairing {
  const kjit_operand *result, *result_places, *function, *x, *y;
  size_t y_count;
  const kjit_operator *operator_; /* NULL: the k least */
  int64_t k;
  const ka_piece *piece;
} ka_pairing;
kjit_status ka_stream_pairs(kjit_context *context, const char *name, const ka_pairing *given,
                            const kjit_algorithm_options *options);
/* pairs.c: the call of a whole y, or of a piece; and all that is known before there are steps. */
void ka_build_pairs(ka_call *call, const void *data);
ka_pairs *ka_read_pairs(ka_call *call, const ka_pairing *given);
/* The options that these calls take. */
uint32_t ka_pairs_options(const ka_pairing *given);

/* How many elements of which type found and places have for a piece of n rows. */
typedef struct ka_found {
  kjit_type element, place;
  uint64_t count, place_count;
} ka_found;
ka_found ka_count_found(const ka_pairs *p, uint64_t n);

/* What the func returns. Errors: as kjit_get_result_type; TYPE. */
kjit_type ka_infer_pair(ka_pairs *p);
/* Adds the steps, for at least one row of both. */
void ka_pairs_steps(ka_pairs *p);
/* The step for results without rows of y. Errors: ARGUMENT. */
void ka_fill_pairs(ka_pairs *p);

#endif
