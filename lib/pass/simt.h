/* What the files of the CPU's SIMT pass share. simt.c is its entry; inline_sync.c, launch_needs.c,
 * simt_control.c, idle.c, uniform.c and slots.c are its steps. */
#ifndef KJ_PASS_SIMT_H
#define KJ_PASS_SIMT_H

#include "pass/pass.h"

/* What the pass knows of a variable of the kernel. */
typedef struct kp_simt_variable {
  /* uniform.c */
  const kt_stmt *scope; /* the innermost divergent construct around the declaration; NULL: none */
  uint32_t round;       /* of the analysis that scope is of */
  /* simt.c */
  uint32_t run; /* the last run of statements that mentions it */
  /* slots.c */
  uint32_t region; /* the first region that mentions it */
  uint32_t home;   /* the region that assigns it */
  uint32_t assignments;
  kt_expr *value;     /* of the last assignment */
  bool is_shared_out; /* several regions mention it */
  bool needs_slot;
  enum { KJ_REMAKE_UNKNOWN, KJ_REMAKE_BUSY, KJ_REMAKE_NO, KJ_REMAKE_YES } remake;
  uint32_t home_uses; /* in that region */
  kt_var *copy;       /* made again in this region: */
  uint32_t copy_region;
} kp_simt_variable;

typedef struct kp_simt {
  kt_compilation *c;
  kt_instance *kernel;
  bool has_range;    /* a grid_range or block_range */
  bool has_sync;     /* a barrier or warp operation */
  bool has_mask;     /* some thread may be inactive somewhere */
  bool masks_return; /* some threads may leave the kernel while others go on */
  bool has_changed;  /* the analysis must be repeated */
  bool reads_off;
  uint32_t round;
  uint32_t off_count;
} kp_simt;

/* ---- inline_sync.c ---- */

/* The kernel's body anew: functions that synchronize inlined; synchronizations as statements of
 * their own, `v = builtin(args)` or EVALUATE, their operands variables or constants. Statements
 * that hold one are is_joint. An ASSIGN without a value only says where its variable is declared.
 */
void kp_inline_synchronizing(kp_simt *s);

/* ---- launch_needs.c ---- */

/* After kp_inline_synchronizing. */
bool kp_is_range_only(const kp_simt *s);

/* ---- uniform.c ---- */

/* Where in the kernel's joint statements the analysis or the rewriting stands. */
typedef struct kp_simt_frame kp_simt_frame;
struct kp_simt_frame {
  kp_simt_frame *outer;
  kt_stmt *stmt;             /* a joint loop or ONCE */
  const kt_stmt *divergence; /* outside of it */
};
typedef struct kp_simt_position {
  kp_simt_frame *frame;
  /* the innermost construct around that not all threads pass in the same way; NULL: none */
  const kt_stmt *divergence;
} kp_simt_position;

/* Sets is_uniform of variables, masks_break and masks_continue of statements, has_mask and
 * masks_return. */
void kp_find_uniform(kp_simt *s);
/* How a statement at joint level is carried out. */
typedef enum kp_simt_level {
  KJ_LEVEL_SCALAR, /* once for the block, outside thread loops */
  KJ_LEVEL_JOINT,  /* control flow between thread loops */
  KJ_LEVEL_THREAD  /* in a thread loop */
} kp_simt_level;
kp_simt_level kp_find_level(const kp_simt *s, const kt_stmt *stmt,
                            const kp_simt_position *position);
/* The same value for all threads, and computable outside thread loops. */
bool kp_is_uniform(const kp_simt *s, const kt_expr *expr);
/* The frame that a BREAK, CONTINUE or LEAVE goes to; NULL for RETURN. */
kp_simt_frame *kp_jump_target(const kt_stmt *jump, const kp_simt_position *position);
/* Some threads may take the jump while others do not. */
bool kp_is_masked_jump(const kt_stmt *jump, const kp_simt_position *position);
/* The loop's header (or the condition of an IF) is uniform. */
bool kp_has_uniform_header(const kp_simt *s, const kt_stmt *stmt);
kp_simt_position kp_enter_joint(const kp_simt *s, kt_stmt *stmt, const kp_simt_position *outer,
                                kp_simt_frame *frame);

