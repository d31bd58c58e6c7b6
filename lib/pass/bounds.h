/* What prove.c, bounds.c and invariant.c share: the least and the most value that an integer has in
 * a block of threads, or in a thread from the start of a loop to its end. */
#ifndef KJ_PASS_BOUNDS_H
#define KJ_PASS_BOUNDS_H

#include "pass/interval.h"

/* Least and most value, as expressions of the kernel's parameters and of the block, i64, and as
 * numbers for any launch. */
typedef struct kj_bounds {
  bool known;
  kj_texpr *low, *high;
  int64_t least, most;
  uint32_t nodes; /* of the larger expression */
} kj_bounds;

/* What an array's extents are at least. */
typedef struct kj_bounded_shape {
  bool known;
  kj_bounds extents[KJ_MAX_RANK];
} kj_bounded_shape;

typedef struct kj_bounded_call {
  const kj_instance *instance;
  kj_bounds *values; /* by variable */
  kj_bounded_shape **shapes;
  kj_texprs *needs; /* by variable: what values and shapes rely on; in a loop only */
  uint32_t depth;
} kj_bounded_call;

/* A node whose check was looked at; one of the two. */
typedef struct kj_met_check {
  kj_texpr *expr;
  kj_tstmt *store;
} kj_met_check;

typedef struct kj_prover {
  kj_compilation *c;
  kj_bounded_call *at;
  kj_texprs conditions;
  /* In a loop: by variable of its instance, whether the loop assigns it. Expressions of the others,
   * which do not load, are known exactly when the loop starts; bounds are in terms of these. What
   * is not followed on its own, such as sums that could overflow, becomes a condition. NULL: in a
   * block. */
  bool *inside;
  KJ_LIST(kj_met_check) met; /* in a loop */
  uint32_t visits;
  bool is_full; /* too much to look at: nothing is proved any more */
} kj_prover;

/* Of an expression, in the call that is being looked at. */
kj_bounds kj_find_bounds(kj_prover *p, const kj_texpr *e);
/* Of an array expression; NULL: nothing is known. */
kj_bounded_shape *kj_find_least_shape(kj_prover *p, const kj_texpr *array);
extern const kj_bounds kj_unknown_bounds;
kj_bounds kj_bounds_of_number(kj_prover *p, int64_t value);
/* In exact arithmetic; not known where the type does not hold the result. */
kj_bounds kj_add_bounds(kj_prover *p, kjit_type type, kj_bounds x, kj_bounds y);
kj_bounds kj_subtract_bounds(kj_prover *p, kjit_type type, kj_bounds x, kj_bounds y);
/* A number as an expression, i64. */
kj_texpr *kj_make_bound(kj_prover *p, int64_t value);
kj_texpr *kj_make_i64(kj_prover *p, kj_texpr *e);
/* Counters from first in front of stop, by a number other than 1, where first and stop are exact:
 * the last one. */
kj_bounds kj_find_last_bounds(kj_prover *p, kj_bounds first, kj_bounds stop, int64_t step);
/* Bounds of an expression by its kind, whether or not it is invariant. */
kj_bounds kj_find_bounds_by_kind(kj_prover *p, const kj_texpr *e);
bool kj_find_type_range(const kj_prover *p, kjit_type type, int64_t *least, int64_t *most);

/* invariant.c */

/* Adds x op y to the conditions, once. */
void kj_add_condition(kj_prover *p, kjit_op op, kj_texpr *x, kj_texpr *y);
void kj_add_conditions(kj_prover *p, const kj_texprs *conditions);
/* In a loop: the value is the same from its start to its end, and can be computed there without
 * effect. */
bool kj_is_invariant(const kj_prover *p, const kj_texpr *e);
/* Of an invariant: its own value; the conditions say that it is small enough for sums and products.
 */
kj_bounds kj_bounds_of_invariant(kj_prover *p, kj_texpr *e);
/* least <= b <= most, known or as conditions; the numbers in b are made to say so. */
void kj_confine(kj_prover *p, kj_bounds *b, int64_t least, int64_t most);

#endif
