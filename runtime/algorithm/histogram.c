/* Implements kjit_bincount (elements are bin numbers), kjit_histogram (bins of equal width) and
 * kjit_histogram_edges (bins between given edges). Their kernels are in histogram.kir of
 * lib/library. */
#include <math.h>
#include <string.h>

#include "algorithm/algorithm.h"
#include "ir/context.h"

typedef enum histogram_kind { OF_INDICES, OF_WIDTH, OF_EDGES } histogram_kind;

typedef struct histogram {
  const kjit_operand *result, *x, *edges, *weights;
  int64_t bins;
  double low, high;
  histogram_kind kind;
} histogram;

/* ---- the shape of a launch ---- */

enum {
  GPU_THREADS = 256,
  GPU_BLOCKS = 3, /* blocks for each multiprocessor */
  GPU_ITEMS = 16,
  GPU_ACCESS_BYTES = 16,
  MOST_LANES = 512,        /* maximum number of bins for which each lane has its own byte
                            * counters */
  LANES_BYTES = 64 << 10,  /* shared memory of a block for the counters of MOST_LANES */
  SMALL_BYTES = 256,       /* shared memory of a block for other arrays */
  SHARED_BYTES = 96 << 10, /* maximum shared memory of a block */
  SHARED_ITEMS = 4,
  CPU_LEAST = 16384, /* minimum number of elements in a chunk */
  CPU_TABLES = 4,
  CPU_FEW = 4096 /* number of bins up to which a block counts in several tables */
};

typedef struct counting {
  ka_call *call;
  histogram_kind kind;
  ka_operand result, x, edges, weights;
  bool has_weights;
  uint32_t bins;
  double low, high;
  kjit_type type; /* type of the counts */
} counting;

static uint32_t power_of_two(uint32_t least, uint32_t x)
{
  while (least < x) least *= 2;
  return least;
}

static uint64_t block_count(const counting *c, uint64_t tile, uint64_t most)
{
  uint64_t blocks = ka_divide_up(c->x.count, tile);
  return blocks < most ? (blocks ? blocks : 1) : most;
}

/* ---- source fragments ---- */

typedef struct texts {
  ka_kernel kernel;
  const char *load, *bin, *guess, *amount, *bins, *count;
} texts;

/* Returns a distance in bins: if a value is closer than this to an edge, rounding errors of the
 * value, the edges and the quotient can give a wrong bin. */
static double doubt_of(const counting *c)
{
  double unit = 0x1p-52, magnitude = fmax(fabs(c->low), fabs(c->high));
  if (c->x.element == KJIT_F32) unit = 0x1p-23;
  if (c->x.element == KJIT_F16) unit = 0x1p-10;
  if (c->x.element == KJIT_BF16) unit = 0x1p-7;
  return 8 * unit * c->bins * (1 + magnitude / (c->high - c->low));
}

static void use_bins(counting *c, texts *t)
{
  kj_arena *arena = &c->call->arena;
  kjit_arg bins = kjit_arg_i32((int32_t)c->bins);
  t->bins = ka_use_value(&t->kernel, &bins);
  t->guess = NULL;
  if (c->kind == OF_INDICES) {
    t->bin = kj_format(arena, "bind_back(histogram_index, %s)", t->bins);
  } else if (c->kind == OF_EDGES) {
    const char *edge = ka_use_input(&t->kernel, &c->edges, KJIT_ANY);
    t->bin = kj_format(arena, "bind_back(histogram_between, %s, %s)", edge, t->bins);
  } else {
    const kjit_arg numbers[] = { kjit_arg_f64(c->low), kjit_arg_f64(c->high),
                                 kjit_arg_f64((c->high - c->low) / c->bins),
                                 kjit_arg_f64(c->bins / (c->high - c->low)),
                                 kjit_arg_f64(doubt_of(c)) };
    const char *list = t->bins;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
      list = kj_format(arena, "%s, %s", list, ka_use_value(&t->kernel, &numbers[i]));
    t->bin = kj_format(arena, "bind_back(histogram_even, %s)", list);
    t->guess = kj_format(arena, "bind_back(histogram_even_guess, %s)", list);
  }
}

