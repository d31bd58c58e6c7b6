/* Products on the tensor cores of GPUs. This file decides whether tensor copies (TMA) can load the
 * factors, and chooses the tile size. On sm_90a the kernels are product_tensor.kir and
 * product_f64.kir of lib/library. product_bytes.kir is the kernel for i8, u8 and FP8 factors whose
 * layout tensor copies do not support. */
#include <string.h>

#include "algorithm/einsum.h"

enum {
  COPY_BYTES = 16,  /* required alignment of rows and matrices for tensor copies */
  LEAST = 16,       /* number of rows, columns or terms below which tiles would be mostly empty */
  ROW_BYTES = 128,  /* bytes in a row of a slice */
  SIDE = 64,        /* rows of a warpgroup, columns of a band */
  MOST_CLUSTER = 8, /* maximum blocks in a cluster, supported on every device */
  LEAST_SLICES = 4, /* minimum slices of a block */
  RESERVED = 1024,  /* shared memory in bytes that the driver reserves for each block */
  MOST_FORMAT_BANDS = 2,       /* maximum bands for FP8, which needs two sets of sums */
  MOST_EXTENT = INT32_MAX / 2, /* the library uses i32 indices */
  /* Minimum number of times that a product must use each element so that packing saves time. If
   * each element is used MANY_USES times, packing takes a small part of the product's time. Fewer
   * uses are enough for elements of 2 and 4 bytes if the product has MANY_TERMS: packing, with its
   * launch, then takes less time than tensor copies save. A packed factor that is larger than the
   * L2 cache (CACHED_BYTES) is written to memory and read again, which takes time in proportion to
   * its bytes. */
  MANY_USES = 512,
  FEW_USES = 48,
  FEW_USES_OF_BYTE = 48,
  MANY_TERMS = 3 << 24,
  CACHED_BYTES = 32 << 20
};

/* Returns whether tensor cores multiply these elements and add them in this sum type. With the TF32
 * option, they multiply f32 as well. A factor in temporary storage has the accumulator type, so
 * this type must be the element type. */
bool ka_has_mma(const ka_einsum *e, const ka_factor *a, const ka_factor *b, kjit_type sum)
{
  bool has_work = !a->operand || !b->operand;
  const struct {
    kjit_type element, sum;
    uint32_t architecture;
    bool is_wished;
  } rows[] = { { KJIT_F16, KJIT_F32, 80, true },
               { KJIT_BF16, KJIT_F32, 80, true },
               { KJIT_F64, KJIT_F64, 90, true },
               { KJIT_F32, KJIT_F32, 80, e->call->options.flags & KJIT_ALGORITHM_TF32 },
               { KJIT_I8, KJIT_I32, 80, true },
               { KJIT_U8, KJIT_I32, 80, true },
               { KJIT_U8, KJIT_F32, 89, e->format != KA_INTEGER } };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].element == e->element && rows[i].sum == sum)
      return rows[i].is_wished && (!has_work || e->element == e->accumulator) &&
             e->call->device->info.compute_capability >= rows[i].architecture;
  return false;
}

/* ---- factors ---- */

/* Returns whether exactly one axis of the factor has the letter. If so, stores this axis'
 * stride. */
static bool find_letter(const ka_factor *factor, uint32_t letter, int64_t *stride)
{
  uint32_t found = 0;
  for (uint32_t i = 0; i < factor->rank; i++) {
    if (factor->letters[i] != letter) continue;
    *stride = factor->operand->view.strides[i];
    found++;
  }
  return found == 1 && (factor->mask >> letter & 1);
}

/* Returns whether the matrix is contiguous in C order, as tensor copies require. Other
 * matrices are packed first, or the product loads them without tensor copies. */
static bool is_row_major(const ka_matrix *matrix)
{
  int64_t expected = 1;
  for (uint32_t i = 3; i-- > 0;) {
    if (matrix->extents[i] != 1 && matrix->strides[i] != expected) return false;
    expected *= matrix->extents[i];
  }
  return true;
}

/* Describes a factor as a matrix if each of its groups has at most one letter. groups contains the
 * letters of the batch, of the factor's own dimension and of the summed dimension. */
