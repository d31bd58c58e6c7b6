/* Differentiates funcs: makes the typed tree of a derivative from the typed tree of a func. This
 * header has the declarations that the files of lib/derive share. The derivative is a separate
 * instance, which derive.c creates in four steps:
 *
 *   prepare.c   copies the body into the new instance, inlines called funcs, and replaces
 *               `break`, `continue` and early returns by flags. This copy is the prepared body.
 *   activity.c  finds the variables that depend on the chosen parameters and that the result
 *               depends on. Only these variables have a derivative.
 *   refusals.c  rejects bodies whose derivative would be wrong.
 *   forward.c, or reverse.c, reverse_loop.c and reverse_expr.c, create the derivative's statements.
 *   array_log*.c save array elements that loops overwrite, for reverse derivatives.
 *   facts.c     lists the saved values, their bytes and the atomic sums for the user.
 *
 * The chosen parameters are the parameters with respect to which the func is differentiated.
 * adjoint.h has the derivatives of kernels, which combine several derivations of this kind. */
#ifndef KJ_DERIVE_DERIVE_H
#define KJ_DERIVE_DERIVE_H

#include "typing/infer.h"
#include "typing/rules.h"

typedef struct kd_log kd_log; /* array_log.c */

/* Analysis results for one variable of the prepared body. kd_derivation.variables is indexed by
 * variable. */
typedef struct kd_variable {
  bool varies;     /* the variable depends on a chosen parameter */
  bool matters;    /* the result depends on the variable; only such a variable needs a derivative */
  kt_var *other;   /* the derivative of the variable, or NULL */
  kt_var *instead; /* the variable that replaces this variable in emitted statements, or NULL */
  kd_log *log;     /* log of the array (array_log.c), or NULL */
} kd_variable;

typedef struct kd_derivation {
  kt_scope *s; /* scope of the derivative's instance, which is under construction */
  kt_compilation *c;
  kj_arena *arena;
  ki_builtin_id kind;
  kt_inferred *record, *primal;
  /* location of the func; used for statements without a more precise location */
  kj_location location;
  kt_vars derivatives; /* the parameters that hold the derivatives of record->chosen */
  kt_stmts body;       /* the prepared body */
  /* reverse: the parameter for the derivative with respect to the result, or NULL */
  kt_var *cotangent;
  bool is_recomputed; /* the emitted statements run the func's own statements for the second time */
  kt_var *result;     /* the variable that the body returns; NULL if it returns nothing */
  size_t count;       /* number of variables of the prepared body */
  kd_variable *variables;
  KJ_LIST(kd_log *) logs;
  /* the part of an adjoint kernel (adjoint.h); NULL for the derivative of a func */
  struct kd_part *adjoint;
} kd_derivation;

/* Returns whether the func's own statements have run before. If so, they have already changed
 * memory outside of the thread, and the derivation does not emit these changes again. */
static inline bool kd_has_run(const kd_derivation *d) { return d->is_recomputed || d->adjoint; }

/* Returns the attribute name by which a func can specify a custom rule for this derivative. */
static inline const char *kd_rule_word(const kd_derivation *d)
{
  return d->kind == KJ_BUILTIN_JVP ? "jvp" : "vjp";
}

_Noreturn void kd_refuse(kd_derivation *d, kj_location location, const char *format, ...)
  __attribute__((format(printf, 3, 4)));

/* ---- composed.c: types and values of derivatives ---- */

/* Returns whether values of the type have a derivative: the type is a float or contains floats. */
bool kd_holds_float(const kt_compilation *c, kjit_type type);
/* Replaces f16 and bf16 by f32 in a number or vector type. Returns other types unchanged. */
kjit_type kd_wide_type(kd_derivation *d, kjit_type type);
/* kd_zero returns the value whose components are all 0. kd_one returns the value whose floats are
 * all 1. */
kt_expr *kd_zero(kd_derivation *d, kjit_type type);
kt_expr *kd_one(kd_derivation *d, kjit_type type);
/* Returns the value whose floats are all -0. Sums start with this value, because LLVM can remove x
 * + -0 but not x + 0. */
kt_expr *kd_nothing(kd_derivation *d, kjit_type type);
/* Returns the sum of two derivatives, which must be atoms (see kd_node). Components that are not
 * floats are taken from x. */
