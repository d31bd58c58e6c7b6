/* Functions that infer the source types: of modules, functions, statements and expressions. Only
 * the files of type inference and lib/derive use this header. Other parts of the compiler use
 * typing/typed.h. */
#ifndef KJ_TYPING_INFER_H
#define KJ_TYPING_INFER_H

#include "typing/inference.h"
#include "typing/values.h"

/* ---- infer.c ---- */

/* Returns the instance of a function for these arguments, and infers it if it is new. */
kt_inferred *kt_get_inferred(kt_scope *s, const ki_function *function, const kt_bound *bounds,
                             kj_location location);
/* Removes the instances whose inference was started by a statement that has been skipped. Such an
 * instance can need the result type of the function of s, which is not known yet. records and
 * depth: the number of instances and the call depth before the statement. */
void kt_abandon_calls(kt_scope *s, size_t records, uint32_t depth);
/* Called before another round of a function's body. If the guess of the function's result type has
 * changed, discards the instances that have used the previous guess, so that they are inferred
 * again. */
void kt_drop_outdated(kt_scope *s);
/* expand_builtins.c: replaces each built-in that a func of lib/library implements by a call of this
 * func. Runs after inference, because derivatives have rules for the built-ins. */
void kt_expand_builtins(kt_inference *inference);
/* Reports that no return statement determines the result type of the recursive function decl.
 * location is the recursive call. */
_Noreturn void kt_fail_runaway(kt_scope *s, const ki_decl *decl, kj_location location);
/* Returns the final result type for a guess, which can be weak. */
kjit_type kt_concrete_result(kjit_type guess);
/* Adds a record for an instance without inferring the instance. */
kt_inferred *kt_add_inferred(kt_inference *inference, const ki_function *function,
                             const kt_bound *bounds, kt_modes modes);

bool kt_equal_bound(const kt_bound *a, const kt_bound *b);
/* Describes a bound for messages. */
const char *kt_bound_text(kt_compilation *c, const kt_bound *bound);

/* ---- captured.c ---- */

/* kt_is_bind_back returns whether expr is a call bind_back(f, values); kt_bind_back returns its
 * callee. The captured values are evaluated at the position of the bind_back call. */
bool kt_is_bind_back(const ki_expr *expr);
/* Evaluates a captured argument and sets its bound. *place receives the value, or NULL for a callee
 * or a type. */
void kt_capture_value(kt_scope *s, const ki_expr *expr, kt_bound *bound, kt_expr **place);
kt_callee kt_bind_back(kt_scope *s, const ki_expr *call);
/* If a callee is passed to a func, appends its captured values to that call's arguments. */
void kt_hand_over(kt_scope *s, const kt_callee *callee, kt_exprs *arguments);
/* Converts a callee that was passed for the parameter decl. The result refers to the parameters of
 * the called instance that receive the captured values. */
kt_callee kt_receive_callee(kt_scope *s, const kt_callee *handed, const ki_decl *decl);
bool kt_equal_callee(const kt_callee *a, const kt_callee *b);
const char *kt_callee_text(kt_compilation *c, const kt_callee *callee);

/* ---- lib/derive/callee.c ---- */

/* kd_is_derivative returns whether expr is `jvp(f)`, `vjp(f)` or `grad(f)`; kd_derive_callee
 * returns its callee. */
bool kd_is_derivative(const ki_expr *expr);
kt_callee kd_derive_callee(kt_scope *s, const ki_expr *expr);
/* Infers a call of a derivative. */
kt_expr *kd_infer_call(kt_scope *s, const ki_expr *call, const kt_callee *callee);
/* Emits the statements in a loop with `@interleave` (derive/interleave.c). Variables with an index
 * below `outer` exist outside of the loop. Emits nothing and returns false if the iterations depend
 * on each other, or if the body has no inner loop that all iterations execute. Rejects a number of
 * iterations that is not constant or is too large. */
bool kd_interleave(kt_scope *s, const kt_stmt *loop, size_t outer, kj_location location);

/* ---- infer_body.c ---- */

void kt_infer_body(kt_inference *inference, kt_inferred *record);

/* Sets is_recursive, and completes the other properties of recursive functions. These are
 * incomplete because a recursive function is called before its own inference has finished. Must be
 * called before instances are renumbered, while instance->id is the record index. */
void kt_find_recursion(kt_inference *inference);

