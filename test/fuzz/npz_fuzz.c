/* For any bytes of a .npz file, reading an array ends with an array to which the file's bytes can
 * be unpacked, or with an error that names the file. The test writes an array that was read to an
 * archive with two arrays, and reads both back unchanged. The first byte of an input determines how
 * the array is requested; the rest is the file. A checksum detects damaged data, so mutations
 * mostly test the directories, headers and streams that are read before it. */
#include <driver/compare.h>
#include <driver/npz.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* As in tool_read_npz: maximum number of bytes for each byte of a deflated stream. */
enum { MOST_RATIO = 1032 };

static void check(bool holds, const char *what, const char *text)
{
  if (holds) return;
  fprintf(stderr, "npz_fuzz: %s: %s\n", what, text ? text : "");
  abort();
}

static int make_file(const uint8_t *data, size_t size, char path[64])
{
  int file = memfd_create("fuzz", MFD_CLOEXEC);
  size_t done = 0;
  check(file >= 0, "no file", NULL);
  for (ssize_t put; done < size; done += (size_t)put) {
    put = write(file, data + done, size - done);
    check(put > 0, "no room for a file", NULL);
  }
  snprintf(path, 64, "/proc/self/fd/%d", file);
  return file;
}

static bool read_array(const char *path, const char *name, const char *usual, tool_array *array,
                       tool_leaves *leaves, char **error_text)
{
  tool_error error = { 0 };
  bool ok = tool_read_npz(&error, path, name, usual, array, leaves);
  check(ok ? !error.text : error.text && strstr(error.text, path) && error.exit_status,
        "an array with an error, or an error without a text", error.text);
  *error_text = error.text;
  return ok;
}

static void check_same(const char *path, const char *name, const tool_array *array)
{
  tool_array again;
  char *text;
  bool ok = read_array(path, name, NULL, &again, NULL, &text);
  check(ok, "what was written is not read", text);
  check(again.element == array->element && tool_same_shape(&again, array), "another array", name);
  for (uint64_t i = 0; i < tool_count(array); i++)
    check(!memcmp(tool_element_number(array, i), tool_element_number(&again, i),
                  tool_elements[array->element].size_bytes),
          "another element", name);
  tool_destroy_memory(again.memory);
}

static void check_written(const tool_array *array)
{
  static uint8_t other_bytes[3] = { 1, 2, 3 };
  tool_memory memory = { .data = other_bytes, .size_bytes = 3, .element = KJIT_U8 };
  const tool_array other = {
    .element = KJIT_U8, .rank = 1, .shape = { 3 }, .strides = { 1 }, .memory = &memory
  };
  const tool_named_array arrays[] = { { "x", array }, { "other", &other } };
  char path[64];
  int file = make_file(NULL, 0, path);
  FILE *stream = fdopen(dup(file), "wb");
  check(stream && tool_write_npz(stream, arrays, 2) && fclose(stream) == 0,
        "an array that cannot be written", NULL);
  check_same(path, "x", array);
  check_same(path, "other", &other);
  close(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  tool_array array;
  tool_leaves leaves = { 0 };
  char path[64], *text = NULL;
  if (!size) return 0;
  int file = make_file(data + 1, size - 1, path);
  if (read_array(path, data[0] & 1 ? "x" : NULL, data[0] & 2 ? "w" : NULL, &array,
                 data[0] & 4 ? &leaves : NULL, &text)) {
    check(tool_array_bytes(&array) <= size * MOST_RATIO, "more bytes than there can be", NULL);
    if (!leaves.count) check_written(&array);
    tool_destroy_memory(array.memory);
  }
  tool_destroy_leaves(&leaves);
  free(text);
  close(file);
  return 0;
}
