# REQUIRES: build
# RUN: mkdir -p %t && %cc -shared -fPIC -O1 -D_GNU_SOURCE= -I%srcdir/include -I%srcdir/lib -I%srcdir/runtime %S/Inputs/fake_driver.c -o %t/libcuda.so.1
# RUN: env LD_LIBRARY_PATH=%t KJIT_DEVICE=cuda %kjit-python %s
"""Derivatives of programs that mix NumPy arrays and GPU arrays, on a driver that runs no kernels. NumPy cannot read GPU
memory, so an array in the wrong memory causes an error here. Each derivative is in the memory of its argument. The
values are not computed."""

import ctypes

driver = ctypes.CDLL("libcuda.so.1")
driver.fake_set_devices(1)

import kjit  # noqa: E402
import kjit.numpy as knp  # noqa: E402
import numpy as np  # noqa: E402

x, a = np.linspace(0.5, 1.5, 4), np.linspace(0.5, 1.5, 12).reshape(4, 3)
offsets, keys = np.array([0, 2, 4]), np.array([0, 0, 1, 1])
PROGRAMS = {
    "an index array": lambda m: lambda x, a: m.sum(x[m.asarray([0, 0, -1])] ** 2) + m.sum(a[m.asarray([1, 0])]),
    "a list and a slice": lambda m: lambda x, a: m.sum(x[[0, 2]] * a[1:3, 0] * m.arange(2.0)),
    "take": lambda m: lambda x, a: m.sum(m.take(a, m.asarray([0, -1, 0]), axis=-1) ** 2) * m.sum(x),
    "an element of a product with new arrays": lambda m: lambda x, a: (m.sin(x * m.arange(4.0)))[1] * m.sum(a * a),
    "joins": lambda m: lambda x, a: m.sum(m.concatenate([x * x, m.reshape(m.arange(3.0), (3,)), a[0]]) ** 2),
    "scans": lambda m: lambda x, a: m.sum(m.cumprod(x) * m.cumsum(x)) + m.sum(m.cumprod(a, axis=0)),
    "choices": lambda m: lambda x, a: m.sum(m.where(x > 1.0, x * m.arange(4.0), 0.0)) + m.sum(m.maximum(a, 1.0)),
    "products": lambda m: lambda x, a: m.sum((x @ a) ** 2 * m.arange(3.0)),
    "moves": lambda m: lambda x, a: m.sum(m.roll(m.flip(x), 1) * x) + m.sum(m.repeat(a, 2, axis=1) ** 2),
    "segments and keys": lambda m: lambda x, a: m.sum(kjit.reduce_segments(x * x, offsets) ** 2) * m.sum(kjit.scan_by_key(keys, x)) * m.sum(a),
    "pairs": lambda m: lambda x, a: m.sum(kjit.pairs(lambda u, v, i, j: u * v * v, x, x) ** 2) * m.sum(a),
}  # fmt: skip


def check(found, given, name):
    for derivative, argument in zip(found, given, strict=True):
        assert derivative.shape == argument.shape, name
        assert type(derivative) is type(argument), (name, type(derivative))
        assert getattr(derivative, "device", None) == getattr(argument, "device", None), name


np.seterr(all="ignore")
for name, program in PROGRAMS.items():
    for m in (np, knp):
        for first, second in ((x, a), (kjit.array(x), kjit.array(a)), (x, kjit.array(a)), (kjit.array(x), a)):
            given = first, second
            _, *found = kjit.value_and_grad(program(m))(*given)
            check(found, given, name)
            check(kjit.hvp(program(m))(*given, *given), given, name)
print("gradient_memories: good")
