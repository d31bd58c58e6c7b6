/* Declarations that the files of the CPU's SIMT pass share. simt.c contains the entry point. Its
 * steps are inline_sync.c, launch_needs.c, simt_control.c, idle.c, uniform.c and slots.c. */
#ifndef KJ_PASS_SIMT_H
#define KJ_PASS_SIMT_H

#include "pass/pass.h"

/* Data of the pass for a variable of the kernel. */
typedef struct kp_simt_variable {
  /* uniform.c */
  /* the innermost divergent statement that contains the declaration; NULL means that there is
   * none */
  const kt_stmt *scope;
  uint32_t round; /* the analysis' round in which scope was set */
  /* simt.c */
  uint32_t run; /* number of the last run of statements that uses the variable */
  /* slots.c */
  uint32_t region; /* the first region that uses the variable */
  uint32_t home;   /* the region that assigns the variable */
  uint32_t assignments;
  kt_expr *value;     /* value of the last assignment */
  bool is_shared_out; /* several regions use the variable */
  bool needs_slot;
  enum { KJ_REMAKE_UNKNOWN, KJ_REMAKE_BUSY, KJ_REMAKE_NO, KJ_REMAKE_YES } remake;
  uint32_t home_uses; /* number of uses in the home region */
  kt_var *copy;       /* the copy of the variable that the region copy_region computes again */
  uint32_t copy_region;
} kp_simt_variable;

typedef struct kp_simt {
  kt_compilation *c;
  kt_instance *kernel;
  bool has_range;    /* has a grid_range or block_range */
  bool has_sync;     /* the kernel contains a barrier or a warp operation */
  bool has_mask;     /* somewhere a thread can be inactive */
  bool masks_return; /* some threads can leave the kernel while others continue */
  bool has_changed;  /* the analysis must be repeated */
  bool reads_off;
  uint32_t round;
  uint32_t off_count;
} kp_simt;

/* ---- inline_sync.c ---- */

/* Rewrites the kernel's body. Functions that synchronize are inlined. Each synchronization becomes
 * a statement `v = builtin(args)` or EVALUATE, whose operands are variables or constants.
 * Statements that contain a synchronization are marked with is_joint. An ASSIGN without a value
 * only declares its variable. */
void kp_inline_synchronizing(kp_simt *s);

/* ---- launch_needs.c ---- */

/* Returns whether the kernel is range-only (launch_needs.c). Call it after
 * kp_inline_synchronizing. */
bool kp_is_range_only(const kp_simt *s);

/* ---- uniform.c ---- */

/* The current position while kjit analyses or rewrites the kernel's joint statements (is_joint). */
typedef struct kp_simt_frame kp_simt_frame;
struct kp_simt_frame {
  kp_simt_frame *outer;
  kt_stmt *stmt;             /* a joint loop or ONCE */
  const kt_stmt *divergence; /* divergence outside of the statement */
};
typedef struct kp_simt_position {
  kp_simt_frame *frame;
  /* the innermost surrounding statement in which threads can take different paths; NULL means that
   * there is none */
  const kt_stmt *divergence;
} kp_simt_position;

/* Sets is_uniform in variables, masks_break and masks_continue in statements, and has_mask and
 * masks_return in s. */
void kp_find_uniform(kp_simt *s);
/* The level at which a statement in joint code is executed. */
typedef enum kp_simt_level {
  KJ_LEVEL_SCALAR, /* once for the whole block, outside of thread loops */
  KJ_LEVEL_JOINT,  /* control flow between thread loops */
  KJ_LEVEL_THREAD  /* part of a thread loop */
} kp_simt_level;
kp_simt_level kp_find_level(const kp_simt *s, const kt_stmt *stmt,
                            const kp_simt_position *position);
/* Returns whether the value is the same for all threads and can be computed outside of thread
 * loops. */
bool kp_is_uniform(const kp_simt *s, const kt_expr *expr);
/* Returns the frame to which a BREAK, CONTINUE or LEAVE jumps, and NULL for RETURN. */
kp_simt_frame *kp_jump_target(const kt_stmt *jump, const kp_simt_position *position);
/* Returns whether some threads can take the jump while others do not. */
bool kp_is_masked_jump(const kt_stmt *jump, const kp_simt_position *position);
/* Returns whether the loop's header, or the condition of an IF, is uniform. */
bool kp_has_uniform_header(const kp_simt *s, const kt_stmt *stmt);
kp_simt_position kp_enter_joint(const kp_simt *s, kt_stmt *stmt, const kp_simt_position *outer,
                                kp_simt_frame *frame);

/* ---- slots.c ---- */

