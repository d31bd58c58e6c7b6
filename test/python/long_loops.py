# RUN: %kjit-python %s
"""Loops of many operations on small arrays: a recorded expression stays short, the values are NumPy's, and the memory of arrays that the
program has dropped is used again. Arrays of 100 elements that a loop of 10^5 turns kept would need 80 MB."""
import gc
import os

os.environ["KJIT_DEVICE"] = "cpu"
import kjit.numpy as knp  # noqa: E402
import numpy as np  # noqa: E402
from kjit import _kjit  # noqa: E402
from kjit.numpy import _fusing  # noqa: E402

TURNS, MOST_OPERATIONS, MOST_BYTES = 100_000, 48, 40 << 20
PAGE = os.sysconf("SC_PAGE_SIZE")


def resident_bytes():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * PAGE


def add_one(xp, s, x):
    return s + 1.0


def add_in_place(xp, s, x):
    s += x
    return s


def decay(xp, s, x):
    return s * 0.5 + x


def new_operand(xp, s, x):
    return s + xp.ones(100)


def smallest(xp, s, x):
    return xp.minimum(s, x + 3.0)


def running_mean(xp, s, x):
    s[1:] = 0.5 * (s[1:] + s[:-1])
    return s


def element(xp, s, x):
    return s + x[3]


def of_sum(xp, s, x):
    t = x.sum().reshape(1)
    t += 1.0
    return s + t


def masked(xp, s, x):
    s[x > 50] += 1.0
    return s


def rows(xp, s, x):
    return xp.concatenate((s[50:], s[:50])) + 1.0


def error(xp, s, x):
    try:
        s + x[:3]
    except ValueError:
        return s + 1.0
    raise AssertionError("shapes that do not broadcast")


STEPS = add_one, add_in_place, decay, new_operand, smallest, running_mean, element, of_sum, masked, rows, error
for step in STEPS:
    x, s = knp.arange(100.0), knp.arange(100.0)[::-1].copy()
    host, expected = np.arange(100.0), np.arange(100.0)[::-1].copy()
    for turn in range(TURNS):
        if turn == 2000:  # compiles the kernels
            _fusing.wait()
            before = resident_bytes()
        s, expected = step(knp, s, x), step(np, expected, host)
        if turn % 97 == 0 and _kjit.is_pending(s):
            count = len(_kjit.collect(s)[1])
            assert count <= MOST_OPERATIONS, (step.__name__, turn, count)
    grown = resident_bytes() - before
    assert grown < MOST_BYTES, (step.__name__, grown)
    assert np.array_equal(s.to_host(), expected), (step.__name__, s, expected)

# Results that the program keeps do not keep the preceding expressions: each result is computed when the next expression
# is long.
kept, s = [], knp.zeros(100)
for turn in range(10_000):
    kept.append(s)
    s = s + 1.0
assert [float(x[0]) for x in kept[::999]] == [float(turn) for turn in range(0, 10_000, 999)]
assert float(s[99]) == 10_000
print(f"{len(STEPS)} loops")
