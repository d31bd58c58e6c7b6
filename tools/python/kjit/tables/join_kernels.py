"""Kernels for joins, on the cores of the CPU. can_match: an array of bools, true for rows with a
key, or None if all rows have a key."""

import typing

from .._functions import jit
from ..dtypes import SCALARS
from ..frontend.words import ALL
from .key_kernels import _MULTIPLIER

i64, u64 = SCALARS["i64"], SCALARS["u64"]
grid_range = ALL["grid_range"]


@jit(device="cpu")
def look_up(keys, can_match, low, ranks, codes):
    """Looks up keys in a table that is indexed by key - low, and writes each key's code. A key that
    is not in the table has the code -1."""
    for i in grid_range(len(keys)):
        can = True if can_match is None else can_match[i]
        # The subtraction wraps around, so a key below `low` gives an index beyond the table.
        at = u64(keys[i]) - u64(low)
        codes[i] = ranks[i64(at)] if can and at < u64(len(ranks)) else -1


@typing.no_type_check
def found_row(key, can, low, row_of):
    """Returns the right row with a key, or -1 if there is no such row or `can` is false. row_of[k -
    low]: the right row with the key k, or -1."""
    at = u64(key) - u64(low)
    return i64(row_of[i64(at)]) if can and at < u64(len(row_of)) else i64(-1)


@jit(device="cpu")
def place(keys, can_match, low, row_of):
    """Writes the right row of each key to row_of. If several rows have the same key, row_of keeps
    one of them."""
    for i in grid_range(len(keys)):
        can = True if can_match is None else can_match[i]
        if can:
            row_of[i64(keys[i]) - low] = i


@jit(device="cpu")
def find_repeated(keys, can_match, low, row_of, is_repeated):
    """Sets is_repeated[0] if several rows have the same key. It runs after `place`."""
    for i in grid_range(len(keys)):
        can = True if can_match is None else can_match[i]
        if can and i64(row_of[i64(keys[i]) - low]) != i:
            is_repeated[0] = True


@jit(device="cpu")
def count_found(keys, can_match, low, row_of, matched, chunks):
    """Counts in each chunk the left rows that have a right row."""
    for c in grid_range(chunks):
        count = 0
        for i in range(c * len(keys) // chunks, (c + 1) * len(keys) // chunks):
            can = True if can_match is None else can_match[i]
            count += 1 if found_row(keys[i], can, low, row_of) >= 0 else 0
        matched[c] = count


@jit(device="cpu")
def find_rows(keys, can_match, low, row_of, found, matched, chunks):
    """Writes the right row of each left row, or -1, and computes the number of rows found in each
    chunk."""
    for c in grid_range(chunks):
        count = 0
        for i in range(c * len(keys) // chunks, (c + 1) * len(keys) // chunks):
            can = True if can_match is None else can_match[i]
            row = found_row(keys[i], can, low, row_of)
            found[i] = row
            count += 1 if row >= 0 else 0
        matched[c] = count


@jit(device="cpu")
def expand_found(keys, can_match, low, row_of, begins, left, right, chunks):
    """Writes the pairs of the left rows that have a right row. begins[c]: the index of the first
    pair of chunk c."""
    for c in grid_range(chunks):
        at = begins[c]
        for i in range(c * len(keys) // chunks, (c + 1) * len(keys) // chunks):
            can = True if can_match is None else can_match[i]
            row = found_row(keys[i], can, low, row_of)
            if row >= 0:
                left[at] = i
                right[at] = row
                at += 1


@jit(device="cpu")
def take_found(values, keys, low, row_of, out):
    """Writes for each left row the value in its right row. Each left row must have a right row."""
    for i in grid_range(len(out)):
        out[i] = values[found_row(keys[i], True, low, row_of)]


@jit(device="cpu")
def probe(keys, can_match, table, bits, empty, ranks, codes):
    """Looks up keys in a hash table, whose free slots contain `empty`, and writes each key's code.
    A key that is not in the table has the code -1."""
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
def pair(codes, row_of, right, matched, chunks):
    """Computes the right row of each left row, or -1, if each code has at most one right row.
    matched: the number of matches in each chunk."""
    for c in grid_range(chunks):
        count = 0
        for i in range(c * len(codes) // chunks, (c + 1) * len(codes) // chunks):
            k = i64(codes[i])
            row = row_of[k] if k >= 0 else -1
            right[i] = row
            count += 1 if row >= 0 else 0
        matched[c] = count


@jit(device="cpu")
def compact(found, begins, left, right, chunks):
    """Writes the pairs of the left rows that have a right row. begins[c]: the index of the first
    pair of chunk c."""
    for c in grid_range(chunks):
        at = begins[c]
        for i in range(c * len(found) // chunks, (c + 1) * len(found) // chunks):
            if found[i] >= 0:
                left[at] = i
                right[at] = found[i]
                at += 1


@jit(device="cpu")
def count_pairs(codes, counts, least, totals, chunks):
    """Computes the number of pairs for each chunk of left rows. Each left row has at least `least`
    pairs."""
    for c in grid_range(chunks):
        total = 0
        for i in range(c * len(codes) // chunks, (c + 1) * len(codes) // chunks):
            k = i64(codes[i])
            total += max(counts[k], least) if k >= 0 else least
        totals[c] = total


@jit(device="cpu")
def expand(codes, counts, offsets, by_code, begins, least, left, right, chunks):
    """Writes the pairs of rows. begins[c]: the index of the first pair of chunk c. A left row
    without a match gets the right row -1 if `least` is 1, and otherwise no pair."""
    for c in grid_range(chunks):
        at = begins[c]
        for i in range(c * len(codes) // chunks, (c + 1) * len(codes) // chunks):
            k = i64(codes[i])
            count = counts[k] if k >= 0 else 0
            if count == 0 and least > 0:
                left[at] = i
                right[at] = -1
                at += 1
            for j in range(count):
                left[at] = i
                right[at] = by_code[offsets[k] + j]
                at += 1


@jit(device="cpu")
def take(values, rows, out):
    for i in grid_range(len(out)):
        out[i] = values[i] if rows is None else values[i64(rows[i])]
