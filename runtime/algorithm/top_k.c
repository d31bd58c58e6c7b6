/* Implements kjit_top_k. Each launch divides every row into chunks and keeps the first k elements
 * in each chunk in sorted order (lib/library/top_k.kir). The next launch does the same with the
 * kept elements, until each row is a single chunk. If k is large, the call instead sorts whole rows
 * and stores the first k elements in each row. */
#include "algorithm/sort.h"
#include "ir/context.h"

/* A sort of at least this number of elements uses 64-bit counts. */
enum { WIDE_COUNT = 1 << 30 };

typedef struct top {
  const kjit_operand *result, *result_places, *x;
  int64_t k;
  kjit_function *less;
} top;

/* ---- the shape of a launch ---- */

/* A block's shape on a GPU for keys of at most `bytes` bytes: the maximum number of threads, and
 * the number of list elements for each thread. */
typedef struct tiling {
  uint32_t bytes, threads, items;
} tiling;

static const tiling tilings[] = {
  { 8, 256, 8 }, { 16, 128, 8 }, { 32, 128, 4 }, { 64, 64, 4 }, { UINT32_MAX, 64, 2 }
};

enum {
  GPU_LEAST = 8192,    /* minimum number of elements in a chunk, unless a row is a single chunk */
  GPU_BLOCKS = 4,      /* maximum number of blocks for each multiprocessor */
  CPU_LEAST = 1 << 16, /* like GPU_LEAST, for the CPU */
  CPU_PIECES = 4,      /* maximum number of chunks for each core */
  CPU_LIST = 1024,     /* minimum length of a thread's list */
  CPU_MOST = 8192,     /* maximum k */
  CPU_STEP = 64,
  PIECE_OF_KEPT = 16, /* a chunk has at least this many times k elements */
  FEW_PIECES = 4,     /* on a GPU, a row that would have fewer chunks than this is a single
                       * chunk */
  /* maximum number of elements in a chunk, because indices in a chunk are i32 */
  LONGEST_PIECE = 1 << 30,
  /* for a single row on a GPU: if the row has fewer than this times k elements, sorting the whole
   * row is faster */
  GPU_MANY_NUMBERS = 1 << 15,
  GPU_MANY_PAIRS = 1 << 14,
  GPU_MANY_BY_LESS = 1 << 13
};

/* Returns a key's size. If `less` is NULL, a key is an unsigned word that sorts like the number,
 * and has at least 4 bytes. */
static uint32_t key_bytes(const ka_sort *s)
{
  uint32_t bytes = ka_key_bytes(s);
  return s->less.function || bytes > 4 ? bytes : 4;
}

static const tiling *find_tiling(const ka_sort *s)
{
  const tiling *t = tilings;
  while (t->bytes < key_bytes(s)) t++;
  return t;
}

static uint64_t most_kept(const ka_sort *s)
{
  if (ka_is_cpu(s->call)) return CPU_MOST;
  const tiling *t = find_tiling(s);
  return (uint64_t)t->threads * t->items / 2;
}

static tiling choose_tiling(const ka_sort *s, uint64_t piece)
{
  tiling t = { .threads = 1, .items = CPU_LIST };
  if (ka_is_cpu(s->call)) {
    while (t.items < 2 * s->kept + CPU_STEP) t.items *= 2;
    return t;
  }
  t = *find_tiling(s);
  uint32_t most = t.threads;
  for (t.threads = KJ_WARP_THREADS; t.threads < most; t.threads *= 2) {
    uint64_t half = (uint64_t)t.threads * t.items / 2;
    if (half >= piece && half >= s->kept) break;
  }
  return t;
}

static uint64_t choose_pieces(const ka_sort *s, uint64_t row)
{
  bool is_cpu = ka_is_cpu(s->call);
  uint64_t least = ka_most(is_cpu ? CPU_LEAST : GPU_LEAST, PIECE_OF_KEPT * s->kept),
           blocks = (uint64_t)ka_core_count(s->call) * (is_cpu ? CPU_PIECES : GPU_BLOCKS),
           pieces = ka_least(row / least, ka_divide_up(blocks, s->rows));
  return ka_most(pieces < FEW_PIECES && !is_cpu ? 1 : pieces, ka_divide_up(row, LONGEST_PIECE));
}

