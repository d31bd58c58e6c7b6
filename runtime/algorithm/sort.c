/* Reads and checks the operands of kjit_sort, kjit_sort_pairs, kjit_argsort and kjit_merge.
 * sort_steps.c adds their launches. */
#include "algorithm/sort.h"
#include "ir/context.h"

/* Minimum number of elements for which a radix sort counts in 64 bits. */
enum { WIDE_COUNT = 1 << 30 };

typedef struct sorting {
  const kjit_operand *result, *result_values, *x, *values;
  kjit_function *less;
  bool wants_places;
} sorting;

/* ---- the call ---- */

static bool is_number(const ka_sort *s)
{
  switch (ki_type(s->call->context->types, s->x.element)->class_) {
  case KJ_CLASS_BOOL:
  case KJ_CLASS_SIGNED:
  case KJ_CLASS_UNSIGNED:
  case KJ_CLASS_FLOAT: return true;
  default: return false;
  }
}

void ka_read_order(ka_sort *s, kjit_function *function)
{
  ka_call *call = s->call;
  const kjit_algorithm_options *options = &call->options;
  s->is_descending = options->flags & KJIT_ALGORITHM_DESCENDING;
  if (function) {
    kjit_operator less = kjit_operator_function(function);
    ka_read_operator(call, &less, &s->less);
    ka_check_decides(call, function, s->x.element, KA_ORDER);
    if (options->begin_bit || options->end_bit)
      ka_fail(call, KJIT_ERROR_ARGUMENT,
              KJ_OPTION("begin_bit") " and " KJ_OPTION(
                "end_bit") " cannot be combined with `less`");
    return;
  }
  if (!is_number(s))
    ka_fail(call, KJIT_ERROR_TYPE, "elements of type %s have no order; pass `less`",
            ka_type_text(call, s->x.element));
  uint32_t bits = 8 * ka_key_bytes(s);
  s->begin = options->begin_bit;
  s->end = options->end_bit ? options->end_bit : bits;
  if (s->begin >= s->end || s->end > bits)
    ka_fail(call, KJIT_ERROR_ARGUMENT,
            KJ_OPTION("begin_bit") " and " KJ_OPTION(
              "end_bit") " select the bits %u to %u, but the elements of "
                         "`x` have %u bits",
            s->begin, s->end, bits);
}

uint32_t ka_read_sorted_axis(ka_call *call, uint32_t rank)
{
  if (!call->options.axes) return rank ? rank - 1 : 0;
  uint32_t given = ka_read_axes(call, rank);
  if (!given || given & (given - 1))
    ka_fail(call, KJIT_ERROR_ARGUMENT, KJ_OPTION("axes") " names %d axes; a sort takes one",
            __builtin_popcount(given));
  return (uint32_t)__builtin_ctz(given);
}

void ka_arrange_rows(ka_sort *s, uint32_t axis)
{
  ka_call *call = s->call;
  uint32_t rank = s->x.rank, axes[KJ_MAX_RANK], count = 0;
  for (uint32_t i = 0; i < rank; i++)
    if (i != axis) axes[count++] = i;
  if (rank) axes[count] = axis;
  s->row = rank ? (uint64_t)s->x.shape[axis] : 1;
  s->rows = s->row ? s->x.count / s->row : 0;
  if (s->are_places) ka_check_positions(call, &s->result_values, s->row);
  ka_arrange(call, &s->x, axes, 1, &rank);
  if (s->has_result) ka_arrange(call, &s->result, axes, 1, &rank);
  if (s->has_values && !s->are_places) ka_arrange(call, &s->values, axes, 1, &rank);
  if (s->has_values) ka_arrange(call, &s->result_values, axes, 1, &rank);
}

static void check_shape(ka_sort *s, const ka_operand *operand)
{
  bool is_same = operand->rank == s->x.rank;
  for (uint32_t i = 0; is_same && i < s->x.rank; i++) is_same = operand->shape[i] == s->x.shape[i];
  if (!is_same)
    ka_fail(s->call, KJIT_ERROR_ARGUMENT, "`%s` must have the shape of `x`", operand->name);
}

