# RUN: %kjit-python %s
"""Expressions of kjit.numpy: what fusing promises of results, memory, errors, threads and other libraries. random_expressions.py has random
programs.

    python3 test/python/fused_expressions.py     # KJIT_TEST_SEED repeats a run"""
import gc
import os
import subprocess
import sys
import threading

os.environ.setdefault("KJIT_DEVICE", "cpu")
os.environ.pop("KJIT_FUSE", None)
import kjit  # noqa: E402
import kjit.numpy as knp  # noqa: E402
import numpy as np  # noqa: E402
import seeds  # noqa: E402
from kjit import _kjit  # noqa: E402

seed = seeds.seed
ON_CPU = os.environ["KJIT_DEVICE"] == "cpu"


def same(got, expected, what):
    host, expected = got.to_host(), np.asarray(expected)
    assert host.dtype == expected.dtype and host.shape == expected.shape, (seed, what, host.dtype, expected.dtype, host.shape)
    assert np.array_equal(host, expected, equal_nan=expected.dtype.kind == "f"), (seed, what, host, expected)


def refused(call, kind, text):
    try:
        call()
    except kind as error:
        assert text in str(error), (text, str(error))
    else:
        raise AssertionError(f"not refused: {text}")


# ---- guarantees of fused expressions ----


def arrays(count, size=1000):
    generator = np.random.default_rng(seed)
    hosts = [generator.random(size) for _ in range(count)]
    return hosts, [knp.asarray(host, copy=True) for host in hosts]


def test_errors_at_their_line():
    _, (x, y) = arrays(2)
    refused(lambda: x * 2 + knp.zeros(7), ValueError, "could not be broadcast together")
    refused(lambda: (x + y) & 1, TypeError, "bitwise_and does not support arrays of float")
    refused(lambda: knp.empty(7, dtype="bf16") + knp.asarray([1]), TypeError, "have no common data type")
    refused(lambda: knp.asarray([1], dtype=knp.int8) + 300, OverflowError, "out of bounds")
    frozen = knp.broadcast_to(knp.zeros(1), (1000,))
    refused(lambda: knp.add(x, y, out=frozen), ValueError, "read-only")


def test_order_of_updates():
    (a, b), (x, y) = arrays(2)
    with knp.fuse("now"):
        z, c = x * 2 + y, a * 2 + b
        x[3] = 100
        a[3] = 100
        same(z, c, "a store after an expression")
        part, held = x * 0.5, a * 0.5
        x += part
        a += held
        same(part, held, "a part that is held")
        same(x, a, "an update")
        x -= x * 0.25 + y
        a -= a * 0.25 + b
        same(x, a, "an update that reads its result")
        x[1:] += x[:-1]
        a[1:] = a[1:] + a[:-1]
        same(x, a, "an update that overlaps")


def test_lent_memory():
    if not ON_CPU:  # NumPy can use only host memory
        return
    (a,), (x,) = arrays(1)
    before = x + 1
    host = np.asarray(x)
    assert not _kjit.is_pending(before) and not _kjit.is_pending(x + 1)
    during = x * 2
    host[:] = 0
    same(before, a + 1, "before the buffer")
    same(during, a * 2, "while there is a buffer")
    del host
    gc.collect()
    assert _kjit.is_pending(x + 1)


def test_kernels_write():
    (a,), (x,) = arrays(1)

    @kjit.jit
    def clear(r):
        for i in kjit.grid_range(len(r)):
            r[i] = 0.0

    later, sorted_later = x + 1, x * 3
    clear(x)
    same(later, a + 1, "an expression before a launch")
    y = knp.asarray(a)
    other = y * 3
    kjit.sort(y, out=y)
    same(other, a * 3, "an expression before an algorithm")
    same(sorted_later, a * 3, "another one")


