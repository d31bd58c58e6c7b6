/* --launch: its text, its operands, and the arguments that kjit_launch takes. */
#ifndef RUN_LAUNCH_H
#define RUN_LAUNCH_H

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

typedef struct run_launch {
  kjit_kernel *kernel;
  char *kernel_name;
  kjit_launch_config config;
  run_operand *operands;
  kjit_arg *arguments; /* point into the operands */
  size_t count;
  uint64_t traffic_bytes; /* of the arrays that the kernel reads, plus those it writes */
} run_launch;

typedef struct run_launches {
  run_launch *items;
  size_t count;
} run_launches;

/* Without texts: the module's only kernel, its parameters bound by name. */
bool run_make_launches(tool_error *error, kjit_context *context, kjit_module *module,
                       const tool_arguments *arguments, const char *const *texts, size_t count,
                       run_launches *launches);
/* Describes the arrays where they are on the device; their memory must be there. */
void run_bind_launches(run_launches *launches, kjit_device *device);
void run_destroy_launches(run_launches *launches);

#endif
