/* Maps names of NumPy and pandas functions to the --call that computes them, or to advice on what
 * to write instead. */
#include "algorithms.h"

#include <driver/error.h>
#include <driver/similar.h>
#include <kjit/formula.h>
#include <stdlib.h>
#include <string.h>

static const run_shorthand shorthands[] = {
  { "sum", "reduce", "add" },       { "prod", "reduce", "mul" },
  { "min", "reduce", "min" },       { "max", "reduce", "max" },
  { "mean", "reduce", "mean" },     { "var", "reduce", "var" },
  { "std", "reduce", "std" },       { "any", "reduce", "any" },
  { "all", "reduce", "all" },       { "count_nonzero", "reduce", "count_nonzero" },
  { "argmin", "reduce", "argmin" }, { "argmax", "reduce", "argmax" },
  { "cumsum", "scan", "add" },      { "cumprod", "scan", "mul" },
  { "cummin", "scan", "min" },      { "cummax", "scan", "max" },
};

static const struct advice {
  const char *names; /* separated by blanks */
  const char *text;
} advices[] = {
  { " dot inner vdot ", "write `r = einsum(\"i,i->\", x, y)`, or `r = matmul(x, y)` for matrices" },
  { " outer ", "write `r = einsum(\"i,j->ij\", x, y)`" },
  { " tensordot multiply ", "write an einsum, such as `r = einsum(\"ij,jk->ik\", x, y)`" },
  { " median quantile percentile ", "write `s = sort(x)`, and show an element of it, `s[500]`" },
  { " reverse flip transpose reshape take ",
    "use a view such as `x[::-1]` or `m.T` as an operand" },
  { " value_counts counts ", "write `s = sort(x)`, then `r, lengths, starts, count = "
                             "run_lengths(s)`" },
  { " filter compress query ", "write `r, count = select(x, flags)`; --formula computes flags" },
  { " groupby group_by ", "write `k, r, count = reduce_by_key(keys, x, add)` for sorted keys" },
  { " clip diff norm square ", "write a --formula, such as --formula 'q = x * x'" },
  { " total ", "write `r = sum(x)`" },
  { " average avg ", "write `r = mean(x)`" },
  { " amin minimum smallest ", "write `r = min(x)`" },
  { " amax largest ", "write `r = max(x)`" },
  { " sorted ", "write `r = sort(x)`" },
  { " order ", "write `r = argsort(x)`" },
  { " count size len length ", "write `r = count_nonzero(x)` for the elements that are not 0" },
  { " searchsorted ", "write `r = search_sorted(sorted, values)`" },
  { " random rand randn ", "write `random_uniform(x, seed=7)` for an --arg x, or --arg "
                           "x=rand:f32[1000]" },
};

const run_shorthand *run_find_shorthand(const char *name, size_t length)
{
  for (size_t i = 0; i < sizeof shorthands / sizeof *shorthands; i++)
    if (strlen(shorthands[i].name) == length && !memcmp(shorthands[i].name, name, length))
      return &shorthands[i];
  return NULL;
}

void run_offer_shorthands(tool_similar *similar)
{
  for (size_t i = 0; i < sizeof shorthands / sizeof *shorthands; i++)
    tool_offer_name(similar, shorthands[i].name);
}

static bool is_formula_function(const char *name, size_t length)
{
  const char *function;
  for (size_t i = 0; (function = kjit_get_formula_function(i)); i++)
    if (strlen(function) == length && !memcmp(function, name, length)) return true;
  return false;
}

char *run_advise(const char *name, size_t length)
{
  if (is_formula_function(name, length))
    return tool_format("--formula 'r = ...' has a function %.*s", (int)length, name);
  char *word = tool_format(" %.*s ", (int)length, name);
  const char *text = NULL;
  for (size_t i = 0; !text && i < sizeof advices / sizeof *advices; i++)
    if (strstr(advices[i].names, word)) text = advices[i].text;
  free(word);
  return text ? tool_format("%s", text) : NULL;
}
