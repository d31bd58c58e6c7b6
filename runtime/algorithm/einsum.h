/* Declarations for Einstein sums (kjit_einsum). einsum.c parses the expression, einsum_path.c
 * chooses the order of the products, and einsum_step.c writes the kernel of each product. */
#ifndef KA_EINSUM_H
#define KA_EINSUM_H

#include "algorithm/algorithm.h"

/* Letters are numbered: first A to Z, then a to z, as in NumPy, then the ellipsis' axes in
 * order. */
enum { KA_ELLIPSIS = 52, KA_LETTERS = KA_ELLIPSIS + KJ_MAX_RANK, KA_MOST_FACTORS = 10 };
enum { KA_MOST_EXTRAS = 8 /* maximum number of operands of an epilogue */ };

/* A factor of a product: an operand, or temporary storage that an earlier step has written. In
 * temporary storage the letters are in ascending order, and the last letter has stride 1. */
typedef struct ka_factor {
  ka_operand *operand; /* NULL for temporary storage */
  uint32_t work;
  uint32_t rank;
  uint8_t letters[KJ_MAX_RANK]; /* letter of each axis */
  uint64_t mask;                /* set of letters along which the factor varies */
} ka_factor;

/* A func that is applied to each element of the result before it is stored. */
typedef struct ka_epilogue {
  kjit_function *function; /* NULL means no epilogue */
  size_t count;
  /* operands of the epilogue that follow the sum; their axes have letters of the result */
  ka_factor factors[KA_MOST_EXTRAS];
} ka_epilogue;

/* How a product interprets u8 elements. The constant FORMAT of lib/library has the same values. */
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

/* A product of two factors as a batch of matrix products: `batch` products with m rows and n
 * columns, where each element is a sum of k terms. */
typedef struct ka_product {
  /* accumulator type of the kernel: the einsum's accumulator type, or a type that gives the same
   * bits */
  kjit_type accumulator;
  uint64_t batch, m, n, k;
  /* A factor is called deep if its adjacent elements in memory lie along the summed dimension. For
   * example, the left factor of a product of row-major matrices is deep. */
  bool is_left_deep, is_right_deep;
  bool has_mma; /* the device's tensor cores support these element and sum types */
} ka_product;

typedef enum ka_product_kind {
  KA_PRODUCT_TENSOR,  /* tensor cores with tensor copies: product_tensor.kir */
  KA_PRODUCT_F64,     /* tensor cores for f64: product_f64.kir */
  KA_PRODUCT_BYTES,   /* a product of 8-bit elements of any layout by tensor cores:
                         product_bytes.kir */
  KA_PRODUCT_TILES,   /* a block keeps its sums in registers and tiles of the factors in shared
                       * memory */
  KA_PRODUCT_VECTORS, /* each warp computes one sum of two arrays that it loads 16 bytes at a
                       * time */
  KA_PRODUCT_WARPS,   /* each warp computes one sum */
  KA_PRODUCT_THREADS
} ka_product_kind;

/* How a GPU computes a product. */
typedef struct ka_product_plan {
  ka_product_kind kind;
  /* size of a tile; for KA_PRODUCT_TENSOR: the number of warpgroups, of bands of columns, and of
   * slots for slices */
  uint32_t rows, columns, depth;
  uint32_t tall, wide; /* for KA_PRODUCT_F64: size of a warp's tile */
  /* number of blocks in a cluster; the blocks in a cluster divide the terms of each sum among
   * themselves and then add their partial sums; 0 means no clusters */
  uint32_t cluster;
  bool has_mma; /* for KA_PRODUCT_TILES: the kernel uses tensor cores */
  /* minimum number of blocks on a multiprocessor; 0 means that the compiler chooses */
  uint32_t at_once;
  uint64_t parts; /* number of partial sums for each sum; if more than 1, they are in temporary
                   * storage and a separate launch adds them */
  uint64_t blocks;
} ka_product_plan;

/* einsum.c */

/* Returns the product of the extents of these letters. Errors: ARGUMENT. */
uint64_t ka_count_letters(const ka_einsum *e, uint64_t mask);

/* product_epilogue.c */

/* Reads options.epilogue and its operands. Errors: ARGUMENT, UNSUPPORTED, and the errors of reading
 * operands. */
void ka_read_epilogue(ka_einsum *e);
/* Returns the type that the epilogue returns for sums of a type. Untyped numbers among its operands
 * get their type. Errors: TYPE. */
