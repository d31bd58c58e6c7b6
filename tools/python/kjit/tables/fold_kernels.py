"""Kernels that aggregate the rows of groups, on the cores of the CPU. A row's slot is `index[i] -
low`, its group's index in the result arrays. A row with a negative slot, or for which is_key is
false, belongs to no group.

flags: for each column an array of bools, true for elements that are not missing; it is used only if
`flagged` is true for the column. skips: for each column whether NaN (NAN), NaT (NAT) or no value (PLAIN)
counts as missing in addition to the flags. Each thread folds chunks of the rows into its own arrays.
"""

import typing

from .._functions import jit
from ..dtypes import SCALARS, const
from ..frontend.words import ALL

f64, i64 = SCALARS["f64"], SCALARS["i64"]
grid_range, static = ALL["grid_range"], ALL["static"]
# Kinds of folds. TOTAL is the sum as a float, which does not overflow; COUNT is computed from the
# numbers of rows and of missing elements.
SUM, COUNT, LEAST, GREATEST, FIRST, TOTAL, LAST = range(7)
PLAIN, NAN, NAT = range(3)
_NAT = -(2**63)


@jit(device="cpu")
@typing.no_type_check
def bounds(keys, is_key, found, chunks):
    """Computes the smallest and the largest key of each chunk."""
    for c in grid_range(chunks):
        low, high = found[0, c], found[1, c]
        for i in range(c * len(keys) // chunks, (c + 1) * len(keys) // chunks):
            has_key = True if is_key is None else is_key[i]
            if has_key:
                low, high = min(low, i64(keys[i])), max(high, i64(keys[i]))
        found[0, c], found[1, c] = low, high


@jit(device="cpu")
@typing.no_type_check
def fold(index, is_key, low, columns, flags, flagged: const, skips: const, kinds: const, rows, missing, partial, chunks):
    """Computes all folds of all columns in one pass. rows: the number of rows in each slot;
    missing: for each column the number of missing elements in each slot."""
    for c in grid_range(chunks):
        for i in range(c * len(index) // chunks, (c + 1) * len(index) // chunks):
            k = i64(index[i]) - low
            has_key = k >= 0 if is_key is None else k >= 0 and is_key[i]
            if has_key:
                rows[c, k] += 1
                for m in static(range(len(columns))):
                    v = columns[m][i]
                    is_there = flags[m][i] if flagged[m] else True
                    if skips[m] == 1 and v != v:
                        is_there = False
                    if skips[m] == 2 and v == _NAT:
                        is_there = False
                    if is_there:
                        for j in static(range(len(kinds[m]))):
                            if kinds[m][j] == 0:
                                partial[m][j][c, k] += v
                            elif kinds[m][j] == 2:
                                partial[m][j][c, k] = min(partial[m][j][c, k], v)
                            elif kinds[m][j] == 3:
                                partial[m][j][c, k] = max(partial[m][j][c, k], v)
                            elif kinds[m][j] == 4:
                                partial[m][j][c, k] = min(partial[m][j][c, k], i)
                            elif kinds[m][j] == 5:
                                partial[m][j][c, k] += f64(v)
                            else:
                                partial[m][j][c, k] = max(partial[m][j][c, k], i)
                    else:
                        missing[m][c, k] += 1


@jit(device="cpu")
@typing.no_type_check
def deviations(index, is_key, low, values, there, skip: const, means, partial, chunks):
    """Computes the sums of squared deviations from the means."""
    for c in grid_range(chunks):
        for i in range(c * len(index) // chunks, (c + 1) * len(index) // chunks):
            k = i64(index[i]) - low
            has_key = k >= 0 if is_key is None else k >= 0 and is_key[i]
            is_there = True if there is None else there[i]
            if skip == 1 and values[i] != values[i]:
                is_there = False
            if has_key and is_there:
                d = f64(values[i]) - means[k]
                partial[c, k] += d * d


@jit(device="cpu")
@typing.no_type_check
def gather(index, is_key, low, values, there, skip: const, places, by_group, chunks):
    """Copies the values group by group. places[c, k]: the index at which the values of slot k in
    chunk c begin."""
    for c in grid_range(chunks):
        for i in range(c * len(index) // chunks, (c + 1) * len(index) // chunks):
            k = i64(index[i]) - low
            has_key = k >= 0 if is_key is None else k >= 0 and is_key[i]
            is_there = True if there is None else there[i]
            if skip == 1 and values[i] != values[i]:
                is_there = False
            if skip == 2 and values[i] == _NAT:
                is_there = False
            if has_key and is_there:
                by_group[places[c, k]] = values[i]
                places[c, k] += 1
