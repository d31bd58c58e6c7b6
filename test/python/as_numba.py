# RUN: %kjit-python %s
"""kjit in the place of numba: programs that import numba and are not edited, and what an import of a name that kjit has not says."""
import os
import subprocess
import sys
import tempfile
import types

import kjit
import numpy as np

PROGRAM = '''
import sys
import numba
import numba.cuda.random
import numpy as np
from numba import boolean, config, cuda, f4, float32, float64, i8, int32, jit, njit, prange, types, vectorize, void
from numba.core import types as core_types
from numba.core.errors import NumbaPerformanceWarning, NumbaWarning, TypingError
from numba.cuda import libdevice
from numba.cuda.cudadrv import devicearray, error
from numba.cuda.cudadrv.devicearray import DeviceNDArray
from numba.cuda.cudadrv.error import CudaSupportError
from numba.cuda.libdevice import fabs
from numba.cuda.random import create_xoroshiro128p_states, xoroshiro128p_type, xoroshiro128p_uniform_float32
from numba.extending import register_jitable
from numba.np.numpy_support import as_dtype, from_dtype

import library_of_others


@register_jitable
def plus(x, y):
    return x + y


@njit(parallel=True, nogil=True)
def total(a):
    s = 0.0
    for i in prange(len(a)):
        s += plus(a[i], 1)
    return s


@jit("float64(float64)", nopython=True, cache=True)
def twice(x):
    return x * 2


@vectorize([float64(float64, float64)])
def mean(a, b):
    return (a + b) / 2


@cuda.jit(void(float32[:], int32))
def fill(r, n):
    tile = cuda.shared.array(4, float32)
    i = cuda.grid(1)
    if i < r.size:
        tile[cuda.threadIdx.x] = fabs(-1.5) * n
        r[i] = tile[cuda.threadIdx.x]


@cuda.jit
def draw(states, r):
    i = cuda.grid(1)
    if i < r.size:
        r[i] = xoroshiro128p_uniform_float32(states, i)


a = np.arange(10.0)
assert total(a) == a.sum() + 10 and twice(3) == 6.0 and mean(1.0, 4.0) == 2.5
r = np.zeros(8, np.float32)
fill[2, 4](r, 3)
assert (r == 4.5).all()
draw[1, 8](create_xoroshiro128p_states(8, seed=7), r)
assert ((0 <= r) & (r < 1)).all() and len(set(r)) == 8
assert isinstance(cuda.to_device(r), DeviceNDArray) and devicearray.DeviceNDArray is DeviceNDArray
assert from_dtype(np.dtype("f4")) == float32 == f4 == core_types.float32 and as_dtype(types.int64) == np.int64 and i8 == types.int64
assert library_of_others.cubed(2.0) == 8.0 and issubclass(NumbaPerformanceWarning, NumbaWarning)
assert numba.__version__.endswith("kjit") and __name__ == "__main__" and not hasattr(numba, "stencil")
print(*sys.argv[1:])
'''
LIBRARY = "import numba as nb\n\n\n@nb.njit(fastmath=True)\ndef cubed(x):\n    return x * x * x\n"

with tempfile.TemporaryDirectory() as folder:
    for name, text in (("program.py", PROGRAM), ("library_of_others.py", LIBRARY)):
        with open(os.path.join(folder, name), "w") as out:
            out.write(text)
    for arguments in ([os.path.join(folder, "program.py"), "-x", "2"], ["-m", "program", "-x", "2"]):
        done = subprocess.run(
            [sys.executable, "-m", "kjit.as_numba", *arguments],
            cwd=folder, capture_output=True, text=True, env={**os.environ, "KJIT_DEVICE": "cpu"},
        )
        assert done.returncode == 0 and done.stdout == "-x 2\n", done
    done = subprocess.run([sys.executable, "-m", "kjit.as_numba"], capture_output=True, text=True)
    assert done.returncode and "usage" in done.stderr, done

    # In a block: what was imported of Numba before is there again behind it.
    for name in ("numba", "numba.core"):
        sys.modules.setdefault(name, types.ModuleType(name))
    before = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "numba"}
    sys.path.insert(0, folder)
    with kjit.as_numba() as standin:
        import library_of_others
        import numba
        import numba.cuda

        assert numba is standin and numba.njit is kjit.njit and numba.cuda is kjit.cuda and library_of_others.cubed(3) == 27
    assert before == {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "numba"}
    assert library_of_others.cubed(4) == 64

    for statement, kind, text in (
        ("from numba import stencil", ImportError, "'stencil'"),
        ("from numba.experimental import jitclass", ImportError, "'jitclass'"),
        ("from numba.typed import List", ImportError, "'List'"),
        ("from numba.extending import overload", ImportError, "'overload'"),
        ("import numba.roc", ModuleNotFoundError, "numba.roc"),
        ("import numba.core.compiler", ModuleNotFoundError, "numba.core.compiler"),
        ("import numba; numba.generated_jit", AttributeError, "numba.generated_jit: write a function"),
        ("import numba; numba.jit(lambda x: x, forceobj=True)", TypeError, "object mode"),
    ):
        with kjit.as_numba():
            try:
                exec(statement, {})
            except kind as error:
                assert text in str(error), (statement, error)
            else:
                raise AssertionError(statement)
for name in before:
    del sys.modules[name]

# The same modules by kjit's own names. The module kjit.as_numba can be called, too, once it is imported.
exec("""
import kjit.as_numba
import kjit.cuda.cudadrv.devicearray
import kjit.cuda.libdevice
from kjit.cuda.cudadrv import error
from kjit.cuda.libdevice import sinf

assert kjit.cuda.cudadrv.devicearray.DeviceNDArray and error.CudaSupportError and sinf is kjit.cuda.libdevice.sinf
with kjit.as_numba():
    import numba

    assert numba.float32 is kjit.float32
""")

# A block that fails leaves nothing behind.
try:
    with kjit.as_numba():
        raise KeyError(1)
except KeyError:
    pass
assert not any(type(module).__name__ == "Standin" for module in sys.modules.values()) and np.array(1) == 1
