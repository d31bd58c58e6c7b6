/* kjit_pairs_gradient: derivatives of a reduction over pairs, computed as reductions over pairs.
 *
 * With cotangents c and r[i] = op over j of f(x[i], y[j]), the derivative with respect to x[i] is
 * the sum over j of c[i] * w(i, j) * df/dx, and the derivative with respect to y[j] is the sum over
 * i of c[i] * w(i, j) * df/dy. The weight w is 1 for add, exp(f - r[i]) for logaddexp, and for max
 * and min 1 for the pair that gives the result, otherwise 0. One pass computes the derivatives with
 * respect to x and to the func's additional arguments; both have a sum for each row of x. Another
 * pass, with x and y exchanged, computes the derivatives with respect to y. The func of a pass by x
 * on a GPU:
 *
 *     func pair_add(l, j, i, at, xs, cotangentss, y0s, sums_0) @inline {
 *       let all = vjp(hosts_0, 0)(xs[l], y0s[j], i64(i), i64(at), f32(cotangentss[l]), sums_0[l])
 *     }
 *
 * For KJIT_PAIRS_VALUE, the sum over j of f itself, the kernel adds the values that vjp returns.
 *
 * vjp adds the derivative with respect to a row to the row that is passed to it, and returns the
 * derivative with respect to a number. On the CPU, where rows are columns in an array, vjp gets
 * copies of the rows, because the func's loops need a constant length, which columns do not have.
 * */
#include <string.h>

#include "algorithm/pairs_share.h"
#include "ir/context.h"

/* ---- parameters with derivatives ---- */

enum { MOST_PARAMETER_ELEMENTS = 64 };

static bool is_derived(kjit_type type) { return type == KJIT_F32 || type == KJIT_F64; }

static bool is_half(kjit_type type) { return type == KJIT_F16 || type == KJIT_BF16; }

static void check_derived(const ka_pairs *p, uint32_t parameter, kjit_type type)
{
  if (is_derived(type)) return;
  ka_fail(p->call, KJIT_ERROR_TYPE,
          "parameter %u of `func` has elements of type %s, but derivatives are supported only with "
          "respect to floats",
          parameter, ka_type_text(p->call, type));
}

/* Returns the type in which the func gets numbers of a type: f32 for f16 and bf16, because sums of
 * derivatives need more digits. */
static kjit_type wide_type(kjit_type type) { return is_half(type) ? KJIT_F32 : type; }

/* Reads an additional argument: a number, or a one-dimensional array with few elements. The
 * derivatives with respect to the argument keep the wider type, because the caller adds the sums of
 * all rows of x. */
static void read_argument(const ka_pairs *p, uint32_t parameter, const kjit_arg *argument,
                          ka_pair_value *v)
{
  ka_call *call = p->call;
  bool is_own = argument->kind == KJIT_ARG_ARRAY;
  const ki_type_info *info =
    ki_type(call->context->types, ka_argument_type(call, &p->function, argument));
  bool is_array = info->class_ == KJ_CLASS_ARRAY;
  v->element = wide_type(is_array ? info->element : ka_argument_type(call, &p->function, argument));
  check_derived(p, parameter, v->element);
  if (!is_array) return;
  const kjit_tensor *tensor =
    is_own ? kjit_get_tensor(argument->value.array) : argument->value.tensor;
  int64_t count = info->rank == 1 ? tensor->shape[0] : 0;
  if (count < 1 || count > MOST_PARAMETER_ELEMENTS)
    ka_fail(call, KJIT_ERROR_UNSUPPORTED,
            "parameter %u of `func` is an array of %u axes, but derivatives are supported only "
            "with respect to arrays of one axis "
            "with 1 to %d elements; pass an array with an element for each row of "
            "y as one of the operands y",
            parameter, info->rank, MOST_PARAMETER_ELEMENTS);
  v->width = (uint32_t)count;
}

