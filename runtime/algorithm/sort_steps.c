/* Adds the launches of sorts. A radix sort handles numbers (radix_sort.kir of lib/library), and a
 * merge sort handles other elements and long rows (merge_sort.kir). One block sorts a small number
 * of numbers. Each stage of a sort is a launch. The elements move from the operands through
 * temporary storage to the results. */
#include "algorithm/sort.h"
#include "ir/context.h"

/* ---- launch shapes ---- */

/* A tile on a GPU for keys and values of at most `bytes` bytes together: number of threads,
 * elements for each thread, and minimum number of blocks for each multiprocessor. */
typedef struct tiling {
  uint32_t bytes, threads, items, blocks;
} tiling;

static const tiling merge_tilings[] = { { 4, 256, 21, 4 }, { 8, 256, 11, 4 },
                                        { 16, 256, 7, 2 }, { 32, 128, 7, 2 },
                                        { 64, 128, 3, 2 }, { UINT32_MAX, 64, 3, 1 } };

enum {
  COPY_THREADS = 256,
  COPY_BLOCKS = 8,       /* blocks for each multiprocessor */
  BLOCK_ITEMS = 8,       /* number of elements for each thread if one block sorts all elements */
  BLOCK_MOST = 1024 * 8, /* maximum elements that one block sorts */
  RANK_THREADS = 256,
  RANK_ELEMENTS = 32,   /* elements that a block processes */
  RANK_MOST = 4 * 8192, /* maximum bytes of keys that are sorted by ranks; keys of fewer than 4
                         * bytes count as 4 bytes */
  CPU_BLOCK_MOST = 4096,
  /* elements in a tile in a merge sort; large arrays of small elements have larger tiles */
  CPU_TILE = 2048,
  CPU_LARGE_TILE = 8192,
  CPU_LARGE_TILE_BYTES = 16, /* maximum element size for large tiles */
  CPU_PIECES = 4,            /* number of chunks for each core */
  CPU_LEAST = 16384,         /* minimum number of elements in a chunk */
  /* numbers of elements from which the columns `some` and `many` of radix_tiling apply */
  RADIX_SOME = 1 << 20,
  RADIX_MANY = 1 << 22,
  DIGIT_BITS = 8,
  DIGIT_VALUES = 1 << DIGIT_BITS,
  MOVED_BYTES = 8,   /* maximum size of a value that is moved through a tile in shared memory */
  SCAN_BYTES = 1024, /* shared memory of a pass in addition to that for elements, counts and
                      * starts */
  SPLIT_THREADS = 128,
  /* if there are fewer tiles than this, each block itself finds its tile's start */
  SPLIT_LEAST = 512,
  MULTIWAY_LANES = 16,  /* lanes that search for a tile's start */
  MULTIWAY_LEAST = 1024 /* minimum number of tiles for which four runs are merged at a time */
};

/* How a pass of a radix sort moves values. */
typedef enum radix_way {
  RADIX_BESIDE, /* values are loaded and moved together with their keys */
  RADIX_LATE,   /* values are loaded after the keys have reached their final position in the tile,
                 * and are moved through the keys' shared memory */
  RADIX_PACKED, /* the first pass packs the value into one word with its key */
} radix_way;

/* Tiles of a pass for keys and values of up to these sizes, for few, some and many elements, as
 * measured (docs/performance.md). Floats need more registers, because their bits are converted to
 * sortable order. A tile writes all its elements with the same digit to adjacent positions, so
 * large tiles are faster if there are enough tiles for all multiprocessors. */
typedef struct radix_tiling {
  uint32_t key_bytes, value_bytes;
  radix_way way;
  tiling few, some, many;
  bool are_reals; /* true if the row is for floating-point keys only */
} radix_tiling;

