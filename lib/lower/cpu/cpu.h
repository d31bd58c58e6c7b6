/* What the CPU's lowering files share: the kernel's shape, the current block and thread, the
 * scratch memory. */
#ifndef KJ_LOWER_CPU_CPU_H
#define KJ_LOWER_CPU_CPU_H

#include "lower/lower.h"

/* Found once a process, by target/host.c. */
typedef struct kl_cpu_features {
  bool has_avx, has_avx2, has_avx512;     /* which of libmvec's variants may be called */
  bool has_wide_atomics;                  /* of 16 bytes */
  bool (*has_function)(const char *name); /* the C library, libmvec included, has it */
} kl_cpu_features;

typedef struct kl_cpu_state {
  const kl_cpu_features *features;
  uint64_t scratch_bytes; /* out */
  /* arrays in it that no other access than by their names leads to; by number in memory_scopes,
   * where the first is that of all other slots */
  KJ_LIST(const kt_var *) scratch_arrays;
  LLVMMetadataRef memory_domain;

  uint32_t block[3], thread_count;
  /* a call runs one warp of a block: KJ_PARTS_WARPS, and more than one warp */
  bool has_warps;
  LLVMValueRef unit_first, unit_stop; /* the threads that a call runs; i32 */
  LLVMValueRef grid_pointer, scratch;
  LLVMValueRef grid[3], block_index[3]; /* i32 */
  LLVMValueRef thread[3], rank;         /* i32; NULL outside of thread loops */
  LLVMValueRef block_number;            /* i64, in the whole grid */
  LLVMValueRef index_allocas[3], last;  /* of the loop over blocks */
  LLVMBasicBlockRef head, exit;
  LLVMValueRef number_phi;
  LLVMValueRef shown_thread, shown_block; /* for debuggers */

  LLVMTypeRef context_type; /* of what noinline functions are handed */
  /* in such a function: what it was handed; NULL: it takes none, or the kernel */
  LLVMValueRef context;
  LLVMValueRef *kept; /* declarations of vector functions */
  unsigned kept_count, kept_capacity;
  bool asks_vector_functions; /* out: the code depends on which of them the C library has */
} kl_cpu_state;

extern const kl_lower_target kl_cpu_lowering; /* cpu.c */

static inline kl_cpu_state *kl_cpu(kl_lowering *l)
{
  KJ_ASSERT(l->target == &kl_cpu_lowering);
  return l->target_state;
}

/* ---- cpu_kernel.c ---- */

enum { KJ_SCRATCH_ALIGNMENT = 64 }; /* a cache line: what one worker writes is on none of another */

/* When the block shape is known: the place of each variable that is a slot, of static shared
 * arrays, of local arrays that are watched. */
void kl_lay_out_scratch(kl_lowering *l);
uint32_t kl_cpu_object_of(kl_lowering *l, const kt_var *var);
LLVMValueRef kl_cpu_slot_pointer(kl_lowering *l, const kt_var *var);
LLVMValueRef kl_cpu_shared_pointer(kl_lowering *l, const kt_var *var);
LLVMValueRef kl_cpu_local_pointer(kl_lowering *l, const kt_var *var);
LLVMValueRef kl_cpu_dynamic_shared_bytes(kl_lowering *l);

/* ---- cpu_kernel.c ---- */

void kl_cpu_begin_kernel(kl_lowering *l);
void kl_cpu_begin_block(kl_lowering *l);
void kl_cpu_end_kernel(kl_lowering *l);
void kl_cpu_begin_entry(kl_lowering *l);
void kl_cpu_finish_function(kl_lowering *l, LLVMValueRef function);
/* A field of the kj_cpu_grid that the kernel was called with. */
LLVMValueRef kl_load_grid(kl_lowering *l, LLVMTypeRef type, size_t offset);

/* ---- cpu.c ---- */

LLVMValueRef kl_cpu_thread_context(kl_lowering *l);
void kl_cpu_use_thread_context(kl_lowering *l, LLVMValueRef context);
void kl_cpu_leave_kernel(kl_lowering *l);
void kl_cpu_leave_after_call(kl_lowering *l, LLVMValueRef context);

/* ---- cpu_speculate.c ---- */

typedef struct kl_speculation {
  /* memory: the first iteration with a bad divisor; whether the current one has any */
  LLVMValueRef first, bad;
  LLVMTypeRef type; /* of the counter */
} kl_speculation;

/* Whether all that may fail in the body are float divisions before its first store. */
bool kl_can_speculate(kl_lowering *l, const kt_stmts *body);
/* Before the loop; around the body of an iteration; behind the loop: which iteration has to be run
 * again, if any. */
void kl_begin_speculation(kl_lowering *l, kl_speculation *s, LLVMTypeRef counter);
void kl_begin_speculated(kl_lowering *l, const kl_speculation *s);
void kl_end_speculated(kl_lowering *l, const kl_speculation *s, LLVMValueRef number);
LLVMValueRef kl_find_failing(kl_lowering *l, const kl_speculation *s, LLVMValueRef *has_any);

/* ---- cpu_threads.c ---- */

void kl_cpu_range(kl_lowering *l, const kt_stmt *stmt);
void kl_cpu_statement(kl_lowering *l, const kt_stmt *stmt);
/* A loop that the vectorizer takes; the builder stands in the body. The counter has no unsigned and
 * no signed overflow. */
void kl_begin_vector_loop(kl_lowering *l, kl_counted_loop *loop, LLVMValueRef first,
                          LLVMValueRef stop);
