/* Matrix products of a warp (mma.def): which fragments they take, and which lane holds which
 * element. */
#ifndef KJ_TYPING_MMA_H
#define KJ_TYPING_MMA_H

#include "typing/typed.h"

/* Elements as the instruction sees them. */
typedef enum kj_mma_kind {
  KJ_MMA_F16,
  KJ_MMA_BF16,
  KJ_MMA_TF32,
  KJ_MMA_F32,
  KJ_MMA_F64,
  KJ_MMA_S8,
  KJ_MMA_U8,
  KJ_MMA_S4,
  KJ_MMA_U4,
  KJ_MMA_B1,
  KJ_MMA_E4M3,
  KJ_MMA_E5M2,
  KJ_MMA_S32,
  KJ_MMA_KIND_COUNT
} kj_mma_kind;

typedef struct kj_mma_element {
  const char *ptx;
  kjit_type type;  /* of the fragment's elements */
  uint32_t bits;   /* of an element of the matrix: less than those of the type where it is packed */
  char constraint; /* of a register, as inline PTX names it */
} kj_mma_element;
extern const kj_mma_element kj_mma_elements[KJ_MMA_KIND_COUNT];

typedef struct kj_mma {
  uint32_t m, n, k;
  const char *variant;
  kj_mma_kind a, b, c;
  uint32_t arch, ptx;
} kj_mma;

/* The built-in on fragments of these types; NULL: there is none. */
const kj_mma *kj_find_mma(const kj_types *types, const kj_builtin *builtin, kjit_type a,
                          kjit_type b, kjit_type c);
/* Row i of those of a built-in, for messages; NULL: no more. */
const kj_mma *kj_get_mma(const kj_builtin *builtin, size_t i);
/* A fragment of `count` elements of the matrix, 32 lanes together: lanes of the vector; 1: a
 * scalar. */
uint32_t kj_count_fragment(kj_mma_kind kind, uint32_t count);

/* Element e of a fragment, counted in elements of the matrix (bits: in words of 32), of lane
 * `lane`: at row group + row, column quad * scale + column, where group is lane / 4 and quad lane %
 * 4; for B row and column change places. */
typedef struct kj_mma_place {
  uint32_t row, column, scale;
} kj_mma_place;
kj_mma_place kj_place_operand(kj_mma_kind kind, uint32_t rows, uint32_t element);
kj_mma_place kj_place_result(uint32_t element);

/* Matrix products of a warpgroup: what the typing rules and both targets know of the rows
 * wgmma_<kind>. */

enum {
  KJ_WGMMA_ROWS = 64,
  KJ_WGMMA_WARP_ROWS = 16,
  KJ_WGMMA_TRANSPOSE_A = 1,
  KJ_WGMMA_TRANSPOSE_B = 2
};

typedef struct kj_wgmma {
  kj_mma_kind operand, result;
  uint32_t n, k;
  bool has_fragment;   /* a is one; else a descriptor */
  uint32_t transposed; /* of KJ_WGMMA_TRANSPOSE_* */
} kj_wgmma;

/* The kind of element that a row takes. */
kj_mma_kind kj_wgmma_kind(const kj_builtin *builtin);
/* A typed call: .x the array d, .args a, b, accumulate, .dimension what is transposed. */
kj_wgmma kj_describe_wgmma(const kj_types *types, const kj_texpr *call);

#endif
