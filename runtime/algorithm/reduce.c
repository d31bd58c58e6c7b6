/* Implements kjit_reduce and kjit_reduce_several with one kernel launch. The kernel is in
 * reduce.kir of lib/library if all elements are reduced, and in reduce_rows.kir or
 * reduce_columns.kir if only some axes are. If several blocks share a result, the last one to
 * finish combines the partial results. */
#include "algorithm/reduce.h"

#include <stdlib.h>

typedef struct reduction {
  const kjit_operand *results, *x;
  const kjit_operator *operators;
  size_t count;
  bool is_several;
} reduction;

/* ---- the shape of a launch ---- */

/* Values measured on an H200, and on CPU cores with shared memory. */
enum {
  GPU_ALL_THREADS = 256,  /* number of threads in a block that reduces all elements */
  GPU_THREADS = 512,      /* number of threads in a block that reduces a long row */
  GPU_BLOCKS = 4,         /* number of blocks for each multiprocessor, with GPU_ALL_THREADS or
                           * GPU_THREADS */
  GPU_ACCESS_BYTES = 16,  /* maximum bytes of adjacent elements that a thread loads at once */
  GPU_VALUE_BYTES = 64,   /* maximum bytes of values that a thread loads before it combines them */
  GPU_SUM_BYTES = 128,    /* kjit_reduce_several: maximum size of a thread's combined values; a
                             thread has a combined value for each element that it loads at once */
  GPU_FEW = 1 << 22,      /* if there are fewer elements than this, each thread loads half as many
                             elements, so that there are more blocks */
  GPU_ROW_THREADS = 256,  /* threads in a block that reduces several rows, or columns */
  GPU_LANE_BYTES = 32,    /* size of the part of a short row that a lane loads; longer rows are
                           * shared by more lanes */
  GPU_LONG_ROW = 8192,    /* rows of at least this length are reduced by a block instead of a
                           * warp */
  GPU_COLUMN_BLOCKS = 8,  /* blocks for each multiprocessor */
  GPU_COLUMN_LOADS = 8,   /* rows that a thread loads at once */
  CPU_PIECES = 4,         /* number of chunks for each core */
  CPU_LEAST = 16384,      /* minimum number of elements in a chunk */
  CPU_COLUMN_BYTES = 8192 /* bytes of the combined values of adjacent columns */
};

static uint32_t power_below(uint64_t n)
{
  uint32_t power = 1;
  while (2ull * power <= n) power *= 2;
  return power;
}
static uint32_t power_above(uint64_t n) { return n > 1 ? 2 * power_below(n - 1) : 1; }

/* Stores the array strides for the kernel's axes. */
static void read_strides(const ka_operand *x, int64_t *strides)
{
  const kjit_arg *argument = &x->arrays[0];
  const kjit_tensor *tensor = argument->kind == KJIT_ARG_ARRAY
                                ? kjit_get_tensor(argument->value.array)
                                : argument->value.tensor;
  if (!tensor->strides) kj_fill_strides(strides, x->extents, x->axis_count);
  else
    for (uint32_t i = 0; i < x->axis_count; i++) strides[i] = tensor->strides[i];
}

/* Returns how many adjacent elements along the last group of axes a thread loads at once. In an
 * array these elements must be contiguous, and aligned in every row, so that a single access loads
 * them. If the operand is a func, adjacent elements are assumed to be adjacent in memory. */
static uint32_t count_neighbours(const ka_reduce *p, uint64_t extent)
{
  const ka_operand *x = &p->x;
  int64_t strides[KJ_MAX_RANK];
  uint32_t bytes = kj_element_bytes(p->call->context->types, x->element);
  uint32_t most = (p->is_several ? GPU_SUM_BYTES : GPU_VALUE_BYTES) / p->bytes;
  uint32_t count = power_below(ka_most(ka_least(GPU_ACCESS_BYTES / bytes, most), 1));
  if (ka_is_cpu(p->call)) return 1;
  if (x->function) return extent % count ? 1 : count;
  uint32_t last = x->axis_count - 1;
  read_strides(x, strides);
  if (x->group_ranks[x->group_count - 1] != 1 || strides[last] != 1) return 1;
  while (count > 1) {
    bool is_aligned = x->view.address % (count * bytes) == 0 && extent % count == 0;
    for (uint32_t i = 0; i < last; i++) is_aligned = is_aligned && strides[i] % count == 0;
    if (is_aligned) break;
    count /= 2;
  }
  return count;
}

