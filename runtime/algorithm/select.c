/* Implements kjit_select, kjit_nonzero, kjit_unique, kjit_partition and related calls. The kernels
 * are in lib/library/select.kir and partition.kir. A GPU needs one launch. On the CPU a first
 * launch counts the elements to keep in each chunk, and a second launch writes these elements. */
#include "algorithm/algorithm.h"

/* Arguments of a public function. Arguments that the function does not have are NULL. */
typedef struct selection {
  const kjit_operand *result, *second, *rest, *result_values, *lengths, *starts, *count, *x,
    *values, *flags;
  kjit_function *equal;
  bool has_heads;             /* the call keeps one element of each run of equal elements */
  bool has_rest, has_lengths; /* whether the call has the results `rest` and `lengths` */
  bool is_in_three; /* true for a partition into three classes; the operand flags then contains the
                       class of each element */
} selection;

typedef struct parts {
  ka_call *call;
  const selection *given;
  ka_operand result, second, rest, result_values, lengths, starts, count, x, values, flags;
  uint32_t bytes; /* size of an element in a tile */
  uint64_t n;
} parts;

/* ---- the shape of a launch ---- */

/* Best values, measured on an H200 and on CPU cores that share memory. */
enum {
  GPU_ACCESS_BYTES = 16, /* bytes that one thread reads at once from adjacent elements */
  GPU_VALUE_BYTES = 64,  /* size of the elements that a thread holds at once */
  GPU_MOST_ITEMS = 16,
  GPU_MANY = 1 << 22,   /* number of elements above which tiles are large */
  GPU_LARGE_TILE = 512, /* number of threads in a block if a func decides for each element whether
                         * to keep it */
  GPU_CHUNKS = 2,       /* number of chunks in a large tile; one chunk at a time is in registers */
  GPU_RUN_TILE = 256,   /* threads per block if adjacent elements are compared */
  GPU_RUN_CHUNKS = 3,
  GPU_BLOCKS = 3, /* blocks per multiprocessor with large tiles */
  GPU_SMALL_TILE = 256,
  GPU_WIDE_ELEMENT = 32, /* element size in bytes above which a block processes fewer elements */
  GPU_WIDE_TILE = 128,
  CPU_PIECES = 4,   /* number of chunks for each core */
  CPU_LEAST = 16384 /* minimum number of elements in a chunk */
};

typedef struct tiling {
  uint32_t threads, items, neighbours, chunks;
  uint64_t blocks;
} tiling;

static tiling choose_tiling(const parts *p)
{
  tiling t = { 1, 1, 1, 1, 1 };
  if (ka_is_cpu(p->call)) {
    t.blocks =
      ka_most(ka_least(p->n / CPU_LEAST, CPU_PIECES * (uint64_t)ka_core_count(p->call)), 1);
    return t;
  }
  t.items = (uint32_t)ka_most(ka_least(GPU_VALUE_BYTES / p->bytes, GPU_MOST_ITEMS), 1);
  while (t.neighbours < t.items && 2 * t.neighbours * p->bytes <= GPU_ACCESS_BYTES)
    t.neighbours *= 2;
  bool is_large = p->n >= GPU_MANY, has_heads = p->given->has_heads;
  t.threads = !is_large ? GPU_SMALL_TILE : has_heads ? GPU_RUN_TILE : GPU_LARGE_TILE;
  if (p->bytes > GPU_WIDE_ELEMENT) t.threads = GPU_WIDE_TILE;
  if (is_large && !p->given->is_in_three) t.chunks = has_heads ? GPU_RUN_CHUNKS : GPU_CHUNKS;
  /* the elements and indices of a tile with several chunks are in shared memory */
  if (t.chunks > 1)
    t.threads = ka_fit_threads(p->call, t.threads,
                               (uint64_t)t.items * t.chunks * (p->bytes + sizeof(uint16_t)));
  t.blocks = ka_most(ka_divide_up(p->n, (uint64_t)t.threads * t.items * t.chunks), 1);
  return t;
}

/* Returns the size of the look-back data. Each tile passes one count to the next tile, or two
 * counts for runs and for a partition into three classes. */
