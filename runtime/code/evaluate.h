/* Evaluates expressions of the untyped IR on the host, before a launch: defaults of const
 * parameters, @block, @grid, @launch_bounds, extents of grid_ranges and of shared arrays. They have
 * the types and the values that they have in the kernel (ir/arithmetic.h). */
#ifndef KJ_DISPATCH_EVALUATE_H
#define KJ_DISPATCH_EVALUATE_H

#include "base/runtime.h"

typedef struct kj_bound kj_bound;
typedef struct kjit_kernel kjit_kernel;

/* A variable of a kernel that is declared once and never assigned: what it stands for. */
typedef struct kj_binding {
  const ki_expr *value;
  int item; /* of a tuple; -1: the value itself */
} kj_binding;

enum { KJ_MOST_STEPS = 20000, KJ_MOST_DEPTH = 1000 };

/* What is known at a place. */
typedef struct kj_scope {
  const kj_bound *bound; /* arguments by parameter; NULL: none known */
  uint32_t bound_count;  /* parameters below this are bound */
  /* by decl->index of the kernel's parameters and locals; NULL: lets are not looked through */
  const kj_binding *bindings;
  uint32_t binding_count;
  const uint32_t *block; /* block shape; NULL: not known */
  /* A float was computed that the kernel may round in another way: a sum of products, which it may
   * fuse, or a root. */
  bool is_rounded;
  /* the first thing that could not be evaluated */
  kj_location location;
  const char *reason; /* "is an element of an array" */
  /* bounds the work: a chain of lets that use each other twice has exponentially many paths */
  uint32_t steps, depth;
} kj_scope;

/* A value that meets no type: a plain number of the host is a literal here. */
bool kj_evaluate(kj_scope *scope, const ki_expr *expr, ki_value *value);
/* An integer where an index stands, an i64 by the rules of the kernel. */
bool kj_evaluate_index(kj_scope *scope, const ki_expr *expr, int64_t *value);
/* Values of @block or another attribute, missing ones 1. Errors: LAUNCH. */
kjit_status kj_evaluate_attribute(const kjit_kernel *kernel, kj_scope *scope,
                                  const ki_attribute *attribute, kj_diagnostics *diagnostics,
                                  uint32_t values[3]);
bool kj_evaluate_condition(kj_scope *scope, const ki_expr *expr, bool *holds);
/* Items of a tuple-valued expression: 1 for what is no tuple; 0 when that is not known. */
uint32_t kj_count_items(kj_scope *scope, const ki_expr *expr);
bool kj_evaluate_item(kj_scope *scope, const ki_expr *expr, uint32_t item, int64_t *value);
/* An array argument or a view of one: slices, transposed, reshaped. Strides count elements. */
typedef struct kj_shape {
  uint32_t rank;
  int64_t extents[KJ_MAX_RANK], strides[KJ_MAX_RANK];
} kj_shape;
bool kj_evaluate_shape(kj_scope *scope, const ki_expr *expr, kj_shape *shape);
/* False, and the reason, unless there is one already. */
bool kj_refuse_evaluation(kj_scope *scope, const ki_expr *expr, const char *reason);

#endif