bool ka_read_matrix(const ka_einsum *e, const ka_factor *factor, const uint64_t groups[3],
                    ka_matrix *matrix)
{
  int64_t strides[3] = { 0 }, extents[3] = { 1, 1, 1 };
  if (!factor || !factor->operand || factor->operand->function || factor->operand->is_value)
    return false;
  const kj_view *view = &factor->operand->view;
  int64_t unit = COPY_BYTES / view->element_bytes;
  for (uint32_t i = 0; i < 3; i++) {
    if (groups[i] & (groups[i] - 1)) return false;
    if (!groups[i]) continue;
    uint32_t letter = (uint32_t)__builtin_ctzll(groups[i]);
    extents[i] = e->extents[letter];
    if (!find_letter(factor, letter, &strides[i])) return false;
  }
  for (uint32_t i = 0; i < 3; i++)
    if (extents[i] > MOST_EXTENT) return false;
  matrix->is_deep = strides[2] == 1;
  uint32_t fast = matrix->is_deep ? 2 : 1, slow = matrix->is_deep ? 1 : 2;
  if (strides[fast] != 1 || view->address % COPY_BYTES) return false;
  if (!groups[slow]) strides[slow] = (extents[fast] + unit - 1) / unit * unit;
  if (!groups[0]) strides[0] = strides[slow] * extents[slow];
  const uint32_t order[] = { 0, slow, fast };
  for (uint32_t i = 0; i < 3; i++) {
    matrix->extents[i] = extents[order[i]];
    matrix->strides[i] = strides[order[i]];
    if (i < 2 && (matrix->strides[i] <= 0 || matrix->strides[i] % unit)) return false;
  }
  return is_row_major(matrix);
}

static bool is_worth_packing(uint32_t bytes, uint64_t uses, uint64_t elements)
{
  if (uses >= MANY_USES) return true;
  bool is_cached = elements <= CACHED_BYTES / bytes;
  return (bytes == 2 || bytes == 4) && uses >= (is_cached ? FEW_USES : FEW_USES_OF_BYTE * bytes) &&
         elements >= MANY_TERMS / uses;
}

bool ka_pack_matrix(const ka_einsum *e, const uint64_t groups[3], uint64_t uses, ka_matrix *matrix)
{
  uint32_t bytes = ki_type(e->call->context->types, e->element)->size_bytes;
  int64_t unit = COPY_BYTES / (int64_t)bytes;
  uint64_t elements = ka_count_letters(e, groups[0] | groups[1] | groups[2]);
  if (!is_worth_packing(bytes, uses, elements)) return false;
  *matrix = (ka_matrix){ .is_deep = true, .is_packed = true };
  for (uint32_t i = 0; i < 3; i++) matrix->extents[i] = (int64_t)ka_count_letters(e, groups[i]);
  for (uint32_t i = 0; i < 3; i++)
    if (matrix->extents[i] > MOST_EXTENT) return false;
  matrix->extents[2] = (matrix->extents[2] + unit - 1) / unit * unit;
  return true;
}

/* ---- tiles ---- */

/* A tile size. test/bench/products.py measures the rows. A tile of KA_PRODUCT_TENSOR has SIDE *
 * rows rows and SIDE * columns columns; for KA_PRODUCT_F64 rows and columns are the tile size. cost
 * is the time for a term of a sum, relative to the largest tile. alone is the factor by which a
 * block is slower if it is alone on a multiprocessor. at_once is the maximum number of blocks on a
 * multiprocessor, which registers limit. */
typedef struct tile_row {
  uint32_t rows, columns, stages, at_once, tall, wide;
  double cost, cost_of_f32, alone;
} tile_row;

static const tile_row tensor_table[] = {
  { 2, 4, 4, 1, 0, 0, 1.0, 1.0, 1 }, { 2, 2, 4, 2, 0, 0, 1.25, 1.45, 1 },
  { 1, 2, 8, 3, 0, 0, 1.9, 1.5, 1 }, { 2, 1, 4, 4, 0, 0, 1.6, 1.75, 1 },
  { 1, 1, 4, 6, 0, 0, 2.2, 2.2, 1 },
};

