/* Compares arrays element by element, as numpy.isclose does: |got - expected| <= atol + rtol *
 * |expected|. */
#ifndef TOOL_COMPARE_H
#define TOOL_COMPARE_H

#include <driver/array.h>

typedef struct tool_tolerance {
  double relative, absolute;
} tool_tolerance;

typedef struct tool_comparison {
  uint64_t count, different;
  uint64_t first; /* position of the first difference */
  /* the largest |got - expected| of finite elements, and the same divided by |expected| for this
   * element */
  double largest_absolute, relative;
  uint64_t largest_at;
} tool_comparison;

/* Compares two arrays with equal shapes. For arrays of structs the struct types must be equal as
 * well, and all numbers of all elements are compared and counted (see tool_list_leaves). Integers
 * and bools are compared exactly. NaN equals NaN, and an infinity equals only itself. */
tool_comparison tool_compare(const tool_array *got, const tool_array *expected,
                             const tool_tolerance *tolerance);
/* Returns whether shapes and struct types are equal. */
bool tool_same_shape(const tool_array *a, const tool_array *b);

#endif
