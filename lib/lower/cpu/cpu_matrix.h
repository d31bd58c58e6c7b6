/* CPU: matrices that the lanes of a warp multiply together; what cpu_matrix.c and cpu_wgmma.c
 * share. */
#ifndef KJ_LOWER_CPU_CPU_MATRIX_H
#define KJ_LOWER_CPU_CPU_MATRIX_H

#include "lower/cpu/cpu.h"
#include "typing/mma.h"

typedef struct kj_matrix {
  kj_mma_kind kind;
  uint32_t rows, columns; /* as they lie; of bits: words */
  LLVMValueRef memory;
  LLVMTypeRef type;
} kj_matrix;

kj_matrix kj_new_matrix(kj_lowering *l, kj_mma_kind kind, uint32_t rows, uint32_t columns);
/* row, column: i32 */
LLVMValueRef kj_matrix_element_at(kj_lowering *l, const kj_matrix *m, LLVMValueRef row,
                                  LLVMValueRef column);
LLVMValueRef kj_matrix_load_at(kj_lowering *l, const kj_matrix *m, LLVMValueRef row,
                               LLVMValueRef column);
/* An element of a fragment as it is computed with; `part` of it where it is packed. And a sum as
 * the element of a result. */
LLVMValueRef kj_matrix_widen(kj_lowering *l, kj_mma_kind kind, LLVMValueRef x, uint32_t part);
LLVMValueRef kj_matrix_narrow(kj_lowering *l, const kj_mma *mma, LLVMValueRef sum);
/* c += a * b, elements as mma says. */
void kj_matrix_multiply(kj_lowering *l, const kj_mma *mma, const kj_matrix *a, const kj_matrix *b,
                        const kj_matrix *c);
/* A loop over the warps that the call runs: gives the first thread of one, and where its threads
 * end. */
LLVMValueRef kj_matrix_begin_warps(kj_lowering *l, kj_counted_loop *warps, LLVMValueRef *stop);
/* A loop over lanes that have memory in common. */
kj_parallel kj_matrix_begin_dependent_lanes(kj_lowering *l, kj_counted_loop *loop,
                                            LLVMValueRef first, LLVMValueRef stop);

#endif
