/* Declarations that the files of inference share. Other parts of the compiler use typing/typed.h
 * only.
 *
 * A function body is inferred in rounds. The rounds refine guesses: the type of a `var` that
 * depends on its assignments (variable_type.c), the type of the result, and which variables differ
 * between threads. A guess only changes in one direction, so the rounds end. The last round, in
 * which no guess changes, gives the result. */
#ifndef KJ_TYPING_INFER_H
#define KJ_TYPING_INFER_H

#include "typing/typed.h"

/* The scope in which all threads have the same value: the grid, a block, or a single thread. The
 * level of an expression is the maximum level of its operands. */
typedef enum kt_level { KJ_LEVEL_GRID, KJ_LEVEL_BLOCK, KJ_LEVEL_THREAD } kt_level;

static inline kt_level kt_higher_level(kt_level a, kt_level b) { return a > b ? a : b; }

/* A callee: either a function or a built-in; the other field is NULL. */
typedef struct kt_captured kt_captured;
typedef struct kt_derived kt_derived;
typedef struct kt_callee {
  const ki_function *function;
  const ki_builtin *builtin;
  const kt_captured *captured; /* arguments added by bind_back, or NULL */
  const kt_derived *derived;   /* set if the callee is a derivative of .function, else NULL */
} kt_callee;

/* A derivative: jvp(of), vjp(of) or grad(of). */
struct kt_derived {
  ki_builtin_id kind;
  kt_callee of;
  bool is_chosen;  /* the source lists parameters; otherwise all that hold floats are chosen */
  uint64_t chosen; /* the listed parameters: bit i for parameter i */
};

typedef enum kt_meaning_kind {
  KJ_MEANS_NOTHING,
  KJ_MEANS_VARIABLE, /* .var */
  /* .value: a constant, a weak expression, or a tuple of these and of variables; copied at each
   * use */
  KJ_MEANS_VALUE,
  KJ_MEANS_CALLEE, /* .callee */
  KJ_MEANS_TYPE,   /* .type */
  KJ_MEANS_FIELDS, /* .fields: one field of all elements of an array of structs */
  KJ_MEANS_UNTYPED /* a var to which no typed value has been assigned in any round so far */
} kt_meaning_kind;

/* The meaning of a declaration in the instance that is being inferred. */
typedef struct kt_meaning {
  kt_meaning_kind kind;
  kt_var *var;
  kt_expr *value;
  kt_callee callee;
  kjit_type type;
  const ki_expr *fields;
  bool is_scalar; /* a shared scalar: the name refers to its element */
  /* for a var whose type depends on its assignments: the annotation that each value must fit;
   * KJIT_ANY means none */
  kjit_type annotation;
  kt_var *is_set; /* records whether the var is assigned, if this is checked; else NULL */
} kt_meaning;

/* The guesses about a declaration, which are kept between rounds. */
typedef struct kt_guess {
  kjit_type type; /* common type of the assigned values, for a VAR whose type depends on them */
  kj_location location; /* location of the value that gave the guess this type */
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

/* The value of a parameter in an instance. The values of all parameters are the key of the
 * instance. */
typedef struct kt_bound {
  kt_bound_kind kind;
  kjit_type type;   /* VALUE, CONST: the value's type; WEAK: the weak type; TYPE: the type itself */
  kjit_type wide;   /* WEAK: as in kt_var.wide; else KJIT_ANY */
  __int128 integer; /* CONST: as in ki_value */
  /* VALUE that is an array of bytes in shared or local memory: alignment of its start; else 0 */
  uint32_t start;
  kt_callee callee;
  /* VALUE that is an array of structs: the field of its elements for which the parameter is an
   * alias. It is an expression whose innermost operand is a placeholder. NULL means the whole
   * elements */
  const ki_expr *fields;
} kt_bound;

/* The arguments that bind_back appends to each call of a func. If the func is passed to another
 * func, the bounds are part of that instance's key. Values that are known only at run time become
 * additional parameters of the instance, which its function does not declare. */
struct kt_captured {
  size_t count;
  kt_bound *bounds;
  /* the values as expressions in the function that is being inferred; NULL for a callee or type */
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
  const kt_bound *bounds; /* one for each parameter of the function */
  bool is_done;
  bool is_reentered; /* called while its body is being inferred */
  /* instance->result is known before the body is inferred, so that recursive calls can use it */
  bool has_fixed_result;
  kjit_type result; /* guess, which can be weak; KJIT_ANY means no return so far */
  /* the first guess of the result that a call in another function used; KJIT_ANY means none */
  kjit_type taken_result;
  kt_scope *scope; /* set while the body is being inferred */
  /* lib/derive: the record whose derivative this record is; NULL means that this record is not a
   * derivative */
  kt_inferred *derived_of;
  ki_builtin_id derivative;
  kt_vars chosen;    /* parameters of derived_of that the derivative is with respect to */
  bool is_transpose; /* derived_of is linear in these, or there is no such derivative */
  /* types of the arguments that are the derivatives with respect to the chosen parameters */
  kjit_type *derivative_types;
  kt_expr *constant_result; /* set if the body only returns this constant */
  kt_level result_level;
  bool has_grid_range, has_block_range;
  KJ_LIST(kt_message) messages;   /* messages of the last inference round */
  KJ_LIST(kt_inferred *) callees; /* instances called in the last inference round */
  bool is_reached;
  uint64_t work; /* number of inferred statements and expressions in all rounds */
};

/* One copy of the body of a static loop. Its declarations have a different meaning in each copy,
 * and therefore separate guesses. */
typedef struct kt_copy kt_copy;
struct kt_copy {
  const ki_stmt *loop;
  uint32_t number;       /* number of the copy */
  kt_copy *outer;        /* the copy that contains the loop; the whole function is a copy, too */
  uint32_t first, count; /* range of the indices of its declarations */
  kt_guess *guesses;     /* guesses about these while the copy is not being inferred */
  KJ_LIST(kt_copy *) inner;
};

/* The elements of a module constant before their type is determined. */
typedef struct kt_constant {
  const char *name;
  kjit_type element; /* can be weak */
  bool is_array;
  uint32_t rank;
  int64_t extents[KJ_MAX_RANK];
  KJ_LIST(kt_expr *) elements; /* the elements in row-major order; empty if is_outside */
  bool is_being_made;
  bool is_outside; /* a variable of the program that loads the code */
} kt_constant;

typedef struct kt_inference {
  kt_compilation *c;
  KJ_LIST(kt_inferred *) records; /* during inference, instance->id is the index of its record */
  kt_constant **constants;        /* the constant of each declaration of the module, by its index */
  size_t constant_count;
  uint32_t block[3]; /* block shape of the kernel's @block if it is constant; 0 means unknown */
  uint32_t depth;
  bool has_double; /* some argument is f64, so there are no remarks about f64 */
  uint32_t remark_count;
} kt_inference;

/* A constant array with a given element type in an instance. */
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
  kt_meaning *meanings; /* meaning of each declaration, by its index like guesses */
  kt_guess *guesses;
  kt_copy *copy; /* the copy that is being inferred; NULL outside of functions */
  kt_stmts *out; /* receives the typed statements */
  kjit_type result_annotation;
  bool is_changed;  /* a guess has changed in this round */
  bool may_wait;    /* a statement may be skipped until other statements determine a type */
  jmp_buf *on_wait; /* jumps out of a statement that needs such a type */
  /* the cause of the first skipped statement in this round: a var, or a function that is being
   * inferred and whose result is unknown; NULL means none */
  const ki_decl *waits_for;
  kj_location waits_at;
  /* Other statements determine no further types. Statements inside of skipped statements are now
   * inferred, because they might determine one. */
  bool looks_inside;
  bool is_quiet;       /* inside an expression that is not evaluated */
  kt_level level;      /* level of the current control flow */
  kt_level left_level; /* level of the control flow of threads that have returned */
  /* the same for threads that have left the current iteration of the innermost loop */
  kt_level skipped_level;
  uint32_t range_count;   /* number of enclosing grid_range and block_range loops */
  bool is_range_body;     /* the innermost loop is a grid_range or block_range */
  uint32_t runtime_count; /* number of shared arrays whose extents the launch determines */
  uint64_t local_bytes, shared_bytes;
  bool wraps;               /* the function is `@wrap` or `@numba` */
  bool has_numba_types;     /* the function is `@numba` */
  bool is_cast;             /* inside an explicit conversion of an untyped number */
  KJ_LIST(kt_level) levels; /* level of each variable, by its index */
  KJ_LIST(kt_constant_use) constant_uses;
  uint32_t temporary_count;
};

