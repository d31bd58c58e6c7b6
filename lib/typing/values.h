/* Functions that make typed expressions from typed operands: operators, conversions, common types,
 * and folding at compile time. The functions in typing/infer.h make typed expressions from source
 * code. */
#ifndef KJ_TYPING_VALUES_H
#define KJ_TYPING_VALUES_H

#include "typing/inference.h"

/* ---- typed.c, operators.c ---- */

/* Converts a weak conditional expression, including both of its arms, to a type. */
kt_expr *kt_give_arms_type(kt_scope *s, const kt_expr *cond, kjit_type type);
/* Returns the common type of two values, of which the program selects one at run time. The values
 * are numbers, have equal types, or are tuples, whose items are joined one by one. Returns KJIT_ANY
 * if there is no common type. */
kjit_type kt_join_values(kt_scope *s, kjit_type a, kjit_type b, kj_location location);
/* Converts a value to a type that kt_join_values has returned. */
kt_expr *kt_give_type(kt_scope *s, kt_expr *value, kjit_type type);
/* Returns whether the result of an operator stays weak, because one operand is an integer and the
 * other is a var to which only float literals have been assigned. If the result is combined with a
 * float later, the result gets that float's type; otherwise it becomes f64. */
bool kt_stays_open(const kt_scope *s, const kt_expr *x, const kt_expr *y);
/* Converts a number to bool. */
kt_expr *kt_make_condition(kt_scope *s, kt_expr *value);
/* Returns the constant 1 in the given type. */
kt_expr *kt_make_one(kt_scope *s, kjit_type type, kj_location location);
kt_expr *kt_make_unary(kt_scope *s, kjit_op op, kt_expr *x, kj_location location);
kt_expr *kt_make_binary(kt_scope *s, kjit_op op, kt_expr *x, kt_expr *y, kj_location location);
/* Like kt_make_unary and kt_make_binary, but with the rules of kernel IR also in `@numba`
 * functions. */
kt_expr *kt_make_own_binary(kt_scope *s, kjit_op op, kt_expr *x, kt_expr *y, kj_location location);
kt_expr *kt_make_own_unary(kt_scope *s, kjit_op op, kt_expr *x, kj_location location);
kt_expr *kt_make_cond(kt_scope *s, kt_expr *condition, kt_expr *x, kt_expr *y,
                      kj_location location);
/* Returns a tuple type. Reports an error if the tuple has too many numbers. Without this limit, a
 * chain of functions that each put their argument into a tuple twice would create huge types. */
kjit_type kt_tuple_type(kt_scope *s, const kjit_type *items, uint32_t count, kj_location location);
kt_expr *kt_make_tuple(kt_scope *s, const kt_exprs *items, kj_location location);
/* Returns an item in a tuple. If the tuple is a TUPLE node, returns the item's expression
 * itself. */
kt_expr *kt_make_item(kt_scope *s, kt_expr *tuple, uint32_t index, kj_location location);
/* Returns whether an item of a TUPLE node can be used without evaluating the other items. */
bool kt_can_take_item(const kt_scope *s, const kt_expr *tuple, uint32_t index);
kt_expr *kt_make_var(kt_scope *s, kt_var *var, kj_location location);
static inline kt_expr *kt_copy_texpr(kt_scope *s, const kt_expr *expr)
{
  return kt_clone_texpr(s->c, expr, NULL, NULL);
}
kt_level kt_level_of(const kt_scope *s, const kt_expr *expr);

/* ---- tuple_value.c: operators on tuples, and items selected at run time ---- */

/* Infers `t[i]` or `t[1:]`. */
kt_expr *kt_infer_item(kt_scope *s, const ki_expr *expr, kt_expr *tuple);
/* Infers an operator with a tuple operand: `t + u`, `t == u` or `t < u`. One of x and y is a tuple.
 * Returns NULL for other operators. */
kt_expr *kt_make_tuple_binary(kt_scope *s, kjit_op op, kt_expr *x, kt_expr *y,
                              kj_location location);

/* ---- composed_value.c ---- */

bool kt_is_struct(const kt_compilation *c, kjit_type type);
bool kt_is_vector(const kt_compilation *c, kjit_type type);
bool kt_is_complex(const kt_compilation *c, kjit_type type);
bool kt_is_pointer(const kt_compilation *c, kjit_type type);
/* Returns whether the type is that of an array field in a struct value. kt_is_array returns false
 * for such a type. */
bool kt_is_value_array(const kt_compilation *c, kjit_type type);
/* Returns whether the type is a struct, an array in a struct, a vector, a complex number or a
 * pointer. */
bool kt_is_composed(const kt_compilation *c, kjit_type type);
/* Finds a component by name: a field in a struct, a lane .x .y .z .w of a vector, .real or
 * .imag. */
bool kt_find_component(const kt_compilation *c, kjit_type type, const char *name,
                       ki_component *component);
/* Returns an aggregate of these components, which must have the component types. They are evaluated
 * in order. */
