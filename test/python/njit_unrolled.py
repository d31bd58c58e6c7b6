# REQUIRES: numba
# RUN: %numba-python %s
"""literal_unroll over strings, functions, None and lists of constants, and tuples that contain strings: each function gives the same value
of the same type, or changes its array in the same way, as with Numba."""
import warnings

import kjit
import numba
import numpy as np
from numba import literal_unroll

warnings.simplefilter("ignore")
FIELDS, WORDS = ("b", "c"), ("one", "two", 3, None)
TABLE = np.zeros(4, dtype=[("a", "i4"), ("b", "f8"), ("c", "i2")])
TABLE["a"], TABLE["b"], TABLE["c"] = [1, 2, 3, 4], [0.5, 1.5, 2.5, 3.5], [7, 8, 9, 10]


def one():
    return 1


def two():
    return 2.5


def field_sum(r):
    s = 0.0
    for name in literal_unroll(("a", "b")):
        s += r[1][name]
    return s


def field_of_variable(r):
    names = ("a", "c")
    name = names[1]
    return r[2][name] + len(names)


def fields_written(r):
    for name in literal_unroll(FIELDS):
        r[0][name] = r[0]["a"] * 3
    return r[0]["b"]


def columns(r):
    s = 0.0
    for name in literal_unroll(FIELDS):
        for i in range(len(r)):
            s += r[name][i]
    return s


def compared():
    n = 0
    for word in literal_unroll(WORDS):
        if word == "two":
            n += 10
        elif word is None:
            n += 100
        elif word == 3:
            n += 1000
    return n


def mixed_items(x, y):
    items = ("skip", x, 2 * y, (x, "deep"), -1)
    n = 0.0
    for i in range(len(literal_unroll(items))):
        n += i
    return n + items[1] + items[2] + items[3][0] + items[4]


def left_early(x):
    n = 0
    for word in literal_unroll(("a", "b", "c", "d")):
        if word == "b" and x > 0:
            continue
        n += 1
        if word == "c" and x > 1:
            break
        n += 10
    else:
        n += 100
    return n


def left_in_loops(x):
    n = 0
    for word in literal_unroll(("a", "b", "c")):
        for i in range(5):
            if i == 3:
                break
            if i == 1 and word == "b":
                continue
            n += 1
        else:
            n += 1000
        if n > x:
            break
    return n


def counted(x):
    items = (12, 12.7, 3j, 4, x, 2 * x)
    s = 0
    for i in range(len(literal_unroll(items))):
        s += items[i]
        if s.real > 26:
            break
    return s


def listed():
    items = [12, 12.7, -3, 4j]
    s = 0
    for item in literal_unroll(items):
        s += item
    for i in range(len(literal_unroll(items))):
        s += items[i]
    return s + items[0]


def listed_at_once():
    s = 0
    for item in literal_unroll([1, 2.5, "no", True]):
        if item != "no":
            s += 2
    return s


def read_afterwards():
    for item in literal_unroll([1, 2, 3]):
        pass
    return item


def sliced():
    n = 0
    for word in literal_unroll(WORDS[::2]):
        n += 1
    for word in literal_unroll(WORDS[-1:]):
        if word is None:
            n += 10
    return n


def called():
    s = 0
    for function in literal_unroll((numba_one, numba_two)):
        s += function()
    return s


def returning(x):
    for word in literal_unroll(("a", "b", "c")):
        if word == "b" and x > 0:
            return 5
        if word == "c":
            return 7
    return 9


def of_argument(words, values):
    s = 0.0
    for word in literal_unroll(words):
        if word == "first":
            s += values[0]
        elif word == "last":
            s += values[2]
        elif word == 12:
            s += values[1]
    return s


def first_of(words):
    return len(words) + (10 if words[0] == "x" else 20)


def items_of(items):
    return items[1] + len(items), items[-1]


def arrays_beside(n):
    a = np.zeros(n)
    for word in literal_unroll(("p", "q", "r")):
        if word != "q":
            a += 1
    return a


numba_one, numba_two = numba.njit(one), numba.njit(two)
def left_by_a_handler(x):
    n = 0
    for _ in range(3):
        for item in literal_unroll((1, "a", 2)):
            try:
                if x > 0:
                    raise ValueError("a")
                n += 1
            except ValueError:
                break
        n += 10
    return n


def same_variable():
    n = 0
    for item in literal_unroll((1, "a")):
        for item in literal_unroll((2, None, 3)):
            if item is None:
                n += 1
        if item == 3:
            n += 100
    return n


CASES = [
    (field_sum, (TABLE,)),
    (field_of_variable, (TABLE,)),
    (fields_written, (TABLE,)),
    (columns, (TABLE,)),
    (compared, ()),
    (mixed_items, (3, 0.5)),
    *[(left_early, (x,)) for x in (0, 1, 2)],
    *[(left_in_loops, (x,)) for x in (0, 4, 100)],
    (counted, (9,)),
    (counted, (0.25,)),
    (listed, ()),
    (listed_at_once, ()),
    (read_afterwards, ()),
    (sliced, ()),
    *[(returning, (x,)) for x in (0, 1)],
    (of_argument, (("first", "last", 12), (1.5, 2, 4))),
    (of_argument, (("last",), (1.5, 2, 4))),
    (of_argument, (("first", 12), (1.5, 2, 4))),
    (first_of, (("x", "y"),)),
    (first_of, (("y", "x", 1),)),
    (items_of, (("x", 2.5, 7),)),
    (items_of, ((None, 2, True),)),
    (arrays_beside, (3,)),
]


def run(jit, function, arguments):
    copies = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
    return jit(function)(*copies), copies


for function, arguments in CASES:
    expected, changed = run(numba.njit, function, arguments)
    result, mine = run(kjit.njit, function, arguments)
    assert type(result) is type(expected), (function.__name__, arguments, result, expected)
    np.testing.assert_array_equal(result, expected, err_msg=f"{function.__name__}{arguments}")
    for a, b in zip(mine, changed):
        if isinstance(a, np.ndarray):
            assert a.tobytes() == b.tobytes(), (function.__name__, a, b)

expected = numba.njit(called)()
numba_one, numba_two = kjit.njit(one), kjit.njit(two)
result = kjit.njit(called)()
assert type(result) is type(expected) and result == expected, (result, expected)


def changed_list():
    items = [1, 2]
    s = 0
    for item in literal_unroll(items):
        s += item
    items.append(3)
    return s


def part_of_list():
    items = [1, 2, 3]
    s = 0
    for item in literal_unroll(items[:2]):
        s += item
    return s


def list_of_variables(x):
    items = [1, x]
    s = 0
    for item in literal_unroll(items):
        s += item
    return s


def index_at_run_time(i):
    words = ("a", "b", 1)
    return words[i] == "a"


# Numba rejects these as well.
for function, arguments in ((changed_list, ()), (part_of_list, ()), (list_of_variables, (2,)), (index_at_run_time, (0,))):
    for jit, errors in ((numba.njit, numba.core.errors.NumbaError), (kjit.njit, kjit.Error)):
        try:
            jit(function)(*arguments)
        except errors:
            continue
        raise AssertionError(f"{jit.__module__} compiles {function.__name__}")

# Numba has no such functions.
assert kjit.njit(left_by_a_handler)(1) == 30 and kjit.njit(same_variable)() == 202

# A new tuple of equal strings and functions needs no new code.
first = kjit.njit(first_of)
for _ in range(3):
    assert first(("x", "".join(("y", "y")))) == 12
assert len(first._variants) == 1, first._variants
print("ok")