static uint64_t look_back_size(const parts *p, uint64_t tiles)
{
  bool are_two = p->given->has_lengths || p->given->is_in_three;
  uint64_t words = (are_two ? 2 : 1) * (p->call->is_wide ? 2 : 1);
  return 16 + words * (tiles + ka_divide_up(tiles, 32));
}

/* ---- kernels ---- */

/* Kernel text that all kernels share. */
typedef struct texts {
  ka_kernel kernel;
  const char *load, *keep, *heads, *pass;
} texts;

/* Begins the kernel text. If the elements of x are flags, the values are their indices. */
static void begin(const parts *p, texts *t)
{
  ka_call *call = p->call;
  const selection *given = p->given;
  ka_begin_kernel(call, given->is_in_three ? "partition" : "select", &t->kernel);
  t->heads = given->has_heads ? "true" : "false";
  t->pass = given->has_lengths ? "SELECT_LINKED"
            : given->values    ? "SELECT_BOTH"
            : given->x         ? "SELECT_VALUE"
                               : "SELECT_POSITION";
  t->load = given->x ? ka_use_input(&t->kernel, &p->x, KJIT_ANY) : "select_place";
  if (given->is_in_three) {
    const char *classes = ka_use_input(&t->kernel, &p->flags, KJIT_ANY);
    t->keep = kj_format(&call->arena, "bind_back(partition_class, %s)", classes);
  } else if (given->has_heads) {
    const ka_operator equal = { .function = given->equal };
    t->keep = given->equal ? ka_use_operator(&t->kernel, &equal, KJIT_ANY) : "select_equal";
  } else {
    const char *flags = ka_use_input(&t->kernel, &p->flags, KJIT_ANY);
    t->keep =
      kj_format(&call->arena, "bind_back(%s, %s)",
                p->flags.element == KJIT_BOOL ? "select_by_flag" : "select_by_number", flags);
  }
}

static void add_totals(const parts *p, uint32_t work, uint64_t pieces)
{
  texts t;
  begin(p, &t);
  const char *n = ka_use_count(&t.kernel, p->n), *totals = ka_use_work(&t.kernel, work);
  if (p->given->is_in_three)
    ka_launch(&t.kernel, 1, pieces, "partition_totals(%s, %s, %s)", t.keep, n, totals);
  else
    ka_launch(&t.kernel, 1, pieces, "select_totals(%s, %s, %s, %s, %s, %s)", t.load, t.keep, n,
              totals, t.heads, t.pass);
}

/* Writes the funcs that store the kept elements, the other elements, and the count. */
static void use_outputs(const parts *p, texts *t, const char *n, const char **store,
                        const char **store_rest, const char **done)
{
  kj_arena *arena = &p->call->arena;
  const selection *given = p->given;
  const char *put = ka_use_output(&t->kernel, &p->result),
             *count = ka_use_output(&t->kernel, &p->count);
  *store = put;
  *store_rest = given->has_rest ? ka_use_output(&t->kernel, &p->rest) : "select_drop";
  *done = kj_format(arena, "bind_back(select_put_count, %s)", count);
  if (given->values) {
    const char *put_value = ka_use_output(&t->kernel, &p->result_values),
               *value = ka_use_input(&t->kernel, &p->values, KJIT_ANY);
    *store = kj_format(arena, "bind_back(select_put_both, %s, %s, %s)", put, put_value, value);
  }
  if (given->has_lengths) {
    const char *length = ka_use_output(&t->kernel, &p->lengths),
               *start = given->starts ? ka_use_output(&t->kernel, &p->starts) : "select_drop";
    *store = kj_format(arena, "bind_back(select_put_run, %s, %s, %s)", put, length, start);
    *done = kj_format(arena, "bind_back(select_end_runs, %s, %s, %s)", count, length, n);
  }
}