def test_temporaries_end():
    _, (x,) = arrays(1)
    with knp.fuse("now"):
        y = x * 2 + 1
        _kjit.compute_all()
        assert sys.getrefcount(x) == 2, sys.getrefcount(x)
    with knp.fuse(True):
        y = (x * 2 - 1) * 5 + 0.125
        y.item if y.size == 1 else y.to_host()
        assert sys.getrefcount(x) == 2, sys.getrefcount(x)


def test_many_operations():
    (a,), (x,) = arrays(1, 100)
    with knp.fuse(True):
        for i in range(300):
            x, a = x * 0.5 + i, a * 0.5 + i
        same(x, a, "a long chain")
        for _ in range(20):
            x, a = x * x * 0.0001 - x * 0.5, a * a * 0.0001 - a * 0.5
        same(x, a, "a chain with shared parts")


def test_reductions_in_one_pass():
    (a, b), (x, y) = arrays(2, 600)
    with knp.fuse("now"):
        z = knp.reshape(x, (20, 30)) * 2 > 1
        assert int(knp.count_nonzero(z)) == np.count_nonzero(a * 2 > 1) and _kjit.is_pending(z)
        column = knp.reshape(y, (20, 30))[:, :1]
        w = knp.reshape(x, (20, 30)) + column
        for keepdims in (False, True):
            expected = (a.reshape(20, 30) + b.reshape(20, 30)[:, :1]).max(axis=1, keepdims=keepdims)
            same(knp.max(w, axis=1, keepdims=keepdims), expected, "max along an axis")
        assert _kjit.is_pending(w)
        assert abs(float((x * y).sum()) - (a * b).sum()) < 1e-9 and (x * y).sum(keepdims=True).shape == (1,)


def test_explain():
    _, (x, y) = arrays(2)
    with knp.fuse("now"):
        z = x * 2 + y
        text = kjit.explain(z)
        assert "an expression of 2 operations" in text and "1 launch " in text and "reads 16000 bytes and writes 8000" in text, text
        z.to_host()
        assert "computed, one kernel, 1 launch" in kjit.explain(z), kjit.explain(z)
    with knp.fuse(True):
        z = x * 2 - y * 7 + 1
        z.to_host()
        assert "operations one by one, 4 launches" in kjit.explain(z), kjit.explain(z)
    assert "not from an expression" in kjit.explain(x)


def test_failed_kernel():
    """A kernel that cannot be compiled: the single operations give the result, and explain gives the reason."""
    (a,), (x,) = arrays(1)
    from kjit.numpy import _fusing

    whole = _fusing.Expression.func
    _fusing.Expression.func = lambda self: _fusing.Func("fused", "func fused(x0, x1) { return no_such_function(x0) }")
    try:
        with knp.fuse("now"):
            y = (x + 0.75) * x
            same(y, (a + 0.75) * a, "without the kernel")
    finally:
        _fusing.Expression.func = whole
    assert "the kernel was not compiled" in kjit.explain(y) and "no_such_function" in kjit.explain(y), kjit.explain(y)


def test_no_memory():
    """No memory for the result: the error comes from the line that needs it, and the arrays stay as they were."""
    if not ON_CPU:
        return
    x = knp.broadcast_to(knp.ones(1), (2**46,))
    for mode in (True, "now"):
        with knp.fuse(mode):
            y = x * 2 + 1
            refused(lambda: knp.compute(y), kjit.HostMemoryError, "out of host memory")
            assert _kjit.is_pending(y)
            refused(lambda: y.fill(0), kjit.HostMemoryError, "out of host memory")
            same(x[:3] * 2 + 1, np.full(3, 3.0), "after the error")


