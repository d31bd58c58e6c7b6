/* Prints arrays like NumPy: all elements of arrays with at most 1000 elements, otherwise the first
 * and last elements of each dimension. */
#ifndef TOOL_PRINT_H
#define TOOL_PRINT_H

#include <driver/array.h>
#include <stdio.h>

void tool_print_array(FILE *to, const char *name, const tool_array *array);

#endif
