/* Lowering of the typed kernel IR to LLVM IR: the declarations that all targets share. Targets
 * differ only by their kl_lower_target.
 *
 * Values. A scalar is an LLVM value of its register type: i1 for bool, half for f16, i16 (the bits)
 * for bf16, i64 for weak integers, double for weak floats. A tuple is a first-class struct. An
 * array is a kl_array_value; inside tuples, and as an argument or result of an LLVM function, it is
 * packed into a struct. An i64 expression that is_narrow is computed in 32 bits: kl_lower_expr
 * extends its value, kl_lower_index32 returns the i32.
 *
 * Lowering inlines functions as trees, so that the facts about an array argument stay known in
 * them. Recursive, @noinline and very large functions become LLVM functions. */
#ifndef KJ_LOWER_LOWER_H
#define KJ_LOWER_LOWER_H

#include <llvm-c/Core.h>
#include <llvm-c/Target.h>

#include "lower/lower_target.h"
#include "typing/typed.h"

/* ---- values ---- */

/* An object is the memory that an access belongs to: 1 + index of the array argument in the
 * signature, or one of these. UNKNOWN allows no conclusion. APART is memory that is not an
 * argument's and through which threads do not communicate between two synchronizations: shared
 * arrays, a thread's own slots, and memory behind pointers if the kernel takes no pointer to a
 * local array. */
enum { KJ_OBJECT_UNKNOWN = 0, KJ_OBJECT_APART = 1 << 30 }; /* APART + 1 + k: memory_scopes[k] */

typedef struct kl_array_value {
  kjit_type type;
  /* pointer to element 0, in the address space of the array's memory */
  LLVMValueRef pointer;
  /* i32 (exact) or i64; NULL if the kernel never uses the value; constants if unit or static */
  LLVMValueRef extents[KJ_MAX_RANK], strides[KJ_MAX_RANK];
  uint32_t object;
  bool is_whole; /* the array is the argument itself, not a view of it */
} kl_array_value;

/* The values that lowering has for a variable within one frame. */
typedef struct kl_variable_state {
  LLVMValueRef value;  /* a scalar or tuple bound to a register: lets, loop variables, parameters */
  LLVMValueRef memory; /* or the memory that holds a var; for a local array, its element 0 */
  kl_array_value *array;
  LLVMValueRef shadow; /* the copy for a debugger; private to debug.c */
} kl_variable_state;

/* An activation of an instance: the kernel, an LLVM function, or a call that is being inlined. */
typedef struct kl_frame kl_frame;
struct kl_frame {
  kl_frame *caller; /* the calling frame of an inlined call */
  const kt_instance *instance;
  kl_variable_state *states;         /* by tvar->index */
  LLVMBasicBlockRef leave;           /* the block that return branches to */
  LLVMValueRef result_alloca;        /* memory for the result, or NULL */
  LLVMMetadataRef scope, inlined_at; /* private to debug.c */
};

/* A loop (or ONCE) around the statement being lowered. */
typedef struct kl_loop kl_loop;
struct kl_loop {
  kl_loop *outer;
  LLVMBasicBlockRef leave, next; /* targets of break and of continue; ONCE has only leave */
  bool is_once;
};

/* ---- kernel parameters ---- */

typedef struct kl_planned_parameter {
  kj_parameter parameter; /* the description for the runtime */
  kjit_type type;         /* SCALAR: its type, which may be weak */
  /* Set by begin_kernel: a pointer in the target's global address space, an i32 or i64, or a scalar
   * of its memory type (bool: i8). */
  LLVMValueRef value;
} kl_planned_parameter;

/* The uses of an argument by the kernel and all functions that it calls. */
typedef struct kl_argument_use {
  bool is_needed; /* scalars: the kernel's own body reads the value. All others are for arrays. */
  bool is_read, is_written, is_atomic;
  bool is_constant; /* not written, and disjoint from written memory: its loads are invariant */
  bool extents[KJ_MAX_RANK], strides[KJ_MAX_RANK];
} kl_argument_use;

/* ---- one lowering ---- */

/* The position of a shared variable in shared memory; private to memory.c. */
struct kl_shared_place {
  const kt_var *var;
  enum { KJ_PLACED_STATIC, KJ_PLACED_FIXED, KJ_PLACED_SIZED, KJ_PLACED_OWN } kind;
  uint64_t offset;          /* FIXED */
  uint32_t row;             /* SIZED: index in shared_arrays */
  size_t offset_parameter;  /* SIZED, OWN after SIZED: index in l->parameters */
  size_t extent_parameters; /* SIZED: index of the first one in l->parameters */
};

struct kl_lowering {
  /* set by the target before kl_lower */
  kt_compilation *c;
  LLVMContextRef context;
  LLVMModuleRef module; /* with triple and layout */
  LLVMTargetDataRef layout;
  const kl_lower_target *target;
  void *target_state; /* the target's own */
  /* CPU: the lowering of the checked version if this one lowers the unchecked version
   * (kt_compilation.unchecked). Both have the same parameters and tables. Otherwise NULL. */
  kl_lowering *checked;