/* ---- infer.c ---- */

/* Returns the instance of a function for these arguments. Infers it if it is new. */
kt_inferred *kt_get_inferred(kt_scope *s, const ki_function *function, const kt_bound *bounds,
                             kj_location location);
/* Discards the instances that a statement has begun before it was skipped. The statement needs an
 * unknown type, possibly because a function that it calls, directly or not, needs the result of s's
 * function. records and depth are the values of the inference before the statement. */
void kt_abandon_calls(kt_scope *s, size_t records, uint32_t depth);
/* Before another round of a body: discards the instances that used a guess of its result that has
 * changed since, so that they are inferred again. */
void kt_drop_outdated(kt_scope *s);
/* expand_builtins.c: replaces the built-ins whose code is a func of lib/library by calls of it.
 * Runs after inference, because derivatives have rules for the built-ins. */
void kt_expand_builtins(kt_inference *inference);
/* Reports that decl is called at location while it is being inferred, and no return gives its
 * type. */
_Noreturn void kt_fail_runaway(kt_scope *s, const ki_decl *decl, kj_location location);
/* Returns the type of the returned values for a guess that can be weak. */
kjit_type kt_concrete_result(kjit_type guess);
/* Adds a record without inferring it. */
kt_inferred *kt_add_inferred(kt_inference *inference, const ki_function *function,
                             const kt_bound *bounds, kt_modes modes);

bool kt_equal_bound(const kt_bound *a, const kt_bound *b);
/* Describes the bound for messages. */
const char *kt_bound_text(kt_compilation *c, const kt_bound *bound);

/* ---- captured.c ---- */

/* bind_back(f, values): whether expr is such a call, and its callee. The values are evaluated at
 * the place of bind_back. */
bool kt_is_bind_back(const ki_expr *expr);
/* Evaluates a captured argument and sets its bound. *place is the value, or NULL for a callee or
 * type. */
void kt_capture_value(kt_scope *s, const ki_expr *expr, kt_bound *bound, kt_expr **place);
kt_callee kt_bind_back(kt_scope *s, const ki_expr *call);
/* Appends the captured values of a callee that is passed to a func to the arguments of the call. */
void kt_hand_over(kt_scope *s, const kt_callee *callee, kt_exprs *arguments);
/* Returns the callee as it appears in the instance that received it as its parameter decl. */
kt_callee kt_receive_callee(kt_scope *s, const kt_callee *handed, const ki_decl *decl);
bool kt_equal_callee(const kt_callee *a, const kt_callee *b);
const char *kt_callee_text(kt_compilation *c, const kt_callee *callee);

/* ---- lib/derive/callee.c ---- */

/* Whether expr is `jvp(f)`, `vjp(f)` or `grad(f)`, and its callee. */
bool kd_is_derivative(const ki_expr *expr);
kt_callee kd_derive_callee(kt_scope *s, const ki_expr *expr);
/* Infers a call of a derivative. */
kt_expr *kd_infer_call(kt_scope *s, const ki_expr *call, const kt_callee *callee);
/* Emits the statements of a loop with `@interleave`, its iterations side by side. Variables with an
 * index below `outer` exist outside of the loop. Emits nothing and returns false if the iterations
 * depend on each other or have no common loop. Refuses a number of iterations that is not constant
 * or too large. */
bool kd_interleave(kt_scope *s, const kt_stmt *loop, size_t outer, kj_location location);

/* ---- infer_body.c ---- */

void kt_infer_body(kt_inference *inference, kt_inferred *record);

/* Sets is_recursive and properties of recursive functions. If a function was still being inferred
 * when it was called, its caller received incomplete information; this function completes it. Must
 * run while instances have the numbers of their records. */
void kt_find_recursion(kt_inference *inference);

