/* Lowering to nvptx: the interface for lib/target/nvptx.c, and the functions of nvptx's lowering
 * table, which nvptx_kernel.c contains. */
#ifndef KJ_LOWER_NVPTX_LOWER_NVPTX_H
#define KJ_LOWER_NVPTX_LOWER_NVPTX_H

#include "lower/lower.h"

/* The interface to lib/target/nvptx.c. */

/* kl_lowering.target_state */
typedef struct kl_nvptx_lowering {
  kj_math_library library; /* the library whose functions are called */
  bool calls_library;      /* output: the code calls the math library */
  bool asks_library;       /* output: the code depends on which math library is used */
  /* output: a called function has loops or branches, so LLVM's loop passes improve the code */
  bool has_branches;
  /* output: wgmma instructions write their accumulators while later instructions run, so the
   * accumulators must stay in registers */
  bool has_wgmma;
} kl_nvptx_lowering;

extern const kl_lower_target kl_nvptx_lowering_target;

/* Inline assembly. */

typedef struct kl_asm {
  const char *text, *constraints;
  LLVMTypeRef result;
  /* args[0], with the constraint "*m", is the address of a value of this type, and the assembly
   * accesses no other memory. NULL means that the assembly can access any memory, unless is_pure is
   * set */
  LLVMTypeRef place;
  /* used only if place is set: no memory access may be moved across the assembly */
  bool orders_others;
  bool is_pure;       /* the assembly has no effect, so it can be moved and removed */
  bool is_convergent; /* several threads must execute the assembly together */
} kl_asm;

LLVMValueRef kl_build_asm(kl_lowering *l, const kl_asm *code, LLVMValueRef *args, unsigned count);
/* Returns an address in shared memory as PTX represents it, an i32. */
LLVMValueRef kl_shared_window(kl_lowering *l, LLVMValueRef pointer);

/* the lowering functions of the families, in nvptx_copy.c, nvptx_group.c and nvptx_matrix.c */
#define F(family) LLVMValueRef kl_nvptx_##family(kl_lowering *l, const kt_expr *expr);
#include "lower/families.def"
#undef F
LLVMValueRef kl_nvptx_cluster_position(kl_lowering *l, ki_builtin_id position, uint32_t dimension);

/* nvptx_group.c */
/* Executes `ask` repeatedly until it returns a value other than 0. Interruptible code polls for
 * interrupts between the repetitions. */
void kl_nvptx_wait_until(kl_lowering *l, kj_location location, const kl_asm *ask,
                         LLVMValueRef *args, unsigned count);
/* Returns a shared variable of the module that has no initial value. */
LLVMValueRef kl_nvptx_shared_words(kl_lowering *l, const char *name, LLVMTypeRef word,
                                   uint32_t count, uint32_t word_bytes);

/* nvptx_grid.c */
/* Returns whether the kernel has a grid_sync. Such a kernel counts the threads that leave it. */
bool kl_nvptx_counts_threads(kl_lowering *l);
/* For kernels with a grid_sync: call kl_nvptx_begin_grid before the body, and kl_nvptx_leave_grid
 * at each point at which a thread leaves the kernel. */
void kl_nvptx_begin_grid(kl_lowering *l);
void kl_nvptx_leave_grid(kl_lowering *l);
void kl_nvptx_sync_grid(kl_lowering *l, kj_location location);

/* ---- functions of nvptx's lowering table that are instructions and library calls ---- */

/* nvptx_memory.c */
void kl_nvptx_barrier(kl_lowering *l);
/* Initializes the state of the barriers of block and grid. Call it before the body. */
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

/* nvptx_math.c: sine and cosine of an f32; `values` receives both */
LLVMValueRef kl_nvptx_sine(kl_lowering *l, LLVMValueRef x);
LLVMValueRef kl_nvptx_cosine(kl_lowering *l, LLVMValueRef x);
void kl_nvptx_sine_and_cosine(kl_lowering *l, LLVMValueRef x, LLVMValueRef values[2]);

#endif
