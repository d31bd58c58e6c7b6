#include <plot/plot.h>

#include <math.h>
#include <string.h>

/* Sizes in units of the SVG, which browsers show as pixels. */
enum {
  WIDTH = 900,
  LEFT = 104,
  RIGHT = 24,
  TOP = 46,
  AREA_HEIGHT = 380,
  AREA_WIDTH = WIDTH - LEFT - RIGHT,
  LEGEND = TOP + AREA_HEIGHT + 60, /* top edge of the legend */
  ROW = 22,
  PADDING = 10,
  BOTTOM = 16
};

bool plot_has_place(double value) { return value > 0 && !isinf(value); }

/* ---- axes ---- */

typedef struct axis {
  double low, high; /* logarithms to base 10 of the ends of the axis */
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
  if (!plot_has_place(value)) return;
  double place = log10(value);
  if (place < a->low) a->low = place;
  if (place > a->high) a->high = place;
}

/* Rounds an end of an axis to a tick at 1, 2 or 5 times a power of ten. So in a plot with few ticks
 * the outer points do not lie on the frame. */
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

static axes find_axes(const plot_figure *figure)
{
  axes a = { { INFINITY, -INFINITY }, { INFINITY, -INFINITY }, true };
  for (size_t i = 0; i < figure->line_count; i++)
    for (size_t k = 0; k < figure->lines[i].count; k++) {
      const plot_point *p = &figure->lines[i].points[k];
      extend(&a.x, p->x);
      extend(&a.y, p->y);
      extend(&a.y, p->low);
      extend(&a.y, p->high);
      a.is_binary = a.is_binary && is_power_of_two(p->x);
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
      /* XML does not allow control characters */
      putc((unsigned char)*text < ' ' || *text == 127 ? ' ' : *text, file);
    }
}

/* Writes a quantity such as 1000 or 2e-6 with a prefix of its unit: "20 GB/s", "5 µs". Without a
 * unit it writes "10k". */
static void put_quantity(const char *unit, double value, FILE *file)
{
  static const char *const prefixes[] = { "p", "n", "µ", "m", "", "k", "M", "G", "T", "P", "E" };
  enum { NONE = 4, LAST = sizeof prefixes / sizeof *prefixes - 1 };
  int at = (int)floor(log10(value) / 3 + 1e-9) + NONE;
  /* prefixes above 1 are not usual for seconds */
  if (!strcmp(unit, "s") && at > NONE) at = NONE;
  if (at < 0) at = 0;
  if (at > LAST) at = LAST;
  fprintf(file, "%.3g%s%s", value / pow(1000, at - NONE), *unit ? " " : "", prefixes[at]);
  put_escaped(unit, file);
}

/* Writes a power of two with a raised exponent, in characters that all fonts have. */
static void put_power_of_two(int exponent, FILE *file)
{
  static const char *const digits[] = { "⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹" };
  char decimal[16];
  snprintf(decimal, sizeof decimal, "%d", exponent);
  putc('2', file);
  for (const char *at = decimal; *at; at++) fputs(*at == '-' ? "⁻" : digits[*at - '0'], file);
}

/* ---- the frame ---- */

static bool begin_tick_x(const axes *a, double value, FILE *file)
{
  double x = place_x(a, value);
  if (x < LEFT - 0.5 || x > LEFT + AREA_WIDTH + 0.5) return false;
  fprintf(file, "<path class=\"grid\" d=\"M%.1f %dv%d\"/>", x, TOP, AREA_HEIGHT);
  fprintf(file, "<text class=\"x\" x=\"%.1f\" y=\"%d\">", x, TOP + AREA_HEIGHT + 19);
  return true;
}

static void put_tick_x(const axes *a, double value, FILE *file)
{
  if (!begin_tick_x(a, value, file)) return;
  put_quantity("", value, file);
  fputs("</text>\n", file);
}

static void put_binary_ticks_x(const axes *a, FILE *file)
{
  enum { MOST = 14 };
  int first = (int)ceil(a->x.low / log10(2)), last = (int)floor(a->x.high / log10(2)),
      step = 1 + (last - first) / MOST;
  for (int i = first; i <= last; i += step) {
    if (!begin_tick_x(a, pow(2, i), file)) continue;
    put_power_of_two(i, file);
    fputs("</text>\n", file);
  }
}

