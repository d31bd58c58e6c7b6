# RUN: env KJIT_DEVICE=cpu %kjit-python %s
"""Views of arrays, some of which have no elements, in functions and kernels that check indices. NumPy gives the
expected shapes and sums."""

import importlib.util
import pathlib
import tempfile

import kjit
import numpy as np
import seeds
from kjit import cuda

generator = seeds.fresh_generator()
STEPS = ("[:, None]", "[None, :]", "[None]", ".T", ".real", ".imag", ".view(np.int32)", "[::2]", "[1:]", "[::-1]", "[:0]")
TYPES = ("float32", "float64", "complex64", "complex128", "int32", "int64")
SHAPES = ((0,), (3,), (0, 2), (2, 0), (3, 2))
CASE = """
def {name}(x, out):
    y = x{steps}
    out[0] = y.size
    for at in np.ndindex(y.shape):
        out[1] += y[at].real
    out[2] = y.ndim
    for axis in range(y.ndim):
        out[3 + axis] = y.shape[axis]
"""


def views(x):
    """Returns a random chain of up to three steps that NumPy can apply to an array with this type and these dimensions."""
    steps = ""
    for _ in range(generator.integers(1, 4)):
        step = str(generator.choice(STEPS))
        y = eval(f"x{steps}", {"x": x, "np": np})
        is_view_of_bytes = step.startswith(".view") and (y.dtype != np.int64 or not y.flags.c_contiguous)
        # Numba has no `imag` of a real array as a view, and kjit's functions have at most 4 dimensions here.
        if is_view_of_bytes or (step == ".imag" and y.dtype.kind != "c") or ("None" in step and y.ndim > 3) or ("[:, " in step and y.ndim < 1):
            continue
        steps += step
    return steps


def expected(x, steps):
    y = eval(f"x{steps}", {"x": x, "np": np})
    out = np.zeros(8)
    out[:3] = y.size, y.real.sum(dtype=np.float64), y.ndim
    out[3 : 3 + y.ndim] = y.shape
    return out


cases, text = [], "import numpy as np\n"
for number in range(40):
    shape, dtype = SHAPES[generator.integers(len(SHAPES))], str(generator.choice(TYPES))
    x = generator.integers(-9, 9, shape).astype(dtype)
    steps = views(x)
    cases.append((f"case_{number}", x, steps))
    text += CASE.format(name=f"case_{number}", steps=steps)

with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / "cases.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location("cases", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name, x, steps in cases:
        function = getattr(module, name)
        for options in ({}, {"boundscheck": True}):
            for launch in (kjit.njit(**options)(function), cuda.jit(**options)(function)[1, 1]):
                out = np.zeros(8)
                launch(x, out)
                assert np.array_equal(out, expected(x, steps)), (x.shape, x.dtype, steps, out, expected(x, steps))
