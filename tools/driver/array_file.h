/* Arrays in files, whose kind the ending of the name says: .npy, .npz, .csv, .png, .pgm, .ppm.
 * Pictures
 * hold u8 as they are, one to four a pixel: image.h is for others, scaled and coloured. */
#ifndef TOOL_ARRAY_FILE_H
#define TOOL_ARRAY_FILE_H

#include <driver/npz.h>
#include <driver/record.h>

#define TOOL_ARRAY_ENDINGS ".npy, .npz, .csv, .png, .pgm or .ppm"

/* Whether the text ends as the name of such a file does. */
bool tool_is_array_path(const char *text);
bool tool_is_table_path(const char *text); /* .csv */
/* Whether the array can be written so, before anything is computed; "-" is a .npy file on standard
 * output. */
bool tool_check_save(tool_error *error, const char *option, const char *path,
                     const tool_array *array);
/* Whether both name the same .npz file: what goes there is written by one call. */
bool tool_is_same_archive(const char *path, const char *other);
/* The name that an array gets in the file: the one behind "data.npz:", else the label. */
const char *tool_saved_name(const char *path, const char *label);
/* path is the first array's; count is 1 but for .npz files. */
bool tool_save_arrays(tool_error *error, const char *path, const tool_named_array *arrays,
                      size_t count);
/* As tool_read_npy. Of a .csv file i64 where all numbers are such, else f64: of a line for each
 * row, or of one dimension where each line has one number. Of a .npz file the array that the path
 * names, "data.npz:x", else the one named `usual`, else the only one. */
bool tool_load_array(tool_error *error, const char *path, const char *usual, tool_array *array,
                     tool_leaves *leaves);

#endif
