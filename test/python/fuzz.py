# RUN: %kjit-python %s
"""Randomly changed Python functions: each compiles and runs, or is rejected with a kjit error. Every failure must be a
kjit exception; a crash ends this process. CPU functions return the same values as Python itself. Loops end: kernels
have no `while`, and a signal ends an endless Python loop."""
import ast
import copy
import os
import signal
import sys
import tempfile
import time
import traceback
import types
import warnings

import kjit
import numpy as np
import seeds

SECONDS = float(os.environ.get("KJIT_FUZZ_SECONDS", "4"))
SOURCE = '''
def kernel(r, x, n):
    """Words."""
    i = kjit.grid(1)
    tile = kjit.shared((8, 2), kjit.f32)
    own = kjit.local(4, kjit.i32)
    own[0], own[1] = i, i + 1
    tile[i % 8, 0] = x[i % len(x)]
    kjit.syncthreads()
    total: kjit.f32 = 0.0
    a, d = x[0], 2
    if i < n and not n > 100 or a == d:
        c = helper(a, d)
    elif 0 <= i < 4:
        c = PAIR[0]
    else:
        c = TABLE[1]
    for k in range(0, n, 2):
        if k > 6:
            break
        total += (c if k & 1 else -c) * own[0] // 3
        continue
    for s in PAIR:
        total += s
    for s in kjit.static(range(2)):
        total += PAIR[s]
    for k in range(3):
        total += k
    rows = x
    if n > 3:
        rows = x[n:]
    for v in rows:
        total = total + v * k
    late: kjit.f32
    if d > a:
        late = total
    for b in range(2, 5):
        own[b % 4] += b
    for j in kjit.grid_range(len(r)):
        r[j] = total + j ** 2 - math.sqrt(abs(a))
    assert n < 1000, "much"
    if n == 77:
        raise KeyError("text")
    print("x", n, (1, a))
    kjit.atomic_add(r[0], tile[0, 1])
    return
'''

# The same for CPU functions, whose loops become separate compiled code.
CPU_SOURCE = '''
def kernel(r, x, n):
    """Words."""
    total, least, count = 0.0, x[0], 0
    v = np.zeros_like(r)
    for t in range(2):
        for i in prange(1, len(x) - 1):
            a = x[i]
            if a < 0 or i == n:
                continue
            total += helper(a, 2) * TABLE[t]
            least = min(least, a)
            count = count + 1
            r[i] = a / n + PAIR[0]
        for j in range(n):
            if j > 3:
                break
            v[j] = total // (j + 1)
            last = j
        if count > n:
            total /= 2
        else:
            total = total + last
    for i in prange(0, n, 2):
        v[i] += i
    return total, least, v[1:3]
'''


def helper(u, v=3):
    return min(u, v, 2) + (u, v)[1]


def inner(node):
    """Yields (parent, field, index) of each expression and statement."""
    for parent in ast.walk(node):
        for field, value in ast.iter_fields(parent):
            for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
                if isinstance(child, (ast.expr, ast.stmt, ast.operator, ast.cmpop)):
                    yield parent, field, index, child


def mutate(tree, luck, large):
    places = list(inner(tree))
    parent, field, index, child = luck.choice(places)
    kinds = [c for _, _, _, c in places if isinstance(c, ast.expr) == isinstance(child, ast.expr) and isinstance(c, ast.stmt) == isinstance(child, ast.stmt)]
    new = copy.deepcopy(luck.choice(kinds))
    chance = luck.random()
    if isinstance(child, ast.expr) and chance < 0.3:
        new = ast.parse(luck.choice([*large, "0", "-1", "1.5", "2j", "None", "'t'", "x", "r", "n", "zz", "helper", "kjit", "kjit.f32", "True", "()", "(1, 2.5)", "x[::-1]",
                                     "x.shape", "math.nan", "[1]", "lambda: 0", "x.T", "kjit.threadIdx.x", "print", "range(3)", "kjit.warpsize", "np.pi", "1e400"]), mode="eval").body
    values = getattr(parent, field)
    if index is None:
        setattr(parent, field, new)
    elif isinstance(child, ast.stmt) and chance > 0.7 and len(values) > 1:
        del values[index]
    elif isinstance(child, ast.stmt) and chance > 0.4:
        values.insert(index, new)
    else:
        values[index] = new


