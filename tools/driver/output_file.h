/* Files that the tools write: whole or not at all. They grow under another name beside the one they
 * get, which they are given at the end; until then a file of that name stays as it was. */
#ifndef TOOL_OUTPUT_FILE_H
#define TOOL_OUTPUT_FILE_H

#include <driver/error.h>
#include <stdio.h>

typedef struct tool_output_file {
  FILE *stream; /* to write to; its errors need no look before the end */
  const char *path;
  char *target, *temporary; /* NULL: written in place, as standard output, a device or a pipe is */
  bool is_standard, replaces;
} tool_output_file;

/* NULL or "-" is standard output, whose errors tool_watch_output reports. path must live as long.
 * Only one at a time. */
bool tool_create_output(tool_error *error, const char *path, tool_output_file *output);
/* is_complete: the file gets its name, unless writing has failed, which is an error; else what was
 * written is gone. Returns false for a file that does not get its name. */
bool tool_finish_output(tool_error *error, tool_output_file *output, bool is_complete);

#endif