/* Initializes a scope without variables, for expressions outside of functions. */
void kt_init_scope(kt_scope *s, kt_inference *inference);
/* Counts one statement or expression, and reports an error if the compilation exceeds one of its
 * limits. */
void kt_count_work(kt_scope *s, kj_location location);
/* Adds a variable to the scope. level: the level of the variable's values, as far as it is
 * known. */
kt_var *kt_add_variable(kt_scope *s, kt_tvar_kind kind, const char *name, kjit_type type,
                        kj_location location, kt_level level);
void kt_bind_variable(kt_scope *s, const ki_decl *decl, kt_var *var);
void kt_bind_value(kt_scope *s, const ki_decl *decl, kt_expr *value);

void kt_note_message(kt_scope *s, kj_location location, kjit_severity severity, const char *format,
                     ...) __attribute__((format(printf, 4, 5)));
/* Emits a remark about f64 arithmetic in a kernel that has no f64 argument. */
void kt_note_double(kt_scope *s, kj_location location);
/* Reports the messages of an instance that is part of the code. */
void kt_report_messages(kt_inference *inference, const kt_inferred *record);

/* ---- infer_kernel.c ---- */

/* Binds the kernel's parameters to the request's arguments. */
kt_bound *kt_bind_signature(kt_inference *inference, const ki_function *kernel);
/* Evaluates @block. Must be called before the kernel's body is inferred, because the body can use
 * its values through blockDim. */
void kt_infer_block_shape(kt_scope *s);
/* Evaluates @grid, @launch_bounds and similar attributes. Must be called after the body is
 * inferred. */
void kt_infer_launch(kt_scope *s);

/* ---- infer_stmt.c ---- */

void kt_infer_block(kt_scope *s, const ki_stmts *stmts, kt_stmts *out);
void kt_emit(kt_scope *s, kt_stmt *stmt);
/* Reports an error unless the tuple has as many items as there are names. */
void kt_check_names(kt_scope *s, size_t names, const kt_expr *value, kj_location location);
/* Returns whether the last statement is a jump. The jump can come from the branch that a static
 * `if` selects. The statements after the `if` are then never executed and are not inferred. */
bool kt_has_jumped(const kt_stmts *out);

/* ---- infer_loops.c ---- */

void kt_infer_while(kt_scope *s, const ki_stmt *stmt);
void kt_infer_for(kt_scope *s, const ki_stmt *stmt);
int kt_infer_unroll(kt_scope *s, const ki_stmt *stmt);
/* Infers the body of a loop whose control flow has the given level. is_range: the iterations are
 * distributed over threads. */
void kt_infer_loop_body(kt_scope *s, const ki_stmt *stmt, kt_stmts *body, kt_level level,
                        bool is_range);
/* Returns the common type of start, stop and step of a `range`. The loop variable has this type. */
kjit_type kt_range_type(kt_scope *s, const kt_exprs *values, kj_location location);
/* Converts extents to KJIT_INDEX. */
kt_exprs kt_convert_extents(kt_scope *s, const kt_exprs *values);
/* Evaluates a tuple once and returns its items as separate values. */
kt_exprs kt_take_items(kt_scope *s, kt_expr *tuple, kj_location location);
kt_level kt_level_of_list(const kt_scope *s, const kt_exprs *values);

/* ---- infer_copies.c: loops whose body is inferred several times, and loops over indices ---- */

void kt_infer_items_loop(kt_scope *s, const ki_stmt *stmt);
void kt_infer_static_range(kt_scope *s, const ki_stmt *stmt, const kt_exprs *values);
void kt_infer_shape_loop(kt_scope *s, const ki_stmt *stmt, kt_expr *shape);
/* Restores the state of the whole function after an error in a copy of a loop body. */
void kt_leave_copies(kt_scope *s);
/* Calls visit for each guess of the function, also for the guesses of copied loop bodies. */
void kt_each_guess(const kt_scope *s,
                   void (*visit)(void *data, const ki_decl *decl, kt_guess *guess), void *data);

/* ---- infer_expr.c ---- */

/* Infers an expression's value: a scalar, which can be weak, an array, or a tuple. Reports an error
 * if the expression has no value. */
