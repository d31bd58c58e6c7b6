# RUN: env KJIT_DEVICE=cpu %if pyarrow %{ PYTHONPATH=%builddir/python %pyarrow-python %} %else %{ %kjit-python %} %s
"""Functions over rows with missing values: random functions of random tables have the values that Python has for each row, with the
missing value of kjit and, where pandas is installed, of pandas. Tables are dictionaries of NumPy arrays, of pandas, pyarrow and polars."""

import random
import sys
import warnings

import kjit
import numpy as np
import seeds

pandas = polars = pyarrow = None
try:
    import pandas
except ImportError:
    print("without pandas: its tables are not tested")
try:
    import polars
except ImportError:
    print("without polars: its tables are not tested")
try:
    import pyarrow
except ImportError:
    print("without pyarrow: its tables are not tested")

seed = int(sys.argv[1]) if len(sys.argv) > 1 else seeds.seed
print("seed", seed)
rng = random.Random(seed)
kjit.keep_sources()
warnings.simplefilter("ignore")
NUMBERS = {"a": "i8", "b": "i2", "x": "f8", "y": "f4", "k": "i4"}
BOOLS = {"p": "?", "q": "?"}
TEXTS = ["red", "green", "blue", ""]


def column(dtype, count):
    """Returns (values, missing elements). Values are multiples of a quarter, so all sums and products are exact."""
    nulls = rng.choice([0, 0.3, 1])
    missing = np.array([rng.random() < nulls for _ in range(count)], bool)
    if dtype == "?":
        return np.array([rng.random() < 0.5 for _ in range(count)], bool), missing
    if dtype == "U":
        return np.array([rng.choice(TEXTS) for _ in range(count)], "U5"), missing
    values = np.array([rng.randint(-8, 8) for _ in range(count)], dtype)
    return values / values.dtype.type(4) if dtype[0] == "f" else values, missing


# ---- random functions ----


def number(depth):
    if depth == 0 or rng.random() < 0.2:
        name = rng.choice(list(NUMBERS))
        return rng.choice([f"row.{name}", f'row["{name}"]', str(rng.randint(-3, 3)), "0.25", "v"])
    kind = rng.randrange(9)
    if kind < 4:
        return f"({number(depth - 1)} {rng.choice('+-*')} {number(depth - 1)})"
    if kind == 4:
        return f"({number(depth - 1)} {rng.choice(['/', '//', '%'])} {rng.choice([2, 4, -2])})"
    if kind == 5:
        return f"(-{number(depth - 1)})"
    if kind == 6:
        return f"({number(depth - 1)} if {truth(depth - 1)} else {rng.choice([number(depth - 1), 'NA'])})"
    if kind == 7:
        return f"abs({number(depth - 1)})"
    return f"({number(depth - 1)} ** {rng.choice([0, 1, 2])})"


def question(depth):
    """Returns an expression that is True, False or NA."""
    if depth == 0 or rng.random() < 0.2:
        return rng.choice(["row.p", "row.q", f'(row.s {rng.choice(["==", "!="])} {rng.choice(TEXTS)!r})', "True"])
    kind = rng.randrange(4)
    if kind < 2:
        return f"({number(depth - 1)} {rng.choice(['<', '<=', '==', '!=', '>', '>='])} {number(depth - 1)})"
    if kind == 2:
        return f"({question(depth - 1)} {rng.choice('&|')} {question(depth - 1)})"
    return f"({truth(depth - 1)})"


def truth(depth):
    """Returns a condition that rarely needs the truth of NA."""
    kind = rng.randrange(4)
    name = rng.choice([*NUMBERS, *BOOLS, "s"])
    if depth == 0 or kind == 0:
        return f"row.{name} {rng.choice(['is', 'is not'])} NA"
    if kind == 1:
        asked = question(depth - 1)
        return f"({asked} is not NA and {asked})"
    if kind == 2:
        return f"(not {truth(depth - 1)} or {truth(depth - 1)})"
    return f"not isna({number(depth - 1)})" if rng.random() < 0.9 else question(depth - 1)


