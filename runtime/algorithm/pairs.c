/* Implements kjit_pairs and kjit_pairs_smallest. For each row of x, these functions apply a func to
 * the row and each row of y, and reduce the results over all rows of y. They do not store the
 * matrix of all pairs. This file checks the calls; pairs_text.c writes their kernels. */
#include "algorithm/pairs.h"

#include <string.h>

#include "ir/context.h"

/* Limits for the sizes of rows: a block keeps rows of x in registers and rows of y in shared
 * memory. */
enum { MOST_ROW_BYTES = 4096, MOST_Y_BYTES = 8192, MOST_K = 64 };

/* ---- operands ---- */

static void read_rows(ka_pairs *p, const char *name, const kjit_operand *given, ka_rows *rows)
{
  ka_call *call = p->call;
  const uint32_t axes[] = { 0, 1 };
  ka_operand *operand = &rows->operand;
  ka_read_input(call, name, given, operand);
  if (operand->rank != 1 && operand->rank != 2)
    ka_fail(call, KJIT_ERROR_ARGUMENT,
            "`%s` has %u axes; an operand with rows must have one or two", name, operand->rank);
  bool is_half = operand->element == KJIT_F16 || operand->element == KJIT_BF16;
  rows->computed = p->gradient && is_half ? KJIT_F32 : operand->element;
  rows->bytes = kj_element_bytes(call->context->types, rows->computed);
  uint64_t width = operand->rank == 2 ? (uint64_t)operand->shape[1] : 1;
  if (!width) ka_fail(call, KJIT_ERROR_ARGUMENT, "rows of `%s` have no elements", name);
  unsigned long long bytes = (unsigned long long)width * rows->bytes;
  if (bytes > MOST_ROW_BYTES)
    ka_fail(call, KJIT_ERROR_UNSUPPORTED, "rows of `%s` have %llu bytes; the maximum is %d", name,
            bytes, MOST_ROW_BYTES);
  rows->width = (uint32_t)width;
  rows->bytes *= rows->width;
  const uint32_t ranks[] = { 1, operand->rank - 1 };
  ka_arrange(call, operand, axes, 2, ranks);
}

/* Returns the name of an operand of one side (x, or y0, y1 ...) in messages and kernel sources. */
static const char *name_rows(ka_call *call, const ka_pairing *given, bool is_x, size_t index)
{
  static const char *const weighed[] = { "x", "cotangents", "result" };
  if (given->gradient && given->gradient->is_exchanged) is_x = !is_x;
  return is_x ? weighed[index] : kj_format(&call->arena, "y%zu", index);
}

/* Reads the operands of one side, which have the same number of rows. Returns the total size, in
 * bytes, of one row from each of these operands. */
static uint32_t read_side(ka_pairs *p, const ka_pairing *given, bool is_x)
{
  ka_call *call = p->call;
  const kjit_operand *operands = is_x ? given->x : given->y;
  ka_rows *rows = is_x ? p->x : p->y;
  size_t count = is_x ? p->x_count : p->y_count;
  uint32_t bytes = 0;
  for (size_t i = 0; i < count; i++) {
    const char *name = name_rows(call, given, is_x, i);
    read_rows(p, name, operands ? &operands[i] : NULL, &rows[i]);
    bytes += rows[i].bytes;
    if (rows[i].operand.shape[0] != rows[0].operand.shape[0])
      ka_fail(call, KJIT_ERROR_ARGUMENT, "`%s` has %lld rows, but `%s` has %lld", name,
              (long long)rows[i].operand.shape[0], rows[0].operand.name,
              (long long)rows[0].operand.shape[0]);
  }
  return bytes;
}

static void read_all_rows(ka_pairs *p, const ka_pairing *given)
{
  ka_call *call = p->call;
  p->x_count = given->gradient ? given->x_count : 1;
  p->y_count = given->y_count;
  if (!given->gradient && (!given->y_count || given->y_count > KA_MOST_PAIRED))
    ka_fail(call, KJIT_ERROR_ARGUMENT, "got %zu operands with rows of y; the call takes 1 to %d",
            given->y_count, KA_MOST_PAIRED);
  KJ_ASSERT(p->x_count <= KA_MOST_ROWS && p->y_count <= KA_MOST_ROWS);
  (void)read_side(p, given, true);
  if (!given->y) ka_fail(call, KJIT_ERROR_MISUSE, "y is NULL");
  uint32_t bytes = read_side(p, given, false);
  if (bytes > MOST_Y_BYTES)
    ka_fail(call, KJIT_ERROR_UNSUPPORTED,
            "rows of all operands `%s` to `%s` together have %u bytes; the maximum is %d",
            p->y[0].operand.name, p->y[p->y_count - 1].operand.name, bytes, MOST_Y_BYTES);
  p->m = (uint64_t)p->x[0].operand.shape[0];
  p->n = p->total = (uint64_t)p->y[0].operand.shape[0];
  p->piece = given->piece;
  if (!p->piece) return;
  p->total = p->piece->total;
  call->is_wide = call->is_wide || p->piece->is_wide;
}