static void add_partition(const parts *p, texts *t, const tiling *s, uint32_t work)
{
  ka_kernel *kernel = &t->kernel;
  const char *n = ka_use_count(kernel, p->n), *words = ka_use_work(kernel, work),
             *first = ka_use_output(kernel, &p->result),
             *second = ka_use_output(kernel, &p->second), *rest = ka_use_output(kernel, &p->rest),
             *counts = ka_use_output(kernel, &p->count), *items = ka_use_constant(kernel, s->items),
             *neighbours = ka_use_constant(kernel, s->neighbours);
  ka_launch(kernel, s->threads, s->blocks,
            "partition_all(%s, %s, %s, %s, %s, bind_back(partition_put_counts, %s), %s, %s, "
            "THREADS, %s, %s)",
            t->load, t->keep, first, second, rest, counts, n, words, items, neighbours);
}

static void add_steps(const parts *p)
{
  ka_call *call = p->call;
  tiling s = choose_tiling(p);
  uint32_t work;
  texts t;
  if (ka_is_cpu(call)) {
    work = ka_add_work(call, KJIT_I64, 2 * s.blocks, false);
    if (p->n) add_totals(p, work, s.blocks);
  } else {
    work = ka_add_work(call, KJIT_U64, look_back_size(p, s.blocks), true);
  }
  begin(p, &t);
  if (p->given->is_in_three) {
    add_partition(p, &t, &s, work);
    return;
  }
  const char *n = ka_use_count(&t.kernel, p->n), *name = ka_use_work(&t.kernel, work), *store,
             *store_rest, *done;
  use_outputs(p, &t, n, &store, &store_rest, &done);
  const char *items = ka_use_constant(&t.kernel, s.items),
             *neighbours = ka_use_constant(&t.kernel, s.neighbours),
             *chunks = ka_use_constant(&t.kernel, s.chunks);
  if (s.chunks > 1) t.kernel.blocks = GPU_BLOCKS;
  ka_launch(&t.kernel, s.threads, s.blocks,
            "select_all(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, THREADS, %s, %s, %s)", t.load,
            t.keep, store, store_rest, done, n, name, t.heads, t.pass,
            p->given->has_rest ? "true" : "false", items, neighbours, chunks);
}

/* ---- the call ---- */

static void arrange(ka_call *call, ka_operand *operand)
{
  uint32_t axes[KJ_MAX_RANK];
  for (uint32_t i = 0; i < KJ_MAX_RANK; i++) axes[i] = i;
  ka_arrange(call, operand, axes, 1, &operand->rank);
}

static void read_input(parts *p, const char *name, const kjit_operand *given, ka_operand *operand)
{
  if (!given) return;
  ka_read_input(p->call, name, given, operand);
  if (p->x.name && operand != &p->x && operand->count != p->n)
    ka_fail(p->call, KJIT_ERROR_ARGUMENT, "`%s` and `%s` must have the same number of elements",
            p->x.name, name);
  p->n = operand->count;
}

/* Reads an output. room: minimum number of elements of the output. */
static void read_output(parts *p, const char *name, const kjit_operand *given, ka_operand *operand,
                        uint64_t room)
{
  const ka_operand *inputs[] = { &p->x, &p->values, &p->flags };
  if (!given) return;
  ka_read_output(p->call, name, given, operand);
  if (operand->count < room)
    ka_fail(p->call, KJIT_ERROR_ARGUMENT, "`%s` needs %llu elements; it has %llu", name,
            (unsigned long long)room, (unsigned long long)operand->count);
  for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
    if (inputs[i]->name) ka_check_overlap(p->call, operand, inputs[i], false);
}

static bool describe(const parts *p)
{
  const int64_t n = (int64_t)p->n;
  const selection *given = p->given;
  size_t next = 0;
  if (!p->call->options.results) return false;
  (void)ka_describe(p->call, next++, given->x ? p->x.element : KJIT_I64, 1, &n);
  for (int i = 0; i < given->has_rest + given->is_in_three; i++)
    (void)ka_describe(p->call, next++, p->x.element, 1, &n);
  if (given->values) (void)ka_describe(p->call, next++, p->values.element, 1, &n);
  for (int i = 0; i < 2 && given->has_lengths; i++)
    (void)ka_describe(p->call, next++, KJIT_I64, 1, &n);
  const int64_t two = 2;
  return ka_describe(p->call, next, KJIT_I64, given->is_in_three, &two);
}

