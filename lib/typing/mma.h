/* Matrix products of a warp (mma.def): which fragments they take, and which lane holds which
 * element. */
#ifndef KJ_TYPING_MMA_H
#define KJ_TYPING_MMA_H

#include "typing/typed.h"

typedef struct kt_mma_element {
  const char *ptx;
  kjit_type type;  /* of the fragment's elements */
  uint32_t bits;   /* of an element of the matrix: less than those of the type where it is packed */
  char constraint; /* of a register, as inline PTX names it */
} kt_mma_element;
extern const kt_mma_element kt_mma_elements[KJ_MMA_KIND_COUNT];

/* SAT: sums are clamped rather than wrapped. XOR, AND: which bits of two words are counted. */
typedef enum kt_mma_variant { KJ_MMA_PLAIN, KJ_MMA_SAT, KJ_MMA_XOR, KJ_MMA_AND } kt_mma_variant;

typedef struct kt_mma {
  ki_builtin_id builtin;
  uint32_t m, n, k;
  kt_mma_variant variant;
  ki_mma_kind a, b, c;
  uint32_t arch, ptx;
} kt_mma;

/* The built-in on fragments of these types; NULL: there is none. */
const kt_mma *kt_find_mma(const ki_types *types, const ki_builtin *builtin, kjit_type a,
                          kjit_type b, kjit_type c);
/* Row i of those of a built-in, for messages; NULL: no more. */
const kt_mma *kt_get_mma(const ki_builtin *builtin, size_t i);
/* A fragment of `count` elements of the matrix, 32 lanes together: lanes of the vector; 1: a
 * scalar. */
uint32_t kt_count_fragment(ki_mma_kind kind, uint32_t count);

/* Element e of a fragment, counted in elements of the matrix (bits: in words of 32), of lane
 * `lane`: at row group + row, column quad * scale + column, where group is lane / 4 and quad lane %
 * 4; for B row and column change places. */
typedef struct kt_mma_place {
  uint32_t row, column, scale;
} kt_mma_place;
kt_mma_place kt_place_operand(ki_mma_kind kind, uint32_t rows, uint32_t element);
kt_mma_place kt_place_result(uint32_t element);

/* Matrix products of a warpgroup: what the typing rules and both targets know of the rows
 * wgmma_<kind>. */

enum {
  KJ_WGMMA_ROWS = 64,
  KJ_WGMMA_WARP_ROWS = 16,
  KJ_WGMMA_TRANSPOSE_A = 1,
  KJ_WGMMA_TRANSPOSE_B = 2
};

typedef struct kt_wgmma {
  ki_mma_kind operand, result;
  uint32_t n, k;
  bool has_fragment;   /* a is one; else a descriptor */
  uint32_t transposed; /* of KJ_WGMMA_TRANSPOSE_* */
} kt_wgmma;

/* A typed call: .x the array d, .args a, b, accumulate, .dimension what is transposed. */
kt_wgmma kt_describe_wgmma(const ki_types *types, const kt_expr *call);

#endif
