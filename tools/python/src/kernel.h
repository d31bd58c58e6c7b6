/* What the files about kernels share: kernel.c, launcher.c, configured.c. */
#ifndef KJIT_PYTHON_KERNEL_H
#define KJIT_PYTHON_KERNEL_H

#include "binding.h"

/* Of Python from 3.12 on in the limited API, and in 3.11 of the same name and number without. */
#define HAS_VECTORCALL (1UL << 11)
/* As PEP 590 has it: the values of keywords, whose names are a tuple, stand behind the arguments.
 */
typedef PyObject *(*vector_function)(PyObject *object, PyObject *const *args, size_t count,
                                     PyObject *names);
static inline Py_ssize_t count_of(size_t count) { return (Py_ssize_t)(count & SIZE_MAX >> 1); }

/* A program names the device with jit's option; or the arrays decide, before the current device of
 * the thread; or the current device alone decides, as kjit.cuda has it. */
enum { PLACE_BY_OPTION, PLACE_BY_ARRAYS, PLACE_CURRENT };

typedef struct kernel_object {
  PyObject_HEAD vector_function call;
  context_object *context; /* NULL: nothing is known yet */
  unsigned generation;     /* in which that was said */
  binding_parameters parameters;
  PyObject *device;      /* as binding_get_device takes it; None: where the arrays are */
  kjit_device *place;    /* of device; NULL: where the arrays are */
  int placement;         /* which device a launch uses if there are several */
  module_object *module; /* NULL: not loaded */
  kjit_kernel *kernel;   /* borrowed from the module; NULL: not loaded */
  int has_run;           /* then a launch hardly ever compiles */
  PyObject *launchers;   /* dictionary by the subscript */
} kernel_object;

typedef struct launcher_object {
  PyObject_HEAD vector_function call;
  kernel_object *kernel;
  PyObject *key;    /* it keeps a stream of kjit's */
  PyObject *stream; /* a stream of another library as one of kjit's, or NULL */
  unsigned generation;
  kjit_launch_config config;
} launcher_object;

/* What was done with arguments: nothing, they are one for each parameter, and those that are taken
 * apart are, too. */
typedef enum kernel_call_state { CALL_GIVEN, CALL_ARRANGED, CALL_APART } kernel_call_state;

/* The arguments of a call, borrowed. */
typedef struct kernel_call {
  PyObject *const *items;
  Py_ssize_t count;
  kernel_call_state state;
} kernel_call;

/* What a launch needs to know of a kernel before its arguments are looked at: parameters, context.
 * 0, or -1 with an exception. */
int kernel_make_known(kernel_object *self);
/* Everything, that is: it is loaded. */
int kernel_make_ready(kernel_object *self);
/* A launch with arguments of any kind. keywords: as binding_arrange takes them. */
PyObject *kernel_launch(kernel_object *self, const kjit_launch_config *config,
                        const kernel_call *args, PyObject *keywords);
PyObject *kernel_launch_tuple(kernel_object *self, const kjit_launch_config *config,
                              PyObject *tuple, PyObject *keywords, kernel_call_state state);
/* A launch of a kernel that is ready with arguments that were taken; storage: those of them that
 * have some. 0, or -1 with an exception. */
int kernel_launch_taken(kernel_object *self, const kjit_launch_config *config, const kjit_arg *list,
                        Py_ssize_t count, const binding_argument *storage,
                        Py_ssize_t storage_count);

/* ---- place.c ---- */

/* Sets config->device of a launch if there are several devices. 0, or -1 with an exception. */
int binding_place_launch(const kernel_object *self, kjit_launch_config *config,
                         const kjit_arg *list, Py_ssize_t count);

/* ---- launcher.c ---- */

/* kernel[key]; a new reference. */
PyObject *launcher_configure(PyObject *kernel, PyObject *key);
/* 0, or -1 with an exception. */
int launcher_make_ready(launcher_object *self);

#endif
