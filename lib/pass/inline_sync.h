/* What inline_sync.c (calls and statements) and hoist_sync.c (expressions) share. */
#ifndef KJ_PASS_INLINE_SYNC_H
#define KJ_PASS_INLINE_SYNC_H

#include "pass/simt.h"

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

/* ---- hoist_sync.c ---- */

bool kj_is_sync_builtin(const kj_texpr *e);
bool kj_has_joint_expr(const kj_inliner *in, const kj_texpr *e);
/* Takes synchronizations out of an expression: what is left can be evaluated without. Void calls
 * and barriers leave NULL. */
kj_texpr *kj_hoist(kj_inliner *in, kj_texpr *e, kj_tstmts *out);
/* Out of all operands of an expression. */
void kj_hoist_all(kj_inliner *in, kj_texpr *e, kj_tstmts *out);
/* Operands of warp operations are read in slots: constants and mutable variables are handed over as
 * they are. The result must not overwrite what other lanes still read. */
void kj_hold_sync_operands(kj_inliner *in, kj_texpr *e, const kj_tvar *result, kj_tstmts *out);

/* Operands in order of evaluation. Those before the last one that synchronizes are evaluated before
 * it. */
typedef KJ_LIST(kj_texpr **) kj_operand_list;
/* may be none: *operand is NULL */
void kj_add_operand(kj_inliner *in, kj_operand_list *list, kj_texpr **operand);
void kj_add_operands(kj_inliner *in, kj_operand_list *list, kj_texprs *operands);
void kj_hoist_operands(kj_inliner *in, kj_operand_list *list, kj_tstmts *out);

#endif