void ka_read_gradient(ka_pairs *p)
{
  ka_call *call = p->call;
  const ka_rows *rows[KA_MOST_ROWS];
  size_t row_count = ka_list_pair_rows(p, rows), first = row_count + 2;
  kjit_type result = p->values[0].element;
  if (!is_derived(result))
    ka_fail(call, KJIT_ERROR_TYPE,
            "`func` returns %s, but only results of type f32 and f64 have derivatives",
            ka_type_text(call, result));
  for (size_t i = 0; i < p->value_count; i++) {
    ka_pair_value *v = &p->values[i];
    uint32_t parameter = p->gradient->by[i];
    *v = (ka_pair_value){ .operator_ = { .name = "add", .commutes = true, .has_identity = true } };
    if (parameter == KJIT_PAIRS_VALUE) {
      v->element = result;
    } else if (parameter < row_count) {
      v->element = rows[parameter]->operand.element;
      v->accumulator = rows[parameter]->computed;
      check_derived(p, parameter, v->accumulator);
      if (rows[parameter]->operand.rank == 2) v->width = rows[parameter]->width;
    } else if (parameter < first) {
      ka_fail(call, KJIT_ERROR_TYPE,
              "parameter %u of `func` is the number of a row, which has no derivative", parameter);
    } else if (parameter - first < p->function.array_count) {
      read_argument(p, parameter, &p->function.arrays[parameter - first], v);
    } else {
      ka_fail(call, KJIT_ERROR_ARGUMENT,
              "`func` has no parameter %u: it is called with %zu arguments", parameter,
              first + p->function.array_count);
    }
    if (v->accumulator == KJIT_ANY) v->accumulator = v->element;
    v->value = v->accumulator;
    v->bytes = kj_element_bytes(call->context->types, v->value) * (v->width ? v->width : 1);
  }
}

/* ---- source text ---- */

/* Writes the func to differentiate. The func has the parameters of the application's func and,
 * unless the weight is 1, a parameter for the result of the row. */
static const char *write_weighed(const ka_pairs *p, ka_kernel *kernel, size_t row_count)
{
  kj_arena *arena = &p->call->arena;
  const char *callee = ka_use_pair_function(p, kernel), *list = "";
  if (p->gradient->weight == KA_WEIGHT_ONE) return callee;
  for (size_t i = 0; i < row_count + 2 + p->function.array_count; i++)
    list = kj_format(arena, "%s%sa%zu", list, i ? ", " : "", i);
  if (p->gradient->weight == KA_WEIGHT_EXP)
    kj_append_format(kernel->funcs,
                     "func pair_weighed(%s, result) @inline { return exp(%s(%s) - result) }\n",
                     list, callee, list);
  else
    kj_append_format(kernel->funcs,
                     "func pair_weighed(%s, result) @inline {\n"
                     "  return a%zu == i64(result) ? %s(%s) : zero(dtype(%s(%s)))\n}\n",
                     list, row_count + 1, callee, list, callee, list);
  return "pair_weighed";
}

/* Returns the index of a thread's row in shared memory. */
static const char *shared_row(const ka_pairs *p, const ka_pair_shape *shape)
{
  return kj_format(&p->call->arena, "l * %u + i32(thread_rank)", shape->threads);
}

static const char *element_of_sum(const ka_pairs *p, const ka_pair_shape *shape, size_t index)
{
  kj_arena *arena = &p->call->arena;
  if (!p->values[index].width) return kj_format(arena, "sums_%zu[l]", index);
  if (ka_is_cpu(p->call)) return kj_format(arena, "sums_%zu[q, l]", index);
  return kj_format(arena, "sums_%zu[%s, q]", index, shape->is_shared ? shared_row(p, shape) : "l");
}

/* Returns the distance, in elements, between two rows of a sum. */
static uint32_t stride_of_sum(const ka_pairs *p, const ka_pair_shape *shape, size_t index)
{
  const ka_pair_value *v = &p->values[index];
  return shape->is_shared ? ka_pair_stride(v->width, v->bytes / v->width) : v->width;
}

/* Returns source text that executes the statement for each element q of a sum or a row. */
static const char *for_elements(const ka_pairs *p, uint32_t width, const char *statement)
{
  if (!width) return kj_format(&p->call->arena, "  %s\n", statement);
  return kj_format(&p->call->arena, "  for q in range(%ui32)%s { %s }\n", width,
                   width <= KA_MOST_UNROLLED ? " @unroll" : "", statement);
}

