# REQUIRES: numba
# RUN: %numba-python %s
"""Inner functions and lambdas with a name: njit gives the results of Numba, also if Python runs the outer function in part, and kernels of
kjit.cuda give the results of Python."""
import inspect
import os
import pathlib
import tempfile

os.environ.setdefault("KJIT_DEVICE", "cpu")
import kjit
import numba
import numpy as np
import seeds
from kjit import cuda

generator = seeds.fresh_generator()


def constants(a, s):
    def put(i, v):
        a[i] = v

    put(0, 1.5)
    put(1, s)


def scalars(a, s):
    k = s * 2

    def put(i, v):
        a[i] = v + k

    for j in range(3):
        put(j, 1.0)
    k = 7
    put(3, s)


def branches(a, s):
    def put(i, v):
        if v < 0:
            a[i] -= 1
            return
        a[i] = v
        if v > 1:
            return
        a[i] += 0.25

    for i in range(4):
        put(i, i - 1.0)


def nested(a, k):
    def put(i, v):
        a[i] += v + k

    def both(m, v):
        i = m + 1
        put(m, v)
        put(i, 2 * v)
        return None

    i = 0
    both(i, k)
    if k > 2:
        both(i + 2, k + 0.5)
    a[i] += k


def loops(a, s):
    t = 1.5

    def add(n):
        for j in range(n):
            a[j] += t
        n += 1
        a[3] += n

    n = 2
    add(n)
    t = 2.5
    add(s)
    a[0] += n


def other_array(a, s):
    def copy(to, of):
        for i in range(len(to)):
            to[i] = of[i] * s

    copy(a, a[::-1])


def later(a, s):
    t, u = 0.25, 0

    def add(n):
        for j in range(n):
            a[j] += t * u

    t = 1.5
    for u in range(s):
        add(u)
    t = 0.5
    add(4)


def of_nothing(a, s):
    def nothing(i):
        return

    def unused(i):
        a[i] = 3

    nothing(1)
    if s > 0:
        nothing(s)
    a[s - 2] = 4


def values(a, s):
    k = s + 0.5

    def scaled(x):
        if x > 1:
            return x * k
        return -x

    def both(x, y):
        return scaled(x) + scaled(y) * s

    for i in range(4):
        a[i] = both(a[i], i)
    k = -1.0
    a[0] = scaled(5.0)


def lambdas(a, s):
    square = lambda x: x * x  # noqa: E731
    shifted = lambda x, y: square(x) + y * s  # noqa: E731
    for i in range(len(a)):
        a[i] = shifted(a[i], i)
    a[1] += square(s)


def tuples(a, s):
    def ends(v):
        low, high = v[0], v[0]
        for x in v:
            low, high = min(low, x), max(high, x)
        return low, high

    low, high = ends(a)
    for i in range(4):
        a[i] = (a[i] - low) / (high - low) * s


def defaults(a, s):
    def add(i, by=0.5, times=2):
        a[i] += by * times * s

    add(0)
    add(1, 2.0)
    for i in range(2, 4):
        add(i, 1.5, i)


def arguments(a, s):
    def twice(x):
        return 2 * x

    def apply(f, x):
        return f(x) + 1

    for i in range(4):
        a[i] = apply(twice, a[i]) + s


def whole_arrays(a, s):
    def decayed(x):
        return np.exp(-x * s)

    def centred(x):
        return x - x.mean()

    a[:] = centred(decayed(a))


def comprehensions(a, s):
    def scaled(x):
        return x * s

    a[:] = np.array([scaled(v) + (lambda y: y * v)(2.0) for v in a])


def hidden_names(a, s):
    k = s + 1.0

    def scaled(x):
        return x * k

    def apply(scaled, x):
        return scaled(x) + 1

    def twice(x):
        return 2 * x

    def of_local(x):
        scaled = x + 1
        return scaled * 2

    for i in range(4):
        a[i] = apply(twice, scaled(a[i])) + of_local(a[i]) + (lambda twice: twice + k)(1.5)


def recomputed(a, s):
    def total(v):
        t = 0.0
        for x in v:
            t += x * s
        return t

    i = 0
    while i < 3:
        a[i] = total(a)
        i += 1
    if total(a) > 1 and s > 2:
        a[3] = total(a[:2])


# NumPy's functions make Python run the outer function in part.
RESULTS = ("", "a.sum()", "(np.flip(a), a[0])")


