#include <driver/npy_header.h>

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Limits of a struct. The limit of its size also limits how many numbers it has. The total length
 * of the paths of all numbers, such as "pos.x", has a limit of its own, because names in a header
 * may be long, and the path of each number repeats the names of all enclosing fields. */
enum { MOST_NESTED = 32, MOST_STRUCT_BYTES = 64 * 1024, MOST_PATH_BYTES = 1 << 24 };

typedef struct reader {
  tool_error *error;
  const tool_npy_header *header;
  const char *at;
  tool_shape shape;
  tool_leaves *leaves; /* numbers of structs */
  uint64_t element_bytes, path_bytes;
  uint32_t seen; /* a bit for each key */
} reader;

/* ---- tokens ---- */

static bool bad_header(reader *r, const char *what)
{
  int length = (int)strcspn(r->at, "\n");
  return tool_fail(r->error, TOOL_EXIT_FILE,
                   "%s: broken .npy header at byte %d: expected %s, found '%.*s'", r->header->path,
                   (int)(r->at - r->header->text), what, length > 30 ? 30 : length, r->at);
}

static void skip_blanks(reader *r)
{
  while (*r->at == ' ' || *r->at == '\t' || *r->at == '\n') r->at++;
}

static bool accept(reader *r, const char *text)
{
  skip_blanks(r);
  if (strncmp(r->at, text, strlen(text)) != 0) return false;
  r->at += strlen(text);
  return true;
}

/* Rejects Python's escapes, line ends and non-ASCII characters, which do not occur in files that
 * kjit can use. */
static bool read_string(reader *r, const char *what, const char **start, size_t *length)
{
  skip_blanks(r);
  char quote = *r->at;
  if (quote != '\'' && quote != '"') return bad_header(r, what);
  const char *end = r->at + 1;
  while (*end != quote && *end >= ' ' && *end < 0x7f && *end != '\\') end++;
  if (*end != quote) return bad_header(r, what);
  *start = r->at + 1;
  *length = (size_t)(end - *start);
  r->at = end + 1;
  return true;
}

static bool read_extent(reader *r, int64_t *extent)
{
  skip_blanks(r);
  const char *at = r->at;
  bool fits = true;
  if (!isdigit((unsigned char)*at) || (*at == '0' && isdigit((unsigned char)at[1])))
    return bad_header(r, "an extent of the shape");
  for (*extent = 0; isdigit((unsigned char)*at); at++)
    fits = fits && !__builtin_mul_overflow(*extent, 10, extent) &&
           !__builtin_add_overflow(*extent, *at - '0', extent);
  if (!fits)
    return tool_fail(r->error, TOOL_EXIT_FILE,
                     "%s: broken .npy header: extent %.*s does not fit in 63 bits", r->header->path,
                     (int)(at - r->at > 40 ? 40 : at - r->at), r->at);
  /* accepts the suffix of numbers such as 3L, which Python 2 wrote */
  r->at = *at == 'L' && r->header->version < 3 ? at + 1 : at;
  return true;
}

/* Reads a tuple such as "(3, 2)", "(3,)" or "()". A number in parentheses is not a tuple. Stores
 * the first `most` extents. Returns the number of extents, or -1 after an error. */
static int64_t read_tuple(reader *r, int64_t *extents, uint32_t most)
{
  int64_t count = 0, extent;
  while (!accept(r, ")")) {
    if (!read_extent(r, &extent)) return -1;
    if (count < most) extents[count] = extent;
    count++;
    if (accept(r, ",")) continue;
    if (count > 1 && accept(r, ")")) return count;
    bad_header(r,
               *r->at == ')' ? "',' after the only extent of a shape" : "',' or ')' in the shape");
    return -1;
  }
  return count;
}

/* ---- types ---- */

/* Finds a NumPy type. "=" means the machine's byte order, little-endian; for a single byte any
 * order is valid. */
static kjit_type find_numpy_type(const char *text, size_t length)
{
  for (kjit_type type = KJIT_BOOL; length && type < KJIT_SCALAR_COUNT; type++) {
    const char *name = tool_elements[type].numpy;
    if (!name || strlen(name) != length || memcmp(name + 1, text + 1, length - 1) != 0) continue;
    bool is_byte = tool_elements[type].size_bytes == 1;
    if (memchr(is_byte ? "<=|>" : "<=", text[0], is_byte ? 4 : 2)) return type;
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
      "%s: structured arrays are not supported: expected one scalar type, found %.60s",
      r->header->path, r->at);
  if (!read_string(r, "the type as a string, such as '<f4'", &text, &length)) return false;
  r->shape.element = find_numpy_type(text, length);
  int shown = length > 40 ? 40 : (int)length;
  if (r->shape.element != KJIT_ANY) return true;
  if (length && *text == '>')
    return tool_fail(r->error, TOOL_EXIT_FILE,
                     "%s: type '%.*s' is big-endian; kjit reads little-endian arrays: convert it "
                     "in numpy with astype('<%.*s')",
                     r->header->path, shown, text, shown - 1, text + 1);
  if (memchr(text, 'O', length))
    return tool_fail(r->error, TOOL_EXIT_FILE,
                     "%s: object arrays ('%.*s') are not supported: expected bool, integer, float "
                     "or complex elements",
                     r->header->path, shown, text);
  return tool_fail(
    r->error, TOOL_EXIT_FILE,
    "%s: type '%.*s' is not supported: expected |b1, i1 to i8, u1 to u8, f2, f4, f8, c8 or c16",
    r->header->path, shown, text);
}