static void begin(counting *c, texts *t)
{
  ka_begin_kernel(c->call, "histogram", &t->kernel);
  t->load = ka_use_input(&t->kernel, &c->x, KJIT_ANY);
  use_bins(c, t);
  t->amount = c->has_weights ? ka_use_input(&t->kernel, &c->weights, c->type) : "histogram_one";
  t->count = ka_use_count(&t->kernel, c->x.count);
}

static const char *strictness(const counting *c)
{
  return c->kind == OF_INDICES ? "true" : "false";
}

/* ---- counting methods ---- */

static void count_by_lanes(counting *c)
{
  texts t;
  uint32_t capacity = power_of_two(4, c->bins), threads = GPU_THREADS;
  uint32_t bytes = kj_element_bytes(c->call->context->types, c->x.element);
  uint32_t neighbours = bytes >= GPU_ACCESS_BYTES ? 1 : GPU_ACCESS_BYTES / bytes;
  while (threads * capacity > LANES_BYTES) threads /= 2;
  /* shared memory also contains the table of totals and small arrays */
  while ((uint64_t)threads * capacity + capacity * sizeof(uint32_t) + SMALL_BYTES >
         c->call->device->info.max_shared_bytes)
    threads /= 2;
  uint64_t blocks =
    block_count(c, (uint64_t)threads * GPU_ITEMS, (uint64_t)GPU_BLOCKS * ka_core_count(c->call));
  begin(c, &t);
  const char *store = ka_use_output(&t.kernel, &c->result),
             *counts = ka_use_work(&t.kernel, ka_add_work(c->call, c->type, c->bins, true)),
             *done = ka_use_work(&t.kernel, ka_add_work(c->call, KJIT_U32, 1, true)),
             *table = ka_use_constant(&t.kernel, capacity);
  ka_launch(&t.kernel, threads, blocks,
            "histogram_lanes(%s, %s, %s, %s, %s, %s, %s, %s, THREADS, %d, %u, %s, %s, %s)", t.load,
            t.bin, t.guess ? t.guess : t.bin, store, t.count, t.bins, counts, done, GPU_ITEMS,
            neighbours, table, t.guess ? "true" : "false", strictness(c));
}

static void count_in_shared(counting *c, uint32_t capacity)
{
  texts t;
  uint64_t blocks = block_count(c, (uint64_t)GPU_THREADS * SHARED_ITEMS,
                                (uint64_t)GPU_BLOCKS * ka_core_count(c->call));
  begin(c, &t);
  const char *store = ka_use_output(&t.kernel, &c->result),
             *counts = ka_use_work(&t.kernel, ka_add_work(c->call, c->type, c->bins, true)),
             *done = ka_use_work(&t.kernel, ka_add_work(c->call, KJIT_U32, 1, true)),
             *table = ka_use_constant(&t.kernel, capacity);
  ka_launch(&t.kernel, GPU_THREADS, blocks,
            "histogram_shared(%s, %s, %s, %s, %s, %s, %s, %s, THREADS, %d, %s, %s)", t.load, t.bin,
            t.amount, store, t.count, t.bins, counts, done, SHARED_ITEMS, table, strictness(c));
}

static void count_in_global(counting *c)
{
  texts t;
  ka_kernel take;
  uint32_t work = ka_add_work(c->call, c->type, c->bins, true);
  begin(c, &t);
  const char *counts = ka_use_work(&t.kernel, work);
  ka_launch(&t.kernel, 0, 0, "histogram_global(%s, %s, %s, %s, %s, %s)", t.load, t.bin, t.amount,
            t.count, counts, strictness(c));
  ka_begin_kernel(c->call, "histogram", &take);
  const char *store = ka_use_output(&take, &c->result), *bins = ka_use_count(&take, c->bins);
  counts = ka_use_work(&take, work);
  ka_launch(&take, 0, 0, "histogram_take(%s, %s, %s)", store, bins, counts);
}

/* Adds the launch that counts in tables. Each table has an additional entry for elements outside
 * all bins. */
