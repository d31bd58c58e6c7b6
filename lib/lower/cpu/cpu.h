/* What the CPU's lowering files share: the kernel's shape, the current block and thread, the
 * scratch memory. */
#ifndef KJ_LOWER_CPU_CPU_H
#define KJ_LOWER_CPU_CPU_H

#include "lower/lower.h"

/* Found once a process, by target/host.c. */
typedef struct kj_cpu_features {
  bool has_avx, has_avx2, has_avx512;     /* which of libmvec's variants may be called */
  bool (*has_function)(const char *name); /* the C library, libmvec included, has it */
} kj_cpu_features;

typedef struct kj_cpu_state {
  const kj_cpu_features *features;
  uint64_t scratch_bytes; /* out */
  /* arrays in it that no other access than by their names leads to; by number in memory_scopes,
   * where the first is that of all other slots */
  KJ_LIST(const kj_tvar *) scratch_arrays;
  LLVMMetadataRef memory_domain;

  uint32_t block[3], thread_count;
  /* a call runs one warp of a block: KJ_PARTS_WARPS, and more than one warp */
  bool has_warps;
  LLVMValueRef unit_first, unit_stop; /* the threads that a call runs; i32 */
  LLVMValueRef grid_pointer, scratch;
  LLVMValueRef grid[3], block_index[3]; /* i32 */
  LLVMValueRef thread[3], rank;         /* i32; NULL outside of thread loops */
  LLVMValueRef block_number;            /* i64, in the whole grid */
  LLVMValueRef index_slots[3], last;    /* of the loop over blocks */
  LLVMBasicBlockRef head, exit;
  LLVMValueRef number_phi;
  LLVMValueRef shown_thread, shown_block; /* for debuggers */

  LLVMTypeRef context_type; /* of what noinline functions are handed */
  /* in such a function: what it was handed; NULL: it takes none, or the kernel */
  LLVMValueRef context;
  LLVMValueRef *kept; /* declarations of vector functions */
  unsigned kept_count, kept_capacity;
} kj_cpu_state;

static inline kj_cpu_state *kj_cpu(kj_lowering *l) { return l->target_state; }

/* ---- cpu_kernel.c ---- */

enum { KJ_SCRATCH_ALIGNMENT = 64 }; /* a cache line: what one worker writes is on none of another */

/* When the block shape is known: the place of each variable that is a slot, of static shared
 * arrays, of local arrays that are watched. */
void kj_lay_out_scratch(kj_lowering *l);
uint32_t kj_cpu_object_of(kj_lowering *l, const kj_tvar *var);
LLVMValueRef kj_cpu_slot_pointer(kj_lowering *l, const kj_tvar *var);
LLVMValueRef kj_cpu_shared_pointer(kj_lowering *l, const kj_tvar *var);
LLVMValueRef kj_cpu_local_pointer(kj_lowering *l, const kj_tvar *var);
LLVMValueRef kj_cpu_dynamic_shared_bytes(kj_lowering *l);

/* ---- cpu_kernel.c ---- */

void kj_cpu_begin_kernel(kj_lowering *l);
void kj_cpu_begin_block(kj_lowering *l);
void kj_cpu_end_kernel(kj_lowering *l);
void kj_cpu_begin_entry(kj_lowering *l);
void kj_cpu_finish_function(kj_lowering *l, LLVMValueRef function);
/* A field of the kj_cpu_grid that the kernel was called with. */
LLVMValueRef kj_load_grid(kj_lowering *l, LLVMTypeRef type, size_t offset);

/* ---- cpu.c ---- */

LLVMValueRef kj_cpu_thread_context(kj_lowering *l);
void kj_cpu_use_thread_context(kj_lowering *l, LLVMValueRef context);
void kj_cpu_leave_kernel(kj_lowering *l);
void kj_cpu_leave_after_call(kj_lowering *l, LLVMValueRef context);

/* ---- cpu_speculate.c ---- */

typedef struct kj_speculation {
  /* memory: the first iteration with a bad divisor; whether the current one has any */
  LLVMValueRef first, bad;
  LLVMTypeRef type; /* of the counter */
} kj_speculation;

/* Whether all that may fail in the body are float divisions before its first store. */
bool kj_can_speculate(kj_lowering *l, const kj_tstmts *body);
/* Before the loop; around the body of an iteration; behind the loop: which iteration has to be run
 * again, if any. */
void kj_begin_speculation(kj_lowering *l, kj_speculation *s, LLVMTypeRef counter);
void kj_begin_speculated(kj_lowering *l, const kj_speculation *s);
void kj_end_speculated(kj_lowering *l, const kj_speculation *s, LLVMValueRef number);
LLVMValueRef kj_find_failing(kj_lowering *l, const kj_speculation *s, LLVMValueRef *has_any);

/* ---- cpu_threads.c ---- */

void kj_cpu_range(kj_lowering *l, const kj_tstmt *stmt);
void kj_cpu_statement(kj_lowering *l, const kj_tstmt *stmt);
/* A loop that the vectorizer takes; the builder stands in the body. The counter has no unsigned and
 * no signed overflow. */
void kj_begin_vector_loop(kj_lowering *l, kj_counted_loop *loop, LLVMValueRef first,
                          LLVMValueRef stop);