/* ---- structs: a list of (name, type) and (name, type, shape) ---- */

static bool read_fields(reader *r, uint32_t depth, uint64_t *size_bytes);

static bool too_large(reader *r)
{
  return tool_fail(r->error, TOOL_EXIT_FILE,
                   "%s: a struct has more than %d bytes or nests more than %d levels deep",
                   r->header->path, MOST_STRUCT_BYTES, MOST_NESTED);
}

static bool add_leaf(reader *r, const char *path, kjit_type element, uint64_t offset,
                     uint64_t count)
{
  r->path_bytes += strlen(path) + 1;
  if (r->path_bytes > MOST_PATH_BYTES)
    return tool_fail(r->error, TOOL_EXIT_FILE,
                     "%s: the names of a struct's fields have more than %d bytes together",
                     r->header->path, MOST_PATH_BYTES);
  tool_add_leaf(r->leaves, path, element, offset, count);
  return true;
}

/* Reads what may follow a type: ", (3, 2)" or ", 3". NumPy treats a shape of 1 without parentheses
 * as no shape. */
static bool read_count(reader *r, uint64_t *count, bool *has_shape)
{
  int64_t extents[TOOL_MAX_RANK], rank = 1;
  *count = 1;
  *has_shape = false;
  if (!accept(r, ",")) return true;
  skip_blanks(r);
  if (*r->at == ')') return true;
  bool is_tuple = accept(r, "(");
  if (is_tuple ? (rank = read_tuple(r, extents, TOOL_MAX_RANK)) < 0 : !read_extent(r, extents))
    return false;
  if (rank > TOOL_MAX_RANK)
    return tool_fail(r->error, TOOL_EXIT_FILE, "%s: a field has more than %d dimensions",
                     r->header->path, TOOL_MAX_RANK);
  for (int64_t d = 0; d < rank; d++) {
    if (extents[d] < 1 || extents[d] > MOST_STRUCT_BYTES) return too_large(r);
    *count *= (uint64_t)extents[d];
    if (*count > MOST_STRUCT_BYTES) return too_large(r);
  }
  *has_shape = is_tuple ? rank > 0 : *count > 1;
  if (is_tuple) accept(r, ",");
  return true;
}

/* Parses "|V4", padding bytes between fields. Five digits are enough for the largest struct. */
static bool is_padding(const char *text, size_t length, uint64_t *bytes)
{
  if (length < 3 || length > 7 || text[0] != '|' || text[1] != 'V') return false;
  *bytes = 0;
  for (size_t i = 2; i < length; i++) {
    if (!isdigit((unsigned char)text[i])) return false;
    *bytes = *bytes * 10 + (uint64_t)(text[i] - '0');
  }
  return text[2] != '0' || length == 3;
}

typedef struct nested {
  tool_leaves leaves;
  uint64_t size_bytes, count;
  bool has_shape; /* true for an array field; its paths have indices even if the array has one
                     element */
} nested;

/* Adds the numbers of a nested struct for each of its repetitions in the outer struct. */
static bool place_leaves(reader *r, const nested *n, const char *path, uint64_t offset)
{
  bool ok = true;
  for (uint64_t i = 0; ok && i < n->count; i++) {
    char *item = n->has_shape ? tool_format("%s[%llu]", path, (unsigned long long)i)
                              : tool_copy_text(path, strlen(path));
    for (size_t k = 0; ok && k < n->leaves.count; k++) {
      const tool_leaf *leaf = &n->leaves.items[k];
      char *whole = tool_format("%s.%s", item, leaf->path);
      ok = add_leaf(r, whole, leaf->element, offset + i * n->size_bytes + leaf->offset_bytes,
                    leaf->count);
      free(whole);
    }
    free(item);
  }
  return ok;
}

/* Each number has at least one byte, so the limit of a struct's size also limits how many numbers
 * it has. */