/* Returns statements of pair_add that copy columns of x. */
static const char *copy_columns(const ka_pairs *p, ka_kernel *kernel)
{
  kj_arena *arena = &p->call->arena;
  const char *text = "";
  for (size_t i = 0; i < p->x_count; i++) {
    const ka_rows *x = &p->x[i];
    const char *name = x->operand.name;
    if (!ka_is_column(p, x)) continue;
    text =
      kj_format(arena, "%s  local %s_row: %s[%u]\n%s", text, name, ka_use_type(kernel, x->computed),
                x->width,
                for_elements(p, x->width, kj_format(arena, "%s_row[q] = %ss[q, l]", name, name)));
  }
  return text;
}

typedef struct gradient_text {
  const char *names, *locals, *begin, *before, *add, *store, *numbers, *shadows;
} gradient_text;

/* If the parameter is an array, returns the length of the derivative with respect to it, otherwise
 * 0. */
static uint32_t length_by(const ka_pairs *p, size_t parameter)
{
  for (size_t i = 0; i < p->value_count; i++)
    if (p->gradient->by[i] == parameter) return p->values[i].width;
  return 0;
}

/* Returns the additional arguments in the form that the func receives: ", f32(hosts_0), more_1,
 * hosts_2". Numbers of f16 and bf16 are converted to f32. Arrays of such numbers are copied if the
 * call computes derivatives with respect to them. */
static const char *widen_arguments(const ka_pairs *p, size_t first, gradient_text *t)
{
  kj_arena *arena = &p->call->arena;
  const char *list = "";
  for (size_t i = 0; i < p->function.array_count; i++) {
    const char *name = kj_format(arena, "%s_%zu", p->function.name, i), *given = name;
    kjit_type type = ka_argument_type(p->call, &p->function, &p->function.arrays[i]);
    const ki_type_info *info = ki_type(p->call->context->types, type);
    uint32_t width = length_by(p, first + i);
    if (is_half(type)) {
      given = kj_format(arena, "f32(%s)", name);
    } else if (width && is_half(info->element)) {
      given = kj_format(arena, "more_%zu", i);
      t->before = kj_format(arena, "%s  local %s: f32[%u]\n%s", t->before, given, width,
                            for_elements(p, width, kj_format(arena, "%s[q] = %s[q]", given, name)));
    }
    list = kj_format(arena, "%s, %s", list, given);
  }
  return list;
}

/* Returns the row to which vjp adds a derivative: a row of the sums, or a copy whose elements are
 * then added to a column of the sums. */
static const char *write_row(const ka_pairs *p, const ka_pair_shape *shape, const char *type,
                             size_t index, gradient_text *t)
{
  kj_arena *arena = &p->call->arena;
  uint32_t width = p->values[index].width;
  if (shape->is_shared)
    return kj_format(arena, "sums_%zu[%s, :%u]", index, shared_row(p, shape), width);
  if (!ka_is_cpu(p->call)) return kj_format(arena, "sums_%zu[l]", index);
  const char *row = kj_format(arena, "sum_row_%zu", index);
  t->before = kj_format(arena, "%s  local %s: %s[%u]\n%s", t->before, row, type, width,
                        for_elements(p, width, kj_format(arena, "%s[q] = 0", row)));
  t->add =
    kj_format(arena, "%s%s", t->add,
              for_elements(p, width,
                           kj_format(arena, "%s += %s[q]", element_of_sum(p, shape, index), row)));
  return row;
}

/* Returns the expression of the value in the result of vjp. vjp returns a tuple, or only the value
 * if all derivatives are with respect to rows. */
static const char *value_of_all(const ka_pairs *p)
{
  for (size_t i = 0; i < p->value_count; i++)
    if (p->gradient->by[i] != KJIT_PAIRS_VALUE && !p->values[i].width) return "all[0]";
  return "all";
}

/* Returns the extents of the array of a sum. */
static const char *extents_of_sum(const ka_pairs *p, const ka_pair_shape *shape, size_t index)
{
  kj_arena *arena = &p->call->arena;
  uint32_t width = p->values[index].width;
  if (!width) return kj_format(arena, "%u", shape->rows);
  if (ka_is_cpu(p->call)) return kj_format(arena, "%u, %u", width, shape->rows);
  return kj_format(arena, "%u, %u", shape->is_shared ? shape->rows * shape->threads : shape->rows,
                   stride_of_sum(p, shape, index));
}

