/* Derivatives of funcs, from typed tree to typed tree: what the files of lib/derive share.
 *
 * The derivative of an instance is an instance of its own. derive.c makes it in four steps:
 *
 *   prepare.c   copies the body into the new instance. A call becomes the body of the called func.
 *               `break`, `continue` and early returns become flags, so that control flow nests.
 *   activity.c  finds the variables that depend on the chosen parameters and that the result
 *               depends on. Only these variables have a derivative.
 *   refusals.c  refuses bodies whose derivative would be wrong.
 *   forward.c, or the three reverse*.c, make the statements of the derivative.
 *   array_log*.c keep what loops overwrite in arrays, for reverse derivatives.
 *
 * adjoint.h has the derivatives of kernels, which are made of such derivations. */
#ifndef KJ_DERIVE_DERIVE_H
#define KJ_DERIVE_DERIVE_H

#include "typing/infer.h"
#include "typing/rules.h"

typedef struct kd_log kd_log; /* array_log.c */

/* The knowledge about a variable of the prepared body, by its index. */
typedef struct kd_variable {
  bool varies;     /* it depends on a chosen parameter */
  bool matters;    /* the result depends on it */
  kt_var *other;   /* its derivative; NULL: it has none */
  kt_var *instead; /* of a loop whose body is emitted again: the variable that takes its place */
  kd_log *log;     /* of an array that loops read and change */
} kd_variable;

typedef struct kd_derivation {
  kt_scope *s; /* of the instance that is made */
  kt_compilation *c;
  kj_arena *arena;
  ki_builtin_id kind;
  kt_inferred *record, *primal;
  kj_location location; /* of the func, for what has no better place */
  kt_vars derivatives;  /* parameters: the derivatives of record->chosen */
  kt_stmts body;        /* prepared */
  kt_var *cotangent;    /* parameter: the derivative by the result; NULL: there is none */
  bool is_recomputed;   /* the statements that are emitted have run before */
  kt_var *result;       /* the variable that the body returns; NULL: it returns nothing */
  size_t count;         /* of the variables of the prepared body */
  kd_variable *variables;
  KJ_LIST(kd_log *) logs;
  struct kd_part *adjoint; /* of an adjoint kernel; NULL: it is a func's */
} kd_derivation;

/* The effects of the statements outside of the thread have happened: they are not emitted. */
static inline bool kd_has_run(const kd_derivation *d) { return d->is_recomputed || d->adjoint; }

/* The attribute that names a rule of one's own for this derivative. */
static inline const char *kd_rule_word(const kd_derivation *d)
{
  return d->kind == KJ_BUILTIN_JVP ? "jvp" : "vjp";
}

_Noreturn void kd_refuse(kd_derivation *d, kj_location location, const char *format, ...)
  __attribute__((format(printf, 3, 4)));

/* ---- composed.c: types and values of derivatives ---- */

/* Whether a value of the type has a derivative: a float, or something that holds one. */
bool kd_holds_float(const kt_compilation *c, kjit_type type);
/* The type, or for numbers and vectors of f16 and bf16 the same with f32. */
kjit_type kd_wide_type(kd_derivation *d, kjit_type type);
/* The value whose parts are all 0; whose floats are all 1. */
kt_expr *kd_zero(kd_derivation *d, kjit_type type);
kt_expr *kd_one(kd_derivation *d, kjit_type type);
/* The value whose floats are all -0: the start of a sum, as LLVM leaves out x + -0 and not x + 0.
 */
kt_expr *kd_nothing(kd_derivation *d, kjit_type type);
/* The sum of two derivatives, which are atoms. Parts that are no floats are those of the first. */
kt_expr *kd_add(kd_derivation *d, kt_expr *x, kt_expr *y);

/* ---- derive.c ---- */

/* The derivative of an instance by some of its parameters. values: the derivatives of these
 * parameters, as the call hands them over. */
kt_inferred *kd_get_derived(kt_scope *s, kt_inferred *of, ki_builtin_id kind, const kt_vars *chosen,
                            const kt_exprs *values, kj_location location);

/* The reverse derivative of an instance that is linear in these parameters, else it is refused. */
kt_inferred *kd_get_transpose(kt_scope *s, kt_inferred *of, const kt_vars *chosen,
                              const kt_exprs *values, kj_location location);
/* Refuses a prepared body that is not linear in the chosen parameters: linear.c. */
void kd_check_linear(kd_derivation *d);
/* The first three steps. */
void kd_start(kd_derivation *d);

/* ---- adjoint.c ---- */

void kd_make_adjoint(kd_derivation *d);
/* adjoint_plan.c: an atomic sum whose result nobody uses becomes `a[i] = a[i] + e`. */
void kd_take_atomic_sums(kd_derivation *d);