static bool read_nested(reader *r, const char *path, uint64_t offset, uint32_t depth,
                        uint64_t *size_bytes)
{
  tool_leaves *outer = r->leaves;
  nested n = { 0 };
  r->leaves = &n.leaves;
  bool ok = read_fields(r, depth + 1, &n.size_bytes) && read_count(r, &n.count, &n.has_shape);
  r->leaves = outer;
  *size_bytes = n.count * n.size_bytes;
  if (ok && offset + *size_bytes > MOST_STRUCT_BYTES) ok = too_large(r);
  ok = ok && place_leaves(r, &n, path, offset);
  tool_destroy_leaves(&n.leaves);
  return ok;
}

/* Returns whether the name is valid for a struct field in the kernel IR. */
static bool is_name(const char *text)
{
  if (!isalpha((unsigned char)*text) && *text != '_') return false;
  while (isalnum((unsigned char)*text) || *text == '_') text++;
  return !*text;
}

static bool has_shape_next(reader *r)
{
  const char *at = r->at;
  bool is_next = accept(r, ",");
  skip_blanks(r);
  is_next = is_next && *r->at != ')';
  r->at = at;
  return is_next;
}

/* Reads a type and its optional shape. */
static bool read_field(reader *r, const char *path, uint64_t offset, uint32_t depth,
                       uint64_t *size_bytes)
{
  const char *text = NULL;
  size_t length = 0;
  uint64_t count, bytes;
  bool has_shape;
  if (*r->at != '[') {
    if (!read_string(r, "the type of a field as a string, such as '<f4'", &text, &length))
      return false;
    bool is_gap = is_padding(text, length, &bytes);
    /* NumPy either rejects a padding field without bytes that has a shape, or reads it as bytes, so
     * this function rejects it */
    if (is_gap && !bytes && has_shape_next(r))
      return tool_fail(r->error, TOOL_EXIT_FILE,
                       "%s: a field has the type '|V0' and a shape, so it has no bytes",
                       r->header->path);
    if (!read_count(r, &count, &has_shape)) return false;
    if (is_gap) {
      *size_bytes = count * bytes;
      return true;
    }
  }
  if (!is_name(path))
    return tool_fail(r->error, TOOL_EXIT_FILE,
                     "%s: the field name '%.40s' is not a valid kernel IR name", r->header->path,
                     path);
  if (!text) return read_nested(r, path, offset, depth, size_bytes);
  kjit_type type = find_numpy_type(text, length);
  if (type == KJIT_ANY)
    return tool_fail(r->error, TOOL_EXIT_FILE,
                     "%s: type '%.*s' of field '%.40s' is not supported: expected |b1, i1 to i8, "
                     "u1 to u8, f2, f4, f8, c8 or c16, little-endian",
                     r->header->path, length > 40 ? 40 : (int)length, text, path);
  *size_bytes = count * tool_elements[type].size_bytes;
  return offset + *size_bytes > MOST_STRUCT_BYTES ? too_large(r)
                                                  : add_leaf(r, path, type, offset, count);
}

typedef struct names {
  char **items;
  size_t count, capacity;
} names;

static void add_name(names *list, char *name)
{
  if (list->count == list->capacity) {
    list->capacity = list->capacity ? 2 * list->capacity : 16;
    char **grown = tool_allocate(list->capacity * sizeof *grown);
    if (list->count) memcpy(grown, list->items, list->count * sizeof *grown);
    free(list->items);
    list->items = grown;
  }
  list->items[list->count++] = name;
}

