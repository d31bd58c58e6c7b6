/* Derivatives of funcs, from typed tree to typed tree: declarations that the files of lib/derive
 * share.
 *
 * The derivative of an instance is an instance of its own. derive.c creates it in four steps:
 *
 *   prepare.c   copies the body into the new instance. A call becomes the body of the called func.
 *               `break`, `continue` and early returns become flags, so that control flow nests.
 *   activity.c  finds the variables that depend on the chosen parameters and that the result
 *               depends on. Only these variables have a derivative.
 *   refusals.c  rejects bodies whose derivative would be wrong.
 *   forward.c, or the three reverse*.c, create the statements of the derivative.
 *   array_log*.c save elements that loops overwrite in arrays, for reverse derivatives.
 *   facts.c     lists kept values, bytes and atomic sums for the user.
 *
 * adjoint.h has the derivatives of kernels, which consist of such derivations. */
#ifndef KJ_DERIVE_DERIVE_H
#define KJ_DERIVE_DERIVE_H

#include "typing/infer.h"
#include "typing/rules.h"

typedef struct kd_log kd_log; /* array_log.c */

/* Analysis results for one variable of the prepared body. kd_derivation.variables has one for each
 * variable index. */
typedef struct kd_variable {
  bool varies;     /* the variable depends on a chosen parameter */
  bool matters;    /* the result depends on the variable */
  kt_var *other;   /* the derivative of the variable, or NULL */
  kt_var *instead; /* the variable that replaces it in emitted statements, or NULL */
  kd_log *log;     /* log of an array that loops read and change, or NULL */
} kd_variable;

typedef struct kd_derivation {
  kt_scope *s; /* scope of the derivative's instance, which is being made */
  kt_compilation *c;
  kj_arena *arena;
  ki_builtin_id kind;
  kt_inferred *record, *primal;
  kj_location
    location; /* location of the func; used for statements without a more precise location */
  kt_vars derivatives; /* parameters: the derivatives of record->chosen */
  kt_stmts body;       /* the prepared body */
  kt_var *cotangent;   /* parameter: the derivative with respect to the result, or NULL */
  bool is_recomputed;  /* the statements that are emitted have run before */
  kt_var *result;      /* the variable that the body returns; NULL if it returns nothing */
  size_t count;        /* number of variables of the prepared body */
  kd_variable *variables;
  KJ_LIST(kd_log *) logs;
  struct kd_part *adjoint; /* the part of the adjoint kernel; NULL for the derivative of a func */
} kd_derivation;

/* Returns whether the primal statements have run before. Their effects outside of the thread have
 * happened then and are not emitted again. */
static inline bool kd_has_run(const kd_derivation *d) { return d->is_recomputed || d->adjoint; }

/* Returns the name of the attribute by which a func gives its own rule for this derivative. */
static inline const char *kd_rule_word(const kd_derivation *d)
{
  return d->kind == KJ_BUILTIN_JVP ? "jvp" : "vjp";
}

_Noreturn void kd_refuse(kd_derivation *d, kj_location location, const char *format, ...)
  __attribute__((format(printf, 3, 4)));

/* ---- composed.c: types and values of derivatives ---- */

/* Returns whether values of the type have a derivative: floats, and types that contain them. */
bool kd_holds_float(const kt_compilation *c, kjit_type type);
/* Replaces f16 and bf16 by f32 in a number or vector type. Returns other types unchanged. */
kjit_type kd_wide_type(kd_derivation *d, kjit_type type);
/* kd_zero returns the value whose components are all 0. kd_one returns the value whose floats are
 * all 1. */
kt_expr *kd_zero(kd_derivation *d, kjit_type type);
kt_expr *kd_one(kd_derivation *d, kjit_type type);
/* Returns the value whose floats are all -0. Sums start with it, because LLVM can remove x + -0 but
 * not x + 0. */
kt_expr *kd_nothing(kd_derivation *d, kjit_type type);
/* Returns the sum of two derivatives, which are atoms. Components that are not floats are taken
 * from x. */
