/* kjit_pairs and kjit_pairs_smallest: for each row of x a reduction over the rows of y of a func of
 * both, without the matrix of all pairs: what they are given. pairs_text.c has their kernels. */
#include "algorithm/pairs.h"

#include <string.h>

#include "ir/context.h"

/* What a block has of x and of y is in registers and in shared memory. */
enum { MOST_ROW_BYTES = 4096, MOST_Y_BYTES = 8192, MOST_K = 64 };

/* ---- operands ---- */

static void read_rows(ka_pairs *p, const char *name, const kjit_operand *given, ka_rows *rows)
{
  ka_call *call = p->call;
  const uint32_t axes[] = { 0, 1 };
  ka_operand *operand = &rows->operand;
  ka_read_input(call, name, given, operand);
  if (operand->rank != 1 && operand->rank != 2)
    ka_fail(call, KJIT_ERROR_ARGUMENT, "`%s` has %u axes; rows have one axis or two", name,
            operand->rank);
  rows->bytes = kj_element_bytes(call->context->types, operand->element);
  uint64_t width = operand->rank == 2 ? (uint64_t)operand->shape[1] : 1;
  if (!width) ka_fail(call, KJIT_ERROR_ARGUMENT, "rows of `%s` have no elements", name);
  unsigned long long bytes = (unsigned long long)width * rows->bytes;
  if (bytes > MOST_ROW_BYTES)
    ka_fail(call, KJIT_ERROR_UNSUPPORTED, "rows of `%s` have %llu bytes: at most %d", name, bytes,
            MOST_ROW_BYTES);
  rows->width = (uint32_t)width;
  rows->bytes *= rows->width;
  const uint32_t ranks[] = { 1, operand->rank - 1 };
  ka_arrange(call, operand, axes, 2, ranks);
}

static void read_all_rows(ka_pairs *p, const ka_pairing *given)
{
  ka_call *call = p->call;
  uint32_t bytes = 0;
  read_rows(p, "x", given->x, &p->x);
  p->m = (uint64_t)p->x.operand.shape[0];
  if (!given->y_count || given->y_count > KA_MOST_PAIRED)
    ka_fail(call, KJIT_ERROR_ARGUMENT, "%zu operands have rows of y: 1 to %d", given->y_count,
            KA_MOST_PAIRED);
  if (!given->y) ka_fail(call, KJIT_ERROR_MISUSE, "y is NULL");
  p->y_count = given->y_count;
  for (size_t i = 0; i < p->y_count; i++) {
    const char *name = kj_format(&call->arena, "y%zu", i);
    read_rows(p, name, &given->y[i], &p->y[i]);
    bytes += p->y[i].bytes;
    if (p->y[i].operand.shape[0] != p->y[0].operand.shape[0])
      ka_fail(call, KJIT_ERROR_ARGUMENT, "`%s` has %lld rows, and `y0` %lld", name,
              (long long)p->y[i].operand.shape[0], (long long)p->y[0].operand.shape[0]);
  }
  if (bytes > MOST_Y_BYTES)
    ka_fail(call, KJIT_ERROR_UNSUPPORTED, "rows of all `y0` to `y%zu` have %u bytes: at most %d",
            p->y_count - 1, bytes, MOST_Y_BYTES);
  p->n = p->total = (uint64_t)p->y[0].operand.shape[0];
  p->piece = given->piece;
  if (!p->piece) return;
  p->total = p->piece->total;
  call->is_wide = call->is_wide || p->piece->is_wide;
}

/* Its type depends on the rows that it gets, which no operand's func has. */
static void read_function(ka_pairs *p, const kjit_operand *given)
{
  ka_call *call = p->call;
  if (given && given->argument.kind != KJIT_ARG_FUNCTION)
    ka_fail(call, KJIT_ERROR_ARGUMENT, "`func` is no func");
  ka_read_output(call, "func", given, &p->function);
  if (p->function.rank)
    ka_fail(call, KJIT_ERROR_ARGUMENT,
            "`func` has a shape: it is computed over the rows of `x` and `y0`");
  p->function.is_output = false;
}

/* ---- results ---- */

