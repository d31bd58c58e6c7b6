# RUN: env KJIT_DEVICE=cpu %if pyarrow %{ PYTHONPATH=%builddir/python %pyarrow-python %} %else %{ %kjit-python %} %s
"""kjit.eval: random formulas against NumPy, and against numexpr, pandas and pyarrow where they are installed; types of results;
nulls, slices and chunks; columns that a formula cannot take."""

import ast
import tracemalloc

import kjit
import numpy as np
import seeds

pandas = pyarrow = numexpr = None
try:
    import pandas
except ImportError:
    print("without pandas: its data frames are not tested")
try:
    import pyarrow
except ImportError:
    print("without pyarrow: its columns are not tested")
try:
    import numexpr
except ImportError:
    print("without numexpr: its results are not compared")

draw, rng = seeds.fresh_choice(), seeds.fresh_generator()
ROWS = 203
EMPTY: list = []
INTEGERS = ["i1", "u1", "i2", "u2", "i4", "u4", "i8"]


def refused(call, text, kind=kjit.Error):
    try:
        call()
    except kind as error:
        assert text in str(error), error
    else:
        raise AssertionError(text)


def make_columns():
    columns = {f"k{i}": rng.integers(0 if t[0] == "u" else -9, 9, ROWS).astype(t) for i, t in enumerate(INTEGERS)}
    columns |= {"x": rng.normal(size=ROWS), "y": rng.normal(size=ROWS), "z": rng.normal(size=ROWS).astype("f4")}
    return columns | {"p": rng.random(ROWS) > 0.5, "q": rng.random(ROWS) > 0.3}


def integer(depth):
    if depth == 0 or draw.random() < 0.2:
        return draw.choice([f"k{draw.randrange(len(INTEGERS))}", str(draw.randrange(1, 9))])
    a, b = integer(depth - 1), integer(depth - 1)
    return draw.choice([f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"({a} // {b})", f"({a} % {b})", f"({a} & {b})", f"(-{a})",
                        f"abs({a})", f"where({truth(depth - 1)}, {a}, {b})"])  # fmt: skip


def test_shifts():
    """Compares with NumPy, with shift counts that exceed the type's bits."""
    counts = np.array([-(2**40), -65, -1, 0, 1, 7, 31, 32, 40, 63, 64, 2**32 + 1, 2**63 - 1])
    for name in ("i4", "u4", "i8", "u8"):
        low, high = np.iinfo(name).min, np.iinfo(name).max
        x = np.array([low, high, 1, 77, draw.randrange(low, high)], name).repeat(len(counts))
        n = np.tile(counts, 5)
        wide = widened(name)
        for text, shift in (("x << n", np.left_shift), ("x >> n", np.right_shift)):
            inside = np.where((n >= 0) & (n < np.dtype(wide).itemsize * 8), n, 64).astype(wide)
            found = kjit.eval(text, x=x, n=n)
            assert found.dtype == wide and np.array_equal(found, shift(x.astype(wide), inside)), (text, name)
    assert kjit.eval("int64(1) << 40").tolist() == 2**40


def test_arguments():
    x = np.ones(3)
    refused(lambda: kjit.eval(3), "takes a formula as a string, not int", TypeError)
    refused(lambda: kjit.eval("x + y", x=x, y=None), "column `y` is None", TypeError)
    refused(
        lambda: kjit.eval("x + y", x=x, y=2**64),
        "column `y` is an integer that does not fit into 64 bits",
        OverflowError,
    )
    assert kjit.eval("y", y=2**63).tolist() == 2**63 and kjit.eval("y", y=-(2**63)).tolist() == -(2**63)
    try:
        import pandas
    except ImportError:
        return
    a, b = pandas.Series([1.0, 2.0]), pandas.Series([1.0, 2.0], index=[1, 0])
    refused(lambda: kjit.eval("a + b", a=a, b=b), "column `b` has another index than the preceding columns", ValueError)
    assert kjit.eval("a + b", a=a, b=b.reset_index(drop=True)).tolist() == [2, 4]


def real(depth):
    if depth == 0 or draw.random() < 0.2:
        return draw.choice(["x", "y", "z", "0.5", "2.25"])
    a, b = real(depth - 1), real(depth - 1)
    one = draw.choice(["sin", "cos", "exp", "arctan", "sqrt(abs", "log1p(abs", "tanh"])
    return draw.choice([f"({a} + {b})", f"({a} * {b})", f"({a} - {integer(depth - 1)})", f"({a} / (1.5 + abs({b})))", f"({a}) ** 2",
                        f"{one}({a})" + ")" * one.count("("), f"where({truth(depth - 1)}, {a}, {b})"])  # fmt: skip


