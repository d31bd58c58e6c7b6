/* Implements kjit_set_union, kjit_set_intersection, kjit_set_difference and
 * kjit_set_symmetric_difference, whose kernels are in sets.kir of lib/library. A GPU needs one
 * launch; for many tiles, another launch precedes it and finds where the tiles begin. The CPU needs
 * two launches: the first counts the results of each chunk, and the second writes them. */
#include "algorithm/algorithm.h"
#include "ir/context.h"

typedef enum set_kind {
  SET_UNION,
  SET_INTERSECTION,
  SET_DIFFERENCE,
  SET_SYMMETRIC,
  SET_KINDS
} set_kind;

static const char *const kind_names[SET_KINDS] = {
  [SET_UNION] = "SET_UNION",
  [SET_INTERSECTION] = "SET_INTERSECTION",
  [SET_DIFFERENCE] = "SET_DIFFERENCE",
  [SET_SYMMETRIC] = "SET_SYMMETRIC",
};

typedef struct set_given {
  const kjit_operand *result, *count, *x, *y;
  kjit_function *less;
  set_kind kind;
} set_given;

typedef struct sets {
  ka_call *call;
  set_kind kind;
  ka_operand result, count, x, y;
  ka_operator less; /* used if the application passes `less` */
  uint64_t n, room;
} sets;

/* ---- the shape of a launch ---- */

/* A tile on a GPU for elements of at most `bytes` bytes: number of threads, elements for each
 * thread, and minimum number of blocks for each multiprocessor. */
typedef struct tiling {
  uint32_t bytes, threads, items, blocks;
} tiling;

static const tiling tilings[] = { { 4, 256, 23, 5 }, { 8, 256, 11, 3 }, { 16, 256, 7, 2 },
                                  { 32, 128, 7, 2 }, { 64, 128, 3, 2 }, { UINT32_MAX, 64, 3, 1 } };

enum {
  CPU_PIECES = 4,    /* number of chunks for each core */
  CPU_LEAST = 16384, /* minimum number of elements in a chunk */
  SPLIT_THREADS = 128,
  /* if there are fewer tiles than this, each block itself finds its tile's start */
  SPLIT_LEAST = 512
};

static tiling choose_tiling(const sets *s)
{
  const tiling *t = tilings;
  if (ka_is_cpu(s->call)) return (tiling){ .threads = 1, .items = 1 };
  while (t->bytes < kj_element_bytes(s->call->context->types, s->x.element)) t++;
  return *t;
}

static uint64_t count_blocks(const sets *s, const tiling *t)
{
  uint64_t blocks = ka_is_cpu(s->call)
                      ? ka_least(s->n / CPU_LEAST, CPU_PIECES * (uint64_t)ka_core_count(s->call))
                      : ka_divide_up(s->n, (uint64_t)t->threads * t->items - 1);
  return ka_most(blocks, 1);
}

/* ---- kernels ---- */

/* Source fragments that all kernels share. */
typedef struct texts {
  ka_kernel kernel;
  const char *load, *less, *n, *middle;
} texts;

static const char *use_less(ka_kernel *kernel, const sets *s)
{
  const char *less =
    s->less.function ? ka_use_operator(kernel, &s->less, KJIT_BOOL) : "search_less";
  bool is_descending = s->call->options.flags & KJIT_ALGORITHM_DESCENDING;
  return is_descending ? kj_format(&s->call->arena, "bind_back(set_reversed, %s)", less) : less;
}

static void begin(const sets *s, texts *t)
{
  ka_begin_kernel(s->call, "sets", &t->kernel);
  const char *x = ka_use_input(&t->kernel, &s->x, KJIT_ANY),
             *y = ka_use_input(&t->kernel, &s->y, KJIT_ANY);
  t->n = ka_use_count(&t->kernel, s->n);
  t->middle = ka_use_count(&t->kernel, s->x.count);
  t->load = kj_format(&s->call->arena, "bind_back(set_either, %s, %s, %s)", x, y, t->middle);
  t->less = use_less(&t->kernel, s);
}

