/* Writes files either completely or not at all. A tool writes a temporary file in the same
 * directory and renames it at the end. Until then an existing file with the final name stays
 * unchanged. */
#ifndef TOOL_OUTPUT_FILE_H
#define TOOL_OUTPUT_FILE_H

#include <driver/error.h>
#include <stdio.h>

typedef struct tool_output_file {
  FILE *stream; /* stream to write to; errors are checked at the end */
  const char *path;
  /* NULL if the file is written in place: standard output, a device or a pipe */
  char *target, *temporary;
  bool is_standard, replaces;
} tool_output_file;

/* Opens the output. A path of NULL or "-" means standard output, whose errors tool_watch_output
 * reports. `path` must live as long as `output`. Only one output can be open at a time. */
bool tool_create_output(tool_error *error, const char *path, tool_output_file *output);
/* Closes the output. If is_complete is true and all writing has succeeded, the file gets its final
 * name. Otherwise, the temporary file is removed. A failure to write is reported. Returns false if
 * the file does not get its final name. */
bool tool_finish_output(tool_error *error, tool_output_file *output, bool is_complete);

#endif
