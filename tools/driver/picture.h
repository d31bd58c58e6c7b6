/* Reads and writes pictures as arrays of u8. A grey picture has the shape [rows, columns], and a
 * colour picture [rows, columns, 3]. A .png file can also have 2 or 4 values for each pixel; the
 * last value is the opacity. */
#ifndef TOOL_PICTURE_H
#define TOOL_PICTURE_H

#include <driver/record.h>
#include <stdio.h>

/* Return NULL if the format can store the array, otherwise a description of the arrays that it can
 * store. */
const char *tool_misfit_png(const tool_array *array);
const char *tool_misfit_pgm(const tool_array *array);
const char *tool_misfit_ppm(const tool_array *array);
/* Return false if the stream has an error. */
bool tool_write_png(FILE *file, const tool_array *array);
bool tool_write_netpbm(FILE *file, const tool_array *array);
/* Read pictures; leaves stays unchanged. Netpbm files must be binary and have a maximum value of
 * 255. */
bool tool_read_png(tool_error *error, const char *path, tool_array *array, tool_leaves *leaves);
bool tool_read_netpbm(tool_error *error, const char *path, tool_array *array, tool_leaves *leaves);

#endif
