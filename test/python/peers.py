# REQUIRES: cuda
# RUN: %kjit-python %s
"""CuPy and PyTorch arrays, if these libraries are installed, in kernels on a GPU. The results equal those of the
library. kjit's work runs after the work that is queued on the library's current stream and before later work. No memory
is leaked."""
import os
import sys
import threading

import kjit
import numpy as np
import seeds

os.environ["KJIT_DEVICE"] = "cuda"
random = seeds.fresh_generator()
N = 1 << 20


@kjit.jit
def axpy(r, a, x, y):
    for i in kjit.grid_range(len(r)):
        r[i] = a * x[i] + y[i]


@kjit.jit
def scale(m, n):
    for i, j in kjit.grid_range(m.shape):
        m[i, j] = m[i, j] * n + i - j


def expected(m, n):
    i, j = np.indices(m.shape)
    return m * n + i - j


def installed(name):
    try:
        return __import__(name)
    except ImportError:
        print(f"peers: no {name}", file=sys.stderr)


cupy = installed("cupy")
if cupy:
    for kind in ("f4", "f8", "i4", "i8", "u1", "f2", "c8"):
        host = [(random.uniform(-3, 3, 1000) * 4).astype(kind) for _ in range(2)]
        r, x, y = cupy.zeros(1000, kind), *map(cupy.asarray, host)
        axpy(r, 2, x, y)
        np.testing.assert_array_equal(r.get(), cupy.asnumpy(2 * x + y))
    whole = random.standard_normal((64, 96))
    for view in (lambda m: m, lambda m: m[::2, 1::3], lambda m: m.T, lambda m: m[::-1, 5:], lambda m: m[3:9], lambda m: m[:0], lambda m: m[5:6, 7:8]):
        m = cupy.asarray(whole)
        scale(view(m), 3)
        want = whole.copy()
        view(want)[:] = expected(view(want), 3)
        np.testing.assert_allclose(m.get(), want, rtol=1e-13, atol=1e-12)
    r = cupy.zeros(12)
    r.shape = (3, 4)
    scale(r, 1)
    r.shape = (12,)
    axpy(r, 0, r, r)
    np.testing.assert_array_equal(r.get(), expected(np.zeros((3, 4)), 1).ravel())
    # kjit's work runs after the work that CuPy has queued on its stream, and before the work that CuPy queues next.
    for stream in (cupy.cuda.Stream.null, cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream.ptds):
        with stream:
            x = cupy.random.standard_normal(N)
            for step in range(50):
                y = cupy.full(N, float(step))
                r = cupy.empty(N)
                y += x * 2
                axpy(r, 3, x, y)
                r -= 5 * x
                assert bool((abs(r - step) < 1e-9).all()), step
            stream.synchronize()
    axpy[None, None, cupy.cuda.Stream(non_blocking=True)](r, 1, r, r)
    cupy.cuda.Device().synchronize()

torch = installed("torch")
if torch:
    for stream in (torch.cuda.default_stream(), torch.cuda.Stream()):
        with torch.cuda.stream(stream):
            x = torch.randn(N, device="cuda", dtype=torch.float64)
            for step in range(50):
                y = torch.full_like(x, step)
                r = torch.empty_like(x)
                y += x * 2
                axpy(r, 3, x, y)
                r -= 5 * x
                assert bool(((r - step).abs() < 1e-9).all()), step
if cupy and torch:  # streams of two libraries
    with cupy.cuda.Stream(non_blocking=True), torch.cuda.stream(torch.cuda.Stream()):
        for step in range(50):
            x, y = torch.full((N,), float(step), device="cuda"), cupy.full(N, 2.0, "f4")
            r = cupy.empty(N, "f4")
            axpy(r, 3, x, y)
            y.fill(0)
            x.zero_()
            assert bool((r == 3 * step + 2).all()), step

# Eight threads on eight streams make a million launches. The memory use of the process and of the device must not grow.
place = kjit.device("cuda:0")
streams = [place.stream(non_blocking=True) for _ in range(8)]
problems = []


def many(number, count):
    try:
        r, x, y = (kjit.array(np.full(1000, k, "f4"), device="cuda") for k in (0, number, 1))
        bound = axpy[4, 256, streams[number]]
        for k in range(count):
            bound(r, float(k % 7), x, y)
        streams[number].synchronize()
        assert (r.to_host() == (count - 1) % 7 * number + 1).all()
    except BaseException as error:
        problems.append(error)


def from_threads(count):
    threads = [threading.Thread(target=many, args=(n, count)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems, problems[0]


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def memory():
    return resident_bytes(), cupy.cuda.runtime.memGetInfo()[0] if cupy else 0


def growth(count):
    """The bytes of the process and of the GPU that remain in use after launches."""
    before = memory()
    from_threads(count)
    after = memory()
    return after[0] - before[0], before[1] - after[1]


# Other processes use the memory of the GPU as well, so only one of several measurements must show no growth.
from_threads(5000)
found = []
while len(found) < 4 and not any(max(grown) < 4 << 20 for grown in found):
    found.append(growth(125_000))
assert max(found[-1]) < 4 << 20, found
print("peers: good", file=sys.stderr)
