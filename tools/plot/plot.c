#include <plot/plot.h>

#include <math.h>
#include <string.h>

/* Sizes in units of the SVG, which browsers show as pixels. */
enum {
  WIDTH = 900,
  LEFT = 104,
  RIGHT = 40,
  TOP = 46,
  AREA_HEIGHT = 380,
  AREA_WIDTH = WIDTH - LEFT - RIGHT,
  LEGEND = TOP + AREA_HEIGHT + 60, /* top edge of the legend */
  ROW = 22,
  TEXT_SIZE = 14,
  TITLE_SIZE = 17,
  PADDING = 10,
  BOTTOM = 16
};

bool plot_has_place(double value) { return value > 0 && !isinf(value); }

/* ---- axes ---- */

typedef struct axis {
  double low, high; /* decimal logarithms of the axis' ends */
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

/* Rounds an end of an axis to a tick at 1, 2 or 5 times a power of ten. In a plot with few ticks,
 * the outermost points then do not touch the frame. */
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

/* Decodes the UTF-8 character at *text and moves *text to the next character. Returns U+FFFD for a
 * byte that is not valid UTF-8 and for a character that XML does not allow. */
static unsigned decode(const char **text)
{
  enum { REPLACEMENT = 0xfffd, LAST = 0x10ffff };
  static const unsigned first[] = { 0, 0x80, 0x800, 0x10000 };
  const unsigned char *at = (const unsigned char *)*text;
  int more = *at < 0x80   ? 0
             : *at < 0xc0 ? -1
             : *at < 0xe0 ? 1
             : *at < 0xf0 ? 2
             : *at < 0xf8 ? 3
                          : -1;
  (*text)++;
  if (more < 0) return REPLACEMENT;
  if (!more) return *at < ' ' || *at == 127 ? ' ' : *at;
  unsigned code = *at & (0x3fu >> more);
  for (int i = 1; i <= more; i++) {
    if ((at[i] & 0xc0) != 0x80) return REPLACEMENT;
    code = code << 6 | (at[i] & 0x3f);
  }
  bool is_surrogate = code >= 0xd800 && code < 0xe000;
  if (code < first[more] || code > LAST || is_surrogate || (code & 0xfffe) == 0xfffe)
    return REPLACEMENT;
  *text += more;
  return code;
}

static void put_character(unsigned code, FILE *file)
{
  switch (code) {
  case '<': fputs("&lt;", file); return;
  case '>': fputs("&gt;", file); return;
  case '&': fputs("&amp;", file); return;
  case '"': fputs("&quot;", file); return;
  default: break;
  }
  if (code < 0x80) putc((int)code, file);
  else fprintf(file, "&#%u;", code);
}

static void put_escaped(const char *text, FILE *file)
{
  while (*text) put_character(decode(&text), file);
}

/* Returns a character's width in columns. Characters of East Asian scripts and pictographs are as
 * wide as two letters. */
static size_t columns_of(unsigned code) { return code < 0x1100 ? 1 : code == 0xfffd ? 1 : 2; }

/* Writes a text in a given font size and with a maximum width, in SVG units. A text that is too
 * wide keeps its two ends around an ellipsis, because names of lines often differ only at the end.
 * The whole text is shown as a tooltip. */
static void put_fitted(const char *text, int width, int size, FILE *file)
{
  /* width of wide letters in sans-serif fonts, as a fraction of the font size */
  const double letter = 0.62;
  size_t most = (size_t)(width / (letter * size)), all = 0, column = 0;
  for (const char *at = text; *at;) all += columns_of(decode(&at));
  if (all <= most) {
    put_escaped(text, file);
    return;
  }
  size_t first = most / 2, rest = all - (most - first - 1);
  bool is_cut = false;
  for (const char *at = text; *at;) {
    unsigned code = decode(&at);
    if (column + columns_of(code) <= first || column >= rest) put_character(code, file);
    else if (!is_cut) is_cut = true, put_character(0x2026, file);
    column += columns_of(code);
  }
  fputs("<title>", file);
  put_escaped(text, file);
  fputs("</title>", file);
}

/* Formats a quantity such as 1000 or 2e-6 with a prefix of its unit: "20 GB/s", "5 µs". Without a
 * unit it writes "10k". A value beyond the prefixes has an exponent: "1e-20 s". */
static void put_quantity(const char *unit, double value, int digits, FILE *file)
{
  static const char *const prefixes[] = { "p", "n", "µ", "m", "", "k", "M", "G", "T", "P", "E" };
  enum { NONE = 4, LAST = sizeof prefixes / sizeof *prefixes - 1 };
  int at = (int)floor(log10(value) / 3 + 1e-9) + NONE;
  /* seconds have no prefixes above 1 */
  if (at < 0 || at > LAST || (!strcmp(unit, "s") && at > NONE)) at = NONE;
  fprintf(file, "%.*g%s%s", digits, value / pow(1000, at - NONE), *unit ? " " : "", prefixes[at]);
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

/* Ticks of an axis: digits times powers of ten, or a linear sequence. */
typedef struct ticks {
  double values[32];
  size_t count;
  int digits; /* number of significant digits that are needed to tell the values apart */
} ticks;

enum { MOST_TICKS = sizeof((ticks *)0)->values / sizeof(double) };

static void add_tick(ticks *t, const axis *a, double value)
{
  double place = log10(value);
  bool is_inside = place >= a->low - 1e-9 && place <= a->high + 1e-9;
  if (is_inside && t->count < MOST_TICKS) t->values[t->count++] = value;
}

/* Adds ticks at digits of each decade. The more decades, the fewer digits. */
static ticks find_decimal_ticks(const axis *a)
{
  static const int all[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 }, some[] = { 1, 2, 5 };
  ticks t = { .digits = 3 };
  double decades = a->high - a->low;
  const int *digits = decades < 0.8 ? all : some;
  size_t used = decades < 0.8 ? 9 : decades <= 3 ? 3 : 1;
  int step = 1 + (int)decades / 14;
  for (int decade = (int)floor(a->low); decade <= (int)ceil(a->high); decade += step)
    for (size_t i = 0; i < used; i++) add_tick(&t, a, digits[i] * pow(10, decade));
  return t;
}

/* Adds ticks at multiples of 1, 2 or 5 times a power of ten, for an axis that covers only a part of
 * a decade. There are fewer ticks if the labels have many digits. */
static ticks find_linear_ticks(const axis *a)
{
  enum { MANY_DIGITS = 5 };
  ticks t = { .digits = 3 };
  double low = pow(10, a->low), high = pow(10, a->high);
  double unit = pow(10, floor(log10(high - low))), units = (high - low) / unit;
  double step = unit * (units < 2 ? 0.2 : units < 5 ? 0.5 : 1);
  double needed = floor(log10(high)) - floor(log10(step)) + 1;
  if (needed > t.digits) t.digits = (int)needed;
  if (t.digits > MANY_DIGITS) step = unit * (units < 2 ? 0.5 : units < 5 ? 1 : 2);
  double first = ceil(low / step - 1e-9);
  for (int i = 0; i < MOST_TICKS; i++) add_tick(&t, a, (first + i) * step);
  return t;
}

static ticks find_ticks(const axis *a)
{
  enum { FEW = 4 };
  ticks t = find_decimal_ticks(a);
  return t.count < FEW && a->high - a->low < 1 ? find_linear_ticks(a) : t;
}

static void begin_tick_x(const axes *a, double value, FILE *file)
{
  double x = place_x(a, value);
  fprintf(file, "<path class=\"grid\" d=\"M%.1f %dv%d\"/>", x, TOP, AREA_HEIGHT);
  fprintf(file, "<text class=\"x\" x=\"%.1f\" y=\"%d\">", x, TOP + AREA_HEIGHT + 19);
}

static void put_binary_ticks_x(const axes *a, FILE *file)
{
  enum { MOST = 14 };
  int first = (int)ceil(a->x.low / log10(2)), last = (int)floor(a->x.high / log10(2)),
      step = 1 + (last - first) / MOST;
  for (int i = first; i <= last; i += step) {
    begin_tick_x(a, pow(2, i), file);
    put_power_of_two(i, file);
    fputs("</text>\n", file);
  }
}

static void put_decimal_ticks_x(const axes *a, FILE *file)
{
  ticks t = find_ticks(&a->x);
  /* half of the width of the widest label, which has digits, a point and a prefix */
  double half = 0.3 * TEXT_SIZE * (t.digits + 2);
  for (size_t i = 0; i < t.count; i++) {
    if (place_x(a, t.values[i]) + half > WIDTH) continue;
    begin_tick_x(a, t.values[i], file);
    put_quantity("", t.values[i], t.digits, file);
    fputs("</text>\n", file);
  }
}

static void put_ticks_y(const plot_figure *figure, const axes *a, FILE *file)
{
  enum { MOST_OF_UNIT = 5 };
  ticks t = find_ticks(&a->y);
  /* there is no space for a long unit to the axis' left; the axis name contains the unit as well */
  const char *unit = strlen(figure->unit) > MOST_OF_UNIT ? "" : figure->unit;
  for (size_t i = 0; i < t.count; i++) {
    double y = place_y(a, t.values[i]);
    fprintf(file, "<path class=\"grid\" d=\"M%d %.1fh%d\"/>", LEFT, y, AREA_WIDTH);
    fprintf(file, "<text class=\"y\" x=\"%d\" y=\"%.1f\">", LEFT - 8, y + 4.5);
    put_quantity(unit, t.values[i], t.digits, file);
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
  put_fitted(figure->title, WIDTH - LEFT - 4, TITLE_SIZE, file);
  fprintf(file, "</text>\n<text class=\"x\" x=\"%d\" y=\"%d\">", LEFT + AREA_WIDTH / 2,
          TOP + AREA_HEIGHT + 42);
  put_fitted(figure->x_name, AREA_WIDTH, TEXT_SIZE, file);
  fprintf(file, "</text>\n<text class=\"x\" transform=\"translate(20 %d) rotate(-90)\">",
          TOP + AREA_HEIGHT / 2);
  put_fitted(figure->y_name, AREA_HEIGHT + TOP, TEXT_SIZE, file);
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
    put_quantity(figure->unit, line->points[i].y, 3, file);
    fputs("</title></path>\n", file);
  }
}

static bool has_band(const plot_point *point)
{
  return plot_has_place(point->low) && plot_has_place(point->high);
}

/* Draws an area for each run of points that have error bands, and a bar for a single point. */
static void put_bands(const plot_line *line, const axes *a, FILE *file)
{
  for (size_t first = 0, end; first < line->count; first = end + 1) {
    for (end = first; end < line->count && has_band(&line->points[end]);) end++;
    if (end - first == 1)
      fprintf(file, "<path class=\"bar\" d=\"M%.1f %.1fV%.1f\"/>\n",
              place_x(a, line->points[first].x), place_y(a, line->points[first].high),
              place_y(a, line->points[first].low));
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
  put_fitted(line->name, AREA_WIDTH - 2 * PADDING - 42, TEXT_SIZE, file);
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
  fprintf(file, "<style>text{font:%dpx sans-serif}.title{font-size:%dpx}", TEXT_SIZE, TITLE_SIZE);
  fputs(".x{text-anchor:middle}.y{text-anchor:end}.axis,.legend,.curve{fill:none}"
        ".curve{stroke-width:2;stroke-linejoin:round}.band{fill-opacity:.2;stroke:none}"
        ".bar{stroke-width:8;stroke-opacity:.2}\n",
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
