/* Functions that code on the CPU calls and the C library lacks. */
#ifndef KJ_NATIVE_HOST_MATH_H
#define KJ_NATIVE_HOST_MATH_H

#include <stddef.h>

typedef struct kj_host_function {
  const char *name; /* with an f for floats */
  void *address;
} kj_host_function;

extern const kj_host_function kj_host_functions[]; /* a name of NULL ends it */

#endif
