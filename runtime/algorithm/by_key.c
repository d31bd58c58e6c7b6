/* Implements kjit_reduce_by_key and kjit_scan_by_key, whose kernels are in by_key.kir of
 * lib/library. A GPU needs one launch and the CPU two launches. */
#include "algorithm/algorithm.h"
#include "ir/context.h"

typedef struct keyed {
  const kjit_operand *result_keys, *result, *count, *keys, *x;
  const kjit_operator *operator_;
  kjit_function *equal;
} keyed;

typedef struct parts {
  ka_call *call;
  ka_operator operator_;
  kjit_function *equal;
  kjit_type accumulator;
  uint32_t bytes; /* size of a value of the accumulator type */
  bool is_exclusive;
  ka_operand result_keys, result, count, keys, x;
  ka_carried carried;
} parts;

/* ---- kernels ---- */

/* Source fragments that all kernels share. */
typedef struct texts {
  ka_kernel kernel;
  const char *key, *equal, *load, *op, *carried, *n;
} texts;

static void begin(const parts *p, texts *t)
{
  ka_begin_kernel(p->call, "by_key", &t->kernel);
  t->key = ka_use_input(&t->kernel, &p->keys, KJIT_ANY);
  t->equal = p->equal ? ka_use_function(&t->kernel, p->equal, 2, "two keys") : "by_key_equal";
  t->load = ka_use_input(&t->kernel, &p->x, p->accumulator);
  t->op = ka_use_operator(&t->kernel, &p->operator_, p->accumulator);
  t->carried = ka_use_carried(&t->kernel, &p->carried, p->accumulator);
  t->n = ka_use_count(&t->kernel, p->x.count);
}

/* ---- the shape of a launch ---- */

/* Values measured on an H200. */
enum {
  GPU_PAIR_BYTES = 176, /* bytes of keys and values that a thread holds */
  GPU_MOST_ITEMS = 21,
  GPU_TILE = 256,      /* threads of a block */
  GPU_WIDE_VALUE = 32, /* value size in bytes above which a block has fewer threads */
  GPU_WIDE_TILE = 128,
  GPU_BLOCKS = 4,            /* minimum blocks for each multiprocessor */
  GPU_TILES = 2,             /* if a multiprocessor has fewer tiles than this, threads get only
                              * GPU_FEW elements */
  GPU_FEW = 3,               /* elements of a thread if there are few tiles */
  GPU_LARGE_TILE = 512,      /* threads in a block for many small elements */
  GPU_LARGE_LEAST = 1 << 22, /* minimum number of elements for large tiles */
  GPU_LARGE_PAIR = 8,        /* maximum bytes of a key and a value for large tiles */
  GPU_LARGE_BLOCKS = 2       /* minimum number of resident blocks for each multiprocessor if tiles
                              * are large */
};

/* Returns whether large tiles are used. Two large tiles use nearly all shared memory of a
 * multiprocessor. */
static bool has_large_tiles(const ka_call *call, uint64_t n, uint32_t pair, uint32_t items)
{
  uint64_t bytes = (uint64_t)GPU_LARGE_BLOCKS * GPU_LARGE_TILE * items * pair;
  return n >= GPU_LARGE_LEAST && pair <= GPU_LARGE_PAIR &&
         bytes <= call->device->info.max_shared_bytes;
}

/* Chooses the tiling. The number of elements of a thread is odd, so that adjacent threads access
 * different banks of shared memory. */
static ka_carried_tiling choose_tiling(const parts *p)
{
  ka_call *call = p->call;
  if (ka_is_cpu(call)) return ka_tile_carried(call, p->bytes, p->x.count, p->operator_.name);
  uint64_t n = p->x.count, tiles = GPU_TILES * (uint64_t)ka_core_count(call);
  uint32_t pair = p->bytes + kj_element_bytes(call->context->types, p->keys.element);
  ka_carried_tiling t = { .threads = p->bytes > GPU_WIDE_VALUE ? GPU_WIDE_TILE : GPU_TILE };
  t.items = (uint32_t)ka_most(ka_least(GPU_PAIR_BYTES / pair, GPU_MOST_ITEMS + 1), 2) - 1;
  if (t.items > GPU_FEW) t.items |= 1;
  while (t.items > GPU_FEW && n < tiles * t.threads * t.items) t.items = t.items / 2 | 1;
  bool is_large = has_large_tiles(call, n, pair, t.items);
  if (is_large) t.threads = GPU_LARGE_TILE;
  t.blocks = ka_divide_up(n, (uint64_t)t.threads * t.items);
  if (t.threads >= GPU_TILE && p->operator_.name)
    t.at_once = is_large ? GPU_LARGE_BLOCKS : GPU_BLOCKS;
  return t;
}

/* ---- launches ---- */

/* Adds temporary storage. On a GPU, tiles pass values to later tiles through it (decoupled
 * look-back). On the CPU, a first launch stores each chunk's total in it. */