  /* set by kl_lower */
  LLVMBuilderRef builder;
  const kt_instance *kernel;
  LLVMValueRef function; /* the function that is being built */
  /* Its first block, which has only the allocas and a branch to the block where code starts. */
  LLVMBasicBlockRef entry;
  uint64_t stack_bytes;    /* size of the allocas so far */
  LLVMValueRef alloca_end; /* allocas are inserted before this one: the entry's terminator */
  kl_frame *frame;
  kl_loop *loop;
  KJ_LIST(kl_planned_parameter) parameters;
  kl_argument_use *uses; /* by argument */
  /* dynamic shared memory, by memory.c: see kj_shared_array */
  uint32_t fixed_shared_bytes, shared_array_count, dynamic_alignment; /* the last: of all of it */
  KJ_LIST(struct kl_shared_place) shared_places; /* for all shared variables that are used */
  uint64_t constant_bytes;                       /* size of the constant arrays so far */
  /* Number of while loops and for loops with many iterations, without ranges over threads. */
  uint32_t loop_count;
  /* Maximum number of expressions of one unrolled loop, with its inner loops. */
  uint64_t unrolled_size;
  bool has_recursion;    /* some function calls itself */
  bool points_to_local;  /* the address of an element of a local array is taken */
  uint32_t inlined_size; /* number of expressions inlined so far, which has a limit */
  /* Number of copies that @unroll of all loops around the current statement makes of it. */
  uint64_t copies;
  uint64_t instruction_count; /* instructions so far, each counted once for each copy */
  /* instances that became LLVM functions and have no body yet */
  KJ_LIST(const kt_instance *) pending;
  LLVMValueRef *functions;    /* by instance id; NULL if not made yet */
  struct kl_call_plan *calls; /* by instance id; private to lower_call.c */

  /* of failing threads: check.c's own, but for the record, which targets set in LLVM functions */
  LLVMValueRef failure_record; /* generic pointer to the kj_failure_record */
  LLVMValueRef failure_writer;
  kj_buffer failures; /* kj_code.failures; freed by kl_end_lowering */
  uint32_t failure_count;

  /* For interruptible code: a kj_interrupt_word in the target's global space and the number of the
   * launch; NULL if the code does not poll. Private to poll.c: the rest of the budget, when the
   * word was read, and the function that both belong to. */
  LLVMValueRef interrupt_word, interrupt_number, budget, read_at, budget_function;
  /* Numbers of loops around the current statement that poll, and that have warpgroup products. */
  uint32_t polling_loops, product_loops;
  /* For a loop that is lowered twice: the current version does not poll; it polls. */
  bool is_short_version, is_long_version;

  /* in the version of a loop that keeps its checks, which is for threads that will mostly fail:
   * statement.c */
  bool is_checked_version;
  LLVMValueRef failure_function; /* the one that the next are in; check.c's own */
  /* where what fails in it ends, if the target shares_failures or there are many such places */
  LLVMBasicBlockRef failure_block;
  LLVMValueRef failure_site, failure_values[2];
  uint32_t failure_places; /* that end there */
  /* CPU: what is told and done there is right for failures of these only */
  struct kl_failing {
    LLVMBasicBlockRef leave;
    LLVMValueRef position[6], rank, context, record;
  } failing;

  /* CPU, in an iteration whose float divisors of 0 are noted here and not yet failed for; NULL
   * elsewhere */
  LLVMValueRef bad_divisor;

  /* of lines that are printed: lower_print.c's own, but for the sink, as the record above */
  bool has_print;
  LLVMValueRef print_sink; /* CPU */
  LLVMValueRef print_function;
  kj_buffer prints; /* kj_code.prints; freed by kl_end_lowering */
  uint32_t print_count;
  struct kl_debug *debug; /* debug.c's own; NULL: no debug information */

  /* metadata on loads and stores */
  LLVMMetadataRef *scopes; /* by argument */
  /* of pieces of memory that the target lays out itself, none of which is part of another */
  KJ_LIST(LLVMMetadataRef) memory_scopes;
  LLVMMetadataRef domain;
  /* of the copy of a grid_range's body being made, and of all vector_count copies; NULL: none */
  LLVMMetadataRef iteration_scope, *iteration_scopes;
  /* id of the loop through whose accesses iterations do not meet: llvm.mem.parallel_loop_access;
   * NULL: none. Set by the target */
  LLVMMetadataRef parallel_loop;
  /* in a grid_range that handles several elements a thread: this variable is base + step, and a
   * multiple of `multiple` for step 0 */
  const kt_var *vector_variable;
  LLVMValueRef vector_base; /* i64 */
  uint32_t vector_step, vector_count;

  kj_location location; /* of the statement being lowered */
  /* of facts that are asserted, asserted_facts.c's own: by argument, where it begins and ends; in
   * this function */
  LLVMValueRef *argument_ends, asserted_function;

  LLVMTypeRef i1, i8, i16, i32, i64, f16, f32, f64, void_, pointer;
  /* inside LLVM functions: what target->thread_context made in the caller */
  LLVMValueRef thread_context;
  /* i64; inside recursive LLVM functions: how far down the stack may grow; else NULL */
  LLVMValueRef stack_limit;
};

/* ---- lower_module.c: the whole ---- */

