#define _GNU_SOURCE
#include <driver/arrow_file.h>

#include <arrow/reader.h>
#include <dlfcn.h>
#include <driver/cells.h>
#include <driver/element.h>
#include <driver/similar.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- names ---- */

const char *tool_split_arrow(const char *text, const char **column)
{
  static const char *const endings[] = {
    ".parquet", ".pq", ".arrow", ".arrows", ".feather", ".ipc"
  };
  *column = NULL;
  for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
    const size_t own = strlen(endings[i]);
    for (const char *at = text; *at && (at = strstr(at + 1, endings[i]));) {
      if (at[own] && at[own] != ':') continue;
      if (at[own]) *column = at + own + 1;
      return at + own;
    }
  }
  return NULL;
}

bool tool_is_arrow(const char *bytes, size_t size)
{
  return (size >= 8 && !memcmp(bytes, "PAR1", 4)) || (size >= 8 && !memcmp(bytes, "ARROW1", 6)) ||
         (size >= 8 && !memcmp(bytes, "\xff\xff\xff\xff", 4));
}

/* ---- the module ---- */

/* Returns the module's path, in a folder next to libkjit, or NULL if the folder is unknown. */
static char *module_path(void)
{
  Dl_info info;
  void *address = dlsym(RTLD_DEFAULT, "kjit_create_context");
  if (!address || !dladdr(address, &info) || !info.dli_fname) return NULL;
  char *library = realpath(info.dli_fname, NULL), *slash = library ? strrchr(library, '/') : NULL;
  if (!slash) {
    free(library);
    return NULL;
  }
  char *path = tool_format("%.*s/kjit-%d.%d.%d/kjit-arrow.so", (int)(slash - library), library,
                           KJIT_VERSION_MAJOR, KJIT_VERSION_MINOR, KJIT_VERSION_PATCH);
  free(library);
  return path;
}

/* Loads the module. It stays loaded until the program ends. */
static const kjit_arrow_reader *load_module(tool_error *error, const char *file)
{
  char *path = module_path();
  struct stat status;
  if (!path || stat(path, &status) != 0) {
    tool_fail(
      error, TOOL_EXIT_FILE,
      "%s: kjit-run reads Parquet and Arrow files with the module %s, which is not installed. "
      "Each version of Arrow needs its own module: scripts/make-arrow-module.sh compiles it, "
      "see docs/installing.md. DuckDB's program converts such files: duckdb -csv -c "
      "\"FROM 'FILE.parquet'\" | kjit-run ... @-:COLUMN",
      file, path ? path : "kjit-arrow.so");
    free(path);
    return NULL;
  }
  void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  const kjit_arrow_reader *reader = module ? dlsym(module, "kjit_arrow") : NULL;
  const char *problem = module ? "it is a module of another version of kjit" : dlerror();
  if (!reader || reader->interface_version != KJIT_ARROW_INTERFACE) {
    tool_fail(error, TOOL_EXIT_DEVICE, "%s: cannot load %s: %s", file, path, problem);
    reader = NULL;
  }
  free(path);
  return reader;
}

/* ---- columns ---- */

typedef struct source {
  tool_error *error;
  const char *path;
  bool is_input; /* true if the file is standard input or a pipe */
  const kjit_arrow_reader *reader;
  void *file;
  const char *column; /* name of the chosen column */
  struct ArrowArrayStream stream;
  struct ArrowSchema schema;
  struct ArrowArray *chunks; /* owned */
  size_t count, capacity;
} source;

static bool fail_column(const source *s, const char *column)
{
  enum { SHOWN = 12 };
  const uint64_t count = s->reader->column_count(s->file);
  tool_similar similar = { .name = column ? column : "", .length = column ? strlen(column) : 0 };
  for (uint64_t i = 0; column && i < count; i++)
    tool_offer_name(&similar, s->reader->column_name(s->file, i));
  char *meant = tool_similar_text(&similar), *list = tool_copy_text("", 0);
  for (uint64_t i = 0; (!column || !*meant) && i < count && i < SHOWN; i++) {
    const char *name = s->reader->column_name(s->file, i);
    char *shown = tool_shown_text(name, strlen(name)),
         *longer = tool_format("%s%s%s", list, i ? ", " : "; the columns are ", shown);
    free(shown);
    free(list);
    list = longer;
  }
  const char *more = count > SHOWN && *list ? " ..." : "";
  if (column)
    tool_fail(s->error, TOOL_EXIT_FILE, "%s: there is no column '%s'%s%s%s", s->path, column, meant,
              list, more);
  else
    tool_fail(s->error, TOOL_EXIT_FILE, "%s: expected the name of a column, as in @%s:NAME%s%s",
              s->path, s->is_input ? "-" : s->path, list, more);
  free(meant);
  free(list);
  return false;
}

