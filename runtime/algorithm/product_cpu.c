/* Adds the launch of a product on the CPU: chooses the func of lib/library and divides the tiles
 * among the cores. */
#include "algorithm/einsum.h"
#include "ir/context.h"

enum {
  /* Limits for a tile's size. The funcs in the library also limit the tile, depending on the type
   * and the machine's vectors. */
  MOST_ROWS = 182,
  MOST_COLUMNS = 192,
  LEAST_ROWS = 56,
  LEAST_COLUMNS = 64,
  TILES = 4,   /* number of tiles for each core; with more tiles, cores are idle for a shorter time
                * at the end */
  BLOCKS = 32, /* maximum blocks for each core; a block computes several tiles */
  /* minimum number of sums for which a tile in registers is faster than separate sums */
  WORTH_SUMS = 8,
  WORTH_TERMS = 4096,
  /* For products with a vector. CHAINS: how many partial sums each sum has. MOST_LINE and
   * LEAST_LINE: how many sums are computed at a time. */
  CHAINS = 64,
  MOST_LINE = 512,
  LEAST_LINE = 64
};

typedef struct tiling {
  bool is_packed, is_thin; /* which func of the library computes the product: product_packed,
                              product_thin, or product_all if neither flag is set */
  /* for is_packed: maximum size of a tile, and number of blocks in the grid */
  uint64_t rows, columns, blocks;
  uint32_t line; /* for is_thin: number of sums that are computed at a time */
} tiling;

static uint64_t multiply(uint64_t a, uint64_t b)
{
  uint64_t product;
  return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* Returns whether copying tiles of the factors to contiguous memory (packing) saves time. Packing
 * does not save time for few sums, or for factors whose elements are used only once. */
static bool is_worth_packing(uint64_t batch, uint64_t m, uint64_t n, uint64_t k)
{
  return multiply(m, n) >= WORTH_SUMS && multiply(ka_least(m, n), k) >= WORTH_SUMS &&
         multiply(multiply(batch, k), multiply(m, n)) >= WORTH_TERMS;
}

/* Returns whether product_thin computes the product: a matrix is multiplied by a vector, the
 * product is large, and the matrix is not deep or its sums are long. Packing would not save any
 * load in such a product. */
static bool is_thin(const ka_product *p)
{
  bool is_deep = p->m >= p->n ? p->is_left_deep : p->is_right_deep;
  return ka_least(p->m, p->n) == 1 && (!is_deep || p->k >= 2 * CHAINS) &&
         multiply(multiply(p->batch, p->k), ka_most(p->m, p->n)) >= WORTH_TERMS;
}

static tiling plan_thin(const ka_call *call, const ka_product *p)
{
  tiling t = { .is_thin = true, .line = MOST_LINE };
  uint64_t many = ka_most(p->m, p->n), wanted = 2 * (uint64_t)ka_core_count(call);
  while (t.line > LEAST_LINE && multiply(p->batch, ka_divide_up(many, t.line)) < wanted)
    t.line /= 2;
  return t;
}

static tiling tile_product(const ka_call *call, const ka_product *product)
{
  uint64_t batch = product->batch, m = product->m, n = product->n;
  if (is_thin(product)) return plan_thin(call, product);
  if (!is_worth_packing(batch, m, n, product->k)) return (tiling){ .is_packed = false };
  uint64_t cores = ka_core_count(call), tiles = 0;
  tiling t = { .is_packed = true,
               .rows = ka_least(m, MOST_ROWS),
               .columns = ka_least(n, MOST_COLUMNS) };
  for (;;) {
    tiles = multiply(batch, multiply(ka_divide_up(m, t.rows), ka_divide_up(n, t.columns)));
    bool is_tall = t.rows >= 2 * LEAST_ROWS, is_wide = t.columns >= 2 * LEAST_COLUMNS;
    if (cores == 1 || tiles >= TILES * cores || !(is_tall || is_wide)) break;
    if (is_tall && (t.rows >= t.columns || !is_wide)) t.rows = ka_divide_up(t.rows, 2);
    else t.columns = ka_divide_up(t.columns, 2);
  }
  t.blocks = ka_least(multiply(tiles, 2), BLOCKS * cores);
  return t;
}

/* ---- the launch ---- */

/* Adds the launch of a product with a vector. arrays: for the factors and the result, the names of
 * the array parameters. */
static void launch_thin(ka_product_step *s, const tiling *t, const char *const arrays[3],
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

void ka_launch_on_cpu(ka_product_step *s, const ka_factor *a, const ka_factor *b,
                      const ka_factor *target)
{
  const char *of_left, *of_right, *outputs, *counts[KA_GROUPS];
  const char *type = ka_type_text(s->e->call, s->e->accumulator);
  tiling t = tile_product(s->e->call, &s->product);
  ka_begin_kernel(s->e->call,
                  t.is_packed ? "product_cpu"
                  : t.is_thin ? "product_thin"
                              : "product",
                  &s->kernel);
  ka_use_extents(s);
  ka_write_factor(s, "product_left", false, a, &of_left);
  ka_write_factor(s, "product_right", true, b, &of_right);
  ka_write_store(s, target, &outputs);
  ka_use_group_counts(s, counts);
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