/* Lowers the kernel and everything that it needs into l->module. The caller has set the first group
 * of fields of l; the others are zero. Fails through kt_fail. Call kl_end_lowering afterwards, also
 * after a failure: it frees the builder. */
void kl_lower(kl_lowering *l);
void kl_end_lowering(kl_lowering *l);
/* After the lowering of an unchecked version, for kl_finish_code of the other. */
void kl_give_tables_back(kl_lowering *l);
/* Fills in the fields of c->code that are known at the end of lowering: texts, parameters, stack
 * size.
 */
void kl_finish_code(kl_lowering *l);
/* For begin_kernel: makes the entry block of l->function and the block where code starts. */
void kl_begin_body(kl_lowering *l);
/* lower_call.c: kl_plan_calls decides which instances are inlined, before anything is lowered.
 * kl_lower_pending lowers the bodies of the other instances. */
void kl_plan_calls(kl_lowering *l);
void kl_lower_pending(kl_lowering *l);
bool kl_is_recursive(kl_lowering *l, const kt_instance *instance);
/* Returns the number of bytes of stack that recursion may use. */
uint32_t kl_recursion_bytes(const kl_lowering *l);
bool kl_is_inlined(kl_lowering *l, const kt_instance *instance);
/* abi.c: the func of the request as a C function, in the frame made for it; calls of extern funcs.
 */
void kl_lower_entry(kl_lowering *l);
LLVMValueRef kl_call_extern(kl_lowering *l, const kt_expr *expr);
void kl_enter_kernel(kl_lowering *l);           /* makes the kernel's frame */
void kl_bind_kernel_parameters(kl_lowering *l); /* after begin_kernel */
_Noreturn void kl_lower_unsupported(kl_lowering *l, kj_location location, const char *what);

/* ---- build.c ---- */

/* The LLVM type of a value in register form; for an array, that of its packed form. */
LLVMTypeRef kl_register_type(kl_lowering *l, kjit_type type);
/* The LLVM type of a scalar in memory: i8 for bool, i16 for bf16. */
LLVMTypeRef kl_memory_type(kl_lowering *l, kjit_type type);
uint32_t kl_scalar_bytes(kl_lowering *l, kjit_type type); /* the same: its size */
bool kl_is_float_type(kl_lowering *l, kjit_type type);    /* weak float too */
bool kl_is_signed_type(kl_lowering *l, kjit_type type);   /* weak int too */
bool kl_is_array_type(kl_lowering *l, kjit_type type);
bool kl_is_tuple_type(kl_lowering *l, kjit_type type);
unsigned kl_address_space(kl_lowering *l, ki_space space);
LLVMValueRef kl_pack_array(kl_lowering *l, const kl_array_value *array);
kl_array_value kl_unpack_array(kl_lowering *l, kjit_type type, LLVMValueRef packed);
/* Returns the object (kl_array_value) that the type of an array implies. */
uint32_t kl_object_of_type(kl_lowering *l, kjit_type type);
static inline bool kl_is_argument(uint32_t object)
{
  return object != KJ_OBJECT_UNKNOWN && object < KJ_OBJECT_APART;
}
/* Returns the array of a static type whose element 0 is at the pointer. */
kl_array_value kl_static_array(kl_lowering *l, kjit_type type, LLVMValueRef pointer);
/* Whether the layout implies that the stride is 1. */
bool kl_is_unit_stride(const ki_type_info *info, uint32_t dimension);
/* Convert a value from register to memory type, and back. */
LLVMValueRef kl_to_memory(kl_lowering *l, kjit_type type, LLVMValueRef value);
LLVMValueRef kl_from_memory(kl_lowering *l, kjit_type type, LLVMValueRef value);
/* Convert f16 and bf16 from register form to float for arithmetic, and back, with rounding to
 * nearest even. Other values stay as they are. */
LLVMValueRef kl_to_compute(kl_lowering *l, kjit_type type, LLVMValueRef value);
LLVMValueRef kl_from_compute(kl_lowering *l, kjit_type type, LLVMValueRef value);

/* ---- lower_composed.c: structs, arrays inside structs, vectors, complex numbers, pointers ---- */

/* Whether the type is one of the types of the heading; false for tuples and arrays. */
bool kl_is_composed_type(kl_lowering *l, kjit_type type);
LLVMTypeRef kl_composed_register_type(kl_lowering *l, kjit_type type);
/* as large as the type is in memory; its LLVM alignment says nothing */
LLVMTypeRef kl_composed_memory_type(kl_lowering *l, kjit_type type);
/* Return the alignment in bytes of a value in memory, and of every element of an array, which may
 * be part of a packed struct. */
uint32_t kl_type_alignment(kl_lowering *l, kjit_type type);
uint32_t kl_array_alignment(kl_lowering *l, kjit_type array);
/* Read and replace a part of a value in register form. Parts are the items of tuples and the
 * components of composed types; an array inside a struct has its elements as parts, row-major. */
LLVMValueRef kl_get_part(kl_lowering *l, kjit_type type, LLVMValueRef value, uint32_t index);
LLVMValueRef kl_set_part(kl_lowering *l, kjit_type type, LLVMValueRef value, LLVMValueRef part,
                         uint32_t index);
