/* The typed kernel IR: one instance for each function and tuple of argument types, made by
 * inference; passes rewrite it; lowering walks it.
 *
 * A tree like the untyped one, smaller: every expression has its final type, conversions are
 * explicit, names are variables, generic functions are instances, compile-time values are
 * constants, static conditions are decided, compound assignments are taken apart. Everything lives
 * in the compilation's arena. */
#ifndef KJ_TYPING_TYPED_H
#define KJ_TYPING_TYPED_H

#include "compiler.h"
#include "ir/arithmetic.h"
#include "ir/module.h"

typedef struct kt_expr kt_expr;
typedef struct kt_stmt kt_stmt;
typedef struct kt_var kt_var;
typedef struct kt_instance kt_instance;

typedef KJ_LIST(kt_expr *) kt_exprs;
typedef KJ_LIST(kt_stmt *) kt_stmts;
typedef KJ_LIST(kt_var *) kt_vars;

/* ---- one compilation ---- */

/* What passes have done to the trees; see pass/passes.def. */
typedef enum kt_tree_state {
  KJ_TREE_TYPED = 1,    /* all instances are there */
  KJ_TREE_PARTS = 2,    /* cpu_parts, is_cooperative, has_cluster are known */
  KJ_TREE_CHECKED = 4,  /* is_checked and is_watched are set */
  KJ_TREE_FAILING = 8,  /* may_fail is set */
  KJ_TREE_THREADS = 16, /* the kernel is loops over threads: THREADS and what goes with it */
  KJ_TREE_NARROW = 32   /* ranges are known, is_narrow is set */
} kt_tree_state;

/* The rows of <kjit/limits.def>. */
typedef enum kt_limit {
#define KJIT_ROW(name, field, value, text, unit, scale, what) KJ_LIMIT_##name,
#include <kjit/limits.def>
#undef KJIT_ROW
  KJ_LIMIT_COUNT
} kt_limit;

/* What a compilation has used of its limits: budget.c's own but for the counts. */
typedef struct kt_budget {
  uint64_t limits[KJ_LIMIT_COUNT];
  uint64_t started_ns; /* processor time of this thread */
  uint64_t expressions, instances;
  uint32_t until_look; /* calls of kt_poll */
  const char *step;    /* what is being done, for messages */
} kt_budget;

typedef struct kt_compilation kt_compilation;
struct kt_compilation {
  const kj_compile_request *request;
  kt_budget *budget; /* one for the unchecked version, too */
  const kjit_module *module;
  ki_types *types;
  kj_arena *arena; /* scratch: everything of this compilation */
  kj_diagnostics *diagnostics;
  /* kt_fail goes there with KJ_JUMP_ERROR; the arena with KJ_JUMP_MEMORY */
  jmp_buf *on_failure;
  uint32_t state; /* kt_tree_state, any number of them */
  /* in order of creation; callees before callers except for [0], the kernel */
  KJ_LIST(kt_instance *) instances;
  /* the instance being inferred, for the call chain of messages */
  const kt_instance *chain;
  /* out: what the runtime learns of the code. Each fact is filled in by the pass, or the part of
   * lowering and emission, that finds it */
  kj_code *code;
  /* PTX version that built-ins need; 0: any. By typing/rules_instruction.c */
  uint32_t least_ptx;
  uint32_t ptx;     /* version of the code, by target/nvptx.c */
  bool has_cluster; /* by pass/launch_needs.c: built-ins of clusters */
  /* CPU, by pass/simt.c: a barrier that part of a block's threads may reach */
  bool has_part_barrier;
  /* by inference: the last barrier, or call of what has one, under a condition that depends on the
   * thread; NULL: there is none */
  const char *divergent_barrier;
  kj_location divergent_location;
  bool has_wraps; /* by inference: some index counts from the end where it is negative */
  /* out, by lowering: which facts the code relies on, for kj_code.facts */
  bool used_aligned16, used_rows_aligned16, used_offsets32, used_grid32, used_disjoint, used_same;
  /* by pass/prove.c, CPU only: what holds in a block whose hoisted checks cannot fail, in terms of
   * the kernel's parameters and the block; and the same kernel without them, which such a block
   * runs. NULL: there is none */
  kt_exprs hoisted;
  bool drops_hoisted; /* this is the one without */
  kt_compilation *unchecked;
};