static const radix_tiling radix_tilings[] = {
  { 4, 0, RADIX_BESIDE, { 0, 256, 16, 4 }, { 0, 256, 16, 4 }, { 0, 256, 56, 2 }, true },
  { 4, 0, RADIX_BESIDE, { 0, 256, 16, 4 }, { 0, 256, 32, 4 }, { 0, 256, 64, 2 }, false },
  { 8, 0, RADIX_BESIDE, { 0, 256, 16, 3 }, { 0, 256, 16, 3 }, { 0, 256, 40, 2 }, false },
  { 4, 4, RADIX_PACKED, { 0, 256, 16, 4 }, { 0, 256, 16, 4 }, { 0, 256, 40, 2 }, false },
  { 4, 4, RADIX_LATE, { 0, 256, 16, 3 }, { 0, 256, 16, 3 }, { 0, 256, 40, 2 }, false },
  { 8, 4, RADIX_LATE, { 0, 256, 16, 3 }, { 0, 256, 16, 3 }, { 0, 256, 30, 2 }, false },
  { 8, 8, RADIX_LATE, { 0, 256, 16, 2 }, { 0, 256, 16, 2 }, { 0, 256, 26, 2 }, false },
  /* larger values are not moved through a tile */
  { 4, UINT32_MAX, RADIX_BESIDE, { 0, 256, 23, 3 }, { 0, 256, 23, 3 }, { 0, 256, 48, 2 }, false },
  { 8, UINT32_MAX, RADIX_BESIDE, { 0, 384, 16, 2 }, { 0, 384, 16, 2 }, { 0, 256, 34, 2 }, false },
};

/* Shape of the launch that counts all digits (radix_sort_histogram): threads, elements that a
 * thread loads at a time, columns of counts, and maximum blocks for each multiprocessor. More
 * columns need more shared memory; many columns are faster only for many elements. */
typedef struct counting {
  uint32_t threads, items, columns, blocks;
} counting;

static const counting few_counting = { 256, 16, 1, 8 }, many_counting = { 1024, 16, 32, 1 };

static const tiling *choose(const tiling *rows, uint32_t bytes)
{
  while (rows->bytes < bytes) rows++; /* the last row accepts any size */
  KJ_ASSERT(rows->threads && rows->items && rows->blocks);
  return rows;
}

static uint64_t count_pieces(const ka_sort *s)
{
  uint64_t most = (uint64_t)CPU_PIECES * ka_core_count(s->call),
           wanted = ka_divide_up(s->x.count, CPU_LEAST);
  return wanted < most ? wanted : most;
}

/* ---- operands of a stage ---- */

/* If the array of an operand can be addressed by a linear index, returns the array, otherwise NULL.
 * Such an array has the same kernel parameter as temporary storage, so all stages use one kernel.
 * Returns NULL for a read-only array, because the parameter for temporary storage is writable. */
static const kjit_arg *line_of(const ka_operand *operand)
{
  if (operand->function || operand->axis_count != 1) return NULL;
  const kjit_arg *array = &operand->arrays[0];
  bool is_read_only = array->kind == KJIT_ARG_ARRAY && array->value.array->is_read_only;
  return is_read_only ? NULL : array;
}

static const char *use_input(ka_kernel *kernel, const ka_sort *s, const ka_operand *operand,
                             const uint32_t *buffers)
{
  kj_arena *arena = &s->call->arena;
  const kjit_arg *line = line_of(operand);
  KJ_ASSERT(s->stage < s->stages);
  if (s->stage)
    return kj_format(arena, "bind_back(sort_item, %s)",
                     ka_use_work(kernel, buffers[(s->stage - 1) % KA_MOST_BUFFERS]));
  if (line) return kj_format(arena, "bind_back(sort_item, %s)", ka_use_array(kernel, line));
  return ka_use_input(kernel, operand, KJIT_ANY);
}

static const char *use_output(ka_kernel *kernel, const ka_sort *s, const ka_operand *operand,
                              const uint32_t *buffers)
{
  kj_arena *arena = &s->call->arena;
  const kjit_arg *line = line_of(operand);
  KJ_ASSERT(s->stage < s->stages);
  if (s->stage + 1 < s->stages)
    return kj_format(arena, "bind_back(sort_put, %s)",
                     ka_use_work(kernel, buffers[s->stage % KA_MOST_BUFFERS]));
  const char *put = line ? kj_format(arena, "bind_back(sort_put, %s)", ka_use_array(kernel, line))
                         : ka_use_output(kernel, operand);
  if (!s->kept) return put;
  const char *row = ka_use_count(kernel, s->row), *kept = ka_use_count(kernel, s->kept);
  return kj_format(arena, "bind_back(sort_put_first, %s, %s, %s)", put, row, kept);
}

