/* Builds the kernel of one step of an einsum. It uses product.kir of lib/library with three funcs,
 * for example for ij,jk->ik:
 *
 *     func product_left(g0, g1, g3, x_0) @inline { return x_0[g1, g3] }
 *     func product_right(g0, g2, g3, y_0) @inline { return y_0[g3, g2] }
 *     func product_put(g0, g1, g2, v, result_0) @inline { result_0[g1, g2] = f32(v) }
 *
 * g0 to g3 are the linear indices of four groups of letters: letters of both factors and the
 * result, of the first factor and the result, of the second factor and the result, and summed
 * letters. If there is no second factor, product_right returns 1. */
#include "algorithm/einsum.h"
#include "ir/context.h"

static const uint8_t left_groups[] = { 0, 1, KA_SUMMED }, right_groups[] = { 0, 2, KA_SUMMED };

static void divide_letters(ka_product_step *s, uint64_t a, uint64_t b, uint64_t target)
{
  uint64_t summed = (a | b) & ~target;
  s->groups[KA_SUMMED] = summed;
  s->groups[1] = target & a & ~b;
  s->groups[2] = target & b & ~a;
  s->groups[0] = target & ~(s->groups[1] | s->groups[2]);
}

void ka_use_extents(ka_product_step *s)
{
  s->list = "";
  for (uint32_t letter = 0; letter < KA_LETTERS; letter++) {
    bool is_used = false;
    for (uint32_t g = 0; g < KA_GROUPS; g++) is_used = is_used || (s->groups[g] >> letter & 1);
    if (!is_used) continue;
    s->extents[letter] = ka_use_count(&s->kernel, (uint64_t)s->e->extents[letter]);
    s->list = kj_format(&s->e->call->arena, "%s, %s", s->list, s->extents[letter]);
  }
}

/* Writes the statements that split the linear indices of some groups into the indices i0, i1 ... of
 * their letters. The last letter varies fastest. */
static void write_indices(ka_product_step *s, const uint8_t *groups, uint32_t group_count)
{
  for (uint32_t at = 0; at < group_count; at++) {
    uint32_t g = groups[at];
    uint64_t left = s->groups[g];
    kj_append_format(s->kernel.funcs, "  let r%u_0 = g%u\n", g, g);
    for (uint32_t i = 0; left; i++) {
      uint32_t letter = 63 - (uint32_t)__builtin_clzll(left);
      left &= ~(UINT64_C(1) << letter);
      if (!left) kj_append_format(s->kernel.funcs, "  let i%u = r%u_%u\n", letter, g, i);
      else
        kj_append_format(s->kernel.funcs, "  let i%u = r%u_%u %% %s\n  let r%u_%u = r%u_%u // %s\n",
                         letter, g, i, s->extents[letter], g, i + 1, g, i, s->extents[letter]);
    }
  }
}

static const char *work_index(const ka_product_step *s, const ka_factor *factor)
{
  const char *index = "0";
  for (uint32_t i = 0; i < factor->rank; i++) {
    uint32_t letter = factor->letters[i];
    index = i ? kj_format(&s->e->call->arena, "(%s) * %s + i%u", index, s->extents[letter], letter)
              : kj_format(&s->e->call->arena, "i%u", letter);
  }
  return index;
}

/* Lists a factor's indices. Along an axis that is broadcast the index is 0. */
static const char *list_indices(const ka_product_step *s, const ka_factor *factor, const char *type)
{
  kj_arena *arena = &s->e->call->arena;
  const char *list = "";
  for (uint32_t i = 0; i < factor->rank; i++) {
    uint32_t letter = factor->letters[i];
    const char *index = factor->mask >> letter & 1 ? kj_format(arena, "i%u", letter) : "0";
    list = kj_format(arena, "%s%s%s(%s)", list, i ? ", " : "", type, index);
  }
  return list;
}

static const char *use_factor(ka_product_step *s, const ka_factor *factor, const char **names)
{
  kj_arena *arena = &s->e->call->arena;
  if (!factor->operand) {
    const char *work = ka_use_work(&s->kernel, factor->work);
    *names = kj_format(arena, "%s, %s", *names, work);
    return kj_format(arena, "%s[%s]", work, work_index(s, factor));
  }
  const ka_operand *x = factor->operand;
  const char *arrays = ka_use_arrays(&s->kernel, x);
  *names = kj_format(arena, "%s%s", *names, arrays);
  if (x->is_value) return arrays + 2;
  if (!x->function)
    return kj_format(arena, "%s_0[%s]", x->name, factor->rank ? list_indices(s, factor, "") : "0");
  const char *list = list_indices(s, factor, "i64"),
             *callee = ka_use_operand_function(&s->kernel, x);
  if (x->is_output) return kj_format(arena, "%s(%s%sv%s)", callee, list, *list ? ", " : "", arrays);
  const char *rest = !*list && *arrays ? arrays + 2 : arrays;
  return kj_format(arena, "%s(%s%s)", callee, list, rest);
}

void ka_write_factor(ka_product_step *s, const char *name, bool is_right, const ka_factor *factor,
                     const char **arrays)
{
  const uint8_t *groups = is_right ? right_groups : left_groups;
  *arrays = "";
  const char *value = factor ? use_factor(s, factor, arrays) : "1";
  kj_append_format(s->kernel.funcs, "func %s(g%u, g%u, g%u%s%s) @inline {\n", name, groups[0],
                   groups[1], groups[2], *arrays, s->list);
  if (factor) write_indices(s, groups, 3);
  kj_append_format(s->kernel.funcs, "  return %s(%s)\n}\n",
                   factor && factor->operand ? s->reads : "", value);
}

