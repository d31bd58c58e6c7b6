/* Implements kjit_reduce_segments and kjit_scan_segments. The kernels in lib/library/segments.kir
 * follow the merge path over elements and segment ends (Merrill and Garland): each block processes
 * a part of this path, and all parts have the same length. If segments are long on average,
 * reductions use a team of threads for each segment (lib/library/segment_teams.kir). */
#include "algorithm/algorithm.h"
#include "ir/context.h"

typedef struct segmentation {
  const kjit_operand *result, *x, *offsets;
  const kjit_operator *operator_;
} segmentation;

typedef struct parts {
  ka_call *call;
  ka_operator operator_;         /* either operator_ or reduction is set */
  const ka_reduction *reduction; /* the reduction that the caller has named, or NULL if operator_ is
                                  * set */
  /* the type to which elements are converted, and the reduction type */
  kjit_type value, accumulator;
  bool is_exclusive;
  ka_operand result, x, offsets;
  const ka_elements *elements;     /* computed elements that replace x, or NULL */
  uint64_t count, segments, steps; /* numbers of elements, segments and merge path steps */
  ka_carried carried;
} parts;

/* Launch shape of segment_teams_reduce. */
typedef struct team_shape {
  /* number of threads in a block, number of threads in a team, number of elements that a thread
   * reads at once */
  uint32_t threads, size, items;
  uint64_t chunk, chunks; /* for long segments: maximum number of elements that one team reduces,
                             and number of such chunks */
} team_shape;

/* ---- kernels ---- */

/* Kernel text that all kernels share. */
typedef struct texts {
  ka_kernel kernel;
  const char *load, *op, *offset, *carried, *n, *segments;
} texts;

static void begin(const parts *p, const char *module, texts *t)
{
  ka_begin_kernel(p->call, module, &t->kernel);
  t->load = p->elements ? p->elements->use(&t->kernel, p->elements->data)
                        : ka_use_input(&t->kernel, &p->x, p->value);
  t->offset = ka_use_input(&t->kernel, &p->offsets, KJIT_ANY);
  if (p->reduction) {
    t->load = ka_prepare_elements(&t->kernel, p->reduction, p->value, t->load, 1);
    t->op = ka_reduction_operator(p->reduction);
  } else {
    t->op = ka_use_operator(&t->kernel, &p->operator_, p->accumulator);
  }
  t->carried = ka_use_carried(&t->kernel, &p->carried, p->accumulator);
  t->n = ka_use_count(&t->kernel, p->count);
  t->segments = ka_use_count(&t->kernel, p->segments);
}

/* Adds the temporary storage for partial results. On a GPU, a tile reads the results of the
 * preceding tiles there (look-back). */
static uint32_t add_work(const parts *p, const ka_carried_tiling *s, uint64_t of_block)
{
  if (ka_is_cpu(p->call)) return ka_add_carried(p->call, &p->carried, of_block * s->blocks);
  return ka_add_work(p->call, KJIT_U64, ka_look_back_size(p->carried.bytes, s->blocks, 1), true);
}

static const char *use_work(const parts *p, texts *t, uint32_t work, uint64_t count)
{
  if (ka_is_cpu(p->call)) return ka_view_carried(&t->kernel, work, count);
  return ka_use_work(&t->kernel, work);
}

/* ---- reductions ---- */

static bool commutes(const parts *p) { return p->reduction || p->operator_.commutes; }

/* Writes the funcs that store the result of a segment and the result of an empty segment. */
static void use_results(const parts *p, texts *t, const char **store, const char **store_empty)
{
  ka_call *call = p->call;
  kj_arena *arena = &call->arena;
  const char *put = ka_use_output(&t->kernel, &p->result), *value = NULL;
  *store = put;
  if (p->reduction) {
    const char *finish = ka_finish_function(&t->kernel, p->reduction, p->value), *taker = put;
    if (ka_finds_place(p->reduction))
      taker = kj_format(arena, "bind_back(segments_put_place, %s, %s)", put, t->offset);
    else value = ka_reduction_empty(call, p->reduction, "x");
    *store =
      kj_format(arena, "bind_back(segments_put_finished, %s, %s, %s)", finish, taker, t->offset);
  } else if (call->options.initial) {
    value = ka_use_value(&t->kernel, call->options.initial);
    *store = kj_format(arena, "bind_back(reduce_after, %s, %s, %s)", put, t->op, value);
  } else if (p->operator_.has_identity) {
    value = ka_use_identity(&t->kernel, &p->operator_, p->accumulator);
  }
  *store_empty = value ? kj_format(arena, "bind_back(segments_put_empty, %s, %s)", put, value)
                       : "segments_no_value";
}

