/* Declarations that the passes on the typed IR share. passes.def lists the passes in order. */
#ifndef KJ_PASS_PASS_H
#define KJ_PASS_PASS_H

#include "typing/typed.h"

#define PASS(name, function, condition, needs, gives, verify, what) \
  void function(kt_compilation *c);
#include "pass/passes.def"
#undef PASS

/* prove.c: returns the checks, in the loop and in functions that it calls, that cannot fail if
 * certain conditions are true when the loop starts. The result contains these conditions. Returns
 * NULL if there are no such checks. The conditions read only variables that the loop does not
 * assign. */
const kt_loop_checks *kp_prove_in_loop(kt_compilation *c, const kt_instance *instance,
                                       kt_stmt *loop, kt_exprs *conditions);

/* checks.c: return whether evaluating the expression, or executing the statement, can make a thread
 * leave the kernel. Needs KJ_TREE_FAILING. */
bool kp_may_fail(const kt_expr *expr);
/* waits.c: returns whether the loop is a `while` that only another thread can end. */
bool kp_only_waits(const kt_stmt *loop);
bool kp_stmt_may_fail(const kt_stmt *stmt);

#endif