/* Initializes a scope without variables, for expressions outside of functions. */
void kt_init_scope(kt_scope *s, kt_inference *inference);
/* Counts one statement or expression toward the limits of the compilation. */
void kt_count_work(kt_scope *s, kj_location location);
/* Adds a variable to the scope. level is its level as far as it is known. */
kt_var *kt_add_variable(kt_scope *s, kt_tvar_kind kind, const char *name, kjit_type type,
                        kj_location location, kt_level level);
void kt_bind_variable(kt_scope *s, const ki_decl *decl, kt_var *var);
void kt_bind_value(kt_scope *s, const ki_decl *decl, kt_expr *value);

void kt_note_message(kt_scope *s, kj_location location, kjit_severity severity, const char *format,
                     ...) __attribute__((format(printf, 4, 5)));
/* Remarks on f64 arithmetic in a kernel that has no f64 argument. */
void kt_note_double(kt_scope *s, kj_location location);
/* Reports the messages of an instance that is used. */
void kt_report_messages(kt_inference *inference, const kt_inferred *record);

/* ---- infer_kernel.c ---- */

/* Binds the parameters of the kernel to the arguments of the request. */
kt_bound *kt_bind_signature(kt_inference *inference, const ki_function *kernel);
/* Evaluates @block before the body of the kernel, which can use its values through blockDim. */
void kt_infer_block_shape(kt_scope *s);
/* Evaluates @grid, @launch_bounds and similar attributes after the body is inferred. */
void kt_infer_launch(kt_scope *s);

/* ---- infer_stmt.c ---- */

void kt_infer_block(kt_scope *s, const ki_stmts *stmts, kt_stmts *out);
void kt_emit(kt_scope *s, kt_stmt *stmt);
void kt_infer_while(kt_scope *s, const ki_stmt *stmt);
void kt_infer_for(kt_scope *s, const ki_stmt *stmt);
int kt_infer_unroll(kt_scope *s, const ki_stmt *stmt);
/* Infers the body of a loop under a level. is_range: the iterations are distributed over
 * threads. */
void kt_infer_loop_body(kt_scope *s, const ki_stmt *stmt, kt_stmts *body, kt_level level,
                        bool is_range);
/* Returns the common type of start, stop and step of a `range`, which is the type of the
 * variable. */
kjit_type kt_range_type(kt_scope *s, const kt_exprs *values, kj_location location);
/* Converts extents to the index type. */
kt_exprs kt_convert_extents(kt_scope *s, const kt_exprs *values);
/* Returns the items of a tuple as separate values. The tuple is evaluated once. */
kt_exprs kt_take_items(kt_scope *s, kt_expr *tuple, kj_location location);
kt_level kt_level_of_list(const kt_scope *s, const kt_exprs *values);
/* Fails if the number of items of a tuple differs from the number of names. */
void kt_check_names(kt_scope *s, size_t names, const kt_expr *value, kj_location location);
/* Whether the last statement is a jump, which can come from a static `if`. The statements after the
 * `if` then belong to the other branch and are not typed. */
bool kt_has_jumped(const kt_stmts *out);

/* ---- infer_copies.c: loops whose body is inferred once for each item or number, and loops over
 * the indices of an array ---- */

void kt_infer_items_loop(kt_scope *s, const ki_stmt *stmt);
void kt_infer_static_range(kt_scope *s, const ki_stmt *stmt, const kt_exprs *values);
void kt_infer_shape_loop(kt_scope *s, const ki_stmt *stmt, kt_expr *shape);
/* Restores the state outside of all copies after an error inside of copies. */
void kt_leave_copies(kt_scope *s);
/* Calls visit for all guesses of the function, including the guesses of its copies. */
void kt_each_guess(const kt_scope *s,
                   void (*visit)(void *data, const ki_decl *decl, kt_guess *guess), void *data);

/* ---- tuple_value.c: operators on tuples, and items selected at run time ---- */

/* Infers `t[i]` or `t[1:]`. */
kt_expr *kt_infer_item(kt_scope *s, const ki_expr *expr, kt_expr *tuple);
/* Infers `t + u`, `t == u` or `t < u`. One of x and y is a tuple. Returns NULL for other
 * operators. */
kt_expr *kt_make_tuple_binary(kt_scope *s, kjit_op op, kt_expr *x, kt_expr *y,
                              kj_location location);

/* ---- infer_expr.c ---- */

void kt_infer_print(kt_scope *s, const ki_stmt *stmt);

/* ---- infer_variable.c ---- */

/* Assigns a value to place->var. The value can change the guess about the variable. */
struct kt_place;
void kt_assign_variable(kt_scope *s, const struct kt_place *place, kt_expr *value,
                        kj_location location);
kt_stmt *kt_new_assign(kt_scope *s, kt_var *var, kt_expr *value, kj_location location);
void kt_emit_assign(kt_scope *s, kt_var *var, kt_expr *value, kj_location location);
/* Returns the current value in a form that can be used any number of times: a temporary, or the
 * value itself if it is a constant or cannot change. */
kt_expr *kt_keep_value(kt_scope *s, kt_expr *value);
/* Like kt_keep_value, but inserts statements before statement *at of s->out and increments *at
 * accordingly. */
kt_expr *kt_keep_at(kt_scope *s, kt_expr *value, size_t *at);
/* Evaluates a value that is not used, for its effects and checks. */
void kt_drop_value(kt_scope *s, kt_expr *value);
/* Whether evaluating the value is free and gives the same result everywhere in the function. */
bool kt_is_stable(const kt_expr *value);
/* Declares a let, or a var with its first value. */
void kt_declare(kt_scope *s, const ki_decl *decl, kt_expr *value);
/* Declares a var without a value. */
void kt_declare_open(kt_scope *s, const ki_decl *decl);
/* Replaces KJ_MEANS_UNTYPED by a variable before an assignment. Its type is KJIT_ANY until the
 * assigned value determines it. */
void kt_start_untyped(kt_scope *s, const ki_decl *decl);

/* ---- variable_type.c ---- */

/* Raises the guess for a var whose type depends on its assignments so that it includes the assigned
 * value. Returns the value for the assignment, which keeps its own type. */
kt_expr *kt_raise_guess(kt_scope *s, const ki_decl *decl, kt_expr *value);
/* Whether the type is an array or a tuple with an array in it. An annotation of such a var
 * restricts the arrays, and the var refers to the memory of the assigned array. */
