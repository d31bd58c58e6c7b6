/* Matrix products of a warpgroup: what the typing rules and both targets know of the rows
 * wgmma_<kind>. */
#ifndef KJ_TYPING_WGMMA_H
#define KJ_TYPING_WGMMA_H

#include "typing/mma.h"

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
