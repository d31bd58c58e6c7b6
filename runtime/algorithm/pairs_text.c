/* The kernels of reductions over pairs: lib/library/pairs.kir with funcs over what a thread has of
 * x and what its block has of y. pairs_values.c writes what is combined. On a GPU, for the sum of
 * f(x, y0, i, j):
 *
 *   extern func hosts_0(a0, a1, a2, a3)
 *   func pair_x(l, i, xs, x: func) @inline { for k in range(3) @unroll { xs[l, k] = x(i, k) } }
 *   func pair_y0(first, count, y0s, y0: func, const T) @inline {
 *     for e in range(i32(thread_rank), count * 3, T) { y0s[e // 3, e % 3] = y0(first + ..., e % 3)
 * }
 *   }
 *   func pair_y(first, count, y0s, y0: func, const T) @inline { pair_y0(first, count, y0s, y0, T) }
 *   func pair_of(l, j, i, at, xs, y0s) @inline {
 *     return hosts_0(xs[l], y0s[j], i64(i), i64(at))
 *   }
 *   func pair_value_0(value, at) @inline { ... }
 *   func pair_begin(l, j, i, at, sums_0_0, pair: func) @inline { ... }
 *   func pair_add(l, j, i, at, sums_0_0, pair: func) @inline { ... }
 *   func pair_store(part, i, l, sums_0_0, store_0: func) @inline { ... }
 *   kernel run(...) @block(THREADS) {
 *     local xs: f32[4, 3]
 *     shared y0s: f32[256, 3]
 *     local sums_0_0: f32[4]
 *     pairs_visit(bind_back(pair_x, xs, ...), bind_back(pair_y, y0s, ..., THREADS), ...)
 *   } */
#include "algorithm/pairs.h"
#include "code/kernel.h"
#include "ir/context.h"

/* ---- the shape of a launch ---- */

enum {
  GPU_THREADS = 128,
  GPU_ROWS = 4,       /* of a thread */
  GPU_ROW_BYTES = 64, /* of x, of all rows of a thread: in registers */
  GPU_TILE = 256,     /* rows of y */
  GPU_TILE_BYTES = 8192,
  GPU_BLOCKS = 8, /* of a multiprocessor */
  CPU_ROWS = 64,
  CPU_ROWS_OF_K = 16,      /* where the k least are looked for: fewer find one at a time */
  CPU_ROW_BYTES = 32768,   /* of x, of all rows side by side */
  CPU_VALUE_BYTES = 16384, /* of what is combined, of all rows */
  CPU_TILE = 256,
  CPU_TILE_BYTES = 16384,
  CPU_BLOCKS = 4, /* of a core */
  MOST_UNROLLED = 64,
  COMBINE_THREADS = 128
};

typedef struct pair_shape {
  uint32_t threads, rows, tile; /* rows: of a thread */
  uint64_t groups, parts;
} pair_shape;

static uint32_t bytes_of_y(const ka_pairs *p)
{
  uint32_t bytes = 0;
  for (size_t i = 0; i < p->y_count; i++) bytes += p->y[i].bytes;
  return bytes;
}

static uint32_t halve_until(uint32_t most, uint32_t bytes, uint32_t room, uint64_t needed)
{
  while (most > 1 && ((uint64_t)most * bytes > room || most / 2 >= needed)) most /= 2;
  return most;
}

