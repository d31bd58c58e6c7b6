/* Declarations that the files of algorithms share: algorithm.c (converts a call with Python
 * objects), plan.c (prepared calls), algorithm_table.c (maps names to C functions), shortcut.c
 * (repeated calls of functions of kjit.numpy), solver.c (linear systems). */
#ifndef KJIT_PYTHON_ALGORITHM_H
#define KJIT_PYTHON_ALGORITHM_H

#include "binding.h"

/* An argument of a call. Arguments are in the order of the letters in the algorithm's row. */
typedef struct algorithm_argument {
  kjit_operand *operands; /* operands for the letters x and X; NULL for None */
  kjit_operator *operators;
  size_t count; /* number of operands or operators */
  kjit_function *function;
  int64_t integer;
  uint32_t integers[16]; /* `count` integers for the letter I */
  double real;
  const char *text;
} algorithm_argument;

/* A name and its C function. parameters has one letter for each argument: x an operand or None; X a
 * tuple of operands or None; o an operator; O a tuple of operators; f a func or None; i a 64-bit
 * integer; I a tuple of 32-bit integers; d a float; s a string. Results come first: r an output
 * operand or None; R a tuple of output operands. */
typedef struct algorithm_row {
  const char *name, *parameters;
  kjit_status (*run)(kjit_context *context, const algorithm_argument *a,
                     const kjit_algorithm_options *options);
} algorithm_row;

/* Returns the row with this name, or NULL. */
const algorithm_row *binding_find_algorithm(const char *name);

enum {
  ALGORITHM_MOST_ARGUMENTS = 12, /* maximum arguments in a row */
  ALGORITHM_MOST_OBJECTS = 40,   /* maximum operands, including additional arguments of funcs */
  ALGORITHM_MOST_OPERATORS = 16,
  ALGORITHM_MOST_RESULTS = 16
};

/* A call: the converted arguments for the C function, and the data that they need until the call is
 * over. */
typedef struct algorithm_call {
  context_object *context;
  algorithm_argument arguments[ALGORITHM_MOST_ARGUMENTS];
  int object_count, operand_count, operator_count;
  int is_result;  /* true while result arrays are read */
  int is_planned; /* true if each run of a plan writes the results */
  int is_short; /* true if the call is too short to be interrupted, because its code exists and the
                   arrays are small */
  int written_count;
  binding_block *written[ALGORITHM_MOST_OBJECTS]; /* memory blocks of a plan's results */
  int result_count;
  array_object *results[ALGORITHM_MOST_OBJECTS]; /* arrays that the call writes, borrowed */
  binding_argument objects[ALGORITHM_MOST_OBJECTS];
  kjit_arg values[ALGORITHM_MOST_OBJECTS];
  kjit_operand operands[ALGORITHM_MOST_OBJECTS];
  int64_t shapes[ALGORITHM_MOST_OBJECTS][BINDING_MAX_RANK];
  kjit_operator operators[ALGORITHM_MOST_OPERATORS];
} algorithm_call;

/* Total number of elements up to which Ctrl-C does not interrupt a call whose code exists. To make
 * a call interruptible takes several system calls. */
enum { ALGORITHM_FEW_ELEMENTS = 1 << 16 };

/* Returns NULL with an exception. */
algorithm_call *binding_create_call(context_object *context);
void binding_destroy_call(algorithm_call *call);
/* Adds the next operand of the call: an array, a number, or a func with arrays, given as the tuple
 * (module, name, shape or None, arrays). name is for messages. Returns NULL with an exception. */
kjit_operand *binding_add_operand(algorithm_call *call, PyObject *object, const char *name);

/* Finds the func for a pair (module, name). Returns 0, or -1 with an exception. */
int binding_get_pair(context_object *context, PyObject *object, kjit_function **function);
/* Runs a row with the converted arguments. Returns 0, or -1 with an exception. */
int binding_perform(algorithm_call *call, const algorithm_row *row,
                    kjit_algorithm_options *options);

/* Prepares the results for another run of the call's plan, and must be called before each run.
 * Returns 0, or -1 with an exception. */
int binding_write_again(const algorithm_call *call);

/* Returns a Python object that owns the plan of a call and the call's data. Returns NULL with an
 * exception. */
PyObject *binding_make_plan(context_object *context, kjit_plan *plan, algorithm_call *call);

/* binding_count_algorithm is called for each algorithm that runs. binding_observe_algorithm is
 * called before each algorithm that Python code runs, so that a shortcut can repeat the algorithm
 * (shortcut.c). */
void binding_count_algorithm(void);
void binding_observe_algorithm(const algorithm_row *row, PyObject *arguments,
                               const kjit_algorithm_options *options);

int binding_add_plans(PyObject *module);
int binding_add_shortcuts(PyObject *module);
int binding_add_lines(PyObject *module);
int binding_add_solvers(PyObject *module);

#endif