/* If several regions need a variable, makes it a slot or computes it again in each region. */
void kp_place_variables(kp_simt *s);
/* Returns the number of iterations of a FOR if it is a small constant, otherwise 0. */
uint64_t kp_short_trip_count(const kt_stmt *stmt);
/* Returns whether computing an expression again is cheaper than keeping it in memory. Such
 * expressions combine, for example, positions and extents. */
bool kp_is_cheap(const kt_expr *expr, uint32_t budget);

/* ---- simt_control.c: typed trees ---- */

kt_expr *kp_new_const(kp_simt *s, kjit_type type, __int128 value, kj_location location);
kt_expr *kp_new_var(kp_simt *s, kt_var *var, kj_location location);
kt_expr *kp_new_unary(kp_simt *s, kjit_op op, kt_expr *x);
kt_expr *kp_new_binary(kp_simt *s, kjit_op op, kt_expr *x, kt_expr *y);
kt_expr *kp_new_compare(kp_simt *s, kjit_op op, kt_expr *x, kt_expr *y);
kt_expr *kp_new_cond(kp_simt *s, kt_expr *x, kt_expr *y, kt_expr *z);
kt_expr *kp_new_convert(kp_simt *s, kjit_type type, kt_expr *x);
kt_stmt *kp_new_assign(kp_simt *s, kt_var *var, kt_expr *value);
/* Adds a variable to the kernel. */
kt_var *kp_new_local(kp_simt *s, kt_tvar_kind kind, const char *name, kjit_type type,
                     kj_location location);
/* Adds a variable that can hold the value of expr. The variable is narrow if expr is narrow. */
kt_var *kp_new_holder(kp_simt *s, kt_tvar_kind kind, const char *name, const kt_expr *expr);
void kp_append_stmt(kp_simt *s, kt_stmts *list, kt_stmt *stmt);
void kp_append_stmts(kp_simt *s, kt_stmts *list, const kt_stmts *more);
/* Returns the list without the statements that only declare a variable. */
kt_stmts kp_drop_declarations(kp_simt *s, const kt_stmts *list);

/* State of the builder that creates the thread loops (kp_make_thread_loops), in simt.c and
 * simt_control.c. */

typedef struct kp_simt_builder {
  kp_simt *s;
  kt_stmts *out;
  kt_stmts run;        /* the statements of the THREADS loop that is being collected */
  uint32_t run_number; /* counts from 1 */
  bool is_run_guarded;
  /* Threads can be inactive at the run's start. A run that itself makes threads active is not
   * guarded. */
  bool is_run_masked;
  bool run_writes;
  bool has_left; /* some threads can have left the kernel */
  /* All threads can be inactive at this point (idle.c). false means that at least one thread is
   * active whenever this code runs. */
  bool may_idle;
} kp_simt_builder;

/* The location of statements that the pass itself adds. */
static inline kj_location kp_no_location(void) { return (kj_location){ 0 }; }

/* ---- simt.c: which threads are active ---- */

/* The point in a statement at which a thread becomes active again. */
typedef enum kp_off_place {
  KJ_OFF_ELSE = 0,
  KJ_OFF_BREAK = 0,
  KJ_OFF_THEN = 1,
  KJ_OFF_CONTINUE = 1
} kp_off_place;
/* Returns the value of `off` in threads that wait for the given point in the statement. */
int64_t kp_off_code(kp_simt_builder *b, kt_stmt *stmt, kp_off_place place);
kt_expr *kp_off_value(kp_simt_builder *b);
kt_expr *kp_off_const(kp_simt_builder *b, int64_t value);
kt_expr *kp_off_is(kp_simt_builder *b, int64_t value);
kt_stmt *kp_set_off(kp_simt_builder *b, kt_expr *value);
/* Returns whether some threads can be inactive at the position. */
bool kp_is_masked(const kp_simt_builder *b, const kp_simt_position *position);
/* If there can be inactive threads, changes the statement so that these threads skip it. */
void kp_guard(kp_simt_builder *b, kt_stmt *stmt, const kp_simt_position *position);
/* Activates the threads that wait for this point. */
void kp_restore_active(kp_simt_builder *b, kt_stmt *stmt, kp_off_place place,
                       const kp_simt_position *position);
/* Called at the end: removes `off` if no statement reads it. */
void kp_settle_off(kp_simt_builder *b);

/* ---- simt.c: runs of statements that become one THREADS ---- */

/* Returns a uniform variable that tells whether any thread is active. The variable is set before
 * the run. */
kt_expr *kp_any_active(kp_simt_builder *b, const kp_simt_position *position);
/* Ends the current run. */
void kp_flush_run(kp_simt_builder *b);
/* Adds to the run a statement that the active threads execute. */
void kp_push_active(kp_simt_builder *b, kt_stmt *stmt, const kp_simt_position *position);
/* Adds a statement that all threads execute, active or not. The statement starts a new run, unless
 * the current run only makes threads active. */