kt_expr *kt_make_composed(kt_scope *s, kjit_type type, const kt_exprs *parts, kj_location location);
/* Converts a value to a type in order to store it. Numbers are converted as in any store. A pointer
 * can become const. Tuples and arrays with static extents can become arrays inside structs. Any
 * other conversion is an error, in which `what` describes the value, for example "the field". */
kt_expr *kt_fit_value(kt_scope *s, kt_expr *value, kjit_type type, const char *what,
                      kj_location location);
/* Returns the indices of the element with row-major number `place` in an array with static
 * extents. */
kt_exprs kt_indices_of(kt_scope *s, const ki_type_info *array, int64_t place, kj_location location);
/* Infers `S(a, b)`, the construction of a struct from the values of all its fields. */
kt_expr *kt_construct_struct(kt_scope *s, const kt_exprs *values, kjit_type type,
                             kj_location location);
/* Returns a value of the type in which all components are 0. */
kt_expr *kt_make_zero(kt_scope *s, kjit_type type, kj_location location);
/* Returns the number of scalars and pointers in a value of the type. */
uint64_t kt_count_parts(const kt_compilation *c, kjit_type type);

/* ---- composed_value.c: vectors and complex numbers ---- */

bool kt_has_parts(const kt_compilation *c, kjit_type type); /* a vector or complex number */
/* Returns the type of the lanes of a vector, or of the real part of a complex number. Returns any
 * other type unchanged. */
kjit_type kt_part_type(const kt_compilation *c, kjit_type type);
kjit_type kt_vector_of(kt_scope *s, kjit_type element, uint32_t lanes);
/* Returns a type like `like` with another component type: a vector with the same number of lanes,
 * or a complex type. */
kjit_type kt_with_part(kt_scope *s, kjit_type like, kjit_type part);
/* Returns a vector or complex number. Its components are the results of `make`, which gets the
 * corresponding component of a value. */
typedef kt_expr *(*kt_make_part)(kt_scope *s, kt_expr *part, uint32_t index, const void *data);
kt_expr *kt_map_parts(kt_scope *s, kjit_type type, kt_expr *value, kt_make_part make,
                      const void *data, kj_location location);
/* Implements kt_convert for vectors and complex numbers: converts each component. If the value is a
 * number, it becomes the value of all lanes, or the real part. */
kt_expr *kt_convert_parts(kt_scope *s, kt_expr *value, kjit_type type, kj_location location);
/* Returns whether a value of type `from` has enough components for type `to`: the same number of
 * lanes, or a complex type. Returns true for every number. */
bool kt_keeps_parts(const kt_compilation *c, kjit_type from, kjit_type to);
/* Implements kt_promote for vectors and complex numbers. Returns KJIT_ANY if there is no common
 * type, for example because the numbers of lanes differ. */
kjit_type kt_promote_parts(kt_scope *s, kjit_type a, kjit_type b, kj_location location);
/* Infers the construction of a vector or complex number: `f32x4(v.xy, 0, 1)`, `c64(re, im)`. */
kt_expr *kt_construct_parts(kt_scope *s, const kt_exprs *values, kjit_type type,
                            kj_location location);
/* Infers `v.xyz`, a selection of lanes by letters. Returns NULL if the letters are not lanes in the
 * vector. */
kt_expr *kt_infer_swizzle(kt_scope *s, const ki_expr *expr, kt_expr *vector);

/* ---- dates.c ---- */

/* Returns whether a type is a NumPy date (ir/date.h). */
bool kt_is_date(const kt_scope *s, kjit_type type);
/* Implement kt_make_binary and kt_make_unary for dates. */
kt_expr *kt_make_date_binary(kt_scope *s, kjit_op op, kt_expr *x, kt_expr *y, kj_location location);
kt_expr *kt_make_date_unary(kt_scope *s, kjit_op op, kt_expr *x, kj_location location);
/* Implements kt_apply_rule for dates. Returns NULL if no operand is a date, or if the built-in does
 * not accept dates. */
struct kt_operands;
kt_expr *kt_apply_date_rule(kt_scope *s, const struct kt_operands *operands);
/* Returns the common type of two dates. Returns KJIT_ANY if there is none or if a type is not a
 * date. */
kjit_type kt_join_dates(kt_scope *s, kjit_type a, kjit_type b);
/* Converts a date to the unit of a date type, or an integer to a date that has this count. Returns
 * NULL for any other value. Reports an error if the units cannot be converted. */
kt_expr *kt_convert_date(kt_scope *s, kt_expr *value, kjit_type type, kj_location location);
/* Returns a date's count, converted to the number type. */
kt_expr *kt_count_date(kt_scope *s, kt_expr *value, kjit_type type, kj_location location);

/* ---- operators_lanes.c ---- */

/* Implement kt_make_binary and kt_make_unary for vectors and complex numbers. */
kt_expr *kt_make_binary_parts(kt_scope *s, kjit_op op, kt_expr *x, kt_expr *y,
                              kj_location location);
kt_expr *kt_make_unary_parts(kt_scope *s, kjit_op op, kt_expr *x, kj_location location);
/* Implements kt_apply_rule for vectors and complex numbers. takes_lanes: the rule is applied to
 * each lane in a vector separately. Returns NULL if the rule itself accepts vectors and complex
 * numbers. */
