/* What the files of inference share. Other parts see typing/typed.h only.
 *
 * A function body is inferred in rounds: the type of a `var` that its assignments decide
 * (joined.c), the type of the result and which variables differ between threads are guesses that
 * only go up; the round in which no guess changed is the one that is kept. */
#ifndef KJ_TYPING_INFER_H
#define KJ_TYPING_INFER_H

#include "typing/typed.h"

/* How far a value may differ: an order, so that the level of a whole is the greatest level of its
 * parts. */
typedef enum kt_level { KJ_LEVEL_GRID, KJ_LEVEL_BLOCK, KJ_LEVEL_THREAD } kt_level;

static inline kt_level kt_higher_level(kt_level a, kt_level b) { return a > b ? a : b; }

/* What is called: one of the two. */
typedef struct kt_captured kt_captured;
typedef struct kt_derived kt_derived;
typedef struct kt_callee {
  const ki_function *function;
  const ki_builtin *builtin;
  const kt_captured *captured; /* NULL: none */
  const kt_derived *derived;   /* it is a derivative, of what .function is; NULL: itself */
} kt_callee;

/* jvp(of), vjp(of), grad(of). */
struct kt_derived {
  ki_builtin_id kind;
  kt_callee of;
  bool is_chosen;  /* the source says by which parameters; else all that hold floats */
  uint64_t chosen; /* which ones: bit i */
};

typedef enum kt_meaning_kind {
  KJ_MEANS_NOTHING,
  KJ_MEANS_VARIABLE, /* .var */
  /* .value: a constant, a weak tree or a tuple of such and of variables; copied where it is used */
  KJ_MEANS_VALUE,
  KJ_MEANS_CALLEE, /* .callee */
  KJ_MEANS_TYPE,   /* .type */
  KJ_MEANS_FIELDS, /* .fields: a field of all elements of an array of structs */
  KJ_MEANS_UNTYPED /* a var that nothing with a type has been assigned to, in no round */
} kt_meaning_kind;

/* What a declaration stands for in the instance being inferred. */
typedef struct kt_meaning {
  kt_meaning_kind kind;
  kt_var *var;
  kt_expr *value;
  kt_callee callee;
  kjit_type type;
  const ki_expr *fields;
  bool is_scalar; /* a shared scalar: its name is its element */
  /* of a var whose type its assignments decide: what each of them has to fit; KJIT_ANY: nothing */
  kjit_type annotation;
  kt_var *is_set; /* whether the var has been assigned, for the check of that; NULL: not checked */
} kt_meaning;

/* What is guessed about a declaration, kept from round to round. */
typedef struct kt_guess {
  kjit_type type;       /* VAR that its assignments decide the type of: what they join to */
  kj_location location; /* of the value that made it this type */
  kt_level level;
  bool was_read;   /* in this round */
  bool is_default; /* it has met literals only */
} kt_guess;

typedef enum kt_bound_kind {
  KJ_BOUND_NONE,
  KJ_BOUND_VALUE,
  KJ_BOUND_WEAK,
  KJ_BOUND_CONST,
  KJ_BOUND_CALLEE,
  KJ_BOUND_TYPE
} kt_bound_kind;

/* What a parameter is bound to: the parts of an instance's key. */
typedef struct kt_bound {
  kt_bound_kind kind;
  kjit_type type;   /* VALUE, CONST; WEAK: of the literal that it is like; TYPE: itself */
  kjit_type wide;   /* WEAK: as kt_var.wide; else KJIT_ANY */
  __int128 integer; /* CONST: as in ki_value */
  /* VALUE, an array of bytes of the block or the thread: what it begins at a multiple of; else 0 */
  uint32_t start;
  kt_callee callee;
} kt_bound;

/* By bind_back: the last arguments of each call of a func. Handed to a func, the callee is part of
 * the instance's key as bounds say, and what has a value only when the kernel runs are parameters
 * of the instance that its function does not declare. */
struct kt_captured {
  size_t count;
  kt_bound *bounds;
  kt_expr *
    *values; /* as they read in the function that is being inferred; NULL: a callee, a type */
};

typedef struct kt_message {
  kj_location location;
  kjit_severity severity;
  const char *text;
} kt_message;

/* An instance and what only inference knows about it. */
typedef struct kt_inferred kt_inferred;
typedef struct kt_scope kt_scope;
struct kt_inferred {
  kt_instance *instance;
  const kt_bound *bounds; /* one for each parameter of the function */
  bool is_done;
  bool is_reentered; /* called while under way */
  /* instance->result is known before the body is: a call of itself may ask for it */
  bool has_fixed_result;
  kjit_type result; /* guess: weak types too; KJIT_ANY: no return yet */
  /* the first guess of the result that a call in another function used; KJIT_ANY: no call did */
  kjit_type taken_result;
  kt_scope *scope; /* while the body is inferred */
  /* lib/derive: the record that it is the derivative of; NULL: it is no derivative */
  kt_inferred *derived_of;
  ki_builtin_id derivative;
  kt_vars chosen;              /* parameters of derived_of */
  bool is_transpose;           /* derived_of is linear in these, or there is no such derivative */
  kjit_type *derivative_types; /* of the arguments that are derivatives of these */
  kt_expr *constant_result;    /* the body does nothing but return this constant */
  kt_level result_level;
  bool has_grid_range, has_block_range;
  KJ_LIST(kt_message) messages;   /* of the last round */
  KJ_LIST(kt_inferred *) callees; /* of the last round */
  bool is_reached;
  uint64_t work; /* statements and expressions inferred, all rounds together */
};

/* One copy of the body of a static loop: its declarations mean something else in each, so that what
 * is guessed about them is, too. */
