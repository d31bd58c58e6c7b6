/* Declarations that the files of type inference share. Other parts of the compiler use only
 * typing/typed.h.
 *
 * The body of a function is inferred in rounds, each of which infers the whole body. Some facts are
 * guesses that a round can change: the type of a `var` that depends on its assignments
 * (variable_type.c), the result type, and which variables differ between threads. Each guess can
 * only change in one direction, so the number of rounds is finite. The last round changes no guess;
 * its typed tree is the result.
 * A weak type is the type of a literal or an untyped number. Another operand determines the final
 * type of a weak value (promote.c). */
#ifndef KJ_TYPING_INFER_H
#define KJ_TYPING_INFER_H

#include "typing/typed.h"

/* The scope in which a value is the same in all threads: the whole grid, a block, or only a single
 * thread. The level of an expression is the highest level of its operands. */
typedef enum kt_level { KJ_LEVEL_GRID, KJ_LEVEL_BLOCK, KJ_LEVEL_THREAD } kt_level;

static inline kt_level kt_higher_level(kt_level a, kt_level b) { return a > b ? a : b; }

/* A callee is either a function or a built-in; exactly one of these two fields is not NULL. */
typedef struct kt_captured kt_captured;
typedef struct kt_derived kt_derived;
typedef struct kt_callee {
  const ki_function *function;
  const ki_builtin *builtin;
  const kt_captured *captured; /* arguments that bind_back has added, or NULL */
  const kt_derived *derived;   /* set if the callee is a derivative of .function, otherwise NULL */
} kt_callee;

/* A derivative: jvp(of), vjp(of) or grad(of). */
struct kt_derived {
  ki_builtin_id kind;
  kt_callee of;
  /* the source lists the chosen parameters; otherwise all parameters that hold floats are chosen */
  bool is_chosen;
  uint64_t chosen; /* the listed parameters: bit i for parameter i */
};

typedef enum kt_meaning_kind {
  KJ_MEANS_NOTHING,
  KJ_MEANS_VARIABLE, /* .var */
  /* .value: a constant, a weak expression, or a tuple of constants, weak expressions and variables;
   * each use gets a copy */
  KJ_MEANS_VALUE,
  KJ_MEANS_CALLEE, /* .callee */
  KJ_MEANS_TYPE,   /* .type */
  KJ_MEANS_FIELDS, /* .fields: a field of all elements of an array of structs */
  KJ_MEANS_UNTYPED /* a var to which no typed value has been assigned so far, in any round */
} kt_meaning_kind;

/* The meaning of a declared name in the instance that is being inferred. */
typedef struct kt_meaning {
  kt_meaning_kind kind;
  kt_var *var;
  kt_expr *value;
  kt_callee callee;
  kjit_type type;
  const ki_expr *fields;
  /* a shared scalar; the name means the only element of the variable, which is an array */
  bool is_scalar;
  /* for a var whose type depends on its assignments: the annotation that each value must fit;
   * KJIT_ANY means that there is none */
  kjit_type annotation;
  /* a variable that records whether the var has been assigned, if the request enables this check;
   * otherwise NULL */
  kt_var *is_set;
} kt_meaning;

/* The guesses about a declared name. They are kept between rounds. */
typedef struct kt_guess {
  /* for a VAR whose type depends on its assignments: the common type of the assigned values */
  kjit_type type;
  kj_location location; /* location of the assigned value that led to this type */
  kt_level level;
  bool was_read;   /* the variable was read in this round */
  bool is_default; /* only literals have been assigned */
} kt_guess;

typedef enum kt_bound_kind {
  KJ_BOUND_NONE,
  KJ_BOUND_VALUE,
  KJ_BOUND_WEAK,
  KJ_BOUND_CONST,
  KJ_BOUND_CALLEE,
  KJ_BOUND_TYPE
} kt_bound_kind;

/* Describes the argument for a parameter as far as an instance depends on it. The bounds of all
 * parameters are the key by which an instance is found. */
