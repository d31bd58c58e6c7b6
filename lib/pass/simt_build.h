/* What the files that build the thread loops share (kj_make_thread_loops): simt.c is the whole,
 * simt_mask.c, simt_run.c, simt_thread.c, simt_sync.c and simt_control.c are its parts. */
#ifndef KJ_PASS_SIMT_BUILD_H
#define KJ_PASS_SIMT_BUILD_H

#include "pass/simt.h"

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

/* ---- simt_mask.c: which threads are active ---- */

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

/* ---- simt_run.c: runs of statements that become one THREADS ---- */

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

/* ---- simt_thread.c: what threads do on their own ---- */

void kj_build_thread(kj_simt_builder *b, kj_tstmt *stmt, const kj_simt_position *position);

/* ---- simt_sync.c: what they do together ---- */

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

#endif
