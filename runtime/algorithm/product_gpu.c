/* Launches a product on a GPU: chooses the kind of kernel in lib/library, packs factors if
 * necessary, and adds the launches. */
#include "algorithm/einsum.h"
#include "ir/context.h"

enum {
  THREADS = 256, /* TILE_THREADS of the library */
  WARPGROUP = 128,
  UNROLL = 4,     /* number of vectors of each factor that a thread loads at once */
  PACKED = 64,    /* a block of product_pack copies a tile with PACKED rows and PACKED terms */
  MOST_ADDED = 64 /* maximum number of partial sums that one thread adds */
};

/* ---- arguments of kernels ---- */

/* Returns the source fragment by which the kernel passes both factors as arrays. */
static const char *use_matrices(ka_product_step *s, const ka_factor *a, const ka_factor *b)
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

static const char *use_funcs(ka_product_step *s, const ka_factor *a, const ka_factor *b)
{
  const char *of_left, *of_right;
  ka_write_factor(s, "product_left", false, a, &of_left);
  ka_write_factor(s, "product_right", true, b, &of_right);
  return kj_format(&s->e->call->arena,
                   "bind_back(product_left%s%s), bind_back(product_right%s%s), ", of_left, s->list,
                   of_right, s->list);
}

/* Writes product_part, a func that stores partial sums in temporary storage or loads them from
 * there. */
static const char *use_part(ka_product_step *s, uint32_t work, const char *const *counts,
                            bool is_read)
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

static const char *use_whole(ka_product_step *s, const ka_factor *target)
{
  const char *outputs;
  ka_write_store(s, target, &outputs);
  kj_append_format(s->kernel.funcs,
                   "func product_whole(part, g0, g1, g2, v%s%s) @inline { product_put(g0, g1, g2, "
                   "v%s%s) }\n",
                   outputs, s->list, outputs, s->list);
  return kj_format(&s->e->call->arena, "bind_back(product_whole%s%s)", outputs, s->list);
}

static void add_parts(ka_product_step *s, const ka_factor *target, uint32_t work, uint64_t parts)
{
  const char *outputs, *counts[KA_GROUPS], *type = ka_type_text(s->e->call, s->product.accumulator);
  ka_begin_kernel(s->e->call, "product_tiles", &s->kernel);
  ka_use_extents(s);
  ka_write_store(s, target, &outputs);
  ka_use_group_counts(s, counts);
  const char *partial = use_part(s, work, counts, true), *count = ka_use_count(&s->kernel, parts);
  bool are_many = parts > MOST_ADDED;
  ka_launch(&s->kernel, are_many ? THREADS : 0, are_many ? ka_count_letters(s->e, target->mask) : 0,
            "product_sum_%sparts(%s, bind_back(product_put%s%s), %s, %s, %s, %s, zero(%s))",
            are_many ? "many_" : "", partial, outputs, s->list, counts[0], counts[1], counts[2],
            count, type);
}

/* Adds a launch that copies a factor to temporary storage in a layout that tensor copies can load.
 */
static void pack_factor(ka_product_step *s, const ka_factor *factor, bool is_right)
{
  ka_matrix *matrix = &s->matrices[is_right];
  const char *arrays, *depth, *to;
  bool is_deep = is_right ? s->product.is_right_deep : s->product.is_left_deep;
  uint64_t blocks = (uint64_t)matrix->extents[0] *
                    ka_divide_up((uint64_t)matrix->extents[1], PACKED) *
                    ka_divide_up((uint64_t)matrix->extents[2], PACKED);
  matrix->work = ka_add_work_matrices(s->e->call, s->e->element, matrix->extents);
  ka_begin_kernel(s->e->call, "product_tensor", &s->kernel);
  ka_use_extents(s);
  ka_write_factor(s, "product_factor", is_right, factor, &arrays);
  to = ka_use_work(&s->kernel, matrix->work);
  depth = ka_use_count(&s->kernel, s->product.k);
  ka_launch(&s->kernel, THREADS, blocks, "product_pack(bind_back(product_factor%s%s), %s, %s, %s)",
            arrays, s->list, to, depth, is_deep ? "true" : "false");
}

/* Tables indexed by ka_product_kind: the library's module, its func, and this func's constants. */
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
    return KJ_WARP_THREADS * (plan->rows / plan->tall) * (plan->columns / plan->wide);
  return plan->kind == KA_PRODUCT_THREADS ? 0 : THREADS;
}

