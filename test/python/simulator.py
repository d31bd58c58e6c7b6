# REQUIRES: greenlet
# RUN: %kjit-python %s 20261129 30
"""Compares the simulator with the CPU target: random kernels have the same results in both, bit for bit, in one
process. Then what only a simulator has: a debugger that stops in a line of a kernel, the thread and the block of an
exception, threads that wait for each other forever. `simulator.py [SEED [COUNT]]` draws other kernels."""
import os
import random
import subprocess
import sys
import tempfile
import textwrap

os.environ["KJIT_DEVICE"] = "cpu"
import numpy as np
import seeds
from kjit import cuda

seed = int(sys.argv[1]) if len(sys.argv) > 1 else seeds.seed
count = int(sys.argv[2]) if len(sys.argv) > 2 else 60
random.seed(seed)
rng = np.random.default_rng(seed)
THREADS = 32
INTEGERS = [np.dtype(t) for t in "i1 i2 i4 i8 u1 u2 u4 u8".split()]
TYPES = [*INTEGERS, *map(np.dtype, "? f4 f8".split())]
failures = 0


def fail(text):
    global failures
    failures += 1
    print(text)


# ---- random kernels ----


def operand(names):
    return random.choice([*names, *names, str(random.choice([0, 1, 2, 3, 7, -5, 1000])), random.choice(["0.5", "2.5", "-1.25"])])


def expression(names, depth, is_integer):
    """Returns an expression as text. is_integer: uses only integers, which & and << require."""
    if depth == 0:
        return random.choice([*names, str(random.choice([1, 2, 3, 7, 1000]))]) if is_integer else operand(names)
    inner = [expression(names, depth - 1, is_integer) for _ in range(2)]
    if is_integer and random.random() < 0.4:
        return random.choice([f"({inner[0]} {random.choice('&|^')} {inner[1]})", f"({inner[0]} << 3)", f"({inner[0]} >> 2)", f"~{inner[0]}"])
    kind = random.choice("binary binary binary choice compare unary call".split())
    if kind == "binary":
        return f"({inner[0]} {random.choice('+-*')} {inner[1]})"
    if kind == "choice":
        return f"({inner[0]} if {inner[1]} > 3 else {inner[0]})"
    if kind == "compare":
        return f"({inner[0]} {random.choice(['<', '<=', '==', '!='])} {inner[1]})"
    if kind == "unary":
        return f"(-{inner[0]})"
    if is_integer:
        return f"abs({inner[0]})"
    return random.choice([f"min({inner[0]}, {inner[1]})", f"max({inner[0]}, {inner[1]})", f"math.sqrt(abs({inner[0]}) + 1.0)", f"math.floor(0.25 * {inner[0]})",
                          f"helper({inner[0]}, {inner[1]})", f"float32({inner[0]})", f"math.atan({inner[0]} * 0.5)"])