typedef struct kt_copy kt_copy;
struct kt_copy {
  const ki_stmt *loop;
  uint32_t number;       /* of the copy */
  kt_copy *outer;        /* the copy that the loop stands in; the function has one, too */
  uint32_t first, count; /* its declarations, by index */
  kt_guess *guesses;     /* of these, while the copy is not being inferred */
  KJ_LIST(kt_copy *) inner;
};

/* Elements of a module constant, before they have met a type. */
typedef struct kt_constant {
  const char *name;
  kjit_type element; /* may be weak */
  bool is_array;
  uint32_t rank;
  int64_t extents[KJ_MAX_RANK];
  KJ_LIST(kt_expr *) elements; /* row-major; none if is_outside */
  bool is_being_made;
  bool is_outside; /* a variable of the program that loads the code */
} kt_constant;

typedef struct kt_inference {
  kt_compilation *c;
  KJ_LIST(kt_inferred *) records; /* instance->id is the position while inference runs */
  kt_constant **constants;        /* by index of the module's declaration */
  size_t constant_count;
  uint32_t block[3]; /* what @block of the kernel says at compile time; 0: not known */
  uint32_t depth;
  bool has_double; /* some argument is f64: no remarks about f64 */
  uint32_t remark_count;
} kt_inference;

/* A constant array made concrete in an instance. */
typedef struct kt_constant_use {
  const kt_constant *constant;
  kjit_type element;
  kt_var *var;
} kt_constant_use;

/* The function being inferred. */
struct kt_scope {
  kt_inference *inference;
  kt_compilation *c;
  kj_arena *arena;
  kt_inferred *record;
  kt_instance *instance;
  const ki_function *function;
  kt_meaning *meanings; /* by index of the declaration, as guesses */
  kt_guess *guesses;
  kt_copy *copy; /* that is being inferred; NULL: no function is */
  kt_stmts *out; /* where statements go */
  kjit_type result_annotation;
  bool is_changed;  /* a guess went up in this round */
  bool may_wait;    /* statements may wait for a type that other statements give */
  jmp_buf *on_wait; /* out of a statement that needs such a type */
  /* what the first statement waits for in this round: a var, or a function under way, whose result
   * is not known yet; NULL: nothing */
  const ki_decl *waits_for;
  kj_location waits_at;
  bool
    looks_inside; /* no other statement tells a type any more: those inside of waiting ones may */
  bool is_quiet;  /* inside something that is not evaluated */
  kt_level level; /* of the control flow here */
  kt_level left_level; /* how far threads that have returned may differ */
  /* the same for those that have left the iteration of the innermost loop */
  kt_level skipped_level;
  uint32_t range_count;   /* grid_range and block_range around here */
  bool is_range_body;     /* the innermost loop is one of them */
  uint32_t runtime_count; /* shared arrays with extents of the launch */
  uint64_t local_bytes, shared_bytes;
  bool wraps;               /* the function is `@wrap` or `@numba` */
  bool has_numba_types;     /* the function is `@numba` */
  bool is_cast;             /* an explicit conversion gives a type to a plain number */
  KJ_LIST(kt_level) levels; /* of variables, by index */
  KJ_LIST(kt_constant_use) constant_uses;
  uint32_t temporary_count;
};

/* ---- infer.c ---- */

/* The instance of a function for its arguments, inferred when it is new. */
kt_inferred *kt_get_inferred(kt_scope *s, const ki_function *function, const kt_bound *bounds,
                             kj_location location);
/* A statement waits for a type, perhaps because a function that it calls, directly or not, needs
 * the result of s's function. Discards the instances that the statement has begun. records and
 * depth: the values of the inference before the statement. */
void kt_abandon_calls(kt_scope *s, size_t records, uint32_t depth);
/* Before another round of a body: discards the instances that used a guess of its result that has
 * changed since, so that they are inferred again. */
void kt_drop_outdated(kt_scope *s);
/* The function decl is called at location while it is inferred, and no return gives its type. */
_Noreturn void kt_fail_runaway(kt_scope *s, const ki_decl *decl, kj_location location);
/* The type of the values that a function returns whose guess of the result may be weak. */
kjit_type kt_concrete_result(kjit_type guess);
/* A new one, not yet inferred. */
kt_inferred *kt_add_inferred(kt_inference *inference, const ki_function *function,
                             const kt_bound *bounds, kt_modes modes);

bool kt_equal_bound(const kt_bound *a, const kt_bound *b);
/* For messages. */
const char *kt_bound_text(kt_compilation *c, const kt_bound *bound);

/* ---- captured.c ---- */

/* bind_back(f, values), and the func that it is. What it captures is evaluated here. */
bool kt_is_bind_back(const ki_expr *expr);
/* What an argument is bound to where it is captured. *place: the value; NULL: a callee, a type. */
void kt_capture_value(kt_scope *s, const ki_expr *expr, kt_bound *bound, kt_expr **place);
kt_callee kt_bind_back(kt_scope *s, const ki_expr *call);
/* Adds what a callee that is handed to a func has captured to the arguments of the call. */
void kt_hand_over(kt_scope *s, const kt_callee *callee, kt_exprs *arguments);
/* The same callee in the instance that it was handed to, as its parameter decl. */
kt_callee kt_receive_callee(kt_scope *s, const kt_callee *handed, const ki_decl *decl);
bool kt_equal_callee(const kt_callee *a, const kt_callee *b);
const char *kt_callee_text(kt_compilation *c, const kt_callee *callee);

/* ---- lib/derive/callee.c ---- */

/* The func that `jvp(f)`, `vjp(f)` or `grad(f)` is. */
bool kd_is_derivative(const ki_expr *expr);
kt_callee kd_derive_callee(kt_scope *s, const ki_expr *expr);
/* A call of a derivative. */
kt_expr *kd_infer_call(kt_scope *s, const ki_expr *call, const kt_callee *callee);

/* ---- infer_body.c ---- */

void kt_infer_body(kt_inference *inference, kt_inferred *record);