static void check_result(ka_pairs *p, const ka_operand *result)
{
  ka_call *call = p->call;
  uint32_t rank = p->k ? 2 : 1;
  bool is_fit = result->rank == rank && (uint64_t)result->shape[0] == p->m &&
                (!p->k || result->shape[1] == p->k);
  if (!is_fit && p->k)
    ka_fail(call, KJIT_ERROR_ARGUMENT,
            "`%s` has to have %llu rows, as many as `x`, of %lld elements", result->name,
            (unsigned long long)p->m, (long long)p->k);
  if (!is_fit)
    ka_fail(call, KJIT_ERROR_ARGUMENT,
            "`%s` must have one axis and %llu elements, one for each row of `x`", result->name,
            (unsigned long long)p->m);
}

static void read_result(ka_pairs *p, const char *name, const kjit_operand *given,
                        ka_operand *result)
{
  ka_call *call = p->call;
  const uint32_t axes[] = { 0, 1 }, ranks[] = { 1, 1 };
  ka_read_output(call, name, given, result);
  check_result(p, result);
  ka_check_overlap(call, result, &p->x.operand, false);
  ka_check_overlap(call, result, &p->function, false);
  for (size_t i = 0; i < p->y_count; i++) ka_check_overlap(call, result, &p->y[i].operand, false);
  ka_arrange(call, result, axes, p->k ? 2 : 1, ranks);
}

/* ---- types ---- */

static void choose_types(ka_pairs *p, const kjit_operator *operator_, kjit_type result)
{
  ka_call *call = p->call;
  p->reduction = ka_read_reduction(call, operator_, &p->operator_);
  if (p->reduction) {
    p->value = ka_reduction_value(call, p->reduction, p->element);
    p->accumulator = ka_reduction_computed(p->reduction, p->value);
    p->bytes = ka_reduction_bytes(call, p->reduction, p->value);
    return;
  }
  p->value = p->accumulator = ka_accumulator(call, &p->operator_, p->element, result);
  p->bytes = kj_element_bytes(call->context->types, p->value);
  p->is_exponential = p->operator_.name && strcmp(p->operator_.name, "logaddexp") == 0;
  if (!p->is_exponential) return;
  p->accumulator = KJIT_ANY;
  p->bytes *= 2;
}

static void choose_order(ka_pairs *p)
{
  switch (ki_type(p->call->context->types, p->element)->class_) {
  case KJ_CLASS_BOOL:
  case KJ_CLASS_SIGNED:
  case KJ_CLASS_UNSIGNED:
  case KJ_CLASS_FLOAT: break;
  default:
    ka_fail(p->call, KJIT_ERROR_TYPE, "`func` returns %s, which has no order",
            ka_type_text(p->call, p->element));
  }
  p->value = p->accumulator = p->element;
  p->bytes = kj_element_bytes(p->call->context->types, p->value);
}

/* As kjit_reduce has it. */
static kjit_type result_type(const ka_pairs *p)
{
  bool is_half = p->element == KJIT_F16 || p->element == KJIT_BF16;
  if (p->reduction) return ka_reduction_result(p->call, p->reduction, p->element, p->value);
  return is_half && p->call->options.accumulator == KJIT_ANY ? p->element : p->value;
}

/* ---- the calls ---- */

static void check_k(const ka_pairs *p, int64_t k)
{
  if (k < 1 || k > MOST_K)
    ka_fail(p->call, KJIT_ERROR_ARGUMENT, "`k` is %lld: 1 to %d", (long long)k, MOST_K);
  if ((uint64_t)k > p->total)
    ka_fail(p->call, KJIT_ERROR_ARGUMENT, "`k` is %lld, and `y0` has %llu rows", (long long)k,
            (unsigned long long)p->total);
}

static void check_places(const ka_pairs *p)
{
  ki_type_class class_ = ki_type(p->call->context->types, p->result_places.element)->class_;
  if (p->result_places.function || class_ == KJ_CLASS_SIGNED || class_ == KJ_CLASS_UNSIGNED) return;
  ka_fail(p->call, KJIT_ERROR_TYPE,
          "`result_places` has elements of type %s: positions are integers",
          ka_type_text(p->call, p->result_places.element));
}

static void read_results(ka_pairs *p, const ka_pairing *given)
{
  read_result(p, "result", given->result, &p->result);
  p->has_places = given->result_places != NULL;
  if (!p->has_places) return;
  read_result(p, "result_places", given->result_places, &p->result_places);
  check_places(p);
  ka_check_positions(p->call, &p->result_places, p->total);
  ka_check_overlap(p->call, &p->result_places, &p->result, false);
}

