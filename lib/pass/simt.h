/* What the files of the CPU's SIMT pass share. simt.c is its entry; inline_sync.c, launch_needs.c,
 * simt_control.c, uniform.c and slots.c are its steps. */
#ifndef KJ_PASS_SIMT_H
#define KJ_PASS_SIMT_H

#include "pass/pass.h"

/* What the pass knows of a variable of the kernel. */
typedef struct kj_simt_variable {
  /* uniform.c */
  const kj_tstmt *scope; /* the innermost divergent construct around the declaration; NULL: none */
  uint32_t round;        /* of the analysis that scope is of */
  /* simt.c */
  uint32_t run; /* the last run of statements that mentions it */
  /* slots.c */
  uint32_t region; /* the first region that mentions it */
  uint32_t home;   /* the region that assigns it */
  uint32_t assignments;
  kj_texpr *value;    /* of the last assignment */
  bool is_shared_out; /* several regions mention it */
  bool needs_slot;
  enum { KJ_REMAKE_UNKNOWN, KJ_REMAKE_BUSY, KJ_REMAKE_NO, KJ_REMAKE_YES } remake;
  uint32_t home_uses; /* in that region */
  kj_tvar *copy;      /* made again in this region: */
  uint32_t copy_region;
} kj_simt_variable;

typedef struct kj_simt {
  kj_compilation *c;
  kj_instance *kernel;
  bool has_range;    /* a grid_range or block_range */
  bool has_sync;     /* a barrier or warp operation */
  bool has_mask;     /* some thread may be inactive somewhere */
  bool masks_return; /* some threads may leave the kernel while others go on */
  bool has_changed;  /* the analysis must be repeated */
  bool reads_off;
  uint32_t round;
  uint32_t site_count;
} kj_simt;

/* ---- inline_sync.c ---- */

/* The kernel's body anew: functions that synchronize inlined; synchronizations as statements of
 * their own, `v = builtin(args)` or EVALUATE, their operands variables or constants. Statements
 * that hold one are is_joint. An ASSIGN without a value only says where its variable is declared.
 */
void kj_inline_synchronizing(kj_simt *s);

/* ---- launch_needs.c ---- */

/* After kj_inline_synchronizing. */
bool kj_is_range_only(const kj_simt *s);

/* ---- uniform.c ---- */

/* Where in the kernel's joint statements the analysis or the rewriting stands. */
typedef struct kj_simt_frame kj_simt_frame;
struct kj_simt_frame {
  kj_simt_frame *outer;
  kj_tstmt *stmt;             /* a joint loop or ONCE */
  const kj_tstmt *divergence; /* outside of it */
};
typedef struct kj_simt_position {
  kj_simt_frame *frame;
  /* the innermost construct around that not all threads pass in the same way; NULL: none */
  const kj_tstmt *divergence;
} kj_simt_position;

/* Sets is_uniform of variables, masks_break and masks_continue of statements, has_mask and
 * masks_return. */
void kj_find_uniform(kj_simt *s);
/* How a statement at joint level is carried out. */
typedef enum kj_simt_level {
  KJ_LEVEL_SCALAR, /* once for the block, outside thread loops */
  KJ_LEVEL_JOINT,  /* control flow between thread loops */
  KJ_LEVEL_THREAD  /* in a thread loop */
} kj_simt_level;
kj_simt_level kj_find_level(const kj_simt *s, const kj_tstmt *stmt,
                            const kj_simt_position *position);
/* The same value for all threads, and computable outside thread loops. */
bool kj_is_uniform(const kj_simt *s, const kj_texpr *expr);
/* The frame that a BREAK, CONTINUE or LEAVE goes to; NULL for RETURN. */
kj_simt_frame *kj_jump_target(const kj_tstmt *jump, const kj_simt_position *position);
/* Some threads may take the jump while others do not. */
bool kj_is_masked_jump(const kj_tstmt *jump, const kj_simt_position *position);
/* The loop's header (or the condition of an IF) is uniform. */
bool kj_has_uniform_header(const kj_simt *s, const kj_tstmt *stmt);
kj_simt_position kj_enter_joint(const kj_simt *s, kj_tstmt *stmt, const kj_simt_position *outer,
                                kj_simt_frame *frame);

