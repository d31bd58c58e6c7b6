/* Writes two-dimensional arrays as pictures: PNG and binary PPM in colour, binary PGM in grey. */
#ifndef TOOL_IMAGE_H
#define TOOL_IMAGE_H

#include <driver/array.h>

typedef struct tool_image_range {
  bool is_given;
  double low, high; /* values of the first and the last colour */
} tool_image_range;

/* Checks, before anything is computed, whether the array can be shown as a picture. */
bool tool_check_image(tool_error *error, const char *path, const tool_array *array);
/* Writes an array as a picture. path ends in .png, .ppm or .pgm; "-" writes a .ppm to standard
 * output. The first row is at the top. Without a range, the colours cover the values from the
 * smallest to the largest finite value of the array. NaN is black in PGM and magenta in the other
 * formats. */
bool tool_write_image(tool_error *error, const char *path, const tool_array *array,
                      const tool_image_range *range);

#endif
