/* Implements kjit_sort_segments: sorts tiles of elements, then merges the segments that span
 * several tiles (lib/library/sort_segments.kir). The number of launches depends only on the number
 * of elements. Arrays with few tiles and segments of a hundred or more elements need only two
 * launches (sort_few_segments.kir). */
#include "algorithm/sort.h"
#include "ir/context.h"

/* Minimum number of elements or offsets for which a sort counts in 64 bits. */
enum { WIDE_COUNT = 1 << 30 };

typedef struct segments {
  const kjit_operand *result, *result_values, *x, *values, *offsets;
  kjit_function *less;
} segments;

typedef struct parts {
  ka_sort s;
  ka_operand offsets;
  uint32_t heads, spans;       /* indices into ka_call.works */
  uint32_t other, other_value; /* buffers for the merges */
  uint32_t home, home_value;   /* temporary buffers for the sorted keys and values if the results
                                * are funcs */
  bool is_moved; /* true if a last launch copies the elements from `home` to the results */
  uint32_t threads, items, levels;
  uint64_t tiles;
} parts;

/* ---- the shape of a launch ---- */

/* A tile on a GPU for keys of at most `bytes` bytes: number of threads, elements for each thread,
 * and minimum number of blocks for each multiprocessor. */
typedef struct tiling {
  uint32_t bytes, threads, items, blocks;
} tiling;

static const tiling tilings[] = { { 4, 256, 15, 3 }, { 8, 256, 9, 3 },  { 16, 256, 5, 2 },
                                  { 32, 128, 5, 2 }, { 64, 128, 3, 2 }, { UINT32_MAX, 64, 3, 1 } };

enum {
  CPU_TILE = 2048,
  CPU_PIECES = 4,   /* number of chunks for each core */
  MERGE_BLOCKS = 8, /* blocks for each multiprocessor */
  COPY_THREADS = 256
};

static const tiling *find_tiling(const ka_sort *s)
{
  static const tiling of_cpu = { .threads = 1, .items = CPU_TILE };
  const tiling *t = tilings;
  if (ka_is_cpu(s->call)) return &of_cpu;
  while (t->bytes < ka_key_bytes(s)) t++;
  return t;
}

static uint64_t most_blocks(const ka_call *call)
{
  return (uint64_t)ka_core_count(call) * (ka_is_cpu(call) ? CPU_PIECES : MERGE_BLOCKS);
}

/* ---- steps ---- */

static const char *yes_or_no(bool yes) { return yes ? "true" : "false"; }

static void add_works(parts *p, const tiling *t)
{
  ka_sort *s = &p->s;
  ka_call *call = s->call;
  uint64_t n = s->x.count, tile = (uint64_t)t->threads * t->items;
  p->threads = t->threads;
  p->items = t->items;
  p->tiles = ka_divide_up(n, tile);
  while (p->tiles > 1ull << p->levels) p->levels++;
  p->heads = ka_add_work(call, KJIT_U32, n / 32 + 1, true);
  if (n) p->spans = ka_add_work(call, call->is_wide ? KJIT_I64 : KJIT_I32, 2 * p->tiles, false);
  if (!p->levels) return;
  p->is_moved = s->result.function || (s->has_values && s->result_values.function);
  p->other = ka_add_work(call, s->x.element, n, false);
  if (p->is_moved) p->home = ka_add_work(call, s->x.element, n, false);
  if (!s->has_values) return;
  p->other_value = ka_add_work(call, s->value_element, n, false);
  if (p->is_moved) p->home_value = ka_add_work(call, s->value_element, n, false);
}

static void add_marks(const parts *p)
{
  ka_kernel kernel;
  ka_begin_kernel(p->s.call, "sort_segments", &kernel);
  const char *offset = ka_use_input(&kernel, &p->offsets, KJIT_ANY),
             *count = ka_use_count(&kernel, p->offsets.count),
             *n = ka_use_count(&kernel, p->s.x.count), *heads = ka_use_work(&kernel, p->heads);
  ka_launch(&kernel, 0, 0, "segment_sort_mark(%s, %s, %s, %s)", offset, count, n, heads);
}

/* Returns the expression of the buffer that receives the keys or the values. */
static const char *use_home(const parts *p, ka_kernel *kernel, const ka_operand *result,
                            uint32_t work)
{
  return p->is_moved ? ka_use_work(kernel, work) : ka_use_array(kernel, &result->arrays[0]);
}

