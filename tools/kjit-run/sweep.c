#include "sweep.h"

#include "device.h"
#include "measure.h"
#include <driver/output_file.h>
#include <driver/progress.h>
#include <stdlib.h>
#include <string.h>

/* ---- the sizes ---- */

typedef struct sizes {
  tool_size size; /* its name is owned */
  int64_t first, last, step;
  bool is_sum; /* true if each size is the size before plus `step`, false if it is the size before
                  times `step` */
} sizes;

static bool scan_step(tool_scanner *scanner, sizes *s)
{
  s->step = 2;
  if (!tool_accept(scanner, ':')) return true;
  s->is_sum = tool_accept(scanner, '+');
  if (!s->is_sum && !tool_accept(scanner, '*'))
    return tool_expected(scanner, "'*' and a factor, or '+' and a distance");
  tool_skip_blanks(scanner);
  const char *at = scanner->at;
  if (!tool_scan_integer(scanner, "how the sizes grow", &s->step)) return false;
  return s->step > (s->is_sum ? 0 : 1) ||
         tool_scan_fail(scanner, at, "sizes must grow by at least *2 or +1");
}

static bool scan_range(tool_scanner *scanner, sizes *s)
{
  if (!tool_expect(scanner, '=')) return false;
  tool_skip_blanks(scanner);
  const char *at = scanner->at;
  if (!tool_scan_integer(scanner, "the first size", &s->first) || !tool_expect(scanner, ':') ||
      !tool_scan_integer(scanner, "the last size", &s->last) || !scan_step(scanner, s) ||
      !tool_expect_end(scanner))
    return false;
  if (s->first < 1) return tool_scan_fail(scanner, at, "the first size must be at least 1");
  return s->last >= s->first ||
         tool_scan_fail(scanner, at, "the last size must not be less than the first");
}

/* Returns the next size, or 0 after the last size. */
static int64_t next_size(const sizes *s, int64_t size)
{
  int64_t next;
  bool overflows = s->is_sum ? __builtin_add_overflow(size, s->step, &next)
                             : __builtin_mul_overflow(size, s->step, &next);
  return overflows || next > s->last ? 0 : next;
}

static size_t count_sizes(const sizes *s, size_t most)
{
  size_t count = 0;
  for (int64_t size = s->first; size && count <= most; size = next_size(s, size)) count++;
  return count;
}

/* Parses for example "n=2^10:2^28", "n=1000:1e6:*10" or "n=100:1000:+100". */
static bool parse_sizes(tool_error *error, const char *text, sizes *s)
{
  enum { MOST = 1000 };
  tool_scanner scanner = tool_scan("--sweep", text, error);
  char *name = NULL;
  *s = (sizes){ 0 };
  if (!tool_scan_name(&scanner, "the name of a size, as in n=2^10:2^28", &name)) return false;
  s->size.name = name;
  bool ok = scan_range(&scanner, s);
  if (ok && run_is_column(name))
    ok = tool_scan_fail(&scanner, text, "'%s' is already the name of a column", name);
  if (ok && count_sizes(s, MOST) > MOST)
    ok = tool_scan_fail(&scanner, text, "the sweep has more than %d sizes", MOST);
  if (!ok) free(name);
  return ok;
}

static bool refuse(tool_error *error, bool is_given, const char *option)
{
  return !is_given ||
         tool_fail(error, TOOL_EXIT_USAGE,
                   "%s is for a single run and cannot be combined with --sweep", option);
}

