/* Lowering: the typed kernel IR to LLVM IR. What the targets share is here; where they differ, they
 * say so through kj_lower_target.
 *
 * Values. A scalar is an LLVM value of its register type: i1 for bool, half for f16, i16 (the bits)
 * for bf16, i64 for weak integers, double for weak floats. A tuple is a first-class struct. An
 * array is a kj_array_value; inside tuples and across functions that stay functions it is packed
 * into a struct. Expressions of type i64 that are is_narrow are computed in 32 bits: kj_lower_expr
 * extends them, kj_lower_index32 hands them out as they are.
 *
 * Functions are inlined here, as trees, so that what is known about an array argument stays known;
 * recursive, @noinline and very large ones become LLVM functions. */
#ifndef KJ_LOWER_LOWER_H
#define KJ_LOWER_LOWER_H

#include <llvm-c/Core.h>
#include <llvm-c/Target.h>

#include "lower/lower_target.h"
#include "typing/typed.h"

/* ---- values ---- */

/* What memory an access is in: 1 + index of the array argument in the signature, or one of these.
 * UNKNOWN: nothing may be concluded. APART: in no particular argument, but in memory through which
 * threads do not meet between two synchronizations: shared arrays, a thread's own slots, and what
 * pointers lead to where no pointer to a local array is made. */
enum { KJ_OBJECT_UNKNOWN = 0, KJ_OBJECT_APART = 1 << 30 }; /* APART + 1 + k: memory_scopes[k] */

typedef struct kj_array_value {
  kjit_type type;
  /* to element 0, in the address space of its memory */
  LLVMValueRef pointer;
  /* i32 (exact) or i64; NULL: the kernel never asks for it. Unit and static ones are constants */
  LLVMValueRef extents[KJ_MAX_RANK], strides[KJ_MAX_RANK];
  uint32_t object;
  bool is_whole; /* it is that argument itself */
} kj_array_value;

/* What lowering knows of a variable within one frame. */
typedef struct kj_variable_state {
  LLVMValueRef value; /* a scalar or tuple bound to a register: lets, loop variables, parameters */
  LLVMValueRef slot;  /* or the memory that holds it: vars; local arrays: element 0 */
  kj_array_value *array;
  LLVMValueRef shadow; /* what a debugger is shown: debug.c's own */
} kj_variable_state;

/* An activation of an instance: the kernel, an LLVM function, or a call that is being inlined. */
typedef struct kj_frame kj_frame;
struct kj_frame {
  kj_frame *caller; /* of an inlined call */
  const kj_instance *instance;
  kj_variable_state *states;         /* by tvar->index */
  LLVMBasicBlockRef leave;           /* where return goes */
  LLVMValueRef result_slot;          /* memory for the result; NULL: none */
  LLVMMetadataRef scope, inlined_at; /* debug.c's own */
};

/* A loop (or ONCE) around the statement being lowered. */
typedef struct kj_loop kj_loop;
struct kj_loop {
  kj_loop *outer;
  LLVMBasicBlockRef leave, next; /* of break; of continue. ONCE: leave only */
  bool is_once;
};

/* ---- kernel parameters ---- */

typedef struct kj_planned_parameter {
  kj_parameter parameter; /* as handed to the runtime */
  kjit_type type;         /* SCALAR: its type, may be weak */
  /* set by begin_kernel: a pointer in the target's global address space; i32 or i64; a scalar of
   * its memory type (bool: i8) */
  LLVMValueRef value;
} kj_planned_parameter;

/* What the kernel and all that it calls do with an argument. */
typedef struct kj_argument_use {
  bool is_needed; /* a scalar: the kernel's own body reads it. Arrays: */
  bool is_read, is_written, is_atomic;
  bool is_constant; /* never written, and disjoint from all that is: its loads are invariant */
  bool extents[KJ_MAX_RANK], strides[KJ_MAX_RANK];
} kj_argument_use;

/* ---- one lowering ---- */

/* memory.c's own */
struct kj_shared_place {
  const kj_tvar *var;
  enum { KJ_PLACED_STATIC, KJ_PLACED_FIXED, KJ_PLACED_SIZED, KJ_PLACED_OWN } kind;
  uint64_t offset;          /* FIXED */
  uint32_t row;             /* SIZED: in shared_arrays */
  size_t offset_parameter;  /* SIZED, OWN behind SIZED: index in l->parameters */
  size_t extent_parameters; /* SIZED: of the first */
};