static const char *use_put(const parts *p, ka_kernel *kernel, const ka_operand *result,
                           uint32_t work)
{
  if (result->function && !p->is_moved) return ka_use_output(kernel, result);
  return kj_format(&p->s.call->arena, "bind_back(sort_put, %s)", use_home(p, kernel, result, work));
}

static void add_tiles(const parts *p, uint32_t blocks)
{
  const ka_sort *s = &p->s;
  kj_arena *arena = &s->call->arena;
  ka_kernel kernel;
  const char *value = "radix_no_value", *put_value = "radix_no_store", *other = "radix_no_store",
             *other_value = "radix_no_store";
  ka_begin_kernel(s->call, "sort_segments", &kernel);
  kernel.blocks = blocks;
  const char *key = ka_use_input(&kernel, &s->x, KJIT_ANY),
             *put = use_put(p, &kernel, &s->result, p->home);
  if (s->has_values) {
    value = ka_use_input(&kernel, &s->values, KJIT_ANY);
    put_value = use_put(p, &kernel, &s->result_values, p->home_value);
  }
  if (p->levels) {
    other = kj_format(arena, "bind_back(sort_put, %s)", ka_use_work(&kernel, p->other));
    if (s->has_values)
      other_value =
        kj_format(arena, "bind_back(sort_put, %s)", ka_use_work(&kernel, p->other_value));
  }
  const char *less = ka_use_less(&kernel, s), *n = ka_use_count(&kernel, s->x.count),
             *offset = ka_use_input(&kernel, &p->offsets, KJIT_ANY),
             *count = ka_use_count(&kernel, p->offsets.count),
             *heads = ka_use_work(&kernel, p->heads), *spans = ka_use_work(&kernel, p->spans),
             *items = ka_use_constant(&kernel, p->items);
  ka_launch(&kernel, p->threads, p->tiles,
            "segment_sort_tiles(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, THREADS, %s, %s)",
            key, value, put, put_value, other, other_value, less, n, offset, count, heads, spans,
            items, yes_or_no(s->has_values));
}

static void add_merge(const parts *p, uint32_t level, uint32_t blocks)
{
  const ka_sort *s = &p->s;
  kj_arena *arena = &s->call->arena;
  uint64_t run = ((uint64_t)p->threads * p->items) << (level - 1);
  ka_kernel kernel;
  const char *value = "radix_no_value", *put_value = "radix_no_store";
  ka_begin_kernel(s->call, "sort_segments", &kernel);
  kernel.blocks = blocks;
  const char *home = use_home(p, &kernel, &s->result, p->home),
             *other = ka_use_work(&kernel, p->other), *other_value = other;
  if (s->has_values) {
    const char *home_value = use_home(p, &kernel, &s->result_values, p->home_value);
    value = kj_format(arena, "bind_back(sort_item, %s)", home_value);
    put_value = kj_format(arena, "bind_back(sort_put, %s)", home_value);
    other_value = ka_use_work(&kernel, p->other_value);
  }
  kjit_arg number = kjit_arg_i32((int32_t)level);
  const char *less = ka_use_less(&kernel, s), *n = ka_use_count(&kernel, s->x.count),
             *width = ka_use_count(&kernel, run), *which = ka_use_value(&kernel, &number),
             *spans = ka_use_work(&kernel, p->spans), *items = ka_use_constant(&kernel, p->items);
  ka_launch(&kernel, p->threads, ka_least(p->tiles, most_blocks(s->call)),
            "segment_sort_merge(bind_back(sort_item, %s), %s, bind_back(sort_put, %s), %s, %s, %s, "
            "%s, %s, %s, %s, %s, THREADS, %s, %s)",
            home, value, home, put_value, other, other_value, less, n, width, which, spans, items,
            yes_or_no(s->has_values));
}

