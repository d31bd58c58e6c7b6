#define _GNU_SOURCE
#include <driver/npy.h>

#include <driver/npy_header.h>
#include <driver/output_file.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char magic[] = "\x93NUMPY";
enum { MAGIC_BYTES = 6, PREAMBLE_BYTES = 8, ALIGNMENT = 64, MAX_HEADER_BYTES = 1 << 20 };

typedef struct reader {
  tool_error *error;
  const tool_bytes *bytes;
  const char *path;    /* owned by the caller */
  uint64_t size_bytes; /* size of the file */
  uint32_t version;    /* format version */
  char *header;        /* the dictionary, 0-terminated */
  uint64_t header_bytes, data_offset;
  tool_shape shape;
} reader;

/* ---- reading ---- */

static bool read_exactly(reader *r, void *to, uint64_t size)
{
  return r->bytes->read(r->bytes, r->error, to, size);
}

static bool read_preamble(reader *r)
{
  uint8_t start[PREAMBLE_BYTES + 4];
  if (r->size_bytes < PREAMBLE_BYTES + 2)
    return tool_fail(r->error, TOOL_EXIT_FILE,
                     "%s: expected a .npy file, but it has only %llu bytes", r->path,
                     (unsigned long long)r->size_bytes);
  if (!read_exactly(r, start, PREAMBLE_BYTES)) return false;
  if (memcmp(start, magic, MAGIC_BYTES))
    return tool_fail(r->error, TOOL_EXIT_FILE,
                     "%s: not a .npy file: it does not start with \\x93NUMPY", r->path);
  uint8_t major = start[MAGIC_BYTES], minor = start[MAGIC_BYTES + 1];
  if (major < 1 || major > 3 || minor != 0)
    return tool_fail(r->error, TOOL_EXIT_FILE,
                     "%s: .npy format version %u.%u; versions 1.0, 2.0 and 3.0 are supported",
                     r->path, major, minor);
  r->version = major;
  uint32_t length_bytes = major == 1 ? 2 : 4;
  if (r->size_bytes < PREAMBLE_BYTES + length_bytes)
    return tool_fail(r->error, TOOL_EXIT_FILE, "%s: the .npy header is truncated", r->path);
  if (!read_exactly(r, start, length_bytes)) return false;
  r->header_bytes = start[0] | (uint64_t)start[1] << 8;
  if (length_bytes == 4) r->header_bytes |= (uint64_t)start[2] << 16 | (uint64_t)start[3] << 24;
  r->data_offset = PREAMBLE_BYTES + length_bytes + r->header_bytes;
  return true;
}

static bool read_header_text(reader *r)
{
  if (!read_preamble(r)) return false;
  if (r->data_offset > r->size_bytes)
    return tool_fail(
      r->error, TOOL_EXIT_FILE,
      "%s: the .npy header is truncated: it should end at byte %llu, but the file has %llu bytes",
      r->path, (unsigned long long)r->data_offset, (unsigned long long)r->size_bytes);
  if (r->header_bytes > MAX_HEADER_BYTES)
    return tool_fail(r->error, TOOL_EXIT_FILE,
                     "%s: a .npy header of %llu bytes; at most %d are supported", r->path,
                     (unsigned long long)r->header_bytes, MAX_HEADER_BYTES);
  r->header = tool_allocate(r->header_bytes + 1);
  return read_exactly(r, r->header, r->header_bytes);
}

static bool read_header(reader *r, tool_leaves *leaves)
{
  if (!read_header_text(r)) return false;
  const tool_npy_header header = { r->path, r->version, r->header, r->header_bytes };
  return tool_parse_npy_header(r->error, &header, &r->shape, leaves);
}

static bool compare_sizes(reader *r)
{
  uint64_t expected, found = r->size_bytes - r->data_offset;
  if (!tool_shape_bytes(&r->shape, &expected))
    return tool_fail(r->error, TOOL_EXIT_FILE,
                     "%s: broken .npy header: the shape's size in bytes does not fit in 63 bits",
                     r->path);
  if (expected == found || (r->bytes->may_continue && expected < found)) return true;
  return tool_fail(r->error, TOOL_EXIT_FILE,
                   "%s: the .npy header states %llu bytes of data, but the file has %llu%s",
                   r->path, (unsigned long long)expected, (unsigned long long)found,
                   found < expected ? ": it is truncated" : "");
}

/* Replaces nonzero bytes by 1. NumPy treats all of them as true, but in the kernel IR a bool is 0
 * or 1. */
static void normalize_bools(const tool_array *array)
{
  uint8_t *bytes = array->memory->data;
  for (uint64_t i = 0; i < array->memory->size_bytes; i++) bytes[i] = bytes[i] != 0;
}

static bool read_array(reader *r, tool_array *array, tool_leaves *leaves)
{
  if (!read_header(r, leaves) || !compare_sizes(r)) return false;
  tool_array result;
  if (!tool_create_array(r->error, &r->shape, &result)) return tool_prefix(r->error, "%s", r->path);
  if (!read_exactly(r, result.memory->data, result.memory->size_bytes)) {
    tool_destroy_memory(result.memory);
    return false;
  }
  if (result.element == KJIT_BOOL) normalize_bools(&result);
  *array = result;
  return true;
}

