/* What prove.c and bounds.c share: the least and the most value that an integer has in a block of threads. */
#ifndef KJ_PASS_BOUNDS_H
#define KJ_PASS_BOUNDS_H

#include "typing/typed.h"

/* Least and most value, as expressions of the kernel's parameters and of the block, i64, and as numbers for any launch. */
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
  uint32_t depth;
} kj_bounded_call;

typedef struct kj_prover {
  kj_compilation *c;
  kj_bounded_call *at;
  kj_texprs conditions;
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

#endif
