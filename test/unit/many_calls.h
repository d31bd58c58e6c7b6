/* Calls of algorithms for tests in which allocations fail: products, pairs of rows, sparse
 * matrices, solvers, random numbers, sorts and scans. A test defines struct objects with the
 * members that are declared here as `calls`. */
#ifndef MANY_CALLS_H
#define MANY_CALLS_H

#include <kjit/algorithm.h>
#include <stdint.h>
#include <string.h>

enum { N = 16, NEAREST = 3, ENTRIES = 3 * N - 2, ROOM = N * N, LONG = 20000 };

/* Inputs, then results. */
enum {
  LEFT,
  RIGHT,
  POINTS,
  LINE,
  DATA,
  COLUMNS,
  OFFSETS,
  ENTRY_ROWS,
  NUMBERS,
  MATRIX,
  VECTOR,
  LEAST,
  PLACES,
  OTHER_DATA,
  OTHER_COLUMNS,
  OTHER_OFFSETS,
  SORTED,
  ORDER,
  COUNT,
  ARRAYS,
  FIRST_RESULT = MATRIX
};

static const struct {
  kjit_type element;
  int rank;
  int64_t shape[2];
} forms[ARRAYS] = {
  [LEFT] = { KJIT_F32, 2, { N, N } },
  [RIGHT] = { KJIT_F32, 2, { N, N } },
  [POINTS] = { KJIT_F32, 1, { N } },
  [LINE] = { KJIT_F32, 1, { LONG } },
  [DATA] = { KJIT_F32, 1, { ENTRIES } },
  [COLUMNS] = { KJIT_I32, 1, { ENTRIES } },
  [OFFSETS] = { KJIT_I32, 1, { N + 1 } },
  [ENTRY_ROWS] = { KJIT_I32, 1, { ENTRIES } },
  [NUMBERS] = { KJIT_I32, 1, { LONG } },
  [MATRIX] = { KJIT_F32, 2, { N, N } },
  [VECTOR] = { KJIT_F32, 1, { N } },
  [LEAST] = { KJIT_F32, 2, { N, NEAREST } },
  [PLACES] = { KJIT_I64, 2, { N, NEAREST } },
  [OTHER_DATA] = { KJIT_F32, 1, { ROOM } },
  [OTHER_COLUMNS] = { KJIT_I32, 1, { ROOM } },
  [OTHER_OFFSETS] = { KJIT_I32, 1, { N + 1 } },
  [SORTED] = { KJIT_I32, 1, { LONG } },
  [ORDER] = { KJIT_I64, 1, { LONG } },
  [COUNT] = { KJIT_I64, 1, { 1 } },
};

static const char many_source[] =
  "func shifted(sum, by) { return sum + by }\n"
  "func squared(x, y, i, j) {\n"
  "  var d = zero(dtype(x))\n"
  "  for k in range(len(x)) { d += (x[k] - y[k]) * (x[k] - y[k]) }\n"
  "  return d\n"
  "}\n"
  "func apart(x, y, i, j) { return (x - y) * (x - y) }\n"
  "func is_even(i, x) { return x[i] % 2 == 0 }\n";

typedef struct many_calls {
  kjit_context *context;
  kjit_module *module;
  kjit_function *shifted, *squared, *apart, *is_even;
  kjit_device *device;
  kjit_array *arrays[ARRAYS];
  kjit_operand operands[ARRAYS];
  kjit_algorithm_options options; /* of each call */
} many_calls;

typedef struct many_call {
  const char *name;
  kjit_status (*call)(many_calls *c);
  int takes_work; /* not 0: options.work */
  /* not 0 if the call consists of several calls; those before an error may have written results */
  int is_several;
} many_call;

/* ---- the objects of the calls; the test fails if one cannot be created ---- */

static size_t bytes_of(const kjit_array *array)
{
  const kjit_tensor *tensor = kjit_get_tensor(array);
  size_t bytes = tensor->bits / 8u;
  for (int i = 0; i < tensor->rank; i++) bytes *= (size_t)tensor->shape[i];
  return bytes;
}

