/* Declarations for the solvers of linear systems and their operations on device vectors. */
#ifndef KA_SOLVER_H
#define KA_SOLVER_H

#include "algorithm/sparse.h"

enum { KA_MOST_SCALARS = 4 };

/* A prepared launch that runs repeatedly with different scalars. */
typedef struct ka_task {
  kjit_plan *plan;
  size_t scalars[KA_MOST_SCALARS]; /* positions of the scalars among the kernel's arguments */
} ka_task;

/* A product with the matrix: a plan, or a function of the application. */
typedef struct ka_multiplication {
  kjit_plan *plan;
  kjit_multiply *function;
  kjit_operand result, x;
} ka_multiplication;

typedef struct ka_solver {
  ka_call *call;
  const kjit_linear_operator *a;
  kjit_solve_options options;
  kjit_type element; /* element type of all vectors: f32 or f64 */
  uint64_t rows, columns;
  ka_operand x, b;
  const kjit_operand *given_x, *given_b;
  kjit_array *sum; /* device array with one f64 */
  KJ_LIST(kjit_plan *) plans;
  kjit_solution solution;
} ka_solver;

/* Iterates until the solver has found the solution or stops without one; returns the vector x. */
typedef kjit_array *ka_iterate(ka_solver *solver);

/* Executes the call of a solver: reads operands and options, runs the solver, and writes x and the
 * solution. */
kjit_status ka_solve(kjit_context *context, const char *name, const kjit_operand *x,
                     const kjit_linear_operator *a, const kjit_operand *b,
                     const kjit_solve_options *options, kjit_solution *solution,
                     ka_iterate *iterate);

/* Return a new vector: with undefined contents, with zeros, and with the elements of b. */
kjit_array *ka_new_vector(ka_solver *solver, uint64_t count);
kjit_array *ka_new_zeros(ka_solver *solver, uint64_t count);
kjit_array *ka_take_right_side(ka_solver *solver);

/* Prepare a product with the matrix A: ka_prepare_product prepares result = A x, and
 * ka_prepare_transposed prepares result = A^T x. */
ka_multiplication ka_prepare_product(ka_solver *solver, kjit_array *result, kjit_array *x);
ka_multiplication ka_prepare_transposed(ka_solver *solver, kjit_array *result, kjit_array *x);
void ka_multiply(ka_solver *solver, const ka_multiplication *m);

/* Prepares an operation on vectors. Its kernel calls `function` with the arrays, their number of
 * elements `count`, and the scalars. */
typedef struct ka_vectors {
  const char *function; /* func of lib/library/solver.kir */
  kjit_array *arrays[6];
  size_t array_count;
  size_t scalar_count;
  uint64_t count;
} ka_vectors;
ka_task ka_prepare_task(ka_solver *solver, const ka_vectors *vectors);
void ka_run_task(ka_solver *solver, const ka_task *task, const double *scalars, size_t count);
/* Prepares the dot product of two vectors. ka_read_sum runs the task and waits for the result. */
ka_task ka_prepare_sum(ka_solver *solver, kjit_array *x, kjit_array *y, uint64_t count);
double ka_read_sum(ka_solver *solver, const ka_task *task);

#endif
