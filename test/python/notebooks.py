# RUN: %kjit-python %s
"""Features for notebooks and clusters: functions without a file, pickles, the display of code, and figures of times."""
import linecache
import os
import pickle
import re
import subprocess
import sys
import tempfile

import kjit
import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
import pickled_module  # noqa: E402

SCALE = float(np.random.default_rng().random())
TABLE = np.array([1.5, 2.5])


def helper(v):
    return v * SCALE + TABLE[1]


@kjit.func
def power(a: kjit.i64, n: kjit.i64) -> kjit.i64:
    if n == 0:
        return 1
    return a * power(a, n - 1)


@kjit.jit(wrap=True)
def shown(x, y):
    for i in kjit.grid_range(len(x)):
        a = y[i]
        x[i] = helper(a) / 3


def make(k):
    @kjit.jit
    def kernel(r, n=2):
        for i in kjit.grid_range(len(r)):
            r[i] = k * n + power(2, 3) + helper(r[i])
    return kernel


def spread(x, k):
    s = 0.0
    for i in kjit.prange(len(x)):
        s += helper(x[i]) * k
    return s


# Cells: IPython stores their text where linecache searches for it.
cell = "@kjit.jit\ndef in_cell(r):\n    for i in kjit.grid_range(len(r)):\n        r[i] = i * CELL\n        assert i < 9, 'nine'\n"
name = "<ipython-input-3-abcdef>"
linecache.cache[name] = (len(cell), None, cell.splitlines(keepends=True), name)
names = {"kjit": kjit, "CELL": 3}
exec(compile(cell, name, "exec"), names)
r = np.zeros(5)
names["in_cell"](r)
assert r.tolist() == [0, 3, 6, 9, 12]

# exec: after keep_sources(), the text is known, also if several texts have the same name.
text = "def made(r):\n    for i in kjit.grid_range(len(r)):\n        r[i] = {}\nf = lambda a: a * {}\n"
kjit.keep_sources()
kjit.keep_sources()
made = []
for k in (5, 6, 7):
    exec(text.format(k, k + 1), names)
    made.append((k, names["made"], names["f"]))
for k, function, func in made:
    kjit.jit(function)(r)
    assert (r == k).all() and kjit.func(func)(10) == 10 * (k + 1)

# python -c: the text is on the command line.
program = "import kjit, numpy as np\n@kjit.jit\ndef k(r):\n  for i in kjit.grid_range(len(r)):\n    r[i] = 7\nr = np.zeros(3)\nk(r)\nassert (r == 7).all()\n"
subprocess.run([sys.executable, "-c", program], check=True)

# Pickles by name, and by value with everything that the code uses, including reference cycles. Another process compiles
# the code.
assert pickle.loads(pickle.dumps(pickled_module.fill)) is pickled_module.fill and pickle.loads(pickle.dumps(pickled_module.twice)) is pickled_module.twice
values = {"shown": shown, "kernel": make(5), "power": power, "spread": kjit.njit(parallel=True)(spread), "lambda": kjit.func(lambda a, b=SCALE: a + b),
          "fill": pickled_module.fill, "exec": kjit.jit(made[0][1])}
READER = """
import pickle, sys
import numpy as np
v = pickle.load(open(sys.argv[1], "rb"))
x, y = np.zeros(4), np.arange(4.0)
v["shown"](x, y)
r = np.ones(2)
v["kernel"](r)
e, f = np.zeros(2), np.zeros(2)
v["exec"](e)
v["fill"](f, 3)
print(repr([x.tolist(), r.tolist(), v["power"](3, 4), v["spread"](y, 2), v["lambda"](1), e.tolist(), f.tolist()]))
try:
    v["shown"](3, 4)
except Exception as error:
    print(error.file)
"""
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "kernels.pickle")
    with open(path, "wb") as file:
        pickle.dump(values, file)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([os.environ.get("PYTHONPATH", ""), sys.path[0]])}
    out = subprocess.run([sys.executable, "-c", READER, path], check=True, capture_output=True, text=True, env=environment).stdout.split("\n")
    y = np.arange(4.0)
    expected = [(helper(y) / 3).tolist(), [10 + 8 + helper(1.0)] * 2, 81, 2 * sum(map(helper, y)), 1 + SCALE, [5.0, 5.0], [3.0, 3.0]]
    for a, b in zip(eval(out[0]), expected):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    assert out[1] in (__file__, "None"), out

    # A figure: XML with a line for each function, and a table.
    figure = kjit.benchmark({"a<b": lambda r: pickled_module.fill(r, 1), "numpy": lambda r: r.fill(1)}, (10, 1000), np.zeros, seconds=0.01,
                            amount=lambda n: 8 * n, unit="bytes/s")
    figure.save(os.path.join(folder, "times.svg"))
    import xml.etree.ElementTree as tree
    root = tree.parse(os.path.join(folder, "times.svg")).getroot()
    lines = [g for g in root.findall("{*}g") if g.get("class").startswith("line ")]
    assert [g.find("{*}text").text for g in lines] == ["a<b", "numpy"], figure.svg()
    assert all(len([p for p in g.findall("{*}path") if p.find("{*}title") is not None]) == 2 for g in lines)
    assert "prefers-color-scheme" in figure.svg() and "prefers" not in figure.svg("dark") and figure.svg("dark") != figure.svg("light")
    ticks = [t.text for t in root.findall("{*}text") if t.get("class") == "y"]
    assert ticks and all(t.endswith("B/s") for t in ticks), ticks
    assert all(low <= seconds <= high * 1.0001 for (label, n, seconds) in figure.rows for low, high in [figure.bands[label, n]]), figure.bands