/* Fills in a matrix with 4 on the diagonal and -1 next to it. */
static void fill_inputs(const many_calls *c)
{
  void *at[ARRAYS];
  for (int i = 0; i < ARRAYS; i++) at[i] = kjit_get_tensor(c->arrays[i])->data;
  for (int i = 0; i < N * N; i++) {
    ((float *)at[LEFT])[i] = (float)(i * 7 % 11) - 5;
    ((float *)at[RIGHT])[i] = (float)(i * 5 % 13) - 6;
  }
  for (int i = 0; i < N; i++) ((float *)at[POINTS])[i] = (float)(i * i % 7) + 1;
  for (int i = 0; i < LONG; i++) {
    ((int32_t *)at[NUMBERS])[i] = i * 7919 % 1009;
    ((float *)at[LINE])[i] = (float)(i * 3191 % 5003);
  }
  int count = 0;
  for (int row = 0; row < N; row++) {
    ((int32_t *)at[OFFSETS])[row] = count;
    for (int column = row - 1; column <= row + 1; column++) {
      if (column < 0 || column >= N) continue;
      ((float *)at[DATA])[count] = column == row ? 4 : -1;
      ((int32_t *)at[COLUMNS])[count] = column;
      ((int32_t *)at[ENTRY_ROWS])[count++] = row;
    }
  }
  ((int32_t *)at[OFFSETS])[N] = count;
}

static void open_calls(many_calls *c, kjit_context *context, kjit_device *device)
{
  *c = (many_calls){ .context = context, .device = device };
  assert_int_equal(kjit_parse_module(context, "calls.kir", many_source, sizeof many_source - 1,
                                     &c->module),
                   KJIT_OK);
  assert_int_equal(kjit_get_function(c->module, "shifted", &c->shifted), KJIT_OK);
  assert_int_equal(kjit_get_function(c->module, "squared", &c->squared), KJIT_OK);
  assert_int_equal(kjit_get_function(c->module, "apart", &c->apart), KJIT_OK);
  assert_int_equal(kjit_get_function(c->module, "is_even", &c->is_even), KJIT_OK);
  for (int i = 0; i < ARRAYS; i++) {
    assert_int_equal(kjit_create_array(device, forms[i].element, forms[i].shape, forms[i].rank,
                                       &c->arrays[i]),
                     KJIT_OK);
    c->operands[i] = kjit_operand_array(c->arrays[i]);
    memset(kjit_get_tensor(c->arrays[i])->data, 0, bytes_of(c->arrays[i]));
  }
  fill_inputs(c);
  c->options = (kjit_algorithm_options){ .size_bytes = sizeof c->options, .device = device };
}

static void close_calls(many_calls *c)
{
  for (int i = 0; i < ARRAYS; i++) kjit_release_array(c->arrays[i]);
  kjit_release_module(c->module);
}

/* ---- the calls ---- */

#define AT(name) (&c->operands[name])

static kjit_csr tridiagonal(many_calls *c)
{
  return (kjit_csr){ AT(DATA), AT(COLUMNS), AT(OFFSETS), { N, N } };
}

static kjit_csr other_matrix(many_calls *c)
{
  return (kjit_csr){ AT(OTHER_DATA), AT(OTHER_COLUMNS), AT(OTHER_OFFSETS), { N, N } };
}

static kjit_status call_matmul(many_calls *c)
{
  return kjit_matmul(c->context, AT(MATRIX), AT(LEFT), AT(RIGHT), &c->options);
}

static kjit_status call_matmul_tf32(many_calls *c)
{
  kjit_algorithm_options options = c->options;
  options.flags = KJIT_ALGORITHM_TF32;
  return kjit_matmul(c->context, AT(MATRIX), AT(LEFT), AT(RIGHT), &options);
}

static kjit_status call_matmul_shifted(many_calls *c)
{
  kjit_algorithm_options options = c->options;
  options.epilogue = c->shifted;
  options.epilogue_operands = AT(POINTS);
  options.epilogue_operand_count = 1;
  return kjit_matmul(c->context, AT(MATRIX), AT(LEFT), AT(RIGHT), &options);
}

static kjit_status call_einsum(many_calls *c)
{
  const kjit_operand operands[] = { *AT(LEFT), *AT(RIGHT), *AT(LEFT) };
  return kjit_einsum(c->context, AT(MATRIX), "ij,jk,kl->il", operands, 3, &c->options);
}

