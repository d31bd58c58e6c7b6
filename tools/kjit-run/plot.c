#include "plot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* In units of the SVG, of which a browser takes one for a pixel. */
enum { WIDTH = 900, LEFT = 104, RIGHT = 24, TOP = 46, AREA_HEIGHT = 380, BELOW = 58, ROW = 22 };
enum { AREA_WIDTH = WIDTH - LEFT - RIGHT };

/* ---- lines ---- */

run_line *run_find_line(const run_plot *plot, const char *name)
{
  for (size_t i = 0; i < plot->line_count; i++)
    if (!strcmp(plot->lines[i].name, name)) return &plot->lines[i];
  return NULL;
}

run_line *run_add_line(run_plot *plot, const char *name)
{
  run_line *lines = tool_allocate((plot->line_count + 1) * sizeof *lines);
  if (plot->line_count) memcpy(lines, plot->lines, plot->line_count * sizeof *lines);
  free(plot->lines);
  plot->lines = lines;
  run_line *line = &lines[plot->line_count++];
  line->name = tool_copy_text(name, strlen(name));
  return line;
}

/* Where x is among the line's points, which keep their order. */
bool run_add_point(run_line *line, double x, double y)
{
  if (!(x > 0) || !(y > 0) || isinf(x) || isinf(y)) return false;
  run_point *points = tool_allocate((line->count + 1) * sizeof *points);
  size_t place = line->count;
  while (place && line->points[place - 1].x > x) place--;
  if (place) memcpy(points, line->points, place * sizeof *points);
  points[place] = (run_point){ x, y };
  if (line->count > place)
    memcpy(points + place + 1, line->points + place, (line->count - place) * sizeof *points);
  free(line->points);
  line->points = points;
  line->count++;
  return true;
}

void run_destroy_plot(run_plot *plot)
{
  for (size_t i = 0; i < plot->line_count; i++) {
    free(plot->lines[i].name);
    free(plot->lines[i].points);
  }
  free(plot->lines);
  free(plot->title);
}

/* ---- axes ---- */

typedef struct axis {
  double low, high; /* logarithms to base 10 of the ends */
} axis;

typedef struct axes {
  axis x, y;
  bool is_binary; /* all x are powers of two */
} axes;

static bool is_power_of_two(double value)
{
  int exponent;
  return frexp(value, &exponent) == 0.5;
}

static void extend(axis *a, double value)
{
  double place = log10(value);
  if (place < a->low) a->low = place;
  if (place > a->high) a->high = place;
}

/* Ends on ticks of 1, 2 and 5 times a power of ten, so that the outer points do not lie on the
 * frame of a plot that has few. */
static double round_out(double place, bool up)
{
  static const double steps[] = { 0, 0.30102999566398120, 0.69897000433601880, 1 };
  double decade = floor(place), rest = place - decade;
  for (int i = 0; i < 4; i++) {
    int at = up ? i : 3 - i;
    if (up ? steps[at] >= rest - 1e-9 : steps[at] <= rest + 1e-9) return decade + steps[at];
  }
  return place;
}

static axes find_axes(const run_plot *plot)
{
  axes a = { { INFINITY, -INFINITY }, { INFINITY, -INFINITY }, true };
  for (size_t i = 0; i < plot->line_count; i++)
    for (size_t k = 0; k < plot->lines[i].count; k++) {
      extend(&a.x, plot->lines[i].points[k].x);
      extend(&a.y, plot->lines[i].points[k].y);
      a.is_binary = a.is_binary && is_power_of_two(plot->lines[i].points[k].x);
    }
  a.y.low = round_out(a.y.low - 0.02, false);
  a.y.high = round_out(a.y.high + 0.02, true);
  double margin = a.x.high > a.x.low ? (a.x.high - a.x.low) * 0.02 : 0.1;
  a.x.low -= margin;
  a.x.high += margin;
  return a;
}

static double place_x(const axes *a, double value)
{
  return LEFT + (log10(value) - a->x.low) / (a->x.high - a->x.low) * AREA_WIDTH;
}

static double place_y(const axes *a, double value)
{
  return TOP + AREA_HEIGHT - (log10(value) - a->y.low) / (a->y.high - a->y.low) * AREA_HEIGHT;
}

/* ---- text ---- */

