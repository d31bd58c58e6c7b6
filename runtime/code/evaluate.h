/* Evaluates expressions of the untyped IR on the host before a launch: default values of const
 * parameters, @block, @grid, @launch_bounds, and extents of grid_ranges and shared arrays. The
 * results have the types and values that they would have in the kernel (ir/arithmetic.h). */
#ifndef KJ_CODE_EVALUATE_H
#define KJ_CODE_EVALUATE_H

#include "base/runtime.h"

/* A bound argument. The struct is small and needs no clearing, because a launch that hits the cache
 * spends most of its time on filling these. */
typedef struct kj_bound {
  uint8_t kind; /* kj_argument_kind */
  uint8_t rank, layout, facts, access;
  bool on_host, is_empty;
  bool offsets_fit; /* all offsets, extents and strides fit i32 */
  kjit_type type;   /* type of a scalar or compile-time value, element type of an array */
  union {
    struct {          /* scalars and compile-time values */
      ki_value value; /* its type is KJIT_ANY if the host cannot compute with the value */
      uint64_t
        /* run-time scalar or pointer as passed to the kernel; for an aggregate, bits[0] is its
         * address in host memory */
        bits[2];
    };
    struct {                          /* arrays */
      const int64_t *shape, *strides; /* strides only for strided layouts */
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
  uint32_t bound_count;  /* parameters with a smaller index are bound */
  /* values of lets, indexed by decl->index of parameters and locals; NULL means that lets are not
   * evaluated */
  const kj_binding *bindings;
  uint32_t binding_count;
  const uint32_t *block; /* block shape, or NULL if unknown */
  /* Set if the kernel may round a float result differently: for a square root, or for a sum of
   * products, which the kernel may fuse. */
  bool is_rounded;
  /* the first expression that could not be evaluated */
  kj_location location;
  const char *reason; /* for example "loads an element of an array" */
  /* limit the work, because a chain of lets that use each other twice has exponentially many
   * paths */
  uint32_t steps, depth;
} kj_scope;

/* Evaluates an expression without a type context. An untyped number argument has the value of a
 * literal. */
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
/* Returns the number of items of a tuple-valued expression, 1 for other expressions, or 0 if
 * unknown. */
uint32_t kj_count_items(kj_scope *scope, const ki_expr *expr);
/* An array argument or a view of it (a slice, transposed or reshaped). Strides are in elements. */
typedef struct kj_shape {
  uint32_t rank;
  int64_t extents[KJ_MAX_RANK], strides[KJ_MAX_RANK];
} kj_shape;
bool kj_evaluate_shape(kj_scope *scope, const ki_expr *expr, kj_shape *shape);
/* Returns false and stores reason and location in the scope, unless the scope already has a
 * reason. */
bool kj_refuse_evaluation(kj_scope *scope, const ki_expr *expr, const char *reason);

/* ---- programs: short programs for extents, @block and @grid, made once for each kernel ----
 *
 * Launches run programs and rarely evaluate expression trees. A program supports integers, extents
 * of array arguments and the usual operators, and computes with ir/arithmetic.h like kj_evaluate.
 * It returns the value that kj_evaluate would return, or fails. After a failure, kj_evaluate
 * evaluates the expression and reports errors; for example, programs do not support untyped number
 * arguments. */

typedef enum kj_step_op {
  KJ_STEP_NUMBER, /* the number .number */
  KJ_STEP_SCALAR, /* value of parameter .parameter */
  KJ_STEP_EXTENT, /* extent of an array; .number: dimension, negative counts from the end */
  KJ_STEP_COUNT,  /* number of elements of an array */
  KJ_STEP_BLOCK,  /* extent of the block; .number: dimension */
  KJ_STEP_BINARY, /* binary operator; .number: kjit_op */
  KJ_STEP_BUILTIN /* built-in with two arguments; .number: ki_builtin_id */
} kj_step_op;

typedef struct kj_step {
  uint16_t op, parameter;
  kjit_type type; /* type of the value, or KJIT_ANY if known only when the program runs */
  int64_t number;
} kj_step;

enum { KJ_MOST_STEPS_OF_PROGRAM = 16, KJ_MOST_PROGRAMS = 4 };

/* An expression in postfix order. */
typedef struct kj_program {
  uint32_t count; /* 0 if the expression cannot be translated to a program */
  kj_step steps[KJ_MOST_STEPS_OF_PROGRAM];
} kj_program;

/* Programs for the values of an attribute or the extents of a grid_range. The shape of an array is
 * one program, which computes the product of its extents. */
typedef struct kj_programs {
  bool is_complete; /* every value has a program */
  uint32_t count;
  kj_program items[KJ_MOST_PROGRAMS];
} kj_programs;

/* Runs a program. Returns false if it cannot compute the value. block may be NULL. */
bool kj_run_program(const kj_program *program, const kj_bound *bound, const uint32_t *block,
                    int64_t *value);
/* Returns whether the programs read the parameter. */
bool kj_programs_use(const kj_programs *programs, uint32_t parameter);

#endif
