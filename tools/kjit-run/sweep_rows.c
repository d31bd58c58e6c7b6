#include "sweep.h"

#include <driver/file.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- writing ---- */

enum { DEVICE, DEVICE_NAME, STEP, SIZE, REPETITIONS, BYTES, MEDIAN, LEAST, BANDWIDTH, COLUMNS };
/* SIZE has the name that --sweep gives. */
static const char *const columns[COLUMNS] = {
  [DEVICE] = "device", [DEVICE_NAME] = "device_name",
  [STEP] = "kernel",   [REPETITIONS] = "repetitions",
  [BYTES] = "bytes",   [MEDIAN] = "median_ns",
  [LEAST] = "min_ns",  [BANDWIDTH] = "bandwidth_gb_s",
};

bool run_is_column(const char *name)
{
  for (int i = 0; i < COLUMNS; i++)
    if (columns[i] && !strcmp(columns[i], name)) return true;
  return false;
}

void run_write_head(const char *size_name, FILE *file)
{
  for (int i = 0; i < COLUMNS; i++)
    fprintf(file, "%s%s", i ? "," : "", columns[i] ? columns[i] : size_name);
  putc('\n', file);
}

static void put_cell(const char *text, FILE *file)
{
  if (!text[strcspn(text, ",\"\r\n")]) {
    fputs(text, file);
    return;
  }
  putc('"', file);
  for (; *text; text++) {
    if (*text == '"') putc('"', file);
    putc(*text, file);
  }
  putc('"', file);
}

/* A step without arrays has no bandwidth. */
void run_write_row(const run_row *row, FILE *file)
{
  const char *const texts[] = { row->device, row->device_name, row->step };
  for (int i = 0; i < 3; i++) {
    put_cell(texts[i], file);
    putc(',', file);
  }
  fprintf(file, "%lld,%llu,%llu,%.10g,%.10g,", (long long)row->size,
          (unsigned long long)row->repetitions, (unsigned long long)row->bytes, row->median_ns,
          row->least_ns);
  if (row->bytes && row->median_ns > 0) fprintf(file, "%.6g", (double)row->bytes / row->median_ns);
  putc('\n', file);
  fflush(file); /* whoever waits for a long sweep sees each row */
}

void run_destroy_row(run_row *row)
{
  free(row->device);
  free(row->device_name);
  free(row->step);
}

/* ---- reading ---- */

/* A table with a head, of a line for each row, as RFC 4180 has it. */
typedef struct table {
  const char *path;
  tool_error *error;
  char **cells; /* of all rows, the head first; owned */
  size_t count, columns;
} table;

static void append_cell(table *t, const char *text, size_t length)
{
  if ((t->count & (t->count - 1)) == 0) {
    char **cells = tool_allocate((t->count ? 2 * t->count : 1) * sizeof *cells);
    if (t->count) memcpy(cells, t->cells, t->count * sizeof *cells);
    free(t->cells);
    t->cells = cells;
  }
  t->cells[t->count++] = tool_copy_text(text, length);
}

/* Takes the cell at *at; false: a quote has no end. */
static bool read_cell(table *t, const char **at)
{
  if (**at != '"') {
    size_t length = strcspn(*at, ",\r\n");
    append_cell(t, *at, length);
    *at += length;
    return true;
  }
  char *text = tool_copy_text(*at, strlen(*at)), *to = text;
  const char *from = *at + 1;
  for (; *from && (*from != '"' || from[1] == '"'); from++) {
    if (*from == '"') from++;
    *to++ = *from;
  }
  bool is_closed = *from == '"';
  if (is_closed) append_cell(t, text, (size_t)(to - text));
  free(text);
  *at = from + is_closed;
  return is_closed;
}

static bool read_row(table *t, const char **at, size_t line)
{
  size_t before = t->count;
  for (;;) {
    if (!read_cell(t, at) || (**at && !strchr(",\r\n", **at)))
      return tool_fail(t->error, TOOL_EXIT_FILE,
                       "%s: line %zu: a quoted cell does not end where "
                       "a comma or the line does",
                       t->path, line);
    if (**at != ',') break;
    ++*at;
  }
  while (**at == '\r') ++*at;
  if (**at == '\n') ++*at;
  size_t columns_here = t->count - before;
  if (!t->columns) t->columns = columns_here;
  return columns_here == t->columns ||
         tool_fail(t->error, TOOL_EXIT_FILE,
                   "%s: line %zu: expected %zu cells, as in the head, not %zu", t->path, line,
                   t->columns, columns_here);
}

static bool read_table(table *t)
{
  char *text;
  size_t size_bytes, line = 0;
  if (!tool_read_file(t->error, t->path, &text, &size_bytes)) return false;
  bool ok = true;
  for (const char *at = text; ok && *at;) ok = read_row(t, &at, ++line);
  free(text);
  return ok && (t->count > t->columns ||
                tool_fail(t->error, TOOL_EXIT_FILE,
                          "%s: expected a head with the names of columns, and rows", t->path));
}

static void destroy_table(table *t)
{
  for (size_t i = 0; i < t->count; i++) free(t->cells[i]);
  free(t->cells);
}

static bool find_column(const table *t, const char *name, size_t *column)
{
  for (*column = 0; *column < t->columns; ++*column)
    if (!strcmp(t->cells[*column], name)) return true;
  return tool_fail(t->error, TOOL_EXIT_FILE, "%s: it has no column '%s'", t->path, name);
}