static uint32_t add_work(const parts *p, const ka_carried_tiling *s)
{
  ka_call *call = p->call;
  if (!ka_is_cpu(call))
    return ka_add_work(call, KJIT_U64, ka_look_back_size(p->carried.bytes, s->blocks, 1), true);
  uint32_t work = ka_add_carried(call, &p->carried, s->blocks);
  if (s->blocks == 1) return work;
  texts t;
  begin(p, &t);
  const char *totals = ka_view_carried(&t.kernel, work, s->blocks);
  ka_launch(&t.kernel, 1, s->blocks, "by_key_totals(%s, %s, %s, %s, %s, %s, %s)", t.key, t.load,
            t.equal, t.op, t.carried, t.n, totals);
  return work;
}

static const char *use_work(const parts *p, texts *t, uint32_t work, uint64_t count)
{
  if (ka_is_cpu(p->call)) return ka_view_carried(&t->kernel, work, count);
  return ka_use_work(&t->kernel, work);
}

static const char *use_result(const parts *p, texts *t)
{
  const char *put = ka_use_output(&t->kernel, &p->result);
  const kjit_arg *initial = p->call->options.initial;
  if (!initial) return put;
  return kj_format(&p->call->arena, "bind_back(reduce_after, %s, %s, %s)", put, t->op,
                   ka_use_value(&t->kernel, initial));
}

static void add_reduction(const parts *p)
{
  ka_carried_tiling s = choose_tiling(p);
  uint32_t work = add_work(p, &s);
  texts t;
  begin(p, &t);
  t.kernel.blocks = s.at_once;
  const char *store = use_result(p, &t), *put_key = ka_use_output(&t.kernel, &p->result_keys),
             *count = ka_use_output(&t.kernel, &p->count), *name = use_work(p, &t, work, s.blocks),
             *items = ka_use_constant(&t.kernel, s.items);
  ka_launch(&t.kernel, s.threads, s.blocks,
            "by_key_reduce(%s, %s, %s, %s, %s, bind_back(by_key_put_count, %s), %s, %s, %s, %s, "
            "THREADS, %s)",
            t.key, t.load, t.equal, store, put_key, count, t.op, t.carried, t.n, name, items);
}

/* Adds the steps for an empty input, which has no runs. */
static void add_no_runs(const parts *p)
{
  ka_kernel kernel;
  ka_begin_kernel(p->call, "by_key", &kernel);
  const char *count = ka_use_output(&kernel, &p->count);
  ka_launch(&kernel, 1, 1, "by_key_put_count(0i64, %s)", count);
}

/* Returns the expression of the value that each run starts with. */
static const char *use_start(const parts *p, texts *t)
{
  ka_call *call = p->call;
  if (call->options.initial) return ka_use_value(&t->kernel, call->options.initial);
  if (!p->is_exclusive) return "0";
  return ka_use_identity(&t->kernel, &p->operator_, p->accumulator);
}

static void add_scan(const parts *p)
{
  ka_carried_tiling s = choose_tiling(p);
  uint32_t work = add_work(p, &s);
  texts t;
  begin(p, &t);
  t.kernel.blocks = s.at_once;
  const char *put = ka_use_output(&t.kernel, &p->result), *start = use_start(p, &t),
             *name = use_work(p, &t, work, s.blocks), *items = ka_use_constant(&t.kernel, s.items);
  ka_launch(&t.kernel, s.threads, s.blocks,
            "by_key_scan(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, THREADS, %s)", t.key, t.load,
            t.equal, put, t.op, start, t.carried, t.n, name, p->is_exclusive ? "true" : "false",
            p->call->options.initial ? "true" : "false", items);
}

/* ---- the call ---- */

static void check_line(ka_call *call, const ka_operand *operand)
{
  if (operand->rank != 1)
    ka_fail(call, KJIT_ERROR_ARGUMENT, "`%s` has %u axes; it must have one", operand->name,
            operand->rank);
}

static void read_inputs(parts *p, const keyed *given)
{
  ka_call *call = p->call;
  ka_read_operator(call, given->operator_, &p->operator_);
  ka_read_input(call, "keys", given->keys, &p->keys);
  ka_read_input(call, "x", given->x, &p->x);
  check_line(call, &p->keys);
  check_line(call, &p->x);
  if (p->keys.count != p->x.count)
    ka_fail(call, KJIT_ERROR_ARGUMENT,
            "`keys` has %llu elements and `x` has %llu; both must have the same number of elements",
            (unsigned long long)p->keys.count, (unsigned long long)p->x.count);
}

/* Returns the default element type of the result. As in NumPy, the sum of half-precision elements
 * is half-precision. */
static kjit_type result_type(parts *p)
{
  kjit_type element = p->x.element,
            type = ka_accumulator(p->call, &p->operator_, element, KJIT_ANY);
  bool is_half = element == KJIT_F16 || element == KJIT_BF16;
  return is_half && p->call->options.accumulator == KJIT_ANY ? element : type;
}

static void arrange(ka_call *call, ka_operand *operand)
{
  uint32_t axes[KJ_MAX_RANK];
  for (uint32_t i = 0; i < KJ_MAX_RANK; i++) axes[i] = i;
  ka_arrange(call, operand, axes, 1, &operand->rank);
}

