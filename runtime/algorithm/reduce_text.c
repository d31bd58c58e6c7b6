/* Writes the funcs that are passed to the reduction kernels in reduce.kir, reduce_rows.kir and
 * reduce_columns.kir. If one pass computes several results, a struct combines their values. For a
 * minimum and a count of nonzero elements, the source is:
 *
 *     struct several_values { p0: f32; p1: i64 }
 *     func prepare_0(x, i) @inline { return x }
 *     func prepare_1(x, i) @inline { return i64(x != zero(dtype(x))) }
 *     func prepared(i0, load: func) @inline {
 *       let x = load(i0)
 *       return several_values(prepare_0(f32(x), i0), prepare_1(x, i0))
 *     }
 *     func combined(x, y) @inline {
 *       return several_values(operator_min(x.p0, y.p0), operator_add(x.p1, y.p1))
 *     }
 *     func finish_0(v, count) @inline { return v }
 *     func finished(i, v, store_0: func, store_1: func, count) @inline {
 *       store_0(i, finish_0(v.p0, count))
 *       ...
 *     } */
#include <string.h>

#include "algorithm/reduce.h"
#include "ir/context.h"

/* ---- reductions of no elements ---- */

/* Returns the expression of the result for 0 elements: the initial value, or the identity
 * element. */
static const char *value_of_nothing(const ka_reduce *r, ka_kernel *kernel, const ka_reduced *result)
{
  ka_call *call = kernel->call;
  if (result->reduction) return ka_reduction_empty(call, result->reduction, "x");
  if (call->options.initial) return ka_use_value(kernel, call->options.initial);
  if (!result->operator_.has_identity && r->is_several)
    ka_fail(call, KJIT_ERROR_ARGUMENT,
            "`x` is empty, and the operator of `%s` has no identity element", result->operand.name);
  if (!result->operator_.has_identity)
    ka_fail(call, KJIT_ERROR_ARGUMENT,
            "`x` is empty and the operator has no identity element; set " KJ_OPTION("initial"));
  return ka_use_identity(kernel, &result->operator_, result->accumulator);
}

void ka_fill_reduced(const ka_reduce *r, ka_reduced *result)
{
  enum { THREADS = 256 };
  ka_kernel kernel;
  uint32_t axes[KJ_MAX_RANK];
  for (uint32_t i = 0; i < KJ_MAX_RANK; i++) axes[i] = i;
  ka_arrange(r->call, &result->operand, axes, 1, &result->operand.rank);
  ka_begin_kernel(r->call, "reduce", &kernel);
  const char *put = ka_use_output(&kernel, &result->operand),
             *value = value_of_nothing(r, &kernel, result),
             *count = ka_use_count(&kernel, result->operand.count);
  ka_launch(&kernel, ka_is_cpu(r->call) ? 1 : THREADS, 1, "reduce_fill(%s, %s, %s)", put, value,
            count);
}

/* Returns whether a result is a sum to which the kernel adds 0. The kernel combines the elements
 * without an identity element, so a sum whose elements are all -0.0 would be -0.0. NumPy's sums
 * start with 0.0.
 */
static bool starts_with_zero(const ka_call *call, const ka_reduced *result)
{
  const char *name = result->operator_.name;
  return name && !strcmp(name, "add") && !ka_is_integer(call, result->accumulator);
}

/* ---- several results ---- */

enum { MOST_BYTES = 128 };

static uint32_t alignment_of(const ka_reduce *r, const ka_reduced *result)
{
  const ki_types *types = r->call->context->types;
  uint32_t value = ki_alignment(types, result->value), index = r->call->is_wide ? 8 : 4;
  if (result->accumulator != KJIT_ANY) return ki_alignment(types, result->accumulator);
  return value > index ? value : index;
}

