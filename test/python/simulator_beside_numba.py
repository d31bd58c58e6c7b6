# REQUIRES: numba, greenlet
# RUN: %numba-python %s
"""Random kernels in the simulator of kjit.cuda, in Numba's simulator, and on the CPU target: all three have the same results, bit for
bit. Each kernel uses barriers, shared and local arrays, atomics, votes and device functions. Then kernels in which one thread fails:
both simulators raise an exception of the same class, with the same text, block and thread. `simulator_beside_numba.py [SEED [COUNT]]`
draws other kernels.

All values are whole numbers below 2**53, so that float64 is exact in any order of additions."""
import json
import os
import random
import subprocess
import sys

JUDGES = {"Numba's simulator": {"NUMBA_ENABLE_CUDASIM": "1"}, "the simulator": {"KJIT_DEVICE": "python"}, "the CPU": {"KJIT_DEVICE": "cpu"}}
HEAD = '''
@cuda.jit(device=True)
def bounded(a):
    return float(math.floor(min(max(a, -64.0), 64.0)))

@cuda.jit(device=True)
def both(a, b):
    if a > b:
        return a - b, b
    return a + 2 * b, a

@cuda.jit
def kernel(r, q, x):
    s = cuda.shared.array((2, {block}), np.float64)
    m = cuda.local.array((2, 3), np.float64)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    v, w = x[i] * 1.0, 0.0
    for k in range(6):
        m[k // 3, k % 3] = k + v
    s[0, t] = x[i]
    s[1, t] = 1.0
    cuda.syncthreads()
'''


