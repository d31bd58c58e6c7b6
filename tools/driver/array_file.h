/* Arrays in files, whose kind the ending of the name says: .npy, .csv, .png, .pgm, .ppm. Pictures
 * hold u8 as they are, one to four a pixel: image.h is for others, scaled and coloured. */
#ifndef TOOL_ARRAY_FILE_H
#define TOOL_ARRAY_FILE_H

#include <driver/record.h>

/* Whether the text ends as the name of such a file does. */
bool tool_is_array_path(const char *text);
/* Whether the array can be written so, before anything is computed; "-" is a .npy file on standard
 * output. */
bool tool_check_save(tool_error *error, const char *option, const char *path,
                     const tool_array *array);
bool tool_save_array(tool_error *error, const char *path, const tool_array *array);
/* As tool_read_npy. Of a .csv file i64 where all numbers are such, else f64: of a line for each
 * row, or of one dimension where each line has one number. */
bool tool_load_array(tool_error *error, const char *path, tool_array *array, tool_leaves *leaves);

#endif