/* Sets is_recursive. Calls of a function under way have told their callers only what was known by
 * then: hands that round. While instances are numbered by their records. */
void kt_find_recursion(kt_inference *inference);

/* A scope that has no variables, for expressions outside functions. */
void kt_init_scope(kt_scope *s, kt_inference *inference);
/* One statement or expression, against the limits of the compilation. */
void kt_count_work(kt_scope *s, kj_location location);
/* Variables of a scope; level as far as known. */
kt_var *kt_add_variable(kt_scope *s, kt_tvar_kind kind, const char *name, kjit_type type,
                        kj_location location, kt_level level);
void kt_bind_variable(kt_scope *s, const ki_decl *decl, kt_var *var);
void kt_bind_value(kt_scope *s, const ki_decl *decl, kt_expr *value);

void kt_note_message(kt_scope *s, kj_location location, kjit_severity severity, const char *format,
                     ...) __attribute__((format(printf, 4, 5)));
/* "f64 arithmetic where none was asked for". */
void kt_note_double(kt_scope *s, kj_location location);
/* Those of an instance that is used. */
void kt_report_messages(kt_inference *inference, const kt_inferred *record);

/* ---- infer_kernel.c ---- */

/* What the parameters of the kernel are bound to by the request. */
kt_bound *kt_bind_signature(kt_inference *inference, const ki_function *kernel);
/* @block, before the body of the kernel, where blockDim is what it says. */
void kt_infer_block_shape(kt_scope *s);
/* @grid, @launch_bounds and the like, when the body is done. */
void kt_infer_launch(kt_scope *s);

/* ---- infer_stmt.c ---- */

void kt_infer_block(kt_scope *s, const ki_stmts *stmts, kt_stmts *out);
void kt_emit(kt_scope *s, kt_stmt *stmt);
void kt_infer_while(kt_scope *s, const ki_stmt *stmt);
void kt_infer_for(kt_scope *s, const ki_stmt *stmt);
int kt_infer_unroll(kt_scope *s, const ki_stmt *stmt);
/* The body of a loop, run under a level. is_range: threads share out its iterations. */
void kt_infer_loop_body(kt_scope *s, const ki_stmt *stmt, kt_stmts *body, kt_level level,
                        bool is_range);
/* Start, stop and step of `range` have one type, that of the variable. */
kjit_type kt_range_type(kt_scope *s, const kt_exprs *values, kj_location location);
/* The same for extents: index. */
kt_exprs kt_convert_extents(kt_scope *s, const kt_exprs *values);
/* Items of a tuple as values of their own; the tuple is evaluated once. */
kt_exprs kt_take_items(kt_scope *s, kt_expr *tuple, kj_location location);
kt_level kt_level_of_list(const kt_scope *s, const kt_exprs *values);
/* Fails where a tuple does not have as many items as there are names. */
void kt_check_names(kt_scope *s, size_t names, const kt_expr *value, kj_location location);
/* Control never comes past the last statement: a static `if` has left its jump here. What follows
 * is of the branch not taken, and is not typed. */
bool kt_has_jumped(const kt_stmts *out);

/* ---- infer_copies.c: loops whose body is inferred once for each item or number, and those over
 * the positions of an array ---- */

void kt_infer_items_loop(kt_scope *s, const ki_stmt *stmt);
void kt_infer_static_range(kt_scope *s, const ki_stmt *stmt, const kt_exprs *values);
void kt_infer_shape_loop(kt_scope *s, const ki_stmt *stmt, kt_expr *shape);
/* After an error in the middle of copies: back to the function. */
void kt_leave_copies(kt_scope *s);
/* All guesses of the function, those of copies too. */
void kt_each_guess(const kt_scope *s,
                   void (*visit)(void *data, const ki_decl *decl, kt_guess *guess), void *data);

/* ---- tuple_value.c: operators on tuples, and items chosen at run time ---- */

/* `t[i]`, `t[1:]`. */
kt_expr *kt_infer_item(kt_scope *s, const ki_expr *expr, kt_expr *tuple);
/* `t + u`, `t == u`, `t < u`; at least one is a tuple. NULL: it is no operation on tuples. */
kt_expr *kt_make_tuple_binary(kt_scope *s, kjit_op op, kt_expr *x, kt_expr *y,
                              kj_location location);

/* ---- infer_expr.c ---- */

void kt_infer_print(kt_scope *s, const ki_stmt *stmt);

/* ---- infer_variable.c ---- */

/* place->var = value, where the value may change what is guessed about the variable. */
struct kt_place;
void kt_assign_variable(kt_scope *s, const struct kt_place *place, kt_expr *value,
                        kj_location location);
kt_stmt *kt_new_assign(kt_scope *s, kt_var *var, kt_expr *value, kj_location location);
void kt_emit_assign(kt_scope *s, kt_var *var, kt_expr *value, kj_location location);
/* The value as it is here, to be used any number of times: in a temporary, unless it is a constant
 * or cannot change. */
kt_expr *kt_keep_value(kt_scope *s, kt_expr *value);
/* The same in front of statement *at of s->out, which goes on being the same statement. */
kt_expr *kt_keep_at(kt_scope *s, kt_expr *value, size_t *at);
/* A value that nobody asks for any more: what it does is done, and its checks are made. */
void kt_drop_value(kt_scope *s, kt_expr *value);
/* What costs nothing and reads the same wherever it is evaluated. */
bool kt_is_stable(const kt_expr *value);
/* A let or a var with its first value. */
void kt_declare(kt_scope *s, const ki_decl *decl, kt_expr *value);
/* A var without one. */
void kt_declare_open(kt_scope *s, const ki_decl *decl);
/* What is KJ_MEANS_UNTYPED becomes a variable, whose type is KJIT_ANY until the value that is now
 * assigned gives it one. */
void kt_start_untyped(kt_scope *s, const ki_decl *decl);

/* ---- joined.c ---- */

