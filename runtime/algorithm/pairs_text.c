/* Writes the kernels of reductions over pairs. The kernels call lib/library/pairs.kir and pass
 * generated funcs: funcs from pairs_rows.c load a thread's rows of x and a block's rows of y, and
 * funcs from pairs_values.c (for gradients pairs_gradient.c) combine the values. On a GPU, for the
 * sum of f(x, y0, i, j):
 *
 *     extern func hosts_0(a0, a1, a2, a3)
 *     func pair_of(l, j, i, at, xs, y0s) @inline {
 *       return hosts_0(xs[l], y0s[j], i64(i), i64(at))
 *     }
 *     kernel run(...) @block(THREADS) {
 *       local xs: f32[4, 3]
 *       shared y0s: f32[256, 3]
 *       local sums_0_0: f32[4]
 *       pairs_visit(bind_back(pairs_x, xs, ...), bind_back(pairs_y, y0s, ..., THREADS),
 *                   bind_back(pair_begin, ...), bind_back(pair_add, ...), ...)
 *     } */
#include "algorithm/pairs.h"
#include "code/kernel.h"
#include "ir/context.h"

/* ---- the func of a pair ---- */

enum { COMBINE_THREADS = 128 };

typedef struct pair_texts {
  ka_kernel kernel;
  ka_pair_shape shape;
  ka_rows_text rows;
  const char *more; /* names of the func's additional arguments */
  ka_value_text values[KA_MOST_PAIR_RESULTS];
} pair_texts;

static void declare_values(const ka_pairs *p, pair_texts *t)
{
  for (size_t i = 0; i < p->value_count; i++)
    t->values[i] = ka_declare_pair_value(p, &t->kernel, i);
}

/* Returns the expression of the pair's func with its arrays bound. */
static const char *write_pair(ka_pairs *p, pair_texts *t)
{
  const ka_rows_text *rows = &t->rows;
  const char *callee = ka_use_pair_function(p, &t->kernel);
  kj_append_format(t->kernel.funcs,
                   "func pair_of(l, j, i, at%s%s%s) @inline {\n  return %s(%s%s)\n}\n", rows->names,
                   t->more, *rows->row ? ", row" : "", callee, rows->arguments, t->more);
  return kj_format(&p->call->arena, "bind_back(pair_of%s%s%s)", rows->names, t->more, rows->row);
}

