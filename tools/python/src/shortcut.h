/* Declarations for shortcuts of Python functions. shortcut.c implements their calls, and
 * shortcut_type.c their Python type. */
#ifndef KJIT_PYTHON_SHORTCUT_H
#define KJIT_PYTHON_SHORTCUT_H

#include "kernel.h"
#include "quick.h"

enum { SHORTCUT_SLOTS = 64 }; /* maximum number of recipes of a shortcut; a power of two */

typedef struct shortcut_recipe shortcut_recipe; /* see shortcut.c */

typedef struct shortcut_object {
  PyObject_HEAD PyObject *function;
  vector_function call;
  const quick_row *quick;    /* or NULL */
  long number;               /* number that is passed to the quick function */
  shortcut_recipe **recipes; /* table of SHORTCUT_SLOTS recipes, or NULL */
} shortcut_object;

PyObject *shortcut_call(PyObject *object, PyObject *const *args, size_t given, PyObject *names);
void shortcut_release_recipe(shortcut_recipe *r);

#endif