static uint32_t count_items(const ka_reduce *p, uint32_t neighbours)
{
  uint32_t items = power_below(ka_most(GPU_VALUE_BYTES / p->loaded, 1));
  return (uint32_t)ka_most(ka_least(items, 4 * neighbours), neighbours);
}

/* ---- kernels ---- */

static void reduce_all(const ka_reduce *p)
{
  ka_call *call = p->call;
  uint64_t count = p->x.count, cores = ka_core_count(call), blocks;
  uint32_t threads = 1, neighbours = count_neighbours(p, 1ull << 32), items = 1;
  ka_reduce_texts t;
  if (ka_is_cpu(call)) {
    blocks = ka_least(ka_divide_up(count, CPU_LEAST), CPU_PIECES * cores);
  } else {
    threads = GPU_ALL_THREADS;
    items = count_items(p, neighbours);
    if (count < GPU_FEW) items = (uint32_t)ka_most(items / 2, neighbours);
    blocks = ka_least(ka_divide_up(count, (uint64_t)threads * items), GPU_BLOCKS * cores);
  }
  ka_begin_reduce(p, "reduce", 1, count, blocks, 1, &t);
  const char *n = ka_use_count(&t.kernel, count), *each = ka_use_constant(&t.kernel, items),
             *lanes = ka_use_constant(&t.kernel, neighbours);
  if (ka_is_cpu(call))
    ka_launch(&t.kernel, threads, blocks, "reduce_all_pieces(%s, %s, %s, %s)", t.operands, n,
              t.works, t.piece);
  else
    ka_launch(&t.kernel, threads, blocks, "reduce_all(%s, %s, %s, THREADS, %s, %s)", t.operands, n,
              t.works, each, lanes);
}

/* Returns the number of blocks on the CPU that share a result, if there are `units` results that
 * combine n elements each. */
static uint64_t share_among_cores(const ka_call *call, uint64_t units, uint64_t n)
{
  uint64_t wanted = CPU_PIECES * (uint64_t)ka_core_count(call);
  if (units >= wanted) return 1;
  return ka_most(ka_least(ka_divide_up(wanted, units), n / CPU_LEAST), 1);
}

typedef struct row_shape {
  uint32_t threads, lanes, at_a_time, items, neighbours;
  uint64_t parts, blocks;
} row_shape;

static row_shape choose_rows(const ka_reduce *p, uint64_t rows, uint64_t n)
{
  uint64_t cores = ka_core_count(p->call);
  row_shape s = { 1, 1, 0, 1, 1, 1, 1 };
  if (ka_is_cpu(p->call)) {
    s.parts = share_among_cores(p->call, rows, n);
    uint64_t pieces =
      ka_least(ka_least(rows, ka_divide_up(rows * n, CPU_LEAST)), 4 * CPU_PIECES * cores);
    s.blocks = s.parts > 1 ? rows * s.parts : pieces;
    return s;
  }
  s.neighbours = count_neighbours(p, n);
  s.items = count_items(p, s.neighbours);
  s.threads = GPU_ROW_THREADS;
  bool fills_gpu = rows * KJ_WARP_THREADS >= cores * 2 * GPU_ROW_THREADS;
  uint64_t groups = ka_divide_up(n, s.neighbours), most_groups = 2 * s.items / s.neighbours,
           of_lane = ka_most(GPU_LANE_BYTES / p->loaded / s.neighbours, 1);
  if (groups <= KJ_WARP_THREADS * most_groups) { /* each block reduces several rows */
    s.lanes = (uint32_t)ka_least(power_above(ka_divide_up(groups, of_lane)), KJ_WARP_THREADS);
    s.items = s.neighbours * power_above(ka_divide_up(groups, s.lanes));
    uint32_t bytes = (s.neighbours > 1 ? 1 : 2) * GPU_VALUE_BYTES;
    s.at_a_time = (uint32_t)ka_most(ka_least(bytes / (s.items * p->loaded), 4), 1);
    /* smaller blocks reduce the imbalance at the end of the launch */
    if (s.lanes == KJ_WARP_THREADS) s.threads /= 2;
    s.blocks = ka_divide_up(rows, (uint64_t)(s.threads / s.lanes) * s.at_a_time);
  } else if (n < GPU_LONG_ROW && fills_gpu) {
    s.lanes = KJ_WARP_THREADS;
    s.items = 2 * s.items;
    s.blocks = ka_divide_up(rows * s.lanes, s.threads);
  } else {
    s.threads = n < GPU_LONG_ROW ? GPU_ROW_THREADS : GPU_THREADS;
    s.lanes = s.threads;
    uint64_t tiles = ka_divide_up(n, (uint64_t)s.threads * s.items);
    s.parts = ka_most(ka_least(GPU_BLOCKS * cores / rows, tiles), 1);
    s.blocks = rows * s.parts;
  }
  return s;
}

