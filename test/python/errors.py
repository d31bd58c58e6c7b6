# RUN: %kjit-python %s
"""Each error names the Python line that is wrong: the line with the comment `# E: text of the message`."""
import linecache
import os
import re
import sys
import tempfile
import traceback
import warnings

import kjit
import numpy as np
from kjit import _errors, _kjit, _phrases, grid_range

# Error codes, whose messages may change.
CODES = [
    (lambda x, r: x[0] + x, "ARRAY_AS_NUMBER", (np.ones((2, 2)), np.ones(2))),
    (lambda x, r: r[x], "ARRAY_AS_NUMBER", (np.ones(2), np.ones(2))),
    (lambda x, r: kjit.cos(x), "ARRAY_AS_NUMBER", (np.ones(2), np.ones(2))),
    (lambda x, r: -x, "ARRAY_AS_NUMBER", (np.ones(2), np.ones(2))),
    (lambda x, r: 1 if x else 2, "ARRAY_AS_NUMBER", (np.ones(2), np.ones(2))),
    (lambda x, r: x, "C_TYPE", (np.ones(2), np.ones(2))),
    (lambda x, r: x(3), None, (np.ones(2), np.ones(2))),
    (lambda x, r: x.v + r[0], "ARRAY_OF_FIELDS", (np.ones(2, [("v", "f8"), ("n", "i4")]), np.ones(2))),
    (lambda x, r: x.v + r[0], "ARRAY_AS_NUMBER", (np.ones(2, [("v", "f8"), ("n", "i8")]), np.ones(2))),
]


def assign_rows(x, r):
    y = x
    for i in range(2):
        if i == 1:
            y = r
    return y[0]


for function, code, arguments in [*CODES, (assign_rows, "ARRAY_ELEMENTS", (np.ones(2, "f4"), np.ones(2)))]:
    try:
        kjit.func(function)(*arguments)
        raise AssertionError(code)
    except kjit.Error as error:
        assert error.code == code, (error.code, str(error))

status = set(_kjit.status_names())
assert status == set(_errors.CLASSES), status ^ set(_errors.CLASSES)