static void add_totals(const sets *s, uint32_t work, uint64_t pieces)
{
  texts t;
  begin(s, &t);
  const char *totals = ka_use_work(&t.kernel, work);
  ka_launch(&t.kernel, 1, pieces, "set_totals(%s, %s, %s, %s, %s, %s)", t.load, t.less, t.n,
            t.middle, totals, kind_names[s->kind]);
}

static void add_splits(const sets *s, uint32_t work, const tiling *shape, uint64_t tiles)
{
  texts t;
  begin(s, &t);
  const char *splits = ka_use_work(&t.kernel, work),
             *tile_threads = ka_use_constant(&t.kernel, shape->threads),
             *items = ka_use_constant(&t.kernel, shape->items);
  ka_launch(&t.kernel, SPLIT_THREADS, ka_divide_up(tiles + 1, SPLIT_THREADS),
            "set_splits(%s, %s, %s, %s, %s, %s, %s)", t.load, t.less, t.n, t.middle, splits,
            tile_threads, items);
}

static void add_steps(const sets *s)
{
  ka_call *call = s->call;
  bool is_cpu = ka_is_cpu(call);
  tiling shape = choose_tiling(s);
  uint64_t blocks = count_blocks(s, &shape), words = call->is_wide ? 2 : 1;
  bool is_split = !is_cpu && blocks >= SPLIT_LEAST;
  uint32_t work = is_cpu ? ka_add_work(call, KJIT_I64, blocks, false)
                         : ka_add_work(call, KJIT_U64,
                                       16 + words * (blocks + ka_divide_up(blocks, 32)), true),
           splits = ka_add_work(call, call->is_wide ? KJIT_I64 : KJIT_I32,
                                is_split ? 2 * (blocks + 1) : 1, false);
  texts t;
  if (is_cpu && s->n) add_totals(s, work, blocks);
  if (is_split) add_splits(s, splits, &shape, blocks);
  begin(s, &t);
  const char *store = ka_use_output(&t.kernel, &s->result),
             *count = ka_use_output(&t.kernel, &s->count), *room = ka_use_count(&t.kernel, s->room),
             *words_name = ka_use_work(&t.kernel, work),
             *splits_name = ka_use_work(&t.kernel, splits),
             *items = ka_use_constant(&t.kernel, shape.items);
  t.kernel.blocks = shape.blocks;
  ka_launch(&t.kernel, shape.threads, blocks,
            "set_all(%s, %s, bind_back(select_put_count, %s), %s, %s, %s, %s, %s, %s, %s, %s, "
            "THREADS, %s)",
            t.load, store, count, t.less, t.n, t.middle, room, words_name, splits_name,
            kind_names[s->kind], is_split ? "true" : "false", items);
}

/* ---- the call ---- */

static void read_line(sets *s, const char *name, const kjit_operand *given, ka_operand *operand)
{
  ka_read_input(s->call, name, given, operand);
  if (operand->rank != 1)
    ka_fail(s->call, KJIT_ERROR_ARGUMENT, "`%s` has %u axes; a sorted array must have one", name,
            operand->rank);
}

static void read_less(sets *s, kjit_function *less)
{
  kjit_type type = s->x.element;
  if (less) {
    kjit_operator given = kjit_operator_function(less);
    ka_read_operator(s->call, &given, &s->less);
    ka_check_decides(s->call, less, type, KA_ORDER);
  } else if (!ki_is_scalar(type) || type >= KJIT_C64) {
    ka_fail(s->call, KJIT_ERROR_TYPE, "elements of type %s have no order; pass `less`",
            ka_type_text(s->call, type));
  }
}

/* Returns the maximum number of elements of the result. */
static uint64_t find_room(const sets *s)
{
  switch (s->kind) {
  case SET_INTERSECTION: return ka_least(s->x.count, s->y.count);
  case SET_DIFFERENCE: return s->x.count;
  default: return s->n;
  }
}

static void read_output(sets *s, const char *name, const kjit_operand *given, ka_operand *operand,
                        uint64_t room)
{
  ka_read_output(s->call, name, given, operand);
  if (operand->count < room)
    ka_fail(s->call, KJIT_ERROR_ARGUMENT, "`%s` needs %llu elements; it has %llu", name,
            (unsigned long long)room, (unsigned long long)operand->count);
  ka_check_overlap(s->call, operand, &s->x, false);
  ka_check_overlap(s->call, operand, &s->y, false);
}