/* Chooses the digits that have a tick in each decade. The more decades, the fewer digits. */
static size_t choose_digits(double decades, const int **digits)
{
  static const int all[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 }, some[] = { 1, 2, 5 };
  *digits = decades < 1 ? all : some;
  return decades < 1 ? 9 : decades <= 3 ? 3 : 1;
}

static void put_decimal_ticks_x(const axes *a, FILE *file)
{
  const int *digits;
  double decades = a->x.high - a->x.low;
  size_t used = choose_digits(decades, &digits);
  int step = 1 + (int)decades / 14;
  for (int decade = (int)floor(a->x.low); decade <= (int)ceil(a->x.high); decade += step)
    for (size_t i = 0; i < used; i++) put_tick_x(a, digits[i] * pow(10, decade), file);
}

static void put_ticks_y(const plot_figure *figure, const axes *a, FILE *file)
{
  static const int digits[] = { 1, 2, 5 };
  double decades = a->y.high - a->y.low;
  size_t used = decades > 3 ? 1 : 3;
  int step = 1 + (int)decades / 14;
  for (int decade = (int)floor(a->y.low); decade <= (int)ceil(a->y.high); decade += step)
    for (size_t i = 0; i < used; i++) {
      double value = digits[i] * pow(10, decade), y = place_y(a, value);
      if (y < TOP - 0.5 || y > TOP + AREA_HEIGHT + 0.5) continue;
      fprintf(file, "<path class=\"grid\" d=\"M%d %.1fh%d\"/>", LEFT, y, AREA_WIDTH);
      fprintf(file, "<text class=\"y\" x=\"%d\" y=\"%.1f\">", LEFT - 8, y + 4.5);
      put_quantity(figure->unit, value, file);
      fputs("</text>\n", file);
    }
}

static void put_frame(const plot_figure *figure, const axes *a, FILE *file)
{
  if (a->is_binary) put_binary_ticks_x(a, file);
  else put_decimal_ticks_x(a, file);
  put_ticks_y(figure, a, file);
  fprintf(file, "<path class=\"axis\" d=\"M%d %dv%dh%d\"/>\n", LEFT, TOP, AREA_HEIGHT, AREA_WIDTH);
  fprintf(file, "<text class=\"title\" x=\"%d\" y=\"26\">", LEFT);
  put_escaped(figure->title, file);
  fprintf(file, "</text>\n<text class=\"x\" x=\"%d\" y=\"%d\">", LEFT + AREA_WIDTH / 2,
          TOP + AREA_HEIGHT + 42);
  put_escaped(figure->x_name, file);
  fprintf(file, "</text>\n<text class=\"x\" transform=\"translate(20 %d) rotate(-90)\">",
          TOP + AREA_HEIGHT / 2);
  put_escaped(figure->y_name, file);
  fputs("</text>\n", file);
}

/* ---- the lines ---- */

/* Colours that colour-blind people can tell apart (Okabe and Ito), lighter colours for a dark
 * background, and shapes for prints without colour. */
