/* The form of an argument: the properties that decide how it is converted for a launch. Arguments
 * of equal forms are converted in the same way; route.c caches this way. */
#ifndef KJIT_PYTHON_FORM_H
#define KJIT_PYTHON_FORM_H

#include "binding.h"

typedef enum form_family {
  FORM_OTHER,     /* not cached */
  FORM_NUMBER,    /* a Python or NumPy number */
  FORM_ARRAY,     /* kjit.Array, or an object that contains one, such as kjit.cuda's arrays */
  FORM_HOST,      /* a NumPy array */
  FORM_LOOKED,    /* an array of another library that binding_look can read */
  FORM_INTERFACE, /* an object with __cuda_array_interface__, without a stream to wait for */
  FORM_TUPLE,
  FORM_TYPE /* a type, which is compiled into the kernel */
} form_family;

/* A number. Its type selects the member of `value`. */
typedef struct form_number {
  kjit_type type;
  union {
    int64_t i;   /* signed integers */
    uint64_t u;  /* unsigned integers and bools */
    double f[2]; /* floats; real and imaginary part of complex numbers */
  } value;
} form_number;

/* An argument, or an item of a tuple argument. */
typedef struct form_argument {
  form_family family;
  PyTypeObject *type; /* type and facts together are the form */
  uint64_t facts;
  PyObject *object; /* borrowed: the argument, or the kjit.Array that it contains */
  union {
    form_number number;
    binding_argument *storage; /* for FORM_HOST, FORM_LOOKED and FORM_INTERFACE */
  } as;
} form_argument;

enum { FORM_MOST = 64 };

/* Arguments of a launch. The items in a tuple follow it. */
typedef struct form_list {
  context_object *context;
  int takes_interfaces; /* whether to read FORM_INTERFACE: there is only one device of the kind */
  int32_t interface_device; /* kind of this device, a kjit_device_kind */
  int count, stored_count;
  form_argument of[FORM_MOST];
  binding_argument stored[FORM_MOST];
} form_list;

/* Appends the form of an object. Returns 1, or 0 without an exception if the object has no form.
 * Data in storage is valid as long as the objects. */
int form_read(form_list *list, PyObject *object);
/* Converts the argument for a launch. type is the type to which a number is converted, or the
 * struct of a NumPy array's elements, or KJIT_VOID for neither. Returns 0, or -1 with an
 * exception. */
int form_hand_over(form_list *list, form_argument *argument, kjit_type type, kjit_arg *arg);
/* Frees the storage of converted arguments. */
void form_free(form_list *list);
/* Returns whether the argument is a NumPy array whose elements have fields. */
int form_has_fields(const form_argument *argument);

/* ---- number.c ---- */

/* Converts a number as NumPy's astype does. For a complex type arg may point into number. Returns 0
 * if the conversion is not supported here. */
int form_convert(form_number *number, kjit_type wanted, kjit_arg *arg);
/* Reads an object of a Python or NumPy scalar class with this type. Returns 0 for an integer of
 * more than 64 bits. */
int form_read_number(PyObject *object, kjit_type type, form_number *number);

int form_add(PyObject *module);

/* ---- numpy_layout.c ---- */

/* Memory layout of a NumPy array in NumPy's C interface. */
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

/* Returns whether NumPy's arrays and scalars have this layout in this process. Tested once. */
int form_knows_numpy(void);
/* Returns the type of a NumPy scalar class, or KJIT_VOID for other classes. */
kjit_type form_find_scalar_class(PyTypeObject *type);

/* Properties of a dtype. */
typedef struct form_dtype {
  PyObject *dtype;
  kjit_tensor element; /* only code, bits and lanes are set */
  int64_t size_bytes, alignment_bytes;
  int has_fields, is_taken; /* is_taken: arrays with this dtype are passed without copying */
} form_dtype;

/* Returns the number of an array's dtype, equal for equal dtypes, or 0 without an exception if it
 * is not supported. */
uint32_t form_find_dtype(context_object *context, PyObject *array, PyObject *dtype);
const form_dtype *form_get_dtype(uint32_t number);

#endif
