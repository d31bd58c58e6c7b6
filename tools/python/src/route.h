/* Routes cache how arguments of kjit.cuda launches are converted. Python code
 * (kjit/cuda/dispatcher.py) decides the conversion, and which of several signatures the arguments
 * fit, once for each combination of argument forms. The decision is stored as a route, so later
 * launches with the same forms run no Python code. */
#ifndef KJIT_PYTHON_ROUTE_H
#define KJIT_PYTHON_ROUTE_H

#include "form.h"
#include "kernel.h"

/* Maximum number of routes of a dispatcher. */
enum { MOST_ROUTES = 16 };

/* An argument, or an item in a tuple. */
typedef struct route_row {
  PyTypeObject *type;
  uint64_t facts;
  form_family family;
  kjit_type wanted; /* see form_hand_over */
} route_row;

typedef struct route {
  int uses;              /* number of references, by the dispatcher and by running launches */
  unsigned generation;   /* process generation, see binding_generation */
  PyObject *kept;        /* tuple of the objects whose addresses are in the rows */
  kernel_object *kernel; /* kernel to launch, with a parameter for each item in a tuple */
  int count;
  route_row rows[];
} route;

typedef struct dispatcher_object {
  PyObject_HEAD PyObject *configurations; /* dictionary: subscript -> configured kernel */
  PyObject *extensions;                   /* list of extensions */
  route *routes[MOST_ROUTES];             /* the routes, most recently used first */
  int route_count;
} dispatcher_object;

typedef struct configured_object {
  PyObject_HEAD vector_function call;
  dispatcher_object *dispatcher;
  launcher_object *launcher; /* NULL before it is needed */
  PyObject *before, *after;  /* objects to wait for before and after each launch, or NULL */
  PyObject *callbacks;       /* list of callables that are called before each launch */
  int has_stream, is_on_cpu;
} configured_object;

void route_forget_all(dispatcher_object *dispatcher);
/* Launches by a route. Returns 1 after a launch, 0 if the arguments have no route, or -1 with an
 * exception. */
int route_try(configured_object *self, PyObject *const *items, Py_ssize_t count);
/* Configured._keep(args, wanted, kernel): stores a launch's route. wanted contains for each
 * argument the name of the type that a number was converted to, or None, and a tuple for a
 * tuple. */
PyObject *route_keep(PyObject *configured, PyObject *given);

#endif