static void reduce_rows(const ka_reduce *p, uint64_t rows, uint64_t n)
{
  row_shape s = choose_rows(p, rows, n);
  ka_reduce_texts t;
  ka_begin_reduce(p, "reduce_rows", 2, n, s.parts > 1 ? s.blocks : 1, s.parts > 1 ? rows : 1, &t);
  const char *row_count = ka_use_count(&t.kernel, rows), *count = ka_use_count(&t.kernel, n),
             *share = ka_use_count(&t.kernel, s.parts);
  if (ka_is_cpu(p->call)) {
    ka_launch(&t.kernel, s.threads, s.blocks, "reduce_rows_pieces(%s, %s, %s, %s, %s, %s)",
              t.operands, row_count, count, share, t.works, t.piece);
    return;
  }
  const uint32_t given[] = { s.lanes, s.at_a_time, s.items, s.neighbours };
  const char *names[4];
  for (int i = 0; i < 4; i++) names[i] = ka_use_constant(&t.kernel, given[i]);
  ka_launch(&t.kernel, s.threads, s.blocks,
            "reduce_rows(%s, %s, %s, %s, %s, THREADS, %s, %s, %s, %s)", t.operands, row_count,
            count, share, t.works, names[0], names[1], names[2], names[3]);
}

static void reduce_columns(const ka_reduce *p, uint64_t outer, uint64_t n, uint64_t inner)
{
  ka_call *call = p->call;
  uint64_t share, blocks, cores = ka_core_count(call);
  uint32_t threads = 1, lines = 1, group, loads = 1, neighbours = count_neighbours(p, inner);
  uint64_t units;
  if (ka_is_cpu(call)) {
    group =
      (uint32_t)ka_least(power_above(inner), power_below(ka_most(CPU_COLUMN_BYTES / p->bytes, 1)));
    units = outer * ka_divide_up(inner, group);
    share = share_among_cores(call, units, n * group);
    share = ka_least(share, n);
    blocks = share > 1 ? units * share : ka_least(units, 4 * CPU_PIECES * cores);
  } else {
    threads = GPU_ROW_THREADS;
    group = (uint32_t)ka_least(power_above(inner / neighbours), KJ_WARP_THREADS);
    lines = threads / group;
    loads = power_below(
      ka_most(ka_least(GPU_COLUMN_LOADS, 2 * GPU_VALUE_BYTES / (p->loaded * neighbours)), 1));
    units = outer * ka_divide_up(inner, group * neighbours);
    share =
      ka_most(ka_least(GPU_COLUMN_BLOCKS * cores / units, ka_divide_up(n, (uint64_t)lines * loads)),
              1);
    blocks = units * share;
  }
  ka_reduce_texts t;
  ka_begin_reduce(p, "reduce_columns", 3, n, share > 1 ? outer * inner * share : 1,
                  share > 1 ? units : 1, &t);
  const uint64_t sizes[] = { outer, n, inner, share };
  const uint32_t given[] = { group, loads, neighbours };
  const char *s[4], *c[3];
  for (int i = 0; i < 4; i++) s[i] = ka_use_count(&t.kernel, sizes[i]);
  for (int i = 0; i < 3; i++) c[i] = ka_use_constant(&t.kernel, given[i]);
  if (ka_is_cpu(call))
    ka_launch(&t.kernel, threads, blocks, "reduce_columns_pieces(%s, %s, %s, %s, %s, %s, %s, %s)",
              t.operands, s[0], s[1], s[2], s[3], t.works, c[0], t.lines);
  else
    ka_launch(&t.kernel, threads, blocks,
              "reduce_columns(%s, %s, %s, %s, %s, %s, THREADS, %s, %s, %s)", t.operands, s[0], s[1],
              s[2], s[3], t.works, c[0], c[1], c[2]);
}

