"""The host's time of daily calls on small arrays of a GPU: kjit.numpy beside CuPy and PyTorch, where they are installed, in one run.

    PYTHONPATH=build/release/python python3 test/bench/small_arrays_gpu.py

The arrays have 1000 elements of float32. A cell has the microseconds of a call, the least of many. kjit records operations, so that the rows
with "computed" also ask for the address of the result, which launches the kernel. The results are compared first."""
import importlib
import sys
import time

import numpy as np
from report import print_table, processor_name

import kjit
import kjit.numpy as knp

COUNT, ROUNDS, SECONDS_TO_COMPILE = 1000, 2000, 2.0


def five(x, y, z):
    return x * y + z - x * 0.5 + 1


ROWS = {
    "`x[3]`": lambda x, y, z, add: x[3],
    "`float(x[3])`": lambda x, y, z, add: float(x[3]),
    "`x[3:5]`": lambda x, y, z, add: x[3:5],
    "`x + y`, computed": lambda x, y, z, add: x + y,
    "`x * y + z - x * 0.5 + 1`, computed": lambda x, y, z, add: five(x, y, z),
    "`sum(x)`, computed": lambda x, y, z, add: add(x),
    "`float(sum(x))`": lambda x, y, z, add: float(add(x)),
}


def least(call, wait):
    """Returns the minimum time in us. While the first calls run, kjit compiles the code of a repeated expression."""
    end = time.perf_counter() + SECONDS_TO_COMPILE
    while time.perf_counter() < end:
        call()
    best = float("inf")
    for number in range(ROUNDS):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
        if number % 50 == 49:
            wait()
    return 1e6 * best


def libraries():
    """Returns {name: (array creation from a host array, sum, launch of recorded operations, wait, copy to the
    host)}."""
    found = {"kjit": (lambda host: knp.asarray(host, device="cuda:0"), knp.sum, lambda r: r.__cuda_array_interface__, kjit.synchronize, lambda r: r.to_host())}
    for name in ("cupy", "torch"):
        try:
            module = importlib.import_module(name)
        except ImportError:
            print(f"without {name}", file=sys.stderr)
            continue
        if name == "cupy":
            found[name] = (module.asarray, module.sum, lambda r: r, module.cuda.Device().synchronize, lambda r: r.get())
        else:
            found[name] = (lambda host, module=module: module.from_numpy(host).cuda(), module.sum, lambda r: r, module.cuda.synchronize, lambda r: r.cpu().numpy())
    return found


def main():
    host = [np.random.default_rng(n).random(COUNT, "f4") for n in range(3)]
    known = libraries()
    table = []
    for name, row in ROWS.items():
        want = row(*host, np.sum)
        cells = [name]
        for make, add, launch, wait, back in known.values():
            arrays = [make(x) for x in host]

            def call(row=row, arrays=arrays, add=add, launch=launch, name=name):
                made = row(*arrays, add)
                return launch(made) if name.endswith("computed") else made

            made = row(*arrays, add)
            np.testing.assert_allclose(made if isinstance(made, float) else back(made), want, rtol=1e-5)
            cells.append(f"{least(call, wait):.2f}")
        table.append(cells)
    print_table("Small arrays of a GPU, us", processor_name(), ["call", *known], table)


if __name__ == "__main__":
    main()
