/* Sparse matrices as operands of --call. A matrix is an --arg with a file of
 * scipy.sparse.save_npz. */
#ifndef RUN_SPARSE_H
#define RUN_SPARSE_H

#include "call.h"

/* Scans the name of an --arg that is a sparse matrix. `part` receives three operands in CSR format.
 * A COO matrix is converted once, on the CPU. */
bool run_scan_matrix(const run_maker *m, tool_scanner *scanner, run_step *step, run_part *part);

/* Disables the warnings of cg and lsmr about missing convergence. */
void run_silence_solvers(void);

/* The functions that the table of algorithms calls. */
kjit_status run_call_cg(kjit_context *context, const run_argument *a,
                        const kjit_algorithm_options *options);
kjit_status run_call_lsmr(kjit_context *context, const run_argument *a,
                          const kjit_algorithm_options *options);

#endif