/* Checks that a result that receives counts or positions has integer elements. */
static void check_integers(const parts *p, const ka_operand *result)
{
  if (!result->name || result->function) return;
  if (!ka_is_integer(p->call, result->element) || result->element == KJIT_BOOL)
    ka_fail(p->call, KJIT_ERROR_TYPE, "`%s` has elements of type %s; expected integers",
            result->name, ka_type_text(p->call, result->element));
  ka_check_positions(p->call, result, p->n + 1);
}

static void check_results(const parts *p)
{
  const ka_operand *results[] = { &p->result,        &p->second,  &p->rest,  &p->count,
                                  &p->result_values, &p->lengths, &p->starts };
  check_integers(p, &p->count);
  check_integers(p, &p->lengths);
  check_integers(p, &p->starts);
  if (!p->given->x) ka_check_positions(p->call, &p->result, p->n);
  for (size_t i = 0; i < sizeof results / sizeof *results; i++)
    for (size_t k = 0; k < i && results[i]->name; k++)
      if (results[k]->name) ka_check_overlap(p->call, results[i], results[k], false);
}

static void build(ka_call *call, const void *data)
{
  const selection *given = data;
  parts *p = KJ_NEW(&call->arena, parts);
  *p = (parts){ .call = call, .given = given };
  read_input(p, "x", given->x, &p->x);
  read_input(p, "values", given->values, &p->values);
  read_input(p, given->is_in_three ? "classes" : "flags", given->flags, &p->flags);
  if (given->is_in_three && !ka_is_integer(call, p->flags.element))
    ka_fail(call, KJIT_ERROR_TYPE, "`classes` has elements of type %s; expected integers",
            ka_type_text(call, p->flags.element));
  if (given->equal) ka_check_decides(call, given->equal, p->x.element, KA_EQUALITY);
  if (describe(p)) return;
  read_output(p, given->is_in_three ? "first" : "result", given->result, &p->result, p->n);
  read_output(p, "second", given->second, &p->second, p->n);
  read_output(p, "rest", given->rest, &p->rest, p->n);
  read_output(p, "result_values", given->result_values, &p->result_values, p->n);
  read_output(p, "lengths", given->lengths, &p->lengths, p->n);
  read_output(p, "starts", given->starts, &p->starts, p->n);
  if (given->is_in_three) read_output(p, "counts", given->count, &p->count, 2);
  else read_output(p, "count", given->count, &p->count, 1);
  check_results(p);
  ka_operand *all[] = { &p->x,    &p->values, &p->flags,         &p->result,  &p->second,
                        &p->rest, &p->count,  &p->result_values, &p->lengths, &p->starts };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (all[i]->name) arrange(call, all[i]);
  p->bytes = kj_element_bytes(call->context->types, given->x ? p->x.element : p->flags.element);
  ka_choose_device(call);
  add_steps(p);
}

/* ---- the public functions ---- */

/* An operand that must not be NULL. Inputs are always needed; results are not needed if the call
 * only asks for their shapes. */
typedef struct needed {
  const char *name;
  const kjit_operand *operand;
  bool is_result;
} needed;

typedef struct checked {
  const selection *given;
  const needed *all;
  size_t count;
} checked;

static void check_and_build(ka_call *call, const void *data)
{
  const checked *c = data;
  for (size_t i = 0; i < c->count; i++)
    if (!c->all[i].operand && !(call->options.results && c->all[i].is_result))
      ka_fail(call, KJIT_ERROR_MISUSE, "`%s` is NULL", c->all[i].name);
  build(call, c->given);
}

static kjit_status perform(kjit_context *context, const char *name, const selection *given,
                           const needed *all, size_t count, const kjit_algorithm_options *options)
{
  const checked data = { given, all, count };
  const ka_inputs inputs = { { given->result, given->second, given->rest, given->result_values,
                               given->lengths, given->starts, given->count, given->x, given->values,
                               given->flags },
                             .function = given->equal };
  return ka_perform_kept(context, name, 0, options, check_and_build, &data, &inputs);
}