uint32_t kl_part_count(kl_lowering *l, kjit_type type); /* 0 for tuples */
ki_component kl_get_part_info(kl_lowering *l, kjit_type type, uint32_t index);
/* Loads a value of any type from memory into register form. object: see kl_array_value. */
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

/* ---- build.c: small things on top of the builder ---- */

LLVMValueRef kl_const32(kl_lowering *l, int64_t value);
LLVMValueRef kl_const64(kl_lowering *l, int64_t value);
LLVMValueRef kl_as_i64(kl_lowering *l, LLVMValueRef value); /* sign-extends an i32 */
LLVMValueRef kl_as_i32(kl_lowering *l, LLVMValueRef value); /* truncates an i64 */
/* zero-extends a non-negative i32 to i64 */
LLVMValueRef kl_extend_position(kl_lowering *l, LLVMValueRef value);
LLVMBasicBlockRef kl_new_block(kl_lowering *l, const char *name); /* at the end of l->function */
void kl_move_to(kl_lowering *l, LLVMBasicBlockRef block);
/* the current block has its terminator */
bool kl_is_terminated(kl_lowering *l);
/* Branches to the block, unless terminated, and goes on in it. */
void kl_go_on_in(kl_lowering *l, LLVMBasicBlockRef block);
/* Goes on in the block where the condition holds, in otherwise where not. */
void kl_go_on_if(kl_lowering *l, LLVMValueRef condition, LLVMBasicBlockRef block,
                 LLVMBasicBlockRef otherwise);
void kl_branch(kl_lowering *l, LLVMBasicBlockRef block);                    /* unless terminated */
LLVMValueRef kl_alloca(kl_lowering *l, LLVMTypeRef type, const char *name); /* in the entry block */
/* The same for a local array, which is 0 in guests' code. */
LLVMValueRef kl_alloca_array(kl_lowering *l, LLVMTypeRef type, const char *name,
                             uint32_t alignment);
/* An intrinsic by its full base name with its overload types; "internal error" diagnostic where
 * LLVM does not know it. */
LLVMValueRef kl_intrinsic(kl_lowering *l, const char *name, LLVMTypeRef *overloads,
                          unsigned overload_count, LLVMValueRef *args, unsigned count);
/* overloaded on the type of x */
LLVMValueRef kl_intrinsic1(kl_lowering *l, const char *name, LLVMValueRef x);
LLVMValueRef kl_intrinsic2(kl_lowering *l, const char *name, LLVMValueRef x, LLVMValueRef y);
/* LLVM's number of the target's scope. */
unsigned kl_sync_scope(kl_lowering *l, ki_memory_scope scope);
LLVMValueRef kl_intrinsic3(kl_lowering *l, const char *name, LLVMValueRef x, LLVMValueRef y,
                           LLVMValueRef z);
/* A function of the module. LLVM would silently give it another name if the module had the symbol
 * already, so that calls by name would reach another function. */
LLVMValueRef kl_add_function(kl_lowering *l, const char *symbol, LLVMTypeRef type);
/* A variable of the module for a variable of the kernel. Its symbol is the name with the kind
 * (`shared`, `const`), which no function, no variable of kjit's own and no library function has.
 * LLVM numbers variables of one name. */
LLVMValueRef kl_add_variable(kl_lowering *l, const char *name, const char *kind, LLVMTypeRef type,
                             unsigned space);
void kl_add_attribute(kl_lowering *l, LLVMValueRef function, unsigned index, const char *name,
                      uint64_t value);
/* Of inline assembly: its first operand is the address of a place, is_all: all that it accesses. */
void kl_set_place(kl_lowering *l, LLVMValueRef call, LLVMTypeRef place, bool is_all);
void kl_add_call_attribute(kl_lowering *l, LLVMValueRef call, const char *name);
/* contract, unless @strict; all that @fastmath allows. Returns value. */
LLVMValueRef kl_fast(kl_lowering *l, LLVMValueRef value);
LLVMMetadataRef kl_metadata_string(kl_lowering *l, const char *text);
LLVMMetadataRef kl_metadata_int(kl_lowering *l, int64_t value);
void kl_set_metadata(kl_lowering *l, LLVMValueRef instruction, const char *kind,
                     LLVMMetadataRef metadata);
/* A distinct loop id with these properties; for llvm.loop on the branch back. */
LLVMMetadataRef kl_loop_id(kl_lowering *l, LLVMMetadataRef *properties, unsigned count);
/* Properties of one. */
LLVMMetadataRef kl_flag_property(kl_lowering *l, const char *name, bool value);
LLVMMetadataRef kl_no_unrolling(kl_lowering *l);
/* The id of a loop that is neither unrolled nor vectorized. */
LLVMMetadataRef kl_one_copy_id(kl_lowering *l);

/* ---- expression.c, lower_operators.c, conversion.c, index.c ---- */

/* A scalar or tuple (arrays: packed). NULL for a call without result. */
LLVMValueRef kl_lower_expr(kl_lowering *l, const kt_expr *expr);
kl_array_value kl_lower_array(kl_lowering *l, const kt_expr *expr);
/* An i1: the condition of if, while, ?:. */
LLVMValueRef kl_lower_condition(kl_lowering *l, const kt_expr *expr);
/* True for `and`, `or` and `?:` whose operands are cheap enough for a select, and for every other
 * kind of expression, whatever its operands are. */