/* Reports a located error and does not return. The chain of calls that led to the instance being
 * worked on is added as notes. */
_Noreturn void kt_fail(kt_compilation *c, kj_location location, kjit_status status,
                       const char *format, ...) __attribute__((format(printf, 4, 5)));
/* The same with a code. */
_Noreturn void kt_fail_code(kt_compilation *c, kj_location location, kjit_status status,
                            kjit_error_code code, const char *format, ...)
  __attribute__((format(printf, 5, 6)));
/* The same for a value of type given in the place of a number; an array has a code of its own. */
_Noreturn void kt_fail_number(kt_compilation *c, kj_location location, kjit_type given,
                              const char *format, ...) __attribute__((format(printf, 4, 5)));
/* The same for an error of types that two places make together; note: of the other one. */
_Noreturn void kt_fail_twice(kt_compilation *c, kj_location location, kj_location other,
                             kjit_error_code code, const char *note, const char *format, ...)
  __attribute__((format(printf, 6, 7)));
void kt_warn(kt_compilation *c, kj_location location, kjit_severity severity, const char *format,
             ...) __attribute__((format(printf, 4, 5)));

/* ---- limits: budget.c ---- */

void kt_open_budget(kt_budget *budget, const kj_compile_request *request);
/* Fails with INTERRUPTED if the compilation was interrupted, and with LIMIT if its time is over.
 * location: the source that is being compiled. kt_poll does this in one of 64 calls only, so that
 * it can be called for each statement and expression. */
void kt_look(kt_compilation *c, kj_location location);
static inline void kt_poll(kt_compilation *c, kj_location location)
{
  enum { CALLS = 64 };
  if (c->budget->until_look-- != 0) return;
  c->budget->until_look = CALLS;
  kt_look(c, location);
}
/* The same before a step, which messages name. */
void kt_begin_step(kt_compilation *c, const char *step);
/* Tells an observer of the compilation that this stage begins. */
void kt_begin_stage(const kt_compilation *c, kjit_stage stage);
/* Fails if `needed` exceeds the limit. format: names the large thing in the message. */
void kt_check_limit(kt_compilation *c, kt_limit limit, uint64_t needed, kj_location location,
                    const char *format, ...) __attribute__((format(printf, 5, 6)));
/* Reports that the arena would exceed its limit, and returns. */
void kt_report_memory_limit(kt_compilation *c);
/* Text of a type in the arena, for messages. */
const char *kt_type_text(kt_compilation *c, kjit_type type);

/* ---- expressions ---- */

/* The kinds, with the fields of each: nodes.def. */
typedef enum kt_tkind {
#define KJ_EXPR(kind, source, cheap) KJ_T_##kind,
#include "typing/nodes.def"
} kt_tkind;
enum {
  KJ_T_COUNT = 0
#define KJ_EXPR(kind, source, cheap) +1
#include "typing/nodes.def"
};

/* What a value is made of beside the values of its operands; see nodes.def. */
typedef enum kt_source_of_value {
  KJ_FROM_OPERANDS,
  KJ_FROM_VARIABLE,
  KJ_FROM_MEMORY,
  KJ_FROM_BUILTIN,
  KJ_FROM_CALL
} kt_source_of_value;
kt_source_of_value kt_source_of(const kt_expr *expr);
/* An array of the thread's own memory, or a tuple that has one. */
bool kt_holds_local(const ki_types *types, kjit_type type);
/* Its kind may be worth computing again instead of keeping the value. */
bool kt_is_cheap_kind(kt_tkind kind);

/* Of atomics, in .dimension. The names of the orders are rows of builtins.def, in this order. */
typedef enum kt_memory_order {
  KJ_ORDER_RELAXED,
  KJ_ORDER_ACQUIRE,
  KJ_ORDER_RELEASE,
  KJ_ORDER_ACQ_REL,
  KJ_ORDER_SEQ_CST
} kt_memory_order;

/* The minimum and maximum value of an integer. pass/interval.h has the operations on intervals. */
typedef struct kt_interval {
  bool known;
  __int128 least, most;
} kt_interval;

/* A dimension of a view. Expressions, all i64 and without effect, are positions in .indices of the
 * view. */
