#define _GNU_SOURCE
#include <driver/array_file.h>

#include <driver/arrow_file.h>
#include <driver/input.h>
#include <driver/npy.h>
#include <driver/npz.h>
#include <driver/output_file.h>
#include <driver/picture.h>
#include <driver/table.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- the kinds ---- */

static const char *misfit_nothing(const tool_array *array)
{
  (void)array;
  return NULL;
}

static const struct kind {
  const char *ending;
  /* returns NULL if the format can store the array, otherwise a text that describes the arrays that
   * the format can store */
  const char *(*misfit)(const tool_array *array);
  /* writes an array; NULL for .npz files and tables, which contain several arrays with names */
  bool (*write)(FILE *file, const tool_array *array);
  bool (*read)(tool_error *error, const char *path, tool_array *array, tool_leaves *leaves);
  char separator; /* separator of a table, else 0 */
} kinds[] = {
  { ".npy", misfit_nothing, tool_write_npy_stream, tool_read_npy, 0 },
  { ".npz", tool_misfit_npz, NULL, NULL, 0 },
  { ".csv", tool_misfit_table, NULL, NULL, ',' },
  { ".tsv", tool_misfit_table, NULL, NULL, '\t' },
  { ".png", tool_misfit_png, tool_write_png, tool_read_png, 0 },
  { ".pgm", tool_misfit_pgm, tool_write_netpbm, tool_read_netpbm, 0 },
  { ".ppm", tool_misfit_ppm, tool_write_netpbm, tool_read_netpbm, 0 },
};
enum { KIND_COUNT = sizeof kinds / sizeof *kinds };

enum { NPY, NPZ, CSV, TSV };

/* Splits "data.npz:x", "data.csv:x" or "-:x": returns the end of the file's name, and stores the
 * name after the colon or NULL. Returns NULL if the arrays in such a file have no names. */
static const char *split_name(const char *path, const char **name)
{
  const char *end = tool_split_npz(path, name);
  return end ? end : tool_split_table(path, name);
}

static const struct kind *find_kind(const char *path)
{
  const char *name, *end;
  size_t length = strlen(path);
  if (!strcmp(path, "-")) return &kinds[NPY];
  if (tool_split_npz(path, &name)) return &kinds[NPZ];
  if ((end = tool_split_table(path, &name)))
    return &kinds[end[-1] == 'v' && end[-3] == 't' ? TSV : CSV];
  for (size_t i = 0; i < KIND_COUNT; i++) {
    size_t ending = strlen(kinds[i].ending);
    if (length > ending && !strcmp(path + length - ending, kinds[i].ending)) return &kinds[i];
  }
  return NULL;
}

bool tool_is_array_path(const char *text)
{
  const char *column;
  return strcmp(text, "-") != 0 && (find_kind(text) || tool_split_arrow(text, &column));
}

bool tool_is_table_path(const char *text)
{
  const struct kind *kind = find_kind(text);
  return kind && kind->separator;
}

/* Returns the format for writing. Paths without an ending, such as devices, get the .npy format. */
static const struct kind *find_written(const char *path)
{
  return strncmp(path, "/dev/", 5) ? find_kind(path) : &kinds[0];
}

/* ---- writing ---- */

/* Fails if the path exists and is not a regular file, because the writer seeks backwards. */
static bool check_archive(tool_error *error, const char *option, const char *path)
{
  const char *name, *end = tool_split_npz(path, &name);
  struct stat status;
  char *file = tool_copy_text(path, (size_t)(end - path));
  bool ok =
    stat(file, &status) != 0 || S_ISREG(status.st_mode) ||
    tool_fail(error, TOOL_EXIT_USAGE, "%s: %s: a .npz file must be a regular file", option, file);
  free(file);
  return ok;
}

static bool check_name(tool_error *error, const char *option, const char *path,
                       const struct kind *kind, const tool_array *array)
{
  const char *name;
  if (kind->write) return true;
  split_name(path, &name);
  if (name && !*name)
    return tool_fail(error, TOOL_EXIT_USAGE, "%s: %s: expected the array's name after ':'", option,
                     path);
  if (kind->separator && name && array->rank != 1)
    return tool_fail(error, TOOL_EXIT_USAGE,
                     "%s: %s: a column has one dimension, but the array has %u", option, path,
                     array->rank);
  return kind->separator || check_archive(error, option, path);
}

bool tool_check_save(tool_error *error, const char *option, const char *path,
                     const tool_array *array)
{
  const struct kind *kind = find_written(path);
  if (!kind)
    return tool_fail(error, TOOL_EXIT_USAGE,
                     "%s: expected a name that ends in " TOOL_ARRAY_ENDINGS ", not '%s'", option,
                     path);
  const bool is_number = !array->memory->has_texts && array->memory->date.kind != TOOL_TIMESTAMP;
  const char *misfit = is_number || kind->separator ? kind->misfit(array) : "numbers";
  if (!misfit) return check_name(error, option, path, kind, array);
  char *shape = tool_shape_text(array);
  tool_fail(error, TOOL_EXIT_USAGE, "%s: %s: a %s file holds %s, not %s", option, path,
            kind->ending, misfit, shape);
  free(shape);
  return false;
}