static void check_outputs(const sets *s)
{
  ka_call *call = s->call;
  const ka_operand *result = &s->result, *count = &s->count;
  if (!result->function && result->element != s->x.element)
    ka_fail(call, KJIT_ERROR_TYPE, "`result` has elements of type %s: expected %s",
            ka_type_text(call, result->element), ka_type_text(call, s->x.element));
  if (!count->function && (!ka_is_integer(call, count->element) || count->element == KJIT_BOOL))
    ka_fail(call, KJIT_ERROR_TYPE, "`count` has elements of type %s; expected an integer type",
            ka_type_text(call, count->element));
  ka_check_positions(call, count, s->room + 1);
  ka_check_overlap(call, count, result, false);
}

static void build_set(ka_call *call, const void *data)
{
  const set_given *given = data;
  uint32_t axes[KJ_MAX_RANK];
  sets *s = KJ_NEW(&call->arena, sets);
  *s = (sets){ .call = call, .kind = given->kind };
  read_line(s, "x", given->x, &s->x);
  read_line(s, "y", given->y, &s->y);
  if (s->x.element != s->y.element)
    ka_fail(call, KJIT_ERROR_TYPE, "`x` has elements of type %s, but `y` has elements of type %s",
            ka_type_text(call, s->x.element), ka_type_text(call, s->y.element));
  read_less(s, given->less);
  s->n = s->x.count + s->y.count;
  s->room = find_room(s);
  int64_t room = (int64_t)s->room;
  if (ka_describe(call, 0, s->x.element, 1, &room)) {
    (void)ka_describe(call, 1, KJIT_I64, 0, NULL);
    return;
  }
  call->is_wide = call->is_wide || s->n >= (uint64_t)INT32_MAX - (1 << 20);
  read_output(s, "result", given->result, &s->result, s->room);
  read_output(s, "count", given->count, &s->count, 1);
  check_outputs(s);
  for (uint32_t i = 0; i < KJ_MAX_RANK; i++) axes[i] = i;
  ka_operand *all[] = { &s->x, &s->y, &s->result, &s->count };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    ka_arrange(call, all[i], axes, 1, &all[i]->rank);
  ka_choose_device(call);
  add_steps(s);
}

static kjit_status perform(kjit_context *context, const char *name, const set_given *given,
                           const kjit_algorithm_options *options)
{
  const ka_inputs inputs = { { given->result, given->count, given->x, given->y },
                             .function = given->less };
  return ka_perform_kept(context, name, KA_DESCENDING, options, build_set, given, &inputs);
}

/* ---- the functions ---- */

kjit_status kjit_set_union(kjit_context *context, const kjit_operand *result,
                           const kjit_operand *count, const kjit_operand *x, const kjit_operand *y,
                           kjit_function *less, const kjit_algorithm_options *options)
{
  const set_given given = { result, count, x, y, less, SET_UNION };
  return perform(context, "kjit_set_union", &given, options);
}

kjit_status kjit_set_intersection(kjit_context *context, const kjit_operand *result,
                                  const kjit_operand *count, const kjit_operand *x,
                                  const kjit_operand *y, kjit_function *less,
                                  const kjit_algorithm_options *options)
{
  const set_given given = { result, count, x, y, less, SET_INTERSECTION };
  return perform(context, "kjit_set_intersection", &given, options);
}

kjit_status kjit_set_difference(kjit_context *context, const kjit_operand *result,
                                const kjit_operand *count, const kjit_operand *x,
                                const kjit_operand *y, kjit_function *less,
                                const kjit_algorithm_options *options)
{
  const set_given given = { result, count, x, y, less, SET_DIFFERENCE };
  return perform(context, "kjit_set_difference", &given, options);
}

kjit_status kjit_set_symmetric_difference(kjit_context *context, const kjit_operand *result,
                                          const kjit_operand *count, const kjit_operand *x,
                                          const kjit_operand *y, kjit_function *less,
                                          const kjit_algorithm_options *options)
{
  const set_given given = { result, count, x, y, less, SET_SYMMETRIC };
  return perform(context, "kjit_set_symmetric_difference", &given, options);
}