static void add_move(const parts *p)
{
  const ka_sort *s = &p->s;
  kj_arena *arena = &s->call->arena;
  uint32_t threads = ka_is_cpu(s->call) ? 1 : COPY_THREADS;
  ka_kernel kernel;
  const char *value = "radix_no_value", *put_value = "radix_no_store";
  ka_begin_kernel(s->call, "sort", &kernel);
  const char *key = ka_use_work(&kernel, p->home), *put = ka_use_output(&kernel, &s->result);
  if (s->has_values) {
    value = kj_format(arena, "bind_back(sort_item, %s)", ka_use_work(&kernel, p->home_value));
    put_value = ka_use_output(&kernel, &s->result_values);
  }
  const char *n = ka_use_count(&kernel, s->x.count);
  ka_launch(&kernel, threads, ka_least(ka_divide_up(s->x.count, threads), most_blocks(s->call)),
            "sort_copy(bind_back(sort_item, %s), %s, %s, %s, %s, %s)", key, value, put, put_value,
            n, yes_or_no(s->has_values));
}

/* ---- few elements ---- */

/* Values measured on an H200. */
enum {
  /* maximum number of tiles; the limit is needed because each element of a long segment searches
   * its position in all tiles in the segment */
  FEW_TILES = 70,
  FEW_AVERAGE = 256,  /* minimum average length of a segment for this method, so that each block has
                       * enough work */
  FEW_SMALL_ITEMS = 9 /* number of elements for each thread in small tiles; small tiles are used if
                       * a segment of twice the average length fits into one */
};

/* Returns the number of elements for each thread in the method with two launches. Returns 0 if
 * segments are too short for this method or there are too many elements. */
static uint32_t choose_few_items(const parts *p, const tiling *t)
{
  uint64_t n = p->s.x.count, segments = p->offsets.count - 1, average;
  uint32_t small = (uint32_t)ka_least(t->items, FEW_SMALL_ITEMS);
  if (ka_is_cpu(p->s.call) || !n || !segments) return 0;
  average = n / segments;
  if (average < FEW_AVERAGE || n > (uint64_t)FEW_TILES * t->threads * t->items) return 0;
  bool is_small =
    2 * average <= t->threads * small && n <= (uint64_t)FEW_TILES * t->threads * small;
  return is_small ? small : t->items;
}

static void add_few_parts(const parts *p, const tiling *t)
{
  const ka_sort *s = &p->s;
  kj_arena *arena = &s->call->arena;
  ka_kernel kernel;
  const char *value = "radix_no_value", *put_value = "radix_no_store",
             *other_value = "radix_no_store";
  ka_begin_kernel(s->call, "sort_few_segments", &kernel);
  kernel.blocks = t->blocks;
  const char *key = ka_use_input(&kernel, &s->x, KJIT_ANY),
             *put = ka_use_output(&kernel, &s->result),
             *other = kj_format(arena, "bind_back(sort_put, %s)", ka_use_work(&kernel, p->other));
  if (s->has_values) {
    value = ka_use_input(&kernel, &s->values, KJIT_ANY);
    put_value = ka_use_output(&kernel, &s->result_values);
    other_value = kj_format(arena, "bind_back(sort_put, %s)", ka_use_work(&kernel, p->other_value));
  }
  const char *less = ka_use_less(&kernel, s), *n = ka_use_count(&kernel, s->x.count),
             *offset = ka_use_input(&kernel, &p->offsets, KJIT_ANY),
             *count = ka_use_count(&kernel, p->offsets.count),
             *heads = ka_use_work(&kernel, p->heads), *items = ka_use_constant(&kernel, p->items);
  ka_launch(&kernel, t->threads, p->tiles + p->offsets.count - 1,
            "segment_sort_few(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, THREADS, %s, %s)", key,
            value, put, put_value, other, other_value, less, n, offset, count, heads, items,
            yes_or_no(s->has_values));
}

static void add_few_ranks(const parts *p, const tiling *t)
{
  const ka_sort *s = &p->s;
  ka_kernel kernel;
  const char *put_value = "radix_no_store";
  ka_begin_kernel(s->call, "sort_few_segments", &kernel);
  const char *put = ka_use_output(&kernel, &s->result), *other = ka_use_work(&kernel, p->other),
             *other_value = other;
  if (s->has_values) {
    put_value = ka_use_output(&kernel, &s->result_values);
    other_value = ka_use_work(&kernel, p->other_value);
  }
  const char *less = ka_use_less(&kernel, s), *n = ka_use_count(&kernel, s->x.count),
             *offset = ka_use_input(&kernel, &p->offsets, KJIT_ANY),
             *count = ka_use_count(&kernel, p->offsets.count),
             *items = ka_use_constant(&kernel, p->items);
  ka_launch(&kernel, t->threads, p->tiles * p->items,
            "segment_sort_few_ranks(%s, %s, %s, %s, %s, %s, %s, %s, THREADS, %s, %s)", put,
            put_value, other, other_value, less, n, offset, count, items, yes_or_no(s->has_values));
}

