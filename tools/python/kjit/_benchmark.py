"""Measures the run times of functions for several sizes, and shows them as a table or a figure."""

import itertools
import math
import time

from . import _arrays, _kjit

_THEMES = {"auto": 0, "light": 1, "dark": 2}
# Units that take an SI prefix, such as "20 GB/s". Other units are printed unchanged.
_BYTES = ("bytes/s", "byte/s", "B/s")


class Benchmark:
    """The result of kjit.benchmark. It prints as a table, and a notebook shows it as a figure.

    `rows` has tuples (label, size, seconds). `bands` maps (label, size) to a pair of times in
    seconds: the fastest batch of calls and the upper quartile.
    """

    def __init__(self, rows, size_name, amount=None, unit="s", bands=None):
        self.rows, self.size_name, self.amount, self.unit = rows, size_name, amount, unit
        self.bands = bands or {}

    @property
    def title(self):
        return f"{'Time' if self.amount is None else self.unit} over {self.size_name}"

    @property
    def labels(self):
        return list(dict.fromkeys(row[0] for row in self.rows))

    @property
    def sizes(self):
        return sorted({row[1] for row in self.rows})

    def series(self, label):
        """Returns (sizes, values) for one label. The values are seconds, or amounts per second if
        `amount` was given."""
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

    def _points(self, label):
        """Returns (size, value, lower end, upper end of the band) for each size of one label."""
        points = []
        for n, value in zip(*self.series(label)):
            band = self.bands.get((label, n), (math.nan, math.nan))
            ends = band if self.amount is None else [self.amount(n) / seconds for seconds in reversed(band)]
            points.append((float(n), float(value), *map(float, ends)))
        return points

    def figure(self, theme="light"):
        """Returns a matplotlib figure. theme: "light" or "dark". Raises ImportError if matplotlib
        is not installed."""
        from matplotlib import pyplot

        with pyplot.style.context("dark_background" if theme == "dark" else "default"):
            figure, axes = pyplot.subplots(figsize=(9, 5.6), layout="constrained")
            for label, marker in zip(self.labels, itertools.cycle("os^Dv")):
                sizes, values, low, high = zip(*self._points(label))
                (line,) = axes.plot(sizes, values, marker=marker, label=label)
                axes.fill_between(sizes, low, high, color=line.get_color(), alpha=0.2, linewidth=0)
            self._set_axes(axes)
            axes.set_title(self.title, loc="left")
            axes.grid(True, alpha=0.3)
            figure.legend(loc="outside lower left", frameon=True)
        return figure

    def _set_axes(self, axes):
        """Sets the same ticks as in the SVG: powers of two if all sizes are powers of two,
        otherwise 1, 2 and 5 times powers of ten with SI prefixes."""
        from matplotlib import ticker

        binary = all(math.frexp(n)[0] == 0.5 for n in self.sizes)
        axes.set_xscale("log", base=2 if binary else 10)
        axes.set_yscale("log")
        unit = "B/s" if self.unit in _BYTES else self.unit
        decimal = [(axes.yaxis, ticker.EngFormatter(unit=unit))]
        if not binary:
            decimal.append((axes.xaxis, ticker.EngFormatter(sep="")))
        for axis, formatter in decimal:
            low, high = axis.get_view_interval()
            axis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5) if high <= 1000 * low else (1,)))
            axis.set_major_formatter(formatter)
            axis.set_minor_formatter(ticker.NullFormatter())
        axes.set_xlabel(self.size_name)
        axes.set_ylabel("time" if self.amount is None else self.unit)

    def save(self, path, theme=None):
        """Writes the figure to a file. "name.svg" needs no other package; other formats need
        matplotlib.

        theme: "light" or "dark"; for .svg also "auto", which adapts to the viewer's colour scheme.
        """
        if str(path).endswith(".svg"):
            text = self.svg(theme or "auto")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            return
        if theme not in (None, "light", "dark"):
            raise ValueError(f"the theme of a file that is not an .svg must be 'light' or 'dark', not {theme!r}")
        self.figure(theme or "light").savefig(path, bbox_inches="tight")

    def _repr_svg_(self):
        return self.svg()

    def svg(self, theme="auto"):
        """Returns the figure as the source of an SVG file. Both axes are logarithmic. theme: "auto"
        (adapts to the viewer), "light" or "dark". Raises ValueError for another theme, or if no
        size is positive."""
        if theme not in _THEMES:
            raise ValueError(f"a theme must be 'auto', 'light' or 'dark', not {theme!r}")
        lines = [(label, [p for p in self._points(label) if p[0] > 0 and p[1] > 0 and math.isfinite(p[1])]) for label in self.labels]
        if not any(points for _, points in lines):
            raise ValueError("no size is positive, but the axes are logarithmic")
        y_name, unit = ("time", "s") if self.amount is None else (self.unit, "B/s" if self.unit in _BYTES else self.unit)
        return _kjit.draw_figure(self.title, self.size_name, y_name, unit, _THEMES[theme], lines)


def _measure(call, wait, seconds):
    """Returns (minimum time of one call in seconds, (minimum, upper quartile) of the batches).
    Batches of at least one millisecond are timed until `seconds` have passed."""
    call()
    wait()
    count, times, end = 1, [], time.perf_counter() + seconds
    while True:
        began = time.perf_counter()
        for _ in range(count):
            call()
        wait()
        now = time.perf_counter()
        times.append((now - began) / count)
        if now >= end:
            times.sort()
            return times[0], (times[0], times[len(times) - 1 - (len(times) - 1) // 4])
        if now - began < 1e-3:  # the batch is too short for the clock to measure, so its time is not kept
            count, times = count * 2, [min(times)]


def benchmark(functions, sizes, arguments, *, devices=(None,), seconds=0.1, size_name="n", amount=None, unit=None):
    """Measures the run times of functions for several sizes and returns a Benchmark. Each time is
    the minimum over many calls.

    functions: a callable, a list of callables, or a dictionary from labels to callables: kernels,
    funcs or any other functions. arguments(n): returns the tuple of arguments for size n. devices:
    device names; for a name other than None the NumPy arrays among the arguments are copied to the
    device first, and the time includes the wait for the device.

    seconds: the minimum duration of each measurement. amount: a function of the size; the values
    are then amounts per second, in the unit `unit`, such as "bytes/s". Raises ValueError if two
    functions have the same name.
    """
    if not isinstance(functions, dict):
        several = functions if isinstance(functions, (list, tuple)) else [functions]
        functions = {getattr(f, "__name__", repr(f)): f for f in several}
        if len(functions) < len(several):
            raise ValueError("two functions have the same name; pass a dictionary from labels to functions")
    rows, bands = [], {}
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
                took, band = _measure(lambda function=function, given=given: function(*given), place.synchronize if waits else lambda: None, seconds)
                name = label if device is None else f"{label} ({device})"
                rows.append((name, n, took))
                bands[name, n] = band
    return Benchmark(rows, size_name, amount, unit or ("s" if amount is None else "1/s"), bands)
