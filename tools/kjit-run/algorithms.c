#include "algorithms.h"

#include <driver/error.h>
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
};

/* ---- the C functions, each with the arguments in the order of its row ---- */

static kjit_status call_reduce(kjit_context *context, const run_argument *a,
                               const kjit_algorithm_options *options)
{
  return kjit_reduce(context, a[0].operands, a[1].operands, &a[2].operator_, options);
}

static kjit_status call_sort(kjit_context *context, const run_argument *a,
                             const kjit_algorithm_options *options)
{
  return kjit_sort(context, a[0].operands, a[1].operands, a[2].function, options);
}

static kjit_status call_sort_pairs(kjit_context *context, const run_argument *a,
                                   const kjit_algorithm_options *options)
{
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

/* ---- the table ---- */

#define RESULT(name) \
  { \
    name, RUN_RESULT, false, false \
  }
#define INPUT(name) \
  { \
    name, RUN_INPUT, false, false \
  }
#define OPERATOR \
  { \
    "operator", RUN_OPERATOR, false, false \
  }
#define LESS \
  { \
    "less", RUN_FUNCTION, true, false \
  }

enum {
  AXES = 1 << RUN_AXIS | 1 << RUN_AXES,
  FOLDING = 1 << RUN_INITIAL | 1 << RUN_ACCUMULATOR | 1 << RUN_COMMUTES,
  SORTING = 1 << RUN_AXIS | 1 << RUN_DESCENDING | 1 << RUN_BEGIN_BIT | 1 << RUN_END_BIT
};

static const run_algorithm rows[] = {
  { "reduce", { RESULT("result"), INPUT("x"), OPERATOR }, AXES | FOLDING, call_reduce },
  { "sort", { RESULT("result"), INPUT("x"), LESS }, SORTING, call_sort },
  { "sort_pairs",
    { RESULT("result"), RESULT("result_values"), INPUT("x"), INPUT("values"), LESS },
    SORTING,
    call_sort_pairs },
  { "argsort", { RESULT("result"), INPUT("x"), LESS }, SORTING, call_argsort },
  { "merge",
    { RESULT("result"), INPUT("x"), INPUT("y"), LESS },
    SORTING & ~(1 << RUN_AXIS),
    call_merge },
};
enum { ROWS = sizeof rows / sizeof *rows };

const run_algorithm *run_find_algorithm(const char *name, size_t length)
{
  for (size_t i = 0; i < ROWS; i++)
    if (strlen(rows[i].name) == length && !memcmp(rows[i].name, name, length)) return &rows[i];
  return NULL;
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
