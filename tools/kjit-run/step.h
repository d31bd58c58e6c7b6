/* What a run does, in the order of the command line: launches of kernels (--launch), calls of
 * algorithms (--call) and formulas (--formula). */
#ifndef RUN_STEP_H
#define RUN_STEP_H

#include "options.h"
#include <driver/argument.h>

typedef struct run_operand {
  tool_argument argument;         /* an array or a scalar; borrowed memory */
  kjit_function *function;        /* not NULL: a func instead */
  int64_t strides[TOOL_MAX_RANK]; /* of the tensor */
  kjit_tensor tensor;             /* of an array, on the device */
  union {
    uint8_t bytes[TOOL_SCALAR_BYTES];
    double alignment;
  } scalar;
} run_operand;

typedef struct run_step {
  char *name; /* of the kernel, of the algorithm, or of a formula's result */
  run_operand *operands;
  kjit_arg *arguments; /* point into the operands */
  size_t count;
  uint64_t traffic_bytes; /* of the arrays that are read, plus those that are written */
  kjit_kernel *kernel;
  kjit_module *adjoint; /* whose kernel it is; NULL: the kernel is the module's own */
  kjit_launch_config config;
  struct run_call *call;       /* not NULL: of an algorithm, and there is no kernel */
  struct run_formula *formula; /* not NULL: a formula, and there is no kernel */
} run_step;

typedef struct run_steps {
  run_step *items;
  size_t count;
} run_steps;

/* What the steps are made from. */
typedef struct run_maker {
  tool_error *error;
  kjit_context *context;
  kjit_module *module;
  tool_arguments *arguments; /* results of calls become some of them */
} run_maker;

/* Without texts: the module's only kernel, its parameters bound by name. */
bool run_make_steps(const run_maker *m, const run_step_text *texts, size_t count, run_steps *steps);
/* Describes the arrays where they are on the device; their memory must be there. */
void run_bind_steps(run_steps *steps, kjit_device *device, uint64_t time_limit_ns);
void run_destroy_steps(run_steps *steps);

/* "launch", "call", or "step" if the steps are of several kinds or formulas; is_plural: "launches"
 * ... */
const char *run_step_word(const run_steps *steps, bool is_plural);

run_operand *run_append_operand(run_step *step);
/* Whether a kernel or an algorithm can have the argument: an error if it can have nulls that are no
 * NaNs, or if it is written and can have nulls. */
bool run_check_nulls(tool_error *error, const tool_argument *argument, bool is_written);
/* A func of the module, or a built-in. */
bool run_scan_function(const run_maker *m, tool_scanner *scanner, run_operand *operand);
/* The arguments of one step, where its arrays are; device: its kind and ordinal. */
void run_bind_step(run_step *step, const kjit_device_info *device);

#endif