static void write_sum(const ka_pairs *p, ka_kernel *kernel, const ka_pair_shape *shape,
                      size_t index, size_t *returned, gradient_text *t)
{
  kj_arena *arena = &p->call->arena;
  const ka_pair_value *v = &p->values[index];
  bool is_value = p->gradient->by[index] == KJIT_PAIRS_VALUE;
  const char *type = ka_use_type(kernel, v->value), *element = element_of_sum(p, shape, index),
             *numbers = is_value ? t->numbers
                                 : kj_format(arena, "%s, %u", t->numbers, p->gradient->by[index]);
  bool is_shared = shape->is_shared && v->width;
  t->numbers = numbers;
  t->names = kj_format(arena, "%s, sums_%zu", t->names, index);
  t->locals =
    kj_format(arena, "%s  %s sums_%zu: %s[%s]%s\n", t->locals, is_shared ? "shared" : "local",
              index, type, extents_of_sum(p, shape, index), is_shared ? " @align(16)" : "");
  t->begin = kj_format(arena, "%s%s", t->begin,
                       for_elements(p, v->width, kj_format(arena, "%s = 0", element)));
  if (v->width)
    t->shadows = kj_format(arena, "%s, %s", t->shadows, write_row(p, shape, type, index, t));
  else if (is_value) t->add = kj_format(arena, "%s  %s += %s\n", t->add, element, value_of_all(p));
  else t->add = kj_format(arena, "%s  %s += all[%zu]\n", t->add, element, ++*returned);
  const char *place = v->width ? kj_format(arena, "i * dtype(i)(%u) + dtype(i)(q)", v->width) : "i";
  t->store =
    kj_format(arena, "%s%s", t->store,
              for_elements(p, v->width,
                           kj_format(arena, "store_%zu(part, %s, %s)", index, place, element)));
}

ka_sums_text ka_write_gradient(const ka_pairs *p, ka_kernel *kernel, const ka_rows_text *rows,
                               const char *more, const ka_pair_shape *shape,
                               const char *const *stores)
{
  kj_arena *arena = &p->call->arena;
  const ka_rows *listed[KA_MOST_ROWS], *weighed = p->gradient->is_exchanged ? p->y : p->x;
  size_t row_count = ka_list_pair_rows(p, listed), returned = 0;
  const char *callee = write_weighed(p, kernel, row_count), *parameters = "", *bound = "",
             *result = "", *cotangent = ka_pair_row(p, shape, &weighed[1]);
  gradient_text t = { "", "", "", "", "", "", "", "" };
  for (size_t i = 0; i < p->value_count; i++) {
    write_sum(p, kernel, shape, i, &returned, &t);
    parameters = kj_format(arena, "%s, store_%zu: func", parameters, i);
    bound = kj_format(arena, "%s, %s", bound, stores[i]);
  }
  if (p->gradient->weight != KA_WEIGHT_ONE)
    result = kj_format(arena, ", %s", ka_pair_row(p, shape, &weighed[2]));
  const char *wide = widen_arguments(p, row_count + 2, &t),
             *all =
               kj_format(arena, "%s%s%s%s", rows->names, more, *rows->row ? ", row" : "", t.names),
             *given = kj_format(arena, "%s%s%s%s", rows->names, more, rows->row, t.names);
  kj_append_format(kernel->funcs,
                   "func pair_add(l, j, i, at%s) @inline {\n%s%s"
                   "  let all = vjp(%s%s)(%s%s%s, dtype(%s(%s%s%s))(%s)%s)\n%s}\n"
                   "func pair_begin(l, j, i, at%s) @inline {\n%s  pair_add(l, j, i, at%s)\n}\n"
                   "func pair_store(part, i, l%s%s) @inline {\n%s}\n",
                   all, copy_columns(p, kernel), t.before, callee, t.numbers, rows->arguments, wide,
                   result, callee, rows->arguments, wide, result, cotangent, t.shadows, t.add, all,
                   t.begin, all, t.names, parameters, t.store);
  return (ka_sums_text){ .locals = t.locals,
                         .begin = kj_format(arena, "bind_back(pair_begin%s)", given),
                         .add = kj_format(arena, "bind_back(pair_add%s)", given),
                         .store = kj_format(arena, "bind_back(pair_store%s%s)", t.names, bound) };
}

/* ---- the call ---- */

/* A pass of a call, which computes derivatives either with respect to x and the func's additional
 * arguments, or with respect to y. */