void kj_end_vector_loop(kj_lowering *l, kj_counted_loop *loop);
/* Around the accesses of a loop whose iterations are threads, or lanes: those that say so are
 * independent of the other iterations'. Gives the loop's own id, which proposes that it becomes the
 * loop `id`: see target/host_parallel.c. */
#define KJ_PARALLEL_PROPOSAL "kjit.parallel"
typedef struct kj_parallel {
  LLVMMetadataRef outer, id;
} kj_parallel;
kj_parallel kj_begin_parallel(kj_lowering *l, LLVMMetadataRef id);
LLVMMetadataRef kj_end_parallel(kj_lowering *l, const kj_parallel *p);
/* The thread whose variables are read and written from here on; i32. */
void kj_set_rank(kj_lowering *l, LLVMValueRef rank);
/* i1: the current thread is active. */
LLVMValueRef kj_is_active(kj_lowering *l);

/* ---- cpu_group.c ---- */

/* Waiting for other parts of the launch: see kj_cpu_wait. address NULL: none; value i64; gives an
 * i64. */
LLVMValueRef kj_build_wait(kj_lowering *l, kj_cpu_wait what, LLVMValueRef id, LLVMValueRef count,
                           LLVMValueRef address, LLVMValueRef value);
/* WARP statements: barriers through which warps or blocks meet, waits for a phase of an mbarrier.
 */
void kj_cpu_meet(kj_lowering *l, const kj_tstmt *stmt);
void kj_cpu_wait_for_phase(kj_lowering *l, const kj_tstmt *stmt);
/* cpu_matrix.c, cpu_wgmma.c: WARP statements that are matrix products, or load or store fragments.
 */
void kj_cpu_mma(kj_lowering *l, const kj_tstmt *stmt);
void kj_cpu_fragment(kj_lowering *l, const kj_tstmt *stmt);
void kj_cpu_wgmma(kj_lowering *l, const kj_tstmt *stmt);
/* What single threads do there. */
LLVMValueRef kj_cpu_mbarrier(kj_lowering *l, const kj_texpr *expr);
LLVMValueRef kj_cpu_pending_count(kj_lowering *l, const kj_texpr *expr);
LLVMValueRef kj_cpu_shared_address(kj_lowering *l, const kj_texpr *expr);
LLVMValueRef kj_cpu_map_shared_rank(kj_lowering *l, const kj_texpr *expr);
LLVMValueRef kj_cpu_cp_async(kj_lowering *l, const kj_texpr *expr);
LLVMValueRef kj_cpu_cp_async_bulk(kj_lowering *l, const kj_texpr *expr);
LLVMValueRef kj_cpu_cp_async_tensor(kj_lowering *l, const kj_texpr *expr);
/* CLUSTER_IDX and the other positions of clusters. */
LLVMValueRef kj_cpu_cluster_position(kj_lowering *l, kj_builtin_id position, uint32_t dimension);

/* ---- cpu_warp.c ---- */

/* Operand i of the statement's built-in for a thread; as an i32. */
LLVMValueRef kj_warp_operand(kj_lowering *l, const kj_tstmt *stmt, size_t i, LLVMValueRef rank);
LLVMValueRef kj_warp_operand32(kj_lowering *l, const kj_tstmt *stmt, size_t i, LLVMValueRef rank);
/* A loop over the threads [first, stop). */
kj_parallel kj_begin_lanes(kj_lowering *l, kj_counted_loop *loop, LLVMValueRef first,
                           LLVMValueRef stop);
void kj_end_lanes(kj_lowering *l, kj_counted_loop *loop, const kj_parallel *p);
/* i1: the thread is active; sets the result of an active thread. */
LLVMValueRef kj_is_lane_active(kj_lowering *l, const kj_tstmt *stmt, LLVMValueRef rank);
void kj_set_lane_result(kj_lowering *l, const kj_tstmt *stmt, LLVMValueRef rank,
                        LLVMValueRef value);
/* i1: some thread of the call is active; constant where nobody is ever off. */
LLVMValueRef kj_has_active_lane(kj_lowering *l, const kj_tstmt *stmt);
/* The same among the threads [first, stop). */
LLVMValueRef kj_has_active_among(kj_lowering *l, const kj_tstmt *stmt, LLVMValueRef first,
                                 LLVMValueRef stop);

void kj_cpu_warp(kj_lowering *l, const kj_tstmt *stmt);
void kj_cpu_reduce(kj_lowering *l, const kj_tstmt *stmt);

/* ---- cpu_math.c ---- */

LLVMValueRef kj_cpu_math(kj_lowering *l, kj_builtin_id id, LLVMValueRef *args, unsigned count,
                         LLVMTypeRef result);
LLVMValueRef kj_cpu_rsqrt(kj_lowering *l, LLVMValueRef x);
/* Keeps the vector functions that scalar calls name. */
void kj_finish_cpu_math(kj_lowering *l);
/* Gives the functions of the C library their real names, after optimizing. */
void kj_name_cpu_math(LLVMContextRef context, LLVMModuleRef module);

/* ---- cpu.c ---- */

extern const kj_lower_target kj_cpu_lowering;

#endif