kt_expr *kt_apply_rule_parts(kt_scope *s, const struct kt_operands *operands, bool takes_lanes);

/* ---- numba.c: types in a function that is `@numba`; only if s->has_numba_types ---- */

/* Implement kt_make_binary and kt_make_unary with Numba's table of types. If the table does not
 * contain the operands (vectors, tuples, bf16), they return NULL, and the rules of kernel IR
 * apply. */
kt_expr *kt_make_numba_binary(kt_scope *s, kjit_op op, kt_expr *x, kt_expr *y,
                              kj_location location);
kt_expr *kt_make_numba_unary(kt_scope *s, kjit_op op, kt_expr *x, kj_location location);
/* Returns the type of a variable to which values of both types are assigned. Returns KJIT_ANY if
 * the table has no row for the types. */
kjit_type kt_join_numba(kjit_type a, kjit_type b);
/* Returns the type of the variable of a `range` loop. Returns KJIT_ANY if the table has no row for
 * the types. */
kjit_type kt_numba_range_type(const kt_exprs *values);
/* Return the type in which a built-in is computed, which is also its result type: for `abs`, `min`
 * and `max`, and for math functions on floats. KJIT_ANY means that the table has no row for the
 * types. */
kjit_type kt_numba_number_type(const kt_exprs *values);
kjit_type kt_numba_float_type(const ki_builtin *builtin, const kt_exprs *values);
/* Returns the type that Numba gives to a literal or another weak value. */
kjit_type kt_numba_literal_type(const kt_expr *value);

/* ---- promote.c ---- */

ki_type_class kt_class_of(const kt_compilation *c, kjit_type type);
bool kt_is_integer(const kt_compilation *c, kjit_type type); /* typed or weak; not bool */
bool kt_is_float(const kt_compilation *c, kjit_type type);   /* typed or weak */
bool kt_is_number(const kt_compilation *c, kjit_type type);  /* bool, integers, floats, weak */
bool kt_is_array(const kt_compilation *c, kjit_type type);
bool kt_is_tuple(const kt_compilation *c, kjit_type type);
/* Returns the common type of two operands of an arithmetic operator, or KJIT_ANY if there is none
 * (i64 with u64). */
kjit_type kt_promote(kt_scope *s, kjit_type a, kjit_type b, kj_location location);
/* Like kt_promote, but for values that are stored and not computed with: bool and i8 keep their
 * types. */
kjit_type kt_join(kt_scope *s, kjit_type a, kjit_type b, kj_location location);
/* Converts any number, including a weak expression, to a scalar type. */
kt_expr *kt_convert(kt_scope *s, kt_expr *value, kjit_type type, kj_location location);
/* Converts a value in order to store it. All conversions are allowed, except those of floats to
 * integers. `what` describes the store's target, for example "element of `x`". */
kt_expr *kt_convert_stored(kt_scope *s, kt_expr *value, kjit_type type, const char *what,
                           kj_location location);
/* Converts a weak value to i32, i64 or f64, because nothing else determines its type. In a tuple,
 * converts each item. */
kt_expr *kt_make_concrete(kt_scope *s, kt_expr *value);
/* Returns the result type of kt_make_concrete. */
kjit_type kt_concrete_type(const kt_expr *value);
/* Returns the value of kt_var.wide for a weak integer. */
kjit_type kt_wide_type(const kt_expr *value);
/* Returns the wider of two results of kt_wide_type. */
kjit_type kt_wider_type(kjit_type x, kjit_type y);
/* Returns the type in which a weak number is stored in a variable at run time (its carrier). */
kjit_type kt_carrier_of(kjit_type weak, kjit_type wide);
/* Returns a weak number whose run-time value is in `carrier`. */
kt_expr *kt_make_weak(kt_scope *s, kt_expr *carrier, kjit_type weak, kjit_type wide);
kt_expr *kt_new_integer(kt_scope *s, kjit_type type, __int128 value, kj_location location);
kt_expr *kt_new_value(kt_scope *s, ki_value value, kj_location location);
/* Returns a float constant. The double is rounded to the type. */
kt_expr *kt_new_number(kt_scope *s, kjit_type type, double value, kj_location location);

/* ---- fold.c: arithmetic at compile time ---- */

/* Fold an operator whose operands are constants of one type; the count of SHL and SHR can be any
 * integer. Return NULL if the operator must not be computed at compile time. */
kt_expr *kt_fold_unary(kt_scope *s, kjit_op op, const kt_expr *x, kj_location location);
kt_expr *kt_fold_binary(kt_scope *s, kjit_op op, const kt_expr *x, const kt_expr *y,
                        kj_location location);
kt_expr *kt_fold_compare(kt_scope *s, kjit_op op, const kt_expr *x, const kt_expr *y,
                         kj_location location);
/* Folds a built-in whose operands are constants of one type. */
kt_expr *kt_fold_builtin(kt_scope *s, const ki_builtin *builtin, const kt_exprs *values,
                         kj_location location);
/* Formats an integer in decimal. */
const char *kt_integer_text(kj_arena *arena, __int128 value);

#endif