/* A value that is assigned to a var whose type its assignments decide raises the guess for it.
 * Returns the value as it is assigned, still of its own type. */
kt_expr *kt_raise_guess(kt_scope *s, const ki_decl *decl, kt_expr *value);
/* Whether a type is an array or a tuple with one in it: then an annotation says what the arrays
 * have to fit, and their memory is that of the values. */
bool kt_holds_array(const kt_compilation *c, kjit_type type);
/* The value of a var before it is assigned. */
kt_expr *kt_make_unset(kt_scope *s, kjit_type type, kj_location location);
/* The var has no type yet: the statement that is being inferred is left for the next round. */
_Noreturn void kt_wait_for_type(kt_scope *s, const ki_decl *decl, kj_location location);
/* Returns whether run came to its end. If a statement or expression in run waits for a type, the
 * scope is restored, and another round follows. */
bool kt_try_without_waiting(kt_scope *s, void (*run)(kt_scope *s, void *data), void *data);
/* A var is read: with the check of uninitialized memory on, a thread that has not assigned it
 * fails. */
void kt_check_set(kt_scope *s, const ki_decl *decl, kj_location location);

/* ---- infer_expr.c, typed.c, operators.c ---- */

/* The expression's value: scalar (weak types too), array or tuple. Fails for what has none. */
kt_expr *kt_infer_expr(kt_scope *s, const ki_expr *expr);
/* The same where a call without a result is allowed. */
kt_expr *kt_infer_effect(kt_scope *s, const ki_expr *expr);
/* As bool: a bool or an integer. */
kt_expr *kt_infer_condition(kt_scope *s, const ki_expr *expr);
/* All of a list, left to right. */
void kt_infer_list(kt_scope *s, const ki_exprs *exprs, kt_exprs *values);
/* An integer known at compile time; fails with what it is for. */
int64_t kt_infer_constant(kt_scope *s, const ki_expr *expr, const char *what);
/* Its type only: nothing is evaluated. */
kjit_type kt_infer_type_of(kt_scope *s, const ki_expr *expr);
/* A weak COND with the type that it has met. */
kt_expr *kt_give_arms_type(kt_scope *s, const kt_expr *cond, kjit_type type);
/* The common type of values that are alternatives: numbers, tuples item by item, equal types.
 * KJIT_ANY: none. */
kjit_type kt_join_values(kt_scope *s, kjit_type a, kjit_type b, kj_location location);
/* A value as such an alternative. */
kt_expr *kt_give_type(kt_scope *s, kt_expr *value, kjit_type type);
/* An integer beside a var that has met nothing but float literals so far: a float that it meets
 * later decides, and f64 only where there is none. */
bool kt_stays_open(const kt_scope *s, const kt_expr *x, const kt_expr *y);
/* A number as bool. */
kt_expr *kt_make_condition(kt_scope *s, kt_expr *value);
/* The number 1. */
kt_expr *kt_make_one(kt_scope *s, kjit_type type, kj_location location);
kt_expr *kt_make_unary(kt_scope *s, kjit_op op, kt_expr *x, kj_location location);
kt_expr *kt_make_binary(kt_scope *s, kjit_op op, kt_expr *x, kt_expr *y, kj_location location);
/* The same by the language's own rules, in functions that are `@numba` too. */
kt_expr *kt_make_own_binary(kt_scope *s, kjit_op op, kt_expr *x, kt_expr *y, kj_location location);
kt_expr *kt_make_own_unary(kt_scope *s, kjit_op op, kt_expr *x, kj_location location);
kt_expr *kt_make_cond(kt_scope *s, kt_expr *condition, kt_expr *x, kt_expr *y,
                      kj_location location);
/* Fails where the tuple has more numbers than are passed around; each function may put what it was
 * given into a tuple twice. */
kjit_type kt_tuple_type(kt_scope *s, const kjit_type *items, uint32_t count, kj_location location);
kt_expr *kt_make_tuple(kt_scope *s, const kt_exprs *items, kj_location location);
/* Item of a tuple; of a TUPLE node the item itself. */
kt_expr *kt_make_item(kt_scope *s, kt_expr *tuple, uint32_t index, kj_location location);
/* Whether a TUPLE node may give one item without the others being evaluated. */
bool kt_can_take_item(const kt_scope *s, const kt_expr *tuple, uint32_t index);
kt_expr *kt_make_var(kt_scope *s, kt_var *var, kj_location location);
static inline kt_expr *kt_copy_texpr(kt_scope *s, const kt_expr *expr)
{
  return kt_clone_texpr(s->c, expr, NULL, NULL);
}
kt_level kt_level_of(const kt_scope *s, const kt_expr *expr);

/* ---- infer_type.c ---- */

kjit_type kt_intern_array(kt_scope *s, const ki_type_info *info);
/* A type as written. Static arrays need the declaration's place: see kt_declare_storage. */
kjit_type kt_infer_type(kt_scope *s, const ki_type_expr *type);
/* Fails where types nest too deep. The element has a size. */
kjit_type kt_pointer_type(kt_scope *s, kjit_type element, bool read_only, kj_location location);
/* Whether an expression names a type (`f32`, `dtype(x)`); then *type. */
bool kt_as_type(kt_scope *s, const ki_expr *expr, kjit_type *type);
/* Whether it names a function (`add`, a func parameter); then *callee. */
bool kt_as_callee(kt_scope *s, const ki_expr *expr, kt_callee *callee);
/* Bytes of the arrays of a thread that an instance has at most. */
enum { KJ_LOCAL_BYTES_LIMIT = 64 * 1024 };
void kt_declare_storage(kt_scope *s, const ki_decl *decl);
/* Binds a scalar or array to an annotation: converts what may be, fails otherwise. what: "argument
 * `x`". */
kt_expr *kt_fit_annotation(kt_scope *s, kt_expr *value, kjit_type annotation, const char *what,
                           kj_location location);
