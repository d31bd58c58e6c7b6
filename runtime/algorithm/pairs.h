/* A reduction over pairs of rows: declarations for pairs.c, which reads the operands, and
 * pairs_text.c, which writes the kernels. */
#ifndef KA_PAIRS_H
#define KA_PAIRS_H

#include "algorithm/algorithm.h"

/* Maximum numbers of operands with rows of y, and of results of one call. */
enum { KA_MOST_PAIRED = 8, KA_MOST_PAIR_RESULTS = 16 };
/* The kernels of kjit_pairs_gradient have two more operands: the cotangents and the result. */
enum { KA_MOST_ROWS = KA_MOST_PAIRED + 2 };

/* Number of blocks of a launch for each multiprocessor of a GPU, and for each core of the CPU. */
enum { KA_GPU_PAIR_BLOCKS = 8, KA_CPU_PAIR_BLOCKS = 4 };

/* Maximum length of a row whose loops are unrolled. All rows of floats in registers are shorter. */
enum { KA_MOST_UNROLLED = 72 };

/* An operand as a sequence of rows. If it has one axis, each row is a number. */
typedef struct ka_rows {
  ka_operand operand;
  /* type in which the kernel computes with the row: f32 for f16 and bf16 in a gradient, because
   * sums of derivatives need more digits; otherwise the operand's element type */
  kjit_type computed;
  uint32_t width; /* number of elements in a row, if the operand has two axes */
  uint32_t bytes; /* size of a row in the kernel */
} ka_rows;

/* A chunk of y's rows, if y is processed in chunks with one call for each chunk. Slot 0 of `found`
 * contains the results of the previous chunks. The other slots receive the results of the chunk's
 * blocks. */
typedef struct ka_piece {
  uint64_t first, total; /* index of the chunk's first row in y, and the number of rows of y */
  uint64_t row; /* index of the call's first row of x, if the call processes only a part of x */
  bool is_share, is_wide, is_last;
  kjit_array *const *found; /* an array for each ka_found of the call */
} ka_piece;

/* One result: the value that the func returns for it, and the reduction of these values. */
typedef struct ka_pair_value {
  /* type of the value that the func returns, or of an item if the func returns a tuple */
  kjit_type element;
  ka_operator operator_;         /* the operator, if reduction is NULL */
  const ka_reduction *reduction; /* the named reduction, or NULL */
  bool is_exponential;           /* logaddexp, which combines structs */
  kjit_type value, accumulator;  /* type to which values are converted; KJIT_ANY for a struct */
  /* number of elements in a row of the result; 0 means that a row is a single number */
  uint32_t width;
  uint32_t bytes; /* size of a combined value, for one row of x */
  ka_operand result;
} ka_pair_value;

/* A pair's weight: the factor by which the gradient's sum over pairs multiplies the func's
 * derivative. */
typedef enum ka_pair_weight {
  KA_WEIGHT_ONE,  /* add */
  KA_WEIGHT_EXP,  /* logaddexp: exp(value - result) */
  KA_WEIGHT_PLACE /* max, min: the weight is 1 for the pair whose value is the result, and otherwise
                   * 0 */
} ka_pair_weight;

/* A pass of kjit_pairs_gradient. It computes derivatives with respect to some parameters of the
 * func, and has a result for each of these parameters. In a pass for derivatives with respect to y,
 * the operands are exchanged: its x is y; its y is x, followed by the arrays from which the weights
 * are computed. */
typedef struct ka_pair_gradient {
  const uint32_t *by; /* for each result, the number of the func's parameter, in ascending order */
  ka_pair_weight weight;
  bool is_exchanged;
  size_t paired;      /* number of operands that have rows of y */
  uint64_t first_row; /* index of the call's first row in the whole x, if the call processes one
                         chunk of x */
} ka_pair_gradient;

typedef struct ka_pairs {
  ka_call *call;
  ka_operand function; /* the func with its additional arguments */
  ka_rows x[KA_MOST_ROWS], y[KA_MOST_ROWS];
  size_t x_count, y_count;
  const ka_pair_gradient *gradient; /* the pass of kjit_pairs_gradient; NULL for all other calls */
  uint64_t m, n, total;      /* numbers of rows: in x, in this call's part of y, and in all of y */
  const ka_piece *piece;     /* NULL if the call has all of y */
  bool is_several, is_tuple; /* is_tuple: the func returns a tuple */
  /* k for kjit_pairs_smallest; 0 means that the values are reduced */
  int64_t k;
  ka_pair_value values[KA_MOST_PAIR_RESULTS];
  size_t value_count;
  uint32_t bytes; /* size of all combined values */
  ka_operand result_places;
  bool has_places;
} ka_pairs;

/* A call's arguments. pairs_stream.c cuts y into chunks of options.chunk rows, and divides the rows
 * of x among options.devices. */
typedef struct ka_pairing {
  const kjit_operand *results, *result_places, *function, *x, *y;
  size_t result_count, x_count;
  bool is_several; /* kjit_pairs_several */
  const ka_pair_gradient *gradient;
  size_t y_count;
  const kjit_operator *operator_; /* NULL for the k smallest values and for a gradient */
  int64_t k;
  const ka_piece *piece;
} ka_pairing;
kjit_status ka_stream_pairs(kjit_context *context, const char *name, const ka_pairing *given,
                            const kjit_algorithm_options *options);
/* Builds a call for all of y or for one chunk of y (pairs.c). */
void ka_build_pairs(ka_call *call, const void *data);
/* Adds the steps of a call whose operands have been read. */
void ka_add_pairs(ka_pairs *p);
ka_pairs *ka_read_pairs(ka_call *call, const ka_pairing *given);
/* Returns the options that a call with these arguments accepts, as flags of ka_option. */
uint32_t ka_pairs_options(const ka_pairing *given);