struct kj_lowering {
  /* set by the target before kj_lower */
  kj_compilation *c;
  LLVMContextRef context;
  LLVMModuleRef module; /* with triple and layout */
  LLVMTargetDataRef layout;
  const kj_lower_target *target;
  void *target_state; /* the target's own */
  /* CPU: the lowering that this one is the fast version for (kj_compilation.fast): the same
   * parameters, the same tables. NULL: none */
  kj_lowering *like;

  /* set by kj_lower */
  LLVMBuilderRef builder;
  const kj_instance *kernel;
  LLVMValueRef function; /* being filled */
  /* its first block: allocas go to its start. Code starts in another one that it falls into */
  LLVMBasicBlockRef entry;
  LLVMValueRef alloca_end; /* allocas are inserted before this one: the entry's terminator */
  kj_frame *frame;
  kj_loop *loop;
  KJ_LIST(kj_planned_parameter) parameters;
  kj_argument_use *uses; /* by argument */
  /* dynamic shared memory, by memory.c: see kj_shared_array */
  uint32_t fixed_shared_bytes, shared_array_count, dynamic_alignment; /* the last: of all of it */
  KJ_LIST(struct kj_shared_place) shared_places; /* of all shared variables that are used */
  uint64_t constant_bytes;                       /* of constant arrays so far */
  /* while, or for with many iterations; ranges over threads do not count */
  bool has_loops;
  bool has_recursion;    /* a function that calls itself */
  bool points_to_local;  /* the address of an element of a local array is taken */
  uint32_t inlined_size; /* expressions inlined so far, against a bound */
  /* what @unroll makes of the statements here, all loops around them together; 0 counts as 1 */
  uint64_t copies;
  /* instances that became LLVM functions and have no body yet */
  KJ_LIST(const kj_instance *) pending;
  LLVMValueRef *functions;    /* by instance id; NULL: none yet */
  struct kj_call_plan *calls; /* by instance id; call.c's own */

  /* of failing threads: check.c's own, but for the record, which targets set in LLVM functions */
  LLVMValueRef failure_record; /* generic pointer to the kj_failure_record */
  LLVMValueRef failure_writer;
  kj_buffer failures; /* kj_code.failures; freed by kj_end_lowering */
  uint32_t failure_count;

  /* in the version of a loop that keeps its checks, which is for threads that will mostly fail:
   * statement.c */
  bool is_checked_version;
  LLVMValueRef failure_function; /* the one that the next are in; check.c's own */
  /* where all that fails in it ends, if the target shares_failures */
  LLVMBasicBlockRef failure_block;
  LLVMValueRef failure_site, failure_values[2];

  /* CPU, in an iteration whose float divisors of 0 are noted here and not yet failed for; NULL
   * elsewhere */
  LLVMValueRef bad_divisor;

  /* of lines that are printed: lower_print.c's own, but for the sink, as the record above */
  bool has_print;
  LLVMValueRef print_sink; /* CPU */
  LLVMValueRef print_function;
  kj_buffer prints; /* kj_code.prints; freed by kj_end_lowering */
  uint32_t print_count;
  struct kj_debug *debug; /* debug.c's own; NULL: no debug information */

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
  const kj_tvar *vector_variable;
  LLVMValueRef vector_base; /* i64 */
  uint32_t vector_step, vector_count;

  kj_location location; /* of the statement being lowered */
  /* of facts that are asserted, facts.c's own: by argument, where it begins and ends; in this
   * function */
  LLVMValueRef *argument_ends, asserted_function;

  LLVMTypeRef i1, i8, i16, i32, i64, f16, f32, f64, void_, pointer;
  /* inside LLVM functions: what target->thread_context made in the caller */
  LLVMValueRef thread_context;
  /* i64; inside recursive LLVM functions: how far down the stack may grow; else NULL */
  LLVMValueRef stack_limit;
};

/* ---- lower_module.c: the whole ---- */

/* The kernel and what it needs, into l->module. l's first group of fields is set, the rest is zero.
 * Fails through kj_fail. Call kj_end_lowering afterwards, on failure too: it frees the builder. */
void kj_lower(kj_lowering *l);
void kj_end_lowering(kj_lowering *l);
/* After the lowering of a fast version, for kj_finish_code of the other. */
void kj_give_tables_back(kj_lowering *l);
/* What of c->code is known when all is lowered: its texts, the parameters, the size of the stack.
 */