static pair_shape choose_shape(const ka_pairs *p, uint64_t n)
{
  bool is_cpu = ka_is_cpu(p->call);
  pair_shape s = { .threads = is_cpu ? 1 : GPU_THREADS };
  uint64_t cores = ka_core_count(p->call);
  if (is_cpu) {
    s.rows = halve_until(p->k ? CPU_ROWS_OF_K : CPU_ROWS, p->x.bytes, CPU_ROW_BYTES, p->m);
    while (s.rows > 1 && s.rows * p->bytes > CPU_VALUE_BYTES) s.rows /= 2;
    s.tile = halve_until(CPU_TILE, bytes_of_y(p), CPU_TILE_BYTES, n);
  } else {
    while (s.threads > 32 && s.threads / 2 >= p->m) s.threads /= 2;
    s.rows = p->k ? 1
                  : halve_until(GPU_ROWS, p->x.bytes + p->bytes, GPU_ROW_BYTES,
                                ka_divide_up(p->m, s.threads));
    s.tile = halve_until(GPU_TILE, bytes_of_y(p), GPU_TILE_BYTES, n);
  }
  uint64_t wanted = (is_cpu ? CPU_BLOCKS : GPU_BLOCKS) * cores;
  s.groups = ka_divide_up(p->m, (uint64_t)s.threads * s.rows);
  s.parts = ka_most(ka_least(ka_divide_up(wanted, s.groups), ka_divide_up(n, s.tile)), 1);
  return s;
}

/* ---- rows ---- */

static const char *row_extent(const ka_pairs *p, const ka_rows *rows)
{
  return kj_format(&p->call->arena, "%u", rows->width);
}

/* "f32[64, 3]"; of one axis "f32[64]". The rows of x stand side by side on the CPU. */
static const char *array_type(ka_kernel *kernel, const ka_rows *rows, uint32_t count,
                              bool is_transposed)
{
  kj_arena *arena = &kernel->call->arena;
  const char *type = ka_use_type(kernel, rows->operand.element);
  if (rows->operand.rank == 1) return kj_format(arena, "%s[%u]", type, count);
  return is_transposed ? kj_format(arena, "%s[%u, %u]", type, rows->width, count)
                       : kj_format(arena, "%s[%u, %u]", type, count, rows->width);
}

static void write_x(const ka_pairs *p, ka_kernel *kernel)
{
  bool is_cpu = ka_is_cpu(p->call);
  if (p->x.operand.rank == 1) {
    kj_append_text(kernel->funcs,
                   "func pair_x(l, i, xs, x: func) @inline { xs[l] = x(i, 0i32) }\n");
    return;
  }
  kj_append_format(kernel->funcs,
                   "func pair_x(l, i, xs, x: func) @inline {\n"
                   "  for k in range(%si32)%s { xs[%s] = x(i, k) }\n}\n",
                   row_extent(p, &p->x), p->x.width <= MOST_UNROLLED ? " @unroll" : "",
                   is_cpu ? "k, l" : "l, k");
}

static void write_y(const ka_pairs *p, ka_kernel *kernel, size_t index)
{
  const ka_rows *y = &p->y[index];
  const char *extent = row_extent(p, y), *name = y->operand.name;
  kj_append_format(kernel->funcs,
                   "func pair_%s(first, count, ys, y: func, const T) @inline {\n"
                   "  for e in range(T > 1 ? i32(thread_rank) : 0i32, count * %s, T) {\n",
                   name, extent);
  if (y->operand.rank == 1)
    kj_append_text(kernel->funcs, "    ys[e] = y(first + dtype(first)(e), 0i32)\n");
  else
    kj_append_format(kernel->funcs,
                     "    ys[e // %s, e %% %s] = y(first + dtype(first)(e // %s), e %% %s)\n",
                     extent, extent, extent, extent);
  kj_append_text(kernel->funcs, "  }\n}\n");
}

/* ---- what is reduced ---- */

typedef struct pair_texts {
  ka_kernel kernel;
  pair_shape shape;
  const char *take_x, *take_y, *pair;
  ka_value_text values[KA_MOST_PAIR_RESULTS];
} pair_texts;

static void declare_values(const ka_pairs *p, pair_texts *t)
{
  for (size_t i = 0; i < p->value_count; i++)
    t->values[i] = ka_declare_pair_value(p, &t->kernel, i);
}

static const char *use_function(const ka_pairs *p, ka_kernel *kernel)
{
  return ka_use_function(kernel, p->function.function, 3 + p->y_count + p->function.array_count,
                         "a row of x, one of y and their places, arrays and values");
}