# Statements in which the threads of a block cooperate. v is a value of each thread, which they change.
TOGETHER = [
    "s[t] = v; cuda.syncthreads(); v = v + s[(t + 1) % 32]; cuda.syncthreads()",
    "v = v + cuda.shfl_down_sync(0xffffffff, v, 1)",
    "v = v + cuda.shfl_xor_sync(0xffffffff, v, 4)",
    "v = v + cuda.shfl_up_sync(0xffffffff, v, 3) * 2",
    "v = v + cuda.shfl_sync(0xffffffff, v, 7)",
    "v = v + cuda.syncthreads_count(v > 3)",
    "v = v + (1 if cuda.any_sync(0xffffffff, v > 100) else 2)",
    "v = v + cuda.popc(cuda.ballot_sync(0xffffffff, v > 3))",
    "v = v + cuda.syncthreads_and(v > 3) * 2 - cuda.syncthreads_or(v > 50)",
    "v = v + (1 if cuda.all_sync(0xffffffff, v > 3) else 2) + (3 if cuda.eq_sync(0xffffffff, v > 3) else 4)",
    "v = v + cuda.popc(cuda.match_any_sync(0xffffffff, t // 5))",
    "m, e = cuda.match_all_sync(0xffffffff, t // 64); v = v + (cuda.popc(m) if e else 7)",
    "v = v + cuda.popc(cuda.lanemask_lt())",
    "g[i] = v; cuda.cg.this_grid().sync(); v = v + g[(i + 32) % 64]; cuda.cg.this_grid().sync()",
    "cuda.atomic.add(q, t % 4, np.int64(v) % 1000)",
    "cuda.atomic.sub(q, 4, np.int64(v) % 100)",
    "cuda.atomic.max(q, 6 + t % 3, np.int64(v) % 1000)",
    "cuda.atomic.min(q, 9, -(np.int64(v) % 1000))",
    "cuda.atomic.and_(q, 10, np.int64(v)); cuda.atomic.or_(q, 11, np.int64(v)); cuda.atomic.xor(q, 12, np.int64(v))",
    # Elements of p and of x are NaN. Each operation has elements of its own, so that the results do not depend on the order of the threads.
    *(f"cuda.atomic.{name}(p, {4 * k} + t % 4, np.float64(x[i]))" for k, name in enumerate(("max", "min", "nanmax", "nanmin"))),
    "cuda.atomic.inc(u, t % 2, 9); cuda.atomic.dec(u, 2, 7)",
    "cuda.atomic.cas(q, 13 + t % 2, 0, t % 2 + 5)",
    "if t % 2 == 0:\n    cuda.atomic.add(q, 5, 1)\ncuda.syncthreads()",
    "k = 0\nwhile k < t % 5:\n    v = v + k\n    k += 1",
    "for j in range(3):\n    if j == t % 3:\n        continue\n    v += j * 2",
    "w[0] = v; w[1] = w[0] + 1; v = w[1]",
    "c[i] += 1; c[i] *= 3; v = v + c[i]",
]


def kernel(statement=None):
    """Returns a kernel and the types of its arrays. statement: a row of TOGETHER with which the kernel reads float64
    elements, or None for random statements."""
    is_integer = statement is None and random.random() < 0.5
    x, y = (random.choice(INTEGERS if is_integer else TYPES) if statement is None else np.dtype("f8") for _ in range(2))
    result = random.choice([x, y, np.dtype("i8" if is_integer else "f8")])
    depth = random.choice([1, 2, 3])
    first = expression(["x[i]", "y[i]", "n"], depth, is_integer)
    is_alone = statement is None and random.random() < 0.5
    lines = ["i = cuda.grid(1)", "t = cuda.threadIdx.x"]
    if is_alone:
        lines += [f"r[i] = {first}"]
    else:
        kind = "np.int64" if is_integer else "np.float64"
        lines += [f"s = cuda.shared.array(32, {kind})", f"w = cuda.local.array(2, {kind})", f"v = {kind}(x[i] % 50 if x[i] == x[i] else 1) + y[i] * 0"]
        chosen = [statement] if statement is not None else random.choices(TOGETHER, k=random.randrange(1, 5))
        lines += [line for one in chosen for part in one.split("; ") for line in part.split("\n")]
        lines += ["r[i] = v"]
    body = textwrap.indent("\n".join(lines), "    ")
    text = f"def kernel(r, x, y, n, q, c, p, u, g):\n{body}\n"
    return text, (x, y, result)


def values(dtype):
    if dtype.kind == "b":
        return rng.random(2 * THREADS) < 0.5
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        made = rng.integers(0, min(limits.max, 100), 2 * THREADS, dtype=dtype)
        made[rng.random(2 * THREADS) < 0.1] = limits.max
        return made
    return rng.choice(np.array([0.0, 1.0, -1.5, 2.5, 3.75, -7.0, 100.125, np.nan], dtype), 2 * THREADS)


HEAD = """
import math
import numpy as np
from kjit import cuda
from kjit.cuda import float32

@cuda.jit(device=True)
def helper(a, b):
    if a > b:
        return a * 2 - b
    return b * 3 + a

"""


def run(text, dtypes, simulated):
    x, y, result = dtypes
    arguments = [np.zeros(2 * THREADS, result), values(x), values(y), random.randrange(1, 9), np.zeros(15, np.int64), np.ones(2 * THREADS, np.int64),
                 np.array(4 * [0.0, np.nan, 3.0, np.nan]), np.zeros(3, np.uint32), np.zeros(2 * THREADS)]
    arguments[4][10] = -1
    space = {}
    exec(compile(HEAD + text, f"<kernel {simulated}>", "exec"), space)
    cuda.config.ENABLE_CUDASIM = int(simulated)
    try:
        with np.errstate(all="ignore"):
            cuda.jit(space["kernel"], opt=False)[2, THREADS](*arguments)  # does not fuse products and sums
    finally:
        cuda.config.ENABLE_CUDASIM = 0
    return arguments