bool tool_is_same_archive(const char *path, const char *other)
{
  const char *name, *end = find_written(path)->write ? NULL : split_name(path, &name),
                    *other_end = find_written(other)->write ? NULL : split_name(other, &name);
  return end && other_end && end - path == other_end - other &&
         !memcmp(path, other, (size_t)(end - path));
}

bool tool_check_together(tool_error *error, const char *path, const tool_array *a,
                         const tool_array *b)
{
  if (!find_written(path)->separator) return true;
  if (a->rank == 1 && b->rank == 1 && a->shape[0] == b->shape[0]) return true;
  char *first = tool_shape_text(a), *second = tool_shape_text(b);
  tool_fail(error, TOOL_EXIT_USAGE,
            "--save: %s: the columns of a table have one dimension and the same length, but these "
            "arrays are %s and %s",
            path, first, second);
  free(first);
  free(second);
  return false;
}

const char *tool_saved_name(const char *path, const char *label)
{
  const char *name;
  split_name(path, &name);
  return name ? name : label;
}

static bool write_arrays(FILE *file, const struct kind *kind, bool has_name,
                         const tool_named_array *arrays, size_t count)
{
  if (kind->write) return kind->write(file, arrays[0].array);
  if (!kind->separator) return tool_write_npz(file, arrays, count);
  return has_name || count > 1 ? tool_write_columns(file, arrays, count, kind->separator)
                               : tool_write_table(file, arrays[0].array, kind->separator);
}

/* Fails if the format cannot represent nulls. Only a table has empty cells; in other formats a null
 * float is NaN, and other types have no such value. */
static bool check_nulls(tool_error *error, const char *path, const struct kind *kind,
                        const tool_named_array *array)
{
  if (kind->separator || tool_elements[array->array->element].class_ >= TOOL_FLOAT) return true;
  uint64_t nulls = tool_count_nulls(array->array);
  return !nulls || tool_fail(error, TOOL_EXIT_USAGE,
                             "%s: '%s' has %llu null%s, which a %s file cannot hold; save a .csv "
                             "file, or replace them: --formula '%s = fillna(%s, 0)'",
                             path, array->name, (unsigned long long)nulls, nulls == 1 ? "" : "s",
                             kind->ending, array->name, array->name);
}

bool tool_save_arrays(tool_error *error, const char *path, const tool_named_array *arrays,
                      size_t count)
{
  const struct kind *kind = find_written(path);
  const char *name = NULL, *end = kind->write ? NULL : split_name(path, &name);
  for (size_t i = 0; i < count; i++)
    if (!check_nulls(error, path, kind, &arrays[i])) return false;
  char *file = tool_copy_text(path, end ? (size_t)(end - path) : strlen(path));
  tool_output_file output;
  bool ok = tool_create_output(error, file, &output);
  if (ok) {
    bool is_complete = write_arrays(output.stream, kind, name != NULL, arrays, count);
    if (!is_complete && !ferror(output.stream))
      tool_fail(error, TOOL_EXIT_FILE, "%s: a %s file cannot hold this array", file, kind->ending);
    ok = tool_finish_output(error, &output, is_complete);
  }
  free(file);
  return ok;
}

/* ---- reading ---- */

/* Formats that kjit-run does not read, with their endings and first bytes, and advice on how to
 * convert them. */
static const struct foreign {
  const char *ending, *magic, *name, *advice;
} foreign[] = {
  { ".feather1", "FEA1", "a Feather file of version 1",
    "Python's package pyarrow converts it: pyarrow.feather.write_feather("
    "pyarrow.feather.read_table(FILE), NEW_FILE)" },
  { ".gz", "\x1f\x8b", "a file compressed by gzip", "unpack it: zcat FILE | kjit-run ... @-" },
  { ".zst", "\x28\xb5\x2f\xfd", "a file compressed by zstd",
    "unpack it: zstdcat FILE | kjit-run ... @-" },
  { ".xlsx", "PK\3\4", "an archive or a spreadsheet",
    "name a .npz file, or export the sheet as CSV" },
};

static bool fail_foreign(tool_error *error, const char *path, const struct foreign *f)
{
  return tool_fail(error, TOOL_EXIT_FILE, "%s: kjit-run does not read %s; %s", path, f->name,
                   f->advice);
}

/* Returns whether a path has the ending, possibly followed by a column as in FILE.parquet:NAME. */
static bool has_ending(const char *path, const char *ending)
{
  const char *at = strstr(path, ending);
  for (; at; at = strstr(at + 1, ending)) {
    const char next = at[strlen(ending)];
    if (at > path && (!next || next == ':')) return true;
  }
  return false;
}

