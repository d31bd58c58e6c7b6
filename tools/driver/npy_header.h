/* Parses the header of a .npy file, which is a Python dictionary with type, order and shape. The
 * parser accepts a subset of the headers that numpy.load accepts, with the same meaning. */
#ifndef TOOL_NPY_HEADER_H
#define TOOL_NPY_HEADER_H

#include <driver/record.h>

typedef struct tool_npy_header {
  const char *path; /* name of the file for error messages */
  uint32_t version; /* format version, 1 to 3 */
  const char *text; /* text_bytes bytes, followed by a 0 byte */
  size_t text_bytes;
} tool_npy_header;

/* Parses a header. The length of the text bounds the time and memory that this takes. An array of
 * structs becomes a byte array with one lane for each byte of an element, and its numbers are
 * appended to *leaves. *leaves stays empty for other arrays. leaves NULL means that arrays of
 * structs are rejected. */
bool tool_parse_npy_header(tool_error *error, const tool_npy_header *header, tool_shape *shape,
                           tool_leaves *leaves);

#endif
