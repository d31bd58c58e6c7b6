#include <driver/array_file.h>

#include <ctype.h>
#include <driver/file.h>
#include <driver/npy.h>
#include <driver/npz.h>
#include <driver/output_file.h>
#include <driver/picture.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- .csv ---- */

static const char *misfit_table(const tool_array *array)
{
  if (array->record.context || tool_elements[array->element].class_ == TOOL_COMPLEX)
    return "real numbers";
  return array->rank > 2 ? "at most two dimensions" : NULL;
}

static bool write_table(FILE *file, const tool_array *array)
{
  uint64_t count = tool_count(array),
           columns = array->rank == 2 && array->shape[1] ? (uint64_t)array->shape[1] : 1;
  for (uint64_t i = 0; i < count; i++) {
    char text[TOOL_ELEMENT_TEXT];
    tool_element_text(array->element, tool_element_number(array, i), text);
    fputs(text, file);
    if (putc((i + 1) % columns ? ',' : '\n', file) == EOF) return false;
  }
  return true;
}

typedef struct table {
  tool_number *numbers;
  size_t count, capacity, rows, columns;
  bool is_exact; /* all are integers that fit i64 */
} table;

static void append_number(table *t, const tool_number *number)
{
  if (t->count == t->capacity) {
    t->capacity = t->capacity ? 2 * t->capacity : 1024;
    tool_number *grown = tool_allocate(t->capacity * sizeof *grown);
    if (t->count) memcpy(grown, t->numbers, t->count * sizeof *grown);
    free(t->numbers);
    t->numbers = grown;
  }
  t->is_exact = t->is_exact && number->kind == TOOL_NUMBER_SIGNED;
  t->numbers[t->count++] = *number;
}

/* "3", "-2.5e3", "nan", "true"; a number that is none ends at its own start. */
static const char *parse_number(const char *at, tool_number *number)
{
  char *end, *whole;
  bool is_true = !strncmp(at, "true", 4);
  if (is_true || !strncmp(at, "false", 5)) {
    *number = tool_make_integer(is_true);
    return at + (is_true ? 4 : 5);
  }
  *number = tool_make_real(strtod(at, &end));
  errno = 0;
  long long integer = strtoll(at, &whole, 10);
  if (whole == end && end != at && !errno) *number = tool_make_integer(integer);
  return end;
}

static const char *skip_spaces(const char *at)
{
  while (*at == ' ' || *at == '\t' || *at == '\r') at++;
  return at;
}

static bool parse_row(tool_error *error, const char *path, const char **text, table *t)
{
  size_t columns = 0;
  const char *at = *text;
  for (;;) {
    tool_number number;
    at = skip_spaces(at);
    const char *end = isspace((unsigned char)*at) ? at : parse_number(at, &number);
    int shown = (int)strcspn(at, ",\r\n");
    if (end == at || !strchr(",\n", *skip_spaces(end)))
      return tool_fail(error, TOOL_EXIT_FILE, "%s: line %zu: expected a number, not '%.*s'", path,
                       t->rows + 1, shown > 40 ? 40 : shown, at);
    append_number(t, &number);
    columns++;
    at = skip_spaces(end);
    if (*at != ',') break;
    at++;
  }
  if (t->rows && columns != t->columns)
    return tool_fail(error, TOOL_EXIT_FILE,
                     "%s: line %zu: expected %zu numbers as in the lines before, not %zu", path,
                     t->rows + 1, t->columns, columns);
  t->columns = columns;
  t->rows++;
  *text = *at ? at + 1 : at;
  return true;
}

static bool make_table_array(tool_error *error, const table *t, tool_array *array)
{
  tool_shape shape = { .element = t->is_exact ? KJIT_I64 : KJIT_F64,
                       .rank = t->columns > 1 ? 2 : 1,
                       .extents = { (int64_t)t->rows, (int64_t)t->columns } };
  if (!tool_create_array(error, &shape, array)) return false;
  for (size_t i = 0; i < t->count; i++) {
    tool_number number =
      t->is_exact ? t->numbers[i] : tool_make_real(tool_number_real(&t->numbers[i]));
    tool_store(shape.element, (char *)array->memory->data + 8 * i, &number);
  }
  return true;
}

static bool read_table(tool_error *error, const char *path, tool_array *array, tool_leaves *leaves)
{
  (void)leaves;
  char *text;
  size_t size;
  table t = { .is_exact = true };
  if (!tool_read_file(error, path, &text, &size)) return false;
  const char *at = text;
  bool ok = strlen(text) == size ||
            tool_fail(error, TOOL_EXIT_FILE, "%s: expected text, and there is a 0 byte", path);
  while (ok && *at) ok = parse_row(error, path, &at, &t);
  ok = ok && make_table_array(error, &t, array);
  free(t.numbers);
  free(text);
  return ok;
}

/* ---- the kinds ---- */

static const char *misfit_nothing(const tool_array *array)
{
  (void)array;
  return NULL;
}

