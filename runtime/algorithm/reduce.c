/* kjit_reduce: one kernel, lib/library/reduce.kir; its last block combines what the others found.
 */
#include "algorithm/algorithm.h"

typedef struct reduction {
  const kjit_operand *result, *x;
  const kjit_operator *operator_;
} reduction;

/* ---- the shape of a launch ---- */

enum {
  GPU_THREADS = 256,
  GPU_ACCESS_BYTES = 16,
  GPU_BLOCKS = 8,   /* of a multiprocessor */
  CPU_PIECES = 4,   /* of a core */
  CPU_LEAST = 16384 /* elements of a piece */
};

typedef struct tiling {
  uint32_t threads, items, neighbours;
  uint64_t blocks;
} tiling;

static tiling choose_tiling(const ka_call *call, kjit_type accumulator, uint64_t count)
{
  uint32_t bytes = kj_element_bytes(call->context->types, accumulator);
  tiling t = { .threads = 1, .items = 1, .neighbours = 1 };
  uint64_t most, tile;
  if (ka_is_cpu(call)) {
    most = (uint64_t)CPU_PIECES * ka_core_count(call);
    tile = CPU_LEAST;
  } else {
    t.threads = GPU_THREADS;
    t.neighbours = bytes >= GPU_ACCESS_BYTES ? 1 : GPU_ACCESS_BYTES / bytes;
    t.items = 4 * t.neighbours;
    most = (uint64_t)GPU_BLOCKS * ka_core_count(call);
    tile = (uint64_t)t.threads * t.items;
  }
  t.blocks = (count + tile - 1) / tile;
  if (t.blocks > most) t.blocks = most;
  if (!t.blocks) t.blocks = 1;
  return t;
}

/* ---- over all elements ---- */

/* The result is made of the initial value or of the identity alone. */
static void fill_result(ka_call *call, const ka_operator *operator_, kjit_type accumulator,
                        const ka_operand *result)
{
  ka_kernel kernel;
  if (!call->options.initial && !operator_->has_identity)
    ka_fail(call, KJIT_ERROR_ARGUMENT,
            "`x` has no elements, and the operator has no identity: options.initial gives a value");
  ka_begin_kernel(call, "reduce", &kernel);
  const char *put = ka_use_output(&kernel, result), *value;
  if (call->options.initial) value = ka_use_value(&kernel, call->options.initial);
  else
    value = kj_format(&call->arena, "identity_%s(zero(%s))", operator_->name,
                      ka_type_text(call, accumulator));
  const char *count = ka_use_count(&kernel, result->count);
  ka_launch(&kernel, ka_is_cpu(call) ? 1 : GPU_THREADS, 1, "reduce_fill(%s, %s, %s)", put, value,
            count);
}

static void reduce_all(ka_call *call, const ka_operator *operator_, kjit_type accumulator,
                       const ka_operand *result, const ka_operand *x)
{
  ka_kernel kernel;
  tiling t = choose_tiling(call, accumulator, x->count);
  uint32_t partial = ka_add_work(call, accumulator, t.blocks, false),
           done = ka_add_work(call, KJIT_U32, 1, true);
  ka_begin_kernel(call, "reduce", &kernel);
  const char *load = ka_use_input(&kernel, x, accumulator), *put = ka_use_output(&kernel, result),
             *op = ka_use_operator(&kernel, operator_, accumulator),
             *count = ka_use_count(&kernel, x->count), *partials = ka_use_work(&kernel, partial),
             *counter = ka_use_work(&kernel, done);
  if (call->options.initial) {
    const char *initial = ka_use_value(&kernel, call->options.initial);
    put = kj_format(&call->arena, "bind_back(reduce_after, %s, %s, %s)", put, op, initial);
  }
  const char *items = ka_use_constant(&kernel, t.items),
             *neighbours = ka_use_constant(&kernel, t.neighbours);
  ka_launch(&kernel, t.threads, t.blocks, "reduce_all(%s, %s, %s, %s, %s, %s, %s, THREADS, %s, %s)",
            load, put, op, count, partials, counter, operator_->commutes ? "true" : "false", items,
            neighbours);
}

/* ---- the call ---- */

static void check_result(ka_call *call, const ka_operand *result, const ka_operand *x,
                         uint32_t reduced)
{
  uint32_t kept = 0, given = 0, shape[KJ_MAX_RANK];
  bool keeps_axes = result->rank == x->rank;
  (void)shape;
  for (uint32_t i = 0; i < x->rank; i++) {
    bool is_reduced = reduced >> i & 1;
    if (is_reduced && !keeps_axes) continue;
    int64_t wanted = is_reduced ? 1 : x->shape[i];
    kept++;
    if (given < result->rank && result->shape[given] == wanted) given++;
  }
  bool is_one = kept == 0 && result->count == 1;
  if (!is_one && (given != kept || result->rank != kept))
    ka_fail(call, KJIT_ERROR_ARGUMENT,
            "`result` has to have the shape of `x` without the reduced axes, or with extent 1 "
            "there");
}

/* As NumPy: an array of halfs has a sum that is a half. */
static bool describe_result(ka_call *call, const ka_operator *operator_, const ka_operand *x,
                            uint32_t reduced)
{
  int64_t shape[KJ_MAX_RANK];
  uint32_t rank = 0;
  if (!call->options.results) return false;
  kjit_type element = ka_accumulator(call, operator_, x->element, x->element);
  bool is_half = x->element == KJIT_F16 || x->element == KJIT_BF16;
  if (is_half && call->options.accumulator == KJIT_ANY) element = x->element;
  for (uint32_t i = 0; i < x->rank; i++)
    if (!(reduced >> i & 1)) shape[rank++] = x->shape[i];
  return ka_describe(call, 0, element, rank, shape);
}

static void build_reduction(ka_call *call, const void *data)
{
  const reduction *given = data;
  ka_operand result, x;
  ka_operator operator_;
  uint32_t axes[KJ_MAX_RANK];
  ka_read_operator(call, given->operator_, &operator_);
  ka_read_input(call, "x", given->x, &x);
  uint32_t reduced = ka_read_axes(call, x.rank);
  if (describe_result(call, &operator_, &x, reduced)) return;
  ka_read_output(call, "result", given->result, &result);
  ka_check_overlap(call, &result, &x, false);
  check_result(call, &result, &x, reduced);
  if (reduced != (1u << x.rank) - 1)
    ka_fail(call, KJIT_ERROR_UNSUPPORTED, "along some of the axes only");
  kjit_type accumulator =
    ka_accumulator(call, &operator_, x.element, result.function ? x.element : result.element);
  for (uint32_t i = 0; i < KJ_MAX_RANK; i++) axes[i] = i;
  ka_arrange(call, &x, axes, 1, &x.rank);
  ka_arrange(call, &result, axes, 1, &result.rank);
  ka_choose_device(call);
  if (x.count) reduce_all(call, &operator_, accumulator, &result, &x);
  else fill_result(call, &operator_, accumulator, &result);
}

kjit_status kjit_reduce(kjit_context *context, const kjit_operand *result, const kjit_operand *x,
                        const kjit_operator *operator_, const kjit_algorithm_options *options)
{
  const reduction given = { result, x, operator_ };
  return ka_perform(context, "kjit_reduce", options, build_reduction, &given);
}
