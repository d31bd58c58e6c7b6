/* Einstein sums: what einsum.c reads, einsum_path.c orders, and einsum_step.c launches. */
#ifndef KA_EINSUM_H
#define KA_EINSUM_H

#include "algorithm/algorithm.h"

/* Letters are numbers: A to Z, a to z, in NumPy's order, then the axes of an ellipsis, of which the
 * last one is the last. */
enum { KA_ELLIPSIS = 52, KA_LETTERS = KA_ELLIPSIS + KJ_MAX_RANK, KA_MOST_FACTORS = 10 };

/* What is multiplied: an operand, or work memory that a step before has written, whose letters
 * ascend, the last one fastest. */
typedef struct ka_factor {
  ka_operand *operand; /* NULL: work */
  uint32_t work;
  uint32_t rank;
  uint8_t letters[KJ_MAX_RANK]; /* by axis */
  uint64_t mask;                /* that it changes along */
} ka_factor;

typedef struct ka_einsum {
  ka_call *call;
  const char *expression;
  size_t count;
  ka_factor factors[KA_MOST_FACTORS];
  ka_factor result;
  int64_t extents[KA_LETTERS];
  kjit_type element, accumulator;
} ka_einsum;

/* einsum.c */

/* So many elements have these letters. Errors: ARGUMENT. */
uint64_t ka_count_letters(const ka_einsum *e, uint64_t mask);

/* product_cpu.c */

/* How the CPU does a product. */
typedef struct ka_product_tiling {
  bool is_packed;                 /* by product_packed; else product_all */
  uint64_t rows, columns, blocks; /* of a tile, at most; of the grid */
} ka_product_tiling;

/* Whether the letter along which elements are nearest in memory is one of these. Of a func it is
 * the last one. */
bool ka_is_nearest_along(const ka_factor *factor, uint64_t letters);

/* `batch` products of m rows and n columns, of sums of k terms. */
ka_product_tiling ka_tile_product(const ka_call *call, uint64_t batch, uint64_t m, uint64_t n,
                                  uint64_t k);

/* einsum_path.c: the steps, in the order that costs least. */
void ka_contract(ka_einsum *e);

/* einsum_step.c: target becomes the sum of a, or of the products of a and b, over all letters that
 * it does not have; b NULL: none. */
void ka_launch_product(const ka_einsum *e, const ka_factor *a, const ka_factor *b,
                       const ka_factor *target);

#endif
