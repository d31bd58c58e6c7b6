# RUN: %kjit-python %s
"""The meaning of njit's options and signatures, and the warning about code that the Python interpreter runs."""
import io
import warnings

import kjit
import numpy as np
import seeds
from kjit import boolean, cuda, float32, float64, int32, int64, njit, prange, types, void

x = seeds.fresh_generator().standard_normal(50)


def fails(kind, text, call, *arguments, **options):
    try:
        call(*arguments, **options)
    except kind as error:
        assert text in str(error), (text, error)
        return error
    raise AssertionError(text)


# ---- signatures: arguments and results are converted ----


def same(a):
    return a


for signature, given, expected in (
    ("int64(int64)", 2.5, 2),
    ("int32(int32)", 2**40 + 1, 1),
    ("float32(float64)", 0.1, float(np.float32(0.1))),
    (float64(int64), True, 1.0),
    (float64(float64), 3, 3.0),
    (boolean(boolean), 5, True),
    ("(int64,)", 3, 3),
    ((float32,), 0.1, float(np.float32(0.1))),
    (["int64(int64)", "float64(float64)"], 5, 5),
    ([int64(int64), float64(float64)], 5.5, 5.5),
    ([int32(int32), float64(float64)], 5, 5.0),
):
    result = njit(signature)(same)(given)
    assert result == expected and type(result) is type(expected), (signature, given, result)
first = njit(["float64(float64[:])", "float64(UniTuple(float64, 2))"], nogil=True)(lambda a: a[0])
assert first(x) == x[0] and first(x[::2]) == x[0] and first((1, 2)) == 1.0
assert first.signatures == [(float64[:],), (types.UniTuple(float64, 2),)] and first.py_func(x) == x[0]
fails(TypeError, "No matching definition", first, x.astype(np.float32))
fails(TypeError, "No matching definition", njit("float64(float64[::1])")(lambda a: a[0]), x[::2])
fails(TypeError, "No matching definition", njit("int64(int64)")(same), 1j)
fails(TypeError, "Ambiguous", njit(["int32(int32)", "int16(int16)"])(same), 5)
fails(OverflowError, "negative", njit("uint8(uint8)")(same), -1)
fails(TypeError, "signature", njit, 3)
fails(TypeError, "not a signature", njit, "float65(float64)")


@njit(void(float64[:], int64), parallel=True)
def scaled(a, n):
    for i in prange(len(a)):
        a[i] = a[i] * n


changed = x.copy()
assert scaled(changed, 2.75) is None and np.array_equal(changed, x * 2)

# ---- options ----


@njit(parallel={"prange": True}, nogil=True, cache=True, fastmath={"nnan", "contract"}, inline="never", boundscheck=True)
def many(a):
    s = 0.0
    for i in prange(len(a)):
        s += a[i]
    return s + a[49]


np.testing.assert_allclose(many(x), x.sum() + x[49], rtol=1e-12, atol=1e-13)
fails(IndexError, "49", many, x[:5].copy())
assert "@fastmath" in njit(fastmath=True)(same).ir and "@fastmath" not in njit(fastmath={"nnan"})(same).ir
assert "@inline" in njit(inline="always")(same).ir
for options, text in (
    ({"forceobj": True}, "object mode"),
    ({"speed": 3}, "no option"),
    ({"fastmath": {"quick"}}, "no flag"),
    ({"inline": "often"}, "inline"),
    ({"error_model": "c"}, "error_model"),
):
    fails((TypeError, ValueError), text, lambda options=options: njit(**options)(same))


# ---- code that the interpreter runs ----


def whole_arrays(a):
    out = np.zeros_like(a)
    for i in range(len(a)):
        row = np.ones(3)
        row[1] = a[i]
        out[i] = row.sum()
    return out * 2 + np.sum(a), np.cumsum(a)


def solves(a):
    return np.linalg.norm(a)


def loops(a):
    s = 0.0
    for i in range(3):
        s += np.linalg.norm(a) * i
    return s


def repeats(a):
    for _ in range(3):
        a = a * 0.5
    for _ in range(2):
        a = a + 1
    return a