enum { KJ_VIEW_SAME = -1 };
typedef struct kt_view_dimension {
  /* dimension of .x; KJ_VIEW_SAME: none; the view is .x in another shape, row-major: then all
   * dimensions of both are taken, and the elements may be of another type (kt_has_new_shape) */
  int source;
  int extent; /* KJ_VIEW_SAME: that of the source */
  int step;   /* its stride is the source's times this, which may be negative; KJ_VIEW_SAME: 1 */
} kt_view_dimension;

/* .dimension of a MEMBER that is all lanes of a vector in memory. */
enum { KJ_ALL_LANES = INT32_MAX };

/* Checks that cannot fail in a loop. */
typedef struct kt_loop_checks {
  kt_exprs exprs;
  kt_stmts stores;
} kt_loop_checks;

/* Of a check, by pass/prove.c; from the strongest to none. */
typedef enum kt_proof { KJ_PROOF_UNSEEN, KJ_PROOF_ALWAYS, KJ_PROOF_BLOCK, KJ_PROOF_NONE } kt_proof;

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
  const char *text; /* BUILTIN ptx: as LLVM takes it; .dimension: bits of the operands that are
                       integers in it, not registers */
  kt_instance *instance;
  uint32_t dimension;
  __int128 integer;
  kt_interval range; /* by pass/range.c: known for every integer */
  bool
    /* by pass/checks.c: LOAD, VIEW, BUILTIN with a place: the indices are compared with the
       extents; BINARY, BUILTIN that divide: the divisor with 0 */
    is_checked;
  /* it was, until pass/prove.c found that the check cannot fail, or in the version of a loop that
   * goes without it: builds with assertions assert it */
  bool is_left_out;
  kt_proof proof; /* of is_checked */
  bool is_power;  /* BINARY DIV: made of `**`, or by lib/derive: its divisor is not checked */
  bool is_kept;   /* LOAD, by lib/derive: for a store back, so that it may be uninitialized */
  /* by inference: CONVERT, BINARY, UNARY: gives an integer type to a plain number, or to a
   * tree of one and literals, whose value has to fit the type */
  bool must_fit;
  bool is_step; /* BINARY FLOORDIV by the step of a `range`: made for the check alone */
  bool is_wrap; /* COND: index .z, which counts from the end where it is negative; see range.c */
  /* by pass/checks.c: LOAD, BUILTIN with a place: the access of shared or local memory is looked at
   * (native/support_routines.h) */
  bool is_watched;
  bool is_narrow; /* i64 only, by pass/range.c: computed and kept in 32 bits. The value is in the
                     range of i32, or (reads of a variable that only feeds subscripts) nobody looks
                     at more than its low 32 bits */
};

/* The view is its array's memory in another shape, maybe as elements of another type. */
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

/* Whether the expression is a built-in that accesses its place, the element .x[.indices], itself.
 */
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

/* Kinds of memory, as bits. A pointer may lead to any of them. Constant arrays are none of them:
 * nothing changes those. */
enum {
  KJ_MEMORY_GLOBAL = 1,
  KJ_MEMORY_SHARED = 2,
  KJ_MEMORY_LOCAL = 4,
  KJ_MEMORY_ANY = KJ_MEMORY_GLOBAL | KJ_MEMORY_SHARED | KJ_MEMORY_LOCAL
};

/* What evaluating an expression, or executing a statement, reads and changes apart from variables.
 */
typedef struct kt_effects {
  uint8_t reads, writes; /* memory that loads read and stores change */
  /* any other effect that has its place in the order: an atomic, a barrier, a print, a failure that
     the kernel raises. It counts as one that reads and changes any memory */
  bool acts;
  bool may_fail;      /* a check of the request may fail in it */
  bool has_positions; /* the value may differ between the threads of a block */
  bool has_locals;    /* names a local array; not what a called func names */
  bool has_loops;     /* a thread may run a loop in it */
} kt_effects;

