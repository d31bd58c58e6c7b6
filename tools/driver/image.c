#include <driver/image.h>

#include <driver/output_file.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* From dark blue over red to light yellow: lightness grows evenly, so that it also reads in gray.
 */
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

static bool write_rows(FILE *file, const tool_array *array, const tool_image_range *range,
                       bool is_color)
{
  bool ok = true;
  uint8_t *line = tool_allocate((size_t)array->shape[1] * 3);
  for (int64_t row = 0; ok && row < array->shape[0]; row++) {
    size_t used = 0;
    for (int64_t column = 0; column < array->shape[1]; column++)
      used += (is_color ? put_color : put_gray)(value_at(array, row, column), range, line + used);
    ok = fwrite(line, 1, used, file) == used;
  }
  free(line);
  return ok;
}

static bool has_suffix(const char *path, const char *suffix)
{
  size_t length = strlen(path), suffix_length = strlen(suffix);
  return length > suffix_length && !strcmp(path + length - suffix_length, suffix);
}

static bool is_color_path(const char *path) { return has_suffix(path, ".ppm"); }

bool tool_check_image(tool_error *error, const char *path, const tool_array *array)
{
  if (!is_color_path(path) && !has_suffix(path, ".pgm"))
    return tool_fail(error, TOOL_EXIT_USAGE,
                     "--image: expected a path that ends in .pgm or .ppm, not '%s'", path);
  bool is_real = tool_elements[array->element].class_ != TOOL_COMPLEX && !array->record.context;
  if (array->rank == 2 && tool_count(array) && is_real) return true;
  char *shape = tool_shape_text(array);
  tool_fail(error, TOOL_EXIT_USAGE,
            "--image: expected a two-dimensional array of real numbers with elements, not %s",
            shape);
  free(shape);
  return false;
}

bool tool_write_image(tool_error *error, const char *path, const tool_array *array,
                      const tool_image_range *given)
{
  bool is_color = is_color_path(path);
  tool_image_range range = given->is_given ? *given : find_range(array);
  tool_output_file output;
  if (!tool_create_output(error, path, &output)) return false;
  bool ok = fprintf(output.stream, "P%c\n%lld %lld\n255\n", is_color ? '6' : '5',
                    (long long)array->shape[1], (long long)array->shape[0]) > 0 &&
            write_rows(output.stream, array, &range, is_color);
  return tool_finish_output(error, &output, ok);
}