/* What an expression or statement does besides computing. */
typedef struct kj_simt_effects {
  /* writes: atomics, fences and calls that may have an effect too */
  bool loads, writes, positions, locals;
} kj_simt_effects;
void kj_find_effects(const kj_texpr *expr, kj_simt_effects *effects);
void kj_find_stmt_effects(const kj_tstmt *stmt, kj_simt_effects *effects);

/* ---- slots.c ---- */

/* Variables that are needed in several regions become slots, or are computed again where they are
 * needed. */
void kj_place_variables(kj_simt *s);
/* Worth computing again rather than keeping: arithmetic on positions, extents and the like. */
bool kj_is_cheap(const kj_texpr *expr, uint32_t budget);

/* ---- simt_control.c: typed trees ---- */

kj_texpr *kj_new_const(kj_simt *s, kjit_type type, __int128 value, kj_location location);
kj_texpr *kj_new_var(kj_simt *s, kj_tvar *var, kj_location location);
kj_texpr *kj_new_unary(kj_simt *s, kjit_op op, kj_texpr *x);
kj_texpr *kj_new_binary(kj_simt *s, kjit_op op, kj_texpr *x, kj_texpr *y);
kj_texpr *kj_new_compare(kj_simt *s, kjit_op op, kj_texpr *x, kj_texpr *y);
kj_texpr *kj_new_cond(kj_simt *s, kj_texpr *x, kj_texpr *y, kj_texpr *z);
kj_texpr *kj_new_convert(kj_simt *s, kjit_type type, kj_texpr *x);
kj_tstmt *kj_new_assign(kj_simt *s, kj_tvar *var, kj_texpr *value);
kj_tstmt *kj_new_if(kj_simt *s, kj_texpr *condition, kj_location location);
/* A variable of the kernel. */
kj_tvar *kj_new_local(kj_simt *s, kj_tvar_kind kind, const char *name, kjit_type type,
                      kj_location location);
/* A variable for the value of expr, as narrow as it is. */
kj_tvar *kj_new_holder(kj_simt *s, kj_tvar_kind kind, const char *name, const kj_texpr *expr);
void kj_append_stmt(kj_simt *s, kj_tstmts *list, kj_tstmt *stmt);
void kj_append_stmts(kj_simt *s, kj_tstmts *list, const kj_tstmts *more);
/* The list without the statements that only say where a variable is declared. */
kj_tstmts kj_drop_declarations(kj_simt *s, const kj_tstmts *list);

/* What the files that build the thread loops share (kj_make_thread_loops): simt.c is the whole,
 * simt.c and simt_control.c are its parts. */

typedef struct kj_simt_builder {
  kj_simt *s;
  kj_tstmts *out;
  kj_tstmts run;       /* of the THREADS being collected */
  uint32_t run_number; /* from 1 */
  bool is_run_guarded;
  /* threads may be off at its start: it is not guarded because it turns them on */
  bool is_run_masked;
  bool run_writes;
  bool has_left; /* some threads may have left the kernel */
} kj_simt_builder;

/* Of what the pass itself adds. */
static inline kj_location kj_no_location(void) { return (kj_location){ 0 }; }

/* ---- simt.c: which threads are active ---- */

/* Where a thread becomes active again. */
typedef enum kj_off_place {
  KJ_OFF_ELSE = 0,
  KJ_OFF_BREAK = 0,
  KJ_OFF_THEN = 1,
  KJ_OFF_CONTINUE = 1
} kj_off_place;
/* The code that `off` holds in threads that wait for a place of the statement. */
int64_t kj_off_code(kj_simt_builder *b, kj_tstmt *stmt, kj_off_place place);
kj_texpr *kj_off_value(kj_simt_builder *b);
kj_texpr *kj_off_const(kj_simt_builder *b, int64_t value);
kj_texpr *kj_off_is(kj_simt_builder *b, int64_t value);
kj_tstmt *kj_set_off(kj_simt_builder *b, kj_texpr *value);
/* Some threads may be off here. */
bool kj_is_masked(const kj_simt_builder *b, const kj_simt_position *position);
/* The statement leaves out threads that are off, where there may be any. */
void kj_guard(kj_simt_builder *b, kj_tstmt *stmt, const kj_simt_position *position);
/* Threads that wait for the place are active again. */
void kj_restore_active(kj_simt_builder *b, kj_tstmt *stmt, kj_off_place place,
                       const kj_simt_position *position);
