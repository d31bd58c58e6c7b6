/* The typed kernel IR. Inference creates one instance for each function and combination of argument
 * types, passes rewrite the instances, and lowering translates them to LLVM IR.
 *
 * The tree is similar to the untyped tree but simpler: every expression has its final type, and
 * conversions are explicit. Names have been resolved to variables, and calls of generic functions
 * to instances. Compile-time values are constants, static conditions have been evaluated, and
 * compound assignments are split into a load, an operation and a store. All nodes are in the
 * compilation's arena. */
#ifndef KJ_TYPING_TYPED_H
#define KJ_TYPING_TYPED_H

#include "typing/compilation.h"

/* ---- expressions ---- */

/* The kinds of expressions. nodes.def describes the fields of each kind. */
typedef enum kt_tkind {
#define KJ_EXPR(kind, source, cheap) KJ_T_##kind,
#include "typing/nodes.def"
} kt_tkind;
enum {
  KJ_T_COUNT = 0
#define KJ_EXPR(kind, source, cheap) +1
#include "typing/nodes.def"
};

/* An expression's input in addition to its operands (nodes.def). */
typedef enum kt_source_of_value {
  KJ_FROM_OPERANDS,
  KJ_FROM_VARIABLE,
  KJ_FROM_MEMORY,
  KJ_FROM_BUILTIN,
  KJ_FROM_CALL
} kt_source_of_value;
kt_source_of_value kt_source_of(const kt_expr *expr);
/* Returns whether the type is an array in local memory or a tuple that contains such an array. */
bool kt_holds_local(const ki_types *types, kjit_type type);
/* Returns whether recomputing an expression of this kind can be cheaper than storing its value. */
bool kt_is_cheap_kind(kt_tkind kind);

/* The memory order of an atomic operation, in .dimension. builtins.def has the names in the same
 * order. */
typedef enum kt_memory_order {
  KJ_ORDER_RELAXED,
  KJ_ORDER_ACQUIRE,
  KJ_ORDER_RELEASE,
  KJ_ORDER_ACQ_REL,
  KJ_ORDER_SEQ_CST
} kt_memory_order;

/* The minimum and maximum values of an integer. pass/interval.h has the operations on intervals. */
typedef struct kt_interval {
  bool known;
  __int128 least, most;
} kt_interval;

/* One dimension of a view. extent and step are indices into .indices of the view. The expressions
 * in .indices have type i64 and no effects. */
enum { KJ_VIEW_SAME = -1 };
typedef struct kt_view_dimension {
  /* The dimension of .x from which this dimension selects elements. KJ_VIEW_SAME means that the
   * view covers the memory of .x in another row-major shape. Such a view covers all dimensions of
   * .x, and its elements can have another type (kt_has_new_shape). */
  int source;
  int extent; /* KJ_VIEW_SAME: the extent of the source dimension */
  int step;   /* factor for the source stride, which can be negative; KJ_VIEW_SAME means 1 */
} kt_view_dimension;

/* Value of .dimension in a MEMBER node that stands for all lanes in a vector in memory. */
enum { KJ_ALL_LANES = INT32_MAX };

/* Accesses in a loop whose checks are hoisted out of the loop: they cannot fail if the loop's
 * conditions are true (kt_stmt.hoisted). */
typedef struct kt_loop_checks {
  kt_exprs exprs;
  kt_stmts stores;
} kt_loop_checks;

/* The result of pass/prove.c for a check. UNSEEN: not examined yet. ALWAYS: the check cannot fail.
 * BLOCK: the check cannot fail in a block that satisfies kt_compilation.hoisted. NONE: nothing is
 * known. */
typedef enum kt_proof { KJ_PROOF_UNSEEN, KJ_PROOF_ALWAYS, KJ_PROOF_BLOCK, KJ_PROOF_NONE } kt_proof;

/* The kind of step for which a division was created, so that the division's check reports a step of
 * 0. */
typedef enum kt_step_kind { KT_STEP_NONE, KT_STEP_OF_RANGE, KT_STEP_OF_SLICE } kt_step_kind;