typedef struct kt_bound {
  kt_bound_kind kind;
  kjit_type type;   /* VALUE, CONST: the value's type; WEAK: the weak type; TYPE: the type itself */
  kjit_type wide;   /* WEAK: like kt_var.wide; otherwise KJIT_ANY */
  __int128 integer; /* CONST: as in ki_value */
  /* VALUE, if it is a byte array in shared or local memory: the alignment of its start; otherwise
   * 0 */
  uint32_t start;
  kt_callee callee;
  /* VALUE, if it is an array of structs: the field that the parameter stands for, as an expression
   * whose innermost operand is a placeholder for the element. NULL means that the parameter stands
   * for the whole structs. */
  const ki_expr *fields;
} kt_bound;

/* The arguments that bind_back appends to each call of a func. If the func is passed to another
 * func, the bounds are part of that instance's key. A value that is known only at run time becomes
 * an additional parameter of the instance; the source of the function does not declare this
 * parameter. */
struct kt_captured {
  size_t count;
  kt_bound *bounds;
  /* the values, as expressions in the function that is being inferred; NULL for a callee or a
   * type */
  kt_expr **values;
};

typedef struct kt_message {
  kj_location location;
  kjit_severity severity;
  const char *text;
} kt_message;

/* An instance with the data that only inference uses. */
typedef struct kt_inferred kt_inferred;
typedef struct kt_scope kt_scope;
struct kt_inferred {
  kt_instance *instance;
  const kt_bound *bounds; /* the bound of each parameter of the function */
  bool is_done;
  bool is_reentered; /* the function calls itself while its body is being inferred */
  /* instance->result is known before the body is inferred, so recursive calls can use it */
  bool has_fixed_result;
  /* the guess, which can be weak; KJIT_ANY means that no return has been inferred yet */
  kjit_type result;
  /* the first guess of the result type that a call in another function has used; KJIT_ANY means
   * that there is none */
  kjit_type taken_result;
  kt_scope *scope; /* not NULL while the body is being inferred */
  /* lib/derive: the record that this record is the derivative of; NULL if this record is not a
   * derivative */
  kt_inferred *derived_of;
  ki_builtin_id derivative;
  kt_vars chosen; /* the parameters of derived_of with respect to which it is differentiated */
  /* this is a transpose (kd_get_transpose): derived_of must be linear in the chosen parameters */
  bool is_transpose;
  /* types of the arguments that hold derivatives with respect to the chosen parameters */
  kjit_type *derivative_types;
  kt_expr *constant_result; /* the constant, if the body consists only of returning it */
  kt_level result_level;
  bool has_grid_range, has_block_range;
  KJ_LIST(kt_message) messages;   /* the messages from the last round */
  KJ_LIST(kt_inferred *) callees; /* the instances that the last round has called */
  bool is_reached;
  uint64_t work; /* number of inferred statements and expressions in all rounds */
};

/* A copy of the body of a static loop, which is expanded at compile time. The names that the body
 * declares have a different meaning, and separate guesses, in each copy. */
typedef struct kt_copy kt_copy;
struct kt_copy {
  const ki_stmt *loop;
  uint32_t number; /* number of the copy */
  /* the copy that contains the loop; the outermost copy is the whole function */
  kt_copy *outer;
  /* the guesses about these declarations, which are saved here while another copy is inferred */
  uint32_t first, count;
  /* stores the guesses about these declarations while another copy is being inferred */
  kt_guess *guesses;
  KJ_LIST(kt_copy *) inner;
};

/* The elements of a constant of the module before their type is known. */
typedef struct kt_constant {
  const char *name;
  kjit_type element; /* can be weak */
  bool is_array;
  uint32_t rank;
  int64_t extents[KJ_MAX_RANK];
  KJ_LIST(kt_expr *) elements; /* the elements in row-major order; empty if is_outside */
  bool is_being_made;
  bool is_outside; /* a variable that is defined by the program that loads the code */
} kt_constant;

typedef struct kt_inference {
  kt_compilation *c;
  KJ_LIST(kt_inferred *) records; /* during inference, instance->id is an index into this list */
  /* the constant for each declaration of the module; indexed by declaration */
  kt_constant **constants;
  size_t constant_count;
  uint32_t block[3]; /* block shape of the kernel, if its @block is constant; 0 means unknown */
  uint32_t depth;
  bool has_double; /* an argument is f64, so remarks about f64 arithmetic are disabled */
  uint32_t remark_count;
} kt_inference;

/* A constant array that an instance uses with a certain element type. */
typedef struct kt_constant_use {
  const kt_constant *constant;
  kjit_type element;
  kt_var *var;
} kt_constant_use;

