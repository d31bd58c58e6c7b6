/* Reads and writes array files. The ending of a file's name determines the format: .npy, .npz,
 * .csv, .tsv, .png, .pgm or .ppm. Pictures contain unscaled u8 values, one to four for each pixel;
 * image.h writes other values scaled or in colours. For standard input ("-") and pipes the first
 * bytes determine the format. */
#ifndef TOOL_ARRAY_FILE_H
#define TOOL_ARRAY_FILE_H

#include <driver/npz.h>
#include <driver/record.h>

#define TOOL_ARRAY_ENDINGS ".npy, .npz, .csv, .tsv, .png, .pgm or .ppm"

/* Returns whether the text ends like the name of an array file. */
bool tool_is_array_path(const char *text);
bool tool_is_table_path(const char *text); /* .csv */
/* Checks, before anything is computed, whether the array can be saved in this file. "-" is a .npy
 * file on standard output. */
bool tool_check_save(tool_error *error, const char *option, const char *path,
                     const tool_array *array);
/* Returns whether both paths name the same .npz file or table, whose arrays must be written by one
 * call. */
bool tool_is_same_archive(const char *path, const char *other);
/* Checks whether one file can contain both arrays. */
bool tool_check_together(tool_error *error, const char *path, const tool_array *a,
                         const tool_array *b);
/* Returns an array's name in the file: the name after "data.npz:" or "data.csv:", or else the
 * label. */
const char *tool_saved_name(const char *path, const char *label);
/* path is the path of the first array. count is 1 except for .npz files and tables. A table with
 * one unnamed array has no header row. */
bool tool_save_arrays(tool_error *error, const char *path, const tool_named_array *arrays,
                      size_t count);

/* An array to read. */
typedef struct tool_array_source {
  const char *path;  /* also "data.npz:x", "data.csv:x" and "-:x" */
  const char *usual; /* name of the array that is read from a .npz file if the path does not name
                        one, or NULL */
  kjit_type element; /* element type of a table; KJIT_ANY means the type that holds all numbers */
  bool keeps_texts;  /* true if dates in a table stay texts */
} tool_array_source;
/* Loads an array like tool_read_npy and tool_read_table. If the path names a .npz file but no array
 * in it, reads the array `usual`, or else the only array. */
bool tool_load_array(tool_error *error, const tool_array_source *source, tool_array *array,
                     tool_leaves *leaves);

#endif