bool kt_holds_array(const kt_compilation *c, kjit_type type);
/* Returns the value of a var before it is assigned. */
kt_expr *kt_make_unset(kt_scope *s, kjit_type type, kj_location location);
/* Skips the current statement until the next round, because the type of the var is unknown. */
_Noreturn void kt_wait_for_type(kt_scope *s, const ki_decl *decl, kj_location location);
/* Calls run. Returns false if a statement or expression in run needs an unknown type; then the
 * scope is restored, and another round follows. */
bool kt_try_without_waiting(kt_scope *s, void (*run)(kt_scope *s, void *data), void *data);
/* Adds a check before a read of a var: if the check of uninitialized memory is enabled, a thread
 * that has not assigned the var fails. */
void kt_check_set(kt_scope *s, const ki_decl *decl, kj_location location);

/* ---- infer_expr.c, typed.c, operators.c ---- */

/* Infers the value of an expression: a scalar (can be weak), array or tuple. Fails if it has no
 * value. */
kt_expr *kt_infer_expr(kt_scope *s, const ki_expr *expr);
/* Like kt_infer_expr, but also accepts a call without a result. */
kt_expr *kt_infer_effect(kt_scope *s, const ki_expr *expr);
/* Infers a condition, which is a bool or an integer, and converts it to bool. */
kt_expr *kt_infer_condition(kt_scope *s, const ki_expr *expr);
/* Infers all expressions of a list from left to right. */
void kt_infer_list(kt_scope *s, const ki_exprs *exprs, kt_exprs *values);
/* Returns an integer that is known at compile time. Otherwise fails; `what` names its use in the
 * message. */
int64_t kt_infer_constant(kt_scope *s, const ki_expr *expr, const char *what);
/* Returns the type of an expression without evaluating it. */
kjit_type kt_infer_type_of(kt_scope *s, const ki_expr *expr);
/* Converts a weak COND to a type. */
kt_expr *kt_give_arms_type(kt_scope *s, const kt_expr *cond, kjit_type type);
/* Returns the common type of alternative values: numbers, tuples (item by item) or equal types.
 * Returns KJIT_ANY if there is none. */
kjit_type kt_join_values(kt_scope *s, kjit_type a, kjit_type b, kj_location location);
/* Converts one of the alternative values to their common type. */
kt_expr *kt_give_type(kt_scope *s, kt_expr *value, kjit_type type);
/* Whether the result of an operator stays weak: one operand is an integer and the other a var that
 * has only been assigned float literals. If the result is later combined with a float, it gets the
 * type of this float; otherwise it is f64. */
bool kt_stays_open(const kt_scope *s, const kt_expr *x, const kt_expr *y);
/* Converts a number to bool. */
kt_expr *kt_make_condition(kt_scope *s, kt_expr *value);
/* Returns the constant 1 of the type. */
kt_expr *kt_make_one(kt_scope *s, kjit_type type, kj_location location);
kt_expr *kt_make_unary(kt_scope *s, kjit_op op, kt_expr *x, kj_location location);
kt_expr *kt_make_binary(kt_scope *s, kjit_op op, kt_expr *x, kt_expr *y, kj_location location);
/* Like the functions above, but use the rules of kernel IR even in functions that are `@numba`. */
kt_expr *kt_make_own_binary(kt_scope *s, kjit_op op, kt_expr *x, kt_expr *y, kj_location location);
kt_expr *kt_make_own_unary(kt_scope *s, kjit_op op, kt_expr *x, kj_location location);
kt_expr *kt_make_cond(kt_scope *s, kt_expr *condition, kt_expr *x, kt_expr *y,
                      kj_location location);
/* Returns a tuple type. Fails if the tuple has too many numbers; the limit is needed because each
 * function can put its argument into a tuple twice. */
kjit_type kt_tuple_type(kt_scope *s, const kjit_type *items, uint32_t count, kj_location location);
kt_expr *kt_make_tuple(kt_scope *s, const kt_exprs *items, kj_location location);
/* Returns an item of a tuple; for a TUPLE node the expression of the item itself. */
kt_expr *kt_make_item(kt_scope *s, kt_expr *tuple, uint32_t index, kj_location location);
/* Whether an item of a TUPLE node can be used without evaluating the other items. */
bool kt_can_take_item(const kt_scope *s, const kt_expr *tuple, uint32_t index);
kt_expr *kt_make_var(kt_scope *s, kt_var *var, kj_location location);
static inline kt_expr *kt_copy_texpr(kt_scope *s, const kt_expr *expr)
{
  return kt_clone_texpr(s->c, expr, NULL, NULL);
}
kt_level kt_level_of(const kt_scope *s, const kt_expr *expr);

/* ---- infer_type.c ---- */

kjit_type kt_intern_array(kt_scope *s, const ki_type_info *info);
/* Returns the type for a type in the source. For the arrays of declarations use
 * kt_declare_storage. */
kjit_type kt_infer_type(kt_scope *s, const ki_type_expr *type);
/* Returns a pointer type. The element must have a size. Fails if types nest too deeply. */
kjit_type kt_pointer_type(kt_scope *s, kjit_type element, bool read_only, kj_location location);
/* Whether the expression names a type (`f32`, `dtype(x)`). If so, sets *type. */
bool kt_as_type(kt_scope *s, const ki_expr *expr, kjit_type *type);
/* Whether the expression names a function (`add`, a func parameter). If so, sets *callee. */
bool kt_as_callee(kt_scope *s, const ki_expr *expr, kt_callee *callee);
/* Maximum size of the local arrays of an instance. */
enum { KJ_LOCAL_BYTES_LIMIT = 64 * 1024 };
void kt_declare_storage(kt_scope *s, const ki_decl *decl);
/* Converts a scalar or array to its annotation. Fails if this is not allowed. `what` describes the
 * value in messages, such as "argument `x`". */
kt_expr *kt_fit_annotation(kt_scope *s, kt_expr *value, kjit_type annotation, const char *what,
                           kj_location location);
/* Whether an array of type `from` can be used as type `to`. */
bool kt_array_fits(const kt_compilation *c, kjit_type from, kjit_type to);
/* Whether scalar type `to` represents every value of `from`, or both are floats. */
bool kt_scalar_fits(const kt_compilation *c, kjit_type from, kjit_type to);

/* ---- infer_kernel.c ---- */