/* Finds the column with the name, or the only column. */
static bool choose_column(source *s, const char *column, const char *usual, uint64_t *chosen)
{
  const uint64_t count = s->reader->column_count(s->file);
  const char *wanted = column ? column : usual ? usual : "";
  uint64_t found = 0;
  for (uint64_t i = 0; i < count; i++) {
    if (strcmp(s->reader->column_name(s->file, i), wanted) != 0) continue;
    *chosen = i;
    found++;
  }
  if (!found && !column && count == 1) {
    *chosen = 0;
    found = 1;
  }
  if (!found) return fail_column(s, column);
  s->column = s->reader->column_name(s->file, *chosen);
  return found == 1 || tool_fail(s->error, TOOL_EXIT_FILE, "%s: %llu columns have the name '%s'",
                                 s->path, (unsigned long long)found, wanted);
}

static bool fail_file(const source *s, char *message)
{
  tool_fail(s->error, TOOL_EXIT_FILE, "%s: %s", s->path, message ? message : "no memory");
  free(message);
  return false;
}

static bool read_chunks(source *s)
{
  char *message = NULL;
  for (;;) {
    if (s->count == s->capacity) {
      const size_t capacity = s->capacity ? 2 * s->capacity : 16;
      struct ArrowArray *chunks = realloc(s->chunks, capacity * sizeof *chunks);
      if (!chunks) return fail_file(s, NULL);
      s->chunks = chunks;
      s->capacity = capacity;
    }
    struct ArrowArray *chunk = &s->chunks[s->count];
    if (s->stream.get_next(&s->stream, chunk)) {
      const char *text = s->stream.get_last_error(&s->stream);
      message = text ? tool_copy_text(text, strlen(text)) : NULL;
      return fail_file(s, message);
    }
    if (!chunk->release) return true;
    s->count++;
  }
}

static bool read_source(source *s, const char *bytes, size_t size, const char *column,
                        const char *usual)
{
  char *message = NULL;
  uint64_t chosen = 0;
  s->file = s->reader->open(s->path, bytes, size, &message);
  if (!s->file) return fail_file(s, message);
  if (!choose_column(s, column, usual, &chosen)) return false;
  if (s->reader->read(s->file, chosen, &s->stream, &message)) return fail_file(s, message);
  if (s->stream.get_schema(&s->stream, &s->schema)) return fail_file(s, NULL);
  return read_chunks(s);
}

static void close_source(source *s)
{
  for (size_t i = 0; i < s->count; i++) s->chunks[i].release(&s->chunks[i]);
  free(s->chunks);
  if (s->schema.release) s->schema.release(&s->schema);
  if (s->stream.release) s->stream.release(&s->stream);
  if (s->file) s->reader->close(s->file);
}

/* ---- elements ---- */

/* How the elements in a column are stored. */
typedef struct column_type {
  kjit_type element;                          /* KJIT_ANY means texts */
  bool is_bits, is_null, is_decimal, is_long; /* is_long: the texts have 64-bit offsets */
  /* index type of dictionary-encoded texts; KJIT_ANY means texts without a dictionary */
  kjit_type index;
  tool_date date;
  double scale; /* for decimals: the power of ten by which the integers are divided */
} column_type;

static kjit_type number_type(const char *format)
{
  static const struct {
    char format;
    kjit_type type;
  } types[] = { { 'c', KJIT_I8 },  { 'C', KJIT_U8 },  { 's', KJIT_I16 }, { 'S', KJIT_U16 },
                { 'i', KJIT_I32 }, { 'I', KJIT_U32 }, { 'l', KJIT_I64 }, { 'L', KJIT_U64 },
                { 'e', KJIT_F16 }, { 'f', KJIT_F32 }, { 'g', KJIT_F64 } };
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (format[0] == types[i].format && !format[1]) return types[i].type;
  return KJIT_ANY;
}

static bool is_text(const char *format) { return !strcmp(format, "u") || !strcmp(format, "U"); }

/* Reads the format of dates, of timestamps in UTC or without a time zone, and of durations. Returns
 * false for other formats. */
