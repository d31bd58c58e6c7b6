"""The kernels for rolling windows, on the cores of the CPU. The kernel for windows of one length
divides the rows into blocks as long as the window. A window consists of the end of one block and the
beginning of the next, so its result combines two partial results, and nothing is subtracted. The
kernel for windows with different lengths splits the rows at a middle row. It keeps a partial result
for each row before the middle row, of all rows from there to the middle row, and one partial result
of the rows after the middle row."""

import math
import typing

from .._functions import func, jit
from ..dtypes import SCALARS, const
from ..frontend.words import ALL

f64, i64, u64 = SCALARS["f64"], SCALARS["i64"], SCALARS["u64"]
grid_range, static = ALL["grid_range"], ALL["static"]
INFINITY, NAN = math.inf, math.nan
# The results of windows, numbered for the kernel.
COUNT, SUM, MEAN, LEAST, GREATEST, VARIANCE, DEVIATION = range(7)
# The partial results: whether a call needs sums, minima, maxima, and means with the sums of squared
# deviations from them.
OF_SUM, OF_LEAST, OF_GREATEST, OF_MOMENT = range(4)
NEEDS = {SUM: OF_SUM, MEAN: OF_SUM, LEAST: OF_LEAST, GREATEST: OF_GREATEST, VARIANCE: OF_MOMENT, DEVIATION: OF_MOMENT}
PARTS = 6  # number of arrays of partial results in `ends`


@func
@typing.no_type_check
def element(values, there, rows, has_missing: const, is_grouped: const, skips_nan: const, r, first, last):
    """Returns (the value of row r in the order of the groups, whether the value counts). Rows
    outside of first to last do not count. has_missing and is_grouped say whether `there` and `rows`
    are used. skips_nan: whether a NaN does not count."""
    inside = r >= first and r <= last
    at = min(max(r, first), last)
    i = i64(rows[at]) if is_grouped else at
    v = f64(values[i])
    is_there = inside and there[i] if has_missing else inside
    if skips_nan:
        is_there = is_there and v == v
    return v, is_there


@func
@typing.no_type_check
def error_of_sum(x, y, total):
    """Returns the rounding error of total = x + y (Knuth's two-sum)."""
    z = total - x
    return (x - (total - z)) + (y - z)


@func
@typing.no_type_check
def corrected(total, error):
    """Returns a sum with its rounding errors. Infinite sums have NaN as their error."""
    return total + error if error == error else total


@func
@typing.no_type_check
def combined(kind: const, first, second):
    """Returns a window's result, which combines the partial results of its two parts: (number of
    values, sum, minimum, maximum, mean, sum of squared deviations). kind: not COUNT."""
    n, m = first[0], second[0]
    found = first[1] + second[1]
    if kind == 2:
        found = found / (n + m)
    elif kind == 3:
        found = min(first[2], second[2])
    elif kind == 4:
        found = max(first[3], second[3])
    elif kind >= 5:
        d = second[4] - first[4] if m > 0.0 else 0.0
        squares = first[5] + second[5] + d * d * (n * m / max(n + m, 1.0))
        found = squares / (n + m - 1.0)
        if kind == 6:
            found = math.sqrt(found)
    return found


@func
@typing.no_type_check
def far(later, earlier, reach, is_closed):
    """Returns whether the distance of two times is beyond a limit. The distance of two integers of 64
    bits needs an unsigned integer."""
    distance = u64(later) - u64(earlier)
    return distance > u64(reach) or (distance == u64(reach) and not is_closed)


