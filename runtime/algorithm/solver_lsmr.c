/* kjit_lsmr. Implements D. C.-L. Fong and M. A. Saunders, "LSMR: an iterative algorithm for sparse
 * least-squares problems", SIAM J. Sci. Comput. 33 (2011), with the scalar names of this paper. The
 * Golub-Kahan bidiagonalization produces vectors u and v, which are stored here before
 * normalization, with norms beta and alpha. Each iteration needs a few dozen scalar operations on
 * the host. */
#include <float.h>
#include <math.h>

#include "algorithm/solver.h"

/* The Givens rotations that transform the bidiagonal matrix, extended by damp times the identity,
 * to upper bidiagonal form. LSMR transforms the matrix twice. */
typedef struct rotations {
  double alpha, beta, alphabar, zetabar, rho, rhobar, cbar, sbar, zeta;
  double thetabar, thetanew, rhoold, rhobarold, zetaold, chat, shat, c, s, rhotemp;
} rotations;

/* Data for estimating the norm of the residual. */
typedef struct residual {
  double betadd, betad, rhodold, tautildeold, thetatilde, squares;
} residual;

typedef struct bidiagonalization {
  ka_solver *solver;
  /* of_u: product of the transposed matrix and u; of_v: product of the matrix and v */
  kjit_array *u, *v, *h, *hbar, *x, *of_u, *of_v;
  ka_multiplication product, transposed;
  ka_task next_u, next_v, step, sum_u, sum_v, sum_x;
  rotations r;
  residual t;
  double norm_b, norm_a_squared, greatest_rhobar, least_rhobar;
} bidiagonalization;

/* ---- vectors ---- */

static void prepare(bidiagonalization *l)
{
  ka_solver *s = l->solver;
  uint64_t m = s->rows, n = s->columns;
  l->u = ka_take_right_side(s);
  l->of_v = ka_new_vector(s, m);
  l->of_u = ka_new_vector(s, n);
  l->v = ka_new_zeros(s, n);
  l->h = ka_new_zeros(s, n);
  l->hbar = ka_new_zeros(s, n);
  l->x = ka_new_zeros(s, n);
  l->product = ka_prepare_product(s, l->of_v, l->v);
  l->transposed = ka_prepare_transposed(s, l->of_u, l->u);
  l->next_u = ka_prepare_task(s, &(ka_vectors){ "solver_combine", { l->of_v, l->u }, 2, 2, m });
  l->next_v = ka_prepare_task(s, &(ka_vectors){ "solver_combine", { l->of_u, l->v }, 2, 2, n });
  l->step =
    ka_prepare_task(s, &(ka_vectors){ "solver_lsmr_step", { l->v, l->h, l->hbar, l->x }, 4, 4, n });
  l->sum_u = ka_prepare_sum(s, l->u, l->u, m);
  l->sum_v = ka_prepare_sum(s, l->v, l->v, n);
  l->sum_x = ka_prepare_sum(s, l->x, l->x, n);
}

static double inverse(double x) { return x > 0 ? 1 / x : 0; }

/* Computes beta u = A v - alpha u and then alpha v = A^T u - beta v, with u and v of the previous
 * iteration on the right side. */
static void bidiagonalize(bidiagonalization *l)
{
  ka_solver *s = l->solver;
  rotations *r = &l->r;
  const double of_u[] = { inverse(r->alpha), -r->alpha * inverse(r->beta) };
  ka_multiply(s, &l->product);
  ka_run_task(s, &l->next_u, of_u, 2);
  r->beta = sqrt(ka_read_sum(s, &l->sum_u));
  const double of_v[] = { inverse(r->beta), -r->beta * inverse(r->alpha) };
  ka_multiply(s, &l->transposed);
  ka_run_task(s, &l->next_v, of_v, 2);
  r->alpha = sqrt(ka_read_sum(s, &l->sum_v));
}

/* ---- scalars ---- */

