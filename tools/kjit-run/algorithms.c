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

#define CALL(name, call) \
  static kjit_status call_##name(kjit_context *context, const run_argument *a, \
                                 const kjit_algorithm_options *options) \
  { \
    return call; \
  }
#include "algorithm_calls.inc"
#undef CALL

/* Calls kjit_sort, or kjit_sort_pairs if values are given. */
static kjit_status call_sort(kjit_context *context, const run_argument *a,
                             const kjit_algorithm_options *options)
{
  if (!a[3].count) return kjit_sort(context, a[0].operands, a[2].operands, a[4].function, options);
  return kjit_sort_pairs(context, a[0].operands, a[1].operands, a[2].operands, a[3].operands,
                         a[4].function, options);
}

/* ---- the table ---- */

#define ROW(name, options, is_in_place, waits, ...) \
  { #name, { __VA_ARGS__ }, options, is_in_place, call_##name, waits },
static const run_algorithm rows[] = {
#include "algorithm_calls.inc"
  { "sort",
    { { "result", RUN_RESULT, false, false },
      { "result_values", RUN_RESULT, true, false },
      { "x", RUN_INPUT, false, false },
      { "values", RUN_INPUT, true, false },
      { "less", RUN_FUNCTION, true, false } },
    1 << RUN_AXIS | 1 << RUN_DESCENDING | 1 << RUN_BEGIN_BIT | 1 << RUN_END_BIT,
    true,
    call_sort,
    false },
  { "cg",
    { { "x", RUN_RESULT, false, false },
      { "a", RUN_MATRIX, false, false },
      { "b", RUN_INPUT, false, false },
      { "residual_tolerance", RUN_REAL, true, false },
      { "iteration_limit", RUN_INTEGER, true, false } },
    0,
    false,
    run_call_cg,
    true },
  { "lsmr",
    { { "x", RUN_RESULT, false, false },
      { "a", RUN_MATRIX, false, false },
      { "b", RUN_INPUT, false, false },
      { "damp", RUN_REAL, true, false },
      { "matrix_tolerance", RUN_REAL, true, false },
      { "b_tolerance", RUN_REAL, true, false },
      { "condition_limit", RUN_REAL, true, false },
      { "iteration_limit", RUN_INTEGER, true, false } },
    0,
    false,
    run_call_lsmr,
    true },
};
#undef ROW
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
