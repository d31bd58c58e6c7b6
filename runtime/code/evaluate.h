/* Evaluates expressions of the untyped IR on the host, before a launch: defaults of const
 * parameters, @block, @grid, @launch_bounds, extents of grid_ranges and of shared arrays. They have
 * the types and the values that they have in the kernel (ir/arithmetic.h). */
#ifndef KJ_CODE_EVALUATE_H
#define KJ_CODE_EVALUATE_H

#include "base/runtime.h"

/* One bound argument. Small and without a need to be cleared: filling these is most of what a hit
 * does. */
typedef struct kj_bound {
  uint8_t kind; /* kj_argument_kind */
  uint8_t rank, layout, facts, access;
  bool on_host, is_empty;
  bool offsets_fit; /* every offset, extent and stride is in the range of i32 */
  kjit_type type;   /* of scalars and compile-time values; arrays: the element */
  union {
    struct {          /* scalars and compile-time values */
      ki_value value; /* type KJIT_ANY: none that the host can compute with */
      uint64_t
        /* a run-time scalar or pointer as it goes to the kernel; of a value that is made of others,
           in bits[0], the address where the host has it */
        bits[2];
    };
    struct {                          /* arrays */
      const int64_t *shape, *strides; /* strides only of strided layouts */
      uint64_t address, low, high;    /* of element 0; the bytes [low, high) hold all elements */
      uint64_t count;
      uint64_t target; /* address of element 0 for the kernel: address, or the copy's on the GPU */
    };
    const ki_decl *function;
  };
} kj_bound;
int64_t kj_stride_of(const kj_bound *array, uint32_t dimension);

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
  const char *reason; /* "loads an element of an array" */
  /* bounds the work: a chain of lets that use each other twice has exponentially many paths */
  uint32_t steps, depth;
} kj_scope;

/* A value that meets no type: a plain number of the host is a literal here. */
bool kj_evaluate(kj_scope *scope, const ki_expr *expr, ki_value *value);
/* An integer where an index stands, of a tuple-valued expression the item; -1: of what is no tuple.
 */
bool kj_evaluate_item(kj_scope *scope, const ki_expr *expr, int64_t item, int64_t *value);
/* An integer where an index stands, an i64 by the rules of the kernel. */
static inline bool kj_evaluate_index(kj_scope *scope, const ki_expr *expr, int64_t *value)
{
  return kj_evaluate_item(scope, expr, -1, value);
}
bool kj_evaluate_condition(kj_scope *scope, const ki_expr *expr, bool *holds);
/* Items of a tuple-valued expression: 1 for what is no tuple; 0 when that is not known. */
uint32_t kj_count_items(kj_scope *scope, const ki_expr *expr);
/* An array argument or a view of one: slices, transposed, reshaped. Strides count elements. */
typedef struct kj_shape {
  uint32_t rank;
  int64_t extents[KJ_MAX_RANK], strides[KJ_MAX_RANK];
} kj_shape;
bool kj_evaluate_shape(kj_scope *scope, const ki_expr *expr, kj_shape *shape);
/* Returns false. Stores the reason and the location in the scope, unless it has a reason already.
 */
bool kj_refuse_evaluation(kj_scope *scope, const ki_expr *expr, const char *reason);

/* ---- programs: extents, @block and @grid as short programs, made once for a kernel ----
 *
 * Launches run these and seldom walk a tree. A program knows integers, extents of array arguments
 * and the usual operators, and computes with ir/arithmetic.h as kj_evaluate does. It gives the
 * value that kj_evaluate gives or none: plain numbers of a host, and whatever else an expression
 * holds, are left to kj_evaluate, which also words the errors. */

typedef enum kj_step_op {
  KJ_STEP_NUMBER, /* .number */
  KJ_STEP_SCALAR, /* of parameter .parameter */
  KJ_STEP_EXTENT, /* .number: dimension, from the end when negative */
  KJ_STEP_COUNT,  /* elements of an array */
  KJ_STEP_BLOCK,  /* .number: dimension of the block */
  KJ_STEP_BINARY, /* .number: kjit_op */
  KJ_STEP_BUILTIN /* of two values; .number: ki_builtin_id */
} kj_step_op;

typedef struct kj_step {
  uint16_t op, parameter;
  kjit_type type; /* of the value; KJIT_ANY: shows when the program runs */
  int64_t number;
} kj_step;

enum { KJ_MOST_STEPS_OF_PROGRAM = 16, KJ_MOST_PROGRAMS = 4 };

/* Postfix. */
typedef struct kj_program {
  uint32_t count; /* 0: the expression is none that a program can be made of */
  kj_step steps[KJ_MOST_STEPS_OF_PROGRAM];
} kj_program;

/* Values of an attribute, or the extents of a grid_range (an array's shape as one value, its
 * product). */
typedef struct kj_programs {
  bool is_complete; /* one for each value */
  uint32_t count;
  kj_program items[KJ_MOST_PROGRAMS];
} kj_programs;

/* False: not to be had this way. block may be NULL. */
bool kj_run_program(const kj_program *program, const kj_bound *bound, const uint32_t *block,
                    int64_t *value);
/* Whether running them looks at the parameter. */
bool kj_programs_use(const kj_programs *programs, uint32_t parameter);

#endif