void kj_finish_code(kj_lowering *l);
/* For begin_kernel: makes the entry block of l->function and the block that code starts in. */
void kj_begin_body(kj_lowering *l);
/* call.c: which instances are inlined (before anything is lowered), and the bodies of those that
 * were not. */
void kj_plan_calls(kj_lowering *l);
void kj_lower_pending(kj_lowering *l);
bool kj_is_recursive(kj_lowering *l, const kj_instance *instance);
bool kj_is_inlined(kj_lowering *l, const kj_instance *instance);
/* abi.c: the func of the request as a C function, in the frame made for it; calls of extern funcs.
 */
void kj_lower_entry(kj_lowering *l);
LLVMValueRef kj_call_extern(kj_lowering *l, const kj_texpr *expr);
void kj_enter_kernel(kj_lowering *l);           /* makes the kernel's frame */
void kj_bind_kernel_parameters(kj_lowering *l); /* after begin_kernel */
_Noreturn void kj_lower_unsupported(kj_lowering *l, kj_location location, const char *what);

/* ---- build.c ---- */

/* all but arrays' own: those are packed */
LLVMTypeRef kj_register_type(kj_lowering *l, kjit_type type);
/* what lies in memory: bool is i8, bf16 i16 */
LLVMTypeRef kj_memory_type(kj_lowering *l, kjit_type type);
uint32_t kj_scalar_bytes(kj_lowering *l, kjit_type type); /* the same: its size */
bool kj_is_float_type(kj_lowering *l, kjit_type type);    /* weak float too */
bool kj_is_signed_type(kj_lowering *l, kjit_type type);   /* weak int too */
bool kj_is_array_type(kj_lowering *l, kjit_type type);
bool kj_is_tuple_type(kj_lowering *l, kjit_type type);
unsigned kj_address_space(kj_lowering *l, kj_space space);
LLVMValueRef kj_pack_array(kj_lowering *l, const kj_array_value *array);
kj_array_value kj_unpack_array(kj_lowering *l, kjit_type type, LLVMValueRef packed);
/* object, as far as the type of an array says it. */
uint32_t kj_object_of_type(kj_lowering *l, kjit_type type);
static inline bool kj_is_argument(uint32_t object)
{
  return object != KJ_OBJECT_UNKNOWN && object < KJ_OBJECT_APART;
}
/* Of a static type, at element 0. */
kj_array_value kj_static_array(kj_lowering *l, kjit_type type, LLVMValueRef pointer);
/* known from the layout */
bool kj_is_unit_stride(const kj_type_info *info, uint32_t dimension);
/* register to memory type */
LLVMValueRef kj_to_memory(kj_lowering *l, kjit_type type, LLVMValueRef value);
LLVMValueRef kj_from_memory(kj_lowering *l, kjit_type type, LLVMValueRef value);
/* Undoes the register type of bf16 and f16 for arithmetic: a float; anything else as it is. And
 * back, rounding to nearest even. */
LLVMValueRef kj_to_compute(kj_lowering *l, kjit_type type, LLVMValueRef value);
LLVMValueRef kj_from_compute(kj_lowering *l, kjit_type type, LLVMValueRef value);

/* ---- lower_composed.c: structs, arrays inside structs, vectors, complex numbers, pointers ---- */

/* One of those; false for tuples and arrays. */
bool kj_is_composed_type(kj_lowering *l, kjit_type type);
LLVMTypeRef kj_composed_register_type(kj_lowering *l, kjit_type type);
/* as large as the type is in memory; its LLVM alignment says nothing */
LLVMTypeRef kj_composed_memory_type(kj_lowering *l, kjit_type type);
/* In bytes: of a value in memory; of every element of an array, which may be part of a packed
 * struct. */
uint32_t kj_type_alignment(kj_lowering *l, kjit_type type);
uint32_t kj_array_alignment(kj_lowering *l, kjit_type array);
/* A part of a value in register form: of tuples, and of composed types (components; elements of
 * arrays inside structs, row-major). */
LLVMValueRef kj_get_part(kj_lowering *l, kjit_type type, LLVMValueRef value, uint32_t index);
LLVMValueRef kj_set_part(kj_lowering *l, kjit_type type, LLVMValueRef value, LLVMValueRef part,
                         uint32_t index);
