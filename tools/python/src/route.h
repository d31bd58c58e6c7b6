/* Routes: how the arguments of launches of kjit.cuda are handed over. How, and which of several
 * signatures they fit, Python decides (kjit/cuda/dispatcher.py), once for arguments of the same
 * forms. What it has decided is kept as a route, which later launches take without any of Python's
 * code. */
#ifndef KJIT_PYTHON_ROUTE_H
#define KJIT_PYTHON_ROUTE_H

#include "form.h"
#include "kernel.h"

/* That one dispatcher keeps. */
enum { MOST_ROUTES = 16 };

/* An argument, or an item of a tuple. */
typedef struct route_row {
  PyTypeObject *type;
  uint64_t facts;
  form_family family;
  kjit_type wanted; /* see form_hand_over */
} route_row;

typedef struct route {
  int uses;              /* the dispatcher's, and launches under way */
  unsigned generation;   /* of the process */
  PyObject *kept;        /* tuple of the objects whose addresses stand in the rows */
  kernel_object *kernel; /* that takes the arguments, the items of tuples one after the other */
  int count;
  route_row rows[];
} route;

typedef struct dispatcher_object {
  PyObject_HEAD PyObject *configurations; /* dictionary by the subscript */
  PyObject *extensions;                   /* list */
  route *routes[MOST_ROUTES];             /* the one used last comes first */
  int route_count;
} dispatcher_object;

typedef struct configured_object {
  PyObject_HEAD vector_function call;
  dispatcher_object *dispatcher;
  launcher_object *launcher; /* NULL: not made yet */
  PyObject *before, *after;  /* waited for before and after each launch; NULL: nothing */
  PyObject *callbacks;       /* list of what is called before each launch */
  int has_stream, is_on_cpu;
} configured_object;

void route_forget_all(dispatcher_object *dispatcher);
/* 1: launched; 0: there is no route for the arguments; -1: an exception is set. */
int route_try(configured_object *self, PyObject *const *items, Py_ssize_t count);
/* Configured._keep(args, wanted, kernel): the route of a launch that was made. wanted: for each
 * argument the name of the type that a number was converted to, or None; for a tuple a tuple. */
PyObject *route_keep(PyObject *configured, PyObject *given);

#endif