def truth(depth):
    if depth <= 0 or draw.random() < 0.2:
        return draw.choice(["p", "q", "(x > y)", "(k6 <= k4)"])
    a, b = truth(depth - 1), truth(depth - 1)
    comparison = f"({integer(depth - 1)} {draw.choice(['<', '>=', '==', '!='])} {integer(depth - 1)})"
    inverse = "~" if any(map(str.isalpha, a)) else "not"  # Python's `~(3 < 1)` is an integer
    return draw.choice([f"({a} & {b})", f"({a} | {b})", f"({a} ^ {b})", f"({inverse} {a})", comparison])


def with_numpy_integers(text):
    """Returns the formula's code with each integer as an np.int64: `7 % (2 - 2)` is 0 as in NumPy and not Python's ZeroDivisionError."""

    class Integers(ast.NodeTransformer):
        def visit_Constant(self, node):
            return ast.Call(ast.Name("int64", ast.Load()), [node], []) if type(node.value) is int else node

    tree = ast.fix_missing_locations(Integers().visit(ast.parse(text, mode="eval")))
    return compile(tree, "<formula>", "eval")


def expected_of(text, columns):
    """Compares with all integers as i64 and all floats as f64."""
    wide = {n: c if c.dtype == bool else c.astype("f8" if c.dtype.kind == "f" else "i8") for n, c in columns.items()}
    names = {n: getattr(np, n) for n in "sin cos exp arctan sqrt log1p tanh where int64".split()}
    with np.errstate(all="ignore"):
        return np.broadcast_to(eval(with_numpy_integers(text), {**names, **wide, "abs": np.abs}), ROWS)


def close(x, y):
    with np.errstate(all="ignore"):
        return np.allclose(x, y, rtol=1e-4, atol=1e-4, equal_nan=True)


def decided(text, columns, expected):
    """The rows whose real results single precision has: neither large numbers nor, as in `sin(exp(exp(z)))`, amplified rounding errors.
    All columns of reals are scaled by 1 + 2**-18, so that their comparisons stay. This changes each of them by more than 30 roundings."""
    moved = expected_of(text, {n: c * (1 + 2**-18) if c.dtype.kind == "f" else c for n, c in columns.items()})
    with np.errstate(all="ignore"):
        return (np.abs(moved - expected) <= 1e-4 * (1 + np.abs(expected))) & (np.abs(expected) < 1e30) | np.isnan(expected) & np.isnan(moved)


def test_random():
    compared = 0
    for _ in range(14):
        kind = draw.choice([integer, real, truth])
        text, columns = kind(draw.randrange(1, 4)), make_columns()
        found, expected = np.broadcast_to(kjit.eval(text, columns), ROWS), expected_of(text, columns)
        kinds = found.dtype.kind.replace("u", "i"), expected.dtype.kind
        assert kinds[0] == kinds[1], (text, found.dtype, expected.dtype)
        exact = kinds[0] in "bi"
        clear = slice(None) if exact else decided(text, columns, expected)
        assert np.array_equal(found, expected) if exact else close(found[clear], expected[clear]), (text, found, expected)
        if numexpr and kind is real and "//" not in text and "%" not in text:
            compared += 1
            assert close(found[clear], np.broadcast_to(numexpr.evaluate(text, columns), ROWS)[clear]), text
    print("compared with numexpr:", compared)


def widened(name):
    return {"u4": "i8", "i8": "i8", "u8": "u8"}.get(name, "i4")


def test_types():
    """The type of a sum, for each pair of types."""
    names = [*INTEGERS, "u8", "f4", "f8"]
    for first in names:
        for second in names:
            a, b = np.ones(3, first), np.ones(3, second)
            if "f" in first + second:
                expected = np.result_type(a, b)
            elif first[0] == second[0] == "u" and "u8" in (first, second):
                expected = np.dtype("u8")
            else:
                expected = np.result_type(widened(first), widened(second))
            found = kjit.eval("a + b", a=a, b=b)
            assert found.dtype == expected, (first, second, found.dtype, expected)
    z = np.ones(3, "f4")
    assert kjit.eval("z * 0.1 + 1").dtype == np.float32 and kjit.eval("z * 1e300").dtype == np.float64
    assert kjit.eval("a / b", a=[1, 2], b=[2, 4]).tolist() == [0.5, 0.5]
    assert kjit.eval("2 * 3 + x", x=4) == 10 and kjit.eval("x + 1", x=np.ones((2, 3))).shape == (2, 3)
    out = np.zeros(3)
    assert kjit.eval("z + 1", out=out) is out and out.tolist() == [2, 2, 2]
    assert kjit.eval("z + 1", {"z": np.arange(6.0)[::2]}).tolist() == [1, 3, 5]


