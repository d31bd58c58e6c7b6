/* Evaluates expressions of the untyped IR on the host before a launch: default values of const
 * parameters, @block, @grid, @launch_bounds, and extents of grid_ranges and shared arrays. The
 * results have the types and values that they would have in the kernel (ir/arithmetic.h). */
#ifndef KJ_CODE_EVALUATE_H
#define KJ_CODE_EVALUATE_H

#include "base/runtime.h"

/* A bound argument. The struct is small and need not be cleared, because a launch that hits the
 * cache spends most of its time on filling such structs. */
typedef struct kj_bound {
  uint8_t kind; /* kj_argument_kind */
  uint8_t rank, layout, facts, access;
  bool on_host, is_empty;
  bool offsets_fit; /* true if all offsets, extents and strides of the array fit i32 */
  kjit_type type;   /* type of a scalar or compile-time value, element type of an array */
  union {
    struct { /* scalars and compile-time values */
      /* the value; its type is KJIT_ANY if the host cannot compute with the value */
      ki_value value;
      uint64_t
        /* run-time scalar or pointer as passed to the kernel; for an aggregate, bits[0] is its
         * address in host memory */
        bits[2];
    };
    struct {                          /* arrays */
      const int64_t *shape, *strides; /* strides are set only for strided layouts */
      uint64_t address, low, high;    /* address of element 0; the bytes [low, high) contain all
                                       * elements */
      uint64_t count;
      uint64_t target; /* address of element 0 for the kernel: `address`, or the address of the copy
                        * on the GPU */
    };
    const ki_decl *function;
  };
} kj_bound;
int64_t kj_stride_of(const kj_bound *array, uint32_t dimension);

/* Value of a kernel variable that is declared once and never assigned. */
typedef struct kj_binding {
  const ki_expr *value;
  int item; /* index into a tuple value, or -1 for the value itself */
} kj_binding;

enum { KJ_MOST_STEPS = 20000, KJ_MOST_DEPTH = 1000 };

/* Inputs, limits and error of an evaluation. */
typedef struct kj_scope {
  const kj_bound *bound; /* arguments, indexed by parameter; NULL means that none are known */
  uint32_t bound_count;  /* only parameters with a smaller index are bound */
  /* values of lets, indexed by decl->index of parameters and locals; NULL means that lets are not
   * evaluated */
  const kj_binding *bindings;
  uint32_t binding_count;
  const uint32_t *block; /* block shape, or NULL if unknown */
  /* The kernel may round the float result differently, because the expression contains a square
   * root, or a sum of products, which the kernel may fuse. */
  bool is_rounded;
  /* location of the first expression that could not be evaluated */
  kj_location location;
  const char *reason; /* why evaluation is impossible, for example "loads an element of an array" */
  /* counters that limit the work: if each let of a chain uses the previous let twice, the number of
   * evaluations is exponential */
  uint32_t steps, depth;
} kj_scope;

/* Returns a let's value, or NULL if the declaration is no let or has no known value. */
static inline const kj_binding *kj_find_binding(const kj_scope *scope, const ki_decl *decl)
{
  bool is_let = decl->kind == KJ_DECL_LET && scope->bindings && decl->index < scope->binding_count;
  return is_let && scope->bindings[decl->index].value ? &scope->bindings[decl->index] : NULL;
}
/* Returns the array argument that the expression names, directly or through lets, or NULL. */
const kj_bound *kj_find_array(const kj_scope *scope, const ki_expr *expr);

/* Evaluates an expression whose context does not require a type. An untyped number argument is
 * treated like a literal. */
bool kj_evaluate(kj_scope *scope, const ki_expr *expr, ki_value *value);
/* Evaluates an integer in an index position. item selects an item of a tuple-valued expression; -1
 * means that the expression is not a tuple. */
bool kj_evaluate_item(kj_scope *scope, const ki_expr *expr, int64_t item, int64_t *value);
/* Evaluates an integer in an index position and converts it to i64, as the kernel does. */
static inline bool kj_evaluate_index(kj_scope *scope, const ki_expr *expr, int64_t *value)
{
  return kj_evaluate_item(scope, expr, -1, value);
}
bool kj_evaluate_condition(kj_scope *scope, const ki_expr *expr, bool *holds);
uint32_t kj_count_tuple_items(kj_scope *scope, const ki_expr *expr);
/* Returns the number of items of a tuple-valued expression, 1 for other expressions, or 0 if
 * unknown. */
static inline uint32_t kj_count_items(kj_scope *scope, const ki_expr *expr)
{
  bool is_number = expr->kind == KJ_EXPR_CALL || expr->kind == KJ_EXPR_BINARY;
  return is_number ? 1 : kj_count_tuple_items(scope, expr);
}
/* An array argument or a view of it (a slice, transposed or reshaped). Strides are in elements. */
typedef struct kj_shape {
  uint32_t rank;
  int64_t extents[KJ_MAX_RANK], strides[KJ_MAX_RANK];
} kj_shape;
bool kj_evaluate_shape(kj_scope *scope, const ki_expr *expr, kj_shape *shape);
/* Stores reason and location in the scope, unless the scope has a reason already. Returns false. */
bool kj_refuse_evaluation(kj_scope *scope, const ki_expr *expr, const char *reason);

#endif
