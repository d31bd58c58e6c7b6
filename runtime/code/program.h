/* Extents, @block and @grid as short programs, made once for a kernel: launches run these and
 * seldom walk a tree.
 *
 * A program knows integers, extents of array arguments and the usual operators, and computes with
 * ir/arithmetic.h as kj_evaluate does. It gives the value that kj_evaluate gives or none: plain
 * numbers of a host, and whatever else an expression holds, are left to kj_evaluate, which also
 * words the errors. */
#ifndef KJ_DISPATCH_PROGRAM_H
#define KJ_DISPATCH_PROGRAM_H

#include "code/evaluate.h"

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

/* is_product: only the product of the values counts. */
void kj_make_programs(const kjit_kernel *kernel, const ki_exprs *values, bool is_product,
                      kj_programs *programs);
/* False: not to be had this way. block may be NULL. */
bool kj_run_program(const kj_program *program, const kj_bound *bound, const uint32_t *block,
                    int64_t *value);
/* Whether running them looks at the parameter. */
bool kj_programs_use(const kj_programs *programs, uint32_t parameter);

#endif