def test_masked():
    a = np.ma.MaskedArray(rng.normal(size=ROWS), rng.random(ROWS) < 0.3)
    b = np.ma.MaskedArray(rng.integers(-5, 5, ROWS), rng.random(ROWS) < 0.3)
    total = kjit.eval("a * 2 + b")
    assert np.array_equal(total.mask, a.mask | b.mask) and np.allclose(
        total[~total.mask], (a.data * 2 + b.data)[~total.mask]
    )
    filled = kjit.eval("fillna(a, b)")
    assert np.array_equal(filled.mask, a.mask & b.mask)
    assert np.allclose(filled[~filled.mask], np.where(a.mask, b.data, a.data)[~filled.mask])
    either = kjit.eval("a > 0 or b > 0")
    left, right = ~a.mask & (a.data > 0), ~b.mask & (b.data > 0)
    assert np.array_equal(~either.mask, left | right | (~a.mask & ~b.mask)) and np.array_equal(
        either.filled(False), left | right
    )
    assert np.array_equal(kjit.eval("is_null(a)"), a.mask)


def random_arrow(kind, count):
    """A chunked column with nulls, slices of larger arrays, and empty chunks."""
    chunks = []
    for part in rng.multinomial(count, [0.3, 0.0, 0.3, 0.4]):
        start, size = int(rng.integers(0, 13)), int(part)
        values = rng.random(size + 20) > 0.5 if kind == "bool" else rng.integers(-9, 9, size + 20).astype(kind)
        nulls = None if rng.random() < 0.3 else rng.random(size + 20) < rng.choice([0.3, 1.0])
        chunks.append(pyarrow.array(values, mask=nulls).slice(start, size))
    return pyarrow.chunked_array(chunks)


def test_arrow():
    if not pyarrow:
        return
    cases = {  # for one row; pyarrow 21 computes some of them wrongly for slices
        "a * b - a": lambda a, b, p, q: None if a is None or b is None else a * b - a,
        "where(p, a, b)": lambda a, b, p, q: None if p is None else a if p else b,
        "p and q": lambda a, b, p, q: False if p is False or q is False else None if p is None or q is None else True,
        "p | q": lambda a, b, p, q: p or q or (None if p is None or q is None else False),
        "~p": lambda a, b, p, q: None if p is None else not p,
        "coalesce(a, b)": lambda a, b, p, q: b if a is None else a,
        "is_null(a)": lambda a, b, p, q: a is None,
        "a > b": lambda a, b, p, q: None if a is None or b is None else a > b,
    }
    for _ in range(4):
        columns = [random_arrow(kind, ROWS) for kind in ("f8", "f8", "bool", "bool")]
        table = pyarrow.table(dict(zip("abpq", columns)))
        for text, function in cases.items():
            expected = [function(*row) for row in zip(*(column.to_pylist() for column in columns))]
            assert kjit.eval(text, table).to_pylist() == expected, text
    single = pyarrow.array([1, None, 3])
    assert kjit.eval("single + 1").to_pylist() == [2, None, 4]
    refused(lambda: kjit.eval("a + 1", a=pyarrow.array(["x"])), "`+` cannot be applied to a column of texts and")
    refused(lambda: kjit.eval("a + 1", a=pyarrow.array(["x"]).dictionary_encode()), "`+` cannot be applied to a column of texts and")


def test_pandas():
    if not pandas:
        return
    values, nulls = rng.normal(size=ROWS), rng.random(ROWS) < 0.3
    frame = pandas.DataFrame({"a": values, "trip distance": rng.normal(size=ROWS)}, index=np.arange(ROWS) * 2)
    frame["n"] = pandas.array(np.where(nulls, None, 5), dtype="Int64")
    text = "a * `trip distance` + 1"
    pandas.testing.assert_series_equal(kjit.eval(text, frame), frame.eval(text), check_names=False)
    pandas.testing.assert_series_equal(kjit.eval("n * 2 + 1", frame), frame["n"] * 2 + 1, check_names=False)
    pandas.testing.assert_series_equal(kjit.eval("s + 1", s=frame["n"]), frame["n"] + 1, check_names=False)
    refused(lambda: kjit.eval("a + c", frame), "no column `c`")