kt_expr *kt_infer_expr(kt_scope *s, const ki_expr *expr);
/* Like kt_infer_expr, but also accepts a call without a result. */
kt_expr *kt_infer_effect(kt_scope *s, const ki_expr *expr);
/* Infers a condition, which is a bool or an integer, and converts it to bool. */
kt_expr *kt_infer_condition(kt_scope *s, const ki_expr *expr);
/* Infers all expressions of a list from left to right. */
void kt_infer_list(kt_scope *s, const ki_exprs *exprs, kt_exprs *values);
/* Returns the value of an integer expression. Reports an error if the value is not known at compile
 * time; `what` names the use of the expression in the message. */
int64_t kt_infer_constant(kt_scope *s, const ki_expr *expr, const char *what);
/* Returns the type of an expression without evaluating it. */
kjit_type kt_infer_type_of(kt_scope *s, const ki_expr *expr);
void kt_infer_print(kt_scope *s, const ki_stmt *stmt);

/* ---- infer_variable.c ---- */

/* Assigns a value to place->var. This can change the guess about the variable's type. */
struct kt_place;
void kt_assign_variable(kt_scope *s, const struct kt_place *place, kt_expr *value,
                        kj_location location);
kt_stmt *kt_new_assign(kt_scope *s, kt_var *var, kt_expr *value, kj_location location);
void kt_emit_assign(kt_scope *s, kt_var *var, kt_expr *value, kj_location location);
/* Returns the current value in a form that can be used several times: a temporary, or the value
 * itself if it cannot change. */
kt_expr *kt_keep_value(kt_scope *s, kt_expr *value);
/* Like kt_keep_value, but inserts the statements before statement *at of s->out, and increments *at
 * by their number. */
kt_expr *kt_keep_at(kt_scope *s, kt_expr *value, size_t *at);
/* Evaluates an unused value, because of its effects and checks. */
void kt_drop_value(kt_scope *s, kt_expr *value);
/* Returns whether evaluating the value costs nothing and gives the same result everywhere in the
 * function. */
bool kt_is_stable(const kt_expr *value);
/* Declares a let, or a var that has an initial value. */
void kt_declare(kt_scope *s, const ki_decl *decl, kt_expr *value);
/* Declares a var that has no initial value. */
void kt_declare_open(kt_scope *s, const ki_decl *decl);
/* Called before an assignment: replaces the meaning KJ_MEANS_UNTYPED by a variable. The variable's
 * type is KJIT_ANY until the assigned value determines it. */
void kt_start_untyped(kt_scope *s, const ki_decl *decl);

/* ---- variable_type.c ---- */

/* Extends the guess about a var so that it includes the type of an assigned value. Returns the
 * value to assign, which keeps its own type. */
kt_expr *kt_raise_guess(kt_scope *s, const ki_decl *decl, kt_expr *value);
/* Returns whether the type is an array or a tuple that contains an array. If a var has such a type,
 * its annotation only restricts which arrays can be assigned, and the var refers to the memory of
 * the assigned array. */
bool kt_holds_array(const kt_compilation *c, kjit_type type);
/* Returns the value that a var has before its first assignment. */
kt_expr *kt_make_unset(kt_scope *s, kjit_type type, kj_location location);
/* Skips the current statement in this round because the var type is unknown. */
_Noreturn void kt_wait_for_type(kt_scope *s, const ki_decl *decl, kj_location location);
/* Calls run, which infers statements or expressions. If run needs a type that is not known yet,
 * restores the scope and returns false. The next round infers them again. */
bool kt_try_without_waiting(kt_scope *s, void (*run)(kt_scope *s, void *data), void *data);
/* Called before a read of a var: if the check for uninitialized memory is enabled, emits a check
 * that fails in threads that have not assigned the var. */
void kt_check_set(kt_scope *s, const ki_decl *decl, kj_location location);

/* ---- infer_type.c ---- */

kjit_type kt_intern_array(kt_scope *s, const ki_type_info *info);
/* Returns the type that a type expression in the source denotes. Use kt_declare_storage for the
 * arrays of declarations. */
kjit_type kt_infer_type(kt_scope *s, const ki_type_expr *type);
/* Returns a pointer type. The element type must have a size. Reports an error if types are nested
 * too deeply. */
kjit_type kt_pointer_type(kt_scope *s, kjit_type element, bool read_only, kj_location location);
/* Returns whether the expression denotes a type, for example `f32` or `dtype(x)`. If so, sets
 * *type. */
