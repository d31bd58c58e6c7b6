/* Whole files: source texts in, compiled code out. */
#ifndef TOOL_FILE_H
#define TOOL_FILE_H

#include <driver/error.h>

/* "-" is standard input. The text ends in a 0 byte that size_bytes does not count. */
bool tool_read_file(tool_error *error, const char *path, char **text, size_t *size_bytes);
/* NULL or "-" is standard output. */
bool tool_write_file(tool_error *error, const char *path, const void *data, size_t size_bytes);

#endif
