/* Declarations that the CPU lowering files share: the kernel's structure, the current block and
 * thread, and scratch memory, in which a worker thread keeps a block's variables. */
#ifndef KJ_LOWER_CPU_CPU_H
#define KJ_LOWER_CPU_CPU_H

#include "lower/lower.h"

/* Features of the processor and of the C library; target/host.c detects them once for each
 * process. */
typedef struct kl_cpu_features {
  /* the instruction sets for which the code may call vector functions of libmvec */
  bool has_avx, has_avx2, has_avx512;
  bool has_wide_atomics; /* atomic operations of 16 bytes */
  /* returns whether the C library or libmvec has a function with this name */
  bool (*has_function)(const char *name);
} kl_cpu_features;

typedef struct kl_cpu_state {
  const kl_cpu_features *features;
  uint64_t scratch_bytes; /* output: size of the scratch memory */
  /* the arrays in scratch memory that no pointer refers to, so that only accesses by name can reach
   * them. Array i has the alias scope memory_scopes[i + 1]; scope 0 is for all other slots */
  KJ_LIST(const kt_var *) scratch_arrays;
  LLVMMetadataRef memory_domain;

  uint32_t block[3], thread_count;
  /* the kernel runs as KJ_FIBERS_WARPS and has more than one warp: each call of the kernel function
   * runs one warp in a block */
  bool has_warps;
  LLVMValueRef unit_first, unit_stop; /* i32; the range of threads that a call runs */
  LLVMValueRef grid_pointer, scratch;
  LLVMValueRef grid[3], block_index[3]; /* i32 */
  LLVMValueRef thread[3], rank;         /* i32; NULL outside of thread loops */
  LLVMValueRef block_number;            /* i64; number of the block in the whole grid */
  /* for the loop over blocks: the indices of the current block, and the end of the loop */
  LLVMValueRef index_allocas[3], last;
  LLVMBasicBlockRef head, exit;
  LLVMValueRef number_phi;
  /* one call of the kernel function processes the elements of all its blocks as one contiguous part
   * of each grid_range */
  bool joins_blocks;
  LLVMValueRef shown_thread, shown_block; /* variables for debuggers */

  /* type of the thread context, which functions that are not inlined receive */
  LLVMTypeRef context_type;
  /* the thread context that this function has received; NULL in the kernel and in functions without
   * a context */
  LLVMValueRef context;
  LLVMValueRef *kept; /* declarations of vector functions, which must not be removed */
  unsigned kept_count, kept_capacity;
  /* output: the code depends on which vector functions the C library has */
  bool asks_vector_functions;
} kl_cpu_state;

extern const kl_lower_target kl_cpu_lowering; /* cpu.c */

static inline kl_cpu_state *kl_cpu(kl_lowering *l)
{
  KJ_ASSERT(l->target == &kl_cpu_lowering);
  return l->target_state;
}

/* ---- cpu_kernel.c ---- */

/* a cache line, so that two workers never write to the same line */
enum { KJ_SCRATCH_ALIGNMENT = 64 };

/* Assigns offsets in scratch memory to slots, static shared arrays and monitored local arrays. The
 * block shape must be known. */
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
/* Loads a field of the kj_cpu_grid with which the kernel was called. */
LLVMValueRef kl_load_grid(kl_lowering *l, LLVMTypeRef type, size_t offset);

/* ---- cpu.c ---- */

LLVMValueRef kl_cpu_thread_context(kl_lowering *l);
void kl_cpu_use_thread_context(kl_lowering *l, LLVMValueRef context);
void kl_cpu_leave_kernel(kl_lowering *l);
void kl_cpu_leave_after_call(kl_lowering *l, LLVMValueRef context);

/* ---- cpu_speculate.c ---- */

typedef struct kl_speculation {
  /* addresses of variables; first: the number of the first iteration with a zero divisor; bad:
   * whether the current iteration has a zero divisor */
  LLVMValueRef first, bad;
  LLVMTypeRef type; /* type of the counter */
} kl_speculation;