bool kt_as_type(kt_scope *s, const ki_expr *expr, kjit_type *type);
/* Returns whether the expression denotes a function, for example `add` or a func parameter. If so,
 * sets *callee. */
bool kt_as_callee(kt_scope *s, const ki_expr *expr, kt_callee *callee);
/* Maximum size of the local arrays of an instance. */
enum { KJ_LOCAL_BYTES_LIMIT = 64 * 1024 };
void kt_declare_storage(kt_scope *s, const ki_decl *decl);
/* Converts a scalar or array to an annotation's type, or reports an error if that is not allowed.
 * `what` describes the value in the message, for example "argument `x`". */
kt_expr *kt_fit_annotation(kt_scope *s, kt_expr *value, kjit_type annotation, const char *what,
                           kj_location location);
/* Returns whether an array of type `from` can be passed as type `to`. */
bool kt_array_fits(const kt_compilation *c, kjit_type from, kjit_type to);
/* Returns true if the scalar type `to` represents every value of `from`, or if both are float
 * types. */
bool kt_scalar_fits(const kt_compilation *c, kjit_type from, kjit_type to);

/* ---- infer_kernel.c ---- */

/* kt_has_runtime_extents returns whether some extents of a shared array are not known at compile
 * time. kt_check_runtime_extents checks that the runtime can evaluate these extents at launch. */
bool kt_has_runtime_extents(kt_scope *s, const ki_decl *decl);
void kt_check_runtime_extents(kt_scope *s, const ki_decl *decl);

/* ---- record_fields.c ---- */

/* If expr is x[...] and x is a field of an array of structs, returns that field of the indexed
 * element. Returns NULL for any other x, if the indices contain slices, or if there are fewer
 * indices than dimensions. */
const ki_expr *kt_move_index(kt_scope *s, const ki_expr *expr);
/* If expr is a field of an array of structs (`a.x`), returns the array of structs (`a`), whose
 * extents are those of `a.x`. The field must not be an array, and the array must have at most
 * most_rank dimensions. Returns any other expr unchanged. */
const ki_expr *kt_array_of_fields(kt_scope *s, const ki_expr *expr, uint32_t most_rank);
/* Reads the field from one element in the array that kt_array_of_fields has returned. */
kt_expr *kt_read_fields(kt_scope *s, const ki_expr *field, kt_expr *element);
/* If a let's value is a field of all elements in an array of structs, makes the let an alias of
 * this field. Returns false for any other value, and if the array is a variable that can be
 * reassigned. */
bool kt_name_fields(kt_scope *s, const ki_decl *let, const ki_expr *value);
/* If expr is a field of an array of structs, such as the argument a.x, sets *base to the array and
 * returns the field in the form of kt_bound.fields. Returns NULL for any other expr. */
const ki_expr *kt_split_fields(kt_scope *s, const ki_expr *expr, const ki_expr **base);
bool kt_equal_fields(const ki_expr *a, const ki_expr *b);
/* Makes a parameter an alias of a field in all elements of `array`, an array of structs. fields: as
 * in kt_bound. */
void kt_receive_fields(kt_scope *s, const ki_decl *param, const ki_expr *fields, kt_var *array);
/* If expr is `a.x.shape`, `.size` or `.ndim` and a.x is a field of an array of structs, returns
 * this property of the array. Returns NULL for any other expr. */
const ki_expr *kt_move_property(kt_scope *s, const ki_expr *expr);
/* Returns a view of the field with this name in all elements of an array of structs. Returns NULL
 * if the array has no such field, or if the struct size is not a multiple of the field's size.
 * kt_view_of_named_fields does the same for a chain of fields. */
kt_expr *kt_view_of_field(kt_scope *s, kt_expr *array, const char *name, kj_location location);
kt_expr *kt_view_of_named_fields(kt_scope *s, const ki_expr *fields);

/* ---- infer_index.c ---- */

/* Infers x[...], which is an element or a view of an array, a component of a value, or an item in a
 * tuple. */
kt_expr *kt_infer_index(kt_scope *s, const ki_expr *expr);
/* Like kt_infer_index, for an x that has been evaluated. If the result is an element in memory, it
 * is a LOAD node; if it is a component of such an element, it is an array. */
kt_expr *kt_index_value(kt_scope *s, const ki_expr *expr, kt_expr *base);
/* In `@numba` functions, `record[1]` is field 1 of a struct, or of a reference to a struct. Returns
 * false if base has another type or if the index is a slice. */