typedef struct gradient_pass {
  ka_pair_gradient gradient;
  ka_pairing given;
  uint32_t by[KA_MOST_PAIR_RESULTS];
  /* for each result of the pass, its index among the results of the call */
  size_t places[KA_MOST_PAIR_RESULTS];
  kjit_operand results[KA_MOST_PAIR_RESULTS], weighed[3];
} gradient_pass;

typedef struct gradient_call {
  const kjit_operand *gradients, *cotangents, *result, *function, *x, *y;
  const kjit_operator *operator_;
  const uint32_t *by;
  size_t count, y_count;
  ka_pair_weight weight;
  gradient_pass passes[2];
} gradient_call;

static bool read_weight(const kjit_operator *operator_, ka_pair_weight *weight)
{
  static const struct {
    const char *name;
    ka_pair_weight weight;
  } known[] = { { "add", KA_WEIGHT_ONE },
                { "logaddexp", KA_WEIGHT_EXP },
                { "max", KA_WEIGHT_PLACE },
                { "min", KA_WEIGHT_PLACE } };
  for (size_t i = 0; operator_ && operator_->name && i < sizeof known / sizeof *known; i++)
    if (!strcmp(operator_->name, known[i].name)) {
      *weight = known[i].weight;
      return true;
    }
  return false;
}

static bool is_by_y(const gradient_call *g, uint32_t parameter)
{
  return parameter >= 1 && parameter <= g->y_count;
}

/* Checks that KJIT_PAIRS_VALUE is used only with the operator add, and together with a derivative
 * with respect to x or to an additional argument. */
static void check_value(ka_call *call, const gradient_call *g)
{
  bool has_pass = false;
  if (g->by[g->count - 1] != KJIT_PAIRS_VALUE) return;
  for (size_t i = 0; i + 1 < g->count; i++) has_pass |= !is_by_y(g, g->by[i]);
  if (g->weight != KA_WEIGHT_ONE)
    ka_fail(call, KJIT_ERROR_TYPE, "KJIT_PAIRS_VALUE is supported only for the operator `add`");
  if (!has_pass)
    ka_fail(call, KJIT_ERROR_ARGUMENT,
            "KJIT_PAIRS_VALUE needs a derivative with respect to x or to an argument; for the "
            "value alone call kjit_pairs");
}

static void check_call(ka_call *call, gradient_call *g)
{
  const kjit_operator *o = g->operator_;
  if (!o || !(o->name || o->function)) ka_fail(call, KJIT_ERROR_MISUSE, "operator is NULL");
  if (!read_weight(o, &g->weight))
    ka_fail(call, KJIT_ERROR_TYPE,
            "reductions over pairs by %s have no derivative; only reductions by `add`, "
            "`logaddexp`, `max` and `min` do",
            o->name ? kj_format(&call->arena, "`%s`", o->name) : "an operator of the caller");
  if (g->weight != KA_WEIGHT_ONE && !g->result) ka_fail(call, KJIT_ERROR_MISUSE, "result is NULL");
  if (!g->cotangents) ka_fail(call, KJIT_ERROR_MISUSE, "cotangents is NULL");
  if (!g->x) ka_fail(call, KJIT_ERROR_MISUSE, "x is NULL");
  if (!g->y) ka_fail(call, KJIT_ERROR_MISUSE, "y is NULL");
  if (!g->by || (!g->gradients && !call->options.results))
    ka_fail(call, KJIT_ERROR_MISUSE, "%s is NULL", g->by ? "gradients" : "by");
  if (!g->y_count || g->y_count > KA_MOST_PAIRED)
    ka_fail(call, KJIT_ERROR_ARGUMENT, "got %zu operands with rows of y; expected 1 to %d",
            g->y_count, KA_MOST_PAIRED);
  if (!g->count || g->count > KA_MOST_PAIR_RESULTS)
    ka_fail(call, KJIT_ERROR_ARGUMENT, "got %zu derivatives; expected 1 to %d", g->count,
            KA_MOST_PAIR_RESULTS);
  for (size_t i = 1; i < g->count; i++)
    if (g->by[i] <= g->by[i - 1])
      ka_fail(call, KJIT_ERROR_ARGUMENT, "by: the parameter numbers must be in ascending order");
  check_value(call, g);
}