static const char *use_places(ka_kernel *kernel, const ka_sort *s)
{
  if (s->rows == 1) return "sort_place";
  return kj_format(&s->call->arena, "bind_back(sort_place_in_row, %s)",
                   ka_use_count(kernel, s->row));
}

static const char *use_zero(const ka_sort *s, kjit_type type)
{
  return kj_format(&s->call->arena, "zero(%s)", ka_type_text(s->call, type));
}

/* Returns the load and store funcs for temporary storage that contains a key and its value in one
 * word. */
static const char *pack_operands(const ka_sort *s, const char *keys, const char *values,
                                 const char *put, const char *put_values)
{
  kj_arena *arena = &s->call->arena;
  if (!s->stage) keys = kj_format(arena, "bind_back(radix_load_packed, %s, %s)", keys, values);
  if (s->stage + 1 == s->stages)
    put = kj_format(arena, "bind_back(radix_store_packed, %s, %s, %s, %s)", put, put_values,
                    use_zero(s, s->x.element), use_zero(s, s->value_element));
  return kj_format(arena, "%s, %s", keys, put);
}

/* Begins the kernel of a stage and returns its load and store funcs, the first arguments of the
 * library's funcs. */
static const char *begin_stage(ka_sort *s, ka_kernel *kernel)
{
  bool is_last = s->stage + 1 == s->stages;
  const char *values = "radix_no_value", *put_values = "radix_no_store", *put = "radix_no_store";
  ka_begin_kernel(s->call, "sort", kernel);
  const char *keys = use_input(kernel, s, &s->x, s->key_buffers);
  if (s->are_places && !s->stage) values = use_places(kernel, s);
  else if (s->has_values && (!s->stage || !s->is_packed))
    values = use_input(kernel, s, &s->values, s->value_buffers);
  if (s->has_result || !is_last) put = use_output(kernel, s, &s->result, s->key_buffers);
  if (s->has_values && (is_last || !s->is_packed))
    put_values = use_output(kernel, s, &s->result_values, s->value_buffers);
  if (s->is_packed) return pack_operands(s, keys, values, put, put_values);
  return kj_format(&s->call->arena, "%s, %s, %s, %s", keys, values, put, put_values);
}

static void set_stages(ka_sort *s, uint32_t stages)
{
  s->stages = stages;
  for (uint32_t i = 0; i < KA_MOST_BUFFERS && i + 1 < stages; i++) {
    kjit_type element = s->is_packed ? KJIT_U64 : s->x.element;
    s->key_buffers[i] = ka_add_work(s->call, element, s->x.count, false);
    if (s->has_values && !s->is_packed)
      s->value_buffers[i] = ka_add_work(s->call, s->value_element, s->x.count, false);
  }
}

static const char *yes_or_no(bool yes) { return yes ? "true" : "false"; }

const char *ka_use_bits(ka_kernel *kernel, const ka_sort *s)
{
  const char *begin = ka_use_constant(kernel, s->begin), *end = ka_use_constant(kernel, s->end);
  return kj_format(&s->call->arena, "%s, %s, %s", begin, end, yes_or_no(s->is_descending));
}

/* ---- radix sort ---- */

static void sort_rows(ka_sort *s)
{
  ka_kernel kernel;
  uint32_t threads = 1, items = CPU_BLOCK_MOST;
  if (!ka_is_cpu(s->call)) {
    threads = KJ_WARP_THREADS;
    items = BLOCK_ITEMS;
    while (threads * items < s->row) threads *= 2;
  }
  set_stages(s, 1);
  const char *operands = begin_stage(s, &kernel), *row = ka_use_count(&kernel, s->row),
             *n = ka_use_constant(&kernel, items), *bits = ka_use_bits(&kernel, s);
  ka_launch(&kernel, threads, s->rows, "sort_rows(%s, %s, THREADS, %s, %s, %s)", operands, row, n,
            bits, yes_or_no(s->has_values));
}

/* Adds a launch that copies the result from temporary storage to the input's memory. */
static void copy_back(ka_sort *s)
{
  ka_kernel kernel;
  const char *operands = begin_stage(s, &kernel), *count = ka_use_count(&kernel, s->x.count);
  bool is_cpu = ka_is_cpu(s->call);
  uint32_t threads = is_cpu ? 1 : COPY_THREADS;
  uint64_t most = (uint64_t)COPY_BLOCKS * ka_core_count(s->call),
           blocks = is_cpu ? count_pieces(s) : ka_divide_up(s->x.count, threads);
  ka_launch(&kernel, threads, blocks < most ? blocks : most, "sort_copy(%s, %s, %s)", operands,
            count, yes_or_no(s->has_values));
}