/* Reads the func. Its result type is inferred later (ka_infer_pair), because it depends on the rows
 * that are passed to the func. */
static void read_function(ka_pairs *p, const kjit_operand *given)
{
  ka_call *call = p->call;
  if (given && given->argument.kind != KJIT_ARG_FUNCTION)
    ka_fail(call, KJIT_ERROR_ARGUMENT, "`func` is not a function");
  ka_read_output(call, "func", given, &p->function);
  if (p->function.rank)
    ka_fail(call, KJIT_ERROR_ARGUMENT,
            "`func` must not have a shape, because it is computed over the rows of `x` and `y0`");
  p->function.is_output = false;
}

/* ---- results ---- */

/* Checks a result's shape. width: number of elements in a row of the result, which has two axes; 0
 * for a result with one axis. */
static void check_result(ka_pairs *p, const ka_operand *result, int64_t width)
{
  ka_call *call = p->call;
  bool is_fit = result->rank == (width ? 2 : 1) && (uint64_t)result->shape[0] == p->m &&
                (!width || result->shape[1] == width);
  if (!is_fit && width && !p->k)
    ka_fail(call, KJIT_ERROR_ARGUMENT,
            "`%s` must have two axes: %llu rows of %lld elements, one for each row of `%s`",
            result->name, (unsigned long long)p->m, (long long)width, p->x[0].operand.name);
  if (!is_fit && p->k)
    ka_fail(call, KJIT_ERROR_ARGUMENT,
            "`%s` must have two axes: %llu rows, as many as `x`, of %lld elements", result->name,
            (unsigned long long)p->m, (long long)p->k);
  if (!is_fit)
    ka_fail(call, KJIT_ERROR_ARGUMENT,
            "`%s` must have one axis and %llu elements, one for each row of `x`", result->name,
            (unsigned long long)p->m);
}

static void read_result(ka_pairs *p, const char *name, const kjit_operand *given, int64_t width,
                        ka_operand *result)
{
  ka_call *call = p->call;
  const uint32_t axes[] = { 0, 1 }, ranks[] = { 1, 1 };
  ka_read_output(call, name, given, result);
  check_result(p, result, width);
  for (size_t i = 0; i < p->x_count; i++) ka_check_overlap(call, result, &p->x[i].operand, false);
  ka_check_overlap(call, result, &p->function, false);
  for (size_t i = 0; i < p->y_count; i++) ka_check_overlap(call, result, &p->y[i].operand, false);
  ka_arrange(call, result, axes, width ? 2 : 1, ranks);
}

/* ---- types ---- */

static void choose_types(ka_pairs *p, ka_pair_value *v, const kjit_operator *operator_,
                         kjit_type result)
{
  ka_call *call = p->call;
  v->reduction = ka_read_reduction(call, operator_, &v->operator_);
  if (v->reduction) {
    v->value = ka_reduction_value(call, v->reduction, v->element);
    v->accumulator = ka_reduction_computed(v->reduction, v->value);
    v->bytes = ka_reduction_bytes(call, v->reduction, v->value);
    return;
  }
  v->value = v->accumulator = ka_accumulator(call, &v->operator_, v->element, result);
  v->bytes = kj_element_bytes(call->context->types, v->value);
  v->is_exponential = v->operator_.name && strcmp(v->operator_.name, "logaddexp") == 0;
  if (!v->is_exponential) return;
  v->accumulator = KJIT_ANY;
  v->bytes *= 2;
}

static void choose_order(ka_pairs *p)
{
  ka_pair_value *v = &p->values[0];
  switch (ki_type(p->call->context->types, v->element)->class_) {
  case KJ_CLASS_BOOL:
  case KJ_CLASS_SIGNED:
  case KJ_CLASS_UNSIGNED:
  case KJ_CLASS_FLOAT: break;
  default:
    ka_fail(p->call, KJIT_ERROR_TYPE,
            "`func` returns %s, and values of this type cannot be ordered",
            ka_type_text(p->call, v->element));
  }
  v->value = v->accumulator = v->element;
  p->bytes = v->bytes = kj_element_bytes(p->call->context->types, v->value);
}

