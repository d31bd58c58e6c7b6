/* Declarations for sparse matrices that products, conversions and solvers share. */
#ifndef KA_SPARSE_H
#define KA_SPARSE_H

#include "algorithm/algorithm.h"

/* A CSR matrix whose arrays were read as one-dimensional operands and arranged. */
typedef struct ka_csr {
  ka_operand data, columns, offsets;
  uint64_t rows, count; /* number of rows; number of entries for which the arrays have space */
} ka_csr;

/* sparse.c */

/* Reads the matrix and checks everything except its indices' values. Errors: MISUSE, ARGUMENT,
 * TYPE. */
void ka_read_csr(ka_call *call, const kjit_csr *given, ka_csr *csr);
void ka_arrange_csr(ka_call *call, ka_csr *csr);
/* ka_check_line rejects an operand that does not have exactly one axis. ka_check_indices also
 * rejects an operand whose elements are neither i32 nor i64. */
void ka_check_line(ka_call *call, const ka_operand *operand);
void ka_check_indices(ka_call *call, const ka_operand *operand);
/* Calls ka_arrange for an operand with one axis. */
void ka_arrange_line(ka_call *call, ka_operand *operand);
/* Rejects negative extents. */
void ka_check_extents(ka_call *call, const int64_t *shape);

/* ---- calls that consist of other calls: sparse_calls.c ---- */

/* The build function of the outer call makes the inner calls in sequence and adds no steps itself.
 * If options.plan is set, it prepares each inner call, and the outer plan runs the prepared calls
 * in this order. ka_begin_calls rejects the options work_bytes and work. */
void ka_begin_calls(ka_call *call);
/* Returns options for one inner call: the device and the stream of the outer call and, if the outer
 * call is prepared, the address that receives the plan of the inner call. */
kjit_algorithm_options ka_inner_options(ka_call *call);
/* Makes an inner call. build adds the steps of the inner call, and its messages name the outer
 * call. A failure of the inner call ends the outer call. */
void ka_call_inner(ka_call *call, ka_build *build, const void *data);
/* Returns a new one-dimensional array that exists until the outer call ends. It has at least one
 * element. */
kjit_array *ka_new_array(ka_call *call, kjit_type element, uint64_t count);
/* Fills the array with the number. In a prepared call each run of the plan fills it. */
void ka_fill_array(ka_call *call, kjit_array *array, double number);
/* Adds a parameter for an array that ka_new_array has made, and returns its name in the kernel's
 * source. */
const char *ka_use_kept(ka_kernel *kernel, kjit_array *array);
/* Adds a parameter for an i64 value. */
const char *ka_use_long(ka_kernel *kernel, int64_t value);
/* Reads a one-dimensional operand in an inner call and returns its func in the kernel's source. */
const char *ka_use_line(ka_kernel *kernel, const char *name, const kjit_operand *given,
                        bool is_output);
/* Checks a CSR result: its data has elements of this type, its arrays have space for `room` entries
 * and do not overlap the inputs. Errors: MISUSE, ARGUMENT, TYPE. */
void ka_check_csr_result(ka_call *call, const kjit_csr *result, kjit_type element, uint64_t room,
                         const int64_t *shape, const ka_operand *const *inputs, size_t input_count);
/* Calls ka_describe for the three operands of a CSR result. */
bool ka_describe_csr(ka_call *call, kjit_type element, uint64_t room, kjit_type index,
                     const int64_t *shape);

#endif