static bool read_date(const char *format, column_type *type)
{
  static const char letters[] = "smun";
  const bool is_timestamp = !strncmp(format, "ts", 2), is_duration = !strncmp(format, "tD", 2);
  if (!strcmp(format, "tdD") || !strcmp(format, "tdm")) {
    const bool is_days = format[2] == 'D';
    type->date.unit = is_days ? TOOL_DATE_DAYS : TOOL_DATE_MILLISECONDS;
    type->date.kind = TOOL_TIMESTAMP;
    type->element = is_days ? KJIT_I32 : KJIT_I64;
    return true;
  }
  if ((!is_timestamp && !is_duration) || !format[2] || !strchr(letters, format[2])) return false;
  if (is_timestamp && strcmp(format + 3, ":") != 0 && strcmp(format + 3, ":UTC") != 0) return false;
  type->date.unit = (tool_date_unit)(TOOL_DATE_SECONDS + (strchr(letters, format[2]) - letters));
  type->date.kind = is_timestamp ? TOOL_TIMESTAMP : TOOL_DURATION;
  type->element = KJIT_I64;
  return true;
}

/* Reads the format of a 128-bit decimal. Only decimals with at most 15 digits are accepted, because
 * different decimals are then different floats. */
static bool read_decimal(const char *format, column_type *type)
{
  enum { MOST_DIGITS = 15 };
  int digits = 0, scale = 0, bits = 128;
  if (sscanf(format, "d:%d,%d,%d", &digits, &scale, &bits) < 2) return false;
  if (bits != 128 || digits > MOST_DIGITS || scale < 0 || scale > MOST_DIGITS) return false;
  *type = (column_type){ .element = KJIT_F64, .is_decimal = true, .scale = pow(10, scale) };
  return true;
}

static bool find_type(const source *s, column_type *type)
{
  const char *format = s->schema.format;
  *type = (column_type){ .element = number_type(format), .index = KJIT_ANY };
  if (s->schema.dictionary) {
    const char *inner = s->schema.dictionary->format;
    type->index = number_type(format);
    type->element = KJIT_ANY;
    type->is_long = *inner == 'U';
    if (is_text(inner) && type->index != KJIT_ANY) return true;
    format = inner;
  } else if (type->element != KJIT_ANY) return true;
  if (!strcmp(format, "b")) {
    type->element = KJIT_BOOL;
    type->is_bits = true;
    return true;
  }
  if (!strcmp(format, "n")) {
    type->element = KJIT_F64;
    type->is_null = true;
    return true;
  }
  type->is_long = *format == 'U';
  if (!s->schema.dictionary &&
      (is_text(format) || read_decimal(format, type) || read_date(format, type)))
    return true;
  return tool_fail(
    s->error, TOOL_EXIT_FILE,
    "%s: column '%s' has the Arrow type '%s', but kjit-run reads only columns of "
    "bools, integers, floats, texts, dates, timestamps in UTC, durations, and decimals "
    "with up to 15 digits",
    s->path, s->column, s->schema.format);
}

static bool bit(const void *bits, int64_t at)
{
  return ((const uint8_t *)bits)[at >> 3] >> (at & 7) & 1;
}

static bool is_missing(const column_type *type, const struct ArrowArray *chunk, int64_t at)
{
  if (type->is_null) return true;
  return chunk->null_count != 0 && chunk->n_buffers && chunk->buffers[0] &&
         !bit(chunk->buffers[0], at);
}

/* Returns the number with the index in a chunk's buffers. */
static tool_number number_at(const column_type *type, const struct ArrowArray *chunk, int64_t at)
{
  if (type->is_bits)
    return (tool_number){ .kind = TOOL_NUMBER_BOOL, .i = bit(chunk->buffers[1], at) };
  if (type->is_decimal) { /* 15 digits fit into the lower 64 bits */
    int64_t low;
    memcpy(&low, (const char *)chunk->buffers[1] + 16 * at, sizeof low);
    return tool_make_real((double)low / type->scale);
  }
  const size_t size = tool_elements[type->element].size_bytes;
  return tool_load(type->element, (const char *)chunk->buffers[1] + size * (size_t)at);
}

/* Returns the text with the index in the buffers of an array of texts, and its length. */
static const char *text_at(const struct ArrowArray *texts, bool is_long, int64_t at, size_t *length)
{
  int64_t first, end;
  if (is_long) {
    const int64_t *offsets = texts->buffers[1];
    first = offsets[at];
    end = offsets[at + 1];
  } else {
    const int32_t *offsets = texts->buffers[1];
    first = offsets[at];
    end = offsets[at + 1];
  }
  *length = (size_t)(end - first);
  return *length ? (const char *)texts->buffers[2] + first : "";
}

/* ---- the array ---- */

static bool fail_row(const source *s, int64_t row, const char *problem)
{
  return tool_fail(s->error, TOOL_EXIT_FILE, "%s: column '%s', row %lld: %s", s->path, s->column,
                   (long long)row, problem);
}

