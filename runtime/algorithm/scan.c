/* Implements kjit_scan and kjit_scan_with_index, whose kernels are in scan.kir and scan_found.kir
 * of lib/library. If only one axis of x is longer than 1, the kernel is a decoupled look-back scan
 * over tiles. Otherwise, if the scanned elements are adjacent in memory, a warp or a block scans
 * each row. If they are not adjacent, each thread scans a column, and adjacent threads scan
 * adjacent columns. */
#include <stdlib.h>

#include "algorithm/algorithm.h"

/* a call's arguments; only kjit_scan_with_index has result_places */
typedef struct scan {
  const kjit_operand *result, *result_places, *x;
  const kjit_operator *operator_;
} scan;

/* The properties of a call on which all its kernels depend. */
typedef struct parts {
  ka_call *call;
  const ka_operator *operator_;
  kjit_type accumulator;
  uint32_t bytes;               /* size of a scanned value */
  ka_operand *result, *x;       /* result is NULL if the caller does not need it */
  ka_operand *places;           /* the indices of the values, or NULL */
  const ka_carried *carried;    /* the struct of a value and its index for kjit_scan_with_index,
                                 * otherwise NULL */
  const char *carried_operator; /* the operator of such structs */
  bool is_exclusive;
} parts;

/* ---- the shape of a launch ---- */

/* Values measured on an H200, and on CPU cores with shared memory. */
enum {
  GPU_ACCESS_BYTES = 16, /* maximum bytes of adjacent elements that a thread loads at once */
  GPU_VALUE_BYTES = 64,  /* bytes of accumulator values that a thread holds at a time */
  GPU_MANY = 1 << 22,    /* number of elements from which tiles are large */
  GPU_LARGE_TILE = 512,  /* threads in a block with a large tile */
  GPU_CHUNKS = 2,        /* chunks of a large tile; one chunk at a time is in registers */
  GPU_BLOCKS = 3,        /* number of blocks for each multiprocessor if tiles are large and the
                          * operator is a named one */
  /* for values larger than this many bytes, a tile has one more chunk, and a multiprocessor has one
   * fewer block */
  GPU_WORD = 4,
  GPU_SMALL_TILE = 256,
  GPU_WIDE_VALUE = 32, /* value size in bytes above which a block has fewer threads */
  GPU_WIDE_TILE = 128,
  GPU_SHORT_ROW = 4096, /* maximum number of elements in a row that one warp scans */
  GPU_LONG_ROW = 65536, /* if there are few rows, rows of at least this length are divided into
                           tiles that use look-back */
  GPU_ROW_BLOCKS = 32,  /* blocks for each multiprocessor */
  GPU_COLUMN_ROWS = 8,  /* elements in a column that a thread holds at a time */
  CPU_PIECES = 4,       /* number of chunks for each core */
  CPU_LEAST = 16384,    /* minimum number of elements in a chunk */
  STRIP = 32            /* columns in a block, as in scan.kir */
};

typedef struct tiling {
  uint32_t threads, items, neighbours, chunks;
} tiling;

/* Returns whether one access can load `neighbours` adjacent elements, because the rows of x are
 * aligned. */
static bool is_aligned(const ka_operand *x, uint64_t n, uint32_t bytes, uint32_t neighbours)
{
  if (x->function) return true;
  return x->view.address % ((uint64_t)bytes * neighbours) == 0 &&
         (x->group_count == 1 || n % neighbours == 0);
}

static tiling choose_tiling(const parts *p, uint64_t n)
{
  uint32_t bytes = kj_element_bytes(p->call->context->types, p->x->element);
  tiling t = { 1, 1, 1, 1 };
  if (ka_is_cpu(p->call)) return t;
  t.items = (uint32_t)ka_most(ka_least(GPU_VALUE_BYTES / p->bytes, 16), 1);
  while (t.neighbours < t.items && 2 * t.neighbours * bytes <= GPU_ACCESS_BYTES) t.neighbours *= 2;
  while (t.neighbours > 1 && !is_aligned(p->x, n, bytes, t.neighbours)) t.neighbours /= 2;
  while (t.items > t.neighbours && n <= 16 * t.items) t.items /= 2;
  bool is_large = p->x->count >= GPU_MANY;
  t.threads = is_large ? GPU_LARGE_TILE : GPU_SMALL_TILE;
  if (p->bytes > GPU_WIDE_VALUE) t.threads = GPU_WIDE_TILE;
  if (is_large) t.chunks = p->bytes > GPU_WORD ? GPU_CHUNKS + 1 : GPU_CHUNKS;
  /* a tile of several chunks is kept in shared memory */
  if (t.chunks > 1)
    t.threads = ka_fit_threads(p->call, t.threads, (uint64_t)t.items * t.chunks * p->bytes);
  return t;
}

