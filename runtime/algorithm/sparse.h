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
void ka_arrange_csr(ka_call *call, ka_csr *csr);
/* An operand of one axis; and of integers of type i32 or i64. */
void ka_check_line(ka_call *call, const ka_operand *operand);
void ka_check_indices(ka_call *call, const ka_operand *operand);
/* Puts an operand of one axis into the order of a kernel, which is its own. */
void ka_arrange_line(ka_call *call, ka_operand *operand);
/* Extents that are negative, or too large together, are refused. */
void ka_check_extents(ka_call *call, const int64_t *shape);

/* ---- calls that are made of calls: sparse_calls.c ---- */

/* They are made one after the other by the outer call's build, which adds no steps of its own; with
 * options.plan each is prepared, and the outer plan runs them in that order. Refuses work_bytes and
 * work. */
void ka_begin_calls(ka_call *call);
/* For one inner call: the outer call's device and stream, and a place for its plan where the outer
 * call is prepared. */
kjit_algorithm_options ka_inner_options(ka_call *call);
/* A call of the outer one's name whose steps build adds. Failures leave the outer call. */
void ka_call_inner(ka_call *call, ka_build *build, const void *data);
/* Work memory of a line of elements until the outer call ends; never without elements. */
kjit_array *ka_new_array(ka_call *call, kjit_type element, uint64_t count);
/* Every element becomes the number, of a plan in each run. */
void ka_fill_array(ka_call *call, kjit_array *array, double number);
/* What a kernel's text calls an array of work memory. */
const char *ka_use_kept(ka_kernel *kernel, kjit_array *array);
/* A value of i64. */
const char *ka_use_long(ka_kernel *kernel, int64_t value);
/* Reads an operand of one axis in an inner call; what stands for it in the kernel's text. */
const char *ka_use_line(ka_kernel *kernel, const char *name, const kjit_operand *given,
                        bool is_output);
/* A result in CSR, of data of such elements and with room for `room` entries, which must not
 * overlap the inputs. Errors: MISUSE, ARGUMENT, TYPE. */
void ka_check_csr_result(ka_call *call, const kjit_csr *result, kjit_type element, uint64_t room,
                         const int64_t *shape, const ka_operand *const *inputs, size_t input_count);
/* ka_describe for its three operands. */
bool ka_describe_csr(ka_call *call, kjit_type element, uint64_t room, kjit_type index,
                     const int64_t *shape);

#endif