/* State of inference for one function. */
struct kt_scope {
  kt_inference *inference;
  kt_compilation *c;
  kj_arena *arena;
  kt_inferred *record;
  kt_instance *instance;
  const ki_function *function;
  kt_meaning *meanings; /* the meaning of each declaration; indexed by declaration, like guesses */
  kt_guess *guesses;
  kt_copy *copy; /* the copy that is being inferred; NULL outside of functions */
  kt_stmts *out; /* receives the typed statements */
  kjit_type result_annotation;
  bool is_changed;  /* a guess has changed in this round */
  bool may_wait;    /* statements whose types are not known yet are skipped in this round */
  jmp_buf *on_wait; /* where to jump to skip a statement */
  /* the reason for the first skipped statement in this round: a var, or a function that is being
   * inferred and whose result type is unknown; NULL if no statement was skipped */
  const ki_decl *waits_for;
  kj_location waits_at;
  /* No further types can be determined from other statements, so the statements inside of skipped
   * statements are inferred as well. */
  bool looks_inside;
  bool is_quiet;       /* the expression that is being inferred will not be evaluated */
  kt_level level;      /* level of the control flow at the current statement */
  kt_level left_level; /* level of the control flow in which threads have returned */
  /* level of the control flow in which threads have left the current iteration of the innermost
   * loop */
  kt_level skipped_level;
  uint32_t range_count;   /* number of enclosing grid_range and block_range loops */
  bool is_range_body;     /* the innermost loop is a grid_range or block_range */
  uint32_t runtime_count; /* number of shared arrays whose extents are determined at launch */
  uint64_t local_bytes, shared_bytes;
  bool wraps;               /* the function has `@wrap` or `@numba` */
  bool has_numba_types;     /* the function is `@numba` */
  bool is_cast;             /* inside of an explicit conversion of an untyped number */
  KJ_LIST(kt_level) levels; /* the level of each variable; indexed by variable */
  KJ_LIST(kt_constant_use) constant_uses;
  uint32_t temporary_count;
};

/* ---- infer.c ---- */

/* Returns the instance of a function for these arguments, and infers it if it is new. */
kt_inferred *kt_get_inferred(kt_scope *s, const ki_function *function, const kt_bound *bounds,
                             kj_location location);
/* Removes the instances whose inference was started by a statement that has been skipped. Such an
 * instance can need the result type of s's function, which is not known yet. records and depth are
 * their values before the statement. */
void kt_abandon_calls(kt_scope *s, size_t records, uint32_t depth);
/* Called before another round of a function's body. If the guess of the function's result type has
 * changed, discards the instances that have used the old guess. They are inferred again. */
void kt_drop_outdated(kt_scope *s);
/* expand_builtins.c: replaces the built-ins whose code is a func of lib/library by calls of it.
 * Runs after inference, because derivatives have rules for the built-ins. */
void kt_expand_builtins(kt_inference *inference);
/* Reports a recursive call, at location, of the function decl, whose result type no return
 * statement determines. */
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
/* If a callee is passed to a func, appends its captured values to the arguments of that call. */
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
/* Emits the statements of a loop with `@interleave` (derive/interleave.c). Variables with an index
 * below `outer` exist outside of the loop. Emits nothing and returns false if the iterations depend
 * on each other, or if the body has no inner loop that all iterations execute. Rejects a number of
 * iterations that is not constant or is too large. */
bool kd_interleave(kt_scope *s, const kt_stmt *loop, size_t outer, kj_location location);

/* ---- infer_body.c ---- */

void kt_infer_body(kt_inference *inference, kt_inferred *record);

/* Sets is_recursive, and completes the other properties of recursive functions. These are
 * incomplete because a recursive function is called before its own inference has finished. Must be
 * called before instances are renumbered, while instance->id is the index of the record. */
void kt_find_recursion(kt_inference *inference);

/* Initializes a scope without variables, for expressions outside of functions. */
void kt_init_scope(kt_scope *s, kt_inference *inference);
/* Adds one statement or expression to the work that the limits of the compilation bound. */
void kt_count_work(kt_scope *s, kj_location location);
/* Adds a variable to the scope. level: the level of its values as far as it is known. */
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