struct kt_expr {
  kt_tkind kind;
  kjit_op op;
  kjit_type type;
  kj_location location;
  kt_expr *x, *y, *z;
  kt_exprs args, indices;
  const kt_view_dimension *dimensions; /* VIEW */
  kt_var *var;
  const ki_builtin *builtin;
  /* BUILTIN ptx: the text in LLVM's form. .dimension has a bit for each operand that appears in the
   * text as an integer instead of a register. */
  const char *text;
  kt_instance *instance;
  uint32_t dimension;
  __int128 integer;
  kt_interval range; /* the range of an integer expression; set by pass/range.c */
  /* Set by pass/checks.c: the expression has a run-time check. A LOAD, VIEW or BUILTIN with an
   * lvalue compares its indices with the extents. A BINARY or BUILTIN that divides compares the
   * divisor with 0. */
  bool is_checked;
  /* The check of is_checked was removed, because pass/prove.c has shown that it cannot fail, or
   * because the node is in the unchecked version of a loop. Builds with assertions assert the
   * condition of the check. */
  bool is_left_out;
  kt_proof proof; /* the state of the proof that the check of is_checked cannot fail */
  /* a BINARY DIV that implements `**`, comes from lib/derive, or belongs to the code of a built-in;
   * its divisor is not checked */
  bool is_power;
  /* A COND or BUILTIN select from lib/derive, whose condition compares a number with 0. The value
   * is 0 if the number is 0. Otherwise the value is .z or args[2], which is a product with the
   * number as a factor. */
  bool is_guard;
  /* a LOAD from lib/derive that saves a value in order to restore it later; the value may be
   * uninitialized */
  bool is_kept;
  /* Set by inference for CONVERT, BINARY and UNARY: the node converts an untyped number, or an
   * expression of untyped numbers and literals, to an integer type. The launch checks that the
   * value fits the type (number_limits.c). */
  bool must_fit;
  kt_step_kind step_of; /* for a BINARY FLOORDIV by a step, whose check reports a step of 0 */
  /* a COND that computes the index .z, which counts from the end if it is negative (range.c) */
  bool is_wrap;
  /* Set by pass/checks.c for a LOAD or BUILTIN with an lvalue: the check for uninitialized memory
   * or races monitors this access of shared or local memory (native/support_routines.h). */
  bool is_watched;
  /* Set by pass/range.c, i64 only: the value is computed and stored in 32 bits. Either its range
   * fits i32, or only its low 32 bits are used, as in a variable that is used only for indices. */
  bool is_narrow;
};

/* Returns whether the view is its array's memory in another shape, possibly with another element
 * type. */
static inline bool kt_has_new_shape(const kt_expr *view)
{
  KJ_ASSERT(view->kind == KJ_T_VIEW);
  return view->dimensions && view->indices.count && view->dimensions[0].source == KJ_VIEW_SAME;
}

static inline bool kt_is_cluster_barrier(ki_builtin_id id)
{
  return id == KJ_BUILTIN_CLUSTER_SYNC || id == KJ_BUILTIN_CLUSTER_ARRIVE ||
         id == KJ_BUILTIN_CLUSTER_WAIT;
}

/* Returns whether the expression is a built-in that accesses its lvalue, which is the element
 * .x[.indices]. */
static inline bool kt_accesses_place(const kt_expr *e)
{
  return e->kind == KJ_T_BUILTIN && (e->builtin->flags & (KJ_PLACE | KJ_READS)) && e->x;
}

/* Returns the value of a CONST. */
static inline ki_value kt_value_of(const kt_expr *constant)
{
  KJ_ASSERT(constant->kind == KJ_T_CONST);
  return (ki_value){ constant->type, constant->integer };
}

/* ---- effects: effects.c ---- */

/* Kinds of memory, as bits. A pointer can point to any kind. Constant arrays have no bit, because
 * their contents never change. */
