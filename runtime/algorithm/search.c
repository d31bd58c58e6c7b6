/* Implements kjit_search_sorted with one binary search for each value. The kernel is in search.kir
 * of lib/library. */
#include "algorithm/algorithm.h"

typedef struct search {
  const kjit_operand *result, *sorted, *values;
  kjit_function *less;
} search;

static void check_types(ka_call *call, const ka_operand *sorted, const ka_operand *values)
{
  const ka_operand *operands[] = { sorted, values };
  for (size_t i = 0; i < 2; i++) {
    kjit_type type = operands[i]->element;
    if (ki_is_scalar(type) && type < KJIT_C64) continue;
    ka_fail(call, KJIT_ERROR_TYPE, "`%s` has elements of type %s, which have no order; pass `less`",
            operands[i]->name, ka_type_text(call, type));
  }
}

static void check_result(ka_call *call, const ka_operand *result, const ka_operand *values)
{
  bool is_same = result->rank == values->rank;
  for (uint32_t i = 0; is_same && i < result->rank; i++)
    is_same = result->shape[i] == values->shape[i];
  if (!is_same) ka_fail(call, KJIT_ERROR_ARGUMENT, "`result` must have the shape of `values`");
}

static void build_search(ka_call *call, const void *data)
{
  const search *given = data;
  ka_operand result, sorted, values;
  uint32_t axes[KJ_MAX_RANK];
  ka_kernel kernel;
  ka_read_input(call, "sorted", given->sorted, &sorted);
  ka_read_input(call, "values", given->values, &values);
  if (sorted.rank != 1)
    ka_fail(call, KJIT_ERROR_ARGUMENT, "`sorted` has %u axes; it must have one", sorted.rank);
  if (!given->less) check_types(call, &sorted, &values);
  else if (sorted.element == values.element)
    ka_check_decides(call, given->less, sorted.element, KA_ORDER);
  if (ka_describe(call, 0, KJIT_I64, values.rank, values.shape)) return;
  ka_read_output(call, "result", given->result, &result);
  check_result(call, &result, &values);
  ka_check_index_result(call, &result, sorted.count + 1);
  ka_check_overlap(call, &result, &sorted, false);
  ka_check_overlap(call, &result, &values, true);
  for (uint32_t i = 0; i < KJ_MAX_RANK; i++) axes[i] = i;
  ka_arrange(call, &sorted, axes, 1, &sorted.rank);
  ka_arrange(call, &values, axes, 1, &values.rank);
  ka_arrange(call, &result, axes, 1, &result.rank);
  ka_choose_device(call);
  if (!values.count) return;
  ka_begin_kernel(call, "search", &kernel);
  const char *load_sorted = ka_use_input(&kernel, &sorted, KJIT_ANY),
             *extent = ka_use_count(&kernel, sorted.count),
             *load = ka_use_input(&kernel, &values, KJIT_ANY),
             *store = ka_use_output(&kernel, &result), *count = ka_use_count(&kernel, values.count),
             *less = "search_less";
  if (given->less) less = ka_use_function(&kernel, given->less, 2, "two elements");
  ka_launch(&kernel, 0, 0, "search_all(%s, %s, %s, %s, %s, %s, %s)", load_sorted, extent, load,
            store, count, less, call->options.flags & KJIT_ALGORITHM_RIGHT ? "true" : "false");
}

kjit_status kjit_search_sorted(kjit_context *context, const kjit_operand *result,
                               const kjit_operand *sorted, const kjit_operand *values,
                               kjit_function *less, const kjit_algorithm_options *options)
{
  const search given = { result, sorted, values, less };
  const ka_inputs inputs = { { result, sorted, values }, .function = less };
  return ka_perform_kept(context, "kjit_search_sorted", KA_RIGHT, options, build_search, &given,
                         &inputs);
}