/* Binds the parameters of the kernel to the arguments of the request. */
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
/* Reports an error unless the tuple has as many items as there are names. */
void kt_check_names(kt_scope *s, size_t names, const kt_expr *value, kj_location location);
/* Returns whether the last statement is a jump. The jump can come from the branch that a static
 * `if` selects. The statements after the `if` are then never executed and are not inferred. */
bool kt_has_jumped(const kt_stmts *out);

/* ---- infer_copies.c: loops whose body is inferred several times, and loops over indices ---- */

void kt_infer_items_loop(kt_scope *s, const ki_stmt *stmt);
void kt_infer_static_range(kt_scope *s, const ki_stmt *stmt, const kt_exprs *values);
void kt_infer_shape_loop(kt_scope *s, const ki_stmt *stmt, kt_expr *shape);
/* Restores the state of the whole function after an error inside of copies. */
void kt_leave_copies(kt_scope *s);
/* Calls visit for all guesses of the function, including those of its copies. */
void kt_each_guess(const kt_scope *s,
                   void (*visit)(void *data, const ki_decl *decl, kt_guess *guess), void *data);

/* ---- tuple_value.c: operators on tuples, and items selected at run time ---- */

/* Infers `t[i]` or `t[1:]`. */
kt_expr *kt_infer_item(kt_scope *s, const ki_expr *expr, kt_expr *tuple);
/* Infers an operator with a tuple operand: `t + u`, `t == u` or `t < u`. One of x and y is a tuple.
 * Returns NULL for other operators. */
kt_expr *kt_make_tuple_binary(kt_scope *s, kjit_op op, kt_expr *x, kt_expr *y,
                              kj_location location);

/* ---- infer_expr.c ---- */

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
/* Evaluates a value whose result is not used, for its effects and checks. */
void kt_drop_value(kt_scope *s, kt_expr *value);
/* Returns whether evaluating the value costs nothing and gives the same result everywhere in the
 * function. */
bool kt_is_stable(const kt_expr *value);
/* Declares a let, or a var that has an initial value. */
void kt_declare(kt_scope *s, const ki_decl *decl, kt_expr *value);
/* Declares a var that has no initial value. */
void kt_declare_open(kt_scope *s, const ki_decl *decl);
/* Called before an assignment: replaces the meaning KJ_MEANS_UNTYPED by a variable. Its type is
 * KJIT_ANY until the assigned value determines it. */
void kt_start_untyped(kt_scope *s, const ki_decl *decl);

/* ---- variable_type.c ---- */

/* Extends the guess about a var so that it includes the type of an assigned value. Returns the
 * value to assign, which keeps its own type. */
kt_expr *kt_raise_guess(kt_scope *s, const ki_decl *decl, kt_expr *value);
/* Returns whether the type is an array or a tuple that contains an array. If a var has such a type,
 * its annotation only restricts which arrays can be assigned, and the var refers to the memory of
 * the assigned array. */
bool kt_holds_array(const kt_compilation *c, kjit_type type);
/* Returns the initial value of a var that has not been assigned. */
kt_expr *kt_make_unset(kt_scope *s, kjit_type type, kj_location location);
/* Skips the current statement in this round because the type of the var is unknown. */
_Noreturn void kt_wait_for_type(kt_scope *s, const ki_decl *decl, kj_location location);
/* Calls run. If a statement or expression in it needs a type that is not known yet, restores the
 * scope and returns false; another round follows. */
bool kt_try_without_waiting(kt_scope *s, void (*run)(kt_scope *s, void *data), void *data);
/* Called before a read of a var: if the check for uninitialized memory is enabled, emits a check
 * that fails in threads that have not assigned the var. */
void kt_check_set(kt_scope *s, const ki_decl *decl, kj_location location);

/* ---- infer_expr.c, typed.c, operators.c ---- */

/* Infers the value of an expression: a scalar, which can be weak, an array, or a tuple. Reports an
 * error if the expression has no value. */
kt_expr *kt_infer_expr(kt_scope *s, const ki_expr *expr);
/* Like kt_infer_expr, but also accepts a call without a result. */
kt_expr *kt_infer_effect(kt_scope *s, const ki_expr *expr);
/* Infers a condition, which is a bool or an integer, and converts it to bool. */
kt_expr *kt_infer_condition(kt_scope *s, const ki_expr *expr);
/* Infers all expressions of a list from left to right. */
void kt_infer_list(kt_scope *s, const ki_exprs *exprs, kt_exprs *values);
/* Returns the value of an integer expression that must be known at compile time. Otherwise reports
 * an error, in which `what` names the use of the expression. */
