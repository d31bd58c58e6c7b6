/* How the CPU does products: which of lib/library's ways, and how tiles are shared among cores. */
#include "algorithm/einsum.h"

enum {
  /* The library has its own bounds of a tile, by the type and the machine's vectors. */
  MOST_ROWS = 182,
  MOST_COLUMNS = 192,
  LEAST_ROWS = 56,
  LEAST_COLUMNS = 64,
  TILES = 4,   /* of a core, so that the last ones take little of the time */
  BLOCKS = 32, /* of a core, at most: each has a few of many tiles */
  /* A tile in registers takes as long as so many sums on their own. */
  WORTH_SUMS = 8,
  WORTH_TERMS = 4096,
  /* Of products with a vector: partial sums of one sum, and sums at a time. */
  CHAINS = 64,
  MOST_LINE = 512,
  LEAST_LINE = 64
};

static uint64_t multiply(uint64_t a, uint64_t b)
{
  uint64_t product;
  return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* Sums that are few, or whose factors are used once, are not worth to be packed. */
static bool is_worth_packing(uint64_t batch, uint64_t m, uint64_t n, uint64_t k)
{
  return multiply(m, n) >= WORTH_SUMS && multiply(ka_least(m, n), k) >= WORTH_SUMS &&
         multiply(multiply(batch, k), multiply(m, n)) >= WORTH_TERMS;
}

/* A matrix and a vector: nothing is read twice that would be packed. */
static bool is_thin(const ka_product *p)
{
  bool is_deep = p->m >= p->n ? p->is_left_deep : p->is_right_deep;
  return ka_least(p->m, p->n) == 1 && (!is_deep || p->k >= 2 * CHAINS) &&
         multiply(multiply(p->batch, p->k), ka_most(p->m, p->n)) >= WORTH_TERMS;
}

static ka_product_tiling plan_thin(const ka_call *call, const ka_product *p)
{
  ka_product_tiling t = { .is_thin = true, .line = MOST_LINE };
  uint64_t many = ka_most(p->m, p->n), wanted = 2 * (uint64_t)ka_core_count(call);
  while (t.line > LEAST_LINE && multiply(p->batch, ka_divide_up(many, t.line)) < wanted)
    t.line /= 2;
  return t;
}

ka_product_tiling ka_tile_product(const ka_call *call, const ka_product *product)
{
  uint64_t batch = product->batch, m = product->m, n = product->n;
  if (is_thin(product)) return plan_thin(call, product);
  if (!is_worth_packing(batch, m, n, product->k)) return (ka_product_tiling){ .is_packed = false };
  uint64_t cores = ka_core_count(call), tiles = 0;
  ka_product_tiling t = { .is_packed = true,
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
