/* Lowering of the typed kernel IR to LLVM IR: declarations that all targets share. kl_lower_target
 * contains everything that differs between targets.
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
#ifndef KJ_LOWER_LOWER_H
#define KJ_LOWER_LOWER_H

#include <llvm-c/Core.h>
#include <llvm-c/Target.h>

#include "lower/lower_target.h"
#include "typing/typed.h"

/* ---- values ---- */

/* An object is the memory to which an access belongs. An object is identified by 1 + the index of
 * the array argument in the signature, or by one of these values. UNKNOWN is memory about which
 * nothing is known. APART is memory that belongs to no argument and through which threads do not
 * communicate between two synchronizations. This includes shared arrays, a thread's own slots, and,
 * if the kernel takes no pointer to a local array, memory that pointers point to. APART + 1 + k
 * stands for memory_scopes[k]. */
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

/* An activation of an instance: of the kernel, of an LLVM function, or of a call that is
 * inlined. */
typedef struct kl_frame kl_frame;
struct kl_frame {
  kl_frame *caller; /* for an inlined call, the frame of its caller */
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
  LLVMBasicBlockRef leave, next; /* the targets of break and of continue; a ONCE has only leave */
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

/* The position of a shared variable in shared memory. Only memory.c uses it. */
struct kl_shared_place {
  const kt_var *var;
  enum { KJ_PLACED_STATIC, KJ_PLACED_FIXED, KJ_PLACED_SIZED, KJ_PLACED_OWN } kind;
  uint64_t offset; /* FIXED */
  uint32_t row;    /* SIZED: index in shared_arrays */
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
  void *target_state; /* the target's own */
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
  /* Number of copies of the current statement that the @unroll attributes of all surrounding loops
   * create. */
  uint64_t copies;
  uint64_t instruction_count; /* number of instructions so far, each counted once for each copy */
  /* instances that have become LLVM functions and have no body yet */
  KJ_LIST(const kt_instance *) pending;
  /* indexed by instance id; NULL if the function has not been created yet */
  LLVMValueRef *functions;
  struct kl_call_plan *calls; /* indexed by instance id; used only by lower_call.c */

  /* the state of failing threads; only check.c uses it, but targets set failure_record in LLVM
   * functions */
  LLVMValueRef failure_record; /* generic pointer to the kj_failure_record */
  LLVMValueRef failure_writer;
  /* kj_code.failures and failure_texts; freed by kl_end_lowering */
  kj_buffer failures, failure_texts;
  uint32_t failure_count;

  /* For interruptible code: a kj_interrupt_word in the target's global address space, and the
   * number of the launch; NULL if the code does not poll. The other fields are used only by poll.c:
   * the remaining budget, the time at which the word was last read, and the function to which both
   * belong. */
  LLVMValueRef interrupt_word, interrupt_number, budget, read_at, budget_function;
  /* Number of surrounding loops that poll, and number of surrounding loops that contain warpgroup
   * products. */
  uint32_t polling_loops, product_loops;
  /* A loop is lowered twice, and its short version, which does not poll, is being lowered; or its
   * long version, which polls. */
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
  /* CPU: the values that the code in failure_block uses. a failure site with other values must not
   * branch to this block */
  struct kl_failing {
    LLVMBasicBlockRef leave;
    LLVMValueRef position[6], rank, context, record;
  } failing;

  /* CPU: in a speculative iteration, the variable that records zero float divisors; the iteration
   * fails later. NULL elsewhere */
  LLVMValueRef bad_divisor;

  /* the state of print; only lower_print.c uses it, but targets set print_sink in LLVM functions,
   * as they set failure_record */
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
  /* alias scopes of the current copy of a grid_range's body, and of all vector_count copies; NULL
   * if there are no copies */
  LLVMMetadataRef iteration_scope, *iteration_scopes;
  /* id of a loop whose iterations are independent of each other in the following accesses, for
   * llvm.mem.parallel_loop_access; NULL means that there is none; set by the target */
  LLVMMetadataRef parallel_loop;
  /* In a grid_range in which a thread processes several elements at once: the loop variable. Its
   * value is base + step, where base is a multiple of vector_count. */
  const kt_var *vector_variable;
  LLVMValueRef vector_base; /* i64 */
  uint32_t vector_step, vector_count;
  /* the values of loads at vector_variable, indexed by argument * vector_count + step; NULL if
   * there is no such load */
  LLVMValueRef *vector_loads;

  kj_location location; /* location of the statement that is being lowered */
  /* for asserted facts, used only by asserted_facts.c: start and end address of each array
   * argument, and the function in which they are valid */
  LLVMValueRef *argument_ends, asserted_function;

