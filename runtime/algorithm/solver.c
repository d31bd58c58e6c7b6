/* Common parts of the solvers kjit_cg and kjit_lsmr: reading the call, products with the operator,
 * and vector operations (lib/library/solver.kir). A solver prepares its launches once and runs them
 * with new scalars in each iteration. */
#include "algorithm/solver.h"

#include <math.h>
#include <string.h>

#include "ir/context.h"

const char *kjit_get_solve_status_text(kjit_solve_status status)
{
  static const char *const texts[] = {
    [KJIT_SOLVED] = "the residual is within the tolerances",
    [KJIT_SOLVED_LEAST_SQUARES] = "the residual is minimal within the tolerances",
    [KJIT_SOLVE_CONDITION] = "the matrix is too ill-conditioned to continue",
    [KJIT_SOLVE_ITERATIONS] = "the maximum number of iterations was reached",
    [KJIT_SOLVE_INDEFINITE] = "the matrix is not positive definite",
    [KJIT_SOLVE_OVERFLOW] = "a computed value is no longer finite",
  };
  size_t count = sizeof texts / sizeof *texts;
  return (size_t)status < count ? texts[status] : NULL;
}

/* ---- vectors ---- */

kjit_array *ka_new_vector(ka_solver *solver, uint64_t count)
{
  return ka_new_array(solver->call, solver->element, count);
}

kjit_array *ka_new_zeros(ka_solver *solver, uint64_t count)
{
  kjit_array *vector = ka_new_vector(solver, count);
  ka_fill_array(solver->call, vector, 0);
  return vector;
}

/* A copy from or to an operand of the application. */
typedef struct transfer {
  const char *function, *name;
  const kjit_operand *given;
  kjit_array *vector;
  uint64_t count;
  bool is_output;
} transfer;

static void build_transfer(ka_call *call, const void *data)
{
  const transfer *t = data;
  ka_kernel kernel;
  ka_begin_kernel(call, "solver", &kernel);
  const char *given = ka_use_line(&kernel, t->name, t->given, t->is_output),
             *vector = ka_use_kept(&kernel, t->vector), *n = ka_use_count(&kernel, t->count);
  ka_launch(&kernel, 0, 0, "%s(%s, %s, %s)", t->function, given, vector, n);
}

kjit_array *ka_take_right_side(ka_solver *solver)
{
  kjit_array *vector = ka_new_vector(solver, solver->rows);
  const transfer t = { "solver_take", "b", solver->given_b, vector, solver->rows, false };
  if (solver->rows) ka_call_inner(solver->call, build_transfer, &t);
  return vector;
}

static void give_solution(ka_solver *solver, kjit_array *vector)
{
  const transfer t = { "solver_give", "x", solver->given_x, vector, solver->columns, true };
  if (solver->columns) ka_call_inner(solver->call, build_transfer, &t);
}

/* ---- tasks ---- */

typedef struct task_given {
  ka_task *task;
  const ka_vectors *vectors;
  kjit_array *sum; /* array for a dot product */
} task_given;

static void build_task(ka_call *call, const void *data)
{
  const task_given *given = data;
  const ka_vectors *v = given->vectors;
  const kjit_arg zero = kjit_arg_f64(0);
  const char *list = "";
  ka_kernel kernel;
  ka_begin_kernel(call, "solver", &kernel);
  for (size_t i = 0; i < v->array_count; i++)
    list = kj_format(&call->arena, "%s%s, ", list, ka_use_kept(&kernel, v->arrays[i]));
  list = kj_format(&call->arena, "%s%s", list, ka_use_count(&kernel, v->count));
  for (size_t i = 0; i < v->scalar_count; i++) {
    given->task->scalars[i] = kernel.arguments.count;
    list = kj_format(&call->arena, "%s, %s", list, ka_use_value(&kernel, &zero));
  }
  ka_launch(&kernel, 0, 0, "%s(%s)", v->function, list);
}

enum {
  SUM_THREADS = 256,
  SUM_ITEMS = 8,
  SUM_BLOCKS = 4,     /* blocks for each multiprocessor */
  CPU_PIECES = 4,     /* number of chunks for each core */
  CPU_LEAST = 1 << 15 /* minimum number of elements in a chunk */
};

