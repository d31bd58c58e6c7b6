# RUN: %kjit-python %s
"""What an import of kjit loads, and how long it takes: programs that only might use it pay for it, too."""
import subprocess
import sys

PROGRAM = """
import sys, time
began, before = time.perf_counter(), set(sys.modules)
import kjit
took = time.perf_counter() - began
print(took, *(set(sys.modules) - before))
with open("/proc/self/maps") as maps:
    assert "libkjit-compiler" not in maps.read()
"""
runs = [subprocess.run([sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True).stdout.split() for _ in range(8)]
loaded = set(runs[0][1:])
assert "kjit._kjit" in loaded and not loaded & {"numpy", "ast", "inspect", "kjit.frontend.emit", "kjit._algorithms"}, loaded
least = min(float(run[0]) for run in runs)
assert least < 0.05, f"an import of kjit takes {1000 * least:.1f} ms"

# What came late is there all the same.
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
print(f"import: {1000 * least:.1f} ms", file=sys.stderr)