SNIPPETS = """
try:  # E: a kernel cannot catch exceptions
    pass
except ValueError:
    pass
---
with open("a"):  # E: a kernel has no `with`
    pass
---
yield 3  # E: write to an array
---
class A:  # E: outside of the kernel
    pass
---
import math  # E: a kernel cannot import modules: import the module outside
---
global G; G = 3  # E: a kernel cannot assign to a global variable
---
del x  # E: cannot delete variables
---
y = [1, x[0]]  # E: kernels have no lists
---
y = {1: 2}  # E: no dictionaries
---
y = [k for k in range(3)]  # E: write a loop
---
y = helper(k for k in range(3))  # E: write a loop
---
print(f"{x[0]}")  # E: print("x =", x)
---
print("a", end="")  # E: no keyword arguments
---
match x[0]:  # E: kernels have no match statement: write if and elif
    case 1: pass
---
for k in 3.5:  # E: for
    pass
---
for k, (a, b) in enumerate(zip(x)):  # E: an item of the loop has 1 values, but there are 2 variables
    pass
---
for k, (a, b) in x:  # E: must be a plain name
    pass
---
for k in kjit.static(x):  # E: static takes a range: static(range(n))
    pass
---
for k in kjit.static(range(len(x))):  # E: static
    pass
---
for k in zip():  # E: at least one argument
    pass
---
y: kjit.f32 = 1
y: kjit.f64 = 2  # E: this type annotation differs from the one in line 2
---
y = x
y = 3  # E: an integer literal here and a C-contiguous array of float32 with one dimension elsewhere
---
x[0] = "ü" == x; x[1] = nobody  # E: a string cannot be used
---
π = x[1]; x[0] = π + x  # E: got
---
y = y_later + 1  # E: `y_later` is used before it is assigned
y_later = 1
---
x[0] = later  # E: `later` is used before it is assigned
later = 3
---
x[0] = nobody  # E: `nobody` is not defined
---
x[0] = nobody(3)  # E: `nobody` is not defined
---
x[0] = asb(x[1])  # E: `asb` is not defined; did you mean `abs`?
---
value = 1; x[0] = valeu  # E: `valeu` is not defined; did you mean `value`?
---
for k in kjit.gridrange(3): pass  # E: the module kjit has no `gridrange`; did you mean `grid_range`?
---
x[0] = kjit.threadIxd.x  # E: the module kjit has no `threadIxd`; did you mean `threadIdx`?
---
return 3  # E: a kernel cannot return a value
---
x @ x  # E: only a call can be a statement
---
y = x @ x  # E: matrix product
---
y = x[0] is x[1]  # E: compare numbers with ==
---
y = float(x[0])  # E: kjit.f32(x)
---
y = int(x[0])  # E: kjit.i32(x)
---
y = x.sum()  # E: no methods
---
x[0] = x.strides[0]  # E: a kernel cannot use strides
---
x[None] = 3  # E: None and ... are not supported
---
x[0] = "text"  # E: a string cannot be used in a kernel
---
x[0] = None  # E: None cannot be used
---
x[0] = os  # E: an object of module
---
G[0] = 3  # E: is a variable outside of the kernel
---
x[0] = 1, 2 == nobody  # E: `nobody` is not defined
---
a, (b, c) = 1, (2, 3)  # E: a target must be a name
---
a, b = 1, 2, 3  # E: the assignment has 3 values, but 2 variables
---
() = x[0]  # E: needs at least one variable on its left side
---
for () in x:  # E: must be a plain name
    pass
---
x[0] = sourceless(x[0])  # E: the source of sourceless cannot be found
---
raise ValueError(x[0])  # E: that are known when the function is compiled
---
raise  # E: raise ValueError
---
raise x  # E: an exception class that is known
---
assert x[0] > 0, x[0]  # E: the message of an assert
---
t = kjit.shared((x[0] > 0, 3), "nothing")  # E: is not a kjit type
---
t = kjit.shared(4)  # E: kjit.shared takes a shape, a type
---
if x[0] > 0:
    t = kjit.local(4, kjit.f32)  # E: assigned once
    t = kjit.local(5, kjit.f32)
---
x[0] = kjit.local(4, kjit.f32)  # E: the value is a local array
---
x[0] = other(x)  # E: a kernel cannot call a kernel
---
x[0] = helper(1, 2, 3)  # E: too many positional arguments
---
x[0] = x[0] +  x  # E: got
---
x[1.5] = 0  # E: an index must be an integer
---
x[0] = kjit.sqrt(x)  # E: sqrt
---
x[0] = kjit.sqrt(1, 2)  # E: sqrt
---
kjit.atomic_add(3, x[0])  # E: an atomic function needs an array element
---
y = True + helper  # E: function
---
x[0] = 1 / (kjit.i32(3) / 2)  # E: //
---
for k in grid_range(len(x)):
    break  # E: grid_range
---
x[0] = helper(x)  # E: of `helper`
"""


def helper(a):
    return a + a


@kjit.jit
def other(x):
    x[0] = 1


def place_of(text):
    """Returns the line with the mark, and the text of the message."""
    for number, line in enumerate(text.split("\n"), 1):
        found = re.search(r"# E: (.*)", line)
        if found:
            return number, found[1]
    raise AssertionError("no mark in " + text)


space = {}
exec("def sourceless(a):\n    return a", space)
wrong = []
with tempfile.TemporaryDirectory() as folder:
    for count, snippet in enumerate(SNIPPETS.split("\n---\n")):
        text = "def kernel(x):\n" + "\n".join("    " + line for line in snippet.strip("\n").split("\n")) + "\n"
        path = os.path.join(folder, f"s{count}.py")
        with open(path, "w") as file:
            file.write(text)
        names = {"kjit": kjit, "G": np.zeros(3), "os": os, "helper": helper, "other": other, "grid_range": grid_range,
                 "sourceless": space["sourceless"]}
        exec(compile(text, path, "exec"), names)
        line, message = place_of(text)
        kernel = kjit.jit(names["kernel"])
        try:
            kernel[1, 1](np.zeros(4, np.float32))
        except kjit.Error as error:
            text = str(error)
            if message == "of `helper`":  # inside the called function; the note leads here
                assert error.file == __file__ and any(path in note for note in error.notes) or message in text, text
                continue
            shown = text.split("\n")
            inside = [f for f in traceback.extract_tb(error.__traceback__) if "kjit/frontend" in f.filename]
            if message not in error.message or (error.file, error.line) != (path, line) or inside or not shown[2].endswith("^") \
                    or not shown[0].startswith(f"{path}:{line}:{error.column}: error: "):
                wrong.append(f"expected {line}: {message}\n{text}")
        else:
            wrong.append("no error: " + snippet)
