/* Plans a product on a GPU without tensor copies. Chooses the kind of kernel, the size of the
 * tiles, and the number of parts into which each sum is divided. The kernel computes tiles, or one
 * sum for each warp or thread. */
#include "algorithm/einsum.h"

/* A tile size. test/bench/product_tiles.py measures each row. cost is the time for a term of a sum,
 * relative to the largest tile; it is higher for smaller tiles, which read shared memory more
 * often. at_once is the number of blocks on a multiprocessor. */
typedef struct tile_row {
  bool has_mma;
  uint32_t least_bytes, most_bytes; /* size range of the accumulator type */
  uint32_t rows, columns, depth, at_once;
  double cost;
} tile_row;

static const tile_row tile_table[] = {
  { false, 1, 4, 256, 128, 8, 1, 1.0 }, { false, 1, 4, 128, 128, 8, 1, 1.15 },
  { false, 1, 4, 128, 64, 16, 2, 1.2 }, { false, 1, 4, 64, 64, 16, 3, 1.5 },
  { false, 1, 4, 64, 64, 32, 2, 1.5 },  { false, 5, 8, 128, 64, 16, 1, 1.0 },
  { false, 5, 8, 64, 64, 16, 2, 1.15 }, { false, 9, 16, 64, 64, 8, 1, 1.0 },
  { false, 9, 16, 32, 32, 16, 2, 1.5 }, { true, 4, 4, 128, 128, 16, 2, 1.0 },
  { true, 4, 4, 64, 64, 16, 3, 1.7 },   { true, 8, 8, 64, 128, 16, 2, 1.0 },
  { true, 8, 8, 64, 64, 16, 2, 1.24 },
};

enum {
  /* products with at most this number of rows or columns use no tiles, which would be mostly
   * empty */
  THIN = 4,
  THREADS = 256,     /* TILE_THREADS of the library */
  LEAST_DEPTH = 128, /* minimum terms of a part */
  MOST_PARTS = 64,
  /* maximum number of blocks in a cluster on every device that supports clusters */
  MOST_CLUSTER = 8,
  CLUSTERS = 90, /* minimum compute capability for clusters */
  /* time for the start and end of a block if it is alone on a multiprocessor, in units of the time
   * for one term */
  ALONE = 64,
  MOST_THIN_PARTS = 2048,
  WAVES = 4 /* number of blocks for thin products, in waves of resident blocks */
};

/* Time for writing and reading a partial sum, in units of the time for one term. */
static const double cost_of_part = 24;
/* Times in units of the time for one term. cost_of_launch: a launch that adds the partial sums.
 * cost_of_cluster: a cluster that adds the partial sums of one sum. */
static const double cost_of_launch = 1e6, cost_of_cluster = 100;

static uint64_t count_tiles(const ka_product *p, const tile_row *row)
{
  return p->batch * ka_divide_up(p->m, row->rows) * ka_divide_up(p->n, row->columns);
}

/* Returns whether the blocks in a cluster compute the partial sums of a sum and add them. These
 * blocks keep their sums in shared memory. */
static bool has_cluster(const ka_call *call, const ka_product *p, const tile_row *row,
                        uint64_t parts)
{
  const kjit_device_info *info = &call->device->info;
  uint64_t bytes = ki_type(call->context->types, p->accumulator)->size_bytes,
           of_slices = 2 * (uint64_t)row->depth * (row->rows + row->columns + 32) * bytes,
           of_sums = (uint64_t)row->rows * (row->columns + 8) * bytes;
  return parts > 1 && parts <= MOST_CLUSTER && info->compute_capability >= CLUSTERS &&
         of_slices + of_sums <= info->max_shared_bytes / row->at_once;
}

/* Estimates the run time in units of the time for one term on a multiprocessor. A term takes longer
 * if a multiprocessor has fewer blocks than it can hold, because blocks wait for loads and no other
 * block can run meanwhile. */
static double estimate(const ka_call *call, const ka_product *p, const tile_row *row,
                       uint64_t parts)
{
  uint64_t cores = ka_core_count(call), blocks = ka_divide_up(count_tiles(p, row) * parts, cores);
  double idle = (double)(row->at_once - ka_least(blocks, row->at_once)) / row->at_once;
  double area = (double)row->rows * row->columns, terms = area * row->cost * (1 + idle / 2),
         deep = (double)ka_divide_up(p->k, parts) + (row->at_once > 1 ? 2 * row->depth : ALONE);
  double sums = (double)p->batch * (double)p->m * (double)p->n / (double)cores, added = 0;
  if (has_cluster(call, p, row, parts)) added = (double)blocks * area * cost_of_cluster;
  else if (parts > 1) added = sums * (double)parts * cost_of_part + cost_of_launch;
  return (double)blocks * terms * deep + added;
}

static ka_product_plan plan_tiles(const ka_call *call, const ka_product *p)
{
  ka_product_plan plan = { .kind = KA_PRODUCT_TILES, .has_mma = p->has_mma };
  uint32_t bytes = ki_type(call->context->types, p->accumulator)->size_bytes;
  double least = 0;
  for (size_t i = 0; i < sizeof tile_table / sizeof *tile_table; i++) {
    const tile_row *row = &tile_table[i];
    if (bytes < row->least_bytes || bytes > row->most_bytes || row->has_mma != p->has_mma) continue;
    for (uint64_t parts = 1; parts <= MOST_PARTS; parts *= 2) {
      double cost = estimate(call, p, row, parts);
      if (parts > 1 && p->k / parts < LEAST_DEPTH) break;
      if (plan.blocks && cost >= least) continue;
      least = cost;
      plan.rows = row->rows;
      plan.columns = row->columns;
      plan.depth = row->depth;
      plan.at_once = row->at_once;
      plan.cluster = has_cluster(call, p, row, parts) ? (uint32_t)parts : 0;
      plan.parts = plan.cluster ? 1 : parts;
      plan.blocks = count_tiles(p, row) * parts;
    }
  }
  return plan;
}

/* Plans a product with few rows or columns. If the elements of the larger factor are adjacent along
 * the summed dimension, the lanes in a warp share a sum. Otherwise adjacent threads compute
 * adjacent sums. */
static ka_product_plan plan_thin(const ka_call *call, const ka_product *p)
{
  bool is_deep = p->m >= p->n ? p->is_left_deep : p->is_right_deep;
  ka_product_plan plan = { .kind = is_deep ? KA_PRODUCT_WARPS : KA_PRODUCT_THREADS };
  uint64_t sums = p->batch * p->m * p->n, for_one = is_deep ? KJ_WARP_THREADS : 1;
  uint64_t wanted = (uint64_t)ka_core_count(call) * WAVES * THREADS / for_one,
           most = p->k / (LEAST_DEPTH * for_one);
  plan.parts = ka_most(1, ka_least(ka_least(wanted / sums, most), MOST_THIN_PARTS));
  plan.blocks = is_deep ? ka_divide_up(sums * plan.parts, THREADS / KJ_WARP_THREADS) : 0;
  return plan;
}

ka_product_plan ka_plan_product(const ka_call *call, const ka_product *p)
{
  return ka_least(p->m, p->n) <= THIN ? plan_thin(call, p) : plan_tiles(call, p);
}