bool kt_find_numbered(kt_scope *s, const ki_expr *expr, kjit_type base, ki_component *component);
/* Infers the indices in x[...] where x is a vector or an array inside a struct. */
kt_exprs kt_infer_part_indices(kt_scope *s, const ki_expr *expr, kjit_type type);
/* Returns the element at these indices of a vector or an array inside a struct. */
kt_expr *kt_take_part(kt_scope *s, kt_expr *value, const kt_exprs *indices, kj_location location);
/* Infers a property of an array, for example `a.shape`. Returns NULL if arrays have no property
 * with that name. */
kt_expr *kt_infer_property(kt_scope *s, const ki_expr *expr, kt_expr *array);

/* ---- infer_field.c ---- */

/* Returns a component (a field, an item or a lane) of the only element of an array of rank 0. The
 * result is an array, too. */
kt_expr *kt_make_member(kt_scope *s, kt_expr *only, ki_component component, kj_location location);
/* Returns all lanes in a vector as a one-dimensional array. The vector is the only element of an
 * array of rank 0. */
kt_expr *kt_make_lanes(kt_scope *s, kt_expr *only, kj_location location);
kt_expr *kt_new_load(kt_scope *s, kt_expr *array, const kt_exprs *indices, kj_location location);
/* Returns the index 0, which selects the element that a pointer points to. */
kt_exprs kt_first_index(kt_scope *s, kj_location location);
bool kt_is_field_of_only(const kt_scope *s, kjit_type array, const char *name,
                         ki_component *component);
/* Report that the field in expr does not exist: kt_fail_array_field for an array, kt_fail_field for
 * any other value. */
_Noreturn void kt_fail_array_field(kt_scope *s, const ki_expr *expr, kjit_type array);
_Noreturn void kt_fail_field(kt_scope *s, const ki_expr *expr, kjit_type type);

kt_expr *kt_infer_field(kt_scope *s, const ki_expr *expr);
/* Returns a component of a value. If the value is in memory, only this component is read. */
kt_expr *kt_read_component(kt_scope *s, kt_expr *value, ki_component component,
                           kj_location location);
/* Returns a lane in a vector. The index is not known at compile time. */
kt_expr *kt_read_lane(kt_scope *s, kt_expr *vector, kt_expr *index, kj_location location);
/* Returns the array that a pointer points to. The array extent is unknown. */
kt_expr *kt_make_pointed(kt_scope *s, kt_expr *pointer, kj_location location);

/* ---- infer_place.c ---- */

/* A step on the path from a value to a part of it: selects a component or, if it has indices, an
 * element. */
typedef struct kt_path_step {
  uint32_t component;
  kt_exprs indices;
  kjit_type type; /* type of the part */
} kt_path_step;
/* An lvalue. */
typedef struct kt_place {
  kt_var *var; /* the variable that contains the lvalue; NULL means that the lvalue is in memory */
  const ki_decl *decl;
  kt_expr *array;
  kt_exprs indices;
  /* the path from the variable, or from the element in memory, to the lvalue; empty if the lvalue
   * is the whole variable or element */
  KJ_LIST(kt_path_step) steps;
  /* Type of the values that are stored. It is weak if the var type is not known yet. For an array
   * inside a struct in memory, this is its type as a value. */
  kjit_type type;
  bool is_array; /* the lvalue is the whole array */
  kj_location location;
} kt_place;
void kt_infer_place(kt_scope *s, const ki_expr *expr, kt_place *place);
kt_expr *kt_load_place(kt_scope *s, const kt_place *place);
void kt_store_place(kt_scope *s, const kt_place *place, kt_expr *value, kj_location location);
kt_expr *kt_make_extent(kt_scope *s, kt_expr *array, uint32_t dimension, kj_location location);
kt_expr *kt_make_stride(kt_scope *s, kt_expr *array, uint32_t dimension, kj_location location);
kt_expr *kt_make_shape(kt_scope *s, kt_expr *array, kj_location location);
kt_expr *kt_make_size(kt_scope *s, kt_expr *array, kj_location location);
/* Returns whether the index is a negated literal, which counts from the end. If so, sets *distance
 * to the literal. */
bool kt_is_from_end(const ki_expr *expr, __int128 *distance);
/* Converts an integer to KJIT_INDEX for use as an index, extent or step. A u64 that is out of range
 * becomes the maximum index, which is also out of bounds but not negative. */