bool run_check_sweep(tool_error *error, const run_options *o)
{
  static const char *const names[] = {
    [RUN_PRINT] = "--print", [RUN_SAVE] = "--save", [RUN_IMAGE] = "--image", [RUN_CHECK] = "--check"
  };
  const struct {
    bool is_given;
    const char *option;
  } needing[] = { { o->plot != NULL, "--plot" },
                  { o->csv != NULL, "--csv" },
                  { o->besides.count > 0, "--beside" },
                  { o->plots_bandwidth, "--plot-of" } };
  for (size_t i = 0; !o->sweep && i < sizeof needing / sizeof *needing; i++)
    if (needing[i].is_given)
      return tool_fail(error, TOOL_EXIT_USAGE, "%s needs a sweep: --sweep n=2^10:2^28",
                       needing[i].option);
  if (!o->sweep) return true;
  if (!o->plot && (o->besides.count || o->plots_bandwidth))
    return tool_fail(error, TOOL_EXIT_USAGE, "%s needs a plot: --plot FILE.svg",
                     o->besides.count ? "--beside" : "--plot-of");
  const char *ending = o->plot ? strrchr(o->plot, '.') : NULL;
  if (o->plot && strcmp(o->plot, "-") != 0 && (!ending || strcmp(ending, ".svg") != 0))
    return tool_fail(error, TOOL_EXIT_USAGE, "--plot: expected a FILE.svg, not '%s'", o->plot);
  if (o->plot && !strcmp(o->plot, "-") && (!o->csv || !strcmp(o->csv, "-")))
    return tool_fail(error, TOOL_EXIT_USAGE,
                     "--plot -: standard output cannot take both the plot and the rows; write the "
                     "rows to a file with --csv FILE");
  for (size_t i = 0; i < o->output_count; i++)
    if (!refuse(error, true, names[o->outputs[i].kind])) return false;
  return refuse(error, o->emits.count > 0, "--emit") && refuse(error, o->shows_time, "--time") &&
         refuse(error, o->shows_info, "--info");
}

/* ---- measuring ---- */

typedef struct sweep {
  const run_sweeper *s;
  sizes sizes;
  FILE *rows;
  /* `plot` has this sweep's curves, and `beside` the curves from the tables of --beside */
  run_plot plot, beside;
  uint64_t done;               /* number of sizes finished, for all devices */
  uint64_t row_count;          /* number of rows written */
  const kjit_device **devices; /* devices named by --device so far; owned */
  size_t device_count;
} sweep;

static bool make_arguments(sweep *w, tool_arguments *arguments)
{
  const run_texts *texts = &w->s->options->arguments;
  for (size_t i = 0; i < texts->count; i++)
    if (!tool_add_argument(arguments, "--arg", texts->items[i], w->s->error)) return false;
  return true;
}

/* Returns a step's name, with a number if earlier steps have the same name. */
static char *label_step(const run_steps *steps, size_t index)
{
  size_t number = 1;
  for (size_t i = 0; i < index; i++)
    number += !strcmp(steps->items[i].name, steps->items[index].name);
  return number == 1 ? tool_format("%s", steps->items[index].name)
                     : tool_format("%s #%zu", steps->items[index].name, number);
}

static void draw(sweep *w, const run_row *row)
{
  char *name = tool_format("%s, %s (%s)", row->step, row->device, row->device_name);
  run_line *line = run_find_line(&w->plot, name);
  if (!line) line = run_add_line(&w->plot, name);
  bool is_time = w->plot.quantity == RUN_TIME;
  const double values[] = { row->median_ns, row->lower_ns, row->upper_ns };
  double places[3];
  for (int i = 0; i < 3; i++)
    places[i] = is_time ? values[i] / 1e9 : (double)row->bytes / (values[i] / 1e9);
  const plot_point point = { (double)row->size, places[0], places[is_time ? 1 : 2],
                             places[is_time ? 2 : 1] };
  run_add_point(line, &point);
  free(name);
}

