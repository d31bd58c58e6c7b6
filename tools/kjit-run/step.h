/* The steps of a run, in the order of the command line: kernel launches (--launch), calls of
 * algorithms (--call) and formulas (--formula). */
#ifndef RUN_STEP_H
#define RUN_STEP_H

#include "options.h"
#include <driver/argument.h>

typedef struct run_operand {
  tool_argument argument;         /* an array or a scalar; borrowed memory */
  kjit_function *function;        /* if not NULL, the operand is this func */
  int64_t strides[TOOL_MAX_RANK]; /* strides of the tensor */
  kjit_tensor tensor;             /* for an array: its tensor on the device */
  union {
    uint8_t bytes[TOOL_SCALAR_BYTES];
    double alignment;
  } scalar;
} run_operand;

typedef struct run_step {
  char *name; /* name of the kernel, of the algorithm, or of the formula's result */
  run_operand *operands;
  kjit_arg *arguments; /* pointers into the operands */
  size_t count;
  uint64_t traffic_bytes; /* bytes of the arrays that are read plus bytes of the arrays that are
                           * written */
  kjit_kernel *kernel;
  kjit_module *adjoint; /* module of the kernel if it is an adjoint; NULL if the kernel belongs to
                           the tool's module */
  kjit_launch_config config;
  struct run_call *call;       /* not NULL for an algorithm; there is no kernel then */
  struct run_formula *formula; /* not NULL for a formula; there is no kernel then */
} run_step;

typedef struct run_steps {
  run_step *items;
  size_t count;
} run_steps;

/* The inputs from which steps are made. */
typedef struct run_maker {
  tool_error *error;
  kjit_context *context;
  kjit_module *module;
  tool_arguments *arguments; /* the arguments, to which the results of calls are added */
} run_maker;

/* Makes a step for each text. Without texts, makes a launch of the module's only kernel with
 * arguments bound by name. */
bool run_make_steps(const run_maker *m, const run_step_text *texts, size_t count, run_steps *steps);
/* Makes the arrays' tensors on the device, where their memory must already exist. */
void run_bind_steps(run_steps *steps, kjit_device *device, uint64_t time_limit_ns);
void run_destroy_steps(run_steps *steps);

/* Returns "launch", "call", or "step" for formulas or different kinds of steps; the plural if
 * is_plural is set. */
const char *run_step_word(const run_steps *steps, bool is_plural);

run_operand *run_append_operand(run_step *step);
/* Checks that a kernel or algorithm supports the argument. Reports an error in two cases: the
 * argument can contain nulls that are not stored as NaN, or the step writes to an argument that can
 * contain nulls. */
bool run_check_nulls(tool_error *error, const tool_argument *argument, bool is_written);
/* Scans the name of a func of the module or of a built-in. */
bool run_scan_function(const run_maker *m, tool_scanner *scanner, run_operand *operand);
/* Sets a step's arguments to its arrays in the device's memory. Uses only the kind and the ordinal
 * in the device's description. */
void run_bind_step(run_step *step, const kjit_device_info *device);

#endif