int64_t kt_infer_constant(kt_scope *s, const ki_expr *expr, const char *what);
/* Returns the type of an expression without evaluating it. */
kjit_type kt_infer_type_of(kt_scope *s, const ki_expr *expr);
/* Converts a weak conditional expression, including both of its arms, to a type. */
kt_expr *kt_give_arms_type(kt_scope *s, const kt_expr *cond, kjit_type type);
/* Returns the common type of values of which one is selected: numbers, equal types, or tuples,
 * whose items are compared one by one. Returns KJIT_ANY if there is none. */
kjit_type kt_join_values(kt_scope *s, kjit_type a, kjit_type b, kj_location location);
/* Converts a value to a type that kt_join_values has returned. */
kt_expr *kt_give_type(kt_scope *s, kt_expr *value, kjit_type type);
/* Returns whether the result of an operator stays weak, because one operand is an integer and the
 * other is a var to which only float literals have been assigned. If the result is combined with a
 * float later, it gets the type of that float; otherwise it becomes f64. */
bool kt_stays_open(const kt_scope *s, const kt_expr *x, const kt_expr *y);
/* Converts a number to bool. */
kt_expr *kt_make_condition(kt_scope *s, kt_expr *value);
/* Returns the constant 1 in the given type. */
kt_expr *kt_make_one(kt_scope *s, kjit_type type, kj_location location);
kt_expr *kt_make_unary(kt_scope *s, kjit_op op, kt_expr *x, kj_location location);
kt_expr *kt_make_binary(kt_scope *s, kjit_op op, kt_expr *x, kt_expr *y, kj_location location);
/* Like the functions above, but they use the rules of kernel IR even if the function has
 * `@numba`. */
kt_expr *kt_make_own_binary(kt_scope *s, kjit_op op, kt_expr *x, kt_expr *y, kj_location location);
kt_expr *kt_make_own_unary(kt_scope *s, kjit_op op, kt_expr *x, kj_location location);
kt_expr *kt_make_cond(kt_scope *s, kt_expr *condition, kt_expr *x, kt_expr *y,
                      kj_location location);
/* Returns a tuple type. Reports an error if the tuple has too many numbers. Without this limit, a
 * chain of functions that each put their argument into a tuple twice would create huge types. */
kjit_type kt_tuple_type(kt_scope *s, const kjit_type *items, uint32_t count, kj_location location);
kt_expr *kt_make_tuple(kt_scope *s, const kt_exprs *items, kj_location location);
/* Returns an item of a tuple. If the tuple is a TUPLE node, returns the item's expression
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
/* Converts a scalar or array to the type of an annotation, or reports an error if that is not
 * allowed. `what` describes the value in the message, for example "argument `x`". */
kt_expr *kt_fit_annotation(kt_scope *s, kt_expr *value, kjit_type annotation, const char *what,
                           kj_location location);
/* Returns whether an array of type `from` can be passed as type `to`. */
bool kt_array_fits(const kt_compilation *c, kjit_type from, kjit_type to);
/* Returns whether the scalar type `to` represents every value of `from`, or both are float
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
/* Reads the field from one element of the array that kt_array_of_fields has returned. */
kt_expr *kt_read_fields(kt_scope *s, const ki_expr *field, kt_expr *element);
/* If the value of a let is a field of all elements of an array of structs, makes the let an alias
 * of this field. Returns false for any other value, and if the array is a variable that can be
 * reassigned. */
bool kt_name_fields(kt_scope *s, const ki_decl *let, const ki_expr *value);
/* If expr is a field of an array of structs, such as the argument a.x, sets *base to the array and
 * returns the field in the form of kt_bound.fields. Returns NULL for any other expr. */
const ki_expr *kt_split_fields(kt_scope *s, const ki_expr *expr, const ki_expr **base);
bool kt_equal_fields(const ki_expr *a, const ki_expr *b);
/* Makes a parameter an alias of this field of an array of structs. */
void kt_receive_fields(kt_scope *s, const ki_decl *param, const ki_expr *fields, kt_var *array);
/* If expr is `a.x.shape`, `.size` or `.ndim` and a.x is a field of an array of structs, returns
 * this property of the array. Returns NULL for any other expr. */
