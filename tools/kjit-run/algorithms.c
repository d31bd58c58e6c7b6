#include "algorithms.h"

#include "sparse.h"
#include <driver/error.h>
#include <driver/similar.h>
#include <stdlib.h>
#include <string.h>

const char *const run_option_names[RUN_OPTION_COUNT] = {
  [RUN_AXIS] = "axis",
  [RUN_AXES] = "axes",
  [RUN_INITIAL] = "initial",
  [RUN_ACCUMULATOR] = "accumulator",
  [RUN_COMMUTES] = "commutes",
  [RUN_EXCLUSIVE] = "exclusive",
  [RUN_DESCENDING] = "descending",
  [RUN_BEGIN_BIT] = "begin_bit",
  [RUN_END_BIT] = "end_bit",
  [RUN_WHERE] = "where",
  [RUN_SIGNATURE] = "signature",
  [RUN_OUTER] = "outer",
  [RUN_RIGHT] = "right",
  [RUN_TF32] = "tf32",
  [RUN_CHUNK] = "chunk",
  [RUN_DEVICES] = "devices",
  [RUN_EPILOGUE] = "epilogue",
  [RUN_E4M3] = "e4m3",
  [RUN_E5M2] = "e5m2",
};

/* ---- the C functions, each with the arguments in the order of its row ---- */

static kjit_status call_reduce(kjit_context *context, const run_argument *a,
                               const kjit_algorithm_options *options)
{
  return kjit_reduce(context, a[0].operands, a[1].operands, &a[2].operator_, options);
}

static kjit_status call_reduce_several(kjit_context *context, const run_argument *a,
                                       const kjit_algorithm_options *options)
{
  return kjit_reduce_several(context, a[0].operands, a[1].operands, a[2].operators, a[2].count,
                             options);
}

static kjit_status call_scan(kjit_context *context, const run_argument *a,
                             const kjit_algorithm_options *options)
{
  return kjit_scan(context, a[0].operands, a[1].operands, &a[2].operator_, options);
}

static kjit_status call_reduce_segments(kjit_context *context, const run_argument *a,
                                        const kjit_algorithm_options *options)
{
  return kjit_reduce_segments(context, a[0].operands, a[1].operands, a[2].operands, &a[3].operator_,
                              options);
}

static kjit_status call_scan_segments(kjit_context *context, const run_argument *a,
                                      const kjit_algorithm_options *options)
{
  return kjit_scan_segments(context, a[0].operands, a[1].operands, a[2].operands, &a[3].operator_,
                            options);
}

static kjit_status call_reduce_by_key(kjit_context *context, const run_argument *a,
                                      const kjit_algorithm_options *options)
{
  return kjit_reduce_by_key(context, a[0].operands, a[1].operands, a[2].operands, a[3].operands,
                            a[4].operands, &a[5].operator_, a[6].function, options);
}

static kjit_status call_scan_by_key(kjit_context *context, const run_argument *a,
                                    const kjit_algorithm_options *options)
{
  return kjit_scan_by_key(context, a[0].operands, a[1].operands, a[2].operands, &a[3].operator_,
                          a[4].function, options);
}

static kjit_status call_sort(kjit_context *context, const run_argument *a,
                             const kjit_algorithm_options *options)
{
  if (!a[3].count) return kjit_sort(context, a[0].operands, a[2].operands, a[4].function, options);
  return kjit_sort_pairs(context, a[0].operands, a[1].operands, a[2].operands, a[3].operands,
                         a[4].function, options);
}

static kjit_status call_argsort(kjit_context *context, const run_argument *a,
                                const kjit_algorithm_options *options)
{
  return kjit_argsort(context, a[0].operands, a[1].operands, a[2].function, options);
}

static kjit_status call_merge(kjit_context *context, const run_argument *a,
                              const kjit_algorithm_options *options)
{
  return kjit_merge(context, a[0].operands, a[1].operands, a[2].operands, a[3].function, options);
}

