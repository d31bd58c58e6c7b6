/* Lowering to nvptx: what lib/target/nvptx.c tells it and learns from it, and the rows of nvptx's
 * table that are instructions and library calls; nvptx_kernel.c puts the table together. */
#ifndef KJ_LOWER_NVPTX_LOWER_NVPTX_H
#define KJ_LOWER_NVPTX_LOWER_NVPTX_H

#include "lower/lower.h"

/* Lowering to nvptx: what lib/target/nvptx.c tells it and learns from it. */

typedef enum kj_math_library { KJ_LIBDEVICE, KJ_LIBCLC } kj_math_library;

/* kj_lowering.target_state */
typedef struct kj_nvptx_lowering {
  kj_math_library library; /* whose names to call */
  bool calls_library;      /* out */
  bool has_branches;       /* out: of what is called, something is worth the passes over loops */
} kj_nvptx_lowering;

extern const kj_lower_target kj_nvptx_lowering_target;

/* nvptx: instructions written as text. */

typedef struct kj_asm {
  const char *text, *constraints;
  LLVMTypeRef result;
  bool is_pure;       /* no effect: may be moved and dropped */
  bool is_convergent; /* threads execute it together */
} kj_asm;

LLVMValueRef kj_build_asm(kj_lowering *l, const kj_asm *code, LLVMValueRef *args, unsigned count);
/* An address in shared memory as PTX takes it: i32. */
LLVMValueRef kj_shared_window(kj_lowering *l, LLVMValueRef pointer);

/* nvptx_group.c, nvptx_matrix.c */
#define F(family) LLVMValueRef kj_nvptx_##family(kj_lowering *l, const kj_texpr *expr);
#include "lower/families.def"
#undef F
LLVMValueRef kj_nvptx_cluster_position(kj_lowering *l, kj_builtin_id position, uint32_t dimension);

/* The rows of nvptx's table that are instructions and library calls; nvptx_kernel.c puts the table
 * together. */

/* nvptx_memory.c */
void kj_nvptx_barrier(kj_lowering *l);
LLVMValueRef kj_nvptx_barrier_reduce(kj_lowering *l, kj_barrier_reduction reduction,
                                     LLVMValueRef predicate);
void kj_nvptx_syncwarp(kj_lowering *l, LLVMValueRef mask);
void kj_nvptx_fence(kj_lowering *l, kj_memory_scope scope);
LLVMValueRef kj_nvptx_shuffle(kj_lowering *l, kj_shuffle_mode mode, LLVMValueRef mask,
                              LLVMValueRef value, LLVMValueRef lane, LLVMValueRef width);
LLVMValueRef kj_nvptx_vote(kj_lowering *l, kj_vote mode, LLVMValueRef mask, LLVMValueRef predicate);
LLVMValueRef kj_nvptx_activemask(kj_lowering *l);

/* nvptx_memory.c */
LLVMValueRef kj_nvptx_scoped_atomic(kj_lowering *l, kj_combine op, kjit_type type,
                                    kj_memory_scope scope, LLVMValueRef pointer,
                                    LLVMValueRef value);
LLVMValueRef kj_nvptx_small_cas(kj_lowering *l, kj_memory_scope scope, LLVMValueRef pointer,
                                LLVMValueRef expected, LLVMValueRef desired);
bool kj_nvptx_has_brain_arithmetic(kj_lowering *l);
bool kj_nvptx_has_half_fma(kj_lowering *l, kjit_type type);
bool kj_nvptx_adds_small_float(kj_lowering *l, kjit_type type);

/* nvptx_memory.c */
LLVMValueRef kj_nvptx_hinted_load(kj_lowering *l, kj_cache_hint hint, LLVMTypeRef type,
                                  LLVMValueRef pointer);
void kj_nvptx_hinted_store(kj_lowering *l, kj_cache_hint hint, LLVMValueRef pointer,
                           LLVMValueRef value);
void kj_nvptx_prefetch(kj_lowering *l, kj_cache_level level, LLVMValueRef pointer);
LLVMValueRef kj_nvptx_clock(kj_lowering *l, kj_builtin_id clock);
void kj_nvptx_nanosleep(kj_lowering *l, LLVMValueRef duration);

/* nvptx_print.c */
void kj_nvptx_print(kj_lowering *l, uint64_t header, uint32_t count, LLVMValueRef words);

/* nvptx_math.c */
LLVMValueRef kj_nvptx_math(kj_lowering *l, kj_builtin_id id, LLVMValueRef *args, unsigned count,
                           LLVMTypeRef result);
LLVMValueRef kj_nvptx_native(kj_lowering *l, const char *name, uint32_t least_arch,
                             LLVMValueRef *args, unsigned count);
LLVMValueRef kj_nvptx_rsqrt(kj_lowering *l, LLVMValueRef x);
LLVMValueRef kj_nvptx_float_to_i32(kj_lowering *l, LLVMValueRef x, bool is_unsigned);
LLVMValueRef kj_nvptx_integer_abs(kj_lowering *l, LLVMValueRef x);
LLVMValueRef kj_nvptx_float_bits(kj_lowering *l, LLVMValueRef bits);

/* nvptx_math.c: of f32; values: sine, cosine */
LLVMValueRef kj_nvptx_sine(kj_lowering *l, LLVMValueRef x);
LLVMValueRef kj_nvptx_cosine(kj_lowering *l, LLVMValueRef x);
void kj_nvptx_sine_and_cosine(kj_lowering *l, LLVMValueRef x, LLVMValueRef values[2]);

#endif