const ki_expr *kt_move_property(kt_scope *s, const ki_expr *expr);

/* ---- infer_index.c ---- */

/* Infers x[...], which is an element or a view of an array, a component of a value, or an item of a
 * tuple. */
kt_expr *kt_infer_index(kt_scope *s, const ki_expr *expr);
/* Like kt_infer_index, for an x that has been evaluated. An element in memory becomes a LOAD; a
 * component of it becomes an array. */
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
/* Returns all lanes of a vector as a one-dimensional array. The vector is the only element of an
 * array of rank 0. */
kt_expr *kt_make_lanes(kt_scope *s, kt_expr *only, kj_location location);
kt_expr *kt_new_load(kt_scope *s, kt_expr *array, const kt_exprs *indices, kj_location location);
/* Returns the index 0, which selects the element that a pointer points to. */
kt_exprs kt_first_index(kt_scope *s, kj_location location);
bool kt_is_field_of_only(const kt_scope *s, kjit_type array, const char *name,
                         ki_component *component);
/* Report that the field in expr does not exist: the first function for an array, the second for any
 * other value. */
_Noreturn void kt_fail_array_field(kt_scope *s, const ki_expr *expr, kjit_type array);
_Noreturn void kt_fail_field(kt_scope *s, const ki_expr *expr, kjit_type type);

kt_expr *kt_infer_field(kt_scope *s, const ki_expr *expr);
/* Returns a component of a value. If the value is in memory, only this component is read. */
kt_expr *kt_read_component(kt_scope *s, kt_expr *value, ki_component component,
                           kj_location location);
/* Returns a lane of a vector. The index is not known at compile time. */
kt_expr *kt_read_lane(kt_scope *s, kt_expr *vector, kt_expr *index, kj_location location);
/* Returns the array that a pointer points to. The extent of the array is unknown. */
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
  /* Type of the values that are stored. It is weak if the type of the var is not known yet. For an
   * array inside a struct in memory, this is its type as a value. */
  kjit_type type;
  bool is_array; /* the lvalue is the whole array */
  kj_location location;
} kt_place;
void kt_infer_place(kt_scope *s, const ki_expr *expr, kt_place *place);
kt_expr *kt_load_place(kt_scope *s, const kt_place *place);
void kt_store_place(kt_scope *s, const kt_place *place, kt_expr *value, kj_location location);
kt_expr *kt_make_extent(kt_scope *s, kt_expr *array, uint32_t dimension, kj_location location);
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
/* End an operand. The first function is for a value, which is NULL if the operand is a func or a
 * type and not evaluated. The second function is for an lvalue. The third function is for an
 * element whose address is taken, which is a LOAD node that loads nothing. */
void kt_end_operand(kt_scope *s, kt_order *order, const kt_expr *value);
void kt_end_place(kt_scope *s, kt_order *order, const kt_place *place);
void kt_end_address(kt_scope *s, kt_order *order, const kt_expr *load);
/* Preserve the order of evaluation. If an earlier operand does not commute with the current
 * operand, they store its value in a temporary before the statements of the current operand. The
 * values in a list keep their order. Operands can be NULL. */
void kt_settle(kt_scope *s, kt_order *order, kt_expr **values, size_t count);
void kt_settle_place(kt_scope *s, kt_order *order, kt_place *place);
void kt_settle_address(kt_scope *s, kt_order *order, kt_expr **load);
/* Does the same for an array, or for another value that is indexed. Returns the operand to use. */
kt_expr *kt_settle_array(kt_scope *s, kt_order *order, kt_expr *array);
/* Evaluates the array and the indices of an lvalue now, so that the lvalue can be used twice. */
void kt_keep_place(kt_scope *s, kt_place *place);

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
/* Finds a component by name: a field of a struct, a lane .x .y .z .w of a vector, .real or
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

bool kt_has_parts(const kt_compilation *c, kjit_type type); /* vector or complex */
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
 * lanes, or a complex type. This is true for every number. */
bool kt_keeps_parts(const kt_compilation *c, kjit_type from, kjit_type to);
/* Implements kt_promote for vectors and complex numbers. Returns KJIT_ANY if there is no common
 * type, for example because the numbers of lanes differ. */