assert not wrong, "\n".join(wrong)

# Failures of threads, with their locations and Python's exception classes.


@kjit.jit(checks="all" if kjit.device().kind == "cpu" else "usual")
def failing(x, n):
    i = kjit.grid(1)
    if n == 1 and i == 33:
        raise LookupError("nothing there")
    assert n != 2 or i != 5, "five"
    if n == 3:
        x[i + 100] = 1
    x[i] = kjit.i32(7) // (n - 4)


def failure(n):
    try:
        failing[2, 32](np.zeros(64, np.int32), np.int32(n))
    except kjit.KernelError as error:
        return error


error = failure(1)
assert isinstance(error, LookupError) and error.block == (1, 0, 0) and error.thread == (1, 0, 0), error
assert error.file == __file__ and "raise LookupError" in str(error), error
assert isinstance(failure(2), AssertionError) and "five" in str(failure(2)) and failure(2).thread == (5, 0, 0)
assert isinstance(failure(3), IndexError) and "x[i + 100]" in str(failure(3)), failure(3)
assert isinstance(failure(4), ZeroDivisionError), failure(4)
assert failure(5) is None


@kjit.jit(device="cpu", checks="integer-division")
def halves(r, n, x):
    r[0] = n // (n - 1)
    r[1] = 1.0 / x


@kjit.jit(checks="integer-division")
def steps(r, step):
    for i in range(0, 5, step):
        r[0] += 1


walked = np.zeros(1, np.int32)
steps[1, 1](walked, 2)
assert walked[0] == 3, walked
try:
    steps[1, 1](walked, 0)
    assert False, "a step of 0 went unnoticed"
except ValueError as error:
    assert isinstance(error, kjit.KernelError) and "range() arg 3 must not be zero" in str(error), error


@kjit.jit(checks="integer-division")
def slices(r, step):
    for value in r[::step]:
        r[0] += value


slices[1, 1](walked, -1)
assert walked[0] == 6, walked
try:
    slices[1, 1](walked, 0)
    assert False, "a slice with a step of 0 went unnoticed"
except ValueError as error:
    assert isinstance(error, kjit.KernelError) and "slice step cannot be zero" in str(error), error
    assert error.line and "range" not in str(error), error
quotients = np.zeros(2, np.float32)
halves[1, 1](quotients, 3, np.float32(0))
assert quotients[0] == 1 and np.isinf(quotients[1]), quotients
try:
    halves[1, 1](quotients, 1, np.float32(1))
    assert False, "a division by zero went unnoticed"
except ZeroDivisionError:
    pass
assert failure(1).text == "nothing there" and failure(2).text == "five" and failure(3).text is None


NEW = float(np.random.default_rng().random())  # code that no cache contains, because warnings come from the compiler


@kjit.jit(checks="all", device="cpu")
def parting(x):
    if kjit.threadIdx.x > 3:
        kjit.syncthreads()
    x[0] = NEW


with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    try:
        parting[1, 32](np.zeros(4))
        assert False, "a barrier that not all reach"
    except kjit.KernelError as error:
        assert error.line in (parting.py_func.__code__.co_firstlineno + 2, parting.py_func.__code__.co_firstlineno + 3), error
message = str(caught[0].message)
assert caught[0].category is kjit.KjitWarning and caught[0].filename == __file__ and "  kjit.syncthreads()\n" in message and message.endswith("^"), message

# Columns count characters.


@kjit.jit
def wide(x):
    ä, x[0] = 1, 2; raise KeyError("ü")  # noqa: E702


try:
    wide[1, 1](np.zeros(3))
except KeyError as error:
    caret = str(error).split("\n")
    assert error.column == 21 and error.text == "ü" and caret[2].index("^") == caret[1].index("raise"), (error.column, caret)
else:
    assert False

