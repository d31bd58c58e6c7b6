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
  /* the largest |got - expected| of finite elements, and it over |expected| there */
  double largest_absolute, relative;
  uint64_t largest_at;
} tool_comparison;

/* Shapes must be equal, and so must the structs of arrays of structs, whose numbers are what is
 * compared and counted: one element's after the other's, see tool_list_leaves. Integers and truth
 * values are compared exactly with each other; NaN equals NaN; an infinity equals only itself. */
tool_comparison tool_compare(const tool_array *got, const tool_array *expected,
                             const tool_tolerance *tolerance);
/* The structs too, if they are some. */
bool tool_same_shape(const tool_array *a, const tool_array *b);

#endif