kjit_type kt_promote_parts(kt_scope *s, kjit_type a, kjit_type b, kj_location location);
/* Infers the construction of a vector or complex number: `f32x4(v.xy, 0, 1)`, `c64(re, im)`. */
kt_expr *kt_construct_parts(kt_scope *s, const kt_exprs *values, kjit_type type,
                            kj_location location);
/* Infers `v.xyz`, a selection of lanes by letters. Returns NULL if the letters are not lanes of the
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
/* Returns the count of a date, converted to the number type. */
kt_expr *kt_count_date(kt_scope *s, kt_expr *value, kjit_type type, kj_location location);

/* ---- operators_lanes.c ---- */

/* Implement kt_make_binary and kt_make_unary for vectors and complex numbers. */
kt_expr *kt_make_binary_parts(kt_scope *s, kjit_op op, kt_expr *x, kt_expr *y,
                              kj_location location);
kt_expr *kt_make_unary_parts(kt_scope *s, kjit_op op, kt_expr *x, kj_location location);
/* Implements kt_apply_rule for vectors and complex numbers. takes_lanes: the rule is applied to
 * each lane of a vector separately. Returns NULL if the rule accepts such operands as a whole. */
kt_expr *kt_apply_rule_parts(kt_scope *s, const struct kt_operands *operands, bool takes_lanes);

/* ---- infer_view.c ---- */

/* A selection in one dimension of an array. */
typedef struct kt_slice {
  bool is_index; /* an index, which removes the dimension from the view */
  bool is_whole; /* the whole dimension */
  /* the index, which has any integer type; or the start of the slice, an i64 */
  kt_expr *start;
  kt_expr *extent, *step; /* only for a slice, i64; a NULL step means 1 */
} kt_slice;
kt_slice kt_infer_slice(kt_scope *s, const ki_expr *slice, const kt_expr *array,
                        uint32_t dimension);
/* Returns the element at the indices as an array of rank 0. */
kt_expr *kt_make_only(kt_scope *s, kt_expr *array, const kt_exprs *indices, kj_location location);
/* For @record_copies: returns a reference to a struct that is an element of an array. The reference
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
/* Returns the bound for a run-time value. It contains the alignment of an array's start, because
 * the alignment determines which element types its views can have. A func therefore has a separate
 * instance for each alignment. */
kt_bound kt_value_bound(kt_scope *s, const kt_expr *value);
kt_expr *kt_make_transpose(kt_scope *s, kt_expr *array, kj_location location);
/* Returns an array type as which arrays of both types can be used: layout and static extents are
 * dropped if they differ. Returns KJIT_ANY if there is none. */
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
/* Returns the value of a scalar constant, or the array of an array constant. If its element type is
 * not known, the result is weak until it is used. */
kt_expr *kt_make_constant(kt_scope *s, const ki_decl *decl, kj_location location);
/* Returns the constant of an array expression whose elements are weak, or NULL. */
const kt_constant *kt_weak_constant(const kt_scope *s, const kt_expr *array);
/* Returns the element type of a constant array if no use of the array determines it. */
kjit_type kt_concrete_element(const kt_constant *constant);
/* Returns the array with elements converted to the given type. */
kt_expr *kt_make_constant_array(kt_scope *s, const kt_constant *constant, kjit_type element,
                                kj_location location);

/* ---- number_limits.c ---- */

/* Sets .least and .most of the kernel's parameters. Must be called after all instances are
 * inferred. */
void kt_find_number_limits(kt_compilation *c);

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
 * integers. `what` describes the target of the store, for example "element of `x`". */
kt_expr *kt_convert_stored(kt_scope *s, kt_expr *value, kjit_type type, const char *what,
                           kj_location location);
/* Converts a weak value whose type nothing else determines to i32, i64 or f64. In a tuple it
 * converts each item. */
kt_expr *kt_make_concrete(kt_scope *s, kt_expr *value);
/* Returns the result type of kt_make_concrete. */
kjit_type kt_concrete_type(const kt_expr *value);
/* Returns kt_var.wide for a weak integer. The integer has this type if it can need more than 32
 * bits and nothing else determines its type. */
kjit_type kt_wide_type(const kt_expr *value);
/* Returns the wider of two results of kt_wide_type. */
kjit_type kt_wider_type(kjit_type x, kjit_type y);
/* Returns the type of a variable that holds a weak number at run time (its carrier). */
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
