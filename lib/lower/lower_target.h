/* The differences between the targets in lowering: a table of functions and flags. */
#ifndef KJ_LOWER_LOWER_TARGET_H
#define KJ_LOWER_LOWER_TARGET_H

#include <llvm-c/Core.h>

#include "typing/typed.h"

typedef struct kl_lowering kl_lowering;
typedef struct kl_lower_target kl_lower_target;

struct kl_lower_target {
  const char *name;
  unsigned global_space, shared_space, constant_space;
  /* The code defines the variables that the application sets after loading (extern constants
   * without a value), because no linker takes part. Otherwise the application defines them. */
  bool defines_outside;
  uint64_t most_static_shared_bytes; /* 0 means no limit */
  uint64_t most_constant_bytes;      /* 0 means no limit */
  const char *scopes[3]; /* LLVM's sync scopes for atomics and fences, indexed by ki_memory_scope */
  /* Creates the kernel's function (named kernel->symbol unless the target needs another name), sets
   * l->function and l->parameters.items[].value, and calls kl_begin_body. */
  void (*begin_kernel)(kl_lowering *l);
  /* Called before the body is lowered, after the parameters are bound. May be NULL. */
  void (*begin_block)(kl_lowering *l);
  /* Called with the builder at the point where control leaves the kernel's body. */
  void (*end_kernel)(kl_lowering *l);
  /* Called in place of begin_kernel if a func is compiled on its own, with the builder at the start
   * of the func. May be NULL. */
  void (*begin_entry)(kl_lowering *l);
  /* Returns THREAD_IDX, BLOCK_IDX, BLOCK_DIM, GRID_DIM (dimension 0 to 2), THREAD_RANK, WARP_RANK
   * or LANEID as a non-negative i32 or as an i64. */
  LLVMValueRef (*position)(kl_lowering *l, ki_builtin_id position, uint32_t dimension);
  /* THREAD_IDX and BLOCK_IDX of a thread that fails. The code reads them at the failure, so that no
   * register holds them from the start of the kernel on. If NULL, `position` is used. */
  LLVMValueRef (*failing_position)(kl_lowering *l, ki_builtin_id position, uint32_t dimension);
  /* Returns the memory of a variable with is_slot for the current thread, with the variable's
   * memory type. NULL if the target has no slots. */
  LLVMValueRef (*slot_pointer)(kl_lowering *l, const kt_var *var);
  /* Returns the object (see kl_array_value) of a shared, local or slot variable. If NULL, the type
   * of the variable determines it. */
  uint32_t (*object_of)(kl_lowering *l, const kt_var *var);
  /* Return element 0 of a KJ_V_SHARED variable, in shared_space, and of a KJ_V_LOCAL variable. */
  LLVMValueRef (*shared_pointer)(kl_lowering *l, const kt_var *var);
  LLVMValueRef (*local_pointer)(kl_lowering *l, const kt_var *var);
  LLVMValueRef (*dynamic_shared_bytes)(kl_lowering *l); /* i64 */
  /* Lowers GRID_FOR and BLOCK_FOR. */
  void (*range)(kl_lowering *l, const kt_stmt *stmt);
  /* Lowers THREADS, WARP and BARRIER_REDUCE. NULL if the target has none of them. */
  void (*statement)(kl_lowering *l, const kt_stmt *stmt);
  void (*barrier)(kl_lowering *l);
  /* predicate is an i1; returns an i32 or i1 */
  LLVMValueRef (*barrier_reduce)(kl_lowering *l, ki_barrier_reduction reduction,
                                 LLVMValueRef predicate);
  /* Families of built-ins that each target lowers in its own way. NULL means that the target has
   * none of the family. */
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
  /* Atomics of 16 bytes. has_wide_atomics returns whether the processor has them; NULL means that
   * inference has already checked. wide_load and wide_store access an i128 with an order, for
   * targets where LLVM has only exchanges; NULL means that LLVM's loads and stores are used. */
  bool (*has_wide_atomics)(kl_lowering *l);
  LLVMValueRef (*wide_load)(kl_lowering *l, ki_memory_scope scope, LLVMAtomicOrdering order,
                            LLVMValueRef pointer);
  LLVMValueRef (*wide_store)(kl_lowering *l, ki_memory_scope scope, LLVMAtomicOrdering order,
                             LLVMValueRef pointer, LLVMValueRef value);
  /* Returns whether instructions exist for bf16 sums and products, and for rounding a float to
   * bf16. NULL means none. */
  bool (*has_brain_arithmetic)(kl_lowering *l);
  /* Returns whether the target has fma for f16 or bf16. NULL means never. */
  bool (*has_half_fma)(kl_lowering *l, kjit_type type);
  /* Returns whether LLVM's atomicrmw on f16 or bf16 becomes an instruction. NULL means never. */
  bool (*adds_small_float)(kl_lowering *l, kjit_type type);
  void (*syncwarp)(kl_lowering *l, LLVMValueRef mask);
  /* Accesses with a cache hint; values have their memory type. NULL means that plain accesses are
   * used. */
  LLVMValueRef (*hinted_load)(kl_lowering *l, ki_cache_hint hint, LLVMTypeRef type,
                              LLVMValueRef pointer);
  void (*hinted_store)(kl_lowering *l, ki_cache_hint hint, LLVMValueRef pointer,
                       LLVMValueRef value);
  void (*prefetch)(kl_lowering *l, ki_cache_level level, LLVMValueRef pointer);
  /* Returns CLOCK64 or GLOBALTIMER as an i64. */
  LLVMValueRef (*clock)(kl_lowering *l, ki_builtin_id clock);
  /* duration is an i32; NULL means that sleeping does nothing */
  void (*nanosleep)(kl_lowering *l, LLVMValueRef duration);
  void (*fence)(kl_lowering *l, ki_memory_scope scope);
  /* value is one i32 word; wider values are shuffled word by word. width NULL means 32. */
  LLVMValueRef (*shuffle)(kl_lowering *l, ki_shuffle_mode mode, LLVMValueRef mask,
                          LLVMValueRef value, LLVMValueRef lane, LLVMValueRef width);
  /* Returns an i1; for BALLOT an i32 */
  LLVMValueRef (*vote)(kl_lowering *l, ki_vote mode, LLVMValueRef mask, LLVMValueRef predicate);
  LLVMValueRef (*activemask)(kl_lowering *l);
  /* Calls a function of math.def on floats or doubles. result is its LLVM type; SINCOS returns a
   * struct of two. */
  LLVMValueRef (*math)(kl_lowering *l, ki_builtin_id id, LLVMValueRef *args, unsigned count,
                       LLVMTypeRef result);
  LLVMValueRef (*rsqrt)(kl_lowering *l, LLVMValueRef x);
  /* Builds an instruction of the target by the name of its intrinsic ("prmt"), overloaded at most
   * on the first operand's type. Returns NULL and builds nothing if the target or its architecture
   * has none. */
  LLVMValueRef (*native)(kl_lowering *l, const char *name, uint32_t least_arch, LLVMValueRef *args,
                         unsigned count);
  /* Converts f32 to i32 or u32 with one instruction: truncates, saturates, NaN gives 0. NULL means
   * that llvm.fpto?i.sat is used. */
  LLVMValueRef (*float_to_i32)(kl_lowering *l, LLVMValueRef x, bool is_unsigned);
  /* Returns whether one instruction converts a float to u32 or u64, with all ones for values out of
   * range. */
  bool (*has_unsigned_conversion)(kl_lowering *l);
  /* Returns the absolute value of an i32 or i64; the minimum stays. NULL means that llvm.abs is
   * used. */
  LLVMValueRef (*integer_abs)(kl_lowering *l, LLVMValueRef x);
  /* Maximum size of the local arrays and variables of all functions on the stack; code that needs
   * more is rejected. 0 means no limit. */
  uint32_t stack_limit_bytes;
  /* Maximum stack size in bytes for recursion. fiber_recursion_bytes is the same for kernels that
   * run as fibers, each with its own stack. stack_pointer returns the current stack pointer as an
   * i64. */
  uint32_t recursion_bytes, fiber_recursion_bytes;
  LLVMValueRef (*stack_pointer)(kl_lowering *l);
  /* Sends a line: its header (see native/support_routines.h) and the address of its words on the
   * stack. has_print_parameter: the kernel has a parameter for it, KJ_PARAMETER_PRINT. */
  bool has_print_parameter;
  void (*print)(kl_lowering *l, uint64_t header, uint32_t count, LLVMValueRef words);
  /* Builds code by which the thread leaves the kernel, also from an LLVM function that the kernel
   * calls. The code ends the current basic block. */
  void (*leave_kernel)(kl_lowering *l);
  /* Ends the block for a `return` in the kernel itself. NULL means a branch to the kernel's end. */
  void (*return_early)(kl_lowering *l);
  /* Like leave_kernel for a thread whose launch was interrupted, from any place. NULL means that
   * leave_kernel is used. */
  void (*leave_interrupted)(kl_lowering *l);
  /* Returns, as an i64, the number of iterations after which a thread fails in a loop that only
   * waits. NULL means that such loops continue. */
  LLVMValueRef (*most_turns)(kl_lowering *l);
  /* Polls count down a budget before they read the interrupt word, which is far away: see poll.c.
   */
  bool counts_down;
  /* Waits for the products of the warpgroup before a thread leaves. NULL means that the target has
   * no such products. */
  void (*finish_products)(kl_lowering *l);
  /* The code of leave_kernel, and the position of the thread, are the same everywhere in an LLVM
   * function, so all places at which a thread fails branch to one block. */
  bool shares_failures;
  /* thread_context returns a pointer that an LLVM function takes as its first argument if its
   * instance may_fail or polls, or, if context_has_positions, uses_positions. use_thread_context is
   * called in such a function. */
  bool context_has_positions;
  LLVMValueRef (*thread_context)(kl_lowering *l);
  /* Called after the call of a function that may_fail, with its context: if the callee left the
   * kernel, the caller leaves as well. NULL means that the thread has ended already. */
  void (*leave_after_call)(kl_lowering *l, LLVMValueRef context);
  void (*use_thread_context)(kl_lowering *l, LLVMValueRef context);
  void (*finish_function)(kl_lowering *l, LLVMValueRef function); /* sets attributes; may be NULL */
};

#endif