/* Sets one stage for each digit. A sort in place with a single digit would store to the memory from
 * which it loads, so one more stage is added. Returns whether a stage was added. */
static bool set_digit_stages(ka_sort *s, uint32_t digits)
{
  bool goes_back = digits == 1 && s->is_in_place;
  set_stages(s, digits + goes_back);
  return goes_back;
}

/* Returns whether key and value are packed into one word. Packing saves time only if temporary
 * storage holds the keys and values between passes, that is, if the sort has more than one
 * digit. */
static bool can_pack(const ka_sort *s, uint32_t digits)
{
  ki_type_class class_ = ki_type(s->call->context->types, s->value_element)->class_;
  bool is_number =
    class_ == KJ_CLASS_SIGNED || class_ == KJ_CLASS_UNSIGNED || class_ == KJ_CLASS_FLOAT;
  return is_number && s->value_bytes == 4 && ka_key_bytes(s) == 4 && digits > 1;
}

/* Returns the maximum shared memory of a block. */
static uint64_t shared_bytes(const ka_sort *s) { return s->call->device->info.max_shared_bytes; }

/* Reduces the number of elements in the tile so that the tile fits into shared memory
 * (radix_sort_items), together with the counts of each warp and the digits' starts. */
static void fit_tile(const ka_sort *s, radix_way way, tiling *t)
{
  uint32_t key = ka_key_bytes(s), value = s->value_bytes <= MOVED_BYTES ? s->value_bytes : 0,
           each = way == RADIX_BESIDE ? key + value
                  : key > value       ? key
                                      : value;
  if (way == RADIX_PACKED) each = key + value;
  uint64_t others = t->threads / KJ_WARP_THREADS * DIGIT_VALUES * 4 + DIGIT_VALUES * 8 + SCAN_BYTES,
           most = (shared_bytes(s) - others) / ((uint64_t)t->threads * each);
  t->items = (uint32_t)ka_least(t->items, most);
}

static radix_way choose_radix_tile(const ka_sort *s, uint32_t digits, tiling *tile)
{
  const radix_tiling *row = radix_tilings;
  bool are_reals = ki_type(s->call->context->types, s->x.element)->class_ == KJ_CLASS_FLOAT;
  uint64_t n = s->x.count;
  while (row->key_bytes < ka_key_bytes(s) || row->value_bytes < s->value_bytes ||
         (row->are_reals && !are_reals) || (row->way == RADIX_PACKED && !can_pack(s, digits)))
    row++;
  *tile = n >= RADIX_MANY ? row->many : n >= RADIX_SOME ? row->some : row->few;
  fit_tile(s, row->way, tile);
  return row->way;
}

static void count_digits(ka_sort *s, uint32_t digits, uint32_t work, uint32_t status)
{
  counting c = s->x.count >= RADIX_MANY ? many_counting : few_counting;
  while (c.columns > 1 && digits * DIGIT_VALUES * 4 * c.columns > shared_bytes(s) - SCAN_BYTES)
    c.columns /= 2;
  uint64_t count = s->x.count, blocks = ka_divide_up(count, (uint64_t)c.threads * c.items),
           most = (uint64_t)c.blocks * ka_core_count(s->call);
  ka_kernel kernel;
  ka_begin_kernel(s->call, "sort", &kernel);
  const char *keys = use_input(&kernel, s, &s->x, s->key_buffers),
             *n = ka_use_count(&kernel, count), *words = ka_use_work(&kernel, work),
             *tile_words = ka_use_work(&kernel, status), *items = ka_use_constant(&kernel, c.items),
             *bits = ka_use_bits(&kernel, s), *columns = ka_use_constant(&kernel, c.columns);
  ka_launch(&kernel, c.threads, ka_least(blocks, most),
            "sort_histogram(%s, %s, %s, %s, THREADS, %s, %s, %s)", keys, n, words, tile_words,
            items, bits, columns);
}

