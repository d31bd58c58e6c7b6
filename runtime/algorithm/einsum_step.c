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

enum {
  GROUPS = 4,
  SUMMED = 3,
  THREADS = 256, /* TILE_THREADS of the library */
  WARPGROUP = 128,
  WARP = 32,
  UNROLL = 4,     /* vectors in flight of each factor */
  PACKED = 64,    /* rows and terms that a block of product_pack has */
  MOST_ADDED = 64 /* parts, by one thread */
};
static const uint8_t left_groups[] = { 0, 1, SUMMED }, right_groups[] = { 0, 2, SUMMED };

typedef struct step {
  const ka_einsum *e;
  ka_kernel kernel;
  ka_product product;
  ka_matrix matrices[2]; /* the factors, where kernels take arrays */
  bool is_turned;        /* neighbours in the result lie along the rows */
  uint64_t groups[GROUPS];
  const char *extents[KA_LETTERS], *list; /* parameters, where an index is taken apart by them */
  const char *reads; /* what elements of factors are read by: "", or from_e4m3 */
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
  if (x->is_value) return arrays + 2;
  if (!x->function)
    return kj_format(arena, "%s_0[%s]", x->name, factor->rank ? list_indices(s, factor, "") : "0");
  const char *list = list_indices(s, factor, "i64"),
             *callee = ka_use_operand_function(&s->kernel, x);
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
  kj_append_format(s->kernel.funcs, "  return %s(%s)\n}\n",
                   factor && factor->operand ? s->reads : "", value);
}

/* What becomes of a sum that is an element of the result. */
static const char *use_epilogue(step *s, const char *sum, const char **arrays)
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

static void write_store(step *s, const ka_factor *target, const char **arrays)
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

/* ---- how matrices lie in memory ---- */

/* Elements between neighbours along a letter; of a func, and of work memory, as in an array whose
 * last axis is fastest. */
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

/* Its neighbours along the sum are nearer than those along its own letters. */
static bool is_deep(const step *s, const ka_factor *factor, uint64_t own)
{
  uint64_t summed = s->groups[SUMMED] & (factor ? factor->mask : 0);
  if (!summed || !own) return summed != 0;
  uint32_t along = 63 - (uint32_t)__builtin_clzll(summed),
           across = 63 - (uint32_t)__builtin_clzll(own);
  return stride_along(s->e, factor, along) <= stride_along(s->e, factor, across);
}

/* Columns are what neighbours in the result lie along: sums of neighbouring columns are stored
 * together. */
static bool is_turned(const step *s, const ka_factor *target)
{
  if (!s->groups[1] || !s->groups[2]) return s->groups[1] != 0;
  uint32_t of_rows = 63 - (uint32_t)__builtin_clzll(s->groups[1]),
           of_columns = 63 - (uint32_t)__builtin_clzll(s->groups[2]);
  return stride_along(s->e, target, of_rows) < stride_along(s->e, target, of_columns);
}

/* ---- launches ---- */

static void use_counts(step *s, const char **counts)
{
  for (uint32_t g = 0; g < GROUPS; g++)
    counts[g] = ka_use_count(&s->kernel, ka_count_letters(s->e, s->groups[g]));
}

/* arrays: of the factors and the result. */
static void launch_thin(step *s, const ka_product_tiling *t, const char *const arrays[3],
                        const char *const *counts, const char *type)
{
  kj_arena *arena = &s->e->call->arena;
  bool is_turned = s->product.m < s->product.n;
  const char *left = kj_format(arena, "bind_back(product_left%s%s)", arrays[0], s->list),
             *right = kj_format(arena, "bind_back(product_right%s%s)", arrays[1], s->list),
             *put = kj_format(arena, "bind_back(product_put%s%s)", arrays[2], s->list);
  if (is_turned) put = kj_format(arena, "bind_back(product_turned, %s)", put);
  ka_launch(&s->kernel, 0, 0, "product_thin(%s, %s, %s, %s, %s, %s, zero(%s), %u, %s)",
            is_turned ? right : left, is_turned ? left : right, put, counts[0],
            counts[is_turned ? 2 : 1], counts[3], type, t->line,
            (is_turned ? s->product.is_right_deep : s->product.is_left_deep) ? "true" : "false");
}