/* row: the parameter that a row's number in a share of x is counted from; "": from 0. */
static void write_pair(ka_pairs *p, pair_texts *t, const char *names, const char *more,
                       const char *row)
{
  kj_arena *arena = &p->call->arena;
  const char *rows = p->x.operand.rank == 1 ? "xs[l]" : ka_is_cpu(p->call) ? "xs[:, l]" : "xs[l]";
  for (size_t i = 0; i < p->y_count; i++)
    rows = kj_format(arena, "%s, %ss[j]", rows, p->y[i].operand.name);
  const char *callee = use_function(p, &t->kernel);
  kj_append_format(t->kernel.funcs,
                   "func pair_of(l, j, i, at, xs%s%s%s) @inline {\n"
                   "  return %s(%s, i64(i)%s, i64(at)%s)\n}\n",
                   names, more, *row ? ", row" : "", callee, rows, *row ? " + i64(row)" : "", more);
}

static void begin_pairs(ka_pairs *p, pair_texts *t)
{
  ka_call *call = p->call;
  kj_arena *arena = &call->arena;
  bool is_cpu = ka_is_cpu(call);
  pair_shape s = choose_shape(p, p->n);
  ka_begin_kernel(call, "pairs", &t->kernel);
  t->shape = s;
  const char *x = ka_use_input(&t->kernel, &p->x.operand, KJIT_ANY), *names = "", *takes = "",
             *parameters = "", *bound = "";
  write_x(p, &t->kernel);
  kj_append_format(t->kernel.body, "local xs: %s\n", array_type(&t->kernel, &p->x, s.rows, is_cpu));
  for (size_t i = 0; i < p->y_count; i++) {
    const char *name = p->y[i].operand.name;
    const char *y = ka_use_input(&t->kernel, &p->y[i].operand, KJIT_ANY);
    write_y(p, &t->kernel, i);
    kj_append_format(t->kernel.body, "  %s %ss: %s\n", is_cpu ? "local" : "shared", name,
                     array_type(&t->kernel, &p->y[i], s.tile, false));
    names = kj_format(arena, "%s, %ss", names, name);
    parameters = kj_format(arena, "%s, %ss, %s: func", parameters, name, name);
    bound = kj_format(arena, "%s, %ss, %s", bound, name, y);
    takes = kj_format(arena, "%s  pair_%s(first, count, %ss, %s, T)\n", takes, name, name, name);
  }
  kj_append_format(t->kernel.funcs, "func pair_y(first, count%s, const T) @inline {\n%s}\n",
                   parameters, takes);
  const char *more = ka_use_arrays(&t->kernel, &p->function), *row = "";
  if (p->piece && p->piece->is_share)
    row = kj_format(arena, ", %s", ka_use_count(&t->kernel, p->piece->row));
  declare_values(p, t);
  write_pair(p, t, names, more, row);
  t->take_x = kj_format(arena, "bind_back(pair_x, xs, %s)", x);
  t->take_y = kj_format(arena, "bind_back(pair_y%s, %u)", bound, s.threads);
  t->pair = kj_format(arena, "bind_back(pair_of, xs%s%s%s)", names, more, row);
}

/* ---- results ---- */

static const char *finish_smallest(ka_pairs *p, ka_kernel *kernel)
{
  const char *put = ka_use_output(kernel, &p->values[0].result),
             *put_place = p->has_places ? ka_use_output(kernel, &p->result_places) : NULL;
  if (!put_place) {
    kj_append_text(kernel->funcs, "func pair_no_place(i, q, at) @inline { }\n");
    put_place = "pair_no_place";
  }
  return kj_format(&p->call->arena, "bind_back(pairs_put_smallest, %s, %s)", put, put_place);
}

/* ---- what parts find ---- */

size_t ka_found_arrays(const ka_pairs *p) { return p->k ? 2 : p->value_count; }

