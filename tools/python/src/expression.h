/* What the files of expressions share: block.c (memory that arrays share, and the expressions that
 * read it), expression.c (recording an operation), collect.c (what becomes one kernel), evaluate.c
 * (computing it) and operator.c (operators of arrays, and the functions for kjit.numpy).
 *
 * An array whose `pending` is not NULL has no memory yet: it is the result of an operation that was
 * recorded. The operands of the operation are arrays, computed or pending ones, and numbers, so
 * that pending arrays form a graph without circles. docs/architecture/expressions.md has the
 * design. */
#ifndef KJIT_PYTHON_EXPRESSION_H
#define KJIT_PYTHON_EXPRESSION_H

#include "binding.h"

enum {
  EXPRESSION_MOST_OPERANDS = 3,
  EXPRESSION_MOST_OPERATIONS = 48, /* of one kernel */
  /* Operands of one kernel. With its result they are 24, the most that libkjit keeps a call of. */
  EXPRESSION_MOST_INPUTS = 23,
  EXPRESSION_IS_OPERATION = 0x80 /* of a place */
};

/* A pending array as a reader of an operand: an item of the list of the operand's memory, or of the
 * list of the operand itself where it is pending. */
typedef struct binding_edge {
  array_object *reader;
  struct binding_edge *next, **place; /* place NULL: in no list */
} binding_edge;

/* Memory that an array has, and views of it have, too. */
struct binding_block {
  size_t references;
  binding_edge *readers;
  size_t lent; /* buffers and capsules that others hold */
  /* The memory is written by others, or by launches that do not come through this binding. */
  int is_open;
};

/* An element-wise operation for operands of certain types. */
typedef struct binding_operation {
  PyObject *kernel; /* kjit.numpy's Kernel */
  uint64_t types;   /* of the operands, see expression.c */
  kjit_type scalar; /* of numbers of Python */
  kjit_type result;
  int is_cheap; /* computing it again costs less than reading its result */
} binding_operation;

struct binding_pending {
  uint32_t operation;
  int operand_count;
  PyObject *operands[EXPRESSION_MOST_OPERANDS];
  binding_edge edges[EXPRESSION_MOST_OPERANDS];
  binding_edge *readers; /* pending arrays that have this one as an operand */
  Py_ssize_t reader_count;
  kjit_tensor tensor; /* without an address */
  kjit_type element;
  int64_t shape[BINDING_MAX_RANK];
  /* Of the expression, upper bounds: what two operands share may be counted twice. */
  int operation_count, input_count;
  unsigned long busy; /* the thread that computes it, alone or as a part; 0: none */
  int was_part;       /* it was computed as a part of another array */
  int is_spent;       /* its operand was overwritten by the operation that it was a part of */
  uint64_t visit;     /* number of the walk that has seen it last */
  int index;          /* in that walk */
  array_object *previous, *next; /* in the list of all */
};

/* An expression as one kernel computes it: the operations, operands before their readers, and the
 * arrays and numbers that it reads. */
typedef struct binding_expression {
  array_object *nodes[EXPRESSION_MOST_OPERATIONS];
  /* Where the operands of each are: i for input i, EXPRESSION_IS_OPERATION | i for operation i. */
  unsigned char places[EXPRESSION_MOST_OPERATIONS][EXPRESSION_MOST_OPERANDS];
  PyObject *inputs[EXPRESSION_MOST_INPUTS];
  kjit_type
    types[EXPRESSION_MOST_INPUTS]; /* of numbers of Python; KJIT_ANY: an object has its own */
  int node_count, input_count;
  /* The structure: operations, where their operands are, and how the inputs lie in memory. */
  unsigned char key[EXPRESSION_MOST_OPERATIONS * 6 + EXPRESSION_MOST_INPUTS * 4 + 16];
  size_t key_size;
} binding_expression;

/* ---- block.c ---- */

/* The block of an array that has memory; NULL with an exception. */
binding_block *binding_get_block(array_object *array);
binding_block *binding_retain_block(binding_block *block);
void binding_add_edge(binding_edge **list, binding_edge *edge, array_object *reader);
void binding_remove_edge(binding_edge *edge);
/* Whether others may write the memory of an array at any time. */
int binding_is_shared(const array_object *array);
/* 0: the arrays, which have memory, have none in common; 1: they are the same elements in the same
 * order; 2: their memory may overlap. */
int binding_relation(const array_object *a, const array_object *b);
/* Computes the pending arrays that read the memory, but for parts of an expression that nobody else
 * holds: kept is the number of its walk, 0: none. 0, or -1 with an exception. */
int binding_compute_readers(binding_block *block, uint64_t kept);

/* ---- expression.c ---- */

extern context_object *expression_context; /* of arrays whose operations are recorded */
/* What is done with operations. */
enum { FUSE_NEVER, FUSE_LATER, FUSE_NOW };
extern int expression_mode;
extern uint64_t expression_changes; /* how often an array ceased to be pending */
extern uint64_t expression_walks;   /* through graphs; each has a number */
extern int expression_captures;     /* graphs that are being captured: nothing is put off */

const binding_operation *expression_get_operation(uint32_t number);
/* The operation of a row of kjit.numpy's table as a pending array. NULL without an exception: of
 * operands that kjit.numpy has to look at. */
array_object *expression_record(long row, PyObject *const *operands, int count);
/* A pending array has got its memory, which it takes over. 0, or -1 with an exception. */
int binding_adopt(array_object *array, kjit_array *computed);
/* types: the classes of NumPy's scalars, with the numbers of kjit's types. */
void expression_set_scalars(PyObject *types);
int expression_set_rows(PyObject *find);

/* ---- collect.c ---- */

/* An operand that is a pending array, else NULL. */
static inline array_object *expression_as_pending(PyObject *operand)
{
  array_object *array = (array_object *)operand;
  return Py_TYPE(operand) == binding_array_type && array->pending ? array : NULL;
}

/* Computes operands that are not to become parts of the array's kernel, and lists the others. 0, or
 * -1 with an exception. */
int expression_collect(array_object *array, binding_expression *expression);
/* What kjit.numpy is told of an expression: (key, operations, inputs). An operation is its Kernel
 * and the places of its operands: i for input i, -1 - i for operation i. */
PyObject *expression_describe(const binding_expression *expression);
PyObject *expression_make_key(const binding_expression *expression);

/* ---- evaluate.c ---- */

/* Computes a pending array and writes it to another array where `where`, or NULL, is true. is_slot:
 * the operands are those of an operator that Python runs. 0, or -1 with an exception. */
int expression_store(array_object *array, array_object *out, PyObject *where, int is_slot);
/* functions: a dictionary, key of an expression -> its func as (module, name).
 * choose((key, operations, inputs), result) is called for keys that are not in it; fail(key, error)
 * for a func that could not be run; store(out, array, where) copies. are_counted: the interpreter
 * counts the references of its stack. */
void expression_set_functions(PyObject *functions, PyObject *choose, PyObject *fail,
                              PyObject *store, int are_counted);

#endif