/* Returns the default result type of a value: the type that kjit_reduce would use for its
 * result. */
static kjit_type result_type(const ka_pairs *p, const ka_pair_value *v)
{
  bool is_half = v->element == KJIT_F16 || v->element == KJIT_BF16;
  if (v->reduction) return ka_reduction_result(p->call, v->reduction, v->element, v->value);
  return is_half && p->call->options.accumulator == KJIT_ANY ? v->element : v->value;
}

/* ---- the calls ---- */

static void check_k(const ka_pairs *p, int64_t k)
{
  if (k < 1 || k > MOST_K)
    ka_fail(p->call, KJIT_ERROR_ARGUMENT, "`k` is %lld, but must be from 1 to %d", (long long)k,
            MOST_K);
  if ((uint64_t)k > p->total)
    ka_fail(p->call, KJIT_ERROR_ARGUMENT, "`k` is %lld, but `y0` has only %llu rows", (long long)k,
            (unsigned long long)p->total);
}

static void read_results(ka_pairs *p, const ka_pairing *given)
{
  ka_call *call = p->call;
  if (p->is_several && !given->results) ka_fail(call, KJIT_ERROR_MISUSE, "results is NULL");
  for (size_t i = 0; i < p->value_count; i++) {
    ka_operand *result = &p->values[i].result;
    const char *name = given->gradient ? kj_format(&call->arena, "g%u", given->gradient->by[i])
                       : p->is_several ? kj_format(&call->arena, "r%zu", i)
                                       : "result";
    int64_t width = p->k ? p->k : p->values[i].width;
    read_result(p, name, given->results ? &given->results[i] : NULL, width, result);
    for (size_t j = 0; j < i; j++) ka_check_overlap(call, result, &p->values[j].result, false);
  }
  p->has_places = given->result_places != NULL;
  if (!p->has_places) return;
  read_result(p, "result_places", given->result_places, p->k, &p->result_places);
  ka_check_index_result(call, &p->result_places, p->total);
  ka_check_overlap(call, &p->result_places, &p->values[0].result, false);
}

static void check_type(const ka_pairs *p, const ka_pair_value *v)
{
  ka_check_stored(p->call, &v->result, p->k ? v->element : result_type(p, v));
  if (v->reduction && ka_finds_place(v->reduction))
    ka_check_positions(p->call, &v->result, p->total);
}

/* Chooses the types of the combined values and of the result arrays. */
static void choose_all_types(ka_pairs *p, const ka_pairing *given)
{
  for (size_t i = 0; i < p->value_count; i++) {
    ka_pair_value *v = &p->values[i];
    bool has_array = !p->call->options.results && !v->result.function;
    if (given->operator_)
      choose_types(p, v, given->operator_, has_array ? v->result.element : KJIT_ANY);
    if (has_array && !given->gradient) check_type(p, v);
    if (given->operator_ || given->gradient) p->bytes += v->bytes;
  }
}

/* Describes the results, for calls with options.results. */
static void describe_results(const ka_pairs *p)
{
  ka_call *call = p->call;
  const int64_t shape[] = { (int64_t)p->m, p->k };
  for (size_t i = 0; i < p->value_count && !p->k; i++)
    (void)ka_describe(call, i, result_type(p, &p->values[i]), 1, shape);
  if (p->k) (void)ka_describe(call, 0, p->values[0].element, 2, shape);
  if (p->k && call->options.result_count > 1) (void)ka_describe(call, 1, KJIT_I64, 2, shape);
}

/* Checks that the func returns a value for each result. A call that asks for descriptions can
 * provide space for more results than the func has. */
static void check_count(const ka_pairs *p, const ka_pairing *given)
{
  const ka_call *call = p->call;
  size_t count = given->result_count;
  if (!p->is_several) return;
  if (call->options.results && p->value_count <= call->options.result_count) return;
  if (p->value_count != count)
    ka_fail(p->call, KJIT_ERROR_TYPE, "`func` returns %zu value%s, but %zu result%s given",
            p->value_count, p->value_count == 1 ? "" : "s", count, count == 1 ? " is" : "s are");
}

