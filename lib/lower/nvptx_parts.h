/* The rows of nvptx's table that are instructions and library calls; nvptx_kernel.c puts the table
 * together. */
#ifndef KJ_LOWER_NVPTX_PARTS_H
#define KJ_LOWER_NVPTX_PARTS_H

#include "lower/lower.h"

/* nvptx_sync.c */
void kj_nvptx_barrier(kj_lowering *l);
LLVMValueRef kj_nvptx_barrier_reduce(kj_lowering *l, kj_barrier_reduction reduction,
                                     LLVMValueRef predicate);
void kj_nvptx_syncwarp(kj_lowering *l, LLVMValueRef mask);
void kj_nvptx_fence(kj_lowering *l, const char *symbol);
LLVMValueRef kj_nvptx_shuffle(kj_lowering *l, const char *mode, LLVMValueRef mask,
                              LLVMValueRef value, LLVMValueRef lane, LLVMValueRef width);
LLVMValueRef kj_nvptx_vote(kj_lowering *l, const char *mode, LLVMValueRef mask,
                           LLVMValueRef predicate);
LLVMValueRef kj_nvptx_activemask(kj_lowering *l);

/* nvptx_atomic.c */
LLVMValueRef kj_nvptx_scoped_atomic(kj_lowering *l, const char *op, kjit_type type,
                                    const char *scope, LLVMValueRef pointer, LLVMValueRef value);
bool kj_nvptx_has_brain_arithmetic(kj_lowering *l);
bool kj_nvptx_has_half_fma(kj_lowering *l, kjit_type type);
bool kj_nvptx_adds_small_float(kj_lowering *l, kjit_type type);

/* nvptx_memory.c */
LLVMValueRef kj_nvptx_hinted_load(kj_lowering *l, const char *hint, LLVMTypeRef type,
                                  LLVMValueRef pointer);
void kj_nvptx_hinted_store(kj_lowering *l, const char *hint, LLVMValueRef pointer,
                           LLVMValueRef value);
void kj_nvptx_prefetch(kj_lowering *l, const char *level, LLVMValueRef pointer);
LLVMValueRef kj_nvptx_clock(kj_lowering *l, const char *name);
void kj_nvptx_nanosleep(kj_lowering *l, LLVMValueRef duration);

/* nvptx_print.c */
void kj_nvptx_print(kj_lowering *l, uint64_t header, uint32_t count, LLVMValueRef words);

/* nvptx_math.c */
LLVMValueRef kj_nvptx_math(kj_lowering *l, const char *name, LLVMValueRef *args, unsigned count,
                           LLVMTypeRef result);
LLVMValueRef kj_nvptx_native(kj_lowering *l, const char *name, uint32_t least_arch,
                             LLVMValueRef *args, unsigned count);
LLVMValueRef kj_nvptx_rsqrt(kj_lowering *l, LLVMValueRef x);
LLVMValueRef kj_nvptx_float_to_i32(kj_lowering *l, LLVMValueRef x, bool is_unsigned);
LLVMValueRef kj_nvptx_integer_abs(kj_lowering *l, LLVMValueRef x);
LLVMValueRef kj_nvptx_float_bits(kj_lowering *l, LLVMValueRef bits);

/* nvptx_trig.c: of f32; values: sine, cosine */
LLVMValueRef kj_nvptx_sine(kj_lowering *l, LLVMValueRef x);
LLVMValueRef kj_nvptx_cosine(kj_lowering *l, LLVMValueRef x);
void kj_nvptx_sine_and_cosine(kj_lowering *l, LLVMValueRef x, LLVMValueRef values[2]);

#endif