static kjit_status call_spmv(many_calls *c)
{
  const kjit_csr a = tridiagonal(c);
  return kjit_spmv(c->context, AT(VECTOR), &a, AT(POINTS), &c->options);
}

static kjit_status call_spmm(many_calls *c)
{
  const kjit_csr a = tridiagonal(c);
  return kjit_spmm(c->context, AT(MATRIX), &a, AT(LEFT), &c->options);
}

static kjit_status call_csr_from_coo(many_calls *c)
{
  const kjit_coo a = { AT(DATA), AT(ENTRY_ROWS), AT(COLUMNS), { N, N } };
  const kjit_csr result = other_matrix(c);
  return kjit_csr_from_coo(c->context, &result, &a, &c->options);
}

static kjit_status call_csr_from_dense(many_calls *c)
{
  const kjit_csr result = other_matrix(c);
  return kjit_csr_from_dense(c->context, &result, AT(LEFT), &c->options);
}

static kjit_status call_csr_transpose(many_calls *c)
{
  const kjit_csr a = tridiagonal(c), result = other_matrix(c);
  return kjit_csr_transpose(c->context, &result, &a, &c->options);
}

static kjit_status call_csr_to_dense(many_calls *c)
{
  const kjit_csr a = tridiagonal(c);
  return kjit_csr_to_dense(c->context, AT(MATRIX), &a, &c->options);
}

static kjit_status solve(many_calls *c, int is_lsmr)
{
  const kjit_csr matrix = tridiagonal(c);
  const kjit_linear_operator a = { .matrix = &matrix };
  kjit_solution solution = { .size_bytes = sizeof solution };
  const kjit_solve_options options = { .size_bytes = sizeof options,
                                       .iteration_limit = 2,
                                       .device = c->device };
  return (is_lsmr ? kjit_lsmr : kjit_cg)(c->context, AT(VECTOR), &a, AT(POINTS), &options,
                                         &solution);
}

static kjit_status call_cg(many_calls *c) { return solve(c, 0); }
static kjit_status call_lsmr(many_calls *c) { return solve(c, 1); }

/* Sums over pairs, with rows of y in host memory that are copied to the device in chunks. */
static kjit_status sum_pairs(many_calls *c, const kjit_algorithm_options *options)
{
  const kjit_operand function = kjit_operand_function(c->squared, NULL, 0, NULL, 0);
  const kjit_operator add = kjit_operator_named("add");
  kjit_tensor host = *kjit_get_tensor(c->arrays[RIGHT]);
  host.device_type = 1;
  host.device_id = 0;
  const kjit_operand y = options->chunk ? kjit_operand_of(kjit_arg_tensor(&host)) : *AT(RIGHT);
  return kjit_pairs(c->context, AT(VECTOR), &function, AT(LEFT), &y, 1, &add, options);
}

static kjit_status call_pairs(many_calls *c) { return sum_pairs(c, &c->options); }

static kjit_status call_pairs_by_pieces(many_calls *c)
{
  kjit_algorithm_options options = c->options;
  options.chunk = 5;
  return sum_pairs(c, &options);
}

static kjit_status call_pairs_shared(many_calls *c)
{
  kjit_device *const devices[] = { c->device, c->device };
  kjit_algorithm_options options = { .size_bytes = sizeof options };
  options.devices = devices;
  options.device_count = 2;
  return sum_pairs(c, &options);
}

static kjit_status call_pairs_smallest(many_calls *c)
{
  const kjit_operand function = kjit_operand_function(c->squared, NULL, 0, NULL, 0);
  return kjit_pairs_smallest(c->context, AT(LEAST), AT(PLACES), &function, AT(LEFT), AT(RIGHT), 1,
                             NEAREST, &c->options);
}

/* Pairs of few rows of x with many rows of y, which are divided into parts. */
static kjit_status call_pairs_of_numbers(many_calls *c)
{
  const kjit_operand function = kjit_operand_function(c->apart, NULL, 0, NULL, 0);
  const kjit_operator add = kjit_operator_named("add");
  return kjit_pairs(c->context, AT(VECTOR), &function, AT(POINTS), AT(LINE), 1, &add, &c->options);
}