void kp_push_for_all(kp_simt_builder *b, kt_stmt *stmt, const kp_simt_position *position);
/* Adds a statement outside of thread loops, before the run that is being collected. */
void kp_emit_joint(kp_simt_builder *b, kt_stmt *stmt);
/* Adds a statement that is executed once for the block: before the current run, or after it if the
 * statement depends on the run. */
void kp_build_scalar(kp_simt_builder *b, kt_stmt *stmt);
/* Returns a new uniform variable for the pass's own use. */
kt_var *kp_new_uniform(kp_simt_builder *b, const char *name, kjit_type type, kj_location location);

/* ---- simt_control.c: statements that each thread executes separately ---- */

void kp_build_thread(kp_simt_builder *b, kt_stmt *stmt, const kp_simt_position *position);

/* Builds the statements in a list inside of a statement that is emitted separately. */
void kp_build_inside(kp_simt_builder *b, kt_stmts *to, const kt_stmts *from,
                     const kp_simt_position *position);

/* ---- simt.c: synchronization ---- */

void kp_build_sync(kp_simt_builder *b, kt_stmt *stmt, const kp_simt_position *position);
/* Emits a BARRIER_REDUCE over the active threads. var receives the value of the first active
 * thread. If value is NULL, var receives whether any thread is active. */
void kp_emit_reduce(kp_simt_builder *b, kt_var *var, kt_expr *value, kj_location location,
                    const kp_simt_position *position);

/* ---- idle.c: code between thread loops that needs an active thread ---- */

/* Returns whether all threads can be inactive before the statement, and the statement could take
 * long or never end if it is executed without an active thread. */
bool kp_needs_active(kp_simt_builder *b, kt_stmt *stmt, kp_simt_level level,
                     const kp_simt_position *position);
/* Returns whether evaluating the statement's operands can take long, because they call a function
 * that contains a loop. */
bool kp_has_long_operand(const kt_compilation *c, const kt_stmt *stmt);
/* Emits a test for an active thread. Returns whether the statements in the list, starting at index
 * `first`, have been built under an IF; if not, the caller must build them. */
bool kp_build_rest_if_any(kp_simt_builder *b, const kt_stmts *list, size_t first,
                          const kp_simt_position *position);

/* ---- simt_control.c: control flow between thread loops ---- */

/* Returns whether a loop that synchronizes must be preceded by a test for an active thread. This is
 * the case if the loop does other work before its own test. */
bool kp_needs_active_first(kp_simt_builder *b, kt_stmt *loop, const kp_simt_position *position);
/* Builds an IF, FOR, WHILE or ONCE. */
void kp_build_control(kp_simt_builder *b, kt_stmt *stmt, const kp_simt_position *position);

/* ---- simt.c ---- */

void kp_build_joint_list(kp_simt_builder *b, const kt_stmts *list,
                         const kp_simt_position *position);

/* State of inline_sync.c. */

typedef struct kp_inliner {
  kp_simt *s;
  /* indexed by instance id: whether the instance, or a function that it calls, synchronizes or
   * contains a range */
  bool *is_joint;
  /* indexed by instance id and variable: shared and const arrays, which all calls of an instance
   * share */
  kt_var ***storage;
  struct kp_activation *at; /* private to inline_sync.c */
  uint32_t statement_count;
} kp_inliner;

/* ---- inline_sync.c ---- */

/* Appends the statements of a call to a function that synchronizes. Returns the result of the call,
 * or NULL if the function returns nothing. */
kt_expr *kp_inline_call(kp_inliner *in, kt_expr *call, kt_stmts *out);
/* Appends a statement. Reports an error if the kernel becomes too large. */
void kp_push_inlined(kp_inliner *in, kt_stmts *out, kt_stmt *stmt);

/* ---- inline_sync.c ---- */

bool kp_is_sync_builtin(const kt_expr *e);
bool kp_has_joint_expr(const kp_inliner *in, const kt_expr *e);
/* Moves synchronizations out of an expression. Returns the remaining expression, which contains no
 * synchronization, or NULL for void calls and barriers. */
kt_expr *kp_hoist(kp_inliner *in, kt_expr *e, kt_stmts *out);
/* Stores the operands of warp operations in variables, so that other lanes can read them. Constants
 * and mutable variables are not copied, except a variable that receives the result: the result must
 * not overwrite an operand that other lanes still read. */
void kp_hold_sync_operands(kp_inliner *in, kt_expr *e, const kt_var *result, kt_stmts *out);

#endif