void kl_end_vector_loop(kl_lowering *l, kl_counted_loop *loop);
/* Around the accesses of a loop whose iterations are threads, or lanes: those that say so are
 * independent of the other iterations'. Gives the loop's own id, which proposes that it becomes the
 * loop `id`: see target/host_parallel.c. */
#define KJ_PARALLEL_PROPOSAL "kjit.parallel"
typedef struct kl_parallel {
  LLVMMetadataRef outer, id;
} kl_parallel;
kl_parallel kl_begin_parallel(kl_lowering *l, LLVMMetadataRef id);
LLVMMetadataRef kl_end_parallel(kl_lowering *l, const kl_parallel *p);
/* The thread whose variables are read and written from here on; i32. */
void kl_set_rank(kl_lowering *l, LLVMValueRef rank);
/* i1: the current thread is active. */
LLVMValueRef kl_is_active(kl_lowering *l);

/* ---- cpu_group.c ---- */

/* Waiting for other parts of the launch: see kj_cpu_wait. address NULL: none; value i64; gives an
 * i64. */
LLVMValueRef kl_build_wait(kl_lowering *l, kj_cpu_wait what, LLVMValueRef id, LLVMValueRef count,
                           LLVMValueRef address, LLVMValueRef value);
/* WARP statements: barriers through which warps or blocks meet, waits for a phase of an mbarrier.
 */
void kl_cpu_meet(kl_lowering *l, const kt_stmt *stmt);
void kl_cpu_wait_for_phase(kl_lowering *l, const kt_stmt *stmt);
/* cpu_matrix.c, cpu_wgmma.c: WARP statements that are matrix products, or load or store fragments.
 */
void kl_cpu_mma(kl_lowering *l, const kt_stmt *stmt);
void kl_cpu_fragment(kl_lowering *l, const kt_stmt *stmt);
void kl_cpu_wgmma(kl_lowering *l, const kt_stmt *stmt);
/* What single threads do there. */
LLVMValueRef kl_cpu_mbarrier(kl_lowering *l, const kt_expr *expr);
LLVMValueRef kl_cpu_pending_count(kl_lowering *l, const kt_expr *expr);
LLVMValueRef kl_cpu_shared_address(kl_lowering *l, const kt_expr *expr);
LLVMValueRef kl_cpu_map_shared_rank(kl_lowering *l, const kt_expr *expr);
LLVMValueRef kl_cpu_cp_async(kl_lowering *l, const kt_expr *expr);
LLVMValueRef kl_cpu_cp_async_bulk(kl_lowering *l, const kt_expr *expr);
LLVMValueRef kl_cpu_cp_async_tensor(kl_lowering *l, const kt_expr *expr);
/* CLUSTER_IDX and the other positions of clusters. */
LLVMValueRef kl_cpu_cluster_position(kl_lowering *l, ki_builtin_id position, uint32_t dimension);

/* ---- cpu_warp.c ---- */

/* Operand i of the statement's built-in for a thread; as an i32. */
LLVMValueRef kl_warp_operand(kl_lowering *l, const kt_stmt *stmt, size_t i, LLVMValueRef rank);
LLVMValueRef kl_warp_operand32(kl_lowering *l, const kt_stmt *stmt, size_t i, LLVMValueRef rank);
/* Where the threads of a warp end whose first one is given. */
LLVMValueRef kl_end_of_warp(kl_lowering *l, LLVMValueRef first);
/* A loop over the warps that the call runs, ended by kl_end_vector_loop: gives the first thread of
 * one, and where its threads end. */
LLVMValueRef kl_begin_warps(kl_lowering *l, kl_counted_loop *warps, LLVMValueRef *stop);
/* A loop over the threads [first, stop). */
kl_parallel kl_begin_lanes(kl_lowering *l, kl_counted_loop *loop, LLVMValueRef first,
                           LLVMValueRef stop);
void kl_end_lanes(kl_lowering *l, kl_counted_loop *loop, const kl_parallel *p);
/* i1: the thread is active; sets the result of an active thread. */
LLVMValueRef kl_is_lane_active(kl_lowering *l, const kt_stmt *stmt, LLVMValueRef rank);
void kl_set_lane_result(kl_lowering *l, const kt_stmt *stmt, LLVMValueRef rank, LLVMValueRef value);
/* i1: some thread of the call is active; constant where nobody is ever off. */
LLVMValueRef kl_has_active_lane(kl_lowering *l, const kt_stmt *stmt);
/* The number of the first active thread, or of the last thread if none is active. */
LLVMValueRef kl_first_active(kl_lowering *l, const kt_stmt *stmt);
/* The same among the threads [first, stop). */
LLVMValueRef kl_has_active_among(kl_lowering *l, const kt_stmt *stmt, LLVMValueRef first,
                                 LLVMValueRef stop);

void kl_cpu_warp(kl_lowering *l, const kt_stmt *stmt);
void kl_cpu_reduce(kl_lowering *l, const kt_stmt *stmt);

/* ---- cpu_math.c ---- */

LLVMValueRef kl_cpu_math(kl_lowering *l, ki_builtin_id id, LLVMValueRef *args, unsigned count,
                         LLVMTypeRef result);
LLVMValueRef kl_cpu_rsqrt(kl_lowering *l, LLVMValueRef x);
/* Keeps the vector functions that scalar calls name. */
void kl_finish_cpu_math(kl_lowering *l);
/* Gives the functions of the C library their real names, after optimizing. */
void kl_name_cpu_math(LLVMContextRef context, LLVMModuleRef module);

#endif