static void launch_on_cpu(step *s, const ka_factor *a, const ka_factor *b, const ka_factor *target)
{
  const char *of_left, *of_right, *outputs, *counts[GROUPS];
  const char *type = ka_type_text(s->e->call, s->e->accumulator);
  ka_product_tiling t = ka_tile_product(s->e->call, &s->product);
  ka_begin_kernel(s->e->call,
                  t.is_packed ? "product_cpu"
                  : t.is_thin ? "product_thin"
                              : "product",
                  &s->kernel);
  use_extents(s);
  write_factor(s, "product_left", left_groups, a, &of_left);
  write_factor(s, "product_right", right_groups, b, &of_right);
  write_store(s, target, &outputs);
  use_counts(s, counts);
  if (t.is_thin) {
    launch_thin(s, &t, (const char *const[]){ of_left, of_right, outputs }, counts, type);
    return;
  }
  const char *operands = kj_format(&s->e->call->arena,
                                   "bind_back(product_left%s%s), bind_back(product_right%s%s), "
                                   "bind_back(product_put%s%s), %s, %s, %s, %s, zero(%s)",
                                   of_left, s->list, of_right, s->list, outputs, s->list, counts[0],
                                   counts[1], counts[2], counts[3], type);
  if (!t.is_packed) {
    ka_launch(&s->kernel, 0, 0, "product_all(%s)", operands);
    return;
  }
  const char *rows = ka_use_count(&s->kernel, t.rows),
             *columns = ka_use_count(&s->kernel, t.columns);
  ka_launch(&s->kernel, 1, t.blocks, "product_packed(%s, %s, %s, %s, %s)", operands, rows, columns,
            s->product.is_left_deep ? "true" : "false",
            s->product.is_right_deep ? "true" : "false");
}

/* The text that the factors are handed over by. */
static const char *use_matrices(step *s, const ka_factor *a, const ka_factor *b)
{
  const ka_factor *factors[] = { a, b };
  const char *text = "";
  for (uint32_t i = 0; i < 2; i++) {
    const ka_matrix *matrix = &s->matrices[i];
    if (matrix->is_packed) {
      text = kj_format(&s->e->call->arena, "%s%s, ", text,
                       ka_use_work_rows(&s->kernel, matrix->work, s->e->element));
      continue;
    }
    ka_view_operand(s->e->call, factors[i]->operand, matrix->extents, matrix->strides, 3);
    text =
      kj_format(&s->e->call->arena, "%s%s, ", text, ka_use_rows(&s->kernel, factors[i]->operand));
  }
  return text;
}

static const char *use_funcs(step *s, const ka_factor *a, const ka_factor *b)
{
  const char *of_left, *of_right;
  write_factor(s, "product_left", left_groups, a, &of_left);
  write_factor(s, "product_right", right_groups, b, &of_right);
  return kj_format(&s->e->call->arena,
                   "bind_back(product_left%s%s), bind_back(product_right%s%s), ", of_left, s->list,
                   of_right, s->list);
}

/* A part of a sum, as it is written to work memory, and read there. */
static const char *use_part(step *s, uint32_t work, const char *const *counts, bool is_read)
{
  kj_arena *arena = &s->e->call->arena;
  const char *name = ka_use_work(&s->kernel, work);
  const char *bound = kj_format(arena, ", %s, %s, %s, %s", name, counts[0], counts[1], counts[2]);
  kj_append_format(s->kernel.funcs,
                   "func product_part(part, g0, g1, g2%s%s) @inline {\n  %s%s[((part * %s + g0) * "
                   "%s + g1) * %s + g2]%s\n}\n",
                   is_read ? "" : ", v", bound, is_read ? "return " : "", name, counts[0],
                   counts[1], counts[2], is_read ? "" : " = v");
  return kj_format(arena, "bind_back(product_part%s)", bound);
}

static const char *use_whole(step *s, const ka_factor *target)
{
  const char *outputs;
  write_store(s, target, &outputs);
  kj_append_format(s->kernel.funcs,
                   "func product_whole(part, g0, g1, g2, v%s%s) @inline { product_put(g0, g1, g2, "
                   "v%s%s) }\n",
                   outputs, s->list, outputs, s->list);
  return kj_format(&s->e->call->arena, "bind_back(product_whole%s%s)", outputs, s->list);
}