static kjit_status call_sort_segments(kjit_context *context, const run_argument *a,
                                      const kjit_algorithm_options *options)
{
  return kjit_sort_segments(context, a[0].operands, a[1].operands, a[2].operands, a[3].operands,
                            a[4].operands, a[5].function, options);
}

static kjit_status call_top_k(kjit_context *context, const run_argument *a,
                              const kjit_algorithm_options *options)
{
  return kjit_top_k(context, a[0].operands, a[1].operands, a[2].operands, a[3].integer,
                    a[4].function, options);
}

static kjit_status call_select(kjit_context *context, const run_argument *a,
                               const kjit_algorithm_options *options)
{
  return kjit_select(context, a[0].operands, a[1].operands, a[2].operands, a[3].operands, options);
}

static kjit_status call_partition(kjit_context *context, const run_argument *a,
                                  const kjit_algorithm_options *options)
{
  return kjit_partition(context, a[0].operands, a[1].operands, a[2].operands, a[3].operands,
                        a[4].operands, options);
}

static kjit_status call_partition_three(kjit_context *context, const run_argument *a,
                                        const kjit_algorithm_options *options)
{
  return kjit_partition_three(context, a[0].operands, a[1].operands, a[2].operands, a[3].operands,
                              a[4].operands, a[5].operands, options);
}

static kjit_status call_nonzero(kjit_context *context, const run_argument *a,
                                const kjit_algorithm_options *options)
{
  return kjit_nonzero(context, a[0].operands, a[1].operands, a[2].operands, options);
}

static kjit_status call_unique(kjit_context *context, const run_argument *a,
                               const kjit_algorithm_options *options)
{
  return kjit_unique(context, a[0].operands, a[1].operands, a[2].operands, a[3].function, options);
}

static kjit_status call_unique_pairs(kjit_context *context, const run_argument *a,
                                     const kjit_algorithm_options *options)
{
  return kjit_unique_pairs(context, a[0].operands, a[1].operands, a[2].operands, a[3].operands,
                           a[4].operands, a[5].function, options);
}

static kjit_status call_run_lengths(kjit_context *context, const run_argument *a,
                                    const kjit_algorithm_options *options)
{
  return kjit_run_lengths(context, a[0].operands, a[1].operands, a[2].operands, a[3].operands,
                          a[4].operands, a[5].function, options);
}

static kjit_status call_bincount(kjit_context *context, const run_argument *a,
                                 const kjit_algorithm_options *options)
{
  return kjit_bincount(context, a[0].operands, a[1].operands, a[2].integer, a[3].operands, options);
}

static kjit_status call_histogram(kjit_context *context, const run_argument *a,
                                  const kjit_algorithm_options *options)
{
  return kjit_histogram(context, a[0].operands, a[1].operands, a[2].integer, a[3].real, a[4].real,
                        a[5].operands, options);
}

static kjit_status call_map(kjit_context *context, const run_argument *a,
                            const kjit_algorithm_options *options)
{
  return kjit_map(context, a[0].operands, a[0].count, a[1].function, a[2].operands, a[2].count,
                  options);
}

static kjit_status call_set_union(kjit_context *context, const run_argument *a,
                                  const kjit_algorithm_options *options)
{
  return kjit_set_union(context, a[0].operands, a[1].operands, a[2].operands, a[3].operands,
                        a[4].function, options);
}

static kjit_status call_set_intersection(kjit_context *context, const run_argument *a,
                                         const kjit_algorithm_options *options)
{
  return kjit_set_intersection(context, a[0].operands, a[1].operands, a[2].operands, a[3].operands,
                               a[4].function, options);
}

static kjit_status call_set_difference(kjit_context *context, const run_argument *a,
                                       const kjit_algorithm_options *options)
{
  return kjit_set_difference(context, a[0].operands, a[1].operands, a[2].operands, a[3].operands,
                             a[4].function, options);
}

