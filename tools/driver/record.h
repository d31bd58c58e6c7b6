/* Handles arrays whose elements are structs. On the host such an array consists of bytes and has
 * one more dimension. The struct types of the module define the fields. */
#ifndef TOOL_RECORD_H
#define TOOL_RECORD_H

#include <driver/array.h>
#include <stdio.h>

/* A leaf: a number in a struct, or the numbers of an array or vector field. */
typedef struct tool_leaf {
  char *path; /* path of the field, for example "pos.x" */
  kjit_type element;
  uint64_t offset_bytes, count;
} tool_leaf;

typedef struct tool_leaves {
  tool_leaf *items;
  size_t count, capacity;
} tool_leaves; /* at most 65536 items, because a struct has at most that number of bytes */

void tool_add_leaf(tool_leaves *leaves, const char *path, kjit_type element, uint64_t offset_bytes,
                   uint64_t count);
void tool_destroy_leaves(tool_leaves *leaves);

/* Returns all numbers of a struct in the order of their offsets, without padding. Destroy the
 * result with tool_destroy_leaves. */
tool_leaves tool_list_leaves(const tool_record *record);
uint64_t tool_count_numbers(const tool_leaves *leaves);
/* Returns the leaf that contains the number with this index, and stores the index within the
 * leaf. */
const tool_leaf *tool_find_number(const tool_leaves *leaves, uint64_t index, uint64_t *within);

/* Finds a struct by name. Returns false without an error if the context has none. */
bool tool_find_record(kjit_context *context, const char *name, size_t length, tool_record *record);
/* Sets element, lanes and record of the shape for an array with this element type. For a vector or
 * struct type it also adds the lanes' dimension. Returns false without an error if the tools cannot
 * store such elements, for example pointers, or if the shape cannot get this dimension. */
bool tool_shape_of_type(kjit_context *context, kjit_type type, tool_shape *shape);
/* Gives an array that was read from a structured file the struct type `record`. The file's fields
 * must have the names, types and offsets of the struct's fields. */
bool tool_take_record(tool_scanner *scanner, tool_array *array, const tool_leaves *leaves,
                      const tool_record *record);
/* Returns NumPy's description of the struct, for example "[('x', '<f4'), ('', '|V4')]". */
char *tool_record_description(const tool_record *record);
/* Prints for example "{1.5, 2, {0, 0}}". */
void tool_print_record(FILE *to, const tool_record *record, const void *bytes);
/* Scans `.NAME` and makes the array a view of this field. */
bool tool_scan_field(tool_scanner *scanner, tool_array *view);

#endif