/* The effects of calling an instance, once they have been asked for. */
typedef struct kt_known_effects {
  kt_effects all;
  uint32_t state; /* bits of kt_tree_state that hold for them */
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
  KJ_V_LOOP, /* of FOR, GRID_FOR, BLOCK_FOR; assigned by the loop only */
  /* array with static extents (rank 0: a shared scalar, accessed with no index), or rank 1 dynamic
     (is_static false) */
  KJ_V_SHARED,
  KJ_V_LOCAL, /* array with static extents, the thread's own */
  /* constant array: .data row-major elements of the type. NULL: a variable of the program that
   * loads the code, whose symbol is .name; rank 0 if it is no array */
  KJ_V_CONST
} kt_tvar_kind;

struct kt_var {
  kt_tvar_kind kind;
  const char *name;
  kjit_type type;
  kj_location location;
  uint32_t index; /* dense in its instance (params first) */
  uint32_t argument;
  uint32_t alignment; /* of @align, else 0 */
  /* LET, PARAM of a func, an array: what its first element's address is a multiple of; 0: not
   * known */
  uint32_t start_alignment;
  const ki_decl
    /* SHARED: the dispatcher evaluates the extents of this declaration for each launch; NULL: they
       are static, or the launch's own size */
    *sized_by;
  const void *data;
  kt_interval range; /* by pass/range.c */
  /* of an integer without a type, of more than 32 bits: the type that it takes if it meets none,
   * KJIT_I64 or KJIT_U64; else KJIT_ANY */
  kjit_type wide;
  /* by typing/number_limits.c: PARAM, LET that is, or is made of, a plain number */
  kj_number_limit least, most;
  bool is_narrow; /* kept in 32 bits */
  /* by pass/simt.c, CPU only */
  /* lives across a synchronization: one element a thread of the block */
  bool is_slot;
  /* the same in all threads of a block and computed outside thread loops */
  bool is_uniform;
  struct kp_simt_variable *simt; /* pass/simt.c's own */
  void *lowered;                 /* lowering's own */
};

/* ---- statements ---- */

/* The kinds, with the fields of each: nodes.def. */
typedef enum kt_tstmt_kind {
#define KJ_STMT(kind, flow) KJ_TS_##kind,
#include "typing/nodes.def"
} kt_tstmt_kind;
enum {
  KJ_TS_COUNT = 0
#define KJ_STMT(kind, flow) +1
#include "typing/nodes.def"
};

/* How control passes a statement; see nodes.def. */
typedef enum kt_flow {
  KJ_FLOW_STRAIGHT,
  KJ_FLOW_BRANCH,
  KJ_FLOW_LOOP,
  KJ_FLOW_RANGE,
  KJ_FLOW_JUMP,
  KJ_FLOW_BLOCK
} kt_flow;
kt_flow kt_flow_of(const kt_stmt *stmt);

/* In the text of a line: the next value; the next character stands for a control character, 64
 * below it. */
enum { KJ_PRINT_ESCAPE = 1, KJ_PRINT_VALUE = 2 };
/* value of kt_instance.off in threads that have left */
enum { KJ_OFF_LEFT_KERNEL = 1 };
/* else the factor; NONE: lowering chooses */
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
  uint32_t most;           /* WHILE, FOR: the number of `@most`; 0: none */
  bool keeps_values;       /* WHILE, FOR: `@keep` */
  kj_failure_kind failure; /* FAIL */
  const char *message;
  bool is_checked, is_left_out, is_watched; /* STORE: as kt_expr's */
  kt_proof proof;
  /* by pass/loop_versions.c, on a GPU and in C functions: FOR, GRID_FOR, BLOCK_FOR: where all of
   * .indices, which are conditions, hold when it starts, these cannot fail */
  const kt_loop_checks *hoisted;
  bool is_guarded;
  /* by pass/simt.c: number of a masked construct, for the codes kept in `off` */
  uint32_t off_number;
  /* by pass/simt.c: synchronizes, itself or inside: stays between the thread loops */
  bool is_joint;
  /* by pass/simt.c: loops, ONCE: some threads may break (leave), continue while others go on */
  bool masks_break, masks_continue;
  /* by pass/interrupts.c: loops: every so many iterations it looks whether the launch was
   * interrupted; 0: never; what one of them costs, in expressions */
  uint32_t poll, poll_cost;
  /* by pass/interrupts.c: loops, GPU only: it is made twice, without looks for where it is soon
   * over; its body has matrix products that go on while the thread does */
  bool is_polled_twice, has_products;
  /* by pass/interrupts.c: WHILE, CPU only: only another thread can end it */
  bool only_waits;
  /* by pass/simt.c: GRID_FOR, BLOCK_FOR: it makes no difference which thread runs an iteration */
  bool is_threadless;
};

