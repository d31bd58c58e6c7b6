/* Two-dimensional arrays as pictures: binary PGM (gray) and PPM (colour), the formats of the Netpbm
 * tools that every viewer reads. */
#ifndef TOOL_IMAGE_H
#define TOOL_IMAGE_H

#include <driver/array.h>

typedef struct tool_image_range {
  bool is_given;
  double low, high; /* shown as the first and last colour */
} tool_image_range;

/* Whether there can be such a picture, before anything is computed. */
bool tool_check_image(tool_error *error, const char *path, const tool_array *array);
/* path ends in .pgm or .ppm. Rows are lines from the top. Without a range: the least and the
 * largest finite value. NaN is black (PGM) or magenta (PPM). */
bool tool_write_image(tool_error *error, const char *path, const tool_array *array,
                      const tool_image_range *range);

#endif