# Files whose names cannot be encoded as text. The exception class is still found.
for name in ("a\x01b\t\"q\\.py", "\udc80x.py", "new\nline.py", "x" * 5000):
    text = "@kjit.jit\ndef kernel(x):\n    raise LookupError('here')\n"
    linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
    names = {"kjit": kjit}
    exec(compile(text, name, "exec"), names)
    try:
        names["kernel"][1, 1](np.zeros(1))
    except LookupError as error:
        assert error.line == 3 and error.text == "here" and "raise LookupError" in str(error), error
    else:
        raise AssertionError(name)

# Missing sources, and objects that are not functions.
names = {}
exec("def f(x): pass", names)
for bad, kind, message in [(lambda: kjit.jit(names["f"])(np.zeros(3)), kjit.SourceError, "cannot be found"), (lambda: kjit.jit(3), TypeError, "function"),
                           (lambda: kjit.jit(max), TypeError, "function"), (lambda: kjit.jit(speed=3), TypeError, None),
                           (lambda: kjit.jit(checks="no")(helper), ValueError, "no check"), (lambda: kjit.jit(block=-1)(helper), ValueError, "positive"),
                           (lambda: kjit.jit(debug="no")(helper), ValueError, "debug"), (lambda: kjit.grid(1), TypeError, "in a kernel"),
                           (lambda: kjit.jit(sped=3)(helper), TypeError, "no option"), (lambda: _kjit.Array(), TypeError, "cannot create"),
                           (lambda: kjit.threadIdx.x, TypeError, "in a kernel"), (lambda: kjit.func(helper)(), TypeError, "missing"),
                           (lambda: kjit.func(helper)(1, 2), TypeError, "takes 1 argument, 2 were given"), (lambda: kjit.func(helper)("a"), kjit.ArgumentError, "`a`")]:
    try:
        bad()
    except kind as error:
        assert message is None or message in str(error), error
    else:
        assert message is None, message

# Messages have the words of Python instead of those of the kernel IR, the calls that lead to an error, and the name of
# the called function.
from kjit import cuda, njit  # noqa: E402  (kjit.cuda keeps the sources of exec, of which a test above has none)


def says(kind, call, *texts, refused=()):
    try:
        call()
    except kind as error:
        shown = str(error)
        assert isinstance(error, kjit.Error) and all(t in shown for t in texts) and not any(t in shown for t in refused), shown
        return error
    raise AssertionError(f"{texts} was not said")


IR = ("func `", "` func ", " -> i64 {", "var ", ": func`", "?:")


@cuda.jit(device=True)
def inner(a, i):
    return a[i, i, i]


@cuda.jit(device=True)
def middle(a):
    return inner(a, 0)


@cuda.jit
def outer(r):
    r[0] = middle(r)


@cuda.jit(device=True)
def inner_of_source(a):
    return np.frombuffer(a)


@cuda.jit(device=True)
def middle_of_source(a):
    return inner_of_source(a)


@cuda.jit
def outer_of_source(r):
    r[0] = middle_of_source(r)


@cuda.jit
def makes(r):
    t = np.zeros(3)
    r[0] = t[0]


@kjit.jit
def makes_plainly(r):
    t = np.empty((3, 2), np.float32)
    r[0] = t[0, 0]


@kjit.func
def sums_all(x):
    return kjit.reduce(x, "add")


@kjit.func
def endless_type(n):
    return endless_type(n - 1)


@njit
def chooses(a, n):
    return a if n > 2 else n


@njit
def picks(n):
    t = (1, 2.5)
    return t[n]


@njit
def calls_number(a):
    return a(3)


@njit
def divides(a, b):
    return a // b


x = np.arange(4.0)
error = says(kjit.TypingError, lambda: outer[1, 1](x), "function `inner` called with", "function `middle` called with", refused=IR)
assert len(error.notes) == 2, error.notes
error = says(kjit.SourceError, lambda: outer_of_source[1, 1](x), "np.frombuffer(): kernels do not support this", "function `inner_of_source`",
             "function `middle_of_source`", "r[0] = middle_of_source(r)")