uint32_t ka_several_bytes(const ka_reduce *r)
{
  uint32_t bytes = 0, most = 1;
  for (size_t i = 0; i < r->count; i++) {
    const ka_reduced *result = &r->results[i];
    uint32_t alignment = alignment_of(r, result);
    bytes = (bytes + alignment - 1) / alignment * alignment + result->bytes;
    if (alignment > most) most = alignment;
    if (bytes > MOST_BYTES)
      ka_fail(r->call, KJIT_ERROR_UNSUPPORTED,
              "the combined values of these reductions together need more than %d bytes",
              MOST_BYTES);
  }
  return (bytes + most - 1) / most * most;
}

/* Returns the name of each result's operator in the source. */
static const char **use_operators(const ka_reduce *r, ka_kernel *kernel)
{
  const char **operators = KJ_NEW_ARRAY(&r->call->arena, const char *, r->count);
  for (size_t i = 0; i < r->count; i++) {
    const ka_reduced *result = &r->results[i];
    operators[i] = result->reduction
                     ? ka_reduction_operator(result->reduction)
                     : ka_use_operator(kernel, &result->operator_, result->accumulator);
  }
  return operators;
}

/* Declares the struct of the combined value and returns each field's type. */
static const char **declare_struct(const ka_reduce *r, ka_kernel *kernel)
{
  kj_arena *arena = &r->call->arena;
  const char **types = KJ_NEW_ARRAY(arena, const char *, r->count), *fields = "";
  for (size_t i = 0; i < r->count; i++) {
    const ka_reduced *result = &r->results[i];
    types[i] = result->reduction ? ka_declare_reduced(kernel, result->reduction, result->value,
                                                      kj_format(arena, "several_part_%zu", i))
                                 : ka_use_type(kernel, result->accumulator);
    fields = kj_format(arena, "%s%s p%zu: %s", fields, i ? ";" : "", i, types[i]);
  }
  kj_append_format(kernel->funcs, "struct several_values {%s }\n", fields);
  return types;
}

static const char *prepare_several(const ka_reduce *r, ka_kernel *kernel, uint32_t index_count)
{
  kj_arena *arena = &r->call->arena;
  const char *load = ka_use_input(kernel, &r->x, KJIT_ANY), *values = "",
             *list = ka_list_indices(r->call, index_count),
             *position = index_count == 1 ? "i0" : "i1";
  for (size_t i = 0; i < r->count; i++) {
    const ka_reduced *result = &r->results[i];
    const char *name = kj_format(arena, "several_part_%zu", i),
               *element = result->reduction
                            ? ka_reduced_element(r->call, result->reduction, name, "i")
                            : "x",
               *type = result->value == r->x.element ? "" : ka_type_text(r->call, result->value);
    kj_append_format(kernel->funcs, "func prepare_%zu(x, i) @inline { return %s }\n", i, element);
    values =
      kj_format(arena, "%s%sprepare_%zu(%s(x), %s)", values, i ? ", " : "", i, type, position);
  }
  kj_append_format(kernel->funcs,
                   "func prepared(%s, load: func) @inline {\n  let x = load(%s)\n"
                   "  return several_values(%s)\n}\n",
                   list, list, values);
  return kj_format(arena, "bind_back(prepared, %s)", load);
}

static const char *combine_several(const ka_reduce *r, ka_kernel *kernel, const char **operators)
{
  const char *values = "";
  for (size_t i = 0; i < r->count; i++)
    values = kj_format(&r->call->arena, "%s%s%s(x.p%zu, y.p%zu)", values, i ? ", " : "",
                       operators[i], i, i);
  kj_append_format(kernel->funcs, "func combined(x, y) @inline { return several_values(%s) }\n",
                   values);
  return "combined";
}

