/* nvptx: instructions written as text. */
#ifndef KJ_LOWER_NVPTX_ASM_H
#define KJ_LOWER_NVPTX_ASM_H

#include "lower/lower.h"

typedef struct kj_asm {
  const char *text, *constraints;
  LLVMTypeRef result;
  bool is_pure;       /* no effect: may be moved and dropped */
  bool is_convergent; /* threads execute it together */
} kj_asm;

LLVMValueRef kj_build_asm(kj_lowering *l, const kj_asm *code, LLVMValueRef *args, unsigned count);
/* An address in shared memory as PTX takes it: i32. */
LLVMValueRef kj_shared_window(kj_lowering *l, LLVMValueRef pointer);

/* nvptx_group.c */
LLVMValueRef kj_nvptx_special(kj_lowering *l, const kj_texpr *expr);
LLVMValueRef kj_nvptx_cluster_position(kj_lowering *l, kj_builtin_id position, uint32_t dimension);

/* nvptx_copy.c, nvptx_matrix.c; false: it is none of them. */
bool kj_nvptx_copy(kj_lowering *l, const kj_texpr *expr);
bool kj_nvptx_matrix(kj_lowering *l, const kj_texpr *expr, LLVMValueRef *value);
bool kj_nvptx_wgmma(kj_lowering *l, const kj_texpr *expr); /* nvptx_wgmma.c */

#endif