void ka_count_found(const ka_pairs *p, uint64_t n, ka_found found[KA_MOST_PAIR_RESULTS])
{
  uint64_t count = (choose_shape(p, n).parts + 1) * p->m * (p->k ? (uint64_t)p->k : 1);
  for (size_t i = 0; i < p->value_count; i++) {
    const ka_pair_value *v = &p->values[i];
    bool is_struct = v->accumulator == KJIT_ANY;
    found[i] = is_struct ? (ka_found){ KJIT_U64, ka_count_words(v->bytes, count) }
                         : (ka_found){ v->accumulator, count };
  }
  if (p->k) found[1] = (ka_found){ p->call->is_wide ? KJIT_I64 : KJIT_I32, count };
}

/* Slots for each row of x, as arguments of a kernel, of work memory where y is whole. `own` is the
 * first slot of this call's parts. */
typedef struct pair_slots {
  kjit_arg found[KA_MOST_PAIR_RESULTS];
  uint64_t own, count;
} pair_slots;

static pair_slots find_slots(ka_pairs *p)
{
  ka_found f[KA_MOST_PAIR_RESULTS];
  ka_count_found(p, p->n, f);
  pair_slots s = { .own = 1, .count = choose_shape(p, p->n).parts + 1 };
  for (size_t i = 0; i < ka_found_arrays(p); i++)
    s.found[i] = p->piece
                   ? kjit_arg_array(p->piece->found[i])
                   : (kjit_arg){ .value.u = ka_add_work(p->call, f[i].element, f[i].count, false) };
  return s;
}

/* As the kernel sees what is combined. */
static const char *use_found(ka_pairs *p, pair_texts *t, const pair_slots *s, size_t index)
{
  const char *words = ka_use_array(&t->kernel, &s->found[index]), *type = t->values[index].type;
  if (p->k || p->values[index].accumulator != KJIT_ANY) return words;
  return kj_format(&p->call->arena, "view(%s[%s], bitcast(%s*, pointer(%s[0])))", type,
                   ka_use_count(&t->kernel, s->count * p->m), type, words);
}

/* Stores of each result into the slots from `slot` on. */
static void keep_found(ka_pairs *p, pair_texts *t, const pair_slots *s, uint64_t slot,
                       const char *m, const char **stores)
{
  kj_arena *arena = &p->call->arena;
  const char *first = ka_use_count(&t->kernel, slot);
  for (size_t i = 0; i < p->value_count; i++) {
    const char *found = use_found(p, t, s, i);
    stores[i] = !p->k
                  ? kj_format(arena, "bind_back(pairs_keep, %s, %s, %s)", found, m, first)
                  : kj_format(arena, "bind_back(pairs_keep_smallest, %s, %s, %s, %s, %lld)", found,
                              ka_use_array(&t->kernel, &s->found[1]), m, first, (long long)p->k);
  }
}

static void finish(ka_pairs *p, pair_texts *t, const char **stores)
{
  if (p->k) stores[0] = finish_smallest(p, &t->kernel);
  for (size_t i = 0; i < p->value_count && !p->k; i++)
    stores[i] = ka_finish_pair_value(p, &t->kernel, i);
}

/* ---- the steps ---- */

static void launch_pairs(ka_pairs *p, pair_texts *t, const pair_slots *slots)
{
  kj_arena *arena = &p->call->arena;
  const pair_shape *s = &t->shape;
  const char *m = ka_use_count(&t->kernel, p->m), *n = ka_use_count(&t->kernel, p->n),
             *offset = ka_use_count(&t->kernel, p->piece ? p->piece->first : 0),
             *parts = ka_use_count(&t->kernel, s->parts), *stores[KA_MOST_PAIR_RESULTS];
  if (slots) keep_found(p, t, slots, slots->own, m, stores);
  else finish(p, t, stores);
  const char *locals = kj_keep_text(arena, t->kernel.body);
  if (p->k) {
    ka_launch(&t->kernel, s->threads, s->groups * s->parts,
              "%s  pairs_smallest(%s, %s, %s, %s, %s, %s, %s, %s, %lld, THREADS, %u, %u)", locals,
              t->take_x, t->take_y, t->pair, stores[0], m, n, offset, parts, (long long)p->k,
              s->rows, s->tile);
    return;
  }
  ka_sums_text sums = ka_write_sums(p, &t->kernel, t->values, s->rows, t->pair, stores);
  ka_launch(&t->kernel, s->threads, s->groups * s->parts,
            "%s%s  pairs_visit(%s, %s, %s, %s, %s, %s, %s, %s, %s, THREADS, %u, %u)", locals,
            sums.locals, t->take_x, t->take_y, sums.begin, sums.add, sums.store, m, n, offset,
            parts, s->rows, s->tile);
}