static void count_on_cpu(counting *c)
{
  texts t;
  ka_kernel sum;
  uint32_t tables = c->bins <= CPU_FEW ? CPU_TABLES : 1;
  uint64_t width = (uint64_t)c->bins + 1, least = width * tables * 2;
  uint64_t pieces = block_count(c, least > CPU_LEAST ? least : CPU_LEAST, ka_core_count(c->call));
  uint32_t work = ka_add_work(c->call, c->type, pieces * tables * width, false);
  begin(c, &t);
  const char *memory = ka_use_work(&t.kernel, work), *columns = ka_use_count(&t.kernel, width),
             *each = ka_use_constant(&t.kernel, tables),
             *rows = ka_use_count(&t.kernel, pieces * tables);
  ka_launch(&t.kernel, 1, pieces,
            "histogram_piece(%s, %s, %s, %s, %s, %s, reshape(%s, %s, %s), %s, %s)", t.load, t.bin,
            t.guess ? t.guess : t.bin, t.amount, t.count, t.bins, memory, rows, columns, each,
            strictness(c));
  ka_begin_kernel(c->call, "histogram", &sum);
  const char *store = ka_use_output(&sum, &c->result), *bins = ka_use_count(&sum, c->bins);
  memory = ka_use_work(&sum, work);
  rows = ka_use_count(&sum, pieces * tables);
  columns = ka_use_count(&sum, width);
  ka_launch(&sum, 0, 0, "histogram_sum(%s, %s, reshape(%s, %s, %s))", store, bins, memory, rows,
            columns);
}

static void count(counting *c)
{
  uint32_t capacity = power_of_two(32, c->bins);
  uint32_t bytes = kj_element_bytes(c->call->context->types, c->type);
  if (ka_is_cpu(c->call)) count_on_cpu(c);
  else if (!c->has_weights && c->bins <= MOST_LANES) count_by_lanes(c);
  else if ((uint64_t)capacity * bytes <= SHARED_BYTES) count_in_shared(c, capacity);
  else count_in_global(c);
}

/* ---- the call ---- */

static void check_x(counting *c)
{
  ka_call *call = c->call;
  kjit_type type = c->x.element;
  bool is_integer = ka_is_integer(call, type);
  if (c->kind == OF_INDICES ? !is_integer : !(is_integer || ki_is_floating(type)))
    ka_fail(call, KJIT_ERROR_TYPE, "`x` has elements of type %s; expected %s",
            ka_type_text(call, type), c->kind == OF_INDICES ? "integers" : "real numbers");
}

static void read_weights(counting *c, const kjit_operand *given)
{
  ka_call *call = c->call;
  c->type = c->x.count <= UINT32_MAX ? KJIT_U32 : KJIT_U64;
  c->has_weights = given != NULL;
  if (!given) return;
  ka_read_input(call, "weights", given, &c->weights);
  bool is_same = c->weights.rank == c->x.rank;
  for (uint32_t i = 0; is_same && i < c->x.rank; i++)
    is_same = c->weights.shape[i] == c->x.shape[i];
  if (!is_same) ka_fail(call, KJIT_ERROR_ARGUMENT, "`weights` must have the shape of `x`");
  kjit_type type = c->weights.element;
  if (ki_is_floating(type)) c->type = KJIT_F64;
  else if (ka_is_integer(call, type))
    c->type =
      ki_type(call->context->types, type)->class_ == KJ_CLASS_UNSIGNED ? KJIT_U64 : KJIT_I64;
  else
    ka_fail(call, KJIT_ERROR_TYPE, "`weights` has elements of type %s; expected real numbers",
            ka_type_text(call, type));
}

static void read_bins(counting *c, const histogram *given)
{
  ka_call *call = c->call;
  int64_t bins = given->bins;
  if (c->kind == OF_EDGES) {
    ka_read_input(call, "edges", given->edges, &c->edges);
    if (c->edges.rank != 1)
      ka_fail(call, KJIT_ERROR_ARGUMENT, "`edges` has %u axes; it must have one", c->edges.rank);
    if (!ka_is_integer(call, c->edges.element) && !ki_is_floating(c->edges.element))
      ka_fail(call, KJIT_ERROR_TYPE, "`edges` has elements of type %s; expected real numbers",
              ka_type_text(call, c->edges.element));
    bins = (int64_t)c->edges.count - 1;
  }
  if (bins < 1 || bins > INT32_MAX - 1)
    ka_fail(call, KJIT_ERROR_ARGUMENT,
            "%lld bins: the number of bins must be at least 1 and less than 2^31", (long long)bins);
  c->bins = (uint32_t)bins;
  if (c->kind != OF_WIDTH) return;
  c->low = given->low;
  c->high = given->high;
  if (!isfinite(c->low) || !isfinite(c->high) || c->low > c->high)
    ka_fail(call, KJIT_ERROR_ARGUMENT,
            "the range of the bins, %g to %g, must be two finite numbers in ascending order",
            c->low, c->high);
  if (c->low == c->high) { /* like NumPy */
    c->low -= 0.5;
    c->high += 0.5;
  }
}