/* kt_has_runtime_extents: whether some extents of a shared array are unknown at compile time.
 * kt_check_runtime_extents then checks that the dispatcher can evaluate them. */
bool kt_has_runtime_extents(kt_scope *s, const ki_decl *decl);
void kt_check_runtime_extents(kt_scope *s, const ki_decl *decl);

/* ---- record_fields.c ---- */

/* For x[...] where x is a field of an array of structs: returns that field of the indexed element.
 * Returns NULL if x is something else, or if the indices contain slices or are fewer than the
 * dimensions. */
const ki_expr *kt_move_index(kt_scope *s, const ki_expr *expr);
/* If expr is a field of all elements of an array of structs, returns the array, which has the same
 * extents. The field must not be an array, and the array has at most most_rank dimensions. Returns
 * any other expr unchanged. */
const ki_expr *kt_array_of_fields(kt_scope *s, const ki_expr *expr, uint32_t most_rank);
/* Reads the field of one element of that array. */
kt_expr *kt_read_fields(kt_scope *s, const ki_expr *field, kt_expr *element);
/* For a let whose value is a field of all elements of an array of structs, makes the let an alias
 * of this field. Returns false if value is something else, or if the array is a variable that can
 * be assigned again. */
bool kt_name_fields(kt_scope *s, const ki_decl *let, const ki_expr *value);
/* For an argument such as a.x: sets *base to the array of structs and returns the fields as in
 * kt_bound. Returns NULL for any other expr. */
const ki_expr *kt_split_fields(kt_scope *s, const ki_expr *expr, const ki_expr **base);
bool kt_equal_fields(const ki_expr *a, const ki_expr *b);
/* Makes a parameter an alias of these fields of an array of structs. */
void kt_receive_fields(kt_scope *s, const ki_decl *param, const ki_expr *fields, kt_var *array);
/* For `a.x.shape`, `.size` or `.ndim` of a field of an array of structs: returns the property of
 * the array. Returns NULL for any other expr. */
const ki_expr *kt_move_property(kt_scope *s, const ki_expr *expr);

/* ---- infer_index.c ---- */

/* Infers x[...]: an element, a view, an element of a value, or an item of a tuple. */
kt_expr *kt_infer_index(kt_scope *s, const ki_expr *expr);
/* Like kt_infer_index, for a base that is already evaluated. An element in memory becomes a LOAD,
 * and a component of it becomes an array. */
kt_expr *kt_index_value(kt_scope *s, const ki_expr *expr, kt_expr *base);
/* Under Numba's types, `record[1]` is the field with this number of a struct, or of a reference to
 * one. Returns false if base has another type or the index is a slice. */
bool kt_find_numbered(kt_scope *s, const ki_expr *expr, kjit_type base, ki_component *component);
/* Infers the indices in x[...] where x is a vector or an array inside a struct. */
kt_exprs kt_infer_part_indices(kt_scope *s, const ki_expr *expr, kjit_type type);
/* Returns the element at these indices of a vector or an array inside a struct. */
kt_expr *kt_take_part(kt_scope *s, kt_expr *value, const kt_exprs *indices, kj_location location);
/* Infers a property such as `a.shape`. Returns NULL if arrays have no property of that name. */
kt_expr *kt_infer_property(kt_scope *s, const ki_expr *expr, kt_expr *array);

/* ---- infer_field.c ---- */

/* Returns a component (a field, an item or a lane) of the only element of an array of rank 0, as an
 * array. */
kt_expr *kt_make_member(kt_scope *s, kt_expr *only, ki_component component, kj_location location);
/* Returns all lanes of a vector, the only element of an array of rank 0, as a one-dimensional
 * array. */
kt_expr *kt_make_lanes(kt_scope *s, kt_expr *only, kj_location location);
kt_expr *kt_new_load(kt_scope *s, kt_expr *array, const kt_exprs *indices, kj_location location);
/* Returns the index 0, for the element that a pointer points to. */
kt_exprs kt_first_index(kt_scope *s, kj_location location);
bool kt_is_field_of_only(const kt_scope *s, kjit_type array, const char *name,
                         ki_component *component);
/* Report that the field in expr does not exist, for an array and for any other value. */
_Noreturn void kt_fail_array_field(kt_scope *s, const ki_expr *expr, kjit_type array);
_Noreturn void kt_fail_field(kt_scope *s, const ki_expr *expr, kjit_type type);

kt_expr *kt_infer_field(kt_scope *s, const ki_expr *expr);
/* Returns a component of a value. If the value is in memory, reads this component only. */
kt_expr *kt_read_component(kt_scope *s, kt_expr *value, ki_component component,
                           kj_location location);
/* Returns a lane of a vector at an index that is not a constant. */
kt_expr *kt_read_lane(kt_scope *s, kt_expr *vector, kt_expr *index, kj_location location);
/* Returns the array that a pointer points to. Its extent is unknown. */
kt_expr *kt_make_pointed(kt_scope *s, kt_expr *pointer, kj_location location);

/* ---- infer_place.c ---- */