kt_expr *kd_add(kd_derivation *d, kt_expr *x, kt_expr *y);

/* ---- derive.c ---- */

/* Returns the derivative of an instance with respect to some of its parameters. values: the
 * derivatives of these parameters, as the call passes them. */
kt_inferred *kd_get_derived(kt_scope *s, kt_inferred *of, ki_builtin_id kind, const kt_vars *chosen,
                            const kt_exprs *values, kj_location location);

/* Returns the reverse derivative of an instance with respect to the chosen parameters. Rejects an
 * instance that is not linear in them. */
kt_inferred *kd_get_transpose(kt_scope *s, kt_inferred *of, const kt_vars *chosen,
                              const kt_exprs *values, kj_location location);
/* linear.c: rejects a prepared body that is not linear in the chosen parameters. */
void kd_check_linear(kd_derivation *d);
/* Runs the first three steps: prepare.c, activity.c and refusals.c. */
void kd_start(kd_derivation *d);

/* ---- adjoint.c ---- */

void kd_make_adjoint(kd_derivation *d);
/* Replaces each atomic sum whose result is not used by `a[i] = a[i] + e`. */
void kd_take_atomic_sums(kd_derivation *d);

/* ---- kernels without a grid loop: adjoint_threads.c, adjoint_shared.c, adjoint_rerun.c ---- */

/* Returns whether the statement is a barrier or a fence of such a kernel, which the adjoint
 * repeats. */
bool kd_is_sync(const kd_derivation *d, const kt_stmt *stmt);
/* Returns the atomic sum into a shared array that the statement was, or NULL. */
const kt_expr *kd_find_shared_sum(const kd_derivation *d, const kt_stmt *stmt);
void kd_copy_shared_sum(kd_derivation *d, const kt_stmt *stmt);
void kd_reverse_shared_sum(kd_derivation *d, const kt_stmt *stmt, kt_stmts *reverse);
/* Emits loops that set an array of derivatives with respect to shared elements to 0. */
void kd_clear_shared(kd_derivation *d, kt_var *other);
void kd_reverse_block_range(kd_derivation *d, const kt_stmt *stmt, kt_stmts *reverse);
/* Returns whether the body of a loop, if it ran again, would load elements that have been
 * overwritten. */
bool kd_must_keep(kd_derivation *d, const kt_stmt *loop);
/* Returns whether the derivation emits a store to a shared array at this point. */
bool kd_is_stored(const kd_derivation *d, const kt_stmt *store);
/* Called before and after the statements of a body that runs again. made: these statements. */
void kd_begin_rerun(kd_derivation *d, const kt_stmt *loop);
void kd_end_rerun(kd_derivation *d, kt_stmts *made);

/* ---- statements and variables: tree.c ---- */

kt_var *kd_new_var(kd_derivation *d, const char *name, kjit_type type, kj_location location);
kt_expr *kd_read(kd_derivation *d, kt_var *var);
/* Emits the return of the value, which ends the body of the instance. */
void kd_return(kd_derivation *d, kt_expr *value);
void kd_assign(kd_derivation *d, kt_var *var, kt_expr *value);
void kd_store(kd_derivation *d, kt_expr *array, const kt_exprs *indices, kt_expr *value);
kt_expr *kd_load(kd_derivation *d, kt_expr *array, const kt_exprs *indices);
/* Returns an atom with the value: stores the value in a new variable, unless it is a constant or a
 * variable. */
kt_expr *kd_keep(kd_derivation *d, kt_expr *value);
/* Returns a copy in which each variable is replaced by its kd_variable.instead. */
kt_expr *kd_copy(kd_derivation *d, const kt_expr *expr);
/* Returns the variable that owns the memory of an array, or NULL if it is not known. */
kt_var *kd_root(const kt_expr *array);
/* Returns whether the elements of the array are imaginary parts of complex numbers. */
bool kd_is_imaginary(const kd_derivation *d, const kt_expr *array);
/* Returns the same array expression with its indices stored in variables. */
kt_expr *kd_keep_array(kd_derivation *d, const kt_expr *array);
/* Calls make(d, indices, data) in loops over all elements of an array with static extents. */
void kd_for_elements(kd_derivation *d, kjit_type array,
                     void (*make)(kd_derivation *d, const kt_exprs *indices, void *data),
                     void *data);