kt_expr *kd_add(kd_derivation *d, kt_expr *x, kt_expr *y);

/* ---- derive.c ---- */

/* Returns the derivative of an instance with respect to some of its parameters. values: the
 * derivatives of these parameters, from the call's arguments. */
kt_inferred *kd_get_derived(kt_scope *s, kt_inferred *of, ki_builtin_id kind, const kt_vars *chosen,
                            const kt_exprs *values, kj_location location);

/* Returns the reverse derivative of an instance with respect to the chosen parameters. Rejects an
 * instance that is not linear in these parameters. */
kt_inferred *kd_get_transpose(kt_scope *s, kt_inferred *of, const kt_vars *chosen,
                              const kt_exprs *values, kj_location location);
/* Rejects a prepared body that is not linear in the chosen parameters (linear.c). */
void kd_check_linear(kd_derivation *d);
/* Runs the steps up to refusals.c. */
void kd_start(kd_derivation *d);

/* ---- adjoint.c ---- */

void kd_make_adjoint(kd_derivation *d);
/* Replaces each atomic addition whose result is not used by `a[i] = a[i] + e`. */
void kd_take_atomic_sums(kd_derivation *d);

/* ---- kernels without a grid loop: adjoint_threads.c, adjoint_shared.c, adjoint_rerun.c ---- */

/* Returns whether the statement is a barrier or a fence, which the adjoint of a kernel without a
 * grid loop repeats. */
bool kd_is_sync(const kd_derivation *d, const kt_stmt *stmt);
/* Returns the atomic addition to a shared array that has been replaced by this statement, or
 * NULL. */
const kt_expr *kd_find_shared_sum(const kd_derivation *d, const kt_stmt *stmt);
void kd_copy_shared_sum(kd_derivation *d, const kt_stmt *stmt);
void kd_reverse_shared_sum(kd_derivation *d, const kt_stmt *stmt, kt_stmts *reverse);
/* Emits loops that set the derivatives of a shared array to 0. */
void kd_clear_shared(kd_derivation *d, kt_var *other);
void kd_reverse_block_range(kd_derivation *d, const kt_stmt *stmt, kt_stmts *reverse);
/* Returns whether the body of a loop would load overwritten elements if it ran again, so that the
 * loop must keep its values. */
bool kd_must_keep(kd_derivation *d, const kt_stmt *loop);
/* Returns whether the derivation emits a store to a shared array at this point. */
bool kd_is_stored(const kd_derivation *d, const kt_stmt *store);
/* kd_begin_rerun must be called before a body that runs again is emitted, and kd_end_rerun after
 * it. made: the list of emitted statements. */
void kd_begin_rerun(kd_derivation *d, const kt_stmt *loop);
void kd_end_rerun(kd_derivation *d, kt_stmts *made);

/* ---- statements and variables: tree.c ---- */

kt_var *kd_new_var(kd_derivation *d, const char *name, kjit_type type, kj_location location);
kt_expr *kd_read(kd_derivation *d, kt_var *var);
/* Emits a `return` of the value as the last statement of the instance. */
void kd_return(kd_derivation *d, kt_expr *value);
void kd_assign(kd_derivation *d, kt_var *var, kt_expr *value);
void kd_store(kd_derivation *d, kt_expr *array, const kt_exprs *indices, kt_expr *value);
kt_expr *kd_load(kd_derivation *d, kt_expr *array, const kt_exprs *indices);
/* Returns an atom with the value. Stores the value in a new variable if it is neither a constant
 * nor a variable. */
kt_expr *kd_keep(kd_derivation *d, kt_expr *value);
/* Returns a copy in which each variable is replaced by its kd_variable.instead. */
kt_expr *kd_copy(kd_derivation *d, const kt_expr *expr);
/* Returns the variable that owns the array's memory, or NULL if it is unknown. */
kt_var *kd_root(const kt_expr *array);
/* Returns whether the array's elements are the imaginary parts of complex numbers. */
bool kd_is_imaginary(const kd_derivation *d, const kt_expr *array);
/* Returns a copy of the array expression whose indices are stored in variables. */
kt_expr *kd_keep_array(kd_derivation *d, const kt_expr *array);
/* Begins a loop over `range(extent)`, which each thread runs by itself, and appends the loop
 * variable to the indices. Statements that are emitted afterwards belong to the loop until the
 * caller restores d->s->out. */
