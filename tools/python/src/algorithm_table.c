/* The table that maps the names of algorithms to their C functions and parameters.
 * algorithm_calls.inc, which scripts/make-algorithms.py generates from
 * runtime/algorithm/algorithms.def, contains all functions except those whose result is a sparse
 * matrix. */
#include "algorithm.h"

/* Reads a matrix from five arguments: data, columns, offsets, number of rows, number of columns. */
static kjit_csr csr_of(const algorithm_argument *a)
{
  return (kjit_csr){ a[0].operands, a[1].operands, a[2].operands, { a[3].integer, a[4].integer } };
}

#define CALL(name, call) \
  static kjit_status call_##name(kjit_context *context, const algorithm_argument *a, \
                                 const kjit_algorithm_options *options) \
  { \
    return call; \
  }
#include "algorithm_calls.inc"
#undef CALL

/* Returns a result matrix with the given shape. If the caller asks only for descriptions of the
 * results, the matrix has no operands. */
static kjit_csr result_of(const algorithm_argument *a, int64_t rows, int64_t columns)
{
  return (kjit_csr){ a[0].operands, a[1].operands, a[2].operands, { rows, columns } };
}

static kjit_status call_csr_from_coo(kjit_context *context, const algorithm_argument *a,
                                     const kjit_algorithm_options *options)
{
  kjit_csr result = result_of(a, a[6].integer, a[7].integer);
  kjit_coo matrix = { a[3].operands, a[4].operands, a[5].operands, { a[6].integer, a[7].integer } };
  return kjit_csr_from_coo(context, &result, &matrix, options);
}

static kjit_status call_csr_transpose(kjit_context *context, const algorithm_argument *a,
                                      const kjit_algorithm_options *options)
{
  kjit_csr matrix = csr_of(&a[3]), result = result_of(a, a[7].integer, a[6].integer);
  return kjit_csr_transpose(context, &result, &matrix, options);
}

static kjit_status call_csr_from_dense(kjit_context *context, const algorithm_argument *a,
                                       const kjit_algorithm_options *options)
{
  kjit_csr result = result_of(a, a[4].integer, a[5].integer);
  return kjit_csr_from_dense(context, &result, a[3].operands, options);
}

static const algorithm_row rows[] = {
#define ROW(name, parameters) { #name, parameters, call_##name },
#include "algorithm_calls.inc"
#undef ROW
  { "csr_from_coo", "rrrxxxii", call_csr_from_coo },
  { "csr_transpose", "rrrxxxii", call_csr_transpose },
  { "csr_from_dense", "rrrxii", call_csr_from_dense },
};

const algorithm_row *binding_find_algorithm(const char *name)
{
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (!strcmp(rows[i].name, name)) return &rows[i];
  return NULL;
}