bool kl_is_straight(kl_lowering *l, const kt_expr *expr);
/* Returns the value of an integer expression modulo 2^32 as an i32. It is exact if the expression
 * is narrow (is_narrow). */
LLVMValueRef kl_lower_index32(kl_lowering *l, const kt_expr *expr);
/* The same for a 64-bit integer that can be computed without the 64-bit value. Otherwise builds
 * nothing and returns NULL. */
LLVMValueRef kl_try_index32(kl_lowering *l, const kt_expr *expr);
LLVMValueRef kl_lower_exact_index(kl_lowering *l, const kt_expr *index); /* all of an index, i64 */
LLVMValueRef kl_lower_call(kl_lowering *l, const kt_expr *expr);
kl_array_value kl_lower_array_call(kl_lowering *l, const kt_expr *expr);
LLVMValueRef kl_build_binary(kl_lowering *l, kjit_op op, kjit_type type, LLVMValueRef x,
                             LLVMValueRef y, kj_location location);
/* A float to the power of an integer. */
LLVMValueRef kl_build_whole_power(kl_lowering *l, kjit_type type, LLVMValueRef x,
                                  kjit_type exponent_type, LLVMValueRef exponent);
/* jn, or yn, for an order n > KL_LOW_ORDERS: in a time that has a bound, which the functions of the
 * libraries have not. bessel.c */
enum { KL_LOW_ORDERS = 256 };
LLVMValueRef kl_build_high_bessel(kl_lowering *l, bool is_second, LLVMValueRef n, LLVMValueRef x);
LLVMValueRef kl_build_compare(kl_lowering *l, kjit_op op, kjit_type x_type, kjit_type y_type,
                              LLVMValueRef x, LLVMValueRef y);
LLVMValueRef kl_build_convert(kl_lowering *l, kjit_type from, kjit_type to, LLVMValueRef value);
typedef enum kl_rounding { KJ_ROUND_FLOOR, KJ_ROUND_CEIL, KJ_ROUND_TRUNC } kl_rounding;
LLVMValueRef kl_build_divide(kl_lowering *l, bool is_signed, kl_rounding rounding, LLVMValueRef x,
                             LLVMValueRef y);
LLVMValueRef kl_build_remainder(kl_lowering *l, bool is_signed, kl_rounding rounding,
                                LLVMValueRef x, LLVMValueRef y);
/* A scalar from another lane, in 32-bit pieces. */
typedef struct kl_shuffle {
  ki_shuffle_mode mode;
  LLVMValueRef mask, lane, width;
} kl_shuffle;
LLVMValueRef kl_build_shuffle(kl_lowering *l, kjit_type type, const kl_shuffle *shuffle,
                              LLVMValueRef value);
/* Two values in register form as one: what reductions do, ADD to XOR. */
LLVMValueRef kl_build_reduction(kl_lowering *l, ki_combine op, kjit_type type, LLVMValueRef x,
                                LLVMValueRef y);
/* A scalar's bits as an integer of its size, and of at least 32 bits: what lanes compare. */
LLVMValueRef kl_comparable_bits(kl_lowering *l, kjit_type type, LLVMValueRef value);
LLVMValueRef kl_build_minmax(kl_lowering *l, bool is_max, kjit_type type, LLVMValueRef x,
                             LLVMValueRef y);

/* Address of an element. indices.count is the rank. */
LLVMValueRef kl_element_pointer(kl_lowering *l, const kl_array_value *array,
                                const kt_exprs *indices);
/* In the copies of a vectorized grid_range body: an element at the loop variable; its alignment
 * (else the element's size). */
bool kl_is_vector_access(kl_lowering *l, const kl_array_value *array, const kt_exprs *indices);
uint32_t kl_element_alignment(kl_lowering *l, const kl_array_value *array, const kt_exprs *indices);
/* The same where the indices are values, i64 or exact i32. */
LLVMValueRef kl_element_pointer_at(kl_lowering *l, const kl_array_value *array,
                                   LLVMValueRef const *indices, uint32_t count);
kl_array_value kl_lower_view(kl_lowering *l, const kt_expr *view);
LLVMValueRef kl_extent(kl_lowering *l, const kl_array_value *array, uint32_t dimension); /* i64 */
LLVMValueRef kl_stride(kl_lowering *l, const kl_array_value *array, uint32_t dimension); /* i64 */

/* How the check of a node is lowered: not at all, as a check, or, in builds that assert facts (see
 * below), as an assertion that the omitted check would not have failed. */
typedef enum kl_check { KJ_CHECK_NONE, KJ_CHECK_MADE, KJ_CHECK_ASSERTED } kl_check;
kl_check kl_check_of(const kl_lowering *l, bool is_checked, bool is_left_out);
kl_check kl_check_of_expr(const kl_lowering *l, const kt_expr *expr);
/* The same as kl_element_pointer; checked: threads with an index out of bounds fail. */
LLVMValueRef kl_checked_pointer(kl_lowering *l, const kl_array_value *array,
                                const kt_exprs *indices, kl_check check);

