#include "sweep.h"

#include <driver/cells.h>
#include <driver/file.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- writing ---- */

enum {
  DEVICE,
  DEVICE_NAME,
  STEP,
  SIZE,
  REPETITIONS,
  BYTES,
  MEDIAN,
  LEAST,
  BANDWIDTH,
  LOWER,
  UPPER,
  COLUMNS
};
/* The names of the columns. The name of the column SIZE is given by --sweep, for example "n". */
static const char *const columns[COLUMNS] = {
  [DEVICE] = "device",
  [DEVICE_NAME] = "device_name",
  [STEP] = "kernel",
  [REPETITIONS] = "repetitions",
  [BYTES] = "bytes",
  [MEDIAN] = "median_ns",
  [LEAST] = "min_ns",
  [BANDWIDTH] = "bandwidth_gb_s",
  [LOWER] = "lower_quartile_ns",
  [UPPER] = "upper_quartile_ns",
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

/* The bandwidth of a step without arrays is left empty. */
void run_write_row(const run_row *row, FILE *file)
{
  const char *const texts[] = { row->device, row->device_name, row->step };
  for (int i = 0; i < 3; i++) {
    tool_put_cell(file, texts[i], ',');
    putc(',', file);
  }
  fprintf(file, "%lld,%llu,%llu,%.10g,%.10g,", (long long)row->size,
          (unsigned long long)row->repetitions, (unsigned long long)row->bytes, row->median_ns,
          row->least_ns);
  if (row->bytes && row->median_ns > 0) fprintf(file, "%.6g", (double)row->bytes / row->median_ns);
  fprintf(file, ",%.10g,%.10g\n", row->lower_ns, row->upper_ns);
  fflush(file); /* flushes, so that each row is visible at once during a long sweep */
}

void run_destroy_row(run_row *row)
{
  free(row->device);
  free(row->device_name);
  free(row->step);
}

/* ---- reading ---- */

/* The texts of all cells in a table with a header row. */
typedef struct table {
  const char *path;
  tool_error *error;
  char **cells;    /* cells of all rows, header first; owned */
  uint64_t *lines; /* line number of each row; owned */
  size_t count, columns, row_count;
} table;

static void *grow(void *items, size_t count, size_t item_bytes)
{
  if ((count & (count - 1)) != 0) return items;
  void *larger = tool_allocate((count ? 2 * count : 1) * item_bytes);
  if (count) memcpy(larger, items, count * item_bytes);
  free(items);
  return larger;
}

static void append_cell(table *t, const tool_cells *cells)
{
  t->cells = grow(t->cells, t->count, sizeof *t->cells);
  t->cells[t->count++] = tool_copy_text(cells->text, cells->length);
}

static bool end_row(table *t, const tool_cells *cells)
{
  t->lines = grow(t->lines, t->row_count, sizeof *t->lines);
  t->lines[t->row_count++] = cells->line;
  if (!t->columns) t->columns = t->count;
  size_t columns = t->count - (t->row_count - 1) * t->columns;
  return columns == t->columns ||
         tool_fail(t->error, TOOL_EXIT_FILE,
                   "%s: line %llu: expected %zu cells, as in the header, not %zu", t->path,
                   (unsigned long long)cells->line, t->columns, columns);
}

static bool read_table(table *t)
{
  char *text;
  size_t size_bytes;
  bool ok = true;
  if (!tool_read_file(t->error, t->path, &text, &size_bytes)) return false;
  tool_cells cells = tool_open_cells(t->error, t->path, text, size_bytes);
  while (ok && tool_next_cell(&cells)) {
    append_cell(t, &cells);
    ok = !cells.is_last || end_row(t, &cells);
  }
  tool_close_cells(&cells);
  free(text);
  return ok && !t->error->text &&
         (t->row_count > 1 ||
          tool_fail(t->error, TOOL_EXIT_FILE,
                    "%s: expected a header line with column names, followed by rows", t->path));
}

static void destroy_table(table *t)
{
  for (size_t i = 0; i < t->count; i++) free(t->cells[i]);
  free(t->cells);
  free(t->lines);
}

static bool has_column(const table *t, const char *name, size_t *column)
{
  for (*column = 0; *column < t->columns; ++*column)
    if (!strcmp(t->cells[*column], name)) return true;
  return false;
}

static bool find_column(const table *t, const char *name, size_t *column)
{
  return has_column(t, name, column) ||
         tool_fail(t->error, TOOL_EXIT_FILE, "%s: the table has no column '%s'", t->path, name);
}

/* Reads the number in a cell. Sets *is_there to false for an empty cell, which is not drawn. */
static bool read_number(const table *t, size_t row, size_t column, double *value, bool *is_there)
{
  const char *cell = t->cells[row * t->columns + column];
  char *end;
  *value = strtod(cell, &end);
  *is_there = *cell != 0;
  return (!*end && (end != cell || !*cell)) ||
         tool_fail(t->error, TOOL_EXIT_FILE,
                   "%s: line %llu, column '%s': expected a number, not "
                   "'%.40s'",
                   t->path, (unsigned long long)t->lines[row], t->cells[column], cell);
}

/* The columns of a curve: x, y, and the limits of the band if `has_band` is set. */
typedef struct place {
  size_t x, y, low, high;
  bool has_band;
  double scale;
} place;

static bool read_band(const table *t, size_t row, const place *p, plot_point *point)
{
  bool has_low, has_high;
  double low, high;
  point->low = point->high = NAN;
  if (!p->has_band) return true;
  if (!read_number(t, row, p->low, &low, &has_low) ||
      !read_number(t, row, p->high, &high, &has_high))
    return false;
  if (has_low && has_high) {
    point->low = low * p->scale;
    point->high = high * p->scale;
  }
  return true;
}

static bool add_point(const table *t, run_line *line, size_t row, const place *p)
{
  plot_point point;
  bool has_place, has_value;
  if (!read_number(t, row, p->x, &point.x, &has_place) ||
      !read_number(t, row, p->y, &point.y, &has_value) || !read_band(t, row, p, &point))
    return false;
  point.y *= p->scale;
  if (!has_place || !has_value) return true;
  return run_add_point(line, &point) ||
         tool_fail(t->error, TOOL_EXIT_FILE,
                   "%s: line %llu: '%s', '%s' cannot be drawn on logarithmic axes", t->path,
                   (unsigned long long)t->lines[row], t->cells[row * t->columns + p->x],
                   t->cells[row * t->columns + p->y]);
}

/* ---- units ---- */

static const struct {
  const char *ending;
  run_quantity quantity;
  /* factor by which values in the unit are converted to seconds or to bytes per second */
  double scale;
} units[] = {
  { "gb_s", RUN_BANDWIDTH, 1e9 }, { "gb/s", RUN_BANDWIDTH, 1e9 }, { "mb_s", RUN_BANDWIDTH, 1e6 },
  { "mb/s", RUN_BANDWIDTH, 1e6 }, { "b_s", RUN_BANDWIDTH, 1 },    { "b/s", RUN_BANDWIDTH, 1 },
  { "ns", RUN_TIME, 1e-9 },       { "us", RUN_TIME, 1e-6 },       { "ms", RUN_TIME, 1e-3 },
  { "s", RUN_TIME, 1 },
};

/* Finds the unit at the end of a column's name, as a separate word: time_us, "GB/s". */
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
  return tool_fail(error, TOOL_EXIT_USAGE,
                   "--beside: expected a column of %s whose name ends in %s, not '%s'",
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
  place p = { .scale = 1 };
  if (!find_column(t, x_name, &p.x) || !find_column(t, y_name, &p.y) ||
      !find_scale(t->error, y_name, plot->quantity, &p.scale))
    return false;
  char *label = name ? tool_format("%s", name) : tool_format("%s, %s", y_name, file_name(t->path));
  run_line *line = run_add_line(plot, label);
  free(label);
  for (size_t row = 1; row < t->row_count; row++)
    if (!add_point(t, line, row, &p)) return false;
  return true;
}

static bool add_rows(const table *t, const char *size_name, run_plot *plot)
{
  size_t device, step;
  bool is_time = plot->quantity == RUN_TIME;
  place p = { .scale = is_time ? 1e-9 : 1e9 };
  p.has_band =
    is_time && has_column(t, columns[LOWER], &p.low) && has_column(t, columns[UPPER], &p.high);
  if (!find_column(t, size_name, &p.x) ||
      !find_column(t, columns[is_time ? MEDIAN : BANDWIDTH], &p.y) ||
      !find_column(t, columns[DEVICE], &device) || !find_column(t, columns[STEP], &step))
    return tool_prefix(t->error, "--beside FILE.csv, without :X:Y, is a table of --csv");
  for (size_t row = 1; row < t->row_count; row++) {
    char **cells = t->cells + row * t->columns,
         *label = tool_format("%s, %s, %s", cells[step], cells[device], file_name(t->path));
    run_line *line = run_find_line(plot, label);
    if (!line) line = run_add_line(plot, label);
    free(label);
    if (!add_point(t, line, row, &p)) return false;
  }
  return true;
}

/* Splits the text at colons into at most `most` parts and returns their number. */
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