bool tool_read_npy_bytes(tool_error *error, const tool_bytes *bytes, tool_array *array,
                         tool_leaves *leaves)
{
  reader r = {
    .error = error, .bytes = bytes, .path = bytes->path, .size_bytes = bytes->size_bytes
  };
  bool ok = read_array(&r, array, leaves);
  free(r.header);
  return ok;
}

/* ---- files ---- */

static bool read_file(const tool_bytes *bytes, tool_error *error, void *to, uint64_t size)
{
  int file = *(const int *)bytes->state;
  for (uint64_t done = 0; done < size;) {
    ssize_t got = read(file, (char *)to + done, size - done > 1u << 30 ? 1u << 30 : size - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return tool_fail(error, TOOL_EXIT_FILE, "%s: %s", bytes->path, strerror(errno));
    if (got == 0)
      return tool_fail(error, TOOL_EXIT_FILE,
                       "%s: the file ended while it was read, %llu bytes early", bytes->path,
                       (unsigned long long)(size - done));
    done += (uint64_t)got;
  }
  return true;
}

bool tool_open_regular(tool_error *error, const char *path, int *file, uint64_t *size_bytes)
{
  struct stat status;
  /* O_NONBLOCK prevents the call from waiting for a named pipe, which is rejected below */
  *file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (*file < 0) return tool_fail(error, TOOL_EXIT_FILE, "%s: %s", path, strerror(errno));
  bool ok =
    fstat(*file, &status) == 0 || tool_fail(error, TOOL_EXIT_FILE, "%s: %s", path, strerror(errno));
  if (ok && !S_ISREG(status.st_mode))
    ok = tool_fail(error, TOOL_EXIT_FILE, "%s: expected a regular file, not a %s", path,
                   S_ISDIR(status.st_mode) ? "directory" : "device or pipe");
  if (ok) *size_bytes = (uint64_t)status.st_size;
  else close(*file);
  return ok;
}

bool tool_read_npy(tool_error *error, const char *path, tool_array *array, tool_leaves *leaves)
{
  int file;
  tool_bytes bytes = { .path = path, .state = &file, .read = read_file };
  if (!tool_open_regular(error, path, &file, &bytes.size_bytes)) return false;
  bool ok = tool_read_npy_bytes(error, &bytes, array, leaves);
  close(file);
  return ok;
}

/* ---- writing ---- */

static char *make_header(const tool_array *array, kjit_type element)
{
  char *shape = tool_copy_text("", 0);
  uint32_t rank = array->rank - (array->record.context ? 1 : 0);
  for (uint32_t d = 0; d < rank; d++) {
    char *longer =
      tool_format("%s%lld,%s", shape, (long long)array->shape[d], d + 1 < rank ? " " : "");
    free(shape);
    shape = longer;
  }
  char *type = array->record.context ? tool_record_description(&array->record)
                                     : tool_format("'%s'", tool_elements[element].numpy);
  char *dictionary =
    tool_format("{'descr': %s, 'fortran_order': False, 'shape': (%s), }", type, shape);
  free(type);
  int used = PREAMBLE_BYTES + 2 + (int)strlen(dictionary) + 1,
      padding = (ALIGNMENT - used % ALIGNMENT) % ALIGNMENT;
  char *header = tool_format("%s%*s\n", dictionary, padding, "");
  free(shape);
  free(dictionary);
  return header;
}

static bool write_elements(FILE *file, const tool_array *array, kjit_type element)
{
  if (element == array->element && tool_is_contiguous(array)) {
    uint64_t size = tool_array_bytes(array);
    const char *data = (const char *)array->memory->data +
                       array->offset * (int64_t)tool_elements[element].size_bytes;
    return !size || fwrite(data, 1, size, file) == size;
  }
  uint64_t count = tool_count(array);
  for (uint64_t i = 0; i < count; i++) {
    const void *stored = tool_element_number(array, i);
    float widened;
    if (element != array->element) { /* bf16 is written as f32 */
      tool_number number = tool_load(array->element, stored);
      tool_store(element, &widened, &number);
      stored = &widened;
    }
    if (fwrite(stored, tool_elements[element].size_bytes, 1, file) != 1) return false;
  }
  return true;
}

static bool write_header(FILE *file, const tool_array *array, kjit_type element)
{
  char *header = make_header(array, element);
  size_t length = strlen(header);
  uint8_t preamble[PREAMBLE_BYTES + 4] = { 0 };
  /* the header of a struct with many fields can need version 2.0, which has a longer length
   * field */
  bool is_long = length > UINT16_MAX;
  size_t size = PREAMBLE_BYTES + (is_long ? 4 : 2);
  memcpy(preamble, magic, MAGIC_BYTES);
  preamble[MAGIC_BYTES] = is_long ? 2 : 1;
  for (size_t i = PREAMBLE_BYTES; i < size; i++)
    preamble[i] = (uint8_t)(length >> 8 * (i - PREAMBLE_BYTES));
  bool ok = fwrite(preamble, 1, size, file) == size && fwrite(header, 1, length, file) == length;
  free(header);
  return ok;
}

bool tool_write_npy_stream(FILE *file, const tool_array *array)
{
  kjit_type element = tool_elements[array->element].numpy ? array->element : KJIT_F32;
  return write_header(file, array, element) && write_elements(file, array, element);
}

bool tool_write_npy(tool_error *error, const char *path, const tool_array *array)
{
  tool_output_file output;
  if (!tool_create_output(error, path, &output)) return false;
  return tool_finish_output(error, &output, tool_write_npy_stream(output.stream, array));
}
