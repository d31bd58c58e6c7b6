/* kjit_sort, kjit_sort_pairs, kjit_argsort, kjit_merge: numbers by their digits
 * (lib/library/radix_sort.kir), others and long rows by merges (merge_sort.kir), a few numbers by
 * one block. What is sorted goes from the operands through work memory, one launch after the other,
 * into the results. */
#include "algorithm/algorithm.h"
#include "ir/context.h"

typedef struct sorting {
  const kjit_operand *result, *result_values, *x, *values;
  kjit_function *less;
  bool wants_places;
} sorting;

enum { MOST_BUFFERS = 2 };

typedef struct sort {
  ka_call *call;
  ka_operand x, values, result, result_values;
  bool has_result;  /* not for places alone */
  bool has_values;  /* one for each key */
  bool are_places;  /* those of an argsort */
  bool is_in_place; /* keys or values lie where they are stored */
  bool is_descending;
  ka_operator less; /* where not of numbers */
  uint32_t begin, end;
  kjit_type value_element;
  uint32_t value_bytes;
  uint64_t row, rows;
  uint32_t stage, stages; /* from one buffer to the next */
  uint32_t key_buffers[MOST_BUFFERS], value_buffers[MOST_BUFFERS];
} sort;

/* ---- the shapes of launches ---- */

/* Of a GPU, for keys and values of up to so many bytes together: threads, elements of each, blocks
 * of a multiprocessor at least. */
typedef struct tiling {
  uint32_t bytes, threads, items, blocks;
} tiling;

static const tiling radix_tilings[] = {
  { 4, 256, 23, 3 }, { 8, 384, 16, 2 }, { 12, 256, 12, 3 }, { UINT32_MAX, 256, 10, 2 }
};
static const tiling merge_tilings[] = { { 4, 256, 17, 3 }, { 8, 256, 11, 3 },
                                        { 16, 256, 7, 2 }, { 32, 128, 7, 2 },
                                        { 64, 128, 3, 2 }, { UINT32_MAX, 64, 3, 1 } };

enum {
  HISTOGRAM_THREADS = 256,
  HISTOGRAM_ITEMS = 16,
  HISTOGRAM_BLOCKS = 8,  /* of a multiprocessor */
  BLOCK_ITEMS = 8,       /* of a thread, where one block sorts all */
  BLOCK_MOST = 1024 * 8, /* elements */
  CPU_BLOCK_MOST = 4096,
  CPU_TILE = 2048,
  CPU_PIECES = 4,    /* of a core */
  CPU_LEAST = 16384, /* elements of a piece */
  DIGIT_BITS = 8,
  DIGIT_VALUES = 1 << DIGIT_BITS,
  SPLIT_THREADS = 128,
  SPLIT_LEAST = 512,   /* tiles; fewer are found by their blocks */
  WIDE_COUNT = 1 << 30 /* more have counts of 64 bits */
};

static const tiling *choose(const tiling *rows, uint32_t bytes)
{
  while (rows->bytes < bytes) rows++;
  return rows;
}

