/* Declarations that the files of array expressions share: block.c (memory that arrays share, and
 * the expressions that read it), expression.c (recording operations), collect.c (selecting the
 * operations in one kernel), evaluate.c (computing them), line.c (C functions for small arrays on
 * the CPU) and operator.c (array operators, and functions for kjit.numpy).
 *
 * An array whose `pending` is not NULL has no memory yet: it is the result of a recorded operation.
 * The operation's operands are numbers and arrays, computed or pending, so pending arrays form an
 * acyclic graph. docs/architecture/expressions.md describes the design. */
#ifndef KJIT_PYTHON_EXPRESSION_H
#define KJIT_PYTHON_EXPRESSION_H

#include "binding.h"

enum {
  EXPRESSION_MOST_OPERANDS = 3,
  EXPRESSION_MOST_OPERATIONS = 48, /* maximum in one kernel */
  /* Maximum number of inputs of one kernel. Together with the result there are then at most 24
   * operands, the maximum for which libkjit keeps the steps of a call. */
  EXPRESSION_MOST_INPUTS = 23,
  EXPRESSION_IS_OPERATION = 0x80 /* flag in binding_expression.places */
};

/* Links a pending array to an operand of its operation. It is an item in the operand's list of
 * readers: the list of the operand's memory block, or of the operand itself if it is pending. */
typedef struct binding_edge {
  array_object *reader;
  struct binding_edge *next, **place; /* `place` is NULL if the edge is in no list */
} binding_edge;

/* Memory that an array shares with its views. */
struct binding_block {
  size_t references;
  binding_edge *readers;
  size_t lent; /* number of buffers and capsules that other code holds */
  /* The memory may be written by other code, or by launches that do not go through this binding. */
  int is_open;
};

/* An element-wise operation for certain operand types. */
typedef struct binding_operation {
  PyObject *kernel; /* the Kernel of kjit.numpy */
  uint64_t types;   /* operand types, see expression.c */
  kjit_type scalar; /* type to which Python numbers are converted */
  kjit_type result;
  int is_cheap; /* true if computing the operation again is cheaper than loading its result */
} binding_operation;

struct binding_pending {
  uint32_t operation;
  int operand_count;
  PyObject *operands[EXPRESSION_MOST_OPERANDS];
  binding_edge edges[EXPRESSION_MOST_OPERANDS];
  binding_edge *readers; /* pending arrays that have this array as an operand */
  Py_ssize_t reader_count;
  kjit_tensor tensor; /* description of the result, without an address */
  kjit_type element;
  int64_t shape[BINDING_MAX_RANK];
  /* Upper bounds of the numbers of operations and inputs of the whole expression: subexpressions
   * shared by two operands may be counted twice. */
  int operation_count, input_count;
  /* identifier of the thread that computes the array, alone or as part of another array; 0 if no
   * thread does */
  unsigned long busy;
  int was_part;   /* the array was computed as part of another array */
  int is_spent;   /* the array's elements were stored in other memory, where they may have
                   * overwritten an operand */
  int is_element; /* true if the array is the copy of an element; its operand is a view of the
                     element */
  uint64_t visit; /* number of the last walk through the graph that visited the array */
  int index;      /* index in that walk */
  array_object *previous, *next; /* neighbours in the list of all pending arrays */
};

/* An expression that one kernel computes: the operations, each after its operands, and the arrays
 * and numbers that it reads. */
typedef struct binding_expression {
  array_object *nodes[EXPRESSION_MOST_OPERATIONS];
  /* Location of each operand: i for input i, EXPRESSION_IS_OPERATION | i for operation i. */
  unsigned char places[EXPRESSION_MOST_OPERATIONS][EXPRESSION_MOST_OPERANDS];
  PyObject *inputs[EXPRESSION_MOST_INPUTS];
  /* type of each input that is a number; KJIT_ANY for arrays */
  kjit_type types[EXPRESSION_MOST_INPUTS];
  int node_count, input_count;
  int has_more_inputs; /* true if the expression has more inputs than fit */
  /* The expression's structure: operations, locations of their operands, and memory layouts of the
   * inputs. */
  unsigned char key[EXPRESSION_MOST_OPERATIONS * 6 + EXPRESSION_MOST_INPUTS * 4 + 16];
  size_t key_size;
} binding_expression;

/* ---- block.c ---- */

/* Returns the block of an array that has memory. Returns NULL with an exception. */
binding_block *binding_get_block(array_object *array);
binding_block *binding_retain_block(binding_block *block);
void binding_add_edge(binding_edge **list, binding_edge *edge, array_object *reader);
void binding_remove_edge(binding_edge *edge);
/* Returns whether other code may write an array's memory at any time. */
int binding_is_shared(const array_object *array);
/* Compares two arrays that have memory. Returns 0 if they are disjoint, 1 if they have the same
 * elements in the same order, or 2 if they may overlap. */
int binding_relation(const array_object *a, const array_object *b);
/* Computes the pending arrays that read the memory. kept is 0, or the number of the walk through an
 * expression that is about to be stored; arrays of this expression that are spent are not computed.
 * Returns 0, or -1 with an exception. */