static void put_escaped(const char *text, FILE *file)
{
  for (; *text; text++) switch (*text) {
    case '<': fputs("&lt;", file); break;
    case '>': fputs("&gt;", file); break;
    case '&': fputs("&amp;", file); break;
    case '"': fputs("&quot;", file); break;
    default:
      /* control characters are none of XML's */
      putc((unsigned char)*text < ' ' || *text == 127 ? ' ' : *text, file);
    }
}

/* 1000, 2e-6 and so on with the prefix of the unit: "20 GB/s", "5 µs". */
static char *quantity_text(run_quantity quantity, double value)
{
  static const char *const prefixes[] = { "p", "n", "µ", "m", "", "k", "M", "G", "T", "P" };
  enum { NONE = 4, LAST = sizeof prefixes / sizeof *prefixes - 1 };
  int group = (int)floor(log10(value) / 3 + 1e-9), at = group + NONE;
  /* a kilosecond is no unit that anybody reads */
  if (quantity == RUN_TIME && at > NONE) at = NONE;
  if (at < 0) at = 0;
  if (at > LAST) at = LAST;
  double scaled = value / pow(1000, at - NONE);
  return tool_format("%.3g %s%s", scaled, prefixes[at], quantity == RUN_TIME ? "s" : "B/s");
}

/* A power of two or of ten with its exponent raised, in characters that all fonts have. */
static char *power_text(int base, int exponent)
{
  static const char *const digits[] = { "⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹" };
  char *decimal = tool_format("%d", exponent), *text = tool_format("%d", base);
  for (const char *at = decimal; *at; at++) {
    char *longer = tool_format("%s%s", text, *at == '-' ? "⁻" : digits[*at - '0']);
    free(text);
    text = longer;
  }
  free(decimal);
  return text;
}

/* ---- the frame ---- */

static void put_tick_x(const axes *a, double value, char *label, FILE *file)
{
  double x = place_x(a, value);
  if (x >= LEFT - 0.5 && x <= LEFT + AREA_WIDTH + 0.5) {
    fprintf(file, "<path class=\"grid\" d=\"M%.1f %dv%d\"/>", x, TOP, AREA_HEIGHT);
    fprintf(file, "<text class=\"x\" x=\"%.1f\" y=\"%d\">%s</text>\n", x, TOP + AREA_HEIGHT + 19,
            label);
  }
  free(label);
}

static void put_ticks_x(const axes *a, FILE *file)
{
  enum { MOST = 14 };
  double per_tick = a->is_binary ? log10(2) : 1;
  int first = (int)ceil(a->x.low / per_tick), last = (int)floor(a->x.high / per_tick),
      step = 1 + (last - first) / MOST;
  if (a->is_binary || last > first) {
    for (int i = first; i <= last; i += step)
      put_tick_x(a, pow(a->is_binary ? 2 : 10, i), power_text(a->is_binary ? 2 : 10, i), file);
    return;
  }
  /* less than a decade */
  for (int decade = (int)floor(a->x.low); decade <= (int)ceil(a->x.high); decade++)
    for (int digit = 1; digit < 10; digit++)
      put_tick_x(a, digit * pow(10, decade), tool_format("%g", digit * pow(10, decade)), file);
}

static void put_ticks_y(const run_plot *plot, const axes *a, FILE *file)
{
  static const int digits[] = { 1, 2, 5 };
  size_t used = a->y.high - a->y.low > 3 ? 1 : 3;
  for (int decade = (int)floor(a->y.low); decade <= (int)ceil(a->y.high); decade++)
    for (size_t i = 0; i < used; i++) {
      double value = digits[i] * pow(10, decade), y = place_y(a, value);
      if (y < TOP - 0.5 || y > TOP + AREA_HEIGHT + 0.5) continue;
      char *label = quantity_text(plot->quantity, value);
      fprintf(file, "<path class=\"grid\" d=\"M%d %.1fh%d\"/>", LEFT, y, AREA_WIDTH);
      fprintf(file, "<text class=\"y\" x=\"%d\" y=\"%.1f\">%s</text>\n", LEFT - 8, y + 4.5, label);
      free(label);
    }
}