static void build_sum(ka_call *call, const void *data)
{
  const task_given *given = data;
  const ka_vectors *v = given->vectors;
  bool is_cpu = ka_is_cpu(call);
  uint64_t cores = ka_core_count(call),
           blocks =
             is_cpu ? ka_least(v->count / CPU_LEAST, CPU_PIECES * cores)
                    : ka_least(ka_divide_up(v->count, SUM_THREADS * SUM_ITEMS), SUM_BLOCKS * cores);
  blocks = ka_most(blocks, 1);
  uint32_t partial = ka_add_work(call, KJIT_F64, blocks, false),
           done = ka_add_work(call, KJIT_U32, 1, true);
  ka_kernel kernel;
  ka_begin_kernel(call, "solver", &kernel);
  const char *x = ka_use_kept(&kernel, v->arrays[0]), *y = ka_use_kept(&kernel, v->arrays[1]),
             *sum = ka_use_kept(&kernel, given->sum), *n = ka_use_count(&kernel, v->count),
             *partial_name = ka_use_work(&kernel, partial), *done_name = ka_use_work(&kernel, done),
             *items = ka_use_constant(&kernel, SUM_ITEMS);
  ka_launch(&kernel, is_cpu ? 1 : SUM_THREADS, blocks,
            "solver_dot(%s, %s, bind_back(solver_put, %s), %s, %s, %s, THREADS, %s)", x, y, sum, n,
            partial_name, done_name, items);
}

/* Returns the address at which to store a new plan, which the solver owns. */
static kjit_plan **add_plan(ka_solver *solver)
{
  KJ_PUSH(&solver->call->arena, &solver->plans, NULL);
  return &solver->plans.items[solver->plans.count - 1];
}

static void prepare(ka_solver *solver, ka_build *build, const task_given *given)
{
  ka_call *call = solver->call;
  kjit_algorithm_options options = ka_inner_options(call);
  options.plan = add_plan(solver);
  ka_try(call, ka_perform(call->context, call->name, 0, &options, build, given));
  given->task->plan = *options.plan;
}

ka_task ka_prepare_task(ka_solver *solver, const ka_vectors *vectors)
{
  ka_task task = { 0 };
  const task_given given = { &task, vectors, NULL };
  KJ_ASSERT(vectors->scalar_count <= KA_MOST_SCALARS);
  prepare(solver, build_task, &given);
  return task;
}

void ka_run_task(ka_solver *solver, const ka_task *task, const double *scalars, size_t count)
{
  /* the cast removes const; only this solver has the plan, so no other thread uses it */
  kjit_prepared *prepared = (kjit_prepared *)kjit_get_plan_launch(task->plan, 0);
  for (size_t i = 0; i < count; i++) {
    const kjit_arg scalar = kjit_arg_f64(scalars[i]);
    ka_try(solver->call, kjit_set_prepared_argument(prepared, task->scalars[i], &scalar));
  }
  ka_try(solver->call, kjit_run_plan(task->plan, solver->call->options.stream));
}

ka_task ka_prepare_sum(ka_solver *solver, kjit_array *x, kjit_array *y, uint64_t count)
{
  ka_task task = { 0 };
  const ka_vectors vectors = { .arrays = { x, y }, .array_count = 2, .count = count };
  const task_given given = { &task, &vectors, solver->sum };
  prepare(solver, build_sum, &given);
  return task;
}

double ka_read_sum(ka_solver *solver, const ka_task *task)
{
  double sum;
  ka_run_task(solver, task, NULL, 0);
  ka_try(solver->call,
         kjit_copy_to_host(solver->sum, &sum, sizeof sum, solver->call->options.stream));
  return sum;
}

/* ---- products ---- */

static ka_multiplication prepare_product(ka_solver *solver, const kjit_csr *matrix,
                                         kjit_multiply *function, kjit_array *result, kjit_array *x)
{
  ka_call *call = solver->call;
  ka_multiplication m = { NULL, function, kjit_operand_array(result), kjit_operand_array(x) };
  if (!matrix) return m;
  kjit_algorithm_options options = ka_inner_options(call);
  options.plan = add_plan(solver);
  ka_try(call, kjit_spmv(call->context, &m.result, matrix, &m.x, &options));
  m.plan = *options.plan;
  return m;
}

ka_multiplication ka_prepare_product(ka_solver *solver, kjit_array *result, kjit_array *x)
{
  return prepare_product(solver, solver->a->matrix, solver->a->multiply, result, x);
}