static const char *text_of(bool value) { return value ? "true" : "false"; }

/* Lists the constants with which the kernel calls the library's func. */
static const char *list_constants(const ka_product_step *s, const ka_product_plan *plan)
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

/* ---- choosing the kind of kernel ---- */

/* Returns whether tensor cores also accept a factor whose adjacent elements lie across the summed
 * dimension. */
static bool may_be_across(const ka_einsum *e, bool is_right)
{
  return e->element == KJIT_F16 || e->element == KJIT_BF16 || e->element == KJIT_F64 ||
         (e->element == KJIT_F32 && !is_right);
}

static bool is_byte(const ka_einsum *e) { return e->element == KJIT_I8 || e->element == KJIT_U8; }

/* Sets three groups of letters of an operand: the letters of the batch, of the rows (or columns)
 * and of the summed dimension. Letters of extent 1 are left out. */
static void list_groups(const ka_product_step *s, bool is_right, uint64_t groups[3])
{
  uint64_t ones = 0;
  for (uint32_t letter = 0; letter < KA_LETTERS; letter++)
    ones |= s->e->extents[letter] == 1 ? UINT64_C(1) << letter : 0;
  groups[0] = s->groups[0] & ~ones;
  groups[1] = s->groups[is_right ? 2 : 1] & ~ones;
  groups[2] = s->groups[KA_SUMMED] & ~ones;
}

static bool read_factor(ka_product_step *s, const ka_factor *factor, bool is_right)
{
  uint64_t groups[3];
  list_groups(s, is_right, groups);
  return ka_read_matrix(s->e, factor, groups, &s->matrices[is_right]);
}

static bool read_or_pack(ka_product_step *s, const ka_factor *factor, bool is_right, uint64_t uses)
{
  uint64_t groups[3];
  ka_matrix *matrix = &s->matrices[is_right];
  list_groups(s, is_right, groups);
  bool is_read =
    read_factor(s, factor, is_right) && (matrix->is_deep || may_be_across(s->e, is_right));
  return is_read || ka_pack_matrix(s->e, groups, uses, matrix);
}

/* Replaces the product by the product of the transposed matrices in reverse order, which has the
 * same elements. */
static void turn(ka_product_step *s, const ka_factor **a, const ka_factor **b)
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

/* Returns whether both factors are arrays whose rows can be loaded 16 bytes at a time. */
static bool have_vectors(ka_product_step *s, const ka_factor *a, const ka_factor *b)
{
  kjit_type element = s->e->element;
  bool is_float =
    element == KJIT_F16 || element == KJIT_BF16 || element == KJIT_F32 || element == KJIT_F64;
  return is_float && b && read_factor(s, a, false) && s->matrices[0].is_deep &&
         read_factor(s, b, true) && s->matrices[1].is_deep && a->operand->element == element &&
         b->operand->element == element;
}

/* Plans the product. Prefers tensor cores. */
static ka_product_plan plan_on_gpu(ka_product_step *s, const ka_factor **a, const ka_factor **b)
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
  /* the tiles of product_tiles do not support 8-bit elements on tensor cores */
  if (is_byte(s->e)) s->product.has_mma = false;
  plan = ka_plan_product(s->e->call, &s->product);
  if (plan.kind == KA_PRODUCT_WARPS && have_vectors(s, *a, *b)) plan.kind = KA_PRODUCT_VECTORS;
  return plan;
}

/* ---- the launch ---- */

void ka_launch_on_gpu(ka_product_step *s, const ka_factor *a, const ka_factor *b,
                      const ka_factor *target)
{
  ka_call *call = s->e->call;
  ka_product_plan planned = plan_on_gpu(s, &a, &b), *plan = &planned;
  kj_arena *arena = &call->arena;
  const char *counts[KA_GROUPS], *type = ka_type_text(call, s->product.accumulator);
  bool is_split = plan->parts > 1, is_tiled = plan->kind <= KA_PRODUCT_TILES;
  uint64_t count = ka_count_letters(s->e, target->mask);
  call->is_wide = call->is_wide || count * plan->parts > INT32_MAX / 2;
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
  ka_use_extents(s);
  const char *factors = has_arrays ? use_matrices(s, a, b) : use_funcs(s, a, b);
  ka_use_group_counts(s, counts);
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
