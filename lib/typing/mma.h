/* Matrix products of a warp (mma.def): their fragments' types, and the positions of fragment
 * elements in the matrix. */
#ifndef KJ_TYPING_MMA_H
#define KJ_TYPING_MMA_H

#include "typing/typed.h"

typedef struct kt_mma_element {
  const char *ptx;
  kjit_type type; /* type of the fragment's elements */
  /* size of a matrix element; less than the type size if a value of the type holds several
   * elements */
  uint32_t bits;
  char constraint; /* constraint letter of a register in inline PTX */
} kt_mma_element;
extern const kt_mma_element kt_mma_elements[KJ_MMA_KIND_COUNT];

/* Variants of integer products. SAT clamps sums instead of wrapping them. XOR and AND count the
 * bits that are set in the XOR or AND of two words. */
typedef enum kt_mma_variant { KJ_MMA_PLAIN, KJ_MMA_SAT, KJ_MMA_XOR, KJ_MMA_AND } kt_mma_variant;

typedef struct kt_mma {
  ki_builtin_id builtin;
  uint32_t m, n, k;
  kt_mma_variant variant;
  ki_mma_kind a, b, c;
  uint32_t arch, ptx;
} kt_mma;

/* Returns the row for the built-in with fragments of these types, or NULL if there is none. */
const kt_mma *kt_find_mma(const ki_types *types, const ki_builtin *builtin, kjit_type a,
                          kjit_type b, kjit_type c);
/* Returns row i of the built-in, or NULL after the last row. Error messages list these rows. */
const kt_mma *kt_get_mma(const ki_builtin *builtin, size_t i);
/* Returns the number of elements in one thread's fragment of a matrix with `count` elements, which
 * the 32 threads in a warp divide among themselves. The fragment is a vector with this number of
 * lanes, or a scalar if the number is 1. */
uint32_t kt_count_fragment(ki_mma_kind kind, uint32_t count);

/* The position of one element of a fragment in the matrix. For warp lane `lane`, let group = lane /
 * 4 and quad = lane % 4. The element is in row group + row and column quad * scale + column. For B,
 * row and column are swapped. Rows and columns count matrix elements; single-bit elements are
 * counted in words of 32. */
typedef struct kt_mma_place {
  uint32_t row, column, scale;
} kt_mma_place;
kt_mma_place kt_place_operand(ki_mma_kind kind, uint32_t rows, uint32_t element);
kt_mma_place kt_place_result(uint32_t element);

/* ---- matrix products of a warpgroup: wgmma_<kind>, for the typing rules and both targets ---- */

enum {
  KJ_WGMMA_ROWS = 64,
  KJ_WGMMA_WARP_ROWS = 16,
  KJ_WGMMA_TRANSPOSE_A = 1,
  KJ_WGMMA_TRANSPOSE_B = 2
};

typedef struct kt_wgmma {
  ki_mma_kind operand, result;
  uint32_t n, k;
  bool has_fragment;   /* the operand A is a fragment in registers; otherwise it is a descriptor */
  uint32_t transposed; /* bits KJ_WGMMA_TRANSPOSE_* */
} kt_wgmma;

/* Describes a typed call. Its .x is the array d, its .args are a, b and accumulate, and its
 * .dimension has a bit for each transposed operand. */
kt_wgmma kt_describe_wgmma(const ki_types *types, const kt_expr *call);

#endif
