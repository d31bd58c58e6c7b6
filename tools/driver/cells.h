/* Reads and writes the cells of tables in text files: CSV according to RFC 4180, also with `;` or
 * tabs as separators, with CRLF line ends, and with a byte order mark. */
#ifndef TOOL_CELLS_H
#define TOOL_CELLS_H

#include <driver/error.h>
#include <stdio.h>

/* A cursor over the cells, row by row. Blank lines are skipped. */
typedef struct tool_cells {
  tool_error *error;
  const char *path;     /* path of the file for error messages; borrowed */
  const char *at, *end; /* the text after the cell; borrowed */
  char separator;
  uint64_t line;      /* line of the cell in the text, from 1 */
  uint64_t next_line; /* line of `at` */
  size_t column;      /* index of the cell in its row */
  const char *text;   /* the cell without its quotes, not 0-terminated; valid until the next cell */
  size_t length;
  bool is_quoted;
  bool is_last; /* the row ends after this cell */
  char *buffer; /* a quoted cell that contains quotes; owned */
  size_t capacity;
} tool_cells;

/* Returns a cursor before the first cell. The separator is found from the first two rows. path and
 * text must outlive the cursor. */
tool_cells tool_open_cells(tool_error *error, const char *path, const char *text, size_t size);
/* Moves to the next cell. Returns false at the end, and after an error. */
bool tool_next_cell(tool_cells *cells);
void tool_close_cells(tool_cells *cells);
/* Records "path: line 3, column 2: message" and returns false. name is the column's name in the
 * message, or NULL. */
__attribute__((format(printf, 3, 4))) bool tool_fail_cell(const tool_cells *cells, const char *name,
                                                          const char *format, ...);
/* Returns a copy of a text for a message, with at most 40 bytes and without control characters,
 * which the caller frees. */
char *tool_shown_text(const char *text, size_t length);

/* Writes a cell, quoted if necessary. */
void tool_put_cell(FILE *file, const char *text, char separator);

#endif
