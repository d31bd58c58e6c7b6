/* kjit/sparse.h: sparse matrices, their products and iterative solvers. algorithm.h describes how
 * algorithms are called. */
#ifndef KJIT_SPARSE_H
#define KJIT_SPARSE_H

#include <kjit/operand.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- sparse matrices ---- */

/* A sparse matrix in compressed sparse row format, like scipy.sparse.csr_array.
 *
 * Row i has the entries offsets[i] to offsets[i + 1] - 1. Entry k is data[k] in column columns[k].
 * offsets has shape[0] + 1 elements; data and columns may have more elements than there are
 * entries. Entries with the same row and column are added. Operands are arrays with any strides, or
 * funcs of the index. columns and offsets are i32 or i64. Their types can differ.
 * kjit_csr_transpose returns the transposed matrix, which is the same matrix in compressed sparse
 * column format. */
typedef struct kjit_csr {
  /* data: value of each entry; columns: column of each entry; offsets: index of each row's first
   * entry, then the end of the last row */
  const kjit_operand *data, *columns, *offsets;
  int64_t shape[2]; /* rows and columns */
} kjit_csr;

/* A sparse matrix in coordinate format, like scipy.sparse.coo_array. Entry k is data[k] in row
 * rows[k] and column columns[k]. Entries are in any order; entries with the same row and column are
 * added. */
typedef struct kjit_coo {
  const kjit_operand *data, *rows, *columns; /* each entry's value, row and column */
  int64_t shape[2];                          /* rows and columns */
} kjit_coo;

/* Properties that kjit_csr_check checks in addition to index ranges. */
typedef enum kjit_csr_flags {
  KJIT_CSR_SORTED = 1, /* columns in a row never decrease */
  KJIT_CSR_UNIQUE = 2  /* no column occurs twice in a row; includes KJIT_CSR_SORTED */
} kjit_csr_flags;

/* Conversions and checks consist of several calls that take temporary storage from the
 * device's pool; options.work and work_bytes are not supported. A plan of a conversion reads the
 * entries and their number in each run. kjit_csr_check does not support plans. Conversions write
 * the operands of their result; messages call them `result_data`, `result_columns`,
 * `result_offsets`. If options is NULL, all options have their defaults. Unless stated otherwise,
 * errors are as in kjit_spmv. */

/* Checks a matrix and waits for the device. flags are kjit_csr_flags. options.plan is not
 * supported. Errors: ARGUMENT (offsets that decrease or are out of bounds, columns outside the
 * matrix, and violations of flags), and the kjit_spmv errors. The message for ARGUMENT names the
 * operand and the first index. */
KJIT_API KJIT_CHECK kjit_status kjit_csr_check(kjit_context *context, const kjit_csr *a,
                                               uint32_t flags,
                                               const kjit_algorithm_options *options);
/* Converts a matrix from coordinate to CSR format, like SciPy's tocsr.
 *
 * Entries with the same row and column are added (or combined by `or`, for bool), and the columns
 * of each row are sorted. data and columns of the result need capacity for all entries of a;
 * result.offsets[shape[0]] receives the number of entries. options.results describes arrays for
 * data, columns and offsets, in this order. An entry outside the matrix raises a kernel error
 * (KERNEL). Errors: ARGUMENT, TYPE (elements that cannot be added), UNSUPPORTED (rows times columns
 * exceeds 2^64). */
KJIT_API KJIT_CHECK kjit_status kjit_csr_from_coo(kjit_context *context, const kjit_csr *result,
                                                  const kjit_coo *a,
                                                  const kjit_algorithm_options *options);
/* Writes each entry's row to rows, an i32 or i64 array. Together with data and columns of
 * a, rows is the matrix in coordinate format. Elements of rows that belong to no entry stay
 * unchanged. */
KJIT_API KJIT_CHECK kjit_status kjit_csr_to_coo(kjit_context *context, const kjit_operand *rows,
                                                const kjit_csr *a,
                                                const kjit_algorithm_options *options);
/* Transposes a matrix. The result has shape[1] rows. It is also the matrix a in compressed sparse
 * column format.
 *
 * Each result row is sorted by column. Entries are not added. data and columns need the same
 * capacity as in a. A column outside the matrix raises a kernel error (KERNEL). */