/* ---- statements and variables: tree.c ---- */

kt_var *kd_new_var(kd_derivation *d, const char *name, kjit_type type, kj_location location);
kt_expr *kd_read(kd_derivation *d, kt_var *var);
/* Ends the body of the instance. */
void kd_return(kd_derivation *d, kt_expr *value);
void kd_assign(kd_derivation *d, kt_var *var, kt_expr *value);
void kd_store(kd_derivation *d, kt_expr *array, const kt_exprs *indices, kt_expr *value);
kt_expr *kd_load(kd_derivation *d, kt_expr *array, const kt_exprs *indices);
/* The value in a variable of its own, unless it is a constant or a variable. */
kt_expr *kd_keep(kd_derivation *d, kt_expr *value);
/* A copy in which each variable is the one that takes its place. */
kt_expr *kd_copy(kd_derivation *d, const kt_expr *expr);
/* The variable whose memory an array is; NULL: it is not known. */
kt_var *kd_root(const kt_expr *array);
/* Whether the elements of the array are imaginary parts of complex numbers. */
bool kd_is_imaginary(const kd_derivation *d, const kt_expr *array);
/* The same array, its indices kept in variables. */
kt_expr *kd_keep_array(kd_derivation *d, const kt_expr *array);
/* Calls make(d, indices, data) in loops over all elements of an array with static extents. */
void kd_for_elements(kd_derivation *d, kjit_type array,
                     void (*make)(kd_derivation *d, const kt_exprs *indices, void *data),
                     void *data);
/* The array of derivatives that belongs to an array. */
kt_expr *kd_other_array(kd_derivation *d, const kt_expr *array);

/* ---- prepare.c ---- */

void kd_prepare(kd_derivation *d);

/* ---- activity.c ---- */

void kd_find_active(kd_derivation *d);
/* Whether the value depends on a chosen parameter in a way that has a derivative. */
bool kd_varies(const kd_derivation *d, const kt_expr *expr);
bool kd_is_active(const kd_derivation *d, const kt_var *var);

/* ---- forward_parts.c: expressions whose parts are kept ---- */

typedef struct kd_node kd_node;
struct kd_node {
  const kt_expr *from;
  kt_expr *value;    /* an atom: a variable or a constant */
  bool is_active;    /* it has a derivative */
  kt_expr *tangent;  /* forward: an atom; NULL: 0 */
  kd_node *nodes[3]; /* of .x .y .z */
  kd_node **args;    /* of .args, those that are operands */
  kt_expr *array;    /* LOAD: with its indices kept */
  kt_exprs indices;  /* LOAD, ELEMENT, INSERT: atoms */
};
/* Emits the statements that compute the parts of the expression and their derivatives. */
kd_node *kd_flatten(kd_derivation *d, const kt_expr *expr);

/* ---- partials.c ---- */

typedef enum kd_rule_kind {
  KJ_RULE_NONE,     /* it has no derivative */
  KJ_RULE_PARTIAL,  /* a sum over its operands */
  KJ_RULE_PAIR,     /* of a built-in that returns a pair */
  KJ_RULE_CHOICE,   /* one of two values */
  KJ_RULE_DISCRETE, /* 0 wherever there is a derivative */
} kd_rule_kind;
kd_rule_kind kd_rule_of(const ki_builtin *builtin);
/* t times the derivative of the node by operand `index`; t is an atom. NULL: that is 0. */
kt_expr *kd_times_partial(kd_derivation *d, const kd_node *node, size_t index, kt_expr *t);
/* The same from the derivatives t of both items, of a built-in that returns a pair. */
kt_expr *kd_pair_reverse(kd_derivation *d, const kd_node *node, size_t index, kt_expr *t);
/* The pair of the derivatives of both items by operand `index`. */
kt_expr *kd_pair_forward(kd_derivation *d, const kd_node *node, size_t index, kt_expr *t);

/* ---- rules of the source: own_rules.c ---- */

bool kd_has_rule(const ki_function *function);
/* The func that is the derivative of a function; NULL: it has no rule of its own. In reverse: the
 * rule for `vjp`, or else the one for `jvp`. */
const ki_function *kd_own_rule(kd_derivation *d, const ki_function *function, kj_location location);
/* Calls the rule of an instance. values and derivatives: one for each run-time parameter; the
 * derivative of a parameter that holds no floats is NULL. */
kt_expr *kd_call_rule(kd_derivation *d, const ki_function *rule, const kt_inferred *of,
                      const kt_exprs *values, const kt_exprs *derivatives, kj_location location);
/* Fails unless the rule returns a value and its derivative, both of the type. */
void kd_check_pair(kd_derivation *d, const kt_expr *both, kjit_type type, const ki_function *rule,
                   const ki_function *of, kj_location location);
