# RUN: env KJIT_DEVICE=cpu %kjit-python %s
# Dates of NumPy, datetime64 and timedelta64 with all units, have NumPy's values in kernels, njit and vectorize.
import warnings

import kjit
import numpy as np
import seeds
from kjit import cuda, njit, vectorize

random = np.random.default_rng(3)
UNITS = "Y M W D h m s ms us ns ps fs as 3D 25s 2M".split()
NAT = np.iinfo("i8").min
warnings.simplefilter("ignore")


def same(got, want, told=""):
    got, want = np.asarray(got), np.asarray(want)
    assert got.dtype == want.dtype and got.tobytes() == want.tobytes() or (got.dtype.kind == "f" and np.array_equal(got, want, equal_nan=True)), (told, got, want)


def refused(function, text, kind=kjit.Error):
    try:
        function()
    except kind as error:
        assert text in str(error), str(error)
    else:
        raise AssertionError("not refused: " + text)


def values(word, unit, count=24):
    """Dates that every unit can represent, including NaT and 0."""
    whole = np.dtype(f"{word}[{unit}]")
    most = min(2**62, max(2, int(abs(np.timedelta64(9, "s") / np.timedelta64(1, unit)) if unit[-1] not in "YM" else 8)))
    counts = random.integers(-most, most, count)
    counts[:4] = NAT, 0, NAT, 1
    return counts.astype("i8").view(whole)


def pairs():
    """Pairs of units, including adjacent units."""
    names = [u for u in UNITS if u[-1] not in "YM"]
    listed = [(names[i], names[j]) for i, j in random.integers(0, len(names), (12, 2)) if i != j]
    return [(a, b) for a, b in listed if _fits(a, b)] + [("Y", "M"), ("2M", "Y"), ("D", "D"), ("M", "M")]


def _fits(a, b):
    try:
        np.zeros(1, f"m8[{a}]") + np.zeros(1, f"m8[{b}]")
    except OverflowError:
        return False
    return True


# ---- ufuncs of a date and of an operand with another type, in njit ----


@njit
def of_ufuncs(d, t, n, x):
    sums = np.add(d, t), np.add(t, d), np.subtract(d, t), np.subtract(d, d), np.add(t, t)
    return sums, (np.multiply(t, n), np.multiply(n, t), np.multiply(x, t), np.divide(t, x), np.floor_divide(t, n), np.divide(t, t))


fresh = seeds.fresh_generator()
for n, k in fresh.integers(1, 999, (6, 2)):
    date, difference, x = np.datetime64(int(n) * 20, "D"), np.timedelta64(int(k), "D"), float(fresh.uniform(1, 9))
    for got, want in zip(of_ufuncs(date, difference, int(n), x), of_ufuncs.py_func(date, difference, int(n), x)):
        assert all(type(g) is type(w) or type(g) is float for g, w in zip(got, want)), (got, want)
        assert got == want, (got, want)


# ---- operators, of all types and units ----

