/* The state of lowering, which translates the typed kernel IR to LLVM IR for all targets, and the
 * representation of values. kl_lower_target contains everything that differs between targets.
 *
 * Representation of values: A scalar is an LLVM value of its register type. The register type is i1
 * for bool, half for f16, i16 (the bits) for bf16, i64 for weak integers, and double for weak
 * floats. A tuple is a first-class struct. An array is a kl_array_value; inside tuples, and as an
 * argument or result of an LLVM function, it is packed into a struct. An i64 expression for which
 * is_narrow is set is computed in 32 bits: kl_lower_expr extends its value to i64, and
 * kl_lower_index32 returns the i32.
 *
 * Lowering inlines functions, so that facts about array arguments remain known in them. Recursive,
 * @noinline and very large functions become LLVM functions. */
#ifndef KJ_LOWER_LOWERING_H
#define KJ_LOWER_LOWERING_H

#include <llvm-c/Core.h>
#include <llvm-c/Target.h>

#include "lower/lower_target.h"
#include "typing/typed.h"

/* ---- values ---- */

/* An object is the memory to which an access belongs. The object of an array argument is 1 + the
 * argument index in the signature. UNKNOWN is memory about which nothing is known. APART is memory
 * that belongs to no argument and through which threads do not communicate between two
 * synchronizations: shared arrays, a thread's own slots and, if the kernel takes no pointer to a
 * local array, memory at pointers. APART + 1 + k stands for memory_scopes[k]. */
enum { KJ_OBJECT_UNKNOWN = 0, KJ_OBJECT_APART = 1 << 30 };

typedef struct kl_array_value {
  kjit_type type;
  /* pointer to element 0, in the address space of the array's memory */
  LLVMValueRef pointer;
  /* i32 (exact) or i64. NULL if the kernel never uses the value. A constant if the stride is 1 or
   * the extent is static. */
  LLVMValueRef extents[KJ_MAX_RANK], strides[KJ_MAX_RANK];
  uint32_t object;
  bool is_whole; /* the array is the argument itself, not a view */
} kl_array_value;

/* The values that lowering has for a variable in one frame. */
typedef struct kl_variable_state {
  /* a scalar or tuple in a register: for lets, loop variables and parameters */
  LLVMValueRef value;
  LLVMValueRef memory; /* the memory that holds a var; for a local array, its element 0 */
  kl_array_value *array;
  LLVMValueRef shadow; /* the variable's memory for a debugger; used only by debug.c */
} kl_variable_state;

/* An activation of an instance. The instance is the kernel, an LLVM function, or an inlined
 * call. */
typedef struct kl_frame kl_frame;
struct kl_frame {
  kl_frame *caller; /* for an inlined call, its caller's frame */
  const kt_instance *instance;
  kl_variable_state *states;         /* indexed by tvar->index */
  LLVMBasicBlockRef leave;           /* the block to which return branches */
  LLVMValueRef result_alloca;        /* memory for the result, or NULL */
  LLVMMetadataRef scope, inlined_at; /* private to debug.c */
};

/* A loop, or a ONCE statement, around the statement that is being lowered. */
typedef struct kl_loop kl_loop;
struct kl_loop {
  kl_loop *outer;
  LLVMBasicBlockRef leave, next; /* the targets of `break` and of `continue`; a ONCE has only
                                  * `leave` */
  bool is_once;
};

/* ---- kernel parameters ---- */

typedef struct kl_planned_parameter {
  kj_parameter parameter; /* the description for the runtime */
  kjit_type type;         /* SCALAR: the type, which can be weak */
  /* Set by begin_kernel: a pointer in the target's global address space, an i32 or i64, or a scalar
   * of its memory type (bool: i8). */
  LLVMValueRef value;
} kl_planned_parameter;

/* How the kernel, and all functions that it calls, use an argument. */
typedef struct kl_argument_use {
  /* Scalars: the kernel's own body reads the value. All other fields are for arrays. */
  bool is_needed;
  bool is_read, is_written, is_atomic;
  /* is_written is set, or a write through a pointer can change the array */
  bool may_write;
  /* the kernel does not write the array's memory, so loads from it are invariant */
  bool is_constant;
  bool extents[KJ_MAX_RANK], strides[KJ_MAX_RANK];
} kl_argument_use;

/* ---- state of one lowering ---- */

/* The position of a shared variable in shared memory. Only memory.c uses this struct. */
struct kl_shared_place {
  const kt_var *var;
  enum { KJ_PLACED_STATIC, KJ_PLACED_FIXED, KJ_PLACED_SIZED, KJ_PLACED_OWN } kind;
  uint64_t offset; /* FIXED */
  uint32_t row;    /* SIZED: index in kj_code.shared_arrays */
  /* SIZED, and OWN if the variable follows a SIZED variable: index in l->parameters */
  size_t offset_parameter;
  size_t extent_parameters; /* SIZED: index of the first extent in l->parameters */
};

struct kl_lowering {
  /* set by the target before it calls kl_lower */
  kt_compilation *c;
  LLVMContextRef context;
  LLVMModuleRef module; /* the LLVM module; its triple and data layout are set */
  LLVMTargetDataRef layout;
  const kl_lower_target *target;
  void *target_state; /* private data of the target */
  /* CPU: if this lowers the unchecked version (kt_compilation.unchecked), the lowering of the
   * checked version, otherwise NULL. Both have the same parameters and tables. */
  kl_lowering *checked;

