/* One step of an einsum as a kernel: lib/library/product.kir with three funcs, for ij,jk->ik
 *
 *   func product_left(g0, g1, g3, x_0) @inline { return x_0[g1, g3] }
 *   func product_right(g0, g2, g3, y_0) @inline { return y_0[g3, g2] }
 *   func product_put(g0, g1, g2, v, result_0) @inline { result_0[g1, g2] = f32(v) }
 *
 * g0 to g3 are the linear indices of four groups of letters: of both factors and the result, of the
 * first one and the result, of the second one and the result, and those that are summed. Without a
 * second factor product_right gives one. */
#include "algorithm/einsum.h"
#include "ir/context.h"

enum { GROUPS = 4, SUMMED = 3 };

typedef struct step {
  const ka_einsum *e;
  ka_kernel kernel;
  uint64_t groups[GROUPS];
  const char *extents[KA_LETTERS], *list; /* parameters, where an index is taken apart by them */
} step;

static void divide_letters(step *s, uint64_t a, uint64_t b, uint64_t target)
{
  uint64_t summed = (a | b) & ~target;
  s->groups[SUMMED] = summed;
  s->groups[1] = target & a & ~b;
  s->groups[2] = target & b & ~a;
  s->groups[0] = target & ~(s->groups[1] | s->groups[2]);
}

/* Also of letters that stand in the place of a work memory's. */
static void use_extents(step *s)
{
  s->list = "";
  for (uint32_t letter = 0; letter < KA_LETTERS; letter++) {
    bool is_used = false;
    for (uint32_t g = 0; g < GROUPS; g++) is_used = is_used || (s->groups[g] >> letter & 1);
    if (!is_used) continue;
    s->extents[letter] = ka_use_count(&s->kernel, (uint64_t)s->e->extents[letter]);
    s->list = kj_format(&s->e->call->arena, "%s, %s", s->list, s->extents[letter]);
  }
}

/* The statements that make the indices i0, i1 ... of the letters of some groups; the last letter is
 * fastest. */
static void write_indices(step *s, const uint8_t *groups, uint32_t group_count)
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

static const char *work_index(const step *s, const ka_factor *factor)
{
  const char *index = "0";
  for (uint32_t i = 0; i < factor->rank; i++) {
    uint32_t letter = factor->letters[i];
    index = i ? kj_format(&s->e->call->arena, "(%s) * %s + i%u", index, s->extents[letter], letter)
              : kj_format(&s->e->call->arena, "i%u", letter);
  }
  return index;
}

/* Along axes that broadcast the index is 0. */
static const char *list_indices(const step *s, const ka_factor *factor, const char *type)
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

static const char *use_factor(step *s, const ka_factor *factor, const char **names)
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
  if (!x->function)
    return kj_format(arena, "%s_0[%s]", x->name, factor->rank ? list_indices(s, factor, "") : "0");
  const char *list = list_indices(s, factor, "i64"),
             *callee = ka_use_function(&s->kernel, x->function,
                                       x->rank + x->array_count + (x->is_output ? 1 : 0));
  if (x->is_output) return kj_format(arena, "%s(%s%sv%s)", callee, list, *list ? ", " : "", arrays);
  const char *rest = !*list && *arrays ? arrays + 2 : arrays;
  return kj_format(arena, "%s(%s%s)", callee, list, rest);
}

/* What the left factor, or the right one, is at an index of each of its groups. */
static void write_factor(step *s, const char *name, const uint8_t *groups, const ka_factor *factor,
                         const char **arrays)
{
  *arrays = "";
  const char *value = factor ? use_factor(s, factor, arrays) : "1";
  kj_append_format(s->kernel.funcs, "func %s(g%u, g%u, g%u%s%s) @inline {\n", name, groups[0],
                   groups[1], groups[2], *arrays, s->list);
  if (factor) write_indices(s, groups, 3);
  kj_append_format(s->kernel.funcs, "  return %s\n}\n", value);
}

static void write_store(step *s, const ka_factor *target, const char *type, const char **arrays)
{
  static const uint8_t groups[] = { 0, 1, 2 };
  *arrays = "";
  const char *place = use_factor(s, target, arrays);
  kj_append_format(s->kernel.funcs, "func product_put(g0, g1, g2, v%s%s) @inline {\n", *arrays,
                   s->list);
  write_indices(s, groups, 3);
  if (target->operand && target->operand->function)
    kj_append_format(s->kernel.funcs, "  %s\n}\n", place);
  else
    kj_append_format(
      s->kernel.funcs, "  %s = %s(v)\n}\n", place,
      target->operand ? ka_type_text(s->e->call, target->operand->element) : type);
}

void ka_launch_product(const ka_einsum *e, const ka_factor *a, const ka_factor *b,
                       const ka_factor *target)
{
  static const uint8_t left[] = { 0, 1, SUMMED }, right[] = { 0, 2, SUMMED };
  ka_call *call = e->call;
  step s = { .e = e };
  const char *of_left, *of_right, *outputs, *counts[GROUPS];
  const char *type = ka_type_text(call, e->accumulator);
  uint64_t count = ka_count_letters(e, target->mask);
  divide_letters(&s, a->mask, b ? b->mask : 0, target->mask);
  uint64_t summed = ka_count_letters(e, s.groups[SUMMED]);
  if (!count) return;
  call->is_wide = call->is_wide || count > INT32_MAX / 2 || summed > INT32_MAX / 2;
  ka_product_tiling t = { .is_packed = false };
  /* neighbours in the result lie across */
  if (ka_is_cpu(call) && b && ka_is_nearest_along(target, s.groups[1])) {
    const ka_factor *first = a;
    a = b;
    b = first;
    divide_letters(&s, a->mask, b->mask, target->mask);
  }
  if (ka_is_cpu(call))
    t = ka_tile_product(call, ka_count_letters(e, s.groups[0]), ka_count_letters(e, s.groups[1]),
                        ka_count_letters(e, s.groups[2]), summed);
  ka_begin_kernel(call, t.is_packed ? "product_cpu" : "product", &s.kernel);
  use_extents(&s);
  write_factor(&s, "product_left", left, a, &of_left);
  write_factor(&s, "product_right", right, b, &of_right);
  write_store(&s, target, type, &outputs);
  for (uint32_t g = 0; g < GROUPS; g++)
    counts[g] = ka_use_count(&s.kernel, ka_count_letters(e, s.groups[g]));
  const char *operands =
    kj_format(&call->arena,
              "bind_back(product_left%s%s), bind_back(product_right%s%s), "
              "bind_back(product_put%s%s), %s, %s, %s, %s, zero(%s)",
              of_left, s.list, of_right, s.list, outputs, s.list, counts[0], counts[1], counts[2],
              counts[3], type);
  if (t.is_packed)
    ka_launch(&s.kernel, 1, t.blocks, "product_packed(%s, %s, %s, %s, %s)", operands,
              ka_use_count(&s.kernel, t.rows), ka_use_count(&s.kernel, t.columns),
              ka_is_nearest_along(a, s.groups[SUMMED]) ? "true" : "false",
              b && ka_is_nearest_along(b, s.groups[SUMMED]) ? "true" : "false");
  else ka_launch(&s.kernel, 0, 0, "product_all(%s)", operands);
}