def program(is_question):
    result = question if is_question else number
    lines = ["def f(row, v):", f"    t = {number(2)}"]
    if rng.random() < 0.5:
        lines += [
            f"    if {truth(2)}:",
            f"        {rng.choice(['t = NA', 'return NA', f't = {number(1)}', 'return None', f'return {result(1)}'])}",
        ]
    if rng.random() < 0.3:
        lines += ["    for i in range(3):", f"        t = t + i * {number(1)}"]
    lines += [f"    return {result(3)} + t" if not is_question else f"    return {result(3)}"]
    return "\n".join(lines) + "\n"


def made(text, missing, isna):
    names = {"NA": missing, "isna": isna, "__name__": "rows"}
    exec(compile(text, f"<rows {rng.random()}>", "exec"), names)
    return names["f"]


# ---- Python's results ----


class Row:
    def __init__(self, values):
        self.__dict__.update(values)

    def __getitem__(self, name):
        return self.__dict__[name]


def expected(function, rows, v, missing):
    """Returns a list with kjit.NA for missing results, or the class of the error that a row raises."""
    found = []
    for row in rows:
        try:
            value = function(row, v)
        except TypeError:
            return TypeError
        found.append(kjit.NA if value is None or value is missing else value)
    return found


def rows_of(columns, count, missing):
    return [Row({n: missing if m[i] else values[i].item() for n, (values, m) in columns.items()}) for i in range(count)]


# ---- tables ----


def with_numpy(columns):
    return {name: np.ma.array(values, mask=missing) for name, (values, missing) in columns.items()}


def with_pandas(columns):
    """Masked columns, with their own index."""
    kinds = (
        {"f": pandas.arrays.FloatingArray, "b": pandas.arrays.BooleanArray}
        if hasattr(pandas.arrays, "FloatingArray")
        else {}
    )
    frame = {}
    for name, (values, missing) in columns.items():
        if values.dtype.kind == "U":
            frame[name] = pandas.array(
                [pandas.NA if m else t for t, m in zip(values.tolist(), missing)],
                dtype=rng.choice(["string", object]),  # missing categories are NaN, see table_texts.py
            )
        else:
            kind = kinds.get(values.dtype.kind, pandas.arrays.IntegerArray)
            frame[name] = kind(values.copy(), missing.copy())
    return pandas.DataFrame(frame, index=np.arange(len(missing)) * 3 + 5)


def with_arrow(columns):
    """Chunks of random lengths, including empty ones. They are slices whose bitmaps begin inside a byte."""
    made = {}
    for name, (values, missing) in columns.items():
        array = pyarrow.array(
            [None, None, None, *[None if m else x for x, m in zip(values.tolist(), missing)]], arrow_type(values.dtype)
        ).slice(3)
        cuts = sorted(rng.choice(range(len(array) + 1)) for _ in range(rng.randint(0, 3)))
        made[name] = pyarrow.chunked_array(
            [array.slice(a, b - a) for a, b in zip([0, *cuts], [*cuts, len(array)])], array.type
        )
        if values.dtype.kind == "U" and rng.random() < 0.5:
            made[name] = made[name].dictionary_encode()
    return pyarrow.table(made)


def with_polars(columns):
    """Two chunks, the second of which is a slice."""
    frame = polars.DataFrame(
        {n: np.ma.array(values, mask=m).tolist() for n, (values, m) in columns.items()}, polars_types(columns)
    )
    cut = rng.randint(0, len(frame))
    return polars.concat([frame[:cut], frame[cut:]], rechunk=False)


def polars_types(columns):
    names = {"U": "String", "b": "Boolean"}
    return {n: getattr(polars, names.get(v.dtype.kind) or v.dtype.name.capitalize()) for n, (v, _) in columns.items()}


def arrow_type(dtype):
    return pyarrow.string() if dtype.kind == "U" else pyarrow.from_numpy_dtype(dtype)


def plain(column):
    """Returns a column of any library as a list with kjit.NA."""
    if isinstance(column, np.ndarray):
        return [kjit.NA if m else x for x, m in zip(np.ma.getdata(column).tolist(), np.ma.getmaskarray(column))]
    to_list = next(getattr(column, name) for name in ("to_pylist", "to_list", "tolist") if hasattr(column, name))
    values = to_list()
    return [kjit.NA if x is None or pandas is not None and x is pandas.NA else x for x in values]


