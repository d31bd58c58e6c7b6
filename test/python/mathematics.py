# RUN: env KJIT_DEVICE=cpu %kjit-python %s
# Every function of Python's math and cmath has Python's values over special numbers, or is refused by name.
import cmath
import itertools
import math

import kjit
from kjit import njit

kjit.keep_sources()
REALS = [0.0, -0.0, 0.3, -0.7, 1.0, -1.0, 2.5, -3.5, 1e-310, 1e300, -1e300, math.inf, -math.inf, math.nan, 7.0, 20.5]
INTEGERS = [0, 1, 2, 5, -3, 12, 20, 7, 2**31 + 9, -(2**40)]
PARTS = (0.0, -0.0, 0.5, -2.0, 3.0, math.inf, -math.inf, math.nan)
COMPLEX = [complex(x, y) for x in PARTS for y in PARTS]
OF_INTEGERS = {"gcd", "lcm", "isqrt", "ldexp"}
# Functions that take a sequence, and functions whose results exceed 64 bits.
REFUSED = {"fsum": "(a, a)", "prod": "(a, a)", "dist": "(a, a), (a, a)", "sumprod": "(a, a), (a, a)", "comb": "5, 2", "perm": "5, 2", "factorial": "5"}


def close(got, want):
    if isinstance(want, tuple):
        return len(got) == len(want) and all(map(close, got, want))
    if isinstance(want, complex):
        # A small part has the rounding error of the whole number.
        is_near = want != 0 and cmath.isfinite(want) and cmath.isfinite(got) and abs(got - want) <= 1e-14 * abs(want)
        parts = (got.real, want.real), (got.imag, want.imag)
        has_signs = all(math.copysign(1, g) == math.copysign(1, w) for g, w in parts if g == w == 0)
        return is_near and has_signs or close(got.real, want.real) and close(got.imag, want.imag)
    if not isinstance(want, float):
        return got == want or abs(want) > 2**63  # an integer that does not fit in 64 bits
    if math.isnan(want) or got == want:
        return math.isnan(want) == math.isnan(got) and (math.isnan(want) or math.copysign(1, got) == math.copysign(1, want))
    return math.isclose(got, want, rel_tol=1e-14, abs_tol=5e-324)


def function(module, name, arguments, given):
    space = {"module": module}
    exec(f"def call({arguments}): return module.{name}({given})", space)
    return space["call"]


def results(call, values, count):
    """Yields (arguments, Python's result) for arguments for which Python has a result."""
    for arguments in itertools.product(values, repeat=count):
        try:
            yield arguments, call(*arguments)
        except (ValueError, OverflowError, ZeroDivisionError):
            pass


def check(module, name, values, ways=(njit, kjit.func)):
    """Returns the number of forms of the function."""
    forms = 0
    for count in (1, 2, 3):
        names = ", ".join("abc"[:count])
        call = function(module, name, names, names)
        try:
            known = list(results(call, values[:: 1 if count < 3 else 3], count))
        except TypeError:
            continue
        forms += 1
        for way in ways:
            made = way(call)
            for arguments, want in known:
                got = made(*arguments)
                # The sign of a zero next to a NaN, and the sign of a part of tan at two infinities, are not defined.
                is_loose = module is cmath and any(cmath.isnan(a) or cmath.isinf(a) and name in ("tan", "tanh") for a in arguments)
                assert close(got, want) or is_loose, (module, name, way, arguments, got, want)
    return forms


for name in [n for n in dir(math) if n[0] != "_" and callable(getattr(math, n))]:
    if name in REFUSED:
        for way in (njit, kjit.func):
            try:
                way(function(math, name, "a", REFUSED[name]))(2.0)
            except kjit.SourceError as error:
                assert f"math.{name}()" in str(error), error
            else:
                raise AssertionError(name)
        continue
    assert check(math, name, INTEGERS if name in OF_INTEGERS else REALS), name

for name in [n for n in dir(cmath) if n[0] != "_" and callable(getattr(cmath, n))]:
    values = REALS if name == "rect" else COMPLEX[::3] if name == "isclose" else COMPLEX
    assert check(cmath, name, values, (njit,)), name


@njit
def near(a, b):
    return math.isclose(a, b, rel_tol=0.1), math.isclose(a, b, abs_tol=2.0), math.hypot(a, b, 3.0, 4.0), math.gcd(12, 18, 27)


for a, b in [(1.0, 1.05), (1.0, 2.5), (-3.0, 4.0)]:
    assert close(near(a, b), near.py_func(a, b)), (a, b)
for way in (njit, kjit.func):
    root = way(lambda n: math.isqrt(n))
    for n in [0, 1, 2, 3, 4, 99, 100, 2**52 - 1, (2**31 - 1) ** 2, (2**31 - 1) ** 2 - 1, 2**62, 3037000499**2 - 1, 3037000499**2, 2**63 - 1]:
        assert root(n) == math.isqrt(n), n
try:
    njit(lambda n: math.isqrt(n))(-1)
except kjit.KernelError as error:
    assert "nonnegative" in str(error)
else:
    raise AssertionError("no KernelError")
