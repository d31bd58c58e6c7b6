/* The header of a .npy file: a Python dictionary that says type, order and shape. What is taken
 * here is taken by numpy.load too, and means the same to it; numpy takes more. */
#ifndef TOOL_NPY_HEADER_H
#define TOOL_NPY_HEADER_H

#include <driver/record.h>

typedef struct tool_npy_header {
  const char *path; /* for errors */
  uint32_t version; /* of the format, 1 to 3 */
  const char *text; /* of text_bytes, with a 0 behind them */
  size_t text_bytes;
} tool_npy_header;

/* Time and memory are bounded by the text's length. An array of structs is one of bytes with as
 * many lanes as an element has bytes, and its numbers are added to *leaves, which stays empty for
 * all others; leaves NULL: they are refused. */
bool tool_parse_npy_header(tool_error *error, const tool_npy_header *header, tool_shape *shape,
                           tool_leaves *leaves);

#endif