void kd_begin_loop(kd_derivation *d, int64_t extent, kt_exprs *indices);
/* Emits loops over all elements in an array with static extents. Their body comes from make(d,
 * indices, data). */
void kd_for_elements(kd_derivation *d, kjit_type array,
                     void (*make)(kd_derivation *d, const kt_exprs *indices, void *data),
                     void *data);
/* Returns the array that holds the derivatives of an array's elements. */
kt_expr *kd_other_array(kd_derivation *d, const kt_expr *array);

/* ---- facts.c ---- */

/* Records a fact about the derivative. about: see kt_derivative_fact. The arena owns the text. */
void kd_note_fact(kd_derivation *d, kj_location location, const kt_var *about, const char *text);
/* Records the fact that a tape holds a variable's values in each iteration of the loop.
 * is_unrolled: the loop is unrolled in both directions, so the tape needs no memory. */
void kd_note_tape(kd_derivation *d, const kt_stmt *loop, const kt_var *of, const kt_var *tape,
                  bool is_unrolled);
/* Returns the total size of a thread's arrays in bytes: tapes, the func's arrays and their
 * derivatives. */
uint64_t kd_count_thread_bytes(const kt_compilation *c, const kt_instance *instance);
/* Prints the facts about all derivatives of the compilation, one per line. Prints nothing if the
 * code has no derivatives. */
void kd_print_facts(const kt_compilation *c, kj_buffer *out);

/* ---- prepare.c ---- */

void kd_prepare(kd_derivation *d);
/* Makes a copy of a loop's body in which no jump leaves the iteration. The loop belongs to the
 * instance that is being inferred. The copy uses the same loop variable, and the same variables
 * with an index below `outer`. All other variables are replaced by new variables. */
void kd_prepare_loop_body(kd_derivation *d, const kt_stmt *loop, size_t outer);

/* ---- repeated.c ---- */

/* Stores each expression that a statement of the prepared body computes more than once in a
 * variable. */
void kd_name_repeated(kd_derivation *d);

/* ---- activity.c ---- */

void kd_find_active(kd_derivation *d);
/* Returns whether the value depends on a chosen parameter, and this dependency has a derivative. */
bool kd_varies(const kd_derivation *d, const kt_expr *expr);
bool kd_is_active(const kd_derivation *d, const kt_var *var);

/* ---- forward_parts.c: expressions whose parts are stored in variables ---- */

/* An expression of the prepared body whose value is in an atom. An atom is a variable or a
 * constant. */
typedef struct kd_node kd_node;
struct kd_node {
  const kt_expr *from; /* the expression of the prepared body */
  kt_expr *value;      /* an atom */
  bool is_active;      /* the value has a derivative */
  kt_expr *tangent;    /* forward: the derivative, which is an atom; NULL means 0 */
  kd_node *nodes[3];   /* nodes of from->x, y and z */
  kd_node **args;      /* nodes of the operands in from->args */
  kt_expr *array;      /* LOAD: the array, with its indices stored in variables */
  kt_exprs indices;    /* LOAD, ELEMENT, INSERT: the indices, which are atoms */
};
/* Emits statements that compute the subexpressions of an expression and their derivatives. */
kd_node *kd_flatten(kd_derivation *d, const kt_expr *expr);

/* ---- partials.c ---- */

typedef enum kd_rule_kind {
  KJ_RULE_NONE,     /* the built-in has no derivative */
  KJ_RULE_PARTIAL,  /* the derivative is a sum over the operands */
  KJ_RULE_PAIR,     /* a function that returns a pair */
  KJ_RULE_CHOICE,   /* `select`: the derivative of the selected value */
  KJ_RULE_DISCRETE, /* the derivative is 0 wherever it exists */
} kd_rule_kind;
kd_rule_kind kd_rule_of(const ki_builtin *builtin);
/* Returns t times the partial derivative of the node with respect to operand `index`, or NULL if
 * the product is 0. t is an atom; if the node is a division, t may also be a negated atom. */
kt_expr *kd_times_partial(kd_derivation *d, const kd_node *node, size_t index, kt_expr *t);
/* Like kd_times_partial, for a built-in that returns a pair. t holds the derivatives with respect
 * to both items. */
