/* A reduction over pairs of rows on the way from its operands (pairs.c) to the text of its kernels
 * (pairs_text.c). */
#ifndef KA_PAIRS_H
#define KA_PAIRS_H

#include "algorithm/algorithm.h"

/* operands that have rows of y; results of one call */
enum { KA_MOST_PAIRED = 8, KA_MOST_PAIR_RESULTS = 16 };

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
  kjit_array *const *found; /* one for each ka_found of the call */
} ka_piece;

/* One result: what the func returns for it, and how that is reduced. */
typedef struct ka_pair_value {
  kjit_type element;             /* of the func's value, or of the item of its tuple */
  ka_operator operator_;         /* or by one of these: */
  const ka_reduction *reduction; /* by name, not NULL then */
  bool is_exponential;           /* logaddexp: as a struct */
  kjit_type value, accumulator;  /* what values are converted to; KJIT_ANY: a struct is combined */
  uint32_t bytes;                /* of what is combined */
  ka_operand result;
} ka_pair_value;

typedef struct ka_pairs {
  ka_call *call;
  ka_operand function; /* with its last arguments */
  ka_rows x, y[KA_MOST_PAIRED];
  size_t y_count;
  uint64_t m, n, total;      /* rows of x, of y now, and altogether */
  const ka_piece *piece;     /* NULL: y is whole */
  bool is_several, is_tuple; /* is_tuple: what the func returns */
  int64_t k;                 /* the k least of the only value; 0: values are reduced */
  ka_pair_value values[KA_MOST_PAIR_RESULTS];
  size_t value_count;
  uint32_t bytes; /* of all values that are combined */
  ka_operand result_places;
  bool has_places;
} ka_pairs;

/* Rows of y by pieces of options.chunk, and rows of x by options.devices (pairs_stream.c). */
typedef struct ka_pairing {
  const kjit_operand *results, *result_places, *function, *x, *y;
  size_t result_count;
  bool is_several; /* kjit_pairs_several */
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

/* An array for what is found, of each result; of the k least their values and places. */
typedef struct ka_found {
  kjit_type element;
  uint64_t count;
} ka_found;
size_t ka_found_arrays(const ka_pairs *p);
/* How many elements of which type these arrays have for a piece of n rows. */
void ka_count_found(const ka_pairs *p, uint64_t n, ka_found found[KA_MOST_PAIR_RESULTS]);

/* What the func returns, by its tuple's items: sets the values' elements and their count. Errors:
 * as kjit_get_result_type; TYPE. */
void ka_infer_pair(ka_pairs *p);
/* Adds the steps, for at least one row of both. */
void ka_pairs_steps(ka_pairs *p);
/* The step for results without rows of y. Errors: ARGUMENT. */
void ka_fill_pairs(ka_pairs *p);

/* ---- pairs_values.c: the text of what is combined ---- */

/* The names in a kernel's text of one result. */
typedef struct ka_value_text {
  const char *type;      /* of what is combined */
  const char *operator_; /* combines two of them; NULL: the k least are found */
} ka_value_text;
/* Declares the type and the operator. */
ka_value_text ka_declare_pair_value(const ka_pairs *p, ka_kernel *kernel, size_t index);
/* Arrays of the thread for what its rows have found so far, `rows` each, and the funcs that begin
 * them, add a pair's value and store them. */
typedef struct ka_sums_text {
  const char *locals;              /* statements of the kernel */
  const char *begin, *add, *store; /* bound: begin and add to `pair`, store to `stores` */
} ka_sums_text;
ka_sums_text ka_write_sums(const ka_pairs *p, ka_kernel *kernel, const ka_value_text *values,
                           uint32_t rows, const char *pair, const char *const *stores);
/* A func that stores the finished value of a row, called as pairs_put. */
const char *ka_finish_pair_value(const ka_pairs *p, ka_kernel *kernel, size_t index);

#endif
