/* Arrays in files. The ending of the name says the kind: .npy, .npz, .csv, .tsv, .png, .pgm, .ppm.
 * Pictures hold u8 as they are, one to four for each pixel; image.h writes others, scaled and
 * coloured. The first bytes of standard input, "-", and of a pipe say the kind. */
#ifndef TOOL_ARRAY_FILE_H
#define TOOL_ARRAY_FILE_H

#include <driver/npz.h>
#include <driver/record.h>

#define TOOL_ARRAY_ENDINGS ".npy, .npz, .csv, .tsv, .png, .pgm or .ppm"

/* Whether the text ends as the name of such a file does. */
bool tool_is_array_path(const char *text);
bool tool_is_table_path(const char *text); /* .csv */
/* Whether the array can be written so, before anything is computed; "-" is a .npy file on standard
 * output. */
bool tool_check_save(tool_error *error, const char *option, const char *path,
                     const tool_array *array);
/* Whether both name the same .npz file or the same table: one call writes all its arrays. */
bool tool_is_same_archive(const char *path, const char *other);
/* Whether one file can hold both arrays. */
bool tool_check_together(tool_error *error, const char *path, const tool_array *a,
                         const tool_array *b);
/* The name that an array gets in the file: the one after "data.npz:" or "data.csv:", or else the
 * label. */
const char *tool_saved_name(const char *path, const char *label);
/* path is the first array's. count is 1, except for .npz files and tables. A table of one array
 * without a name has no row of names. */
bool tool_save_arrays(tool_error *error, const char *path, const tool_named_array *arrays,
                      size_t count);

/* An array to read. */
typedef struct tool_array_source {
  const char *path;  /* also "data.npz:x", "data.csv:x" and "-:x" */
  const char *usual; /* array of a .npz file that is read if the path names none; or NULL */
  kjit_type element; /* element type of a table; KJIT_ANY means the type that holds all numbers */
} tool_array_source;
/* As tool_read_npy and tool_read_table. Of a .npz file without a name it reads the array `usual`,
 * or else the only one. */
bool tool_load_array(tool_error *error, const tool_array_source *source, tool_array *array,
                     tool_leaves *leaves);

#endif