static const char *const light[] = { "#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                     "#b07a00", "#3a9bd0", "#000000" };
static const char *const dark[] = { "#5aaee6", "#ff8d4d", "#3fc79a", "#e8a0c8",
                                    "#f2b33d", "#9fdcff", "#f0f0f0" };
static const char *const shapes[] = { "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z", "M-4-4h8v8h-8z",
                                      "M0-5L5 4h-10z", "M0-5.5L5.5 0L0 5.5L-5.5 0z",
                                      "M0 5L5-4h-10z" };
enum { COLOURS = sizeof light / sizeof *light, SHAPES = sizeof shapes / sizeof *shapes };

static void put_mark(size_t number, double x, double y, FILE *file)
{
  fprintf(file, "<path transform=\"translate(%.1f %.1f)\" d=\"%s\">", x, y,
          shapes[number % SHAPES]);
}

static void put_points(const plot_figure *figure, const axes *a, size_t number, FILE *file)
{
  const plot_line *line = &figure->lines[number];
  for (size_t i = 0; i < line->count; i++) {
    put_mark(number, place_x(a, line->points[i].x), place_y(a, line->points[i].y), file);
    fputs("<title>", file);
    put_escaped(figure->x_name, file);
    fprintf(file, " = %.15g: ", line->points[i].x);
    put_quantity(figure->unit, line->points[i].y, file);
    fputs("</title></path>\n", file);
  }
}

static bool has_band(const plot_point *point)
{
  return plot_has_place(point->low) && plot_has_place(point->high);
}

/* Draws an area for each run of points that have error bands. */
static void put_bands(const plot_line *line, const axes *a, FILE *file)
{
  for (size_t first = 0, end; first < line->count; first = end + 1) {
    for (end = first; end < line->count && has_band(&line->points[end]);) end++;
    if (end - first < 2) continue;
    fputs("<path class=\"band\" d=\"", file);
    for (size_t i = first; i < end; i++)
      fprintf(file, "%s%.1f %.1f", i > first ? "L" : "M", place_x(a, line->points[i].x),
              place_y(a, line->points[i].high));
    for (size_t i = end; i-- > first;)
      fprintf(file, "L%.1f %.1f", place_x(a, line->points[i].x), place_y(a, line->points[i].low));
    fputs("z\"/>\n", file);
  }
}

static void put_line(const plot_figure *figure, const axes *a, size_t number, FILE *file)
{
  const plot_line *line = &figure->lines[number];
  double row = LEGEND + PADDING + ROW * ((double)number + 0.5);
  fprintf(file, "<g class=\"line c%zu\">\n", number % COLOURS);
  put_bands(line, a, file);
  if (line->count) fputs("<path class=\"curve\" d=\"", file);
  for (size_t i = 0; i < line->count; i++)
    fprintf(file, "%s%.1f %.1f", i ? "L" : "M", place_x(a, line->points[i].x),
            place_y(a, line->points[i].y));
  if (line->count) fputs("\"/>\n", file);
  put_points(figure, a, number, file);
  fprintf(file, "<path class=\"curve\" d=\"M%d %.1fh32\"/>", LEFT + PADDING, row);
  put_mark(number, LEFT + PADDING + 16, row, file);
  fprintf(file, "</path>\n<text class=\"name\" x=\"%d\" y=\"%.1f\">", LEFT + PADDING + 42,
          row + 4.5);
  put_escaped(line->name, file);
  fputs("</text>\n</g>\n", file);
}

/* ---- the whole ---- */

static void put_colours(const char *const *colours, const char *ground, const char *text,
                        const char *grid, FILE *file)
{
  fprintf(file, ".ground{fill:%s}text,.name{fill:%s;stroke:none}.grid{stroke:%s}", ground, text,
          grid);
  fprintf(file, ".axis{stroke:%s}.legend{stroke:%s}", text, grid);
  for (int i = 0; i < COLOURS; i++)
    fprintf(file, ".c%d{stroke:%s;fill:%s}", i, colours[i], colours[i]);
}

static void put_style(plot_theme theme, FILE *file)
{
  fputs("<style>text{font:14px sans-serif}.x{text-anchor:middle}.y{text-anchor:end}"
        ".title{font-size:17px}.axis,.legend,.curve{fill:none}"
        ".curve{stroke-width:2;stroke-linejoin:round}.band{fill-opacity:.2;stroke:none}\n",
        file);
  if (theme != PLOT_DARK) put_colours(light, "#fff", "#222", "#ddd", file);
  if (theme == PLOT_AUTO) fputs("\n@media (prefers-color-scheme:dark){", file);
  if (theme != PLOT_LIGHT) put_colours(dark, "#1b1e23", "#e4e4e4", "#3a3f47", file);
  fputs(theme == PLOT_AUTO ? "}</style>\n" : "</style>\n", file);
}

void plot_write(const plot_figure *figure, FILE *file)
{
  axes a = find_axes(figure);
  size_t box = 2 * PADDING + ROW * figure->line_count, height = LEGEND + box + BOTTOM;
  fprintf(file,
          "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%zu\" viewBox=\"0 0 %d "
          "%zu\" role=\"img\">\n<title>",
          WIDTH, height, WIDTH, height);
  put_escaped(figure->title, file);
  fputs("</title>\n", file);
  put_style(figure->theme, file);
  fprintf(file, "<rect class=\"ground\" width=\"%d\" height=\"%zu\"/>\n", WIDTH, height);
  put_frame(figure, &a, file);
  fprintf(file, "<rect class=\"legend\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%zu\" rx=\"3\"/>\n",
          LEFT, LEGEND, AREA_WIDTH, box);
  for (size_t i = 0; i < figure->line_count; i++) put_line(figure, &a, i, file);
  fputs("</svg>\n", file);
}