uint32_t kj_part_count(kj_lowering *l, kjit_type type); /* 0 for tuples */
kj_component kj_get_part_info(kj_lowering *l, kjit_type type, uint32_t index);
/* A value of any type that lies in memory, in register form; object as in kj_array_value. */
LLVMValueRef kj_load_value(kj_lowering *l, kjit_type type, LLVMValueRef pointer, uint32_t alignment,
                           uint32_t object);
void kj_store_value(kj_lowering *l, kjit_type type, LLVMValueRef pointer, LLVMValueRef value,
                    uint32_t alignment, uint32_t object);
LLVMValueRef kj_byte_pointer(kj_lowering *l, LLVMValueRef pointer, uint32_t offset);
LLVMValueRef kj_lower_tuple(kj_lowering *l, const kj_texpr *expr);
LLVMValueRef kj_lower_item(kj_lowering *l, const kj_texpr *expr);
LLVMValueRef kj_lower_element(kj_lowering *l, const kj_texpr *expr);
LLVMValueRef kj_lower_insert(kj_lowering *l, const kj_texpr *expr);
LLVMValueRef kj_lower_address(kj_lowering *l, const kj_texpr *expr);
kj_array_value kj_lower_member(kj_lowering *l, const kj_texpr *expr);
kj_array_value kj_lower_pointed(kj_lowering *l, const kj_texpr *expr);

/* ---- build.c: small things on top of the builder ---- */

LLVMValueRef kj_const32(kj_lowering *l, int64_t value);
LLVMValueRef kj_const64(kj_lowering *l, int64_t value);
LLVMValueRef kj_as_i64(kj_lowering *l, LLVMValueRef value); /* sign-extends an i32 */
LLVMValueRef kj_as_i32(kj_lowering *l, LLVMValueRef value); /* truncates an i64 */
/* zero-extends a non-negative i32 to i64 */
LLVMValueRef kj_extend_position(kj_lowering *l, LLVMValueRef value);
LLVMBasicBlockRef kj_new_block(kj_lowering *l, const char *name); /* at the end of l->function */
void kj_move_to(kj_lowering *l, LLVMBasicBlockRef block);
/* the current block has its terminator */
bool kj_is_terminated(kj_lowering *l);
void kj_branch(kj_lowering *l, LLVMBasicBlockRef block);                    /* unless terminated */
LLVMValueRef kj_alloca(kj_lowering *l, LLVMTypeRef type, const char *name); /* in the entry block */
/* An intrinsic by its full base name with its overload types; "internal error" diagnostic where
 * LLVM does not know it. */
LLVMValueRef kj_intrinsic(kj_lowering *l, const char *name, LLVMTypeRef *overloads,
                          unsigned overload_count, LLVMValueRef *args, unsigned count);
/* overloaded on the type of x */
LLVMValueRef kj_intrinsic1(kj_lowering *l, const char *name, LLVMValueRef x);
LLVMValueRef kj_intrinsic2(kj_lowering *l, const char *name, LLVMValueRef x, LLVMValueRef y);
/* LLVM's number of the target's scope. */
unsigned kj_sync_scope(kj_lowering *l, kj_memory_scope scope);
LLVMValueRef kj_intrinsic3(kj_lowering *l, const char *name, LLVMValueRef x, LLVMValueRef y,
                           LLVMValueRef z);
void kj_add_attribute(kj_lowering *l, LLVMValueRef function, unsigned index, const char *name,
                      uint64_t value);
void kj_add_call_attribute(kj_lowering *l, LLVMValueRef call, const char *name);
/* contract, unless @strict; all that @fastmath allows. Returns value. */
LLVMValueRef kj_fast(kj_lowering *l, LLVMValueRef value);
LLVMMetadataRef kj_metadata_string(kj_lowering *l, const char *text);
LLVMMetadataRef kj_metadata_int(kj_lowering *l, int64_t value);
void kj_set_metadata(kj_lowering *l, LLVMValueRef instruction, const char *kind,
                     LLVMMetadataRef metadata);
/* A distinct loop id with these properties; for llvm.loop on the branch back. */
LLVMMetadataRef kj_loop_id(kj_lowering *l, LLVMMetadataRef *properties, unsigned count);

/* ---- expression.c, lower_operators.c, conversion.c, index.c ---- */