/* An empty cell is no point: *is_there. */
static bool read_number(const table *t, size_t row, size_t column, double *value, bool *is_there)
{
  const char *cell = t->cells[row * t->columns + column];
  char *end;
  *value = strtod(cell, &end);
  *is_there = *cell != 0;
  return (!*end && (end != cell || !*cell)) ||
         tool_fail(t->error, TOOL_EXIT_FILE,
                   "%s: line %zu, column '%s': expected a number, not "
                   "'%.40s'",
                   t->path, row + 1, t->cells[column], cell);
}

static bool add_point(const table *t, run_line *line, size_t row, size_t x, size_t y, double scale)
{
  double place, value;
  bool has_place, has_value;
  if (!read_number(t, row, x, &place, &has_place) || !read_number(t, row, y, &value, &has_value))
    return false;
  if (!has_place || !has_value) return true;
  return run_add_point(line, place, value * scale) ||
         tool_fail(t->error, TOOL_EXIT_FILE,
                   "%s: line %zu: logarithmic axes have no place for '%s', '%s'", t->path, row + 1,
                   t->cells[row * t->columns + x], t->cells[row * t->columns + y]);
}

/* ---- units ---- */

static const struct {
  const char *ending;
  run_quantity quantity;
  double scale; /* to seconds, to bytes a second */
} units[] = {
  { "gb_s", RUN_BANDWIDTH, 1e9 }, { "gb/s", RUN_BANDWIDTH, 1e9 }, { "mb_s", RUN_BANDWIDTH, 1e6 },
  { "mb/s", RUN_BANDWIDTH, 1e6 }, { "b_s", RUN_BANDWIDTH, 1 },    { "b/s", RUN_BANDWIDTH, 1 },
  { "ns", RUN_TIME, 1e-9 },       { "us", RUN_TIME, 1e-6 },       { "ms", RUN_TIME, 1e-3 },
  { "s", RUN_TIME, 1 },
};

/* The unit that the name of a column ends in, as a word: time_us, "GB/s". */
static bool find_scale(tool_error *error, const char *column, run_quantity quantity, double *scale)
{
  const char *expected = quantity == RUN_TIME ? "_ns, _us, _ms or _s" : "_gb_s, _mb_s or _b_s";
  size_t length = strlen(column);
  for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
    size_t ending = strlen(units[i].ending);
    if (length < ending || strcasecmp(column + length - ending, units[i].ending) != 0) continue;
    if (length > ending && !strchr("_ ([", column[length - ending - 1])) continue;
    *scale = units[i].scale;
    if (units[i].quantity == quantity) return true;
    break;
  }
  return tool_fail(
    error, TOOL_EXIT_USAGE,
    "--beside: the name of a column of %s must end in its unit, %s, but '%s' does not",
    quantity == RUN_TIME ? "times" : "bandwidths", expected, column);
}

/* ---- --beside ---- */

static const char *file_name(const char *path)
{
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static bool add_columns(const table *t, const char *x_name, const char *y_name, const char *name,
                        run_plot *plot)
{
  size_t x, y;
  double scale = 1;
  if (!find_column(t, x_name, &x) || !find_column(t, y_name, &y) ||
      !find_scale(t->error, y_name, plot->quantity, &scale))
    return false;
  char *label = name ? tool_format("%s", name) : tool_format("%s, %s", y_name, file_name(t->path));
  run_line *line = run_add_line(plot, label);
  free(label);
  for (size_t row = 1; row < t->count / t->columns; row++)
    if (!add_point(t, line, row, x, y, scale)) return false;
  return true;
}

static bool add_rows(const table *t, const char *size_name, run_plot *plot)
{
  size_t x, y, device, step;
  bool is_time = plot->quantity == RUN_TIME;
  if (!find_column(t, size_name, &x) ||
      !find_column(t, columns[is_time ? MEDIAN : BANDWIDTH], &y) ||
      !find_column(t, columns[DEVICE], &device) || !find_column(t, columns[STEP], &step))
    return tool_prefix(t->error, "--beside FILE.csv, without :X:Y, is a table of --csv");
  for (size_t row = 1; row < t->count / t->columns; row++) {
    char **cells = t->cells + row * t->columns,
         *label = tool_format("%s, %s, %s", cells[step], cells[device], file_name(t->path));
    run_line *line = run_find_line(plot, label);
    if (!line) line = run_add_line(plot, label);
    free(label);
    if (!add_point(t, line, row, x, y, is_time ? 1e-9 : 1e9)) return false;
  }
  return true;
}

/* Splits at colons: at most `most` parts; how many there are. */
static size_t split(char *text, char **parts, size_t most)
{
  size_t count = 0;
  for (char *at = text; at && count < most;) {
    parts[count++] = at;
    at = count < most ? strchr(at, ':') : NULL;
    if (at) *at++ = 0;
  }
  return count;
}

bool run_add_beside(tool_error *error, const char *text, const char *size_name, run_plot *plot)
{
  char *copy = tool_copy_text(text, strlen(text)), *parts[4] = { NULL };
  size_t count = split(copy, parts, 4);
  table t = { .path = parts[0], .error = error };
  bool ok = count != 2 || tool_fail(error, TOOL_EXIT_USAGE,
                                    "--beside: expected FILE.csv, FILE.csv:X:Y or "
                                    "FILE.csv:X:Y:NAME, not '%s'",
                                    text);
  ok = ok && read_table(&t) &&
       (count == 1 ? add_rows(&t, size_name, plot)
                   : add_columns(&t, parts[1], parts[2], parts[3], plot));
  destroy_table(&t);
  free(copy);
  return ok;
}