assert len(error.notes) == 2 and error.line == inner_of_source.py_func.__code__.co_firstlineno + 2, error
says(kjit.SourceError, lambda: makes[1, 1](x), "np.zeros() makes an array", "cuda.local.array(shape, dtype)")
says(kjit.SourceError, lambda: makes_plainly[1, 1](x), "np.empty() makes an array", "kjit.local(shape, dtype)", refused=["cuda"])
says(kjit.SourceError, lambda: kjit.map(sums_all, x), "kjit.reduce() works on whole arrays", "kjit.pullback", refused=["kwargs", "_folds.py"])
says(kjit.TypingError, lambda: endless_type(3), "`def endless_type(...) -> kjit.i64`", refused=IR)
says(kjit.TypingError, lambda: chooses(x, 1), "a conditional expression", refused=IR)
says(kjit.TypingError, lambda: picks(1), "iterate with `for v in t`", refused=["@static"])
says(kjit.TypingError, lambda: calls_number(3), "`a` is called, but it is a value", refused=IR)
says(ZeroDivisionError, lambda: divides(1, 0), "function `divides`: ", refused=IR)

# Types of the kernel IR become Python's: NumPy's names in sentences, and kjit's in quoted code.
for message, expected in (
    ("the value is f32[:] C", "the value is a C-contiguous array of float32 with one dimension"),
    ("got const f64[:, :] F", "got a read-only F-contiguous array of float64 with two dimensions"),
    ("got i8[:, :, :], not u16", "got an array of int8 with three dimensions, not uint16"),
    ("got shared bf16[4, 2]", "got a shared array of bfloat16 with the shape (4, 2)"),
    ("got local bool[3]", "got a local array of bool with the shape (3,)"),
    ("got c64[]", "got an array of complex64 with no dimensions"),
    ("x must have the type f32[:] F", "x must be an F-contiguous array of float32 with one dimension"),
    ("got (i64, (c128, f16))", "got (int64, (complex128, float16))"),
    ("got f32x4 and datetime64_25s", "got float32x4 and datetime64[25s]"),
    ("got timedelta64_D[:] C", "got a C-contiguous array of timedelta64[D] with one dimension"),
    ("write i32(...) or `f32(x)` or `f32[:, ::1]`", "write kjit.i32(...) or `kjit.f32(x)` or `kjit.f32[:, ::1]`"),
    ("got `f32[:] C`", "got a C-contiguous array of float32 with one dimension"),
    ("no parameter `i8`; did you mean `u8`?", "no parameter `i8`; did you mean `u8`?"),
    ('cannot read /data/f32/i8.kir, f32.kir or \'f32\': "i8,f32[:] C->" is i8', 'cannot read /data/f32/i8.kir, f32.kir or \'f32\': "i8,f32[:] C->" is int8'),
    ('kjit.f32, "f32", my_f32, f320, 3i32, `x_i64`', 'kjit.f32, "f32", my_f32, f320, 3i32, `x_i64`'),
):
    assert _phrases.in_python([message]) == expected, _phrases.in_python([message])
assert _phrases.in_python(["got f32[:] C"], False) == "got f32[:] C"


@kjit.jit
def raises_own(r):
    raise ValueError("f32[:] C is i64")


@kjit.jit
def stores_record(r, x):
    r[0] = x[0]


says(kjit.Error, lambda: raises_own[1, 1](x), "f32[:] C is i64")
says(kjit.TypingError, lambda: stores_record[1, 1](np.zeros(2, [("a", "f4"), ("b", "i4")]), x), "the type record (a, b), but the value is")
says(kjit.TypingError, lambda: kjit.matmul(np.ones((2, 2)), np.ones((2, 2), np.float32)), "kjit.matmul: ", "float32", "float64")
says(kjit.Error, lambda: kjit.einsum("i8,f32->q", x, x), 'the expression "i8,f32->q"')
says(kjit.ArgumentError, lambda: kjit.reduce(np.ones(0), "max"), "kjit.reduce: ", "`initial`", refused=["options"])