/* A scalar or tuple (arrays: packed). NULL for a call without result. */
LLVMValueRef kj_lower_expr(kj_lowering *l, const kj_texpr *expr);
kj_array_value kj_lower_array(kj_lowering *l, const kj_texpr *expr);
/* An i1: the condition of if, while, ?:. */
LLVMValueRef kj_lower_condition(kj_lowering *l, const kj_texpr *expr);
/* and, or, ?: that become selects, everything else; the operands are not looked into. */
bool kj_is_straight(kj_lowering *l, const kj_texpr *expr);
/* The value of an integer expression modulo 2^32, as an i32; exact for is_narrow ones. */
LLVMValueRef kj_lower_index32(kj_lowering *l, const kj_texpr *expr);
/* The same for 64-bit integers where it can be computed without the 64-bit value; NULL, and nothing
 * built, where it cannot. */
LLVMValueRef kj_try_index32(kj_lowering *l, const kj_texpr *expr);
LLVMValueRef kj_lower_exact_index(kj_lowering *l, const kj_texpr *index); /* all of an index, i64 */
LLVMValueRef kj_lower_call(kj_lowering *l, const kj_texpr *expr);
kj_array_value kj_lower_array_call(kj_lowering *l, const kj_texpr *expr);
LLVMValueRef kj_build_binary(kj_lowering *l, kjit_op op, kjit_type type, LLVMValueRef x,
                             LLVMValueRef y, kj_location location);
/* A float to the power of an integer. */
LLVMValueRef kj_build_whole_power(kj_lowering *l, kjit_type type, LLVMValueRef x,
                                  kjit_type exponent_type, LLVMValueRef exponent);
LLVMValueRef kj_build_compare(kj_lowering *l, kjit_op op, kjit_type x_type, kjit_type y_type,
                              LLVMValueRef x, LLVMValueRef y);
LLVMValueRef kj_build_convert(kj_lowering *l, kjit_type from, kjit_type to, LLVMValueRef value);
typedef enum kj_rounding { KJ_ROUND_FLOOR, KJ_ROUND_CEIL, KJ_ROUND_TRUNC } kj_rounding;
LLVMValueRef kj_build_divide(kj_lowering *l, bool is_signed, kj_rounding rounding, LLVMValueRef x,
                             LLVMValueRef y);
LLVMValueRef kj_build_remainder(kj_lowering *l, bool is_signed, kj_rounding rounding,
                                LLVMValueRef x, LLVMValueRef y);
/* A scalar from another lane, in 32-bit pieces. */
typedef struct kj_shuffle {
  kj_shuffle_mode mode;
  LLVMValueRef mask, lane, width;
} kj_shuffle;
LLVMValueRef kj_build_shuffle(kj_lowering *l, kjit_type type, const kj_shuffle *shuffle,
                              LLVMValueRef value);
/* Two values in register form as one: what reductions do, ADD to XOR. */
LLVMValueRef kj_build_reduction(kj_lowering *l, kj_combine op, kjit_type type, LLVMValueRef x,
                                LLVMValueRef y);
/* A scalar's bits as an integer of its size, and of at least 32 bits: what lanes compare. */
LLVMValueRef kj_comparable_bits(kj_lowering *l, kjit_type type, LLVMValueRef value);
LLVMValueRef kj_build_minmax(kj_lowering *l, bool is_max, kjit_type type, LLVMValueRef x,
                             LLVMValueRef y);

/* Address of an element. indices.count is the rank. */
LLVMValueRef kj_element_pointer(kj_lowering *l, const kj_array_value *array,
                                const kj_texprs *indices);
/* In the copies of a vectorized grid_range body: an element at the loop variable; its alignment
 * (else the element's size). */
bool kj_is_vector_access(kj_lowering *l, const kj_array_value *array, const kj_texprs *indices);
uint32_t kj_element_alignment(kj_lowering *l, const kj_array_value *array,
                              const kj_texprs *indices);
/* The same where the indices are values, i64 or exact i32. */
LLVMValueRef kj_element_pointer_at(kj_lowering *l, const kj_array_value *array,
                                   LLVMValueRef const *indices, uint32_t count);
kj_array_value kj_lower_view(kj_lowering *l, const kj_texpr *view);
LLVMValueRef kj_extent(kj_lowering *l, const kj_array_value *array, uint32_t dimension); /* i64 */
LLVMValueRef kj_stride(kj_lowering *l, const kj_array_value *array, uint32_t dimension); /* i64 */