static void add_path(const parts *p, uint32_t bytes)
{
  ka_call *call = p->call;
  ka_carried_tiling s = ka_tile_carried(call, bytes, p->steps, p->operator_.name);
  uint32_t work = add_work(p, &s, 2), done = ka_add_work(call, KJIT_U32, 1, true);
  const char *store, *store_empty;
  texts t;
  begin(p, "segments", &t);
  t.kernel.blocks = s.at_once;
  use_results(p, &t, &store, &store_empty);
  const char *name = use_work(p, &t, work, 2 * s.blocks), *count = ka_use_work(&t.kernel, done),
             *items = ka_use_constant(&t.kernel, s.items);
  ka_launch(&t.kernel, s.threads, s.blocks,
            "segments_reduce(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, THREADS, %s)", t.load,
            store, store_empty, t.op, t.offset, t.carried, t.n, t.segments, name, count,
            commutes(p) ? "true" : "false", items);
}

/* Values measured on an H200. */
enum {
  TEAM_LEAST = 64, /* mean segment length from which teams are possible */
  /* Teams are used for at most TEAM_SEGMENTS + n / TEAM_AVERAGE segments. For few segments teams
   * are always faster, because a kernel with a merge path takes some microseconds for any number of
   * elements. */
  TEAM_AVERAGE = 160,
  TEAM_SEGMENTS = 24000,
  TEAM_VALUE_BYTES = 64, /* bytes that a thread reads at once */
  /* if warps as teams give fewer threads per multiprocessor than this, teams are larger */
  TEAM_THREADS = 1024,
  TEAM_MOST = 256, /* maximum number of threads in a team */
  /* A team has TEAM_MOST threads if segments have at least this mean length and there are at least
   * TEAM_LARGE_LEAST elements. */
  TEAM_LARGE_AVERAGE = 8192,
  TEAM_LARGE_LEAST = 1 << 26,
  TEAM_WARPS_BLOCK = 64, /* threads per block if teams are warps */
  /* minimum number of loads of each thread in a team that processes part of a long segment */
  TEAM_LEAST_READS = 4,
  /* segments longer than about this many times the mean length are divided among several teams */
  TEAM_LONG = 8
};

/* Chooses the launch shape. Few or very long segments get large teams. Long segments are divided
 * into chunks. The number of chunks is large enough to fill the device, but small compared with the
 * number of segments. */
static void choose_teams(const parts *p, uint32_t bytes, team_shape *teams)
{
  uint64_t filling = (uint64_t)ka_core_count(p->call) * TEAM_THREADS, n = p->count;
  teams->items = (uint32_t)ka_most(ka_least(TEAM_VALUE_BYTES / bytes, 16), 1);
  teams->size =
    n >= TEAM_LARGE_LEAST && n / p->segments >= TEAM_LARGE_AVERAGE ? TEAM_MOST : KJ_WARP_THREADS;
  while (teams->size < TEAM_MOST && p->segments * teams->size < filling &&
         teams->size * teams->items <= n / p->segments)
    teams->size *= 2;
  teams->threads = teams->size > KJ_WARP_THREADS ? teams->size : TEAM_WARPS_BLOCK;
  uint64_t each = n * teams->size / filling,
           least = (uint64_t)TEAM_LEAST_READS * teams->size * teams->items,
           wanted = ka_least(TEAM_LONG * (n / p->segments), 2 * each);
  teams->chunk = 1;
  while (teams->chunk < ka_most(ka_most(each, least), wanted)) teams->chunk *= 2;
  teams->chunks = ka_divide_up(n, teams->chunk);
}

static void add_teams(const parts *p, uint32_t bytes)
{
  ka_call *call = p->call;
  team_shape s;
  choose_teams(p, bytes, &s);
  uint32_t partial = ka_add_carried(call, &p->carried, s.chunks),
           work = ka_add_work(call, KJIT_U64, 1 + s.chunks, true);
  uint64_t in_block = s.threads / s.size,
           blocks = ka_divide_up(s.chunks, in_block) + ka_divide_up(p->segments, in_block);
  const char *store, *store_empty;
  texts t;
  begin(p, "segment_teams", &t);
  use_results(p, &t, &store, &store_empty);
  const char *chunk = ka_use_count(&t.kernel, s.chunk), *chunks = ka_use_count(&t.kernel, s.chunks),
             *parts_name = ka_view_carried(&t.kernel, partial, s.chunks),
             *work_name = ka_use_work(&t.kernel, work), *size = ka_use_constant(&t.kernel, s.size),
             *items = ka_use_constant(&t.kernel, s.items);
  ka_launch(&t.kernel, s.threads, blocks,
            "segment_teams_reduce(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, THREADS, %s, %s)",
            t.load, store, store_empty, t.op, t.offset, t.carried, t.n, t.segments, chunk, chunks,
            parts_name, work_name, size, items);
}