void ka_check_sorted(const ka_sort *s, const ka_operand *result, kjit_type element)
{
  if (!result->function && result->element != element)
    ka_fail(s->call, KJIT_ERROR_TYPE, "`%s` has elements of type %s: expected %s", result->name,
            ka_type_text(s->call, result->element), ka_type_text(s->call, element));
}

static void read_result(ka_sort *s, const char *name, const kjit_operand *given, ka_operand *result)
{
  ka_read_output(s->call, name, given, result);
  check_shape(s, result);
}

static void check_place(ka_sort *s, const ka_operand *result, const ka_operand *own,
                        const ka_operand *other)
{
  ka_check_overlap(s->call, result, own, true);
  if (other) ka_check_overlap(s->call, result, other, false);
  if (!result->function && !own->function && result->view.address == own->view.address)
    s->is_in_place = true;
}

static bool is_integer(const ka_sort *s, kjit_type type)
{
  ki_type_class class_ = ki_type(s->call->context->types, type)->class_;
  return class_ == KJ_CLASS_SIGNED || class_ == KJ_CLASS_UNSIGNED;
}

void ka_check_places(const ka_sort *s, const ka_operand *result)
{
  if (!result->function && !is_integer(s, result->element))
    ka_fail(s->call, KJIT_ERROR_TYPE, "`%s` has elements of type %s, but positions are integers",
            result->name, ka_type_text(s->call, result->element));
}

static void read_places(ka_sort *s, const sorting *given)
{
  s->has_values = s->are_places = true;
  read_result(s, "result", given->result, &s->result_values);
  ka_check_places(s, &s->result_values);
  ka_check_overlap(s->call, &s->result_values, &s->x, false);
  s->value_element = s->call->is_wide ? KJIT_I64 : KJIT_I32;
}

void ka_read_values(ka_sort *s, const kjit_operand *given)
{
  s->has_values = true;
  ka_read_input(s->call, "values", given, &s->values);
  check_shape(s, &s->values);
}

void ka_read_sorted(ka_sort *s, const kjit_operand *result, const kjit_operand *result_values)
{
  s->has_result = true;
  read_result(s, "result", result, &s->result);
  ka_check_sorted(s, &s->result, s->x.element);
  if (!s->has_values) {
    check_place(s, &s->result, &s->x, NULL);
    return;
  }
  s->value_element = s->values.element;
  read_result(s, "result_values", result_values, &s->result_values);
  ka_check_sorted(s, &s->result_values, s->value_element);
  check_place(s, &s->result, &s->x, &s->values);
  check_place(s, &s->result_values, &s->values, &s->x);
  ka_check_overlap(s->call, &s->result_values, &s->result, false);
}

static bool describe_results(ka_sort *s, const sorting *given)
{
  const ka_operand *x = &s->x;
  if (given->wants_places) return ka_describe(s->call, 0, KJIT_I64, x->rank, x->shape);
  bool is_asked = ka_describe(s->call, 0, x->element, x->rank, x->shape);
  return given->values ? ka_describe(s->call, 1, s->values.element, x->rank, x->shape) : is_asked;
}

static void build_sort(ka_call *call, const void *data)
{
  const sorting *given = data;
  ka_sort s = { .call = call };
  ka_read_input(call, "x", given->x, &s.x);
  if (given->values) ka_read_values(&s, given->values);
  if (describe_results(&s, given)) return;
  ka_read_order(&s, given->less);
  if (s.x.count >= WIDE_COUNT) call->is_wide = true;
  if (given->wants_places) read_places(&s, given);
  else ka_read_sorted(&s, given->result, given->result_values);
  if (s.has_values) s.value_bytes = kj_element_bytes(call->context->types, s.value_element);
  ka_arrange_rows(&s, ka_read_sorted_axis(call, s.x.rank));
  ka_choose_device(call);
  if (!s.x.count) return;
  if (s.rows > INT32_MAX)
    ka_fail(call, KJIT_ERROR_UNSUPPORTED, "the number of rows to sort is larger than %d",
            INT32_MAX);
  ka_sort_steps(&s);
}