static void begin_pairs(ka_pairs *p, pair_texts *t)
{
  ka_begin_kernel(p->call, "pairs", &t->kernel);
  t->shape = ka_choose_pair_shape(p, p->n);
  t->rows = ka_write_pair_rows(p, &t->kernel, &t->shape);
  t->more = ka_use_arrays(&t->kernel, &p->function);
  declare_values(p, t);
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

/* ---- intermediate results ---- */

size_t ka_found_arrays(const ka_pairs *p) { return p->k ? 2 : p->value_count; }

void ka_count_found(const ka_pairs *p, uint64_t n, ka_found found[KA_MOST_PAIR_RESULTS])
{
  uint64_t count = (ka_choose_pair_shape(p, n).parts + 1) * p->m * (p->k ? (uint64_t)p->k : 1);
  for (size_t i = 0; i < p->value_count; i++) {
    const ka_pair_value *v = &p->values[i];
    bool is_struct = v->accumulator == KJIT_ANY;
    found[i] = is_struct ? (ka_found){ KJIT_U64, ka_count_words(v->bytes, count) }
                         : (ka_found){ v->accumulator, ka_pair_elements(v, count) };
  }
  if (p->k) found[1] = (ka_found){ p->call->is_wide ? KJIT_I64 : KJIT_I32, count };
}

/* The slots with intermediate results; each slot has a result for each row of x. The slots are
 * arguments of the kernel, or temporary storage if the call processes all rows of y. own: the first
 * slot of this call. */
typedef struct pair_slots {
  kjit_arg found[KA_MOST_PAIR_RESULTS];
  uint64_t own, count;
} pair_slots;

static pair_slots find_slots(ka_pairs *p)
{
  ka_found f[KA_MOST_PAIR_RESULTS];
  ka_count_found(p, p->n, f);
  pair_slots s = { .own = 1, .count = ka_choose_pair_shape(p, p->n).parts + 1 };
  for (size_t i = 0; i < ka_found_arrays(p); i++)
    s.found[i] = p->piece
                   ? kjit_arg_array(p->piece->found[i])
                   : (kjit_arg){ .value.u = ka_add_work(p->call, f[i].element, f[i].count, false) };
  return s;
}

/* Returns the expression by which the kernel views the intermediate results. */
static const char *use_found(ka_pairs *p, pair_texts *t, const pair_slots *s, size_t index)
{
  const char *words = ka_use_array(&t->kernel, &s->found[index]), *type = t->values[index].type;
  if (p->k || p->values[index].accumulator != KJIT_ANY) return words;
  return kj_format(&p->call->arena, "view(%s[%s], bitcast(%s*, pointer(%s[0])))", type,
                   ka_use_count(&t->kernel, s->count * p->m), type, words);
}

/* Writes the funcs that store each result in its slots, starting at `slot`. */
static void keep_found(ka_pairs *p, pair_texts *t, const pair_slots *s, uint64_t slot,
                       const char **stores)
{
  kj_arena *arena = &p->call->arena;
  const char *first = ka_use_count(&t->kernel, slot);
  for (size_t i = 0; i < p->value_count; i++) {
    const char *found = use_found(p, t, s, i),
               *m = ka_use_count(&t->kernel, ka_pair_elements(&p->values[i], p->m));
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
  const ka_pair_shape *s = &t->shape;
  const char *m = ka_use_count(&t->kernel, p->m), *n = ka_use_count(&t->kernel, p->n),
             *offset = ka_use_count(&t->kernel, p->piece ? p->piece->first : 0),
             *parts = ka_use_count(&t->kernel, s->parts), *stores[KA_MOST_PAIR_RESULTS];
  if (slots) keep_found(p, t, slots, slots->own, stores);
  else finish(p, t, stores);
  const ka_rows_text *rows = &t->rows;
  if (p->k) {
    ka_launch(&t->kernel, s->threads, s->groups * s->parts,
              "%s  pairs_smallest(%s, %s, %s, %s, %s, %s, %s, %s, %lld, THREADS, %u, %u)",
              rows->locals + 2, rows->take_x, rows->take_y, write_pair(p, t), stores[0], m, n,
              offset, parts, (long long)p->k, s->rows, s->tile);
    return;
  }
  ka_sums_text sums =
    p->gradient ? ka_write_gradient(p, &t->kernel, rows, t->more, s, stores)
                : ka_write_sums(p, &t->kernel, t->values, s->rows, write_pair(p, t), stores);
  ka_launch(&t->kernel, s->threads, s->groups * s->parts,
            "%s%s  pairs_visit(%s, %s, %s, %s, %s, %s, %s, %s, %s, THREADS, %u, %u, %u)",
            rows->locals + 2, sums.locals, rows->take_x, rows->take_y, sums.begin, sums.add,
            sums.store, m, n, offset, parts, s->rows, s->tile, s->columns);
}

/* Adds the launch that combines the slots, starting at `from`. It stores the combination in the
 * result or, if more chunks follow, in slot 0. */
static void combine_slots(ka_pairs *p, const pair_slots *slots, uint64_t from)
{
  kj_arena *arena = &p->call->arena;
  pair_texts t = { 0 };
  bool is_cpu = ka_is_cpu(p->call);
  uint32_t threads = is_cpu ? 1 : COMBINE_THREADS;
  uint64_t most = (is_cpu ? KA_CPU_PAIR_BLOCKS : 2 * KA_GPU_PAIR_BLOCKS) *
                  (uint64_t)ka_core_count(p->call),
           blocks = ka_least(ka_divide_up(p->m, threads), most);
  ka_begin_kernel(p->call, "pairs", &t.kernel);
  declare_values(p, &t);
  bool is_last = !p->piece || p->piece->is_last;
  const char *first = ka_use_count(&t.kernel, from), *end = ka_use_count(&t.kernel, slots->count),
             *stores[KA_MOST_PAIR_RESULTS], *body = "";
  if (is_last) finish(p, &t, stores);
  else keep_found(p, &t, slots, 0, stores);
  for (size_t i = 0; i < p->value_count; i++) {
    const char *found = use_found(p, &t, slots, i), *gap = i ? "\n  " : "",
               *m = ka_use_count(&t.kernel, ka_pair_elements(&p->values[i], p->m));
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

/* ---- results without rows of y ---- */

static const char *value_of_nothing(const ka_pair_value *v, ka_kernel *kernel)
{
  ka_call *call = kernel->call;
  if (v->reduction) return ka_reduction_empty(call, v->reduction, "y0");
  if (!v->operator_.has_identity)
    ka_fail(call, KJIT_ERROR_ARGUMENT,
            "`y0` has no rows, and the operator has no identity element");
  return ka_use_identity(kernel, &v->operator_, v->value);
}

void ka_fill_pairs(ka_pairs *p)
{
  for (size_t i = 0; i < p->value_count; i++) {
    const ka_pair_value *v = &p->values[i];
    ka_kernel kernel;
    ka_begin_kernel(p->call, "reduce", &kernel);
    const char *put = ka_use_output(&kernel, &v->result), *value = value_of_nothing(v, &kernel),
               *count = ka_use_count(&kernel, ka_pair_elements(v, p->m));
    if (v->width)
      put = kj_format(&p->call->arena, "bind_back(pairs_split, %s, %ui32)", put, v->width);
    ka_launch(&kernel, ka_is_cpu(p->call) ? 1 : COMBINE_THREADS, 1, "reduce_fill(%s, %s, %s)", put,
              value, count);
  }
}

/* ---- type of the func ---- */

/* Writes a func that calls the application's func with rows of the right types. Its parameters are
 * the additional arguments. It is only used to infer the result type of the application's func. */
static void write_probe(ka_pairs *p, ka_kernel *kernel)
{
  ka_call *call = p->call;
  kj_arena *arena = &call->arena;
  const char *list = "", *parameters = "", *more = "";
  for (size_t i = 0; i < p->function.array_count; i++) {
    parameters = kj_format(arena, "%s%sm%zu", parameters, i ? ", " : "", i);
    more = kj_format(arena, "%s, m%zu", more, i);
  }
  const char *callee = ka_use_pair_function(p, kernel);
  const ka_rows *rows[KA_MOST_ROWS];
  size_t count = ka_list_pair_rows(p, rows);
  for (size_t i = 0; i < count; i++) {
    kj_append_format(kernel->body, "  local rows_%zu: %s\n", i,
                     ka_rows_type(kernel, rows[i], 1, false));
    list = kj_format(arena, "%s%srows_%zu[0]", list, i ? ", " : "", i);
  }
  /* the kernel calls the func, because linking removes funcs that no kernel reaches */
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
    ka_fail(call, KJIT_ERROR_UNSUPPORTED, "`func` returns a tuple of %zu values; the maximum is %d",
            p->value_count, KA_MOST_PAIR_RESULTS);
  for (size_t i = 0; i < p->value_count; i++) {
    kjit_type element = p->is_tuple ? info->items[i] : type;
    p->values[i].element = element;
    if (ki_is_element(call->context->types, element)) continue;
    const char *text = element == KJIT_VOID ? "no value" : "a value that an array cannot hold";
    if (p->is_tuple)
      ka_fail(
        call, KJIT_ERROR_TYPE,
        "item %zu of the tuple that `func` returns has the type %s, which an array cannot hold", i,
        ka_type_text(call, element));
    ka_fail(call, KJIT_ERROR_TYPE, "`func` returns %s", text);
  }
}
