/* Products of i8, u8 and numbers of 8 bits on the tensor cores of GPUs, in layouts that tensor
 * copies do not take: lib/library/product_bytes.kir. */
#include "algorithm/einsum.h"
#include "ir/context.h"

enum {
  THIN = 4,           /* rows or columns, up to which tiles would be empty for the most part */
  DEPTH = 64,         /* terms of a slice */
  LEAST_DEPTH = 1024, /* of a part */
  MOST_PARTS = 64,
  LARGE = 128, /* rows and columns of a tile */
  SMALL = 64
};

/* Integers of 8 bits are summed in i32 where no bits are lost by that: where sums have 32 bits
 * anyway, or so few terms that 31 are enough. */
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
  if (!p->has_mma || !is_byte || ka_least(p->m, p->n) <= THIN || !p->k) return false;
  uint32_t side = count_tiles(p, LARGE) >= cores ? LARGE : SMALL;
  uint64_t tiles = count_tiles(p, side), most = ka_least(p->k / LEAST_DEPTH, MOST_PARTS);
  *plan = (ka_product_plan){
    .kind = KA_PRODUCT_BYTES, .rows = side, .columns = side, .depth = DEPTH, .at_once = 2
  };
  plan->parts = ka_most(1, ka_least(cores / tiles, most));
  plan->blocks = tiles * plan->parts;
  return true;
}