# Every phrase of libkjit's messages has Python's words. test/run/phrases.c shows that each comes from an error.
assert [*_phrases.PHRASES] == _kjit.phrase_names()
for message, expected in (
    ([("CALL", "kjit_select", "select"), ": `x` has no elements"], "kjit.select_where: `x` has no elements"),
    ([("CALL", "kjit_unknown", "unknown"), ": no"], "kjit_unknown: no"),
    ([("OPTION", "options.axes", "axes"), " names 2 axes"], "`axis` names 2 axes"),
    (["set ", ("OPTION", "options.work", "work")], "set options.work"),
    (["x, or ", ("RESULT_TYPE", "`func f(...) -> i64 { ... }`", "f")], "x, or an annotation, `def f(...) -> kjit.i64`"),
    (["`s` has no type; ", ("FIRST_VALUE", "declare it with a type, such as `var s: f32`", "s")], "`s` has no type; assign a value to `s` first"),
    (["give it a type, ", ("VARIABLE_TYPE", "`var s: i64 = ...`", "s")], "give it a type, `s: kjit.i64 = ...`"),
    (["a rule, ", ("DERIVATIVE_RULE", "`func f(...) @vjp(g)`", "vjp")], "a rule, `@kjit.func(vjp=g)`"),
    (["`v` has the type bool, but the value is ", ("VALUE_TYPE", "f32[:] C", "f32[:] C")],
     "`v` has the type bool, but the value is a C-contiguous array of float32 with one dimension"),
    (["write `raise`", ("TARGET_CONDITION", ", or put it under `if target == gpu`", "")], "write `raise`"),
):
    assert _phrases.in_python(message) == expected, _phrases.in_python(message)


# They also come from a kernel that fails to compile at its launch.
@kjit.jit
def unassigned(r):
    while r[0] > 0:
        v = v + 1
        r[0] = v


says(kjit.Error, lambda: unassigned[1, 1](np.ones(1)), "assign a value to `v` first", refused=["var v"])


@kjit.func
def unbounded(x, n):
    s = x
    while n > 0:
        s = s * s
        n = n - 1
    return s


@kjit.func
def large_tape(x):
    s = x
    for i in range(9000):
        s = s * s
    return s


# A string in a program that reads like one of libkjit's phrases does not change.
@kjit.jit
def imitates(r):
    raise ValueError("set options.axes, or a `local` array; kjit_select: `@most(n)`")


says(kjit.Error, lambda: imitates[1, 1](x), "set options.axes, or a `local` array; kjit_select: `@most(n)`")
says(kjit.UnsupportedError, lambda: kjit.grad(unbounded)(1.0, 3), "write `for i in range(100)`, with a constant", refused=["@most"])
says(kjit.UnsupportedError, lambda: kjit.grad(large_tape)(1.0), "a smaller range keeps less", refused=["@most"])


@cuda.jit
def launched(r, n):
    r[0] = n


@kjit.jit
def plain(r, n):
    r[0] = n


@kjit.vectorize
def ratio(a, b):
    if b == 0:
        raise ValueError("nothing to divide by")
    return a / b


@kjit.vectorize(["float64(float64, float64)"])
def numba_ratio(a, b):
    if b == 0:
        raise ValueError("nothing to divide by")
    return a / b


@kjit.cuda.guvectorize(["void(float64[:], float64[:])"], "(n)->()")
def total(v, r):
    r[0] = 0
    for e in v:
        if e > 90:
            raise ValueError("too large")
        r[0] += e


for count in (1, 3):
    arguments = [x, *range(count - 1)]
    text = "() takes 2 arguments, 3 were given" if count == 3 else "(): the argument for the parameter `n` is missing"
    says(TypeError, lambda: launched[1, 1](*arguments), "launched" + text)
    says(TypeError, lambda: plain[1, 1](*arguments), "plain" + text)
says(TypeError, lambda: launched[1, 1](x, m=2), "launched(): ")
says(TypeError, lambda: plain[1, 1](x, m=2), "plain() has no parameter `m`")
says(TypeError, lambda: plain[1, 1](x, 2, n=2), "plain() got two values for the parameter `n`")
says(TypeError, lambda: divides(1), "divides(): the argument for the parameter `b` is missing")
says(TypeError, lambda: ratio(x), "ratio() takes 2 arrays, 1 was given")
rows, columns = np.random.default_rng(3).random((5, 7)) + 1, np.ones(7)
says(ValueError, lambda: ratio(3.0, np.array([1.0, 2.0, 0.0, 0.0])), "function `ratio`, element 2: nothing to divide by")
columns[4] = 0
for function in (ratio, numba_ratio):
    name = function.__name__
    says(ValueError, lambda: function(rows, columns), f"function `{name}`, element (0, 4): nothing to divide by", refused=["kernel"])
rows[3, 2] = 91
says(ValueError, lambda: total(rows), "function `total`, element 3: too large", refused=["kernel"])
print("errors: good", file=sys.stderr)