@jit(device="cpu")
@typing.no_type_check
def time_bounds(times, offsets, before, after, is_centered, left_closed, right_closed, starts, stops, is_sorted):
    """Computes the first row and the end of each window. A row's window has the rows with times from
    `before` before the row's time to `after` after it. If is_centered is false, the window ends at
    the row itself. offsets: the first rows of the groups and the end. is_sorted[g]: whether the
    times of a group are in ascending or descending order."""
    for g in grid_range(len(offsets) - 1):
        first, end = offsets[g], offsets[g + 1]
        low, high, good = first, first, True
        sign = -1 if end > first and times[end - 1] < times[first] else 1
        for i in range(first, end):
            now = sign * times[i]
            if i > first and sign * times[i - 1] > now:
                good = False
            if good:
                while low < i and far(now, sign * times[low], before, left_closed):
                    low += 1
                if is_centered:
                    while high < end and (sign * times[high] <= now or not far(sign * times[high], now, after, right_closed)):
                        high += 1
                elif right_closed:
                    high = i + 1
                else:
                    while high < i and sign * times[high] < now:
                        high += 1
                starts[i], stops[i] = low, high
        is_sorted[g] = good


@jit(device="cpu")
@typing.no_type_check
def aggregate_ranges(
    values, there, rows, has_missing: const, is_grouped: const, skips_nan: const, starts, stops, slots, ends, needs: const,
    kinds: const, least, out, flagged: const, flags,
):  # fmt: skip
    """Computes the results of the windows from starts[r] to stops[r]. Both never decrease.

    slots[s]: the first row of a slot, whose rows one thread computes. ends: for each slot and each
    row before the middle row, the partial results of the rows from this row to the middle row. The
    other parameters: see `aggregate`.
    """
    last = len(starts) - 1
    for s in grid_range(len(slots) - 1):
        base, middle, high = 0, 0, 0
        n, total, error, small, great, mean, moment = 0.0, 0.0, 0.0, INFINITY, -INFINITY, 0.0, 0.0
        for r in range(slots[s], slots[s + 1]):
            low, stop = starts[r], max(starts[r], stops[r])
            is_new = low >= middle
            if is_new:  # the end of the window becomes the new middle row
                base, middle = low, stop
                n, total, error, small, great, mean, moment = 0.0, 0.0, 0.0, INFINITY, -INFINITY, 0.0, 0.0
                begin, count = stop - 1, stop - low
            else:
                begin, count = high, stop - high
            for k in range(count):
                at = begin - k if is_new else begin + k
                v, is_there = element(values, there, rows, has_missing, is_grouped, skips_nan, at, 0, last)
                if is_there:
                    n += 1.0
                    if needs[0]:
                        error += error_of_sum(total, v, total + v)
                        total += v
                    if needs[1]:
                        small = min(small, v)
                    if needs[2]:
                        great = max(great, v)
                    if needs[3]:
                        d = v - mean
                        mean += d / n
                        moment += d * (v - mean)
                if is_new:
                    ends[s, 0, at - base] = n
                    ends[s, 1, at - base] = corrected(total, error)
                    ends[s, 2, at - base], ends[s, 3, at - base] = small, great
                    ends[s, 4, at - base], ends[s, 5, at - base] = mean, moment
            if is_new:
                n, total, error, small, great, mean, moment = 0.0, 0.0, 0.0, INFINITY, -INFINITY, 0.0, 0.0
            high = stop
            after = (n, corrected(total, error), small, great, mean, moment)
            before = (0.0, 0.0, INFINITY, -INFINITY, 0.0, 0.0)
            if low < middle:
                c = low - base
                before = (ends[s, 0, c], ends[s, 1, c], ends[s, 2, c], ends[s, 3, c], ends[s, 4, c], ends[s, 5, c])
            i = i64(rows[r]) if is_grouped else r
            for j in static(range(len(kinds))):
                found = before[0] + after[0]
                known = found
                if kinds[j] == 0:
                    known = f64(stop - low)
                else:
                    found = combined(kinds[j], before, after)
                enough = known >= least[j]
                if flagged:
                    out[j][i], flags[j][i] = found, enough
                else:
                    out[j][i] = found if enough else NAN