  LLVMTypeRef i1, i8, i16, i32, i64, f16, f32, f64, void_, pointer;
  /* in LLVM functions: the value that target->thread_context returned in the caller */
  LLVMValueRef thread_context;
  /* in recursive LLVM functions: the lowest address to which the stack may grow, an i64; otherwise
   * NULL */
  LLVMValueRef stack_limit;
};

/* ---- lower_module.c: entry points ---- */

/* Lowers the kernel and the functions that it needs into l->module. The caller must have set the
 * first group of fields of l; all other fields must be zero. Reports errors with kt_fail.
 * kl_end_lowering must be called afterwards, also after an error, because it frees the builder. */
void kl_lower(kl_lowering *l);
void kl_end_lowering(kl_lowering *l);
/* Copies the tables of the unchecked version back to the lowering of the checked version. Call it
 * after lowering the unchecked version, and before kl_finish_code for the checked version. */
void kl_give_tables_back(kl_lowering *l);
/* Sets the fields of c->code that are known at the end of lowering: strings, parameters, stack
 * size. */
void kl_finish_code(kl_lowering *l);
/* For begin_kernel: creates the entry block of l->function and the block in which the code
 * starts. */
void kl_begin_body(kl_lowering *l);
/* lower_call.c: kl_plan_calls decides which instances are inlined; call it before anything is
 * lowered. kl_lower_pending lowers the bodies of the other instances. */
void kl_plan_calls(kl_lowering *l);
void kl_lower_pending(kl_lowering *l);
bool kl_is_recursive(kl_lowering *l, const kt_instance *instance);
/* Returns the number of bytes of stack that recursive calls may use. */
uint32_t kl_recursion_bytes(const kl_lowering *l);
bool kl_is_inlined(kl_lowering *l, const kt_instance *instance);
/* abi.c: kl_lower_entry lowers the func of the request as a C function, in a frame that the caller
 * has made. kl_call_extern calls an extern func. */
void kl_lower_entry(kl_lowering *l);
LLVMValueRef kl_call_extern(kl_lowering *l, const kt_expr *expr);
void kl_enter_kernel(kl_lowering *l);           /* makes the kernel's frame */
void kl_bind_kernel_parameters(kl_lowering *l); /* call it after begin_kernel */
_Noreturn void kl_lower_unsupported(kl_lowering *l, kj_location location, const char *what);

/* ---- build.c ---- */

/* Returns the LLVM type of a value in register form. For an array, this is the type of its packed
 * form. */
LLVMTypeRef kl_register_type(kl_lowering *l, kjit_type type);
/* Returns the LLVM type of a scalar in memory: i8 for bool, i16 for bf16. */
LLVMTypeRef kl_memory_type(kl_lowering *l, kjit_type type);
uint32_t kl_scalar_bytes(kl_lowering *l, kjit_type type); /* size of kl_memory_type */
bool kl_is_float_type(kl_lowering *l, kjit_type type);    /* true for weak floats as well */
bool kl_is_signed_type(kl_lowering *l, kjit_type type);   /* true for weak integers as well */
bool kl_is_array_type(kl_lowering *l, kjit_type type);
bool kl_is_tuple_type(kl_lowering *l, kjit_type type);
unsigned kl_address_space(kl_lowering *l, ki_space space);
LLVMValueRef kl_pack_array(kl_lowering *l, const kl_array_value *array);
kl_array_value kl_unpack_array(kl_lowering *l, kjit_type type, LLVMValueRef packed);
/* Returns the object (see kl_array_value) that follows from the type of an array. */
uint32_t kl_object_of_type(kl_lowering *l, kjit_type type);
static inline bool kl_is_argument(uint32_t object)
{
  return object != KJ_OBJECT_UNKNOWN && object < KJ_OBJECT_APART;
}
/* Returns an array of a type with static extents. Its element 0 is at the pointer. */
kl_array_value kl_static_array(kl_lowering *l, kjit_type type, LLVMValueRef pointer);
/* Returns whether the layout of the type implies that this stride is 1. */
bool kl_is_unit_stride(const ki_type_info *info, uint32_t dimension);
/* Convert a value from its register type to its memory type, and back. */
LLVMValueRef kl_to_memory(kl_lowering *l, kjit_type type, LLVMValueRef value);
LLVMValueRef kl_from_memory(kl_lowering *l, kjit_type type, LLVMValueRef value);
/* Convert f16 and bf16 from register form to float for arithmetic, and back, rounding to nearest
 * even. Other values are not changed. */
LLVMValueRef kl_to_compute(kl_lowering *l, kjit_type type, LLVMValueRef value);
LLVMValueRef kl_from_compute(kl_lowering *l, kjit_type type, LLVMValueRef value);

/* ---- lower_composed.c: structs, arrays inside structs, vectors, complex numbers, pointers ---- */

/* Returns whether the type is a struct, an array inside a struct, a vector, a complex number or a
 * pointer. It returns false for tuples and other arrays. */
bool kl_is_composed_type(kl_lowering *l, kjit_type type);
LLVMTypeRef kl_composed_register_type(kl_lowering *l, kjit_type type);
/* its size is that of the type in memory, but its LLVM alignment has no meaning */
LLVMTypeRef kl_composed_memory_type(kl_lowering *l, kjit_type type);
/* Return the alignment in bytes of a value in memory, and of each element of an array, which can be
 * part of a packed struct. */
uint32_t kl_type_alignment(kl_lowering *l, kjit_type type);
uint32_t kl_array_alignment(kl_lowering *l, kjit_type array);
/* Get and replace a component of a value in register form. Components are the items of tuples and
 * the parts of aggregates. The components of an array inside a struct are its elements in row-major
 * order. */
LLVMValueRef kl_get_part(kl_lowering *l, kjit_type type, LLVMValueRef value, uint32_t index);
LLVMValueRef kl_set_part(kl_lowering *l, kjit_type type, LLVMValueRef value, LLVMValueRef part,
                         uint32_t index);
uint32_t kl_part_count(kl_lowering *l, kjit_type type); /* 0 for tuples */
ki_component kl_get_part_info(kl_lowering *l, kjit_type type, uint32_t index);
/* Loads a value of any type from memory in register form. object: see kl_array_value. */
LLVMValueRef kl_load_value(kl_lowering *l, kjit_type type, LLVMValueRef pointer, uint32_t alignment,
                           uint32_t object);
void kl_store_value(kl_lowering *l, kjit_type type, LLVMValueRef pointer, LLVMValueRef value,
                    uint32_t alignment, uint32_t object);
LLVMValueRef kl_byte_pointer(kl_lowering *l, LLVMValueRef pointer, uint32_t offset);
LLVMValueRef kl_lower_tuple(kl_lowering *l, const kt_expr *expr);
LLVMValueRef kl_lower_item(kl_lowering *l, const kt_expr *expr);
LLVMValueRef kl_lower_element(kl_lowering *l, const kt_expr *expr);
LLVMValueRef kl_lower_insert(kl_lowering *l, const kt_expr *expr);
LLVMValueRef kl_lower_address(kl_lowering *l, const kt_expr *expr);
kl_array_value kl_lower_member(kl_lowering *l, const kt_expr *expr);
kl_array_value kl_lower_pointed(kl_lowering *l, const kt_expr *expr);

/* ---- build.c: helpers for the builder ---- */

LLVMValueRef kl_const32(kl_lowering *l, int64_t value);
LLVMValueRef kl_const64(kl_lowering *l, int64_t value);
LLVMValueRef kl_as_i64(kl_lowering *l, LLVMValueRef value); /* sign-extends an i32 */
LLVMValueRef kl_as_i32(kl_lowering *l, LLVMValueRef value); /* truncates an i64 */
/* zero-extends a non-negative i32 to i64 */
LLVMValueRef kl_extend_position(kl_lowering *l, LLVMValueRef value);
LLVMBasicBlockRef kl_new_block(kl_lowering *l, const char *name); /* appended to l->function */
void kl_move_to(kl_lowering *l, LLVMBasicBlockRef block);
/* returns whether the current block has its terminator */
bool kl_is_terminated(kl_lowering *l);
/* Branches to the block, unless the current block is terminated, and moves the builder to it. */
void kl_go_on_in(kl_lowering *l, LLVMBasicBlockRef block);
/* Branches to `block` if the condition is true, and otherwise to `otherwise`. Moves the builder to
 * `block`. */
void kl_go_on_if(kl_lowering *l, LLVMValueRef condition, LLVMBasicBlockRef block,
                 LLVMBasicBlockRef otherwise);
/* does nothing if the current block is terminated */
void kl_branch(kl_lowering *l, LLVMBasicBlockRef block);
/* Allocates stack memory in the entry block. */
LLVMValueRef kl_alloca(kl_lowering *l, LLVMTypeRef type, const char *name);
/* Allocates a local array in the entry block. In untrusted code (guests), the array is initialized
 * to 0. */
LLVMValueRef kl_alloca_array(kl_lowering *l, LLVMTypeRef type, const char *name,
                             uint32_t alignment);
/* Calls an intrinsic, given its full base name and its overload types. Reports an "internal error"
 * if LLVM does not know it. */
LLVMValueRef kl_intrinsic(kl_lowering *l, const char *name, LLVMTypeRef *overloads,
                          unsigned overload_count, LLVMValueRef *args, unsigned count);
/* overloaded on the type of x */
LLVMValueRef kl_intrinsic1(kl_lowering *l, const char *name, LLVMValueRef x);
LLVMValueRef kl_intrinsic2(kl_lowering *l, const char *name, LLVMValueRef x, LLVMValueRef y);
/* Returns LLVM's number for the target's synchronization scope. */
unsigned kl_sync_scope(kl_lowering *l, ki_memory_scope scope);
LLVMValueRef kl_intrinsic3(kl_lowering *l, const char *name, LLVMValueRef x, LLVMValueRef y,
                           LLVMValueRef z);
/* Adds a function to the module. The symbol must be new: LLVM would silently rename the function,
 * and calls by name would reach another function. */
LLVMValueRef kl_add_function(kl_lowering *l, const char *symbol, LLVMTypeRef type);
/* Adds an LLVM variable to the module for a variable of the kernel. Its symbol is the variable's
 * name combined with the kind (`shared`, `const`), so it differs from the symbols of all functions,
 * of kjit's variables and of library functions. LLVM numbers variables that have the same name. */
LLVMValueRef kl_add_variable(kl_lowering *l, const char *name, const char *kind, LLVMTypeRef type,
                             unsigned space);
void kl_add_attribute(kl_lowering *l, LLVMValueRef function, unsigned index, const char *name,
                      uint64_t value);
/* Sets the memory operand of inline assembly: the first operand is the address of a value of this
 * type. If is_all is set, the assembly accesses no other memory. */
void kl_set_place(kl_lowering *l, LLVMValueRef call, LLVMTypeRef place, bool is_all);
void kl_add_call_attribute(kl_lowering *l, LLVMValueRef call, const char *name);
/* Sets LLVM's fast-math flags on the instruction: contraction unless @strict, and all flags for
 * @fastmath. Returns value. */
LLVMValueRef kl_fast(kl_lowering *l, LLVMValueRef value);
LLVMMetadataRef kl_metadata_string(kl_lowering *l, const char *text);
LLVMMetadataRef kl_metadata_int(kl_lowering *l, int64_t value);
void kl_set_metadata(kl_lowering *l, LLVMValueRef instruction, const char *kind,
                     LLVMMetadataRef metadata);
/* Returns a new loop id with these properties, for the llvm.loop metadata of the branch back to the
 * loop's start. */
LLVMMetadataRef kl_loop_id(kl_lowering *l, LLVMMetadataRef *properties, unsigned count);
/* Return properties of a loop. */
LLVMMetadataRef kl_flag_property(kl_lowering *l, const char *name, bool value);
LLVMMetadataRef kl_no_unrolling(kl_lowering *l);
/* Returns the id of a loop that is neither unrolled nor vectorized. */
LLVMMetadataRef kl_one_copy_id(kl_lowering *l);
/* unroll.c: sets how LLVM unrolls a loop. A version of a loop that runs only in order to fail is
 * not unrolled. */
void kl_mark_latch(kl_lowering *l, LLVMValueRef branch, int unroll);
/* Called before a loop is lowered. Multiplies l->copies by the number of copies that unrolling
 * makes of the loop. Returns the old value, which the caller restores. */
uint64_t kl_enter_copies(kl_lowering *l, const kt_stmt *stmt);
/* Returns how a loop is unrolled. Small loops with constant bounds are always unrolled: LLVM's own
 * threshold is lower, and after unrolling the addresses of a tile's rows are constants. */
int kl_unrolling_of(const kl_lowering *l, const kt_stmt *stmt);

/* ---- expression.c, lower_operators.c, conversion.c, index.c ---- */

/* Returns a scalar, a tuple, or an array in packed form. Returns NULL for a call without a
 * result. */
LLVMValueRef kl_lower_expr(kl_lowering *l, const kt_expr *expr);
kl_array_value kl_lower_array(kl_lowering *l, const kt_expr *expr);
/* Returns the condition of if, while or ?: as an i1. */
LLVMValueRef kl_lower_condition(kl_lowering *l, const kt_expr *expr);
/* Returns whether the expression is lowered without branches. This is false only for `and`, `or`
 * and `?:` whose operands are too expensive for a select. */
bool kl_is_straight(kl_lowering *l, const kt_expr *expr);
/* Returns the value of an integer expression modulo 2^32 as an i32. If is_narrow is set for the
 * expression, this is the exact value. */
LLVMValueRef kl_lower_index32(kl_lowering *l, const kt_expr *expr);
/* Like kl_lower_index32 for a 64-bit integer, but only if the i32 can be computed without the
 * 64-bit value. Otherwise emits no code and returns NULL. */
LLVMValueRef kl_try_index32(kl_lowering *l, const kt_expr *expr);
/* the exact index as an i64 */
LLVMValueRef kl_lower_exact_index(kl_lowering *l, const kt_expr *index);
LLVMValueRef kl_lower_call(kl_lowering *l, const kt_expr *expr);
kl_array_value kl_lower_array_call(kl_lowering *l, const kt_expr *expr);
LLVMValueRef kl_build_binary(kl_lowering *l, kjit_op op, kjit_type type, LLVMValueRef x,
                             LLVMValueRef y, kj_location location);
/* Computes a power with a float base and an integer exponent. */
LLVMValueRef kl_build_whole_power(kl_lowering *l, kjit_type type, LLVMValueRef x,
                                  kjit_type exponent_type, LLVMValueRef exponent);
/* bessel.c: computes jn or yn for an order n > KL_LOW_ORDERS in bounded time. The time of the
 * library functions grows with n. */
enum { KL_LOW_ORDERS = 256 };
LLVMValueRef kl_build_high_bessel(kl_lowering *l, bool is_second, LLVMValueRef n, LLVMValueRef x);
LLVMValueRef kl_build_compare(kl_lowering *l, kjit_op op, kjit_type x_type, kjit_type y_type,
                              LLVMValueRef x, LLVMValueRef y);
LLVMValueRef kl_build_convert(kl_lowering *l, kjit_type from, kjit_type to, LLVMValueRef value);
/* Returns whether the function that is being lowered has Numba's rules (`@numba`). */
bool kl_has_numba_rules(const kl_lowering *l);
typedef enum kl_rounding { KJ_ROUND_FLOOR, KJ_ROUND_CEIL, KJ_ROUND_TRUNC } kl_rounding;
LLVMValueRef kl_build_divide(kl_lowering *l, bool is_signed, kl_rounding rounding, LLVMValueRef x,
                             LLVMValueRef y);
LLVMValueRef kl_build_remainder(kl_lowering *l, bool is_signed, kl_rounding rounding,
                                LLVMValueRef x, LLVMValueRef y);
/* A shuffle of a scalar among lanes, one 32-bit word at a time. */
typedef struct kl_shuffle {
  ki_shuffle_mode mode;
  LLVMValueRef mask, lane, width;
} kl_shuffle;
LLVMValueRef kl_build_shuffle(kl_lowering *l, kjit_type type, const kl_shuffle *shuffle,
                              LLVMValueRef value);
/* Combines two values in register form for a reduction. op is one of ADD to XOR. */
LLVMValueRef kl_build_reduction(kl_lowering *l, ki_combine op, kjit_type type, LLVMValueRef x,
                                LLVMValueRef y);
/* Returns the bits of a scalar as an integer of at least 32 bits, so that lanes can compare it. */
LLVMValueRef kl_comparable_bits(kl_lowering *l, kjit_type type, LLVMValueRef value);
LLVMValueRef kl_build_minmax(kl_lowering *l, bool is_max, kjit_type type, LLVMValueRef x,
                             LLVMValueRef y);

/* Returns the address of an element. The array has indices.count dimensions. */
LLVMValueRef kl_element_pointer(kl_lowering *l, const kl_array_value *array,
                                const kt_exprs *indices);
/* kl_is_vector_access returns whether an access in a copy of a vectorized grid_range body is at the
 * loop variable. kl_element_alignment returns the known alignment of the element, or the element's
 * size if nothing is known. */
bool kl_is_vector_access(kl_lowering *l, const kl_array_value *array, const kt_exprs *indices);
uint32_t kl_element_alignment(kl_lowering *l, const kl_array_value *array, const kt_exprs *indices);
/* Returns the address of an element. The indices are given as values, i64 or exact i32. */
LLVMValueRef kl_element_pointer_at(kl_lowering *l, const kl_array_value *array,
                                   LLVMValueRef const *indices, uint32_t count);
kl_array_value kl_lower_view(kl_lowering *l, const kt_expr *view);
LLVMValueRef kl_extent(kl_lowering *l, const kl_array_value *array, uint32_t dimension); /* i64 */
LLVMValueRef kl_stride(kl_lowering *l, const kl_array_value *array, uint32_t dimension); /* i64 */

/* How the check of a node is lowered: omitted, as a run-time check, or as an assertion that the
 * omitted check would not have failed. Assertions exist only in builds that assert facts (see
 * asserted_facts.c). */
typedef enum kl_check { KJ_CHECK_NONE, KJ_CHECK_MADE, KJ_CHECK_ASSERTED } kl_check;
kl_check kl_check_of(const kl_lowering *l, bool is_checked, bool is_left_out);
kl_check kl_check_of_expr(const kl_lowering *l, const kt_expr *expr);
/* Like kl_element_pointer. If the access is checked, a thread with an index out of bounds fails. */
LLVMValueRef kl_checked_pointer(kl_lowering *l, const kl_array_value *array,
                                const kt_exprs *indices, kl_check check);

/* ---- lower_lanes.c: operators on vectors and complex numbers ---- */

bool kl_is_vector_type(kl_lowering *l, kjit_type type);
bool kl_is_complex_type(kl_lowering *l, kjit_type type);
/* Returns the type of a vector's lanes or of a complex number's parts, and any other type
 * unchanged. */
kjit_type kl_part_of(kl_lowering *l, kjit_type type);
LLVMValueRef kl_build_binary_parts(kl_lowering *l, kjit_op op, kjit_type type, LLVMValueRef x,
                                   LLVMValueRef y, kj_location location);
LLVMValueRef kl_build_unary_parts(kl_lowering *l, kjit_op op, kjit_type type, LLVMValueRef x);
LLVMValueRef kl_build_compare_parts(kl_lowering *l, kjit_op op, kjit_type type, LLVMValueRef x,
                                    LLVMValueRef y);
LLVMValueRef kl_build_convert_parts(kl_lowering *l, kjit_type from, kjit_type to,
                                    LLVMValueRef value);
typedef struct kl_complex_value {
  LLVMValueRef real, imaginary; /* floats or doubles */
} kl_complex_value;
kl_complex_value kl_split_complex(kl_lowering *l, LLVMValueRef value);
LLVMValueRef kl_join_complex(kl_lowering *l, kjit_type type, kl_complex_value z);

/* ---- memory.c: layout of dynamic shared memory ---- */

/* Called before begin_kernel. static_limit: number of bytes of static arrays that can be in static
 * shared memory. */
void kl_plan_shared(kl_lowering *l, uint64_t static_limit);
/* Returns whether a KJ_V_SHARED variable is in dynamic shared memory. */
bool kl_is_dynamic_shared(kl_lowering *l, const kt_var *var);
/* Returns the number of an array among the arrays in dynamic shared memory that do not overlap;
 * numbers start at 0. */
size_t kl_dynamic_number(kl_lowering *l, const kt_var *var);
/* Returns the variable's offset in bytes from the start of dynamic shared memory, an i64. */
LLVMValueRef kl_dynamic_offset(kl_lowering *l, const kt_var *var);
/* Returns the array at a pointer with its extents and strides. If the launch determines the array's
 * size, the extent is not set. */
kl_array_value kl_dynamic_array(kl_lowering *l, const kt_var *var, LLVMValueRef pointer);
/* Returns the number of elements, an i64, of the array whose size the launch determines. */
LLVMValueRef kl_own_extent(kl_lowering *l, uint32_t element_bytes);

/* ---- conversion.c ---- */

/* Builds +, - or * on bf16 values or vectors with instructions of the target. If the target has no
 * such instruction, emits no code and returns NULL. */
LLVMValueRef kl_try_brain_operation(kl_lowering *l, kjit_op op, LLVMValueRef x, LLVMValueRef y);
/* Lowers fma for f16 and bf16. */
LLVMValueRef kl_lower_small_fma(kl_lowering *l, const kt_expr *expr);
/* converts f64 to f32 such that the result can be rounded a second time */
LLVMValueRef kl_round_to_odd(kl_lowering *l, LLVMValueRef x);
/* Returns a mantissa m in [1/2, 1), and its exponent e as an i32: x is m * 2^e. The mantissa of 0
 * is 0, and its exponent is 0. Both are undefined for infinities and NaNs. */
LLVMValueRef kl_split_exponent(kl_lowering *l, LLVMValueRef x, LLVMValueRef *exponent);

/* ---- lower_operators.c: values as integers with 8 bits for each byte of their memory form ---- */

LLVMValueRef kl_value_bits(kl_lowering *l, kjit_type type, LLVMValueRef value);
LLVMValueRef kl_value_of_bits(kl_lowering *l, kjit_type type, LLVMValueRef bits);
/* Split such an integer into i32 words, the lowest first, and join the words. The missing high bits
 * of the last word are 0. */
uint32_t kl_count_words(LLVMTypeRef type);
LLVMValueRef kl_get_word(kl_lowering *l, LLVMValueRef bits, uint32_t index);
LLVMValueRef kl_join_words(kl_lowering *l, LLVMTypeRef type, LLVMValueRef const *words,
                           uint32_t count);

/* ---- check.c: failing threads ---- */

typedef struct kl_failure {
  kj_failure_kind kind;
  /* the failure must never happen, because its check was proved; set for KJ_CHECK_ASSERTED */
  bool is_asserted;
  kj_location location;
  const char *message; /* may be NULL */
  unsigned count;
  kjit_type types[2];
  LLVMValueRef values[2]; /* in register type */
} kl_failure;

/* Adds a parameter for the failure record to kernels that can fail. */
void kl_plan_failures(kl_lowering *l);
/* lower_print.c: binds the parameters for failures and for print in the kernel's body */
void kl_bind_hidden_parameters(kl_lowering *l);
/* Builds code that reports the failure and leaves the kernel. It ends the current basic block. */
void kl_build_failure(kl_lowering *l, const kl_failure *failure);
/* Marks the successor to which a conditional branch nearly always goes. */
void kl_set_likely(kl_lowering *l, LLVMValueRef branch, bool is_first);
void kl_fail_if(kl_lowering *l, LLVMValueRef condition, const kl_failure *failure);
void kl_lower_fail(kl_lowering *l, const kt_stmt *stmt);
/* value and extent: i64 */
void kl_check_index(kl_lowering *l, kl_check check, const kt_expr *index, LLVMValueRef value,
                    LLVMValueRef extent);
/* Checks all indices of an access in order. */
void kl_check_indices(kl_lowering *l, kl_check check, const kt_exprs *indices,
                      LLVMValueRef const *values, LLVMValueRef const *extents);
typedef struct kl_checked_slice {
  kj_location location;
  LLVMValueRef first, count, step, extent; /* i64; step NULL means 1 */
} kl_checked_slice;
void kl_check_slice(kl_lowering *l, const kl_checked_slice *slice);
/* Checks the divisor of x / y. Emits no code if the node is not checked. */
void kl_check_divisor(kl_lowering *l, const kt_expr *expr, kjit_type type, LLVMValueRef x,
                      LLVMValueRef y);

/* ---- poll.c ---- */

/* Returns whether there is a failure record, which is needed if a thread can fail or be
 * interrupted. */
bool kl_has_record(const kl_lowering *l);
void kl_plan_interrupts(kl_lowering *l);
/* Polls for interrupts at the end of an iteration whose cost is `cost`; if the launch has been
 * interrupted, the thread leaves here. Emits no code in the short version of a loop. */
void kl_poll(kl_lowering *l, kj_location location, uint32_t cost);
/* Polls, in any version of a loop, while a thread waits for other threads. */
void kl_poll_waiting(kl_lowering *l, kj_location location, uint32_t cost);
/* CPU: count the iterations of a loop that only waits. If a thread has waited for many turns, the
 * thread for which it waits cannot be running, and the waiting thread fails. */
LLVMValueRef kl_begin_turns(kl_lowering *l);
void kl_count_turn(kl_lowering *l, LLVMValueRef turns, kj_location location);
/* Emits a poll for interrupts at the start of an LLVM function. */
void kl_poll_entry(kl_lowering *l, const kt_instance *instance);
/* Returns the number of iterations of a loop between two polls. 1 means that each iteration calls
 * kl_poll, and 0 that the loop never polls. */
uint32_t kl_chunk_of(const kl_lowering *l, const kt_stmt *loop);
/* A loop that is lowered twice: a short version, which does not poll, and a long one, which polls.
 * The caller begins the short version, lowers the loop, begins the long version, lowers the loop
 * again, and ends the long version.
 *
 * is_short is an i1 that selects the short version, for about 2^kl_few_iterations iterations or
 * fewer. spent is the cost of the short version's iterations in expressions, an i32. If spent is
 * NULL, kjit estimates the cost. */
typedef struct kl_polled_twice {
  const kt_stmt *loop;
  LLVMBasicBlockRef is_long, end;
} kl_polled_twice;
bool kl_is_polled_twice(const kl_lowering *l, const kt_stmt *loop);
unsigned kl_few_iterations(const kl_lowering *l, const kt_stmt *loop);
void kl_begin_short(kl_lowering *l, kl_polled_twice *t, LLVMValueRef is_short, LLVMValueRef spent);
/* count is the maximum number of iterations. The computation of count may overflow only if the loop
 * has no iterations. */
void kl_begin_short_of(kl_lowering *l, kl_polled_twice *t, LLVMValueRef count);
void kl_begin_long(kl_lowering *l, kl_polled_twice *t);
void kl_end_long(kl_lowering *l, kl_polled_twice *t);
/* A loop over chunks of the range [first, stop). Call kl_begin_chunks. Then build a loop that runs
 * from .first to .stop and branches to .end when it is done. Finally call kl_end_chunks in .end
 * with the .first of the next chunk. `leave` is the block after all chunks. span is the size of a
 * chunk in units of the counter. The caller must set is_signed and other_type before the first
 * call. other_type is the type of .other, another value that is passed from chunk to chunk; NULL
 * means that there is no such value. kl_end_chunks returns the block from which the next chunk
 * begins. */
typedef struct kl_chunks {
  bool is_signed;
  LLVMTypeRef other_type;
  LLVMBasicBlockRef head, end, leave;
  LLVMValueRef first, stop, all, other;
} kl_chunks;
void kl_begin_chunks(kl_lowering *l, kl_chunks *chunks, LLVMValueRef first, LLVMValueRef stop,
                     uint64_t span, LLVMBasicBlockRef leave);
LLVMBasicBlockRef kl_end_chunks(kl_lowering *l, kl_chunks *chunks, LLVMValueRef at,
                                kj_location location);

/* ---- asserted_facts.c: assertions of the facts that the code relies on ---- These functions emit
 * no code if assertions are off. */

bool kl_asserts_facts(const kl_lowering *l);
/* Asserts a fact. holds is an i1. value is an i64 that the error message shows if the fact does not
 * hold. fact is a clause such as "a value is in 0..9". */
void kl_assert_fact(kl_lowering *l, LLVMValueRef holds, LLVMValueRef value, const char *fact);
/* Attaches the location of the statement to the access as metadata, for assertions that are added
 * later. */
#define KJ_PLACE_METADATA "kjit.place"
void kl_note_place(kl_lowering *l, LLVMValueRef access);
/* Asserts the range of an integer in register form. An i64 value can be passed as an i32. */
void kl_assert_range(kl_lowering *l, kt_interval range, kjit_type type, LLVMValueRef value);
/* Asserts the relations between arguments and the grid. Call it after the kernel's parameters are
 * bound. */
void kl_assert_arguments(kl_lowering *l);
/* Asserts the alignment of an access, and that the access is inside of the argument. Call it before
 * the access. */
void kl_assert_access(kl_lowering *l, LLVMValueRef pointer, uint32_t bytes, uint32_t alignment,
                      uint32_t object);

/* ---- cpu_speculate.c: in iterations with l->bad_divisor ---- */

void kl_note_bad_divisor(kl_lowering *l, LLVMValueRef is_zero);
/* Call this before a store. In an iteration with a zero divisor, the generated code skips the store
 * and continues in the returned block. NULL means that the current code is not part of a
 * speculative iteration. */
LLVMBasicBlockRef kl_skip_if_bad(kl_lowering *l);

/* ---- lower_print.c ---- */

/* kl_prints returns whether an instance prints. kl_plan_prints adds the parameter that print
 * needs. */
bool kl_prints(kt_instance *instance);
void kl_plan_prints(kl_lowering *l);
void kl_lower_print(kl_lowering *l, const kt_stmt *stmt);

/* ---- check.c: CPU only ---- */

bool kl_is_watched(const kl_lowering *l);
void kl_watch_start_of_block(kl_lowering *l);
/* Calls KJ_WATCH_BARRIER_FUNCTION or KJ_WATCH_WARPS_FUNCTION. threads is the address of an i32 for
 * each thread, or NULL. */
void kl_watch_synchronization(kl_lowering *l, const char *function, LLVMValueRef threads);
/* Monitors an access to an element, for nodes with is_watched. Call it before the access. how:
 * KJ_WATCH_READ, KJ_WATCH_WRITE or KJ_WATCH_ATOMIC. */
void kl_watch_access_at(kl_lowering *l, kj_location location, const kl_array_value *array,
                        LLVMValueRef pointer, uint32_t how);

/* ---- memory.c: loads and stores with their metadata ---- */

/* Load and store an element in register form. */
LLVMValueRef kl_load_element(kl_lowering *l, const kl_array_value *array, LLVMValueRef pointer,
                             uint32_t alignment);
void kl_store_element(kl_lowering *l, const kl_array_value *array, LLVMValueRef pointer,
                      LLVMValueRef value, uint32_t alignment);
/* Adds metadata to a load from an array argument or from unknown memory. */
void kl_annotate_load(kl_lowering *l, LLVMValueRef load, uint32_t object);
/* Adds alias.scope, noalias and parallel loop metadata to an instruction, which can have been built
 * elsewhere. */
void kl_annotate_access(kl_lowering *l, LLVMValueRef instruction, uint32_t object);
/* Adds the same metadata to an atomic, except for the parallel loop, because iterations depend on
 * each other through atomics. If all accesses of a loop had the id of the loop, the vectorizer
 * would replace atomic accesses by plain ones. */
void kl_annotate_atomic(kl_lowering *l, LLVMValueRef instruction, uint32_t object);
/* Get and set the value of a variable, which is a scalar or tuple in a register, in memory or in a
 * slot. */
LLVMValueRef kl_get_variable(kl_lowering *l, const kt_var *var);
void kl_set_variable(kl_lowering *l, const kt_var *var, LLVMValueRef value);
/* for a narrow variable: the i32 itself */
LLVMValueRef kl_get_variable32(kl_lowering *l, const kt_var *var);
/* kl_get_array returns the array of a storage variable, a parameter or a let. The other function
 * binds an array to a variable. */
kl_array_value kl_get_array(kl_lowering *l, const kt_var *var);
void kl_set_array(kl_lowering *l, const kt_var *var, const kl_array_value *array);
/* Returns the address of element 0 of a KJ_V_CONST variable, which is a constant global
 * variable. */
LLVMValueRef kl_constant_pointer(kl_lowering *l, const kt_var *var);
/* Return a new alias scope domain, and a new scope. Both are distinct nodes. */
LLVMMetadataRef kl_make_domain(kl_lowering *l, const char *name);
LLVMMetadataRef kl_make_scope(kl_lowering *l, LLVMMetadataRef domain, const char *name);

/* ---- statement.c, loop.c ---- */

void kl_lower_stmts(kl_lowering *l, const kt_stmts *stmts);
/* Lowers a STORE whose value is already lowered. */
void kl_lower_store_of(kl_lowering *l, const kt_stmt *stmt, LLVMValueRef value);
void kl_lower_stmt(kl_lowering *l, const kt_stmt *stmt);
void kl_lower_while(kl_lowering *l, const kt_stmt *stmt);
void kl_lower_for(kl_lowering *l, const kt_stmt *stmt);
/* Lowers a FOR, GRID_FOR or BLOCK_FOR statement, in two versions if pass/loop_versions.c has
 * decided so. */
void kl_lower_loop(kl_lowering *l, const kt_stmt *loop);

/* A counted loop, whose body the caller builds: for (i = first; i < stop; i += step). step must be
 * positive, and i + step must not overflow as an unsigned number. kl_begin_loop moves the builder
 * into the body; kl_end_loop moves it after the loop. `id` holds the properties of the loop. */
typedef struct kl_counted_loop {
  kl_loop loop; /* continue branches to next, and break to leave */
  LLVMBasicBlockRef header;
  LLVMValueRef counter, step;
  LLVMMetadataRef id;
  /* set by the caller: the statement whose polls the loop makes in each iteration; NULL means that
   * it never polls */
  const kt_stmt *polled;
  /* set by the caller: the counter is signed and does not overflow as a signed number either */
  bool is_signed;
} kl_counted_loop;
void kl_begin_loop(kl_lowering *l, kl_counted_loop *loop, LLVMValueRef first, LLVMValueRef stop,
                   LLVMValueRef step, const char *name);
void kl_end_loop(kl_lowering *l, kl_counted_loop *loop);

/* ---- grouping.c ---- */

/* How a thread processes adjacent elements of a range at once. */
typedef struct kl_grouping {
  uint32_t count; /* number of elements in a group; 1 means that the loop is not vectorized */
  bool is_reduction, has_branches;
  const kt_expr **loads; /* for each argument, the load at the loop variable */
  size_t load_count;
} kl_grouping;
kl_grouping kl_choose_grouping(kl_lowering *l, const kt_stmt *stmt);

/* ---- strided_range.c: grid_range and block_range over numbered threads ---- */

/* Visits those elements in stmt's extents that belong to thread `rank` of `count` threads, in any
 * number of dimensions. rank and count have the same type: i64, or i32 if they are below 2^31. */
void kl_lower_strided_range(kl_lowering *l, const kt_stmt *stmt, LLVMValueRef rank,
                            LLVMValueRef count);

/* ---- parameter.c ---- */

/* Sets l->uses: the extents, strides and pointers that the kernel needs, and the arguments that it
 * writes. */
void kl_find_uses(kl_lowering *l);
/* Sets l->uses and l->parameters. */
void kl_plan_parameters(kl_lowering *l);
/* Maximum size in bytes of all parameters, including those that the compiler adds. The PTX ISA has
 * the larger limit since PTX 8.1 for sm_70 and later. kl_check_parameters checks the size when all
 * parameters are planned. */
enum {
  KJ_SMALL_PARAMETER_BYTES = 4352,
  KJ_LARGE_PARAMETER_BYTES = 32764,
  KJ_LARGE_PARAMETER_PTX = 81
};
void kl_check_parameters(kl_lowering *l);
/* Appends a parameter with the given alignment. Returns the offset of the parameter in bytes. */
uint32_t kl_add_parameter(kl_lowering *l, kj_parameter parameter, kjit_type type,
                          uint32_t alignment);

/* ---- built-ins: kl_lower_<lower> of builtins.def ---- */

/* Calls target->native. Returns NULL if the target does not have this function. */
LLVMValueRef kl_try_native(kl_lowering *l, const char *name, uint32_t least_arch,
                           LLVMValueRef *args, unsigned count);

typedef LLVMValueRef (*kl_lower_builtin)(kl_lowering *l, const kt_expr *expr);
#define X(id, name, least, most, rule, lower, operation, scope, needs, flags, aliases) \
  LLVMValueRef kl_lower_##lower(kl_lowering *l, const kt_expr *expr);
#include "ir/builtins.def"
#undef X
extern const kl_lower_builtin kl_lower_table[KJ_BUILTIN_COUNT];

#endif