def compare_random():
    global rng
    ran = 0
    for number in range(len(TOGETHER) + count):
        text, dtypes = kernel(TOGETHER[number] if number < len(TOGETHER) else None)
        state, drawn = random.getstate(), number + seed
        found = []
        for simulated in (False, True):
            random.setstate(state)
            rng = np.random.default_rng(drawn)
            try:
                found.append(run(text, dtypes, simulated))
            except Exception as error:
                found.append(error)
        if isinstance(found[0], Exception):
            if number >= len(TOGETHER) and (isinstance(found[1], Exception) or "shifts" in str(found[0])):
                continue
            fail(f"{text}{[str(d) for d in dtypes]}: only the CPU target fails: {found[0]}")
            continue
        ran += 1
        if isinstance(found[1], Exception):
            fail(f"{text}{[str(d) for d in dtypes]}: only the simulator fails: {type(found[1]).__name__}: {found[1]}")
            continue
        for name, a, b in zip("r x y n q c p u g".split(), *found):
            if not np.array_equal(a, b, equal_nan=np.asarray(a).dtype.kind == "f"):
                fail(f"{text}{[str(d) for d in dtypes]}: {name} is {a} on the CPU target, {b} in the simulator")
                break
    assert ran > len(TOGETHER) + count // 3, ran
    return ran


# ---- features that only a simulator has ----

DEBUGGED = '''
import numpy as np
from kjit import cuda

@cuda.jit(device=True)
def square(v):
    w = v * v
    return w

@cuda.jit
def kernel(r, x):
    s = cuda.shared.array(4, dtype=np.float64)
    i = cuda.grid(1)
    s[i] = square(x[i])
    cuda.syncthreads()
    if i == 2:
        breakpoint()
    r[i] = s[3 - i]

r = np.zeros(4)
kernel[1, 4](r, np.arange(4.0))
print(r)
'''


def program(text, commands="", **environment):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "program.py")
        with open(path, "w") as file:
            file.write(text)
        environment = {**os.environ, "KJIT_DEVICE": "python", **environment}
        done = subprocess.run([sys.executable, path], input=commands, capture_output=True, text=True, env=environment, check=False)
        return done.stdout + done.stderr


def expect(name, found, *wanted):
    for text in wanted:
        if text not in found:
            fail(f"{name}: {text!r} is not in\n{found}")


def check_debugger():
    found = program(DEBUGGED, "p int(i), s.tolist()\nn\nw\nc\n")
    expect("pdb", found, "-> r[i] = s[3 - i]", "(2, [0.0, 1.0, 4.0, 9.0])", "program.py(18)kernel()", "[9. 4. 1. 0.]")
    found = program(DEBUGGED, "c\n", KJIT_DEVICE="cpu", NUMBA_ENABLE_CUDASIM="1")
    expect("NUMBA_ENABLE_CUDASIM", found, "-> r[i] = s[3 - i]", "[9. 4. 1. 0.]")