enum {
  KJ_MEMORY_GLOBAL = 1,
  KJ_MEMORY_SHARED = 2,
  KJ_MEMORY_LOCAL = 4,
  KJ_MEMORY_ANY = KJ_MEMORY_GLOBAL | KJ_MEMORY_SHARED | KJ_MEMORY_LOCAL
};

/* Describes the kinds of memory that an expression or a statement reads and writes, and its other
 * effects. Reads and assignments of variables are not included. */
typedef struct kt_effects {
  uint8_t reads, writes; /* the kinds of memory that the node loads from, and those that it stores
                          * to */
  /* The node has another effect whose order matters: an atomic operation, a barrier, a print, or an
   * error that the kernel raises. Such an effect is treated as if it read and changed all
   * memory. */
  bool acts;
  bool may_fail; /* the node contains a check that can fail and that the request enables */
  /* the value depends on the thread's position, so it can differ between the threads in a block */
  bool has_positions;
  /* the node itself refers to a local array; a reference in a called func does not count */
  bool has_locals;
  bool has_loops; /* the node can execute a loop that belongs to a single thread */
} kt_effects;

/* The effects of calling an instance, computed on first use. */
typedef struct kt_known_effects {
  kt_effects all;
  uint32_t state; /* the kt_tree_state for which the effects were computed */
  bool is_known, is_busy;
} kt_known_effects;

static inline bool kt_has_any_effect(const kt_effects *effects)
{
  return effects->writes || effects->acts || effects->may_fail;
}

/* ---- variables ---- */

typedef enum kt_tvar_kind {
  /* run-time parameter of the instance: .argument is its index in the signature (kernels) */
  KJ_V_PARAM,
  KJ_V_LET,  /* assigned once */
  KJ_V_VAR,  /* assigned any number of times */
  KJ_V_LOOP, /* variable of a FOR, GRID_FOR or BLOCK_FOR, which only the loop assigns */
  /* An array with static extents; rank 0 means a shared scalar, which is accessed without an index.
   * If is_static is false, the array has one dimension, whose extent is determined at launch. */
  KJ_V_SHARED,
  KJ_V_LOCAL, /* array with static extents in the thread's local memory */
  /* A constant array. .data holds its elements in row-major order. If .data is NULL, the program
   * that loads the code defines it; .name is its symbol, and rank 0 means a scalar. */
  KJ_V_CONST
} kt_tvar_kind;

struct kt_var {
  kt_tvar_kind kind;
  const char *name;
  kjit_type type;
  kj_location location;
  uint32_t index; /* unique in its instance, without gaps; parameters come first */
  uint32_t argument;
  uint32_t alignment; /* from @align, else 0 */
  /* for a LET, or a PARAM of a func, that is an array: the known alignment of its first element's
   * address; 0 means unknown */
  uint32_t start_alignment;
  /* SHARED: the declaration whose extents the runtime evaluates at each launch. NULL means that the
   * extents are static, or that the launch specifies the size in bytes. */
  const ki_decl *sized_by;
  const void *data;
  kt_interval range; /* set by pass/range.c */
  /* for an untyped integer that can need more than 32 bits: KJIT_I64 or KJIT_U64, the type that it
   * has if no other operand determines its type; for other variables KJIT_ANY */
  kjit_type wide;
  /* the valid range of a PARAM or LET that is an untyped number or is computed from one; set by
   * typing/number_limits.c */
  kj_number_limit least, most;
  bool is_narrow; /* stored in 32 bits */
  /* Set by derive/adjoint_gather.c for a variable that replaces the variable of a grid loop: the
   * extent of the grid loop. Each index that is computed from the variable is at least 0 and less
   * than this extent. */
  const kt_expr *below;
  /* set by pass/simt.c, for the CPU only: */
  /* the variable is used after a synchronization, so it is an array with an element for each thread
   * in the block */
  bool is_slot;
  /* all threads in a block have the same value, which is computed outside of thread loops */
  bool is_uniform;
  struct kp_simt_variable *simt; /* used by pass/simt.c only */
  void *lowered;                 /* used by lowering only */
};

/* ---- statements ---- */

