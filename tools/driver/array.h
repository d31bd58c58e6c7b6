/* Host arrays of the tools. An array refers to an allocation, either to all of it or, as a view,
 * with an offset and strides. */
#ifndef TOOL_ARRAY_H
#define TOOL_ARRAY_H

#include <driver/scan.h>
#include <driver/date.h>
#include <driver/dictionary.h>

enum { TOOL_MAX_RANK = 8 };

typedef struct tool_memory {
  void *data; /* host memory */
  uint64_t size_bytes;
  kjit_type element;
  kjit_array *device; /* copy of the bytes on a GPU, or NULL */
  /* Bitmap of the elements that are not null: bit k is 1 if element k has a value. NULL means that
   * no element is null. A null float is stored as NaN, so that kernels can read floats. A null of
   * another type is stored as 0. */
  uint8_t *validity;
  kjit_array *device_validity; /* copy of the bits on a GPU, or NULL */
  bool has_texts;              /* true if the elements are i32 indices into texts */
  tool_dictionary texts;       /* the texts, in ascending order */
  /* unit and kind of elements (i64 or i32) that are dates, timestamps or durations */
  tool_date date;
  bool is_mapped;
} tool_memory;

/* Struct type of an array of structs. On the host, elements of such an array are bytes, and the
 * bytes in a struct are its lanes. */
typedef struct tool_record {
  kjit_context *context; /* NULL if the elements are not structs */
  kjit_type type;
  uint32_t size_bytes;
} tool_record;

typedef struct tool_array {
  kjit_type element;
  uint32_t rank;
  int64_t shape[TOOL_MAX_RANK], strides[TOOL_MAX_RANK]; /* strides in elements */
  int64_t offset;                                       /* in elements */
  /* number of lanes if the elements are vectors, otherwise 0. The lanes are the last dimension,
   * which is contiguous. */
  uint32_t lanes;
  tool_record record;
  tool_memory *memory; /* not owned */
} tool_array;

/* Description of an array before it is allocated. */
typedef struct tool_shape {
  kjit_type element;
  uint32_t rank;
  int64_t extents[TOOL_MAX_RANK];
  bool is_fortran; /* column-major */
  uint32_t lanes;  /* if not 0, the last extent is the number of lanes of vectors */
  tool_record record;
} tool_shape;

/* Computes the number of bytes. Returns false if it does not fit 63 bits. */
bool tool_shape_bytes(const tool_shape *shape, uint64_t *size_bytes);
/* Allocates zeroed memory and an array for all of it. Fails before the allocation if the machine
 * has not enough memory. */
bool tool_create_array(tool_error *error, const tool_shape *shape, tool_array *array);
void tool_destroy_memory(tool_memory *memory); /* Frees the memory and its copies on the device. */

/* Adds a bitmap in which no element is null. */
bool tool_add_validity(tool_error *error, tool_array *array);
uint64_t tool_validity_bytes(const tool_memory *memory);
/* Marks the element with index `position` in the memory as null. */
void tool_set_null(tool_memory *memory, uint64_t position);
/* Returns whether the element at this address, which must be in the array, is null. */
bool tool_is_null(const tool_array *array, const void *element);
uint64_t tool_count_nulls(const tool_array *array);
/* Like tool_element_text, but writes "null" for a null, and the beginning of a text in quotes. */
void tool_array_element_text(const tool_array *array, const void *element, char *buffer);

/* Returns the text of an element in an array with texts. The element must not be null. */
const char *tool_text_of(const tool_array *array, const void *element);

uint64_t tool_count(const tool_array *array);
/* Returns the number of elements times the element size. */
uint64_t tool_array_bytes(const tool_array *array);
/* Return the address of the element with an index, or with a position in row-major order. */
void *tool_element_at(const tool_array *array, const int64_t *index);
void *tool_element_number(const tool_array *array, uint64_t position);
void tool_index_of(const tool_array *array, uint64_t position, int64_t *index);
/* Returns whether the elements are in row-major order without gaps. */
bool tool_is_contiguous(const tool_array *array);
char *tool_shape_text(const tool_array *array); /* "f32[2, 3]" */

/* Scans `[start:stop:step, ...]` and `.T`, any number of times, and applies them to the view. */
bool tool_scan_view(tool_scanner *scanner, tool_array *view);

#endif