static bool store_numbers(const source *s, const column_type *type, kjit_type element,
                          tool_array *array)
{
  uint64_t row = 0;
  for (size_t k = 0; k < s->count; k++) {
    const struct ArrowArray *chunk = &s->chunks[k];
    for (int64_t i = 0; i < chunk->length; i++, row++) {
      if (is_missing(type, chunk, chunk->offset + i)) {
        tool_number none =
          tool_elements[element].class_ < TOOL_FLOAT ? tool_make_integer(0) : tool_make_real(NAN);
        tool_store(element, tool_element_number(array, row), &none);
        tool_set_null(array->memory, row);
        continue;
      }
      tool_number number = number_at(type, chunk, chunk->offset + i);
      const char *misfit = element == type->element ? NULL : tool_misfit(element, &number);
      if (misfit) return fail_row(s, (int64_t)row, misfit);
      tool_store(element, tool_element_number(array, row), &number);
    }
  }
  return true;
}

/* Stores each text's index. The indices refer to the memory's dictionary. */
static bool store_texts(const source *s, const column_type *type, tool_array *array)
{
  tool_dictionary *known = &array->memory->texts;
  uint64_t row = 0;
  for (size_t k = 0; k < s->count; k++) {
    const struct ArrowArray *chunk = &s->chunks[k], *texts = chunk;
    for (int64_t i = 0; i < chunk->length; i++, row++) {
      int64_t at = chunk->offset + i;
      if (is_missing(type, chunk, at)) {
        tool_set_null(array->memory, row);
        continue;
      }
      if (type->index != KJIT_ANY) {
        texts = chunk->dictionary;
        const size_t size = tool_elements[type->index].size_bytes;
        const tool_number index =
          tool_load(type->index, (const char *)chunk->buffers[1] + size * (size_t)at);
        if (index.i < 0 || index.i >= texts->length)
          return fail_row(s, (int64_t)row, "the index is out of bounds of the dictionary");
        at = texts->offset + index.i;
        if (texts->null_count && texts->buffers[0] && !bit(texts->buffers[0], at)) {
          tool_set_null(array->memory, row);
          continue;
        }
      }
      size_t length;
      const char *text = text_at(texts, type->is_long, at, &length);
      const size_t added = tool_add_text(known, text, length);
      if (added >= INT32_MAX) return fail_row(s, (int64_t)row, "more than 2^31 different texts");
      *(int32_t *)tool_element_number(array, row) = (int32_t)added;
    }
  }
  size_t *ranks = tool_sort_texts(known);
  for (uint64_t i = 0; i < row; i++) {
    int32_t *element = tool_element_number(array, i);
    if (known->count && !tool_is_null(array, element)) *element = (int32_t)ranks[*element];
  }
  free(ranks);
  return true;
}

static bool make_array(const source *s, kjit_type wanted, tool_array *array)
{
  column_type type;
  if (!find_type(s, &type)) return false;
  const bool has_texts = type.element == KJIT_ANY;
  if (has_texts && wanted != KJIT_ANY)
    return tool_fail(s->error, TOOL_EXIT_FILE,
                     "%s: column '%s' has texts, which `:as=%s` cannot convert", s->path, s->column,
                     tool_elements[wanted].text);
  tool_shape shape = { .rank = 1 };
  shape.element = has_texts ? KJIT_I32 : wanted != KJIT_ANY ? wanted : type.element;
  bool has_nulls = type.is_null;
  for (size_t k = 0; k < s->count; k++) {
    const struct ArrowArray *chunk = &s->chunks[k];
    shape.extents[0] += chunk->length;
    has_nulls |=
      chunk->null_count != 0 || (chunk->dictionary && chunk->dictionary->null_count != 0);
  }
  if (!tool_create_array(s->error, &shape, array)) return false;
  array->memory->has_texts = has_texts;
  if (wanted == KJIT_ANY) array->memory->date = type.date;
  if (has_nulls && !tool_add_validity(s->error, array)) return false;
  return has_texts ? store_texts(s, &type, array) : store_numbers(s, &type, shape.element, array);
}

bool tool_read_arrow(tool_error *error, const char *path, const char *bytes, size_t size,
                     const tool_table_request *request, const char *usual, tool_array *array)
{
  source s = { .error = error, .path = path, .is_input = bytes != NULL };
  s.reader = load_module(error, path);
  if (!s.reader) return false;
  const bool ok =
    read_source(&s, bytes, size, request->column, usual) && make_array(&s, request->element, array);
  close_source(&s);
  return ok;
}