/* ---- slots.c ---- */

/* Variables that are needed in several regions become slots, or are computed again where they are
 * needed. */
void kp_place_variables(kp_simt *s);
/* The iterations of a FOR whose range is constant and short, and 0 for all others. */
uint64_t kp_short_trip_count(const kt_stmt *stmt);
/* Worth computing again rather than keeping: arithmetic on positions, extents and the like. */
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
/* A variable of the kernel. */
kt_var *kp_new_local(kp_simt *s, kt_tvar_kind kind, const char *name, kjit_type type,
                     kj_location location);
/* A variable for the value of expr, as narrow as it is. */
kt_var *kp_new_holder(kp_simt *s, kt_tvar_kind kind, const char *name, const kt_expr *expr);
void kp_append_stmt(kp_simt *s, kt_stmts *list, kt_stmt *stmt);
void kp_append_stmts(kp_simt *s, kt_stmts *list, const kt_stmts *more);
/* The list without the statements that only say where a variable is declared. */
kt_stmts kp_drop_declarations(kp_simt *s, const kt_stmts *list);

/* What the files that build the thread loops share (kp_make_thread_loops): simt.c is the whole,
 * simt.c and simt_control.c are its parts. */

typedef struct kp_simt_builder {
  kp_simt *s;
  kt_stmts *out;
  kt_stmts run;        /* of the THREADS being collected */
  uint32_t run_number; /* from 1 */
  bool is_run_guarded;
  /* threads may be off at its start: it is not guarded because it turns them on */
  bool is_run_masked;
  bool run_writes;
  bool has_left; /* some threads may have left the kernel */
  /* All threads may be off where the builder stands (idle.c). False where at least one thread is
   * active whenever this code runs. */
  bool may_idle;
} kp_simt_builder;

/* Of what the pass itself adds. */
static inline kj_location kp_no_location(void) { return (kj_location){ 0 }; }

/* ---- simt.c: which threads are active ---- */

/* Where a thread becomes active again. */
typedef enum kp_off_place {
  KJ_OFF_ELSE = 0,
  KJ_OFF_BREAK = 0,
  KJ_OFF_THEN = 1,
  KJ_OFF_CONTINUE = 1
} kp_off_place;
/* The code that `off` holds in threads that wait for a place of the statement. */
int64_t kp_off_code(kp_simt_builder *b, kt_stmt *stmt, kp_off_place place);
kt_expr *kp_off_value(kp_simt_builder *b);
kt_expr *kp_off_const(kp_simt_builder *b, int64_t value);
kt_expr *kp_off_is(kp_simt_builder *b, int64_t value);
kt_stmt *kp_set_off(kp_simt_builder *b, kt_expr *value);
/* Some threads may be off here. */
bool kp_is_masked(const kp_simt_builder *b, const kp_simt_position *position);
/* The statement leaves out threads that are off, where there may be any. */
void kp_guard(kp_simt_builder *b, kt_stmt *stmt, const kp_simt_position *position);
/* Threads that wait for the place are active again. */
void kp_restore_active(kp_simt_builder *b, kt_stmt *stmt, kp_off_place place,
                       const kp_simt_position *position);
/* At the end: without the variable where nothing reads it. */
void kp_settle_off(kp_simt_builder *b);

/* ---- simt.c: runs of statements that become one THREADS ---- */

/* A uniform variable, set in front of the run: some thread is active. */
kt_expr *kp_any_active(kp_simt_builder *b, const kp_simt_position *position);
/* Ends the run. */
void kp_flush_run(kp_simt_builder *b);
/* To the run, for the active threads. */
void kp_push_active(kp_simt_builder *b, kt_stmt *stmt, const kp_simt_position *position);
/* To a run of its own or to one that only turns threads on: for all threads, active or not. */
void kp_push_for_all(kp_simt_builder *b, kt_stmt *stmt, const kp_simt_position *position);
/* Between thread loops; in front of the run that is being collected. */
void kp_emit_joint(kp_simt_builder *b, kt_stmt *stmt);
/* Once for the block: in front of the run, or behind it where the run must come first. */
void kp_build_scalar(kp_simt_builder *b, kt_stmt *stmt);
/* A uniform variable of the pass's own. */
kt_var *kp_new_uniform(kp_simt_builder *b, const char *name, kjit_type type, kj_location location);