/* The same for types only: whether an array of type `from` may be used as `to`. */
bool kt_array_fits(const kt_compilation *c, kjit_type from, kjit_type to);
/* Whether every value of a scalar type has the same value in the other, or both are floats. */
bool kt_scalar_fits(const kt_compilation *c, kjit_type from, kjit_type to);

/* ---- infer_kernel.c ---- */

/* Whether a shared array's extents are not all known at compile time; then checks that the
 * dispatcher can know them. */
bool kt_has_runtime_extents(kt_scope *s, const ki_decl *decl);
void kt_check_runtime_extents(kt_scope *s, const ki_decl *decl);

/* ---- record_fields.c ---- */

/* For x[...] where x is a field of an array of structs: the field of the indexed element. NULL: x
 * is no such field, or the indices are slices or fewer than the dimensions of the array. */
const ki_expr *kt_move_index(kt_scope *s, const ki_expr *expr);
/* The array of structs, of at most most_rank dimensions, of which expr is a field that is no array:
 * both have the same extents. Any other expression itself. */
const ki_expr *kt_array_of_fields(kt_scope *s, const ki_expr *expr, uint32_t most_rank);
/* The fields of one element of that array. */
kt_expr *kt_read_fields(kt_scope *s, const ki_expr *field, kt_expr *element);
/* Makes a let the name of a field of an array of structs, which is no value of its own. False:
 * value is no such field, or its array may be exchanged. */
bool kt_name_fields(kt_scope *s, const ki_decl *let, const ki_expr *value);
/* For `a.x.shape`, `.size` and `.ndim` of such a field: the property of the array. NULL: expr is
 * none of them. */
const ki_expr *kt_move_property(kt_scope *s, const ki_expr *expr);

/* ---- infer_index.c ---- */

/* Element, part or tuple item: x[...]. */
kt_expr *kt_infer_index(kt_scope *s, const ki_expr *expr);
/* The same of a base that was evaluated. A whole element of memory comes as a LOAD, a part of it as
 * an array. */
kt_expr *kt_index_value(kt_scope *s, const ki_expr *expr, kt_expr *base);
/* The indices in x[...] where x is a vector or an array inside a struct. */
kt_exprs kt_infer_part_indices(kt_scope *s, const ki_expr *expr, kjit_type type);
/* An element of such a value. */
kt_expr *kt_take_part(kt_scope *s, kt_expr *value, const kt_exprs *indices, kj_location location);
/* `a.shape` and its kin; NULL: there is none of that name. */
kt_expr *kt_infer_property(kt_scope *s, const ki_expr *expr, kt_expr *array);

/* ---- infer_field.c ---- */

/* A part of the only element of an array without dimensions, as an array: a field, an item or a
 * lane. */
kt_expr *kt_make_member(kt_scope *s, kt_expr *only, ki_component component, kj_location location);
/* All lanes of the only element, a vector, as an array of one dimension. */
kt_expr *kt_make_lanes(kt_scope *s, kt_expr *only, kj_location location);
kt_expr *kt_new_load(kt_scope *s, kt_expr *array, const kt_exprs *indices, kj_location location);
/* The index 0, of the element that a pointer points to. */
kt_exprs kt_first_index(kt_scope *s, kj_location location);
bool kt_is_field_of_only(const kt_scope *s, kjit_type array, const char *name,
                         ki_component *component);
/* Report that the field named by expr does not exist: of an array, and of any other value. */
_Noreturn void kt_fail_array_field(kt_scope *s, const ki_expr *expr, kjit_type array);
_Noreturn void kt_fail_field(kt_scope *s, const ki_expr *expr, kjit_type type);

kt_expr *kt_infer_field(kt_scope *s, const ki_expr *expr);
/* A component of a value: of what is in memory, it alone is read. */
kt_expr *kt_read_component(kt_scope *s, kt_expr *value, ki_component component,
                           kj_location location);
/* A lane of a vector by an index that is not known. */
kt_expr *kt_read_lane(kt_scope *s, kt_expr *vector, kt_expr *index, kj_location location);
/* The array that a pointer is to: of no known extent. */
kt_expr *kt_make_pointed(kt_scope *s, kt_expr *pointer, kj_location location);

/* ---- infer_place.c ---- */

/* From a value to a part of it: a component or, where there are indices, an element. */
typedef struct kt_path_step {
  uint32_t component;
  kt_exprs indices;
  kjit_type type; /* of the part */
} kt_path_step;
/* What can be assigned. */
typedef struct kt_place {
  kt_var *var; /* else an element */
  const ki_decl *decl;
  kt_expr *array;
  kt_exprs indices;
  KJ_LIST(kt_path_step) steps; /* the part of it that is meant; none: all */
  /* of what is kept there; weak for a var that has met no type yet; of an array inside a struct in
   * memory, its type in a value */
  kjit_type type;
  bool is_array; /* array is what is meant, all of it */
  kj_location location;
} kt_place;
void kt_infer_place(kt_scope *s, const ki_expr *expr, kt_place *place);
kt_expr *kt_load_place(kt_scope *s, const kt_place *place);
void kt_store_place(kt_scope *s, const kt_place *place, kt_expr *value, kj_location location);
kt_expr *kt_make_extent(kt_scope *s, kt_expr *array, uint32_t dimension, kj_location location);
kt_expr *kt_make_shape(kt_scope *s, kt_expr *array, kj_location location);
kt_expr *kt_make_size(kt_scope *s, kt_expr *array, kj_location location);
/* `-` and a literal: counts from the end. */
bool kt_is_from_end(const ki_expr *expr, __int128 *distance);
/* Converts an integer to KJIT_INDEX for a position, an extent or a step. A u64 that no index holds
 * becomes the largest index, which is as far outside: it is not negative. */