static void sort_digits_gpu(ka_sort *s, uint32_t digits)
{
  tiling t;
  radix_way way = choose_radix_tile(s, digits, &t);
  kjit_type word = s->call->is_wide ? KJIT_U64 : KJIT_U32;
  uint64_t tiles = ka_divide_up(s->x.count, (uint64_t)t.threads * t.items);
  s->is_packed = way == RADIX_PACKED;
  bool goes_back = set_digit_stages(s, digits);
  uint32_t work = ka_add_work(s->call, word, (uint64_t)digits * (2 * DIGIT_VALUES + 1) + 1, true),
           status = ka_add_work(s->call, word, 2 * DIGIT_VALUES * tiles, false);
  count_digits(s, digits, work, status);
  for (s->stage = 0; s->stage < digits; s->stage++) {
    ka_kernel kernel;
    const char *operands = begin_stage(s, &kernel);
    kjit_arg number = kjit_arg_i32((int32_t)s->stage);
    const char *pass = ka_use_value(&kernel, &number), *n = ka_use_count(&kernel, s->x.count),
               *words = ka_use_work(&kernel, work), *tile_words = ka_use_work(&kernel, status),
               *items = ka_use_constant(&kernel, t.items), *bits = ka_use_bits(&kernel, s);
    kernel.blocks = t.blocks;
    if (s->is_packed)
      ka_launch(&kernel, t.threads, tiles,
                "sort_pass_packed(%s, %s, %s, %s, %s, %s, THREADS, %s, %s)", operands,
                use_zero(s, s->x.element), n, pass, words, tile_words, items, bits);
    else
      ka_launch(&kernel, t.threads, tiles, "sort_pass(%s, %s, %s, %s, %s, THREADS, %s, %s, %s, %s)",
                operands, n, pass, words, tile_words, items, bits, yes_or_no(s->has_values),
                yes_or_no(way == RADIX_LATE));
  }
  if (goes_back) copy_back(s);
}

static void sort_digits_cpu(ka_sort *s, uint32_t digits)
{
  bool goes_back = set_digit_stages(s, digits);
  uint64_t count = s->x.count, pieces = count_pieces(s);
  uint32_t counts =
    ka_add_work(s->call, s->call->is_wide ? KJIT_U64 : KJIT_U32, pieces * DIGIT_VALUES, false);
  for (s->stage = 0; s->stage < digits; s->stage++) {
    ka_kernel kernel;
    kjit_arg number = kjit_arg_i32((int32_t)s->stage);
    ka_begin_kernel(s->call, "sort", &kernel);
    const char *keys = use_input(&kernel, s, &s->x, s->key_buffers),
               *n = ka_use_count(&kernel, count), *pass = ka_use_value(&kernel, &number),
               *words = ka_use_work(&kernel, counts), *bits = ka_use_bits(&kernel, s);
    ka_launch(&kernel, 1, pieces, "sort_counts(%s, %s, %s, %s, %s)", keys, n, pass, words, bits);
    const char *operands = begin_stage(s, &kernel);
    n = ka_use_count(&kernel, count);
    pass = ka_use_value(&kernel, &number);
    words = ka_use_work(&kernel, counts);
    bits = ka_use_bits(&kernel, s);
    ka_launch(&kernel, 1, pieces, "sort_scatter(%s, %s, %s, %s, %s, %s)", operands, n, pass, words,
              bits, yes_or_no(s->has_values));
  }
  if (goes_back) copy_back(s);
}

static void sort_digits(ka_sort *s)
{
  uint32_t digits = (uint32_t)ka_divide_up(s->end - s->begin, DIGIT_BITS);
  if (ka_is_cpu(s->call)) sort_digits_cpu(s, digits);
  else sort_digits_gpu(s, digits);
}

/* ---- sort by comparison ---- */

const char *ka_use_less(ka_kernel *kernel, const ka_sort *s)
{
  kj_arena *arena = &s->call->arena;
  if (!s->less.function)
    return kj_format(arena, "bind_back(sort_numbers, %s)", ka_use_bits(kernel, s));
  const char *less = ka_use_operator(kernel, &s->less, KJIT_BOOL);
  return s->is_descending ? kj_format(arena, "bind_back(sort_reversed, %s)", less) : less;
}

/* Returns the tile on the CPU. The large tile, which fits a core's cache, is used if each core gets
 * several tiles. */