static const tile_row f64_table[] = {
  { 128, 128, 4, 1, 64, 32, 1.0, 0, 1 },
  { 128, 64, 4, 2, 64, 32, 1.04, 0, 2 },
  { 64, 64, 4, 2, 32, 16, 1.15, 0, 1.3 },
};

/* start, store and cost_of_cluster are times in microseconds: for starting a block, for storing a
 * sum, and for using clusters. terms_of_f16 and terms_of_f64 are the numbers of terms that a
 * multiprocessor adds in a microsecond, for 2-byte elements and for f64. */
static const double start = 1.5, store = 1e-4, cost_of_cluster = 3;
static const double terms_of_f16 = 2.75e6, terms_of_f64 = 0.23e6;

typedef struct tile_size {
  uint64_t rows, columns, shared_bytes; /* shared memory of a block */
} tile_size;

/* Returns a tile's size, and the size of the shared memory that the library's funcs declare for
 * it. */
static tile_size measure(const tile_row *row, uint64_t stages, uint32_t cluster)
{
  bool is_f64 = row->tall != 0;
  tile_size size = { .rows = row->rows, .columns = row->columns };
  if (!is_f64) {
    size.rows *= SIDE;
    size.columns *= SIDE;
  }
  uint64_t warps = is_f64 ? size.rows / row->tall * (size.columns / row->wide) : 0,
           turned = is_f64 ? warps * 16 * 17 * 8 : size.rows * 40 * 4;
  if (cluster > 1)
    turned = is_f64 ? size.rows * (size.columns + 4) * 8 : size.rows * (size.columns + 8) * 4;
  size.shared_bytes =
    /* 1024 more bytes, because the slices are aligned inside of the shared memory */
    1024 + stages * ((size.rows + size.columns) * ROW_BYTES + 16) + turned;
  return size;
}

static uint64_t count_blocks(const ka_product *p, const tile_size *size)
{
  return p->batch * ka_divide_up(p->m, size->rows) * ka_divide_up(p->n, size->columns);
}

/* Estimates the time of a product in microseconds. */
static double estimate(const ka_einsum *e, const ka_product *p, const tile_row *row,
                       const ka_product_plan *plan, const tile_size *size)
{
  uint32_t bytes = ki_type(e->call->context->types, e->element)->size_bytes;
  bool is_f32 = e->element == KJIT_F32;
  uint64_t cores = ka_core_count(e->call);
  double area = (double)size->rows * (double)size->columns,
         rounds = (double)ka_divide_up(plan->blocks, cores),
         starts = (double)ka_divide_up(plan->blocks, cores * plan->at_once),
         deep = (double)ka_divide_up(p->k, ka_most(plan->cluster, 1)),
         cost = is_f32 ? row->cost_of_f32 : row->cost,
         rate = row->tall ? terms_of_f64 : terms_of_f16 * 2 / bytes;
  if (rounds < 2 || plan->at_once < 2) cost *= row->alone;
  return rounds * area * deep * cost / rate + starts * (start + area * store) +
         (plan->cluster ? cost_of_cluster + area * store : 0);
}

bool ka_plan_tensor(const ka_einsum *e, const ka_product *p, ka_product_plan *plan)
{
  const ka_call *call = e->call;
  const kjit_device_info *info = &call->device->info;
  bool is_f64 = p->accumulator == KJIT_F64;
  const tile_row *table = is_f64 ? f64_table : tensor_table;
  size_t count =
    is_f64 ? sizeof f64_table / sizeof *f64_table : sizeof tensor_table / sizeof *tensor_table;
  uint64_t bytes = ki_type(call->context->types, e->element)->size_bytes,
           slices = ka_divide_up(p->k * bytes, ROW_BYTES);
  double least = 0;
  /* a driver that supports sm_90a also supports tensor maps */
  if (strcmp(call->device->code_target, "sm_90a") != 0 || !p->has_mma || p->m < LEAST ||
      p->n < LEAST || p->k < LEAST)
    return false;
  *plan = (ka_product_plan){ .parts = 1 };
  for (const tile_row *row = table; row < table + count; row++) {
    if (e->format && row->columns > MOST_FORMAT_BANDS) continue;
    for (uint32_t cluster = 1; cluster <= MOST_CLUSTER; cluster *= 2) {
      if (cluster > 1 && slices / cluster < LEAST_SLICES) break;
      uint32_t stages = (uint32_t)ka_least(row->stages, ka_divide_up(slices, cluster));
      tile_size size = measure(row, stages, cluster);
      if (size.shared_bytes > info->max_shared_bytes) continue;
      uint64_t fit = (info->max_shared_bytes + RESERVED) / (size.shared_bytes + RESERVED);
      ka_product_plan next = { .kind = is_f64 ? KA_PRODUCT_F64 : KA_PRODUCT_TENSOR,
                               .rows = row->rows,
                               .columns = row->columns,
                               .depth = stages,
                               .tall = row->tall,
                               .wide = row->wide,
                               .parts = 1,
                               .cluster = cluster > 1 ? cluster : 0,
                               .at_once = (uint32_t)ka_least(row->at_once, fit),
                               .blocks = count_blocks(p, &size) * cluster };
      double cost = estimate(e, p, row, &next, &size);
      if (plan->blocks && cost >= least) continue;
      least = cost;
      *plan = next;
    }
  }
  return plan->blocks != 0;
}

