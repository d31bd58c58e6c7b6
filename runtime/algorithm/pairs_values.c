/* Writes the combined values of a reduction over pairs, one for each result.
 *
 * On the CPU, vector instructions process the rows of a thread, one row in each lane. LLVM
 * vectorizes loops over arrays of numbers, but not loops over vectors or structs with more than
 * four numbers. So a value of a vector or struct type is stored in several arrays, one for each
 * number in the value:
 *
 *     struct part { weight: f32; place: f32x2 }
 *     local sums_0_0: f32[64]
 *     local sums_0_1: f32[64]
 *     local sums_0_2: f32[64]
 *     func pair_begin(l, j, i, at, sums_0_0, sums_0_1, sums_0_2, pair: func) @inline {
 *       let all = pair(l, j, i, at)
 *       let v0 = pair_value_0(all, at)
 *       sums_0_0[l] = v0.weight
 *       sums_0_1[l] = v0.place[0]
 *       sums_0_2[l] = v0.place[1]
 *     }
 *
 * A named operator, such as `max`, combines the numbers of a vector separately. */
#include "algorithm/pairs.h"
#include "ir/context.h"

/* ---- values ---- */

static const char *name_values(const ka_pairs *p, size_t index)
{
  return kj_format(&p->call->arena, "pair_values_%zu", index);
}

ka_value_text ka_declare_pair_value(const ka_pairs *p, ka_kernel *kernel, size_t index)
{
  const ka_pair_value *v = &p->values[index];
  const char *name = name_values(p, index), *type = ka_use_type(kernel, v->value);
  if (p->k) return (ka_value_text){ type, NULL };
  if (v->is_exponential) {
    kj_append_format(kernel->funcs, "struct %s { most: %s; sum: %s }\n", name, type, type);
    return (ka_value_text){ name, "pairs_logaddexp" };
  }
  if (!v->reduction)
    return (ka_value_text){ type, ka_use_operator(kernel, &v->operator_, v->accumulator) };
  type = ka_declare_reduced(kernel, v->reduction, v->value, name);
  return (ka_value_text){ type, ka_reduction_operator(v->reduction) };
}

/* Writes pair_value_0(x, at), which converts the func's value to the combined value. */
static void write_value(const ka_pairs *p, ka_kernel *kernel, size_t index)
{
  ka_call *call = p->call;
  const ka_pair_value *v = &p->values[index];
  const char *made = "x", *name = name_values(p, index);
  bool is_converted = ki_is_scalar(v->value) && v->value != v->element;
  if (v->is_exponential) made = kj_format(&call->arena, "%s(x, 1)", name);
  else if (v->reduction) made = ka_reduced_element(call, v->reduction, name, "at");
  kj_append_format(kernel->funcs,
                   "func pair_value_%zu(value, at) @inline {\n  let x = %s(value)\n"
                   "  return %s\n}\n",
                   index, is_converted ? ka_type_text(call, v->value) : "", made);
}

/* ---- numbers of a value ---- */

/* A number that is a component of a value, with the path to it in the value, such as `.place[1]`.
 * The path is "" if the number is the whole value. */
typedef struct number {
  const char *path, *type;
} number;

typedef KJ_LIST(number) numbers;

static const ki_type_info *type_of(const ka_kernel *kernel, kjit_type type)
{
  return ki_type(kernel->call->context->types, type);
}

/* Adds a type's numbers. Returns a format for the expression that builds a value from the numbers;
 * the name of each number results from formatting `names` with its index. */
static const char *take_apart(ka_kernel *kernel, kjit_type type, const char *path,
                              const char *names, numbers *list)
{
  kj_arena *arena = &kernel->call->arena;
  const ki_type_info *info = type_of(kernel, type);
  bool is_struct = info->class_ == KJ_CLASS_STRUCT, is_vector = info->class_ == KJ_CLASS_VECTOR;
  const char *text = ka_use_type(kernel, type), *made = "";
  if (!is_struct && !is_vector) {
    KJ_PUSH(arena, list, ((number){ path, text }));
    return kj_format(arena, "%s_%zu[l]", names, list->count - 1);
  }
  for (uint32_t i = 0; i < info->count; i++) {
    const char *inner = is_struct ? kj_format(arena, "%s.%s", path, info->field_names[i])
                                  : kj_format(arena, "%s[%u]", path, i);
    made =
      kj_format(arena, "%s%s%s", made, i ? ", " : "",
                take_apart(kernel, is_struct ? info->items[i] : info->element, inner, names, list));
  }
  return kj_format(arena, "%s(%s)", text, made);
}

/* Returns whether all fields are numbers, or vectors and structs of numbers. Returns false for a
 * struct with an array, because arrays have no constructor. */
static bool is_of_numbers(const ka_kernel *kernel, kjit_type type)
{
  const ki_type_info *info = type_of(kernel, type);
  if (info->class_ == KJ_CLASS_VECTOR) return true;
  if (info->class_ != KJ_CLASS_STRUCT) return ki_is_scalar(type);
  for (uint32_t i = 0; i < info->count; i++)
    if (!is_of_numbers(kernel, info->items[i])) return false;
  return true;
}

/* ---- sums of a thread's rows ---- */

/* Source fragments to which each result appends its part. */
typedef struct sums_writer {
  const char *locals, *names, *begin, *add, *store;
} sums_writer;