  /* set by kl_lower */
  LLVMBuilderRef builder;
  const kt_instance *kernel;
  LLVMValueRef function; /* the function that is being built */
  /* The function's first block, which contains only the allocas and a branch to the block in which
   * the code starts. */
  LLVMBasicBlockRef entry;
  uint64_t stack_bytes; /* size of the allocas so far */
  /* the terminator of the entry block, before which allocas are inserted */
  LLVMValueRef alloca_end;
  kl_frame *frame;
  kl_loop *loop;
  KJ_LIST(kl_planned_parameter) parameters;
  kl_argument_use *uses; /* indexed by argument */
  /* dynamic shared memory, set by memory.c; see kj_shared_array */
  /* dynamic_alignment is the alignment of all dynamic shared memory */
  uint32_t fixed_shared_bytes, shared_array_count, dynamic_alignment;
  /* the positions of all shared variables that are used */
  KJ_LIST(struct kl_shared_place) shared_places;
  uint64_t constant_bytes; /* size of the constant arrays so far */
  /* Number of while loops, and of for loops with many iterations, not counting ranges over
   * threads. */
  uint32_t loop_count;
  /* Maximum number of expressions in an unrolled loop, including its inner loops. */
  uint64_t unrolled_size;
  bool has_recursion;    /* some function calls itself */
  bool points_to_local;  /* the kernel takes the address of an element of a local array */
  uint32_t inlined_size; /* number of expressions in inlined calls so far, which is limited */
  /* Number of copies of the current statement that result from the @unroll attributes of all
   * surrounding loops. */
  uint64_t copies;
  uint64_t instruction_count; /* number of instructions so far; each instruction counts once for
                               * each copy */
  /* instances that have become LLVM functions and have no body yet */
  KJ_LIST(const kt_instance *) pending;
  /* indexed by instance id; NULL if the function has not been created yet */
  LLVMValueRef *functions;
  struct kl_call_plan *calls; /* indexed by instance id; used only by lower_call.c */

  /* the state of failing threads, which only check.c uses; targets set failure_record in LLVM
   * functions */
  LLVMValueRef failure_record; /* generic pointer to the kj_failure_record */
  LLVMValueRef failure_writer;
  /* kj_code.failures and failure_texts; freed by kl_end_lowering */
  kj_buffer failures, failure_texts;
  uint32_t failure_count;

  /* For interruptible code: a kj_interrupt_word in the target's global address space, and the
   * number of the launch; NULL if the code does not poll. Only poll.c uses the other fields: the
   * remaining budget, the time at which the word was last read, and the function to which these two
   * values belong. */
  LLVMValueRef interrupt_word, interrupt_number, budget, read_at, budget_function;
  /* Number of surrounding loops that poll, and number of surrounding loops that contain warpgroup
   * products. */
  uint32_t polling_loops, product_loops;
  /* A loop that is lowered twice is being lowered (kl_polled_twice): its short version, which does
   * not poll, or its long version, which polls. */
  bool is_short_version, is_long_version;

  /* The version of a loop that keeps its checks is being lowered. Most threads that run this
   * version will fail (loop.c). */
  bool is_checked_version;
  /* the function to which the following fields belong; used only by check.c */
  LLVMValueRef failure_function;
  /* the block to which failure sites branch, if the target has shares_failures or the function has
   * many sites */
  LLVMBasicBlockRef failure_block;
  LLVMValueRef failure_site, failure_values[2];
  uint32_t failure_places; /* number of failure sites that branch to failure_block */
  /* CPU: the values that the code in failure_block uses. A failure site with other values must not
   * branch to this block */
  struct kl_failing {
    LLVMBasicBlockRef leave;
    LLVMValueRef position[6], rank, context, record;
  } failing;

  /* CPU: in a speculative iteration, the variable that records zero float divisors; the iteration
   * fails later. NULL elsewhere */
  LLVMValueRef bad_divisor;

  /* the state of print, which only lower_print.c uses; targets set print_sink in LLVM functions,
   * like failure_record */
  bool has_print;
  LLVMValueRef print_sink; /* CPU */
  LLVMValueRef print_function;
  kj_buffer prints; /* kj_code.prints; freed by kl_end_lowering */
  uint32_t print_count;
  struct kl_debug *debug; /* used only by debug.c; NULL means that there is no debug information */

  /* metadata for loads and stores */
  LLVMMetadataRef *scopes; /* indexed by argument */
  /* alias scopes of parts of memory that the target itself lays out and that do not overlap */
  KJ_LIST(LLVMMetadataRef) memory_scopes;
  LLVMMetadataRef domain;
  /* alias scope of the current copy of a grid_range's body, and the scopes of all vector_count
   * copies; NULL if there are no copies */
  LLVMMetadataRef iteration_scope, *iteration_scopes;
  /* id of the surrounding loop whose iterations are independent of each other, for the metadata
   * llvm.mem.parallel_loop_access of its accesses; set by the target; NULL if there is no such
   * loop */
  LLVMMetadataRef parallel_loop;
  /* In a grid_range in which a thread processes several elements at once: the loop variable, whose
   * value is base + step; base is a multiple of vector_count. */
  const kt_var *vector_variable;
  LLVMValueRef vector_base; /* i64 */
  uint32_t vector_step, vector_count;
  /* the values of loads at vector_variable, indexed by argument * vector_count + step; NULL if
   * there is no such load */
  LLVMValueRef *vector_loads;

  kj_location location; /* location of the statement that is being lowered */
  /* for asserted facts, used only by asserted_facts.c: start and end address of each array
   * argument, and the function in which these addresses are valid */
  LLVMValueRef *argument_ends, asserted_function;

  LLVMTypeRef i1, i8, i16, i32, i64, f16, f32, f64, void_, pointer;
  /* in LLVM functions: the value that target->thread_context returned in the caller */
  LLVMValueRef thread_context;
  /* in recursive LLVM functions: the lowest address to which the stack may grow, an i64; otherwise
   * NULL */
  LLVMValueRef stack_limit;
};

#endif
