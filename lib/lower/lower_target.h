/* The differences between the targets in lowering: a table of functions and flags for each
 * target. */
#ifndef KJ_LOWER_LOWER_TARGET_H
#define KJ_LOWER_LOWER_TARGET_H

#include <llvm-c/Core.h>

#include "typing/typed.h"

typedef struct kl_lowering kl_lowering;
typedef struct kl_lower_target kl_lower_target;

struct kl_lower_target {
  const char *name;
  unsigned global_space, shared_space, constant_space;
  /* The generated code defines the extern constants without a value, and the application sets them
   * after loading, because there is no linker. If this is false, the application's code defines
   * them. */
  bool defines_outside;
  uint64_t most_static_shared_bytes; /* 0 means no limit */
  uint64_t most_constant_bytes;      /* 0 means no limit */
  const char *scopes[3]; /* LLVM's sync scopes for atomics and fences, indexed by ki_memory_scope */
  /* Creates the kernel's function, which is named kernel->symbol unless the target needs another
   * name. Sets l->function and l->parameters.items[].value, and calls kl_begin_body. */
  void (*begin_kernel)(kl_lowering *l);
  /* Called after the parameters are bound and before the body is lowered. Can be NULL. */
  void (*begin_block)(kl_lowering *l);
  /* Called at the end of the kernel's body, with the builder at that point. */
  void (*end_kernel)(kl_lowering *l);
  /* Called instead of begin_kernel if a func is compiled as a C function, with the builder at the
   * func's start. Can be NULL. */
  void (*begin_entry)(kl_lowering *l);
  /* Returns THREAD_IDX, BLOCK_IDX, BLOCK_DIM, GRID_DIM (dimension 0 to 2), THREAD_RANK, WARP_RANK
   * or LANEID as a non-negative i32 or as an i64. */
  LLVMValueRef (*position)(kl_lowering *l, ki_builtin_id position, uint32_t dimension);
  /* Returns THREAD_IDX or BLOCK_IDX of a failing thread. The emitted code reads the position only
   * after a failure, so that no register holds it from the kernel's start. If this function is
   * NULL, `position` is used. */
  LLVMValueRef (*failing_position)(kl_lowering *l, ki_builtin_id position, uint32_t dimension);
  /* Returns the memory of a variable with is_slot for the current thread. It has the variable's
   * memory type. NULL if the target has no slots. */
  LLVMValueRef (*slot_pointer)(kl_lowering *l, const kt_var *var);
  /* Returns the object (see kl_array_value) of a shared, local or slot variable. If NULL, the
   * variable's type determines the object. */
  uint32_t (*object_of)(kl_lowering *l, const kt_var *var);
  /* shared_pointer returns the address of element 0 of a KJ_V_SHARED variable, in shared_space;
   * local_pointer does so for a KJ_V_LOCAL variable. */
  LLVMValueRef (*shared_pointer)(kl_lowering *l, const kt_var *var);
  LLVMValueRef (*local_pointer)(kl_lowering *l, const kt_var *var);
  LLVMValueRef (*dynamic_shared_bytes)(kl_lowering *l); /* i64 */
  /* Lowers GRID_FOR and BLOCK_FOR. */
  void (*range)(kl_lowering *l, const kt_stmt *stmt);
  /* Lowers THREADS, WARP and BARRIER_REDUCE statements. NULL if the target has none of them. */
  void (*statement)(kl_lowering *l, const kt_stmt *stmt);
  void (*barrier)(kl_lowering *l);
  /* predicate is an i1; the result is an i32 or i1 */
  LLVMValueRef (*barrier_reduce)(kl_lowering *l, ki_barrier_reduction reduction,
                                 LLVMValueRef predicate);
  /* Families of built-ins that each target lowers differently (families.def). NULL means that the
   * target does not support the family. */
#define F(family) LLVMValueRef (*family)(kl_lowering * l, const kt_expr *expr);
#include "lower/families.def"
#undef F
  /* Atomics on shared memory can be plain loads and stores, because one worker thread runs a whole
   * block. */
  bool has_plain_shared_atomics;
  /* Builds a relaxed atomic operation other than SUB as a single instruction if LLVM would change
   * the operation's scope. Returns the old value or its bits, or NULL if it has emitted no code. */
  LLVMValueRef (*scoped_atomic)(kl_lowering *l, ki_combine op, kjit_type type,
                                ki_memory_scope scope, LLVMValueRef pointer, LLVMValueRef value);
  /* Builds a relaxed compare-and-swap of 16 bits that does not access neighbouring bytes, and
   * returns the old value. NULL if LLVM's instruction is correct for the target. */
  LLVMValueRef (*small_cas)(kl_lowering *l, ki_memory_scope scope, LLVMValueRef pointer,
                            LLVMValueRef expected, LLVMValueRef desired);
  /* Atomics of 16 bytes. has_wide_atomics returns whether the processor supports them. If it is
   * NULL, type inference has already checked this. wide_load and wide_store access an i128 with a
   * memory order. They are for targets on which LLVM would use exchanges instead; NULL means that
   * LLVM's loads and stores are used. */
  bool (*has_wide_atomics)(kl_lowering *l);
  LLVMValueRef (*wide_load)(kl_lowering *l, ki_memory_scope scope, LLVMAtomicOrdering order,
                            LLVMValueRef pointer);
  LLVMValueRef (*wide_store)(kl_lowering *l, ki_memory_scope scope, LLVMAtomicOrdering order,
                             LLVMValueRef pointer, LLVMValueRef value);
  /* Returns whether the target has instructions for bf16 sums and products, and for rounding a
   * float to bf16. NULL means that it has none. */
  bool (*has_brain_arithmetic)(kl_lowering *l);
  /* Returns whether the target has an fma instruction for f16 or bf16. NULL means that it has
   * none. */
  bool (*has_half_fma)(kl_lowering *l, kjit_type type);
  /* Returns whether LLVM's atomicrmw on f16 or bf16 becomes an instruction. NULL means that it
   * never does. */
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
  /* value is one i32 word; wider values are shuffled one word at a time. If width is NULL, it is
   * 32. */
  LLVMValueRef (*shuffle)(kl_lowering *l, ki_shuffle_mode mode, LLVMValueRef mask,
                          LLVMValueRef value, LLVMValueRef lane, LLVMValueRef width);
  /* returns an i1, or an i32 for BALLOT */
  LLVMValueRef (*vote)(kl_lowering *l, ki_vote mode, LLVMValueRef mask, LLVMValueRef predicate);
  LLVMValueRef (*activemask)(kl_lowering *l);
  /* Calls a function of math.def on floats or doubles. result is its LLVM result type; SINCOS
   * returns a struct with two members. */
  LLVMValueRef (*math)(kl_lowering *l, ki_builtin_id id, LLVMValueRef *args, unsigned count,
                       LLVMTypeRef result);
  LLVMValueRef (*rsqrt)(kl_lowering *l, LLVMValueRef x);
  /* Builds an instruction of the target. name is the name of its intrinsic ("prmt"), which can be
   * overloaded on the type of the first operand. If the target or its architecture does not have
   * the instruction, emits no code and returns NULL. */
  LLVMValueRef (*native)(kl_lowering *l, const char *name, uint32_t least_arch, LLVMValueRef *args,
                         unsigned count);
  /* Converts f32 to i32 or u32 with one instruction, which truncates and saturates; NaN gives 0.
   * NULL means that llvm.fpto?i.sat is used. */
  LLVMValueRef (*float_to_i32)(kl_lowering *l, LLVMValueRef x, bool is_unsigned);
  /* Returns whether the target has an instruction that converts a float to u32 or u64 and gives all
   * ones for values out of range. */
  bool (*has_unsigned_conversion)(kl_lowering *l);
  /* Returns the absolute value of an i32 or i64; the minimum is not changed. NULL means that
   * llvm.abs is used. */
  LLVMValueRef (*integer_abs)(kl_lowering *l, LLVMValueRef x);
  /* Maximum total size of the local arrays and variables of all functions on the stack. Code that
   * needs more is rejected. 0 means that there is no limit. */
  uint32_t stack_limit_bytes;
  /* Maximum stack size in bytes for recursion. fiber_recursion_bytes is the limit for kernels that
   * run as fibers, each of which has its own stack. stack_pointer returns the current stack pointer
   * as an i64. */
  uint32_t recursion_bytes, fiber_recursion_bytes;
  LLVMValueRef (*stack_pointer)(kl_lowering *l);
  /* Builds code that sends a printed line to the application: a header (native/support_routines.h)
   * and `count` words. `words` is their address on the stack. has_print_parameter: the kernel has
   * a parameter for printing, KJ_PARAMETER_PRINT. */
  bool has_print_parameter;
  void (*print)(kl_lowering *l, uint64_t header, uint32_t count, LLVMValueRef words);
  /* Builds code with which a thread leaves the kernel, also from within an LLVM function that the
   * kernel calls. The code ends the current basic block. */
  void (*leave_kernel)(kl_lowering *l);
  /* Ends the current basic block for a `return` in the kernel itself. NULL means that a `return`
   * branches to the end of the kernel. */
  void (*return_early)(kl_lowering *l);
  /* Like leave_kernel, for a thread whose launch was interrupted. It can be used at any point of
   * the code. NULL means that leave_kernel is used. */
  void (*leave_interrupted)(kl_lowering *l);
  /* Returns, as an i64, the number of iterations after which a thread fails in a loop that only
   * waits. NULL means that such loops have no limit. */
  LLVMValueRef (*most_turns)(kl_lowering *l);
  /* A poll decrements a budget. It reads the interrupt word only when the budget is used up,
   * because reading the word is slow (poll.c). */
  bool counts_down;
  /* Waits for the matrix products of the warpgroup before a thread leaves. NULL means that the
   * target has no such products. */
  void (*finish_products)(kl_lowering *l);
  /* All failure sites of a function can branch to a common block, because the code of leave_kernel
   * and the thread's position are the same everywhere in an LLVM function. */
  bool shares_failures;
  /* thread_context returns a pointer that describes the thread. An LLVM function has this pointer
   * as its first argument if its instance has may_fail or polls, or if context_has_positions is set
   * and its instance has uses_positions. use_thread_context is called in such a function. */
  bool context_has_positions;
  LLVMValueRef (*thread_context)(kl_lowering *l);
  /* Called after each call of a function that may fail, with the thread context. Emits code by
   * which the caller leaves the kernel if the callee has left it. NULL means that the thread has
   * already ended. */
  void (*leave_after_call)(kl_lowering *l, LLVMValueRef context);
  void (*use_thread_context)(kl_lowering *l, LLVMValueRef context);
  /* sets attributes of the function; may be NULL */
  void (*finish_function)(kl_lowering *l, LLVMValueRef function);
};

#endif
