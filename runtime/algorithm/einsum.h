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

/* What a GPU sums products of a and b (NULL: none) in, so many of them. */
kjit_type ka_choose_sum(const ka_einsum *e, const ka_factor *a, const ka_factor *b, uint64_t terms);
/* Of 8 bits, in any layout. False: there are no tensor cores for it, or too few rows or columns. */
bool ka_plan_bytes(const ka_einsum *e, const ka_product *product, ka_product_plan *plan);

/* product_plan.c */
ka_product_plan ka_plan_product(const ka_call *call, const ka_product *product);

/* einsum_path.c: the steps, in the order that costs least. */
void ka_contract(ka_einsum *e);

/* One product as it becomes a kernel. Letters are in four groups: of both factors and the result,
 * of the first one and the result, of the second one and the result, and those that are summed. */
enum { KA_GROUPS = 4, KA_SUMMED = 3 };
typedef struct ka_product_step {
  const ka_einsum *e;
  ka_kernel kernel;
  ka_product product;
  ka_matrix matrices[2]; /* the factors, where kernels take arrays */
  bool is_turned;        /* neighbours in the result lie along the rows */
  uint64_t groups[KA_GROUPS];
  const char *extents[KA_LETTERS], *list; /* parameters, where an index is taken apart by them */
  const char *reads; /* what elements of factors are read by: "", or from_e4m3 */
} ka_product_step;

/* einsum_step.c: target becomes the sum of a, or of the products of a and b, over all letters that
 * it does not have; b NULL: none. */
void ka_launch_product(const ka_einsum *e, const ka_factor *a, const ka_factor *b,
                       const ka_factor *target);

/* Adds parameters for the extents of all letters, also of those that stand in the place of a work
 * memory's; those that the funcs below take behind their arrays. */
void ka_use_extents(ka_product_step *s);
/* Parameters for the number of indices of each group. */
void ka_use_group_counts(ka_product_step *s, const char **counts);
/* Writes the func of what the left factor, or the right one, is at an index of each of its groups,
 * and gives the names of its arrays, each behind a comma; factor NULL: one. */
void ka_write_factor(ka_product_step *s, const char *name, bool is_right, const ka_factor *factor,
                     const char **arrays);
/* The same of product_put, which stores a sum. */
void ka_write_store(ka_product_step *s, const ka_factor *target, const char **arrays);

/* product_cpu.c, product_gpu.c */
void ka_launch_on_cpu(ka_product_step *s, const ka_factor *a, const ka_factor *b,
                      const ka_factor *target);
void ka_launch_on_gpu(ka_product_step *s, const ka_factor *a, const ka_factor *b,
                      const ka_factor *target);

#endif