static void add_reduction(const parts *p, uint32_t bytes)
{
  uint64_t n = p->count;
  bool is_long = n / p->segments >= TEAM_LEAST && p->segments <= TEAM_SEGMENTS + n / TEAM_AVERAGE;
  if (!ka_is_cpu(p->call) && is_long && commutes(p)) add_teams(p, bytes);
  else add_path(p, bytes);
}

/* ---- scans ---- */

static void add_totals(const parts *p, uint32_t work, uint64_t pieces)
{
  texts t;
  begin(p, "segments", &t);
  const char *totals = ka_view_carried(&t.kernel, work, pieces);
  ka_launch(&t.kernel, 1, pieces, "segments_scan_totals(%s, %s, %s, %s, %s, %s, %s)", t.load, t.op,
            t.offset, t.carried, t.n, t.segments, totals);
}

static void add_scan(const parts *p, uint32_t bytes)
{
  ka_call *call = p->call;
  const kjit_arg *initial = call->options.initial;
  ka_carried_tiling s = ka_tile_carried(call, bytes, p->steps, p->operator_.name);
  uint32_t work = add_work(p, &s, 1);
  texts t;
  if (ka_is_cpu(call) && s.blocks > 1) add_totals(p, work, s.blocks);
  begin(p, "segments", &t);
  t.kernel.blocks = s.at_once;
  const char *put = ka_use_output(&t.kernel, &p->result),
             *start = initial           ? ka_use_value(&t.kernel, initial)
                      : p->is_exclusive ? ka_use_identity(&t.kernel, &p->operator_, p->accumulator)
                                        : "0",
             *name = use_work(p, &t, work, s.blocks), *items = ka_use_constant(&t.kernel, s.items);
  ka_launch(&t.kernel, s.threads, s.blocks,
            "segments_scan(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, THREADS, %s)", t.load, put,
            t.op, t.offset, start, t.carried, t.n, t.segments, name,
            p->is_exclusive ? "true" : "false", initial ? "true" : "false", items);
}

/* ---- the call ---- */

static void check_line(ka_call *call, const ka_operand *operand)
{
  if (operand->rank != 1)
    ka_fail(call, KJIT_ERROR_ARGUMENT, "`%s` has %u axes; it must have one", operand->name,
            operand->rank);
}

static void read_inputs(parts *p, const segmentation *given)
{
  ka_call *call = p->call;
  ka_read_input(call, "x", given->x, &p->x);
  ka_read_input(call, "offsets", given->offsets, &p->offsets);
  check_line(call, &p->x);
  check_line(call, &p->offsets);
  if (!ka_is_integer(call, p->offsets.element) || p->offsets.element == KJIT_BOOL)
    ka_fail(call, KJIT_ERROR_TYPE, "`offsets` has elements of type %s; expected integers",
            ka_type_text(call, p->offsets.element));
  if (!p->offsets.count)
    ka_fail(call, KJIT_ERROR_ARGUMENT,
            "`offsets` has no elements; it needs one more than the number of segments, the end of "
            "the last segment");
  p->segments = p->offsets.count - 1;
  p->count = p->x.count;
  p->steps = p->count + p->segments;
  call->is_wide = call->is_wide || p->steps >= (uint64_t)INT32_MAX - (1 << 20);
}

static void arrange(ka_call *call, ka_operand *operand)
{
  const uint32_t axis = 0;
  ka_arrange(call, operand, &axis, 1, &operand->rank);
}

static void read_result(parts *p, const kjit_operand *given, uint64_t count, const char *of)
{
  ka_call *call = p->call;
  ka_read_output(call, "result", given, &p->result);
  check_line(call, &p->result);
  if (p->result.count != count)
    ka_fail(call, KJIT_ERROR_ARGUMENT,
            "`result` needs one element for each %s: %llu, but it has %llu", of,
            (unsigned long long)count, (unsigned long long)p->result.count);
}

/* Chooses the types of the elements and of the accumulator. result is the element type of the
 * result array, or KJIT_ANY if the call has no result array. */
static void choose_types(parts *p, kjit_type result)
{
  ka_call *call = p->call;
  if (p->reduction) {
    p->value = ka_reduction_value(call, p->reduction, p->x.element);
    p->accumulator = ka_reduction_computed(p->reduction, p->value);
    return;
  }
  p->value = p->accumulator = ka_accumulator(call, &p->operator_, p->x.element, result);
}

/* Returns the default element type of the result. As in NumPy, the sum of an f16 array is f16. */
static kjit_type result_type(const parts *p)
{
  kjit_type element = p->x.element;
  if (p->reduction) return ka_reduction_result(p->call, p->reduction, element, p->value);
  bool is_half = element == KJIT_F16 || element == KJIT_BF16;
  return is_half && p->call->options.accumulator == KJIT_ANY ? element : p->accumulator;
}

