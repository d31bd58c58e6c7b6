/* For any bytes of a .npy file, reading ends with an array that the file's bytes fill, or with an
 * error that names the file. The same holds with a conversion of the elements, and with a struct as
 * element type. An array that is written is read back unchanged.
 *
 * An input is a file. If it does not begin like a .npy file, it is the text of a header. The target
 * then adds the bytes before the text and, if the header promises little data, this amount of data
 * after it. If KJIT_FUZZ_KEEP=FOLDER is in the environment, accepted files are stored as
 * FOLDER/N.npy and the arrays that were read as FOLDER/N.txt, for a comparison with numpy.load. */
#include <driver/argument.h>
#include <driver/compare.h>
#include <driver/npy.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_DATA_BYTES = 4096, MOST_KEPT = 4000, MOST_LEAVES = 1 << 16 };

static const char structs[] =
  "struct Inner { a: i8\n b: f64 }\n"
  "struct Body { x: f32[3]\n mass: f64\n inner: Inner[2]\n lanes: f32x4 }\n"
  "struct Small { a: u8\n b: u16 }\n";
static const char *const conversions[] = { ":as=Body", ":as=Small", ":as=Inner", ":as=f16",
                                           ":as=i8",   ":as=bool",  ":as=f32x4" };

static kjit_context *context;

static void check(bool holds, const char *what, const char *text)
{
  if (holds) return;
  fprintf(stderr, "npy_fuzz: %s: %s\n", what, text ? text : "");
  abort();
}

/* ---- the file ---- */

typedef struct image {
  uint8_t *bytes;
  size_t size_bytes;
} image;

static image make_image(const uint8_t *text, size_t size, uint32_t draw)
{
  static const char magic[] = "\x93NUMPY";
  uint32_t version = size > UINT16_MAX ? 2 + draw % 2 : 1 + draw % 3;
  size_t length_bytes = version == 1 ? 2 : 4, before = 8 + length_bytes;
  image made = { tool_allocate(before + size + MOST_DATA_BYTES), before + size };
  memcpy(made.bytes, magic, 6);
  made.bytes[6] = (uint8_t)version;
  for (size_t i = 0; i < length_bytes; i++) made.bytes[8 + i] = (uint8_t)(size >> 8 * i);
  memcpy(made.bytes + before, text, size);
  return made;
}

static int make_file(const image *content, char path[64])
{
  int file = memfd_create("fuzz", MFD_CLOEXEC);
  size_t done = 0;
  check(file >= 0, "no file", NULL);
  for (ssize_t put; done < content->size_bytes; done += (size_t)put) {
    put = write(file, content->bytes + done, content->size_bytes - done);
    check(put > 0, "no room for a file", NULL);
  }
  snprintf(path, 64, "/proc/self/fd/%d", file);
  return file;
}

/* Appends the data that the header promises. The size comes from the error about a file without
 * data. */
static void append_data(image *content, const char *error, uint32_t draw)
{
  const char *promise = error ? strstr(error, "promises ") : NULL;
  unsigned long long size_bytes = promise ? strtoull(promise + 9, NULL, 10) : 0;
  if (size_bytes > MOST_DATA_BYTES) return;
  for (; size_bytes; size_bytes--) {
    draw = draw * 1664525u + 1013904223u;
    content->bytes[content->size_bytes++] = (uint8_t)(draw >> 24);
  }
}

/* ---- reading ---- */

static bool read_file(const char *path, tool_array *array, tool_leaves *leaves, char **error_text)
{
  tool_error error = { 0 };
  bool ok = tool_read_npy(&error, path, array, leaves);
  check(ok ? !error.text : error.text && strstr(error.text, path) && error.exit_status,
        "an array with an error, or an error without a text", error.text);
  *error_text = error.text;
  return ok;
}

static void check_leaves(const tool_array *array, const tool_leaves *leaves)
{
  uint64_t end = 0;
  check(leaves->count <= MOST_LEAVES, "too many numbers in a struct", NULL);
  for (size_t i = 0; i < leaves->count; i++) {
    const tool_leaf *leaf = &leaves->items[i];
    check(leaf->offset_bytes >= end, "numbers of a struct that overlap", leaf->path);
    end = leaf->offset_bytes + leaf->count * tool_elements[leaf->element].size_bytes;
  }
  check(!leaves->count || (array->element == KJIT_U8 && end <= array->lanes),
        "a number outside of its struct", NULL);
}