static void add_parts(step *s, const ka_factor *target, uint32_t work, uint64_t parts)
{
  const char *outputs, *counts[GROUPS], *type = ka_type_text(s->e->call, s->product.accumulator);
  ka_begin_kernel(s->e->call, "product_tiles", &s->kernel);
  use_extents(s);
  write_store(s, target, &outputs);
  use_counts(s, counts);
  const char *partial = use_part(s, work, counts, true), *count = ka_use_count(&s->kernel, parts);
  bool are_many = parts > MOST_ADDED;
  ka_launch(&s->kernel, are_many ? THREADS : 0, are_many ? ka_count_letters(s->e, target->mask) : 0,
            "product_sum_%sparts(%s, bind_back(product_put%s%s), %s, %s, %s, %s, zero(%s))",
            are_many ? "many_" : "", partial, outputs, s->list, counts[0], counts[1], counts[2],
            count, type);
}

/* A launch that puts a factor where tensor copies can fetch it. */
static void pack_factor(step *s, const ka_factor *factor, bool is_right)
{
  ka_matrix *matrix = &s->matrices[is_right];
  const uint8_t *groups = is_right ? right_groups : left_groups;
  const char *arrays, *depth, *to;
  bool is_deep = is_right ? s->product.is_right_deep : s->product.is_left_deep;
  uint64_t blocks = (uint64_t)matrix->extents[0] *
                    ka_divide_up((uint64_t)matrix->extents[1], PACKED) *
                    ka_divide_up((uint64_t)matrix->extents[2], PACKED);
  matrix->work = ka_add_work_matrices(s->e->call, s->e->element, matrix->extents);
  ka_begin_kernel(s->e->call, "product_tensor", &s->kernel);
  use_extents(s);
  write_factor(s, "product_factor", groups, factor, &arrays);
  to = ka_use_work(&s->kernel, matrix->work);
  depth = ka_use_count(&s->kernel, s->product.k);
  ka_launch(&s->kernel, THREADS, blocks, "product_pack(bind_back(product_factor%s%s), %s, %s, %s)",
            arrays, s->list, to, depth, is_deep ? "true" : "false");
}

/* Rows of the enumeration ka_product_kind: the library's module and func, and what its constants
 * are. */
static const char *const module_of[] = {
  [KA_PRODUCT_TENSOR] = "product_tensor", [KA_PRODUCT_F64] = "product_f64",
  [KA_PRODUCT_BYTES] = "product_bytes",   [KA_PRODUCT_TILES] = "product_tiles",
  [KA_PRODUCT_VECTORS] = "product_tiles", [KA_PRODUCT_WARPS] = "product_tiles",
  [KA_PRODUCT_THREADS] = "product_tiles"
};

static uint32_t count_threads(const ka_product_plan *plan)
{
  if (plan->kind == KA_PRODUCT_TENSOR) return WARPGROUP * plan->rows;
  if (plan->kind == KA_PRODUCT_F64)
    return WARP * (plan->rows / plan->tall) * (plan->columns / plan->wide);
  return plan->kind == KA_PRODUCT_THREADS ? 0 : THREADS;
}

static const char *text_of(bool value) { return value ? "true" : "false"; }

/* What the library's func takes behind the parts. */
static const char *list_constants(const step *s, const ka_product_plan *plan)
{
  ka_call *call = s->e->call;
  kj_arena *arena = &call->arena;
  uint32_t cluster = (uint32_t)ka_most(plan->cluster, 1);
  const char *layout = kj_format(arena, "%s, %s", text_of(s->product.is_left_deep),
                                 text_of(s->product.is_right_deep)),
             *tile = kj_format(arena, ", %u, %u", plan->rows, plan->columns);
  switch (plan->kind) {
  case KA_PRODUCT_TENSOR:
    return kj_format(arena, "%s, %u, %u, %s, %s, %d", tile, plan->depth, cluster,
                     text_of(s->is_turned), layout, (int)s->e->format);
  case KA_PRODUCT_F64:
    return kj_format(arena, "%s, %u, %u, %u, %u, %s, %s", tile, plan->tall, plan->wide, plan->depth,
                     cluster, text_of(s->is_turned), layout);
  case KA_PRODUCT_BYTES:
    return kj_format(arena, "%s, %u, %s, %s, %d", tile, plan->depth, layout,
                     ka_type_text(call, s->e->element), (int)s->e->format);
  case KA_PRODUCT_TILES:
    return kj_format(arena, "%s, %u, %s, %s, %u", tile, plan->depth, layout, text_of(plan->has_mma),
                     cluster);
  case KA_PRODUCT_VECTORS: return kj_format(arena, ", %d", UNROLL);
  default: return "";
  }
}