static const char *finish_several(const ka_reduce *r, ka_kernel *kernel, uint64_t n)
{
  kj_arena *arena = &r->call->arena;
  kjit_arg count = kjit_arg_f64((double)n);
  const char *given = ka_use_value(kernel, &count), *parameters = "", *stores = "", *puts = "";
  for (size_t i = 0; i < r->count; i++) {
    const ka_reduced *result = &r->results[i];
    const char *value = starts_with_zero(r->call, result) ? "zero(dtype(v)) + v" : "v",
               *type = "f64";
    if (result->reduction) {
      value = ka_reduced_result(result->reduction);
      type = ka_reduced_count(r->call, result->reduction, result->value);
    }
    kj_append_format(kernel->funcs,
                     "func finish_%zu(v, count) @inline {\n  let n = %s(count)\n  return %s\n}\n",
                     i, type, value);
    parameters = kj_format(arena, "%sstore_%zu: func, ", parameters, i);
    stores = kj_format(arena, "%s  store_%zu(i, finish_%zu(v.p%zu, count))\n", stores, i, i, i);
    puts = kj_format(arena, "%s%s, ", puts, ka_use_output(kernel, &result->operand));
  }
  kj_append_format(kernel->funcs, "func finished(i, v, %scount) @inline {\n%s}\n", parameters,
                   stores);
  return kj_format(arena, "bind_back(finished, %s%s)", puts, given);
}

/* On the CPU, writes a separate loop over a block of elements, or over some rows, for each result.
 * The compiler would not vectorize a single loop for all results, because the combined value of
 * this loop is a struct. The elements stay in the cache between the loops. */
static void write_block(const ka_reduce *r, ka_kernel *kernel, const char **operators)
{
  const char *values = "";
  for (size_t i = 0; i < r->count; i++) {
    kj_append_format(kernel->funcs,
                     "func field_%zu(i, load: func) @inline { return load(i).p%zu }\n", i, i);
    values =
      kj_format(&r->call->arena, "%s%sreduce_piece(bind_back(field_%zu, load), %s, from, to, %s)",
                values, i ? ", " : "", i, operators[i], r->results[i].commutes ? "true" : "false");
  }
  kj_append_format(
    kernel->funcs,
    "func block(load: func, from, to, const COMMUTES) @inline { return several_values(%s) }\n"
    "func piece(load: func, op: func, from, to, const COMMUTES) @inline {\n"
    "  return reduce_piece_blocks(load, op, from, to, COMMUTES, block)\n}\n",
    values);
}

static void write_lines(const ka_reduce *r, ka_kernel *kernel, const char **operators,
                        const char **types)
{
  kj_arena *arena = &r->call->arena;
  const char *begins = "", *loops = "", *values = "";
  for (size_t i = 0; i < r->count; i++) {
    /* a result whose combined value is a struct has a separate loop, which starts at the first
     * row */
    bool has_own_loop = r->results[i].accumulator == KJIT_ANY;
    kj_append_format(kernel->funcs,
                     "func field_%zu(j, k, load: func) @inline { return load(j, k).p%zu }\n", i, i);
    begins = kj_format(arena, "%s  local sum_%zu: %s[len(sum)]\n", begins, i, types[i]);
    if (has_own_loop) {
      begins = kj_format(arena, "%s  local own_%zu: %s[len(sum)]\n", begins, i, types[i]);
      loops = kj_format(arena,
                        "%s    reduce_lines_piece(bind_back(field_%zu, load), %s, own_%zu, first, "
                        "end, width)\n"
                        "    for k in range(width) {\n"
                        "      if first == from { sum_%zu[k] = own_%zu[k] }\n"
                        "      else { sum_%zu[k] = %s(sum_%zu[k], own_%zu[k]) }\n    }\n",
                        loops, i, operators[i], i, i, i, i, operators[i], i, i);
    } else {
      begins = kj_format(arena, "%s  for k in range(width) { sum_%zu[k] = load(from, k).p%zu }\n",
                         begins, i, i);
      loops = kj_format(arena,
                        "%s    reduce_lines_more(bind_back(field_%zu, load), %s, sum_%zu, "
                        "max(first, from + 1), end, width)\n",
                        loops, i, operators[i], i);
    }
    values = kj_format(arena, "%s%ssum_%zu[k]", values, i ? ", " : "", i);
  }
  kj_append_format(kernel->funcs,
                   "func lines(load: func, op: func, sum, from, to, width) @inline {\n"
                   "%s  for first in range(from, to, 16) {\n    let end = min(first + 16, to)\n"
                   "%s  }\n  for k in range(width) { sum[k] = several_values(%s) }\n}\n",
                   begins, loops, values);
}

