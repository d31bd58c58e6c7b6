#define _GNU_SOURCE
#include <driver/npy.h>

#include <ctype.h>
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
  const char *path;
  int file;
  uint64_t size_bytes; /* of the file */
  char *header;        /* the dictionary, 0-terminated */
  const char *at;      /* in the header */
  uint64_t data_offset;
  bool has_type, has_order, has_shape;
  tool_shape shape;
  tool_leaves *leaves; /* of structs */
  uint64_t element_bytes;
  uint32_t seen; /* keys of the header, a bit each */
} reader;

/* ---- reading ---- */

static bool read_exactly(reader *r, void *to, uint64_t size)
{
  for (uint64_t done = 0; done < size;) {
    ssize_t got = read(r->file, (char *)to + done, size - done > 1u << 30 ? 1u << 30 : size - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return tool_fail(r->error, TOOL_EXIT_FILE, "%s: %s", r->path, strerror(errno));
    if (got == 0)
      return tool_fail(r->error, TOOL_EXIT_FILE,
                       "%s: the file ended while it was read, %llu bytes early", r->path,
                       (unsigned long long)(size - done));
    done += (uint64_t)got;
  }
  return true;
}

static bool open_file(reader *r)
{
  struct stat status;
  /* not blocking: a named pipe is refused below, not waited for */
  r->file = open(r->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (r->file < 0) return tool_fail(r->error, TOOL_EXIT_FILE, "%s: %s", r->path, strerror(errno));
  if (fstat(r->file, &status) < 0)
    return tool_fail(r->error, TOOL_EXIT_FILE, "%s: %s", r->path, strerror(errno));
  if (!S_ISREG(status.st_mode))
    return tool_fail(r->error, TOOL_EXIT_FILE, "%s: expected a regular file, not a %s", r->path,
                     S_ISDIR(status.st_mode) ? "directory" : "device or pipe");
  r->size_bytes = (uint64_t)status.st_size;
  return true;
}

static bool read_preamble(reader *r, uint64_t *header_bytes)
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
  uint32_t length_bytes = major == 1 ? 2 : 4;
  if (r->size_bytes < PREAMBLE_BYTES + length_bytes)
    return tool_fail(r->error, TOOL_EXIT_FILE, "%s: the .npy header is truncated", r->path);
  if (!read_exactly(r, start, length_bytes)) return false;
  *header_bytes = start[0] | (uint64_t)start[1] << 8;
  if (length_bytes == 4) *header_bytes |= (uint64_t)start[2] << 16 | (uint64_t)start[3] << 24;
  r->data_offset = PREAMBLE_BYTES + length_bytes + *header_bytes;
  return true;
}

static bool read_header_text(reader *r)
{
  uint64_t header_bytes = 0;
  if (!read_preamble(r, &header_bytes)) return false;
  if (r->data_offset > r->size_bytes)
    return tool_fail(
      r->error, TOOL_EXIT_FILE,
      "%s: the .npy header is truncated: it should end at byte %llu, the file has %llu", r->path,
      (unsigned long long)r->data_offset, (unsigned long long)r->size_bytes);
  if (header_bytes > MAX_HEADER_BYTES)
    return tool_fail(r->error, TOOL_EXIT_FILE,
                     "%s: a .npy header of %llu bytes; at most %d are supported", r->path,
                     (unsigned long long)header_bytes, MAX_HEADER_BYTES);
  r->header = tool_allocate(header_bytes + 1);
  r->at = r->header;
  return read_exactly(r, r->header, header_bytes);
}

/* ---- the header: a Python dictionary with three keys ---- */

static bool bad_header(reader *r, const char *what)
{
  int length = (int)strcspn(r->at, "\n");
  return tool_fail(r->error, TOOL_EXIT_FILE,
                   "%s: broken .npy header at byte %d: expected %s, found '%.*s'", r->path,
                   (int)(r->at - r->header), what, length > 30 ? 30 : length, r->at);
}

static void skip_blanks(reader *r)
{
  while (isspace((unsigned char)*r->at)) r->at++;
}

static bool accept(reader *r, const char *text)
{
  skip_blanks(r);
  if (strncmp(r->at, text, strlen(text))) return false;
  r->at += strlen(text);
  return true;
}

static bool read_string(reader *r, const char *what, const char **start, size_t *length)
{
  skip_blanks(r);
  char quote = *r->at;
  if (quote != '\'' && quote != '"') return bad_header(r, what);
  const char *end = strchr(r->at + 1, quote);
  if (!end) return bad_header(r, what);
  *start = r->at + 1;
  *length = (size_t)(end - *start);
  r->at = end + 1;
  return true;
}

static kjit_type find_numpy_type(const char *text, size_t length)
{
  for (kjit_type type = KJIT_BOOL; type < KJIT_SCALAR_COUNT; type++) {
    const char *name = tool_elements[type].numpy;
    if (!name || strlen(name) != length || memcmp(name + 1, text + 1, length - 1)) continue;
    if (text[0] == name[0] || (text[0] != '>' && tool_elements[type].size_bytes == 1)) return type;
  }
  return KJIT_ANY;
}

static bool read_structure(reader *r);

static bool read_type(reader *r)
{
  const char *text;
  size_t length;
  skip_blanks(r);
  if (*r->at == '[' && r->leaves) return read_structure(r);
  if (*r->at == '[')
    return tool_fail(
      r->error, TOOL_EXIT_FILE,
      "%s: structured arrays are not supported: expected one scalar type, found %.60s", r->path,
      r->at);
  if (!read_string(r, "the type as a string, such as '<f4'", &text, &length)) return false;
  r->shape.element = length ? find_numpy_type(text, length) : KJIT_ANY;
  r->has_type = true;
  if (r->shape.element != KJIT_ANY) return true;
  if (length && *text == '>')
    return tool_fail(r->error, TOOL_EXIT_FILE,
                     "%s: type '%.*s' is big-endian; kjit reads little-endian arrays: convert it "
                     "in numpy with astype('<%.*s')",
                     r->path, (int)length, text, (int)length - 1, text + 1);
  if (length && strchr(text, 'O') && strchr(text, 'O') < text + length)
    return tool_fail(r->error, TOOL_EXIT_FILE,
                     "%s: object arrays ('%.*s') are not supported: expected bool, integer, float "
                     "or complex elements",
                     r->path, (int)length, text);
  return tool_fail(
    r->error, TOOL_EXIT_FILE,
    "%s: type '%.*s' is not supported: expected |b1, i1 to i8, u1 to u8, f2, f4, f8, c8 or c16",
    r->path, (int)length, text);
}

static bool read_order(reader *r)
{
  r->has_order = true;
  r->shape.is_fortran = accept(r, "True");
  return r->shape.is_fortran || accept(r, "False") || bad_header(r, "True or False");
}

static bool read_extent(reader *r, int64_t *extent)
{
  skip_blanks(r);
  if (!isdigit((unsigned char)*r->at)) return bad_header(r, "an extent of the shape");
  char *end;
  errno = 0;
  long long value = strtoll(r->at, &end, 10);
  if (errno)
    return tool_fail(r->error, TOOL_EXIT_FILE,
                     "%s: broken .npy header: extent %.*s does not fit in 63 bits", r->path,
                     (int)(end - r->at > 40 ? 40 : end - r->at), r->at);
  r->at = *end == 'L' ? end + 1 : end; /* Python 2 wrote 3L */
  *extent = value;
  return true;
}

static bool read_shape(reader *r)
{
  r->has_shape = true;
  r->shape.rank = 0;
  if (!accept(r, "(")) return bad_header(r, "the shape, a tuple");
  while (!accept(r, ")")) {
    if (r->shape.rank == TOOL_MAX_RANK)
      return tool_fail(r->error, TOOL_EXIT_FILE, "%s: the array has more than %d dimensions",
                       r->path, TOOL_MAX_RANK);
    if (!read_extent(r, &r->shape.extents[r->shape.rank++])) return false;
    if (accept(r, ",")) continue;
    if (!accept(r, ")")) return bad_header(r, "',' or ')' in the shape");
    return true;
  }
  return true;
}

/* ---- structs: a list of (name, type) and (name, type, shape) ---- */

enum { MOST_NESTED = 32, MOST_STRUCT_BYTES = 64 * 1024 };

static bool read_fields(reader *r, uint32_t depth, uint64_t *size_bytes);

static bool too_large(reader *r)
{
  return tool_fail(r->error, TOOL_EXIT_FILE, "%s: a struct of more than %d bytes or levels",
                   r->path, MOST_STRUCT_BYTES);
}

/* The product of "(3, 2)", or of 3. */
static bool read_count(reader *r, uint64_t *count)
{
  int64_t extent;
  bool is_tuple = accept(r, "(");
  *count = 1;
  while (!is_tuple || !accept(r, ")")) {
    if (!read_extent(r, &extent)) return false;
    if (extent < 1 || extent > MOST_STRUCT_BYTES ||
        (*count *= (uint64_t)extent) > MOST_STRUCT_BYTES)
      return too_large(r);
    if (!is_tuple) return true;
    if (!accept(r, ",") && *r->at != ')') return bad_header(r, "',' or ')' in a shape");
  }
  return true;
}

/* "|V4": bytes between fields. */
static bool is_padding(const char *text, size_t length, uint64_t *bytes)
{
  if (length < 3 || text[0] != '|' || text[1] != 'V') return false;
  *bytes = strtoull(text + 2, NULL, 10);
  return true;
}

typedef struct nested {
  tool_leaves leaves;
  uint64_t size_bytes, count;
  bool has_shape; /* of one element too: it has an index then */
} nested;

/* The numbers of a nested struct, where each of the structs in the outer one has them. */
static void place_leaves(reader *r, const nested *n, const char *path, uint64_t offset)
{
  for (uint64_t i = 0; i < n->count; i++) {
    char *item = n->has_shape ? tool_format("%s[%llu]", path, (unsigned long long)i)
                              : tool_copy_text(path, strlen(path));
    for (size_t k = 0; k < n->leaves.count; k++) {
      const tool_leaf *leaf = &n->leaves.items[k];
      char *whole = tool_format("%s.%s", item, leaf->path);
      tool_add_leaf(r->leaves, whole, leaf->element,
                    offset + i * n->size_bytes + leaf->offset_bytes, leaf->count);
      free(whole);
    }
    free(item);
  }
}

static bool read_field_count(reader *r, uint64_t *count, bool *has_shape)
{
  *count = 1;
  *has_shape = accept(r, ",") && *r->at != ')';
  return !*has_shape || read_count(r, count);
}

static bool read_nested(reader *r, const char *path, uint64_t offset, uint32_t depth,
                        uint64_t *size_bytes)
{
  tool_leaves *outer = r->leaves;
  nested n = { 0 };
  r->leaves = &n.leaves;
  bool ok = read_fields(r, depth + 1, &n.size_bytes) && read_field_count(r, &n.count, &n.has_shape);
  r->leaves = outer;
  *size_bytes = n.count * n.size_bytes;
  if (ok && *size_bytes > MOST_STRUCT_BYTES) ok = too_large(r);
  if (ok) place_leaves(r, &n, path, offset);
  tool_destroy_leaves(&n.leaves);
  return ok;
}

/* A type and, if one follows, its shape. */
static bool read_field(reader *r, const char *path, uint64_t offset, uint32_t depth,
                       uint64_t *size_bytes)
{
  const char *text = NULL;
  size_t length = 0;
  uint64_t count;
  bool has_shape;
  if (*r->at == '[') return read_nested(r, path, offset, depth, size_bytes);
  if (!read_string(r, "the type of a field as a string, such as '<f4'", &text, &length) ||
      !read_field_count(r, &count, &has_shape))
    return false;
  if (is_padding(text, length, size_bytes)) return true;
  kjit_type type = find_numpy_type(text, length);
  if (type == KJIT_ANY)
    return tool_fail(r->error, TOOL_EXIT_FILE,
                     "%s: type '%.*s' of field '%s' is not supported: expected |b1, i1 to i8, u1 "
                     "to u8, f2, f4, f8, c8 or c16, little-endian",
                     r->path, (int)length, text, path);
  tool_add_leaf(r->leaves, path, type, offset, count);
  *size_bytes = count * tool_elements[type].size_bytes;
  return true;
}

/* Paths and offsets are those in this struct. */
static bool read_fields(reader *r, uint32_t depth, uint64_t *size_bytes)
{
  *size_bytes = 0;
  if (depth > MOST_NESTED) return too_large(r);
  if (!accept(r, "[")) return bad_header(r, "'[' before the fields");
  while (!accept(r, "]")) {
    const char *name;
    size_t length;
    uint64_t bytes = 0;
    if (!accept(r, "(") || !read_string(r, "the name of a field", &name, &length) ||
        !accept(r, ","))
      return bad_header(r, "(name, type) of a field");
    skip_blanks(r);
    char *path = tool_copy_text(name, length);
    bool ok = read_field(r, path, *size_bytes, depth, &bytes);
    free(path);
    if (!ok) return false;
    *size_bytes += bytes;
    if (*size_bytes > MOST_STRUCT_BYTES) return too_large(r);
    if (!accept(r, ")")) return bad_header(r, "')' after a field");
    if (!accept(r, ",") && *r->at != ']') return bad_header(r, "',' or ']' after a field");
  }
  return true;
}

static bool read_structure(reader *r)
{
  r->has_type = true;
  r->shape.element = KJIT_U8;
  if (!read_fields(r, 0, &r->element_bytes)) return false;
  if (r->leaves->count) return true;
  return tool_fail(r->error, TOOL_EXIT_FILE, "%s: a struct without fields", r->path);
}

/* Bytes are one dimension more. */
static bool add_bytes(reader *r)
{
  if (!r->element_bytes) return true;
  if (r->shape.rank == TOOL_MAX_RANK)
    return tool_fail(r->error, TOOL_EXIT_FILE, "%s: an array of structs has at most %d dimensions",
                     r->path, TOOL_MAX_RANK - 1);
  r->shape.lanes = (uint32_t)r->element_bytes;
  r->shape.extents[r->shape.rank++] = (int64_t)r->element_bytes;
  return true;
}

static bool read_entry(reader *r)
{
  static const struct {
    const char *key;
    bool (*read)(reader *r);
  } entries[] = { { "descr", read_type },
                  { "fortran_order", read_order },
                  { "shape", read_shape } };
  const char *key;
  size_t length;
  if (!read_string(r, "a key", &key, &length)) return false;
  if (!accept(r, ":")) return bad_header(r, "':' after a key");
  for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
    if (strlen(entries[i].key) == length && !memcmp(entries[i].key, key, length)) {
      if (r->seen & 1u << i)
        return tool_fail(r->error, TOOL_EXIT_FILE, "%s: broken .npy header: '%s' is there twice",
                         r->path, entries[i].key);
      r->seen |= 1u << i;
      return entries[i].read(r);
    }
  return tool_fail(
    r->error, TOOL_EXIT_FILE,
    "%s: broken .npy header: unknown key '%.*s'; expected descr, fortran_order and shape", r->path,
    length > 40 ? 40 : (int)length, key);
}

static bool read_dictionary(reader *r)
{
  if (!accept(r, "{")) return bad_header(r, "'{'");
  while (!accept(r, "}")) {
    if (!read_entry(r)) return false;
    if (accept(r, ",")) continue;
    if (!accept(r, "}")) return bad_header(r, "',' or '}'");
    break;
  }
  const char *missing = !r->has_type    ? "descr"
                        : !r->has_order ? "fortran_order"
                        : !r->has_shape ? "shape"
                                        : NULL;
  return !missing || tool_fail(r->error, TOOL_EXIT_FILE, "%s: broken .npy header: '%s' is missing",
                               r->path, missing);
}

static bool compare_sizes(reader *r)
{
  uint64_t expected, found = r->size_bytes - r->data_offset;
  if (!tool_shape_bytes(&r->shape, &expected))
    return tool_fail(r->error, TOOL_EXIT_FILE,
                     "%s: broken .npy header: the shape's size in bytes does not fit in 63 bits",
                     r->path);
  if (expected == found) return true;
  return tool_fail(r->error, TOOL_EXIT_FILE,
                   "%s: the .npy header promises %llu bytes of data, the file has %llu%s", r->path,
                   (unsigned long long)expected, (unsigned long long)found,
                   found < expected ? ": it is truncated" : "");
}

/* Any byte but 0 is true to numpy; in the kernel IR a bool is 0 or 1. */
static void normalize_bools(const tool_array *array)
{
  uint8_t *bytes = array->memory->data;
  for (uint64_t i = 0; i < array->memory->size_bytes; i++) bytes[i] = bytes[i] != 0;
}

static bool read_array(reader *r, tool_array *array)
{
  if (!open_file(r) || !read_header_text(r) || !read_dictionary(r) || !add_bytes(r) ||
      !compare_sizes(r))
    return false;
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

bool tool_read_npy(tool_error *error, const char *path, tool_array *array, tool_leaves *leaves)
{
  reader r = { .error = error, .path = path, .file = -1, .leaves = leaves };
  bool ok = read_array(&r, array);
  if (r.file >= 0) close(r.file);
  free(r.header);
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
    if (element != array->element) { /* bf16 */
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
  bool is_long = length > UINT16_MAX; /* of structs of many fields: version 2.0 */
  size_t size = PREAMBLE_BYTES + (is_long ? 4 : 2);
  memcpy(preamble, magic, MAGIC_BYTES);
  preamble[MAGIC_BYTES] = is_long ? 2 : 1;
  for (size_t i = PREAMBLE_BYTES; i < size; i++)
    preamble[i] = (uint8_t)(length >> 8 * (i - PREAMBLE_BYTES));
  bool ok = fwrite(preamble, 1, size, file) == size && fwrite(header, 1, length, file) == length;
  free(header);
  return ok;
}

bool tool_write_npy(tool_error *error, const char *path, const tool_array *array)
{
  kjit_type element = tool_elements[array->element].numpy ? array->element : KJIT_F32;
  FILE *file = fopen(path, "wb");
  if (!file) return tool_fail(error, TOOL_EXIT_FILE, "%s: %s", path, strerror(errno));
  bool ok = write_header(file, array, element) && write_elements(file, array, element);
  ok &= fclose(file) == 0;
  return ok || tool_fail(error, TOOL_EXIT_FILE, "%s: writing failed: %s", path, strerror(errno));
}