/* Chooses the types and returns an accumulator's size in bytes. */
static uint32_t finish_types(parts *p)
{
  ka_call *call = p->call;
  const char *name = "";
  uint32_t bytes;
  choose_types(p, p->result.function ? KJIT_ANY : p->result.element);
  ka_check_stored(call, &p->result, result_type(p));
  if (p->reduction && ka_finds_place(p->reduction))
    ka_check_positions(call, &p->result, p->x.count);
  ka_choose_device(call);
  if (p->reduction) {
    bytes = ka_reduction_bytes(call, p->reduction, p->value);
    name = ka_reduction_type(call, p->reduction, p->value);
  } else {
    bytes = kj_element_bytes(call->context->types, p->accumulator);
  }
  p->carried = ka_carry(call, "state", KJIT_I32, name, bytes);
  arrange(call, &p->x);
  arrange(call, &p->offsets);
  arrange(call, &p->result);
  return bytes;
}

static void build_reduction(ka_call *call, const void *data)
{
  const segmentation *given = data;
  parts *p = KJ_NEW(&call->arena, parts);
  *p = (parts){ .call = call };
  p->reduction = ka_read_reduction(call, given->operator_, &p->operator_);
  read_inputs(p, given);
  if (call->options.results) {
    const int64_t extent = (int64_t)p->segments;
    choose_types(p, KJIT_ANY);
    (void)ka_describe(call, 0, result_type(p), 1, &extent);
    return;
  }
  read_result(p, given->result, p->segments, "segment");
  ka_check_overlap(call, &p->result, &p->x, false);
  ka_check_overlap(call, &p->result, &p->offsets, false);
  uint32_t bytes = finish_types(p);
  if (p->segments) add_reduction(p, bytes);
}

void ka_add_segment_sums(ka_call *call, const ka_operand *result, const ka_operand *offsets,
                         uint64_t count, kjit_type accumulator, const ka_elements *elements)
{
  const kjit_operator add = kjit_operator_named("add");
  parts *p = KJ_NEW(&call->arena, parts);
  *p = (parts){ .call = call,
                .value = accumulator,
                .accumulator = accumulator,
                .result = *result,
                .offsets = *offsets,
                .elements = elements,
                .count = count,
                .segments = offsets->count - 1 };
  uint32_t bytes = kj_element_bytes(call->context->types, accumulator);
  ka_read_operator(call, &add, &p->operator_);
  p->steps = count + p->segments;
  p->carried = ka_carry(call, "state", KJIT_I32, "", bytes);
  if (p->segments) add_reduction(p, bytes);
}

static void build_scan(ka_call *call, const void *data)
{
  const segmentation *given = data;
  parts *p = KJ_NEW(&call->arena, parts);
  *p = (parts){ .call = call, .is_exclusive = call->options.flags & KJIT_ALGORITHM_EXCLUSIVE };
  ka_read_operator(call, given->operator_, &p->operator_);
  read_inputs(p, given);
  if (call->options.results) {
    choose_types(p, KJIT_ANY);
    (void)ka_describe(call, 0, result_type(p), 1, p->x.shape);
    return;
  }
  read_result(p, given->result, p->x.count, "element of `x`");
  ka_check_overlap(call, &p->result, &p->x, true);
  ka_check_overlap(call, &p->result, &p->offsets, false);
  if (p->is_exclusive && !call->options.initial && !p->operator_.has_identity)
    ka_fail(call, KJIT_ERROR_ARGUMENT,
            "an exclusive scan starts with the operator's identity, and this operator has none: "
            "set " KJ_OPTION("initial"));
  uint32_t bytes = finish_types(p);
  if (p->segments) add_scan(p, bytes);
}

kjit_status kjit_reduce_segments(kjit_context *context, const kjit_operand *result,
                                 const kjit_operand *x, const kjit_operand *offsets,
                                 const kjit_operator *operator_,
                                 const kjit_algorithm_options *options)
{
  const segmentation given = { result, x, offsets, operator_ };
  const ka_inputs inputs = { { result, x, offsets }, .operator_ = operator_ };
  return ka_perform_kept(context, "kjit_reduce_segments", KA_ACCUMULATOR | KA_INITIAL, options,
                         build_reduction, &given, &inputs);
}

kjit_status kjit_scan_segments(kjit_context *context, const kjit_operand *result,
                               const kjit_operand *x, const kjit_operand *offsets,
                               const kjit_operator *operator_,
                               const kjit_algorithm_options *options)
{
  const segmentation given = { result, x, offsets, operator_ };
  const ka_inputs inputs = { { result, x, offsets }, .operator_ = operator_ };
  return ka_perform_kept(context, "kjit_scan_segments", KA_ACCUMULATOR | KA_INITIAL | KA_EXCLUSIVE,
                         options, build_scan, &given, &inputs);
}
