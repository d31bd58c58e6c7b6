/* Handles inputs that can be read only once: standard input and pipes. */
#ifndef TOOL_INPUT_H
#define TOOL_INPUT_H

#include <driver/error.h>

/* Bytes of an input, with a 0 byte after them that size_bytes does not count. */
typedef struct tool_input {
  char *text;
  size_t size_bytes;
  size_t next; /* number of bytes already taken; a stream may contain several .npy arrays in
                * sequence */
} tool_input;

/* Returns standard input ("-"). The first call reads it to its end. Later calls return the same
 * object, because several arguments can be columns in one table. Returns NULL after an error. */
tool_input *tool_standard_input(tool_error *error);
/* Returns the number of bytes of standard input after the .npy arrays that were read from it. */
size_t tool_unread_input(void);
/* Returns whether the path is a pipe. */
bool tool_is_stream(const char *path);
/* Reads a file or a pipe to its end. The caller frees the text. */
bool tool_read_input(tool_error *error, const char *path, tool_input *input);

#endif
