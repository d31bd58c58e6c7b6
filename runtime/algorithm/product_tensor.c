/* Products on the tensor cores of GPUs of sm_90a, by lib/library/product_tensor.kir: which factors
 * tensor copies can fetch, and tiles of which size a product gets. */
#include <string.h>

#include "algorithm/einsum.h"

enum {
  COPY_BYTES = 16, /* rows and matrices start at multiples of so many, for tensor copies */
  LEAST = 16,      /* rows, columns and terms, below which tiles would be empty for the most part */
  ROW_BYTES = 128, /* of a slice */
  SIDE = 64,       /* rows of a warpgroup, columns of a band */
  MOST_PARTS = 64,
  LEAST_SLICES = 4,            /* of a part */
  MOST_FORMAT_BANDS = 2,       /* of numbers of 8 bits, which have two sets of sums */
  MOST_EXTENT = INT32_MAX / 2, /* the library's places in a matrix are i32 */
  LEAST_USES = 512 /* of an element, so that packing it takes little beside the product */
};

/* Whether tensor cores multiply these elements into these sums, f16 and bf16 as tf32, too. A factor
 * in work memory has more bits than those. */
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

/* Whether the letter is along one axis of the factor, and its stride there. */
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

/* groups: letters of the batch, of the factor's own axis, of the sum; one each at most. */
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
  if (!groups[0]) strides[0] = strides[slow] * extents[slow];
  const uint32_t order[] = { 0, slow, fast };
  for (uint32_t i = 0; i < 3; i++) {
    matrix->extents[i] = extents[order[i]];
    matrix->strides[i] = strides[order[i]];
    if (i < 2 && (matrix->strides[i] <= 0 || matrix->strides[i] % unit)) return false;
  }
  return true;
}

bool ka_pack_matrix(const ka_einsum *e, const uint64_t groups[3], uint64_t uses, ka_matrix *matrix)
{
  int64_t unit = COPY_BYTES / (int64_t)ki_type(e->call->context->types, e->element)->size_bytes;
  if (uses < LEAST_USES) return false;
  *matrix = (ka_matrix){ .is_deep = true, .is_packed = true };
  for (uint32_t i = 0; i < 3; i++) matrix->extents[i] = (int64_t)ka_count_letters(e, groups[i]);
  for (uint32_t i = 0; i < 3; i++)
    if (matrix->extents[i] > MOST_EXTENT) return false;
  matrix->extents[2] = (matrix->extents[2] + unit - 1) / unit * unit;
  return true;
}

/* ---- tiles ---- */

/* test/bench/products.py times them. cost: of a term of a sum, beside the largest tile: smaller
 * ones fetch more for each, and wait more often. */
typedef struct tile_row {
  uint32_t groups, bands, stages;
  double cost;
} tile_row;

static const tile_row tile_table[] = {
  { 2, 4, 4, 1.0 },
  { 2, 2, 4, 1.15 },
  { 2, 1, 4, 1.6 },
  { 1, 1, 4, 2.2 },
};

/* Terms that a block takes before it multiplies and behind it, and a part's sum in memory. */
static const double cost_of_block = 384, cost_of_part = 160;

static uint64_t count_blocks(const ka_product *p, const tile_row *row)
{
  return p->batch * ka_divide_up(p->m, (uint64_t)SIDE * row->groups) *
         ka_divide_up(p->n, (uint64_t)SIDE * row->bands);
}

static double estimate(const ka_call *call, const ka_product *p, const tile_row *row,
                       uint64_t parts)
{
  uint64_t cores = ka_core_count(call);
  double waves = (double)ka_divide_up(count_blocks(p, row) * parts, cores),
         area = (double)SIDE * SIDE * row->groups * row->bands,
         deep = (double)ka_divide_up(p->k, parts) + cost_of_block,
         sums = (double)p->batch * (double)p->m * (double)p->n / (double)cores;
  return waves * area * deep * row->cost + (parts > 1 ? sums * (double)parts * cost_of_part : 0);
}

bool ka_plan_tensor(const ka_einsum *e, const ka_product *p, ka_product_plan *plan)
{
  const ka_call *call = e->call;
  double least = 0;
  /* a driver that knows sm_90a makes tensor maps, too */
  if (strcmp(call->device->code_target, "sm_90a") != 0 || !p->has_mma ||
      p->accumulator == KJIT_F64 || p->m < LEAST || p->n < LEAST || p->k < LEAST)
    return false;
  uint64_t slices =
    ka_divide_up(p->k * ki_type(call->context->types, e->element)->size_bytes, ROW_BYTES);
  *plan = (ka_product_plan){ .kind = KA_PRODUCT_TENSOR, .at_once = 1 };
  for (size_t i = 0; i < sizeof tile_table / sizeof *tile_table; i++) {
    const tile_row *row = &tile_table[i];
    if (e->format && row->bands > MOST_FORMAT_BANDS) continue;
    for (uint64_t parts = 1; parts <= MOST_PARTS; parts *= 2) {
      double cost = estimate(call, p, row, parts);
      if (parts > 1 && slices / parts < LEAST_SLICES) break;
      if (plan->blocks && cost >= least) continue;
      least = cost;
      plan->rows = row->groups;
      plan->columns = row->bands;
      plan->depth = (uint32_t)ka_least(row->stages, ka_divide_up(slices, parts));
      plan->parts = parts;
      plan->blocks = count_blocks(p, row) * parts;
    }
  }
  return true;
}