kt_expr *kt_convert_to_index(kt_scope *s, kt_expr *value, kj_location location);
/* Returns an index into a dimension of this extent. If the function has `@wrap`, a negative index
 * is counted from the end. */
kt_expr *kt_wrap_index(kt_scope *s, kt_expr *index, kt_expr *extent);

/* ---- operand_order.c ---- */

/* State while a list of operands is inferred in the order of evaluation (operand_order.c).
 * Initialize it with 0. */
typedef struct kt_order {
  size_t mark; /* number of statements in s->out when the current operand was begun */
  /* effects of the operands before the current one; effects of the current operand */
  kt_effects before, next;
  bool has_statements; /* inferring the current operand has added statements */
  bool has_conflict;   /* the current operand does not commute with an earlier operand */
} kt_order;
/* Begins an operand. Call this before the operand is inferred. */
void kt_begin_operand(kt_scope *s, kt_order *order);
/* End an operand. kt_end_operand is for a value, which is NULL if the operand is a func or a type
 * and is not evaluated. kt_end_place is for an lvalue. kt_end_address is for an element whose
 * address is taken, which is a LOAD node that loads nothing. */
void kt_end_operand(kt_scope *s, kt_order *order, const kt_expr *value);
void kt_end_place(kt_scope *s, kt_order *order, const kt_place *place);
void kt_end_address(kt_scope *s, kt_order *order, const kt_expr *load);
/* Preserve the order of evaluation. If an earlier operand does not commute with the current
 * operand, the value of the earlier operand is stored in a temporary before the statements of the
 * current operand. `values` contains earlier operands in the order of evaluation; they can be
 * NULL. */
void kt_settle(kt_scope *s, kt_order *order, kt_expr **values, size_t count);
void kt_settle_place(kt_scope *s, kt_order *order, kt_place *place);
void kt_settle_address(kt_scope *s, kt_order *order, kt_expr **load);
/* Like kt_settle, for an array or another value that is indexed. Returns the operand to use. */
kt_expr *kt_settle_array(kt_scope *s, kt_order *order, kt_expr *array);
/* Evaluates the array and the indices of an lvalue now, so that the lvalue can be used twice. */
void kt_keep_place(kt_scope *s, kt_place *place);

/* ---- infer_view.c ---- */

/* A selection in one dimension of an array. */
typedef struct kt_slice {
  bool is_index; /* an index, which removes the dimension from the view */
  bool is_whole; /* the whole dimension */
  /* the index, which has any integer type; or the slice's start, an i64 */
  kt_expr *start;
  kt_expr *extent, *step; /* only for a slice, i64; a NULL step means 1 */
} kt_slice;
kt_slice kt_infer_slice(kt_scope *s, const ki_expr *slice, const kt_expr *array,
                        uint32_t dimension);
/* Returns the element at the indices as an array of rank 0. */
kt_expr *kt_make_only(kt_scope *s, kt_expr *array, const kt_exprs *indices, kj_location location);
/* For @record_copies: returns a reference to a struct that is an element in an array. The reference
 * is an array of rank 0, whose fields are lvalues in the element. Returns any other value
 * unchanged. */
kt_expr *kt_refer(kt_scope *s, kt_expr *value, kj_location location);
/* For @record_copies: replaces each reference to a record in a function's result by a copy of the
 * record. */
kt_expr *kt_copy_referred(kt_scope *s, kt_expr *value, kj_location location);
/* Returns a view with these slices, or the array itself if the slices select everything. */
kt_expr *kt_make_view(kt_scope *s, kt_expr *array, const kt_slice *slices, kj_location location);
/* Returns the alignment in bytes of the first element of a shared or local array as far as it is
 * known; 0 means unknown. */
uint32_t kt_find_start(kt_scope *s, const kt_expr *array);
/* Returns the bound for a run-time value. For a byte array in shared or local memory, the bound
 * contains the alignment of the array's start, because the alignment determines which element types
 * views of the array can have. A func therefore has a separate instance for each alignment. */
kt_bound kt_value_bound(kt_scope *s, const kt_expr *value);
kt_expr *kt_make_transpose(kt_scope *s, kt_expr *array, kj_location location);
/* Returns an array type to which arrays of both types can be converted. It has only the layout and
 * the static extents that both types have. Returns KJIT_ANY if there is no such type. */