/* The kinds of statements. nodes.def describes the fields of each kind. */
typedef enum kt_tstmt_kind {
#define KJ_STMT(kind, flow) KJ_TS_##kind,
#include "typing/nodes.def"
} kt_tstmt_kind;
enum {
  KJ_TS_COUNT = 0
#define KJ_STMT(kind, flow) +1
#include "typing/nodes.def"
};

/* How a statement affects the control flow (nodes.def). */
typedef enum kt_flow {
  KJ_FLOW_STRAIGHT,
  KJ_FLOW_BRANCH,
  KJ_FLOW_LOOP,
  KJ_FLOW_RANGE,
  KJ_FLOW_JUMP,
  KJ_FLOW_BLOCK
} kt_flow;
kt_flow kt_flow_of(const kt_stmt *stmt);

/* Control characters in the text of a PRINT statement. VALUE stands for the next value. ESCAPE is
 * followed by a control character, increased by 64. */
enum { KJ_PRINT_ESCAPE = 1, KJ_PRINT_VALUE = 2 };
/* the value of kt_instance.off for threads that have left the kernel */
enum { KJ_OFF_LEFT_KERNEL = 1 };
/* special values of kt_stmt.unroll, which is otherwise the unroll factor; NONE: lowering decides */
enum { KJ_UNROLL_NONE = 0, KJ_UNROLL_NEVER = 1, KJ_UNROLL_FULL = -1 };

struct kt_stmt {
  kt_tstmt_kind kind;
  kj_location location;
  kt_var *var;
  kt_expr *value, *array;
  kt_exprs indices;
  kt_expr *first, *stop, *step;
  kt_vars vars;
  kt_exprs extents;
  kt_stmts body, otherwise;
  int unroll;
  /* WHILE, FOR: the number in `@most`, the maximum number of iterations; 0 means that there is
   * none */
  uint32_t most;
  bool keeps_values;       /* WHILE, FOR: has `@keep` */
  kj_failure_kind failure; /* FAIL */
  const char *message;
  bool is_checked, is_left_out, is_watched; /* STORE: as in kt_expr */
  kt_proof proof;
  /* FOR, GRID_FOR, BLOCK_FOR: the checks that cannot fail if all conditions in .indices are true at
   * the loop's start. Set by pass/loop_versions.c, for GPUs and C functions. */
  const kt_loop_checks *hoisted;
  bool is_guarded;
  /* set by pass/simt.c for a statement that deactivates threads: a number that identifies the
   * statement in the `off` of these threads */
  uint32_t off_number;
  /* set by pass/simt.c: the statement contains a synchronization, so it is not part of a thread
   * loop */
  bool is_joint;
  /* set by pass/simt.c for loops and ONCE: some threads can break (leave) or continue while others
   * do not */
  bool masks_break, masks_continue;
  /* set by pass/interrupts.c for loops: the number of iterations between two interrupt polls (0
   * means no polls), and the cost of an iteration, in expressions */
  uint32_t poll, poll_cost;
  /* Set by pass/interrupts.c for loops, GPU only. is_polled_twice: the loop has two versions, and
   * short runs use the version without interrupt polls. has_products: the body has asynchronous
   * matrix products. */
  bool is_polled_twice, has_products;
  /* set by pass/interrupts.c for WHILE, CPU only: the loop waits for another thread */
  bool only_waits;
  /* set by pass/simt.c for GRID_FOR and BLOCK_FOR: any thread can execute any iteration */
  bool is_threadless;
};

/* Approximate number of expressions that a loop executes between two interrupt polls. */
enum { KJ_POLL_BUDGET = 1 << 16 };

/* ---- instances ---- */

/* Attributes of a function that also apply to the functions that it calls. */
typedef struct kt_modes {
  bool is_strict, is_fastmath;
  /* converting an out-of-range float to an integer gives the result of the x86 instruction */
  bool is_indefinite;
} kt_modes;

/* Information about a derivative, which `--emit derivatives` prints. about: the variable that the
 * information describes, or NULL. The information is not printed if this variable has been removed
 * from the instance. */