/* Returns whether the only operations in the body that can fail are float divisions before its
 * first store. */
bool kl_can_speculate(kl_lowering *l, const kt_stmts *body);
/* Speculative execution of a loop whose divisions can fail. kl_begin_speculation is called before
 * the loop; kl_begin_speculated and kl_end_speculated are called before and after the body. After
 * the loop, kl_find_failing sets *has_any to whether an iteration must be repeated with checks, and
 * returns the first such iteration. */
void kl_begin_speculation(kl_lowering *l, kl_speculation *s, LLVMTypeRef counter);
void kl_begin_speculated(kl_lowering *l, const kl_speculation *s);
void kl_end_speculated(kl_lowering *l, const kl_speculation *s, LLVMValueRef number);
LLVMValueRef kl_find_failing(kl_lowering *l, const kl_speculation *s, LLVMValueRef *has_any);

/* ---- cpu_threads.c ---- */

void kl_cpu_range(kl_lowering *l, const kt_stmt *stmt);
void kl_cpu_statement(kl_lowering *l, const kt_stmt *stmt);
/* Begins a loop that LLVM can vectorize and moves the builder into its body. The counter overflows
 * neither as an unsigned nor as a signed number. */
void kl_begin_vector_loop(kl_lowering *l, kl_counted_loop *loop, LLVMValueRef first,
                          LLVMValueRef stop);
void kl_end_vector_loop(kl_lowering *l, kl_counted_loop *loop);
/* Marks the memory accesses between the two calls as independent of the accesses in other
 * iterations of a loop over threads or lanes. kl_end_parallel returns the loop id for the loop's
 * metadata. This metadata contains a KJ_PARALLEL_PROPOSAL, which proposes that the loop is parallel
 * and names `id`, the id that the independent accesses carry. target/host_parallel.c decides
 * whether the loop is parallel. */
#define KJ_PARALLEL_PROPOSAL "kjit.parallel"
typedef struct kl_parallel {
  LLVMMetadataRef outer, id;
} kl_parallel;
kl_parallel kl_begin_parallel(kl_lowering *l, LLVMMetadataRef id);
LLVMMetadataRef kl_end_parallel(kl_lowering *l, const kl_parallel *p);
/* Sets the thread whose variables the following code accesses. rank is an i32. */
void kl_set_rank(kl_lowering *l, LLVMValueRef rank);
/* Returns an i1 that tells whether the current thread is active. */
LLVMValueRef kl_is_active(kl_lowering *l);

/* ---- cpu_group.c ---- */

/* Builds a wait for other fibers of the launch; see kj_cpu_wait. address is NULL if the wait has no
 * address. value is an i64. Returns an i64. */
LLVMValueRef kl_build_wait(kl_lowering *l, kj_cpu_wait what, LLVMValueRef id, LLVMValueRef count,
                           LLVMValueRef address, LLVMValueRef value);
/* Lower WARP statements that are barriers across warps or blocks, or waits for an mbarrier's
 * phase. */
void kl_cpu_meet(kl_lowering *l, const kt_stmt *stmt);
void kl_cpu_wait_for_phase(kl_lowering *l, const kt_stmt *stmt);
/* In cpu_matrix.c and cpu_wgmma.c: lower WARP statements that are matrix products, or that load or
 * store fragments. */