def warned(function, *arguments, **options):
    """Returns the texts of the warnings in three calls, and the result."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        compiled = njit(**options)(function)
        results = [compiled(*arguments) for _ in range(3)]
    return [w for w in caught if issubclass(w.category, kjit.KjitWarning)], results[-1]


seen, result = warned(whole_arrays, x, nopython=True)
assert not seen and np.allclose(result[0], whole_arrays(x)[0]) and njit(whole_arrays).runs_in_python
assert not njit(same).runs_in_python
for function, text, line in (
    (solves, "interpreter calls `np.linalg.norm`", 1),
    (loops, "runs this loop, which calls `np.linalg.norm`", 2),
    (repeats, "interpreter runs this loop", 1),
):
    seen, result = warned(function, x)
    assert len(seen) == 1 and text in str(seen[0].message), (function, seen)
    assert seen[0].filename == __file__ and seen[0].lineno == function.__code__.co_firstlineno + line, seen[0]
    np.testing.assert_allclose(result, function(x), rtol=1e-12, atol=1e-13)
    error = fails(kjit.Error, "", njit(nopython=True)(function), x)
    assert error.file == __file__ and function.__code__.co_firstlineno < error.line


random = seeds.fresh_generator()


# ---- loops that the interpreter runs, of which nopython=True allows those that call functions made by njit ----


@njit(nopython=True)
def scaled(a, by):
    total = 0.0
    for i in range(len(a)):
        a[i] *= by
        total += a[i]
    return a * 1.0, total


@njit
def normed(a):
    a /= np.sum(np.abs(a))
    return a, len(a)


def calls_compiled(a, n):
    best = np.zeros(n)
    for k in range(n):
        row, total = scaled(a, 0.5)
        if total < -1e9:
            return row
        best[k] = total + row[k]
    return best


def takes_array_back(a, n):
    v = a + 0.0
    for _ in range(n):
        v[0] += 1
        v, count = normed(v)
        v[1] += count
    return v


def medians(a, w):
    r, s = np.empty(len(a) - w + 1), 0.0
    for i in prange(len(r)):
        r[i] = np.median(a[i : i + w])
        s += r[i]
    return r, s


def in_both(a, b):
    r = np.zeros(len(a))
    both = set(b)
    for i in range(len(a)):
        if a[i] in both:
            r[i] = 1
    return r


x = random.standard_normal(20)
for function, arguments, text, allowed in (
    (calls_compiled, (x, 6), "runs this loop, which calls `scaled`", True),
    (takes_array_back, (x, 4), "runs this loop", True),
    (medians, (x, 5), "runs this loop on one core: `np.median`", False),
    (in_both, (random.integers(0, 9, 7), random.integers(0, 9, 7)), "takes a set", False),
):
    def copies():
        return [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]

    expected = function(*copies())
    for options in ({}, {"nopython": True}) if allowed else ({},):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            compiled = njit(parallel=True, **options)(function)
            for _ in range(2):
                got = compiled(*copies())
                for mine, other in zip(*((r if isinstance(r, tuple) else (r,)) for r in (got, expected)), strict=True):
                    np.testing.assert_allclose(mine, other, rtol=1e-12, atol=1e-13)
        texts = [str(w.message) for w in caught if issubclass(w.category, kjit.KjitWarning)]
        assert len(texts) == 1 and text in texts[0], (function, texts)
    if not allowed:
        error = fails(kjit.SourceError, "", njit(parallel=True, nopython=True)(function), *arguments)
        assert error.file == __file__ and function.__code__.co_firstlineno < error.line

# A kernel's message names the NumPy function that it lacks.
@kjit.cuda.jit
def medians_of(r, a):
    r[0] = np.median(a)


fails(kjit.SourceError, "`np.median`: compiled code does not have this function of NumPy", lambda: medians_of[1, 1](x[:1].copy(), x))


# locals: a variable has the type that the option gives, and each assignment converts to it.
@njit(locals={"s": kjit.int32, "k": np.uint8, "w": float32})
def with_types(n, x):
    s = 0
    for i in range(n):
        s += i
    k = s * 1.0
    if n > 3:
        k = k + 300
    w = x * 3
    return s, k, k + 1, w


for n in (3, 100000, int(random.integers(4, 60000))):
    total = sum(range(n))
    s = (total + 2**31) % 2**32 - 2**31
    k = s % 256 if n <= 3 else (s % 256 + 300) % 256
    assert with_types(n, 0.1) == (s, k, k + 1, np.float32(0.1 * 3)), (n, with_types(n, 0.1))
for name, text in (("n", "is a parameter"), ("i", "is the variable of a loop"), ("absent", "is not assigned")):
    fails(kjit.SourceError, text, njit(locals={name: float32})(with_types.py_func), 3, 0.1)
fails(TypeError, "the type of a variable must be a number type", njit, with_types.py_func, locals={"s": "complicated"})


@njit(locals={"w": float32})
def with_array(n):
    w = 0.1
    return np.zeros(n) + w


fails(NotImplementedError, "locals= is only for functions that are compiled as a whole", with_array, 3)


# ---- compiled callers convert to a function's only signature, also constants ----


@njit("float64(float64)")
def half_down(x):
    return x // 2


@njit("int32(float64)")
def doubled(x):
    return x * 2


@njit("uint8(uint8)")
def wrapped(x):
    return x + 250


@njit
def calls_signatures(x):
    return half_down(x), half_down(7), doubled(x), doubled(x) + 0.5, wrapped(x), wrapped(7)


assert repr(calls_signatures(7)) == "(3.0, 3.0, 14, 14.5, 1, 1)", calls_signatures(7)
assert repr(calls_signatures(2.7)) == "(1.0, 3.0, 5, 5.5, 252, 1)", calls_signatures(2.7)


@cuda.jit("float64(float64)", device=True)
def half_down_on_device(x):
    return x // 2


@cuda.jit
def calls_on_device(r):
    r[0] = half_down_on_device(7) / 2


r = np.zeros(1)
calls_on_device[1, 1](r)
assert r[0] == 1.5


# disable_compile: calls convert their arguments to the types of earlier calls.
@njit
def third(x):
    return x / 3 if x > 2 else x


third(3)
third.disable_compile()
assert third(6) == 2.0 and third(7.5) == 7 / 3 and third.signatures == [(int64,)]
try:
    third(1j)
except TypeError as error:
    assert "No matching definition for argument type(s) complex128" in str(error), error
else:
    raise AssertionError("compiled after disable_compile")
third.disable_compile(False)
assert third(7.5) == 2.5 and len(third.signatures) == 2

# Returns the code of the compiled functions.
@njit
def weighted(a, w):
    total = 0.0
    for v in a:
        total += v * w
    return total


assert weighted(np.arange(3.0), 2) == 6.0 and weighted(np.arange(3, dtype=np.float32), 2.5) == 7.5
codes = weighted.inspect_llvm()
assert list(codes) == weighted.signatures and len(codes) == 2
assert "define" in codes[weighted.signatures[0]] and "double" in weighted.inspect_llvm(weighted.signatures[1])
assert "weighted:" in weighted.inspect_asm((float64[::1], int64)) and "weighted:" in weighted.inspect_asm()[weighted.signatures[1]]
with io.StringIO() as out:
    weighted.inspect_types(out)
    assert "a: f32[:] C" in out.getvalue() and "a: f64[:] C" in out.getvalue(), out.getvalue()
for make, args in ((lambda: np.zeros(3), ()), (lambda t: t[0], ((1, 2),))):
    function = njit(make)
    function(*args)
    try:
        function.inspect_llvm()
    except NotImplementedError as error:
        assert "Python runs" in str(error) or "tuples" in str(error), error
    else:
        raise AssertionError(args)

# Globals are constants from the first call with arguments of these types until recompile().
FACTOR = 2


@njit
def times_factor(x):
    return x * FACTOR


@njit
def array_of_factor(x):
    return np.zeros(2) + FACTOR * x


@njit("int64(int64)")
def signed_factor(x):
    return x * FACTOR


used = times_factor, array_of_factor, signed_factor
assert [np.max(f(3)) for f in used] == [6, 6, 6]
FACTOR = 5
assert [np.max(f(3)) for f in used] == [6, 6, 6]
for f in used:
    f.recompile()
assert [np.max(f(3)) for f in used] == [15, 15, 15]
