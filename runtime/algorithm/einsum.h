/* Einstein sums: what einsum.c reads, einsum_path.c orders, and einsum_step.c launches. */
#ifndef KA_EINSUM_H
#define KA_EINSUM_H

#include "algorithm/algorithm.h"

/* Letters are numbers: A to Z, a to z, in NumPy's order, then the axes of an ellipsis, of which the
 * last one is the last. */
enum { KA_ELLIPSIS = 52, KA_LETTERS = KA_ELLIPSIS + KJ_MAX_RANK, KA_MOST_FACTORS = 10 };
enum { KA_MOST_EXTRAS = 8 /* operands of an epilogue */ };

/* What is multiplied: an operand, or work memory that a step before has written, whose letters
 * ascend, the last one fastest. */
typedef struct ka_factor {
  ka_operand *operand; /* NULL: work */
  uint32_t work;
  uint32_t rank;
  uint8_t letters[KJ_MAX_RANK]; /* by axis */
  uint64_t mask;                /* that it changes along */
} ka_factor;

/* What an element of the result goes through before it is stored. */
typedef struct ka_epilogue {
  kjit_function *function; /* NULL: nothing */
  size_t count;
  ka_factor factors[KA_MOST_EXTRAS]; /* its operands behind the sum, with letters of the result */
} ka_epilogue;

/* What u8 stand for; the numbers are those of the library's FORMAT. */
typedef enum ka_format { KA_INTEGER, KA_E4M3, KA_E5M2 } ka_format;

typedef struct ka_einsum {
  ka_call *call;
  const char *expression;
  size_t count;
  ka_factor factors[KA_MOST_FACTORS];
  ka_factor result;
  int64_t extents[KA_LETTERS];
  kjit_type element, accumulator;
  ka_format format;
  ka_epilogue epilogue;
} ka_einsum;

/* A step as a product of matrices, `batch` of them: of m rows and n columns, sums of k terms. */
typedef struct ka_product {
  kjit_type accumulator; /* of the kernel: the einsum's, or one that gives the same bits */
  uint64_t batch, m, n, k;
  /* neighbours in the factor's memory are neighbours along the sum, as in the rows of a left one */
  bool is_left_deep, is_right_deep;
  bool has_mma; /* the device's tensor cores multiply such factors into such sums */
} ka_product;

typedef enum ka_product_kind {
  KA_PRODUCT_TENSOR,  /* tensor cores: library's product_tensor */
  KA_PRODUCT_F64,     /* the same of f64: product_f64 */
  KA_PRODUCT_BYTES,   /* of 8 bits in any layout: product_bytes; the others: product_tiles */
  KA_PRODUCT_TILES,   /* sums of a block in registers, factors in shared memory */
  KA_PRODUCT_VECTORS, /* a sum for each warp, of arrays that it reads 16 bytes at a time */
  KA_PRODUCT_WARPS,   /* a sum for each warp */
  KA_PRODUCT_THREADS
} ka_product_kind;

/* How a GPU does it. */
typedef struct ka_product_plan {
  ka_product_kind kind;
  /* of tiles; KA_PRODUCT_TENSOR: warpgroups, bands of columns, slots of slices */
  uint32_t rows, columns, depth;
  uint32_t tall, wide; /* KA_PRODUCT_F64: of a warp */
  uint32_t cluster;    /* so many blocks have a part of each sum and add them; 0: none */
  bool has_mma;        /* KA_PRODUCT_TILES: by tensor cores */
  uint32_t at_once;    /* blocks on a multiprocessor; 0: the compiler chooses */
  uint64_t parts;      /* of each sum in work memory; over 1: added in a launch of their own */
  uint64_t blocks;
} ka_product_plan;

/* einsum.c */

/* So many elements have these letters. Errors: ARGUMENT. */
uint64_t ka_count_letters(const ka_einsum *e, uint64_t mask);

/* product_epilogue.c */

/* Reads options.epilogue and its operands. Errors: ARGUMENT, UNSUPPORTED; those of operands. */
void ka_read_epilogue(ka_einsum *e);
/* What it returns for sums of a type, which numbers among its operands take. Errors: TYPE. */
kjit_type ka_infer_epilogue(ka_einsum *e, kjit_type sum);

/* product_cpu.c */

/* How the CPU does a product. */
typedef struct ka_product_tiling {
  bool is_packed, is_thin;        /* by product_packed, product_thin; else product_all */
  uint64_t rows, columns, blocks; /* is_packed: of a tile, at most; of the grid */
  uint32_t line;                  /* is_thin: sums at a time */
} ka_product_tiling;

ka_product_tiling ka_tile_product(const ka_call *call, const ka_product *product);

/* A factor as tensor copies fetch it: of the batch, of rows, and of neighbours in memory, which lie
 * along the sum (is_deep) or across it. */
typedef struct ka_matrix {
  int64_t extents[3], strides[3];
  bool is_deep;
  bool is_packed; /* it is put into work memory first, of these extents */
  uint32_t work;
} ka_matrix;

/* product_tensor.c; false: not by tensor cores */
bool ka_read_matrix(const ka_einsum *e, const ka_factor *factor, const uint64_t groups[3],
                    ka_matrix *matrix);
/* How it is packed for them, deep; false: it is not used often enough. uses: of each element. */
bool ka_pack_matrix(const ka_einsum *e, const uint64_t groups[3], uint64_t uses, ka_matrix *matrix);
bool ka_has_mma(const ka_einsum *e, const ka_factor *a, const ka_factor *b, kjit_type sum);
bool ka_plan_tensor(const ka_einsum *e, const ka_product *product, ka_product_plan *plan);
/* Whether the product of the transposed matrices is faster, given how they lie. */
bool ka_is_better_turned(const ka_einsum *e, const ka_matrix *left, const ka_matrix *right);

/* product_bytes.c */

/* What a GPU sums products of a and b (NULL: none) in, so many of them. */
kjit_type ka_choose_sum(const ka_einsum *e, const ka_factor *a, const ka_factor *b, uint64_t terms);
/* False: there are no tensor cores for it, or too few rows or columns. */
bool ka_plan_bytes(const ka_einsum *e, const ka_product *product, ka_product_plan *plan);

/* product_plan.c */
ka_product_plan ka_plan_product(const ka_call *call, const ka_product *product);

/* einsum_path.c: the steps, in the order that costs least. */
void ka_contract(ka_einsum *e);

/* einsum_step.c: target becomes the sum of a, or of the products of a and b, over all letters that
 * it does not have; b NULL: none. */
void ka_launch_product(const ka_einsum *e, const ka_factor *a, const ka_factor *b,
                       const ka_factor *target);

#endif
