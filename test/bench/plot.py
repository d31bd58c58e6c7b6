"""Line plots as SVG, with nothing but the standard library."""
import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 440, 80, 190, 44, 56
COLORS = ["#1f5fa8", "#c44e16", "#2f8f4e", "#8a3fa0", "#b58900", "#3a3a3a", "#c2306a", "#00838f"]


class Axis:
    """Maps values to pixels, linearly or by their logarithm."""

    def __init__(self, values, is_log, first_pixel, last_pixel):
        low, high = min(values), max(values)
        self.is_log = is_log and low > 0
        if self.is_log:
            self.low, self.high = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
        else:
            self.low, self.high = min(0, low), high
        if self.high <= self.low:
            self.high = self.low + 1
        self.first_pixel, self.last_pixel = first_pixel, last_pixel

    def pixel(self, value):
        position = math.log10(value) if self.is_log else value
        return self.first_pixel + (position - self.low) / (self.high - self.low) * (self.last_pixel - self.first_pixel)

    def ticks(self):
        if self.is_log:
            return [10.0**k for k in range(int(self.low), int(self.high) + 1)]
        step = 10 ** math.floor(math.log10((self.high - self.low) / 4))
        step = next(step * k for k in (1, 2, 5, 10) if (self.high - self.low) / (step * k) <= 6)
        return [step * k for k in range(math.ceil(self.low / step), math.floor(self.high / step + 1e-9) + 1)]


def text(x, y, content, anchor="middle", more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{escape(content)}</text>'


def frame(x, y, x_label, y_label):
    parts = []
    for tick in y.ticks():
        parts.append(f'<line x1="{LEFT}" y1="{y.pixel(tick):.1f}" x2="{WIDTH - RIGHT}" y2="{y.pixel(tick):.1f}" stroke="#dddddd"/>')
        parts.append(text(LEFT - 8, y.pixel(tick) + 4, f"{tick:g}", "end"))
    for tick in x.ticks():
        parts.append(f'<line x1="{x.pixel(tick):.1f}" y1="{HEIGHT - BOTTOM}" x2="{x.pixel(tick):.1f}" y2="{HEIGHT - BOTTOM + 5}" stroke="black"/>')
        parts.append(text(x.pixel(tick), HEIGHT - BOTTOM + 19, f"{tick:g}"))
    parts.append(f'<path d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}" fill="none" stroke="black"/>')
    parts.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 14, x_label))
    parts.append(text(18, (TOP + HEIGHT - BOTTOM) / 2, y_label, more=f'transform="rotate(-90 18 {(TOP + HEIGHT - BOTTOM) / 2})"'))
    return parts


def line(points, x, y, color, name, place):
    path = "M" + "L".join(f"{x.pixel(a):.1f} {y.pixel(b):.1f}" for a, b in points)
    parts = [f'<path d="{path}" fill="none" stroke="{color}" stroke-width="2"/>']
    parts += [f'<circle cx="{x.pixel(a):.1f}" cy="{y.pixel(b):.1f}" r="3" fill="{color}"/>' for a, b in points]
    parts.append(f'<line x1="{WIDTH - RIGHT + 16}" y1="{place}" x2="{WIDTH - RIGHT + 38}" y2="{place}" stroke="{color}" stroke-width="2"/>')
    parts.append(text(WIDTH - RIGHT + 44, place + 4, name, "start"))
    return parts


def write_plot(path, title, x_label, y_label, series, log_x=False, log_y=False):
    """series: {name: [(x, y), ...]}; a file that any browser shows."""
    series = {name: sorted(points) for name, points in series.items() if points}
    x = Axis([a for points in series.values() for a, _ in points], log_x, LEFT, WIDTH - RIGHT)
    y = Axis([b for points in series.values() for _, b in points], log_y, HEIGHT - BOTTOM, TOP)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
             f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>', text(LEFT, 24, title, "start", 'font-size="15"')]
    parts += frame(x, y, x_label, y_label)
    for k, (name, points) in enumerate(series.items()):
        parts += line(points, x, y, COLORS[k % len(COLORS)], name, TOP + 14 + 20 * k)
    with open(path, "w") as file:
        file.write("\n".join(parts) + "\n</svg>\n")