/* What is in the slots from `from` on, to the result, or, where more pieces come, to slot 0. */
static void combine_slots(ka_pairs *p, const pair_slots *slots, uint64_t from)
{
  kj_arena *arena = &p->call->arena;
  pair_texts t = { 0 };
  bool is_cpu = ka_is_cpu(p->call);
  uint32_t threads = is_cpu ? 1 : COMBINE_THREADS;
  uint64_t most = (is_cpu ? CPU_BLOCKS : 2 * GPU_BLOCKS) * (uint64_t)ka_core_count(p->call),
           blocks = ka_least(ka_divide_up(p->m, threads), most);
  ka_begin_kernel(p->call, "pairs", &t.kernel);
  declare_values(p, &t);
  bool is_last = !p->piece || p->piece->is_last;
  const char *m = ka_use_count(&t.kernel, p->m), *first = ka_use_count(&t.kernel, from),
             *end = ka_use_count(&t.kernel, slots->count), *stores[KA_MOST_PAIR_RESULTS],
             *body = "";
  if (is_last) finish(p, &t, stores);
  else keep_found(p, &t, slots, 0, m, stores);
  for (size_t i = 0; i < p->value_count; i++) {
    const char *found = use_found(p, &t, slots, i), *gap = i ? "\n  " : "";
    body = !p->k ? kj_format(arena, "%s%spairs_combine(%s, %s, %s, %s, %s, %s)", body, gap, found,
                             t.values[i].operator_, stores[i], m, first, end)
                 : kj_format(arena, "pairs_smallest_combine(%s, %s, %s, %s, %s, %s, %lld)", found,
                             ka_use_array(&t.kernel, &slots->found[1]), stores[i], m, first, end,
                             (long long)p->k);
  }
  ka_launch(&t.kernel, threads, blocks, "%s", body);
}

void ka_pairs_steps(ka_pairs *p)
{
  pair_texts t = { 0 };
  begin_pairs(p, &t);
  if (!p->piece && t.shape.parts == 1) {
    launch_pairs(p, &t, NULL);
    return;
  }
  pair_slots slots = find_slots(p);
  launch_pairs(p, &t, &slots);
  combine_slots(p, &slots, p->piece && p->piece->first ? 0 : slots.own);
}

/* ---- without rows of y ---- */

static const char *value_of_nothing(const ka_pair_value *v, ka_kernel *kernel)
{
  ka_call *call = kernel->call;
  if (v->reduction) return ka_reduction_empty(call, v->reduction, "y0");
  if (!v->operator_.has_identity)
    ka_fail(call, KJIT_ERROR_ARGUMENT, "`y0` has no rows, and the operator no identity");
  return ka_use_identity(kernel, &v->operator_, v->value);
}

void ka_fill_pairs(ka_pairs *p)
{
  for (size_t i = 0; i < p->value_count; i++) {
    const ka_pair_value *v = &p->values[i];
    ka_kernel kernel;
    ka_begin_kernel(p->call, "reduce", &kernel);
    const char *put = ka_use_output(&kernel, &v->result), *value = value_of_nothing(v, &kernel),
               *count = ka_use_count(&kernel, p->m);
    ka_launch(&kernel, ka_is_cpu(p->call) ? 1 : COMBINE_THREADS, 1, "reduce_fill(%s, %s, %s)", put,
              value, count);
  }
}

/* ---- the func's type ---- */

