# REQUIRES: x86
# RUN: rm -rf %t && env KJIT_DEVICE=cpu %kjit-python %s %t
"""Compiled functions in the disk cache. A program calls functions of every kind in one process after the other; a later process
compiles nothing and does not load the compiler. A change of a function, of a global name, a closure or a called function, a
damaged file and moved lines are compiled again. Python computes the expected values, from the same source."""
import functools
import json
import os
import pathlib
import re
import subprocess
import sys

import seeds

FOLDER = pathlib.Path(sys.argv[1]).resolve()
GENERATOR = seeds.fresh_choice()
# Builds with assertions load the compiler to compile some of the hits again. The last checks do this for all hits.
os.environ["KJIT_RECHECK"] = "0"

# Parts in braces are replaced in `program`. `@kept` is a decorator of kjit in one run, and nothing in another.
PROGRAM = """
import collections, json, sys
import numpy as np
import kjit, kjit.numpy

class Plain:
    "Python itself in place of kjit's decorators."
    prange = range
    def njit(*args, **options): return args[0] if args and callable(args[0]) else lambda function: function
    def vectorize(function): return np.vectorize(function, otypes=["f8"])
    def guvectorize(signature, layout):
        def made(function):
            def call(x):
                r = np.zeros(x.shape[:1])
                for i in range(len(x)): function(x[i], r[i:i + 1])
                return r
            return call
        return made

k = Plain if sys.argv[1] == "python" else kjit
kjit.set_plain_code(sys.argv[2])
x = np.arange(1.0, 41.0)
SCALE = {scale}
Pair = collections.namedtuple("Pair", "low high")

@k.njit
def inner(v): return v * SCALE + {shift}

@k.njit
def outer(v): return inner(v) - 1

@k.njit
def whole(x):
    s = 0.0
    for v in x: s += inner(v) * v
    return s

@k.njit
def pair(a, b): return a + b, a > b, {factor} * a

@k.njit
def named(a, b): return Pair(a - b, a + b)

@k.njit
def complex_number(a): return a * 2j + SCALE

def closing(n):
    @k.njit
    def closed(v): return v * n
    return closed

@k.njit(parallel=True)
def rows(x):
    r = np.zeros(len(x))
    for i in k.prange(len(x)): r[i] = x[i] * SCALE
    return r

@k.njit
def arrays(x): return np.abs(x) * SCALE + x * x

@k.njit
def recursive(n): return n if n < 2 else recursive(n - 1) + recursive(n - 2)

@k.njit("float64(float64[:], int64)")
def signed(x, i): return x[i] * SCALE

@k.njit
def higher(f, v): return f(v) + 2

@k.vectorize
def product(a, b): return a * b + SCALE

@k.guvectorize("float64[:], float64[:]", "(n)->()")
def gufunc(x, r):
    s = 0.0
    for v in x: s += v * SCALE
    r[0] = s

def fused(x):
    if k is Plain: return abs(x * SCALE - 9) + x
    return abs(kjit.numpy.asarray(x) * SCALE - 9) + kjit.numpy.asarray(x)

def formula(x):
    return x * SCALE + x if k is Plain else kjit.eval("x * s + x", x=x, s=SCALE)

{blank}
@k.njit
def failing(x, i):
    if i > 100: raise ValueError("too large")
    return x[i]

@k.njit
def first_of(t): return t[0]

calls = dict(
    inner=lambda: inner(2.5), outer=lambda: outer(2.5), whole=lambda: whole(x), pair=lambda: pair(3, 4.5),
    named=lambda: tuple(named(3.5, 1)), complex=lambda: complex_number(1.5), closed=lambda: closing({closed})(7),
    rows=lambda: rows(x), recursive=lambda: recursive(12), signed=lambda: signed(x, 3),
    higher=lambda: higher(inner, 2.5), product=lambda: product(x, x), gufunc=lambda: gufunc(x.reshape(8, 5)),
    fused=lambda: fused(x), formula=lambda: formula(x), failing=lambda: failing(x, 3), tuple=lambda: first_of((3.5, x)), arrays=lambda: arrays(x)
)
values, compiled, hits = {}, {}, {}
for name, call in calls.items():
    before = kjit.statistics()
    values[name] = repr(np.asarray(call()).tolist())
    kjit.wait_background()
    after = kjit.statistics()
    compiled[name] = after["compilations"] - before["compilations"]
    hits[name] = after["disk_hits"] - before["disk_hits"]
has_compiler = "libkjit-compiler" in open("/proc/self/maps").read()
print(json.dumps({"values": values, "compiled": compiled, "hits": hits, "has_compiler": has_compiler}))
"""
# The compiler rejects this func. Applications may handle such errors, so the disk cache has them, too.
REJECTED = """
import json
import numpy as np
import kjit
SCALE = 2

@kjit.func
def rejected(x): return SCALE * x{comment}

try:
    rejected(np.arange(3.0))
except kjit.Error as error:
    print(json.dumps([str(error), error.code, type(error).__name__, "libkjit-compiler" in open("/proc/self/maps").read()]))
"""
PARTS = {"scale": "4.0", "shift": "8", "factor": "2", "closed": "5", "blank": ""}