static void finish_types(parts *p)
{
  ka_call *call = p->call;
  p->accumulator = ka_accumulator(call, &p->operator_, p->x.element,
                                  p->result.function ? KJIT_ANY : p->result.element);
  ka_check_stored(call, &p->result, p->accumulator);
  p->bytes = kj_element_bytes(call->context->types, p->accumulator);
  ka_choose_device(call);
  p->carried = ka_carry(call, "count", call->is_wide ? KJIT_I64 : KJIT_I32, "", p->bytes);
  arrange(call, &p->keys);
  arrange(call, &p->x);
  arrange(call, &p->result);
}

static void read_output(parts *p, const char *name, const kjit_operand *given, ka_operand *operand,
                        uint64_t room)
{
  ka_call *call = p->call;
  ka_read_output(call, name, given, operand);
  if (operand->count < room)
    ka_fail(call, KJIT_ERROR_ARGUMENT, "`%s` needs %llu elements; it has %llu", name,
            (unsigned long long)room, (unsigned long long)operand->count);
  ka_check_overlap(call, operand, &p->keys, false);
  ka_check_overlap(call, operand, &p->x, false);
}

static void build_reduction(ka_call *call, const void *data)
{
  const keyed *given = data;
  parts *p = KJ_NEW(&call->arena, parts);
  *p = (parts){ .call = call, .equal = given->equal };
  read_inputs(p, given);
  if (p->equal) ka_check_decides(call, p->equal, p->keys.element, KA_EQUALITY);
  const uint64_t n = p->x.count;
  if (call->options.results) {
    (void)ka_describe(call, 0, p->keys.element, 1, p->x.shape);
    (void)ka_describe(call, 1, result_type(p), 1, p->x.shape);
    (void)ka_describe(call, 2, KJIT_I64, 0, NULL);
    return;
  }
  read_output(p, "result_keys", given->result_keys, &p->result_keys, n);
  read_output(p, "result", given->result, &p->result, n);
  read_output(p, "count", given->count, &p->count, 1);
  ka_check_overlap(call, &p->result_keys, &p->result, false);
  ka_check_overlap(call, &p->result_keys, &p->count, false);
  ka_check_overlap(call, &p->result, &p->count, false);
  if (!p->count.function && !ki_is_integral(p->count.element))
    ka_fail(call, KJIT_ERROR_TYPE, "`count` has elements of type %s; expected an integer type",
            ka_type_text(call, p->count.element));
  ka_check_positions(call, &p->count, n + 1);
  finish_types(p);
  arrange(call, &p->result_keys);
  arrange(call, &p->count);
  if (n) add_reduction(p);
  else add_no_runs(p);
}

static void build_scan(ka_call *call, const void *data)
{
  const keyed *given = data;
  parts *p = KJ_NEW(&call->arena, parts);
  *p = (parts){ .call = call,
                .equal = given->equal,
                .is_exclusive = call->options.flags & KJIT_ALGORITHM_EXCLUSIVE };
  read_inputs(p, given);
  if (ka_describe(call, 0, call->options.results ? result_type(p) : KJIT_ANY, 1, p->x.shape))
    return;
  ka_read_output(call, "result", given->result, &p->result);
  check_line(call, &p->result);
  if (p->result.count != p->x.count)
    ka_fail(call, KJIT_ERROR_ARGUMENT, "`result` must have the shape of `x`");
  ka_check_overlap(call, &p->result, &p->x, true);
  ka_check_overlap(call, &p->result, &p->keys, false);
  if (p->is_exclusive && !call->options.initial && !p->operator_.has_identity)
    ka_fail(call, KJIT_ERROR_ARGUMENT,
            "an exclusive scan starts with the operator's identity, and this operator has none: "
            "set " KJ_OPTION("initial"));
  finish_types(p);
  if (p->x.count) add_scan(p);
}

kjit_status kjit_reduce_by_key(kjit_context *context, const kjit_operand *result_keys,
                               const kjit_operand *result, const kjit_operand *count,
                               const kjit_operand *keys, const kjit_operand *x,
                               const kjit_operator *operator_, kjit_function *equal,
                               const kjit_algorithm_options *options)
{
  const keyed given = { result_keys, result, count, keys, x, operator_, equal };
  const ka_inputs inputs = { { result_keys, result, count, keys, x },
                             .operator_ = operator_,
                             .function = equal };
  return ka_perform_kept(context, "kjit_reduce_by_key", KA_ACCUMULATOR | KA_INITIAL, options,
                         build_reduction, &given, &inputs);
}

kjit_status kjit_scan_by_key(kjit_context *context, const kjit_operand *result,
                             const kjit_operand *keys, const kjit_operand *x,
                             const kjit_operator *operator_, kjit_function *equal,
                             const kjit_algorithm_options *options)
{
  const keyed given = { NULL, result, NULL, keys, x, operator_, equal };
  const ka_inputs inputs = { { result, keys, x }, .operator_ = operator_, .function = equal };
  return ka_perform_kept(context, "kjit_scan_by_key", KA_ACCUMULATOR | KA_INITIAL | KA_EXCLUSIVE,
                         options, build_scan, &given, &inputs);
}