static tiling choose_cpu_tiling(const ka_sort *s)
{
  uint64_t many = (uint64_t)CPU_LARGE_TILE * CPU_PIECES * ka_core_count(s->call);
  bool is_large = s->x.count >= many && ka_key_bytes(s) <= CPU_LARGE_TILE_BYTES;
  return (tiling){ .threads = 1, .items = is_large ? CPU_LARGE_TILE : CPU_TILE };
}

/* Adds a launch that finds where the tiles of the next merge start in their runs, and stores these
 * positions in the temporary storage `splits`. how: the last arguments of the call, which describe
 * a tile. */
static void find_splits(ka_sort *s, uint32_t splits, uint64_t threads, uint64_t run,
                        const char *name, const char *how)
{
  ka_kernel kernel;
  ka_begin_kernel(s->call, "sort", &kernel);
  const char *keys = use_input(&kernel, s, &s->x, s->key_buffers), *less = ka_use_less(&kernel, s),
             *n = ka_use_count(&kernel, s->x.count), *row = ka_use_count(&kernel, s->row),
             *width = ka_use_count(&kernel, run), *words = ka_use_work(&kernel, splits);
  ka_launch(&kernel, SPLIT_THREADS, ka_divide_up(threads, SPLIT_THREADS),
            "%s(%s, %s, %s, %s, %s, %s, %s)", name, keys, less, n, row, width, words, how);
}

/* The number of elements in a tile, and the number of runs that are merged at a time. */
typedef struct merging {
  tiling shape;
  uint64_t tile, tiles;
  uint32_t ways;
  bool is_split;
} merging;

static merging choose_merging(const ka_sort *s)
{
  merging m = { .shape = *choose(merge_tilings, ka_key_bytes(s)), .ways = 2 };
  bool is_cpu = ka_is_cpu(s->call);
  if (is_cpu) m.shape = choose_cpu_tiling(s);
  m.tile = (uint64_t)m.shape.threads * m.shape.items;
  m.tiles = s->rows * ka_divide_up(s->row, m.tile);
  m.is_split = !is_cpu && m.tiles >= SPLIT_LEAST;
  if (!is_cpu && m.tiles >= MULTIWAY_LEAST) {
    m.ways = 4;
    m.tile -= m.shape.items; /* see multiway_tile */
    m.tiles = s->rows * ka_divide_up(s->row, m.tile);
  }
  return m;
}

static void sort_by_merges(ka_sort *s)
{
  merging m = choose_merging(s);
  uint32_t stages = 1;
  for (uint64_t run = m.tile; run < s->row; run *= m.ways) stages++;
  set_stages(s, stages);
  uint32_t splits = ka_add_work(s->call, s->call->is_wide ? KJIT_I64 : KJIT_I32,
                                m.is_split && stages > 1 ? m.tiles * (m.ways - 1) : 1, false);
  const char *shape = kj_format(&s->call->arena, "%u, %u", m.shape.threads, m.shape.items),
             *tile = kj_format(&s->call->arena, "%u", (uint32_t)m.tile);
  uint64_t run = m.tile;
  for (s->stage = 0; s->stage < stages; s->stage++) {
    ka_kernel kernel;
    if (s->stage && m.ways == 4)
      find_splits(s, splits, MULTIWAY_LANES * m.tiles, run, "multiway_merge_splits", shape);
    else if (s->stage && m.is_split)
      find_splits(s, splits, m.tiles, run, "merge_sort_splits", tile);
    const char *operands = begin_stage(s, &kernel), *less = ka_use_less(&kernel, s),
               *n = ka_use_count(&kernel, s->x.count), *row = ka_use_count(&kernel, s->row),
               *items = ka_use_constant(&kernel, m.shape.items), *pairs = yes_or_no(s->has_values);
    kernel.blocks = m.shape.blocks;
    if (!s->stage) {
      ka_launch(&kernel, m.shape.threads, m.tiles,
                "merge_sort_tiles(%s, %s, %s, %s, %s, THREADS, %s, %s)", operands, less, n, row,
                tile, items, pairs);
      continue;
    }
    const char *width = ka_use_count(&kernel, run), *words = ka_use_work(&kernel, splits);
    if (m.ways == 4)
      ka_launch(&kernel, m.shape.threads, m.tiles,
                "multiway_merge_pass(%s, %s, %s, %s, %s, %s, THREADS, %s, %s)", operands, less, n,
                row, width, words, items, pairs);
    else
      ka_launch(&kernel, m.shape.threads, ka_is_cpu(s->call) ? count_pieces(s) : m.tiles,
                "merge_sort_pass(%s, %s, %s, %s, %s, %s, %s, THREADS, %s, %s)", operands, less, n,
                row, width, words, yes_or_no(m.is_split), items, pairs);
    run *= m.ways;
  }
}