static void rotate(rotations *r, double damp)
{
  double alphahat = hypot(r->alphabar, damp);
  r->chat = r->alphabar / alphahat;
  r->shat = damp / alphahat;
  r->rhoold = r->rho;
  r->rho = hypot(alphahat, r->beta);
  r->c = alphahat / r->rho;
  r->s = r->beta / r->rho;
  r->thetanew = r->s * r->alpha;
  r->alphabar = r->c * r->alpha;
  r->rhobarold = r->rhobar;
  r->zetaold = r->zeta;
  r->thetabar = r->sbar * r->rho;
  r->rhotemp = r->cbar * r->rho;
  r->rhobar = hypot(r->rhotemp, r->thetanew);
  r->cbar = r->rhotemp / r->rhobar;
  r->sbar = r->thetanew / r->rhobar;
  r->zeta = r->cbar * r->zetabar;
  r->zetabar = -r->sbar * r->zetabar;
}

/* Estimates the norm of the residual as in section 5.2 of the paper. The estimate applies two more
 * rotations to the right side of the system. */
static double estimate_residual(residual *t, const rotations *r)
{
  double betaacute = r->chat * t->betadd, betacheck = -r->shat * t->betadd,
         betahat = r->c * betaacute, thetatildeold = t->thetatilde,
         rhotildeold = hypot(t->rhodold, r->thetabar), ctildeold = t->rhodold / rhotildeold,
         stildeold = r->thetabar / rhotildeold;
  t->betadd = -r->s * betaacute;
  t->thetatilde = stildeold * r->rhobar;
  t->rhodold = ctildeold * r->rhobar;
  t->betad = -stildeold * t->betad + ctildeold * betahat;
  t->tautildeold = (r->zetaold - thetatildeold * t->tautildeold) / rhotildeold;
  double taud = (r->zeta - t->thetatilde * t->tautildeold) / t->rhodold;
  t->squares += betacheck * betacheck;
  return sqrt(t->squares + (t->betad - taud) * (t->betad - taud) + t->betadd * t->betadd);
}

static void estimate_norms(bidiagonalization *l)
{
  const rotations *r = &l->r;
  kjit_solution *known = &l->solver->solution;
  l->norm_a_squared += r->beta * r->beta;
  known->matrix_norm = sqrt(l->norm_a_squared);
  l->norm_a_squared += r->alpha * r->alpha;
  l->greatest_rhobar = fmax(l->greatest_rhobar, r->rhobarold);
  if (known->iterations > 1) l->least_rhobar = fmin(l->least_rhobar, r->rhobarold);
  known->condition = fmax(l->greatest_rhobar, r->rhotemp) / fmin(l->least_rhobar, r->rhotemp);
  known->normal_residual_norm = fabs(r->zetabar);
}

/* Returns whether the iteration ends, and stores the status. A tolerance below the rounding error
 * of the element type is replaced by the rounding error. */
static bool is_done(const bidiagonalization *l, int64_t limit, kjit_solve_status *status)
{
  const ka_solver *s = l->solver;
  const kjit_solve_options *o = &s->options;
  const kjit_solution *k = &s->solution;
  double rounding = s->element == KJIT_F32 ? FLT_EPSILON : DBL_EPSILON;
  double of_a = fmax(o->matrix_tolerance != 0 ? o->matrix_tolerance : 1e-6, rounding),
         of_b = fmax(o->b_tolerance != 0 ? o->b_tolerance : 1e-6, rounding),
         most = fmin(o->condition_limit != 0 ? o->condition_limit : 1e8, 1 / rounding);
  double goal = of_b * l->norm_b + of_a * k->matrix_norm * k->solution_norm;
  if (!isfinite(k->residual_norm) || !isfinite(k->solution_norm)) *status = KJIT_SOLVE_OVERFLOW;
  else if (k->residual_norm <= goal) *status = KJIT_SOLVED;
  else if (k->normal_residual_norm <= of_a * k->matrix_norm * k->residual_norm)
    *status = KJIT_SOLVED_LEAST_SQUARES;
  else if (k->condition >= most) *status = KJIT_SOLVE_CONDITION;
  else if (k->iterations >= limit) *status = KJIT_SOLVE_ITERATIONS;
  else return false;
  return true;
}