KERNELS = '''
import sys
import numpy as np
import kjit
from kjit import cuda

@cuda.jit
def outside(r):
    i = cuda.grid(1)
    r[i] = 1

@cuda.jit
def raising(r):
    if cuda.grid(1) == 5:
        raise ValueError("the fifth", 5)

@cuda.jit
def waiting(r):
    if cuda.threadIdx.x < 5:
        cuda.syncthreads()
    else:
        cuda.syncwarp()

@cuda.jit
def spinning(r):
    i = cuda.threadIdx.x
    if i == 0:
        while r[1] == 0:
            pass
        r[0] = 7
    else:
        r[1] = 1

@cuda.jit
def some_wait(r):
    i = cuda.grid(1)
    if i % 3 == 1:
        return
    if i % 3 == 0:
        cuda.syncthreads()
    k = 0
    while k < 200:  # other threads run meanwhile
        k += 1
    r[i] = 100 * (cuda.blockIdx.x + 1) + cuda.threadIdx.x if cuda.laneid == cuda.threadIdx.x else -1

number = 5

@cuda.jit
def captured(r):
    match int(r[0]):
        case number:
            r[1] = number + 2 * 3

@cuda.jit
def whole_grid(r):
    i = cuda.grid(1)
    r[i] = i
    grid = cuda.cg.this_grid()
    grid.sync()
    v = r[(i + 4) % r.size] * 100
    grid.sync()
    r[i] += v

@cuda.jit
def own_shared(r):
    s = cuda.shared.array(0, np.float32)
    s[cuda.threadIdx.x] = cuda.threadIdx.x
    cuda.syncthreads()
    r[cuda.threadIdx.x] = s[7 - cuda.threadIdx.x] + s.size

@cuda.jit
def records(p):
    q = p[cuda.grid(1)]
    q.x += 2.5
    q["n"] *= 3

@cuda.jit
def with_words(r):
    r[0] = kjit.popc(r[1])

@cuda.jit
def dividing(r):
    r[0] = 1 // r[1]

class Own(Exception):
    pass

@cuda.jit(debug=True, opt=False)
def own_exception(r):
    i = cuda.grid(1)
    if i == 3:
        raise Own("too large", 7)

@cuda.jit
def no_file(r):
    raise FileNotFoundError(2, "no such file", "x.txt")

@cuda.jit
def in_slot(r):
    error = Slotted("text")
    error.detail = 41
    raise error

class Slotted(Exception):
    __slots__ = ("detail",)

@cuda.jit
def whole(r):
    kjit.sort(r)

@cuda.jit
def small_float(r):
    r[0] = np.float32(cuda.fp8.fp8_e4m3(r[1]))

@cuda.jit
def generator(r):
    r[0] = 1
    yield

@cuda.jit
def placed(r, part):
    a = cuda.local.array(3, np.uint8, alignment=256)
    s = cuda.shared.array(5, np.float32, alignment=512)
    t = cuda.shared.array(2, POINT)
    v = cuda.float32x1(2.5)
    t[0] = part[1]
    r[0] = a.ctypes.data % 256 + s.ctypes.data % 512
    r[1] = v.x * 2 + t[0].n + t[0].place[1]

@cuda.jit
def returning(r):
    r[0] = 1
    return r[0]

@cuda.jit
def wrong_extent(r):
    s = cuda.shared.array(-1, np.float32)

@cuda.jit
def wrong_alignment(r):
    s = cuda.shared.array(5, np.float32, alignment=24)

POINT = cuda.types.from_dtype(np.dtype([("n", "i4"), ("place", "f4", 2)]))

def main(name):
    if name == "plain":
        p = cuda.to_device(np.array([(1, 2), (3, 4)], np.dtype([("x", "f8"), ("n", "i4")], align=True)))
        records[1, 2](p)
        print(p.copy_to_host().tolist())
        d = cuda.to_device(np.zeros(8, np.int64))
        outside[1, 8](d[::-1])
        print(d.copy_to_host().tolist())
        print(cuda.config.ENABLE_CUDASIM)
        return
    if name == "attributes":
        for kernel in (no_file, in_slot):
            try:
                kernel[1, 1](np.zeros(1))
            except Exception as error:
                print(isinstance(error, FileNotFoundError), getattr(error, "errno", None), getattr(error, "filename", None), getattr(error, "detail", None))
        return
    if name == "placed":
        r, part = np.zeros(2), np.zeros(2, [("n", "i4"), ("place", "f4", 2)])
        part[1] = 3, (1, 20)
        placed[1, 1](r, part)
        print(r.tolist(), cuda.device_array(3, POINT).dtype)
        return
    if name == "captured":
        from kjit import _kjit
        kjit.keep_sources()
        r, kept = np.array([3, 0]), len(_kjit.recorded_sources())
        captured[1, 1](r)
        print(r.tolist(), len(_kjit.recorded_sources()) - kept)
        return
    if name == "waits":
        r = np.zeros(2, np.int64)
        spinning[1, 2](r)
        g = np.zeros(8, np.int64)
        whole_grid[2, 4](g)
        s = np.zeros(8)
        own_shared[1, 8, 0, 32](s)
        w = np.zeros(16, np.int64)
        some_wait[2, 8](w)
        print(r.tolist(), g.tolist(), s.tolist(), w.tolist())
        return
    try:
        kernel = cuda.jit(dividing.py_func, debug=True, opt=False) if name == "dividing" else globals()[name]
        kernel[2, 8](np.zeros(10, np.int64))
    except Exception as error:
        print(type(error).__name__, error.args, getattr(error, "thread", None), getattr(error, "block", None), isinstance(error, ZeroDivisionError))
        print(isinstance(error, kjit.KernelError), repr(str(error).splitlines()[-1]), error.line is not None,
              all(type(value).__module__ == "builtins" for value in error.args))
        raise

main(sys.argv[1] if len(sys.argv) > 1 else "@")
'''


