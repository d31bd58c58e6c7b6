"""Plots as SVG, with nothing but the standard library: lines, ratios as dots, bars."""
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
    save(path, parts)


def heading(width, height, title):
    return [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" font-family="sans-serif" '
            'font-size="13">', f'<rect width="{width}" height="{height}" fill="white"/>', text(12, 24, title, "start", 'font-size="15"')]


def ratio_axis(x, top, bottom):
    """Returns the grid of a plot of ratios, with a line at 1."""
    parts = []
    for tick in sorted({m * 10.0**k for k in range(int(x.low), int(x.high) + 1) for m in (1, 3)}):
        if x.first_pixel <= x.pixel(tick) <= x.last_pixel:
            color, width = ("#333333", 2) if tick == 1 else ("#dddddd", 1)
            parts.append(f'<line x1="{x.pixel(tick):.1f}" y1="{top - 8}" x2="{x.pixel(tick):.1f}" y2="{bottom}" stroke="{color}" stroke-width="{width}"/>')
            parts.append(text(x.pixel(tick), bottom + 18, f"{tick:g}"))
    parts.append(text(x.pixel(1) - 10, top - 14, "kjit is faster", "end", 'fill="#2f8f4e"'))
    parts.append(text(x.pixel(1) + 10, top - 14, "slower", "start", 'fill="#c44e16"'))
    return parts


def write_ratios(path, title, groups):
    """Draws one dot, or a bar from low to high, for each row on a logarithmic axis. groups: {name: [(label, peer, low, high), ...]}."""
    label_end, left, right, top, step = 240, 380, 90, 66, 21
    rows = [row for rows in groups.values() for row in rows]
    bottom = top + step * (len(rows) + len(groups))
    x = Axis([value for *_, low, high in rows for value in (low, high)], True, left, WIDTH - right)
    parts = heading(WIDTH, bottom + 34, title) + ratio_axis(x, top, bottom)
    y = top + step / 2
    for name, rows in groups.items():
        parts.append(text(12, y + 4, name, "start", 'font-weight="bold"'))
        for label, peer, low, high in rows:
            y += step
            color = COLORS[2] if high <= 1 else COLORS[1]
            parts.append(text(label_end, y + 4, label, "end"))
            parts.append(text(label_end + 12, y + 4, peer, "start", 'fill="#666666"'))
            parts.append(f'<line x1="{x.pixel(low):.1f}" y1="{y:.1f}" x2="{x.pixel(high):.1f}" y2="{y:.1f}" stroke="{color}" stroke-width="4"/>')
            parts.append(f'<circle cx="{x.pixel(math.sqrt(low * high)):.1f}" cy="{y:.1f}" r="5" fill="{color}"/>')
            value = f"{low:.2f}" if low == high else f"{low:.2f} to {high:.2f}"
            parts.append(text(WIDTH - 8, y + 4, value, "end", 'font-size="11" fill="#555555"'))
        y += step
    save(path, parts)


def write_bars(path, title, groups, unit):
    """Draws a horizontal bar for each value. groups: {name: [(label, value), ...]}; the first bar of a group is kjit's."""
    left, right, top, step = 200, 100, 46, 24
    longest = max(value for bars in groups.values() for _, value in bars)
    parts, y = [], top
    for name, bars in groups.items():
        if name:
            parts.append(text(12, y + 14, name, "start", 'font-weight="bold"'))
            y += step
        for k, (label, value) in enumerate(bars):
            width = value / longest * (WIDTH - left - right)
            parts.append(text(left - 10, y + 15, label, "end"))
            parts.append(f'<rect x="{left}" y="{y + 3}" width="{width:.1f}" height="{step - 7}" fill="{COLORS[0] if k == 0 else "#b8bcc2"}"/>')
            parts.append(text(left + width + 8, y + 15, f"{value:g} {unit}", "start"))
            y += step
    save(path, heading(WIDTH, y + 14, title) + parts)


def write_cells(path, title, rows):
    """Draws rows of numbered cells, each in the colour of its owner. rows: [(label, owners, name of an owner), ...]."""
    left, top, step, side = 12, 44, 76, 41
    parts = heading(WIDTH, top + step * len(rows) + 4, title)
    for k, (label, owners, name) in enumerate(rows):
        y = top + step * k
        parts.append(text(left, y + 12, label, "start"))
        for i, owner in enumerate(owners):
            x = left + (side + 2) * i
            parts.append(f'<rect x="{x}" y="{y + 20}" width="{side}" height="{side}" rx="3" fill="{COLORS[owner]}"/>')
            parts.append(text(x + side / 2, y + 36, str(i), more='fill="white"'))
            parts.append(text(x + side / 2, y + 50, f"{name}{owner}", more='fill="white" font-size="9"'))
    save(path, parts)


def save(path, parts):
    with open(path, "w") as file:
        file.write("\n".join(parts) + "\n</svg>\n")