/* ---- axes ---- */

/* The axes of x in the order of the kernel: first the kept axes with larger strides than the
 * reduced axes, then the reduced axes, and last the kept axes with smaller strides. */
typedef struct order {
  uint32_t axes[KJ_MAX_RANK], outer, reduced, inner;
} order;

static uint64_t step_of(const ka_operand *x, uint32_t axis)
{
  /* the elements of a func along the last axis are assumed to be adjacent */
  if (x->function) return x->rank - axis;
  return x->shape[axis] > 1 ? (uint64_t)llabs(x->view.strides[axis]) : UINT64_MAX;
}

static void sort_axes(const ka_operand *x, uint32_t *axes, uint32_t count)
{
  for (uint32_t i = 1; i < count; i++)
    for (uint32_t j = i; j > 0 && step_of(x, axes[j - 1]) < step_of(x, axes[j]); j--) {
      uint32_t swapped = axes[j];
      axes[j] = axes[j - 1];
      axes[j - 1] = swapped;
    }
}

/* Orders the axes by stride. The reduced axes are reordered only if the operator commutes; the kept
 * axes always. */
static order order_axes(const ka_operand *x, uint32_t reduced, bool commutes)
{
  uint32_t kept[KJ_MAX_RANK], count = 0;
  uint64_t closest = UINT64_MAX;
  order found = { .reduced = 0 };
  uint32_t inside[KJ_MAX_RANK];
  for (uint32_t axis = 0; axis < x->rank; axis++) {
    if (!(reduced >> axis & 1)) kept[count++] = axis;
    else {
      inside[found.reduced++] = axis;
      closest = ka_least(closest, step_of(x, axis));
    }
  }
  sort_axes(x, kept, count);
  if (commutes) sort_axes(x, inside, found.reduced);
  while (found.outer < count && step_of(x, kept[found.outer]) >= closest) found.outer++;
  found.inner = count - found.outer;
  for (uint32_t i = 0; i < x->rank; i++)
    found.axes[i] = i < found.outer                   ? kept[i]
                    : i < found.outer + found.reduced ? inside[i - found.outer]
                                                      : kept[i - found.reduced];
  return found;
}

static uint64_t extent_of(const ka_operand *x, const uint32_t *axes, uint32_t count)
{
  uint64_t extent = 1;
  for (uint32_t i = 0; i < count; i++) extent *= (uint64_t)x->shape[axes[i]];
  return extent;
}

/* Arranges the result's axes in the order of x's axes, as one group. Reduced axes, which have
 * extent 1 in the result, come last. */
static void arrange_result(ka_call *call, ka_operand *result, const ka_operand *x,
                           const order *found, uint32_t reduced)
{
  uint32_t axes[KJ_MAX_RANK], count = 0;
  bool keeps_axes = result->rank == x->rank;
  for (uint32_t i = 0; i < x->rank; i++) {
    uint32_t axis = found->axes[i];
    if (reduced >> axis & 1) continue;
    if (!keeps_axes) axis -= (uint32_t)__builtin_popcount(reduced & ((1u << axis) - 1));
    axes[count++] = axis;
  }
  for (uint32_t i = 0; i < x->rank && keeps_axes; i++)
    if (reduced >> i & 1) axes[count++] = i;
  /* a result with one element can have any rank */
  for (uint32_t i = 0; count < result->rank; i++) axes[count++] = i;
  ka_arrange(call, result, axes, 1, &result->rank);
}

