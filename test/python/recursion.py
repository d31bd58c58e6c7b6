# RUN: %kjit-python %s 20261129
"""Functions that call themselves, alone and through others, in njit, kjit.func and kernels of kjit.cuda, compared with
Python: programs that people write, and random ones. `recursion.py [SEED [COUNT]]` draws others."""
import glob
import importlib.util
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile

import kjit
import numpy as np
import seeds
from kjit import cuda, njit

seed = int(sys.argv[1]) if len(sys.argv) > 1 else seeds.seed
count = int(sys.argv[2]) if len(sys.argv) > 2 else 12
rng = random.Random(seed)
PTXAS = shutil.which("ptxas") or next(iter(glob.glob("/usr/local/cuda*/bin/ptxas")), None)
folder = tempfile.TemporaryDirectory()


def assembled(kernel, signature):
    """Returns the PTX of a kernel. NVIDIA's assembler must accept it if it is installed."""
    ptx = cuda.compile(kernel, signature, device=False, abi="numba", cc=(9, 0))[0]
    path = os.path.join(folder.name, "code.ptx")
    with open(path, "w") as file:
        file.write(ptx)
    if PTXAS:
        subprocess.run([PTXAS, "-arch=sm_90", "-o", os.devnull, path], check=True, stderr=subprocess.DEVNULL)
    return ptx


# ---- programs ----


@njit
def factorial(n):
    if n > 1:
        return n * factorial(n - 1)
    return 1


@njit
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


@njit
def ackermann(m, n):
    if m == 0:
        return n + 1
    if n == 0:
        return ackermann(m - 1, 1)
    return ackermann(m - 1, ackermann(m, n - 1))


@njit
def greatest_divisor(a, b):
    return a if b == 0 else greatest_divisor(b, a % b)


@njit
def is_even(n):
    return n == 0 or is_odd(n - 1)


@njit
def is_odd(n):
    return n != 0 and is_even(n - 1)


@njit
def towers(n):
    if n == 0:
        return 0, 1.0
    moves, weight = towers(n - 1)
    return 2 * moves + 1, weight * 0.5


