/* The differences between the targets in lowering: a table of functions. */
#ifndef KJ_LOWER_LOWER_TARGET_H
#define KJ_LOWER_LOWER_TARGET_H

#include <llvm-c/Core.h>

#include "typing/typed.h"

typedef struct kl_lowering kl_lowering;
typedef struct kl_lower_target kl_lower_target;

struct kl_lower_target {
  const char *name;
  unsigned global_space, shared_space, constant_space;
  /* Code defines the variables that the program sets which loads it (extern constants without a
   * value), because no linker takes part. Otherwise the program defines them. */
  bool defines_outside;
  uint64_t most_static_shared_bytes; /* 0: no limit */
  uint64_t most_constant_bytes;      /* 0: no limit */
  const char *scopes[3]; /* LLVM's sync scopes of atomics and fences, by ki_memory_scope */
  /* Creates the kernel's function (named kernel->symbol unless the target needs another), sets
   * l->function and l->parameters.items[].value, calls kl_begin_body. */
  void (*begin_kernel)(kl_lowering *l);
  /* Called before the body is lowered, after the parameters are bound. May be NULL. */
  void (*begin_block)(kl_lowering *l);
  /* Called with the builder at the point where control leaves the kernel's body. */
  void (*end_kernel)(kl_lowering *l);
  /* Called in place of begin_kernel if a func is compiled on its own, with the builder at the start
   * of the func. May be NULL. */
  void (*begin_entry)(kl_lowering *l);
  /* THREAD_IDX, BLOCK_IDX, BLOCK_DIM, GRID_DIM (dimension 0..2), THREAD_RANK, WARP_RANK, LANEID: a
   * non-negative i32, or an i64. */
  LLVMValueRef (*position)(kl_lowering *l, ki_builtin_id position, uint32_t dimension);
  /* THREAD_IDX and BLOCK_IDX of a thread that fails. The code reads them at the failure, so that no
   * register holds them from the start of the kernel on. If NULL, `position` is used. */
  LLVMValueRef (*failing_position)(kl_lowering *l, ki_builtin_id position, uint32_t dimension);
  /* Memory of a variable with is_slot, for the current thread: of its memory type. NULL where no
   * variable is a slot. */
  LLVMValueRef (*slot_pointer)(kl_lowering *l, const kt_var *var);
  /* Returns the object (see kl_array_value) of a shared, local or slot variable. If NULL, the type
   * of the variable determines it. */
  uint32_t (*object_of)(kl_lowering *l, const kt_var *var);
  /* Return element 0 of a KJ_V_SHARED variable, in shared_space, and of a KJ_V_LOCAL variable. */
  LLVMValueRef (*shared_pointer)(kl_lowering *l, const kt_var *var);
  LLVMValueRef (*local_pointer)(kl_lowering *l, const kt_var *var);
  LLVMValueRef (*dynamic_shared_bytes)(kl_lowering *l); /* i64 */
  /* GRID_FOR and BLOCK_FOR. */
  void (*range)(kl_lowering *l, const kt_stmt *stmt);
  /* THREADS, WARP, BARRIER_REDUCE. NULL where there are none. */
  void (*statement)(kl_lowering *l, const kt_stmt *stmt);
  void (*barrier)(kl_lowering *l);
  /* i1 in; i32 or i1 out */
  LLVMValueRef (*barrier_reduce)(kl_lowering *l, ki_barrier_reduction reduction,
                                 LLVMValueRef predicate);
  /* Families of built-ins whose lowering differs. NULL: the target has none of the family. */
#define F(family) LLVMValueRef (*family)(kl_lowering * l, const kt_expr *expr);
#include "lower/families.def"
#undef F
  /* Shared atomics can be plain loads and stores, because one worker runs a block. */
  bool has_plain_shared_atomics;
  /* Builds a relaxed atomic operation other than SUB as one instruction, if LLVM would lose its
   * scope. Returns the old value or its bits, or NULL if it has built nothing. */
  LLVMValueRef (*scoped_atomic)(kl_lowering *l, ki_combine op, kjit_type type,
                                ki_memory_scope scope, LLVMValueRef pointer, LLVMValueRef value);
  /* Builds a relaxed compare-and-swap of 16 bits that does not access neighbouring bytes, and
   * returns the old value. NULL if LLVM's instruction is right for the target. */
  LLVMValueRef (*small_cas)(kl_lowering *l, ki_memory_scope scope, LLVMValueRef pointer,
                            LLVMValueRef expected, LLVMValueRef desired);
  /* Atomics of 16 bytes. has_wide_atomics: the processor has them; NULL: inference has asked. A
   * load and a store with an order, i128, where LLVM has exchanges only; NULL: LLVM's do. */
  bool (*has_wide_atomics)(kl_lowering *l);
  LLVMValueRef (*wide_load)(kl_lowering *l, ki_memory_scope scope, LLVMAtomicOrdering order,
                            LLVMValueRef pointer);
  LLVMValueRef (*wide_store)(kl_lowering *l, ki_memory_scope scope, LLVMAtomicOrdering order,
                             LLVMValueRef pointer, LLVMValueRef value);
  /* bf16 sums and products, and what rounds a float to it, as instructions; NULL: none */
  bool (*has_brain_arithmetic)(kl_lowering *l);
  bool (*has_half_fma)(kl_lowering *l, kjit_type type); /* f16, bf16; NULL: never */
  /* f16, bf16: LLVM's atomicrmw becomes an instruction. NULL: never */
  bool (*adds_small_float)(kl_lowering *l, kjit_type type);
  void (*syncwarp)(kl_lowering *l, LLVMValueRef mask);
  /* Accesses with a hint for the caches; a value of its memory type. NULL: there are none, plain
   * ones do. */
  LLVMValueRef (*hinted_load)(kl_lowering *l, ki_cache_hint hint, LLVMTypeRef type,
                              LLVMValueRef pointer);
  void (*hinted_store)(kl_lowering *l, ki_cache_hint hint, LLVMValueRef pointer,
                       LLVMValueRef value);
  void (*prefetch)(kl_lowering *l, ki_cache_level level, LLVMValueRef pointer);
  /* CLOCK64, GLOBALTIMER; i64 */
  LLVMValueRef (*clock)(kl_lowering *l, ki_builtin_id clock);
  /* i32; NULL: it is over at once */
  void (*nanosleep)(kl_lowering *l, LLVMValueRef duration);
  void (*fence)(kl_lowering *l, ki_memory_scope scope);
  /* value: i32, given as 32-bit pieces one at a time; width NULL: 32. */
  LLVMValueRef (*shuffle)(kl_lowering *l, ki_shuffle_mode mode, LLVMValueRef mask,
                          LLVMValueRef value, LLVMValueRef lane, LLVMValueRef width);
  /* i1; BALLOT: i32 */
  LLVMValueRef (*vote)(kl_lowering *l, ki_vote mode, LLVMValueRef mask, LLVMValueRef predicate);
  LLVMValueRef (*activemask)(kl_lowering *l);
  /* A function that math.def has names of, on floats or doubles; result: its LLVM type. SINCOS
   * returns a struct of two. */
  LLVMValueRef (*math)(kl_lowering *l, ki_builtin_id id, LLVMValueRef *args, unsigned count,
                       LLVMTypeRef result);
  LLVMValueRef (*rsqrt)(kl_lowering *l, LLVMValueRef x);
  /* An instruction of the target by the name of its intrinsic ("prmt"), overloaded on the first
   * operand's type at most; NULL, and nothing built: the target or its architecture has none. */
  LLVMValueRef (*native)(kl_lowering *l, const char *name, uint32_t least_arch, LLVMValueRef *args,
                         unsigned count);
  /* f32 to i32 or u32, truncating, saturating, NaN to 0, where one instruction does it; NULL:
   * llvm.fpto?i.sat does. */
  LLVMValueRef (*float_to_i32)(kl_lowering *l, LLVMValueRef x, bool is_unsigned);
  /* Whether one instruction converts a float to u32 or u64, which gives all ones beyond the range.
   */
  bool (*has_unsigned_conversion)(kl_lowering *l);
  /* The absolute value of an i32 or i64, the minimum kept; NULL: llvm.abs does. */
  LLVMValueRef (*integer_abs)(kl_lowering *l, LLVMValueRef x);
  /* Most bytes of local arrays and variables on the stack; 0: no limit. What runs the code has this
   * and kl_recursion_bytes, and as much again for what else functions keep there. */
  uint32_t stack_limit_bytes;
  /* How many bytes of stack recursion may take; the same in a kernel whose warps or blocks wait for
   * each other, each of which has a stack; and where the stack stands, as an i64. */
  uint32_t recursion_bytes, part_recursion_bytes;
  LLVMValueRef (*stack_pointer)(kl_lowering *l);
  /* A line: the header (see compiler.h) and where its words are, on the stack. has_print_parameter:
   * the kernel has a parameter for it, KJ_PARAMETER_PRINT. */
  bool has_print_parameter;
  void (*print)(kl_lowering *l, uint64_t header, uint32_t count, LLVMValueRef words);
  /* Ends the block: the current thread leaves the kernel, from an LLVM function too.
   * shares_failures: what it builds, and positions, are right anywhere in a function. */
  void (*leave_kernel)(kl_lowering *l);
  /* Ends the block: `return` in the kernel itself. NULL: a branch to the kernel's end. */
  void (*return_early)(kl_lowering *l);
  /* The same of a thread whose launch was interrupted, wherever it is; NULL: as leave_kernel. */
  void (*leave_interrupted)(kl_lowering *l);
  /* After how many rounds of a loop that only waits its thread fails, an i64; NULL: such loops go
   * on. */
  LLVMValueRef (*most_turns)(kl_lowering *l);
  /* What interrupts launches is far away: see poll.c. */
  bool counts_down;
  /* Waits for the products of the warpgroup, before a thread leaves; NULL: there are none. */
  void (*finish_products)(kl_lowering *l);
  bool shares_failures;
  /* A pointer that LLVM functions take as their first argument when the instance may_fail or polls
   * or, where context_has_positions, uses_positions; use_ is called in them. */
  bool context_has_positions;
  LLVMValueRef (*thread_context)(kl_lowering *l);
  /* After the call of a function that may_fail, with its context: the thread goes on leaving. NULL:
   * it is gone. */
  void (*leave_after_call)(kl_lowering *l, LLVMValueRef context);
  void (*use_thread_context)(kl_lowering *l, LLVMValueRef context);
  void (*finish_function)(kl_lowering *l, LLVMValueRef function); /* attributes; may be NULL */
};

#endif