static void reduce_axes(ka_reduce *p, uint32_t reduced)
{
  order found = order_axes(&p->x, reduced, !p->keeps_order);
  const uint32_t *axes = found.axes;
  uint64_t outer = extent_of(&p->x, axes, found.outer),
           n = extent_of(&p->x, axes + found.outer, found.reduced),
           inner = extent_of(&p->x, axes + found.outer + found.reduced, found.inner);
  for (size_t i = 0; i < p->count; i++)
    arrange_result(p->call, &p->results[i].operand, &p->x, &found, reduced);
  if (outer == 1 && inner == 1) {
    ka_arrange(p->call, &p->x, axes, 1, &p->x.rank);
    reduce_all(p);
  } else if (inner == 1) { /* the remaining kept axes have extent 1 */
    uint32_t ranks[] = { found.outer, found.reduced + found.inner };
    ka_arrange(p->call, &p->x, axes, 2, ranks);
    reduce_rows(p, outer, n);
  } else {
    uint32_t ranks[] = { found.outer, found.reduced, found.inner };
    ka_arrange(p->call, &p->x, axes, 3, ranks);
    reduce_columns(p, outer, n, inner);
  }
}

/* ---- the call ---- */

static void check_result(ka_call *call, const ka_operand *result, const ka_operand *x,
                         uint32_t reduced)
{
  uint32_t kept = 0, given = 0;
  bool keeps_axes = result->rank == x->rank;
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
            "`%s` must have the shape of `x` without the reduced axes, or with extent 1 there",
            result->name);
}

/* Returns the default element type of a result. As in NumPy, the sum of half-precision elements is
 * half-precision. */
static kjit_type result_type(const ka_reduce *p, const ka_reduced *result)
{
  kjit_type element = p->x.element;
  if (result->reduction)
    return ka_reduction_result(p->call, result->reduction, element, result->value);
  bool is_half = element == KJIT_F16 || element == KJIT_BF16;
  return is_half && p->call->options.accumulator == KJIT_ANY ? element : result->accumulator;
}

static void describe_results(const ka_reduce *p, uint32_t reduced)
{
  int64_t shape[KJ_MAX_RANK];
  uint32_t rank = 0;
  for (uint32_t i = 0; i < p->x.rank; i++)
    if (!(reduced >> i & 1)) shape[rank++] = p->x.shape[i];
  for (size_t i = 0; i < p->count; i++)
    (void)ka_describe(p->call, i, result_type(p, &p->results[i]), rank, shape);
}

/* Chooses a result's types. type is the element type of the result array, or KJIT_ANY if the call
 * has no result array. */
static void choose_types(const ka_reduce *p, ka_reduced *result, kjit_type type)
{
  ka_call *call = p->call;
  if (result->reduction) {
    result->value = ka_reduction_value(call, result->reduction, p->x.element);
    result->accumulator = ka_reduction_computed(result->reduction, result->value);
    result->bytes = ka_reduction_bytes(call, result->reduction, result->value);
    result->commutes = true;
    return;
  }
  result->value = result->accumulator =
    ka_accumulator(call, &result->operator_, p->x.element, type);
  result->bytes = kj_element_bytes(call->context->types, result->accumulator);
  result->commutes = result->operator_.commutes;
}

/* Checks that the result array can hold the result. If the reduction returns an index, the array's
 * type must be able to represent the number of elements that are reduced to one result. */
static void check_type(const ka_reduce *p, const ka_reduced *result, uint32_t reduced)
{
  uint64_t count = 1;
  for (uint32_t i = 0; i < p->x.rank; i++)
    if (reduced >> i & 1) count *= (uint64_t)p->x.shape[i];
  ka_check_stored(p->call, &result->operand, result_type(p, result));
  if (result->reduction && ka_finds_place(result->reduction))
    ka_check_positions(p->call, &result->operand, count);
}