static const char *write_numbers(kj_arena *arena, const char *text, size_t index,
                                 const numbers *list, const char *value)
{
  for (size_t n = 0; n < list->count; n++)
    text =
      kj_format(arena, "%s  sums_%zu_%zu[l] = %s%s\n", text, index, n, value, list->items[n].path);
  return text;
}

static void write_sum(const ka_pairs *p, ka_kernel *kernel, const ka_value_text *text, size_t index,
                      uint32_t rows, sums_writer *w)
{
  kj_arena *arena = &p->call->arena;
  const ka_pair_value *v = &p->values[index];
  const char *names = kj_format(arena, "sums_%zu", index), *value = kj_format(arena, "v%zu", index),
             *all = "all", *whole;
  numbers list = { 0 };
  if (p->is_tuple) all = kj_format(arena, "all[%zu]", index);
  if (v->accumulator != KJIT_ANY && is_of_numbers(kernel, v->accumulator)) {
    whole = take_apart(kernel, v->accumulator, "", names, &list);
  } else {
    KJ_PUSH(arena, &list, ((number){ "", text->type }));
    whole = kj_format(arena, "%s_0[l]", names);
  }
  const char *made = kj_format(arena, "  let %s = pair_value_%zu(%s, at)\n", value, index, all);
  w->begin = write_numbers(arena, kj_format(arena, "%s%s", w->begin, made), index, &list, value);
  w->add = kj_format(arena, "%s%s", w->add, made);
  bool is_each = v->operator_.name && type_of(kernel, v->accumulator)->class_ == KJ_CLASS_VECTOR;
  for (size_t n = 0; is_each && n < list.count; n++)
    w->add = kj_format(arena, "%s  %s_%zu[l] = %s(%s_%zu[l], %s%s)\n", w->add, names, n,
                       text->operator_, names, n, value, list.items[n].path);
  if (!is_each) {
    w->add = kj_format(arena, "%s  let sum%zu = %s(%s, %s)\n", w->add, index, text->operator_,
                       whole, value);
    w->add = write_numbers(arena, w->add, index, &list, kj_format(arena, "sum%zu", index));
  }
  w->store = kj_format(arena, "%s  store_%zu(part, i, %s)\n", w->store, index, whole);
  for (size_t n = 0; n < list.count; n++) {
    w->names = kj_format(arena, "%s, %s_%zu", w->names, names, n);
    w->locals =
      kj_format(arena, "%s  local %s_%zu: %s[%u]\n", w->locals, names, n, list.items[n].type, rows);
  }
}

ka_sums_text ka_write_sums(const ka_pairs *p, ka_kernel *kernel, const ka_value_text *values,
                           uint32_t rows, const char *pair, const char *const *stores)
{
  kj_arena *arena = &p->call->arena;
  sums_writer w = { "", "", "", "", "" };
  const char *parameters = "", *bound = "";
  for (size_t i = 0; i < p->value_count; i++) {
    write_value(p, kernel, i);
    write_sum(p, kernel, &values[i], i, rows, &w);
    parameters = kj_format(arena, "%s, store_%zu: func", parameters, i);
    bound = kj_format(arena, "%s, %s", bound, stores[i]);
  }
  kj_append_format(kernel->funcs,
                   "func pair_begin(l, j, i, at%s, pair: func) @inline {\n"
                   "  let all = pair(l, j, i, at)\n%s}\n"
                   "func pair_add(l, j, i, at%s, pair: func) @inline {\n"
                   "  let all = pair(l, j, i, at)\n%s}\n"
                   "func pair_store(part, i, l%s%s) @inline {\n%s}\n",
                   w.names, w.begin, w.names, w.add, w.names, parameters, w.store);
  return (ka_sums_text){ .locals = w.locals,
                         .begin = kj_format(arena, "bind_back(pair_begin%s, %s)", w.names, pair),
                         .add = kj_format(arena, "bind_back(pair_add%s, %s)", w.names, pair),
                         .store = kj_format(arena, "bind_back(pair_store%s%s)", w.names, bound) };
}

/* ---- results ---- */

const char *ka_finish_pair_value(const ka_pairs *p, ka_kernel *kernel, size_t index)
{
  kj_arena *arena = &p->call->arena;
  const ka_pair_value *v = &p->values[index];
  const char *put = ka_use_output(kernel, &v->result);
  if (v->is_exponential) {
    kj_append_format(kernel->funcs,
                     "func pair_finished_%zu(i, v, store: func) @inline {\n"
                     "  store(i, v.most + log(v.sum))\n}\n",
                     index);
    put = kj_format(arena, "bind_back(pair_finished_%zu, %s)", index, put);
  } else if (v->reduction) {
    kjit_arg count = kjit_arg_f64((double)p->total);
    kj_append_format(kernel->funcs,
                     "func pair_finished_%zu(i, v, store: func, count) @inline {\n"
                     "  let n = %s(count)\n  store(i, %s)\n}\n",
                     index, ka_reduced_count(p->call, v->reduction, v->value),
                     ka_reduced_result(v->reduction));
    put = kj_format(arena, "bind_back(pair_finished_%zu, %s, %s)", index, put,
                    ka_use_value(kernel, &count));
  }
  if (v->width) put = kj_format(arena, "bind_back(pairs_split, %s, %ui32)", put, v->width);
  return kj_format(arena, "bind_back(pairs_put, %s)", put);
}