def start(kind="kjit", plain="never", cache="cache", **changes):
    text = PROGRAM
    for name, value in (PARTS | changes).items():
        text = text.replace("{" + name + "}", value)
    (FOLDER / "new").write_text(text)
    os.replace(FOLDER / "new", FOLDER / "program.py")  # another process may be reading the file
    environment = os.environ | {"XDG_CACHE_HOME": str(FOLDER / cache), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, str(FOLDER / "program.py"), kind, plain]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def reject(comment=""):
    """Returns (message, code, class, whether the process has loaded the compiler)."""
    (FOLDER / "rejected.py").write_text(REJECTED.replace("{comment}", comment))
    environment = os.environ | {"XDG_CACHE_HOME": str(FOLDER / "rejected"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, str(FOLDER / "rejected.py")]
    return json.loads(subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout)


def finish(process):
    output = process.communicate()[0]
    assert process.returncode == 0
    return json.loads(output)


@functools.cache
def compute(changes):
    """Returns the values that Python computes for these changes."""
    return finish(start(kind="python", **dict(changes)))["values"]


def run(plain="never", cache="cache", **changes):
    """Runs a process with the cache, and compares its values with Python's. Returns the numbers of the process."""
    got = finish(start(plain=plain, cache=cache, **changes))
    expected = compute(tuple(changes.items()))
    assert got["values"] == expected, (changes, got["values"], expected)
    return got


def compiled(numbers):
    return {name for name, count in numbers["compiled"].items() if count}


def entries(stage):
    folder = FOLDER / "cache/kjit"
    return [path for path in folder.iterdir() if re.search(rb"\nstage %s\n" % stage, path.read_bytes())]


FOLDER.mkdir(parents=True)
EVERY = set(compute(()))

# two processes that begin with an empty cache at the same time
both = [start(), start()]
first = [finish(process) for process in both]
assert first[0]["values"] == first[1]["values"] == compute(())
assert any(compiled(numbers) for numbers in first)

# later processes compile nothing, whatever the setting for plain code
for plain in "never", "always":
    later = run(plain=plain)
    assert not compiled(later) and not later["has_compiler"], (plain, later)
    assert {name for name, count in later["hits"].items() if count} == EVERY, later

# each change is compiled again, and only the functions that depend on it are
assert compiled(run(factor="3")) == {"pair"}
assert compiled(run(closed="6")) == {"closed"}
assert compiled(run(shift="16")) >= {"inner", "outer", "whole", "higher"}
assert compiled(run(scale="16.0")) >= EVERY - {"pair", "named", "closed", "recursive", "failing", "tuple"} - {"fused", "formula", "arrays"}
assert compiled(run(blank="\n\n")) == {"failing"}  # its message has the line
assert compiled(run()) == {"failing"}  # all other first codes are still there
assert not compiled(run())

# damaged files of functions: each is compiled again and replaced
for damage in "cut", "flipped", "empty":
    found = entries(b"function")
    assert len(found) > 10, found
    for path in found:
        data = bytearray(path.read_bytes())
        at = GENERATOR.randrange(len(data))
        if damage == "flipped":
            data[at] ^= 1 << GENERATOR.randrange(8)
        path.write_bytes(data if damage == "flipped" else data[:at] if damage == "cut" else b"")
    assert compiled(run())
    assert not compiled(run())

# errors: a later process gets the same one without the compiler, and another quoted line is compiled again
first_error = reject()
assert first_error[1:] == ["ARRAY_AS_NUMBER", "TypingError", True] and "return SCALE * x\n" in first_error[0], first_error
assert reject() == [*first_error[:3], False]
commented = reject("  # a comment")
assert commented[3] and "return SCALE * x  # a comment\n" in commented[0], commented
assert reject("  # a comment") == [*commented[:3], False]
error_entry, = (FOLDER / "rejected/kjit").glob("*.kjit")
whole = error_entry.read_bytes()
for at in sorted({*GENERATOR.sample(range(len(whole)), 2), len(whole) - 1}):
    for damaged in whole[:at], whole[:at] + bytes([whole[at] ^ 1 << GENERATOR.randrange(8)]) + whole[at + 1:]:
        error_entry.write_bytes(damaged)
        assert reject("  # a comment") == commented, (at, len(damaged))
        assert reject("  # a comment")[3] is False

# builds with assertions compile each hit again, and end the process if the code or the error differs
os.environ["KJIT_RECHECK"] = "all"
assert not compiled(run())
assert reject("  # a comment")[:3] == commented[:3]

# a directory that cannot be written to
(FOLDER / "file").write_text("")
assert compiled(run(cache="file")) == EVERY
print("right")
