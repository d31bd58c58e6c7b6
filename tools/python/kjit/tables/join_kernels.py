"""Kernels for joins, on the cores of the CPU. can_match is an array of bools that says which rows have a key, or None if all have one."""

from .._functions import jit
from ..dtypes import SCALARS
from ..frontend.words import ALL
from .key_kernels import _MULTIPLIER

i64, u64 = SCALARS["i64"], SCALARS["u64"]
grid_range = ALL["grid_range"]


@jit(device="cpu")
def look_up(keys, can_match, low, ranks, codes):
    """Finds keys in a table of their range. The code of a key that is not in the table is -1."""
    for i in grid_range(len(keys)):
        can = True if can_match is None else can_match[i]
        # The subtraction wraps around, so that a key below `low` is larger than each index.
        at = u64(keys[i]) - u64(low)
        codes[i] = ranks[i64(at)] if can and at < u64(len(ranks)) else -1


@jit(device="cpu")
def probe(keys, can_match, table, bits, empty, ranks, codes):
    """Finds keys in a hash table that has free slots. The code of a key that is not in the table is -1."""
    for i in grid_range(len(keys)):
        can = True if can_match is None else can_match[i]
        if can:
            at = i64((u64(keys[i]) * u64(_MULTIPLIER)) >> u64(64 - bits))
            while table[at] != keys[i] and table[at] != empty:
                at = (at + 1) & (len(table) - 1)
            codes[i] = -1 if table[at] == empty else ranks[at]
        else:
            codes[i] = -1


@jit(device="cpu")
def expand(codes, counts, offsets, by_code, begins, left, right):
    """Writes the pairs of rows. begins[i]: the index of the first pair of left row i, and at its end the number of pairs. A left row
    without a match has the right row -1 if it has a pair."""
    for i in grid_range(len(codes)):
        at = begins[i]
        if at < begins[i + 1]:
            k = codes[i]
            count = counts[k] if k >= 0 else 0
            left[at] = i
            right[at] = by_code[offsets[k]] if count > 0 else -1
            for j in range(1, count):
                left[at + j] = i
                right[at + j] = by_code[offsets[k] + j]
