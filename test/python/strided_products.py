# RUN: env KJIT_DEVICE=cpu %kjit-python %s values
# RUN: %if cuda %{ env KJIT_DEVICE=cuda %kjit-python %s values %}
# RUN: mkdir -p %t && %cc -shared -fPIC -O1 -I%srcdir/include -I%srcdir/lib -I%srcdir/runtime -I%srcdir/test/unit %srcdir/test/bench/no_driver.c -o %t/libcuda.so.1 -lpthread
# RUN: env LD_LIBRARY_PATH=%t KJIT_DEVICE=cuda %kjit-python %s launches
"""Products of matrices that are parts of larger arrays: rows with gaps, every second row, transposed parts, and matrices with gaps between
them, of each element type. `values` compares with NumPy. `launches` runs with a driver that does nothing, so that the
kernels for a GPU are compiled and launched, and nothing is compared."""
import itertools
import sys

import kjit
import numpy as np
import seeds

compares = sys.argv[1] == "values"
seed = seeds.seed
print("seed", seed)
random = np.random.default_rng(seed)
# Relative to the largest element of the result.
TOLERANCE = {"f2": 2e-2, "f4": 1e-4, "f8": 1e-12, "i1": 0}
PARTS = {
    "whole": lambda a, rows, columns: np.ascontiguousarray(a[:rows, :columns]),
    "rows with gaps": lambda a, rows, columns: a[:rows, :columns],
    "every second row": lambda a, rows, columns: a[: 2 * rows : 2, :columns],
    "transposed": lambda a, rows, columns: a[:columns, :rows].T,
    "inner": lambda a, rows, columns: a[8 : 8 + rows, 16 : 16 + columns],
}


def draw(shape, element):
    return random.integers(-8, 9, shape).astype(element) if element == "i1" else random.standard_normal(shape).astype(element)


def check(expression, element, *operands):
    result = kjit.einsum(expression, *operands)
    if not compares:
        return
    result, *wide = (x.to_host() if isinstance(x, kjit.Array) else x for x in (result, *operands))
    wide = [x.astype("i8" if element == "i1" else "f8") for x in wide]
    want = np.einsum(expression, *wide)
    if element == "i1":
        np.testing.assert_array_equal(result, want.astype(result.dtype))
    else:
        np.testing.assert_allclose(result, want, rtol=0, atol=TOLERANCE[element] * np.abs(want).max())


for element in TOLERANCE:
    a, b, c = draw((200, 160), element), draw((200, 160), element), draw((3, 80, 160), element)
    on_device = kjit.array(a)
    for (_, left), (_, right) in itertools.product(PARTS.items(), PARTS.items()):
        check("ij,jk->ik", element, left(a, 64, 48), right(b, 48, 80))
    check("ij,jk->ik", element, on_device[:64, :48], b[:48, :80])
    check("ij,j->i", element, on_device[:64, :4], b[0, :4])
    check("bij,bjk->bik", element, c[:, :64, :48], c[:, :48, 80:])
    check("ij,j->i", element, c[:, 0, :48], b[0, :48])
