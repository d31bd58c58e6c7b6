#include <driver/picture.h>

#include <ctype.h>
#include <driver/file.h>
#include <stdlib.h>
#include <string.h>
#ifdef TOOL_HAS_PNG
#include <png.h>
#endif

static int64_t channels(const tool_array *array)
{
  return array->rank == 2 ? 1 : array->rank == 3 ? array->shape[2] : 0;
}

static bool is_picture(const tool_array *array)
{
  return array->element == KJIT_U8 && !array->record.context && tool_count(array) &&
         channels(array) && array->shape[0] <= INT32_MAX / 4 && array->shape[1] <= INT32_MAX / 4;
}

const char *tool_misfit_pgm(const tool_array *array)
{
  return is_picture(array) && channels(array) == 1
           ? NULL
           : "u8[rows, columns] with elements (--image scales others)";
}

const char *tool_misfit_ppm(const tool_array *array)
{
  return is_picture(array) && channels(array) == 3
           ? NULL
           : "u8[rows, columns, 3] with elements (--image colours others)";
}

const char *tool_misfit_png(const tool_array *array)
{
#ifndef TOOL_HAS_PNG
  (void)array;
  return "nothing, since this kjit was built without libpng";
#endif
  return is_picture(array) && channels(array) <= 4
           ? NULL
           : "u8[rows, columns] or u8[rows, columns, 2 to 4] with elements (--image scales others)";
}

/* Returns all rows as contiguous memory. */
static uint8_t *copy_pixels(const tool_array *array)
{
  uint64_t count = tool_count(array);
  uint8_t *pixels = tool_allocate(count);
  for (uint64_t i = 0; i < count; i++) pixels[i] = *(uint8_t *)tool_element_number(array, i);
  return pixels;
}

static bool create_picture(tool_error *error, const char *path, int64_t rows, int64_t columns,
                           int64_t depth, tool_array *array)
{
  tool_shape shape = { .element = KJIT_U8,
                       .rank = depth > 1 ? 3 : 2,
                       .extents = { rows, columns, depth } };
  return tool_create_array(error, &shape, array) || tool_prefix(error, "%s", path);
}

/* ---- Netpbm ---- */

bool tool_write_netpbm(FILE *file, const tool_array *array)
{
  uint8_t *pixels = copy_pixels(array);
  uint64_t count = tool_count(array);
  bool ok = fprintf(file, "P%c\n%lld %lld\n255\n", channels(array) == 1 ? '5' : '6',
                    (long long)array->shape[1], (long long)array->shape[0]) > 0 &&
            fwrite(pixels, 1, count, file) == count;
  free(pixels);
  return ok;
}

/* Reads a number of the header after blanks and comments. Returns -1 if there is none. */
static int64_t header_number(const char **at)
{
  int64_t number = 0;
  while (isspace((unsigned char)**at) || **at == '#') {
    if (**at == '#') *at += strcspn(*at, "\n");
    else ++*at;
  }
  if (!isdigit((unsigned char)**at)) return -1;
  for (; isdigit((unsigned char)**at); ++*at)
    if (number < INT32_MAX) number = 10 * number + (**at - '0');
  return number;
}

static bool parse_netpbm(tool_error *error, const char *path, const char *text, size_t size,
                         tool_array *array)
{
  const char *at = text + 2;
  if (size < 2 || text[0] != 'P' || (text[1] != '5' && text[1] != '6'))
    return tool_fail(error, TOOL_EXIT_FILE,
                     "%s: expected a binary .pgm or .ppm file: it does not start with P5 or P6",
                     path);
  int64_t depth = text[1] == '5' ? 1 : 3, columns = header_number(&at), rows = header_number(&at),
          highest = header_number(&at);
  if (columns < 1 || rows < 1 || columns >= INT32_MAX || rows >= INT32_MAX || highest != 255 ||
      !isspace((unsigned char)*at))
    return tool_fail(error, TOOL_EXIT_FILE,
                     "%s: expected a header with columns, rows and the maximum value 255", path);
  /* the product is below 2^64 */
  uint64_t expected = (uint64_t)rows * (uint64_t)columns * (uint64_t)depth,
           found = (uint64_t)(text + size - (at + 1));
  if (expected != found)
    return tool_fail(error, TOOL_EXIT_FILE,
                     "%s: the header states %llu bytes, but the file has %llu", path,
                     (unsigned long long)expected, (unsigned long long)found);
  if (!create_picture(error, path, rows, columns, depth, array)) return false;
  memcpy(array->memory->data, at + 1, expected);
  return true;
}

bool tool_read_netpbm(tool_error *error, const char *path, tool_array *array, tool_leaves *leaves)
{
  (void)leaves;
  char *text;
  size_t size;
  if (!tool_read_file(error, path, &text, &size)) return false;
  bool ok = parse_netpbm(error, path, text, size, array);
  free(text);
  return ok;
}

/* ---- .png ---- */

#ifdef TOOL_HAS_PNG

static const uint32_t formats[] = {
  [1] = PNG_FORMAT_GRAY, [2] = PNG_FORMAT_GA, [3] = PNG_FORMAT_RGB, [4] = PNG_FORMAT_RGBA
};

bool tool_write_png(FILE *file, const tool_array *array)
{
  uint8_t *pixels = copy_pixels(array);
  png_image image = { .version = PNG_IMAGE_VERSION,
                      .width = (uint32_t)array->shape[1],
                      .height = (uint32_t)array->shape[0],
                      .format = formats[channels(array)] };
  bool ok = png_image_write_to_stdio(&image, file, 0, pixels, 0, NULL);
  free(pixels);
  return ok;
}

static bool decode_png(tool_error *error, const char *path, png_image *image, tool_array *array)
{
  if (image->format & PNG_FORMAT_FLAG_LINEAR)
    return tool_fail(error, TOOL_EXIT_FILE, "%s: expected 8 bits per colour, not 16", path);
  /* excludes palettes and BGR order */
  image->format &= PNG_FORMAT_FLAG_COLOR | PNG_FORMAT_FLAG_ALPHA;
  if (!create_picture(error, path, image->height, image->width,
                      PNG_IMAGE_PIXEL_CHANNELS(image->format), array))
    return false;
  if (png_image_finish_read(image, NULL, array->memory->data, 0, NULL)) return true;
  tool_destroy_memory(array->memory);
  return tool_fail(error, TOOL_EXIT_FILE, "%s: broken .png file: %s", path, image->message);
}

bool tool_read_png(tool_error *error, const char *path, tool_array *array, tool_leaves *leaves)
{
  (void)leaves;
  char *text;
  size_t size;
  png_image image = { .version = PNG_IMAGE_VERSION };
  if (!tool_read_file(error, path, &text, &size)) return false;
  bool ok = (png_image_begin_read_from_memory(&image, text, size) ||
             tool_fail(error, TOOL_EXIT_FILE, "%s: not a .png file: %s", path, image.message)) &&
            decode_png(error, path, &image, array);
  png_image_free(&image);
  free(text);
  return ok;
}

#else

bool tool_write_png(FILE *file, const tool_array *array)
{
  (void)file, (void)array;
  return false; /* tool_misfit_png has rejected it */
}

bool tool_read_png(tool_error *error, const char *path, tool_array *array, tool_leaves *leaves)
{
  (void)array, (void)leaves;
  return tool_fail(error, TOOL_EXIT_FILE, "%s: this kjit was built without libpng", path);
}

#endif