/* An array with intermediate results. A call has one such array for each result; a call of
 * kjit_pairs_smallest has two, for the values and for their indices. */
typedef struct ka_found {
  kjit_type element;
  uint64_t count;
} ka_found;
size_t ka_found_arrays(const ka_pairs *p);
/* Sets the element type and the number of elements in each array in `found` for a chunk of n rows
 * of y. */
void ka_count_found(const ka_pairs *p, uint64_t n, ka_found found[KA_MOST_PAIR_RESULTS]);

/* Infers the result type of the func and sets value_count and the element type of each value. If
 * the func returns a tuple, each item is a value. Errors: as kjit_get_result_type; TYPE. */
void ka_infer_pair(ka_pairs *p);
/* Adds the steps if x and y have at least one row each. */
void ka_pairs_steps(ka_pairs *p);
/* Adds the step that fills the results if y has no rows. Errors: ARGUMENT. */
void ka_fill_pairs(ka_pairs *p);

/* ---- pairs_rows.c: the shape of a launch and the text of its rows ---- */

typedef struct ka_pair_shape {
  uint32_t threads, rows, tile; /* number of rows of x that a thread processes */
  uint32_t columns;             /* number of rows of y that a GPU thread processes at a time */
  /* GPU: rows of x, and those sums that consist of a row of numbers, are in shared memory, because
   * they do not fit into registers */
  bool is_shared;
  uint64_t groups, parts;
} ka_pair_shape;
ka_pair_shape ka_choose_pair_shape(const ka_pairs *p, uint64_t n);
/* Returns the distance in elements between two rows in shared memory that avoids bank conflicts if
 * each thread accesses a row of its own. */
uint32_t ka_pair_stride(uint32_t width, uint32_t element_bytes);

/* The parts of a kernel's source that load rows of x and y. */
typedef struct ka_rows_text {
  const char *locals;          /* statements in the kernel that declare the arrays */
  const char *take_x, *take_y; /* funcs that the kernel passes to pairs_visit */
  const char *names;           /* ", xs, y0s" */
  /* the rows of a pair and their indices as arguments for the application's func: "xs[l], y0s[j],
   * i64(i), ..." */
  const char *arguments;
  const char *row; /* ", v7", where v7 is the index of the first row of x, if the arguments need
                    * this index; otherwise "" */
} ka_rows_text;
ka_rows_text ka_write_pair_rows(const ka_pairs *p, ka_kernel *kernel, const ka_pair_shape *shape);
/* Returns whether the kernel's array stores a row of x as a column. On the CPU, rows are stored as
 * columns, so that vector instructions can process several rows of a thread together. */
bool ka_is_column(const ka_pairs *p, const ka_rows *rows);
/* Returns the expression of a row of a pair: "xs[l]", "xs[:, l]" or "y0s[j]"; for rows of x in
 * shared memory "xs[l * 128 + i32(thread_rank), :10]". For a gradient, "x_row" is a copy of the
 * column. */
const char *ka_pair_row(const ka_pairs *p, const ka_pair_shape *shape, const ka_rows *rows);
/* Lists the operands with rows of x and y in the order of the func's parameters. */
size_t ka_list_pair_rows(const ka_pairs *p, const ka_rows *rows[KA_MOST_ROWS]);
/* Returns the type of an array with `count` rows: "f32[64, 3]", or "f32[64]" if a row is one
 * number. is_transposed: the rows are the columns in the array. */
const char *ka_rows_type(ka_kernel *kernel, const ka_rows *rows, uint32_t count,
                         bool is_transposed);
/* Returns the func name in the kernel's source. */
const char *ka_use_pair_function(const ka_pairs *p, ka_kernel *kernel);

/* ---- pairs_values.c: the combined values ---- */

/* Names for one result in a kernel's source. */
typedef struct ka_value_text {
  const char *type;      /* type of the combined values */
  const char *operator_; /* func that combines two values; NULL for the k smallest */
} ka_value_text;
/* Declares the type of the combined values and the operator. */
ka_value_text ka_declare_pair_value(const ka_pairs *p, ka_kernel *kernel, size_t index);
/* Source fragments for the intermediate results of a thread. The results are in arrays with an
 * element for each of the thread's rows. Funcs initialize these arrays, add a pair's value to them,
 * and store the results. */
typedef struct ka_sums_text {
  const char *locals;              /* statements in the kernel */
  const char *begin, *add, *store; /* expressions of funcs with the arrays bound: begin and add take
                                      the func `pair`, and store takes `stores` */
} ka_sums_text;
ka_sums_text ka_write_sums(const ka_pairs *p, ka_kernel *kernel, const ka_value_text *values,
                           uint32_t rows, const char *pair, const char *const *stores);
/* Like ka_write_sums, for a gradient, whose sums are sums of derivatives. more contains the names
 * of the func's additional arguments. */
ka_sums_text ka_write_gradient(const ka_pairs *p, ka_kernel *kernel, const ka_rows_text *rows,
                               const char *more, const ka_pair_shape *shape,
                               const char *const *stores);
/* Reads the parameters with respect to which a gradient pass computes derivatives. Errors:
 * ARGUMENT, TYPE. */
void ka_read_gradient(ka_pairs *p);
/* Returns the number of elements of a result for this number of rows of x. */
static inline uint64_t ka_pair_elements(const ka_pair_value *v, uint64_t rows)
{
  return rows * (v->width ? v->width : 1);
}
/* Returns a func that stores the final value of a row; it is called like pairs_put of
 * lib/library/pairs.kir. */
const char *ka_finish_pair_value(const ka_pairs *p, ka_kernel *kernel, size_t index);

#endif