kt_expr *kt_convert_to_index(kt_scope *s, kt_expr *value, kj_location location);
/* In a function that is `@wrap`: the index, of an extent, with what a negative one means. */
kt_expr *kt_wrap_index(kt_scope *s, kt_expr *index, kt_expr *extent);

/* ---- operand_order.c ---- */

/* A list of operands while inference goes through it in the order of evaluation. It starts as zero.
 */
typedef struct kt_order {
  size_t mark;             /* number of statements in s->out when the last operand began */
  kt_effects before, next; /* effects of the operands before the last operand, and of the last */
  bool has_statements;     /* the last operand has added statements */
  bool has_conflict;       /* the last operand does not commute with some operand before it */
} kt_order;
/* Begins an operand, before it is inferred. */
void kt_begin_operand(kt_scope *s, kt_order *order);
/* Ends an operand: a value (NULL: a func or a type, which is not evaluated), a place, or an element
 * whose address is taken. Such an element is a LOAD node that does not load. */
void kt_end_operand(kt_scope *s, kt_order *order, const kt_expr *value);
void kt_end_place(kt_scope *s, kt_order *order, const kt_place *place);
void kt_end_address(kt_scope *s, kt_order *order, const kt_expr *load);
/* Lets operands before the last operand settle. Each operand (or NULL) that does not commute with
 * the last operand is kept in a temporary in front of the last operand's statements. The operands
 * of a list settle in their order. */
void kt_settle(kt_scope *s, kt_order *order, kt_expr **values, size_t count);
void kt_settle_place(kt_scope *s, kt_order *order, kt_place *place);
void kt_settle_address(kt_scope *s, kt_order *order, kt_expr **load);
/* The same for an array, or another value that has an index. Returns the operand to use. */
kt_expr *kt_settle_array(kt_scope *s, kt_order *order, kt_expr *array);
/* Makes a place that can be used twice: what finds it is evaluated here, once. */
void kt_keep_place(kt_scope *s, kt_place *place);

/* ---- composed_value.c ---- */

bool kt_is_struct(const kt_compilation *c, kjit_type type);
bool kt_is_vector(const kt_compilation *c, kjit_type type);
bool kt_is_complex(const kt_compilation *c, kjit_type type);
bool kt_is_pointer(const kt_compilation *c, kjit_type type);
/* part of a struct's value; kt_is_array does not hold for it */
bool kt_is_value_array(const kt_compilation *c, kjit_type type);
bool kt_is_composed(const kt_compilation *c, kjit_type type); /* one of these */
/* A field of a struct, a lane .x .y .z .w of a vector, .real or .imag. */
bool kt_find_component(const kt_compilation *c, kjit_type type, const char *name,
                       ki_component *component);
/* All parts of a composed value, each of its own type. Evaluated in order. */
kt_expr *kt_make_composed(kt_scope *s, kjit_type type, const kt_exprs *parts, kj_location location);
/* A value where one of the type is kept: numbers convert as stores do, a pointer gets const, arrays
 * with extents and tuples become arrays inside structs. Fails otherwise. what: "the field". */
kt_expr *kt_fit_value(kt_scope *s, kt_expr *value, kjit_type type, const char *what,
                      kj_location location);
/* The indices of element `place`, in row-major order, of an array with static extents. */
kt_exprs kt_indices_of(kt_scope *s, const ki_type_info *array, int64_t place, kj_location location);
/* `S(a, b)`: the values of all fields. */
kt_expr *kt_construct_struct(kt_scope *s, const kt_exprs *values, kjit_type type,
                             kj_location location);
/* The value of a type whose parts are all 0. */
kt_expr *kt_make_zero(kt_scope *s, kjit_type type, kj_location location);
/* How many scalars (and pointers) a value is made of. */
uint64_t kt_count_parts(const kt_compilation *c, kjit_type type);

/* ---- composed_value.c: vectors and complex numbers ---- */

bool kt_has_parts(const kt_compilation *c, kjit_type type); /* one of the two */
/* Of a lane; of the real and imaginary parts. Any other type: itself. */
kjit_type kt_part_type(const kt_compilation *c, kjit_type type);
kjit_type kt_vector_of(kt_scope *s, kjit_type element, uint32_t lanes);
/* A vector with as many lanes, a complex type, of such parts. */
kjit_type kt_with_part(kt_scope *s, kjit_type like, kjit_type part);
/* A value whose parts are made of those of another. */
typedef kt_expr *(*kt_make_part)(kt_scope *s, kt_expr *part, uint32_t index, const void *data);
kt_expr *kt_map_parts(kt_scope *s, kjit_type type, kt_expr *value, kt_make_part make,
                      const void *data, kj_location location);
/* kt_convert where either type has parts: lane by lane, part by part; numbers fill all lanes, and
 * have no imaginary part. */
kt_expr *kt_convert_parts(kt_scope *s, kt_expr *value, kjit_type type, kj_location location);
/* Whether a value has the parts for a type: as many lanes, complex parts; a number has them all. */
bool kt_keeps_parts(const kt_compilation *c, kjit_type from, kjit_type to);
/* kt_promote where either has parts. KJIT_ANY: none, and none of values of different numbers of
 * lanes. */
kjit_type kt_promote_parts(kt_scope *s, kjit_type a, kjit_type b, kj_location location);
/* `f32x4(v.xy, 0, 1)`, `c64(re, im)`. */
kt_expr *kt_construct_parts(kt_scope *s, const kt_exprs *values, kjit_type type,
                            kj_location location);
/* Lanes by letters: `v.xyz`. NULL: they are none of the value's. */
kt_expr *kt_infer_swizzle(kt_scope *s, const ki_expr *expr, kt_expr *vector);

/* ---- dates.c ---- */

