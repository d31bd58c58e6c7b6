/* What prove.c, bounds.c and invariant.c share: the least and the most value that an integer has in
 * a block of threads, or in a thread from the start of a loop to its end. */
#ifndef KJ_PASS_BOUNDS_H
#define KJ_PASS_BOUNDS_H

#include "pass/interval.h"

/* Least and most value, as expressions of the kernel's parameters and of the block, i64, and as
 * numbers for any launch. */
typedef struct kp_bounds {
  bool known;
  kt_expr *low, *high;
  int64_t least, most;
  uint32_t nodes; /* of the larger expression */
} kp_bounds;

/* What an array's extents are at least. */
typedef struct kp_bounded_shape {
  bool known;
  kp_bounds extents[KJ_MAX_RANK];
} kp_bounded_shape;

typedef struct kp_bounded_call {
  const kt_instance *instance;
  kp_bounds *values; /* by variable */
  kp_bounded_shape **shapes;
  kt_exprs *needs; /* by variable: what values and shapes rely on; in a loop only */
  uint32_t depth;
} kp_bounded_call;

/* A node whose check was looked at; one of the two. */
typedef struct kp_met_check {
  kt_expr *expr;
  kt_stmt *store;
} kp_met_check;

typedef struct kp_prover {
  kt_compilation *c;
  kp_bounded_call *at;
  kt_exprs conditions;
  /* In a loop: by variable of its instance, whether the loop assigns it. Expressions of the others,
   * which do not load, are known exactly when the loop starts; bounds are in terms of these. What
   * is not followed on its own, such as sums that could overflow, becomes a condition. NULL: in a
   * block. */
  bool *inside;
  KJ_LIST(kp_met_check) met; /* in a loop */
  uint32_t visits;
  bool is_full; /* too much to look at: nothing is proved any more */
} kp_prover;

/* Of an expression, in the call that is being looked at. */
kp_bounds kp_find_bounds(kp_prover *p, const kt_expr *e);
/* Of an array expression; NULL: nothing is known. */
kp_bounded_shape *kp_find_least_shape(kp_prover *p, const kt_expr *array);
extern const kp_bounds kp_unknown_bounds;
kp_bounds kp_bounds_of_number(kp_prover *p, int64_t value);
/* In exact arithmetic; not known where the type does not hold the result. */
kp_bounds kp_add_bounds(kp_prover *p, kjit_type type, kp_bounds x, kp_bounds y);
kp_bounds kp_subtract_bounds(kp_prover *p, kjit_type type, kp_bounds x, kp_bounds y);
/* A number as an expression, i64. */
kt_expr *kp_make_bound(kp_prover *p, int64_t value);
kt_expr *kp_make_i64(kp_prover *p, kt_expr *e);
/* Counters from first in front of stop, by a number other than 1, where first and stop are exact:
 * the last one. */
kp_bounds kp_find_last_bounds(kp_prover *p, kp_bounds first, kp_bounds stop, int64_t step);
/* Bounds of an expression by its kind, whether or not it is invariant. */
kp_bounds kp_find_bounds_by_kind(kp_prover *p, const kt_expr *e);
bool kp_find_type_range(const kp_prover *p, kjit_type type, int64_t *least, int64_t *most);

/* invariant.c */

/* Adds x op y to the conditions, once. */
void kp_add_condition(kp_prover *p, kjit_op op, kt_expr *x, kt_expr *y);
void kp_add_conditions(kp_prover *p, const kt_exprs *conditions);
/* In a loop: the value is the same from its start to its end, and can be computed there without
 * effect. */
bool kp_is_invariant(const kp_prover *p, const kt_expr *e);
/* Of an invariant: its own value; the conditions say that it is small enough for sums and products.
 */
kp_bounds kp_bounds_of_invariant(kp_prover *p, kt_expr *e);
/* least <= b <= most, known or as conditions; the numbers in b are made to say so. */
void kp_confine(kp_prover *p, kp_bounds *b, int64_t least, int64_t most);

#endif
