# RUN: rm -rf %t && env KJIT_DEVICE=cpu XDG_CACHE_HOME=%t %kjit-python %s
"""Plain code from Python: kjit.set_plain_code, the environment variable KJIT_PLAIN_CODE, kjit.wait_background, and the disk
cache, which has the best code only. NumPy has the expected values."""
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
    assert run(5)  # the refused settings changed nothing


def check_algorithms():
    """Each algorithm by plain code, and again by the best code."""
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


check_settings()
check_algorithms()
check_environment()