def run_kernels(name, **environment):
    return program(KERNELS.replace('sys.argv[1] if len(sys.argv) > 1 else "@"', repr(name)), **environment)


def check_kernels():
    expect("plain", run_kernels("plain"), "[(3.5, 6), (5.5, 12)]", "[1, 1, 1, 1, 1, 1, 1, 1]")
    expect("index", run_kernels("outside"), "IndexError", "(2, 0, 0) (1, 0, 0)", "r[i] = 1")
    expect("exception", run_kernels("raising"), "ValueError ('the fifth', 5) (5, 0, 0) (0, 0, 0)")
    expect("attributes", run_kernels("attributes"), "True 2 x.txt None\nFalse None None 41\n")
    expect("whole arrays", run_kernels("whole"), "NotImplementedError", "kjit.sort() works on whole arrays and is called outside of kernels")
    expect("8-bit floats", run_kernels("small_float"), "NotImplementedError", "cuda.fp8.fp8_e4m3: a float of 8 bits is not simulated")
    expect("generator", run_kernels("generator"), "SourceError", "a kernel cannot yield values: write to an array")
    expect("placed", run_kernels("placed"), "[0.0, 28.0] [('n', '<i4'), ('place', '<f4', (2,))]")
    expect("wrong alignment", run_kernels("wrong_alignment"), "ValueError", "Alignment must be a positive power of two, not 24")
    for device in ("python", "cpu"):
        expect(f"returning, {device}", run_kernels("returning", KJIT_DEVICE=device), "TypeError", "CUDA kernel must have void return type")
    expect("wrong extent", run_kernels("wrong_extent"), "ValueError", "negative dimensions are not allowed\nIn function 'wrong_extent', file ", "program.py, line 137")
    # The exception has the same classes and arguments, and names the thread, as in a compiled kernel.
    for device in ("python", "cpu"):
        expect(f"own exception, {device}", run_kernels("own_exception", KJIT_DEVICE=device), "Own ('too large', 7) (3, 0, 0) (0, 0, 0) False\nTrue ",
               "tid=[3, 0, 0] ctaid=[0, 0, 0]: ('too large', 7)", "True True\n")
    expect("division", run_kernels("dividing"), "DivisionByZero ('division by zero',) (0, 0, 0) (0, 0, 0) True")
    expect("words of kjit.jit", run_kernels("with_words"), "NotImplementedError", "kjit.popc belongs to kjit.jit and is not simulated")
    found = program("import kjit\n@kjit.jit\ndef plain(r):\n    r[0] = 1\n")
    expect("kjit.jit", found, "NotImplementedError: KJIT_DEVICE=python: plain is a kernel of kjit.jit")
    hidden = "import sys; sys.modules['greenlet'] = None\n" + KERNELS
    found = program(hidden.replace('sys.argv[1] if len(sys.argv) > 1 else "@"', '"plain"'))
    expect("without greenlet", found, "ImportError: the simulator of kjit.cuda needs the package greenlet: pip install greenlet")
    found = run_kernels("waiting")
    expect("threads that wait forever", found, "Deadlock", "thread (0, 0, 0) at", "in syncthreads(); thread (5, 0, 0) at", "in syncwarp()")
    expect("threads that wait", run_kernels("waits"), "[7, 1] [400, 501, 602, 703, 4, 105, 206, 307] [15.0, 14.0, 13.0, 12.0, 11.0, 10.0, 9.0, 8.0] "
           "[100, 0, 102, 103, 0, 105, 106, 0, 200, 201, 0, 203, 204, 0, 206, 207]")
    # A name that a pattern captures is not the global of this name. The rewritten function does not take the place of a kept source.
    expect("captured name", run_kernels("captured"), "[3, 9] 0\n")


def main():
    ran = compare_random()
    check_kernels()
    check_debugger()
    print(f"{ran} random kernels, seed {seed}: {failures} failures")
    return 1 if failures else 0


sys.exit(main())
