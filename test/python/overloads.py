# RUN: %kjit-python %s
# RUN: %if numba %{ %numba-python %s --numba %}
"""numba.extending.overload in functions of njit and kernels of kjit.cuda, and functions with several signatures that compiled code calls.
With --numba, Numba itself runs the functions of njit and gives the same results."""
import sys
import warnings

import numpy as np

IS_NUMBA = "--numba" in sys.argv
if IS_NUMBA:
    from numba import njit, types
    from numba.core.errors import TypingError
    from numba.extending import overload, overload_attribute, overload_method, register_jitable
else:
    import kjit
    from kjit import cuda, njit, prange
    from kjit.cuda import types
    from kjit.cuda.errors import TypingError
    from kjit.extending import overload, overload_attribute, overload_method, register_jitable

MANY = {"target": "generic"}
asked = []


def amount(x, scale=2):
    """what compiled code calls by this name is defined below"""


@register_jitable
def total_of(x):
    total = x.dtype.type(0)
    for value in x.flat:
        total += value
    return total


@overload(amount, **MANY)
def define_amount(x, scale=2):
    asked.append(str(x))
    if isinstance(x, types.Integer):
        return lambda x, scale=2: x * scale
    if isinstance(x, types.Float):

        def of_float(x, scale=2):
            return x / scale

        return of_float
    if isinstance(x, types.Array) and x.ndim == 2:
        return lambda x, scale=2: x[0, 1] + scale
    if isinstance(x, types.Array):
        return lambda x, scale=2: total_of(x) * scale
    if isinstance(x, types.UniTuple):
        return lambda x, scale=2: x[0] - x[1] * scale
    if x is types.none:
        return lambda x, scale=2: scale
    return None


@njit
def amounts(x, y):
    return amount(x), amount(y, 3), amount(x, scale=y)


@njit
def amount_of(x):
    return amount(x)


@njit
def amount_of_none():
    return amount(None, 7)


for arguments, wanted in (
    ((3, 4), (6, 12, 12)),
    ((3.0, 4), (1.5, 12, 0.75)),
    ((np.float32(3), 2.5), (np.float32(1.5), 2.5 / 3, 3 / 2.5)),
    ((np.arange(4), 4), (12, 12, 24)),
    ((np.arange(6).reshape(2, 3), 4), (3, 12, 5)),
    ((np.arange(4.0)[::2], 4), (4.0, 12, 8.0)),
    (((5, 2), 4), (1, 12, -3)),
):
    got = amounts(*arguments)
    assert got == wanted and [type(v) for v in got] == [type(v) for v in amounts(*arguments)], (arguments, got, wanted)
assert amount_of_none() == 7 and amount_of(2) == 4
assert amount(3) is None  # Python calls the function itself

# one combination of types asks for one implementation, however often it is called
before = len(asked)
assert amounts(30, 40) == (60, 120, 1200) and amount_of(5) == 10 and amount_of(6) == 12
assert len(asked) == before


def chosen(x):
    """prefers the values of constants"""


def unchosen(x):
    """requests the values of constants last"""


def choose(x):
    if isinstance(x, types.IntegerLiteral):
        if x.literal_value == 1:
            return lambda x: 100
        raise TypingError("another number")
    if isinstance(x, types.StringLiteral):
        text = x.literal_value
        return lambda x: len(text)
    return lambda x: x * 2


overload(chosen, prefer_literal=True, **MANY)(choose)
overload(unchosen, **MANY)(choose)


@njit
def literals(n):
    return chosen(1), chosen(2), chosen(n), unchosen(1), chosen("four")


assert literals(3) == (100, 4, 6, 2, 4)


@overload_method(types.Array, "spread", **MANY)
def define_spread(a, more=0):
    return lambda a, more=0: a.max() - a.min() + more