/* ---- lower_lanes.c: operators on vectors and complex numbers; complex_math.c ---- */

bool kl_is_vector_type(kl_lowering *l, kjit_type type);
bool kl_is_complex_type(kl_lowering *l, kjit_type type);
/* a lane, a part of a complex number; any other type: itself */
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
/* A built-in on complex numbers. */
LLVMValueRef kl_lower_complex_builtin(kl_lowering *l, const kt_expr *expr);

/* ---- memory.c: what lies where in dynamic shared memory ---- */

/* Called before begin_kernel. static_limit: number of bytes of static arrays that stay in static
 * shared memory. */
void kl_plan_shared(kl_lowering *l, uint64_t static_limit);
/* Whether a KJ_V_SHARED variable lies there. */
bool kl_is_dynamic_shared(kl_lowering *l, const kt_var *var);
/* Its distance from the start of dynamic shared memory, in bytes; i64. */
LLVMValueRef kl_dynamic_offset(kl_lowering *l, const kt_var *var);
/* Returns the array at a pointer with its extents and strides. An array whose size the launch sets
 * gets no extent. */
kl_array_value kl_dynamic_array(kl_lowering *l, const kt_var *var, LLVMValueRef pointer);
/* Number of elements of the array of the launch's own size; i64. */
LLVMValueRef kl_own_extent(kl_lowering *l, uint32_t element_bytes);

/* ---- conversion.c ---- */

/* +, - and * on bf16, vectors too, where the target has instructions for them; NULL, and nothing
 * built: it has none. */
LLVMValueRef kl_try_brain_operation(kl_lowering *l, kjit_op op, LLVMValueRef x, LLVMValueRef y);
LLVMValueRef kl_lower_small_fma(kl_lowering *l, const kt_expr *expr); /* on f16 and bf16 */
/* conversion.c: f64 to f32, for another rounding to follow */
LLVMValueRef kl_round_to_odd(kl_lowering *l, LLVMValueRef x);

/* ---- lower_operators.c: values as integers of 8 bits for each byte they take in memory ---- */

LLVMValueRef kl_value_bits(kl_lowering *l, kjit_type type, LLVMValueRef value);
LLVMValueRef kl_value_of_bits(kl_lowering *l, kjit_type type, LLVMValueRef bits);
/* Such an integer in pieces, i32, the lowest first; a last one that is not full has zeros above. */
uint32_t kl_count_words(LLVMTypeRef type);
LLVMValueRef kl_get_word(kl_lowering *l, LLVMValueRef bits, uint32_t index);
LLVMValueRef kl_join_words(kl_lowering *l, LLVMTypeRef type, LLVMValueRef const *words,
                           uint32_t count);

/* ---- check.c: failing threads ---- */

typedef struct kl_failure {
  kj_failure_kind kind;
  bool is_asserted; /* it is never to happen: KJ_CHECK_ASSERTED */
  kj_location location;
  const char *message; /* or NULL */
  unsigned count;
  kjit_type types[2];
  LLVMValueRef values[2]; /* in register type */
} kl_failure;

/* Kernels that may fail get one parameter more. */
void kl_plan_failures(kl_lowering *l);
/* lower_print.c: those of failures and of print, for the kernel's body */
void kl_bind_hidden_parameters(kl_lowering *l);
/* Reports, leaves the kernel and ends the block. */
void kl_build_failure(kl_lowering *l, const kl_failure *failure);
/* Which way a conditional branch goes nearly always. */
void kl_set_likely(kl_lowering *l, LLVMValueRef branch, bool is_first);
void kl_fail_if(kl_lowering *l, LLVMValueRef condition, const kl_failure *failure);
void kl_lower_fail(kl_lowering *l, const kt_stmt *stmt);
/* value and extent: i64 */
void kl_check_index(kl_lowering *l, kl_check check, const kt_expr *index, LLVMValueRef value,
                    LLVMValueRef extent);
/* All indices of a subscript, in their order. */
void kl_check_indices(kl_lowering *l, kl_check check, const kt_exprs *indices,
                      LLVMValueRef const *values, LLVMValueRef const *extents);
typedef struct kl_checked_slice {
  kj_location location;
  LLVMValueRef first, count, step, extent; /* i64; step NULL: 1 */
} kl_checked_slice;
void kl_check_slice(kl_lowering *l, const kl_checked_slice *slice);
/* x / y of the type; nothing where the node is not checked. */
void kl_check_divisor(kl_lowering *l, const kt_expr *expr, kjit_type type, LLVMValueRef x,
                      LLVMValueRef y);

/* ---- poll.c ---- */

/* There is a failure record: a thread may fail, or be interrupted. */
bool kl_has_record(const kl_lowering *l);
void kl_plan_interrupts(kl_lowering *l);
/* In a loop that polls, where an iteration of that cost ends: a thread whose launch was interrupted
 * fails here. Nothing in the short version of a loop. */
