/* --call: runs algorithms over whole arrays, for example `total = reduce(x, add, axis=-1)`.
 * algorithms.c contains the table of algorithms; call_text.c parses the text. */
#ifndef RUN_CALL_H
#define RUN_CALL_H

#include "algorithms.h"
#include "step.h"

/* A part of a call: the value of one parameter. */
typedef struct run_part {
  size_t parameter;   /* index in the algorithm's parameters */
  size_t operand;     /* index of the operand: an array, a value or a func */
  size_t array_count; /* number of arguments that follow a func operand */
  uint32_t rank;      /* rank of a func operand */
  int64_t shape[TOOL_MAX_RANK];
  const char *operator_name; /* operator name, if the operator is not a func; static storage */
  int64_t integer;           /* value of a RUN_INTEGER parameter, which is not an operand */
  double real;
  char *text;        /* value of a RUN_TEXT parameter */
  const char *at;    /* position in the text */
  size_t new_length; /* not 0 for an array that the call creates: length of its name */
} run_part;

enum { RUN_MOST_DEVICES = 64, RUN_MOST_EXTRAS = 8 };

typedef struct run_call {
  const run_algorithm *algorithm;
  /* scanner for error messages, whose `at` is the position of the algorithm's name */
  tool_scanner scanner;
  run_part *parts;
  size_t part_count;
  kjit_operand *operands; /* operands of the parts; set when the step is bound */
  kjit_operator *operators;
  kjit_algorithm_options options;
  const char *option_at[RUN_OPTION_COUNT]; /* position of each option in the text, or NULL if it is
                                            * not given */
  int32_t axes[TOOL_MAX_RANK];
  size_t initial;      /* index of the operand, if the option is given */
  void *initial_bytes; /* bytes of the array element that is the value, read before the run */
  kjit_arg initial_value;
  bool commutes;
  size_t device_count; /* number of devices that share the call; 0 means only the run's device */
  kjit_device *devices[RUN_MOST_DEVICES];
  run_part where; /* valid if the option is given */
  kjit_operand where_operand;
  char *signature;
  size_t epilogue;                  /* index of the operand, if the option is given */
  run_part extras[RUN_MOST_EXTRAS]; /* operands of the epilogue */
  size_t extra_count;
  kjit_operand extra_operands[RUN_MOST_EXTRAS];
  kjit_plan *plan; /* plan of the call, which the first run creates */
} run_call;

/* Parses the call to a step and adds its new results to the arguments. */
bool run_scan_call(const run_maker *m, const char *text, run_step *step);
/* Queues the call on the device's default stream. */
bool run_run_call(kjit_context *context, run_step *step);
void run_destroy_call(run_call *call); /* call may be NULL */

/* call_text.c: parses the text. New results are parts without an operand. */
bool run_scan_call_text(const run_maker *m, run_step *step);
/* Scans an --arg, a view of an --arg, a value, or a func with its arguments and shape. */
bool run_scan_operand(const run_maker *m, tool_scanner *scanner, run_step *step, run_part *part);
/* call_options.c: scans an option's value. */
bool run_scan_option(const run_maker *m, tool_scanner *scanner, run_step *step, run_option option);

#endif