/* Fills in a pass. Returns false if the call needs no derivative of this pass. */
static bool make_pass(const gradient_call *g, bool is_exchanged, gradient_pass *pass)
{
  size_t count = 0, weights = g->weight == KA_WEIGHT_ONE ? 2 : 3;
  for (size_t i = 0; i < g->count; i++) {
    if (is_by_y(g, g->by[i]) != is_exchanged) continue;
    pass->by[count] = g->by[i];
    pass->places[count] = i;
    if (g->gradients) pass->results[count] = g->gradients[i];
    count++;
  }
  pass->weighed[0] = *g->x;
  pass->weighed[1] = *g->cotangents;
  if (weights == 3) pass->weighed[2] = *g->result;
  pass->gradient = (ka_pair_gradient){
    .by = pass->by, .weight = g->weight, .is_exchanged = is_exchanged, .paired = g->y_count
  };
  pass->given = (ka_pairing){ .results = g->gradients ? pass->results : NULL,
                              .result_count = count,
                              .function = g->function,
                              .x = is_exchanged ? g->y : pass->weighed,
                              .x_count = is_exchanged ? g->y_count : weights,
                              .y = is_exchanged ? pass->weighed : g->y,
                              .y_count = is_exchanged ? weights : g->y_count,
                              .gradient = &pass->gradient };
  return count != 0;
}

static void describe_pass(ka_call *call, const ka_pairs *p, const gradient_pass *pass)
{
  for (size_t i = 0; i < p->value_count; i++) {
    const ka_pair_value *v = &p->values[i];
    const int64_t shape[] = { (int64_t)p->m, v->width };
    (void)ka_describe(call, pass->places[i], v->element, v->width ? 2 : 1, shape);
  }
}

static void check_passes(ka_call *call, ka_pairs *const *passes)
{
  for (size_t i = 0; passes[0] && passes[1] && i < passes[0]->value_count; i++)
    for (size_t j = 0; j < passes[1]->value_count; j++)
      ka_check_overlap(call, &passes[0]->values[i].result, &passes[1]->values[j].result, false);
}

static void build_gradient(ka_call *call, const void *data)
{
  gradient_call *g = *(gradient_call *const *)data;
  ka_pairs *passes[2] = { NULL, NULL };
  check_call(call, g);
  for (int i = 0; i < 2; i++)
    if (make_pass(g, i == 1, &g->passes[i])) passes[i] = ka_read_pairs(call, &g->passes[i].given);
  for (int i = 0; i < 2; i++)
    if (passes[i] && call->options.results) describe_pass(call, passes[i], &g->passes[i]);
  if (call->options.results) return;
  check_passes(call, passes);
  for (int i = 0; i < 2; i++)
    if (passes[i]) ka_add_pairs(passes[i]);
}

static void check_streamed(ka_call *call, const void *data)
{
  check_call(call, *(gradient_call *const *)data);
}

kjit_status kjit_pairs_gradient(kjit_context *context, const kjit_operand *gradients,
                                const uint32_t *by, size_t count, const kjit_operand *cotangents,
                                const kjit_operand *result, const kjit_operand *function,
                                const kjit_operand *x, const kjit_operand *y, size_t y_count,
                                const kjit_operator *operator_,
                                const kjit_algorithm_options *options)
{
  const char *name = "kjit_pairs_gradient";
  kjit_algorithm_options own;
  gradient_call g = { .gradients = gradients,
                      .cotangents = cotangents,
                      .result = result,
                      .function = function,
                      .x = x,
                      .y = y,
                      .operator_ = operator_,
                      .by = by,
                      .count = count,
                      .y_count = y_count },
                *given = &g;
  const uint32_t takes = KA_CHUNK | KA_DEVICES;
  KJ_TRY(kj_check_call(context, name, NULL));
  KJ_TRY(ki_read_sized(context, name, KI_ALGORITHM_OPTIONS, options, &own));
  if (!(own.chunk || own.device_count) || own.results)
    return ka_perform(context, name, takes, options, build_gradient, &given);
  KJ_TRY(ka_perform(context, name, takes, options, check_streamed, &given));
  for (int i = 0; i < 2; i++)
    if (make_pass(&g, i == 1, &g.passes[i]))
      KJ_TRY(ka_stream_pairs(context, name, &g.passes[i].given, options));
  return KJIT_OK;
}