/* Returns the array that holds the derivatives with respect to the elements of an array. */
kt_expr *kd_other_array(kd_derivation *d, const kt_expr *array);

/* ---- facts.c ---- */

/* Notes a fact about the derivative. about: see kt_derivative_fact. The arena owns the text. */
void kd_note_fact(kd_derivation *d, kj_location location, const kt_var *about, const char *text);
/* Notes that the tape keeps the values of a variable in each iteration of the loop. is_unrolled:
 * the loop is unrolled in both directions, and the tape needs no memory. */
void kd_note_tape(kd_derivation *d, const kt_stmt *loop, const kt_var *of, const kt_var *tape,
                  bool is_unrolled);
/* Returns the bytes of all arrays that a thread has: tapes, arrays of the func and their
 * derivatives. */
uint64_t kd_count_thread_bytes(const kt_compilation *c, const kt_instance *instance);
/* Prints the facts about all derivatives of the compilation, each on a line. Prints nothing if the
 * code has no derivatives. */
void kd_print_facts(const kt_compilation *c, kj_buffer *out);

/* ---- prepare.c ---- */

void kd_prepare(kd_derivation *d);
/* Prepares the body of a loop of the instance that is being inferred, without jumps out of its
 * iteration. The body keeps the loop variable and variables with an index below `outer`, and gets
 * copies of all other variables. */
void kd_prepare_loop_body(kd_derivation *d, const kt_stmt *loop, size_t outer);

/* ---- repeated.c ---- */

/* Stores expressions that a statement of the prepared body computes repeatedly in variables. */
void kd_name_repeated(kd_derivation *d);

/* ---- activity.c ---- */

void kd_find_active(kd_derivation *d);
/* Returns whether the value depends on a chosen parameter in a way that has a derivative. */
bool kd_varies(const kd_derivation *d, const kt_expr *expr);
bool kd_is_active(const kd_derivation *d, const kt_var *var);

/* ---- forward_parts.c: expressions whose parts are stored in variables ---- */

/* An expression whose value is in an atom, that is, in a variable or a constant. */
typedef struct kd_node kd_node;
struct kd_node {
  const kt_expr *from; /* the expression of the prepared body */
  kt_expr *value;      /* an atom */
  bool is_active;      /* the value has a derivative */
  kt_expr *tangent;    /* forward: the derivative, an atom; NULL means 0 */
  kd_node *nodes[3];   /* nodes of from->x, y and z */
  kd_node **args;      /* nodes of the operands in from->args */
  kt_expr *array;      /* LOAD: the array, its indices stored in variables */
  kt_exprs indices;    /* LOAD, ELEMENT, INSERT: the indices, which are atoms */
};
/* Emits the statements that compute the parts of the expression and their derivatives. */
kd_node *kd_flatten(kd_derivation *d, const kt_expr *expr);

/* ---- partials.c ---- */

typedef enum kd_rule_kind {
  KJ_RULE_NONE,     /* it has no derivative */
  KJ_RULE_PARTIAL,  /* a sum over its operands */
  KJ_RULE_PAIR,     /* a built-in that returns a pair */
  KJ_RULE_CHOICE,   /* the derivative of the value that `select` chooses */
  KJ_RULE_DISCRETE, /* 0 wherever there is a derivative */
} kd_rule_kind;
kd_rule_kind kd_rule_of(const ki_builtin *builtin);
/* Returns t times the derivative of the node with respect to operand `index`, or NULL if that is 0.
 * t is an atom; for a division it may be the negative of an atom. */
kt_expr *kd_times_partial(kd_derivation *d, const kd_node *node, size_t index, kt_expr *t);
/* The same for a built-in that returns a pair: t holds the derivatives with respect to both items.
 * */