static const struct kind {
  const char *ending;
  /* What the array would have to be of; NULL: it can be written. */
  const char *(*misfit)(const tool_array *array);
  /* NULL: .npz, whose arrays have names */
  bool (*write)(FILE *file, const tool_array *array);
  bool (*read)(tool_error *error, const char *path, tool_array *array, tool_leaves *leaves);
} kinds[] = {
  { ".npy", misfit_nothing, tool_write_npy_stream, tool_read_npy },
  { ".npz", tool_misfit_npz, NULL, NULL },
  { ".csv", misfit_table, write_table, read_table },
  { ".png", tool_misfit_png, tool_write_png, tool_read_png },
  { ".pgm", tool_misfit_pgm, tool_write_netpbm, tool_read_netpbm },
  { ".ppm", tool_misfit_ppm, tool_write_netpbm, tool_read_netpbm },
};
enum { KIND_COUNT = sizeof kinds / sizeof *kinds };

static const struct kind *find_kind(const char *path)
{
  const char *name;
  size_t length = strlen(path);
  if (!strcmp(path, "-")) return &kinds[0];
  if (tool_split_npz(path, &name)) return &kinds[1];
  for (size_t i = 0; i < KIND_COUNT; i++) {
    size_t ending = strlen(kinds[i].ending);
    if (length > ending && !strcmp(path + length - ending, kinds[i].ending)) return &kinds[i];
  }
  return NULL;
}

bool tool_is_array_path(const char *text) { return strcmp(text, "-") != 0 && find_kind(text); }

bool tool_is_table_path(const char *text)
{
  const struct kind *kind = find_kind(text);
  return kind && kind->write == write_table;
}

/* Devices have no ending, and get what numpy.save writes. */
static const struct kind *find_written(const char *path)
{
  return strncmp(path, "/dev/", 5) ? find_kind(path) : &kinds[0];
}

/* ---- writing ---- */

/* An archive's writer goes back in it. */
static bool check_archive(tool_error *error, const char *option, const char *path)
{
  const char *name, *end = tool_split_npz(path, &name);
  struct stat status;
  char *file = tool_copy_text(path, (size_t)(end - path));
  bool ok =
    stat(file, &status) != 0 || S_ISREG(status.st_mode) ||
    tool_fail(error, TOOL_EXIT_USAGE, "%s: %s: a .npz file must be a regular file", option, file);
  free(file);
  return ok && (!name || *name ||
                tool_fail(error, TOOL_EXIT_USAGE, "%s: %s: expected the array's name after ':'",
                          option, path));
}

bool tool_check_save(tool_error *error, const char *option, const char *path,
                     const tool_array *array)
{
  const struct kind *kind = find_written(path);
  if (!kind)
    return tool_fail(error, TOOL_EXIT_USAGE,
                     "%s: expected a name that ends in " TOOL_ARRAY_ENDINGS ", not '%s'", option,
                     path);
  const char *misfit = kind->misfit(array);
  if (!misfit) return kind->write || check_archive(error, option, path);
  char *shape = tool_shape_text(array);
  tool_fail(error, TOOL_EXIT_USAGE, "%s: %s: a %s file holds %s, not %s", option, path,
            kind->ending, misfit, shape);
  free(shape);
  return false;
}

bool tool_is_same_archive(const char *path, const char *other)
{
  const char *name, *end = find_written(path)->write ? NULL : tool_split_npz(path, &name),
                    *other_end = find_written(other)->write ? NULL : tool_split_npz(other, &name);
  return end && other_end && end - path == other_end - other &&
         !memcmp(path, other, (size_t)(end - path));
}

const char *tool_saved_name(const char *path, const char *label)
{
  const char *name;
  tool_split_npz(path, &name);
  return name ? name : label;
}

bool tool_save_arrays(tool_error *error, const char *path, const tool_named_array *arrays,
                      size_t count)
{
  const struct kind *kind = find_written(path);
  const char *name, *end = kind->write ? NULL : tool_split_npz(path, &name);
  char *file = tool_copy_text(path, end ? (size_t)(end - path) : strlen(path));
  tool_output_file output;
  bool ok = tool_create_output(error, file, &output);
  if (ok) {
    bool is_complete = kind->write ? kind->write(output.stream, arrays[0].array)
                                   : tool_write_npz(output.stream, arrays, count);
    if (!is_complete && !ferror(output.stream))
      tool_fail(error, TOOL_EXIT_FILE, "%s: a %s file cannot hold this array", file, kind->ending);
    ok = tool_finish_output(error, &output, is_complete);
  }
  free(file);
  return ok;
}

/* ---- reading ---- */

bool tool_load_array(tool_error *error, const char *path, const char *usual, tool_array *array,
                     tool_leaves *leaves)
{
  const struct kind *kind = find_kind(path);
  const char *name, *end = tool_split_npz(path, &name);
  if (!end) return (kind ? kind->read : tool_read_npy)(error, path, array, leaves);
  char *file = tool_copy_text(path, (size_t)(end - path));
  bool ok = tool_read_npz(error, file, name, usual, array, leaves);
  free(file);
  return ok;
}