typedef struct kt_derivative_fact {
  kj_location location;
  const kt_var *about;
  const char *text;
  bool is_in_registers; /* about is a tape whose loops are unrolled, so the tape is in registers */
} kt_derivative_fact;

struct kt_instance {
  const ki_function *function;
  uint32_t id;      /* index in the compilation's instances */
  kjit_type result; /* KJIT_VOID: none */
  kt_vars params;   /* run-time parameters */
  kt_vars locals;   /* all other variables, including the shared and local arrays */
  kt_stmts body;
  const char *symbol;   /* unique in the compilation; for the kernel, its name */
  const char *made_for; /* values of the parameters, such as "(f32, 16)", for messages */
  bool is_kernel;
  kt_modes modes;
  /* this instance, or an instance that it calls, has a barrier; the same for warp operations */
  bool has_barrier, has_warp;
  /* this instance, or one that it calls, uses a built-in with a position of a thread (KJ_THREAD),
   * blockIdx, gridDim or similar */
  bool uses_positions;
  bool is_recursive;      /* calls itself, directly or through others */
  bool reaches_recursion; /* calls a recursive instance, directly or through others */
  /* set by pass/checks.c: this instance, or one that it calls, has a run-time check or raises an
   * error */
  bool may_fail;
  /* set by pass/interrupts.c: this instance, or one that it calls, polls for interrupts */
  bool polls;
  bool polls_first; /* the instance polls for interrupts at its beginning */
  /* the values of @max_registers and of @launch_bounds; 0 means that there is none. The first value
   * of @launch_bounds is in kj_code. */
  uint32_t min_blocks, max_cluster, max_registers;
  /* block shape from a constant @block, or from the signature; 0 means unknown */
  uint32_t block[3];
  bool is_inferred; /* the body is complete */
  kt_known_effects effects;
  /* set by pass/simt.c, CPU only: a slot that is 0 in active threads; NULL if all threads are
   * always active */
  kt_var *off;
  /* "adjoint", "vjp" or "jvp" if the instance is a derivative of its function, otherwise NULL */
  const char *derivative;
  KJ_LIST(kt_derivative_fact) facts;
  kt_instance *caller; /* instance with the first call, for messages */
  kj_location call_location;
};

/* ---- new nodes and variables ---- */

/* Returns the alignment in bytes that a shared or local array has on every target. */
uint32_t kt_storage_alignment(const ki_types *types, const kt_var *var);
/* Create a node with this kind, type and location, whose other fields are 0. */
kt_expr *kt_new_texpr(kt_compilation *c, kt_tkind kind, kjit_type type, kj_location location);
kt_stmt *kt_new_tstmt(kt_compilation *c, kt_tstmt_kind kind, kj_location location);
kt_stmt *kt_new_if(kt_compilation *c, kt_expr *condition, kj_location location); /* no body */
/* Creates a variable and sets its index. Appends a KJ_V_PARAM to the instance's params, and any
 * other variable to its locals. */
kt_var *kt_new_tvar(kt_compilation *c, kt_instance *instance, kt_tvar_kind kind, const char *name,
                    kjit_type type, kj_location location);

/* ---- operands and walks: only these functions know in which fields a node has operands ---- */

/* An expression's operands are .x, .y, .z, .indices and .args, in this order. An operand is NULL if
 * the kind does not use the field. */
static inline size_t kt_operand_count(const kt_expr *expr)
{
  return 3 + expr->indices.count + expr->args.count;
}
kt_expr **kt_operand_place(kt_expr *expr, size_t index);
kt_expr *kt_operand(const kt_expr *expr, size_t index);
/* Apart from its bodies, a statement has the expressions .value, .array, .indices, .first, .stop,
 * .step and .extents, in this order. An expression is NULL if the kind does not use the field. */
static inline size_t kt_stmt_operand_count(const kt_stmt *stmt)
{
  return 5 + stmt->indices.count + stmt->extents.count;
}
kt_expr **kt_stmt_operand_place(kt_stmt *stmt, size_t index);
kt_expr *kt_stmt_operand(const kt_stmt *stmt, size_t index);

