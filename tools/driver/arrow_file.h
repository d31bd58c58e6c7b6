/* Columns of Parquet and Arrow files. The module kjit-arrow.so reads the files with Arrow's C++
 * library. The module exists only if kjit's build found this library. */
#ifndef TOOL_ARROW_FILE_H
#define TOOL_ARROW_FILE_H

#include <driver/table.h>

/* Splits "trips.parquet:fare" like tool_split_table. Returns NULL if the text names no such file.
 */
const char *tool_split_arrow(const char *text, const char **column);
/* Returns whether the bytes begin like a Parquet file, an Arrow file or an Arrow stream. */
bool tool_is_arrow(const char *bytes, size_t size);
/* Reads a column of a file, or of its contents if bytes is not NULL. Without request->column the
 * file must have a single column, or one with the name `usual`. Elements keep their type unless the
 * request has one; decimals become f64, and strings become texts. */
bool tool_read_arrow(tool_error *error, const char *path, const char *bytes, size_t size,
                     const tool_table_request *request, const char *usual, tool_array *array);

#endif
