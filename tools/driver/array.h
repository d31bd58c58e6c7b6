/* Host arrays of the tools: one allocation, and arrays that look at it: the whole of it, or a view
 * with an offset and strides. */
#ifndef TOOL_ARRAY_H
#define TOOL_ARRAY_H

#include <driver/scan.h>

enum { TOOL_MAX_RANK = 8 };

typedef struct tool_memory {
  void *data; /* host */
  uint64_t size_bytes;
  kjit_type element;
  kjit_array *device; /* the same bytes on a GPU; NULL: not there */
  /* Elements can be null: bit k says that element k has a value. NULL: no element is null. A null
   * float is NaN, so that kernels can read floats; a null of another type is 0. */
  uint8_t *validity;
  kjit_array *device_validity; /* the same bits on a GPU; NULL: not there */
  bool is_mapped;
} tool_memory;

/* What the elements of an array of structs are. The array is one of bytes, whose lanes are the
 * struct's bytes. */
typedef struct tool_record {
  kjit_context *context; /* NULL: they are no structs */
  kjit_type type;
  uint32_t size_bytes;
} tool_record;

typedef struct tool_array {
  kjit_type element;
  uint32_t rank;
  int64_t shape[TOOL_MAX_RANK], strides[TOOL_MAX_RANK]; /* strides in elements */
  int64_t offset;                                       /* elements */
  /* not 0: the last dimension, which is contiguous, is that of the lanes of vectors */
  uint32_t lanes;
  tool_record record;
  tool_memory *memory; /* not owned */
} tool_array;

/* What an array would be, before it is allocated. */
typedef struct tool_shape {
  kjit_type element;
  uint32_t rank;
  int64_t extents[TOOL_MAX_RANK];
  bool is_fortran; /* column-major */
  uint32_t lanes;  /* not 0: the last extent is that of the lanes of vectors */
  tool_record record;
} tool_shape;

/* Number of bytes of a shape; false when it does not fit in 63 bits. */
bool tool_shape_bytes(const tool_shape *shape, uint64_t *size_bytes);
/* Zeroed memory and the array that is all of it. Refuses what the machine cannot hold before it
 * allocates. */
bool tool_create_array(tool_error *error, const tool_shape *shape, tool_array *array);
void tool_destroy_memory(tool_memory *memory); /* the device's array too */

/* Gives the array's memory a bitmap that says that no element is null. */
bool tool_add_validity(tool_error *error, tool_array *array);
uint64_t tool_validity_bytes(const tool_memory *memory);
/* Marks the element number `position` of the memory as null. */
void tool_set_null(tool_memory *memory, uint64_t position);
/* Whether the element at the address, one of the array's, is null. */
bool tool_is_null(const tool_array *array, const void *element);
uint64_t tool_count_nulls(const tool_array *array);
/* As tool_element_text, and "null" for a null. */
void tool_array_element_text(const tool_array *array, const void *element, char *buffer);

uint64_t tool_count(const tool_array *array);
uint64_t tool_array_bytes(const tool_array *array); /* count times element size */
/* Address of the element at the index, or of the element that comes `position`th in row-major
 * order. */
void *tool_element_at(const tool_array *array, const int64_t *index);
void *tool_element_number(const tool_array *array, uint64_t position);
void tool_index_of(const tool_array *array, uint64_t position, int64_t *index);
bool tool_is_contiguous(const tool_array *array); /* row-major, no gaps */
char *tool_shape_text(const tool_array *array);   /* "f32[2, 3]" */

/* The view that `[start:stop:step, ...]` and `.T` at the scanner make; takes as many of them as
 * there are. */
bool tool_scan_view(tool_scanner *scanner, tool_array *view);

#endif
