/* The form of an argument: what of it decides how a launch hands it over. Arguments of the same
 * forms are handed over in the same way, which configured.c keeps. */
#ifndef KJIT_PYTHON_FORM_H
#define KJIT_PYTHON_FORM_H

#include "binding.h"

typedef enum form_family {
  FORM_OTHER,     /* nothing is kept for it */
  FORM_NUMBER,    /* a number of Python or NumPy */
  FORM_ARRAY,     /* kjit.Array, or an object that holds one, such as kjit.cuda's arrays */
  FORM_HOST,      /* an array of NumPy */
  FORM_LOOKED,    /* an array of another library that binding_look reads */
  FORM_INTERFACE, /* an object with __cuda_array_interface__ that names memory of the host */
  FORM_TUPLE,
  FORM_TYPE /* a type, which is compiled into the kernel */
} form_family;

/* A number, by the class of its type. */
typedef struct form_number {
  kjit_type type;
  union {
    int64_t i;   /* signed integers */
    uint64_t u;  /* unsigned integers and bools */
    double f[2]; /* floats, and both parts of complex numbers */
  } value;
} form_number;

/* An argument, or an item of a tuple among the arguments. */
typedef struct form_argument {
  form_family family;
  PyTypeObject *type; /* with facts: the form */
  uint64_t facts;
  PyObject *object; /* borrowed: the argument, or the kjit.Array that it holds */
  union {
    form_number number;
    binding_argument *storage; /* of FORM_HOST, FORM_LOOKED and FORM_INTERFACE */
  } as;
} form_argument;

enum { FORM_MOST = 64 };

/* The arguments of a launch: each tuple with its items behind it. */
typedef struct form_list {
  context_object *context;
  int takes_interfaces; /* whether FORM_INTERFACE is read */
  int count, stored_count;
  form_argument of[FORM_MOST];
  binding_argument stored[FORM_MOST];
} form_list;

/* Appends the form of an object. 1: done; 0: nothing is kept for it, and no exception is set. What
 * was read of storage holds as long as the objects. */
int form_read(form_list *list, PyObject *object);
/* The argument as a launch takes it. type: that a number is converted to, or the struct that the
 * elements of an array of NumPy are; KJIT_VOID: neither. 0, or -1 with an exception. */
int form_hand_over(form_list *list, form_argument *argument, kjit_type type, kjit_arg *arg);
/* Gives up what handing over has taken. */
void form_free(form_list *list);
/* Whether it is an array of NumPy whose elements have fields. */
int form_has_fields(const form_argument *argument);

/* ---- number.c ---- */

/* A number as NumPy's astype makes it another type. For a complex type arg may point into number.
 * 0: it has no such conversion here. */
int form_convert(form_number *number, kjit_type wanted, kjit_arg *arg);
/* Reads an object of one of Python's or NumPy's scalar classes, whose type that is. 0: an integer
 * of more than 64 bits. */
int form_read_number(PyObject *object, kjit_type type, form_number *number);

int form_add(PyObject *module);

/* ---- numpy_layout.c ---- */

/* An array of NumPy as its C interface lays it out in memory. */
typedef struct form_numpy_array {
  PyObject_HEAD char *data;
  int rank;
  const Py_ssize_t *extents, *strides; /* strides in bytes */
  PyObject *base, *dtype;
  int flags;
} form_numpy_array;

enum {
  FORM_NUMPY_C = 1,
  FORM_NUMPY_F = 2,
  FORM_NUMPY_ALIGNED = 0x100,
  FORM_NUMPY_WRITEABLE = 0x400
};

/* Whether NumPy's arrays and scalars are laid out so in this process, which is tried once. */
int form_knows_numpy(void);
/* The type of the numbers that a class of NumPy's scalars has; KJIT_VOID: it is none of those. */
kjit_type form_find_scalar_class(PyTypeObject *type);

/* What is known of a dtype. */
typedef struct form_dtype {
  PyObject *dtype;
  kjit_tensor element; /* code, bits and lanes */
  int64_t size_bytes, alignment_bytes;
  int has_fields, is_taken; /* is_taken: arrays of it are handed over in place */
} form_dtype;

/* The number of the dtype of an array, the same for equal ones; 0: none, and no exception is set.
 */
uint32_t form_find_dtype(context_object *context, PyObject *array, PyObject *dtype);
const form_dtype *form_get_dtype(uint32_t number);

#endif
