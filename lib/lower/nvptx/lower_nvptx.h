/* Lowering to nvptx: what lib/target/nvptx.c tells it and learns from it, and the rows of nvptx's
 * table that are instructions and library calls; nvptx_kernel.c puts the table together. */
#ifndef KJ_LOWER_NVPTX_LOWER_NVPTX_H
#define KJ_LOWER_NVPTX_LOWER_NVPTX_H

#include "lower/lower.h"

/* Lowering to nvptx: what lib/target/nvptx.c tells it and learns from it. */

/* kl_lowering.target_state */
typedef struct kl_nvptx_lowering {
  kj_math_library library; /* whose names to call */
  bool calls_library;      /* out */
  bool asks_library;       /* out: the code depends on which library it is */
  bool has_branches;       /* out: of what is called, something is worth the passes over loops */
} kl_nvptx_lowering;

extern const kl_lower_target kl_nvptx_lowering_target;

/* nvptx: instructions written as text. */

typedef struct kl_asm {
  const char *text, *constraints;
  LLVMTypeRef result;
  LLVMTypeRef place;  /* args[0], a "*m", is the address of one; no other memory is accessed.
                         NULL: any may be, unless is_pure */
  bool orders_others; /* has a place, and accesses to any memory keep their side of it */
  bool is_pure;       /* no effect: may be moved and dropped */
  bool is_convergent; /* threads execute it together */
} kl_asm;

LLVMValueRef kl_build_asm(kl_lowering *l, const kl_asm *code, LLVMValueRef *args, unsigned count);
/* An address in shared memory as PTX takes it: i32. */
LLVMValueRef kl_shared_window(kl_lowering *l, LLVMValueRef pointer);

/* nvptx_group.c, nvptx_matrix.c */
#define F(family) LLVMValueRef kl_nvptx_##family(kl_lowering *l, const kt_expr *expr);
#include "lower/families.def"
#undef F
LLVMValueRef kl_nvptx_cluster_position(kl_lowering *l, ki_builtin_id position, uint32_t dimension);

/* nvptx_group.c */
/* Builds `ask` again and again until it gives something other than 0. Interruptible code looks in
 * between whether its launch was interrupted. */
void kl_nvptx_wait_until(kl_lowering *l, kj_location location, const kl_asm *ask,
                         LLVMValueRef *args, unsigned count);
/* Shared memory of the module's own, without a value at first. */
LLVMValueRef kl_nvptx_shared_words(kl_lowering *l, const char *name, LLVMTypeRef word,
                                   uint32_t count, uint32_t word_bytes);

/* nvptx_grid.c */
/* The kernel has a grid_sync, and so counts the threads that leave it. */
bool kl_nvptx_counts_threads(kl_lowering *l);
/* For such kernels: before the body, and on each way out, in threads that leave the kernel. */
void kl_nvptx_begin_grid(kl_lowering *l);
void kl_nvptx_leave_grid(kl_lowering *l);
void kl_nvptx_sync_grid(kl_lowering *l, kj_location location);

/* The rows of nvptx's table that are instructions and library calls; nvptx_kernel.c puts the table
 * together. */

/* nvptx_memory.c */
void kl_nvptx_barrier(kl_lowering *l);
/* Before the body: the state that barriers of the block and of the grid start with. */
void kl_nvptx_begin_block(kl_lowering *l);
LLVMValueRef kl_nvptx_barrier_reduce(kl_lowering *l, ki_barrier_reduction reduction,
                                     LLVMValueRef predicate);
void kl_nvptx_syncwarp(kl_lowering *l, LLVMValueRef mask);
void kl_nvptx_fence(kl_lowering *l, ki_memory_scope scope);
LLVMValueRef kl_nvptx_shuffle(kl_lowering *l, ki_shuffle_mode mode, LLVMValueRef mask,
                              LLVMValueRef value, LLVMValueRef lane, LLVMValueRef width);
LLVMValueRef kl_nvptx_vote(kl_lowering *l, ki_vote mode, LLVMValueRef mask, LLVMValueRef predicate);
LLVMValueRef kl_nvptx_activemask(kl_lowering *l);

/* nvptx_memory.c */
LLVMValueRef kl_nvptx_scoped_atomic(kl_lowering *l, ki_combine op, kjit_type type,
                                    ki_memory_scope scope, LLVMValueRef pointer,
                                    LLVMValueRef value);
LLVMValueRef kl_nvptx_small_cas(kl_lowering *l, ki_memory_scope scope, LLVMValueRef pointer,
                                LLVMValueRef expected, LLVMValueRef desired);
LLVMValueRef kl_nvptx_wide_load(kl_lowering *l, ki_memory_scope scope, LLVMAtomicOrdering order,
                                LLVMValueRef pointer);
LLVMValueRef kl_nvptx_wide_store(kl_lowering *l, ki_memory_scope scope, LLVMAtomicOrdering order,
                                 LLVMValueRef pointer, LLVMValueRef value);
bool kl_nvptx_has_brain_arithmetic(kl_lowering *l);
bool kl_nvptx_has_half_fma(kl_lowering *l, kjit_type type);
bool kl_nvptx_adds_small_float(kl_lowering *l, kjit_type type);

/* nvptx_memory.c */
LLVMValueRef kl_nvptx_hinted_load(kl_lowering *l, ki_cache_hint hint, LLVMTypeRef type,
                                  LLVMValueRef pointer);
void kl_nvptx_hinted_store(kl_lowering *l, ki_cache_hint hint, LLVMValueRef pointer,
                           LLVMValueRef value);
void kl_nvptx_prefetch(kl_lowering *l, ki_cache_level level, LLVMValueRef pointer);
LLVMValueRef kl_nvptx_clock(kl_lowering *l, ki_builtin_id clock);
void kl_nvptx_nanosleep(kl_lowering *l, LLVMValueRef duration);

/* nvptx_print.c */
void kl_nvptx_print(kl_lowering *l, uint64_t header, uint32_t count, LLVMValueRef words);

/* nvptx_math.c */
LLVMValueRef kl_nvptx_math(kl_lowering *l, ki_builtin_id id, LLVMValueRef *args, unsigned count,
                           LLVMTypeRef result);
LLVMValueRef kl_nvptx_native(kl_lowering *l, const char *name, uint32_t least_arch,
                             LLVMValueRef *args, unsigned count);
LLVMValueRef kl_nvptx_rsqrt(kl_lowering *l, LLVMValueRef x);
LLVMValueRef kl_nvptx_float_to_i32(kl_lowering *l, LLVMValueRef x, bool is_unsigned);
LLVMValueRef kl_nvptx_integer_abs(kl_lowering *l, LLVMValueRef x);

/* nvptx_math.c: of f32; values: sine, cosine */
LLVMValueRef kl_nvptx_sine(kl_lowering *l, LLVMValueRef x);
LLVMValueRef kl_nvptx_cosine(kl_lowering *l, LLVMValueRef x);
void kl_nvptx_sine_and_cosine(kl_lowering *l, LLVMValueRef x, LLVMValueRef values[2]);

#endif