/* ---- steps ---- */

/* A launch's input: the rows of the operand, or the elements that the previous launch has kept. */
typedef struct level {
  uint64_t row;
  bool is_first;
  uint32_t keys, places; /* indices into ka_call.works */
} level;

static level begin_level(const ka_sort *s, uint64_t pieces)
{
  kjit_type words = key_bytes(s) > 4 ? KJIT_U64 : KJIT_U32;
  level made = { .row = pieces * s->kept };
  made.keys =
    ka_add_work(s->call, s->less.function ? s->x.element : words, s->rows * made.row, false);
  made.places = ka_add_work(s->call, s->value_element, s->rows * made.row, false);
  return made;
}

/* Adds the load func, the less func, and the func that returns the original index of an element. */
static void use_keys(ka_kernel *kernel, const ka_sort *s, const level *from, uint64_t pieces,
                     const char *elements, const char **load, const char **less, const char **place)
{
  kj_arena *arena = &s->call->arena;
  *less = s->less.function ? ka_use_less(kernel, s) : "top_k_before";
  *load = elements;
  *place = "top_k_place";
  if (from->is_first && !s->less.function)
    *load = kj_format(arena, "bind_back(top_k_number, %s, %s)", elements, ka_use_bits(kernel, s));
  if (from->is_first) return;
  const char *keys = ka_use_work(kernel, from->keys), *places = ka_use_work(kernel, from->places),
             *row = ka_use_count(kernel, from->row), *count = ka_use_count(kernel, pieces);
  *load = kj_format(arena, "bind_back(sort_item, %s)", keys);
  *place = kj_format(arena, "bind_back(top_k_place_of, %s, %s, %s)", places, row, count);
}

/* Adds the launch from one level to the next. If `to` is NULL, the launch writes the results. */
static void add_level(ka_sort *s, const level *from, const level *to, uint64_t pieces)
{
  ka_kernel kernel;
  kj_arena *arena = &s->call->arena;
  tiling t = choose_tiling(s, ka_divide_up(from->row, pieces));
  const char *load, *less, *place, *put, *elements = "";
  ka_begin_kernel(s->call, "top_k", &kernel);
  if (from->is_first || !to) elements = ka_use_input(&kernel, &s->x, KJIT_ANY);
  use_keys(&kernel, s, from, pieces, elements, &load, &less, &place);
  const char *k = ka_use_count(&kernel, s->kept);
  if (to) {
    const char *keys = ka_use_work(&kernel, to->keys), *places = ka_use_work(&kernel, to->places);
    put = kj_format(arena, "bind_back(top_k_keep, %s, %s, %s, %s)", place, keys, places, k);
  } else {
    const char *store = s->has_result ? ka_use_output(&kernel, &s->result) : "radix_no_store",
               *store_place =
                 s->has_values ? ka_use_output(&kernel, &s->result_values) : "radix_no_store",
               *row = ka_use_count(&kernel, s->row);
    put = kj_format(arena, "bind_back(top_k_finish, %s, %s, %s, %s, %s, %s)", place, elements,
                    store, store_place, row, k);
  }
  const char *row = ka_use_count(&kernel, from->row), *count = ka_use_count(&kernel, pieces),
             *items = ka_use_constant(&kernel, t.items);
  if (t.threads == tilings[0].threads) kernel.blocks = GPU_BLOCKS;
  ka_launch(&kernel, t.threads, s->rows * pieces,
            "top_k_piece(%s, %s, %s, %s, %s, %s, THREADS, %s)", load, less, put, row, count, k,
            items);
}

static void add_steps(ka_sort *s)
{
  level from = { .row = s->row, .is_first = true };
  for (;;) {
    uint64_t pieces = choose_pieces(s, from.row);
    if (pieces == 1) break;
    level to = begin_level(s, pieces);
    add_level(s, &from, &to, pieces);
    from = to;
  }
  add_level(s, &from, NULL, 1);
}

/* Returns whether keeping sorted lists is faster than sorting whole rows. Sorted lists are faster
 * if most elements are not among the first k of a list. */