/* ---- kernels ---- */

/* Source fragments that all kernels share: the load func, the store func, the operator, and the
 * value with which an exclusive scan starts. */
typedef struct texts {
  ka_kernel kernel;
  const char *load, *op, *operands;
} texts;

/* Returns the expression of the value that an exclusive scan starts with. */
static const char *use_start(const parts *p, texts *t)
{
  ka_call *call = p->call;
  if (call->options.initial) return ka_use_value(&t->kernel, call->options.initial);
  if (!p->is_exclusive) return "0";
  return ka_use_identity(&t->kernel, p->operator_, p->accumulator);
}

/* Begins a kernel with its load func and its operator. shape: suffix of the names of the funcs in
 * scan_found.kir that the kernel calls. */
static void begin_load(const parts *p, const char *shape, texts *t)
{
  ka_call *call = p->call;
  ka_begin_kernel(call, p->carried ? "scan_found" : "scan", &t->kernel);
  t->load = ka_use_input(&t->kernel, p->x, p->accumulator);
  t->op =
    p->carried ? p->carried_operator : ka_use_operator(&t->kernel, p->operator_, p->accumulator);
  if (!p->carried) return;
  const char *found = ka_use_carried(&t->kernel, p->carried, p->accumulator);
  t->load = kj_format(&call->arena, "bind_back(scan_found%s, %s, %s)", shape, t->load, found);
}

/* Returns the store func of a result. If the result is NULL, the func stores nothing. */
static const char *use_result(const parts *p, const ka_operand *result, const char *shape, texts *t)
{
  return result ? ka_use_output(&t->kernel, result)
                : kj_format(&p->call->arena, "scan_put_nothing%s", shape);
}

static void begin(const parts *p, const char *shape, texts *t)
{
  ka_call *call = p->call;
  begin_load(p, shape, t);
  const char *put = use_result(p, p->result, shape, t), *start = use_start(p, t);
  if (p->carried)
    put = kj_format(&call->arena, "bind_back(scan_put_found%s, %s, %s)", shape, put,
                    use_result(p, p->places, shape, t));
  else if (call->options.initial && !p->is_exclusive)
    put = kj_format(&call->arena, "bind_back(scan_after%s, %s, %s, %s)", shape, put, t->op, start);
  t->operands = kj_format(&call->arena, "%s, %s, %s, %s", t->load, put, t->op, start);
}

static const char *way_of(const parts *p) { return p->is_exclusive ? "true" : "false"; }

/* Adds temporary storage for the totals of the chunks and returns its index. use_total_work returns
 * this storage's name in a kernel's source. */
static uint32_t add_total_work(const parts *p, uint64_t pieces)
{
  return p->carried ? ka_add_carried(p->call, p->carried, pieces)
                    : ka_add_work(p->call, p->accumulator, pieces, false);
}
static const char *use_total_work(const parts *p, ka_kernel *kernel, uint32_t work, uint64_t pieces)
{
  return p->carried ? ka_view_carried(kernel, work, pieces) : ka_use_work(kernel, work);
}

/* Adds the launch that precedes the scan on the CPU and computes each chunk's total. */
static void add_totals(const parts *p, uint32_t work, uint64_t pieces)
{
  texts t;
  begin_load(p, "", &t);
  const char *n = ka_use_count(&t.kernel, p->x->count),
             *totals = use_total_work(p, &t.kernel, work, pieces);
  ka_launch(&t.kernel, 1, pieces, "scan_totals(%s, %s, %s, %s)", t.load, t.op, n, totals);
}