/* Transposes the matrix into new arrays, which are released at the end of the call. `operands`
 * receives the arrays. */
static kjit_csr transpose(ka_solver *solver, kjit_operand *operands)
{
  ka_call *call = solver->call;
  const kjit_csr *a = solver->a->matrix;
  kjit_algorithm_options options = ka_inner_options(call);
  kjit_result_info infos[3];
  options.results = infos;
  options.result_count = 3;
  ka_try(call, kjit_csr_transpose(call->context, NULL, a, &options));
  for (size_t i = 0; i < 3; i++) {
    kjit_array_config config = { .size_bytes = sizeof config,
                                 .device = call->device,
                                 .element = infos[i].element,
                                 .rank = 1,
                                 .shape = infos[i].shape,
                                 .stream = call->options.stream };
    kjit_array **array = ka_add_view(call);
    ka_try(call, kjit_create_array_with(&config, array));
    operands[i] = kjit_operand_array(*array);
  }
  kjit_csr made = { &operands[0], &operands[1], &operands[2], { a->shape[1], a->shape[0] } };
  options.results = NULL;
  options.result_count = 0;
  ka_try(call, kjit_csr_transpose(call->context, &made, a, &options));
  return made;
}

ka_multiplication ka_prepare_transposed(ka_solver *solver, kjit_array *result, kjit_array *x)
{
  const kjit_linear_operator *a = solver->a;
  kjit_operand operands[3];
  if (!a->matrix || a->transposed)
    return prepare_product(solver, a->transposed, a->multiply_transposed, result, x);
  kjit_csr made = transpose(solver, operands);
  return prepare_product(solver, &made, NULL, result, x);
}

void ka_multiply(ka_solver *solver, const ka_multiplication *m)
{
  ka_call *call = solver->call;
  if (m->plan) {
    ka_try(call, kjit_run_plan(m->plan, call->options.stream));
    return;
  }
  kjit_algorithm_options options = ka_inner_options(call);
  ka_try(call, m->function(solver->a->user, &m->result, &m->x, &options));
}

/* ---- the call ---- */

typedef struct solver_given {
  const kjit_operand *x, *b;
  const kjit_linear_operator *a;
  kjit_solve_options options;
  ka_iterate *iterate;
  kjit_solution *solution;
} solver_given;

static void check_options(ka_call *call, const kjit_solve_options *o)
{
  const struct {
    double number;
    const char *name;
  } rows[] = { { o->damp, "damp" },
               { o->matrix_tolerance, "matrix_tolerance" },
               { o->b_tolerance, "b_tolerance" },
               { o->condition_limit, "condition_limit" },
               { o->residual_tolerance, "residual_tolerance" },
               { (double)o->iteration_limit, "iteration_limit" } };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (!(rows[i].number >= 0) || isinf(rows[i].number))
      ka_fail(call, KJIT_ERROR_ARGUMENT,
              KJ_OPTION("%s") " is %g, but must be finite and not negative", rows[i].name,
              rows[i].number);
}

static void check_matrix(ka_solver *solver, const kjit_csr *matrix, uint64_t rows, uint64_t columns)
{
  ka_call *call = solver->call;
  ka_csr csr;
  ka_read_csr(call, matrix, &csr);
  if ((uint64_t)matrix->shape[0] != rows || (uint64_t)matrix->shape[1] != columns)
    ka_fail(call, KJIT_ERROR_ARGUMENT,
            "the transposed matrix has the shape (%lld, %lld); expected (%llu, %llu)",
            (long long)matrix->shape[0], (long long)matrix->shape[1], (unsigned long long)rows,
            (unsigned long long)columns);
  if (csr.data.element != solver->element)
    ka_fail(call, KJIT_ERROR_TYPE,
            "`data` has elements of type %s, but `b` has elements of type %s",
            ka_type_text(call, csr.data.element), ka_type_text(call, solver->element));
  ka_check_overlap(call, &solver->x, &csr.data, false);
  ka_check_overlap(call, &solver->x, &csr.columns, false);
  ka_check_overlap(call, &solver->x, &csr.offsets, false);
}