@jit(device="cpu")
@typing.no_type_check
def aggregate(
    values, there, rows, has_missing: const, is_grouped: const, skips_nan: const, tasks, slots, before, after, inverse, ends,
    needs: const, kinds: const, least, out, flagged: const, flags,
):  # fmt: skip
    """Computes the results of the windows that reach from `before` rows before a row to `after` rows
    after it.

    rows: the rows group by group. The three flags: see `element`. tasks: for each task its first row
    and its end, and the first row of the group and its end. slots[s]: the first task of a slot,
    whose tasks one thread computes. inverse[n]: 1/n. ends: for each slot two blocks, with PARTS
    partial results for each row of a block: those of the rows from this row to the end of the block.
    least[j]: the minimum number of values, or of rows for COUNT. flags[j] is true for the results
    that are not missing. Without `flagged`, missing results are NaN.
    """
    for s in grid_range(len(slots) - 1):
        for task in range(slots[s], slots[s + 1]):
            low, high, first, last = tasks[task, 0], tasks[task, 1], tasks[task, 2], tasks[task, 3] - 1
            a = min(after, last - first)
            w = min(before, last - first) + a + 1
            begin, side = low + a - w, 0
            while begin - a < high:  # the first block only computes the ends
                n, total, error, small, great, mean, moment = 0, 0.0, 0.0, INFINITY, -INFINITY, 0.0, 0.0
                m, total_2, error_2, small_2, great_2, mean_2, moment_2 = 0, 0.0, 0.0, INFINITY, -INFINITY, 0.0, 0.0
                for k in range(min(w, high + a - begin)):
                    v, is_there = element(values, there, rows, has_missing, is_grouped, skips_nan, begin + k, first, last)
                    u, is_there_2 = element(values, there, rows, has_missing, is_grouped, skips_nan, begin + w - 1 - k, first, last)
                    n += 1 if is_there else 0
                    m += 1 if is_there_2 else 0
                    ends[s, 1 - side, 0, w - 1 - k] = f64(m)
                    if needs[0]:
                        x, y = v if is_there else 0.0, u if is_there_2 else 0.0
                        error += error_of_sum(total, x, total + x)
                        error_2 += error_of_sum(total_2, y, total_2 + y)
                        total, total_2 = total + x, total_2 + y
                        ends[s, 1 - side, 1, w - 1 - k] = corrected(total_2, error_2)
                    if needs[1]:
                        small = min(small, v if is_there else INFINITY)
                        small_2 = min(small_2, u if is_there_2 else INFINITY)
                        ends[s, 1 - side, 2, w - 1 - k] = small_2
                    if needs[2]:
                        great = max(great, v if is_there else -INFINITY)
                        great_2 = max(great_2, u if is_there_2 else -INFINITY)
                        ends[s, 1 - side, 3, w - 1 - k] = great_2
                    if needs[3]:
                        d = v - mean if is_there else 0.0
                        mean += d * inverse[n]
                        moment += d * (v - mean) if is_there else 0.0
                        e = u - mean_2 if is_there_2 else 0.0
                        mean_2 += e * inverse[m]
                        moment_2 += e * (u - mean_2) if is_there_2 else 0.0
                        ends[s, 1 - side, 4, w - 1 - k] = mean_2
                        ends[s, 1 - side, 5, w - 1 - k] = moment_2
                    r = begin + k - a
                    if r >= low:
                        both = k + 1 < w
                        n_2 = ends[s, side, 0, k + 1] if both else 0.0
                        count = f64(n) + n_2
                        i = i64(rows[r]) if is_grouped else r
                        first_part = (f64(n), corrected(total, error), small, great, mean, moment)
                        second_part = (
                            n_2,
                            ends[s, side, 1, k + 1] if both and needs[0] else 0.0,
                            ends[s, side, 2, k + 1] if both and needs[1] else INFINITY,
                            ends[s, side, 3, k + 1] if both and needs[2] else -INFINITY,
                            ends[s, side, 4, k + 1] if both and needs[3] else 0.0,
                            ends[s, side, 5, k + 1] if both and needs[3] else 0.0,
                        )
                        for j in static(range(len(kinds))):
                            found, known = count, count
                            if kinds[j] == 0:
                                known = f64(min(last, r + a) - max(first, r + a - w + 1) + 1)
                            else:
                                found = combined(kinds[j], first_part, second_part)
                            enough = known >= least[j]
                            if flagged:
                                out[j][i], flags[j][i] = found, enough
                            else:
                                out[j][i] = found if enough else NAN
                begin, side = begin + w, 1 - side