static const char *begin_several(const ka_reduce *r, uint32_t index_count, uint64_t n,
                                 ka_reduce_texts *t)
{
  const char **types = declare_struct(r, &t->kernel), **operators = use_operators(r, &t->kernel);
  const char *load = prepare_several(r, &t->kernel, index_count),
             *put = finish_several(r, &t->kernel, n),
             *op = combine_several(r, &t->kernel, operators);
  if (ka_is_cpu(r->call) && index_count < 3) {
    write_block(r, &t->kernel, operators);
    t->piece = "piece";
  } else if (ka_is_cpu(r->call)) {
    write_lines(r, &t->kernel, operators, types);
    t->lines = "lines";
  }
  return kj_format(&r->call->arena, "%s, %s, %s", load, put, op);
}

/* ---- one result ---- */

/* Returns the value that the kernel combines with a result before it stores the result, or NULL if
 * there is no such value.
 */
static const char *use_first_value(const ka_reduce *r, ka_kernel *kernel)
{
  const ka_reduced *result = &r->results[0];
  const kjit_arg *initial = r->call->options.initial;
  if (initial) return ka_use_value(kernel, initial);
  if (result->reduction || !starts_with_zero(r->call, result)) return NULL;
  return ka_use_identity(kernel, &result->operator_, result->accumulator);
}

static const char *begin_one(const ka_reduce *r, uint32_t index_count, uint64_t n,
                             ka_reduce_texts *t)
{
  const ka_reduced *result = &r->results[0];
  const char *load = ka_use_input(&t->kernel, &r->x, result->value),
             *put = ka_use_output(&t->kernel, &result->operand),
             *first = use_first_value(r, &t->kernel), *op;
  if (result->reduction) {
    load = ka_prepare_elements(&t->kernel, result->reduction, result->value, load, index_count);
    put = ka_finish_values(&t->kernel, result->reduction, result->value, put, n);
    op = ka_reduction_operator(result->reduction);
  } else {
    op = ka_use_operator(&t->kernel, &result->operator_, result->accumulator);
  }
  if (first)
    put = kj_format(&r->call->arena, "bind_back(reduce_after, %s, %s, %s)", put, op, first);
  return kj_format(&r->call->arena, "%s, %s, %s", load, put, op);
}

/* Returns the expression by which the kernel views the partial results. */
static const char *view_partials(const ka_reduce *r, ka_kernel *kernel, const char *words,
                                 uint64_t count)
{
  const ka_reduced *result = &r->results[0];
  if (r->is_several) {
    const char *extent = ka_use_count(kernel, count);
    return kj_format(&r->call->arena,
                     "view(several_values[%s], bitcast(several_values*, pointer(%s[0])))", extent,
                     words);
  }
  if (result->reduction)
    return ka_view_words(kernel, result->reduction, result->value, words, count);
  return words;
}

void ka_begin_reduce(const ka_reduce *r, const char *module, uint32_t index_count, uint64_t n,
                     uint64_t partials, uint64_t counters, ka_reduce_texts *t)
{
  ka_call *call = r->call;
  bool is_struct = r->is_several || r->results[0].accumulator == KJIT_ANY;
  uint32_t partial = is_struct
                       ? ka_add_work(call, KJIT_U64, ka_count_words(r->bytes, partials), false)
                       : ka_add_work(call, r->results[0].accumulator, partials, false),
           done = ka_add_work(call, KJIT_U32, counters, true);
  t->piece = "reduce_piece";
  t->lines = "reduce_lines_piece";
  ka_begin_kernel(call, module, &t->kernel);
  t->operands =
    r->is_several ? begin_several(r, index_count, n, t) : begin_one(r, index_count, n, t);
  const char *left = view_partials(r, &t->kernel, ka_use_work(&t->kernel, partial), partials),
             *counts = ka_use_work(&t->kernel, done);
  t->works = kj_format(&call->arena, "%s, %s, %s", left, counts, r->commutes ? "true" : "false");
}