void kl_poll(kl_lowering *l, kj_location location, uint32_t cost);
/* The same while a thread waits for others, in any version. */
void kl_poll_waiting(kl_lowering *l, kj_location location, uint32_t cost);
/* CPU: count the iterations of a loop that only waits. A thread fails if it has waited so long that
 * the thread it waits for cannot be running. */
LLVMValueRef kl_begin_turns(kl_lowering *l);
void kl_count_turn(kl_lowering *l, LLVMValueRef turns, kj_location location);
/* Polls at the start of an LLVM function. */
void kl_poll_entry(kl_lowering *l, const kt_instance *instance);
/* Returns the number of iterations of a loop between two polls. 1 means that each iteration calls
 * kl_poll; 0 means that the loop never polls. */
uint32_t kl_chunk_of(const kl_lowering *l, const kt_stmt *loop);
/* A loop that is lowered twice: a short version, which does not poll, and a long one, which polls.
 * The caller begins the short version, lowers the loop, begins the long version, lowers the loop
 * again, and ends the long version.
 *
 * is_short: an i1 that chooses the short version, for about 2^kl_few_iterations iterations or
 * fewer. spent: the cost of these iterations in expressions, an i32; NULL: kjit estimates it. */
typedef struct kl_polled_twice {
  const kt_stmt *loop;
  LLVMBasicBlockRef is_long, end;
} kl_polled_twice;
bool kl_is_polled_twice(const kl_lowering *l, const kt_stmt *loop);
unsigned kl_few_iterations(const kl_lowering *l, const kt_stmt *loop);
void kl_begin_short(kl_lowering *l, kl_polled_twice *t, LLVMValueRef is_short, LLVMValueRef spent);
/* count: maximum number of iterations. If its computation wraps, the loop has no iterations. */
void kl_begin_short_of(kl_lowering *l, kl_polled_twice *t, LLVMValueRef count);
void kl_begin_long(kl_lowering *l, kl_polled_twice *t);
void kl_end_long(kl_lowering *l, kl_polled_twice *t);
/* A loop over chunks of [first, stop): begin, the loop from .first to .stop, which goes to .end
 * when it has ended there, then in .end end with what .first of the next chunk is. `leave` comes
 * behind all of it. span: of a chunk, in the numbers that are compared. is_signed and other_type
 * (NULL: none), of one more value that goes from chunk to chunk, .other, are set before. Returns
 * the block that the next chunk begins from. */
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

/* ---- asserted_facts.c: what the code relies on, asserted in it; nothing is built where that is
 * off ---- */

bool kl_asserts_facts(const kl_lowering *l);
/* holds: an i1; value: the i64 that is shown where it does not; fact: what should hold, as a
 * sentence: "a value is in 0..9". */
void kl_assert_fact(kl_lowering *l, LLVMValueRef holds, LLVMValueRef value, const char *fact);
/* The place of the statement, for what is asserted of the access later: metadata of this kind. */
#define KJ_PLACE_METADATA "kjit.place"
void kl_note_place(kl_lowering *l, LLVMValueRef access);
/* Of an integer of the type, in register form; an i64 may come as the i32 that it is. */
void kl_assert_range(kl_lowering *l, kt_interval range, kjit_type type, LLVMValueRef value);
/* When the kernel's parameters are bound: how arguments lie to each other, the grid. */
void kl_assert_arguments(kl_lowering *l);
/* Before an access: its alignment, and that it is of the argument. */
void kl_assert_access(kl_lowering *l, LLVMValueRef pointer, uint32_t bytes, uint32_t alignment,
                      uint32_t object);

/* ---- cpu_speculate.c: in iterations with l->bad_divisor ---- */

void kl_note_bad_divisor(kl_lowering *l, LLVMValueRef is_zero);
/* Before a store: the block behind it, where iterations with a bad divisor go on. NULL: in no such
 * iteration. */
LLVMBasicBlockRef kl_skip_if_bad(kl_lowering *l);

/* ---- lower_print.c ---- */

/* Which instances print, and the parameter of those that do. */
bool kl_prints(kt_instance *instance);
void kl_plan_prints(kl_lowering *l);
void kl_lower_print(kl_lowering *l, const kt_stmt *stmt);

/* ---- check.c: CPU only ---- */

bool kl_is_watched(const kl_lowering *l);
void kl_watch_start_of_block(kl_lowering *l);
/* Calls KJ_WATCH_BARRIER_FUNCTION or KJ_WATCH_WARPS_FUNCTION, with the address of one i32 for each
 * thread, or NULL. */
void kl_watch_synchronization(kl_lowering *l, const char *function, LLVMValueRef threads);
/* Before the access of an element, for nodes that are is_watched. how: KJ_WATCH_READ,
 * KJ_WATCH_WRITE, KJ_WATCH_ATOMIC. */
void kl_watch_access_at(kl_lowering *l, kj_location location, const kl_array_value *array,
                        LLVMValueRef pointer, uint32_t how);

/* ---- memory.c: loads and stores with all that is known about them ---- */

/* An element, in register type. */
LLVMValueRef kl_load_element(kl_lowering *l, const kl_array_value *array, LLVMValueRef pointer,
                             uint32_t alignment);
void kl_store_element(kl_lowering *l, const kl_array_value *array, LLVMValueRef pointer,
                      LLVMValueRef value, uint32_t alignment);