static void choose_all_types(ka_reduce *p, uint32_t reduced)
{
  p->commutes = true;
  for (size_t i = 0; i < p->count; i++) {
    ka_reduced *result = &p->results[i];
    bool has_array = !p->call->options.results && !result->operand.function;
    choose_types(p, result, has_array ? result->operand.element : KJIT_ANY);
    if (has_array) check_type(p, result, reduced);
    p->commutes = p->commutes && result->commutes;
    p->keeps_order = p->keeps_order || !result->commutes || result->accumulator == KJIT_ANY;
  }
  p->bytes = p->is_several ? ka_several_bytes(p) : p->results[0].bytes;
  p->loaded =
    p->is_several ? kj_element_bytes(p->call->context->types, p->x.element) : p->results[0].bytes;
}

static void read_operators(ka_reduce *p, const reduction *given)
{
  ka_call *call = p->call;
  if (!given->count) ka_fail(call, KJIT_ERROR_ARGUMENT, "the number of operators is 0");
  if (!given->operators && given->is_several) ka_fail(call, KJIT_ERROR_MISUSE, "operators is NULL");
  p->count = given->count;
  p->results = KJ_NEW_ARRAY(&call->arena, ka_reduced, p->count);
  for (size_t i = 0; i < p->count; i++) {
    const kjit_operator *operator_ = given->operators ? &given->operators[i] : NULL;
    p->results[i].reduction = ka_read_reduction(call, operator_, &p->results[i].operator_);
  }
}

static void read_results(ka_reduce *p, const reduction *given, uint32_t reduced)
{
  ka_call *call = p->call;
  if (!given->results && given->is_several) ka_fail(call, KJIT_ERROR_MISUSE, "results is NULL");
  for (size_t i = 0; i < p->count; i++) {
    ka_operand *result = &p->results[i].operand;
    const char *name = given->is_several ? kj_format(&call->arena, "r%zu", i) : "result";
    ka_read_output(call, name, given->results ? &given->results[i] : NULL, result);
    ka_check_overlap(call, result, &p->x, false);
    for (size_t j = 0; j < i; j++) ka_check_overlap(call, result, &p->results[j].operand, false);
    check_result(call, result, &p->x, reduced);
  }
}

static void build_reduction(ka_call *call, const void *data)
{
  const reduction *given = data;
  ka_reduce p = { .call = call, .is_several = given->is_several };
  read_operators(&p, given);
  ka_read_input(call, "x", given->x, &p.x);
  uint32_t reduced = ka_read_axes(call, p.x.rank);
  if (!call->options.results) read_results(&p, given, reduced);
  choose_all_types(&p, reduced);
  if (call->options.results) {
    describe_results(&p, reduced);
    return;
  }
  ka_choose_device(call);
  if (!p.results[0].operand.count) return;
  if (p.x.count) reduce_axes(&p, reduced);
  else
    for (size_t i = 0; i < p.count; i++) ka_fill_reduced(&p, &p.results[i]);
}

kjit_status kjit_reduce(kjit_context *context, const kjit_operand *result, const kjit_operand *x,
                        const kjit_operator *operator_, const kjit_algorithm_options *options)
{
  const reduction given = { result, x, operator_, 1, false };
  const ka_inputs inputs = { { result, x }, .operator_ = operator_ };
  return ka_perform_kept(context, "kjit_reduce", KA_AXES | KA_ACCUMULATOR | KA_INITIAL, options,
                         build_reduction, &given, &inputs);
}

kjit_status kjit_reduce_several(kjit_context *context, const kjit_operand *results,
                                const kjit_operand *x, const kjit_operator *operators, size_t count,
                                const kjit_algorithm_options *options)
{
  const reduction given = { results, x, operators, count, true };
  return ka_perform(context, "kjit_reduce_several", KA_AXES | KA_ACCUMULATOR, options,
                    build_reduction, &given);
}