static uint64_t divide_up(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

static uint64_t count_pieces(const sort *s)
{
  uint64_t most = (uint64_t)CPU_PIECES * ka_core_count(s->call),
           wanted = divide_up(s->x.count, CPU_LEAST);
  return wanted < most ? wanted : most;
}

static uint32_t key_bytes(const sort *s)
{
  return kj_element_bytes(s->call->context->types, s->x.element);
}

/* ---- operands of a stage ---- */

/* An array that a linear index goes through is handed over as work memory is, so that the kernel of
 * one stage is that of the others, too. */
static const kjit_arg *line_of(const ka_operand *operand)
{
  return !operand->function && operand->axis_count == 1 ? &operand->arrays[0] : NULL;
}

static const char *use_input(ka_kernel *kernel, const sort *s, const ka_operand *operand,
                             const uint32_t *buffers)
{
  kj_arena *arena = &s->call->arena;
  const kjit_arg *line = line_of(operand);
  if (s->stage)
    return kj_format(arena, "bind_back(sort_item, %s)",
                     ka_use_work(kernel, buffers[(s->stage - 1) % MOST_BUFFERS]));
  if (line) return kj_format(arena, "bind_back(sort_item, %s)", ka_use_array(kernel, line));
  return ka_use_input(kernel, operand, KJIT_ANY);
}

static const char *use_output(ka_kernel *kernel, const sort *s, const ka_operand *operand,
                              const uint32_t *buffers)
{
  kj_arena *arena = &s->call->arena;
  const kjit_arg *line = line_of(operand);
  if (s->stage + 1 < s->stages)
    return kj_format(arena, "bind_back(sort_put, %s)",
                     ka_use_work(kernel, buffers[s->stage % MOST_BUFFERS]));
  if (line) return kj_format(arena, "bind_back(sort_put, %s)", ka_use_array(kernel, line));
  return ka_use_output(kernel, operand);
}

static const char *use_places(ka_kernel *kernel, const sort *s)
{
  if (s->rows == 1) return "sort_place";
  return kj_format(&s->call->arena, "bind_back(sort_place_in_row, %s)",
                   ka_use_count(kernel, s->row));
}

/* A kernel with the four funcs of the stage, as the library's funcs take them first. */
static const char *begin_stage(sort *s, ka_kernel *kernel)
{
  bool is_last = s->stage + 1 == s->stages;
  const char *values = "radix_no_value", *put_values = "radix_no_store", *put = "radix_no_store";
  ka_begin_kernel(s->call, "sort", kernel);
  const char *keys = use_input(kernel, s, &s->x, s->key_buffers);
  if (s->are_places && !s->stage) values = use_places(kernel, s);
  else if (s->has_values) values = use_input(kernel, s, &s->values, s->value_buffers);
  if (s->has_result || !is_last) put = use_output(kernel, s, &s->result, s->key_buffers);
  if (s->has_values) put_values = use_output(kernel, s, &s->result_values, s->value_buffers);
  return kj_format(&s->call->arena, "%s, %s, %s, %s", keys, values, put, put_values);
}

static void set_stages(sort *s, uint32_t stages)
{
  s->stages = stages;
  for (uint32_t i = 0; i < MOST_BUFFERS && i + 1 < stages; i++) {
    s->key_buffers[i] = ka_add_work(s->call, s->x.element, s->x.count, false);
    if (s->has_values)
      s->value_buffers[i] = ka_add_work(s->call, s->value_element, s->x.count, false);
  }
}

static const char *yes_or_no(bool yes) { return yes ? "true" : "false"; }

/* "THREADS, N", "BEGIN, END, DESCENDING", and whether there are values. */
static const char *use_bits(ka_kernel *kernel, const sort *s)
{
  const char *begin = ka_use_constant(kernel, s->begin), *end = ka_use_constant(kernel, s->end);
  return kj_format(&s->call->arena, "%s, %s, %s", begin, end, yes_or_no(s->is_descending));
}

/* ---- by digits ---- */

static void sort_rows(sort *s)
{
  ka_kernel kernel;
  uint32_t threads = 1, items = CPU_BLOCK_MOST;
  if (!ka_is_cpu(s->call)) {
    threads = 32;
    items = BLOCK_ITEMS;
    while (threads * items < s->row) threads *= 2;
  }
  set_stages(s, 1);
  const char *operands = begin_stage(s, &kernel), *row = ka_use_count(&kernel, s->row),
             *n = ka_use_constant(&kernel, items), *bits = use_bits(&kernel, s);
  ka_launch(&kernel, threads, s->rows, "sort_rows(%s, %s, THREADS, %s, %s, %s)", operands, row, n,
            bits, yes_or_no(s->has_values));
}

/* From work memory to where it lay at first. */
static void copy_back(sort *s)
{
  ka_kernel kernel;
  const char *operands = begin_stage(s, &kernel), *count = ka_use_count(&kernel, s->x.count);
  bool is_cpu = ka_is_cpu(s->call);
  uint32_t threads = is_cpu ? 1 : HISTOGRAM_THREADS;
  uint64_t most = (uint64_t)HISTOGRAM_BLOCKS * ka_core_count(s->call),
           blocks = is_cpu ? count_pieces(s) : divide_up(s->x.count, threads);
  ka_launch(&kernel, threads, blocks < most ? blocks : most, "sort_copy(%s, %s, %s)", operands,
            count, yes_or_no(s->has_values));
}

static void sort_digits_gpu(sort *s, uint32_t digits)
{
  const tiling *t =
    choose(radix_tilings, key_bytes(s) + (s->value_bytes <= 8 ? s->value_bytes : 0));
  kjit_type word = s->call->is_wide ? KJIT_U64 : KJIT_U32;
  uint64_t count = s->x.count, tiles = divide_up(count, (uint64_t)t->threads * t->items),
           blocks = divide_up(count, HISTOGRAM_THREADS * HISTOGRAM_ITEMS),
           most = (uint64_t)HISTOGRAM_BLOCKS * ka_core_count(s->call);
  uint32_t work = ka_add_work(s->call, word, (uint64_t)digits * (2 * DIGIT_VALUES + 1) + 1, true),
           status = ka_add_work(s->call, word, 2 * DIGIT_VALUES * tiles, false);
  ka_kernel kernel;
  ka_begin_kernel(s->call, "sort", &kernel);
  const char *keys = use_input(&kernel, s, &s->x, s->key_buffers),
             *n = ka_use_count(&kernel, count), *words = ka_use_work(&kernel, work),
             *tile_words = ka_use_work(&kernel, status),
             *items = ka_use_constant(&kernel, HISTOGRAM_ITEMS), *bits = use_bits(&kernel, s);
  ka_launch(&kernel, HISTOGRAM_THREADS, blocks < most ? blocks : most,
            "sort_histogram(%s, %s, %s, %s, THREADS, %s, %s)", keys, n, words, tile_words, items,
            bits);
  for (s->stage = 0; s->stage < digits; s->stage++) {
    const char *operands = begin_stage(s, &kernel);
    kjit_arg number = kjit_arg_i32((int32_t)s->stage);
    const char *pass = ka_use_value(&kernel, &number);
    n = ka_use_count(&kernel, count);
    words = ka_use_work(&kernel, work);
    tile_words = ka_use_work(&kernel, status);
    items = ka_use_constant(&kernel, t->items);
    bits = use_bits(&kernel, s);
    kernel.blocks = t->blocks;
    ka_launch(&kernel, t->threads, tiles, "sort_pass(%s, %s, %s, %s, %s, THREADS, %s, %s, %s)",
              operands, n, pass, words, tile_words, items, bits, yes_or_no(s->has_values));
  }
}

static void sort_digits_cpu(sort *s, uint32_t digits)
{
  uint64_t count = s->x.count, pieces = count_pieces(s);
  uint32_t counts =
    ka_add_work(s->call, s->call->is_wide ? KJIT_U64 : KJIT_U32, pieces * DIGIT_VALUES, false);
  for (s->stage = 0; s->stage < digits; s->stage++) {
    ka_kernel kernel;
    kjit_arg number = kjit_arg_i32((int32_t)s->stage);
    ka_begin_kernel(s->call, "sort", &kernel);
    const char *keys = use_input(&kernel, s, &s->x, s->key_buffers),
               *n = ka_use_count(&kernel, count), *pass = ka_use_value(&kernel, &number),
               *words = ka_use_work(&kernel, counts), *bits = use_bits(&kernel, s);
    ka_launch(&kernel, 1, pieces, "sort_counts(%s, %s, %s, %s, %s)", keys, n, pass, words, bits);
    const char *operands = begin_stage(s, &kernel);
    n = ka_use_count(&kernel, count);
    pass = ka_use_value(&kernel, &number);
    words = ka_use_work(&kernel, counts);
    bits = use_bits(&kernel, s);
    ka_launch(&kernel, 1, pieces, "sort_scatter(%s, %s, %s, %s, %s, %s)", operands, n, pass, words,
              bits, yes_or_no(s->has_values));
  }
}

static void sort_digits(sort *s)
{
  uint32_t digits = (uint32_t)divide_up(s->end - s->begin, DIGIT_BITS);
  bool goes_back = digits == 1 && s->is_in_place;
  set_stages(s, digits + goes_back);
  if (ka_is_cpu(s->call)) sort_digits_cpu(s, digits);
  else sort_digits_gpu(s, digits);
  if (goes_back) copy_back(s);
}

/* ---- by comparison ---- */

static const char *use_less(ka_kernel *kernel, const sort *s)
{
  kj_arena *arena = &s->call->arena;
  if (!s->less.function)
    return kj_format(arena, "bind_back(sort_numbers, %s)", use_bits(kernel, s));
  const char *less = ka_use_operator(kernel, &s->less, KJIT_BOOL);
  return s->is_descending ? kj_format(arena, "bind_back(sort_reversed, %s)", less) : less;
}

/* Where the tiles of the next merge start in their runs; splits is work memory. */
static void find_splits(sort *s, uint32_t splits, uint64_t tiles, uint64_t tile, uint64_t run)
{
  ka_kernel kernel;
  ka_begin_kernel(s->call, "sort", &kernel);
  const char *keys = use_input(&kernel, s, &s->x, s->key_buffers), *less = use_less(&kernel, s),
             *n = ka_use_count(&kernel, s->x.count), *row = ka_use_count(&kernel, s->row),
             *width = ka_use_count(&kernel, run), *words = ka_use_work(&kernel, splits),
             *size = ka_use_constant(&kernel, (int64_t)tile);
  ka_launch(&kernel, SPLIT_THREADS, divide_up(tiles, SPLIT_THREADS),
            "merge_sort_splits(%s, %s, %s, %s, %s, %s, %s)", keys, less, n, row, width, words,
            size);
}

static void sort_by_merges(sort *s)
{
  uint32_t bytes = key_bytes(s), stages = 1;
  tiling t = *choose(merge_tilings, bytes);
  bool is_cpu = ka_is_cpu(s->call);
  if (is_cpu) t = (tiling){ .threads = 1, .items = CPU_TILE };
  uint64_t tile = (uint64_t)t.threads * t.items, tiles = s->rows * divide_up(s->row, tile);
  bool is_split = !is_cpu && tiles >= SPLIT_LEAST;
  while (tile << (stages - 1) < s->row) stages++;
  set_stages(s, stages);
  uint32_t splits = ka_add_work(s->call, s->call->is_wide ? KJIT_I64 : KJIT_I32,
                                is_split && stages > 1 ? tiles : 1, false);
  for (s->stage = 0; s->stage < stages; s->stage++) {
    ka_kernel kernel;
    uint64_t length = s->stage ? tile << (s->stage - 1) : 0; /* of a sorted run */
    if (is_split && s->stage) find_splits(s, splits, tiles, tile, length);
    const char *operands = begin_stage(s, &kernel), *less = use_less(&kernel, s),
               *n = ka_use_count(&kernel, s->x.count), *row = ka_use_count(&kernel, s->row),
               *items = ka_use_constant(&kernel, t.items), *pairs = yes_or_no(s->has_values);
    kernel.blocks = t.blocks;
    if (!s->stage) {
      ka_launch(&kernel, t.threads, tiles, "merge_sort_tiles(%s, %s, %s, %s, THREADS, %s, %s)",
                operands, less, n, row, items, pairs);
      continue;
    }
    const char *run = ka_use_count(&kernel, length), *words = ka_use_work(&kernel, splits);
    ka_launch(&kernel, t.threads, is_cpu ? count_pieces(s) : tiles,
              "merge_sort_pass(%s, %s, %s, %s, %s, %s, %s, THREADS, %s, %s)", operands, less, n,
              row, run, words, yes_or_no(is_split), items, pairs);
  }
}

/* ---- the call ---- */

static bool is_number(const sort *s)
{
  switch (ki_type(s->call->context->types, s->x.element)->class_) {
  case KJ_CLASS_BOOL:
  case KJ_CLASS_SIGNED:
  case KJ_CLASS_UNSIGNED:
  case KJ_CLASS_FLOAT: return true;
  default: return false;
  }
}

static void read_order(sort *s, const sorting *given)
{
  ka_call *call = s->call;
  const kjit_algorithm_options *options = &call->options;
  s->is_descending = options->flags & KJIT_ALGORITHM_DESCENDING;
  if (given->less) {
    kjit_operator less = kjit_operator_function(given->less);
    ka_read_operator(call, &less, &s->less);
    if (options->begin_bit || options->end_bit)
      ka_fail(call, KJIT_ERROR_ARGUMENT,
              "options.begin_bit and end_bit are for sorts without `less`");
    return;
  }
  if (!is_number(s))
    ka_fail(call, KJIT_ERROR_TYPE, "elements of type %s have no order: `less` gives one",
            ka_type_text(call, s->x.element));
  uint32_t bits = 8 * key_bytes(s);
  s->begin = options->begin_bit;
  s->end = options->end_bit ? options->end_bit : bits;
  if (s->begin >= s->end || s->end > bits)
    ka_fail(call, KJIT_ERROR_ARGUMENT, "bits %u to %u: `x` has elements of %u bits", s->begin,
            s->end, bits);
}

/* The sorted axis becomes the last one. */
static void arrange(sort *s)
{
  ka_call *call = s->call;
  uint32_t rank = s->x.rank, axis = rank ? rank - 1 : 0, axes[KJ_MAX_RANK], count = 0;
  if (call->options.axes) {
    uint32_t given = ka_read_axes(call, rank);
    if (!given || given & (given - 1))
      ka_fail(call, KJIT_ERROR_ARGUMENT, "options.axes: a sort is along one axis");
    axis = (uint32_t)__builtin_ctz(given);
  }
  for (uint32_t i = 0; i < rank; i++)
    if (i != axis) axes[count++] = i;
  if (rank) axes[count] = axis;
  s->row = rank ? (uint64_t)s->x.shape[axis] : 1;
  s->rows = s->row ? s->x.count / s->row : 0;
  ka_arrange(call, &s->x, axes, 1, &rank);
  if (s->has_result) ka_arrange(call, &s->result, axes, 1, &rank);
  if (s->has_values && !s->are_places) ka_arrange(call, &s->values, axes, 1, &rank);
  if (s->has_values) ka_arrange(call, &s->result_values, axes, 1, &rank);
}

static void check_shape(sort *s, const ka_operand *operand)
{
  bool is_same = operand->rank == s->x.rank;
  for (uint32_t i = 0; is_same && i < s->x.rank; i++) is_same = operand->shape[i] == s->x.shape[i];
  if (!is_same)
    ka_fail(s->call, KJIT_ERROR_ARGUMENT, "`%s` has to have the shape of `x`", operand->name);
}

static void check_element(const sort *s, const ka_operand *result, kjit_type element)
{
  if (!result->function && result->element != element)
    ka_fail(s->call, KJIT_ERROR_TYPE, "`%s` has elements of type %s: expected %s", result->name,
            ka_type_text(s->call, result->element), ka_type_text(s->call, element));
}

static void read_result(sort *s, const char *name, const kjit_operand *given, ka_operand *result)
{
  ka_read_output(s->call, name, given, result);
  check_shape(s, result);
}

static void check_place(sort *s, const ka_operand *result, const ka_operand *own,
                        const ka_operand *other)
{
  ka_check_overlap(s->call, result, own, true);
  if (other) ka_check_overlap(s->call, result, other, false);
  if (!result->function && !own->function && result->view.address == own->view.address)
    s->is_in_place = true;
}

static bool is_integer(const sort *s, kjit_type type)
{
  ki_type_class class_ = ki_type(s->call->context->types, type)->class_;
  return class_ == KJ_CLASS_SIGNED || class_ == KJ_CLASS_UNSIGNED;
}

static void read_places(sort *s, const sorting *given)
{
  s->has_values = s->are_places = true;
  read_result(s, "result", given->result, &s->result_values);
  if (!s->result_values.function && !is_integer(s, s->result_values.element))
    ka_fail(s->call, KJIT_ERROR_TYPE, "`result` has elements of type %s: positions are integers",
            ka_type_text(s->call, s->result_values.element));
  ka_check_overlap(s->call, &s->result_values, &s->x, false);
  s->value_element = s->call->is_wide ? KJIT_I64 : KJIT_I32;
}

static void read_pairs(sort *s, const sorting *given)
{
  s->has_result = true;
  read_result(s, "result", given->result, &s->result);
  check_element(s, &s->result, s->x.element);
  if (!given->values) {
    check_place(s, &s->result, &s->x, NULL);
    return;
  }
  s->has_values = true;
  s->value_element = s->values.element;
  read_result(s, "result_values", given->result_values, &s->result_values);
  check_element(s, &s->result_values, s->value_element);
  check_place(s, &s->result, &s->x, &s->values);
  check_place(s, &s->result_values, &s->values, &s->x);
  ka_check_overlap(s->call, &s->result_values, &s->result, false);
}

static bool describe_results(sort *s, const sorting *given)
{
  const ka_operand *x = &s->x;
  if (given->wants_places) return ka_describe(s->call, 0, KJIT_I64, x->rank, x->shape);
  bool is_asked = ka_describe(s->call, 0, x->element, x->rank, x->shape);
  return given->values ? ka_describe(s->call, 1, s->values.element, x->rank, x->shape) : is_asked;
}

static void build_sort(ka_call *call, const void *data)
{
  const sorting *given = data;
  sort s = { .call = call };
  ka_read_input(call, "x", given->x, &s.x);
  if (given->values) {
    ka_read_input(call, "values", given->values, &s.values);
    check_shape(&s, &s.values);
  }
  if (describe_results(&s, given)) return;
  read_order(&s, given);
  if (s.x.count >= WIDE_COUNT) call->is_wide = true;
  if (given->wants_places) read_places(&s, given);
  else read_pairs(&s, given);
  if (s.has_values) s.value_bytes = kj_element_bytes(call->context->types, s.value_element);
  arrange(&s);
  ka_choose_device(call);
  if (!s.x.count) return;
  if (s.rows > INT32_MAX)
    ka_fail(call, KJIT_ERROR_UNSUPPORTED, "more than %d rows at a time", INT32_MAX);
  uint64_t most = ka_is_cpu(call) ? CPU_BLOCK_MOST : BLOCK_MOST;
  if (s.less.function) sort_by_merges(&s);
  else if (s.row <= most) sort_rows(&s);
  else if (s.rows == 1) sort_digits(&s);
  else sort_by_merges(&s);
}

/* ---- merge ---- */

typedef struct merging {
  const kjit_operand *result, *x, *y;
  kjit_function *less;
} merging;

static void check_line(ka_call *call, const ka_operand *operand)
{
  if (operand->rank != 1)
    ka_fail(call, KJIT_ERROR_ARGUMENT, "`%s` has %u axes: a merge is of one", operand->name,
            operand->rank);
}

static void launch_merge(sort *s, const ka_operand *y)
{
  ka_call *call = s->call;
  ka_kernel kernel;
  uint64_t count = s->x.count + y->count;
  bool is_cpu = ka_is_cpu(call);
  tiling t = *choose(merge_tilings, key_bytes(s));
  if (is_cpu) t = (tiling){ .threads = 1, .items = CPU_TILE };
  uint64_t tiles = divide_up(count, (uint64_t)t.threads * t.items),
           most = (uint64_t)CPU_PIECES * ka_core_count(call);
  ka_begin_kernel(call, "sort", &kernel);
  kernel.blocks = t.blocks;
  const char *first = ka_use_input(&kernel, &s->x, KJIT_ANY),
             *second = ka_use_input(&kernel, y, KJIT_ANY),
             *put = ka_use_output(&kernel, &s->result), *less = use_less(&kernel, s),
             *n = ka_use_count(&kernel, count), *middle = ka_use_count(&kernel, s->x.count),
             *items = ka_use_constant(&kernel, t.items);
  ka_launch(&kernel, t.threads, is_cpu && most < tiles ? most : tiles,
            "merge_two(bind_back(sort_either, %s, %s, %s), radix_no_value, %s, radix_no_store, %s, "
            "%s, %s, THREADS, %s, false)",
            first, second, middle, put, less, n, middle, items);
}

static void build_merge(ka_call *call, const void *data)
{
  const merging *given = data;
  const sorting order = { .less = given->less };
  uint32_t one = 1, axis = 0;
  sort s = { .call = call };
  ka_operand y;
  ka_read_input(call, "x", given->x, &s.x);
  ka_read_input(call, "y", given->y, &y);
  check_line(call, &s.x);
  check_line(call, &y);
  if (s.x.element != y.element)
    ka_fail(call, KJIT_ERROR_TYPE, "`x` has elements of type %s, and `y` of type %s",
            ka_type_text(call, s.x.element), ka_type_text(call, y.element));
  int64_t count = (int64_t)(s.x.count + y.count);
  if (ka_describe(call, 0, s.x.element, 1, &count)) return;
  read_order(&s, &order);
  ka_read_output(call, "result", given->result, &s.result);
  check_line(call, &s.result);
  if (s.result.shape[0] != count)
    ka_fail(call, KJIT_ERROR_ARGUMENT, "`result` has to have as many elements as `x` and `y`");
  check_element(&s, &s.result, s.x.element);
  ka_check_overlap(call, &s.result, &s.x, false);
  ka_check_overlap(call, &s.result, &y, false);
  ka_arrange(call, &s.x, &axis, 1, &one);
  ka_arrange(call, &y, &axis, 1, &one);
  ka_arrange(call, &s.result, &axis, 1, &one);
  ka_choose_device(call);
  if (count) launch_merge(&s, &y);
}

/* ---- the functions ---- */

kjit_status kjit_merge(kjit_context *context, const kjit_operand *result, const kjit_operand *x,
                       const kjit_operand *y, kjit_function *less,
                       const kjit_algorithm_options *options)
{
  const merging given = { result, x, y, less };
  return ka_perform(context, "kjit_merge", options, build_merge, &given);
}

kjit_status kjit_sort(kjit_context *context, const kjit_operand *result, const kjit_operand *x,
                      kjit_function *less, const kjit_algorithm_options *options)
{
  const sorting given = { .result = result, .x = x, .less = less };
  return ka_perform(context, "kjit_sort", options, build_sort, &given);
}

static const kjit_operand none = { 0 };

kjit_status kjit_sort_pairs(kjit_context *context, const kjit_operand *result,
                            const kjit_operand *result_values, const kjit_operand *x,
                            const kjit_operand *values, kjit_function *less,
                            const kjit_algorithm_options *options)
{
  const sorting given = { result, result_values, x, values ? values : &none, less, false };
  return ka_perform(context, "kjit_sort_pairs", options, build_sort, &given);
}

kjit_status kjit_argsort(kjit_context *context, const kjit_operand *result, const kjit_operand *x,
                         kjit_function *less, const kjit_algorithm_options *options)
{
  const sorting given = { .result = result, .x = x, .less = less, .wants_places = true };
  return ka_perform(context, "kjit_argsort", options, build_sort, &given);
}
