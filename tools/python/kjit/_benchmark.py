"""Times of functions over sizes, as a table and as a figure."""

import html
import math
import time

from . import _arrays, _kjit

_COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#7f7f7f")
_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 640, 400, 70, 20, 30, 50


class Benchmark:
    """What kjit.benchmark measured: `rows`, tuples (label, size, seconds). Printed, a table; in a notebook, a figure."""

    def __init__(self, rows, size_name, amount=None, unit="s"):
        self.rows, self.size_name, self.amount, self.unit = rows, size_name, amount, unit

    @property
    def labels(self):
        return list(dict.fromkeys(row[0] for row in self.rows))

    @property
    def sizes(self):
        return sorted({row[1] for row in self.rows})

    def series(self, label):
        """Sizes and values of one label: seconds, or amounts a second."""
        pairs = sorted(
            (n, seconds if self.amount is None else self.amount(n) / seconds)
            for name, n, seconds in self.rows
            if name == label
        )
        return [n for n, _ in pairs], [v for _, v in pairs]

    def __str__(self):
        table = {(label, n): v for label in self.labels for n, v in zip(*self.series(label))}
        cells = [[self.size_name, *(f"{label} [{self.unit}]" for label in self.labels)]]
        cells += [
            [str(n), *(f"{table[label, n]:.4g}" if (label, n) in table else "" for label in self.labels)]
            for n in self.sizes
        ]
        widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
        return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths)) for row in cells)

    __repr__ = __str__

    def figure(self):
        """A figure of matplotlib, which has to be installed."""
        from matplotlib import pyplot

        figure, axes = pyplot.subplots()
        for label in self.labels:
            axes.loglog(*self.series(label), marker="o", label=label)
        axes.set_xlabel(self.size_name)
        axes.set_ylabel(self.unit)
        axes.legend()
        axes.grid(True, alpha=0.3)
        return figure

    def save(self, path):
        """Writes the figure: "name.svg" needs nothing, other kinds of files need matplotlib."""
        if str(path).endswith(".svg"):
            with open(path, "w", encoding="utf-8") as file:
                file.write(self.svg())
        else:
            self.figure().savefig(path)

    def _repr_svg_(self):
        return self.svg()

    def svg(self):
        """The figure as the text of an SVG file; both axes are logarithmic."""
        series = [(label, *self.series(label)) for label in self.labels]
        across = _Axis([n for _, sizes, _ in series for n in sizes], _LEFT, _WIDTH - _RIGHT)
        up = _Axis([v for _, _, values in series for v in values], _HEIGHT - _BOTTOM, _TOP)
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" '
            'font-family="sans-serif" font-size="12">',
            f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        ]
        for value in across.ticks:
            x = across.place(value)
            parts.append(f'<line x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{_HEIGHT - _BOTTOM}" stroke="#ddd"/>')
            parts.append(f'<text x="{x:.1f}" y="{_HEIGHT - _BOTTOM + 16}" text-anchor="middle">{value:g}</text>')
        for value in up.ticks:
            y = up.place(value)
            parts.append(f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDTH - _RIGHT}" y2="{y:.1f}" stroke="#ddd"/>')
            parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>')
        parts.append(
            f'<text x="{(_LEFT + _WIDTH - _RIGHT) / 2}" y="{_HEIGHT - 12}" text-anchor="middle">{html.escape(self.size_name)}</text>'
        )
        parts.append(f'<text x="14" y="{_TOP - 12}">{html.escape(self.unit)}</text>')
        for i, (label, sizes, values) in enumerate(series):
            colour = _COLOURS[i % len(_COLOURS)]
            points = [(across.place(n), up.place(v)) for n, v in zip(sizes, values)]
            line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
            parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
            parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points]
            parts.append(f'<text x="{_LEFT + 10}" y="{_TOP + 16 + 16 * i}" fill="{colour}">{html.escape(label)}</text>')
        return "\n".join([*parts, "</svg>"]) + "\n"


class _Axis:
    """A logarithmic axis from one place to another; its ticks are powers of ten, or 1, 2 and 5 times such."""

    def __init__(self, values, first, last):
        values = [v for v in values if v > 0] or [1]
        low, high = math.log10(min(values)), math.log10(max(values))
        if high - low < 0.1:
            low, high = low - 0.5, high + 0.5
        self.low, self.high, self.first, self.last = low, high, first, last
        steps = (1,) if high - low > 2 else (1, 2, 5)
        powers = range(math.floor(low) - 1, math.ceil(high) + 1)
        ticks = [m * 10.0**p for p in powers for m in steps if low - 1e-9 <= math.log10(m * 10.0**p) <= high + 1e-9]
        self.ticks = ticks[:: max(1, len(ticks) // 10)] or [10**low]

    def place(self, value):
        part = (math.log10(max(value, 1e-300)) - self.low) / (self.high - self.low)
        return self.first + part * (self.last - self.first)


def _measure(call, wait, seconds):
    """The least time of one call: calls are counted in batches of at least a millisecond, until the seconds are over."""
    call()
    wait()
    count, best, end = 1, math.inf, time.perf_counter() + seconds
    while True:
        began = time.perf_counter()
        for _ in range(count):
            call()
        wait()
        now = time.perf_counter()
        best = min(best, (now - began) / count)
        if now >= end:
            return best
        if now - began < 1e-3:
            count *= 2


def benchmark(functions, sizes, arguments, *, devices=(None,), seconds=0.1, size_name="n", amount=None, unit=None):
    """Measures functions over sizes, each the least time of many calls.

    functions: a callable, a list of them, or a dictionary by label: kernels, funcs, anything that is called with
    arguments(n), a tuple for each of the sizes. devices: names; for one that is not None NumPy's arrays among the arguments
    are copied there first, and the time is until the device is done. seconds: how long each is measured at least. amount:
    a function of the size: then values are amounts a second, whose unit is `unit` ("bytes/s").
    Gives a Benchmark: print it, look at it in a notebook, or save("name.svg")."""
    if not isinstance(functions, dict):
        several = functions if isinstance(functions, (list, tuple)) else [functions]
        functions = {getattr(f, "__name__", repr(f)): f for f in several}
        if len(functions) < len(several):
            raise ValueError("two of the functions have one name: give a dictionary by label")
    rows = []
    for device in devices:
        for label, function in functions.items():
            if not callable(function):
                raise TypeError(f"{label}: a {type(function).__name__} cannot be called")
            for n in sizes:
                given = arguments(n)
                given = given if isinstance(given, tuple) else (given,)
                if device is not None:
                    given = tuple(
                        _arrays.array(a, device=device)
                        if type(a).__module__ == "numpy" and getattr(a, "ndim", 0)
                        else a
                        for a in given
                    )
                waits = device is not None or any(isinstance(a, _kjit.Array) for a in given)
                place = _arrays.device(device) if waits else None
                took = _measure(lambda function=function, given=given: function(*given), place.synchronize if waits else lambda: None, seconds)
                rows.append((label if device is None else f"{label} ({device})", n, took))
    return Benchmark(rows, size_name, amount, unit or ("s" if amount is None else "1/s"))
