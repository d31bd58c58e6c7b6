/* What the CPU's lowering files share: the kernel's shape, the current block and thread, the scratch memory. */
#ifndef KJ_LOWER_CPU_H
#define KJ_LOWER_CPU_H

#include "lower/lower.h"

/* Found once a process, by target/host.c. */
typedef struct kj_cpu_features {
  bool has_avx, has_avx2, has_avx512;     /* which of libmvec's variants may be called */
  bool (*has_function)(const char *name); /* the C library, libmvec included, has it */
} kj_cpu_features;

typedef struct kj_cpu_state {
  const kj_cpu_features *features;
  uint64_t scratch_bytes; /* out */

  uint32_t block[3], thread_count;
  LLVMValueRef grid_pointer, scratch;
  LLVMValueRef grid[3], block_index[3]; /* i32 */
  LLVMValueRef thread[3], rank;         /* i32; NULL outside of thread loops */
  LLVMValueRef block_number;            /* i64, in the whole grid */
  LLVMValueRef index_slots[3], last;    /* of the loop over blocks */
  LLVMBasicBlockRef head, exit;
  LLVMValueRef number_phi;
  bool has_dependence; /* the iterations of the thread loop being made have memory in common: a local array, or what a plain atomic changes */

  LLVMTypeRef context_type; /* of what noinline functions are handed */
  LLVMValueRef context;     /* in such a function: what it was handed; NULL: it takes none, or the kernel */
  LLVMValueRef *kept;       /* declarations of vector functions */
  unsigned kept_count, kept_capacity;
} kj_cpu_state;

static inline kj_cpu_state *kj_cpu(kj_lowering *l) { return l->target_state; }

/* ---- cpu_threads.c ---- */

void kj_cpu_range(kj_lowering *l, const kj_tstmt *stmt);
void kj_cpu_statement(kj_lowering *l, const kj_tstmt *stmt);
/* A loop that the vectorizer takes; the builder stands in the body. The counter has no unsigned and no signed overflow. */
void kj_begin_vector_loop(kj_lowering *l, kj_counted_loop *loop, LLVMValueRef first, LLVMValueRef stop);
void kj_end_vector_loop(kj_lowering *l, kj_counted_loop *loop);
/* The thread whose variables are read and written from here on; i32. */
void kj_set_rank(kj_lowering *l, LLVMValueRef rank);
/* i1: the current thread is active. */
LLVMValueRef kj_is_active(kj_lowering *l);

/* ---- cpu_warp.c ---- */

void kj_cpu_warp(kj_lowering *l, const kj_tstmt *stmt);
void kj_cpu_reduce(kj_lowering *l, const kj_tstmt *stmt);

/* ---- cpu_math.c ---- */

LLVMValueRef kj_cpu_math(kj_lowering *l, const char *name, LLVMValueRef *args, unsigned count, LLVMTypeRef result);
LLVMValueRef kj_cpu_rsqrt(kj_lowering *l, LLVMValueRef x);
/* Keeps the vector functions that scalar calls name. */
void kj_finish_cpu_math(kj_lowering *l);
extern const kj_lower_target kj_cpu_lowering;

#endif