static kjit_status call_set_symmetric_difference(kjit_context *context, const run_argument *a,
                                                 const kjit_algorithm_options *options)
{
  return kjit_set_symmetric_difference(context, a[0].operands, a[1].operands, a[2].operands,
                                       a[3].operands, a[4].function, options);
}

static kjit_status call_update_at(kjit_context *context, const run_argument *a,
                                  const kjit_algorithm_options *options)
{
  return kjit_update_at(context, a[0].operands, a[1].operands, a[2].operands, &a[3].operator_,
                        options);
}

static kjit_status call_search_sorted(kjit_context *context, const run_argument *a,
                                      const kjit_algorithm_options *options)
{
  return kjit_search_sorted(context, a[0].operands, a[1].operands, a[2].operands, a[3].function,
                            options);
}

static kjit_status call_histogram_edges(kjit_context *context, const run_argument *a,
                                        const kjit_algorithm_options *options)
{
  return kjit_histogram_edges(context, a[0].operands, a[1].operands, a[2].operands, a[3].operands,
                              options);
}

static kjit_status call_einsum(kjit_context *context, const run_argument *a,
                               const kjit_algorithm_options *options)
{
  return kjit_einsum(context, a[0].operands, a[1].text, a[2].operands, a[2].count, options);
}

static kjit_status call_matmul(kjit_context *context, const run_argument *a,
                               const kjit_algorithm_options *options)
{
  return kjit_matmul(context, a[0].operands, a[1].operands, a[2].operands, options);
}

static kjit_status call_pairs(kjit_context *context, const run_argument *a,
                              const kjit_algorithm_options *options)
{
  return kjit_pairs_several(context, a[0].operands, a[0].count, a[1].operands, a[2].operands,
                            a[4].operands, a[4].count, &a[3].operator_, options);
}

static kjit_status call_pairs_smallest(kjit_context *context, const run_argument *a,
                                       const kjit_algorithm_options *options)
{
  return kjit_pairs_smallest(context, a[0].operands, a[1].operands, a[2].operands, a[3].operands,
                             a[5].operands, a[5].count, a[4].integer, options);
}

/* Returns an optional number parameter or its default value. The default of an offset is 0. */
static double real_or(const run_argument *a, double otherwise)
{
  return a->count ? a->real : otherwise;
}

static kjit_status call_random_uniform(kjit_context *context, const run_argument *a,
                                       const kjit_algorithm_options *options)
{
  return kjit_random_uniform(context, a[0].operands, (uint64_t)a[1].integer, (uint64_t)a[2].integer,
                             real_or(&a[3], 0), real_or(&a[4], 1), options);
}

static kjit_status call_random_normal(kjit_context *context, const run_argument *a,
                                      const kjit_algorithm_options *options)
{
  return kjit_random_normal(context, a[0].operands, (uint64_t)a[1].integer, (uint64_t)a[2].integer,
                            real_or(&a[3], 0), real_or(&a[4], 1), options);
}

static kjit_status call_random_exponential(kjit_context *context, const run_argument *a,
                                           const kjit_algorithm_options *options)
{
  return kjit_random_exponential(context, a[0].operands, (uint64_t)a[1].integer,
                                 (uint64_t)a[2].integer, real_or(&a[3], 1), options);
}

static kjit_status call_random_integers(kjit_context *context, const run_argument *a,
                                        const kjit_algorithm_options *options)
{
  return kjit_random_integers(context, a[0].operands, (uint64_t)a[1].integer,
                              (uint64_t)a[2].integer, a[3].integer, a[4].integer, options);
}

static kjit_status call_random_permutation(kjit_context *context, const run_argument *a,
                                           const kjit_algorithm_options *options)
{
  return kjit_random_permutation(context, a[0].operands, (uint64_t)a[1].integer, options);
}

static kjit_status call_random_shuffle(kjit_context *context, const run_argument *a,
                                       const kjit_algorithm_options *options)
{
  return kjit_random_shuffle(context, a[0].operands, a[1].operands, (uint64_t)a[2].integer,
                             options);
}

