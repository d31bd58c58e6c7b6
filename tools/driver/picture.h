/* Pictures as arrays of u8: [rows, columns] in gray, [rows, columns, 3] in colour; a .png file also
 * [rows, columns, 2] and 4, with opacity last. */
#ifndef TOOL_PICTURE_H
#define TOOL_PICTURE_H

#include <driver/record.h>
#include <stdio.h>

/* What an array would have to be of to be written so; NULL: it can be. */
const char *tool_misfit_png(const tool_array *array);
const char *tool_misfit_pgm(const tool_array *array);
const char *tool_misfit_ppm(const tool_array *array);
/* false: writing failed, see the stream. */
bool tool_write_png(FILE *file, const tool_array *array);
bool tool_write_netpbm(FILE *file, const tool_array *array);
/* leaves: stays as it is. Netpbm: binary, with a greatest value of 255. */
bool tool_read_png(tool_error *error, const char *path, tool_array *array, tool_leaves *leaves);
bool tool_read_netpbm(tool_error *error, const char *path, tool_array *array, tool_leaves *leaves);

#endif