/* The same; is_checked: threads with an index out of bounds fail. */
LLVMValueRef kj_checked_pointer(kj_lowering *l, const kj_array_value *array,
                                const kj_texprs *indices, bool is_checked);

/* ---- lower_lanes.c: operators on vectors and complex numbers; complex_math.c ---- */

bool kj_is_vector_type(kj_lowering *l, kjit_type type);
bool kj_is_complex_type(kj_lowering *l, kjit_type type);
/* a lane, a part of a complex number; any other type: itself */
kjit_type kj_part_of(kj_lowering *l, kjit_type type);
LLVMValueRef kj_build_binary_parts(kj_lowering *l, kjit_op op, kjit_type type, LLVMValueRef x,
                                   LLVMValueRef y, kj_location location);
LLVMValueRef kj_build_unary_parts(kj_lowering *l, kjit_op op, kjit_type type, LLVMValueRef x);
LLVMValueRef kj_build_compare_parts(kj_lowering *l, kjit_op op, kjit_type type, LLVMValueRef x,
                                    LLVMValueRef y);
LLVMValueRef kj_build_convert_parts(kj_lowering *l, kjit_type from, kjit_type to,
                                    LLVMValueRef value);
typedef struct kj_complex_value {
  LLVMValueRef real, imaginary; /* floats or doubles */
} kj_complex_value;
kj_complex_value kj_split_complex(kj_lowering *l, LLVMValueRef value);
LLVMValueRef kj_join_complex(kj_lowering *l, kjit_type type, kj_complex_value z);
/* A built-in on complex numbers. */
LLVMValueRef kj_lower_complex_builtin(kj_lowering *l, const kj_texpr *expr);

/* ---- memory.c: what lies where in dynamic shared memory ---- */

/* Before begin_kernel. static_limit: so many bytes of static arrays stay static memory. */
void kj_plan_shared(kj_lowering *l, uint64_t static_limit);
/* Whether a KJ_V_SHARED variable lies there. */
bool kj_is_dynamic_shared(kj_lowering *l, const kj_tvar *var);
/* Its distance from the start of dynamic shared memory, in bytes; i64. */
LLVMValueRef kj_dynamic_offset(kj_lowering *l, const kj_tvar *var);
/* The array at a pointer, with its extents and strides; of the launch's own size: without extent.
 */
kj_array_value kj_dynamic_array(kj_lowering *l, const kj_tvar *var, LLVMValueRef pointer);
/* Number of elements of the array of the launch's own size; i64. */
LLVMValueRef kj_own_extent(kj_lowering *l, uint32_t element_bytes);

/* ---- conversion.c ---- */

/* +, - and * on bf16, vectors too, where the target has instructions for them; NULL, and nothing
 * built: it has none. */
LLVMValueRef kj_try_brain_operation(kj_lowering *l, kjit_op op, LLVMValueRef x, LLVMValueRef y);
LLVMValueRef kj_lower_small_fma(kj_lowering *l, const kj_texpr *expr); /* on f16 and bf16 */
/* conversion.c: f64 to f32, for another rounding to follow */
LLVMValueRef kj_round_to_odd(kj_lowering *l, LLVMValueRef x);

/* ---- lower_operators.c: values as integers of 8 bits for each byte they take in memory ---- */

LLVMValueRef kj_value_bits(kj_lowering *l, kjit_type type, LLVMValueRef value);
LLVMValueRef kj_value_of_bits(kj_lowering *l, kjit_type type, LLVMValueRef bits);
/* The bits of a float of 16, 32 or 64 bits as an integer: what the target asks to be hidden from
 * what comes after (float_bits). */
LLVMValueRef kj_hide_float_bits(kj_lowering *l, LLVMValueRef bits);
/* Such an integer in pieces, i32, the lowest first; a last one that is not full has zeros above. */
uint32_t kj_count_words(LLVMTypeRef type);
LLVMValueRef kj_get_word(kj_lowering *l, LLVMValueRef bits, uint32_t index);
LLVMValueRef kj_join_words(kj_lowering *l, LLVMTypeRef type, LLVMValueRef const *words,
                           uint32_t count);

/* ---- check.c: failing threads ---- */

typedef struct kj_failure {
  kj_failure_kind kind;
  kj_location location;
  const char *message; /* or NULL */
  unsigned count;
  kjit_type types[2];
  LLVMValueRef values[2]; /* in register type */
} kj_failure;