@njit
def power(x, n):
    if n == 0:
        result = 1.0
    elif n % 2:
        result = x * power(x, n - 1)
    else:
        half = power(x, n // 2)
        result = half * half
    return result


@njit
def widened(n):
    if n < 1:
        return 0
    return narrowed(n - 1) * 2


@njit
def narrowed(n):
    if n < 1:
        return 0.5
    return widened(n - 1) + 1


@njit
def with_default(n, k=3):
    if n < 2:
        return k
    return with_default(n - 1) + with_default(n - 2, k=k - 1)


@njit
def queens(n, columns, left, right):
    full = (1 << n) - 1
    if columns == full:
        return 1
    found, free = 0, full & ~(columns | left | right)
    while free:
        bit = free & -free
        free ^= bit
        found += queens(n, columns | bit, (left | bit) << 1, (right | bit) >> 1)
    return found


NUMBERS = [
    (factorial, lambda: (rng.randrange(20),)),
    (fibonacci, lambda: (rng.randrange(20),)),
    (ackermann, lambda: (rng.randrange(3), rng.randrange(4))),
    (greatest_divisor, lambda: (rng.randrange(10**12), rng.randrange(1, 10**12))),
    (is_even, lambda: (rng.randrange(40),)),
    (is_odd, lambda: (rng.randrange(40),)),
    (towers, lambda: (rng.randrange(40),)),
    (power, lambda: (rng.uniform(-2, 2), rng.randrange(30))),
    (widened, lambda: (rng.randrange(12),)),
    (narrowed, lambda: (rng.randrange(12),)),
    (with_default, lambda: (rng.randrange(9),)),
    (queens, lambda: (rng.randrange(1, 7), 0, 0, 0)),
]
plain = {function.py_func: function for function, _ in NUMBERS}


def python_of(function):
    """Returns the function for Python alone: the functions that it calls are Python functions, too."""
    space = dict(function.__globals__)
    made = {f.__name__: type(f)(f.__code__, space, f.__name__, f.__defaults__) for f in plain}
    space.update(made)
    return made[function.__name__]


for function, draw in NUMBERS:
    expected = python_of(function.py_func)
    for _ in range(6):
        arguments = draw()
        assert np.allclose(function(*arguments), expected(*arguments), rtol=1e-14, atol=0), (function, arguments)
assert type(widened(3)) is float and type(factorial(3)) is int and type(is_even(3)) is bool and is_odd(3) is True
assert not any(function.runs_in_python for function, _ in NUMBERS)


@cuda.jit
def kernel_of_all(r, n):
    i = cuda.grid(1)
    if i < n:
        r[0, i] = factorial(i)
        r[1, i] = fibonacci(10)
        r[2, i] = ackermann(2, i % 3)
        r[3, i] = greatest_divisor(i * 12, 84)
        r[4, i] = is_even(i) + 2 * is_odd(5)
        r[5, i] = towers(i)[0]
        r[6, i] = power(1.5, i)
        r[7, i] = widened(i)
        r[8, i] = with_default(i % 7)
        r[9, i] = queens(5, 0, 0, 0)


table = np.zeros((10, 15))
kernel_of_all[1, 32](table, 15)
for i in range(15):
    wanted = [math.factorial(i), 55, ackermann(2, i % 3), math.gcd(i * 12, 84), (i % 2 == 0) + 2, 2**i - 1, 1.5**i, widened(i), with_default(i % 7), 10]
    assert np.allclose(table[:, i], wanted, rtol=1e-14), (i, table[:, i], wanted)
assembled(kernel_of_all.py_func, "void(float64[:, :], int64)")

# ---- over arrays ----


@njit
def depth_of(left, right, node):
    if node < 0:
        return 0
    return 1 + max(depth_of(left, right, left[node]), depth_of(left, right, right[node]))


@njit
def quicksort(a, low, high):
    if low >= high:
        return
    pivot, i, j = a[(low + high) // 2], low, high
    while i <= j:
        while a[i] < pivot:
            i += 1
        while a[j] > pivot:
            j -= 1
        if i <= j:
            a[i], a[j] = a[j], a[i]
            i += 1
            j -= 1
    quicksort(a, low, j)
    quicksort(a, i, high)


@njit
def fill(image, i, j, old, new):
    if i < 0 or j < 0 or i >= image.shape[0] or j >= image.shape[1] or image[i, j] != old:
        return 0
    image[i, j] = new
    found = 1
    for di, dj in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        found += fill(image, i + di, j + dj, old, new)
    return found


@njit
def sum_of(a):
    if len(a) == 0:
        return 0.0
    if len(a) == 1:
        return a[0]
    return sum_of(a[: len(a) // 2]) + sum_of(a[len(a) // 2 :])


nodes = 60
left, right = np.full(nodes, -1), np.full(nodes, -1)
for node in range(1, nodes):
    parent, side = rng.randrange(node), rng.choice((left, right))
    while side[parent] >= 0:
        parent = side[parent]
    side[parent] = node
assert depth_of(left, right, 0) == depth_of.py_func(left, right, 0)
values = np.array([rng.uniform(-1, 1) for _ in range(500)])
ordered = values.copy()
quicksort(ordered, 0, len(ordered) - 1)
assert (ordered == np.sort(values)).all()
image = np.array([[rng.random() < 0.6 for _ in range(30)] for _ in range(20)], np.int32)
image[0, 0] = 1
painted, expected = image.copy(), image.copy()
assert fill(painted, 0, 0, 1, 7) == fill.py_func(expected, 0, 0, 1, 7) and (painted == expected).all()
assert abs(sum_of(values) - values.sum()) < 1e-12


@cuda.jit
def sort_rows(a):
    i = cuda.grid(1)
    if i < a.shape[0]:
        quicksort(a[i], 0, a.shape[1] - 1)


rows = np.array([[rng.uniform(-1, 1) for _ in range(30)] for _ in range(20)])
shown = rows.copy()
sort_rows[1, 32](shown)
assert (shown == np.sort(rows, axis=1)).all()
assembled(sort_rows.py_func, "void(float64[:, :])")

# ---- functions that other functions define, and functions in kernels ----


def make(step):
    @cuda.jit(device=True)
    def collatz(n, count):
        if n == 1:
            return count
        if n % 2 == 0:
            return collatz(n // 2, count + step)
        return collatz(3 * n + 1, count + step)

    @cuda.jit
    def kernel(r):
        def down(n):
            if n <= 0:
                return 0.5
            return 1 + down(n - 1)

        i = cuda.grid(1)
        if i < r.size:
            r[i] = collatz(i + 1, 0) + down(3)

    return kernel


def steps(n):
    return 0 if n == 1 else 1 + steps(n // 2 if n % 2 == 0 else 3 * n + 1)


result = np.zeros(20)
make(2)[1, 32](result)
assert list(result) == [2 * steps(i + 1) + 3.5 for i in range(20)], result


@kjit.func
def plain_factorial(n):
    return 1 if n < 2 else n * plain_factorial(n - 1)


@kjit.func
def triangle(n):
    if n > 0:
        return n + triangle(n - 1)
    return 0


@kjit.jit
def plain_kernel(r):
    r[0] = plain_factorial(10)
    r[1] = triangle(100)  # more literals than the number that get separate functions
    r[2] = triangle(kjit.i64(50))


result = np.zeros(3)
plain_kernel[1, 1](result)
assert list(result) == [math.factorial(10), 5050, 1275], result
assert plain_factorial(5) == 120 and triangle(1000) == 500500

# ---- impossible recursions ----


def fails(kind, text, call, *arguments):
    try:
        call(*arguments)
    except kind as error:
        assert text in str(error), error
        return error
    raise AssertionError(f"{text} was not said")


@njit
def runaway(n):
    return runaway(n - 1)


@njit
def first_of_two(n):
    return second_of_two(n) + 1


@njit
def second_of_two(n):
    return first_of_two(n - 1)


@njit
def growing(n, x):
    if n == 0:
        return 1
    return growing(n - 1, (x, x))


@njit
def unlike(n):
    if n == 0:
        return 1
    return n, unlike(n - 1)


@njit
def endless(n):
    if n < 0:
        return 0
    return 1 + endless(n + 1)


for function, line in ((runaway, 2), (first_of_two, None)):
    error = fails(kjit.Error, "cannot type infer runaway recursion", function, 3)
    assert error.file == __file__ and (line is None or error.line == function.py_func.__code__.co_firstlineno + line), error
assert len(str(fails(kjit.Error, "growing", growing, 40, 1))) < 10000
fails(kjit.Error, "Return type of recursive function does not converge", unlike, 3)
error = fails(RecursionError, "the recursion of `endless` is too deep", endless, 1)
assert isinstance(error, kjit.KernelError) and error.file == __file__, error
assert endless(-1) == 0  # the program continues


@cuda.jit
def too_deep(r):
    r[0] = endless(1)


fails(RecursionError, "is too deep", lambda: (too_deep[1, 1](np.zeros(1)), cuda.synchronize()))


@cuda.jit(device=True)
def meeting(n):
    cuda.syncthreads()
    if n > 0:
        meeting(n - 1)


@cuda.jit
def meets(r):
    meeting(3)
    r[0] = 1


if kjit.device().kind == "cpu":
    fails(kjit.Error, "is recursive and contains a barrier", meets[1, 32], np.zeros(1))

# ---- random functions ----


def draw_value(depth=2):
    """Returns an expression of n and x."""
    if depth == 0 or rng.random() < 0.3:
        return rng.choice(["n", "x", "x", str(rng.randrange(9)), f"{rng.randrange(1, 9)}.5"])
    return f"({draw_value(depth - 1)} {rng.choice('+-*')} {draw_value(depth - 1)})"


def draw_call(names):
    return f"{rng.choice(names)}({rng.choice(['n - 1', 'n - 2', 'n // 2'])}, {draw_value(1)} % 17)"


def draw_step(names):
    parts = [draw_call(names) for _ in range(rng.choice((1, 1, 2)))] + [draw_value(1)]
    rng.shuffle(parts)
    return f"({' + '.join(parts)}) % 1009"


def draw_function(name, names):
    """Returns a function that ends for n below 1, in one of the forms that people write."""
    base, step = f"{draw_value()} % 1009", draw_step(names)
    forms = [
        f"    if n < 1:\n        return {base}\n    return {step}\n",
        f"    if n >= 1:\n        return {step}\n    return {base}\n",
        f"    if n < 1:\n        r = {base}\n    else:\n        r = {step}\n    return r\n",
        f"    if n > 0:\n        r = {step}\n    else:\n        r = {base}\n    return r\n",
        f"    return {base} if n < 1 else {step}\n",
        f"    return {step} if not n < 1 else {base}\n",
        f"    r = {base}\n    if n > 0:\n        r += {draw_call(names)}\n        r = r % 1009\n    return r\n",
        f"    if n < 1:\n        return {base}\n    r = 0\n    for k in range(2):\n        r += {draw_call(names)}\n    return r % 1009\n",
        f"    if n < 1:\n        return {base}\n    if n % 3 == 1:\n        return {step}\n    return {draw_step(names)}\n",
    ]
    return f"@made\ndef {name}(n, x):\n{rng.choice(forms)}"


def load(text, number, made):
    path = os.path.join(folder.name, f"drawn_{number}_{made.__name__}.py")
    with open(path, "w") as file:
        file.write(text)
    module = importlib.util.module_from_spec(importlib.util.spec_from_file_location(f"drawn_{number}", path))
    module.made = made
    module.__spec__.loader.exec_module(module)
    return module


def of_python(function):
    return function


for number in range(count):
    names = [f"f{k}" for k in range(rng.choice((1, 1, 2, 3)))]
    text = "\n\n".join(draw_function(name, names) for name in names)
    plain_module, module = load(text, number, of_python), load(text, number, njit)
    arguments = [(rng.randrange(7), rng.choice((rng.randrange(9), rng.uniform(0, 9)))) for _ in range(4)]
    drawn, last = module.f0, getattr(module, names[-1])

    @cuda.jit
    def kernel(r, n, x):
        r[0] = drawn(n, x)
        r[1] = last(3, x)

    for n, x in arguments:
        result = np.zeros(2)
        kernel[1, 1](result, n, x)
        expected = [plain_module.f0(n, x), getattr(plain_module, names[-1])(3, x)]
        assert np.allclose([drawn(n, x), last(3, x)], expected, rtol=1e-9), (text, n, x, drawn(n, x), expected)
        assert np.allclose(result, expected, rtol=1e-9), (text, n, x, result, expected)
    if number < 3:
        assembled(kernel.py_func, "void(float64[:], int64, float64)")