kt_expr *kd_pair_reverse(kd_derivation *d, const kd_node *node, size_t index, kt_expr *t);
/* Like kd_times_partial, for a built-in that returns a pair. The result is a pair, too: t times the
 * partial derivative of each item. */
kt_expr *kd_pair_forward(kd_derivation *d, const kd_node *node, size_t index, kt_expr *t);
/* Changes the guard `t == 0 ? 0 : v` in a derivative that is differentiated again. t is a factor of
 * v, for example a derivative. Even if t is 0, the derivative of v with respect to t can be other
 * than 0, so v must be differentiated in this case, too. The new guard returns 0 only if t is 0 and
 * v is NaN, because another factor of v is infinite. Emits a statement that computes v. */
kt_expr *kd_open_guard(kd_derivation *d, kt_expr *guard);

/* ---- rules of the source: own_rules.c ---- */

bool kd_has_rule(const ki_function *function);
/* Returns the custom rule that the source gives for the derivative of a function, or NULL if there
 * is none. A reverse derivative uses the rule for `vjp` or, if there is none, the rule for
 * `jvp`. */
const ki_function *kd_own_rule(kd_derivation *d, const ki_function *function, kj_location location);
/* Calls an instance's rule. values and derivatives have an item for each run-time parameter; the
 * derivative of a parameter without floats is NULL. */
kt_expr *kd_call_rule(kd_derivation *d, const ki_function *rule, const kt_inferred *of,
                      const kt_exprs *values, const kt_exprs *derivatives, kj_location location);
/* Rejects a rule unless it returns a value and its derivative, both of this type. */
void kd_check_pair(kd_derivation *d, const kt_expr *both, kjit_type type, const ki_function *rule,
                   const ki_function *of, kj_location location);
/* The results of a reverse rule. derivatives has an item for each run-time parameter; the item is
 * NULL if the parameter has no derivative. If the rule returns no value, effect is the call of the
 * rule. */
typedef struct kd_parts {
  kt_expr *value, *effect;
  kt_exprs derivatives;
} kd_parts;
/* Calls the reverse rule of a func. t is the derivative with respect to the result, or NULL for a
 * func that returns nothing. arrays, which may be NULL, holds the derivatives of array
 * parameters. */
kd_parts kd_go_back_by_rule(kd_derivation *d, const kt_inferred *of, const kt_exprs *values,
                            kt_expr *t, const kt_exprs *arrays, kj_location location);
/* Emits the body of a derivative that has a custom rule: a call of the rule. */
void kd_return_rule(kd_derivation *d, const ki_function *rule);

/* ---- reverse.c, reverse_loop.c, reverse_expr.c ---- */

void kd_make_reverse(kd_derivation *d);
/* Declares the derivative of a variable and sets it to 0. */
void kd_add_derivative(kd_derivation *d, kt_var *var);
/* Emits the forward pass of the statements. Emits their reverse statements, which propagate
 * derivatives backward, and inserts them at the front of *reverse. */
void kd_reverse_block(kd_derivation *d, const kt_stmts *stmts, kt_stmts *reverse);
void kd_reverse_loop(kd_derivation *d, const kt_stmt *stmt, kt_stmts *reverse);
/* Redirects emission to a new list. kd_end_backwards inserts this list at the front of *reverse. */
typedef struct kd_backwards {
  kt_stmts *outer;
  kt_stmts own;
} kd_backwards;
void kd_begin_backwards(kd_derivation *d, kd_backwards *b);
void kd_end_backwards(kd_derivation *d, kd_backwards *b, kt_stmts *reverse);
/* Emits the statements of the prepared body without derivatives. */
void kd_copy_block(kd_derivation *d, const kt_stmts *stmts);
/* Returns whether the statement assigns to a variable, or stores to an array, that has
 * derivatives. */
bool kd_assigns_active(kd_derivation *d, const kt_stmt *stmt);
/* Propagates t, the derivative with respect to an expression, to the variables in the expression:
 * for each variable, adds t times the partial derivative to the variable's derivative. t is an
 * atom. */