static void read_operator(ka_solver *solver)
{
  ka_call *call = solver->call;
  const kjit_linear_operator *a = solver->a;
  if (!a) ka_fail(call, KJIT_ERROR_MISUSE, "the operator is NULL");
  if (!a->matrix && !a->multiply)
    ka_fail(call, KJIT_ERROR_MISUSE, "the operator has neither a matrix nor a function `multiply`");
  const int64_t *shape = a->matrix ? a->matrix->shape : a->shape;
  ka_check_extents(call, shape);
  solver->rows = (uint64_t)shape[0];
  solver->columns = (uint64_t)shape[1];
}

static void read_vector(ka_solver *solver, ka_operand *vector, uint64_t extent, const char *of)
{
  ka_call *call = solver->call;
  ka_check_line(call, vector);
  if (vector->count != extent)
    ka_fail(call, KJIT_ERROR_ARGUMENT, "`%s` has %llu elements, but the matrix has %llu %s",
            vector->name, (unsigned long long)vector->count, (unsigned long long)extent, of);
}

static void read_inputs(ka_solver *solver)
{
  ka_call *call = solver->call;
  read_operator(solver);
  ka_read_input(call, "b", solver->given_b, &solver->b);
  read_vector(solver, &solver->b, solver->rows, "rows");
  solver->element = solver->b.element;
  if (solver->element != KJIT_F32 && solver->element != KJIT_F64)
    ka_fail(call, KJIT_ERROR_TYPE, "`b` has elements of type %s; a solver needs f32 or f64",
            ka_type_text(call, solver->element));
  ka_read_output(call, "x", solver->given_x, &solver->x);
  read_vector(solver, &solver->x, solver->columns, "columns");
  if (!solver->x.function && solver->x.element != solver->element)
    ka_fail(call, KJIT_ERROR_TYPE, "`x` has elements of type %s, but `b` has elements of type %s",
            ka_type_text(call, solver->x.element), ka_type_text(call, solver->element));
  ka_check_overlap(call, &solver->x, &solver->b, false);
  if (!solver->a->matrix) return;
  check_matrix(solver, solver->a->matrix, solver->rows, solver->columns);
  if (solver->a->transposed)
    check_matrix(solver, solver->a->transposed, solver->columns, solver->rows);
}

static void destroy_plans(ka_solver *solver)
{
  for (size_t i = 0; i < solver->plans.count; i++) kjit_destroy_plan(solver->plans.items[i]);
}

/* Runs the solver and destroys its plans afterwards. If the solver leaves by a jump to on_failure,
 * destroys the plans as well and then continues the jump. */
static void build_solver(ka_call *call, const void *data)
{
  const solver_given *given = data;
  ka_solver *solver = KJ_NEW(&call->arena, ka_solver);
  *solver = (ka_solver){
    .call = call, .a = given->a, .options = given->options, .given_x = given->x, .given_b = given->b
  };
  check_options(call, &solver->options);
  read_inputs(solver);
  ka_choose_device(call);
  solver->sum = ka_new_array(call, KJIT_F64, 1);
  jmp_buf outer;
  memcpy(&outer, &call->on_failure, sizeof outer);
  int jump = setjmp(call->on_failure);
  if (jump == 0) give_solution(solver, given->iterate(solver));
  memcpy(&call->on_failure, &outer, sizeof outer);
  destroy_plans(solver);
  if (jump) longjmp(call->on_failure, jump);
  *given->solution = solver->solution;
}

kjit_status ka_solve(kjit_context *context, const char *name, const kjit_operand *x,
                     const kjit_linear_operator *a, const kjit_operand *b,
                     const kjit_solve_options *options, kjit_solution *solution,
                     ka_iterate *iterate)
{
  kjit_solution own = { 0 };
  solver_given given = { .x = x, .b = b, .a = a, .iterate = iterate, .solution = &own };
  KJ_TRY(kj_check_call(context, name, NULL));
  KJ_TRY(ki_read_sized(context, name, KI_SOLVE_OPTIONS, options, &given.options));
  KJ_TRY(ki_check_sized(context, name, KI_SOLUTION, solution));
  const kjit_algorithm_options inner = { .size_bytes = sizeof inner,
                                         .device = given.options.device,
                                         .stream = given.options.stream };
  KJ_TRY(ka_perform(context, name, 0, &inner, build_solver, &given));
  return ki_write_sized(context, name, KI_SOLUTION, &own, solution);
}