void kl_cpu_mma(kl_lowering *l, const kt_stmt *stmt);
void kl_cpu_fragment(kl_lowering *l, const kt_stmt *stmt);
void kl_cpu_wgmma(kl_lowering *l, const kt_stmt *stmt);
/* Lower built-ins on mbarriers and shared memory that each thread executes separately. */
LLVMValueRef kl_cpu_mbarrier(kl_lowering *l, const kt_expr *expr);
LLVMValueRef kl_cpu_pending_count(kl_lowering *l, const kt_expr *expr);
LLVMValueRef kl_cpu_shared_address(kl_lowering *l, const kt_expr *expr);
LLVMValueRef kl_cpu_map_shared_rank(kl_lowering *l, const kt_expr *expr);
LLVMValueRef kl_cpu_cp_async(kl_lowering *l, const kt_expr *expr);
LLVMValueRef kl_cpu_cp_async_bulk(kl_lowering *l, const kt_expr *expr);
LLVMValueRef kl_cpu_cp_async_tensor(kl_lowering *l, const kt_expr *expr);
/* Returns a position in the cluster, for example CLUSTER_IDX. */
LLVMValueRef kl_cpu_cluster_position(kl_lowering *l, ki_builtin_id position, uint32_t dimension);

/* ---- cpu_warp.c ---- */

/* Returns operand i of the statement's built-in for the thread with number rank; kl_warp_operand32
 * returns it as an i32. */
LLVMValueRef kl_warp_operand(kl_lowering *l, const kt_stmt *stmt, size_t i, LLVMValueRef rank);
LLVMValueRef kl_warp_operand32(kl_lowering *l, const kt_stmt *stmt, size_t i, LLVMValueRef rank);
/* Returns the end (exclusive) of the warp whose first thread is `first`. */
LLVMValueRef kl_end_of_warp(kl_lowering *l, LLVMValueRef first);
/* Begins a loop over the warps that the call runs. Returns the first thread of the current warp,
 * and sets *stop to the thread after the warp's last one. kl_end_vector_loop ends the loop. */
LLVMValueRef kl_begin_warps(kl_lowering *l, kl_counted_loop *warps, LLVMValueRef *stop);
/* Begin and end a loop over the threads [first, stop). */
kl_parallel kl_begin_lanes(kl_lowering *l, kl_counted_loop *loop, LLVMValueRef first,
                           LLVMValueRef stop);
void kl_end_lanes(kl_lowering *l, kl_counted_loop *loop, const kl_parallel *p);
/* kl_is_lane_active returns an i1 that tells whether the thread is active. kl_set_lane_result sets
 * the result of an active thread and has no effect on an inactive one. */
LLVMValueRef kl_is_lane_active(kl_lowering *l, const kt_stmt *stmt, LLVMValueRef rank);
void kl_set_lane_result(kl_lowering *l, const kt_stmt *stmt, LLVMValueRef rank, LLVMValueRef value);
/* Returns an i1 that tells whether any thread of the call is active. The result is a constant if
 * threads in the kernel cannot become inactive. */
LLVMValueRef kl_has_active_lane(kl_lowering *l, const kt_stmt *stmt);
/* Returns the number of the first active thread, or of the last thread if no thread is active. */
LLVMValueRef kl_first_active(kl_lowering *l, const kt_stmt *stmt);
/* Returns an i1 that tells whether any of the threads [first, stop) is active. */
LLVMValueRef kl_has_active_among(kl_lowering *l, const kt_stmt *stmt, LLVMValueRef first,
                                 LLVMValueRef stop);

void kl_cpu_warp(kl_lowering *l, const kt_stmt *stmt);
void kl_cpu_reduce(kl_lowering *l, const kt_stmt *stmt);

/* ---- cpu_math.c ---- */

LLVMValueRef kl_cpu_math(kl_lowering *l, ki_builtin_id id, LLVMValueRef *args, unsigned count,
                         LLVMTypeRef result);
LLVMValueRef kl_cpu_rsqrt(kl_lowering *l, LLVMValueRef x);
/* Prevents LLVM from removing the declarations of vector functions, whose names occur only in
 * attributes of scalar calls. */
void kl_finish_cpu_math(kl_lowering *l);
/* Gives the functions of the C library their real names. Must be called after optimization. If a
 * vectorized loop calls a vector variant of a function, changes the remainder loop so that it calls
 * the variant as well. */
void kl_name_cpu_math(kl_lowering *l, LLVMModuleRef module);

#endif