def test_refused():
    x = np.ones(4)
    given = {"x": x, "words": np.array(["a", "b", "c", "d"])}
    refused(lambda: kjit.eval("x + unknown", given), "formula:1:5: error: there is no column `unknown`")
    refused(lambda: kjit.eval("x; x", given), "expected the end of the expression")
    for text, message in (("x if x else x", "formulas have no `a if c else b`: write `where(c, a, b)`"), ("!x", "formulas have no `!`: write `not`"),
                          ("x && x", "formulas have no `&&`: write `and`"), ("x + * x", "expected a value, found `*`\n")):
        refused(lambda: kjit.eval(text, given), message)  # noqa: B023
    refused(lambda: kjit.eval("__import__('os').system('true')", given), "formula:1:18")
    refused(lambda: kjit.eval("x.__class__", given), "attributes")
    refused(lambda: kjit.eval("(lambda: 1)()", given), "formula:1:")
    refused(lambda: kjit.eval("x + words", given), "to float64 and a column of texts")
    refused(lambda: kjit.eval("x + 1j", given), "formula:1:5")
    refused(lambda: kjit.eval("x + z", given, z=x[:3]), "has the shape (3,)", ValueError)
    refused(lambda: kjit.eval("sum(x) + 1", given), "a value for each row")
    refused(lambda: kjit.eval("+".join(["x"] * 5000), given), "levels")
    out = np.zeros(1)
    refused(lambda: kjit.eval("v + 1", out=out, v=np.ma.MaskedArray([1.0], [True])), "nulls", ValueError)


def test_bools_joined():
    """where, fillna and coalesce of a bool and a number return the number's type, or i32, compared with NumPy and
    numexpr."""
    names = "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float32 float64".split()
    given = {n: rng.integers(0, 100, ROWS).astype(n) for n in names}
    c, b = rng.random(ROWS) < 0.5, rng.random(ROWS) < 0.5
    cases = [(f"where(c, {x}, {y})", n) for n in names[1:] for x, y in (("b", n), (n, "b"))]
    cases += [(f"where(c, {x}, {y})", v) for v in (0, 1, 2, -1, 70000, 1 << 40, 0.5) for x, y in (("b", v), (v, "b"))]
    for text, other in cases:
        y = given[other] if isinstance(other, str) else other
        first, second = (b, y) if text.startswith("where(c, b") else (y, b)
        small = y.dtype.kind in "iu" and y.itemsize < 4 if isinstance(other, str) else isinstance(y, int) and abs(y) < 1 << 31
        kind = "i4" if small else "i8" if isinstance(other, str) and other == "uint32" else np.result_type(type(y) if np.isscalar(y) else y.dtype, bool)
        found = kjit.eval(text, given, c=c, b=b)
        assert found.dtype == kind and np.array_equal(found, np.where(c, first, second).astype(kind)), (text, found.dtype, kind)
        if numexpr and other not in ("uint64", 1 << 40):
            want = numexpr.evaluate(text, {**given, "c": c, "b": b})
            assert found.dtype == want.dtype and np.array_equal(found, want), (text, found, want)
    masked = np.ma.MaskedArray(b, c)
    for text in ("fillna(m, 2)", "coalesce(m, 2)", "where(c, 2, b)"):
        found = np.ma.getdata(kjit.eval(text, m=masked, c=c, b=b))
        assert found.dtype == "i4" and np.array_equal(found, np.where(c, 2, b)), text
    assert kjit.eval("where(c, b, False)", c=c, b=b).dtype == bool


