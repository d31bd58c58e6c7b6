/* kjit_cg: the conjugate gradient method (Hestenes and Stiefel, 1952). */
#include <math.h>

#include "algorithm/solver.h"

/* Each step writes x to another vector, so that the solver can return to the previous x if that has
 * the smallest residual so far. */
typedef struct gradients {
  ka_solver *solver;
  kjit_array *x[2], *best, *r, *p, *q;
  ka_task step[2], turn, sum_pq, sum_rr;
  double rr, best_rr; /* squares of residual norms */
  bool is_best_kept;  /* true if the x with the smallest residual is in `best`, false if it is the
                         current x */
  int current;
} gradients;

static void prepare(gradients *g)
{
  ka_solver *s = g->solver;
  uint64_t n = s->rows;
  g->r = ka_take_right_side(s);
  g->p = ka_take_right_side(s);
  g->q = ka_new_vector(s, n);
  g->best = ka_new_vector(s, n);
  for (int i = 0; i < 2; i++) g->x[i] = ka_new_zeros(s, n);
  for (int i = 0; i < 2; i++)
    g->step[i] =
      ka_prepare_task(s, &(ka_vectors){
                           "solver_step", { g->x[i], g->x[!i], g->p, g->r, g->q }, 5, 1, n });
  g->turn = ka_prepare_task(s, &(ka_vectors){ "solver_combine", { g->r, g->p }, 2, 2, n });
  g->sum_pq = ka_prepare_sum(s, g->p, g->q, n);
  g->sum_rr = ka_prepare_sum(s, g->r, g->r, n);
}

static void copy_vector(gradients *g, kjit_array *to, kjit_array *from)
{
  ka_call *call = g->solver->call;
  kjit_arg destination = kjit_arg_array(to), source = kjit_arg_array(from);
  ka_try(call, kjit_copy(call->context, &destination, &source, call->options.stream));
}

/* Copies the previous x to `best` if its residual is the smallest so far and the new residual is
 * larger. */
static void keep_best(gradients *g, double rr)
{
  if (rr < g->best_rr) {
    g->best_rr = rr;
    g->is_best_kept = false;
  } else if (!g->is_best_kept) {
    copy_vector(g, g->best, g->x[!g->current]);
    g->is_best_kept = true;
  }
}

/* Iterates until convergence or failure, and returns the status. */
static kjit_solve_status run(gradients *g, const ka_multiplication *product, double goal)
{
  ka_solver *s = g->solver;
  int64_t limit = s->options.iteration_limit ? s->options.iteration_limit : 10 * (int64_t)s->rows;
  while (sqrt(g->rr) > goal) {
    if (s->solution.iterations >= limit) return KJIT_SOLVE_ITERATIONS;
    ka_multiply(s, product);
    double curvature = ka_read_sum(s, &g->sum_pq);
    if (!isfinite(curvature)) return KJIT_SOLVE_OVERFLOW;
    if (curvature <= 0) return KJIT_SOLVE_INDEFINITE;
    double length = g->rr / curvature;
    ka_run_task(s, &g->step[g->current], &length, 1);
    g->current = !g->current;
    s->solution.iterations++;
    double rr = ka_read_sum(s, &g->sum_rr);
    keep_best(g, rr);
    if (!isfinite(rr)) return KJIT_SOLVE_OVERFLOW;
    const double turn[] = { 1, rr / g->rr };
    ka_run_task(s, &g->turn, turn, 2);
    g->rr = rr;
  }
  return KJIT_SOLVED;
}

/* Computes the norms of x and of b - A x. The residual is computed from x, because the residual
 * that the iteration updates accumulates rounding errors. */
static void measure(gradients *g, kjit_array *x)
{
  ka_solver *s = g->solver;
  kjit_array *residual = ka_take_right_side(s);
  ka_multiplication product = ka_prepare_product(s, g->q, x);
  ka_task subtract =
            ka_prepare_task(s,
                            &(ka_vectors){ "solver_combine", { g->q, residual }, 2, 2, s->rows }),
          square = ka_prepare_sum(s, residual, residual, s->rows),
          square_x = ka_prepare_sum(s, x, x, s->rows);
  const double scalars[] = { -1, 1 };
  ka_multiply(s, &product);
  ka_run_task(s, &subtract, scalars, 2);
  s->solution.residual_norm = sqrt(ka_read_sum(s, &square));
  s->solution.solution_norm = sqrt(ka_read_sum(s, &square_x));
}

static kjit_array *iterate(ka_solver *solver)
{
  gradients g = { .solver = solver };
  double tolerance = solver->options.residual_tolerance;
  if (solver->rows != solver->columns)
    ka_fail(solver->call, KJIT_ERROR_ARGUMENT,
            "the matrix has the shape (%llu, %llu); kjit_cg needs a square matrix",
            (unsigned long long)solver->rows, (unsigned long long)solver->columns);
  if (!solver->rows) return ka_new_zeros(solver, 0);
  prepare(&g);
  ka_multiplication product = ka_prepare_product(solver, g.q, g.p);
  g.rr = g.best_rr = ka_read_sum(solver, &g.sum_rr);
  solver->solution.status = isfinite(g.rr)
                              ? run(&g, &product, (tolerance != 0 ? tolerance : 1e-5) * sqrt(g.rr))
                              : KJIT_SOLVE_OVERFLOW;
  kjit_array *x = g.is_best_kept ? g.best : g.x[g.current];
  measure(&g, x);
  return x;
}

kjit_status kjit_cg(kjit_context *context, const kjit_operand *x, const kjit_linear_operator *a,
                    const kjit_operand *b, const kjit_solve_options *options,
                    kjit_solution *solution)
{
  return ka_solve(context, "kjit_cg", x, a, b, options, solution, iterate);
}