static void add_few(parts *p, const tiling *t, uint32_t items)
{
  ka_sort *s = &p->s;
  uint64_t n = s->x.count;
  p->items = items;
  p->tiles = ka_divide_up(n, (uint64_t)t->threads * items);
  p->heads = ka_add_work(s->call, KJIT_U32, n / 32 + 1, true);
  p->other = ka_add_work(s->call, s->x.element, n, false);
  if (s->has_values) p->other_value = ka_add_work(s->call, s->value_element, n, false);
  add_few_parts(p, t);
  add_few_ranks(p, t);
}

/* ---- the call ---- */

static void check_line(ka_call *call, const ka_operand *operand)
{
  if (operand->rank != 1)
    ka_fail(call, KJIT_ERROR_ARGUMENT, "`%s` has %u axes; segments need one", operand->name,
            operand->rank);
}

static void read_offsets(parts *p, const kjit_operand *given)
{
  ka_call *call = p->s.call;
  ka_read_input(call, "offsets", given, &p->offsets);
  check_line(call, &p->offsets);
  if (!ka_is_integer(call, p->offsets.element) || p->offsets.element == KJIT_BOOL)
    ka_fail(call, KJIT_ERROR_TYPE, "`offsets` has elements of type %s, but positions are integers",
            ka_type_text(call, p->offsets.element));
  if (!p->offsets.count)
    ka_fail(call, KJIT_ERROR_ARGUMENT,
            "`offsets` has no elements; it needs one more than the number of segments");
}

static void build_segments(ka_call *call, const void *data)
{
  const segments *given = data;
  parts *p = KJ_NEW(&call->arena, parts);
  ka_sort *s = &p->s;
  s->call = call;
  ka_read_input(call, "x", given->x, &s->x);
  check_line(call, &s->x);
  if (!given->values && given->result_values)
    ka_fail(call, KJIT_ERROR_MISUSE, "`values` is NULL, but `result_values` is not");
  s->has_values = given->values;
  if (s->has_values) ka_read_values(s, given->values);
  read_offsets(p, given->offsets);
  if (ka_describe(call, 0, s->x.element, 1, s->x.shape)) {
    if (s->has_values) (void)ka_describe(call, 1, s->values.element, 1, s->x.shape);
    return;
  }
  ka_read_order(s, given->less);
  if (s->x.count >= WIDE_COUNT || p->offsets.count >= WIDE_COUNT) call->is_wide = true;
  ka_read_sorted(s, given->result, given->result_values);
  ka_check_overlap(call, &s->result, &p->offsets, false);
  if (s->has_values) ka_check_overlap(call, &s->result_values, &p->offsets, false);
  uint32_t one = 1, axis = 0;
  ka_arrange_rows(s, 0);
  ka_arrange(call, &p->offsets, &axis, 1, &one);
  ka_choose_device(call);
  const tiling *t = find_tiling(s);
  uint32_t few = choose_few_items(p, t);
  if (few) {
    add_few(p, t, few);
    return;
  }
  add_works(p, t);
  add_marks(p);
  if (!s->x.count) return;
  add_tiles(p, t->blocks);
  for (uint32_t level = 1; level <= p->levels; level++) add_merge(p, level, t->blocks);
  if (p->is_moved) add_move(p);
}

kjit_status kjit_sort_segments(kjit_context *context, const kjit_operand *result,
                               const kjit_operand *result_values, const kjit_operand *x,
                               const kjit_operand *values, const kjit_operand *offsets,
                               kjit_function *less, const kjit_algorithm_options *options)
{
  const segments given = { result, result_values, x, values, offsets, less };
  const ka_inputs inputs = { { result, result_values, x, values, offsets }, .function = less };
  return ka_perform_kept(context, "kjit_sort_segments", KA_DESCENDING | KA_BITS, options,
                         build_segments, &given, &inputs);
}