/* Whether a type is a date of NumPy (ir/date.h). */
bool kt_is_date(const kt_scope *s, kjit_type type);
/* kt_make_binary, kt_make_unary where an operand is a date. */
kt_expr *kt_make_date_binary(kt_scope *s, kjit_op op, kt_expr *x, kt_expr *y, kj_location location);
kt_expr *kt_make_date_unary(kt_scope *s, kjit_op op, kt_expr *x, kj_location location);
/* kt_apply_rule where an operand is a date; NULL: no built-in for dates, or no date. */
struct kt_operands;
kt_expr *kt_apply_date_rule(kt_scope *s, const struct kt_operands *operands);
/* The date type that holds both; KJIT_ANY: there is none, or one of them is no date. */
kjit_type kt_join_dates(kt_scope *s, kjit_type a, kjit_type b);
/* A date in the unit of a date type, or an integer as a count of it; NULL: it is neither. Fails for
 * units that do not convert. */
kt_expr *kt_convert_date(kt_scope *s, kt_expr *value, kjit_type type, kj_location location);
/* The count of a date as a number of that type. */
kt_expr *kt_count_date(kt_scope *s, kt_expr *value, kjit_type type, kj_location location);

/* ---- operators_lanes.c ---- */

/* kt_make_binary, kt_make_unary where an operand has parts. */
kt_expr *kt_make_binary_parts(kt_scope *s, kjit_op op, kt_expr *x, kt_expr *y,
                              kj_location location);
kt_expr *kt_make_unary_parts(kt_scope *s, kjit_op op, kt_expr *x, kj_location location);
/* kt_apply_rule where an operand has parts; takes_lanes: the rule is one for each lane of a vector.
 * NULL: the rule takes them as they are. */
kt_expr *kt_apply_rule_parts(kt_scope *s, const struct kt_operands *operands, bool takes_lanes);

/* ---- infer_view.c ---- */

/* What is taken of one dimension of an array. */
typedef struct kt_slice {
  bool is_index;          /* one position: the dimension goes */
  bool is_whole;          /* all of it */
  kt_expr *start;         /* any integer for an index, else i64 */
  kt_expr *extent, *step; /* i64, of a part; step NULL: 1 */
} kt_slice;
kt_slice kt_infer_slice(kt_scope *s, const ki_expr *slice, const kt_expr *array,
                        uint32_t dimension);
/* The element at the indices as an array without dimensions. */
kt_expr *kt_make_only(kt_scope *s, kt_expr *array, const kt_exprs *indices, kj_location location);
/* A struct that is an element of an array as an array without dimensions, whose fields are places:
 * the fields of the element. Any other value is the result as it is. */
kt_expr *kt_refer(kt_scope *s, kt_expr *value, kj_location location);
/* For @record_copies: a result, with a copy of each record that it refers to. */
kt_expr *kt_copy_referred(kt_scope *s, kt_expr *value, kj_location location);
/* The array itself where all is taken. */
kt_expr *kt_make_view(kt_scope *s, kt_expr *array, const kt_slice *slices, kj_location location);
/* What the address of the first element of an array of the block or the thread is a multiple of, in
 * bytes; 0: not known. */
uint32_t kt_find_start(kt_scope *s, const kt_expr *array);
/* What a parameter is bound to that a value is handed to when the kernel runs. Which elements bytes
 * can be viewed as depends on where they start: a func is one of its own for each alignment. */
kt_bound kt_value_bound(kt_scope *s, const kt_expr *value);
kt_expr *kt_make_transpose(kt_scope *s, kt_expr *array, kj_location location);
/* A type that arrays of both can be used as: what they do not share, layout and static extents, is
 * forgotten. KJIT_ANY: there is none. */
kjit_type kt_join_arrays(kt_scope *s, kjit_type a, kjit_type b);
/* The type of an array as one whose extents are not known at compile time. */
kjit_type kt_forget_extents(kt_scope *s, kjit_type array);
/* The array as one of such a type. */
kt_expr *kt_give_array_type(kt_scope *s, kt_expr *array, kjit_type type);

/* ---- symbols.c ---- */

/* Numbers the instances of the compilation and gives them their symbols. Reports extern funcs that
 * cannot be told apart by their symbols. */
void kt_name_instances(kt_compilation *c);
/* Whether code knows the extern func by its name, because it is linked by somebody else. Otherwise
 * code knows it by what it is bound to. */
bool kt_has_plain_symbol(const kt_compilation *c, const ki_function *function);
/* Whether the extern func keeps its name in code for GPUs that is linked. */
bool kt_is_linked(const kt_compilation *c, const ki_function *function);

/* ---- infer_call.c ---- */

kt_expr *kt_infer_call(kt_scope *s, const ki_expr *expr);
/* A call with these arguments of a func that `expr` need not name. asker: the built-in that calls
 * it, which takes no arrays; NULL: the source does. */
kt_expr *kt_infer_function_call(kt_scope *s, const ki_expr *expr, const kt_callee *callee,
                                const char *asker);
void kt_refuse_kernel(kt_scope *s, const ki_function *function, kj_location location);
/* The instance that such a call calls, and the arguments that it hands over at run time. A float
 * literal for a parameter of `variable` (bit i: parameter i) is handed over, too, and is not part
 * of the instance. */
kt_inferred *kt_bind_call(kt_scope *s, const ki_expr *expr, const kt_callee *callee,
                          const char *asker, uint64_t variable, kt_exprs *arguments);
/* The call of an instance with these arguments. */
kt_expr *kt_call_instance(kt_scope *s, kt_inferred *record, const kt_exprs *arguments,
                          kj_location location);
/* A built-in used as a name: laneid, pi; or threadIdx with its field. */
kt_expr *kt_infer_builtin_name(kt_scope *s, const ki_expr *expr, const ki_builtin *builtin,
                               const char *field);
/* What an annotation says when the other parameters are bound so; KJIT_ANY: there is none. bounds
 * without a value are KJ_BOUND_NONE. */
kjit_type kt_infer_annotation(kt_inference *inference, const ki_function *function,
                              const kt_bound *bounds, size_t index);

