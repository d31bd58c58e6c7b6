/* Declarations that prove.c, bounds.c and invariant.c share. They compute the minimum and maximum
 * of an integer, either within a block of threads, or within one thread during a loop. */
#ifndef KJ_PASS_BOUNDS_H
#define KJ_PASS_BOUNDS_H

#include "pass/interval.h"

/* The minimum and maximum of a value. low and high are i64 expressions whose values are known when
 * the block or the loop starts; least and most are numbers that are valid in every launch. */
typedef struct kp_bounds {
  bool known;
  kt_expr *low, *high;
  int64_t least, most;
  uint32_t nodes; /* number of nodes in the larger of the two expressions */
} kp_bounds;

/* Lower bounds of an array's extents. */
typedef struct kp_bounded_shape {
  bool known;
  kp_bounds extents[KJ_MAX_RANK];
} kp_bounded_shape;

typedef struct kp_bounded_call {
  const kt_instance *instance;
  kp_bounds *values; /* indexed by variable */
  kp_bounded_shape **shapes;
  /* indexed by variable: the conditions under which the bounds of its value or shape are valid;
   * only in a loop */
  kt_exprs *needs;
  uint32_t depth;
} kp_bounded_call;

/* A node with a check that the walk has visited: an expression or a store. */
typedef struct kp_met_check {
  kt_expr *expr;
  kt_stmt *store;
} kp_met_check;

typedef struct kp_prover {
  kt_compilation *c;
  kp_bounded_call *at;
  kt_exprs conditions;
  /* indexed by variable: whether the loop assigns the variable. NULL means that bounds are computed
   * for a block and not for a loop. In a loop, bounds consist of expressions that contain no loads
   * and no variables that the loop assigns, because the values of such expressions are known when
   * the loop starts. Assumptions that cannot be proved, for example that a sum does not overflow,
   * become conditions. */
  bool *inside;
  KJ_LIST(kp_met_check) met; /* only in a loop */
  uint32_t visits;
  bool is_full; /* a limit was exceeded, so no further checks are proved */
} kp_prover;

/* Returns the bounds of an expression in the current call. */
kp_bounds kp_find_bounds(kp_prover *p, const kt_expr *e);
/* Returns lower bounds for the extents of an array expression; NULL means that nothing is known. */
kp_bounded_shape *kp_find_least_shape(kp_prover *p, const kt_expr *array);
extern const kp_bounds kp_unknown_bounds;
kp_bounds kp_bounds_of_number(kp_prover *p, int64_t value);
/* These functions compute the exact result of an operation. The result is unknown bounds if the
 * type cannot represent the exact result. */
kp_bounds kp_add_bounds(kp_prover *p, kjit_type type, kp_bounds x, kp_bounds y);
kp_bounds kp_subtract_bounds(kp_prover *p, kjit_type type, kp_bounds x, kp_bounds y);
/* kp_make_bound returns an i64 constant. kp_make_i64 returns the expression, converted to i64. */
kt_expr *kp_make_bound(kp_prover *p, int64_t value);
kt_expr *kp_make_i64(kp_prover *p, kt_expr *e);
/* Returns the bounds of a counter's last value in a loop from first to stop with a step other than
 * 1. first and stop must be exact. */
kp_bounds kp_find_last_bounds(kp_prover *p, kp_bounds first, kp_bounds stop, int64_t step);
/* Returns the bounds that follow from the kind and the operands of an expression, even if the
 * expression is invariant. */
kp_bounds kp_find_bounds_by_kind(kp_prover *p, const kt_expr *e);
bool kp_find_type_range(const kp_prover *p, kjit_type type, int64_t *least, int64_t *most);

/* invariant.c */

/* Adds the condition x op y, unless it has been added already. */
void kp_add_condition(kp_prover *p, kjit_op op, kt_expr *x, kt_expr *y);
void kp_add_conditions(kp_prover *p, const kt_exprs *conditions);
/* In a loop: returns whether the value does not change during the loop, and can be computed without
 * effects before it. */
bool kp_is_invariant(const kp_prover *p, const kt_expr *e);
/* Returns the bounds of an invariant: its value is both the minimum and the maximum. Conditions
 * ensure that the value is small enough for sums and products. */
kp_bounds kp_bounds_of_invariant(kp_prover *p, kt_expr *e);
/* Ensures that least <= b <= most, by proof or by additional conditions. Then limits the numbers in
 * b to this range. */
void kp_confine(kp_prover *p, kp_bounds *b, int64_t least, int64_t most);

#endif