/* Kernels that may fail get one parameter more. */
void kj_plan_failures(kj_lowering *l);
/* lower_print.c: those of failures and of print, for the kernel's body */
void kj_bind_hidden_parameters(kj_lowering *l);
/* Reports, leaves the kernel and ends the block. */
void kj_build_failure(kj_lowering *l, const kj_failure *failure);
/* Which way a conditional branch goes nearly always. */
void kj_set_likely(kj_lowering *l, LLVMValueRef branch, bool is_first);
void kj_fail_if(kj_lowering *l, LLVMValueRef condition, const kj_failure *failure);
void kj_lower_fail(kj_lowering *l, const kj_tstmt *stmt);
/* value and extent: i64 */
void kj_check_index(kj_lowering *l, const kj_texpr *index, LLVMValueRef value, LLVMValueRef extent);
/* All indices of a subscript, in their order. */
void kj_check_indices(kj_lowering *l, const kj_texprs *indices, LLVMValueRef const *values,
                      LLVMValueRef const *extents);
typedef struct kj_slice {
  kj_location location;
  LLVMValueRef first, count, step, extent; /* i64; step NULL: 1 */
} kj_slice;
void kj_check_slice(kj_lowering *l, const kj_slice *slice);
/* x / y of the type, for a node that is_checked. */
void kj_check_divisor(kj_lowering *l, const kj_texpr *expr, kjit_type type, LLVMValueRef x,
                      LLVMValueRef y);

/* ---- facts.c: what the code relies on, asserted in it; nothing is built where that is off ---- */

bool kj_asserts_facts(const kj_lowering *l);
/* holds: an i1; value: the i64 that is shown where it does not; fact: what should hold, as a
 * sentence: "a value is in 0..9". */
void kj_assert_fact(kj_lowering *l, LLVMValueRef holds, LLVMValueRef value, const char *fact);
/* Of an integer of the type, in register form; an i64 may come as the i32 that it is. */
void kj_assert_range(kj_lowering *l, kj_interval range, kjit_type type, LLVMValueRef value);
/* When the kernel's parameters are bound: how arguments lie to each other, the grid. */
void kj_assert_arguments(kj_lowering *l);
/* Before an access: its alignment, and that it is of the argument. */
void kj_assert_access(kj_lowering *l, LLVMValueRef pointer, uint32_t bytes, uint32_t alignment,
                      uint32_t object);

/* ---- cpu_speculate.c: in iterations with l->bad_divisor ---- */

void kj_note_bad_divisor(kj_lowering *l, LLVMValueRef is_zero);
/* Before a store: the block behind it, where iterations with a bad divisor go on. NULL: in no such
 * iteration. */
LLVMBasicBlockRef kj_skip_if_bad(kj_lowering *l);

/* ---- lower_print.c ---- */

/* Which instances print, and the parameter of those that do. */
bool kj_prints(kj_instance *instance);
void kj_plan_prints(kj_lowering *l);
void kj_lower_print(kj_lowering *l, const kj_tstmt *stmt);

/* ---- check.c: CPU only ---- */

bool kj_is_watched(const kj_lowering *l);
void kj_watch_start_of_block(kj_lowering *l);
void kj_watch_synchronization(kj_lowering *l, bool is_of_warps);
/* Before the access of an element, for nodes that are is_watched. how: KJ_WATCH_READ,
 * KJ_WATCH_WRITE, KJ_WATCH_ATOMIC. */
void kj_watch_access_at(kj_lowering *l, kj_location location, const kj_array_value *array,
                        LLVMValueRef pointer, uint32_t how);

/* ---- memory.c: loads and stores with all that is known about them ---- */

/* An element, in register type. */
LLVMValueRef kj_load_element(kj_lowering *l, const kj_array_value *array, LLVMValueRef pointer,
                             uint32_t alignment);
void kj_store_element(kj_lowering *l, const kj_array_value *array, LLVMValueRef pointer,
                      LLVMValueRef value, uint32_t alignment);
/* What a load from an array argument, or from unknown memory, carries. */
void kj_annotate_load(kj_lowering *l, LLVMValueRef load, uint32_t object);
/* alias.scope, noalias, parallel loop; for instructions made elsewhere (atomics) too. */
void kj_annotate_access(kj_lowering *l, LLVMValueRef instruction, uint32_t object);
/* The value of a variable, and assigning it: registers, memory and slots alike. Scalars and tuples.
 */
