"""Kernels for the keys of groups, on the cores of the CPU. `there`: an array of bools, or None if
all rows have a key."""

from .._functions import jit
from ..dtypes import SCALARS
from ..frontend.words import ALL

i64, u64 = SCALARS["i64"], SCALARS["u64"]
atomic_cas, grid_range = ALL["atomic_cas"], ALL["grid_range"]
_MULTIPLIER = 0x9E3779B97F4A7C15  # Fibonacci hashing: 2**64 divided by the golden ratio
_MOST_PROBES = 64


@jit(device="cpu")
def mark(keys, there, low, seen):
    for i in grid_range(len(keys)):
        is_there = True if there is None else there[i]
        if is_there:
            if not seen[i64(keys[i]) - low]:  # all threads store the same value
                seen[i64(keys[i]) - low] = True


@jit(device="cpu")
def rank(keys, there, low, ranks, codes):
    for i in grid_range(len(keys)):
        is_there = True if there is None else there[i]
        codes[i] = ranks[i64(keys[i]) - low] if is_there else -1


@jit(device="cpu")
def insert(keys, there, table, bits, empty, is_full):
    for i in grid_range(len(keys)):
        is_there = True if there is None else there[i]
        if is_there:
            at = i64((u64(keys[i]) * u64(_MULTIPLIER)) >> u64(64 - bits))
            probes = 0
            while probes < _MOST_PROBES:
                old = table[at]
                if old == empty:
                    old = atomic_cas(table[at], empty, keys[i])
                if old == empty or old == keys[i]:
                    break
                at = (at + 1) & (len(table) - 1)
                probes += 1
            if probes == _MOST_PROBES:
                is_full[0] = 1


@jit(device="cpu")
def find(keys, there, table, bits, ranks, codes):
    for i in grid_range(len(keys)):
        is_there = True if there is None else there[i]
        if is_there:
            at = i64((u64(keys[i]) * u64(_MULTIPLIER)) >> u64(64 - bits))
            while table[at] != keys[i]:
                at = (at + 1) & (len(table) - 1)
            codes[i] = ranks[at]
        else:
            codes[i] = -1