/* ---- the iterations ---- */

static void start(bidiagonalization *l)
{
  ka_solver *s = l->solver;
  rotations *r = &l->r;
  *r = (rotations){ .rho = 1, .rhobar = 1, .cbar = 1 };
  r->beta = l->norm_b = sqrt(ka_read_sum(s, &l->sum_u));
  const double first[] = { inverse(r->beta), 0 };
  ka_multiply(s, &l->transposed);
  ka_run_task(s, &l->next_v, first, 2);
  r->alpha = r->alphabar = sqrt(ka_read_sum(s, &l->sum_v));
  r->zetabar = r->alpha * r->beta;
  l->t = (residual){ .betadd = r->beta, .rhodold = 1 };
  l->norm_a_squared = r->alpha * r->alpha;
  l->least_rhobar = DBL_MAX;
  s->solution.residual_norm = r->beta;
  s->solution.normal_residual_norm = fabs(r->zetabar);
  s->solution.matrix_norm = r->alpha;
  s->solution.condition = 1;
  const double direction[] = { 0, 0, 0, inverse(r->alpha) }; /* h = v */
  ka_run_task(s, &l->step, direction, 4);
}

static kjit_solve_status run(bidiagonalization *l)
{
  ka_solver *s = l->solver;
  rotations *r = &l->r;
  kjit_solve_status status;
  int64_t limit = s->options.iteration_limit;
  if (!limit) limit = (int64_t)ka_least(s->rows, s->columns);
  do {
    s->solution.iterations++;
    bidiagonalize(l);
    rotate(r, s->options.damp);
    const double scalars[] = { -r->thetabar * r->rho / (r->rhoold * r->rhobarold),
                               r->zeta / (r->rho * r->rhobar), -r->thetanew / r->rho,
                               inverse(r->alpha) };
    ka_run_task(s, &l->step, scalars, 4);
    s->solution.solution_norm = sqrt(ka_read_sum(s, &l->sum_x));
    s->solution.residual_norm = estimate_residual(&l->t, r);
    estimate_norms(l);
  } while (!is_done(l, limit, &status));
  return status;
}

static kjit_array *iterate(ka_solver *solver)
{
  bidiagonalization l = { .solver = solver };
  const kjit_linear_operator *a = solver->a;
  if (!a->matrix && !a->multiply_transposed)
    ka_fail(solver->call, KJIT_ERROR_MISUSE,
            "the operator has neither a matrix nor a function `multiply_transposed`");
  if (!solver->rows || !solver->columns) {
    kjit_array *x = ka_new_zeros(solver, solver->columns);
    if (solver->rows) {
      kjit_array *b = ka_take_right_side(solver);
      ka_task square = ka_prepare_sum(solver, b, b, solver->rows);
      solver->solution.residual_norm = sqrt(ka_read_sum(solver, &square));
    }
    solver->solution.status =
      solver->solution.residual_norm > 0 ? KJIT_SOLVED_LEAST_SQUARES : KJIT_SOLVED;
    return x;
  }
  prepare(&l);
  start(&l);
  kjit_solution *known = &solver->solution;
  if (!isfinite(known->normal_residual_norm)) known->status = KJIT_SOLVE_OVERFLOW;
  else if (known->normal_residual_norm == 0)
    known->status = known->residual_norm == 0 ? KJIT_SOLVED : KJIT_SOLVED_LEAST_SQUARES;
  else known->status = run(&l);
  return l.x;
}

kjit_status kjit_lsmr(kjit_context *context, const kjit_operand *x, const kjit_linear_operator *a,
                      const kjit_operand *b, const kjit_solve_options *options,
                      kjit_solution *solution)
{
  return ka_solve(context, "kjit_lsmr", x, a, b, options, solution, iterate);
}