kjit_status kjit_select(kjit_context *context, const kjit_operand *result,
                        const kjit_operand *count, const kjit_operand *x, const kjit_operand *flags,
                        const kjit_algorithm_options *options)
{
  const selection given = { .result = result, .count = count, .x = x, .flags = flags };
  const needed all[] = { { "x", x, false },
                         { "flags", flags, false },
                         { "result", result, true },
                         { "count", count, true } };
  return perform(context, "kjit_select", &given, all, 4, options);
}

kjit_status kjit_partition(kjit_context *context, const kjit_operand *result,
                           const kjit_operand *rest, const kjit_operand *count,
                           const kjit_operand *x, const kjit_operand *flags,
                           const kjit_algorithm_options *options)
{
  const selection given = {
    .result = result, .rest = rest, .count = count, .x = x, .flags = flags, .has_rest = true
  };
  const needed all[] = { { "x", x, false },
                         { "flags", flags, false },
                         { "result", result, true },
                         { "rest", rest, true },
                         { "count", count, true } };
  return perform(context, "kjit_partition", &given, all, 5, options);
}

kjit_status kjit_partition_three(kjit_context *context, const kjit_operand *first,
                                 const kjit_operand *second, const kjit_operand *rest,
                                 const kjit_operand *counts, const kjit_operand *x,
                                 const kjit_operand *classes, const kjit_algorithm_options *options)
{
  const selection given = { .result = first,
                            .second = second,
                            .rest = rest,
                            .count = counts,
                            .x = x,
                            .flags = classes,
                            .has_rest = true,
                            .is_in_three = true };
  const needed all[] = { { "x", x, false },        { "classes", classes, false },
                         { "first", first, true }, { "second", second, true },
                         { "rest", rest, true },   { "counts", counts, true } };
  return perform(context, "kjit_partition_three", &given, all, 6, options);
}

kjit_status kjit_nonzero(kjit_context *context, const kjit_operand *result,
                         const kjit_operand *count, const kjit_operand *x,
                         const kjit_algorithm_options *options)
{
  const selection given = { .result = result, .count = count, .flags = x };
  const needed all[] = { { "x", x, false }, { "result", result, true }, { "count", count, true } };
  return perform(context, "kjit_nonzero", &given, all, 3, options);
}

kjit_status kjit_unique(kjit_context *context, const kjit_operand *result,
                        const kjit_operand *count, const kjit_operand *x, kjit_function *equal,
                        const kjit_algorithm_options *options)
{
  const selection given = {
    .result = result, .count = count, .x = x, .equal = equal, .has_heads = true
  };
  const needed all[] = { { "x", x, false }, { "result", result, true }, { "count", count, true } };
  return perform(context, "kjit_unique", &given, all, 3, options);
}

kjit_status kjit_unique_pairs(kjit_context *context, const kjit_operand *result,
                              const kjit_operand *result_values, const kjit_operand *count,
                              const kjit_operand *x, const kjit_operand *values,
                              kjit_function *equal, const kjit_algorithm_options *options)
{
  const selection given = { .result = result,
                            .result_values = result_values,
                            .count = count,
                            .x = x,
                            .values = values,
                            .equal = equal,
                            .has_heads = true };
  const needed all[] = { { "x", x, false },
                         { "values", values, false },
                         { "result", result, true },
                         { "result_values", result_values, true },
                         { "count", count, true } };
  return perform(context, "kjit_unique_pairs", &given, all, 5, options);
}

kjit_status kjit_run_lengths(kjit_context *context, const kjit_operand *result,
                             const kjit_operand *lengths, const kjit_operand *starts,
                             const kjit_operand *count, const kjit_operand *x, kjit_function *equal,
                             const kjit_algorithm_options *options)
{
  const selection given = { .result = result,
                            .lengths = lengths,
                            .starts = starts,
                            .count = count,
                            .x = x,
                            .equal = equal,
                            .has_heads = true,
                            .has_lengths = true };
  const needed all[] = { { "x", x, false },
                         { "result", result, true },
                         { "lengths", lengths, true },
                         { "count", count, true } };
  return perform(context, "kjit_run_lengths", &given, all, 4, options);
}
