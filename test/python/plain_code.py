# RUN: rm -rf %t && env KJIT_DEVICE=cpu XDG_CACHE_HOME=%t %kjit-python %s
"""Plain code from Python: kjit.set_plain_code, the environment variable KJIT_PLAIN_CODE, kjit.wait_background, njit functions,
funcs, formulas and expressions, and the disk cache, which has the best code only. NumPy has the expected values."""
import os
import subprocess
import sys
import tempfile

import kjit
import numpy as np

N = 1000
x = np.random.default_rng(1).normal(size=N).astype(np.float32)


def make_kernel(number):
    """A kernel that no earlier call has compiled."""

    @kjit.jit
    def add(r, x):
        for i in kjit.grid_range(len(r)):
            r[i] = x[i] + number

    return add


def run(number):
    """Launches a new kernel twice, the second time after waiting. Returns whether plain code was made. A first launch may
    run the best code nevertheless, if the background thread is faster."""
    kernel = make_kernel(number)
    for _ in range(2):
        r = np.zeros_like(x)
        kernel(r, x)
        kjit.wait_background()
        np.testing.assert_array_equal(r, x + np.float32(number))
    launches = {bool(s["is_plain"]): s["launches"] for s in kernel.specializations}
    assert sum(launches.values()) == 2 and launches.get(True, 0) <= 1, launches
    return True in launches


def refused(call, text):
    try:
        call()
    except ValueError as error:
        assert text in str(error), error
    else:
        raise AssertionError(f"not refused: {text}")


def check_settings():
    assert not run(1)
    kjit.set_plain_code("equal")
    assert run(2)
    kjit.set_plain_code("never")
    assert not run(3)
    kjit.set_plain_code("always")
    assert run(4)
    refused(lambda: kjit.set_plain_code("some"), "set_plain_code: expected 'never', 'equal', 'always', not 'some'")
    refused(lambda: kjit.set_plain_code(None), "not None")
    assert run(5)  # rejected settings have changed nothing


def check_algorithms():
    """Runs each algorithm with plain code, and again with the best code."""
    i = (x * 1000).astype(np.int32)
    for _ in range(2):
        np.testing.assert_array_equal(np.asarray(kjit.sort(i)), np.sort(i))
        np.testing.assert_array_equal(np.asarray(kjit.scan(i, "add")), np.cumsum(i, dtype=np.int32))
        np.testing.assert_array_equal(np.asarray(kjit.unique(i)), np.unique(i))
        assert int(kjit.reduce(i, "max")) == i.max()
        a = np.arange(64.0).reshape(8, 8)
        np.testing.assert_allclose(np.asarray(kjit.matmul(a, a)), a @ a, rtol=1e-14)
        kjit.wait_background()


def start(value, cache, then=""):
    """Runs a program whose environment has the setting. Returns its output, or its message."""
    program = (
        "import kjit, numpy as np\n"
        "x, r = np.ones(100, 'f4'), np.zeros(100, 'f4')\n"
        "@kjit.jit\ndef add(r, x):\n    for i in kjit.grid_range(len(r)):\n        r[i] = x[i] + 1\n"
        f"{then}\n"
        "add(r, x)\nassert (r == 2).all()\nkjit.wait_background()\n"
        "print(any(s['is_plain'] for s in add.specializations), kjit.statistics()['compilations'])\n"
    )
    path = os.path.join(cache, "program.py")
    with open(path, "w") as file:
        file.write(program)
    environment = os.environ | {"KJIT_PLAIN_CODE": value, "XDG_CACHE_HOME": cache}
    result = subprocess.run([sys.executable, path], env=environment, capture_output=True, text=True)
    return result.stdout.strip() or result.stderr.strip().splitlines()[-1]


def check_environment():
    with tempfile.TemporaryDirectory() as cache:
        assert start("equal", cache) == "True 2"
        assert start("equal", cache) == "False 0"  # the best code is in the disk cache
    with tempfile.TemporaryDirectory() as cache:
        assert start("", cache) == "False 1"
        assert start("some", cache) == "ValueError: KJIT_PLAIN_CODE: expected 'never', 'equal', 'always', not 'some'"
    with tempfile.TemporaryDirectory() as cache:
        assert start("some", cache, "kjit.set_plain_code('always')") == "True 2"


# A program that prints the number of compilations of the first and the second call of each step. The steps
# compute with integers, or round each product, so that `equal` includes them.
STEPS = """
import kjit, kjit.numpy, numpy as np
from kjit import _state

x = np.arange(100)
kjit.numpy.fuse("now")  # otherwise a thread of Python compiles the expression, for which wait_background does not wait


@kjit.njit
def serial(x):
    s = 0.5
    for i in range(len(x)):
        s = s * 0.25 + x[i]
    return s


@kjit.njit(parallel=True)
def parallel(x):
    r = np.zeros(len(x))
    for i in kjit.prange(len(x)):
        r[i] = x[i] * 0.25 + 1.0
    return r


@kjit.func
def plain(a, b):
    return (a ^ b) * 7


def expected_serial():
    s = 0.5
    for i in range(len(x)):
        s = s * 0.25 + x[i]
    return s


steps = {
    "serial": (lambda: serial(x), expected_serial),
    "parallel": (lambda: parallel(x), lambda: x * 0.25 + 1.0),
    "func": (lambda: plain(12345, 99), lambda: (12345 ^ 99) * 7),
    "eval": (lambda: kjit.eval("x % 7 + (x << 2)", x=x), lambda: x % 7 + (x << 2)),
    "fused": (lambda: kjit.numpy.asarray(x) * 3 ^ kjit.numpy.asarray(x), lambda: x * 3 ^ x),
}


def count():
    return sum(c.statistics()["compilations"] for c in _state._contexts.values())


for name, (run, expected) in steps.items():
    numbers = [count()]
    for _ in range(2):
        np.testing.assert_array_equal(np.asarray(run()), expected())
        kjit.wait_background()
        numbers.append(count())
    print(name, *np.diff(numbers))
"""


def count_steps(value):
    """Returns the numbers of compilations of the first and the second call of each step."""
    with tempfile.TemporaryDirectory() as cache:
        path = os.path.join(cache, "program.py")
        with open(path, "w") as file:
            file.write(STEPS)
        environment = os.environ | {"KJIT_PLAIN_CODE": value, "XDG_CACHE_HOME": cache}
        output = subprocess.run([sys.executable, path], env=environment, capture_output=True, text=True)
    assert output.returncode == 0, output.stderr
    return {name: [int(n) for n in rest] for name, *rest in map(str.split, output.stdout.splitlines())}


def check_functions():
    """njit functions, funcs, formulas and expressions have plain code, and the best code replaces it."""
    never, equal = count_steps("never"), count_steps("equal")
    assert list(never) == list(equal) == ["serial", "parallel", "func", "eval", "fused"], (never, equal)
    for name, (first, second) in never.items():
        assert first >= 1 and second == 0, (name, never)
        assert equal[name] == [2 * first, 0], (name, never, equal)


check_settings()
check_algorithms()
check_environment()
check_functions()