static void check_result(counting *c)
{
  ka_call *call = c->call;
  if (c->result.rank != 1 || c->result.count != c->bins)
    ka_fail(call, KJIT_ERROR_ARGUMENT,
            "`result` must have one axis with an element for each of the %u bins", c->bins);
  bool is_number = ka_is_integer(call, c->result.element) || ki_is_floating(c->result.element);
  bool takes = c->result.function || (is_number && c->result.element != KJIT_BOOL &&
                                      (c->type != KJIT_F64 || ki_is_floating(c->result.element)));
  if (!takes)
    ka_fail(call, KJIT_ERROR_TYPE,
            "`result` has elements of type %s, but the new values have the type %s",
            ka_type_text(call, c->result.element),
            c->type == KJIT_F64 ? "a sum of weights, f64" : "an integer");
}

static void build_histogram(ka_call *call, const void *data)
{
  const histogram *given = data;
  counting c = { .call = call, .kind = given->kind };
  uint32_t axes[KJ_MAX_RANK];
  ka_read_input(call, "x", given->x, &c.x);
  check_x(&c);
  read_bins(&c, given);
  read_weights(&c, given->weights);
  int64_t extent = c.bins;
  if (ka_describe(call, 0, c.has_weights ? c.type : KJIT_I64, 1, &extent)) return;
  ka_read_output(call, "result", given->result, &c.result);
  check_result(&c);
  ka_check_overlap(call, &c.result, &c.x, false);
  if (c.has_weights) ka_check_overlap(call, &c.result, &c.weights, false);
  if (c.kind == OF_EDGES) ka_check_overlap(call, &c.result, &c.edges, false);
  for (uint32_t i = 0; i < KJ_MAX_RANK; i++) axes[i] = i;
  ka_arrange(call, &c.x, axes, 1, &c.x.rank);
  ka_arrange(call, &c.result, axes, 1, &c.result.rank);
  if (c.has_weights) ka_arrange(call, &c.weights, axes, 1, &c.weights.rank);
  if (c.kind == OF_EDGES) ka_arrange(call, &c.edges, axes, 1, &c.edges.rank);
  ka_choose_device(call);
  count(&c);
}

static uint64_t bits_of(double number)
{
  uint64_t bits;
  memcpy(&bits, &number, sizeof bits);
  return bits;
}

static kjit_status perform(kjit_context *context, const char *name, const histogram *given,
                           const kjit_algorithm_options *options)
{
  const ka_inputs inputs = { { given->result, given->x, given->edges, given->weights },
                             .numbers = { (uint64_t)given->bins, bits_of(given->low),
                                          bits_of(given->high) } };
  return ka_perform_kept(context, name, 0, options, build_histogram, given, &inputs);
}

kjit_status kjit_bincount(kjit_context *context, const kjit_operand *result, const kjit_operand *x,
                          int64_t bins, const kjit_operand *weights,
                          const kjit_algorithm_options *options)
{
  const histogram given = {
    .result = result, .x = x, .bins = bins, .weights = weights, .kind = OF_INDICES
  };
  return perform(context, "kjit_bincount", &given, options);
}

kjit_status kjit_histogram(kjit_context *context, const kjit_operand *result, const kjit_operand *x,
                           int64_t bins, double low, double high, const kjit_operand *weights,
                           const kjit_algorithm_options *options)
{
  const histogram given = { .result = result,
                            .x = x,
                            .bins = bins,
                            .low = low,
                            .high = high,
                            .weights = weights,
                            .kind = OF_WIDTH };
  return perform(context, "kjit_histogram", &given, options);
}

kjit_status kjit_histogram_edges(kjit_context *context, const kjit_operand *result,
                                 const kjit_operand *x, const kjit_operand *edges,
                                 const kjit_operand *weights, const kjit_algorithm_options *options)
{
  const histogram given = {
    .result = result, .x = x, .edges = edges, .weights = weights, .kind = OF_EDGES
  };
  return perform(context, "kjit_histogram_edges", &given, options);
}
