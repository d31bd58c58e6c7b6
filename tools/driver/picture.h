/* Pictures as arrays of u8: [rows, columns] in gray, [rows, columns, 3] in colour; a .png file also
 * [rows, columns, 2] and 4, with opacity last. */
#ifndef TOOL_PICTURE_H
#define TOOL_PICTURE_H

#include <driver/record.h>
#include <stdio.h>

/* Return the array type that the format needs if the array does not have it, or NULL if it can be
 * written. */
const char *tool_misfit_png(const tool_array *array);
const char *tool_misfit_pgm(const tool_array *array);
const char *tool_misfit_ppm(const tool_array *array);
/* Return false if the stream has an error. */
bool tool_write_png(FILE *file, const tool_array *array);
bool tool_write_netpbm(FILE *file, const tool_array *array);
/* leaves stays unchanged. Netpbm files must be binary with a maximum value of 255. */
bool tool_read_png(tool_error *error, const char *path, tool_array *array, tool_leaves *leaves);
bool tool_read_netpbm(tool_error *error, const char *path, tool_array *array, tool_leaves *leaves);

#endif
