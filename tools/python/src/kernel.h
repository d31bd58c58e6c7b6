/* Declarations that kernel.c, launcher.c and configured.c share. */
#ifndef KJIT_PYTHON_KERNEL_H
#define KJIT_PYTHON_KERNEL_H

#include "binding.h"

/* Part of the limited API since Python 3.12. In 3.11 the flag has the same name and value, but is
 * not in the limited API. */
#define HAS_VECTORCALL (1UL << 11)
/* Vectorcall function of PEP 590. The values of keyword arguments follow the positional arguments;
 * their names are in a tuple. */
typedef PyObject *(*vector_function)(PyObject *object, PyObject *const *args, size_t count,
                                     PyObject *names);
static inline Py_ssize_t count_of(size_t count) { return (Py_ssize_t)(count & SIZE_MAX >> 1); }

/* How a launch chooses its device: by the option `device` of jit; by the arrays, or else the
 * thread's current device; or by the current device only, as in kjit.cuda. */
enum { PLACE_BY_OPTION, PLACE_BY_ARRAYS, PLACE_CURRENT };

typedef struct kernel_object {
  PyObject_HEAD vector_function call;
  context_object *context; /* NULL if not determined yet */
  unsigned generation;     /* value of binding_generation when context was set */
  binding_parameters parameters;
  PyObject *device;      /* value for binding_get_device, or None to use the arrays' device */
  kjit_device *place;    /* the device for `device`, or NULL to use the arrays' device */
  int placement;         /* how a launch chooses among several devices */
  module_object *module; /* NULL until the kernel is loaded */
  kjit_kernel *kernel;   /* owned by the module; NULL until the kernel is loaded */
  int has_run;           /* true after the first launch; later launches rarely compile */
  PyObject *launchers;   /* dictionary: subscript -> launcher */
} kernel_object;

typedef struct launcher_object {
  PyObject_HEAD vector_function call;
  kernel_object *kernel;
  PyObject *key;    /* keeps the launcher's kjit stream alive */
  PyObject *stream; /* kjit stream that wraps a stream of another library, or NULL */
  unsigned generation;
  kjit_launch_config config;
} launcher_object;

/* State of the arguments: as given by the caller; arranged with one for each parameter; or
 * arranged, and composed arguments (tuples, records) split into their items. */
typedef enum kernel_call_state { CALL_GIVEN, CALL_ARRANGED, CALL_APART } kernel_call_state;

/* Arguments of a call, borrowed. */
typedef struct kernel_call {
  PyObject *const *items;
  Py_ssize_t count;
  kernel_call_state state;
} kernel_call;

/* Determines parameters and context of a kernel, which a launch needs before it reads its
 * arguments. Returns 0, or -1 with an exception. */
int kernel_make_known(kernel_object *self);
/* Like kernel_make_known, and also loads the kernel. */
int kernel_make_ready(kernel_object *self);
/* Launches with arguments of any kind. keywords: see binding_arrange. */
PyObject *kernel_launch(kernel_object *self, const kjit_launch_config *config,
                        const kernel_call *args, PyObject *keywords);
PyObject *kernel_launch_tuple(kernel_object *self, const kjit_launch_config *config,
                              PyObject *tuple, PyObject *keywords, kernel_call_state state);
/* Launches a loaded kernel with converted arguments. storage: the storage_count argument storages
 * in use. Returns 0, or -1 with an exception. */
int kernel_launch_taken(kernel_object *self, const kjit_launch_config *config, const kjit_arg *list,
                        Py_ssize_t count, const binding_argument *storage,
                        Py_ssize_t storage_count);

/* ---- place.c ---- */

/* Sets config->device of a launch if there are several devices. Returns 0, or -1 with an
 * exception. */
int binding_place_launch(const kernel_object *self, kjit_launch_config *config,
                         const kjit_arg *list, Py_ssize_t count);

/* ---- launcher.c ---- */

/* Returns kernel[key], a new reference. */
PyObject *launcher_configure(PyObject *kernel, PyObject *key);
/* Like kernel_make_known, and also reads the launch configuration. */
int launcher_make_ready(launcher_object *self);

#endif