/* Calls visit for *expr and every expression in it. Operands precede the expressions that contain
 * them. visit can replace the expression. */
void kt_walk_texpr(kt_expr **expr, void (*visit)(void *data, kt_expr **expr), void *data);
/* Calls visit_expr for every expression and visit_stmt for every statement in the list and its
 * nested lists, in order. A statement precedes its expressions and bodies. Each function can be
 * NULL. */
void kt_walk_tstmts(kt_stmts *stmts, void (*visit_stmt)(void *data, kt_stmt *stmt),
                    void (*visit_expr)(void *data, kt_expr **expr), void *data);

/* The loop counter of a `while` loop that runs at most .stop - .at times, if both are evaluated at
 * its start. The loop's condition is .at < .stop. Each iteration adds 1 to .at; nothing else
 * changes .at or .stop. Both are integers of the same type, have no effects and cannot fail. */
typedef struct kt_counter {
  const kt_expr *at, *stop;
} kt_counter;
bool kt_find_counter(const kt_stmt *loop, kt_counter *found);

/* Tests whether a node has a property. */
typedef bool (*kt_texpr_test)(void *data, const kt_expr *expr);
typedef bool (*kt_tstmt_test)(void *data, const kt_stmt *stmt);
/* Returns whether expr or an expression in it has the property. expr can be NULL. An expression is
 * tested before its operands. The walk ends at the first expression that has the property. */
bool kt_any_texpr(const kt_expr *expr, kt_texpr_test test, void *data);
/* Like kt_any_texpr, for a statement or a list of statements, including nested ones. Each test can
 * be NULL. */
bool kt_any_in_tstmt(const kt_stmt *stmt, kt_tstmt_test test_stmt, kt_texpr_test test_expr,
                     void *data);
bool kt_any_in_tstmts(const kt_stmts *stmts, kt_tstmt_test test_stmt, kt_texpr_test test_expr,
                      void *data);

/* Returns a deep copy. map, which can be NULL, returns the replacement for each variable. */
typedef kt_var *(*kt_map_var)(void *data, kt_var *var);
kt_expr *kt_clone_texpr(kt_compilation *c, const kt_expr *expr, kt_map_var map, void *data);
/* Returns the number of nodes in an expression, which can be NULL, but at most the limit. */
size_t kt_count_nodes(const kt_expr *expr, size_t limit);
/* Returns the kinds of memory, as KJ_MEMORY bits, that can hold the elements in an array. */
uint8_t kt_memory_of(const ki_types *types, kjit_type array);
/* Add the effects of evaluating an expression, which can be NULL, or of executing a statement and
 * its bodies. */
void kt_add_effects(const kt_compilation *c, const kt_expr *expr, kt_effects *effects);
void kt_add_stmt_effects(const kt_compilation *c, const kt_stmt *stmt, kt_effects *effects);
void kt_join_effects(kt_effects *to, const kt_effects *more);
/* Returns whether two expressions with these effects can be evaluated in either order. */
bool kt_commute(const kt_effects *a, const kt_effects *b);
/* Returns whether the expression contains a call, or a built-in that is not pure. */
bool kt_has_effect(const kt_expr *expr);
/* Returns whether the division check applies to the operator or built-in. */
bool kt_is_division(kjit_op op);
bool kt_is_division_builtin(ki_builtin_id id);
/* Returns whether the request enables the check of divisors of this type. For a vector, the type of
 * the lanes decides. */
bool kt_checks_divisor(const kt_compilation *c, kjit_type type);
/* Returns whether the expression is a division whose divisor may be 0, and the request enables the
 * check. */
bool kt_checks_division(const kt_compilation *c, const kt_expr *expr);
/* Returns whether the expression need not be evaluated: it has no effects, and contains no check
 * that the request enables and that can fail. */
bool kt_can_drop(const kt_compilation *c, const kt_expr *expr);

static inline bool kt_is_constant(const kt_expr *expr) { return expr->kind == KJ_T_CONST; }

#endif