static bool measure_step(sweep *w, kjit_device *device, run_steps *steps, size_t index)
{
  const run_options *o = w->s->options;
  run_steps alone = { &steps->items[index], 1 };
  run_measurement m;
  if (!run_measure(w->s->error, w->s->context, device, &alone, o->repeat, o->bench, &m))
    return false;
  kjit_device_info info = { .size_bytes = sizeof info };
  kjit_get_device_info(device, &info);
  run_row row = { .device = run_device_name(device),
                  .device_name = tool_format("%s", info.name ? info.name : "unknown"),
                  .step = label_step(steps, index),
                  .size = w->sizes.size.value,
                  .repetitions = m.repetitions,
                  .bytes = m.bytes / o->repeat,
                  .median_ns = (double)m.median_ns / (double)o->repeat,
                  .least_ns = (double)m.least_ns / (double)o->repeat,
                  .lower_ns = (double)m.lower_ns / (double)o->repeat,
                  .upper_ns = (double)m.upper_ns / (double)o->repeat };
  tool_stop_progress(); /* erases the progress line, because it may be on the same terminal as the
                         * output */
  run_write_row(&row, w->rows);
  w->row_count++;
  draw(w, &row);
  run_destroy_row(&row);
  return true;
}

static bool measure_steps(sweep *w, kjit_device *device, tool_arguments *arguments,
                          run_steps *steps)
{
  const run_sweeper *s = w->s;
  const run_maker maker = { s->error, s->context, s->module, arguments };
  run_timing ignored;
  if (!make_arguments(w, arguments) ||
      !run_make_steps(&maker, s->options->steps, s->options->step_count, steps))
    return false;
  if (!w->sizes.size.is_used)
    return tool_fail(
      s->error, TOOL_EXIT_USAGE,
      "--sweep: no --arg, --launch or --call uses '%s', so all sizes would be the same",
      w->sizes.size.name);
  if (!run_upload(s->error, s->context, device, steps)) return false;
  run_bind_steps(steps, device, s->options->time_limit_ns);
  /* run all steps once, because a step may need results of earlier steps */
  if (!run_all_steps(s->error, s->context, device, steps, 1, &ignored)) return false;
  for (size_t i = 0; i < steps->count; i++)
    if (!measure_step(w, device, steps, i)) return false;
  return true;
}

static bool measure_size(sweep *w, kjit_device *device)
{
  tool_arguments arguments = { .context = w->s->context, .size = &w->sizes.size };
  run_steps steps = { 0 };
  bool ok = measure_steps(w, device, &arguments, &steps);
  run_destroy_steps(&steps);
  tool_destroy_arguments(&arguments);
  return ok || tool_prefix(w->s->error, "--sweep, %s = %lld", w->sizes.size.name,
                           (long long)w->sizes.size.value);
}

static bool is_new_device(sweep *w, const kjit_device *device, const char *name)
{
  for (size_t i = 0; i < w->device_count; i++)
    if (w->devices[i] == device)
      return tool_fail(w->s->error, TOOL_EXIT_USAGE, "--device: '%s' is given twice", name);
  const kjit_device **devices = tool_allocate((w->device_count + 1) * sizeof *devices);
  if (w->device_count) memcpy(devices, w->devices, w->device_count * sizeof *devices);
  free(w->devices);
  w->devices = devices;
  w->devices[w->device_count++] = device;
  return true;
}

static bool measure_device(sweep *w, const char *name)
{
  kjit_device *device;
  if (!run_open_device(w->s->error, w->s->context, name, &device) ||
      !is_new_device(w, device, name))
    return false;
  for (int64_t size = w->sizes.first; size; size = next_size(&w->sizes, size)) {
    w->sizes.size.value = size;
    tool_progress_at(w->done++);
    if (!measure_size(w, device)) return false;
  }
  return true;
}

/* Measures for each device of a list such as "cpu" or "cpu,cuda:1". */
static bool measure_devices(sweep *w)
{
  const char *at = w->s->options->device;
  for (;; at++) {
    size_t length = strcspn(at, ",");
    char *name = tool_copy_text(at, length);
    bool ok = measure_device(w, name);
    free(name);
    at += length;
    if (!ok || !*at) return ok;
  }
}

/* ---- the results ---- */