static void scan_all(const parts *p)
{
  ka_call *call = p->call;
  uint64_t n = p->x->count, blocks;
  tiling s = choose_tiling(p, n);
  uint32_t work;
  if (ka_is_cpu(call)) {
    uint64_t cores = ka_core_count(call);
    /* a single core scans the chunks one after another and needs no totals in advance */
    blocks = cores > 1 ? ka_most(ka_least(n / CPU_LEAST, CPU_PIECES * cores), 1) : 1;
    work = add_total_work(p, blocks);
    if (blocks > 1) add_totals(p, work, blocks);
  } else {
    blocks = ka_divide_up(n, (uint64_t)s.threads * s.items * s.chunks);
    work = ka_add_work(call, KJIT_U64, ka_look_back_size(p->bytes, blocks, 1), true);
  }
  texts t;
  begin(p, "", &t);
  if (s.chunks > 1 && (p->carried || p->operator_->name))
    t.kernel.blocks = s.chunks > GPU_CHUNKS ? GPU_BLOCKS - 1 : GPU_BLOCKS;
  const char *count = ka_use_count(&t.kernel, n),
             *name = ka_is_cpu(call) ? use_total_work(p, &t.kernel, work, blocks)
                                     : ka_use_work(&t.kernel, work),
             *items = ka_use_constant(&t.kernel, s.items),
             *neighbours = ka_use_constant(&t.kernel, s.neighbours),
             *chunks = ka_use_constant(&t.kernel, s.chunks);
  ka_launch(&t.kernel, s.threads, blocks, "scan_all(%s, %s, %s, %s, THREADS, %s, %s, %s)",
            t.operands, count, name, way_of(p), items, neighbours, chunks);
}

static void scan_rows(const parts *p, uint64_t rows, uint64_t n)
{
  ka_call *call = p->call;
  uint64_t cores = ka_core_count(call), blocks, work_size = 1;
  tiling s = choose_tiling(p, n);
  const char *way = "SCAN_WARPS";
  if (ka_is_cpu(call)) {
    blocks = ka_most(ka_least(ka_divide_up(rows * n, CPU_LEAST), CPU_PIECES * cores), 1);
  } else if (n <= GPU_SHORT_ROW) {
    s.threads = (uint32_t)ka_least(s.threads, GPU_SMALL_TILE);
    blocks = ka_least(ka_divide_up(rows, s.threads / KJ_WARP_THREADS), GPU_ROW_BLOCKS * cores);
  } else if (n < GPU_LONG_ROW || rows >= 2 * cores) {
    way = "SCAN_BLOCKS";
    blocks = ka_least(rows, GPU_ROW_BLOCKS * cores);
  } else {
    uint64_t tiles = ka_divide_up(n, (uint64_t)s.threads * s.items);
    way = "SCAN_TILES";
    blocks = rows * tiles;
    work_size = ka_look_back_size(p->bytes, tiles, rows);
  }
  uint32_t work = ka_add_work(call, KJIT_U64, work_size, work_size > 1);
  texts t;
  begin(p, "_in_row", &t);
  const char *height = ka_use_count(&t.kernel, rows), *width = ka_use_count(&t.kernel, n),
             *name = ka_use_work(&t.kernel, work), *items = ka_use_constant(&t.kernel, s.items),
             *neighbours = ka_use_constant(&t.kernel, s.neighbours);
  ka_launch(&t.kernel, s.threads, blocks, "scan_rows(%s, %s, %s, %s, %s, %s, THREADS, %s, %s)",
            t.operands, height, width, name, way_of(p), way, items, neighbours);
}

static void scan_columns(const parts *p, uint64_t outer, uint64_t n, uint64_t inner)
{
  ka_call *call = p->call;
  uint64_t strips = outer * ka_divide_up(inner, STRIP), cores = ka_core_count(call),
           blocks = ka_least(strips, (ka_is_cpu(call) ? CPU_PIECES : GPU_ROW_BLOCKS) * cores);
  uint32_t threads = 1,
           items = (uint32_t)ka_most(ka_least(GPU_COLUMN_ROWS, GPU_VALUE_BYTES / p->bytes), 1);
  if (!ka_is_cpu(call)) {
    threads = STRIP;
    while (threads < GPU_SMALL_TILE && (uint64_t)threads / KJ_WARP_THREADS * items < n)
      threads *= 2;
  }
  texts t;
  begin(p, "_in_column", &t);
  const char *o = ka_use_count(&t.kernel, outer), *i = ka_use_count(&t.kernel, n),
             *c = ka_use_count(&t.kernel, inner), *each = ka_use_constant(&t.kernel, items);
  ka_launch(&t.kernel, threads, blocks, "scan_columns(%s, %s, %s, %s, %s, THREADS, %s)", t.operands,
            o, i, c, way_of(p), each);
}