/* ---- simt_control.c: what threads do on their own ---- */

void kp_build_thread(kp_simt_builder *b, kt_stmt *stmt, const kp_simt_position *position);

/* Fills a list of a statement that is emitted itself. */
void kp_build_inside(kp_simt_builder *b, kt_stmts *to, const kt_stmts *from,
                     const kp_simt_position *position);

/* ---- simt.c: what they do together ---- */

void kp_build_sync(kp_simt_builder *b, kt_stmt *stmt, const kp_simt_position *position);
/* A BARRIER_REDUCE over the active threads: the value of the first of them; value NULL: whether
 * there are any. */
void kp_emit_reduce(kp_simt_builder *b, kt_var *var, kt_expr *value, kj_location location,
                    const kp_simt_position *position);

/* ---- idle.c: code between thread loops that needs an active thread ---- */

/* All threads may be off in front of the statement, and to run it without an active thread could
 * take long or not end. */
bool kp_needs_active(kp_simt_builder *b, kt_stmt *stmt, kp_simt_level level,
                     const kp_simt_position *position);
/* To evaluate the operands of the statement could take long: they call a function with a loop. */
bool kp_has_long_operand(const kt_compilation *c, const kt_stmt *stmt);
/* From here on some thread is active. Returns whether the statements of the list from `first` on
 * have been built, under an IF; else the caller goes on with them. */
bool kp_build_rest_if_any(kp_simt_builder *b, const kt_stmts *list, size_t first,
                          const kp_simt_position *position);

/* ---- simt_control.c: control flow between thread loops ---- */

/* Of a loop that synchronizes: it does not find out by itself, before it does anything, that no
 * thread is active. */
bool kp_needs_active_first(kp_simt_builder *b, kt_stmt *loop, const kp_simt_position *position);
/* IF, FOR, WHILE, ONCE. */
void kp_build_control(kp_simt_builder *b, kt_stmt *stmt, const kp_simt_position *position);

/* ---- simt.c ---- */

void kp_build_joint_list(kp_simt_builder *b, const kt_stmts *list,
                         const kp_simt_position *position);

/* What inline_sync.c (calls and statements) and inline_sync.c (expressions) share. */

typedef struct kp_inliner {
  kp_simt *s;
  bool *is_joint; /* by instance id: synchronizes or ranges, itself or in what it calls */
  /* by instance id, variable index: shared and const arrays, one for all calls of an instance */
  kt_var ***storage;
  struct kp_activation *at; /* inline_sync.c's own */
  uint32_t statement_count;
} kp_inliner;

/* ---- inline_sync.c ---- */

/* The statements of a call of a function that synchronizes; its result, NULL for none. */
kt_expr *kp_inline_call(kp_inliner *in, kt_expr *call, kt_stmts *out);
/* Appends, and fails where the kernel gets too large. */
void kp_push_inlined(kp_inliner *in, kt_stmts *out, kt_stmt *stmt);

/* ---- inline_sync.c ---- */

bool kp_is_sync_builtin(const kt_expr *e);
bool kp_has_joint_expr(const kp_inliner *in, const kt_expr *e);
/* Takes synchronizations out of an expression: what is left can be evaluated without. Void calls
 * and barriers leave NULL. */
kt_expr *kp_hoist(kp_inliner *in, kt_expr *e, kt_stmts *out);
/* Operands of warp operations are read in slots: constants and mutable variables are handed over as
 * they are. The result must not overwrite what other lanes still read. */
void kp_hold_sync_operands(kp_inliner *in, kt_expr *e, const kt_var *result, kt_stmts *out);

#endif