kjit_type kt_join_arrays(kt_scope *s, kjit_type a, kjit_type b);
/* Returns an array type without static extents. */
kjit_type kt_forget_extents(kt_scope *s, kjit_type array);
/* Converts an array to a type that kt_join_arrays has returned. */
kt_expr *kt_give_array_type(kt_scope *s, kt_expr *array, kjit_type type);

/* ---- symbols.c ---- */

/* Numbers the instances and assigns their symbols. Reports extern funcs whose symbols conflict. */
void kt_name_instances(kt_compilation *c);
/* Returns whether an extern func's symbol is its name, because another program links the code.
 * Otherwise the symbol identifies the code to which the func is bound. */
bool kt_has_plain_symbol(const kt_compilation *c, const ki_function *function);
/* Returns whether an extern func keeps its name because linked GPU code defines it. */
bool kt_is_linked(const kt_compilation *c, const ki_function *function);

/* ---- infer_function_call.c ---- */

/* Infers a call of the callee with the arguments of `expr`, which is used only for its arguments.
 * asker is the built-in that makes the call and passes no arrays; NULL means that the call is in
 * the source. */
kt_expr *kt_infer_function_call(kt_scope *s, const ki_expr *expr, const kt_callee *callee,
                                const char *asker);
void kt_refuse_kernel(kt_scope *s, const ki_function *function, kj_location location);
/* Returns the instance that kt_infer_function_call calls, and its run-time arguments. `variable` is
 * a bit mask of parameters: a float literal for such a parameter is passed at run time instead of
 * being part of the instance's key. */
kt_inferred *kt_bind_call(kt_scope *s, const ki_expr *expr, const kt_callee *callee,
                          const char *asker, uint64_t variable, kt_exprs *arguments);
/* Returns an expression that calls the instance with these arguments. */
kt_expr *kt_call_instance(kt_scope *s, kt_inferred *record, const kt_exprs *arguments,
                          kj_location location);
/* Returns the type that a parameter's annotation denotes, given the other parameters; KJIT_ANY
 * means that there is no annotation. The bounds of parameters whose values are unknown are
 * KJ_BOUND_NONE. */
kjit_type kt_infer_annotation(kt_inference *inference, const ki_function *function,
                              const kt_bound *bounds, size_t index);

/* ---- infer_call.c ---- */

kt_expr *kt_infer_call(kt_scope *s, const ki_expr *expr);
/* Infers a built-in that is used without a call: a name such as laneid or pi, or threadIdx with a
 * field. */
kt_expr *kt_infer_builtin_name(kt_scope *s, const ki_expr *expr, const ki_builtin *builtin,
                               const char *field);
/* Reports an error if a call has fewer than `least` or more than `most` arguments. */
void kt_check_count(kt_scope *s, const char *name, size_t count, size_t least, size_t most,
                    kj_location location);
/* Converts the arguments of a call of an extern func for the C ABI. Reports an error for types that
 * the C ABI does not support. */
void kt_bind_extern_call(kt_scope *s, const ki_function *function, kt_bound *bounds,
                         kt_expr **arguments, const ki_expr *call);
/* Checks that C functions can take and return values of the type. `what` describes the value in the
 * message. */
void kt_check_c_type(kt_scope *s, kjit_type type, const char *what, kj_location location);

/* ---- module_constants.c ---- */

const kt_constant *kt_get_constant(kt_scope *s, const ki_decl *decl);
/* Returns the value of a scalar constant, or the array of an array constant. If the type of the
 * elements is not known, the result is weak until it is used. */
kt_expr *kt_make_constant(kt_scope *s, const ki_decl *decl, kj_location location);
/* If the elements in an array expression are weak, returns the constant to which the expression
 * refers, otherwise NULL. */
const kt_constant *kt_weak_constant(const kt_scope *s, const kt_expr *array);
/* Returns the element type of a constant array if no use of the array determines it. */
kjit_type kt_concrete_element(const kt_constant *constant);
/* Returns the array of a constant, with its elements converted to the given type. */
kt_expr *kt_make_constant_array(kt_scope *s, const kt_constant *constant, kjit_type element,
                                kj_location location);

/* ---- number_limits.c ---- */

/* Sets .least and .most of the kernel's parameters. Must be called after all instances are
 * inferred. */
void kt_find_number_limits(kt_compilation *c);

#endif