/* ---- infer_call.c ---- */

/* The arguments of a call of an extern func as the C ABI takes them; refuses those that it cannot.
 */
void kt_bind_extern_call(kt_scope *s, const ki_function *function, kt_bound *bounds,
                         kt_expr **arguments, const ki_expr *call);
/* Whether a value of the type goes to or from a C function; what: for the message. */
void kt_check_c_type(kt_scope *s, kjit_type type, const char *what, kj_location location);

/* ---- module_constants.c ---- */

const kt_constant *kt_get_constant(kt_scope *s, const ki_decl *decl);
/* The value of a scalar constant, or an array of a constant: weak ones have a weak element type
 * until they are used. */
kt_expr *kt_make_constant(kt_scope *s, const ki_decl *decl, kj_location location);
/* The constant behind an array expression whose elements have met no type yet, or NULL. */
const kt_constant *kt_weak_constant(const kt_scope *s, const kt_expr *array);
/* The element type when the array meets none. */
kjit_type kt_concrete_element(const kt_constant *constant);
/* The array with elements of a type. */
kt_expr *kt_make_constant_array(kt_scope *s, const kt_constant *constant, kjit_type element,
                                kj_location location);

/* ---- number_limits.c ---- */

/* Fills in .least and .most of the kernel's parameters. All instances are inferred. */
void kt_find_number_limits(kt_compilation *c);

/* ---- numba.c: the types of a function that is `@numba`; for s->has_numba_types only ---- */

/* kt_make_binary and kt_make_unary by Numba's table. NULL: it is not about such operands, and the
 * language's own rules hold: vectors, tuples, bf16. */
kt_expr *kt_make_numba_binary(kt_scope *s, kjit_op op, kt_expr *x, kt_expr *y,
                              kj_location location);
kt_expr *kt_make_numba_unary(kt_scope *s, kjit_op op, kt_expr *x, kj_location location);
/* The type of a variable that is assigned both. KJIT_ANY: the table does not say. */
kjit_type kt_join_numba(kjit_type a, kjit_type b);
/* The type of the numbers of a range. KJIT_ANY: as above. */
kjit_type kt_numba_range_type(const kt_exprs *values);
/* What `abs`, `min` and `max`, and what a math function of floats is computed in and gives.
 * KJIT_ANY: as above. */
kjit_type kt_numba_number_type(const kt_exprs *values);
kjit_type kt_numba_float_type(const ki_builtin *builtin, const kt_exprs *values);
/* That of a literal, and of what else is weak. */
kjit_type kt_numba_literal_type(const kt_expr *value);

/* ---- promote.c ---- */

ki_type_class kt_class_of(const kt_compilation *c, kjit_type type);
bool kt_is_integer(const kt_compilation *c, kjit_type type); /* typed or weak; not bool */
bool kt_is_float(const kt_compilation *c, kjit_type type);   /* typed or weak */
bool kt_is_number(const kt_compilation *c, kjit_type type);  /* bool, integers, floats, weak */
bool kt_is_array(const kt_compilation *c, kjit_type type);
bool kt_is_tuple(const kt_compilation *c, kjit_type type);
/* The common type of two operands by the rules of arithmetic. KJIT_ANY: none (i64 with u64). */
kjit_type kt_promote(kt_scope *s, kjit_type a, kjit_type b, kj_location location);
/* The same for values that are only kept side by side: bool stays bool, i8 stays i8. */
kjit_type kt_join(kt_scope *s, kjit_type a, kjit_type b, kj_location location);
/* Any number to a scalar type, weak trees too. */
kt_expr *kt_convert(kt_scope *s, kt_expr *value, kjit_type type, kj_location location);
/* What a store may convert: all but float to integer. what: "element of `x`". */
kt_expr *kt_convert_stored(kt_scope *s, kt_expr *value, kjit_type type, const char *what,
                           kj_location location);
/* A value that meets no type: weak ones become i32, i64 or f64; items of tuples too. */
kt_expr *kt_make_concrete(kt_scope *s, kt_expr *value);
/* The type that this gives. */
kjit_type kt_concrete_type(const kt_expr *value);
/* As kt_var.wide, of an integer without a type: what it takes if it meets no type and may need
 * more than 32 bits. */
kjit_type kt_wide_type(const kt_expr *value);
/* The type that holds the numbers of two such types. */
kjit_type kt_wider_type(kjit_type x, kjit_type y);
/* The type of a variable that carries a number without a type. */
kjit_type kt_carrier_of(kjit_type weak, kjit_type wide);
/* The number without a type that carrier has. */
kt_expr *kt_make_weak(kt_scope *s, kt_expr *carrier, kjit_type weak, kjit_type wide);
kt_expr *kt_new_integer(kt_scope *s, kjit_type type, __int128 value, kj_location location);
kt_expr *kt_new_value(kt_scope *s, ki_value value, kj_location location);
/* A float; a double is rounded to the type. */
kt_expr *kt_new_number(kt_scope *s, kjit_type type, double value, kj_location location);

/* ---- fold.c: arithmetic at compile time ---- */

/* Operands of one type (SHL and SHR: any integer count). NULL: not done at compile time. */
kt_expr *kt_fold_unary(kt_scope *s, kjit_op op, const kt_expr *x, kj_location location);
kt_expr *kt_fold_binary(kt_scope *s, kjit_op op, const kt_expr *x, const kt_expr *y,
                        kj_location location);
kt_expr *kt_fold_compare(kt_scope *s, kjit_op op, const kt_expr *x, const kt_expr *y,
                         kj_location location);
/* Built-ins on constants of one type. */
kt_expr *kt_fold_builtin(kt_scope *s, const ki_builtin *builtin, const kt_exprs *values,
                         kj_location location);
/* Decimal text of a wide integer. */
const char *kt_integer_text(kj_arena *arena, __int128 value);

#endif