KJIT_API KJIT_CHECK kjit_status kjit_csr_transpose(kjit_context *context, const kjit_csr *result,
                                                   const kjit_csr *a,
                                                   const kjit_algorithm_options *options);
/* Converts the nonzero elements of x, an operand with two axes, to a CSR matrix. data and columns
 * of the result need capacity for all nonzero elements. If there are more, the call raises a kernel
 * error (KERNEL), but the offsets are correct. options.results reports data and columns with a
 * capacity for all elements of x. */
KJIT_API KJIT_CHECK kjit_status kjit_csr_from_dense(kjit_context *context, const kjit_csr *result,
                                                    const kjit_operand *x,
                                                    const kjit_algorithm_options *options);
/* Converts a matrix to a dense array, result, with two axes. Entries with the same row and column
 * are added. If a GPU adds three or more floats, their order is not deterministic. A column outside
 * the matrix raises a kernel error (KERNEL). */
KJIT_API KJIT_CHECK kjit_status kjit_csr_to_dense(kjit_context *context, const kjit_operand *result,
                                                  const kjit_csr *a,
                                                  const kjit_algorithm_options *options);

/* Multiplies the matrix by the vector x with shape[1] elements and writes shape[0] sums to result.
 *
 * The running time depends on the number of entries, not on how they are distributed over the rows.
 * The result has the same bits in every run on the same device. data and x have the same number
 * type. options.results reports this type as well. Sums are computed in options.accumulator. By
 * default this is f64 for floats if the result array has f64 elements, otherwise f32 for f16 and
 * bf16, and 64 bits or the integer type of the result array for integers.
 *
 * If offsets decrease or are out of bounds, the call raises a kernel error (KERNEL). The call does
 * not check columns: a column outside the matrix reads outside x. kjit_csr_check and kernels with
 * bounds checks find such columns.
 *
 * If options is NULL, all options have their defaults. Messages call the matrix operands
 * `data`, `columns` and `offsets`. Errors: ARGUMENT (shapes, operands that overlap or cannot be
 * written, too little temporary storage), TYPE (operands of different types, elements that are not
 * numbers, indices that are not i32 or i64), UNSUPPORTED, and errors from kjit_launch. */
KJIT_API KJIT_CHECK kjit_status kjit_spmv(kjit_context *context, const kjit_operand *result,
                                          const kjit_csr *a, const kjit_operand *x,
                                          const kjit_algorithm_options *options);
/* Multiplies the matrix by a matrix x with several columns. x and result have two axes. Otherwise
 * the function works like kjit_spmv. */
KJIT_API KJIT_CHECK kjit_status kjit_spmm(kjit_context *context, const kjit_operand *result,
                                          const kjit_csr *a, const kjit_operand *x,
                                          const kjit_algorithm_options *options);

/* ---- solvers ---- */

/* Multiplies a matrix, or its transpose, by x and writes the product to result.
 *
 * Both operands are arrays with one axis on options->device. The function queues its work on
 * options->stream. It can pass options to every function of this header. user is the field of the
 * kjit_linear_operator. If the status is not KJIT_OK, the solver stops and returns it. */
typedef kjit_status kjit_multiply(void *user, const kjit_operand *result, const kjit_operand *x,
                                  const kjit_algorithm_options *options);

/* A linear system's matrix, given by its entries or by a function that multiplies. */
typedef struct kjit_linear_operator {
  const kjit_csr *matrix; /* entries of the matrix; NULL if multiply is set */
  /* for kjit_lsmr: transpose of matrix; NULL means that the call computes it once */
  const kjit_csr *transposed;
  /* multiplies by the matrix, on the thread that calls the solver */
  kjit_multiply *multiply;
  kjit_multiply *multiply_transposed; /* multiplies by the transposed matrix, for kjit_lsmr */
  void *user;                         /* first argument of multiply and multiply_transposed */
  int64_t shape[2];                   /* rows and columns, if matrix is NULL */
} kjit_linear_operator;