static void check_written(const tool_array *array)
{
  tool_error error = { 0 };
  tool_array again;
  char path[64], *text = NULL;
  const image nothing = { NULL, 0 };
  int file = make_file(&nothing, path);
  check(tool_write_npy(&error, path, array), "an array that cannot be written", error.text);
  check(read_file(path, &again, NULL, &text), "what was written cannot be read", text);
  check(again.element == array->element && tool_same_shape(&again, array), "another array", NULL);
  for (uint64_t i = 0; i < tool_count(array); i++)
    check(!memcmp(tool_element_number(array, i), tool_element_number(&again, i),
                  tool_elements[array->element].size_bytes),
          "another element", NULL);
  tool_destroy_memory(again.memory);
  close(file);
}

static void scan_converted(const char *path, const char *conversion)
{
  tool_error error = { 0 };
  tool_arguments arguments = { .context = context };
  tool_argument argument;
  char *text = tool_format("%s%s", path, conversion);
  tool_scanner scanner = tool_scan("--arg", text, &error);
  scanner.context = context;
  bool ok = tool_scan_file(&arguments, &scanner, &argument);
  check(ok == !error.text, "an array with an error, or none", error.text);
  free(error.text);
  free(text);
  tool_destroy_arguments(&arguments);
}

/* ---- for numpy ---- */

static void keep(const image *content, const tool_array *array, const tool_leaves *leaves)
{
  static unsigned kept;
  const char *folder = getenv("KJIT_FUZZ_KEEP");
  if (!folder || kept == MOST_KEPT) return;
  char *path = tool_format("%s/%u.npy", folder, kept),
       *text_path = tool_format("%s/%u.txt", folder, kept);
  FILE *file = fopen(path, "wb"), *text = fopen(text_path, "w");
  check(file && text, "no such folder", folder);
  fwrite(content->bytes, 1, content->size_bytes, file);
  fprintf(text, "%s\n", leaves->count ? "struct" : tool_elements[array->element].text);
  for (uint32_t d = 0; d < array->rank; d++) fprintf(text, "%lld ", (long long)array->shape[d]);
  fputc('\n', text);
  for (uint64_t i = 0; i < tool_array_bytes(array); i++) {
    uint64_t size = tool_elements[array->element].size_bytes;
    fprintf(text, "%02x", ((uint8_t *)tool_element_number(array, i / size))[i % size]);
  }
  fputc('\n', text);
  for (size_t i = 0; i < leaves->count; i++)
    fprintf(text, "%s %s %llu %llu\n", leaves->items[i].path,
            tool_elements[leaves->items[i].element].text,
            (unsigned long long)leaves->items[i].offset_bytes,
            (unsigned long long)leaves->items[i].count);
  check(fclose(file) == 0 && fclose(text) == 0, "cannot be written", folder);
  free(path);
  free(text_path);
  kept++;
}

/* ---- one input ---- */

static void create_context(void)
{
  kjit_module *module = NULL;
  check(kjit_create_context(NULL, &context) == KJIT_OK, "no context", NULL);
  check(kjit_parse_module(context, "structs.kir", structs, sizeof structs - 1, &module) == KJIT_OK,
        "structs that do not parse", NULL);
}

static void read_image(image *content, uint32_t draw)
{
  char path[64], *text = NULL;
  tool_array array;
  tool_leaves leaves = { 0 };
  int file = make_file(content, path);
  if (read_file(path, &array, &leaves, &text)) {
    check(tool_array_bytes(&array) <= content->size_bytes, "more bytes than the file has", NULL);
    check_leaves(&array, &leaves);
    if (!leaves.count) check_written(&array);
    keep(content, &array, &leaves);
    tool_destroy_memory(array.memory);
  }
  scan_converted(path, conversions[draw % (sizeof conversions / sizeof *conversions)]);
  tool_destroy_leaves(&leaves);
  free(text);
  close(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  uint32_t draw = 1;
  if (!context) create_context();
  for (size_t i = 0; i < size; i++) draw = draw * 31 + data[i];
  if (size && data[0] == 0x93) {
    image content = { tool_allocate(size), size };
    memcpy(content.bytes, data, size);
    read_image(&content, draw);
    free(content.bytes);
    return 0;
  }
  image content = make_image(data, size, draw >> 8);
  tool_array array;
  tool_leaves leaves = { 0 };
  char path[64], *text = NULL;
  int file = make_file(&content, path);
  if (read_file(path, &array, &leaves, &text)) tool_destroy_memory(array.memory);
  else append_data(&content, text, draw);
  tool_destroy_leaves(&leaves);
  free(text);
  close(file);
  read_image(&content, draw);
  free(content.bytes);
  return 0;
}