kt_expr *kd_pair_reverse(kd_derivation *d, const kd_node *node, size_t index, kt_expr *t);
/* Returns a pair: t times the derivative of each item with respect to operand `index`. */
kt_expr *kd_pair_forward(kd_derivation *d, const kd_node *node, size_t index, kt_expr *t);
/* Changes a guard, t == 0 ? 0 : v for a factor t of v, such as a derivative, before it is derived
 * itself. The derivative of v with respect to t is not 0 where t is 0, so v has to count there. The
 * new guard is 0 only where t is 0 and v is NaN, because another factor of v is infinite. Adds a
 * statement that computes v. */
kt_expr *kd_open_guard(kd_derivation *d, kt_expr *guard);

/* ---- rules of the source: own_rules.c ---- */

bool kd_has_rule(const ki_function *function);
/* Returns the func that the source gives as the derivative of a function, or NULL if it gives none.
 * For reverse derivatives that is the rule for `vjp`, or else the rule for `jvp`. */
const ki_function *kd_own_rule(kd_derivation *d, const ki_function *function, kj_location location);
/* Calls the rule of an instance. values and derivatives: one for each run-time parameter; the
 * derivative of a parameter that holds no floats is NULL. */
kt_expr *kd_call_rule(kd_derivation *d, const ki_function *rule, const kt_inferred *of,
                      const kt_exprs *values, const kt_exprs *derivatives, kj_location location);
/* Rejects a rule that does not return a value and its derivative, both of the type. */
void kd_check_pair(kd_derivation *d, const kt_expr *both, kjit_type type, const ki_function *rule,
                   const ki_function *of, kj_location location);
/* The results of a reverse rule. derivatives has an item for each run-time parameter, NULL for a
 * parameter without a derivative. effect is the call of a rule that returns nothing. */
typedef struct kd_parts {
  kt_expr *value, *effect;
  kt_exprs derivatives;
} kd_parts;
/* Calls the rule of a func. t is the derivative with respect to the result, NULL for a func that
 * returns nothing. arrays (may be NULL) holds the derivatives of array parameters. */
kd_parts kd_go_back_by_rule(kd_derivation *d, const kt_inferred *of, const kt_exprs *values,
                            kt_expr *t, const kt_exprs *arrays, kj_location location);
/* Makes the derivative of a func that has its own rule: a call of the rule. */
void kd_return_rule(kd_derivation *d, const ki_function *rule);

/* ---- reverse.c, reverse_loop.c, reverse_expr.c ---- */

void kd_make_reverse(kd_derivation *d);
/* Declares the derivative of a variable and sets it to 0. */
void kd_add_derivative(kd_derivation *d, kt_var *var);
/* Emits the statements, and inserts the statements that propagate derivatives back through them at
 * the front of *reverse. */
void kd_reverse_block(kd_derivation *d, const kt_stmts *stmts, kt_stmts *reverse);
void kd_reverse_loop(kd_derivation *d, const kt_stmt *stmt, kt_stmts *reverse);
/* Emits into a new list, which kd_end_backwards puts in front of *reverse. */
typedef struct kd_backwards {
  kt_stmts *outer;
  kt_stmts own;
} kd_backwards;
void kd_begin_backwards(kd_derivation *d, kd_backwards *b);
void kd_end_backwards(kd_derivation *d, kd_backwards *b, kt_stmts *reverse);
/* Emits the statements of the prepared body in the forward direction only. */
void kd_copy_block(kd_derivation *d, const kt_stmts *stmts);
/* Returns whether the statement assigns a variable or stores to an array that has derivatives. */
bool kd_assigns_active(kd_derivation *d, const kt_stmt *stmt);
/* Adds t times the derivative of an expression to the derivatives of the variables in it. t is an
 * atom. */
void kd_hand_back(kd_derivation *d, const kd_node *node, kt_expr *t);
/* Adds t to the derivative with respect to the element that a LOAD loads. */
void kd_add_to_element(kd_derivation *d, const kd_node *node, kt_expr *t);
/* Returns whether the statement is `if condition { break }` at the end of a loop. */
bool kd_is_last_break(const kt_stmt *stmt);
/* Returns whether the statement is a loop whose iterations run again in reverse order. */
bool kd_is_reversed_loop(kd_derivation *d, const kt_stmt *stmt);
/* Returns the maximum number of iterations of a loop, or 0 if it is not known. Sets *is_sure to
 * whether the loop itself guarantees the maximum. */
