"""First calls of compiled functions in new processes, on the CPU: with an empty disk cache, and with the code in the disk cache.
Prints the processor time of the call in ms, the minimum of ROUNDS processes, without the import of kjit. The call includes the
translation of the Python source. Python has the bytecode of the package, as after an installation by pip.

    PYTHONPATH=build/release/python python3 test/bench/first_functions.py [ROUNDS]"""
import os
import subprocess
import sys
import tempfile

PROGRAM = """
import sys, time
import numpy as np
import kjit

@kjit.njit
def total(x):
    s = 0.0
    for v in x: s += v * v
    return s

@kjit.njit
def pair(a, b): return a + b, a * b

@kjit.njit
def array(x): return np.abs(x) * 2 + x * x

@kjit.njit
def one(v): return v + 1

@kjit.vectorize
def product(a, b): return a * b + 1

@kjit.guvectorize("float64[:], float64[:]", "(n)->()")
def sums(x, r):
    s = 0.0
    for v in x: s += v
    r[0] = s

x = np.arange(1000.0)
calls = {"total": lambda: total(x), "pair": lambda: pair(1, 2.5), "array": lambda: array(x), "product": lambda: product(x, x), "sums": lambda: sums(x.reshape(10, 100))}
one(1.0)  # the first call of a process also creates the context
start = time.process_time()
calls[sys.argv[1]]()
print((time.process_time() - start) * 1000)
"""


def run(name, folder, bytecode):
    environment = os.environ | {"XDG_CACHE_HOME": folder, "KJIT_DEVICE": "cpu", "PYTHONPYCACHEPREFIX": bytecode}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write(PROGRAM)
        file.flush()
        command = [sys.executable, file.name, name]
        return float(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)


rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 10
print(f"{'call':10}{'compiled':>12}{'from disk':>12}")
with tempfile.TemporaryDirectory() as bytecode:
    for name in "total", "pair", "array", "product", "sums":
        compiled, loaded = [], []
        run(name, bytecode, bytecode)  # writes the bytecode
        for _ in range(rounds):
            with tempfile.TemporaryDirectory() as folder:
                compiled.append(run(name, folder, bytecode))
                loaded.append(run(name, folder, bytecode))
        print(f"{name:10}{min(compiled):12.2f}{min(loaded):12.2f}")
