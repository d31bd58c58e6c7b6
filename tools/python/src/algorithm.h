/* What the files of algorithms share: algorithm.c (a call from objects of Python), plan.c (calls
 * that are prepared), algorithm_table.c (the C function of each name), solver.c (linear systems).
 */
#ifndef KJIT_PYTHON_ALGORITHM_H
#define KJIT_PYTHON_ALGORITHM_H

#include "binding.h"

/* One argument of a call, in the order of its row. */
typedef struct algorithm_argument {
  kjit_operand *operands; /* of letter x or X; NULL: None */
  kjit_operator *operators;
  size_t count; /* of operands or operators */
  kjit_function *function;
  int64_t integer;
  uint32_t integers[16]; /* of letter I, `count` of them */
  double real;
  const char *text;
} algorithm_argument;

/* A name and its C function. parameters has a letter for each argument: x an operand, or None; X a
 * tuple of operands, or None; o an operator; O a tuple of operators; f a func, or None; i an
 * integer of 64 bits; I a tuple of integers of 32 bits; d a float; s a text. Results come first: r
 * an operand that is written, or None; R a tuple of such operands. */
typedef struct algorithm_row {
  const char *name, *parameters;
  kjit_status (*run)(kjit_context *context, const algorithm_argument *a,
                     const kjit_algorithm_options *options);
} algorithm_row;

/* NULL: none is called so. */
const algorithm_row *binding_find_algorithm(const char *name);

enum {
  ALGORITHM_MOST_ARGUMENTS = 12, /* of a row */
  ALGORITHM_MOST_OBJECTS = 40,   /* operands, and last arguments of funcs among them */
  ALGORITHM_MOST_OPERATORS = 16,
  ALGORITHM_MOST_RESULTS = 16
};

/* Objects of Python as what the C functions take, and what they keep until the call is over. */
typedef struct algorithm_call {
  context_object *context;
  algorithm_argument arguments[ALGORITHM_MOST_ARGUMENTS];
  int object_count, operand_count, operator_count;
  int is_result;  /* the arrays that are read from Python now are written */
  int is_planned; /* by each run of a plan */
  int written_count;
  binding_block *written[ALGORITHM_MOST_OBJECTS]; /* memory of the results of a plan */
  binding_argument objects[ALGORITHM_MOST_OBJECTS];
  kjit_arg values[ALGORITHM_MOST_OBJECTS];
  kjit_operand operands[ALGORITHM_MOST_OBJECTS];
  int64_t shapes[ALGORITHM_MOST_OBJECTS][BINDING_MAX_RANK];
  kjit_operator operators[ALGORITHM_MOST_OPERATORS];
} algorithm_call;

/* NULL: an exception is set. */
algorithm_call *binding_create_call(context_object *context);
void binding_destroy_call(algorithm_call *call);
/* The next operand of the call: an array, a number, or a func with arrays as a tuple (module, name,
 * shape or None, arrays). name: for messages. NULL: an exception is set. */
kjit_operand *binding_add_operand(algorithm_call *call, PyObject *object, const char *name);

/* The func of a pair (module, name). 0, or -1 with an exception. */
int binding_get_pair(context_object *context, PyObject *object, kjit_function **function);
/* Runs a row on arguments that are filled in. 0, or -1 with an exception. */
int binding_perform(algorithm_call *call, const algorithm_row *row,
                    kjit_algorithm_options *options);

/* A plan of the call is about to run. 0, or -1 with an exception. */
int binding_write_again(const algorithm_call *call);

/* A plan and what it runs on; takes over the call. NULL: an exception is set. */
PyObject *binding_make_plan(context_object *context, kjit_plan *plan, algorithm_call *call);

int binding_add_plans(PyObject *module);
int binding_add_solvers(PyObject *module);

#endif