/* A step from a value to a part of it: to a component, or with indices to an element. */
typedef struct kt_path_step {
  uint32_t component;
  kt_exprs indices;
  kjit_type type; /* type of the part */
} kt_path_step;
/* An lvalue. */
typedef struct kt_place {
  kt_var *var; /* the variable; NULL means that the lvalue is in memory */
  const ki_decl *decl;
  kt_expr *array;
  kt_exprs indices;
  /* path from the variable or element to the part; empty means the whole variable or element */
  KJ_LIST(kt_path_step) steps;
  /* Type of the stored value. Weak for a var whose type is not known yet. For an array inside a
   * struct in memory, the type that it has as a value. */
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
/* Whether the index is `-` and a literal, which counts from the end. If so, sets *distance. */
bool kt_is_from_end(const ki_expr *expr, __int128 *distance);
/* Converts an integer to KJIT_INDEX for use as an index, extent or step. A u64 out of range becomes
 * the maximum index, so it is out of bounds as well and not negative. */
kt_expr *kt_convert_to_index(kt_scope *s, kt_expr *value, kj_location location);
/* Returns an index into a dimension of this extent. If the function is `@wrap`, a negative index
 * counts from the end. */
kt_expr *kt_wrap_index(kt_scope *s, kt_expr *index, kt_expr *extent);

/* ---- operand_order.c ---- */

/* State of a list of operands that are inferred in the order of evaluation. Initialize it with
 * 0. */
typedef struct kt_order {
  size_t mark;             /* number of statements in s->out when the last operand began */
  kt_effects before, next; /* effects of the operands before the last operand, and of the last */
  bool has_statements;     /* the last operand has added statements */
  bool has_conflict;       /* the last operand does not commute with some operand before it */
} kt_order;
/* Begins an operand. Call it before the operand is inferred. */
void kt_begin_operand(kt_scope *s, kt_order *order);
/* End an operand: a value (NULL for a func or a type, which is not evaluated), an lvalue, or an
 * element whose address is taken. Such an element is a LOAD node that does not load. */
void kt_end_operand(kt_scope *s, kt_order *order, const kt_expr *value);
void kt_end_place(kt_scope *s, kt_order *order, const kt_place *place);
void kt_end_address(kt_scope *s, kt_order *order, const kt_expr *load);
/* Preserve the order of evaluation. If an earlier operand (can be NULL) does not commute with the
 * last operand, they keep its value in a temporary before the statements of the last operand.
 * Values of a list are kept in their order. */
void kt_settle(kt_scope *s, kt_order *order, kt_expr **values, size_t count);
void kt_settle_place(kt_scope *s, kt_order *order, kt_place *place);
void kt_settle_address(kt_scope *s, kt_order *order, kt_expr **load);
/* The same for an array, or another value that is indexed. Returns the operand to use. */
kt_expr *kt_settle_array(kt_scope *s, kt_order *order, kt_expr *array);
/* Evaluates array and indices of an lvalue here, so that it can be used twice. */
void kt_keep_place(kt_scope *s, kt_place *place);

/* ---- composed_value.c ---- */

bool kt_is_struct(const kt_compilation *c, kjit_type type);
bool kt_is_vector(const kt_compilation *c, kjit_type type);
bool kt_is_complex(const kt_compilation *c, kjit_type type);
bool kt_is_pointer(const kt_compilation *c, kjit_type type);
/* Returns whether the type is that of an array field in a struct value. kt_is_array returns false
 * for such a type. */
bool kt_is_value_array(const kt_compilation *c, kjit_type type);
/* whether the type is a struct, an array in a struct, a vector, a complex number or a pointer */
bool kt_is_composed(const kt_compilation *c, kjit_type type);
/* Finds a component by name: a field of a struct, a lane .x .y .z .w of a vector, .real or
 * .imag. */
bool kt_find_component(const kt_compilation *c, kjit_type type, const char *name,
                       ki_component *component);
/* Returns an aggregate with these components, each of its own type. They are evaluated in order. */
kt_expr *kt_make_composed(kt_scope *s, kjit_type type, const kt_exprs *parts, kj_location location);
/* Converts a value to a type for storing it. Numbers convert as in stores, a pointer can become
 * const, and arrays with static extents and tuples become arrays inside structs. Fails otherwise;
 * `what`, such as "the field", describes the value. */
kt_expr *kt_fit_value(kt_scope *s, kt_expr *value, kjit_type type, const char *what,
                      kj_location location);
/* Returns the indices of the element with the row-major number `place` in an array with static
 * extents. */
kt_exprs kt_indices_of(kt_scope *s, const ki_type_info *array, int64_t place, kj_location location);
/* Infers the construction of a struct, `S(a, b)`, from the values of all fields. */
kt_expr *kt_construct_struct(kt_scope *s, const kt_exprs *values, kjit_type type,
                             kj_location location);
/* Returns the value of a type whose components are all 0. */
kt_expr *kt_make_zero(kt_scope *s, kjit_type type, kj_location location);
/* Returns the number of scalars and pointers in a value of the type. */
uint64_t kt_count_parts(const kt_compilation *c, kjit_type type);

/* ---- composed_value.c: vectors and complex numbers ---- */

bool kt_has_parts(const kt_compilation *c, kjit_type type); /* vector or complex */
/* Returns the type of a lane or of the real part. Returns any other type unchanged. */
kjit_type kt_part_type(const kt_compilation *c, kjit_type type);
kjit_type kt_vector_of(kt_scope *s, kjit_type element, uint32_t lanes);
/* Returns a type like `like` with another component type: a vector with as many lanes, or a complex
 * type. */
kjit_type kt_with_part(kt_scope *s, kjit_type like, kjit_type part);
/* Returns a vector or complex number. `make` computes each component from the same component of a
 * value. */
typedef kt_expr *(*kt_make_part)(kt_scope *s, kt_expr *part, uint32_t index, const void *data);
kt_expr *kt_map_parts(kt_scope *s, kjit_type type, kt_expr *value, kt_make_part make,
                      const void *data, kj_location location);
/* Implements kt_convert if a type is a vector or complex: converts each component. A number fills
 * all lanes, or becomes the real part. */
kt_expr *kt_convert_parts(kt_scope *s, kt_expr *value, kjit_type type, kj_location location);
/* Whether a value of type `from` has enough components for `to`: the same number of lanes, or a
 * complex type. A number always has. */
bool kt_keeps_parts(const kt_compilation *c, kjit_type from, kjit_type to);
/* Implements kt_promote if a type is a vector or complex. Returns KJIT_ANY if there is no common
 * type, for example because the numbers of lanes differ. */
kjit_type kt_promote_parts(kt_scope *s, kjit_type a, kjit_type b, kj_location location);
/* Infers the construction of a vector or complex number: `f32x4(v.xy, 0, 1)`, `c64(re, im)`. */
kt_expr *kt_construct_parts(kt_scope *s, const kt_exprs *values, kjit_type type,
                            kj_location location);
/* Infers a selection of lanes by letters, `v.xyz`. Returns NULL if the letters do not match
 * lanes. */
kt_expr *kt_infer_swizzle(kt_scope *s, const ki_expr *expr, kt_expr *vector);

/* ---- dates.c ---- */

/* Whether a type is a date of NumPy (ir/date.h). */
bool kt_is_date(const kt_scope *s, kjit_type type);
/* Implement kt_make_binary and kt_make_unary if an operand is a date. */
kt_expr *kt_make_date_binary(kt_scope *s, kjit_op op, kt_expr *x, kt_expr *y, kj_location location);
kt_expr *kt_make_date_unary(kt_scope *s, kjit_op op, kt_expr *x, kj_location location);
/* Implements kt_apply_rule if an operand is a date. Returns NULL if no operand is, or the built-in
 * does not take dates. */
struct kt_operands;
kt_expr *kt_apply_date_rule(kt_scope *s, const struct kt_operands *operands);
/* Returns the common type of two dates, or KJIT_ANY if there is none or one type is not a date. */
kjit_type kt_join_dates(kt_scope *s, kjit_type a, kjit_type b);
/* Converts a date to the unit of a date type, or an integer to a date with this count. Returns NULL
 * for other values. Fails if the units cannot be converted. */
kt_expr *kt_convert_date(kt_scope *s, kt_expr *value, kjit_type type, kj_location location);
/* Returns the count of a date as a number of the type. */
kt_expr *kt_count_date(kt_scope *s, kt_expr *value, kjit_type type, kj_location location);

/* ---- operators_lanes.c ---- */

/* Implement kt_make_binary and kt_make_unary if an operand is a vector or complex. */
kt_expr *kt_make_binary_parts(kt_scope *s, kjit_op op, kt_expr *x, kt_expr *y,
                              kj_location location);
kt_expr *kt_make_unary_parts(kt_scope *s, kjit_op op, kt_expr *x, kj_location location);
/* Implements kt_apply_rule if an operand is a vector or complex. takes_lanes: the rule applies to
 * each lane of a vector separately. Returns NULL if the rule takes such operands as a whole. */
kt_expr *kt_apply_rule_parts(kt_scope *s, const struct kt_operands *operands, bool takes_lanes);

/* ---- infer_view.c ---- */

/* The selection in one dimension of an array. */
typedef struct kt_slice {
  bool is_index;          /* a single index, which removes the dimension */
  bool is_whole;          /* the whole dimension */
  kt_expr *start;         /* the index, of any integer type, or the start of the slice, i64 */
  kt_expr *extent, *step; /* i64, for a slice; step NULL means 1 */
} kt_slice;
kt_slice kt_infer_slice(kt_scope *s, const ki_expr *slice, const kt_expr *array,
                        uint32_t dimension);
/* Returns the element at the indices as an array of rank 0. */
kt_expr *kt_make_only(kt_scope *s, kt_expr *array, const kt_exprs *indices, kj_location location);
/* Returns a reference to a struct that is an element of an array: an array of rank 0, whose fields
 * are lvalues that refer to the element. Returns any other value unchanged. */
kt_expr *kt_refer(kt_scope *s, kt_expr *value, kj_location location);
/* For @record_copies: returns a result in which each reference to a record is replaced by a
 * copy. */
kt_expr *kt_copy_referred(kt_scope *s, kt_expr *value, kj_location location);
/* Returns a view with these slices, or the array itself if all of them are whole. */
kt_expr *kt_make_view(kt_scope *s, kt_expr *array, const kt_slice *slices, kj_location location);
/* Returns the known alignment in bytes of the first element of a shared or local array; 0 means
 * unknown. */
uint32_t kt_find_start(kt_scope *s, const kt_expr *array);
/* Returns the bound of a parameter for a run-time value. It contains the alignment of an array's
 * start, because that determines the element types of its views. A func therefore has a separate
 * instance for each alignment. */
kt_bound kt_value_bound(kt_scope *s, const kt_expr *value);
kt_expr *kt_make_transpose(kt_scope *s, kt_expr *array, kj_location location);
/* Returns a type that arrays of both types can be used as. It drops layout and static extents if
 * they differ. Returns KJIT_ANY if there is none. */
kjit_type kt_join_arrays(kt_scope *s, kjit_type a, kjit_type b);
/* Returns an array type without static extents. */
kjit_type kt_forget_extents(kt_scope *s, kjit_type array);
/* Converts an array to such a type. */
kt_expr *kt_give_array_type(kt_scope *s, kt_expr *array, kjit_type type);

/* ---- symbols.c ---- */

/* Numbers the instances and chooses their symbols. Reports extern funcs whose symbols conflict. */
void kt_name_instances(kt_compilation *c);
/* Whether the symbol of an extern func is its name, because another program links the code.
 * Otherwise the symbol identifies the code that the func is bound to. */
bool kt_has_plain_symbol(const kt_compilation *c, const ki_function *function);
/* Whether the extern func keeps its name, because linked GPU code defines it. */
bool kt_is_linked(const kt_compilation *c, const ki_function *function);

/* ---- infer_function_call.c ---- */

/* Infers a call of the callee with the arguments of `expr`, which may name another function. asker
 * is the built-in that makes the call, which passes no arrays; NULL means that the source makes the
 * call. */
kt_expr *kt_infer_function_call(kt_scope *s, const ki_expr *expr, const kt_callee *callee,
                                const char *asker);
void kt_refuse_kernel(kt_scope *s, const ki_function *function, kj_location location);
/* Returns the instance that kt_infer_function_call calls, and the arguments for run time. A float
 * literal for a parameter in `variable` (bit i: parameter i) is passed at run time, too, instead of
 * being part of the instance's key. */
kt_inferred *kt_bind_call(kt_scope *s, const ki_expr *expr, const kt_callee *callee,
                          const char *asker, uint64_t variable, kt_exprs *arguments);
/* Returns the call of an instance with these arguments. */
kt_expr *kt_call_instance(kt_scope *s, kt_inferred *record, const kt_exprs *arguments,
                          kj_location location);
/* Returns the type of a parameter's annotation, given the other parameters; KJIT_ANY means none.
 * Parameters without a value have KJ_BOUND_NONE. */
kjit_type kt_infer_annotation(kt_inference *inference, const ki_function *function,
                              const kt_bound *bounds, size_t index);

/* ---- infer_call.c ---- */

kt_expr *kt_infer_call(kt_scope *s, const ki_expr *expr);
/* Infers a built-in that is used as a name, such as laneid and pi, or threadIdx with a field. */
kt_expr *kt_infer_builtin_name(kt_scope *s, const ki_expr *expr, const ki_builtin *builtin,
                               const char *field);
/* Fails if a call has fewer than `least` or more than `most` arguments. */
void kt_check_count(kt_scope *s, const char *name, size_t count, size_t least, size_t most,
                    kj_location location);
/* Converts the arguments of a call of an extern func for the C ABI. Fails for types that the C ABI
 * does not support. */
void kt_bind_extern_call(kt_scope *s, const ki_function *function, kt_bound *bounds,
                         kt_expr **arguments, const ki_expr *call);
/* Checks that a value of the type can be passed to or returned by a C function. `what` describes it
 * in the message. */
void kt_check_c_type(kt_scope *s, kjit_type type, const char *what, kj_location location);

/* ---- module_constants.c ---- */

const kt_constant *kt_get_constant(kt_scope *s, const ki_decl *decl);
/* Returns the value of a scalar constant, or the array of an array constant. If the type of the
 * elements is not determined, the result is weak until it is used. */
kt_expr *kt_make_constant(kt_scope *s, const ki_decl *decl, kj_location location);
/* Returns the constant of an array expression with weak elements, or NULL. */
const kt_constant *kt_weak_constant(const kt_scope *s, const kt_expr *array);
/* Returns the element type that the array has if no use determines it. */
kjit_type kt_concrete_element(const kt_constant *constant);
/* Returns the array with elements of the given type. */
kt_expr *kt_make_constant_array(kt_scope *s, const kt_constant *constant, kjit_type element,
                                kj_location location);

/* ---- number_limits.c ---- */

/* Sets .least and .most of the kernel's parameters. Must run after all instances are inferred. */
void kt_find_number_limits(kt_compilation *c);

/* ---- numba.c: types in a function that is `@numba`; only if s->has_numba_types ---- */

/* Implement kt_make_binary and kt_make_unary by Numba's table. Return NULL for operands that the
 * table does not contain (vectors, tuples, bf16); the rules of kernel IR apply to them. */
kt_expr *kt_make_numba_binary(kt_scope *s, kjit_op op, kt_expr *x, kt_expr *y,
                              kj_location location);
kt_expr *kt_make_numba_unary(kt_scope *s, kjit_op op, kt_expr *x, kj_location location);
/* Returns the type of a variable to which values of both types are assigned. Returns KJIT_ANY if
 * the table has no row for the types. */
kjit_type kt_join_numba(kjit_type a, kjit_type b);
/* Returns the type of the variable of a range. Returns KJIT_ANY if the table has no row for the
 * types. */
kjit_type kt_numba_range_type(const kt_exprs *values);
/* Return the type in which `abs`, `min` and `max`, or a math function of floats, are computed,
 * which is also their result type. KJIT_ANY means that the table has no row for the types. */
kjit_type kt_numba_number_type(const kt_exprs *values);
kjit_type kt_numba_float_type(const ki_builtin *builtin, const kt_exprs *values);
/* Returns Numba's type of a literal or another weak value. */
kjit_type kt_numba_literal_type(const kt_expr *value);

/* ---- promote.c ---- */

ki_type_class kt_class_of(const kt_compilation *c, kjit_type type);
bool kt_is_integer(const kt_compilation *c, kjit_type type); /* typed or weak; not bool */
bool kt_is_float(const kt_compilation *c, kjit_type type);   /* typed or weak */
bool kt_is_number(const kt_compilation *c, kjit_type type);  /* bool, integers, floats, weak */
bool kt_is_array(const kt_compilation *c, kjit_type type);
bool kt_is_tuple(const kt_compilation *c, kjit_type type);
/* Returns the common type of two operands of an arithmetic operator. Returns KJIT_ANY if there is
 * none (i64 with u64). */
kjit_type kt_promote(kt_scope *s, kjit_type a, kjit_type b, kj_location location);
/* Like kt_promote, for values that are stored but not computed with: bool stays bool, i8 stays
 * i8. */
kjit_type kt_join(kt_scope *s, kjit_type a, kjit_type b, kj_location location);
/* Converts any number, also a weak expression, to a scalar type. */
kt_expr *kt_convert(kt_scope *s, kt_expr *value, kjit_type type, kj_location location);
/* Converts a value for a store. All conversions except float to integer are allowed. `what`
 * describes the target, such as "element of `x`". */
kt_expr *kt_convert_stored(kt_scope *s, kt_expr *value, kjit_type type, const char *what,
                           kj_location location);
/* Converts a value whose type nothing else determines: weak values become i32, i64 or f64, also as
 * items of tuples. */
kt_expr *kt_make_concrete(kt_scope *s, kt_expr *value);
/* Returns the type that kt_make_concrete gives. */
kjit_type kt_concrete_type(const kt_expr *value);
/* Returns kt_var.wide for a weak integer: the type that it takes if nothing else determines its
 * type and it can need more than 32 bits. */
kjit_type kt_wide_type(const kt_expr *value);
/* Returns the wider of two such types. */
kjit_type kt_wider_type(kjit_type x, kjit_type y);
/* Returns the type of a variable that stores a weak number. */
kjit_type kt_carrier_of(kjit_type weak, kjit_type wide);
/* Returns the weak number whose value is in `carrier`. */
kt_expr *kt_make_weak(kt_scope *s, kt_expr *carrier, kjit_type weak, kjit_type wide);
kt_expr *kt_new_integer(kt_scope *s, kjit_type type, __int128 value, kj_location location);
kt_expr *kt_new_value(kt_scope *s, ki_value value, kj_location location);
/* Returns a float constant. The double is rounded to the type. */
kt_expr *kt_new_number(kt_scope *s, kjit_type type, double value, kj_location location);

/* ---- fold.c: arithmetic at compile time ---- */

/* Fold an operator on constants of one type (SHL and SHR: any integer count). Return NULL if it is
 * not computed at compile time. */
kt_expr *kt_fold_unary(kt_scope *s, kjit_op op, const kt_expr *x, kj_location location);
kt_expr *kt_fold_binary(kt_scope *s, kjit_op op, const kt_expr *x, const kt_expr *y,
                        kj_location location);
kt_expr *kt_fold_compare(kt_scope *s, kjit_op op, const kt_expr *x, const kt_expr *y,
                         kj_location location);
/* Folds a built-in on constants of one type. */
kt_expr *kt_fold_builtin(kt_scope *s, const ki_builtin *builtin, const kt_exprs *values,
                         kj_location location);
/* Returns the decimal text of an integer. */
const char *kt_integer_text(kj_arena *arena, __int128 value);

#endif