/* A solver's options; 0 means the default. */
typedef struct kjit_solve_options {
  uint32_t size_bytes; /* sizeof(kjit_solve_options) */
  double damp;         /* for kjit_lsmr: damping factor, not negative; default 0 */
  /* For kjit_lsmr: estimated relative errors of the given matrix and of b. The solver stops when
   * errors of this size can explain the residual. Default 1e-6. Values below the rounding error
   * have the same effect as the rounding error. */
  double matrix_tolerance, b_tolerance;
  /* for kjit_lsmr: stop if the estimated condition exceeds this limit; default 1e8 */
  double condition_limit;
  /* for kjit_cg: stop if |b - A x| is at most this factor times |b|; default 1e-5 */
  double residual_tolerance;
  /* Maximum number of iterations. Default: the smaller extent for kjit_lsmr, 10 per row for
   * kjit_cg. */
  int64_t iteration_limit;
  kjit_device *device; /* as in kjit_algorithm_options */
  kjit_stream *stream; /* as in kjit_algorithm_options */
} kjit_solve_options;

/* Why a solver stopped. */
typedef enum kjit_solve_status {
  KJIT_SOLVED = 0, /* the residual is within the tolerances */
  /* no x has a residual within the tolerances; this x minimizes the residual */
  KJIT_SOLVED_LEAST_SQUARES = 1,
  KJIT_SOLVE_CONDITION = 2,  /* the matrix is too ill-conditioned */
  KJIT_SOLVE_ITERATIONS = 3, /* the iteration limit is reached */
  KJIT_SOLVE_INDEFINITE = 4, /* kjit_cg: the matrix is not positive definite */
  KJIT_SOLVE_OVERFLOW = 5    /* a value is no longer finite */
} kjit_solve_status;

/* Properties of the returned solution: the best x found, independent of why the solver stopped.
 * Norms are Euclidean. kjit_lsmr estimates its norms. With damp, they are the norms of the matrix
 * that is extended by damp times the identity matrix. */
typedef struct kjit_solution {
  uint32_t size_bytes;      /* sizeof(kjit_solution); set by the application */
  kjit_solve_status status; /* why the solver stopped */
  int64_t iterations;       /* number of iterations */
  double residual_norm;     /* norm of b - A x; kjit_cg computes it from x */
  /* norm of A^T (b - A x) - damp^2 x, Frobenius norm of the matrix, and its condition; kjit_lsmr
   * only */
  double normal_residual_norm, matrix_norm, condition;
  double solution_norm; /* norm of x */
} kjit_solution;

/* Returns a status description, for example "the residual is within the tolerances". The
 * string is static. Returns NULL if the status is unknown. */
KJIT_API const char *kjit_get_solve_status_text(kjit_solve_status status);

/* Solves A x = b for a symmetric positive definite matrix with the conjugate gradient method,
 * starting from zeros.
 *
 * b and x have one axis, and A is square with the same size. All elements are f32 or f64. Vectors
 * stay on the device. The host waits for two sums in each iteration. If the system does not
 * converge, the call still succeeds: *solution has the reason, and x has the smallest residual
 * found.
 *
 * If options is NULL, all options have their defaults. Errors: ARGUMENT (shapes, operands that
 * overlap or cannot be written, negative options or NaN), TYPE (elements that are not f32 or f64),
 * MISUSE (neither matrix nor function, or solution is NULL), and errors from kjit_spmv and from the
 * operator's function. */
KJIT_API KJIT_CHECK kjit_status kjit_cg(kjit_context *context, const kjit_operand *x,
                                        const kjit_linear_operator *a, const kjit_operand *b,
                                        const kjit_solve_options *options, kjit_solution *solution);
/* Minimizes |b - A x|^2 + damp^2 |x|^2 for a matrix of any shape with LSMR (Fong and Saunders,
 * 2011), starting from zeros. If several x minimize it, the result is the x with the smallest norm.
 * The host waits for three sums in each iteration. Otherwise the function works like kjit_cg. */
KJIT_API KJIT_CHECK kjit_status kjit_lsmr(kjit_context *context, const kjit_operand *x,
                                          const kjit_linear_operator *a, const kjit_operand *b,
                                          const kjit_solve_options *options,
                                          kjit_solution *solution);

#ifdef __cplusplus
}
#endif
#endif
