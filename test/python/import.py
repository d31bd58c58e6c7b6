# RUN: %kjit-python %s
"""The modules that an import of kjit loads. Programs that may not use kjit at all also pay for them.
test/bench/python.py measures the time."""
import os
import subprocess
import sys
import tempfile

PROGRAM = """
import sys
before = set(sys.modules)
import kjit
print(*(set(sys.modules) - before))
with open("/proc/self/maps") as maps:
    assert "libkjit-compiler" not in maps.read()
"""
loaded = set(subprocess.run([sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True).stdout.split())
assert "kjit._kjit" in loaded and not loaded & {"numpy", "ast", "inspect", "kjit.frontend.emit", "kjit._algorithms"}, loaded
assert len(loaded) < 40, sorted(loaded)

# The first kernel loads only the modules that it needs: modules that take long to load and that this kernel does not need
# are not loaded. Sources are read as Python reads them: in any encoding, with any line ends, and with a character in the
# middle of a line that ends lines in other files.
KERNEL = """{head}
# {text} \f \u2028 \x85
import sys
before = set(sys.modules)
import kjit
@kjit.jit
def add(r, n):
    for i in kjit.grid_range(len(r)):
        r[i] += n  # {text}
a = kjit.zeros(3, "f32", "cpu")
add(a, 2.5)
print(*[m for m in ("inspect", "hashlib", "linecache", "threading", "numpy") if m in set(sys.modules) - before])
try:
    @kjit.jit
    def wrong(r): r[0] = 1; undefined(r)  # {text}
    wrong(a)
except kjit.SourceError as error:
    assert (error.line, error.column) == (15, 29) and error.file == __file__, (error.line, error.column)
else:
    assert False
assert memoryview(a).tolist() == [2.5] * 3"""
with tempfile.TemporaryDirectory() as folder:
    for number, (coding, head, text, change, is_read_here) in enumerate([
            ("utf-8", "#", "plain", str, True), ("utf-8", "#", "\u00e4\u4e00", str, True), ("utf-8-sig", "#", "\u00e4", str, False),
            ("utf-8", "#", "\u00e4", lambda t: t.replace("\n", "\r\n"), True), ("utf-8", "#", "\u00e4", lambda t: t.replace("\n", "\r"), True),
            ("latin-1", "# -*- coding: latin-1 -*-", "\u00e4", lambda t: t.replace("\u2028", ""), False)]):
        path = os.path.join(folder, f"program{number}.py")
        with open(path, "wb") as file:
            file.write(change(KERNEL.replace("{head}", head).replace("{text}", text)).encode(coding))
        done = subprocess.run([sys.executable, "-S", path], capture_output=True, text=True)
        assert done.returncode == 0, (number, done.stderr)
        names = done.stdout.split("\n")[0].split()
        assert names == [] if is_read_here else "linecache" in names, (number, names)

# Operators of numbers in njit functions need no NumPy, which the program has not imported.
POWERS = """
import kjit
@kjit.njit
def power(a):
    a **= 2
    a -= 1
    return a
print(power(5))
"""
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "powers.py")
    with open(path, "w") as file:
        file.write(POWERS)
    done = subprocess.run([sys.executable, path], capture_output=True, text=True)
    assert done.stdout == "24\n", done

# The modules that are loaded late are available as well.
import kjit  # noqa: E402

assert {"grid", "reduce", "jit", "f32", "shared"} <= set(kjit.__all__) and "len" not in kjit.__all__, kjit.__all__
assert {"grid", "reduce", "__all__", "__version__"} <= set(dir(kjit))
assert kjit.reduce is kjit.reduce and kjit.threadIdx is kjit.threadIdx and kjit.c64 == kjit.dtypes.DType("c64")
names = {}
exec("from kjit import *", names)
assert names["syncthreads"] is kjit.syncthreads and names["sort"] is kjit.sort
try:
    kjit.nothing
except AttributeError as error:
    assert "'kjit'" in str(error) and "'nothing'" in str(error)
else:
    assert False