/* Expressions that loops of interruptible code execute between two looks, about. */
enum { KJ_POLL_BUDGET = 1 << 16 };

/* ---- instances ---- */

/* Attributes that functions hand on to the functions that they call. */
typedef struct kt_modes {
  bool is_strict, is_fastmath;
  bool is_indefinite; /* a float beyond an integer's range becomes what x86 gives */
} kt_modes;

struct kt_instance {
  const ki_function *function;
  uint32_t id;      /* position in instances */
  kjit_type result; /* KJIT_VOID: none */
  kt_vars params;   /* run-time parameters */
  kt_vars locals;   /* all other variables, storage too */
  kt_stmts body;
  const char *symbol;   /* unique in the compilation; the kernel's own name for the kernel */
  const char *made_for; /* "(f32, 16)": what the parameters are bound to, for messages */
  bool is_kernel;
  kt_modes modes;
  bool has_barrier, has_warp; /* itself or what it calls */
  /* a KJ_THREAD position or blockIdx, gridDim ..., itself or what it calls */
  bool uses_positions;
  bool is_recursive;      /* calls itself, directly or through others */
  bool reaches_recursion; /* calls one that does, directly or through others */
  /* by pass/checks.c: raises or checks something, itself or what it calls */
  bool may_fail;
  /* by pass/interrupts.c: it, or what it calls, looks whether the launch was interrupted */
  bool polls;
  bool polls_first; /* it does where it begins */
  /* @launch_bounds but for its first value, which is in kj_code; @max_registers. 0: none */
  uint32_t min_blocks, max_cluster, max_registers;
  uint32_t block[3]; /* constant @block, else the signature's; 0: not known */
  bool is_inferred;  /* the body is complete */
  kt_known_effects effects;
  /* by pass/simt.c, CPU only: the slot that is 0 in the threads that are active; NULL: all are,
   * always */
  kt_var *off;
  kt_instance *caller; /* first call that made it, for messages */
  kj_location call_location;
};

/* ---- the stages ---- */

/* lib/typing/infer.c: the kernel of the request and all that it calls. Fails through kt_fail. */
void kt_infer(kt_compilation *c);
/* lib/typing/typed_printer.c: for --emit typed. */
void kt_print_typed(const kt_compilation *c, kj_buffer *buffer);
/* lib/typing/typed_verifier.c: checks the invariants stated above, and that of kt_tree_state no
 * more is there than c->state says, between passes (our own bugs): aborts compilation with a
 * located "internal error" diagnostic. */
void kt_verify_typed(kt_compilation *c);
/* lib/typing/infer_kernel.c: how many bytes of shared memory a block has at most; and the same by
 * name, for messages. */
uint32_t kt_most_shared_bytes(const kj_target *target);
const char *kt_target_text(const kt_compilation *c);
/* What the address of a shared or local array is a multiple of, in bytes, on every target. */
uint32_t kt_storage_alignment(const ki_types *types, const kt_var *var);
/* A new expression with kind, type and location; everything else zero. */
kt_expr *kt_new_texpr(kt_compilation *c, kt_tkind kind, kjit_type type, kj_location location);
kt_stmt *kt_new_tstmt(kt_compilation *c, kt_tstmt_kind kind, kj_location location);
kt_stmt *kt_new_if(kt_compilation *c, kt_expr *condition, kj_location location); /* empty */
/* A new variable of the instance (appended to params for KJ_V_PARAM, else to locals; index set). */
kt_var *kt_new_tvar(kt_compilation *c, kt_instance *instance, kt_tvar_kind kind, const char *name,
                    kjit_type type, kj_location location);

/* ---- operands and walks: the one place that knows where a node keeps its operands ---- */

/* The operands of an expression: .x, .y, .z, .indices, .args, in this order. NULL where a kind has
 * none in that place. */