/* The results of a reverse rule. derivatives has an item for each run-time parameter, NULL for a
 * parameter without a derivative. effect is the call of a rule that returns nothing. */
typedef struct kd_parts {
  kt_expr *value, *effect;
  kt_exprs derivatives;
} kd_parts;
/* Calls the rule of a func. t is the derivative by the result, NULL for a func that returns
 * nothing. arrays (may be NULL) holds the derivatives of array parameters. */
kd_parts kd_go_back_by_rule(kd_derivation *d, const kt_inferred *of, const kt_exprs *values,
                            kt_expr *t, const kt_exprs *arrays, kj_location location);
/* The derivative of a func that has a rule of its own is a call of the rule. */
void kd_return_rule(kd_derivation *d, const ki_function *rule);

/* ---- reverse.c, reverse_loop.c, reverse_expr.c ---- */

void kd_make_reverse(kd_derivation *d);
/* Declares the derivative of a variable, which is 0. */
void kd_add_derivative(kd_derivation *d, kt_var *var);
/* Emits the statements; the statements that go backwards through them are put in front of
 * *reverse. */
void kd_reverse_block(kd_derivation *d, const kt_stmts *stmts, kt_stmts *reverse);
void kd_reverse_loop(kd_derivation *d, const kt_stmt *stmt, kt_stmts *reverse);
/* Adds t times the derivative of an expression to the derivatives of the variables in it. t is an
 * atom. */
void kd_hand_back(kd_derivation *d, const kd_node *node, kt_expr *t);
/* Adds t to the derivative by the element that a LOAD loads. */
void kd_add_to_element(kd_derivation *d, const kd_node *node, kt_expr *t);
/* The last statement of a loop that leaves it. */
bool kd_is_last_break(const kt_stmt *stmt);
/* Whether it is a loop whose body runs again, backwards. */
bool kd_is_reversed_loop(kd_derivation *d, const kt_stmt *stmt);
/* The most iterations of a loop; 0: it is not known. is_sure: the loop cannot run more often. */
uint32_t kd_find_trips(const kt_stmt *stmt, bool *is_sure);
/* Fails the thread that runs a loop more often than its @most says. */
void kd_fail_if(kd_derivation *d, kt_expr *condition, kj_location location);

/* ---- arrays that loops read and change: array_log*.c ---- */

/* Of a loop and a log: what an iteration keeps. */
typedef struct kd_mark {
  kd_log *log;
  uint64_t most;    /* entries of an iteration */
  bool is_exact;    /* it is always this number */
  bool is_straight; /* all of the stores stand in the body itself */
  kt_var *tape;     /* the depth of the log where each iteration begins; NULL: it is computed */
  kt_var *start;    /* the same of the iteration that is undone */
  kt_var *end;      /* the depth where the loop ends; NULL: no stores follow */
} kd_mark;
typedef KJ_LIST(kd_mark) kd_marks;

/* Finds the arrays and makes their logs, which are empty. */
void kd_plan_logs(kd_derivation *d);
/* Whether a store of the body keeps what it overwrites. */
bool kd_is_logged(const kd_derivation *d, const kt_stmt *stmt);
/* Makes such a store. The array's indices and the value are kept. */
void kd_log_store(kd_derivation *d, const kt_stmt *stmt, const kt_expr *array,
                  const kt_exprs *indices, kt_expr *value);
/* The same, of what the source says. */
void kd_copy_logged(kd_derivation *d, const kt_stmt *stmt);
/* Forwards: in front of the loop, where an iteration begins, and behind the loop. */
void kd_begin_marks(kd_derivation *d, const kt_stmt *loop, uint32_t trips, kd_marks *marks);
void kd_mark_iteration(kd_derivation *d, const kd_marks *marks, kt_expr *at);
void kd_mark_end(kd_derivation *d, const kd_marks *marks);
/* Backwards: in front of the loop; in front of the body that runs again; behind its reverse
 * statements. is_inner: the loop is in a body that runs again. */
void kd_undo_later(kd_derivation *d, const kd_marks *marks);
void kd_undo_iteration(kd_derivation *d, kd_marks *marks, const kt_stmt *loop, kt_expr *at);
void kd_undo_again(kd_derivation *d, const kd_marks *marks, const kt_stmt *loop, bool is_inner);
/* Where the func's own run ends; and at the end of all: arrays of the caller get their elements
 * back. */
void kd_end_logs(kd_derivation *d);
void kd_redo_stores(kd_derivation *d);

/* ---- refusals.c ---- */

void kd_check_body(kd_derivation *d);

/* ---- forward.c ---- */

void kd_make_forward(kd_derivation *d);

#endif