kjit_type ka_infer_epilogue(ka_einsum *e, kjit_type sum);

/* A factor in a layout that tensor copies (TMA) can load. Its dimensions are the batch, the rows,
 * and the elements in a row. If is_deep is true, a row contains elements along the summed
 * dimension; otherwise each index of the summed dimension has a row. */
typedef struct ka_matrix {
  int64_t extents[3], strides[3];
  bool is_deep;
  bool is_packed; /* the factor is first copied to temporary storage with these extents */
  uint32_t work;
} ka_matrix;

/* Describes the factor as a matrix for tensor copies (product_tensor.c). Returns false if tensor
 * copies cannot load it. */
bool ka_read_matrix(const ka_einsum *e, const ka_factor *factor, const uint64_t groups[3],
                    ka_matrix *matrix);
/* Describes a copy of the factor that is packed into temporary storage; the copy is deep. Returns
 * false if packing would take longer than the time that it saves. uses: how often the product uses
 * each element. */
bool ka_pack_matrix(const ka_einsum *e, const uint64_t groups[3], uint64_t uses, ka_matrix *matrix);
bool ka_has_mma(const ka_einsum *e, const ka_factor *a, const ka_factor *b, kjit_type sum);
bool ka_plan_tensor(const ka_einsum *e, const ka_product *product, ka_product_plan *plan);
/* Returns whether, for these layouts, the product is faster as a product of the transposed matrices
 * in reverse order. */
bool ka_is_better_turned(const ka_einsum *e, const ka_matrix *left, const ka_matrix *right);

/* Returns the type in which a GPU sums `terms` products of a and b. b may be NULL. */
kjit_type ka_choose_sum(const ka_einsum *e, const ka_factor *a, const ka_factor *b, uint64_t terms);
/* Plans a product of 8-bit elements in any layout. Returns false if the device has no suitable
 * tensor cores, or if the product has too few rows or columns. */
bool ka_plan_bytes(const ka_einsum *e, const ka_product *product, ka_product_plan *plan);

/* product_plan.c */
ka_product_plan ka_plan_product(const ka_call *call, const ka_product *product);

/* einsum_path.c: launches the steps in the cheapest order. */
void ka_contract(ka_einsum *e);

/* A product whose kernel is being written. The letters form four groups: letters of both factors
 * and the result; letters of only the first factor and the result; letters of only the second
 * factor and the result; and summed letters. */
enum { KA_GROUPS = 4, KA_SUMMED = 3 };
typedef struct ka_product_step {
  const ka_einsum *e;
  ka_kernel kernel;
  ka_product product;
  ka_matrix matrices[2]; /* layouts of the factors, if the kernel takes arrays */
  bool is_turned; /* true if adjacent elements of the result lie along the dimension of rows */
  uint64_t groups[KA_GROUPS];
  const char *extents[KA_LETTERS], *list; /* extent parameters, used to split a linear index into
                                           * indices of letters */
  const char *reads; /* name of a func that converts loaded elements, such as from_e4m3, or "" */
} ka_product_step;

/* Adds the step that sets target to the sum of a, or of the products of a and b, over all letters
 * that target does not have (einsum_step.c). b may be NULL. */
void ka_launch_product(const ka_einsum *e, const ka_factor *a, const ka_factor *b,
                       const ka_factor *target);

/* Adds parameters for the extents of all letters and for the extents of temporary storage. The
 * funcs that ka_write_factor and ka_write_store write take these parameters after their arrays. */
void ka_use_extents(ka_product_step *s);
/* Adds parameters for the number of indices of each group. */
void ka_use_group_counts(ka_product_step *s, const char **counts);
/* Writes the func that returns an element of the left or right factor for an index of each of its
 * groups. *arrays receives the names of its array parameters, each after a comma. factor NULL means
 * that every element is 1. */
void ka_write_factor(ka_product_step *s, const char *name, bool is_right, const ka_factor *factor,
                     const char **arrays);
/* Writes product_put, the func that stores a sum. arrays: as for ka_write_factor. */
void ka_write_store(ka_product_step *s, const ka_factor *target, const char **arrays);

/* product_cpu.c, product_gpu.c */
void ka_launch_on_cpu(ka_product_step *s, const ka_factor *a, const ka_factor *b,
                      const ka_factor *target);
void ka_launch_on_gpu(ka_product_step *s, const ka_factor *a, const ka_factor *b,
                      const ka_factor *target);

#endif
