/* Arrays whose elements are structs: on the host, bytes with one dimension more. Their fields come
 * from the context, which knows the module's structs. */
#ifndef TOOL_RECORD_H
#define TOOL_RECORD_H

#include <driver/array.h>
#include <stdio.h>

/* A number in a struct, or several alike: of an array, a vector. */
typedef struct tool_leaf {
  char *path; /* "pos.x" */
  kjit_type element;
  uint64_t offset_bytes, count;
} tool_leaf;

typedef struct tool_leaves {
  tool_leaf *items;
  size_t count, capacity;
} tool_leaves; /* at most 65536: a struct has no more bytes */

void tool_add_leaf(tool_leaves *leaves, const char *path, kjit_type element, uint64_t offset_bytes,
                   uint64_t count);
void tool_destroy_leaves(tool_leaves *leaves);

/* All numbers of a struct, in the order of their offsets; the padding between them is none. Destroy
 * with tool_destroy_leaves. */
tool_leaves tool_list_leaves(const tool_record *record);
uint64_t tool_count_numbers(const tool_leaves *leaves);
/* The index'th of them: the leaf that it is of, and which one of that. */
const tool_leaf *tool_find_number(const tool_leaves *leaves, uint64_t index, uint64_t *within);

/* A struct of that name; false, without an error, where the context has none. */
bool tool_find_record(kjit_context *context, const char *name, size_t length, tool_record *record);
/* What an array of such elements is on the host: sets the shape's element, lanes and record, and
 * adds the dimension of the lanes. false, without an error: there is none (of pointers). */
bool tool_shape_of_type(kjit_context *context, kjit_type type, tool_shape *shape);
/* The array that a structured file has given becomes one of that struct, where all of its fields
 * lie where the file has them. */
bool tool_take_record(tool_scanner *scanner, tool_array *array, const tool_leaves *leaves,
                      const tool_record *record);
/* As numpy describes it: "[('x', '<f4'), ('', '|V4')]". */
char *tool_record_description(const tool_record *record);
/* "{1.5, 2, {0, 0}}" */
void tool_print_record(FILE *to, const tool_record *record, const void *bytes);
/* The view of one field that `.NAME` at the scanner makes. */
bool tool_scan_field(tool_scanner *scanner, tool_array *view);

#endif