class Done(BaseException):
    """A CPU function has run."""


class Endless(Exception):
    """A Python loop that does not end."""


def end(number, frame):
    raise Endless


def compute(function):
    r = np.zeros(16)
    return r, function(r, np.linspace(-1.0, 2, 16), 5)


def compare(mine, result, function, text):
    """Returns whether there was a value to compare: Python itself may fail although compiled code returns a value."""
    signal.setitimer(signal.ITIMER_VIRTUAL, 1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = compute(function)
    except Exception:
        return False
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)

    def same(a, b):
        if isinstance(b, tuple):
            return isinstance(a, tuple) and len(a) == len(b) and all(map(same, a, b))
        if not isinstance(b, (int, float, complex, np.ndarray, np.generic)):
            return type(a) is type(b)
        return np.shape(a) == np.shape(b) and np.allclose(a, b, rtol=1e-9, atol=1e-12, equal_nan=True)
    assert same((mine, result), expected), (text, mine, result, expected)
    return True


signal.signal(signal.SIGVTALRM, end)
WORDS = {name: getattr(kjit, name) for name in kjit.__all__}  # programs may assign to attributes of modules
luck = seeds.fresh_choice()
originals = [ast.parse(SOURCE), ast.parse(CPU_SOURCE)]
ran, compared = [0, 0], 0
ends, outcomes, count = time.monotonic() + SECONDS, {}, 0
sys.stdout = open(os.devnull, "w")


# On a busy machine, the seconds may pass before all outcomes have occurred. If one of them never occurs, the time limit
# of the test ends it.
def has_seen_all():
    return all(ran) and compared and outcomes.get("SourceError") and outcomes.get("TypingError")


with tempfile.TemporaryDirectory() as folder:
    while time.monotonic() < ends or not has_seen_all():
        count += 1
        which = luck.randrange(2)
        tree = copy.deepcopy(originals[which])
        for _ in range(luck.randrange(4)):
            mutate(tree, luck, () if which else ("10**30",))  # wraps around if numbers have types
        try:
            text = ast.unparse(ast.fix_missing_locations(tree))
            path = os.path.join(folder, f"f{count}.py")
            code = compile(text, path, "exec")
        except (SyntaxError, ValueError, TypeError, AttributeError, RecursionError, KeyError):
            continue  # not Python at all
        with open(path, "w") as file:
            file.write(text)
        names = {"kjit": types.SimpleNamespace(**WORDS), "helper": helper, "PAIR": (1, 2.5), "TABLE": np.array([1.5, 2.5]), "math": __import__("math"),
                 "np": types.SimpleNamespace(zeros_like=np.zeros_like, pi=np.pi), "prange": kjit.prange}
        try:
            exec(code, names)
        except Exception:
            continue
        if "kernel" not in names:
            continue
        to_compare = None
        try:
            if which:
                signal.setitimer(signal.ITIMER_VIRTUAL, 1)
                mine, result = compute(kjit.njit(parallel=True, boundscheck=True)(names["kernel"]))
                signal.setitimer(signal.ITIMER_VIRTUAL, 0)
                to_compare = mine, result
                raise Done
            kernel = kjit.jit(checks="bounds,division,assert", wrap=luck.random() < 0.5)(names["kernel"])
            kernel[1, 8](np.zeros(16, np.float32), np.ones(8, np.float32), 5)
            outcome = "ran"
            ran[0] += 1
        except Done:
            ran[1] += 1
        except kjit.Error as error:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            outcome = type(error).__name__
            assert error.message and (error.file or isinstance(error, (kjit.ArgumentError, kjit.LimitError, kjit.LaunchError))), (text, error)
        except Exception as error:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            outcome = type(error).__name__
            # Between its loops, a CPU function is Python code, which raises its own exceptions.
            last = traceback.extract_tb(error.__traceback__)[-1].filename
            # these names have no meaning outside of kernels
            inside = "kjit/frontend" in last and not last.endswith("words.py")
            assert which and not inside or isinstance(error, TypeError) and ("argument" in str(error) or "missing" in str(error)), (text, error)
        except BaseException:
            print(text, file=sys.stderr)
            raise
        if to_compare:
            outcome = "agreed" if compare(*to_compare, names["kernel"], text) else "python fails"
            compared += outcome == "agreed"
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
        os.remove(path)
print(count, outcomes, file=sys.stderr)