uint32_t kd_find_trips(const kd_derivation *d, const kt_stmt *stmt, bool *is_sure);
/* Emits a kernel error for a thread for which the condition is true, because it runs a loop more
 * often than the @most of the loop says. */
void kd_fail_if(kd_derivation *d, kt_expr *condition, kj_location location);

/* ---- loop_sums.c ---- */

/* Returns whether the loop uses the value of the variable only to add to it. No derivative needs
 * this value. */
bool kd_is_sum(const kd_derivation *d, const kt_stmt *loop, const kt_var *var);
/* Returns the maximum number of iterations of a loop that divides a positive integer by 2 or more
 * in each iteration, or 0 for other loops. */
uint32_t kd_count_halvings(const kd_derivation *d, const kt_stmt *loop);
/* Returns whether an integer expression is the counter of a loop, or the counter plus a literal,
 * and is never 0: the loop counts up from a literal. */
bool kd_is_positive_counter(const kd_derivation *d, const kt_expr *e);

/* ---- arrays that loops read and change: array_log*.c ---- */

/* The entries that the iterations of one loop add to one log. The depth of a log is its number of
 * entries. */
typedef struct kd_mark {
  kd_log *log;
  uint64_t most;    /* maximum number of entries that an iteration adds */
  bool is_exact;    /* every iteration adds exactly that number */
  bool is_straight; /* all of the stores are directly in the body */
  /* the depth at the start of each iteration; NULL means that the depth is computed */
  kt_var *tape;
  kt_var *start; /* the depth at the start of the iteration that is undone */
  kt_var *end;   /* the depth at the end of the loop; NULL if no stores follow */
} kd_mark;
typedef KJ_LIST(kd_mark) kd_marks;

/* Finds the arrays that loops read and change, and makes an empty log for each of them. */
void kd_plan_logs(kd_derivation *d);
/* Returns whether a store of the body saves the element that it overwrites. */
bool kd_is_logged(const kd_derivation *d, const kt_stmt *stmt);
/* Emits a store that saves the element that it overwrites. The array's indices, the indices and the
 * value are stored in variables already. */
void kd_log_store(kd_derivation *d, const kt_stmt *stmt, const kt_expr *array,
                  const kt_exprs *indices, kt_expr *value);
/* Does the same for a store of the prepared body, whose array, indices and value are copied
 * first. */
void kd_copy_logged(kd_derivation *d, const kt_stmt *stmt);
/* Forward pass: called before the loop, at the start of an iteration, and after the loop. */
void kd_begin_marks(kd_derivation *d, const kt_stmt *loop, uint32_t trips, kd_marks *marks);
void kd_mark_iteration(kd_derivation *d, const kd_marks *marks, kt_expr *at);
void kd_mark_end(kd_derivation *d, const kd_marks *marks);
/* Reverse pass: called before the loop, before the body that runs again, and after the reverse
 * statements of this body. is_inner: the loop is in a body that runs again. */
void kd_undo_later(kd_derivation *d, const kd_marks *marks);
void kd_undo_iteration(kd_derivation *d, kd_marks *marks, const kt_stmt *loop, kt_expr *at);
void kd_undo_again(kd_derivation *d, const kd_marks *marks, const kt_stmt *loop, bool is_inner);
/* kd_end_logs is called at the end of the first run of the func and notes the depths of the logs.
 * kd_redo_stores is called at the very end: it repeats the stores to arrays of the caller, which
 * the reverse pass has undone. */
void kd_end_logs(kd_derivation *d);
void kd_redo_stores(kd_derivation *d);

/* ---- refusals.c ---- */

void kd_check_body(kd_derivation *d);

/* ---- forward.c ---- */

void kd_make_forward(kd_derivation *d);

#endif