/* ---- the table ---- */

/* clang-format off */
#define RESULT(name) { name, RUN_RESULT, false, false }
#define PERHAPS_RESULT(name) { name, RUN_RESULT, true, false }
#define RESULTS(name) { name, RUN_RESULT, false, true }
#define IN_PLACE(name) { name, RUN_IN_PLACE, false, false }
#define WRITTEN(name) { name, RUN_WRITTEN, false, false }
#define INPUT(name) { name, RUN_INPUT, false, false }
#define PERHAPS(name) { name, RUN_INPUT, true, false }
#define INPUTS(name) { name, RUN_INPUT, true, true }
#define INTEGER(name) { name, RUN_INTEGER, false, false }
#define PERHAPS_INTEGER(name) { name, RUN_INTEGER, true, false }
#define REAL(name) { name, RUN_REAL, false, false }
#define PERHAPS_REAL(name) { name, RUN_REAL, true, false }
#define SEED { "seed", RUN_BITS, false, false }
#define SEEDED WRITTEN("x"), SEED, { "offset", RUN_BITS, true, false }
#define ELEMENT(name) { name, RUN_ELEMENT, false, false }
#define OPERATOR { "operator", RUN_OPERATOR, false, false }
#define OPERATORS { "operator", RUN_OPERATOR, false, true }
#define MATRIX(name) { name, RUN_MATRIX, false, false }
#define FUNC { "func", RUN_FUNCTION, false, false }
#define PAIRED { "func", RUN_CALLED, false, false }
#define LESS { "less", RUN_FUNCTION, true, false }
#define EQUAL { "equal", RUN_FUNCTION, true, false }

enum {
  AXIS = 1 << RUN_AXIS,
  AXES = AXIS | 1 << RUN_AXES,
  FOLDING = 1 << RUN_INITIAL | 1 << RUN_ACCUMULATOR | 1 << RUN_COMMUTES,
  SCANNING_LINES = FOLDING | 1 << RUN_EXCLUSIVE,
  SCANNING = AXIS | SCANNING_LINES,
  ORDER = 1 << RUN_DESCENDING | 1 << RUN_BEGIN_BIT | 1 << RUN_END_BIT,
  SORTING = AXIS | ORDER,
  MULTIPLYING = 1 << RUN_ACCUMULATOR | 1 << RUN_TF32 | 1 << RUN_EPILOGUE | 1 << RUN_E4M3 |
                1 << RUN_E5M2,
  MAPPING = 1 << RUN_WHERE | 1 << RUN_SIGNATURE | 1 << RUN_OUTER
};

