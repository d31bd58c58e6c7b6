# RUN: %kjit-python %s
"""Read-only arrays in kernels of kjit.cuda and njit functions: accepted if the code only reads them, rejected if it
writes to them. The judge is NumPy, which raises ValueError if Python runs the same function and writes."""

import kjit
import kjit.numpy
import numpy as np
from kjit import cuda, njit

N = 8


def reads(r, x, i):
    r[i] = x[i] * 2


def reads_under_condition(r, x, i):
    if i < r.size - 1 and x.ndim == 1:
        r[i] = x[i] + x.shape[0] + len(x)


def reads_view(r, x, i):
    view = x[2:]
    if i < view.size:
        r[i] = view[i]


def reads_reshaped(r, x, i):
    r[i] = x.reshape(2, 4).T[i % 4, 0]


def reads_all(r, x, i):
    total = 0.0
    for value in x:
        total += value
    r[i] = total


def reads_one_of_two(r, x, i):
    either = x if i > 3 else r
    r[i] = either[i]


def reads_and_rebinds(r, x, i):
    here = x
    value = here[i]
    here = r
    here[i] = value


def plain_store(a, i, value):
    a[i] = value


store = plain_store  # the function that the functions below call: compiled for kernels, plain for the judge


def writes_result_by_call(r, x, i):
    store(r, i, x[i])


def writes(r, x, i):
    x[i] = r[i]


def adds(r, x, i):
    r[i] = x[i]
    x[i] += 1


def writes_view(r, x, i):
    view = x[2:]
    view[0] = r[i]


def writes_by_call(r, x, i):
    store(x, i, r[i])


def writes_one_of_two(r, x, i):
    either = x if i < N else r
    either[i] = 3


def writes_slice(r, x, i):
    x[i : i + 1] = r[i]


def writes_never(r, x, i):
    if r.ndim == 2:
        x[i] = 1
    r[i] = x[i]


def read_only(values):
    made = np.array(values)
    made.flags.writeable = False
    return made


def run_python(function):
    """The result, or None if NumPy says that the array is read-only."""
    global store
    r, x = np.zeros(N), read_only(np.arange(N, dtype=float))
    store = plain_store
    try:
        for i in range(N):
            function(r, x, i)
    except ValueError as error:
        assert "read-only" in str(error), error
        return None
    return r


def make_device(function):
    global store
    store = cuda.jit(device=True)(plain_store)
    return cuda.jit(device=True)(function)


def in_kernel(function):
    called = make_device(function)

    @cuda.jit
    def kernel(r, x):
        called(r, x, cuda.grid(1))

    def run(r, x):
        kernel[1, N](r, x)

    return run


def in_tuple(function):
    called = make_device(function)

    @cuda.jit
    def kernel(t):
        called(t[0], t[1], cuda.grid(1))

    def run(r, x):
        kernel[1, N]((r, x))

    return run


def in_njit(function):
    global store
    store = njit(plain_store)
    called = njit(function)

    def run(r, x):
        for i in range(N):
            called(r, x, i)

    return run


FUNCTIONS = (reads, reads_under_condition, reads_view, reads_reshaped, reads_all, reads_one_of_two, reads_and_rebinds, writes_result_by_call, writes, adds, writes_view, writes_by_call, writes_one_of_two, writes_slice, writes_never)


def check(form, function, x):
    expected, r, before = run_python(function), np.zeros(N), np.arange(N, dtype=float)
    run = form(function)
    for _ in range(2):  # the second call finds the code
        try:
            run(r, x)
        except kjit.ArgumentError as error:
            assert expected is None, (form, function, error)
            assert "marked it read-only" in str(error), error
        else:
            assert expected is not None, (form, function)
            np.testing.assert_array_equal(r, expected)
    np.testing.assert_array_equal(np.asarray(x.to_host() if isinstance(x, kjit.Array) else x), before)


frozen = kjit.numpy.broadcast_to(kjit.array(np.arange(N, dtype=float)), (N,))
assert frozen.is_read_only
for function in FUNCTIONS:
    for form in (in_kernel, in_tuple, in_njit):
        check(form, function, read_only(np.arange(N, dtype=float)))
    check(in_kernel, function, frozen)
written = [function for function in FUNCTIONS if run_python(function) is None]
assert [f.__name__ for f in written] == ["writes", "adds", "writes_view", "writes_by_call", "writes_one_of_two", "writes_slice"]