def same(got, want):
    if got is kjit.NA or want is kjit.NA:
        return got is want
    return (
        type(got) is bool
        if type(want) is bool and got != want
        else got == want or abs(got - want) <= 1e-5 * abs(want) or got != got and want != want
    )


def check(table, text, function, want, v):
    try:
        got = plain(kjit.table(table).apply(function, args=(v,)))
    except TypeError as error:
        assert want is TypeError and "NA" in str(error), (text, error)
        return
    assert want is not TypeError and len(got) == len(want) and all(map(same, got, want)), (seed, text, table, got, want)


MAKERS = [
    with_numpy,
    *([with_pandas] if pandas else []),
    *([with_arrow] if pyarrow else []),
    *([with_polars] if polars else []),
]
errors = 0
for trial in range(36):
    count = rng.choice([0, 1, 9, 70, 300])
    columns = {name: column(dtype, count) for name, dtype in {**NUMBERS, **BOOLS, "s": "U"}.items()}
    text, v = program(trial % 3 == 0), rng.choice([2, 0.5])
    function = made(text, kjit.NA, kjit.isna)
    want = expected(function, rows_of(columns, count, kjit.NA), v, kjit.NA)
    errors += want is TypeError
    if pandas:
        assert (
            want
            == (known := expected(made(text, pandas.NA, pandas.isna), rows_of(columns, count, pandas.NA), v, pandas.NA))
            or known is not TypeError
            and all(map(same, want, known))
        ), text
    check(MAKERS[trial % len(MAKERS)](columns), text, function, want, v)
print("functions that asked for the truth of NA:", errors)

# Each operator for all pairs of values, with one or both missing.
SIGNS = {"?": ["&", "|", "^", "=="], "i8": ["&", "|", "**", "!=", "//"]}
VALUES = {"?": [False, True], "i8": [0, 1, 2]}
for dtype, signs in SIGNS.items():
    items = [*VALUES[dtype], kjit.NA]
    left, right = zip(*[(a, b) for a in items for b in items if b is kjit.NA or b != 0 or dtype == "?"])
    columns = {}
    for name, column in (("a", left), ("b", right)):
        missing = np.array([x is kjit.NA for x in column])
        columns[name] = np.array([0 if x is kjit.NA else x for x in column], dtype), missing
    for sign in signs:
        text = f"def f(row, v):\n    return row.a {sign} row.b\n"
        function = made(text, kjit.NA, kjit.isna)
        check(with_numpy(columns), text, function, [function(Row({"a": a, "b": b}), 0) for a, b in zip(left, right)], 0)

# Arrays whose elements are not aligned, as other processes send them.


def unaligned(values):
    made = np.frombuffer(b"?" + values.tobytes(), values.dtype, offset=1)
    assert not made.flags.aligned
    return made


x, n = unaligned(np.arange(20.0)), unaligned(np.arange(20) % 3)
assert kjit.table({"x": x, "n": n}).apply(lambda row: row.x + row.n).tolist() == (x + n).tolist()
assert kjit.table({"x": x, "n": n}).groupby("n").agg(s=("x", "sum"))["s"].tolist() == [x[n == k].sum() for k in range(3)]
assert kjit.table({"x": np.ma.array(x, mask=n == 0)}).apply(lambda row: row.x).tolist() == np.where(n == 0, None, x).tolist()
assert kjit.eval("x * 2 + n", {"x": x, "n": n}).tolist() == (x * 2 + n).tolist()
if pandas:
    frame = pandas.DataFrame({"x": x, "t": unaligned(np.arange(20).astype("M8[ns]"))}, copy=False)
    assert kjit.table(frame).apply(lambda row: row.x * 2).tolist() == (x * 2).tolist()
    assert kjit.table(frame).rolling("2ns", on="t")["x"].sum().tolist() == [x[max(0, i - 1) : i + 1].sum() for i in range(20)]