/* At the end: without the variable where nothing reads it. */
void kj_settle_off(kj_simt_builder *b);

/* ---- simt.c: runs of statements that become one THREADS ---- */

/* A uniform variable, set in front of the run: some thread is active. */
kj_texpr *kj_any_active(kj_simt_builder *b, const kj_simt_position *position);
/* Ends the run. */
void kj_flush_run(kj_simt_builder *b);
/* To the run, for the active threads. */
void kj_push_active(kj_simt_builder *b, kj_tstmt *stmt, const kj_simt_position *position);
/* To a run of its own or to one that only turns threads on: for all threads, active or not. */
void kj_push_for_all(kj_simt_builder *b, kj_tstmt *stmt, const kj_simt_position *position);
/* Between thread loops; in front of the run that is being collected. */
void kj_emit_joint(kj_simt_builder *b, kj_tstmt *stmt);
/* Once for the block: in front of the run, or behind it where the run must come first. */
void kj_build_scalar(kj_simt_builder *b, kj_tstmt *stmt);
/* A uniform variable of the pass's own. */
kj_tvar *kj_new_uniform(kj_simt_builder *b, const char *name, kjit_type type, kj_location location);

/* ---- simt_control.c: what threads do on their own ---- */

void kj_build_thread(kj_simt_builder *b, kj_tstmt *stmt, const kj_simt_position *position);

/* ---- simt.c: what they do together ---- */

void kj_build_sync(kj_simt_builder *b, kj_tstmt *stmt, const kj_simt_position *position);
/* A BARRIER_REDUCE over the active threads: the value of the first of them; value NULL: whether
 * there are any. */
void kj_emit_reduce(kj_simt_builder *b, kj_tvar *var, kj_texpr *value, kj_location location,
                    const kj_simt_position *position);

/* ---- simt_control.c: control flow between thread loops ---- */

/* IF, FOR, WHILE, ONCE. */
void kj_build_control(kj_simt_builder *b, kj_tstmt *stmt, const kj_simt_position *position);

/* ---- simt.c ---- */

void kj_build_joint_list(kj_simt_builder *b, const kj_tstmts *list,
                         const kj_simt_position *position);

/* What inline_sync.c (calls and statements) and inline_sync.c (expressions) share. */

typedef struct kj_inliner {
  kj_simt *s;
  bool *is_joint; /* by instance id: synchronizes or ranges, itself or in what it calls */
  /* by instance id, variable index: shared and const arrays, one for all calls of an instance */
  kj_tvar ***storage;
  struct kj_activation *at; /* inline_sync.c's own */
  uint32_t statement_count;
} kj_inliner;

/* ---- inline_sync.c ---- */

/* The statements of a call of a function that synchronizes; its result, NULL for none. */
kj_texpr *kj_inline_call(kj_inliner *in, kj_texpr *call, kj_tstmts *out);
/* Appends, and fails where the kernel gets too large. */
void kj_push_inlined(kj_inliner *in, kj_tstmts *out, kj_tstmt *stmt);

/* ---- inline_sync.c ---- */

bool kj_is_sync_builtin(const kj_texpr *e);
bool kj_has_joint_expr(const kj_inliner *in, const kj_texpr *e);
/* Takes synchronizations out of an expression: what is left can be evaluated without. Void calls
 * and barriers leave NULL. */
kj_texpr *kj_hoist(kj_inliner *in, kj_texpr *e, kj_tstmts *out);
/* Operands of warp operations are read in slots: constants and mutable variables are handed over as
 * they are. The result must not overwrite what other lanes still read. */
void kj_hold_sync_operands(kj_inliner *in, kj_texpr *e, const kj_tvar *result, kj_tstmts *out);

#endif