ka_pairs *ka_read_pairs(ka_call *call, const ka_pairing *given)
{
  ka_pairs *p = KJ_NEW(&call->arena, ka_pairs);
  *p = (ka_pairs){ .call = call, .is_several = given->is_several, .gradient = given->gradient };
  read_function(p, given->function);
  read_all_rows(p, given);
  ka_choose_device(call);
  ka_infer_pair(p);
  check_count(p, given);
  if (given->gradient) {
    p->value_count = given->result_count;
    ka_read_gradient(p);
  } else if (!given->operator_) {
    check_k(p, given->k);
    p->k = given->k;
    choose_order(p);
  }
  uint64_t width = p->k ? (uint64_t)p->k : 1;
  for (size_t i = 0; i < p->value_count; i++) width = ka_most(width, p->values[i].width);
  if (p->m > (INT32_MAX / 2 - (1 << 20)) / width) call->is_wide = true;
  if (!call->options.results) read_results(p, given);
  choose_all_types(p, given);
  return p;
}

void ka_build_pairs(ka_call *call, const void *data)
{
  ka_pairs *p = ka_read_pairs(call, data);
  if (call->options.results) describe_results(p);
  else ka_add_pairs(p);
}

void ka_add_pairs(ka_pairs *p)
{
  if (p->m && p->n) ka_pairs_steps(p);
  else if (p->m) ka_fill_pairs(p);
}

uint32_t ka_pairs_options(const ka_pairing *given)
{
  return KA_CHUNK | KA_DEVICES | (given->operator_ ? KA_ACCUMULATOR : 0);
}

/* Lists the call's arguments. Returns false if the call has more operands than ka_inputs can list;
 * the steps of such a call are not kept. */
static bool list_inputs(const ka_pairing *given, ka_inputs *inputs)
{
  size_t count = 0, results = given->results ? given->result_count : 0,
         rows = given->y ? given->y_count : 0;
  if (results + rows + 3 > KA_MOST_INPUTS) return false;
  *inputs = (ka_inputs){ { given->result_places, given->function, given->x },
                         .operator_ = given->operator_,
                         .numbers = { (uint64_t)given->k, given->y_count, given->result_count,
                                      given->is_several } };
  for (size_t i = 0; i < results; i++) inputs->operands[3 + count++] = &given->results[i];
  for (size_t i = 0; i < rows; i++) inputs->operands[3 + count++] = &given->y[i];
  return true;
}

static kjit_status perform(kjit_context *context, const char *name, const ka_pairing *given,
                           const kjit_algorithm_options *options)
{
  kjit_algorithm_options own;
  ka_inputs inputs;
  bool is_kept = list_inputs(given, &inputs);
  KJ_TRY(kj_check_call(context, name, NULL));
  KJ_TRY(ki_read_sized(context, name, KI_ALGORITHM_OPTIONS, options, &own));
  if ((own.chunk || own.device_count) && !own.results)
    return ka_stream_pairs(context, name, given, options);
  return ka_perform_kept(context, name, ka_pairs_options(given), options, ka_build_pairs, given,
                         is_kept ? &inputs : NULL);
}

static const kjit_operator no_operator = { 0 };

kjit_status kjit_pairs(kjit_context *context, const kjit_operand *result,
                       const kjit_operand *function, const kjit_operand *x, const kjit_operand *y,
                       size_t y_count, const kjit_operator *operator_,
                       const kjit_algorithm_options *options)
{
  const ka_pairing given = { .results = result,
                             .result_count = 1,
                             .function = function,
                             .x = x,
                             .y = y,
                             .y_count = y_count,
                             .operator_ = operator_ ? operator_ : &no_operator };
  return perform(context, "kjit_pairs", &given, options);
}

kjit_status kjit_pairs_several(kjit_context *context, const kjit_operand *results,
                               size_t result_count, const kjit_operand *function,
                               const kjit_operand *x, const kjit_operand *y, size_t y_count,
                               const kjit_operator *operator_,
                               const kjit_algorithm_options *options)
{
  const ka_pairing given = { .results = results,
                             .result_count = result_count,
                             .is_several = true,
                             .function = function,
                             .x = x,
                             .y = y,
                             .y_count = y_count,
                             .operator_ = operator_ ? operator_ : &no_operator };
  return perform(context, "kjit_pairs_several", &given, options);
}

kjit_status kjit_pairs_smallest(kjit_context *context, const kjit_operand *result,
                                const kjit_operand *result_places, const kjit_operand *function,
                                const kjit_operand *x, const kjit_operand *y, size_t y_count,
                                int64_t k, const kjit_algorithm_options *options)
{
  const ka_pairing given = { .results = result,
                             .result_places = result_places,
                             .function = function,
                             .x = x,
                             .y = y,
                             .result_count = 1,
                             .y_count = y_count,
                             .k = k };
  return perform(context, "kjit_pairs_smallest", &given, options);
}