/* ---- axes ---- */

static uint64_t step_of(const ka_operand *x, uint32_t axis)
{
  /* the elements of a func along the last axis are assumed to be adjacent */
  if (x->function) return x->rank - axis;
  return x->shape[axis] > 1 ? (uint64_t)llabs(x->view.strides[axis]) : UINT64_MAX;
}

/* Scans along an axis. The order of the axes in the kernel is: the axes with larger strides than
 * the scanned axis, the scanned axis, the other axes. */
static void scan_along(const parts *p, uint32_t axis)
{
  ka_operand *operands[] = { p->x, p->result, p->places };
  uint32_t axes[KJ_MAX_RANK], ranks[3] = { 0, 1, 0 };
  uint64_t extents[3] = { 1, (uint64_t)p->x->shape[axis], 1 };
  for (int inside = 0; inside < 2; inside++) {
    if (inside) axes[ranks[0]] = axis;
    for (uint32_t i = 0; i < p->x->rank; i++) {
      bool is_inside = step_of(p->x, i) < step_of(p->x, axis);
      if (i == axis || is_inside != (inside != 0)) continue;
      axes[ranks[0] + ranks[2] + (inside ? 1u : 0u)] = i;
      ranks[inside ? 2 : 0]++;
      extents[inside ? 2 : 0] *= (uint64_t)p->x->shape[i];
    }
  }
  bool is_line = extents[0] == 1 && extents[2] == 1;
  if (extents[2] == 1) ranks[1] += ranks[2]; /* these axes have extent 1 */
  uint32_t groups = is_line ? 1 : extents[2] == 1 ? 2 : 3;
  for (int i = 0; i < 3; i++)
    if (operands[i]) ka_arrange(p->call, operands[i], axes, groups, is_line ? &p->x->rank : ranks);
  if (is_line) scan_all(p);
  else if (extents[2] == 1) scan_rows(p, extents[0], extents[1]);
  else scan_columns(p, extents[0], extents[1], extents[2]);
}

static uint32_t read_axis(ka_call *call, const ka_operand *x)
{
  if (!x->rank) ka_fail(call, KJIT_ERROR_ARGUMENT, "`x` has no axis to scan along");
  if (!call->options.axes) return x->rank - 1;
  uint32_t found = ka_read_axes(call, x->rank);
  if (__builtin_popcount(found) != 1)
    ka_fail(call, KJIT_ERROR_ARGUMENT, KJ_OPTION("axes") " names %d axes; a scan takes one",
            __builtin_popcount(found));
  return (uint32_t)__builtin_ctz(found);
}

/* ---- the call ---- */

static bool has_shape_of(const ka_operand *result, const ka_operand *x)
{
  if (result->rank != x->rank) return false;
  for (uint32_t i = 0; i < x->rank; i++)
    if (result->shape[i] != x->shape[i]) return false;
  return true;
}

static void read_result(ka_call *call, const char *name, const kjit_operand *given,
                        const ka_operand *x, ka_operand *result)
{
  ka_read_output(call, name, given, result);
  ka_check_overlap(call, result, x, true);
  if (!has_shape_of(result, x))
    ka_fail(call, KJIT_ERROR_ARGUMENT, "`%s` must have the shape of `x`", name);
}

static void build_scan(ka_call *call, const void *data)
{
  const scan *given = data;
  ka_operand result, x;
  ka_operator operator_;
  bool is_exclusive = call->options.flags & KJIT_ALGORITHM_EXCLUSIVE;
  ka_read_operator(call, given->operator_, &operator_);
  ka_read_input(call, "x", given->x, &x);
  uint32_t axis = read_axis(call, &x);
  if (call->options.results) {
    kjit_type element = ka_accumulator(call, &operator_, x.element, KJIT_ANY);
    bool is_half = x.element == KJIT_F16 || x.element == KJIT_BF16;
    if (is_half && call->options.accumulator == KJIT_ANY) element = x.element;
    (void)ka_describe(call, 0, element, x.rank, x.shape);
    return;
  }
  read_result(call, "result", given->result, &x, &result);
  if (is_exclusive && !call->options.initial && !operator_.has_identity)
    ka_fail(call, KJIT_ERROR_ARGUMENT,
            "an exclusive scan starts with the operator's identity, and this operator has none: "
            "set " KJ_OPTION("initial"));
  kjit_type accumulator =
    ka_accumulator(call, &operator_, x.element, result.function ? KJIT_ANY : result.element);
  ka_check_stored(call, &result, accumulator);
  ka_choose_device(call);
  if (!x.count) return;
  const parts p = { .call = call,
                    .operator_ = &operator_,
                    .accumulator = accumulator,
                    .bytes = kj_element_bytes(call->context->types, accumulator),
                    .result = &result,
                    .x = &x,
                    .is_exclusive = is_exclusive };
  scan_along(&p, axis);
}