static bool is_for_lists(const ka_sort *s)
{
  if (s->kept > most_kept(s) || 2 * s->kept > s->row) return false;
  if (ka_is_cpu(s->call) || s->rows > 1) return true;
  uint64_t many = s->less.function                       ? GPU_MANY_BY_LESS
                  : s->has_values || ka_key_bytes(s) > 4 ? GPU_MANY_PAIRS
                                                         : GPU_MANY_NUMBERS;
  return s->row / s->kept >= many;
}

/* ---- the call ---- */

static void check_kept(ka_call *call, const ka_operand *x, uint32_t axis, int64_t k)
{
  if (!x->rank)
    ka_fail(call, KJIT_ERROR_ARGUMENT, "`x` has no axes, but elements are chosen along one axis");
  if (k < 0 || k > x->shape[axis])
    ka_fail(call, KJIT_ERROR_ARGUMENT, "k is %lld, but `x` has %lld elements along axis %u",
            (long long)k, (long long)x->shape[axis], axis);
}

static void read_result(ka_sort *s, const char *name, const kjit_operand *given,
                        const int64_t *shape, ka_operand *result)
{
  ka_read_output(s->call, name, given, result);
  bool is_right = result->rank == s->x.rank;
  for (uint32_t i = 0; is_right && i < s->x.rank; i++) is_right = result->shape[i] == shape[i];
  if (!is_right)
    ka_fail(s->call, KJIT_ERROR_ARGUMENT,
            "`%s` must have the shape of `x`, with k elements along the axis", name);
  ka_check_overlap(s->call, result, &s->x, false);
}

static void build_top_k(ka_call *call, const void *data)
{
  const top *given = data;
  ka_sort s = { .call = call };
  int64_t shape[KJ_MAX_RANK];
  ka_read_input(call, "x", given->x, &s.x);
  uint32_t axis = ka_read_sorted_axis(call, s.x.rank);
  check_kept(call, &s.x, axis, given->k);
  for (uint32_t i = 0; i < s.x.rank; i++) shape[i] = i == axis ? given->k : s.x.shape[i];
  if (ka_describe(call, 0, s.x.element, s.x.rank, shape)) {
    (void)ka_describe(call, 1, KJIT_I64, s.x.rank, shape);
    return;
  }
  if (!given->result && !given->result_places)
    ka_fail(call, KJIT_ERROR_MISUSE,
            "`result` and `result_places` are both NULL; pass at least one");
  ka_read_order(&s, given->less);
  s.kept = (uint64_t)given->k;
  s.has_result = given->result;
  s.has_values = s.are_places = given->result_places;
  if (s.x.count >= WIDE_COUNT) call->is_wide = true;
  s.value_element = call->is_wide ? KJIT_I64 : KJIT_I32;
  s.value_bytes = kj_element_bytes(call->context->types, s.value_element);
  if (s.has_result) {
    read_result(&s, "result", given->result, shape, &s.result);
    ka_check_sorted(&s, &s.result, s.x.element);
  }
  if (s.has_values) {
    read_result(&s, "result_places", given->result_places, shape, &s.result_values);
    ka_check_places(&s, &s.result_values);
  }
  if (s.has_result && s.has_values) ka_check_overlap(call, &s.result_values, &s.result, false);
  ka_arrange_rows(&s, axis);
  ka_choose_device(call);
  if (!s.x.count || !s.kept) return;
  if (s.rows > INT32_MAX)
    ka_fail(call, KJIT_ERROR_UNSUPPORTED, "the number of rows is larger than %d", INT32_MAX);
  if (is_for_lists(&s)) add_steps(&s);
  else ka_sort_steps(&s);
}

kjit_status kjit_top_k(kjit_context *context, const kjit_operand *result,
                       const kjit_operand *result_places, const kjit_operand *x, int64_t k,
                       kjit_function *less, const kjit_algorithm_options *options)
{
  const top given = { result, result_places, x, k, less };
  const ka_inputs inputs = { { result, result_places, x },
                             .function = less,
                             .numbers = { (uint64_t)k } };
  return ka_perform_kept(context, "kjit_top_k", KA_AXES | KA_DESCENDING | KA_BITS, options,
                         build_top_k, &given, &inputs);
}