def with_result(function, result, folder):
    text = inspect.getsource(function) + (f"    return {result}\n" if result else "")
    path = pathlib.Path(folder, f"{function.__name__}_{RESULTS.index(result)}.py")
    path.write_text(text)
    space = {"np": np}
    exec(compile(text, str(path), "exec"), space)
    return space[function.__name__]


def check(name, got, wanted):
    assert type(got) is type(wanted), (name, got, wanted)
    for x, y in zip(got, wanted) if isinstance(wanted, tuple) else [(got, wanted)]:
        assert np.asarray(x).dtype == np.asarray(y).dtype and np.array_equal(x, y), (name, got, wanted)


def check_function(function, folder, reference):
    for result in ("", *generator.choice(RESULTS[1:], 1)):
        made = with_result(function, result, folder)
        own, numbas = kjit.njit(made), reference(made)
        for s in (3, 2):
            a, b = np.arange(4.0), np.arange(4.0)
            check((function.__name__, result, s), own(a, s), numbas(b, s))
            check((function.__name__, result, s), a, b)


def in_python(function):
    """Returns the function with Numba's types of results. Numba 0.61 itself passes the default of an inner function in place of an
    argument."""

    def plain(value):
        return tuple(map(plain, value)) if isinstance(value, tuple) else value.item() if isinstance(value, np.generic) else value

    return lambda *given: plain(function(*given))


def check_kernel(function):
    for s in (3, 2):
        a, b = np.arange(4.0), np.arange(4.0)
        cuda.jit(function)[1, 1](a, s)
        function(b, s)
        check((function.__name__, "kernel", s), a, b)


with tempfile.TemporaryDirectory() as folder:
    for function in (constants, scalars, branches, nested, loops, other_array, later, of_nothing, values, lambdas, tuples, recomputed):
        check_function(function, folder, numba.njit)
        check_kernel(function)
    for function in (arguments, whole_arrays, comprehensions, hidden_names):
        check_function(function, folder, numba.njit)
    check_function(defaults, folder, in_python)


# Functions that call themselves, which Numba's njit refuses inside of a function.
def recursive(a):
    k = a[1]

    def product(n):
        return k if n < 1 else n * product(n - 1)

    def odd(n):
        if n == 0:
            return False
        return even(n - 1)

    def even(n):
        if n == 0:
            return True
        return odd(n - 1)

    b = np.sort(a)
    for i in range(len(a)):
        b[i] = product(i)
    return b, odd(3), even(3)


b, is_odd, is_even = kjit.njit(recursive)(np.full(4, 2.0))
assert (b.tolist(), is_odd, is_even) == ([2.0, 2.0, 4.0, 12.0], True, False), (b, is_odd, is_even)


def endless(a):
    def put(i):
        put(i - 1)

    put(3)
    return a.sum()


def two_definitions(a):
    if len(a) > 2:

        def f(x):
            return x + 1
    else:

        def f(x):
            return x - 1

    return np.sort(a) * f(a[0])


def carries_lambda(a):
    def apply(f, x):
        return f(x)

    return np.sort(a) * apply(lambda x: x * a[0], 2.0)


def carries(a):
    k = a[0]

    def times(x):
        return x * k

    def apply(f, x):
        return f(x)

    return np.sort(a) * apply(times, 2.0)


def decorated(a):
    @kjit.njit
    def f(x):
        return x + 1

    return np.sort(a) * f(a[0])


def assigns_outside(a):
    k = 0.0

    def add(x):
        nonlocal k
        k += x

    add(2.0)
    return np.sort(a) * k


def open_default(a):
    def f(x, y=a[1]):
        return x + y

    return np.sort(a) * f(a[0])


for function, text in (
    (two_definitions, "a kernel cannot define this function"),
    (carries_lambda, "the lambda reads `a` of the function around it, so it can only be called here"),
    (carries, "`times` reads `k` of the function around it, so it can only be called here"),
    (decorated, "a kernel cannot define this function"),
    (assigns_outside, "nonlocal k"),
    (open_default, "a default of a function that is defined in a function must be a constant"),
):
    try:
        kjit.njit(function)(np.ones(4))
    except kjit.SourceError as error:
        assert text in str(error), (function.__name__, error)
    else:
        raise AssertionError(f"{function.__name__} is accepted")
try:
    kjit.njit(endless)(np.ones(4))
except RecursionError as error:
    assert "the recursion of `put` is too deep" in str(error), error
else:
    raise AssertionError("the recursion ends")