static kjit_status call_smallest_of_numbers(many_calls *c)
{
  const kjit_operand function = kjit_operand_function(c->apart, NULL, 0, NULL, 0);
  return kjit_pairs_smallest(c->context, AT(LEAST), AT(PLACES), &function, AT(POINTS), AT(LINE), 1,
                             NEAREST, &c->options);
}

static kjit_status call_uniform(many_calls *c)
{
  return kjit_random_uniform(c->context, AT(MATRIX), 7, 0, 0, 1, &c->options);
}

static kjit_status call_normal(many_calls *c)
{
  return kjit_random_normal(c->context, AT(MATRIX), 7, 0, 0, 1, &c->options);
}

static kjit_status call_exponential(many_calls *c)
{
  return kjit_random_exponential(c->context, AT(MATRIX), 7, 0, 1, &c->options);
}

static kjit_status call_integers(many_calls *c)
{
  return kjit_random_integers(c->context, AT(SORTED), 7, 0, -5, 5, &c->options);
}

static kjit_status call_permutation(many_calls *c)
{
  return kjit_random_permutation(c->context, AT(ORDER), 7, &c->options);
}

static kjit_status call_shuffle(many_calls *c)
{
  return kjit_random_shuffle(c->context, AT(SORTED), AT(NUMBERS), 7, &c->options);
}

static kjit_status call_sort(many_calls *c)
{
  return kjit_sort(c->context, AT(SORTED), AT(NUMBERS), NULL, &c->options);
}

static kjit_status call_argsort(many_calls *c)
{
  return kjit_argsort(c->context, AT(ORDER), AT(NUMBERS), NULL, &c->options);
}

static kjit_status call_scan(many_calls *c)
{
  const kjit_operator add = kjit_operator_named("add");
  return kjit_scan(c->context, AT(ORDER), AT(NUMBERS), &add, &c->options);
}

static kjit_status call_select(many_calls *c)
{
  const kjit_arg numbers = kjit_arg_array(c->arrays[NUMBERS]);
  const int64_t shape = LONG;
  const kjit_operand flags = kjit_operand_function(c->is_even, &numbers, 1, &shape, 1);
  return kjit_select(c->context, AT(SORTED), AT(COUNT), AT(NUMBERS), &flags, &c->options);
}

static const many_call calls[] = {
  { "matmul", call_matmul, 1, 0 },
  { "matmul, tf32", call_matmul_tf32, 1, 0 },
  { "matmul, epilogue", call_matmul_shifted, 1, 0 },
  { "einsum", call_einsum, 1, 0 },
  { "spmv", call_spmv, 1, 0 },
  { "spmm", call_spmm, 1, 0 },
  { "csr_from_coo", call_csr_from_coo, 0, 1 },
  { "csr_from_dense", call_csr_from_dense, 0, 1 },
  { "csr_transpose", call_csr_transpose, 0, 1 },
  { "csr_to_dense", call_csr_to_dense, 0, 1 },
  { "cg", call_cg, 0, 1 },
  { "lsmr", call_lsmr, 0, 1 },
  { "pairs", call_pairs, 1, 0 },
  { "pairs, chunk", call_pairs_by_pieces, 0, 1 },
  { "pairs, devices", call_pairs_shared, 0, 1 },
  { "pairs_smallest", call_pairs_smallest, 1, 0 },
  { "pairs of numbers", call_pairs_of_numbers, 1, 0 },
  { "pairs_smallest of numbers", call_smallest_of_numbers, 1, 0 },
  { "random_uniform", call_uniform, 1, 0 },
  { "random_normal", call_normal, 1, 0 },
  { "random_exponential", call_exponential, 1, 0 },
  { "random_integers", call_integers, 1, 0 },
  { "random_permutation", call_permutation, 1, 0 },
  { "random_shuffle", call_shuffle, 1, 0 },
  { "sort", call_sort, 1, 0 },
  { "argsort", call_argsort, 1, 0 },
  { "scan", call_scan, 1, 0 },
  { "select", call_select, 1, 0 },
};
enum { CALLS = sizeof calls / sizeof *calls };

#endif
