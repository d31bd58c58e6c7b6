/* --call: algorithms over whole arrays, `total = reduce(x, add, axis=-1)`. What there is to call is
 * the table of algorithms.c; call_text.c reads the text. */
#ifndef RUN_CALL_H
#define RUN_CALL_H

#include "algorithms.h"
#include "step.h"

/* What one parameter is given: where it is among the operands of its step. */
typedef struct run_part {
  size_t parameter;   /* of the algorithm */
  size_t operand;     /* an array, a value, a func */
  size_t array_count; /* of a func that is an operand: its arguments follow it */
  uint32_t rank;      /* of it */
  int64_t shape[TOOL_MAX_RANK];
  const char *operator_name; /* of an operator that is no func; static storage */
  int64_t integer;           /* of RUN_INTEGER, which is no operand */
  double real;
  char *text;        /* of RUN_TEXT */
  const char *at;    /* in the text */
  size_t new_length; /* not 0: the length of the name of an array that the call makes */
} run_part;

enum { RUN_MOST_DEVICES = 64, RUN_MOST_EXTRAS = 8 };

typedef struct run_call {
  const run_algorithm *algorithm;
  tool_scanner scanner; /* of the text, for errors; at: the algorithm's name */
  run_part *parts;
  size_t part_count;
  kjit_operand *operands; /* of the parts, when they are bound */
  kjit_operator *operators;
  kjit_algorithm_options options;
  const char *option_at[RUN_OPTION_COUNT]; /* in the text; NULL: not given */
  int32_t axes[TOOL_MAX_RANK];
  size_t initial;      /* operand, where it is given */
  void *initial_bytes; /* of an element of an array, as it is before the run */
  kjit_arg initial_value;
  bool commutes;
  size_t device_count; /* which share the call; 0: the run's device alone */
  kjit_device *devices[RUN_MOST_DEVICES];
  run_part where; /* where it is given */
  kjit_operand where_operand;
  char *signature;
  size_t epilogue;                  /* operand, where it is given */
  run_part extras[RUN_MOST_EXTRAS]; /* its operands */
  size_t extra_count;
  kjit_operand extra_operands[RUN_MOST_EXTRAS];
  kjit_plan *plan; /* made by the first run */
} run_call;

/* The call as a step, its new results among the arguments. */
bool run_scan_call(const run_maker *m, const char *text, run_step *step);
/* Queues it on the device's default stream. */
bool run_run_call(kjit_context *context, run_step *step);
void run_destroy_call(run_call *call); /* NULL is fine */

/* call_text.c: reads the text; new results are parts without an operand. */
bool run_scan_call_text(const run_maker *m, run_step *step);
/* An --arg, a view of one, a value, or a func with its arguments and its shape. */
bool run_scan_operand(const run_maker *m, tool_scanner *scanner, run_step *step, run_part *part);
/* call_options.c: the value of an option. */
bool run_scan_option(const run_maker *m, tool_scanner *scanner, run_step *step, run_option option);

#endif