def test_out():
    """out= is written in place, without a copy. Columns that share its memory are read before."""
    count, n = 100_000, 1000
    for kind in ("f8", "i8", "i4"):
        for start, step in ((0, 1), (1, 1), (7, 1), (n // 2, 1), (3 * n, 1), (0, 2), (7, 2)):
            memory = rng.integers(0, 100, 6 * n).astype(kind)
            a, b, small = memory[:n], memory[7 : 7 + n], memory.view("i4")[10 : 10 + n]
            out = memory[start : start + n * step : step]
            for text in ("a + b * 0", "where(b > 50, a, b)", "b + small * 0"):
                want = memory.copy()
                given = {"a": a.copy(), "b": b.copy(), "small": small.copy()}
                want[start : start + n * step : step] = eval(text, {**given, "where": np.where}).astype(kind)
                shape = (10, -1) if step == 1 else -1
                given = {"a": a.reshape(shape), "b": b.reshape(shape), "small": small.reshape(shape)}
                assert kjit.eval(text, given, out=out.reshape(shape)).base is memory
                assert np.array_equal(memory, want), (kind, start, step, text)
    x, out = rng.random(count), np.empty(count)
    kjit.eval("x + 1", out=out, x=x)
    tracemalloc.start()
    kjit.eval("x + 1", out=out, x=x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < out.nbytes // 4 and np.array_equal(out, x + 1), peak


def test_functions():
    """kjit has numexpr's functions under the same names, except functions for complex numbers, strings and
    reductions."""
    names = kjit._kjit.formula_functions()
    assert len(names) == len(set(names)) and {"where", "arctan2", "fillna"} <= set(names)
    if numexpr:
        from numexpr.expressions import functions

        absent = {"complex", "conj", "real", "imag", "contains", "sum", "prod", "min", "max", "ones_like"}
        print("of numexpr only:", sorted(set(functions) - set(names) - absent))


def test_reductions():
    """A reduction of a whole formula, compared with NumPy and numexpr."""
    a, i, m = rng.normal(size=ROWS), rng.integers(-9, 9, ROWS), rng.normal(size=(4, 5))
    for text, want in (
        ("sum(a * i)", (a * i).sum()),
        (" prod( a ) ", a.prod()),
        ("max(i)", i.max()),
        ("min(where(a > 0, a, 1.0))", np.where(a > 0, a, 1).min()),
        ("sum(m, axis=0)", m.sum(0)),
        ("sum(m + 1, 1)", (m + 1).sum(1)),
        ("sum(m, -1)", m.sum(-1)),
    ):
        got = kjit.eval(text, {"a": a, "i": i, "m": m})
        assert np.shape(got) == np.shape(want) and np.allclose(got, want), (text, got, want)
        if numexpr and "-1" not in text:
            other = numexpr.evaluate(text.strip(), {"a": a, "i": i, "m": m})
            assert np.allclose(got, other) and np.shape(got) == np.shape(other), text
    masked = np.ma.array(a, mask=a < 0)
    assert np.isclose(kjit.eval("sum(x)", x=masked), a[a >= 0].sum())
    out = np.zeros(5)
    assert kjit.eval("sum(m, 0)", out=out, m=m) is out and np.allclose(out, m.sum(0))
    if pyarrow:
        assert kjit.eval("max(x)", x=pyarrow.array([1, None, 3])).as_py() == 3
    refused(lambda: kjit.eval("  sum(x * yy)", x=a), "formula:1:11: error: there is no column `yy`")
    refused(lambda: kjit.eval("min(x, y)", x=a, y=a), "`minimum(a, b)`")


def test_forms_of_pandas():
    """Variables of the program and assignments, as in DataFrame.eval."""
    if not pandas:
        return
    frame = pandas.DataFrame({"a": rng.normal(size=ROWS), "i": rng.integers(0, 9, ROWS), "s": rng.choice(["x", "y", "z"], ROWS)})
    limit, word, words, few, more = 0.5, "x", ["x", "z"], (1, 3), rng.normal(size=ROWS)
    for text in (
        "a + @limit",
        "@limit * i > a",
        "s == @word",
        "s in @words",
        "s not in @words",
        "i in @few and a > @limit",
        "a * @more",
        "s == '@word'",
        "d = a + i",
        "`two words` = a * @limit",
        "a = a * 2",
    ):
        got, want = kjit.eval(text, frame), frame.eval(text)
        assert type(got) is type(want) and np.array_equal(np.asarray(got), np.asarray(want)), (text, got, want)
        if isinstance(got, pandas.DataFrame):  # pandas writes `two words` as BACKTICK_QUOTED_STRING_two_words
            assert list(got)[:3] == list(want)[:3] and list(got)[3:] in ([], ["d"], ["two words"])
    refused(lambda: kjit.eval("a > @none", frame), "there is no variable `none`", NameError)
    refused(lambda: kjit.eval("i in @EMPTY", frame), "`EMPTY` is empty", ValueError)
    refused(lambda: kjit.eval("i in @pandas", frame), "is not iterable", TypeError)
    refused(lambda: kjit.eval("d = a", frame, out=np.zeros(ROWS)), "so it has no `out`", TypeError)
    refused(lambda: kjit.eval("d = a + q", frame), "formula:1:9: error: there is no column `q`")
    refused(lambda: kjit.eval("a + @", frame), "expected a value, found `@`")
    columns = {"a": frame["a"].to_numpy()}
    assert np.allclose(kjit.eval("b = a + @limit", columns)["b"], columns["a"] + limit)
    if pyarrow:
        table = pyarrow.table(columns)
        assert kjit.eval("b = a * 2", table).column_names == ["a", "b"]


def test_dates():
    """Comparisons, differences and sums of random times, with NaT, as NumPy has them."""
    numbers = seeds.fresh_generator()
    days = numbers.integers(-20000, 40000, 300).astype("M8[D]")
    times = numbers.integers(-(10**12), 2 * 10**12, 300).astype("M8[ms]")
    spans = numbers.integers(-(10**9), 10**9, 300).astype("m8[us]")
    times[numbers.random(300) < 0.2] = "NaT"
    valid = ~np.isnat(times)
    later = kjit.eval("days > times")
    assert ((days > times)[valid] == later[valid]).all() and (np.ma.getmaskarray(later) == ~valid).all()
    assert same_dates(kjit.eval("times - times"), times - times)
    assert same_dates(
        kjit.eval("times + spans", {"times": days.astype("M8[us]"), "spans": spans}), days.astype("M8[us]") + spans
    )
    assert same_dates(kjit.eval("days + days(3)"), days + np.timedelta64(3, "D"))
    assert same_dates(kjit.eval("days - '2024-02-29'"), days - np.datetime64("2024-02-29"))
    assert (kjit.eval("days >= '2024-02-29T12:00'") == (days >= np.datetime64("2024-02-29T12:00"))).all()
    assert same_dates(kjit.eval("as_days(times)"), times.astype("M8[D]"))
    assert np.allclose(kjit.eval("spans / seconds(1)"), spans / np.timedelta64(1, "s"))
    refused(lambda: kjit.eval("days + 1", {"days": days}), "write seconds(n) or days(n)")
    refused(lambda: kjit.eval("x + x", x=np.zeros(2, "M8[Y]")), "supports the units", TypeError)
    if pyarrow:
        column = pyarrow.array(times)
        back = kjit.eval("c + seconds(1)", {"c": column})
        assert back.equals(pyarrow.array(times + np.timedelta64(1, "s")))


def test_texts():
    """Columns of strings compared with NumPy, in the forms of all libraries."""
    words = np.array(["", "a", "ab", "b", "ba", "\u00e9", "Z", "longer text"])
    s, t, x = words[rng.integers(0, 8, ROWS)], words[rng.integers(0, 5, ROWS)], np.arange(ROWS)
    missing = rng.random(ROWS) < 0.2
    forms = {"numpy": (s, t)}
    if pandas:
        series = pandas.Series(s.astype(object)).mask(missing, None)
        forms["pandas"] = series, pandas.Series(t).astype("category")
        forms["string"] = series.astype("string"), pandas.Series(t)
    if pyarrow:
        chunks = pyarrow.chunked_array([pyarrow.array(part.tolist(), mask=gone) for part, gone in zip(np.split(s, [70]), np.split(missing, [70]))])
        forms["arrow"] = chunks, pyarrow.array(t.tolist()).dictionary_encode()
        forms["slice"] = pyarrow.concat_arrays([pyarrow.array(["q"]), chunks.combine_chunks()]).slice(1), pyarrow.array(t.tolist())
    for kind, (left, right) in forms.items():
        gone = np.zeros(ROWS, bool) if kind == "numpy" else missing
        for text, want, can_miss in (
            ("s == 'ab'", s == "ab", True),
            ("s != 'none'", s != "none", True),
            ("s < 'b'", s < "b", True),
            ("'a' <= s <= 'b'", ("a" <= s) & (s <= "b"), True),
            ("s in ('a', 'b', '\u00e9')", np.isin(s, ["a", "b", "\u00e9"]), True),
            ("t not in ['a']", t != "a", False),
            ("s == t", s == t, True),
            ("s >= t", s >= t, True),
            ("is_null(s)", gone, False),
            ("startswith(s, 'a') | contains(s, 'x')", np.char.startswith(s, "a") | (np.char.find(s, "x") >= 0), True),
            ("where(endswith(t, 'a'), x, -x)", np.where(np.char.endswith(t, "a"), x, -x), False),
        ):
            got = kjit.eval(text, {"s": left, "t": right, "x": x})
            plain = [None if item is None or kind != "numpy" and item is getattr(pandas, "NA", None) else item for item in getattr(got, "to_pylist", got.tolist)()]
            expected = [None if can_miss and lost else item for item, lost in zip(want.tolist(), gone)]
            assert plain == expected, (kind, text, plain, expected)
    refused(lambda: kjit.eval("s + 1", s=s), "`+` cannot be applied to a column of texts and an integer literal")
    refused(lambda: kjit.eval("s == x", s=s, x=x), "texts can only be compared with texts")
    refused(lambda: kjit.eval("s == 'a'", s=np.array(["a", "a\0b"])), "contains a null character: 'a\\x00b'", ValueError)
    refused(lambda: kjit.eval("o == 1", o=np.array([[], 3], object)), "column `o` has the type object", TypeError)


def test_results_of_texts():
    """Results that are strings, compared with the same formula in Python."""
    words = ["", "a", "Rome", "Oslo", "ö", "zz"]
    for _ in range(3):
        count = draw.randrange(0, 40)
        s, t = ([draw.choice(words) for _ in range(count)] for _ in range(2))
        x = np.array([draw.uniform(-1, 1) for _ in range(count)])
        missing = [draw.random() < 0.3 for _ in range(count)]
        holes = [None if gone else text for text, gone in zip(s, missing)]
        forms = {
            "where(x > 0, 'yes', 'no')": lambda x, s, t: "yes" if x > 0 else "no",
            "s": lambda x, s, t: s,
            "where(x > 0, s, t)": lambda x, s, t: s if x > 0 else t,
            "where(x > 0, s, where(t == 'zz', 'a', 'new'))": lambda x, s, t: s if x > 0 else "a" if t == "zz" else "new",
            "fillna(where(s in ('a', 'ö'), s, null), 'none')": lambda x, s, t: s if s in ("a", "ö") else "none" if s is not None else "none",
            "nullif(t, 'Rome')": lambda x, s, t: None if t == "Rome" else t,
        }
        for text, own in forms.items():
            wanted = [own(*row) for row in zip(x, s, t)]
            found = kjit.eval(text, {"x": x, "s": np.array(s, "U4"), "t": np.array(t, "U4")})
            assert [None if e is np.ma.masked else str(e) for e in found] == wanted, (text, found, wanted)
            wanted = [own(*row) for row in zip(x, holes, t)]
            if pandas:
                frame = pandas.DataFrame({"x": x, "s": pandas.Series(holes, dtype=object), "t": pandas.Series(t, dtype=object)})
                frame.index = np.arange(count) + 5
                found = kjit.eval(text, frame)
                assert found.index.equals(frame.index) and [None if e != e else e for e in found] == wanted, (text, found, wanted)
            if pyarrow:
                parts = [pyarrow.array(["?", *part])[1:] for part in (holes[:7], holes[7:])]
                ss = pyarrow.chunked_array([parts[0], parts[1].dictionary_encode().dictionary_decode()])
                table = pyarrow.table({"x": x, "s": ss, "t": pyarrow.array(t, pyarrow.string()).dictionary_encode()})
                found = kjit.eval(text, table)
                assert found.type == pyarrow.string() and found.to_pylist() == wanted, (text, found, wanted)
    given = {"x": np.array([1.0]), "s": np.array(["a"])}
    refused(lambda: kjit.eval("where(x > 0, s, x)", given), "a value that has a common type with the others is expected")
    refused(lambda: kjit.eval("s", given, out=np.empty(1, "U1")), "the formula returns strings", TypeError)


def same_dates(found, expected):
    return found.dtype == expected.dtype and np.array_equal(found, expected, equal_nan=True)


for test in (
    test_dates,
    test_texts,
    test_results_of_texts,
    test_types,
    test_shifts,
    test_arguments,
    test_random,
    test_masked,
    test_arrow,
    test_pandas,
    test_refused,
    test_bools_joined,
    test_out,
    test_functions,
    test_reductions,
    test_forms_of_pandas,
):
    test()