@overload_attribute(types.Array, "middle", **MANY)
def define_middle(a):
    return lambda a: a[a.size // 2]


@njit
def method(a):
    return a.spread(), a.spread(1), a.spread(more=2), a.middle


assert method(np.array([4, 9, 7])) == (5, 6, 7, 9) and method(np.array([4.5, 9, 7])) == (4.5, 5.5, 6.5, 9.0)


def apply(f, x, *rest):
    """calls f"""


@overload(apply, **MANY)
def define_apply(f, x, *rest):
    if len(rest) == 1:
        return lambda f, x, *rest: f(x) + rest[0]
    return lambda f, x, *rest: f(x)


@njit
def applied(x):
    def ten_times(v):
        return v * 10

    return apply(ten_times, x), apply(ten_times, x, 5)


assert applied(3) == (30, 35)


@njit(["int64(int64, int64)", "float64(float64, float64)"])
def half_and(a, b):
    return a / 2 + b


@njit
def by_signature(a, b):
    return half_and(a, b)


for arguments, wanted in (((3, 4), 5), ((np.int8(100), np.int8(100)), 150), ((1.5, 2), 2.75), ((True, False), 0), ((True, 2.0), 2.5)):
    assert by_signature(*arguments) == wanted and type(by_signature(*arguments)) is type(wanted), (arguments, by_signature(*arguments))


def refused(action, *texts):
    try:
        action()
    except TypingError as error:
        assert all(text in str(error) for text in texts), error
    else:
        raise AssertionError(texts)


refused(lambda: by_signature(1j, 2), "complex128")
refused(lambda: amount_of(1j), "amount", "complex128")


def different(x, y=1):
    """has an implementation with other parameters"""


@overload(different, **MANY)
def define_different(x, y=1):
    return (lambda x, y=2: x) if isinstance(x, types.Integer) else lambda z, y=1: z


@njit
def calls_different(x):
    return different(x)


refused(lambda: calls_different(1), "keyword argument default values", '<Parameter "y=2">')
refused(lambda: calls_different(1.0), "argument names", '<Parameter "z">')

if IS_NUMBA:
    sys.exit()


@njit(parallel=True)
def in_loops(a):
    total = 0.0
    sums = np.zeros(a.size)
    for i in prange(a.size):
        total += amount(a[i])
    for i in range(a.size):
        sums[i] = amount(a[i], 4)
    return total, sums


for kind, wanted in (("f8", (3.0, [0, 0.25, 0.5, 0.75])), ("i8", (12.0, [0, 4, 8, 12]))):
    total, sums = in_loops(np.arange(4, dtype=kind))
    assert (total, sums.tolist()) == wanted, (total, sums)


@cuda.jit
def kernel(r, x):
    r[0] = amount(x)
    r[1] = apply(lambda v: v + 1, r[0])


r = np.zeros(2)
configured = kernel[1, 1]
for x, wanted in ((3, 6), (5.0, 2.5), (np.arange(4), 12), ((5, 2), 1), (4, 8), (np.float32(1), 0.5)):
    configured(r, x)
    assert r.tolist() == [wanted, wanted + 1], (x, r)
    kernel[1, 1](r, x)
    assert r.tolist() == [wanted, wanted + 1], (x, r)
text = kernel.inspect_asm(types.void(types.float64[:], types.float32[:]))
assert "ld.global" in text and ".entry" in text


@cuda.jit("void(float64[:], int32)")
def with_signature(r, x):
    r[0] = amount(x)


with_signature[1, 1](r, 21)
assert r[0] == 42
code, result = cuda.compile_ptx(lambda x: amount(x), (types.int64,), device=True, cc=(8, 0))
assert result == types.int64, result


@cuda.jit(["int64(int64, int64)", "float64(float64, float64)"], device=True)
def device_half_and(a, b):
    return a / 2 + b


@cuda.jit
def calls_signatures(r, a, b):
    r[0] = device_half_and(a, b)


for arguments, wanted in (((3, 4), 5), ((1.5, 2), 2.75), ((np.float32(1), np.float32(0.1)), 0.5 + float(np.float32(0.1)))):
    calls_signatures[1, 1](r, *arguments)
    assert r[0] == wanted, (arguments, r)


# the target of a definition: kernels take one for "cuda" rather than a generic one
def place():
    """returns the target for which it runs"""


@overload(place, target="generic")
def anywhere():
    return lambda: 1


@overload(place, target="cuda")
def on_a_gpu():
    return lambda: 2


def only_cpu():
    """is defined only for njit"""


@overload(only_cpu)
def define_only_cpu():
    return lambda: 3


@cuda.jit
def where(r):
    r[0] = place()


@cuda.jit
def where_only_cpu(r):
    r[0] = only_cpu()


where[1, 1](r)
assert r[0] == 2 and njit(lambda: place() * 10 + only_cpu())() == 13
refused(lambda: where_only_cpu[1, 1](r), "only_cpu", "no implementation")


# Python runs the rest of a function that creates arrays, and does not use the definition
@njit
def makes_array(x):
    return np.zeros(3) + amount(x)


refused(lambda: makes_array(3), "amount", "overload", "another njit function")
with warnings.catch_warnings():
    warnings.simplefilter("error")
    refused(lambda: kjit.map(kjit.func(lambda x: amount(x)), np.arange(3.0)), "amount", "kjit.njit")
for options, kind in (({"no_such": 1}, TypeError), ({"target": "tpu"}, ValueError)):
    try:
        overload(place, **options)
    except kind as error:
        assert "no_such" in str(error) or "tpu" in str(error)
    else:
        raise AssertionError(options)
