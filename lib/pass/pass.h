/* The passes on the typed IR, which passes.def lists in their order, and what they share. */
#ifndef KJ_PASS_PASS_H
#define KJ_PASS_PASS_H

#include "typing/typed.h"

#define PASS(name, function, condition, needs, gives, verify, what) \
  void function(kt_compilation *c);
#include "pass/passes.def"
#undef PASS

/* prove.c: the checks in the loop, of the instance's own or in what it calls, that cannot fail if
 * all conditions hold when it starts; NULL: none. The conditions read variables that the loop does
 * not assign. */
const kt_loop_checks *kp_prove_in_loop(kt_compilation *c, const kt_instance *instance,
                                       kt_stmt *loop, kt_exprs *conditions);

/* checks.c: whether evaluating or executing it may make a thread leave the kernel. Needs
 * KJ_TREE_FAILING. */
bool kp_may_fail(const kt_expr *expr);
/* A `while` that nothing but another thread can end: waits.c. */
bool kp_only_waits(const kt_stmt *loop);
bool kp_stmt_may_fail(const kt_stmt *stmt);

#endif
