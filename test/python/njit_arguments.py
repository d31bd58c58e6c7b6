# RUN: env KJIT_DEVICE=cpu %kjit-python %s
"""Arguments and results of njit functions that are neither numbers nor arrays, compared with the same functions in
Python."""
import collections
import enum
import warnings

import kjit
import numpy as np
import seeds
from kjit import njit, prange

warnings.simplefilter("ignore", kjit.KjitWarning)  # njit_options.py tests the warning
random = seeds.fresh_generator()
Point = collections.namedtuple("Point", "x y")
x = random.standard_normal(7)
m = random.standard_normal((3, 4))
records = np.zeros(4, [("mass", "f8"), ("count", "i4")])
records["mass"], records["count"] = random.standard_normal(4), random.integers(0, 9, 4)


class Color(enum.Enum):
    RED = 1
    BLUE = 5


def same(a, b):
    if isinstance(b, tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(b, np.ndarray) and b.dtype.kind == "f":
        return np.allclose(a, b, rtol=1e-12) and a.dtype == b.dtype
    if isinstance(b, (np.ndarray, np.void)):
        return np.array_equal(a, b) and a.dtype == b.dtype
    return type(a) is type(b.item() if isinstance(b, np.generic) else b) and a == b


def check(function, *arguments, **options):
    """The compiled function returns Python's values, and leaves the same elements in arrays and records."""
    mine, others = ([a.copy() if isinstance(a, (np.ndarray, np.void)) else a for a in arguments] for _ in range(2))
    compiled = njit(**options)(function)
    for _ in range(2):
        expected, result = function(*others), compiled(*mine)
        assert same(result, expected), (function.__name__, result, expected)
        assert all(same(a, b) for a, b in zip(mine, others) if isinstance(b, (np.ndarray, np.void)))
    return compiled


def nested(t):
    return t[0][1] + t[1] + len(t)


def fields(p):
    return p.x + p.y, p


def renamed(p, scale):
    q = Point(p.y * scale, p.x)
    return q, Point(x=1, y=Point(q.x, True))


def summed(t):
    s = 0.0
    for v in t:
        s += v
    return s


check(nested, (x, 2.5))
check(nested, ((1, 2), 3))
check(fields, Point(1, 2.5))
check(renamed, Point(1, 2.5), 3)
check(summed, (1.0, 2.5, -4.0))


def optional(a, b=None):
    if b is None:
        return a
    return a + b


def replaced(a, b=None):
    if b is None:
        b = 0.5
    return a * b


def several(a, b=None, c=None):
    if a is not None and (b is None or c is None):
        return a[0]
    if b is not None:
        return a[0] + b[1] + c
    return 1.0


check(optional, 3)
check(optional, 3, 4.5)
check(replaced, 3.0)
check(replaced, 3.0, 2.5)
check(several, x)
check(several, x, x, 2)
check(several, x, None, 2)
assert njit(optional)(None) is None


def chosen(a, how="mean"):
    if how == "mean":
        return a.sum() / len(a)
    elif how == "first":
        return a[0]
    return -1.0


for how in ("first", "other"):
    check(chosen, x, how)
np.testing.assert_allclose(njit(chosen)(x), x.mean(), rtol=1e-12, atol=1e-13)


@njit
def square(v):
    return v * v


@njit
def halved(v):
    return v / 2


def applied(f, a, g=None):
    s = 0.0
    for v in a:
        s += f(v) if g is None else g(f(v))
    return s


compiled = njit(applied)
for f in (square, halved, abs):
    for g in (None, square):
        plain = [getattr(h, "py_func", h) for h in (f, g)]
        np.testing.assert_allclose(compiled(f, x, g), applied(plain[0], x, plain[1]), rtol=1e-12, atol=1e-13)


def named(color):
    return color is Color.RED, color.value


assert njit(named)(Color.BLUE) == (False, 5) and njit(named)(Color.RED) == (True, 1)


def moved(r, by):
    r["mass"] += by
    r["count"] = 7
    return r["mass"]


def whole(r):
    return r


def element(a):
    return a[2]


check(moved, records[1], 2.5)
check(whole, records[1])
check(element, records)
in_place = records.copy()
njit(moved)(in_place[3], 1.0)
assert in_place[3]["count"] == 7 and in_place[3]["mass"] == records[3]["mass"] + 1


# A call rejects more arguments or tuple items than it can take.
def length(t):
    return len(t)


assert check(length, tuple(range(64)))
for count in (65, 66, 1001):
    for refused in (lambda: njit(length)(tuple(range(count))), lambda: njit(lambda *t: len(t))(*range(count))):
        try:
            refused()
        except kjit.Error as error:
            assert "at most 64 arguments" in str(error), error
        else:
            raise AssertionError(f"{count} items are not refused")


# A returned record is an np.record as with Numba, so that its fields are attributes. It is a copy, and an argument like any other.
def pair(a, i):
    return a[i], a[i - 1]


nested_records = np.zeros(2, np.dtype([("at", [("x", "f4"), ("y", "f4")]), ("name", "S3"), ("n", "u1")], align=True))
nested_records["at"]["y"], nested_records["name"] = random.standard_normal(2), (b"ab", b"cde")
for source in (records, records.view(np.recarray), nested_records):
    for got, wanted in zip((njit(element)(source[[0, 0, 1]]), *njit(pair)(source, 1)), (source[1], source[1], source[0])):
        assert isinstance(got, np.record) and got.dtype == source.dtype, (type(got), got.dtype)
        assert all(getattr(got, name) == wanted[name] for name in source.dtype.names), (got, wanted)
taken = njit(element)(records)
mass = records[2]["mass"]
taken.mass += 1
assert records[2]["mass"] == mass and njit(moved)(taken, 2.0) == taken.mass == mass + 1 + 2.0 and taken.count == 7
nested_taken = njit(whole)(nested_records[1])
assert nested_taken.at.y == nested_records[1]["at"]["y"] and nested_taken.name == b"cde"


# A function can return records that it reaches through references, and it is compiled as a whole.
def at(a, i):
    return a[i]


def first_above(a, limit):
    for p in a:
        if p["mass"] > limit:
            return p
    return a[0]


def heaviest(a, limit):
    best = a[0]
    for p in a:
        if p["mass"] > best["mass"]:
            best = p
    return best, (limit, (at(a, 1), best))


def of_function(a, limit):
    r = at(a, 1 if limit > 0 else 2)
    r["count"] += 1
    return r


def of_record(a, limit):
    return taking(a[1], limit), at(a, 3)


def taking(r, limit):
    r["mass"] = limit
    return r, r["mass"]


def of_tuple(a, limit):
    t = a[0], a[1]
    t[1]["mass"] = limit
    return t


for function in (first_above, heaviest, of_function, of_record, of_tuple):
    for limit in random.standard_normal(3):
        assert not check(function, records, float(limit)).runs_in_python, function
compiled = check(taking, records[2], 4.5)
assert not compiled.runs_in_python and isinstance(compiled(records[2].copy(), 1.0)[0], np.record)


# Arrays as results: views, arrays that NumPy creates, and expressions, which are computed in one pass.
def views(a):
    return a[1:], a.T, a[0, ::2], a.shape


def made(p, n):
    out = np.zeros(n)
    for i in range(n):
        out[i] = p.x * i + p.y[i]
    return out, Point(out[1:] * 2, n)


def expression(a, t):
    return a * 2 + t[0] - np.sqrt(np.abs(t[1])) * a[0]


def looped(a, n):
    for _ in range(n):
        a = a * 0.5 + 1
    return a


check(lambda a: np.maximum(a, a[::-1]) + 1, x)
check(lambda a: a > 0, x)
wide = random.integers(2**30, 2**31, 9).astype(np.int32)  # intermediate products have 64 bits, as in Numba
assert np.array_equal(njit(lambda a, b: a * b - len(a))(wide, wide), wide.astype(np.int64) ** 2 - 9)
assert njit(lambda a, b: a * b)(wide, wide).dtype == np.int32
check(views, m)
check(made, Point(2, x), 5)
check(expression, x, (1, x))
check(looped, x, 3)


def spread(out, f, p, how="add"):
    for i in prange(len(out)):
        if how == "add":
            out[i] = f(out[i]) + p[0][i]
        else:
            out[i] = p[1] * i
    return out


for how in ("add", "other"):
    mine, others = x.copy(), x.copy()
    plain = spread(others, square.py_func, (x, 2.5), how)
    np.testing.assert_allclose(njit(parallel=True)(spread)(mine, square, (x, 2.5), how), plain, rtol=1e-9, atol=1e-12)


def counted(first, *rest):
    s = first
    for v in rest:
        s += v
    return s, len(rest)


check(counted, 1.0)
check(counted, 1.0, 2, 3.5)

for value in (True, np.bool_(False), np.int8(-3), np.uint16(3), np.uint64(2**63), np.float32(0.25), 1j, 2**63 - 1, np.complex64(2j)):
    result = njit(lambda v: (v, v == v))(value)
    assert result == (value, True) and type(result[0]) is type(np.asarray(value).item()), (value, result)


# ---- classes of results ----


@njit
def point_of(x):
    return Point(x, 1.5)


@njit
def color_of(x):
    return Color.RED if x > 1 else Color.BLUE


@njit
def same_value(x):
    return x


@njit
def walked(n):
    if n == 0:
        return Color.BLUE
    return walked(n - 1)


def of_a_call(x):
    p = point_of(x)
    return p, p.x, point_of(2), same_value(Point(1, same_value(x)))


def of_an_argument(p):
    return Point(p.x + 1, p.y), p


def of_branches(p, q):
    if p.x > q.x:
        best = p
    else:
        best = Point(q.x, q.y)
    return best, p if p.y > 1 else q


def there_or_none(x):
    if x > 1:
        return Point(x, 2)
    return None


def color_or_none(x):
    if x > 1:
        return Color.RED
    return None


def colors(x):
    c = color_of(x)
    is_same = (color_of(x) == Color.RED, color_of(x) is Color.BLUE, c == Color.RED, c.value, walked(x) == Color.BLUE)
    return is_same, c, Point(Color.RED, color_of(x)), same_value(c), walked(x)


def colors_of_tuples(t, i):
    first, second = t
    count = 0
    for c in t:
        if c == Color.RED:
            count += 1
    return first == Color.RED, second is Color.BLUE, count, t[i], t[i].value, t


def changing(n):
    state = Color.RED
    for _ in range(n):
        state = Color.BLUE if state == Color.RED else Color.RED
    return state


def with_arrays(a, c, p):
    return a + c.value, c, p


for value in (0, 3):
    check(of_a_call, value)
    check(there_or_none, value)
    check(color_or_none, value)
    check(colors, value)
    check(changing, value)
check(of_an_argument, Point(1, 2.5))
check(of_branches, Point(1, 2), Point(3, 4))
check(same_value.py_func, Color.RED)
check(same_value.py_func, (1, Point(2, Color.BLUE)))
check(colors_of_tuples, (Color.RED, Color.BLUE), 1)
check(colors_of_tuples, (Color.RED, Color.RED), 0)
check(with_arrays, x, Color.BLUE, Point(1, 2.5))

def refused(text, function, *arguments):
    try:
        njit(function)(*arguments)
    except (kjit.Error, TypeError) as error:
        assert text in str(error), (text, error)
        return
    raise AssertionError(text)


def lists(n):
    values = [1, n]
    return np.zeros(n), values[0]


refused("list", element, [1, 2, 3])
refused("dict", element, {2: 1})
refused("datetime64", element, np.datetime64("2020-01-01"))
refused("lists", lists, 3)
refused("takes the items x, y", lambda a: Point(a), 1)
refused("a tuple contains None, a function or a type", lambda t: t[0](2), (square, np.ones(1)))
assert njit(lambda t: t[0](2) + t[1])((square, 1)) == square(2) + 1  # without arrays the tuple exists only at compile time
refused("is compared with a value that is not a member", lambda x: x == Color.RED, 1)

# ---- an index beyond the end of a tuple ----

item = njit(lambda t, i: t[i])
assert item((1.5, 2.5), -2) == 1.5
for index in (2, -3):
    try:
        item((1.5, 2.5), index)
        raise SystemExit("no error")
    except IndexError as error:
        assert "of 0..1" in str(error), error

# ---- an array as an index runs in Python; the length of a string is known ----


@njit
def gathered(a, i):
    return a[i]


@njit
def length(s):
    return len(s)


with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    assert np.array_equal(gathered(np.arange(5.0), np.array([3, 1])), [3, 1]) and length("xyz") == 3
assert gathered(np.arange(5.0), 2) == 2

# ---- fields of arrays of records are attributes, also where NumPy computes ----
particle = np.dtype([("pos", np.float64, 3), ("m", np.float32), ("id", np.int32)])
particles = np.zeros(2, particle)
particles["m"], particles["pos"] = [1.5, 2.5], [[1, 2, 3], [4, 5, 6]]


@njit
def of_fields(p):
    for i in range(p.shape[0]):
        p[i].id = i + 7
    return p[1].pos.sum(), p.m.sum(), p.id


@njit
def changed_copy(p):
    q = p.copy()
    q[0].m = 9
    return q


total, mass, ids = of_fields(particles)
assert total == 15 and mass == 4 and ids.tolist() == [7, 8] and particles["id"].tolist() == [7, 8]
made = changed_copy(particles)
assert type(made) is np.ndarray and made.dtype == particle and made["m"].tolist() == [9, 2.5] and particles["m"][0] == 1.5


# ---- ---- strings determine which statements run, but not the types, because Numba compares strings at run time ----
# ----


@njit
def by_text(kind, x):
    r = x
    if kind == "half":
        r = x / 2
    elif kind in ("twice", "double"):
        r = 2 * x
    return r, 1 if kind == "half" else 2.5


@njit
def defaulted(x, kind="whole"):
    return (1.5 if kind == "half" else x), by_text(kind, x)[0]


@njit
def of_other_types(kind, x):
    if kind == "pair":
        return x, x
    return x


for n in np.random.randint(-99, 99, 5).tolist():
    halves = by_text("half", n), by_text("double", n), by_text("other", n)
    assert halves == ((n / 2, 1.0), (2.0 * n, 2.5), (float(n), 2.5)), halves
    assert all(type(v) is float for pair in halves for v in pair), halves
    assert all(type(v) is float for v in defaulted(n)) and defaulted(n) == (n, n) and defaulted(n, "half") == (1.5, n / 2)
    # the types have nothing in common, so the string decides
    assert of_other_types("pair", n) == (n, n) and of_other_types("one", n) == n


# members whose values are tuples of numbers
class Planet(enum.Enum):
    EARTH = (5.97e24, 6.37e6)
    VENUS = (4.87e24, 6.05e6)


def chosen_member(a, b, first):
    return a if first else b


def constant_member(number):
    if number > 2:
        return Planet.EARTH
    return Planet.VENUS


def member_and_mass(a):
    return a, a.value[0]


for number in (1, 3):
    check(chosen_member, Planet.EARTH, Planet.VENUS, number > 1)
    check(chosen_member, Color.RED, Color.BLUE, number > 1)
    check(constant_member, number)
check(member_and_mass, Planet.VENUS)


# records outside of the function are constants
ROWS = np.array([(3, 1.5), (4, 2.5)], [("n", "i4"), ("v", "f8")])
ROW, NAMED = ROWS[1], ROWS.view(np.recarray)[0]


def of_records(number):
    return ROW["n"] + number, NAMED.v * number, NAMED["n"] + ROWS[0]["v"]


check(of_records, 3)

# ---- an element of a kjit.Array is a number, like an element of a NumPy array: a write to it would be lost ----

line = kjit.array(np.arange(4.0))


def set_element(a):
    a[()] += 1


def set_elements(a):
    a[...] = np.zeros(())


for _ in range(2):  # the first call, and a later call
    assert kjit.njit(lambda a: a * 2)(line[3]) == 6.0 and type(kjit.njit(lambda a: a * 2)(line[3])) is float
    assert type(kjit.njit(lambda a: (np.zeros(1), a)[1])(line[3])) is float  # Python runs this function
    for write in (set_element, set_elements):
        try:
            kjit.njit(write)(line[3])
            raise SystemExit("the write was lost")
        except (kjit.Error, TypeError):
            pass
    kjit.njit(set_element)(line[3, ...])
    assert line[3] == 4
    line[3] = 3
assert kjit.njit(lambda a: a + 1)(kjit.array(np.arange(4, dtype=np.float32))[2]) == 3.0