int binding_compute_readers(binding_block *block, uint64_t kept);

/* ---- expression.c ---- */

extern context_object *expression_context; /* context of the arrays whose operations are recorded */
/* When kjit executes the recorded operations. */
enum { FUSE_NEVER, FUSE_LATER, FUSE_NOW };
extern int expression_mode;
extern uint64_t expression_changes; /* number of arrays that are no longer pending */
/* number of walks through the graph so far; each walk has a number */
extern uint64_t expression_walks;
extern int expression_captures; /* number of running captures; while it is not 0, operations are
                                 * executed immediately */

const binding_operation *expression_get_operation(uint32_t number);
/* Records the operation of a row in kjit.numpy's table as a pending array. Returns NULL without an
 * exception if kjit.numpy has to handle the operands. */
array_object *expression_record(long row, PyObject *const *operands, int count);
/* Stores the types of operands as one number. Returns 0 if kjit.numpy has to handle the operands.
 */
int expression_read_types(PyObject *const *operands, int count, uint64_t *types);
/* Gives a pending array the memory with its computed elements, and takes over the reference to
 * `computed`. Returns 0, or -1 with an exception. */
int binding_adopt(array_object *array, kjit_array *computed);
/* types: the NumPy scalar classes and the numbers of the corresponding kjit types. */
void expression_set_scalars(PyObject *types);
/* Returns the pending operand with the most operations, or NULL if none is pending. */
array_object *expression_find_longest(PyObject *const *operands, int count);
int expression_set_rows(PyObject *find);

/* ---- collect.c ---- */

/* Returns the operand if it is a pending array, and otherwise NULL. */
static inline array_object *expression_as_pending(PyObject *operand)
{
  array_object *array = (array_object *)operand;
  return Py_TYPE(operand) == binding_array_type && array->pending ? array : NULL;
}

/* Computes the operands that do not become part of the array's kernel, and lists the operations
 * that do. Returns 0, or -1 with an exception. */
int expression_collect(array_object *array, binding_expression *expression);
/* Returns the description of an expression for kjit.numpy: (key, operations, inputs). An operation
 * is its Kernel and its operands' locations: i for input i, -1 - i for operation i. */
PyObject *expression_describe(const binding_expression *expression);
PyObject *expression_make_key(const binding_expression *expression);

/* ---- line.c ---- */

int expression_is_line(PyObject *object);
/* Returns the func of a line (see line.c) as (module, name), a borrowed reference. */
PyObject *expression_get_pair(PyObject *line);
/* Computes an expression into `out` with the C function of a line (see line.c), if the arrays are
 * small and contiguous. `reader` is the pending array of the expression. Returns 1 if done, 0 if
 * the caller has to use the func, or -1 with an exception. */
int expression_run_line(PyObject *line, const binding_expression *e, const array_object *reader,
                        kjit_array *out);

/* ---- operator.c ---- */

/* Runs the operation of a row, as the array operators do. Returns NotImplemented for operands of
 * other kinds. */
PyObject *expression_operate(long row, PyObject *const *operands, int count);
/* Records the copy of an element in an array that is not in host memory, so that the copy is made
 * when it is needed. view: the element, as an array without dimensions. Returns NULL without an
 * exception if such copies cannot be recorded; the caller then copies the element immediately. */
PyObject *expression_record_element(PyObject *view);
/* Computes the operation of a row into an array of the same shape and type. Returns 1 if done, 0 if
 * kjit.numpy has to handle the operands, or -1 with an exception. */
int expression_operate_into(long row, PyObject *const *operands, int count, array_object *out);

/* ---- evaluate.c ---- */

/* Computes a pending array. Returns 0, or -1 with an exception, or 1 if another thread has stored
 * the elements elsewhere meanwhile (is_spent). */
int expression_evaluate(array_object *array);
/* Waits while another thread computes the array, usually for less than a millisecond. Returns 0, or
 * -1 with an exception. */
int expression_wait(const array_object *array);
/* Returns the view that a recorded copy of an element reads. Returns NULL for other objects. */
array_object *expression_find_view(PyObject *object);
/* Returns the view that a recorded copy of an element reads, so that the element can be read
 * without a copy in the device's memory. Other threads then do not write to it until
 * expression_end_reading. Returns NULL for other arrays. */
array_object *expression_begin_reading(array_object *array);
void expression_end_reading(array_object *array, array_object *view);
/* Computes a pending array and stores it in another array. If `where` is not NULL, stores only the
 * elements for which it is true. is_slot is true if Python's operator calls the function, so that
 * the interpreter has references to the operands. Returns 0, or -1 with an exception. */
int expression_store(array_object *array, array_object *out, PyObject *where, int is_slot);
/* functions: dictionary from an expression's key to its func as (module, name). choose((key,
 * operations, inputs), result) is called for missing keys, fail(key, error) for a func that could
 * not be run; store(out, array, where) copies array to out. are_counted: the interpreter counts
 * references on its stack. */
void expression_set_functions(PyObject *functions, PyObject *choose, PyObject *fail,
                              PyObject *store, int are_counted);

#endif