static void put_frame(const run_plot *plot, const axes *a, FILE *file)
{
  put_ticks_x(a, file);
  put_ticks_y(plot, a, file);
  fprintf(file, "<path class=\"axis\" d=\"M%d %dv%dh%d\"/>\n", LEFT, TOP, AREA_HEIGHT, AREA_WIDTH);
  fprintf(file, "<text class=\"title\" x=\"%d\" y=\"26\">", LEFT);
  put_escaped(plot->title, file);
  fprintf(file, "</text>\n<text class=\"x\" x=\"%d\" y=\"%d\">", LEFT + AREA_WIDTH / 2,
          TOP + AREA_HEIGHT + 42);
  put_escaped(plot->x_name, file);
  fprintf(file, "</text>\n<text class=\"x\" transform=\"translate(20 %d) rotate(-90)\">%s</text>\n",
          TOP + AREA_HEIGHT / 2, plot->quantity == RUN_TIME ? "time" : "bandwidth");
}

/* ---- the lines ---- */

/* Colours that stay apart for those who see fewer (Okabe and Ito), and shapes, for paper without
 * any. */
static const char *const colours[] = { "#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                       "#e69f00", "#56b4e9", "#000000" };
static const char *const shapes[] = { "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z", "M-4-4h8v8h-8z",
                                      "M0-5L5 4h-10z", "M0-5.5L5.5 0L0 5.5L-5.5 0z",
                                      "M0 5L5-4h-10z" };
enum { COLOURS = sizeof colours / sizeof *colours, SHAPES = sizeof shapes / sizeof *shapes };

static void put_mark(size_t number, double x, double y, FILE *file)
{
  fprintf(file, "<path transform=\"translate(%.1f %.1f)\" d=\"%s\">", x, y,
          shapes[number % SHAPES]);
}

static void put_points(const run_plot *plot, const axes *a, size_t number, FILE *file)
{
  const run_line *line = &plot->lines[number];
  for (size_t i = 0; i < line->count; i++) {
    char *value = quantity_text(plot->quantity, line->points[i].y);
    put_mark(number, place_x(a, line->points[i].x), place_y(a, line->points[i].y), file);
    fputs("<title>", file);
    put_escaped(plot->x_name, file);
    fprintf(file, " = %.15g: %s</title></path>\n", line->points[i].x, value);
    free(value);
  }
}

static void put_line(const run_plot *plot, const axes *a, size_t number, FILE *file)
{
  const run_line *line = &plot->lines[number];
  const char *colour = colours[number % COLOURS];
  double row = TOP + AREA_HEIGHT + BELOW + ROW * (double)number;
  fprintf(file, "<g class=\"line\" stroke=\"%s\" fill=\"%s\">\n", colour, colour);
  if (line->count) fputs("<path class=\"curve\" d=\"", file);
  for (size_t i = 0; i < line->count; i++)
    fprintf(file, "%s%.1f %.1f", i ? "L" : "M", place_x(a, line->points[i].x),
            place_y(a, line->points[i].y));
  if (line->count) fputs("\"/>\n", file);
  put_points(plot, a, number, file);
  fprintf(file, "<path class=\"curve\" d=\"M%d %.1fh32\"/>", LEFT, row);
  put_mark(number, LEFT + 16, row, file);
  fprintf(file, "</path>\n<text class=\"name\" x=\"%d\" y=\"%.1f\">", LEFT + 42, row + 4.5);
  put_escaped(line->name, file);
  fputs("</text>\n</g>\n", file);
}

void run_write_plot(const run_plot *plot, FILE *file)
{
  axes a = find_axes(plot);
  size_t height = TOP + AREA_HEIGHT + BELOW + ROW * plot->line_count;
  fprintf(file,
          "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%zu\" viewBox=\"0 0 %d "
          "%zu\" role=\"img\">\n<title>",
          WIDTH, height, WIDTH, height);
  put_escaped(plot->title, file);
  fputs("</title>\n<style>text{font:14px sans-serif;fill:#222;stroke:none}"
        ".x{text-anchor:middle}.y{text-anchor:end}.title{font-size:17px}"
        ".grid{stroke:#ddd}.axis{stroke:#222;fill:none}"
        ".curve{fill:none;stroke-width:2;stroke-linejoin:round}</style>\n",
        file);
  fprintf(file, "<rect width=\"%d\" height=\"%zu\" fill=\"#fff\"/>\n", WIDTH, height);
  put_frame(plot, &a, file);
  for (size_t i = 0; i < plot->line_count; i++) put_line(plot, &a, i, file);
  fputs("</svg>\n", file);
}