assert len(figure.rows) == 4 and all(seconds > 0 for _, _, seconds in figure.rows)
assert len(str(figure).split("\n")) == 3 and "numpy [bytes/s]" in str(figure) and figure._repr_svg_().startswith("<svg")
copied = kjit.benchmark(shown, [64], lambda n: (np.zeros(n), np.ones(n)), devices=("cpu",), seconds=0.01)
assert copied.labels == ["shown (cpu)"] and copied.sizes == [64]
for bad, kind in ((lambda: kjit.benchmark([helper, helper], [1], np.zeros), ValueError), (lambda: kjit.benchmark(3, [1], np.zeros), TypeError),
                  (lambda: copied.svg("blue"), ValueError), (lambda: copied.save("times.png", "auto"), ValueError)):
    try:
        bad()
    except kind:
        continue
    raise AssertionError(kind)

# Each stage of the code shows the Python lines from which it was compiled before the corresponding instructions.
os.environ["KJIT_DEVICE"] = "cpu"
fresh = kjit.jit(shown.py_func)
try:
    fresh.inspect()
    raise AssertionError("nothing was compiled")
except ValueError as error:
    assert "launch it first" in str(error)
fresh(np.zeros(4, np.float32), np.ones(4, np.float32))
line = shown.py_func.__code__.co_firstlineno + 3
QUOTED = (rf"{line}: a = y\[i\]", rf"{line + 1}: x\[i\] = helper\(a\) / 3")
for stage, mark, which, after in (("kir", "#", 0, r"let a = refer\(y\[i\]\)"), ("llvm", ";", 0, "load float"), ("llvm-opt", ";", 0, "load"), ("asm", "#", 1, "div")):
    text = fresh.inspect(stage)
    assert re.search(rf"{mark} notebooks.py:{QUOTED[which]}\n(.*\n){{0,20}}?.*{after}", text), (stage, text)
    assert f"notebooks.py:{helper.__code__.co_firstlineno + 1}: return v * SCALE" in text, (stage, text)
    assert "!dbg" not in text and "\t.loc" not in text and "notebooks.py" not in fresh.inspect(stage, lines=False), stage
ptx = fresh.inspect("ptx", "f32[:], const f32[:]", "sm_90")
assert re.search(rf"// notebooks.py:{line}: a = y\[i\]\n(.*\n){{0,20}}?.*ld\.global", ptx) and ".target sm_90" in ptx and ".loc" not in ptx, ptx
assert re.search(rf"// notebooks.py:{line + 1}: x\[i\] = helper\(a\) / 3\n(.*\n){{0,20}}?.*st\.global", ptx), ptx
assert "grid_range" in fresh.inspect("typed") and fresh.inspect("object")[:4] == b"\x7fELF"
known = fresh.specializations
assert len(known) == 1 and known[0]["signature"].startswith("f32[:]") and known[0]["target"] == "cpu" and known[0]["launches"] == 1, known
for bad, kind in ((lambda: fresh.inspect("nothing"), ValueError), (lambda: fresh.inspect("ptx"), kjit.Error), (lambda: fresh.inspect("ptx", "f32[", "sm_90"), kjit.ParseError)):
    try:
        bad()
    except kind:
        continue
    raise AssertionError(kind)


# After the import of kjit.cuda, functions that were made from texts and syntax trees have a source, also if several texts
# have the same name.
child = """
import ast, numpy as np, kjit
from kjit import cuda, njit
made = []
for k in (2, 3):
    space = {}
    exec(f"def h(x):\\n    x[0] = {k}\\n", space)
    made.append((space["h"], k))
    exec(compile(f"def h(x):\\n    x[0] = {k} * 10\\n", "<h>", "exec"), space)
    made.append((space["h"], k * 10))
    exec(compile(ast.parse(f"def h(x):\\n    x[0] = {k} * 100\\n"), "no such file.py", "exec"), space)
    made.append((space["h"], k * 100))
    tree = ast.parse("def h(x):\\n    x[0] = 7\\n")
    tree.body[0].body[0].value = ast.BinOp(ast.Constant(k), ast.Mult(), ast.Constant(1000))
    exec(compile(ast.fix_missing_locations(tree), "<h>", "exec"), space)
    made.append((space["h"], k * 1000))
    made.append((eval(f"lambda x: x.fill({k})", space) and space["h"], k * 1000))
for function, value in made:
    x = np.zeros(1)
    cuda.jit(function)[1, 1](x)
    assert x[0] == value, (x, value)
space = {}
exec(compile(ast.parse("def wrong(x):\\n    x[0] = unknown\\n"), "<w>", "exec"), space)
try:
    cuda.jit(space["wrong"])[1, 1](np.zeros(1))
except kjit.Error as error:
    assert "<w>:2" in str(error) and "unknown" in str(error), error
assert njit(eval("lambda a: a + 2"))(3) == 5
"""
subprocess.run([sys.executable, "-c", child], check=True)

# Without kjit.cuda and kjit.njit, no source is kept before keep_sources().
child = """
import kjit, numpy as np
space = {"kjit": kjit}
text = "def made(r):\\n    r[0] = 1\\n"
exec(text, space)
try:
    kjit.jit(space["made"])[1, 1](np.zeros(1))
except kjit.SourceError as error:
    assert "keep_sources" in str(error), error
else:
    raise AssertionError("a function without a source")
"""
subprocess.run([sys.executable, "-c", child], check=True)