static const run_algorithm rows[] = {
  { "reduce", { RESULT("result"), INPUT("x"), OPERATOR }, AXES | FOLDING, false, call_reduce, false },
  { "reduce_several",
    { RESULTS("r"), INPUT("x"), OPERATORS }, AXES | 1 << RUN_ACCUMULATOR | 1 << RUN_COMMUTES, false,
    call_reduce_several, false },
  { "scan", { RESULT("result"), INPUT("x"), OPERATOR }, SCANNING, true, call_scan, false },
  { "reduce_segments", { RESULT("result"), INPUT("x"), INPUT("offsets"), OPERATOR }, FOLDING, false,
    call_reduce_segments, false },
  { "scan_segments", { RESULT("result"), INPUT("x"), INPUT("offsets"), OPERATOR }, SCANNING_LINES,
    true, call_scan_segments, false },
  { "reduce_by_key",
    { RESULT("result_keys"), RESULT("result"), RESULT("count"), INPUT("keys"), INPUT("x"), OPERATOR,
      EQUAL },
    FOLDING, false, call_reduce_by_key, false },
  { "scan_by_key", { RESULT("result"), INPUT("keys"), INPUT("x"), OPERATOR, EQUAL }, SCANNING_LINES,
    false, call_scan_by_key, false },
  { "sort",
    { RESULT("result"), PERHAPS_RESULT("result_values"), INPUT("x"), PERHAPS("values"), LESS },
    SORTING, true, call_sort, false },
  { "argsort", { RESULT("result"), INPUT("x"), LESS }, SORTING, false, call_argsort, false },
  { "merge", { RESULT("result"), INPUT("x"), INPUT("y"), LESS }, ORDER, false, call_merge, false },
  { "sort_segments",
    { RESULT("result"), PERHAPS_RESULT("result_values"), INPUT("x"), PERHAPS("values"),
      INPUT("offsets"), LESS },
    ORDER, false, call_sort_segments, false },
  { "top_k",
    { RESULT("result"), PERHAPS_RESULT("result_places"), INPUT("x"), INTEGER("k"), LESS }, SORTING,
    false, call_top_k, false },
  { "select", { RESULT("result"), RESULT("count"), INPUT("x"), INPUT("flags") }, 0, false,
    call_select, false },
  { "partition",
    { RESULT("result"), RESULT("rest"), RESULT("count"), INPUT("x"), INPUT("flags") }, 0, false,
    call_partition, false },
  { "partition_three",
    { RESULT("first"), RESULT("second"), RESULT("rest"), RESULT("counts"), INPUT("x"),
      INPUT("classes") },
    0, false, call_partition_three, false },
  { "nonzero", { RESULT("result"), RESULT("count"), INPUT("x") }, 0, false, call_nonzero, false },
  { "unique", { RESULT("result"), RESULT("count"), INPUT("x"), EQUAL }, 0, false, call_unique, false },
  { "unique_pairs",
    { RESULT("result"), RESULT("result_values"), RESULT("count"), INPUT("x"), INPUT("values"),
      EQUAL },
    0, false, call_unique_pairs, false },
  { "run_lengths",
    { RESULT("result"), RESULT("lengths"), RESULT("starts"), RESULT("count"), INPUT("x"), EQUAL },
    0, false, call_run_lengths, false },
  { "set_union",
    { RESULT("result"), RESULT("count"), INPUT("x"), INPUT("y"), LESS }, 1 << RUN_DESCENDING, false,
    call_set_union, false },
  { "set_intersection",
    { RESULT("result"), RESULT("count"), INPUT("x"), INPUT("y"), LESS }, 1 << RUN_DESCENDING, false,
    call_set_intersection, false },
  { "set_difference",
    { RESULT("result"), RESULT("count"), INPUT("x"), INPUT("y"), LESS }, 1 << RUN_DESCENDING, false,
    call_set_difference, false },
  { "set_symmetric_difference",
    { RESULT("result"), RESULT("count"), INPUT("x"), INPUT("y"), LESS }, 1 << RUN_DESCENDING, false,
    call_set_symmetric_difference, false },
  { "update_at", { IN_PLACE("x"), INPUT("places"), INPUT("values"), OPERATOR }, 1 << RUN_COMMUTES,
    false, call_update_at, false },
  { "search_sorted", { RESULT("result"), INPUT("sorted"), INPUT("values"), LESS }, 1 << RUN_RIGHT,
    false, call_search_sorted, false },
  { "bincount", { RESULT("result"), INPUT("x"), INTEGER("bins"), PERHAPS("weights") }, 0, false,
    call_bincount, false },
  { "histogram",
    { RESULT("result"), INPUT("x"), INTEGER("bins"), REAL("low"), REAL("high"),
      PERHAPS("weights") },
    0, false, call_histogram, false },
  { "histogram_edges",
    { RESULT("result"), INPUT("x"), INPUT("edges"), PERHAPS("weights") }, 0, false,
    call_histogram_edges, false },
  { "einsum",
    { RESULT("result"), { "expression", RUN_TEXT, false, false }, INPUTS("x") },
    MULTIPLYING, false, call_einsum, false },
  { "matmul", { RESULT("result"), INPUT("x"), INPUT("y") }, MULTIPLYING, false,
    call_matmul, false },
  { "pairs", { RESULTS("r"), PAIRED, INPUT("x"), OPERATOR, INPUTS("y") },
    1 << RUN_ACCUMULATOR | 1 << RUN_COMMUTES | 1 << RUN_CHUNK | 1 << RUN_DEVICES, false,
    call_pairs, false },
  { "pairs_smallest",
    { RESULT("result"), PERHAPS_RESULT("result_places"), PAIRED, INPUT("x"), INTEGER("k"),
      INPUTS("y") },
    1 << RUN_CHUNK | 1 << RUN_DEVICES, false, call_pairs_smallest, false },
  { "spmv", { RESULT("result"), MATRIX("a"), INPUT("x") }, 1 << RUN_ACCUMULATOR, false,
    run_call_spmv, false },
  { "spmm", { RESULT("result"), MATRIX("a"), INPUT("x") }, 1 << RUN_ACCUMULATOR, false,
    run_call_spmm, false },
  { "csr_check", { MATRIX("a"), PERHAPS_INTEGER("flags") }, 0, false, run_call_csr_check, true },
  { "csr_to_dense", { RESULT("result"), MATRIX("a") }, 0, false, run_call_csr_to_dense, false },
  { "cg",
    { RESULT("x"), MATRIX("a"), INPUT("b"), PERHAPS_REAL("residual_tolerance"),
      PERHAPS_INTEGER("iteration_limit") },
    0, false, run_call_cg, true },
  { "lsmr",
    { RESULT("x"), MATRIX("a"), INPUT("b"), PERHAPS_REAL("damp"), PERHAPS_REAL("matrix_tolerance"),
      PERHAPS_REAL("b_tolerance"), PERHAPS_REAL("condition_limit"),
      PERHAPS_INTEGER("iteration_limit") },
    0, false, run_call_lsmr, true },
  { "random_uniform", { SEEDED, PERHAPS_REAL("low"), PERHAPS_REAL("high") },
    1 << RUN_ACCUMULATOR, false, call_random_uniform, false },
  { "random_normal", { SEEDED, PERHAPS_REAL("mean"), PERHAPS_REAL("deviation") },
    1 << RUN_ACCUMULATOR, false, call_random_normal, false },
  { "random_exponential", { SEEDED, PERHAPS_REAL("scale") }, 1 << RUN_ACCUMULATOR, false,
    call_random_exponential, false },
  { "random_integers", { SEEDED, ELEMENT("least"), ELEMENT("greatest") }, 1 << RUN_ACCUMULATOR,
    false, call_random_integers, false },
  { "random_permutation", { WRITTEN("x"), SEED }, 0, false, call_random_permutation, false },
  { "random_shuffle", { RESULT("result"), INPUT("x"), SEED }, 0, false,
    call_random_shuffle, false },
  { "map", { RESULTS("r"), FUNC, INPUTS("x") }, MAPPING, false, call_map, false },
};
/* clang-format on */
enum { ROWS = sizeof rows / sizeof *rows };

const run_algorithm *run_find_algorithm(const char *name, size_t length)
{
  for (size_t i = 0; i < ROWS; i++)
    if (strlen(rows[i].name) == length && !memcmp(rows[i].name, name, length)) return &rows[i];
  return NULL;
}

char *run_similar_algorithm(const char *name, size_t length)
{
  tool_similar similar = { .name = name, .length = length };
  for (size_t i = 0; i < ROWS; i++) tool_offer_name(&similar, rows[i].name);
  run_offer_shorthands(&similar);
  return tool_similar_text(&similar);
}

char *run_list_algorithms(void)
{
  char *list = tool_copy_text("", 0);
  for (size_t i = 0; i < ROWS; i++) {
    char *longer = tool_format("%s%s%s", list, i ? ", " : "", rows[i].name);
    free(list);
    list = longer;
  }
  return list;
}
