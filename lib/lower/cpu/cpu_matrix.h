/* CPU: matrices that the lanes in a warp multiply together, for cpu_matrix.c and cpu_wgmma.c. */
#ifndef KJ_LOWER_CPU_CPU_MATRIX_H
#define KJ_LOWER_CPU_CPU_MATRIX_H

#include "lower/cpu/cpu.h"
#include "typing/mma.h"

typedef struct kl_matrix {
  ki_mma_kind kind;
  uint32_t rows, columns; /* memory is in row-major order; for single-bit elements, k is in words */
  LLVMValueRef memory;
  LLVMTypeRef type;
} kl_matrix;

kl_matrix kl_new_matrix(kl_lowering *l, ki_mma_kind kind, uint32_t rows, uint32_t columns);
/* row and column are i32 */
LLVMValueRef kl_matrix_element_at(kl_lowering *l, const kl_matrix *m, LLVMValueRef row,
                                  LLVMValueRef column);
LLVMValueRef kl_matrix_load_at(kl_lowering *l, const kl_matrix *m, LLVMValueRef row,
                               LLVMValueRef column);
/* kl_matrix_widen converts an element of a fragment to the computation type. If several elements
 * are packed, `part` selects one. kl_matrix_narrow converts a sum to the result type. */
LLVMValueRef kl_matrix_widen(kl_lowering *l, ki_mma_kind kind, LLVMValueRef x, uint32_t part);
LLVMValueRef kl_matrix_narrow(kl_lowering *l, const kt_mma *mma, LLVMValueRef sum);
/* Computes c += a * b for matrices with the element types of mma. */
void kl_matrix_multiply(kl_lowering *l, const kt_mma *mma, const kl_matrix *a, const kl_matrix *b,
                        const kl_matrix *c);
/* Begins a loop over lanes that share memory. */
kl_parallel kl_matrix_begin_dependent_lanes(kl_lowering *l, kl_counted_loop *loop,
                                            LLVMValueRef first, LLVMValueRef stop);

#endif