LLVMValueRef kj_get_variable(kj_lowering *l, const kj_tvar *var);
void kj_set_variable(kj_lowering *l, const kj_tvar *var, LLVMValueRef value);
/* of a narrow variable: the i32 itself */
LLVMValueRef kj_get_variable32(kj_lowering *l, const kj_tvar *var);
/* Array of a storage variable, parameter or let; binding one. */
kj_array_value kj_get_array(kj_lowering *l, const kj_tvar *var);
void kj_set_array(kj_lowering *l, const kj_tvar *var, const kj_array_value *array);
/* Element 0 of a KJ_V_CONST variable: a constant global. */
LLVMValueRef kj_constant_pointer(kj_lowering *l, const kj_tvar *var);
/* Alias scope domains and scopes: distinct nodes. */
LLVMMetadataRef kj_make_domain(kj_lowering *l, const char *name);
LLVMMetadataRef kj_make_scope(kj_lowering *l, LLVMMetadataRef domain, const char *name);

/* ---- statement.c, statement.c ---- */

void kj_lower_stmts(kj_lowering *l, const kj_tstmts *stmts);
void kj_lower_stmt(kj_lowering *l, const kj_tstmt *stmt);
void kj_lower_while(kj_lowering *l, const kj_tstmt *stmt);
void kj_lower_for(kj_lowering *l, const kj_tstmt *stmt);
/* statement.c: FOR, GRID_FOR, BLOCK_FOR, twice where pass/loop_versions.c said so */
void kj_lower_loop(kj_lowering *l, const kj_tstmt *loop);

/* A counted loop that the caller fills: for (i = first; i < stop; i += step), step > 0 and i + step
 * may not overflow as an unsigned number of the type. The builder stands in the body after
 * kj_begin_loop and behind the loop after kj_end_loop. properties: of the loop id. */
typedef struct kj_counted_loop {
  kj_loop loop; /* continue goes to next, break to leave */
  LLVMBasicBlockRef header;
  LLVMValueRef counter, step;
  LLVMMetadataRef id;
} kj_counted_loop;
void kj_begin_loop(kj_lowering *l, kj_counted_loop *loop, LLVMValueRef first, LLVMValueRef stop,
                   LLVMValueRef step, const char *name);
void kj_end_loop(kj_lowering *l, kj_counted_loop *loop);

/* ---- strided_range.c: grid_range and block_range over numbered threads ---- */

/* Visits the elements of stmt's extents that thread `rank` of `count` has (of equal types: i64, or
 * i32 and below 2^31), in any number of dimensions. */
void kj_lower_strided_range(kj_lowering *l, const kj_tstmt *stmt, LLVMValueRef rank,
                            LLVMValueRef count);

/* ---- parameter.c, parameter.c ---- */

/* Which extents, strides and pointers the kernel needs, and who writes what: l->uses. */
void kj_find_uses(kj_lowering *l);
/* The same, and l->parameters. */
void kj_plan_parameters(kj_lowering *l);
/* How many bytes they may take, the compiler's own among them, when all are planned. Of the PTX
 * ISA: from PTX 8.1 on sm_70 and later take more. */
enum {
  KJ_SMALL_PARAMETER_BYTES = 4352,
  KJ_LARGE_PARAMETER_BYTES = 32764,
  KJ_LARGE_PARAMETER_PTX = 81
};
void kj_check_parameters(kj_lowering *l);
/* One more parameter behind the others, at a multiple of `alignment`. Returns its offset in bytes.
 */
uint32_t kj_add_parameter(kj_lowering *l, kj_parameter parameter, kjit_type type,
                          uint32_t alignment);

/* ---- built-ins: kj_lower_<lower> of builtins.def ---- */

/* target->native, or NULL. */
LLVMValueRef kj_try_native(kj_lowering *l, const char *name, uint32_t least_arch,
                           LLVMValueRef *args, unsigned count);

typedef LLVMValueRef (*kj_lower_builtin)(kj_lowering *l, const kj_texpr *expr);
#define X(id, name, least, most, rule, lower, operation, scope, needs, flags, aliases) \
  LLVMValueRef kj_lower_##lower(kj_lowering *l, const kj_texpr *expr);
#include "ir/builtins.def"
#undef X
extern const kj_lower_builtin kj_lower_table[KJ_BUILTIN_COUNT];

#endif