void ka_merge_steps(ka_sort *s, const ka_operand *y)
{
  ka_call *call = s->call;
  ka_kernel kernel;
  uint64_t count = s->x.count + y->count;
  bool is_cpu = ka_is_cpu(call);
  tiling t = *choose(merge_tilings, ka_key_bytes(s));
  if (is_cpu) t = (tiling){ .threads = 1, .items = CPU_TILE };
  uint64_t tiles = ka_divide_up(count, (uint64_t)t.threads * t.items),
           most = (uint64_t)CPU_PIECES * ka_core_count(call);
  ka_begin_kernel(call, "sort", &kernel);
  kernel.blocks = t.blocks;
  const char *first = ka_use_input(&kernel, &s->x, KJIT_ANY),
             *second = ka_use_input(&kernel, y, KJIT_ANY),
             *put = ka_use_output(&kernel, &s->result), *less = ka_use_less(&kernel, s),
             *n = ka_use_count(&kernel, count), *middle = ka_use_count(&kernel, s->x.count),
             *items = ka_use_constant(&kernel, t.items);
  ka_launch(&kernel, t.threads, is_cpu && most < tiles ? most : tiles,
            "merge_two(bind_back(sort_either, %s, %s, %s), radix_no_value, %s, radix_no_store, %s, "
            "%s, %s, THREADS, %s, false)",
            first, second, middle, put, less, n, middle, items);
}

/* ---- sort by ranks ---- */

/* Returns whether the sort uses ranks. It then loads each key many times, so operands that are
 * funcs are excluded: an input func may be expensive, and an output func may write to the keys. */
static bool has_ranks(const ka_sort *s)
{
  uint32_t bytes = ka_key_bytes(s);
  bool has_functions =
    s->x.function || s->values.function || s->result.function || s->result_values.function;
  return !ka_is_cpu(s->call) && s->rows == 1 && !s->is_in_place && !has_functions &&
         s->row <= RANK_MOST / (bytes < 4 ? 4 : bytes);
}

static void sort_by_ranks(ka_sort *s)
{
  ka_kernel kernel;
  const char *by = "sort_itself", *less = "sort_before";
  set_stages(s, 1);
  const char *operands = begin_stage(s, &kernel);
  if (s->less.function) less = ka_use_less(&kernel, s);
  else by = kj_format(&s->call->arena, "bind_back(sort_bits, %s)", ka_use_bits(&kernel, s));
  kjit_arg count = kjit_arg_i32((int32_t)s->row);
  const char *n = ka_use_value(&kernel, &count);
  ka_launch(&kernel, RANK_THREADS, ka_divide_up(s->row, RANK_ELEMENTS),
            "rank_sort(%s, %s, %s, %s, THREADS, %s)", operands, by, less, n,
            yes_or_no(s->has_values));
}

/* ---- choosing the algorithm ---- */

/* Returns the maximum number of elements that one block sorts. Shared memory, which is smaller on
 * older GPUs, holds the keys, their indices if there are values, and counts for each warp
 * (radix_sort_shared). */
static uint64_t find_block_most(const ka_sort *s)
{
  enum { POSITION = 2, ROW = DIGIT_VALUES * 4 };
  if (ka_is_cpu(s->call)) return CPU_BLOCK_MOST;
  uint64_t most = BLOCK_MOST, each = ka_key_bytes(s) + (s->has_values ? POSITION : 0);
  while (most * each + (most / (BLOCK_ITEMS * KJ_WARP_THREADS) + 1) * ROW + SCAN_BYTES >
         shared_bytes(s))
    most /= 2;
  return most;
}

void ka_sort_steps(ka_sort *s)
{
  uint64_t most = find_block_most(s);
  if (has_ranks(s)) sort_by_ranks(s);
  else if (s->less.function) sort_by_merges(s);
  else if (s->row <= most) sort_rows(s);
  else if (s->rows == 1) sort_digits(s);
  else sort_by_merges(s);
}