static const struct foreign *find_foreign(const char *path, const char *text, size_t size)
{
  for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
    const struct foreign *f = &foreign[i];
    size_t magic = strlen(f->magic);
    if (has_ending(path, f->ending)) return f;
    if (size >= magic && !memcmp(text, f->magic, magic)) return f;
  }
  return NULL;
}

static bool read_input_bytes(const tool_bytes *bytes, tool_error *error, void *to, uint64_t size)
{
  tool_input *input = bytes->state;
  if (size > input->size_bytes - input->next)
    return tool_fail(error, TOOL_EXIT_FILE, "%s: the data end %llu bytes early", bytes->path,
                     (unsigned long long)(size - (input->size_bytes - input->next)));
  memcpy(to, input->text + input->next, size);
  input->next += size;
  return true;
}

/* Loads the next array of a stream. The first bytes determine the format. */
static bool load_input(tool_error *error, const char *path, tool_input *input,
                       const tool_table_request *request, tool_array *array, tool_leaves *leaves)
{
  static const char magic[] = "\x93NUMPY";
  const char *text = input->text + input->next;
  size_t size = input->size_bytes - input->next;
  const struct foreign *other = find_foreign("", text, size);
  if (!size)
    return tool_fail(error, TOOL_EXIT_FILE, "%s: %s", path,
                     input->next
                       ? "the input ends after the arrays that were read; expected another array"
                       : "expected an array, but the input is empty");
  bool is_npy = size >= sizeof magic - 1 && !memcmp(text, magic, sizeof magic - 1);
  if (is_npy && request->column)
    return tool_fail(error, TOOL_EXIT_FILE, "%s: an array in .npy format has no column '%s'", path,
                     request->column);
  if (is_npy) {
    const tool_bytes bytes = { path, size, input, read_input_bytes, true };
    return tool_read_npy_bytes(error, &bytes, array, leaves);
  }
  if (tool_is_arrow(text, size))
    return tool_read_arrow(error, path, text, size, request, NULL, array);
  return other ? fail_foreign(error, path, other)
               : tool_read_table(error, path, text, size, request, array);
}

static bool load_stream(tool_error *error, const char *path, const tool_table_request *request,
                        tool_array *array, tool_leaves *leaves)
{
  if (!strcmp(path, "-")) {
    tool_input *standard = tool_standard_input(error);
    return standard && load_input(error, "standard input", standard, request, array, leaves);
  }
  tool_input input;
  if (!tool_read_input(error, path, &input)) return false;
  bool ok = load_input(error, path, &input, request, array, leaves);
  free(input.text);
  return ok;
}

static bool load_table(tool_error *error, const char *path, const tool_table_request *request,
                       tool_array *array)
{
  tool_input input;
  if (!tool_read_input(error, path, &input)) return false;
  bool ok = tool_read_table(error, path, input.text, input.size_bytes, request, array);
  free(input.text);
  return ok;
}

static bool load_arrow(tool_error *error, const char *path, const char *end, const char *column,
                       const tool_array_source *source, tool_array *array)
{
  const tool_table_request request = { .element = source->element,
                                       .column = column,
                                       .keeps_texts = source->keeps_texts };
  char *file = tool_copy_text(path, (size_t)(end - path));
  bool ok;
  if (tool_is_stream(file)) {
    tool_input input;
    ok = tool_read_input(error, file, &input);
    if (ok) {
      ok =
        tool_read_arrow(error, file, input.text, input.size_bytes, &request, source->usual, array);
      free(input.text);
    }
  } else ok = tool_read_arrow(error, file, NULL, 0, &request, source->usual, array);
  free(file);
  return ok;
}

bool tool_load_array(tool_error *error, const tool_array_source *source, tool_array *array,
                     tool_leaves *leaves)
{
  const char *path = source->path, *name, *end = split_name(path, &name);
  const struct kind *kind = find_kind(path);
  const struct foreign *other = kind ? NULL : find_foreign(path, "", 0);
  tool_table_request request = { .element = source->element, .keeps_texts = source->keeps_texts };
  if (!kind && (end = tool_split_arrow(path, &name)))
    return load_arrow(error, path, end, name, source, array);
  if (other) return fail_foreign(error, path, other);
  if (!strcmp(path, "-") || (!kind && tool_is_stream(path)))
    return load_stream(error, path, &request, array, leaves);
  if (!end) return (kind ? kind->read : tool_read_npy)(error, path, array, leaves);
  char *file = tool_copy_text(path, (size_t)(end - path));
  request.column = name;
  bool ok = !strcmp(file, "-") ? load_stream(error, file, &request, array, leaves)
            : kind->separator  ? load_table(error, file, &request, array)
                               : tool_read_npz(error, file, name, source->usual, array, leaves);
  free(file);
  return ok;
}