/* Returns whether swapping the factors gives better layouts (see is_left_deep). The best layouts
 * are a left factor that is not deep and a right factor that is deep. Tensor cores read the left
 * factor from registers, so an f32 left factor can have either layout, but an f32 right factor has
 * to be deep. Products of f64 accept all layouts and are fastest with the best layouts. */
bool ka_is_better_turned(const ka_einsum *e, const ka_matrix *left, const ka_matrix *right)
{
  return (e->element == KJIT_F32 || e->element == KJIT_F64) && left->is_deep && !right->is_deep;
}

/* ---- 8-bit elements in any layout ---- */

enum {
  /* products with at most this number of rows or columns use no tiles, which would be mostly
   * empty */
  BYTES_THIN = 4,
  BYTES_DEPTH = 64,         /* terms of a slice */
  BYTES_LEAST_DEPTH = 1024, /* minimum terms of a part */
  BYTES_PARTS = 64,
  BYTES_LARGE = 128, /* rows and columns in a tile */
  BYTES_SMALL = 64
};

/* Chooses i32 as the sum type of 8-bit integers if no bits are lost: if the accumulator has at most
 * 32 bits, or if a sum has so few terms that it fits 31 bits. */
kjit_type ka_choose_sum(const ka_einsum *e, const ka_factor *a, const ka_factor *b, uint64_t terms)
{
  const ki_types *types = e->call->context->types;
  bool is_signed = e->element == KJIT_I8;
  if (e->format || !(is_signed || e->element == KJIT_U8) || !ka_is_integer(e->call, e->accumulator))
    return e->accumulator;
  if (!a->operand || !b || !b->operand) return e->accumulator;
  uint64_t largest = is_signed ? 128 * 128 : 255 * 255;
  bool is_narrow = ki_type(types, e->accumulator)->size_bytes <= 4;
  return is_narrow || terms <= INT32_MAX / largest ? KJIT_I32 : e->accumulator;
}

static uint64_t count_tiles(const ka_product *p, uint32_t side)
{
  return p->batch * ka_divide_up(p->m, side) * ka_divide_up(p->n, side);
}

bool ka_plan_bytes(const ka_einsum *e, const ka_product *p, ka_product_plan *plan)
{
  uint64_t cores = ka_core_count(e->call);
  bool is_byte = e->element == KJIT_I8 || e->element == KJIT_U8;
  if (!p->has_mma || !is_byte || ka_least(p->m, p->n) <= BYTES_THIN || !p->k) return false;
  uint32_t side = count_tiles(p, BYTES_LARGE) >= cores ? BYTES_LARGE : BYTES_SMALL;
  uint64_t tiles = count_tiles(p, side), most = ka_least(p->k / BYTES_LEAST_DEPTH, BYTES_PARTS);
  *plan = (ka_product_plan){
    .kind = KA_PRODUCT_BYTES, .rows = side, .columns = side, .depth = BYTES_DEPTH, .at_once = 2
  };
  plan->parts = ka_most(1, ka_least(cores / tiles, most));
  plan->blocks = tiles * plan->parts;
  return true;
}