kjit_status kjit_scan(kjit_context *context, const kjit_operand *result, const kjit_operand *x,
                      const kjit_operator *operator_, const kjit_algorithm_options *options)
{
  const scan given = { result, NULL, x, operator_ };
  const ka_inputs inputs = { { result, x }, .operator_ = operator_ };
  return ka_perform_kept(context, "kjit_scan", KA_AXES | KA_ACCUMULATOR | KA_INITIAL | KA_EXCLUSIVE,
                         options, build_scan, &given, &inputs);
}

/* ---- the call with indices ---- */

/* Returns the operator of structs for max or min. */
static const char *read_extremum(ka_call *call, const kjit_operator *given, const ka_operand *x)
{
  ka_operator operator_;
  ka_read_operator(call, given, &operator_);
  bool is_max = operator_.name && !strcmp(operator_.name, "max");
  if (!is_max && !(operator_.name && !strcmp(operator_.name, "min")))
    ka_fail(call, KJIT_ERROR_UNSUPPORTED,
            "the operator %s%s%s is not supported here, because it has no index; use max or min",
            operator_.name ? "`" : "that is a function", operator_.name ? operator_.name : "",
            operator_.name ? "`" : "");
  if (!ki_is_scalar(x->element) || x->element >= KJIT_C64)
    ka_fail(call, KJIT_ERROR_TYPE, "`x` has elements of type %s, which have no order",
            ka_type_text(call, x->element));
  return is_max ? "operator_argmax" : "operator_argmin";
}

static void build_scan_with_index(ka_call *call, const void *data)
{
  const scan *given = data;
  ka_operand result, places, x;
  ka_read_input(call, "x", given->x, &x);
  uint32_t axis = read_axis(call, &x);
  const char *name = read_extremum(call, given->operator_, &x);
  if (ka_describe(call, 0, x.element, x.rank, x.shape)) {
    (void)ka_describe(call, 1, KJIT_I64, x.rank, x.shape);
    return;
  }
  if (!given->result && !given->result_places)
    ka_fail(call, KJIT_ERROR_MISUSE,
            "`result` and `result_places` are both NULL; pass at least one");
  if (given->result) {
    read_result(call, "result", given->result, &x, &result);
    ka_check_stored(call, &result, x.element);
  }
  if (given->result_places) {
    read_result(call, "result_places", given->result_places, &x, &places);
    ka_check_index_result(call, &places, (uint64_t)x.shape[axis]);
  }
  if (given->result && given->result_places) ka_check_overlap(call, &places, &result, false);
  ka_choose_device(call);
  if (!x.count) return;
  kjit_type index = call->is_wide ? KJIT_I64 : KJIT_I32;
  const ka_carried carried =
    ka_carry(call, "index", index, "", kj_element_bytes(call->context->types, x.element));
  const parts p = { .call = call,
                    .accumulator = x.element,
                    .bytes = carried.bytes,
                    .result = given->result ? &result : NULL,
                    .places = given->result_places ? &places : NULL,
                    .x = &x,
                    .carried = &carried,
                    .carried_operator = name };
  scan_along(&p, axis);
}

kjit_status kjit_scan_with_index(kjit_context *context, const kjit_operand *result,
                                 const kjit_operand *result_places, const kjit_operand *x,
                                 const kjit_operator *operator_,
                                 const kjit_algorithm_options *options)
{
  const scan given = { result, result_places, x, operator_ };
  const ka_inputs inputs = { { result, result_places, x }, .operator_ = operator_ };
  return ka_perform_kept(context, "kjit_scan_with_index", KA_AXES, options, build_scan_with_index,
                         &given, &inputs);
}