/* ---- merge ---- */

typedef struct merging {
  const kjit_operand *result, *x, *y;
  kjit_function *less;
} merging;

static void check_line(ka_call *call, const ka_operand *operand)
{
  if (operand->rank != 1)
    ka_fail(call, KJIT_ERROR_ARGUMENT, "`%s` has %u axes; a merge needs one", operand->name,
            operand->rank);
}

static void build_merge(ka_call *call, const void *data)
{
  const merging *given = data;
  uint32_t one = 1, axis = 0;
  ka_sort s = { .call = call };
  ka_operand y;
  ka_read_input(call, "x", given->x, &s.x);
  ka_read_input(call, "y", given->y, &y);
  check_line(call, &s.x);
  check_line(call, &y);
  if (s.x.element != y.element)
    ka_fail(call, KJIT_ERROR_TYPE, "`x` has elements of type %s, but `y` has elements of type %s",
            ka_type_text(call, s.x.element), ka_type_text(call, y.element));
  int64_t count = (int64_t)(s.x.count + y.count);
  if (ka_describe(call, 0, s.x.element, 1, &count)) return;
  ka_read_order(&s, given->less);
  ka_read_output(call, "result", given->result, &s.result);
  check_line(call, &s.result);
  if (s.result.shape[0] != count)
    ka_fail(call, KJIT_ERROR_ARGUMENT,
            "`result` must have as many elements as `x` and `y` together");
  ka_check_sorted(&s, &s.result, s.x.element);
  ka_check_overlap(call, &s.result, &s.x, false);
  ka_check_overlap(call, &s.result, &y, false);
  ka_arrange(call, &s.x, &axis, 1, &one);
  ka_arrange(call, &y, &axis, 1, &one);
  ka_arrange(call, &s.result, &axis, 1, &one);
  ka_choose_device(call);
  if (count) ka_merge_steps(&s, &y);
}

/* ---- the functions ---- */

kjit_status kjit_merge(kjit_context *context, const kjit_operand *result, const kjit_operand *x,
                       const kjit_operand *y, kjit_function *less,
                       const kjit_algorithm_options *options)
{
  const merging given = { result, x, y, less };
  const ka_inputs inputs = { { result, x, y }, .function = less };
  return ka_perform_kept(context, "kjit_merge", KA_DESCENDING | KA_BITS, options, build_merge,
                         &given, &inputs);
}

static kjit_status perform(kjit_context *context, const char *name, const sorting *given,
                           const kjit_algorithm_options *options)
{
  const ka_inputs inputs = { { given->result, given->result_values, given->x, given->values },
                             .function = given->less };
  return ka_perform_kept(context, name, KA_AXES | KA_DESCENDING | KA_BITS, options, build_sort,
                         given, &inputs);
}

kjit_status kjit_sort(kjit_context *context, const kjit_operand *result, const kjit_operand *x,
                      kjit_function *less, const kjit_algorithm_options *options)
{
  const sorting given = { .result = result, .x = x, .less = less };
  return perform(context, "kjit_sort", &given, options);
}

static const kjit_operand none = { 0 };

kjit_status kjit_sort_pairs(kjit_context *context, const kjit_operand *result,
                            const kjit_operand *result_values, const kjit_operand *x,
                            const kjit_operand *values, kjit_function *less,
                            const kjit_algorithm_options *options)
{
  const sorting given = { result, result_values, x, values ? values : &none, less, false };
  return perform(context, "kjit_sort_pairs", &given, options);
}

kjit_status kjit_argsort(kjit_context *context, const kjit_operand *result, const kjit_operand *x,
                         kjit_function *less, const kjit_algorithm_options *options)
{
  const sorting given = { .result = result, .x = x, .less = less, .wants_places = true };
  return perform(context, "kjit_argsort", &given, options);
}
