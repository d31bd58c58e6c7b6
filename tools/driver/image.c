#include <driver/image.h>

#include <driver/output_file.h>
#include <driver/picture.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Colour map from dark blue through red to light yellow, with evenly increasing lightness, so that
 * it is also readable in gray. */
static const uint8_t colors[][3] = { { 0, 0, 24 },     { 40, 11, 84 },   { 101, 21, 110 },
                                     { 159, 42, 99 },  { 212, 72, 66 },  { 245, 125, 21 },
                                     { 250, 193, 39 }, { 252, 255, 164 } };
enum { LAST_COLOR = sizeof colors / sizeof *colors - 1 };

static double value_at(const tool_array *array, int64_t row, int64_t column)
{
  tool_number number =
    tool_load(array->element, tool_element_at(array, (int64_t[]){ row, column }));
  return tool_number_real(&number);
}

static tool_image_range find_range(const tool_array *array)
{
  tool_image_range range = { true, INFINITY, -INFINITY };
  for (int64_t row = 0; row < array->shape[0]; row++) {
    for (int64_t column = 0; column < array->shape[1]; column++) {
      double value = value_at(array, row, column);
      if (!isfinite(value)) continue;
      range.low = fmin(range.low, value);
      range.high = fmax(range.high, value);
    }
  }
  return range;
}

static double scale(double value, const tool_image_range *range)
{
  double width = range->high - range->low;
  double scaled = width > 0 ? (value - range->low) / width : 0;
  return scaled < 0 ? 0 : scaled > 1 ? 1 : scaled;
}

static size_t put_gray(double value, const tool_image_range *range, uint8_t *pixel)
{
  *pixel = isnan(value) ? 0 : (uint8_t)lrint(255 * scale(value, range));
  return 1;
}

static size_t put_color(double value, const tool_image_range *range, uint8_t *pixel)
{
  static const uint8_t magenta[] = { 255, 0, 255 };
  if (isnan(value)) {
    memcpy(pixel, magenta, sizeof magenta);
    return 3;
  }
  double at = scale(value, range) * LAST_COLOR;
  int first = at >= LAST_COLOR ? LAST_COLOR - 1 : (int)at;
  for (int c = 0; c < 3; c++)
    pixel[c] =
      (uint8_t)lrint(colors[first][c] + (at - first) * (colors[first + 1][c] - colors[first][c]));
  return 3;
}

/* ---- files ---- */

static bool has_suffix(const char *path, const char *suffix)
{
  size_t length = strlen(path), suffix_length = strlen(suffix);
  return length > suffix_length && !strcmp(path + length - suffix_length, suffix);
}

typedef struct format {
  const char *ending;
  bool is_color;
  const char *(*misfit)(const tool_array *picture);
  bool (*write)(FILE *file, const tool_array *picture);
} format;
static const format formats[] = { { ".ppm", true, tool_misfit_ppm, tool_write_netpbm },
                                  { ".png", true, tool_misfit_png, tool_write_png },
                                  { ".pgm", false, tool_misfit_pgm, tool_write_netpbm } };

/* Returns the format for the ending of the path, the first format for standard output, or NULL for
 * an unknown ending. */
static const format *find_format(const char *path)
{
  if (!strcmp(path, "-")) return &formats[0];
  for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
    if (has_suffix(path, formats[i].ending)) return &formats[i];
  return NULL;
}

bool tool_check_image(tool_error *error, const char *path, const tool_array *array)
{
  const format *f = find_format(path);
  if (!f)
    return tool_fail(error, TOOL_EXIT_USAGE,
                     "--image: expected a path that ends in .png, .ppm or .pgm, not '%s'", path);
  /* the array that make_picture would create, without memory */
  tool_array picture = { .element = KJIT_U8 };
  bool is_real = tool_elements[array->element].class_ != TOOL_COMPLEX && !array->record.context;
  if (array->rank == 2 && tool_count(array) && is_real) {
    picture.rank = f->is_color ? 3 : 2;
    memcpy(picture.shape, (int64_t[]){ array->shape[0], array->shape[1], 3 }, 3 * sizeof(int64_t));
    const char *misfit = f->misfit(&picture);
    return !misfit || tool_fail(error, TOOL_EXIT_USAGE, "--image: %s: a %s file holds %s", path,
                                f->ending, misfit);
  }
  char *shape = tool_shape_text(array);
  tool_fail(error, TOOL_EXIT_USAGE,
            "--image: expected a nonempty two-dimensional array of real numbers, not %s", shape);
  free(shape);
  return false;
}

static bool make_picture(tool_error *error, const tool_array *array, const tool_image_range *range,
                         bool is_color, tool_array *picture)
{
  tool_shape shape = { .element = KJIT_U8,
                       .rank = is_color ? 3 : 2,
                       .extents = { array->shape[0], array->shape[1], 3 } };
  if (!tool_create_array(error, &shape, picture)) return tool_prefix(error, "--image");
  uint8_t *pixel = picture->memory->data;
  for (int64_t row = 0; row < array->shape[0]; row++)
    for (int64_t column = 0; column < array->shape[1]; column++)
      pixel += (is_color ? put_color : put_gray)(value_at(array, row, column), range, pixel);
  return true;
}

static bool write_picture(tool_error *error, const char *path, const format *f,
                          const tool_array *picture)
{
  tool_output_file output;
  return tool_create_output(error, path, &output) &&
         tool_finish_output(error, &output, f->write(output.stream, picture));
}

bool tool_write_image(tool_error *error, const char *path, const tool_array *array,
                      const tool_image_range *given)
{
  const format *f = find_format(path);
  tool_image_range range = given->is_given ? *given : find_range(array);
  tool_array picture;
  if (!make_picture(error, array, &range, f->is_color, &picture)) return false;
  bool ok = write_picture(error, path, f, &picture);
  tool_destroy_memory(picture.memory);
  return ok;
}