/* A func of what the host's is called with behind the rows, which have their types. */
static void write_probe(ka_pairs *p, ka_kernel *kernel)
{
  ka_call *call = p->call;
  kj_arena *arena = &call->arena;
  const char *list = "", *parameters = "", *more = "";
  for (size_t i = 0; i < p->function.array_count; i++) {
    parameters = kj_format(arena, "%s%sm%zu", parameters, i ? ", " : "", i);
    more = kj_format(arena, "%s, m%zu", more, i);
  }
  const char *callee = use_function(p, kernel);
  for (size_t i = 0; i <= p->y_count; i++) {
    const ka_rows *rows = i ? &p->y[i - 1] : &p->x;
    kj_append_format(kernel->body, "  local rows_%zu: %s\n", i, array_type(kernel, rows, 1, false));
    list = kj_format(arena, "%s%srows_%zu[0]", list, i ? ", " : "", i);
  }
  /* a func that no kernel reaches goes when the host's funcs are linked */
  kj_append_format(kernel->funcs,
                   "func pair_type(%s) {\n%s  return %s(%s, 0i64, 0i64%s)\n}\n"
                   "kernel run(%s) { let x = pair_type(%s) }\n",
                   parameters, kj_keep_text(arena, kernel->body), callee, list, more, parameters,
                   parameters);
}

static kjit_type infer(ka_pairs *p)
{
  ka_call *call = p->call;
  ka_kernel kernel;
  kjit_module *module = NULL;
  kjit_function *probe = NULL;
  kjit_type type = KJIT_VOID;
  ka_begin_kernel(call, "pairs", &kernel);
  write_probe(p, &kernel);
  const ki_decl *decl = kj_function_of(p->function.function);
  if (!ki_gives_value(decl->function))
    ka_fail_at(
      call, decl, KJIT_ERROR_TYPE,
      "`%s` returns no value for a row of x and a row of y; it must return the value of the pair",
      decl->name);
  size_t count = p->function.array_count;
  kjit_type *types = KJ_NEW_ARRAY(&call->arena, kjit_type, count + 1);
  for (size_t i = 0; i < count; i++)
    types[i] = ka_argument_type(call, &p->function, &p->function.arrays[i]);
  const char *text = kernel.funcs->failed ? NULL : kernel.funcs->text;
  if (!text) ka_fail(call, KJIT_ERROR_MEMORY, "out of memory");
  const ka_kernel_source source = ka_get_kernel_source(&kernel, text, kernel.funcs->length);
  ka_try(call, ka_find_linked(call->context, &source, &module));
  kjit_status status = kjit_get_function(module, "pair_type", &probe);
  if (status == KJIT_OK) status = ka_get_result_type(call, probe, types, count, &type);
  kjit_release_module(module);
  ka_try(call, status);
  return type;
}

void ka_infer_pair(ka_pairs *p)
{
  ka_call *call = p->call;
  kjit_type type = infer(p);
  const ki_type_info *info = ki_type(call->context->types, type);
  p->is_tuple = info->class_ == KJ_CLASS_TUPLE && p->is_several;
  p->value_count = p->is_tuple ? info->count : 1;
  if (p->value_count > KA_MOST_PAIR_RESULTS)
    ka_fail(call, KJIT_ERROR_UNSUPPORTED, "`func` returns a tuple of %zu values: at most %d",
            p->value_count, KA_MOST_PAIR_RESULTS);
  for (size_t i = 0; i < p->value_count; i++) {
    kjit_type element = p->is_tuple ? info->items[i] : type;
    p->values[i].element = element;
    if (ki_is_element(call->context->types, element)) continue;
    const char *text = element == KJIT_VOID ? "nothing" : "what no array holds";
    if (p->is_tuple)
      ka_fail(call, KJIT_ERROR_TYPE,
              "item %zu of the tuple that `func` returns is %s: an element is expected", i,
              ka_type_text(call, element));
    ka_fail(call, KJIT_ERROR_TYPE, "`func` returns %s: an element is expected", text);
  }
}