/* What a load from an array argument, or from unknown memory, carries. */
void kl_annotate_load(kl_lowering *l, LLVMValueRef load, uint32_t object);
/* alias.scope, noalias, parallel loop; for instructions made elsewhere too. */
void kl_annotate_access(kl_lowering *l, LLVMValueRef instruction, uint32_t object);
/* The same of an atomic, but for the parallel loop: in atomics its iterations meet, and where all
 * accesses carry its id the vectorizer makes plain loads and stores of atomic ones. */
void kl_annotate_atomic(kl_lowering *l, LLVMValueRef instruction, uint32_t object);
/* The value of a variable, and assigning it: registers, memory and slots alike. Scalars and tuples.
 */
LLVMValueRef kl_get_variable(kl_lowering *l, const kt_var *var);
void kl_set_variable(kl_lowering *l, const kt_var *var, LLVMValueRef value);
/* of a narrow variable: the i32 itself */
LLVMValueRef kl_get_variable32(kl_lowering *l, const kt_var *var);
/* Array of a storage variable, parameter or let; binding one. */
kl_array_value kl_get_array(kl_lowering *l, const kt_var *var);
void kl_set_array(kl_lowering *l, const kt_var *var, const kl_array_value *array);
/* Element 0 of a KJ_V_CONST variable: a constant global. */
LLVMValueRef kl_constant_pointer(kl_lowering *l, const kt_var *var);
/* Alias scope domains and scopes: distinct nodes. */
LLVMMetadataRef kl_make_domain(kl_lowering *l, const char *name);
LLVMMetadataRef kl_make_scope(kl_lowering *l, LLVMMetadataRef domain, const char *name);

/* ---- statement.c, statement.c ---- */

void kl_lower_stmts(kl_lowering *l, const kt_stmts *stmts);
void kl_lower_stmt(kl_lowering *l, const kt_stmt *stmt);
void kl_lower_while(kl_lowering *l, const kt_stmt *stmt);
void kl_lower_for(kl_lowering *l, const kt_stmt *stmt);
/* statement.c: FOR, GRID_FOR, BLOCK_FOR, twice where pass/loop_versions.c said so */
void kl_lower_loop(kl_lowering *l, const kt_stmt *loop);

/* A counted loop that the caller fills: for (i = first; i < stop; i += step), step > 0 and i + step
 * may not overflow as an unsigned number of the type. The builder stands in the body after
 * kl_begin_loop and behind the loop after kl_end_loop. properties: of the loop id. */
typedef struct kl_counted_loop {
  kl_loop loop; /* continue goes to next, break to leave */
  LLVMBasicBlockRef header;
  LLVMValueRef counter, step;
  LLVMMetadataRef id;
  const kt_stmt *polled; /* set before: the loop looks in each iteration as this one; NULL: never */
  bool is_signed; /* set before: the counter is, and does not wrap as a signed number either */
} kl_counted_loop;
void kl_begin_loop(kl_lowering *l, kl_counted_loop *loop, LLVMValueRef first, LLVMValueRef stop,
                   LLVMValueRef step, const char *name);
void kl_end_loop(kl_lowering *l, kl_counted_loop *loop);

/* ---- strided_range.c: grid_range and block_range over numbered threads ---- */

/* Visits the elements of stmt's extents that thread `rank` of `count` has (of equal types: i64, or
 * i32 and below 2^31), in any number of dimensions. */
void kl_lower_strided_range(kl_lowering *l, const kt_stmt *stmt, LLVMValueRef rank,
                            LLVMValueRef count);

/* ---- parameter.c, parameter.c ---- */

/* Which extents, strides and pointers the kernel needs, and who writes what: l->uses. */
void kl_find_uses(kl_lowering *l);
/* The same, and l->parameters. */
void kl_plan_parameters(kl_lowering *l);
/* How many bytes they may take, the compiler's own among them, when all are planned. Of the PTX
 * ISA: from PTX 8.1 on sm_70 and later take more. */
enum {
  KJ_SMALL_PARAMETER_BYTES = 4352,
  KJ_LARGE_PARAMETER_BYTES = 32764,
  KJ_LARGE_PARAMETER_PTX = 81
};
void kl_check_parameters(kl_lowering *l);
/* One more parameter behind the others, at a multiple of `alignment`. Returns its offset in bytes.
 */
uint32_t kl_add_parameter(kl_lowering *l, kj_parameter parameter, kjit_type type,
                          uint32_t alignment);

/* ---- built-ins: kl_lower_<lower> of builtins.def ---- */

/* target->native, or NULL. */
LLVMValueRef kl_try_native(kl_lowering *l, const char *name, uint32_t least_arch,
                           LLVMValueRef *args, unsigned count);

typedef LLVMValueRef (*kl_lower_builtin)(kl_lowering *l, const kt_expr *expr);
#define X(id, name, least, most, rule, lower, operation, scope, needs, flags, aliases) \
  LLVMValueRef kl_lower_##lower(kl_lowering *l, const kt_expr *expr);
#include "ir/builtins.def"
#undef X
extern const kl_lower_builtin kl_lower_table[KJ_BUILTIN_COUNT];

#endif