static void launch_on_gpu(step *s, const ka_factor *a, const ka_factor *b, const ka_factor *target,
                          const ka_product_plan *plan)
{
  ka_call *call = s->e->call;
  kj_arena *arena = &call->arena;
  const char *counts[GROUPS], *type = ka_type_text(call, s->product.accumulator);
  bool is_split = plan->parts > 1, is_tiled = plan->kind <= KA_PRODUCT_TILES;
  uint64_t count = ka_count_letters(s->e, target->mask);
  uint32_t work =
    is_split ? ka_add_work(call, s->product.accumulator, plan->parts * count, false) : 0;
  if (plan->kind <= KA_PRODUCT_BYTES) s->reads = "";
  bool has_arrays = plan->kind <= KA_PRODUCT_F64 || plan->kind == KA_PRODUCT_VECTORS;
  if (plan->kind <= KA_PRODUCT_F64) {
    if (s->matrices[0].is_packed) pack_factor(s, a, false);
    if (s->matrices[1].is_packed) pack_factor(s, b, true);
    s->product.is_left_deep = s->matrices[0].is_deep;
    s->product.is_right_deep = s->matrices[1].is_deep;
  }
  ka_begin_kernel(call, module_of[plan->kind], &s->kernel);
  s->kernel.blocks = plan->at_once;
  s->kernel.cluster = plan->cluster;
  use_extents(s);
  const char *factors = has_arrays ? use_matrices(s, a, b) : use_funcs(s, a, b);
  use_counts(s, counts);
  const char *store = is_split ? use_part(s, work, counts, false) : use_whole(s, target);
  const char *parts = ka_use_count(&s->kernel, plan->parts);
  const char *shape = kj_format(arena, "%s%s, %s, %s, zero(%s), %s", is_tiled ? "" : counts[0],
                                is_tiled ? counts[1] : kj_format(arena, ", %s", counts[1]),
                                counts[2], counts[3], type, parts);
  static const char *const name_of[] = {
    [KA_PRODUCT_TENSOR] = "tensor",  [KA_PRODUCT_F64] = "f64",         [KA_PRODUCT_BYTES] = "bytes",
    [KA_PRODUCT_TILES] = "tiles",    [KA_PRODUCT_VECTORS] = "vectors", [KA_PRODUCT_WARPS] = "warps",
    [KA_PRODUCT_THREADS] = "threads"
  };
  ka_launch(&s->kernel, count_threads(plan), plan->blocks, "product_%s(%s%s, %s%s)",
            name_of[plan->kind], factors, store, shape, list_constants(s, plan));
  if (is_split) add_parts(s, target, work, plan->parts);
}

/* Tensor cores take these also where they lie across the sum. The library's funcs take a left
 * factor of f32, too, but a GPU has given wrong sums of it, and they have not run on one since. */
static bool may_be_across(const ka_einsum *e)
{
  return e->element == KJIT_F16 || e->element == KJIT_BF16 || e->element == KJIT_F64;
}

static bool is_byte(const ka_einsum *e) { return e->element == KJIT_I8 || e->element == KJIT_U8; }

/* groups: those of the matrix, without letters along which there is nothing to step. */
static void list_groups(const step *s, bool is_right, uint64_t groups[3])
{
  uint64_t ones = 0;
  for (uint32_t letter = 0; letter < KA_LETTERS; letter++)
    ones |= s->e->extents[letter] == 1 ? UINT64_C(1) << letter : 0;
  groups[0] = s->groups[0] & ~ones;
  groups[1] = s->groups[is_right ? 2 : 1] & ~ones;
  groups[2] = s->groups[SUMMED] & ~ones;
}

static bool read_factor(step *s, const ka_factor *factor, bool is_right)
{
  uint64_t groups[3];
  list_groups(s, is_right, groups);
  return ka_read_matrix(s->e, factor, groups, &s->matrices[is_right]);
}

