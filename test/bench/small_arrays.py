"""Reductions, products and element-wise operations of small arrays on the CPU: kjit.numpy beside NumPy, in alternation.

    python3 test/bench/small_arrays.py                          # 100, 1000 and 10000 elements of float32, float64 and int64
    python3 test/bench/small_arrays.py --only "sum;dot" --sizes 1000

A cell has the microseconds of a call of kjit, and its ratio to NumPy's time. Each time is the least of many: kjit and NumPy take turns of
some calls, so that a load on the machine affects both. The result of each function is compared with NumPy's first. The last line names the
worst ratio."""

import argparse
import os
import time

os.environ["KJIT_DEVICE"] = "cpu"

import kjit.numpy as knp  # noqa: E402
import numpy as np  # noqa: E402
from kjit import _kjit  # noqa: E402
from kjit.numpy import _fusing  # noqa: E402
from report import print_table, processor_name, say  # noqa: E402

# Each function takes a namespace, two vectors, and a square matrix.
FUNCTIONS = {
    "sum": lambda xp, x, y, m: xp.sum(x),
    "x.sum()": lambda xp, x, y, m: x.sum(),
    "mean": lambda xp, x, y, m: xp.mean(x),
    "max": lambda xp, x, y, m: xp.max(x),
    "min": lambda xp, x, y, m: xp.min(x),
    "argmax": lambda xp, x, y, m: xp.argmax(x),
    "argmin": lambda xp, x, y, m: xp.argmin(x),
    "any": lambda xp, x, y, m: xp.any(x),
    "all": lambda xp, x, y, m: xp.all(x),
    "prod": lambda xp, x, y, m: xp.prod(x),
    "std": lambda xp, x, y, m: xp.std(x),
    "var": lambda xp, x, y, m: xp.var(x),
    "cumsum": lambda xp, x, y, m: xp.cumsum(x),
    "sort": lambda xp, x, y, m: xp.sort(x),
    "dot": lambda xp, x, y, m: xp.dot(x, y),
    "x @ y": lambda xp, x, y, m: x @ y,
    "sum, axis 0": lambda xp, x, y, m: xp.sum(m, axis=0),
    "sum, axis 1": lambda xp, x, y, m: xp.sum(m, axis=1),
    "max, axis 0": lambda xp, x, y, m: xp.max(m, axis=0),
    "sum(x * y)": lambda xp, x, y, m: xp.sum(x * y),
    "x + y": lambda xp, x, y, m: x + y,
    "(x + y) * x - y * 2 + 1": lambda xp, x, y, m: (x + y) * x - y * 2 + 1,
}


def seconds_of(call, repetitions):
    start = time.perf_counter()
    for _ in range(repetitions):
        call()
    return (time.perf_counter() - start) / repetitions


def compare(function, size, dtype, rounds):
    """Returns the least seconds of a call of (kjit, NumPy)."""
    generator = np.random.default_rng(size)
    x = (generator.random(size) * 4 - 2).astype(dtype)
    y, side = x[::-1].copy(), int(size**0.5)
    m = x[: side * side].reshape(side, side).copy()
    own, compute = [knp.asarray(each) for each in (x, y, m)], _kjit.compute

    def kjits():
        made = function(knp, *own)
        compute(made)
        return made

    def numpys():
        return function(np, x, y, m)

    bound = 1e-3 if dtype == "float32" else 1e-9
    with np.errstate(all="ignore"):
        assert np.allclose(np.asarray(kjits()), numpys(), rtol=bound, atol=bound)
        for call in (kjits, kjits, kjits, numpys):  # the first calls compile on another thread
            seconds_of(call, 50)
            _fusing.wait()
        repetitions = max(10, 20000 // size)
        times = [(seconds_of(kjits, repetitions), seconds_of(numpys, repetitions)) for _ in range(rounds)]
    return min(a for a, _ in times), min(b for _, b in times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=list(FUNCTIONS), type=lambda text: text.split(";"), help="names separated by semicolons")
    parser.add_argument("--sizes", default="100,1000,10000")
    parser.add_argument("--types", default="float32,float64,int64")
    parser.add_argument("--rounds", type=int, default=60)
    options = parser.parse_args()
    names = [name for name in FUNCTIONS if name in options.only]
    sizes, types = [int(size) for size in options.sizes.split(",")], options.types.split(",")
    rows, worst = [], (0, "")
    for name in names:
        cells = [name]
        for dtype in types:
            for size in sizes:
                kjits, numpys = compare(FUNCTIONS[name], size, dtype, options.rounds)
                cells.append(f"{kjits * 1e6:.1f} ({kjits / numpys:.1f})")
                worst = max(worst, (kjits / numpys, f"{name}, {size} elements of {dtype}"))
        rows.append(cells)
        say(" | ".join(cells))
    columns = [f"{dtype} {size}" for dtype in types for size in sizes]
    print_table("Microseconds of a call of kjit.numpy (ratio to NumPy)", f"{processor_name()}, {os.cpu_count()} cores", ["function", *columns], rows)
    print(f"\nworst ratio: {worst[0]:.1f} ({worst[1]})")


if __name__ == "__main__":
    main()