static inline size_t kt_operand_count(const kt_expr *expr)
{
  return 3 + expr->indices.count + expr->args.count;
}
kt_expr **kt_operand_place(kt_expr *expr, size_t index);
kt_expr *kt_operand(const kt_expr *expr, size_t index);
/* The expressions of a statement itself, those of its bodies aside: .value, .array, .indices,
 * .first, .stop, .step, .extents, in this order. NULL where a kind has none in that place. */
static inline size_t kt_stmt_operand_count(const kt_stmt *stmt)
{
  return 5 + stmt->indices.count + stmt->extents.count;
}
kt_expr **kt_stmt_operand_place(kt_stmt *stmt, size_t index);
kt_expr *kt_stmt_operand(const kt_stmt *stmt, size_t index);

/* Calls visit on every expression below and including *expr (operands first), so that it can
 * replace it. */
void kt_walk_texpr(kt_expr **expr, void (*visit)(void *data, kt_expr **expr), void *data);
/* Calls visit_expr on every expression and visit_stmt on every statement of the list, nested ones
 * too, in order; statements before their expressions and bodies. Either may be NULL. */
void kt_walk_tstmts(kt_stmts *stmts, void (*visit_stmt)(void *data, kt_stmt *stmt),
                    void (*visit_expr)(void *data, kt_expr **expr), void *data);

/* A `while` that, from where it begins, runs at most .stop - .at times: while .at, a variable to
 * which each iteration adds 1 and which nothing else changes, is less than .stop, which does not
 * change in it. Both are integers of one type, without effect, and cannot fail. */
typedef struct kt_counter {
  const kt_expr *at, *stop;
} kt_counter;
bool kt_find_counter(const kt_stmt *loop, kt_counter *found);

/* Whether a node has a property. */
typedef bool (*kt_texpr_test)(void *data, const kt_expr *expr);
typedef bool (*kt_tstmt_test)(void *data, const kt_stmt *stmt);
/* Whether any node below and including expr (NULL: none) has it; asked of an expression before its
 * operands, and of no more once one has it. */
bool kt_any_texpr(const kt_expr *expr, kt_texpr_test test, void *data);
/* The same for a statement or a list with all that is in it; either test may be NULL. */
bool kt_any_in_tstmt(const kt_stmt *stmt, kt_tstmt_test test_stmt, kt_texpr_test test_expr,
                     void *data);
bool kt_any_in_tstmts(const kt_stmts *stmts, kt_tstmt_test test_stmt, kt_texpr_test test_expr,
                      void *data);

/* A deep copy; map (may be NULL) says what each variable becomes. */
typedef kt_var *(*kt_map_var)(void *data, kt_var *var);
kt_expr *kt_clone_texpr(kt_compilation *c, const kt_expr *expr, kt_map_var map, void *data);
/* How many nodes an expression (NULL: none) has; counting stops at the limit. */
size_t kt_count_nodes(const kt_expr *expr, size_t limit);
/* Memory that elements of an array lie in: KJ_MEMORY bits. */
uint8_t kt_memory_of(const ki_types *types, kjit_type array);
/* Adds the effects of evaluating an expression (NULL: none), or of executing a statement with all
 * that is in it. */
void kt_add_effects(const kt_compilation *c, const kt_expr *expr, kt_effects *effects);
void kt_add_stmt_effects(const kt_compilation *c, const kt_stmt *stmt, kt_effects *effects);
void kt_join_effects(kt_effects *to, const kt_effects *more);
/* Whether it makes no difference which of two is evaluated first. */
bool kt_commute(const kt_effects *a, const kt_effects *b);
/* Calls something, or a built-in that is not pure. */
bool kt_has_effect(const kt_expr *expr);
/* The operators, and the built-ins, that the division check is about. */
bool kt_is_division(kjit_op op);
bool kt_is_division_builtin(ki_builtin_id id);
/* Whether the request checks divisors of a type; of a vector: of its lanes' type. */
bool kt_checks_divisor(const kt_compilation *c, kjit_type type);
/* Whether it divides by something that may be 0, and the request checks that. */
bool kt_checks_division(const kt_compilation *c, const kt_expr *expr);
/* Whether nothing is lost if it is not evaluated: it has no effect, and nothing in it fails a check
 * of the request. */
bool kt_can_drop(const kt_compilation *c, const kt_expr *expr);

static inline bool kt_is_constant(const kt_expr *expr) { return expr->kind == KJ_T_CONST; }

#endif
