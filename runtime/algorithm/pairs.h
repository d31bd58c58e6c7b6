/* A reduction over pairs of rows on the way from its operands (pairs.c) to the text of its kernels
 * (pairs_text.c). */
#ifndef KA_PAIRS_H
#define KA_PAIRS_H

#include "algorithm/algorithm.h"

/* operands that have rows of y; results of one call */
enum { KA_MOST_PAIRED = 8, KA_MOST_PAIR_RESULTS = 16 };
/* Those of a gradient's passes, with the cotangents and the result. */
enum { KA_MOST_ROWS = KA_MOST_PAIRED + 2 };

/* Blocks of a launch: for each multiprocessor, for each core. */
enum { KA_GPU_PAIR_BLOCKS = 8, KA_CPU_PAIR_BLOCKS = 4 };

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
  uint32_t width;                /* of a result with rows; 0: its rows are numbers */
  uint32_t bytes;                /* of what is combined, for one row of x */
  ka_operand result;
} ka_pair_value;

/* How much the derivative of the func counts for a pair. */
typedef enum ka_pair_weight {
  KA_WEIGHT_ONE,  /* add */
  KA_WEIGHT_EXP,  /* logaddexp: exp(value - result) */
  KA_WEIGHT_PLACE /* max, min: 1 where the result is the pair's place, else 0 */
} ka_pair_weight;

/* A pass of kjit_pairs_gradient: derivatives by some of the func's parameters, a result for each.
 * Of a pass by y the operands are exchanged: x is y, and y is x and what the pairs are weighed
 * with. */
typedef struct ka_pair_gradient {
  const uint32_t *by; /* numbers of parameters, as many as there are results; ascending */
  ka_pair_weight weight;
  bool is_exchanged;
  size_t paired;      /* operands with rows of y */
  uint64_t first_row; /* the number of the first row of x: the call has one piece of it */
} ka_pair_gradient;

typedef struct ka_pairs {
  ka_call *call;
  ka_operand function; /* with its last arguments */
  ka_rows x[KA_MOST_ROWS], y[KA_MOST_ROWS];
  size_t x_count, y_count;
  const ka_pair_gradient *gradient; /* NULL: the func's values are reduced */
  uint64_t m, n, total;             /* rows of x, of y now, and altogether */
  const ka_piece *piece;            /* NULL: y is whole */
  bool is_several, is_tuple;        /* is_tuple: what the func returns */
  int64_t k;                        /* the k least of the only value; 0: values are reduced */
  ka_pair_value values[KA_MOST_PAIR_RESULTS];
  size_t value_count;
  uint32_t bytes; /* of all values that are combined */
  ka_operand result_places;
  bool has_places;
} ka_pairs;

/* Rows of y by pieces of options.chunk, and rows of x by options.devices (pairs_stream.c). */
typedef struct ka_pairing {
  const kjit_operand *results, *result_places, *function, *x, *y;
  size_t result_count, x_count;
  bool is_several; /* kjit_pairs_several */
  const ka_pair_gradient *gradient;
  size_t y_count;
  const kjit_operator *operator_; /* NULL: the k least, or a gradient */
  int64_t k;
  const ka_piece *piece;
} ka_pairing;
kjit_status ka_stream_pairs(kjit_context *context, const char *name, const ka_pairing *given,
                            const kjit_algorithm_options *options);
/* pairs.c: the call of a whole y, or of a piece; and all that is known before there are steps. */
void ka_build_pairs(ka_call *call, const void *data);
/* Adds the steps of a call that has been read. */
void ka_add_pairs(ka_pairs *p);
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

/* ---- pairs_rows.c: the shape of a launch and the text of its rows ---- */

typedef struct ka_pair_shape {
  uint32_t threads, rows, tile; /* rows: of a thread */
  uint64_t groups, parts;
} ka_pair_shape;
ka_pair_shape ka_choose_pair_shape(const ka_pairs *p, uint64_t n);

/* What a kernel has of x and y. */
typedef struct ka_rows_text {
  const char *locals;          /* statements of the kernel that declare the arrays */
  const char *take_x, *take_y; /* funcs of pairs_visit */
  const char *names;           /* ", xs, y0s" */
  /* the rows of a pair and their numbers, as the func takes them: "xs[l], y0s[j], i64(i), ..." */
  const char *arguments;
  const char *row; /* ", v7": the number of the first row of x, which arguments need; or "" */
} ka_rows_text;
ka_rows_text ka_write_pair_rows(const ka_pairs *p, ka_kernel *kernel, const ka_pair_shape *shape);
/* Whether a row of x is a column of its array: on the CPU the rows stand side by side. */
bool ka_is_column(const ka_pairs *p, const ka_rows *rows);
/* A row of a pair: "xs[l]", "xs[:, l]", "y0s[j]"; of a gradient for a column "x_row", a copy. */
const char *ka_pair_row(const ka_pairs *p, const ka_rows *rows);
/* The operands with rows of x and y that the func takes, in the order of its parameters. */
size_t ka_list_pair_rows(const ka_pairs *p, const ka_rows *rows[KA_MOST_ROWS]);
/* "f32[64, 3]"; of one axis "f32[64]". is_transposed: the rows stand side by side. */
const char *ka_rows_type(ka_kernel *kernel, const ka_rows *rows, uint32_t count,
                         bool is_transposed);
/* The name of the func in a kernel's text. */
const char *ka_use_pair_function(const ka_pairs *p, ka_kernel *kernel);

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
/* The same of a gradient: sums of derivatives. more: the names of the func's last arguments. */
ka_sums_text ka_write_gradient(const ka_pairs *p, ka_kernel *kernel, const ka_rows_text *rows,
                               const char *more, uint32_t count, const char *const *stores);
/* Sets the values of a gradient: what the derivatives are by. Errors: ARGUMENT, TYPE. */
void ka_read_gradient(ka_pairs *p);
/* Elements of a result with so many rows. */
static inline uint64_t ka_pair_elements(const ka_pair_value *v, uint64_t rows)
{
  return rows * (v->width ? v->width : 1);
}
/* A func that stores the finished value of a row, called as pairs_put. */
const char *ka_finish_pair_value(const ka_pairs *p, ka_kernel *kernel, size_t index);

#endif
