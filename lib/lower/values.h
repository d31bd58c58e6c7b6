/* Functions that make LLVM values and types: types in registers and in memory, components of
 * aggregates, conversions and operators. */
#ifndef KJ_LOWER_VALUES_H
#define KJ_LOWER_VALUES_H

#include "lower/lowering.h"

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
/* Returns the object (see kl_array_value) that the type of an array implies. */
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
 * pointer. Returns false for tuples and other arrays. */
bool kl_is_composed_type(kl_lowering *l, kjit_type type);
LLVMTypeRef kl_composed_register_type(kl_lowering *l, kjit_type type);
/* Returns an LLVM type with the size that the type has in memory. The alignment of the LLVM type
 * can differ. */
LLVMTypeRef kl_composed_memory_type(kl_lowering *l, kjit_type type);
/* kl_type_alignment returns the alignment in bytes of a value in memory. kl_array_alignment returns
 * the alignment of an array's elements, which can be less if the array is part of a packed
 * struct. */
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
/* Adds an LLVM variable to the module for a variable of the kernel. The symbol of the LLVM variable
 * is the variable's name combined with the kind (`shared`, `const`), so it differs from the symbols
 * of all functions, of kjit's own variables and of library functions. LLVM adds numbers to equal
 * symbols. */
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
/* unroll.c: sets how LLVM unrolls a loop. A version of a loop that runs only if a thread will fail
 * is not unrolled. */
void kl_mark_latch(kl_lowering *l, LLVMValueRef branch, int unroll);
/* Called before a loop is lowered. Multiplies l->copies by the number of copies that unrolling
 * makes of the loop. Returns the previous value of l->copies, which the caller restores after the
 * loop. */
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
/* Returns whether the expression is lowered without branches. Returns false only for `and`, `or`
 * and `?:` with operands that are too expensive for a select. */
bool kl_is_straight(kl_lowering *l, const kt_expr *expr);
/* Returns the value of an integer expression modulo 2^32 as an i32. If is_narrow is set for the
 * expression, the i32 is the exact value. */
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

/* How a node's check is lowered: omitted, as a run-time check, or as an assertion that the omitted
 * check would not have failed. Assertions exist only in builds that assert facts (see
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

/* ---- conversion.c ---- */

/* Builds +, - or * on bf16 values or vectors with instructions of the target. If the target has no
 * such instruction, emits no code and returns NULL. */
LLVMValueRef kl_try_brain_operation(kl_lowering *l, kjit_op op, LLVMValueRef x, LLVMValueRef y);
/* Lowers fma for f16 and bf16. */
LLVMValueRef kl_lower_small_fma(kl_lowering *l, const kt_expr *expr);
/* converts f64 to f32 such that the result can be rounded a second time */
LLVMValueRef kl_round_to_odd(kl_lowering *l, LLVMValueRef x);
/* Returns the mantissa m of x, in [1/2, 1), and the exponent e as an i32: x is m * 2^e. For x = 0,
 * both are 0. For infinities and NaNs, both are undefined. */
LLVMValueRef kl_split_exponent(kl_lowering *l, LLVMValueRef x, LLVMValueRef *exponent);

/* ---- lower_operators.c: values as integers with 8 bits for each byte of their memory form ---- */

LLVMValueRef kl_value_bits(kl_lowering *l, kjit_type type, LLVMValueRef value);
LLVMValueRef kl_value_of_bits(kl_lowering *l, kjit_type type, LLVMValueRef bits);
/* Count the i32 words of such an integer, return one of its words, and join words to an integer.
 * Word 0 is the lowest. The missing high bits in the last word are 0. */
uint32_t kl_count_words(LLVMTypeRef type);
LLVMValueRef kl_get_word(kl_lowering *l, LLVMValueRef bits, uint32_t index);
LLVMValueRef kl_join_words(kl_lowering *l, LLVMTypeRef type, LLVMValueRef const *words,
                           uint32_t count);

#endif
