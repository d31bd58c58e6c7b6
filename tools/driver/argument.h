/* Parses and stores the arguments of --arg NAME=VALUE: scalars, arrays from files and generators,
 * and views of other arguments. */
#ifndef TOOL_ARGUMENT_H
#define TOOL_ARGUMENT_H

#include <driver/array.h>

typedef struct tool_argument {
  char *name;
  bool is_array, is_used; /* is_used: another option of the command line uses the argument */
  tool_value value;       /* value of a scalar */
  tool_array array;
  struct tool_sparse *sparse; /* the matrix if the argument is a file of scipy.sparse.save_npz,
                                 otherwise NULL; owned */
} tool_argument;

/* A sparse matrix. Its three arrays are additional arguments without names. */
typedef struct tool_sparse {
  bool is_coo;  /* true: the arrays are data, rows, columns (COO); false: data, columns, offsets
                 * (CSR) */
  bool is_made; /* true if CSR arrays were computed from the COO matrix; `made` is then the index of
                   the first of the three */
  size_t first, made;
  int64_t shape[2];
} tool_sparse;

typedef struct tool_arguments {
  tool_argument *items;
  size_t count;
  tool_memory **memories; /* the allocations of all arrays, each listed once; owned */
  size_t memory_count;
  kjit_context *context; /* borrowed: the context whose structs can be named, or NULL */
  tool_size *size;       /* borrowed: a name that stands for an integer, or NULL */
} tool_arguments;

/* Adds the argument that the text defines, for example "x=zeros:f32[1000]". */
bool tool_add_argument(tool_arguments *arguments, const char *option, const char *text,
                       tool_error *error);
/* Adds an array of zeros that does not come from --arg. */
bool tool_add_array(tool_arguments *arguments, const char *name, size_t length,
                    const tool_shape *shape, tool_error *error);
/* Adds an existing array and takes ownership of its memory. */
void tool_keep_array(tool_arguments *arguments, const char *name, const tool_array *array);
void tool_destroy_arguments(tool_arguments *arguments);
/* Returns the argument with this name, or NULL if there is none. */
tool_argument *tool_find_argument(const tool_arguments *arguments, const char *name, size_t length);

/* Scans a value, the part of an --arg after "NAME=". name determines the default seed. The
 * arguments own the memory of a new array. */
bool tool_scan_argument_value(tool_arguments *arguments, tool_scanner *scanner, const char *name,
                              tool_argument *argument);
/* Scans "FILE.npy" or "FILE.npy:as=TYPE" up to the end of the text. */
bool tool_scan_file(tool_arguments *arguments, tool_scanner *scanner, tool_argument *argument);
/* Converts a value to an argument for kjit_launch, which points into value and bytes. A number
 * without a type is a literal: a float if it has a point or an exponent, otherwise an integer. */
enum { TOOL_SCALAR_BYTES = 16 };
kjit_arg tool_scalar_argument(const tool_value *value, void *bytes);
/* Scans the name of an argument and a view's subscripts, if any follow: "x", "x[1:]", "x.T". */
bool tool_scan_reference(const tool_arguments *arguments, tool_scanner *scanner,
                         tool_argument *argument);

#endif