class Writer:
    """Writes a random kernel for blocks with `block` threads."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.block = self.random.choice([1, 2, 7, 31, 32, 33, 64])
        self.depth, self.lines = 1, []

    def add(self, text):
        self.lines.append("    " * self.depth + text)

    def value(self, depth=2):
        draw = self.random
        if depth == 0 or draw.random() < 0.2:
            shift = draw.randrange(self.block)
            leaves = ["v", "w", "x[i]", "i", "t", "2", "3.0", f"m[{draw.randrange(2)}, {draw.randrange(3)}]", "s[0, t]",
                      f"s[{draw.randrange(2)}, (t + {shift}) % {self.block}]", "cuda.blockIdx.x", "cuda.blockDim.x", "len(x)"]
            return draw.choice(leaves)
        a, b = self.value(depth - 1), self.value(depth - 1)
        forms = ["({a} + {b})", "({a} - {b})", "({a} * {b})", "min({a}, {b})", "max({a}, {b})", "abs({a})", "both({a}, {b})[0]",
                 "({a} if {a} > {b} else {b})", "float({a} < {b} <= 9)", "bounded({a} if not {b} > 0 else 1.0)"]
        return draw.choice(forms).format(a=a, b=b)

    def share(self):
        """A value in shared memory: all threads read it before one thread writes it, and that thread writes it before
        another one reads it."""
        self.add(f"old = bounded({self.value()})")
        self.add("cuda.syncthreads()")
        self.add(f"s[{self.random.randrange(2)}, t] = old")
        self.add("cuda.syncthreads()")

    def loop(self):
        draw = self.random
        if draw.random() < 0.5:
            self.add(f"for k in range({draw.randrange(1, 5)}):")
        else:
            self.add(f"k = {draw.randrange(1, 5)}")
            self.add("while k > 0:")
        self.depth += 1
        if "while" in self.lines[-1]:
            self.add("k -= 1")
        self.add(f"w = bounded(w + {self.value(1)} * k)")
        if draw.random() < 0.5:
            self.share()
        self.depth -= 1

    def branch(self):
        self.add(f"if {self.value(1)} > {self.value(1)}:")
        self.lines.append("    " * (self.depth + 1) + f"v = bounded({self.value()})")
        self.add("else:")
        self.lines.append("    " * (self.depth + 1) + f"v, w = w, both({self.value(1)}, 2.0)[1]")
        self.add("w = bounded(w)")

    def statement(self):
        kind = self.random.choice("assign share loop branch atomic local vote".split())
        if kind in ("share", "loop", "branch"):
            return getattr(self, kind)()
        if kind == "assign":
            self.add(f"v = bounded({self.value()})")
        elif kind == "atomic":
            self.add(f"cuda.atomic.add(r, {self.random.choice(['t % 3', '0', 'r.size - 1', '(i % 4,)'])}, bounded({self.value(1)}))")
        elif kind == "local":
            self.add(f"m[{self.random.randrange(2)}, t % 3] = bounded({self.value()})")
        else:
            word = self.random.choice(["syncthreads_count", "syncthreads_and", "syncthreads_or"])
            self.add(f"w = float(cuda.{word}({self.value(1)} > 1))")

    def text(self):
        for _ in range(self.random.randrange(4, 10)):
            self.statement()
        self.add("q[i] = v + w * 3 + m[0, 1] + m[1, 2]")
        return HEAD.format(block=self.block) + "\n".join(self.lines) + "\n"


# Statements that one thread of the grid runs, in the block (1, 0, 0) as the thread (3, 0, 0).
FAILING = [
    "r[40] = 1", "r[-41] = 1", "r[0, 0] = 1", "x[16]", "raise ValueError('a text')", "raise KeyError(5)", "assert w > 1, 'too small'",
    "assert w > 1", "r[0] = missing", "r[0] = w.missing", "both(1.0)", "r[0] = late\n        late = 1", "s = cuda.shared.array(4, np.float64)\n        s[4] = 1",
    "m = cuda.local.array((2, 2), np.float64)\n        m[1, 2] = 1", "r[0] = 'text'", "r[1.5] = 1", "a, b = (1, 2, 3)", "a, b, c = (1, 2)", "raise Own('own', 2)",
    "cuda.atomic.add(r, 40, 1)", "for k in 5:\n            pass", "x[0]()", "math.sqrt('a')", "w.missing = 1", "raise RuntimeError",
]
FAILING_HEAD = HEAD.partition("@cuda.jit\ndef kernel")[0] + '''
class Own(Exception):
    pass

@cuda.jit
def kernel(r, q, x):
    w = 0.0
    if cuda.grid(1) == 11:
        '''


def run(programs):
    """The child process of a judge: a line for each program, with its results or its exception."""
    import linecache
    import math

    import numpy as np

    if os.environ.get("NUMBA_ENABLE_CUDASIM"):
        from numba import cuda
    else:
        from kjit import cuda
    for number, (text, grid, block) in enumerate(programs):
        file = f"<kernel {number}>"
        linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
        names = {"cuda": cuda, "np": np, "math": math, "__name__": "program"}
        exec(compile(text, file, "exec"), names)
        x = np.random.default_rng(number).integers(-20, 20, grid * block).astype(np.float64)
        r, q = np.zeros(8), np.zeros(grid * block)
        try:
            names["kernel"][grid, block](r, q, x)
            told = r.tolist(), q.tolist()
        except Exception as error:
            # Numba's simulator computes with Python numbers, and quotes the text of a KeyError.
            text = str(error).splitlines()[-1].replace("numpy.int64", "int").replace("numpy.float64", "float").strip("'")
            told = type(error).__name__, [kind.__name__ for kind in type(error).__mro__], text
        print(json.dumps(told), flush=True)


def ask(judge, programs):
    """Returns the results of each program, or its exception."""
    environment = {name: value for name, value in os.environ.items() if name not in ("KJIT_DEVICE", "NUMBA_ENABLE_CUDASIM")} | JUDGES[judge]
    done = subprocess.run([sys.executable, __file__, "--child"], input=json.dumps(programs), capture_output=True, text=True, env=environment)
    told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    if done.returncode or len(told) != len(programs):
        sys.exit(f"{judge}: status {done.returncode}, {len(told)} of {len(programs)} programs\n{done.stdout}{done.stderr}")
    return told


def compare_kernels(seed, count):
    programs = []
    for number in range(count):
        writer = Writer(seed + number)
        programs.append((writer.text(), writer.random.randrange(1, 4), writer.block))
    found = {judge: ask(judge, programs) for judge in JUDGES}
    failures = 0
    for at, (text, *extents) in enumerate(programs):
        told = {judge: results[at] for judge, results in found.items()}
        if len({json.dumps(one) for one in told.values()}) > 1 or not isinstance(told["the CPU"][0], list):
            failures += 1
            print(f"seed {seed + at}, configuration {extents}{text}", *(f"{judge}: {one}" for judge, one in told.items()), sep="\n")
    return failures


def compare_exceptions():
    programs = [(FAILING_HEAD + statement + "\n", 2, 8) for statement in FAILING]
    wanted, found = (ask(judge, programs) for judge in ("Numba's simulator", "the simulator"))
    failures = 0
    for statement, want, got in zip(FAILING, wanted, found):
        if len(want) != 3 or len(got) != 3 or want[0] not in got[1] or want[2] != got[2]:
            failures += 1
            print(f"{statement}\n    Numba's simulator: {want}\n    the simulator: {got}")
    return failures


def main():
    import seeds  # not in the processes of the judges

    seed = int(sys.argv[1]) if len(sys.argv) > 1 else seeds.seed
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 15
    failures = compare_kernels(seed, count) + compare_exceptions()
    print(f"{count} random kernels, seed {seed}, and {len(FAILING)} failing kernels: {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--child"]:
        run(json.load(sys.stdin))
    else:
        sys.exit(main())
