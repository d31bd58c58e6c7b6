/* Sparse matrices: what products, conversions and solvers share. */
#ifndef KA_SPARSE_H
#define KA_SPARSE_H

#include "algorithm/algorithm.h"

/* A matrix in CSR as it is read: operands of one axis, arranged. */
typedef struct ka_csr {
  ka_operand data, columns, offsets;
  uint64_t rows, count; /* count: entries that the arrays have room for */
} ka_csr;

/* sparse.c */

/* Reads and checks the matrix, all but the values of its indices. Errors: MISUSE, ARGUMENT, TYPE.
 */
void ka_read_csr(ka_call *call, const kjit_csr *given, ka_csr *csr);
/* An operand of one axis and of integers of type i32 or i64, or, any_element, of whatever. */
void ka_check_line(ka_call *call, const ka_operand *operand);
void ka_check_indices(ka_call *call, const ka_operand *operand);
/* Puts an operand of one axis into the order of a kernel, which is its own. */
void ka_arrange_line(ka_call *call, ka_operand *operand);
/* Extents that are negative, or too large together, are refused. */
void ka_check_extents(ka_call *call, const int64_t *shape);

#endif