void kd_hand_back(kd_derivation *d, const kd_node *node, kt_expr *t);
/* Adds t to the derivative of the element that a LOAD reads. */
void kd_add_to_element(kd_derivation *d, const kd_node *node, kt_expr *t);
/* Returns whether the statement is `if condition { break }` at the end of a loop. */
bool kd_is_last_break(const kt_stmt *stmt);
/* Returns whether the statement is a loop whose iterations run again, from the last to the
 * first. */
bool kd_is_reversed_loop(kd_derivation *d, const kt_stmt *stmt);
/* Returns the maximum number of iterations of a loop, or 0 if it is not known. Sets *is_sure to
 * whether the structure of the loop alone guarantees this maximum. */
uint32_t kd_find_trips(const kd_derivation *d, const kt_stmt *stmt, bool *is_sure);
/* Emits a kernel error for threads in which the condition is true. The condition says that the loop
 * needs more iterations than it declares with @most. */
void kd_fail_if(kd_derivation *d, kt_expr *condition, kj_location location);

/* ---- loop_sums.c ---- */

/* Returns whether the loop only adds to the variable and no derivative needs the variable's
 * value. */
bool kd_is_sum(const kd_derivation *d, const kt_stmt *loop, const kt_var *var);
/* Returns the maximum number of iterations of a loop that divides a positive integer by at least 2
 * in each iteration. Returns 0 for other loops. */
uint32_t kd_count_halvings(const kd_derivation *d, const kt_stmt *loop);
/* Returns whether an integer expression is known to be never 0: it must be the counter of a loop
 * that counts up from a literal, or such a counter plus a literal. */
bool kd_is_positive_counter(const kd_derivation *d, const kt_expr *e);

/* ---- arrays that loops read and change: array_log*.c ---- */

/* The entries that the iterations of one loop add to one log. A log's depth is its current number
 * of entries. */
typedef struct kd_mark {
  kd_log *log;
  uint64_t most;    /* maximum number of entries that an iteration adds */
  bool is_exact;    /* each iteration adds exactly this number */
  bool is_straight; /* all stores are directly in the loop's body */
  /* the depth at each iteration's start; NULL if the depth can be computed */
  kt_var *tape;
  kt_var *start; /* the depth at the start of the iteration that is being undone */
  kt_var *end;   /* the depth at the end of the loop; NULL if no stores follow the loop */
} kd_mark;
typedef KJ_LIST(kd_mark) kd_marks;

/* Finds the arrays that loops read and change, and makes an empty log for each of them
 * (array_log.c). */
void kd_plan_logs(kd_derivation *d);
/* Returns whether a store of the prepared body saves the element that it overwrites. */
bool kd_is_logged(const kd_derivation *d, const kt_stmt *stmt);
/* Emits a store that first saves the overwritten element. Variables already hold the indices and
 * the value. */
void kd_log_store(kd_derivation *d, const kt_stmt *stmt, const kt_expr *array,
                  const kt_exprs *indices, kt_expr *value);
/* Like kd_log_store, for a store of the prepared body whose array, indices and value are not copied
 * yet. */
void kd_copy_logged(kd_derivation *d, const kt_stmt *stmt);
/* Forward pass: call the first function before the loop, the second at an iteration's start, and
 * the third after the loop. */
void kd_begin_marks(kd_derivation *d, const kt_stmt *loop, uint32_t trips, kd_marks *marks);
void kd_mark_iteration(kd_derivation *d, const kd_marks *marks, kt_expr *at);
void kd_mark_end(kd_derivation *d, const kd_marks *marks);
/* Reverse pass: call the first function before the loop, the second before the body that runs
 * again, and the third after the reverse statements of that body. is_inner tells whether the loop
 * is inside a body that runs again. */
void kd_undo_later(kd_derivation *d, const kd_marks *marks);
void kd_undo_iteration(kd_derivation *d, kd_marks *marks, const kt_stmt *loop, kt_expr *at);
void kd_undo_again(kd_derivation *d, const kd_marks *marks, const kt_stmt *loop, bool is_inner);
/* kd_end_logs records the logs' depths at the end of the func's first run. kd_redo_stores, which is
 * called last, repeats the stores to the caller's arrays that the reverse pass has undone. */
void kd_end_logs(kd_derivation *d);
void kd_redo_stores(kd_derivation *d);

/* ---- refusals.c ---- */

void kd_check_body(kd_derivation *d);

/* ---- forward.c ---- */

void kd_make_forward(kd_derivation *d);

#endif
