/* Two-dimensional arrays as pictures: PNG and binary PPM in colour, binary PGM in gray. */
#ifndef TOOL_IMAGE_H
#define TOOL_IMAGE_H

#include <driver/array.h>

typedef struct tool_image_range {
  bool is_given;
  double low, high; /* shown as the first and last colour */
} tool_image_range;

/* Whether there can be such a picture, before anything is computed. */
bool tool_check_image(tool_error *error, const char *path, const tool_array *array);
/* path ends in .png, .ppm or .pgm, or is "-", standard output, which gets a .ppm. Rows are lines
 * from the top. Without a range: the least and the largest finite value. NaN is black (PGM) or
 * magenta. */
bool tool_write_image(tool_error *error, const char *path, const tool_array *array,
                      const tool_image_range *range);

#endif