/* Appends the curves of --beside to the sweep's curves. */
static void move_besides(sweep *w)
{
  for (size_t i = 0; i < w->beside.line_count; i++) {
    run_line *from = &w->beside.lines[i], *to = run_add_line(&w->plot, from->name);
    to->points = from->points;
    to->count = from->count;
    *from = (run_line){ .name = from->name };
  }
}

static bool write_plot(sweep *w, tool_error *error)
{
  const run_options *o = w->s->options;
  tool_output_file output;
  size_t points = 0;
  for (size_t i = 0; i < w->plot.line_count; i++) points += w->plot.lines[i].count;
  if (!points)
    return tool_fail(
      error, TOOL_EXIT_USAGE,
      "--plot-of bandwidth: no launch or call has arrays whose bytes could be counted");
  move_besides(w);
  if (!tool_create_output(error, o->plot, &output)) return tool_prefix(error, "--plot");
  run_write_plot(&w->plot, output.stream);
  return tool_finish_output(error, &output, true) || tool_prefix(error, "--plot");
}

/* Called after a sweep has failed before its end. Keeps the results and adds their location to the
 * error message. Errors of writing the plot are ignored, because the first error is reported. */
static void keep_rows(sweep *w, bool has_file)
{
  tool_error *error = w->s->error, of_plot = { 0 };
  const char *csv = w->s->options->csv, *plot = w->s->options->plot;
  bool is_file = has_file && csv && strcmp(csv, "-") != 0;
  bool is_drawn = plot && write_plot(w, &of_plot);
  char *text = tool_format("%s\n%llu row%s measured before, and kept%s%s%s%s", error->text,
                           (unsigned long long)w->row_count, w->row_count == 1 ? " was" : "s were",
                           is_file ? ": " : "", is_file ? csv : "",
                           is_drawn ? (is_file ? ", " : ": ") : "", is_drawn ? plot : "");
  free(of_plot.text);
  free(error->text);
  error->text = text;
}

/* Reads the tables before the sweep, so that a misspelled file name is reported at once. */
static bool read_besides(sweep *w)
{
  const run_options *o = w->s->options;
  w->beside.quantity = w->plot.quantity;
  for (size_t i = 0; i < o->besides.count; i++)
    if (!run_add_beside(w->s->error, o->besides.items[i], w->sizes.size.name, &w->beside))
      return false;
  return true;
}

static char *make_title(const sweep *w)
{
  const char *path = w->s->options->path, *slash = path ? strrchr(path, '/') : NULL;
  const char *file = slash ? slash + 1 : path;
  return tool_format("%s over %s%s%s",
                     w->s->options->plots_bandwidth ? "Bandwidth" : "Time of a launch",
                     w->sizes.size.name, file ? ", " : "", file ? file : "");
}

static bool make(sweep *w)
{
  const run_options *o = w->s->options;
  tool_output_file output;
  w->plot = (run_plot){ .title = make_title(w),
                        .x_name = w->sizes.size.name,
                        .quantity = o->plots_bandwidth ? RUN_BANDWIDTH : RUN_TIME };
  if (!read_besides(w)) return false;
  if (!tool_create_output(w->s->error, o->csv, &output)) return tool_prefix(w->s->error, "--csv");
  w->rows = output.stream;
  run_write_head(w->sizes.size.name, w->rows);
  bool ok = measure_devices(w), has_rows = ok || w->row_count > 0;
  tool_stop_progress();
  bool has_file = tool_finish_output(w->s->error, &output, has_rows);
  if (ok && !has_file) return tool_prefix(w->s->error, "--csv");
  if (!ok && has_rows) keep_rows(w, has_file);
  return ok && (!o->plot || write_plot(w, w->s->error));
}

bool run_make_sweep(const run_sweeper *s)
{
  sweep w = { .s = s };
  if (!parse_sizes(s->error, s->options->sweep, &w.sizes)) return false;
  bool ok = make(&w);
  run_destroy_plot(&w.plot);
  run_destroy_plot(&w.beside);
  free(w.devices);
  free((char *)w.sizes.size.name);
  return ok;
}