def test_threads():
    (a, b), (x, y) = arrays(2, 200000)
    failures = []
    for mode in (True, "now"):
        with knp.fuse(mode):
            for _ in range(5):
                z = knp.sqrt(x * y + 1) - x
                expected = np.sqrt(a * b + 1) - a
                threads = [threading.Thread(target=lambda: same(z, expected, "a thread") or failures.append(0)) for _ in range(4)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
    assert len(failures) == 40, len(failures)


def test_numpys_calls_and_scalars():
    if not ON_CPU:
        return
    (h,), (x,) = arrays(1)
    g = h.astype("f4")
    f = knp.asarray(g, copy=True)
    y = np.multiply(np.sqrt(x), 2.5) + np.float64(3)
    assert _kjit.is_pending(y) and "of 3 operations" in kjit.explain(y), kjit.explain(y)
    same(y, np.multiply(np.sqrt(h), 2.5) + np.float64(3), "ufuncs of NumPy")
    for scalar in (np.float32(0.1), np.int8(-3), np.uint16(500), np.bool_(True), np.int64(2)):
        made = scalar * f - scalar
        wide = np.result_type(g, np.empty(1, scalar.dtype))  # as NumPy 2: the scalar has a type
        assert _kjit.is_pending(made), scalar
        if scalar.dtype != bool:
            same(made, (g.astype(wide) * wide.type(scalar)) - wide.type(scalar), repr(scalar))
    small = knp.asarray(np.arange(5, dtype="i1"))
    same(np.exp(small) * 0 + 1, np.ones(5, "f2"), "NumPy's type, which the namespace does not have")
    refused(lambda: np.power(knp.asarray([1, 2]), -1), ValueError, "negative integer powers")


def test_scans_and_selections_read_expressions():
    (h,), (x,) = arrays(1)
    h, x = h.reshape(40, 25), x.reshape(40, 25)
    whole = knp.asarray(np.arange(1000).reshape(40, 25))
    for mode in (False, True, "now", True):
        with knp.fuse(mode):
            for _ in range(3):
                same(knp.cumulative_sum(whole * 3 - 1, axis=1), (np.arange(1000).reshape(40, 25) * 3 - 1).cumsum(axis=1), "scan")
                same(x[x * x > 0.25], h[h * h > 0.25], "select")
                same(knp.nonzero(x * 2 > 0.5)[1], np.nonzero(h * 2 > 0.5)[1], "nonzero")
                same((x + 1)[x > 0.5], (h + 1)[h > 0.5], "select from an expression")
                y, e = x.copy(), h.copy()
                y[y.reshape((25, 40)).T > y] = -1
                e[e.reshape((25, 40)).T > e] = -1
                same(y, e, "an assignment whose mask reads the array in another order")
                y[y + y > 1] = np.float32(0.1)
                e[e + e > 1] = np.float32(0.1)
                same(y, e, "an assignment by an expression")
        knp._fusing.wait()
    states = {key[1]: found.state for key, found in knp._fusing._expressions.items() if type(key) is tuple and key[1] in ("scan", "select", "nonzero")}
    assert set(states.values()) == {"one kernel"} and len(states) == 3, states


def test_parts_computed_before_the_whole():
    """An expression of 23 arrays has more than 23 inputs after some of its parts were computed separately. 23 is the maximum of one kernel."""
    hosts, given = arrays(23, 50)
    for count in (1, 2, 5, 12):
        for mode in (True, "now"):
            with knp.fuse(mode):
                parts = [x + y for x, y in zip(given[:count], given[1:], strict=False)]
                whole, expected = given[0], hosts[0]
                for x, host in zip(given[1:], hosts[1:], strict=True):
                    whole, expected = whole + x, expected + host
                for i, part in enumerate(parts):
                    whole, expected = whole + part, expected + (hosts[i] + hosts[i + 1])
                for part in parts:
                    _kjit.compute(part)
                assert _kjit.is_pending(whole), (count, mode)
                same(whole, expected, (count, mode))


def test_part_computed_while_the_compiler_is_asked():
    """After 64 computations of small arrays kjit.numpy is asked to compile a C function. Meanwhile another thread can run."""
    x, enqueue, threads = knp.ones(50), knp._fusing._enqueue, []

    def ask(job):
        threads.append(threading.Thread(target=_kjit.compute, args=(part,)))
        threads[-1].start()
        threads[-1].join(0.2)
        return False

    knp._fusing.FUNCTIONS.clear()
    knp._fusing._enqueue = ask
    try:
        with knp.fuse("now"):
            for _ in range(150):
                part = x - 3
                same(part * 2, np.full(50, -4.0), "the whole")
    finally:
        knp._fusing._enqueue = enqueue
    for thread in threads:
        thread.join()
    assert len(threads) == 2, threads
    same(part, np.full(50, -2.0), "a part")


def test_operand_written_during_an_update():
    """While one thread computes x += y, another one writes to y, and a third one computes all arrays."""
    x, y, enqueue, errors = knp.zeros(50), knp.ones(50), knp._fusing._enqueue, []

    def run(call):
        try:
            call()
        except Exception as error:
            errors.append(error)

    def ask(job):
        calls = [_kjit.compute_all, lambda: y.fill(1.0)]
        threads.extend(threading.Thread(target=run, args=(call,)) for call in calls)
        for thread in threads[-2:]:
            thread.start()
        threads[-1].join(0.2)
        return False

    threads = []
    knp._fusing.FUNCTIONS.clear()
    knp._fusing._enqueue = ask
    try:
        for _ in range(150):
            x += y
    finally:
        knp._fusing._enqueue = enqueue
    for thread in threads:
        thread.join()
    assert threads and not errors, (threads, errors)
    same(x, np.full(50, 150.0), "the sum")


def test_exit_with_waiting_compilations():
    program = """
import atexit, time
begun = []
@atexit.register
def check():  # this handler is older than those of kjit, so it runs after them
    _fusing.wait()
    assert len(begun) <= 2, begun
    print(_fusing._enqueue(print), "done")
import kjit.numpy as knp
from kjit.numpy import _fusing
def job():  # ends at exit, whenever a busy machine comes to that
    begun.append(1)
    for _ in range(1000):
        if _fusing._is_leaving:
            break
        time.sleep(0.01)
for _ in range(8):
    _fusing._enqueue(job)
"""
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert answer.stdout == "False done\n" and not answer.returncode, answer


def test_environment():
    program = "import kjit.numpy as knp; from kjit import _kjit; print(_kjit.is_pending(knp.ones(3) + 1))"
    for word, expected in (("0", "False"), ("1", "True"), ("now", "True")):
        answer = subprocess.run([sys.executable, "-c", program], env={**os.environ, "KJIT_FUSE": word}, capture_output=True, text=True)
        assert answer.stdout.strip() == expected, (word, answer)
    answer = subprocess.run([sys.executable, "-c", program], env={**os.environ, "KJIT_FUSE": "maybe"}, capture_output=True, text=True)
    assert "KJIT_FUSE must be 0, 1 or now" in answer.stderr, answer


def test_decorators():
    """CuPy's forms of the decorator, and a mode that holds during the calls."""
    now = knp._fusing._mode

    @knp.fuse
    def plain(x, y):
        return x * y + 1

    @knp.fuse()
    def called(x, y):
        return x * y + 1

    @knp.fuse(kernel_name="named")
    def named(x, y):
        "Has a text."
        return x * y + 1

    @knp.fuse(False)
    def eager(x, y):
        return x * y + 1

    x = knp.arange(4.0)
    for function, is_pending in ((plain, True), (called, True), (named, True), (eager, False)):
        made = function(x, 2.0)
        assert _kjit.is_pending(made) == is_pending and made.tolist() == [1, 3, 5, 7], function
        assert knp._fusing._mode == now, function
    assert named.__name__ == "named" and named.__doc__ == "Has a text."
    try:
        knp.fuse()(3)
        raise AssertionError("3 was decorated")
    except TypeError as error:
        assert "a decorator takes a function" in str(error), error


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
    print("seed", seed)