static bool read_or_pack(step *s, const ka_factor *factor, bool is_right, uint64_t uses)
{
  uint64_t groups[3];
  ka_matrix *matrix = &s->matrices[is_right];
  list_groups(s, is_right, groups);
  bool is_read = read_factor(s, factor, is_right) && (matrix->is_deep || may_be_across(s->e));
  return is_read || ka_pack_matrix(s->e, groups, uses, matrix);
}

/* The product of the transposed matrices instead. */
static void turn(step *s, const ka_factor **a, const ka_factor **b)
{
  const ka_factor *right = *a;
  ka_product *p = &s->product;
  uint64_t rows = p->m;
  bool is_deep = p->is_left_deep;
  *a = *b;
  *b = right;
  uint64_t own = s->groups[1];
  s->groups[1] = s->groups[2];
  s->groups[2] = own;
  p->m = p->n;
  p->n = rows;
  p->is_left_deep = p->is_right_deep;
  p->is_right_deep = is_deep;
  s->is_turned = !s->is_turned;
}

/* Both are arrays whose rows can be read 16 bytes at a time. */
static bool have_vectors(step *s, const ka_factor *a, const ka_factor *b)
{
  kjit_type element = s->e->element;
  bool is_float =
    element == KJIT_F16 || element == KJIT_BF16 || element == KJIT_F32 || element == KJIT_F64;
  return is_float && b && read_factor(s, a, false) && s->matrices[0].is_deep &&
         read_factor(s, b, true) && s->matrices[1].is_deep && a->operand->element == element &&
         b->operand->element == element;
}

/* By tensor cores, where they can. */
static ka_product_plan plan_on_gpu(step *s, const ka_factor **a, const ka_factor **b)
{
  ka_product_plan plan;
  if (ka_plan_tensor(s->e, &s->product, &plan)) {
    if (read_factor(s, *a, false) && read_factor(s, *b, true) &&
        ka_is_better_turned(s->e, &s->matrices[0], &s->matrices[1])) {
      turn(s, a, b);
      ka_plan_tensor(s->e, &s->product, &plan);
    }
    if (read_or_pack(s, *a, false, s->product.n) && read_or_pack(s, *b, true, s->product.m))
      return plan;
  }
  if (ka_plan_bytes(s->e, &s->product, &plan)) return plan;
  if (is_byte(s->e)) s->product.has_mma = false; /* not in the tiles of product_tiles */
  plan = ka_plan_product(s->e->call, &s->product);
  if (plan.kind == KA_PRODUCT_WARPS && have_vectors(s, *a, *b)) plan.kind = KA_PRODUCT_VECTORS;
  return plan;
}

void ka_launch_product(const ka_einsum *e, const ka_factor *a, const ka_factor *b,
                       const ka_factor *target)
{
  ka_call *call = e->call;
  static const char *const readers[] = { "", "from_e4m3", "from_e5m2" };
  step s = { .e = e, .reads = readers[e->format] };
  uint64_t count = ka_count_letters(e, target->mask);
  divide_letters(&s, a->mask, b ? b->mask : 0, target->mask);
  if (!count) return;
  if (b && is_turned(&s, target)) {
    const ka_factor *right = a;
    a = b;
    b = right;
    divide_letters(&s, a->mask, b->mask, target->mask);
  }
  uint64_t terms = ka_count_letters(e, s.groups[SUMMED]);
  kjit_type sum = ka_is_cpu(call) ? e->accumulator : ka_choose_sum(e, a, b, terms);
  s.product = (ka_product){ .accumulator = sum,
                            .batch = ka_count_letters(e, s.groups[0]),
                            .m = ka_count_letters(e, s.groups[1]),
                            .n = ka_count_letters(e, s.groups[2]),
                            .k = terms,
                            .is_left_deep = is_deep(&s, a, s.groups[1]),
                            .is_right_deep = is_deep(&s, b, s.groups[2]),
                            .has_mma = !ka_is_cpu(call) && b && ka_has_mma(e, a, b, sum) };
  ka_product_plan plan = { .parts = 1 };
  if (!ka_is_cpu(call)) plan = plan_on_gpu(&s, &a, &b);
  call->is_wide =
    call->is_wide || count * plan.parts > INT32_MAX / 2 || s.product.k > INT32_MAX / 2;
  if (ka_is_cpu(call)) launch_on_cpu(&s, a, b, target);
  else launch_on_gpu(&s, a, b, target, &plan);
}