static int compare_names(const void *a, const void *b)
{
  return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Checks that names are unique. Padding has an empty name, which may repeat. */
static bool check_names(reader *r, names *list)
{
  if (list->count) qsort(list->items, list->count, sizeof *list->items, compare_names);
  for (size_t i = 1; i < list->count; i++)
    if (*list->items[i] && !strcmp(list->items[i - 1], list->items[i]))
      return tool_fail(r->error, TOOL_EXIT_FILE,
                       "%s: a struct has two fields with the name '%.40s'", r->header->path,
                       list->items[i]);
  return true;
}

static bool read_one_field(reader *r, uint32_t depth, names *list, uint64_t *size_bytes)
{
  const char *name;
  size_t length;
  uint64_t bytes = 0;
  if (!accept(r, "(")) return bad_header(r, "(name, type) of a field");
  if (!read_string(r, "the name of a field", &name, &length)) return false;
  if (!accept(r, ",")) return bad_header(r, "',' after the name of a field");
  skip_blanks(r);
  char *path = tool_copy_text(name, length);
  add_name(list, path);
  if (!read_field(r, path, *size_bytes, depth, &bytes)) return false;
  *size_bytes +=
    bytes; /* the sum cannot overflow, because is_padding and read_field limit both of its terms */
  if (*size_bytes > MOST_STRUCT_BYTES) return too_large(r);
  return accept(r, ")") || bad_header(r, "')' after a field");
}

/* Paths and offsets are relative to this struct. */
static bool read_fields(reader *r, uint32_t depth, uint64_t *size_bytes)
{
  names list = { 0 };
  bool ok = true;
  *size_bytes = 0;
  if (depth > MOST_NESTED) return too_large(r);
  if (!accept(r, "[")) return bad_header(r, "'[' before the fields");
  while (ok && !accept(r, "]")) {
    ok = read_one_field(r, depth, &list, size_bytes);
    if (ok && !accept(r, ",") && *r->at != ']') ok = bad_header(r, "',' or ']' after a field");
  }
  ok = ok && check_names(r, &list);
  if (ok && !r->leaves->count)
    ok = tool_fail(r->error, TOOL_EXIT_FILE, "%s: a struct has no fields", r->header->path);
  for (size_t i = 0; i < list.count; i++) free(list.items[i]);
  free(list.items);
  return ok;
}

static bool read_structure(reader *r)
{
  r->shape.element = KJIT_U8;
  return read_fields(r, 0, &r->element_bytes);
}

/* ---- the dictionary ---- */

static bool read_order(reader *r)
{
  r->shape.is_fortran = accept(r, "True");
  return r->shape.is_fortran || accept(r, "False") || bad_header(r, "True or False");
}

static bool read_shape(reader *r)
{
  if (!accept(r, "(")) return bad_header(r, "the shape, a tuple");
  int64_t rank = read_tuple(r, r->shape.extents, TOOL_MAX_RANK);
  if (rank > TOOL_MAX_RANK)
    return tool_fail(r->error, TOOL_EXIT_FILE, "%s: the array has more than %d dimensions",
                     r->header->path, TOOL_MAX_RANK);
  r->shape.rank = (uint32_t)(rank < 0 ? 0 : rank);
  return rank >= 0;
}

static const struct {
  const char *key;
  bool (*read)(reader *r);
} entries[] = { { "descr", read_type }, { "fortran_order", read_order }, { "shape", read_shape } };
enum { ENTRY_COUNT = sizeof entries / sizeof *entries };

static bool read_entry(reader *r)
{
  const char *key;
  size_t length;
  if (!read_string(r, "a key", &key, &length)) return false;
  if (!accept(r, ":")) return bad_header(r, "':' after a key");
  for (size_t i = 0; i < ENTRY_COUNT; i++)
    if (strlen(entries[i].key) == length && !memcmp(entries[i].key, key, length)) {
      if (r->seen & 1u << i)
        return tool_fail(r->error, TOOL_EXIT_FILE, "%s: broken .npy header: '%s' occurs twice",
                         r->header->path, entries[i].key);
      r->seen |= 1u << i;
      return entries[i].read(r);
    }
  return tool_fail(
    r->error, TOOL_EXIT_FILE,
    "%s: broken .npy header: unknown key '%.*s'; expected descr, fortran_order and shape",
    r->header->path, length > 40 ? 40 : (int)length, key);
}

/* Rejects blanks at the beginning of a line outside of brackets, as Python does. */
static bool read_dictionary(reader *r)
{
  if (*r->at != '{') return bad_header(r, "'{'");
  r->at++;
  while (!accept(r, "}")) {
    if (!read_entry(r)) return false;
    if (accept(r, ",")) continue;
    if (!accept(r, "}")) return bad_header(r, "',' or '}'");
    break;
  }
  for (size_t i = 0; i < ENTRY_COUNT; i++)
    if (!(r->seen & 1u << i))
      return tool_fail(r->error, TOOL_EXIT_FILE, "%s: broken .npy header: '%s' is missing",
                       r->header->path, entries[i].key);
  const char *behind = r->at, *end = r->header->text + r->header->text_bytes;
  skip_blanks(r);
  if (r->at < end) return bad_header(r, "nothing after the '}'");
  /* Python treats blanks at the beginning of the last line as indentation */
  return !memchr(behind, '\n', (size_t)(end - behind)) || end[-1] == '\n' ||
         bad_header(r, "no spaces after the last line");
}

/* Adds a dimension for the bytes in a struct. */
static bool add_bytes(reader *r)
{
  if (!r->element_bytes) return true;
  if (r->shape.rank == TOOL_MAX_RANK)
    return tool_fail(r->error, TOOL_EXIT_FILE, "%s: an array of structs has at most %d dimensions",
                     r->header->path, TOOL_MAX_RANK - 1);
  r->shape.lanes = (uint32_t)r->element_bytes;
  r->shape.extents[r->shape.rank++] = (int64_t)r->element_bytes;
  return true;
}

bool tool_parse_npy_header(tool_error *error, const tool_npy_header *header, tool_shape *shape,
                           tool_leaves *leaves)
{
  reader r = { .error = error, .header = header, .at = header->text, .leaves = leaves };
  if (!read_dictionary(&r) || !add_bytes(&r)) return false;
  *shape = r.shape;
  return true;
}