static void check_type(const ka_pairs *p)
{
  ka_check_stored(p->call, &p->result, p->k ? p->element : result_type(p));
  if (p->reduction && ka_finds_place(p->reduction))
    ka_check_positions(p->call, &p->result, p->total);
}

/* The call only asks what its results would be. */
static void describe_results(const ka_pairs *p)
{
  ka_call *call = p->call;
  const int64_t shape[] = { (int64_t)p->m, p->k };
  if (!p->k) (void)ka_describe(call, 0, result_type(p), 1, shape);
  if (p->k) (void)ka_describe(call, 0, p->element, 2, shape);
  if (p->k && call->options.result_count > 1) (void)ka_describe(call, 1, KJIT_I64, 2, shape);
}

ka_pairs *ka_read_pairs(ka_call *call, const ka_pairing *given)
{
  ka_pairs *p = KJ_NEW(&call->arena, ka_pairs);
  *p = (ka_pairs){ .call = call };
  read_function(p, given->function);
  read_all_rows(p, given);
  ka_choose_device(call);
  p->element = ka_infer_pair(p);
  if (!given->operator_) {
    check_k(p, given->k);
    p->k = given->k;
    choose_order(p);
  }
  if (p->m > (INT32_MAX / 2 - (1 << 20)) / (p->k ? (uint64_t)p->k : 1)) call->is_wide = true;
  if (!call->options.results) read_results(p, given);
  bool has_array = !call->options.results && !p->result.function;
  if (given->operator_) choose_types(p, given->operator_, has_array ? p->result.element : KJIT_ANY);
  if (has_array) check_type(p);
  return p;
}

void ka_build_pairs(ka_call *call, const void *data)
{
  ka_pairs *p = ka_read_pairs(call, data);
  if (call->options.results) describe_results(p);
  else if (p->m && p->n) ka_pairs_steps(p);
  else if (p->m) ka_fill_pairs(p);
}

uint32_t ka_pairs_options(const ka_pairing *given)
{
  return KA_CHUNK | KA_DEVICES | (given->operator_ ? KA_ACCUMULATOR : 0);
}

/* More operands than a call's inputs have are no call that can be made. */
static ka_inputs list_inputs(const ka_pairing *given)
{
  ka_inputs inputs = { { given->result, given->result_places, given->function, given->x },
                       .operator_ = given->operator_,
                       .numbers = { (uint64_t)given->k, given->y_count } };
  for (size_t i = 0; given->y && i < given->y_count && i < KA_MOST_PAIRED; i++)
    inputs.operands[4 + i] = &given->y[i];
  return inputs;
}

static kjit_status perform(kjit_context *context, const char *name, const ka_pairing *given,
                           const kjit_algorithm_options *options)
{
  kjit_algorithm_options own;
  const ka_inputs inputs = list_inputs(given);
  KJ_TRY(kj_check_call(context, name, NULL));
  KJ_TRY(ki_read_sized(context, name, KI_ALGORITHM_OPTIONS, options, &own));
  if ((own.chunk || own.device_count) && !own.results)
    return ka_stream_pairs(context, name, given, options);
  return ka_perform_kept(context, name, ka_pairs_options(given), options, ka_build_pairs, given,
                         &inputs);
}

kjit_status kjit_pairs(kjit_context *context, const kjit_operand *result,
                       const kjit_operand *function, const kjit_operand *x, const kjit_operand *y,
                       size_t y_count, const kjit_operator *operator_,
                       const kjit_algorithm_options *options)
{
  static const kjit_operator none = { 0 };
  const ka_pairing given = { .result = result,
                             .function = function,
                             .x = x,
                             .y = y,
                             .y_count = y_count,
                             .operator_ = operator_ ? operator_ : &none };
  return perform(context, "kjit_pairs", &given, options);
}

kjit_status kjit_pairs_smallest(kjit_context *context, const kjit_operand *result,
                                const kjit_operand *result_places, const kjit_operand *function,
                                const kjit_operand *x, const kjit_operand *y, size_t y_count,
                                int64_t k, const kjit_algorithm_options *options)
{
  const ka_pairing given = { result, result_places, function, x, y, y_count, NULL, k, NULL };
  return perform(context, "kjit_pairs_smallest", &given, options);
}