for first, second in pairs():
    a, b = values("m8", first), values("m8", second)[::-1].copy()
    got = kjit.map(lambda a, b: (a + b, a - b, a / b, a // b, a % b, a < b, a <= b, a > b, a >= b, a == b, a != b, np.maximum(a, b), np.fmin(a, b)), a, b)
    want = (a + b, a - b, a / b, a // b, a % b, a < b, a <= b, a > b, a >= b, a == b, a != b, np.maximum(a, b), np.fmin(a, b))
    for i, (g, w) in enumerate(zip(got, want)):
        same(g, w, (first, second, i))

for first, second in [*pairs(), ("Y", "D"), ("M", "s"), ("D", "M"), ("h", "2M"), ("W", "Y")]:
    a, b, d = values("M8", first), values("M8", second)[::-1].copy(), values("m8", second)[::-1].copy()
    got = kjit.map(lambda a, b: (a - b, a < b, a <= b, a > b, a >= b, a == b, a != b, np.minimum(a, b), np.fmax(a, b)), a, b)
    for i, (g, w) in enumerate(zip(got, (a - b, a < b, a <= b, a > b, a >= b, a == b, a != b, np.minimum(a, b), np.fmax(a, b)))):
        same(g, w, (first, second, i))
    if second[-1] not in "YM" or first[-1] in "YM":
        for g, w in zip(kjit.map(lambda a, d: (a + d, d + a, a - d), a, d), (a + d, d + a, a - d)):
            same(g, w, (first, second))

numbers = random.integers(-9, 9, 24)
parts = random.normal(size=24)
parts[3:7] = 0, np.nan, np.inf, 1e300
for unit in ("D", "ns", "Y", "25s"):
    a, d = values("M8", unit), values("m8", unit)
    d[8:16] = 40 * random.integers(-9, 9, 8).astype("i8").view(d.dtype).astype("i8")
    got = kjit.map(lambda a, d, n, x: (d * n, n * d, d // n, d / n, d * x, x * d, d / x, a + n, n + a, a - n, d + n, n - d, d == n, d < n), a, d, numbers, parts)
    want = (d * numbers, numbers * d, d // numbers, d / numbers, d * parts, parts * d, d / parts, a + numbers, numbers + a, a - numbers, d + numbers, numbers - d)
    for i, (g, w) in enumerate(zip(got, (*want, d == numbers.astype(d.dtype), d < numbers.astype(d.dtype)))):
        same(g, w, (unit, i))
    got = kjit.map(lambda a, d: (-d, +d, abs(d), np.sign(d), np.absolute(d), np.negative(d), np.isnat(a), np.isnat(d), np.isfinite(d), np.isnan(a)), a, d)
    # NumPy 2.5 returns floats here, and NaN for NaT
    signs = np.where(np.isnat(d), -1, np.sign(d).astype("i8")).astype(d.dtype)
    for g, w in zip(got, (-d, +d, abs(d), signs, abs(d), -d, np.isnat(a), np.isnat(d), np.isfinite(d), np.isnat(a))):
        same(g, w, unit)

# Ufuncs by name.
d, e = values("m8", "s"), values("m8", "ms")
for name in "add subtract divide true_divide floor_divide remainder maximum minimum fmax fmin equal not_equal less less_equal greater greater_equal".split():
    same(kjit.map(getattr(np, name), d, e), getattr(np, name)(d, e), name)

# ---- other units ----



@cuda.jit
def convert(r, x):
    for i in range(len(x)):
        r[i] = x[i]


days = np.arange("1890-01-01", "2110-01-01", 97, dtype="M8[D]")
for source in ("D", "h", "s", "M", "Y", "W"):
    given = np.append(days.astype(f"M8[{source}]"), np.datetime64("NaT"))
    for target in ("Y", "M", "W", "D", "h", "s", "ms", "3D", "2M", "25s"):

        r = np.zeros(len(given), f"M8[{target}]")
        convert[1, 1](r, given)
        same(r, given.astype(r.dtype), (source, target))
for source, target in [("h", "D"), ("D", "h"), ("s", "25s"), ("Y", "M"), ("M", "Y"), ("ns", "s")]:
    given = values("m8", source)
    r = np.zeros(24, f"m8[{target}]")
    convert[1, 1](r, given)
    same(r, given.astype(r.dtype), (source, target))


# ---- front ends ----


@njit
def span(first, last, steps):
    step = (last - first) / steps
    longest = np.timedelta64(0, "s")
    day = first
    for i in range(steps):
        day += step
        if day - first > longest:
            longest = day - first
    return day, longest, longest > np.timedelta64(3, "D"), np.isnat(day), steps * step / np.timedelta64(1, "h")


def in_python(first, last, steps):
    step = (last - first) / steps
    return first + steps * step, steps * step, steps * step > np.timedelta64(3, "D"), False, steps * step / np.timedelta64(1, "h")


first, last = np.datetime64("2024-02-28T12:00:07"), np.datetime64("2024-03-09T01:00:00")
for got, want in zip(span(first, last, 8), in_python(first, last, 8)):
    assert got == want and type(got) in (type(want), bool, float), (got, want)
assert type(span(first, last, 8)[1]) is np.timedelta64


@njit
def largest(a, b):
    return max(a, b), min(a, b), a if a > b else b


assert largest(np.timedelta64(1, "h"), np.timedelta64(50, "m")) == (np.timedelta64(60, "m"), np.timedelta64(50, "m"), np.timedelta64(60, "m"))


@njit
def of_list(days, holidays, r):
    """The number of days that are not holidays, and the next such day for each date."""
    count = 0
    for i in range(len(days)):
        is_one = False
        for h in holidays:
            if days[i] == h:
                is_one = True
        if not is_one:
            count += 1
        r[i] = days[i] + np.timedelta64(1, "D")
    return count


some = np.arange("2024-01-01", "2024-01-09", dtype="M8[D]")
r = np.zeros(8, "M8[s]")
assert of_list(some, some[2:4].astype("M8[h]"), r) == 6
same(r, (some + 1).astype("M8[s]"))

gap = vectorize(lambda a, b: (b - a) / np.timedelta64(1, "h"))
same(gap(some, some[::-1]), (some[::-1] - some) / np.timedelta64(1, "h"))
typed = cuda.vectorize([(cuda.types.from_dtype(some.dtype),) * 2])(lambda start, end: end - start)
same(typed(some, some + 5), np.full(8, 5, "m8[D]"))


@kjit.jit
def shift(r, x, by):
    for i in kjit.grid_range(len(r)):
        r[i] = x[i] + by


shift(r, some, np.timedelta64(90, "s"))
same(r, some + np.timedelta64(90, "s"))

# Device arrays, constants, records, thread arrays.
EPOCH, WEEK = np.datetime64("2000-01-01"), np.array([7, 14], "m8[D]")
DAY = some.dtype
row = np.dtype([("when", "M8[s]"), ("took", "m8[ms]"), ("n", "i4")])


@cuda.jit
def rows(r, x, weeks):
    i = cuda.grid(1)
    if i < len(x):
        kept = cuda.local.array(1, DAY)
        kept[0] = x[i].when
        r[i]["when"] = kept[0] + np.timedelta64(x[i].n, "h")
        r[i]["took"] = x[i].when - EPOCH.astype("datetime64[h]")
        r[i]["n"] = (x[i].when.astype("M8[W]") - EPOCH) / weeks[1]


table = np.zeros(8, row)
table["when"], table["n"] = some, np.arange(8)
got = cuda.to_device(table)
rows[1, 32](got, cuda.to_device(table), cuda.to_device(WEEK))
want = got.copy_to_host()
same(want["when"], (some + np.arange(8).astype("m8[h]")).astype("M8[s]"))
same(want["took"], (some - EPOCH.astype("M8[h]")).astype("m8[ms]"))
same(want["n"], ((some.astype("M8[W]") - EPOCH) / WEEK[1]).astype("i4"))
moved = cuda.to_device(some)
assert moved.dtype == some.dtype and moved[2:4].dtype == some.dtype and moved[3] == some[3]
same(moved.copy_to_host(), some)
same(moved[::2].copy_to_host(), some[::2])
# Algorithms that order and combine numbers treat dates as counts.
same(kjit.sort(some[::-1]), some.view("i8"))

# ---- operations that NumPy rejects ----


def operator(text, *given):
    space = {}
    exec(f"f = lambda a, b: {text}", space)
    return lambda: kjit.map(space["f"], *given)


kjit.keep_sources()
year, day, time = np.ones(1, "m8[Y]"), np.ones(1, "m8[D]"), np.ones(1, "M8[D]")
for text, given, message in [
    ("a + b", (year, day), "`+` of timedelta64[Y] and timedelta64[D]"),
    ("a < b", (day, year), "no common unit"),
    ("a + b", (time, year), "no common unit"),
    ("a + b", (time, time), "`+` of datetime64[D] and datetime64[D]"),
    ("a - b", (day, time), "`-` of timedelta64[D] and datetime64[D]"),
    ("a * b", (time, numbers[:1]), "`*` of datetime64[D] and int64"),
    ("a * b", (day, day), "`*` of timedelta64[D] and timedelta64[D]"),
    ("a == b", (time, day), "`==` of datetime64[D] and timedelta64[D]"),
    ("a & b", (day, day), "`&` of"),
    ("b / a", (day, numbers[:1]), "`/` of int64 and timedelta64[D]"),
    ("a + b", (np.ones(1, "m8[W]"), np.ones(1, "m8[as]")), "no common unit"),
]:
    refused(operator(text, *given), message)
for r, x, message in [
    (np.zeros(1), time, "datetime64[D]"),
    (np.zeros(1, "m8[D]"), year, "no common unit"),
    (np.zeros(1, "m8[D]"), time, "datetime64[D]"),
    (np.zeros(1, "M8[D]"), np.ones(1), "datetime64[D]"),
    (np.zeros(1, "i8"), day, "timedelta64[D]"),
]:
    refused(lambda: convert[1, 1](r, x), message)
