/* Chooses the order in which an einsum's operands are multiplied. An order is a binary tree of
 * products. Dynamic programming over sets of operands finds the tree with the fewest
 * multiplications. */
#include <math.h>

#include "algorithm/einsum.h"

typedef struct path {
  ka_einsum *e;
  uint64_t *masks; /* indexed by set of operands: letters of their product */
  double *costs;
  /* indexed by set of operands: a subset; the product of the set is the product of this subset
   * times the product of all other operands in the set */
  uint32_t *splits;
} path;

/* Returns the letters of the product of a set of operands. A letter that occurs neither in another
 * operand nor in the result is summed in this product. */
static uint64_t letters_left(const ka_einsum *e, uint32_t set)
{
  uint64_t own = 0, others = e->result.mask;
  for (size_t i = 0; i < e->count; i++) {
    if (set >> i & 1) own |= e->factors[i].mask;
    else others |= e->factors[i].mask;
  }
  return own & others;
}

static double count_products(const ka_einsum *e, uint64_t mask)
{
  double count = 1;
  for (; mask; mask &= mask - 1) count *= (double)e->extents[__builtin_ctzll(mask)];
  return count;
}

static void split_set(path *p, uint32_t set)
{
  p->costs[set] = INFINITY;
  for (uint32_t half = (set - 1) & set; half; half = (half - 1) & set) {
    uint32_t other = set & ~half;
    if (half < other) continue;
    double cost =
      p->costs[half] + p->costs[other] + count_products(p->e, p->masks[half] | p->masks[other]);
    if (!(cost < p->costs[set])) continue;
    p->costs[set] = cost;
    p->splits[set] = half;
  }
}

static void find_path(path *p)
{
  ka_einsum *e = p->e;
  uint32_t all = (1u << e->count) - 1;
  for (uint32_t set = 1; set <= all; set++) {
    p->masks[set] = letters_left(e, set);
    bool is_one = !(set & (set - 1));
    if (!is_one) split_set(p, set);
    if (set != all && !is_one && __builtin_popcountll(p->masks[set]) > KJ_MAX_RANK)
      p->costs[set] = INFINITY;
  }
  if (isinf(p->costs[all]))
    ka_fail(e->call, KJIT_ERROR_UNSUPPORTED,
            "every order of evaluation of \"%s\" has a product with more than %d axes",
            e->expression, KJ_MAX_RANK);
}

static ka_factor store_in_work(const path *p, uint64_t mask)
{
  ka_factor factor = { .mask = mask };
  uint64_t count = ka_count_letters(p->e, mask);
  for (uint64_t left = mask; left; left &= left - 1)
    factor.letters[factor.rank++] = (uint8_t)__builtin_ctzll(left);
  factor.work = ka_add_work(p->e->call, p->e->accumulator, count ? count : 1, false);
  return factor;
}

/* Multiplies the operands of a set and returns the product as a factor. If target is NULL, the
 * product goes to temporary storage; in this case, a set with a single operand needs no product,
 * and the operand itself is returned. */
static ka_factor multiply_set(const path *p, uint32_t set, const ka_factor *target)
{
  const ka_einsum *e = p->e;
  ka_factor a, b, made;
  bool is_one = !(set & (set - 1));
  if (is_one) {
    a = e->factors[__builtin_ctz(set)];
    if (!target && a.mask == p->masks[set]) return a;
  } else {
    a = multiply_set(p, p->splits[set], NULL);
    b = multiply_set(p, set & ~p->splits[set], NULL);
  }
  made = target ? *target : store_in_work(p, p->masks[set]);
  ka_launch_product(e, &a, is_one ? NULL : &b, &made);
  return made;
}

void ka_contract(ka_einsum *e)
{
  size_t sets = (size_t)1 << e->count;
  kj_arena *arena = &e->call->arena;
  path p = { .e = e,
             .masks = KJ_NEW_ARRAY(arena, uint64_t, sets),
             .costs = KJ_NEW_ARRAY(arena, double, sets),
             .splits = KJ_NEW_ARRAY(arena, uint32_t, sets) };
  find_path(&p);
  (void)multiply_set(&p, (uint32_t)(sets - 1), &e->result);
}