/* Returns the expression that the kernel stores for a sum: a call of the epilogue, or the sum
 * itself. */
static const char *use_epilogue(ka_product_step *s, const char *sum, const char **arrays)
{
  kj_arena *arena = &s->e->call->arena;
  const ka_epilogue *epilogue = &s->e->epilogue;
  const char *list = sum;
  if (!epilogue->function) return list;
  for (size_t i = 0; i < epilogue->count; i++)
    list = kj_format(arena, "%s, %s", list, use_factor(s, &epilogue->factors[i], arrays));
  return kj_format(arena, "%s(%s)",
                   ka_use_function(&s->kernel, epilogue->function, epilogue->count + 1,
                                   KA_ELEMENTS),
                   list);
}

void ka_write_store(ka_product_step *s, const ka_factor *target, const char **arrays)
{
  static const uint8_t groups[] = { 0, 1, 2 };
  const ka_einsum *e = s->e;
  const char *type = ka_type_text(e->call, e->accumulator);
  bool is_same = s->product.accumulator == e->accumulator;
  const char *sum = is_same ? "sum" : kj_format(&e->call->arena, "%s(sum)", type);
  *arrays = "";
  const char *place = use_factor(s, target, arrays),
             *value = target->operand ? use_epilogue(s, sum, arrays) : sum;
  kj_append_format(s->kernel.funcs, "func product_put(g0, g1, g2, sum%s%s) @inline {\n", *arrays,
                   s->list);
  write_indices(s, groups, 3);
  kj_append_format(s->kernel.funcs, "  let v = %s\n", value);
  if (target->operand && target->operand->function)
    kj_append_format(s->kernel.funcs, "  %s\n}\n", place);
  else
    kj_append_format(s->kernel.funcs, "  %s = %s(v)\n}\n", place,
                     target->operand ? ka_type_text(s->e->call, target->operand->element) : type);
}

/* ---- layouts of matrices in memory ---- */

/* Returns the stride along a letter, in elements. A func and temporary storage are treated like a
 * row-major array. */
static uint64_t stride_along(const ka_einsum *e, const ka_factor *factor, uint32_t letter)
{
  bool is_array = factor->operand && !factor->operand->function;
  uint64_t stride = 0, inner = 1;
  for (uint32_t i = factor->rank; i-- > 0;) {
    if (factor->letters[i] == letter) {
      int64_t own = is_array ? factor->operand->view.strides[i] : (int64_t)inner;
      stride += (uint64_t)(own < 0 ? -own : own);
    }
    inner *= (uint64_t)e->extents[factor->letters[i]];
  }
  return stride;
}

/* Returns whether the factor is deep: its stride along the summed letters is at most its stride
 * along the letters that it shares with the result. */
static bool is_deep(const ka_product_step *s, const ka_factor *factor, uint64_t own)
{
  uint64_t summed = s->groups[KA_SUMMED] & (factor ? factor->mask : 0);
  if (!summed || !own) return summed != 0;
  uint32_t along = 63 - (uint32_t)__builtin_clzll(summed),
           across = 63 - (uint32_t)__builtin_clzll(own);
  return stride_along(s->e, factor, along) <= stride_along(s->e, factor, across);
}

/* Returns whether the kernel has to swap the factors, because the sums of adjacent columns are
 * stored together. After the swap, adjacent elements of the result are in adjacent columns. */
static bool is_turned(const ka_product_step *s, const ka_factor *target)
{
  if (!s->groups[1] || !s->groups[2]) return s->groups[1] != 0;
  uint32_t of_rows = 63 - (uint32_t)__builtin_clzll(s->groups[1]),
           of_columns = 63 - (uint32_t)__builtin_clzll(s->groups[2]);
  return stride_along(s->e, target, of_rows) < stride_along(s->e, target, of_columns);
}

void ka_use_group_counts(ka_product_step *s, const char **counts)
{
  for (uint32_t g = 0; g < KA_GROUPS; g++)
    counts[g] = ka_use_count(&s->kernel, ka_count_letters(s->e, s->groups[g]));
}

void ka_launch_product(const ka_einsum *e, const ka_factor *a, const ka_factor *b,
                       const ka_factor *target)
{
  ka_call *call = e->call;
  static const char *const readers[] = { "", "from_e4m3", "from_e5m2" };
  ka_product_step s = { .e = e, .reads = readers[e->format] };
  uint64_t count = ka_count_letters(e, target->mask);
  divide_letters(&s, a->mask, b ? b->mask : 0, target->mask);
  if (!count) return;
  if (b && is_turned(&s, target)) {
    const ka_factor *right = a;
    a = b;
    b = right;
    divide_letters(&s, a->mask, b->mask, target->mask);
  }
  uint64_t terms = ka_count_letters(e, s.groups[KA_SUMMED]);
  kjit_type sum = ka_is_cpu(call) ? e->accumulator : ka_choose_sum(e, a, b, terms);
  s.product = (ka_product){ .accumulator = sum,
                            .batch = ka_count_letters(e, s.groups[0]),
                            .m = ka_count_letters(e, s.groups[1]),
                            .n = ka_count_letters(e, s.groups[2]),
                            .k = terms,
                            .is_left_deep = is_deep(&s, a, s.groups[1]),
                            .is_right_deep = is_deep(&s, b, s.groups[2]),
                            .has_mma = !ka_is_cpu(call) && b && ka_has_mma(e, a, b, sum) };
  call->is_wide = call->is_wide || count > INT32_MAX / 2 || s.product.k > INT32_MAX / 2;
  if (ka_is_cpu(call)) ka_launch_on_cpu(&s, a, b, target);
  else ka_launch_on_gpu(&s, a, b, target);
}
