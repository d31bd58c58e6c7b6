# RUN: %kjit-python %s
"""kjit in place of numba: programs that import numba run without changes. An import of a name that kjit lacks explains
this."""
import os
import runpy
import subprocess
import sys
import tempfile
import types
import warnings

import kjit
import numpy as np
import seeds

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
assert [int(part) for part in numba.__version__.split(".")] == [0, 61, 2] and numba.version_info.full == (0, 61, 2) and __name__ == "__main__"
assert numba.config.NUMBA_NUM_THREADS == config.NUMBA_DEFAULT_NUM_THREADS == numba.get_num_threads() and not config.DISABLE_JIT
assert config.THREADING_LAYER == "default" and numba.core.config.CUDA_LOG_LEVEL == "" and not hasattr(numba, "generated_jit")
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

    # After the block, the Numba modules that were imported before are in place again.
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

    # A name that kjit lacks can be imported. Each use of the name then fails with an error that contains the name.
    USES = """
import numba
import numba.core.compiler
import numba.experimental.structref as structref
from numba import cfunc, njit, objmode, stencil, typed, types
from numba.core import cgutils
from numba.core.dispatcher import Dispatcher
from numba.experimental import jitclass
from numba.extending import intrinsic, models, overload, overload_method, register_model, type_callable, typeof_impl
from numba.typed import Dict, List

items = types.Array(types.float64, 1, "C", readonly=True)


def of_program(x):
    raise NotImplementedError


@type_callable(of_program)
def _(context):
    return lambda x: x


def next_of(x):
    raise NotImplementedError


@overload(next_of)
def _(x):
    return lambda x: x + 1


@intrinsic
def load(context, pointer):
    return None, cgutils.alloca_once


@structref.register
class Kind(types.StructRef):
    pass


class Proxy(structref.StructRefProxy):
    pass


structref.define_proxy(Proxy, Kind, ["a"])


@jitclass([("a", types.int64)])
class Thing:
    def __init__(self):
        self.a = 1


@jitclass
class Other:
    a: int


class OwnType(types.Type):
    pass


@typeof_impl.register(Thing)
def _(value, context):
    return OwnType("own")


@register_model(OwnType)
class Model(models.StructModel):
    pass


@overload_method(OwnType, "area")
def _(value):
    return None


@stencil
def around(a):
    return a[0]


@cfunc("float64(float64)")
def callback(x):
    return x


@njit
def calls_program(x):
    return of_program(x)


@njit
def calls_intrinsic(x):
    return load(x)


@njit
def calls_list(x):
    values = List.empty_list(x)
    return len(values)


@njit
def fills_list(x):
    values = List([x, 2])
    return len(values)


@njit
def makes_thing(x):
    return Thing().a


@numba.jit(forceobj=True)
def by_python(x):
    return [x]


@numba.njit
def calls_overload(x):
    return next_of(x)


assert calls_overload(3) == 4
assert isinstance(calls_list, Dispatcher) and not isinstance(3, List) and by_python(1) == [1]
"""
    for use, kinds, text in (
        ("List()", NotImplementedError, "numba.typed.List"),
        ("List.empty_list(types.int64)", AttributeError, "numba.typed.List"),
        ("typed.Dict.empty(types.int64, types.int64)", AttributeError, "numba.typed.Dict"),
        ("Thing()", NotImplementedError, "Thing"),
        ("Other()", NotImplementedError, "jitclass"),
        ("Proxy(1)", NotImplementedError, "numba.experimental"),
        ("types.ListType(types.int64)", NotImplementedError, "numba.types.ListType"),
        ("types.no_such_name", AttributeError, "no_such_name"),
        ("cgutils.alloca_once(1)", NotImplementedError, "numba.core.cgutils.alloca_once"),
        ("around(1)", NotImplementedError, "stencil"),
        ("callback.address", AttributeError, "callback"),
        ("objmode(x='int64')", NotImplementedError, "object mode"),
        ("calls_program(1)", kjit.SourceError, "of_program"),
        ("calls_intrinsic(1)", kjit.SourceError, "intrinsic"),
        ("calls_list(1)", kjit.SourceError, "numba.typed.List"),
        ("fills_list(1)", kjit.SourceError, "numba.typed.List"),
        ("makes_thing(1)", kjit.SourceError, "Thing"),
    ):
        path = os.path.join(folder, "uses.py")
        with open(path, "w") as out:
            out.write(USES)
        with kjit.as_numba(), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            space = runpy.run_path(path)
            assert any(issubclass(w.category, kjit.KjitWarning) and "forceobj" in str(w.message) for w in caught)
            try:
                eval(use, space)
            except kinds as error:
                assert text in str(error), (use, error)
            else:
                raise AssertionError(use)
    for statement, kind, text in (
        ("import numba.roc", ModuleNotFoundError, "numba.roc"),
        ("from numba.typed import Tree", ImportError, "'Tree'"),
        ("from numba import generated_jit", ImportError, "'generated_jit'"),
        ("import numba; numba.generated_jit", AttributeError, "numba.generated_jit: write a function"),
        ("import math; from numba.extending import type_callable; type_callable(math.sin)", NotImplementedError, "sin"),
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

# The same modules under kjit's own names. After its import, the module kjit.as_numba can also be called.
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

rng = seeds.fresh_generator()
# numba.vectorize without signatures computes integers in 64 bits, and reduces in the type of the result.
exec("""
import kjit.as_numba
with kjit.as_numba():
    import numba

    @numba.vectorize
    def multiply(a, b):
        return a * b
for kind in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "f4"):
    a, b = rng.integers(1, 100, (2, 9)).astype(kind)
    wide = {"i": "i8", "u": "u8", "f": "f4"}[kind[0]]
    got, expected = multiply(a, b), a.astype(wide) * b.astype(wide)
    assert got.dtype == expected.dtype and got.tolist() == expected.tolist(), kind
    got, expected = multiply.reduce(a[:3]), np.multiply.reduce(a[:3].astype(wide))
    assert got.dtype == expected.dtype and got == expected, kind
    assert multiply.accumulate(a[:3]).tolist() == np.multiply.accumulate(a[:3].astype(wide)).tolist(), kind
""")

# A block that fails leaves no trace.
try:
    with kjit.as_numba():
        raise KeyError(1)
except KeyError:
    pass
assert not any(type(module).__name__ == "Standin" for module in sys.modules.values()) and np.array(1) == 1
