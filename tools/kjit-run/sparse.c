#include "sparse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the matrix ---- */

/* Makes operands of the matrix's host arrays, which are valid until further arguments are added. */
static void take_operands(const run_maker *m, size_t first, kjit_operand *operands,
                          kjit_tensor *tensors)
{
  for (size_t i = 0; i < 3; i++) {
    tool_array *array = &m->arguments->items[first + i].array;
    tensors[i] =
      kjit_make_tensor(array->memory->data, array->element, (int32_t)array->rank, array->shape);
    tensors[i].strides = array->strides;
    operands[i] = kjit_operand_of(kjit_arg_tensor(&tensors[i]));
  }
}

static bool add_results(const run_maker *m, const char *name, const kjit_result_info *infos)
{
  static const char *const names[] = { "csr_data", "csr_columns", "csr_offsets" };
  for (size_t i = 0; i < 3; i++) {
    tool_shape shape = { .element = infos[i].element, .rank = 1 };
    shape.extents[0] = infos[i].shape[0];
    char *full = tool_format("%s.%s", name, names[i]);
    bool ok = tool_add_array(m->arguments, full, strlen(full), &shape, m->error);
    free(full);
    if (!ok) return false;
  }
  return true;
}

static kjit_status convert(const run_maker *m, const char *name, tool_sparse *sparse)
{
  kjit_tensor tensors[6];
  kjit_operand operands[6];
  kjit_result_info infos[3];
  kjit_algorithm_options options = { .size_bytes = sizeof options };
  kjit_status status = kjit_get_device(m->context, KJIT_DEVICE_CPU, 0, &options.device);
  if (status != KJIT_OK) return status;
  take_operands(m, sparse->first, operands, tensors);
  const kjit_coo coo = {
    &operands[0], &operands[1], &operands[2], { sparse->shape[0], sparse->shape[1] }
  };
  options.results = infos;
  options.result_count = 3;
  status = kjit_csr_from_coo(m->context, NULL, &coo, &options);
  if (status != KJIT_OK) return status;
  sparse->made = m->arguments->count;
  if (!add_results(m, name, infos)) return KJIT_ERROR_MEMORY;
  sparse->is_made = true;
  take_operands(m, sparse->first, operands, tensors);
  take_operands(m, sparse->made, operands + 3, tensors + 3);
  const kjit_csr csr = {
    &operands[3], &operands[4], &operands[5], { sparse->shape[0], sparse->shape[1] }
  };
  options.results = NULL;
  options.result_count = 0;
  return kjit_csr_from_coo(m->context, &csr, &coo, &options);
}

bool run_scan_matrix(const run_maker *m, tool_scanner *scanner, run_step *step, run_part *part)
{
  size_t length = tool_name_length(scanner);
  const char *at = scanner->at;
  tool_argument *found = length ? tool_find_argument(m->arguments, at, length) : NULL;
  if (!found || !found->sparse)
    return tool_expected(scanner, "an --arg of a sparse matrix, a file of scipy.sparse.save_npz");
  /* a pointer of its own, because adding arrays may move `found` */
  tool_sparse *sparse = found->sparse;
  found->is_used = true;
  if (sparse->is_coo && !sparse->is_made) {
    kjit_status status = convert(m, found->name, sparse);
    if (status != KJIT_OK) return tool_scan_fail_kjit(scanner, at, m->context, status);
  }
  scanner->at += length;
  part->operand = step->count;
  part->array_count = 2;
  part->rank = 2;
  memcpy(part->shape, sparse->shape, sizeof sparse->shape);
  size_t first = sparse->is_coo ? sparse->made : sparse->first;
  for (size_t i = 0; i < 3; i++)
    run_append_operand(step)->argument = m->arguments->items[first + i];
  return true;
}

/* ---- the solvers ---- */

/* Describes the solution: a vector of the matrix's element type with one element for each
 * column. */
static kjit_status describe_solution(kjit_context *context, const kjit_csr *matrix,
                                     const kjit_algorithm_options *options)
{
  kjit_status status = kjit_csr_to_dense(context, NULL, matrix, options);
  options->results[0].rank = 1;
  options->results[0].shape[0] = matrix->shape[1];
  return status;
}

static kjit_solve_options solve_options(const kjit_algorithm_options *options)
{
  return (kjit_solve_options){ .size_bytes = sizeof(kjit_solve_options),
                               .device = options->device,
                               .stream = options->stream };
}

static bool is_silent;

void run_silence_solvers(void) { is_silent = true; }

/* Warns that the solver did not converge, and that x contains the best result so far. */
static void warn(const char *name, const kjit_solution *s)
{
  if (is_silent || s->status <= KJIT_SOLVED_LEAST_SQUARES) return;
  fprintf(stderr, "kjit-run: warning: %s: %s: %lld iterations, the norm of the residual is %g\n",
          name, kjit_get_solve_status_text(s->status), (long long)s->iterations, s->residual_norm);
}

kjit_status run_call_cg(kjit_context *context, const run_argument *a,
                        const kjit_algorithm_options *options)
{
  const kjit_linear_operator matrix = { .matrix = &a[1].matrix };
  kjit_solve_options own = solve_options(options);
  kjit_solution solution = { .size_bytes = sizeof solution };
  if (options->results) return describe_solution(context, matrix.matrix, options);
  own.residual_tolerance = a[3].real;
  own.iteration_limit = a[4].integer;
  kjit_status status = kjit_cg(context, a[0].operands, &matrix, a[2].operands, &own, &solution);
  if (status == KJIT_OK) warn("cg", &solution);
  return status;
}

kjit_status run_call_lsmr(kjit_context *context, const run_argument *a,
                          const kjit_algorithm_options *options)
{
  const kjit_linear_operator matrix = { .matrix = &a[1].matrix };
  kjit_solve_options own = solve_options(options);
  kjit_solution solution = { .size_bytes = sizeof solution };
  if (options->results) return describe_solution(context, matrix.matrix, options);
  own.damp = a[3].real;
  own.matrix_tolerance = a[4].real;
  own.b_tolerance = a[5].real;
  own.condition_limit = a[6].real;
  own.iteration_limit = a[7].integer;
  kjit_status status = kjit_lsmr(context, a[0].operands, &matrix, a[2].operands, &own, &solution);
  if (status == KJIT_OK) warn("lsmr", &solution);
  return status;
}
