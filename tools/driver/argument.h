/* --arg NAME=VALUE: scalars, arrays from files and generators, views of other arguments. */
#ifndef TOOL_ARGUMENT_H
#define TOOL_ARGUMENT_H

#include <driver/array.h>

typedef struct tool_argument {
  char *name;
  bool is_array, is_used; /* used: something else on the command line names it */
  tool_value value;       /* of a scalar */
  tool_array array;
} tool_argument;

typedef struct tool_arguments {
  tool_argument *items;
  size_t count;
  tool_memory **memories; /* of all arrays, each once; owned */
  size_t memory_count;
  kjit_context *context; /* borrowed: knows the structs that can be named; NULL: none */
  tool_size *size;       /* borrowed: a name that stands for an integer; NULL: none */
} tool_arguments;

/* text: "x=zeros:f32[1000]". */
bool tool_add_argument(tool_arguments *arguments, const char *option, const char *text,
                       tool_error *error);
/* An array of zeros that no --arg makes. */
bool tool_add_array(tool_arguments *arguments, const char *name, size_t length,
                    const tool_shape *shape, tool_error *error);
void tool_destroy_arguments(tool_arguments *arguments);
/* NULL: none */
tool_argument *tool_find_argument(const tool_arguments *arguments, const char *name, size_t length);

/* The value alone, without "NAME=", as tool_add_argument reads it; name is the default seed. Memory
 * of a new array becomes the arguments'. */
bool tool_scan_argument_value(tool_arguments *arguments, tool_scanner *scanner, const char *name,
                              tool_argument *argument);
/* "FILE.npy" or "FILE.npy:as=TYPE", to the end of the text. */
bool tool_scan_file(tool_arguments *arguments, tool_scanner *scanner, tool_argument *argument);
/* As kjit_launch takes it; value and bytes must live as long. A number without a type is a literal,
 * of a float where it has a point or an exponent. */
enum { TOOL_SCALAR_BYTES = 16 };
kjit_arg tool_scalar_argument(const tool_value *value, void *bytes);
/* A name and, if some follow, the subscripts of a view: "x", "x[1:]", "x.T". */
bool tool_scan_reference(const tool_arguments *arguments, tool_scanner *scanner,
                         tool_argument *argument);

#endif
