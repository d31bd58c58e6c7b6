/* Reads and writes text files with tables as arrays. A table has rows of numbers, and its first row
 * may contain names. An array is the whole table or one column, chosen by its name. Empty cells are
 * nulls. */
#ifndef TOOL_TABLE_H
#define TOOL_TABLE_H

#include <driver/npz.h>

typedef struct tool_table_request {
  const char *column; /* name of the column to read; NULL means all columns */
  kjit_type element;  /* element type; KJIT_ANY means the type that holds all numbers */
  bool keeps_texts;   /* true if a column of dates is read as a column of texts */
} tool_table_request;

/* Reads a table. path is for messages. Without a type the elements are bool, i64, u64 or f64; with
 * empty cells they are f64, and an empty cell is NaN. If all texts of a column are dates, its
 * elements are counts of a time unit, i32 or i64. With a type of integers or bools an empty cell is
 * 0. In all cases, `validity` of the array's memory says which cells are empty. */
bool tool_read_table(tool_error *error, const char *path, const char *text, size_t size,
                     const tool_table_request *request, tool_array *array);

/* Splits "data.csv:x" or "-:x": returns the end of the file's name and stores the column after the
 * colon, or NULL. Returns NULL if the text names no table. */
const char *tool_split_table(const char *text, const char **column);
/* Returns NULL if a table can contain the array, otherwise the reason why it cannot. */
const char *tool_misfit_table(const tool_array *array);
/* Writes rows of numbers without a header row. Returns false if the stream has an error. */
bool tool_write_table(FILE *file, const tool_array *array, char separator);
/* Writes a row of names and then the arrays, which have one dimension and the same length. */
bool tool_write_columns(FILE *file, const tool_named_array *arrays, size_t count, char separator);

#endif
