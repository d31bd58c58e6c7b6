"""Kernels for rolling windows, on the cores of the CPU. The rows are divided into blocks as long as
the window. A window consists of the end of one block and the beginning of the next, so its result
combines two partial results, and nothing is subtracted."""

import math
import typing

from .._functions import jit
from ..dtypes import const
from ..frontend.words import ALL

grid_range, static = ALL["grid_range"], ALL["static"]
INFINITY = math.inf
# The partial results, numbered for the kernels. MOMENT is the sum of squared deviations from the
# mean.
COUNT, SUM, LEAST, GREATEST, MEAN, MOMENT = range(6)


@jit(device="cpu")
@typing.no_type_check
def scan(values, there, begins, ends, kinds: const, forward, backward):
    """Computes for each row i of a block the partial results from the begin of the block to row i,
    and from row i to the end."""
    for b in grid_range(len(begins)):
        for direction in range(2):
            count, total, low, high, mean, moment = 0.0, 0.0, INFINITY, -INFINITY, 0.0, 0.0
            for step in range(ends[b] - begins[b]):
                i = begins[b] + step if direction == 0 else ends[b] - 1 - step
                is_there = True if there is None else there[i]
                if is_there:
                    v = values[i]
                    count += 1.0
                    d = v - mean
                    mean += d / count
                    moment += d * (v - mean)
                    total, low, high = total + v, min(low, v), max(high, v)
                for j in static(range(len(kinds))):
                    if kinds[j] == 0:
                        found = count
                    elif kinds[j] == 1:
                        found = total
                    elif kinds[j] == 2:
                        found = low
                    elif kinds[j] == 3:
                        found = high
                    elif kinds[j] == 4:
                        found = mean
                    else:
                        found = moment
                    if direction == 0:
                        forward[j][i] = found
                    else:
                        backward[j][i] = found


@jit(device="cpu")
@typing.no_type_check
def combine(begins, ends, firsts, lasts, before, after, kinds: const, forward, backward, out):
    """Combines the partial results of the windows that reach from `before` rows before a row to
    `after` rows after it, within the rows from firsts[b] to lasts[b]. kinds begins with COUNT, and
    MEAN comes directly before MOMENT."""
    for b in grid_range(len(begins)):
        for i in range(begins[b], ends[b]):
            s, e = max(firsts[b], i - before), min(lasts[b], i + after)
            if s < begins[b] or e >= ends[b]:
                n, m = backward[0][s], forward[0][e]
                for j in static(range(len(kinds))):
                    x, y = backward[j][s], forward[j][e]
                    if kinds[j] <= 1:
                        out[j][i] = x + y
                    elif kinds[j] == 2:
                        out[j][i] = min(x, y)
                    elif kinds[j] == 3:
                        out[j][i] = max(x, y)
                    elif kinds[j] == 5:
                        d = forward[j - 1][e] - backward[j - 1][s]
                        out[j][i] = x + y + d * d * (n * m / max(n + m, 1.0))
            elif s == begins[b]:
                for j in static(range(len(kinds))):
                    out[j][i] = forward[j][e]
            else:  # the window ends at the end of its block
                for j in static(range(len(kinds))):
                    out[j][i] = backward[j][s]
